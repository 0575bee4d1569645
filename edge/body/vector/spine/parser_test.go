package spine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// feed gives p all of b in pieces of at most n bytes and returns copies of the frames it found.
func feed(p *Parser, b []byte, n int) []Frame {
	var out []Frame
	for len(b) > 0 {
		k := copy(p.Space(), b[:min(n, len(b))])
		p.Fill(k)
		b = b[k:]
		for f, ok := p.Next(); ok; f, ok = p.Next() {
			out = append(out, Frame{f.Type, bytes.Clone(f.Payload)})
		}
	}
	return out
}

// conserve checks that every byte fed is in a good frame, skipped or waiting.
func conserve(t testing.TB, p *Parser, frames []Frame, fed int) {
	t.Helper()
	good := 0
	for _, f := range frames {
		good += Overhead + len(f.Payload)
	}
	c := p.Counters()
	if int(c.Good) != len(frames) || good+int(c.Skipped)+len(p.Bytes()) != fed {
		t.Fatalf("%d frames of %d bytes, %d skipped, %d wait, counters %+v: want %d bytes in all", len(frames), good, c.Skipped, len(p.Bytes()), c, fed)
	}
}

func TestParserFindsFramesInAnyPieces(t *testing.T) {
	var stream []byte
	var want int
	for _, g := range golden {
		if g.dir == ToHead {
			stream = append(stream, unhex(t, g.hex)...)
			want++
		}
	}
	for _, n := range []int{1, 2, 3, 7, 64, 780, len(stream)} {
		p := NewParser(ToHead)
		got := feed(p, stream, n)
		if len(got) != want || p.Counters() != (Counters{Good: uint64(want)}) {
			t.Errorf("pieces of %d: %d frames, %+v; want %d and nothing skipped", n, len(got), p.Counters(), want)
		}
		conserve(t, p, got, len(stream))
	}
}

// A frame cut at any byte costs itself and nothing else (VEC-BODY-07).
func TestParserSurvivesACutAtEveryByte(t *testing.T) {
	frame := patternData().AppendFrame(nil)
	ack := ACK.AppendFrame(nil)
	for cut := range len(frame) {
		stream := append(append(bytes.Clone(frame[:cut]), ack...), frame...)
		// The cut frame may claim all that follows: one more frame's length lets it be refuted.
		stream = append(stream, make([]byte, len(frame))...)
		p := NewParser(ToHead)
		got := feed(p, stream, 100)
		if len(got) != 2 || got[0].Type != TypeAck || got[1].Type != TypeData {
			t.Fatalf("cut at %d: %d frames %+v, want the ACK and the data frame behind it", cut, len(got), p.Counters())
		}
		conserve(t, p, got, len(stream))
	}
}

func TestParserSurvivesEveryDamagedByte(t *testing.T) {
	ack := ACK.AppendFrame(nil)
	for at := range ack {
		for bit := range 8 {
			bad := bytes.Clone(ack)
			bad[at] ^= 1 << bit
			stream := append(bad, ack...)
			stream = append(stream, make([]byte, MaxFrame)...)
			p := NewParser(ToHead)
			got := feed(p, stream, len(stream))
			if len(got) != 1 || !bytes.Equal(got[0].Payload, ack[HeaderSize:HeaderSize+AckSize]) {
				t.Fatalf("byte %d bit %d: %d frames %+v, want the one good frame", at, bit, len(got), p.Counters())
			}
			if p.Counters().Bad() == 0 && at >= SyncSize {
				t.Fatalf("byte %d bit %d: no error counted in %+v", at, bit, p.Counters())
			}
		}
	}
}

