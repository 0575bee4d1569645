package vectorsim

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/core/rt/rtlinux"
)

// bench is a board without a wire: the test is its clock and its head.
type bench struct {
	*Board
	t      testing.TB
	parser *spine.Parser
	out    []byte
}

func newBench(t testing.TB, cfg Config) *bench {
	b := &bench{Board: New(cfg), t: t, parser: spine.NewParser(spine.ToHead)}
	b.powerOn()
	return b
}

// step lets one period pass and returns the frames that the board sent.
func (b *bench) step(in ...byte) ([]spine.Frame, error) {
	b.t.Helper()
	var err error
	b.out, err = b.tick(1, in, b.out[:0])
	var frames []spine.Frame
	b.parser.Fill(copy(b.parser.Space(), b.out))
	for f, ok := b.parser.Next(); ok; f, ok = b.parser.Next() {
		f.Payload = bytes.Clone(f.Payload)
		frames = append(frames, f)
	}
	return frames, err
}

// drive answers n frames with the given command and returns the last data frame.
func (b *bench) drive(n int, m spine.HeadData) spine.BodyData {
	b.t.Helper()
	var last spine.BodyData
	for range n {
		frames, err := b.step(m.AppendFrame(nil)...)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, f := range frames {
			if f.Type == spine.TypeData && last.ParsePayload(f.Payload) != nil {
				b.t.Fatal("a data frame of the wrong size")
			}
		}
	}
	return last
}

const second = int(time.Second/vectordriver.Period) + 1 // periods

func types(frames []spine.Frame) string {
	var s []string
	for _, f := range frames {
		name := f.Type.String()[:2]
		if f.Type == spine.TypeAck {
			var a spine.Ack
			_ = a.ParsePayload(f.Payload) // sized by the parser
			if !a.OK() {
				name = "nak"
			}
		}
		s = append(s, name)
	}
	return strings.Join(s, " ")
}

// TestAnswers: each conversation starts from power on; a line has the head's message and the frames of that period (VEC-BODY-08, H01 to H09).
func TestAnswers(t *testing.T) {
	type line struct {
		name string
		send []byte
		want string
	}
	command := func(t spine.Type) []byte { return spine.AppendCommand(nil, t) }
	version, mode := command(spine.TypeVersion), command(spine.TypeMode)
	data := new(spine.HeadData).AppendFrame(nil)
	lights := new(spine.Lights).AppendFrame(nil)
	block := (&spine.Firmware{Words: 256}).AppendFrame(nil)
	damaged := bytes.Clone(data)
	damaged[20] ^= 1
	unknown := bytes.Clone(version)
	unknown[4] = 'q'

	for _, c := range []struct {
		name  string
		start Start
		lines []line
	}{
		{"application", StartApplication, []line{
			{"power on", nil, "fd"},
			{"version", version, "vr fd"},
			{"data", data, "fd"},
			{"lights", lights, "ak fd"},
			{"damaged", damaged, "nak fd"},
			{"unknown", unknown, "nak fd"},
			{"garbage", []byte("hello"), "fd"},
			{"two at once", append(bytes.Clone(version), lights...), "vr ak fd"},
			{"characters", new(spine.Chars).AppendFrame(nil, spine.ToBody), "nak fd"},
			{"mode change of a running application", mode, "ak fd"},
			{"a block enters the boot-loader", block, "nak bf"},
			{"and back", mode, "ak fd"},
			{"validation enters it and starts the application", command(spine.TypeValidate), "ak fd"},
			{"erasure enters it", command(spine.TypeErase), ""},
		}},
		{"boot-loader", StartBootloader, []line{
			{"power on", nil, "bf"},
			{"quiet", nil, ""},
			{"version", version, "vr"},
			{"data", data, "nak"},
			{"block before erase", block, "nak"},
			{"start", mode, "ak fd"},
		}},
		{"nothing to run", StartEmpty, []line{
			{"power on", nil, "bf"},
			{"no version", version, "nak"},
			{"nothing to start", mode, "nak"},
			{"nothing to validate", command(spine.TypeValidate), "nak"},
			{"block before erase", block, "nak"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, Config{Start: c.start})
			for _, l := range c.lines {
				frames, err := b.step(l.send...)
				if got := types(frames); got != l.want || err != nil {
					t.Errorf("%s: %q, %v; want %q", l.name, got, err, l.want)
				}
			}
		})
	}
}

