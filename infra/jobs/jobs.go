// Package jobs runs a cloud's periodic work, such as expiry and retention, once per period however many processes there are. It is
// River on the same Postgres (infra/adr): River elects who schedules, hands each run to one process, and restarts a run whose
// process died. A run may therefore happen twice: jobs are idempotent.
//
// Task and Orders are for work that is ordered piece by piece.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"kennel/infra/errs"
	"kennel/infra/pg"
)

// Timeout is how long one run may take; its context ends then.
const Timeout = 30 * time.Second

const (
	// rescueAfter is when a run counts as dead with its process. It exceeds Timeout.
	rescueAfter = time.Minute
	// stopTime is how long a run may continue when its process stops.
	stopTime = 3 * time.Second
	// maxAttempts bounds the repetitions of a run that fails, after 1 s, 16 s, 81 s, ...; the next period tries again anyway.
	maxAttempts = 4
	workers     = 4
	keepDone    = time.Hour
)

// Job is one piece of periodic work.
type Job struct {
	Name  string        // unique, stable: it is in the database
	Every time.Duration // at least a second; also at every start of the process that schedules
	// Run does it. It must be idempotent and end soon after its context. An error is logged and tried again.
	Run func(ctx context.Context) error
}

// Runner is one process's share of the work.
type Runner struct {
	pool *pgxpool.Pool
	log  *slog.Logger
	jobs map[string]Job
	list []Job

	tasks map[string]Task
}

// New returns a runner that does nothing until Run; Migrate must have run. An error names the job that cannot be.
func New(pool *pgxpool.Pool, log *slog.Logger, jobs ...Job) (*Runner, error) {
	r := &Runner{pool: pool, log: log, jobs: map[string]Job{}, list: slices.Clone(jobs)}
	for _, j := range jobs {
		if _, twice := r.jobs[j.Name]; twice || j.Name == "" || j.Every < time.Second || j.Run == nil {
			return nil, errs.New(errs.Invalid, "job %q every %v: want a unique name, a period of at least a second and a function", j.Name, j.Every)
		}
		r.jobs[j.Name] = j
	}
	return r, nil
}

// args is the single kind of River job here; its unique name selects the Job.
type args struct {
	Name string `json:"name"`
}

// Kind names the jobs in River's tables.
func (args) Kind() string { return "kennel_periodic" }

// unique keeps one waiting or running job of the same arguments.
var unique = river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateRetryable, rivertype.JobStateScheduled,
}}

// InsertOpts keeps one waiting or running job of a name: a period that finds the last run unfinished adds nothing.
func (args) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: maxAttempts, UniqueOpts: unique}
}

type worker struct {
	river.WorkerDefaults[args]
	r *Runner
}

// Work runs one job.
func (w worker) Work(ctx context.Context, job *river.Job[args]) error {
	j, ok := w.r.jobs[job.Args.Name]
	if !ok {
		// Another release's: its own processes take it when it is tried again.
		return fmt.Errorf("this release has no job %q", job.Args.Name)
	}
	started := time.Now()
	if err := j.Run(ctx); err != nil {
		return fmt.Errorf("%s: %w", j.Name, err)
	}
	w.r.log.DebugContext(ctx, "job done", "job", j.Name, "took", time.Since(started))
	return nil
}

// Run takes part until ctx ends and returns nil.
func (r *Runner) Run(ctx context.Context) error {
	all := river.NewWorkers()
	if err := river.AddWorkerSafely(all, worker{r: r}); err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	if err := river.AddWorkerSafely(all, taskWorker{r: r}); err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	queues := map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}}
	if len(r.tasks) > 0 {
		queues[taskQueue] = river.QueueConfig{MaxWorkers: taskWorkers}
	}
	var periodic []*river.PeriodicJob
	for _, j := range r.list {
		periodic = append(periodic, river.NewPeriodicJob(river.PeriodicInterval(j.Every),
			func() (river.JobArgs, *river.InsertOpts) { return args{j.Name}, nil }, &river.PeriodicJobOpts{ID: j.Name, RunOnStart: true}))
	}
	client, err := river.NewClient(riverpgxv5.New(r.pool), &river.Config{
		Queues: queues, Workers: all, PeriodicJobs: periodic,
		JobTimeout: Timeout, RescueStuckJobsAfter: rescueAfter, SoftStopTimeout: stopTime, CompletedJobRetentionPeriod: keepDone,
		ErrorHandler: failures{r.log}, Logger: slog.New(quiet{r.log.Handler()}),
	})
	if err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	if err := client.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("jobs: %w", pg.Err(err))
	}
	<-client.Stopped()
	if ctx.Err() == nil {
		return errors.New("jobs: stopped unexpectedly")
	}
	return nil
}

// failures logs each failure once; River's own lines about it are dropped with its debug output.
type failures struct{ log *slog.Logger }

// HandleError logs a failed run.
func (f failures) HandleError(ctx context.Context, job *rivertype.JobRow, err error) *river.ErrorHandlerResult {
	f.log.WarnContext(ctx, "job failed", "args", string(job.EncodedArgs), "attempt", job.Attempt, "err", err)
	return nil
}

// HandlePanic logs a run that panicked; the process lives on.
func (f failures) HandlePanic(ctx context.Context, job *rivertype.JobRow, value any, trace string) *river.ErrorHandlerResult {
	f.log.ErrorContext(ctx, "job panicked", "args", string(job.EncodedArgs), "attempt", job.Attempt, "panic", fmt.Sprint(value), "stack", trace)
	return nil
}

// quiet lets River's warnings pass and nothing below: its Info is about itself.
type quiet struct{ slog.Handler }

// Enabled reports whether a line of level passes.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

// WithAttrs returns the handler with attributes.
func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }

// WithGroup returns the handler with a group.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

// migrateLock is the advisory lock of River's migrations.
const migrateLock = 0x6b6a6f62 // "kjob"

// Migrate brings River's own tables up to date and returns how many steps it took. River keeps its own numbers, so these are not files of
// infra/migrations. Any number of processes may call it at the same time: one works, the others wait for it.
func Migrate(ctx context.Context, pool *pgxpool.Pool) (int, error) {
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 0, fmt.Errorf("migrate jobs: %w", err)
	}
	steps := 0
	// The lock has its own transaction, apart from the steps.
	err = pg.Tx(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, migrateLock); err != nil {
			return err
		}
		done, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil)
		if err == nil {
			steps = len(done.Versions)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("migrate jobs: %w", err)
	}
	return steps, nil
}
