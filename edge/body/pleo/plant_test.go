package pleo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/bodytest"
	"kennel/edge/body/pleo"
	"kennel/edge/body/pleo/format"
	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/lifeos/lifeostest"
	"kennel/edge/body/pleo/pleosim"
	"kennel/edge/core/control"
	"kennel/edge/core/control/controltest"
	"kennel/edge/motion"
	"kennel/edge/sim/uart"
	"kennel/infra/api/poke"
	"kennel/infra/testexec"
	"kennel/infra/testwait"
)

const (
	ms  = time.Millisecond
	deg = math.Pi / 180
)

// place is a Pleo in simulated time: loop, control and driver over the text of its monitor.
type place struct {
	*controltest.Place
	sim    *pleosim.Stepped
	driver *pleo.Driver
}

func run(t *testing.T, cfg pleosim.Config, script func(p *place)) {
	t.Helper()
	r, err := pleosim.NewRobot(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{sim: pleosim.NewStepped(r)}
	m, err := pleo.Model()
	if err != nil {
		t.Fatal(err)
	}
	if p.driver, err = pleo.Open(t.Context(), pleo.Config{Device: "simulated", Port: p.sim}); err != nil {
		t.Fatal(err)
	}
	controltest.Run(t, m, p.sim, p.driver, func(c *controltest.Place) {
		p.Place = c
		script(p)
	})
}

func (p *place) poke(words ...string) {
	p.Helper()
	k, err := poke.Poke{}.Named(words...)
	if err == nil {
		err = p.sim.Poke(k)
	}
	if err != nil {
		p.Fatal(err)
	}
}

// beeper beeps when the head is touched, and wags its tail all the time.
const beeper = `#include <Sensor.inc>
#include <Sound.inc>
#include <Joint.inc>
public on_sensor(time, sensor_name: sensor, value) {
	if (sensor == SENSOR_HEAD && value == 1) sound_play_file("beep");
	return true;
}
`

const wagger = `#include <Joint.inc>
main() { for (;;) { joint_move_to(JOINT_TAIL_HORIZONTAL, 30); sleep 400; joint_move_to(JOINT_TAIL_HORIZONTAL, -30); sleep 400; } }
`

// card returns a card with scripts and a beep.
func card(t *testing.T, scripts map[string]string) pleosim.Card {
	t.Helper()
	sound := format.Sound{Version: 1, Name: "beep", Bits: 8, Channels: 1, Rate: 11025, Loops: 1, Samples: format.AllSamples, Data: slices.Repeat([]byte{64, 192}, 1102)}
	usf, err := sound.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := pleosim.Card{"sounds/beep.usf": usf}
	for name, src := range scripts {
		c[name+".amx"] = lifeostest.Compile(t, src)
	}
	return c
}

// bodyVar is the folder in which this binary is a simulated Pleo.
const bodyVar = "KENNEL_TEST_PLEO"

// TestMain runs the tests, or a Pleo at the end of the socket "body" until its standard input ends. LifeOS allocates, so it has to be another process than a
// driver that must not.
func TestMain(m *testing.M) {
	if dir := os.Getenv(bodyVar); dir != "" {
		if err := simulate(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func simulate(dir string) error {
	// Where each joint can move as the suite asks.
	r, err := pleosim.NewRobot(pleosim.Config{Angles: map[lifeos.Joint]float64{lifeos.JointLeftElbow: 45, lifeos.JointRightElbow: 45}})
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	line, err := uart.ListenSocket(root, "body")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return errors.Join(r.Run(ctx, line, nil), line.Close())
}

// few is a body of which a light test moves only the first joints.
type few struct{ *pleo.Driver }

func (f few) Describe() body.Description {
	d := f.Driver.Describe()
	if os.Getenv("KENNEL_SOAK") != "1" {
		d.Drives = d.Drives[:2]
	}
	return d
}

// TestBody: the driver is a body as every other, on a socket in real time.
func TestBody(t *testing.T) {
	bodytest.Run(t, func(t *testing.T) body.Body {
		dir := t.TempDir()
		cmd := testexec.Command(context.Background(), t, []string{bodyVar + "=" + dir})
		end, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(end.Close(), cmd.Wait()); err != nil {
				t.Error(err)
			}
		})
		device := filepath.Join(dir, "body")
		testwait.Until(t, time.Minute, "its socket", func() error { _, err := os.Stat(device); return err })
		d, err := pleo.Open(t.Context(), pleo.Config{Device: device})
		if err != nil {
			t.Fatal(err)
		}
		if f := d.Describe().Firmware; f != "1.1" {
			t.Errorf("firmware %q, want 1.1", f)
		}
		return few{d}
	})
}

// TestJoints: the driver knows the joints as LifeOS does, by their ids (PLEO-JNT-01), and every joint goes where
// its standard name is told, with the sign of the device model (PLEO-JNT-12).
func TestJoints(t *testing.T) {
	run(t, pleosim.Config{}, func(p *place) {
		p.Claim("robot.body")
		goals, want := map[string]float64{}, map[lifeos.Joint]float64{}
		for j := range lifeos.JointCount {
			k := j.Kind()
			name := p.driver.Describe().Drives[j].Device
			target, err := p.Control.Model().Tree.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range pleo.Parts() {
				if got := part.Props["native"]; "robot."+part.Path == target.Nodes[0].Full() && got.Text != "JOINT_"+k.Name {
					t.Errorf("drive %d moves %s, want %s", j, got.Text, k.Name)
				}
			}
			want[j] = (k.Min + 3*k.Max) / 4
			if v := -want[j] * deg; j == lifeos.JointHead {
				goals[name+".val"] = -v
			} else {
				goals[name+".angle"] = v
			}
		}
		if r := p.Move(p.Goals(goals)); r.Outcome != motion.Done {
			t.Fatalf("%+v", r)
		}
		for j, deg := range p.sim.State().Angles {
			if math.Abs(deg-want[j]) > 1.5 {
				t.Errorf("%v is at %v degrees, want %v", j, deg, want[j])
			}
		}
		for name := range goals { // beyond the range
			goals[name] = -9
		}
		p.Move(p.Goals(goals))
		for j, deg := range p.sim.State().Angles {
			end := j.Kind().Max
			if j == lifeos.JointHead {
				end = j.Kind().Min
			}
			if math.Abs(deg-end) > 1.5 {
				t.Errorf("%v went to %v degrees, its range ends at %v", j, deg, end)
			}
		}
	})
}

// TestOwners: a joint that a program claims is held against the Pleo's own application, and given back to it afterwards; the others stay with it
// (PLEO-JNT-10).
func TestOwners(t *testing.T) {
	run(t, pleosim.Config{Card: card(t, map[string]string{"main": wagger})}, func(p *place) {
		swing := func(name string) (low, high float64) {
			low, high = math.Inf(1), math.Inf(-1)
			for range 50 {
				p.Wait(40 * ms)
				v := p.Value(name)
				low, high = min(low, v), max(high, v)
			}
			return low, high
		}
		if low, high := swing("tailYaw.angle"); low > -0.3 || high < 0.3 || p.Value("robot.moving") != 1 {
			t.Errorf("it wags from %v to %v", low, high)
		}
		p.Claim("robot.body.tail.yaw")
		p.Move(p.Goals(map[string]float64{"tailYaw.angle": 1}))
		if low, high := swing("tailYaw.angle"); low < 0.95 || high > 1.05 {
			t.Errorf("a tail that is held at 1 rad swings from %v to %v", low, high)
		}
		if r := p.Ask(p.Goals(map[string]float64{"neckYaw.angle": 0.3})); r.Code != control.NotHeld {
			t.Errorf("a joint without a claim: %+v", r)
		}
		if r := p.Ask(control.Order{Kind: control.Go, A: 1, For: time.Second}); r.Code != control.Unable && r.Code != control.NotHeld {
			t.Errorf("it goes: %+v", r)
		}
		p.Control.Post(control.Order{Kind: control.Drop, Owner: controltest.Alice})
		p.Wait(time.Second)
		if low, high := swing("tailYaw.angle"); low > -0.3 || high < 0.3 {
			t.Errorf("given back it wags from %v to %v", low, high)
		}
	})
}

// TestSenses: what a hand does is in the tree and an event, and the application hears it too: a touch of the head beeps (GOSTAI-MAP-P-16 to GOSTAI-MAP-P-27,
// GOSTAI-MAP-P-30, GOSTAI-MAP-P-34, GOSTAI-MAP-P-35; part of GOSTAI-MAP-P-33).
func TestSenses(t *testing.T) {
	run(t, pleosim.Config{Card: card(t, map[string]string{"sensors": beeper})}, func(p *place) {
		p.poke("touch")
		p.Wait(200 * ms)
		if p.Value("headTouchU.pressure") != 1 || p.Value("speaker.playing") != 1 || p.Value("speaker.remain") <= 0 {
			t.Errorf("touched: %v, playing %v", p.Value("headTouchU.pressure"), p.Value("speaker.playing"))
		}
		p.Wait(3 * time.Second)
		if p.Value("headTouchU.pressure") != 0 || p.Value("speaker.playing") != 0 || p.sim.State().Samples != 2204 || !p.Happened("robot.touched") || !p.Happened("sound.began") {
			t.Errorf("%v samples, events %+v", p.sim.State().Samples, p.Events)
		}
		for side, slot := range map[string]string{poke.Chin: "headTouchD", poke.Neck: "bodyTouchF", poke.Rump: "bodyTouchB", poke.ForeLeft: "legTouchFL",
			poke.ForeRight: "legTouchFR", poke.HindLeft: "legTouchBL", poke.HindRight: "legTouchBR"} {
			p.poke("pat", side)
			p.Wait(100 * ms)
			if p.Value(slot+".pressure") != 1 {
				t.Errorf("patted at its %s, %s is %v", side, slot, p.Value(slot+".pressure"))
			}
			p.Wait(400 * ms)
			if p.Value(slot+".pressure") != 0 {
				t.Errorf("%s stays touched", slot)
			}
		}
		feet := []string{"footTouchFL.pressure", "footTouchFR.pressure", "footTouchBL.pressure", "footTouchBR.pressure"}
		p.poke("lift")
		p.Wait(time.Second)
		if slices.ContainsFunc(feet, func(f string) bool { return p.Value(f) != 0 }) || p.Report.Posture != "off the floor" || !p.Happened("robot.lifted") {
			t.Errorf("lifted it is %q, events %+v", p.Report.Posture, p.Events)
		}
		p.poke("shake")
		p.Wait(100 * ms)
		if p.Value("shake.val") < 150 {
			t.Errorf("shaken: %v", p.Value("shake.val"))
		}
		p.poke("put")
		p.Wait(time.Second)
		if slices.ContainsFunc(feet, func(f string) bool { return p.Value(f) != 1 }) || p.Report.Posture != "on its feet" || p.Value("tilt.val") != 1 {
			t.Errorf("put down it is %q", p.Report.Posture)
		}
		p.sim.Set(lifeos.SensorSoundDirection, 45) // to its right
		p.sim.Set(lifeos.SensorSoundLoud, 50)
		p.sim.Set(lifeos.SensorLight, 20)
		p.sim.Set(lifeos.SensorObject, 80)
		p.Wait(100 * ms)
		for slot, want := range map[string]float64{"microL.val->direction": -45 * deg, "microL.val->loudness": 0.5, "light.val": 20, "ir.val->object": 0.8, "temperature.temperature": 22} {
			if math.Abs(p.Value(slot)-want) > 1e-9 {
				t.Errorf("%s is %v, want %v", slot, p.Value(slot), want)
			}
		}
	})
}

// TestCard: a card that is inserted while it runs begins its application, and one that is taken out ends it (PLEO-APP-02, PLEO-HST-02).
func TestCard(t *testing.T) {
	run(t, pleosim.Config{}, func(p *place) {
		p.Wait(100 * ms)
		touch := func() int {
			before := p.sim.State().Samples
			p.poke("pat", poke.Head)
			p.Wait(time.Second)
			return p.sim.State().Samples - before
		}
		if n := touch(); n != 0 {
			t.Errorf("without a card it plays %d samples", n)
		}
		if err := p.sim.Insert(card(t, map[string]string{"sensors": beeper})); err != nil {
			t.Fatal(err)
		}
		p.Wait(100 * ms)
		if n := touch(); n != 2204 || !p.Happened("card.inserted") || !p.Happened("application.began") {
			t.Errorf("with a card it plays %d samples, events %+v", n, p.Events)
		}
		if _, err := p.sim.Eject(); err != nil {
			t.Fatal(err)
		}
		p.Wait(3 * time.Second)
		if n := touch(); n != 0 || !p.Happened("card.removed") || !p.Happened("application.ended") {
			t.Errorf("without its card it plays %d samples, events %+v", n, p.Events)
		}
		if _, err := p.sim.Eject(); !errors.Is(err, pleosim.ErrSlot) {
			t.Errorf("a slot that is empty: %v", err)
		}
	})
}

// TestBattery: charge, current and temperature are in the tree, a low battery is an event, and an empty one is the end, until the charger has filled it
// (part of PLEO-SEN-02, PLEO-SEN-39; GOSTAI-MAP-P-38, GOSTAI-MAP-P-39).
func TestBattery(t *testing.T) {
	run(t, pleosim.Config{Charge: 0.5}, func(p *place) {
		p.Wait(100 * ms)
		if math.Abs(p.Value("battery.remain")-0.5) > 0.011 || math.Abs(p.Value("battery.current")-0.15) > 1e-9 {
			t.Errorf("remain %v, current %v", p.Value("battery.remain"), p.Value("battery.current"))
		}
		p.Claim("robot.body.tail.yaw")
		p.Ask(p.Goals(map[string]float64{"tailYaw.angle": 1.5}))
		p.Wait(200 * ms)
		if p.Value("battery.current") < 0.3 {
			t.Errorf("a motor makes the current %v", p.Value("battery.current"))
		}
		p.sim.Charge(false, 0.2)
		p.Wait(200 * ms)
		if !p.Happened("battery.low") {
			t.Errorf("events %+v", p.Events)
		}
		p.sim.Charge(false, 0.1)
		pass := func() { // without the loop, which ends when its body is silent
			for range 20 {
				p.sim.Robot.Step(nil, nil)
			}
		}
		pass()
		if s := p.sim.State(); s.Power != lifeos.Off {
			t.Errorf("with an empty battery: %+v", s)
		}
		if err := p.sim.Poke(poke.Poke{Verb: poke.Press}); err == nil {
			t.Error("a Pleo with an empty battery can be switched on")
		}
		p.sim.Charge(true, 0.3)
		pass()
		if s := p.sim.State(); s.Power != lifeos.On || s.Boots != 2 {
			t.Errorf("on its charger: %+v", s)
		}
		p.sim.Robot.Step([]byte("report 40\n"), nil) // or the loop may find it silent before it is told to end
	})
}

// TestStuck: a joint that is held fast is blocked, and an event.
func TestStuck(t *testing.T) {
	run(t, pleosim.Config{}, func(p *place) {
		p.Claim("robot.body.neck.yaw")
		p.sim.Block(lifeos.JointNeckHorizontal, true)
		if r := p.Move(p.Goals(map[string]float64{"neckYaw.angle": 0.5})); r.Outcome != motion.Blocked || !p.Happened("joint.stuck") {
			t.Errorf("%+v, events %+v", r, p.Events)
		}
		p.sim.Block(lifeos.JointNeckHorizontal, false)
		if r := p.Move(p.Goals(map[string]float64{"neckYaw.angle": 0.5})); r.Outcome != motion.Done {
			t.Errorf("let go: %+v", r)
		}
	})
}

// TestLoss: reports with changed bytes are counted and passed over, commands that are lost are sent again, and the joint arrives.
func TestLoss(t *testing.T) {
	r, err := pleosim.NewRobot(pleosim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	sim, n := pleosim.NewStepped(r), 0
	whole := sim.Period
	sim.Period = func() {
		n++
		if n%7 == 0 {
			sim.In = sim.In[:0] // commands are lost
		}
		before := len(sim.Out)
		whole()
		if n%5 == 0 && len(sim.Out) > before+20 {
			sim.Out[before+20] ^= 4
		}
	}
	m, err := pleo.Model()
	if err != nil {
		t.Fatal(err)
	}
	d, err := pleo.Open(t.Context(), pleo.Config{Device: "simulated", Port: sim})
	if err != nil {
		t.Fatal(err)
	}
	controltest.Run(t, m, sim, d, func(p *controltest.Place) {
		p.Claim("robot.body.neck")
		r := p.Move(p.Goals(map[string]float64{"neckYaw.angle": 0.5, "neckPitch.angle": -0.4}))
		if r.Outcome != motion.Done || d.Link().Corrupt == 0 {
			t.Errorf("%+v, %+v", r, d.Link())
		}
	})
}

// TestSilence: a line on which no report comes is not opened, whatever else it says.
func TestSilence(t *testing.T) {
	for name, says := range map[string]string{"nothing": "", "a shell": "$ \nsh: report: not found\n", "log lines": "> INFO: vm: main loaded\n", "noise": strings.Repeat("\xff\x00", 3000)} {
		line := &uart.Stepped{Time: time.Hour, Next: time.Hour + 8*ms}
		line.Period = func() {
			line.Time = line.Next
			line.Next += 8 * ms
			line.Out = append(line.Out, says...)
		}
		d, err := pleo.Open(t.Context(), pleo.Config{Device: "simulated", Port: line})
		if d != nil || !errors.Is(err, pleo.ErrNoAnswer) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAir: two Pleos of the fleet in a room receive each other's beacons (part of GOSTAI-MAP-P-36).
func TestAir(t *testing.T) {
	var air pleosim.Air
	other, err := pleosim.NewRobot(pleosim.Config{Serial: 0xE20142})
	if err != nil {
		t.Fatal(err)
	}
	air.Join(other)
	run(t, pleosim.Config{Serial: 0xE20141}, func(p *place) {
		air.Join(p.sim.Robot)
		for range 300 {
			other.Step(nil, nil)
		}
		p.Wait(100 * ms)
		if got := p.Value("ir.val->beacon"); got != 0x42 {
			t.Errorf("it receives beacon %v, want %d", got, 0x42)
		}
	})
}
