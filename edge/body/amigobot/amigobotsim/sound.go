package amigobotsim

import (
	"encoding/binary"
	"slices"
	"time"

	"kennel/edge/body/amigobot/sip"
	"kennel/edge/body/amigobot/soundset"
)

// Sound is one sound that the robot begins to play.
type Sound struct {
	At     time.Duration
	Number int // in the memory of sounds; 0: the tones of SAY
	soundset.Sound
	Tones []byte // of SAY: pairs of duration, 20 ms, and half-cycle (AMIGO-CMD-15)
}

type sounds struct {
	set   soundset.Set
	image []byte
	on    bool // not muted (AMIGO-SND-04)

	playing int           // number of the present sound; 0: silence, or tones
	until   time.Duration // its end
}

// load reads the memory of sounds. One that is not whole has none.
func (s *sounds) load(image []byte) {
	*s = sounds{image: image, on: true}
	if set, err := soundset.Parse(image); err == nil {
		s.set = *set
	}
}

// play plays a sound, unless sounds are muted or the entry is empty; it interrupts an earlier one (AMIGO-CMD-90, AMIGO-SND-04).
func (r *Robot) play(n int) {
	if n < 1 || n > soundset.Count || !r.sound.on || len(r.sound.set[n].Samples) == 0 {
		return
	}
	s := r.sound.set[n]
	r.sound.playing, r.sound.until = n, r.now+time.Duration(len(s.Samples))*time.Second/soundset.Rate
	r.emit(Sound{At: r.now, Number: n, Sound: s})
}

// say only reports the tones (AMIGO-CMD-15).
func (r *Robot) say(tones []byte) {
	if r.sound.on {
		r.emit(Sound{At: r.now, Tones: slices.Clone(tones)})
	}
}

func (r *Robot) emit(s Sound) {
	if r.cfg.OnSound != nil {
		r.cfg.OnSound(s)
	}
}

// mute stops the present sound and refuses others, until it is taken back (AMIGO-CMD-92).
func (s *sounds) mute(yes bool) {
	if s.on = !yes; yes {
		s.until = 0
	}
}

// playlist appends the next packet of the playlist under way (AMIGO-XP-12 to 15).
func (r *Robot) playlist(dst []byte) []byte {
	n := r.reports.next
	e := sip.Playlist{Sound: uint8(n), On: r.sound.on}
	if n == 0 {
		e.Sound = soundset.Count - soundset.FirstUser + 1
		return e.Append(dst)
	}
	s := &r.sound.set[n]
	e.Name, e.Length = s.Name, uint32(len(s.Samples))
	if e.Length > 0 {
		entry := soundset.TableSize / soundset.Count
		e.Offset = binary.LittleEndian.Uint32(r.sound.image[entry*(n-1)+soundset.MaxName:])
	}
	return e.Append(dst)
}
