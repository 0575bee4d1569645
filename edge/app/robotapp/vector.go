package robotapp

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector"
	"kennel/edge/body/vector/imu"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectorplant"
	"kennel/edge/control"
	"kennel/edge/faultcode"
	"kennel/edge/mic/miclink"
	"kennel/edge/startup"
	"kennel/infra/runner"
)

// vectorFirmware is where the program of the body's processor is, below the root; the source names the file and not its folder: own default.
const vectorFirmware = "anki/etc/syscon.dfu"

var vectorKind = Kind{
	Device: vector.DefaultDevice,
	Model:  func() (control.Model, error) { return vectorplant.Model(vectorplant.Default()) },
	Fault:  func(err error) faultcode.Code { return faultcode.Code(vector.FaultOf(err)) },
	Open: func(ctx context.Context, device string) (body.Body, error) {
		b, _, err := openVector(ctx, vector.Config{Device: device, Timeout: openTimeout})
		return b, err
	},
	begin: beginVector,
}

// vectorBody runs the parts of a Vector beside its port: inertial sensors in the head, the firmware of its body, the factory's command line.
type vectorBody struct {
	*core
	imu  *imu.Reader
	firm firmware
	cli  *vector.Factory // the factory's command line; nil: none
	mics *miclink.Server
	open func(ctx context.Context, cfg vector.Config) (body.Body, vector.Update, error)
}

func beginVector(c *core) (opening, error) {
	v := &vectorBody{core: c, open: openVector}
	cfg, err := c.cfg.inertial()
	if err == nil {
		v.imu, err = imu.New(cfg, c.log)
	}
	return opening{
		open: v.openBody,
		before: []startup.Stage{
			{Name: "firmware_file", GoOn: true, Do: v.readFirmware},
			{Name: "factory", GoOn: true, Do: v.openFactory},
			{Name: "microphones", GoOn: true, Do: v.openMics},
		},
		services: []runner.Service{{Name: "inertial sensors", Run: v.imu.Run}, {Name: "microphones", Run: v.serveMics}},
	}, err
}

// openBody opens the body and brings its firmware, if there is one, to it.
func (v *vectorBody) openBody(ctx context.Context) (b body.Body, unwell, err error) {
	b, up, err := v.open(ctx, vector.Config{
		Device: v.cfg.port(), Sensors: v.imu, Timeout: openTimeout, HoldProcessor: true, Firmware: v.firm.due(), Factory: v.cli, Progress: v.progress(ctx),
		Tap: v.tap(),
	})
	v.updated(ctx, up, err)
	return b, up.Err, err
}

// openMics makes the socket on which other programs hear the microphones. Without it the robot is deaf and works.
func (v *vectorBody) openMics(context.Context) error {
	root, err := os.OpenRoot(v.cfg.Root)
	if err != nil {
		return err
	}
	defer root.Close() // read only
	v.mics, err = miclink.Listen(root)
	return err
}

func (v *vectorBody) serveMics(ctx context.Context) error {
	if v.mics == nil {
		<-ctx.Done() // a service that returns before is begun again
		return nil
	}
	return v.mics.Run(ctx)
}

// tap hands the microphones of each frame out.
func (v *vectorBody) tap() func(*spine.BodyData, time.Duration) {
	if v.mics == nil {
		return nil
	}
	return func(m *spine.BodyData, at time.Duration) { v.mics.Tap(m.Seq, at, &m.Mics) }
}

func openVector(ctx context.Context, cfg vector.Config) (body.Body, vector.Update, error) {
	d, err := vector.Open(ctx, cfg)
	if err != nil {
		var u vector.Update
		if cfg.Firmware != nil && errors.As(err, new(*vector.UpdateError)) {
			u.Wanted, u.Err = cfg.Firmware.String(), err
		}
		return nil, u, err // not a nil *Driver in an interface
	}
	return d, d.Update(), nil
}

// inertial returns the configuration of the inertial sensors: the named device, which must exist, or the usual one if it exists.
func (c Config) inertial() (imu.Config, error) {
	out := imu.Config{Device: c.IMU, Expected: c.IMU != ""}
	if !out.Expected {
		out.Device = filepath.Join(c.Root, imu.DefaultDevice)
	}
	if c.IMURate == 0 {
		return out, nil
	}
	var err error
	out.Rate, err = imu.RateOf(c.IMURate)
	return out, err
}
