package hdlc

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
)

// TestGolden: frames byte by byte, written down from the layout. 0x906E is the catalogue's check value of this CRC (PLEO-PKT-01).
func TestGolden(t *testing.T) {
	if fcs := FCS([]byte("123456789")); fcs != 0x906E {
		t.Errorf("FCS %#04x, want 0x906e", fcs)
	}
	for packet, want := range map[string]string{
		"?":         "7e3f" + fcsOf("?") + "7e",
		"th1":       "7e746831" + fcsOf("th1") + "7e",
		"s\x7e\x7d": "7e737d5e7d5d" + fcsOf("s\x7e\x7d") + "7e",
	} {
		frame, err := Append(nil, []byte(packet))
		if err != nil || hex.EncodeToString(frame) != want {
			t.Errorf("%q: %x, want %s, %v", packet, frame, want, err)
		}
	}
	for _, n := range []int{0, MaxPacket + 1} {
		if out, err := Append([]byte{1}, make([]byte, n)); err != ErrLength || len(out) != 1 {
			t.Errorf("%d bytes: %d, %v", n, len(out), err)
		}
	}
}

// fcsOf returns the check sequence as it is sent, of packets in whose sequence nothing is escaped.
func fcsOf(s string) string {
	v := FCS([]byte(s))
	return hex.EncodeToString([]byte{byte(v), byte(v >> 8)})
}

// TestDamage: a frame with any bit changed is no packet, or was only joined to its neighbour; the packet after it arrives whole, however the bytes are cut
// (PLEO-PKT-01: a wrong check sequence is dropped and counted).
func TestDamage(t *testing.T) {
	first, _ := Append(nil, []byte("ab\x7e\x7dcd"))
	whole, _ := Append(slices.Clone(first), []byte("th1"))
	for at := range first {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[at] ^= 1 << bit
			var r Reader
			var got []string
			for _, c := range b { // one byte at a time
				r.Take([]byte{c}, func(p []byte) { got = append(got, string(p)) })
			}
			last := at == len(first)-1 || at == 0 // a flag
			if !last && !slices.Equal(got, []string{"th1"}) || slices.Contains(got, "") || r.Packets != uint64(len(got)) {
				t.Errorf("byte %d, bit %d: %q, %+v", at, bit, got, r.Counts)
			}
			if !last && r.Corrupt == 0 {
				t.Errorf("byte %d, bit %d: not counted", at, bit)
			}
		}
	}
	var r Reader
	long := strings.Repeat("x", MaxPacket+3)
	n := 0
	r.Take([]byte("\x7e"+long+"\x7e"), func([]byte) { n++ })
	r.Take(whole, func([]byte) { n++ })
	if n != 2 || r.Long != 1 {
		t.Errorf("%d packets behind a long one, %+v", n, r.Counts)
	}
}

// FuzzReader: no stream breaks the reader, and what it takes is written as the same packet again.
func FuzzReader(f *testing.F) {
	frame, _ := Append(nil, []byte("v7361"))
	f.Add(frame)
	f.Add([]byte("\x7e\x7d\x7e\x7d\x5e\x7e"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, again Reader
		r.Take(b, func(p []byte) {
			frame, err := Append(nil, p)
			if err != nil {
				t.Fatalf("%d bytes: %v", len(p), err)
			}
			taken := ""
			again.Take(frame, func(q []byte) { taken = string(q) })
			if taken != string(p) {
				t.Fatalf("%x becomes %x", p, taken)
			}
		})
	})
}
