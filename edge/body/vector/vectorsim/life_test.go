package vectorsim_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/imu"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/body/vector/vectorplant"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/core/rt"
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/sense"
)

var update = flag.Bool("update", false, "write the recordings in testdata again")

// soul is the task of a robot: senses, motion and battery on the frames of its body and what its inertial sensors measure. What it is told to do
// comes from outside, through the tape.
type soul struct {
	senses  *sense.Senses
	motion  *motion.Motion
	report  motion.Report
	duties  motion.Duties
	battery power.Battery
}

// The joints in the plant's motion.Config.
const (
	lift = iota
	head
)

// outside is where that comes from in a robot that lives, an order and two float64, or nothing; a replay has none.
type outside func() []byte

func silent() []byte { return nil }

// The orders.
const (
	orderDrive = iota
	orderHead
	orderLift
	orderStop
	orderHome
	orders
)

func tasks(t testing.TB, tape *rt.Tape, o outside) []rt.Task {
	t.Helper()
	m, err := motion.New(vectorplant.Default().Motion)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sense.New(sense.Default(), 4)
	if err != nil {
		t.Fatal(err)
	}
	r := &soul{senses: s, motion: m}
	return []rt.Task{{Name: "soul", Every: 1, Run: func(f *rt.Frame) { r.step(f, tape.Input(o())) }}}
}

func (r *soul) step(f *rt.Frame, order []byte) {
	var m vectordriver.Sense
	m.Unpack(f.Sense)
	neck, arm := &r.report.Joints[head], &r.report.Joints[lift]
	in := sense.Input{
		Reading:   sense.Reading{At: m.At, Epoch: m.Epoch, Fresh: m.Fresh, Power: m.Power, Touch: m.Touch, TouchAt: m.TouchAt, Button: m.Button},
		HeadAngle: neck.Angle, HeadRate: neck.Speed, LiftHeight: 0.045 + 0.066*math.Sin(arm.Angle), Driven: r.report.Moving,
		Prox:     sense.ProxInput{Metres: m.ProxMetres, At: m.ProxAt},
		Inertial: sense.Inertial{Accel: m.Inertial.Accel, Gyro: m.Inertial.Gyro, At: m.Inertial.At},
	}
	copy(in.Cliffs[:], m.Cliffs[:])
	r.battery = r.battery.Step(power.Input{Volts: m.BatteryVolts, OnCharger: m.Power.Has(body.OnCharger)}, f.DT)
	st, _ := r.senses.Step(f.Now, f.DT, &in)
	gyro := motion.Gyro{Rate: st.Motion.Rate[2], At: in.Inertial.At}
	var stop motion.Reason
	if st.Motion.Falling {
		stop |= motion.Falling
	}
	if st.Motion.PickedUp {
		stop |= motion.Lifted
	}
	if len(order) == 17 {
		v := floats(order[1:])
		until := f.Now + time.Second
		switch order[0] % orders { // refused ones are refused in the replay as well
		case orderDrive:
			_ = r.motion.Drive(v[0], v[1], 1, until)
		case orderHead:
			_ = r.motion.MoveTo(head, v[0], motion.Ramp{})
		case orderLift:
			_ = r.motion.MoveTo(lift, v[1], motion.Ramp{})
		case orderStop:
			r.motion.StopAll()
		case orderHome:
			_ = r.motion.Calibrate(head)
		}
	}
	r.report = *r.motion.Step(&motion.Input{
		Now: f.Now, DT: f.DT, At: f.Taken, Epoch: m.Epoch, Fresh: m.Fresh, Motors: m.Motors[:], Gyro: gyro, Stop: stop, Cliffs: motion.Cliffs(st.Cliffs),
	}, &r.duties)
	var act vectordriver.Act
	copy(act.Motors[:], r.duties[:])
	act.Lights[0].R = uint8(100 * st.TouchRaw)
	act.Lights[1].G = uint8(r.report.Stop)
	act.Lights[2].B = uint8(st.Motion.OffTreads)
	act.Lights[3].R = uint8(r.battery.Level)
	act.Lights[3].G = uint8(64 * r.battery.Volts)
	act.Pack(f.Act)
}

