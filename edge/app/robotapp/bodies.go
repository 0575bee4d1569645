package robotapp

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector"
	"kennel/edge/body/vector/imu"
	"kennel/edge/faultcode"
	"kennel/edge/helm"
)

// kind is how robotd opens a kind of body.
type kind struct {
	device string // its usual port, below the root
	// sensors is the usual device of the inertial ones, below the root; "": such a body has none of its own.
	sensors string
	// firmware is where its program is, below the root; the source names the file and not its folder: own default.
	firmware string
	// load reads a firmware file. nil: robotd does not update such bodies.
	load func([]byte) (*vector.Firmware, error)
	// open opens it and brings fw, if there is one, to it; it says what became of that whether or not it could be opened.
	open func(ctx context.Context, device string, inertial vector.Sensors, fw *vector.Firmware, f *vector.Factory, tell func(vector.Progress)) (body.Body, vector.Update, error)
	// fault maps an error of open to the fault it stands for; 0: to none in particular.
	fault func(error) faultcode.Code
	model func() (helm.Model, error)
	// status is the bits of RobotStatus that the body itself decides.
	status func(*body.Sense) uint32
}

// openTimeout is how long one attempt to open a body may take.
const openTimeout = 3 * time.Second

// bodies is every kind of body this program can drive, by the name -body takes.
var bodies = map[string]kind{
	"vector": {
		device:   vector.DefaultDevice,
		firmware: "anki/etc/syscon.dfu",
		load:     vector.ParseFirmware,
		sensors:  imu.DefaultDevice,
		open: func(ctx context.Context, device string, inertial vector.Sensors, fw *vector.Firmware, f *vector.Factory, tell func(vector.Progress)) (body.Body, vector.Update, error) {
			d, err := vector.Open(ctx, vector.Config{Device: device, Sensors: inertial, Timeout: openTimeout, HoldProcessor: true, Firmware: fw, Factory: f, Progress: tell})
			if err != nil {
				var u vector.Update
				if fw != nil && errors.As(err, new(*vector.UpdateError)) {
					u.Wanted, u.Err = fw.String(), err
				}
				return nil, u, err // not a nil *Driver in an interface
			}
			return d, d.Update(), nil
		},
		model:  helm.Vector,
		status: vector.RobotStatus,
		fault:  func(err error) faultcode.Code { return faultcode.Code(vector.FaultOf(err)) },
	},
}

func bodyNames() string { return strings.Join(slices.Sorted(maps.Keys(bodies)), ", ") }

// port returns the device to open.
func (c Config) port() string {
	if c.Device != "" {
		return c.Device
	}
	return filepath.Join(c.Root, bodies[c.Body].device)
}

// inertial says where the inertial sensors are. Those that were named the robot has; of the usual ones it has those that are there.
func (c Config) inertial() (imu.Config, error) {
	out := imu.Config{Device: c.IMU, Expected: c.IMU != ""}
	if !out.Expected {
		out.Device = filepath.Join(c.Root, bodies[c.Body].sensors)
	}
	if c.IMURate == 0 {
		return out, nil
	}
	var err error
	out.Rate, err = imu.RateOf(c.IMURate)
	return out, err
}
