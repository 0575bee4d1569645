package intent

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// found is a slot's value that ends before the word end.
type found struct {
	end   int
	value string
}

const (
	maxName     = 3              // words of a name
	maxPlace    = 4              // words of a place
	maxText     = 12             // words of free text
	maxDuration = 24 * 60 * 60.0 // seconds
)

// fill returns the values that a slot can have if it begins at t[i].
func (l *language) fill(kind string, t []string, i int) []found {
	var out []found
	one := func(value string, end int, ok bool) {
		if ok {
			out = append(out, found{end, value})
		}
	}
	switch kind {
	case "duration":
		one(l.duration(t, i))
	case "number":
		v, end, ok := l.number(t, i)
		one(strconv.FormatFloat(v, 'f', -1, 64), end, ok)
	case "time":
		one(l.clock(t, i))
	case "color", "level", "when":
		one(l.longest(l.lists[kind], t, i))
	case "known":
		one(l.longest(l.lists["names"], t, i))
	case "name":
		out = l.free(t, i, maxName)
	case "place":
		out = l.free(t, i, maxPlace)
	case "text":
		for end := i + 1; end <= min(i+maxText, len(t)); end++ {
			out = append(out, found{end, strings.Join(t[i:end], " ")})
		}
	}
	return out
}

// longest returns the value of the longest entry of list that is found at t[i].
func (l *language) longest(list []listed, t []string, i int) (value string, end int, ok bool) {
	for _, e := range list {
		if n := i + len(e.words); n > end && n <= len(t) && slices.Equal(e.words, t[i:n]) {
			value, end, ok = e.value, n, true
		}
	}
	return value, end, ok
}

// free returns the names of up to limit words at t[i]: none has a word such as "the" or "tomorrow" in it, or a number.
func (l *language) free(t []string, i, limit int) []found {
	var out []found
	for end := i; end < min(i+limit, len(t)) && !l.stop[t[end]] && (t[end][0] < '0' || t[end][0] > '9'); end++ {
		out = append(out, found{end + 1, strings.Join(t[i:end+1], " ")})
	}
	return out
}

// number reads digits, or words such as "twenty five" and "a hundred and twenty".
func (l *language) number(t []string, i int) (v float64, end int, ok bool) {
	if i >= len(t) {
		return 0, i, false
	}
	if n, err := strconv.ParseFloat(t[i], 64); err == nil && t[i][0] >= '0' && t[i][0] <= '9' && n < 1e6 {
		return n, i + 1, true
	}
	if l.one[t[i]] && i+1 < len(t) && l.numbers[t[i+1]] == 100 { // a hundred
		i++
	}
	part, end, ok := l.below100(t, i)
	if !ok {
		return 0, i, false
	}
	if part != 100 && (end >= len(t) || l.numbers[t[end]] != 100) {
		return part, end, true
	}
	if part != 100 { // two hundred
		part *= 100
		end++
	}
	j := end
	if j < len(t) && l.joints[t[j]] {
		j++
	}
	if low, e, ok := l.below100(t, j); ok && low < 100 {
		return part + low, e, true
	}
	return part, end, true
}

// below100 reads a number word, two such as "twenty five", or one that is composed (fünfundzwanzig). A hundred is read, too.
func (l *language) below100(t []string, i int) (v float64, end int, ok bool) {
	if i >= len(t) {
		return 0, i, false
	}
	if v, ok := l.numbers[t[i]]; ok {
		if v >= 20 && v < 100 && i+1 < len(t) {
			if unit, ok := l.numbers[t[i+1]]; ok && unit >= 1 && unit < 10 && unit == math.Trunc(unit) {
				return v + unit, i + 2, true
			}
		}
		return v, i + 1, true
	}
	if unit, ten, ok := strings.Cut(t[i], l.glue); ok && l.glue != "" {
		u, isUnit := l.numbers[unit]
		v, isTen := l.numbers[ten]
		if isUnit && isTen && u < 10 && v >= 20 && v < 100 {
			return v + u, i + 1, true
		}
	}
	return 0, i, false
}

// duration reads "five minutes and thirty seconds", "an hour and a half", "one and a half hours", "half an hour", "90 seconds".
func (l *language) duration(t []string, i int) (value string, end int, ok bool) {
	total, smallest := 0.0, math.Inf(1)
	at := i
	for {
		n, j, has := l.quantity(t, at)
		if !has {
			break
		}
		unit, j, has := l.longest(l.lists["unit"], t, j)
		if !has {
			break
		}
		seconds, err := strconv.ParseFloat(unit, 64)
		if err != nil || seconds >= smallest { // an hour may be followed by minutes, not by hours
			break
		}
		smallest, total, end = seconds, total+n*seconds, j
		if f, e, ok := l.half(t, j); ok { // and a half
			total, end = total+f*seconds, e
		}
		if at = end; at < len(t) && l.joints[t[at]] {
			at++
		}
	}
	if total = math.Round(total); total < 1 || total > maxDuration {
		return "", i, false
	}
	return strconv.Itoa(int(total)), end, true
}

