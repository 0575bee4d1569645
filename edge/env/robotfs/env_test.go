package robotfs

import (
	"strings"
	"testing"
	"time"
)

// TestEnv is VEC-CLD-05: defaults, then the file, then the process.
func TestEnv(t *testing.T) {
	root, _ := open(t)
	if err := WriteFile(root, "x.env", []byte("A=2\nB=9\nC=x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	getenv := func(k string) string { return map[string]string{"KENNEL_B": "3"}[k] }
	e := LoadEnv(root, "x.env", getenv)
	if a, b, d := e.Int("A", 1, 0, 10), e.Int("B", 1, 0, 10), e.Seconds("D", time.Minute, time.Hour); a != 2 || b != 3 || d != time.Minute ||
		e.Err() != nil {
		t.Errorf("got %d %d %v, %v", a, b, d, e.Err())
	}
	if c := e.Int("C", 7, 0, 10); c != 7 || e.Err() == nil || !strings.Contains(e.Err().Error(), "C is \"x\"") {
		t.Errorf("got %d, %v", c, e.Err())
	}
	if e := LoadEnv(root, "missing.env", getenv); e.Int("A", 1, 0, 10) != 1 || e.Err() != nil {
		t.Errorf("missing file: %v", e.Err())
	}
}

// Layers: the later file goes first; texts and truths as the original writes them.
func TestEnvLayers(t *testing.T) {
	root, _ := open(t)
	for name, body := range map[string]string{"a.env": "URL=auto\nDEBUG=false\nN=1\n", "c.env": "URL=http://x\nDEBUG=1\nBAD=maybe\n"} {
		if err := WriteFile(root, name, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e := LoadEnv(root, "a.env", func(string) string { return "" }, "missing.env", "c.env")
	if e.String("URL", "") != "http://x" || !e.Bool("DEBUG", false) || e.Int("N", 0, 0, 9) != 1 || e.String("NONE", "d") != "d" ||
		!e.Bool("NONE", true) || e.Err() != nil {
		t.Errorf("got %q %v %v", e.String("URL", ""), e.Bool("DEBUG", false), e.Err())
	}
	if e.Bool("BAD", true) != true || e.Err() == nil || !strings.Contains(e.Err().Error(), "BAD") {
		t.Errorf("err %v", e.Err())
	}
}
