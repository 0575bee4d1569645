package vectorsdk

import (
	"context"
	"errors"
	"io"

	"google.golang.org/protobuf/proto"

	"kennel/edge/mind/mindlink"
	"kennel/edge/sound"
	"kennel/infra/api/vectorpb"
)

// sayText says a text, and answers when it has been heard, or when something else ended it: FINISHED or INVALID (part of VEC-AUD-08, part of VEC-AUD-09). Other states have no
// answer of their own, because the call has one.
func (f *Facade) sayText(ctx context.Context, c client, q *vectorpb.SayTextRequest) (*vectorpb.SayTextResponse, error) {
	h := f.control.of(c)
	if h == nil {
		return &vectorpb.SayTextResponse{Status: forbidden()}, nil
	}
	ctx, cancel := h.during(ctx)
	defer cancel()
	ended, err := f.cfg.Gateway.Say(ctx, c.Caller, mindlink.Say{Text: q.Text, Plain: !q.UseVectorVoice, Duration: float64(q.DurationScalar), Pitch: float64(q.PitchScalar)},
		func(mindlink.Progress) error { return nil })
	a := &vectorpb.SayTextResponse{Status: heard(), State: vectorpb.SayTextResponse_INVALID}
	switch {
	case h.ended():
	case err != nil:
		return nil, err
	case ended.Outcome == mindlink.Done:
		a.State = vectorpb.SayTextResponse_FINISHED
	}
	return a, nil
}

// during returns a context that ends with control too.
func (h *hold) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-h.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// errCancelled ends a stream of sound that its program does not want any longer.
var errCancelled = errors.New("cancelled")

// playback plays the sound that a program streams: first how, then chunks, and at the end complete, after whose last sample it hears that it was played, or cancel
// (part of VEC-AUD-05). It hears when more came than there is room for, two seconds, with the samples sent and played, and that the playback failed (part of VEC-AUD-06).
func (f *Facade) playback(ctx context.Context, c client, receive func() (proto.Message, error), send func(proto.Message) error) error {
	h := f.control.of(c)
	if h == nil {
		return send(playbackFailed())
	}
	ctx, cancel := h.during(ctx)
	defer cancel()
	how, err := prepared(receive)
	if err != nil {
		return err
	}
	r := mindlink.Stream{Rate: int(how.AudioFrameRate), Volume: int(how.AudioVolume), Program: c.Program()}
	broken := make(chan error, 1) // why the program's messages ended early
	ended, err := f.cfg.Gateway.Mind().Stream(ctx, r, func() ([]byte, error) {
		b, err := chunk(receive)
		if err != nil && !errors.Is(err, io.EOF) {
			broken <- err // its only writer: it ends with this
		}
		return b, err
	}, func(p mindlink.Progress) error {
		if p.Lost == nil {
			return nil
		}
		return send(&vectorpb.ExternalAudioStreamResponse{AudioResponseType: &vectorpb.ExternalAudioStreamResponse_AudioStreamBufferOverrun{
			AudioStreamBufferOverrun: &vectorpb.ExternalAudioStreamBufferOverrun{AudioSamplesSent: uint32(p.Lost.Sent), AudioSamplesPlayed: uint32(p.Lost.Played)}}})
	})
	select {
	case err := <-broken:
		if errors.Is(err, errCancelled) {
			return nil
		}
		return err
	default:
	}
	switch {
	case h.ended() || err == nil && ended.Outcome != mindlink.Done:
		return send(playbackFailed())
	case err != nil:
		return err
	}
	return send(&vectorpb.ExternalAudioStreamResponse{AudioResponseType: &vectorpb.ExternalAudioStreamResponse_AudioStreamPlaybackComplete{
		AudioStreamPlaybackComplete: &vectorpb.ExternalAudioStreamPlaybackComplete{}}})
}

// playbackFailed says that the sound was not played to its end, or not at all, as without control.
func playbackFailed() *vectorpb.ExternalAudioStreamResponse {
	return &vectorpb.ExternalAudioStreamResponse{AudioResponseType: &vectorpb.ExternalAudioStreamResponse_AudioStreamPlaybackFailyer{
		AudioStreamPlaybackFailyer: &vectorpb.ExternalAudioStreamPlaybackFailure{}}}
}

// prepared returns how a program wants to be heard: its first message.
func prepared(receive func() (proto.Message, error)) (*vectorpb.ExternalAudioStreamPrepare, error) {
	m, err := receive()
	if err != nil {
		return nil, err
	}
	q := m.(*vectorpb.ExternalAudioStreamRequest)
	how := q.GetAudioStreamPrepare()
	switch {
	case how == nil:
		return nil, errInvalid("first message: %s, want audio_stream_prepare", named(q))
	case how.AudioFrameRate < sound.MinStreamRate || how.AudioFrameRate > sound.MaxStreamRate:
		return nil, errInvalid("audio_stream_prepare.audio_frame_rate: %d, want %d to %d", how.AudioFrameRate, sound.MinStreamRate, sound.MaxStreamRate)
	case how.AudioVolume > 100:
		return nil, errInvalid("audio_stream_prepare.audio_volume: %d, want 0 to 100", how.AudioVolume)
	}
	return how, nil
}

// chunk returns the next samples of a program; io.EOF after the last, and errCancelled if it wants none.
func chunk(receive func() (proto.Message, error)) ([]byte, error) {
	m, err := receive()
	if errors.Is(err, io.EOF) {
		return nil, errCancelled // it left without a word
	} else if err != nil {
		return nil, err
	}
	q := m.(*vectorpb.ExternalAudioStreamRequest)
	x := q.GetAudioStreamChunk()
	switch {
	case q.GetAudioStreamComplete() != nil:
		return nil, io.EOF
	case q.GetAudioStreamCancel() != nil:
		return nil, errCancelled
	case x == nil:
		return nil, errInvalid("message of a stream of sound: %s, want audio_stream_chunk, audio_stream_complete or audio_stream_cancel", named(q))
	case len(x.AudioChunkSamples) > sound.MaxChunk || len(x.AudioChunkSamples)%2 != 0:
		return nil, errInvalid("audio_chunk_samples: %d bytes, want at most %d, two a sample", len(x.AudioChunkSamples), sound.MaxChunk)
	case int(x.AudioChunkSizeBytes) != len(x.AudioChunkSamples):
		return nil, errInvalid("audio_chunk_size_bytes: %d, want %d, the length of audio_chunk_samples", x.AudioChunkSizeBytes, len(x.AudioChunkSamples))
	}
	return x.AudioChunkSamples, nil
}

// named returns the name of what a message holds.
func named(q *vectorpb.ExternalAudioStreamRequest) string {
	if d := q.ProtoReflect().WhichOneof(q.ProtoReflect().Descriptor().Oneofs().ByName("audio_request_type")); d != nil {
		return string(d.Name())
	}
	return "nothing"
}
