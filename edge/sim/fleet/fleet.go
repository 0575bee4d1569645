package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"kennel/certs/devicecert"
	"kennel/edge/core/corelink"
	"kennel/edge/env/platform"
	"kennel/infra/api/events"
	"kennel/infra/api/status"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Agent is a robot's agent (agentapp.Agent) as the fleet uses it. Safe for concurrent use.
type Agent interface {
	Run(ctx context.Context) error // until ctx ends, which says goodbye; an error asks for another agent
	Emit(events.Event)
	Set(ctx context.Context, fields map[string]json.RawMessage) error // of its settings
	Events() (emitted uint64, spool status.Spool)
	Identity() (devicecert.State, bool)
}

// Machine is a light robot's replacement for a robot's computer.
type Machine struct {
	Folder string // the root's name
	Log    *slog.Logger
	Core   Core
	Now    func() time.Time
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	OnUp   func()
	OnDown func(error)

	Status, Flush, Telemetry time.Duration
}

// Core is a robot's core as an agent sees it.
type Core interface {
	Run(ctx context.Context, handle func(corelink.Message)) error
	Hello() (corelink.Hello, bool)
	Send(corelink.Message) error
}

// Secrets gives the claim secret of a thing that has no folder yet: it registers it, or was told (ParseSecrets).
type Secrets interface {
	Secret(ctx context.Context, id thing.ID) (string, error)
}

// Config says which robots, where, and how they behave.
type Config struct {
	N       int
	First   thing.ID // serials count up from its; 8 hex digits
	Folder  string   // each robot has its folder below it; a robot that already has one continues with it
	Seed    uint64
	Profile Profile

	Endpoints platform.Endpoints
	RootPEM   []byte // the root they trust
	Secrets   Secrets
	OSVersion string
	// ReleaseKey is the public key, in PEM, of those who may sign releases; none: the robots install none.
	ReleaseKey []byte
	// ReleaseRoot is the first root of release metadata; none: the robots do without metadata.
	ReleaseRoot []byte

	// NewAgent makes the agent of the robot below root.
	NewAgent func(root *os.Root, m Machine) (Agent, error)
	// AtOnce is how many robots may be between nothing and their first login; 64. More take longer each and no less in all.
	AtOnce int
	Log    *slog.Logger // the fleet's own
	// RobotLog is the robots' log; nil: none, because there are many robots.
	RobotLog *slog.Logger
}

// perRobot is how many file descriptors a robot may need: its folder, its socket, and an event file while it is written.
const (
	perRobot    = 3
	reserve     = 256
	startPatrol = 30 * time.Second // after that a robot without a login makes room for the next
)

// Descriptors returns how many robots this process can hold.
func Descriptors() (robots int, err error) {
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
		return 0, fmt.Errorf("limit of file descriptors: %w", err)
	}
	return (int(min(max(lim.Cur, reserve), 1<<30)) - reserve) / perRobot, nil
}

// Fleet is a running crowd. Its methods are safe for concurrent use; Run is called once.
type Fleet struct {
	cfg     Config
	robots  []*robot
	started time.Time
	gate    chan struct{} // a slot for each robot that is starting

	atEnd atomic.Int64 // how many were connected when Run's context ended; -1: it has not

	made, connects, reconnects, reboots, changed, emits, drops atomic.Int64

	mu      sync.Mutex
	errors  map[string]int64 // by reason
	logins  samples
	absence samples
}

// New returns the fleet; it starts nothing.
func New(cfg Config) (*Fleet, error) {
	switch {
	case cfg.NewAgent == nil || cfg.Log == nil || cfg.Folder == "":
		return nil, errors.New("fleet: NewAgent, Log and Folder are needed")
	case cfg.N < 1:
		return nil, errs.New(errs.Invalid, "%d robots: want at least 1", cfg.N)
	}
	if err := cfg.Profile.Validate(); err != nil {
		return nil, errs.New(errs.Invalid, "profile: %w", err)
	}
	switch most, err := Descriptors(); {
	case err != nil:
		return nil, err
	case cfg.N > most:
		return nil, errs.New(errs.Invalid, "%d robots need %d file descriptors each: this process may hold %d robots; raise the limit (ulimit "+
			"-n), or run several fleets with different first serials",
			cfg.N, perRobot, most)
	}
	if cfg.RobotLog == nil {
		cfg.RobotLog = slog.New(slog.DiscardHandler)
	}
	cfg.AtOnce = cmp.Or(cfg.AtOnce, 64)
	f := &Fleet{cfg: cfg, gate: make(chan struct{}, cfg.AtOnce), errors: map[string]int64{}, started: time.Now()}
	f.atEnd.Store(-1)
	ids, err := Things(cfg.First, cfg.N)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		plan := cfg.Profile.Plan(cfg.Seed, id)
		f.robots = append(f.robots, &robot{Fleet: f, id: id, folder: filepath.Join(cfg.Folder, id.Slug()), plan: plan, wire: newWire(plan.Wire), restart: make(chan struct{}, 1),
			core: newCore(cfg.Seed, id, cfg.Profile.Vitals)})
	}
	return f, nil
}

