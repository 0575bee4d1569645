package clip

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"kennel/edge/face"
)

// Limits are what a body can do, in the units of the files.
type Limits struct {
	HeadMin, HeadMax float64 // degrees, up positive
	LiftMin, LiftMax float64 // mm
	Speed            float64 // mm/s, of a wheel
	Turn             float64 // degrees a second
	Track            float64 // mm between the wheels
}

// Vector are the limits of a Vector: head and lift as VEC-AFF-07 and part of VEC-MCT-05 say; speeds are our own.
var Vector = Limits{HeadMin: -22, HeadMax: 45, LiftMin: 32, LiftMax: 92, Speed: 220, Turn: 360, Track: 48}

// MaxSpan is the longest time that a clip may take, in milliseconds; our own limit.
const MaxSpan = 10 * 60 * 1000

// MaxBoxes is the most boxes of pictures that a clip may have on the display; our own limit, for the time that a frame takes.
const MaxBoxes = 32

// Problem is one number that a clip should not have. It is an ErrClip.
type Problem struct {
	Clip     string `json:"clip"`
	Track    string `json:"track"`
	Keyframe int    `json:"keyframe"`
	Field    string `json:"field"`
	Expected string `json:"expected"`
	Found    string `json:"found"`
}

// Error says where, what was expected and what was found.
func (p Problem) Error() string {
	return fmt.Sprintf("%v: %.60s: %s[%d].%s: expected %s, found %s", ErrClip, p.Clip, p.Track, p.Keyframe, p.Field, p.Expected, p.Found)
}

// Unwrap returns ErrClip.
func (Problem) Unwrap() error { return ErrClip }

// checker collects problems of one clip.
type checker struct {
	clip     *Clip
	track    string
	keyframe int
	found    []Problem
}

func (c *checker) add(field, expected string, found any) {
	const most = 1000 // of one clip
	if len(c.found) < most {
		c.found = append(c.found, Problem{c.clip.Name, c.track, c.keyframe, field, expected, fmt.Sprintf("%.80s", fmt.Sprint(found))})
	}
}

// within checks a number.
func (c *checker) within(field string, v, low, high float64) {
	if !(v >= low && v <= high) {
		c.add(field, fmt.Sprintf("%v to %v", low, high), v)
	}
}

// order returns the keyframes whose time is not after the one before, and tracks that are too long.
func (c *Clip) order() []Problem {
	k := checker{clip: c}
	last := uint32(0)
	c.each(func(track string, i int, trigger, duration uint32) {
		if k.track, k.keyframe = track, i; i > 0 && trigger <= last {
			k.add("triggerTime_ms", fmt.Sprintf("more than %d", last), trigger)
		}
		if i == MaxFrames {
			k.add("triggerTime_ms", fmt.Sprintf("at most %d keyframes", MaxFrames), "more")
		}
		last = trigger
	})
	return k.found
}

// Check returns what is wrong with a clip for a body: times, angles, heights and speeds beyond the limits, and values that no face, light or sound has. A clip
// without problems plays as it says.
func (c *Clip) Check(l Limits) []Problem {
	k := checker{clip: c, found: c.order()}
	c.each(func(track string, i int, trigger, duration uint32) {
		k.track, k.keyframe = track, i
		k.within("triggerTime_ms", float64(trigger), 0, MaxSpan)
		k.within("durationTime_ms", float64(duration), 0, MaxSpan)
	})
	k.motion(l)
	k.looks()
	k.sound()
	return k.found
}

// events are the events that some behaviour hears or waits for (part of VEC-AFF-16).
var events = []string{"CHANGE_EYE_COLOR", "CUBE_LIGHT_TOGGLE", Beat, "DEAL_CARDS_BEGIN", "FLIP_DOWN_BEGIN", "LISTENING_BEGIN", "SWIPE_CARDS_BEGIN", "TAPPED_BLOCK", "TOGGLE_NUMBERS_DISPLAY"}

// Unexpected returns the events of a clip that no behaviour expects: it plays all the same, and nothing hears them (part of VEC-AFF-20).
func (c *Clip) Unexpected() []Problem {
	k := checker{clip: c, track: "EventKeyFrame"}
	for i, x := range c.Tracks.Events {
		if k.keyframe = i; !slices.Contains(events, x.ID) {
			k.add("event_id", "one of "+strings.Join(events, ", "), x.ID)
		}
	}
	return k.found
}

// motion checks lift, head and body.
func (c *checker) motion(l Limits) {
	c.track = "LiftHeightKeyFrame"
	for i, x := range c.clip.Tracks.Lift {
		c.keyframe = i
		c.within("height_mm", float64(x.Height), l.LiftMin, l.LiftMax)
		c.within("heightVariability_mm", float64(x.Variability), 0, l.LiftMax-l.LiftMin)
	}
	c.track = "HeadAngleKeyFrame"
	for i, x := range c.clip.Tracks.Head {
		c.keyframe = i
		c.within("angle_deg", float64(x.Angle), l.HeadMin, l.HeadMax)
		c.within("angleVariability_deg", float64(x.Variability), 0, l.HeadMax-l.HeadMin)
	}
	c.track = "BodyMotionKeyFrame"
	for i, x := range c.clip.Tracks.Body {
		c.keyframe = i
		switch x.Radius {
		case Straight:
			c.within("speed", float64(x.Speed), -l.Speed, l.Speed)
		case TurnInPlace:
			c.within("speed", float64(x.Speed), -l.Turn, l.Turn)
		default:
			r, err := x.Radius.number()
			if err != nil || math.IsInf(r, 0) || !(math.Abs(r) >= 1) {
				c.add("radius_mm", "STRAIGHT, TURN_IN_PLACE or a number that is not 0", string(x.Radius))
				continue
			}
			c.within("radius_mm", math.Abs(r), 1, 10_000)
			outer := math.Abs(float64(x.Speed)) * (math.Abs(r) + l.Track/2) / math.Abs(r)
			c.within("speed", outer, 0, l.Speed)
		}
	}
	c.track = "TurnToRecordedHeadingKeyFrame"
	for i, x := range c.clip.Tracks.Return {
		c.keyframe = i
		c.within("offset_deg", float64(x.Offset), -360, 360)
		c.within("speed_degPerSec", float64(x.Speed), -l.Turn, l.Turn)
		c.within("accel_degPerSec2", float64(x.Accel), 1, 10_000)
		c.within("decel_degPerSec2", float64(x.Decel), 1, 10_000)
		c.within("tolerance_deg", float64(x.Tolerance), 0, 180)
		c.within("numHalfRevs", float64(x.HalfRevs), 0, 20)
	}
}

