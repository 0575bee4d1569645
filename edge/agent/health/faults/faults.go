// Package faults handles the numbered faults of a robot's services (VEC-WDOG-04, VEC-BOOT-15, VEC-FLT-03 to 09, 11 to 13, part of VEC-FLT-10).
//
//	agentd's own ─────────► Raise ──┐                 ┌─► event robot.fault_code, once
//	robotd's, by its link ► Report ─┤                 ├─► log captured, and queued for upload
//	silence of a service ─► Beat ───┼─► open faults ──┼─► run/fault_code.showing: the one that people see
//	run/fault_code (FIFO) ► Listen ─┘                 └─► services stopped, and started again
//
// A fault is open until it is cleared: its service says that it has ended, or speaks again, or a program deletes the files (Clear, the original's
// fault-code-clear). An open fault is handled once, however often it is raised. Steps and files are the original's (VEC-FLT-13). Where the original
// is silent, this package decides:
//
//   - Faults are handled one after the other. run/fault_code.pending exists while one is handled. A code posted to the FIFO meanwhile is dropped,
//     as the original's second handler exits early (VEC-FLT-05). A fault that this process raises itself waits for its turn.
//   - Nothing is stopped unless ON_FAULT_RESTART says so: by default a robot with a bad sensor or without a certificate does what it still can.
//   - Which services a fault stops is the table of faultcode.Code.Stops (VEC-FLT-06): for 800 to 899 and 980 to 999 all that the handler watches,
//     so that their check at the start is repeated; for 910 to 929 the one that the code names; for others none. All that were stopped are
//     started again, which counts as one restart.
//   - Past the limit the services stay stopped. Without robotd the body hears nothing, and cuts the power after 200 frames
//     (VEC-WDOG-01, VEC-FLT-08). No message asks for that, and none prevents it.
//   - The trace of ON_FAULT_UPLOAD_TRACE is of agentd itself, not of the kernel (VEC-DGN-08).
//   - When the shown fault is cleared and others are open, the oldest of them is shown.
package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"kennel/edge/body/monoclock"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/edge/faultcode"
	"kennel/infra/api/events"
	"kennel/infra/api/status"
	"kennel/infra/logging"
	"kennel/infra/wake"
)

// Files below the robot's root, as on the original; run/ is empty after a boot.
const (
	PendingFile = "run/fault_code.pending" // there while a fault is handled
	ShowingFile = "run/fault_code.showing" // the three digits that are shown

	byFile      = "run/fault_code.service"   // whose fault is shown; our own, for an agentd that restarts
	countFile   = "run/fault_restart_count"  // restarts in the window
	restartFile = "run/fault_restart_uptime" // when the last one was, in seconds since the system's start
)

// Heartbeat is how often a service is expected to speak (VEC-WDOG-05); own default, as are the following.
const (
	Heartbeat  = time.Second
	HungAfter  = 10 * time.Second // of silence (VEC-WDOG-05)
	StartsIn   = 30 * time.Second // until a service's first word: a robot of the original needs 32 s from power to play (seed line 2258)
	mostPosted = 32               // faults that are open because a program wrote to the FIFO
	mostTold   = 8                // faults in words: a status has room for 32 problems
)

// Fault is one numbered fault.
type Fault struct {
	Code    faultcode.Code // 1 to 999
	Service string         // whose it is; "": of the service that the code names, if it does
	Err     error          // what happened
	Told    bool           // another program has recorded its event
}

// String is the fault in words, for people.
func (f Fault) String() string {
	err := f.Err
	if faultcode.Of(err) == 0 {
		err = faultcode.Wrap(f.Code, err)
	}
	return fmt.Sprintf("%v (%s)", err, f.Code.Text())
}

// Service is one whose silence is a fault (VEC-WDOG-05).
type Service struct {
	Name    string
	Failed  faultcode.Code // it did not start, or ended, as its supervisor posts it
	Hung    faultcode.Code // it hangs; may be the same
	Silence time.Duration  // after which it hangs, in whole heartbeats; 0: HungAfter
	Starts  time.Duration  // time until its first beat; 0: StartsIn
}

