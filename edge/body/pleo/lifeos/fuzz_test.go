package lifeos_test

import (
	"testing"
	"time"

	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/pleosim"
)

// FuzzMonitor: no line that a person types stops a Pleo.
func FuzzMonitor(f *testing.F) {
	for _, line := range []string{"pkt send ?", "log enable all", "joint move 8 1e9", "motion play a:nod", "property set 0x5000 -1", "script exec main", "chdrv b", "sensor read 129", "help"} {
		f.Add(line)
	}
	card := pleosim.Card{"demo.urf": urf(f, nil)}
	f.Fuzz(func(t *testing.T, line string) {
		p := start(t, lifeos.Config{Card: card})
		p.run(20 * time.Millisecond)
		p.Terminal(line)
		p.Infrared([]byte(line))
		p.run(100 * time.Millisecond)
		if p.Power() != lifeos.On {
			t.Error("off")
		}
	})
}

// FuzzFiles: no motion, sound, script or bundle on a card stops a Pleo.
func FuzzFiles(f *testing.F) {
	for _, file := range [][]byte{nod(f), wag(f), beep(f, "beep", 20), compile(f, printSensors, nil), urf(f, nil), noises(f)} {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		p := start(t, lifeos.Config{Card: pleosim.Card{"main.amx": file, "x.umf": file, "x.usf": file, "x.urf": file}})
		for _, line := range []string{"motion play x", "sound play x", "script exec main"} {
			p.Monitor(line)
		}
		p.run(100 * time.Millisecond)
		if p.Now() < 100*time.Millisecond {
			t.Error("the time does not pass")
		}
	})
}

// BenchmarkLife is a second of a Pleo that plays a motion with sound and whose four machines are busy; ns/op divided by a second is its share of a core.
func BenchmarkLife(b *testing.B) {
	scripts := map[string]string{
		"main":    "#include <Motion.inc>\n#include \"motions.inc\"\nmain() { if (!motion_is_playing()) motion_play(mot_nod); sleep 100; }\n",
		"sensors": printSensors,
	}
	c := pleosim.Card{"demo.urf": urf(b, scripts), "startup.amx": compile(b, "main() for (new i = 0; ; i++) {}\n", nil)}
	p := start(b, lifeos.Config{Card: c})
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		p.body.Set(lifeos.SensorHead, int32(i&1))
		p.run(time.Second)
		p.log = p.log[:0]
		p.body.Speaker = p.body.Speaker[:0]
	}
}
