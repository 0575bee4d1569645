package amigobotsim

import (
	"math"

	"kennel/edge/body/amigobot/sip"
)

// Limits of the sonars (AMIGO-SON-03, AMIGO-SON-04, AMIGO-OPEN-16).
const (
	cyclesPerPing = 5
	minRange      = 0.10 // m
	maxRange      = 5.0
	noEcho        = 6.1 // m, reported for anything nearer or farther
	cone          = 15 * deg
	glance        = 60 * deg
	maxPolled     = 16  // own default
	falseEchoes   = 0.1 // share of pings at full gain, beyond which none is more sensitive; own default
)

// ring is the default firing order (AMIGO-SON-05).
var ring = [sip.Sonars]byte{0, 1, 2, 3, 4, 5, 6, 7}

// sonar fires one transducer after the other.
type sonar struct {
	on       bool
	sequence []byte
	at, wait int
	ranges   [sip.Sonars]float64 // m, the latest
}

// start begins with the first of the sequence.
func (s *sonar) start() {
	s.on, s.at, s.wait = true, 0, cyclesPerPing
	for i := range s.ranges {
		s.ranges[i] = noEcho
	}
}

// poll changes the firing order; on the wire sonars count from 1 (AMIGO-CMD-03).
func (s *sonar) poll(text []byte) {
	s.sequence, s.at = nil, 0
	for _, c := range text {
		if c >= 1 && c <= sip.Sonars && len(s.sequence) < maxPolled {
			s.sequence = append(s.sequence, c-1)
		}
	}
}

// ping fires the next sonar when it is due; its range is in the next standard packet (AMIGO-SON-08).
func (r *Robot) ping() {
	s := &r.sonar
	if !s.on || len(s.sequence) == 0 {
		return
	}
	if s.wait--; s.wait > 0 {
		return
	}
	s.wait = cyclesPerPing
	n := s.sequence[s.at]
	s.at = (s.at + 1) % len(s.sequence)
	s.ranges[n] = r.measure(int(n))
	if r.mode == Connected {
		mm := s.ranges[n] * 1000
		if r.version < 12 { // the client multiplies by 0.555 (AMIGO-SIP-15)
			mm /= 0.555
		}
		r.reports.readings = append(r.reports.readings, sip.Reading{Sonar: n, Range: uint16(math.Round(mm))})
	}
}

// measure returns the range of sonar n, m. The gain screw decides how far it hears and how often carpet answers (AMIGO-SON-07).
func (r *Robot) measure(n int) float64 {
	gain := r.cfg.SonarGain
	d := r.world.Echo(r.cfg.profile().Sonars[n], cone, glance)
	d *= 1 + float64(r.cfg.SonarNoise*r.rng.NormFloat64())
	if r.chance(falseEchoes * (gain - defaultGain) / (1 - defaultGain)) {
		d = min(d, minRange+float64((maxRange-minRange)*r.rng.Float64()))
	}
	if d < minRange || d > maxRange*min(gain/defaultGain, 1) {
		return noEcho
	}
	return d
}
