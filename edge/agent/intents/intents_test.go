package intents

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/agent/features"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/mind/mindlink"
	"kennel/infra/api/events"
	"kennel/infra/api/live"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/speech/intent"
)

// robotd is a core that answers at once.
type robotd struct {
	handle func(corelink.Message)
	tree   live.Tree
	gone   bool
	code   string // of claims and lines; "": ok
	ends   string // of motions; "": done
	busy   int    // claims that are refused first

	mu   sync.Mutex
	said []string
}

func (r *robotd) Hello() (corelink.Hello, bool) { return corelink.Hello{Program: "robotd"}, !r.gone }

func (r *robotd) Send(m corelink.Message) error {
	if r.gone {
		return corelink.ErrNotConnected
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	handle := r.handle // of this agent: another may start before the reply
	reply := func(n uint32) *corelink.Reply {
		return &corelink.Reply{Request: n, Code: cmpOr(r.code, "ok"), Lease: 7}
	}
	switch m := m.(type) {
	case *corelink.Claim:
		r.said = append(r.said, "claim "+strings.Join(m.Devices, " "))
		a := reply(m.Request)
		if r.busy > 0 {
			r.busy--
			a.Code = "busy"
		}
		go handle(a)
	case *corelink.Stop:
		r.said = append(r.said, "stop")
		go handle(reply(m.Request))
	case *corelink.Sleep:
		r.said = append(r.said, "sleep "+string('0'+rune(m.State)))
		go handle(reply(m.Request))
	case *corelink.Do:
		r.said = append(r.said, m.Line)
		a := reply(m.Request)
		a.Underway = a.Code == "ok" && !strings.Contains(m.Line, "led")
		go func() {
			handle(a)
			if a.Underway {
				time.Sleep(time.Second)
				handle(&corelink.Ended{Request: m.Request, Outcome: cmpOr(r.ends, corelink.Done), Unit: "m", Moved: 0.02, Of: 0.1})
			}
		}()
	case *corelink.GetTree:
		go handle(&corelink.Tree{Request: m.Request, Tree: r.tree})
	}
	return nil
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (r *robotd) heard() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.said
	r.said = nil
	return out
}

var vector, amigobot = live.Tree{Body: "vector", Nodes: []live.Node{
	{Full: "robot", Interface: "Identity, Mobile, Tracker"},
	{Full: "robot.body.head.pitch", Interface: "RotationalMotor", Slots: []live.Slot{{Name: "angle", Min: at(-.785), Max: at(.384)}}},
	{Full: "robot.body.led[0]", Interface: "RGBLed"},
	{Full: "robot.body.head.camera", Interface: "VideoIn"},
}}, live.Tree{Body: "amigobot", Nodes: []live.Node{{Full: "robot", Interface: "Identity, Mobile"}}}

func at(v float64) *float64 { return &v }

// docs are the robot's settings.
type docs map[string]json.RawMessage

func (d docs) Get(jdocs.Name) (jdocs.Doc, error) {
	b, err := json.Marshal(d)
	return jdocs.Doc{JSON: string(b)}, err
}

func (d docs) Set(_ context.Context, name jdocs.Name, fields map[string]json.RawMessage) error {
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	text, err := jdocs.SetFields(name, string(b), fields)
	if err != nil {
		return err
	}
	clear(d)
	return json.Unmarshal([]byte(text), (*map[string]json.RawMessage)(&d))
}

// robot is one boot of a simulated robot's agent, in a bubble of synctest.
type robot struct {
	mood func() (mindlink.Feeling, bool) // nil: it has no emotions
	*Intents
	core     *robotd
	docs     docs
	settings jdocs.Name
	root     *os.Root
	booted   time.Time
	boot     string
	cast     *cast         // its character; nil: none
	wrong    time.Duration // its clock
	mu       sync.Mutex
	said     []string // events
	speaker  Speaker
	display  Display
	log      slog.Handler // nil: none
	end      func()
}

func newRobot(t *testing.T, tree live.Tree) *robot {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	if err := root.MkdirAll("data/kennel", 0o755); err != nil {
		t.Fatal(err)
	}
	r := &robot{root: root, docs: docs{}, settings: jdocs.RobotSettings, core: &robotd{tree: tree}}
	if err := json.Unmarshal([]byte(jdocs.Default(jdocs.RobotSettings).JSON), (*map[string]json.RawMessage)(&r.docs)); err != nil {
		t.Fatal(err)
	}
	return r
}

// start starts the agent, at a new boot or again.
func (r *robot) start(t *testing.T, boot string) {
	t.Helper()
	if boot != r.boot {
		r.boot, r.booted = boot, time.Now()
	}
	client := coreclient.New(r.core)
	emit := func(e events.Event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.said = append(r.said, strings.TrimPrefix(e.Name, "robot.")+" "+e.S1+" "+e.S2)
	}
	conf := Config{Speaker: r.speaker, Display: r.display, Photograph: func(context.Context) error { return nil }, Root: r.root, Core: client, Docs: r.docs, Settings: r.settings, Emit: emit, Changed: func() {}, Boot: boot, Log: slog.New(cmp.Or[slog.Handler](r.log, slog.DiscardHandler)),
		Keep:  func(_ context.Context, e events.Event) error { emit(e); return nil },
		Local: func() (time.Time, bool) { return time.Date(2026, 11, 23, 15, 4, 0, 0, time.UTC), true },
		Now:   func() time.Time { return time.Now().Add(r.wrong) }, Mono: func() time.Duration { return time.Since(r.booted) }}
	conf.Mood = r.mood
	if r.cast != nil {
		conf.Character, conf.Begin = r.cast, r.cast.begin
		conf.GoHome = func(context.Context) (bool, error) { r.core.handle(&corelink.State{Power: 1}); return true, nil }
	}
	x, err := New(conf)
	if err != nil {
		t.Fatal(err)
	}
	r.Intents = x
	r.core.handle = func(m corelink.Message) { client.Handle(m); x.Handle(m) }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- x.Run(ctx) }()
	if !r.core.gone {
		r.core.handle(&corelink.Hello{Program: "robotd"})
	}
	synctest.Wait()
	r.end = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// events returns those since the last call.
func (r *robot) events() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.said
	r.said = nil
	return out
}

