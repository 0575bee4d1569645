package fleet

import (
	"context"
	"math"
	"time"

	"kennel/edge/body"
	"kennel/edge/core/corelink"
	"kennel/edge/power"
	"kennel/infra/thing"
)

// core replaces robotd: a core that is well and a battery that slowly empties and fills (VEC-PWR-01, VEC-PWR-02). It implements the
// agent's view of a core.
type core struct {
	hello   corelink.Hello
	every   time.Duration
	phase   float64 // where in its day the battery is, 0 to 1
	started time.Time
}

// cycle is how long the battery takes to be where it was.
const cycle = 90 * time.Minute

func newCore(seed uint64, id thing.ID, every time.Duration) *core {
	c := &core{every: every, phase: numbers(seed, id, "battery").Float64(), started: time.Now()}
	c.hello = corelink.Hello{Program: "robotsim", Body: corelink.BodyInfo{Species: string(id.Species()), Model: "light", Firmware: "none"}}
	return c
}

// Run tells how the body is, first at once, until ctx ends.
func (c *core) Run(ctx context.Context, handle func(corelink.Message)) error {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	handle(&c.hello)
	for n := uint32(1); ; n++ {
		up := time.Since(c.started)
		handle(c.state(up, n))
		handle(&corelink.LoopStats{UptimeUS: up.Microseconds(), Steps: uint64(up / (5 * time.Millisecond))})
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// state is the body after so much time. The battery goes from 4.15 V to 3.65 V and, on the charger, back.
func (c *core) state(up time.Duration, n uint32) *corelink.State {
	_, part := math.Modf(c.phase + float64(up)/float64(cycle))
	charging := part > 0.75
	volts := 4.15 - 0.5*part/0.75
	if charging {
		volts = 3.65 + 0.5*(part-0.75)/0.25
	}
	s := &corelink.State{Link: true, Seq: n, BatteryVolts: volts, BatteryLevel: uint8(power.Nominal), Temperature: 31}
	switch {
	case volts >= power.FullVolts:
		s.BatteryLevel = uint8(power.Full)
	case volts < power.LowVolts:
		s.BatteryLevel = uint8(power.Low)
	}
	if charging {
		s.ChargerVolts, s.Power = 5, uint16(body.OnCharger|body.Charging)
	}
	return s
}

// Hello says what body this is.
func (c *core) Hello() (corelink.Hello, bool) { return c.hello, true }

// Send takes an order and has nothing to do it with.
func (c *core) Send(corelink.Message) error { return nil }
