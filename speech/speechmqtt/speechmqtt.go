// Package speechmqtt answers what robots say that reach the broker and nothing else: one request holds all of it (speech/utterance).
package speechmqtt

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/thing"
	"kennel/speech"
	"kennel/speech/utterance"
)

// Service understands speech (speech.Service).
type Service interface {
	Listen(ctx context.Context, r speech.Request, audio speech.Audio) (speech.Answer, error)
	Text(ctx context.Context, r speech.Request, text string) (speech.Answer, error)
}

type said struct {
	utterance.Header
	samples []int16
}

// Limiter paces requests by key. Allow takes one and returns 0, or how long to wait.
type Limiter interface {
	Allow(key string) time.Duration
}

// atOnce bounds the requests that are answered at once: each has one of the bridge's workers (32) for as long as a recogniser takes, and documents
// and events of other robots need workers, too.
const atOnce = 8

// Requests are those of robots, by service/method. pace is by robot.
func Requests(s Service, pace Limiter) map[string]kitmqtt.ReqHandler {
	places := make(chan struct{}, atOnce)
	enter := func(id thing.ID) (leave func(), err error) {
		if d := pace.Allow(string(id)); d > 0 {
			return nil, errs.RetryLater(d, "too many requests of this robot", nil)
		}
		select {
		case places <- struct{}{}:
			return func() { <-places }, nil
		default:
			return nil, errs.RetryLater(time.Second, "too many spoken requests at once", nil)
		}
	}
	parse := func(b []byte) (u said, err error) {
		u.Header, u.samples, err = utterance.Parse(b)
		return u, err
	}
	return map[string]kitmqtt.ReqHandler{
		utterance.Service + "/" + utterance.Listen: kitmqtt.Handler(parse, func(ctx context.Context, id thing.ID, u said) (utterance.Answer, error) {
			leave, err := enter(id)
			if err != nil {
				return utterance.Answer{}, err
			}
			defer leave()
			if len(u.samples) == 0 {
				return utterance.Answer{}, errs.New(errs.Invalid, "utterance without audio")
			}
			return answer(s.Listen(ctx, request(id, u), &audio{u.samples}))
		}),
		utterance.Service + "/" + utterance.Say: kitmqtt.Handler(parse, func(ctx context.Context, id thing.ID, u said) (utterance.Answer, error) {
			leave, err := enter(id)
			if err != nil {
				return utterance.Answer{}, err
			}
			defer leave()
			return answer(s.Text(ctx, request(id, u), u.Text))
		}),
	}
}

func request(id thing.ID, u said) speech.Request {
	r := speech.Request{Session: u.Session, Thing: id, Ours: true, Kind: speech.Intent, Language: u.Language, Firmware: u.Firmware, Encoding: speech.PCM, Timezone: u.Timezone,
		SkipDAS: u.SkipDAS, SaveAudio: !u.SkipDAS} // whether it is kept, the owner decides
	if u.Question {
		r.Kind = speech.Knowledge
	}
	return r
}

// answer names what a robot does with an answer as original robots do (peer facts, section 1).
func answer(a speech.Answer, err error) (utterance.Answer, error) {
	out := utterance.Answer{Intent: a.Intent.Cloud, Params: a.Intent.Params, Text: a.Text, Confidence: a.Confidence}
	if err == nil && a.Question {
		out.Intent, out.Params = speech.KnowledgeResponse, map[string]string{"answer": "", "answer_type": "NoResultCommand", "query_text": a.Text}
		if k := a.Knowledge; k != nil {
			out.Params["answer"], out.Params["answer_type"] = k.Spoken, "InformationCommand"
			for i, d := range k.Domains {
				out.Params[fmt.Sprintf("domains.%d", i)] = d
			}
		}
	}
	return out, err
}

// audio gives samples piece by piece.
type audio struct{ rest []int16 }

// Next returns the next piece (speech.Audio).
func (a *audio) Next() ([]byte, error) {
	n := min(len(a.rest), utterance.Rate*120/1000)
	if n == 0 {
		return nil, io.EOF
	}
	var b []byte
	for _, s := range a.rest[:n] {
		b = binary.LittleEndian.AppendUint16(b, uint16(s))
	}
	a.rest = a.rest[n:]
	return b, nil
}