func (r *robot) take(t *testing.T, name string, params ...string) Outcome {
	t.Helper()
	u := intent.User{Name: name, Params: map[string]any{}}
	for i := 0; i < len(params); i += 2 {
		u.Params[params[i]] = params[i+1]
	}
	o, err := r.Take(t.Context(), u, "cloud")
	if err != nil || o.Intent != name || o.Done != (o.Reason == "") || o.Text == "" {
		t.Errorf("%s %q: %+v, %v", name, params, o, err)
	}
	return o
}

// TestTable: every intent of annex D is in the table once, and beside them only our own (VEC-INT-09).
func TestTable(t *testing.T) {
	all := names(t)
	if len(all) != 65 {
		t.Fatalf("annex D has %d intents, want 65", len(all))
	}
	for _, name := range Names() {
		if !slices.Contains(all, name) && !strings.HasPrefix(name, "kennel_") {
			t.Errorf("%s is neither the original's nor ours", name)
		}
	}
	for _, name := range all {
		if _, ok := table[name]; !ok {
			t.Errorf("%s is not in the table", name)
		}
	}
}

// names are the user intents of annex D.
func names(t *testing.T) (out []string) {
	f, err := os.Open(filepath.Join("testdata", "annex-d.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name := s.Text(); regexp.MustCompile(`^[a-z_]+$`).MatchString(name) {
			out = append(out, name)
		}
	}
	return out
}

