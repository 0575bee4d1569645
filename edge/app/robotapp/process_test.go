package robotapp

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/core/corelink"
	"kennel/edge/robot/claim"
	"kennel/edge/sim/uart"
	"kennel/infra/api/live"
	"kennel/infra/testexec"
)

// bench is a body board at the end of a line, and the root of a robot.
type bench struct {
	t      *testing.T
	root   string
	device string // what robotd opens
	run    func(context.Context) error
	board  *vectorsim.Board
	power  chan error // what run returned, each time
	off    context.CancelFunc
}

// newBench has the board at the end of a socket. newTTYBench has a real tty, a pseudo-terminal's; it is late on a busy machine.
func newBench(t *testing.T) *bench {
	t.Helper()
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close() // the socket has its own
	line, err := uart.ListenSocket(dir, "board")
	if err != nil {
		t.Fatal(err)
	}
	b := benchOn(t, line.Close)
	b.device, b.run = filepath.Join(dir.Name(), "board"), func(ctx context.Context) error { return b.board.RunOn(ctx, line) }
	return b
}

func newTTYBench(t *testing.T) *bench {
	t.Helper()
	pty, err := uart.OpenPTY()
	if err != nil {
		t.Fatal(err)
	}
	b := benchOn(t, pty.Close)
	b.device, b.run = pty.SlavePath, func(ctx context.Context) error { return b.board.Run(ctx, pty.Master) }
	return b
}

