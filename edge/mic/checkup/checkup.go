// Package checkup watches the microphones of a robot: it raises the fault of each one that does not work at power-on (VEC-MIC-11), and records their
// events (VEC-MIC-10). The body board does not test them, so the robot listens to the noise of its room.
package checkup

import (
	"fmt"
	"time"

	"kennel/edge/faultcode"
	"kennel/edge/mic"
	"kennel/edge/mic/geometry"
	"kennel/infra/api/events"
)

// Settings; own defaults.
const (
	reactAfter = 5 * time.Second // of quiet: a sound is worth a reaction
	reactEvery = time.Minute     // at most one event
	vadEvery   = time.Minute     // voices are summed up
)

// Microphones are watched from New on. Not safe for concurrent use.
type Microphones struct {
	emit  func(events.Event)
	raise func(faultcode.Code, error)

	heard   bool
	judged  bool
	defects [geometry.Mics]mic.Defect

	loudAt, reactedAt time.Duration // of the newest active chunk, and event
	active            bool
	voice             bool
	voices, chunks    int64 // since vadAt
	vadAt             time.Duration
}

// names are those of the faults.
var (
	names = [geometry.Mics]string{"front right", "front left", "back right", "back left"}
	codes = [geometry.Mics]faultcode.Code{faultcode.MicFrontRight, faultcode.MicFrontLeft, faultcode.MicBackRight, faultcode.MicBackLeft}
)

// New returns a watch that tells emit of events and raise of faults. Neither may block.
func New(emit func(events.Event), raise func(faultcode.Code, error)) *Microphones {
	return &Microphones{emit: emit, raise: raise}
}

// Heard takes a chunk that p made. The first judgement of p is the test at power-on; defects that come later are events.
func (m *Microphones) Heard(p *mic.Pipeline, c *mic.Chunk) {
	if !m.heard {
		m.heard, m.vadAt = true, c.At
		m.send("robot.microphone_on", events.Event{})
	}
	m.judge(p)
	m.react(c)
	m.count(c)
}

func (m *Microphones) judge(p *mic.Pipeline) {
	found, known := p.Stuck()
	if !known || m.judged && found == m.defects {
		return
	}
	for ch, d := range found {
		if d == m.defects[ch] {
			continue
		}
		if d >= mic.StuckBit {
			m.send("robot.stuck_mic_bit", events.Event{S1: names[ch], I1: events.Num(int64(d - mic.StuckBit))})
		}
		if d != mic.Works && !m.judged {
			m.raise(codes[ch], fmt.Errorf("microphone %s: %v", names[ch], d))
		}
	}
	m.judged, m.defects = true, found
}

func (m *Microphones) react(c *mic.Chunk) {
	if c.Active && !m.active && c.At-m.loudAt > reactAfter && (m.reactedAt == 0 || c.At-m.reactedAt > reactEvery) {
		m.reactedAt = c.At
		m.send("robot.reacted_to_sound", events.Event{I1: events.Num(int64(c.Direction)), I2: events.Num(int64(c.Level - c.Floor))})
	}
	if m.active = c.Active; m.active {
		m.loudAt = c.At
	}
}

func (m *Microphones) count(c *mic.Chunk) {
	if c.Voice {
		m.chunks++
		if !m.voice {
			m.voices++
		}
	}
	if m.voice = c.Voice; m.voice || m.voices == 0 || c.At-m.vadAt < vadEvery {
		return
	}
	const ms = 1000 * mic.ChunkSamples / float64(geometry.Rate)
	m.send("wakeword.vad", events.Event{I1: events.Num(m.voices), I2: events.Num(int64(float64(m.chunks) * ms))})
	m.voices, m.chunks, m.vadAt = 0, 0, c.At
}

func (m *Microphones) send(name string, e events.Event) {
	e.Source, e.Name = "agentd", name
	m.emit(e)
}
