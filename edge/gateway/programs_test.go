package gateway

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"kennel/infra/errs"
)

// TestPrograms: a program is let in by its token until its time is over or it is removed, also after a restart; the token itself is kept nowhere.
func TestPrograms(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	open := func() *programs {
		t.Helper()
		p, err := openPrograms(root, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := open()
	all, err := p.add(AddProgram{Name: "square"})
	if err != nil {
		t.Fatal(err)
	}
	eyes, err := p.add(AddProgram{Name: "eyes", Rights: []string{Look}, Hours: 1})
	if err != nil {
		t.Fatal(err)
	}
	b, err := root.ReadFile(programsFile)
	if err != nil || bytes.Contains(b, []byte(all)) || bytes.Contains(b, []byte(eyes)) {
		t.Errorf("%v; the file has a token:\n%s", err, b)
	}
	p = open()
	if c, ok := p.client(all); !ok || c.Name != "square" || !c.May(Move) {
		t.Errorf("%+v, %v", c, ok)
	}
	if c, ok := p.client(eyes); !ok || c.May(Move) || !c.May(Look) {
		t.Errorf("%+v, %v", c, ok)
	}
	if _, ok := p.client(""); ok {
		t.Error("no token lets in")
	}
	if l := p.list(); len(l) != 2 || l[0].Hash != "" || l[1].Until != now.Add(time.Hour) {
		t.Errorf("%+v", l)
	}
	again, err := p.add(AddProgram{Name: "square"})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := p.client(all); ok {
		t.Error("the token before lets in")
	}
	now = now.Add(time.Hour)
	if _, ok := p.client(eyes); ok {
		t.Error("its time is over")
	}
	if err := p.remove("square"); err != nil {
		t.Error(err)
	}
	if _, ok := open().client(again); ok {
		t.Error("removed, and let in")
	}
	if err := p.remove("square"); errs.CodeOf(err) != "no_such_program" {
		t.Error(err)
	}
	for _, bad := range []AddProgram{{}, {Name: strings.Repeat("x", 65)}, {Name: "a\nb"}, {Name: "a", Rights: []string{"fly"}}, {Name: "a", Hours: -1}, {Name: "a", Hours: maxHours + 1}} {
		if _, err := p.add(bad); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	for i := range maxPrograms + 1 {
		if _, err = p.add(AddProgram{Name: strings.Repeat("n", i%60+1) + strings.Repeat("m", i/60)}); err != nil {
			break
		}
	}
	if errs.CodeOf(err) != "too_many_programs" {
		t.Error(err)
	}
}
