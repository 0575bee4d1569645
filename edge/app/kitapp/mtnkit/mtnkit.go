// Package mtnkit has the commands of robotkit for the motion files of AIBO robots.
package mtnkit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/motions"
	"kennel/edge/body/aibo/mtn"
	"kennel/infra/atomicfile"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// MTN returns the command for motion files.
func MTN() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mtn",
		Short: "Inspect, check, write, edit, draw and play AIBO motion files",
		Long: `Inspect, check, write, edit, draw and play the motion files of AIBO robots. FILE is an MTN file or one of its text forms, as dump prints them; "-" is
standard input, and as OUT or without one standard output. MODEL is ` + modelWords() + `.`,
		Example: `  robotkit mtn info sit.mtn
  robotkit mtn dump sit.mtn -o json > sit.json
  robotkit mtn build sit.json sit.mtn
  robotkit mtn check sit.mtn -strict
  robotkit mtn play sit.mtn -rows > rows.csv
  robotkit mtn retarget sit.mtn sit7.mtn -to ers-7
  robotkit mtn library`,
	}
	cmd.AddCommand(infoCommand(), dumpCommand(), buildCommand(), checkCommand(), playCommand(), diffCommand(),
		mirrorCommand(), reverseCommand(), scaleCommand(), retargetCommand(), limitCommand(), blendCommand(), libraryCommand(), drawCommand(), urdfCommand(), performCommand())
	for _, c := range cmd.Commands() {
		c.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"mtn", "MTN", "txt", "csv", "json"}, cobra.ShellCompDirectiveFilterFileExt
		}
	}
	return cmd
}

func modelWords() string {
	var words []string
	for _, m := range aibo.Models {
		words = append(words, m.String())
	}
	return strings.Join(words, ", ")
}

// modelNamed returns the model that a flag names: "ers-7", "ERS7", "7" or "DRX-1000".
func modelNamed(flag, s string) (aibo.Model, error) {
	word := strings.ReplaceAll(strings.ToLower(s), "-", "")
	for _, m := range aibo.Models {
		p, _ := mtn.PlatformFor(int(m))
		if slices.Contains([]string{fmt.Sprint("ers", int(m)), fmt.Sprint(int(m)), strings.ReplaceAll(strings.ToLower(p.Format), "-", "")}, word) {
			return m, nil
		}
	}
	return 0, cli.Usage("-%s %.40q: want one of %s", flag, s, modelWords())
}

// content returns the bytes of a file.
func content(cmd *cobra.Command, name string) ([]byte, error) {
	in := cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errs.New(errs.NotFound, "%w", err)
		} else if err != nil {
			return nil, err
		}
		defer f.Close() // read only
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, mtn.MaxSize+1))
	if err == nil && len(b) > mtn.MaxSize {
		err = fmt.Errorf("%s: expected at most %d bytes, found more", name, mtn.MaxSize)
	}
	return b, err
}

