package jointlink

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
)

var goals = Goals{N: 2, Joints: [MaxJoints]Goal{{true, -174532}, {}}}

var state = State{Seq: 0x01020304, Status: PawFL | PawBR | Charger, MilliVolts: 7654, Pitch: -12, Roll: 345, N: 2,
	Joints: [MaxJoints]Joint{{1047197, -250}, {-1, 1000}}}

// TestGolden: frames byte by byte. They are ours, written down from the layout in doc.go; the CRC of "123456789" is the catalogue's check value.
func TestGolden(t *testing.T) {
	if crc := checksum([]byte("123456789")); crc != 0x29B1 {
		t.Errorf("CRC %#04x, want 0x29b1", crc)
	}
	for name, tc := range map[string]struct {
		frame []byte
		want  string // without the CRC
	}{
		"ask":      {AppendAsk(nil), "a55a0100"},
		"identity": {AppendIdentity(nil, Identity{1, 210, 0x0203, 20}), "a55a8106" + "01" + "d200" + "0302" + "14"},
		"goals":    {AppendGoals(nil, &goals), "a55a020b" + "02" + "01" + "3c56fdff" + "00" + "00000000"},
		"state": {AppendState(nil, &state), "a55a8218" + "04030201" + "19" + "e61d" + "f4ff" + "5901" + "02" +
			"9dfa0f00" + "06ff" + "ffffffff" + "e803"},
	} {
		if got := hex.EncodeToString(tc.frame[:len(tc.frame)-2]); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		for n := range tc.frame {
			if _, _, took, err := ParseFrame(tc.frame[:n]); err != ErrShort || took != 0 {
				t.Errorf("%s: %d of its bytes: %d, %v", name, n, took, err)
			}
		}
		for i := range tc.frame {
			bad := bytes.Clone(tc.frame)
			bad[i] ^= 0x10
			if _, _, n, err := ParseFrame(bad); err == nil || n > 1 {
				t.Errorf("%s with byte %d changed: %d, %v", name, i, n, err)
			}
		}
	}
}

// TestRefused: payloads that are not as their type demands, with the offset of the fault, and values stay as they were.
func TestRefused(t *testing.T) {
	_, goalBytes, _, _ := ParseFrame(AppendGoals(nil, &goals))
	_, stateBytes, _, _ := ParseFrame(AppendState(nil, &state))
	change := func(p []byte, at int, v byte) []byte {
		p = bytes.Clone(p)
		p[at] = v
		return p
	}
	var g Goals
	var s State
	for name, tc := range map[string]struct {
		err                     error
		offset, expected, found int
	}{
		"no goals":             {ParseGoals(nil, &g), 0, 1, 0},
		"a goal is missing":    {ParseGoals(goalBytes[:6], &g), 6, 11, 6},
		"too many goals":       {ParseGoals(change(goalBytes, 0, 25), &g), 0, 24, 25},
		"neither held nor not": {ParseGoals(change(goalBytes, 6, 2), &g), 6, 1, 2},
		"half a state":         {ParseState(stateBytes[:5], &s), 5, 12, 5},
		"a joint is missing":   {ParseState(stateBytes[:18], &s), 18, 24, 18},
		"too many joints":      {ParseState(change(stateBytes, 11, 25), &s), 11, 24, 25},
		"identity":             {func() error { _, err := ParseIdentity(make([]byte, 7)); return err }(), 7, 6, 7},
		"identity's joints":    {func() error { _, err := ParseIdentity([]byte{1, 7, 0, 0, 0, 99}); return err }(), 5, 24, 99},
	} {
		var e *PayloadError
		if !errors.As(tc.err, &e) || e.Offset != tc.offset || e.Expected != tc.expected || e.Found != tc.found {
			t.Errorf("%s: %+v, want offset %d, expected %d, found %d", name, e, tc.offset, tc.expected, tc.found)
		}
	}
	if g != (Goals{}) || s != (State{}) {
		t.Error("a refused payload left something")
	}
	if _, err := AppendFrame(nil, StateType, make([]byte, MaxPayload+1)); err != ErrLength {
		t.Errorf("a payload that is too long: %v", err)
	}
}

// TestFrugal: neither side allocates in its loop.
func TestFrugal(t *testing.T) {
	buf := make([]byte, 0, 2*MaxFrame)
	if n := testing.AllocsPerRun(100, func() {
		buf = AppendState(AppendGoals(buf[:0], &goals), &state)
		var g Goals
		var s State
		_, p, n, _ := ParseFrame(buf)
		if ParseGoals(p, &g) != nil || g != goals {
			t.Error("goals are lost")
		}
		if _, p, _, _ = ParseFrame(buf[n:]); ParseState(p, &s) != nil || s != state {
			t.Error("the state is lost")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzParse: no input breaks the parsers, and what they take is written back as the same bytes.
func FuzzParse(f *testing.F) {
	for _, b := range [][]byte{nil, AppendAsk(nil), AppendIdentity(nil, Identity{1, 7, 9, 20}), AppendGoals(nil, &goals), AppendState([]byte{header0}, &state)} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			kind, p, n, err := ParseFrame(b)
			if err == ErrShort {
				if len(b) >= MaxFrame {
					t.Fatalf("%d bytes are no frame", len(b))
				}
				return
			}
			if n < 1 || n > len(b) {
				t.Fatalf("%d of %d bytes, %v", n, len(b), err)
			}
			if err == nil {
				again(t, kind, p, b[:n])
			}
			b = b[n:]
		}
	})
}

func again(t *testing.T, kind Type, p, frame []byte) {
	t.Helper()
	var out []byte
	var err error
	switch kind {
	case GoalsType:
		var g Goals
		if err = ParseGoals(p, &g); err == nil {
			out = AppendGoals(nil, &g)
		}
	case StateType:
		var s State
		if err = ParseState(p, &s); err == nil {
			out = AppendState(nil, &s)
		}
	case IdentityType:
		var id Identity
		if id, err = ParseIdentity(p); err == nil {
			out = AppendIdentity(nil, id)
		}
	default:
		out, err = AppendFrame(nil, kind, p)
	}
	if err == nil && !bytes.Equal(out, frame) {
		t.Fatalf("%x is written as %x", frame, out)
	}
}
