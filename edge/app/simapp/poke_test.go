package simapp

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/agent/teleop/simulator"
	"kennel/infra/api/live"
	"kennel/infra/api/poke"
	"kennel/infra/cli"
)

// doll is a body that a hand may touch but not lift.
type doll struct{}

func (doll) See(string) *live.World { return nil }

func (doll) Poke(p poke.Poke) error {
	if p.Verb == poke.Lift {
		return errors.New("the robot is in a hand")
	}
	return nil
}

// TestPoke: the command reaches the simulator of a running robot, or its error says why not.
func TestPoke(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "factory/kennel"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "factory/kennel/sim.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() // nothing buffered
	do := func(args ...string) (code int, says string) {
		var out, errOut bytes.Buffer
		code = Main(append([]string{"poke"}, args...), noenv, &out, &errOut)
		return code, out.String() + errOut.String()
	}
	for _, tc := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"no such robot", []string{"touch", "-root", filepath.Join(dir, "none")}, cli.ExitNotFound, "robotsim make"},
		{"not running", []string{"touch", "-root", dir}, cli.ExitUnavailable, "is not running"},
		{"no verb", []string{"-root", dir}, cli.ExitUsage, "missing VERB"},
		{"unknown verb", []string{"kick", "-root", dir}, cli.ExitUsage, "want one of touch"},
		{"no unit", []string{"touch", "-for", "2", "-root", dir}, cli.ExitUsage, "missing unit"},
	} {
		if code, says := do(tc.args...); code != tc.code || !strings.Contains(says, tc.want) {
			t.Errorf("%s: code %d, %s; want %d, %q", tc.name, code, says, tc.code, tc.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- simulator.Serve(ctx, root, doll{}, slog.New(slog.DiscardHandler)) }()
	for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if code, says := do("touch", "-root", dir); code == cli.ExitOK && says == "done: touch -for 2s\n" {
			break
		} else if time.Now().After(until) {
			t.Fatalf("code %d, %s", code, says)
		}
	}
	const want = `{"verb":"push","args":{"by":0.05,"toward":1.5707963267948966}}`
	if code, says := do("push", "-toward", "90", "-root", dir, "-o", "json"); code != cli.ExitOK || strings.Join(strings.Fields(says), "") != want {
		t.Errorf("code %d, %s", code, says)
	}
	if code, says := do("lift", "-root", dir); code != cli.ExitFailed || !strings.Contains(says, "the robot is in a hand") {
		t.Errorf("code %d, %s", code, says)
	}
	wav := filepath.Join(dir, "hey you.wav")
	if err := os.WriteFile(wav, []byte("RIFF"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, says := do("play", wav, "-direction", "-90", "-root", dir); code != cli.ExitOK || says != "done: play hey_you.wav -direction -90\n" {
		t.Errorf("code %d, %s", code, says)
	}
	if b, err := root.ReadFile(simulator.SoundDir + "/hey_you.wav"); err != nil || string(b) != "RIFF" {
		t.Errorf("the simulator has %q, %v", b, err)
	}
	if code, says := do("play", wav+".none", "-root", dir); code != cli.ExitFailed || !strings.Contains(says, "no such file") {
		t.Errorf("code %d, %s", code, says)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