func benchOn(t *testing.T, closeLine func() error) *bench {
	b := &bench{t: t, root: t.TempDir(), board: vectorsim.New(vectorsim.Config{Volts: 3.9, Version: "2.1.0-test"}), power: make(chan error, 1)}
	t.Cleanup(func() {
		if b.off != nil {
			b.off()
			<-b.power
		}
		if err := closeLine(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// powerOn lets the board run; powerOff ends it and returns how it ended.
func (b *bench) powerOn() {
	ctx, cancel := context.WithCancel(context.Background())
	b.off = cancel
	go func() { b.power <- b.run(ctx) }()
}

func (b *bench) powerOff() error {
	b.off()
	return b.ended()
}

func (b *bench) ended() error {
	b.t.Helper()
	select {
	case err := <-b.power:
		b.off()
		b.off = nil
		return err
	case <-time.After(patience):
		b.t.Fatal("the board runs on")
		return nil
	}
}

func (b *bench) await(what string, cond func(vectorsim.State) bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	if s, err := b.board.Await(ctx, cond); err != nil {
		b.t.Fatalf("board: %s: %v; it is %+v", what, err, s)
	}
}

// process is a robotd. Normal priority unless told otherwise: a test that fails must not starve its machine.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan error
	log  *syncBuffer
}

func (b *bench) start(env []string, args ...string) *process {
	b.t.Helper()
	return b.startProgram(append(testexec.Emulator(), binary), env, args...)
}

// startProgram is start with another robotd.
func (b *bench) startProgram(program, env []string, args ...string) *process {
	b.t.Helper()
	p := &process{t: b.t, log: &syncBuffer{}, done: make(chan error, 1)}
	argv := append(program, "-root", b.root, "-log-level", "debug", "-priority", "0")
	argv = append(argv, args...)
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	b.t.Cleanup(func() {
		if p.done != nil {
			_ = p.cmd.Process.Kill()
			<-p.done
		}
		if b.t.Failed() {
			b.t.Logf("robotd %v said:\n%s", p.cmd.Args[1:], p.log)
			b.t.Logf("the board: %+v", b.board.State())
		}
	})
	return p
}

// end sends sig and returns the exit code; -1 for a process that a signal killed.
func (p *process) end(sig os.Signal) int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
	return p.wait()
}

func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
		p.done = nil
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("robotd does not end")
		return 0
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// peer is a corelink client that runs until the test ends.
type peer struct {
	t   *testing.T
	c   *corelink.Client
	got chan corelink.Message
	met chan struct{} // closed when robotd first said something
	end func()        // the program is gone

	loop atomic.Pointer[corelink.LoopStats] // the newest; nil: none yet
}

func (b *bench) peer() *peer {
	p := &peer{t: b.t, c: corelink.NewClient(b.root), got: make(chan corelink.Message, 1000), met: make(chan struct{})}
	meet := sync.OnceFunc(func() { close(p.met) })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- p.c.Run(ctx, func(m corelink.Message) {
			meet()
			if l, is := m.(*corelink.LoopStats); is {
				p.loop.Store(l)
			}
			select {
			case p.got <- m:
			case <-ctx.Done():
			}
		})
	}()
	p.end = sync.OnceFunc(func() { cancel(); <-done })
	b.t.Cleanup(func() {
		p.end()
		if l := p.loop.Load(); b.t.Failed() && l != nil {
			b.t.Logf("the loop, as last heard: %+v", *l)
		}
	})
	return p
}

// await returns the next message that ok accepts.
func await[T corelink.Message](p *peer, what string, ok func(T) bool) T {
	p.t.Helper()
	limit := time.After(patience)
	var last T
	for {
		select {
		case m := <-p.got:
			if m, is := m.(T); is {
				if last = m; ok(m) {
					return m
				}
			}
		case <-limit:
			p.t.Fatalf("%s: no such %T came; the last was %+v", what, last, last)
		}
	}
}

// send sends m, the first one as soon as there is a connection.
func (p *peer) send(m corelink.Message) {
	p.t.Helper()
	select {
	case <-p.met:
	case <-time.After(patience):
		p.t.Fatalf("robotd said nothing for %v", patience)
	}
	if err := p.c.Send(m); err != nil {
		p.t.Fatal(err)
	}
}

func linked(s *corelink.State) bool { return s.Link }

// lookup is the tree and its values as a peer has them.
type lookup struct {
	tree   *corelink.Tree
	values *corelink.Values
}

// look asks for both.
func (p *peer) look() lookup {
	p.t.Helper()
	p.send(&corelink.GetTree{Request: 11})
	p.send(&corelink.GetValues{Request: 12})
	return lookup{
		await(p, "tree", func(m *corelink.Tree) bool { return m.Request == 11 }),
		await(p, "values", func(m *corelink.Values) bool { return m.Request == 12 }),
	}
}

// value returns the value of a slot such as wheelL.turn, and how it is listed.
func (l lookup) value(name string) (live.Slot, *live.Value) {
	device, slot, _ := strings.Cut(name, ".")
	for _, n := range l.tree.Nodes {
		for _, s := range n.Slots {
			if n.Compact == device && s.Name == slot {
				for i, v := range l.values.Values {
					if v.Slot == s.ID {
						return s, &l.values.Values[i]
					}
				}
				return s, nil
			}
		}
	}
	return live.Slot{}, nil
}

var requests atomic.Uint32

// ask sends what request makes of a number, and returns its answer.
func (p *peer) ask(request func(n uint32) corelink.Message) *corelink.Reply {
	p.t.Helper()
	n := requests.Add(1)
	p.send(request(n))
	return await(p, "reply", func(m *corelink.Reply) bool { return m.Request == n })
}

// line sends a line and returns its answer.
func (p *peer) line(format string, args ...any) *corelink.Reply {
	p.t.Helper()
	return p.ask(func(n uint32) corelink.Message {
		return &corelink.Do{Request: n, Line: fmt.Sprintf(format, args...), ForMS: 60000}
	})
}

// tries is how often an order is given that was stopped. On a machine with too much to do the loop is late now and then, and what is late stops.
const tries = 50

// told gives an order until nothing stops it before it begins, and returns its answer.
func (p *peer) told(line string) (r *corelink.Reply) {
	p.t.Helper()
	for range tries {
		if r = p.line("%s", line); r.Code != "stopped" {
			return r
		}
		await(p, "motion that may be", func(m *corelink.Motion) bool { return len(m.Stop) == 0 })
	}
	p.t.Fatalf("%s was stopped %d times: %+v", line, tries, r)
	return nil
}

// over gives a motion until one ends by itself, and returns its answer and its end, and where the body was before it.
func (p *peer) over(line string) (*corelink.Reply, *corelink.Ended, *corelink.Motion) {
	p.t.Helper()
	for range tries {
		asked := monoclock.Now().Microseconds()
		from := await(p, "rest", func(m *corelink.Motion) bool {
			return m.AtUS > asked && math.Abs(m.Speed) < 0.002 && math.Abs(m.Turning) < 0.02
		})
		r := p.told(line)
		if r.Code != "ok" || !r.Underway {
			p.t.Fatalf("%s: %+v", line, r)
		}
		if end := await(p, "end of "+line, func(m *corelink.Ended) bool { return m.Request == r.Request }); end.Outcome != "stopped" {
			return r, end, from
		}
	}
	p.t.Fatalf("%s was stopped %d times", line, tries)
	return nil, nil, nil
}

// begin gives an order until ok accepts how the body moves then.
func (p *peer) begin(line string, ok func(*corelink.Motion) bool) {
	p.t.Helper()
	for range tries {
		if r := p.told(line); r.Code != "ok" {
			p.t.Fatalf("%s: %+v", line, r)
		}
		if m := await(p, "motion", func(m *corelink.Motion) bool { return ok(m) || m.Parts[0].Outcome == "stopped" }); ok(m) {
			return
		}
	}
	p.t.Fatalf("%s was stopped %d times", line, tries)
}

// reads waits until a slot has a value.
func (p *peer) reads(slot, want string) {
	p.t.Helper()
	var r *corelink.Reply
	for end := time.Now().Add(patience); time.Now().Before(end); await(p, "state", func(*corelink.State) bool { return true }) {
		if r = p.line("%s", slot); r.Value == want {
			return
		}
	}
	p.t.Fatalf("%s reads as %+v, want %s", slot, r, want)
}

// calibrated: head and lift know where they are.
func calibrated(m *corelink.Motion) bool {
	return len(m.Parts) == 4 && m.Parts[1].Known && m.Parts[2].Known
}

func claimWheels(n uint32) corelink.Message {
	return &corelink.Claim{Request: n, Devices: []string{"robot.body.wheel"}, Priority: uint8(claim.Person)}
}
