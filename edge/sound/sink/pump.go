package sink

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"kennel/edge/sound"
)

// The limits of a Pump.
const (
	rest      = 250 * time.Millisecond // of silence, after which nothing is mixed
	hurry     = 250 * time.Millisecond // by which a pump may be late before what was missed is left out
	kept      = 100                    // blocks that a listener may be behind: a second
	Foresight = Lead + 2*Block         // how far ahead of its place a sound is asked for, to be heard there
)

// ErrListeners refuses a listener when MaxListeners listen already.
var ErrListeners = errors.New("sink: too many listeners")

// Pump mixes at the pace of time, for a sink and for listeners, and rests while there is nothing to hear: a silent robot costs no processor. It joins the two clocks: what
// has a time is heard at the Place of that time, and the other way round. All methods may be called concurrently.
type Pump struct {
	m    *sound.Mixer
	sink Sink
	now  func() time.Duration
	wake chan struct{}

	mu        sync.Mutex
	awake     bool
	holds     int
	place     int64         // is heard
	at        time.Duration // now
	quiet     time.Duration // since when nothing plays
	listeners map[chan sound.Piece]*int64
}

// NewPump returns a pump that mixes while Run runs. sink may be nil; the pump closes it. now is a clock that never goes back.
func NewPump(m *sound.Mixer, s Sink, now func() time.Duration) *Pump {
	return &Pump{m: m, sink: s, now: now, wake: make(chan struct{}, 1), listeners: map[chan sound.Piece]*int64{}}
}

// Hold keeps the pump awake until release, which may be repeated. Sounds are asked for after it.
func (p *Pump) Hold() (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds++
	if !p.awake {
		p.awake, p.place, p.at = true, p.m.Position(), p.now()+Lead
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.holds--
		p.quiet = p.now()
	})
}

// Place returns the place of the sample that is heard at a time. It has a meaning while the pump is held.
func (p *Pump) Place(t time.Duration) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.place + nearest(t-p.at, p.m.Rate())
}

// At returns when the sample of a place is heard.
func (p *Pump) At(place int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.when(place)
}

func (p *Pump) when(place int64) time.Duration {
	n, r := place-p.place, int64(p.m.Rate())
	return p.at + time.Duration(n/r)*time.Second + time.Duration(n%r*int64(time.Second)/r)
}

// nearest returns the number of samples in a time.
func nearest(t time.Duration, rate int) int64 {
	half := int64(time.Second) / 2
	if t < 0 {
		half = -half
	}
	return int64(t/time.Second)*int64(rate) + (int64(t%time.Second)*int64(rate)+half)/int64(time.Second)
}

// Heard blocks until all that is mixed now has been heard, or ctx ends. The pump is held meanwhile.
func (p *Pump) Heard(ctx context.Context) error {
	defer p.Hold()()
	place := p.m.Position() + int64(p.m.Rate()*int(Block/time.Millisecond)/1000) // what the mixer has mixed ahead is less
	for {
		left := p.At(place) - p.now()
		if left <= 0 && p.m.Position() >= place {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(left, Block)):
		}
	}
}

// Listen hands out what is played from now on, until end is called or the pump ends, which closes the channel. While the pump rests nothing comes. A listener that is a second
// behind misses samples, and the next piece says how many. ErrListeners.
func (p *Pump) Listen() (pieces <-chan sound.Piece, end func(), err error) {
	c := make(chan sound.Piece, kept)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.listeners) == MaxListeners {
		return nil, nil, ErrListeners
	}
	p.listeners[c] = new(int64)
	return c, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.listeners, c)
	}, nil
}

// Run mixes until ctx ends; then it closes the sink. A sink that fails ends it with that error.
func (p *Pump) Run(ctx context.Context) (err error) {
	defer func() {
		p.mu.Lock()
		for c := range p.listeners {
			delete(p.listeners, c)
			close(c)
		}
		p.mu.Unlock()
		if p.sink != nil {
			err = errors.Join(err, p.sink.Close())
		}
	}()
	pcm := make([]int16, p.m.Rate()*int(Block/time.Millisecond)/1000)
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		ahead, awake := p.ahead()
		var timer <-chan time.Time
		switch {
		case awake && ahead <= Lead:
			if ctx.Err() != nil {
				return nil
			}
			p.m.Mix(pcm)
			if err := p.give(pcm); err != nil {
				return err
			}
			continue
		case awake:
			wait.Reset(ahead - Lead)
			timer = wait.C
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		case <-timer:
		}
	}
}

// ahead returns by how much the next sample is ahead of the time at which it is heard, and whether anything is to be mixed.
func (p *Pump) ahead() (ahead time.Duration, awake bool) {
	playing := p.m.Remain() > 0
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	switch {
	case !p.awake:
		return 0, false
	case p.holds > 0 || playing:
		p.quiet = now
	case now-p.quiet > rest:
		p.awake = false
		return 0, false
	}
	position := p.m.Position()
	if ahead = p.when(position) - now; ahead < -hurry { // the sink or the machine was held up
		p.place, p.at, ahead = position, now, 0
	}
	return ahead, true
}

// give hands the newest samples to listeners and to the sink.
func (p *Pump) give(pcm []int16) error {
	p.mu.Lock()
	if len(p.listeners) > 0 {
		place := p.m.Position() - int64(len(pcm))
		piece := sound.Piece{Place: place, At: p.when(place), Samples: slices.Clone(pcm)}
		for c, missed := range p.listeners {
			piece.Missed = *missed
			select {
			case c <- piece:
				*missed = 0
			default:
				*missed += int64(len(pcm))
			}
		}
	}
	p.mu.Unlock()
	if p.sink == nil {
		return nil
	}
	return p.sink.Write(pcm)
}
