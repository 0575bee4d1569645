package sip

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"
)

// feed gives p all of b in pieces of at most n bytes and returns copies of the payloads it found.
func feed(p *Parser, b []byte, n int) (out [][]byte) {
	for len(b) > 0 {
		k := copy(p.Space(), b[:min(n, len(b))])
		p.Fill(k)
		b = b[k:]
		for payload, ok := p.Next(); ok; payload, ok = p.Next() {
			out = append(out, bytes.Clone(payload))
		}
	}
	return out
}

// conserve checks that every byte fed is in a good packet, skipped or waiting.
func conserve(t testing.TB, p *Parser, found [][]byte, fed int) {
	t.Helper()
	good := 0
	for _, payload := range found {
		good += Overhead + len(payload)
	}
	if c := p.Counters(); int(c.Good) != len(found) || good+int(c.Skipped)+len(p.Bytes()) != fed {
		t.Fatalf("%d packets of %d bytes, %d wait, %+v; want %d bytes in all", len(found), good, len(p.Bytes()), c, fed)
	}
}

func TestParserFindsPacketsInAnyPieces(t *testing.T) {
	all := frames(t)
	stream := bytes.Join(all, nil)
	for _, n := range []int{1, 2, 3, 7, 64, 203, len(stream)} {
		p := new(Parser)
		got := feed(p, stream, n)
		if len(got) != len(all) || p.Counters() != (Counters{Good: uint64(len(all))}) {
			t.Errorf("pieces of %d: %d packets, %+v; want %d and nothing skipped", n, len(got), p.Counters(), len(all))
		}
		conserve(t, p, got, len(stream))
	}
}

// TestParserResynchronises puts garbage before good packets (AMIGO-PKT-09).
func TestParserResynchronises(t *testing.T) {
	pulse := []byte{0xFA, 0xFB, 3, 0, 0, 0}
	longest, err := AppendFrame(nil, make([]byte, MaxPayload))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		garbage []byte
		want    Counters
	}{
		{"noise", []byte("noise"), Counters{Skipped: 5}},
		{"doubled first header byte", []byte{0xFA}, Counters{Skipped: 1}},
		{"second header byte", []byte{0xFB}, Counters{Skipped: 1}},
		{"header of nothing", []byte{0xFA, 0xFB, 2}, Counters{BadLength: 1, Skipped: 3}},
		{"header of too much", []byte{0xFA, 0xFB, 201}, Counters{BadLength: 1, Skipped: 3}},
		{"bad checksum", []byte{0xFA, 0xFB, 3, 1, 1, 0}, Counters{BadChecksum: 1, Skipped: 6}},
		{"packet in a packet", []byte{0xFA, 0xFB, 7}, Counters{BadChecksum: 1, Skipped: 3}},
		{"cut packet", longest[:150], Counters{BadChecksum: 1, Skipped: 150}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stream := append(bytes.Clone(tc.garbage), bytes.Repeat(pulse, 40)...)
			for _, n := range []int{1, len(stream)} {
				p := new(Parser)
				got := feed(p, stream, n)
				tc.want.Good = 40
				if c := p.Counters(); c != tc.want {
					t.Errorf("pieces of %d: %+v; want %+v", n, c, tc.want)
				}
				conserve(t, p, got, len(stream))
			}
		})
	}
}

// TestParserSurvivesEveryDamage flips every bit of a packet and cuts it at every byte: the packets around it are found.
func TestParserSurvivesEveryDamage(t *testing.T) {
	good := unhex(t, goldenMessages[2].hex)
	pad := bytes.Repeat([]byte{0}, MaxFrame) // what a damaged count may claim
	try := func(what string, at int, bad []byte) {
		p := new(Parser)
		stream := bytes.Join([][]byte{good, bad, good, pad}, nil)
		got := feed(p, stream, len(stream))
		if len(got) < 2 || !bytes.Equal(got[0], good[3:len(good)-2]) || !bytes.Equal(got[len(got)-1], got[0]) {
			t.Errorf("%s at %d: %d packets, %+v; want the good ones", what, at, len(got), p.Counters())
		}
		conserve(t, p, got, len(stream))
	}
	for at := range good {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[at] ^= 1 << bit
			try("bit", 8*at+bit, bad)
		}
		try("cut", at, good[:at])
	}
}

