package cubesim

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/edge/cube"
)

// Config describes a cube. The zero value but for Address is one with a full cell and its program.
type Config struct {
	Address string
	Volts   float64 // of its cell; 0 is 1.5
	Version string  // of its program; "" is DefaultVersion
	Empty   bool    // it has lost its program (part of VEC-CUBEFW-01)
}

// DefaultVersion is the version of the program of a simulated cube, the date and time when it was built.
const DefaultVersion = "Nov 26 2026 1000"

// Own defaults.
const (
	fullVolts    = 1.5
	advertEvery  = 100 * time.Millisecond
	standardG    = 9.80665
	weakest      = -95 // dBm, at which a radio hears it
	strongAt     = -45 // dBm, at 0.1 m
	leastPace    = 8 * time.Millisecond
	maxWaiting   = 64 // packets for one connection
	samplesPaced = 3  // of one interval
)

// Cube is one cube. Its methods are safe for concurrent use.
type Cube struct {
	mu  sync.Mutex
	cfg Config

	off    bool // the cell is out
	rssi   int8
	advert time.Duration // until the next advertisement

	robot      *central // that is connected; nil: none
	subscribed bool
	pace       time.Duration
	next       time.Duration // until the next sample
	report     cube.Report
	filled     int

	steps   [256]cube.Step
	highest int // index of a step that was set; -1: none
	playing bool
	start   [cube.LightCount]uint8
	played  time.Duration // since the start
}

// New returns a cube that lies near a robot.
func New(cfg Config) *Cube {
	if cfg.Volts == 0 {
		cfg.Volts = fullVolts
	}
	if cfg.Version == "" && !cfg.Empty {
		cfg.Version = DefaultVersion
	}
	return &Cube{cfg: cfg, rssi: strongAt, highest: -1, pace: cube.Background}
}

// Address returns the cube's factory id.
func (c *Cube) Address() string { return c.cfg.Address }

// Step lets dt pass, in which the cube feels an acceleration in m/s2 along its own axes. away is how far its robot is, in metres.
func (c *Cube) Step(dt time.Duration, accel [3]float64, away float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.off {
		return
	}
	c.rssi = int8(max(-127, math.Round(strongAt-20*math.Log10(max(away, 0.1)/0.1)))) // in free space
	c.advert -= dt
	c.played += dt
	if c.robot == nil {
		return
	}
	if c.rssi < weakest {
		c.lose()
		return
	}
	if c.next -= dt; c.next > 0 {
		return
	}
	c.next += c.pace / samplesPaced
	for i, a := range accel {
		c.report.Samples[c.filled][i] = int16(min(max(math.Round(1000*a/standardG), math.MinInt16), math.MaxInt16))
	}
	if c.filled++; c.filled == len(c.report.Samples) {
		c.filled = 0
		c.report.BatteryRaw = c.battery()
		if c.subscribed {
			c.robot.post(cube.Packet{Kind: cube.KindNotify, Characteristic: cube.Motion, Value: c.report.Append(nil)})
		}
	}
}

func (c *Cube) battery() uint16 { return uint16(math.Round(c.cfg.Volts * 1000)) }

// lose ends the connection. c.mu is held.
func (c *Cube) lose() {
	if c.robot != nil {
		_ = c.robot.conn.Close() // the robot sees its end
	}
	c.robot, c.subscribed, c.playing = nil, false, false
}

// Power puts the cell in or takes it out. A cube without it forgets its lights.
func (c *Cube) Power(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.off = !on; c.off {
		c.lose()
		c.highest = -1
	}
}

// Drain leaves the cell at a voltage.
func (c *Cube) Drain(volts float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cfg.Volts = volts
}

// Connected reports whether a robot is connected.
func (c *Cube) Connected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.robot != nil
}

// Lights returns what the lights show now. Each repeats the steps from its start to the next higher start of another light, or to the last step (package cube).
func (c *Cube) Lights() (out [cube.LightCount]cube.RGB) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.playing {
		return out
	}
	for i, from := range c.start {
		end := c.highest + 1
		for _, other := range c.start {
			if other > from {
				end = min(end, int(other))
			}
		}
		if int(from) >= end {
			continue
		}
		steps := c.steps[from:end]
		period := 0
		for _, s := range steps {
			period += int(s.Duration)
		}
		if period == 0 {
			out[i] = steps[0].RGB
			continue
		}
		at := int(c.played/cube.Tick) % period
		for _, s := range steps {
			if at < int(s.Duration) {
				out[i] = s.RGB
				break
			}
			at -= int(s.Duration)
		}
	}
	return out
}

// advertise returns what a scan hears; false: nothing, because it is off, too far or connected.
func (c *Cube) advertise(first bool) (cube.Advert, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.off || c.robot != nil || c.rssi < weakest || !first && c.advert > 0 {
		return cube.Advert{}, false
	}
	c.advert = advertEvery
	return cube.Advert{Address: c.cfg.Address, Name: cube.Name, RSSI: c.rssi}, true
}

// connect takes a robot's connection; false: it has one, or cannot be heard.
func (c *Cube) connect(r *central) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.off || c.robot != nil || c.rssi < weakest {
		return false
	}
	c.robot, c.subscribed, c.pace, c.next, c.filled = r, false, cube.Background, 0, 0
	return true
}

// left ends the connection from the robot's side.
func (c *Cube) left(r *central) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.robot == r {
		c.lose()
	}
}

// read returns the value of a characteristic; "" as the reason: it can be read.
func (c *Cube) read(u cube.UUID) (value []byte, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch u {
	case cube.Version:
		return []byte(c.cfg.Version), ""
	case cube.Motion:
		r := c.report
		r.BatteryRaw = c.battery()
		return r.Append(nil), ""
	case cube.DeviceName: // VEC-CUBE-03
		return []byte(cube.Name), ""
	case cube.FirmwareRevision:
		return []byte("v_5.0.4"), ""
	case cube.Manufacturer:
		return []byte("Anki"), ""
	case cube.ModelNumber:
		return []byte("Production"), ""
	case cube.SoftwareRevision:
		return []byte("2.0.0"), ""
	}
	return nil, "no characteristic that can be read: " + strings.ToLower(u.String())
}

// write takes a value for the lights.
func (c *Cube) write(u cube.UUID, value []byte) (reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u != cube.Lights {
		return "no characteristic that can be written: " + strings.ToLower(u.String())
	}
	if c.cfg.Version == "" {
		return "the cube has no program"
	}
	m, err := cube.ParseCommand(slices.Clone(value))
	if err != nil {
		return err.Error()
	}
	if m.Start != nil {
		c.start, c.playing, c.played = *m.Start, true, 0
		return ""
	}
	for _, s := range m.Steps {
		if s.Index == 0 {
			c.highest = -1 // another program begins
		}
		c.steps[s.Index], c.highest = s, max(c.highest, int(s.Index))
	}
	return ""
}

// tune sets how often the cube sends.
func (c *Cube) tune(pace time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pace = max(pace, leastPace)
}

func (c *Cube) subscribe() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscribed = true
}
