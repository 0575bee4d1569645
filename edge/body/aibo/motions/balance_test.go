package motions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kennel/edge/anim"
	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/mtn"
	"kennel/edge/body/aibo/statics"
)

// written returns a motion of ERS-7 that begins in its nominal stand; each pose lists the joints that differ then.
func written(t *testing.T, name string, poses ...string) *mtn.File {
	t.Helper()
	stand, _ := aibo.Posture(aibo.ERS7, "stand")
	var first []string
	for n, v := range stand {
		first = append(first, fmt.Sprintf("%s=%g", n, v))
	}
	slices.Sort(first)
	text := "mtn\nformat DRX-1000\nname " + name + "\njoints all\npose 0 " + strings.Join(first, " ") + "\n" + strings.Join(poses, "\n") + "\n"
	f, err := mtn.Build([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return f
}

const (
	back  = "pose 800ms FL_LEG_VERT=-60 FR_LEG_VERT=-60 BL_LEG_VERT=-60 BR_LEG_VERT=-60"
	ahead = "pose 800ms FL_LEG_VERT=40 FR_LEG_VERT=40 BL_LEG_VERT=40 BR_LEG_VERT=40"
)

// TestCheckBalance: the finding names the 8 ms row in which the body tips and to which side. The row is right: posed by itself as in the row before, the body
// has its weight above its paws, and as in that row it has not. The library tips in no motion of any model.
func TestCheckBalance(t *testing.T) {
	for name, tc := range map[string]struct{ pose, toward string }{"back": {back, "front"}, "ahead": {ahead, "back"}} {
		f := written(t, "a_stand#stand_fall", tc.pose)
		found := CheckBalance(f)
		if len(found) != 1 || found[0].Code != CodeTip || found[0].Severity != mtn.Warning || !strings.Contains(found[0].Found, tc.toward) || found[0].Offset != f.Offsets().Angle(0, 0) {
			t.Errorf("%s: %+v", name, found)
			continue
		}
		var row int64
		if _, err := fmt.Sscanf(found[0].What, "row %d, way from keyframe 0", &row); err != nil || row < 5 || row > 99 {
			t.Errorf("%s: %q, %v", name, found[0].What, err)
		}
		motion, err := Motion(f, aibo.ERS7, false)
		if err != nil {
			t.Fatal(err)
		}
		at := func(row int64) statics.Stance {
			between := make([]int32, len(motion.Joints))
			for c := range between {
				a, b := motion.Keyframes[0].Values[c], motion.Keyframes[1].Values[c]
				between[c] = a + int32(int64(b-a)*row/motion.Keyframes[1].Rows)
			}
			return NewBalance(aibo.ERS7, statics.Upright).Step(inBody(t, motion, between))
		}
		if before, then := at(row-2), at(row+2); before.Attitude != statics.Standing || then.Attitude == statics.Standing && then.Paws() == 15 {
			t.Errorf("%s: two rows before row %d %+v, two behind %+v", name, row, before, then)
		}
	}
	for _, m := range aibo.Models {
		for _, name := range Library() {
			f, err := Load(m, name)
			if err != nil {
				t.Fatal(err)
			}
			if found := CheckBalance(f); len(found) > 0 {
				t.Errorf("%v, %s: %v", m, name, found)
			}
		}
	}
	unknown := written(t, "a_stand#stand_x", back)
	unknown.Format = "DRX-1"
	if found := CheckBalance(unknown); found != nil {
		t.Errorf("a format of no model: %v", found)
	}
}

// inBody returns values of a motion that lists all joints in the order of Body.
func inBody(t *testing.T, m *anim.Motion, values []int32) (at []int32) {
	t.Helper()
	for _, j := range Body(aibo.ERS7) {
		c := slices.Index(m.Joints, j.Name)
		if c < 0 {
			t.Fatalf("%s is not listed", j.Name)
		}
		at = append(at, values[c])
	}
	return at
}

// TestPlan: every motion of the library begins from every posture of every model; a body in sleep gets up by way of sitting, and the whole plan, played one way
// after the other, never tips and ends in the posture that the motion's name says.
func TestPlan(t *testing.T) {
	for _, m := range aibo.Models {
		for _, name := range Library() {
			f, err := Load(m, name)
			if err != nil {
				t.Fatal(err)
			}
			for _, from := range []string{"sleep", "sit", "stand"} {
				at, _ := Posture(m, from)
				p, err := NewPlan(f, m, at, statics.Upright)
				if err != nil || p.From != from {
					t.Errorf("%v, %s from %s: %+v, %v", m, name, from, p, err)
					continue
				}
				if through := strings.Join(p.Through(), " "); name == "bow" && from == "sleep" && !strings.HasPrefix(through, "sit stand") || name == "wag" && strings.Contains(through, "stand") {
					t.Errorf("%v, %s from %s: through %s", m, name, from, through)
				}
				b := NewBalance(m, statics.Upright)
				b.Step(at)
				for _, part := range append(p.Ways, p.Motion) {
					player, err := anim.New(part, Body(m), anim.Options{Rule: anim.Linear})
					if err != nil || player.Start(at) != nil {
						t.Fatal(err)
					}
					for player.Playing() {
						if player.Step(at); b.Step(at).Tipped() {
							t.Fatalf("%v, %s from %s tips in %s", m, name, from, part.Name)
						}
					}
				}
				if stop := mtn.ParseName(f.Name).Stop; moves(p.Motion) && (&planner{model: m, body: Body(m)}).posture(at) != stop {
					t.Errorf("%v, %s from %s ends elsewhere than in %s", m, name, from, stop)
				}
			}
		}
	}
}

// TestPlanRefused: why a motion cannot begin.
func TestPlanRefused(t *testing.T) {
	stand, _ := Posture(aibo.ERS7, "stand")
	fine := written(t, "a_stand#stand_fine", "pose 200ms HEAD_YAW=20")
	for name, tc := range map[string]struct {
		f   *mtn.File
		m   aibo.Model
		up  statics.Vec
		err error
	}{
		"it would fall":    {written(t, "a_stand#stand_fall", back), aibo.ERS7, statics.Upright, ErrRefused},
		"on its back":      {fine, aibo.ERS7, statics.Vec{0, 0, -1}, ErrRefused},
		"on its side":      {fine, aibo.ERS7, statics.Vec{0, 1, 0}, ErrRefused},
		"another model":    {fine, aibo.ERS210, statics.Upright, ErrModel},
		"no keyframe":      {&mtn.File{Name: fine.Name, Format: fine.Format, Joints: fine.Joints}, aibo.ERS7, statics.Upright, anim.ErrMotion},
		"nothing is wrong": {fine, aibo.ERS7, statics.Upright, nil},
	} {
		at := stand
		if tc.m != aibo.ERS7 {
			at, _ = Posture(tc.m, "stand")
		}
		if p, err := NewPlan(tc.f, tc.m, at, tc.up); !errors.Is(err, tc.err) || (p == nil) != (tc.err != nil) {
			t.Errorf("%s: %+v, %v; want %v", name, p, err, tc.err)
		}
	}
}

// TestPlanFromNowhere: a body whose legs are in no known posture goes to one that it reaches without a fall. A motion of the head begins there as it is. A
// posture of which only the name is known leads through none.
func TestPlanFromNowhere(t *testing.T) {
	at, _ := Posture(aibo.ERS7, "sit")
	for i, j := range Body(aibo.ERS7) {
		if j.Name == "robot.body.leg[front][left].hip.pitch" {
			at[i] -= 400_000
		}
	}
	bow, err := Load(aibo.ERS7, "bow")
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlan(bow, aibo.ERS7, at, statics.Upright)
	if err != nil || p.From != "" || len(p.Ways) == 0 || !slices.Contains(p.Through(), "stand") {
		t.Errorf("%+v, %v", p, err)
	}
	head := written(t, "h_stand#stand_look", "pose 200ms HEAD_YAW=20")
	if p, err = NewPlan(head, aibo.ERS7, at, statics.Upright); err != nil || slices.Contains(p.Through(), "stand") {
		t.Errorf("a motion of the head: %+v, %v", p, err)
	}
	stand, _ := Posture(aibo.ERS7, "stand")
	if p, err = NewPlan(written(t, "a_walk#walk_on", "pose 200ms HEAD_YAW=20"), aibo.ERS7, stand, statics.Upright); err != nil || len(p.Ways) != 0 {
		t.Errorf("from walk: %+v, %v", p, err)
	}
	if got := path("stand", "sleep"); !slices.Equal(got, []string{"sit", "sleep"}) || path("sit", "sit") != nil || path("sit", "walk") != nil {
		t.Errorf("the way from stand to sleep is %v", got)
	}
}
