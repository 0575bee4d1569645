// Package session is the client's side of a conversation with an AmigoBot: it connects, keeps the robot's watchdog fed, notices a robot
// that falls silent or restarts, and keeps the robot's reports.
//
// A Session does no I/O and reads no clock. The caller gives each Step the time and the bytes that came, and sends the bytes that Step
// returns. It calls Step when bytes arrive and at least each Pacing.
//
//	Closed, Lost   -- Open ------------------> Syncing
//	Syncing        -- SYNC2 echoed ----------> Opening      -- no robot, or one that is refused -> Lost
//	Opening        -- reports, limits sent --> Ready        -- no report -> Syncing
//	Ready         <-- silent, heard again --> Stale
//	Ready, Stale   -- silent or restarted ---> Syncing
//	any            -- Close -----------------> Closing, Closed
//
// Nothing moves until the caller asks for it: a session begins with motors off and without set-points, whatever an earlier one asked for
// (AMIGO-SYNC-11). It listens before it speaks: a robot that is still open for an earlier client would take SYNC0 for PULSE and continue to its
// old set-points (AMIGO-SYNC-12), so one that reports is sent CLOSE until it is silent. To one that waits CLOSE is not sent, as AMRISim takes it for a SYNC
// out of turn and never connects. While a robot is silent the session keeps sending it stops. Nothing allocates in the steady state.
package session

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"kennel/edge/body/amigobot/sip"
)

// Phase is how far a session is.
type Phase uint8

// The phases of a session.
const (
	Closed  Phase = iota // no session; Open starts one
	Syncing              // listens, sends SYNC0, SYNC1, SYNC2 and awaits each echo
	Opening              // has sent OPEN; awaits packets, asks for the configuration, sets limits
	Ready                // the robot reports and obeys
	Stale                // it has fallen silent
	Closing              // tells it to switch off
	Lost                 // given up, State.Err says why; Open tries again
)

// String returns the phase as a word.
func (p Phase) String() string {
	return [...]string{"closed", "syncing", "opening", "ready", "stale", "closing", "lost"}[p]
}

// Times of a session.
const (
	Pacing     = 20 * time.Millisecond  // between two commands (AMIGO-PKT-12)
	Idle       = 500 * time.Millisecond // after which a PULSE or the set-points are sent again (AMIGO-SYNC-12)
	StaleAfter = 2 * time.Second        // without a standard packet (AMIGO-LINK-06)
	PulseAfter = 5 * time.Second        // a silent robot is sent PULSE, which one that was reset echoes (AMIGO-LINK-06)
	LostAfter  = 8 * time.Second        // a silent robot is connected again (AMIGO-LINK-06)

	listenTime  = 250 * time.Millisecond // before the first SYNC0: two cycles of a robot that is open (own default)
	syncTimeout = time.Second            // for an echo (AMIGO-SYNC-04)
	drainTime   = 300 * time.Millisecond // packets of an earlier session are ignored (own default)
	stillOpen   = 150 * time.Millisecond // a robot that reported so lately is open (own default)
	configEvery = 200 * time.Millisecond // AMIGO-CMD-18
	retryAfter  = 200 * time.Millisecond // one cycle of 100 ms and 100 ms (AMIGO-PKT-11)
	repeatAfter = 100 * time.Millisecond // a new set-point is sent again (own default)
	quiet       = 300 * time.Millisecond // an echo after this long without standard packets means a restart (own default)
	never       = math.MinInt64 / 2      // long ago, in any clock
)

// Limits of tries.
const (
	maxMisses   = 10 // of an echo (AMIGO-SYNC-09)
	configTries = 5  // AMIGO-CMD-18
	maxTries    = 3  // of a command whose effect does not show (AMIGO-PKT-11)
)

// After this many misses the robot may listen at another speed, or hang between SYNC2 and OPEN (AMIGO-SYNC-09).
const (
	missesToSpeeds = 2
	missesToOpen   = 3
)

// minBattery is the voltage below which a session is refused (AMIGO-SYNC-16).
const minBattery = 10.0

