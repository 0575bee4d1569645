// Package soundkit has the commands of robotkit for sounds and speech.
package soundkit

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/anim/clip"
	"kennel/edge/anim/repertoire"
	"kennel/edge/sound"
	"kennel/edge/sound/bank"
	"kennel/edge/sound/palette"
	"kennel/edge/sound/sink"
	"kennel/edge/sound/voice"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/wav"
)

// rate is the rate of what the commands play and write, unless they are asked for another.
const rate = 16_000

// longest is the most that make and play let an event last: one that loops forever ends there.
const longest = 30 * time.Second

// Sound returns the command for sounds.
func Sound() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sound",
		Short: "List, make, play and measure the sounds of a robot",
		Long: `List, make, play and measure the sounds of a robot. NAME is an event or a sound of those that come with Kennel, or of a file of sounds given with -f. Such a file
is a text: "sound NAME" begins a sound of tones, chirps and noise, "event NAME" says which of them are played.`,
		Example: `  robotkit sound list
  robotkit sound play Kennel_Mood_Happy
  robotkit sound make Kennel_Greeting_Hello hello.wav
  robotkit sound make -f bark.sounds bark bark.wav
  robotkit sound clip anim_mood_happy_01 happy.wav
  robotkit sound info hello.wav`,
	}
	makes, plays := makeCommand(), playCommand()
	makes.ValidArgsFunction, plays.ValidArgsFunction = complete, complete
	cmd.AddCommand(listCommand(), makes, plays, clipCommand(), infoCommand())
	return cmd
}

// addFile adds the flag -f.
func addFile(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "file", "f", "", "`FILE` of sounds; default: those that come with Kennel")
}

