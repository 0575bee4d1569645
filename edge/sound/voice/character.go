package voice

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"kennel/edge/sound"
	"kennel/infra/errs"
)

// Character is how a robot sounds: what is done to the speech of a synthesiser (VEC-TTS-03).
type Character struct {
	Name    string
	Pitch   float64      // Hz that the middle of the speech gets, whatever voice the synthesiser has; 0: as it is
	Size    float64      // factor of the speaker's size, which colours the vowels; 0: 1
	Flat    float64      // how much less the pitch moves, 0 to 1: 1 is one tone
	Speed   float64      // factor; 0: 1
	Comb    float64      // strength of an echo after 4 ms, 0 to below 1: the ring of a small case
	Ring    float64      // Hz with which the voice trembles; 0: none
	RingMix float64      // how much of it, 0 to 1
	Bands   []sound.Band // gains of bands of pitch
}

// Characters are the ones that come with Kennel. Plain is the synthesiser's own voice.
var Characters = []Character{
	{Name: "plain"},
	{Name: "vector", Pitch: 235, Flat: 0.35, Speed: 1.02, Comb: 0.25, Ring: 55, RingMix: 0.12, Bands: []sound.Band{{Hz: 350, DB: -4, Q: 0.8}, {Hz: 2600, DB: 4, Q: 0.9}, {Hz: 5200, DB: -3, Q: 1}}},
	{Name: "tin", Pitch: 150, Flat: 0.9, Comb: 0.45, Ring: 70, RingMix: 0.45, Bands: []sound.Band{{Hz: 1400, DB: 5, Q: 1}}},
	{Name: "tiny", Pitch: 310, Size: 0.8, Flat: 0.1, Speed: 1.1, Bands: []sound.Band{{Hz: 400, DB: -6, Q: 0.8}}},
	{Name: "giant", Pitch: 80, Size: 1.2, Flat: 0.2, Speed: 0.9, Comb: 0.2, Bands: []sound.Band{{Hz: 180, DB: 5, Q: 0.8}}},
}

// FindCharacter returns a character by its name. NotFound lists the names.
func FindCharacter(name string) (Character, error) {
	var names []string
	for _, c := range Characters {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Character{}, errs.New(errs.NotFound, "expected a character of %s, found %.40q", errs.List(names), name)
}

// combDelay is the echo of a case, in seconds.
const combDelay = 0.004

// Apply returns an utterance in the character's voice. The pitch is estimated every 30 ms (VEC-TTS-03).
func (c Character) Apply(u Utterance) (Utterance, error) {
	speed := cmp.Or(c.Speed, 1)
	out, err := u.Shaped(speed, 1)
	if err != nil {
		return u, fmt.Errorf("character %s: %w", c.Name, err)
	}
	if c.Pitch > 0 || c.Flat > 0 || c.Size > 0 {
		track := Track(out.Sound)
		middle := median(track)
		centre := middle
		if c.Pitch > 0 {
			centre = min(max(c.Pitch, middle/2), 2*middle) // beyond an octave speech is not understood
		}
		if middle > 0 {
			out.Sound = repitch(out.Sound, track, func(hz float64) float64 {
				return min(max(centre*math.Pow(hz/middle, 1-c.Flat), hz/2.5), 2.5*hz)
			}, 1/cmp.Or(c.Size, 1))
		}
	}
	if out.Sound == u.Sound && (c.Comb > 0 || c.Ring > 0 || len(c.Bands) > 0) {
		out.Sound = &sound.Sound{Rate: u.Sound.Rate, Samples: slices.Clone(u.Sound.Samples)}
	}
	c.colour(out.Sound, u.Sound.Peak())
	return out, nil
}

// colour changes the sound of a voice in place, and leaves it with a peak.
func (c Character) colour(s *sound.Sound, peak float32) {
	x := s.Samples
	if c.Comb > 0 {
		delay, g := int(combDelay*float64(s.Rate)), float32(c.Comb)
		for i := delay; i < len(x); i++ {
			x[i] += g * x[i-delay]
		}
	}
	if c.Ring > 0 {
		step := 2 * math.Pi * c.Ring / float64(s.Rate)
		for i := range x {
			x[i] *= float32(1 - c.RingMix*(0.5-0.5*math.Cos(step*float64(i))))
		}
	}
	sound.NewEqualiser(s.Rate, c.Bands).Apply(x)
	if now := s.Peak(); now > 0 && (c.Comb > 0 || c.Ring > 0 || len(c.Bands) > 0) {
		for i := range x {
			x[i] *= peak / now
		}
	}
}

// median returns the middle of the pitches that are not 0, 0 for none.
func median(track []float64) float64 {
	voiced := slices.DeleteFunc(slices.Clone(track), func(hz float64) bool { return hz == 0 })
	if len(voiced) == 0 {
		return 0
	}
	slices.Sort(voiced)
	return voiced[len(voiced)/2]
}
