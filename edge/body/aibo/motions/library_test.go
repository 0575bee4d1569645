package motions

import (
	"errors"
	"slices"
	"testing"
	"time"

	"kennel/edge/anim"
	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/mtn"
)

// TestLibrary: every model has every motion of ours, and none of them has anything to find: no joint beyond its range or speed, and the postures that the
// name says. Played from its start posture it needs no way there and nothing is cut or stretched.
func TestLibrary(t *testing.T) {
	if got := Library(); !slices.Equal(got, []string{"bow", "give_paw", "look_around", "sit", "stand", "stretch", "wag"}) {
		t.Errorf("%q", got)
	}
	for _, m := range aibo.Models {
		for _, name := range Library() {
			f, err := Load(m, name)
			if err != nil {
				t.Errorf("%v, %s: %v", m, name, err)
				continue
			}
			n := mtn.ParseName(f.Name)
			if found := Check(f); len(found) != 0 || n.Description != name || f.Format != platform(m).Format || f.Duration() < 400*time.Millisecond || f.Duration() > 10*time.Second {
				t.Errorf("%v, %s: %q, %v, %v", m, name, f.Name, f.Duration(), found)
			}
			motion, err := Motion(f, m, false)
			if err != nil {
				t.Fatal(err)
			}
			p, err := anim.New(motion, Body(m), anim.Options{Limits: true})
			if err != nil {
				t.Fatal(err)
			}
			at, _ := Posture(m, n.Start)
			if err := p.Start(at); err != nil {
				t.Fatal(err)
			}
			if e := p.Step(at); !e.Has(anim.Began) || len(p.Report().Clamped)+len(p.Report().Stretched)+len(p.Report().Ignored) != 0 {
				t.Errorf("%v, %s: events %v, %+v", m, name, e, p.Report())
			}
		}
	}
	for _, name := range []string{"fly", "", "../ers-210/sit", "SIT"} {
		if _, err := Load(aibo.ERS7, name); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
