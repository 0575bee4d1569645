package corelink

// Motion is how the body moves (edge/helm.Report). SI, X forward, Y left, angles counter-clockwise.
type Motion struct {
	AtUS       int64   `json:"at_us"`
	Stop       uint16  `json:"stop"` // bits of edge/motion.Reason that hold
	Moving     bool    `json:"moving"`
	X          float64 `json:"x"`
	Y          float64 `json:"y"`
	Theta      float64 `json:"theta"`
	Speed      float64 `json:"speed"`
	Turning    float64 `json:"turning"`
	OdoLeft    float64 `json:"odo_left"` // odometers, which only grow (VEC-MCT-16)
	OdoRight   float64 `json:"odo_right"`
	OdoBody    float64 `json:"odo_body"`
	Unreliable bool    `json:"unreliable"` // it was pushed: the pose is wrong
	OffTreads  string  `json:"off_treads"`
	Treads     string  `json:"treads"` // how the newest command of the treads went

	Joints []JointState `json:"joints,omitempty"`
	Owners []Ownership  `json:"owners,omitempty"` // of the actuators that have one
}

// JointState is one joint.
type JointState struct {
	Device     string `json:"device"` // compact name
	State      string `json:"state"`
	Outcome    string `json:"outcome"`
	Calibrated bool   `json:"calibrated"`
}

// Ownership says who may move a device.
type Ownership struct {
	Device   string `json:"device"` // compact name
	Program  string `json:"program"`
	Priority uint8  `json:"priority"`
}

// Claim asks for devices, by any name of the tree, for TTLMS (0: until Release, or until the peer leaves). All or nothing.
type Claim struct {
	Request  uint32   `json:"request"`
	Devices  []string `json:"devices,omitempty"`
	Priority uint8    `json:"priority"` // edge/robot/claim.Priority, at most Person
	TTLMS    uint32   `json:"ttl_ms"`
}

// Renew lets a claim last for TTLMS more.
type Renew struct {
	Request uint32 `json:"request"`
	Lease   uint64 `json:"lease"` // of a Reply
	TTLMS   uint32 `json:"ttl_ms"`
}

// Release ends a claim.
type Release struct {
	Request uint32 `json:"request"`
	Lease   uint64 `json:"lease"`
}

// Wheels runs the treads at these speeds, m/s, for ForMS at most. It needs a claim of the wheels, as do Straight and Turn.
type Wheels struct {
	Request uint32  `json:"request"`
	Left    float64 `json:"left"`
	Right   float64 `json:"right"`
	Accel   float64 `json:"accel"` // 0: as fast as allowed
	ForMS   uint32  `json:"for_ms"`
}

// Straight drives forward, backward if Metres is negative. A speed or acceleration of 0 is the body's recommended one.
type Straight struct {
	Request uint32  `json:"request"`
	Metres  float64 `json:"metres"`
	Speed   float64 `json:"speed"`
	Accel   float64 `json:"accel"`
	ForMS   uint32  `json:"for_ms"`
}

// Turn turns on the spot, to the left if Radians is positive.
type Turn struct {
	Request uint32  `json:"request"`
	Radians float64 `json:"radians"`
	Speed   float64 `json:"speed"`
	Accel   float64 `json:"accel"`
	ForMS   uint32  `json:"for_ms"`
}

// Head brings the head to an angle as the tree counts: nose down is positive. It needs a claim of the head, and holds as long as that.
type Head struct {
	Request uint32  `json:"request"`
	Radians float64 `json:"radians"`
	Speed   float64 `json:"speed"`
	Accel   float64 `json:"accel"`
}

// Lift brings the lift to a height above the ground. It needs a claim of the lift.
type Lift struct {
	Request uint32  `json:"request"`
	Metres  float64 `json:"metres"`
	Speed   float64 `json:"speed"`
	Accel   float64 `json:"accel"`
}

// Stop brings everything to rest, whoever moved it, and needs no claim. (Halt takes the power away, and keeps it away.)
type Stop struct {
	Request uint32 `json:"request"`
}

