package crashes

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kennel/edge/agent/das"
	"kennel/edge/agent/host"
	"kennel/edge/crash"
	"kennel/edge/env/envtest"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/infra/api/events"
	"kennel/infra/api/files"
	"kennel/infra/runner"
	"kennel/infra/testexec"
	"kennel/infra/testwait"
)

const (
	folder = robotfs.Cache + "/crashDumps"
	boot   = "6f1c5f0a-0000-4000-8000-000000000001"
)

// robot is a robot's folder, and a cloud that takes crashes.
type robot struct {
	t       testing.TB
	root    *os.Root
	cfg     Config
	allowed atomic.Bool
	cloud   *httptest.Server

	mu     sync.Mutex
	kept   []events.Event
	posted []map[string]string // parts by name
	answer int
	log    strings.Builder
}

func (r *robot) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(b)
}

func newRobot(t testing.TB) *robot {
	r := &robot{t: t, answer: http.StatusOK}
	var err error
	if r.root, err = os.OpenRoot(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.root.Close() })
	if err := r.root.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	r.allowed.Store(true)
	r.cloud = httptest.NewServer(http.HandlerFunc(r.take))
	t.Cleanup(r.cloud.Close)
	r.cfg = Config{
		Robot: host.Robot{Root: r.root, Hardware: envtest.Hardware{}, Dir: r.root.Name(), Thing: "vic:00e20100", Boot: boot, OS: "2.0.0.6074", Now: time.Now,
			Emit: func(e events.Event) { _ = r.keep(t.Context(), e) }, Keep: r.keep, Log: slog.New(slog.NewTextHandler(r, nil))},
		Conf: platform.CrashUploader{Folder: folder, Every: time.Hour, KeepLatest: 3, UploadLog: true, URL: ""}, Open: true,
		Allowed: r.allowed.Load, Host: func() string { return "Vector-E5S6" }, Upload: r.upload,
	}
	return r
}

func (r *robot) keep(_ context.Context, e events.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, e)
	return nil
}

func (r *robot) upload(ctx context.Context, req *http.Request) (*http.Response, error) {
	to, err := http.NewRequestWithContext(ctx, req.Method, r.cloud.URL+req.URL.Path, req.Body)
	if err != nil {
		return nil, err
	}
	to.Header, to.ContentLength = req.Header, req.ContentLength
	return http.DefaultClient.Do(to)
}

func (r *robot) take(w http.ResponseWriter, req *http.Request) {
	form, err := req.MultipartReader()
	got := map[string]string{"path": req.URL.Path}
	for err == nil {
		p, perr := form.NextPart()
		if errors.Is(perr, io.EOF) {
			break
		}
		b, rerr := io.ReadAll(p)
		err = errors.Join(perr, rerr)
		got[p.FormName()] = string(b)
		if p.FileName() != "" {
			got[p.FormName()+" name"] = p.FileName()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		got["error"] = err.Error()
	}
	r.posted = append(r.posted, got)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.answer)
	if r.answer != http.StatusOK {
		fmt.Fprint(w, map[int]string{403: `{"error":"no","kind":"denied"}`, 422: `{"error":"no","kind":"invalid"}`, 503: `{"error":"later","kind":"unavailable"}`}[r.answer])
	}
}

