package vectorsim

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"kennel/edge/body/bodysim"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/cube/cubesim"
)

// ErrPowerCut: the board switched itself and the head off, or lost its power; the error says why.
var ErrPowerCut = errors.New("vectorsim: power cut")

// ErrShutdown: the head asked for the power to be cut (VEC-BODY-H03).
var ErrShutdown = errors.New("vectorsim: shut down by the head")

// The causes of a power cut.
var (
	errSilence  = fmt.Errorf("%w: %d data frames without a frame from the head", ErrPowerCut, vectordriver.WatchdogFrames)
	errNoHead   = fmt.Errorf("%w: no frame from the head", ErrPowerCut)
	errBattery  = fmt.Errorf("%w: battery empty", ErrPowerCut)
	errBrownOut = fmt.Errorf("%w: brown-out", ErrPowerCut)
)

// Mode says which program the board's processor runs.
type Mode uint8

// Modes of a board.
const (
	Off Mode = iota
	InBootloader
	InApplication
)

// String returns "off", "boot-loader" or "application".
func (m Mode) String() string {
	switch m {
	case Off:
		return "off"
	case InBootloader:
		return "boot-loader"
	case InApplication:
		return "application"
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// State is the board as an onlooker sees it.
type State struct {
	Mode     Mode
	Boot     Boot   // what the head is to start, of the newest time of power
	Held     bool   // the button that switched it on is still held
	PowerOns uint64 // how often Run began

	Frames  uint64 // data frames sent since New
	Heard   uint64 // good frames from the head
	Bad     uint64 // frames from the head that were refused
	Skipped uint64 // periods that passed while the board was late
	Frozen  uint64 // periods in which nothing passed, because the machine had no time for the board
	Overrun uint64 // writes the wire did not take whole
	Silent  int    // data frames sent since the head was last heard

	Duty       [4]float64 // as commanded, -1 to 1; index as in package spine
	Off        uint64     // Frames when the last of the motors lost its power
	Angle      [4]float64 // rad, where the parts are
	Lights     [4]spine.RGB
	Volts      float64
	Celsius    float64
	OnCharger  bool
	IsCharging bool
}

// Board is one simulated body board. Its methods are safe for concurrent use; Run is called by one goroutine at a time.
type Board struct {
	mu      sync.Mutex
	changed *sync.Cond // a period passed
	cfg     Config
	world   *world
	cubes   []*cubesim.Cube
	turned  time.Duration // when the newest turn of Run was due; 0: the board is stepped from outside
	state   State
	noise   Noise

	flash     flash
	parser    *spine.Parser
	data      spine.BodyData
	head      spine.HeadData
	pad       pad
	ears      []byte // the head's bytes after noise
	lived     time.Duration
	armed     bool // the head has spoken
	waited    time.Duration
	untilBoot int // periods to the boot-loader's next frame
	stalled   int // periods
	brownOut  bool
	finger    button // on the button, at power on
}

// New returns a board with its power off. An impossible Config is an error in the program or its configuration: check it with
// Validate; New panics on it.
func New(cfg Config) *Board {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	cfg = cfg.withDefaults()
	b := &Board{cfg: cfg, world: newWorld(cfg), noise: cfg.Noise, data: spine.BodyData{Layout: cfg.Layout}, head: spine.HeadData{Layout: cfg.Layout}}
	b.cubes = b.world.cubes
	b.flash.clear()
	if cfg.Start != StartEmpty {
		b.flash.load(Image(cfg.Version, imageLeast+filler, cfg.Seed))
	}
	b.changed = sync.NewCond(&b.mu)
	return b
}

// A head that is silent leaves its lights to the board, which shows that it is alone (VEC-WDOG-06); own default.
const lonely = 40 // data frames, 0.2 s

var lonelyLights = [4]spine.RGB{1: {R: 255, G: 96}, 3: {R: 255}}

// filler is the size of a board's own program beside head and signature.
const filler = 4000

// powerOn is the button.
func (b *Board) powerOn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.world.reset()
	b.parser = spine.NewParser(spine.ToBody)
	b.data.Seq = 0
	b.armed, b.waited, b.untilBoot, b.stalled, b.brownOut = false, 0, 0, 0, false
	b.state.PowerOns++
	b.state.Silent = 0
	b.state.Lights = [4]spine.RGB{}
	b.state.Mode = InBootloader
	b.flash.powerOn()
	b.pad.in = b.pad.in[:0]
	b.pressed()
	if b.cfg.Factory {
		b.padOut([]byte(padBanner))
	}
	if b.cfg.Start != StartBootloader && b.flash.sound {
		b.state.Mode = InApplication
	}
	b.observe()
}

func (b *Board) powerOff() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.world.reset() // motors let go at once, all else waits for the next time
	b.state.Mode, b.finger = Off, button{}
	b.observe()
}

