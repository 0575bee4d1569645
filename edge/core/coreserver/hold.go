package coreserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"
	"time"

	"kennel/edge/core/corelink"
	"kennel/edge/core/coreserver/holdfile"
	"kennel/edge/core/rt"
	"kennel/infra/atomicfile"
	"kennel/infra/logging"
)

// Own defaults.
const (
	maxSaves   = 64          // changes that wait for the medium: more than peers ask for while it syncs
	wordsEvery = time.Second // how often the words of a hold are looked for in the user data
)

// halts says why the loop of this robotd is halted.
type halts struct {
	saves chan func()    // changes on disk, in their order: no request waits for the medium
	disk  *holdfile.Note // what was saved last; nil: not known
	note  *holdfile.Note // the note on disk; nil: there is none
	over  bool           // it counts no longer
	older *holdfile.Note // what the files say if the journal could not be brought up to date; nil: it was

	say sync.Mutex // orders what peers are told; before mu

	mu    sync.Mutex
	now   holdfile.Note
	id    uint64 // of its hold; 0: none
	last  uint64 // id of the newest hold
	saved bool   // its words should be in the note on disk: they were read there, or were to be written there
}

func (s *Server) noted() holdfile.Note {
	s.halts.mu.Lock()
	defer s.halts.mu.Unlock()
	return s.halts.now
}

// setNote changes the note, before the loop halts, so that nothing resumes it.
func (s *Server) setNote(change func(*halts)) {
	s.halts.mu.Lock()
	defer s.halts.mu.Unlock()
	change(&s.halts)
}

// sayHeld tells every peer which person holds the robot now.
func (s *Server) sayHeld(ctx context.Context) {
	s.halts.say.Lock()
	defer s.halts.say.Unlock()
	h := s.noted().Held
	m := &corelink.Held{By: h.By, Reason: h.Reason}
	if h.By != "" {
		m.SinceMS = h.Since.UnixMilli()
	}
	s.say(ctx, m)
}

// StayHeld halts the loop if a person holds the robot or a peer halted it, also before this robotd began. Call it after CameOn, and before the body is
// opened: a halted robot does not calibrate. Files that cannot be read hold.
func (s *Server) StayHeld(ctx context.Context) error {
	var n holdfile.Note
	err := s.atRoot(func(root *os.Root) (err error) {
		n, err = s.load(root)
		return err
	})
	if err != nil {
		err = fmt.Errorf("read hold: %w", err)
		n = holdfile.Note{Held: holdfile.Held{By: "robotd", Reason: "the note of a hold cannot be read", Since: s.now()}}
	}
	if n == (holdfile.Note{}) {
		s.sayHeld(ctx)
		return nil
	}
	s.cfg.Log.WarnContext(ctx, "robot still halted", "by", n.By, "reason", n.Reason, "peer", n.Peer, logging.Err, err)
	s.setNote(func(h *halts) {
		if h.now = n; n.By != "" {
			h.id, h.last = 1, 1
		}
	})
	s.sayHeld(ctx)
	s.halt()
	return err
}

// load returns what halts the robot, and brings the files up to date after an older release and after a recovery boot, or at a later start.
func (s *Server) load(root *os.Root) (n holdfile.Note, err error) {
	f, err := holdfile.Read(root)
	if err != nil {
		return n, err
	}
	if n = f.Halts(); f.Note != nil {
		s.halts.note, s.halts.over, s.halts.saved = f.Note, f.Over, n.By != "" && n.Held == f.Note.Held
	}
	switch {
	case !s.recovery && (f.Over || f.Journal != nil && n == (holdfile.Note{})):
		err = s.write(root, n)
	case !f.Covered(): // the note is left as it is: a wipe may be taking its words
		if err = s.putHalts(root, n); err != nil {
			s.halts.older = &n
		}
	}
	if err = errors.Join(err, atomicfile.CleanTemp(root, path.Dir(holdfile.JournalFile))); err != nil {
		s.cfg.Log.Warn("hold files not updated", logging.Err, err)
	}
	return n, nil
}

func (s *Server) atRoot(f func(*os.Root) error) error {
	root, err := os.OpenRoot(s.cfg.Root)
	if err != nil {
		return err
	}
	defer root.Close() // nothing buffered
	return f(root)
}

