// Package mindlink joins a robot's character (mindd, the server) with the robot's other programs, which ask it for animations and look at its display.
//
//	POST /list    {}        ─► List
//	POST /play    Request   ─► a line of JSON for each Progress, the last one with Ended; a caller that leaves ends the clip
//	POST /show    Image     ─► {}
//	POST /page    Page      ─► {}
//	POST /eyes    Eyes      ─► {}
//	POST /body    {}        ─► motionwire.Body
//	POST /judge   Draft     ─► motionwire.Verdict
//	POST /screen  Watch     ─► a Frame after the other: 16 bytes of number and time, then the pixels
//	POST /say     Say       ─► a line of JSON for each Progress, the last one with Ended; a caller that leaves ends it
//	POST /sound   Sound     ─► likewise
//	POST /stream  Stream, then chunks of 2 bytes of length and so many bytes of samples, one of length 0 at the end ─► likewise
//	POST /hush    Hush      ─► {}
//	POST /feel    Feel      ─► {}
//	POST /mood    {}        ─► a line of JSON with a Feeling, as it is and for each change
//	POST /listen  {}        ─► a Piece after the other: 28 bytes of place, time, samples missed, samples and bytes of text, then the samples and the text
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

	"kennel/edge/env/robotfs"
	"kennel/edge/face"
	"kennel/edge/face/screen"
	"kennel/edge/sound"
	"kennel/infra/errs"
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

// Lights is how many lights of the body clips use, the first ones; a further one shows the robot's state.
const Lights = 3

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
	Lost  *Lost  `json:"lost,omitempty"`  // of a stream
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

// Page shows one of the robot's own pages while no clip or picture has the display: at most one of Clock, Weather and Timer. It takes the place of the page before;
// without any of them the program's page is taken away. Faults, claim codes and updates are not among them: the robot shows those by itself (VEC-DGN-03).
type Page struct {
	Clock   *screen.Clock   `json:"clock,omitempty"`
	Weather *screen.Weather `json:"weather,omitempty"`
	Timer   *screen.Timer   `json:"timer,omitempty"`
	ForMS   int64           `json:"for_ms,omitempty"`
	Program string          `json:"program"`
}

// Screen returns the page; nil: none. An error: there is more than one.
func (p *Page) Screen() (s screen.Screen, err error) {
	n := 0
	if p.Clock != nil {
		s, n = *p.Clock, n+1
	}
	if p.Weather != nil {
		s, n = *p.Weather, n+1
	}
	if p.Timer != nil {
		s, n = *p.Timer, n+1
	}
	if n > 1 {
		return nil, errs.Coded(errs.Invalid, "invalid", "expected one of clock, weather and timer, found %d of them", n)
	}
	return s, nil
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

// Stream asks for samples of the caller to be played.
type Stream struct {
	Rate    int    `json:"rate"`   // samples a second, sound.MinStreamRate to sound.MaxStreamRate
	Volume  int    `json:"volume"` // 0 to 100
	Program string `json:"program"`
}

// Lost says that samples of a stream came faster than they are played, and that the newest were dropped.
type Lost struct {
	Sent   int64 `json:"sent"` // samples of the stream so far
	Played int64 `json:"played"`
}

// MaxChunk is the most bytes of a chunk of a stream.
const MaxChunk = math.MaxUint16

// Feel changes the robot's mood: by values for its emotions, which come first, by emotion events, and by an action's result.
type Feel struct {
	Set     map[string]float64 `json:"set,omitempty"`    // emotions that become these values, within their ranges (part of VEC-EMO-11)
	Events  []string           `json:"events,omitempty"` // such as ReactToTriggerWord
	Action  string             `json:"action,omitempty"` // such as PickupObject; "": none
	Result  string             `json:"result,omitempty"` // of the action: Success, Retry or Abort
	Program string             `json:"program"`
}

// Results of an action.
const (
	Success = "SUCCESS"
	Retry   = "RETRY"
	Abort   = "ABORT"
)

// Feeling tells what the robot feels, at first and whenever that changes.
type Feeling struct {
	Emotions     map[string]Emotion `json:"emotions"`
	Simple       string             `json:"simple"`           // the simple mood
	SimpleBefore string             `json:"simple_before"`    // the same, if it has not changed
	Events       []string           `json:"events,omitempty"` // emotion events that changed it; none: it faded
	Speed        float64            `json:"speed"`            // of the body, m/s forward
	Acceleration float64            `json:"acceleration"`     // m/s²
}

// Emotion is one emotion of a Feeling. Before is its value before the change.
type Emotion struct {
	Value  float64 `json:"value"`
	Before float64 `json:"before"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Hush silences the robot: all speech and sounds end, whichever program began them.
type Hush struct {
	Program string `json:"program"`
}

// Piece is a piece of what the robot plays, or says what it says.
type Piece struct {
	sound.Piece
	Said *string // the text that is said from here on; "": none any longer; nil: as before
}

// The bytes of a piece before its samples, and its bounds.
const (
	pieceHead   = 28
	mostSamples = SoundRate
	mostSaid    = 4 * 2000 // bytes
	noSaid      = math.MaxUint32
)

// appendPiece appends a piece of sound as it is sent.
func appendPiece(b []byte, p *Piece) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(p.Place))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.At))
	b = binary.LittleEndian.AppendUint32(b, uint32(min(p.Missed, math.MaxUint32)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.Samples)))
	said, n := "", uint32(noSaid)
	if p.Said != nil {
		said = (*p.Said)[:min(len(*p.Said), mostSaid)]
		n = uint32(len(said))
	}
	b = binary.LittleEndian.AppendUint32(b, n)
	for _, v := range p.Samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return append(b, said...)
}

// readPiece reads what appendPiece wrote. b is scratch, which is returned grown.
func readPiece(r io.Reader, b []byte) (p Piece, _ []byte, err error) {
	b = slices.Grow(b[:0], pieceHead)[:pieceHead]
	if _, err := io.ReadFull(r, b); err != nil {
		return p, b, err
	}
	p.Piece = sound.Piece{Place: int64(binary.LittleEndian.Uint64(b)), At: time.Duration(binary.LittleEndian.Uint64(b[8:])), Missed: int64(binary.LittleEndian.Uint32(b[16:]))}
	n, said := binary.LittleEndian.Uint32(b[20:]), binary.LittleEndian.Uint32(b[24:])
	if n > mostSamples {
		return p, b, errs.New(errs.Corrupt, "piece of sound, byte 20: expected at most %d samples, found %d", mostSamples, n)
	}
	if said != noSaid && said > mostSaid {
		return p, b, errs.New(errs.Corrupt, "piece of sound, byte 24: expected at most %d bytes of text, found %d", mostSaid, said)
	}
	rest := 2 * n
	if said != noSaid {
		rest += said
	}
	b = slices.Grow(b[:0], int(rest))[:rest]
	if _, err := io.ReadFull(r, b); err != nil {
		return p, b, fmt.Errorf("piece of sound: expected %d bytes after its head: %w", rest, err)
	}
	for i := range n {
		p.Samples = append(p.Samples, int16(binary.LittleEndian.Uint16(b[2*i:])))
	}
	if said != noSaid {
		text := string(b[2*n:])
		p.Said = &text
	}
	return p, b, nil
}
