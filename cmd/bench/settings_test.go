package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kennel/infra/api/topics"
	"kennel/infra/bench"
	"kennel/infra/thing"
)

const (
	settingsRobots  = 5
	settingsChanges = 50
	settingsEvery   = 250 * time.Millisecond // between changes; each robot gets one in 1.25 s
	settingsLimit   = 30 * time.Second
	settingsFolder  = "data/data/com.anki.victor/persistent/jdocs"
	settingsDoc     = "vic.RobotSettings"
)

// BenchmarkSettingsBesideRequest measures from the request that an operator's program sends until the new value is in the robot's own file, beside one bare HTTPS
// request to the same server plus one bare message over the same broker.
func BenchmarkSettingsBesideRequest(b *testing.B) { settingsBesideRequest(b) }

func settingsBesideRequest(tb testing.TB) {
	var p50, p99 []bench.Pair
	h, err := startHouse(tb.Context(), programs(tb), "-robots", fmt.Sprint(settingsRobots))
	if err != nil {
		tb.Fatal(err)
	}
	defer h.Stop()
	changes := bench.Part(tb, settingsChanges)
	change, stop, err := newChanger(tb.Context(), h)
	if err != nil {
		tb.Fatal(err)
	}
	defer stop()
	bench.Turns(tb, func() error {
		var took, bare []float64
		for range changes {
			t, b, err := change(tb.Context())
			if err != nil {
				return err
			}
			took, bare = append(took, t), append(bare, b)
		}
		p50 = append(p50, bench.Pair{Value: bench.Median(took), Reference: bench.Median(bare)})
		p99 = append(p99, bench.Pair{Value: bench.Percentile(took, 99), Reference: bench.Percentile(bare, 99)})
		return nil
	})
	bench.Report(tb, bench.Line{Name: "settings/p50", Unit: "ms", Less: true,
		Note: fmt.Sprintf("%d changes over %d whole robots, from the HTTPS request until the robot's synced file holds the value; reference: a bare HTTPS request and then a bare MQTT message",
			changes, settingsRobots)}, p50)
	bench.Report(tb, bench.Line{Name: "settings/p99", Unit: "ms", Less: true}, p99)
}

// newChanger returns a function that changes a setting of the next robot, and says how many milliseconds that and the reference took.
func newChanger(ctx context.Context, h *house) (change func(context.Context) (took, bare float64, err error), stop func(), err error) {
	wait, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	things, err := h.Present(wait, settingsRobots)
	if err != nil {
		return nil, nil, err
	}
	files := make([]*watchedDoc, len(things))
	for i, id := range things {
		if files[i], err = watchDoc(wait, filepath.Join(h.Dir(), "robots", thing.ID(id).Slug(), settingsFolder), settingsDoc+".json"); err != nil {
			return nil, nil, err
		}
	}
	post, err := newPost(ctx, h)
	if err != nil {
		return nil, nil, err
	}
	stop = func() {
		post.stop()
		for _, f := range files {
			f.f.Close()
		}
	}
	n := 0
	return func(ctx context.Context) (took, bare float64, err error) {
		i := n % len(files)
		n++
		place := fmt.Sprintf("bench %d", n)
		start := time.Now()
		if err := h.API(ctx, "PATCH", "/v1/things/"+things[i]+"/jdocs/"+settingsDoc, map[string]any{"set": map[string]any{"default_location": place}}, nil); err != nil {
			return 0, 0, err
		}
		if err := files[i].await(place); err != nil {
			return 0, 0, err
		}
		took = ms(time.Since(start))
		start = time.Now()
		if err := errors.Join(h.API(ctx, "GET", "/ok", nil, nil), post.trip(ctx)); err != nil {
			return 0, 0, err
		}
		return took, ms(time.Since(start)), bench.Pass(ctx, settingsEvery)
	}, stop, nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// watchedDoc is a robot's file that the kernel tells us changes of.
type watchedDoc struct {
	name string
	f    *os.File // inotify
}

// watchDoc waits until the robot has made the file's folder.
func watchDoc(ctx context.Context, dir, name string) (*watchedDoc, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	w := &watchedDoc{filepath.Join(dir, name), os.NewFile(uintptr(fd), "inotify")}
	for {
		_, err = unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE)
		if err == nil {
			return w, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || bench.Pass(ctx, 50*time.Millisecond) != nil {
			w.f.Close()
			return nil, fmt.Errorf("watch %s: %w", dir, err)
		}
	}
}

// await returns when the file says that the robot is at place.
func (w *watchedDoc) await(place string) error {
	if err := w.f.SetReadDeadline(time.Now().Add(settingsLimit)); err != nil {
		return err
	}
	for buf := make([]byte, 4096); ; {
		var doc struct{ Jdoc map[string]any }
		b, err := os.ReadFile(w.name)
		if err == nil && json.Unmarshal(b, &doc) == nil && doc.Jdoc["default_location"] == place {
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if _, err := w.f.Read(buf); err != nil {
			return fmt.Errorf("%s does not say %q: %w", w.name, place, err)
		}
	}
}

// post carries bare messages from a service to a thing.
type post struct {
	from, to *session
	topic    string
	arrived  chan struct{}
}

func newPost(ctx context.Context, h *house) (*post, error) {
	is, err := openIssuer(h.CA())
	if err != nil {
		return nil, err
	}
	return newPostOf(ctx, h, is, 0)
}

// newPostOf is newPost to the n-th thing.
func newPostOf(ctx context.Context, h *house, is issuer, n int) (*post, error) {
	robot, err := is.thing(n)
	if err != nil {
		return nil, err
	}
	cloud, err := is.service()
	if err != nil {
		return nil, err
	}
	p := &post{topic: topics.DownTopic(robot.id, "bench"), arrived: make(chan struct{}, 1)}
	if p.to, err = connect(ctx, h.URL("mqtt"), string(robot.id), robot, func(string, []byte) { p.arrived <- struct{}{} }, p.topic); err != nil {
		return nil, err
	}
	if p.from, err = connect(ctx, h.URL("mqtt"), "kenneld-bench", cloud, func(string, []byte) {}); err != nil {
		p.to.stop()
		return nil, err
	}
	return p, nil
}

func (p *post) stop() {
	p.from.stop()
	p.to.stop()
}

// trip is one message from publish to arrival.
func (p *post) trip(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settingsLimit)
	defer cancel()
	if err := p.from.Publish(ctx, p.topic, 1, false, []byte(strings.Repeat("x", 512))); err != nil {
		return err
	}
	select {
	case <-p.arrived:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
