package brokerlink_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"kennel/edge/agent/voice"
	"kennel/edge/agent/voice/brokerlink"
	"kennel/infra/errs"
	"kennel/infra/ratelimit"
	"kennel/speech"
	"kennel/speech/intent"
	"kennel/speech/knowledge"
	"kennel/speech/speechmqtt"
)

// service understands everything.
type service struct {
	heard speech.Request
	bytes int
}

func (s *service) Listen(_ context.Context, r speech.Request, audio speech.Audio) (speech.Answer, error) {
	s.heard = r
	for {
		b, err := audio.Next()
		if err != nil {
			break
		}
		s.bytes += len(b)
	}
	if r.Kind == speech.Knowledge {
		return speech.Answer{Text: "how high", Question: true, Knowledge: &knowledge.Answer{Spoken: "high", Domains: []string{"places"}}}, nil
	}
	return speech.Answer{Text: "dance", Confidence: 0.5, Intent: intent.Match{Cloud: "intent_imperative_dance", Params: map[string]string{"a": "b"}}}, nil
}

func (s *service) Text(_ context.Context, _ speech.Request, text string) (speech.Answer, error) {
	if text == "" {
		return speech.Answer{}, errs.New(errs.Unavailable, "no recogniser")
	}
	return speech.Answer{Text: text, Question: text == "why"}, nil
}

// TestBroker: from the pieces of a robot to the service of the cloud and back; the end of speech is found by the robot.
func TestBroker(t *testing.T) {
	s := &service{}
	all := speechmqtt.Requests(s, ratelimit.New(time.Millisecond, 100))
	l := &brokerlink.Link{OS: "1.2.3", Do: func(ctx context.Context, service, method string, body []byte) ([]byte, error) {
		return all[service+"/"+method](ctx, "vic:00e20100", body)
	}}
	say := func(loud int) <-chan []byte {
		audio, rnd := make(chan []byte, 100), rand.New(rand.NewPCG(1, 2))
		for i := range 100 {
			level := 20
			if i > 5 && i < 5+loud {
				level = 6000
			}
			var b []byte
			for range 1920 {
				b = binary.LittleEndian.AppendUint16(b, uint16(int16(rnd.IntN(2*level)-level)))
			}
			audio <- b
		}
		return audio
	}
	got, err := l.Listen(t.Context(), voice.Request{Session: "s", Language: "de-DE", Timezone: "Europe/Berlin", SkipDAS: true}, say(10))
	if err != nil || got.Intent != "intent_imperative_dance" || got.Params["a"] != "b" || got.Text != "dance" || got.Confidence != 0.5 {
		t.Errorf("%+v, %v", got, err)
	}
	if h := s.heard; h.Thing != "vic:00e20100" || h.Session != "s" || h.Language != "de-DE" || h.Firmware != "1.2.3" || h.Timezone != "Europe/Berlin" || !h.SkipDAS || h.SaveAudio || h.Encoding != speech.PCM {
		t.Errorf("%+v", h)
	}
	if s.bytes < 15*3840 || s.bytes > 25*3840 { // 5 quiet pieces, 10 with speech, and a pause
		t.Errorf("%d bytes", s.bytes)
	}
	if got, err = l.Listen(t.Context(), voice.Request{Question: true}, say(10)); err != nil || got.Params["answer"] != "high" || got.Params["domains.0"] != "places" || !s.heard.SaveAudio || s.heard.SkipDAS {
		t.Errorf("%+v, %v; %+v", got, err, s.heard)
	}
	s.bytes = 0
	if got, err = l.Listen(t.Context(), voice.Request{}, say(0)); err != nil || got.Intent != "intent_system_noaudio" || s.bytes != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = l.Text(t.Context(), voice.Request{}, "why"); err != nil || got.Params["answer_type"] != "NoResultCommand" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = l.Text(t.Context(), voice.Request{}, ""); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = l.Text(t.Context(), voice.Request{}, "nothing"); errs.KindOf(err) != errs.Corrupt {
		t.Errorf("%+v, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if got, err = l.Listen(ctx, voice.Request{}, nil); err == nil {
		t.Errorf("%+v", got)
	}
}
