// Package vitals keeps the agent's view of the robot's body and real-time core: the last messages of robotd, as a part of the status
// and as events when something changes (VEC-PWR-03, VEC-WDOG-03).
package vitals

import (
	"cmp"
	"fmt"
	"math"
	"sync"
	"time"

	"kennel/edge/body"
	"kennel/edge/core/corelink"
	"kennel/edge/faultcode"
	"kennel/edge/power"
	"kennel/edge/power/lastoff"
	"kennel/infra/api/events"
	"kennel/infra/api/status"
	"kennel/infra/errs"
	"kennel/ota"
)

// stale is how long a message of robotd counts as now; afterwards the status leaves it out.
const stale = 10 * time.Second

// Vitals is safe for concurrent use.
type Vitals struct {
	emit    func(events.Event)
	changed func()

	mu     sync.Mutex
	hello  corelink.Hello
	state  corelink.State
	loop   corelink.LoopStats
	link   corelink.LinkStats
	at     time.Time // of the last state
	level  power.Level
	known  bool // level was read from a body
	fault  uint16
	firm   corelink.Firmware
	runs   uint32      // the robotd whose LastOff was told
	volts  power.Stats // since the last periodic log
	warmth power.Stats // likewise, in thousandths of a degree Celsius
	stats  func(map[string]float64)
	held   corelink.Held

	// Messages from before the agent met this robotd are not news, unless the agent saw it begin or was away from it.
	met    bool               // it began under the agent's eyes, or was met before
	seq    uint64             // of its newest event
	totals map[string]float64 // of its newest Totals, as far as they are in the statistics; nil: none
	power  corelink.Power
	powers bool // there was one, or it began under the agent's eyes

	powerAt time.Time // of the last Power

	start corelink.Start // of this robotd

	simulated func() bool
	told      corelink.LoopStats // that the latest events of late and long cycles counted to
	toldAt    time.Time
}

// loopEvery is how often late and long cycles become events after the first; those in between are counted together.
const loopEvery = 10 * time.Minute

// Config has what vitals are told to. None of it may block.
type Config struct {
	Emit      func(events.Event)
	Changed   func()                   // a status is wanted soon
	Stats     func(map[string]float64) // increments of lifetime statistics by their key (part of VEC-DOC-07)
	Simulated func() bool              // the body is simulated; nil: it is not
}

// New returns empty vitals.
func New(cfg Config) *Vitals {
	if cfg.Simulated == nil {
		cfg.Simulated = func() bool { return false }
	}
	return &Vitals{emit: cfg.Emit, changed: cfg.Changed, stats: cfg.Stats, simulated: cfg.Simulated}
}

// Handle takes one message of robotd.
func (v *Vitals) Handle(m corelink.Message) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch m := m.(type) {
	case *corelink.Hello:
		v.met = v.hello.PID != 0
		if v.met && m.PID != v.hello.PID {
			v.seq, v.totals = 0, map[string]float64{}
			v.power, v.powers = corelink.Power{}, true
		}
		if v.hello.PID != m.PID && m.Body.Model != "" {
			v.emit(events.Event{Source: "robotd", Name: "hal.body_version", S1: m.Body.Model, S2: m.Body.Firmware})
		}
		v.hello = *m
	case *corelink.State:
		v.takeState(*m)
	case *corelink.LoopStats:
		v.takeLoop(*m)
	case *corelink.LinkStats:
		v.link = *m
	case *corelink.Fault:
		v.takeFault(*m)
	case *corelink.Power:
		v.takePower(*m)
	case *corelink.Firmware:
		v.takeFirmware(*m)
	case *corelink.Start:
		v.takeStart(*m)
	case *corelink.Event:
		v.takeEvent(m)
	case *corelink.Totals:
		v.takeTotals(m)
	case *corelink.Held:
		if v.held.By != m.By {
			v.changed()
		}
		v.held = *m
	}
}

