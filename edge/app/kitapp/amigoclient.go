package kitapp

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/body/amigobot/session"
	"kennel/edge/body/port"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// client is a session with a robot over its line.
type client struct {
	*session.Session
	cmd  *cobra.Command
	line *port.Line
	now  time.Duration // of the last step
	buf  [1024]byte
}

// withClient opens a session, tells how it goes, calls f, and closes the session, which stops the robot (AMIGO-SYNC-13).
func withClient(cmd *cobra.Command, address string, f func(c *client) error) error {
	return withAmigo(cmd, address, func(line *port.Line) error {
		c := &client{Session: session.New(session.Config{Baud: line.Baud()}), cmd: cmd, line: line, now: line.Now()}
		c.Open()
		err := c.connect()
		if err == nil {
			err = f(c)
		}
		c.Close()
		for end := c.now + closePatience; c.State().Phase != session.Closed && c.now < end; {
			if c.step() != nil { // the line is broken
				break
			}
		}
		_ = line.Drain() // the session's last bytes arrive, if the line still works
		return err
	})
}

// closePatience is how long the commands that end a session may take (own default).
const closePatience = time.Second

// connect steps until the session is ready (AMIGO-DEMO-01).
func (c *client) connect() error {
	st, said := c.State(), ""
	for st.Phase != session.Ready {
		if err := c.run(); err != nil {
			return err
		}
		say := ""
		switch st.Phase {
		case session.Syncing:
			say = fmt.Sprintf("Syncing %d", st.Sync)
		case session.Opening:
			say = "Opening the session"
		}
		if say != said && say != "" {
			c.say("%s", say)
			said = say
		}
	}
	c.say("Connected to %s, %s %s", st.Identity.Name, st.Identity.Class, st.Identity.Subclass)
	return nil
}

// say writes a line to the person at the terminal.
func (c *client) say(format string, args ...any) {
	fmt.Fprintln(c.cmd.ErrOrStderr(), cli.Clean(fmt.Sprintf(format, args...)))
}

// run is step until the command is interrupted or the robot is lost.
func (c *client) run() error {
	if err := c.cmd.Context().Err(); err != nil {
		return err
	}
	if err := c.step(); err != nil {
		return err
	}
	if st := c.State(); st.Phase == session.Lost {
		return errs.New(errs.Unavailable, "%w", st.Err)
	}
	return nil
}

// step waits for bytes, at most for the time between two commands, and gives them to the session.
func (c *client) step() error {
	if _, err := c.line.Wait(c.line.Now() + session.Pacing); err != nil {
		return errs.New(errs.Unavailable, "wait for the robot: %w", err)
	}
	n, err := c.line.Read(c.buf[:])
	if err != nil {
		return errs.New(errs.Unavailable, "read from the robot: %w", err)
	}
	c.now = c.line.Now()
	out := c.Step(c.now, c.buf[:n])
	if err := c.line.SetBaud(c.Baud()); err != nil {
		return errs.New(errs.Unavailable, "change the speed of the line: %w", err)
	}
	if n, err = c.line.Write(out); err == nil && n < len(out) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return errs.New(errs.Unavailable, "write to the robot: %w", err)
	}
	return nil
}

// typed returns the lines that are typed into in; the channel is closed at its end. The reading goroutine ends with the input or with the
// process.
func typed(in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return lines
}

// prompt asks and returns the words of the answer, io.EOF at the end of the input.
func prompt(cmd *cobra.Command, lines <-chan string, question string) ([]string, error) {
	fmt.Fprint(cmd.ErrOrStderr(), question)
	select {
	case line, ok := <-lines:
		if !ok {
			return nil, io.EOF
		}
		return strings.Fields(line), nil
	case <-cmd.Context().Done():
		return nil, cmd.Context().Err()
	}
}

// agreed reports whether the answer to a question is yes.
func agreed(words []string) bool {
	return len(words) > 0 && slices.Contains([]string{"y", "yes"}, strings.ToLower(words[0]))
}
