// Package vosk recognises speech with a Vosk server, over its WebSocket: a configuration, pieces of audio with an answer to each, and the end.
package vosk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"kennel/infra/errs"
	"kennel/speech/recognizer"
)

// Recognizer has one connection for each utterance.
type Recognizer struct{ url, name string }

// New returns a recogniser with the server at ws://HOST:PORT. A Vosk server knows one language; it gets all.
func New(server string) (*Recognizer, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" || u.User != nil {
		return nil, errs.New(errs.Invalid, "Vosk server %.100q: want ws://HOST:PORT", server)
	}
	return &Recognizer{server, "Vosk at " + u.Host}, nil
}

// Name returns "Vosk at HOST".
func (r *Recognizer) Name() string { return r.name }

// Open connects.
func (r *Recognizer) Open(ctx context.Context, _ recognizer.Expect) (recognizer.Stream, error) {
	conn, _, err := websocket.Dial(ctx, r.url, nil) //nolint:bodyclose // the library closes it
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	conn.SetReadLimit(1 << 20)
	if err := conn.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"config": {"sample_rate": %d}}`, recognizer.Rate)); err != nil {
		_ = conn.CloseNow() // the first error says more
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	s := &stream{r: r, ctx: ctx, conn: conn, done: make(chan struct{})}
	go s.read()
	return s, nil
}

type stream struct {
	r    *Recognizer
	ctx  context.Context
	conn *websocket.Conn
	done chan struct{} // closed when nothing more is read

	mu       sync.Mutex // of all below
	sent     int        // messages that get an answer
	answered int
	ended    bool
	said     []string // sentences that the server has ended
	sum      float64  // of the confidence of words
	words    int
	partial  string
	err      error
}

// answer is a message of the server.
type answer struct {
	Partial *string
	Text    *string
	Result  []struct{ Conf float64 }
}

// read reads answers until each message has one, or the connection ends.
func (s *stream) read() {
	defer close(s.done)
	for {
		_, b, err := s.conn.Read(s.ctx)
		s.mu.Lock()
		if err == nil {
			err = s.take(b)
		}
		if s.err = err; err != nil || s.ended && s.answered >= s.sent {
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
	}
}

func (s *stream) take(b []byte) error {
	var a answer
	if err := json.Unmarshal(b, &a); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if a.Text == nil && a.Partial == nil {
		return fmt.Errorf(`answer of %d bytes: want {"text": ...} or {"partial": ...}`, len(b))
	}
	s.answered++
	if a.Partial != nil {
		s.partial = *a.Partial
		return nil
	}
	s.partial = ""
	if *a.Text != "" {
		s.said = append(s.said, *a.Text)
	}
	for _, w := range a.Result {
		s.sum, s.words = s.sum+w.Conf, s.words+1
	}
	return nil
}

func (s *stream) Write(samples []int16) error {
	for piece := range slices.Chunk(samples, recognizer.Rate/5) {
		if err := s.send(websocket.MessageBinary, recognizer.AppendPCM(nil, piece), false); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) send(kind websocket.MessageType, b []byte, last bool) error {
	s.mu.Lock()
	s.sent++
	s.ended = last
	err := s.err
	s.mu.Unlock()
	if err == nil {
		err = s.conn.Write(s.ctx, kind, b)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.r.name, err)
	}
	return nil
}

func (s *stream) Partial() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimSpace(strings.Join(s.said, " ") + " " + s.partial)
}

// Finish waits for the answer to the end.
func (s *stream) Finish() (recognizer.Result, error) {
	if err := s.send(websocket.MessageText, []byte(`{"eof": 1}`), true); err != nil {
		return recognizer.Result{}, err
	}
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return recognizer.Result{}, fmt.Errorf("%s: %w", s.r.name, errors.Join(context.Cause(s.ctx), s.err))
	}
	confidence := 1.0 // a server that tells none
	if s.words > 0 {
		confidence = s.sum / float64(s.words)
	}
	return recognizer.Result{Text: strings.Join(s.said, " "), Confidence: confidence, By: s.r.name}, nil
}

func (s *stream) Close() error {
	_ = s.conn.CloseNow() // the result is there, or not wanted
	<-s.done
	return nil
}
