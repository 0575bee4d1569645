package kitapp

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"kennel/edge/body/amigobot/sysmode"
	"kennel/edge/body/port"
	"kennel/infra/atomicfile"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func amigoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "amigo",
		Short: "Configure, load and drive an AmigoBot",
		Long: `Configure, load, watch and drive an AmigoBot.

params and download need the System port of a simulated robot (robotsim amigobot -system) in System mode: hold its black button, press and
release the red one, then release the black one. They use this project's own protocol, because the protocol of real robots is unknown, and
refuse serial lines. The other commands are ordinary clients of the Control port.

A port is tcp:HOST:PORT, serial:/dev/ttyS0?baud=9600, or the path of a tty or Unix socket.`,
		Example: `  robotkit amigo params -port tcp:localhost:8102 list
  robotkit amigo demo -port tcp:localhost:8101`,
	}
	cmd.AddCommand(amigoParamsCommand(), amigoDownloadCommand(), amigoSoundsCommand(), amigoDemoCommand(), amigoRevcountCommand())
	return cmd
}

// amigoBaud is the speed of a serial port whose address has none (AMIGO-LINK-01).
const amigoBaud = 9600

// controlFlag is the address of a Control port; the default is the one of the genuine tools (AMIGO-LINK-03).
func controlFlag(cmd *cobra.Command, address *string) {
	cmd.Flags().StringVarP(address, "port", "p", "serial:/dev/ttyS0", "`address` of the Control port: tcp:HOST:PORT, serial:TTY?baud=9600, or a path")
}

// systemFlag is the address of a System port, and whether to leave System mode.
func systemFlag(cmd *cobra.Command, address *string, reset *bool) {
	cmd.Flags().StringVarP(address, "port", "p", "", "`address` of the System port: tcp:HOST:PORT, or the path of a pseudo-terminal or Unix socket")
	cmd.Flags().BoolVar(reset, "reset", false, "leave System mode at the end: the robot resets and uses the saved values")
}

// withAmigo opens the robot's port, calls f and closes the port.
func withAmigo(cmd *cobra.Command, address string, f func(*port.Line) error) error {
	line, err := port.Open(cmd.Context(), address, amigoBaud, false)
	if err != nil {
		return errs.New(errs.Unavailable, "%w", err)
	}
	defer line.Close()
	return f(line)
}

// withSystem says hello to a robot in System mode, calls f, and with reset ends System mode afterwards.
func withSystem(cmd *cobra.Command, address string, reset bool, f func(c *sysmode.Client, version string) error) error {
	if address == "" {
		return cli.Usage("missing -port, the address of the robot's System port")
	}
	return withAmigo(cmd, address, func(line *port.Line) error {
		if line.Serial() { // AMIGO-OPEN-02
			return cli.Usage("%s is a serial line, but only simulated robots support this command", address)
		}
		c := sysmode.NewClient(line)
		version, err := c.Hello(cmd.Context())
		if err == nil {
			err = f(c, version)
		}
		if err == nil && reset {
			err = c.Leave(cmd.Context())
		}
		return systemError(err)
	})
}

// systemError gives an error of sysmode its kind, and says what to do.
func systemError(err error) error {
	switch {
	case errors.Is(err, sysmode.ErrSilent): // AMIGO-DL-05
		return errs.New(errs.Unavailable, "%w? Hold the black button, press and release the red one, release the black one; "+
			"if tests start, reset and try again", err)
	case errors.Is(err, sysmode.ErrRefused):
		return errs.New(errs.Invalid, "%w", err)
	}
	return err
}

// readFile reads a file of at most maxFile bytes.
func readFile(name string) ([]byte, error) {
	f, err := openFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = cli.Usage("%s: larger than %d MB", name, maxFile>>20)
	}
	return b, err
}

// openFile opens a file to read it.
func openFile(name string) (*os.File, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errs.New(errs.NotFound, "%w", err)
	}
	return f, err
}

// writeFile replaces a file as a whole.
func writeFile(name string, data []byte) error {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer root.Close()
	return atomicfile.Write(root, filepath.Base(name), data, 0o644, 0o755)
}
