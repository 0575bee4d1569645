package format

import (
	"bytes"
	"fmt"
	"strings"
)

// TextError says what is wrong in a text that people write: a project file or a table.
type TextError struct {
	Format       string // "csv" or "upf"
	Line, Column int    // from 1; columns count bytes
	What         string
	Found, Want  string // "" if there is nothing to say
}

func (e *TextError) Error() string {
	s := fmt.Sprintf("%s: line %d, column %d: %s", e.Format, e.Line, e.Column, e.What)
	if e.Found != "" {
		s += ": found " + e.Found
	}
	if e.Want != "" {
		s += ", want " + e.Want
	}
	return s
}

// maxText is the largest text that is read, in bytes.
const maxText = 16 << 20

// cell is a field of a table.
type cell struct {
	text      string
	line, col int
}

func (c cell) refuse(what, want string, args ...any) error {
	return &TextError{"csv", c.line, c.col, what, fmt.Sprintf("%.60q", c.text), fmt.Sprintf(want, args...)}
}

// row is a line of a table without empty fields at its end, which spreadsheets add.
type row []cell

// rows splits a table into its rows. Lines end with LF, CR LF or, in old files of Macintosh computers, CR alone. Empty lines are left out. A field has no quotes.
func rows(text []byte) ([]row, error) {
	if len(text) > maxText {
		return nil, &TextError{"csv", 1, 1, "file is too long", fmt.Sprintf("%d bytes", len(text)), fmt.Sprintf("at most %d", maxText)}
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	var out []row
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimSuffix(line, []byte("\n"))
		if i := bytes.IndexByte(line, 0); i >= 0 {
			return nil, &TextError{"csv", n, i + 1, "not a text", "a zero byte", ""}
		}
		var r row
		col := 1
		for _, field := range strings.Split(string(line), ",") {
			trimmed := strings.TrimLeft(field, " \t")
			r = append(r, cell{strings.TrimRight(trimmed, " \t"), n, col + len(field) - len(trimmed)})
			col += len(field) + 1
		}
		for len(r) > 0 && r[len(r)-1].text == "" {
			r = r[:len(r)-1]
		}
		if len(r) > 0 {
			out = append(out, r)
		}
	}
	return out, nil
}
