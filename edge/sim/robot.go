package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/edge/agent/health/faults"
	"kennel/edge/agent/health/nightly"
	"kennel/edge/agent/ownership/claim"
	"kennel/edge/agent/ownership/wipe"
	"kennel/edge/agent/teleop/simulator"
	"kennel/edge/bodies"
	"kennel/edge/body/bodysim"
	"kennel/edge/body/vector/factory/bootparam"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/edge/faultcode"
	"kennel/edge/sim/plane"
	"kennel/infra/logging"
	"kennel/infra/proc"
	"kennel/infra/thing"
)

// StateFile, below the robot's root, says which processes the robot consists of, while it runs.
const StateFile = "run/sim.json"

// LogDir, below the robot's root, holds what its processes say; unlike run/ it survives a boot. It is among the user data, so after a recovery boot
// it is recoveryLogs.
const (
	LogDir       = robotfs.Cache + "/vic-logmgr"
	recoveryLogs = "run/vic-logmgr"
)

// Config says how to run a robot.
type Config struct {
	Root string // the robot's folder, made by Make
	Bin  string // folder with robotd and agentd, and mindd, without which a robot has no face and plays no animations
	// BootDelay is how long the head needs from power to its first process. The original takes 20.5 s (part of VEC-BOOT-11), too long for a demonstration.
	BootDelay time.Duration
	// Press is how long the button is held at the first boot, which decides its kind (VEC-BOOT-02); 0: just as long as it needs.
	Press    time.Duration
	Log      *slog.Logger
	LogLevel string
	World    *plane.Map          // where the body is; nil: nowhere, on an endless floor
	Getenv   func(string) string // overrides of the robot's .env files
	// OnCode is called with the code that the robot shows to its future owner, and with "" when it no longer shows one; it may be nil. The
	// simulated robot has no display of its own.
	OnCode func(code string)
	// OnFault hears the three digits of the fault that the robot shows (part of VEC-FLT-10), likewise.
	OnFault func(digits string)
}

// State is the content of StateFile.
type State struct {
	Pids  map[string]int `json:"pids"`
	Boots int            `json:"boots"`
	Boot  bodysim.Boot   `json:"boot"` // of this time of power
}

// Run boots the robot and keeps it alive until ctx ends: a process that ends is started again. When the board cuts the power (because
// nothing spoke to it for 200 frames, or because it was told to) the head dies with it and boots again, as if the button were pressed. It
// also boots again when agentd ended to have the user data cleared, after all files there, logs too, are closed; and when agentd ended for
// the nightly reboot (VEC-BOOT-16), whose other half this is.
func Run(ctx context.Context, cfg Config) error {
	root, err := open(cfg.Root)
	if err != nil {
		return err
	}
	defer root.Close() // nothing buffered
	r := &robot{cfg: cfg, root: root, reboot: make(chan string, 1), state: State{Pids: map[string]int{"robotsim": os.Getpid()}}}
	var world World
	if err := robotfs.ReadJSON(root, simFile, &world); err != nil {
		return err
	}
	if r.id, err = platform.ID(root, bodies.Hardware{}); err != nil {
		return err
	}
	if r.species, err = speciesOf(r.id); err != nil {
		return err
	}
	// The body outlives the head's boots: its battery does not fill because the head restarts.
	if r.body, err = r.species.New(bodysim.Place{
		Root: root, ID: r.id, World: cfg.World, Seed: world.Seed, Volts: world.BatteryVolts, OnCharger: world.OnCharger, Press: cfg.Press,
		Sounds: simulator.SoundDir, Log: cfg.Log, Begun: r.begun,
	}); err != nil {
		return fmt.Errorf("%s: %w", simFile, err)
	}
	if r.truth, err = newTruth(r.body); err != nil {
		return err
	}
	for ctx.Err() == nil {
		err := r.boot(ctx)
		switch {
		case errors.Is(err, bodysim.ErrPowerCut):
			cfg.Log.WarnContext(ctx, "body cut the power; pressing its button", logging.Err, err)
		case err != nil:
			return err
		}
	}
	return nil
}