var acts = []struct {
	intent string
	params []string
	said   string // to robotd
	text   string
}{
	{"movement_forward", nil, "claim robot.go|robot.go(0.1)", "I went 10 cm forward"},
	{"movement_backward", nil, "claim robot.go|robot.go(-0.1)", "I went 10 cm back"},
	{"movement_turnleft", nil, "claim robot.turn|robot.turn(-1.5707963267948966)", "I turned left"},
	{"movement_turnright", nil, "claim robot.turn|robot.turn(1.5707963267948966)", "I turned right"},
	{"movement_turnaround", nil, "claim robot.turn|robot.turn(3.141592653589793)", "I turned around"},
	{"kennel_lookup", nil, "claim robot.body.head.pitch.angle|robot.body.head.pitch.angle = -0.6280000000000001", "I look up"},
	{"imperative_lookatme", nil, "claim robot.body.head.pitch.angle|robot.body.head.pitch.angle = -0.6280000000000001", "I look up"},
	{"kennel_lookdown", nil, "claim robot.body.head.pitch.angle|robot.body.head.pitch.angle = 0.30720000000000003", "I look down"},
	{"global_stop", nil, "stop", "I stopped"},
	{"imperative_quiet", nil, "stop", "I stopped"},
	{"system_sleep", nil, "stop|sleep 1|sleep 4|sleep 5", "I am going to sleep"},
	{"kennel_wakeup", nil, "", "I am awake"},
	{"imperative_volumeup", nil, "", "my volume is 5 of 5"},
	{"imperative_volumeup", nil, "", "my volume is 5 of 5"},
	{"imperative_volumedown", nil, "", "my volume is 4 of 5"},
	{"imperative_volumelevel", []string{"volume_level", "3"}, "", "my volume is 3 of 5"},
	{"imperative_volumelevel", []string{"volume_level", "low"}, "", "my volume is 2 of 5"},
	{"imperative_volumelevel", []string{"volume_level", "0"}, "", "my volume is 0 of 5"},
	{"imperative_volumedown", nil, "", "my volume is 0 of 5"},
	{"imperative_volumelevel", []string{"volume_level", "maximum"}, "", "my volume is 5 of 5"},
	{"imperative_volumelevel", []string{"volume_level", "6"}, "", "my volume goes from 0 to 5"},
	{"imperative_volumelevel", nil, "", "my volume goes from 0 to 5"},
	{"imperative_eyecolor", nil, "", "my eyes are orange"},
	{"imperative_eyecolor_specific", []string{"eye_color", "COLOR_BLUE"}, "", "my eyes are blue"},
	{"imperative_eyecolor", nil, "", "my eyes are purple"},
	{"imperative_eyecolor_specific", []string{"eye_color", "COLOR_TEAL"}, "", "my eyes are teal"},
	{"imperative_eyecolor_specific", []string{"eye_color", "stripes"}, "",
		"my eyes can be blue, green, lime, orange, purple, sapphire, teal, yellow"},
	{"show_clock", nil, "", "it is 3:04 PM"},
	{"status_feeling", nil, "", "my battery is nominal"},
	{"knowledge_response", []string{"answer", "It is 42."}, "", "It is 42."},
	{"weather_response", []string{"condition", "Sunny", "temperature", "20", "temperatureUnit", "C", "speakableLocationString", "Graz"}, "", "Sunny, 20 °C in Graz"},
}

// TestActs: what each intent makes the body do, and the settings (VEC-DOC-13).
func TestActs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRobot(t, vector)
		r.start(t, "b1")
		defer func() { r.end() }()
		r.core.handle(&corelink.State{BatteryLevel: 2})
		for _, tt := range acts {
			r.core.heard()
			o := r.take(t, tt.intent, tt.params...)
			if said := strings.Join(r.core.heard(), "|"); said != tt.said || o.Text != tt.text {
				t.Errorf("%s %q: robotd heard %q, %q; want %q, %q", tt.intent, tt.params, said, o.Text, tt.said, tt.text)
			}
		}
		if got := string(r.docs["master_volume"]) + string(r.docs["eye_color"]) + string(r.docs["custom_eye_color"]); got !=
			`50{"enabled":false,"hue":0.42,"saturation":1}` {
			t.Errorf("settings %s", got)
		}
	})
}

// TestTakePhoto: the robot takes a photo, or says why it did not.
func TestTakePhoto(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRobot(t, vector)
		heard := []string{}
		r.start(t, "b1")
		defer func() { r.end() }()
		r.Intents.cfg.Heard = func(u intent.User) { heard = append(heard, u.Name) }
		for _, tt := range []struct {
			err  error
			want Reason
		}{{nil, ""}, {errs.New(errs.Unavailable, "dark"), Failed}, {errs.New(errs.Exhausted, "full"), Failed}, {errors.New("disk"), Failed}} {
			taken := 0
			r.Intents.cfg.Photograph = func(context.Context) error { taken++; return tt.err }
			if o := r.take(t, "take_a_photo"); o.Reason != tt.want || taken != 1 || tt.err != nil && !strings.Contains(o.Text, tt.err.Error()) {
				t.Errorf("%v: %+v, %d taken", tt.err, o, taken)
			}
		}
		if len(heard) != 4 || heard[0] != "take_a_photo" {
			t.Errorf("heard %q", heard)
		}
	})
}

// replies are the intents that are answered by an animation.
var replies = []string{"greeting_goodbye", "greeting_hello", "imperative_abuse", "imperative_affirmative", "imperative_apology", "imperative_dance", "imperative_love",
	"imperative_negative", "imperative_praise", "imperative_scold", "seasonal_happyholidays", "seasonal_happynewyear"}

