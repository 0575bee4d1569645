package cubelights

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/cube"
)

// two is a file of two patterns: one that nothing replaces, and one that turns until it is stopped.
const two = `[
	{"canBeOverridden": false, "duration_ms": 500, "patternDebugName": "first", "pattern": {
		"onColors": [[255, 0, 0, 255], [0, 255, 0, 255], [0, 0, 255, 255], [9, 8, 7, 255]], "offColors": [[0, 0, 0, 255], [0, 0, 0, 255], [0, 0, 0, 255], [0, 0, 0, 255]],
		"onPeriod_ms": [90, 60, 30, 30], "offPeriod_ms": [30, 60, 90, 30], "transitionOnPeriod_ms": [0, 0, 0, 0], "transitionOffPeriod_ms": [0, 0, 0, 0], "offset": [0, 0, 30, 0], "rotate": false}},
	{"duration_ms": 0, "pattern": {
		"onColors": [[1, 1, 1, 255], [2, 2, 2, 255], [3, 3, 3, 255], [4, 4, 4, 255]], "offColors": [[0, 0, 0, 255], [0, 0, 0, 255], [0, 0, 0, 255], [0, 0, 0, 255]],
		"onPeriod_ms": [100, 100, 100, 100], "offPeriod_ms": [0, 100, 0, 0], "transitionOnPeriod_ms": [0, 0, 0, 0], "transitionOffPeriod_ms": [0, 0, 0, 0], "offset": [0, 0, 0, 0], "rotate": true}}
]`

// TestParse: every field of a file, and what it is if it is left out (part of VEC-LGT-02).
func TestParse(t *testing.T) {
	a, err := Parse([]byte(two))
	if err != nil || len(a) != 2 {
		t.Fatalf("%d parts, %v", len(a), err)
	}
	if p := a[0]; p.Name != "first" || !p.Fixed || p.Takes != 500*time.Millisecond || p.Rotates ||
		p.Pattern[2] != (cube.Light{On: cube.RGB{B: 255}, OnFor: 30 * time.Millisecond, OffFor: 90 * time.Millisecond, Offset: 30 * time.Millisecond}) {
		t.Errorf("%+v", p)
	}
	if p := a[1]; p.Name != "" || p.Fixed || p.Takes != 0 || !p.Rotates || p.Period != 200*time.Millisecond {
		t.Errorf("%+v", p)
	}
	for wrong, place := range map[string]string{
		`500|-1`:                                 "[0].duration_ms",
		`500|600001`:                             "[0].duration_ms",
		`[9, 8, 7, 255]|[9, 8, 256, 255]`:        "[0].pattern.onColors[3][2]",
		`[9, 8, 7, 255]|[9, 8, 7]`:               "[0].pattern.onColors[3]",
		`, [9, 8, 7, 255]|`:                      "[0].pattern.onColors",
		`[90, 60, 30, 30]|[90, 60, 30]`:          "[0].pattern.onPeriod_ms",
		`[90, 60, 30, 30]|[4000000000, 0, 0, 0]`: "[0].pattern",
		`"offset"|"offsets"`:                     "line",
		`[0, 100, 0, 0]|[0, -1, 0, 0]`:           "line",
		`[100, 100, 100, 100], "offPeriod_ms": [0, 100, 0, 0]|[0, 0, 0, 0], "offPeriod_ms": [0, 0, 0, 0]`: "[1].pattern.rotate",
	} {
		from, to, _ := strings.Cut(wrong, "|")
		text := strings.Replace(two, from, to, 1)
		if text == two {
			t.Fatalf("%s changes nothing", wrong)
		}
		if _, err := Parse([]byte(text)); !errors.Is(err, clip.ErrClip) || !strings.Contains(err.Error(), place) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	for _, wrong := range []string{"[]", "{}", `[{"duration_ms": 1}]`, "[" + strings.Repeat(`{"duration_ms": 1},`, 70) + "{}]", strings.Repeat(" ", MaxFile+1)} {
		if _, err := Parse([]byte(wrong)); !errors.Is(err, clip.ErrClip) {
			t.Errorf("%.40s: %v", wrong, err)
		}
	}
}

// TestPlay: parts come one after the other, each for its time or until it is stopped; a pattern that rotates moves its colours on by one light each period; then the lights
// are dark (part of VEC-LGT-02).
func TestPlay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := Parse([]byte(two))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var shown []string
		show := func(_ context.Context, p cube.Pattern) error {
			shown = append(shown, fmt.Sprintf("%d: %d %d %d %d", time.Since(began).Milliseconds(), p[0].On.R, p[1].On.R, p[2].On.R, p[3].On.R))
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1350*time.Millisecond)
		defer cancel()
		if err := a.Play(ctx, show); err != nil {
			t.Error(err)
		}
		want := []string{"0: 255 0 0 9", "500: 1 2 3 4", "700: 4 1 2 3", "900: 3 4 1 2", "1100: 2 3 4 1", "1300: 1 2 3 4", "1350: 0 0 0 0"}
		if !slices.Equal(shown, want) {
			t.Errorf("shown %q, want %q", shown, want)
		}
		a[1].Takes, began, shown = 500*time.Millisecond, time.Now(), nil
		if err := a[1:].Play(t.Context(), show); err != nil {
			t.Error(err)
		}
		if want := []string{"0: 1 2 3 4", "200: 4 1 2 3", "400: 3 4 1 2", "500: 0 0 0 0"}; !slices.Equal(shown, want) {
			t.Errorf("shown %q, want %q", shown, want)
		}
		if err := a.Play(t.Context(), func(context.Context, cube.Pattern) error { return cube.ErrLost }); !errors.Is(err, cube.ErrLost) {
			t.Errorf("a lost cube: %v", err)
		}
	})
}

