// Package chart draws on the server: SVG that needs no script, no inline style and no fixed width, in the colours of the page around it.
//
// A Board is lanes above one another on one time axis: spans, marks, stacked counts and lines share it, so that simultaneous events
// are below one another. A Share is a bar of a total. Positions along the axis are percentages, so that a board is as sharp at 390 pixels
// as at 2,560; only lines live in a stretched coordinate system of their own, with strokes that do not stretch.
//
// Charts are for eyes: they are hidden from screen readers, and a page that shows one shows the same as a list or table beside it, as Course does. Every text is
// escaped; what a robot said stays text. Drawings are written by hand and not by html/template because a board has a thousand elements, and
// a page that is open is made twice a second.
package chart

import (
	"bytes"
	"html/template"
	"math"
	"slices"
	"strconv"
	"time"
)

// Axis is the time that a board shows, From to To. An axis without length shows everything at its end.
type Axis struct {
	From, To time.Time
}

// at is where t is, in percent, kept inside.
func (a Axis) at(t time.Time) float64 {
	all := a.To.Sub(a.From)
	if all <= 0 {
		return 100
	}
	return min(max(100*float64(t.Sub(a.From))/float64(all), 0), 100)
}

// Has reports whether t is on the axis.
func (a Axis) Has(t time.Time) bool { return !t.Before(a.From) && !t.After(a.To) }

// Tick is a round time on the axis.
type Tick struct {
	At   time.Time
	X    string // percent
	Text string // by UTC; a script may say it in the reader's zone
	Form string // time or day: what Text says
}

// steps are distances of ticks; the first that leaves at most maxTicks is taken.
var steps = []time.Duration{time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 7 * day, 30 * day}

const (
	day      = 24 * time.Hour
	maxTicks = 8
)

// Ticks returns the round times on the axis, by UTC.
func (a Axis) Ticks() []Tick {
	all := a.To.Sub(a.From)
	if all <= 0 {
		return nil
	}
	i := slices.IndexFunc(steps, func(s time.Duration) bool { return all/s <= maxTicks })
	if i < 0 {
		i = len(steps) - 1
	}
	step := max(steps[i], all/maxTicks)
	form, layout := "time", "15:04"
	if step >= day {
		form, layout = "day", "2 Jan"
	}
	var out []Tick
	for t := a.From.UTC().Truncate(step); !t.After(a.To) && len(out) <= maxTicks; t = t.Add(step) {
		if x := a.at(t); !t.Before(a.From) && x > 1 && x < 99 { // a text at the very edge would be cut
			out = append(out, Tick{t, percent(x), t.Format(layout), form})
		}
	}
	return out
}

// Tone is the meaning of a mark; the style sheet gives it colour, the drawing another shape too.
type Tone string

// The tones.
const (
	Plain Tone = "plain"
	Good  Tone = "good"
	Warn  Tone = "warn"
	Bad   Tone = "bad"
	Faint Tone = "faint" // nothing is known
)

// Span is something that lasted.
type Span struct {
	From, To time.Time
	Tone     Tone
	Text     string
}

// Mark is a moment.
type Mark struct {
	At   time.Time
	Tone Tone
	Text string
}

// Point is a value; a NaN or infinite one is none.
type Point struct {
	At    time.Time
	Value float64
	Text  string
}

// Line is values over time, drawn from Low to High (equal: from the values). A gap longer than Gap breaks the line.
type Line struct {
	Points    []Point
	Low, High float64
	Bar       float64 // a level that is drawn across, beyond which values are not well; 0: none
	Gap       time.Duration
}

// Lane is one row of a board.
type Lane struct {
	Name  string
	Note  string // below the name, such as the latest value
	Spans []Span
	Marks []Mark
	Line  *Line
	Tall  bool // a line wants room
}

// Board is lanes on one axis.
type Board struct {
	Axis  Axis
	Lanes []Lane
}

// First returns when the first thing on the board's axis begins, the beginning of the axis if it lasts since before; zero if there is none.
func (b Board) First() (first time.Time) {
	see := func(from, to time.Time) {
		if to.Before(b.Axis.From) || from.After(b.Axis.To) {
			return
		}
		if from.Before(b.Axis.From) {
			from = b.Axis.From
		}
		if first.IsZero() || from.Before(first) {
			first = from
		}
	}
	for _, l := range b.Lanes {
		for _, s := range l.Spans {
			see(s.From, s.To)
		}
		for _, m := range l.Marks {
			see(m.At, m.At)
		}
		if l.Line != nil {
			for _, p := range l.Line.Points {
				see(p.At, p.At)
			}
		}
	}
	return first
}

