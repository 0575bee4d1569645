package kennel

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"kennel/infra/api/robotpb"
)

// Voice says how a text is spoken. The zero value is the robot's own way.
type Voice struct {
	Plain    bool    // in the synthesiser's voice, not the robot's own
	Language string  // such as "de-DE"
	Speed    float64 // factor, 0.05 to 20; 0: 1
	Pitch    float64 // -1 to 1: half an octave down or up
}

// Say says a text of at most 2000 characters and returns when its last sample was heard. tell, if not nil, hears its progress; an error of tell silences the robot, and
// Say returns it. If it was interrupted the error is a *NotDone, whose words say why. If ctx ends first, the speech does. Its refusals are unable for a body
// without a speaker, and no_voice, which says what to install.
func (r *Robot) Say(ctx context.Context, text string, v Voice, tell func(*robotpb.SpeechProgress) error) (*robotpb.PlayEnded, error) {
	return spoken(tell, func(hear func(*robotpb.SpeechProgress) error) error {
		return listen(ctx, r, r.api.Say, &robotpb.SayRequest{Text: text, Plain: v.Plain, Language: v.Language, Speed: v.Speed, Pitch: v.Pitch}, hear)
	})
}

// Sound plays a sound of the list that Animations returns, and returns when it was heard. volume is a factor above 0 to 1; 0: 1. tell, ctx and the errors are as
// those of Say.
func (r *Robot) Sound(ctx context.Context, name string, volume float64, tell func(*robotpb.SpeechProgress) error) (*robotpb.PlayEnded, error) {
	return spoken(tell, func(hear func(*robotpb.SpeechProgress) error) error {
		return listen(ctx, r, r.api.Sound, &robotpb.SoundRequest{What: &robotpb.SoundRequest_Name{Name: name}, Volume: volume}, hear)
	})
}

// Hush ends all that the robot says and plays, also for other programs.
func (r *Robot) Hush(ctx context.Context) error {
	return listen(ctx, r, r.api.Sound, &robotpb.SoundRequest{What: &robotpb.SoundRequest_Stop{Stop: true}}, func(p *robotpb.SpeechProgress) error {
		if p.GetEnded() != nil {
			return io.EOF
		}
		return nil
	})
}

// spoken hears how something goes until it has ended.
func spoken(tell func(*robotpb.SpeechProgress) error, do func(func(*robotpb.SpeechProgress) error) error) (ended *robotpb.PlayEnded, err error) {
	err = do(func(p *robotpb.SpeechProgress) error {
		if ended = p.GetEnded(); ended != nil {
			return io.EOF
		}
		if tell == nil {
			return nil
		}
		err := tell(p)
		if errors.Is(err, io.EOF) {
			err = context.Canceled
		}
		return err
	})
	return ended, notDone(ended, err)
}

// Piece is a piece of what the robot plays, one channel.
type Piece struct {
	Rate    int // samples a second
	Samples []int16
	Place   int64         // how many samples were played before the first one, since the robot's character started; pauses are not counted
	At      time.Duration // when the first one is heard, by the robot's clock
	Missed  int           // samples before it that were lost, because this program was slow
	Said    *string       // the text that is said from here on; "": none any longer; nil: as before
}

// Sounds gives hear what the robot plays. The first piece, without samples, says that the robot is heard from now on; while it is silent there are none. It returns as
// Subscribe does.
func (r *Robot) Sounds(ctx context.Context, hear func(Piece) error) error {
	return listen(ctx, r, r.api.Sounds, &robotpb.SoundsRequest{}, func(m *robotpb.SoundPiece) error {
		if m.Rate == 0 {
			return nil // it only says that the robot is there
		}
		return hear(Piece{Rate: int(m.Rate), Samples: samples(m.Data), Place: m.Place, At: time.Duration(m.AtUs) * time.Microsecond, Missed: int(m.Missed), Said: m.Said})
	})
}

// samples returns samples of two bytes, the low one first.
func samples(data []byte) []int16 {
	out := make([]int16, len(data)/2)
	for i := range out {
		out[i] = int16(binary.LittleEndian.Uint16(data[2*i:]))
	}
	return out
}

// Heard is a piece of what the robot hears, one channel.
type Heard struct {
	Rate    int // samples a second; 0: there are none, for the Reason
	Samples []int16
	At      time.Duration // when the last one was heard, by the robot's clock
	Missed  int           // samples before it that were lost
	Voice   bool          // a person speaks
	Bearing *float64      // rad, where the voice comes from, counter-clockwise from the front; nil: it is not known
	Own     bool          // the robot makes a sound itself, and does not listen: the samples are 0
	Reason  string        // why there are no samples, such as that a person switched the microphones off; "": there are
}

// Listen gives hear what the robot hears through its microphones, 25 pieces a second, and each second the reason why it hears nothing. The program needs the right hear,
// which its owner gives by name, and the robot's light shows that a program listens. It returns as Subscribe does.
func (r *Robot) Listen(ctx context.Context, hear func(Heard) error) error {
	return listen(ctx, r, r.api.Listen, &robotpb.ListenRequest{}, func(m *robotpb.HeardPiece) error {
		if m.Rate == 0 && m.Reason == "" {
			return nil // it only says that the robot is there
		}
		return hear(Heard{int(m.Rate), samples(m.Data), time.Duration(m.AtUs) * time.Microsecond, int(m.Missed), m.Voice, m.Bearing, m.Own, m.Reason})
	})
}
