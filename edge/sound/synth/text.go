package synth

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Word is a word of a line.
type Word struct {
	Text   string
	Line   int // from 1
	Column int // from 1, in characters
}

// Errorf returns an ErrText at the word.
func (w Word) Errorf(format string, args ...any) error {
	return fmt.Errorf("%w: line %d, column %d: "+format, append([]any{ErrText, w.Line, w.Column}, args...)...)
}

// Float reads a number in a range, of which what is the name.
func (w Word) Float(what, text string, low, high float64) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= low && v <= high) {
		return 0, w.Errorf("expected %s of %g to %g, found %.40q", what, low, high, text)
	}
	return v, nil
}

// Split returns the words of each line of a text that is not empty, without comments. ErrText for a text that is too large or no UTF-8.
func Split(b []byte) ([][]Word, error) {
	if len(b) > MaxText {
		return nil, fmt.Errorf("%w: expected at most %d bytes, found %d", ErrText, MaxText, len(b))
	}
	var lines [][]Word
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		if !utf8.ValidString(line) {
			return nil, fmt.Errorf("%w: line %d: expected UTF-8, found %.40q", ErrText, n, line)
		}
		line, _, _ = strings.Cut(line, "#")
		var words []Word
		for at := 0; at < len(line); {
			rest := strings.TrimLeft(line[at:], " \t\r\n")
			at = len(line) - len(rest)
			end := strings.IndexAny(rest, " \t\r\n")
			if end < 0 {
				end = len(rest)
			}
			if end > 0 {
				words = append(words, Word{rest[:end], n, utf8.RuneCountInString(line[:at]) + 1})
			}
			at += end
		}
		if len(words) > 0 {
			lines = append(lines, words)
		}
	}
	return lines, nil
}

