package vectordriver_test

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/bodytest"
	"kennel/edge/body/monoclock"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/faultcode"
	"kennel/edge/sim/uart"
)

// rig is a simulated board on a real pseudo-terminal.
type rig struct {
	*vectorsim.Board
	t    *testing.T
	pty  *uart.PTY
	stop func() // takes the board off the wire, as if its cable were pulled
	end  chan error
}

func newRig(t *testing.T, cfg vectorsim.Config) *rig {
	t.Helper()
	pty, err := uart.OpenPTY()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Board: vectorsim.New(cfg), t: t, pty: pty}
	t.Cleanup(func() {
		r.stop()
		_ = pty.Close() // a test may have closed it
	})
	r.stop = func() {}
	r.powerOn()
	return r
}

// powerOn presses the button.
func (r *rig) powerOn() {
	ctx, cancel := context.WithCancel(context.Background())
	end := make(chan error, 1)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		end <- r.Run(ctx, r.pty.Master)
	}()
	r.end = end
	r.stop = func() {
		cancel()
		<-gone
	}
}

// ended waits for the power to go off and returns why it did.
func (r *rig) ended() error {
	r.t.Helper()
	select {
	case err := <-r.end:
		return err
	case <-time.After(20 * time.Second):
		r.t.Fatalf("the board is still on: %+v", r.State())
		return nil
	}
}

func (r *rig) await(what string, cond func(vectorsim.State) bool) vectorsim.State {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	s, err := r.Await(ctx, cond)
	if err != nil {
		r.t.Fatalf("%s: %v; board %+v", what, err, s)
	}
	return s
}

func (r *rig) open(change ...func(*vectordriver.Config)) *vectordriver.Driver {
	r.t.Helper()
	cfg := vectordriver.Config{Device: r.pty.SlavePath, Timeout: 20 * time.Second}
	for _, fn := range change {
		fn(&cfg)
	}
	d, err := vectordriver.Open(r.t.Context(), cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = d.Close() }) // a test may have closed it
	return d
}

func TestBody(t *testing.T) {
	for _, c := range []struct {
		name  string
		board vectorsim.Config
		hold  bool
	}{
		{"quiet line", vectorsim.Config{}, false},
		{"from the boot-loader", vectorsim.Config{Start: vectorsim.StartBootloader}, false},
		{"5 % lost", vectorsim.Config{Seed: 1, Noise: vectorsim.Noise{Loss: 0.05}}, false},
		{"5 % damaged", vectorsim.Config{Seed: 2, Noise: vectorsim.Noise{Corrupt: 0.05}}, false},
		{"20 % lost and damaged", vectorsim.Config{Seed: 3, Noise: vectorsim.Noise{Loss: 0.1, Corrupt: 0.1}}, false},
		{"holding the processor", vectorsim.Config{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bodytest.Run(t, func(t *testing.T) body.Body {
				return newRig(t, c.board).open(func(cfg *vectordriver.Config) { cfg.HoldProcessor = c.hold })
			})
		})
	}
}

func TestDescribe(t *testing.T) {
	d := newRig(t, vectorsim.Config{Version: "1.6.0.3331"}).open()
	got := d.Describe()
	if got.Species != "vic" || got.Firmware != "1.6.0.3331" || got.Rhythm != 5120*time.Microsecond || got.Stale != 50*time.Millisecond {
		t.Errorf("Describe() = %+v", got)
	}
	for i, want := range []string{"wheelL", "wheelR", "arm", "headPitch"} {
		if drive := got.Drives[i]; drive != (body.Drive{Device: want, Takes: body.Duty}) {
			t.Errorf("drive %d is %+v, want %s by its duty", i, drive, want)
		}
	}
}

// TestPack: what the loop carries holds every field of the body's own frames, each under its own channel or drive.
func TestPack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var want, got vectordriver.Sense
	fill(rng, reflect.ValueOf(&want).Elem())
	want.Inertial.At, want.Power = want.At-1, body.OnCharger|body.SensorsOff
	var s body.Sense
	want.Pack(&s)
	if got.Unpack(&s); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	var act, back vectordriver.Act
	fill(rng, reflect.ValueOf(&act).Elem())
	act.Off = vectordriver.SensorsPart
	var a body.Act
	act.Pack(&a)
	if back.Unpack(&a); back != act {
		t.Errorf("got  %+v\nwant %+v", back, act)
	}
	a.Still()
	if back.Unpack(&a); back.Motors != [4]float64{} || back.Lights != act.Lights || back.Off != act.Off {
		t.Errorf("without power for motors: %+v", back)
	}
	if back.Unpack(new(body.Act)); back != (vectordriver.Act{}) {
		t.Errorf("no goals: %+v, want all at rest and all parts on", back)
	}
}

