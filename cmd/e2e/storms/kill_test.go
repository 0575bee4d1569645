package storms

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cmd/e2e/housetest"
)

// TestJudge: the check itself catches a planted loss and a planted double.
func TestJudge(t *testing.T) {
	promised := []housetest.Told{{Thing: "vic:1", Boot: "b", First: 1, Last: 3}}
	stored := map[string]map[int64]int{"vic:1 b": {1: 1, 2: 1, 3: 1}}
	if lost, double, n := housetest.Judge(promised, stored); len(lost)+len(double) > 0 || n != 3 {
		t.Errorf("clean: %v %v %d", lost, double, n)
	}
	stored["vic:1 b"] = map[int64]int{1: 2, 3: 1}
	if lost, double, _ := housetest.Judge(promised, stored); len(lost) != 1 || len(double) != 1 {
		t.Errorf("planted: lost %v, double %v", lost, double)
	}
}

// TestKilledWhileEventsFlow (issue: what must hold 4): SIGKILL of everything, of agentd, of Postgres, of the broker.
func TestKilledWhileEventsFlow(t *testing.T) {
	const robots = 3
	rounds := 5
	if housetest.Soak() {
		rounds = 25
	}
	h := housetest.New(t, "-log-level", "debug", "-robots", strconv.Itoa(robots), "-robot-env", "KENNEL_TELEMETRY_MS=50", "-robot-env",
		"KENNEL_FLUSH_MS=200", "-robot-env", "KENNEL_FAULT_RESTART_LIMIT=1000")
	h.Start()
	things := h.AwaitPresent(robots)
	rng := rand.New(rand.NewPCG(2, 4)) // which robot, and how long events flow before the next blow
	versions := map[string]uint64{}
	kills := map[string]int{}
	var stored housetest.Tally

	for round := range rounds {
		for _, victim := range []string{"agentd", "postgres", "broker", "kenneld"} {
			before := stored.Count(t, h.AgentLogs(things))
			housetest.Await(t, 2*time.Minute, "events flow", func() error {
				if n := stored.Count(t, h.AgentLogs(things)); n < before+3 {
					return fmt.Errorf("%d batches stored", n-before)
				}
				return nil
			})
			// Somewhere in a batch's life, not at its end.
			time.Sleep(time.Duration(rng.IntN(120)) * time.Millisecond)
			switch victim {
			case "agentd":
				pid := housetest.RobotPids(h.RobotRoot(things[rng.IntN(len(things))]))["agentd"]
				if pid == 0 {
					t.Fatal("agentd is not running")
				}
				_ = syscall.Kill(pid, syscall.SIGKILL)
			case "kenneld":
				h.KillTree()
				h.Start()
			default:
				killPart(h, victim)
			}
			kills[victim]++
			h.Set(things[0], fmt.Sprintf("master_volume=%d", 1+round%5))
			versionsOnlyRise(h, things, versions)
		}
		h.AwaitPresent(robots)
	}
	h.AwaitPresent(robots)
	promised := housetest.AllTold(t, h.AgentLogs(things))
	lost, double, events := housetest.Judge(promised, housetest.StoredSeqs(t, h.DB(t)))
	t.Logf("%v kills, %d events promised in %d batches", kills, events, len(promised))
	if events < 100 {
		t.Errorf("only %d events were promised: the test shows nothing", events)
	}
	if len(lost) > 0 {
		t.Errorf("%d events were promised and are not stored: %v", len(lost), lost[:min(5, len(lost))])
	}
	if len(double) > 0 {
		t.Errorf("%d events are stored more than once: %v", len(double), double[:min(5, len(double))])
	}
	historyRises(t, h.DB(t))
}

// killPart sends SIGKILL to a part of the house and waits until another process took its place.
func killPart(h *housetest.House, name string) {
	h.T.Helper()
	pid := h.PartPid(name)
	if pid == 0 {
		h.T.Fatalf("no pid of %s in %v", name, h.Ready.Pids)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		h.T.Fatalf("kill %s: %v", name, err)
	}
	housetest.Await(h.T, time.Minute, name+" back", func() error {
		if now := h.PartPid(name); now == 0 || now == pid {
			return fmt.Errorf("pid %d", now)
		}
		return nil
	})
}

// versionsOnlyRise checks each robot's own copy against what it was.
func versionsOnlyRise(h *housetest.House, things []string, seen map[string]uint64) {
	h.T.Helper()
	for _, id := range things {
		l, err := housetest.ReadLocal(h.RobotRoot(id))
		if err != nil {
			h.T.Errorf("%s: %v", id, err)
			continue
		}
		if l.Version < seen[id] {
			h.T.Errorf("%s: settings went back from version %d to %d", id, seen[id], l.Version)
		}
		seen[id] = l.Version
	}
}

// historyRises checks that the cloud accepted each version once and in order.
func historyRises(t *testing.T, db *pgx.Conn) {
	t.Helper()
	rows, err := db.Query(t.Context(), `select thing || ' ' || name, doc_version from jdocs_history order by thing, name, changed_at, doc_version`)
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]int64{}
	for rows.Next() {
		var key string
		var v int64
		if err := rows.Scan(&key, &v); err != nil {
			t.Fatal(err)
		}
		if v <= last[key] {
			t.Errorf("%s: version %d after %d", key, v, last[key])
		}
		last[key] = v
	}
	if err := rows.Err(); err != nil || len(last) == 0 {
		t.Errorf("history: %v, %d documents", err, len(last))
	}
}
