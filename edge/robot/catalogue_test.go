package robot

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// rows reads a table of testdata: fields between " | ", lines that begin with # are comments.
func rows(t *testing.T, file string) [][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out = append(out, strings.Split(line, " | "))
		}
	}
	return out
}

// describe writes a slot as the table of testdata does.
func describe(s *Slot) string {
	name, unit, span := s.Name, string(s.Unit), "-"
	if s.Optional {
		name += "?"
	}
	if len(s.Args) == 1 {
		unit = string(s.Args[0].Unit)
	}
	if unit == "" {
		unit = "-"
	}
	num := func(v float64) string {
		if math.IsInf(v, 0) {
			return ""
		}
		return fmt.Sprintf("%.5g", v)
	}
	switch {
	case s.Min == math.SmallestNonzeroFloat64:
		span = ">0"
	case !math.IsInf(s.Min, -1) || !math.IsInf(s.Max, 1):
		span = num(s.Min) + ".." + num(s.Max)
	}
	return strings.Join([]string{name, "ARME"[s.Access : s.Access+1], s.Type.String(), unit, span}, " | ")
}

// TestSlots: every interface has exactly the slots of the standard, each of its type, unit and range (GOSTAI-IF-00a, GOSTAI-IF-00d and the rows
// GOSTAI-IF-01.1 to GOSTAI-IF-25.4 in testdata/slots.txt), 77 in all, 23 of them optional; ours stand apart.
func TestSlots(t *testing.T) {
	want, optional := map[string][]string{}, 0
	for _, r := range rows(t, "slots.txt") {
		want[r[1]] = append(want[r[1]], strings.Join(r[2:], " | "))
		if strings.HasSuffix(r[2], "?") {
			optional++
		}
	}
	if n := len(rows(t, "slots.txt")); n != 77 || optional != 23 || len(want) != 25 {
		t.Fatalf("the table has %d slots of %d interfaces, %d optional; want 77 of 25, 23", n, len(want), optional)
	}
	got := map[string][]string{}
	for _, i := range Interfaces() {
		if i.Extra {
			continue
		}
		got[i.Name] = nil
		for k := range i.Own {
			if !i.Own[k].Extra {
				got[i.Name] = append(got[i.Name], describe(&i.Own[k]))
			}
		}
	}
	for name, slots := range want {
		if !slices.Equal(got[name], slots) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got[name], "\n"), strings.Join(slots, "\n"))
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s is not of the standard", name)
	}
	for _, i := range Interfaces() {
		if i.Doc == "" {
			t.Errorf("%s is not explained", i.Name)
		}
		for _, s := range i.Slots {
			if s.Doc == "" || s.Extra && !s.Optional {
				t.Errorf("%s.%s is not explained, or of ours and not optional", i.Name, s.Name)
			}
		}
	}
	if s := byName["Identity"].Slot("type"); !slices.Equal(s.Words, []string{"humanoid", "four-legged", "wheeled", "industrial arm"}) ||
		byName["Identity"].Slot("kind") != s {
		t.Errorf("Identity.type is %+v, want four words and the alias kind", s)
	}
	for _, name := range []string{"stop", "moving", "xSpeed", "yawSpeed", "watchdogInterval", "finished", "aborted", "unreachable"} { // GOSTAI-IF-15.3
		if s := byName["Mobile"].Slot(name); s == nil || !s.Extra {
			t.Errorf("Mobile.%s is %v", name, s)
		}
	}
}

