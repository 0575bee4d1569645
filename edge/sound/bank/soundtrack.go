package bank

import (
	"fmt"
	"math/rand/v2"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/sound"
)

// ahead is how far before a sound is heard its keyframe is looked at: a step of the player, and what the mixer has mixed already.
const ahead = clip.Step + 5*time.Millisecond

// Soundtrack plays clips and their sounds by one clock, the mixer's: each sound is heard at the sample of its keyframe. Not safe for concurrent use.
type Soundtrack struct {
	engine *Engine
	player *clip.Player
	base   int64 // place of the mixer at which the player's time was 0
	fired  []clip.Fired
}

// NewSoundtrack returns a soundtrack for a player that nothing else steps.
func NewSoundtrack(e *Engine, p *clip.Player) *Soundtrack {
	return &Soundtrack{engine: e, player: p, base: e.m.Position()}
}

// now returns the player's time: ahead of what is heard.
func (s *Soundtrack) now() time.Duration {
	return ahead + clip.SampleTime(s.engine.m.Position()-s.base, s.engine.m.Rate())
}

// Start starts a clip, which begins to be heard so much later as Step looks ahead. Errors are the player's (clip.ErrLocked).
func (s *Soundtrack) Start(c *clip.Clip, o clip.Options) error {
	return s.player.Start(s.now(), c, o)
}

// Step does what is due: call it at least every clip.Step of sound. It writes what the robot does into f, for what is heard after 35 ms, and returns what began that is no
// sound. An error names a sound that could not be played; the rest was.
func (s *Soundtrack) Step(f *clip.Frame) (other []clip.Fired, err error) {
	now := s.now()
	s.fired = s.player.Step(now, f, s.fired[:0])
	for i := range s.fired {
		x := &s.fired[i]
		if x.Audio == nil {
			other = append(other, *x)
			continue
		}
		at := s.base + samples(now-x.Late, s.engine.m.Rate())
		if _, e := s.engine.Fire(x, at); e != nil && err == nil {
			err = fmt.Errorf("clip %s: %w", x.Clip, e)
		}
	}
	return other, err
}

// samples returns the sample nearest to a time.
func samples(at time.Duration, rate int) int64 {
	return int64(at/time.Second)*int64(rate) + (int64(at%time.Second)*int64(rate)+int64(time.Second)/2)/int64(time.Second)
}

// Render plays a clip once, and returns its sound: from its first keyframe to the end of the clip and of what still plays then, at most longest. The same seed draws the same sounds.
func Render(k *Bank, c *clip.Clip, limits clip.Limits, rate int, seed uint64, longest time.Duration) (*sound.Sound, error) {
	m, err := sound.NewMixer(sound.Config{Rate: rate})
	if err != nil {
		return nil, err
	}
	s := NewSoundtrack(NewEngine(Config{Mixer: m, Banks: []*Bank{k}, Random: rand.NewPCG(seed, seed)}), clip.NewPlayer(limits, &clip.Locks{}, seed))
	if err := s.Start(c, clip.Options{}); err != nil {
		return nil, err
	}
	var pcm []int16
	block := make([]int16, rate/100)
	skip, most := int(samples(ahead, rate)), int(samples(longest, rate))
	for end := skip + most; len(pcm) < end; {
		var f clip.Frame
		other, err := s.Step(&f)
		if err != nil {
			return nil, err
		}
		for _, x := range other {
			if x.Event != nil && x.Event.ID == clip.Beat {
				s.player.Signal(s.now())
			}
			if x.End != clip.Playing { // what began with it is still to be heard
				end = min(end, max(len(pcm)+skip, len(pcm)+int(samples(m.Remain(), rate))))
			}
		}
		m.Mix(block)
		pcm = append(pcm, block...)
	}
	return sound.FromPCM(rate, pcm[min(skip, len(pcm)):]), nil
}
