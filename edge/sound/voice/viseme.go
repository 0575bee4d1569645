package voice

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"time"

	"kennel/edge/sound"
)

// Shape is the shape of a mouth.
type Shape uint8

// The shapes, of which the letters name a sound.
const (
	Silence Shape = iota
	PP            // p, b, m
	FF            // f, v
	TH            // th
	DD            // t, d
	KK            // k, g, ng
	CH            // ch, j, sh
	SS            // s, z
	NN            // n, l
	RR            // r
	AA            // father
	EE            // bed, h
	IH            // see
	OH            // law
	OU            // too, w
)

// String returns the shape's name, such as "PP"; "sil" for Silence.
func (s Shape) String() string {
	names := [...]string{"sil", "PP", "FF", "TH", "DD", "KK", "CH", "SS", "NN", "RR", "AA", "EE", "IH", "OH", "OU"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("shape %d", uint8(s))
}

// Viseme is a shape that the mouth takes at a time, and keeps until the next.
type Viseme struct {
	At    time.Duration // since the beginning of the speech
	Shape Shape
}

// arpabet has the shapes of flite's phones.
var arpabet = map[string]Shape{"p": PP, "b": PP, "m": PP, "f": FF, "v": FF, "th": TH, "dh": TH, "t": DD, "d": DD, "k": KK, "g": KK, "ng": KK, "ch": CH, "jh": CH, "sh": CH, "zh": CH,
	"s": SS, "z": SS, "n": NN, "l": NN, "r": RR, "er": RR, "aa": AA, "ae": AA, "ah": AA, "ax": AA, "ay": AA, "aw": AA, "eh": EE, "ey": EE, "hh": EE, "ih": IH, "iy": IH, "y": IH,
	"ao": OH, "ow": OH, "oy": OH, "uh": OU, "uw": OU, "w": OU, "pau": Silence}

// timedVisemes reads what flite prints with -psdur: a line for each part of the text, of phones with the times at which they end, in seconds. Times begin again with each line.
func timedVisemes(text string) (all []Viseme) {
	base := time.Duration(0)
	for line := range strings.Lines(text) {
		begin := base
		for phone := range strings.FieldsSeq(line) {
			name, at, ok := strings.Cut(phone, ":")
			end, err := strconv.ParseFloat(at, 64)
			if !ok || err != nil || !(end >= 0 && end < maxSpeech.Seconds()) {
				continue // what else a voice prints
			}
			all = shaped(all, begin, arpabet[name])
			begin = base + time.Duration(end*float64(time.Second))
		}
		base = begin
	}
	return shaped(all, base, Silence)
}

// shaped appends a shape, unless the mouth has it already.
func shaped(all []Viseme, at time.Duration, s Shape) []Viseme {
	if n := len(all); n > 0 && all[n-1].Shape == s {
		return all
	}
	return append(all, Viseme{at, s})
}

// mnemonics has the shapes of espeak-ng's phones by their first letter; a few by two.
var mnemonics = map[string]Shape{"p": PP, "b": PP, "m": PP, "f": FF, "v": FF, "T": TH, "D": TH, "t": DD, "d": DD, "*": DD, "k": KK, "g": KK, "N": KK, "x": KK, "C": KK, "S": CH, "Z": CH, "tS": CH, "dZ": CH,
	"s": SS, "z": SS, "n": NN, "l": NN, "r": RR, "R": RR, "3": RR, "a": AA, "A": AA, "V": AA, "@": AA, "&": AA, "e": EE, "E": EE, "h": EE, "i": IH, "I": IH, "j": IH, "y": IH, "Y": IH,
	"o": OH, "O": OH, "0": OH, "u": OU, "U": OU, "w": OU, "W": OU}

// estimatedVisemes reads phones as espeak-ng prints them with -x --sep=_, a line for each clause. It tells no times: phones share the clause's part of the sound, long vowels two, other
// vowels one and a half, consonants one. Clauses are found by the pauses between them, or share by their phones where there are too few.
func estimatedVisemes(text string, s *sound.Sound) []Viseme {
	type phone struct {
		shape Shape
		share float64
	}
	var clauses [][]phone
	for scan := bufio.NewScanner(strings.NewReader(text)); scan.Scan(); {
		var line []phone
		for _, name := range strings.FieldsFunc(scan.Text(), func(r rune) bool { return r == '_' || r == ' ' || r == '|' }) {
			name = strings.TrimLeft(name, "',%=!")
			if name == "" {
				continue
			}
			shape, ok := mnemonics[name[:min(2, len(name))]]
			if !ok {
				shape = mnemonics[name[:1]]
			}
			share := 1.0
			if shape >= AA {
				share = 1.5
				if len(name) > 1 { // long, or two vowels
					share = 2
				}
			}
			line = append(line, phone{shape, share})
		}
		if len(line) > 0 {
			clauses = append(clauses, line)
		}
	}
	voiced := spans(s, len(clauses))
	var all []Viseme
	for i, line := range clauses {
		sum := 0.0
		for _, p := range line {
			sum += p.share
		}
		at, span := voiced[i][0], voiced[i][1]-voiced[i][0]
		for _, p := range line {
			all = shaped(all, at, p.shape)
			at += time.Duration(p.share / sum * float64(span))
		}
		all = shaped(all, voiced[i][1], Silence)
	}
	return all
}

// spans returns n spans of the sound that are heard, cut at its longest pauses, or evenly.
func spans(s *sound.Sound, n int) [][2]time.Duration {
	const step = 10 * time.Millisecond
	per := max(1, s.Rate/100)
	var loud []bool
	limit := 0.02 * s.Peak()
	for at := 0; at < len(s.Samples); at += per {
		peak := (&sound.Sound{Samples: s.Samples[at:min(len(s.Samples), at+per)]}).Peak()
		loud = append(loud, peak > limit)
	}
	first, last := 0, len(loud)
	for first < last && !loud[first] {
		first++
	}
	for last > first && !loud[last-1] {
		last--
	}
	out := [][2]int{{first, last}}
	for len(out) < n {
		best, cut := [2]int{}, -1 // the longest pause within a span
		for i, span := range out {
			for at := span[0]; at < span[1]; at++ {
				end := at
				for end < span[1] && !loud[end] {
					end++
				}
				if end-at > best[1]-best[0] {
					best, cut = [2]int{at, end}, i
				}
				at = max(at, end-1)
			}
		}
		if cut < 0 || best[1]-best[0] < 5 { // no pause of 50 ms is left
			out = nil
			for i := range n {
				out = append(out, [2]int{first + (last-first)*i/n, first + (last-first)*(i+1)/n})
			}
			break
		}
		span := out[cut]
		out[cut] = [2]int{span[0], best[0]}
		out = append(out[:cut+1], append([][2]int{{best[1], span[1]}}, out[cut+1:]...)...)
	}
	spans := make([][2]time.Duration, len(out))
	for i, span := range out {
		spans[i] = [2]time.Duration{time.Duration(span[0]) * step, time.Duration(span[1]) * step}
	}
	return spans
}