// looks checks face, lights, sprites and boxes.
func (c *checker) looks() {
	c.track = "ProceduralFaceKeyFrame"
	for i := range c.clip.Tracks.Face {
		c.keyframe = i
		if _, err := c.clip.Tracks.Face[i].Params(); err != nil {
			text := strings.TrimPrefix(err.Error(), face.ErrParam.Error()+": ")
			field, rest, _ := strings.Cut(text, ": expected ")
			expected, found, _ := strings.Cut(rest, ", found ")
			c.add(field, expected, found)
		}
	}
	c.track = "BackpackLightsKeyFrame"
	for i, x := range c.clip.Tracks.Backpack {
		c.keyframe = i
		if x.Older != nil {
			c.add("Front", "the third field", "a file of the older robot, which has Left and Right before it") // part of VEC-AFF-21
		}
		for _, light := range [...]struct {
			name string
			rgba []float32
		}{{"Front", x.Front}, {"Middle", x.Middle}, {"Back", x.Back}} {
			if n := len(light.rgba); n != 0 && n != 4 {
				c.add(light.name, "4 values", n)
			}
			for _, v := range light.rgba {
				c.within(light.name, float64(v), 0, 1)
			}
		}
	}
	c.track = "FaceAnimationKeyFrame"
	for i, x := range c.clip.Tracks.Sprites {
		c.keyframe = i
		c.within("scanlineOpacity", float64(x.ScanlineOpacity), 0, 1)
	}
	c.track = "SpriteBoxKeyFrame"
	boxes := map[[2]string]bool{}
	for i, x := range c.clip.Tracks.Boxes {
		c.keyframe = i
		if boxes[[2]string{x.Layer, x.Name}] = true; len(boxes) == MaxBoxes+1 {
			c.add("spriteBoxName", fmt.Sprintf("at most %d boxes", MaxBoxes), "more")
		}
		c.within("alpha", float64(x.Alpha), 0, 100)
		c.within("width", float64(x.Width), 0, face.Width)
		c.within("height", float64(x.Height), 0, face.Height)
		c.within("xPos", float64(x.X), -face.Width, face.Width) // partly outside is legal
		c.within("yPos", float64(x.Y), -face.Height, face.Height)
		if x.Method != "CustomHue" && x.Method != "RGBA" {
			c.add("renderMethod", "CustomHue or RGBA", x.Method)
		}
		if x.End != "Clear" && x.End != "Hold" && x.End != "Loop" {
			c.add("spriteSeqEndType", "Clear, Hold or Loop", x.End)
		}
	}
}

// sound checks the audio track.
func (c *checker) sound() {
	c.track = "RobotAudioKeyFrame"
	for i, x := range c.clip.Tracks.Audio {
		c.keyframe = i
		for _, g := range x.Groups {
			if n := len(g.Events); n == 0 || len(g.Volumes) != n || len(g.Probabilities) != n {
				c.add("eventGroups", "as many volumes and probabilities as events, and at least 1", fmt.Sprintf("%d, %d and %d", n, len(g.Volumes), len(g.Probabilities)))
				continue
			}
			for j := range g.Events {
				c.within("volumes", float64(g.Volumes[j]), 0, 1)
				if p := float64(g.Probabilities[j]); !(p > 0 && p <= 1) {
					c.add("probabilities", "more than 0 and at most 1", p)
				}
			}
		}
		for _, p := range x.Parameters {
			c.within("value", float64(p.Value), -1e6, 1e6)
			c.within("time_ms", float64(p.Time), 0, MaxSpan)
		}
	}
}

// Params returns the face of a keyframe. An error of package face if it has values that no face has.
func (f *Face) Params() (face.Params, error) {
	p := face.Neutral
	left, err1 := face.EyeOf(f.Left)
	right, err2 := face.EyeOf(f.Right)
	if err1 != nil || err2 != nil {
		return p, cmp.Or(err1, err2)
	}
	p.Left, p.Right = left, right
	p.Whole = [face.WholeValues]float32{face.Angle: f.Angle, face.CenterX: f.CenterX, face.CenterY: f.CenterY, face.ScaleX: f.ScaleX, face.ScaleY: f.ScaleY,
		face.ScanlineOpacity: f.ScanlineOpacity}
	return p, p.Check()
}

// FaceOf returns the keyframe of a face.
func FaceOf(trigger uint32, p *face.Params) Face {
	w := &p.Whole
	return Face{Trigger: trigger, Angle: w[face.Angle], CenterX: w[face.CenterX], CenterY: w[face.CenterY], ScaleX: w[face.ScaleX], ScaleY: w[face.ScaleY],
		Left: append([]float32(nil), p.Left[:]...), Right: append([]float32(nil), p.Right[:]...), ScanlineOpacity: w[face.ScanlineOpacity]}
}
