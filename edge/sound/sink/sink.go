// Package sink carries the samples of a mixer to where they are heard: a WAV file, a program such as aplay, or the browsers of people who listen.
package sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"kennel/edge/sound"
	"kennel/infra/wav"
)

// Sink takes samples of one channel. Its methods are called by one goroutine.
type Sink interface {
	// Write takes samples. It may wait until there is room for them, less than a second; a sink that cannot play drops them, so that time goes by for clips.
	Write(pcm []int16) error
	Close() error
}

// Block is how much Run mixes at once, and Lead by how much it may be ahead of the clock.
const (
	Block = 10 * time.Millisecond
	Lead  = 60 * time.Millisecond
)

// Run mixes into a sink at the pace of time until ctx ends; a sink that takes less than that sets the pace. It closes the sink, and returns its error; nil if ctx ended.
func Run(ctx context.Context, m *sound.Mixer, s Sink) (err error) {
	defer func() {
		if e := s.Close(); err == nil {
			err = e
		}
	}()
	pcm := make([]int16, m.Rate()*int(Block/time.Millisecond)/1000)
	began, written := time.Now(), int64(0)
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		ahead := time.Duration(written*int64(time.Second)/int64(m.Rate())) - time.Since(began)
		if ahead < -time.Second/4 { // the sink or the machine was held up: what was missed is not hurried after
			began, written, ahead = time.Now(), 0, 0
		}
		if ahead > Lead {
			wait.Reset(ahead - Lead)
			select {
			case <-ctx.Done():
				return nil
			case <-wait.C:
			}
		} else if ctx.Err() != nil {
			return nil
		}
		m.Mix(pcm)
		if err := s.Write(pcm); err != nil {
			return err
		}
		written += int64(len(pcm))
	}
}

// Render mixes so many samples into a sink, as fast as it takes them.
func Render(m *sound.Mixer, s Sink, samples int64) error {
	pcm := make([]int16, 1024)
	for samples > 0 {
		n := min(samples, int64(len(pcm)))
		m.Mix(pcm[:n])
		if err := s.Write(pcm[:n]); err != nil {
			return err
		}
		samples -= n
	}
	return nil
}

// ErrLong says that a file has reached the length that its header can tell, 18 hours at 16,000 samples a second.
var ErrLong = errors.New("sink: WAV file is full")

// File writes a WAV file. Its header has the true size after Close, and after each second of sound, so that a file of a program that died is read as far as it goes.
type File struct {
	f       *os.File
	rate    int
	bytes   int
	told    int // in the header
	scratch []byte
}

// Create makes a WAV file, or empties one.
func Create(name string, rate int) (*File, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	s := &File{f: f, rate: rate}
	if _, err := f.Write(wav.AppendHeader(nil, rate, 1, 0)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// Write implements Sink. ErrLong.
func (s *File) Write(pcm []int16) error {
	if s.bytes+2*len(pcm) > wav.Endless {
		return ErrLong
	}
	s.scratch = appendPCM(s.scratch[:0], pcm)
	if _, err := s.f.Write(s.scratch); err != nil {
		return err
	}
	s.bytes += len(s.scratch)
	if s.bytes-s.told >= 2*s.rate {
		return s.tell()
	}
	return nil
}

// tell writes the header.
func (s *File) tell() error {
	s.told = s.bytes
	_, err := s.f.WriteAt(wav.AppendHeader(nil, s.rate, 1, s.bytes), 0)
	return err
}

// Close implements Sink.
func (s *File) Close() error { return errors.Join(s.tell(), s.f.Close()) }

func appendPCM(b []byte, pcm []int16) []byte {
	for _, v := range pcm {
		b = append(b, byte(v), byte(uint16(v)>>8))
	}
	return b
}

// Tee writes to several sinks. One that fails is closed and left out; Write returns the last error once all have failed.
type Tee struct{ sinks []Sink }

// NewTee returns a sink that writes to all sinks.
func NewTee(sinks ...Sink) *Tee { return &Tee{sinks} }

// Write implements Sink.
func (t *Tee) Write(pcm []int16) error {
	var last error
	kept := t.sinks[:0]
	for _, s := range t.sinks {
		if err := s.Write(pcm); err != nil {
			last = errors.Join(err, s.Close())
		} else {
			kept = append(kept, s)
		}
	}
	if t.sinks = kept; len(kept) > 0 {
		return nil
	}
	if last == nil {
		last = io.ErrClosedPipe
	}
	return fmt.Errorf("sink: %w", last)
}

// Close implements Sink.
func (t *Tee) Close() error {
	var errs []error
	for _, s := range t.sinks {
		errs = append(errs, s.Close())
	}
	t.sinks = nil
	return errors.Join(errs...)
}