// A frame that was cut holds back what is behind it for Patience, and no longer, though nothing more comes; one that comes slowly is taken
// (VEC-BODY-07).
func TestParserGivesUpOnACutFrame(t *testing.T) {
	block := new(Firmware).AppendFrame(nil)
	ask := AppendCommand(nil, TypeVersion)
	for _, tc := range []struct {
		cut  int
		held bool
	}{{1, false}, {SyncSize, false}, {HeaderSize - 1, false}, {HeaderSize, true}, {HeaderSize + 100, true}, {len(block) - 1, false}} {
		p := NewParser(ToBody)
		found := len(feed(p, append(bytes.Clone(block[:tc.cut]), ask...), len(block)))
		for _, at := range []time.Duration{0, Patience, Patience + 1} {
			p.Expire(at)
			for f, ok := p.Next(); ok; f, ok = p.Next() {
				if found++; f.Type != TypeVersion {
					t.Errorf("cut at %d: %v", tc.cut, f.Type)
				}
			}
			if late := at > Patience; found > 0 != (late || !tc.held) {
				t.Errorf("cut at %d, after %v: %d frames, %+v", tc.cut, at, found, p.Counters())
			}
		}
	}

	p := NewParser(ToBody)
	now, whole := time.Duration(0), 0
	for range 3 { // one byte at a time, and one frame after the other without a pause
		for _, c := range ask {
			p.Space()[0] = c
			p.Fill(1)
			p.Expire(now)
			for _, ok := p.Next(); ok; _, ok = p.Next() {
				whole++
			}
			now += Patience / time.Duration(len(ask))
		}
	}
	if whole != 3 || p.Counters().Skipped != 0 {
		t.Errorf("byte by byte: %d frames, %+v; want 3", whole, p.Counters())
	}
}

func TestParserReset(t *testing.T) {
	p := NewParser(ToHead)
	ack := ACK.AppendFrame(nil)
	feed(p, ack[:9], 9)
	p.Reset()
	if got := feed(p, ack, 100); len(got) != 1 || p.Counters() != (Counters{Good: 1, Skipped: 9}) {
		t.Errorf("after Reset: %d frames, %+v; want 1 and 9 skipped", len(got), p.Counters())
	}
}

// FuzzParserKeepsGoodFrames puts garbage, damaged copies and cut copies between good frames. Every good frame must come out, in order.
func FuzzParserKeepsGoodFrames(f *testing.F) {
	f.Add(uint64(1), []byte("noise"), uint8(7))
	f.Add(uint64(2), unhex(f, "aa423248aa42324866640003aa42"), uint8(1))
	f.Add(uint64(3), unhex(f, "aa423248616b0400ffffffff000000"), uint8(255))
	f.Fuzz(func(t *testing.T, seed uint64, garbage []byte, piece uint8) {
		if len(garbage) > 4096 {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		var stream []byte
		var want []uint32
		data := patternData()
		for i := range uint32(12) {
			data.Seq = 1<<31 | i
			good := data.AppendFrame(nil)
			switch rng.IntN(4) {
			case 0: // the fuzzer's bytes
				lo := rng.IntN(len(garbage) + 1)
				stream = append(stream, garbage[lo:]...)
			case 1: // a damaged copy
				bad := bytes.Clone(good)
				bad[rng.IntN(len(bad))] ^= byte(1 + rng.IntN(255))
				stream = append(stream, bad...)
			case 2: // a cut copy
				stream = append(stream, good[:rng.IntN(len(good))]...)
			}
			stream = append(stream, good...)
			want = append(want, data.Seq)
		}
		stream = append(stream, make([]byte, MaxFrame)...) // ends whatever a damaged header claimed

		p := NewParser(ToHead)
		frames := feed(p, stream, 1+int(piece))
		conserve(t, p, frames, len(stream))
		for _, fr := range frames {
			var got BodyData
			if fr.Type != TypeData || got.ParsePayload(fr.Payload) != nil {
				continue // the garbage held a good frame of its own
			}
			if len(want) > 0 && got.Seq == want[0] {
				want = want[1:]
			}
		}
		if len(want) > 0 {
			t.Fatalf("seed %d: lost frame %d; counters %+v", seed, want[0]&^(1<<31), p.Counters())
		}
	})
}

func TestParserAllocatesNothing(t *testing.T) {
	p := NewParser(ToHead)
	stream := append([]byte("noise\xaa\x42"), patternData().AppendFrame(nil)...)
	if n := testing.AllocsPerRun(100, func() {
		p.Fill(copy(p.Space(), stream))
		if _, ok := p.Next(); !ok {
			t.Fatal("no frame")
		}
	}); n != 0 {
		t.Errorf("the parser allocates %v times, want 0", n)
	}
}

func ExampleParser() {
	p := NewParser(ToHead)
	p.Fill(copy(p.Space(), append([]byte("noise"), ACK.AppendFrame(nil)...)))
	for f, ok := p.Next(); ok; f, ok = p.Next() {
		var a Ack
		if err := a.ParsePayload(f.Payload); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(f.Type, a.OK(), p.Counters().Skipped)
	}
	// Output: ak (0x6B61) true 5
}
