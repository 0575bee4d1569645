package aibo

import (
	"fmt"
	"slices"
	"testing"

	"kennel/edge/body/aibo/mtn"
)

// TestJointsFit: each model has the joints that its motion files name, each under a name of its tree, and its postures are within the ranges.
func TestJointsFit(t *testing.T) {
	for _, m := range Models {
		tree, err := Tree(m)
		if err != nil {
			t.Fatal(err)
		}
		platform, ok := mtn.PlatformFor(int(m))
		joints := Joints(m)
		if !ok || len(joints) != len(platform.Joints) {
			t.Fatalf("%v: %d joints, %d in files", m, len(joints), len(platform.Joints))
		}
		for _, f := range platform.Joints {
			i := slices.IndexFunc(joints, func(j Joint) bool { return j.Native == f.Name })
			if i < 0 {
				t.Errorf("%v lacks %s", m, f.Name)
				continue
			}
			j := joints[i]
			if target, err := tree.Lookup(j.Path); err != nil || len(target.Nodes) != 1 || target.Nodes[0].Full() != j.Path || j.Sign*j.Sign != 1 {
				t.Errorf("%v, %s: %+v is not in the tree: %v", m, f.Name, j, err)
			}
			if ear := mtn.PartOf(f.Name) == 'e'; (j.Speed == 0) != ear || (j.Min == j.Max) != ear {
				t.Errorf("%v: %+v", m, j)
			}
			for _, name := range []string{"sleep", "sit", "stand"} {
				p, ok := Posture(m, name)
				if v := p[f.Name]; !ok || !Named(m, name) || j.Speed > 0 && (v < j.Min || v > j.Max) {
					t.Errorf("%v, %s: %s at %v, range %v to %v", m, name, f.Name, v, j.Min, j.Max)
				}
			}
		}
	}
	if Named(ERS210, "situp") || !Named(ERS7, "situp") || !Named(ERS210, "walk") {
		t.Error("situp is ERS-7's, walk everyone's")
	}
}

// TestFacts: ranges and speeds of section 9 of the rows.
func TestFacts(t *testing.T) {
	for _, tc := range []struct {
		m    Model
		want string
	}{
		{ERS210, "[HEAD_PITCH -82 43 2.11] [HEAD_YAW -89.6 89.6 3.01] [HEAD_ROLL -29 29 3.01] [MOUTH -47 -3 4.37] [FL_LEG_VERT -117 117 2.81] " +
			"[FL_LEG_LAT -11 89 2.5] [FL_LEG_KNEE -27 147 2.84] [TAIL_HORZ -22 22 4.47] [TAIL_VERT -22 22 4.47]"},
		{ERS220, "[HEAD_PITCH -88.5 43 2.11]"},
		{ERS110, "[MOUTH -47 0 4.37] [BL_LEG_LAT -20 90 2.5]"},
		{ERS7, "[HEAD_PITCH -75 0 3.19] [HEAD_PITCH2 -15 45 5.78] [HEAD_YAW -88 88 10.06] [MOUTH -55 -3 10.14] [FL_LEG_VERT -115 130 4.87] " +
			"[FL_LEG_LAT -10 88 5.28] [FL_LEG_KNEE -25 122 5.28] [BR_LEG_VERT -130 115 4.87] [TAIL_HORZ -45 45 15.16] [TAIL_VERT 5 60 15.16]"},
	} {
		have := map[string]bool{}
		for _, j := range Joints(tc.m) {
			have[fmt.Sprint([]any{j.Native, j.Min, j.Max, j.Speed})] = true
		}
		for want := range splitFacts(tc.want) {
			if !have[want] {
				t.Errorf("%v lacks %s in %v", tc.m, want, have)
			}
		}
	}
}

func splitFacts(s string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for from := 0; from < len(s); {
			to := from + slices.Index([]byte(s[from:]), ']') + 1
			if !yield(s[from:to]) {
				return
			}
			from = to + 1
		}
	}
}
