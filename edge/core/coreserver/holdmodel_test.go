package coreserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/agent/ownership/wipe"
	"kennel/edge/core/coreserver/coreservertest"
	"kennel/edge/core/coreserver/holdfile"
	"kennel/edge/core/rt"
)

// TestHoldModel: whatever robotd, agentd, the wipe and the power do, and wherever they are cut off, a robot that a person holds stays held and one that was
// released stays released; a wipe leaves no words (issue 28, what must hold 2; VEC-DGN-06, VEC-BOOT-07). The test visits every state that two deeds in a
// row can bring a robot to from each of several beginnings, six with KENNEL_SOAK=1, and plays each deed from there: undisturbed, killed before each change
// on disk, with each change on disk refused and, a wipe, with each other deed before each of its changes. The states are real: files, a Server, a wipe.
func TestHoldModel(t *testing.T) {
	m := newHoldModel(t)
	most := 2 // deeds in a row, after those of the beginnings below
	if os.Getenv("KENNEL_SOAK") == "1" {
		most = 6
	}
	seen, next := map[string]bool{}, []holdState{}
	for _, before := range [][]string{{}, {"start", "hold by ann"}, {"old hold", "recovery boot", "release"}, {"old halt", "recovery boot", "resume"},
		{"old halt", "old hold"}, {"old halt", "old hold", "recovery boot", "release"}} {
		s := holdState{files: map[string]string{}}
		for _, deed := range before {
			s, _ = m.play(s, deed, -1, -1, nil)
		}
		seen[s.key()], next = true, append(next, s)
	}
	deeds := 0
	for depth := 0; len(next) > 0 && depth < most && !t.Failed(); depth++ {
		var found []holdState
		for _, from := range next {
			for _, to := range m.all(from) {
				deeds++
				if k := to.key(); !seen[k] {
					seen[k] = true
					found = append(found, to)
				}
			}
		}
		t.Logf("after %d deeds in a row: %d new states", depth+1, len(found))
		next = found
	}
	t.Logf("%d states, %d deeds, %d states not played from", len(seen), deeds, len(next))
}

// truth says what is known of a person's hold or a peer's halt. The zero value is no.
type truth string

const (
	no      truth = ""
	yes     truth = "yes"
	unknown truth = "unknown" // what would make or end it was cut off
)

// holdState is a robot between two deeds.
type holdState struct {
	files map[string]string

	up, recovery   bool // of robotd
	now            holdfile.Note
	saved, stopped bool
	note           *holdfile.Note
	over           bool
	older          *holdfile.Note
	id             uint64
	disk           *holdfile.Note

	held, halt truth
	cleared    bool // a wipe has ended since the last hold by name
	trail      []string
}

func (s holdState) key() string {
	known := func(p any) string { b, _ := json.Marshal(p); return string(b) }
	return fmt.Sprint(s.files, s.up, s.recovery, s.now, s.id, s.saved, s.stopped, known(s.note), s.over, known(s.disk), s.held, s.halt, s.cleared)
}

// holdModel plays deeds on one folder and one Server, which it sets to each state.
type holdModel struct {
	*bench
	holdState
	fresh    bool // a person held by name during the deed
	at, fail int  // the change on disk to die before, or to refuse; -1: none
	steps    int  // changes on disk so far
	clock    time.Time
	inside   func() // called before the change at of a wipe
	between  func() // called before each change
}

var errKilled = errors.New("killed")

var holdFiles = []string{holdfile.JournalFile, holdfile.NoteFile, wipe.Marker, "persist/kennel/wipe.json"}

