package lives

import (
	"archive/tar"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
)

// TestLogsOnRequest: an operator asks a robot for its logs and its diagnostics and reads them (VEC-LOG-04, VEC-LOG-07, VEC-LOG-10); what a program leaves in
// the folder of outgoing logs is uploaded once, also if agentd is killed meanwhile (VEC-LOG-02).
func TestLogsOnRequest(t *testing.T) {
	h := housetest.New(t, "-robots", "1")
	h.Start()
	thing := h.AwaitPresent(1)[0]
	root := h.RobotRoot(thing)
	type log struct{ ID, Name, Kind, Reason, OS string }
	var logs []log
	listed := func(n int, filter ...string) log {
		t.Helper()
		housetest.Await(t, 2*time.Minute, fmt.Sprintf("%d logs %v", n, filter), func() error {
			err := h.CtlJSON(&logs, append([]string{"logs", "list", thing}, filter...)...)
			if err == nil && len(logs) != n {
				err = fmt.Errorf("%+v", logs)
			}
			return err
		})
		return logs[0]
	}

	if _, err := h.Ctl("logs", "request", thing, "-reason", "battery-drain"); err != nil {
		t.Fatal(err)
	}
	snapshot := listed(1, "-reason", "battery-drain")
	if snapshot.Kind != "snapshot" || !strings.HasPrefix(snapshot.Name, "victor-") || snapshot.OS == "" {
		t.Errorf("stored as %+v", snapshot)
	}
	if out, err := h.Ctl("logs", "show", thing, snapshot.ID, "-text", "connected to the cloud"); err != nil || !strings.Contains(string(out), "connected to the cloud") {
		t.Errorf("the snapshot: %s, %v", out, err)
	}

	agentd := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), filepath.Join(housetest.Bin, "agentd"), append(args, "-root", root)...).CombinedOutput()
		if err != nil {
			t.Errorf("agentd %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	if out := agentd("log", "cat"); !strings.Contains(out, "agentd.log <==") || !strings.Contains(out, "connected to the cloud") {
		t.Errorf("log cat: %.200s", out)
	}
	if out := agentd("log", "send", "-diagnostics"); !strings.Contains(out, "diagnostics-") {
		t.Errorf("log send: %s", out)
	}
	file := filepath.Join(t.TempDir(), "diagnostics.tar.bz2")
	if _, err := h.Ctl("logs", "get", thing, listed(1, "-kind", "diagnostics", "-reason", "local").ID, "-to", file); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // only read
	var names []string
	for r := tar.NewReader(bzip2.NewReader(f)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
	if len(names) != 10 || !slices.Contains(names, "log.txt") {
		t.Errorf("the archive has %q", names)
	}

	outgoing := filepath.Join(root, "data/data/com.anki.victor/cache/outgoing")
	leave := func(name string) {
		tmp := filepath.Join(root, name)
		if err := errors.Join(os.WriteFile(tmp, []byte("2026-01-02T10:00:00Z err x: it died\n"), 0o600), os.Rename(tmp, filepath.Join(outgoing, name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(housetest.RobotPids(root)["agentd"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		leave(fmt.Sprintf("fault-914-%d.log", i))
	}
	listed(3, "-kind", "fault", "-reason", "fault-914", "-version", snapshot.OS)
	housetest.Await(t, time.Minute, "the robot's folder empty", func() error {
		left, err := os.ReadDir(outgoing)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("left: %v", left)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	})
	listed(3, "-kind", "fault")
	if out, err := h.Ctl("audit", "list", "-limit", "50"); err != nil || !strings.Contains(string(out), "command.send") || !strings.Contains(string(out), "send_logs") {
		t.Errorf("the audit log: %v\n%s", err, out)
	}
}
