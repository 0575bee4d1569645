package cubelights

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	"kennel/edge/anim/clip"
	"kennel/edge/anim/repertoire"
)

//go:embed lights/*.json
var files embed.FS

// The files of a library that are not animations.
const (
	triggerMap = "CubeAnimationTriggerMap.json"
	spinnerMap = "cubeSpinnerLightMaps.json"
)

// Library holds animations by the names of their files, and triggers. It is not changed once it is in use, so that goroutines may share it.
type Library struct {
	Animations map[string]Animation
	Triggers   map[string]string // to animations
	Spinner    Spinner
}

// Kennel returns the animations that come with Kennel. It is read once and shared: callers do not change it.
var Kennel = sync.OnceValues(func() (*Library, error) {
	l := &Library{Animations: map[string]Animation{}, Triggers: map[string]string{}}
	entries, err := files.ReadDir("lights")
	if err != nil {
		return nil, err
	}
	named := map[string]string{}
	for _, e := range entries {
		b, err := files.ReadFile(path.Join("lights", e.Name()))
		if err == nil {
			switch e.Name() {
			case triggerMap:
				named, err = clip.ParseTriggers(b)
			case spinnerMap:
				l.Spinner, err = ParseSpinner(b)
			default:
				l.Animations[strings.TrimSuffix(e.Name(), ".json")], err = Parse(b)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
	}
	l.trigger(named)
	return l, errors.Join(l.missing()...)
})

// trigger adds the triggers of a map, and for a file that it does not name the file's own name with a capital (VEC-LGT-07).
func (l *Library) trigger(named map[string]string) {
	in := map[string]bool{}
	for trigger, file := range named {
		l.Triggers[trigger], in[file] = file, true
	}
	for file := range l.Animations {
		if !in[file] {
			l.Triggers[strings.ToUpper(file[:1])+file[1:]] = file
		}
	}
}

// missing returns what is named and not there.
func (l *Library) missing() (missing []error) {
	for trigger, file := range l.Triggers {
		if l.Animations[file] == nil {
			missing = append(missing, fmt.Errorf("%w: trigger %.60s: expected an animation, found no %.60s", clip.ErrClip, trigger, file))
		}
	}
	backpack, err := repertoire.Library()
	if err != nil {
		return append(missing, err)
	}
	return append(missing, l.Spinner.Missing(backpack.Triggers, l.Triggers)...)
}

// Spinner says which lights of backpack and cube each event of the spinner game shows (VEC-LGT-03). Robots never offered the game: nothing plays it.
type Spinner struct {
	Maps  []SpinnerMap `json:"lightMap"` // alternatives
	Error string       `json:"playerErrorCubeLights"`
	Start string       `json:"startGameCubeLights"`
}

// SpinnerMap is one of the alternatives: triggers of lights.
type SpinnerMap struct {
	Backpack struct {
		Celebration  string `json:"celebration"`
		HoldTarget   string `json:"holdTarget"`
		SelectTarget string `json:"selectTarget"`
	} `json:"backpackLights"`
	Cube struct {
		Celebration string `json:"celebration"`
		Cycle       string `json:"cycle"`
		Locked      string `json:"locked"`
		LockedPulse string `json:"lockedPulse"`
		LockIn      string `json:"lockIn"`
	} `json:"cubeLights"`
	Color string `json:"debugColorName"`
}

// ParseSpinner reads the file of the game. clip.ErrClip, with its place, for unknown fields and more than 64 alternatives.
func ParseSpinner(b []byte) (s Spinner, err error) {
	if err := clip.Strict(b, &s); err != nil {
		return s, err
	}
	if len(s.Maps) > maxParts {
		return s, fmt.Errorf("%w: lightMap: expected at most %d, found %d", clip.ErrClip, maxParts, len(s.Maps))
	}
	return s, nil
}

// Missing returns the events whose trigger is not among those of the backpack or the cube, as errors that say which (VEC-LGT-03).
func (s *Spinner) Missing(backpack, cube map[string]string) (missing []error) {
	check := func(place string, triggers map[string]string, event, trigger string) {
		if triggers[trigger] == "" {
			missing = append(missing, fmt.Errorf("%w: %s%s: expected a trigger of lights, found %.60q", clip.ErrClip, place, event, trigger))
		}
	}
	check("", cube, "playerErrorCubeLights", s.Error)
	check("", cube, "startGameCubeLights", s.Start)
	for i := range s.Maps {
		b, c := &s.Maps[i].Backpack, &s.Maps[i].Cube
		place := fmt.Sprintf("lightMap[%d].backpackLights.", i)
		check(place, backpack, "celebration", b.Celebration)
		check(place, backpack, "holdTarget", b.HoldTarget)
		check(place, backpack, "selectTarget", b.SelectTarget)
		place = fmt.Sprintf("lightMap[%d].cubeLights.", i)
		check(place, cube, "celebration", c.Celebration)
		check(place, cube, "cycle", c.Cycle)
		check(place, cube, "locked", c.Locked)
		check(place, cube, "lockedPulse", c.LockedPulse)
		check(place, cube, "lockIn", c.LockIn)
	}
	return missing
}
