package kitgrpc

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestEncoded: a message that was encoded once is sent as it is, any number of times, and any other message as ever.
func TestEncoded(t *testing.T) {
	m := wrapperspb.String("word")
	want, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	m.Value = "another"
	other, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for v, want := range map[any][]byte{e: want, m: other} {
			b, err := newCodec().Marshal(v)
			if err != nil || !bytes.Equal(b.Materialize(), want) {
				t.Errorf("%T: sent %q, %v; want %q", v, b.Materialize(), err, want)
			}
			b.Free()
		}
	}
}
