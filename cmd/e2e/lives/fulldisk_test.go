package lives

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
)

// TestFullCloud: must hold 2 of the issue of telemetry. The disk of the cloud is full while a robot has events, a log and a crash to send. What the robot was told is
// stored is there once when there is room again, and what it was not told about comes then.
func TestFullCloud(t *testing.T) {
	dir, small := housetest.SmallVolume(t, housetest.SmallSize) // first: it is unmounted last
	if !small {
		return
	}
	h := housetest.New(t, "-robots", "0", "-data", dir)
	h.Dir = dir
	h.Start()
	const id = "vic:00e2f001"
	root, said := lonely(t, h, id)
	h.AwaitPresent(1)
	var count housetest.Tally
	stored := func(why string, more int) {
		t.Helper()
		before := count.Count(t, []string{said})
		housetest.Await(t, 2*time.Minute, why, func() error {
			if n := count.Count(t, []string{said}); n < before+more {
				return fmt.Errorf("%d batches stored, want %d", n, before+more)
			}
			return nil
		})
	}
	stored("events are stored", 3)

	housetest.FillUp(t, dir)
	var files []string
	for _, crash := range []bool{false, true} {
		f, err := housetest.LeaveFile(root, 1, crash)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	housetest.Await(t, 2*time.Minute, "the robot was told to wait", func() error {
		b, err := os.ReadFile(said)
		if err == nil && !strings.Contains(string(b), "upload postponed") {
			err = fmt.Errorf("nothing of it in its log")
		}
		return err
	})
	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	stored("events are stored again", 3)
	for _, f := range files {
		housetest.Await(t, 3*time.Minute, filepath.Base(f)+" is sent", func() error {
			if _, err := os.Stat(f); err == nil {
				return fmt.Errorf("it waits")
			}
			return nil
		})
	}
	db := h.DB(t)
	lost, double, n := housetest.Judge(housetest.AllTold(t, []string{said}), housetest.StoredSeqs(t, db))
	if len(lost)+len(double) > 0 || n < 20 {
		t.Errorf("of %d events that were called stored, lost: %v, double: %v", n, lost, double)
	}
	for _, table := range []string{"uploads_log", "crash_crash"} {
		var n int
		if err := db.QueryRow(t.Context(), `SELECT count(*) FROM `+table+` WHERE thing = $1`, id).Scan(&n); err != nil || n != 1 {
			t.Errorf("%d rows in %s, %v; want 1", n, table, err)
		}
	}
}

// lonely runs the agent of a robot without a body, whose files are not in the house. It returns their folder, and what the agent says.
func lonely(t *testing.T, h *housetest.House, id string) (root, said string) {
	t.Helper()
	var reg struct{ Secret string }
	if err := h.CtlJSON(&reg, "robots", "register", id); err != nil {
		t.Fatal(err)
	}
	root, secret := filepath.Join(t.TempDir(), "robot"), filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(reg.Secret), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join(housetest.Bin, "robotsim"), "make", "-root", root, "-thing", id, "-secret-file", secret,
		"-api", h.Ready.Endpoints["api"], "-mqtt", h.Ready.Endpoints["mqtt"], "-ca", h.Ready.Files["root_ca"]).CombinedOutput(); err != nil {
		t.Fatalf("robotsim make: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(root, "anki/etc/kennel-agent.env"), []byte("TELEMETRY_MS=200\nFLUSH_MS=400\nGATEWAY=127.0.0.1:0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	said = filepath.Join(t.TempDir(), "agentd.log")
	out, err := os.Create(said)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(housetest.Bin, "agentd"), "-root", root, "-log-level", "debug")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stdout, cmd.Stderr = out, out
	housetest.StartLocked(t, cmd)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || t.Failed() {
			b, _ := os.ReadFile(said)
			t.Errorf("agentd: %v\n%s", err, housetest.Tail(string(b), 40))
		}
		out.Close()
	})
	return root, said
}
