package fleet

import (
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Summary is the state of the fleet and its totals since the start. Times are in milliseconds.
type Summary struct {
	Robots    int     `json:"robots"`
	Made      int     `json:"made"`      // have a folder
	Enrolled  int     `json:"enrolled"`  // have a device certificate
	Connected int     `json:"connected"` // now; of a fleet that was stopped, when it was
	Away      int     `json:"away"`      // have no network, as the plan wants
	Elapsed   float64 `json:"elapsed_ms"`

	Events     Events `json:"events"`
	Settings   int64  `json:"settings_changed"`
	Connects   int64  `json:"connects"`
	Reconnects int64  `json:"reconnects"`
	Drops      int64  `json:"drops"` // connections that the plan cut
	Reboots    int64  `json:"reboots"`

	Errors   map[string]int64 `json:"errors"`             // all that happened, by reason
	Problems map[string]int   `json:"problems,omitempty"` // why robots have no identity now, by reason

	Login   Distribution `json:"login_ms"`   // from a dial to the subscription
	Absence Distribution `json:"absence_ms"` // from the loss of a connection to the next, tries and pauses included

	Process Process `json:"process"`
}

// Events counts what became of the robots' events.
type Events struct {
	Emitted     uint64 `json:"emitted"` // since the fleet began
	Acked       uint64 `json:"acked"`   // also of what lay in the robots' folders before
	Waiting     uint64 `json:"waiting"`
	Dropped     uint64 `json:"dropped"`
	Quarantined uint64 `json:"quarantined"`
}

func (e *Events) add(o Events) {
	e.Emitted += o.Emitted
	e.Acked += o.Acked
	e.Waiting += o.Waiting
	e.Dropped += o.Dropped
	e.Quarantined += o.Quarantined
}

// Distribution is the shape of many durations, in milliseconds.
type Distribution struct {
	N    int     `json:"n"` // the last ones, at most maxSamples
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Process is the resource use of this process.
type Process struct {
	RSS        int64   `json:"rss_bytes"`
	CPU        float64 `json:"cpu_ms"` // user and system, since its start
	Goroutines int     `json:"goroutines"`
	Files      int     `json:"open_files"`
}

// Summary counts.
func (f *Fleet) Summary() Summary {
	s := Summary{Robots: len(f.robots), Made: int(f.made.Load()), Elapsed: ms(time.Since(f.started)), Settings: f.changed.Load(),
		Connects:   f.connects.Load(),
		Reconnects: f.reconnects.Load(), Drops: f.drops.Load(), Reboots: f.reboots.Load(), Problems: map[string]int{}, Process: process()}
	for _, r := range f.robots {
		s.Events.add(r.events())
		if r.wire.isAway() {
			s.Away++
		}
		switch enrolled, problem := r.identity(); {
		case enrolled:
			s.Enrolled++
		case problem != "":
			s.Problems[problem]++
		}
	}
	if s.Connected = int(f.atEnd.Load()); s.Connected < 0 {
		s.Connected = f.connected()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Errors = maps.Clone(f.errors)
	s.Login, s.Absence = f.logins.distribution(), f.absence.distribution()
	return s
}

// maxSamples bounds what a distribution remembers.
const maxSamples = 1 << 16

// samples keeps the last maxSamples durations.
type samples struct {
	all  []float32 // ms
	next int       // where the next goes, once all is full
}

func (s *samples) add(d time.Duration) {
	v := float32(ms(d))
	if len(s.all) < maxSamples {
		s.all = append(s.all, v)
		return
	}
	s.all[s.next] = v
	s.next = (s.next + 1) % maxSamples
}

func (s *samples) reset() { s.all, s.next = nil, 0 }

func (s *samples) distribution() Distribution {
	n := len(s.all)
	if n == 0 {
		return Distribution{}
	}
	sorted := slices.Sorted(slices.Values(s.all))
	at := func(q float64) float64 { return float64(sorted[int(q*float64(n-1)+0.5)]) }
	sum := 0.0
	for _, v := range sorted {
		sum += float64(v)
	}
	return Distribution{N: n, Min: at(0), Mean: sum / float64(n), P50: at(0.5), P90: at(0.9), P99: at(0.99), Max: at(1)}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// process reads what the system says of this process; what it does not say stays zero.
func process() Process {
	p := Process{Goroutines: runtime.NumGoroutine()}
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if f := strings.Fields(string(b)); len(f) > 1 {
			if pages, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				p.RSS = pages * int64(os.Getpagesize())
			}
		}
	}
	if d, err := os.Open("/proc/self/fd"); err == nil {
		names, err := d.Readdirnames(-1)
		_ = d.Close() // read only
		if err == nil {
			p.Files = len(names) - 1 // without d
		}
	}
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
		p.CPU = ms(time.Duration(u.Utime.Nano() + u.Stime.Nano()))
	}
	return p
}