// fill gives every field another value.
func fill(rng *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(rng, v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(rng, v.Index(i))
		}
	case reflect.Float64:
		v.SetFloat(rng.Float64())
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Int64:
		v.SetInt(int64(rng.Uint32()) + 2)
	default:
		v.SetUint(rng.Uint64())
	}
}

func TestHaltReachesTheBoardWithinOnePeriod(t *testing.T) {
	r := newRig(t, vectorsim.Config{})
	d := r.open()
	var act vectordriver.Act
	act.Motors = [4]float64{0.5, -0.5, 0.2, 0.2}
	for range 5 {
		until(t, d, &act, "driving", func(s *vectordriver.Sense) bool { return r.State().Duty[0] > 0.49 })
		before := r.State()
		if err := d.Halt(); err != nil {
			t.Fatal(err)
		}
		sent := r.State()
		off := r.await("motors off", func(s vectorsim.State) bool { return s.Duty == [4]float64{} })
		// The frame that may lie in the line when Halt writes, and Halt's own: none with power comes after it.
		if n := off.Heard - before.Heard; n > 2 {
			t.Errorf("motors off after %d frames from the head, want Halt to be the next or next but one", n)
		}
		// One period is under way when Halt has written, and the next one reads it. The board says when; the test may look later.
		if off.Off > sent.Frames+2 {
			t.Errorf("motors off %d frames after Halt, want at most 2", off.Off-sent.Frames)
		}
	}
}

func TestSensorsArriveInSI(t *testing.T) {
	r := newRig(t, vectorsim.Config{Volts: 3.9, DischargePerMinute: -1})
	d := r.open()
	var idle vectordriver.Act
	s := until(t, d, &idle, "a distance", func(s *vectordriver.Sense) bool { return s.ProxAt > 0 })
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if got < want-tolerance || got > want+tolerance {
			t.Errorf("%s = %v, want %v +- %v", what, got, want, tolerance)
		}
	}
	near("battery", s.BatteryVolts, 3.9, 0.01)
	near("distance", s.ProxMetres, 0.4, 0.003)
	near("touch", s.Touch, 500/4095.0, 0.001)
	near("cliff", s.Cliffs[2], 600/1024.0, 0.01)
	if s.Power != 0 || s.Fault != 0 || s.Button || s.ChargerVolts != 0 {
		t.Errorf("a quiet robot reports %+v", s)
	}

	r.SetCharger(true)
	s = until(t, d, &idle, "charging", func(s *vectordriver.Sense) bool { return s.Power == body.OnCharger|body.Charging })
	near("charger", s.ChargerVolts, 5, 0.01)
	r.SetButton(true)
	r.SetCliff(spine.BackLeft, 10)
	until(t, d, &idle, "button and cliff", func(s *vectordriver.Sense) bool { return s.Button && s.Cliffs[2] < 0.02 && s.Cliffs[1] > 0.5 })

	r.SetTouch(4095) // saturated: the last good reading stays (VEC-BODY-27)
	refused := d.Link().TouchRefused
	s = until(t, d, &idle, "a refused touch", func(*vectordriver.Sense) bool { return d.Link().TouchRefused >= refused+10 })
	near("touch while saturated", s.Touch, 620/4095.0, 0.001) // on the charger (VEC-HW-16)
	if s.TouchAt >= s.At {
		t.Errorf("touch measured at %v, frame read at %v: want the older time", s.TouchAt, s.At)
	}

	r.SetProx(0) // nothing in sight
	s = until(t, d, &idle, "a refused distance", func(*vectordriver.Sense) bool { return d.Link().ProxRefused >= 3 })
	near("distance of what is not in sight", s.ProxMetres, 8.19, 0.003)
	r.SetProx(100)
	until(t, d, &idle, "a nearer distance", func(s *vectordriver.Sense) bool { return s.ProxMetres < 0.11 })
}

// headSensors fakes the inertial sensors in the head.
type headSensors struct {
	in     body.Inertial
	broken bool
}

func (s *headSensors) Newest(in *body.Inertial) bool {
	*in = s.in
	return s.broken
}

