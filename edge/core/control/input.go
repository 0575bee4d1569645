package control

import (
	"encoding/binary"
	"math"
	"time"

	"kennel/edge/power"
	"kennel/edge/robot/claim"
)

// The input of a step from other programs is orders. They pass through the tape as bytes, so that a recording contains them:
//
//	u8 kind, u32 owner, u32 request, u8 priority, u8 sleep, u8 why, u8 on, i64 TTL, i64 for, i64 within, u64 lease, f64 A, f64 speed, 4 u64 set,
//	u8 number of goals, each u16 slot and f64 value
//
// maxInput is less than a tape takes of a step; the orders that do not fit wait for the next.
const (
	orderHead = 1 + 4 + 4 + 4 + 4*8 + 2*8 + claim.MaxActuators/8 + 1
	goalSize  = 2 + 8
	maxInput  = 4000
)

func (o *Order) size() int { return orderHead + min(max(o.N, 0), MaxGoals)*goalSize }

func (o *Order) append(b []byte) []byte {
	le := binary.LittleEndian
	on := byte(0)
	if o.On {
		on = 1
	}
	b = le.AppendUint32(append(b, byte(o.Kind)), uint32(o.Owner))
	b = append(le.AppendUint32(b, o.Request), byte(o.Priority), byte(o.Sleep), o.Why, on)
	for _, v := range [...]uint64{
		uint64(o.TTL), uint64(o.For), uint64(o.Within), o.Lease, math.Float64bits(o.A), math.Float64bits(o.Speed),
	} {
		b = le.AppendUint64(b, v)
	}
	for _, w := range o.Set {
		b = le.AppendUint64(b, w)
	}
	n := min(max(o.N, 0), MaxGoals)
	b = append(b, byte(n))
	for _, g := range o.Goals[:n] {
		b = le.AppendUint64(le.AppendUint16(b, uint16(g.Slot)), math.Float64bits(g.Value))
	}
	return b
}

// parse reads the order at the start of b and returns its size; 0: there is none, or only a part of one.
func (o *Order) parse(b []byte) int {
	if len(b) < orderHead {
		return 0
	}
	le := binary.LittleEndian
	*o = Order{Kind: Kind(b[0]), Owner: claim.Owner(le.Uint32(b[1:])), Request: le.Uint32(b[5:])}
	o.Priority, o.Sleep, o.Why, o.On = claim.Priority(b[9]), power.Sleep(b[10]), b[11], b[12] != 0
	v := func(i int) uint64 { return le.Uint64(b[13+8*i:]) }
	o.TTL, o.For, o.Within, o.Lease = time.Duration(v(0)), time.Duration(v(1)), time.Duration(v(2)), v(3)
	o.A, o.Speed = math.Float64frombits(v(4)), math.Float64frombits(v(5))
	for i := range o.Set {
		o.Set[i] = v(6 + i)
	}
	o.N = int(b[orderHead-1])
	if o.N > MaxGoals || len(b) < o.size() {
		return 0
	}
	for i := range o.N {
		g := b[orderHead+goalSize*i:]
		o.Goals[i] = Goal{Slot: int(le.Uint16(g)), Value: math.Float64frombits(le.Uint64(g[2:]))}
	}
	return o.size()
}
