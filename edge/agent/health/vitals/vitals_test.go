package vitals

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/body"
	"kennel/edge/core/corelink"
	"kennel/edge/power"
	"kennel/infra/api/events"
	"kennel/infra/api/status"
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
	return New(Config{Emit: func(e events.Event) { s.events = append(s.events, e) }, Changed: func() { s.changed++ }, Stats: func(inc map[string]float64) {
		for k, d := range inc {
			s.stats[k] += d
		}
	}}), s
}

func state(volts float64, level power.Level, p body.Power) *corelink.State {
	return &corelink.State{Link: true, BatteryVolts: volts, BatteryLevel: uint8(level), Power: uint16(p)}
}

// firstState are the events of a body that is heard for the first time.
var firstState = []string{"rampost.battery_level", "rampost.battery_flags", "rampost.battery_temperature"}

// TestPowerBecomesEvents: heat, charge, power saving, sleep and the way to off, by change and not by message.
func TestPowerBecomesEvents(t *testing.T) {
	v, s := newVitals()
	v.Handle(&corelink.Hello{Program: "robotd", PID: 9, Body: corelink.BodyInfo{Model: "vector", Firmware: "1.2"}})
	st := state(4.1, power.Nominal, 0)
	st.Temperature = 46.5
	v.Handle(st)
	awake := corelink.Power{Heat: "cool", Charging: "charging", Sleep: power.Awake.String(), Off: "stay_on"}
	next := func(change func(*corelink.Power)) []string {
		s.events = nil
		p := awake
		change(&p)
		for range 2 {
			v.Handle(&p)
		}
		var out []string
		for _, e := range s.events {
			out = append(out, e.Name+" "+e.Words())
		}
		awake = p
		return out
	}
	for _, step := range []struct {
		change func(*corelink.Power)
		want   []string
	}{
		{func(*corelink.Power) {}, nil},
		{func(p *corelink.Power) { p.Heat = "warm" }, []string{"battery.temp_crossed_threshold now warm, before cool, temperature 46500 m°C"}},
		{func(p *corelink.Power) { p.Charging = "charged" }, []string{"battery.fully_charged_voltage battery 4100 mV"}},
		{func(p *corelink.Power) { p.Sleep, p.LastSleep = power.LightSleep.String(), "Sleepy" },
			[]string{"behavior.sleeping.falling_asleep state LightSleep, reason Sleepy", "engine.power_save.start state LightSleep", "hal.active_power_mode active no"}},
		{func(p *corelink.Power) { p.Calm = true }, nil},
		{func(p *corelink.Power) { p.Sleep, p.LastWake = power.Awake.String(), "Poked" }, []string{"behavior.sleeping.wake_up state Awake, reason Poked"}},
		{func(p *corelink.Power) { p.Calm = false }, []string{"engine.power_save.end state Awake", "hal.active_power_mode active yes"}},
		{func(p *corelink.Power) { p.Off, p.Cause = "clean", "SHUTDOWN_BUTTON" },
			[]string{"vectorbot.prep_for_shutdown way clean, reason SHUTDOWN_BUTTON", "robot.power_off reason SHUTDOWN_BUTTON"}},
	} {
		if got := next(step.change); !slices.Equal(got, step.want) {
			t.Errorf("%q, want %q", got, step.want)
		}
	}
	s.events = nil
	v.Handle(state(4.1, power.Nominal, body.Charging))
	v.Handle(&corelink.Fault{Code: 960, Text: "no answer"})
	v.Periodic()
	v.Handle(&corelink.Hello{Program: "robotd", PID: 9, Body: corelink.BodyInfo{Model: "vector"}})
	v.Handle(&corelink.Hello{Program: "robotd", PID: 10, Body: corelink.BodyInfo{Model: "vector", Firmware: "1.3"}})
	want := []string{"battery.is_charging_changed", "robot.imu_failure", "robot.fault_code", "battery.periodic_log", "battery.voltage_stats",
		"battery.temperature_stats", "robotd.loop_stats", "hal.body_version"}
	if got := s.names(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestChangesBecomeEvents(t *testing.T) {
	v, s := newVitals()
	v.Handle(&corelink.Hello{Program: "robotd"})
	v.Handle(state(3.9, power.Nominal, 0))
	if got := s.names(); !slices.Equal(got, firstState) {
		t.Errorf("the first level is no change: %v", got)
	}
	v.Handle(state(3.5, power.Low, 0))
	v.Handle(state(3.5, power.Low, body.OnCharger))
	v.Handle(&corelink.Fault{Code: 898, Text: "no communication"})
	v.Handle(&corelink.Fault{Code: 898})
	v.Handle(&corelink.Fault{})
	v.Handle(&corelink.LoopStats{Steps: 10, Late: 2, Long: 1})
	v.Handle(&corelink.LoopStats{Steps: 1}) // a new robotd: no event, no underflow
	want := slices.Concat(firstState, []string{"battery.battery_level_changed", "battery.on_charger_changed", "robot.on_charger", "robot.fault_code",
		"robot.fault_code", "vectorbot.main_cycle_too_late", "vectorbot.main_cycle_too_long"})
	if got := s.names(); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
}

// TestLateCycles (issue 31.2): the first late cycle is an event at once; those of the next ten minutes are counted together.
func TestLateCycles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := newVitals()
		v.Handle(&corelink.Hello{Program: "robotd"})
		for i := range uint64(1200) { // 20 minutes, a late cycle in each second
			v.Handle(&corelink.LoopStats{Steps: 200 * (i + 1), Late: i + 1})
			time.Sleep(time.Second)
		}
		var counts []int64
		for _, e := range s.events {
			if e.Name == "vectorbot.main_cycle_too_late" {
				counts = append(counts, e.I1.N)
			}
		}
		if want := []int64{1, 600}; !slices.Equal(counts, want) {
			t.Errorf("late cycles were told as %v, want %v", counts, want)
		}
	})
}

