package vectordriver

import (
	"math"
	"reflect"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/spine"
	"kennel/edge/robot"
	"kennel/edge/robot/robottest"
	"kennel/edge/robot/state"
)

// TestTree: the tree lists exactly the names, compact names and interfaces of the mapping.
func TestTree(t *testing.T) {
	tree, err := Tree()
	if err != nil {
		t.Fatal(err)
	}
	robottest.Mapping(t, tree, robottest.Rows(t, "testdata/mapping.txt"))
	for name, want := range map[string]string{"lift": "robot.body.arm.z", "micro": "robot.body.micro[0]", "armZ": "robot.body.arm.z"} {
		if target, err := tree.Lookup(name); err != nil || target.Nodes[0].Full() != want {
			t.Errorf("%s: %v, %v; want %s", name, target.Nodes, err, want)
		}
	}
	if tree.Frame.Front != robot.FrontCamera {
		t.Errorf("front is %v, want the camera's (GOSTAI-FRAME-02)", tree.Frame.Front)
	}
	// The driver's lists use names of the tree.
	for _, name := range append(append(append([]string{}, motorNames...), cliffNames...), lightNames...) {
		if target, err := tree.Lookup(name); err != nil || len(target.Nodes) != 1 || target.Nodes[0].Compact() != name {
			t.Errorf("%s of the driver: %v, %v", name, target.Nodes, err)
		}
	}
	for name, want := range map[string]robot.Unit{
		"touch.pressure": "", "button.val": "", "laser.val": "m", "headPitch.turn": "turn", "arm.val": "m",
		"temperature.val": "°C",
	} {
		if target, err := tree.Lookup(name); err != nil || target.Refs[0].Unit() != want {
			t.Errorf("unit of %s: %v, %v; want %q", name, target.Refs, err, want)
		}
	}
	for name, want := range map[string]int{"robot.go": 2, "robot.pitch": 3, "robot.say": 1, "voice.say": 1, "robot.name": 0} {
		target, err := tree.Lookup(name)
		if got := tree.ActuatorsOf(target); err != nil || len(got) != want {
			t.Errorf("%s takes actuators %v, %v; want %d", name, got, err, want)
		}
	}
}

