package pleodebug

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kennel/edge/body/pleo/lifeos"
)

// The limits of the curves.
const (
	MaxCurve  = 600 // points, a minute
	maxCurves = 64
)

// Curve is how a drive or a property was, a point each 100 ms, the newest last.
type Curve struct {
	Name   string  `json:"name"`
	Drive  bool    `json:"drive"`
	Active bool    `json:"active,omitempty"` // it is the active drive
	Low    int32   `json:"low"`              // from which to High a drive is left alone
	High   int32   `json:"high"`
	Values []int32 `json:"values"`
}

// Now returns the newest value.
func (c *Curve) Now() int32 { return c.Values[len(c.Values)-1] }

// bars are an eighth to the whole of a letter's height.
var bars = []rune("▁▂▃▄▅▆▇█")

// Text draws the newest points of the curve with so many letters.
func (c *Curve) Text(letters int) string {
	list := c.Values[max(0, len(c.Values)-letters):]
	least, most := slices.Min(list), slices.Max(list)
	var b strings.Builder
	for _, v := range list {
		i := len(bars) / 2
		if most > least {
			i = int(int64(v-least) * int64(len(bars)-1) / int64(most-least))
		}
		b.WriteRune(bars[i])
	}
	return b.String()
}

// curves records drives and properties.
type curves struct {
	next time.Duration
	n    int // points of each
	list []*Curve
}

// of returns the curve of a name, which is 0 before it was first seen; nil if there are too many.
func (c *curves) of(name string, drive bool) *Curve {
	i := slices.IndexFunc(c.list, func(k *Curve) bool { return k.Name == name && k.Drive == drive })
	if i >= 0 {
		return c.list[i]
	}
	if len(c.list) >= maxCurves {
		return nil
	}
	k := &Curve{Name: name, Drive: drive, Values: make([]int32, c.n)}
	c.list = append(c.list, k)
	return k
}

// sample adds a point to each curve, once in a piece. A property is recorded from the moment at which it is not 0.
func (c *curves) sample(os *lifeos.System) {
	if os.Now() < c.next {
		return
	}
	c.next = os.Now() + piece
	values := map[*Curve]int32{}
	for _, k := range c.list {
		k.Active = false
	}
	for _, d := range os.Drives() {
		if k := c.of(d.Name, true); k != nil {
			k.Active, k.Low, k.High, values[k] = d.Active, d.Low, d.High, d.Value
		}
	}
	for _, p := range os.Properties() {
		name := p.Name
		if name == "" {
			name = fmt.Sprintf("property %d", p.ID)
		}
		known := slices.ContainsFunc(c.list, func(k *Curve) bool { return k.Name == name && !k.Drive })
		if !known && p.Value == fixed[p.ID] {
			continue
		}
		if k := c.of(name, false); k != nil {
			values[k] = p.Value
		}
	}
	for _, k := range c.list {
		k.Values = append(k.Values, values[k])
		k.Values = k.Values[max(0, len(k.Values)-MaxCurve):]
	}
	c.n = min(c.n+1, MaxCurve)
}

// fixed are the values other than 0 that properties have from power-on, which say nothing.
var fixed = map[lifeos.Property]int32{lifeos.PropPlatform: 4, lifeos.PropScriptStatus: -1, lifeos.PropCommandStatus: -1, lifeos.PropP2PTimeout: 10_000}

// Curves returns drives, in the order in which they were added, and then properties that were not 0.
func (s *Session) Curves() []*Curve {
	out := slices.Clone(s.curves.list)
	slices.SortStableFunc(out, func(a, b *Curve) int {
		switch {
		case a.Drive == b.Drive:
			return 0
		case a.Drive:
			return -1
		}
		return 1
	})
	return out
}
