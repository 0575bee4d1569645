package lifeos_test

import (
	"testing"
	"time"

	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/pleosim"
)

// TestLifecycle: init once, main again and again, close before the card is gone (PLEO-VM-02, PLEO-VM-03, PLEO-VM-09, PLEO-APP-02).
func TestLifecycle(t *testing.T) {
	p := start(t, lifeos.Config{Card: card(t, map[string]string{"main": `#include <Script.inc>
#include <Log.inc>
new n
public init() printf("init\n")
public close() { sleep 20; printf("close %d\n", n); }
main() { printf("main %d\n", ++n); sleep 100; }
`})})
	p.run(250 * time.Millisecond)
	p.want("init", "main 1", "main 2", "main 3")
	p.Eject()
	p.run(10 * time.Millisecond)
	p.want()
	p.run(50 * time.Millisecond)
	p.want("close 3")
	p.run(second)
	p.want()
	p.Insert(card(t, map[string]string{"main": "#include <Log.inc>\nmain() { printf(\"other\\n\"); sleep 10000; }\n"}))
	p.run(50 * time.Millisecond)
	p.want("other")
}

// TestBehaviorVM: a script runs once; another one waits for its close; the properties tell (PLEO-VM-10 to PLEO-VM-14, PLEO-ARC-18).
func TestBehaviorVM(t *testing.T) {
	p := start(t, lifeos.Config{Card: card(t, map[string]string{
		"main": `#include <Script.inc>
#include <Log.inc>
#include <Property.inc>
main() {
	printf("status %d", get(property_script_status));
	printf("%d %d", vm_exec("one"), vm_exec("missing"));
	new Wait: w = wait_new();
	wait_add_property(w, property_script_status, 2, compare_equal);
	vm_wait(w);
	printf("status %d", get(property_behavior_status));
	exec("endless"); sleep 50;
	exec("one"); sleep 1000000;
}`,
		"one":     "#include <Script.inc>\n#include <Log.inc>\npublic init() print(\"in\")\nmain() { print(\"one\"); sleep 30; }\npublic close() print(\"out\")\n",
		"endless": "#include <Script.inc>\n#include <Log.inc>\nmain() { print(\"endless\"); for (;;) {} }\npublic close() print(\"ended\")\n",
	})})
	p.run(2 * second)
	p.want("status -1", "1 0", "in", "one", "out", "status 2", "endless", "ended", "in", "one", "out")
}

// TestErrors: an error ends the call and not the agent: main is called again after a second, a behavior's status is none, a sensor's trigger is dropped
// (PLEO-VM-19).
func TestErrors(t *testing.T) {
	p := start(t, lifeos.Config{Card: card(t, map[string]string{
		"main": `#include <Script.inc>
#include <Log.inc>
main() { vm_exec("bad"); print("main"); sleep 10; new a = 0; return 1 / a; }`,
		"sensors": `#include <Sensor.inc>
new a[2]
public on_sensor(time, sensor_name: sensor, value) { print("called"); return a[value + 5]; }`,
		"bad": "#include <Script.inc>\nmain() { new a = 0; return 1 / a; }\n",
	})})
	p.run(900 * time.Millisecond)
	if !p.logged(lifeos.Error, lifeos.LogVM) {
		t.Error("no error in the log")
	}
	p.want("main")
	if got := property(t, p, lifeos.PropScriptStatus); got != -1 {
		t.Errorf("status of the behavior that failed: %d", got)
	}
	p.body.Set(lifeos.SensorHead, 1)
	p.run(300 * time.Millisecond)
	p.want("called", "main")
	if _, known := p.Sensor(lifeos.SensorHead); !known || p.Power() != lifeos.On {
		t.Error("the agent is gone")
	}
}

// TestEndlessLoop: a script that never ends costs its slices and nothing else (PLEO-VM-01).
func TestEndlessLoop(t *testing.T) {
	p := start(t, lifeos.Config{Card: card(t, map[string]string{
		"main":    "main() for (;;) {}\n",
		"sensors": "#include <Sensor.inc>\npublic on_sensor(time, sensor_name: sensor, value) { print(\"touched\"); return true; }\n",
	})})
	p.run(100 * time.Millisecond)
	p.body.Set(lifeos.SensorHead, 1)
	p.run(50 * time.Millisecond)
	p.want("touched")
}

// TestRefused: a wrong version, a block or a pool that is too small, and an unknown native keep a script out; the log tells why under vm (part of PLEO-VM-17, PLEO-LIM-01 to
// PLEO-LIM-03, PLEO-AMX-06).
func TestRefused(t *testing.T) {
	const good = "#include <Log.inc>\nmain() { print(\"runs\"); sleep 100000; }\n"
	for name, c := range map[string]struct {
		cfg lifeos.Config
		src string
	}{
		"profile 1.0 takes no version 10": {lifeos.Config{Profile: lifeos.Profile10}, good},
		"data beyond 4096 bytes":          {lifeos.Config{}, "#include <Log.inc>\nnew a[900]\nmain() { a[1] = 1; print(\"runs\"); }\n"},
		"unknown native":                  {lifeos.Config{}, "native fly();\n#include <Log.inc>\nmain() { print(\"runs\"); fly(); }\n"},
	} {
		c.cfg.Card = card(t, map[string]string{"main": c.src})
		p := start(t, c.cfg)
		if !p.logged(lifeos.Error, lifeos.LogVM) {
			t.Errorf("%s: no error in the log", name)
		}
		p.run(second)
		if got := p.said(); len(got) > 0 {
			t.Errorf("%s: the script runs", name)
		}
	}
	p := start(t, lifeos.Config{Card: card(t, map[string]string{"main": good})})
	p.run(second)
	p.want("runs")
	broken := pleosim.Card{"main.amx": []byte("no script")}
	if p = start(t, lifeos.Config{Card: broken}); !p.logged(lifeos.Error, lifeos.LogVM) {
		t.Error("a broken file: no error in the log")
	}
}

// TestStartupScript: the User VM runs the startup script of its profile, beside the application (PLEO-VM-15, PLEO-VM-16).
func TestStartupScript(t *testing.T) {
	p := start(t, lifeos.Config{Card: card(t, map[string]string{
		"startup": "#include <Log.inc>\nmain() print(\"startup\")\n", "init": "#include <Log.inc>\nmain() print(\"init\")\n",
		"main": "#include <Log.inc>\nmain() { print(\"main\"); sleep 100000; }\n",
	})})
	p.run(second)
	got := p.said()
	if len(got) != 2 || got[0] == got[1] || got[0] == "init" || got[1] == "init" {
		t.Errorf("printed %q, want startup and main", got)
	}
}
