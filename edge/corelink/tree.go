package corelink

// Bounds of the lists about a tree; no body comes near them.
const (
	maxNodes   = 512
	maxSlots   = 128 // of one node
	maxValues  = 2048
	maxJoints  = 16
	maxAliases = 64  // of one node
	maxNames   = 256 // devices of one claim, owners of actuators
)

// GetTree asks for the Tree.
type GetTree struct {
	Request uint32 `json:"request"` // of the peer's choice; comes back in the answer
}

// Tree is the body's structure tree: what never changes while robotd runs.
type Tree struct {
	Request uint32 `json:"request"`
	Body    string `json:"body"`
	Nodes   []Node `json:"nodes,omitempty"` // parents first
}

// Node is a component, localizer or device (edge/robot.Node).
type Node struct {
	Full       string   `json:"full"`
	Compact    string   `json:"compact"`   // "" for what is no device
	Kind       string   `json:"kind"`      // component, localizer, device
	Interfaces string   `json:"interface"` // separated by ", "
	Actuator   bool     `json:"actuator"`  // has one owner at a time
	Slots      []Slot   `json:"slots,omitempty"`
	Aliases    []string `json:"aliases,omitempty"` // further short names
}

// Slot is an attribute that the device has, and whose values Values carries.
type Slot struct {
	ID     uint16  `json:"id"`
	Name   string  `json:"name"`
	Type   string  `json:"type"` // float, int, bool, string, binary, list
	Unit   string  `json:"unit"`
	Bounds uint8   `json:"bounds"` // 1: Min says something; 2: Max does
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Bits of Slot.Bounds.
const (
	HasMin uint8 = 1
	HasMax uint8 = 2
)

// GetValues asks for the Values of the moment.
type GetValues struct {
	Request uint32 `json:"request"`
}

// Values are all slots that somebody has measured or set, all of one moment.
type Values struct {
	Request uint32  `json:"request"`
	AtUS    int64   `json:"at_us"` // the moment, CLOCK_MONOTONIC
	Values  []Value `json:"values,omitempty"`
}

// Value is one slot's. One that nobody knows is left out.
type Value struct {
	Slot   uint16  `json:"slot"`
	AtUS   int64   `json:"at_us"` // when it was measured, 0: it never changes
	Form   uint8   `json:"form"`
	Number float64 `json:"number"`
	Text   string  `json:"text"` // of a string
}

// Forms of a Value: the wire has finite numbers alone.
const (
	Finite           uint8 = 0
	Infinite         uint8 = 1 // nothing in range
	NegativeInfinite uint8 = 2
	Words            uint8 = 3 // Text
)

// Introduce tells robotd who the robot is, for the slots of the tree's root: robotd does not read who it is.
type Introduce struct {
	Name   string `json:"name"`
	Serial string `json:"serial"`
	IP     string `json:"ip"`
}

func (*Tree) Type() Type      { return TypeTree }
func (*Values) Type() Type    { return TypeValues }
func (*GetTree) Type() Type   { return TypeGetTree }
func (*GetValues) Type() Type { return TypeGetValues }
func (*Introduce) Type() Type { return TypeIntroduce }

func (m *GetTree) wire(c *coder)   { c.u32(&m.Request) }
func (m *GetValues) wire(c *coder) { c.u32(&m.Request) }

func (m *Tree) wire(c *coder) {
	c.u32(&m.Request)
	c.string(&m.Body)
	list(c, &m.Nodes, maxNodes, func(c *coder, n *Node) {
		c.string(&n.Full)
		c.string(&n.Compact)
		c.string(&n.Kind)
		c.string(&n.Interfaces)
		c.bool(&n.Actuator)
		list(c, &n.Slots, maxSlots, func(c *coder, s *Slot) {
			c.u16(&s.ID)
			c.string(&s.Name)
			c.string(&s.Type)
			c.string(&s.Unit)
			c.u8(&s.Bounds)
			c.f64(&s.Min)
			c.f64(&s.Max)
		})
		c.strings(&n.Aliases, maxAliases)
	})
}

func (m *Values) wire(c *coder) {
	c.u32(&m.Request)
	c.i64(&m.AtUS)
	list(c, &m.Values, maxValues, func(c *coder, v *Value) {
		c.u16(&v.Slot)
		c.i64(&v.AtUS)
		c.u8(&v.Form)
		c.f64(&v.Number)
		c.string(&v.Text)
	})
}

func (m *Introduce) wire(c *coder) {
	c.string(&m.Name)
	c.string(&m.Serial)
	c.string(&m.IP)
}