// Services stops and starts the robot's services. Both are called by one goroutine, and end with ctx.
type Services interface {
	// Stop ends a service: politely, and by force after patience. A service that hangs leaves a record of why it does. One that does not run
	// is stopped.
	Stop(ctx context.Context, service string, hangs bool, patience time.Duration) error
	// Start starts it, or makes sure that its supervisor does.
	Start(ctx context.Context, service string) error
}

// Config says what to do about faults. Root, Emit and Log are required.
type Config struct {
	Root    *os.Root
	Handler platform.FaultHandler
	Logs    platform.LogUploader  // where a captured log waits for its upload
	Allowed func() bool           // the owner allows that logs leave the robot (VEC-LOG-08); nil: not
	Trace   func(io.Writer) error // writes the trace of the last seconds; nil: there is none
	Stay    bool                  // a development robot: its logs stay where they are captured
	Watched []Service
	// Own is the fault that the supervisor posts when the handler's own program exits. It is reported and shown, and ends when the program
	// runs again. 0: no such fault.
	Own      faultcode.Code
	Services Services // nil: nothing is ever stopped
	Emit     func(events.Event)
	Changed  func()               // asks for a status soon; may be nil. Like Emit it must not block
	Now      func() time.Time     // for names of logs; nil: time.Now
	Uptime   func() time.Duration // since the system's start; nil: its monotonic clock
	Log      *slog.Logger
}

// Handler is safe for concurrent use; Run and Listen are each called once at a time.
type Handler struct {
	cfg   Config
	wake  wake.Signal    // one slot
	busy  atomic.Bool    // a fault is handled
	bad   rate.Sometimes // limits log lines about refused lines
	dark  rate.Sometimes // limits log lines about display failures
	badly atomic.Uint64  // lines that were refused

	mu      sync.Mutex
	open    []*openFault // oldest first
	shown   faultcode.Code
	written faultcode.Code // to ShowingFile
	pulses  map[string]*pulse
}

// openFault is a fault that is not cleared.
type openFault struct {
	Fault
	reported bool // by Report
	posted   bool
	handled  bool   // or being handled
	note     string // the outcome, for people
}

// pulse counts the heartbeats that a service missed. It counts its own ticks instead of measuring time, so that no service seems silent while this
// process got no processor time or slept with its robot.
type pulse struct {
	Service
	missed int
	spoke  bool // at least once
	ended  int  // as often as its Failed was posted
}

