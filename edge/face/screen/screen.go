// Package screen draws what a robot shows instead of its eyes: a claim code, the number of a fault, an update, the time, the weather, a timer, its start, and
// the pages of customer care (VEC-DSP-11, part of VEC-DSP-14).
//
//	a file of the robot, an intent, a gesture ──► mindd ──► Screen ──Draw(since)──► face.Picture
//
// A Screen is a value: two that are equal look the same at the same time, so that a caller compares them to know whether something changed. Layouts, colours
// and icons are our own, for 184 by 96 pixels; no original picture is among them.
package screen

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kennel/edge/face"
)

// Screen is a page of the display.
type Screen interface {
	// Draw replaces p by the page as it looks so long after it was first shown.
	Draw(p *face.Picture, since time.Duration)
}

// Picture returns a page as it looks after a time.
func Picture(s Screen, since time.Duration) *face.Picture {
	p := &face.Picture{}
	s.Draw(p, since)
	return p
}

// Pairing asks the future owner to type a code.
type Pairing struct{ Code string }

// Draw implements Screen.
func (s Pairing) Draw(p *face.Picture, since time.Duration) {
	*p = face.Picture{}
	notice(p, s.Code, "Claim code: type it on your robot's page")
	const dots = 3
	for i := range dots {
		c := dark
		if int(since/(400*time.Millisecond))%dots == i {
			c = teal
		}
		x := float32(face.Width/2 + 14*(i-dots/2))
		fill(p, c, disc(x, 84, 3))
	}
}

// Fault shows the number of a fault. Nothing but a fault brings it up (VEC-DGN-03).
type Fault struct {
	Code     string // three digits
	Words    string
	Restarts bool // the robot's programs start again because of it
}

// Draw implements Screen (VEC-FLT-10).
func (s Fault) Draw(p *face.Picture, _ time.Duration) {
	*p = face.Picture{}
	words := s.Words
	if s.Restarts {
		words = "Restarting. " + words
	}
	notice(p, s.Code, words)
	for _, y := range []float32{1.5, face.Height - 1.5} {
		fill(p, red, bar(0, y, face.Width, y, 1.5))
	}
}

// Update shows how far an update is, in bytes.
type Update struct {
	Done, Of int64 // Of is above 0
	Version  string
}

// Percent is how many hundredths are done, 0 to 100.
func (s Update) Percent() int {
	if s.Of <= 0 || s.Done <= 0 {
		return 0
	}
	return int(min(float64(s.Done)/float64(s.Of), 1) * 100)
}

// Draw implements Screen.
func (s Update) Draw(p *face.Picture, _ time.Duration) {
	*p = face.Picture{}
	center(p, fmt.Sprintf("%d %%", s.Percent()), 14, 3, white)
	const left, right, y = 22, face.Width - 22, 54
	fill(p, dark, bar(left, y, right, y, 5))
	if n := s.Percent(); n > 0 {
		fill(p, teal, bar(left, y, left+float32(n)*(right-left)/100, y, 5))
	}
	center(p, strings.TrimSpace("Installing "+s.Version), 66, 1, pale)
	center(p, "Leave me on my charger", 78, 1, pale)
}

// Clock shows the time of day.
type Clock struct {
	Hour       int  `json:"hour"` // 0 to 23
	Minute     int  `json:"minute"`
	TwentyFour bool `json:"24_hours,omitempty"` // else with AM or PM
}

// Draw implements Screen. The colon blinks once a second.
func (s Clock) Draw(p *face.Picture, since time.Duration) {
	*p = face.Picture{}
	hour, note := s.Hour, ""
	if !s.TwentyFour {
		note = "AM"
		if hour >= 12 {
			note = "PM"
		}
		if hour = hour % 12; hour == 0 {
			hour = 12
		}
	}
	text := fmt.Sprintf("%d:%02d", hour, s.Minute)
	if s.TwentyFour {
		text = fmt.Sprintf("%02d:%02d", hour, s.Minute)
	}
	y := 27
	if note != "" {
		y = 18
		center(p, note, 70, 2, teal)
	}
	if since/(500*time.Millisecond)%2 == 1 {
		text = strings.Replace(text, ":", " ", 1)
	}
	center(p, text, y, 6, white)
}

