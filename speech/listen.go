package speech

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kennel/infra/errs"
	"kennel/speech/endpoint"
	"kennel/speech/intent"
	"kennel/speech/knowledge"
	"kennel/speech/ogg"
	"kennel/speech/recognizer"
	"kennel/speech/session"
)

// Bounds, in samples.
const (
	// preRoll is how much of the audio before speech was noticed belongs to it: the detector needs some of a word, and words begin softly.
	preRoll = 400 * recognizer.Rate / 1000
	chunk   = 100 * recognizer.Rate / 1000 // is looked at, at once
)

// margin is how long before the end of a caller's context it is answered.
const margin = 500 * time.Millisecond

// errTime ends the work of a request whose time is over.
var errTime = errors.New("the time limit of the request has passed")

// Listen answers a spoken request within Config.Deadline, whatever hangs. An error is one for the robot: Unavailable if nothing can be understood
// now, Invalid for audio that is none, Exhausted if too many speak at once.
func (s *Service) Listen(ctx context.Context, r Request, audio Audio) (Answer, error) {
	at := time.Now()
	deadline, until := s.cfg.Deadline, s.cfg.Listen
	if end, ok := ctx.Deadline(); ok && at.Add(deadline).After(end.Add(-margin)) { // a robot with less patience
		deadline = time.Until(end) - margin
		until = min(until, max(deadline-(s.cfg.Deadline-s.cfg.Listen), deadline/2))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, deadline, errTime)
	defer cancel()
	select {
	case s.places <- struct{}{}:
	default:
		return s.end(ctx, r, string(r.Encoding), at, fail(session.Audio, errs.RetryLater(time.Second, "too many spoken requests at once", nil)))
	}
	h := &hearing{s: s, ctx: ctx, r: r, audio: audio, until: at.Add(until), detector: endpoint.New(s.cfg.Endpoint), done: make(chan outcome, 1)}
	h.works.Store(1)
	h.at(session.Audio)
	if r.Encoding == Opus {
		h.opus = ogg.NewDecoder()
	}
	h.gap = time.NewTimer(s.cfg.Gap)
	defer h.gap.Stop()
	late := time.NewTimer(until)
	defer late.Stop()
	go h.run()
	for {
		select {
		case o := <-h.done:
			if !h.overAt.IsZero() {
				at = h.overAt
			}
			return s.end(ctx, r, string(r.Encoding), at, o)
		case <-ctx.Done():
			return s.end(ctx, r, string(r.Encoding), at, h.hung())
		case <-late.C:
		case <-h.gap.C:
		}
		// The robot stopped sending, or does not stop: what it sent is the request. While it is being recognised, the deadline decides.
		if h.mu.TryLock() {
			if !h.closed {
				h.closed = true
				h.works.Add(1)
				go func() {
					defer h.leave()
					h.finish()
				}()
			}
			h.mu.Unlock()
		}
	}
}

// hearing is one spoken request. Its goroutine reads the audio; Listen takes the rest over from it if the audio stops coming.
type hearing struct {
	s     *Service
	ctx   context.Context
	r     Request
	audio Audio
	until time.Time // the end of listening
	gap   *time.Timer
	done  chan outcome // gets the one outcome, whether Listen still waits or not
	works atomic.Int32 // goroutines that use a place
	step  atomic.Value // session.Step that is being waited for

	mu       sync.Mutex // of closed, and of all below until closed; held while the recogniser is used
	closed   bool       // further audio is ignored
	opus     *ogg.Decoder
	pcm      []int16
	half     []byte // of a sample, at the end of a piece
	heard    int    // samples
	detector *endpoint.Detector
	before   []int16 // the audio before speech
	stream   recognizer.Stream
	kept     []int16
	overAt   time.Time // when the end of speech was noticed
}

func (h *hearing) at(s session.Step) { h.step.Store(s) }

func (h *hearing) leave() {
	if h.works.Add(-1) == 0 {
		<-h.s.places
	}
}

// run reads the audio until speech has ended, and answers.
func (h *hearing) run() {
	defer h.leave()
	for {
		b, err := h.audio.Next()
		h.mu.Lock()
		if h.closed {
			h.mu.Unlock()
			return
		}
		h.gap.Reset(h.s.cfg.Gap)
		over := false
		switch {
		case err == nil:
			over, err = h.hear(b)
			over = over || time.Now().After(h.until)
		case errors.Is(err, io.EOF):
			over, err = true, nil
		case h.ctx.Err() == nil:
			err = failure{session.Audio, err}
		}
		h.closed = over || err != nil
		h.mu.Unlock()
		switch {
		case err != nil:
			h.give(h.failed(err))
			return
		case over:
			h.finish()
			return
		}
	}
}

// errDeaf is of a language that no recogniser hears.
var errDeaf = errors.New("no recogniser hears the language")

// deaf has the sentence of a robot whose language no recogniser hears, by that language; "": for all others.
var deaf = map[string]string{
	"":   "I do not understand this language here yet. A speech recogniser for it is missing.",
	"de": "Ich verstehe hier noch kein Deutsch. Dafür fehlt eine Spracherkennung.",
}

// failure is an error at a step.
type failure struct {
	step session.Step
	error
}

func (h *hearing) failed(err error) outcome {
	f := failure{session.Audio, err}
	errors.As(err, &f)
	o := fail(f.step, f.error)
	switch {
	case errors.Is(f.error, errDeaf) && !h.r.SpeechOnly:
		o.answer.Language = h.s.language(h.r)
		language, _, _ := strings.Cut(o.answer.Language, "-")
		said, own := deaf[language]
		if !own {
			said, o.answer.Language = deaf[""], english
		}
		o.err = nil
		o.say(h.r, knowledge.Answer{Spoken: said})
	case f.step == session.Recognize:
		o.err = errs.RetryLater(time.Second, "speech recognition is not available", f.error)
	}
	return o
}

