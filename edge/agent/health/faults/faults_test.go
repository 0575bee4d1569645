package faults

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/edge/faultcode"
	"kennel/infra/api/events"
	"kennel/infra/api/status"
)

// rig is a robot with a handler and what it did.
type rig struct {
	t      *testing.T
	root   *os.Root
	cfg    Config
	h      *Handler
	start  time.Time
	events []string
	did    []string // by its services, with the time since the start
	onStop func()
	err    error // of services
}

func newRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	r := &rig{t: t, root: root, start: time.Now(), onStop: func() {}}
	r.cfg = Config{
		Root: root, Handler: platform.FaultHandler{RestartLimit: 2, LimitWindow: time.Minute, SigtermAfter: 3 * time.Second, RestartAfter: 5 * time.Second},
		Logs: platform.LogUploader{QuotaMB: 10}, Services: r, Watched: []Service{{Name: "engine", Failed: 914, Hung: 915},
			{Name: "robotd", Failed: 916, Hung: 916}},
		Emit:   func(e events.Event) { r.events = append(r.events, fmt.Sprint(e.Name, " ", e.I1.N)) },
		Uptime: func() time.Duration { return 1000*time.Hour + time.Since(r.start) },
		Log:    slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if change != nil {
		change(&r.cfg)
	}
	r.h = New(r.cfg)
	return r
}

func (r *rig) note(format string, args ...any) {
	r.did = append(r.did, time.Since(r.start).Round(100*time.Millisecond).String()+" "+fmt.Sprintf(format, args...))
}

func (r *rig) Stop(_ context.Context, service string, hangs bool, patience time.Duration) error {
	if !hangs {
		r.note("%s does not hang", service)
	}
	r.note("stop %s within %v, showing %q, pending %v", service, patience, r.file(ShowingFile), Pending(r.root))
	r.onStop()
	return r.err
}

func (r *rig) Start(_ context.Context, service string) error {
	r.note("start %s, showing %q", service, r.file(ShowingFile))
	return r.err
}

// file returns the content of a file; "-" if it does not exist.
func (r *rig) file(name string) string {
	b, err := robotfs.ReadFile(r.root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return "-"
	}
	if err != nil {
		r.t.Error(err)
	}
	return strings.TrimSpace(string(b))
}

// run runs the handler in a bubble until the test ends it.
func (r *rig) run() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.h.Run(ctx) }()
	time.Sleep(Heartbeat / 2) // so that no heartbeat comes with a tick
	return func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Error(err)
		}
	}
}

// live lets the services speak for as long.
func (r *rig) live(d time.Duration, services ...string) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(Heartbeat) {
		for _, s := range services {
			r.h.Beat(s)
		}
	}
	synctest.Wait()
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// TestOnceUntilCleared: a fault is told and shown once, later ones do not take its place, and what is over is not shown
// (VEC-FLT-11, 12).
func TestOnceUntilCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Watched = nil })
		defer r.run()()
		for range 3 {
			r.h.Raise(Fault{Code: faultcode.CloudCertificate, Service: "agentd", Err: errors.New("it is cut")})
			r.h.Raise(Fault{Code: 921})
		}
		r.h.Report("robotd", 890) // which tells its events itself
		synctest.Wait()
		same(t, "events", r.events, []string{"robot.fault_code 850", "robot.fault_code 921"})
		if got := r.file(ShowingFile); got != "850" || r.h.Shown() != 850 {
			t.Errorf("shown %q, %v; want 850", got, r.h.Shown())
		}
		if Pending(r.root) {
			t.Error("pending when all is handled")
		}
		same(t, "words", r.h.Words(), []string{
			"fault 850: it is cut (There is a problem with the cloud certificate.); the robot shows it",
			"fault 921: no details (Vic-gateway was unable to start or crashed.)",
			"fault 890: reported by robotd (The front right cliff sensor failed during power-on self test.)",
		})
		r.h.Over(850)
		synctest.Wait()
		if got := r.file(ShowingFile); got != "921" {
			t.Errorf("shown %q after the first is over, want the next", got)
		}
		r.h.Over(921)
		r.h.Report("robotd", 891)
		synctest.Wait()
		if got := r.file(ShowingFile); got != "891" {
			t.Errorf("shown %q, want robotd's new one", got)
		}
		r.h.Report("robotd", 0)
		synctest.Wait()
		if got := r.file(ShowingFile); got != "-" || r.h.Shown() != 0 || len(r.h.Words()) != 0 {
			t.Errorf("shown %q, %v, %q; want nothing", got, r.h.Shown(), r.h.Words())
		}
		r.h.Raise(Fault{Code: 921}) // is another one now
		synctest.Wait()
		if err := Clear(r.root); err != nil { // a person at the robot
			t.Fatal(err)
		}
		time.Sleep(2 * Heartbeat)
		synctest.Wait()
		if r.h.Shown() != 0 || len(r.h.Words()) != 0 {
			t.Errorf("%v, %q stand after they were cleared", r.h.Shown(), r.h.Words())
		}
		r.h.Raise(Fault{Code: 921})
		synctest.Wait()
		same(t, "events", r.events[2:], []string{"robot.fault_code 921", "robot.fault_code 921"})
		for _, code := range []faultcode.Code{0, 1000, 65535} {
			r.h.Raise(Fault{Code: code})
		}
		if n := len(r.h.Words()); n != 1 {
			t.Errorf("%d faults stand: what has no three digits is none", n)
		}
	})
}

