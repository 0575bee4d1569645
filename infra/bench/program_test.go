package bench

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/infra/proc"
)

func sh(t *testing.T, script string) *Program {
	t.Helper()
	path, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(proc.Spec{Name: "sh", Path: path, Args: []string{"-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

func TestProgramSpeaks(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := sh(t, `echo noise; echo "listening on 1.2.3.4:5"; while read x; do echo "heard $x"; done; echo bye; exit 3`)
	if got, err := p.Await(ctx, "listening on "); err != nil || got != "1.2.3.4:5" {
		t.Fatalf("%q, %v", got, err)
	}
	if got, err := p.Ask(ctx, "seven", "heard "); err != nil || got != "seven" {
		t.Fatalf("%q, %v", got, err)
	}
	if !slices.Contains(Family(p.Pid()), p.Pid()) {
		t.Errorf("family of %d is %v", p.Pid(), Family(p.Pid()))
	}
	if err := Quiet(ctx, p.Pid()); err != nil {
		t.Error(err)
	}
	if err := p.stdin.Close(); err != nil { // it ends by itself
		t.Fatal(err)
	}
	if _, err := p.Await(ctx, "never"); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("await beyond the end: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if _, err := sh(t, "read x").Await(short, "never"); err == nil {
		t.Error("await beyond the context succeeds")
	}
}

func TestProgramThatIsNotThere(t *testing.T) {
	if _, err := Start(proc.Spec{Name: "nobody", Path: "/nowhere/nobody"}); err == nil {
		t.Fatal("started what is not there")
	}
}
