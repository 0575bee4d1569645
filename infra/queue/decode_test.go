package queue

import (
	"bytes"
	"testing"
)

// FuzzDecode: what is read can be written and read again, and is then the same.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"topic":"kennel/vic:1/up/das","payload":"AAEC"}`))
	f.Add([]byte(`{"topic":"x","payload":""}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		topic, payload, err := decode(b)
		if err != nil {
			return
		}
		once, err := Encode(topic, payload)
		if err != nil {
			t.Fatal(err)
		}
		if t2, p2, err := decode(once); err != nil || t2 != topic || !bytes.Equal(p2, payload) {
			t.Fatalf("%q %x -> %q %x, %v", topic, payload, t2, p2, err)
		}
	})
}