// TestSilence: VEC-WDOG-05: a service that is silent for ten heartbeats hangs, one that never speaks did not start, and one that speaks
// again is well.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.run()()
		r.live(5*time.Second, "engine")
		r.live(9*time.Second, "engine", "nobody")
		if r.h.Shown() != 0 {
			t.Errorf("%v is shown before the time", r.h.Shown())
		}
		r.live(18 * time.Second) // robotd has had 30 s and more then, and the engine spoke
		same(t, "events", r.events, []string{"robot.fault_code 915", "robot.fault_code 916"})
		same(t, "words", r.h.Words(), []string{
			"fault 915: no sign of life from engine for 10s (Vic-engine stopped responding.); the robot shows it",
			"fault 916: robotd did not start: no sign of life for 30s (Vic-robot was unable to start or crashed.)",
		})
		r.live(2*time.Second, "engine")
		if got := r.file(ShowingFile); got != "916" {
			t.Errorf("shown %q when the engine is back, want 916", got)
		}
		r.live(2*time.Second, "engine", "robotd")
		if got := r.file(ShowingFile); got != "-" || len(r.events) != 2 {
			t.Errorf("shown %q, events %q; want none, and nothing new", got, r.events)
		}
		same(t, "restarts that nobody wanted", r.did, nil)
		r.h.take([]byte("914"))
		synctest.Wait()
		if got := r.file(ShowingFile); got != "914" {
			t.Errorf("shown %q, want the end of the engine", got)
		}
		r.live(2*time.Second, "engine", "robotd")
		if got := r.file(ShowingFile); got != "-" {
			t.Errorf("shown %q of an engine that speaks", got)
		}
		r.events = slices.Delete(r.events, 2, 3)
		r.live(11*time.Second, "engine")
		same(t, "events", r.events[2:], []string{"robot.fault_code 916"})
		if err := Clear(r.root); err != nil {
			t.Fatal(err)
		}
		r.live(3*time.Second, "engine")
		same(t, "events of what is still wrong", r.events[2:], []string{"robot.fault_code 916", "robot.fault_code 916"})
	})
}

// TestRestart: VEC-WDOG-04, VEC-FLT-07, VEC-FLT-13: stop, show, wait, start; twice in a minute, also for an agentd that restarts in between, and then
// no longer. Services that are starting are left alone.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Handler.Restart = true })
		end := r.run()
		hang := func() {
			r.live(2*time.Second, "engine", "robotd")
			r.live(17*time.Second, "engine")
		}
		hang()
		end()
		r.h = New(r.cfg)
		end = r.run()
		if r.h.Shown() != 916 {
			t.Errorf("the next handler shows %v, want 916", r.h.Shown())
		}
		hang()
		hang()
		same(t, "restarts", r.did, []string{
			`11s stop robotd within 3s, showing "-", pending true`, `16s start robotd, showing "916"`,
			`30.5s stop robotd within 3s, showing "-", pending true`, `35.5s start robotd, showing "916"`,
			`49.5s stop robotd within 3s, showing "-", pending true`,
		})
		if got := r.file(countFile); got != "2" {
			t.Errorf("count %q, want 2", got)
		}
		if words := strings.Join(r.h.Words(), "; "); !strings.Contains(words, "not started again: 2 restarts, at most 2 in 1m0s") {
			t.Errorf("words %q", words)
		}
		if Pending(r.root) {
			t.Error("still pending")
		}
		// A minute after the last restart they are forgotten.
		r.live(50*time.Second, "engine", "robotd")
		r.did = nil
		r.onStop = func() { // its supervisor is quicker
			time.AfterFunc(2*time.Second, func() { r.h.Beat("robotd") })
		}
		hang()
		if len(r.did) != 1 || !strings.Contains(r.did[0], "stop robotd") {
			t.Errorf("did %q; want a stop, and nothing for one that came back", r.did)
		}
		if got := r.file(countFile); got != "1" {
			t.Errorf("count %q, want 1", got)
		}
		end()
	})
}

