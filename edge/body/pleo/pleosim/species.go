//go:build !js

package pleosim

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"kennel/edge/body/bodysim"
	"kennel/edge/body/pleo"
	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/personality"
	"kennel/edge/env/robotfs"
	"kennel/edge/sim/plane"
	"kennel/edge/sim/uart"
	"kennel/infra/api/poke"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Places below the folder of a simulated robot.
const (
	CardDir   = "card"         // is on the card in the slot; no folder: there is none
	FlashDir  = "dataflash"    // is in the dataflash
	USBDevice = "dev/ttyPleo1" // is the port for people

	CardRelease = "factory/kennel/card-release" // is the version of the release that wrote the card
)

// Species is the simulated Pleo, with the firmware of the model that the robot's folder names.
var Species = bodysim.Species{
	Species: thing.Pleo,
	Volts:   FullVolts,
	Flags:   func(root string) []string { return []string{"-device", filepath.Join(root, pleo.DefaultDevice)} },
	Card:    CardDir,
	New:     newBody,
}

// carrier is a Pleo with the computer beside it.
type carrier struct {
	*Robot
	at bodysim.Place

	mu   sync.Mutex
	card *Folder // nil: none is inserted
}

func newBody(at bodysim.Place) (bodysim.Body, error) {
	serial, err := strconv.ParseUint(at.ID.Serial(), 16, 32)
	if err != nil {
		serial = 0 // of a thing whose serial is not the factory's
	}
	model, err := robotfs.Model(at.Root)
	if err != nil {
		return nil, err
	}
	profile, err := lifeos.ParseProfile(pleo.Generation(model))
	if err != nil {
		return nil, err
	}
	flash := at.Path(FlashDir)
	if err := at.Root.MkdirAll(FlashDir, 0o755); err != nil {
		return nil, err
	}
	drive, err := OpenFolder(flash)
	if err != nil {
		return nil, err
	}
	if err := furnish(drive, profile); err != nil {
		return nil, err
	}
	c := &carrier{at: at}
	cfg := Config{Profile: profile, Serial: uint32(serial), Seed: at.Seed, Flash: drive, OnCharger: at.OnCharger, Log: c.log,
		Charge: min(max((at.Volts-EmptyVolts)/(FullVolts-EmptyVolts), 0.01), 1)}
	switch c.card, err = OpenFolder(at.Path(CardDir)); {
	case err == nil:
		cfg.Card = c.card
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	c.Robot, err = NewRobot(cfg)
	return c, err
}

// furnish puts the default personality into a dataflash that has no application.
func furnish(flash *Folder, profile lifeos.Profile) error {
	names, err := flash.Files()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, ".urf") || strings.HasSuffix(n, ".amx") }) {
		return nil
	}
	app, err := personality.Build(profile)
	if err != nil {
		return err
	}
	return flash.Write(personality.File, app)
}

// log passes the messages of LifeOS that matter to those who run the simulator.
func (c *carrier) log(m lifeos.Message) {
	if m.Level <= lifeos.Warning {
		c.at.Log.Warn("LifeOS", "type", m.Type.String(), "text", m.Text)
		return
	}
	c.at.Log.Debug("LifeOS", "type", m.Type.String(), "text", m.Text)
}

// Verbs implements bodysim.Hand.
func (c *carrier) Verbs() []string { return append(c.Robot.Verbs(), poke.Insert, poke.Eject) }

// Poke implements bodysim.Hand. The card is the robot's folder card: who takes it out may change what is on it.
func (c *carrier) Poke(p poke.Poke) error {
	switch p.Verb {
	case poke.Insert:
		return c.insert()
	case poke.Eject:
		return c.eject()
	}
	return c.Robot.Poke(p)
}

func (c *carrier) insert() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.card != nil {
		return errors.New("a card is in the slot")
	}
	card, err := OpenFolder(c.at.Path(CardDir))
	if err != nil {
		return err
	}
	if err := c.Insert(card); err != nil {
		_ = card.Close() // every write is synced
		return err
	}
	c.card = card
	return nil
}

func (c *carrier) eject() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.card == nil {
		return errors.New("no card is in the slot")
	}
	if _, err := c.Eject(); err != nil {
		return err
	}
	err := c.card.Close()
	c.card = nil
	return err
}

// Exchange implements bodysim.Carded. The release that the card has is noted last, so that a card which a cut of the power left unfinished is written again.
func (c *carrier) Exchange(version string, files map[string][]byte) error {
	if b, err := c.at.Root.ReadFile(CardRelease); err == nil && string(b) == version {
		return nil
	}
	c.mu.Lock()
	there := c.card != nil
	c.mu.Unlock()
	if there {
		if err := c.eject(); err != nil {
			return err
		}
	}
	for _, name := range []string{CardRelease, CardDir} {
		if err := c.at.Root.RemoveAll(name); err != nil {
			return err
		}
	}
	if err := c.at.Root.MkdirAll(CardDir, 0o755); err != nil {
		return err
	}
	for name, data := range files {
		if err := robotfs.WriteFile(c.at.Root, CardDir+"/"+name, data, 0o644); err != nil {
			return err
		}
	}
	if err := c.insert(); err != nil {
		return err
	}
	return robotfs.WriteFile(c.at.Root, CardRelease, []byte(version), 0o644)
}

// World implements bodysim.Body: a body that does not walk by itself has no place in a world.
func (*carrier) World() (plane.State, bool) { return plane.State{}, false }

// InWorld implements bodysim.Body.
func (*carrier) InWorld(func(*plane.World) error) error { return errors.New("a Pleo is in no world") }

// On implements bodysim.Body.
func (c *carrier) On(ctx context.Context) error {
	serial, err := uart.ListenSocket(c.at.Root, pleo.DefaultDevice)
	if err != nil {
		return err
	}
	defer c.at.HangUp(ctx, serial)
	usb, err := uart.ListenSocket(c.at.Root, USBDevice)
	if err != nil {
		c.at.Log.WarnContext(ctx, "no port for people", logging.Err, err)
		return c.Run(ctx, serial, nil)
	}
	defer c.at.HangUp(ctx, usb)
	return c.Run(ctx, serial, usb)
}

// Ready implements bodysim.Body: the computer does not wait for the joints.
func (*carrier) Ready(context.Context, uint64) (bodysim.Boot, bool, error) {
	return bodysim.Normal, false, nil
}

// Serve implements bodysim.Body: it has no other devices.
func (*carrier) Serve(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
