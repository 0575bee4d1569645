package vectorsim

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"kennel/edge/body/bodysim"
	"kennel/edge/body/vector/imu"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/cube/cubesim"
	"kennel/edge/sim/uart"
	"kennel/infra/api/poke"
	"kennel/infra/thing"
)

// imuRate is how often a simulated robot reads its inertial sensors: a fourth of what a real one does. Each reading wakes two processes, 200 a second
// take as much of a processor as robotd's loop; for 80 ms of a fall and 20 ms of an impact 50 do.
const imuRate = "50"

// Species is the simulated Vector.
var Species = bodysim.Species{
	Species: thing.Vector,
	Volts:   3.95,
	Flags:   func(string) []string { return []string{"-imu-rate", imuRate} },
	New:     newBody,
}

// head is Vector's body board, and what is in the head on it.
type head struct {
	*Board
	at  bodysim.Place
	imu *IMU
	eye *Eye
}

func newBody(at bodysim.Place) (bodysim.Body, error) {
	cfg := Config{Seed: at.Seed, Volts: at.Volts, OnCharger: at.OnCharger, Caretaker: true, World: at.World, Press: at.Press}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	board := New(cfg)
	return head{board, at, NewIMU(IMUConfig{Seed: at.Seed}, board.Inertial), NewEye(board)}, nil
}

// On implements bodysim.Body.
func (h head) On(ctx context.Context) error {
	// A socket and no pseudo-terminal, whose bytes are late on a busy machine: simulated robots come in dozens. It is where a robot has its tty.
	line, err := uart.ListenSocket(h.at.Root, vectordriver.DefaultDevice)
	if err != nil {
		return err
	}
	defer h.at.HangUp(ctx, line)
	if err = h.RunOn(ctx, line); errors.Is(err, ErrPowerCut) || errors.Is(err, ErrShutdown) {
		err = fmt.Errorf("%w: %w", bodysim.ErrPowerCut, err)
	}
	return err
}

// Verbs returns the actions of a hand on the body, and of a person who speaks to it.
func (h head) Verbs() []string { return append(h.Board.Verbs(), poke.Play) }

// Poke implements bodysim.Hand.
func (h head) Poke(p poke.Poke) error {
	if p.Verb != poke.Play {
		return h.Board.Poke(p)
	}
	b, err := h.at.Root.ReadFile(h.at.Sounds + "/" + p.File)
	if err != nil {
		return fmt.Errorf("play: no such sound in the robot's simulator (robotsim poke play puts it there): %w", err)
	}
	s, err := ParseWAV(b, p.Args[poke.From])
	if err == nil {
		h.PlayOnce(s)
	}
	return err
}

// Ready implements bodysim.Body.
func (h head) Ready(ctx context.Context, nth uint64) (bodysim.Boot, bool, error) {
	// The head boots what the button says when it is let go.
	s, err := h.Await(ctx, func(s State) bool {
		return s.PowerOns >= nth && (s.Mode == Off || s.Boot != BootUndecided && !s.Held)
	})
	return bodysim.Boot(s.Boot.String()), s.Mode == Off, err
}

// Serve implements bodysim.Body.
func (h head) Serve(ctx context.Context) error {
	if err := h.at.Root.MkdirAll(filepath.Dir(imu.DefaultDevice), 0o755); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error)
	for _, serve := range []func() error{
		func() error { return h.eye.Serve(ctx, h.at.Root) },
		func() error { return cubesim.Serve(ctx, h.at.Root, h.cubes) },
		func() error { return ServeIMU(ctx, h.at.Path(imu.DefaultDevice), h.imu) },
	} {
		go func() { served <- serve() }()
	}
	err := <-served
	cancel() // a head without one of its devices is none
	return errors.Join(err, <-served, <-served)
}
