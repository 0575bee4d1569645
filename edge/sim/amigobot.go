package sim

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"kennel/edge/body/amigobot"
	"kennel/edge/body/amigobot/amigobotsim"
	"kennel/edge/env/robotfs"
	"kennel/edge/sim/plane"
	"kennel/edge/sim/uart"
	"kennel/infra/logging"
)

// Files below the robot's root.
const (
	amigobotDevice = "dev/ttyAmigo"
	amigobotFlash  = "dev/flash" // an image of its parameters
)

func amigobotFlags(root string) []string {
	return []string{"-body", "amigobot", "-device", filepath.Join(root, amigobotDevice)}
}

// amigobotBody is an AmigoBot with a computer on its back, which has a power of its own.
type amigobotBody struct {
	*amigobotsim.Robot
	r *robot
}

func newAmigobot(r *robot, w World) (body, error) {
	memory := amigobotsim.NewMemory("1.3")
	image, err := robotfs.ReadFile(r.root, amigobotFlash)
	switch {
	case errors.Is(err, fs.ErrNotExist): // as it leaves the factory
		err = memory.Params.SetSerial(strings.ToUpper(r.id.Serial()))
	case err == nil:
		err = memory.Load(image)
	}
	if err != nil {
		return nil, err
	}
	store := func() {
		if err := robotfs.WriteFile(r.root, amigobotFlash, memory.Image(), 0o644); err != nil {
			r.cfg.Log.Error("cannot write "+amigobotFlash, logging.Err, err)
		}
	}
	sim, err := amigobotsim.New(amigobotsim.Config{Memory: memory, World: r.cfg.World, Seed: w.Seed, Volts: w.BatteryVolts, OnStore: store})
	if err != nil {
		return nil, err
	}
	if w.OnCharger {
		sim.SetCharger(amigobotsim.StandardCharger)
	}
	return amigobotBody{sim, r}, nil
}

// World implements body.
func (a amigobotBody) World() (s plane.State, ok bool) {
	_ = a.InWorld(func(w *plane.World) error { // it returns no error
		s = w.State()
		return nil
	})
	return s, true
}

func (a amigobotBody) on(ctx context.Context) error {
	var lines [amigobotsim.Ports]uart.Line
	for port, name := range map[amigobotsim.Port]string{amigobotsim.Control: amigobotDevice, amigobotsim.System: amigobot.SystemDevice} {
		line, err := uart.ListenSocket(a.r.root, name)
		if err != nil {
			return err
		}
		defer a.r.hangUp(ctx, line)
		lines[port] = line
	}
	return a.Run(ctx, lines)
}

// ready implements body: the head does not wait for the robot's own controller.
func (amigobotBody) ready(context.Context, uint64) (Boot, bool, error) {
	return BootNormal, false, nil
}

// serve implements body: with each session the robot reckons from where it is (AMIGO-SYNC-18).
func (a amigobotBody) serve(ctx context.Context) error {
	for {
		for _, open := range []bool{true, false} {
			if _, err := a.Await(ctx, func(s amigobotsim.State) bool { return (s.Mode == amigobotsim.Connected) == open }); err != nil {
				return nil // ctx ended
			}
			if open {
				a.r.truth.begin()
			}
		}
	}
}
