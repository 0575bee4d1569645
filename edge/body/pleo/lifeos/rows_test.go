package lifeos_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/pleosim"
)

// TestSequenceFile: a chain that was committed is there after the power was off, in the file that a script names; one that was not is gone (PLEO-SEQ-07, PLEO-SEQ-08).
func TestSequenceFile(t *testing.T) {
	const learn = `#include <Sequence.inc>
#include <Log.inc>
main() {
	printf("%d", sequence_set_file("b:tricks.dat"));
	sequence_move_next(SENSOR_HEAD); sequence_move_next(SENSOR_BACK); sequence_set_action(77);
	printf("%d", sequence_reset(true));
	sequence_move_next(SENSOR_CHIN); sequence_reset();
	sequence_print_file();
	sleep 10000000;
}`
	const follow = `#include <Sequence.inc>
#include <Log.inc>
main() {
	printf("%d", sequence_peek_next(SENSOR_HEAD));
	printf("%d", sequence_set_file("b:tricks.dat"));
	sequence_check_next(SENSOR_HEAD);
	printf("%d", sequence_check_next(SENSOR_BACK));
	printf("%d %d", sequence_get_action(), sequence_peek_next(SENSOR_CHIN));
	sequence_print_tree();
	sleep 10000000;
}`
	flash := pleosim.Card{}
	p := start(t, lifeos.Config{Card: card(t, map[string]string{"main": learn}), Flash: flash})
	p.run(second)
	p.want("0", "1", "sequences 1", "1 6 -1", "2 8 77")
	if got := string(flash["tricks.dat"]); got != "sequences 1\n1 6 -1\n2 8 77\n" {
		t.Errorf("file %q", got)
	}
	p = start(t, lifeos.Config{Card: card(t, map[string]string{"main": follow}), Flash: flash})
	p.run(second)
	p.want("0", "1", "1", "77 0", "6 action -1", "  8 action 77")
}

// TestPlog: triggers are appended to the Pleo log while SENSOR_PLOG is enabled, also over a change of power, and the log stays small (PLEO-SEN-128).
func TestPlog(t *testing.T) {
	flash := pleosim.Card{}
	cfg := lifeos.Config{Flash: flash, Card: card(t, map[string]string{"sensors": `#include <Sensor.inc>
public init() sensor_enable(SENSOR_PLOG)
public on_sensor(time, sensor_name: sensor, value) {
	if (sensor == SENSOR_CHIN) sensor_disable(SENSOR_PLOG);
	return true;
}`})}
	var names []string
	for range 2 {
		p := start(t, cfg)
		p.run(second)
		p.body.Set(lifeos.SensorHead, 1)
		p.run(100 * time.Millisecond)
		p.body.Set(lifeos.SensorBattery, 5) // the power goes off before the next write is due
		p.run(100 * time.Millisecond)
		if p.Power() != lifeos.Off {
			t.Fatal("it is on")
		}
		names = append(names, "HEAD 1", "BATTERY 5")
	}
	var got []string
	for line := range strings.Lines(string(flash["plog.txt"])) {
		_, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		got = append(got, text)
	}
	if !slices.Equal(got, names) {
		t.Errorf("log %q, want %q", got, names)
	}
	p := start(t, cfg)
	p.run(second)
	p.body.Set(lifeos.SensorChin, 1)
	p.run(2 * second)
	p.body.Set(lifeos.SensorHead, 1)
	p.run(2 * second)
	if text := string(flash["plog.txt"]); !strings.HasSuffix(text, " CHIN 1\n") {
		t.Errorf("log %q", text)
	}
	flash["plog.txt"] = []byte(strings.Repeat("1 HEAD 1\n", 64<<10/9))
	p = start(t, cfg)
	p.run(second)
	p.body.Set(lifeos.SensorTail, 1)
	p.run(2 * second)
	if text := string(flash["plog.txt"]); len(text) > 64<<10 || !strings.HasPrefix(text, "1 HEAD 1\n") || !strings.Contains(text, " TAIL 1\n") {
		t.Errorf("%d bytes of log, %.40q", len(text), text)
	}
}

