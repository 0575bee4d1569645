// Package pleokit has the commands of robotkit that build applications for Pleo.
package pleokit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kennel/edge/app/kitapp/pleorun"
	"kennel/edge/body/pleo/format"
	"kennel/edge/body/pleo/kit"
	"kennel/edge/body/pleo/lifeos"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// Pleo returns the command for Pleo's applications.
func Pleo() *cobra.Command {
	cmd := &cobra.Command{
		Use: "pleo", Short: "Build applications for Pleo from sounds, motions, commands and scripts, and run them",
		Example: "  robotkit pleo init demo\n  robotkit pleo build demo\n  robotkit pleo inspect demo/build/demo.urf\n  robotkit pleo unpack demo/build/demo.urf -to parts\n  robotkit pleo run demo/build -touch head@2s",
	}
	cmd.AddCommand(initCommand(), buildCommand(), inspectCommand(), unpackCommand(), convertCommand(), releaseCommand())
	cmd.AddCommand(pleorun.Command(), pleorun.MonitorCommand(), pleorun.DebugCommand())
	return cmd
}

// failed gives an error of the kit its kind.
func failed(err error) error {
	var known *kit.Error
	switch {
	case errors.As(err, &known):
		return errs.New(errs.Invalid, "%s", strings.Join(known.Problems, "\n"))
	case errors.Is(err, fs.ErrNotExist):
		return errs.New(errs.NotFound, "%w", err)
	case errors.Is(err, fs.ErrExist):
		return errs.New(errs.Conflict, "%w", err)
	}
	return err
}

// made is the output of init and unpack.
type made struct {
	Folder string   `json:"folder"`
	Files  []string `json:"files"`
}

func (m made) print(cmd *cobra.Command) error {
	slices.Sort(m.Files)
	return cli.PrintLine(cmd, m, func() string { return fmt.Sprintf("%s: %s", m.Folder, cli.Count(len(m.Files), "file")) })
}

func initCommand() *cobra.Command {
	var whole bool
	var profile string
	cmd := &cobra.Command{
		Use: "init FOLDER", Short: "Begin a project",
		Long: `Write a new project into FOLDER, which must not be there yet: Pleo beeps when its head is touched, and bows now and then. With -kit, write the whole development
kit instead: include files, media and the example that uses them. With -profile 1.0 the project is for Pleos with firmware 1.0.`,
		Example: "  robotkit pleo init demo\n  robotkit pleo init old -profile 1.0\n  robotkit pleo init pdk -kit",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			begin := kit.Init
			if whole {
				begin = kit.InitKit
			}
			p, err := lifeos.ParseProfile(profile)
			if err != nil {
				return cli.Usage("-%w", err)
			}
			files, err := begin(args[0], p)
			if err != nil {
				return failed(err)
			}
			return made{args[0], files}.print(cmd)
		},
	}
	cmd.Flags().StringVar(&profile, "profile", lifeos.Profile11.String(), "generation of the firmware, `1.1 or 1.0`")
	cmd.Flags().BoolVar(&whole, "kit", false, "write the include files, media and examples of the kit")
	return cmd
}

// phases are the words that can follow the project, as the original tool has them.
var phases = map[string]kit.Options{"build": {}, "rebuild": {Clean: true}, "clean": {Clean: true, Only: true}}

