package proc

import (
	"io"
	"log/slog"
	"os"
	"syscall"
	"time"
)

// Spec describes a child process. Name and Path are required; all else has a usable zero value. A Spec is read, never changed, by the
// functions of this package.
type Spec struct {
	Name string   // for logs and records
	Path string   // program file
	Args []string // without the program's name
	Env  []string // KEY=VALUE; nil: the parent's environment
	Dir  string   // working directory; "": the parent's

	// LogFile receives standard output and error, appended. At a start a file over 16 MiB is first renamed to LogFile.1.
	// With neither LogFile nor Log the output is dropped.
	LogFile string
	Log     io.Writer
	Stdin   io.Reader
	// Stdout, if set, receives standard output; Log and LogFile then receive standard error alone. It is a file, so that no byte passes through us.
	Stdout *os.File

	Credential *syscall.Credential // run as another user; nil: as the parent
	Deathsig   syscall.Signal      // sent to the child when this process dies; 0: SIGKILL
	StopSignal syscall.Signal      // the polite request to stop; 0: SIGTERM
	// StopTimeout is how long the child may take after StopSignal before SIGKILL; 0: 10 s.
	StopTimeout time.Duration

	Restart Restart // for Keep

	// PidFile, if set, holds the Identity of the child while it runs, for StopLeftover after a crash of this process.
	PidFile string

	// OnStart and OnExit are called for each life of the child, from the goroutine of Keep or Once. OnGiveUp is called when Limit
	// restarts fell into Window. All may be nil; none may block for long.
	OnStart  func(pid int)
	OnExit   func(Exit)
	OnGiveUp func(restarts int)
}

// Restart limits how eagerly a child is started again (VEC-FLT-07 counts restarts in a time window). The zero value means the numbers
// of the row: 2 restarts in 60 s; further ones wait MaxBackoff each. A child is never abandoned.
type Restart struct {
	Limit      int           // restarts in Window with short pauses; 0: 2
	Window     time.Duration // 0: 60 s
	MinBackoff time.Duration // 0: 200 ms
	MaxBackoff time.Duration // 0: 15 s
}

// Exit is how one life of a child ended.
type Exit struct {
	Pid      int
	Code     int            // exit status; -1 when a signal ended it
	Signal   syscall.Signal // 0 unless a signal ended it
	Lifetime time.Duration
	Asked    bool // we asked it to stop
}

// LogValue groups the facts for slog.
func (e Exit) LogValue() slog.Value {
	attrs := []slog.Attr{slog.Int("pid", e.Pid), slog.Int("code", e.Code), slog.Duration("lifetime", e.Lifetime)}
	if e.Signal != 0 {
		attrs = append(attrs, slog.String("signal", e.Signal.String()))
	}
	return slog.GroupValue(attrs...)
}

func (s Spec) withDefaults() Spec {
	def(&s.Deathsig, syscall.SIGKILL)
	def(&s.StopSignal, syscall.SIGTERM)
	def(&s.StopTimeout, 10*time.Second)
	def(&s.Restart.Limit, 2)
	def(&s.Restart.Window, 60*time.Second)
	def(&s.Restart.MinBackoff, 200*time.Millisecond)
	def(&s.Restart.MaxBackoff, 15*time.Second)
	return s
}

func def[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}
