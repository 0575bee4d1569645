package robot

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Loc is where one of several identical parts is: a word or a number. The zero value is no localization.
type Loc struct {
	word   word
	number uint16
}

type word uint8

const (
	none word = iota
	up
	inBetween
	down
	front
	middle
	back
	right
	center
	left
	axisX
	axisY
	axisZ
	number
)

// The localizations of the standard (GOSTAI-LOC-02, GOSTAI-LOC-10).
var (
	Up        = Loc{word: up}
	InBetween = Loc{word: inBetween}
	Down      = Loc{word: down}
	Front     = Loc{word: front}
	Middle    = Loc{word: middle}
	Back      = Loc{word: back}
	Right     = Loc{word: right}
	Center    = Loc{word: center}
	Left      = Loc{word: left}
	AxisX     = Loc{word: axisX}
	AxisY     = Loc{word: axisY}
	AxisZ     = Loc{word: axisZ}
)

// Number returns the localization n, counted from 0: the smaller, the closer to front, up, left or the body (GOSTAI-LOC-06, GOSTAI-LOC-08).
func Number(n uint16) Loc { return Loc{number, n} }

var words = [...]struct {
	name   string
	letter byte
}{
	up: {"up", 'U'}, inBetween: {"inbetween", 'I'}, down: {"down", 'D'},
	front: {"front", 'F'}, middle: {"middle", 'M'}, back: {"back", 'B'},
	right: {"right", 'R'}, center: {"center", 'C'}, left: {"left", 'L'},
	axisX: {"x", 'X'}, axisY: {"y", 'Y'}, axisZ: {"z", 'Z'},
	number: {},
}

// letters maps a letter of a compact name to its localization. H is the standard's table for "back" (hind); we write B (GOSTAI-LOC-02).
func locOfLetter(c byte) (Loc, bool) {
	if c == 'H' {
		return Back, true
	}
	for w, x := range words {
		if x.letter == c && c != 0 {
			return Loc{word: word(w)}, true
		}
	}
	return Loc{}, false
}

// ParseLoc reads a localization as written between brackets. "top" is up, "in-between" is inbetween (GOSTAI-LOC-02, GOSTAI-LOC-03).
func ParseLoc(s string) (Loc, error) {
	switch s {
	case "top":
		return Up, nil
	case "in-between":
		return InBetween, nil
	case "":
		return Loc{}, fmt.Errorf("%w: empty localization; want a word such as left or front, an axis, or a number from 0", ErrName)
	}
	for w, x := range words {
		if x.name == s {
			return Loc{word: word(w)}, nil
		}
	}
	if s[0] >= '0' && s[0] <= '9' && (len(s) == 1 || s[0] != '0') {
		if n, err := strconv.ParseUint(s, 10, 16); err == nil {
			return Number(uint16(n)), nil
		}
	}
	return Loc{}, fmt.Errorf("%w: localization %.20q; want up, inbetween, down, front, middle, back, right, center, left, x, y, z or a "+
		"number from 0 to %d",
		ErrName, s, math.MaxUint16)
}

// String returns the text between the brackets.
func (l Loc) String() string {
	if l.word == number {
		return strconv.Itoa(int(l.number))
	}
	return words[l.word].name
}

// suffix returns l as written at the end of a compact name: a letter, or a number in brackets (GOSTAI-CMP-02).
func (l Loc) suffix() string {
	if l.word == number {
		return "[" + l.String() + "]"
	}
	return string(words[l.word].letter)
}

// class orders localizations: height, depth, side, then axes and numbers (GOSTAI-LOC-04).
func (l Loc) class() int {
	switch {
	case l.word <= down:
		return 0
	case l.word <= back:
		return 1
	case l.word <= left:
		return 2
	case l.word <= axisZ:
		return 3
	}
	return 4
}

// Most localizations of one part: four words, the later of a class refining the earlier one (GOSTAI-LOC-05), and as many numbers.
const (
	maxWords   = 4
	maxNumbers = 4 // own default
)

// orderLocs returns locs in the standard's order: height, depth, side, then what refines them in the same order, then axes and numbers as
// they came (GOSTAI-LOC-04, GOSTAI-LOC-05, GOSTAI-LOC-09).
func orderLocs(locs []Loc) ([]Loc, error) {
	type ranked struct {
		Loc
		rank int
	}
	var seen [5]int
	out := make([]ranked, len(locs))
	for i, l := range locs {
		c := l.class()
		out[i] = ranked{l, c}
		if c < 3 { // a word: the second of its class comes after the first ones of all
			out[i].rank = 3*seen[c] + c
		} else {
			out[i].rank = 100
		}
		seen[c]++
	}
	switch words := seen[0] + seen[1] + seen[2]; {
	case words > maxWords:
		return nil, fmt.Errorf("%w: %d words of localization for one part, want at most %d", ErrName, words, maxWords)
	case seen[0] > 2 || seen[1] > 2 || seen[2] > 2:
		return nil, fmt.Errorf("%w: three words of localization for one direction, want at most two", ErrName)
	case seen[3] > 1 || seen[4] > maxNumbers:
		return nil, fmt.Errorf("%w: want at most one axis and %d numbers", ErrName, maxNumbers)
	}
	slices.SortStableFunc(out, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	sorted := make([]Loc, len(out))
	for i, r := range out {
		sorted[i] = r.Loc
	}
	return sorted, nil
}

func writeLocs(b *strings.Builder, locs []Loc) {
	for _, l := range locs {
		b.WriteByte('[')
		b.WriteString(l.String())
		b.WriteByte(']')
	}
}

// Ring numbers parts that stand in a circle: bearings are their directions, counter-clockwise from the front. The front-most part is 0,
// of two equally close to the front the left one; the numbers then grow counter-clockwise (GOSTAI-LOC-07). Of parts on an upright circle
// give the angle from the top, seen so that counter-clockwise is positive. The result maps number to index of bearings.
func Ring(bearings []float64) []int {
	if len(bearings) == 0 {
		return nil
	}
	const same = 1e-9
	order := make([]int, len(bearings))
	first := 0
	for i, b := range bearings {
		order[i] = i
		d := math.Abs(WrapPi(b)) - math.Abs(WrapPi(bearings[first]))
		if d < -same || d <= same && WrapPi(b) > WrapPi(bearings[first]) {
			first = i
		}
	}
	from := bearings[first]
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(WrapTurn(bearings[a]-from), WrapTurn(bearings[b]-from)) })
	return order
}

// Row numbers three or more parts in a row: the smaller the number, the closer to the front, up or left, along the direction in which
// they are spread most (GOSTAI-LOC-06). The result maps number to index of places.
func Row(places []Vec) []int {
	var low, high Vec
	for i, p := range places {
		if i == 0 {
			low, high = p, p
		}
		low = Vec{min(low.X, p.X), min(low.Y, p.Y), min(low.Z, p.Z)}
		high = Vec{max(high.X, p.X), max(high.Y, p.Y), max(high.Z, p.Z)}
	}
	spread := Vec{high.X - low.X, high.Y - low.Y, high.Z - low.Z}
	along := func(p Vec) float64 { return p.X }
	if spread.Z > spread.X && spread.Z >= spread.Y {
		along = func(p Vec) float64 { return p.Z }
	} else if spread.Y > spread.X {
		along = func(p Vec) float64 { return p.Y }
	}
	order := make([]int, len(places))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(along(places[b]), along(places[a])) })
	return order
}
