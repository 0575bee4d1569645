package corelink

import (
	"testing"

	"kennel/infra/api/live"
)

// BenchmarkUpdate is one update of 20 slots on its way from robotd to a program, encoded and decoded.
func BenchmarkUpdate(b *testing.B) {
	m := &Update{Request: 1, Seq: 7, AtUS: 123456789}
	for i := range 20 {
		v := 0.1234567891 * float64(i+1)
		m.Values = append(m.Values, live.Value{Slot: 30 + i, AgeMS: 5, Number: &v})
	}
	var frame []byte
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var err error
			if frame, err = AppendFrame(frame[:0], m); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(frame)), "bytes")
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decode(frame[header:]); err != nil {
				b.Fatal(err)
			}
		}
	})
}
