package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kennel/edge/env/fifo"
	"kennel/edge/env/robotfs"
	"kennel/edge/faultcode"
	"kennel/infra/api/events"
	"kennel/infra/api/status"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]struct {
		code faultcode.Code
		err  string
	}{
		"914": {914, ""}, "007": {7, ""}, "914\r": {914, ""}, " fault 914!": {914, ""}, "9 1 4": {914, ""}, "999": {999, ""},
		"": {0, ErrNone.Error()}, "0": {0, ErrNone.Error()}, "garbage": {0, ErrNone.Error()}, "\x00\xff": {0, ErrNone.Error()},
		"1000": {0, `line "1000": want a number from 1 to 999`}, "99999999999999999999999": {0, "want a number"},
		strings.Repeat(" ", maxLine-3) + "914": {914, ""}, strings.Repeat(" ", maxLine-2) + "914": {0, "line of 65 bytes: want at most 64"},
	} {
		if code, err := Parse([]byte(line)); code != want.code || (err == nil) != (want.err == "") ||
			err != nil && !strings.Contains(err.Error(), want.err) {
			t.Errorf("%q: %v, %v; want %v, %q", line, code, err, want.code, want.err)
		}
	}
}

func parsed(l *fifo.Lines, chunks ...[]byte) (codes []faultcode.Code) {
	take := func(line []byte) {
		if code, err := Parse(line); err == nil {
			codes = append(codes, code)
		}
	}
	for _, c := range chunks {
		l.Feed(c, take)
	}
	l.End(take)
	return codes
}

// FuzzLines: however the bytes come, they are the same codes, each of three digits, from bounded memory.
func FuzzLines(f *testing.F) {
	f.Add([]byte("914\n0\n1000\ngarbage\n915"), 3)
	f.Add(append(bytes.Repeat([]byte("9"), 500), "\n916\n"...), 100)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		whole, parts := fifo.Lines{Max: maxLine}, fifo.Lines{Max: maxLine}
		codes := parsed(&whole, b)
		cut = max(0, min(cut, len(b)))
		if got := parsed(&parts, b[:cut], b[cut:]); !slices.Equal(got, codes) {
			t.Errorf("in two parts %v, at once %v", got, codes)
		}
		if kept, room := parts.Held(); kept != 0 || room > 4*maxLine {
			t.Errorf("%d bytes are kept, room for %d", kept, room)
		}
		for i, line := range bytes.Split(b, []byte("\n")) {
			want, err := Parse(line)
			if err != nil {
				continue
			}
			if len(codes) == 0 || codes[0] != want || want < 1 || want > 999 {
				t.Fatalf("line %d is %v; want the next of %v", i, want, codes)
			}
			if again, err := Parse([]byte(want.String())); err != nil || again != want {
				t.Errorf("%v is read as %v, %v", want, again, err)
			}
			codes = codes[1:]
		}
		if len(codes) > 0 {
			t.Errorf("%v came from nowhere", codes)
		}
	})
}

func mkfifo(root *os.Root, name string) error {
	dir, err := root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Mkfifoat(int(dir.Fd()), path.Base(name), 0o600)
}

// pipe is a robot whose handler listens.
type pipe struct {
	t     *testing.T
	root  *os.Root
	h     *Handler
	codes chan int64 // of events
	stop  func()

	mu  sync.Mutex
	log bytes.Buffer
}

func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *pipe) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func newPipe(t *testing.T) *pipe {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return &pipe{t: t, root: root, codes: make(chan int64, 1000)}
}

// listen begins to listen, and returns when there is a FIFO.
func (p *pipe) listen() {
	p.t.Helper()
	p.h = New(Config{Root: p.root, Emit: func(e events.Event) { p.codes <- e.I1.N }, Log: slog.New(slog.NewTextHandler(p, nil))})
	ctx, cancel := context.WithCancel(p.t.Context())
	done := make(chan error, 1)
	go func() { done <- p.h.Listen(ctx) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				p.t.Error(err)
			}
		case <-time.After(10 * time.Second):
			p.t.Error("the listener does not end")
		}
	})
	p.t.Cleanup(p.stop)
}

// until waits for something that another goroutine does to a file.
func (p *pipe) until(what string, is func() bool) {
	p.t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("no %s; the log says\n%s", what, p.logged())
		}
	}
}

func (p *pipe) fifo() bool {
	info, err := p.root.Lstat(File)
	return err == nil && info.Mode().Type() == fs.ModeNamedPipe
}

