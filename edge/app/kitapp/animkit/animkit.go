// Package animkit has the commands of robotkit for faces and animations.
package animkit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/anim/clip"
	"kennel/edge/anim/flatbuf"
	"kennel/edge/anim/repertoire"
	"kennel/edge/anim/stage"
	"kennel/edge/face"
	"kennel/edge/face/sprite"
	"kennel/infra/atomicfile"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// Anim returns the command for clips.
func Anim() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "anim",
		Short: "List, check, convert, preview and play animation clips",
		Long: `List, check, convert, preview and play animation clips. FILE is a file of clips in text, JSON or binary form; "-" is standard input. The clips that come with
Kennel need no file.`,
		Example: `  robotkit anim list
  robotkit anim check greet.clip
  robotkit anim preview anim_mood_happy_01 happy.gif
  robotkit anim dump anim_mood_happy_01 > happy.clip
  robotkit anim build happy.clip happy.bin
  robotkit anim play -root ./r1 happy`,
	}
	cmd.AddCommand(listCommand(), checkCommand(), dumpCommand(), buildCommand(), previewCommand(), composeCommand(), manifestCommand(), playCommand())
	for _, c := range cmd.Commands() {
		c.ValidArgsFunction = complete
	}
	return cmd
}

// complete completes the names of Kennel's clips, and files.
func complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	l, err := repertoire.Library()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return slices.Sorted(maps.Keys(l.Clips)), cobra.ShellCompDirectiveDefault
}

// parse reads clips of any form: binary files have bytes that texts have not, and JSON begins with a brace.
func parse(b []byte) ([]clip.Clip, error) {
	switch first := bytes.TrimLeft(b, " \t\r\n"); {
	case bytes.IndexByte(b, 0) >= 0:
		return clip.ParseBinary(b)
	case bytes.HasPrefix(first, []byte("{")):
		return clip.ParseJSON(b)
	}
	return clip.ParseText(b)
}

// load returns the clips of a file, or the one of Kennel's with that name.
func load(cmd *cobra.Command, name string) ([]clip.Clip, error) {
	l, err := repertoire.Library()
	if err != nil {
		return nil, err
	}
	if c := l.Clips[name]; c != nil {
		return []clip.Clip{*c}, nil
	}
	in := cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errs.New(errs.NotFound, "%w; Kennel has no clip of this name either", err)
		} else if err != nil {
			return nil, err
		}
		defer f.Close() // read only
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, flatbuf.MaxSize+1))
	if err != nil {
		return nil, err
	}
	clips, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return clips, nil
}

// loadAll returns the clips of all files, or Kennel's own if none is named.
func loadAll(cmd *cobra.Command, names []string) (clips []clip.Clip, err error) {
	if len(names) == 0 {
		l, err := repertoire.Library()
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(l.Clips)) {
			clips = append(clips, *l.Clips[name])
		}
		return clips, nil
	}
	for _, name := range names {
		more, err := load(cmd, name)
		if err != nil {
			return nil, err
		}
		clips = append(clips, more...)
	}
	return clips, nil
}

// listed is one clip as list prints it.
type listed struct {
	Name     string   `json:"name"`
	MS       int64    `json:"ms"`
	Parts    string   `json:"parts"`
	Triggers []string `json:"triggers"`
}

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list [FILE...]",
		Short: "List clips: duration, what they use, and which triggers draw them",
		Long:  `List the clips of files, or those that come with Kennel: how many milliseconds each takes, what it uses, and which triggers may draw it.`,
		Example: `  robotkit anim list
  robotkit anim list greet.bin -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			clips, err := loadAll(cmd, args)
			if err != nil {
				return err
			}
			l, err := repertoire.Library()
			if err != nil {
				return err
			}
			rows := []listed{}
			for i := range clips {
				c := &clips[i]
				row := listed{c.Name, c.Span().Milliseconds(), c.Parts().String(), []string{}}
				for _, trigger := range slices.Sorted(maps.Keys(l.Triggers)) {
					if slices.ContainsFunc(l.Groups[l.Triggers[trigger]], func(x clip.Choice) bool { return x.Name == c.Name }) {
						row.Triggers = append(row.Triggers, trigger)
					}
				}
				rows = append(rows, row)
			}
			return cli.Print(cmd, rows, func(t *cli.Table) {
				t.Row("CLIP", "MS", "PARTS", "TRIGGERS")
				for _, r := range rows {
					t.Row(r.Name, r.MS, r.Parts, strings.Join(r.Triggers, " "))
				}
			})
		},
	}
}

func checkCommand() *cobra.Command {
	var resources string
	cmd := &cobra.Command{
		Use:   "check [FILE...]",
		Short: "Check clips: times, angles, heights, speeds and values of the face",
		Long: `Check the clips of files, or those that come with Kennel, against what a Vector can do. Prints clip, track, keyframe and field of each number that is refused,