func (v *Vitals) takeState(s corelink.State) {
	prev := v.state
	v.state, v.at = s, time.Now()
	if prev.Link != s.Link {
		v.changed()
	}
	if !s.Link {
		return
	}
	v.volts.Add(s.BatteryVolts)
	if s.Temperature != 0 {
		v.warmth.Add(milli(s.Temperature))
	}
	if level := power.Level(s.BatteryLevel); !v.known || level != v.level {
		if v.known {
			v.emit(events.Event{Source: "robotd", Name: "battery.battery_level_changed", S1: level.String(), S2: v.level.String(),
				I1: events.Num(millivolts(s.BatteryVolts)), I2: events.Flag(onCharger(s))})
		}
		if !v.known {
			v.emit(events.Event{Source: "robotd", Name: "rampost.battery_level", S1: level.String(), I1: events.Num(millivolts(s.BatteryVolts))})
			v.emit(events.Event{Source: "robotd", Name: "rampost.battery_flags", I1: events.Num(int64(s.Power))})
			v.emit(events.Event{Source: "robotd", Name: "rampost.battery_temperature", I1: events.Num(int64(milli(s.Temperature)))})
		}
		v.level, v.known = level, true
		v.changed()
	}
	if was, is := onCharger(prev), onCharger(s); was != is && prev.Link {
		v.emit(events.Event{Source: "robotd", Name: "battery.on_charger_changed", I1: events.Flag(is), I2: events.Num(millivolts(s.BatteryVolts))})
		name := "robot.off_charger"
		if is {
			name = "robot.on_charger"
		}
		v.emit(events.Event{Source: "robotd", Name: name, I1: events.Num(millivolts(s.BatteryVolts))})
		v.changed()
	}
	if was, is := body.Power(prev.Power).Has(body.Charging), body.Power(s.Power).Has(body.Charging); was != is && prev.Link {
		v.emit(events.Event{Source: "robotd", Name: "battery.is_charging_changed", I1: events.Flag(is), I2: events.Num(millivolts(s.BatteryVolts))})
	}
}

// takeEvent passes on an event of robotd, once: its numbers are i1 to i4, its texts s1 to s4.
func (v *Vitals) takeEvent(m *corelink.Event) {
	if m.Seq <= v.seq {
		return
	}
	v.seq = m.Seq
	if m.Quiet || m.Replayed && !v.met {
		return
	}
	e := events.Event{Source: "robotd", Name: m.Name}
	if m.Warning {
		e.Level = events.Warning
	}
	for i, n := range m.Numbers {
		*[...]*events.Int{&e.I1, &e.I2, &e.I3, &e.I4}[i] = events.Num(n)
	}
	for i, text := range m.Texts {
		*[...]*string{&e.S1, &e.S2, &e.S3, &e.S4}[i] = text
	}
	v.emit(e)
}

// takeTotals adds the growth of the sums to the lifetime statistics (part of VEC-DOC-07, VEC-MCT-16, VEC-IO-14).
func (v *Vitals) takeTotals(m *corelink.Totals) {
	first := v.totals == nil
	if first {
		v.totals = map[string]float64{}
	}
	inc := map[string]float64{}
	for i, name := range m.Names[:min(len(m.Names), len(m.Values))] {
		if grown := m.Values[i] - v.totals[name]; first || grown >= 1 { // less than that waits for more
			inc[name], v.totals[name] = grown, m.Values[i]
			if name == "Pet.ms" { // both count the time that a person strokes the robot
				inc["Feature.AI.Petting"] = grown
			}
		}
	}
	if len(inc) > 0 && !first {
		v.stats(inc)
	}
}

// takeLoop reports cycles that began late or took long since it did so the last time.
func (v *Vitals) takeLoop(l corelink.LoopStats) {
	if l.Steps < v.loop.Steps {
		v.told = corelink.LoopStats{} // robotd started again
	}
	v.loop = l
	prev := v.told
	if l.Late == prev.Late && l.Long == prev.Long || time.Since(v.toldAt) < loopEvery {
		return
	}
	v.told, v.toldAt = l, time.Now()
	if n := l.Late - prev.Late; n > 0 {
		v.emit(events.Event{
			Source: "robotd", Level: events.Warning, Name: "vectorbot.main_cycle_too_late", I1: events.Num(int64(n)),
			I2: events.Num(int64(l.Lateness.Max)),
		})
	}
	if n := l.Long - prev.Long; n > 0 {
		v.emit(events.Event{
			Source: "robotd", Level: events.Warning, Name: "vectorbot.main_cycle_too_long", I1: events.Num(int64(n)),
			I2: events.Num(int64(l.StepTime.Max)),
		})
	}
}