// heard takes the next codes.
func (p *pipe) heard(want ...int64) {
	p.t.Helper()
	for _, w := range want {
		select {
		case got := <-p.codes:
			if got != w {
				p.t.Errorf("heard %d, want %d", got, w)
			}
		case <-time.After(20 * time.Second):
			p.t.Fatalf("heard nothing, want %d; the log says\n%s", w, p.logged())
		}
	}
}

// say writes to the FIFO as a shell does.
func (p *pipe) say(text string) {
	p.t.Helper()
	f, err := p.root.OpenFile(File, os.O_WRONLY, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		p.t.Fatal(err)
	}
}

// TestEnds: each posted end of a watched service counts, also while its fault is open or another one is handled.
func TestEnds(t *testing.T) {
	r := newRig(t, nil)
	for range 3 {
		r.h.take([]byte("916"))
	}
	r.h.busy.Store(true)
	r.h.take([]byte("916"))
	r.h.take([]byte("990"))
	r.h.take([]byte("no code"))
	if n := r.h.Ends("robotd"); n != 4 || r.h.Ends("engine") != 0 || r.h.Ends("other") != 0 {
		t.Errorf("%d ends, want 4", n)
	}
}

// TestListen: VEC-FLT-03, VEC-FLT-04: writers come and go, with and without a newline, and with what is no code.
func TestListen(t *testing.T) {
	t.Parallel()
	p := newPipe(t)
	p.listen()
	p.until("FIFO", p.fifo)
	p.say("911\n")
	p.heard(911)
	p.say("0\ngarbage\n1000\n\n\x00\xff\n" + strings.Repeat("1", 10000) + "\n913\n911\n914\n")
	p.heard(913, 914)
	p.say("9")
	p.say("15") // without an end
	p.heard(915)
	if err := Post(p.root, 916); err != nil {
		t.Fatal(err)
	}
	p.heard(916)
	p.h.busy.Store(true) // VEC-FLT-05
	p.say("917\n")
	p.until("word of the one that came too late", func() bool { return strings.Contains(p.logged(), "fault 917: another fault is being handled") })
	p.h.busy.Store(false)
	p.say("919\n")
	p.heard(919)
	for _, want := range []string{`line \"1000\": want a number from 1 to 999`, "line of 65 bytes: want at most 64"} {
		if !strings.Contains(p.logged(), want) {
			t.Errorf("the log does not say %s:\n%s", want, p.logged())
		}
	}
}

// TestFlood: who floods the FIFO costs little, and others are heard.
func TestFlood(t *testing.T) {
	t.Parallel()
	p := newPipe(t)
	p.listen()
	p.until("FIFO", p.fifo)
	stop, flooded := make(chan struct{}), make(chan int)
	f, err := p.root.OpenFile(File, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		n := 0
		for rubbish := []byte(strings.Repeat("12345\n", 600)); ; {
			select {
			case <-stop:
				flooded <- n
				return
			default:
				m, _ := f.Write(rubbish)
				n += m
			}
		}
	}()
	p.until("sign of the flood", func() bool { return strings.Contains(p.logged(), "12345") })
	p.say("921\n") // it waits its turn
	p.heard(921)
	close(stop)
	if n := <-flooded; n == 0 {
		t.Error("nothing was written")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(p.logged(), "input on the fault FIFO"); n > 4 {
		t.Errorf("%d lines of log", n)
	}
	p.stop()
}

// TestInItsPlace: what is not the FIFO is read, taken away or said; a listener that lost its FIFO has another.
func TestInItsPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		put   func(root *os.Root) error
		heard []int64
		said  string // the listener keeps trying
	}{
		"nothing":     {func(*os.Root) error { return nil }, nil, ""},
		"a FIFO":      {func(r *os.Root) error { return mkfifo(r, File) }, nil, ""},
		"codes":       {func(r *os.Root) error { return r.WriteFile(File, []byte("914\n0\n916"), 0o600) }, []int64{914, 916}, ""},
		"a long file": {func(r *os.Root) error { return r.WriteFile(File, bytes.Repeat([]byte("921\n"), 1<<16), 0o600) }, []int64{921}, ""},
		"a link": {func(r *os.Root) error {
			return errors.Join(r.WriteFile("secret", []byte("923\n"), 0o600), r.Symlink("../secret", File))
		}, nil, ""},
		"a link to nowhere": {func(r *os.Root) error { return r.Symlink("/nowhere", File) }, nil, ""},
		"a folder":          {func(r *os.Root) error { return r.Mkdir(File, 0o700) }, nil, "run/fault_code is a folder: want a FIFO"},
		"no run":            {func(r *os.Root) error { return r.Remove("run") }, nil, ""},
		"a file as run": {func(r *os.Root) error {
			return errors.Join(r.Remove("run"), r.WriteFile("run", nil, 0o600))
		}, nil, "folder of run/fault_code"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPipe(t)
			if err := errors.Join(p.root.Mkdir("run", 0o700), tc.put(p.root)); err != nil {
				t.Fatal(err)
			}
			p.listen()
			p.heard(tc.heard...)
			if tc.said != "" {
				p.until("error", func() bool { return strings.Contains(p.logged(), tc.said) })
				if err := p.root.RemoveAll("run"); err != nil {
					t.Fatal(err)
				}
			}
			p.until("FIFO", p.fifo)
			p.say("970\n")
			p.heard(970)
			if b, err := robotfs.ReadFile(p.root, "secret"); err == nil && string(b) != "923\n" {
				t.Errorf("what the link led to is %q", b)
			}
			// Another program replaces it while it is read.
			if err := errors.Join(p.root.Remove(File), Post(p.root, 980)); err != nil {
				t.Fatal(err)
			}
			p.heard(980)
			p.until("FIFO", p.fifo)
			if err := p.root.RemoveAll("run"); err != nil {
				t.Fatal(err)
			}
			p.until("FIFO", p.fifo)
			p.say("990\n")
			p.heard(990)
		})
	}
}

