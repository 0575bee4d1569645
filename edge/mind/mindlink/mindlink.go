// Package mindlink joins a robot's character (mindd, the server) with the robot's other programs, which ask it for animations and look at its display.
//
//	POST /list    {}        ─► List
//	POST /play    Request   ─► a line of JSON for each Progress, the last one with Ended; a caller that leaves ends the clip
//	POST /show    Image     ─► {}
//	POST /eyes    Eyes      ─► {}
//	POST /screen  Watch     ─► a Frame after the other: 16 bytes of number and time, then the pixels
//	POST /say     Say       ─► a line of JSON for each Progress, the last one with Ended; a caller that leaves ends it
//	POST /sound   Sound     ─► likewise
//	POST /hush    Hush      ─► {}
//	POST /listen  {}        ─► a piece of sound after the other: 24 bytes of place, time, samples missed and samples, then the samples
//
// The socket is run/kennel-mind/socket below the robot's root. Its folder is for mindd's user and root alone.
package mindlink

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"kennel/edge/face"
	"kennel/edge/sound"
	"kennel/infra/errs"
)

// Program is the name of the program, under which robotd knows it.
const Program = "mindd"

// SocketPath is where mindd listens, below the robot's root.
const SocketPath = "run/kennel-mind/socket"

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

// Progress tells how an animation goes, or what is said or played. Began is first, and Ended last.
type Progress struct {
	Began *Began `json:"began,omitempty"`
	State string `json:"state,omitempty"` // of what is said or played: generating, ready, playing
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
	Clip    string    `json:"clip"`             // or what was heard
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
	Sounds   []string `json:"sounds,omitempty"`
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

// SoundRate is how many samples a second the robot plays.
const SoundRate = 16_000

// Say asks for a text to be said.
type Say struct {
	Text     string  `json:"text"`               // at most voice.MaxText characters
	Plain    bool    `json:"plain,omitempty"`    // in the synthesiser's voice, not the robot's own
	Language string  `json:"language,omitempty"` // such as en-US; "": the robot's
	Duration float64 `json:"duration,omitempty"` // factor, 0.05 to 20; 0: 1
	Pitch    float64 `json:"pitch,omitempty"`    // -1 to 1: half an octave down or up
	Level    string  `json:"level,omitempty"`    // "": Command
	Program  string  `json:"program"`
}

// Sound asks for a sound of the list.
type Sound struct {
	Name    string  `json:"name"`
	Volume  float64 `json:"volume,omitempty"` // factor, above 0 to 1; 0: 1
	Program string  `json:"program"`
}

// Hush silences the robot: all speech and sounds end, whichever program began them.
type Hush struct {
	Program string `json:"program"`
}

const pieceHead = 24

// mostSamples bounds a piece of sound.
const mostSamples = SoundRate

// appendPiece appends a piece of sound as it is sent.
func appendPiece(b []byte, p *sound.Piece) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(p.Place))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.At))
	b = binary.LittleEndian.AppendUint32(b, uint32(min(p.Missed, math.MaxUint32)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.Samples)))
	for _, v := range p.Samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return b
}

// readPiece reads what appendPiece wrote. b is scratch, which is returned grown.
func readPiece(r io.Reader, b []byte) (p sound.Piece, _ []byte, err error) {
	b = slices.Grow(b[:0], pieceHead)[:pieceHead]
	if _, err := io.ReadFull(r, b); err != nil {
		return p, b, err
	}
	p = sound.Piece{Place: int64(binary.LittleEndian.Uint64(b)), At: time.Duration(binary.LittleEndian.Uint64(b[8:])), Missed: int64(binary.LittleEndian.Uint32(b[16:]))}
	n := binary.LittleEndian.Uint32(b[20:])
	if n > mostSamples {
		return p, b, errs.New(errs.Corrupt, "piece of sound: expected at most %d samples, found %d", mostSamples, n)
	}
	b = slices.Grow(b[:0], int(2*n))[:2*n]
	if _, err := io.ReadFull(r, b); err != nil {
		return p, b, fmt.Errorf("piece of sound with %d samples: %w", n, err)
	}
	p.Samples = make([]int16, n)
	for i := range p.Samples {
		p.Samples[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return p, b, nil
}
