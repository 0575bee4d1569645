package simapp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/core/rt/rtlinux"
	"kennel/edge/sim/uart"
	"kennel/infra/cli"
)

// starts are the words for how a board begins.
var starts = map[string]vectorsim.Start{
	"application": vectorsim.StartApplication, "boot-loader": vectorsim.StartBootloader, "empty": vectorsim.StartEmpty,
}

// layouts are the words for the layouts of data frames.
var layouts = map[string]spine.Layout{"genuine": spine.Genuine, "book": spine.Book}

// board holds the flags of the command.
type board struct {
	cfg                 vectorsim.Config
	link, socket, start string
	layout              string
	wav, where, imu     string
	pad, camera         string
	again               time.Duration
	thread              rtlinux.Thread
}

func boardCommand() *cobra.Command {
	var o board
	cmd := &cobra.Command{
		Use:   "vector-board",
		Short: "Run Vector's simulated body board alone, for any program that acts as the head",
		Long: `Run Vector's simulated body board alone. -pty becomes a link to a pseudo-terminal, on which the board talks to any program that
opens it, byte for byte as on the robot's serial line. Like the real board it sends a data frame every 5.12 ms, and cuts the
power after 200 frames without an answer from the head, or when its battery is empty. After -again its button is pressed again;
with -again 0 the program then exits with code 1. A shutdown frame from the head ends it with code 0.

-socket uses a Unix socket instead, which robotd -device also accepts. It delivers frames at once, while those of a
pseudo-terminal pass through the kernel's worker threads and may be late on a busy machine. Only one head can be connected;
further ones are disconnected.`,
		Example: `  robotsim vector-board -pty /tmp/ttyHS0
  robotsim vector-board -socket /tmp/board.sock -imu /tmp/imu.sock -world table
  robotsim vector-board -pty ./board -start boot-loader -volts 3.7 -loss 0.01 -corrupt 0.01 -seed 7`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.link, "pty", "", "create this link to the board's pseudo-terminal")
	f.DurationVar(&o.cfg.Press, "press", 0, pressUsage)
	f.StringVar(&o.socket, "socket", "", "create this Unix socket for the board, for one head at a time")
	f.StringVar(&o.imu, "imu", "", "create this Unix socket for the head's inertial sensors, for robotd -imu")
	f.StringVar(&o.camera, "camera", "", "serve the pictures of the head's camera in this robot's folder `DIR`, for agentd")
	f.StringVar(&o.pad, "pad", "", "run test firmware and create this link to a pseudo-terminal, the factory's serial line on the charging "+
		"pad (default: neither)")
	f.StringVar(&o.start, "start", "application", "what runs at power-on: application, boot-loader or empty (nothing)")
	f.StringVar(&o.layout, "layout", "genuine", "layout of lights, battery flags and range readings in data frames: genuine (as in the "+
		"maker's programs) or book (as printed)")
	f.DurationVar(&o.again, "again", time.Second, "time from a power cut to the next press of the button; 0: never")
	// A bare board has its head started by hand, at any time.
	f.DurationVar(&o.cfg.BootPatience, "boot-patience", time.Hour, "how long the board waits for the head's first frame")
	f.Uint64Var(&o.cfg.Seed, "seed", 1, "seed of noise and other random behaviour")
	f.IntVar(&o.thread.Priority, "priority", 0, "real-time priority, 1 to 99, if permitted: as punctual as hardware, for a "+
		"head of lower priority; 0: normal scheduling")
	f.IntVar(&o.thread.CPU, "cpu", rtlinux.AnyCPU, "pin the board to this processor, with -priority; -1: any")
	f.StringVar(&o.cfg.Version, "version", "", "firmware version, at most 16 bytes (default 1.6.0-sim)")
	f.Float64Var(&o.cfg.Volts, "volts", 4.0, "battery, 3.0 to 4.2")
	f.BoolVar(&o.cfg.OnCharger, "on-charger", false, "start on the charger")
	f.BoolVar(&o.cfg.Caretaker, "caretaker", false, "put the robot on the charger when its battery is low, and take it off when full")
	f.StringVar(&o.where, "world", "", worldUsage)
	f.StringVar(&o.wav, "mics", "", "WAV file that the microphones hear in a loop (default: a quiet room)")
	f.Float64Var(&o.cfg.Noise.ByteLoss, "byte-loss", 0, "share of bytes that are lost, 0 to 1")
	f.Float64Var(&o.cfg.Noise.ByteNoise, "byte-noise", 0, "share of bytes that arrive as a random one, 0 to 1")
	f.IntVar(&o.cfg.Noise.Babble, "babble", 0, "up to this many stray bytes per period, each way")
	f.Float64Var(&o.cfg.Noise.Loss, "loss", 0, "share of frames that are lost, 0 to 1")
	f.Float64Var(&o.cfg.Noise.Corrupt, "corrupt", 0, "share of frames that arrive damaged, 0 to 1")
	return cmd
}

