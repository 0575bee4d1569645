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
	f.Add(AppendRaw(AppendRaw(nil, RawBatch{"vic:1", time.Unix(1, 2), []byte("{}\nxyz")}), RawBatch{"pleo:2", time.Unix(3, 0), nil}))
	f.Add([]byte(`{"thing":"vic:1","received":"2026-11-21T12:00:00Z","bytes":-1}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		n := 0
		if ReadRaw(bytes.NewReader(b), func(r RawBatch) error { again = AppendRaw(again, r); n++; return nil }) != nil {
			return
		}
		m := 0
		if err := ReadRaw(bytes.NewReader(again), func(RawBatch) error { m++; return nil }); err != nil || n != m {
			t.Errorf("%d batches, written and read %d, %v", n, m, err)
		}
	})
}
