package sound

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// Channel is one of the five kinds of sources, each with a volume (VEC-SND-01).
type Channel uint8

// The channels.
const (
	Files      Channel = iota // sounds of clips
	Procedural                // sounds of motors and touch
	Client                    // what a program streams
	Speech
	Assistant // what a foreign assistant says
	Channels
)

// String returns "files", "procedural", "client", "speech" or "assistant".
func (c Channel) String() string {
	if c >= Channels {
		return fmt.Sprintf("channel %d", uint8(c))
	}
	return [Channels]string{"files", "procedural", "client", "speech", "assistant"}[c]
}

// Config configures a Mixer. Rate is required.
type Config struct {
	Rate    int           // of the speaker, samples per second; a Vector's takes 8000 to 16025 (part of VEC-AUD-05)
	Most    int           // sounds at once; default 32
	Ceiling float64       // of a sample, 0 to 1; default 0.9
	High    float64       // ceiling of what is above 3 kHz; default 0.4
	Bands   []Band        // of the equaliser, for the robot's speaker
	Duck    float64       // decibels by which other channels are lower while speech or an assistant plays; default -12; 1: none
	Attack  time.Duration // of ducking; default 40 ms
	Release time.Duration // of ducking; default 400 ms
}

const (
	block     = 128 // samples that are mixed at once; gains move along a line within it
	highEdge  = 3000
	lookAhead = 2 * time.Millisecond
)

// Forever is the number of loops of a sound that plays until it is stopped (VEC-BNK-05).
const Forever = -1

// Mixer mixes sounds. All methods may be called concurrently, Mix by one goroutine.
type Mixer struct {
	cfg     Config
	look    int64
	duckLow float32 // factor of the other channels under speech
	down    float32 // by which the ducking's factor falls with each sample, and rises
	up      float32

	mu       sync.Mutex
	playing  []*Playing
	levels   [Channels]float32
	applied  [Channels]float32 // gains at the end of the newest block, without ducking
	master   float32
	wasAll   float32 // master at the end of the newest block
	duck     float32
	mixed    int64 // samples mixed; look more than position
	position int64
	primed   bool

	acc, one [block]float32
	eq       *Equaliser
	high     highLimiter
	limiter  *limiter
}

// NewMixer returns a mixer without sounds, at full volume. ErrRate, or ErrRange for a ceiling that is none.
func NewMixer(cfg Config) (*Mixer, error) {
	if cfg.Rate < MinRate || cfg.Rate > MaxRate {
		return nil, fmt.Errorf("%w: expected %d to %d Hz, found %d", ErrRate, MinRate, MaxRate, cfg.Rate)
	}
	orDefault(&cfg.Most, 32)
	orDefault(&cfg.Ceiling, 0.9)
	orDefault(&cfg.High, 0.4)
	orDefault(&cfg.Duck, -12)
	orDefault(&cfg.Attack, 40*time.Millisecond)
	orDefault(&cfg.Release, 400*time.Millisecond)
	if !(cfg.Ceiling > 0 && cfg.Ceiling <= 1 && cfg.High > 0) || cfg.Most < 1 || cfg.Attack < 0 || cfg.Release < 0 {
		return nil, fmt.Errorf("%w: expected ceilings above 0 to 1, at least one sound and times that are not negative, found %+v", ErrRange, cfg)
	}
	look := int(lookAhead.Seconds() * float64(cfg.Rate))
	m := &Mixer{cfg: cfg, look: int64(look), duckLow: float32(min(1, Decibels(cfg.Duck))), master: 1, wasAll: 1, duck: 1, playing: make([]*Playing, 0, cfg.Most),
		eq: NewEqualiser(cfg.Rate, cfg.Bands), limiter: newLimiter(float32(cfg.Ceiling), look, 1/(0.08*float64(cfg.Rate))),
		high: highLimiter{low: lowPass(min(highEdge, 0.45*float64(cfg.Rate)), cfg.Rate), ceiling: float32(cfg.High), release: float32(math.Exp(-1 / (0.02 * float64(cfg.Rate))))}}
	if cfg.Duck == 1 {
		m.duckLow = 1
	}
	m.down = (1 - m.duckLow) / float32(max(1, cfg.Attack.Seconds()*float64(cfg.Rate)))
	m.up = (1 - m.duckLow) / float32(max(1, cfg.Release.Seconds()*float64(cfg.Rate)))
	for c := range m.levels {
		m.levels[c], m.applied[c] = 1, 1
	}
	return m, nil
}

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Rate returns the samples per second of what Mix writes.
func (m *Mixer) Rate() int { return m.cfg.Rate }

// Position returns how many samples Mix has written. It is the clock of clips: what is heard now has this place.
func (m *Mixer) Position() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.position
}

// SetLevel sets the volume of the whole robot (VEC-SND-12). ErrRange beyond High.
func (m *Mixer) SetLevel(l Level) error {
	g, err := l.Gain()
	if err == nil {
		m.SetMaster(g)
	}
	return err
}