// TestWire: a pattern arrives as commands of three steps of six bytes each, and one that says where each light starts (VEC-LGT-04).
func TestWire(t *testing.T) {
	a, err := Parse([]byte(two))
	if err != nil {
		t.Fatal(err)
	}
	all, err := cube.Compile(a[0].Pattern)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range all {
		got = append(got, hex.EncodeToString(c.Append(nil)))
	}
	want := []string{
		"01" + "00ff00000003" + "010000000001" + "0200ff000002", // red for 3 ticks of 30 ms, dark for 1; green
		"01" + "030000000002" + "040000000003" + "050000ff0001", // its dark; the blue light's clock is 30 ms ahead
		"01" + "060908070001" + "070000000001" + "070000000001",
		"00" + "00020406",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestKennel: each of Kennel's animations has a trigger, of the map or by its file's name (part of VEC-LGT-02, VEC-LGT-07); the spinner's events have lights, and one that has none is told
// (VEC-LGT-03).
func TestKennel(t *testing.T) {
	l, err := Kennel()
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Animations) != 8 || l.Triggers["CubeCelebrate"] != "celebrate" || l.Triggers["Begin"] != "begin" || l.Triggers["Celebrate"] != "" {
		t.Errorf("%d animations, triggers %v", len(l.Animations), l.Triggers)
	}
	if named := slices.Sorted(maps.Values(l.Triggers)); !slices.Equal(named, slices.Sorted(maps.Keys(l.Animations))) {
		t.Errorf("triggers name %v", named)
	}
	s := l.Spinner
	if len(s.Maps) != 1 || s.Error != "CubeWrong" || s.Start != "Begin" || s.Maps[0].Cube.LockedPulse != "CubeLockedPulse" || s.Maps[0].Backpack.HoldTarget != "BackpackBreathe" {
		t.Errorf("%+v", s)
	}
	if missing := s.Missing(map[string]string{}, map[string]string{}); len(missing) != 10 {
		t.Errorf("%d of 10 events: %v", len(missing), missing)
	}
	backpack := map[string]string{"BackpackParty": "x", "BackpackBreathe": "x", "BackpackThinking": "x"}
	s.Maps = slices.Clone(s.Maps)
	s.Maps[0].Cube.LockIn, s.Maps[0].Backpack.SelectTarget = "None", "CubeWrong"
	missing := errors.Join(s.Missing(backpack, l.Triggers)...)
	if got := fmt.Sprint(missing); strings.Count(got, "\n") != 1 || !strings.Contains(got, "lightMap[0].cubeLights.lockIn") || !strings.Contains(got, "lightMap[0].backpackLights.selectTarget") || !errors.Is(missing, clip.ErrClip) {
		t.Errorf("missing: %v", missing)
	}
	if _, err := ParseSpinner([]byte(`{"lightMap": [{"cubeLights": {"spin": "A"}}]}`)); !errors.Is(err, clip.ErrClip) {
		t.Errorf("an event that is none: %v", err)
	}
}

// FuzzParse: a file is refused as clip.ErrClip, or each of its patterns is one that a cube can show.
func FuzzParse(f *testing.F) {
	f.Add([]byte(two))
	b, err := files.ReadFile("lights/celebrate.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Parse(b)
		if err != nil && !errors.Is(err, clip.ErrClip) {
			t.Fatal(err)
		}
		for i := range a {
			for n := range 5 {
				if _, err := cube.Compile(a[i].Turned(n)); err != nil {
					t.Errorf("part %d, period %d: %v", i, n, err)
				}
			}
		}
	})
}