func TestVersionIsTheLastSixteenBytes(t *testing.T) {
	b := newBench(t, Config{Version: "1.6.0.3331"})
	frames, err := b.step(spine.AppendCommand(nil, spine.TypeVersion)...)
	if err != nil || len(frames) == 0 || string(frames[0].Payload[24:34]) != "1.6.0.3331" {
		t.Errorf("version answer %v, %v", frames, err)
	}
}

func TestShutdownFrameEndsTheRun(t *testing.T) {
	b := newBench(t, Config{})
	if _, err := b.step(spine.AppendCommand(nil, spine.TypeShutdown)...); !errors.Is(err, ErrShutdown) {
		t.Errorf("%v, want %v", err, ErrShutdown)
	}
}

// 200 data frames may go unanswered; the 201st is not sent (VEC-BODY-11, VEC-WDOG-01).
func TestWatchdog(t *testing.T) {
	b := newBench(t, Config{})
	for round := range 3 {
		b.drive(1, spine.HeadData{}) // its own data frame is the first unanswered one
		for i := range vectordriver.WatchdogFrames - 1 {
			if frames, err := b.step(); types(frames) != "fd" || err != nil {
				t.Fatalf("round %d, silent frame %d: %q, %v", round, i+2, types(frames), err)
			}
		}
		// A damaged frame is no word from the head.
		if round == 2 {
			bad := new(spine.HeadData).AppendFrame(nil)
			bad[30] ^= 1
			if _, err := b.step(bad...); !errors.Is(err, ErrPowerCut) || !strings.Contains(err.Error(), "200 data frames") {
				t.Errorf("after 200 silent frames: %v, want %v and why", err, ErrPowerCut)
			}
		}
	}
}

