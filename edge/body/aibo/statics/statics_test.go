package statics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kennel/edge/body/aibo"
)

const deg = math.Pi / 180

// pose returns the angles of a model from degrees by native names as AIBO counts.
func pose(m aibo.Model, degrees map[string]float64) (angles []float64) {
	for _, j := range aibo.Joints(m) {
		angles = append(angles, float64(j.Sign)*degrees[j.Native]*deg)
	}
	return angles
}

func posture(t *testing.T, m aibo.Model, name string) map[string]float64 {
	t.Helper()
	p, ok := aibo.Posture(m, name)
	if !ok {
		t.Fatalf("%v has no %s", m, name)
	}
	return p
}

// with returns p with some joints at other angles.
func with(p map[string]float64, other map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for _, from := range []map[string]float64{p, other} {
		for n, v := range from {
			out[n] = v
		}
	}
	return out
}

// TestLeg: where the paw of a leg is, worked out by hand from the lengths of ERS-7: straight down, stretched forward, outward, and with a right angle in the
// knee (signs of MTN-60).
func TestLeg(t *testing.T) {
	b := New(aibo.ERS7)
	for name, tc := range map[string]struct {
		degrees map[string]float64
		want    Vec // from the hip to the paw
	}{
		"down":    {nil, Vec{0, 0, -0.146}},
		"forward": {map[string]float64{"FL_LEG_VERT": 90}, Vec{0.146, 0, 0}},
		"outward": {map[string]float64{"FL_LEG_LAT": 90}, Vec{0, 0.146, 0}},
		"knee":    {map[string]float64{"FL_LEG_KNEE": 90}, Vec{0.0765, 0, -0.0695}},
		"both":    {map[string]float64{"FL_LEG_VERT": -90, "FL_LEG_KNEE": 90}, Vec{-0.0695, 0, -0.0765}},
	} {
		for l, leg := range LegNames {
			degrees, want := map[string]float64{}, tc.want
			for n, v := range tc.degrees {
				degrees[strings.Replace(n, "FL", leg, 1)] = v
			}
			if leg[1] == 'R' {
				want[1] = -want[1]
			}
			f := b.Pose(pose(aibo.ERS7, degrees))
			hip := Vec{0.065, 0.0625, 0}
			if leg[0] == 'B' {
				hip[0] = -hip[0]
			}
			if leg[1] == 'R' {
				hip[1] = -hip[1]
			}
			if got := f.At[Paw+l].minus(hip); got.minus(want).length() > 1e-9 {
				t.Errorf("%s, %s: %v, want %v", name, leg, got, want)
			}
		}
	}
}

// TestHead: a head that looks up or to the side has its nose there, on the models with one joint to nod and with two.
func TestHead(t *testing.T) {
	for _, m := range aibo.Models {
		b := New(m)
		level := b.Pose(pose(m, nil)).At[head]
		up := b.Pose(pose(m, map[string]float64{"HEAD_PITCH": 30})).At[head]
		left := b.Pose(pose(m, map[string]float64{"HEAD_YAW": 60})).At[head]
		if up[2] <= level[2] || left[1] <= 0.05 || math.Abs(left[2]-level[2]) > 1e-9 {
			t.Errorf("%v: the nose is at %v, up at %v, left at %v", m, level, up, left)
		}
	}
}

// TestPostures: each model rests in its nominal postures on the paws that a person would expect, and tips from none once it sits.
func TestPostures(t *testing.T) {
	for _, m := range aibo.Models {
		b := New(m)
		for name, want := range map[string]Attitude{"stand": Standing, "sit": Sitting, "sleep": Lying} {
			f := b.Pose(pose(m, posture(t, m, name)))
			s := f.Settle(Upright)
			if name == "sit" && m == aibo.ERS310 {
				want = Standing // its seat is nearly level: fore legs back, hind legs spread
			}
			if s.Attitude != want || s.Margin < 0.002 || math.Abs(s.Roll()) > deg {
				t.Errorf("%v, %s: %+v, want it %v", m, name, s, want)
			}
			if name != "sleep" && s.Paws() != 15 {
				t.Errorf("%v, %s: paws %04b touch, want all", m, name, s.Paws())
			}
			if again := f.Settle(s.Up); again.Turned > 0.01*deg || again.Tipped() {
				t.Errorf("%v, %s: at rest it turns by %v", m, name, again.Turned/deg)
			}
		}
	}
}

