package repertoire

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"kennel/edge/anim/clip"
)

// Way is one way to show a mood: what plays on a body that has a part.
type Way struct {
	With    string `json:"with"`              // full name of a part, or of a group of parts, of the structure tree
	Trigger string `json:"trigger,omitempty"` // one of this and
	Motion  string `json:"motion,omitempty"`  // a motion of the body's own library
}

// Moods are the ways to show each mood, the best one first.
type Moods map[string][]Way

//go:embed moods.json
var moods []byte

// AllMoods returns the table of moods. It is read once and shared: callers do not change it.
var AllMoods = sync.OnceValues(func() (Moods, error) {
	l, err := Library()
	if err != nil {
		return nil, err
	}
	return ParseMoods(moods, l)
})

// ParseMoods reads a table of moods. clip.ErrClip for unknown fields, and for ways that name no part, no trigger of the library, or not one thing to play.
func ParseMoods(b []byte, l *clip.Library) (Moods, error) {
	var m Moods
	if err := clip.Strict(b, &m); err != nil {
		return nil, fmt.Errorf("moods: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		for i, w := range m[name] {
			_, known := l.Triggers[w.Trigger]
			switch {
			case !strings.HasPrefix(w.With, "robot."):
				return nil, fmt.Errorf("%w: moods: %.40s[%d].with: expected the full name of a part, found %.60q", clip.ErrClip, name, i, w.With)
			case (w.Trigger == "") == (w.Motion == ""):
				return nil, fmt.Errorf("%w: moods: %.40s[%d]: expected a trigger or a motion, found %.60q and %.60q", clip.ErrClip, name, i, w.Trigger, w.Motion)
			case w.Trigger != "" && !known:
				return nil, fmt.Errorf("%w: moods: %.40s[%d].trigger: expected a trigger of the library, found %.60q", clip.ErrClip, name, i, w.Trigger)
			}
		}
	}
	return m, nil
}

// Way returns how a mood is shown by a body, by the full names of its parts; false if there is no such mood, or no way for this body.
func (m Moods) Way(mood string, parts []string) (Way, bool) {
	for _, w := range m[mood] {
		if slices.ContainsFunc(parts, func(p string) bool {
			rest, ok := strings.CutPrefix(p, w.With)
			return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
		}) {
			return w, true
		}
	}
	return Way{}, false
}
