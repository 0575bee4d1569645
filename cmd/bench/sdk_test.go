package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/body/vector/spine"
	"kennel/edge/core/rt/rtlinux"
	"kennel/infra/bench"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/proc"
	kennel "kennel/sdk/go"

	"golang.org/x/sys/unix"
)

// The budgets of programs at the gateway.
const (
	sdkOrder     = 15.0 // ms from an order of a Python program to the first frame that drives a wheel, half of them
	sdkFollowing = 3.0  // per cent of a processor, for sdkFollowers
	sdkFollowers = 4
	sdkSlots     = 20
	sdkRate      = 50 // Hz
	sdkReaders   = 8
	sdkLoop      = 1.1 // the loop's 99th of 100 steps may be so many times as late
	sdkOrders    = 100
	sdkTime      = 30 * time.Second
)

// BenchmarkSDKBesideBudget measures programs that drive a simulated Vector of three processes, board, robotd and agentd, through its gateway: how soon an order of a Python
// program is at the motors, what subscriptions cost, and whether the loop is later for them. There is no cloud.
func BenchmarkSDKBesideBudget(b *testing.B) {
	var all lines
	bench.Turns(b, func() error {
		m, err := measurePrograms(b.Context(), b, programs(b))
		all.add(m)
		return err
	})
	all.report(b)
}

// sdkRobot is a robot of processes.
type sdkRobot struct {
	dir, file      string // the root; what programs find it by
	robotd, agentd *bench.Program
	moves          <-chan time.Duration // when the first frame that drives a wheel came after one that drove none, by monoclock
	stops          []func()
}

func (r *sdkRobot) stop() {
	for i := len(r.stops) - 1; i >= 0; i-- {
		r.stops[i]()
	}
}

// makeSDKRobot makes the folder of a robot without a cloud.
func makeSDKRobot(ctx context.Context, tb testing.TB, bin string) (_ *sdkRobot, err error) {
	tmp, err := os.MkdirTemp("", "kennel-sdk-")
	if err != nil {
		return nil, err
	}
	r := &sdkRobot{dir: filepath.Join(tmp, "r"), file: filepath.Join(tmp, "robot.json")}
	r.stops = append(r.stops, func() { os.RemoveAll(tmp) })
	secret, root := filepath.Join(tmp, "secret"), filepath.Join(tmp, "root.crt")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: mqtttest.NewCA(tb, "another cloud").Cert.Raw})
	err = errors.Join(os.WriteFile(secret, []byte(strings.Repeat("k", 32)), 0o600), os.WriteFile(root, ca, 0o600))
	if err == nil {
		var out []byte
		if out, err = exec.CommandContext(ctx, filepath.Join(bin, "robotsim"), "make", "-root", r.dir, "-thing", "vic:00e20100", "-secret-file", secret, "-ca", root, "-api", "https://127.0.0.1:1").CombinedOutput(); err != nil {
			err = fmt.Errorf("robotsim make: %w: %.500s", err, out)
		}
	}
	if err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

// start starts a program of the robot.
func (r *sdkRobot) start(bin, name string, args ...string) (*bench.Program, error) {
	p, err := bench.Start(proc.Spec{Name: name, Path: filepath.Join(bin, name), Args: args, Env: append(os.Environ(), "KENNEL_GATEWAY=127.0.0.1:0")})
	if err == nil {
		r.stops = append(r.stops, p.Stop)
	}
	return p, err
}

// found waits until programs can reach the robot.
func (r *sdkRobot) found(ctx context.Context, bin string) error {
	for {
		err := r.reach(ctx, bin)
		if err == nil {
			return nil
		}
		if bench.Pass(ctx, 200*time.Millisecond) != nil {
			return fmt.Errorf("the robot's gateway: %w", err)
		}
	}
}

func startSDKRobot(ctx context.Context, tb testing.TB, bin string) (_ *sdkRobot, err error) {
	r, err := makeSDKRobot(ctx, tb, bin)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.stop()
		}
	}()
	tmp := filepath.Dir(r.dir)
	line, board := filepath.Join(tmp, "line"), filepath.Join(tmp, "board")
	if err := r.startBoard(ctx, bin, board); err != nil {
		return nil, err
	}
	moves, end, err := tapLine(line, board)
	if err != nil {
		return nil, err
	}
	r.moves, r.stops = moves, append(r.stops, end)
	return r, r.startPrograms(ctx, bin, line)
}

