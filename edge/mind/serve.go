package mind

import (
	"context"
	"log/slog"
	"os"

	"kennel/edge/anim/repertoire"
	"kennel/edge/body/monoclock"
	"kennel/edge/coreclient"
	"kennel/edge/corelink"
	"kennel/edge/mind/mindlink"
	"kennel/infra/cli/version"
	"kennel/infra/runner"
)

// Program is the name under which robotd knows the character.
const Program = "mindd"

// Motions makes a Config.Motion for the robot at the other end of a connection.
type Motions func(*corelink.Client, *coreclient.Client) func(ctx context.Context, name string, tell func(string)) error

// Serve runs the character of the robot in a folder, with Kennel's own animations, until ctx ends.
func Serve(ctx context.Context, log *slog.Logger, root *os.Root, seed uint64, motions Motions) error {
	library, err := repertoire.Library()
	if err != nil {
		return err
	}
	moods, err := repertoire.AllMoods()
	if err != nil {
		return err
	}
	link := corelink.NewClient(root.Name(), corelink.WithHello(corelink.Hello{Program: Program, Version: version.String(), PID: uint32(os.Getpid())}))
	core := coreclient.New(link)
	m := New(Config{Core: core, Program: Program, Library: library, Moods: moods, Log: log, Now: monoclock.Now, Seed: seed, Motion: motions(link, core)})
	hear := func(msg corelink.Message) {
		core.Handle(msg)
		m.Hear(msg)
	}
	return runner.Run(ctx, log, runner.Config{},
		runner.Service{Name: "corelink", Run: func(ctx context.Context) error { return link.Run(ctx, hear) }},
		runner.Service{Name: "mind", Run: m.Run, Fatal: true},
		runner.Service{Name: "mindlink", Run: func(ctx context.Context) error { return mindlink.Serve(ctx, root, m) }})
}
