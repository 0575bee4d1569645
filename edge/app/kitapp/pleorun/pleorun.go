// Package pleorun has the command of robotkit that runs an application on a simulated Pleo.
package pleorun

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/pleodebug"
	"kennel/edge/body/pleo/pleosim"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/wav"
)

const (
	maxTime    = time.Hour
	maxLog     = 100_000 // messages
	maxFile    = 4 << 20 // bytes of FILE
	touchFor   = pleodebug.TouchFor
	defaultFor = 10 * time.Second
)

// Command returns the command run.
func Command() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "run CARD|FILE",
		Short: "Run an application on a simulated Pleo",
		Long: `Run the application on a card, which is a folder, or in one file (URF or AMX), on a simulated Pleo, and print what happens with the time since power-on.
A script AMX runs as the startup script if it is called startup or init, as sensors or main if that is its name, and as main otherwise.

The time is simulated: an hour takes seconds. With the same -seed a run is always the same.

-touch touches a pad at a time: head, chin, back, tail, left_arm, right_arm, left_leg or right_leg, for 300 ms unless a time follows.
-set gives any sensor a reading from a time on: "light=20@3s". -type enters a line on the monitor: "pkt send ?@1s".

With -monitor or -pty Pleo runs in real time, and a terminal that connects has its serial line: robotkit pleo monitor, nc, or any program for serial ports. "help" lists the
commands of the monitor.

The exit code is 1 if a script failed or a file was refused.`,
		Example: `  robotkit pleo run demo/build
  robotkit pleo run demo.urf -touch head@2s -touch back@3s+1s -for 10s
  robotkit pleo run demo.urf -set light=20@3s -set battery=10@5s -wav said.wav
  robotkit pleo run demo.urf -monitor localhost:7000
  robotkit pleo run demo.urf -pty /tmp/ttyPleo
  robotkit pleo run demo.urf -type 'motion play bow@1s' -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd, args[0], f) },
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.touch, "touch", nil, "touch a pad, `PAD@TIME[+DURATION]`")
	fl.StringArrayVar(&f.set, "set", nil, "give a sensor a reading, `SENSOR=VALUE@TIME`")
	fl.StringArrayVar(&f.lines, "type", nil, "enter a line on the monitor, `LINE@TIME`")
	fl.DurationVar(&f.lasts, "for", defaultFor, "how long Pleo is on, at most 1h")
	fl.StringVar(&f.profile, "profile", lifeos.Profile11.String(), "generation of the firmware, `1.1 or 1.0`")
	fl.StringVar(&f.flash, "flash", "", "`folder` with the content of the dataflash (default: empty)")
	fl.StringVar(&f.wav, "wav", "", "write what the loudspeaker plays to this WAV `file`, silence left out")
	fl.StringVar(&f.monitor, "monitor", "", "run in real time, with the monitor for terminals over TCP at this `address`, until -for is over if it is given")
	fl.StringVar(&f.pty, "pty", "", "likewise, on a pseudo-terminal with this `link`")
	fl.Uint64Var(&f.seed, "seed", 1, "`number` that random choices depend on")
	fl.BoolVar(&f.all, "all", false, "print each trigger of a sensor too")
	return cmd
}

type flags struct {
	touch, set, lines   []string
	profile, flash, wav string
	monitor, pty        string
	lasts               time.Duration
	seed                uint64
	all                 bool
}

// event is an input at a time.
type event struct {
	at time.Duration
	do func(p *player)
}

// entry is a line of the output.
type entry struct {
	MS    int64  `json:"ms"` // since power-on
	Level string `json:"level"`
	Type  string `json:"type"`
	Text  string `json:"text"`
}

// report is the output in JSON.
type report struct {
	Log     []entry            `json:"log"`
	Dropped int                `json:"dropped,omitempty"` // messages beyond 100,000
	Power   string             `json:"power"`
	Joints  map[string]float64 `json:"joints"` // degrees at the end
	Samples int                `json:"samples"`
	Errors  int                `json:"errors"`
}

// player is a Pleo that runs.
type player struct {
	os   *lifeos.System
	body *pleosim.Body
	out  report
	all  bool
	told func(lifeos.Message, entry) // takes messages as they come; nil: they are kept for the end
	// failed is why a message could not be printed.
	failed error
}

func (p *player) log(m lifeos.Message) {
	if m.Level <= lifeos.Error && m.Type != lifeos.LogApplication {
		p.out.Errors++
	}
	if m.Level == lifeos.Debug && !p.all {
		return
	}
	if p.told == nil && len(p.out.Log) >= maxLog {
		p.out.Dropped++
		return
	}
	e := entry{m.At.Milliseconds(), strings.ToLower(m.Level.String()), m.Type.String(), m.Text}
	if p.told != nil {
		p.told(m, e)
		return
	}
	p.out.Log = append(p.out.Log, e)
}

func run(cmd *cobra.Command, name string, f flags) error {
	if f.lasts <= 0 || f.lasts > maxTime {
		return cli.Usage("-for %v: want more than 0 and at most %v", f.lasts, maxTime)
	}
	profile, err := lifeos.ParseProfile(f.profile)
	if err != nil {
		return cli.Usage("-%w", err)
	}
	events, err := f.events()
	if err != nil {
		return err
	}
	cfg := lifeos.Config{Profile: profile, Seed: f.seed}
	card, done, err := openCard(name)
	if err != nil {
		return err
	}
	defer done()
	cfg.Card = card
	if f.flash != "" {
		flash, err := pleosim.OpenFolder(f.flash)
		if err != nil {
			return openError(err)
		}
		defer flash.Close() // every write is synced
		cfg.Flash = flash
	}
	p := &player{body: pleosim.New(), all: f.all, out: report{Log: []entry{}}}
	cfg.Hardware, cfg.Log = p.body, p.log
	p.body.Set(lifeos.SensorCardDetect, 1)
	begin := func() { p.os = lifeos.New(cfg) }
	if f.monitor != "" || f.pty != "" {
		lasts := f.lasts
		if !cmd.Flags().Changed("for") {
			lasts = 0
		}
		return p.serveMonitor(cmd, f, begin, events, lasts)
	}
	begin()
	if err := p.play(cmd, events, f.lasts); err != nil {
		return err
	}
	if f.wav != "" {
		sound := &wav.Sound{Rate: lifeos.SampleRate, Channels: 1, Samples: loud(p.body.Speaker)}
		if err := os.WriteFile(f.wav, wav.Append(nil, sound), 0o666); err != nil {
			return fmt.Errorf("write %s: %w", f.wav, err)
		}
	}
	return p.print(cmd)
}

// loud scales samples of 10 bits to 16.
func loud(samples []int16) []int16 {
	out := make([]int16, len(samples))
	for i, s := range samples {
		out[i] = s * 64
	}
	return out
}

// play runs until the time is over, the power is off or the user interrupts.
func (p *player) play(cmd *cobra.Command, events []event, lasts time.Duration) error {
	const piece = 100 * time.Millisecond
	for p.os.Now() < lasts && p.os.Power() == lifeos.On {
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		next := min(p.os.Now()+piece, lasts)
		for len(events) > 0 && events[0].at <= p.os.Now() {
			events[0].do(p)
			events = events[1:]
		}
		if len(events) > 0 {
			next = min(next, events[0].at)
		}
		p.body.Run(p.os, max(next, p.os.Now()+lifeos.Tick))
	}
	return nil
}

func (p *player) print(cmd *cobra.Command) error {
	p.out.Power, p.out.Samples, p.out.Joints = p.os.Power().String(), len(p.body.Speaker), map[string]float64{}
	for j := range lifeos.JointCount {
		p.out.Joints[strings.ToLower(j.String())] = math.Round(10*p.body.Joint(j).Position) / 10
	}
	err := cli.Print(cmd, p.out, func(t *cli.Table) {
		for _, e := range p.out.Log {
			t.Row(fmt.Sprintf("%.3f s", float64(e.MS)/1000), e.what(), e.Text)
		}
	})
	if err == nil && p.out.Errors > 0 {
		return errs.New(errs.Invalid, "errors in the log: %d", p.out.Errors)
	}
	return err
}

// openCard returns the card in a folder, or one with a single file.
func openCard(name string) (lifeos.Storage, func(), error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, openError(err)
	}
	if info.IsDir() {
		folder, err := pleosim.OpenFolder(name)
		if err != nil {
			return nil, nil, openError(err)
		}
		return folder, func() { _ = folder.Close() }, nil // every write is synced
	}
	if info.Size() > maxFile {
		return nil, nil, errs.New(errs.Invalid, "%s: %d bytes, want at most %d", name, info.Size(), maxFile)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, openError(err)
	}
	base := strings.ToLower(filepath.Base(name))
	switch filepath.Ext(base) {
	case ".urf":
	case ".amx":
		if !slices.Contains([]string{"startup.amx", "init.amx", "sensors.amx", "main.amx"}, base) {
			base = "main.amx"
		}
	default:
		return nil, nil, errs.New(errs.Invalid, "%s: want a folder, a URF or an AMX file", name)
	}
	return pleosim.Card{base: data}, func() {}, nil
}

func openError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errs.New(errs.NotFound, "%w", err)
	}
	return err
}

// events returns the inputs of the flags, sorted by time.
func (f *flags) events() ([]event, error) {
	var list []event
	for _, text := range f.touch {
		pad, at, lasts, err := moment(text, touchFor)
		if err != nil {
			return nil, cli.Usage("-touch %.60q: %w", text, err)
		}
		id, ok := lifeos.SensorNamed(pad)
		if !ok || id < lifeos.SensorHead || id > lifeos.SensorTail {
			return nil, cli.Usage("-touch %.60q: no pad %.20q, want head, chin, back, tail, left_arm, right_arm, left_leg or right_leg", text, pad)
		}
		list = append(list, event{at, func(p *player) { p.body.Set(id, 1) }}, event{at + lasts, func(p *player) { p.body.Set(id, 0) }})
	}
	for _, text := range f.set {
		what, at, _, err := moment(text, 0)
		name, value, ok := strings.Cut(what, "=")
		v, err2 := strconv.ParseInt(value, 10, 32)
		if err := cmp.Or(err, err2); err != nil || !ok {
			return nil, cli.Usage("-set %.60q: want SENSOR=VALUE@TIME, such as light=20@3s", text)
		}
		id, known := lifeos.SensorNamed(name)
		if !known {
			return nil, cli.Usage("-set %.60q: no sensor %.20q", text, name)
		}
		list = append(list, event{at, func(p *player) { p.body.Set(id, int32(v)) }})
	}
	for _, text := range f.lines {
		line, at, _, err := moment(text, 0)
		if err != nil {
			return nil, cli.Usage("-type %.60q: %w", text, err)
		}
		list = append(list, event{at, func(p *player) {
			for answer := range strings.Lines(p.os.Terminal(line)) {
				p.log(lifeos.Message{At: p.os.Now(), Level: lifeos.Info, Type: lifeos.LogMonitor, Text: strings.TrimRight(answer, "\n")})
			}
		}})
	}
	slices.SortStableFunc(list, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return list, nil
}

// moment reads "WHAT@TIME" or "WHAT@TIME+DURATION".
func moment(text string, lasts time.Duration) (what string, at, long time.Duration, err error) {
	i := strings.LastIndex(text, "@")
	if i < 0 {
		return "", 0, 0, errors.New("want a time behind @, such as @2s")
	}
	begin, duration, longer := strings.Cut(text[i+1:], "+")
	if longer && lasts > 0 {
		if lasts, err = time.ParseDuration(duration); err != nil {
			return "", 0, 0, err
		}
	}
	if at, err = time.ParseDuration(begin); err != nil {
		return "", 0, 0, err
	}
	if at < 0 || at > maxTime || lasts < 0 || lasts > maxTime {
		return "", 0, 0, fmt.Errorf("want times from 0 to %v", maxTime)
	}
	return text[:i], at, lasts, nil
}
