package pages

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kennel/cmd/e2e/housetest"
	"kennel/infra/freeaddr"
)

// part is a line of /readyz for operators.
type part struct {
	Part, Reason string
	OK           bool
	Since        time.Time
}

// partNow asks kenneld about one of its parts; code is the status of the whole answer.
func partNow(h *housetest.House, name string) (p part, code int, err error) {
	resp, err := http.Get(strings.TrimSuffix(h.Ready.Endpoints["metrics"], "/metrics") + "/readyz")
	if err != nil {
		return p, 0, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return p, 0, err
	}
	var rep struct{ Parts []part }
	if err := json.Unmarshal(b, &rep); err != nil {
		return p, 0, fmt.Errorf("%s: %w", b, err)
	}
	for _, p := range rep.Parts {
		if p.Part == name {
			return p, resp.StatusCode, nil
		}
	}
	return p, 0, fmt.Errorf("no part %s in %s", name, b)
}

// TestTroublesAreNamed (issue 16, finding 6): a broker that is frozen, though its connections are up, and a volume that fills are named by readiness,
// by health, on the console's first page and as alerts; within seconds, with how full and since when; and no longer once that is over.
func TestTroublesAreNamed(t *testing.T) {
	dir, small := housetest.SmallVolume(t, housetest.SmallSize) // first: it is unmounted last
	h := housetest.New(t, "-robots", "0", "-listen", "metrics="+freeaddr.For(t), "-data", dir)
	h.Dir = dir
	h.Start()
	op := h.Operator(t)
	expect := func(limit time.Duration, name string, ok bool, code int, words ...string) {
		t.Helper()
		var last string
		start := time.Now()
		for time.Since(start) < limit {
			p, got, err := partNow(h, name)
			health, b := op.Try("GET", "/v1/health", nil)
			_, page := op.Try("GET", "/", nil)
			last = fmt.Sprintf("readiness %d %+v %v; health %d %s", got, p, err, health, b)
			good := err == nil && p.OK == ok && got == code && health == code && p.Since.IsZero() == (len(words) == 0) && strings.Contains(string(page), `data-live="troubles"`)
			for _, w := range words {
				good = good && strings.Contains(p.Reason, w) && strings.Contains(string(b), w) && strings.Contains(string(page), w)
			}
			if good && (len(words) > 0 || p.Reason == "") {
				t.Logf("%s: %q after %v", name, p.Reason, time.Since(start).Round(10*time.Millisecond))
				return
			}
			time.Sleep(50 * time.Millisecond) // the next look
		}
		t.Fatalf("%s not shown within %v: %s", name, limit, last)
	}
	alerted := func(kind, code, words string) {
		t.Helper()
		housetest.Await(t, time.Minute, "alert "+kind, func() error {
			var list []struct {
				Kind, Code, Reason, Place string
				Resolved                  *time.Time
			}
			if err := h.CtlJSON(&list, "alerts", "list"); err != nil {
				return err
			}
			for _, a := range list {
				if a.Kind == kind && a.Code == code && a.Resolved == nil && a.Place != "" && strings.Contains(a.Reason, words) {
					return nil
				}
			}
			return fmt.Errorf("%+v", list)
		})
	}
	const soon = 5 * time.Second
	expect(time.Minute, "broker", true, 200)
	if small { // else the disk of this machine may be low
		expect(soon, "disk", true, 200)
	}

	broker := h.Ready.Pids["broker"]
	if err := syscall.Kill(broker, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(broker, syscall.SIGCONT) })
	expect(soon, "broker", false, 503, "has not answered since")
	alerted("part_failing", "broker", "has not answered")
	if err := syscall.Kill(broker, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	expect(time.Minute, "broker", true, 200)

	if !small {
		return
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(h.Dir, &fs); err != nil {
		t.Fatal(err)
	}
	free := int64(fs.Bavail) * fs.Bsize
	ballast, err := os.Create(filepath.Join(h.Dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer ballast.Close()
	if err := unix.Fallocate(int(ballast.Fd()), 0, 0, free-housetest.SmallSize/8); err != nil {
		t.Fatal(err)
	}
	where := []string{"volume of data (" + h.Dir, "postgres (" + h.Dir}
	expect(soon, "disk", true, 200, append(where, " is low: ", " since ")...)
	alerted("part_warning", "disk", "is low")
	chunk := make([]byte, 64<<10)
	_, err = ballast.Seek(0, io.SeekEnd)
	for err == nil {
		_, err = ballast.Write(chunk)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	expect(soon, "disk", false, 503, append(where, " is full: ", " since ")...)
	if err := os.Remove(ballast.Name()); err != nil {
		t.Fatal(err)
	}
	_ = ballast.Close() // or its space stays
	expect(soon, "disk", true, 200)
}