func (o *board) run(cmd *cobra.Command) error {
	var ok bool
	if o.cfg.Start, ok = starts[o.start]; !ok {
		return cli.Usage("-start %.40q: want application, boot-loader or empty", o.start)
	}
	if o.cfg.Layout, ok = layouts[o.layout]; !ok {
		return cli.Usage("-layout %.40q: want genuine or book", o.layout)
	}
	if o.again < 0 {
		return cli.Usage("-again %v: want 0 or more", o.again)
	}
	var err error
	if o.cfg.World, err = openWorld(o.where); err != nil {
		return err
	}
	if err := o.cfg.Validate(); err != nil {
		return cli.Usage("%w", err)
	}
	if o.cfg.Press > 0 {
		o.cfg.OnBoot = func(k vectorsim.Boot) { fmt.Fprintf(cmd.OutOrStdout(), "boot: %v\n", k) }
	}
	o.cfg.Factory = o.pad != ""
	if err := o.thread.Check(); err != nil {
		return cli.Usage("-%w", err)
	}
	if o.thread.Priority > 0 {
		leave := punctual(&o.cfg, o.thread, cmd.ErrOrStderr())
		defer leave()
	}
	board := vectorsim.New(o.cfg)
	if o.wav != "" {
		b, err := os.ReadFile(o.wav)
		if err != nil {
			return fmt.Errorf("-mics: %w", err)
		}
		sound, err := vectorsim.ParseWAV(b, 0)
		if err != nil {
			return cli.Usage("-mics %s: %w", o.wav, err)
		}
		board.SetSound(sound)
	}
	if (o.link == "") == (o.socket == "") {
		return cli.Usage("want either -pty FILE or -socket FILE")
	}
	nothing := func() error { return nil }
	ctx, sensors, pictures, pad := cmd.Context(), nothing, nothing, nothing
	if o.pad != "" {
		if ctx, pad, err = servePad(ctx, board, o.pad); err != nil {
			return err
		}
	}
	if o.imu != "" {
		ctx, sensors = aside(ctx, func(ctx context.Context) error {
			return vectorsim.ServeIMU(ctx, o.imu, vectorsim.NewIMU(vectorsim.IMUConfig{Seed: o.cfg.Seed}, board.Inertial))
		})
	}
	if o.camera != "" {
		root, err := os.OpenRoot(o.camera)
		if err != nil {
			return errors.Join(fmt.Errorf("-camera: %w", err), sensors(), pad())
		}
		defer root.Close()
		ctx, pictures = aside(ctx, func(ctx context.Context) error { return vectorsim.NewEye(board).Serve(ctx, root) })
	}
	if o.socket != "" {
		err = onSocket(ctx, board, o.socket, o.again, cmd.OutOrStdout())
	} else {
		err = onPTY(ctx, board, o.link, o.again, cmd.OutOrStdout())
	}
	return errors.Join(err, pictures(), sensors(), pad())
}

// firmwareBytes is how long a simulated program is: 20 blocks.
const firmwareBytes = 20 << 10

func firmwareCommand() *cobra.Command {
	var version string
	cmd := &cobra.Command{
		Use:   "vector-firmware FILE",
		Short: "Write a firmware file for Vector's simulated body board",
		Long: `Write a firmware file for Vector's simulated body board: 16 bytes of version, then a program. Like the real one, the simulated boot
loader starts only a program with a valid signature; after any other file the board runs nothing until a valid one is installed.`,
		Example: `  robotsim vector-firmware ./syscon.dfu -version 2.0.0
  robotd -root ./r1 -device ./board -firmware ./syscon.dfu`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if version == "" || len(version) > 16 {
				return cli.Usage("-version %.40q: want 1 to 16 bytes", version)
			}
			return os.WriteFile(args[0], vectorsim.Image(version, firmwareBytes, 1), 0o644)
		},
	}
	cmd.Flags().StringVar(&version, "version", "", "version of the program, 1 to 16 bytes (required)")
	_ = cmd.MarkFlagRequired("version") // the flag exists
	return cmd
}

