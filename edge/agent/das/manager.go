package das

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/api/status"
	"kennel/infra/thing"
	"kennel/infra/wake"
)

// Source is the source of the event manager's own events, as in the original.
const Source = "vic-dasmgr"

// Config holds the robot's identity and the pace of sending. Zero numbers choose our own defaults (the source describes another cloud).
type Config struct {
	Root         *os.Root
	Thing        thing.ID
	BootID       string // new on every boot (VEC-DAS-03)
	RobotVersion string
	Uptime       func() time.Duration // since boot
	Synced       func() bool          // whether the clock was set from the network (VEC-BOOT-14); nil: always
	Now          func() time.Time     // the robot's clock, for the times of events; nil: the system's
	Log          *slog.Logger
	Mirror       func(*events.Event) // sees each recorded event, as the text log does (VEC-LOG-09); nil: nothing does

	FlushInterval time.Duration // between batches while there is something to send; 2 s
	SyncInterval  time.Duration // within which an event is durable; 500 ms
	Window        int           // batches on their way; 3
	BatchEvents   int           // 2,000
	BatchBytes    int           // on the wire; 64 KiB

	// Frugal closes the event file between writes: for many robots in one process, whose file descriptors are few.
	Frugal bool

	step func(string) // see spool
}

// Errors of Emit.
var (
	ErrOptedOut = errors.New("the owner does not allow data collection")
	ErrFull     = errors.New("disk too slow for events")
)

// maxPending bounds events in memory that wait for the disk, in bytes.
const maxPending = 1 << 20

// Manager is the robot's event manager. Safe for concurrent use.
type Manager struct {
	conf  Config
	file  FileConfig
	log   *slog.Logger
	spool *spool
	jail  *quarantine
	acks  chan ack.Ack // an ack that finds it full is lost; the batch is resent
	kick  wake.Signal  // the writer has work
	flush wake.Signal  // the uploader is to send now

	disk sync.Mutex // held from taking events out of memory until they are in a file, and while consent changes; before mu

	mu       sync.Mutex
	pend     []byte // lines that wait for the disk
	pendN    int
	pendLast uint64
	waiting  int // events in memory and on disk
	urgent   bool
	next     uint64 // seq of the next event
	emitted  uint64 // events given to the writer since start
	durable  uint64 // of them, how many are on disk for good
	progress chan struct{}
	lost     uint64 // events dropped because memory was full
	allowed  bool
	session  session
	kept     session // in the files
}

