package clip

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Choice is a clip of a group, and when it is drawn (VEC-TRG-03).
type Choice struct {
	Name     string  `json:"Name"`
	Weight   float64 `json:"Weight"`
	Mood     string  `json:"Mood"` // a simple mood, or AnyMood
	Cooldown float64 `json:"CooldownTime_Sec"`
	UseHead  bool    `json:"UseHeadAngle"`
	HeadMin  float64 `json:"HeadAngleMin_Deg"`
	HeadMax  float64 `json:"HeadAngleMax_Deg"`
}

// AnyMood is the mood of choices for which no mood was chosen.
const AnyMood = "Default"

// ParseGroup reads a group file. ErrClip for unknown fields, wrong types, negative weights and cool-downs, and head ranges the wrong way round (VEC-TRG-03).
func ParseGroup(b []byte) ([]Choice, error) {
	var group struct {
		Animations []json.RawMessage `json:"animations"`
	}
	if err := Strict(b, &group); err != nil {
		return nil, err
	}
	var choices []Choice
	for i, raw := range group.Animations {
		c := Choice{Weight: 1, Mood: AnyMood}
		if err := Strict(raw, &c); err != nil {
			return nil, fmt.Errorf("animations[%d]: %w", i, err)
		}
		refuse := func(field, expected string, found any) error {
			return fmt.Errorf("%w: animations[%d].%s: expected %s, found %v", ErrClip, i, field, expected, found)
		}
		switch {
		case !isText(c.Name):
			return nil, refuse("Name", "the name of a clip", fmt.Sprintf("%.40q", c.Name))
		case c.Weight < 0:
			return nil, refuse("Weight", "0 or more", c.Weight)
		case c.Cooldown < 0 || c.Cooldown > math.MaxInt64/1e9:
			return nil, refuse("CooldownTime_Sec", "0 or more", c.Cooldown)
		case c.UseHead && c.HeadMin > c.HeadMax:
			return nil, refuse("HeadAngleMax_Deg", fmt.Sprintf("%v or more", c.HeadMin), c.HeadMax)
		}
		choices = append(choices, c)
	}
	return choices, nil
}

// Strict reads JSON of one value without unknown fields into v. The error is ErrClip with line and column.
func Strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && d.More() {
		err = errors.New("expected the end, found more")
	}
	if err == nil {
		return nil
	}
	at := d.InputOffset()
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = s.Offset
	} else if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at, err = t.Offset, fmt.Errorf("%s: expected %v, found %s", t.Field, t.Type, t.Value)
	}
	line, column := position(b, at)
	return fmt.Errorf("%w: line %d, column %d: %w", ErrClip, line, column, err)
}

// ParseTriggers reads a map file: which group each trigger draws from (VEC-TRG-02).
func ParseTriggers(b []byte) (map[string]string, error) {
	var entries []struct{ CladEvent, AnimName string }
	if err := Strict(b, &entries); err != nil {
		return nil, err
	}
	triggers := make(map[string]string, len(entries))
	for i, e := range entries {
		if _, twice := triggers[e.CladEvent]; twice || !isText(e.CladEvent) || !isText(e.AnimName) {
			return nil, fmt.Errorf("%w: [%d]: expected a trigger of its own and a group, found %.40q and %.40q", ErrClip, i, e.CladEvent, e.AnimName)
		}
		triggers[e.CladEvent] = e.AnimName
	}
	return triggers, nil
}

// Library holds all that a robot can play. It is not changed once it is in use, so that goroutines may share it.
type Library struct {
	Clips    map[string]*Clip
	Groups   map[string][]Choice
	Triggers map[string]string // to groups
}

// NewLibrary returns a library without anything in it.
func NewLibrary() *Library {
	return &Library{map[string]*Clip{}, map[string][]Choice{}, map[string]string{}}
}

