package agentapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/agent/health"
	"kennel/edge/agent/health/nightly"
	"kennel/edge/agent/link"
	"kennel/edge/core/corelink"
	"kennel/edge/env/platform"
	"kennel/infra/api/events"
)

// sleeper is a real-time core whose robot sleeps.
type sleeper struct {
	state string
	began func()
}

func (s sleeper) Run(ctx context.Context, handle func(corelink.Message)) error {
	s.began()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		handle(&corelink.Power{Cloud: true, Sleep: s.state})
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
func (sleeper) Hello() (corelink.Hello, bool) { return corelink.Hello{}, false }
func (sleeper) Send(corelink.Message) error   { return nil }

// spooled are the events of that name below root, as "s1 s2".
func spooled(t *testing.T, root *os.Root, name string) (out []string) {
	t.Helper()
	err := fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if ok, _ := filepath.Match("das-*.ndjson", filepath.Base(path)); err != nil || !ok {
			return err
		}
		b, err := root.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(b)) {
			e, err := events.ParseLine(strings.TrimSuffix(line, "\n"))
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if e.Name == name {
				out = append(out, strings.TrimSpace(e.S1+" "+e.S2))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out) // a backup moves the older ones
	return out
}

// soon is a night that begins now, in the zone of a robot without settings.
func soon(t *testing.T) *platform.Rebooter {
	t.Helper()
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	h, m, s := time.Now().In(zone).Clock()
	now := time.Duration(h*3600+m*60+s) * time.Second
	return &platform.Rebooter{Earliest: now, Latest: (now + time.Minute) % (24 * time.Hour), InhibitorDelay: time.Second}
}

// TestNight: VEC-BOOT-16: an agent whose robot sleeps, and whose clock the cloud confirms, ends for the night; the next start says so, and says
// whether only the robot's programs restarted.
func TestNight(t *testing.T) {
	dir, root, _ := newRobot(t, nil)
	night := func(c *Config) { c.Nightly, c.Core, c.Frugal = soon(t), sleeper{"DeepSleep", func() {}}, true }
	a := newAgent(t, dir, root, night)
	cfg := a.health.NightConfig()
	cfg.Pick = func(time.Duration) time.Duration { return 0 }
	a.health.Nightly = nightly.New(cfg, time.Time{})
	a.link.HearTime(time.Now().Add(-time.Minute))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := a.Run(ctx); !errors.Is(err, health.ErrNight) {
		t.Fatalf("it ended with %v, want %v", err, health.ErrNight)
	}
	if !nightly.Asked(root) {
		t.Errorf("%s is not there", nightly.AskedFile)
	}
	if got := spooled(t, root, nightly.Event); !slices.Equal(got, []string{"proceeding"}) {
		t.Errorf("events %q", got)
	}
	started := func(want ...string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		a := newAgent(t, dir, root, func(c *Config) { night(c); c.Core = sleeper{"Awake", cancel} })
		if err := a.Run(ctx); err != nil {
			t.Error(err)
		}
		if got := spooled(t, root, nightly.Event); !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
	}
	started("done agentd", "proceeding")
	if nightly.Asked(root) {
		t.Errorf("%s is there after the start", nightly.AskedFile)
	}
	started("done agentd", "proceeding")          // no news
	if err := root.RemoveAll("run"); err != nil { // the robot boots
		t.Fatal(err)
	}
	if err := root.WriteFile(nightly.AskedFile, []byte("2026-05-01T03:04:05Z another-boot\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	started("done agentd", "done robot", "proceeding")
}

// TestNightTime: VEC-BOOT-14: there is a time of day only while the cloud's newest answer agrees with the clock, and in the zone of the settings.
func TestNightTime(t *testing.T) {
	at := time.Date(2026, 7, 1, 1, 30, 0, 0, time.UTC)
	_, _, a := newRobot(t, func(c *Config) { c.Now = func() time.Time { return at } })
	local := a.health.LocalTime()
	is := func(what, want string) {
		t.Helper()
		got := "not known"
		if now, ok := local(); ok {
			got = now.Format("15:04 MST")
		}
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	is("nobody said what time it is", "not known")
	if a.link.ClockRight() {
		t.Error("the clock counts as right although nothing has set it")
	}
	a.link.HearTime(at.Add(-link.ClockSlack))
	is("the cloud agrees", "18:30 PDT")
	if err := a.Set(t.Context(), map[string]json.RawMessage{"time_zone": json.RawMessage(`"Europe/Berlin"`)}); err != nil {
		t.Fatal(err)
	}
	is("the owner moved", "03:30 CEST")
	a.link.HearTime(at.Add(link.ClockSlack + time.Second))
	is("the cloud says otherwise", "not known")
	if a.link.ClockRight() {
		t.Error("the clock is right, and the cloud says otherwise")
	}
	a.link.HearTime(at.Add(link.ClockSlack - time.Second))
	is("and agrees again", "03:30 CEST")
	if !a.link.ClockRight() {
		t.Error("the clock is not right, as the cloud says that it is")
	}
	at = at.Add(time.Hour)
	is("the clock jumps after that", "not known")
}
