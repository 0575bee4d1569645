// Package cubekit has the commands of robotkit for the light cube.
package cubekit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/anim/cubelights"
	"kennel/edge/cube"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// Cube returns the command for the light cube.
func Cube() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cube",
		Short: "List, check and play light animations of the cube",
		Example: `  robotkit cube list
  robotkit cube check blink.json
  robotkit cube lights celebrate -root ./r1`,
	}
	cmd.AddCommand(listCommand(), checkCommand(), lightsCommand())
	return cmd
}

// listed is one animation as list prints it.
type listed struct {
	Name     string   `json:"name"`
	Parts    int      `json:"parts"`
	MS       int64    `json:"ms"` // 0: until it is stopped
	Triggers []string `json:"triggers"`
}

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the light animations that come with Kennel",
		Long:    "List the light animations that come with Kennel: their parts, how many milliseconds they take, 0 for those that play until they are stopped, and their triggers.",
		Example: "  robotkit cube list\n  robotkit cube list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := cubelights.Kennel()
			if err != nil {
				return err
			}
			rows := []listed{}
			for _, name := range slices.Sorted(maps.Keys(l.Animations)) {
				a := l.Animations[name]
				row := listed{Name: name, Parts: len(a), MS: a.Takes().Milliseconds()}
				for _, trigger := range slices.Sorted(maps.Keys(l.Triggers)) {
					if l.Triggers[trigger] == name {
						row.Triggers = append(row.Triggers, trigger)
					}
				}
				rows = append(rows, row)
			}
			return cli.Print(cmd, rows, func(t *cli.Table) {
				t.Row("ANIMATION", "PARTS", "MS", "TRIGGERS")
				for _, r := range rows {
					t.Row(r.Name, r.Parts, r.MS, strings.Join(r.Triggers, " "))
				}
			})
		},
	}
}

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "check FILE...",
		Short:   "Check light animation files",
		Long:    "Check files of light animations: names of fields, colours, times, and whether a cube can count them. Exits 0 if every file is good, else 1.",
		Example: "  robotkit cube check blink.json\n  robotkit cube check lights/*.json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range args {
				if _, err := read(name); err != nil {
					return err
				}
			}
			return cli.Print(cmd, map[string]int{"files": len(args)}, func(t *cli.Table) { t.Text(cli.Count(len(args), "file") + ", 0 problems") })
		},
	}
}

// read reads a file of lights.
func read(name string) (cubelights.Animation, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	b, err := io.ReadAll(io.LimitReader(f, cubelights.MaxFile+1))
	if err != nil {
		return nil, err
	}
	a, err := cubelights.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

// find returns the animation of a name, a trigger or a file.
func find(name string) (cubelights.Animation, error) {
	l, err := cubelights.Kennel()
	if err != nil {
		return nil, err
	}
	for _, n := range []string{name, l.Triggers[name]} {
		if a := l.Animations[n]; a != nil {
			return a, nil
		}
	}
	a, err := read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errs.New(errs.NotFound, "%w, and no animation or trigger that comes with Kennel has this name", err)
	}
	return a, err
}

func lightsCommand() *cobra.Command {
	var root string
	var lasts, scan time.Duration
	cmd := &cobra.Command{
		Use:   "lights ANIMATION|TRIGGER|FILE",
		Short: "Play a light animation on the cube of a robot",
		Long: `Play a light animation on the cube that the robot in -root prefers, or on the nearest one, which becomes the preferred one. An animation without an end plays for
the time of -for, or until the command is interrupted; then the lights are dark. A cube that is connected with the robot's programs is not heard: disconnect it first.`,
		Example: "  robotkit cube lights celebrate -root ./r1\n  robotkit cube lights CubeCycle -root ./r1 -for 10s\n  robotkit cube lights blink.json -root ./r1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := find(args[0])
			if err != nil {
				return err
			}
			dir, err := os.OpenRoot(root)
			if err != nil {
				return errs.New(errs.Invalid, "-root: want the robot's folder: %w", err)
			}
			defer dir.Close() // nothing buffered
			d := cube.New(cube.Config{Radio: cube.Socket(filepath.Join(root, cube.SocketPath)), Root: dir, Log: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)), Tell: func(cube.Event) {},
				Scan: scan})
			s, err := d.Connect(cmd.Context())
			if err != nil {
				return errs.New(errs.Unavailable, "%w: -root must be the folder of a robot with a cube nearby", err)
			}
			defer d.Disconnect() //nolint:errcheck // the lights are dark already
			fmt.Fprintf(cmd.ErrOrStderr(), "playing on %s\n", s.Address)
			ctx, cancel := cmd.Context(), context.CancelFunc(func() {})
			if lasts > 0 {
				ctx, cancel = context.WithTimeout(ctx, lasts)
			}
			defer cancel()
			if err := a.Play(ctx, d.Show); err != nil {
				return err
			}
			return cli.Print(cmd, map[string]any{"cube": s.Address, "animation": args[0]}, func(t *cli.Table) { t.Text(args[0] + " played on " + s.Address) })
		},
	}
	cmd.Flags().StringVar(&root, "root", ".", "the robot's root folder `DIR`")
	cmd.Flags().DurationVar(&scan, "scan", cube.DefaultScan, "how long it listens for cubes")
	cmd.Flags().DurationVar(&lasts, "for", 0, "longest time that it plays; 0: as long as the animation says")
	return cmd
}