with what was expected and found, and warns of events that no behaviour expects and of sprites that neither Kennel nor -resources has, or that do not fit their box.
Exits 0 if every clip is good, else 1.`,
		Example: `  robotkit anim check greet.clip
  robotkit anim check *.bin -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			clips, err := loadAll(cmd, args)
			if err != nil {
				return err
			}
			problems, set := []clip.Problem{}, sprites(resources)
			for i := range clips {
				_, missing := stage.New(&clips[i], clips[i].Span(), set.Get)
				warn(cmd, missing)
				problems = append(problems, clips[i].Check(clip.Vector)...)
				for _, p := range clips[i].Unexpected() {
					fmt.Fprintf(cmd.ErrOrStderr(), "robotkit: warning: %s\n", cli.Clean(fmt.Sprintf("%s: %s[%d].%s: expected %s, found %s", p.Clip, p.Track, p.Keyframe, p.Field, p.Expected, p.Found)))
				}
			}
			err = cli.Print(cmd, problems, func(t *cli.Table) {
				for _, p := range problems {
					t.Text(p.Error())
				}
				t.Text(fmt.Sprintf("%s, %s", cli.Count(len(clips), "clip"), cli.Count(len(problems), "problem")))
			})
			if err == nil && len(problems) > 0 {
				err = fmt.Errorf("%w: %s", clip.ErrClip, cli.Count(len(problems), "problem"))
			}
			return err
		},
	}
	addResources(cmd, &resources)
	return cmd
}

func dumpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "dump CLIP|FILE",
		Short: "Print clips as text, or as JSON",
		Long:  `Print a clip that comes with Kennel, or the clips of a file, in the text form that people edit, or with -o json in the JSON form. Sounds are printed as numbers.`,
		Example: `  robotkit anim dump anim_mood_happy_01
  robotkit anim dump greet.bin -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			clips, err := load(cmd, args[0])
			if err != nil {
				return err
			}
			write := clip.AppendText
			if cli.JSON(cmd) {
				write = clip.AppendJSON
			}
			b, err := write(nil, clips)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(b)
			return err
		},
	}
}

// writers are the forms by the ending of a file's name.
var writers = map[string]func([]byte, []clip.Clip) ([]byte, error){".bin": clip.AppendBinary, ".json": clip.AppendJSON, ".clip": clip.AppendText}

func buildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build FILE... OUT",
		Short: "Write clips in another form",
		Long: `Write the clips of files to OUT, whose ending says the form: .bin is the binary form, .json JSON and .clip the text that people edit. Clips that check
