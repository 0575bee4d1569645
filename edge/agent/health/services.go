package health

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"kennel/edge/agent/health/crashes"
	"kennel/edge/agent/health/faults"
	"kennel/edge/agent/host"
	"kennel/edge/core/corelink"
	"kennel/edge/faultcode"
	"kennel/infra/proc"
)

// robotd is the name of the real-time core among the robot's services.
const robotd = "robotd"

// restartTime bounds a command that starts a service again.
const restartTime = 30 * time.Second

// supervised stops and starts the robot's services for a fault. A stopped robotd is started again
// by its supervisor, systemd or robotsim, unless a command is configured for that. Safe for
// concurrent use.
type supervised struct {
	command []string
	crashes *crashes.Collector

	mu   sync.Mutex
	core proc.Identity // of the robotd that was heard last
	up   int64         // its time since its start, when it spoke last
}

// handle takes robotd's messages about itself: its heartbeat and its current fault. The heartbeat is its loop statistics, each second. A peer that
// joins gets the newest of each message too, so only statistics with a later time prove that robotd is alive.
func (s *supervised) handle(m corelink.Message, h *faults.Handler) {
	switch m := m.(type) {
	case *corelink.Hello:
		id, err := proc.Identify(int(m.PID)) // a robotd that has exited, or runs on another machine, cannot be stopped
		s.mu.Lock()
		if err != nil {
			id = proc.Identity{}
		}
		if id != s.core {
			s.core, s.up = id, 0
			defer s.crashes.Look() // how its predecessor ended
		}
		s.mu.Unlock()
	case *corelink.LoopStats:
		s.mu.Lock()
		lives := m.UptimeUS != s.up
		s.up = m.UptimeUS
		s.mu.Unlock()
		if lives {
			h.Beat(robotd)
		}
	case *corelink.Power:
		s.crashes.WentOff(m.LastOff)
	case *corelink.Fault:
		h.Report(robotd, faultcode.Code(m.Code))
	}
}

// pid returns robotd's process number; 0: not known.
func (s *supervised) pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.core.Pid
}

// Stop ends robotd, if service is that. It cannot stop other services: their command stops them before it starts them.
func (s *supervised) Stop(ctx context.Context, service string, hangs bool, patience time.Duration) error {
	s.mu.Lock()
	core := s.core
	s.mu.Unlock()
	if service != robotd || core.Pid == 0 {
		return nil
	}
	first := syscall.SIGTERM
	if hangs { // the Go runtime answers with the stacks of all goroutines, which the crash's record keeps (VEC-CRS-01)
		first = syscall.SIGABRT
		s.crashes.Because(core.Pid, "it hung, and agentd ended it")
		defer s.crashes.Look()
	}
	if err := core.Stop(ctx, patience, first, syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
		return err
	}
	return nil
}

// Start runs the command.
func (s *supervised) Start(ctx context.Context, service string) error {
	if len(s.command) == 0 {
		if service == robotd {
			return nil // its supervisor's
		}
		return fmt.Errorf("no command to restart %s: set FAULT_RESTART_COMMAND in %s", service, host.EnvFile)
	}
	ctx, cancel := context.WithTimeout(ctx, restartTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.command[0], append(s.command[1:len(s.command):len(s.command)], service)...)
	cmd.WaitDelay = time.Second // for processes that it left behind
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %.200q", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}
