package mood

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
	"sync"

	"kennel/infra/errs"
)

// Where a robot keeps its mood's files, below its resources.
const (
	ConfigFile = "config/engine/mood_config.json" // VEC-EMO-06
	EventsDir  = "config/engine/emotionevents"    // VEC-EMO-03
	maxFile    = 1 << 20                          // bytes; our own limit
	maxNodes   = 256                              // of a graph; our own limit
	anyEmotion = "default"                        // of decay graphs
	timeRatio  = "TimeRatio"                      // a graph of seconds and of what remains
	valueSlope = "ValueSlope"                     // a graph of values and of what fades a minute
)

//go:embed config
var own embed.FS

// Point is a corner of a graph.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Graph is made of straight lines between points whose x grows; before the first and after the last it is level.
type Graph []Point

// at returns y at x; 1 of a graph without points.
func (g Graph) at(x float64) float64 {
	if len(g) == 0 {
		return 1
	}
	i, _ := slices.BinarySearchFunc(g, x, func(p Point, x float64) int {
		if p.X <= x {
			return -1
		}
		return 1
	})
	switch i {
	case 0:
		return g[0].Y
	case len(g):
		return g[len(g)-1].Y
	}
	a, b := g[i-1], g[i]
	return a.Y + (b.Y-a.Y)*(x-a.X)/(b.X-a.X)
}

// Event says how something that happens moves the emotions (VEC-EMO-03).
type Event struct {
	Name      string
	Affectors []Affector
	Penalty   Graph // nil: the default one
}

// Affector adds to one emotion.
type Affector struct {
	Emotion Emotion
	Value   float64
}

// decay is how an emotion fades (VEC-EMO-05).
type decay struct {
	slope bool // the graph is of values; else of time
	graph Graph
}

// Config is how a robot feels: its mood's configuration and the events that move it. It is not changed.
type Config struct {
	ranges  [emotions][2]float64
	decays  [emotions]decay
	penalty Graph
	audio   [emotions]string  // parameter of the sounds; "": none
	simple  map[string]string // parameter of the sounds that is 1 in a simple mood, and else 0
	results map[string]string // the event of an action's result, such as "PickupObject SUCCESS"
	mapper  map[string]string // the event of something that a part of the robot tells
	events  map[string]*Event
}

// files are the two kinds of files, as they are written.
type (
	nodes struct {
		Nodes Graph `json:"nodes"`
	}
	configFile struct {
		Results map[string]string `json:"actionResultEmotionEvents"`
		Audio   map[string]string `json:"audioParameterMap"`
		Decays  []struct {
			Emotion string `json:"emotionType"`
			Type    string `json:"graphType"`
			nodes
		} `json:"decayGraphs"`
		Penalty *nodes            `json:"defaultRepetitionPenalty"`
		Mapper  map[string]string `json:"eventMapper"`
		Simple  map[string]string `json:"simpleMoodAudioParameters"`
		Ranges  []struct {
			Emotion string   `json:"emotionType"`
			Max     *float64 `json:"max"`
			Min     *float64 `json:"min"`
		} `json:"valueRanges"`
	}
	eventsFile struct {
		Events []struct {
			Name      string `json:"name"`
			Affectors []struct {
				Emotion string   `json:"emotionType"`
				Value   *float64 `json:"value"`
			} `json:"emotionAffectors"`
			Penalty *nodes `json:"repetitionPenalty"`
		} `json:"emotionEvents"`
	}
)

// Own returns the mood that comes with Kennel.
var Own = sync.OnceValue(func() *Config {
	c, problems := load(own, "config/mood_config.json", "config/emotionevents", nil)
	if len(problems) > 0 {
		panic(errors.Join(problems...)) // a test reads them
	}
	return c
})

// Load reads a robot's mood from its resources. Kennel's own values take the place of files that are missing or unreadable; problems lists the unreadable ones, and events
// whose names the original does not have (VEC-EMO-07).
func Load(resources fs.FS) (c *Config, problems []error) {
	return load(resources, ConfigFile, EventsDir, Own())
}

func load(files fs.FS, configPath, eventsDir string, otherwise *Config) (c *Config, problems []error) {
	if b, err := readFile(files, configPath); err == nil {
		c, err = ParseConfig(b)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", configPath, err))
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		problems = append(problems, fmt.Errorf("%s: %w", configPath, err))
	}
	if c == nil {
		clone := *otherwise
		c = &clone
	}
	c.events = map[string]*Event{}
	names, err := fs.Glob(files, path.Join(eventsDir, "*.json"))
	if err != nil {
		panic(err) // the pattern is a constant
	}
	for _, name := range names {
		b, err := readFile(files, name)
		var all []*Event
		if err == nil {
			all, err = ParseEvents(b)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
			continue
		}
		for _, e := range all {
			if !Known(e.Name) {
				problems = append(problems, errs.New(errs.Invalid, "%s: %.60q is not the name of an emotion event; expected one of the original's, such as PettingStarted", name, e.Name))
			}
			if c.events[e.Name] != nil {
				problems = append(problems, errs.New(errs.Invalid, "%s: event %.60q is defined twice; the first definition is used", name, e.Name))
				continue
			}
			c.events[e.Name] = e
		}
	}
	if len(c.events) == 0 {
		c.events = otherwise.events
	}
	return c, problems
}

func readFile(files fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, errs.New(errs.Invalid, "the file has %d bytes; expected at most %d", info.Size(), maxFile)
	}
	return fs.ReadFile(files, name)
}

