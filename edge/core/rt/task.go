package rt

import (
	"fmt"
	"time"

	"kennel/edge/body"
)

// MaxTasks bounds the task table.
const MaxTasks = 16

// Task is one row of the task table.
type Task struct {
	Name   string
	Every  int           // period in steps, at least 1
	Budget time.Duration // more than this is late; 0: one tenth of the loop's period
	Run    func(*Frame)
}

// Frame is a task's input from a step and its output to it. It is valid only during the call.
type Frame struct {
	Now    time.Duration // when this step began, on the clock of body.Sense.At
	DT     time.Duration // since the step before; 0 in the first
	Taken  time.Duration // when the body took the measurement, by its own count of frames where it has one; 0: never
	Step   uint64        // counts periods, skipped ones included
	Run    uint32        // counts the bodies that the loop ran: with another one, or the same opened again, everything it counts starts from zero
	Stale  bool          // the measurement is old: what moves gets no power
	Halted bool          // a halt holds: what moves gets no power
	Sense  *body.Sense   // read only
	Act    *body.Act     // without any goal at the start of each step
}

// TaskStats holds the counts of one task since the loop was made.
type TaskStats struct {
	Name    string
	Every   int
	Budget  time.Duration
	Runs    uint64
	Late    uint64 // runs over budget
	Skipped uint64 // runs that fell into skipped periods
	Worst   time.Duration
	Recent  time.Duration // the newest run
}

type task struct {
	run   func(*Frame)
	due   uint64 // step; the first is 1
	stats TaskStats
}

func newTask(t Task, period time.Duration) (task, error) {
	if t.Name == "" || t.Run == nil || t.Every < 1 || t.Budget < 0 {
		return task{}, fmt.Errorf("rt: task %q: want a name, a function, a period of at least 1 step and no negative budget", t.Name)
	}
	if t.Budget == 0 {
		t.Budget = period / 10
	}
	return task{run: t.Run, due: 1, stats: TaskStats{Name: t.Name, Every: t.Every, Budget: t.Budget}}, nil
}

// isDue reports whether the task runs in this step and sets its next one. Runs that fell into skipped periods are counted, not made up.
func (t *task) isDue(step uint64) bool {
	if step < t.due {
		return false
	}
	every := uint64(t.stats.Every)
	t.stats.Skipped += (step - t.due) / every
	t.due = step - step%every + every
	return true
}

func (t *task) took(d time.Duration) {
	t.stats.Runs++
	t.stats.Recent = d
	t.stats.Worst = max(t.stats.Worst, d)
	if d > t.stats.Budget {
		t.stats.Late++
	}
}