func buildCommand() *cobra.Command {
	var rebuild, quiet, debug bool
	var profile string
	var defines []string
	cmd := &cobra.Command{
		Use: "build PROJECT [build|rebuild|clean]", Short: "Build an application",
		Aliases: []string{"ugobe_project_tool", "ugobe_project_tool.exe", "ugobe_project_tool.py", "ugobe_build_tool", "ugobe_build_tool.exe", "ugobe_build_tool.py"},
		Long: `Build the application of PROJECT, a project file (UPF) or a folder that has one. WAV files become sounds, tables (CSV) motions and commands, and Pawn scripts are compiled; the
result is build/NAME.urf in the folder of the project, for the top of Pleo's card. Resources that are finished (USF, UMF, UCF, AMX) are packed as they are.

A project is for Pleos with firmware 1.1, or with 1.0 if the command of its compiler has PLEO_API=100; -profile has the last word. Scripts for 1.0 cannot use packets
of the head (SENSOR_PACKET), and are AMX files of version 8 or 9 instead of 10.

The ids of resources are kept in the folder include; rebuild and clean give new ones. The log, in the words of the original tool, goes to standard error. A mistake
is told with file, line and column; then no file is written and the exit code is not 0. Warnings do not stop a build.`,
		Example: "  robotkit pleo build demo\n  robotkit pleo build demo/demo.upf rebuild\n  robotkit pleo build demo -profile 1.0\n  robotkit pleo build demo -D MEDIA=../media -quiet -o json",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			word := "build"
			if len(args) > 1 {
				word = args[1]
			}
			o, ok := phases[word]
			if !ok {
				return cli.Usage("%.40q: want build, rebuild or clean", word)
			}
			o.Clean, o.Debug = o.Clean || rebuild, debug
			o.Getenv, o.Defines = cli.Getenv(cmd.Context()), map[string]string{}
			if profile != "" {
				p, err := lifeos.ParseProfile(profile)
				if err != nil {
					return cli.Usage("-%w", err)
				}
				o.Profile = &p
			}
			for _, d := range defines {
				name, value, ok := strings.Cut(d, "=")
				if !ok || name == "" {
					return cli.Usage("-D %.60q: want NAME=VALUE", d)
				}
				o.Defines[name] = value
			}
			if !quiet {
				o.Log = cmd.ErrOrStderr()
			}
			return build(cmd, args[0], o)
		},
	}
	cmd.Flags().StringVar(&profile, "profile", "", "generation of the firmware, `1.1 or 1.0` (default: as the project says)")
	cmd.Flags().BoolVar(&rebuild, "rebuild", false, "remove what earlier builds made before")
	cmd.Flags().BoolVar(&debug, "debug", false, "compile scripts with the symbols that robotkit pleo debug needs")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print no log")
	cmd.Flags().StringArrayVarP(&defines, "define", "D", nil, "value of a macro, `NAME=VALUE`")
	return cmd
}

func build(cmd *cobra.Command, project string, o kit.Options) error {
	r, err := kit.Build(project, o)
	if r != nil {
		for _, w := range r.Warnings {
			if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", w); err != nil {
				return fmt.Errorf("print: %w", err)
			}
		}
	}
	if err != nil {
		return failed(err)
	}
	return cli.PrintLine(cmd, r, func() string {
		if r.File == "" {
			return r.Project + ": clean"
		}
		return fmt.Sprintf("%s: %d bytes, %d free on the card", r.File, r.Bytes, r.Free)
	})
}

// maxFile is how much of a file is read.
const maxFile = 64 << 20

// content reads a file.
func content(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, failed(err)
	}
	defer f.Close() // read only
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = cli.Usage("%s: want a file of at most %d bytes", name, maxFile)
	}
	return b, err
}

func inspectCommand() *cobra.Command {
	return &cobra.Command{
		Use: "inspect FILE", Short: "List the content of a Pleo file",
		Long:    `Show what is in a bundle (URF), sound (USF), motion (UMF), command (UCF) or script (AMX). The sum, sizes and counts are checked; a damaged file is an error.`,
		Example: "  robotkit pleo inspect demo/build/demo.urf\n  robotkit pleo inspect bow.umf -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := content(args[0])
			if err != nil {
				return err
			}
			r, err := kit.Inspect(file)
			if err != nil {
				return errs.New(errs.Invalid, "%s: %w", args[0], err)
			}
			return cli.Print(cmd, r, func(t *cli.Table) {
				t.Row("format", r.Format)
				for _, f := range r.Facts {
					t.Row(f.Name, f.Value)
				}
				if len(r.Resources) > 0 {
					t.Row("")
					t.Row("ID", "KIND", "NAME", "OFFSET", "BYTES", "")
				}
				for _, e := range r.Resources {
					t.Row(fmt.Sprintf("%#x", e.ID), e.Kind, e.Name, e.Offset, e.Bytes, e.About)
				}
			})
		},
	}
}

