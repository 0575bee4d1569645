// Package repertoire has the clips that come with Kennel: looks, greetings, moods, and what a robot does at its charger, in a hand, for timers and the weather.
//
// clips/ has them in the text form that people edit, several in a file whose name begins theirs (part of VEC-TRG-05); groups/ says which of them a trigger draws from; moods.json says which
// trigger or motion shows a mood on which kind of body.
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
)

//go:embed clips/*.clip groups/*.json
var files embed.FS

// triggerMap is the file that maps triggers to groups.
const triggerMap = "AnimationTriggerMap.json"

// Library returns all clips, groups and triggers. It is read once and shared: callers do not change it.
var Library = sync.OnceValues(func() (*clip.Library, error) {
	l := clip.NewLibrary()
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := files.ReadFile(name)
		if err == nil {
			err = add(l, path.Base(name), b)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	return l, errors.Join(append(l.Missing(), err)...)
})

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
