package storms

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
)

// TestRollingUpgrade: kenneld of the release before the newest migration runs beside today's on one database, while robots live and people change
// settings and give commands: first one process goes back, then the other, then both come forward again. Nothing acknowledged is lost. KENNEL_PREVIOUS
// names another commit. The light run builds no former commit: a copy of today's kenneld takes the place of one process, and then the other's; that
// migrations suit a former one is TestMigrationsAreAdditive.
func TestRollingUpgrade(t *testing.T) { runUpgrade(t, embedded) }

// TestRollingUpgradeBehindNATS is TestRollingUpgrade behind a cluster of three NATS servers, whose uplink both versions read (issue 34, must hold 3). It runs in
// soak and, without the former commit, by make cluster-test.
func TestRollingUpgradeBehindNATS(t *testing.T) {
	if wantsCluster(t) {
		runUpgrade(t, natsBroker)
	}
}

func runUpgrade(t *testing.T, broker string) {
	type step struct{ name, program string }
	today := filepath.Join(housetest.Bin, "kenneld")
	var old string
	var steps []step
	if housetest.Soak() {
		old = previousKenneld(t)
		steps = []step{{"kenneld-a", old}, {"kenneld-b", old}, {"kenneld-a", today}, {"kenneld-b", today}}
	} else {
		old = copied(t, today)
		steps = []step{{"kenneld-a", old}, {"kenneld-b", old}}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	x := newChaos(t, ctx, 10, broker)
	people, send := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { x.changeSettings(people) })
	wg.Go(func() { x.giveCommands(people) })
	wg.Go(func() { x.leaveFiles(people) })
	count := map[string]int{}
	for _, step := range steps {
		x.swap(step.name, step.program)
		count[step.name]++
		x.awaitPresent(5 * time.Minute)
		for range 3 {
			x.progress()
		}
	}
	send()
	wg.Wait()
	x.awaitPresent(5 * time.Minute)
	x.judgeAll(count)
}

// copied returns another file with the same program.
func copied(t *testing.T, program string) string {
	t.Helper()
	dir, err := os.MkdirTemp(housetest.Work, "copied-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	out := filepath.Join(dir, filepath.Base(program))
	b, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(out, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// install makes program the one that the process called name runs from its next start on, and returns where it is.
func (c *cluster) install(name, program string) (path string) {
	c.t.Helper()
	path = filepath.Join(c.dir, name+".program")
	if err := errors.Join(os.Symlink(program, path+".next"), os.Rename(path+".next", path)); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// swap makes the process called name run program, and waits until its API answers.
func (x *chaos) swap(name, program string) {
	x.t.Helper()
	x.install(name, program)
	before := x.kids[name].Pid()
	p, err := os.FindProcess(before)
	if err != nil || before == 0 {
		x.t.Fatalf("%s: pid %d, %v", name, before, err)
	}
	if err := p.Kill(); err != nil {
		x.t.Fatal(err)
	}
	housetest.Await(x.t, 2*time.Minute, name+" as "+program, func() error {
		pid := x.kids[name].Pid()
		if pid == 0 || pid == before {
			return errors.New("not started yet")
		}
		if got, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe"); err != nil || got != program {
			return errors.New("runs " + got)
		}
		status, err := x.api(name).call(x.t.Context(), "GET", "/v1/fleet", nil, nil)
		if err == nil && status != 200 {
			err = errors.New("status " + strconv.Itoa(status))
		}
		return err
	})
}

// previousKenneld builds kenneld of the commit before the newest migration was added.
func previousKenneld(t *testing.T) string {
	t.Helper()
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", "../../.."}, args...)...).Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	commit := os.Getenv("KENNEL_PREVIOUS")
	if commit == "" {
		commit = git("log", "-1", "--format=%H", "--diff-filter=A", "--", "infra/migrations/*.sql") + "~1"
	}
	t.Logf("previous release: %s", git("log", "-1", "--format=%h %s", commit))
	dir, err := os.MkdirTemp(housetest.Work, "previous-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	archive := filepath.Join(dir, "previous.tar")
	git("archive", "--format=tar", "-o", archive, commit)
	for _, cmd := range [][]string{{"tar", "xf", archive}, {"go", "build", "-trimpath", "-ldflags=-s -w", "-o", "kenneld.previous", "./cmd/kenneld"}} {
		c := exec.Command(cmd[0], cmd[1:]...)
		c.Dir, c.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
	}
	return filepath.Join(dir, "kenneld.previous")
}
