package sim

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"kennel/edge/agent/teleop/simulator"
	"kennel/edge/body/vector"
	"kennel/edge/body/vector/imu"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/sim/uart"
	"kennel/infra/api/poke"
)

// imuRate is how often a simulated robot reads its inertial sensors: a fourth of what a real one does. Each reading wakes two processes, 200 a second
// take as much of a processor as robotd's loop; for 80 ms of a fall and 20 ms of an impact 50 do.
const imuRate = "50"

func vectorFlags(string) []string { return []string{"-imu-rate", imuRate} }

// vectorBody is Vector's body board, and the inertial sensors in its head.
type vectorBody struct {
	*vectorsim.Board
	r   *robot
	imu *vectorsim.IMU
}

func newVector(r *robot, w World) (body, error) {
	cfg := vectorsim.Config{Seed: w.Seed, Volts: w.BatteryVolts, OnCharger: w.OnCharger, Caretaker: true, World: r.cfg.World, Press: r.cfg.Press}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	board := vectorsim.New(cfg)
	return vectorBody{board, r, vectorsim.NewIMU(vectorsim.IMUConfig{Seed: w.Seed}, board.Inertial)}, nil
}

func (v vectorBody) on(ctx context.Context) error {
	// A socket and no pseudo-terminal, whose bytes are late on a busy machine: simulated robots come in dozens. It is where a robot has its tty.
	line, err := uart.ListenSocket(v.r.root, vector.DefaultDevice)
	if err != nil {
		return err
	}
	defer v.r.hangUp(ctx, line)
	if err = v.RunOn(ctx, line); errors.Is(err, vectorsim.ErrPowerCut) || errors.Is(err, vectorsim.ErrShutdown) {
		err = fmt.Errorf("%w: %w", errPowerCut, err)
	}
	return err
}

// Verbs returns the actions of a hand on the body, and of a person who speaks to it.
func (v vectorBody) Verbs() []string { return append(v.Board.Verbs(), poke.Play) }

func (v vectorBody) Poke(p poke.Poke) error {
	if p.Verb != poke.Play {
		return v.Board.Poke(p)
	}
	b, err := v.r.root.ReadFile(simulator.SoundDir + "/" + p.File)
	if err != nil {
		return fmt.Errorf("play: no such sound in the robot's simulator (robotsim poke play puts it there): %w", err)
	}
	s, err := vectorsim.ParseWAV(b, p.Args[poke.From])
	if err == nil {
		v.PlayOnce(s)
	}
	return err
}

// Sound returns how far the newest sound is.
func (v vectorBody) Sound() *simulator.Sound {
	h := v.Heard()
	return &simulator.Sound{Playing: h.Playing, Began: int64(h.Began), Ended: int64(h.Ended)}
}

func (v vectorBody) ready(ctx context.Context, nth uint64) (Boot, bool, error) {
	// The head boots what the button says when it is let go.
	s, err := v.Await(ctx, func(s vectorsim.State) bool {
		return s.PowerOns >= nth && (s.Mode == vectorsim.Off || s.Boot != vectorsim.BootUndecided && !s.Held)
	})
	return Boot(s.Boot.String()), s.Mode == vectorsim.Off, err
}

func (v vectorBody) serve(ctx context.Context) error {
	if err := v.r.root.MkdirAll(filepath.Dir(imu.DefaultDevice), 0o755); err != nil {
		return err
	}
	return vectorsim.ServeIMU(ctx, filepath.Join(v.r.cfg.Root, imu.DefaultDevice), v.imu)
}