// TestTotalsBecomeStatistics: VEC-MCT-16, VEC-IO-14: what the sums grow by, also in bits of less than one; of a robotd that was there before the
// agent only what
// comes, and of the next one all.
func TestTotalsBecomeStatistics(t *testing.T) {
	v, s := newVitals()
	v.Handle(&corelink.Hello{Program: "robotd", PID: 100})
	for i := range 501 {
		way := 7000 + float64(i)*0.5
		v.Handle(&corelink.Totals{Names: []string{"Odom.LWheel", "Odom.Rwheel", "Pet.ms"}, Values: []float64{way, 2 * way, 900}})
	}
	v.Handle(&corelink.Hello{Program: "robotd", PID: 100}) // it was away for a moment
	v.Handle(&corelink.Totals{Names: []string{"Pet.ms"}, Values: []float64{2400}})
	v.Handle(&corelink.Hello{Program: "robotd", PID: 101})
	v.Handle(&corelink.Totals{Names: []string{"Odom.LWheel", "Odom.Rwheel"}, Values: []float64{100}})
	for key, want := range map[string]float64{"Odom.LWheel": 350, "Odom.Rwheel": 500, "Pet.ms": 1500, "Feature.AI.Petting": 1500} {
		if got := s.stats[key]; math.Abs(got-want) > 1.5 {
			t.Errorf("%s = %v, want %v", key, got, want)
		}
	}
	if len(s.events) != 0 {
		t.Errorf("events %v", s.names())
	}
}