// TestClasses: a failed check of the start stops all services that are watched and starts them again, a service that ended stops it alone, and
// other faults stop nothing (VEC-FLT-06).
func TestClasses(t *testing.T) {
	for code, want := range map[faultcode.Code][]string{
		799: nil, 800: {"engine", "robotd", "vic-anim"}, 850: {"engine", "robotd"}, 899: {"engine", "robotd"}, 900: nil,
		914: {"engine"}, 915: {"engine"}, 916: {"robotd"}, 917: {"vic-anim"}, 921: {"vic-gateway"}, 960: nil, 970: nil,
		979: nil, 980: {"engine", "robotd", "mm-anki-camera"}, 990: {"engine", "robotd"}, 702: nil, 101: nil, 205: nil,
	} {
		for _, restart := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(c *Config) { c.Handler.Restart = restart })
				defer r.run()()
				r.h.Raise(Fault{Code: code})
				r.live(9*time.Second, "engine", "robotd")
				if code >= 914 && code <= 916 { // whose service spoke in time
					want = nil
				}
				var stopped, started []string
				for _, did := range r.did {
					if _, s, ok := strings.Cut(did, " stop "); ok {
						stopped = append(stopped, strings.Fields(s)[0])
					} else if _, s, ok := strings.Cut(did, " start "); ok {
						started = append(started, strings.TrimSuffix(strings.Fields(s)[0], ","))
					}
				}
				if !restart {
					same(t, code.String()+" where nothing may be restarted", r.did, nil)
					return
				}
				same(t, code.String()+" stopped", stopped, want)
				same(t, code.String()+" started", started, want)
				if count := r.file(countFile); len(want) > 0 && count != "1" {
					t.Errorf("%v: counted as %s restarts, want 1", code, count)
				}
			})
		}
	}
}

// TestRestartOnlyOfWhatEnded: of services that are not watched the code says the name.
func TestRestartOnlyOfWhatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Handler.Restart, c.Watched = true, nil })
		r.err = errors.New("no such service")
		defer r.run()()
		for _, code := range []faultcode.Code{850, 890, 960, 702, 921} {
			r.h.Raise(Fault{Code: code})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "restarts", r.did, []string{`500ms stop vic-gateway within 3s, showing "850", pending true`, `5.5s start vic-gateway, showing "850"`})
		if words := strings.Join(r.h.Words(), "\n"); !strings.Contains(words, "not started again: no such service") {
			t.Errorf("words %q", words)
		}
		// A restart that cannot be counted is not made.
		r.did = nil
		if err := errors.Join(r.root.Remove(countFile), r.root.Mkdir(countFile, 0o700), r.root.WriteFile(restartFile, []byte("soon"), 0o600)); err != nil {
			t.Fatal(err)
		}
		r.h.Raise(Fault{Code: 923})
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "restarts without a count", r.did, []string{`1m0.5s stop vic-cloud within 3s, showing "850", pending true`})
	})
}

