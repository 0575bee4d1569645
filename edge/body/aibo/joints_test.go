package aibo

import (
	"fmt"
	"maps"
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

// TestPostures: the angles of section 9 of the rows, in degrees: fore and hind legs as VERT/LAT/KNEE, and every other joint that is not 0.
func TestPostures(t *testing.T) {
	for _, row := range []string{
		"ers-110 sleep 35/-12/40 -110/0/100 map[HEAD_PITCH:-10]", "ers-110 sit -30/0/15 -65/0/110 map[HEAD_PITCH:-33]", "ers-110 stand -10/0/30 -10/0/30 map[]",
		"ers-210 sleep 60/0/30 -115/0/145 map[HEAD_PITCH:-10 MOUTH:-3]", "ers-210 sit 0/0/10 -90/0/135 map[HEAD_PITCH:-25 MOUTH:-3]",
		"ers-210 stand -10/0/30 0/0/24 map[MOUTH:-3]",
		"ers-220 sleep 60/0/30 -117/5/147 map[HEAD_PITCH:-10]", "ers-220 sit 0/0/10 -90/0/135 map[HEAD_PITCH:-25]", "ers-220 stand -10/0/30 0/0/24 map[]",
		"ers-310 sleep 58/20/30 -64/30/-15 map[HEAD_PITCH2:10]", "ers-310 sit -30/-5/5 -35/30/0 map[HEAD_PITCH:-25 HEAD_PITCH2:-15]",
		"ers-310 stand -5/3/30 -5/3/30 map[HEAD_PITCH2:10]",
		"ers-7 sleep 59/0/30 -119/4/122 map[HEAD_PITCH:-25 HEAD_PITCH2:25 MOUTH:-5 TAIL_VERT:5]",
		"ers-7 sit -25/-4/20 -78/20/110 map[HEAD_PITCH:-40 HEAD_PITCH2:5 MOUTH:-5 TAIL_VERT:5]",
		"ers-7 stand -5/3/30 -5/3/30 map[HEAD_PITCH:-20 HEAD_PITCH2:25 MOUTH:-5 TAIL_VERT:5]",
	} {
		var model, word string
		_, _ = fmt.Sscan(row, &model, &word) // the rows are above
		m := Models[slices.IndexFunc(Models, func(m Model) bool { return m.String() == model })]
		for _, side := range []string{"L", "R"} {
			p, _ := Posture(m, word)
			p = maps.Clone(p)
			leg := func(l string) string {
				var v [3]float64
				for i, part := range []string{"VERT", "LAT", "KNEE"} {
					v[i] = p[l+side+"_LEG_"+part]
				}
				return fmt.Sprintf("%g/%g/%g", v[0], v[1], v[2])
			}
			fore, hind := leg("F"), leg("B")
			maps.DeleteFunc(p, func(name string, _ float64) bool { return mtn.PartOf(name) == 'l' })
			if got := fmt.Sprintf("%s %s %s %s %v", model, word, fore, hind, p); got != row {
				t.Errorf("%s, want %s", got, row)
			}
		}
	}
}