// SetMaster sets the factor of everything.
func (m *Mixer) SetMaster(gain float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.master = float32(max(0, gain))
}

// SetChannel sets the factor of a channel.
func (m *Mixer) SetChannel(c Channel, gain float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c < Channels {
		m.levels[c] = float32(max(0, gain))
	}
}

// Options say how to play a sound. The zero value plays it once, now, among files.
type Options struct {
	Channel Channel
	At      int64   // place at which its first sample is heard, as Position counts; one that has passed means the next that is mixed
	Gain    float64 // factor; 0: 1
	Pitch   float64 // factor of its pitch; 0: 1
	Speed   float64 // factor of its speed; 0: 1
	Loops   int     // how often it is played; 0: 1; Forever
}

// source gives the samples of a Playing: fewer than len(dst) mean a pause, or if ended, the end.
type source interface {
	read(dst []float32) (n int, ended bool)
	remain() int64 // samples that are still to come, negative for no end
}

// Playing is a sound that plays, or will. Its methods may be called concurrently.
type Playing struct {
	m       *Mixer
	channel Channel
	from    source
	at      int64 // of its first sample
	gain    float32
	was     float32 // gain at the end of its newest block
	fade    float32 // by which gain falls with each sample; 0: it does not
	done    chan struct{}
	ended   bool
}

// memory is a sound in memory.
type memory struct {
	s            *Sound
	loops        int
	at           int // samples so far, of a sound whose pitch and speed are 1
	pitch, speed float64
	stretch      *stretcher // nil: pitch and speed were 1 so far
}

func (s *memory) read(dst []float32) (n int, ended bool) {
	if s.stretch != nil {
		n = s.stretch.read(dst, s.speed, s.pitch)
		return n, n < len(dst)
	}
	for n < len(dst) && len(s.s.Samples) > 0 && s.loops != 0 {
		k := copy(dst[n:], s.s.Samples[s.at:])
		n += k
		if s.at += k; s.at == len(s.s.Samples) {
			s.at = 0
			if s.loops > 0 {
				s.loops--
			}
		}
	}
	return n, s.loops == 0 || len(s.s.Samples) == 0
}

func (s *memory) remain() int64 {
	switch {
	case s.loops < 0:
		return -1
	case s.stretch != nil:
		return int64(math.Max(0, (s.stretch.end-s.stretch.place)/s.speed)) + int64(s.stretch.hop-s.stretch.used)
	}
	return int64(s.loops)*int64(len(s.s.Samples)) - int64(s.at)
}

// Play begins a sound. It is resampled now if it has another rate than the mixer: load what is played often with At. ErrFull if too many play already, ErrRange
// for a pitch, a speed or a gain that cannot be.
func (m *Mixer) Play(s *Sound, o Options) (*Playing, error) {
	orDefault(&o.Gain, 1)
	orDefault(&o.Pitch, 1)
	orDefault(&o.Speed, 1)
	orDefault(&o.Loops, 1)
	if !(o.Gain > 0 && o.Gain <= 100 && o.Pitch >= MinPitch && o.Pitch <= MaxPitch && o.Speed >= MinSpeed && o.Speed <= MaxSpeed) || o.Loops < Forever || o.Channel >= Channels {
		return nil, fmt.Errorf("%w: expected a gain up to 100, a pitch of %g to %g and a speed of %g to %g, found %+v", ErrRange, MinPitch, float64(MaxPitch), MinSpeed, float64(MaxSpeed), o)
	}
	s, err := s.At(m.cfg.Rate)
	if err != nil {
		return nil, err
	}
	from := &memory{s: s, loops: o.Loops, pitch: o.Pitch, speed: o.Speed}
	if (o.Pitch != 1 || o.Speed != 1) && len(s.Samples) > 0 {
		from.stretch = newStretcher(s.Samples, s.Rate, o.Loops)
	}
	return m.add(&Playing{m: m, channel: o.Channel, from: from, at: o.At, gain: float32(o.Gain), was: float32(o.Gain), done: make(chan struct{})})
}

func (m *Mixer) add(p *Playing) (*Playing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.playing) == m.cfg.Most {
		return nil, fmt.Errorf("%w: expected at most %d", ErrFull, m.cfg.Most)
	}
	p.at = max(p.at, m.mixed)
	m.playing = append(m.playing, p)
	return p, nil
}

// Done is closed when the sound has ended, or was stopped.
func (p *Playing) Done() <-chan struct{} { return p.done }

// At returns the place of the first sample.
func (p *Playing) At() int64 { return p.at }

