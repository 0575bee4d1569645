package face

import (
	"slices"
	"strings"
	"testing"
)

// art returns the part of a picture that is lit as text, and how many lines of it there are.
func art(p *Picture) string {
	var rows []string
	left, right := Width, 0
	for i, v := range p.Pix {
		if v != 0 {
			left, right = min(left, i%Width), max(right, i%Width)
		}
	}
	for y := range Height {
		row := ""
		for x := left; x <= right; x++ {
			row += map[bool]string{true: "#", false: "."}[p.Pix[y*Width+x] != 0]
		}
		if strings.Contains(row, "#") {
			rows = append(rows, row)
		}
	}
	return strings.Join(rows, "\n")
}

// TestNotice: letters are as a person reads them, in the middle of the display, as large as they fit; small letters become capitals, and nothing is drawn beside it.
func TestNotice(t *testing.T) {
	p := &Picture{}
	p.line("f7", 40, 1, white)
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
	p = Notice("8", "")
	if got := strings.Count(art(p), "\n") + 1; got != 4*7 {
		t.Errorf("one letter is %d pixels high", got)
	}
	code, other := Notice("K7QM-3XW9", "claim code"), Notice("K7QM-3XW8", "claim code")
	if *code == *other || *code != *Notice("k7qm-3xw9", "CLAIM code") {
		t.Error("codes that look alike")
	}
	if !slices.Contains(code.Pix[:], uint16(dim)) || !slices.Contains(code.Pix[:], uint16(white)) {
		t.Error("the words, or the code, are not there")
	}
	for _, big := range []string{"", strings.Repeat("W", 500), "é\x00"} {
		Notice(big, strings.Repeat("words that do not fit ", 100))
	}
	seen := map[[5]byte]rune{}
	for r, g := range glyphs {
		if before, twice := seen[g]; twice || slices.ContainsFunc(g[:], func(b byte) bool { return b > 0x7f }) {
			t.Errorf("%c: %x, like %c", r, g, before)
		}
		seen[g] = r
	}
}
