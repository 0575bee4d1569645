package motions

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/mtn"
)

func encoded(t *testing.T, f *mtn.File) []byte {
	t.Helper()
	b, err := mtn.Append(nil, f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// built is a motion in text form.
func built(t *testing.T, text string) *mtn.File {
	t.Helper()
	f, err := mtn.Build([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// text returns the poses of a motion, without its head.
func text(f *mtn.File) string {
	_, poses, _ := strings.Cut(string(mtn.AppendText(nil, f)), "unit deg\n")
	return poses
}

// TestTwice: mirroring and reversing twice gives the same bytes, for every model; once does not.
func TestTwice(t *testing.T) {
	rnd := rand.New(rand.NewPCG(35, 4))
	for _, m := range aibo.Models {
		f := made(rnd, m, 4)
		f.Name = "a_sleep#sit_x"
		f.Keyframes[1].RPY = [3]int32{1, 2, 3}
		once, err := Mirror(f)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := Mirror(once)
		if err != nil || !bytes.Equal(encoded(t, twice), encoded(t, f)) || bytes.Equal(encoded(t, once), encoded(t, f)) || once.Keyframes[1].RPY != [3]int32{-1, 2, -3} {
			t.Errorf("%v: mirrored twice: %v", m, err)
		}
		back := Reverse(f)
		if !bytes.Equal(encoded(t, Reverse(back)), encoded(t, f)) || back.Name != "a_sit#sleep_x" || back.Duration() != f.Duration() ||
			back.Keyframes[3].Interp != f.Keyframes[1].Interp || !slices.Equal(back.Keyframes[3].Joints, f.Keyframes[0].Joints) {
			t.Errorf("%v: reversed: %+v", m, back)
		}
	}
}

// TestMirror: sides are exchanged, turns to the side change their sign, and a joint without its partner becomes the partner.
func TestMirror(t *testing.T) {
	f := built(t, "mtn\nformat DRX-910\nname a_sit#sit_x\njoints HEAD_YAW HEAD_PITCH FL_LEG_LAT FR_LEG_LAT BL_LEG_VERT TAIL_HORZ LEFT_EAR HEAD_ROLL TAIL_VERT\npose 0 HEAD_YAW=10 "+
		"HEAD_PITCH=1 FL_LEG_LAT=20 FR_LEG_LAT=5 BL_LEG_VERT=-7 TAIL_HORZ=3 LEFT_EAR=2 HEAD_ROLL=4 TAIL_VERT=6")
	got, err := Mirror(f)
	if err != nil {
		t.Fatal(err)
	}
	if want := "keyframe 0 0 0 0 -10 1 5 20 -7 -3 2 -4 6\n"; text(got) != want {
		t.Errorf("%s, want %s", text(got), want)
	}
	p, _, _ := known(got)
	if r := p.Resolve(got.Joints); r[4].Name != "BR_LEG_VERT" || r[6].Name != "RIGHT_EAR" || r[2].Name != "FL_LEG_LAT" {
		t.Errorf("%+v", r)
	}
	f.Format = "x"
	if _, err := Mirror(f); !errors.Is(err, ErrModel) {
		t.Error(err)
	}
}

// TestScale: times in whole frames, angles about the first keyframe.
func TestScale(t *testing.T) {
	f := built(t, "mtn\nformat DRX-910\nname a_sit#sit_x\njoints HEAD_YAW\nunit urad\nkeyframe 0 0 0 0 1000\nkeyframe 39 0 0 0 3000\nkeyframe 0 0 0 0 -1000")
	got, err := Scale(f, 1.5, 0.5)
	if err != nil || got.Keyframes[1].Interp != 59 || got.Keyframes[2].Interp != 1 || got.Keyframes[1].Joints[0] != 2000 || got.Keyframes[2].Joints[0] != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, _ := Scale(f, 0.01, 0); got.Keyframes[1].Interp != 0 || got.Keyframes[2].Joints[0] != 1000 {
		t.Errorf("%+v", got)
	}
	for _, bad := range [][2]float64{{0, 1}, {1, -1}, {math.NaN(), 1}, {1, math.NaN()}, {101, 1}} {
		if _, err := Scale(f, bad[0], bad[1]); !errors.Is(err, ErrEdit) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// TestLimit: afterwards nothing exceeds a range or a speed, for random motions of every model, and what was within them is untouched (MTN-58).
func TestLimit(t *testing.T) {
	rnd := rand.New(rand.NewPCG(35, 5))
	limits := func(f *mtn.File) (codes []string) {
		for _, x := range Check(f) {
			if x.Code == CodeRange || x.Code == CodeSpeed {
				codes = append(codes, x.Code)
			}
		}
		return codes
	}
	for _, m := range aibo.Models {
		f := made(rnd, m, 6)
		if len(limits(f)) == 0 {
			t.Errorf("%v: a wild motion is within limits", m)
		}
		got, changes, err := Limit(f)
		if err != nil || len(limits(got)) != 0 || len(changes) == 0 || got.Duration() <= f.Duration() {
			t.Errorf("%v: %v, %v, %v", m, limits(got), changes, err)
		}
		again, changes, err := Limit(got)
		if err != nil || len(changes) != 0 || !bytes.Equal(encoded(t, again), encoded(t, got)) {
			t.Errorf("%v again: %v, %v", m, changes, err)
		}
	}
	f := built(t, "mtn\nformat DRX-910\nname a_sit#sit_x\njoints HEAD_YAW\npose 0\npose 16ms HEAD_YAW=90")
	got, changes, _ := Limit(f)
	// 89.6 degrees at 3.01 rad/s take 0.5196 s, 33 frames.
	if got.Keyframes[1].Interp != 32 || len(changes) != 2 || changes[0].What != CodeRange || changes[1].What != CodeSpeed || changes[1].Got != 33 || !changes[0].Keeps {
		t.Errorf("%+v, %+v", got.Keyframes, changes)
	}
}

// TestBlend: the mix at every keyframe of both, with the ends exact.
func TestBlend(t *testing.T) {
	const head = "mtn\nformat DRX-910\nname a_sit#sit_x\njoints HEAD_YAW HEAD_PITCH\nunit urad\n"
	a := built(t, head+"keyframe 0 0 0 0 0 100\nkeyframe 9 0 0 0 1000 100\nkeyframe 9 20 0 0 1000 0")
	b := built(t, "mtn\nformat DRX-910\nname a_sit#sit_y\njoints HEAD_PITCH HEAD_YAW\nunit urad\nkeyframe 0 0 0 0 0 0\nkeyframe 4 0 0 0 200 400")
	got, err := Blend(a, b, 0.25)
	if err != nil {
		t.Fatal(err)
	}
	want := built(t, head+"keyframe 0 0 0 0 0 75\nkeyframe 4 0 0 0 475 125\nkeyframe 4 0 0 0 850 125\nkeyframe 9 15 0 0 850 50")
	if text(got) != text(want) {
		t.Errorf("%s\nwant %s", text(got), text(want))
	}
	for weight, whole := range map[float64]*mtn.File{0: a, 1: b} {
		got, _ := Blend(a, b, weight)
		end := got.Keyframes[len(got.Keyframes)-1].Joints
		last := whole.Keyframes[len(whole.Keyframes)-1].Joints
		if weight == 1 {
			last = []int32{last[1], last[0]}
		}
		if !slices.Equal(end, last) {
			t.Errorf("weight %v ends at %v, want %v", weight, end, last)
		}
	}
	other := built(t, "mtn\nformat DRX-1000\njoints HEAD_YAW HEAD_PITCH\npose 0")
	for name, tc := range map[string]struct {
		b      *mtn.File
		weight float64
	}{"model": {other, 0}, "joints": {built(t, "mtn\nformat DRX-910\njoints HEAD_YAW MOUTH\npose 0"), 0}, "weight": {b, 1.1}, "none": {built(t, head), 0}} {
		if _, err := Blend(a, tc.b, tc.weight); !errors.Is(err, ErrEdit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRetarget: between all models, each joint that both have keeps its angle within 5 degrees or is named, and the nose keeps its direction.
func TestRetarget(t *testing.T) {
	rnd := rand.New(rand.NewPCG(35, 6))
	for _, from := range aibo.Models {
		for _, to := range aibo.Models {
			for range 20 {
				f := made(rnd, from, 3)
				got, changes, err := Retarget(f, to)
				if err != nil || got.Format != platform(to).Format || got.Duration() != f.Duration() {
					t.Fatal(err)
				}
				old, now := columnsOf(t, f), columnsOf(t, got)
				for name, c := range now {
					if strings.HasPrefix(name, "HEAD_PITCH") {
						continue
					}
					j, _ := joint(to, name)
					lo, hi := span(j)
					for k := range got.Keyframes {
						was, is := f.Keyframes[k].Joints[old[name]], got.Keyframes[k].Joints[c]
						if (lo != 0 || hi != 0) && (is < lo || is > hi) {
							t.Fatalf("%v to %v: %s at %d, range %d to %d", from, to, name, is, lo, hi)
						}
						told := slices.ContainsFunc(changes, func(c Change) bool { return c.Joint == name && !c.Keeps })
						if math.Abs(mtn.Degrees(was)-mtn.Degrees(is)) > tolerance && !told {
							t.Fatalf("%v to %v, keyframe %d: %s from %d to %d, and not told: %+v", from, to, k, name, was, is, changes)
						}
					}
				}
				for name := range old {
					_, kept := now[name]
					told := slices.ContainsFunc(changes, func(c Change) bool { return c.Joint == name && c.What == "lacking" })
					if kept == told && !strings.HasPrefix(name, "HEAD_PITCH") {
						t.Fatalf("%v to %v: %s is there: %v, told as lacking: %v", from, to, name, kept, told)
					}
				}
			}
		}
	}
	nod := built(t, "mtn\nformat DRX-910\nname h_sit#sit_nod\njoints HEAD_PITCH HEAD_ROLL\npose 0\npose 320ms HEAD_PITCH=-30\npose 320ms HEAD_PITCH=20")
	seven, changes, err := Retarget(nod, aibo.ERS7)
	// The posture stand of ERS-7 has -20 and 25: the nose is 5 up. From there the head does the way alone until it is at its end, -15 or 45. Sums of
	// angles that were cut differ from the cut sum in the last digit.
	if want := "keyframe 0 0 0 0 -20 20\nkeyframe 19 0 0 0 -20 -10.00003\nkeyframe 19 0 0 0 -20 39.99993\n"; err != nil || text(seven) != want || len(changes) != 1 || !changes[0].Keeps {
		t.Errorf("%s, want %s; %+v, %v", text(seven), want, changes, err)
	}
	back, _, err := Retarget(seven, aibo.ERS210)
	if want := "keyframe 0 0 0 0 0\nkeyframe 19 0 0 0 -30\nkeyframe 19 0 0 0 20\n"; err != nil || text(back) != want {
		t.Errorf("%s, want %s; %v", text(back), want, err)
	}
	// A knee that ERS-7 cannot bend as far, and one that it nearly can.
	_, changes, _ = Retarget(built(t, "mtn\nformat DRX-910\njoints BL_LEG_KNEE BR_LEG_KNEE\npose 0 BL_LEG_KNEE=140 BR_LEG_KNEE=126"), aibo.ERS7)
	if len(changes) != 2 || changes[0].Keeps || !changes[1].Keeps || changes[0].What != CodeRange || math.Round(changes[0].Got) != 122 {
		t.Errorf("%+v", changes)
	}
}

// columnsOf returns the column of each joint of a file by its name.
func columnsOf(t *testing.T, f *mtn.File) map[string]int {
	t.Helper()
	_, names, err := known(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for i, r := range names {
		out[r.Name] = i
	}
	return out
}

// TestDiff: what differs, and what is within the tolerance.
func TestDiff(t *testing.T) {
	a := made(rand.New(rand.NewPCG(1, 1)), aibo.ERS7, 3)
	b := clone(a)
	if d := Diff(a, b, 0, 100); d != nil {
		t.Errorf("a copy: %v", d)
	}
	b.Author, b.Keyframes[1].Interp, b.Keyframes[2].RPY[2] = "x", a.Keyframes[1].Interp+1, 5
	b.Keyframes[2].Joints[1] += mtn.MicroRadian(2)
	what := func(tolerance float64, most int) (out []string) {
		for _, d := range Diff(a, b, tolerance, most) {
			out = append(out, d.What)
		}
		return out
	}
	if got := what(0, 100); !slices.Equal(got, []string{"author", "keyframe 1, interp", "keyframe 2, yaw", "keyframe 2, HEAD_YAW"}) {
		t.Errorf("%q", got)
	}
	if got := what(2.001, 100); !slices.Equal(got, []string{"author", "keyframe 1, interp"}) {
		t.Errorf("%q", got)
	}
	if got := what(0, 2); !slices.Equal(got, []string{"author", "keyframe 1, interp", "and 2 more"}) {
		t.Errorf("%q", got)
	}
}
