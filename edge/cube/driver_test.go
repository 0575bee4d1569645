package cube_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"kennel/edge/cube"
	"kennel/edge/cube/cubesim"
	"kennel/infra/testwait"
)

const (
	near = "e1:00:00:00:00:01"
	far  = "e1:00:00:00:00:02"
	step = 5120 * time.Microsecond
)

var rest = [3]float64{0, 0, 9.80665}

// table is a robot beside cubes whose time the test makes.
type table struct {
	t      *testing.T
	driver *cube.Driver
	cubes  []*cubesim.Cube
	root   *os.Root

	mu     sync.Mutex
	events []cube.Event
}

func newTable(t *testing.T, configs ...cubesim.Config) *table {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	x := &table{t: t, root: root}
	for i, c := range configs {
		b := cubesim.New(c)
		b.Step(step, rest, 0.2+0.5*float64(i))
		x.cubes = append(x.cubes, b)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- cubesim.Serve(ctx, root, x.cubes) }()
	t.Cleanup(func() {
		if err := x.driver.Disconnect(); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	radio := cube.Socket(filepath.Join(root.Name(), cube.SocketPath))
	x.driver = cube.New(cube.Config{Radio: radio, Root: root, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Scan: time.Millisecond, Tell: func(e cube.Event) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.events = append(x.events, e)
	}})
	testwait.Until(t, testwait.Long, "the radio", func() error { return radio.Scan(t.Context(), 0, func(cube.Advert) {}) })
	return x
}

// await steps the first cube, which feels a until the driver has told of something.
func (x *table) await(a [3]float64, kind cube.EventKind) (e cube.Event) {
	x.t.Helper()
	testwait.Until(x.t, testwait.Long, "an event", testwait.Holds(func() bool {
		for range 60 { // 0.3 s of the cube's time: less than the radio can hold
			x.cubes[0].Step(step, a, 0.2)
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		for i, y := range x.events {
			if y.Kind == kind {
				e, x.events = y, append(x.events[:i:i], x.events[i+1:]...)
				return true
			}
		}
		return false
	}))
	return e
}

// TestDriver: the robot hears cubes (VEC-CUB-02), connects with the strongest, which becomes the preferred one (VEC-CUBE-04, VEC-CUB-01), hears what it feels, shows
// lights on it and loses it (VEC-CUB-09).
func TestDriver(t *testing.T) {
	t.Parallel()
	x := newTable(t, cubesim.Config{Address: near, Volts: 1.05}, cubesim.Config{Address: far})
	heard, err := x.driver.Scan(t.Context())
	if err != nil || len(heard) != 2 || heard[0].Address != near || heard[1].Address != far || heard[0].RSSI <= heard[1].RSSI {
		t.Fatalf("heard %v, %v", heard, err)
	}
	if e := x.await(rest, cube.Available); e.Address == "" {
		t.Errorf("%+v", e)
	}
	s, err := x.driver.Connect(t.Context())
	if err != nil || s.Address != near || s.ID == 0 || !x.cubes[0].Connected() {
		t.Fatalf("%+v, %v", s, err)
	}
	if p, err := x.driver.Preferred(); err != nil || p != near {
		t.Errorf("preferred %q, %v", p, err)
	}
	if again, err := x.driver.Connect(t.Context()); err != nil || again.ID != s.ID {
		t.Errorf("again: %+v, %v", again, err)
	}
	if heard, err := x.driver.Scan(t.Context()); err != nil || len(heard) != 1 || heard[0].Address != far { // a cube that is connected is silent
		t.Errorf("heard %v, %v", heard, err)
	}
	x.await(rest, cube.Connected)
	if e := x.await(rest, cube.Battery); e.Volts != 1.05 || e.ID != s.ID { // VEC-CUB-04
		t.Errorf("%+v", e)
	}
	if e := x.await(rest, cube.Turned); e.Up != cube.UpZPositive {
		t.Errorf("%+v", e)
	}
	x.await([3]float64{4, 0, 9.80665}, cube.Moved)
	x.await(rest, cube.Stopped)
	for range 4 { // 20 ms
		x.cubes[0].Step(step, [3]float64{0, 0, -20}, 0.2)
	}
	x.await(rest, cube.Tapped)

	if err := x.driver.Show(t.Context(), cube.Pattern{1: {On: cube.RGB{R: 9}, OnFor: time.Second}}); err != nil {
		t.Fatal(err)
	}
	if got := x.cubes[0].Lights(); got != [4]cube.RGB{1: {R: 9}} {
		t.Errorf("lights %v", got)
	}
	x.cubes[0].Power(false)
	if e := x.await(rest, cube.Lost); e.Address != near || e.ID != s.ID {
		t.Errorf("%+v", e)
	}
	if _, ok := x.driver.State(); ok {
		t.Error("a cube without its cell is still connected")
	}
	if err := x.driver.Show(t.Context(), cube.Dark); !errors.Is(err, cube.ErrLost) {
		t.Errorf("lights of no cube: %v", err)
	}
	other, err := x.driver.Connect(t.Context()) // the preferred one is not heard
	if err != nil || other.Address != far || other.ID == s.ID {
		t.Fatalf("%+v, %v", other, err)
	}
	if p, _ := x.driver.Preferred(); p != near {
		t.Errorf("preferred %q", p)
	}
	if err := x.driver.Disconnect(); err != nil {
		t.Error(err)
	}
	testwait.Until(t, testwait.Long, "the end of the link", testwait.Holds(func() bool { return !x.cubes[1].Connected() }))
	x.await(rest, cube.Disconnected)
}

// TestPreferred: the preferred cube is taken although another is stronger, over a restart too; without one the strongest is (VEC-CUB-03, VEC-CCU-03).
func TestPreferred(t *testing.T) {
	t.Parallel()
	x := newTable(t, cubesim.Config{Address: near}, cubesim.Config{Address: far})
	if err := x.driver.Prefer("nonsense"); err == nil {
		t.Error("no factory id is refused")
	}
	if err := x.driver.Prefer(far); err != nil {
		t.Fatal(err)
	}
	if s, err := x.driver.Connect(t.Context()); err != nil || s.Address != far {
		t.Fatalf("%+v, %v", s, err)
	}
	if err := errors.Join(x.driver.Disconnect(), x.driver.Prefer("")); err != nil {
		t.Fatal(err)
	}
	if s, err := x.driver.Connect(t.Context()); err != nil || s.Address != near {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestRefusals: no radio, no cube and a cube that lost its program (part of VEC-CUBEFW-01) are told apart.
func TestRefusals(t *testing.T) {
	t.Parallel()
	x := newTable(t, cubesim.Config{Address: near, Empty: true})
	if _, err := x.driver.Connect(t.Context()); err == nil || errors.Is(err, cube.ErrAbsent) || errors.Is(err, cube.ErrLost) {
		t.Errorf("without its program: %v", err)
	}
	testwait.Until(t, testwait.Long, "the end of the link", testwait.Holds(func() bool { return !x.cubes[0].Connected() }))
	x.cubes[0].Step(step, rest, 1000)
	if _, err := x.driver.Connect(t.Context()); !errors.Is(err, cube.ErrAbsent) {
		t.Errorf("a kilometre away: %v", err)
	}
	none := cube.Socket(filepath.Join(t.TempDir(), "none"))
	if err := none.Scan(t.Context(), 0, nil); !errors.Is(err, cube.ErrNoRadio) {
		t.Errorf("no radio: %v", err)
	}
	if _, err := none.Connect(t.Context(), near); !errors.Is(err, cube.ErrNoRadio) {
		t.Errorf("no radio: %v", err)
	}
}

// TestDeviceInformation: a cube says who it is (VEC-CUBE-03, VEC-CCU-02); what it does not have it refuses.
func TestDeviceInformation(t *testing.T) {
	t.Parallel()
	x := newTable(t, cubesim.Config{Address: near})
	link, err := cube.Socket(filepath.Join(x.root.Name(), cube.SocketPath)).Connect(t.Context(), near)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	for u, want := range map[cube.UUID]string{cube.DeviceName: "Vector Cube", cube.FirmwareRevision: "v_5.0.4", cube.Manufacturer: "Anki", cube.ModelNumber: "Production", cube.SoftwareRevision: "2.0.0"} {
		if got, err := link.Read(t.Context(), u); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", u, got, err)
		}
	}
	if _, err := link.Read(t.Context(), cube.Service); err == nil {
		t.Error("a service cannot be read")
	}
	if err := link.Write(t.Context(), cube.Lights, []byte{2}); err == nil {
		t.Error("an unknown trigger is refused")
	}
}
