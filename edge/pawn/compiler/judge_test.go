package compiler_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"kennel/edge/pawn/amx"
)

// judge is the reference's compiler and machine. Scripts are compiled by both compilers, and each result runs on both machines: all four prints must be equal.
//
// KENNEL_PAWN_COMPILER is the compiler of Pawn 3.3, as its authors publish it. KENNEL_PAWN_MACHINE is a program around their machine, which takes an AMX file
// and prints what "robotkit pawn run" does.
type judge struct {
	compiler, machine string
	dir               string
	compared          int
	out               map[string]int // programs that are not compared, by the reason
}

// anyError is the end of a program that an error stopped: what it returns is not said.
var anyError = regexp.MustCompile(`( err=(?:[2-9]|1[0-9])) ret=-?[0-9]+ `)

// newJudge returns nil if the environment names no reference.
func newJudge(t *testing.T) *judge {
	j := &judge{compiler: os.Getenv("KENNEL_PAWN_COMPILER"), machine: os.Getenv("KENNEL_PAWN_MACHINE"), dir: t.TempDir(), out: map[string]int{}}
	if j.compiler == "" || j.machine == "" {
		return nil
	}
	if err := os.WriteFile(j.path("default.inc"), []byte(prefix), 0o666); err != nil {
		t.Fatal(err)
	}
	return j
}

func (j *judge) path(name string) string { return filepath.Join(j.dir, name) }

// start runs one of the reference's programs and returns what it prints.
func (j *judge) start(program string, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = j.dir
	out, err := cmd.Output()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() < 0 {
		return string(out) + err.Error()
	}
	return string(out)
}

// compare reports what differs from got, which our machine printed of our compiler's program ours.
func (j *judge) compare(t *testing.T, seed uint64, level int, src string, ours []byte, got string) {
	t.Helper()
	for name, b := range map[string][]byte{"main.p": []byte(src), "ours.amx": ours} {
		if err := os.WriteFile(j.path(name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Remove(j.path("theirs.amx"))
	said := j.start(j.compiler, "main.p", "-otheirs.amx", "-i.", "-S4096", "-C-", "-d1", fmt.Sprintf("-O%d", level))
	theirs, err := os.ReadFile(j.path("theirs.amx"))
	if err != nil || bytes.Contains([]byte(said), []byte("rror")) {
		t.Errorf("seed %d: -O%d: the reference's compiler says %s", seed, level, said)
		return
	}
	p, err := amx.Read(theirs)
	if err != nil {
		t.Errorf("seed %d: -O%d: %v", seed, level, err)
		return
	}
	j.compared++
	here, _ := trace(t, p)
	for name, other := range map[string]string{
		"theirs on our machine": here, "ours on their machine": j.start(j.machine, "ours.amx"), "theirs on their machine": j.start(j.machine, "theirs.amx"),
	} {
		other = anyError.ReplaceAllString(other, "$1 ret=0 ")
		if strings.TrimSpace(other) != strings.TrimSpace(got) {
			t.Errorf("seed %d: -O%d: %s prints\n%s\nours here\n%s\n%s", seed, level, name, other, got, src)
			return
		}
	}
}
