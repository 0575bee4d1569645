// Package mindlink joins a robot's character (mindd, the server) with the robot's other programs, which ask it for animations and look at its display.
//
//	POST /list    {}        ─► List
//	POST /play    Request   ─► a line of JSON for each Progress, the last one with Ended; a caller that leaves ends the clip
//	POST /show    Image     ─► {}
//	POST /eyes    Eyes      ─► {}
//	POST /body    {}        ─► motionwire.Body
//	POST /judge   Draft     ─► motionwire.Verdict
//	POST /screen  Watch     ─► a Frame after the other: 16 bytes of number and time, then the pixels
//
// The socket is run/kennel-mind/socket below the robot's root. Its folder is for mindd's user and root alone.
package mindlink

import (
	"encoding/binary"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/edge/face"
)

// Program is the name of the program, under which robotd knows it.
const Program = "mindd"

// SocketPath is where mindd listens, below the robot's root.
const SocketPath = "run/kennel-mind/socket"

// MotionsDir has the motions that the robot's owner uploaded, below the robot's root: a file for each, with its name and MotionsEnding, as it was uploaded. agentd
// writes them, mindd reads them. They are user data.
const (
	MotionsDir    = robotfs.Persistent + "/motions"
	MotionsEnding = ".motion"
)

// Levels of a Request, as edge/anim/clip has them.
const (
	Behavior = "behavior" // the character plays it of its own accord
	Command  = "command"  // a person or a program asked for it
)

// Tracks that a Request can ignore.
const (
	Head = "head"
	Lift = "lift"
	Body = "body"
)

// Outcomes of a clip.
const (
	Done    = "done"
	Stopped = "stopped"
)

// Request asks for one animation: exactly one of Clip, Trigger and Mood names it.
type Request struct {
	Clip     string   `json:"clip,omitempty"`
	Trigger  string   `json:"trigger,omitempty"`
	Mood     string   `json:"mood,omitempty"`
	Loops    int      `json:"loops,omitempty"`    // 0: once; at most MaxLoops
	Ignore   []string `json:"ignore,omitempty"`   // tracks that neither lock nor move (VEC-TRG-07)
	Level    string   `json:"level,omitempty"`    // "": Command
	Priority int      `json:"priority,omitempty"` // of the claims, edge/robot/claim.Priority; 0: as the level says
	Program  string   `json:"program"`            // who asks
}

// MaxLoops is the most loops of a request; our own limit.
const MaxLoops = 100

// Progress tells how an animation goes: one of its fields is set, Began first and Ended last.
type Progress struct {
	Began *Began `json:"began,omitempty"`
	AtMS  int64  `json:"at_ms,omitempty"` // since it began
	Ended *Ended `json:"ended,omitempty"`
}

// Began says what plays.
type Began struct {
	Clip    string    `json:"clip"`    // or the motion of the body's own library
	SpanMS  int64     `json:"span_ms"` // of all loops; 0: it is not known before
	LeftOut []LeftOut `json:"left_out,omitempty"`
}

// LeftOut is a track that does not play, and why.
type LeftOut struct {
	Track  string `json:"track"`
	Reason string `json:"reason"`
}

// Ended says how an animation ended.
type Ended struct {
	Clip    string    `json:"clip"`
	Outcome string    `json:"outcome"`          // Done or Stopped
	Reason  string    `json:"reason,omitempty"` // of Stopped, in words
	By      string    `json:"by,omitempty"`     // the program that has its motors now
	AtMS    int64     `json:"at_ms"`
	LeftOut []LeftOut `json:"left_out,omitempty"` // also what was left out on the way
}

// List says what a robot can play.
type List struct {
	Clips    []Clip   `json:"clips"`
	Triggers []string `json:"triggers"`
	Moods    []Mood   `json:"moods"`
	Lacks    []string `json:"lacks"` // tracks whose parts this body lacks
}

// Clip is one clip of a List.
type Clip struct {
	Name   string   `json:"name"`
	SpanMS int64    `json:"span_ms"`
	Tracks []string `json:"tracks"`
}

// Mood says what a mood plays on this body.
type Mood struct {
	Name    string `json:"name"`
	Trigger string `json:"trigger,omitempty"` // one of this and
	Motion  string `json:"motion,omitempty"`  // a motion of the body's own library
}

// Image shows a picture instead of the eyes.
type Image struct {
	Pixels    []byte `json:"pixels"` // RGB565, high byte first: ImageSize bytes
	ForMS     int64  `json:"for_ms"`
	Interrupt bool   `json:"interrupt"` // also while an animation or another picture of the same level has the display
	Program   string `json:"program"`
}

// Draft is a motion to be judged.
type Draft struct {
	Name string `json:"name"`
	File []byte `json:"file"`
}

// ImageSize is how many bytes the pixels of a picture have.
const ImageSize = 2 * face.Width * face.Height

// Eyes gives the eyes a colour until another one comes, the owner chooses one, or mindd ends.
type Eyes struct {
	Hue        float32 `json:"hue"`        // 0 to 1, around the circle from red over green and blue
	Saturation float32 `json:"saturation"` // 0 to 1
	Forget     bool    `json:"forget"`     // the colour of the robot's settings again
}

// Watch asks for the display's frames.
type Watch struct {
	Rate float64 `json:"rate"` // at most so many a second, above 0 to MaxRate
}

// MaxRate is the most frames of the display a second: as many as there are.
const MaxRate = float64(time.Second) / float64(30*time.Millisecond)

// Frame is one frame of the display.
type Frame struct {
	Seq     uint64 // grows with each frame
	At      time.Duration
	Picture *face.Picture // shared: not to be changed
}

const frameHead = 16

// appendFrame appends f as it is sent.
func appendFrame(b []byte, f *Frame) []byte {
	b = binary.LittleEndian.AppendUint64(b, f.Seq)
	b = binary.LittleEndian.AppendUint64(b, uint64(f.At))
	return f.Picture.AppendRGB565(b)
}

// parseFrame reads what appendFrame wrote: frameHead+ImageSize bytes.
func parseFrame(b []byte) Frame {
	f := Frame{Seq: binary.LittleEndian.Uint64(b), At: time.Duration(binary.LittleEndian.Uint64(b[8:])), Picture: &face.Picture{}}
	Pixels(f.Picture, b[frameHead:])
	return f
}

// Pixels fills p with pixels as Image has them.
func Pixels(p *face.Picture, b []byte) {
	for i := range p.Pix {
		p.Pix[i] = uint16(b[2*i])<<8 | uint16(b[2*i+1])
	}
}
