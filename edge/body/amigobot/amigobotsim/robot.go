package amigobotsim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"kennel/edge/body/amigobot/flash"
	"kennel/edge/body/amigobot/sip"
	"kennel/edge/body/amigobot/soundset"
	"kennel/edge/sim/plane"
)

// cycle is the period of everything that AmigOS does (AMIGO-MOT-14, AMIGO-PKT-12).
const cycle = 10 * time.Millisecond

// Port is one of the robot's serial ports (AMIGO-LINK-04).
type Port int

// The ports. System doubles as AUX1.
const (
	Control Port = iota
	System
	AUX2
	Ports
)

// Lines are bytes at each port.
type Lines [Ports][]byte

// Mode names the robot's activity.
type Mode uint8

// The modes.
const (
	Off Mode = iota
	InReset
	Waiting   // for a client (AMIGO-SYNC-01)
	Connected // a session is open
	Armed     // the black button was pressed once (AMIGO-UI-03)
	MotorsTest
	SonarTest
	Wander
	SystemMode
)

// String returns the mode in words.
func (m Mode) String() string {
	words := [...]string{"off", "in reset", "waiting", "connected", "self test armed", "motors test", "sonar test", "self-wander", "System mode"}
	if int(m) < len(words) {
		return words[m]
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// Robot is one simulated AmigoBot. Its methods are safe for concurrent use. Each Step is a control cycle of 10 ms.
type Robot struct {
	mu      sync.Mutex
	changed *sync.Cond // a Step passed
	cfg     Config
	version int // 10, 12 or 13
	rng     *rand.Rand
	now     time.Duration // since New
	mode    Mode
	params  flash.Values // as loaded from the memory at the last reset
	stats   Stats

	// The body.
	world  *plane.World
	speed  [2]float64 // m/s, of the wheels
	way    [2]float64 // m, that the wheels turned
	drag   [2]float64 // SetDrag
	faults Faults
	held   time.Duration // until when a hand holds the wheels
	power  battery

	// The session (AMIGO-SYNC).
	expect   uint8 // number of the next SYNC
	synced   bool
	parser   *sip.Parser
	system   *sip.Parser // of the System port, in System mode
	queue    [][]byte    // commands that wait in a lossy robot
	in, out  delay
	backlog  []byte        // bytes that wait for a slow line
	credit   int           // bits that it may send
	heard    time.Duration // of the last good command
	silent   bool          // the watchdog stopped the drives
	stepping bool          // time passes by STEP commands alone
	steps    int           // of those, not yet done

	bumpStall int // kept, without bumpers to act on

	// State of the server.
	motors  bool
	motion  server
	tune    tuning
	limit   working
	ticks   [2]int32 // of the encoders
	pose    plane.Pose
	reports reports
	sonar   sonar
	io      ports
	sound   sounds
	panel   panel
}

// working holds the values of a session that return to those of the FLASH at its end (AMIGO-SYNC-14).
type working struct{ rotVel, rotAcc, rotDec, transVel, transAcc, transDec uint16 }

func (w *working) load(v *flash.Values) {
	get := func(k flash.Key) uint16 { return uint16(v.Int(k)) }
	*w = working{get(flash.RotVelMax), get(flash.RotAcc), get(flash.RotDecel), get(flash.TransVelMax), get(flash.TransAcc), get(flash.TransDecel)}
}

// Stats counts what happened to packets since New.
type Stats struct {
	Heard   uint64 // good commands
	Bad     uint64 // bytes that belonged to no good packet
	Ignored uint64 // commands without effect on an AmigoBot, and those with a wrong argument
	Dropped uint64 // commands that came too fast for a lossy robot
	Lost    uint64 // packets that Faults.Loss took
	Sent    uint64 // standard packets
}

// New returns a robot whose power is on.
func New(cfg Config) (*Robot, error) {
	cfg = cfg.withDefaults()
	w, err := cfg.open()
	if err != nil {
		return nil, err
	}
	r := &Robot{
		cfg: cfg, version: versions[cfg.Memory.Version], world: w,
		rng:    rand.New(rand.NewPCG(cfg.Seed, 0x616d69676f)),
		parser: new(sip.Parser), system: new(sip.Parser),
		power: batteryAt(cfg.Volts),
	}
	r.changed = sync.NewCond(&r.mu)
	r.boot()
	return r, nil
}

// boot does what AmigOS does at power-on and reset (AMIGO-FLASH-38).
func (r *Robot) boot() {
	r.mode = Waiting
	r.params = r.cfg.Memory.Params
	r.tune.load(&r.params)
	r.motion, r.motors = server{}, false
	r.ticks = [2]int32{}
	r.io.reset()
	r.sound.load(r.cfg.Memory.Sounds)
	r.restore()
	r.endSession()
	r.play(soundset.Reset)
}

// restore returns the session's values to those of the FLASH.
func (r *Robot) restore() {
	r.limit.load(&r.params)
	r.sonar.sequence = ring[:]
	r.io.selected = 1
	r.sound.on = true
	r.bumpStall = 0
}

// endSession returns the server to its wait state: motors and sonar off, no streams (AMIGO-SYNC-01, AMIGO-SYNC-13).
func (r *Robot) endSession() {
	r.enable(false)
	r.sonar.on = false
	r.reports = reports{}
	r.io.fetch = [2]int{}
	r.expect, r.synced, r.silent, r.stepping, r.steps = 0, false, false, false, 0
	r.queue = r.queue[:0]
	r.pose = plane.Pose{}
	r.motion.headed = false
}

// enable switches the motors; set-points are cleared each way (AMIGO-CMD-04, AMIGO-MOT-11).
func (r *Robot) enable(on bool) {
	if on == r.motors {
		return
	}
	r.motors = on
	r.motion.clear()
	r.play(map[bool]int{true: soundset.MotorsOn, false: soundset.MotorsOff}[on])
}

// Step runs one control cycle, in which the bytes in arrived, and appends the robot's bytes to out.
func (r *Robot) Step(in, out Lines) Lines {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.changed.Broadcast()
	if r.mode == Off || r.mode == InReset {
		r.world.Step(cycle, 0, 0)
		r.pass(0)
		return out
	}
	if r.mode == SystemMode {
		return r.serve(in, out)
	}
	r.aux(System, in[System])
	r.aux(AUX2, in[AUX2])
	send := len(out[Control])
	out = r.hear(r.in.through(r.now, r.faults.Delay, r.reach(in[Control])), out)
	if !r.stepping {
		out, _ = r.cycle(out)
	}
	for r.steps > 0 { // AMIGO-CMD-64
		r.steps--
		for sent := false; !sent && r.stepping; {
			out, sent = r.cycle(out)
		}
	}
	out[Control] = append(out[Control][:send], r.out.through(r.now, r.faults.Delay, r.transmit(out[Control][send:]))...)
	return out
}

// cycle lets time pass, and reports whether it sent a standard packet.
func (r *Robot) cycle(out Lines) (_ Lines, sent bool) {
	watchdog := time.Duration(r.params.Int(flash.WatchDog)) * time.Millisecond
	if r.mode == Connected && watchdog != 0 && r.now-r.heard >= watchdog { // AMIGO-SAFE-01
		r.silent = true
	}
	r.program()
	moved := r.wheels()
	r.reckon(moved)
	r.drive(moved)
	r.pass(busyAmps)
	r.ping()
	return r.report(out)
}

// pass lets the time of a cycle pass for clock and battery.
func (r *Robot) pass(amps float64) {
	r.now += cycle
	r.power.pass(amps)
	if r.mode == Off || r.mode == InReset {
		return
	}
	volts := r.power.volts()
	if volts < emptyVolts && r.mode != Waiting && r.mode != SystemMode { // AMIGO-SAFE-06
		r.closeSession()
	}
	if low := r.flashed(flash.LowBattery) / 10; volts >= low {
		r.power.alarm = 0
	} else if r.now >= r.power.alarm { // AMIGO-SAFE-05
		r.power.alarm = r.now + alarmEvery
		r.play(soundset.LowBattery)
	}
}

// hear takes in bytes from the Control port.
func (r *Robot) hear(in []byte, out Lines) Lines {
	for {
		n := copy(r.parser.Space(), in)
		in = in[n:]
		r.parser.Fill(n)
		r.parser.Expire(r.now)
		for payload, ok := r.parser.Next(); ok; payload, ok = r.parser.Next() {
			switch {
			case r.chance(r.faults.Loss):
				r.stats.Lost++
			case !r.cfg.Lossy:
				out = r.obey(payload, out)
			case len(r.queue) < queueLength:
				r.queue = append(r.queue, append([]byte(nil), payload...))
			default:
				r.stats.Dropped++
			}
		}
		if len(in) == 0 {
			break
		}
	}
	r.stats.Bad = r.parser.Counters().Skipped
	if len(r.queue) > 0 { // one command per run (AMIGO-PKT-12)
		payload := r.queue[0]
		r.queue = r.queue[1:]
		out = r.obey(payload, out)
	}
	return out
}

// queueLength is how many commands wait in a lossy robot (AMIGO-PKT-12).
const queueLength = 8

func (r *Robot) chance(p float64) bool { return p > 0 && r.rng.Float64() < p }

// obey executes one good packet from the client.
func (r *Robot) obey(payload []byte, out Lines) Lines {
	c, err := sip.ParseCommand(payload)
	switch {
	case r.mode == Waiting && r.power.volts() >= emptyVolts: // AMIGO-SYNC-16
		return r.sync(c, out)
	case r.mode != Connected: // AMIGO-TST-07, AMIGO-DL-07
		return out
	}
	r.stats.Heard++
	r.panel.traffic = r.now
	r.heard = r.now
	if r.silent { // AMIGO-SAFE-02
		r.silent = false
		if r.motion.headed {
			r.turnTo(r.pose[2])
		}
	}
	if err != nil { // AMIGO-ARG-06
		r.stats.Ignored++
		return out
	}
	return r.command(c, out)
}

// sync is the handshake of the wait state (AMIGO-SYNC-02 to 10). A packet out of order begins it again (AMIGO-SYNC-08).
func (r *Robot) sync(c sip.Command, out Lines) Lines {
	switch {
	case r.synced && c.Number == sip.Open:
		r.open()
	case c.Number == sip.Sync0:
		r.expect, r.synced = sip.Sync1, false
		return r.echo(out, sip.Sync0)
	case r.synced && c.Number == sip.Close && c.Arg != sip.None:
		r.expect, r.synced = sip.Sync0, false
	case c.Number == sip.Sync2 && r.expect == sip.Sync2:
		r.synced = true
		id := sip.Identity{Name: r.params.Value(flash.Name), Class: r.params.Value(flash.Type), Subclass: r.subclass()}
		b, _ := id.Append(out[Control]) // a FLASH text has at most 20 characters
		return r.sent(out, b)
	case r.synced: // other commands are not honoured yet (AMIGO-SYNC-10)
	case c.Number == sip.Sync1 && r.expect == sip.Sync1:
		r.expect = sip.Sync2
		return r.echo(out, sip.Sync1)
	default:
		r.expect = sip.Sync0
	}
	return out
}

// subclass is the model as the wire spells it (AMIGO-SYNC-07).
func (r *Robot) subclass() string { return strings.ToLower(r.params.Value(flash.Subtype)) }

// sent returns out with b, which is its Control line with one more packet; some get lost.
func (r *Robot) sent(out Lines, b []byte) Lines {
	if r.chance(r.faults.Loss) {
		r.stats.Lost++
		return out
	}
	out[Control] = b
	return out
}

// echo sends a SYNC packet back (AMIGO-SYNC-03).
func (r *Robot) echo(out Lines, number uint8) Lines {
	b, _ := sip.Command{Number: number}.Append(out[Control]) // it has no text
	return r.sent(out, b)
}

// open begins a session (AMIGO-SYNC-10, AMIGO-SYNC-11, AMIGO-SYNC-18).
func (r *Robot) open() {
	r.endSession()
	r.mode = Connected
	r.heard = r.now
	r.panel.traffic = r.now
	r.sonar.start()
	r.reports.wait = r.cyclesPerReport()
	r.play(soundset.Connect)
}

// HangUp ends the session of a client whose connection has ended.
func (r *Robot) HangUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.mode {
	case Connected:
		r.closeSession()
	case Waiting:
		r.expect, r.synced = sip.Sync0, false
	}
}

// closeSession ends the session, or a built-in program.
func (r *Robot) closeSession() {
	r.mode = Waiting
	r.endSession()
	if r.version >= 13 { // earlier servers keep them until a reset (AMIGO-OPEN-15)
		r.restore()
	}
	r.play(soundset.Disconnect)
}
