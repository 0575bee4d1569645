package corelink

import (
	"encoding/hex"
	"errors"
	"math"
	"testing"

	"kennel/infra/api/live"
)

// TestMeasured: the bytes of values, and that no others are taken.
func TestMeasured(t *testing.T) {
	number, text := -0.5, "hé"
	b, err := Measured{{Slot: 300, AgeMS: -1, Number: &number}, {Slot: 7, AgeMS: 64, Text: &text, Infinite: -1}}.MarshalCBOR()
	if got, want := hex.EncodeToString(b), "55"+"ac0201"+"01"+"000000000000e0bf"+"078001"+"06"+"0368c3a9"+"01"; err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	for what, bytes := range map[string]string{
		"no flags": "420701", "a flag without a meaning": "43070008", "a slot that is longer than it must be": "4487000000", "half a number": "47070001000000e0",
		"not a number": "4b070001010000000000f87f", "a text that ends early": "4507000203c3", "no UTF-8": "4507000201ff", "infinite, yet not": "4407000400", "a list": "83070001",
	} {
		raw, err := hex.DecodeString(bytes)
		if err != nil {
			t.Fatal(err)
		}
		var m Measured
		if err := m.UnmarshalCBOR(raw); err == nil {
			t.Errorf("%s: %+v, want an error", what, m)
		}
	}
	for _, bad := range []live.Value{{Slot: -1}, {Number: new(math.Inf(1))}, {Text: new("\xff")}} {
		if _, err := AppendFrame(nil, &Packed{Values: Measured{bad}}); !errors.Is(err, ErrMalformed) {
			t.Errorf("%+v: %v, want %v", bad, err, ErrMalformed)
		}
	}
}

// TestSince: only the steps between two histograms count.
func TestSince(t *testing.T) {
	before := &Lateness{UpToUS: []uint32{10, 500}, Counts: []uint32{90, 10}}
	after := &Lateness{UpToUS: []uint32{10, 20, 500}, Counts: []uint32{140, 49, 11}}
	for q, want := range map[float64]uint32{0: 10, 0.5: 10, 0.51: 20, 0.99: 20, 0.995: 500, 1: 500} {
		if got := after.Since(before, q); got != want {
			t.Errorf("%v of the steps: %d us, want %d", q, got, want)
		}
	}
	if got := after.Since(after, 0.99); got != 0 {
		t.Errorf("without a step between: %d", got)
	}
	if got := after.Since(&Lateness{}, 1); got != 500 {
		t.Errorf("of all: %d, want 500", got)
	}
}
