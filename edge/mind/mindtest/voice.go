package mindtest

import (
	"context"
	"math"
	"time"

	"kennel/edge/mind"
	"kennel/edge/mind/mindlink"
	"kennel/edge/robot"
	"kennel/edge/sound"
	"kennel/edge/sound/bank"
	"kennel/edge/sound/voice"
)

// Voice is the part that makes the body of coreservertest speak.
var Voice = robot.Part{Path: "voice", Is: []string{"TextToSpeech"}, Uses: map[string][]string{"TextToSpeech": {"robot.body.speaker"}}}

// Tone returns a sine that no limit of the mixer changes, and that has no sample of 0.
func Tone(span time.Duration) *sound.Sound {
	s := &sound.Sound{Rate: mindlink.SoundRate, Samples: make([]float32, int(span.Seconds()*mindlink.SoundRate))}
	for i := range s.Samples {
		s.Samples[i] = float32(0.25 * math.Sin(2*math.Pi*441*(float64(i)+0.5)/mindlink.SoundRate))
	}
	return s
}

// Synthesizer says every text with the same tone; "never" takes it for ever.
type Synthesizer struct{ Span time.Duration }

// Name implements voice.Synthesizer.
func (Synthesizer) Name() string { return "tone" }

// Speak implements voice.Synthesizer.
func (s Synthesizer) Speak(ctx context.Context, r voice.Request) (voice.Utterance, error) {
	if r.Text == "never" {
		<-ctx.Done()
		return voice.Utterance{}, ctx.Err()
	}
	return voice.Utterance{Sound: Tone(s.Span), Visemes: []voice.Viseme{{Shape: voice.AA}}}, nil
}

// Sound returns the sounds of a robot that says every text as a tone, and has the sound beep of 0.3 s.
func (s Synthesizer) Sound() mind.Sound {
	return mind.Sound{Banks: []*bank.Bank{bank.One("beep", Tone(300*time.Millisecond))}, Voice: func() (voice.Synthesizer, error) { return s, nil }}
}
