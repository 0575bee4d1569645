package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/infra/api/status"
)

type batteryView struct {
	Level string // low, nominal, full, unknown
	Volts string
	Note  string // charging, on charger
	Low   bool
}

func newBattery(b *status.Body) *batteryView {
	if b == nil || b.BatteryVolts <= 0 { // a body that is not heard measured nothing
		return nil
	}
	v := &batteryView{Level: cmp.Or(b.BatteryLevel, "unknown"), Volts: fmt.Sprintf("%.2f V", b.BatteryVolts), Low: b.BatteryLevel == "low"}
	switch {
	case b.Charging:
		v.Note = "charging"
	case b.OnCharger:
		v.Note = "on charger"
	}
	return v
}

// offset says how far the robot's clock is from ours; within a second is as good as a message's way allows to tell.
func offset(ms int64, told bool) string {
	switch d := time.Duration(ms) * time.Millisecond; {
	case !told:
		return "unknown"
	case d.Abs() < time.Second:
		return "right"
	case d < 0:
		return duration(-d) + " behind"
	default:
		return duration(d) + " ahead"
	}
}

// Bars of the loop in microseconds (design section 8): lateness p99, and half of a step's period.
const (
	lateBar = 500.0
	stepBar = 2500.0
)

// mark is a named value in microseconds.
type mark struct {
	Name  string
	Value float64
}

// scale is a logarithmic scale from 1 µs to 100 ms with marks on it; X in thousandths of its width.
type scale struct {
	Bar   int
	Marks []scaleMark
	Ticks []scaleTick
}

type scaleMark struct {
	Name, Text string
	X          int
	Bad        bool // beyond the bar
}

type scaleTick struct {
	Text string
	X    int
}

func newScale(bar float64, marks ...mark) *scale {
	const lo, hi = 1.0, 100_000.0
	x := func(us float64) int {
		us = min(max(us, lo), hi)
		return int(math.Round(1000 * math.Log(us/lo) / math.Log(hi/lo)))
	}
	s := &scale{Bar: x(bar)}
	for _, m := range marks {
		if math.IsNaN(m.Value) {
			continue
		}
		s.Marks = append(s.Marks, scaleMark{m.Name, micros(m.Value), x(m.Value), m.Value > bar})
	}
	for _, us := range []float64{1, 10, 100, 1000, 10_000, 100_000} {
		text := fmt.Sprintf("%.0f µs", us)
		if us >= 1000 {
			text = fmt.Sprintf("%.0f ms", us/1000)
		}
		s.Ticks = append(s.Ticks, scaleTick{text, x(us)})
	}
	return s
}

// initial is the first letter of a name.
func initial(name string) string {
	for _, r := range name {
		return string(r)
	}
	return ""
}

func count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:] // narrow no-break space
	}
	return s
}

func micros(us float64) string {
	switch {
	case us >= 10_000:
		return fmt.Sprintf("%.0f ms", us/1000)
	case us >= 1000:
		return fmt.Sprintf("%.1f ms", us/1000)
	}
	return fmt.Sprintf("%.0f µs", us)
}

func percent(f float64) string {
	switch {
	case f == 0:
		return "0 %"
	case f < 0.0001:
		return "< 0.01 %"
	}
	return fmt.Sprintf("%.2f %%", 100*f)
}

// duration prints a duration in its largest two units at most.
func duration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < day:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
}

// pretty indents a document's text; what is no JSON stays as it is.
func pretty(s string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(s), "", "  ") != nil {
		return strings.ToValidUTF8(s, "\ufffd")
	}
	return out.String()
}

// presence is the word for a presence; filters keep their own (presence:present).
func presence(p registry.Presence) string {
	switch p {
	case registry.Present:
		return "online"
	case registry.Absent:
		return "offline"
	case registry.Calls:
		return "calls in"
	}
	return string(p)
}
