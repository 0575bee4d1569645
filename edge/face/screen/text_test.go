package screen

import (
	"slices"
	"strings"
	"testing"

	"kennel/edge/face"
)

// art returns the part of a picture that is lit as text, and how many lines of it there are.
func art(p *face.Picture) string {
	var rows []string
	left, right := face.Width, 0
	for i, v := range p.Pix {
		if v != 0 {
			left, right = min(left, i%face.Width), max(right, i%face.Width)
		}
	}
	for y := range face.Height {
		row := ""
		for x := left; x <= right; x++ {
			row += map[bool]string{true: "#", false: "."}[p.Pix[y*face.Width+x] != 0]
		}
		if strings.Contains(row, "#") {
			rows = append(rows, row)
		}
	}
	return strings.Join(rows, "\n")
}

// say is a picture of a notice.
func say(big, words string) *face.Picture {
	p := &face.Picture{}
	notice(p, big, words)
	return p
}

// TestNotice: letters are as a person reads them, in the middle of the display, as large as they fit; small letters become capitals, and nothing is drawn beside it.
func TestNotice(t *testing.T) {
	p := &face.Picture{}
	center(p, "f7", 40, 1, white)
	want := strings.Join([]string{
		"#####.#####",
		"#.........#",
		"#........#.",
		"####....#..",
		"#......#...",
		"#......#...",
		"#......#...",
	}, "\n")
	if got := art(p); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	p = say("8", "")
	if got := strings.Count(art(p), "\n") + 1; got != 4*7 {
		t.Errorf("one letter is %d pixels high", got)
	}
	code, other := say("K7QM-3XW9", "claim code"), say("K7QM-3XW8", "claim code")
	if *code == *other || *code != *say("k7qm-3xw9", "CLAIM code") {
		t.Error("codes that look alike")
	}
	if !slices.Contains(code.Pix[:], uint16(0x9cf3)) || !slices.Contains(code.Pix[:], uint16(0xffff)) {
		t.Error("the words, or the code, are not there")
	}
	for _, big := range []string{"", strings.Repeat("W", 500), "é\x00"} {
		say(big, strings.Repeat("words that do not fit ", 100))
	}
	seen := map[[5]byte]rune{}
	for r, g := range glyphs {
		if before, twice := seen[g]; twice || slices.ContainsFunc(g[:], func(b byte) bool { return b > 0x7f }) {
			t.Errorf("%c: %x, like %c", r, g, before)
		}
		seen[g] = r
	}
}
