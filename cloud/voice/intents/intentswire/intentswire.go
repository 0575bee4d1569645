// Package intentswire wires say.
package intentswire

import (
	"context"
	"crypto/rand"
	"net/http"

	"kennel/cloud/fleet/command"
	"kennel/cloud/voice/intents"
	"kennel/cloud/voice/intents/intentsapi"
	"kennel/cloud/wire"
	"kennel/infra/thing"
	"kennel/speech"
	"kennel/speech/intent"
)

// Service is the service.
type Service = intents.Service

// Text answers a typed request (speech.Service).
type Text func(ctx context.Context, r speech.Request, text string) (speech.Answer, error)

// Wire returns the service that gives its commands to c. What is wrong with it is told when its routes are mounted.
func Wire(b wire.Base, c *command.Service, text Text) (*Service, wire.Slice) {
	svc := intents.New(func(ctx context.Context, id thing.ID, typed string) (intent.Match, error) {
		a, err := text(ctx, speech.Request{Session: rand.Text(), Thing: id, Ours: true, Kind: speech.Graph, SkipDAS: true}, typed)
		if a.Knowledge != nil {
			a.Intent = intent.Match{UserIntent: "knowledge_response", Cloud: speech.KnowledgeResponse, Params: map[string]string{"answer": a.Knowledge.Spoken, speech.LanguageOfAnswer: a.Language}}
		}
		a.Intent.Language = a.Language
		return a.Intent, err
	}, c)
	err := b.Meters.Says(svc)
	return svc, wire.Slice{
		Operations: func(d wire.Doors) wire.Operations {
			return intentsapi.Operations(svc, intentsapi.Config{Known: d.Known, Audit: d.Audit})
		},
		Routes: func(*http.ServeMux, wire.Doors) error { return err },
	}
}
