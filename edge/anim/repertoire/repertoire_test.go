package repertoire

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/anim/stage"
	"kennel/edge/face"
	"kennel/edge/face/facetest"
	"kennel/edge/face/sprite"
)

// TestLibrary: every clip is one that a Vector can play, every trigger has clips, and every clip is drawn by some trigger (VEC-TRG-02, part of 05, 14).
func TestLibrary(t *testing.T) {
	l, err := Library()
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[string]bool{}
	for _, group := range l.Triggers {
		for _, c := range l.Groups[group] {
			drawn[c.Name] = true
		}
	}
	for name, c := range l.Clips {
		for _, p := range append(c.Check(clip.Vector), c.Unexpected()...) {
			t.Error(p)
		}
		if !drawn[name] {
			t.Errorf("no trigger draws %s", name)
		}
		if face := !strings.HasPrefix(name, "anim_wheels") && !strings.HasPrefix(name, lightsPrefix); face && c.Parts()&clip.Display == 0 || c.Span() < 200*time.Millisecond || c.Span() > 10*time.Second {
			t.Errorf("%s: %v, %v", name, c.Parts(), c.Span())
		}
	}
	of := map[string]int{}
	for name, c := range l.Clips {
		family, _, _ := strings.Cut(strings.TrimPrefix(name, "anim_"), "_")
		if of[family]++; (family == "held" || family == "timer" || strings.HasPrefix(name, "anim_charger_charging")) && c.Parts()&clip.Wheels != 0 {
			t.Errorf("%s drives", name)
		}
	}
	if want := map[string]int{"look": 8, "greeting": 7, "mood": 16, "charger": 6, "held": 5, "timer": 4, "weather": 8, "dance": 2, "fault": 1, "wheels": 6, "lights": 5}; !maps.Equal(of, want) {
		t.Errorf("clips %v, want %v", of, want)
	}
}

// TestDistinct: two clips of the 63 for face and body are never alike: for at least a quarter of the longer one's time they show or move something else.
func TestDistinct(t *testing.T) {
	l, err := Library()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	films := map[string][]clip.Frame{}
	for name, c := range l.Clips {
		if strings.HasPrefix(name, lightsPrefix) {
			continue
		}
		names = append(names, name)
		p := clip.NewPlayer(clip.Vector, &clip.Locks{}, 1)
		if err := p.Start(0, c, clip.Options{Lift: 0.032}); err != nil {
			t.Fatal(err)
		}
		f := clip.Frame{Lift: 0.032}
		for now := time.Duration(0); now < c.Span(); now += clip.Step {
			p.Step(now, &f, nil)
			films[name] = append(films[name], f)
		}
	}
	if len(names) != 63 {
		t.Errorf("%d clips, want 63", len(names))
	}
	slices.Sort(names)
	for i, one := range names {
		for _, other := range names[:i] {
			if share := unlike(films[one], films[other]); share < 0.25 {
				t.Errorf("%s and %s differ for %.0f %% of their time", one, other, 100*share)
			}
		}
	}
}

// unlike returns for which share of the longer film a person sees another robot.
func unlike(a, b []clip.Frame) float64 {
	if len(a) < len(b) {
		a, b = b, a
	}
	n := len(a) - len(b)
	for i := range b {
		if differs(&a[i], &b[i]) {
			n++
		}
	}
	return float64(n) / float64(len(a))
}

// differs reports whether a person could tell two moments apart: by 2 degrees of the head, 3 mm of the lift, 1 cm/s, 5 degrees a second, a tenth of a light, or by the
// face: 4 pixels, 5 degrees, or a tenth of anything else.
func differs(a, b *clip.Frame) bool {
	far := func(x, y, by float64) bool { return math.Abs(x-y) > by }
	if far(a.Head, b.Head, 2*math.Pi/180) || far(a.Lift, b.Lift, 0.003) || far(a.Speed, b.Speed, 0.01) || far(a.Turn, b.Turn, 5*math.Pi/180) {
		return true
	}
	for i := range a.Lights {
		for c := range a.Lights[i] {
			if far(float64(a.Lights[i][c]), float64(b.Lights[i][c]), 0.1) {
				return true
			}
		}
	}
	seen := func(fields []face.Field, a, b []float32) bool {
		for i, f := range fields {
			by := 0.1
			switch f.Max {
			case face.Width, face.Height:
				by = 4
			case 360, 45:
				by = 5
			}
			if far(float64(a[i]), float64(b[i]), by) {
				return true
			}
		}
		return false
	}
	return seen(face.WholeFields[:], a.Face.Whole[:], b.Face.Whole[:]) || seen(face.EyeFields[:], a.Face.Left[:], b.Face.Left[:]) || seen(face.EyeFields[:], a.Face.Right[:], b.Face.Right[:])
}

