package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/core/rt"
	"kennel/edge/core/rt/rtlinux"
	"kennel/infra/bench"
	"kennel/infra/proc"
)

// Limits of a robot's loop (issue 6; peer-facts section 12), where SCHED_FIFO is permitted.
const (
	loopTime   = time.Minute
	loopP50    = 100  // us
	loopP99    = 500  // us
	loopMissed = 0.1  // per cent of the periods
	loopStep   = 5    // per cent of a period
	loopPeriod = 5120 // us, of the body
)

// company are the processes beside the loop, which never wait.
type company struct {
	name  string
	alone string // for people
	busy  int
	peers []string // of robotd: parts of this program
}

var companies = []company{
	{"idle", "nothing else", 0, nil},
	{"busy", "one process that never waits", 1, nil},
	{"full", "two processes that never wait for each processor, and a peer that asks robotd without end", 2 * runtime.NumCPU(), []string{"pester"}},
}

// lines collects the measurements of several turns.
type lines struct {
	order []bench.Line
	pairs map[string][]bench.Pair
}

// measured is one line of one turn.
type measured struct {
	bench.Line
	bench.Pair
}

func (l *lines) add(turn []measured) {
	if l.pairs == nil {
		l.pairs = map[string][]bench.Pair{}
	}
	for _, m := range turn {
		if len(l.pairs[m.Name]) == 0 {
			l.order = append(l.order, m.Line)
		}
		l.pairs[m.Name] = append(l.pairs[m.Name], m.Pair)
	}
}

func (l *lines) report(tb testing.TB) {
	tb.Helper()
	for _, line := range l.order {
		bench.Report(tb, line, l.pairs[line.Name])
	}
}

// BenchmarkLoopBesideCyclictest runs robotd, the program itself, on a simulated board that acts as hardware and so has a higher priority,
// with nothing else to do, with one busy process, and with more of them than there are processors; cyclictest, if it is installed, beside it all
// the time.
func BenchmarkLoopBesideCyclictest(b *testing.B) {
	var all lines
	bench.Turns(b, func() error {
		for _, c := range append(companies, company{"followed", "a program that is told of 190 slots 50 times a second", 0, []string{"follow"}},
			company{"tty", "nothing else, on a pseudo-terminal", 0, nil}) {
			m, err := withCompany(b.Context(), b, programs(b), c)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			all.add(m)
		}
		return nil
	})
	all.report(b)
}

// loopRatio is how far the loop's 99th of 100 steps may be behind cyclictest's in the same minute.
const loopRatio = 2

// BenchmarkLoopAloneBesideCyclictest runs the loop without a board and without robotd's other work, on deadlines of its own, each 5.12 ms and each
// millisecond, beside the same company. It tells where the lateness of board and robotd together comes from: the processor, which delays cyclictest too,
// or ours.
func BenchmarkLoopAloneBesideCyclictest(b *testing.B) {
	var all lines
	bench.Turns(b, func() error {
		for _, c := range companies {
			for _, period := range []time.Duration{loopPeriod * time.Microsecond, time.Millisecond} {
				m, err := aloneWith(b.Context(), b, c, period)
				if err != nil {
					return fmt.Errorf("%s, %v: %w", c.name, period, err)
				}
				all.add([]measured{m})
			}
		}
		return nil
	})
	all.report(b)
}

func aloneWith(ctx context.Context, tb testing.TB, c company, period time.Duration) (r measured, err error) {
	ctx, cancel := context.WithTimeout(ctx, loopTime+time.Minute)
	defer cancel()
	for range c.busy {
		p, err := startPart(0, "spin")
		if err != nil {
			return r, err
		}
		defer p.Stop()
	}
	long := bench.Part(tb, loopTime)
	cyclic, err := startCyclictest(ctx, period, long)
	if err != nil {
		return r, err
	}
	if cyclic == nil {
		return r, errors.New("cyclictest is not installed (Debian's rt-tests)")
	}
	ticking, err := startPart(0, "tick", period.String(), long.String())
	if err != nil {
		return r, err
	}
	defer ticking.Stop()
	said, err := ticking.Await(ctx, "ticked ")
	if err != nil {
		return r, err
	}
	var t ticked
	if err := json.Unmarshal([]byte(said), &t); err != nil {
		return r, fmt.Errorf("part tick said %.80q: %w", said, err)
	}
	p50, p99, err := cyclic()
	if err != nil {
		return r, err
	}
	l := bench.Line{Name: fmt.Sprintf("loop-alone/%s/%v/p99", c.name, period), Unit: "us", Less: true, Note: fmt.Sprintf(
		"lateness of 99 of 100 steps of the loop without a board, beside it %s; p50 %d us, %d of %d periods missed; reference: cyclictest in the same minute (p50 %d us)",
		c.alone, t.P50, t.Missed, t.Steps+t.Missed, p50)}
	if t.FIFO {
		l.Bound = loopRatio
	}
	return measured{l, bench.Pair{Value: float64(max(1, t.P99)), Reference: float64(max(1, p99))}}, nil
}