// startBoard starts the robot's body, which its head finds at path.
func (r *sdkRobot) startBoard(ctx context.Context, bin, path string, args ...string) error {
	b, err := r.start(bin, "robotsim", append([]string{"vector-board", "-socket", path}, args...)...)
	if err != nil {
		return err
	}
	_, err = b.Await(ctx, "listening on ")
	return err
}

// startPrograms starts robotd and agentd, and waits until programs can reach the robot.
func (r *sdkRobot) startPrograms(ctx context.Context, bin, line string, args ...string) (err error) {
	if r.robotd, err = r.start(bin, "robotd", append([]string{"-root", r.dir, "-device", line, "-log-level", "warn"}, args...)...); err != nil {
		return err
	}
	if r.agentd, err = r.start(bin, "agentd", "-root", r.dir, "-log-level", "warn"); err != nil {
		return err
	}
	return r.found(ctx, bin)
}

// admit makes a token, and writes the file by which its program finds the robot.
func (r *sdkRobot) admit(ctx context.Context, bin, name, file string) error {
	var wrong strings.Builder
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "agentd"), "program", "add", "-root", r.dir, "-name", name, "-o", "json")
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("agentd program add: %w: %.300s", err, wrong.String())
	}
	return os.WriteFile(file, out, 0o600)
}

// reach writes the file by which programs find the robot, and tries it.
func (r *sdkRobot) reach(ctx context.Context, bin string) error {
	if err := r.admit(ctx, bin, "bench", r.file); err != nil {
		return err
	}
	robot, err := kennel.Connect(ctx, r.file)
	if err != nil {
		return err
	}
	defer robot.Close()
	_, err = robot.Describe(ctx)
	return err
}

// tapLine passes what a head says at the socket line on to board, and back, and tells when a wheel was first driven.
func tapLine(line, board string) (<-chan time.Duration, func(), error) {
	l, err := net.Listen("unix", line)
	if err != nil {
		return nil, nil, err
	}
	moves := make(chan time.Duration, 1024)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			head, err := l.Accept()
			if err != nil {
				return // closed
			}
			wg.Go(func() {
				defer head.Close()
				body, err := net.Dial("unix", board)
				if err != nil {
					return // the head finds its line closed
				}
				wg.Go(func() { defer head.Close(); _, _ = io.Copy(head, body) }) // ends with the other way
				defer body.Close()
				_, _ = io.Copy(body, io.TeeReader(head, &wheelWatch{frames: spine.NewParser(spine.ToBody), moves: moves}))
			})
		}
	})
	return moves, func() { l.Close(); wg.Wait() }, nil
}

type wheelWatch struct {
	frames *spine.Parser
	driven bool
	moves  chan<- time.Duration
}

func (w *wheelWatch) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := copy(w.frames.Space(), rest)
		w.frames.Fill(n)
		rest = rest[n:]
		for f, ok := w.frames.Next(); ok; f, ok = w.frames.Next() {
			var m spine.HeadData
			if f.Type != spine.TypeData || m.ParsePayload(f.Payload) != nil {
				continue
			}
			driven := m.Motors[0] != 0 || m.Motors[1] != 0
			if driven && !w.driven {
				select {
				case w.moves <- monoclock.Now():
				default: // more than anyone asked for
				}
			}
			w.driven = driven
		}
	}
	return len(b), nil
}

// pythonOrders drives so often, and says before each order when it gives it, by the clock of monoclock.
const pythonOrders = `
import time, kennel
with kennel.connect() as robot, robot.claim("robot.go") as wheels:
    for i in range(%d):
        print("at", time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)
        try:
            wheels.go(0.01 * (i %% 2 * 2 - 1))
        except kennel.NotDone:
            pass # a busy machine's loop was late; the order was heard
        time.sleep(0.2)
`