// hear takes a piece of audio, and reports whether speech is over.
func (h *hearing) hear(b []byte) (over bool, err error) {
	if h.opus == nil {
		return h.samples(h.decode(b))
	}
	h.opus.Feed(b)
	for {
		pcm, err := h.opus.Next()
		if err != nil {
			return false, failure{session.Audio, err}
		}
		if pcm == nil {
			return false, nil
		}
		if over, err := h.samples(pcm); over || err != nil {
			return over, err
		}
	}
}

// decode returns the samples of PCM. A piece may end within a sample.
func (h *hearing) decode(b []byte) []int16 {
	if len(h.half) > 0 {
		b, h.half = append(h.half, b...), nil
	}
	if len(b)%2 != 0 {
		h.half = []byte{b[len(b)-1]}
	}
	h.pcm = slices.Grow(h.pcm[:0], len(b)/2)[:len(b)/2]
	for i := range h.pcm {
		h.pcm[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return h.pcm
}

func (h *hearing) samples(all []int16) (over bool, err error) {
	for piece := range slices.Chunk(all, chunk) {
		h.heard += len(piece)
		if h.s.cfg.Audio != nil && h.r.SaveAudio && !h.r.SkipDAS && h.r.Thing != "" {
			h.kept = append(h.kept, piece...)
		}
		state := h.detector.Write(piece)
		switch {
		case state == endpoint.Silent:
			return true, nil
		case state == endpoint.Waiting:
			if h.before = append(h.before, piece...); len(h.before) > 2*preRoll {
				h.before = append(h.before[:0], h.before[len(h.before)-preRoll:]...)
			}
			continue
		case h.stream == nil:
			if err := h.open(); err != nil {
				return false, failure{session.Recognize, err}
			}
		}
		h.at(session.Recognize)
		if err := h.stream.Write(piece); err != nil {
			return false, failure{session.Recognize, err}
		}
		h.at(session.Endpoint)
		if state >= endpoint.Ended {
			return true, nil
		}
	}
	return false, nil
}

// open begins to recognise, with the audio from before speech was noticed.
func (h *hearing) open() (err error) {
	if h.s.cfg.Recognizer == nil {
		return errs.New(errs.Unavailable, "this cloud has no speech recogniser")
	}
	h.at(session.Recognize)
	e := recognizer.Expect{Language: h.s.language(h.r)}
	if h.s.cfg.Grammar != nil {
		e.Grammar = h.s.cfg.Grammar(h.ctx, h.s.listener(h.r))
	}
	if one, ok := h.s.cfg.Recognizer.(recognizer.Monolingual); ok && !one.Hears(e.Language) { // the answer waits for the end of the speech
		h.stream = recognizer.Whole(h.ctx, time.Minute, func(context.Context, []byte) (recognizer.Result, error) {
			return recognizer.Result{}, fmt.Errorf("%w %.20q", errDeaf, e.Language)
		})
	} else if h.stream, err = h.s.cfg.Recognizer.Open(h.ctx, e); err != nil {
		return err
	}
	if n := len(h.before); n > preRoll {
		h.before = h.before[n-preRoll:]
	}
	err, h.before = h.stream.Write(h.before), nil
	return err
}

// finish answers, once no further audio is taken.
func (h *hearing) finish() {
	h.overAt = time.Now()
	o := h.result()
	o.audio = time.Duration(h.heard) * time.Second / recognizer.Rate
	o.pause = h.detector.Pause()
	h.give(o)
}

func (h *hearing) result() outcome {
	if h.stream == nil {
		o := outcome{failed: session.Endpoint, why: "no speech was heard", answer: Answer{Question: h.r.Kind == Knowledge}}
		if h.heard == 0 {
			o.failed, o.why = session.Audio, "no audio came"
		}
		if h.r.Kind != Knowledge && !h.r.SpeechOnly {
			o.answer.Intent = intent.Match{UserIntent: "silence", Cloud: Silence, Confidence: 1}
		}
		return o
	}
	h.at(session.Recognize)
	began := time.Now()
	r, err := h.stream.Finish()
	took := time.Since(began)
	if err != nil {
		return h.failed(failure{session.Recognize, err})
	}
	h.at(session.Answer)
	var o outcome
	if r.Text = strings.TrimSpace(r.Text); r.Text == "" { // a person spoke, and was not understood
		o = outcome{failed: session.Recognize, why: "no words were understood", answer: Answer{Question: h.r.Kind == Knowledge}}
		if h.r.Kind != Knowledge && !h.r.SpeechOnly {
			o.answer.Intent.Cloud = Unmatched
		}
	} else {
		o = h.s.answer(h.ctx, h.r, r.Text, r.Confidence, h.s.language(h.r))
	}
	o.by, o.recognized = r.By, took
	return o
}

// give ends the request with o.
func (h *hearing) give(o outcome) {
	if h.stream != nil {
		_ = h.stream.Close() // its result is there, or not wanted
	}
	if len(h.kept) > 0 {
		h.s.cfg.Audio.Keep(context.WithoutCancel(h.ctx), h.r.Thing, h.r.Session, h.kept)
	}
	h.done <- o
}

// hung is the outcome of a request that was not answered in time, or that the robot gave up. It touches nothing that the hanging goroutine has.
func (h *hearing) hung() outcome {
	step := h.step.Load().(session.Step)
	if !errors.Is(context.Cause(h.ctx), errTime) {
		return fail(step, context.Cause(h.ctx))
	}
	return outcome{failed: step, why: "no answer in time",
		err: errs.RetryLater(time.Second, "speech recognition is not available: no answer in time from the step "+string(step), nil)}
}