// ticked is the last report of the part tick; times in microseconds.
type ticked struct {
	Steps, Missed uint64
	P50, P99      int64
	FIFO          bool
}

// still is a body without a rhythm and without a port.
type still struct{ period time.Duration }

func (b still) Describe() body.Description {
	return body.Description{Timing: body.Timing{Step: b.period}}
}
func (still) Read(s *body.Sense, _ time.Duration) error { s.Fresh = true; return nil }
func (still) Write(*body.Act) error                     { return nil }
func (still) Halt() error                               { return nil }
func (still) Shutdown() error                           { return nil }
func (still) Close() error                              { return nil }

// tick runs the loop alone for long and says how late it was.
func tick(ctx context.Context, period, long time.Duration, out io.Writer) error {
	runtime.GOMAXPROCS(max(3, runtime.NumCPU())) // as robotd
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g := rtlinux.Thread{Priority: rtlinux.DefaultPriority, CPU: runtime.NumCPU() - 1}.Enter()
	defer g.Leave()
	loop, err := rt.New(rt.Config{}, rtlinux.Clock{}, rt.Task{Name: "nothing", Every: 1, Run: func(*rt.Frame) {}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	if err := loop.Run(ctx, still{period}); err != nil {
		return err
	}
	var s rt.Stats
	loop.Stats(&s)
	b, err := json.Marshal(ticked{s.Steps, s.Missed, s.Lateness.Quantile(0.5).Microseconds(), s.Lateness.Quantile(0.99).Microseconds(), g.FIFO})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "ticked %s\n", b)
	return err
}

func withCompany(ctx context.Context, tb testing.TB, bin string, c company) (_ []measured, err error) {
	ctx, cancel := context.WithTimeout(ctx, loopTime+time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "kennel-loop-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	line, on, ready := filepath.Join(dir, "board"), "-socket", "listening on "
	if c.name == "tty" {
		on, ready = "-pty", "power on: " // its bytes wait for threads of the kernel without priority
	}
	processor := strconv.Itoa(runtime.NumCPU() - 1) // of both: a body's interrupt and the loop that it wakes
	board, err := bench.Start(proc.Spec{Name: "board", Path: filepath.Join(bin, "robotsim"), Args: []string{"vector-board", on, line,
		"-priority", strconv.Itoa(rtlinux.DefaultPriority + 1), "-cpu", processor}})
	if err != nil {
		return nil, err
	}
	defer board.Stop()
	if _, err := board.Await(ctx, ready); err != nil {
		return nil, err
	}
	for range c.busy {
		p, err := startPart(0, "spin")
		if err != nil {
			return nil, err
		}
		defer p.Stop()
	}
	robotd, err := bench.Start(proc.Spec{Name: "robotd", Path: filepath.Join(bin, "robotd"), Args: []string{"-root", dir, "-device", line, "-cpu", processor, "-log-level", "warn"}})
	if err != nil {
		return nil, err
	}
	defer robotd.Stop()
	for _, part := range c.peers {
		p, err := startPart(0, part, dir)
		if err != nil {
			return nil, err
		}
		defer p.Stop()
		if _, err := p.Await(ctx, "answered"); err != nil {
			return nil, err
		}
	}
	long := bench.Part(tb, loopTime)
	cyclic, err := startCyclictest(ctx, loopPeriod*time.Microsecond, long)
	if err != nil {
		return nil, err
	}
	before, err := readTimes(allProcessors)
	if err != nil {
		return nil, err
	}
	s, err := watchLoop(ctx, dir, long)
	if err != nil {
		return nil, err
	}
	after, err := readTimes(allProcessors)
	if err != nil {
		return nil, err
	}
	latency := "not installed (Debian's rt-tests)"
	if cyclic != nil {
		p50, p99, err := cyclic()
		if latency = fmt.Sprintf("p50 %d us, p99 %d us", p50, p99); err != nil {
			latency = err.Error() // what it may not do is no failure of ours
		}
	}
	beside := fmt.Sprintf("robotd and a simulated board for %v, beside them %s; %d steps, worst %d us; cyclictest meanwhile: %s; other guests of this machine's host had %.1f %% of its processors' time",
		long, c.alone, s.Steps, s.Lateness.Max, latency, after.stolenSince(before))
	permitted := s.FIFO && s.Locked
	switch {
	case permitted && c.name == "tty":
		beside = "on a real tty's stand-in, whose kernel threads have no priority, so nothing is demanded. " + beside
		permitted = false
	case !permitted:
		beside = fmt.Sprintf("WITHOUT real-time priority (SCHED_FIFO %v, memory locked %v), so nothing is demanded. ", s.FIFO, s.Locked) + beside
	}
	result := func(what, unit string, value, budget float64, note string) measured {
		l := bench.Line{Name: "loop/" + c.name + "/" + what, Unit: unit, Less: true, Note: note + "; reference: the budget"}
		if permitted {
			l.Bound = 1
		}
		return measured{l, bench.Pair{Value: value, Reference: budget}}
	}
	missed := 100 * float64(s.Missed) / float64(max(1, s.Steps+s.Missed))
	// A count of zero has no ratio, so it counts as half a period.
	missed = max(missed, 50/float64(max(1, s.Steps)))
	return []measured{
		result("p50", "us", float64(max(1, s.Lateness.P50)), loopP50, "lateness of half of all steps; "+beside),
		result("p99", "us", float64(max(1, s.Lateness.P99)), loopP99, "lateness of 99 of 100 steps"),
		result("missed", "%", missed, loopMissed, "periods without a step"),
		result("step", "%", 100*float64(max(1, s.StepTime.P99))/float64(s.PeriodUS), loopStep, "of its period, the 99th of 100 steps"),
	}, nil
}

// watchLoop returns robotd's account of its first steps, as soon as they were as many as fit into long.
func watchLoop(ctx context.Context, root string, long time.Duration) (*corelink.LoopStats, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var s *corelink.LoopStats
	client := corelink.NewClient(root)
	if err := client.Run(ctx, func(m corelink.Message) {
		if l, ok := m.(*corelink.LoopStats); ok && s == nil && int64(l.Steps+l.Missed)*loopPeriod >= long.Microseconds() {
			s = l
			cancel()
		}
	}); err != nil {
		return nil, err
	}
	if s == nil {
		return nil, fmt.Errorf("robotd counted no %v of steps: %w", long, context.Cause(ctx))
	}
	return s, nil
}

// times holds the processor times since the machine started, in clock ticks.
type times struct{ all, stolen uint64 }

// allProcessors is the line of /proc/stat that sums them up; "cpu0" and so on are one each.
const allProcessors = "cpu"

// readTimes reads a line of /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq and steal, which is the time that a
// guest's processors had work and the host gave them to others. What follows is counted in user and nice already.
func readTimes(of string) (t times, err error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t, err
	}
	_, line, _ := strings.Cut("\n"+string(b), "\n"+of+" ")
	line, _, _ = strings.Cut(line, "\n")
	f := strings.Fields(line)
	if len(f) < 8 {
		return t, fmt.Errorf("/proc/stat: %.80q after %s: want at least 8 counts", line, of)
	}
	for _, s := range f[:8] {
		if t.stolen, err = strconv.ParseUint(s, 10, 64); err != nil {
			return t, fmt.Errorf("/proc/stat: %w", err)
		}
		t.all += t.stolen
	}
	return t, nil
}

// stolenSince is the share of the time since then that the host gave to others, in per cent.
func (t times) stolenSince(then times) float64 {
	return 100 * float64(t.stolen-then.stolen) / float64(max(1, t.all-then.all))
}

// spin never waits, until ctx ends.
func spin(ctx context.Context) error {
	for ctx.Err() == nil {
		for range 1 << 20 { // some work between two looks
		}
	}
	return nil
}

// pester asks robotd for its tree and values as fast as it takes the questions, until ctx ends. It says so when the first was answered.
func pester(ctx context.Context, root string, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client := corelink.NewClient(root)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for request := uint32(1); ctx.Err() == nil; request++ {
			tree, values := client.Send(&corelink.GetTree{Request: request}), client.Send(&corelink.GetValues{Request: request})
			if err := errors.Join(tree, values); err == nil {
				continue
			}
			select { // robotd is not there yet
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	answered := false
	err := client.Run(ctx, func(m corelink.Message) {
		if _, ok := m.(*corelink.Tree); ok && !answered {
			answered = true
			fmt.Fprintln(out, "answered")
		}
	})
	cancel()
	<-asked
	return err
}

// follow subscribes to as many slots as robotd tells 50 times a second, until ctx ends. It says so when it knows the first values.
func follow(ctx context.Context, root string, out io.Writer) error {
	link := corelink.NewClient(root)
	c := coreclient.New(link)
	go link.Run(ctx, c.Handle) // ends with ctx
	if err := c.Ready(ctx); err != nil {
		return err
	}
	tree, err := c.Tree(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, n := range tree.Nodes {
		for _, s := range n.Slots {
			names = append(names, n.Full+"."+s.Name)
		}
	}
	answered := sync.OnceFunc(func() { fmt.Fprintln(out, "answered") })
	err = c.Subscribe(ctx, 50, func(core.Update) error { answered(); return nil }, names[:min(len(names), 190)]...)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// startCyclictest starts the measure that others are held to, at robotd's priority, for long. Its result waits for the end. It is nil if the program
// is not installed.
func startCyclictest(ctx context.Context, period, long time.Duration) (func() (p50, p99 int, err error), error) {
	path, err := exec.LookPath("cyclictest")
	if err != nil {
		return nil, nil // said in the notes
	}
	cmd := exec.CommandContext(ctx, path, "-q", "-m", "-t", "1", "-p", strconv.Itoa(rtlinux.DefaultPriority), "-i", strconv.FormatInt(period.Microseconds(), 10),
		"-l", strconv.FormatInt(int64(long/period), 10), "-h", "100000")
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() (p50, p99 int, err error) {
		if err := cmd.Wait(); err != nil {
			return 0, 0, fmt.Errorf("cyclictest: %w: %.200s", err, stderr.Bytes())
		}
		return quantiles(out.Bytes())
	}, nil
}

// quantiles reads a histogram of cyclictest -h: lines of microseconds and counts, and comments.
func quantiles(out []byte) (p50, p99 int, err error) {
	var counts [][2]int
	total := 0
	sc := bufio.NewScanner(bytes.NewReader(out))
	for sc.Scan() {
		line, _, _ := strings.Cut(sc.Text(), "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) != 2 {
			return 0, 0, fmt.Errorf("%.60q: want microseconds and a count", sc.Text())
		}
		us, err1 := strconv.Atoi(f[0])
		n, err2 := strconv.Atoi(f[1])
		if err := errors.Join(err1, err2); err != nil || us < 0 || n < 0 {
			return 0, 0, fmt.Errorf("%.60q: want microseconds and a count: %v", sc.Text(), err)
		}
		counts, total = append(counts, [2]int{us, n}), total+n
	}
	if err := sc.Err(); err != nil {
		return 0, 0, err
	}
	if total == 0 {
		return 0, 0, errors.New("its histogram is empty")
	}
	at := func(share float64) int {
		seen := 0
		for _, c := range counts {
			if seen += c[1]; float64(seen) >= share*float64(total) {
				return c[0]
			}
		}
		return counts[len(counts)-1][0]
	}
	return at(0.5), at(0.99), nil
}

// TestLoop: the loop's figures come from robotd itself; what they are, this machine decides.
func TestLoop(t *testing.T) {
	results, err := withCompany(t.Context(), t, programs(t), company{"full", "one process that never waits and a peer that asks without end", 1, []string{"pester"}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range results {
		names = append(names, r.Name)
		if r.Value <= 0 || r.Reference <= 0 || r.Unit == "" {
			t.Errorf("%+v", r)
		}
	}
	if got := strings.Join(names, " "); got != "loop/full/p50 loop/full/p99 loop/full/missed loop/full/step" {
		t.Error(got)
	}
	if !strings.Contains(results[0].Note, "cyclictest meanwhile: ") {
		t.Errorf("without cyclictest: %s", results[0].Note)
	}
	if !strings.Contains(results[0].Note, " % of its processors' time") {
		t.Errorf("without what the host gave to others: %s", results[0].Note)
	}
	if _, err := withCompany(t.Context(), t, filepath.Join(os.TempDir(), "nothing here"), company{}); err == nil {
		t.Error("measured without programs")
	}
}

func TestQuantiles(t *testing.T) {
	p50, p99, err := quantiles([]byte("# /dev/cpu_dma_latency set to 0us\n# Histogram\n000004 000001\n000005 000097\n000009 000002\n# Total: 000000100\n# Max Latencies: 00009\n"))
	if err != nil || p50 != 5 || p99 != 9 {
		t.Errorf("p50 %d, p99 %d, %v", p50, p99, err)
	}
	for _, bad := range []string{"", "# nothing\n", "000004\n", "4 4 4\n", "x 4\n", "-1 4\n"} {
		if _, _, err := quantiles([]byte(bad)); err == nil {
			t.Errorf("%q is a histogram", bad)
		}
	}
}

func FuzzQuantiles(f *testing.F) {
	f.Add([]byte("# Histogram\n000004 000001\n000005 000097\n"))
	f.Add([]byte("1 9223372036854775807\n2 9223372036854775807"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p50, p99, err := quantiles(b); err == nil && (p50 < 0 || p99 < 0) {
			t.Errorf("%q: %d, %d", b, p50, p99)
		}
	})
}
