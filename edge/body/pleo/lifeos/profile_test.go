package lifeos_test

import (
	"testing"
	"time"

	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/lifeos/lifeostest"
	"kennel/edge/body/pleo/pleosim"
)

// TestProfile10: firmware 1.0 runs applications of versions 8 and 9, with the startup script init.amx, sensors, properties and sleeps; refuses version 10; and
// sends packets by the monitor alone (PLEO-VM-17, PLEO-PKT-05).
func TestProfile10(t *testing.T) {
	const sensors = `#include <Sensor.inc>
#include <Property.inc>
#include <Log.inc>
public on_sensor(time, sensor_name: sensor, value) {
	if (sensor == SENSOR_HEAD && value)
		printf("head %d", get(property_mood));
	return true;
}
`
	const main = `#include <Property.inc>
#include <Log.inc>
#include <Util.inc>
#include <Sensor.inc>
tell(n) <even> { printf("even %d", n); state odd; }
tell(n) <odd> { printf("odd %d", n); state even; }
main() {
	state even;
	set(property_mood, 3);
	for (new i = 0; i < 2; i++) { tell(i); sleep 50; }
	printf("%d", sensor_write_data(SENSOR_PACKET, "e1", 2));
	monitor_exec("pkt send e2");
	for (;;) sleep 1000;
}
`
	for _, version := range []uint8{8, 9} {
		c := pleosim.Card{"main.amx": lifeostest.CompileFor(t, main, version), "sensors.amx": lifeostest.CompileFor(t, sensors, version),
			"init.amx": lifeostest.CompileFor(t, "#include <Log.inc>\nmain() print(\"startup\")\n", version)}
		p := start(t, lifeos.Config{Profile: lifeos.Profile10, Card: c})
		p.run(time.Second)
		p.body.Set(lifeos.SensorHead, 1)
		p.run(300 * time.Millisecond)
		got := map[string]bool{}
		for _, line := range p.said() {
			got[line] = true
		}
		for _, want := range []string{"startup", "even 0", "odd 1", "0", "head 3"} {
			if !got[want] {
				t.Errorf("version %d: %q is missing in %v", version, want, got)
			}
		}
		if p.logged(lifeos.Error, lifeos.LogVM) {
			t.Errorf("version %d: errors in the log", version)
		}
		p = start(t, lifeos.Config{Card: c})
		if !p.logged(lifeos.Error, lifeos.LogVM) {
			t.Errorf("firmware 1.1 does not refuse version %d", version)
		}
		if p.run(time.Second); len(p.said()) > 0 {
			t.Errorf("version %d runs on firmware 1.1", version)
		}
	}
}
