// Package bank holds the sounds of a robot and what its events do with them: play one of several, stop, change volumes and parameters.
//
//	text ─► Bank ─┐  later banks win
//	text ─► Bank ─┴► Engine ◄─ events, states, switches, parameters (clips, behaviours)
//	                   │
//	                   └► sound.Mixer
//
// A program posts events by number, the hash of their names (clip.SoundID). Game objects, one for clips and one for the sounds of motion, have switches,
// parameters and volumes of their own; states hold for all.
package bank

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"kennel/edge/anim/clip"
	"kennel/edge/sound"
	"kennel/edge/sound/synth"
)

// Errors of this package. Errors of a text are synth.ErrText.
var (
	ErrUnknown = errors.New("bank: unknown") // event or sound
	ErrBundle  = errors.New("sound bank bundle")
)

// MaxBanks is the most banks of a bundle.
const MaxBanks = 64

// Bank holds the sounds, events and switches of one file.
type Bank struct {
	Sounds   map[uint32]*Sample
	Events   map[uint32]*Event
	Switches map[uint32]*Thresholds
	Names    map[uint32]string // of every number that the bank uses
}

// Sample is a sound of a bank: made from text, or read from a WAV file. It is not safe for concurrent use.
type Sample struct {
	Name  string
	Text  *synth.Sound // nil for a file
	file  *sound.Sound
	ready *sound.Sound // at the rate that was asked for last
}

// At returns the samples at a rate, made at the first call.
func (s *Sample) At(rate int) (_ *sound.Sound, err error) {
	if s.ready == nil || s.ready.Rate != rate {
		if s.Text != nil {
			s.ready, err = s.Text.Render(rate)
		} else {
			s.ready, err = s.file.At(rate)
		}
	}
	return s.ready, err
}

// One returns a bank of one sound.
func One(name string, s *sound.Sound) *Bank {
	id := clip.SoundID(name)
	return &Bank{Sounds: map[uint32]*Sample{id: {Name: name, file: s}}, Names: map[uint32]string{id: name}}
}

// Event is a sequence of actions (part of VEC-SND-02).
type Event struct {
	Name    string
	Lively  bool // rarer and quieter with less stimulation (VEC-SND-05)
	Actions []Action
}

// Verb says what an action does.
type Verb uint8

// The verbs.
const (
	Play   Verb = iota // one of Choices, after the step before
	With               // the same, together with the step before
	Wait               // Value milliseconds before the next step
	Stop               // the sound or event Target of the game object; 0: all
	Volume             // of the game object, to Value
	Set                // parameter Target to Value, within Over milliseconds
	Mute               // the game object
	Unmute
)

var verbs = []string{"play", "with", "wait", "stop", "volume", "set", "mute", "unmute"}

// Action is one step of an event.
type Action struct {
	Do      Verb
	When    Condition
	Choices []Choice
	Target  uint32
	Value   float64
	Over    float64 // ms
}

// Choice is one of the sounds of a step.
type Choice struct {
	Sound        uint32
	Gain         float64
	Pitch, Speed float64 // factors
	Vary         float64 // cents by which the pitch varies up or down
	Loops        int
}

// Condition is when an action is carried out; the zero value is always.
type Condition struct {
	Group, State uint32 // the switch of the game object, or the state, has this value
	Parameter    uint32
	From, Below  float64 // the parameter's range
}

// Thresholds set a switch by the value of a parameter: States[0] below Values[0], and so on (part of VEC-SND-02).
type Thresholds struct {
	Parameter uint32
	Values    []float64
	States    []uint32
}

