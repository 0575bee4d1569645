package intents

import (
	"context"
	"log/slog"
	"testing"

	"kennel/cloud/voice/customintent"
	"kennel/infra/thing"
	"kennel/speech/intent"
)

// none holds no custom intents.
type none struct{ customintent.Store }

func (none) List(context.Context) ([]customintent.Custom, error) { return nil, nil }

// TestOwn: the sentences of our own intents mean no built-in one, and the built-in ones keep theirs.
func TestOwn(t *testing.T) {
	of := customintent.New(none{}, slog.New(slog.DiscardHandler))
	language := ""
	s := New(func(ctx context.Context, id thing.ID, text string) (intent.Match, error) {
		return of.Match(ctx, intent.Listener{Thing: id, Language: language, Ours: true}, text), nil
	}, nil)
	for text, want := range map[string]string{"raise your head": "kennel_lookup kennel_lookup", "look up": "imperative_lookatme intent_imperative_lookatme", "Look down!": "kennel_lookdown kennel_lookdown", "how is your battery": "kennel_battery kennel_battery",
		"wake up": "greeting_goodmorning intent_greeting_goodmorning", "look at me": "imperative_lookatme intent_imperative_lookatme", "go forward": "movement_forward intent_imperative_forward"} {
		if m, err := s.Find(t.Context(), "vic:00e20100", Saying{Text: text}); err != nil || m.UserIntent+" "+m.Cloud != want {
			t.Errorf("%s: %+v, %v; want %s", text, m, err, want)
		}
	}
	language = "de-AT" // which has the words of de-DE
	for text, want := range map[string]string{"heb bitte den Kopf": "kennel_lookup", "Kopf hoch!": "kennel_lookup", "schau mal nach unten": "kennel_lookdown", "Wie voll ist dein Akku?": "kennel_battery", "akkustand": "kennel_battery",
		"schau mich an": "imperative_lookatme", "heb deinen würfel hoch": "play_pickupcube", "fahr vorwärts": "movement_forward"} {
		if m, err := s.Find(t.Context(), "vic:00e20100", Saying{Text: text}); err != nil || m.UserIntent != want {
			t.Errorf("%s: %+v, %v; want %s", text, m, err, want)
		}
	}
}