// HTML draws the board.
func (b Board) HTML() template.HTML {
	ticks := b.Axis.Ticks()
	var grid pen
	for _, t := range ticks {
		grid.put(`<line class="tick" x1="`, t.X, `" x2="`, t.X, `" y1="0" y2="100%"/>`)
	}
	var p pen
	p.put(`<div class="board" aria-hidden="true">`)
	for _, l := range b.Lanes {
		p.put(`<div class="lane`)
		if l.Tall {
			p.put(` tall`)
		}
		p.put(`"><div class="lane-name"><span>`).text(l.Name).put(`</span>`)
		if l.Note != "" {
			p.put(` <span class="note num">`).text(l.Note).put(`</span>`)
		}
		p.put(`</div><svg class="lane-plot">`, grid.String())
		for _, s := range l.Spans {
			b.span(&p, s)
		}
		if l.Line != nil {
			b.line(&p, *l.Line)
		}
		for _, m := range l.Marks {
			b.mark(&p, m)
		}
		p.put(`</svg></div>`)
	}
	p.put(`<div class="lane axis"><div class="lane-name"></div><svg class="lane-plot">`)
	for _, t := range ticks {
		p.put(`<text x="`, t.X, `" y="14" data-at="`, t.At.Format(time.RFC3339), `" data-form="`, t.Form, `">`, t.Text, `</text>`)
	}
	p.put(`</svg></div></div>`)
	return p.HTML()
}

// Course is a board with its numbers as a table, which is folded below it.
type Course struct {
	Board
	ID      string     // of the fold, once on a page
	Caption string     // of the table
	Columns []string   // the first is the time
	Rows    [][]string // the newest first
}

// HTML draws the course.
func (c Course) HTML() template.HTML {
	var p pen
	p.put(string(c.Board.HTML()), `<details id="`).text(c.ID).put(`"><summary>Show as a table</summary><table class="plain tight"><caption class="hide">`).text(c.Caption).put(`</caption><thead><tr>`)
	for i, name := range c.Columns {
		p.put(`<th scope="col"`, right(i), `>`).text(name).put(`</th>`)
	}
	p.put(`</tr></thead><tbody>`)
	for _, row := range c.Rows {
		p.put(`<tr>`)
		for i, cell := range row {
			if i == 0 {
				p.put(`<th scope="row">`).text(cell).put(`</th>`)
				continue
			}
			p.put(`<td`, right(i), ` data-label="`).text(c.Columns[i]).put(`">`).text(cell).put(`</td>`)
		}
		p.put(`</tr>`)
	}
	return p.put(`</tbody></table></details>`).HTML()
}

// right aligns the columns of numbers.
func right(column int) string {
	if column == 0 {
		return ""
	}
	return ` class="num right"`
}

// Bars draws counts, the oldest first, as a small picture; text says what they are.
func Bars(counts []int64, text string) template.HTML {
	const step, high = 5, 20
	most := int64(1)
	for _, n := range counts {
		most = max(most, n)
	}
	var p pen
	p.put(`<svg class="spark" width="`, strconv.Itoa(step*len(counts)), `" height="`, strconv.Itoa(high), `" role="img" aria-label="`).text(text).put(`">`)
	for i, n := range counts {
		if n <= 0 {
			continue
		}
		h := max(n*high/most, 1)
		p.put(`<rect x="`, strconv.Itoa(i*step), `" y="`, strconv.FormatInt(high-h, 10), `" width="`, strconv.Itoa(step-1), `" height="`, strconv.FormatInt(h, 10), `"/>`)
	}
	return p.put(`</svg>`).HTML()
}

// leastWidth is how wide a moment's span is, in percent, so that a blink shows.
const leastWidth = 0.25

func (b Board) span(p *pen, s Span) {
	if s.To.Before(b.Axis.From) || s.From.After(b.Axis.To) || s.To.Before(s.From) {
		return
	}
	x, end := b.Axis.at(s.From), b.Axis.at(s.To)
	width := max(end-x, leastWidth)
	p.put(`<rect class="span `, string(s.Tone), `" x="`, percent(min(x, 100-width)), `" width="`, percent(width), `" y="22%" height="56%" rx="2">`).title(s.Text).put(`</rect>`)
}

// shapes tell marks apart without their colour.
var shapes = map[Tone]string{Bad: `<path d="M0-7 7 5H-7Z"/>`, Warn: `<path d="M0-6 6 0 0 6-6 0Z"/>`}

