package mtn

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// forms are the text forms of a file.
func forms(t testing.TB, f *File) map[string][]byte {
	t.Helper()
	j, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"json": j, "text": AppendText(nil, f), "csv": AppendCSV(nil, f)}
}

// TestForms: a file that is written as text of any form and built again is the same to the byte, whatever its layout (MTN-59).
func TestForms(t *testing.T) {
	each := func(name string, b []byte) {
		f, _, err := Parse(b, Lenient)
		if err != nil {
			t.Fatal(name, err)
		}
		for form, text := range forms(t, f) {
			got, err := Build(text)
			if err != nil {
				t.Errorf("%s as %s: %v\n%.400s", name, form, err, text)
				continue
			}
			if again := must(t, got); !bytes.Equal(again, b) {
				t.Errorf("%s as %s:\n%x\n%x\n%.600s", name, form, b, again, text)
			}
		}
	}
	each("example", example(t))
	variants(func(name string, f *File, _ ...string) { each(name, must(t, f)) })
	odd := made(rand.New(rand.NewPCG(2, 2)), platforms[1], 2, 1)
	odd.Joints[0], odd.Joints[1], odd.Joints[2], odd.Joints[3], odd.Joints[4] = "HEAD_YAW", "all", "#x", "", "a,b \"c\""
	each("joints with the names of others", must(t, odd))
}

// TestJSON: the keys that programs read.
func TestJSON(t *testing.T) {
	f, _, err := Parse(example(t), Strict)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Version   string
		Rate      int
		Strings   struct{ Name, Author, Format string }
		Joints    []string
		Keyframes []struct {
			Interp int
			RPY    []int
			Joints []int
		}
		Layout any
	}
	text := forms(t, f)["json"]
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != "1.2" || got.Rate != 16 || got.Strings != (struct{ Name, Author, Format string }{f.Name, "Skitter", "DRX-910"}) || len(got.Joints) != 20 ||
		got.Joints[4] != "PRM:/r1/c1/c2/c3/e1-Joint3:j5" || len(got.Keyframes) != 2 || got.Keyframes[1].Interp != 39 || len(got.Keyframes[1].RPY) != 3 ||
		got.Keyframes[0].Joints[0] != -174532 || got.Layout != nil {
		t.Errorf("%+v\n%s", got, text)
	}
}

// written is a motion as a person writes it: the source's example.
const written = `mtn
# comments and blank lines do not matter
format DRX-910
name   a_sleep#sit_Sleep_To_Sit
author Skitter

joints all
pose 0 HEAD_PITCH=-10 MOUTH=-3 FL_LEG_VERT=60 FL_LEG_KNEE=30 FR_LEG_VERT=60 FR_LEG_KNEE=30 BL_LEG_VERT=-115 BL_LEG_KNEE=145 BR_LEG_VERT=-115 BR_LEG_KNEE=145
pose 640ms HEAD_PITCH=-25 FL_LEG_VERT=0 FL_LEG_KNEE=10 FR_LEG_VERT=0 FR_LEG_KNEE=10 BL_LEG_VERT=-90 BL_LEG_KNEE=2356194u BR_LEG_VERT=-90 BR_LEG_KNEE=135
`

// TestBuild: degrees and times by hand give the bytes of the source's example, as text, as JSON and by Add (MTN-50).
func TestBuild(t *testing.T) {
	want := example(t)
	f, err := Build([]byte(written))
	if err != nil {
		t.Fatal(err)
	}
	if got := must(t, f); !bytes.Equal(got, want) {
		t.Errorf("text:\n%x\n%x", got, want)
	}

	p, _ := PlatformFor(210)
	own := New(p, "a_sleep#sit_Sleep_To_Sit")
	own.Author = "Skitter"
	first := map[string]float64{"HEAD_PITCH": -10, "MOUTH": -3}
	second := map[string]float64{"PRM:/r1/c1-Joint2:j1": -25}
	for _, side := range []string{"L", "R"} {
		first["F"+side+"_LEG_VERT"], first["F"+side+"_LEG_KNEE"], first["B"+side+"_LEG_VERT"], first["B"+side+"_LEG_KNEE"] = 60, 30, -115, 145
		second["F"+side+"_LEG_VERT"], second["F"+side+"_LEG_KNEE"], second["B"+side+"_LEG_VERT"], second["B"+side+"_LEG_KNEE"] = 0, 10, -90, 135
	}
	if err := errors.Join(own.Add(0, first), own.Add(640*time.Millisecond, second)); err != nil {
		t.Fatal(err)
	}
	if got := must(t, own); !bytes.Equal(got, want) {
		t.Errorf("Add:\n%x\n%x", got, want)
	}
	for what, bad := range map[string]error{
		"unknown joint": own.Add(time.Second, map[string]float64{"WING": 1}),
		"no number":     own.Add(time.Second, map[string]float64{"MOUTH": math.NaN()}),
		"too far":       own.Add(time.Second, map[string]float64{"MOUTH": 123456}),
		"back in time":  own.Add(-time.Second, nil),
	} {
		if bad == nil || len(own.Keyframes) != 2 {
			t.Errorf("%s: %v, %d keyframes", what, bad, len(own.Keyframes))
		}
	}

	byHand := `{"strings": {"name": "t_sit#sit_wag", "format": "DRX-700_Tail"}, "joints": ["TAIL_VERT", "PRM:/r1/c1-Joint:j1"],
		"keyframes": [{"rpy": [0, 0, 0], "degrees": [0, 10]}, {"ms": 320, "degrees": [0, -10]}]}`
	if f, err = Build([]byte(byHand)); err != nil {
		t.Fatal(err)
	}
	if f.Minor != 1 || f.Rate != 0 || f.Author != Author || f.Joints[0] != "PRM:/r1/c0-Joint:j0" || f.Keyframes[1].Interp != 19 || f.Keyframes[1].Joints[1] != -174532 {
		t.Errorf("%+v", f)
	}
}

