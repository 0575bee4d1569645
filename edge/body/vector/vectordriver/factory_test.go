package vectordriver_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/body/vector/vectorsim"
)

// tester is the factory's tester, connected to the charging pad of a robot whose head is open.
type tester struct {
	t *testing.T
	*vectorsim.Stepped
	d *vectordriver.Driver
}

// ask sends characters and returns what came back in half a second.
func (x *tester) ask(chars string) string {
	x.t.Helper()
	x.PadWrite(chars)
	var s vectordriver.Sense
	for until := x.Now() + time.Second/2; x.Now() < until; {
		if err := x.d.ReadSense(&s, until); err != nil && err != body.ErrTimeout {
			x.t.Fatal(err)
		}
		if err := x.d.WriteAct(&vectordriver.Act{}); err != nil {
			x.t.Fatal(err)
		}
	}
	return x.PadRead()
}

// TestFactoryCommandLine: the banner, lines, words, replies in frames (VEC-CLI-01, 02, 04, part of VEC-CLI-03). Only the factory can switch the robot off for
// storage (VEC-PWR-44).
func TestFactoryCommandLine(t *testing.T) {
	x := &tester{t: t, Stepped: vectorsim.NewStepped(vectorsim.Config{Factory: true, Version: "1.6.0", DischargePerMinute: -1})}
	if got := x.PadRead(); got != "\xff\x92\x1f\xcf\xff\xff\xff\xff\nbooted\n" {
		t.Errorf("banner %q", got)
	}
	var motors []string
	f := &vectordriver.Factory{Commands: map[string]vectordriver.FactoryCommand{
		"esn": func([]string) (string, error) { return "00e20100", nil },
		"mot": func(args []string) (string, error) { motors = args; return "ok", nil },
		"rlg": func([]string) (string, error) { return strings.Repeat("log ", 50), nil },
		"smr": func([]string) (string, error) { return "", errors.New("want a word and a value") },
	}}
	var err error
	if x.d, err = openOn(t, x.Stepped, nil, func(c *vectordriver.Config) { c.Factory = f }); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ send, want string }{
		{">esn\r", "<esn 00e20100\r\n"},
		{">esn\n", "<esn 00e20100\r\n"},
		{">bsv\r\n", "<bsv 1.6.0\r\n"},
		{">mot 100 -100 0 0\r", "<mot ok\r\n"},
		{">smr\r", "<smr error: want a word and a value\r\n"},
		{">fcc\r", "<fcc error: fcc is not available\r\n"},
		{">rlg\r", "<rlg " + strings.Repeat("log ", 50) + "\r\n"}, // seven frames
		{">xyz\r", ""},
		{"esn\r", ""},
		{">esnx\r", ""},
		{">es\r", ""},
		{"\r\n\r\n", ""},
		{">es", ""},
		{"n\r", "<esn 00e20100\r\n"}, // the rest of the line before
		{strings.Repeat("x", 300) + ">esn\r", ""},
		{">esn\r>bsv\r", "<esn 00e20100\r\n<bsv 1.6.0\r\n"},
	} {
		if got := x.ask(tc.send); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.send, got, tc.want)
		}
	}
	if strings.Join(motors, " ") != "100 -100 0 0" {
		t.Errorf("mot was given %q", motors)
	}
	if got := x.ask(">get\r"); !strings.Contains(got, "battery 29") || !strings.Contains(got, "cliffs [") {
		t.Errorf("get: %q", got)
	}
	if got := x.ask(">pwr\r"); got != "<pwr error: want pwr off\r\n" || !x.On() {
		t.Errorf("pwr without off: %q, on %t", got, x.On())
	}
	x.ask(">pwr off\r")
	if x.On() {
		t.Error("pwr off left the power on")
	}
}

// Off in production, on either side (VEC-CLI-01, VEC-HW-22).
func TestNoFactoryAtHome(t *testing.T) {
	x := &tester{t: t, Stepped: vectorsim.NewStepped(vectorsim.Config{})}
	var err error
	if x.d, err = openOn(t, x.Stepped, nil, func(c *vectordriver.Config) { c.Factory = &vectordriver.Factory{} }); err != nil {
		t.Fatal(err)
	}
	if got := x.ask(">bsv\r"); got != "" {
		t.Errorf("a production board says %q", got)
	}
	x = &tester{t: t, Stepped: vectorsim.NewStepped(vectorsim.Config{Factory: true})}
	x.PadRead()
	if x.d, err = openOn(t, x.Stepped, nil); err != nil {
		t.Fatal(err)
	}
	if got := x.ask(">bsv\r>pwr off\r"); got != "" || !x.On() {
		t.Errorf("a driver at home answers %q, on %t", got, x.On())
	}
}

// FuzzFactory: whatever comes over the pad, the robot keeps running, and every answer is well formed.
func FuzzFactory(f *testing.F) {
	f.Add(">esn\r>get 1 2 3\n>pwr off x\r")
	f.Add(strings.Repeat(">bsv\r", 50))
	f.Fuzz(func(t *testing.T, chars string) {
		if strings.Contains(chars, "pwr") {
			return // turns it off
		}
		x := &tester{t: t, Stepped: vectorsim.NewStepped(vectorsim.Config{Factory: true})}
		x.PadRead()
		var err error
		if x.d, err = openOn(t, x.Stepped, nil, func(c *vectordriver.Config) { c.Factory = &vectordriver.Factory{} }); err != nil {
			t.Fatal(err)
		}
		for got := range strings.Lines(x.ask(chars)) {
			if len(got) < 5 || got[0] != '<' {
				t.Fatalf("%q: %q", chars, got)
			}
		}
		if s := x.State(); s.Duty != [4]float64{} {
			t.Fatalf("%q: motors move: %v", chars, s.Duty)
		}
	})
}
