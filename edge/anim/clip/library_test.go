package clip

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestGroups: group and map files load, and wrong ones are refused (VEC-TRG-02, 03).
func TestGroups(t *testing.T) {
	got, err := ParseGroup([]byte(`{"animations": [{"Name": "a"}, {"Name": "b", "Weight": 0.5, "Mood": "HighStim", "CooldownTime_Sec": 2.5, "UseHeadAngle": true, "HeadAngleMin_Deg": -25, "HeadAngleMax_Deg": 10}]}`))
	if err != nil || len(got) != 2 || got[0] != (Choice{Name: "a", Weight: 1, Mood: "Default"}) || got[1] != (Choice{"b", 0.5, "HighStim", 2.5, true, -25, 10}) {
		t.Errorf("%v %+v", err, got)
	}
	for text, where := range map[string]string{
		`{"animations": [{"Name": "a", "Weight": -1}]}`:                                                       "animations[0].Weight",
		`{"animations": [{"Name": "a"}, {"Weight": 1}]}`:                                                      "animations[1].Name",
		`{"animations": [{"Name": "a", "CooldownTime_Sec": -1}]}`:                                             "CooldownTime_Sec",
		`{"animations": [{"Name": "a", "UseHeadAngle": true, "HeadAngleMin_Deg": 3, "HeadAngleMax_Deg": 2}]}`: "HeadAngleMax_Deg",
		`{"animations": [{"Name": 3}]}`:                                                                       "Name",
		`{"animations": [{"Name": "a", "Wait": 3}]}`:                                                          "Wait",
		"{\n\"animations\": 3}":                                                                               "line 2,",
		`{"animations": []} 3`:                                                                                "line 1,",
	} {
		if _, err := ParseGroup([]byte(text)); !errors.Is(err, ErrClip) || !strings.Contains(err.Error(), where) {
			t.Errorf("%s: %v, want %s", text, err, where)
		}
	}
	triggers, err := ParseTriggers([]byte(`[{"CladEvent": "Hello", "AnimName": "ag_hello"}, {"CladEvent": "Bye", "AnimName": "ag_bye"}]`))
	if err != nil || triggers["Hello"] != "ag_hello" || len(triggers) != 2 {
		t.Errorf("%v %v", err, triggers)
	}
	for _, text := range []string{`[{"CladEvent": "a", "AnimName": "b"}, {"CladEvent": "a", "AnimName": "c"}]`, `[{"CladEvent": "a"}]`, `{}`, `[{"CladEvent": "a", "AnimName": "b", "x": 1}]`} {
		if _, err := ParseTriggers([]byte(text)); !errors.Is(err, ErrClip) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// shelf is a library with a group of each kind.
func shelf(t *testing.T) *Library {
	t.Helper()
	l := NewLibrary()
	clips, err := ParseText([]byte("clip a\nclip b\nclip c\nclip high\nclip low\n"))
	if err != nil || l.Add(clips) != nil {
		t.Fatal(err)
	}
	l.Triggers["Weighted"], l.Groups["weighted"] = "weighted", []Choice{{Name: "a", Weight: 3, Mood: AnyMood}, {Name: "b", Weight: 1, Mood: AnyMood}, {Name: "c", Mood: AnyMood}}
	l.Triggers["Moody"], l.Groups["moody"] = "moody", []Choice{{Name: "a", Weight: 1, Mood: AnyMood}, {Name: "high", Weight: 1, Mood: "HighStim"}}
	l.Triggers["Resting"], l.Groups["resting"] = "resting", []Choice{{Name: "a", Weight: 1, Mood: AnyMood, Cooldown: 10}, {Name: "b", Weight: 1, Mood: AnyMood, Cooldown: 4}}
	l.Triggers["Head"], l.Groups["head"] = "head", []Choice{{Name: "high", Weight: 1, Mood: AnyMood, UseHead: true, HeadMin: 20, HeadMax: 45}, {Name: "low", Weight: 1, Mood: AnyMood, UseHead: true, HeadMin: -25, HeadMax: 0}}
	return l
}

// TestChoose: mood, cool-down, head and weight (VEC-TRG-04), the same draws for the same seed.
func TestChoose(t *testing.T) {
	l := shelf(t)
	draw := func(c *Chooser, now time.Duration, trigger, mood string, head float64) string {
		t.Helper()
		got, err := c.Choose(now, trigger, mood, head)
		if err != nil {
			t.Fatal(err)
		}
		return got.Name
	}
	c, again := NewChooser(l, 1), NewChooser(l, 1)
	count := map[string]int{}
	for range 4000 {
		x := draw(c, 0, "Weighted", AnyMood, 0)
		if x != draw(again, 0, "Weighted", AnyMood, 0) {
			t.Fatal("another draw for the same seed")
		}
		count[x]++
	}
	if count["a"] < 2850 || count["a"] > 3150 || count["c"] != 0 { // 3000 expected, standard deviation 27
		t.Errorf("%v", count)
	}
	if a, h, d := draw(c, 0, "Moody", "LowStim", 0), draw(c, 0, "Moody", "HighStim", 0), draw(c, 0, "Moody", AnyMood, 0); a != "a" || h != "high" || d != "a" {
		t.Errorf("%s %s %s", a, h, d)
	}
	first := draw(c, 0, "Resting", AnyMood, 0)
	if second := draw(c, time.Second, "Resting", AnyMood, 0); first == second {
		t.Errorf("%s twice", first)
	}
	if third := draw(c, 2*time.Second, "Resting", AnyMood, 0); third != "b" { // both rest, b shorter
		t.Errorf("%s", third)
	}
	if h, lo := draw(c, 0, "Head", AnyMood, 30), draw(c, 0, "Head", AnyMood, -25); h != "high" || lo != "low" {
		t.Errorf("%s %s", h, lo)
	}
	for _, trigger := range []string{"Head", "Nothing"} {
		if _, err := c.Choose(0, trigger, AnyMood, 10); !errors.Is(err, ErrNoClip) {
			t.Errorf("%s: %v", trigger, err)
		}
	}
	if m := l.Missing(); len(m) != 0 {
		t.Errorf("%v", m)
	}
	l.Triggers["Bye"] = "bye"
	l.Groups["moody"] = append(l.Groups["moody"], Choice{Name: "gone"})
	if m := l.Missing(); len(m) != 2 || !strings.Contains(m[0].Error(), "Bye") || !strings.Contains(m[1].Error(), "gone") {
		t.Errorf("%v", m)
	}
	if err := l.Add([]Clip{{Name: "a"}}); !errors.Is(err, ErrClip) {
		t.Error(err)
	}
}

// FuzzGroup: no file panics, and errors are of their kind.
func FuzzGroup(f *testing.F) {
	f.Add([]byte(`{"animations": [{"Name": "a", "Weight": 2}]}`))
	f.Add([]byte(`[{"CladEvent": "Hello", "AnimName": "ag_hello"}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := ParseGroup(b); err != nil && !errors.Is(err, ErrClip) {
			t.Fatal(err)
		}
		if _, err := ParseTriggers(b); err != nil && !errors.Is(err, ErrClip) {
			t.Fatal(err)
		}
	})
}
