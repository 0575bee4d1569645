// Package brokerlink asks the cloud what a person said over the broker, for robots that reach nothing else: the whole sentence is one request
// (speech/utterance), so the robot finds its end itself.
package brokerlink

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"time"

	"kennel/edge/agent/voice"
	"kennel/infra/errs"
	"kennel/speech/endpoint"
	"kennel/speech/utterance"
)

// Link is a voice.Cloud. Safe for concurrent use.
type Link struct {
	OS string
	Do func(ctx context.Context, service, method string, body []byte) ([]byte, error) // kitmqtt.Requester
}

// longest leaves the cloud the rest of the deadline.
const longest = 6 * time.Second

// Listen waits for the end of speech, and asks.
func (l *Link) Listen(ctx context.Context, r voice.Request, audio <-chan []byte) (voice.Reply, error) {
	d := endpoint.New(endpoint.Config{Longest: longest})
	var samples []int16
	for state := endpoint.Waiting; state < endpoint.Ended; {
		select {
		case <-ctx.Done():
			return voice.Reply{}, ctx.Err()
		case piece := <-audio:
			n := len(samples)
			for ; len(piece) >= 2; piece = piece[2:] {
				samples = append(samples, int16(binary.LittleEndian.Uint16(piece)))
			}
			if state = d.Write(samples[n:]); state == endpoint.Silent {
				return voice.Reply{Intent: "intent_system_noaudio"}, nil
			}
		}
	}
	return l.ask(ctx, utterance.Listen, r, "", samples)
}

// Text asks what a typed sentence means.
func (l *Link) Text(ctx context.Context, r voice.Request, text string) (voice.Reply, error) {
	return l.ask(ctx, utterance.Say, r, text, nil)
}

func (l *Link) ask(ctx context.Context, method string, r voice.Request, text string, samples []int16) (voice.Reply, error) {
	body, err := utterance.Append(nil, utterance.Header{Session: r.Session, Question: r.Question, Language: r.Language, Firmware: l.OS, Timezone: r.Timezone,
		SkipDAS: r.SkipDAS, Text: text}, samples)
	if err != nil {
		return voice.Reply{}, err
	}
	b, err := l.Do(ctx, utterance.Service, method, body)
	if err != nil {
		return voice.Reply{}, err
	}
	var a utterance.Answer
	if err := json.Unmarshal(b, &a); err != nil || a.Intent == "" {
		return voice.Reply{}, errs.New(errs.Corrupt, "speech: no intent in the answer: %w", err)
	}
	return voice.Reply{Intent: a.Intent, Params: a.Params, Metadata: voice.Metadata{Text: a.Text, Confidence: a.Confidence}}, nil
}