// TestLogIsCaptured: VEC-FLT-09, VEC-LOG-03, VEC-LOG-08: once a fault, with consent, within the quota, and where it belongs.
func TestLogIsCaptured(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string // the folder; "": nothing is captured
	}{
		"not wanted":         {func(c *Config) { c.Handler.UploadLog = 0 }, ""},
		"not allowed":        {func(c *Config) { c.Allowed = func() bool { return false } }, ""},
		"no room":            {func(c *Config) { c.Logs.QuotaMB = 0 }, ""},
		"production":         {func(*Config) {}, robotfs.Cache + "/outgoing"},
		"in another folder":  {func(c *Config) { c.Logs.Folder = "/data/elsewhere/../logs" }, "data/logs"},
		"where no wipe is":   {func(c *Config) { c.Logs.Folder = "/persist/x" }, robotfs.Cache + "/outgoing"},
		"outside of a robot": {func(c *Config) { c.Logs.Folder = "../../../tmp/x" }, "tmp/x"},
		"development":        {func(c *Config) { c.Stay = true }, ReportsDir},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(c *Config) {
					c.Handler.UploadLog, c.Logs.QuotaMB, c.Allowed, c.Watched = 1, 1, func() bool { return true }, nil
					tc.change(c)
				})
				var system strings.Builder
				for i := range 20000 {
					fmt.Fprintf(&system, "line %d of the system\n", i)
				}
				for file, text := range map[string]string{
					systemLog: system.String(), programLogs + "/robotd.log": "robotd says", programLogs + "/other": "no log",
				} {
					if err := robotfs.WriteFile(r.root, file, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if tc.want != "" {
					for i, age := range []time.Duration{3 * time.Hour, time.Hour} {
						file := fmt.Sprint(tc.want, "/old", i)
						if err := errors.Join(robotfs.WriteFile(r.root, file, make([]byte, 900_000*(1-i)+90_000), 0o600),
							r.root.Chtimes(file, time.Time{}, time.Now().Add(-age))); err != nil {
							t.Fatal(err)
						}
					}
				}
				defer r.run()()
				r.h.Raise(Fault{Code: 921})
				synctest.Wait()
				r.h.Raise(Fault{Code: 921})
				synctest.Wait()
				var got []string
				for _, dir := range []string{ReportsDir, robotfs.Cache + "/outgoing", "data/logs", "tmp/x"} {
					entries, _ := fs.ReadDir(r.root.FS(), dir)
					for _, e := range entries {
						got = append(got, dir+"/"+e.Name())
					}
				}
				if tc.want == "" {
					same(t, "captured", got, nil)
					return
				}
				same(t, "captured", got, []string{tc.want + "/fault-921-2000-01-01-00-00-00.log.gz", tc.want + "/old1"})
				f, err := r.root.Open(got[0])
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				z, err := gzip.NewReader(f)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(z)
				lines := strings.Split(strings.TrimSpace(string(b)), "\n")
				if err != nil || len(lines) != 1+tailLines+2 || lines[1] != "line 19500 of the system" ||
					lines[tailLines] != "line 19999 of the system" || lines[len(lines)-1] != "robotd says" {
					t.Errorf("%v, %d lines, from %q to %q", err, len(lines), lines[1], lines[len(lines)-1])
				}
			})
		})
	}
}

// TestTraceIsCaptured: VEC-DGN-08, VEC-FLT-09: if it is wanted and allowed, the trace of the time before a fault waits for its upload beside the log.
func TestTraceIsCaptured(t *testing.T) {
	trace := func(w io.Writer) error {
		_, err := io.WriteString(w, "go 1.26 trace")
		return err
	}
	for name, tc := range map[string]struct {
		change func(*Config)
		want   []string
	}{
		"wanted":      {func(*Config) {}, []string{"fault-921-2000-01-01-00-00-00.trace.gz"}},
		"not wanted":  {func(c *Config) { c.Handler.UploadTrace = 0 }, nil},
		"not allowed": {func(c *Config) { c.Allowed = func() bool { return false } }, nil},
		"none":        {func(c *Config) { c.Trace = nil }, nil},
		"broken":      {func(c *Config) { c.Trace = func(io.Writer) error { return errors.New("no trace") } }, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(c *Config) {
				c.Handler.UploadTrace, c.Logs.QuotaMB, c.Allowed, c.Trace, c.Watched = 1, 1, func() bool { return true }, trace, nil
				tc.change(c)
			})
			defer r.run()()
			r.h.Raise(Fault{Code: 921})
			synctest.Wait()
			var got []string
			entries, _ := fs.ReadDir(r.root.FS(), robotfs.Cache+"/outgoing")
			for _, e := range entries {
				got = append(got, e.Name())
			}
			same(t, name, got, tc.want)
		})
	}
}

