// Package clip holds animations: what a robot's face, head, lift, wheels, lights and speaker do together, as keyframes with times.
//
//	binary (FlatBuffers) ─┐                                              ┌─► Frame: face, head, lift, wheels, lights
//	JSON ─────────────────┼─► Clip ──Check──► Player ──Step(audio time)──┤
//	text, for people ─────┘     ▲                                        └─► Fired: sounds, sprites, events, turns
//	                     Library: groups, triggers, moods
//
// A clip has eleven tracks. Each is a list of keyframes whose times, in milliseconds from the clip's start, ascend. Names and units are those of the files:
// degrees, millimetres, milliseconds; a Frame has SI units and standard names of parts.
//
// Reading checks form; Check compares the numbers with what a body can do, and a Player keeps to the limits of its body whatever a clip says.
package clip

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// Clip is one animation (VEC-AFF-03).
type Clip struct {
	Name   string `fb:"0" json:"Name"`
	Tracks Tracks `fb:"1" json:"keyframes"`
}

// Tracks are the keyframes of a clip (VEC-AFF-04).
type Tracks struct {
	Lift     []Lift     `fb:"0" json:"LiftHeightKeyFrame"`
	Face     []Face     `fb:"1" json:"ProceduralFaceKeyFrame"`
	Head     []Head     `fb:"2" json:"HeadAngleKeyFrame"`
	Audio    []Audio    `fb:"3" json:"RobotAudioKeyFrame"`
	Backpack []Backpack `fb:"4" json:"BackpackLightsKeyFrame"`
	Sprites  []Sprites  `fb:"5" json:"FaceAnimationKeyFrame"`
	Events   []Event    `fb:"6" json:"EventKeyFrame"`
	Body     []Body     `fb:"7" json:"BodyMotionKeyFrame"`
	Record   []Record   `fb:"8" json:"RecordHeadingKeyFrame"`
	Return   []Return   `fb:"9" json:"TurnToRecordedHeadingKeyFrame"`
	Boxes    []Box      `fb:"10" json:"SpriteBoxKeyFrame"`
}

// Lift moves the lift to a height, more or less (VEC-AFF-05).
type Lift struct {
	Trigger     uint32 `fb:"0" json:"triggerTime_ms"`
	Duration    uint32 `fb:"1" json:"durationTime_ms" text:"over"`
	Height      uint8  `fb:"2" json:"height_mm" text:"0"`
	Variability uint8  `fb:"3" json:"heightVariability_mm" text:"vary"`
}

// Face sets the procedural face (VEC-AFF-06).
type Face struct {
	Trigger         uint32    `fb:"0" json:"triggerTime_ms"`
	Angle           float32   `fb:"1" json:"faceAngle"`
	CenterX         float32   `fb:"2" json:"faceCenterX"`
	CenterY         float32   `fb:"3" json:"faceCenterY"`
	ScaleX          float32   `fb:"4,default=1" json:"faceScaleX"`
	ScaleY          float32   `fb:"5,default=1" json:"faceScaleY"`
	Left            []float32 `fb:"6" json:"leftEye,omitempty"`
	Right           []float32 `fb:"7" json:"rightEye,omitempty"`
	ScanlineOpacity float32   `fb:"8,default=1" json:"scanlineOpacity"`
}

// Head moves the head to an angle, more or less; up is positive (VEC-AFF-07).
type Head struct {
	Trigger     uint32 `fb:"0" json:"triggerTime_ms"`
	Duration    uint32 `fb:"1" json:"durationTime_ms" text:"over"`
	Angle       int8   `fb:"2" json:"angle_deg" text:"0"`
	Variability uint8  `fb:"3" json:"angleVariability_deg" text:"vary"`
}

// Audio posts sounds and sets states, switches and parameters together (part of VEC-AFF-08).
type Audio struct {
	Trigger    uint32           `fb:"0" json:"triggerTime_ms"`
	Groups     []AudioGroup     `fb:"1" json:"eventGroups,omitempty"`
	States     []AudioState     `fb:"2" json:"states,omitempty"`
	Switches   []AudioState     `fb:"3" json:"switches,omitempty"` // on the animation's game object (part of VEC-AFF-11)
	Parameters []AudioParameter `fb:"4" json:"parameters,omitempty"`
}