func (v *Vitals) takeFault(f corelink.Fault) {
	if f.Code == v.fault {
		return
	}
	v.fault = f.Code
	level := events.Error
	if f.Code == 0 {
		level = events.Info
	}
	if faultcode.Code(f.Code) == faultcode.IMU {
		v.emit(events.Event{Source: "robotd", Level: level, Name: "robot.imu_failure", S1: f.Text})
	}
	v.emit(events.Event{Source: "robotd", Level: level, Name: "robot.fault_code", I1: events.Num(int64(f.Code)), S1: f.Text})
	v.changed()
}

// takePower reports that charging pauses for the battery to cool (VEC-PWR-53), and once for each robotd that the run
// before it ended although nothing decided that (VEC-PWR-42).
func (v *Vitals) takePower(p corelink.Power) {
	cooldown := power.Cooldown.String()
	if v.powers && p.Charging == cooldown && v.power.Charging != cooldown {
		v.emit(events.Event{Source: "robotd", Level: events.Warning, Name: "battery.cooldown", S1: p.Heat})
	}
	if v.powers {
		v.tellPower(v.power, p)
	}
	v.power, v.powers, v.powerAt = p, true, time.Now()
	if v.runs == v.hello.PID && v.runs != 0 {
		return
	}
	v.runs = v.hello.PID
	if p.LastOff == lastoff.Unmeant.String() {
		v.emit(events.Event{Source: "robotd", Level: events.Warning, Name: "robot.shutdown_reason", S1: power.UnknownCause.String()})
	}
}

// tellPower reports what changed between two messages: heat, charge, power saving, sleep and the way to off.
func (v *Vitals) tellPower(was, is corelink.Power) {
	say := func(name, s1, s2 string, i1 events.Int) {
		v.emit(events.Event{Source: "robotd", Name: name, S1: s1, S2: s2, I1: i1})
	}
	if is.Heat != was.Heat && was.Heat != "" {
		say("battery.temp_crossed_threshold", is.Heat, was.Heat, events.Num(int64(milli(v.state.Temperature))))
	}
	if full := power.Charged.String(); is.Charging == full && was.Charging != full {
		say("battery.fully_charged_voltage", "", "", events.Num(millivolts(v.state.BatteryVolts)))
	}
	switch sleeps, slept := asleep(is), asleep(was); {
	case sleeps && !slept:
		say("behavior.sleeping.falling_asleep", is.Sleep, is.LastSleep, events.Int{})
	case slept && !sleeps:
		say("behavior.sleeping.wake_up", is.Sleep, is.LastWake, events.Int{})
	}
	if saves, saved := is.Calm || asleep(is), was.Calm || asleep(was); saves != saved {
		name := "engine.power_save.end"
		if saves {
			name = "engine.power_save.start"
		}
		say(name, is.Sleep, "", events.Int{})
		say("hal.active_power_mode", "", "", events.Flag(!saves))
	}
	if is.Off != was.Off && is.Off != stayOn && was.Off != "" {
		say("vectorbot.prep_for_shutdown", is.Off, is.Cause, events.Int{})
		say("robot.power_off", is.Cause, "", events.Int{})
	}
}

// stayOn is corelink.Power.Off of a robot that does not go off.
const stayOn = "stay_on"

func asleep(p corelink.Power) bool {
	s, ok := power.ParseSleep(p.Sleep)
	return ok && s.Asleep()
}

