package pleodebug

import (
	"errors"
	"slices"
	"testing"
	"time"

	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/lifeos/lifeostest"
	"kennel/edge/body/pleo/pleosim"
)

const needy = `#include <Drive.inc>
#include <Property.inc>
new hungry;
forward hunger_eval();
public init() { drive_add("hunger", -5, 30, 100); property_set_leak(property_energy, -1, 500, 100, 0); set(property_energy, 8); }
public hunger_eval() return ++hungry
main() for (;;) sleep 1000;
`

const fed = `#include <Sensor.inc>
new meals;
feed(n) {
	meals += n;
	return meals;
}
public on_sensor(time, sensor_name: sensor, value) {
	if (sensor == SENSOR_CHIN && value) feed(3);
	return true;
}
`

// second lets a second pass, or less.
func (s *Session) second(t *testing.T, pace Pace) Pause {
	t.Helper()
	at, err := s.Go(t.Context(), pace, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestSession: points, watches and paces pause the scripts of all machines, and drives and properties become curves with a point each 100 ms.
func TestSession(t *testing.T) {
	s := New(Config{Card: pleosim.Card{"main.amx": lifeostest.Compile(t, needy), "sensors.amx": lifeostest.Compile(t, fed)}})
	if _, err := s.Go(t.Context(), Next, time.Second); !errors.Is(err, ErrNotPaused) {
		t.Errorf("next without a pause: %v", err)
	}
	if at := s.second(t, Free); at.Stopped {
		t.Fatalf("%+v", at)
	}
	p := s.Mark(Point{Function: "feed"})
	if err := s.Touch("chin", TouchFor); err != nil {
		t.Fatal(err)
	}
	now := s.OS.Now()
	at := s.second(t, Free)
	if !at.Stopped || at.Function != "feed" || at.VM != lifeos.VMSensor || s.OS.Now() > now+100*time.Millisecond {
		t.Fatalf("%+v", at)
	}
	if v, ok := s.Variable("n"); !ok || v.Value != "3" {
		t.Errorf("n is %+v", v)
	}
	if at = s.second(t, Step); at.Line != 5 {
		t.Errorf("a step leads to %+v", at)
	}
	if at = s.second(t, Finish); at.Function != "on_sensor" {
		t.Errorf("finish leads to %+v", at)
	}
	if !s.Forget(p.N) || s.Forget(p.N) || len(s.Points()) != 0 {
		t.Errorf("points %v", s.Points())
	}
	w := s.Mark(Point{Watch: "meals"})
	s.second(t, Free)
	if err := s.Touch("chin", TouchFor); err != nil {
		t.Fatal(err)
	}
	if at = s.second(t, Free); !at.Stopped || at.Function != "feed" || at.Line != 5 || at.Why == "" {
		t.Errorf("where the meals change: %+v", at)
	}
	s.Forget(w.N)
	s.second(t, Free)
	curves := s.Curves()
	if len(curves) < 3 || curves[0].Name != "hunger" || !curves[0].Drive || !curves[0].Active || curves[0].Low != -5 || curves[0].High != 30 {
		t.Fatalf("%+v", curves)
	}
	h := curves[0].Values
	if rise := h[len(h)-1] - h[len(h)-11]; len(h) < 18 || !slices.IsSorted(h) || rise < 9 || rise > 12 {
		t.Errorf("hunger, evaluated each 100 ms: %v", h)
	}
	i := slices.IndexFunc(curves, func(c *Curve) bool { return c.Name == "energy" })
	if i < 0 {
		t.Fatalf("%+v", curves)
	}
	e := curves[i].Values
	if len(e) != len(h) || slices.Max(e) != 8 || e[len(e)-1]-e[len(e)-6] != -1 && e[len(e)-1]-e[len(e)-7] != -1 {
		t.Errorf("energy, which leaks each 500 ms: %v", e)
	}
	if slices.ContainsFunc(curves, func(c *Curve) bool { return c.Name == "platform" }) {
		t.Error("a property that says nothing has a curve")
	}
	for err, want := range map[error]bool{s.Touch("nose", TouchFor): true, s.Touch("light", TouchFor): true, s.Set("nothing", 1): true, s.Set("light", 20): false} {
		if (err != nil) != want {
			t.Errorf("%v", err)
		}
	}
	if err := s.Set("battery", 5); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Go(t.Context(), Free, time.Second); !errors.Is(err, ErrOff) {
		t.Errorf("with an empty battery: %v", err)
	}
}

// TestCurve: a curve is drawn with its lowest and highest values.
func TestCurve(t *testing.T) {
	for want, values := range map[string][]int32{"▁█▄": {-10, 90, 40}, "▅▅": {3, 3}, "█▁": {9, 9, 9, 0}} {
		c := Curve{Values: values}
		if got := c.Text(len([]rune(want))); got != want || c.Now() != values[len(values)-1] {
			t.Errorf("%v: %s, want %s", values, got, want)
		}
	}
}
