package robot

import (
	"strings"
	"testing"
)

// TestCompact: each rule and each example (GOSTAI-CMP-01 to GOSTAI-CMP-08). A case is a whole tree: device, full name, compact name.
func TestCompact(t *testing.T) {
	for name, tree := range map[string]string{
		// GOSTAI-CMP-05, the five examples of the standard as it spells them, in one tree.
		"the standard's table": `
			Motor robot.body.arm[right].elbow elbowR
			Motor robot.body.head.yaw headYaw
			Motor robot.body.head.pitch headPitch
			Motor robot.body.leg[left].knee.pitch kneeL
			Motor robot.body.arm[right].hand.finger[3][2] fingerR[3][2]
			Motor robot.body.arm[left].hand.finger[right] fingerLR`,
		// Example 2: "head must also be kept to avoid ambiguity with other components having a yaw".
		"yaw in two places": `
			Motor robot.body.head.yaw headYaw
			Motor robot.body.head.pitch headPitch
			Motor robot.body.arm[left].shoulder.yaw shoulderYawL
			Motor robot.body.arm[left].shoulder.roll shoulderRollL`,
		// GOSTAI-CMP-02: places in path order, words as letters, numbers in brackets, axes as letters.
		"suffixes": `
			Motor robot.body.wheel[front][left] wheelFL
			Led robot.body.head.eye[left].led[up][left] ledLUL
			AccelerationSensor robot.body.accel[x] accelX
			TouchSensor robot.body.skin.touch[478][124] touch[478][124]
			Motor robot.body.leg[left][0] legL[0]
			Motor robot.body.rack[inbetween][middle][center] rackIMC
			Motor robot.body.segment[0].spike[right] spike[0]R
			Motor robot.body.segment[0].toe[0][1].nail[up][left][2].tip[3].cell[0][1][2][3] cell[0][0][1]UL[2][3][0][1][2][3]`,
		// A device keeps its compact name also where a slot of the robot, or a component right below it, is called the same.
		"names of the robot's own": `
			Identity robot robot
			SerialPort robot.body.serial serial
			Motor robot.body.mast.hood.yaw hood
			Led robot.hood.led led`,
		// GOSTAI-CMP-03: robot and body go; so does all that tells nothing apart.
		"nothing ambiguous": `
			VideoIn robot.body.head.camera camera
			Led robot.body.head.eye.led led
			Mobile robot robot`,
		// GOSTAI-CMP-04: what stays is joined in camel case, also names that are camel case themselves.
		"camel case": `
			Motor robot.body.rearDeck.hatch.roll hatchRoll
			Motor robot.body.rearDeck.hatch.yaw hatchYaw
			Led robot.body.rearDeck.led rearDeckLed
			Led robot.body.head.led headLed`,
		// GOSTAI-CMP-06 step 2: an only axis gives way to its parent, but not to robot or body.
		"axes": `
			LinearMotor robot.body.arm.z arm
			LinearMotor robot.body.x bodyX
			LinearMotor robot.y robotY
			Motor robot.body.neck.pitch neck
			Motor robot.body.tail.yaw tailYaw
			Motor robot.body.tail.pitch tailPitch`,
		// All places of a part count: the left knee has a roll, so no knee is its pitch alone.
		"an axis here and there": `
			Motor robot.body.leg[left].knee.pitch kneePitchL
			Motor robot.body.leg[left].knee.roll kneeRollL
			Motor robot.body.leg[right].knee.pitch kneePitchR`,
		// GOSTAI-CMP-06 step 3: the nearest ancestor that tells one apart; if none does, the parent.
		"touch everywhere": `
			TouchSensor robot.body.touch[front] bodyTouchF
			TouchSensor robot.body.head.touch[up] headTouchU
			TouchSensor robot.body.head.mouth.touch mouthTouch
			TouchSensor robot.body.leg[left].touch legTouchL
			TouchSensor robot.body.leg[left].foot.touch footTouchL`,
		// The nearest ancestor may not be the parent.
		"the parent says nothing": `
			Motor robot.body.arm.hand.finger armFinger
			Motor robot.body.leg.hand.finger legFinger`,
		"the order of ancestors": `
			TouchSensor robot.body.arm.leg.touch armLegTouch
			TouchSensor robot.body.leg.arm.touch legArmTouch
			TouchSensor robot.body.touch bodyTouch`,
		"two ancestors": `
			Motor robot.body.arm.hip.pitch armHipPitch
			Motor robot.body.arm.hip.roll armHipRoll
			Motor robot.body.leg.hip.pitch legHipPitch
			Motor robot.body.leg.hip.roll legHipRoll`,
		// Places never tell devices apart: head.yaw and arm[left].yaw need names.
		"places do not help": `
			Motor robot.body.head.yaw head
			Motor robot.body.arm[left].yaw armL
			Motor robot.body.arm[right].yaw armR`,
		// A device may have parts; both have names.
		"device with a part": `
			Battery robot.body.battery battery
			TemperatureSensor robot.body.battery.temperature temperature
			VideoIn robot.body.head.camera camera
			BlobDetector robot.body.head.camera.blob blob`,
		// GOSTAI-SUP-05: a name that would still be shared is given to no device.
		"collision": `
			AccelerationSensor robot.body.accel[x] robot.body.accel[x]
			AccelerationSensor robot.body.accelX robot.body.accelX
			AccelerationSensor robot.body.accel[y] accelY`,
	} {
		t.Run(name, func(t *testing.T) {
			tr := New("test")
			want := map[string]string{}
			for line := range strings.Lines(strings.TrimSpace(tree)) {
				f := strings.Fields(line)
				if _, err := tr.Add(Part{Path: f[1], Is: []string{f[0]}}); err != nil {
					t.Fatal(err)
				}
				want[f[1]] = f[2]
			}
			warnings, err := tr.Seal()
			if err != nil || (len(warnings) > 0) != (name == "collision") {
				t.Fatal(warnings, err)
			}
			seen := map[string]bool{}
			for _, d := range tr.Devices() {
				if d.Compact() != want[d.Full()] || seen[d.Compact()] {
					t.Errorf("%s is %s, want %s, and nothing else may be called so", d.Full(), d.Compact(), want[d.Full()])
				}
				seen[d.Compact()] = true
				if target, err := tr.Lookup(d.Compact()); err != nil || len(target.Nodes) != 1 || target.Nodes[0] != d {
					t.Errorf("%s does not lead back to %s: %v", d.Compact(), d.Full(), err)
				}
			}
		})
	}
}

