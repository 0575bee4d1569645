package mindlink

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"kennel/edge/face/screen"
	"kennel/edge/sound"
)

// FuzzFrame: what a frame's bytes say is written as the same bytes again, the high byte of each pixel first.
func FuzzFrame(f *testing.F) {
	f.Add(appendFrame(nil, &Frame{Seq: 1 << 40, At: 7, Picture: screen.Picture(screen.Fault{Code: "898"}, 0)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < frameHead+ImageSize {
			b = append(b, make([]byte, frameHead+ImageSize-len(b))...)
		}
		b = b[:frameHead+ImageSize]
		x := parseFrame(b)
		if x.Picture.Pix[1] != uint16(b[frameHead+2])<<8|uint16(b[frameHead+3]) {
			t.Errorf("pixel 1 is %04x", x.Picture.Pix[1])
		}
		if got := appendFrame(nil, &x); !bytes.Equal(got, b) {
			t.Error("other bytes")
		}
	})
}

// FuzzChunk: each byte of a stream is a sample's or a length's, and only a chunk of length 0 is the end.
func FuzzChunk(f *testing.F) {
	f.Add([]byte{4, 0, 1, 0, 255, 255, 0, 0})
	f.Add([]byte{3, 0, 1, 2, 3})
	f.Add([]byte{255, 255, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for at := 0; ; {
			pcm, err := readChunk(r)
			if errors.Is(err, io.EOF) {
				if at+2 > len(b) || b[at] != 0 || b[at+1] != 0 {
					t.Errorf("ends at byte %d", at)
				}
				return
			}
			if err != nil {
				return
			}
			for i, v := range pcm {
				if uint16(v) != binary.LittleEndian.Uint16(b[at+2+2*i:]) {
					t.Fatalf("sample %d after byte %d is %d", i, at, v)
				}
			}
			at += 2 + 2*len(pcm)
		}
	})
}

// FuzzPiece: what a piece of sound says is written as the same bytes again; one whose numbers are too large, or whose samples are missing, is refused.
func FuzzPiece(f *testing.F) {
	said := "Hello."
	f.Add(appendPiece(nil, &Piece{Piece: sound.Piece{Place: 1 << 40, At: 7, Missed: 160, Samples: []int16{0, -1, 32767}}, Said: &said}))
	f.Add(appendPiece(nil, &Piece{}))
	f.Add(append(make([]byte, 20), 0xff, 0xff, 0, 0, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, _, err := readPiece(bytes.NewReader(b), nil)
		if err != nil {
			if len(p.Samples) > 0 || p.Said != nil {
				t.Errorf("%v, and %d samples", err, len(p.Samples))
			}
			return
		}
		if got := appendPiece(nil, &p); !bytes.Equal(got, b[:len(got)]) {
			t.Error("other bytes")
		}
	})
}
