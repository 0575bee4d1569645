package corelink

import (
	"testing"

	"kennel/infra/api/live"
)

// BenchmarkUpdate is one update of 20 slots on its way from robotd to a program, encoded and decoded: as Packed, and as Update beside it.
func BenchmarkUpdate(b *testing.B) {
	var values []live.Value
	for i := range 20 {
		v := 0.1234567891 * float64(i+1)
		values = append(values, live.Value{Slot: 30 + i, AgeMS: 5, Number: &v})
	}
	for name, m := range map[string]Message{"packed": &Packed{Request: 1, Seq: 7, AtUS: 123456789, Values: values}, "update": &Update{Request: 1, Seq: 7, AtUS: 123456789, Values: values}} {
		var frame []byte
		b.Run(name+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if frame, err = AppendFrame(frame[:0], m); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(frame)), "bytes")
		})
		b.Run(name+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decode(frame[header:]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
