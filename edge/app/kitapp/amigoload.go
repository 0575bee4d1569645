package kitapp

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/body/amigobot/ihex"
	"kennel/edge/body/amigobot/sip"
	"kennel/edge/body/amigobot/soundset"
	"kennel/edge/body/amigobot/sysmode"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// downloaded is the result of download.
type downloaded struct {
	Kind    string  `json:"kind"` // program or sounds
	Bytes   int     `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

func amigoDownloadCommand() *cobra.Command {
	var address string
	var reset bool
	cmd := &cobra.Command{
		Use:   "download FILE.hex",
		Short: "Load a program or sounds into an AmigoBot",
		Long: `Load an Intel HEX file into the FLASH of an AmigoBot in System mode, and verify it. Its addresses tell a program (0 to 0xffff) from sounds
(0x200000 to 0x2fffff). The old program or sounds are erased first; after an interrupted download run the command again.`,
		Example: `  robotkit amigo download newsounds.hex -port tcp:localhost:8102
  robotkit amigo download AmigOS1_3.hex -port tcp:localhost:8102 -reset`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"hex"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			segments, region, err := hexFile(args[0])
			if err != nil {
				return err
			}
			total := 0
			for _, s := range segments {
				total += len(s.Data)
			}
			return withSystem(cmd, address, reset, func(c *sysmode.Client, _ string) error {
				start, shown := time.Now(), -1
				err := c.Load(cmd.Context(), segments, func(written int) {
					if tenth := written * 10 / total; tenth > shown {
						shown = tenth
						fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d %% of %d bytes\n", region.Name, 10*tenth, total)
					}
				})
				if err != nil {
					return err
				}
				out := downloaded{region.Name, total, time.Since(start).Seconds()}
				return cli.PrintLine(cmd, out, func() string {
					return fmt.Sprintf("%s: %d bytes loaded and verified in %.1f s", out.Kind, out.Bytes, out.Seconds)
				})
			})
		},
	}
	systemFlag(cmd, &address, &reset)
	return cmd
}

func hexFile(name string) ([]ihex.Segment, sysmode.Region, error) {
	text, err := readFile(name)
	if err != nil {
		return nil, sysmode.Region{}, err
	}
	segments, err := ihex.Parse(string(text))
	if err != nil {
		return nil, sysmode.Region{}, cli.Usage("%s: %w", name, err)
	}
	region, err := sysmode.Kind(segments)
	if err != nil {
		return nil, sysmode.Region{}, cli.Usage("%s: %w", name, err)
	}
	return segments, region, nil
}

func amigoSoundsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sounds",
		Short: "List, import and export an AmigoBot's sounds",
		Long: `List, import and export the sounds in a sound image, an Intel HEX file that robotkit amigo download loads. Sounds 1 to 49 are the
system's, 50 to 255 the owner's.`,
		Example: `  robotkit amigo sounds list sounds.hex
  robotkit amigo sounds import sounds.hex 50 bark.wav`,
	}
	cmd.AddCommand(soundsListCommand(), soundsImportCommand(), soundsExportCommand())
	return cmd
}

// soundFile returns the sounds in an Intel HEX file.
func soundFile(name string) (*soundset.Set, error) {
	segments, region, err := hexFile(name)
	if err != nil {
		return nil, err
	}
	if region != sysmode.Sounds || len(segments) != 1 || segments[0].Address != region.Base {
		return nil, cli.Usage("%s: want one sound image at %#x", name, sysmode.Sounds.Base)
	}
	set, err := soundset.Parse(segments[0].Data)
	if err != nil {
		return nil, cli.Usage("%s: %w", name, err)
	}
	return set, nil
}

// soundLine is one sound as list prints it.
type soundLine struct {
	Number  int     `json:"number"`
	Name    string  `json:"name"`
	Group   bool    `json:"group"`
	Seconds float64 `json:"seconds"`
}

func describe(number int, s soundset.Sound) soundLine {
	return soundLine{number, s.Name, s.Group(), float64(len(s.Samples)) / soundset.Rate}
}

func printSound(cmd *cobra.Command, number int, s soundset.Sound) error {
	l := describe(number, s)
	return cli.PrintLine(cmd, l, func() string { return fmt.Sprintf("sound %d %q, %.2f s", l.Number, l.Name, l.Seconds) })
}

func soundsListCommand() *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "list FILE.hex | list -port ADDRESS [NUMBER...]",
		Short: "List the sounds in an image or on a robot",
		Long: `List the sounds in an image, or with -port the sounds of a robot. A robot reports one sound per cycle, so all 255 take half a minute;
give numbers to list only these.`,
		Example: `  robotkit amigo sounds list sounds.hex -o json
  robotkit amigo sounds list -port tcp:localhost:8101 1 50 51`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var set [1 + soundset.Count]soundLine
			switch live := cmd.Flags().Changed("port"); {
			case live:
				if err := liveSounds(cmd, address, args, &set); err != nil {
					return err
				}
			case len(args) != 1:
				return cli.Usage("want either FILE.hex or -port ADDRESS")
			default:
				file, err := soundFile(args[0])
				if err != nil {
					return err
				}
				for n, s := range file {
					set[n] = describe(n, s)
				}
			}
			lines := []soundLine{}
			for _, s := range set {
				if s.Name != "" {
					lines = append(lines, s)
				}
			}
			return cli.Print(cmd, lines, func(t *cli.Table) {
				t.Row("NUMBER", "NAME", "SECONDS")
				for _, l := range lines {
					t.Row(l.Number, l.Name, fmt.Sprintf("%.2f", l.Seconds))
				}
			})
		},
	}
	controlFlag(cmd, &address)
	return cmd
}

// A robot is asked for a sound this often, each time with this long for the answer (own default).
const (
	soundTries    = 3
	soundPatience = time.Second
)

// liveSounds asks a robot for the sounds of these numbers, or for all (AMIGO-XP-13).
func liveSounds(cmd *cobra.Command, address string, args []string, set *[1 + soundset.Count]soundLine) error {
	var numbers []int
	for _, arg := range args {
		n, err := soundNumber(arg)
		if err != nil {
			return err
		}
		numbers = append(numbers, n)
	}
	for n := 1; len(args) == 0 && n <= soundset.Count; n++ {
		numbers = append(numbers, n)
	}
	return withClient(cmd, address, func(c *client) error {
		st := c.State()
		for _, n := range numbers {
			answered := false
			for try := 0; try < soundTries && !answered; try++ {
				asked := c.now
				if err := c.Command(sip.Int(sip.GetPlaylist, n)); err != nil {
					return err
				}
				for c.now-asked < soundPatience && !answered {
					if err := c.run(); err != nil {
						return err
					}
					answered = st.PlaylistAt > asked && int(st.Playlist.Sound) == n
				}
			}
			if !answered {
				return errs.New(errs.Unavailable, "sound %d: no answer from the robot", n)
			}
			l := &st.Playlist
			set[n] = soundLine{n, l.Name, soundset.Sound{Name: l.Name}.Group(), float64(l.Length) / soundset.Rate}
		}
		return nil
	})
}

func soundNumber(arg string) (int, error) {
	n, err := strconv.Atoi(arg)
	if err != nil || n < 1 || n > soundset.Count {
		return 0, cli.Usage("sound %.20q: want a number from 1 to %d", arg, soundset.Count)
	}
	return n, nil
}

func soundsImportCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "import FILE.hex NUMBER SOUND.wav",
		Short: "Put a WAV file into an image",
		Long: `Put a WAV file (PCM of 8 or 16 bits) into an image as sound NUMBER. It is mixed to one channel and resampled to 9000 Hz
and 8 bits. A new image starts with the system's sounds.`,
		Example: `  robotkit amigo sounds import sounds.hex 50 bark.wav
  robotkit amigo sounds import sounds.hex 1 hello.wav -name reset`,
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := soundNumber(args[1])
			if err != nil {
				return err
			}
			set, err := soundFile(args[0])
			if errs.KindOf(err) == errs.NotFound {
				set, err = soundset.Default(), nil
			}
			if err != nil {
				return err
			}
			file, err := readFile(args[2])
			if err != nil {
				return err
			}
			samples, err := soundset.FromWAV(file)
			if err != nil {
				return cli.Usage("%s: %w", args[2], err)
			}
			if name == "" {
				name = strings.TrimSuffix(filepath.Base(args[2]), filepath.Ext(args[2]))
				name = name[:min(len(name), soundset.MaxName)]
			}
			if err := set.Put(n, soundset.Sound{Name: name, Samples: samples}); err != nil {
				return cli.Usage("%w", err)
			}
			image, err := set.Image()
			if err != nil {
				return cli.Usage("%w", err)
			}
			if err := writeFile(args[0], []byte(ihex.Format([]ihex.Segment{{Address: sysmode.Sounds.Base, Data: image}}))); err != nil {
				return err
			}
			return printSound(cmd, n, set[n])
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "`name` of the sound, up to 16 characters (default: the file's name)")
	return cmd
}

func soundsExportCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "export FILE.hex NUMBER SOUND.wav",
		Short:   "Write a sound of an image to a WAV file",
		Example: "  robotkit amigo sounds export sounds.hex 50 bark.wav",
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := soundNumber(args[1])
			if err != nil {
				return err
			}
			set, err := soundFile(args[0])
			if err != nil {
				return err
			}
			if len(set[n].Samples) == 0 {
				return errs.New(errs.NotFound, "%s has no sound %d", args[0], n)
			}
			if err := writeFile(args[2], set[n].WAV()); err != nil {
				return err
			}
			return printSound(cmd, n, set[n])
		},
	}
}
