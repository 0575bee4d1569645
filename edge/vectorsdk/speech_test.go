package vectorsdk_test

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/edge/mind"
	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mindtest"
	"kennel/infra/api/vectorpb"
	"kennel/infra/testwait"
)

// newTalker returns a robot that says every text as a tone, and its character.
func newTalker(t *testing.T, span time.Duration) (*desk, *mindlink.Client) {
	t.Helper()
	d := newDesk(t, mindtest.Voice)
	return d, mindtest.With(t, d.dir, mind.Own{Motions: mindtest.None, Sound: mindtest.Synthesizer{Span: span}.Sound()})
}

// TestSayText: a program with control says a text, and hears that it was said after its last sample; one without control does not. The end of control ends it, and what is asked
// wrongly is refused (part of VEC-AUD-08, part of VEC-AUD-09).
func TestSayText(t *testing.T) {
	t.Parallel()
	d, _ := newTalker(t, 300*time.Millisecond)
	if a, err := d.dial(t).SayText(as(t, "all"), &vectorpb.SayTextRequest{Text: "Hello."}); err != nil || a.Status.Code != vectorpb.ResponseStatus_FORBIDDEN {
		t.Errorf("without control: %v, %v", a, err)
	}
	p := d.granted(t, "all")
	for _, q := range []*vectorpb.SayTextRequest{{Text: "Hello.", UseVectorVoice: true, DurationScalar: 1}, {Text: "Hello.", DurationScalar: 0.05}, {Text: "Hello.", DurationScalar: 20, PitchScalar: 1}} {
		began := time.Now()
		if a, err := p.SayText(p.ctx, q); err != nil || a.State != vectorpb.SayTextResponse_FINISHED || time.Since(began) < 300*time.Millisecond {
			t.Errorf("%v after %v: %v, %v", q, time.Since(began), a, err)
		}
	}
	for _, q := range []*vectorpb.SayTextRequest{{}, {Text: "a", DurationScalar: 0.04}, {Text: "a", DurationScalar: 21}, {Text: "a", PitchScalar: 1.5}} {
		if _, err := p.SayText(p.ctx, q); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", q, err)
		}
	}
	said := make(chan *vectorpb.SayTextResponse, 1)
	go func() {
		a, err := p.SayText(p.ctx, &vectorpb.SayTextRequest{Text: "never"})
		if err != nil {
			t.Error(err)
		}
		said <- a
	}()
	p.release()
	if a := <-said; a.GetState() != vectorpb.SayTextResponse_INVALID && a.GetStatus().GetCode() != vectorpb.ResponseStatus_FORBIDDEN {
		t.Errorf("after the end of control: %v", a)
	}
}

// play returns a function that sends messages and hears what is answered until the end.
func play(s grpc.BidiStreamingClient[vectorpb.ExternalAudioStreamRequest, vectorpb.ExternalAudioStreamResponse], err error) func(...*vectorpb.ExternalAudioStreamRequest) ([]*vectorpb.ExternalAudioStreamResponse, error) {
	return func(all ...*vectorpb.ExternalAudioStreamRequest) (answers []*vectorpb.ExternalAudioStreamResponse, _ error) {
		for i := 0; err == nil && i < len(all); i++ {
			_ = s.Send(all[i]) // the answer says what was wrong
		}
		for err == nil {
			var a *vectorpb.ExternalAudioStreamResponse
			if a, err = s.Recv(); err == nil {
				answers = append(answers, a)
			}
		}
		if errors.Is(err, io.EOF) {
			return answers, nil
		}
		return answers, err
	}
}