// TestDegreesText: each micro-radian has a number of degrees that becomes it again, and round ones a short number.
func TestDegreesText(t *testing.T) {
	for v, want := range map[int32]string{0: "0", -174532: "-10", 1047197: "60", 523598: "30", -52359: "-3", 8726: "0.5"} {
		if got := degreesText(v); got != want {
			t.Errorf("%d: %s, want %s", v, got, want)
		}
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	b := builder{f: &File{}}
	r := &record{line: 1}
	for range 20000 {
		v := int32(rnd.Uint32()) >> rnd.IntN(28)
		if got, err := b.angle(r, 0, degreesText(v)); got != v || err != nil {
			t.Fatalf("%d: %s is %d, %v", v, degreesText(v), got, err)
		}
	}
}

// TestBuildRefuses: each mistake is said where it is.
func TestBuildRefuses(t *testing.T) {
	const head = "mtn\nformat DRX-910\njoints MOUTH HEAD_YAW\n"
	for _, tc := range []struct {
		in           string
		line, column int
	}{
		{"", 1, 1},
		{"motion", 1, 1},
		{"mtn 1", 1, 5},
		{"mtn 1.2.3", 1, 5},
		{"mtn 1.2 3", 1, 9},
		{"mtn\nwings 2", 2, 1},
		{"mtn\nrate 65536", 2, 6},
		{"mtn\nrate 1 2", 2, 6},
		{"mtn\nname \"x", 2, 6},
		{"mtn\nunit rad", 2, 6},
		{"mtn\njoints all", 2, 8},
		{"mtn\njoints A\nformat DRX-910", 3, 1},
		{"mtn\nlayout \"{\\\"x\\\": 1}\"", 2, 8},
		{head + "joints MOUTH", 4, 1},
		{head + "keyframe 0 0 0 0 1", 4, 19},
		{head + "keyframe 0 0 0 0 1 x", 4, 20},
		{head + "keyframe 0 0 0 0 1 NaN", 4, 20},
		{head + "keyframe 0 0 0 0 1 999999", 4, 20},
		{head + "keyframe 0 0 0 0 1.5u 1", 4, 18},
		{head + "keyframe -1 0 0 0 1 1", 4, 10},
		{head + "pose", 4, 5},
		{head + "pose 1h MOUTH", 4, 9},
		{head + "pose 1h TAIL_VERT=3", 4, 9},
		{head + "pose 999999h MOUTH=3", 4, 6},
		{head + "keyframe 3 0 0 0 0 0", 0, 0}, // the first one has no time
		{"mtn,1.2\nformat,DRX-910\njoints,MOUTH\nkeyframe,0,0,0,0,x", 4, 18},
		{"mtn,1.2\nformat,\"DRX", 2, 12},
		{"{", 1, 2},
		{"{\n\"strings\": 3}", 2, 13},
		{"{\n\"wings\": 3}", 2, 9},
		{`{"joints": ["MOUTH"], "keyframes": [{"joints": []}]}`, 0, 0},
		{`{"joints": ["MOUTH"], "keyframes": [{"interp": 1, "ms": 16, "joints": [1]}]}`, 0, 0},
		{`{"joints": ["MOUTH"], "keyframes": [{"joints": [1], "degrees": [1]}]}`, 0, 0},
		{`{"version": "x"}`, 0, 0},
		{`{"strings": {"name": "` + strings.Repeat("x", 256) + `"}}`, 0, 0},
		{`{} {}`, 1, 4},
	} {
		_, err := Build([]byte(tc.in))
		e, ok := errors.AsType[*TextError](err)
		if !ok || e.What == "" || e.Line != tc.line || (e.Column != tc.column && tc.in[:min(1, len(tc.in))] != "{") {
			t.Errorf("%q: %v (%+v), want line %d, column %d", tc.in, err, e, tc.line, tc.column)
		}
	}
}

// TestManyPoses: poses are shorter than what they say, and so are bounded.
func TestManyPoses(t *testing.T) {
	text := "mtn\njoints " + strings.Repeat("j ", 60000) + strings.Repeat("\npose 0", 60000)
	_, err := Build([]byte(text))
	if e, ok := errors.AsType[*TextError](err); !ok || e.Line != 2+maxPoses/60004+1 {
		t.Errorf("%v", err)
	}
}

// FuzzBuild: no panic; a file that is built is the same after it is written in each form and built again.
func FuzzBuild(f *testing.F) {
	f.Add([]byte(written))
	variants(func(_ string, file *File, _ ...string) {
		if len(file.Keyframes) < 3 {
			for _, text := range forms(f, file) {
				f.Add(text)
			}
		}
	})
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Build(text)
		if err != nil {
			if _, ok := errors.AsType[*TextError](err); !ok {
				t.Errorf("%#v", err)
			}
			return
		}
		want, err := Append(nil, file)
		if err != nil {
			return // what only the layout of a file can hold
		}
		for form, text := range forms(t, file) {
			got, err := Build(text)
			if err != nil {
				t.Fatalf("%s: %v\n%s", form, err, text)
			}
			if again, err := Append(nil, got); err != nil || !bytes.Equal(again, want) {
				t.Errorf("%s: %v\n%x\n%x\n%s", form, err, want, again, text)
			}
		}
	})
}
