// Package mickit has the commands of robotkit for microphones and wake words.
package mickit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/mic"
	"kennel/edge/mic/beat"
	"kennel/edge/mic/geometry"
	"kennel/edge/mic/miclink"
	"kennel/edge/mic/wakeword"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/wav"
)

// maxRecording is the longest recording: 10 minutes of four channels are 75 MB.
const maxRecording = 10 * time.Minute

// Mic returns the command for the microphones of a robot.
func Mic() *cobra.Command {
	cmd := &cobra.Command{Use: "mic", Short: "Record this robot's microphones, and watch what it hears",
		Example: "  robotkit mic record -root ./r1 -out said.wav"}
	cmd.AddCommand(micRecord(), micWatch())
	return cmd
}

// ear connects to the microphones below root, for a time; 0: until the command ends.
func ear(cmd *cobra.Command, root string, lasts time.Duration, take func(f *miclink.Frame) error) error {
	ctx, cancel := cmd.Context(), context.CancelFunc(func() {})
	if lasts > 0 {
		ctx, cancel = context.WithTimeout(ctx, lasts+10*time.Second) // of robotd's clock, which may be slow
	}
	defer cancel()
	mics, err := miclink.Dial(ctx, filepath.Join(root, miclink.SocketPath))
	if err != nil {
		return errs.New(errs.Unavailable, "%w: want a robot with microphones whose robotd runs below -root", err)
	}
	defer mics.Close() // read only
	for frames := 0; lasts == 0 || frames < int(lasts.Seconds()*geometry.Rate/geometry.Samples); frames++ {
		f, err := mics.Next()
		if cmd.Context().Err() != nil {
			return nil
		}
		if err == nil {
			err = take(&f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func micRecord() *cobra.Command {
	var root, out string
	var lasts time.Duration
	var raw bool
	cmd := &cobra.Command{
		Use: "record", Short: "Record what the robot hears as a WAV file (VEC-MIC-07)",
		Long: "Record one channel as speech recognition gets it, or with -raw the four microphones: front right, front left, back right and back left.\n" +
			"Ask the people in the room first.",
		Example: "  robotkit mic record -root ./r1 -for 5s -out said.wav\n  robotkit mic record -root ./r1 -raw -out mics.wav",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lasts <= 0 || lasts > maxRecording {
				return cli.Usage("-for %v: want more than 0 and at most %v", lasts, maxRecording)
			}
			s := &wav.Sound{Rate: mic.Rate, Channels: 1}
			if raw {
				s.Rate, s.Channels = geometry.Rate, geometry.Mics
			}
			p, lost := mic.New(mic.Config{}), uint64(0)
			err := ear(cmd, root, lasts, func(f *miclink.Frame) error {
				lost += f.Lost
				var c mic.Chunk
				if raw {
					s.Samples = append(s.Samples, f.Mics[:]...)
				} else if p.Feed(f, false, &c) {
					s.Samples = append(s.Samples, c.Samples[:]...)
				}
				return nil
			})
			if err == nil && len(s.Samples) == 0 {
				err = errs.New(errs.Unavailable, "nothing was heard")
			}
			if err == nil {
				err = os.WriteFile(out, wav.Append(nil, s), 0o600)
			}
			if err != nil {
				return err
			}
			done := recorded{out, float64(len(s.Samples)) / float64(s.Rate*s.Channels), s.Channels, s.Rate, lost}
			return cli.Print(cmd, done, func(t *cli.Table) {
				t.Text(fmt.Sprintf("%s: %.1f s, %d channels, %d Hz", done.File, done.Seconds, done.Channels, done.Rate))
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&root, "root", "/", "the robot's root folder `DIR`")
	f.StringVar(&out, "out", "", "WAV `FILE` to write (required)")
	f.DurationVar(&lasts, "for", 5*time.Second, "how long")
	f.BoolVar(&raw, "raw", false, "record the four microphones")
	_ = cmd.MarkFlagRequired("out") // the flag exists
	return cmd
}

// recorded is the output of mic record.
type recorded struct {
	File     string  `json:"file"`
	Seconds  float64 `json:"seconds"`
	Channels int     `json:"channels"`
	Rate     int     `json:"rate"`
	Lost     uint64  `json:"lost"` // frames
}

// heard is a line of mic watch.
type heard struct {
	Voice      bool        `json:"voice"`
	Active     bool        `json:"active"`
	Direction  *int        `json:"direction,omitempty"` // clock position
	Confidence float32     `json:"confidence"`
	Level      float32     `json:"level"` // dB of full scale
	Floor      float32     `json:"floor"`
	Word       string      `json:"word,omitempty"` // a wake word
	Beat       beat.Report `json:"beat"`
}

func micWatch() *cobra.Command {
	var root, model string
	cmd := &cobra.Command{
		Use: "watch", Short: "Print what the robot hears four times a second, until interrupted",
		Example: "  robotkit mic watch -root ./r1\n  robotkit mic watch -root ./r1 -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := openModel(model)
			if err != nil {
				return err
			}
			p, beats, word := mic.New(mic.Config{}), beat.New(geometry.Rate), wakeword.NewGated(wakeword.NewSpotter(m))
			var line heard
			return ear(cmd, root, 0, func(f *miclink.Frame) error {
				var c mic.Chunk
				if !p.Feed(f, false, &c) {
					return nil
				}
				beats.Feed(c.Samples[:])
				wakeword.Gap(word, &c)
				if _, ok := word.Hear(&c); ok {
					line.Word = m.Word
				}
				line.Voice, line.Active = line.Voice || c.Voice, line.Active || c.Active
				if c.Direction != mic.NoDirection {
					line.Direction = &c.Direction
				}
				if c.Seq%24 != 0 {
					return nil
				}
				line.Confidence, line.Level, line.Floor, line.Beat = c.Confidence, c.Level, c.Floor, beats.Report()
				defer func() { line = heard{} }()
				return cli.Print(cmd, line, func(t *cli.Table) {
					where := "-"
					if line.Direction != nil {
						where = fmt.Sprintf("%d o'clock", (*line.Direction+11)%12+1)
					}
					t.Row(fmt.Sprintf("%5.0f dB", line.Level), fmt.Sprintf("floor %4.0f dB", line.Floor), mark(line.Active, "active"), mark(line.Voice, "voice"), where,
						fmt.Sprintf("%3.0f bpm (%.0f %%)", line.Beat.DetectorInfo.LatestTempoBPM, 100*line.Beat.DetectorInfo.LatestConf), line.Word)
				})
			})
		},
	}
	cmd.Flags().StringVar(&root, "root", "/", "the robot's root folder `DIR`")
	cmd.Flags().StringVar(&model, "model", "", "wake word model `FILE` (default: the built-in one)")
	return cmd
}

func mark(on bool, word string) string {
	if on {
		return word
	}
	return "-"
}

func openModel(name string) (*wakeword.Model, error) {
	if name == "" {
		return wakeword.Default(), nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return wakeword.ParseModel(b)
}

// Wake returns the command for wake words.
func Wake() *cobra.Command {
	cmd := &cobra.Command{Use: "wake", Short: "Train and test wake words",
		Example: "  robotkit wake try said.wav"}
	cmd.AddCommand(wakeTrain(), wakeTry())
	return cmd
}

// speech reads a WAV file as 16 kHz of one channel.
func speech(name string) ([]int16, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s, err := wav.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s = s.Resample(mic.Rate)
	one := make([]int16, 0, len(s.Samples)/s.Channels)
	for part := range slices.Chunk(s.Samples, s.Channels) {
		one = append(one, part[0])
	}
	return one, nil
}

func speeches(names []string) (all [][]int16, err error) {
	for _, n := range names {
		s, e := speech(n)
		all, err = append(all, s), errors.Join(err, e)
	}
	return all, err
}

// trained is the output of wake train.
type trained struct {
	Model      string `json:"model"`
	Word       string `json:"word"`
	Recordings int    `json:"recordings"`
	Others     int    `json:"others"`
	Bytes      int    `json:"bytes"`
}

func wakeTrain() *cobra.Command {
	var word, model string
	var against []string
	cmd := &cobra.Command{
		Use: "train FILE.wav...", Short: "Train a wake word model from recordings",
		Long: "Needs at least 3 recordings of the word, each with a little silence around it, and some of other speech. More voices\n" +
			"make a better model. A robot uses the model in " + wakeword.OwnFile + " below its root, when its agentd starts.",
		Example: "  robotkit wake train said/*.wav -against other.wav -model hey.kws\n  robotkit wake train a.wav b.wav c.wav -word \"hey rex\" -against other.wav -model rex.kws",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			said, err := speeches(args)
			other, oerr := speeches(against)
			if err = errors.Join(err, oerr); err != nil {
				return err
			}
			m, err := wakeword.Train(word, said, other)
			if err != nil {
				return errs.New(errs.Invalid, "%w", err)
			}
			b := m.Append(nil)
			if err := os.WriteFile(model, b, 0o644); err != nil {
				return err
			}
			done := trained{model, word, len(said), len(other), len(b)}
			return cli.Print(cmd, done, func(t *cli.Table) {
				t.Text(fmt.Sprintf("%s: %q from %s", model, word, cli.Count(len(said), "recording")))
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&word, "word", "hey vector", "the word as text")
	f.StringVar(&model, "model", "", "`FILE` to write (required)")
	f.StringArrayVar(&against, "against", nil, "WAV `FILE` with other speech; may be repeated (required)")
	_ = cmd.MarkFlagRequired("model") // the flag exists
	_ = cmd.MarkFlagRequired("against")
	return cmd
}

// tried is a line of wake try.
type tried struct {
	File  string  `json:"file"`
	Hit   bool    `json:"hit"`
	Begin float64 `json:"begin,omitempty"` // s
	End   float64 `json:"end,omitempty"`
	Score float64 `json:"score,omitempty"`
}

func wakeTry() *cobra.Command {
	var model string
	cmd := &cobra.Command{
		Use: "try FILE.wav...", Short: "Find wake words in recordings",
		Example: "  robotkit wake try said.wav other.wav\n  robotkit wake try said.wav -model rex.kws -o json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := openModel(model)
			if err != nil {
				return err
			}
			d := wakeword.NewSpotter(m)
			var all []tried
			for _, name := range args {
				s, err := speech(name)
				if err != nil {
					return err
				}
				d.Reset()
				row := tried{File: name}
				if h, ok := d.Feed(append(s, make([]int16, mic.Rate/2)...)); ok {
					row = tried{name, true, float64(h.Begin) / mic.Rate, float64(h.End) / mic.Rate, h.Score}
				}
				all = append(all, row)
			}
			return cli.Print(cmd, all, func(t *cli.Table) {
				for _, r := range all {
					if r.Hit {
						t.Row(r.File, m.Word, fmt.Sprintf("%.2f s to %.2f s", r.Begin, r.End), fmt.Sprintf("%.2f", r.Score))
					} else {
						t.Row(r.File, "-", "", "")
					}
				}
			})
		},
	}
	cmd.Flags().StringVar(&model, "model", "", "wake word model `FILE` (default: the built-in one)")
	return cmd
}
