package coreserver

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/monoclock"
	"kennel/edge/core/control"
	"kennel/edge/core/corelink"
	"kennel/edge/faultcode"
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/power/lastoff"
	"kennel/infra/api/live"
)

// TestReport: state, power, totals, statistics and events reach a peer, with what is no number left out.
func TestReport(t *testing.T) {
	b := newBench(t, t.TempDir())
	b.body.SetReport(func(r *control.Report) {
		r.Power.Battery.Volts, r.Power.Battery.Level, r.Volts, r.Supply, r.Status = 3.9, power.Nominal, 5, body.OnCharger, 0x3000
		r.Totals[0], r.Base.Pose.X, r.Base.Twist.V, r.Posture = 1500, 0.5, math.NaN(), "OnTreads"
		r.Parts[1] = control.PartReport{State: "homing", Outcome: motion.Running}
	})
	first := 0
	b.cfg.First = func(_ context.Context, m *corelink.State) { first++ }
	b.SetThread(true, false)
	b.run()
	c := b.peer("one")
	if s := await(c, "state", func(m *corelink.State) bool { return m.Link }); s.Seq != 7 || s.Epoch != 2 || s.BatteryVolts != 3.9 ||
		s.BatteryLevel != uint8(power.Nominal) ||
		s.ChargerVolts != 5 || s.Power != uint16(body.OnCharger) || s.Temperature != 31 || s.Halted || s.Fault != 0 {
		t.Errorf("state %+v", s)
	}
	if m := await(c, "motion", func(*corelink.Motion) bool { return true }); m.X != 0.5 || m.Speed != 0 || m.Posture != "OnTreads" ||
		m.Parts[1] != (live.Part{Name: "head", State: "homing", Outcome: "running"}) {
		t.Errorf("motion %+v", m)
	}
	if m := await(c, "power", func(*corelink.Power) bool { return true }); m.Status != 0x3000 || m.Off != "stay_on" || m.PlayLeftSec == 0 ||
		m.CPUMHz != b.CPUMHz() {
		t.Errorf("power %+v", m)
	}
	if m := await(c, "totals", func(*corelink.Totals) bool { return true }); !slices.Equal(m.Names, []string{"Odom.Body"}) || !slices.Equal(m.Values,
		[]float64{1500}) {
		t.Errorf("totals %+v", m)
	}
	b.body.Emit(control.Event{At: time.Second, Name: "robot.cliff_detected", Warning: true, N: 1, Numbers: [4]int64{3}, Texts: [4]string{"", "front"}})
	if m := await(c, "event", func(*corelink.Event) bool { return true }); m.Name != "robot.cliff_detected" || !m.Warning || !slices.Equal(m.Numbers,
		[]int64{3}) ||
		!slices.Equal(m.Texts, []string{"", "front"}) || m.AtUS != 1_000_000 || m.Seq != 1 {
		t.Errorf("event %+v", m)
	}
	if m := await(c, "statistics", func(*corelink.LoopStats) bool { return true }); m.Steps != 5 || !m.FIFO || m.Locked || m.Peers != 1 ||
		m.Refused != 1 {
		t.Errorf("statistics %+v", m)
	}
	await(c, "link", func(m *corelink.LinkStats) bool { return m.Frames == 3 })
	b.SetFault(faultcode.BodySilent)
	await(c, "fault", func(m *corelink.Fault) bool { return m.Code == 898 })
	b.SetFault(0)
	await(c, "its end", func(m *corelink.Fault) bool { return m.Code == 0 })
	if first != 1 {
		t.Errorf("the first measurement was told %d times", first)
	}
}

// TestCleanEnd: VEC-PWR-41: the other programs have their time, then the power is cut, and that it is meant is written before.
func TestCleanEnd(t *testing.T) {
	b := newBench(t, t.TempDir())
	if err := b.CameOn(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.body.SetReport(func(r *control.Report) {
		r.Power.Shutdown = power.Shutdown{Off: power.Clean, Cause: power.BatteryCriticalVolt}
	})
	r := &reporter{s: b.Server, turned: monoclock.Now()}
	r.step(t.Context(), false)
	if n := b.body.Offs(); n != 0 {
		t.Errorf("before the time of the others is over: off %d times", n)
	}
	if code := r.now(); code != faultcode.ShutdownBatteryLow { // VEC-PWR-40
		t.Errorf("fault %d meanwhile", code)
	}
	r.off -= offAfter
	r.step(t.Context(), false)
	if n := b.body.Offs(); n != 1 {
		t.Errorf("after it: off %d times", n)
	}
	if got, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(lastoff.File))); err != nil || string(got) != "clean\n" {
		t.Errorf("the mark says %q, %v", got, err)
	}
}

// TestLongMotion: a peer gets the end of a motion however long it lasted; a result that was lost is forgotten (issue 28.13).
func TestLongMotion(t *testing.T) {
	b := newBench(t, t.TempDir())
	p := corelink.Peer{ID: 1}
	b.handle(t.Context(), p, &corelink.Claim{Request: 1, Devices: []string{"wheelL", "wheelR"}})
	b.handle(t.Context(), p, &corelink.Do{Request: 2, Line: "robot.go(1)"})
	at := func(later time.Duration) int {
		b.deliver(t.Context(), monoclock.Now()+later)
		return len(b.due)
	}
	running := func(o motion.Outcome) {
		b.body.SetReport(func(r *control.Report) { r.Parts[0].Outcome = o })
	}
	running(motion.Running)
	if n := at(0); n != 1 {
		t.Fatalf("%d requests wait for the end of a motion, want 1", n)
	}
	for _, later := range []time.Duration{control.MaxFor, resultsDue + time.Second, time.Hour} {
		if n := at(later); n != 1 {
			t.Errorf("%v later, while it moves: %d requests wait for an end, want 1", later, n)
		}
	}
	running(motion.Done)
	b.body.End(motion.Done, 1) // the end is there when the report says so
	if b.deliver(t.Context(), monoclock.Now()+time.Hour); b.seq != 1 {
		t.Errorf("%d ends were told, want 1", b.seq)
	}
	b.handle(t.Context(), p, &corelink.Do{Request: 3, Line: "robot.go(1)"})
	at(0)
	b.body.End(motion.Done, 1)
	if _, ok := b.body.Result(); !ok { // it is lost
		t.Fatal("no end")
	}
	if n := at(resultsDue - time.Second); n != 1 {
		t.Errorf("%d requests wait, want 1", n)
	}
	if n := at(resultsDue + time.Second); n != 0 {
		t.Errorf("%d requests wait for a lost result, want 0", n)
	}
}