func measurePrograms(ctx context.Context, tb testing.TB, bin string) (all []measured, err error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute)
	defer cancel()
	r, err := startSDKRobot(ctx, tb, bin)
	if err != nil {
		return nil, err
	}
	defer r.stop()
	order, err := pythonToMotor(ctx, tb, r)
	if err != nil {
		return nil, err
	}
	all = append(all, measured{bench.Line{Name: "sdk/order", Unit: "ms", Less: true, Bound: 1,
		Note: fmt.Sprintf("half of %d orders of a Python program are so soon at the line to the motors, 99 of 100 after %.1f ms; reference: the budget", bench.Part(tb, sdkOrders), order[1])},
		bench.Pair{Value: order[0], Reference: sdkOrder}})
	pids := []int{r.robotd.Pid(), r.agentd.Pid()}
	share := func(ctx context.Context) (float64, error) {
		before, began := bench.UsageOfAll(pids...).CPU, time.Now()
		err := bench.Pass(ctx, bench.Part(tb, sdkTime))
		return 100 * (bench.UsageOfAll(pids...).CPU - before).Seconds() / time.Since(began).Seconds(), err
	}
	var idle, busy float64
	_, err = beside(ctx, r.file, 1, turnAround, func(ctx context.Context) (_ float64, err error) { // a body at rest has little to tell
		if idle, err = share(ctx); err == nil {
			busy, err = beside(ctx, r.file, sdkFollowers, followSlots, share)
		}
		return 0, err
	})
	if err != nil {
		return all, err
	}
	all = append(all, measured{bench.Line{Name: "sdk/subscriptions", Unit: "%", Less: true, Bound: 1,
		Note: fmt.Sprintf("of a processor, robotd and agentd together, for %d subscriptions of %d slots at %d Hz while the robot turns, beside %.2f %% without; reference: the budget", sdkFollowers, sdkSlots, sdkRate, idle)},
		bench.Pair{Value: max(0.01, busy-idle), Reference: sdkFollowing}})
	late, err := lateBeside(ctx, tb, bin, sdkReaders, readSlots)
	if err != nil {
		return all, err
	}
	return append(all, measured{bench.Line{Name: "sdk/loop", Unit: "us", Less: true, Bound: 1 / sdkLoop,
		Note: fmt.Sprintf("lateness of 99 of 100 steps of the loop while %d programs read without a pause; reference: without them", sdkReaders)},
		late}), nil
}

// keepOffLoop keeps a process off the processor of a punctual robot's loop. agentd.service does so on a robot with four processors; programs run on machines of their own,
// where they take none of the robot's time, and share the rest of it with agentd here.
func keepOffLoop(pid int) error {
	var others unix.CPUSet
	for i := range runtime.NumCPU() - 1 {
		others.Set(i)
	}
	return pin(pid, &others)
}

