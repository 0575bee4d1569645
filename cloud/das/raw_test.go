package das

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestRawRoundTrip(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 5, time.UTC)
	want := []RawBatch{{"vic:1", now, []byte("{}\nxyz")}, {"pleo:2", now, []byte{}}}
	var b []byte
	for _, r := range want {
		b = AppendRaw(b, r)
	}
	var got []RawBatch
	if err := ReadRaw(bytes.NewReader(b), func(r RawBatch) error { got = append(got, r); return nil }); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for n := range b {
		if err := ReadRaw(bytes.NewReader(b[:n]), func(RawBatch) error { return nil }); err == nil && n != 0 && !strings.HasSuffix(string(b[:n]), "xyz\n") {
			t.Errorf("cut at %d of %d: no error", n, len(b))
		}
	}
}

func FuzzReadRaw(f *testing.F) {
	f.Add(AppendRaw(nil, RawBatch{"vic:1", time.Unix(5, 0), []byte("abc")}))
	f.Add([]byte(`{"thing":"vic:1","bytes":-1}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		var first []RawBatch
		if err := ReadRaw(bytes.NewReader(b), func(r RawBatch) error {
			first, again = append(first, r), AppendRaw(again, r)
			return nil
		}); err != nil {
			return
		}
		n := 0
		if err := ReadRaw(bytes.NewReader(again), func(r RawBatch) error {
			if r.Thing != first[n].Thing || !r.Received.Equal(first[n].Received) || !bytes.Equal(r.Payload, first[n].Payload) {
				t.Fatalf("got %+v, want %+v", r, first[n])
			}
			n++
			return nil
		}); err != nil || n != len(first) {
			t.Fatalf("%d of %d read again: %v", n, len(first), err)
		}
	})
}