// servePad lets the factory's serial line on b's charging pad be at path, like aside (VEC-CLI-01, VEC-HW-22).
func servePad(ctx context.Context, b *vectorsim.Board, path string) (_ context.Context, stop func() error, _ error) {
	pty, err := uart.OpenPTY()
	if err != nil {
		return nil, nil, err
	}
	if err := pointTo("-pad", path, pty.SlavePath); err != nil {
		return nil, nil, errors.Join(err, pty.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		defer cancel()
		done <- b.ServePad(ctx, pty.Master)
	}()
	return ctx, func() error {
		cancel()
		return errors.Join(<-done, os.Remove(path), pty.Close())
	}, nil
}

// punctual makes the board that this goroutine runs as punctual as hardware, as far as the system permits; it writes to out what is not permitted.
func punctual(c *vectorsim.Config, t rtlinux.Thread, out io.Writer) (leave func()) {
	c.HoldProcessor = true
	runtime.GOMAXPROCS(max(3, runtime.NumCPU())) // one for the board, one for its sensors, one in hand
	runtime.LockOSThread()
	g := t.Enter()
	if err := g.Err(); err != nil {
		fmt.Fprintln(out, "-priority: not permitted; continuing with normal scheduling:", err)
	}
	return func() {
		g.Leave()
		runtime.UnlockOSThread()
	}
}

// aside serves a device of the head that carries the board. The context ends with the device; stop ends it, and says why it did before.
func aside(ctx context.Context, serve func(context.Context) error) (_ context.Context, stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		defer cancel()
		done <- serve(ctx)
	}()
	return ctx, func() error {
		cancel()
		return <-done
	}
}

// pressUsage explains -press.
const pressUsage = "how long the button is held at power-on, up to 1m: below 5s the power drops again, from 15s on it is a " +
	"recovery boot, which leaves user data alone; 0: as long as needed, without waiting"

// onPTY runs b behind a pseudo-terminal that link names.
func onPTY(ctx context.Context, b *vectorsim.Board, link string, again time.Duration, out io.Writer) (err error) {
	pty, err := uart.OpenPTY()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pty.Close()) }()
	if err := pointTo("-pty", link, pty.SlavePath); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(link)) }()
	run := func(ctx context.Context) error { return b.Run(ctx, pty.Master) }
	return runBoard(ctx, run, link+" is "+pty.SlavePath, again, out)
}

// onSocket runs b behind a Unix socket, which acts like the serial line: heads connect and leave, and the board keeps running.
func onSocket(ctx context.Context, b *vectorsim.Board, path string, again time.Duration, out io.Writer) (err error) {
	line, err := listenSocket("-socket", path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, line.Close()) }()
	run := func(ctx context.Context) error { return b.RunOn(ctx, line) }
	return runBoard(ctx, run, "listening on "+path, again, out)
}

// listenSocket returns a new Unix socket at path.
func listenSocket(flag, path string) (*uart.Socket, error) {
	if old, err := os.Lstat(path); err == nil && old.Mode()&os.ModeSocket == 0 {
		return nil, cli.Usage("%s %s: exists and is not a socket; want an unused name", flag, path)
	}
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	defer dir.Close() // the socket has its own
	line, err := uart.ListenSocket(dir, filepath.Base(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return line, nil
}

// runBoard runs b on a line, until ctx ends or the power stays off. Each line of out is one thing that happened.
func runBoard(ctx context.Context, run func(context.Context) error, where string, again time.Duration, out io.Writer) error {
	for {
		fmt.Fprintln(out, "power on:", where)
		err := run(ctx)
		switch {
		case errors.Is(err, vectorsim.ErrShutdown):
			fmt.Fprintln(out, "power off:", err)
			return nil
		case !errors.Is(err, vectorsim.ErrPowerCut):
			return err // nil: interrupted
		case again == 0:
			return err
		}
		fmt.Fprintln(out, "power off:", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
	}
}

// pointTo makes link a symbolic link to target. A link that an earlier run left behind is replaced, any other file is not.
func pointTo(flag, link, target string) error {
	if old, err := os.Lstat(link); err == nil && old.Mode()&os.ModeSymlink == 0 {
		return cli.Usage("%s %s: exists and is not a link; want an unused name", flag, link)
	}
	tmp := fmt.Sprintf("%s.%d", link, os.Getpid())
	if err := os.Symlink(target, tmp); err != nil {
		return fmt.Errorf("%s: make a link in %s: %w", flag, filepath.Dir(link), err)
	}
	if err := os.Rename(tmp, link); err != nil {
		return fmt.Errorf("%s: %w", flag, errors.Join(err, os.Remove(tmp)))
	}
	return nil
}