refuses are not written.`,
		Example: `  robotkit anim build greet.clip greet.bin
  robotkit anim build greet.bin greet.json`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := args[len(args)-1]
			write, ok := writers[filepath.Ext(out)]
			if !ok {
				return cli.Usage("OUT %.60q: want a name that ends in .bin, .json or .clip", out)
			}
			clips, err := loadAll(cmd, args[:len(args)-1])
			if err != nil {
				return err
			}
			for i := range clips {
				for _, p := range clips[i].Check(clip.Vector) {
					return p
				}
			}
			b, err := write(nil, clips)
			if err != nil {
				return err
			}
			if err := atomicfile.WriteFile(out, b, 0o644); err != nil {
				return err
			}
			return cli.Print(cmd, map[string]any{"file": out, "bytes": len(b), "clips": len(clips)}, func(t *cli.Table) {
				t.Text(fmt.Sprintf("%s: %s, %d bytes", out, cli.Count(len(clips), "clip"), len(b)))
			})
		},
	}
}

func manifestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "manifest [FILE...]",
		Short: "Print the manifest of clips: names and durations",
		Long:  `Print the manifest of the clips of files, or of those that come with Kennel, as robots read it: a JSON array of name and length_ms.`,
		Example: `  robotkit anim manifest > anim_manifest.json
  robotkit anim manifest greet.bin`,
		RunE: func(cmd *cobra.Command, args []string) error {
			clips, err := loadAll(cmd, args)
			if err == nil {
				_, err = cmd.OutOrStdout().Write(clip.AppendManifest(nil, clips))
			}
			return err
		},
	}
}

// eyes are the flags of commands that draw.
type eyes struct {
	hue, saturation float32
	zoom            int
}

func (e *eyes) add(cmd *cobra.Command) {
	cmd.Flags().Float32Var(&e.hue, "hue", face.Teal.Hue, "hue of the eyes, 0 to 1")
	cmd.Flags().Float32Var(&e.saturation, "saturation", face.Teal.Saturation, "saturation of the eyes, 0 to 1")
	cmd.Flags().IntVar(&e.zoom, "zoom", 2, "size of a pixel, 1 to 8")
}

func (e *eyes) check() error {
	if !(e.hue >= 0 && e.hue <= 1 && e.saturation >= 0 && e.saturation <= 1) || e.zoom < 1 || e.zoom > 8 {
		return cli.Usage("-hue %v, -saturation %v, -zoom %d: want 0 to 1, 0 to 1 and 1 to 8", e.hue, e.saturation, e.zoom)
	}
	return nil
}

func (e *eyes) color() face.Color { return face.Color{Hue: e.hue, Saturation: e.saturation} }

func addResources(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "resources", "", "folder `DIR` of a robot's resources")
}

// warn says which sprites are left out.
func warn(cmd *cobra.Command, problems []error) {
	for _, p := range problems {
		fmt.Fprintf(cmd.ErrOrStderr(), "robotkit: warning: %s\n", cli.Clean(p.Error()))
	}
}

// sprites returns the sprites of a folder of resources, if one is named, and Kennel's.
func sprites(resources string) *sprite.Set {
	if resources == "" {
		return repertoire.Sprites()
	}
	return repertoire.Sprites(sprite.Files(os.DirFS(resources)))
}

func previewCommand() *cobra.Command {
	var look eyes
	var name, out, resources string
	var seed uint64
	cmd := &cobra.Command{
		Use:   "preview CLIP|FILE [OUT.gif]",
		Short: "Draw the face of a clip as an animated GIF",
		Long: `Draw the face of a clip with its sprites, as a robot's display shows it 30 times a second, into a GIF file: the clip, and a second of the face after it. Of a file
with several clips the first one, or the one that -clip names. OUT.gif is CLIP.gif in this folder unless it is given, here or by -o.

