package corelink

// Senses is what button, touch and cliff sensors and the range finder say (edge/sense.State, edge/helm.Felt): when something of it changes, and each
// second.
type Senses struct {
	AtUS int64 `json:"at_us"`

	Touched bool  `json:"touched"` // VEC-IO-12
	Petting bool  `json:"petting"` // VEC-IO-14
	Cliffs  uint8 `json:"cliffs"`  // sensors that see no floor, as bits in the order of BodyInfo.Cliffs (VEC-IO-20)

	// What is ahead (VEC-IO-24, VEC-IO-25).
	Metres       float64 `json:"metres"`
	Quality      float64 `json:"quality"` // 0 to 1
	Found        bool    `json:"found"`
	Unobstructed bool    `json:"unobstructed"` // neither: not known
	LiftInView   bool    `json:"lift_in_view"`

	// How often something happened since this robotd began: what is shorter than the time between two messages counts too.
	Touches          uint32 `json:"touches"`
	Pettings         uint32 `json:"pettings"`
	PettedMS         uint64 `json:"petted_ms"`      // all of them together
	ChargerChecks    uint32 `json:"charger_checks"` // the touch sensor's baseline is learnt anew, and what came of it (VEC-IO-13)
	BaselinesLearnt  uint32 `json:"baselines_learnt"`
	BaselinesChanged uint32 `json:"baselines_changed"`
	BaselinesKept    uint32 `json:"baselines_kept"`
	BaselinesHigh    uint32 `json:"baselines_high"` // readings were far below it
	CliffsSeen       uint32 `json:"cliffs_seen"`
	Lines            uint32 `json:"lines"`
	ProxInvalid      uint32 `json:"prox_invalid"` // VEC-BODY-26
	ProxSevere       uint32 `json:"prox_severe"`
	Singles          uint32 `json:"singles"` // gestures of the button (VEC-IO-02)
	Doubles          uint32 `json:"doubles"`
	Mutes            uint32 `json:"mutes"`
	Recoveries       uint32 `json:"recoveries"`
}

func (*Senses) Type() Type { return TypeSenses }

func (m *Senses) wire(c *coder) {
	c.i64(&m.AtUS)
	c.bool(&m.Touched)
	c.bool(&m.Petting)
	c.u8(&m.Cliffs)
	c.each(&m.Metres, &m.Quality)
	for _, b := range [...]*bool{&m.Found, &m.Unobstructed, &m.LiftInView} {
		c.bool(b)
	}
	c.u32(&m.Touches)
	c.u32(&m.Pettings)
	c.u64(&m.PettedMS)
	for _, n := range [...]*uint32{
		&m.ChargerChecks, &m.BaselinesLearnt, &m.BaselinesChanged, &m.BaselinesKept, &m.BaselinesHigh, &m.CliffsSeen, &m.Lines, &m.ProxInvalid, &m.ProxSevere,
		&m.Singles, &m.Doubles, &m.Mutes, &m.Recoveries,
	} {
		c.u32(n)
	}
}
