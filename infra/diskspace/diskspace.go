// Package diskspace watches the space of the folders that a process and its parts write to. It says before a volume is full that it will be, and it
// keeps who refused a write for lack of space, because some volumes, such as those of a database on another machine, show themselves only then.
package diskspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kennel/infra/errs"
	"kennel/infra/telemetry"
)

// Our own limits: a volume is low with less than a tenth free, with less than 5 GiB free (on a volume of under 20 GiB: a quarter), or when it would be
// full within a day at the rate of the last half hour to hour.
const (
	lowBytes  = 5 << 30
	lowWithin = 24 * time.Hour
	rateMin   = 30 * time.Minute // a shorter time says little: a checkpoint or a backup looks like growth
	rateMax   = time.Hour
	lookEvery = 5 * time.Second
	noteEvery = time.Minute
	// fullBytes is when nothing of use fits any longer: Postgres makes write-ahead segments of 16 MiB.
	fullBytes = 16 << 20
	// refusalLife is how long a refused write counts: who may not write tries again sooner.
	refusalLife = time.Minute
)

// Space describes a file system, in bytes. Free is the part that an ordinary account may use.
type Space struct {
	Device     uint64
	Free, Size uint64
}

// Stat asks the system for the space of the file system that path is on.
func Stat(path string) (Space, error) {
	var fs unix.Statfs_t
	var st unix.Stat_t
	if err := errors.Join(unix.Statfs(path, &fs), unix.Stat(path, &st)); err != nil {
		return Space{}, fmt.Errorf("space of %s: %w", path, err)
	}
	return Space{st.Dev, fs.Bavail * uint64(fs.Bsize), fs.Blocks * uint64(fs.Bsize)}, nil
}

// Watch watches folders. It is safe for concurrent use.
type Watch struct {
	folders map[string]string // by name
	stat    func(path string) (Space, error)
	now     func() time.Time

	mu      sync.Mutex
	states  map[string]*state  // by name
	refused map[string]refusal // by who refused
}

type state struct {
	space Space
	err   error
	notes []note // of free space, a minute apart, the oldest first
	since time.Time
	level level
	fills time.Duration // until full at the present rate; 0: not soon
}

type note struct {
	at   time.Time
	free uint64
}

type refusal struct {
	first, last time.Time
	why         string
}

type level int

const (
	fine level = iota
	low
	full
)

// Folders reads a list of NAME=FOLDER (kind Invalid).
func Folders(list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, s := range list {
		name, path, ok := strings.Cut(s, "=")
		if !ok || name == "" || !strings.HasPrefix(path, "/") || out[name] != "" {
			return nil, errs.New(errs.Invalid, "volume %.80q: want NAME=/FOLDER, each name once", s)
		}
		out[name] = path
	}
	return out, nil
}

// New returns a Watch of folders by name. stat is Stat, and now is time.Now, except in tests.
func New(folders map[string]string, stat func(path string) (Space, error), now func() time.Time) *Watch {
	return &Watch{folders: folders, stat: stat, now: now, states: map[string]*state{}, refused: map[string]refusal{}}
}

// Run looks at the volumes until ctx ends, so that growth is noticed between the questions, too.
func (w *Watch) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		w.look()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (w *Watch) look() {
	for name, path := range w.folders {
		space, err := w.stat(path)
		w.mu.Lock()
		s := w.states[name]
		if s == nil {
			s = &state{}
			w.states[name] = s
		}
		was := s.level
		if s.take(space, err, w.now()); was == full && s.level != full {
			clear(w.refused) // there is space again; if a write is still refused, that is noted again
		}
		w.mu.Unlock()
	}
}

func (s *state) take(space Space, err error, now time.Time) {
	s.space, s.err = space, err
	if err != nil {
		return
	}
	if n := len(s.notes); n == 0 || now.Sub(s.notes[n-1].at) >= noteEvery {
		s.notes = append(s.notes, note{now, space.Free})
	}
	for now.Sub(s.notes[0].at) > rateMax {
		s.notes = s.notes[1:]
	}
	s.fills = 0
	if past := now.Sub(s.notes[0].at); past >= rateMin && s.notes[0].free > space.Free {
		rate := float64(s.notes[0].free-space.Free) / past.Seconds()
		if left := float64(space.Free) / rate; left < lowWithin.Seconds() {
			s.fills = time.Duration(left * float64(time.Second))
		}
	}
	was := s.level
	switch {
	case space.Free < min(fullBytes, space.Size/50+1):
		s.level = full
	case space.Free < max(space.Size/10, min(lowBytes, space.Size/4)), s.fills > 0:
		s.level = low
	default:
		s.level = fine
	}
	if was != s.level {
		s.since = now
	}
}