// Left alone, the board drives the lights by itself; the head's next frame takes them back (VEC-WDOG-06).
func TestLightsOfABoardLeftAlone(t *testing.T) {
	b := newBench(t, Config{})
	mine := spine.HeadData{Lights: [4]spine.RGB{{R: 1}, {G: 2}, {B: 3}, {R: 4}}}
	b.drive(1, mine)
	for range lonely - 1 {
		if _, err := b.step(); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.State().Lights; got != mine.Lights {
		t.Errorf("after %d silent frames the lights are %v, want the head's", lonely, got)
	}
	if _, err := b.step(); err != nil {
		t.Fatal(err)
	}
	if got := b.State().Lights; got != lonelyLights {
		t.Errorf("then %v, want the board's own", got)
	}
	if b.drive(1, mine); b.State().Lights != mine.Lights {
		t.Errorf("the head speaks again: %v", b.State().Lights)
	}
}

func TestBoardWaitsForTheHeadToBoot(t *testing.T) {
	for _, start := range []Start{StartApplication, StartBootloader} {
		b := newBench(t, Config{Start: start, BootPatience: 3 * time.Second})
		for i := range 3*second - 5 {
			if _, err := b.step(); err != nil {
				t.Fatalf("start %d, period %d: %v", start, i, err)
			}
		}
		var err error
		for range 10 {
			if _, err = b.step(); err != nil {
				break
			}
		}
		if !errors.Is(err, ErrPowerCut) || !strings.Contains(err.Error(), "no frame from the head") {
			t.Errorf("start %d: %v, want %v because the head no frame from the head", start, err, ErrPowerCut)
		}
	}
}

func TestMotorsMoveTheEncodersUpToTheStops(t *testing.T) {
	b := newBench(t, Config{})
	m := b.drive(2*second, spine.HeadData{Motors: [4]int16{16384, -16384, 32767, -32767}})
	counts := b.cfg.Calibration.CountsPerRad
	state := b.State()
	for i, want := range []float64{0.5 * 0.3 / 0.0145 * 2, -0.5 * 0.3 / 0.0145 * 2, liftStops[1], headStops[0]} {
		got := float64(m.Motors[i].Position) / counts[i]
		if math.Abs(got-want) > 0.05*math.Abs(want) || math.Abs(got-state.Angle[i]) > 0.1 {
			t.Errorf("motor %d turned %.3f rad and stands at %.3f, want about %.3f", i, got, state.Angle[i], want)
		}
	}
	if m.Motors[spine.LeftTread].Delta <= 0 || m.Motors[spine.RightTread].Delta >= 0 || m.Motors[spine.Head].Delta != 0 {
		t.Errorf("deltas %+v: want the left tread forward, the right one back, the head at its stop", m.Motors)
	}
	if m.Motors[spine.Head].Ticks < 1_000_000 {
		t.Errorf("the head stands for %d us, want more than a second", m.Motors[spine.Head].Ticks)
	}

	// Where the parts are survives a power cut; what the encoders count does not.
	b.powerOn()
	again := b.drive(1, spine.HeadData{})
	if now := b.State(); again.Motors[spine.Head].Position != 0 || math.Abs(now.Angle[spine.Head]-headStops[0]) > 0.001 {
		t.Errorf("after power on the head counts %d at %.3f rad, want 0 at %.3f", again.Motors[spine.Head].Position, now.Angle[spine.Head], headStops[0])
	}
}

func TestHaltStopsTheMotors(t *testing.T) {
	b := newBench(t, Config{})
	b.drive(second, spine.HeadData{Motors: [4]int16{32767, 32767}})
	stopped := b.drive(second, spine.HeadData{})
	if still := b.drive(10, spine.HeadData{}); still.Motors[0].Position != stopped.Motors[0].Position {
		t.Errorf("a second after the halt the treads still move: %+v", still.Motors[0])
	}
}

// Idle motors have no power for their encoders and notice a hand all the same (VEC-MCT-17, VEC-PWR-21).
func TestIdleEncodersNoticeAHandButDoNotCount(t *testing.T) {
	b := newBench(t, Config{})
	if m := b.drive(second, spine.HeadData{}); m.Status != spine.SensorsPowered {
		t.Errorf("status %04b after a second without commands, want encoders on", m.Status)
	}
	if m := b.drive(2*second, spine.HeadData{}); m.Status != spine.SensorsPowered|spine.EncodersOff {
		t.Errorf("status %04b after three seconds, want encoders off (VEC-PWR-21)", m.Status)
	}
	b.MoveByHand(spine.Head, 0.2)
	if m := b.drive(1, spine.HeadData{}); m.Status&spine.HeadMoved == 0 || m.Status&spine.LiftMoved != 0 || m.Motors[spine.Head].Position != 0 {
		t.Errorf("head moved by hand: status %04b at count %d, want it noticed and not counted", m.Status, m.Motors[spine.Head].Position)
	}
	if m := b.drive(1, spine.HeadData{}); m.Status&spine.HeadMoved != 0 {
		t.Errorf("status %04b: a movement is told once", m.Status)
	}
	if m := b.drive(1, spine.HeadData{Motors: [4]int16{spine.Lift: 5000}}); m.Status&spine.EncodersOff != 0 {
		t.Errorf("status %04b with the first command: want the encoders on (VEC-PWR-22)", m.Status)
	}
	b.MoveByHand(spine.Head, -0.2)
	if m := b.drive(1, spine.HeadData{}); m.Motors[spine.Head].Position > -90 {
		t.Errorf("head at count %d, want about -100: encoders count a hand while they are on", m.Motors[spine.Head].Position)
	}
}

func TestBatteryRunsDownAndOut(t *testing.T) {
	b := newBench(t, Config{Volts: 3.5, DischargePerMinute: 6}) // 0.1 V a second
	var flags []spine.Power
	for i := range 20 * second {
		frames, err := b.step(new(spine.HeadData).AppendFrame(nil)...)
		if err != nil {
			if !errors.Is(err, ErrPowerCut) || !strings.Contains(err.Error(), "battery") {
				t.Fatalf("%v, want %v because of the battery", err, ErrPowerCut)
			}
			if seconds := float64(i) / float64(second); seconds < 12.5 || seconds > 13.5 {
				t.Errorf("cut after %.1f s, want 3 s to the last threshold and 10 s of warning", seconds)
			}
			want := []spine.Power{0, spine.BelowCritical, spine.BelowCritical | spine.ShutdownImminent}
			if len(flags) != len(want) || flags[0] != want[0] || flags[1] != want[1] || flags[2] != want[2] {
				t.Errorf("flags went %b, want %b", flags, want)
			}
			return
		}
		var m spine.BodyData
		if err := m.ParsePayload(frames[0].Payload); err != nil {
			t.Fatal(err)
		}
		if len(flags) == 0 || flags[len(flags)-1] != m.Power {
			flags = append(flags, m.Power)
		}
	}
	t.Error("the battery never ran out")
}

func TestCharger(t *testing.T) {
	b := newBench(t, Config{Volts: 4.15, OnCharger: true, ChargePerMinute: 3, DischargePerMinute: 0.06})
	if m := b.drive(1, spine.HeadData{}); m.Power != spine.PadsPowered|spine.Charging || m.ChargerRaw < 3600 {
		t.Errorf("on the charger: flags %b, pads %d counts", m.Power, m.ChargerRaw)
	}
	if m := b.drive(1, spine.HeadData{Control: 1}); m.Power != spine.PadsPowered|spine.Charging {
		t.Errorf("flags %b in the period that hears the command, want them from the period before", m.Power)
	}
	if m := b.drive(1, spine.HeadData{Control: 1}); m.Power != spine.PadsPowered {
		t.Errorf("charger disabled: flags %b (VEC-BODY-32)", m.Power)
	}
	if m := b.drive(2*second, spine.HeadData{}); m.Power != spine.PadsPowered || b.State().Volts < 4.19 {
		t.Errorf("full: flags %b at %.2f V, want charging over", m.Power, b.State().Volts)
	}
	b.SetVolts(4.0)
	if m := b.drive(1, spine.HeadData{}); m.Power != spine.PadsPowered|spine.Charging {
		t.Errorf("emptier: flags %b, want charging again", m.Power)
	}
	b.SetCelsius(55)
	if m := b.drive(1, spine.HeadData{}); m.Power != spine.PadsPowered|spine.Overheated || m.Temperature != 55 {
		t.Errorf("hot: flags %b at %d C, want charging paused", m.Power, m.Temperature)
	}
}

func TestCaretakerKeepsARobotAlive(t *testing.T) {
	b := newBench(t, Config{Volts: 3.7, DischargePerMinute: 6, ChargePerMinute: 20, Caretaker: true})
	changes, on := 0, false
	for range 60 * second {
		b.drive(1, spine.HeadData{})
		if s := b.State(); s.OnCharger != on {
			on = s.OnCharger
			changes++
		}
	}
	if changes < 6 {
		t.Errorf("%d changes of the charger in a minute of short days, want on and off again and again", changes)
	}
	drives := spine.HeadData{Motors: [4]int16{1000, 1000}}
	b.drive(1, drives)
	b.SetVolts(lowVolts)
	b.SetCharger(false)
	for range 3 * second {
		if b.drive(1, drives); b.State().OnCharger {
			t.Fatal("taken away while it drives")
		}
	}
	b.drive(6*second, spine.HeadData{})
	if !b.State().OnCharger {
		t.Error("at rest it is not put on its charger")
	}
}

func TestSensorsLosePowerByTheControlWord(t *testing.T) {
	b := newBench(t, Config{})
	first := b.drive(20, spine.HeadData{})
	if first.Status&spine.SensorsPowered == 0 || first.ProxSamples < 2 {
		t.Errorf("status %b, %d distance samples; want power and samples", first.Status, first.ProxSamples)
	}
	off := b.drive(20, spine.HeadData{Control: 2})
	if later := b.drive(20, spine.HeadData{Control: 2}); off.Status&spine.SensorsPowered != 0 || later.ProxSamples != off.ProxSamples {
		t.Errorf("sensors off: status %b, samples %d then %d", off.Status, off.ProxSamples, later.ProxSamples)
	}
}

// VEC-PWR-21: without commands the range finder measures less often; the first command has it measure as before.
func TestIdleRangeFinderMeasuresLess(t *testing.T) {
	b := newBench(t, Config{})
	samples := func(m spine.HeadData) int {
		before := b.drive(1, m).ProxSamples
		return int(b.drive(second, m).ProxSamples - before)
	}
	busy := samples(spine.HeadData{Motors: [4]int16{1000}})
	b.drive(3*second, spine.HeadData{})
	idle := samples(spine.HeadData{})
	again := samples(spine.HeadData{Motors: [4]int16{1000}})
	if busy < 30 || idle > busy/4 || idle < 5 || again < busy-2 {
		t.Errorf("%d samples a second while it drives, %d idle, %d when it drives again", busy, idle, again)
	}
}

// Motors empty the battery faster than standing does (VEC-HW-02).
func TestLoadDrainsTheBattery(t *testing.T) {
	drained := func(m spine.HeadData) float64 {
		b := newBench(t, Config{Volts: 4, DischargePerMinute: 0.6})
		b.drive(10*second, m)
		return 4 - b.State().Volts
	}
	rest, drive := drained(spine.HeadData{}), drained(spine.HeadData{Motors: [4]int16{32767, 32767}})
	if math.Abs(rest-0.1) > 0.005 || math.Abs(drive-0.25) > 0.01 {
		t.Errorf("ten seconds took %.3f V at rest and %.3f V with half the motors at full power, want 0.1 and 0.25", rest, drive)
	}
}

// TestStarved: while a board gets no processor time, its body's time stops too: motors do not run on blindly, and nothing turns.
func TestStarved(t *testing.T) {
	b := New(Config{})
	late := &lateLine{until: monoclock.Now() + 40*vectordriver.Period, head: drives(t)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	late.after = cancel
	late.look = b.Inertial
	if err := b.run(ctx, late); err != nil {
		t.Fatal(err)
	}
	s := b.State()
	if s.Frozen < 30 {
		t.Errorf("%d periods were frozen, of 40 in which it got no time", s.Frozen)
	}
	if most := maxSpeed(&b.cfg.Calibration)[spine.LeftTread] * (8 * vectordriver.Period).Seconds(); s.Angle[spine.LeftTread] <= 0 ||
		s.Angle[spine.LeftTread] > most {
		t.Errorf("its wheel turned by %.2f rad, want up to %.2f", s.Angle[spine.LeftTread], most)
	}
	for _, g := range late.gyro {
		if g != 0 {
			t.Errorf("while it stood still its sensors felt a turn: %v", late.gyro)
		}
	}
}

// lateLine is a head that drives, on a machine that stops for a while after the first turn.
type lateLine struct {
	until time.Duration
	head  []byte
	turns int
	look  func() (accel, gyro [3]float64)
	gyro  [3]float64
	after func()
}

func (l *lateLine) Read() ([]byte, error) {
	switch l.turns++; l.turns {
	case 1:
		return l.head, nil
	case 2: // it has begun to move
		rtlinux.Clock{}.SleepUntil(l.until)
		_, l.gyro = l.look()
	case 4:
		l.after()
	}
	return nil, nil
}

func (l *lateLine) Write([]byte) (bool, error) { return true, nil }

// drives is a frame that gives the left tread all the power.
func drives(t *testing.T) []byte {
	t.Helper()
	var h spine.HeadData
	h.Motors[spine.LeftTread] = math.MaxInt16
	return h.AppendFrame(nil)
}

func BenchmarkTick(b *testing.B) {
	board := New(Config{})
	board.powerOn()
	in := new(spine.HeadData).AppendFrame(nil)
	out := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if out, err = board.tick(1, in, out[:0]); err != nil {
			board.SetVolts(4) // a long benchmark empties the battery
		}
	}
	b.ReportMetric(100*float64(b.Elapsed())/float64(b.N)/float64(vectordriver.Period), "%-of-period")
}