// New recovers the spool and returns a Manager that is ready for Emit; Run brings events to disk and to the cloud. A damaged DASConfig.json
// is logged and replaced by the defaults.
func New(c Config) (*Manager, error) {
	if c.Root == nil || c.Uptime == nil || c.Log == nil {
		return nil, errors.New("event manager: want Root, Uptime and Log")
	}
	if err := events.CheckBootID(c.BootID); err != nil {
		return nil, fmt.Errorf("event manager: %w", err)
	}
	c.FlushInterval = cmp.Or(c.FlushInterval, 2*time.Second)
	c.SyncInterval = cmp.Or(c.SyncInterval, 500*time.Millisecond)
	c.Window = cmp.Or(c.Window, 3)
	c.BatchEvents = min(cmp.Or(c.BatchEvents, 2000), events.MaxEvents)
	c.BatchBytes = min(cmp.Or(c.BatchBytes, 64<<10), events.MaxWire)
	if c.Synced == nil {
		c.Synced = func() bool { return true }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.step == nil {
		c.step = func(string) {}
	}
	file, err := LoadFileConfig(c.Root)
	if err != nil {
		c.Log.Warn("event configuration invalid; using defaults", "err", err)
	}
	m := &Manager{
		conf: c, file: file, log: c.Log,
		acks: make(chan ack.Ack, 16), // a few windows
		kick: wake.New(), flush: wake.New(), progress: make(chan struct{}),
	}
	// Beyond any number given before in this boot, as long as it had fewer than a thousand events in each millisecond.
	fallback := uint64(max(0, c.Uptime().Milliseconds())) * 1000
	if m.spool, err = openSpool(c.Root, file, c.BootID, c.Thing.Serial(), fallback, c.step); err != nil {
		return nil, err
	}
	m.spool.frugal = c.Frugal
	if m.jail, err = openQuarantine(c.Root); err != nil {
		return nil, err
	}
	g := loadGlobals(c.Root, file.PersistentGlobals)
	m.allowed, m.session = g.allowed(), m.loadSession(g.profileID())
	m.kept = m.session
	if !m.allowed { // the last run may have died between the no and the throwing away
		if err := m.discard(); err != nil {
			return nil, err
		}
	}
	if err := flag(c.Root, m.allowed); err != nil {
		return nil, fmt.Errorf("event manager: %w", err)
	}
	m.next, m.waiting = m.spool.nextSeq(), int(m.spool.stats().events)
	return m, nil
}

// Emit records e and returns its number. It does not wait for the disk; e is durable within SyncInterval while Run runs. The Manager fills
// in robot, time and session. A name that is not module.name is an error; every other field is cut to fit.
func (m *Manager) Emit(e events.Event) (uint64, error) {
	seq, _, err := m.emit(e, false)
	return seq, err
}

// EmitDurable is Emit for important events: it returns when e is on disk for good, which a kill or power cut cannot undo.
func (m *Manager) EmitDurable(ctx context.Context, e events.Event) (uint64, error) {
	seq, ticket, err := m.emit(e, true)
	if err != nil {
		return 0, err
	}
	for {
		m.mu.Lock()
		done, allowed, progress := m.durable >= ticket, m.allowed, m.progress
		m.mu.Unlock()
		switch {
		case done:
			return seq, nil
		case !allowed:
			return 0, ErrOptedOut
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return 0, fmt.Errorf("event %s is not yet on disk: %w", e.Name, ctx.Err())
		}
	}
}

// Log is Emit in one line: strings go to s1 to s4, numbers to i1 to i4; more than four are an error. Errors are logged.
func (m *Manager) Log(source, name string, texts []string, numbers ...int64) {
	e := events.Event{Source: source, Name: name}
	err := error(nil)
	if len(texts) > 4 || len(numbers) > 4 {
		err = fmt.Errorf("%d texts, %d numbers: want at most 4 of each", len(texts), len(numbers))
	} else {
		for i, s := range texts {
			*[]*string{&e.S1, &e.S2, &e.S3, &e.S4}[i] = s
		}
		for i, n := range numbers {
			*[]*events.Int{&e.I1, &e.I2, &e.I3, &e.I4}[i] = events.Num(n)
		}
		_, err = m.Emit(e)
	}
	if err != nil && !errors.Is(err, ErrOptedOut) {
		m.log.Warn("event not recorded", "event", name, "err", err)
	}
}

func (m *Manager) emit(e events.Event, urgent bool) (seq, ticket uint64, err error) {
	seq, ticket, now, err := m.record(&e, urgent)
	if now != nil {
		m.keepSession(*now)
	}
	if err == nil && m.conf.Mirror != nil {
		m.conf.Mirror(&e)
	}
	return seq, ticket, err
}

// record also returns the session if e changed it.
func (m *Manager) record(e *events.Event, urgent bool) (seq, ticket uint64, changed *session, err error) {
	foreign := e.BootID != "" // its sender gave it an identity, by which the cloud knows it again
	e.RobotID, e.BootID = m.conf.Thing.Serial(), cmp.Or(e.BootID, m.conf.BootID)
	e.RobotVersion = cmp.Or(e.RobotVersion, m.conf.RobotVersion)
	e.Unsynced = !m.conf.Synced()
	if e.TS == 0 {
		e.TS = m.conf.Now().UnixMilli()
	}
	if e.UptimeMS == 0 {
		e.UptimeMS = m.conf.Uptime().Milliseconds()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.session
	m.session.apply(e)
	if m.session != before {
		now := m.session
		changed = &now
	}
	if !m.allowed {
		return 0, 0, changed, ErrOptedOut
	}
	if !foreign {
		e.Seq = m.next
	}
	e.Fit()
	if err := e.Validate(); err != nil {
		return 0, 0, changed, err
	}
	if len(m.pend) > maxPending {
		m.lost++
		return 0, 0, changed, ErrFull
	}
	m.pend = append(events.AppendLine(m.pend, e), '\n')
	m.pendN++
	if !foreign {
		m.pendLast = e.Seq
		m.next++
	}
	m.urgent = m.urgent || urgent
	m.emitted++
	m.waiting++
	m.kick.Set()
	return e.Seq, m.emitted, changed, nil
}

// Flush sends the waiting events now, and resends unacknowledged batches: call it when a connection is up and subscribed.
func (m *Manager) Flush() { m.flush.Set() }

// HandleAck takes an acknowledgement from down/ack. It never blocks; acks of batches that are not ours are ignored.
func (m *Manager) HandleAck(a ack.Ack) {
	select {
	case m.acks <- a:
	default: // the batch will be resent, and acknowledged again
	}
}

// Backup writes everything to disk and moves it to backup_path, as far as its quota goes: before a reboot that empties storage_path.
func (m *Manager) Backup() error {
	if err := m.write(true); err != nil {
		return err
	}
	return m.spool.backup()
}

// Stats returns the numbers of waiting and lost events.
func (m *Manager) Stats() status.Spool {
	st := m.spool.stats()
	m.mu.Lock()
	defer m.mu.Unlock()
	return status.Spool{
		Events: uint64(m.waiting), Bytes: st.bytes + int64(len(m.pend)), Dropped: st.dropped + m.lost, Quarantined: m.jail.count(),
	}
}

// Emitted returns how many events were recorded since New.
func (m *Manager) Emitted() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.emitted
}

// less subtracts n events that were sent or dropped from the waiting ones.
func (m *Manager) less(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = max(0, m.waiting-n)
}

// AllowUpload reports whether the owner allows data collection.
func (m *Manager) AllowUpload() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.allowed
}

