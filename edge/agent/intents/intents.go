// Package intents acts on what people want of the robot: a spoken, typed or pressed intent, mapped to the robot's own name of it, ends with an answer.
//
//	voice, command intent, app ─► Inbox.Take ─► table ─► robotd (coreclient), documents, timer
//
// What a body can do is found in its tree, not by its species. Motions claim their parts for a short time and below every program and person, so a
// robot that is driven, held or docked refuses and says why.
package intents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/edge/agent/features"
	"kennel/edge/body"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/mind/mindlink"
	"kennel/infra/api/events"
	"kennel/infra/api/live"
	"kennel/infra/logging"
	"kennel/infra/wake"
	"kennel/jdocs"
	"kennel/speech/intent"
)

// Reason says why a robot did not do as it was told; "": it did.
type Reason string

// The reasons.
const (
	NotSupported Reason = "not_supported" // nothing on this robot does it
	Unmatched    Reason = "unmatched"     // no intent of that name, or its feature is off (VEC-INT-11)
	Invalid      Reason = "invalid"       // a parameter is missing or wrong
	Busy         Reason = "busy"          // another program or a person moves the robot
	Held         Reason = "held"          // a person halted it
	Docked       Reason = "docked"        // it is on its charger
	Failed       Reason = "failed"        // it tried
)

// NotHere is the answer to what this robot cannot do.
const NotHere = "not supported by this robot"

// Outcome is the answer to an intent.
type Outcome struct {
	Intent  string
	Done    bool
	Text    string // what the robot says or shows
	Emotion string // an event of its mood that the answer is; "": none
	Reason  Reason
}

// Inbox takes intents. from is voice, cloud or app.
type Inbox interface {
	Take(ctx context.Context, u intent.User, from string) (Outcome, error)
}

// Docs are the robot's documents (docs.Agent).
type Docs interface {
	Get(name jdocs.Name) (jdocs.Doc, error)
	Set(ctx context.Context, name jdocs.Name, fields map[string]json.RawMessage) error
}

// Config holds what acting needs. All before Photograph is required, and Log.
type Config struct {
	Root     *os.Root
	Core     *coreclient.Client
	Docs     Docs
	Settings jdocs.Name // the document with the robot's settings; "": it has none
	Emit     func(events.Event)
	Keep     func(context.Context, events.Event) error
	Changed  func()                   // the result of Intents may have changed
	Local    func() (time.Time, bool) // the time where the robot lives, if that is known
	Now      func() time.Time         // the system's clock, which may jump
	Mono     func() time.Duration     // monotonic since the boot
	Boot     string                   // the id of this boot

	Photograph func(context.Context) error // takes a photo; nil: nothing on this robot does
	// GoHome drives onto the charger, and returns when the robot is there or could not get there; false: it does not know where its charger is. nil: nothing
	// on this robot does.
	GoHome    func(context.Context) (known bool, err error)
	Character Character                              // plays animations; nil: there is none
	Mood      func() (now mindlink.Feeling, ok bool) // what the robot feels; nil: it has no emotions
	Speaker   Speaker                                // says answers; nil: nothing does
	Display   Display                                // shows pages; nil: nothing does
	Begin     func(feature string) (end func())      // hears of features of annex C that begin; nil: nothing does
	Heard     func(intent.User)                      // is told of each intent before the robot acts on it, and does not block; nil: nothing is
	Log       *slog.Logger
}

// Intents is safe for concurrent use; Run is called once.
type Intents struct {
	cfg   Config
	gates *features.Set
	names *intent.Map
	met   wake.Signal // one slot: robotd is another
	timer *timer
	shows chan show

	answers chan spoken // to be said; one slot, the newest

	paging sync.Mutex
	pages  int // that were shown

	mu    sync.Mutex
	can   parts
	held  corelink.Held
	power body.Power
	level uint8 // power.Level
	sleep string
	after time.Time // until when "stop" or "cancel it" means the timer (part of VEC-INT-15)
}

// parts are the abilities that the tree shows.
type parts struct {
	mobile bool
	head   *live.Node // that nods
	lights []string   // by full name
	camera bool
}

// New reads the features and the timer that was set before. A robot whose timer cannot be read has none.
func New(cfg Config) (*Intents, error) {
	if cfg.Begin == nil {
		cfg.Begin = func(string) func() { return func() {} }
	}
	gates, err := features.Open(cfg.Root)
	if gates == nil {
		return nil, err
	}
	if err != nil {
		cfg.Log.Error("overrides of features ignored", logging.Err, err)
	}
	x := &Intents{cfg: cfg, gates: gates, met: wake.New(), timer: newTimer(cfg), shows: make(chan show), answers: make(chan spoken, 1)}
	x.names, err = x.loadMap(cfg.Root)
	return x, err
}

// Features returns the features of the robot's software, by name.
func (x *Intents) Features() []features.Feature { return x.gates.List() }

// Handle takes every message of robotd, after the client did. It does not block.
func (x *Intents) Handle(m corelink.Message) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch m := m.(type) {
	case *corelink.Hello:
		x.met.Set()
	case *corelink.Held:
		x.held = *m
	case *corelink.State:
		x.power, x.level = body.Power(m.Power), m.BatteryLevel
	case *corelink.Power:
		x.sleep = m.Sleep
	}
}

// Run keeps the timer and looks at each new body, until ctx ends.
func (x *Intents) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { x.timer.run(ctx, x.ring) })
	wg.Go(func() { x.speak(ctx) })
	wg.Go(func() { x.stage(ctx) })
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-x.met:
		}
		for x.look(ctx) != nil && ctx.Err() == nil { // robotd ended; its next Hello is another signal
			select {
			case <-ctx.Done():
			case <-x.met:
			}
		}
	}
}