// TestEventsArePassedOn: each event of robotd once, as it names it; what happened before the agent met that robotd is no news, what happened while
// it was away is.
func TestEventsArePassedOn(t *testing.T) {
	v, s := newVitals()
	say := func(seq uint64, name string, replayed bool) {
		v.Handle(&corelink.Event{Seq: seq, Name: name, Replayed: replayed, Warning: name == "robot.falling", Numbers: []int64{2, -3},
			Texts: []string{"OnBack", "OnTreads"}})
	}
	hello := func(pid uint32) { v.Handle(&corelink.Hello{Program: "robotd", PID: pid}) }
	hello(100)
	say(1, "robot.before", true)
	say(2, "robot.falling", false)
	hello(100) // its body changed, or the connection
	say(1, "robot.before", true)
	say(2, "robot.falling", true)
	say(3, "robot.meanwhile", true)
	v.Handle(&corelink.Event{Seq: 4, Name: "robot.quiet", Quiet: true})
	hello(101)
	say(1, "robot.next", true)
	say(2, "robot.last", false)
	want := []string{"robot.falling", "robot.meanwhile", "robot.next", "robot.last"}
	if got := s.names(); !slices.Equal(got, want) {
		t.Fatalf("events %v, want %v", got, want)
	}
	if got, want := s.events[0], (events.Event{Source: "robotd", Level: events.Warning, Name: "robot.falling", I1: events.Num(2), I2: events.Num(-3),
		S1: "OnBack", S2: "OnTreads"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestHeldIsAProblem: a status says who holds the robot, and why.
func TestHeldIsAProblem(t *testing.T) {
	v, s := newVitals()
	v.Handle(state(3.9, power.Nominal, 0))
	s.changed = 0
	for i, tc := range []struct {
		held corelink.Held
		want []string
	}{{corelink.Held{}, nil}, {corelink.Held{By: "op", Reason: "its wheel is off"},
		[]string{"held by op because its wheel is off: nothing moves until it is released"}}, {corelink.Held{}, nil}} {
		v.Handle(&tc.held)
		var m status.Message
		if v.Fill(&m); !slices.Equal(m.Problems, tc.want) || s.changed != i {
			t.Errorf("%+v: problems %q, told %d times; want %q, %d", tc.held, m.Problems, s.changed, tc.want, i)
		}
	}
}

// TestStartBecomesEvents: VEC-BOOT-06, part of VEC-BOOT-11: each step once, also of the next robotd.
func TestStartBecomesEvents(t *testing.T) {
	v, s := newVitals()
	step := func(name string, began, ended int64, problem string) corelink.StageTime {
		return corelink.StageTime{Name: name, BeganUS: began, EndedUS: ended, Error: problem}
	}
	all := []corelink.StageTime{step("socket", 1_000_000, 1_002_000, ""), step("body", 1_010_000, 4_010_000, "no such port"),
		step("first_frame", 4_010_000, 9_000_000, "")}
	for _, n := range []int{1, 1, 2, 3, 3} {
		v.Handle(&corelink.Start{BeganUS: 1_000_000, Stages: all[:n], Over: n == 3})
	}
	v.Handle(&corelink.Start{BeganUS: 20_000_000, Stages: []corelink.StageTime{step("socket", 20_000_000, 20_500_000, "")}})
	want := []events.Event{
		TimeSpent("robotd", "socket", 2*time.Millisecond, 0, ""), TimeSpent("robotd", "body", 3*time.Second, 10*time.Millisecond, "no such port"),
		TimeSpent("robotd", "first_frame", 4990*time.Millisecond, 3010*time.Millisecond, ""), {Source: "robotd", Name: "robot.engine_ready", I1: events.Num(8000)}, TimeSpent("robotd", "start", 8*time.Second, 0, ""),
		TimeSpent("robotd", "socket", 500*time.Millisecond, 0, ""),
	}
	if !slices.Equal(s.events, want) {
		t.Errorf("events\n%+v\nwant\n%+v", s.events, want)
	}
	if e := want[1]; e.Level != events.Warning || e.Name != "robot.init.time_spent_ms" || e.S1 != "body" || e.S3 != "no such port" ||
		e.I1 != events.Num(3000) || e.I2 != events.Num(10) {
		t.Errorf("%+v", e)
	}
	if got := v.Start(); got.BeganUS != 20_000_000 || len(got.Stages) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestResting: VEC-PWR-20, VEC-PWR-30: calm power mode and each state of sleep, while robotd says so.
func TestResting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, _ := newVitals()
		is := func(what string, want bool) {
			t.Helper()
			if v.Resting() != want {
				t.Errorf("%s: resting %v", what, !want)
			}
		}
		is("nobody said anything", false)
		for s := power.SleepNothing; s <= power.EmergencySleep; s++ {
			v.Handle(&corelink.Power{Sleep: s.String()})
			is(s.String(), s.Asleep())
		}
		v.Handle(&corelink.Power{Sleep: "a state of later"})
		is("a state that nobody knows", false)
		v.Handle(&corelink.Power{Sleep: power.Awake.String(), Calm: true})
		is("calm", true)
		time.Sleep(stale)
		is("calm a while ago", false)
	})
}

// TestNeeds: battery, charger and heat keep a robot from an update that asks for them, and so does a core that says nothing (VEC-OTA-20).
func TestNeeds(t *testing.T) {
	heats := func(battery, processor power.Heat) *corelink.Power {
		return &corelink.Power{Heat: battery.String(), CPUHeat: processor.String()}
	}
	hot, warm, cool := heats(power.Hot, power.Cool), heats(power.Warm, power.Cool), heats(power.Cool, power.Cool)
	busy := heats(power.Cool, power.Warm)
	for _, tt := range []struct {
		name             string
		says             []corelink.Message
		battery, charger bool
		want             string // in the reason; "": none
	}{
		{"nothing asked", nil, false, false, ""},
		{"nothing known", nil, true, false, "core does not answer"},
		{"battery", []corelink.Message{state(3.9, power.Nominal, 0)}, true, false, ""},
		{"low", []corelink.Message{state(3.5, power.Low, 0)}, true, false, "3.50 V"},
		{"unknown", []corelink.Message{state(0, power.Unknown, 0)}, true, false, "level unknown"},
		{"unknown, on the charger", []corelink.Message{state(0, power.Unknown, body.OnCharger)}, true, true, ""},
		{"low, on the charger", []corelink.Message{state(3.5, power.Low, body.OnCharger)}, true, true, ""},
		{"away", []corelink.Message{state(3.9, power.Nominal, 0)}, false, true, "not on its charger"},
		{"cool", []corelink.Message{state(3.9, power.Nominal, 0), cool}, true, false, ""},
		{"warm", []corelink.Message{state(3.9, power.Nominal, 0), warm}, true, false, "too warm"},
		{"a warm processor", []corelink.Message{state(3.9, power.Nominal, 0), busy}, true, false, "too warm"},
		{"hot", []corelink.Message{state(3.9, power.Nominal, body.OnCharger), hot}, true, true, "too warm"},
		{"hot, not asked", []corelink.Message{state(3.9, power.Nominal, 0), hot}, false, false, ""},
	} {
		v, _ := newVitals()
		for _, m := range tt.says {
			v.Handle(m)
		}
		if err := v.Needs(tt.battery, tt.charger); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestCooldownBecomesAnEvent: VEC-PWR-53.
func TestCooldownBecomesAnEvent(t *testing.T) {
	v, s := newVitals()
	for _, charging := range []string{"cooldown", "charging", "cooldown", "cooldown", "charging"} {
		v.Handle(&corelink.Power{Charging: charging, Heat: "hot"})
	}
	if got := s.names(); !slices.Equal(got, []string{"battery.cooldown"}) || s.events[0].S1 != "hot" {
		t.Errorf("events %v", s.events)
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
	all := []string{"rampost.dfu.open_file", "rampost.dfu.desired_version", "rampost.dfu.request_version", "rampost.dfu.installed_version",
		"rampost.rampost.exit"}
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
		v.Handle(state(4.12, power.Full, body.OnCharger))
		v.Handle(&corelink.LoopStats{Steps: 7, Lateness: corelink.Percentiles{P99: 300}})
		var m status.Message
		v.Fill(&m)
		if m.Body == nil || m.Body.BatteryLevel != "full" || !m.Body.OnCharger || m.Loop == nil || m.Loop.LateP99 != 300 || len(m.Problems) != 0 {
			t.Errorf("status %+v %+v", m.Body, m.Loop)
		}
		v.Periodic()
		if got := s.names(); !slices.Equal(got, slices.Concat(firstState, []string{"battery.periodic_log", "battery.voltage_stats", "robotd.loop_stats"})) {
			t.Errorf("events %v", got)
		}
		time.Sleep(stale)
		m = status.Message{}
		v.Fill(&m)
		v.Periodic()
		if m.Body != nil || len(m.Problems) != 1 || len(s.events) != 6 {
			t.Errorf("a silent core: %+v, %d events", m, len(s.events))
		}
	})
}
