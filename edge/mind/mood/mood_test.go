package mood

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"kennel/infra/errs"
)

const sec = time.Second

// newMood returns a mood of a test's configuration and events.
func newMood(t *testing.T, config, events string) *Mood {
	t.Helper()
	c, problems := Load(fstest.MapFS{ConfigFile: {Data: []byte(config)}, EventsDir + "/a.json": {Data: []byte(events)}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return New(c)
}

// near compares emotions in the order of their constants.
func near(t *testing.T, what string, m *Mood, want ...float64) {
	t.Helper()
	for e, v := range m.Emotions() {
		if math.Abs(v-want[e]) > 1e-6 {
			t.Errorf("%s: %s %v, want %v", what, Emotion(e), v, want[e])
		}
	}
}

const level = `{"decayGraphs": [{"emotionType": "default", "nodes": [{"x": 0, "y": 1}]}],
"valueRanges": [{"emotionType": "Stimulated", "min": 0, "max": 1}, {"emotionType": "Trust", "min": 0, "max": 1}]}`

// TestRanges: emotions stay within their ranges, which are -1 to 1 where the file says nothing (VEC-EMO-01).
func TestRanges(t *testing.T) {
	m := newMood(t, level, `{"emotionEvents": [
{"name": "CubeSpinner", "emotionAffectors": [{"emotionType": "Stimulated", "value": 3}, {"emotionType": "Social", "value": 3}, {"emotionType": "Trust", "value": 3}]},
{"name": "ReactToDark", "emotionAffectors": [{"emotionType": "Stimulated", "value": -9}, {"emotionType": "Confident", "value": -9}, {"emotionType": "Happy", "value": -9},
 {"emotionType": "Social", "value": -9}, {"emotionType": "Trust", "value": -9}]}]}`)
	if err := m.Post(0, "CubeSpinner"); err != nil {
		t.Fatal(err)
	}
	near(t, "most", m, 1, 1, 0, 0, 1)
	if err := m.Post(0, "ReactToDark"); err != nil {
		t.Fatal(err)
	}
	near(t, "least", m, 0, -1, -1, -1, 0)
	m.Set(0, map[Emotion]float64{Happy: 0.5, Trust: -2, Confident: 7})
	near(t, "set", m, 0, -1, 1, 0.5, 0)
}

// TestPenalty: an event that comes again has the effect that its graph says, or the default graph (VEC-EMO-04); the first one has all of it.
func TestPenalty(t *testing.T) {
	m := newMood(t, strings.Replace(level, "{", `{"defaultRepetitionPenalty": {"nodes": [{"x": 0, "y": 0}, {"x": 10, "y": 1}]},`, 1), `{"emotionEvents": [
{"name": "CubeSpinner", "emotionAffectors": [{"emotionType": "Happy", "value": 0.2}], "repetitionPenalty": {"nodes": [{"x": 1, "y": 0.5}, {"x": 3, "y": 0}]}},
{"name": "ReactToDark", "emotionAffectors": [{"emotionType": "Social", "value": 0.2}]}]}`)
	for _, tt := range []struct {
		at     time.Duration
		event  string
		social float64
		happy  float64
	}{
		{0, "CubeSpinner", 0, 0.2}, {sec / 2, "CubeSpinner", 0, 0.3}, {2*sec + sec/2, "CubeSpinner", 0, 0.35}, {9 * sec, "CubeSpinner", 0, 0.35},
		{10 * sec, "ReactToDark", 0.2, 0.35}, {10 * sec, "ReactToDark", 0.2, 0.35}, {15 * sec, "ReactToDark", 0.3, 0.35}, {45 * sec, "ReactToDark", 0.5, 0.35},
	} {
		if err := m.Post(tt.at, tt.event); err != nil {
			t.Fatal(err)
		}
		near(t, tt.at.String(), m, 0, tt.social, 0, tt.happy, 0)
	}
}

// TestFade: an emotion fades along a graph of time from its last change of at least 0.05, or along a slope by its rate a minute, and never crosses zero (VEC-EMO-05).
func TestFade(t *testing.T) {
	m := newMood(t, `{"decayGraphs": [
{"emotionType": "default", "graphType": "TimeRatio", "nodes": [{"x": 10, "y": 1}, {"x": 20, "y": 0.5}, {"x": 40, "y": 0}]},
{"emotionType": "Confident", "graphType": "ValueSlope", "nodes": [{"x": -1, "y": 0.6}, {"x": 0, "y": 0.2}, {"x": 1, "y": 0.6}]}]}`, `{"emotionEvents": [
{"name": "CubeSpinner", "emotionAffectors": [{"emotionType": "Happy", "value": 0.8}, {"emotionType": "Confident", "value": -0.5}]},
{"name": "ReactToDark", "emotionAffectors": [{"emotionType": "Happy", "value": 0.04}], "repetitionPenalty": {"nodes": [{"x": 0, "y": 1}]}}]}`)
	if err := m.Post(0, "CubeSpinner"); err != nil {
		t.Fatal(err)
	}
	m.Step(10 * sec)
	near(t, "10 s", m, 0, 0, -0.5+0.4/6, 0.8, 0)
	m.Step(20 * sec)
	slope := -0.5 + 0.4/6
	slope += (0.2 - 0.4*slope) / 6
	near(t, "20 s", m, 0, 0, slope, 0.4, 0)
	if err := m.Post(20*sec, "ReactToDark"); err != nil {
		t.Fatal(err)
	}
	near(t, "a small event", m, 0, 0, slope, 0.44, 0)
	m.Step(30 * sec) // faded to half of what it was: the small event began nothing
	if h := m.Emotions()[Happy]; math.Abs(h-0.22) > 1e-6 {
		t.Errorf("after a small event: %v, want 0.22", h)
	}
	m.Step(10 * time.Minute)
	near(t, "10 minutes", m, 0, 0, 0, 0, 0)
}

// TestSimple: the simple mood follows emotions that last (VEC-EMO-02).
func TestSimple(t *testing.T) {
	m := newMood(t, level, `{"emotionEvents": []}`)
	if m.Simple() != Default {
		t.Errorf("at first %s, want %s", m.Simple(), Default)
	}
	now := time.Duration(0)
	for _, tt := range []struct {
		stimulated, confident float64
		want                  string
	}{
		{0, 0, LowStim}, {0.32, 0, LowStim}, {0.34, 0, MedStim}, {0.65, 0, MedStim}, {0.67, 0, HighStim}, {1, -0.39, HighStim}, {1, -0.41, Frustrated}, {0, 0, LowStim},
	} {
		m.Set(now, map[Emotion]float64{Stimulated: tt.stimulated, Confident: tt.confident})
		before := m.Simple()
		m.Step(now)
		m.Step(now + simpleHold - 1)
		if m.Simple() != before {
			t.Errorf("%v: %s at once, want %s", tt, m.Simple(), before)
		}
		now += simpleHold
		if m.Step(now); m.Simple() != tt.want {
			t.Errorf("%v: %s, want %s", tt, m.Simple(), tt.want)
		}
	}
}

// TestOwn: Kennel's own mood knows all 48 events, each of which moves something (VEC-EMO-07); the wake word and a touch stir the robot wholly, being stuck takes half of
// that (part of VEC-EMO-08).
func TestOwn(t *testing.T) {
	if len(names) != 48 {
		t.Errorf("%d names, want 48", len(names))
	}
	for _, name := range names {
		if e := Own().events[name]; e == nil || len(e.Affectors) == 0 {
			t.Errorf("%s moves nothing", name)
		}
	}
	for name := range Own().events {
		if !Known(name) {
			t.Errorf("%s is not one of the original's", name)
		}
	}
	for _, name := range []string{"ReactToTriggerWord", "PettingStarted"} {
		m := New(Own())
		if err := m.Post(0, name); err != nil || m.Emotions()[Stimulated] != 1 {
			t.Errorf("%s: stimulated %v, %v; want 1", name, m.Emotions()[Stimulated], err)
		}
		if err := m.Post(sec, "DrivingActionFailedWithAbort"); err != nil || m.Emotions()[Stimulated] != 0.5 {
			t.Errorf("stuck after %s: stimulated %v, %v; want 0.5", name, m.Emotions()[Stimulated], err)
		}
	}
	m := New(Own())
	if err := m.Post(0, "ReactToTriggerWord"); err != nil {
		t.Fatal(err)
	}
	set := map[string]float64{}
	m.Audio(func(p string, v float64) { set[p] = v })
	want := map[string]float64{"Robot_Vic_Stimulation": 1, "Robot_Vic_Social": 0.2, "Robot_Vic_Confident": 0, "Robot_Vic_Happy": 0, "Robot_Vic_Held_Trust": 0}
	for p, v := range want {
		if got, ok := set[p]; !ok || got != v {
			t.Errorf("parameter %s: %v, want %v (VEC-EMO-09)", p, got, v)
		}
	}
	if m.Told("robot.touched") != "PettingStarted" || m.Told("robot.unheard_of") != "" || m.Result("PickupObject", "SUCCESS") != "PickupSucceeded" {
		t.Error("what the robot tells does not move its mood (VEC-EMO-06)")
	}
}

// TestPost: events of which one is not known change nothing.
func TestPost(t *testing.T) {
	m := New(Own())
	if err := m.Post(0, "PettingStarted", "Nonsense"); errs.CodeOf(err) != "not_found" {
		t.Errorf("an unknown event: %v, want not_found", err)
	}
	near(t, "after a refusal", m, 0, 0, 0, 0, 0)
}

// TestLoad: a robot's own files win; what is wrong is told with its file and key, and Kennel's own is taken (VEC-EMO-03, 06, 07).
func TestLoad(t *testing.T) {
	for _, tt := range []struct{ name, config, events, want string }{
		{"type", `{"valueRanges": [{"emotionType": "Happy", "min": "low"}]}`, "", "mood_config.json: valueRanges.min: expected float64, found string"},
		{"emotion", `{"valueRanges": [{"emotionType": "Brave", "min": -1, "max": 1}]}`, "", `valueRanges[0]: expected one of the emotions Stimulated, Social, Confident, Happy, Trust, found "Brave"`},
		{"range", `{"valueRanges": [{"emotionType": "Happy", "min": 0.5, "max": 1}]}`, "", "valueRanges[0]: expected a min of at most 0"},
		{"graph", `{"decayGraphs": [{"emotionType": "default", "nodes": [{"x": 1, "y": 1}, {"x": 1, "y": 0}]}]}`, "", "decayGraphs[0].nodes[1].x: expected more than 1, found 1"},
		{"graph type", `{"decayGraphs": [{"emotionType": "default", "graphType": "Steps", "nodes": [{"x": 1, "y": 1}]}]}`, "", `decayGraphs[0].graphType: expected TimeRatio or ValueSlope, found "Steps"`},
		{"mapper", `{"eventMapper": {"robot.touched": "Touched"}}`, "", `eventMapper.robot.touched: expected the name of an emotion event, found "Touched"`},
		{"simple mood", `{"simpleMoodAudioParameters": {"Brave": "x"}}`, "", "simpleMoodAudioParameters: expected one of"},
		{"penalty", `{"defaultRepetitionPenalty": {"nodes": [{"x": 0, "y": 2}]}}`, "", "defaultRepetitionPenalty.nodes[0].y: expected a number from 0 on, of ratios to 1, found 2"},
		{"affector", "", `{"emotionEvents": [{"name": "Asleep", "emotionAffectors": [{"emotionType": "Happy"}]}]}`, "a.json: emotionEvents[0].emotionAffectors[0].value: expected a number"},
		{"no JSON", "", "{", "a.json: expected JSON"},
	} {
		files := fstest.MapFS{}
		if tt.config != "" {
			files[ConfigFile] = &fstest.MapFile{Data: []byte(tt.config)}
		}
		if tt.events != "" {
			files[EventsDir+"/a.json"] = &fstest.MapFile{Data: []byte(tt.events)}
		}
		c, problems := Load(files)
		if err := errors.Join(problems...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if New(c).Post(0, "PettingStarted") != nil {
			t.Errorf("%s: not Kennel's own mood", tt.name)
		}
	}
	c, problems := Load(fstest.MapFS{EventsDir + "/a.json": {Data: []byte(`{"emotionEvents": [{"name": "Zzz", "emotionAffectors": [{"emotionType": "Happy", "value": 1}]}]}`)},
		EventsDir + "/b.json": {Data: []byte(`{"emotionEvents": [{"name": "Zzz"}, {"name": "Asleep"}]}`)}})
	if len(problems) != 3 || !strings.Contains(problems[0].Error(), "Zzz") {
		t.Errorf("unknown and doubled names: %v, want three problems", problems)
	}
	m := New(c)
	if err := m.Post(0, "Zzz", "Asleep"); err != nil || m.Emotions()[Happy] != 1 {
		t.Errorf("both files: happy %v, %v", m.Emotions()[Happy], err)
	}
	if m.Post(0, "PettingStarted") == nil {
		t.Error("events of Kennel's own beside those of the robot")
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"config/mood_config.json", "config/emotionevents/kennel.json"} {
		b, err := own.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(level))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, _ := ParseEvents(b)
		c, err := ParseConfig(b)
		if err != nil {
			clone := *Own()
			c = &clone
		}
		c.events = map[string]*Event{}
		for _, e := range all {
			c.events[e.Name] = e
		}
		m := New(c)
		for i, e := range all {
			if err := m.Post(time.Duration(i)*sec, e.Name); err != nil {
				t.Fatal(err)
			}
			m.Step(time.Duration(i)*sec + sec/2)
			for kind, v := range m.Emotions() {
				if least, greatest := m.Range(Emotion(kind)); !(v >= least && v <= greatest) {
					t.Fatalf("%s: %s %v, outside of %v to %v", e.Name, Emotion(kind), v, least, greatest)
				}
			}
		}
		if _, err := json.Marshal(m.Emotions()); err != nil {
			t.Fatal(err)
		}
	})
}
