package lives

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cmd/e2e/housetest"
	"kennel/edge/agent/health/crashes"
	"kennel/edge/agent/health/faults"
	"kennel/edge/faultcode"
	"kennel/infra/api/status"
)

// TestCrashesOfARobot: issue 18, what must hold 2 and 6: a robot's programs are killed, break off and hang; each is started again, tells its crash by exactly
// one event, whatever is killed meanwhile, and its fault is on the robot's page in words.
func TestCrashesOfARobot(t *testing.T) {
	h := housetest.New(t, "-robots", "1", "-robot-env", "KENNEL_FLUSH_MS=100", "-robot-env", "KENNEL_FAULT_RESTART_LIMIT=1000",
		"-robot-env", "KENNEL_VIC_CRASH_SCRAPER_PERIOD_SEC=1")
	h.Start()
	id := h.AwaitPresent(1)[0]
	root := h.RobotRoot(id)
	db := h.DB(t)
	last := map[string]int{} // that was hit, by program
	signal := func(program string, sig syscall.Signal) {
		t.Helper()
		pid := 0
		housetest.Await(t, 3*time.Minute, program+" runs, with a record", func() error {
			pid = housetest.RobotPids(root)[program]
			records, _ := filepath.Glob(filepath.Join(root, "data/data/com.anki.victor/cache/crashDumps", fmt.Sprintf("%s-*-%d.dmp-", program, pid)))
			if pid == 0 || pid == last[program] || len(records) != 1 {
				return fmt.Errorf("pid %d, records %q", pid, records)
			}
			return nil
		})
		last[program] = pid
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int{}
	told := func(table, program string) (got map[string]int, err error) {
		rows, err := db.Query(t.Context(), `SELECT `+program+`, count(*) FROM `+table+` GROUP BY 1`)
		if err != nil {
			return nil, err
		}
		got = map[string]int{}
		for rows.Next() {
			var key string
			var n int
			if err := rows.Scan(&key, &n); err != nil {
				return nil, err
			}
			got[key] = n
		}
		return got, rows.Err()
	}
	crashed := func(n int, keys ...string) {
		t.Helper()
		for _, k := range keys {
			want[k] += n
		}
		for what, query := range map[string][2]string{
			"events":  {"das_event WHERE event = 'robot.crash'", "s1 || ': ' || s2"},
			"uploads": {"crash_crash", "program || ': ' || reason"},
		} {
			housetest.Await(t, 5*time.Minute, what, func() error {
				got, err := told(query[0], query[1])
				if err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
					err = fmt.Errorf("%v, want %v", got, want)
				}
				return err
			})
		}
	}
	page := func(code faultcode.Code) {
		t.Helper()
		housetest.Await(t, 3*time.Minute, fmt.Sprintf("fault %v in words", code), func() error {
			out, err := h.Ctl("doctor", id)
			if !bytes.Contains(out, []byte(code.Text())) { // a doctor that finds a fault fails
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}

	signal("robotd", syscall.SIGKILL)
	crashed(1, "robotd: "+crashes.Killed)
	signal("agentd", syscall.SIGQUIT)
	crashed(1, "agentd: SIGQUIT: quit")
	for range 3 { // while the last one is collected
		signal("agentd", syscall.SIGKILL)
	}
	crashed(3, "agentd: "+crashes.Killed)
	signal("robotd", syscall.SIGSTOP) // it hangs, and the body cuts the power
	crashed(1, "robotd: "+crashes.NoWord, "agentd: "+crashes.NoWord, "mindd: "+crashes.NoWord)
	var bare int
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM crash_crash WHERE log_size = 0 OR os = '' OR version = ''`).Scan(&bare); err != nil || bare > 0 {
		t.Errorf("%d uploads without log, release or version, %v", bare, err)
	}
	h.AwaitPresent(1)
	if err := os.WriteFile(filepath.Join(root, faults.File), []byte("970\n"), 0); err != nil { // the FIFO
		t.Fatal(err)
	}
	page(faultcode.WiFi)
}

// TestFaultsInWords: every code of annex F that a status reports is on the robot's page in words (VEC-FLT-01).
func TestFaultsInWords(t *testing.T) {
	for _, code := range faultcode.System.Codes() {
		for name, body := range map[string]*status.Body{"an agent's": nil, "the body's": {Fault: int(code)}} {
			m := status.Message{Body: body}
			f := faults.Fault{Code: code}
			m.Tell(status.Problem{Kind: status.KindFault, Code: fmt.Sprint(int(code)), Text: f.String()})
			if words := registry.Words(registry.ProblemsOf(registry.StatusAt{Message: m})); strings.Count(words, code.Text()) != 1 || strings.Contains(words, "is shown") {
				t.Errorf("%s fault %v: the page says %q", name, code, words)
			}
		}
	}
}
