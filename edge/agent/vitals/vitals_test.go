package vitals

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kennel/cloud/api/events"
	"kennel/cloud/api/status"
	"kennel/edge/body"
	"kennel/edge/corelink"
	"kennel/edge/power"
)

type seen struct {
	events  []events.Event
	changed int
	stats   map[string]float64
}

func (s *seen) names() []string {
	var out []string
	for _, e := range s.events {
		if err := events.CheckName(e.Name); err != nil {
			panic(err)
		}
		out = append(out, e.Name)
	}
	return out
}

func newVitals() (*Vitals, *seen) {
	s := &seen{stats: map[string]float64{}}
	return New(func(e events.Event) { s.events = append(s.events, e) }, func() { s.changed++ },
		func(inc map[string]float64) {
			for k, d := range inc {
				s.stats[k] += d
			}
		}), s
}

func state(volts float64, level power.Level, p body.Power, left float64) *corelink.State {
	return &corelink.State{Link: true, BatteryVolts: volts, BatteryLevel: uint8(level), Power: uint16(p), Motors: []corelink.Motor{{Position: left}, {}}}
}

func TestChangesBecomeEvents(t *testing.T) {
	v, s := newVitals()
	v.Handle(&corelink.Hello{Program: "robotd"})
	v.Handle(state(3.9, power.Nominal, 0, 0))
	if len(s.events) != 0 {
		t.Errorf("the first level is no change: %v", s.names())
	}
	v.Handle(state(3.5, power.Low, 0, 0.0004))
	v.Handle(state(3.5, power.Low, body.OnCharger, 0.25))
	v.Handle(&corelink.Fault{Code: 898, Text: "no communication"})
	v.Handle(&corelink.Fault{Code: 898})
	v.Handle(&corelink.Fault{})
	v.Handle(&corelink.LoopStats{Steps: 10, Late: 2})
	v.Handle(&corelink.LoopStats{Steps: 20, Late: 2, Long: 1})
	v.Handle(&corelink.LoopStats{Steps: 1}) // a new robotd: no event, no underflow
	want := []string{"battery.battery_level_changed", "battery.on_charger_changed", "robot.fault_code", "robot.fault_code",
		"vectorbot.main_cycle_too_late", "vectorbot.main_cycle_too_long"}
	if got := s.names(); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	if got := s.stats["Odom.LWheel"]; got < 249.9 || got > 250.1 {
		t.Errorf("Odom.LWheel = %v mm, want 250", got)
	}
}

// TestFirmwareBecomesEvents: VEC-DFU-04: what was looked at, and how it ended; told again it is nothing new.
func TestFirmwareBecomesEvents(t *testing.T) {
	v, s := newVitals()
	done := corelink.Firmware{AtUS: 1, File: "anki/etc/syscon.dfu", Wanted: "1.7", Installed: "1.6", Attempts: 1}
	bad := corelink.Firmware{AtUS: 2, File: "anki/etc/syscon.dfu", Wanted: "1.7", Installed: "1.6", Attempts: 3, Status: 17, Error: "refused"}
	for _, m := range []corelink.Firmware{done, done, bad, {AtUS: 3, File: "x", Status: 18, Error: "too short"}} {
		v.Handle(&m)
	}
	all := []string{"rampost.dfu.open_file", "rampost.dfu.desired_version", "rampost.dfu.request_version", "rampost.dfu.installed_version", "rampost.rampost.exit"}
	want := append(append(slices.Clone(all), all...), all[0])
	if got := s.names(); !slices.Equal(got, want) {
		t.Fatalf("events %v, want %v", got, want)
	}
	for i, level := range map[int]events.Level{4: events.Info, 9: events.Error, 10: events.Error} {
		if s.events[i].Level != level {
			t.Errorf("event %d is %+v, want level %v", i, s.events[i], level)
		}
	}
	if e := s.events[9]; e.S1 != "refused" || e.I1 != events.Num(17) {
		t.Errorf("the end of a failed update is %+v", e)
	}
}