// Weather shows what the weather of a place is (part of VEC-DSP-12).
type Weather struct {
	Condition   string `json:"condition"`   // one of Conditions; of another one no icon is shown (VEC-INT-08)
	Temperature string `json:"temperature"` // a number
	Unit        string `json:"unit"`        // C or F
	Place       string `json:"place"`
}

// Conditions are the weathers that have an icon (VEC-INT-08).
func Conditions() []string { return slices.Clone(conditions[:]) }

// Draw implements Screen.
func (s Weather) Draw(p *face.Picture, _ time.Duration) {
	*p = face.Picture{}
	degrees := s.Temperature + "°"
	place := cut(s.Place, face.Width-8, 1)
	icon := icons[s.Condition]
	if icon == nil {
		center(p, degrees+s.Unit, 26, 5, white)
		center(p, place, 78, 1, pale)
		return
	}
	icon(p, 52, 42)
	scale := max(1, min(5, (face.Width-96)/(letterWidth*len([]rune(degrees)))))
	text(p, degrees, 96, 42-7*scale/2, scale, white)
	text(p, s.Unit, 96+scale*letterWidth*len([]rune(degrees)), 42-7*scale/2, 2, pale)
	center(p, place, 84, 1, pale)
}

// Timer counts down, and rings.
type Timer struct {
	Left    time.Duration `json:"left"` // at the beginning
	Of      time.Duration `json:"of"`   // the whole of it
	Ringing bool          `json:"ringing,omitempty"`
}

// Draw implements Screen.
func (s Timer) Draw(p *face.Picture, since time.Duration) {
	*p = face.Picture{}
	left := max(s.Left-since, 0)
	if s.Ringing {
		swing := float32(9 * math.Sin(2*math.Pi*since.Seconds()*2.5))
		bell(p, face.Width/2, 40, swing)
		center(p, clockwise(s.Of), 80, 1, pale)
		return
	}
	share := float32(0)
	if s.Of > 0 {
		share = float32(left.Seconds() / s.Of.Seconds())
	}
	dial(p, 40, 48, 30, min(share, 1))
	shown := clockwise(left + time.Second - 1) // the last second is 0:01
	text(p, shown, 82, 48-7*3/2, max(1, min(3, 100/(letterWidth*len(shown)))), white)
}

// clockwise writes a duration as hours, minutes and seconds: 1:05:00, 4:30.
func clockwise(d time.Duration) string {
	s := int(d / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// Boot is shown while the robot starts: two eyes that open.
type Boot struct{}

// Draw implements Screen. The eyes are open after three seconds, and a line below them keeps moving.
func (Boot) Draw(p *face.Picture, since time.Duration) {
	*p = face.Picture{}
	open := float32(min(max(since.Seconds()/3, 0), 1))
	open = open * open * (3 - 2*open)
	for _, x := range []float32{face.Width/2 - 30, face.Width/2 + 30} {
		fill(p, teal, rounded(x, 40, 17, 2+17*open, 2+8*open))
	}
	const span, wide = 70, 18
	at := float32(math.Sin(2*math.Pi*since.Seconds()/1.6)) * (span - wide)
	fill(p, dark, bar(face.Width/2-span, 82, face.Width/2+span, 82, 2))
	fill(p, white, bar(face.Width/2+at-wide, 82, face.Width/2+at+wide, 82, 2))
}

// Care is one page of customer care: names and values, of which the values may be live (part of VEC-DGN-01).
type Care struct {
	Title       string
	Page, Pages int // from 1
	Rows        [CareRows]CareRow
}

// CareRows is how many rows a page of customer care has.
const CareRows = 6

// CareRow is one value; one without a name is not shown.
type CareRow struct{ Name, Value string }

// Draw implements Screen.
func (s Care) Draw(p *face.Picture, _ time.Duration) {
	*p = face.Picture{}
	text(p, s.Title, 4, 4, 1, teal)
	if s.Pages > 1 {
		n := fmt.Sprintf("%d/%d", s.Page, s.Pages)
		text(p, n, face.Width-4-width(n, 1), 4, 1, pale)
	}
	fill(p, dark, bar(4, 15.5, face.Width-4, 15.5, 0.5))
	for i, r := range s.Rows {
		if r.Name == "" {
			continue
		}
		y := 22 + 12*i
		text(p, r.Name, 4, y, 1, pale)
		value := cut(r.Value, face.Width-16-width(r.Name, 1), 1)
		text(p, value, face.Width-4-width(value, 1), y, 1, white)
	}
}
