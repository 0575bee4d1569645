package simapp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/body/amigobot/amigobotsim"
	"kennel/edge/body/amigobot/sysmode"
	"kennel/edge/sim/plane"
	"kennel/edge/sim/uart"
	"kennel/infra/atomicfile"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// amigobot holds the flags of the command.
type amigobot struct {
	cfg                                   amigobotsim.Config
	listen, pty, socket, system, aux2     string
	where, state, version, sounds, serial string
	set                                   []string
	faults                                amigobotsim.Faults
	modem, hand                           bool
	volume                                float64
	truth                                 time.Duration
}

func amigobotCommand() *cobra.Command {
	var o amigobot
	cmd := &cobra.Command{
		Use:   "amigobot",
		Short: "Run a simulated AmigoBot for any client program",
		Long: `Run a simulated AmigoBot with AmigOS. Clients reach its Control port at a TCP address (-listen), a pseudo-terminal (-pty) or a Unix socket
(-socket), one client at a time; it answers byte for byte as the robot does. ARIA clients look for a robot at TCP port 8101.

With -hand it reads from standard input what a hand does to the robot, one command per line (help lists them). With -state the robot keeps
its FLASH memory in a folder: parameters, sounds and program, as robotkit amigo stores them.`,
		Example: `  robotsim amigobot -listen localhost:8101
  robotsim amigobot -pty /tmp/ttyS0 -world room -seed 7
  robotsim amigobot -listen :8101 -system /tmp/amigo.system -state ./amigo -hand
  robotsim amigobot -listen :8101 -set SInfoCycle=1 -set Name=Rover -loss 0.05
  robotsim amigobot -listen localhost:8101 -world room -truth 1s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "", "TCP address of the Control port, such as localhost:8101; port 0: any free one")
	f.StringVar(&o.pty, "pty", "", "create this link to a pseudo-terminal as the Control port")
	f.StringVar(&o.socket, "socket", "", "create this Unix socket as the Control port")
	f.StringVar(&o.system, "system", "", "TCP address or new Unix socket of the System port, which is also AUX1")
	f.StringVar(&o.aux2, "aux2", "", "TCP address or new Unix socket of the AUX2 port")
	f.StringVar(&o.where, "world", "", worldUsage)
	f.StringVar(&o.state, "state", "", "folder for the robot's FLASH memory (default: not kept)")
	f.StringVar(&o.version, "version", "1.3", "version of AmigOS: 1.0, 1.2 or 1.3")
	f.StringVar(&o.serial, "serial", "", "serial number (default SIM00001)")
	f.StringArrayVar(&o.set, "set", nil, "FLASH parameter, KEYWORD=VALUE; may be repeated")
	f.StringVar(&o.cfg.Profile, "profile", "amigo", "build of the robot: "+strings.Join(amigobotsim.Profiles(), " or "))
	f.Uint64Var(&o.cfg.Seed, "seed", 1, "seed of noise and other random behaviour")
	f.Float64Var(&o.cfg.Volts, "volts", 13, "battery, 10 to 13.8")
	f.Float64Var(&o.cfg.SonarNoise, "sonar-noise", 0.01, "standard deviation of sonar ranges, as a share of the range")
	f.Float64Var(&o.cfg.SonarGain, "sonar-gain", 0.5, "gain of the sonars, above 0 to 1: below 0.5 they see less far, above it they see carpet")
	f.BoolVar(&o.cfg.Lossy, "lossy", false, "accept one command per 10 ms and drop faster ones")
	f.BoolVar(&o.cfg.Throttle, "throttle", false, "limit the Control port to the speed of parameter HostBaud")
	f.BoolVar(&o.modem, "modem", false, "put the Control port behind a pair of radio modems (send WMS2 to link)")
	f.Float64Var(&o.faults.Loss, "loss", 0, "share of packets that are lost each way, 0 to 1")
	f.DurationVar(&o.faults.Delay, "delay", 0, "delay of bytes at the Control port, each way")
	f.Float64Var(&o.faults.Range, "range", 0, "range of the radio in metres from the start; 0: unlimited")
	f.StringVar(&o.sounds, "sounds", "", "write each played sound as a WAV file to this folder")
	f.Float64Var(&o.volume, "volume", 1, "volume of those files, 0 to 1")
	f.BoolVar(&o.hand, "hand", false, "read commands of a hand from standard input (help lists them)")
	f.DurationVar(&o.truth, "truth", 0, "interval for printing the robot's true and believed pose (m, rad) as a line of JSON; 0: never")
	return cmd
}

func (o *amigobot) run(cmd *cobra.Command) (err error) {
	out := cmd.OutOrStdout()
	if !(o.volume >= 0 && o.volume <= 1) {
		return cli.Usage("-volume %v: want 0 to 1", o.volume)
	}
	if o.truth < 0 || o.truth > 0 && o.truth < 10*time.Millisecond {
		return cli.Usage("-truth %v: want 10ms or more", o.truth)
	}
	ends := []end{{"-listen", o.listen, lineTCP}, {"-pty", o.pty, linePTY}, {"-socket", o.socket, lineSocket}}
	if ends = slices.DeleteFunc(ends, func(e end) bool { return e.where == "" }); len(ends) != 1 {
		return cli.Usage("want one of -listen ADDRESS, -pty FILE or -socket FILE")
	}
	ends = append(ends, end{"-system", o.system, lineAt}, end{"-aux2", o.aux2, lineAt}) // in the order of the ports
	if o.cfg.World, err = readWorld(o.where); err != nil {
		return err
	}
	var store *os.Root
	if o.state != "" {
		if err := os.MkdirAll(o.state, 0o755); err != nil {
			return fmt.Errorf("-state: %w", err)
		}
		if store, err = os.OpenRoot(o.state); err != nil {
			return fmt.Errorf("-state: %w", err)
		}
		defer store.Close() // files are synced when they are written
	}
	if o.cfg.Memory, err = openMemory(o.version, o.serial, o.set, store); err != nil {
		return err
	}
	o.cfg.OnStore = func() {
		if err := storeMemory(store, o.cfg.Memory); err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "-state:", err)
		}
	}
	o.cfg.OnSound = func(s amigobotsim.Sound) {
		if err := tellSound(out, o.sounds, o.volume, s); err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "-sounds:", err)
		}
	}
	if err := o.cfg.Validate(); err != nil {
		return cli.Usage("%w", err)
	}
	var lines [amigobotsim.Ports]uart.Line
	for port, e := range ends {
		if e.where == "" {
			continue
		}
		line, at, shut, err := e.open(e.flag, e.where)
		if err != nil {
			return err
		}
		defer func() { _ = shut() }() // nothing waits in it
		lines[port] = line
		fmt.Fprintf(out, "%s: %s\n", e.flag, at)
	}
	if o.modem {
		lines[amigobotsim.Control] = amigobotsim.NewModem().On(lines[amigobotsim.Control])
	}
	robot, err := amigobotsim.New(o.cfg)
	if err != nil {
		return err
	}
	robot.SetFaults(o.faults)
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if o.hand {
		// Nothing can end a read of standard input; it ends with the program.
		go hands(ctx, cmd.InOrStdin(), out, robot)
	}
	if o.truth > 0 {
		var printing sync.WaitGroup
		defer printing.Wait()
		defer cancel()
		printing.Go(func() { printTruth(ctx, out, robot, o.truth) })
	}
	return robot.Run(ctx, lines)
}

// truth is where a robot really is, while it knows only what its wheels have counted.
type truth struct {
	Time     float64    `json:"time"` // s
	X        float64    `json:"x"`    // m
	Y        float64    `json:"y"`
	Heading  float64    `json:"heading"`  // rad, counter-clockwise
	Believed plane.Pose `json:"believed"` // x, y, heading
	Wheels   [2]float64 `json:"wheels"`   // m/s, left and right
	Motors   bool       `json:"motors"`
	Blocked  bool       `json:"blocked"`
}

// printTruth prints the truth each time that so much of the robot's time has passed, until ctx ends.
func printTruth(ctx context.Context, out io.Writer, r *amigobotsim.Robot, every time.Duration) {
	lines := json.NewEncoder(out)
	for next := every; ; next += every {
		s, err := r.Await(ctx, func(s amigobotsim.State) bool { return s.Time >= next })
		if err != nil {
			return // ctx has ended
		}
		var w plane.State
		_ = r.InWorld(func(of *plane.World) error { w = of.State(); return nil }) // cannot fail
		if err := lines.Encode(truth{w.Time.Seconds(), w.Pose[0], w.Pose[1], w.Pose[2], s.Pose, s.Speed, s.Motors, w.Blocked}); err != nil {
			return // there is no reader
		}
	}
}

// end is the other end of one of the robot's ports: what flag asks for at where. open returns the line, where it is, and what ends it.
type end struct {
	flag, where string
	open        func(flag, where string) (line uart.Line, at string, shut func() error, err error)
}

// lineAt opens a line at a TCP address or a file.
func lineAt(flag, where string) (uart.Line, string, func() error, error) {
	if _, _, err := net.SplitHostPort(where); err == nil {
		return lineTCP(flag, where)
	}
	return lineSocket(flag, where)
}

func lineTCP(flag, addr string) (uart.Line, string, func() error, error) {
	s, at, err := uart.ListenTCP(addr)
	if err != nil {
		return nil, "", nil, fmt.Errorf("%s: %w", flag, err)
	}
	return s, "tcp:" + at.String(), s.Close, nil
}

func lineSocket(flag, path string) (uart.Line, string, func() error, error) {
	s, err := listenSocket(flag, path)
	if err != nil {
		return nil, "", nil, err
	}
	return s, path, s.Close, nil
}

func linePTY(flag, link string) (uart.Line, string, func() error, error) {
	pty, err := uart.OpenPTY()
	if err != nil {
		return nil, "", nil, fmt.Errorf("%s: %w", flag, err)
	}
	wire, err := uart.NewWire(pty.Master)
	if err == nil {
		err = pointTo(flag, link, pty.SlavePath)
	}
	if err != nil {
		return nil, "", nil, errors.Join(err, pty.Close())
	}
	return wire, link + " is " + pty.SlavePath, func() error { return errors.Join(os.Remove(link), pty.Close()) }, nil
}

// The files of a -state folder.
const (
	paramsFile  = "parameters.bin"
	soundsFile  = "sounds.bin"
	programFile = "program.bin"
)

// openMemory returns the FLASH of a robot: a new one, or the one that store keeps. Parameters of the command line win.
func openMemory(version, serial string, set []string, store *os.Root) (*sysmode.Memory, error) {
	m := amigobotsim.NewMemory(version)
	if store != nil {
		if err := loadMemory(store, m); err != nil {
			return nil, fmt.Errorf("-state: %w", err)
		}
	}
	if serial != "" {
		if err := m.Params.SetSerial(serial); err != nil {
			return nil, cli.Usage("-serial: %w", err)
		}
	}
	for _, s := range set {
		keyword, value, _ := strings.Cut(s, "=")
		if err := m.Params.Set(keyword, value); err != nil {
			return nil, cli.Usage("-set: %w", err)
		}
	}
	return m, nil
}

func loadMemory(store *os.Root, m *sysmode.Memory) error {
	b, err := store.ReadFile(paramsFile)
	if err == nil {
		err = m.Load(b)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", paramsFile, err)
	}
	for name, region := range map[string][]byte{soundsFile: m.Sounds, programFile: m.Program} {
		b, err := store.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		copy(region, b)
	}
	return nil
}

func storeMemory(store *os.Root, m *sysmode.Memory) error {
	if store == nil {
		return nil
	}
	for name, b := range map[string][]byte{paramsFile: m.Image(), soundsFile: m.Sounds, programFile: m.Program} {
		if err := atomicfile.Write(store, name, b, 0o644, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// tellSound tells of a sound, and writes it to folder at the volume, if that is not "" (AMIGO-SND-07).
func tellSound(out io.Writer, folder string, volume float64, s amigobotsim.Sound) error {
	if s.Number == 0 {
		fmt.Fprintf(out, "sound: tones % x\n", s.Tones)
		return nil
	}
	fmt.Fprintf(out, "sound %d: %s\n", s.Number, s.Name)
	if folder == "" {
		return nil
	}
	s.Samples = slices.Clone(s.Samples)
	for i, v := range s.Samples {
		s.Samples[i] = byte(128 + (float64(v)-128)*volume)
	}
	return os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.wav", s.Number)), s.WAV(), 0o644)
}

// deed is something that a hand does to the robot.
type deed struct {
	usage string
	do    func(r *amigobotsim.Robot, args []float64)
	least int // arguments
}

// deeds are the actions of a hand (AMIGO-SIM-06).
var deeds = map[string]deed{
	"on":      {"switch the power on", func(r *amigobotsim.Robot, _ []float64) { r.SetPower(true) }, 0},
	"off":     {"switch the power off", func(r *amigobotsim.Robot, _ []float64) { r.SetPower(false) }, 0},
	"reset":   {"press and release the red button", func(r *amigobotsim.Robot, _ []float64) { r.SetReset(true); r.SetReset(false) }, 0},
	"black":   {"press and release the black button", func(r *amigobotsim.Robot, _ []float64) { r.SetBlack(true); r.SetBlack(false) }, 0},
	"dip":     {"let the supply dip, which resets the controller", func(r *amigobotsim.Robot, _ []float64) { r.BrownOut() }, 0},
	"resume":  {"end single-stepping", func(r *amigobotsim.Robot, _ []float64) { r.Resume() }, 0},
	"volts":   {"VOLTS: charge the battery to a voltage", func(r *amigobotsim.Robot, a []float64) { r.SetVolts(a[0]) }, 1},
	"charger": {"0, 1 or 2: none, the standard or the fast one", func(r *amigobotsim.Robot, a []float64) { r.SetCharger(charger(a[0])) }, 1},
	"digital": {"BITS: levels at the digital inputs", func(r *amigobotsim.Robot, a []float64) { r.SetDigital(byte(int(a[0]))) }, 1},
	"analog":  {"PORT VOLTS: voltage at an analog port", func(r *amigobotsim.Robot, a []float64) { r.SetAnalog(int(a[0]), a[1]) }, 2},
	"drag":    {"LEFT RIGHT: load of the wheels, as shares of the motors' power", func(r *amigobotsim.Robot, a []float64) { r.SetDrag(a[0], a[1]) }, 2},
	"hold": {"LEFT RIGHT: 1 holds a wheel, 0 lets it go", func(r *amigobotsim.Robot, a []float64) {
		f := r.State().Faults
		f.Blocked = [2]bool{a[0] != 0, a[1] != 0}
		r.SetFaults(f)
	}, 2},
	"grip": {"LEFT RIGHT: 0 takes the grip of a wheel, as if it came off, 1 gives it back", func(r *amigobotsim.Robot, a []float64) {
		f := r.State().Faults
		f.Off = [2]bool{a[0] == 0, a[1] == 0}
		r.SetFaults(f)
	}, 2},
	"system": {"hold the black button through a reset: System mode", func(r *amigobotsim.Robot, _ []float64) {
		r.SetBlack(true)
		r.SetReset(true)
		r.SetReset(false)
		r.SetBlack(false)
	}, 0},
}

func charger(n float64) amigobotsim.Charger {
	return amigobotsim.Charger(min(max(n, 0), float64(amigobotsim.FastCharger)))
}

// hands runs the actions in the lines of in, until in ends.
func hands(ctx context.Context, in io.Reader, out io.Writer, r *amigobotsim.Robot) {
	for lines := bufio.NewScanner(in); ctx.Err() == nil && lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		if err := act(out, r, words[0], words[1:]); err != nil {
			fmt.Fprintln(out, "error:", err)
		}
	}
}

func act(out io.Writer, r *amigobotsim.Robot, name string, words []string) error {
	switch name {
	case "help":
		for _, name := range slices.Sorted(maps.Keys(deeds)) {
			fmt.Fprintf(out, "%-8s %s\n", name, deeds[name].usage)
		}
		fmt.Fprintf(out, "%-8s %s\n", "state", "show the robot")
		return nil
	case "state":
		s := r.State()
		fmt.Fprintf(out, "%v: motors %t, sonar %t, %.1f V, x %.3f m, y %.3f m, heading %.1f deg, wheels %.3f and %.3f m/s, lights %+v, up %v\n",
			s.Mode, s.Motors, s.Sonar, s.Volts, s.Pose[0], s.Pose[1], s.Pose[2]*180/math.Pi, s.Speed[0], s.Speed[1], s.Lights,
			s.Time.Round(time.Second))
		return nil
	}
	d, ok := deeds[name]
	if !ok {
		return fmt.Errorf("%.40q: want one of %s, help or state", name, errs.List(slices.Sorted(maps.Keys(deeds))))
	}
	if len(words) != d.least {
		return fmt.Errorf("%s: want %s, got %d: %s", name, cli.Count(d.least, "number"), len(words), d.usage)
	}
	args := make([]float64, len(words))
	for i, w := range words {
		n, err := strconv.ParseInt(w, 0, 32)
		if args[i] = float64(n); err != nil {
			if args[i], err = strconv.ParseFloat(w, 64); err != nil {
				return fmt.Errorf("%s %.40q: want a number", name, w)
			}
		}
	}
	d.do(r, args)
	fmt.Fprintf(out, "%s: %v\n", name, r.State().Mode)
	return nil
}
