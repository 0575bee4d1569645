package soundkit

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kennel/edge/mind/mindlink"
	"kennel/edge/sound"
	"kennel/edge/sound/bank"
	"kennel/edge/sound/voice"
	"kennel/edge/sound/voice/speechapi"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// wishes are the flags of say.
type wishes struct {
	out, character, synth, voice, language, keyFile, root string
	hz                                                    int
	duration, pitch, volume                               float64
	visemes                                               bool
}

// synthesizer returns the one of a name, or a server's; of no name the first that is installed.
func (w *wishes) synthesizer() (voice.Synthesizer, error) {
	if strings.Contains(w.synth, "://") {
		return speechapi.New(speechapi.Config{URL: w.synth, KeyFile: w.keyFile})
	}
	if w.synth != "" && !slices.Contains(voice.Programs, w.synth) {
		return nil, cli.Usage("-synth %.40q: expected espeak-ng, flite or http://HOST:PORT", w.synth)
	}
	return voice.Find(w.synth, w.language)
}

// spoken is the result of say.
type spoken struct {
	File        string  `json:"file,omitempty"`
	Seconds     float64 `json:"seconds"`
	Rate        int     `json:"rate"`
	Character   string  `json:"character"`
	Synthesizer string  `json:"synthesizer"`
	PitchHz     float64 `json:"pitch_hz"`
	Timed       bool    `json:"visemes_timed"`
	Visemes     []shape `json:"visemes,omitempty"`
}

// shape is a viseme.
type shape struct {
	MS    int64  `json:"ms"`
	Shape string `json:"shape"`
}

