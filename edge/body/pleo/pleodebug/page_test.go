package pleodebug

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/pawn"
)

const both = `#include <Log.inc>
#include <Sensor.inc>
new touches
public on_sensor(time, sensor_name: sensor, value) {
	if (sensor == SENSOR_HEAD && value)
		touches++
	return true
}
main() {
	print("main")
	sleep 10000000
}
`

// TestPage: a script of a page is the main script and the sensor script of a Pleo, pauses at lines and at changes of variables, and tells what it prints once.
func TestPage(t *testing.T) {
	p, messages, err := NewPage([]byte(both))
	if err != nil || p == nil {
		t.Fatal(messages, err)
	}
	run := func(pace Pace) Report {
		t.Helper()
		return p.Run(t.Context(), pace, time.Second)
	}
	r := run(Free)
	if !strings.Contains(r.Output, "s  main\n") || r.State != "running" || r.MS != 1000 || r.Why != "" {
		t.Errorf("%+v", r)
	}
	p.Keep([]int{6}, nil)
	if err := p.Touch("head", TouchFor); err != nil {
		t.Fatal(err)
	}
	r = run(Free)
	if r.State != "paused" || r.Line != 6 || r.Function != "on_sensor" || r.Script != "sensors" || r.Output != "" || !slices.ContainsFunc(p.OS.Variables(), func(v pawn.Variable) bool { return v.Name == "value" && v.Value == "1" }) {
		t.Errorf("%+v", r)
	}
	p.Keep(nil, []string{"touches"})
	if r = run(Free); r.State != "paused" || r.Line != 7 || r.Why != "touches changed from 0 to 1" {
		t.Errorf("%+v", r)
	}
	p.Keep(nil, []string{"touches"}) // as before: the value that was seen stays
	if len(p.Points()) != 1 || p.Points()[0].value != "1" {
		t.Errorf("points %v", p.Points())
	}
	p.Keep(nil, nil)
	if r = run(Free); r.State != "running" || len(p.Points()) != 0 {
		t.Errorf("%+v", r)
	}
	if err := p.Set("battery", 3); err != nil {
		t.Fatal(err)
	}
	if r = run(Free); r.State != "off" || r.Why == "" {
		t.Errorf("%+v", r)
	}
}

// TestPageRefused: errors of a script have their place; a script that nothing calls, or that is too long, begins nothing; endless output is cut.
func TestPageRefused(t *testing.T) {
	if p, messages, err := NewPage([]byte("main() {\n\tfoo()\n}\n")); p != nil || err != nil || len(messages) == 0 || messages[0].Number != 17 || messages[0].Line != 2 {
		t.Errorf("%v, %v, %v", p, messages, err)
	}
	for name, text := range map[string]string{"no entry": "public once() return 1\n", "too long": "main() {}\n" + strings.Repeat("\n", maxScript)} {
		if p, _, err := NewPage([]byte(text)); p != nil || err == nil {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	p, _, err := NewPage([]byte("#include <Log.inc>\nmain() for (;;) { for (new i = 0; i < 100; i++) print(\"0123456789 0123456789 0123456789 0123456789\"); sleep 2; }\n"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if r := p.Run(t.Context(), Free, 5*time.Second); len(r.Output) > maxOutput+100_000 || !strings.Contains(r.Output, "left out") {
			t.Errorf("%d bytes of output", len(r.Output))
		}
	}
}