// TestTips: which way a body falls whose legs are all on one side of its weight; the mirrored posture falls to the other side.
func TestTips(t *testing.T) {
	stand := posture(t, aibo.ERS7, "stand")
	all := func(part string, v float64, legs ...string) map[string]float64 {
		out := map[string]float64{}
		for _, l := range legs {
			out[l+"_LEG_"+part] = v
		}
		return out
	}
	for name, tc := range map[string]struct {
		other map[string]float64
		want  Way
	}{
		"fore legs lifted":  {all("VERT", 100, "FL", "FR"), Front},
		"all legs back":     {all("VERT", -60, LegNames[:]...), Front},
		"all legs forward":  {all("VERT", 35, LegNames[:]...), Back},
		"right legs lifted": {all("LAT", 88, "FR", "BR"), Right},
		"left legs lifted":  {all("LAT", 88, "FL", "BL"), Left},
	} {
		f := New(aibo.ERS7).Pose(pose(aibo.ERS7, with(stand, tc.other)))
		if s := f.Settle(Upright); !s.Tipped() || s.Toward != tc.want {
			t.Errorf("%s: %+v, want it to tip to the %v", name, s, tc.want)
		}
	}
	f := New(aibo.ERS7).Pose(pose(aibo.ERS7, stand))
	for name, tc := range map[string]struct {
		up   Vec
		want Attitude
	}{"laid on its back": {Vec{0.1, 0, -1}, OnBack}, "on its left": {Vec{0, -1, 0.1}, OnSide}} {
		if s := f.Settle(tc.up); s.Attitude != tc.want {
			t.Errorf("%s it rests %v", name, s.Attitude)
		}
	}
}

// TestRest: whatever the posture, the body ends where its weight is above what carries it, no higher than it began, and no small turn brings its centre of
// mass lower: so rest is found without the method that Settle uses.
func TestRest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, m := range aibo.Models {
		b, joints := New(m), aibo.Joints(m)
		falls := 0
		for range 400 {
			angles := make([]float64, len(joints))
			for i, j := range joints {
				angles[i] = float64(j.Sign) * (j.Min + rng.Float64()*(j.Max-j.Min)) * deg
			}
			f := b.Pose(angles)
			high := func(up Vec) float64 {
				floor := math.Inf(1)
				for _, p := range f.At {
					floor = min(floor, p.dot(up))
				}
				return f.Centre.dot(up) - floor
			}
			s := f.Settle(Upright)
			if s.Margin < -balanced || math.Abs(s.Up.length()-1) > 1e-9 || high(s.Up) > high(Upright)+near {
				t.Fatalf("%v %v: %+v, %v above the floor, began at %v", m, angles, s, high(s.Up), high(Upright))
			}
			for range 12 {
				axis := Vec{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}.unit()
				if near := s.Up.turned(axis, 2*deg); s.Margin > 0.006 && high(near) < high(s.Up)-near0 {
					t.Fatalf("%v %v rests with %+v, but turned about %v it is %v lower", m, angles, s, axis, high(s.Up)-high(near))
				}
			}
			if s.Tipped() {
				falls++
			}
		}
		if falls < 40 || falls > 390 {
			t.Errorf("%v: %d of 400 random postures tip", m, falls)
		}
	}
}

const near0 = 0.0005 // m, what points within the tolerance may yield

// TestEfforts: the floor carries the whole weight; a straight leg asks nothing of its joints, and of a paw that is ahead of its hip by a known way the hip
// needs force times way.
func TestEfforts(t *testing.T) {
	b, joints := New(aibo.ERS7), aibo.Joints(aibo.ERS7)
	at := func(native string) int {
		return slices.IndexFunc(joints, func(j aibo.Joint) bool { return j.Native == native })
	}
	out := make([]float64, len(joints))
	straight := b.Pose(nil)
	s := straight.Settle(Upright)
	b.Efforts(&straight, &s, out)
	for i, v := range out {
		if math.Abs(v) > 1e-9 {
			t.Errorf("straight legs: %s has %v N·m", joints[i].Native, v)
		}
	}
	bent := b.Pose(pose(aibo.ERS7, map[string]float64{"FL_LEG_VERT": 30, "FR_LEG_VERT": 30, "BL_LEG_VERT": 30, "BR_LEG_VERT": 30}))
	s = bent.Settle(Upright)
	b.Efforts(&bent, &s, out)
	sum, way := 0.0, 0.146*math.Sin(30*deg)
	for _, leg := range LegNames {
		sum += math.Abs(out[at(leg+"_LEG_VERT")]) / way
	}
	if math.Abs(sum-bent.Weight) > 1e-6 {
		t.Errorf("the hips carry %v N, the body weighs %v N", sum, bent.Weight)
	}
	if v := out[at("FL_LEG_VERT")]; v <= 0 {
		t.Errorf("the floor pushes a leg that is ahead further ahead, so its hip works backward, which is positive: %v", v)
	}
}

// TestFrugal: posing and settling allocate nothing, so that a body can do it every 8 ms.
func TestFrugal(t *testing.T) {
	b := New(aibo.ERS210)
	angles := pose(aibo.ERS210, posture(t, aibo.ERS210, "sit"))
	out := make([]float64, b.Joints())
	if n := testing.AllocsPerRun(50, func() {
		f := b.Pose(angles)
		s := f.Settle(Upright)
		b.Efforts(&f, &s, out)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got := fmt.Sprint(Front, Back, Left, Right, Nowhere, Standing, OnBack); got != "front back left right nowhere standing on its back" {
		t.Error(got)
	}
}

// BenchmarkSettle: one row of a motion.
func BenchmarkSettle(b *testing.B) {
	s := New(aibo.ERS7)
	p, _ := aibo.Posture(aibo.ERS7, "sit")
	angles := pose(aibo.ERS7, p)
	for b.Loop() {
		f := s.Pose(angles)
		f.Settle(Upright)
	}
}
