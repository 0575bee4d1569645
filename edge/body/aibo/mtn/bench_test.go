package mtn

import (
	"hash/adler32"
	"math/rand/v2"
	"testing"
)

// motions are files of the benchmarks: the source's example, a usual one and a long one.
func motions(b *testing.B) map[string][]byte {
	p, _ := PlatformFor(7)
	rnd := rand.New(rand.NewPCG(1, 35))
	return map[string][]byte{"example": example(b), "91 keyframes": must(b, made(rnd, p, 2, 91)), "5000 keyframes": must(b, made(rnd, p, 2, 5000))}
}

// BenchmarkCodec compares reading and writing a file with copying its bytes to new memory and summing them with Adler-32, as issue 35 asks: at least half
// as fast.
func BenchmarkCodec(b *testing.B) {
	for name, file := range motions(b) {
		f, _, err := Parse(file, Lenient)
		if err != nil {
			b.Fatal(err)
		}
		buf := make([]byte, 0, len(file))
		b.Run(name+"/copy", func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			for b.Loop() {
				buf = append(buf[:0], file...)
				adler32.Checksum(buf)
			}
		})
		b.Run(name+"/decode", func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = Parse(file, Lenient)
			}
		})
		b.Run(name+"/decode to the same memory", func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = f.Parse(file, Lenient)
			}
		})
		b.Run(name+"/encode", func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = Append(buf[:0], f)
			}
		})
	}
}
