package vector

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"kennel/edge/body"
	"kennel/edge/body/species"
	"kennel/edge/body/vector/imu"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/mic/miclink"
	"kennel/edge/startup"
	"kennel/infra/runner"
)

// flags are what robotd can be told for a Vector.
type flags struct {
	imu      string // the inertial sensors' device; "": the usual one below the root, if it exists
	rate     rate
	factory  bool   // answer the factory's command line, on a robot that has not left it
	firmware string // file with the body's own program; "": the body's usual one below the root
}

// rate is how often the inertial sensors measure, in samples a second.
type rate int

func (r *rate) String() string { return strconv.Itoa(int(*r)) }
func (*rate) Type() string     { return "int" }

func (r *rate) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err == nil {
		_, err = imu.RateOf(n)
	}
	*r = rate(n)
	return err
}

func equip(f *pflag.FlagSet) func(species.Host) (species.Opening, error) {
	v := &flags{rate: 200}
	f.StringVar(&v.imu, "imu", "", "inertial sensors: a spidev channel, or the Unix socket of simulated ones; one that is "+
		"given and does not work is fault 960 (default: "+
		imu.DefaultDevice+" below the root, if it exists)")
	f.Var(&v.rate, "imu-rate", "samples per second of the inertial sensors: 25, 50, 100, 200, 400, 800 or 1600")
	f.StringVar(&v.firmware, "firmware", "", "file with the firmware of the body's processor, installed if the body runs another "+
		"version (default: the usual one below the root)")
	f.BoolVar(&v.factory, "factory", false, "answer the factory's command line on the charging pad, if the robot's medical record says "+
		"that it has not left the factory")
	return func(h species.Host) (species.Opening, error) { return begin(h, v) }
}

// parts are those of a Vector beside its port: inertial sensors in the head, the firmware of its body, the factory's command line.
type parts struct {
	species.Host
	flags *flags
	imu   *imu.Reader
	firm  firmware
	cli   *vectordriver.Factory // the factory's command line; nil: none
	mics  *miclink.Server
}

func begin(h species.Host, f *flags) (species.Opening, error) {
	v := &parts{Host: h, flags: f}
	cfg, err := f.inertial(h.Root)
	if err == nil {
		v.imu, err = imu.New(cfg, h.Log)
	}
	return species.Opening{
		Open: v.openBody,
		Before: []startup.Stage{
			{Name: "firmware_file", GoOn: true, Do: v.readFirmware},
			{Name: "factory", GoOn: true, Do: v.openFactory},
			{Name: "microphones", GoOn: true, Do: v.openMics},
		},
		Services: []runner.Service{{Name: "inertial sensors", Run: v.imu.Run}, {Name: "microphones", Run: v.serveMics}},
	}, err
}

// openBody opens the body and brings its firmware, if there is one, to it.
func (v *parts) openBody(ctx context.Context) (b body.Body, unwell, err error) {
	b, up, err := open(ctx, vectordriver.Config{
		Device: v.Device, Sensors: v.imu, Timeout: species.OpenTimeout, HoldProcessor: true, Firmware: v.firm.due(), Factory: v.cli,
		Progress: v.progress(ctx), Tap: v.tap(),
	})
	v.updated(ctx, up, err)
	return b, up.Err, err
}

// openMics makes the socket on which other programs hear the microphones. Without it the robot is deaf and works.
func (v *parts) openMics(context.Context) error {
	root, err := os.OpenRoot(v.Root)
	if err != nil {
		return err
	}
	defer root.Close() // read only
	v.mics, err = miclink.Listen(root)
	return err
}

func (v *parts) serveMics(ctx context.Context) error {
	if v.mics == nil {
		<-ctx.Done() // a service that returns before is begun again
		return nil
	}
	return v.mics.Run(ctx)
}

// tap hands the microphones of each frame out.
func (v *parts) tap() func(*spine.BodyData, time.Duration) {
	if v.mics == nil {
		return nil
	}
	return func(m *spine.BodyData, at time.Duration) { v.mics.Tap(m.Seq, at, &m.Mics) }
}

func open(ctx context.Context, cfg vectordriver.Config) (body.Body, vectordriver.Update, error) {
	d, err := vectordriver.Open(ctx, cfg)
	if err != nil {
		var u vectordriver.Update
		if cfg.Firmware != nil && errors.As(err, new(*vectordriver.UpdateError)) {
			u.Wanted, u.Err = cfg.Firmware.String(), err
		}
		return nil, u, err // not a nil *Driver in an interface
	}
	return d, d.Update(), nil
}

// inertial returns the configuration of the inertial sensors: the named device, which must exist, or the usual one if it exists.
func (f *flags) inertial(root string) (imu.Config, error) {
	out := imu.Config{Device: f.imu, Expected: f.imu != ""}
	if !out.Expected {
		out.Device = filepath.Join(root, imu.DefaultDevice)
	}
	var err error
	out.Rate, err = imu.RateOf(int(f.rate))
	return out, err
}