Sprites are those that come with Kennel, and with -resources those of a robot: assets/sprites/spriteSequences has a folder of PNG files for each sequence, numbered
from 00. A sprite that is not found, or has another size than its box, is left out with a warning.`,
		Example: `  robotkit anim preview anim_mood_happy_01 -o happy.gif
  robotkit anim preview anim_weather_snow_01
  robotkit anim preview greet.clip hello.gif -clip anim_greeting_hello_01 -hue 0.57`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := look.check(); err != nil {
				return err
			}
			if len(args) == 2 && out != "" {
				return cli.Usage("%s and -o %s: want one file to write", args[1], out)
			}
			clips, err := load(cmd, args[0])
			if err != nil {
				return err
			}
			i := slices.IndexFunc(clips, func(c clip.Clip) bool { return name == "" || c.Name == name })
			if i < 0 {
				return errs.New(errs.NotFound, "%s: no clip %.60q", args[0], name)
			}
			scene, problems := stage.New(&clips[i], clips[i].Span(), sprites(resources).Get)
			warn(cmd, problems)
			var b bytes.Buffer
			n, err := movie(&b, &clips[i], look, seed, scene)
			if err != nil {
				return err
			}
			to := cmp.Or(out, filepath.Base(clips[i].Name)+".gif")
			if len(args) == 2 {
				to = args[1]
			}
			if err := atomicfile.WriteFile(to, b.Bytes(), 0o644); err != nil {
				return err
			}
			return cli.Print(cmd, map[string]any{"file": to, "clip": clips[i].Name, "pictures": n, "bytes": b.Len()}, func(t *cli.Table) {
				t.Text(fmt.Sprintf("%s: %s, %s, %d bytes", to, clips[i].Name, cli.Count(n, "picture"), b.Len()))
			})
		},
	}
	look.add(cmd)
	cli.AddOutputFile(cmd, &out, "write the picture to")
	cmd.Flags().StringVar(&name, "clip", "", "which clip of a file")
	addResources(cmd, &resources)
	cmd.Flags().Uint64Var(&seed, "seed", 1, "what varies is drawn from it")
	return cmd
}

// movie plays a clip, draws its face and writes the pictures as a GIF.
func movie(w io.Writer, c *clip.Clip, look eyes, seed uint64, scene *stage.Scene) (n int, err error) {
	const each, after = time.Second / 30, time.Second
	p, d := clip.NewPlayer(clip.Vector, &clip.Locks{}, seed), face.NewDrawer(face.Standard)
	if err := p.Start(0, c, clip.Options{}); err != nil {
		return 0, err
	}
	if c.Span()+after > face.MaxMovie*each {
		return 0, errs.New(errs.Invalid, "%s takes %v: want at most %v", c.Name, c.Span(), face.MaxMovie*each-after)
	}
	var m face.Movie
	var f clip.Frame
	var picture face.Picture
	for now := time.Duration(0); now < c.Span()+after; now += each {
		for _, x := range p.Step(now, &f, nil) {
			if x.Event != nil {
				p.Signal(now) // no behaviour waits for it
			}
		}
		d.Draw(&picture, &f.Face, look.color())
		if f.Clip != nil {
			scene.Draw(&picture, f.At, look.color())
		}
		if err := m.Add(&picture); err != nil {
			return n, err
		}
		n++
	}
	return n, m.WriteGIF(w, each, look.zoom)
}

// Face returns the command that draws a face.
func Face() *cobra.Command {
	var look eyes
	cmd := &cobra.Command{
		Use:   "face OUT.png [WORD...]",
		Short: "Draw a face from an expression and values",
		Long: `Draw a face as a robot's display shows it. WORD is an expression (` + strings.Join(face.Expressions(), ", ") + `) or name=number, such as
upper_lid_y=0.3 for both eyes, left.eye_scale_y=0.5 for the left one, or face_angle=5. Later words win.`,
		Example: `  robotkit face happy.png happy
  robotkit face tilted.png curious face_angle=10 -hue 0.57 -zoom 4`,
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return face.Expressions(), cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := look.check(); err != nil {
				return err
			}
			p := face.Neutral
			for _, word := range args[1:] {
				if err := p.Apply(word); err != nil {
					return cli.Usage("%w", err)
				}
			}
			var picture face.Picture
			face.NewDrawer(face.Standard).Draw(&picture, &p, look.color())
			var b bytes.Buffer
			if err := face.WritePNG(&b, &picture, look.zoom); err != nil {
				return err
			}
			if err := atomicfile.WriteFile(args[0], b.Bytes(), 0o644); err != nil {
				return err
			}
			return cli.Print(cmd, map[string]any{"file": args[0], "words": p.Words(), "bytes": b.Len()}, func(t *cli.Table) {
				t.Text(fmt.Sprintf("%s: %s", args[0], strings.Join(append([]string{"neutral"}, p.Words()...), " ")))
			})
		},
	}
	look.add(cmd)
	return cmd
}
