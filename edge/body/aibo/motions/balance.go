package motions

import (
	"fmt"

	"kennel/edge/anim"
	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/mtn"
	"kennel/edge/body/aibo/statics"
)

// CodeTip says that the body would tip over.
const CodeTip = "tip"

// Balance follows how a body rests while its joints move row by row. It belongs to one goroutine.
type Balance struct {
	body   *statics.Body
	index  []int // of each joint of Body in aibo.Joints
	angles []float64
	up     statics.Vec
	begun  bool
}

// NewBalance returns the Balance of a model that is put on the floor with a direction up in its first row; statics.Upright for one on its paws.
func NewBalance(m aibo.Model, up statics.Vec) *Balance {
	b := &Balance{body: statics.New(m), up: up}
	have := aibo.Joints(m)
	for _, j := range joints(m) {
		for i := range have {
			if have[i].Native == j.Native {
				b.index = append(b.index, i)
			}
		}
	}
	b.angles = make([]float64, len(have))
	return b
}

// Step returns how the body rests with its joints at a row of set-points, which are those of Body. The first row is where it is put down, so it has not tipped
// there whatever Turned says.
func (b *Balance) Step(row []int32) statics.Stance {
	for i, v := range row {
		b.angles[b.index[i]] = float64(v) / 1e6
	}
	f := b.body.Pose(b.angles)
	s := f.Settle(b.up)
	b.up = s.Up
	if !b.begun {
		b.begun, s.Turned = true, 0
	}
	return s
}

// Fall is where a motion would tip, or how the body rests after one that does not.
type Fall struct {
	Row      int64 // of 8 ms, from the first keyframe
	Keyframe int   // at the begin of the segment
	Toward   statics.Way
	Attitude statics.Attitude // how it then rests
	Up       statics.Vec      // the world's up in the body's frame, at the end
}

// Falls plays a motion on the statics of a model in straight ways, from where its joints are and a direction up, and returns where it would tip first;
// false if it does not. Joints that the motion does not list stay where they are.
func Falls(m aibo.Model, motion *anim.Motion, at []int32, up statics.Vec) (Fall, bool, error) {
	p, err := anim.New(motion, Body(m), anim.Options{Rule: anim.Linear})
	if err != nil {
		return Fall{}, false, err
	}
	if err := p.Start(at); err != nil {
		return Fall{}, false, err
	}
	b := NewBalance(m, up)
	out, row := Fall{Row: -1}, make([]int32, len(at))
	out.Up = b.Step(at).Up
	for p.Playing() {
		e := p.Step(row)
		if out.Row >= 0 || e.Has(anim.Began) {
			out.Row++ // the way to the first keyframe does not count
		}
		s := b.Step(row)
		out.Up = s.Up
		if s.Tipped() {
			out.Keyframe, out.Toward, out.Attitude = max(p.Keyframe(), 0), s.Toward, s.Attitude
			return out, true, nil
		}
	}
	return out, false, nil
}

// begin returns where the joints of a model are when a motion begins: as in its first keyframe, and those that it does not list as in the posture that its
// name says, or in the nominal stand of the model.
func begin(f *mtn.File, m aibo.Model, motion *anim.Motion) []int32 {
	at, known := Posture(m, mtn.ParseName(f.Name).Start)
	if !known {
		at, _ = Posture(m, "stand")
	}
	for i, j := range Body(m) {
		for c, name := range motion.Joints {
			if name == j.Name && len(motion.Keyframes) > 0 {
				at[i] = motion.Keyframes[0].Values[c]
			}
		}
	}
	return at
}

// CheckBalance returns a warning at the first row in which the body that a motion is for would tip over, by its statics; none if it would not, or if the
// motion cannot be played at all, which Check says.
func CheckBalance(f *mtn.File) []mtn.Finding {
	m, known := ModelOf(f)
	if !known {
		return nil
	}
	motion, err := Motion(f, m, false)
	if err != nil {
		return nil
	}
	fall, falls, err := Falls(m, motion, begin(f, m, motion), statics.Upright)
	if err != nil || !falls {
		return nil
	}
	at := int64(-1)
	if len(f.Joints) > 0 && fall.Keyframe < len(f.Keyframes) {
		at = f.Offsets().Angle(fall.Keyframe, 0)
	}
	return []mtn.Finding{{Severity: mtn.Warning, Code: CodeTip, Offset: at, Block: 3, What: fmt.Sprintf("row %d, way from keyframe %d: balance", fall.Row, fall.Keyframe),
		Expected: "the weight above the paws", Found: fmt.Sprintf("the body tips to the %v and rests %v", fall.Toward, fall.Attitude)}}
}