// takeFirmware reports how the check of the body's own program went, in the order in which it was done (VEC-DFU-04, part of VEC-FWU-03). robotd repeats it
// for each peer that joins; the agent reports it once.
func (v *Vitals) takeFirmware(f corelink.Firmware) {
	if f == v.firm {
		return
	}
	v.firm = f
	level := events.Info
	if f.Status != 0 {
		level = events.Error
	}
	emit := func(level events.Level, name, s1, s2 string) {
		v.emit(events.Event{
			Source: "robotd", Level: level, Name: name, S1: s1, S2: s2, I1: events.Num(int64(f.Status)),
			I2: events.Num(int64(f.Attempts)), I3: events.Num(int64(f.TookMS)),
		})
	}
	if f.Wanted == "" {
		emit(level, "rampost.dfu.open_file", f.File, f.Error)
		return
	}
	emit(events.Info, "rampost.dfu.open_file", f.File, "")
	emit(events.Info, "rampost.dfu.desired_version", f.Wanted, "")
	emit(events.Info, "rampost.dfu.request_version", "", "")
	emit(events.Info, "rampost.dfu.installed_version", f.Installed, f.Skipped)
	emit(level, "rampost.rampost.exit", f.Error, "")
}

// TimeSpent is the event of one step of a start (VEC-BOOT-06, part of VEC-BOOT-11): its duration, its begin after the program's, and why it failed;
// "": it did not.
func TimeSpent(program, step string, spent, after time.Duration, problem string) events.Event {
	e := events.Event{Source: program, Name: "robot.init.time_spent_ms", S1: step, S2: program, S3: problem,
		I1: events.Num(spent.Milliseconds()), I2: events.Num(after.Milliseconds())}
	if problem != "" {
		e.Level = events.Warning
	}
	return e
}

// WholeStart is the step of TimeSpent that sums all of them.
const WholeStart = "start"

// takeStart reports the steps of robotd's start that are over since the message before, and then the whole. robotd repeats them
// for each peer that joins; the agent reports them once.
func (v *Vitals) takeStart(m corelink.Start) {
	was := v.start
	if was.BeganUS != m.BeganUS { // another robotd
		was = corelink.Start{}
	}
	v.start = m
	us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	for _, s := range m.Stages[min(len(was.Stages), len(m.Stages)):] {
		v.emit(TimeSpent("robotd", s.Name, us(s.EndedUS-s.BeganUS), us(s.BeganUS-m.BeganUS), s.Error))
	}
	if n := len(m.Stages); m.Over && !was.Over && n > 0 {
		v.emit(events.Event{Source: "robotd", Name: "robot.engine_ready", I1: events.Num(us(m.Stages[n-1].EndedUS - m.BeganUS).Milliseconds())})
		v.emit(TimeSpent("robotd", WholeStart, us(m.Stages[n-1].EndedUS-m.BeganUS), 0, ""))
	}
}

// Start returns the start of the last robotd.
func (v *Vitals) Start() corelink.Start {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.start
}

// Periodic emits the events that are reported at intervals: the battery and the loop.
func (v *Vitals) Periodic() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.fresh() {
		return
	}
	v.emit(events.Event{Source: "robotd", Name: "battery.periodic_log", S1: v.level.String(), I1: events.Num(millivolts(v.state.BatteryVolts))})
	v.emit(events.Event{Source: "robotd", Name: "battery.voltage_stats", I1: events.Num(millivolts(v.volts.Min)),
		I2: events.Num(millivolts(v.volts.Max)),
		I3: events.Num(millivolts(v.volts.Mean())), I4: events.Num(int64(v.volts.N))})
	v.volts = power.Stats{}
	if w := v.warmth; w.N > 0 {
		v.emit(events.Event{Source: "robotd", Name: "battery.temperature_stats", I1: events.Num(int64(w.Min)), I2: events.Num(int64(w.Max)),
			I3: events.Num(int64(w.Mean())), I4: events.Num(int64(w.N))})
		v.warmth = power.Stats{}
	}
	v.emit(events.Event{Source: "robotd", Name: "robotd.loop_stats", I1: events.Num(int64(v.loop.Steps)), I2: events.Num(int64(v.loop.Missed)),
		I3: events.Num(int64(v.loop.Lateness.P99)), I4: events.Num(int64(v.loop.StepTime.P99))})
}