// closing ends a session. It has an argument, as ARIA sends it, because without one it would be SYNC2 (AMIGO-SYNC-10, AMIGO-SYNC-13).
var closing = sip.Int(sip.Close, 1)

// speeds are those of a serial line, in bit/s (AMIGO-LINK-01).
var speeds = [...]int{9600, 19200, 38400}

// Why a session is lost.
var (
	ErrNoAnswer = errors.New("the robot does not answer")
	ErrSubclass = errors.New("unknown kind of robot")
	ErrBattery  = errors.New("the robot's battery is empty")
)

// ErrNotReady and ErrFull refuse a command.
var (
	ErrNotReady = errors.New("the session is not ready")
	ErrFull     = errors.New("too many waiting commands")
)

// Limits are the limits that a session sends the robot after OPEN, in SI units (AMIGO-MOT-07). For a limit of 0 the robot keeps its own.
type Limits struct {
	Speed, Accel, Decel        float64 // m/s, m/s²
	Turn, TurnAccel, TurnDecel float64 // rad/s, rad/s²
}

// Config is the setting of a session. The zero value works for an AmigoBot behind a socket.
type Config struct {
	Baud        int     // of a serial line; the robot may have been left at another speed. 0: not a serial line
	Subclass    string  // of the robot; empty: amigo (AMIGO-SYNC-15)
	RangeFactor float64 // of sonar ranges; 0: 1. AmigOS 1.0 has 0.555 (AMIGO-SIP-15)
	Limits      Limits

	// Tap, if set, sees each good packet during Step, also those of unknown types, and must not keep it (AMIGO-PKT-13).
	Tap func(payload []byte)
}

// Session is a client. It is not safe for concurrent use.
type Session struct {
	cfg      Config
	state    State
	parser   sip.Parser
	standard sip.Standard
	io       sip.IO
	now      time.Duration
	sent     time.Duration // the newest command
	out      []byte
	baud     int

	due     time.Duration // Syncing: the next step; Opening: the end of patience for a standard packet
	listens bool          // until due, for a robot that is open; due is never before the first Step
	waiting bool          // for an echo, until due
	open    time.Duration // Syncing: the newest standard packet, of a robot that is open

	limited      bool // the limits are in the queue or sent
	prodded      bool // the silent robot was sent PULSE
	placed       bool // lastX, lastY are of this session
	lastX, lastY uint16

	queue  queue
	goals  [2]goal // set-points, sent again each Idle
	next   int     // goal to look at first
	others bool    // the queue is next, not the goals
	hurry  bool    // the goals do not wait for Pacing

	checks     []check
	wantConfig bool
	asks       int
	askAt      time.Duration
}

// New returns a session in phase Closed.
func New(cfg Config) *Session {
	if cfg.Subclass == "" {
		cfg.Subclass = "amigo"
	}
	if cfg.RangeFactor == 0 {
		cfg.RangeFactor = 1
	}
	return &Session{cfg: cfg, sent: never, out: make([]byte, 0, sip.MaxFrame), checks: make([]check, 0, maxChecks)}
}

// State returns the session's knowledge of the robot. It changes with each Step.
func (s *Session) State() *State { return &s.state }

// Baud returns the speed for the bytes of the last Step; 0 if the line is not a serial one. It differs from Config.Baud only while the
// session looks for a robot that was left at another speed. The caller sets that speed before it sends them.
func (s *Session) Baud() int { return s.baud }

// Open starts a session over a line that is open.
func (s *Session) Open() {
	s.parser.Reset()
	s.sync(never)
	s.listens = true
}

// Close switches the motors off and ends the session; after some Steps the phase is Closed. ARIA sends the same (AMIGO-SYNC-13).
func (s *Session) Close() {
	phase := s.state.Phase
	s.enter(Closed)
	if phase == Opening || phase == Ready || phase == Stale {
		s.enter(Closing)
		s.put(sip.Switch(sip.Enable, false), 0)
		s.put(closing, 0)
	}
}

