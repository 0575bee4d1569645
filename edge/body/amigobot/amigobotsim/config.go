package amigobotsim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kennel/edge/body/amigobot/flash"
	"kennel/edge/body/amigobot/soundset"
	"kennel/edge/body/amigobot/sysmode"
	"kennel/edge/sim/plane"
)

// Config describes a robot. The zero value is a new robot in good order on an endless floor.
type Config struct {
	Memory   *sysmode.Memory // its FLASH, which the robot then owns (default: a new one with AmigOS 1.3)
	Profile  string          // one of Profiles; the default is amigo (AMIGO-SIM-03)
	World    *plane.Map      // where the robot is (default: an endless floor)
	Seed     uint64          // decides everything that is random
	Volts    float64         // of the battery, 10 to 13.8 (default 13)
	Lossy    bool            // the server takes one command each 10 ms and drops faster ones (AMIGO-PKT-12)
	Throttle bool            // the Control port is as slow as HostBaud says (AMIGO-LINK-08)

	SonarNoise float64 // standard deviation of a range, as a share of it (AMIGO-OPEN-16)
	SonarGain  float64 // the gain screw, above 0 to 1 (default 0.5) (AMIGO-SON-07)

	// OnSound, if set, is called for each sound, and OnStore for each change of Memory. They must not call the robot.
	OnSound func(Sound)
	OnStore func()
}

// NewMemory returns the FLASH of a new robot with a version of AmigOS: 1.0, 1.2 or 1.3 (AMIGO-OPEN-15).
func NewMemory(version string) *sysmode.Memory {
	m := sysmode.NewMemory(version, flash.Defaults())
	set := soundset.Default()
	set[soundset.Version].Name = "AmigOS " + version
	image, err := set.Image()
	if err != nil {
		panic(err) // the default sounds are too long
	}
	copy(m.Sounds, image)
	return m
}

// Own defaults.
const (
	defaultVersion = "1.3"
	defaultProfile = "amigo"
	defaultVolts   = 13.0
	defaultGain    = 0.5
)

var versions = map[string]int{"1.0": 10, "1.2": 12, "1.3": 13}

// Profile is the build of a robot.
type Profile struct {
	Body   plane.Robot
	Sonars [8]plane.Mount
}

// body is a disc: the radius is the one that client programs keep clear (AMIGO-PHY-03). A blocked wheel does not slip, it stalls.
var body = plane.Robot{Track: track, Nose: 0.180, Tail: 0.180, Width: 0.360}

// profiles differ in where the sonars are: amigo follows the manual (AMIGO-SON-02), amigo-aria the parameter file of later ARIA releases.
var profiles = map[string]Profile{
	"amigo": {body, [8]plane.Mount{
		mount(75, 105, 90), mount(115, 80, 44), mount(140, 30, 12), mount(140, -30, -12),
		mount(115, -80, -44), mount(75, -105, -90), mount(-140, -82, -144), mount(-140, 82, 144),
	}},
	"amigo-aria": {body, [8]plane.Mount{
		mount(76, 100, 90), mount(125, 75, 41), mount(150, 30, 15), mount(150, -30, -15),
		mount(125, -75, -41), mount(76, -100, -90), mount(-140, -58, -145), mount(-140, 58, 145),
	}},
}

// sonarHeight is low: the beam is wide, so that a sonar sees obstacles taller than the robot's clearance (AMIGO-PHY-01).
const sonarHeight = 0.030

// mount returns the place of a sonar from mm and degrees.
func mount(x, y, bearing float64) plane.Mount {
	return plane.Mount{X: x / 1000, Y: y / 1000, Z: sonarHeight, Yaw: bearing * deg}
}

// Profiles returns the names of the builds.
func Profiles() []string { return slices.Sorted(maps.Keys(profiles)) }

func (c *Config) profile() Profile { return profiles[c.Profile] }

func (c Config) withDefaults() Config {
	if c.Memory == nil {
		c.Memory = NewMemory(defaultVersion)
	}
	if c.Profile == "" {
		c.Profile = defaultProfile
	}
	if c.World == nil {
		c.World = &plane.Map{}
	}
	if c.Volts == 0 {
		c.Volts = defaultVolts
	}
	if c.SonarGain == 0 {
		c.SonarGain = defaultGain
	}
	return c
}

// Validate names the first setting that cannot be. The zero value is valid.
func (c Config) Validate() error {
	c = c.withDefaults()
	_, err := c.open()
	return err
}

// open returns the world with the robot in it, after it has checked the other settings.
func (c *Config) open() (*plane.World, error) {
	if versions[c.Memory.Version] == 0 {
		return nil, fmt.Errorf("amigobotsim: version %.20q, want one of %s", c.Memory.Version, strings.Join(slices.Sorted(maps.Keys(versions)), ", "))
	}
	if _, ok := profiles[c.Profile]; !ok {
		return nil, fmt.Errorf("amigobotsim: profile %.20q, want one of %s", c.Profile, strings.Join(Profiles(), ", "))
	}
	for _, n := range []struct {
		name            string
		value, min, max float64
	}{
		{"volts", c.Volts, emptyVolts, fullVolts}, {"sonar noise", c.SonarNoise, 0, 1}, {"sonar gain", c.SonarGain, 0.01, 1},
	} {
		if !(n.value >= n.min && n.value <= n.max) {
			return nil, fmt.Errorf("amigobotsim: %s is %v, want %v to %v", n.name, n.value, n.min, n.max)
		}
	}
	return plane.New(c.World, c.profile().Body, c.Seed)
}
