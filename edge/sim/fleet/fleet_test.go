package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/certs/devicecert"
	"kennel/edge/core/corelink"
	"kennel/edge/env/platform"
	"kennel/infra/api/events"
	"kennel/infra/api/status"
	"kennel/infra/errs"
	"kennel/infra/mqtt"
	"kennel/infra/thing"
)

// fakeAgent is connected while it runs, keeps every fourth event waiting, and ends when told.
type fakeAgent struct {
	Machine
	boot string
	fail chan error // ends it

	mu      sync.Mutex
	emitted []events.Event
	set     []string
	clocks  []time.Time
}

func (a *fakeAgent) Run(ctx context.Context) error {
	a.OnUp()
	go func() { _ = a.Core.Run(ctx, func(corelink.Message) {}) }()
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.fail:
		return err
	}
}

func (a *fakeAgent) Emit(e events.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.emitted = append(a.emitted, e)
}

func (a *fakeAgent) Set(_ context.Context, fields map[string]json.RawMessage) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, v := range fields {
		a.set = append(a.set, k+"="+string(v))
	}
	return nil
}

func (a *fakeAgent) Events() (uint64, status.Spool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := uint64(len(a.emitted))
	return n, status.Spool{Events: n / 4}
}

func (a *fakeAgent) Identity() (devicecert.State, bool) {
	return devicecert.State{NotAfter: time.Now().Add(time.Hour)}, true
}

// crowd is a fleet of fake agents.
type crowd struct {
	mu     sync.Mutex
	agents map[string][]*fakeAgent // by folder, one for each boot
}

func (c *crowd) make(root *os.Root, m Machine) (Agent, error) {
	boot, err := platform.BootID(root)
	if err != nil {
		return nil, err
	}
	a := &fakeAgent{Machine: m, boot: boot, fail: make(chan error, 1), clocks: []time.Time{m.Now()}}
	c.mu.Lock()
	defer c.mu.Unlock()
	name := filepath.Base(m.Folder)
	c.agents[name] = append(c.agents[name], a)
	return a, nil
}

// of returns the agents of one robot.
func (c *crowd) of(id thing.ID) []*fakeAgent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.agents[id.Slug()]
}

func newCrowd(t *testing.T, folder string, n int, p Profile, change ...func(*Config)) (*Fleet, *crowd) {
	t.Helper()
	c := &crowd{agents: map[string][]*fakeAgent{}}
	cfg := Config{N: n, First: vic, Folder: folder, Seed: 7, Profile: p, RootPEM: []byte(rootPEM), OSVersion: "2.0.0.6074",
		Secrets: anySecret{}, NewAgent: c.make,
		Log: slog.New(slog.DiscardHandler)}
	cfg.Endpoints.Kennel.API = "https://localhost:1"
	for _, f := range change {
		f(&cfg)
	}
	f, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f, c
}

type anySecret struct{}

func (anySecret) Secret(_ context.Context, id thing.ID) (string, error) {
	return "secret of " + string(id), nil
}