// TestBinding: what the driver measures arrives at the standard's slots, in their units and signs, with its own time (GOSTAI-MAP-V-04 to 33).
func TestBinding(t *testing.T) {
	tree, err := Tree()
	if err != nil {
		t.Fatal(err)
	}
	board := state.New(tree)
	b, err := Bind(board)
	if err != nil {
		t.Fatal(err)
	}
	live := state.NewLive(board, nil)
	const ms = time.Millisecond
	s := Sense{
		At: 100 * ms, Epoch: 1, BatteryVolts: 3.85, Temperature: 31, ProxMetres: 0.25, ProxAt: 90 * ms, Touch: 0.125,
		TouchAt: 80 * ms, Button: true,
	}
	s.Motors[spine.LeftTread] = body.Motor{Position: 3 * math.Pi, Speed: 2}
	s.Motors[spine.RightTread] = body.Motor{Position: -math.Pi / 2, Speed: -1}
	s.Motors[spine.Lift].Position, s.Motors[spine.Head].Position = 0.3, 0.5
	s.Cliffs = [4]float64{0.1, 0.2, 0.3, 0.4}
	show := func() {
		t.Helper()
		b.Sense(&s)
		board.Publish(s.At)
	}
	type row struct {
		name string
		want float64
		at   time.Duration
	}
	check := func(what string, rows ...row) {
		t.Helper()
		for _, r := range rows {
			got, err := live.Read(r.name)
			if r.at == 0 {
				if err == nil {
					t.Errorf("%s: %s is %s, want nobody to know", what, r.name, got.Value)
				}
				continue
			}
			if err != nil || math.Abs(got.Value.Number-r.want) > 1e-9 || got.At != r.at {
				t.Errorf("%s: %s is %s at %v, %v; want %v at %v", what, r.name, got.Value, got.At, err, r.want, r.at)
			}
		}
	}
	b.Sense(&Sense{}) // nothing measured yet
	board.Publish(1)
	check("before the first frame", row{name: "wheelL.turn"}, row{name: "battery.voltage"})
	show()
	check("measured",
		row{"wheelL.turn", 1.5, 100 * ms}, row{"wheelL.val", math.Pi, 100 * ms}, row{"wheelR.angle", 1.5 * math.Pi, 100 * ms},
		row{"wheelR.speed", -1, 100 * ms},
		row{"laser.val", 0.25, 90 * ms}, row{"touch.val->raw", 0.125, 80 * ms}, row{"button.val", 1, 100 * ms},
		row{"cliffFL.val", 0.1, 100 * ms}, row{"cliffFR.val", 0.2, 100 * ms}, row{"cliffBL.val", 0.3, 100 * ms}, row{"cliffBR.val", 0.4, 100 * ms},
		row{"battery.voltage", 3.85, 100 * ms}, row{"battery.remain", 0.5, 100 * ms}, row{"temperature.val", 31, 100 * ms},
		row{name: "headPitch.val"}, row{name: "lift.val"}, // not calibrated
		row{name: "touch.val"}, row{name: "accelX.val"}, // not the driver's to say
	)
	b.Home(spine.Head, -22*math.Pi/180) // its stop below, where the wire counted 0
	b.Home(spine.Lift, 0)
	b.Home(spine.LeftTread, 9) // a wheel has no home
	show()
	check("calibrated",
		row{"headPitch.val", 22*math.Pi/180 - 0.5, 100 * ms}, // nose down is positive
		row{"lift.position", 0.045 + 0.066*math.Sin(0.3), 100 * ms})
	// The sensors sleep: their last values grow old. The head was moved unseen: its position is unknown.
	s.At, s.Power, s.Cliffs = 200*ms, body.SensorsOff|body.EncodersOff, [4]float64{}
	s.Motors[spine.Head].Unseen = true
	s.ProxMetres, s.ProxAt = 8.19, 190*ms // beyond what the sensor measures
	show()
	check("asleep", row{"cliffFL.val", 0.1, 100 * ms}, row{"laser.val", 0.25, 90 * ms}, row{name: "headPitch.val"},
		row{"lift.val", 0.045 + 0.066*math.Sin(0.3), 200 * ms})
	// The body restarts: wheels continue from where they were, and joints are no longer calibrated.
	s = Sense{At: 300 * ms, Epoch: 2, BatteryVolts: 5}
	s.Motors[spine.LeftTread].Position = math.Pi
	show()
	check("a new epoch", row{"wheelL.turn", 2, 300 * ms}, row{"wheelR.turn", -0.25, 300 * ms}, row{name: "lift.val"}, row{"battery.remain", 1, 300 * ms})

	// Lights go the other way.
	var act Act
	for name, v := range map[string]float64{"led[0].r": 1, "led[1].g": 0.5, "led[3].b": 7} {
		target, err := tree.Lookup(name)
		if err != nil || !b.Light(&act, target.Refs[0].ID, v, 300*ms) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if want := [4]Light{{R: 255}, {G: 128}, {}, {B: 255}}; [4]Light(act.Lights[:4]) != want || b.Light(&act, b.laser, 1, 300*ms) {
		t.Errorf("lights %v, want %v", act.Lights[:4], want)
	}
	board.Publish(300 * ms)
	check("lights", row{"led[1].g", 128.0 / 255, 300 * ms})
	if got := testing.AllocsPerRun(100, func() { b.Sense(&s); board.Publish(s.At) }); got != 0 {
		t.Errorf("%v allocations a step", got)
	}
	other, err := robot.Build("other", robot.Frame{}, []robot.Part{{Path: "body.led", Is: []string{"Led"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Bind(state.New(other)); err == nil {
		t.Error("bound to a tree of another body")
	}
}

// TestDisplay: the display is 184 by 96 pixels in RGB565 (part of VEC-HW-09).
func TestDisplay(t *testing.T) {
	tree, err := Tree()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"display.width": 184, "display.height": 96, "display.format": 100} {
		target, err := tree.Lookup(name)
		if err != nil || len(target.Refs) != 1 {
			t.Fatalf("%s: %+v, %v", name, target, err)
		}
		if v, fixed := target.Refs[0].Fixed(); !fixed || !reflect.DeepEqual(v, robot.I(want)) {
			t.Errorf("%s is %v, want %d", name, v, want)
		}
	}
}
