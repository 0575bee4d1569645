package corelink

// Power is the state of the robot's power (edge/power.Keeper), sent each second.
type Power struct {
	AtUS   int64  `json:"at_us"`
	Status uint32 `json:"status"` // bits of RobotStatus: what the body says (VEC-BODY-23), and what the helm knows (edge/helm.RobotStatus)

	Calm           bool    `json:"calm"`
	Sleep          string  `json:"sleep"`      // VEC-PWR-30
	LastSleep      string  `json:"last_sleep"` // why it fell asleep; "": it did not (VEC-PWR-31)
	LastWake       string  `json:"last_wake"`
	SleepDebtHours float64 `json:"sleep_debt_hours"` // VEC-PWR-32

	Charging      string `json:"charging"`              // edge/power.Charging (VEC-PWR-51)
	ChargedSec    uint32 `json:"charged_sec"`           // charging since it came on the charger
	SuggestedSec  uint32 `json:"suggested_charger_sec"` // until it is full; 0: it is full, or not known (VEC-PWR-04)
	PlayLeftSec   uint32 `json:"play_left_sec"`
	Heat          string `json:"heat"`     // of the body
	CPUHeat       string `json:"cpu_heat"` // of the processor (VEC-PWR-10)
	Shed          string `json:"shed"`     // VEC-PWR-07
	SeekCharger   bool   `json:"seek_charger"`
	ChargeAllowed bool   `json:"charge_allowed"`

	CameraHz float64 `json:"camera_hz"` // what is left of everything: edge/power.Allowance
	Display  bool    `json:"display"`
	ProxMS   uint32  `json:"prox_ms"` // 0: the range finder is off
	CPUMHz   uint32  `json:"cpu_mhz"`
	Cloud    bool    `json:"cloud"`

	Off     string `json:"off"`      // how it goes off: stay_on, clean, cut
	Cause   string `json:"cause"`    // and why; SHUTDOWN_UNKNOWN while it stays on (VEC-PWR-40)
	LastOff string `json:"last_off"` // how the run before this one ended (edge/power/lastoff); unmeant: SHUTDOWN_UNKNOWN (VEC-PWR-42)
}

// Calm asks for calm power mode, or withdraws that; the mode lasts as long as any peer asks, and a peer's request ends with its connection
// (VEC-PWR-24).
type Calm struct {
	Request uint32 `json:"request"`
	On      bool   `json:"on"`
}

// Sleep brings the robot to another state of sleep, if that may follow (VEC-PWR-31).
type Sleep struct {
	Request uint32 `json:"request"`
	State   uint8  `json:"state"` // edge/power.Sleep
	Why     uint8  `json:"why"`   // edge/power.SleepReason to fall asleep, WakeReason to wake up, else 0
}
