package lifeos_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/pleo/lifeos"
)

const printSensors = `#include <Sensor.inc>
public on_sensor(time, sensor_name: sensor, value) { printf("%d=%d", sensor, value); return true; }
`

// TestTriggers: the rule of each raw sensor, in both directions, and readings that trigger nothing (the rows PLEO-SEN-06 to 36 that tell a rule; PLEO-ARC-08, PLEO-ARC-13).
func TestTriggers(t *testing.T) {
	for _, c := range []struct {
		id       lifeos.Sensor
		readings []int32
		want     []int32 // triggers of the sensor
	}{
		{2, []int32{100, 99, 80, 76, 74, 51, 49, 48, 30, 50}, []int32{99, 74, 49, 50}},
		{6, []int32{0, 1, 1, 0}, []int32{1, 0}}, {7, []int32{0, 1, 0}, []int32{1, 0}}, {8, []int32{0, 1, 0}, []int32{1, 0}}, {9, []int32{0, 1, 0}, []int32{1, 0}},
		{10, []int32{0, 1, 0}, []int32{1, 0}}, {11, []int32{0, 1, 0}, []int32{1, 0}}, {12, []int32{0, 1, 0}, []int32{1, 0}}, {13, []int32{0, 1, 0}, []int32{1, 0}},
		{14, []int32{1, 0, 1}, []int32{0, 1}}, {15, []int32{1, 0, 1}, []int32{0, 1}}, {16, []int32{1, 0, 1}, []int32{0, 1}}, {17, []int32{1, 0, 1}, []int32{0, 1}},
		{18, []int32{1, 0, 1}, []int32{0, 1}}, {19, []int32{0, 1, 0}, []int32{1, 0}},
		{21, []int32{100, 149, 31, 30, 29, 30, 200, 149}, []int32{29, 30, 200, 149}},
		{23, []int32{0, 9, 10, 39, 40, 39, 5}, []int32{10, 40, 39, 5}},
		{24, []int32{0, 1, 0}, []int32{1, 0}}, {26, []int32{0, -45, -45, 90, -128}, []int32{-45, 90, -128}},
		{28, []int32{0, 35, 40, 41, 60, 35, 30, 29, 35, 50}, []int32{41, 29, 50}},
		{29, []int32{1, 1, 4, 6, 0}, []int32{4, 6, 0}}, {32, []int32{0, 1, 0}, []int32{1, 0}}, {33, []int32{0, 1, 0}, []int32{1, 0}},
		{34, []int32{40, 50, 51, 54, 55, 56, 54, 30}, []int32{51, 55, 54, 30}},
		{36, []int32{0, 100, 150, 151, 255, 100, 74, 20}, []int32{151, 74}},
		{39, []int32{100, 5000}, nil},
	} {
		p := start(t, lifeos.Config{Card: card(t, map[string]string{"sensors": printSensors})})
		for i, v := range c.readings {
			if p.body.Set(c.id, v); i == 0 {
				p.run(time.Second)
				p.said()
				continue
			}
			p.run(20 * time.Millisecond)
		}
		var got []int32
		for _, line := range p.said() {
			var id lifeos.Sensor
			var v int32
			if _, err := fmt.Sscanf(line, "%d=%d", &id, &v); err == nil && id == c.id {
				got = append(got, v)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("sensor %d: triggers %v, want %v", c.id, got, c.want)
		}
	}
}

// lines returns what scripts printed, in one line.
func (p *pleo) lines() string { return strings.Join(p.said(), " ") }

// TestTouch: tap, hold, release and petting (PLEO-SEN-107 to PLEO-SEN-110).
func TestTouch(t *testing.T) {
	p := start(t, lifeos.Config{Card: card(t, map[string]string{"sensors": printSensors})})
	touch := func(id lifeos.Sensor, d time.Duration) {
		p.body.Set(id, 1)
		p.run(d)
		p.body.Set(id, 0)
		p.run(50 * time.Millisecond)
	}
	step := func(what, want string) {
		t.Helper()
		if got := p.lines(); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	p.run(second)
	p.said()
	touch(lifeos.SensorChin, 400*time.Millisecond)
	step("tap", "7=1 7=0 107=7")
	p.body.Set(lifeos.SensorChin, 1)
	p.run(second)
	step("hold", "7=1 108=7")
	if got := property(t, p, lifeos.PropHoldFlags); got != 2 {
		t.Errorf("hold flags %d, want bit 1", got)
	}
	p.body.Set(lifeos.SensorChin, 0)
	p.run(50 * time.Millisecond)
	step("release", "7=0 109=7")
	if got := property(t, p, lifeos.PropHoldFlags); got != 0 {
		t.Errorf("hold flags %d, want 0", got)
	}
	p.run(2 * second)
	touch(lifeos.SensorHead, 100*time.Millisecond)
	touch(lifeos.SensorBack, 100*time.Millisecond)
	touch(lifeos.SensorTail, 100*time.Millisecond)
	p.run(3 * second)
	step("petting", "6=1 6=0 107=6 8=1 110=4 8=0 107=8 13=1 110=6 13=0 107=13 110=1")
}

// TestDerived: picked up, abuse, stuck joints, edges and objects, changes of light (PLEO-SEN-27, PLEO-SEN-101 to PLEO-SEN-106, PLEO-SEN-111, PLEO-SEN-112, PLEO-SEN-122,
// PLEO-SEN-123).
func TestDerived(t *testing.T) {
	p := start(t, lifeos.Config{Card: card(t, map[string]string{"sensors": printSensors, "main": `#include <Joint.inc>
main() { joint_move_to(JOINT_NECK_VERTICAL, -50, 40); sleep 1000000; }`})})
	step := func(what string, d time.Duration, want string) {
		t.Helper()
		p.run(d)
		if got := p.lines(); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	p.body.Set(lifeos.SensorObject, 35)
	step("begin", 2*second, "")
	p.body.Set(lifeos.SensorObject, 15)
	step("an edge", second, "101=1")
	p.body.Set(lifeos.SensorObject, 45)
	step("no edge", second, "23=45 101=0")
	feet := func(v int32) {
		for id := lifeos.SensorFrontLeft; id <= lifeos.SensorBackRight; id++ {
			p.body.Set(id, v)
		}
	}
	feet(0)
	step("lifted, too short", 400*time.Millisecond, "14=0 15=0 16=0 17=0")
	step("lifted", 200*time.Millisecond, "112=1")
	feet(1)
	step("set down", second, "14=1 15=1 16=1 17=1 112=0")
	p.body.Push(lifeos.JointTorso, 11)
	step("abuse", second, "111=1")
	p.body.Push(lifeos.JointTorso, 0)
	step("still abused", 2*second, "")
	step("end of abuse", 2*second, "111=0")
	p.body.Block(lifeos.JointTailVertical, true)
	p.body.Move(lifeos.JointTailVertical, 40, 40)
	step("stuck", 100*time.Millisecond, "122=10")
	p.body.Block(lifeos.JointTailVertical, false)
	step("unstuck", 100*time.Millisecond, "123=10")
	p.body.Set(lifeos.SensorLight, 145)
	step("brighter", 50*time.Millisecond, "27=45")
	step("as bright", 15*second, "")
	p.body.Set(lifeos.SensorLight, 100)
	step("darker", 50*time.Millisecond, "27=-45")
	p.Beacon(0x42, [3]byte{1, 2, 3})
	step("a new friend", 50*time.Millisecond, "38=66 125=66")
	p.Beacon(0x42, [3]byte{1, 2, 3})
	step("a known friend", 9*second, "38=66")
	step("a lost friend", 2*second, "126=66")
	p.Infrared([]byte("0E00\n"))
	step("a remote control", second, "3=1")
	p.Track(5, 10)
	step("an object", second, "113=5")
	if got := p.Terminal("version"); got != "LifeOS 1.1\n" {
		t.Errorf("answer %q", got)
	}
	step("a line of the terminal", second, "30=7")
}

// TestLoudChange: a noise that begins or ends is a change against the noise of the last seconds; one that lasts is none (PLEO-SEN-37, part of PLEO-ARC-10).
func TestLoudChange(t *testing.T) {
	p := start(t, lifeos.Config{Card: card(t, map[string]string{"sensors": printSensors})})
	step := func(what string, loud int32, d time.Duration, want string) {
		t.Helper()
		p.body.Set(lifeos.SensorSoundLoud, loud)
		p.run(d)
		if got := p.lines(); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	step("quiet", 0, second, "")
	step("a noise below the level", 30, 30*second, "")
	step("a noise", 100, second, "28=100 37=31")
	step("the noise lasts", 100, 60*second, "")
	step("its end", 0, second, "28=0 37=-32")
}

// TestBundles: a bundle switches the triggers of all its sensors, and of no others (PLEO-SEN-119, PLEO-SEN-120).
func TestBundles(t *testing.T) {
	for _, c := range []struct {
		off, enabled, want string // enabled: of the sensors 101 to 113
	}{
		{"", "1111111111111", "6=1 6=0 107=6 101=1 23=45 101=0"}, {"sensor_disable(SENSOR_TOUCH_TAP_HOLD);", "1111110000111", "6=1 6=0 101=1 23=45 101=0"},
		{"sensor_disable(SENSOR_EDGE);", "0001111111111", "6=1 6=0 107=6 23=45"},
		{"sensor_disable(SENSOR_EDGE); sensor_disable(SENSOR_TOUCH_TAP_HOLD); sensor_enable(SENSOR_EDGE); sensor_enable(SENSOR_TOUCH_TAP_HOLD);", "1111111111111",
			"6=1 6=0 107=6 101=1 23=45 101=0"},
	} {
		p := start(t, lifeos.Config{Card: card(t, map[string]string{"sensors": "#include <Joint.inc>\n" + printSensors + "public init() { joint_move_to(JOINT_NECK_VERTICAL, -50, 40); " + c.off +
			" for (new i = 101; i <= 113; i++) printf(\"%d\", sensor_get_config(sensor_name: i, sensor_config_enabled)); }\n"})})
		p.body.Set(lifeos.SensorObject, 35)
		p.run(3 * second)
		if got := strings.Join(p.said(), ""); got != c.enabled {
			t.Errorf("%q: enabled are %s, want %s", c.off, got, c.enabled)
		}
		p.body.Set(lifeos.SensorHead, 1)
		p.run(100 * time.Millisecond)
		p.body.Set(lifeos.SensorHead, 0)
		p.run(100 * time.Millisecond)
		p.body.Set(lifeos.SensorObject, 15)
		p.run(second)
		p.body.Set(lifeos.SensorObject, 45)
		p.run(second)
		if got := p.lines(); got != c.want {
			t.Errorf("%q: %q, want %q", c.off, got, c.want)
		}
	}
}

// TestRedelivery: false as result leaves the trigger pending; others come first (PLEO-VM-07). A handler that sleeps loses no trigger (PLEO-VM-20).
func TestRedelivery(t *testing.T) {
	p := start(t, lifeos.Config{Card: card(t, map[string]string{"sensors": `#include <Sensor.inc>
new n
public init() printf("timer %d", set_timer_interval(1000))
public on_sensor(time, sensor_name: sensor, value) {
	printf("%d=%d", sensor, value);
	if (sensor == SENSOR_CHIN) sleep 100;
	return sensor != SENSOR_HEAD || ++n > 2;
}`})})
	p.run(500 * time.Millisecond)
	p.body.Set(lifeos.SensorHead, 1)
	p.body.Set(9, 1)
	p.run(100 * time.Millisecond)
	if got := p.lines(); got != "timer 0 6=1 9=1 6=1 6=1" {
		t.Errorf("printed %q", got)
	}
	p.body.Set(lifeos.SensorChin, 1)
	p.run(20 * time.Millisecond)
	for v := range int32(4) {
		p.body.Set(lifeos.SensorTail, (v+1)%2)
		p.run(20 * time.Millisecond)
	}
	p.body.Set(lifeos.SensorTail, 1)
	p.run(100 * time.Millisecond)
	if got := p.lines(); got != "7=1 13=1 107=13" {
		t.Errorf("while the handler sleeps: %q", got)
	}
	p.run(time.Second)
	if got := p.lines(); !strings.Contains(got, "124=1008") {
		t.Errorf("the timer: %q", got)
	}
}

// TestPower: an empty or hot battery closes the scripts and switches off (part of PLEO-SEN-02, PLEO-SEN-34); a low one forbids motions (PLEO-MOT-14).
func TestPower(t *testing.T) {
	for _, c := range []struct {
		id   lifeos.Sensor
		v    int32
		want lifeos.Power
	}{{lifeos.SensorBattery, 11, lifeos.On}, {lifeos.SensorBattery, 10, lifeos.Off}, {lifeos.SensorBatteryTemp, 57, lifeos.On}, {lifeos.SensorBatteryTemp, 58, lifeos.Off}} {
		p := start(t, lifeos.Config{Card: card(t, map[string]string{"main": `#include <Script.inc>
#include <Log.inc>
public close() print("close")
main() sleep 1000`})})
		p.run(second)
		p.body.Set(c.id, c.v)
		p.run(second)
		if got := p.Power(); got != c.want {
			t.Errorf("sensor %d at %d: %v, want %v", c.id, c.v, got, c.want)
		}
		if c.want == lifeos.Off {
			p.want("close")
		}
	}
	p := start(t, lifeos.Config{Card: card(t, map[string]string{"main": `#include <Motion.inc>
#include <Log.inc>
main() { sleep 500; printf("%d", motion_play_file("wag")); }`})})
	c := card(t, nil)
	c["wag.umf"] = wag(t)
	p.body.Set(lifeos.SensorBattery, 22)
	p.run(600 * time.Millisecond)
	p.want("255")
}