// Full reports whether err says that there is no space left.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Refused notes that who refused a write for lack of space, and why in words. who is one of a few fixed names.
func (w *Watch) Refused(who, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	r := w.refused[who]
	if now.Sub(r.last) > refusalLife {
		r.first = now
	}
	r.last, r.why = now, why
	w.refused[who] = r
}

// Refuser returns Refused for who.
func (w *Watch) Refuser(who string) func(why string) {
	return func(why string) { w.Refused(who, why) }
}

// Note notes err if it says that there is no space left, and returns it.
func (w *Watch) Note(who string, err error) error {
	if err != nil && Full(err) {
		w.Refused(who, err.Error())
	}
	return err
}

// Check is a check of readiness: an error for a full volume and for a refused write, a telemetry.Warning for one that will soon be full. Folders on one
// file system are told together.
func (w *Watch) Check(context.Context) error {
	w.look()
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	var bad, soon []string
	for _, who := range slices.Sorted(maps.Keys(w.refused)) {
		if r := w.refused[who]; now.Sub(r.last) <= refusalLife {
			bad = append(bad, fmt.Sprintf("%s has refused writes for lack of space since %s: %s", who, clock(r.first), r.why))
		}
	}
	for _, names := range w.byDevice() {
		s, where := w.states[names[0]], ""
		for i, name := range names {
			if i > 0 {
				where += ", "
			}
			where += name + " (" + w.folders[name] + ")"
		}
		switch {
		case s.err != nil:
			soon = append(soon, s.err.Error())
		case s.level == full:
			bad = append(bad, fmt.Sprintf("volume of %s is full: %s since %s; free space, or make it larger", where, s.space, clock(s.since)))
		case s.level == low:
			text := fmt.Sprintf("volume of %s is low: %s since %s", where, s.space, clock(s.since))
			if s.fills > 0 {
				text += fmt.Sprintf("; full in about %d h at the present rate", max(1, int(s.fills.Hours())))
			}
			soon = append(soon, text)
		}
	}
	if len(bad) > 0 {
		return errs.Coded(errs.Exhausted, "disk_full", "%s", strings.Join(append(bad, soon...), "; "))
	}
	if len(soon) > 0 {
		return telemetry.Warning(strings.Join(soon, "; "))
	}
	return nil
}

// byDevice groups the names by file system, in order.
func (w *Watch) byDevice() (out [][]string) {
	at := map[uint64]int{}
	for _, name := range slices.Sorted(maps.Keys(w.states)) {
		s := w.states[name]
		i, known := at[s.space.Device]
		if !known || s.err != nil {
			i = len(out)
			out = append(out, nil)
			if s.err == nil {
				at[s.space.Device] = i
			}
		}
		out[i] = append(out[i], name)
	}
	return out
}

// Use is how full one folder's volume is.
type Use struct {
	Name, Folder string
	Space        Space
}

// Uses returns how full the volumes are, by name.
func (w *Watch) Uses() (out []Use) {
	w.look()
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, s := range w.states {
		if s.err == nil {
			out = append(out, Use{name, w.folders[name], s.space})
		}
	}
	slices.SortFunc(out, func(a, b Use) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// String returns such as "1.2 GiB of 40 GiB free (3 %)".
func (s Space) String() string {
	return fmt.Sprintf("%s of %s free (%d %%)", size(s.Free), size(s.Size), s.Free*100/max(s.Size, 1))
}

func size(n uint64) string {
	const unit = 1 << 10
	f, names := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for i, name := range names {
		if f < unit || i == len(names)-1 {
			return fmt.Sprintf("%.3g %s", f, name)
		}
		f /= unit
	}
	return ""
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
