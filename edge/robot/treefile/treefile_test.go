package treefile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kennel/edge/robot"
)

func parse(t *testing.T, src string) *robot.Tree {
	t.Helper()
	tree, warnings, err := Parse("file", []byte(src))
	if err != nil || warnings != nil {
		t.Fatal(warnings, err)
	}
	return tree
}

// list prints a tree's devices: full, compact, interfaces.
func list(tree *robot.Tree) string {
	var b strings.Builder
	for _, d := range tree.Devices() {
		b.WriteString(d.Full() + " " + d.Compact() + " " + robot.JoinInterfaces(d.Interfaces()) + "\n")
	}
	return b.String()
}

// TestParse: each form that a file may have (GOSTAI-SUP-01 to GOSTAI-SUP-09 in a file, GOSTAI-LOC-11).
func TestParse(t *testing.T) {
	for name, tc := range map[string]struct{ src, want string }{
		"the examples of the standard (GOSTAI-CMP-05)": {`{"robot": {"body": {
			"arm[]": {
				"left": {"hand": {"finger[]": {"right": "Motor"}}},
				"right": {"elbow": "RotationalMotor", "hand": {"finger[]": {"3[]": {"2": "Motor"}}}}},
			"head": {"yaw": "RotationalMotor", "pitch": "RotationalMotor"},
			"leg[]": {"left": {"knee": {"pitch": "RotationalMotor"}}}}}}`,
			`robot.body.arm[left].hand.finger[right] fingerLR Motor
robot.body.arm[right].elbow elbowR RotationalMotor
robot.body.arm[right].hand.finger[3][2] fingerR[3][2] Motor
robot.body.head.yaw headYaw RotationalMotor
robot.body.head.pitch headPitch RotationalMotor
robot.body.leg[left].knee.pitch kneeL RotationalMotor
`},
		"the same in the old spelling": {`{"body": {"armR": {"elbow": "Motor", "hand": {"finger[]": {"3": {"2": "Motor"}}}}, "armL": {"hand": {"fingerR": "Motor"}},
			"legL": {"knee": {"pitch": "Motor"}}}}`,
			`robot.body.arm[right].elbow elbowR Motor
robot.body.arm[right].hand.finger[3][2] fingerR[3][2] Motor
robot.body.arm[left].hand.finger[right] fingerLR Motor
robot.body.leg[left].knee.pitch kneeL Motor
`},
		"nested localizers, with and without brackets, in any order": {`{"body": {"wheel[]": {"front[]": {"left": "Motor"}, "back": {"right": "Motor"}, "left": {"middle": "Motor"}}}}`,
			`robot.body.wheel[front][left] wheelFL Motor
robot.body.wheel[back][right] wheelBR Motor
robot.body.wheel[middle][left] wheelML Motor
`},
		"a place in the key": {`{"body": {"wheel[front][left]": "Motor"}}`, "robot.body.wheel[front][left] wheelFL Motor\n"},
		"axes are components of a member, not places": {`{"body": {"arm[]": {"left": {"x": "LinearMotor", "z": "LinearMotor"}, "right": {"z": "LinearMotor"}}, "accel[]": {"x": "AccelerationSensor"}}}`,
			`robot.body.arm[left].x armXL LinearMotor
robot.body.arm[left].z armZL LinearMotor
robot.body.arm[right].z armZR LinearMotor
robot.body.accel[x] accelX AccelerationSensor
`},
		"devices with parts and several interfaces": {`{"robot": {".": "Identity,  Mobile", "body": {"battery": {".": "Battery", "temperature": "TemperatureSensor"}, "wheel": "RotationalMotor,RotationalSpeedMotor"}}}`,
			`robot robot Identity, Mobile
robot.body.battery battery Battery
robot.body.battery.temperature temperature TemperatureSensor
robot.body.wheel wheel RotationalMotor, RotationalSpeedMotor
`},
		"the old word for interface": {`{"head": {"camera": "Facet.VideoIn"}}`, "robot.head.camera camera VideoIn\n"},
		"only a robot":               {`{"robot": "Mobile"}`, "robot robot Mobile\n"},
		"nothing":                    {`{}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := list(parse(t, tc.src)); got != tc.want {
				t.Errorf("%s\nwant\n%s", got, tc.want)
			}
		})
	}
	tree := parse(t, `{"body": {"speaker": "AudioOut", "torso": {}}}`)
	if _, err := tree.Lookup("speaker.volume"); err != nil {
		t.Errorf("an optional slot: %v; want every one there", err)
	}
	if target, err := tree.Lookup("robot.body.torso"); err != nil || target.Nodes[0].Kind() != robot.Component {
		t.Errorf("a component without parts: %v", err)
	}
	_, warnings, err := Parse("file", []byte(`{"body": {"accel[]": {"x": "AccelerationSensor"}, "accel": {}}}`))
	if err == nil {
		t.Error("accel as component and localizer:", warnings)
	}
	clash, warnings, err := Parse("file", []byte(`{"body": {"foo[]": {"x": "Led"}, "fooX": "Led"}}`))
	if err != nil || len(warnings) != 1 || !strings.Contains(list(clash), "robot.body.fooX robot.body.fooX Led") {
		t.Errorf("a shared compact name: %v, %v", warnings, err)
	}
}

// TestErrors: each mistake is found where it is.
func TestErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		src  string
		want string
		is   error
	}{
		"interface":       {"{\"body\": {\n  \"wheel\": \"Moter\"}}", "line 2, column 12, robot.body.wheel: ", robot.ErrNotFound},
		"place":           {"{\"body\": {\n  \"wheel[]\": {\"left\": \"Motor\",\n    \"leftt\": \"Motor\"}}}", "line 3, column 5, robot.body.wheel: ", robot.ErrName},
		"component":       {`{"Body": {}}`, "line 1, column 10, robot.Body: ", robot.ErrName},
		"umlaut before":   {`{"body": {"led": "Led", "öse": "Led"}}`, "line 1, column 25, robot.body: ", robot.ErrName},
		"two names":       {`{"body.head": {}}`, "line 1, column 2, robot: ", robot.ErrName},
		"property":        {`{"body": {"led->unit": "Led"}}`, "line 1, column 11, robot.body: ", robot.ErrName},
		"key twice":       {`{"body": {"led": "Led", "led": "Led"}}`, "line 1, column 25: ", robot.ErrDuplicate},
		"place twice":     {`{"body": {"led[]": {"front[]": {"left": "Led"}, "left[]": {"front": "Led"}}}}`, "line 1, column 69, robot.body.led[left][front]: ", robot.ErrDuplicate},
		"no members":      {`{"body": {"led[]": {}}}`, "line 1, column 11, robot.body.led: a localizer holds", nil},
		"localizer text":  {`{"body": {"led[]": "Led"}}`, "line 1, column 11, robot.body.led: a localizer holds", nil},
		"both":            {`{"body": {"led[left][]": {"front": "Led"}}}`, "line 1, column 11, robot.body: ", robot.ErrName},
		"empty interface": {`{"body": {"led": ""}}`, "line 1, column 18, robot.body.led: ", robot.ErrName},
		"dot object":      {`{"body": {".": {}}}`, "line 1, column 11, robot.body: ", nil},
		"number":          {`{"body": 3}`, "line 1, column 10: want an object", nil},
		"list":            {`{"body": ["led"]}`, "line 1, column 10: want an object", nil},
		"null":            {`null`, "line 1, column 1: want an object", nil},
		"text":            {`"Led"`, "line 1, column 1: want an object", nil},
		"syntax":          {"{\"body\": {\n  \"led\" \"Led\"}}", "line 2, column 9: invalid character", nil},
		"cut":             {"{\"body\": {\n", "line 2, column 1: the text ends too early", nil},
		"empty":           {"", "line 1, column 1: the text ends too early", nil},
		"more":            {"{}\n{}", "line 2", nil},
		"not text":        {"{\"\xff\": {}}", "not UTF-8", nil},
		"deep":            {strings.Repeat(`{"a":`, 70), "levels", nil},
		"long way":        {strings.Repeat(`{"a":`, 30) + `"Led"` + strings.Repeat("}", 30), "more than 24 parts", robot.ErrName},
		"big":             {strings.Repeat(" ", 1<<20+1), "at most 1048576", nil},
		"slot and part":   {`{"body": {"blob": {".": "BlobDetector", "x": "LinearMotor"}}}`, "robot.body.blob.x is a slot of the device and a part of it", robot.ErrDuplicate},
	} {
		_, _, err := Parse("file", []byte(tc.src))
		if err == nil || !strings.Contains(err.Error(), tc.want) || tc.is != nil && !errors.Is(err, tc.is) {
			t.Errorf("%s: %v; want %q, %v", name, err, tc.want, tc.is)
		}
	}
	// As many devices of one name, each in a place of its own, take no time to speak of.
	var many strings.Builder
	many.WriteString(`{"body": {"a": "Led"`)
	for i := range 150 {
		fmt.Fprintf(&many, `, "p%d": {"q": {"touch": "Led"}}`, i)
	}
	many.WriteString("}}")
	if tree, warnings, err := Parse("file", []byte(many.String())); err != nil || warnings != nil || tree.Devices()[150].Compact() != "p149Touch" {
		t.Errorf("a big file: %v, %v", warnings, err)
	}
	many.Reset()
	many.WriteString(`{"body": {"a": "Led"`)
	for i := range maxNodes {
		fmt.Fprintf(&many, `, "p%d": {}`, i)
	}
	if _, _, err := Parse("file", []byte(many.String()+"}}")); err == nil || !strings.Contains(err.Error(), "more than 5000 nodes") {
		t.Errorf("a file of too many nodes: %v", err)
	}
	// Every prefix of a good file is an error with a place, never a smaller tree.
	good := `{"robot": {".": "Mobile", "body": {"wheel[]": {"left": "Motor", "right": "Motor"}, "head": {"yaw": "RotationalMotor"}}}}`
	for n := range len(good) {
		var e *Error
		if _, _, err := Parse("file", []byte(good[:n])); !errors.As(err, &e) || e.Line != 1 || e.Column < 1 || e.Column > n+1 {
			t.Errorf("%s: %v", good[:n], err)
		}
	}
}

// FuzzParse: any text gives a tree whose devices all answer to both their names, or an error.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"robot": {".": "Identity, Mobile", "body": {"wheel[]": {"left": "RotationalMotor", "right": "RotationalMotor"}}}}`,
		`{"body": {"leg[]": {"front[]": {"left": {"knee": {"pitch": "Motor"}}}, "0": {"1": "Led"}}, "armR": {"elbow": "Motor"}}}`,
		`{"body": {"accel[]": {"x": "AccelerationSensor"}, "accelX": "AccelerationSensor"}}`, `{"a":{"a":{"a":"Led"}}}`, `{"body": [`, `{"x[]":{"x":{"x":"Led"}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > 4096 {
			return // what is slow here is only big
		}
		tree, warnings, err := Parse("fuzz", src)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, d := range tree.Devices() {
			if seen[d.Compact()] {
				t.Fatalf("%q is the name of two devices in %q", d.Compact(), src)
			}
			seen[d.Compact()] = true
			for _, name := range []string{d.Full(), d.Compact()} {
				if target, err := tree.Lookup(name); err != nil || len(target.Nodes) != 1 || target.Nodes[0] != d {
					if name == d.Compact() && name != d.Full() && shadowed(tree, name) {
						continue
					}
					t.Fatalf("%q of %s means %v, %v (%v) in %q", name, d.Full(), target.Nodes, err, warnings, src)
				}
			}
		}
	})
}

// shadowed reports whether a full name without its robot. comes before a compact name.
func shadowed(tree *robot.Tree, name string) bool {
	_, err := tree.Lookup("robot." + name)
	return err == nil
}