func floats(b []byte) (v [6]float64) {
	for i := range len(b) / 8 {
		v[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return v
}

func appendFloats(b []byte, v ...float64) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

// untilEnd is a line that fails at a given time: the end of a recorded run.
type untilEnd struct {
	*vectorsim.Stepped
	end time.Duration
}

var errEnd = errors.New("the time is over")

func (p untilEnd) Wait(deadline time.Duration) (bool, error) {
	if p.Now() >= p.end {
		return false, errEnd
	}
	return p.Stepped.Wait(min(deadline, p.end))
}

// live runs a whole simulated robot for a time and returns its recording: it drives, moves head and lift, meets cliffs, is lifted and
// touched, halted and resumed, charged and disturbed, as seed says.
func live(t testing.TB, seed uint64, d time.Duration) []byte {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 6))
	s := vectorsim.NewStepped(vectorsim.Config{Seed: seed, Volts: 3.8})
	s.Again = 300 * time.Millisecond
	tape := rt.NewTape(1 << 20)
	var out bytes.Buffer
	var order []byte
	lifted := false
	chip := vectorsim.NewIMU(vectorsim.IMUConfig{Seed: seed}, func() (accel, gyro [3]float64) {
		st := s.State()
		a := sense.Vec{0.05 * rng.NormFloat64(), 0.05 * rng.NormFloat64(), 9.81}
		turn := 0.02 * rng.NormFloat64()
		if lifted {
			a[0], a[2], turn = 3*rng.NormFloat64(), 9+float64(2*rng.NormFloat64()), 0.5*rng.NormFloat64()
		}
		head := st.Angle[spine.Head]
		sin, cos := math.Sin(head), math.Cos(head)
		return [3]float64{float64(a[0]*cos) + float64(a[2]*sin), a[1], float64(a[2]*cos) - float64(a[0]*sin)},
			[3]float64{float64(turn * sin), 0.01 * rng.NormFloat64(), float64(turn * cos)}
	})
	chip.PowerOn(s.Now())
	sensors, err := s.Sensors(chip, imu.Config{Expected: true})
	if err != nil {
		t.Fatal(err)
	}
	o := func() []byte {
		b := order
		order = nil
		return b
	}
	loop, err := rt.New(rt.Config{Tape: tape}, s, tasks(t, tape, o)...)
	if err != nil {
		t.Fatal(err)
	}
	s.Each = func(time.Duration) {
		if _, err := tape.Flush(&out); err != nil {
			t.Fatal(err)
		}
		switch rng.IntN(400) {
		case 0, 1, 2, 3, 4, 5:
			order = appendFloats([]byte{byte(rng.IntN(orders))}, 0.4*rng.Float64()-0.2, 0.8*rng.Float64()-0.2)
		case 6:
			lifted = !lifted
		case 7:
			s.SetCliff(rng.IntN(4), uint16(600*rng.IntN(2)))
		case 8:
			s.SetTouch(uint16(500 + 1500*rng.IntN(2)))
		case 9:
			s.SetCharger(rng.IntN(2) == 0)
		case 10:
			loop.Halt()
		case 11, 12, 13:
			loop.Post(rt.Command{Kind: rt.Resume})
		case 15:
			s.SetNoise(vectorsim.Noise{Loss: 0.1 * float64(rng.IntN(2)), Corrupt: 0.1 * float64(rng.IntN(2)), ByteNoise: 1e-4 * float64(rng.IntN(2))})
		case 16:
			s.Stall(time.Duration(rng.IntN(300)) * time.Millisecond)
		case 17:
			s.SetProx(uint16(rng.IntN(1500)))
		case 18:
			s.SetButton(rng.IntN(2) == 0)
		case 19:
			s.MoveByHand(rng.IntN(4), rng.Float64()-0.5)
		case 20:
			if rng.IntN(3) == 0 {
				chip.SetFault(vectorsim.IMUFault(rng.IntN(int(vectorsim.IMUForgets)+1)), s.Now())
			} else {
				chip.SetFault(vectorsim.IMUSound, s.Now())
			}
		}
		if rng.IntN(10_000) == 0 {
			s.BrownOut()
		}
	}
	port := untilEnd{s, s.Now() + d}
	for s.Now() < port.end {
		drv, err := vectordriver.Open(t.Context(), vectordriver.Config{Device: "simulated", Port: port, Sensors: sensors})
		if err != nil {
			if !errors.Is(err, body.ErrLink) && !errors.Is(err, vectordriver.ErrNoBody) && !errors.Is(err, vectordriver.ErrNoApplication) {
				t.Fatal(err)
			}
			continue
		}
		if err := loop.Run(t.Context(), drv); !errors.Is(err, body.ErrLink) && !errors.Is(err, rt.ErrSilent) {
			t.Fatal(err)
		}
		if err := drv.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tape.Flush(&out); err != nil {
		t.Fatal(err)
	}
	if tape.Lost() > 0 {
		t.Fatalf("%d records lost", tape.Lost())
	}
	return out.Bytes()
}

// replay runs the same tasks on a recording.
func replay(t testing.TB, recording io.Reader) (rt.Replayed, uint64) {
	t.Helper()
	moved := uint64(0)
	done, err := rt.Replay(recording, rt.Config{}, func(tape *rt.Tape, _ body.Description) []rt.Task { return tasks(t, tape, silent) },
		func(s *rt.Snapshot) {
			var act vectordriver.Act
			if act.Unpack(&s.Act); act.Motors != [4]float64{} {
				moved++
			}
		})
	if err != nil || done.Cut != nil {
		t.Fatalf("%+v, %v", done, err)
	}
	return done, moved
}

// TestARunIsReplayedBitByBit: a recorded run of a simulated robot replays bit by bit (issue: what must hold 5).
func TestARunIsReplayedBitByBit(t *testing.T) {
	lives, length := uint64(3), time.Minute
	switch {
	case os.Getenv("KENNEL_SOAK") == "1":
		lives, length = 20, 20*time.Minute
	case testing.Short():
		lives, length = 1, 10*time.Second
	}
	for seed := range lives {
		recording := live(t, seed, length)
		done, moved := replay(t, bytes.NewReader(recording))
		if periods := uint64(length / vectordriver.Period); done.Steps < periods/2 || moved < done.Steps/20 {
			t.Errorf("seed %d: %d steps replayed, in %d of them a motor had power; want a life of %d periods", seed, done.Steps, moved, periods)
		}
	}
}

// A run recorded on amd64 is replayed here, whatever here is; and a run lived here is, byte for byte, the one that was lived there. Under the
// emulator (make arm) here is an ARM v7 (issue: what must hold 5).
func TestRunsAreTheSameOnEveryProcessor(t *testing.T) {
	file, sums := filepath.Join("testdata", "life.krt.gz"), filepath.Join("testdata", "life.sha256")
	const long, short = 30 * time.Second, 8 * time.Second
	sum := sha256.Sum256(live(t, 42, long))
	got := hex.EncodeToString(sum[:])
	if *update {
		var b bytes.Buffer
		w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(live(t, 42, short)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(file, b.Bytes(), 0o644),
			os.WriteFile(sums, []byte(got+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if done, moved := replay(t, r); done.Steps < 1000 || moved < 50 {
		t.Errorf("%+v, in %d steps a motor had power: want a run of 8 s in which something moves", done, moved)
	}
	want, err := os.ReadFile(sums)
	if err != nil {
		t.Fatal(err)
	}
	if got != strings.TrimSpace(string(want)) {
		t.Errorf("30 s lived here have the sum %s, want %s (-update writes it again, on amd64)", got, want)
	}
}
