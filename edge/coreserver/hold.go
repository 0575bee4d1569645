package coreserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"kennel/edge/corelink"
	"kennel/edge/rt"
	"kennel/infra/durable"
	"kennel/infra/logging"
)

// holdFile keeps a person's hold below the root, so that it outlives robotd.
const holdFile = "run/hold.json"

// maxWords bounds each text of a hold, in bytes: both fit a line of a page.
const maxWords = 90

// held is a person's hold; the zero value is none.
type held struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// check reports why h cannot be kept or shown.
func (h *held) check() error {
	for name, s := range map[string]string{"by": h.By, "reason": h.Reason} {
		if s == "" || len(s) > maxWords || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			return fmt.Errorf("%s %.40q: want 1 to %d bytes of text", name, s, maxWords)
		}
	}
	return nil
}

// parseHeld reads a hold as it is kept.
func parseHeld(b []byte) (h held, err error) {
	if err := json.Unmarshal(b, &h); err != nil {
		return held{}, err
	}
	return h, h.check()
}

func (h *held) words() string { return fmt.Sprintf("held by %s because %s", h.By, h.Reason) }

// halts is who keeps the loop halted.
type halts struct {
	change sync.Mutex // held while the file changes; before mu
	mu     sync.Mutex
	hold   held // a person
	peer   bool // a peer, until a Resume
}

func (s *Server) held() held {
	s.halts.mu.Lock()
	defer s.halts.mu.Unlock()
	return s.halts.hold
}

// keepHeld sets the hold and tells it to every peer.
func (s *Server) keepHeld(ctx context.Context, h held) {
	s.halts.mu.Lock()
	s.halts.hold = h
	s.halts.mu.Unlock()
	m := &corelink.Held{By: h.By, Reason: h.Reason}
	if h.By != "" {
		m.SinceMS = h.Since.UnixMilli()
	}
	s.say(ctx, m)
}

// StayHeld halts the loop if a person holds the robot, also since before this robotd began. Call it before the body is opened: a held robot does
// not calibrate. A hold that cannot be read holds.
func (s *Server) StayHeld(ctx context.Context) error {
	b, err := s.atRoot(func(root *os.Root) ([]byte, error) { return root.ReadFile(holdFile) })
	if errors.Is(err, fs.ErrNotExist) {
		s.keepHeld(ctx, held{})
		return nil
	}
	h, perr := parseHeld(b)
	if err = errors.Join(err, perr); err != nil {
		err = fmt.Errorf("read %s: %w", holdFile, err)
		h = held{By: "robotd", Reason: "the note of a hold cannot be read", Since: time.Now()}
	}
	s.cfg.Log.WarnContext(ctx, "robot held", "by", h.By, "reason", h.Reason, logging.Err, err)
	s.keepHeld(ctx, h)
	s.halt()
	return err
}

func (s *Server) atRoot(f func(*os.Root) ([]byte, error)) ([]byte, error) {
	root, err := os.OpenRoot(s.cfg.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close() // nothing buffered
	return f(root)
}

// hold halts the robot for a person, and then notes it. A hold of an earlier person is replaced.
func (s *Server) hold(ctx context.Context, by, reason string) error {
	h := held{By: by, Reason: reason, Since: time.Now().UTC().Truncate(time.Second)}
	if err := h.check(); err != nil {
		return err
	}
	s.halts.change.Lock()
	defer s.halts.change.Unlock()
	s.keepHeld(ctx, h)
	s.halt()
	s.cfg.Log.WarnContext(ctx, "robot held", "by", h.By, "reason", h.Reason)
	b, err := json.Marshal(h)
	if err == nil {
		_, err = s.atRoot(func(root *os.Root) ([]byte, error) { return nil, durable.Write(root, holdFile, b, 0o600, 0o755) })
	}
	if err != nil {
		return fmt.Errorf("the robot is held until robotd restarts: %w", err)
	}
	return nil
}

// unhold ends a person's hold.
func (s *Server) unhold(ctx context.Context) error {
	s.halts.change.Lock()
	defer s.halts.change.Unlock()
	_, err := s.atRoot(func(root *os.Root) ([]byte, error) { return nil, root.Remove(holdFile) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the robot is held as before: %w", err)
	}
	s.cfg.Log.InfoContext(ctx, "hold released", "by", s.held().By)
	s.keepHeld(ctx, held{})
	s.stay()
	return nil
}

// setHalted notes a Halt or Resume of a peer.
func (s *Server) setHalted(on bool) {
	s.halts.mu.Lock()
	s.halts.peer = on
	s.halts.mu.Unlock()
	if on {
		s.halt()
	}
	s.stay()
}

// halt stops the loop in its next step.
func (s *Server) halt() { s.cfg.Loop.Halt() }

// stay brings the loop to the state that peers and people want. A Resume is posted only to a loop that has halted: in one step it would be
// overtaken by the halt.
func (s *Server) stay() {
	s.halts.mu.Lock()
	want := s.halts.peer || s.halts.hold.By != ""
	s.halts.mu.Unlock()
	var snap rt.Snapshot
	if s.cfg.Loop.Snapshot(&snap) && snap.Halted && !want {
		s.cfg.Loop.Post(rt.Command{Kind: rt.Resume}) // one that finds the mailbox full is posted again by the next report
	}
}
