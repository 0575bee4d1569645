package sim

import (
	"context"
	"path/filepath"

	"kennel/edge/body/vector"
	"kennel/edge/body/vector/imu"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/sim/uart"
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
	return v.RunOn(ctx, line)
}

func (v vectorBody) ready(ctx context.Context, nth uint64) (vectorsim.Boot, bool, error) {
	// The head boots what the button says when it is let go.
	s, err := v.Await(ctx, func(s vectorsim.State) bool {
		return s.PowerOns >= nth && (s.Mode == vectorsim.Off || s.Boot != vectorsim.BootUndecided && !s.Held)
	})
	return s.Boot, s.Mode == vectorsim.Off, err
}

func (v vectorBody) serve(ctx context.Context) error {
	if err := v.r.root.MkdirAll(filepath.Dir(imu.DefaultDevice), 0o755); err != nil {
		return err
	}
	return vectorsim.ServeIMU(ctx, filepath.Join(v.r.cfg.Root, imu.DefaultDevice), v.imu)
}
