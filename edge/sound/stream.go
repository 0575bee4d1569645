package sound

import (
	"fmt"
	"sync"
	"time"
)

// The bounds of a stream of a client (part of VEC-AUD-05), and how much of it is kept. The source gives no size (part of VEC-AUD-06); the published Python
// client sends up to a second and a chunk ahead, and takes an overrun for the end.
const (
	MinStreamRate = 8000
	MaxStreamRate = 16025
	MaxChunk      = 1024                  // bytes
	Cushion       = 80 * time.Millisecond // that have come before the first sample is heard, so that a client that sends as fast as it is heard may be a little late
	StreamBuffer  = 2 * time.Second
)

// Overrun says that samples came faster than they are played, and that the newest were dropped (part of VEC-SND-10).
type Overrun struct {
	Sent, Played int64 // samples of the client, since the stream began
}

// Error implements error.
func (o *Overrun) Error() string {
	return fmt.Sprintf("sound: stream overrun: %d samples sent, %d played", o.Sent, o.Played)
}

// Stream is a sound that a client sends while it plays. Its methods may be called concurrently.
type Stream struct {
	*Playing
	rate  int
	resam *Resampler

	mu       sync.Mutex
	ring     []float32 // at the mixer's rate
	first, n int
	sent     int64 // samples of the client
	played   int64 // of the mixer
	gaps     int64 // samples of the mixer for which nothing had come
	complete bool
	begun    bool // the cushion was there
	scratch  []float32
}

// Open begins a stream of 16-bit samples at a rate of MinStreamRate to MaxStreamRate (part of VEC-AUD-05), with a gain as PercentGain returns it. ErrRate, ErrFull.
func (m *Mixer) Open(c Channel, rate int, gain float64) (*Stream, error) {
	if rate < MinStreamRate || rate > MaxStreamRate {
		return nil, fmt.Errorf("%w: expected a stream of %d to %d Hz, found %d", ErrRate, MinStreamRate, MaxStreamRate, rate)
	}
	resam, err := NewResampler(rate, m.cfg.Rate)
	if err != nil {
		return nil, err
	}
	s := &Stream{rate: rate, resam: resam, ring: make([]float32, int(StreamBuffer.Seconds()*float64(m.cfg.Rate)))}
	s.Playing, err = m.add(&Playing{m: m, channel: c, from: s, gain: float32(gain), was: float32(gain), done: make(chan struct{})})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Write adds samples. An Overrun tells that not all had room; ErrClosed that the stream is complete or was stopped.
func (s *Stream) Write(pcm []int16) error {
	select {
	case <-s.done:
		return ErrClosed
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.complete {
		return ErrClosed
	}
	s.sent += int64(len(pcm))
	in := FromPCM(s.rate, pcm).Samples
	s.scratch = s.resam.Append(s.scratch[:0], in)
	return s.put()
}

// put moves what was resampled into the ring.
func (s *Stream) put() error {
	for _, v := range s.scratch {
		if s.n == len(s.ring) {
			return &Overrun{Sent: s.sent, Played: s.heard()}
		}
		s.ring[(s.first+s.n)%len(s.ring)] = v
		s.n++
	}
	return nil
}

// heard returns how many samples of the client have been played.
func (s *Stream) heard() int64 { return s.played * int64(s.rate) / int64(s.m.cfg.Rate) }

// Complete ends the stream: Done is closed when its last sample was played (part of VEC-SND-10).
func (s *Stream) Complete() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.complete {
		return
	}
	s.complete = true
	s.scratch = s.resam.Append(s.scratch[:0], make([]float32, s.resam.half)) // what the filter still holds
	_ = s.put()                                                              // the buffer is full of what is louder
}

// Cancel drops what was not played.
func (s *Stream) Cancel() {
	s.mu.Lock()
	s.complete, s.n = true, 0
	s.mu.Unlock()
	s.Stop(0)
}

// Counts returns the samples of the client that were sent and played, and for how long nothing was there to play.
func (s *Stream) Counts() (sent, played int64, gaps time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent, min(s.heard(), s.sent), time.Duration(s.gaps) * time.Second / time.Duration(s.m.cfg.Rate)
}

func (s *Stream) read(dst []float32) (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun && !s.complete && s.n < int(Cushion.Seconds()*float64(s.m.cfg.Rate)) {
		return 0, false
	}
	s.begun = true
	n := min(len(dst), s.n)
	for i := range n {
		dst[i] = s.ring[s.first]
		if s.first++; s.first == len(s.ring) {
			s.first = 0
		}
	}
	s.n -= n
	s.played += int64(n)
	if s.complete {
		return n, s.n == 0
	}
	if s.played > 0 {
		s.gaps += int64(len(dst) - n)
	}
	return n, false
}

func (s *Stream) remain() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.n)
}
