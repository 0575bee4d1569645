package lifeos

import (
	"time"

	"kennel/edge/body/pleo/format"
)

// SampleRate is the rate of the loudspeaker in samples a second.
const SampleRate = 11025

// The ranges of volume and speed in percent (PLEO-SND-10, PLEO-SND-11).
const (
	minVolume     = 10
	maxVolume     = 200
	minSoundSpeed = 25
	maxSoundSpeed = 200
)

// The handles of sounds (PLEO-SND-02).
const (
	soundAny     = 0
	soundInvalid = 0
	soundLast    = 0xFFF
)

// voice is the one sound that can play (PLEO-SND-07).
type voice struct {
	volume, speed int32
	last          int32 // handle

	playing bool
	handle  int32
	begun   uint32 // since power-on
	id      int32
	name    string
	pcm     []byte
	rate    int64
	fixed   bool  // its speed must not be changed
	loops   int   // left; 0: for ever
	at      int64 // sample of pcm, times scale
	sent    int64 // samples of the loudspeaker since power-on
	out     []int16
}

// scale is the resolution of voice.at.
const scale = 1 << 16

func (v *voice) init() { v.volume, v.speed = 100, 100 }

// playSound begins a sound and returns its handle. While another one plays it needs interrupt (PLEO-SND-04).
func (s *System) playSound(r resource, interrupt bool) int32 {
	v := &s.sound
	if v.playing && !interrupt {
		s.log(Info, LogSound, "play %s: %s plays", r.path(), v.name)
		return soundInvalid
	}
	file, err := format.ReadSound(r.data)
	if err != nil {
		s.log(Error, LogSound, "play %s: %v", r.path(), err)
		return soundInvalid
	}
	s.stopSound(soundAny)
	pcm := file.PCM()
	if len(pcm) == 0 {
		s.log(Warning, LogSound, "play %s: no samples", r.path())
		return soundInvalid
	}
	if v.last++; v.last > soundLast {
		v.last = 1
	}
	v.begun++
	v.playing, v.handle, v.id, v.name = true, v.last, r.id, r.name
	v.pcm, v.rate, v.fixed, v.loops, v.at = pcm, int64(file.Rate), file.DontPitchShift, int(file.Loops), 0
	v.sent = v.due(s.now)
	s.SetProperty(PropSound, v.id) // PLEO-SND-12
	s.log(Info, LogSound, "%s begins, %d ms", v.name, int64(len(pcm))*scale*1000/v.step()/SampleRate)
	return v.handle
}

// due returns the samples of the loudspeaker since power-on.
func (v *voice) due(now time.Duration) int64 {
	return int64(now/time.Microsecond) * SampleRate / 1_000_000
}

// step returns how far a sample of the loudspeaker moves in the sound, times scale.
func (v *voice) step() int64 {
	speed := int64(v.speed)
	if v.fixed {
		speed = 100
	}
	return max(v.rate*scale*speed/100/SampleRate, 1)
}

// stepSound gives the loudspeaker the samples of this tick, and ends the sound in time (PLEO-SND-15).
func (s *System) stepSound() {
	v := &s.sound
	if !v.playing {
		return
	}
	v.out = v.out[:0]
	step := v.step()
	for due := v.due(s.now); v.sent < due && v.playing; v.sent++ {
		if v.at/scale >= int64(len(v.pcm)) {
			if v.loops == 1 {
				s.endSound()
				break
			}
			if v.loops > 1 {
				v.loops--
			}
			v.at %= int64(len(v.pcm)) * scale // PLEO-SND-13
		}
		sample := (int32(v.pcm[v.at/scale]) - 128) * 4 * v.volume / 100
		v.out = append(v.out, int16(min(max(sample, -512), 511))) // PLEO-SND-14
		v.at += step
	}
	if len(v.out) > 0 {
		s.hw.Play(v.out)
	}
}

func (s *System) endSound() {
	v := &s.sound
	v.playing, v.pcm = false, nil
	s.SetProperty(PropSound, 0)
	s.log(Info, LogSound, "%s ends", v.name)
}

// soundPlaying reports whether the sound with this handle or id plays, or any.
func (s *System) soundPlaying(which int32) bool {
	v := &s.sound
	return v.playing && (which == soundAny || which == v.handle || which > soundLast && which == v.id)
}

// stopSound stops a sound, and reports whether it played (PLEO-SND-08).
func (s *System) stopSound(which int32) bool {
	if !s.soundPlaying(which) {
		return false
	}
	s.endSound()
	return true
}