// Reply answers each of the messages above, once.
type Reply struct {
	Request  uint32 `json:"request"`
	Code     string `json:"code"`     // ok, invalid, busy, not_held, stopped, full, gone
	Detail   string `json:"detail"`   // for people, of what is not ok
	Underway bool   `json:"underway"` // a motion has begun; Ended says how it ends
	Lease    uint64 `json:"lease"`    // of a Claim
}

// Ended says how the motion of a request ended: done, cancelled, expired, released, blocked, missed, astray, stopped.
type Ended struct {
	Request uint32  `json:"request"`
	Outcome string  `json:"outcome"`
	X       float64 `json:"x"` // where the body is
	Y       float64 `json:"y"`
	Theta   float64 `json:"theta"`
}

func (*Motion) Type() Type   { return TypeMotion }
func (*Reply) Type() Type    { return TypeReply }
func (*Ended) Type() Type    { return TypeEnded }
func (*Claim) Type() Type    { return TypeClaim }
func (*Renew) Type() Type    { return TypeRenew }
func (*Release) Type() Type  { return TypeRelease }
func (*Wheels) Type() Type   { return TypeWheels }
func (*Straight) Type() Type { return TypeStraight }
func (*Turn) Type() Type     { return TypeTurn }
func (*Head) Type() Type     { return TypeHead }
func (*Lift) Type() Type     { return TypeLift }
func (*Stop) Type() Type     { return TypeStop }

func (c *coder) each(fields ...*float64) {
	for _, f := range fields {
		c.f64(f)
	}
}

func (m *Motion) wire(c *coder) {
	c.i64(&m.AtUS)
	c.u16(&m.Stop)
	c.bool(&m.Moving)
	c.each(&m.X, &m.Y, &m.Theta, &m.Speed, &m.Turning, &m.OdoLeft, &m.OdoRight, &m.OdoBody)
	c.bool(&m.Unreliable)
	c.string(&m.OffTreads)
	c.string(&m.Treads)
	list(c, &m.Joints, maxJoints, func(c *coder, j *JointState) {
		c.string(&j.Device)
		c.string(&j.State)
		c.string(&j.Outcome)
		c.bool(&j.Calibrated)
	})
	list(c, &m.Owners, maxNames, func(c *coder, o *Ownership) {
		c.string(&o.Device)
		c.string(&o.Program)
		c.u8(&o.Priority)
	})
}

func (m *Claim) wire(c *coder) {
	c.u32(&m.Request)
	c.strings(&m.Devices, maxNames)
	c.u8(&m.Priority)
	c.u32(&m.TTLMS)
}

func (m *Renew) wire(c *coder) {
	c.u32(&m.Request)
	c.u64(&m.Lease)
	c.u32(&m.TTLMS)
}

func (m *Release) wire(c *coder) {
	c.u32(&m.Request)
	c.u64(&m.Lease)
}

func (m *Wheels) wire(c *coder) {
	c.u32(&m.Request)
	c.each(&m.Left, &m.Right, &m.Accel)
	c.u32(&m.ForMS)
}

func (m *Straight) wire(c *coder) {
	c.u32(&m.Request)
	c.each(&m.Metres, &m.Speed, &m.Accel)
	c.u32(&m.ForMS)
}

func (m *Turn) wire(c *coder) {
	c.u32(&m.Request)
	c.each(&m.Radians, &m.Speed, &m.Accel)
	c.u32(&m.ForMS)
}

func (m *Head) wire(c *coder) {
	c.u32(&m.Request)
	c.each(&m.Radians, &m.Speed, &m.Accel)
}

func (m *Lift) wire(c *coder) {
	c.u32(&m.Request)
	c.each(&m.Metres, &m.Speed, &m.Accel)
}

func (m *Stop) wire(c *coder) { c.u32(&m.Request) }

func (m *Reply) wire(c *coder) {
	c.u32(&m.Request)
	c.string(&m.Code)
	c.string(&m.Detail)
	c.bool(&m.Underway)
	c.u64(&m.Lease)
}

func (m *Ended) wire(c *coder) {
	c.u32(&m.Request)
	c.string(&m.Outcome)
	c.each(&m.X, &m.Y, &m.Theta)
}
