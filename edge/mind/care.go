package mind

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/face/screen"
)

// Our own defaults of customer care, where the source gives no times and no distances.
const (
	careWithin  = 20 * time.Second // after the double press, for the lift
	careLifts   = 0.02             // m, by which a hand moves the lift up and down
	careFor     = 3 * time.Minute  // without a press
	careLook    = 100 * time.Millisecond
	careRefresh = 250 * time.Millisecond
)

// The names of the body's report of its button, and of its gestures (part of VEC-IO-02).
const (
	buttonEvent = "robot.button"
	single      = "single"
	double      = "double"
)

// careSlots are the pages of customer care: what a row is called, and the slot that it shows, with what its unit is multiplied by. Slots that a body lacks
// are left out, and so are pages without a row (part of VEC-DGN-01).
var careSlots = []struct {
	title string
	rows  []careSlot // at most screen.CareRows
}{
	{"Robot", []careSlot{
		{"ESN", "robot.serial", 0, ""}, {"IP", "robot.IP", 0, ""}, {"Name", "robot.name", 0, ""}, {"Model", "robot.model", 0, ""},
		{"Battery", "robot.body.battery.voltage", 1, "V"}, {"Temperature", "robot.body.battery.temperature.temperature", 1, "°C"}}},
	{"Motors", []careSlot{
		{"Head", "robot.body.head.pitch.angle", -180 / math.Pi, "°"}, {"Lift", "robot.body.arm.z.position", 1000, "mm"},
		{"Left tread", "robot.body.wheel[left].speed", 1, "rad/s"}, {"Right tread", "robot.body.wheel[right].speed", 1, "rad/s"}}},
	{"Sensors", []careSlot{
		{"Cliff front left", "robot.body.cliff[front][left].val", 1, ""}, {"Cliff front right", "robot.body.cliff[front][right].val", 1, ""},
		{"Cliff back left", "robot.body.cliff[back][left].val", 1, ""}, {"Cliff back right", "robot.body.cliff[back][right].val", 1, ""},
		{"Distance", "robot.body.laser.distance", 1000, "mm"}, {"Touch", "robot.body.touch.raw", 1, ""}}},
	{"Motion", []careSlot{
		{"Acceleration x", "robot.body.accel[x].acceleration", 1, "m/s²"}, {"Acceleration y", "robot.body.accel[y].acceleration", 1, "m/s²"},
		{"Acceleration z", "robot.body.accel[z].acceleration", 1, "m/s²"}, {"Gyro x", "robot.body.gyro[x].speed", 180 / math.Pi, "°/s"},
		{"Gyro y", "robot.body.gyro[y].speed", 180 / math.Pi, "°/s"}, {"Gyro z", "robot.body.gyro[z].speed", 180 / math.Pi, "°/s"}}},
}

type careSlot struct {
	name, slot string
	times      float64 // 0: it is text
	unit       string
}

// care brings up the pages of customer care when their gesture is made, until ctx ends: on the charger a double press of the button, then the lift moved up and
// down by hand (VEC-DGN-02, VEC-MCT-09). A press shows the next page, a double press ends it.
func (m *Mind) care(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case g := <-m.gestures:
			if g == double && m.docked.Load() && m.lifted(ctx) {
				m.showCare(ctx)
			}
		}
	}
}

// hearGesture takes what the body says of its button and its charger. It does not block.
func (m *Mind) hearGesture(msg corelink.Message) {
	switch msg := msg.(type) {
	case *corelink.State:
		m.docked.Store(msg.ChargerVolts > 0)
	case *corelink.Event:
		if msg.Name == buttonEvent && !msg.Replayed && len(msg.Texts) > 0 {
			select {
			case m.gestures <- msg.Texts[0]:
			default: // nothing waits for so many
			}
		}
	}
}

// lifted reports whether the lift goes up and down again in time, from where it was lowest.
func (m *Mind) lifted(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, careWithin)
	defer cancel()
	tick := time.NewTicker(careLook)
	defer tick.Stop()
	low, high := math.Inf(1), math.Inf(-1)
	for {
		if at, ok := m.number(ctx, liftSlot); ok {
			if high = max(high, at); high-low >= careLifts && high-at >= careLifts {
				return true
			}
			if at < low { // it has not been up since
				low, high = at, at
			}
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

const liftSlot = "robot.body.arm.z.position"

// number returns the number that a slot has now; false: it has none, or is not there.
func (m *Mind) number(ctx context.Context, slot string) (float64, bool) {
	limit, cancel := context.WithTimeout(ctx, coreclient.Patience)
	defer cancel()
	v, err := m.cfg.Core.Read(limit, slot)
	if err != nil {
		return 0, false
	}
	return v[0].Number()
}

// showCare shows the pages until a double press, or until no button was pressed for a while.
func (m *Mind) showCare(ctx context.Context) {
	put := func(s screen.Screen) error {
		return m.in(ctx, func(now time.Duration) { m.screen.care = shownPage{s, now} })
	}
	tick := time.NewTicker(careRefresh)
	defer tick.Stop()
	for len(m.gestures) > 0 { // presses while the lift moved
		<-m.gestures
	}
	page, last := 0, m.cfg.Now()
	for m.cfg.Now()-last < careFor {
		pages := m.carePages(ctx)
		if len(pages) == 0 || put(pages[page%len(pages)]) != nil {
			break
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			continue
		case g := <-m.gestures:
			if last = m.cfg.Now(); g == single {
				page++
				continue
			}
			if g != double {
				continue
			}
		}
		break
	}
	_ = put(nil) // it fails only when the loop has ended
}

// carePages returns the pages as they are now; none: robotd does not answer.
func (m *Mind) carePages(ctx context.Context) (pages []screen.Care) {
	limit, cancel := context.WithTimeout(ctx, coreclient.Patience)
	defer cancel()
	all, err := m.cfg.Core.Read(limit, "robot")
	if err != nil {
		return nil
	}
	is := map[string]*core.Value{}
	for i := range all {
		is[all[i].Device+"."+all[i].Slot.Name] = &all[i]
	}
	for _, p := range careSlots {
		page, n := screen.Care{Title: p.title}, 0
		for _, r := range p.rows {
			if v := is[r.slot]; v != nil {
				page.Rows[n] = screen.CareRow{Name: r.name, Value: r.value(v)}
				n++
			}
		}
		if n > 0 {
			pages = append(pages, page)
		}
	}
	for i := range pages {
		pages[i].Page, pages[i].Pages = i+1, len(pages)
	}
	return pages
}

// value writes the value of a slot; a hyphen: it is not known.
func (s *careSlot) value(v *core.Value) string {
	if s.times == 0 {
		if v.Value == nil || v.Value.Text == nil || *v.Value.Text == "" {
			return "-"
		}
		return *v.Value.Text
	}
	n, ok := v.Number()
	if !ok {
		return "-"
	}
	if n *= s.times; n == 0 {
		n = 0 // without a sign
	}
	return strings.TrimSpace(fmt.Sprintf("%.4g %s", n, s.unit))
}
