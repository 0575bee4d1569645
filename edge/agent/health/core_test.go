package health

import (
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/agent/health/faults"
	"kennel/edge/agent/release"
	"kennel/edge/core/corelink"
	"kennel/edge/faultcode"
	"kennel/infra/api/events"
)

// TestCore: robotd is up while its loop steps and it says so; each pause begins the time again, and another process is the end of the one before.
func TestCore(t *testing.T) {
	type is = release.Core
	var uptime int64
	var steps uint64
	hello := func(pid uint32) corelink.Message { return &corelink.Hello{PID: pid} }
	bye := &corelink.Bye{}
	body := func(link bool) corelink.Message { return &corelink.State{Link: link} }
	loop := func(n uint64) corelink.Message {
		uptime, steps = uptime+1_000_000, steps+n
		return &corelink.LoopStats{UptimeUS: uptime, Steps: steps}
	}
	runs := func(w *coreWatch, d time.Duration, n uint64) {
		for range int(d / time.Second) {
			w.handle(loop(n), time.Now())
			time.Sleep(time.Second)
		}
	}
	for _, tt := range []struct {
		name string
		do   func(*coreWatch)
		want is
	}{
		{"nothing", func(*coreWatch) {}, is{}},
		{"only there", func(w *coreWatch) { w.handle(hello(1), time.Now()) }, is{Heard: true}},
		{"the statistics of the past", func(w *coreWatch) { w.handle(loop(200), time.Now()) }, is{}},
		{"steps", func(w *coreWatch) { w.handle(hello(1), time.Now()); runs(w, 21*time.Second, 200) }, is{Heard: true, Up: 20 * time.Second}},
		{"does not step", func(w *coreWatch) { w.handle(hello(1), time.Now()); runs(w, 21*time.Second, 0) }, is{Heard: true}},
		{"went silent", func(w *coreWatch) { w.handle(hello(1), time.Now()); runs(w, 21*time.Second, 200); time.Sleep(pause) }, is{Heard: true}},
		{"paused", func(w *coreWatch) {
			w.handle(hello(1), time.Now())
			runs(w, 21*time.Second, 200)
			time.Sleep(pause)
			runs(w, 3*time.Second, 200)
		}, is{Heard: true, Up: 3 * time.Second}},
		{"lost and found", func(w *coreWatch) {
			w.handle(hello(1), time.Now())
			runs(w, 21*time.Second, 200)
			w.handle(bye, time.Now())
			w.handle(hello(1), time.Now())
			w.handle(&corelink.LoopStats{UptimeUS: uptime, Steps: steps}, time.Now()) // the newest one again
			runs(w, 2*time.Second, 200)
		}, is{Heard: true, Up: 2 * time.Second}},
		{"ended twice", func(w *coreWatch) {
			for pid := range uint32(3) {
				w.handle(hello(pid+1), time.Now())
				uptime, steps = 0, 0
				runs(w, 11*time.Second, 200)
			}
		}, is{Heard: true, Up: 10 * time.Second, Ends: 2}},
		{"a silent body", func(w *coreWatch) {
			w.handle(hello(1), time.Now())
			w.handle(body(false), time.Now())
			runs(w, 3*time.Second, 200)
		}, is{Heard: true, Up: 2 * time.Second, Silent: true}},
		{"a body that spoke again", func(w *coreWatch) {
			w.handle(body(false), time.Now())
			w.handle(body(true), time.Now())
		}, is{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &coreWatch{}
				uptime, steps = 0, 0
				if tt.do(w); w.state(time.Now()) != tt.want {
					t.Errorf("%+v, want %+v", w.state(time.Now()), tt.want)
				}
			})
		})
	}
}

// TestCoreFaults: the end of robotd that its supervisor posts counts, whether or not robotd was heard, and the fault of a service that does not run keeps the
// robot from being well.
func TestCoreFaults(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	h := &Health{faults: faults.New(faults.Config{Root: root, Watched: []faults.Service{{Name: robotd, Failed: faultcode.RobotFailed, Hung: faultcode.RobotFailed}},
		Own: faultcode.CloudFailed, Emit: func(events.Event) {}, Log: slog.New(slog.DiscardHandler)})}
	if c := h.Core(); c != (release.Core{}) {
		t.Errorf("%+v", c)
	}
	for _, code := range []faultcode.Code{faultcode.CloudFailed, faultcode.IMU} {
		h.faults.Raise(faults.Fault{Code: code})
	}
	if c := h.Core(); c != (release.Core{}) {
		t.Errorf("%+v: a robot works with those faults", c)
	}
	h.faults.Raise(faults.Fault{Code: faultcode.RobotFailed})
	if c := h.Core(); c.Why == "" {
		t.Errorf("%+v, want the fault", c)
	}
	h.faults.Beat(robotd)
	if c := h.Core(); c != (release.Core{}) {
		t.Errorf("%+v, want the end of the fault", c)
	}
}
