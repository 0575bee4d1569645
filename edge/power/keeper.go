package power

import "time"

// KeeperInput is all that is measured and known of a robot's power in one step.
type KeeperInput struct {
	Volts                   float64
	OnCharger, Charging     bool
	Disconnected            bool
	BodyCelsius, CPUCelsius float64 // no number: not measured
	BelowCritical, Imminent bool    // as the body says
	Button                  bool    // the long press ended
	GyroFailed              bool
	Calm, Asleep            bool // what behaviours ask for (Saver, Sleeper)
}

// Keeper puts together what this package knows of one robot: one Step each time its battery is measured. The zero value is a robot that was
// never measured. A Keeper is a plain value.
type Keeper struct {
	Battery   Battery
	Gauge     Gauge
	Body, CPU Guard
	Charge    Charge
	Shedding  Shedding
	Shutdown  Shutdown
	Debt      Debt
}

// Step takes in a measurement, dt after the one before.
func (k Keeper) Step(in KeeperInput, dt time.Duration) Keeper {
	k.Battery = k.Battery.Step(Input{Volts: in.Volts, OnCharger: in.OnCharger, Disconnected: in.Disconnected}, dt)
	k.Body, k.CPU = k.Body.Step(&BodyLadder, in.BodyCelsius, dt), k.CPU.Step(&CPULadder, in.CPUCelsius, dt)
	k.Charge = k.Charge.Step(ChargeInput{OnCharger: in.OnCharger, Charging: in.Charging, Level: k.Battery.Level, Body: k.Body.Heat}, dt)
	k.Gauge = k.Gauge.Step(k.Battery, k.Charge.State == Active, dt)
	k.Shedding = k.Shedding.Step(k.Battery, in.OnCharger, dt)
	k.Shutdown = k.Shutdown.Step(ShutdownInput{
		Body: k.Body.Heat, CPU: k.CPU.Heat, Shed: k.Shedding.Now, OnCharger: in.OnCharger, BelowCritical: in.BelowCritical, Imminent: in.Imminent,
		Button: in.Button, GyroFailed: in.GyroFailed,
	}, dt)
	k.Debt = k.Debt.Step(DefaultDebtRates, in.Asleep, dt)
	return k
}

// SeekCharger reports whether the robot shall look for its charger before anything else (part of VEC-PWR-06).
func (k *Keeper) SeekCharger() bool { return k.Battery.Level == Low && !k.Charge.State.OnCharger() }

// Hottest is the higher of the two heats.
func (k *Keeper) Hottest() Heat { return max(k.Body.Heat, k.CPU.Heat) }

// MayCharge reports whether charging is allowed (VEC-PWR-53).
func (k *Keeper) MayCharge() bool { return MayCharge(k.Body.Heat) }