// TestPlayback: sound that a program streams is heard sample by sample, and complete comes after the last one; what comes too fast is told; cancel ends it, and what is wrong with
// a message is said (VEC-AUD-05, part of VEC-AUD-06, part of VEC-SND-10).
func TestPlayback(t *testing.T) {
	t.Parallel()
	d, mind := newTalker(t, time.Second)
	heard := make(chan []int16, 1000)
	go func() {
		_ = mind.Listen(t.Context(), func(p mindlink.Piece) error { heard <- p.Samples; return nil })
	}()
	<-heard
	type request = vectorpb.ExternalAudioStreamRequest
	prepare := func(rate, volume uint32) *request {
		return &request{AudioRequestType: &vectorpb.ExternalAudioStreamRequest_AudioStreamPrepare{AudioStreamPrepare: &vectorpb.ExternalAudioStreamPrepare{AudioFrameRate: rate, AudioVolume: volume}}}
	}
	chunk := func(b []byte) *request {
		return &request{AudioRequestType: &vectorpb.ExternalAudioStreamRequest_AudioStreamChunk{AudioStreamChunk: &vectorpb.ExternalAudioStreamChunk{AudioChunkSizeBytes: uint32(len(b)), AudioChunkSamples: b}}}
	}
	complete := &request{AudioRequestType: &vectorpb.ExternalAudioStreamRequest_AudioStreamComplete{AudioStreamComplete: &vectorpb.ExternalAudioStreamComplete{}}}
	cancel := &request{AudioRequestType: &vectorpb.ExternalAudioStreamRequest_AudioStreamCancel{AudioStreamCancel: &vectorpb.ExternalAudioStreamCancel{}}}
	if a, err := play(d.dial(t).ExternalAudioStreamPlayback(as(t, "all")))(prepare(16000, 100), complete); err != nil || len(a) != 1 || a[0].GetAudioStreamPlaybackFailyer() == nil {
		t.Errorf("without control: %v, %v", a, err)
	}
	p := d.granted(t, "all")
	stream := func(all ...*request) ([]*vectorpb.ExternalAudioStreamResponse, error) {
		t.Helper()
		return play(p.ExternalAudioStreamPlayback(p.ctx))(all...)
	}
	chunks := func(span time.Duration) (all []*request) {
		var b []byte
		for _, v := range mindtest.Tone(span).PCM() {
			b = binary.LittleEndian.AppendUint16(b, uint16(v))
		}
		for c := range slices.Chunk(b, 1024) {
			all = append(all, chunk(c))
		}
		return all
	}
	all := slices.Concat([]*request{prepare(16000, 100)}, chunks(700*time.Millisecond), []*request{complete})
	answers, err := stream(all...)
	if err != nil || len(answers) != 1 || answers[0].GetAudioStreamPlaybackComplete() == nil {
		t.Fatalf("%v, %v", answers, err)
	}
	want := mindtest.Tone(700 * time.Millisecond).PCM()
	var got []int16
	testwait.Until(t, patience, "the last sample", testwait.Holds(func() bool {
		for len(heard) > 0 {
			for _, v := range <-heard {
				if v != 0 {
					got = append(got, v)
				}
			}
		}
		return len(got) >= len(want)
	}))
	if !slices.Equal(got, want) {
		t.Errorf("%d samples, want %d", len(got), len(want))
	}
	answers, err = stream(slices.Concat([]*request{prepare(16000, 100)}, chunks(3*time.Second), []*request{complete})...)
	over := answers[0].GetAudioStreamBufferOverrun()
	if err != nil || over == nil || over.AudioSamplesSent <= over.AudioSamplesPlayed+15_000 || answers[len(answers)-1].GetAudioStreamPlaybackComplete() == nil {
		t.Errorf("three seconds at once: %v, %v", answers, err)
	}
	began := time.Now()
	if answers, err := stream(prepare(8000, 50), chunk(make([]byte, 1024)), cancel); err != nil || len(answers) != 0 || time.Since(began) > patience/2 {
		t.Errorf("cancelled: %v, %v", answers, err)
	}
	long := chunk(make([]byte, 1026))
	short := chunk(make([]byte, 10))
	short.GetAudioStreamChunk().AudioChunkSizeBytes = 8
	for what, all := range map[string][]*request{"rate": {prepare(7999, 1)}, "high rate": {prepare(16026, 1)}, "volume": {prepare(8000, 101)}, "first": {complete}, "nothing": {{}},
		"long": {prepare(16025, 1), long}, "size": {prepare(8000, 1), short}, "odd": {prepare(8000, 1), chunk(make([]byte, 3))}, "prepared twice": {prepare(8000, 1), prepare(8000, 1)}} {
		if _, err := stream(all...); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", what, err)
		}
	}
}