// Fill adds the body's and the loop's part to a status.
func (v *Vitals) Fill(m *status.Message) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.fresh() {
		m.Tell(status.Problem{Kind: status.KindRobotd, Text: "the real-time core does not answer"})
		return
	}
	s := v.state
	m.Body = &status.Body{
		Model: v.hello.Body.Model, Firmware: v.hello.Body.Firmware, BatteryVolts: s.BatteryVolts, BatteryLevel: power.Level(s.BatteryLevel).String(),
		OnCharger: onCharger(s), Charging: body.Power(s.Power).Has(body.Charging), TemperatureC: s.Temperature, Fault: int(s.Fault),
		FramesGood: v.link.Frames, FramesBad: v.link.Corrupt, Posture: s.Posture,
	}
	if v.held.By != "" {
		m.Tell(status.Problem{Kind: status.KindHeld, Text: fmt.Sprintf("held by %s because %s: nothing moves until it is released", v.held.By,
			v.held.Reason)})
	}
	if !s.Link {
		m.Body.Fault = cmp.Or(m.Body.Fault, int(faultcode.BodySilent))
		m.Tell(status.Problem{Kind: status.KindBody, Code: "898", Text: "it sends nothing (fault 898)"})
	}
	l := v.loop
	m.Loop = &status.Loop{
		Steps: l.Steps, Missed: l.Missed, Late: l.Late, Long: l.Long, FIFO: l.FIFO, Dropped: l.Drops,
		LateP50: float64(l.Lateness.P50), LateP99: float64(l.Lateness.P99), LateP999: float64(l.Lateness.P999), LateMax: float64(l.Lateness.Max),
		StepP50: float64(l.StepTime.P50), StepP99: float64(l.StepTime.P99), StepMax: float64(l.StepTime.Max), Simulated: v.simulated(),
	}
}

// Resting reports whether the robot saves power: it is in calm power mode or asleep (VEC-PWR-20, VEC-PWR-30). False, too, while robotd says nothing.
func (v *Vitals) Resting() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return !v.powerAt.IsZero() && time.Since(v.powerAt) < stale && (v.power.Calm || asleep(v.power))
}

// Needs says which of battery and charger keeps the robot from an update; nil if none of those asked for does. A robot on its charger needs no
// battery; one away from it needs a level that is known and not low. Heat at which the robot slows down, the warning level, keeps it from
// both (VEC-OTA-20).
func (v *Vitals) Needs(battery, charger bool) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch on := onCharger(v.state); {
	case (battery || charger) && !v.fresh():
		return waits(ota.WaitBody, "battery and charger state unknown: the real-time core does not answer")
	case charger && !on:
		return waits(ota.WaitCharger, "the robot is not on its charger")
	case battery && !on && power.Level(v.state.BatteryLevel) == power.Low:
		return waits(ota.WaitBattery, "the battery is low: %.2f V", v.state.BatteryVolts)
	case battery && !on && power.Level(v.state.BatteryLevel) == power.Unknown:
		return waits(ota.WaitBody, "battery level unknown, and the robot is not on its charger")
	case (battery || charger) && (warm(v.power.Heat) || warm(v.power.CPUHeat)):
		return waits(ota.WaitHeat, "the robot is too warm: its battery is %s, its processor %s", v.power.Heat, v.power.CPUHeat)
	}
	return nil
}

// waits is an error whose code is the reason as a word.
func waits(w ota.Cause, format string, args ...any) error {
	return errs.Coded(errs.Unavailable, string(w), format, args...)
}

// warm reports whether a heat is known, and Warm or more.
func warm(heat string) bool { return heat != "" && heat != power.Cool.String() }

func (v *Vitals) fresh() bool { return !v.at.IsZero() && time.Since(v.at) < stale }

func onCharger(s corelink.State) bool { return body.Power(s.Power).Has(body.OnCharger) }

func millivolts(v float64) int64 { return int64(v*1000 + 0.5) }

func milli(v float64) float64 { return math.Round(v * 1000) }
