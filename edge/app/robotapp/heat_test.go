package robotapp

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/core/corelink"
	"kennel/edge/faultcode"
	"kennel/edge/power"
)

// heat sets a thermometer below the robot's root, as the kernel writes it.
func (b *bench) heat(zone, says string) {
	b.t.Helper()
	dir := filepath.Join(b.root, filepath.FromSlash(thermalDir), zone)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	// In place of the old one: a reader sees a whole number.
	if err := os.WriteFile(filepath.Join(dir, "fresh"), []byte(says), 0o644); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "fresh"), filepath.Join(dir, "temp")); err != nil {
		b.t.Fatal(err)
	}
}

// TestHotProcessor: VEC-PWR-10: the processor's temperature, the highest of its zones, takes the
// robot step by step to its end; its clock is 533 MHz from the start (VEC-PWR-23) and less while it
// is warm (VEC-PWR-12).
func TestHotProcessor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.heat("thermal_zone0", "40000\n")
	b.heat("thermal_zone7", "84000\n")
	b.heat("cooling_device0", "120000\n") // no zone
	b.heat("thermal_zone8", "none\n")
	clock := filepath.Join(b.root, "scaling_max_freq")
	if err := os.WriteFile(clock, []byte("1267200\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	clocked := func(want string) {
		t.Helper()
		got := ""
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) { // a file does not announce its changes
			b, _ := os.ReadFile(clock)
			if got = string(b); got == want {
				return
			}
		}
		t.Errorf("the clock is %q, want %q", got, want)
	}
	p := b.start(nil, "-device", b.device, "-cpu-clock", clock)
	c := b.peer()
	clocked("533000\n") // before there is a body
	b.powerOn()
	await(c, "warm", func(m *corelink.Power) bool { return m.CPUHeat == power.Warm.String() })
	clocked("400000\n")
	b.heat("thermal_zone7", "60000\n")
	await(c, "cool", func(m *corelink.Power) bool { return m.CPUHeat == power.Cool.String() })
	b.heat("thermal_zone0", "90500\n")
	if m := await(c, "hot", func(m *corelink.Power) bool { return m.CPUHeat == power.Hot.String() }); m.Off != "stay_on" ||
		m.Heat != power.Cool.String() {
		t.Errorf("%+v, want it to stay on, and a cool body", m)
	}
	b.heat("thermal_zone0", "101000\n")
	await(c, "fault", func(m *corelink.Fault) bool { return m.Code == uint16(faultcode.ShutdownBatteryHot) })
	if err := b.ended(); !errors.Is(err, vectorsim.ErrShutdown) {
		t.Errorf("the board ended with %v, want a shutdown", err)
	}
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// TestHottest: what cannot be read is passed over, and an error says what no zone said.
func TestHottest(t *testing.T) {
	b := &bench{t: t, root: t.TempDir()}
	root, err := os.OpenRoot(b.root)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := hottest(root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without thermometers: %v", err)
	}
	b.heat("thermal_zone0", "999000\n")
	if _, err := hottest(root); err == nil || !strings.Contains(err.Error(), "thermal_zone0") || !strings.Contains(err.Error(), "want -40 to 150") {
		t.Errorf("a zone that says what cannot be: %v", err)
	}
	b.heat("thermal_zone1", "-5500\n")
	b.heat("thermal_zone2", "-7000\n")
	if got, err := hottest(root); err != nil || got != -5.5 {
		t.Errorf("got %v, %v; want -5.5", got, err)
	}
}

func FuzzParseZone(f *testing.F) {
	f.Add([]byte("45000\n"))
	f.Add([]byte("-1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseZone(b)
		if err == nil && !(c >= power.HeatLeast && c <= power.HeatMost) || err != nil && c != 0 || math.IsNaN(c) {
			t.Fatalf("%q: %v, %v", b, c, err)
		}
	})
}
