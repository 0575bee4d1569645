// Package mic makes of a robot's four microphones what its mind listens to: one clean voice, whether a person speaks, and from where.
//
//	miclink.Frame ─► Pipeline.Feed ─► Chunk: 160 samples, voice, activity, direction
//
// A chunk passes the stages in the order of the source (part of VEC-MIC-12, but audio leaves the robot as PCM, not as Opus), with the spatial stage bypassed until a person speaks (VEC-MIC-03, VEC-WAK-01):
//
//	level      the idle level of each microphone is taken away; a stuck one is noticed (stuck.go)
//	localise   direction of the voice, and a beam toward it (spatial.go); only while there is one
//	activity   loudness as ears hear it, over the noise of the room (activity.go); package beat finds the tempo
//	noise      a spectral gate under the noise of the room (gate.go)
//	voice      whether a person speaks, on the cleaned sound of all microphones without the beam (gate.go)
//
// Wake word (package wakeword), encoding and recognition are the next stages, of those who take the chunks. There is no echo canceller: while our own
// sound plays, and 0.1 s longer, the microphones are ignored (VEC-MIC-05).
//
// The source describes what comes out of each stage, and suggests some methods; all numbers are our own defaults.
package mic

import (
	"fmt"
	"time"

	"kennel/edge/mic/geometry"
	"kennel/edge/mic/miclink"
)

// Rate is taken as the rate of the samples in a chunk. The microphones give 15,625 a second; like the original we accept that voices are 2.4 % higher
// and faster (VEC-MIC-02): recognisers do not notice, and resampling would cost more than the rest of the path.
const Rate = 16000

// ChunkSamples are the samples of a chunk (VEC-MIC-02): two frames of the body, 10.24 ms.
const ChunkSamples = 2 * FrameSamples

// FrameSamples are the samples of a frame of the body, of each microphone.
const FrameSamples = geometry.Samples

// Mode says how the microphones are processed (VEC-MIC-04).
type Mode uint8

// The modes, by the numbers of the original's protocol.
const (
	Unknown     Mode = iota
	Off              // no chunks
	Fast             // one microphone
	Directional      // four microphones, and a beam toward a voice
	VoiceDetect      // four microphones without a beam
)

// String returns "unknown", "off", "fast", "directional" or "voice detect".
func (m Mode) String() string {
	names := [...]string{"unknown", "off", "fast", "directional", "voice detect"}
	if int(m) < len(names) {
		return names[m]
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// NoDirection is the direction of a chunk without an identifiable sound.
const NoDirection = geometry.Bins

// Chunk is 10.24 ms of processed sound.
type Chunk struct {
	Seq     uint64        // from 1
	At      time.Duration // when its newest frame came, CLOCK_MONOTONIC
	Lost    uint64        // frames that are missing before it
	Samples [ChunkSamples]int16

	Own        bool                 // our own sound plays: there are no samples, and the rest is zero (VEC-MIC-05)
	Active     bool                 // louder than the noise of the room (VEC-MIC-06)
	Voice      bool                 // a person speaks, or did 0.3 s ago (VEC-WAK-01)
	Direction  int                  // of the voice, 0 to 11 clockwise from ahead, or NoDirection (VEC-MIC-03)
	Confidence float32              // in it, 0 to 1
	Histogram  [geometry.Bins]uint8 // how much of the sound came from each direction
	Level      float32              // of the sound, dB of full scale, weighted as ears hear it
	Floor      float32              // of the noise in the room, same unit
}

// Config configures a Pipeline. The zero value works.
type Config struct {
	Mode Mode    // Unknown: Directional
	Gain float64 // of the samples; 0: 1
}

// deafAfter is how long the microphones are ignored after our own sound, in chunks.
const deafAfter = 10

// Pipeline processes the frames of one robot. It is not safe for concurrent use, and allocates only in New.
type Pipeline struct {
	mode  Mode
	gain  float32
	half  int // frames of the chunk so far
	seq   uint64
	lost  uint64
	deaf  int // chunks
	level [geometry.Mics]leveller
	mics  [geometry.Mics][window]float32 // the chunk before and this one

	activity activity
	gate     *gate
	spatial  *spatial
	stuck    stuck
}

// New returns a pipeline.
func New(cfg Config) *Pipeline {
	if cfg.Mode == Unknown {
		cfg.Mode = Directional
	}
	if cfg.Gain == 0 {
		cfg.Gain = 1
	}
	p := &Pipeline{mode: cfg.Mode, gain: float32(cfg.Gain), gate: newGate()}
	p.spatial = newSpatial(p.gate)
	for i := range p.level {
		p.level[i].last = geometry.Idle
	}
	return p
}

// SetMode changes the mode, from the next frame on.
func (p *Pipeline) SetMode(m Mode) { p.mode = m }

// Feed takes a frame and fills c with each second one; it reports whether it did. own says that the robot's own sound plays.
func (p *Pipeline) Feed(f *miclink.Frame, own bool, c *Chunk) bool {
	if p.mode == Off {
		p.half = 0
		return false
	}
	if p.lost += f.Lost; p.half == 0 {
		for ch := range p.mics {
			copy(p.mics[ch][:ChunkSamples], p.mics[ch][ChunkSamples:])
		}
	}
	p.stuck.feed(&f.Mics)
	from := ChunkSamples + p.half*geometry.Samples
	for ch := range p.mics {
		p.level[ch].feed(p.mics[ch][from:from+geometry.Samples], &f.Mics, ch, p.gain)
	}
	if own {
		p.deaf = deafAfter
	}
	if p.half++; p.half < 2 {
		return false
	}
	p.half = 0
	p.seq++
	*c = Chunk{Seq: p.seq, At: f.At, Lost: p.lost, Own: p.deaf > 0, Direction: NoDirection}
	p.lost = 0
	if c.Own {
		p.deaf--
		p.mics = [geometry.Mics][window]float32{}
		p.gate.silence()
		p.spatial.silence()
		return true
	}
	p.process(c)
	return true
}

func (p *Pipeline) process(c *Chunk) {
	g := p.gate
	if p.mode == Fast {
		g.load(&p.mics[0])
	} else {
		for i := range g.time[:window] {
			g.time[i] = (p.mics[0][i] + p.mics[1][i] + p.mics[2][i] + p.mics[3][i]) * (1.0 / geometry.Mics)
		}
		g.load((*[window]float32)(g.time[:window]))
	}
	g.plan.Forward(g.bins, g.time)
	g.listen()
	c.Voice = g.voice > 0
	p.activity.feed(g)
	c.Active, c.Level, c.Floor = p.activity.active, p.activity.level, p.activity.floor
	if c.Voice && p.mode == Directional {
		p.spatial.find(&p.mics, g, c)
	} else {
		p.spatial.silence()
	}
	g.clean(&c.Samples)
}

// Stuck returns the defect of each microphone, and whether enough was heard to say so (VEC-MIC-10, VEC-MIC-11).
func (p *Pipeline) Stuck() (_ [geometry.Mics]Defect, known bool) { return p.stuck.found, p.stuck.known }

// leveller takes the idle level away from a microphone, and with it what is lower than voices (50 Hz).
type leveller struct{ last, out float32 }

func (l *leveller) feed(out []float32, mics *geometry.Frame, ch int, gain float32) {
	const keep = 0.98
	last, y := l.last, l.out
	for i := range out {
		x := float32(mics[i*geometry.Mics+ch])
		y = x - last + keep*y
		last = x
		out[i] = y * gain
	}
	l.last, l.out = last, y
}