// SetAllowUpload follows the owner's DATA_COLLECTION (VEC-DAS-08): the answer is stored, AllowFile is created or removed, and a no discards all
// events that wait or are in quarantine. When it returns nil for a no, nothing is left and nothing new is recorded; at most a batch that was
// just being published may still reach the cloud, which refuses it.
func (m *Manager) SetAllowUpload(allow bool) error {
	m.disk.Lock()
	defer m.disk.Unlock()
	m.mu.Lock()
	changed := m.allowed != allow
	profile := m.session.profile
	if !allow {
		m.allowed = false
		m.pend, m.pendN = nil, 0
		m.announce() // wakes the callers that wait for durability
	}
	m.mu.Unlock()
	if err := loadGlobals(m.conf.Root, m.file.PersistentGlobals).save(m.conf.Root, m.file.PersistentGlobals, allow, profile); err != nil {
		return err
	}
	m.mu.Lock()
	m.allowed = allow // before AllowFile says so: what a program leaves as soon as it sees the file must not be deleted
	m.mu.Unlock()
	if err := flag(m.conf.Root, allow); err != nil {
		m.mu.Lock()
		m.allowed = false
		m.mu.Unlock()
		return err
	}
	if !allow {
		return m.discard()
	}
	if changed {
		m.Log(Source, "das.allow_upload", nil, 1) // i1: 1 allowed. A no has no event: nothing may be sent any longer
	}
	return nil
}

func (m *Manager) discard() error {
	n, err := m.spool.purge()
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.waiting = 0
	m.mu.Unlock()
	if n > 0 {
		m.log.Info("owner opted out; events discarded", "events", n)
	}
	m.flush.Set() // the uploader forgets its batches under way
	return m.jail.purge()
}

// announce wakes the callers of EmitDurable that wait. mu is held.
func (m *Manager) announce() {
	close(m.progress)
	m.progress = make(chan struct{})
}

// Run writes events to disk and sends them with publish to the cloud, until ctx ends; then it writes the events still in memory. publish
// sends one message on up/<name> and returns when the broker has it, or at once with an error when there is no connection. Run may be
// called again after it returned.
func (m *Manager) Run(ctx context.Context, publish func(ctx context.Context, name string, payload []byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var writerErr error
	wg.Go(func() {
		defer cancel()
		writerErr = guard(func() error { return m.writer(ctx) })
	})
	err := guard(func() error { return newUploader(m, publish).run(ctx) })
	cancel()
	wg.Wait()
	return errors.Join(err, writerErr)
}

// guard turns a panic into an error, so that the runner restarts the events and not the agent.
func guard(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("event manager panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return fn()
}

// retryWrite is how long the writer waits after the disk refused.
const retryWrite = time.Second

// writer moves events from memory to disk and syncs.
func (m *Manager) writer(ctx context.Context) error {
	timer := time.NewTimer(m.conf.SyncInterval)
	defer timer.Stop()
	synced := true
	m.kick.Set() // events from before Run
	for {
		select {
		case <-ctx.Done():
			return errors.Join(m.write(true), m.spool.close())
		case <-m.kick:
			if err := m.write(false); err != nil {
				m.log.Error("events not saved; retrying", "err", err)
				timer.Reset(retryWrite)
				synced = false
			} else if synced {
				timer.Reset(m.conf.SyncInterval)
				synced = false
			}
		case <-timer.C:
			if synced {
				continue
			}
			if err := m.write(true); err != nil {
				m.log.Error("events not saved; retrying", "err", err)
				timer.Reset(retryWrite)
				continue
			}
			synced = true
		}
	}
}

// write brings memory to disk, and syncs if asked to or if one of the events is urgent. On error the events stay in memory.
func (m *Manager) write(sync bool) error {
	m.disk.Lock()
	dropped, err := m.writeHeld(sync)
	m.disk.Unlock()
	if dropped > 0 {
		m.log.Warn("event quota reached; oldest events dropped", "events", dropped)
		m.Log(Source, "das.dropped", []string{"quota"}, int64(dropped), int64(m.Stats().Dropped)) // i1 now, i2 since boot
	}
	return err
}

func (m *Manager) writeHeld(sync bool) (dropped int, err error) {
	m.mu.Lock()
	lines, n, last, ticket := m.pend, m.pendN, m.pendLast, m.emitted
	sync = sync || m.urgent
	m.pend, m.pendN, m.urgent = nil, 0, false
	m.mu.Unlock()
	if n > 0 {
		dropped, err = m.spool.append(lines, n, last)
		m.less(dropped)
		if err != nil {
			m.mu.Lock()
			m.pend, m.pendN, m.urgent = append(lines, m.pend...), n+m.pendN, sync || m.urgent
			m.pendLast = max(m.pendLast, last)
			m.mu.Unlock()
			return dropped, err
		}
	}
	if !sync {
		return dropped, nil
	}
	if err := m.spool.sync(); err != nil {
		return dropped, err
	}
	m.mu.Lock()
	m.durable = max(m.durable, ticket)
	m.announce()
	m.mu.Unlock()
	return dropped, nil
}
