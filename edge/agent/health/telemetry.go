package health

import (
	"context"
	"crypto/rand"
	"os"
	"time"

	"kennel/edge/env/hoststats"
	"kennel/edge/power"
	"kennel/infra/api/events"
)

// seldom is how many reports there are for each one of Wi-Fi, services and temperatures, which change slowly or take longer to read.
const seldom = 10

// telemetry reports battery, loop and computer at intervals, and counts the time alive (Alive.seconds).
func (h *Health) telemetry(ctx context.Context) error {
	pc := reporter{emit: h.Emit, source: hoststats.Robot(h.Root, h.Dir), core: h.keeper.pid, clock: h.cfg.Clock}
	if _, err := h.Hardware.Serial(h.Root); err != nil {
		pc.emr = err.Error()
	}
	report, alive := time.NewTicker(h.cfg.Telemetry), time.NewTicker(time.Minute)
	defer report.Stop()
	defer alive.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-report.C:
			h.vitals.Periodic()
			pc.report(time.Now())
		case <-alive.C:
			h.cfg.Stats(map[string]float64{"Alive.seconds": 60})
		}
	}
}

// reporter reports how the robot's computer is (VEC-DAS-13, VEC-DAS-14). One goroutine uses it.
type reporter struct {
	emit   func(events.Event)
	source hoststats.Source
	core   func() int                  // the process number of robotd; 0: not known
	clock  func() (agrees, known bool) // with the cloud's
	emr    string                      // why the medical record is not valid; "": it is

	reports int
	limit   int64 // of the processor's clock at the start, in kHz
	heat    power.Stats
	meter   hoststats.Meter
	wifi    hoststats.Wifi // of the report before
	session string         // of the connection to the network; "": none
	synced  bool           // the clock was right
}

func (h *reporter) say(e events.Event) {
	e.Source = "agentd"
	h.emit(e)
}

func (h *reporter) report(now time.Time) {
	s := h.source.Read()
	h.say(events.Event{Name: "robot.memory_info", I1: events.Num(s.MemTotalKiB), I2: events.Num(s.MemAvailableKiB), I3: events.Num(s.SelfKiB),
		I4: events.Num(s.UptimeMS)})
	h.reportCPU(s)
	h.say(events.Event{Name: "robot.disk_info", S1: h.emr, I1: events.Num(s.DiskTotalMiB), I2: events.Num(s.DiskFreeMiB), I3: events.Num(s.FlashMiB),
		I4: events.Flag(h.emr == "")})
	h.reportWifi(s.Wifi)
	if agrees, known := h.clock(); known && agrees != h.synced {
		if h.synced = agrees; agrees {
			h.say(events.Event{Name: "ntp.timesync", I1: events.Num(s.UptimeMS)})
		}
	}
	if h.reports%seldom == 0 {
		pids := map[string]int{"agentd": os.Getpid()}
		if pid := h.core(); pid != 0 {
			pids[robotd] = pid
		}
		for _, l := range h.meter.Measure(h.source.Processes(pids), now) {
			if l.Permille >= 0 {
				h.say(events.Event{Name: "robot.service_info", S1: l.Name, I1: events.Num(l.Permille), I2: events.Num(l.KiB), I3: events.Num(l.Threads)})
			}
		}
	}
	h.reports++
}

// reportCPU says how fast and how hot the processor is. It is throttled while its limit is below the one at the start (VEC-DGN-05).
func (h *reporter) reportCPU(s hoststats.Sample) {
	c := s.CPU
	if h.limit == 0 {
		h.limit = c.Limit
	}
	e := events.Event{Name: "robot.cpu_info", S1: c.Governor, S2: c.SetSpeed, I1: events.Num(s.LoadMilli)}
	if c.Limit < h.limit {
		e.S3, e.Level = "throttled", events.Warning
	}
	for to, n := range map[*events.Int]int64{&e.I2: c.KHz, &e.I3: c.Limit, &e.I4: c.MilliC} {
		if n != 0 {
			*to = events.Num(n)
		}
	}
	h.say(e)
	if c.MilliC != 0 {
		h.heat.Add(float64(c.MilliC))
	}
	if h.heat.N > 0 && h.reports%seldom == 0 {
		h.say(events.Event{Name: "cpu.temperature_stats", I1: events.Num(int64(h.heat.Min)), I2: events.Num(int64(h.heat.Max)),
			I3: events.Num(int64(h.heat.Mean())), I4: events.Num(int64(h.heat.N))})
		h.heat = power.Stats{}
	}
}

// reportWifi says seldom how the network is, and always that it changed: a connection is a session of events (VEC-DAS-18).
func (h *reporter) reportWifi(w hoststats.Wifi) {
	before := h.wifi
	h.wifi = w
	if !w.Present && !before.Present {
		return
	}
	if first := h.reports == 0; first {
		h.say(events.Event{Name: "wifi.initial_state", S1: w.SSID, I1: events.Flag(w.Up)})
	} else if w.Up == before.Up && w.IP == before.IP && w.SSID == before.SSID && h.reports%seldom != 0 {
		return
	}
	if gone := h.session != "" && (!w.Up || w.SSID != before.SSID); gone {
		h.say(events.Event{Name: "wifi.disconnection", S1: before.SSID})
		h.say(events.Event{Name: "wifi_conn_id.stop", S1: h.session})
		h.session = ""
	}
	if w.Up && h.session == "" {
		h.session = rand.Text()
		h.say(events.Event{Name: "wifi_conn_id.start", S1: h.session})
		h.say(events.Event{Name: "wifi.connection", S1: w.SSID, S2: w.IP})
	}
	h.say(events.Event{Name: "robot.wifi_info", S1: w.MAC, S2: w.SSID, S3: w.IP, S4: w.Valid(), I1: events.Num(w.RxBytes), I2: events.Num(w.TxBytes),
		I3: events.Num(w.RxErrors), I4: events.Num(w.TxErrors)})
}
