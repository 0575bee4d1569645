package voice

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"time"

	"kennel/edge/sound"
)

// State is the state of an utterance, by the numbers of the original's protocol (part of VEC-AUD-09).
type State uint8

// The states.
const (
	Invalid    State = iota // it cannot be spoken, or was canceled
	Generating              // speech is being made
	Ready                   // its beginning is made
	Playing
	Finished
)

// String returns "invalid", "generating", "ready", "playing" or "finished".
func (s State) String() string {
	names := [...]string{"invalid", "generating", "ready", "playing", "finished"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Speaker speaks texts through a mixer, one at a time. All methods may be called concurrently.
type Speaker struct {
	m     *sound.Mixer
	synth Synthesizer

	mu      sync.Mutex
	busy    bool
	visemes []shapeAt // of what plays
}

// shapeAt is a shape at a place of the mixer.
type shapeAt struct {
	at    int64
	shape Shape
}

// NewSpeaker returns a speaker with a synthesiser's voice.
func NewSpeaker(m *sound.Mixer, s Synthesizer) *Speaker { return &Speaker{m: m, synth: s} }

// made is the speech of a sentence.
type made struct {
	u   Utterance
	err error
}

// Say speaks a text in a character's voice, and returns when it was heard. told, if set, gets each state once, in order: Invalid comes last if anything failed. The end of ctx
// silences it within 100 ms, also while speech is being made. ErrText, ErrBusy, sound.ErrFull, sound.ErrRange, and what the synthesiser answers.
func (s *Speaker) Say(ctx context.Context, r Request, c Character, told func(State)) (err error) {
	if told == nil {
		told = func(State) {}
	}
	s.mu.Lock()
	if s.busy {
		s.mu.Unlock()
		return ErrBusy
	}
	s.busy = true
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	sentences := make(chan made, 1)
	var making sync.WaitGroup
	var playing []*sound.Playing
	defer func() {
		if err != nil {
			for _, p := range playing {
				p.Stop(10 * time.Millisecond)
			}
		}
		cancel()
		making.Wait()
		s.mu.Lock()
		s.busy, s.visemes = false, nil
		s.mu.Unlock()
		if err != nil {
			told(Invalid)
		}
	}()
	text, err := Clean(r.Text)
	if err != nil {
		return err
	}
	if _, _, err := r.factors(); err != nil {
		return err
	}
	told(Generating)
	making.Go(func() { s.make(ctx, text, r, c, sentences) })
	next := int64(0)
	for {
		var piece made
		var more bool
		select {
		case piece, more = <-sentences:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !more {
			break
		}
		if piece.err != nil {
			return piece.err
		}
		if next == 0 {
			told(Ready)
		}
		p, err := s.m.Play(piece.u.Sound, sound.Options{Channel: sound.Speech, At: next})
		if err != nil {
			return err
		}
		s.show(piece.u.Visemes, p.At())
		if next == 0 {
			told(Playing)
		}
		next = p.At() + int64(len(piece.u.Sound.Samples))
		if playing = append(playing, p); len(playing) > 1 { // one is heard, one waits for its end
			if err := wait(ctx, playing[0]); err != nil {
				return err
			}
			playing = playing[1:]
		}
	}
	for _, p := range playing {
		if err := wait(ctx, p); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	told(Finished)
	return nil
}

// wait returns when a sound has ended, or with the error of ctx.
func wait(ctx context.Context, p *sound.Playing) error {
	select {
	case <-p.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// make makes speech of a text, sentence by sentence, and closes to.
func (s *Speaker) make(ctx context.Context, text string, r Request, c Character, to chan<- made) {
	defer close(to)
	for _, sentence := range Sentences(text) {
		r.Text = sentence
		u, err := s.synth.Speak(ctx, r)
		if err == nil {
			u, err = c.Apply(u)
		}
		if err == nil {
			u.Sound, err = u.Sound.At(s.m.Rate())
		}
		select {
		case to <- made{u, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// show adds the shapes of a sentence whose sound begins at a place.
func (s *Speaker) show(visemes []Viseme, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range visemes {
		s.visemes = append(s.visemes, shapeAt{at + int64(v.At.Seconds()*float64(s.m.Rate())), v.Shape})
	}
}

// Mouth returns the shape of the mouth for what is mixed now, Silence if nothing is spoken.
func (s *Speaker) Mouth() Shape { return s.MouthAt(s.m.Position()) }

// MouthAt returns the shape of the mouth at a place of the mixer.
func (s *Speaker) MouthAt(place int64) Shape {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := sort.Search(len(s.visemes), func(i int) bool { return s.visemes[i].at > place })
	if i == 0 {
		return Silence
	}
	return s.visemes[i-1].shape
}