// TestInertialSensorsComeWithTheFrame: their sample is in each measurement; broken ones are fault 960 (VEC-IMU-16), unless the body has another.
func TestInertialSensorsComeWithTheFrame(t *testing.T) {
	for fault, cfg := range map[faultcode.Code]vectorsim.Config{faultcode.IMU: {}, faultcode.TimeOfFlight: {FaultDevice: spine.FaultProximity}} {
		sim := vectorsim.NewStepped(cfg)
		head := &headSensors{in: body.Inertial{Accel: [3]float64{1, 2, 3}, Gyro: [3]float64{4, 5, 6}, At: 7}}
		d, err := vectordriver.Open(t.Context(), vectordriver.Config{Device: "simulated", Port: sim, Sensors: head})
		if err != nil {
			t.Fatal(err)
		}
		var s vectordriver.Sense
		read := func() {
			t.Helper()
			if err := d.ReadSense(&s, sim.Now()+time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if read(); s.Inertial != head.in || s.Fault != 0 && fault == faultcode.IMU {
			t.Errorf("%+v, fault %d", s.Inertial, s.Fault)
		}
		head.in, head.broken = body.Inertial{}, true
		if read(); s.Inertial.At != 0 || s.Fault != uint16(fault) {
			t.Errorf("broken: %+v, fault %d, want %d", s.Inertial, s.Fault, fault)
		}
		head.broken = false
		if read(); s.Fault != 0 && fault == faultcode.IMU {
			t.Errorf("mended: fault %d", s.Fault)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A driver and a board of the same layout understand each other; of different ones, lights, battery flags and distances are wrong.
func TestLayout(t *testing.T) {
	for _, c := range []struct {
		name        string
		head, board spine.Layout
		same        bool
	}{
		{"genuine", spine.Genuine, spine.Genuine, true},
		{"book", spine.Book, spine.Book, true},
		{"one each", spine.Genuine, spine.Book, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			sim := vectorsim.NewStepped(vectorsim.Config{Layout: c.board, OnCharger: true})
			d, err := vectordriver.Open(t.Context(), vectordriver.Config{Device: "simulated", Port: sim, Layout: c.head})
			if err != nil {
				t.Fatal(err)
			}
			var s vectordriver.Sense
			act := vectordriver.Act{Lights: [4]vectordriver.Light{{R: 1}, {G: 2}, {B: 3}, {R: 4}}}
			for range 100 {
				if err := errors.Join(d.ReadSense(&s, sim.Now()+time.Second), d.WriteAct(&act)); err != nil {
					t.Fatal(err)
				}
			}
			lit := sim.State().Lights == [4]spine.RGB{{B: 3}, {G: 2}, {R: 1}, {R: 4}}
			if power, near := s.Power.Has(body.OnCharger), math.Abs(s.ProxMetres-0.4) < 0.01; lit != c.same || power != c.same || near != c.same {
				t.Errorf("lights %t, charger %t, distance %.3f m; want all right: %t", lit, power, s.ProxMetres, c.same)
			}
		})
	}
}

// The board reports in a single frame that a hand moved the head while its encoder slept
// (VEC-BODY-24). The next Read reports it even if a newer frame overtook that one, or if the line
// lost it.
func TestUnseenMotionIsNotLost(t *testing.T) {
	for _, c := range []struct {
		name   string
		loss   float64 // of the frame that tells it
		late   int     // periods that the head reads nothing after it
		moved  bool
		unseen [2]bool // head, lift: in the next measurement
	}{
		{"read at once", 0, 0, true, [2]bool{true, false}},
		{"overtaken", 0, 3, true, [2]bool{true, false}},
		{"lost", 1, 0, true, [2]bool{true, true}},
		{"lost, the next one overtaken", 1, 3, true, [2]bool{true, true}},
		{"nothing moved", 0, 3, false, [2]bool{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sim := vectorsim.NewStepped(vectorsim.Config{})
			d, err := vectordriver.Open(t.Context(), vectordriver.Config{Device: "simulated", Port: sim})
			if err != nil {
				t.Fatal(err)
			}
			var s vectordriver.Sense
			read := func() (unseen [2]bool) {
				t.Helper()
				if err := errors.Join(d.ReadSense(&s, sim.Now()+time.Second), d.WriteAct(&vectordriver.Act{})); err != nil {
					t.Fatal(err)
				}
				return [2]bool{s.Motors[spine.Head].Unseen, s.Motors[spine.Lift].Unseen}
			}
			for s.Seq < 1000 { // until they sleep
				if unseen := read(); unseen != [2]bool{} {
					t.Fatalf("unseen %v in frame %d, want nothing moved", unseen, s.Seq)
				}
			}
			if c.moved {
				sim.MoveByHand(spine.Head, 0.2)
			}
			sim.SetNoise(vectorsim.Noise{Loss: c.loss})
			sim.SleepUntil(sim.Now() + vectordriver.Period)
			sim.SetNoise(vectorsim.Noise{})
			sim.SleepUntil(sim.Now() + time.Duration(c.late)*vectordriver.Period)
			if got := read(); got != c.unseen {
				t.Errorf("head and lift moved unseen: %v, want %v", got, c.unseen)
			}
			if got := read(); got != [2]bool{} {
				t.Errorf("in the frame after that: %v, want it told once", got)
			}
		})
	}
}

func TestLightsAndDutyArriveAtTheBoard(t *testing.T) {
	r := newRig(t, vectorsim.Config{})
	d := r.open()
	var act vectordriver.Act
	act.Lights = [4]vectordriver.Light{{R: 1}, {G: 2}, {B: 3}, {R: 4, G: 5, B: 6}}
	act.Motors = [4]float64{1, -2, 0.5, 0}
	until(t, d, &act, "commands", func(*vectordriver.Sense) bool {
		s := r.State()
		return s.Lights == [4]spine.RGB{{B: 3}, {G: 2}, {R: 1}, {R: 4, G: 5, B: 6}} && // the wire counts from the back
			s.Duty[0] == 1 && s.Duty[1] == -1 && s.Duty[2] > 0.499 && s.Duty[2] < 0.501 && s.Duty[3] == 0
	})
}

// received returns the data frames that wait at the board's end of the wire.
func received(t *testing.T, r *rig) ([]spine.HeadData, spine.Counters) {
	t.Helper()
	p := spine.NewParser(spine.ToBody)
	var frames []spine.HeadData
	for {
		n, err := r.pty.Master.Read(p.Space())
		if n <= 0 {
			if err != nil && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "unavailable") {
				t.Fatal(err)
			}
			return frames, p.Counters()
		}
		p.Fill(n)
		for f, ok := p.Next(); ok; f, ok = p.Next() {
			var m spine.HeadData
			if f.Type == spine.TypeData && m.ParsePayload(f.Payload) == nil {
				frames = append(frames, m)
			}
		}
	}
}

func TestLinkCountsWhatNoiseDid(t *testing.T) {
	r := newRig(t, vectorsim.Config{Seed: 4, Noise: vectorsim.Noise{Loss: 0.1, Corrupt: 0.2}})
	d := r.open()
	var act vectordriver.Act
	until(t, d, &act, "noise", func(*vectordriver.Sense) bool {
		l := d.Link()
		return l.Frames > 100 && l.Corrupt > 3 && l.SkippedBytes > 1000 && l.Refused > 3
	})
	if s := r.State(); s.Bad == 0 || s.Heard == 0 {
		t.Errorf("the board heard %d good and %d bad frames, want some of each", s.Heard, s.Bad)
	}
}

func TestTapSeesEveryFrame(t *testing.T) {
	r := newRig(t, vectorsim.Config{})
	var raw uint64
	var louder int16
	d := r.open(func(cfg *vectordriver.Config) {
		cfg.Tap = func(m *spine.BodyData, _ time.Duration) {
			raw++
			for _, v := range m.Mics {
				louder = max(louder, v)
			}
		}
	})
	until(t, d, new(vectordriver.Act), "frames", func(*vectordriver.Sense) bool { return d.Link().Frames > 50 })
	if raw != d.Link().Frames || louder == 0 {
		t.Errorf("tapped %d frames of %d, loudest sample %d", raw, d.Link().Frames, louder)
	}
}

func BenchmarkStep(b *testing.B) {
	pty, err := uart.OpenPTY()
	if err != nil {
		b.Fatal(err)
	}
	defer pty.Close()
	board := vectorsim.New(vectorsim.Config{})
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- board.Run(ctx, pty.Master) }()
	defer func() { cancel(); <-done }()
	d, err := vectordriver.Open(ctx, vectordriver.Config{Device: pty.SlavePath})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	var s vectordriver.Sense
	var a vectordriver.Act
	b.ReportAllocs()
	for b.Loop() {
		if err := d.ReadSense(&s, monoclock.Now()+time.Second); err != nil {
			b.Fatal(err)
		}
		if err := d.WriteAct(&a); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(d.Link().Overtaken)/float64(d.Link().Frames), "overtaken/frame")
}