// pin keeps a process on some processors; none: on all.
func pin(pid int, on *unix.CPUSet) error {
	if on.Count() == 0 {
		return nil
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, t := range threads {
		tid, err := strconv.Atoi(t.Name())
		if err == nil {
			err = unix.SchedSetaffinity(tid, on)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("thread %s of %d: %w", t.Name(), pid, err)
		}
	}
	return nil
}

// lateBeside returns the lateness of 99 of 100 steps of a fresh robot's loop, in microseconds, while n programs run a part, and while those programs are stopped.
func lateBeside(ctx context.Context, tb testing.TB, bin string, n int, part string) (late bench.Pair, err error) {
	r, err := startPunctual(ctx, tb, bin)
	if err != nil {
		return late, err
	}
	defer r.stop()
	var all programsBeside
	for range n {
		p, err := startPart(0, part, r.file)
		if err != nil {
			return late, err
		}
		defer p.Stop()
		if err := all.add(ctx, p); err != nil {
			return late, err
		}
	}
	return lateInTurns(ctx, r, bench.Part(tb, sdkTime), all.run)
}

// programsBeside are the processes of programs that can be stopped together.
type programsBeside []int

// add waits until p has begun.
func (x *programsBeside) add(ctx context.Context, p *bench.Program) error {
	if _, err := p.Await(ctx, "begun"); err != nil {
		return err
	}
	*x = append(*x, p.Pid())
	return keepOffLoop(p.Pid())
}

// run lets them run, or stops them.
func (x *programsBeside) run(on bool) error {
	sig := syscall.SIGSTOP
	if on {
		sig = syscall.SIGCONT
	}
	for _, pid := range *x {
		if err := syscall.Kill(pid, sig); err != nil {
			return fmt.Errorf("program %d: %w", pid, err)
		}
	}
	return nil
}

// startPunctual starts a robot whose body is as punctual as hardware: the loop's steps begin with the body's frames, and a body that waited for a processor
// would be counted as a loop that is late.
func startPunctual(ctx context.Context, tb testing.TB, bin string) (*sdkRobot, error) {
	r, err := makeSDKRobot(ctx, tb, bin)
	if err != nil {
		return nil, err
	}
	board, processor := filepath.Join(filepath.Dir(r.dir), "board"), strconv.Itoa(runtime.NumCPU()-1)
	if err = r.startBoard(ctx, bin, board, "-priority", strconv.Itoa(rtlinux.DefaultPriority+1), "-cpu", processor, "-camera", r.dir); err == nil {
		err = r.startPrograms(ctx, bin, board, "-cpu", processor)
	}
	if err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

// pythonToMotor returns after how many milliseconds half of a Python program's orders, and 99 of 100, drove a motor.
func pythonToMotor(ctx context.Context, tb testing.TB, r *sdkRobot) (out [2]float64, err error) {
	for len(r.moves) > 0 {
		<-r.moves // from its calibration
	}
	n := bench.Part(tb, sdkOrders)
	cmd := exec.CommandContext(ctx, "/usr/bin/python3", "-c", fmt.Sprintf(pythonOrders, n))
	cmd.Env = append(os.Environ(), "KENNEL_ROBOT="+r.file, "PYTHONPATH=../../sdk/python", "PYTHONDONTWRITEBYTECODE=1")
	var wrong strings.Builder
	cmd.Stderr = &wrong
	said, err := cmd.Output()
	if err != nil {
		trace := wrong.String() // ends with the reason
		return out, fmt.Errorf("Python program: %w: %s", err, trace[max(0, len(trace)-300):])
	}
	var first []time.Duration
	for len(r.moves) > 0 {
		first = append(first, <-r.moves)
	}
	var times []float64
	for line := range strings.Lines(string(said)) {
		var at time.Duration
		if _, err := fmt.Sscanf(line, "at %d", &at); err != nil {
			return out, fmt.Errorf("Python program said %.80q: %w", line, err)
		}
		for len(first) > 0 && first[0] < at {
			first = first[1:]
		}
		if len(first) == 0 {
			return out, fmt.Errorf("no wheel was driven after order %d of %d", len(times)+1, n)
		}
		times = append(times, (first[0]-at).Seconds()*1000)
	}
	return [2]float64{bench.Median(times), bench.Percentile(times, 99)}, nil
}

// beside measures while so many processes do a part at the robot of file.
func beside(ctx context.Context, file string, n int, part string, measure func(context.Context) (float64, error)) (float64, error) {
	for range n {
		p, err := startPart(0, part, file)
		if err != nil {
			return 0, err
		}
		defer p.Stop()
		if _, err := p.Await(ctx, "begun"); err != nil {
			return 0, err
		}
	}
	return measure(ctx)
}

const followSlots, readSlots, turnAround = "followslots", "readslots", "turnaround"

// robotSlots connects to a robot and returns the first slots of its sensors.
func robotSlots(ctx context.Context, file string) (r *kennel.Robot, names []string, err error) {
	if r, err = kennel.Connect(ctx, file); err != nil {
		return nil, nil, err
	}
	d, err := r.Describe(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range d.Parts {
		for _, s := range p.Slots {
			if len(names) < sdkSlots && s.Type == "float" {
				names = append(names, p.Full+"."+s.Name)
			}
		}
	}
	if len(names) < sdkSlots {
		return nil, nil, fmt.Errorf("%d numbers of the robot, want %d", len(names), sdkSlots)
	}
	return r, names, nil
}

func followFile(ctx context.Context, file string, out io.Writer) error {
	r, names, err := robotSlots(ctx, file)
	if err != nil {
		return err
	}
	n, began := 0, time.Now()
	return r.Subscribe(ctx, sdkRate, func(kennel.Values) error {
		if n++; n == sdkRate {
			if took := time.Since(began); took > 5*time.Second {
				return fmt.Errorf("%d updates took %v", n, took)
			}
			fmt.Fprintln(out, "begun")
		}
		return nil
	}, names...)
}

// turnFile turns a robot on the spot, again and again.
func turnFile(ctx context.Context, file string, out io.Writer) error {
	r, err := kennel.Connect(ctx, file)
	if err != nil {
		return err
	}
	l, err := r.Claim(ctx, "robot.go")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "begun")
	for ctx.Err() == nil {
		if _, err := l.Turn(ctx, 20); err != nil {
			_ = bench.Pass(ctx, 100*time.Millisecond) // a busy machine's loop was late; it turns again soon
		}
	}
	return nil
}

func readFile(ctx context.Context, file string, out io.Writer) error {
	r, names, err := robotSlots(ctx, file)
	if err != nil {
		return err
	}
	begun := sync.OnceFunc(func() { fmt.Fprintln(out, "begun") })
	for ctx.Err() == nil {
		if _, err := r.Values(ctx, names[:2]...); err != nil {
			return err
		}
		begun()
	}
	return nil
}
