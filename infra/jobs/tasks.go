package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"kennel/infra/errs"
	"kennel/infra/pg"
)

const (
	// taskQueue keeps pieces of work apart from the periodic jobs, so that a release that does not know them leaves them alone.
	taskQueue   = "tasks"
	taskWorkers = 4
)

// Task is work that is ordered piece by piece, such as sending one mail. A piece is named by an id alone: its content stays in its domain's
// tables, where it can be erased, and out of River's tables, logs and errors.
type Task struct {
	Name string // unique, stable: it is in the database
	// Run does one piece. It must be idempotent, end soon after its context, and return nil for a piece that is gone. An error is logged, kept
	// in River's table for days, and tried again: it names no person. With errs.CodeAgain it says that it did a part and wants to run again.
	Run func(ctx context.Context, id string) error
}

// Attempts is how often a piece of work is tried, after 1 s, 16 s, 81 s, ...: for about eleven hours. Work that must not be lost is ordered
// again by a periodic job of its domain.
const Attempts = 12

// Handle adds tasks that this process works on. Call it before Run.
func (r *Runner) Handle(tasks ...Task) error {
	if r.tasks == nil {
		r.tasks = map[string]Task{}
	}
	for _, t := range tasks {
		if _, twice := r.tasks[t.Name]; twice || t.Name == "" || t.Run == nil {
			return errs.New(errs.Invalid, "task %q: want a unique name and a function", t.Name)
		}
		r.tasks[t.Name] = t
	}
	return nil
}

// taskArgs is the River job of one piece of work.
type taskArgs struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

// Kind names the jobs in River's tables.
func (taskArgs) Kind() string { return "kennel_task" }

// InsertOpts keeps one waiting or running job of a piece: ordering it again adds nothing.
func (taskArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: Attempts, Queue: taskQueue, UniqueOpts: unique}
}

type taskWorker struct {
	river.WorkerDefaults[taskArgs]
	r *Runner
}

// Work runs one piece.
func (w taskWorker) Work(ctx context.Context, job *river.Job[taskArgs]) error {
	t, ok := w.r.tasks[job.Args.Name]
	if !ok {
		return fmt.Errorf("this process has no task %q", job.Args.Name)
	}
	started := time.Now()
	if err := t.Run(ctx, job.Args.ID); errs.CodeOf(err) == errs.CodeAgain {
		return river.JobSnooze(0) // no failure, and no attempt of the few
	} else if err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	w.r.log.DebugContext(ctx, "task done", "task", t.Name, "id", job.Args.ID, "took", time.Since(started))
	return nil
}

// Orders takes orders for tasks, in any process. Safe for concurrent use.
type Orders struct{ client *river.Client[pgx.Tx] }

// NewOrders returns the way to order on a database where Migrate has run.
func NewOrders(pool *pgxpool.Pool) (*Orders, error) {
	c, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	return &Orders{c}, nil
}

// Add orders one piece of work. It is on disk when Add returns nil.
func (o *Orders) Add(ctx context.Context, task, id string) error {
	_, err := o.client.Insert(ctx, taskArgs{task, id}, nil)
	return pg.Err(err)
}

// AddTx is Add as part of a transaction: ordered if and only if it commits.
func (o *Orders) AddTx(ctx context.Context, tx pgx.Tx, task, id string) error {
	_, err := o.client.InsertTx(ctx, tx, taskArgs{task, id}, nil)
	return pg.Err(err)
}