func (b Board) mark(p *pen, m Mark) {
	if !b.Axis.Has(m.At) {
		return
	}
	shape, other := shapes[m.Tone]
	if !other {
		shape = `<circle r="5"/>`
	}
	p.put(`<svg class="mark `, string(m.Tone), `" x="`, percent(b.Axis.at(m.At)), `" y="50%">`).title(m.Text).put(shape, `</svg>`)
}

func (b Board) line(out *pen, l Line) {
	var points []Point
	for _, p := range l.Points {
		if b.Axis.Has(p.At) && !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0) {
			points = append(points, p)
		}
	}
	if len(points) == 0 {
		return
	}
	low, high := l.Low, l.High
	if low >= high {
		low, high = points[0].Value, points[0].Value
		for _, p := range points {
			low, high = min(low, p.Value), max(high, p.Value)
		}
		if l.Bar != 0 {
			low, high = min(low, l.Bar), max(high, l.Bar)
		}
		if low == high {
			low, high = low-1, high+1
		}
	}
	y := func(value float64) float64 { return 4 + 92*(1-min(max((value-low)/(high-low), 0), 1)) }
	var path, area bytes.Buffer
	var hits pen // places to point at
	begin := 0.0
	end := func(x float64) {
		if area.Len() > 0 {
			area.WriteString("L" + short(x) + " 100L" + short(begin) + " 100Z")
		}
	}
	for i, p := range points {
		x := 10 * b.Axis.at(p.At)
		at := short(x) + " " + short(y(p.Value))
		if i == 0 || l.Gap > 0 && p.At.Sub(points[i-1].At) > l.Gap {
			if i > 0 {
				end(10 * b.Axis.at(points[i-1].At))
			}
			begin = x
			// A point alone is a dot: a line of no length with round ends.
			path.WriteString("M" + at + "h0")
			area.WriteString("M" + at)
		} else {
			path.WriteString("L" + at)
			area.WriteString("L" + at)
		}
		from, to := b.Axis.From, b.Axis.To
		if i > 0 {
			from = points[i-1].At.Add(p.At.Sub(points[i-1].At) / 2)
		}
		if i+1 < len(points) {
			to = p.At.Add(points[i+1].At.Sub(p.At) / 2)
		}
		left := b.Axis.at(from)
		hits.put(`<rect class="hit" x="`, percent(left), `" width="`, percent(max(b.Axis.at(to)-left, 0)), `" height="100%">`).title(p.Text).put(`</rect>`)
	}
	end(10 * b.Axis.at(points[len(points)-1].At))
	out.put(`<svg viewBox="0 0 1000 100" preserveAspectRatio="none" width="100%" height="100%"><path class="area" d="`, area.String(), `"/><path class="line" d="`, path.String(), `"/></svg>`)
	if l.Bar != 0 {
		out.put(`<line class="limit" x1="0" x2="100%" y1="`, percent(y(l.Bar)), `" y2="`, percent(y(l.Bar)), `"/>`)
	}
	out.put(hits.String())
}

// Part is one part of a whole.
type Part struct {
	Size int
	Tone Tone
	Text string
}

// Share draws parts of a whole beside one another. of 0 is their sum.
func Share(of int, parts ...Part) template.HTML {
	sum := 0
	for _, p := range parts {
		sum += max(p.Size, 0)
	}
	var out pen
	out.put(`<svg class="share" aria-hidden="true"><rect class="track" width="100%" height="100%" rx="3"/>`)
	x := 0.0
	for _, p := range parts {
		if p.Size <= 0 {
			continue
		}
		w := 100 * float64(p.Size) / float64(max(of, sum))
		out.put(`<rect class="part `, string(p.Tone), `" x="`, percent(x), `" width="`, percent(max(w, leastWidth)), `" height="100%" rx="3">`).title(p.Text).put(`</rect>`)
		x += w
	}
	return out.put(`</svg>`).HTML()
}

// pen writes markup: put what this package made, text what anybody may have said.
type pen struct{ bytes.Buffer }

func (p *pen) put(parts ...string) *pen {
	for _, s := range parts {
		p.WriteString(s)
	}
	return p
}

func (p *pen) text(s string) *pen {
	template.HTMLEscape(p, []byte(s))
	return p
}

func (p *pen) title(s string) *pen {
	if s == "" {
		return p
	}
	return p.put(`<title>`).text(s).put(`</title>`)
}

// HTML returns what was written.
func (p *pen) HTML() template.HTML { return template.HTML(p.String()) }

func short(f float64) string { return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64) }

func percent(f float64) string { return short(f) + "%" }