// TestInheritance: who is a kind of whom, and where val points (GOSTAI-IF-00a, GOSTAI-IF-00c). Both speed motors are there: the seed wins over the
// reference code.
func TestInheritance(t *testing.T) {
	want := map[string]string{
		"LinearMotor": "Motor position", "LinearSpeedMotor": "Motor speed", "RotationalMotor": "Motor angle", "RotationalSpeedMotor": "Motor speed",
		"DistanceSensor": "Sensor distance", "TouchSensor": "Sensor pressure", "AccelerationSensor": "Sensor acceleration", "GyroSensor": "Sensor speed",
		"TemperatureSensor": "Sensor temperature", "Laser": "Sensor ", "RGBLed": "Led ",
		"DigitalIn": "Sensor ", "AnalogIn": "Sensor ", "CliffSensor": "Sensor ", "InfraRed": "Sensor ", // ours
	}
	for _, i := range Interfaces() {
		got := ""
		if i.Base != nil {
			val := i.Slot("val")
			got = i.Base.Name + " " + val.Points
			if to := i.Slot(val.Points); to != nil && (to.Unit != val.Unit || to.Access != val.Access || to.Type != val.Type) {
				t.Errorf("%s.val is %+v, %s %+v", i.Name, val, to.Name, to)
			}
			if !i.Is(i.Base) || i.Base.Is(i) {
				t.Errorf("%s and its base: Is is wrong", i.Name)
			}
		}
		if got != want[i.Name] {
			t.Errorf("%s is a %q, want %q", i.Name, got, want[i.Name])
		}
	}
	if _, err := InterfaceNamed("Swivel"); !errors.Is(err, ErrNotFound) { // GOSTAI-IF-00e
		t.Errorf("Swivel: %v, want none", err)
	}
	for _, name := range []string{"VideoIn", "Interface.VideoIn", "Facet.VideoIn"} { // GOSTAI-SUP-01
		if i, err := InterfaceNamed(name); err != nil || i.Name != "VideoIn" {
			t.Errorf("%s: %v, %v", name, i, err)
		}
	}
	if _, err := InterfaceNamed("videoin"); err == nil || !strings.Contains(err.Error(), "did you mean VideoIn") {
		t.Errorf("videoin: %v", err)
	}
}

// TestEverySlotIsReachable: a device of each interface, with all its optional slots, answers to each of their standard names, full and compact
// (GOSTAI-TREE-02, GOSTAI-TREE-06). Without them an optional slot is "not present" (GOSTAI-IF-00d).
func TestEverySlotIsReachable(t *testing.T) {
	for _, has := range []bool{true, false} {
		tree := New("all")
		for _, i := range Interfaces() {
			p := Part{Path: "body.p" + strings.ToLower(i.Name), Is: []string{i.Name}}
			if has {
				p.Has = []string{"*"}
			}
			if _, err := tree.Add(p); err != nil {
				t.Fatal(err)
			}
		}
		if w, err := tree.Seal(); err != nil || w != nil {
			t.Fatal(w, err)
		}
		n := 0
		for _, i := range Interfaces() {
			for _, s := range i.Slots {
				for _, base := range []string{"robot.body.p", "body.p", "p"} {
					name := base + strings.ToLower(i.Name) + "." + s.Name
					target, err := tree.Lookup(name)
					if s.Optional && !has {
						if !errors.Is(err, ErrNotPresent) {
							t.Errorf("%s: %v, want not present", name, err)
						}
						continue
					}
					if err != nil || len(target.Refs) != 1 || target.Refs[0].Slot.Name != s.Name || target.Refs[0].Interface != i {
						t.Errorf("%s: %+v, %v", name, target, err)
					}
					n++
				}
			}
		}
		if n < 3*54 {
			t.Errorf("only %d slots were looked at", n)
		}
	}
}