// open opens the folder of a simulated robot.
func open(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err == nil {
		if _, err = root.Stat(simFile); err != nil {
			_ = root.Close() // nothing buffered
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not the folder of a simulated robot (robotsim make creates one): %w", dir, err)
	}
	return root, nil
}

type robot struct {
	cfg     Config
	root    *os.Root
	id      thing.ID
	species bodysim.Species
	body    bodysim.Body

	reboot chan string // why; one slot
	truth  *truth      // nil: the body is nowhere

	mu    sync.Mutex
	state State
}

// boot runs the robot from power on to power off.
func (r *robot) boot(ctx context.Context) error {
	// As the original does on its way down, while the marker is still there.
	if _, err := wipe.Resume(wipe.Config{Root: r.root, Log: r.cfg.Log}); err != nil {
		return err
	}
	if err := emptyRun(r.root); err != nil {
		return err
	}
	select {
	case <-r.reboot: // this is it
	default:
	}
	r.mu.Lock()
	r.state.Boots++
	r.state.Boot = bodysim.Undecided
	boots := uint64(r.state.Boots)
	r.mu.Unlock()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	power := make(chan error, 1) // the body speaks once
	on, lost := context.WithCancel(ctx)
	go func() {
		defer lost()
		power <- r.body.On(ctx)
	}()
	boot, off, err := r.body.Ready(on, boots)
	if err != nil || off {
		return <-power
	}
	r.booted(boot)
	sys, logs, err := r.load(boot)
	if err != nil {
		return err
	}
	if sys.DiesOn(r.id) {
		r.cfg.Log.WarnContext(ctx, "programs of the release exit at once", "release", sys.Version)
		cancel()
		<-power
		return nil // and boots again, as its watchdog would
	}
	select {
	case <-ctx.Done():
		return <-power
	case <-time.After(r.cfg.BootDelay):
	}
	head, headCancel := context.WithCancel(context.WithoutCancel(ctx))
	defer headCancel()
	failed, wait := r.startHead(head, logs)
	var end error
	select {
	case end = <-power:
		// No current, no goodbye: the head is killed at once.
		r.kill()
	case end = <-failed:
	case why := <-r.reboot:
		r.cfg.Log.InfoContext(ctx, "rebooting", "reason", why)
	case <-ctx.Done():
	}
	headCancel()
	wait()
	cancel()
	if end == nil {
		end = <-power
		if errors.Is(end, context.Canceled) {
			end = nil
		}
	}
	return end
}

// startHead starts all that runs in the head until ctx ends. failed says what ended by itself; wait waits for the ends.
func (r *robot) startHead(ctx context.Context, logs string) (failed chan error, wait func()) {
	failed = make(chan error, 4) // one each
	var wg sync.WaitGroup
	if r.cfg.OnCode != nil {
		wg.Go(func() { watchShown(ctx, r.root, claim.CodeFile, r.cfg.OnCode) })
	}
	if r.cfg.OnFault != nil {
		wg.Go(func() { watchShown(ctx, r.root, faults.ShowingFile, r.cfg.OnFault) })
	}
	run := func(f func() error) {
		wg.Go(func() {
			if err := f(); err != nil {
				failed <- err
			}
		})
	}
	run(func() error { return r.body.Serve(ctx) })
	run(func() error { return simulator.Serve(ctx, r.root, beside{r.body, r.truth}, r.cfg.Log) })
	restart := r.restartPolicy()
	programs := []proc.Spec{r.spec("robotd", logs, restart, r.flags()...), r.spec("agentd", logs, restart)}
	if _, err := os.Stat(filepath.Join(r.cfg.Bin, "mindd")); err == nil { // a robot lives without its character
		programs = append(programs, r.spec("mindd", logs, restart))
	}
	for _, s := range programs {
		run(func() error { return proc.Keep(ctx, r.cfg.Log, s) })
	}
	return failed, wg.Wait
}

// flags returns those of robotd for the robot's species.
func (r *robot) flags() []string {
	flags := []string{"-body", r.species.Word()}
	if r.species.Flags != nil {
		flags = append(flags, r.species.Flags(r.cfg.Root)...)
	}
	return flags
}

// begun notes that the robot reckons from where it is.
func (r *robot) begun() {
	if r.truth != nil {
		r.truth.begin()
	}
}

// load is the head's boot-loader and what mounts its file systems: it tells the kernel of a recovery boot, and
// returns what starts and where the logs go.
func (r *robot) load(k bodysim.Boot) (sys System, logs string, err error) {
	recovery := k == bodysim.Recovery
	if !recovery {
		if sys, recovery, err = LoadSlot(r.root); err != nil {
			return sys, "", err
		}
		if body, ok := r.body.(bodysim.Carded); ok && sys.Card != nil {
			if err := body.Exchange(string(sys.Version), *sys.Card); err != nil {
				return sys, "", fmt.Errorf("card of the release: %w", err)
			}
		}
	}
	if err := tellKernel(r.root, recovery); err != nil {
		return sys, "", err
	}
	logs = LogDir
	if recovery {
		logs = recoveryLogs
	}
	return sys, logs, r.root.MkdirAll(logs, 0o755)
}

// tellKernel prepends anki.unbrick=1 to the kernel's command line for a recovery boot (VEC-BOOT-03), and takes it off for any other.
func tellKernel(root *os.Root, recovery bool) error {
	b, err := root.ReadFile(bootparam.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("kernel's command line: %w", err)
	}
	words := slices.DeleteFunc(strings.Fields(string(b)), func(w string) bool { return bootparam.Parse(w).Recovery })
	if recovery {
		words = slices.Insert(words, 0, bootparam.Unbrick+"=1")
	} else if len(b) == 0 {
		return nil
	}
	return robotfs.WriteFile(root, bootparam.File, []byte(strings.Join(words, " ")+"\n"), 0o644)
}

// environ returns the environment of a robot's programs: many robots share a machine, so each serves programs at a port of its own, to this machine
// alone, unless the user says otherwise.
func environ() []string {
	const gateway = "KENNEL_GATEWAY"
	if os.Getenv(gateway) != "" {
		return nil
	}
	return append(os.Environ(), gateway+"=127.0.0.1:0")
}

// spec describes one of the robot's processes.
func (r *robot) spec(name, logs string, restart proc.Restart, args ...string) proc.Spec {
	args = append([]string{"-root", r.cfg.Root, "-log-level", r.cfg.LogLevel}, args...)
	return proc.Spec{
		Name: name, Path: filepath.Join(r.cfg.Bin, name), Args: args, Env: environ(), LogFile: filepath.Join(r.cfg.Root, logs, name+".log"), Restart: restart,
		StopTimeout: 5 * time.Second,
		OnStart: func(pid int) {
			if name == "robotd" {
				r.begun()
			}
			r.note(name, pid)
		},
		OnExit: func(e proc.Exit) {
			r.note(name, 0)
			if e.Code != 0 && !e.Asked {
				r.post(name)
			}
			if name == "robotd" && e.Code != 0 {
				r.halt(args)
			}
			why := ""
			switch {
			case name != "agentd":
			case wipe.Requested(r.root):
				why = "the user data are to be cleared"
			case nightly.Asked(r.root):
				why = "it is night"
			case nightly.Installed(r.root):
				why = "an update is installed"
			}
			if why == "" {
				return
			}
			select {
			case r.reboot <- why:
			default: // said already
			}
		},
		OnGiveUp: func(n int) {
			r.cfg.Log.Warn("process keeps exiting; restarts paced (VEC-FLT-07)", "process", name, "restarts", n)
		},
	}
}

// post posts the fault of a process that ended by itself and not well, as its unit on a robot does (VEC-WDOG-04).
func (r *robot) post(name string) {
	code, ok := map[string]faultcode.Code{"robotd": faultcode.RobotFailed, "agentd": faultcode.CloudFailed}[name]
	if !ok || faults.Pending(r.root) {
		return
	}
	if err := faults.Post(r.root, code); err != nil {
		r.cfg.Log.Warn("fault not posted", "process", name, "fault", int(code), logging.Err, err)
	}
}

// haltTimeout is how long robotd -halt may take on a busy machine.
const haltTimeout = 2 * time.Second

// halt ends what a robotd that died left running, as its unit on a robot does.
func (r *robot) halt(args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), haltTimeout)
	defer cancel()
	args = append(slices.Clone(args), "-halt")
	if err := proc.Once(ctx, proc.Spec{Name: "robotd -halt", Path: filepath.Join(r.cfg.Bin, "robotd"), Args: args}); err != nil {
		r.cfg.Log.Warn("body not halted after robotd exited", logging.Err, err)
	}
}

