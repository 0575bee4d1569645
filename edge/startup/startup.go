// Package startup is the order in which a program of the robot starts, as a table that is walked, and what each step of it took (part of VEC-BOOT-11).
//
// A table says what comes after what, and nothing else does: a step that is not in it is no part of the start. The steps before a robot's programs
// (boot-loaders, kernel, VEC-BOOT-06) are the platform's; of them only the sum is known, where the system says it (Uptime).
package startup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Stage is one step.
type Stage struct {
	Name string // lower-case words with _ between them, unique in its program
	Do   func(context.Context) error
	// GoOn: a failure is noted and the start continues with the next step; else it ends there.
	GoOn bool
}

// Took is the time of a step. Begin and End are times of the clock that the Record was made with.
type Took struct {
	Name       string
	Begin, End time.Duration
	Err        error // why it failed; nil: it did not
}

// Spent is how long it took.
func (t Took) Spent() time.Duration { return t.End - t.Begin }

// Record records a program's start. It is safe for concurrent use; its tables are walked one after the other.
type Record struct {
	now  func() time.Duration
	tell func(Took)

	mu   sync.Mutex
	done []Took
}

// New returns an empty Record by a monotonic clock. tell, which may be nil, hears of each step when it is over; it must not block.
func New(now func() time.Duration, tell func(Took)) *Record {
	if tell == nil {
		tell = func(Took) {}
	}
	return &Record{now: now, tell: tell}
}

// Walk does the steps of a table in their order. Its error names the step that ended the start; a context that ended ends it between two steps, and
// a step that ended for it is not told: it did not fail.
func (r *Record) Walk(ctx context.Context, table ...Stage) error {
	for _, s := range table {
		if err := ctx.Err(); err != nil {
			return err
		}
		t := Took{Name: s.Name, Begin: r.now()}
		t.Err = s.Do(ctx)
		t.End = r.now()
		if t.Err != nil && ctx.Err() != nil && errors.Is(t.Err, ctx.Err()) {
			return t.Err
		}
		r.mu.Lock()
		r.done = append(r.done, t)
		r.mu.Unlock()
		r.tell(t)
		if t.Err != nil && !s.GoOn {
			return fmt.Errorf("start: %s: %w", s.Name, t.Err)
		}
	}
	return nil
}

// Done returns what the steps took that are over, in their order.
func (r *Record) Done() []Took {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Took(nil), r.done...)
}

// UptimeFile is where the system says how long it is up, below the robot's root. A simulated robot has none: it shares its kernel.
const UptimeFile = "proc/uptime"

// Uptime returns how long the system below root is up, to a hundredth of a second; fs.ErrNotExist is in the error's chain where it does not say.
func Uptime(root *os.Root) (time.Duration, error) {
	f, err := root.Open(UptimeFile)
	if err != nil {
		return 0, err
	}
	defer f.Close() // read only
	b, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", UptimeFile, err)
	}
	return ParseUptime(string(b))
}

// ErrUptime: the file is not as Linux writes it.
var ErrUptime = errors.New(UptimeFile + ": want two numbers of seconds, at most nine digits each")

// ParseUptime reads the file's content: the seconds since the kernel began, then those that its processors were idle.
func ParseUptime(s string) (time.Duration, error) {
	words := strings.Fields(s)
	if len(words) != 2 {
		return 0, ErrUptime
	}
	for _, w := range words {
		whole, part, _ := strings.Cut(w, ".")
		if len(whole) > 9 || len(part) > 9 || strings.Trim(whole+part, "0123456789") != "" || whole == "" {
			return 0, ErrUptime
		}
	}
	sec, err := strconv.ParseFloat(words[0], 64)
	if err != nil {
		return 0, ErrUptime
	}
	return time.Duration(math.Round(sec*100)) * 10 * time.Millisecond, nil
}