// TestPostWithoutReader: VEC-BOOT-15: a service that fails before anybody listens leaves its code, and never waits.
func TestPostWithoutReader(t *testing.T) {
	t.Parallel()
	p := newPipe(t)
	for _, code := range []faultcode.Code{914, 916} {
		if err := Post(p.root, code); err != nil {
			t.Fatal(err)
		}
	}
	p.listen()
	p.heard(914, 916)
	p.until("FIFO", p.fifo)
	p.stop()
	if err := errors.Join(Post(p.root, 921), Post(p.root, 923)); err != nil { // its FIFO exists without a reader
		t.Fatal(err)
	}
	if b, err := robotfs.ReadFile(p.root, File); err != nil || string(b) != "921\n923\n" {
		t.Errorf("%q, %v", b, err)
	}
	p.listen()
	p.heard(921, 923)
	for _, code := range []faultcode.Code{0, 1000} {
		if err := Post(p.root, code); err == nil {
			t.Errorf("%d is posted", code)
		}
	}
	p.stop()
	var err error
	for n := 0; err == nil && n < 2000; n++ {
		err = Post(p.root, 921)
	}
	if err == nil || !strings.Contains(err.Error(), "bytes of codes") {
		t.Errorf("a file without end: %v", err)
	}
	if err := errors.Join(p.root.Remove(File), p.root.Symlink("elsewhere", File)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.root.WriteFile("run/elsewhere", nil, 0o600), Post(p.root, 921)); err != nil {
		t.Fatal(err)
	}
	if b, err := robotfs.ReadFile(p.root, "run/elsewhere"); err != nil || len(b) != 0 {
		t.Errorf("the link was followed: %q, %v", b, err)
	}
	// A full one delays no writer.
	if err := errors.Join(p.root.Remove(File), mkfifo(p.root, File)); err != nil {
		t.Fatal(err)
	}
	f, err := p.root.OpenFile(File, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	full := error(nil)
	if err := raw.Write(func(fd uintptr) bool {
		for full == nil {
			_, full = unix.Write(int(fd), make([]byte, 512))
		}
		return true
	}); err != nil || !errors.Is(full, unix.EAGAIN) {
		t.Fatal(err, full)
	}
	if err := Post(p.root, 921); !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(fmt.Sprint(err), "post fault 921") {
		t.Errorf("a full FIFO: %v", err)
	}
}

// TestEveryCode: every code of annex F that a program posts is in the status of the robot in words, and an event (issue 18: what must hold 6).
func TestEveryCode(t *testing.T) {
	t.Parallel()
	p := newPipe(t)
	p.listen()
	p.until("FIFO", p.fifo)
	for _, code := range faultcode.System.Codes() {
		if err := Post(p.root, code); err != nil {
			t.Fatal(err)
		}
		p.heard(int64(code))
		var m, got status.Message
		m.Tell(p.h.Problems()...)
		b, err := json.Marshal(m)
		if err == nil {
			err = json.Unmarshal(b, &got) // by which the cloud has it
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Problems) != 1 || !strings.HasPrefix(got.Problems[0], "fault "+code.String()+": ") || !strings.Contains(got.Problems[0], code.Text()) {
			t.Errorf("%v: the status says %q, want %q", code, got.Problems, code.Text())
		}
		p.h.Over(code)
	}
}
