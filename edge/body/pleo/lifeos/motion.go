package lifeos

import (
	"math"
	"slices"

	"kennel/edge/anim"
	"kennel/edge/body/pleo/format"
)

// row is how often motions give set-points.
const row = anim.Row

// The handles of motions (PLEO-MOT-04, PLEO-MOT-05).
const (
	motionAny     = 0xAA
	motionInvalid = 0xFF
	motionLast    = 0xA9
)

// The speed of motions in percent (PLEO-MOT-08).
const (
	minMotionSpeed = 10
	maxMotionSpeed = 400
)

// maxMotions bounds the motions that play at once: one for each joint, and some that only play sounds.
const maxMotions = 32

// motions are those that play now, the oldest first (PLEO-MOT-13).
type motions struct {
	speed   int32
	playing []*motion
	last    int32 // handle
}

// motion is a UMF that plays: a track for each joint, because the joints of such a file do not share their times.
type motion struct {
	handle int32
	id     int32
	name   string
	own    *bundle // that numbers the cues
	tracks []track
	cues   []cue
	rows   int64 // played
	length int64
	speed  int32 // percent
	paused bool
}

// track is the way of one joint.
type track struct {
	joint  Joint
	player *anim.Player
	lost   bool // a newer motion has the joint
	last   float64
}

// cue plays a sound or a command at a row (PLEO-MOT-11).
type cue struct {
	row int64
	id  int32
}

// owns reports whether a motion moves a joint.
func (m *motions) owns(j Joint) bool {
	return slices.ContainsFunc(m.playing, func(p *motion) bool {
		return slices.ContainsFunc(p.tracks, func(t track) bool { return t.joint == j && !t.lost })
	})
}

// playMotion begins a motion and returns its handle. A newer motion takes the joints that it moves.
func (s *System) playMotion(r resource) int32 {
	if s.tired() || s.power != On {
		s.log(Warning, LogMotion, "play %s: battery low", r.path())
		return motionInvalid
	}
	if len(s.motions.playing) >= maxMotions {
		s.log(Warning, LogMotion, "play %s: %d motions play", r.path(), maxMotions)
		return motionInvalid
	}
	file, err := format.ReadMotion(r.data)
	if err != nil {
		s.log(Error, LogMotion, "play %s: %v", r.path(), err)
		return motionInvalid
	}
	m := &motion{id: r.id, name: r.name, own: r.from, speed: s.motions.speed}
	if err := s.score(m, file); err != nil {
		s.log(Error, LogMotion, "play %s: %v", r.path(), err)
		return motionInvalid
	}
	for _, p := range s.motions.playing {
		for i := range p.tracks {
			if slices.ContainsFunc(m.tracks, func(t track) bool { return t.joint == p.tracks[i].joint }) {
				p.tracks[i].lost = true
			}
		}
	}
	for m.handle = s.motions.last; ; {
		if m.handle++; m.handle > motionLast {
			m.handle = 1
		}
		if !slices.ContainsFunc(s.motions.playing, func(p *motion) bool { return p.handle == m.handle }) {
			break
		}
	}
	s.motions.last = m.handle
	s.motions.playing = append(s.motions.playing, m)
	s.log(Info, LogMotion, "%s begins, %d ms", m.name, m.length*row.Milliseconds())
	s.dropMotions(nil)
	s.showMotion()
	return m.handle
}

// score turns the vectors of a file into tracks and cues. A joint moves at constant speed from the start of a vector to its goal (PLEO-MOT-01).
func (s *System) score(m *motion, file *format.Motion) error {
	at := func(t uint16) int64 {
		ms := int64(t) * int64(file.Timebase) * 100 / int64(m.speed)
		return (ms + row.Milliseconds()/2) / row.Milliseconds()
	}
	m.length = max(at(file.End), 1)
	ways := map[Joint]*anim.Motion{}
	var ends [JointCount]int64
	for i, v := range file.Vectors {
		if v.Joint == format.SoundChannel {
			m.cues = append(m.cues, cue{at(v.Start), int32(v.Position)})
			continue
		}
		j, known := jointOf(v.Joint)
		if !known || v.Start == v.Goal && v.Position == 0 && i < len(file.Joints) {
			continue // another channel (PLEO-UMF-15), or an empty first vector
		}
		if st, _, _ := s.joint(int32(j)); st.scripted || st.held {
			continue
		}
		way := ways[j]
		if way == nil {
			way = &anim.Motion{Joints: []string{j.String()}, Keyframes: []anim.Keyframe{{Values: []int32{micro(s.hw.Joint(j).Position)}}}}
			ways[j] = way
		}
		last := way.Keyframes[len(way.Keyframes)-1].Values[0]
		start, goal := at(v.Start), max(at(v.Goal), at(v.Start)+1, ends[j]+1)
		if hold := start - ends[j]; hold > 1 {
			way.Keyframes = append(way.Keyframes, anim.Keyframe{Rows: hold, Values: []int32{last}})
			ends[j] = start
		}
		way.Keyframes = append(way.Keyframes, anim.Keyframe{Rows: goal - ends[j], Values: []int32{micro(float64(v.Position))}})
		ends[j] = goal
	}
	for j := range JointCount {
		way := ways[j]
		if way == nil {
			continue
		}
		p, err := anim.New(way, []anim.Joint{{Name: j.String()}}, anim.Options{Rule: anim.Linear})
		if err == nil {
			err = p.Start(way.Keyframes[0].Values)
		}
		if err != nil {
			return err
		}
		m.tracks = append(m.tracks, track{joint: j, player: p, last: math.Inf(1)})
	}
	return nil
}

