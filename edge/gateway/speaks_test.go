package gateway_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/edge/mind"
	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mindtest"
	"kennel/infra/api/robotpb"
)

// newTalker returns a robot that says every text as a tone.
func newTalker(t *testing.T, span time.Duration) *desk {
	t.Helper()
	d := newDesk(t, display, mindtest.Voice)
	mindtest.With(t, d.dir, mind.Own{Motions: mindtest.None, Sound: mindtest.Synthesizer{Span: span}.Sound()})
	return d
}

// ended reads how something is said or played, to its end.
func ended(s grpc.ServerStreamingClient[robotpb.SpeechProgress], err error) (states []string, end *robotpb.PlayEnded, _ error) {
	for err == nil {
		var p *robotpb.SpeechProgress
		if p, err = s.Recv(); err == nil {
			if state := p.GetState(); state != "" {
				states = append(states, state)
			}
			if p.GetEnded() != nil {
				end = p.GetEnded()
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return states, end, err
}

// TestSay: a program with the right to talk says a text, and another one hears each sample of it before the end is told; one without the right is refused, and so are texts
// without words.
func TestSay(t *testing.T) {
	t.Parallel()
	d := newTalker(t, time.Second)
	r := d.dial(t)
	ctx, cancel := context.WithCancel(as("look"))
	defer cancel()
	ears, err := r.Sounds(ctx, &robotpb.SoundsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := ears.Recv(); err != nil || p.Rate != mindlink.SoundRate || len(p.Data) != 0 {
		t.Fatalf("%v, %v", p, err)
	}
	states, end, err := ended(r.Say(as("talk"), &robotpb.SayRequest{Text: "Hello.", Speed: 1}))
	if err != nil || end.GetOutcome() != "done" || end.AtMs < 1000 || !slices.Equal(states, []string{"generating", "ready", "playing"}) {
		t.Errorf("%v, %v, %v", states, end, err)
	}
	want := mindtest.Tone(time.Second).PCM()
	var got []int16
	for place := int64(0); len(got) < len(want); {
		p, err := ears.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if p.Rate == 0 {
			continue
		}
		if p.Missed != 0 || place != 0 && p.Place != place || p.AtUs == 0 {
			t.Errorf("piece at %d, want %d; %d missed", p.Place, place, p.Missed)
		}
		place = p.Place + int64(len(p.Data)/2)
		for i := 0; i < len(p.Data); i += 2 {
			if v := int16(binary.LittleEndian.Uint16(p.Data[i:])); v != 0 || len(got) > 0 {
				got = append(got, v)
			}
		}
	}
	if !slices.Equal(got[:len(want)], want) {
		t.Error("other samples than those of the tone")
	}
	for _, x := range []struct {
		token string
		q     *robotpb.SayRequest
		code  codes.Code
	}{{"look", &robotpb.SayRequest{Text: "a"}, codes.PermissionDenied}, {"talk", &robotpb.SayRequest{}, codes.InvalidArgument}, {"talk", &robotpb.SayRequest{Text: strings.Repeat("a", 2001)}, codes.InvalidArgument},
		{"talk", &robotpb.SayRequest{Text: "a", Speed: 0.01}, codes.InvalidArgument}, {"talk", &robotpb.SayRequest{Text: "a", Pitch: -2}, codes.InvalidArgument}} {
		if _, _, err := ended(r.Say(as(x.token), x.q)); status.Code(err) != x.code {
			t.Errorf("%s says %.40v: %v, want %v", x.token, x.q, err, x.code)
		}
	}
}

// TestSounds: a program plays a sound of the list, and silences the robot while another one's text is said; a language model speaks.
func TestSounds(t *testing.T) {
	t.Parallel()
	d := newTalker(t, time.Minute)
	r := d.dial(t)
	l, err := r.Animations(as("look"), &robotpb.AnimationsRequest{})
	if err != nil || !slices.Contains(l.Sounds, "Kennel_Mood_Happy") || slices.Contains(l.Lacks, "audio") {
		t.Errorf("%v, %v", l, err)
	}
	name := func(s string) *robotpb.SoundRequest {
		return &robotpb.SoundRequest{What: &robotpb.SoundRequest_Name{Name: s}}
	}
	states, end, err := ended(r.Sound(as("talk"), name("beep")))
	if err != nil || end.GetOutcome() != "done" || end.AtMs < 300 || !slices.Equal(states, []string{"playing"}) {
		t.Errorf("%v, %v, %v", states, end, err)
	}
	for _, x := range []struct {
		token string
		q     *robotpb.SoundRequest
		code  codes.Code
	}{{"look", name("beep"), codes.PermissionDenied}, {"talk", name("none"), codes.NotFound}, {"talk", &robotpb.SoundRequest{}, codes.InvalidArgument}} {
		if _, _, err := ended(r.Sound(as(x.token), x.q)); status.Code(err) != x.code {
			t.Errorf("%s plays %v: %v, want %v", x.token, x.q, err, x.code)
		}
	}
	s, err := r.Say(as("all"), &robotpb.SayRequest{Text: "A long one."})
	if err != nil {
		t.Fatal(err)
	}
	for p := (&robotpb.SpeechProgress{}); p.GetState() != "playing"; {
		if p, err = s.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	if _, end, err := ended(r.Sound(as("talk"), &robotpb.SoundRequest{What: &robotpb.SoundRequest_Stop{Stop: true}})); err != nil || end.GetOutcome() != "done" {
		t.Errorf("%v, %v", end, err)
	}
	if _, end, err := ended(s, nil); err != nil || end.GetOutcome() != "stopped" || !strings.Contains(end.By, "lamp") || end.Reason == "" {
		t.Errorf("silenced: %v, %v", end, err)
	}

	d = newTalker(t, time.Second/10)
	m, err := d.model(t, "talk")
	if err != nil {
		t.Fatal(err)
	}
	for text, failed := range map[string]bool{"Hello.": false, "": true} {
		if a, err := m.CallTool(t.Context(), &mcp.CallToolParams{Name: "say", Arguments: map[string]any{"text": text}}); err != nil || a.IsError != failed {
			t.Errorf("a model says %q: %+v, %v", text, a, err)
		}
	}

	d = newDesk(t, display)
	mindtest.Start(t, d.dir, mindtest.None)
	if _, _, err := ended(d.dial(t).Say(as("talk"), &robotpb.SayRequest{Text: "a"})); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "speaker") {
		t.Errorf("without a speaker: %v", err)
	}
}
