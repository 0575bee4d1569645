package storms

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
	"kennel/infra/pg/pgtest"
)

// primaryVolume is the size of a volume on which a primary works until a test fills it, in bytes.
const primaryVolume = 384 << 20

// TestPrimaryDiskFull fills the volume of the primary while robots send events, logs and crashes through three NATS servers and people change settings and give
// commands (issue 34, must hold 1). At first tables find no room: Postgres refuses statements, robots and people are told to come again. Then its log finds none
// either: Postgres ends, and does not come up until there is space. Nothing acknowledged is lost or stored twice. It needs a mount and runs in soak; the light form
// is noSpace in TestChaos, where Postgres has room and refuses all the same.
func TestPrimaryDiskFull(t *testing.T) {
	if !housetest.Soak() {
		return
	}
	dir := workFolder(t)
	data := filepath.Join(dir, "parts", "pg")
	if err := os.MkdirAll(data, 0o711); err != nil {
		t.Fatal(err)
	}
	if !housetest.MountSmall(t, data, primaryVolume) {
		return
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	x := newChaosOn(t, ctx, newClusterIn(t, dir), 20, natsBroker)
	people, send := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { x.changeSettings(people) })
	wg.Go(func() { x.giveCommands(people) })
	wg.Go(func() { x.leaveFiles(people) })
	x.progress()
	fill := func() (empty func()) {
		x.freshLog()
		housetest.FillUp(t, data)
		return func() {
			if err := os.Remove(filepath.Join(data, "ballast")); err != nil {
				t.Error(err)
			}
		}
	}
	for range 3 {
		x.noSpace(fill)
		x.progress()
	}
	for range 2 {
		x.mayEnd.Store(true)
		empty := fill()
		x.fillLog()
		if status, err := x.apis[0].call(ctx, "PATCH", x.settings(0), map[string]any{"set": map[string]any{"master_volume": 1}}, nil); status != 0 && status != http.StatusServiceUnavailable {
			t.Errorf("a change of settings without a primary: %d, %v", status, err)
		}
		empty()
		x.stopPostgres() // as far as it runs
		x.mayEnd.Store(false)
		x.startPostgres()
		x.progress()
	}
	send()
	wg.Wait()
	x.awaitPresent(5 * time.Minute)
	x.judgeAll(map[string]int{"tables without space": 3, "log without space": 2})
}

// freshLog begins a segment of Postgres' log, which has room for a while then.
func (x *chaos) freshLog() {
	db := x.connect()
	for _, sql := range []string{`SELECT pg_switch_wal()`, `SELECT pg_logical_emit_message(true, 'test', 'first of its segment')`} {
		if _, err := db.Exec(x.t.Context(), sql); err != nil {
			x.t.Fatal(err)
		}
	}
}

// fillLog makes Postgres begin segments of its log until there is no room for one, which ends it.
func (x *chaos) fillLog() {
	t := x.t
	t.Helper()
	before := x.db.Pid()
	housetest.Await(t, time.Minute, "the log of the primary finds no space", func() error {
		db, err := x.tryConnect()
		if err == nil {
			defer db.Close(context.WithoutCancel(t.Context()))
			for range 20 {
				if _, err = db.Exec(t.Context(), `SELECT pg_logical_emit_message(true, 'test', repeat('x', 100)), pg_switch_wal()`); err != nil {
					break
				}
			}
		}
		b, rerr := os.ReadFile(filepath.Join(x.inst.Paths.Log, "postgres.log"))
		if rerr != nil {
			return rerr
		}
		if i := bytes.LastIndex(b, []byte("PANIC:")); i < 0 || !bytes.Contains(b[i:], []byte("No space left on device")) || x.db.Pid() == before && bytes.Contains(b[i:], []byte("ready to accept")) {
			return fmt.Errorf("it still writes: %v", err)
		}
		return nil
	})
}

// settings is the route of the settings of the nth robot.
func (x *chaos) settings(n int) string {
	return "/v1/things/" + x.things[n] + "/jdocs/vic.RobotSettings"
}

// noSpace is a time in which the database refuses what it has no space for, from fill on until empty. Robots are told to wait and people to come again, both by
// name; each change of settings that was acknowledged in between is stored, and none that was refused.
func (x *chaos) noSpace(fill func() (empty func())) {
	t := x.t
	t.Helper()
	ctx, began, told := t.Context(), time.Now(), x.said("events not stored; robots asked to wait")
	answers := map[int][]string{} // places that people named, by the answer's status
	n := 0
	say := func() int {
		n++
		place := fmt.Sprintf("Place-%d-%d", time.Now().UnixNano(), n)
		status, err := x.apis[n%2].call(ctx, "PATCH", x.settings(n%len(x.things)), map[string]any{"set": map[string]any{"default_location": place}, "force": true}, nil)
		if !slices.Contains([]int{0, http.StatusOK, http.StatusConflict, http.StatusServiceUnavailable}, status) {
			t.Errorf("a change of settings while there is no space: %d, %v", status, err)
		}
		answers[status] = append(answers[status], place)
		return status
	}
	empty := fill()
	housetest.Await(t, 2*time.Minute, "a change of settings is refused for now", func() error {
		if status := say(); status != http.StatusServiceUnavailable {
			return fmt.Errorf("status %d", status)
		}
		return nil
	})
	housetest.Await(t, 2*time.Minute, "robots are told to wait", func() error {
		if x.said("events not stored; robots asked to wait") == told {
			return errors.New("none was")
		}
		return nil
	})
	for range housetest.Pick(3, 30) {
		say()
		housetest.Pause(ctx, 100*time.Millisecond)
	}
	empty()
	housetest.Await(t, 2*time.Minute, "a change of settings is stored again", func() error {
		if status := say(); status != http.StatusOK {
			return fmt.Errorf("status %d", status)
		}
		return nil
	})
	db := x.connect()
	for status, places := range answers {
		for _, place := range places {
			var times int
			if err := db.QueryRow(ctx, `SELECT count(DISTINCT thing) FROM jdocs_history WHERE json_doc LIKE '%' || $1 || '%'`, place).Scan(&times); err != nil {
				t.Fatal(err)
			}
			if status == http.StatusOK && times != 1 || status > http.StatusOK && times != 0 {
				t.Errorf("a change that was answered with %d is stored %d times", status, times)
			}
		}
	}
	t.Logf("no space for %v: %d changes of settings stored, %d refused for now, %d unanswered", time.Since(began).Round(100*time.Millisecond), len(answers[http.StatusOK]), len(answers[http.StatusServiceUnavailable]), len(answers[0]))
}

// refusing is a fill without a small volume: Postgres refuses every statement that writes, as it does when it finds no space for it.
func (x *chaos) refusing() (empty func()) { return pgtest.Refuse(x.t, x.connect(), pgtest.DiskFull) }

// said counts lines with these words in the logs of the kenneld.
func (x *chaos) said(words string) (n int) {
	for _, name := range []string{"kenneld-a", "kenneld-b"} {
		files, _ := filepath.Glob(filepath.Join(x.inst.Paths.Log, name+".log*"))
		for _, file := range files {
			f, err := os.Open(file)
			if err != nil {
				continue // set aside meanwhile
			}
			b, err := io.ReadAll(f)
			_ = f.Close() // only read
			if err == nil {
				n += strings.Count(string(b), words)
			}
		}
	}
	return n
}