// ParseConfig reads a mood_config.json, without events. An error names the key.
func ParseConfig(b []byte) (*Config, error) {
	var f configFile
	if err := parse(b, &f); err != nil {
		return nil, err
	}
	c := &Config{results: f.Results, mapper: f.Mapper, simple: f.Simple}
	for i := range c.ranges {
		c.ranges[i] = [2]float64{-1, 1} // of those that the file does not list
	}
	for i, r := range f.Ranges {
		key := fmt.Sprintf("valueRanges[%d]", i)
		e, err := EmotionOf(key, r.Emotion)
		switch {
		case err != nil:
			return nil, err
		case r.Min == nil || r.Max == nil || *r.Min > 0 || *r.Max < 0 || *r.Min == *r.Max:
			return nil, invalid(key, "expected a min of at most 0 and a max of at least 0, which differ")
		}
		c.ranges[e] = [2]float64{*r.Min, *r.Max}
	}
	var usual decay
	set := [emotions]bool{}
	for i, d := range f.Decays {
		key := fmt.Sprintf("decayGraphs[%d]", i)
		if d.Type != "" && d.Type != timeRatio && d.Type != valueSlope {
			return nil, invalid(key+".graphType", "expected %s or %s, found %.40q", timeRatio, valueSlope, d.Type)
		}
		if err := d.Nodes.check(key, d.Type != valueSlope); err != nil {
			return nil, err
		}
		one := decay{d.Type == valueSlope, d.Nodes}
		if d.Emotion == anyEmotion {
			usual = one
			continue
		}
		e, err := EmotionOf(key, d.Emotion)
		if err != nil {
			return nil, err
		}
		c.decays[e], set[e] = one, true
	}
	for i := range c.decays {
		if !set[i] {
			c.decays[i] = usual
		}
	}
	for name, parameter := range f.Audio {
		e, err := EmotionOf("audioParameterMap", name)
		if err != nil {
			return nil, err
		}
		c.audio[e] = parameter
	}
	for name := range f.Simple {
		if !slices.Contains(simpleMoods, name) {
			return nil, invalid("simpleMoodAudioParameters", "expected one of %s, found %.40q", strings.Join(simpleMoods, ", "), name)
		}
	}
	if f.Penalty != nil {
		c.penalty = f.Penalty.Nodes
		if err := c.penalty.check("defaultRepetitionPenalty", true); err != nil {
			return nil, err
		}
	}
	for key, all := range map[string]map[string]string{"actionResultEmotionEvents": f.Results, "eventMapper": f.Mapper} {
		for what, name := range all {
			if !Known(name) {
				return nil, invalid(key+"."+what, "expected the name of an emotion event, found %.60q", name)
			}
		}
	}
	return c, nil
}

// ParseEvents reads a file of emotion events. An error names the event and its key.
func ParseEvents(b []byte) ([]*Event, error) {
	var f eventsFile
	if err := parse(b, &f); err != nil {
		return nil, err
	}
	var all []*Event
	for i, e := range f.Events {
		key := fmt.Sprintf("emotionEvents[%d]", i)
		if e.Name == "" {
			return nil, invalid(key+".name", "expected a name")
		}
		ev := &Event{Name: e.Name}
		for j, a := range e.Affectors {
			key := fmt.Sprintf("%s.emotionAffectors[%d]", key, j)
			kind, err := EmotionOf(key, a.Emotion)
			if err != nil {
				return nil, err
			}
			if a.Value == nil {
				return nil, invalid(key+".value", "expected a number")
			}
			ev.Affectors = append(ev.Affectors, Affector{kind, *a.Value})
		}
		if e.Penalty != nil {
			ev.Penalty = e.Penalty.Nodes
			if err := ev.Penalty.check(key+".repetitionPenalty", true); err != nil {
				return nil, err
			}
		}
		all = append(all, ev)
	}
	return all, nil
}

// parse reads JSON. Keys that are not known are passed over: the files are the original's.
func parse(b []byte, v any) error {
	err := json.Unmarshal(b, v)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return invalid(wrong.Field, "expected %s, found %s", wrong.Type, wrong.Value)
	}
	if err != nil {
		return errs.New(errs.Invalid, "expected JSON: %w", err)
	}
	return nil
}

func invalid(key, format string, args ...any) error {
	return errs.New(errs.Invalid, "%s: "+format, append([]any{key}, args...)...)
}

// EmotionOf returns the emotion called name. If there is none, the error names key as the place that wants one.
func EmotionOf(key, name string) (Emotion, error) {
	i := slices.Index(emotionNames[:], name)
	if i < 0 {
		return 0, invalid(key, "expected one of the emotions %s, found %.40q", strings.Join(emotionNames[:], ", "), name)
	}
	return Emotion(i), nil
}

// check returns what is wrong with a graph; those of ratios do not go below 0 or above 1.
func (g Graph) check(key string, ratio bool) error {
	if len(g) == 0 || len(g) > maxNodes {
		return invalid(key+".nodes", "expected 1 to %d, found %d", maxNodes, len(g))
	}
	for i, p := range g {
		switch {
		case i > 0 && p.X <= g[i-1].X:
			return invalid(fmt.Sprintf("%s.nodes[%d].x", key, i), "expected more than %v, found %v", g[i-1].X, p.X)
		case p.Y < 0 || ratio && p.Y > 1 || p.Y > math.MaxFloat32:
			return invalid(fmt.Sprintf("%s.nodes[%d].y", key, i), "expected a number from 0 on, of ratios to 1, found %v", p.Y)
		case math.Abs(p.X) > math.MaxFloat32:
			return invalid(fmt.Sprintf("%s.nodes[%d].x", key, i), "found %v, which is too large", p.X)
		}
	}
	return nil
}
