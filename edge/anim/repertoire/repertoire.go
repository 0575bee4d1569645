// Package repertoire has the clips that come with Kennel: looks, greetings, moods, and what a robot does at its charger, in a hand, for timers, the weather, a dance and a fault.
//
// clips/ has them in the text form that people edit, several in a file whose name begins theirs (part of VEC-TRG-05); groups/ says which of them a trigger draws from; moods.json says which
// trigger or motion shows a mood on which kind of body.
// lights/ has animations of the backpack's lights in the robots' own form, which are clips too, and a trigger of its name for each that BackpackAnimationTriggerMap.json leaves out (VEC-LGT-07).
// No clip of an original robot is among them. The sounds that they name are in edge/sound/palette.
package repertoire

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"kennel/edge/anim/clip"
	"kennel/edge/face/screen"
	"kennel/edge/face/sprite"
)

//go:embed clips/*.clip groups/*.json lights/*.json
var files embed.FS

// The files that map triggers to groups, and to the lights of the backpack.
const (
	triggerMap  = "AnimationTriggerMap.json"
	backpackMap = "BackpackAnimationTriggerMap.json"
)

// lightsPrefix begins the names of the clips, and with ag_ before it of the groups, of lights.
const lightsPrefix = "lights_"

// Library returns all clips, groups and triggers. It is read once and shared: callers do not change it.
var Library = sync.OnceValues(func() (*clip.Library, error) {
	l := clip.NewLibrary()
	var lights map[string]string
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := files.ReadFile(name)
		if err == nil {
			switch dir, base := path.Split(name); {
			case dir == "lights/":
				err = addLights(l, strings.TrimSuffix(base, ".json"), b)
			case base == backpackMap:
				lights, err = clip.ParseTriggers(b)
			default:
				err = add(l, base, b)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	mapLights(l, lights)
	return l, errors.Join(append(l.Missing(), err)...)
})

// Sprites returns the pictures that clips show: a robot's own, from the sources in their order, and then Kennel's, which screen.Sprite draws.
func Sprites(own ...sprite.Source) *sprite.Set {
	return sprite.NewSet(append(own, screen.Sprite)...)
}

// addLights adds an animation of the backpack's lights as a clip with a group of its own (VEC-LGT-01).
func addLights(l *clip.Library, name string, b []byte) error {
	p, err := clip.ParsePattern(b)
	if err != nil {
		return err
	}
	c := p.Clip(lightsPrefix + name)
	l.Groups["ag_"+c.Name] = []clip.Choice{{Name: c.Name, Weight: 1, Mood: clip.AnyMood}}
	return l.Add([]clip.Clip{c})
}

// mapLights adds the triggers of lights: those of the map, and for a file that it does not name the file's own name with a capital (VEC-LGT-07).
func mapLights(l *clip.Library, triggers map[string]string) {
	named := map[string]bool{}
	for trigger, file := range triggers {
		l.Triggers[trigger], named[file] = "ag_"+lightsPrefix+file, true
	}
	for group := range l.Groups {
		if file, is := strings.CutPrefix(group, "ag_"+lightsPrefix); is && !named[file] {
			l.Triggers[strings.ToUpper(file[:1])+file[1:]] = group
		}
	}
}

// add adds what one file has.
func add(l *clip.Library, name string, b []byte) error {
	base, kind, _ := strings.Cut(name, ".")
	if kind == "clip" {
		clips, err := clip.ParseText(b)
		if err != nil {
			return err
		}
		for _, c := range clips {
			if !strings.HasPrefix(base, "anim_") || !strings.HasPrefix(c.Name, base) {
				return fmt.Errorf("clip %s: expected a name that begins with the file's, anim_ at first", c.Name)
			}
		}
		return l.Add(clips)
	}
	if name == triggerMap {
		triggers, err := clip.ParseTriggers(b)
		l.Triggers = triggers
		return err
	}
	if !strings.HasPrefix(base, "ag_") {
		return errors.New("expected a name that begins with ag_")
	}
	choices, err := clip.ParseGroup(b)
	l.Groups[base] = choices
	return err
}
