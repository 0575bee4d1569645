package corelink

// Do reads, writes or calls what the tree names, in one line: headPitch, headPitch = 0.3, robot.go(0.2) (edge/robot.ParseLine, GOSTAI-OPEN-01). What
// moves needs a claim, as in Head or Straight; lights that nobody holds and robot.stop() need none.
type Do struct {
	Request uint32 `json:"request"` // of the peer's choice; comes back in the answer
	Line    string `json:"line"`
	ForMS   uint32 `json:"for_ms"` // treads end then at the latest; 0: as late as robotd allows
}

// Did answers Do, once. A method that takes its time is over when Ended says so, and so is what a joint was told (GOSTAI-OPEN-11).
type Did struct {
	Request  uint32 `json:"request"`
	Code     string `json:"code"`     // as of a Reply, or unavailable: nobody knows the value, or there is no body (GOSTAI-OPEN-13)
	Detail   string `json:"detail"`   // for people, of what is not ok, or not as asked: a motion that takes longer than its time: (GOSTAI-OPEN-03)
	Underway bool   `json:"underway"` // a motion has begun; Ended says how it ends
	Value    string `json:"value"`    // what was read, or taken: the closest that the device can do (GOSTAI-IF-14.8); as in a line
}

func (*Do) Type() Type  { return TypeDo }
func (*Did) Type() Type { return TypeDid }

func (m *Do) wire(c *coder) {
	c.u32(&m.Request)
	c.string(&m.Line)
	c.u32(&m.ForMS)
}

func (m *Did) wire(c *coder) {
	c.u32(&m.Request)
	c.string(&m.Code)
	c.string(&m.Detail)
	c.bool(&m.Underway)
	c.string(&m.Value)
}
