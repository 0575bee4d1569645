package ack

import (
	"reflect"
	"testing"
)

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"v":1,"batch":"b","status":"refused","code":"bad_event","reason":"seq 3: no name","bad_seqs":[3]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Parse(b)
		if err != nil {
			return
		}
		again, err := a.Encode()
		if err != nil {
			t.Fatal(err)
		}
		a2, err := Parse(again)
		if len(a.Bad) == 0 {
			a.Bad = nil
		}
		if err != nil || !reflect.DeepEqual(a, a2) {
			t.Fatalf("%+v -> %+v, %v", a, a2, err)
		}
	})
}
