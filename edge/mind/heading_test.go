package mind

import (
	"math"
	"testing"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/anim/repertoire"
	"kennel/edge/core"
)

// TestHeading: a clip keeps the heading at the time of its keyframe, and turns back to it, with its offset and half turns, in its time; nearer than the tolerance it
// does not turn (part of VEC-AFF-18, part of VEC-AFF-19). Kennel's own anim_look_behind_01 does so, too.
func TestHeading(t *testing.T) {
	l, err := repertoire.Library()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		clip  string  // its keyframe of the return; "": the one of anim_look_behind_01
		away  float64 // rad, how far the robot turned to its left meanwhile
		right float64 // rad, the order; 0: none
		takes time.Duration
	}{
		"look behind":      {"", -1.5, -1.5, 550 * time.Millisecond},
		"without a time":   {"return", 1, 1, 500 * time.Millisecond},
		"with an offset":   {"return over=800 offset=90", 1, 1 - math.Pi/2, 800 * time.Millisecond},
		"half turns":       {"return over=900 half_turns=2 speed=90", 1, 1 - 2*math.Pi, 900 * time.Millisecond},
		"half turns right": {"return over=900 half_turns=2 speed=-90", 1, 1 + 2*math.Pi, 900 * time.Millisecond},
		"shortest":         {"return over=900 half_turns=2 speed=90 shortest=true", 1, 1, 900 * time.Millisecond},
		"the short way":    {"return over=900", 1.5 * math.Pi, -0.5 * math.Pi, 900 * time.Millisecond},
		"near enough":      {"return over=900", 0.03, 0, 0},
		"a tolerance":      {"return over=900 tolerance=60", 1, 0, 0},
	} {
		c := l.Clips["anim_look_behind_01"]
		if tc.clip != "" {
			clips, err := clip.ParseText([]byte("clip anim_test\n100 record\n1000 " + tc.clip))
			if err != nil {
				t.Fatal(err)
			}
			c = &clips[0]
		}
		m, err := New(Config{Library: l})
		if err != nil {
			t.Fatal(err)
		}
		h := &hand{body: &body{}, orders: make(chan order, queued)}
		m.turn = &turn{hand: h, ended: make(chan ending, 1)}
		if err := m.player.Start(0, c, clip.Options{}); err != nil {
			t.Fatal(err)
		}
		const before = 0.4 // rad, as robotd reports it
		m.theta = 0.1
		for now := time.Duration(0); now < c.Span(); now += clip.Step {
			if at := time.Duration(c.Tracks.Record[0].Trigger) * time.Millisecond; now >= at-clip.Step {
				m.theta = before
			}
			if at := time.Duration(c.Tracks.Return[0].Trigger) * time.Millisecond; now >= at-clip.Step {
				m.theta = before + tc.away
			}
			m.step(now)
		}
		var got []core.Order
		for len(h.orders) > 0 {
			if o := <-h.orders; o.part == clip.Wheels && o.Steps[0][0].Name == "robot.turn" {
				got = append(got, o.Order)
			}
		}
		if tc.takes == 0 {
			if len(got) != 0 {
				t.Errorf("%s: %v", name, got)
			}
			continue
		}
		if len(got) != 1 || math.Abs(got[0].Steps[0][0].Args[0].Number-tc.right) > 1e-6 || got[0].Steps[0][0].Time != tc.takes {
			t.Errorf("%s: %v, want one turn by %.4f in %v", name, got, tc.right, tc.takes)
		}
	}
}
