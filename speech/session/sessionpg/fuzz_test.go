package sessionpg

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"kennel/infra/thing"
	"kennel/speech/session"
)

// FuzzClean: whatever a robot names and a recogniser says of it, each field is printable and has its size, words are kept only where they may be, and what
// names the robot never repeats them, however they were spaced or cut (VEC-NLP-07).
func FuzzClean(f *testing.F) {
	f.Add("turn left", "sphinx: nothing for ", "", false, true)
	f.Add("turn  \x00left", "", strings.Repeat("x", maxWhy), false, true)
	f.Add("turn\tleft", strings.Repeat("x", maxWhy-10), "", false, true)
	f.Add(strings.Repeat("é\xff", 1000), "a", "b", true, true)
	f.Add("", "no recogniser works", "", false, false)
	f.Fuzz(func(t *testing.T, text, before, after string, skip, known bool) {
		s := session.Session{ID: after, Language: before, Firmware: text, Text: text, Why: before + " " + text + " " + after, SkipDAS: skip}
		if known {
			s.Thing = thing.MustParse("vic:00e20100")
		}
		got := clean(s)
		for _, c := range []struct {
			s    string
			most int
		}{{got.ID, maxField}, {got.Language, maxField}, {got.Firmware, maxField}, {got.Text, maxWords}, {got.Why, maxWhy}} {
			if len(c.s) > c.most || !utf8.ValidString(c.s) || strings.ContainsFunc(c.s, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q: %d bytes of %d", c.s, len(c.s), c.most)
			}
		}
		if got.Text != "" && (skip || !known) {
			t.Errorf("words %q of an owner who did not allow it", got.Text)
		}
		if strings.TrimFunc(text, func(r rune) bool { return r == ' ' || unprintable(r) }) != "" && got.Why != "" {
			t.Errorf("%q is kept beside the robot, of %q", got.Why, text)
		}
	})
}