// TestFleetFollowsItsPlans: in three simulated days robots do exactly what their plans say, the same in every run.
func TestFleetFollowsItsPlans(t *testing.T) {
	p := presets["rough"]
	p.Reboots = 2
	const days = 3
	live := func() (Summary, map[string][]*fakeAgent) {
		var s Summary
		var c *crowd
		synctest.Test(t, func(t *testing.T) {
			var f *Fleet
			f, c = newCrowd(t, t.TempDir(), 12, p)
			ctx, cancel := context.WithTimeout(t.Context(), p.real(days*24*time.Hour)) // simulated
			defer cancel()
			if err := f.Run(ctx); err != nil {
				t.Fatal(err)
			}
			s = f.Summary()
		})
		return s, c.agents
	}
	s, agents := live()
	if s.Robots != 12 || s.Made != 12 || s.Enrolled != 12 || s.Connected != 12 {
		t.Errorf("%+v", s)
	}
	var want Summary
	for name, boots := range agents {
		plan := p.Plan(7, thing.ID(strings.Replace(name, "-", ":", 1)))
		var events, changes []string
		clocks := []Clock{plan.Clock}
		for step, _ := plan.Next(); step.At < days*24*time.Hour; step, _ = plan.Next() {
			switch step.Kind {
			case Emit:
				events = append(events, fmt.Sprint(step.N))
			case Change:
				changes = append(changes, step.Field+"="+step.Value)
			case Reboot:
				clocks = append(clocks, step.Clock)
				want.Reboots++
			case Drop:
				want.Drops++
			}
		}
		want.Events.Emitted += uint64(len(events))
		want.Settings += int64(len(changes))
		var gotEvents, gotChanges []string
		ids := map[string]bool{}
		for i, a := range boots {
			for _, e := range a.emitted {
				gotEvents = append(gotEvents, e.S1)
			}
			gotChanges = append(gotChanges, a.set...)
			ids[a.boot] = true
			if c := clocks[min(i, len(clocks)-1)]; (a.clocks[0].Year() == 1970) != c.Reset {
				t.Errorf("%s: boot %d begins at %v, want %+v", name, i, a.clocks[0], c)
			}
		}
		if !reflect.DeepEqual(gotEvents, events) || !reflect.DeepEqual(gotChanges, changes) || len(ids) != len(clocks) {
			t.Errorf("%s: %d events, %d changes, %d boots; want %d, %d, %d", name, len(gotEvents), len(gotChanges), len(ids), len(events),
				len(changes), len(clocks))
		}
	}
	if s.Events.Emitted != want.Events.Emitted || s.Settings != want.Settings || s.Reboots != want.Reboots || s.Drops != want.Drops ||
		s.Reboots == 0 || s.Settings == 0 {
		t.Errorf("did %+v, want %+v", s, want)
	}
	if s.Events.Acked == 0 || s.Events.Acked > s.Events.Emitted {
		t.Errorf("%+v", s.Events)
	}
	again, _ := live()
	again.Process, s.Process, again.Login, s.Login = Process{}, Process{}, Distribution{}, Distribution{}
	if !reflect.DeepEqual(again, s) {
		t.Errorf("the same seed:\n%+v\n%+v", s, again)
	}
}

// TestAgentEnds: one that fails is started again, in the same boot.
func TestAgentEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newCrowd(t, t.TempDir(), 1, presets["idle"])
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- f.Run(ctx) }()
		synctest.Wait()
		c.of(vic)[0].fail <- errors.New("the cloud asked for it")
		time.Sleep(3 * time.Second) // simulated
		c.of(vic)[1].fail <- nil
		time.Sleep(3 * time.Second) // simulated
		s := f.Summary()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		boots := c.of(vic)
		if len(boots) != 3 || boots[0].boot != boots[2].boot || s.Errors["agent"] != 2 || s.Connected != 1 || s.Reconnects != 2 {
			t.Errorf("%d agents, %+v", len(boots), s)
		}
	})
}

// TestRegistrationFails: what passes is tried again, what does not ends the fleet with the robot's name.
func TestRegistrationFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []error{errs.New(errs.Unavailable, "no answer"), nil, errs.New(errs.Denied, "not an operator")}
		f, _ := newCrowd(t, t.TempDir(), 2, presets["idle"], func(c *Config) {
			c.AtOnce = 1
			c.Secrets = secretsFunc(func() (string, error) {
				err := answers[0]
				answers = answers[1:]
				return "s", err
			})
		})
		err := f.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "vic:00f00001: not an operator") || errs.KindOf(err) != errs.Denied {
			t.Errorf("%v", err)
		}
		if s := f.Summary(); s.Made != 1 || s.Connects != 1 || s.Errors["register"] != 1 {
			t.Errorf("%+v", s)
		}
	})
}

type secretsFunc func() (string, error)

func (f secretsFunc) Secret(context.Context, thing.ID) (string, error) { return f() }

// TestFoldersAreKept: a second fleet in the same place needs no secrets.
func TestFoldersAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		for _, secrets := range []Secrets{anySecret{}, Known{}} {
			f, c := newCrowd(t, folder, 3, presets["idle"], func(c *Config) { c.Secrets = secrets })
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := f.Run(ctx)
			cancel()
			if err != nil || len(c.agents) != 3 {
				t.Fatalf("%d agents, %v", len(c.agents), err)
			}
		}
	})
}