// TestAppConfig: whether a card's application begins when it is inserted, whether init is called, and whether main waits for the sensor script's (PLEO-XAPI-09).
func TestAppConfig(t *testing.T) {
	scripts := map[string]string{
		"sensors": "#include <Log.inc>\n#include <Script.inc>\npublic init() { sleep 300; print(\"sensors\"); }\n",
		"main":    "#include <Log.inc>\n#include <Script.inc>\npublic init() print(\"init\")\nmain() { print(\"main\"); sleep 10000000; }\n",
	}
	for _, c := range []struct {
		set  string
		want []string
	}{
		{"", []string{"0 1 1", "init", "main", "sensors"}},
		{"app_set_config(app_wait_for_init, 1);", []string{"1 1 1", "sensors", "init", "main"}},
		{"app_set_config(app_run_init, 0);", []string{"0 1 0", "main"}},
		{"app_set_config(app_auto_load, 0);", []string{"0 0 1"}},
	} {
		flash := pleosim.Card{"startup.amx": compile(t, `#include <Application.inc>
#include <Log.inc>
main() { `+c.set+` printf("%d %d %d", app_get_config(app_wait_for_init), app_get_config(app_auto_load), app_get_config(app_run_init)); }`, nil)}
		p := start(t, lifeos.Config{Flash: flash})
		p.run(second)
		p.Insert(card(t, scripts))
		p.run(second)
		p.want(c.want...)
	}
}

// TestAccess: without the key of a level the monitor and scripts do less; in development everything is permitted (PLEO-MON-05, PLEO-MON-06).
func TestAccess(t *testing.T) {
	flash := pleosim.Card{"old.txt": []byte("x")}
	c := card(t, map[string]string{"main": `#include <File.inc>
#include <Util.inc>
#include <Log.inc>
main() {
	config_set(config_access, 2);
	printf("%d", config_get(config_access));
	monitor_exec("app unload");
	printf("%d %d", file_delete("b:old.txt"), file_exists("b:old.txt"));
	monitor_exec("access developer bone");
	printf("%d %d", config_get(config_access), file_delete("b:old.txt"));
	sleep 10000000;
}`})
	p := start(t, lifeos.Config{Card: c, Flash: flash, Keys: map[lifeos.Access]string{lifeos.AccessDeveloper: "bone", lifeos.AccessVendor: "leaf"}})
	p.run(second)
	p.want("0", "access denied: want developer", "0 1", "1 1")
	for _, c := range []struct{ line, want string }{
		{"access", "developer\n"}, {"access vendor", "wrong key\n"}, {"access vendor bone", "wrong key\n"}, {"pkt send ?", ""}, {"access user", ""},
		{"pkt send ?", "access denied: want developer\n"}, {"APP UNLOAD", "access denied: want developer\n"}, {"access developer leaf", "wrong key\n"}, {"access Vendor leaf", ""},
		{"access", "vendor\n"}, {"access owner", "want one of user, developer, vendor\n"}, {"motion speed 100", ""},
	} {
		if got := p.Monitor(c.line); got != c.want {
			t.Errorf("%q: %q, want %q", c.line, got, c.want)
		}
	}
	p = start(t, lifeos.Config{})
	if got := p.Monitor("access") + p.Monitor("pkt send ?"); got != "vendor\n" {
		t.Errorf("in development: %q", got)
	}
	p = start(t, lifeos.Config{Keys: map[lifeos.Access]string{lifeos.AccessDeveloper: "bone"}})
	if got := p.Monitor("access vendor ") + p.Monitor("access"); got != "wrong key\nuser\n" {
		t.Errorf("a level without a key: %q", got)
	}
}