// AudioGroup are sounds of which one is drawn: parallel slices (VEC-AFF-09).
type AudioGroup struct {
	Events        []uint32  `fb:"0" json:"eventIds,omitempty"`
	Volumes       []float32 `fb:"1" json:"volumes,omitempty"`
	Probabilities []float32 `fb:"2" json:"probabilities,omitempty"` // if they sum up to less than 1, the rest is silence
}

// AudioState sets a state of a group (part of VEC-AFF-10).
type AudioState struct {
	Group uint32 `fb:"0" json:"stateGroupId"`
	State uint32 `fb:"1" json:"stateId"`
}

// AudioParameter sets a parameter, or moves it in a time (part of VEC-AFF-12).
type AudioParameter struct {
	Parameter uint32  `fb:"0" json:"parameterId"`
	Value     float32 `fb:"1" json:"value"`
	Time      uint32  `fb:"2" json:"time_ms"` // 0: at once
	Curve     uint8   `fb:"3" json:"curveType"`
}

// Backpack shows colours for a time, and blends to the next ones after it; red, green, blue and an alpha without effect, 0 to 1 (VEC-AFF-13).
type Backpack struct {
	Trigger  uint32    `fb:"0" json:"triggerTime_ms"`
	Duration uint32    `fb:"1" json:"durationTime_ms"`
	Front    []float32 `fb:"2" json:"Front,omitempty"`
	Middle   []float32 `fb:"3" json:"Middle,omitempty"`
	Back     []float32 `fb:"4" json:"Back,omitempty"`
	Older    []float32 `fb:"6" json:"-"` // a file of the older robot, whose colours have other places, has this one
}

// Sprites starts a sequence of pictures on the display (part of VEC-AFF-14).
type Sprites struct {
	Trigger         uint32  `fb:"0" json:"triggerTime_ms"`
	Sequence        string  `fb:"1,required" json:"animName" text:"0"`
	ScanlineOpacity float32 `fb:"2,default=1" json:"scanlineOpacity" text:"scanlines"`
}

// Event tells the owner of the clip where it is (VEC-AFF-16).
type Event struct {
	Trigger uint32 `fb:"0" json:"triggerTime_ms"`
	ID      string `fb:"1,required" json:"event_id" text:"0"`
}

// The two radii of a Body that are not a number.
const (
	Straight    Radius = "STRAIGHT"      // Speed in mm/s
	TurnInPlace Radius = "TURN_IN_PLACE" // Speed in degrees a second, counter-clockwise
)

// Radius is Straight, TurnInPlace, or the radius of an arc in millimetres: above 0 its centre is at the left.
type Radius string

// UnmarshalJSON reads a radius as text or as a number.
func (r *Radius) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '"' {
		var n json.Number
		err := json.Unmarshal(b, &n)
		*r = Radius(n)
		return err
	}
	return json.Unmarshal(b, (*string)(r))
}

// number returns the radius of an arc in millimetres.
func (r Radius) number() (float64, error) { return strconv.ParseFloat(string(r), 64) }

// Body drives: straight, on an arc or in place (VEC-AFF-17).
type Body struct {
	Trigger  uint32 `fb:"0" json:"triggerTime_ms"`
	Duration uint32 `fb:"1" json:"durationTime_ms" text:"for"`
	Radius   Radius `fb:"2,required" json:"radius_mm" text:"0"`
	Speed    int16  `fb:"3" json:"speed" text:"1"`
}

// Record keeps the heading that the robot has then (part of VEC-AFF-18).
type Record struct {
	Trigger uint32 `fb:"0" json:"triggerTime_ms"`
}