// TestWhatCannotBeWritten: a robot without its run/ keeps working, and shows the fault when it can.
func TestWhatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		if err := r.root.WriteFile("run", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		defer r.run()()
		r.h.Raise(Fault{Code: 921})
		r.live(5*time.Second, "engine", "robotd")
		same(t, "events", r.events, []string{"robot.fault_code 921"})
		if r.h.Shown() != 921 {
			t.Errorf("shown %v", r.h.Shown())
		}
		if err := r.root.Remove("run"); err != nil {
			t.Fatal(err)
		}
		r.live(5*time.Second, "engine", "robotd")
		if got := r.file(ShowingFile); got != "921" {
			t.Errorf("shown %q", got)
		}
	})
}

// TestBackBeforeItIsStopped: a service that comes back while its log is captured is left alone.
func TestBackBeforeItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(t, func(c *Config) {
			c.Handler.Restart, c.Handler.UploadLog = true, 1
			c.Allowed = func() bool { r.h.Beat("robotd"); return true }
		})
		defer r.run()()
		r.h.Raise(Fault{Code: 916})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		same(t, "events", r.events, []string{"robot.fault_code 916"})
		same(t, "restarts", r.did, nil)
		if got := r.file(countFile); got != "-" {
			t.Errorf("count %q", got)
		}
	})
}

// TestOwnEnd: an exit of the handler's own program is told and shown, stops no service, and then ends.
func TestOwnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Own, c.Handler.Restart, c.Watched = 923, true, nil })
		defer r.run()()
		r.h.take([]byte("923"))
		synctest.Wait()
		same(t, "events", r.events, []string{"robot.fault_code 923"})
		if got := r.file(ShowingFile); got != "923" {
			t.Errorf("shown %q", got)
		}
		time.Sleep(2 * Heartbeat)
		synctest.Wait()
		if got := r.file(ShowingFile); got != "-" {
			t.Errorf("shown %q of a program that runs", got)
		}
		same(t, "restarts", r.did, nil)
	})
}

// TestManyFaults: however many are posted, a status can carry what is said of them.
func TestManyFaults(t *testing.T) {
	r := newRig(t, nil)
	for code := range 999 {
		r.h.take(fmt.Appendf(nil, "%d", code+1))
	}
	r.h.Raise(Fault{Code: 999}) // of our own there is always room
	if got := len(r.events); got != mostPosted+1 {
		t.Errorf("%d events, want %d", got, mostPosted+1)
	}
	m := status.Message{State: status.Online, BootID: "b"}
	m.Tell(r.h.Problems()...)
	b, err := m.Encode()
	if err == nil {
		_, err = status.Parse(b)
	}
	if last := m.Problems[len(m.Problems)-1]; err != nil || last != "faults: 25 more stand" {
		t.Errorf("%v, %q", err, m.Problems)
	}
}

// TestShown: the fault shown by a robot without a handler, or with something else in the file's place.
func TestShown(t *testing.T) {
	r := newRig(t, nil)
	for _, code := range []faultcode.Code{852, 850} {
		if err := Show(r.root, code); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Showing(r.root); got != 852 || err != nil {
		t.Errorf("%v, %v; want the first", got, err)
	}
	if h := New(r.cfg); h.Shown() != 852 {
		t.Errorf("the handler shows %v, want 852", h.Shown())
	}
	for _, make := range []func() error{
		func() error { return r.root.WriteFile(ShowingFile, []byte("none"), 0o600) },
		func() error { return r.root.Mkdir(ShowingFile, 0o700) },
		func() error { return mkfifo(r.root, ShowingFile) },
	} {
		if err := errors.Join(r.root.RemoveAll(ShowingFile), make()); err != nil {
			t.Fatal(err)
		}
		if got, err := Showing(r.root); got != 0 || err == nil || !strings.Contains(err.Error(), ShowingFile) {
			t.Errorf("%v, %v; want an error that names the file", got, err)
		}
		if h := New(r.cfg); h.Shown() != 0 {
			t.Errorf("the handler shows %v", h.Shown())
		}
	}
}

// Words are the texts of Problems.
func (h *Handler) Words() (out []string) {
	for _, p := range h.Problems() {
		out = append(out, p.Text)
	}
	return out
}
