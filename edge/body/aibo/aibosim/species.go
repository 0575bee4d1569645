package aibosim

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"kennel/edge/body/aibo"
	"kennel/edge/body/bodysim"
	"kennel/edge/env/robotfs"
	"kennel/edge/sim/plane"
	"kennel/edge/sim/uart"
	"kennel/infra/thing"
)

// Species is the simulated AIBO, of the model that the robot's folder names.
var Species = bodysim.Species{
	Species: thing.AIBO,
	Volts:   FullVolts,
	Flags:   func(root string) []string { return []string{"-device", filepath.Join(root, aibo.DefaultDevice)} },
	New:     newBody,
}

// carrier is an AIBO's body with the computer in it.
type carrier struct {
	*Robot
	at bodysim.Place
}

func newBody(at bodysim.Place) (bodysim.Body, error) {
	name, err := robotfs.Model(at.Root)
	if err != nil {
		return nil, err
	}
	cfg := Config{Volts: at.Volts, OnCharger: at.OnCharger}
	if name != "" {
		if _, err := aibo.Species.Named(name); err != nil {
			return nil, err
		}
		cfg.Model = aibo.Models[slices.IndexFunc(aibo.Models, func(m aibo.Model) bool { return m.String() == name })]
	}
	r, err := New(cfg)
	if err != nil {
		return nil, err
	}
	return carrier{r, at}, nil
}

// World implements bodysim.Body: a body that does not walk has no place in a world.
func (carrier) World() (plane.State, bool) { return plane.State{}, false }

// InWorld implements bodysim.Body.
func (carrier) InWorld(func(*plane.World) error) error { return errors.New("an AIBO is in no world") }

// On implements bodysim.Body.
func (c carrier) On(ctx context.Context) error {
	line, err := uart.ListenSocket(c.at.Root, aibo.DefaultDevice)
	if err != nil {
		return err
	}
	defer c.at.HangUp(ctx, line)
	return c.Run(ctx, line)
}

// Ready implements bodysim.Body: the computer does not wait for the joints.
func (carrier) Ready(context.Context, uint64) (bodysim.Boot, bool, error) {
	return bodysim.Normal, false, nil
}

// Serve implements bodysim.Body: it has no other devices.
func (carrier) Serve(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