// TestStandardNames: all names of GOSTAI-COMP-01 to GOSTAI-COMP-42 (testdata/components.txt) with their interfaces, and each may be made
// (GOSTAI-NAME-01, GOSTAI-EXT-12).
func TestStandardNames(t *testing.T) {
	var got, want []string
	for _, s := range StandardNames() {
		if !s.Extra {
			got = append(got, s.Name+" "+strings.Join(s.Interfaces, ", "))
		}
		for _, i := range s.Interfaces {
			if _, err := InterfaceNamed(i); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
		if _, err := NewComponent(s.Name); err != nil || s.Doc == "" {
			t.Errorf("%s: %v, %q", s.Name, err, s.Doc)
		}
	}
	for _, r := range rows(t, "components.txt") {
		want = append(want, strings.TrimSpace(r[1]+" "+strings.Trim(r[2], "-")))
	}
	for i := range got {
		got[i] = strings.TrimSpace(got[i])
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestIndex: every interface, slot and component that the standard's index lists exists (GOSTAI-SUP-13). What is neither is a support class
// or a word of the text.
func TestIndex(t *testing.T) {
	others := map[string]bool{"addComponent": true, "addDevice": true, "makeCompactNames": true, "dump": true, "flatDump": true,
		"Component": true, "Localizer": true, "Interface": true, "blob": true, "component": true, "structure tree": true}
	slots := map[string]bool{}
	for _, i := range Interfaces() {
		for _, s := range i.Slots {
			if !i.Extra && !s.Extra {
				name := s.Name
				if s.Optional {
					name += "?"
				}
				slots[name] = true
			}
		}
	}
	index := rows(t, "index.txt")
	if len(index) < 160 {
		t.Fatalf("only %d entries", len(index))
	}
	for _, r := range index {
		name := r[0]
		_, isInterface := byName[strings.TrimPrefix(name, "Interface.")]
		if !isInterface && !slots[name] && !isStandard(name) && !others[name] {
			t.Errorf("%q of the index is neither interface nor slot nor component", name)
		}
	}
}

// TestClosestFormat covers GOSTAI-IF-17.12 with the numbers of GOSTAI-IF-17.6.
func TestClosestFormat(t *testing.T) {
	for _, tc := range []struct {
		want      int
		supported []int
		got       int
	}{
		{FormatJPEG, []int{FormatRGB, FormatJPEG}, FormatJPEG},
		{FormatRGB, []int{FormatJPEG, FormatYUV422}, FormatYUV422}, // raw for raw
		{FormatJPEG, []int{FormatYUV422, FormatRGB}, FormatRGB},
		{FormatGrey8, []int{FormatJPEG}, FormatJPEG},
		{FormatJPEG, []int{FormatYUV420}, FormatYUV420},
		{FormatUnknown, []int{FormatNV12, FormatRGB}, FormatRGB},
		{FormatRGB, nil, FormatUnknown},
	} {
		if got := ClosestFormat(tc.want, tc.supported); got != tc.got {
			t.Errorf("%d of %v: %d, want %d", tc.want, tc.supported, got, tc.got)
		}
	}
}

// TestAllows: what can be a slot's value.
func TestAllows(t *testing.T) {
	for _, tc := range []struct {
		iface, slot string
		v           Value
		want        error
	}{
		{"Led", "val", F(0.5), nil},
		{"Led", "val", B(true), nil},
		{"Led", "val", S("bright"), ErrType},
		{"Led", "val", F(math.NaN()), ErrRange},
		{"VideoIn", "quality", F(3.5), ErrType},
		{"Identity", "type", S("wheeled"), nil},
		{"Identity", "type", S("flying"), ErrRange},
		{"AudioOut", "val", F(1), ErrType},
		{"AudioOut", "val", Value{Type: Bytes}, nil},
		{"Led", "val", Value{}, ErrType},
	} {
		if err := byName[tc.iface].Slot(tc.slot).Allows(tc.v); !errors.Is(err, tc.want) || tc.want == nil && err != nil {
			t.Errorf("%s.%s = %s: %v, want %v", tc.iface, tc.slot, tc.v, err, tc.want)
		}
	}
	if got := L(F(1.5), I(2), B(true), S("a"), Value{Type: Bytes, Data: []byte{1}, Format: Format{Name: "wav"}},
		Value{}).String(); got != `[1.5, 2, true, "a", 1 bytes of wav, nothing]` {
		t.Error(got)
	}
}

// TestOwnSlots: the interfaces beside the standard's have these slots (part of GOSTAI-EXT-06 to 11).
func TestOwnSlots(t *testing.T) {
	for name, want := range map[string]string{
		"VideoOut": "val width height format clear", "SoundBank": "play count names mute", "DigitalIn": "val", "AnalogIn": "val", "DigitalOut": "val",
		"SerialPort": "write flush received", "CliffSensor": "val detected", "InfraRed": "send received",
	} {
		i := byName[name]
		if i == nil || !i.Extra {
			t.Errorf("%s: %+v", name, i)
			continue
		}
		var got []string
		for k := range i.Own {
			got = append(got, i.Own[k].Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has %v, want %s", name, got, want)
		}
	}
	if byName["InfraRed"].Slot("val") == nil {
		t.Error("InfraRed has no val")
	}
	if s := byName["CliffSensor"].Slot("detected"); s == nil || s.Type != Bool {
		t.Errorf("CliffSensor.detected is %+v, want a Bool", s)
	}
	if s := byName["SoundBank"].Slot("play"); s == nil || len(s.Args) != 1 || s.Args[0].Type != Int {
		t.Errorf("SoundBank.play is %+v, want one Int", s)
	}
}