// Parse reads a bank. Its text has sounds (package synth), files, events and switches:
//
//	file   Kennel_Bark bark.wav                   # a WAV file beside the bank
//	switch Kennel_Energy by Robot_Vic_Stimulation calm 0.3 lively 0.7 wild
//	event  Kennel_Greeting lively
//	play   hello_1 | hello_2 gain=0.8 pitch=1.1 | hello_3 vary=50
//	wait   100
//	when   Kennel_Energy wild                     # or: when PARAMETER 0.5..1
//	play   cheer
//	always
//	stop   purr over=300
//	volume 0.5
//	set    Robot_Vic_Happy 1 over=500
//
// A sound is an event too, which plays it, unless an event has its name. Files are read from fsys; nil refuses them. synth.ErrText.
func Parse(b []byte, fsys fs.FS) (*Bank, error) {
	lines, err := synth.Split(b)
	if err != nil {
		return nil, err
	}
	k := &Bank{Sounds: map[uint32]*Sample{}, Events: map[uint32]*Event{}, Switches: map[uint32]*Thresholds{}, Names: map[uint32]string{}}
	for len(lines) > 0 {
		head := lines[0]
		switch head[0].Text {
		case "sound":
			var s synth.Sound
			if s, lines, err = synth.ParseSound(lines); err == nil {
				err = k.add(head[1], &Sample{Name: s.Name, Text: &s})
			}
		case "file":
			err = k.file(head, fsys)
			lines = lines[1:]
		case "switch":
			err = k.thresholds(head)
			lines = lines[1:]
		case "event":
			lines, err = k.event(lines)
		default:
			err = head[0].Errorf("expected sound, file, switch or event, found %.40q", head[0].Text)
		}
		if err != nil {
			return nil, err
		}
	}
	return k, nil
}

// id returns the number of a name, and notes it.
func (k *Bank) id(w synth.Word) (uint32, error) {
	name, err := w.Name()
	if err != nil {
		return 0, err
	}
	id := clip.SoundID(name)
	if other, ok := k.Names[id]; ok && !strings.EqualFold(other, name) {
		return 0, w.Errorf("expected a name whose number is free, found %s, which has the number of %s", name, other)
	}
	k.Names[id] = name
	return id, nil
}

func (k *Bank) add(w synth.Word, s *Sample) error {
	id, err := k.id(w)
	if err == nil && k.Sounds[id] != nil {
		err = w.Errorf("expected a name that is free, found %s again", w.Text)
	}
	k.Sounds[id] = s
	return err
}

// file reads a line: file NAME PATH.
func (k *Bank) file(words []synth.Word, fsys fs.FS) error {
	if len(words) != 3 || !fs.ValidPath(words[2].Text) || fsys == nil {
		return words[0].Errorf("expected file NAME PATH, of a file beside the bank, found %d words", len(words))
	}
	b, err := fs.ReadFile(fsys, words[2].Text)
	if err != nil {
		return words[2].Errorf("%w", err)
	}
	s, err := sound.ParseWAV(b)
	if err != nil {
		return words[2].Errorf("%s: %w", words[2].Text, err)
	}
	return k.add(words[1], &Sample{Name: words[1].Text, file: s})
}

// bundled is an element of a bundle.
type bundled struct {
	Bundle   string `json:"bundle_name"`
	Language string `json:"language"`
	Path     string `json:"path"`
	Name     string `json:"soundbank_name"`
}

// Bundle is the name of the file that lists the banks of a folder.
const Bundle = "SoundbankBundleInfo.json"

// Load reads the banks that the bundle of fsys lists, in its order (part of VEC-BNK-01): of each the file PATH/NAME.sounds in Kennel's own form. A bank Init, which original
// robots must have, comes first wherever it is listed. ErrBundle, synth.ErrText.
func Load(fsys fs.FS) ([]*Bank, error) {
	b, err := fs.ReadFile(fsys, Bundle)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBundle, err)
	}
	var list []bundled
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBundle, Bundle, err)
	}
	if len(list) > MaxBanks {
		return nil, fmt.Errorf("%w: expected at most %d banks, found %d", ErrBundle, MaxBanks, len(list))
	}
	var banks, first []*Bank
	for i, e := range list {
		name := path.Join(e.Path, e.Name+".sounds")
		if e.Name == "" || strings.ContainsAny(e.Name, "/\\") || !fs.ValidPath(name) {
			return nil, fmt.Errorf("%w: element %d: expected a path below the bundle and a name, found %.40q and %.40q", ErrBundle, i, e.Path, e.Name)
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("%w: element %d: %w", ErrBundle, i, err)
		}
		beside, err := fs.Sub(fsys, path.Dir(name))
		if err != nil {
			return nil, fmt.Errorf("%w: element %d: %w", ErrBundle, i, err)
		}
		k, err := Parse(text, beside)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if strings.EqualFold(e.Name, "Init") {
			first = append(first, k)
		} else {
			banks = append(banks, k)
		}
	}
	return append(first, banks...), nil
}
