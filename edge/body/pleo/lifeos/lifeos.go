package lifeos

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Tick is the resolution of a System's time: everything happens at a multiple of it after power-on.
const Tick = 2 * time.Millisecond

// sensorTick is how often sensors are read, and how soon a trigger is delivered again (PLEO-VM-07).
const sensorTick = 10 * time.Millisecond

// JointState is a report of the hardware about a joint.
type JointState struct {
	Position float64 // degrees
	Speed    float64 // degrees a second, without sign
	Stalled  bool    // the motor pushes and the joint does not move
	Loaded   float64 // degrees by which an external force has moved the joint
}

// Hardware is a Pleo below its services: motors, readings and a loudspeaker.
type Hardware interface {
	// Read returns the reading of a raw sensor.
	Read(id Sensor) int32
	Joint(j Joint) JointState
	// Move lets a joint go to a target with at most this speed, in degrees and degrees a second.
	Move(j Joint, target, speed float64)
	// Play takes samples of 10 bits, -512 to 511, of SampleRate. It is not called while no sound plays.
	Play(samples []int16)
}

// Level is how important a message is.
type Level uint8

// The levels.
const (
	Fatal Level = iota
	Error
	Warning
	Info
	Debug
)

func (l Level) String() string {
	return [...]string{"FATAL", "ERROR", "WARNING", "INFO", "DEBUG"}[l]
}

// Message is a line of the log.
type Message struct {
	At    time.Duration // since power-on
	Level Level
	Type  LogType
	Text  string
	Shown bool // on the monitor, where each type can be switched off (PLEO-MON-03)
}

// String returns the line as the monitor prints it (PLEO-MON-04); what scripts print has no level (PLEO-MON-10).
func (m Message) String() string {
	if m.Type == LogScript && m.Level == Info {
		return fmt.Sprintf("%s: %s", m.Type, m.Text)
	}
	return fmt.Sprintf("%s: %s: %s", m.Level, m.Type, m.Text)
}

// Config has the parts that a System needs.
type Config struct {
	Profile  Profile
	Hardware Hardware
	Card     Storage       // the SD card, drive a:; nil: none is inserted
	Flash    Storage       // the dataflash, drive b:; nil: an empty one
	Seed     uint64        // of random choices
	Serial   uint32        // its low 8 bits are the Pleo's id
	Log      func(Message) // nil: the log is dropped
	Print    func([]byte)  // takes the reports for the serial port, with the ends of their lines, valid until it returns; nil: they are dropped

	// Line returns the bytes that arrive of a frame between the processors of body and head; nil: all of them.
	Line     func(frame []byte) []byte
	Transmit func(Signal) // takes what the Pleo sends over infra-red; nil: no other Pleo is near

	// Statement is called before each statement of scripts that have symbols; true pauses the script, and no time passes until Continue. nil: scripts run at
	// full speed.
	Statement func(Stop) bool

	// Keys are the words that raise the access of the monitor to a level. With none, as in development, all is permitted from power-on.
	Keys map[Access]string

	// Trust reports whether a script may load and unload applications, given its file. nil: every script may (part of PLEO-APP-09).
	Trust func(script []byte) bool
}

// System is a running LifeOS.
type System struct {
	cfg    Config
	hw     Hardware
	now    time.Duration
	rand   *rand.Rand
	drives [2]drive // a: and b:
	access Access
	device int // the one for paths without a letter
	power  Power

	natives  map[string]func(*env) int32
	machines [vmMax]*machine // from VMSensor
	app      application

	logTypes   uint32
	properties properties
	sensors    sensors
	joints     [JointCount]jointState
	motions    motions
	sound      voice
	commands   commands
	drivers    drives
	sequence   sequence
	waits      map[int32]*wait
	nextWait   int32
	packets    packets
	head       head
	infrared   infrared
	tracker    tracker
	files      files
	reports    reports
	debug      debugger
	host       host
}

// Power is whether the Pleo is on.
type Power uint8

// The states.
const (
	On Power = iota
	Off
)

func (p Power) String() string { return [...]string{"on", "off"}[p] }

// New switches a Pleo on. The first Step loads its startup script and its application (PLEO-APP-01).
func New(cfg Config) *System {
	s := &System{cfg: cfg, hw: cfg.Hardware, rand: rand.New(rand.NewPCG(cfg.Seed, 0)), logTypes: bootTypes, waits: map[int32]*wait{}, natives: map[string]func(*env) int32{}}
	for _, n := range Natives() {
		s.natives[n.Name()] = n.call
	}
	for vm := VMSensor; vm < vmMax; vm++ {
		s.machines[vm] = &machine{vm: vm}
	}
	if len(cfg.Keys) == 0 {
		s.access = AccessVendor
	}
	s.properties.init(s)
	s.initSensors()
	s.sound.init()
	s.motions.speed = 100
	s.commands.stop(s)
	s.mount(1, cfg.Flash)
	s.mount(0, cfg.Card)
	s.boot()
	return s
}

// Now returns the time of the latest Step.
func (s *System) Now() time.Duration { return s.now }

// Power returns whether the Pleo is on.
func (s *System) Power() Power { return s.power }

// ms returns the time since power-on in milliseconds, as scripts see it.
func (s *System) ms() int32 { return int32(s.now / time.Millisecond) }

// Step continues until now, the time since power-on, or until a script is paused. A time that is not later does nothing.
func (s *System) Step(now time.Duration) {
	for s.now+Tick <= now && s.power != Off && !s.debug.stopped {
		s.now += Tick
		s.tick()
	}
}

// tick is one step of 2 ms.
func (s *System) tick() {
	if s.now%row == 0 {
		s.stepMotions()
	}
	s.stepSound()
	s.stepLeaks()
	if s.now%sensorTick == 0 {
		s.readSensors()
		s.stepPlog()
		s.stepInfrared()
		s.stepCommands()
		s.stepDrives()
	}
	for vm := VMSensor; vm < vmMax; vm++ {
		s.schedule(s.machines[vm])
	}
	if s.power == Off {
		return
	}
	s.stepPower()
	s.stepReports()
}

func (s *System) log(l Level, t LogType, format string, args ...any) {
	if s.cfg.Log == nil && s.host.logFile == "" {
		return
	}
	shown := s.logTypes&(1<<t) != 0
	if l <= Warning {
		shown = shown || s.logTypes&(1<<l) != 0
	}
	m := Message{s.now, l, t, fmt.Sprintf(format, args...), shown}
	s.keepLog(m)
	if s.cfg.Log != nil {
		s.cfg.Log(m)
	}
}

// seed begins the random choices again.
func (s *System) seed(n int32) { s.rand = rand.New(rand.NewPCG(uint64(uint32(n)), 0)) }
