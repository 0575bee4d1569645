package vectorsdk

import (
	"context"
	"kennel/edge/agent/health/conncheck"
	"kennel/edge/vectorsdk/navmap"
	"kennel/infra/api/vectorpb"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
)

// Calls returns the names of the calls that are done, and those that are absent with their part.
func Calls() (done []string, missing map[string]string) {
	for name := range (&Facade{}).handlers() {
		done = append(done, name)
	}
	slices.Sort(done)
	return done, absent
}

// Objects returns functions that give a robot custom objects, and what its map has then at a place.
func Objects() (create func(*vectorpb.CreateFixedCustomObjectRequest) error, define func(*vectorpb.DefineCustomObjectRequest) (bool, error), at func(x, y float64) navmap.Content) {
	f := &Facade{}
	f.world.begin()
	f.origin.Store(1)
	return func(q *vectorpb.CreateFixedCustomObjectRequest) error {
			_, err := f.createFixed(context.Background(), client{}, q)
			return err
		}, func(q *vectorpb.DefineCustomObjectRequest) (bool, error) {
			a, err := f.defineCustom(context.Background(), client{}, q)
			return a.GetSuccess(), err
		}, f.world.m.At
}

// PathOf returns the path of a call.
func PathOf(name string) string { return strings.TrimPrefix(pathsOf(name)[0], "POST ") }

// Parse reads a request.
func Parse(b []byte, q proto.Message) error { return parse(b, q) }

// Encode writes a message as JSON.
func Encode(m proto.Message) ([]byte, error) { return encode.Marshal(m) }

// Checks returns the function that runs a check, or returns the report of one that ended after began.
func Checks() func(ctx context.Context, began time.Time, check func(context.Context) conncheck.Report) conncheck.Report {
	return new(checks).run
}

// Finite returns an error for a message with a number that is none.
func Finite(m proto.Message) error { return finite(m.ProtoReflect()) }

// ActionEnded says that an action ended.
func (f *Facade) ActionEnded(call string, code vectorpb.ActionResult_ActionResultCode) {
	f.felt(call, code)
}
