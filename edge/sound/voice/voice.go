// Package voice speaks: a synthesiser makes speech of a text, a character makes it the robot's own, and a Speaker plays it with the state of the utterance and the
// shapes of the mouth.
//
//	text ─► Synthesizer ─► Utterance ─► Character ─► sound.Mixer
//	        espeak-ng, flite, a server   │
//	                                     └► visemes, for eyes and mouth
package voice

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kennel/edge/sound"
	"kennel/infra/errs"
)

// Errors of this package.
var (
	ErrText = errors.New("voice: text") // cannot be spoken
	ErrBusy = errors.New("voice: the robot speaks already")
)

// MaxText is the most characters of a text: about two minutes of speech.
const MaxText = 2000

// maxSpeech is the longest speech that is made of a text.
const maxSpeech = 10 * time.Minute

// Request says what to speak, and how. The zero value of all but Text is the synthesiser's own.
type Request struct {
	Text     string
	Language string  // such as en-US
	Voice    string  // a name that the synthesiser knows
	Speed    float64 // factor; 0: 1
	Pitch    float64 // factor; 0: 1
}

// The bounds of what a client asks of speech (part of VEC-AUD-08, VEC-TTS-05). The source says 0.5 for the least duration; another client documents 0.05.
const (
	MinDuration, MaxDuration = 0.05, 20
	MinScalar, MaxScalar     = -1, 1
)

// Scaled returns the request with a duration of so much the usual one, 0 for 1, and a pitch of -1 to 1: half an octave down or up. sound.ErrRange.
func (r Request) Scaled(duration, pitch float64) (Request, error) {
	if duration == 0 {
		duration = 1
	}
	if !(duration >= MinDuration && duration <= MaxDuration && pitch >= MinScalar && pitch <= MaxScalar) {
		return r, fmt.Errorf("%w: expected a duration of %g to %d and a pitch of %d to %d, found %g and %g", sound.ErrRange, MinDuration, MaxDuration, MinScalar, MaxScalar, duration, pitch)
	}
	r.Speed, r.Pitch = 1/duration, math.Pow(2, pitch/2)
	return r, nil
}

// Utterance is speech, with the shapes of the mouth.
type Utterance struct {
	Sound   *sound.Sound
	Visemes []Viseme // by time; may be empty
	Timed   bool     // the synthesiser told the times; else they are estimated
}

// Synthesizer makes speech of texts. All methods may be called concurrently.
type Synthesizer interface {
	Name() string
	// Speak returns a text as speech. The text has passed Clean. The end of ctx ends it within 100 ms.
	Speak(ctx context.Context, r Request) (Utterance, error)
}

// Clean returns a text as it is spoken: one space between words, without control characters, and without what synthesisers take for commands. ErrText for one without a letter
// or a digit, longer than MaxText, or that is no UTF-8.
func Clean(text string) (string, error) {
	if len(text) > 4*MaxText || utf8.RuneCountInString(text) > MaxText {
		return "", fmt.Errorf("%w: expected at most %d characters, found %d", ErrText, MaxText, utf8.RuneCountInString(text))
	}
	if !utf8.ValidString(text) {
		return "", fmt.Errorf("%w: expected UTF-8, found %.40q", ErrText, text)
	}
	spoken := false
	text = strings.Map(func(r rune) rune {
		spoken = spoken || unicode.IsLetter(r) || unicode.IsDigit(r)
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
			return -1
		}
		switch r {
		case '[', '{', '<', '\\', '|': // phonemes and markup of one synthesiser or another
			return '('
		case ']', '}', '>':
			return ')'
		}
		return r
	}, text)
	if !spoken {
		return "", fmt.Errorf("%w: expected a letter or a digit, found %.40q", ErrText, text)
	}
	return strings.Join(strings.Fields(text), " "), nil
}

// Sentences cuts a clean text after full stops, question and exclamation marks, so that the first is heard while the next is made. Short ones stay together.
func Sentences(text string) (all []string) {
	const least = 25 // bytes of a piece
	begin := 0
	for i, r := range text {
		if !strings.ContainsRune(".!?。！？", r) {
			continue
		}
		end := i + utf8.RuneLen(r)
		wide := utf8.RuneLen(r) > 1
		if (wide || strings.HasPrefix(text[end:], " ")) && end-begin >= least {
			if piece := strings.TrimSpace(text[begin:end]); hasSpoken(piece) && hasSpoken(text[end:]) {
				all, begin = append(all, piece), end
			}
		}
	}
	return append(all, strings.TrimSpace(text[begin:]))
}

func hasSpoken(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// factors returns speed and pitch, 1 unless they are set. sound.ErrRange.
func (r Request) factors() (speed, pitch float64, err error) {
	speed, pitch = r.Speed, r.Pitch
	if speed == 0 {
		speed = 1
	}
	if pitch == 0 {
		pitch = 1
	}
	if !(speed >= sound.MinSpeed && speed <= sound.MaxSpeed && pitch >= sound.MinPitch && pitch <= sound.MaxPitch) {
		return 0, 0, fmt.Errorf("%w: expected a speed of %g to %d and a pitch of %g to %d, found %g and %g", sound.ErrRange, sound.MinSpeed, sound.MaxSpeed, sound.MinPitch, sound.MaxPitch, speed, pitch)
	}
	return speed, pitch, nil
}

// Shaped returns an utterance at another speed and pitch: for synthesisers that have none of their own.
func (u Utterance) Shaped(speed, pitch float64) (Utterance, error) {
	s, err := u.Sound.Stretch(speed, pitch)
	if err != nil {
		return u, err
	}
	out := Utterance{Sound: s, Timed: u.Timed, Visemes: make([]Viseme, len(u.Visemes))}
	for i, v := range u.Visemes {
		out.Visemes[i] = Viseme{time.Duration(float64(v.At) / speed), v.Shape}
	}
	return out, nil
}

// tooLong returns an error for speech that no one would wait for.
func tooLong(name string, s *sound.Sound) error {
	if s.Span() > maxSpeech {
		return errs.New(errs.Invalid, "%s: expected at most %v of speech, found %v", name, maxSpeech, s.Span())
	}
	return nil
}
