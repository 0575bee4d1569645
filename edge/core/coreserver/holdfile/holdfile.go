// Package holdfile keeps on disk the halts that must outlive robotd: a person's hold, and a peer's halt. There are two files:
//
//	the journal  that the robot is halted, and nothing about people. It is outside the user data, so that a wipe keeps it: a robot whose wheel is
//	             off is not safe for its next owner either.
//	the note     who holds the robot, and why. These may be words of a former owner, so they are among the user data and are cleared with them.
//
// The note has the form and the place of older releases, which know no journal: a robot that is updated while it is held stays held, and so does one
// that falls back to such a release, or is held by it then. Only robotd writes these files; a wipe takes words away.
package holdfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The files, below the robot's root.
const (
	JournalFile = "persist/kennel/robotd/hold.json" // in a folder of its own: agentd removes half-written files from the one above
	NoteFile    = "data/kennel/hold.json"
)

// MaxWords bounds each text of a hold, in bytes: both fit a line of a page. Own default.
const MaxWords = 90

// Held is a person's hold; the zero value is none.
type Held struct {
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// Check reports why h cannot be kept or shown.
func (h *Held) Check() error {
	for name, s := range map[string]string{"by": h.By, "reason": h.Reason} {
		if s == "" || len(s) > MaxWords || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			return fmt.Errorf("%s %.40q: want 1 to %d bytes of text", name, s, MaxWords)
		}
	}
	return nil
}

// Words says in words who holds the robot.
func (h *Held) Words() string { return fmt.Sprintf("held by %s because %s", h.By, h.Reason) }

// Wordless is a hold whose words are gone with the user data, or could not be saved there.
func Wordless(since time.Time) Held {
	return Held{By: "robotd", Reason: "a person held it, and the note that says who and why is gone", Since: since}
}

// Note says who keeps the robot halted. The zero value is no halt, and no file.
type Note struct {
	Held      // a person, until Unhold
	Peer bool `json:"peer,omitempty"` // a peer, until a Resume
}

// ParseNote reads a note. An empty one is a hold without its words.
func ParseNote(b []byte) (n Note, err error) {
	if len(b) == 0 {
		return Note{Held: Wordless(time.Time{})}, nil
	}
	if err := json.Unmarshal(b, &n); err != nil {
		return Note{}, err
	}
	if n.Peer && n.Held == (Held{}) {
		return n, nil
	}
	return n, n.Check()
}

// Journal says that the robot is halted.
type Journal struct {
	Held  bool      `json:"held,omitempty"` // by a person
	Peer  bool      `json:"peer,omitempty"`
	Since time.Time `json:"since,omitzero"` // of the hold
	// Over is Since of a note that counts no longer: a recovery boot does not touch the user data (VEC-BOOT-07). nil: none does.
	Over *time.Time `json:"over,omitempty"`
}

// ParseJournal reads a journal.
func ParseJournal(b []byte) (j Journal, err error) {
	if err = json.Unmarshal(b, &j); err == nil && !j.Held && !j.Peer && j.Over == nil {
		err = errors.New("want held, peer or over")
	}
	return j, err
}

// Files are the two files of a robot, as they are.
type Files struct {
	Note    *Note    // nil: there is none
	Journal *Journal // nil: there is none
	Over    bool     // the note is there and counts no longer
}

// Read reads both files. An error says that the robot is to be held. A note that cannot be read does not count if there is a journal.
func Read(root *os.Root) (f Files, err error) {
	note, nerr := read(root, NoteFile, ParseNote)
	j, jerr := read(root, JournalFile, ParseJournal)
	f = Files{Note: note, Journal: j, Over: note != nil && j != nil && (nerr != nil || j.Over != nil && j.Over.Equal(note.Since))}
	if j != nil && jerr == nil {
		nerr = nil
	}
	return f, errors.Join(nerr, jerr)
}

// read reads a file, which need not be there.
func read[T any](root *os.Root, name string, parse func([]byte) (T, error)) (*T, error) {
	b, err := root.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var v T
	if err == nil {
		v, err = parse(b)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return &v, err
}

// Halts returns what halts the robot: what either file says. The note says more than the journal after an older release halted the robot.
func (f *Files) Halts() (n Note) {
	if f.Journal != nil {
		if n.Peer = f.Journal.Peer; f.Journal.Held {
			n.Held = Wordless(f.Journal.Since)
		}
	}
	if f.Note == nil || f.Over {
		return n
	}
	n.Peer = n.Peer || f.Note.Peer
	if f.Note.By != "" && (n.By == "" || f.Note.Since.Equal(n.Since)) {
		n.Held = f.Note.Held
	}
	return n
}

// Covered reports whether the robot stays halted as it is without its note.
func (f *Files) Covered() bool {
	n := f.Halts()
	return f.Note == nil || f.Journal != nil && f.Journal.Held == (n.By != "") && f.Journal.Peer == n.Peer
}