// Step takes the bytes that came in until now, from any clock that does not go back, and returns the bytes to send, at most one command.
// They are valid until the next Step.
func (s *Session) Step(now time.Duration, in []byte) []byte {
	s.now = now
	for more := true; more; more = len(in) > 0 {
		n := copy(s.parser.Space(), in)
		s.parser.Fill(n)
		in = in[n:]
		s.parser.Expire(now)
		for payload, ok := s.parser.Next(); ok; payload, ok = s.parser.Next() {
			s.take(payload)
		}
	}
	s.state.Counts.Counters = s.parser.Counters()
	switch s.state.Phase {
	case Syncing:
		s.stepSync()
	case Opening:
		s.stepOpen()
	case Ready, Stale:
		s.stepOpened()
	}
	s.out, s.baud = s.out[:0], s.cfg.Baud
	s.send()
	if s.state.Phase == Closing && s.queue.n == 0 {
		if err := s.state.Err; err != nil {
			s.lose(err)
		} else {
			s.enter(Closed)
		}
	}
	return s.out
}

// enter changes the phase and forgets everything that was asked of the robot.
func (s *Session) enter(p Phase) {
	s.state.Phase, s.state.Err = p, nil
	s.state.Motors, s.state.SonarOn, s.state.Moving = false, false, false
	s.queue.n, s.goals, s.checks = 0, [2]goal{}, s.checks[:0]
	s.listens = false
	s.waiting, s.wantConfig, s.limited, s.prodded, s.placed, s.hurry = false, false, false, false, false, false
}

func (s *Session) lose(err error) {
	s.enter(Lost)
	s.state.Err = err
}

// sync starts the handshake: SYNC0 at the time given.
func (s *Session) sync(at time.Duration) {
	s.enter(Syncing)
	s.state.Sync, s.state.Misses, s.due, s.open = 0, 0, at, never
}

// resync connects again to a robot that fell silent or restarted: CLOSE at once, SYNC0 later.
func (s *Session) resync() {
	s.state.Counts.Resyncs++
	s.sync(s.now + drainTime)
	s.put(closing, 0)
}

// stepSync sends SYNC0 at first and whenever an echo is missing (AMIGO-SYNC-04, AMIGO-SYNC-09).
func (s *Session) stepSync() {
	if s.listens && s.due == never {
		s.due = s.now + listenTime
	}
	if s.now < s.due {
		return
	}
	s.listens = false
	if s.now-s.open < stillOpen { // it has not heard CLOSE
		s.closeFirst()
		return
	}
	if s.waiting {
		s.miss("no echo")
		if s.state.Phase == Lost {
			return
		}
		if s.state.Misses == missesToSpeeds {
			s.put(closing, 0)
			for _, baud := range speeds {
				if s.cfg.Baud != 0 && baud != s.cfg.Baud {
					s.put(closing, baud)
				}
			}
		}
		if s.state.Misses == missesToOpen {
			s.put(sip.Command{Number: sip.Open}, 0)
		}
	}
	s.sendSync(sip.Sync0)
}

func (s *Session) sendSync(number uint8) {
	s.state.Sync = number
	s.put(sip.Command{Number: number}, 0)
	s.waiting, s.due = true, s.now+syncTimeout
}

// miss counts a handshake that failed, and gives up after too many.
func (s *Session) miss(what string) {
	s.waiting = false
	if s.state.Misses++; s.state.Misses >= maxMisses {
		s.lose(fmt.Errorf("%w: %s to SYNC%d, %d tries", ErrNoAnswer, what, s.state.Sync, s.state.Misses))
	}
}

// again drops bytes that are still under way, and starts at SYNC0 once they have arrived.
func (s *Session) again(what string) {
	s.due = s.now + drainTime
	s.miss(what)
}

// closeFirst ends the session of an earlier client, then starts at SYNC0 (AMIGO-SYNC-09).
func (s *Session) closeFirst() {
	if s.again("standard packets"); s.state.Phase == Syncing {
		s.queue.n = 0
		s.put(closing, 0)
	}
}