// nameForm is the form of names of sounds, events, states and parameters.
var nameForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,79}$`)

// Name returns the word as a name: a letter, and up to 79 letters, digits, "_", "." and "-".
func (w Word) Name() (string, error) {
	if !nameForm.MatchString(w.Text) {
		return "", w.Errorf("expected a name of a letter and up to 79 letters, digits, _, . and -, found %.40q", w.Text)
	}
	return w.Text, nil
}

// Parse reads the sounds of a text. ErrText.
func Parse(b []byte) ([]Sound, error) {
	lines, err := Split(b)
	if err != nil {
		return nil, err
	}
	var sounds []Sound
	for len(lines) > 0 {
		var s Sound
		if s, lines, err = ParseSound(lines); err != nil {
			return nil, err
		}
		sounds = append(sounds, s)
	}
	return sounds, nil
}

// ParseSound reads the sound at the beginning of lines, and returns the lines after it. ErrText.
func ParseSound(lines [][]Word) (s Sound, rest [][]Word, err error) {
	head := lines[0]
	if head[0].Text != "sound" || len(head) != 2 {
		return s, nil, head[0].Errorf("expected sound NAME, found %.40q and %d words after it", head[0].Text, len(head)-1)
	}
	if s.Name, err = head[1].Name(); err != nil {
		return s, nil, err
	}
	parts := 0
	rest = lines[1:]
	for len(rest) > 0 && rest[0][0].Text[0] >= '0' && rest[0][0].Text[0] <= '9' {
		p, err := parsePart(rest[0])
		if err != nil {
			return s, nil, err
		}
		if parts += p.Repeat; parts > MaxParts || p.end() > float64(MaxSpan.Milliseconds()) {
			return s, nil, rest[0][0].Errorf("expected at most %d parts within %v, found %d that end at %g ms", MaxParts, MaxSpan, parts, p.end())
		}
		s.Parts, rest = append(s.Parts, p), rest[1:]
	}
	if len(s.Parts) == 0 {
		return s, nil, head[1].Errorf("expected parts of %s, which begin with a time in milliseconds; found none", s.Name)
	}
	return s, rest, nil
}

// parsePart reads a line: TIME KIND PITCH VALUE...
func parsePart(words []Word) (p Part, err error) {
	if len(words) < 3 {
		return p, words[len(words)-1].Errorf("expected a time, a kind and a pitch, found %d words", len(words))
	}
	p = Part{Gain: 0.5, Sustain: 1, Attack: 3, Release: 10, Repeat: 1, For: 100}
	if p.At, err = words[0].Float("a time in ms", words[0].Text, 0, float64(MaxSpan.Milliseconds())); err != nil {
		return p, err
	}
	kind := slices.Index(kinds, words[1].Text)
	if kind < 0 {
		return p, words[1].Errorf("expected tone, chirp or noise, found %.40q", words[1].Text)
	}
	p.Kind = Kind(kind)
	for text := range strings.SplitSeq(words[2].Text, "..") {
		hz, err := words[2].pitch(text)
		if err != nil {
			return p, err
		}
		p.Pitch = append(p.Pitch, hz)
	}
	switch n := len(p.Pitch); {
	case p.Kind == Tone && n != 1:
		return p, words[2].Errorf("expected one pitch for a tone, found %d", n)
	case p.Kind == Chirp && (n < 2 || n > 16):
		return p, words[2].Errorf("expected 2 to 16 pitches for a chirp, found %d", n)
	case p.Kind == Noise && (n != 2 || p.Pitch[0] >= p.Pitch[1]):
		return p, words[2].Errorf("expected a lower and a higher pitch for noise, found %.40q", words[2].Text)
	}
	seen := map[string]bool{}
	for _, w := range words[3:] {
		key, value, ok := strings.Cut(w.Text, "=")
		if !ok || seen[key] {
			return p, w.Errorf("expected a value by name, once, such as for=200, found %.40q", w.Text)
		}
		seen[key] = true
		if err := p.set(w, key, value); err != nil {
			return p, err
		}
	}
	if p.Attack+p.Decay+p.Release > p.For {
		if seen["attack"] || seen["decay"] || seen["release"] {
			return p, words[0].Errorf("expected attack, decay and release within %g ms, found %g", p.For, p.Attack+p.Decay+p.Release)
		}
		p.Attack, p.Release = p.For/4, p.For/2 // of a short part without an envelope of its own
	}
	if p.Repeat > 1 && p.Every == 0 {
		p.Every = p.For
	}
	return p, nil
}

// set sets a value by its name.
func (p *Part) set(w Word, key, value string) (err error) {
	float := func(to *float64, low, high float64) {
		*to, err = w.Float(key, value, low, high)
	}
	swing := func(to *Swing, rate, depth float64) {
		a, b, ok := strings.Cut(value, "x")
		if !ok {
			err = w.Errorf("expected %s as RATExDEPTH, found %.40q", key, value)
			return
		}
		if to.Rate, err = w.Float(key, a, 0.01, rate); err == nil {
			to.Depth, err = w.Float(key, b, 0, depth)
		}
	}
	switch span := float64(MaxSpan.Milliseconds()); key {
	case "for":
		float(&p.For, 1, span)
	case "gain":
		float(&p.Gain, 0, 1)
	case "attack":
		float(&p.Attack, 0, span)
	case "decay":
		float(&p.Decay, 0, span)
	case "release":
		float(&p.Release, 0, span)
	case "sustain":
		float(&p.Sustain, 0, 1)
	case "every":
		float(&p.Every, 1, span)
	case "vibrato":
		swing(&p.Vibrato, 50, 1200)
	case "tremolo":
		swing(&p.Tremolo, 50, 1)
	case "fm":
		swing(&p.FM, 16, 20)
	case "wave":
		i := slices.Index(waves, value)
		if i < 0 {
			return w.Errorf("expected a wave of %s, found %.40q", strings.Join(waves, ", "), value)
		}
		p.Wave = Wave(i)
	case "repeat":
		n := 0.0
		if float(&n, 1, MaxParts); err == nil && n != math.Trunc(n) {
			return w.Errorf("expected a whole number of times, found %.40q", value)
		}
		p.Repeat = max(1, int(n))
	default:
		return w.Errorf("expected for, gain, attack, decay, sustain, release, wave, vibrato, tremolo, fm, repeat or every, found %.40q", key)
	}
	return err
}

// note is a pitch by its name: a letter, "s" for a sharp, and the octave.
var note = regexp.MustCompile(`^([a-gA-G])(s?)([0-8])$`)

// pitch reads hertz or a note.
func (w Word) pitch(text string) (float64, error) {
	if m := note.FindStringSubmatch(text); m != nil {
		semitone := map[byte]int{'c': 0, 'd': 2, 'e': 4, 'f': 5, 'g': 7, 'a': 9, 'b': 11}[m[1][0]|0x20]
		octave := int(m[3][0] - '0')
		text = strconv.FormatFloat(440*math.Pow(2, float64(semitone+len(m[2])-9)/12+float64(octave-4)), 'f', 3, 64)
	}
	return w.Float("a pitch in Hz or a note such as c5 or fs4", text, MinPitch, MaxPitch)
}

// AppendText appends a sound in the form that Parse reads, every value named. Notes are written as hertz.
func (s *Sound) AppendText(b []byte) []byte {
	b = fmt.Appendf(b, "sound %s\n", s.Name)
	for i := range s.Parts {
		p := &s.Parts[i]
		var pitch []string
		for _, hz := range p.Pitch {
			pitch = append(pitch, strconv.FormatFloat(hz, 'f', -1, 64))
		}
		f := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
		b = fmt.Appendf(b, "%-7s %-6s %s for=%s gain=%s attack=%s release=%s", f(p.At), kinds[p.Kind], strings.Join(pitch, ".."), f(p.For), f(p.Gain), f(p.Attack), f(p.Release))
		if p.Wave != Sine {
			b = fmt.Appendf(b, " wave=%s", waves[p.Wave])
		}
		if p.Decay != 0 {
			b = fmt.Appendf(b, " decay=%s", f(p.Decay))
		}
		if p.Sustain != 1 {
			b = fmt.Appendf(b, " sustain=%s", f(p.Sustain))
		}
		for _, x := range []struct {
			name string
			of   Swing
		}{{"vibrato", p.Vibrato}, {"tremolo", p.Tremolo}, {"fm", p.FM}} {
			if x.of != (Swing{}) {
				b = fmt.Appendf(b, " %s=%sx%s", x.name, f(x.of.Rate), f(x.of.Depth))
			}
		}
		if p.Repeat > 1 {
			b = fmt.Appendf(b, " repeat=%d", p.Repeat)
		}
		if p.Every != 0 {
			b = fmt.Appendf(b, " every=%s", f(p.Every))
		}
		b = append(b, '\n')
	}
	return b
}
