package robotapp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"kennel/edge/body"
	"kennel/edge/core/corelink"
	"kennel/edge/faultcode"
	"kennel/infra/atomicfile"
	"kennel/infra/logging"
)

// rampostError is the file with the problems of the body's start, for programs that start later (part of VEC-BOOT-09): the status of a failed
// firmware update as a number, then a line for each problem in the first frame. It exists only if there was a problem.
const rampostError = "dev/rampost_error"

// startNote is the content of the file.
type startNote struct {
	mu       sync.Mutex
	status   uint16 // 0: the firmware is as it should be
	problems []string
}

// noteStart changes the note; one of an earlier start is gone then.
func (c *core) noteStart(ctx context.Context, change func(*startNote)) {
	n := &c.note
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
	if err := n.write(c.cfg.Root); err != nil {
		c.log.WarnContext(ctx, "body start note not written", logging.Err, err)
	}
}

// noteFirmware notes the status of the body's firmware.
func (c *core) noteFirmware(ctx context.Context, status uint16) {
	c.noteStart(ctx, func(n *startNote) { n.status = status })
}

func (n *startNote) write(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	lines := n.problems
	if n.status != 0 {
		lines = append([]string{fmt.Sprint(n.status)}, lines...)
	}
	if len(lines) == 0 {
		if err := root.Remove(rampostError); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return atomicfile.Write(root, rampostError, []byte(strings.Join(lines, "\n")+"\n"), 0o644, 0o755)
}

// startProblems returns the problems that a body's first frame shows: battery, temperature and self tests.
func startProblems(s *corelink.State) (problems []string) {
	for _, f := range []struct {
		flag body.Power
		text string
	}{
		{body.BatteryDisconnected, "battery disconnected"},
		{body.BelowCritical, fmt.Sprintf("battery below its critical voltage: %.2f V", s.BatteryVolts)},
		{body.ShutdownImminent, "the body is about to cut the power"},
		{body.Overheated, fmt.Sprintf("overheated: %.0f degrees Celsius", s.Temperature)},
	} {
		if body.Power(s.Power).Has(f.flag) {
			problems = append(problems, f.text)
		}
	}
	if code := faultcode.Code(s.Fault); code != 0 {
		problems = append(problems, fmt.Sprintf("fault %d: %s", int(code), code.Text()))
	}
	return problems
}

// firstFrame looks at the first measurement of the body, once a start.
func (c *core) firstFrame(ctx context.Context, s *corelink.State) {
	problems := startProblems(s)
	for _, p := range problems {
		c.log.WarnContext(ctx, "body start problem", "problem", p)
	}
	c.noteStart(ctx, func(n *startNote) { n.problems = problems })
	settle(c.firstLook, problem(problems))
}