// TestSealAgain: the names follow when the tree grows (GOSTAI-SUP-05), and are the same whatever the order in which it grew.
func TestSealAgain(t *testing.T) {
	tree := grown(t, "TouchSensor:body.head.touch")
	head := tree.Devices()[0]
	if head.Compact() != "touch" {
		t.Fatal(head.Compact())
	}
	if _, err := tree.Add(Part{Path: "body.touch", Is: []string{"TouchSensor"}}); err != nil {
		t.Fatal(err)
	}
	if w, err := tree.Seal(); err != nil || w != nil {
		t.Fatal(w, err)
	}
	if head.Compact() != "headTouch" || tree.Devices()[1].Compact() != "bodyTouch" {
		t.Errorf("%s and %s, want headTouch and bodyTouch", head.Compact(), tree.Devices()[1].Compact())
	}
	if target, err := tree.Lookup("touch.val"); err == nil {
		t.Errorf("touch still means %s", fulls(target.Nodes))
	}
	paths := []string{"Motor:body.neck.yaw", "Motor:body.head.yaw", "Motor:body.head.roll", "Motor:body.arm[left].yaw",
		"TouchSensor:body.touch", "TouchSensor:body.head.touch", "TouchSensor:body.head.mouth.touch"}
	names := func(order []string) map[string]string {
		out := map[string]string{}
		for _, d := range grown(t, order...).Devices() {
			out[d.Full()] = d.Compact()
		}
		return out
	}
	want := names(paths)
	for i := range paths {
		for full, compact := range names(append(paths[i:len(paths):len(paths)], paths[:i]...)) {
			if want[full] != compact {
				t.Errorf("turned by %d, %s is %s, was %s", i, full, compact, want[full])
			}
		}
	}
}

// TestOldStyle covers GOSTAI-LOC-11.
func TestOldStyle(t *testing.T) {
	for name, want := range map[string]string{
		"armR": "arm[right]", "legFL": "leg[front][left]", "legHL": "leg[back][left]", "fingerR": "finger[right]", "head": "",
		"gripperL": "", "R": "", "armr": "", "accelX": "accel[x]",
	} {
		got := ""
		if s, ok := OldStyle(name); ok {
			got = s.String()
		}
		if got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// TestJoins: short names are recognised in their longer forms, and a name that repeats itself is no riddle (GOSTAI-CMP-07).
func TestJoins(t *testing.T) {
	path := []string{"robot", "body", "leg", "knee", "pitch"}
	for stem, want := range map[string]bool{"pitch": true, "kneePitch": true, "legPitch": true, "legKneePitch": true, "robotBodyLegKneePitch": true,
		"knee": false, "kneeLegPitch": false, "Pitch": false, "kneepitch": false, "": false, "xKneePitch": false} {
		if joins(stem, path) != want {
			t.Errorf("%q: %v, want %v", stem, !want, want)
		}
	}
	same := make([]string, 24)
	for i := range same {
		same[i] = "a"
	}
	if joins("a"+strings.Repeat("A", 22)+"B", same) || !joins("a"+strings.Repeat("A", 23), same) || joins("a"+strings.Repeat("A", 24), same) {
		t.Error("aAAA in a.a.a.a")
	}
}
