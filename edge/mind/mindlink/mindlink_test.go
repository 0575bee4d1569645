package mindlink

import (
	"bytes"
	"testing"

	"kennel/edge/face"
)

// FuzzFrame: what a frame's bytes say is written as the same bytes again, the high byte of each pixel first.
func FuzzFrame(f *testing.F) {
	f.Add(appendFrame(nil, &Frame{Seq: 1 << 40, At: 7, Picture: face.Notice("898", "fault")}))
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
