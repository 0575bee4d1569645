package logfile

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"time"
	"unicode"

	"kennel/infra/api/events"
	"kennel/infra/errs"
)

// maxLine is how much of a line is kept, in bytes.
const maxLine = 4096

// Line is one line of a log.
type Line struct {
	File   string       `json:"file"`
	Number int          `json:"number"`          // within its file, from 1
	At     time.Time    `json:"at,omitzero"`     // its own time, else the time of the line before; zero: neither has one
	Level  events.Level `json:"level,omitempty"` // likewise; "": it names none
	Text   string       `json:"text"`            // at most 4096 bytes, what cannot be shown replaced
}

// Contents are the files and lines of a log.
type Contents struct {
	Files   []File `json:"files"`
	Lines   []Line `json:"lines"`   // those that were asked for
	Found   int    `json:"found"`   // how many lines the filter chooses in the whole log
	More    int    `json:"more"`    // as skip, leads to the next lines; 0: these are the last
	Problem string `json:"problem"` // why the log ends early; "": it was read to its end
}

// Read unpacks the log that r holds, called name and uploaded at a time, and returns at most limit of the lines that f chooses, after the first skip of
// them. The whole log is read, so that Files and Found are of the whole. What can be read of a damaged log is returned, with Problem; a log that unpacks
// to more than the budget is an error (Invalid).
func Read(ctx context.Context, r io.Reader, name string, at time.Time, f Filter, skip, limit int, budget *Budget) (c Contents, err error) {
	c.Files, c.Lines = []File{}, []Line{}
	s := scan{f: f, lower: strings.ToLower(f.Text), near: at, skip: skip, limit: limit, c: &c}
	u := unpacker{ctx: ctx, budget: budget, each: s.file}
	err = u.open(name, budget.reader(ctx, r), 0)
	if d, ok := errors.AsType[damaged](err); ok {
		c.Problem, err = d.Error(), nil
	}
	if c.Found > skip+len(c.Lines) {
		c.More = skip + len(c.Lines)
	}
	return c, err
}

// scan finds lines in the files of a log.
type scan struct {
	f           Filter
	lower       string
	near        time.Time
	skip, limit int
	lines       int // of all files
	c           *Contents
}

// file reads one file.
func (s *scan) file(name string, r io.Reader) error {
	s.c.Files = append(s.c.Files, File{Name: name, Text: r != nil})
	if r == nil {
		return nil
	}
	file := &s.c.Files[len(s.c.Files)-1]
	var at time.Time
	var level events.Level
	b := bufio.NewReaderSize(r, 32<<10)
	for {
		text, err := b.ReadSlice('\n')
		if len(text) > 0 {
			if s.lines++; s.lines > maxLines {
				return errs.Coded(errs.Invalid, CodeTooLarge, "the log has more than %d lines, too many to show; download it instead", maxLines)
			}
			file.Lines++
			l := Line{File: name, Number: file.Lines, Text: clean(text[:min(len(text), maxLine)])}
			if l.At, l.Level = parseLine(l.Text, s.near); l.At.IsZero() {
				l.At = at
				if l.Level == "" {
					l.Level = level // the rest of what the line before says
				}
			}
			at, level = l.At, l.Level
			s.line(&l)
		}
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line
			_, err = b.ReadSlice('\n')
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return broken(name, err)
		}
	}
}

func (s *scan) line(l *Line) {
	if !s.f.wants(l, s.lower) {
		return
	}
	if s.c.Found++; s.c.Found > s.skip && len(s.c.Lines) < s.limit {
		s.c.Lines = append(s.c.Lines, *l)
	}
}

// clean makes text of what a robot wrote: colours and other controls are left out.
func clean(b []byte) string {
	text := strings.ToValidUTF8(strings.TrimRight(string(b), "\r\n"), "\ufffd")
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var out strings.Builder
	escape := false
	for _, r := range text {
		switch {
		case r == 0x1b:
			escape = true
		case escape: // up to the letter that ends the sequence
			escape = r == '[' || r < '@'
		case !hidden(r):
			out.WriteRune(r)
		}
	}
	return out.String()
}

func hidden(r rune) bool { return r != '\t' && unicode.IsControl(r) }