// save brings what is to halt the robot to disk.
func (s *Server) save(n holdfile.Note) error {
	if s.halts.disk != nil && *s.halts.disk == n {
		return nil
	}
	s.halts.disk = nil
	err := s.atRoot(func(root *os.Root) error { return s.write(root, n) })
	if err == nil {
		s.halts.disk = &n
	}
	return err
}

// write brings n to disk: the journal before the note, so that nothing but words is lost in between.
func (s *Server) write(root *os.Root, n holdfile.Note) error {
	none := n == (holdfile.Note{})
	if none && s.halts.older != nil { // else nothing would hold the robot if the journal, which goes last, cannot be removed
		if err := s.putHalts(root, *s.halts.older); err != nil {
			return err
		}
	}
	if none && !s.recovery {
		if err := s.removeNote(root); err != nil {
			return err
		}
	}
	if none && s.halts.note == nil {
		return s.remove(root, holdfile.JournalFile)
	}
	s.halts.over = s.halts.over || s.recovery
	if err := s.putHalts(root, n); err != nil || s.recovery {
		return err
	}
	return s.writeNote(root, n)
}

// writeNote writes the words of a hold once: written again after a wipe they would outlive it. So the note of a hold says nothing of a peer.
func (s *Server) writeNote(root *os.Root, n holdfile.Note) error {
	s.halts.mu.Lock()
	saved := s.halts.saved
	s.halts.mu.Unlock()
	switch was := s.halts.note; {
	case n.By == "":
	case !saved:
		n.Peer = false
	case was != nil && was.Peer && !n.Peer: // an older release's
		return s.removeNote(root)
	default:
		return nil
	}
	err := s.step("note")
	if err == nil {
		err = put(root, holdfile.NoteFile, n)
	}
	if err != nil { // then there is none, rather than an earlier one
		s.cfg.Log.Warn("hold reason not saved", logging.Err, err)
		return s.removeNote(root)
	}
	s.halts.note, s.halts.over = &n, false
	_ = s.step("written") // nothing is left to fail
	return nil
}

func (s *Server) removeNote(root *os.Root) error {
	err := s.remove(root, holdfile.NoteFile)
	if err == nil {
		s.halts.note, s.halts.over = nil, false
	}
	return err
}

// putHalts makes the journal say that n halts the robot.
func (s *Server) putHalts(root *os.Root, n holdfile.Note) error {
	j := holdfile.Journal{Held: n.By != "", Peer: n.Peer, Since: n.Since}
	if s.halts.over && s.halts.note != nil {
		j.Over = &s.halts.note.Since
	}
	err := s.step("journal")
	if err == nil {
		err = put(root, holdfile.JournalFile, j)
	}
	if err == nil {
		s.halts.older = nil
	}
	return err
}

func put(root *os.Root, name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return atomicfile.Write(root, name, b, 0o600, 0o755)
}