// open reads a motion of either kind.
func open(cmd *cobra.Command, name string, m mtn.Mode) (*mtn.File, []mtn.Finding, error) {
	b, err := content(cmd, name)
	if err != nil {
		return nil, nil, err
	}
	var f *mtn.File
	var found []mtn.Finding
	if motions.IsText(b) {
		f, err = mtn.Build(b)
	} else {
		f, found, err = mtn.Parse(b, m)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return f, found, err
}

// argument returns argument i; "-" if there is none.
func argument(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return "-"
}

// written is the output of a command that writes a motion.
type written struct {
	File      string           `json:"file"`
	Format    string           `json:"format"`
	Joints    int              `json:"joints"`
	Keyframes int              `json:"keyframes"`
	MS        int64            `json:"ms"`
	Changes   []motions.Change `json:"changes,omitempty"`
}

// save writes a motion and says what was written, unless it went to standard output.
func save(cmd *cobra.Command, f *mtn.File, name string, changes []motions.Change) error {
	b, err := mtn.Append(nil, f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if name == "-" {
		for _, c := range changes {
			fmt.Fprintf(cmd.ErrOrStderr(), "robotkit: %s\n", cli.Clean(changeText(c)))
		}
		_, err = cmd.OutOrStdout().Write(b)
		return err
	}
	if err := atomicfile.WriteFile(name, b, 0o644); err != nil {
		return err
	}
	done := written{name, f.Format, len(f.Joints), len(f.Keyframes), f.Duration().Milliseconds(), changes}
	return cli.Print(cmd, done, func(t *cli.Table) {
		t.Text(fmt.Sprintf("%s: %s, %d bytes, %s, %s, %v", name, f.Format, len(b), cli.Count(len(f.Joints), "joint"), cli.Count(len(f.Keyframes), "keyframe"), f.Duration()))
		for _, c := range changes {
			t.Text(changeText(c))
		}
	})
}

// changeText says what an edit could not keep.
func changeText(c motions.Change) string {
	switch {
	case c.What == "lacking" && c.Keeps:
		return fmt.Sprintf("%s left out: the model does not have it; it does not move", c.Joint)
	case c.What == "lacking":
		return fmt.Sprintf("%s left out: the model does not have it; it moves from %.1f to %.1f degrees", c.Joint, c.Got, c.Wanted)
	case c.What == motions.CodeSpeed:
		return fmt.Sprintf("keyframe %d after %v instead of %v, for the speed of %s", c.Keyframe, time.Duration(c.Got)*mtn.Frame, time.Duration(c.Wanted)*mtn.Frame, c.Joint)
	}
	return fmt.Sprintf("keyframe %d: %s at %.2f degrees instead of %.2f, for its range", c.Keyframe, c.Joint, c.Got, c.Wanted)
}

// described is the output of info.
type described struct {
	File        string        `json:"file"`
	Version     string        `json:"version"`
	Model       string        `json:"model,omitempty"`
	Format      string        `json:"format"`
	Name        string        `json:"name"`
	Author      string        `json:"author"`
	Part        string        `json:"part,omitempty"`
	Start       string        `json:"start,omitempty"`
	Stop        string        `json:"stop,omitempty"`
	Description string        `json:"description,omitempty"`
	Rate        uint16        `json:"rate"`
	Joints      []string      `json:"joints"` // symbolic names; keys where there is none
	Keyframes   int           `json:"keyframes"`
	MS          int64         `json:"ms"`
	Findings    []mtn.Finding `json:"findings"`
}

func infoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "info FILE",
		Short: "Show what a motion is: model, postures, joints, duration",
		Example: `  robotkit mtn info sit.mtn
  robotkit mtn info sit.mtn -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, found, err := open(cmd, args[0], mtn.Lenient)
			if err != nil {
				return err
			}
			n := mtn.ParseName(f.Name)
			d := described{File: args[0], Version: fmt.Sprintf("%d.%d", f.Major, f.Minor), Format: f.Format, Name: f.Name, Author: f.Author, Start: n.Start,
				Stop: n.Stop, Description: n.Description, Rate: f.Rate, Keyframes: len(f.Keyframes), MS: f.Duration().Milliseconds(), Findings: append([]mtn.Finding{}, found...)}
			if n.Part != 0 {
				d.Part = string(rune(n.Part))
			}
			if m, ok := motions.ModelOf(f); ok {
				d.Model = m.String()
			}
			p, _ := mtn.PlatformOf(f.Format)
			for i, r := range p.Resolve(f.Joints) {
				if r.Name == "" {
					r.Name = f.Joints[i]
				}
				d.Joints = append(d.Joints, r.Name)
			}
			return cli.Print(cmd, d, func(t *cli.Table) {
				for _, row := range [][2]any{{"FILE", d.File}, {"VERSION", d.Version}, {"MODEL", d.Model}, {"FORMAT", d.Format}, {"NAME", d.Name}, {"AUTHOR", d.Author},
					{"PART", d.Part}, {"START", d.Start}, {"STOP", d.Stop}, {"DESCRIPTION", d.Description}, {"KEYFRAMES", d.Keyframes}, {"DURATION", f.Duration()},
					{"JOINTS", strings.Join(d.Joints, " ")}} {
					t.Row(row[0], row[1])
				}
				for _, x := range found {
					t.Text(x.Severity.String() + ": " + x.Error())
				}
			})
		},
	}
}

func dumpCommand() *cobra.Command {
	var asCSV bool
	cmd := &cobra.Command{
		Use:   "dump FILE",
		Short: "Print a motion as text, CSV or JSON",
		Long: `Print a motion with everything that its file holds, so that build makes the same bytes of it: as text with angles in degrees, with -csv as CSV with
angles in micro-radian, or with -o json as JSON with version, rate, strings, joints and keyframes (interp, rpy, joints in micro-radian). interp is how many
frames of 16 ms a keyframe comes after the one before, less one.`,
		Example: `  robotkit mtn dump sit.mtn
  robotkit mtn dump sit.mtn -csv > sit.csv
  robotkit mtn dump sit.mtn -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if asCSV && cli.JSON(cmd) {
				return cli.Usage("-csv and -o json exclude each other")
			}
			f, _, err := open(cmd, args[0], mtn.Lenient)
			if err != nil {
				return err
			}
			if cli.JSON(cmd) {
				return cli.Print(cmd, f, nil)
			}
			b := mtn.AppendText(nil, f)
			if asCSV {
				b = mtn.AppendCSV(nil, f)
			}
			_, err = cmd.OutOrStdout().Write(b)
			return err
		},
	}
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print CSV")
	return cmd
}

func buildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build [TEXT [OUT.mtn]]",
		Short: "Write a motion file from text, CSV or JSON",
		Long: `Write a motion file from one of the forms that dump prints, or from one that a person wrote:

  mtn
  format DRX-910
  name a_sit#sit_look
  joints HEAD_PITCH HEAD_YAW
  pose 0       HEAD_PITCH=-25
  pose 480ms   HEAD_YAW=40
  pose 640ms   HEAD_YAW=-40
  pose 480ms   HEAD_YAW=0

A pose says how long after the one before it is reached, and in degrees the joints that change. Formats are DRX-700, DRX-910, DRX-900, DRX-801 and
DRX-1000; "joints all" are those of the model.`,
		Example: `  robotkit mtn build sit.json sit.mtn
  robotkit mtn dump sit.mtn -o json | robotkit mtn build - copy.mtn`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := argument(args, 0)
			b, err := content(cmd, name)
			if err != nil {
				return err
			}
			f, err := mtn.Build(b)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return save(cmd, f, argument(args, 1), nil)
		},
	}
}

// checked is the output of check for one file.
type checked struct {
	File     string        `json:"file"`
	Good     bool          `json:"good"`
	Findings []mtn.Finding `json:"findings"`
}

func checkCommand() *cobra.Command {
	var strict, balance bool
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Check motion files: layout, names, postures, ranges and speeds",
		Long: `Check motion files, and print what is wrong with each by block and offset, and for joints beyond their range or speed by 8 ms row. After an error
no player can read the file; a warning is a deviation that real files have too. Exits 0 if every file is good, else 1: with -strict files with warnings are not.
With -balance the motion is also tried on the statics of its model: the 8 ms row in which the body would tip over is a warning.`,
		Example: `  robotkit mtn check sit.mtn
  robotkit mtn check -balance sit.mtn
  robotkit mtn check -strict *.mtn
  robotkit mtn check sit.mtn -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, bad := []checked{}, 0
			for _, name := range args {
				c, err := judge(cmd, name, strict, balance)
				if err != nil {
					return err
				}
				if all = append(all, c); !c.Good {
					bad++
				}
			}
			err := cli.Print(cmd, all, func(t *cli.Table) {
				for _, c := range all {
					t.Text(c.File + map[bool]string{true: ": good", false: ": bad"}[c.Good])
					for _, x := range c.Findings {
						t.Text("  " + x.Severity.String() + ": " + x.Error() + " (" + x.Code + ")")
					}
				}
			})
			if err == nil && bad > 0 {
				err = fmt.Errorf("%s of %d not good", cli.Count(bad, "file"), len(args))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&balance, "balance", false, "say where the body would tip over")
	cmd.Flags().BoolVar(&strict, "strict", false, "refuse files with warnings too")
	return cmd
}

// judge checks one file. The error is that it could not be read at all.
func judge(cmd *cobra.Command, name string, strict, balance bool) (checked, error) {
	b, err := content(cmd, name)
	if err != nil {
		return checked{}, err
	}
	c := checked{File: name, Good: true, Findings: []mtn.Finding{}}
	f, found, err := (*mtn.File)(nil), []mtn.Finding(nil), error(nil)
	if motions.IsText(b) {
		f, err = mtn.Build(b)
	} else {
		f, found, err = mtn.Parse(b, mtn.Lenient)
	}
	c.Findings = append(c.Findings, found...)
	if x, ok := errors.AsType[mtn.Finding](err); ok {
		c.Findings = append(c.Findings, x)
	} else if err != nil {
		c.Findings = append(c.Findings, mtn.Finding{Severity: mtn.Fault, Code: "text", Offset: -1, Block: -1, What: err.Error()})
	} else {
		c.Findings = append(c.Findings, motions.Check(f)...)
		if balance {
			c.Findings = append(c.Findings, motions.CheckBalance(f)...)
		}
	}
	for _, x := range c.Findings {
		if x.Severity == mtn.Fault || strict && x.Severity == mtn.Warning {
			c.Good = false
		}
	}
	return c, nil
}
