package pleorun

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/body/monoclock"
	"kennel/edge/body/pleo"
	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/pleosim"
	"kennel/edge/body/port"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// Own defaults of a conversation.
const (
	answerTimeout = 10 * time.Second
	listenFor     = 100 * time.Millisecond // between two looks at the keyboard
	maxAnswer     = 1 << 20                // bytes
)

// MonitorCommand returns the command monitor.
func MonitorCommand() *cobra.Command {
	var lines []string
	cmd := &cobra.Command{
		Use: "monitor ROBOT|ADDRESS", Short: "Talk to the monitor of a Pleo",
		Long: `Talk to the monitor of a Pleo: what is typed goes to it line by line, and what it prints appears. "help" lists its commands; the end of input (Ctrl-D) ends the conversation.

ROBOT is the folder of a simulated robot. ADDRESS is a serial port such as serial:/dev/ttyUSB0 (115,200 baud, 8 data bits, no parity, one stop bit, unless
?baud=N follows), tcp:HOST:PORT of robotkit pleo run -monitor, or the path of a pseudo-terminal of robotkit pleo run -pty.

With -e, lines are sent one after the other, and each answer is printed; the exit code is 1 if one is not answered within 10 s.`,
		Example: `  robotkit pleo monitor robots/pleo-00e20100
  robotkit pleo monitor tcp:localhost:7000 -e version -e 'stats power'
  robotkit pleo monitor serial:/dev/ttyUSB0 -e 'motion play bow'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			address := args[0]
			if info, err := os.Stat(address); err == nil && info.IsDir() {
				address = filepath.Join(address, pleosim.USBDevice)
				if _, err := os.Stat(address); err != nil {
					return errs.New(errs.Unavailable, "the robot in %s is not running, or is no Pleo: %w", args[0], err)
				}
			}
			p, err := port.Open(cmd.Context(), address, pleo.DefaultBaud, false)
			if err != nil {
				return errs.New(errs.Unavailable, "%w", err)
			}
			defer p.Close()
			if len(lines) == 0 {
				return converse(cmd, p)
			}
			t := talk{port: p, ctx: cmd.Context()}
			if greets(address) {
				if _, err := t.answer(); err != nil {
					return err
				}
			}
			for _, line := range lines {
				if strings.ContainsAny(line, "\r\n") {
					return cli.Usage("-e %.60q: want one line", line)
				}
				said, err := t.ask(line)
				if err != nil {
					return err
				}
				if err := cli.PrintLine(cmd, exchange{line, said}, func() string { return strings.TrimSuffix(said, "\n") }); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVarP(&lines, "execute", "e", nil, "send a `LINE` and print the answer (may be repeated)")
	return cmd
}

// exchange is a line and its answer.
type exchange struct {
	Line   string `json:"line"`
	Answer string `json:"answer"`
}

// greets reports whether a monitor at this address says its prompt to whom connects. A serial line does not know that.
func greets(address string) bool {
	info, err := os.Stat(address)
	return strings.HasPrefix(address, "tcp:") || err == nil && info.Mode()&os.ModeSocket != 0
}

// talk is a conversation whose side here waits for answers.
type talk struct {
	port port.Port
	ctx  context.Context
	rest string // came behind an answer
}

// ask sends a line and returns its answer.
func (t *talk) ask(line string) (string, error) {
	if err := send(t.port, line+"\n"); err != nil {
		return "", err
	}
	said, err := t.answer()
	if err != nil {
		return "", fmt.Errorf("%q: %w", line, err)
	}
	return said, nil
}

// send writes text whole.
func send(p port.Port, text string) error {
	for until := monoclock.Now() + answerTimeout; text != ""; {
		n, err := p.Write([]byte(text))
		if err != nil {
			return errs.New(errs.Unavailable, "write: %w", err)
		}
		if text = text[n:]; n == 0 {
			if monoclock.Now() > until {
				return errs.New(errs.Unavailable, "write: the line takes nothing")
			}
			_, _ = p.Wait(monoclock.Now() + listenFor) // for room, or something to read
		}
	}
	return nil
}

// answer returns what comes before the next prompt at the begin of a line.
func (t *talk) answer() (string, error) {
	text, buf := t.rest, make([]byte, 4096)
	for until := monoclock.Now() + answerTimeout; ; {
		if i := strings.Index("\n"+text, "\n"+lifeos.Prompt); i >= 0 {
			t.rest = text[i+len(lifeos.Prompt):]
			return text[:i], nil
		}
		switch {
		case t.ctx.Err() != nil:
			return "", t.ctx.Err()
		case monoclock.Now() > until:
			return "", errs.New(errs.Unavailable, "no prompt in %v", answerTimeout)
		case len(text) > maxAnswer:
			return "", errs.New(errs.Invalid, "no prompt in %d bytes", maxAnswer)
		}
		if _, err := t.port.Wait(monoclock.Now() + listenFor); err != nil {
			return "", errs.New(errs.Unavailable, "%w", err)
		}
		n, err := t.port.Read(buf)
		if err != nil {
			return "", errs.New(errs.Unavailable, "read: %w", err)
		}
		text += string(buf[:n])
	}
}

// converse passes on what is typed and what is said, until either ends.
func converse(cmd *cobra.Command, p port.Port) error {
	typed := make(chan string)
	go func() { // ends with the program at the latest: a keyboard cannot be interrupted
		defer close(typed)
		for in := bufio.NewScanner(cmd.InOrStdin()); in.Scan(); {
			select {
			case typed <- in.Text():
			case <-cmd.Context().Done():
				return
			}
		}
	}()
	buf := make([]byte, 4096)
	quiet := 0 // looks without output, after the end of input
	for ended := false; !ended || quiet < 5; quiet++ {
		if !ended {
			select {
			case <-cmd.Context().Done():
				return nil
			case line, ok := <-typed:
				if ended = !ok; ok {
					if err := send(p, line+"\n"); err != nil {
						return err
					}
				}
			default:
			}
		}
		if _, err := p.Wait(monoclock.Now() + listenFor); err != nil {
			return errs.New(errs.Unavailable, "%w", err)
		}
		n, err := p.Read(buf)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errs.New(errs.Unavailable, "read: %w", err)
		}
		if n > 0 {
			quiet = 0
		}
		if _, err := cmd.OutOrStdout().Write(buf[:n]); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}