// Add adds clips. ErrClip if one of that name is there.
func (l *Library) Add(clips []Clip) error {
	for i := range clips {
		if _, twice := l.Clips[clips[i].Name]; twice {
			return fmt.Errorf("%w: expected a name of its own, found %.60q twice", ErrClip, clips[i].Name)
		}
		l.Clips[clips[i].Name] = &clips[i]
	}
	return nil
}

// Missing returns what is named and not there: groups of triggers and clips of groups, as errors that say which (VEC-TRG-02).
func (l *Library) Missing() (missing []error) {
	for _, t := range slices.Sorted(maps.Keys(l.Triggers)) {
		if len(l.Groups[l.Triggers[t]]) == 0 {
			missing = append(missing, fmt.Errorf("%w: trigger %s: expected a group with clips, found no %s", ErrClip, t, l.Triggers[t]))
		}
	}
	for _, g := range slices.Sorted(maps.Keys(l.Groups)) {
		for _, c := range l.Groups[g] {
			if l.Clips[c.Name] == nil {
				missing = append(missing, fmt.Errorf("%w: group %s: expected a clip, found no %s", ErrClip, g, c.Name))
			}
		}
	}
	return missing
}

// ErrNoClip: a trigger has no clip that could be played now.
var ErrNoClip = errors.New("no clip for this trigger")

// Chooser draws clips for triggers, and remembers which of them rest. It belongs to one goroutine; the same seed and calls draw the same clips.
type Chooser struct {
	from  *Library
	rand  *rand.Rand
	rests map[string]time.Duration // of a clip in a group, until when
}

// NewChooser returns a Chooser.
func NewChooser(l *Library, seed uint64) *Chooser {
	return &Chooser{l, rand.New(rand.NewPCG(seed, 0x63686f696365)), map[string]time.Duration{}}
}

// Choose draws the clip of a trigger for a mood and an angle of the head (degrees, up positive): of those for the mood, or for AnyMood if there is none, those whose
// head range fits and that do not rest, by their weights. If all rest, the one that rests the shortest is taken (VEC-TRG-04). ErrNoClip if none fits.
func (c *Chooser) Choose(now time.Duration, trigger, mood string, head float64) (*Clip, error) {
	group, ok := c.from.Triggers[trigger]
	if !ok {
		return nil, fmt.Errorf("%w: %.60q is not a trigger", ErrNoClip, trigger)
	}
	fits := c.fitting(group, mood, head)
	if len(fits) == 0 && mood != AnyMood {
		fits = c.fitting(group, AnyMood, head)
	}
	if len(fits) == 0 {
		return nil, fmt.Errorf("%w: %.60s with the head at %.1f degrees in mood %.40s", ErrNoClip, trigger, head, mood)
	}
	ready := slices.DeleteFunc(slices.Clone(fits), func(x *Choice) bool { return c.rests[group+"/"+x.Name] > now })
	sum := 0.0
	for _, x := range ready {
		sum += x.Weight
	}
	pick := slices.MinFunc(fits, func(a, b *Choice) int { return int(c.rests[group+"/"+a.Name] - c.rests[group+"/"+b.Name]) })
	if at := c.rand.Float64() * sum; sum > 0 {
		for _, x := range ready {
			if x.Weight == 0 {
				continue
			}
			pick = x
			if at -= x.Weight; at < 0 {
				break
			}
		}
	}
	c.rests[group+"/"+pick.Name] = now + time.Duration(pick.Cooldown*float64(time.Second))
	return c.from.Clips[pick.Name], nil
}

// fitting returns the choices of a group for a mood and an angle of the head whose clips are there.
func (c *Chooser) fitting(group, mood string, head float64) (fits []*Choice) {
	for i := range c.from.Groups[group] {
		x := &c.from.Groups[group][i]
		if x.Mood == mood && (!x.UseHead || head >= x.HeadMin && head <= x.HeadMax) && c.from.Clips[x.Name] != nil {
			fits = append(fits, x)
		}
	}
	return fits
}
