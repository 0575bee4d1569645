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

// holdFile keeps a person's hold and a peer's halt below the root, on the medium that outlives power, so that they
// outlive robotd and a boot.
const holdFile = "data/kennel/hold.json"

// maxWords bounds each text of a hold, in bytes: both fit a line of a page.
const maxWords = 90

// held is a person's hold; the zero value is none.
type held struct {
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
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

func (h *held) words() string { return fmt.Sprintf("held by %s because %s", h.By, h.Reason) }

// note says who keeps the loop halted; it is the content of holdFile. The zero value is no halt and no file.
type note struct {
	held      // a person, until Unhold
	Peer bool `json:"peer,omitempty"` // a peer, until a Resume
}

// parseNote reads the content of holdFile.
func parseNote(b []byte) (n note, err error) {
	if err := json.Unmarshal(b, &n); err != nil {
		return note{}, err
	}
	if n.Peer && n.held == (held{}) {
		return n, nil
	}
	return n, n.check()
}

// halts is the note of this robotd.
type halts struct {
	change sync.Mutex // held while the file changes; before mu
	mu     sync.Mutex
	now    note
}

func (s *Server) noted() note {
	s.halts.mu.Lock()
	defer s.halts.mu.Unlock()
	return s.halts.now
}

// setNote changes the note before the loop halts, so that nothing resumes it, and returns what it is now.
func (s *Server) setNote(change func(*note)) note {
	s.halts.mu.Lock()
	defer s.halts.mu.Unlock()
	change(&s.halts.now)
	return s.halts.now
}

// sayHeld tells every peer which person holds the robot.
func (s *Server) sayHeld(ctx context.Context, h held) {
	m := &corelink.Held{By: h.By, Reason: h.Reason}
	if h.By != "" {
		m.SinceMS = h.Since.UnixMilli()
	}
	s.say(ctx, m)
}

// StayHeld halts the loop if a person holds the robot or a peer halted it, also before this robotd began. Call it before the body is opened: a
// halted robot does not calibrate. A note that cannot be read holds.
func (s *Server) StayHeld(ctx context.Context) error {
	b, err := s.atRoot(func(root *os.Root) ([]byte, error) { return root.ReadFile(holdFile) })
	if errors.Is(err, fs.ErrNotExist) {
		s.sayHeld(ctx, held{})
		return nil
	}
	n, perr := parseNote(b)
	if err = errors.Join(err, perr); err != nil {
		err = fmt.Errorf("read %s: %w", holdFile, err)
		n = note{held: held{By: "robotd", Reason: "the note of a hold cannot be read", Since: time.Now()}}
	}
	s.cfg.Log.WarnContext(ctx, "robot still halted", "by", n.By, "reason", n.Reason, "peer", n.Peer, logging.Err, err)
	s.setNote(func(now *note) { *now = n })
	s.sayHeld(ctx, n.held)
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

// write brings n to holdFile.
func (s *Server) write(n note) error {
	_, err := s.atRoot(func(root *os.Root) ([]byte, error) {
		if n == (note{}) {
			if err := root.Remove(holdFile); !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			return nil, nil
		}
		b, err := json.Marshal(n)
		if err != nil {
			return nil, err
		}
		return nil, durable.Write(root, holdFile, b, 0o600, 0o755)
	})
	return err
}

// hold halts the robot for a person, and then notes it. A hold of an earlier person is replaced.
func (s *Server) hold(ctx context.Context, by, reason string) error {
	h := held{By: by, Reason: reason, Since: time.Now().UTC().Truncate(time.Second)}
	if err := h.check(); err != nil {
		return err
	}
	s.setNote(func(now *note) { now.held = h })
	s.halt() // before it waits for anything: a medium may hang
	s.sayHeld(ctx, h)
	s.cfg.Log.WarnContext(ctx, "robot held", "by", h.By, "reason", h.Reason)
	s.halts.change.Lock()
	defer s.halts.change.Unlock()
	if err := s.write(s.noted()); err != nil {
		return fmt.Errorf("the robot is held until robotd restarts: %w", err)
	}
	return nil
}

// unhold ends a person's hold.
func (s *Server) unhold(ctx context.Context) error {
	s.halts.change.Lock()
	defer s.halts.change.Unlock()
	was := s.noted()
	if err := s.write(note{Peer: was.Peer}); err != nil {
		return fmt.Errorf("the robot is held as before: %w", err)
	}
	s.cfg.Log.InfoContext(ctx, "hold released", "by", was.By)
	left := s.setNote(func(now *note) {
		if now.held == was.held { // else another person has taken the hold in between
			now.held = held{}
		}
	})
	s.sayHeld(ctx, left.held)
	s.stay()
	return nil
}

// setHalted does a Halt or Resume of a peer, and then notes it.
func (s *Server) setHalted(ctx context.Context, on bool) {
	changed := false
	s.setNote(func(now *note) { changed, now.Peer = now.Peer != on, on })
	if on {
		s.halt()
	}
	s.stay()
	if !changed {
		return
	}
	s.halts.change.Lock()
	defer s.halts.change.Unlock()
	if err := s.write(s.noted()); err != nil {
		s.cfg.Log.WarnContext(ctx, "peer halt not saved for the next start", "halted", on, logging.Err, err)
	}
}

// halt stops the loop in its next step.
func (s *Server) halt() { s.cfg.Loop.Halt() }

// stay brings the loop to the state that peers and people want. A Resume is posted only to a loop that has halted: in one step it would be
// overtaken by the halt.
func (s *Server) stay() {
	var snap rt.Snapshot
	if s.noted() == (note{}) && s.cfg.Loop.Snapshot(&snap) && snap.Halted {
		s.cfg.Loop.Post(rt.Command{Kind: rt.Resume}) // one that finds the mailbox full is posted again by the next report
	}
}
