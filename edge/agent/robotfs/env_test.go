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
	if a, b, d := e.Int("A", 1, 0, 10), e.Int("B", 1, 0, 10), e.Seconds("D", time.Minute, time.Hour); a != 2 || b != 3 || d != time.Minute || e.Err() != nil {
		t.Errorf("got %d %d %v, %v", a, b, d, e.Err())
	}
	if c := e.Int("C", 7, 0, 10); c != 7 || e.Err() == nil || !strings.Contains(e.Err().Error(), "C is \"x\"") {
		t.Errorf("got %d, %v", c, e.Err())
	}
	if e := LoadEnv(root, "missing.env", getenv); e.Int("A", 1, 0, 10) != 1 || e.Err() != nil {
		t.Errorf("missing file: %v", e.Err())
	}
}