// tick lets periods pass, in which the bytes in arrived from the head, and appends the board's bytes to out. Periods beyond the first are
// late ones: the world moves on, but their frames are not sent. An error ends the power.
func (b *Board) tick(periods int, in, out []byte) (sent []byte, _ error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.observe()
	if b.noise.onBytes() {
		before := len(out)
		defer func() { sent = b.spoil(sent, before) }()
	}
	b.state.Skipped += uint64(periods - 1)
	b.lived += time.Duration(periods) * vectordriver.Period
	if b.brownOut {
		return out, errBrownOut
	}
	if err := b.hold(time.Duration(periods) * vectordriver.Period); err != nil {
		return out, err
	}
	if b.finger.low > 0 { // the head hears nothing
		before := len(out)
		defer func() { sent = sent[:before] }()
	}
	alive := true
	for range periods {
		alive = b.world.step() && alive
	}
	if !alive {
		return out, errBattery
	}
	b.data.Seq++
	b.skip(uint64(periods - 1))
	if b.stalled > 0 { // neither hears nor speaks, and the motors keep running
		b.stalled = max(0, b.stalled-periods)
		return out, nil
	}
	var err error
	if b.flash.job == idle {
		out, err = b.hear(in, out)
	} else { // bytes that came in are lost
		b.parser.Reset()
		out = b.work(periods, out)
	}
	if err != nil {
		return out, err
	}
	if !b.armed {
		if b.waited += time.Duration(periods) * vectordriver.Period; b.waited > b.cfg.BootPatience {
			return out, errNoHead
		}
	}
	switch b.state.Mode {
	case InApplication:
		if b.armed {
			if b.state.Silent >= vectordriver.WatchdogFrames {
				return out, errSilence
			}
			if b.state.Silent++; b.state.Silent > lonely {
				b.state.Lights = lonelyLights
			}
		}
		b.state.Frames++
		b.world.report(&b.data, b.turned)
		start := len(out)
		out = b.disturb(b.data.AppendFrame(out), start)
		out = b.padIn(out)
	case InBootloader:
		if b.flash.job != idle {
			break
		}
		if b.untilBoot--; b.untilBoot < 0 {
			b.untilBoot = bootloaderEvery
			out = new(spine.Bootloader).AppendFrame(out)
		}
	}
	return out, nil
}

// skip numbers the frames of periods in which the board sent none, because numbers follow the clock. While the encoders sleep nothing moves, and the
// next frame still reports what a hand did; skip then leaves no number out, because a head takes a gap for a lost report (VEC-BODY-24).
func (b *Board) skip(periods uint64) {
	if !b.world.encodersOff() {
		b.data.Seq += uint32(periods)
	}
}

// dark lets a period pass without power and appends what is on the line all the same: noise.
func (b *Board) dark(out []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.observe()
	b.world.rest()
	return b.spoil(out, len(out))
}

// observe updates the public state and wakes the goroutines that wait for it. The lock is held.
func (b *Board) observe() {
	w := b.world
	if none := [4]float64{}; w.duty == none && b.state.Duty != none {
		b.state.Off = b.state.Frames
	}
	b.state.Held = b.finger.press > 0
	b.state.Duty, b.state.Angle = w.duty, w.angle
	b.state.Volts, b.state.Celsius = w.volts, w.degrees
	b.state.OnCharger, b.state.IsCharging = w.onCharger, w.charging
	b.changed.Broadcast()
}

// hear parses the head's bytes and appends the answers.
func (b *Board) hear(in, out []byte) ([]byte, error) {
	if b.noise.onBytes() {
		b.ears = b.spoil(append(b.ears[:0], in...), 0)
		in = b.ears
	}
	if b.noise.Corrupt > 0 {
		b.damage(in)
	}
	for more := true; more; more = len(in) > 0 { // also when nothing came: a frame that was cut may hold one back
		n := copy(b.parser.Space(), in)
		b.parser.Fill(n)
		b.parser.Expire(b.lived)
		in = in[n:]
		bad := b.parser.Counters().Bad()
		for f, ok := b.parser.Next(); ok; f, ok = b.parser.Next() {
			if b.chance(b.noise.Loss) {
				continue
			}
			b.state.Heard++
			b.armed, b.state.Silent = true, 0
			var err error
			if out, err = b.answer(f, out); err != nil || b.flash.job != idle {
				return out, err
			}
		}
		// One NAK however many frames were bad: noise must not make the board talk (VEC-BODY-08).
		if more := b.parser.Counters().Bad() - bad; more > 0 {
			b.state.Bad += more
			out = spine.NAK.AppendFrame(out)
		}
	}
	return out, nil
}

