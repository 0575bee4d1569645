package corelink

import "kennel/infra/api/live"

// Bounds of the lists about a tree; no body comes near them.
const (
	maxNodes   = 512
	maxSlots   = 128 // of one node
	maxValues  = 2048
	maxParts   = 32
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
	live.Tree
}

// GetValues asks for the Values of the moment.
type GetValues struct {
	Request uint32 `json:"request"`
}

// Values are all slots that have been measured or set, all of one moment. A slot without a value is left out.
type Values struct {
	Request uint32       `json:"request"`
	AtUS    int64        `json:"at_us"` // the moment, CLOCK_MONOTONIC
	Values  []live.Value `json:"values,omitempty"`
}

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
	list(c, &m.Nodes, maxNodes, func(c *coder, n *live.Node) {
		c.string(&n.Full)
		c.string(&n.Compact)
		c.string(&n.Kind)
		c.string(&n.Interface)
		c.bool(&n.Actuator)
		list(c, &n.Slots, maxSlots, func(c *coder, s *live.Slot) {
			c.int(&s.ID, 1<<16)
			c.string(&s.Name)
			c.string(&s.Type)
			c.string(&s.Unit)
			optional(c, &s.Min, (*coder).f64)
			optional(c, &s.Max, (*coder).f64)
		})
		c.strings(&n.Aliases, maxAliases)
		optional(c, &n.Bearing, (*coder).f64)
	})
}

func (m *Values) wire(c *coder) {
	c.u32(&m.Request)
	c.i64(&m.AtUS)
	list(c, &m.Values, maxValues, func(c *coder, v *live.Value) {
		c.int(&v.Slot, 1<<16)
		c.i64(&v.AgeMS)
		infinite := v.Infinite + 1
		c.int(&infinite, 1<<8)
		if c.dec {
			v.Infinite = infinite - 1
		}
		optional(c, &v.Number, (*coder).f64)
		optional(c, &v.Text, (*coder).string)
	})
}

func (m *Introduce) wire(c *coder) {
	c.string(&m.Name)
	c.string(&m.Serial)
	c.string(&m.IP)
}