// New returns a handler that does nothing until Run. A fault that an earlier handler has shown is open and counts as handled.
func New(cfg Config) *Handler {
	if cfg.Allowed == nil {
		cfg.Allowed = func() bool { return false }
	}
	if cfg.Changed == nil {
		cfg.Changed = func() {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Uptime == nil {
		cfg.Uptime = monoclock.Now
	}
	h := &Handler{
		cfg: cfg, wake: wake.New(), bad: rate.Sometimes{First: 3, Interval: time.Minute},
		dark: rate.Sometimes{First: 1, Interval: time.Minute}, pulses: map[string]*pulse{},
	}
	for _, s := range cfg.Watched {
		if s.Silence == 0 {
			s.Silence = HungAfter
		}
		if s.Starts == 0 {
			s.Starts = StartsIn
		}
		h.pulses[s.Name] = &pulse{Service: s}
	}
	if code, err := Showing(cfg.Root); err != nil {
		cfg.Log.Warn("displayed fault unreadable; assuming none", logging.Err, err)
	} else if code != 0 {
		by, _ := robotfs.ReadFile(cfg.Root, byFile) // "": not known
		service := strings.TrimSpace(string(by))
		h.shown, h.written = code, code
		h.open = append(h.open, &openFault{
			handled: true, reported: service != "",
			Fault: Fault{Code: code, Service: service, Told: true, Err: errors.New("displayed before agentd started")},
		})
	}
	return h
}

// Raise adds a fault, unless one with its code is open. It does not block.
func (h *Handler) Raise(f Fault) { h.raise(&openFault{Fault: f}) }

func (h *Handler) raise(s *openFault) {
	if s.Code < 1 || s.Code > 999 {
		h.cfg.Log.Error("fault not displayable", "fault", int(s.Code), "service", s.Service,
			logging.Err, fmt.Errorf("its code is %d: want 1 to 999", int(s.Code)))
		return
	}
	if s.Err == nil {
		s.Err = errors.New("no details")
	}
	h.mu.Lock()
	if old := h.find(s.Code); old != nil {
		if s.reported { // then its end will be, too
			old.reported, old.Service = true, s.Service
		}
		h.mu.Unlock()
		return
	}
	if s.posted {
		n := 0
		for _, o := range h.open {
			if o.posted {
				n++
			}
		}
		if n >= mostPosted {
			h.mu.Unlock()
			h.refused(fmt.Errorf("fault %v: already %d posted faults open", s.Code, n))
			return
		}
	}
	h.open = append(h.open, s)
	h.mu.Unlock()
	h.cfg.Log.Error("fault", "fault", int(s.Code), "service", s.Service, "text", s.Code.Text(), logging.Err, s.Err)
	if !s.Told {
		h.cfg.Emit(events.Event{
			Source: "agentd", Level: events.Warning, Name: "robot.fault_code", I1: events.Num(int64(s.Code)), S1: s.Code.Text(),
			S2: s.Service,
		})
	}
	h.news()
}

// Report takes the current fault of a service that has one at a time and records its own events; 0: it has none. It does not block.
func (h *Handler) Report(service string, code faultcode.Code) {
	h.mu.Lock()
	old := ""
	before := len(h.open)
	h.open = slices.DeleteFunc(h.open, func(s *openFault) bool {
		gone := s.reported && s.Service == service && s.Code != code
		if gone {
			old = s.Code.String()
		}
		return gone
	})
	changed := len(h.open) != before
	h.mu.Unlock()
	if changed {
		h.cfg.Log.Info("fault ended", "fault", old, "service", service)
		h.news()
	}
	if code != 0 {
		h.raise(&openFault{reported: true, Fault: Fault{Code: code, Service: service, Told: true, Err: fmt.Errorf("reported by %s", service)}})
	}
}

// Over clears the fault of that code, from any source.
func (h *Handler) Over(code faultcode.Code) {
	h.mu.Lock()
	before := len(h.open)
	h.open = slices.DeleteFunc(h.open, func(s *openFault) bool { return s.Code == code })
	changed := len(h.open) != before
	h.mu.Unlock()
	if changed {
		h.cfg.Log.Info("fault ended", "fault", code.String())
		h.news()
	}
}

// Beat says that a watched service lives: that it ended or hung is over.
func (h *Handler) Beat(service string) {
	h.mu.Lock()
	p := h.pulses[service]
	if p == nil {
		h.mu.Unlock()
		return
	}
	p.missed, p.spoke = 0, true
	failed, hung := h.find(p.Failed) != nil, h.find(p.Hung) != nil
	h.mu.Unlock()
	if failed {
		h.Over(p.Failed)
	}
	if hung {
		h.Over(p.Hung)
	}
}

// Shown returns the code that the robot shows; 0: none.
func (h *Handler) Shown() faultcode.Code {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shown
}

// Problems returns the open faults, oldest first; past a bound it says only how many more there are.
func (h *Handler) Problems() []status.Problem {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []status.Problem
	more := 0
	for _, s := range h.open {
		if len(out) == mostTold {
			more++
			continue
		}
		words := s.String()
		if s.note != "" {
			words += "; " + s.note
		}
		if s.Code == h.shown {
			words += "; the robot shows it"
		}
		out = append(out, status.Problem{Kind: status.KindFault, Code: strconv.Itoa(int(s.Code)), Text: words})
	}
	if more > 0 {
		out = append(out, status.Problem{Kind: status.KindFault, Text: fmt.Sprintf("faults: %d more stand", more)})
	}
	return out
}

// Ends returns how often the end of a watched service was posted.
func (h *Handler) Ends(service string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.pulses[service]; p != nil {
		return p.ended
	}
	return 0
}

// Stopping returns the oldest open fault of a service that ended or hangs, other than the handler's own program; 0: there is none.
func (h *Handler) Stopping() faultcode.Code {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.open {
		if processes[s.Code] != "" && s.Code != h.cfg.Own {
			return s.Code
		}
	}
	return 0
}

// find returns the open fault of that code, or nil; the lock is held.
func (h *Handler) find(code faultcode.Code) *openFault {
	for _, s := range h.open {
		if s.Code == code {
			return s
		}
	}
	return nil
}

func (h *Handler) isOpen(code faultcode.Code) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.find(code) != nil
}

// news wakes Run and asks for a status.
func (h *Handler) news() {
	h.wake.Set()
	h.cfg.Changed()
}

// Run handles open faults and watches services until ctx ends.
func (h *Handler) Run(ctx context.Context) error {
	// Stale marker: the agentd that was handling this fault has exited.
	h.remove(PendingFile)
	tick := time.NewTicker(Heartbeat)
	defer tick.Stop()
	for {
		for s := h.next(); s != nil && ctx.Err() == nil; s = h.next() {
			h.handle(ctx, s)
		}
		h.show()
		select {
		case <-ctx.Done():
			return nil
		case <-h.wake:
		case <-tick.C:
			h.look()
		}
	}
}

// next returns the oldest fault that is not handled, and marks it as handled; nil if there is none.
func (h *Handler) next() *openFault {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.open {
		if !s.handled {
			s.handled = true
			return s
		}
	}
	return nil
}

// look counts the missing heartbeats, and notices when another program cleared the shown fault.
func (h *Handler) look() {
	h.mu.Lock()
	shown, written := h.shown, h.written
	h.mu.Unlock()
	if shown != 0 && shown == written {
		if _, err := h.cfg.Root.Lstat(ShowingFile); errors.Is(err, fs.ErrNotExist) {
			h.mu.Lock()
			h.open, h.shown, h.written = nil, 0, 0
			h.mu.Unlock()
			h.remove(byFile)
			h.cfg.Log.Info("faults cleared by another program", "shown", shown.String())
			h.cfg.Changed()
		}
	}
	if h.isOpen(h.cfg.Own) {
		h.Over(h.cfg.Own)
	}
	var silent []Fault
	h.mu.Lock()
	for _, s := range h.cfg.Watched {
		p := h.pulses[s.Name]
		p.missed++
		f := Fault{Code: p.Hung, Service: p.Name, Err: fmt.Errorf("no sign of life from %s for %v", p.Name, p.Silence)}
		most := p.Silence
		if !p.spoke {
			f.Code, f.Err = p.Failed, fmt.Errorf("%s did not start: no sign of life for %v", p.Name, p.Starts)
			most = p.Starts
		}
		if time.Duration(p.missed)*Heartbeat >= most && h.find(p.Failed) == nil && h.find(p.Hung) == nil {
			silent = append(silent, f)
		}
	}
	h.mu.Unlock()
	for _, f := range silent {
		h.Raise(f)
	}
}

// handle handles one fault, with the steps of VEC-FLT-13 in their order.
func (h *Handler) handle(ctx context.Context, s *openFault) {
	h.busy.Store(true)
	defer h.busy.Store(false)
	log := h.cfg.Log.With("fault", int(s.Code))
	if err := robotfs.WriteFile(h.cfg.Root, PendingFile, nil, 0o644); err != nil {
		log.Warn("fault marker not written", logging.Err, err)
	}
	defer h.remove(PendingFile)
	report, err := h.capture(s.Code)
	if err != nil {
		log.Warn("fault log not captured", logging.Err, err)
	}
	trace, err := h.captureTrace(s.Code)
	if err != nil {
		log.Warn("fault trace not captured", logging.Err, err)
	}
	services := h.servicesOf(s)
	again := false
	if len(services) > 0 && h.isOpen(s.Code) { // else the fault is over, and must stop nothing
		h.stop(ctx, log, services, s.Code.Stops() == faultcode.OneService)
		again = h.mayRestart(log, s)
	}
	h.show()
	for _, file := range []string{report, trace} {
		if err := h.queue(file); err != nil {
			log.Warn("fault report not queued for upload", "file", file, logging.Err, err)
		}
	}
	if !again {
		return
	}
	log.Warn("restarting services", "services", services, "after", h.cfg.Handler.RestartAfter)
	select {
	case <-ctx.Done():
		return
	case <-time.After(h.cfg.Handler.RestartAfter):
	}
	if s.Code.Stops() != faultcode.EveryService && !h.isOpen(s.Code) {
		log.Info("service recovered by itself", "services", services)
		return
	}
	for _, service := range services {
		if err := h.cfg.Services.Start(ctx, service); err != nil && ctx.Err() == nil {
			log.Error("service not restarted", "service", service, logging.Err, err)
			h.noteOf(s, "not started again: "+err.Error())
		}
	}
}

// stop stops services one after the other.
func (h *Handler) stop(ctx context.Context, log *slog.Logger, services []string, hang bool) {
	for _, service := range services {
		log.Warn("stopping a service because of the fault", "service", service, "patience", h.cfg.Handler.SigtermAfter)
		if err := h.cfg.Services.Stop(ctx, service, hang, h.cfg.Handler.SigtermAfter); err != nil && ctx.Err() == nil {
			log.Error("service not stopped", "service", service, logging.Err, err)
		}
	}
}

// processes are the faults of services that ended or hang, and their services.
var processes = map[faultcode.Code]string{
	faultcode.AnimFailed: "vic-anim", faultcode.SwitchboardFailed: "vic-switchboard", faultcode.EngineFailed: "vic-engine",
	faultcode.EngineHung:  "vic-engine",
	faultcode.RobotFailed: "vic-robot", faultcode.AnimHung: "vic-anim", faultcode.GatewayFailed: "vic-gateway", faultcode.CloudFailed: "vic-cloud",
	faultcode.CameraHangs: "mm-anki-camera", faultcode.CameraSilent: "mm-anki-camera",
}

// servicesOf returns the services to stop because of a fault (VEC-FLT-06); none if nothing may be restarted.
func (h *Handler) servicesOf(s *openFault) []string {
	if !h.cfg.Handler.Restart || h.cfg.Services == nil || s.Code == h.cfg.Own {
		return nil
	}
	for _, p := range h.cfg.Watched {
		if p.Failed == s.Code || p.Hung == s.Code {
			return []string{p.Name}
		}
	}
	var stopped []string
	reach := s.Code.Stops()
	if reach == faultcode.EveryService {
		for _, p := range h.cfg.Watched {
			stopped = append(stopped, p.Name)
		}
	}
	if named := processes[s.Code]; named != "" && reach != faultcode.NoService {
		stopped = append(stopped, named)
	}
	return stopped
}

// mayRestart counts a restart, if the limit allows one.
func (h *Handler) mayRestart(log *slog.Logger, s *openFault) bool {
	c := &h.cfg.Handler
	now := h.cfg.Uptime()
	count, known := h.number(countFile)
	if !known {
		count = c.RestartCount
	}
	if last, known := h.number(restartFile); known {
		if since := now - time.Duration(last)*time.Second; since < 0 || since > c.LimitWindow {
			count = 0
		}
	}
	if count >= c.RestartLimit {
		log.Error("restart limit reached; services stay down and the robot may power off",
			"restarts", count, "limit", c.RestartLimit, "window", c.LimitWindow)
		h.noteOf(s, fmt.Sprintf("not started again: %d restarts, at most %d in %v", count, c.RestartLimit, c.LimitWindow))
		return false
	}
	err := errors.Join(robotfs.WriteFile(h.cfg.Root, countFile, fmt.Appendln(nil, count+1), 0o644),
		robotfs.WriteFile(h.cfg.Root, restartFile, fmt.Appendln(nil, int64(now/time.Second)), 0o644))
	if err != nil { // without a count there is no limit
		log.Error("restart not recorded; service stays down", logging.Err, err)
		h.noteOf(s, "not started again: the restart cannot be counted")
		return false
	}
	return true
}

// number reads a number of at least 0 from a file; false: there is none.
func (h *Handler) number(name string) (int, bool) {
	b, err := robotfs.ReadFile(h.cfg.Root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false
	}
	n := 0
	if err == nil {
		n, err = strconv.Atoi(strings.TrimSpace(string(b)))
	}
	if err != nil || n < 0 {
		h.cfg.Log.Warn("parameter file is not a number of at least 0; ignored", "file", name, logging.Err, err)
		return 0, false
	}
	return n, true
}

func (h *Handler) noteOf(s *openFault, note string) {
	h.mu.Lock()
	s.note = note
	h.mu.Unlock()
	h.cfg.Changed()
}

// show shows the oldest open fault, unless an open one is shown already: later ones do not replace it (VEC-FLT-06). A failed write is tried again.
// Only Run's goroutine calls it.
func (h *Handler) show() {
	h.mu.Lock()
	want := h.find(h.shown)
	if want == nil && len(h.open) > 0 && h.open[0].handled {
		want = h.open[0]
	}
	was, by := h.shown, ""
	h.shown = 0
	if want != nil {
		h.shown = want.Code
		if want.reported {
			by = want.Service
		}
	}
	is, written := h.shown, h.written
	h.mu.Unlock()
	if is != was {
		h.cfg.Changed()
	}
	if is == written {
		return
	}
	var err error
	if is == 0 {
		err = Clear(h.cfg.Root)
	} else {
		err = errors.Join(robotfs.WriteFile(h.cfg.Root, byFile, []byte(by+"\n"), 0o644),
			robotfs.WriteFile(h.cfg.Root, ShowingFile, []byte(is.String()+"\n"), 0o644))
	}
	if err != nil {
		h.dark.Do(func() { h.cfg.Log.Error("displayed fault is out of date", "fault", int(is), logging.Err, err) })
		return
	}
	h.mu.Lock()
	h.written = is
	h.mu.Unlock()
}

func (h *Handler) remove(name string) {
	if err := h.cfg.Root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.cfg.Log.Warn("fault file not removed", logging.Err, err)
	}
}

// Showing returns the code that the robot below root shows; 0: none.
func Showing(root *os.Root) (faultcode.Code, error) {
	info, err := root.Lstat(ShowingFile)
	if err == nil && !info.Mode().IsRegular() { // reading it might take for ever
		err = errors.New("want a plain file")
	}
	var b []byte
	if err == nil {
		b, err = robotfs.ReadFile(root, ShowingFile)
	}
	if errors.Is(err, fs.ErrNotExist) { // also one that ended since Lstat
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", ShowingFile, err)
	}
	code, err := Parse([]byte(strings.TrimSpace(string(b))))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", ShowingFile, err)
	}
	return code, nil
}

// Show shows the fault that keeps the handler of the robot below root from running, unless another one is shown.
func Show(root *os.Root, code faultcode.Code) error {
	if _, err := root.Lstat(ShowingFile); err == nil {
		return nil
	}
	return robotfs.WriteFile(root, ShowingFile, []byte(code.String()+"\n"), 0o644)
}

// Clear deletes the files of the faults of the robot below root, so that a new one can be shown (VEC-FLT-11). A running Handler forgets its
// open faults.
func Clear(root *os.Root) error {
	var all error
	for _, name := range []string{PendingFile, ShowingFile, byFile} {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	return all
}