// Say returns the command that speaks.
func Say() *cobra.Command {
	var w wishes
	var names []string
	for _, c := range voice.Characters {
		names = append(names, c.Name)
	}
	cmd := &cobra.Command{
		Use:   "say TEXT",
		Short: "Speak a text in a robot's voice, on this machine, into a WAV file or by a running robot",
		Long: `Speak a text in a robot's voice, on this machine or into a WAV file. TEXT "-" is standard input. The speech is made by flite or espeak-ng, whichever is installed,
or by a server with the interface POST /v1/audio/speech, and gets the character of a robot. With -root the robot whose mindd runs in that folder says it, in its own voice or, with -character plain, in its synthesiser's; the command returns when it
was heard. Only root and the user of mindd may connect.`,
		Example: `  robotkit say "Hello, I am your robot."
  robotkit say "Hello, I am your robot." -o hello.wav -character plain
  robotkit say "Guten Tag." -language de -duration 0.8 -o hello.wav
  robotkit say "Hello." -root ./r1
  robotkit say "Hello." -synth http://localhost:8880 -voice nova -o hello.wav -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return w.say(cmd, args[0]) },
	}
	f := cmd.Flags()
	cli.AddOutputFile(cmd, &w.out, "write the speech to a WAV")
	f.StringVar(&w.root, "root", "", "the folder `DIR` of the robot that speaks")
	f.StringVar(&w.character, "character", "vector", "the voice's `CHARACTER`: "+strings.Join(names, ", "))
	f.StringVar(&w.synth, "synth", "", "`PROGRAM` or server that makes the speech: flite, espeak-ng, http://HOST:PORT")
	f.StringVar(&w.voice, "voice", "", "`NAME` of a voice of the program or server")
	f.StringVar(&w.language, "language", "", "`CODE` such as en-US or de")
	f.StringVar(&w.keyFile, "key-file", "", "`FILE` with the server's key")
	f.IntVar(&w.hz, "rate", rate, "`SAMPLES` per second")
	f.Float64Var(&w.duration, "duration", 1, "factor of the duration, 0.05 to 20")
	f.Float64Var(&w.pitch, "pitch", 0, "-1 to 1: half an octave down or up")
	f.Float64Var(&w.volume, "volume", 1, "above 0 to 1")
	f.BoolVar(&w.visemes, "visemes", false, "print the shapes of the mouth too")
	_ = cmd.RegisterFlagCompletionFunc("character", cobra.FixedCompletions(slices.Clone(names), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

func (w *wishes) say(cmd *cobra.Command, text string) error {
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 4*voice.MaxText+1))
		if err != nil {
			return err
		}
		text = string(b)
	}
	if w.root != "" {
		return w.aloud(cmd, text)
	}
	c, err := voice.FindCharacter(w.character)
	if err != nil {
		return err
	}
	r, err := voice.Request{Language: w.language, Voice: w.voice}.Scaled(w.duration, w.pitch)
	if err != nil {
		return cli.Usage("-duration, -pitch: %v", err)
	}
	if w.hz < sound.MinRate || w.hz > sound.MaxRate || !(w.volume > 0 && w.volume <= 1) {
		return cli.Usage("expected -rate of %d to %d and -volume above 0 to 1, found %d and %g", sound.MinRate, sound.MaxRate, w.hz, w.volume)
	}
	if r.Text, err = voice.Clean(text); err != nil {
		return cli.Usage("%v", err)
	}
	synth, err := w.synthesizer()
	if err != nil {
		return err
	}
	u, err := speech(cmd.Context(), synth, r, c, w.hz)
	if err != nil {
		return err
	}
	done := spoken{File: w.out, Seconds: u.Sound.Span().Seconds(), Rate: w.hz, Character: c.Name, Synthesizer: synth.Name(), PitchHz: math.Round(voice.MiddlePitch(u.Sound)), Timed: u.Timed}
	if w.visemes {
		for _, v := range u.Visemes {
			done.Visemes = append(done.Visemes, shape{v.At.Milliseconds(), v.Shape.String()})
		}
	}
	if w.out == "" {
		s, err := post(bank.One("speech", u.Sound), "speech", w.hz, w.volume)
		if err == nil {
			err = play(cmd.Context(), s)
		}
		if err != nil {
			return err
		}
	} else if err := os.WriteFile(w.out, u.Sound.Scaled(w.volume).AppendWAV(nil), 0o644); err != nil {
		return err
	}
	return cli.Print(cmd, done, func(t *cli.Table) {
		t.Text(fmt.Sprintf("%s: %.2f s, %d Hz, %s by %s, pitch %.0f Hz", cmp.Or(done.File, "played"), done.Seconds, done.Rate, done.Character, done.Synthesizer, done.PitchHz))
		for _, v := range done.Visemes {
			t.Row(v.MS, v.Shape)
		}
	})
}

// aloud makes a running robot say a text.
func (w *wishes) aloud(cmd *cobra.Command, text string) error {
	for _, name := range []string{"out", "synth", "voice", "key-file", "rate", "volume", "visemes"} {
		if cmd.Flags().Changed(name) {
			return cli.Usage("-%s is not for a robot that speaks itself (-root)", name)
		}
	}
	if cmd.Flags().Changed("character") && w.character != "plain" {
		return cli.Usage("-character %.40q: a robot speaks in its own voice or plain", w.character)
	}
	e, err := mindlink.NewClient(w.root).Say(cmd.Context(), mindlink.Say{Text: text, Plain: w.character == "plain", Language: w.language, Duration: w.duration, Pitch: w.pitch, Program: "robotkit"},
		func(mindlink.Progress) error { return nil })
	if err != nil {
		return err
	}
	if e.Outcome != mindlink.Done {
		return errs.Coded(errs.Conflict, e.Outcome, "stopped after %d ms: %s", e.AtMS, e.Reason)
	}
	return cli.PrintLine(cmd, e, func() string { return fmt.Sprintf("said in %.1f s", float64(e.AtMS)/1000) })
}

// speech makes the speech of a clean text.
func speech(ctx context.Context, synth voice.Synthesizer, r voice.Request, c voice.Character, hz int) (voice.Utterance, error) {
	u, err := synth.Speak(ctx, r)
	if err == nil {
		u, err = c.Apply(u)
	}
	if err == nil {
		u.Sound, err = u.Sound.At(hz)
	}
	return u, err
}
