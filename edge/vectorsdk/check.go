package vectorsdk

import (
	"math"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// finite returns an error for a message with a number that is none: an order with one would be refused in words that no program of the original knows.
// A message is as deep as its type: the published ones do not contain themselves.
func finite(m protoreflect.Message) (err error) {
	m.Range(func(d protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case d.IsList() && d.Message() != nil:
			for i := range v.List().Len() {
				if err = finite(v.List().Get(i).Message()); err != nil {
					return false
				}
			}
		case d.IsList():
		case d.Message() != nil:
			err = finite(v.Message())
		case d.Kind() == protoreflect.FloatKind:
			if x := v.Float(); math.IsNaN(x) || math.IsInf(x, 0) {
				err = errInvalid("%s: %v, want a finite number", d.FullName(), x)
			}
		}
		return err == nil
	})
	return err
}