func (r *robot) put(name, content string) {
	r.t.Helper()
	if err := r.root.WriteFile(path.Join(folder, name), []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// left returns the names in the folder.
func (r *robot) left() string {
	r.t.Helper()
	all, err := os.ReadDir(filepath.Join(r.root.Name(), folder))
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func (r *robot) read(name string) string {
	r.t.Helper()
	b, err := r.root.ReadFile(path.Join(folder, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// run runs a collector until the test ends, or stop is called.
func (r *robot) run() (c *Collector, stop func()) {
	c = New(r.cfg)
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- runner.Run(ctx, r.cfg.Robot.Log, runner.Config{}, c.Services()...) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Error(err)
		}
	})
	r.t.Cleanup(stop)
	return c, stop
}

func (r *robot) until(what string, ok func() bool) {
	r.t.Helper()
	testwait.Until(r.t, 5*testwait.Long, what, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !ok() {
			return fmt.Errorf("the folder has %q, %d events, %d uploads; the log\n%s", r.left(), len(r.kept), len(r.posted), r.log.String())
		}
		return nil
	})
}

func record(program, bootID string, pid int, text string) string {
	r := crash.Record{Program: program, Version: "v1", OSVersion: "2.0.0.6073", BootID: bootID, PID: pid, Started: time.Unix(1, 0), Text: []byte(text)}
	return string(r.Append(nil))
}

// TestCollect: VEC-CRS-01 to 03: what is in the folder when agentd starts, and what of it is a crash.
func TestCollect(t *testing.T) {
	r := newRobot(t)
	r.cfg.Open = false // all of it stays
	r.cfg.Conf.KeepLatest = 0
	var log strings.Builder
	for n := range 2000 {
		fmt.Fprintf(&log, "line %d\n", n)
	}
	if err := errors.Join(r.root.MkdirAll("var/log", 0o755), r.root.WriteFile("var/log/messages", []byte(log.String()), 0o644),
		r.root.WriteFile("secret", []byte("secret"), 0o600)); err != nil {
		t.Fatal(err)
	}
	r.put("panicked.dmp-", record("robotd", boot, 1, "panic: no bulb\n\ngoroutine 1 [running]:\n"))
	r.put("killed.dmp-", record("robotd", boot, 2, ""))
	r.put("hung.dmp-", record("robotd", boot, 3, "SIGABRT: abort\n"))
	r.put("dark.dmp-", record("agentd", "another boot", 4, ""))
	r.put("alive.dmp-", record("agentd", boot, 5, ""))
	r.put("again.dmp-", record("robotd", boot, 6, "panic: again\n"))
	r.put("again.dmp", record("robotd", boot, 6, "complete already"))
	r.put("foreign.dmp-", "MDMP and more")
	r.put("whole.dmp", "MDMP whole")
	r.put("empty.dmp", "")
	r.put("empty2.dmp-", "")
	r.put(".young.dmp", "x")
	r.put("orphan.log", "x")
	r.put("notes.txt", "x")
	if err := r.root.Symlink("../../../../../secret", path.Join(folder, "link.dmp")); err != nil {
		t.Fatal(err)
	}
	alive, err := r.root.Open(path.Join(folder, "alive.dmp-"))
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	if err := unix.Flock(int(alive.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	r.cfg.Robot.Keep = func(ctx context.Context, e events.Event) error { return r.keep(ctx, e) }
	c := New(r.cfg)
	c.Because(3, "it hung, and agentd ended it")
	c.began, c.off = time.Now(), "unmeant"
	if err := c.collect(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	want := "again.dmp again.log alive.dmp- dark.dmp dark.log foreign.dmp foreign.log hung.dmp hung.log killed.dmp killed.log link.dmp notes.txt panicked.dmp panicked.log whole.dmp whole.log"
	if got := r.left(); got != want {
		t.Errorf("left\n%s, want\n%s", got, want)
	}
	for name, reason := range map[string]string{"panicked": "panic: no bulb", "killed": Killed, "dark": NoWord, "hung": "it hung, and agentd ended it; SIGABRT: abort"} {
		got, err := crash.Parse([]byte(r.read(name + ".dmp")))
		if err != nil || got.Reason != reason || got.Thing != "vic:00e20100" || got.At.IsZero() || got.OSVersion != "2.0.0.6073" {
			t.Errorf("%s: %+v, %v; want %q", name, got, err, reason)
		}
	}
	lines := strings.Split(strings.TrimSpace(r.read("panicked.log")), "\n")
	if len(lines) != 501 || lines[1] != "line 1500" || lines[500] != "line 1999" {
		t.Errorf("the companion has %d lines, %q to %q; want the last 500 of the system's log (VEC-CRS-02)", len(lines), lines[1], lines[len(lines)-1])
	}
	var told []string
	for _, e := range r.kept {
		told = append(told, e.S1+" "+e.S2+" "+e.S3)
		if err := events.CheckBootID(e.BootID); err != nil || e.Seq != 1 || e.Name != "robot.crash" || e.I1.N <= 0 || e.TS != e.I1.N {
			t.Errorf("%+v, %v", e, err)
		}
	}
	slices.Sort(told)
	if want := []string{"agentd " + NoWord + " 2.0.0.6073", "foreign minidump 2.0.0.6074", "robotd  2.0.0.6073", "robotd it hung, and agentd ended it; SIGABRT: abort 2.0.0.6073",
		"robotd " + Killed + " 2.0.0.6073", "robotd panic: no bulb 2.0.0.6073", "whole minidump 2.0.0.6074"}; !slices.Equal(told, want) {
		t.Errorf("told\n%s, want\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
}

// TestMeantEnd: a program that went when the robot was switched off did not crash; until robotd has said how that was, nothing is decided.
func TestMeantEnd(t *testing.T) {
	r := newRobot(t)
	r.cfg.Open = false
	r.put("agentd.dmp-", record("agentd", "another boot", 4, ""))
	c := New(r.cfg)
	c.began = time.Now()
	for _, step := range []struct{ off, left string }{{"", "agentd.dmp-"}, {"clean", ""}} {
		c.off = step.off
		if err := c.collect(t.Context(), true); err != nil || r.left() != step.left || len(r.kept) > 0 {
			t.Errorf("off %q: left %q, %d events, %v; want %q", step.off, r.left(), len(r.kept), err, step.left)
		}
	}
	r.put("agentd.dmp-", record("agentd", "another boot", 4, ""))
	c.off, c.began = "", time.Now().Add(-2*offKnown) // a robotd that never speaks
	if err := c.collect(t.Context(), true); err != nil || len(r.kept) != 1 || r.kept[0].S2 != NoWord {
		t.Errorf("left %q, %d events, %v", r.left(), len(r.kept), err)
	}
}

// TestSend: VEC-CRS-04, VEC-CRS-05: the parts of an upload, consent, and the answers.
func TestSend(t *testing.T) {
	r := newRobot(t)
	if err := errors.Join(robotfs.WriteFile(r.root, platform.VersionFile, []byte("1.6.0\n"), 0o644), robotfs.WriteFile(r.root, "var/log/messages", []byte("hello\n"), 0o644),
		robotfs.WriteFile(r.root, das.AllowFile, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	dump := record("robotd", boot, 1, "panic: no bulb\n")
	r.put("a.dmp-", dump)
	c, stop := r.run()
	r.until("upload", func() bool { return len(r.posted) == 1 && r.left() == "" })
	got := r.posted[0]
	for part, want := range map[string]string{"path": files.Crash, "hostname": "Vector-E5S6", "robot.esn": "00e20100", "robot.os_version": "2.0.0.6073",
		"robot.anki_version": "1.6.0", "kennel.program": "robotd", "kennel.told": "1", "upload_file name": "a.dmp", "attachment_messages.log": "==> var/log/messages <==\nhello\n", "attachment_messages.log name": "a.log", "error": ""} {
		if got[part] != want {
			t.Errorf("%s is %q, want %q", part, got[part], want)
		}
	}
	sent, err := crash.Parse([]byte(got["upload_file"]))
	sum := sha256.Sum256([]byte(got["upload_file"]))
	if err != nil || sent.Reason != "panic: no bulb" || len(r.kept) != 1 || r.kept[0].S4 != hex.EncodeToString(sum[:]) || r.kept[0].RobotVersion != "2.0.0.6073" {
		t.Errorf("sent %+v, %v; told %+v", sent, err, r.kept)
	}
	// Without the flag file, and with the switch off, the log stays.
	if err := r.root.Remove(das.AllowFile); err != nil {
		t.Fatal(err)
	}
	r.put("b.dmp", "MDMP b")
	c.Look()
	r.until("second upload", func() bool { return len(r.posted) == 2 && r.left() == "" })
	if log, ok := r.posted[1]["attachment_messages.log"]; ok {
		t.Errorf("the log %q was sent", log)
	}
	r.mu.Lock()
	r.answer = http.StatusUnprocessableEntity // never again
	r.mu.Unlock()
	r.put("c.dmp", "MDMP c")
	c.Look()
	r.until("refusal", func() bool { return len(r.posted) == 3 && r.left() == "" })
	r.mu.Lock()
	r.answer = http.StatusServiceUnavailable
	r.mu.Unlock()
	r.put("d.dmp", "MDMP d")
	c.Look()
	r.until("postponed upload", func() bool { return len(r.posted) >= 4 && r.left() == "d.dmp d.log" })
	r.allowed.Store(false) // the owner says no
	c.Look()
	r.until("empty folder", func() bool { return r.left() == "" })
	stop()
	// The original sends dumps without asking, and no logs.
	n := len(r.posted)
	r.cfg.Always, r.answer = true, http.StatusOK
	r.put("e.dmp", "MDMP e")
	_, stop = r.run()
	r.until("upload without consent", func() bool { return len(r.posted) == n+1 && r.left() == "" })
	if r.posted[n]["upload_file"] != "MDMP e" || r.posted[n]["attachment_messages.log"] != "" {
		t.Errorf("%q", r.posted[n])
	}
	stop()
	// A configured URL goes elsewhere, by another way than the cloud's.
	r.cfg.Conf.URL = r.cloud.URL + "/post?key=1"
	r.cfg.Upload = func(context.Context, *http.Request) (*http.Response, error) { return nil, errors.New("not this way") }
	for _, name := range []string{"1", "2", "3", "4", "5"} { // only the newest 3 are kept
		r.put(name+".dmp", "MDMP "+name)
		at := time.Now().Add(time.Duration(name[0]-'9') * time.Minute)
		if err := r.root.Chtimes(path.Join(folder, name+".dmp"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	r.answer = http.StatusServiceUnavailable
	_, stop = r.run()
	r.until("quota", func() bool {
		return r.left() == "3.dmp 3.log 4.dmp 4.log 5.dmp 5.log" && len(r.posted) > n+1 && r.posted[len(r.posted)-1]["path"] == "/post"
	})
	stop()
}

// TestFIFO: VEC-CRS-01: an announced dump is taken at once; lines that name anything else than a file of the folder have no effect.
func TestFIFO(t *testing.T) {
	r := newRobot(t)
	r.cfg.Open = false
	if err := errors.Join(r.root.WriteFile("secret.dmp", []byte("secret"), 0o600), r.root.Symlink("../../../../../secret.dmp", path.Join(folder, "link.dmp")),
		r.root.Mkdir(path.Join(folder, "folder.dmp"), 0o700)); err != nil {
		t.Fatal(err)
	}
	c, _ := r.run()
	r.until("FIFO", func() bool { _, err := r.root.Lstat(FIFO); return err == nil })
	r.put("new.dmp-", "MDMP new") // in the making until it is announced
	say := func(lines ...string) {
		f, err := r.root.OpenFile(FIFO, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"/secret.dmp", "secret.dmp", "/" + folder + "/../secret.dmp", "/" + folder + "/link.dmp", "/" + folder + "/folder.dmp", "/" + folder + "/none.dmp",
		"/" + folder + "/x.txt", "/" + folder + "/.x.dmp", "\x00", "/" + folder + "/a\x01.dmp", strings.Repeat("x", 10000), ""} {
		if name, err := c.named([]byte(bad)); err == nil {
			t.Errorf("%.80q is taken as %q", bad, name)
		}
		say(bad)
	}
	say("/" + folder + "/new.dmp-")
	r.until("dump", func() bool { return r.left() == "folder.dmp link.dmp new.dmp new.log" && len(r.kept) == 1 })
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept[0].S1 != "new" || strings.Contains(r.log.String(), "secret\n") {
		t.Errorf("%+v; the log\n%s", r.kept, r.log.String())
	}
}

// FuzzNamed: a line that is taken names a plain file of the folder.
func FuzzNamed(f *testing.F) {
	r := newRobot(f)
	r.put("a.dmp", "x")
	c := New(r.cfg)
	f.Add([]byte("/" + folder + "/a.dmp"))
	f.Add([]byte("/" + folder + "/../crashDumps/a.dmp"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if name, err := c.named(line); err == nil && name != "a.dmp" {
			t.Errorf("%q is %q", line, name)
		}
	})
}

// The test binary runs itself as a robot that is killed at a step.
const envDie = "KENNEL_CRASHES_TEST_DIE"

func TestMain(m *testing.M) {
	if at := os.Getenv(envDie); at != "" {
		dying(at)
		return
	}
	os.Exit(m.Run())
}

// dying is a robot whose collector dies at a step, and says on standard output what became of the crash: "event ID" once it is on disk, "sent SUM" once
// the cloud has it.
func dying(at string) {
	dir, step, _ := strings.Cut(at, "#")
	step, nth, _ := strings.Cut(step, ":")
	left, _ := strconv.Atoi(nth) // 0: never
	root, err := os.OpenRoot(dir)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cfg := Config{Robot: host.Robot{Root: root, Hardware: envtest.Hardware{}, Thing: "vic:00e20100", Boot: boot, Now: time.Now, Emit: func(events.Event) {}, Log: slog.New(slog.DiscardHandler),
		Keep: func(_ context.Context, e events.Event) error {
			_, err := fmt.Printf("event %s/%d %s\n", e.BootID, e.Seq, e.S4)
			return err
		}},
		Conf: platform.CrashUploader{Folder: folder, Every: time.Millisecond, KeepLatest: 30}, Open: true, Allowed: func() bool { return true }, Host: func() string { return "" },
		Upload: func(_ context.Context, req *http.Request) (*http.Response, error) {
			got := httptest.NewRequest(http.MethodPost, req.URL.Path, req.Body)
			got.Header = req.Header
			f, _, err := got.FormFile("upload_file")
			if err != nil {
				return nil, err
			}
			b, err := io.ReadAll(f)
			if err != nil {
				return nil, err
			}
			fmt.Printf("sent %x\n", sha256.Sum256(b))
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		},
		step: func(s string) {
			if s == step {
				if left--; left == 0 {
					_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
					select {}
				}
			}
		}}
	c := New(cfg)
	go func() {
		for { // its end is an empty folder
			if all, err := os.ReadDir(filepath.Join(dir, folder)); err == nil && len(all) == 0 {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if err := runner.Run(ctx, cfg.Robot.Log, runner.Config{}, c.Services()...); err != nil {
		panic(err)
	}
}

// TestKill: kill -9 between any two steps, twice, then a life to the end: each crash has one event by its identity, and reached the cloud with one content.
func TestKill(t *testing.T) {
	for _, step := range []string{"written", "completed", "log", "told", "sent"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
				t.Fatal(err)
			}
			for name, b := range map[string]string{"a.dmp-": record("robotd", boot, 1, ""), "b.dmp-": record("agentd", boot, 2, "panic: x\n"), "c.dmp": "MDMP"} {
				if err := os.WriteFile(filepath.Join(dir, folder, name), []byte(b), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			events, sent := map[string]string{}, map[string]bool{}
			for _, nth := range []string{"1", "2", "0"} {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				out, err := testexec.Command(ctx, t, []string{envDie + "=" + dir + "#" + step + ":" + nth}).Output()
				cancel()
				if (err == nil) != (nth == "0") && nth != "2" {
					t.Fatalf("life %s: %v\n%s", nth, err, out)
				}
				for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
					if w := strings.Fields(lines.Text()); w[0] == "event" {
						if old, ok := events[w[1]]; ok && old != w[2] {
							t.Errorf("event %s has two crashes", w[1])
						}
						events[w[1]] = w[2]
					} else {
						sent[w[1]] = true
					}
				}
			}
			if len(events) != 3 || len(sent) != 3 {
				t.Errorf("%d events, %d dumps; want 3 of each: %q %v", len(events), len(sent), events, sent)
			}
			for id, sum := range events {
				if !sent[sum] {
					t.Errorf("event %s is of %s, which did not arrive", id, sum)
				}
			}
		})
	}
}