func micro(deg float64) int32 { return int32(math.Round(deg * math.Pi / 180 * 1e6)) }

func degreesOf(v int32) float64 { return float64(v) / 1e6 * 180 / math.Pi }

// stepMotions plays the next row of all motions.
func (s *System) stepMotions() {
	for _, m := range slices.Clone(s.motions.playing) {
		if m.paused {
			continue
		}
		for len(m.cues) > 0 && m.cues[0].row <= m.rows {
			id := m.cues[0].id
			m.cues = m.cues[1:]
			s.cue(m, id)
		}
		for i := range m.tracks {
			t := &m.tracks[i]
			if st := &s.joints[t.joint]; t.lost || st.scripted || st.held || !t.player.Playing() {
				continue
			}
			var out [1]int32
			t.player.Step(out[:])
			if goal := degreesOf(out[0]); goal != t.last {
				t.last = goal
				s.moveTo(t.joint, goal, jointKinds[t.joint].Speed)
			}
		}
		m.rows++
	}
	s.dropMotions(func(m *motion) bool { return m.rows >= m.length })
	s.showMotion()
}

// cue plays what a motion's sound channel names: a sound or a command.
func (s *System) cue(m *motion, id int32) {
	if r, err := s.numbered(format.Sounds, id, m.own); err == nil {
		s.playSound(r, true)
		return
	}
	if _, err := s.numbered(format.Commands, id, m.own); err == nil {
		s.soundCommand(id, true, m.own)
		return
	}
	s.log(Warning, LogMotion, "%s: cue %#x is neither a sound nor a command", m.name, id)
}

// dropMotions ends the motions for which over is true, and those that have lost all joints.
func (s *System) dropMotions(over func(*motion) bool) {
	s.motions.playing = slices.DeleteFunc(s.motions.playing, func(m *motion) bool {
		lost := len(m.tracks) > 0 && !slices.ContainsFunc(m.tracks, func(t track) bool { return !t.lost })
		if !lost && (over == nil || !over(m)) {
			return false
		}
		s.log(Info, LogMotion, "%s ends", m.name)
		return true
	})
}

// showMotion writes the properties of the newest motion (PLEO-MOT-12).
func (s *System) showMotion() {
	id, left := int32(0), int32(0)
	if n := len(s.motions.playing); n > 0 {
		m := s.motions.playing[n-1]
		id, left = m.id, int32((m.length-m.rows)*row.Milliseconds())
	}
	if s.properties.values[PropMotion] != id {
		s.SetProperty(PropMotion, id)
	}
	if s.properties.values[PropMotionTime] != left {
		s.SetProperty(PropMotionTime, left)
	}
}

// fits reports whether an argument of a script means the motion: its handle, its id, or Motion_Any.
func (m *motion) fits(which int32) bool {
	return which == motionAny || which == m.handle || which >= 0x2000 && which == m.id
}

// stopMotions ends motions, and holds their joints where they are (PLEO-MOT-07).
func (s *System) stopMotions(which int32) bool {
	found := false
	for _, m := range s.motions.playing {
		if !m.fits(which) {
			continue
		}
		found = true
		for _, t := range m.tracks {
			if !t.lost && !s.joints[t.joint].scripted && !s.joints[t.joint].held {
				s.moveTo(t.joint, s.hw.Joint(t.joint).Position, jointKinds[t.joint].Speed)
			}
		}
	}
	s.dropMotions(func(m *motion) bool { return m.fits(which) })
	s.showMotion()
	return found
}

// pauseMotions stops the time of motions, or lets it continue; the joints hold (PLEO-MOT-06).
func (s *System) pauseMotions(which int32, pause bool) bool {
	found := false
	for _, m := range s.motions.playing {
		if m.fits(which) {
			m.paused, found = pause, true
		}
	}
	return found
}

// motionPlaying reports whether a motion plays or is paused (PLEO-MOT-10).
func (s *System) motionPlaying(which int32) bool {
	return slices.ContainsFunc(s.motions.playing, func(m *motion) bool { return m.fits(which) })
}

// setMotionSpeed sets the speed of later motions and returns it.
func (s *System) setMotionSpeed(percent int32) int32 {
	s.motions.speed = min(max(percent, minMotionSpeed), maxMotionSpeed)
	return s.motions.speed
}
