package voice

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kennel/edge/sound"
	"kennel/infra/errs"
	"kennel/infra/proc"
	"kennel/infra/wav"
)

// maxMaking is how long a program may make speech of a text.
const maxMaking = 30 * time.Second

// voiceName is the form of a voice's name: it is an argument of a program.
var voiceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_+-]{0,39}$`)

// program is a synthesiser on this machine, a process for each text.
type program struct {
	name, path, pkg string
	voice           string // default
	args            func(voice string, speed, pitch float64, out string) []string
	own             bool // has speed and pitch of its own
	visemes         func(printed string, s *sound.Sound) []Viseme
	timed           bool
	voices          func(language string) string
}

// find returns the path of a program, or an error that says how to install it.
func find(name, pkg string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", errs.New(errs.Unavailable, "%s is not installed: install the package %s, or choose another synthesiser", name, pkg)
	}
	return path, nil
}

// NewEspeak returns espeak-ng, which speaks more than a hundred languages. An error says how to install it.
func NewEspeak() (Synthesizer, error) {
	path, err := find("espeak-ng", "espeak-ng")
	if err != nil {
		return nil, err
	}
	return &program{name: "espeak-ng", path: path, own: true, visemes: estimatedVisemes,
		voices: func(language string) string { return strings.ToLower(cmp.Or(language, "en-us")) },
		args: func(voice string, speed, pitch float64, out string) []string {
			// 175 words a minute are its usual speed, 50 its usual pitch; its pitches are about an octave around it.
			wpm := min(max(175*speed, 80), 450)
			return []string{"-v", voice, "-s", strconv.Itoa(int(wpm)), "-p", strconv.Itoa(int(min(max(50*pitch, 0), 99))), "-x", "--sep=_", "-w", out, "--stdin"}
		}}, nil
}

// NewFlite returns flite, which speaks English, softer than espeak-ng, and tells the times of its phones. An error says how to install it.
func NewFlite() (Synthesizer, error) {
	path, err := find("flite", "flite")
	if err != nil {
		return nil, err
	}
	return &program{name: "flite", path: path, timed: true, visemes: func(printed string, _ *sound.Sound) []Viseme { return timedVisemes(printed) },
		voices: func(string) string { return "slt" },
		args: func(voice string, _, _ float64, out string) []string {
			return []string{"-voice", voice, "-psdur", "-f", "/dev/stdin", "-o", out}
		}}, nil
}

// Name implements Synthesizer.
func (p *program) Name() string { return p.name }

// Speak implements Synthesizer. The program is killed when ctx ends.
func (p *program) Speak(ctx context.Context, r Request) (u Utterance, err error) {
	speed, pitch, err := r.factors()
	if err != nil {
		return u, err
	}
	voice := cmp.Or(r.Voice, p.voices(r.Language))
	if !voiceName.MatchString(voice) {
		return u, errs.New(errs.Invalid, "%s: expected a voice of letters, digits, +, - and _, found %.40q", p.name, voice)
	}
	dir, err := os.MkdirTemp("", "kennel-voice-")
	if err != nil {
		return u, fmt.Errorf("%s: %w", p.name, err)
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "out.wav")
	printed, err := os.Create(filepath.Join(dir, "printed"))
	if err != nil {
		return u, fmt.Errorf("%s: %w", p.name, err)
	}
	defer printed.Close()
	making, cancel := context.WithTimeout(ctx, maxMaking)
	defer cancel()
	own := 1.0
	if p.own {
		own = min(max(speed, 80.0/175), 450.0/175) // what is beyond is done with the samples
	}
	err = proc.Once(making, proc.Spec{Name: p.name, Path: p.path, Args: p.args(voice, own, 1, out), Stdin: strings.NewReader(r.Text + "\n"), Stdout: printed, StopSignal: syscall.SIGKILL, StopTimeout: time.Millisecond})
	if ctx.Err() != nil {
		return u, fmt.Errorf("%s: %w", p.name, ctx.Err())
	} else if err != nil {
		return u, errs.New(errs.Unavailable, "voice %s: %w", voice, err)
	}
	if u.Sound, err = readWAV(out); err != nil {
		return u, fmt.Errorf("%s, voice %s: %w", p.name, voice, err)
	}
	if err := tooLong(p.name, u.Sound); err != nil {
		return u, err
	}
	phones, err := os.ReadFile(printed.Name())
	if err != nil {
		return u, fmt.Errorf("%s: %w", p.name, err)
	}
	u.Visemes, u.Timed = p.visemes(string(phones), u.Sound), p.timed
	if !p.own {
		own = 1
	}
	return u.Shaped(speed/own, pitch)
}

// readWAV reads what a program wrote.
func readWAV(name string) (*sound.Sound, error) {
	fi, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if fi.Size() > wav.MaxFile {
		return nil, errs.New(errs.Invalid, "expected a file of at most %d bytes, found %d", wav.MaxFile, fi.Size())
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return sound.ParseWAV(b)
}