// open returns the bank of a file, or Kennel's own.
func open(file string) (*bank.Bank, error) {
	if file == "" {
		return palette.Bank()
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	k, err := bank.Parse(b, os.DirFS(filepath.Dir(file)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return k, nil
}

// listed is one event or sound as list prints it.
type listed struct {
	Name   string   `json:"name"`
	Kind   string   `json:"kind"` // event or sound
	ID     uint32   `json:"id"`   // by which clips post it
	MS     int64    `json:"ms"`   // of a sound, or of the longest of an event
	Lively bool     `json:"lively"`
	Sounds []string `json:"sounds,omitempty"`
}

func list(k *bank.Bank) (rows []listed, err error) {
	span := func(id uint32) int64 {
		s := k.Sounds[id]
		if s == nil {
			return 0
		}
		ready, e := s.At(rate)
		if e != nil {
			err = fmt.Errorf("sound %s: %w", s.Name, e)
			return 0
		}
		return ready.Span().Milliseconds()
	}
	for id, e := range k.Events {
		row := listed{Name: e.Name, Kind: "event", ID: id, Lively: e.Lively}
		for _, a := range e.Actions {
			for _, c := range a.Choices {
				row.Sounds = append(row.Sounds, k.Names[c.Sound])
				row.MS = max(row.MS, span(c.Sound))
			}
		}
		slices.Sort(row.Sounds)
		row.Sounds = slices.Compact(row.Sounds)
		rows = append(rows, row)
	}
	for id, s := range k.Sounds {
		rows = append(rows, listed{Name: s.Name, Kind: "sound", ID: id, MS: span(id)})
	}
	slices.SortFunc(rows, func(a, b listed) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return rows, err
}

func listCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List events and sounds: number, duration, and what an event plays",
		Example: `  robotkit sound list
  robotkit sound list -f bark.sounds -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := open(file)
			if err != nil {
				return err
			}
			rows, err := list(k)
			if err != nil {
				return err
			}
			return cli.Print(cmd, rows, func(t *cli.Table) {
				t.Row("NAME", "KIND", "NUMBER", "MS", "PLAYS")
				for _, r := range rows {
					t.Row(r.Name, r.Kind, r.ID, r.MS, strings.Join(r.Sounds, " "))
				}
			})
		},
	}
	addFile(cmd, &file)
	return cmd
}

// stage is a mixer with an event on it.
type stage struct {
	m    *sound.Mixer
	ends int64 // sample after the last of the event
}

// post posts an event or sound to a mixer of its own.
func post(k *bank.Bank, name string, hz int, volume float64) (*stage, error) {
	if !(volume > 0 && volume <= 1) {
		return nil, cli.Usage("-volume %g: expected more than 0 and at most 1", volume)
	}
	id := clip.SoundID(name)
	if k.Events[id] == nil && k.Sounds[id] == nil {
		return nil, errs.New(errs.NotFound, "expected an event or a sound that robotkit sound list names, found %.80q", name)
	}
	m, err := sound.NewMixer(sound.Config{Rate: hz})
	if err != nil {
		return nil, cli.Usage("-rate: %v", err)
	}
	playing, err := bank.NewEngine(bank.Config{Mixer: m, Banks: []*bank.Bank{k}}).Post(bank.Animation, id, volume, 0)
	if err != nil {
		return nil, err
	}
	if len(playing) == 0 {
		return nil, errs.New(errs.Invalid, "event %s plays nothing by itself", name)
	}
	most := int64(longest.Seconds() * float64(hz))
	return &stage{m, min(most, int64(math.Ceil(m.Remain().Seconds()*float64(hz))))}, nil
}

// written is the result of make.
type written struct {
	File    string  `json:"file"`
	Seconds float64 `json:"seconds"`
	Rate    int     `json:"rate"`
}

func (w written) print(cmd *cobra.Command) error {
	return cli.PrintLine(cmd, w, func() string { return fmt.Sprintf("%s: %.2f s, %d Hz", w.File, w.Seconds, w.Rate) })
}

func makeCommand() *cobra.Command {
	var file string
	var hz int
	var volume float64
	cmd := &cobra.Command{
		Use:   "make NAME OUT.wav",
		Short: "Write an event or a sound as a WAV file",
		Long:  `Write an event or a sound as a WAV file. Of an event with several sounds, one is drawn. A loop without an end is cut off after 30 seconds.`,
		Example: `  robotkit sound make Kennel_Mood_Happy happy.wav
  robotkit sound make -f bark.sounds -rate 22050 bark bark.wav`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := open(file)
			if err != nil {
				return err
			}
			s, err := post(k, args[0], hz, volume)
			if err != nil {
				return err
			}
			f, err := sink.Create(args[1], hz)
			if err != nil {
				return err
			}
			err = sink.Render(s.m, f, s.ends)
			if e := f.Close(); err == nil {
				err = e
			}
			if err != nil {
				return err
			}
			return written{args[1], float64(s.ends) / float64(hz), hz}.print(cmd)
		},
	}
	addFile(cmd, &file)
	cmd.Flags().IntVar(&hz, "rate", rate, "`SAMPLES` per second")
	cmd.Flags().Float64Var(&volume, "volume", 1, "0 to 1")
	return cmd
}

func playCommand() *cobra.Command {
	var file string
	var volume float64
	cmd := &cobra.Command{
		Use:   "play NAME|FILE.wav",
		Short: "Play an event, a sound or a WAV file on this machine",
		Long:  `Play an event, a sound or a WAV file with the program pw-play or aplay, whichever is installed.`,
		Example: `  robotkit sound play Kennel_Greeting_Hello
  robotkit sound play hello.wav -volume 0.5`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := open(file)
			if err != nil {
				return err
			}
			name := args[0]
			if strings.HasSuffix(strings.ToLower(name), ".wav") {
				s, err := readWAV(name)
				if err != nil {
					return err
				}
				name = "file"
				k = bank.One(name, s)
			}
			s, err := post(k, name, rate, volume)
			if err != nil {
				return err
			}
			return play(cmd.Context(), s)
		},
	}
	addFile(cmd, &file)
	cmd.Flags().Float64Var(&volume, "volume", 1, "0 to 1")
	return cmd
}

// play plays what is on a stage, and returns when it was heard.
func play(ctx context.Context, s *stage) error {
	path, args, err := sink.FindPlayer(s.m.Rate())
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	player, err := sink.NewProgram(slog.New(slog.DiscardHandler), path, args, func(err error) {
		select {
		case failed <- err:
		default:
		}
	})
	if err != nil {
		return err
	}
	playing, stop := context.WithTimeout(ctx, time.Duration(s.ends)*time.Second/time.Duration(s.m.Rate())+time.Second/2) // and what the player keeps in its buffer
	defer stop()
	done := make(chan error, 1)
	go func() { done <- sink.Run(playing, s.m, player) }()
	select {
	case err := <-done:
		return err
	case err := <-failed:
		stop()
		<-done
		return errs.New(errs.Unavailable, "%s: %w: is there a sound card?", filepath.Base(path), err)
	}
}

func clipCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "clip CLIP|FILE.clip OUT.wav",
		Short: "Write the sounds of an animation clip as a WAV file, each at its keyframe",
		Long: `Write the sounds of an animation clip as a WAV file, each at its keyframe. CLIP is a clip that comes with Kennel; of a FILE of clips the first is taken. Where a clip or an
event has several sounds to choose from, one is drawn, always the same.`,
		Example: `  robotkit sound clip anim_mood_happy_01 happy.wav
  robotkit sound clip -f bark.sounds greet.clip greet.wav`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := open(file)
			if err != nil {
				return err
			}
			c, err := findClip(args[0])
			if err != nil {
				return err
			}
			s, err := bank.Render(k, c, clip.Vector, rate, 1, longest)
			if err != nil {
				return err
			}
			if err := os.WriteFile(args[1], s.AppendWAV(nil), 0o644); err != nil {
				return err
			}
			return written{args[1], s.Span().Seconds(), rate}.print(cmd)
		},
	}
	addFile(cmd, &file)
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		l, err := repertoire.Library()
		if err != nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return slices.Sorted(maps.Keys(l.Clips)), cobra.ShellCompDirectiveDefault
	}
	return cmd
}

// findClip returns one of Kennel's clips, or the first of a file.
func findClip(name string) (*clip.Clip, error) {
	l, err := repertoire.Library()
	if err != nil {
		return nil, err
	}
	if c := l.Clips[name]; c != nil {
		return c, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, errs.New(errs.NotFound, "%w; Kennel has no clip of this name either", err)
	}
	clips, err := clip.ParseText(b)
	if err == nil && len(clips) == 0 {
		err = fmt.Errorf("%w: expected a clip, found none", clip.ErrClip)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &clips[0], nil
}

// readWAV reads a file.
func readWAV(name string) (*sound.Sound, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s, err := sound.ParseWAV(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// measured is the result of info.
type measured struct {
	File     string  `json:"file"`
	Seconds  float64 `json:"seconds"`
	Rate     int     `json:"rate"`
	Channels int     `json:"channels"`
	Bits     int     `json:"bits"`
	PeakDB   float64 `json:"peak_db"` // of full scale; -120 is silence
	RMSDB    float64 `json:"rms_db"`
	PitchHz  float64 `json:"pitch_hz,omitempty"` // middle of a voice's; 0: none
}

func decibels(v float64) float64 { return math.Round(10*max(-120, 20*math.Log10(max(v, 1e-9)))) / 10 }

func infoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "info FILE.wav",
		Short: "Measure a WAV file: form, duration, strength and pitch",
		Long: `Measure a WAV file: form, duration, strength and pitch. A file of which a size or a number is not true is refused with the byte of the file, what was expected
and what was found.`,
		Example: `  robotkit sound info hello.wav
  robotkit sound info hello.wav -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			w, err := wav.ParseWhole(b)
			if err != nil {
				return errs.New(errs.Invalid, "%s: %w", args[0], err)
			}
			mono := w.Mono()
			s := sound.FromPCM(mono.Rate, mono.Samples)
			m := measured{File: args[0], Seconds: s.Span().Seconds(), Rate: w.Rate, Channels: w.Channels, Bits: w.Bits, PeakDB: decibels(float64(s.Peak())), RMSDB: decibels(s.RMS()),
				PitchHz: math.Round(voice.MiddlePitch(s))}
			return cli.Print(cmd, m, func(t *cli.Table) {
				t.Row("SECONDS", "RATE", "CHANNELS", "BITS", "PEAK", "STRENGTH", "PITCH")
				t.Row(fmt.Sprintf("%.3f", m.Seconds), m.Rate, m.Channels, m.Bits, fmt.Sprintf("%.1f dB", m.PeakDB), fmt.Sprintf("%.1f dB", m.RMSDB), fmt.Sprintf("%.0f Hz", m.PitchHz))
			})
		},
	}
}

// complete completes the names of Kennel's events, and files.
func complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	k, err := palette.Bank()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var names []string
	for id := range maps.Keys(k.Events) {
		names = append(names, k.Names[id])
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveDefault
}