// damage changes a byte of each frame that begins in in, or of some of them.
func (b *Board) damage(in []byte) {
	sync := []byte(spine.ToBody.Sync())
	for {
		at := bytes.Index(in, sync)
		if at < 0 {
			return
		}
		in = in[at:]
		n := spine.Overhead
		if len(in) >= spine.HeaderSize {
			n += int(binary.LittleEndian.Uint16(in[spine.HeaderSize-2:]))
		}
		n = min(n, len(in))
		if b.chance(b.noise.Corrupt) {
			in[b.world.rng.IntN(n)] ^= byte(1 + b.world.rng.IntN(255))
		}
		in = in[n:]
	}
}

// answer executes one good frame (VEC-BODY-08).
func (b *Board) answer(f spine.Frame, out []byte) ([]byte, error) {
	done := false
	switch f.Type {
	case spine.TypeErase, spine.TypeFirmware, spine.TypeValidate: // an update enters the boot-loader (VEC-BODY-H05)
		if b.state.Mode == InApplication {
			b.enter(InBootloader)
		}
	}
	switch f.Type {
	case spine.TypeData:
		if b.state.Mode == InApplication && b.head.ParsePayload(f.Payload) == nil {
			b.world.obey(&b.head)
			b.state.Lights = b.head.Lights
			return out, nil // the next data frame is the answer
		}
	case spine.TypeShutdown:
		return out, ErrShutdown
	case spine.TypeVersion:
		if b.flash.sound {
			return (&spine.Version{ID: b.flash.version}).AppendFrame(out), nil
		}
	case spine.TypeMode: // a running application keeps running (VEC-BODY-H05)
		if done = b.flash.sound; done && b.state.Mode == InBootloader {
			b.enter(InApplication)
		}
	case spine.TypeChars: // test firmware only (VEC-CLI-01)
		var m spine.Chars
		if b.cfg.Factory && b.state.Mode == InApplication && m.ParsePayload(f.Payload) == nil {
			b.padOut(bytes.TrimRight(m[:], "\x00"))
			return out, nil
		}
	case spine.TypeLights:
		var m spine.Lights
		if m.ParsePayload(f.Payload) == nil {
			b.state.Lights = m.Lights
			done = true
		}
	case spine.TypeErase:
		if b.flash.erase() {
			return out, nil // the answer comes when it is done (VEC-BODY-H09)
		}
	case spine.TypeFirmware:
		var m spine.Firmware
		if m.ParsePayload(f.Payload) == nil && b.flash.write(&m) {
			return out, nil // likewise
		}
	case spine.TypeValidate: // VEC-BODY-H08
		if b.flash.validate() {
			done = true
			b.enter(InApplication)
		}
	}
	if done {
		return spine.ACK.AppendFrame(out), nil
	}
	return spine.NAK.AppendFrame(out), nil
}

// work continues the boot-loader's job, and appends the answer when it is done.
func (b *Board) work(periods int, out []byte) []byte {
	for range periods {
		if b.flash.step() {
			return spine.ACK.AppendFrame(out)
		}
	}
	return out
}

// enter changes the mode; either program starts from nothing.
func (b *Board) enter(m Mode) {
	b.world.reset()
	b.data.Seq = 0
	b.untilBoot = 0
	b.state.Mode = m
}

// disturb loses or damages the frame at out[start:].
func (b *Board) disturb(out []byte, start int) []byte {
	if b.chance(b.noise.Loss) {
		return out[:start]
	}
	if b.chance(b.noise.Corrupt) {
		out[start+b.world.rng.IntN(len(out)-start)] ^= byte(1 + b.world.rng.IntN(255))
	}
	return out
}

