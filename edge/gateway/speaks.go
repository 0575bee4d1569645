package gateway

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"kennel/edge/mind/mindlink"
	"kennel/infra/api/robotpb"
	"kennel/infra/errs"
)

// Our own limits of a stream of sound.
const (
	together    = 40 * time.Millisecond // of sound in a message, unless it ends before
	mostBehind  = 100                   // pieces that wait for a client: a second
	roundsOfOne = 2 * together
)

// say says a text and tells its progress.
func (g *Gateway) say(ctx context.Context, c caller, q *robotpb.SayRequest, tell func(*robotpb.SpeechProgress) error) error {
	r := mindlink.Say{Text: q.Text, Plain: q.Plain, Language: q.Language, Pitch: q.Pitch}
	if q.Speed != 0 {
		if !(q.Speed >= 0.05 && q.Speed <= 20) {
			return invalid("speed: %v, want 0.05 to 20", q.Speed)
		}
		r.Duration = 1 / q.Speed
	}
	return g.heard(ctx, c, tell, func(tell func(mindlink.Progress) error) (mindlink.Ended, error) {
		return g.Say(ctx, Caller{c}, r, tell)
	})
}

// sound plays a sound and tells its progress, or silences the robot.
func (g *Gateway) sound(ctx context.Context, c caller, q *robotpb.SoundRequest, tell func(*robotpb.SpeechProgress) error) error {
	switch q.What.(type) {
	case *robotpb.SoundRequest_Stop:
		if err := g.mind.Hush(ctx, Caller{c}.Program()); err != nil {
			return err
		}
		return tell(&robotpb.SpeechProgress{Kind: &robotpb.SpeechProgress_Ended{Ended: &robotpb.PlayEnded{Outcome: mindlink.Done}}})
	case *robotpb.SoundRequest_Name:
	default:
		return invalid("want one of name and stop")
	}
	r := mindlink.Sound{Name: q.GetName(), Volume: q.Volume, Program: Caller{c}.Program()}
	return g.heard(ctx, c, tell, func(tell func(mindlink.Progress) error) (mindlink.Ended, error) { return g.mind.Sound(ctx, r, tell) })
}

// heard tells a client how something goes that do makes heard.
func (g *Gateway) heard(ctx context.Context, c caller, tell func(*robotpb.SpeechProgress) error, do func(func(mindlink.Progress) error) (mindlink.Ended, error)) error {
	checked := time.Now()
	ended, err := do(func(p mindlink.Progress) error {
		if time.Since(checked) > beat {
			checked = time.Now()
			if err := g.still(ctx, c, Talk); err != nil {
				return err
			}
		}
		if p.State != "" {
			return tell(&robotpb.SpeechProgress{Kind: &robotpb.SpeechProgress_State{State: p.State}})
		}
		return tell(&robotpb.SpeechProgress{Kind: &robotpb.SpeechProgress_AtMs{AtMs: uint32(p.AtMS)}})
	})
	if err != nil {
		return err
	}
	return tell(&robotpb.SpeechProgress{Kind: &robotpb.SpeechProgress_Ended{Ended: &robotpb.PlayEnded{
		Clip: ended.Clip, Outcome: ended.Outcome, Reason: ended.Reason, By: ended.By, AtMs: uint32(ended.AtMS)}}})
}

// Say says a text for a client, as a command. tell hears what mindlink.Client's Say tells. The errors have a kind and a code.
func (g *Gateway) Say(ctx context.Context, c Caller, r mindlink.Say, tell func(mindlink.Progress) error) (mindlink.Ended, error) {
	r.Program, r.Level = c.Program(), mindlink.Command
	return g.mind.Say(ctx, r, tell)
}

// sounds tells what the robot plays until the client ends the call.
func (g *Gateway) sounds(ctx context.Context, c caller, _ *robotpb.SoundsRequest, tell func(*robotpb.SoundPiece) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pieces, failed := make(chan mindlink.Piece, mostBehind), make(chan error, 1)
	go func() {
		missed := int64(0) // that this client was too slow for
		failed <- g.mind.Listen(ctx, func(p mindlink.Piece) error {
			lost := missed + p.Missed + int64(len(p.Samples))
			p.Missed += missed
			missed = 0
			select {
			case pieces <- p:
			default:
				missed = lost
			}
			return nil
		})
	}()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	var next *robotpb.SoundPiece // is made longer
	told := false                // a message since the tick before
	give := func(m *robotpb.SoundPiece) error {
		next, told = nil, true
		return tell(m)
	}
	const most = 2 * mindlink.SoundRate * int(together/time.Millisecond) / 1000 // bytes
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			return err
		case p := <-pieces:
			follows := next != nil && p.Missed == 0 && p.Said == nil && next.Place+int64(len(next.Data)/2) == p.Place
			if next != nil && !follows {
				err = give(next)
			}
			if next == nil {
				next = &robotpb.SoundPiece{Rate: mindlink.SoundRate, Place: p.Place, AtUs: p.At.Microseconds(), Missed: uint64(p.Missed), Said: p.Said}
				rest.Reset(roundsOfOne)
			}
			for _, v := range p.Samples {
				next.Data = binary.LittleEndian.AppendUint16(next.Data, uint16(v))
			}
			if err == nil && (len(next.Data) >= most || len(p.Samples) == 0) {
				err = give(next)
			}
		case <-rest.C:
			if next != nil {
				err = give(next)
			}
		case <-tick.C:
			if err = g.still(ctx, c, Look); err == nil && !told {
				err = tell(&robotpb.SoundPiece{})
			}
			told = false
		}
		if err != nil {
			return err
		}
	}
}

type sayInput struct {
	Text  string `json:"text" jsonschema:"what the robot says aloud, at most 2000 characters"`
	Plain bool   `json:"plain,omitempty" jsonschema:"in a plain voice, not the robot's own"`
}

// addSay adds the tool that speaks.
func (g *Gateway) addSay(s *mcp.Server, authorization string) {
	calls := g.calls()
	x := calls[slices.IndexFunc(calls, func(x call) bool { return x.name == "say" })]
	mcp.AddTool(s, &mcp.Tool{Name: "say", Description: "Say a text aloud through the robot's speaker, and wait until it was said. People hear it: say nothing that a person should not hear"},
		func(ctx context.Context, _ *mcp.CallToolRequest, in sayInput) (*mcp.CallToolResult, any, error) {
			c, err := g.admit(ctx, x, authorization)
			if err != nil {
				return nil, nil, told(err)
			}
			g.used.note(c.Name, x.name, "", Begun)
			var end *robotpb.PlayEnded
			err = g.say(ctx, c, &robotpb.SayRequest{Text: in.Text, Plain: in.Plain}, func(p *robotpb.SpeechProgress) error {
				end = cmp.Or(p.GetEnded(), end)
				return nil
			})
			if err != nil {
				return nil, nil, told(err)
			}
			if end.GetOutcome() != mindlink.Done {
				return nil, nil, errs.New(errs.Conflict, "not said to its end: %s", end.GetReason())
			}
			return nil, map[string]any{"outcome": end.Outcome, "at_ms": end.AtMs}, nil
		})
}