// Stop ends the sound, getting quieter for fade; 0: 5 ms, so that it does not click.
func (p *Playing) Stop(fade time.Duration) {
	if fade <= 0 {
		fade = 5 * time.Millisecond
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.stop(fade)
}

func (p *Playing) stop(fade time.Duration) {
	if p.at > p.m.mixed { // nothing of it was heard
		p.end()
		return
	}
	p.fade = max(p.fade, max(p.gain, p.was, 1e-6)/float32(max(1, fade.Seconds()*float64(p.m.cfg.Rate))))
}

// end marks the sound as ended. The mixer forgets it with the next block.
func (p *Playing) end() {
	if !p.ended {
		p.ended = true
		close(p.done)
	}
}

// SetGain changes the factor of its volume, within a block.
func (p *Playing) SetGain(gain float64) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if p.fade == 0 {
		p.gain = float32(max(0, gain))
	}
}

// SetPitch changes pitch and speed, from the next grain on. It has an effect on sounds that began with another pitch or speed than 1.
func (p *Playing) SetPitch(pitch, speed float64) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if s, ok := p.from.(*memory); ok {
		s.pitch, s.speed = min(max(pitch, MinPitch), MaxPitch), min(max(speed, MinSpeed), MaxSpeed)
	}
}

// StopChannel stops all that plays in a channel.
func (m *Mixer) StopChannel(c Channel, fade time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.playing {
		if p.channel == c {
			p.stop(max(fade, 5*time.Millisecond))
		}
	}
}

// Remain returns how much is still to be heard if nothing more begins, at most an hour (GOSTAI-IF-18.2); 0: nothing plays (GOSTAI-IF-18.3).
func (m *Mixer) Remain() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	most := int64(0)
	hour := int64(m.cfg.Rate) * 3600
	for _, p := range m.playing {
		left := p.from.remain()
		if left < 0 {
			left = hour
		}
		if !p.ended {
			most = max(most, left+max(0, p.at-m.mixed)+m.look)
		}
	}
	return time.Duration(min(most, hour)) * time.Second / time.Duration(m.cfg.Rate)
}

// Mix writes the next samples. It allocates nothing.
func (m *Mixer) Mix(dst []int16) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.primed { // the limiter looks ahead: what it needs is mixed before the first sample
		m.primed = true
		for left := int(m.look); left > 0; left -= block {
			m.next(min(left, block))
		}
	}
	for len(dst) > 0 {
		n := min(len(dst), block)
		for i, v := range m.next(n) {
			dst[i] = quantise(v)
		}
		m.position += int64(n)
		dst = dst[n:]
	}
}

// next mixes n samples.
func (m *Mixer) next(n int) []float32 {
	acc := m.acc[:n]
	clear(acc)
	duck := m.ducked(n)
	kept := m.playing[:0]
	for _, p := range m.playing {
		from, to := m.applied[p.channel], m.levels[p.channel]
		if p.channel != Speech && p.channel != Assistant {
			from, to = from*m.duck, to*duck
		}
		if m.addTo(acc, p, from, to); !p.ended {
			kept = append(kept, p)
		}
	}
	clear(m.playing[len(kept):]) // so that what has ended can be collected
	m.playing = kept
	m.duck, m.applied = duck, m.levels
	m.eq.Apply(acc)
	m.high.apply(acc)
	if m.master != 1 || m.wasAll != 1 {
		step := (m.master - m.wasAll) / float32(n)
		gain := m.wasAll
		for i := range acc {
			gain += step
			acc[i] *= gain
		}
		m.wasAll = m.master
	}
	m.limiter.apply(acc)
	m.mixed += int64(n)
	return acc
}

// ducked returns the factor of channels under speech at the end of the next n samples.
func (m *Mixer) ducked(n int) float32 {
	for _, p := range m.playing {
		if (p.channel == Speech || p.channel == Assistant) && !p.ended && p.at < m.mixed+int64(n) && p.from.remain() != 0 {
			return max(m.duckLow, m.duck-m.down*float32(n))
		}
	}
	return min(1, m.duck+m.up*float32(n))
}

// addTo adds the samples of p to acc, whose channel has the factor from at the begin and to at the end.
func (m *Mixer) addTo(acc []float32, p *Playing, from, to float32) {
	if p.ended || p.at >= m.mixed+int64(len(acc)) {
		return
	}
	skip := int(max(0, p.at-m.mixed))
	one := m.one[:len(acc)-skip]
	n, ended := p.from.read(one)
	one = one[:n]
	out := acc[skip : skip+n]
	if p.fade == 0 && p.was == p.gain && from == to {
		gain := p.gain * to
		for i, v := range one {
			out[i] += v * gain
		}
	} else {
		gain, own := from, p.was
		step := (to - from) / float32(len(acc))
		ownStep := (p.gain - p.was) / float32(len(acc))
		if p.fade > 0 {
			ownStep = -p.fade
		}
		gain += step * float32(skip)
		for i, v := range one {
			gain, own = gain+step, max(0, own+ownStep)
			out[i] += v * gain * own
		}
		if p.fade == 0 {
			p.was = p.gain
		} else if p.was -= p.fade * float32(len(acc)-skip); p.was <= 0 {
			ended = true
		}
	}
	if ended {
		p.end()
	}
}
