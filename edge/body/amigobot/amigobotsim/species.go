package amigobotsim

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"kennel/edge/body/amigobot"
	"kennel/edge/body/bodysim"
	"kennel/edge/env/robotfs"
	"kennel/edge/sim/plane"
	"kennel/edge/sim/uart"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Files below the robot's root.
const (
	device    = "dev/ttyAmigo"
	flashFile = "dev/flash" // an image of its parameters
)

// Species is the simulated AmigoBot, with a computer on its back.
var Species = bodysim.Species{
	Species: thing.AmigoBot,
	Volts:   13,
	Flags:   func(root string) []string { return []string{"-device", filepath.Join(root, device)} },
	New:     newBody,
}

// carrier is an AmigoBot with a computer on its back, which has a power of its own.
type carrier struct {
	*Robot
	at bodysim.Place
}

func newBody(at bodysim.Place) (bodysim.Body, error) {
	memory := NewMemory("1.3")
	image, err := robotfs.ReadFile(at.Root, flashFile)
	switch {
	case errors.Is(err, fs.ErrNotExist): // as it leaves the factory
		err = memory.Params.SetSerial(strings.ToUpper(at.ID.Serial()))
	case err == nil:
		err = memory.Load(image)
	}
	if err != nil {
		return nil, err
	}
	store := func() {
		if err := robotfs.WriteFile(at.Root, flashFile, memory.Image(), 0o644); err != nil {
			at.Log.Error("cannot write "+flashFile, logging.Err, err)
		}
	}
	sim, err := New(Config{Memory: memory, World: at.World, Seed: at.Seed, Volts: at.Volts, OnStore: store})
	if err != nil {
		return nil, err
	}
	if at.OnCharger {
		sim.SetCharger(StandardCharger)
	}
	return carrier{sim, at}, nil
}

// World implements bodysim.Body.
func (c carrier) World() (s plane.State, ok bool) {
	_ = c.InWorld(func(w *plane.World) error { // it returns no error
		s = w.State()
		return nil
	})
	return s, true
}

// On implements bodysim.Body.
func (c carrier) On(ctx context.Context) error {
	var lines [Ports]uart.Line
	for port, name := range map[Port]string{Control: device, System: amigobot.SystemDevice} {
		line, err := uart.ListenSocket(c.at.Root, name)
		if err != nil {
			return err
		}
		defer c.at.HangUp(ctx, line)
		lines[port] = line
	}
	return c.Run(ctx, lines)
}

// Ready implements bodysim.Body: the head does not wait for the robot's own controller.
func (carrier) Ready(context.Context, uint64) (bodysim.Boot, bool, error) {
	return bodysim.Normal, false, nil
}

// Serve implements bodysim.Body: with each session the robot reckons from where it is (AMIGO-SYNC-18).
func (c carrier) Serve(ctx context.Context) error {
	for {
		for _, open := range []bool{true, false} {
			if _, err := c.Await(ctx, func(s State) bool { return (s.Mode == Connected) == open }); err != nil {
				return nil // ctx ended
			}
			if open {
				c.at.Begun()
			}
		}
	}
}
