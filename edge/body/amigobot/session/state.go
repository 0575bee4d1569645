package session

import (
	"fmt"
	"math"
	"time"

	"kennel/edge/body/amigobot/sip"
)

// Range is the newest range of one sonar.
type Range struct {
	Metres float64
	At     time.Duration // 0: none yet
}

// State holds a session's knowledge of its robot, in SI units. All times are times passed to Step.
type State struct {
	Phase    Phase
	Err      error  // why the phase is Lost
	Sync     uint8  // Syncing: which SYNC was sent
	Misses   int    // Syncing: how many handshakes failed
	Sessions uint64 // how many became ready; with each the odometry starts again and the robot has its FLASH settings (AMIGO-SYNC-14)

	Identity sip.Identity
	Config   sip.Config
	ConfigAt time.Duration // 0: this session has none

	// Of the newest standard packet, which came at At. X, Y and Heading are odometry: X forward at the start, Y to the left, the heading
	// counter-clockwise in ±π (AMIGO-POS-01).
	At                    time.Duration
	X, Y, Heading         float64
	Control               float64 // heading set-point, rad in ±π
	Left, Right           float64 // wheel speeds, m/s
	Battery               float64 // V
	Moving                bool
	Motors, SonarOn       bool
	StallLeft, StallRight bool
	Bumpers               uint16 // raw, with the stall bits; AmigoBots have no bumpers (AMIGO-SIP-09)
	AnalogPort            int
	Analog                float64 // V at that port
	Digin, Digout         uint8
	Ranges                [sip.Sonars]Range

	// Of the packets that a robot sends on request. Each time is 0 until one came.
	Encoders   sip.Encoders
	EncodersAt time.Duration
	IO         sip.IO
	IOAt       time.Duration
	Playlist   sip.Playlist
	PlaylistAt time.Duration

	Unconfirmed sip.Command // the newest command whose effect did not show (AMIGO-PKT-11)
	Counts      Counts
}

// Counts are a session's counts since New.
type Counts struct {
	sip.Counters
	Sent        uint64 // commands
	Standard    uint64 // standard packets
	Unknown     uint64 // packets of unknown type
	Malformed   uint64 // packets too short for their type
	Unexpected  uint64 // echoes of the wrong SYNC, or inside a session
	LeftOver    uint64 // standard packets instead of an echo: an earlier session was open
	BadSonar    uint64 // readings of sonars that do not exist
	Stale       uint64 // the robot fell silent
	Resyncs     uint64 // it was connected again
	Unconfirmed uint64 // commands whose effect did not show
}

// take handles one packet.
func (s *Session) take(p []byte) {
	if s.cfg.Tap != nil {
		s.cfg.Tap(p)
	}
	st := &s.state
	var err error
	switch p[0] {
	case sip.Sync0, sip.Sync1, sip.Sync2:
		s.echo(p)
	case sip.TypeStopped, sip.TypeMoving:
		if err = s.standard.Parse(p); err == nil {
			s.sense()
		}
	case sip.TypeConfig:
		if err = st.Config.Parse(p); err == nil {
			st.ConfigAt, s.wantConfig, s.asks = s.now, false, 0
			s.confirm(true)
		}
	case sip.TypeEncoders:
		if err = st.Encoders.Parse(p); err == nil {
			st.EncodersAt = s.now
		}
	case sip.TypeIO:
		if err = s.io.Parse(p); err == nil {
			st.IO.Digin = append(st.IO.Digin[:0], s.io.Digin...)
			st.IO.Digout = append(st.IO.Digout[:0], s.io.Digout...)
			st.IO.Analog = append(st.IO.Analog[:0], s.io.Analog...)
			st.IOAt = s.now
		}
	case sip.TypePlaylist:
		if err = st.Playlist.Parse(p); err == nil {
			st.PlaylistAt = s.now
		}
	case sip.TypeAux1, sip.TypeAux2: // for the tap
	default:
		st.Counts.Unknown++
	}
	if err != nil {
		st.Counts.Malformed++
	}
}

// sense takes a standard packet.
func (s *Session) sense() {
	p, st := &s.standard, &s.state
	st.Counts.Standard++
	switch st.Phase {
	case Syncing:
		s.open = s.now
		if s.waiting || s.listens {
			st.Counts.LeftOver++
			s.listens = false
			s.closeFirst()
		}
		return
	case Opening, Ready:
	case Stale:
		st.Phase, s.prodded = Ready, false
	default:
		return
	}
	if !s.placed {
		s.lastX, s.lastY = p.X, p.Y
		s.place()
	}
	st.X += float64(sip.Unwrap(s.lastX, p.X)) * sip.DistanceUnit
	st.Y += float64(sip.Unwrap(s.lastY, p.Y)) * sip.DistanceUnit
	s.lastX, s.lastY = p.X, p.Y
	st.At = s.now
	st.Heading, st.Control = angle(p.Th), angle(p.Control)
	st.Left, st.Right = float64(p.Left)*sip.SpeedUnit, float64(p.Right)*sip.SpeedUnit
	st.Battery = float64(p.Battery) * sip.VoltageUnit
	st.Moving = p.Moving
	st.Motors, st.SonarOn = p.Flags&sip.FlagMotors != 0, p.Flags&sip.FlagSonar != 0
	st.Bumpers = p.Bumpers
	st.StallLeft, st.StallRight = p.Bumpers&sip.StallLeft != 0, p.Bumpers&sip.StallRight != 0
	st.AnalogPort, st.Analog = int(p.Timer), float64(p.Analog)*sip.AnalogByteUnit
	st.Digin, st.Digout = p.Digin, p.Digout
	for _, r := range p.Sonar {
		if int(r.Sonar) >= len(st.Ranges) {
			st.Counts.BadSonar++
			continue
		}
		st.Ranges[r.Sonar] = Range{float64(r.Range) * sip.RangeUnit * s.cfg.RangeFactor, s.now}
	}
	if st.Phase == Opening && p.Battery > 0 && st.Battery < minBattery {
		s.Close()
		st.Err = fmt.Errorf("%w: %.1f V", ErrBattery, st.Battery)
		return
	}
	if !st.Motors {
		s.rest()
	}
	s.confirm(false)
}

// place starts the odometry at the newest coordinates.
func (s *Session) place() {
	s.placed = true
	s.state.X, s.state.Y = float64(sip.Unwrap(0, s.lastX))*sip.DistanceUnit, float64(sip.Unwrap(0, s.lastY))*sip.DistanceUnit
}

// angle returns v as radians in ±π. Robots send -2048 to 2047 or 0 to 4095 (AMIGO-SIP-05).
func angle(v int16) float64 {
	return float64(int16(v<<4)>>4) * sip.AngleUnit
}

// near reports whether the two angles are at most 1° apart.
func near(a, b float64) bool { return math.Abs(math.Remainder(a-b, 2*math.Pi)) <= math.Pi/180 }
