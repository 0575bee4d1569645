// Package transcribe recognises speech with Amazon Transcribe, while it is spoken.
package transcribe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/transcribestreaming"
	"github.com/aws/aws-sdk-go-v2/service/transcribestreaming/types"

	"kennel/speech/recognizer"
)

// Recognizer has one event stream for each utterance.
type Recognizer struct{ client *transcribestreaming.Client }

// New returns a recogniser with the region, the credentials and the endpoint of cfg.
func New(cfg aws.Config) *Recognizer {
	return &Recognizer{transcribestreaming.NewFromConfig(cfg, func(o *transcribestreaming.Options) { o.RetryMaxAttempts = 1 })}
}

// Name returns "transcribe".
func (r *Recognizer) Name() string { return "transcribe" }

// Open begins an event stream.
func (r *Recognizer) Open(ctx context.Context, e recognizer.Expect) (recognizer.Stream, error) {
	out, err := r.client.StartStreamTranscription(ctx, &transcribestreaming.StartStreamTranscriptionInput{
		LanguageCode: types.LanguageCode(e.Language), MediaEncoding: types.MediaEncodingPcm, MediaSampleRateHertz: aws.Int32(recognizer.Rate),
	})
	if err != nil {
		return nil, fmt.Errorf("transcribe: %w", err)
	}
	s := &stream{ctx: ctx, events: out.GetStream(), done: make(chan struct{})}
	go s.read()
	return s, nil
}

type stream struct {
	ctx    context.Context
	events *transcribestreaming.StartStreamTranscriptionEventStream
	done   chan struct{} // closed when no further event comes

	mu      sync.Mutex // of all below
	said    []string   // of results that stay
	partial string
	sum     float64 // of the confidence of words
	words   int
}

func (s *stream) read() {
	defer close(s.done)
	for e := range s.events.Events() {
		t, ok := e.(*types.TranscriptResultStreamMemberTranscriptEvent)
		if !ok || t.Value.Transcript == nil {
			continue
		}
		s.mu.Lock()
		for _, r := range t.Value.Transcript.Results {
			if len(r.Alternatives) > 0 {
				s.take(r.Alternatives[0], r.IsPartial)
			}
		}
		s.mu.Unlock()
	}
}

func (s *stream) take(a types.Alternative, partial bool) {
	text := strings.TrimSpace(aws.ToString(a.Transcript))
	if partial {
		s.partial = text
		return
	}
	s.partial = ""
	if text != "" {
		s.said = append(s.said, text)
	}
	for _, i := range a.Items {
		if i.Confidence != nil {
			s.sum, s.words = s.sum+*i.Confidence, s.words+1
		}
	}
}

// Write sends samples in events of at most 100 ms.
func (s *stream) Write(samples []int16) error {
	for piece := range slices.Chunk(samples, recognizer.Rate/10) {
		event := &types.AudioStreamMemberAudioEvent{Value: types.AudioEvent{AudioChunk: recognizer.AppendPCM(nil, piece)}}
		if err := s.events.Send(s.ctx, event); err != nil {
			return fmt.Errorf("transcribe: %w", err)
		}
	}
	return nil
}

func (s *stream) Partial() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimSpace(strings.Join(s.said, " ") + " " + s.partial)
}

// Finish ends the audio and waits until Transcribe ends the stream.
func (s *stream) Finish() (recognizer.Result, error) {
	if err := s.events.Writer.Close(); err != nil {
		return recognizer.Result{}, fmt.Errorf("transcribe: %w", err)
	}
	select {
	case <-s.done:
	case <-s.ctx.Done():
		return recognizer.Result{}, fmt.Errorf("transcribe: %w", context.Cause(s.ctx))
	}
	if err := s.events.Err(); err != nil {
		return recognizer.Result{}, fmt.Errorf("transcribe: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	confidence := 1.0 // an answer that tells none
	if s.words > 0 {
		confidence = s.sum / float64(s.words)
	}
	return recognizer.Result{Text: strings.Join(s.said, " "), Confidence: confidence, By: "transcribe"}, nil
}

func (s *stream) Close() error {
	_ = s.events.Close() // the result is there, or not wanted
	<-s.done
	return nil
}