// half reads "and a half" after a number or a unit.
func (l *language) half(t []string, i int) (v float64, end int, ok bool) {
	if i >= len(t) || !l.joints[t[i]] {
		return 0, i, false
	}
	if i++; i < len(t) && l.one[t[i]] {
		i++
	}
	if i >= len(t) {
		return 0, i, false
	}
	if v, ok = l.fractions[t[i]]; !ok {
		return 0, i, false
	}
	if _, _, unit := l.longest(l.lists["unit"], t, i+1); unit { // half minutes of their own
		return 0, i, false
	}
	return v, i + 1, true
}

// quantity reads how many of a unit: a number, "one and a half", "half an", "three quarters of an", "an", "a couple of".
func (l *language) quantity(t []string, i int) (v float64, end int, ok bool) {
	if few, end, ok := l.longest(l.lists["few"], t, i); ok {
		v, err := strconv.ParseFloat(few, 64)
		return v, end, err == nil
	}
	v, end, ok = l.number(t, i)
	if ok {
		// one and a half hours
		if end < len(t) && l.joints[t[end]] {
			j := end + 1
			if j < len(t) && l.one[t[j]] {
				j++
			}
			if j < len(t) && l.fractions[t[j]] > 0 {
				return v + l.fractions[t[j]], j + 1, true
			}
		}
	} else if i < len(t) && l.one[t[i]] {
		v, end, ok = 1, i+1, true
	} else {
		v, end = 1, i
	}
	if end < len(t) && l.fractions[t[end]] > 0 {
		v, end, ok = v*l.fractions[t[end]], end+1, true
		for end < len(t) && (l.joints[t[end]] || l.one[t[end]]) {
			end++
		}
	}
	return v, end, ok
}

// said reports where one of the ways to say a word of the time ends, if it is found at t[i].
func (l *language) said(name string, t []string, i int) (int, bool) {
	best, ok := i, false
	for _, w := range l.times[name] {
		if n := i + len(w); n > best && n <= len(t) && slices.Equal(w, t[i:n]) {
			best, ok = n, true
		}
	}
	return best, ok
}

// clock reads a time of the day as HH:MM: "seven thirty", "half past seven", "quarter to nine", "5 pm", "17:30", "noon".
func (l *language) clock(t []string, i int) (value string, end int, ok bool) {
	if end, ok := l.said("noon", t, i); ok {
		return "12:00", end, true
	}
	if end, ok := l.said("midnight", t, i); ok {
		return "00:00", end, true
	}
	hour, minute, end, ok := l.spokenClock(t, i)
	if !ok {
		hour, minute, end, ok = l.plainClock(t, i)
	}
	if !ok {
		return "", i, false
	}
	if e, ok := l.said("am", t, end); ok && hour <= 12 {
		hour, end = hour%12, e
	} else if e, ok := l.said("pm", t, end); ok && hour <= 12 {
		hour, end = hour%12+12, e
	}
	return fmt.Sprintf("%02d:%02d", hour, minute), end, true
}

// spokenClock reads "half past seven", "quarter to nine", "ten past six", "halb acht".
func (l *language) spokenClock(t []string, i int) (hour, minute, end int, ok bool) {
	var away int
	if j, is := l.said("half_past", t, i); is {
		away, end = 30, j
	} else if j, is := l.said("half_to", t, i); is {
		away, end = -30, j
	} else {
		if j, is := l.said("quarter", t, i); is {
			away, end = 15, j
		} else if n, j, is := l.number(t, i); is && n < 60 {
			away, end = int(n), j
		} else {
			return 0, 0, i, false
		}
		if j, is := l.said("past", t, end); is {
			end = j
		} else if j, is := l.said("to", t, end); is {
			away, end = -away, j
		} else {
			return 0, 0, i, false
		}
	}
	h, end, ok := l.number(t, end)
	if !ok || h < 1 || h > 24 || h != math.Trunc(h) {
		return 0, 0, i, false
	}
	if j, is := l.said("oclock", t, end); is {
		end = j
	}
	all := (int(h)*60 + away) % (24 * 60)
	return all / 60, all % 60, end, true
}

// plainClock reads "seven", "seven thirty", "17 30", "sieben uhr dreißig".
func (l *language) plainClock(t []string, i int) (hour, minute, end int, ok bool) {
	h, end, ok := l.number(t, i)
	if !ok || h > 24 || h != math.Trunc(h) {
		return 0, 0, i, false
	}
	if j, is := l.said("oclock", t, end); is {
		end = j
	}
	if m, j, is := l.number(t, end); is && m < 60 && m == math.Trunc(m) {
		return int(h) % 24, int(m), j, true
	}
	return int(h) % 24, 0, end, true
}

// Day returns the day that the parameter "when" of a weather question means, counted from today: 0 for today, "" and tonight, 1 for tomorrow,
// 0 to 6 for a weekday and, for the weekend, to the next Saturday. today is the weekday where the robot is.
func Day(when string, today time.Weekday) int {
	switch when {
	case "tomorrow":
		return 1
	case "weekend":
		if today == time.Sunday {
			return 0
		}
		when = "saturday"
	}
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.EqualFold(d.String(), when) {
			return int(d-today+7) % 7
		}
	}
	return 0
}