// TestParserGivesUpAnIncompletePacket: it holds back what is behind it until it expires. A packet that comes slowly is taken
// (AMIGO-PKT-09).
func TestParserGivesUpAnIncompletePacket(t *testing.T) {
	pulse := []byte{0xFA, 0xFB, 3, 0, 0, 0}
	for _, tc := range []struct {
		name string
		cut  []byte
		held time.Duration
	}{
		{"count 20", []byte{0xFA, 0xFB, 20}, Patience + 23*byteTime},
		{"count 200", []byte{0xFA, 0xFB, 200, 0x2A}, Patience + 203*byteTime},
	} {
		t.Run(tc.name, func(t *testing.T) {
			const began = time.Second
			p := new(Parser)
			got := feed(p, append(tc.cut, pulse...), 100)
			for _, at := range []time.Duration{0, tc.held / 2, tc.held} {
				p.Expire(began + at)
				if _, ok := p.Next(); ok || len(got) != 0 {
					t.Fatalf("after %v: a packet", at)
				}
			}
			p.Expire(began + tc.held + 1)
			payload, ok := p.Next()
			if want := (Counters{Good: 1, Expired: 1, Skipped: uint64(len(tc.cut))}); !ok || len(payload) != 1 || p.Counters() != want {
				t.Errorf("expired: %v, %+v; want %+v", ok, p.Counters(), want)
			}
		})
	}

	slow := unhex(t, goldenMessages[3].hex)
	p, found := new(Parser), 0
	for i := range 3 * len(slow) {
		p.Expire(time.Duration(i) * byteTime)
		found += len(feed(p, slow[i%len(slow):][:1], 1))
	}
	if found != 3 || p.Counters().Skipped != 0 {
		t.Errorf("byte by byte at 9600 bit/s: %d packets, %+v; want 3", found, p.Counters())
	}

	feed(p, slow[:9], 9)
	p.Reset()
	if got := feed(p, slow, 100); len(got) != 1 || p.Counters().Skipped != 9 {
		t.Errorf("after Reset: %d packets, %+v; want 1 and 9 skipped", len(got), p.Counters())
	}
}

// FuzzParserKeepsGoodPackets puts garbage between good packets. Each good packet must come out, in order, unless garbage claims its
// bytes as a good packet of its own.
func FuzzParserKeepsGoodPackets(f *testing.F) {
	f.Add(uint64(1), []byte("noise"), uint8(7))
	f.Add(uint64(2), []byte{0xFA, 0xFB, 0xC8, 0xFA, 0xFA}, uint8(1))
	all := frames(f)
	f.Fuzz(func(t *testing.T, seed uint64, garbage []byte, piece uint8) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var stream []byte
		var want [][]byte
		for range 5 {
			frame := all[rng.IntN(len(all))]
			from := rng.IntN(len(garbage) + 1)
			stream = append(append(stream, garbage[from:from+rng.IntN(len(garbage)-from+1)]...), frame...)
			want = append(want, frame[3:len(frame)-2])
		}
		stream = append(stream, make([]byte, MaxFrame)...)
		p := new(Parser)
		got := feed(p, stream, 1+int(piece))
		conserve(t, p, got, len(stream))
		if bytes.Contains(garbage, []byte{header0}) {
			return // it may hold the start of a good packet
		}
		if len(got) != len(want) {
			t.Fatalf("%d packets; want %d", len(got), len(want))
		}
		for i := range got {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("packet %d = % X; want % X", i, got[i], want[i])
			}
		}
	})
}
