package housetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/infra/freeaddr"
)

// Fleet is a running robotsim fleet.
type Fleet struct {
	T      *testing.T
	cmd    *exec.Cmd
	addr   string
	out    *SyncBuffer // the summary at its end
	err    *SyncBuffer
	Exited chan error
}

// FleetStatus is the status that a fleet reports.
type FleetStatus struct {
	Robots, Enrolled, Connected int
	Reboots, Reconnects, Drops  int64
	Settings                    int64 `json:"settings_changed"`
	Events                      struct{ Emitted, Acked, Waiting, Dropped, Quarantined int64 }
	Errors                      map[string]int64
	Login                       Spread `json:"login_ms"`
	Absence                     Spread `json:"absence_ms"`
	Process                     struct {
		RSS   int64   `json:"rss_bytes"`
		CPU   float64 `json:"cpu_ms"`
		Files int     `json:"open_files"`
	}
}

// Spread is how the values of a measurement are spread, in its unit.
type Spread struct {
	N                             int
	Min, Mean, P50, P90, P99, Max float64
}

// FleetRoot makes a folder for robots, in memory if there is such a place: thousands of robots sync thousands of files.
func FleetRoot(t *testing.T) string {
	t.Helper()
	place := "/dev/shm"
	if fi, err := os.Stat(place); err != nil || !fi.IsDir() {
		place = Work
	}
	dir, err := os.MkdirTemp(place, "kennel-fleet-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// StartFleet starts n light robots that call this house.
func (h *House) StartFleet(t *testing.T, root string, n int, profile string, args ...string) *Fleet {
	t.Helper()
	return StartFleet(t, root, n, profile, append([]string{"-api", h.Ready.Endpoints["api"], "-ca", h.Ready.Files["root_ca"], "-token-file", h.Ready.Files["operator_token"]}, args...)...)
}

// StartFleet starts n light robots that call the cloud that args name.
func StartFleet(t *testing.T, root string, n int, profile string, args ...string) *Fleet {
	t.Helper()
	f := &Fleet{T: t, addr: freeaddr.For(t), out: &SyncBuffer{}, err: &SyncBuffer{}, Exited: make(chan error, 1)}
	args = append([]string{"fleet", "-n", fmt.Sprint(n), "-root", root, "-profile", profile, "-status", f.addr, "-o", "json"}, args...)
	f.cmd = exec.Command(filepath.Join(Bin, "robotsim"), args...)
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	f.cmd.Stdout, f.cmd.Stderr = f.out, f.err
	StartLocked(t, f.cmd)
	go func() { f.Exited <- f.cmd.Wait() }()
	t.Cleanup(func() {
		if f.cmd.ProcessState == nil {
			_ = f.cmd.Process.Kill() // it may end by itself just now
			<-f.Exited
		}
		if t.Failed() {
			t.Logf("fleet said:\n%s", Tail(f.err.String(), 20))
		}
	})
	return f
}

// Status asks the fleet.
func (f *Fleet) Status() (s FleetStatus, err error) {
	ctx, cancel := context.WithTimeout(f.T.Context(), 10*time.Second)
	defer cancel()
	return s, f.Ask(ctx, http.MethodGet, "/status", &s)
}

// Ask makes a request to the fleet's own port and decodes the answer into out. An answer other than 200 is an error.
func (f *Fleet) Ask(ctx context.Context, method, path string, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+f.addr+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

// Await waits until the fleet's status is as wanted, and returns it.
func (f *Fleet) Await(limit time.Duration, what string, ok func(FleetStatus) bool) (s FleetStatus) {
	f.T.Helper()
	Await(f.T, limit, what, func() error {
		select {
		case err := <-f.Exited:
			f.Exited <- err
			f.T.Fatalf("the fleet ended: %v\n%s", err, Tail(f.err.String(), 20))
		default:
		}
		var err error
		if s, err = f.Status(); err != nil {
			return err
		}
		if !ok(s) {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	return s
}

// Stop interrupts the fleet and returns its summary.
func (f *Fleet) Stop() (s FleetStatus) {
	f.T.Helper()
	_ = f.cmd.Process.Signal(os.Interrupt)
	select {
	case err := <-f.Exited:
		if err != nil {
			f.T.Errorf("fleet: %v\n%s", err, Tail(f.err.String(), 20))
		}
	case <-time.After(2 * time.Minute):
		f.T.Fatalf("the fleet does not stop\n%s", Tail(f.err.String(), 20))
	}
	if err := json.Unmarshal([]byte(f.out.String()), &s); err != nil {
		f.T.Fatalf("summary: %v in %s", err, f.out)
	}
	return s
}

// QueryNumber asks the database for one.
func QueryNumber(t *testing.T, db *pgx.Conn, query string) (n int64) {
	t.Helper()
	if err := db.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// SteadyFleet is robots that live and stay: what is counted is the cloud's doing.
const SteadyFleet = `status: 20s
flush: 3s
telemetry: 1m
events_per_hour: 600
settings_per_hour: 6
`

// FleetProfile writes the text of a profile into a file and returns its name.
func FleetProfile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "profile.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
