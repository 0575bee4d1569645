package corelink

// Inertial is what the robot knows by its inertial sensors (edge/sense.Motion, edge/helm.Felt): when something of it changes, and each second.
type Inertial struct {
	AtUS int64 `json:"at_us"` // of the sample; 0: there are no sensors, or nobody hears them

	OffTreads  string  `json:"off_treads"` // VEC-IMU-06; Unsettled: not known
	Falling    bool    `json:"falling"`
	PickedUp   bool    `json:"picked_up"`
	Held       bool    `json:"held"`
	HeldInPalm bool    `json:"held_in_palm"`
	Shaken     bool    `json:"shaken"`
	InMotion   bool    `json:"in_motion"`
	Pitch      float64 `json:"pitch"` // rad, nose down is positive
	Roll       float64 `json:"roll"`  // rad, left side up is positive
	Gyro       string  `json:"gyro"`  // pending, calibrated, failed (VEC-IMU-16)

	// How often something happened since this robotd began: what is shorter than the time between two messages counts too.
	Falls       uint32 `json:"falls"`
	Impacts     uint32 `json:"impacts"` // falls that ended hard: fall_impact_count (VEC-VIZ-22)
	Delocalized uint32 `json:"delocalized"`
	LongInAir   uint32 `json:"long_in_air"`
	Shakes      uint32 `json:"shakes"`
	Pokes       uint32 `json:"pokes"`
	FistBumps   uint32 `json:"fist_bumps"`
	GyroReady   uint32 `json:"gyro_ready"`
	Unexpected  uint32 `json:"unexpected"` // movements that nobody ordered, or that did not come (VEC-IMU-15); the last one:
	Movement    string `json:"movement"`
	Side        string `json:"side"`
}

func (*Inertial) Type() Type { return TypeInertial }

func (m *Inertial) wire(c *coder) {
	c.i64(&m.AtUS)
	c.string(&m.OffTreads)
	for _, b := range [...]*bool{&m.Falling, &m.PickedUp, &m.Held, &m.HeldInPalm, &m.Shaken, &m.InMotion} {
		c.bool(b)
	}
	c.each(&m.Pitch, &m.Roll)
	c.string(&m.Gyro)
	for _, n := range [...]*uint32{
		&m.Falls, &m.Impacts, &m.Delocalized, &m.LongInAir, &m.Shakes, &m.Pokes, &m.FistBumps, &m.GyroReady, &m.Unexpected,
	} {
		c.u32(n)
	}
	c.string(&m.Movement)
	c.string(&m.Side)
}
