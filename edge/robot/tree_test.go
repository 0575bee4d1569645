package robot

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// grown returns the sealed tree of paths, each a device of the interface before the colon.
func grown(t *testing.T, paths ...string) *Tree {
	t.Helper()
	tree := New("test")
	for _, p := range paths {
		is, path, _ := strings.Cut(p, ":")
		if _, err := tree.Add(Part{Path: path, Is: []string{is}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tree.Seal(); err != nil {
		t.Fatal(err)
	}
	return tree
}

func fulls(nodes []*Node) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Full()
	}
	return strings.Join(names, " ")
}

// TestGolden is the instantiation of the standard, step by step, and its output (GOSTAI-SUP-10; GOSTAI-TREE-01: head and wheel hang under
// robot here).
func TestGolden(t *testing.T) {
	tree := New("golden")
	root := tree.Root()
	head, err := root.AddComponent("head")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := head.AddDevice("camera", "VideoIn"); err != nil {
		t.Fatal(err)
	}
	wheel, err := NewLocalizer("wheel")
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Attach(wheel); err != nil {
		t.Fatal(err)
	}
	for _, at := range []Loc{Left, Right} {
		w, err := NewComponent("wheel")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Implement("RotationalMotor"); err != nil {
			t.Fatal(err)
		}
		if err := wheel.Set(w, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := root.Implement("Mobile"); err != nil {
		t.Fatal(err)
	}
	if w, err := tree.Seal(); err != nil || w != nil {
		t.Fatal(w, err)
	}
	var flat, dump strings.Builder
	if err := tree.FlatDump(&flat); err != nil {
		t.Fatal(err)
	}
	// GOSTAI-SUP-07, GOSTAI-CMP-08.
	if want := "*** Mobile: robot\n*** RotationalMotor: wheelL wheelR\n*** VideoIn: camera\n"; flat.String() != want {
		t.Errorf("%s\nwant\n%s", &flat, want)
	}
	if err := tree.Dump(&dump); err != nil {
		t.Fatal(err)
	}
	// GOSTAI-SUP-06.
	if want := "robot (Mobile)\n  head\n    camera (VideoIn)\n  wheel\n    [left] (RotationalMotor)\n    [right] (RotationalMotor)\n"; dump.String() != want {
		t.Errorf("%s\nwant\n%s", &dump, want)
	}
	for _, n := range tree.Nodes() { // GOSTAI-TREE-03
		if (n.Kind() == Device) != (len(n.Interfaces()) > 0) || (n.Compact() != "") != (n.Kind() == Device) {
			t.Errorf("%s is a %s with %v, compact %q", n.Full(), n.Kind(), n.Interfaces(), n.Compact())
		}
	}
}

// TestBuilding: what the support classes make, and refuse (GOSTAI-TREE-05, GOSTAI-SUP-02, GOSTAI-SUP-03, GOSTAI-SUP-04, GOSTAI-SUP-08,
// GOSTAI-SUP-09).
func TestBuilding(t *testing.T) {
	tree := New("test")
	root := tree.Root()
	body, _ := root.AddComponent("body")
	if again, err := root.AddComponent("body"); err != nil || again != body {
		t.Errorf("a component that is there: %v, %v; want it", again, err)
	}
	camera, err := body.AddDevice("camera", "VideoIn")
	if err != nil {
		t.Fatal(err)
	}
	leg, err := body.AddLocalizer("leg")
	if err != nil {
		t.Fatal(err)
	}
	member, _ := NewComponent("leg")
	if err := leg.Set(member, Left, Front); err != nil || member.Full() != "robot.body.leg[front][left]" || member.Name() != "leg" ||
		member.Loc() != Left {
		t.Fatalf("%s, %v", member.Full(), err)
	}
	if got, err := leg.Get(Left, Front); err != nil || got != member {
		t.Errorf("Get: %v, %v", got, err)
	}
	fresh := func() *Node { n, _ := NewComponent("leg"); return n }
	refused := map[string]struct {
		err  error
		want error
	}{
		"second device of a name": {errOf(body.AddDevice("camera", "VideoIn")), ErrDuplicate},
		"device without facet":    {errOf(body.AddDevice("blob")), ErrName},
		"unknown interface":       {errOf(body.AddDevice("blob", "Swivel")), ErrNotFound},
		"localizer as component":  {errOf(body.AddComponent("leg")), ErrDuplicate},
		"component as localizer":  {errOf(root.AddLocalizer("body")), ErrDuplicate},
		"attached twice":          {root.Attach(camera), ErrDuplicate},
		"name taken":              {body.Attach(named("camera")), ErrDuplicate},
		"part of itself":          {root.Attach(root), ErrName},
		"robot as a part":         {body.Attach(named("robot")), ErrName},
		"part called as a slot":   {errOf(camera.AddComponent("val")), ErrDuplicate},
		"part without place":      {leg.Attach(named("knee")), ErrName},
		"replaced member":         {leg.Set(fresh(), Front, Left), ErrDuplicate},
		"member over localizer":   {leg.Set(fresh(), Front), ErrDuplicate},
		"below a member":          {leg.Set(fresh(), Front, Left, Number(0)), ErrDuplicate},
		"place in a component":    {body.Set(fresh(), Left), ErrName},
		"no place":                {leg.Set(fresh()), ErrName},
		"member of two":           {leg.Set(member, Back), ErrDuplicate},
		"missing member":          {errOf(leg.Get(Back)), ErrNotFound},
		"interface twice":         {camera.Implement("VideoIn"), ErrDuplicate},
		"facet of a localizer":    {leg.Implement("Motor"), ErrName},
		"capital":                 {errOf(NewComponent("Head")), ErrName},
		"dot":                     {errOf(NewComponent("head.yaw")), ErrName},
		"empty":                   {errOf(NewLocalizer("")), ErrName},
		"long":                    {errOf(NewComponent(strings.Repeat("a", 41))), ErrName},
	}
	for name, r := range refused {
		if !errors.Is(r.err, r.want) {
			t.Errorf("%s: %v, want %v", name, r.err, r.want)
		}
	}
	if err := camera.Implement("Sensor", "Laser", "Motor"); err != nil {
		t.Fatal(err)
	}
	// The most derived only.
	if got := JoinInterfaces(camera.Interfaces()); got != "VideoIn, Laser, Motor" || !camera.Is("Sensor") || camera.Is("Led") {
		t.Errorf("interfaces %s", got)
	}
}

func errOf[T any](_ T, err error) error { return err }

func named(name string) *Node { n, _ := NewComponent(name); return n }

// TestSeal: what a tree cannot be.
func TestSeal(t *testing.T) {
	inf := math.Inf(1)
	for name, tc := range map[string]struct {
		parts []Part
		want  string
	}{
		"no interface":        {[]Part{{Path: "body.touch"}}, "implements no interface"},
		"twice":               {[]Part{{Path: "body.touch", Is: []string{"TouchSensor"}}, {Path: "robot.body.touch", Is: []string{"TouchSensor"}}}, "already a device"},
		"part is a slot":      {[]Part{{Path: "body.blob", Is: []string{"BlobDetector"}}, {Path: "body.blob.x", Is: []string{"LinearMotor"}}}, "both a slot and a part"},
		"range of nothing":    {[]Part{{Path: "body.led", Is: []string{"Led"}, Ranges: map[string]Range{"volume": {0, 1}}}}, "range of slot volume"},
		"empty range":         {[]Part{{Path: "body.led", Is: []string{"Led"}, Ranges: map[string]Range{"val": {2, 3}}}}, "out of range"},
		"NaN range":           {[]Part{{Path: "body.led", Is: []string{"Led"}, Ranges: map[string]Range{"val": {math.NaN(), inf}}}}, "out of range"},
		"unknown optional":    {[]Part{{Path: "body.led", Is: []string{"Led"}, Has: []string{"volume"}}}, "slot volume"},
		"fixed of wrong type": {[]Part{{Path: "robot", Is: []string{"Identity"}, Fixed: map[string]Value{"model": F(1)}}}, "wrong type"},
		"fixed word":          {[]Part{{Path: "robot", Is: []string{"Identity"}, Fixed: map[string]Value{"type": S("flying")}}}, "want one of"},
		"uses nothing":        {[]Part{{Path: "robot", Is: []string{"Mobile"}, Uses: map[string][]string{"Mobile": {"robot.body.wheel"}}}}, "not an actuator"},
		"alias taken": {[]Part{{Path: "body.led", Is: []string{"Led"}}, {Path: "body.light", Is: []string{"Sensor"}, Aliases: []string{"led"}}},
			"alias led of robot.body.light is already the name of robot.body.led"},
		"component and localizer": {[]Part{{Path: "body.led", Is: []string{"Led"}}, {Path: "body.led[0]", Is: []string{"Led"}}}, "not a localizer"},
		"property in a path":      {[]Part{{Path: "body.led->unit", Is: []string{"Led"}}}, "names below robot"},
	} {
		if _, err := Build("test", Frame{}, tc.parts); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	// A localizer that tells nothing apart.
	empty := New("test")
	if _, err := empty.Root().AddLocalizer("leg"); err != nil {
		t.Fatal(err)
	}
	if _, err := empty.Seal(); err == nil || !strings.Contains(err.Error(), "no members") {
		t.Errorf("an empty localizer: %v", err)
	}
}

// TestLocalizations: the words, their letters and aliases (GOSTAI-LOC-01, GOSTAI-LOC-02, GOSTAI-LOC-03), and their directions for a viewer
// who looks along X (GOSTAI-FRAME-06).
func TestLocalizations(t *testing.T) {
	for _, tc := range []struct {
		words, suffix string
		way           Vec
	}{
		{"up top", "U", Vec{Z: 1}}, {"inbetween in-between", "I", Vec{}}, {"down", "D", Vec{Z: -1}},
		{"front", "F", Vec{X: 1}}, {"middle", "M", Vec{}}, {"back", "B", Vec{X: -1}},
		{"right", "R", Vec{Y: -1}}, {"center", "C", Vec{}}, {"left", "L", Vec{Y: 1}},
		{"x", "X", Vec{X: 1}}, {"y", "Y", Vec{Y: 1}}, {"z", "Z", Vec{Z: 1}},
		{"0", "[0]", Vec{}}, {"124", "[124]", Vec{}}, {"65535", "[65535]", Vec{}},
	} {
		for _, w := range strings.Fields(tc.words) {
			l, err := ParseLoc(w)
			if err != nil || l.suffix() != tc.suffix || l.Direction() != tc.way || !strings.HasPrefix(tc.words, l.String()) {
				t.Errorf("%s: %s %s %v, %v", w, l, l.suffix(), l.Direction(), err)
			}
		}
	}
	if l, ok := locOfLetter('H'); !ok || l != Back {
		t.Errorf("H is %v, want back", l)
	}
	for _, bad := range []string{"", "Left", "hind", "-1", "01", "65536", "1.0", "left ", "w"} {
		if l, err := ParseLoc(bad); !errors.Is(err, ErrName) {
			t.Errorf("%q is %v, %v", bad, l, err)
		}
	}
}

// TestOrder: height, depth, side; a repeated class refines; numbers as they come (GOSTAI-LOC-04, GOSTAI-LOC-05, GOSTAI-LOC-06,
// GOSTAI-LOC-09, GOSTAI-LOC-10).
func TestOrder(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"[front][left]", "[front][left]"},
		{"[left][front]", "[front][left]"},
		{"[left][up]", "[up][left]"},
		{"[right][back][down]", "[down][back][right]"},
		{"[front][left][back]", "[front][left][back]"}, // depth and side, then a second depth
		{"[left][front][back]", "[front][left][back]"},
		{"[front][left][back][right]", "[front][left][back][right]"},
		{"[0][left]", "[left][0]"},
		{"[478][124]", "[478][124]"},
		{"[x]", "[x]"},
		{"[up][down][up]", "error"},
		{"[up][front][left][down][back]", "error"},
		{"[x][y]", "error"},
		{"[1][2][3][4][5]", "error"},
	} {
		p, err := ParsePath("leg" + tc.in)
		if err != nil {
			t.Fatal(err)
		}
		got := "error"
		if locs, err := orderLocs(p.Steps[0].Locs); err == nil {
			got = strings.TrimPrefix(Step{"leg", locs}.String(), "leg")
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.in, got, tc.want)
		}
	}
}

// TestNumbering: circles and rows (GOSTAI-LOC-06, GOSTAI-LOC-07). The sonars of AmigoBot are a ring without one at the front; their numbers in the
// standard are those of GOSTAI-MAP-A-06 to 13.
func TestNumbering(t *testing.T) {
	deg := func(d ...float64) []float64 {
		for i := range d {
			d[i] *= math.Pi / 180
		}
		return d
	}
	for _, tc := range []struct {
		bearings []float64
		want     []int
	}{
		{deg(90, 44, 12, -12, -44, -90, -144, 144), []int{2, 1, 0, 7, 6, 5, 4, 3}}, // of the two front-most the left one is 0
		{deg(180, 0, 90, 270), []int{1, 2, 0, 3}},
		{deg(-10, 120, 240), []int{0, 1, 2}},
		{nil, nil},
	} {
		if got := Ring(tc.bearings); !slices.Equal(got, tc.want) {
			t.Errorf("ring %v: %v, want %v", tc.bearings, got, tc.want)
		}
	}
	for _, tc := range []struct {
		name   string
		places []Vec
		want   []int
	}{
		{"legs of an insect, front first", []Vec{{X: -0.1, Y: 0.05}, {X: 0, Y: 0.06}, {X: 0.1, Y: 0.05}}, []int{2, 1, 0}},
		{"lights, top first", []Vec{{Z: 0.1}, {Z: 0.3}, {Z: 0.2}}, []int{1, 2, 0}},
		{"eyes, left first", []Vec{{Y: -0.1}, {Y: 0}, {Y: 0.1}}, []int{2, 1, 0}},
	} {
		if got := Row(tc.places); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestLookup: every example of the standard resolves (GOSTAI-TREE-02, GOSTAI-LOC-06, GOSTAI-LOC-08
// to GOSTAI-LOC-12), in every accepted spelling, and what is not there says what is.
func TestLookup(t *testing.T) {
	tree := grown(t,
		"Mobile:robot",
		"RotationalMotor:body.leg[front][left].hip.pitch", "RotationalMotor:body.leg[front][left].hip.roll", "TouchSensor:body.leg[front][left].foot.touch",
		"RotationalMotor:body.leg[front][right].hip.pitch", "TouchSensor:body.leg[front][right].foot.touch",
		"Motor:body.arm[right].hand.finger[right]", "Motor:body.arm[right].hand.finger[center]", "Motor:body.arm[right].hand.finger[left]",
		"Motor:body.arm[left].hand.finger[3][2]", "RotationalMotor:body.arm[right].elbow",
		"Motor:body.grip", "VideoIn:body.mast.camera[left]", "VideoIn:body.mast.camera[right]",
		"DistanceSensor:body.laser[front]", "RGBLed:body.head.eye[left].led[up][left]", "RotationalMotor:body.head.yaw",
		"Motor:body.tail.joint[0]", "Motor:body.tail.joint[5]", "TouchSensor:body.skin.touch[478][124]",
		"AccelerationSensor:body.accel[x]", "GyroSensor:body.gyro[z]",
		"RotationalMotor:body.wheel[front][left]", "RotationalMotor:body.wheel[front][right]", "RotationalMotor:body.wheel[back][left]",
		"Motor:body.insect[left][0]", "RGBLed:body.earR", "TouchSensor:body.ear[right].touch",
		"AudioIn:body.micro[0]", "AudioIn:body.micro[1]", "LinearMotor:body.crane.z", "RotationalMotor:body.neck.pitch",
		"RotationalMotor:body.torso.yaw", "RotationalMotor:body.torso.roll",
	)
	for _, tc := range []struct{ name, want string }{
		{"robot", "robot"},
		{"robot.body.wheel[front][left]", "robot.body.wheel[front][left]"},
		{"body.wheel[left][front]", "robot.body.wheel[front][left]"},
		{"wheelFL", "robot.body.wheel[front][left]"},
		{"body.arm[right].hand.finger[center]", "robot.body.arm[right].hand.finger[center]"},
		{"robot.body.armR.hand.fingerL", "robot.body.arm[right].hand.finger[left]"},
		{"robot.body.armL.hand.finger[3][2]", "robot.body.arm[left].hand.finger[3][2]"},
		{"fingerL[3][2]", "robot.body.arm[left].hand.finger[3][2]"},
		{"robot.body.laser[front]", "robot.body.laser[front]"},
		{"robot.body.mast.camera[left]", "robot.body.mast.camera[left]"},
		{"robot.body.head.eye[left].led[up][left].val", "robot.body.head.eye[left].led[up][left].val"},
		{"ledLUL.g", "robot.body.head.eye[left].led[up][left].g"},
		{"robot.body.leg[front][left].foot.touch", "robot.body.leg[front][left].foot.touch"},
		{"body.tail.joint[5]", "robot.body.tail.joint[5]"},
		{"body.skin.touch[478][124].pressure", "robot.body.skin.touch[478][124].pressure"},
		{"body.accel[x]", "robot.body.accel[x]"},
		{"accelX", "robot.body.accel[x]"},
		{"robot.body.insect[left][0]", "robot.body.insect[left][0]"},
		{"body.insect[0][left]", "robot.body.insect[left][0]"},
		{"body.grip.val", "robot.body.grip.val"},
		{"test:robot.body.grip", "robot.body.grip"},
		{"robot.go", "robot.go"},
		{"go", "robot.go"},
		{"camera", "robot.body.mast.camera[left]"}, // GOSTAI-COMP-38: the bare name is an alias of one
		{"micro", "robot.body.micro[0]"},           // GOSTAI-COMP-40
		{"robot.body.earR", "robot.body.earR"},     // GOSTAI-LOC-11: the plain name is there, so it is no ear[right]
		{"robot.body.ear[right].touch", "robot.body.ear[right].touch"},
		{"cameraR", "robot.body.mast.camera[right]"},
		{"crane", "robot.body.crane.z"},
		{"craneZ", "robot.body.crane.z"}, // GOSTAI-CMP-07
		{"neckPitch", "robot.body.neck.pitch"},
		{"headYaw", "robot.body.head.yaw"},
		{"pitch", "robot.body.neck.pitch"}, // those of the legs are pitchFL and pitchFR
		{"pitchFR", "robot.body.leg[front][right].hip.pitch"},
		{"bodyHeadYaw", "robot.body.head.yaw"},
		{"wheelHL", "robot.body.wheel[back][left]"},
		{"hipRollFL", "robot.body.leg[front][left].hip.roll"},
		// Groups (GOSTAI-LOC-13).
		{"body.wheel[front].val", "robot.body.wheel[front][left].val robot.body.wheel[front][right].val"},
		{"body.wheel[left].val", "robot.body.wheel[front][left].val robot.body.wheel[back][left].val"},
		{"wheel[front][left].angle", "robot.body.wheel[front][left].angle"}, // a short name, its places as in a full one
		{"wheel.angle", "robot.body.wheel[front][left].angle robot.body.wheel[front][right].angle robot.body.wheel[back][left].angle"},
		{"robot.body.leg.hip.pitch", "robot.body.leg[front][left].hip.pitch robot.body.leg[front][right].hip.pitch"},
		{"robot.body.leg.pressure", "robot.body.leg[front][left].foot.touch.pressure robot.body.leg[front][right].foot.touch.pressure"},
		{"robot.body.accel[x].val->unit", "robot.body.accel[x].val"},
	} {
		target, err := tree.Lookup(tc.name)
		got := fulls(target.Nodes)
		if len(target.Refs) > 0 {
			names := make([]string, len(target.Refs))
			for i, r := range target.Refs {
				names[i] = r.String()
			}
			got = strings.Join(names, " ")
		}
		if err != nil || got != tc.want {
			t.Errorf("%s: %s, %v; want %s", tc.name, got, err, tc.want)
		}
	}
	for _, tc := range []struct {
		name string
		want error
		text string
	}{
		{"robot.body.hed", ErrNotFound, "it has leg, arm, grip"},
		{"robot.body.arm[front]", ErrNotFound, "robot.body.arm[front]; it has [right], [left]"},
		{"robot.body.head.yaw.pressure", ErrNotFound, "it has val"},
		{"robot.body.head.yaw.PGain", ErrNotPresent, "robot.body.head.yaw.PGain"},
		{"robot.body.head[left]", ErrNotFound, ""},
		{"yaw", ErrAmbiguous, "yaw: robot.body.head.yaw, robot.body.torso.yaw"},
		{"touchD", ErrNotFound, ""},
		{"other:robot", ErrNotFound, "want test"},
		{"robot.body->unit", ErrName, "-> after a slot"},
		{"robot..body", ErrName, ""},
		{"", ErrName, ""},
		{"robot.body.arm[left", ErrName, "closing bracket"},
		{"robot.body.arm[left]x", ErrName, "after a bracket"},
		{"body.öse", ErrName, `component "öse"; want a lower-case letter`},
		{"robot.body.arm[sideways]", ErrName, "want up, inbetween"},
		{"robot." + strings.Repeat("a.", 30) + "b", ErrName, "more than 24"},
		{strings.Repeat("a", 500), ErrName, "at most 400"},
	} {
		if target, err := tree.Lookup(tc.name); !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%.40s: %v, %v; want %v with %q", tc.name, target, err, tc.want, tc.text)
		}
	}
}

// TestExamples: every name that the standard's text gives as an example, each the only one of its tree: it can be built, means itself, and has
// this compact name. The lines are those of the standard's text (GOSTAI-TREE-02, GOSTAI-NAME-02, GOSTAI-LOC-02 to 12, GOSTAI-COMP-38 to
// 40). Names that it writes without a path are placed below body; led[up][left] has its .val in TestLookup.
func TestExamples(t *testing.T) {
	for _, tc := range []struct {
		line          int
		name, compact string
	}{
		{89, "body.leg[right].hip.tilt", "tiltR"}, {90, "body.arm.grip", "grip"}, {91, "body.laser", "laser"}, {95, "leg[right]", "legR"},
		{138, "robot.body.wheel[front][left]", "wheelFL"}, {143, "robot.body.laser[front]", "laserF"}, {145, "robot.body.arm.camera[left]", "cameraL"},
		{147, "robot.body.head.eye[left].led[up][left]", "ledLUL"}, {149, "robot.body.leg[front][left].foot.touch", "touchFL"},
		{158, "robot.body.leg[left][0]", "legL[0]"}, {169, "robot.body.accel[x]", "accelX"},
		{175, "leg[left]", "legL"}, {176, "finger[right]", "fingerR"}, {176, "finger[center]", "fingerC"}, {176, "finger[left]", "fingerL"},
		{177, "joint[0]", "joint[0]"}, {177, "joint[5]", "joint[5]"}, {178, "touch[478][124]", "touch[478][124]"},
		{179, "accel[y]", "accelY"}, {179, "accel[z]", "accelZ"}, {180, "gyro[x]", "gyroX"}, {180, "gyro[y]", "gyroY"}, {180, "gyro[z]", "gyroZ"},
		{572, "head.camera[right]", "cameraR"}, {573, "head.speaker[left]", "speakerL"}, {574, "head.micro[right]", "microR"},
		{662, "robot.head.camera", "camera"}, {665, "robot.wheel[left]", "wheelL"},
	} {
		full := tc.name
		if !strings.HasPrefix(full, "robot.") {
			full = "robot.body." + strings.TrimPrefix(full, "body.")
		}
		tree := grown(t, "Motor:"+full)
		d := tree.Devices()[0]
		for _, name := range []string{full, strings.TrimPrefix(full, "robot."), tc.compact} {
			if target, err := tree.Lookup(name); err != nil || !slices.Equal(target.Nodes, []*Node{d}) || d.Compact() != tc.compact || d.Full() != full {
				t.Errorf("line %d, %s: %s is %s, %s; want %s: %v", tc.line, name, fulls(target.Nodes), d.Full(), d.Compact(), tc.compact, err)
			}
		}
	}
	if _, err := ParsePath("head.joint[yaw]"); !errors.Is(err, ErrName) { // line 508
		t.Errorf("head.joint[yaw]: %v", err)
	}
}

// TestFirstInterfaceWins: of two interfaces with a val the first declared has it, the other's own slots stay (GOSTAI-IF-00b).
func TestFirstInterfaceWins(t *testing.T) {
	tree, err := Build("test", Frame{}, []Part{{Path: "body.wheel", Is: []string{"RotationalMotor", "RotationalSpeedMotor"}, Has: []string{"PGain"}}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range tree.Devices()[0].Slots() {
		names = append(names, fmt.Sprint(r.Interface, ".", r.Slot.Name, " ", r.Present))
	}
	want := []string{"RotationalMotor.val true", "RotationalMotor.PGain true", "RotationalMotor.IGain false", "RotationalMotor.DGain false",
		"RotationalMotor.angle true", "RotationalMotor.turn true", "RotationalMotor.torque true", "RotationalSpeedMotor.speed true"}
	if !slices.Equal(names, want) {
		t.Errorf("%q\nwant %q", names, want)
	}
	if target, err := tree.Lookup("wheel.val"); err != nil || target.Refs[0].Slot.Points != "angle" {
		t.Errorf("%+v, %v", target, err)
	}
}

// TestProperties: rangemin, rangemax and unit of every slot, what a device says of itself, and its own limits within the standard's
// (GOSTAI-IF-00f, GOSTAI-TREE-04).
func TestProperties(t *testing.T) {
	tree, err := Build("test", Frame{}, []Part{
		{Path: "body.head.yaw", Is: []string{"RotationalMotor"}, Ranges: map[string]Range{"angle": {-1, 2}}, Props: map[string]Value{"native": S("HEAD_YAW")}},
		{Path: "body.led", Is: []string{"Led"}, Ranges: map[string]Range{"val": {-5, 0.5}}},
		{Path: "body.button", Is: []string{"TouchSensor"}, Props: map[string]Value{"unit": S("")}}, {Path: "body.touch", Is: []string{"TouchSensor"}},
		{Path: "body.mouth", Is: []string{"Motor"}, Has: []string{"PGain"}, Props: map[string]Value{"unit": S("rad")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, prop string
		want       Value
		ok         bool
	}{
		{"headYaw.val", "rangemin", F(-1), true}, {"headYaw.angle", "rangemax", F(2), true}, {"headYaw.val", "unit", S("rad"), true},
		{"headYaw.turn", "unit", S("turn"), true}, {"headYaw.val", "native", S("HEAD_YAW"), true}, {"headYaw.angle", "native", Value{}, false},
		{"button.val", "unit", S(""), true}, {"button.pressure", "unit", S(""), true}, {"touch.pressure", "unit", S("Pa"), true}, // GOSTAI-IF-10.1
		{"mouth.val", "unit", S("rad"), true}, {"mouth.PGain", "unit", S("(body)"), true}, // GOSTAI-IF-03.1
		{"led.val", "rangemin", F(0), true}, {"led.val", "rangemax", F(0.5), true}, {"led.val", "colour", Value{}, false},
	} {
		target, err := tree.Lookup(tc.name)
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := target.Refs[0].Prop(tc.prop); fmt.Sprint(v) != fmt.Sprint(tc.want) || ok != tc.ok {
			t.Errorf("%s->%s is %v, %v; want %v, %v", tc.name, tc.prop, v, ok, tc.want, tc.ok)
		}
	}
}

// TestActuators: which devices have one owner at a time, and which a name takes.
func TestActuators(t *testing.T) {
	tree, err := Build("test", Frame{}, []Part{
		{Path: "robot", Is: []string{"Identity", "Mobile", "Tracker"}, Uses: map[string][]string{"Mobile": {"body.wheel"}, "Tracker": {"headPitch", "body.wheel[left]"}}},
		{Path: "body.wheel[left]", Is: []string{"RotationalMotor"}}, {Path: "body.wheel[right]", Is: []string{"RotationalMotor"}},
		{Path: "body.head.pitch", Is: []string{"RotationalMotor"}}, {Path: "body.head.touch", Is: []string{"TouchSensor"}}, {Path: "body.head.eye.led", Is: []string{"Led"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := fulls(tree.Actuators()); got != "robot.body.wheel[left] robot.body.wheel[right] robot.body.head.pitch robot.body.head.eye.led" {
		t.Fatal(got)
	}
	for _, tc := range []struct {
		name string
		want []int
	}{
		{"robot.go", []int{0, 1}}, {"robot.yaw", []int{0, 2}}, {"robot.name", nil}, {"robot", []int{0, 1, 2, 3}},
		{"robot.body.head", []int{2, 3}}, {"headPitch", []int{2}}, {"headPitch.angle", []int{2}}, {"wheel", []int{0, 1}}, {"wheel.val", []int{0, 1}}, {"touch", nil},
	} {
		target, err := tree.Lookup(tc.name)
		if got := tree.ActuatorsOf(target); err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s takes %v, %v; want %v", tc.name, got, err, tc.want)
		}
	}
}

// TestTrees: several bodies in one agent, robot alone is the first (GOSTAI-TREE-07).
func TestTrees(t *testing.T) {
	a, b := grown(t, "Led:body.led"), grown(t, "Led:body.led", "Motor:body.grip")
	a.Name, b.Name = "one", "two"
	ts := Trees{a, b}
	for name, want := range map[string]*Tree{"led": a, "one:robot.body.led": a, "two:led": b, "two:grip.val": b} {
		if tree, target, err := ts.Lookup(name); err != nil || tree != want || len(target.Nodes) != 1 {
			t.Errorf("%s: %v, %v", name, target, err)
		}
	}
	for _, name := range []string{"three:led", "grip", "one:grip"} {
		if _, _, err := ts.Lookup(name); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := (Trees{}).Lookup("robot"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// FuzzPath: what parses prints as it can be parsed again to the same, and no name makes Lookup fail but by an error.
func FuzzPath(f *testing.F) {
	tree := New("fuzz")
	for _, p := range []string{"body.leg[front][left].hip.pitch", "body.leg[back][left].hip.pitch", "body.arm[right].hand.finger[3][2]",
		"body.head.yaw"} {
		if _, err := tree.Add(Part{Path: p, Is: []string{"RotationalMotor"}}); err != nil {
			f.Fatal(err)
		}
	}
	if _, err := tree.Seal(); err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"robot.body.leg[left][front].hip.pitch.val->unit", "fuzz:fingerR[3][2]", "armR.hand", "hipFL.angle",
		"leg.hip.pitch.val", "x[", "a]b", "->", "::", "RRRR[0]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePath(s)
		if err != nil {
			return
		}
		again, err := ParsePath(p.String())
		if err != nil || again.String() != p.String() {
			t.Fatalf("%q prints as %q, which is %q, %v", s, p, again, err)
		}
		if target, err := tree.Lookup(s); err == nil && len(target.Nodes) == 0 {
			t.Fatalf("%q means nothing, without an error", s)
		}
		if n, err := New("grow").Grow(s); err == nil && n == nil {
			t.Fatalf("%q grew nothing", s)
		}
	})
}
