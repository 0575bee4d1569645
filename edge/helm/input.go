package helm

import (
	"encoding/binary"
	"math"
	"time"

	"kennel/edge/body"
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/robot/claim"
)

// What comes to a step from other programs is orders. They pass through the tape as bytes, so that a recording holds what the helm was told:
//
//	u8 kind, u32 owner, u32 request, u8 priority, u8 sleep, u8 why, u8 on, i64 TTL, i64 for, u64 lease, 4 f64 A, B, speed, accel, 4 u64 set,
//	3 bytes a light
//
// maxInput is less than a tape takes of a step; the orders that do not fit wait for the next.
const (
	orderSize = 1 + 4 + 4 + 4 + 8 + 8 + 8 + 4*8 + claim.MaxActuators/8 + 3*body.MaxLights
	maxInput  = 4000 / orderSize * orderSize
)

// listen obeys the orders that wait, and whatever the tape says that they were.
func (h *Helm) listen(now time.Duration, anew bool) {
	b := h.input[:0]
	for o := h.box.Peek(); o != nil && len(b)+orderSize <= maxInput; o = h.box.Peek() {
		b = o.append(b)
		h.box.Drop()
	}
	var o Order
	for b = h.tape.Input(b); len(b) >= orderSize; b = b[orderSize:] {
		o.parse(b)
		if anew && o.Kind.moves() {
			// It waited for a body through who knows how long: nobody expects it now.
			h.results.Put(Result{Owner: o.Owner, Request: o.Request, Code: Refused, Actuator: -1, Stop: motion.Link})
		} else {
			h.obey(now, &o)
		}
	}
}

func (o *Order) append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(append(b, byte(o.Kind)), uint32(o.Owner))
	b = append(le.AppendUint32(b, o.Request), byte(o.Priority), byte(o.Sleep), o.Why, byte(number(o.On)))
	b = le.AppendUint64(le.AppendUint64(le.AppendUint64(b, uint64(o.TTL)), uint64(o.For)), o.Lease)
	for _, v := range [...]float64{o.A, o.B, o.Speed, o.Accel} {
		b = le.AppendUint64(b, math.Float64bits(v))
	}
	for _, w := range o.Set {
		b = le.AppendUint64(b, w)
	}
	for _, l := range o.Lights {
		b = append(b, l.R, l.G, l.B)
	}
	return b
}

// parse reads what append wrote; b has at least orderSize bytes.
func (o *Order) parse(b []byte) {
	le := binary.LittleEndian
	o.Kind, o.Owner, o.Request = Kind(b[0]), claim.Owner(le.Uint32(b[1:])), le.Uint32(b[5:])
	o.Priority, o.Sleep, o.Why, o.On = claim.Priority(b[9]), power.Sleep(b[10]), b[11], b[12] != 0
	o.TTL, o.For, o.Lease = time.Duration(le.Uint64(b[13:])), time.Duration(le.Uint64(b[21:])), le.Uint64(b[29:])
	b = b[37:]
	for _, v := range [...]*float64{&o.A, &o.B, &o.Speed, &o.Accel} {
		*v, b = math.Float64frombits(le.Uint64(b)), b[8:]
	}
	for i := range o.Set {
		o.Set[i], b = le.Uint64(b), b[8:]
	}
	for i := range o.Lights {
		o.Lights[i], b = body.Light{R: b[0], G: b[1], B: b[2]}, b[3:]
	}
}