// TestUnmeantEnd: VEC-PWR-42: told once a robotd.
func TestUnmeantEnd(t *testing.T) {
	v, s := newVitals()
	for pid, last := range []string{"never on before", "unmeant", "clean", "unmeant"} {
		v.Handle(&corelink.Hello{Program: "robotd", PID: uint32(100 + pid)})
		v.Handle(&corelink.Power{LastOff: last})
		v.Handle(&corelink.Power{LastOff: last})
	}
	if got := s.names(); !slices.Equal(got, []string{"robot.shutdown_reason", "robot.shutdown_reason"}) || s.events[0].S1 != "SHUTDOWN_UNKNOWN" {
		t.Errorf("events %v", s.events)
	}
}

func TestStatusLeavesOutWhatIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := newVitals()
		v.Handle(state(4.12, power.Full, body.OnCharger, 0))
		v.Handle(&corelink.LoopStats{Steps: 7, Lateness: corelink.Percentiles{P99: 300}})
		var m status.Message
		v.Fill(&m)
		if m.Body == nil || m.Body.BatteryLevel != "full" || !m.Body.OnCharger || m.Loop == nil || m.Loop.LateP99 != 300 || len(m.Problems) != 0 {
			t.Errorf("status %+v %+v", m.Body, m.Loop)
		}
		v.Periodic()
		if got := s.names(); !slices.Equal(got, []string{"battery.periodic_log", "robotd.loop_stats"}) {
			t.Errorf("events %v", got)
		}
		time.Sleep(stale)
		m = status.Message{}
		v.Fill(&m)
		v.Periodic()
		if m.Body != nil || len(m.Problems) != 1 || len(s.events) != 2 {
			t.Errorf("a silent core: %+v, %d events", m, len(s.events))
		}
	})
}

// TestFeltBecomesEvents: VEC-IMU-06, 07, 15, 16, 18: what a robotd felt before we listened is no news, what the next one felt is; each is told once.
func TestFeltBecomesEvents(t *testing.T) {
	v, s := newVitals()
	v.Handle(&corelink.Hello{Program: "robotd", PID: 100})
	felt := corelink.Inertial{OffTreads: "OnTreads", Falls: 3, GyroReady: 1}
	v.Handle(&felt)
	v.Handle(&felt)
	if len(s.events) != 0 {
		t.Fatalf("events %v of what was before", s.names())
	}
	felt.OffTreads, felt.Falls, felt.Impacts, felt.Delocalized = "OnBack", 5, 1, 1
	v.Handle(&felt)
	v.Handle(&felt)
	v.Handle(&corelink.Hello{Program: "robotd", PID: 101})
	again := corelink.Inertial{OffTreads: "OnBack", GyroReady: 1, LongInAir: 1, Unexpected: 2, Movement: "TURNED_BUT_STOPPED", Side: "LEFT"}
	v.Handle(&again)
	v.Handle(&corelink.Hello{Program: "robotd", PID: 101}) // its body changed
	v.Handle(&again)
	want := []string{"robot.offtreadsstatechanged", "imu_filter.falling_event", "imu_filter.fall_impact_event", "robot.delocalized",
		"imu_filter.gyro_calibrated", "robot.too_long_in_air", "robot.unexpected_movement"}
	if got := s.names(); !slices.Equal(got, want) {
		t.Fatalf("events %v, want %v", got, want)
	}
	if e := s.events[0]; e.S1 != "OnBack" || e.S2 != "OnTreads" {
		t.Errorf("off treads: %+v", e)
	}
	if e := s.events[1]; e.I1 != events.Num(2) || e.Level != events.Warning {
		t.Errorf("two falls: %+v", e)
	}
	if e := s.events[6]; e.S1 != "TURNED_BUT_STOPPED" || e.S2 != "LEFT" || e.I1 != events.Num(2) {
		t.Errorf("unexpected: %+v", e)
	}
}