// echo takes the answer to a SYNC.
func (s *Session) echo(p []byte) {
	switch s.state.Phase {
	case Opening, Ready, Stale:
		// A robot that was reset waits for SYNC0 and echoes PULSE, which has the same bytes (AMIGO-SYNC-19).
		s.state.Counts.Unexpected++
		if p[0] == sip.Sync0 && s.placed && s.now-s.state.At > quiet {
			s.resync()
		}
		return
	case Syncing:
	default:
		return
	}
	switch {
	case !s.waiting:
		return
	case p[0] != s.state.Sync:
		s.state.Counts.Unexpected++
		s.again("wrong echo")
	case p[0] != sip.Sync2:
		s.sendSync(p[0] + 1)
	default:
		s.identify(p)
	}
}

// identify takes the robot's name and kind and opens the session (AMIGO-SYNC-05, 10, 12, 15).
func (s *Session) identify(p []byte) {
	id := &s.state.Identity
	if id.Parse(p) != nil {
		s.state.Counts.Malformed++
		s.again("no identity")
		return
	}
	if !strings.EqualFold(id.Subclass, s.cfg.Subclass) {
		s.lose(fmt.Errorf("%w: %q of class %q, want %q", ErrSubclass, id.Subclass, id.Class, s.cfg.Subclass))
		return
	}
	s.enter(Opening)
	s.state.ConfigAt = 0
	s.due = s.now + StaleAfter
	s.put(sip.Command{Number: sip.Open}, 0)
	s.put(sip.Command{Number: sip.Pulse}, 0)
	s.ask()
}

// stepOpen awaits the first standard packet and the configuration, then sends the limits. The session is ready when those are sent.
func (s *Session) stepOpen() {
	s.stepConfig()
	switch {
	case !s.placed && s.now >= s.due:
		misses := s.state.Misses
		s.resync()
		s.state.Misses = misses
		s.again("no standard packet after the answer")
	case !s.placed || s.queue.n > 0:
	case s.limited:
		s.state.Phase = Ready
		s.state.Sessions++
	case !s.wantConfig:
		s.limit()
	}
}

// limit sends Config.Limits.
func (s *Session) limit() {
	s.limited = true
	l, deg := &s.cfg.Limits, 180/math.Pi
	for _, x := range [...]struct {
		number uint8
		value  float64
	}{
		{sip.SetV, l.Speed / sip.RangeUnit}, {sip.SetA, l.Accel / sip.RangeUnit}, {sip.SetA, -l.Decel / sip.RangeUnit},
		{sip.SetRV, l.Turn * deg}, {sip.SetRA, l.TurnAccel * deg}, {sip.SetRA, -l.TurnDecel * deg},
	} {
		if v := whole(x.value); v != 0 {
			s.put(sip.Int(x.number, v), 0)
		}
	}
}

// stepOpened watches for silence (AMIGO-LINK-06).
func (s *Session) stepOpened() {
	s.stepConfig()
	switch silent := s.now - s.state.At; {
	case silent > LostAfter:
		s.resync()
	case silent > PulseAfter && !s.prodded && s.now-s.goals[0].at < 2*Pacing:
		// Right behind a STOP, because a robot that has not heard one takes PULSE as leave to continue.
		s.prodded = true
		s.put(sip.Command{Number: sip.Pulse}, 0)
	case silent > StaleAfter && s.state.Phase == Ready:
		s.state.Phase = Stale
		s.state.Counts.Stale++
		s.stopWith(sip.Stop)
	}
}

// ask requests the configuration, repeatedly until it comes (AMIGO-CMD-18).
func (s *Session) ask() { s.wantConfig, s.asks, s.askAt = true, 0, s.now }

func (s *Session) stepConfig() {
	if !s.wantConfig || s.now < s.askAt || s.queue.n > 0 {
		return
	}
	if s.asks == configTries {
		s.wantConfig = false
		s.confirm(true)
		return
	}
	s.asks++
	s.askAt = s.now + configEvery
	s.put(sip.Int(sip.GetConfig, 1), 0)
}