// Return turns back to the recorded heading (part of VEC-AFF-19).
type Return struct {
	Trigger   uint32 `fb:"0" json:"triggerTime_ms"`
	Duration  uint32 `fb:"1" json:"durationTime_ms" text:"over"`
	Offset    int16  `fb:"2" json:"offset_deg" text:"offset"`
	Speed     int16  `fb:"3" json:"speed_degPerSec" text:"speed"`
	Accel     int16  `fb:"4,default=1000" json:"accel_degPerSec2" text:"accel"`
	Decel     int16  `fb:"5,default=1000" json:"decel_degPerSec2" text:"decel"`
	Tolerance uint16 `fb:"6,default=2" json:"tolerance_deg" text:"tolerance"`
	HalfRevs  uint16 `fb:"7" json:"numHalfRevs" text:"half_turns"`
	Shortest  bool   `fb:"8" json:"useShortestDir" text:"shortest"`
}

// Box puts a sprite into a named box of a layer (part of VEC-AFF-15).
type Box struct {
	Trigger uint32  `fb:"0" json:"triggerTime_ms"`
	Name    string  `fb:"1,required" json:"spriteBoxName" text:"0"`
	Layer   string  `fb:"2,required" json:"layer" text:"layer"`
	Asset   string  `fb:"3,required" json:"assetName" text:"asset"`
	Method  string  `fb:"4,required" json:"renderMethod" text:"method"`
	End     string  `fb:"5,required" json:"spriteSeqEndType" text:"end"`
	Alpha   float32 `fb:"6,default=100" json:"alpha" text:"alpha"`
	X       int32   `fb:"7" json:"xPos" text:"x"`
	Y       int32   `fb:"8" json:"yPos" text:"y"`
	Width   uint32  `fb:"9" json:"width" text:"width"`
	Height  uint32  `fb:"10" json:"height" text:"height"`
}

// ErrClip: bytes or text are not a clip, or a clip asks for what no body should do. The error says where, what was expected and what was found.
var ErrClip = errors.New("clip refused")

// Span returns how long the clip takes: to the end of the last keyframe of any track.
func (c *Clip) Span() time.Duration {
	end := uint64(0)
	c.each(func(_ string, _ int, trigger, duration uint32) { end = max(end, uint64(trigger)+uint64(duration)) })
	return time.Duration(end) * time.Millisecond
}

// each calls f for all keyframes, track by track.
func (c *Clip) each(f func(track string, i int, trigger, duration uint32)) {
	k := &c.Tracks
	for i, x := range k.Lift {
		f("LiftHeightKeyFrame", i, x.Trigger, x.Duration)
	}
	for i, x := range k.Face {
		f("ProceduralFaceKeyFrame", i, x.Trigger, 0)
	}
	for i, x := range k.Head {
		f("HeadAngleKeyFrame", i, x.Trigger, x.Duration)
	}
	for i, x := range k.Audio {
		f("RobotAudioKeyFrame", i, x.Trigger, 0)
	}
	for i, x := range k.Backpack {
		f("BackpackLightsKeyFrame", i, x.Trigger, x.Duration)
	}
	for i, x := range k.Sprites {
		f("FaceAnimationKeyFrame", i, x.Trigger, 0)
	}
	for i, x := range k.Events {
		f("EventKeyFrame", i, x.Trigger, 0)
	}
	for i, x := range k.Body {
		f("BodyMotionKeyFrame", i, x.Trigger, x.Duration)
	}
	for i, x := range k.Record {
		f("RecordHeadingKeyFrame", i, x.Trigger, 0)
	}
	for i, x := range k.Return {
		f("TurnToRecordedHeadingKeyFrame", i, x.Trigger, x.takes())
	}
	for i, x := range k.Boxes {
		f("SpriteBoxKeyFrame", i, x.Trigger, 0)
	}
}

// takes is Takes in milliseconds.
func (r *Return) takes() uint32 { return uint32(r.Takes() / time.Millisecond) }

// Takes returns the time of the turn; a file's 0 means half a second (part of VEC-AFF-19).
func (r *Return) Takes() time.Duration {
	if r.Duration == 0 {
		return 500 * time.Millisecond
	}
	return time.Duration(r.Duration) * time.Millisecond
}