func unpackCommand() *cobra.Command {
	var to string
	var open bool
	cmd := &cobra.Command{
		Use: "unpack FILE.urf", Short: "Take a bundle apart",
		Long: `Write the resources of a bundle into a new folder, with a project file that builds the same bundle again, ids included, at another time. With -open, sounds become WAV files and motions
tables, which can be changed.`,
		Example: "  robotkit pleo unpack demo.urf\n  robotkit pleo unpack demo.urf -to parts -open",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := content(args[0])
			if err != nil {
				return err
			}
			if to == "" {
				to = strings.TrimSuffix(args[0], filepath.Ext(args[0])) + ".parts"
			}
			files, err := kit.Unpack(args[0], file, to, open)
			if err != nil {
				return failed(err)
			}
			return made{to, files}.print(cmd)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "new `folder` (default FILE.parts)")
	cmd.Flags().BoolVar(&open, "open", false, "write sounds as WAV files and motions as tables")
	return cmd
}

func convertCommand() *cobra.Command {
	var o format.SoundOptions
	var ids string
	cmd := &cobra.Command{
		Use: "convert IN OUT", Short: "Convert one sound, motion or command",
		Aliases: []string{"wav2usf", "csv2umf", "csv2ucf", "wav2usf.py", "csv2umf.py", "csv2ucf.py"},
		Long: `Convert a sound or a motion: a WAV file to USF and back, or a table of angles (CSV) to UMF and back; or the table of a command to UCF; by the ends of the names. A table that
names sounds, motions or properties of a project needs their ids: -ids is the folder include of the project, after a build.`,
		Example: "  robotkit pleo convert growl.wav growl.usf -adpcm -rate 22050\n  robotkit pleo convert bow.umf bow.csv\n  robotkit pleo convert hunt.csv hunt.ucf -ids demo/include",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := content(args[0])
			if err != nil {
				return err
			}
			names := &kit.Names{Cue: func(string) (uint16, bool) { return 0, false }}
			names.Resource = func(format.ResourceKind, string) uint16 { return 0 }
			if ids != "" {
				if names, err = kit.ReadNames(ids); err != nil {
					return failed(err)
				}
			}
			out, err := convert(args[0], args[1], file, o, names)
			if err != nil {
				return err
			}
			if err := os.WriteFile(args[1], out, 0o666); err != nil {
				return fmt.Errorf("write %s: %w", args[1], err)
			}
			return cli.PrintLine(cmd, made{".", args[1:]}, func() string { return fmt.Sprintf("%s: %d bytes", args[1], len(out)) })
		},
	}
	cmd.Flags().StringVar(&ids, "ids", "", "`folder` with the include files of a project, which have its ids")
	cmd.Flags().BoolVar(&o.ADPCM, "adpcm", false, "compress a sound")
	cmd.Flags().IntVar(&o.Rate, "rate", format.DefaultRate, "`samples` a second of a sound")
	return cmd
}

// convert returns a file in the format of the name to.
func convert(from, to string, file []byte, o format.SoundOptions, names *kit.Names) ([]byte, error) {
	name := strings.TrimSuffix(filepath.Base(from), filepath.Ext(from))
	var out []byte
	var err error
	switch ends := strings.ToLower(filepath.Ext(from) + filepath.Ext(to)); ends {
	case ".wav.usf":
		var s *format.Sound
		if s, err = format.Convert(name, file, o); err == nil {
			out, err = s.Append(nil)
		}
	case ".usf.wav":
		var s *format.Sound
		if s, err = format.ReadSound(file); err == nil {
			out = s.WAV()
		}
	case ".csv.umf":
		var c *format.Curves
		var m *format.Motion
		if c, err = format.ReadMotionCSV(file); err == nil {
			m, err = c.Motion(name, names.Cue)
		}
		if err == nil {
			out, err = m.Append(nil)
		}
	case ".csv.ucf":
		var c *format.Command
		if c, err = format.ReadCommandCSV(name, file, names.Names); err == nil {
			out, err = c.Append(nil)
		}
	case ".umf.csv":
		var m *format.Motion
		if m, err = format.ReadMotion(file); err == nil {
			out = m.Curves(func(uint16) string { return "" }).AppendCSV(nil)
		}
	default:
		return nil, cli.Usage("%s to %s: want .wav to .usf, .usf to .wav, .csv to .umf or .ucf, or .umf to .csv", filepath.Ext(from), filepath.Ext(to))
	}
	if err != nil {
		return nil, errs.New(errs.Invalid, "%s: %w", from, err)
	}
	return out, nil
}