// TestOthers: every intent of the table ends with an answer on every body, and is counted; what nothing does is refused by that name.
func TestOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		tree    live.Tree
		species thing.Species
		no      []string // beside those that no robot acts on
		yes     int
		cast    bool // it has a character
	}{
		"vector": {tree: vector, yes: 44, cast: true},
		"mute":   {tree: vector, no: append(replies, "system_charger"), yes: 31},
		"amigobot": {tree: amigobot, species: thing.AmigoBot, no: append(replies, "system_charger", "take_a_photo", "kennel_lookup", "kennel_lookdown", "imperative_lookatme",
			"imperative_eyecolor", "imperative_eyecolor_specific"), yes: 25},
		"nothing": {tree: live.Tree{}, no: []string{"take_a_photo", "movement_forward", "movement_backward", "movement_turnaround", "movement_turnleft", "movement_turnright",
			"kennel_lookup", "kennel_lookdown", "imperative_lookatme", "kennel_wakeup", "kennel_battery", "status_feeling", "system_sleep", "system_charger", "greeting_goodmorning", "greeting_goodnight"}, yes: 28, cast: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRobot(t, tt.tree)
			if tt.cast {
				r.cast = &cast{runs: true}
			}
			if tt.species != "" {
				r.settings = jdocs.SettingsOf(tt.species) // which have no eyes, whatever is in the document
			}
			r.start(t, "b1")
			defer func() { r.end() }()
			can := r.Intents.Intents()
			if len(can) != tt.yes {
				t.Errorf("%s acts on %d: %q", name, len(can), can)
			}
			for _, intent := range Names() {
				o := r.take(t, intent, "time_s", "5", "volume_level", "1", "eye_color", "teal", "answer", "a", "temperature", "1", "what_to_stop", "timer")
				does := table[intent].does != nil && !slices.Contains(tt.no, intent)
				switch {
				case does != slices.Contains(can, intent):
					t.Errorf("%s says that it can %s: %v", name, intent, !does)
				case does && !o.Done:
					t.Errorf("%s %s: %+v", name, intent, o)
				case !does && o.Reason != NotSupported && o.Reason != Unmatched:
					t.Errorf("%s %s: %+v", name, intent, o)
				}
				if said := r.events(); len(said) == 0 || said[len(said)-1] != "intent "+intent+" "+cmpOr(string(o.Reason), "done") {
					t.Errorf("%s %s: events %q", name, intent, said)
				}
			}
		})
	}
}

// TestRefused: a robot that is driven, held, docked or without its body says so and does not move.
func TestRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(*robot)
		want   Reason
		text   string
	}{
		"program": {func(r *robot) { r.core.code = "busy" }, Busy, "something else moves me now"},
		"held":    {func(r *robot) { r.core.handle(&corelink.Held{By: "Ann", Reason: "wet floor"}) }, Held, "Ann holds me: wet floor"},
		"docked":  {func(r *robot) { r.core.handle(&corelink.State{Power: 1}) }, Docked, "I am on my charger"},
		"fault":   {func(r *robot) { r.core.code = "stopped" }, Failed, "I cannot move now: "},
		"cliff":   {func(r *robot) { r.core.ends = "stopped" }, Failed, "I could not finish: stopped after 0.02 m of 0.1 m"},
		"gone":    {func(r *robot) { r.core.gone = true }, Failed, "I do not feel my body now"},
		"off": {func(r *robot) {
			if err := r.gates.Override("HowOldAreYou", features.Disabled); err != nil {
				t.Error(err)
			}
		}, "", "I went 10 cm forward"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRobot(t, vector)
			r.start(t, "b1")
			defer func() { r.end() }()
			tt.before(r)
			r.core.heard()
			if o := r.take(t, "movement_forward"); o.Reason != tt.want || o.Text != tt.text {
				t.Errorf("%s: %+v", name, o)
			}
			if said := strings.Join(r.core.heard(), "|"); (tt.want == Held || tt.want == Docked || tt.want == Busy) && strings.Contains(said, "robot.go(") {
				t.Errorf("%s: robotd heard %q", name, said)
			}
			if name == "off" {
				if o := r.take(t, "character_age"); o.Reason != Unmatched {
					t.Errorf("behind a gate: %+v", o) // VEC-INT-11
				}
			}
		})
	}
}

// TestSleeps: a robot that sleeps wakes up to move, and says so when it is told to sleep again.
func TestSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRobot(t, vector)
		r.start(t, "b1")
		defer func() { r.end() }()
		r.core.handle(&corelink.Power{Sleep: "LightSleep"})
		r.core.heard()
		if o := r.take(t, "system_sleep"); o.Text != "I am already asleep" {
			t.Errorf("%+v", o)
		}
		r.take(t, "movement_forward")
		if said := strings.Join(r.core.heard(), "|"); said != "sleep 1|claim robot.go|robot.go(0.1)" {
			t.Errorf("robotd heard %q", said)
		}
		r.take(t, "greeting_goodmorning")
		if said := strings.Join(r.core.heard(), "|"); said != "sleep 1" {
			t.Errorf("robotd heard %q", said)
		}
	})
}