// spoil applies the byte noise to out[start:].
func (b *Board) spoil(out []byte, start int) []byte {
	n, rng := &b.noise, b.world.rng
	if !n.onBytes() {
		return out
	}
	if n.Silent {
		return out[:start]
	}
	if n.ByteLoss >= 1 {
		out = out[:start]
	}
	if n.ByteNoise >= 1 { // each byte is asked below, which takes longer
		b.scribble(out[start:])
	}
	if n.ByteLoss > 0 || n.ByteNoise > 0 && n.ByteNoise < 1 {
		// One draw a byte: 24 bits say whether it is lost, 24 whether it is another, 8 which.
		const scale, part = 1 << 24, 1<<24 - 1
		loss, noise := uint64(n.ByteLoss*scale), uint64(n.ByteNoise*scale)
		if n.ByteNoise >= 1 {
			noise = 0 // it was scribbled
		}
		kept := start
		for _, c := range out[start:] {
			bits := rng.Uint64()
			if bits&part < loss {
				continue
			}
			if bits>>24&part < noise {
				c = byte(bits >> 48)
			}
			out[kept] = c
			kept++
		}
		out = out[:kept]
	}
	if n.Babble > 0 {
		before := len(out)
		out = append(out, babble[:rng.IntN(n.Babble+1)]...)
		b.scribble(out[before:])
	}
	return out
}

// babble holds stray bytes, which no end sent.
var babble [maxBabble]byte

// scribble fills p with any bytes.
func (b *Board) scribble(p []byte) {
	rng := b.world.rng
	for len(p) >= 8 {
		binary.LittleEndian.PutUint64(p, rng.Uint64())
		p = p[8:]
	}
	for i := range p {
		p[i] = byte(rng.Uint32())
	}
}

func (b *Board) chance(p float64) bool { return p > 0 && b.world.rng.Float64() < p }

// State returns the board as it is now.
func (b *Board) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// Await blocks until cond holds, looking at the end of each period, and returns the state in which it did, or ctx's error.
func (b *Board) Await(ctx context.Context, cond func(State) bool) (State, error) {
	return bodysim.Await(ctx, b.changed, func() State { return b.state }, cond)
}

func (b *Board) set(fn func(w *world)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fn(b.world)
}

// SetNoise changes how the wire is disturbed.
func (b *Board) SetNoise(n Noise) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noise = n
}

// SetFlashFaults sets the faults of the program memory.
func (b *Board) SetFlashFaults(f FlashFaults) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flash.faults = f
}

// Stall freezes the board for d: it neither hears nor speaks, and the motors keep running.
func (b *Board) Stall(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stalled = int((d + vectordriver.Period - 1) / vectordriver.Period)
}

// BrownOut takes the power away at once (VEC-HW-06).
func (b *Board) BrownOut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.brownOut = true
}

// SetCharger puts the body on its charger or takes it off; in a world with a charger it is carried there, if nothing is in the way.
func (b *Board) SetCharger(on bool) { b.set(func(w *world) { w.setCharger(on) }) }

// SetVolts fills the battery to v.
func (b *Board) SetVolts(v float64) { b.set(func(w *world) { w.volts = min(max(v, 0), fullVolts) }) }

// SetCelsius heats the board up to c; it cools from there.
func (b *Board) SetCelsius(c float64) { b.set(func(w *world) { w.degrees = c }) }

// SetPower adds battery flags to those that follow from the physics.
func (b *Board) SetPower(flags spine.Power) { b.set(func(w *world) { w.forced = flags }) }

// SetTouch sets the touch sensor's raw reading, beside which it feels charger, hand and weather; 0 and 4095 and above are saturated.
func (b *Board) SetTouch(raw uint16) { b.set(func(w *world) { w.touch = raw }) }

// SetButton presses or releases the button.
func (b *Board) SetButton(pressed bool) { b.set(func(w *world) { w.button = pressed }) }

// SetCliff sets the raw reading of a cliff sensor; 0 is no floor at all. In a world it is the reading where there is a floor.
func (b *Board) SetCliff(sensor int, raw uint16) { b.set(func(w *world) { w.cliffs[sensor] = raw }) }

// SetProx puts something at a distance in millimetres; 0 is nothing in sight, which the sensor reports as 8190. In a world the sensor sees
// what is nearer, this or the world.
func (b *Board) SetProx(millimetres uint16) {
	if millimetres == 0 {
		millimetres = openRange
	}
	b.set(func(w *world) { w.prox = millimetres })
}

// MoveByHand turns a part by rad, as a person would; index as in package spine.
func (b *Board) MoveByHand(motor int, rad float64) { b.set(func(w *world) { w.byHand(motor, rad) }) }