// look reads the tree.
func (x *Intents) look(ctx context.Context) error {
	t, err := x.cfg.Core.Tree(ctx)
	if err != nil {
		x.cfg.Log.DebugContext(ctx, "tree not read", logging.Err, err)
		return err
	}
	p := partsOf(&t.Tree)
	x.mu.Lock()
	x.can = p
	x.mu.Unlock()
	x.cfg.Changed()
	return nil
}

func partsOf(t *live.Tree) (p parts) {
	for i := range t.Nodes {
		n := &t.Nodes[i]
		is := strings.Split(n.Interface, ", ")
		switch {
		case slices.Contains(is, "Mobile"):
			p.mobile = true
		case n.Full == "robot.body.head.pitch":
			p.head = n
		case slices.Contains(is, "RGBLed"), slices.Contains(is, "Led"):
			p.lights = append(p.lights, n.Full)
		case slices.Contains(is, "VideoIn"):
			p.camera = true
		}
	}
	return p
}

// open reports whether the feature of an intent is on (VEC-INT-11).
func (x *Intents) open(name string) bool {
	in, _ := intent.ByUser(name)
	return x.gates.On(in.Gate)
}

// now returns what the robot is and has now.
func (x *Intents) now() (parts, corelink.Held, body.Power, string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.can, x.held, x.power, x.sleep
}

// Intents returns the names of those that this robot can act on now, sorted.
func (x *Intents) Intents() (out []string) {
	can, _, _, _ := x.now()
	for _, name := range Names() {
		if row := table[name]; row.does != nil && x.open(name) && x.has(row.needs, can) {
			out = append(out, name)
		}
	}
	return out
}

func (x *Intents) has(n need, can parts) bool {
	switch n {
	case wheels:
		return can.mobile
	case head:
		return can.head != nil
	case eyes:
		return len(x.choices("eye_color")) > 0
	case voice:
		return len(x.choices("master_volume")) > 0
	case camera:
		return can.camera && x.cfg.Photograph != nil
	case charger:
		return can.mobile && x.cfg.GoHome != nil
	case character:
		return x.cfg.Character != nil && x.cfg.Character.Runs()
	case some:
		return can.mobile || can.head != nil || len(can.lights) > 0
	}
	return true
}

// Take acts on u and returns the answer. It returns an error only if ctx ended before there was one.
func (x *Intents) Take(ctx context.Context, u intent.User, from string) (Outcome, error) {
	o, err := x.act(ctx, u)
	o.Intent = u.Name
	if err != nil {
		o = Outcome{Intent: u.Name, Reason: Failed, Text: "that did not work: " + err.Error()}
	}
	said, language := x.inLanguage(o, u)
	if said != o.Text && o.Reason != "" { // the other language leaves out what is for those who debug
		x.cfg.Log.InfoContext(ctx, "intent not done", "intent", u.Name, "why", o.Text)
	}
	o.Text = said
	o.Done = o.Reason == ""
	x.cfg.Emit(events.Event{Source: "agentd", Name: "robot.intent", S1: u.Name, S2: cmp.Or(string(o.Reason), "done"), S3: from})
	if ctx.Err() != nil {
		return o, ctx.Err()
	}
	x.aloud(spoken{o.Text, language})
	return o, nil
}

func (x *Intents) act(ctx context.Context, u intent.User) (Outcome, error) {
	row, known := table[u.Name]
	if u.Response != nil {
		if x.cfg.Heard != nil {
			x.cfg.Heard(u)
		}
		defer x.cfg.Begin(u.Response.ActiveFeature)()
		return x.answer(x.respond(ctx, u.Response))
	}
	if !known || u.Name == intent.Unmatched || !x.open(u.Name) {
		return Outcome{Reason: Unmatched, Text: "I did not understand that"}, nil
	}
	if x.cfg.Heard != nil {
		x.cfg.Heard(u)
	}
	can, _, _, _ := x.now()
	if row.does == nil || !x.has(row.needs, can) {
		return Outcome{Reason: NotSupported, Text: NotHere}, nil
	}
	defer x.cfg.Begin(row.feature)()
	return x.answer(row.does(x, ctx, u))
}

// answer puts errors of robotd into words.
func (x *Intents) answer(o Outcome, err error) (Outcome, error) {
	var refused *coreclient.Refused
	if errors.As(err, &refused) {
		switch refused.Code {
		case "busy", "not_held":
			return Outcome{Reason: Busy, Text: "something else moves me now"}, nil
		case "stopped":
			return Outcome{Reason: Failed, Text: "I cannot move now: " + refused.Detail}, nil
		}
	}
	if errors.Is(err, coreclient.ErrNotConnected) || errors.Is(err, coreclient.ErrLost) {
		return Outcome{Reason: Failed, Text: "I do not feel my body now"}, nil
	}
	return o, err
}

// text returns a parameter as text; "" if it is missing.
func text(u intent.User, name string) string {
	if v := u.Params[name]; v != nil {
		return fmt.Sprint(v)
	}
	return ""
}

func refuse(why Reason, format string, args ...any) (Outcome, error) {
	return Outcome{Reason: why, Text: fmt.Sprintf(format, args...)}, nil
}

func say(format string, args ...any) (Outcome, error) {
	return Outcome{Text: fmt.Sprintf(format, args...)}, nil
}