// Things lists n things whose serials count up from first's.
func Things(first thing.ID, n int) ([]thing.ID, error) {
	serial, err := strconv.ParseUint(first.Serial(), 16, 32)
	if err != nil || len(first.Serial()) != 8 || serial+uint64(n) > 1<<32 {
		return nil, errs.New(errs.Invalid, "first robot %.60q: want species:serial with 8 lower-case hex digits that %d more can follow", first, n-1)
	}
	out := make([]thing.ID, n)
	for i := range out {
		if out[i], err = thing.New(first.Species(), fmt.Sprintf("%08x", serial+uint64(i))); err != nil {
			return nil, errs.New(errs.Invalid, "%w", err)
		}
	}
	return out, nil
}

// Run keeps all robots alive until ctx ends, then stops them in order. An error is one that no robot can live with: they cannot be
// registered, or have no place.
func (f *Fleet) Run(ctx context.Context) error {
	if err := os.MkdirAll(f.cfg.Folder, 0o755); err != nil {
		return err
	}
	outer := ctx
	ctx, fail := context.WithCancelCause(context.WithoutCancel(outer))
	defer fail(nil)
	// Connected robots are counted before they disconnect.
	defer context.AfterFunc(outer, func() {
		f.atEnd.Store(int64(f.connected()))
		fail(context.Cause(outer))
	})()
	var wg sync.WaitGroup
	for _, r := range f.robots {
		select {
		case <-ctx.Done():
		case f.gate <- struct{}{}:
			wg.Go(func() {
				started := sync.OnceFunc(func() { <-f.gate })
				defer started()
				if err := r.live(ctx, started); err != nil {
					fail(fmt.Errorf("%s: %w", r.id, err))
				}
			})
		}
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// Reconnect cuts the connections of at most n robots that have one, all at the same time, and returns of how many.
func (f *Fleet) Reconnect(n int) int {
	var wg sync.WaitGroup
	var cut int
	for _, r := range f.robots {
		if cut == n {
			break
		}
		if r.connected() {
			cut++
			wg.Go(func() { r.wire.cut() })
		}
	}
	wg.Wait()
	return cut
}

// Crash makes at most n robots that are connected report that a program crashed, and returns how many.
func (f *Fleet) Crash(n int) (crashed int) {
	for _, r := range f.robots {
		if crashed < n && r.connected() && r.crash() {
			crashed++
		}
	}
	return crashed
}

// Reboot restarts the computers of the robots named, and returns how many of them there are.
func (f *Fleet) Reboot(ids []thing.ID) (rebooted int) {
	for _, r := range f.robots {
		if slices.Contains(ids, r.id) {
			rebooted++
			r.reboot()
		}
	}
	return rebooted
}

// connected returns how many robots have a connection.
func (f *Fleet) connected() (n int) {
	for _, r := range f.robots {
		if r.connected() {
			n++
		}
	}
	return n
}

// failed counts an error by its reason.
func (f *Fleet) failed(reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors[reason]++
}

// Progress logs how far the fleet is, at intervals, until ctx ends.
func (f *Fleet) Progress(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s := f.Summary()
		f.cfg.Log.InfoContext(ctx, "fleet", "robots", s.Robots, "connected", s.Connected, "enrolled", s.Enrolled, "events", s.Events.Emitted,
			"acked", s.Events.Acked,
			"reconnects", s.Reconnects, "login_p50", time.Duration(s.Login.P50*float64(time.Millisecond)).Round(time.Millisecond), "rss_mib",
			s.Process.RSS>>20,
			logging.Err, s.Errors)
	}
}
