package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"kennel/infra/api/commandwire"
	"kennel/infra/wake"
)

// TestKilledAtEveryPoint: whatever step the agent dies at, the next one brings the command to one result, and it ran at most once.
func TestKilledAtEveryPoint(t *testing.T) {
	const broken = "the agent ended while it ran; whether it took effect is not known"
	for point, want := range map[string]commandwire.Result{
		"begun":    {Status: commandwire.Failed, Detail: broken}, // not run, but who died cannot tell
		"ran":      {Status: commandwire.Failed, Detail: broken},
		"finished": {Status: commandwire.Done, Detail: "ran i1"},
		"after":    {Status: commandwire.Done, Detail: "ran i1"},
		"told":     {Status: commandwire.Done, Detail: "ran i1"},
		"noted":    {Status: commandwire.Done, Detail: "ran i1"},
	} {
		t.Run(point, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start(point)
				w.deliver(intent(1))
				<-w.ended
				if w.dieAt.Load() != nil {
					t.Fatalf("never came to %q", point)
				}
				// As a kill within a write would leave it.
				stray := filepath.Join(w.dir, Dir, uuid(1)+".json.1.1.kennel-tmp")
				if err := os.WriteFile(stray, []byte(`{"v":1,`), 0o644); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					w.start("")
					w.deliver(intent(1))
					time.Sleep(time.Minute)
					synctest.Wait()
					w.stop()
				}
				w.want(uuid(1), want.Status, want.Detail)
				if n := w.runs["i1"]; n > 1 || point != "begun" && n != 1 {
					t.Errorf("ran %d times", n)
				}
				if _, err := os.Stat(stray); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("half-written file stays: %v", err)
				}
			})
		})
	}
}

func TestOfflineThenPulled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.cloud.open = []commandwire.Command{intent(1), intent(2)}
		w.cloud.away = true
		w.start("")
		defer w.stop()
		time.Sleep(10 * time.Minute)
		w.agent.Connected(false)
		w.cloud.mu.Lock()
		w.cloud.away, w.cloud.lose = false, 3
		w.cloud.mu.Unlock()
		w.agent.Connected(true)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		w.want(uuid(1), commandwire.Done, "ran i1")
		w.want(uuid(2), commandwire.Done, "ran i2")
		if w.runs["i1"] != 1 || w.runs["i2"] != 1 {
			t.Errorf("runs %v", w.runs)
		}
	})
}

func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("")
		for n := range keepTold + 20 {
			w.deliver(intent(n))
			synctest.Wait()
		}
		if n := count(t, w.dir); n != keepTold {
			t.Errorf("%d records, want %d", n, keepTold)
		}
		w.cloud.mu.Lock()
		w.cloud.away = true
		w.cloud.mu.Unlock()
		for n := range maxUntold + 20 {
			w.deliver(intent(10_000 + n))
			synctest.Wait()
		}
		if n := count(t, w.dir); n != keepTold+maxUntold {
			t.Errorf("%d records with the cloud away, want %d", n, keepTold+maxUntold)
		}
		w.stop()
	})
}

func count(t *testing.T, dir string) int {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(dir, Dir))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// TestDamagedRecord: what cannot be read was begun all the same.
func TestDamagedRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if err := os.MkdirAll(filepath.Join(w.dir, Dir), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{uuid(1) + ".json": "", "notes.txt": "mine", uuid(2) + ".json": `{"v":1,"num":3,"id":"` + uuid(1) + `"}`} {
			if err := os.WriteFile(filepath.Join(w.dir, Dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		w.start("")
		w.deliver(intent(1))
		w.deliver(intent(2))
		synctest.Wait()
		w.stop()
		for n := 1; n <= 2; n++ {
			if r := w.cloud.result(uuid(n)); r.Status != commandwire.Failed || !strings.Contains(r.Detail, "not known") {
				t.Errorf("%d: %+v", n, r)
			}
		}
		if len(w.runs) != 0 {
			t.Errorf("ran %v", w.runs)
		}
	})
}

// TestFullDisk: nothing is begun that could not be noted.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("")
		// A file where the folder should be: no record can be written.
		if err := os.MkdirAll(filepath.Join(w.dir, path.Dir(Dir)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.dir, Dir), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		w.deliver(intent(1))
		synctest.Wait()
		if len(w.runs) != 0 || w.cloud.told != 0 {
			t.Errorf("runs %v, told %d; want nothing", w.runs, w.cloud.told)
		}
		if err := os.Remove(filepath.Join(w.dir, Dir)); err != nil {
			t.Fatal(err)
		}
		w.deliver(intent(1))
		synctest.Wait()
		w.want(uuid(1), commandwire.Done, "ran i1")
		w.stop()
	})
}

// TestAnything: deliveries, copies, outages, lost answers and deaths in any order.
func TestAnything(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.start("")
			points := []string{"begun", "ran", "finished", "after", "told", "noted"}
			given := 0
			for range rapid.IntRange(5, 30).Draw(rt, "steps") {
				switch rapid.SampledFrom([]string{"new", "new", "copy", "die", "away", "back", "lose", "wait"}).Draw(rt, "step") {
				case "new":
					given++
					w.cloud.mu.Lock()
					w.cloud.open = append(w.cloud.open, intent(given))
					w.cloud.mu.Unlock()
					w.deliver(intent(given))
				case "copy":
					if given > 0 {
						w.deliver(intent(rapid.IntRange(1, given).Draw(rt, "which")))
					}
				case "die":
					w.stop()
					w.start(rapid.SampledFrom(points).Draw(rt, "point"))
				case "away", "back":
					w.cloud.mu.Lock()
					w.cloud.away = !w.cloud.away
					away := w.cloud.away
					w.cloud.mu.Unlock()
					w.agent.Connected(!away)
				case "lose":
					w.cloud.mu.Lock()
					w.cloud.lose = rapid.IntRange(1, 3).Draw(rt, "answers")
					w.cloud.mu.Unlock()
				case "wait":
					time.Sleep(time.Duration(rapid.IntRange(0, 10).Draw(rt, "s")) * time.Second)
				}
				synctest.Wait()
			}
			w.cloud.mu.Lock()
			w.cloud.away, w.cloud.lose = false, 0
			w.cloud.mu.Unlock()
			w.stop()
			w.start("")
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			w.stop()
			for n := 1; n <= given; n++ {
				runs, r := w.runs[fmt.Sprintf("i%d", n)], w.cloud.result(uuid(n))
				if runs > 1 || r.Status == commandwire.Done && runs != 1 || r.Status != commandwire.Done && r.Status != commandwire.Failed {
					rt.Errorf("command %d: ran %d times, result %+v", n, runs, r)
				}
			}
		})
	})
}

func FuzzHandle(f *testing.F) {
	b, _ := intent(1).Encode()
	f.Add(b)
	f.Add([]byte(`{"v":1}`))
	a := &Agent{cfg: Config{Log: slog.New(slog.DiscardHandler)}, work: [lanes]wake.Signal{wake.New(), wake.New(), wake.New(), wake.New()}}
	f.Fuzz(func(t *testing.T, b []byte) {
		a.Handle(b)
		if len(a.queue) > maxQueue {
			t.Fatalf("%d in the queue", len(a.queue))
		}
		a.queue = nil
	})
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"v":1,"num":7,"id":"` + uuid(1) + `","kind":"ping","result":{"v":1,"id":"` + uuid(1) +
		`","status":"done","finished_ms":1},"told":true}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRecord(uuid(1), b)
		if err != nil {
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseRecord(uuid(1), again); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
	})
}
