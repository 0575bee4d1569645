package emr

import (
	"bytes"
	"encoding/hex"
	"testing"
	"time"
)

// TestLayout is VEC-STOR-02: each field at its offset.
func TestLayout(t *testing.T) {
	b := make([]byte, Size)
	for i := range b {
		b[i] = byte(i / 4)
	}
	r, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	word := func(off int) uint32 { return uint32(byte(off/4)) * 0x01010101 }
	for _, tc := range []struct {
		name string
		got  uint32
		off  int
	}{
		{"ESN", r.ESN, 0}, {"HW_VER", r.HardwareRev, 4}, {"MODEL", r.Model, 8}, {"LOT_CODE", r.LotCode, 12},
		{"PLAYPEN_READY", r.PlaypenReady, 16}, {"PLAYPEN_PASSED", r.PlaypenPassed, 20}, {"PACKED_OUT", r.PackedOut, 24},
		{"PACKED_OUT_DATE", r.PackedOutDate, 28}, {"reserved", r.Reserved[0], 32}, {"playpen", r.Playpen[0], 224}, {"fixture", r.Fixture[0], 256},
		{"last", r.Fixture[191], 1020},
	} {
		if tc.got != word(tc.off) {
			t.Errorf("%s = %08x, want %08x (offset %d)", tc.name, tc.got, word(tc.off), tc.off)
		}
	}
	if got := r.Append(nil); !bytes.Equal(got, b) {
		t.Error("record does not round-trip")
	}
}

func TestMeaning(t *testing.T) {
	golden, _ := hex.DecodeString("0001e200")
	b := append(golden, make([]byte, Size)...)
	r, err := Parse(b)
	if err != nil || r.Serial() != "00e20100" || !r.Factory() || !r.Released().IsZero() {
		t.Errorf("serial %s, factory %v, %v", r.Serial(), r.Factory(), err)
	}
	r.PackedOutDate = 1536000000
	if got := r.Released(); !got.Equal(time.Date(2018, 9, 3, 18, 40, 0, 0, time.UTC)) {
		t.Errorf("Released = %v", got)
	}
	if lot, ok := ParseLot(21836201); !ok || lot != (Lot{2, 2018, 36, 201}) {
		t.Errorf("lot = %+v, %v", lot, ok)
	}
	for n := range Size {
		if _, err := Parse(make([]byte, n)); err == nil {
			t.Fatalf("%d bytes accepted", n)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(make([]byte, Size))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err == nil && !bytes.Equal(r.Append(nil), b[:Size]) {
			t.Fatal("record does not round-trip")
		}
	})
}