// remove removes a file, which need not be there, for good.
func (s *Server) remove(root *os.Root, name string) error {
	err := s.step("remove " + name)
	if err == nil {
		err = root.Remove(name)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = atomicfile.SyncDir(root, path.Dir(name))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// dropWords forgets the words of a hold that are not in the note on disk: the user data were cleared, or are full. What is kept here alone would reach
// the next owner.
func (s *Server) dropWords(ctx context.Context) {
	s.halts.mu.Lock()
	n, id, saved := s.halts.now, s.halts.id, s.halts.saved
	s.halts.mu.Unlock()
	if !saved || s.recovery {
		return
	}
	gone := false
	if err := s.atRoot(func(root *os.Root) error {
		f, err := holdfile.Read(root)
		gone = err == nil && (f.Note == nil || f.Note.Held != n.Held)
		return err
	}); err != nil || !gone {
		return // it is looked at again
	}
	s.setNote(func(h *halts) {
		if h.id == id {
			h.now.Held, h.saved = holdfile.Wordless(n.Since), false
		}
	})
	s.sayHeld(ctx)
}

// peerHalts does a Halt or Resume of a peer at once and notes it later.
func (s *Server) peerHalts(ctx context.Context, on bool) {
	if !s.later(s.setHalted(ctx, on)) {
		s.cfg.Log.WarnContext(ctx, "peer halt not saved for the next start; too many changes waiting for the disk", "halted", on)
	}
}

// later has f, which changes files, run after all before it; false: too many wait for the medium.
func (s *Server) later(f func()) bool {
	select {
	case s.halts.saves <- f:
		return true
	default:
		return false
	}
}

// saveLater answers a peer when save is done.
func (s *Server) saveLater(ctx context.Context, peer, request uint32, save func() error) {
	if !s.later(func() { s.answer(ctx, peer, request, save()) }) {
		s.answer(ctx, peer, request, errors.New("the robot's disk does not answer: a hold lasts only until robotd restarts, and cannot be released"))
	}
}

// keep changes files until ctx ends, and completes what was asked for before.
func (s *Server) keep(ctx context.Context) {
	tick := time.NewTicker(wordsEvery)
	defer tick.Stop()
	for {
		select {
		case f := <-s.halts.saves:
			f()
		case <-tick.C:
			s.dropWords(ctx)
		case <-ctx.Done():
			for {
				select {
				case f := <-s.halts.saves:
					f()
				default:
					return
				}
			}
		}
	}
}

// hold halts the robot for a person at once, and returns what notes it. A hold of an earlier person is replaced.
func (s *Server) hold(ctx context.Context, by, reason string) (save func() error, err error) {
	h := holdfile.Held{By: by, Reason: reason, Since: s.now().UTC().Truncate(time.Second)}
	if err := h.Check(); err != nil {
		return nil, err
	}
	var id uint64
	s.setNote(func(now *halts) {
		now.last++
		id = now.last
		now.now.Held, now.id, now.saved = h, id, false
	})
	s.halt()
	s.sayHeld(ctx)
	s.cfg.Log.WarnContext(ctx, "robot held", "by", h.By, "reason", h.Reason)
	return func() error {
		err := s.save(s.noted())
		s.setNote(func(now *halts) { now.saved = now.saved || now.id == id })
		if err != nil {
			return fmt.Errorf("hold not saved, ends when robotd restarts: %w", err)
		}
		return nil
	}, nil
}

// unhold returns what ends the hold of now; a later hold stays.
func (s *Server) unhold(ctx context.Context) (save func() error) {
	s.halts.mu.Lock()
	by, id := s.halts.now.By, s.halts.id
	s.halts.mu.Unlock()
	return func() error {
		s.halts.mu.Lock()
		n, still := s.halts.now, s.halts.id == id
		s.halts.mu.Unlock()
		if still {
			if err := s.save(holdfile.Note{Peer: n.Peer}); err != nil {
				return fmt.Errorf("hold not released: %w", err)
			}
		}
		s.cfg.Log.InfoContext(ctx, "hold released", "by", by)
		s.setNote(func(h *halts) {
			if h.id == id {
				h.now.Held, h.id, h.saved = holdfile.Held{}, 0, false
			}
		})
		s.sayHeld(ctx)
		s.stay()
		return nil
	}
}

// setHalted does a Halt or Resume of a peer at once, and returns what notes it.
func (s *Server) setHalted(ctx context.Context, on bool) (save func()) {
	s.setNote(func(h *halts) { h.now.Peer = on })
	if on {
		s.halt()
	}
	s.stay()
	return func() {
		if err := s.save(s.noted()); err != nil {
			s.cfg.Log.WarnContext(ctx, "peer halt not saved for the next start", "halted", on, logging.Err, err)
		}
	}
}

// halt stops the loop in its next step.
func (s *Server) halt() { s.cfg.Loop.Halt() }

// stay brings the loop to the state that peers and people want. A Resume is posted only to a loop that has halted: in one step it would be
// overtaken by the halt. The note is locked from the look at it to the Resume: a hold that comes meanwhile changes the note, and halts, after it.
func (s *Server) stay() {
	s.halts.mu.Lock()
	defer s.halts.mu.Unlock()
	var snap rt.Snapshot
	if s.halts.now == (holdfile.Note{}) && s.cfg.Loop.Snapshot(&snap) && snap.Halted {
		s.cfg.Loop.Post(rt.Command{Kind: rt.Resume}) // one that finds the mailbox full is posted again by the next report
	}
}