// restartPolicy is the robot's own (VEC-FLT-07), with what can be read of it: no robot stays down for a typing mistake.
func (r *robot) restartPolicy() proc.Restart {
	c, err := platform.LoadFaultHandler(r.root, r.cfg.Getenv)
	if err != nil {
		r.cfg.Log.Warn("restart limits not read", logging.Err, err)
	}
	return proc.Restart{Limit: c.RestartLimit, Window: c.LimitWindow}
}

// booted records what the head is to start.
func (r *robot) booted(k bodysim.Boot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Boot = k
	r.write()
}

// note records a process's pid for those who watch.
func (r *robot) note(name string, pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pid == 0 {
		delete(r.state.Pids, name)
	} else {
		r.state.Pids[name] = pid
	}
	r.write()
}

// write writes the state; the lock is held.
func (r *robot) write() {
	b, err := json.Marshal(r.state)
	if err == nil {
		err = robotfs.WriteFile(r.root, StateFile, b, 0o644)
	}
	if err != nil {
		r.cfg.Log.Error("cannot write "+StateFile, logging.Err, err)
	}
}

// lookEvery is how often a place where something is shown is looked at: eyes that are quick enough.
const lookEvery = 200 * time.Millisecond

// watchShown tells what a file shows whenever it changes, until ctx ends.
func watchShown(ctx context.Context, root *os.Root, file string, tell func(string)) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	last := ""
	for {
		b, err := robotfs.ReadFile(root, file)
		if err != nil {
			b = nil // none is shown
		}
		if code := strings.TrimSpace(string(b)); code != last {
			last = code
			tell(code)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// kill ends the head's processes at once.
func (r *robot) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, pid := range r.state.Pids {
		if p, err := os.FindProcess(pid); err == nil && name != "robotsim" {
			_ = p.Kill() // it may be gone already
		}
	}
}

// emptyRun clears run/, a memory file system on the original: it is empty after every boot.
func emptyRun(root *os.Root) error {
	if err := root.RemoveAll("run"); err != nil {
		return fmt.Errorf("empty run/: %w", err)
	}
	return root.MkdirAll("run", 0o755)
}
