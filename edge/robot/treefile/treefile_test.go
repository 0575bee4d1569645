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
		"the standard's table as it spells it": {`{"robot": {"body": {"armR": {"elbow": "RotationalMotor", "hand": {"finger[3][2]": "Motor"}},
			"head": {"yaw": "RotationalMotor", "pitch": "RotationalMotor"}, "legL": {"knee": {"pitch": "RotationalMotor"}}, "armL": {"hand": {"fingerR": "Motor"}}}}}`,
			`robot.body.arm[right].elbow elbowR RotationalMotor
robot.body.arm[right].hand.finger[3][2] fingerR[3][2] Motor
robot.body.arm[left].hand.finger[right] fingerLR Motor
robot.body.head.yaw headYaw RotationalMotor
robot.body.head.pitch headPitch RotationalMotor
robot.body.leg[left].knee.pitch kneeL RotationalMotor
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
		"devices with parts and several interfaces": {`{"robot": {".": "Identity,  Mobile",
			"body": {"battery": {".": "Battery", "temperature": "TemperatureSensor"}, "wheel": "RotationalMotor,RotationalSpeedMotor"}}}`,
			`robot robot Identity, Mobile
robot.body.battery battery Battery
robot.body.battery.temperature temperature TemperatureSensor
robot.body.wheel wheel RotationalMotor, RotationalSpeedMotor
`},
		"the old word for interface": {`{"head": {"camera": "Facet.VideoIn"}}`, "robot.head.camera camera VideoIn\n"},
		"a byte order mark":          {"\ufeff{\"robot\": \"Mobile\"}", "robot robot Mobile\n"},
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
		"component":       {`{"Body": {}}`, "line 1, column 2, robot.Body: ", robot.ErrName},
		"device":          {`{"body": {"Led": "Led"}}`, "line 1, column 11, robot.body.Led: ", robot.ErrName},
		"empty key":       {`{"body": {"": "Led"}}`, `line 1, column 11, robot.body: bad name: component ""; want a lower-case letter`, robot.ErrName},
		"empty localizer": {`{"body": {"[]": {"left": "Led"}}}`, `line 1, column 11, robot.body: bad name: component ""; want a lower-case letter`, robot.ErrName},
		"robot and more":  {`{"robot": {}, "body": {}}`, "line 1, column 2, robot.robot: bad name: robot is the root", robot.ErrName},
		"component twice": {`{"leg[]": {"up": {"a": "Led"}, "top": {"b": "Led"}}}`, "line 1, column 32, robot.leg[top]: name is taken: the file describes robot.leg[up] twice", robot.ErrDuplicate},
		"old style twice": {`{"arm[]": {"right": {}}, "armR": {"elbow": "Motor"}}`, "line 1, column 26, robot.arm[right]: name is taken", robot.ErrDuplicate},
		"device on top":   {`{"arm[]": {"right": {}}, "arm[right]": "Motor"}`, "line 1, column 26, robot.arm[right]: name is taken", robot.ErrDuplicate},
		"umlaut before":   {`{"body": {"led": "Led", "öse": "Led"}}`, "line 1, column 25, robot.body: ", robot.ErrName},
		"two names":       {`{"body.head": {}}`, "line 1, column 2, robot: ", robot.ErrName},
		"property":        {`{"body": {"led->unit": "Led"}}`, "line 1, column 11, robot.body: ", robot.ErrName},
		"key twice":       {`{"body": {"led": "Led", "led": "Led"}}`, "line 1, column 25: ", robot.ErrDuplicate},
		"place twice":     {`{"body": {"led[]": {"front[]": {"left": "Led"}, "left[]": {"front": "Led"}}}}`, "line 1, column 60, robot.body.led[left][front]: ", robot.ErrDuplicate},
		"no members":      {`{"body": {"led[]": {}}}`, "line 1, column 11, robot.body.led: a localizer ", nil},
		"localizer text":  {`{"body": {"led[]": "Led"}}`, "line 1, column 11, robot.body.led: a localizer ", nil},
		"both":            {`{"body": {"led[left][]": {"front": "Led"}}}`, "line 1, column 11, robot.body: ", robot.ErrName},
		"empty interface": {`{"body": {"led": ""}}`, "line 1, column 18, robot.body.led: ", robot.ErrName},
		"dot object":      {`{"body": {".": {}}}`, "line 1, column 11, robot.body: ", nil},
		"number":          {`{"body": 3}`, "line 1, column 10: want an object", nil},
		"list":            {`{"body": ["led"]}`, "line 1, column 10: want an object", nil},
		"null":            {`null`, "line 1, column 1: want an object", nil},
		"text":            {`"Led"`, "line 1, column 1: want an object", nil},
		"syntax":          {"{\"body\": {\n  \"led\" \"Led\"}}", "line 2, column 9: invalid character '\"' after object key; want an object in braces", nil},
		"wrong quotes":    {`{"body": {'led': "Led"}}`, `line 1, column 11: invalid character '\''; want a key in quotes`, nil},
		"wrong quotes 2":  {`{"body": {"led": 'Led'}}`, `line 1, column 18: invalid character '\'' looking for beginning of value; want an object in braces`, nil},
		"comma too many":  {`{"body": {"led": "Led",}}`, `line 1, column 24: invalid character '}' looking for beginning of object key string; want a key in quotes`, nil},
		"comma missing": {`{"body": {"led": "Led" "eye": "Led"}}`,
			`line 1, column 24: invalid character '"' after object key:value pair; want a key in quotes with a colon behind it, a comma between two`, nil},
		"wrong bracket":   {`{"body": {"led": "Led"]}`, "line 1, column 23: invalid character ']' after object key:value pair; want a key in quotes", nil},
		"newline in text": {"{\"body\": {\"led\": \"L\ned\"}}", `line 1, column 18: invalid character '\n' in string literal; want an object in braces`, nil},
		"cut":             {"{\"body\": {\n", "line 2, column 1: truncated text", nil},
		"empty":           {"", "line 1, column 1: truncated text", nil},
		"more":            {"{}\n{}", "line 2", nil},
		"not text":        {"{\"\xff\": {}}", "not UTF-8", nil},
		"deep":            {strings.Repeat(`{"a":`, 70), "levels", nil},
		"long way":        {strings.Repeat(`{"a":`, 30) + `"Led"` + strings.Repeat("}", 30), "more than 24 parts", robot.ErrName},
		"big":             {strings.Repeat(" ", maxBytes+1), "at most 8388608", nil},
		"part and slot":   {`{"body": {"blob": {"x": "LinearMotor", ".": "BlobDetector"}}}`, "line 1, column 45, robot.body.blob: name is taken: robot.body.blob.x is both a slot", robot.ErrDuplicate},
		"slot and part": {`{"body": {"blob": {".": "BlobDetector", "x": "LinearMotor"}}}`,
			"line 1, column 41, robot.body.blob.x: name is taken: robot.body.blob.x is both a slot and a part of the device", robot.ErrDuplicate},
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
	line := func(n int, each string) string { // the places 0 to n-1 with each inside
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `, "%d": %s`, i, each)
		}
		return "{" + b.String()[2:] + "}"
	}
	// The skin that the standard's text takes touch[478][124] from is a big file, and not too big (GOSTAI-LOC-09).
	skin, _, err := Parse("file", []byte(`{"body": {"skin": {"touch[]": `+line(479, line(125, `"TouchSensor"`))+`}}}`))
	if err != nil || len(skin.Devices()) != 479*125 {
		t.Fatalf("a skin: %v", err)
	}
	if target, err := skin.Lookup("touch[478][124].val"); err != nil || target.Refs[0].Node != skin.Devices()[479*125-1] {
		t.Errorf("the last of a skin: %v", err)
	}
	many.Reset()
	many.WriteString(`{"body": {"a": "Led"`)
	for i := range maxNodes {
		fmt.Fprintf(&many, `, "p%d": {}`, i)
	}
	if _, _, err := Parse("file", []byte(many.String()+"}}")); err == nil || !strings.Contains(err.Error(), "more than 100000 nodes") {
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
					t.Fatalf("%q of %s means %v, %v (%v) in %q", name, d.Full(), target.Nodes, err, warnings, src)
				}
			}
		}
	})
}