func newHoldModel(t *testing.T) *holdModel {
	m := &holdModel{bench: newBench(t, t.TempDir())}
	m.Server.now = func() time.Time { return m.clock }
	m.Server.step = func(what string) error {
		if name, ok := strings.CutPrefix(what, "remove "); ok {
			if _, err := os.Stat(filepath.Join(m.root, name)); err != nil {
				return nil // no change
			}
		}
		return m.step()
	}
	for _, name := range append([]string{"data/kennel/connect_seq"}, holdFiles...) {
		if err := os.MkdirAll(filepath.Join(m.root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(m.root, "data/kennel/connect_seq"), []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *holdModel) step() error {
	if m.between != nil {
		m.between()
	}
	m.steps++
	switch m.steps - 1 {
	case m.at:
		panic(errKilled)
	case m.fail:
		return errors.New("no space left")
	}
	return nil
}

// deeds lists what may happen in the state.
func (m *holdModel) deeds() map[string]func() {
	all := map[string]func(){
		"start": func() { m.start(false) }, "recovery boot": func() { m.start(true) },
		"reboot": func() { m.remove(wipe.Marker); m.start(false) },
	}
	if !m.up {
		all["old hold"], all["old halt"], all["old release"] = func() { m.oldHold(false) }, func() { m.oldHold(true) }, m.oldRelease
	}
	if m.up {
		all["hold by ann"], all["hold by bob"] = func() { m.holdBy("ann", 1) }, func() { m.holdBy("bob", 2) }
		all["release"], all["halt"], all["resume"], all["tick"] = m.release, func() { m.peerSays(true) }, func() { m.peerSays(false) }, m.tick
	}
	return all
}

// all returns the states after every deed, in every disturbance.
func (m *holdModel) all(from holdState) (out []holdState) {
	m.set(from)
	wipes := !from.recovery || !from.up
	names := []string{}
	for name := range m.deeds() {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		calm, steps := m.play(from, name, -1, -1, nil)
		out = append(out, calm)
		for i := range steps {
			killed, _ := m.play(from, name, i, -1, nil)
			refused, _ := m.play(from, name, -1, i, nil)
			out = append(out, killed, refused)
		}
	}
	if !wipes {
		return out
	}
	calm, steps := m.play(from, "wipe", -1, -1, nil)
	out = append(out, calm)
	for i := range steps {
		killed, _ := m.play(from, "wipe", i, -1, nil)
		out = append(out, killed)
		for _, name := range names {
			if !strings.HasPrefix(name, "old") && name != "reboot" && name != "recovery boot" {
				between, _ := m.play(from, "wipe", -1, i, func() { m.deeds()[name]() })
				between.trail[len(between.trail)-1] += " and " + name
				out = append(out, between)
			}
		}
	}
	return out
}

// play does a deed from a state, checks what must hold after it, and returns the state and how many changes on disk the deed made.
func (m *holdModel) play(from holdState, name string, at, fail int, inside func()) (holdState, int) {
	m.set(from)
	m.at, m.fail, m.steps, m.inside = at, fail, 0, inside
	m.trail = append(slices.Clone(from.trail), fmt.Sprintf("%s, killed before change %d, change %d refused", name, at, fail))
	func() {
		defer func() {
			if p := recover(); p != nil && p != errKilled {
				panic(p)
			}
		}()
		if name == "wipe" {
			m.wipe()
		} else {
			m.deeds()[name]()
		}
	}()
	steps := m.steps
	m.at, m.fail, m.inside = -1, -1, nil
	m.look(from)
	return m.holdState, steps
}

// set makes the folder and the Server those of a state.
func (m *holdModel) set(s holdState) {
	m.holdState = s
	for _, name := range holdFiles {
		file := filepath.Join(m.root, name)
		var err error
		if body, ok := s.files[name]; ok {
			err = os.WriteFile(file, []byte(body), 0o600)
		} else if err = os.Remove(file); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		if err != nil {
			m.t.Fatal(err)
		}
	}
	h := &m.Server.halts
	h.now, h.id, h.saved, h.note, h.over, h.older, h.disk, h.last, m.Server.recovery = s.now, s.id, s.saved, s.note, s.over, s.older, s.disk, s.id, s.recovery
	m.body.Halt()
	if !s.stopped {
		coreservertest.Loop{Body: m.body}.Post(rt.Command{Kind: rt.Resume})
	}
}

// look takes the state from the folder and the Server, and checks it.
func (m *holdModel) look(from holdState) {
	m.files = map[string]string{}
	for _, name := range holdFiles {
		b, err := os.ReadFile(filepath.Join(m.root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			m.t.Fatal(err)
		}
		m.files[name] = string(b)
	}
	var j map[string]any
	if json.Unmarshal([]byte(m.files["persist/kennel/wipe.json"]), &j) == nil {
		j["key"] = "k"
		b, err := json.Marshal(j)
		if err != nil {
			m.t.Fatal(err)
		}
		m.files["persist/kennel/wipe.json"] = string(b)
	}
	h := &m.Server.halts
	m.id, m.disk, m.over, m.older = min(h.id, 1), h.disk, h.over, h.older
	if m.now, m.saved, m.note, m.recovery, m.stopped = h.now, h.saved, h.note, m.Server.recovery, m.halted(); !m.up {
		m.now, m.id, m.saved, m.note, m.over, m.older, m.disk, m.recovery, m.stopped = holdfile.Note{}, 0, false, nil, false, nil, nil, false, true
	}
	wrong := func(what string) {
		m.t.Errorf("%s: held %q, peer %q, robotd up %v: %+v, loop halted %v, files %v\nafter %s", what, m.held, m.halt, m.up, m.now, m.stopped, m.files,
			strings.Join(m.trail, "\n      "))
	}
	switch {
	case m.up && m.stopped != (m.now != holdfile.Note{}):
		wrong("the loop is not as the note says")
	case m.up && (m.held == yes && m.now.By == "" || m.held == no && m.now.By != ""):
		wrong("not as the person said")
	case m.up && (m.halt == yes && !m.now.Peer || m.halt == no && m.now.Peer):
		wrong("not as the peer said")
	case m.cleared && (named(m.files[holdfile.NoteFile]) || named(m.files[holdfile.JournalFile])):
		wrong("words that were cleared are on disk")
	case m.cleared && m.up && !m.saved && named(m.now.By):
		wrong("words that were cleared are told")
	case named(m.files[holdfile.JournalFile]):
		wrong("words outside the user data")
	}
}

func named(s string) bool { return strings.Contains(s, "ann") || strings.Contains(s, "bob") }

func (m *holdModel) remove(name string) {
	if err := os.Remove(filepath.Join(m.root, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		m.t.Fatal(err)
	}
}

// start ends robotd, if it runs, and starts another one.
func (m *holdModel) start(recovery bool) {
	h := &m.Server.halts
	h.now, h.id, h.saved, h.note, h.over, h.older, h.disk, h.last, m.Server.recovery = holdfile.Note{}, 0, false, nil, false, nil, nil, 0, recovery
	m.up = false
	coreservertest.Loop{Body: m.body}.Post(rt.Command{Kind: rt.Resume})
	if err := m.StayHeld(m.t.Context()); err != nil {
		m.t.Errorf("%v after %v", err, m.trail)
	}
	m.up = true
}

// cut makes a truth unknown until the deed is done, and reports its end.
func cut(v *truth, during, after truth, deed func() error) {
	if *v != during {
		*v = unknown
	}
	if deed() == nil {
		*v = after
	}
}

// while runs a deed of robotd; if it is killed robotd is down.
func (m *holdModel) while(deed func()) {
	m.up = false
	deed()
	m.up = true
}

func (m *holdModel) holdBy(by string, hour int) {
	m.clock, m.cleared = time.Unix(int64(hour)*3600, 0), false
	m.fresh = true
	m.while(func() {
		cut(&m.held, yes, yes, func() error {
			save, err := m.hold(m.t.Context(), by, by+" wants it")
			if err != nil {
				m.t.Fatal(err)
			}
			return save()
		})
	})
}

func (m *holdModel) release() {
	was := m.held
	m.while(func() {
		err := errors.New("killed")
		cut(&m.held, no, no, func() error { err = m.unhold(m.t.Context())(); return err })
		if err != nil {
			m.held = was // it said that the robot is held as before
		}
	})
}

func (m *holdModel) peerSays(on bool) {
	end := no
	if on {
		end = yes
	}
	m.while(func() {
		cut(&m.halt, end, end, func() error {
			m.setHalted(m.t.Context(), on)()
			return nil
		})
	})
	if m.fail >= 0 && m.fail < m.steps {
		m.halt = unknown // it is as it was said until robotd ends, which is told in the log
	}
}

func (m *holdModel) tick() {
	m.dropWords(m.t.Context())
	m.stay()
}

// oldHold is a hold, or a halt, of an older release, which knows only the note.
func (m *holdModel) oldHold(peer bool) {
	var n holdfile.Note
	if body, ok := m.files[holdfile.NoteFile]; ok {
		var err error
		if n, err = holdfile.ParseNote([]byte(body)); err != nil {
			m.t.Fatal(err)
		}
		if n.By != "" && m.held == no { // over since a recovery boot, which the older release knows nothing of
			m.held = unknown
		}
		if n.Peer && m.halt == no {
			m.halt = unknown
		}
	}
	over := time.Unix(1, 0)
	if j, err := holdfile.ParseJournal([]byte(m.files[holdfile.JournalFile])); err == nil && j.Over != nil {
		over = *j.Over
	}
	if !peer {
		since := time.Unix(3*3600, 0).UTC()
		if since.Equal(over) {
			since = since.Add(time.Hour)
		}
		n.Held, m.held, m.cleared = holdfile.Held{By: "ann", Reason: "ann wants it", Since: since}, yes, false
	} else if n.Peer, m.halt = true, yes; n.Since.Equal(over) {
		m.halt = unknown // it looks as before the recovery boot that ended it
	}
	b, err := json.Marshal(n)
	if err == nil {
		err = os.WriteFile(filepath.Join(m.root, holdfile.NoteFile), b, 0o600)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// oldRelease is a release by an older release of what its note says. A hold that this release noted in its journal stays.
func (m *holdModel) oldRelease() {
	m.remove(holdfile.NoteFile)
	m.held, m.halt = no, no
	if _, ok := m.files[holdfile.JournalFile]; ok {
		m.held, m.halt = unknown, unknown
	}
}

func (m *holdModel) wipe() {
	root, err := os.OpenRoot(m.root)
	if err != nil {
		m.t.Fatal(err)
	}
	defer root.Close()
	if !wipe.Requested(root) {
		if err := wipe.Request(root); err != nil {
			m.t.Fatal(err)
		}
	}
	inner, at := m.inside, m.fail
	m.inside, m.fail, m.fresh = nil, -1, false
	_, err = wipe.Resume(wipe.Config{Root: root, Log: slog.New(slog.DiscardHandler), Step: func(string) {
		if steps := m.steps; inner != nil && steps == at {
			do := inner
			inner = nil
			do()
			m.steps = steps
		}
		_ = m.step()
	}})
	if err == nil && !m.fresh {
		m.cleared = true
	}
}

// TestHoldOverlap: what peers ask for while the files change for another peer counts as if it came after that, at each change on disk.
func TestHoldOverlap(t *testing.T) {
	m := newHoldModel(t)
	ctx := t.Context()
	peer := func(on bool) func() error {
		save := m.setHalted(ctx, on)
		return func() error { save(); return nil }
	}
	asks := map[string]func() func() error{
		"hold": func() func() error {
			m.clock = m.clock.Add(time.Hour)
			save, err := m.hold(ctx, "ann", "ann wants it")
			if err != nil {
				t.Fatal(err)
			}
			return save
		},
		"release": func() func() error { return m.unhold(ctx) }, "halt": func() func() error { return peer(true) }, "resume": func() func() error { return peer(false) },
	}
	after := map[string]func(*holdfile.Note){"hold": func(n *holdfile.Note) { n.By = "ann" }, "release": func(n *holdfile.Note) { n.By = "" },
		"halt": func(n *holdfile.Note) { n.Peer = true }, "resume": func(n *holdfile.Note) { n.Peer = false }}
	play := func(before []string, a, b string, at int) (last bool) {
		m.set(holdState{files: map[string]string{}})
		m.start(false)
		var want holdfile.Note
		m.at, m.fail, m.between = -1, -1, nil
		for _, ask := range before {
			after[ask](&want)
			if err := asks[ask]()(); err != nil {
				t.Fatal(err)
			}
		}
		after[a](&want)
		after[b](&want)
		first := asks[a]()
		var second func() error
		if at < 0 {
			second = asks[b]()
		}
		m.steps, m.between = 0, func() {
			if m.steps == at {
				second = asks[b]()
			}
		}
		if at < 0 { // their goroutines may come to the queue the other way round
			first, second = second, first
		}
		err := first()
		if last = second == nil; last {
			second = asks[b]()
		}
		m.between = nil
		if err := errors.Join(err, second()); err != nil {
			t.Error(err)
		}
		for _, when := range []string{"then", "after a restart"} {
			m.stay()
			if n := m.noted(); n.By != want.By || n.Peer != want.Peer || m.halted() != (want.By != "" || want.Peer) {
				t.Errorf("%v, %s, and %s before change %d of it: %s %+v, loop halted %v; want by %q, peer %v", before, a, b, at, when, n, m.halted(), want.By, want.Peer)
			}
			m.start(false)
		}
		return last
	}
	for _, before := range [][]string{{}, {"hold"}, {"halt"}, {"hold", "halt"}} {
		for a := range asks {
			for b := range asks {
				for at := -1; !play(before, a, b, at); at++ {
				}
			}
		}
	}
}
