package animkit

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/anim/stage"
	"kennel/edge/face"
	"kennel/infra/atomicfile"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func composeCommand() *cobra.Command {
	var look eyes
	var resources, out string
	var takes time.Duration
	cmd := &cobra.Command{
		Use:   "compose LAYOUT MAP",
		Short: "Draw a display layout, filled from an image map, as an animated GIF",
		Long: `Draw a layout of the display, whose boxes an image map fills with sprites, as a robot's display shows it 30 times a second. LAYOUT and MAP are triggers of
assets/cladToFileMaps/CompositeImageLayoutMap.json and CompositeImageMapMap.json below -resources. The sprites are the robot's, and those that come with Kennel.`,
		Example: `  robotkit anim compose WeatherLayout WeatherRain -resources ./resources
  robotkit anim compose TimerLayout TimerDigits -resources ./resources -for 5s -o timer.gif`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := look.check(); err != nil {
				return err
			}
			const each = time.Second / 30
			if resources == "" || takes < each || takes > face.MaxMovie*each {
				return cli.Usage("-resources %.60q, -for %v: want a folder, and %v to %v", resources, takes, each, face.MaxMovie*each)
			}
			c, err := stage.Open(os.DirFS(resources), args[0], args[1], sprites(resources).Get)
			if err != nil {
				return errs.New(errs.Invalid, "%w", err)
			}
			var m face.Movie
			for i := range takes * 30 / time.Second {
				picture := face.Picture{}
				c.Draw(&picture, i*time.Second/30, look.color())
				if err := m.Add(&picture); err != nil {
					return err
				}
			}
			var b bytes.Buffer
			if err := m.WriteGIF(&b, each, look.zoom); err != nil {
				return err
			}
			to := cmp.Or(out, args[1]+".gif")
			if err := atomicfile.WriteFile(to, b.Bytes(), 0o644); err != nil {
				return err
			}
			return cli.Print(cmd, map[string]any{"file": to, "layout": args[0], "map": args[1], "bytes": b.Len()}, func(t *cli.Table) {
				t.Text(fmt.Sprintf("%s: %s with %s, %d bytes", to, args[0], args[1], b.Len()))
			})
		},
	}
	look.add(cmd)
	cli.AddOutputFile(cmd, &out, "write the picture to")
	addResources(cmd, &resources)
	cmd.Flags().DurationVar(&takes, "for", time.Second, "how long it is shown, to 90s")
	return cmd
}
