package vectorsim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/cube"
	"kennel/edge/sim/plane"
	"kennel/infra/api/poke"
)

// TestPoke: the frames tell of a finger on the back and of one on the button as long as it is there (VEC-HW-16). A finger leaves also while the
// power is off. The world takes the other verbs.
func TestPoke(t *testing.T) {
	b := newBench(t, Config{Seed: 1, World: &plane.Map{}})
	do := func(p poke.Poke) {
		t.Helper()
		p, err := p.Complete()
		if err == nil {
			err = b.Poke(p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	felt := func() (touched, pressed bool) {
		m := b.drive(1, spine.HeadData{})
		return m.Touch > touchCounts+touchFinger/2, m.Button == 1
	}
	b.drive(1, spine.HeadData{})
	for _, tc := range []struct {
		verb           string
		touch, press   bool
		periods, later int
	}{{poke.Touch, true, false, 195, 2}, {poke.Press, false, true, 195, 2}} {
		do(poke.Poke{Verb: tc.verb, Args: map[string]float64{poke.For: 1}})
		for i := range tc.periods {
			if touch, press := felt(); touch != tc.touch || press != tc.press {
				t.Fatalf("%s: period %d: touched %v, pressed %v", tc.verb, i, touch, press)
			}
		}
		b.drive(tc.later, spine.HeadData{})
		if touch, press := felt(); touch || press {
			t.Errorf("%s: a second later: touched %v, pressed %v", tc.verb, touch, press)
		}
	}
	do(poke.Poke{Verb: poke.Press, Args: map[string]float64{poke.For: 1}})
	b.powerOff()
	for range time.Second / vectordriver.Period {
		b.dark(nil)
	}
	b.powerOn()
	if _, press := felt(); press {
		t.Error("a finger stays while the power is off")
	}
	do(poke.Poke{Verb: poke.Lift})
	if b.around().Posture != plane.InHand {
		t.Errorf("lifted: %+v", b.around())
	}
	if got, want := b.Verbs(), slices.Concat([]string{poke.Touch, poke.Press}, plane.Verbs); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPokeNowhere: a body in no world is touched and pressed, and cannot be moved.
func TestPokeNowhere(t *testing.T) {
	b := newBench(t, Config{Seed: 1})
	if got, want := b.Verbs(), []string{poke.Touch, poke.Press}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	p, err := poke.Poke{Verb: poke.Lift}.Complete()
	if err == nil {
		err = b.Poke(p)
	}
	if err == nil || !strings.Contains(err.Error(), "has no world") {
		t.Errorf("lifted nowhere: %v", err)
	}
}

// TestPokeCube: a hand taps the cube of the body's world, and takes its cell out; a world without one has no such verb.
func TestPokeCube(t *testing.T) {
	table, err := plane.Builtin("table")
	if err != nil {
		t.Fatal(err)
	}
	b := New(Config{Seed: 1, World: table})
	if !slices.Contains(b.Verbs(), poke.Cube) || len(b.Cubes()) != 1 || cube.CheckAddress(b.Cubes()[0].Address()) != nil {
		t.Fatalf("verbs %q, cubes %v", b.Verbs(), b.Cubes())
	}
	if other := New(Config{Seed: 2, World: table}); other.Cubes()[0].Address() == b.Cubes()[0].Address() {
		t.Error("the cubes of two robots have one factory id")
	}
	for _, side := range []string{poke.Tap, poke.Off, poke.On, poke.Take, poke.Place} {
		if err := b.Poke(poke.Poke{Verb: poke.Cube, Side: side}); err != nil {
			t.Errorf("%s: %v", side, err)
		}
	}
	none := New(Config{Seed: 1, World: &plane.Map{}})
	if slices.Contains(none.Verbs(), poke.Cube) || none.Poke(poke.Poke{Verb: poke.Cube, Side: poke.Off}) == nil {
		t.Error("a world without a cube has one")
	}
}