// TestLights: animations of the backpack's lights are clips of lights alone, and each has a trigger: one of the map, or its file's name (VEC-LGT-01, VEC-LGT-07).
func TestLights(t *testing.T) {
	l, err := Library()
	if err != nil {
		t.Fatal(err)
	}
	c := clip.NewChooser(l, 1)
	for trigger, name := range map[string]string{"BackpackAlert": "lights_alert", "BackpackBreathe": "lights_breathe", "BackpackParty": "lights_party", "BackpackThinking": "lights_thinking", "Rainbow": "lights_rainbow"} {
		got, err := c.Choose(0, trigger, clip.AnyMood, 0)
		if err != nil || got.Name != name || got.Parts() != clip.BackpackLights {
			t.Errorf("%s: %+v, %v", trigger, got, err)
		}
	}
	if l.Triggers["Alert"] != "" {
		t.Error("a file that the map names has a second trigger")
	}
}

// TestPlay plays every clip to its end on one robot: the face is always one that can be drawn, joints keep to their limits, and each clip fires what it has.
func TestPlay(t *testing.T) {
	l, err := Library()
	if err != nil {
		t.Fatal(err)
	}
	p := clip.NewPlayer(clip.Vector, &clip.Locks{}, 1)
	now := time.Duration(0)
	head, lift := 0.0, 0.032
	for _, name := range slices.Sorted(maps.Keys(l.Clips)) {
		c := l.Clips[name]
		if err := p.Start(now, c, clip.Options{Level: clip.Behavior, Head: head, Lift: lift}); err != nil {
			t.Fatal(err)
		}
		fired := []clip.Fired(nil)
		var f clip.Frame
		for end := now + c.Span() + clip.Step; now < end; now += clip.Step {
			fired = p.Step(now, &f, fired)
			if err := f.Face.Check(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if f.Has&clip.HeadMotor != 0 {
				head = f.Head
			}
			if f.Has&clip.LiftMotor != 0 {
				lift = f.Lift
			}
			if head < -0.786 || head > 0.384 || lift < 0.0319 || lift > 0.0921 {
				t.Fatalf("%s: head %v, lift %v", name, head, lift)
			}
		}
		k := &c.Tracks
		if want := len(k.Audio) + len(k.Record) + len(k.Return) + len(k.Sprites) + len(k.Boxes) + 1; len(fired) != want || fired[len(fired)-1].End != clip.Finished {
			t.Errorf("%s fired %d, want %d", name, len(fired), want)
		}
	}
}

// TestMoodPictures compares the display in the middle of each mood's clip with a stored picture: what a person sees of ten moods and more (issue 37, what must hold 4).
func TestMoodPictures(t *testing.T) {
	l, err := Library()
	if err != nil {
		t.Fatal(err)
	}
	moods, err := AllMoods()
	if err != nil {
		t.Fatal(err)
	}
	d := face.NewDrawer(face.Standard)
	var shots []facetest.Shot
	for _, mood := range slices.Sorted(maps.Keys(moods)) {
		w, ok := moods.Way(mood, []string{"robot.body.head.display", "robot.body.head.pitch"})
		if !ok {
			t.Errorf("%s has no way for a Vector", mood)
			continue
		}
		c := l.Clips[l.Groups[l.Triggers[w.Trigger]][0].Name]
		p := clip.NewPlayer(clip.Vector, &clip.Locks{}, 1)
		if err := p.Start(0, c, clip.Options{Lift: 0.032}); err != nil {
			t.Fatal(err)
		}
		var f clip.Frame
		for now := time.Duration(0); now <= c.Span()/2; now += clip.Step {
			p.Step(now, &f, nil)
		}
		pic := &face.Picture{}
		d.Draw(pic, &f.Face, face.Teal)
		shots = append(shots, facetest.Shot{Name: mood, Picture: pic})
	}
	if len(shots) < 10 {
		t.Errorf("%d moods", len(shots))
	}
	facetest.Golden(t, filepath.Join("testdata", "moods.png"), 4, shots)
}

// TestSprites compares the display in four moments of each clip with sprites with stored pictures. Every clip's sprites are there and fit, begin with face_ if they are
// sequences (part of VEC-TRG-05), and one moment looks unlike another. All of them take a tenth of what a robot keeps.
func TestSprites(t *testing.T) {
	l, err := Library()
	if err != nil {
		t.Fatal(err)
	}
	d, set := face.NewDrawer(face.Standard), Sprites()
	var shots []facetest.Shot
	kept := 0
	for _, name := range slices.Sorted(maps.Keys(l.Clips)) {
		c := l.Clips[name]
		s, problems := stage.New(c, c.Span(), set.Get)
		for _, p := range problems {
			t.Error(p)
		}
		if s == nil {
			continue
		}
		for _, k := range c.Tracks.Sprites {
			if seq, err := set.Get(k.Sequence); err == nil {
				kept += seq.Bytes()
			}
			if !strings.HasPrefix(k.Sequence, "face_") {
				t.Errorf("%s: %s", name, k.Sequence)
			}
		}
		p := clip.NewPlayer(clip.Vector, &clip.Locks{}, 1)
		if err := p.Start(0, c, clip.Options{Lift: 0.032}); err != nil {
			t.Fatal(err)
		}
		var f clip.Frame
		const moments = 4
		for now := time.Duration(0); now < c.Span(); now += clip.Step {
			p.Step(now, &f, nil)
			if n := int(now * (moments + 1) / c.Span()); n == int((now-clip.Step)*(moments+1)/c.Span()) || n == 0 {
				continue
			}
			pic := &face.Picture{}
			d.Draw(pic, &f.Face, face.Teal)
			s.Draw(pic, f.At, face.Teal)
			shots = append(shots, facetest.Shot{Name: fmt.Sprintf("%s at %v", name, now), Picture: pic})
		}
	}
	if kept > sprite.MaxKept/10 {
		t.Errorf("sprites of the whole display take %d bytes", kept)
	}
	if len(shots) != 6*4 {
		t.Errorf("%d pictures, want 24", len(shots))
	}
	facetest.Golden(t, filepath.Join("testdata", "sprites.png"), 4, shots)
}

// TestMoods: every trigger has a clip in every mood and wherever the head is.
func TestMoods(t *testing.T) {
	l, err := Library()
	if err != nil {
		t.Fatal(err)
	}
	c := clip.NewChooser(l, 1)
	for trigger := range l.Triggers {
		for _, mood := range []string{clip.AnyMood, "LowStim", "MedStim", "HighStim", "Frustrated"} {
			for _, head := range []float64{-22, 0, 45} {
				if _, err := c.Choose(0, trigger, mood, head); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestWays: the table names what there is, a body gets the first way that it has the part for, and a table that names nothing is refused with its place.
func TestWays(t *testing.T) {
	m, err := AllMoods()
	if err != nil || len(m) < 6 {
		t.Fatalf("%d moods, %v", len(m), err)
	}
	for _, tc := range []struct {
		mood  string
		parts []string
		want  Way
	}{
		{"happy", []string{"robot", "robot.body.wheel[left]", "robot.body.head.display"}, Way{With: "robot.body.head.display", Trigger: "MoodHappy"}},
		{"happy", []string{"robot", "robot.body.tail.yaw"}, Way{With: "robot.body.tail", Motion: "wag"}},
		{"happy", []string{"robot.body.wheel[left]"}, Way{With: "robot.body.wheel", Trigger: "WheelsHappy"}},
		{"happy", []string{"robot.body.wheelbarrow"}, Way{}},
		{"glad", []string{"robot.body.wheel[left]"}, Way{}},
	} {
		if got, ok := m.Way(tc.mood, tc.parts); got != tc.want || ok != (tc.want != Way{}) {
			t.Errorf("%s on %v: %+v", tc.mood, tc.parts, got)
		}
	}
	l, _ := Library()
	for _, wrong := range []string{`{"a": [{"with": "head", "trigger": "MoodSad"}]}`, `{"a": [{"with": "robot.x"}]}`, `{"a": [{"with": "robot.x", "trigger": "None"}]}`,
		`{"a": [{"with": "robot.x", "trigger": "MoodSad", "motion": "wag"}]}`, `{"a": [{"when": 1}]}`, `{`} {
		if _, err := ParseMoods([]byte(wrong), l); !errors.Is(err, clip.ErrClip) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// FuzzMoods: a table is refused as clip.ErrClip, or each of its ways names a part and one thing to play.
func FuzzMoods(f *testing.F) {
	f.Add(moods)
	f.Add([]byte(`{"a": [{"with": "robot.x", "motion": "wag"}], "b": null}`))
	l, err := Library()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseMoods(b, l)
		if err != nil {
			if !errors.Is(err, clip.ErrClip) {
				t.Fatal(err)
			}
			return
		}
		for name, ways := range m {
			for _, w := range ways {
				if got, ok := m.Way(name, []string{w.With}); !ok || (got.Trigger == "") == (got.Motion == "") {
					t.Errorf("%s with %s: %+v", name, w.With, got)
				}
			}
		}
	})
}
