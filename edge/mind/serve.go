package mind

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"kennel/edge/anim/repertoire"
	"kennel/edge/body/monoclock"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/env/robotfs"
	"kennel/edge/face"
	"kennel/edge/face/screen"
	"kennel/edge/face/sprite"
	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mood"
	"kennel/infra/cli/version"
	"kennel/infra/logging"
	"kennel/infra/runner"
)

// NewMotions makes the Motions of the robot in a folder, whose robotd is at the other end of a connection; it may return nil.
type NewMotions func(*os.Root, *corelink.Client, *coreclient.Client) Motions

// Notice returns a page to show instead of the eyes, such as a fault's; nil: none. It is called twice a second. Two pages that are equal are the same one.
type Notice func() screen.Screen

// Own lists what a robot's character has besides Kennel's animations.
type Own struct {
	Seed    uint64 // of blinks and choices
	Motions NewMotions
	Notices []Notice // the first that returns a page is shown
	// Color returns the colour of the eyes that the owner chose; false: none. It is called twice a second. nil: the usual colour.
	Color func() (face.Color, bool)
	Sound Sound
	// Display shows the pictures that look gives on the robot's own display, until ctx ends. An error: it begins again a while later. nil: it has none.
	Display Display
}

// Display is a display of the robot's own.
type Display func(ctx context.Context, look func(give func(*face.Picture) error) error) error

// displayRate is how many pictures a second such a display is given (VEC-DSP-01).
const displayRate = 30

// noticesEvery is how often notices, the colour and the volume are looked for.
const noticesEvery = 500 * time.Millisecond

// resources are the resources of the robot in a folder, if it has any.
func resources(root *os.Root) fs.FS {
	dir, err := fs.Sub(root.FS(), robotfs.Resources)
	if err != nil {
		panic(err) // the path is a constant
	}
	return dir
}

// Serve runs the character of the robot in a folder, with Kennel's own animations, until ctx ends.
func Serve(ctx context.Context, log *slog.Logger, root *os.Root, own Own) error {
	library, err := repertoire.Library()
	if err != nil {
		return err
	}
	moods, err := repertoire.AllMoods()
	if err != nil {
		return err
	}
	link := corelink.NewClient(root.Name(), corelink.WithHello(corelink.Hello{Program: mindlink.Program, Version: version.String(), PID: uint32(os.Getpid())}))
	core := coreclient.New(link)
	feels, problems := mood.Load(resources(root))
	for _, p := range problems {
		log.Warn("mood settings: a file or an event name is invalid and ignored", logging.Err, p)
	}
	m, err := New(Config{Mood: feels, Core: core, Program: mindlink.Program, Library: library, Moods: moods, Log: log, Now: monoclock.Now, Seed: own.Seed,
		Motions: own.Motions(root, link, core), Sound: own.Sound, Sprites: repertoire.Sprites(sprite.Files(resources(root)))})
	if err != nil {
		return err
	}
	hear := func(msg corelink.Message) {
		core.Handle(msg)
		m.Hear(msg)
	}
	services := []runner.Service{
		{Name: "corelink", Run: func(ctx context.Context) error { return link.Run(ctx, hear) }},
		{Name: "mind", Run: m.Run, Fatal: true},
		{Name: "notices", Run: func(ctx context.Context) error { return m.show(ctx, own) }},
		{Name: "mindlink", Run: func(ctx context.Context) error { return mindlink.Serve(ctx, root, m, m) }},
	}
	if own.Display != nil {
		services = append(services, runner.Service{Name: "display", Run: func(ctx context.Context) error {
			return own.Display(ctx, func(give func(*face.Picture) error) error {
				return m.watch(ctx, displayRate, func(f mindlink.Frame) error { return give(f.Picture) })
			})
		}})
	}
	return runner.Run(ctx, log, runner.Config{}, services...)
}

// show looks for notices, the colour of the eyes and the volume until ctx ends.
func (m *Mind) show(ctx context.Context, own Own) error {
	tick := time.NewTicker(noticesEvery)
	defer tick.Stop()
	chosen := face.Teal
	var shown screen.Screen
	for {
		m.audio.setVolume()
		var page screen.Screen
		for _, n := range own.Notices {
			if page = n(); page != nil {
				break
			}
		}
		if page != shown {
			shown = page
			if err := m.in(ctx, func(now time.Duration) { m.screen.notice = shownPage{page, now} }); err != nil {
				return nil // it ends
			}
		}
		if own.Color != nil {
			c, ok := own.Color()
			if !ok {
				c = face.Teal
			}
			if c != chosen {
				chosen = c
				if err := m.in(ctx, func(time.Duration) { m.screen.chosen, m.screen.given = c, nil }); err != nil {
					return nil // it ends
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