func TestNewRefuses(t *testing.T) {
	good := Config{N: 1, First: vic, Folder: "x", Profile: presets["idle"], NewAgent: new(crowd).make, Log: slog.New(slog.DiscardHandler)}
	for _, tc := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.N = 0 }, "0 robots"},
		{func(c *Config) { c.N = 10_000_000 }, "file descriptors"},
		{func(c *Config) { c.First = "vic:zzz" }, `"vic:zzz"`},
		{func(c *Config) { c.First, c.N = "vic:ffffffff", 2 }, "1 more can follow"},
		{func(c *Config) { c.Profile.TimeFactor = 0 }, "time_factor"},
		{func(c *Config) { c.Folder = "" }, "Folder"},
	} {
		cfg := good
		tc.change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v, want %q", err, tc.want)
		}
	}
}

// TestServe: the summary as JSON, and reconnects on demand.
func TestServe(t *testing.T) {
	f, _ := newCrowd(t, t.TempDir(), 3, presets["idle"])
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2) // the fleet and its page
	ln, err := Listen(ctx, filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	go func() { done <- f.Run(ctx) }()
	go func() { done <- f.Serve(ctx, ln) }()
	h := f.Handler()
	ask := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w
	}
	var s Summary
	for s.Connected < 3 {
		if err := json.Unmarshal(ask("GET", "/status").Body.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
	}
	if w := ask("POST", "/reconnect?n=2"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"cut": 2`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask("POST", "/reconnect?n=x"); w.Code != http.StatusBadRequest {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask("GET", "/reconnect"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask("POST", "/reboot?thing=x"); w.Code != http.StatusBadRequest {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask("POST", "/reboot?thing="+string(vic)+"&thing=vic:00e2ffff"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"rebooted": 1`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for s.Reboots < 1 || s.Connected < 3 {
		if err := json.Unmarshal(ask("GET", "/status").Body.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, addr := range []string{"0.0.0.0:9100", "9100", ""} {
		if _, err := Listen(t.Context(), addr); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

// TestReasons: a lost connection is counted by step and reason, once as an absence, and not if the plan took the network away.
func TestReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newCrowd(t, t.TempDir(), 1, presets["idle"])
		r := f.robots[0]
		lost := &mqtt.DownError{Step: "session", Reason: mqtt.Lost, Err: errors.New("EOF")}
		r.connect()
		r.disconnect(lost)
		time.Sleep(2 * time.Second) // simulated
		r.disconnect(&mqtt.DownError{Step: "tls", Reason: mqtt.Protocol, Err: &devicecert.TrustError{LackedRoot: "x", Err: errors.New("no")}})
		time.Sleep(time.Second) // simulated
		r.connect()
		r.wire.leave()
		r.forgive()
		r.disconnect(lost)
		time.Sleep(time.Minute) // simulated
		r.wire.back()
		r.connect()
		s := f.Summary()
		want := map[string]int64{"session/lost": 2, "tls/unknown_root": 1}
		if !reflect.DeepEqual(s.Errors, want) || s.Absence.N != 1 || s.Absence.Max != 3000 || s.Connects != 3 || s.Reconnects != 2 {
			t.Errorf("%+v", s)
		}
	})
}

func TestSamples(t *testing.T) {
	var s samples
	if got := s.distribution(); got != (Distribution{}) {
		t.Errorf("of nothing: %+v", got)
	}
	for i := 101; i > 0; i-- {
		s.add(time.Duration(i) * time.Millisecond)
	}
	if got, want := s.distribution(), (Distribution{N: 101, Min: 1, Mean: 51, P50: 51, P90: 91, P99: 100, Max: 101}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for range maxSamples {
		s.add(time.Second)
	}
	if got := s.distribution(); got.N != maxSamples || got.Min != 1000 {
		t.Errorf("the last ones: %+v", got)
	}
}

// TestCore: vitals that the agent's battery rules can take.
func TestCore(t *testing.T) {
	c := newCore(1, vic, time.Second)
	seen := map[uint8]bool{}
	for up := time.Duration(0); up < cycle; up += time.Minute {
		s := c.state(up, 1)
		if s.BatteryVolts < 3.64 || s.BatteryVolts > 4.16 || (s.Power != 0) != (s.ChargerVolts > 0) {
			t.Fatalf("after %v: %+v", up, s)
		}
		seen[s.BatteryLevel] = true
	}
	if len(seen) != 2 {
		t.Errorf("levels %v, want nominal and full", seen)
	}
	if h, ok := c.Hello(); !ok || h.Body.Species != "vic" {
		t.Errorf("%+v", h)
	}
}
