package robot

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestParseLine covers the one textual syntax (GOSTAI-OPEN-01), and the modifiers of GOSTAI-OPEN-03.
func TestParseLine(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want Line
	}{
		{"head.pitch", Line{Name: "head.pitch"}},
		{" head.pitch.val->rangemin ", Line{Name: "head.pitch.val->rangemin"}},
		{"head.pitch = 0.3", Line{Name: "head.pitch", Verb: Put, Value: F(0.3)}},
		{"wheel[left].speed=-1e-2", Line{Name: "wheel[left].speed", Verb: Put, Value: F(-0.01)}},
		{"headPitch.val = 0.3 speed:1.5", Line{Name: "headPitch.val", Verb: Put, Value: F(0.3), Speed: 1.5}},
		{"headPitch = 0.3 time:2s", Line{Name: "headPitch", Verb: Put, Value: F(0.3), Time: 2 * time.Second}},
		{"headPitch = 0.3  time:1.5 ", Line{Name: "headPitch", Verb: Put, Value: F(0.3), Time: 1500 * time.Millisecond}},
		{"headPitch = 0.3 time:1m0.5s", Line{Name: "headPitch", Verb: Put, Value: F(0.3), Time: 60500 * time.Millisecond}},
		{"wheel.val = [1, 2] adaptive:1", Line{Name: "wheel.val", Verb: Put, Value: L(F(1), F(2)), Adaptive: time.Second}},
		{"arm = 0.05 adaptive:250ms", Line{Name: "arm", Verb: Put, Value: F(0.05), Adaptive: 250 * time.Millisecond}},
		{"led = [1, 0.5,0 , true]", Line{Name: "led", Verb: Put, Value: L(F(1), F(0.5), F(0), B(true))}},
		{`voice.lang = "f=(r)\n"`, Line{Name: "voice.lang", Verb: Put, Value: S("f=(r)\n")}},
		{"robot.go(0.2)", Line{Name: "robot.go", Verb: Call, Args: []Value{F(0.2)}}},
		{"robot.go(0.2) speed:0.1", Line{Name: "robot.go", Verb: Call, Args: []Value{F(0.2)}, Speed: 0.1}},
		{"robot.turn(1)time:2s ", Line{Name: "robot.turn", Verb: Call, Args: []Value{F(1)}, Time: 2 * time.Second}},
		{"robot.stop( )", Line{Name: "robot.stop", Verb: Call}},
		{`x.y(1, "a", [1, 2])`, Line{Name: "x.y", Verb: Call, Args: []Value{F(1), S("a"), L(F(1), F(2))}}},
	} {
		got, err := ParseLine(tc.in)
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, %v; want %+v", tc.in, got, err, tc.want)
		}
	}
	for in, want := range map[string]error{
		"":                                 ErrName,
		"= 1":                              ErrName,
		"head pitch = 1":                   ErrName,
		"head.pitch == 1":                  ErrType,
		"head.pitch =":                     ErrType,
		"head.pitch = up":                  ErrType,
		"head.pitch = NaN":                 ErrRange,
		"head.pitch = -Inf":                ErrRange,
		"head.pitch = 1e999":               ErrRange,
		"head.pitch = 0.3 smooth:1":        ErrName,
		"head.pitch = 0.3 time":            ErrName,
		"head.pitch = 0.3 time:":           ErrType,
		"head.pitch = 0.3 time:soon":       ErrType,
		"head.pitch = 0.3 time:2 s":        ErrType,
		"head.pitch = 0.3 time:0":          ErrRange,
		"head.pitch = 0.3 time:-2s":        ErrRange,
		"head.pitch = 0.3 time:0.1ms":      ErrRange,
		"head.pitch = 0.3 time:61m":        ErrRange,
		"head.pitch = 0.3 adaptive:1e300":  ErrRange,
		"head.pitch = 0.3 adaptive:-1e999": ErrRange,
		"head.pitch = 0.3 adaptive:nan":    ErrRange,
		"head.pitch = 0.3 time:1 speed:1":  ErrType,
		"head.pitch = 0.3 speed:0":         ErrRange,
		"head.pitch = 0.3 speed:nan":       ErrRange,
		"head.pitch = 0.3 speed:true":      ErrType,
		"head.pitch = 0.3 speed:1 x":       ErrType,
		"head.pitch = 1, 2":                ErrName,
		"led = [1, [2]]":                   ErrType,
		"led = [1 2]":                      ErrName,
		"led = [1":                         ErrName,
		`voice.lang = "fr`:                 ErrType,
		"robot.go(1":                       ErrName,
		"robot.go(1,)":                     ErrType,
		"robot.go(1) now":                  ErrName,
		"robot.go(inf)":                    ErrRange,
		"a = " + strings.Repeat("1", 1000): ErrName,
	} {
		if l, err := ParseLine(in); !errors.Is(err, want) {
			t.Errorf("%.60s: %+v, %v; want %v", in, l, err, want)
		}
	}
}

// TestParseLines: several statements in one line, all or nothing (GOSTAI-OPEN-01).
func TestParseLines(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []string // as written; nil: an error
	}{
		{"one", "headPitch", []string{"headPitch"}},
		{"two writes", "wheelL.speed = 3;wheelR.speed = -3 time:1s", []string{"wheelL.speed = 3", "wheelR.speed = -3 time:1s"}},
		{"a semicolon in text", `voice.say("a; \";") ; voice.lang = "x;y"`, []string{`voice.say("a; \";")`, `voice.lang = "x;y"`}},
		{"nothing", "", nil},
		{"an empty statement", "headPitch;", nil},
		{"one is wrong", "headPitch = 1; arm = ", nil},
		{"text without its end", `voice.say("a; headPitch`, nil},
		{"too long", strings.Repeat("a;", 501) + "a", nil},
	} {
		lines, err := ParseLines(tc.in)
		var got []string
		for _, l := range lines {
			got = append(got, l.String())
		}
		if !reflect.DeepEqual(got, tc.want) || (err == nil) != (tc.want != nil) {
			t.Errorf("%s: %q, %v; want %q", tc.name, got, err, tc.want)
		}
	}
}

// FuzzParseLines: statements that were read one by one are the same together.
func FuzzParseLines(f *testing.F) {
	for _, s := range []string{"a;b=1", `a=";";b("\";")`, "a;;b", `a="`, ";"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		lines, err := ParseLines(s)
		if err != nil {
			return
		}
		var all []string
		for _, l := range lines {
			all = append(all, l.String())
		}
		joined := strings.Join(all, "; ")
		again, err := ParseLines(joined)
		if len(joined) <= maxLine && (err != nil || !reflect.DeepEqual(again, lines)) {
			t.Fatalf("%q reads as %+v, written %q, which reads as %+v, %v", s, lines, joined, again, err)
		}
	})
}

// FuzzParseLine: what was read is written so that it reads the same.
func FuzzParseLine(f *testing.F) {
	for _, s := range []string{"head.pitch", "head.pitch = 0.3 speed:2", "a = 1 time:2s", "a = 1 time:0.1", "a = [1] adaptive:1",
		"a = 1 adaptive:1ns", "led=[1,0,true]", `a.b("x", [1])`, "robot.stop()", "a(1) speed:1", `a="\xff"`, "a=[", "a(]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseLine(s)
		if err != nil {
			return
		}
		again, err := ParseLine(l.String())
		if len(l.String()) <= maxLine && (err != nil || !reflect.DeepEqual(again, l)) {
			t.Fatalf("%q reads as %+v, written %q, which reads as %+v, %v", s, l, l, again, err)
		}
	})
}
