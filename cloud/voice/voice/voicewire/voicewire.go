// Package voicewire wires the slice of voice.
package voicewire

import (
	"context"
	"errors"
	"time"

	"kennel/cloud/identity/consent"
	"kennel/cloud/identity/owner"
	"kennel/cloud/metrics"
	"kennel/cloud/voice/answers"
	"kennel/cloud/voice/answers/answersapi"
	"kennel/cloud/voice/answers/answerspg"
	"kennel/cloud/voice/customintent"
	"kennel/cloud/voice/customintent/customintentpg"
	"kennel/cloud/voice/voice"
	"kennel/cloud/voice/voice/voiceapi"
	"kennel/cloud/wire"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/telemetry"
	"kennel/infra/thing"
	"kennel/speech"
	"kennel/speech/recognizer"
	"kennel/speech/session/sessionpg"
)

// Voice is where the speech service leaves what became of requests.
type Voice struct {
	*voice.Service
	Store  *sessionpg.Store
	Keeper *sessionpg.Keeper
	Audio  *voice.Audio
	// Customs finds what a sentence means; its Match is for speech.Config.
	Customs *customintent.Service
	// Answers tells owners where answers come from; the speech service says so to it.
	Answers *answers.Service
	// Recognizers tells how the recognisers are, and Speech holds the parts of the speech service. Both are set until the process serves; nil: there
	// is none.
	Recognizers func() []recognizer.Health
	Speech      *speech.Config

	talks *answerspg.Store
}

// Erase deletes what is held of a stretch, and returns how much.
func (v *Voice) Erase(ctx context.Context, s thing.Stretch) (int, error) {
	n, err := v.Store.Drop(ctx, s)
	m, aerr := v.Audio.Drop(ctx, s)
	k, terr := v.talks.Drop(ctx, s)
	return n + m + k, errors.Join(err, aerr, terr)
}

func (v *Voice) parts() (speech.Config, error) {
	if v.Speech == nil || v.Speech.Recognizer == nil {
		return speech.Config{}, errs.New(errs.Unavailable, "this cloud has no speech recogniser")
	}
	return *v.Speech, nil
}

// wordsOf asks for the consent to keep words. Consent that cannot be read is none.
func wordsOf(ask consent.Ask) sessionpg.Consent {
	return func(ctx context.Context, id thing.ID) func(time.Time) bool {
		h, err := ask(ctx, id)
		if err != nil {
			return func(time.Time) bool { return false }
		}
		h.Release() // words have lost their robot before they are stored
		return func(at time.Time) bool {
			_, err := h.Check(id, at)
			return err == nil
		}
	}
}

// Wire wires the slice.
func Wire(b wire.Base, owners *owner.Service) (*Voice, wire.Slice, error) {
	store, customIntents, talks := sessionpg.NewStore(b.Pool), customintentpg.New(b.Pool), answerspg.New(b.Pool)
	v := &Voice{
		Store:   store,
		Service: &voice.Service{Store: store, Now: time.Now}, talks: talks,
		Keeper:  sessionpg.NewKeeper(b.Pool, wordsOf(owners.Hold), b.Log),
		Audio:   voice.NewAudio(store, b.Blobs, owners.Owner, time.Now, b.Log),
		Customs: customintent.New(customIntents, b.Log),
		Answers: &answers.Service{Store: talks, Owner: owners.Owner, Now: time.Now},
	}
	s := wire.Slice{
		Operations: func(d wire.Doors) wire.Operations {
			return append(voiceapi.Operations(voiceapi.Config{Voice: v.Service, Audio: v.Audio, Customs: v.Customs, Speech: v.parts, Known: d.Known, Audit: d.Audit, Log: b.Log}),
				answersapi.Operations(v.Answers, d.Audit)...)
		},
		Pages: voiceapi.Pages(v.Service, func() []recognizer.Health {
			if v.Recognizers == nil {
				return nil
			}
			return v.Recognizers()
		}),
		Runs: []wire.Run{{Name: "speech sessions", Run: v.Keeper.Run}, {Name: "speech audio", Run: v.Audio.Run}},
		Jobs: []jobs.Job{
			{Name: "voice.expire", Every: time.Hour, Run: v.Expire},
			{Name: "voice.memory.expire", Every: time.Hour, Run: func(ctx context.Context) error { return talks.Expire(ctx, time.Now().Add(-answers.Kept)) }},
			{Name: "voice.audio.expire", Every: time.Hour, Run: func(ctx context.Context) error {
				n, err := v.Audio.Expire(ctx)
				if n > 0 {
					b.Log.InfoContext(ctx, "expired audio deleted", "recordings", n)
				}
				return err
			}},
		},
		Personal: []wire.Holding{
			{Name: "voice", Keeps: []string{"speech_session"}, Data: owner.Held{Kind: "voice sessions", Owners: owners, List: store.Of, Drop: store.Drop}},
			{Name: "audio", Keeps: []string{"speech_audio", "s3 speech/"}, Data: owner.Filed{Held: owner.Held{Kind: "recordings", Owners: owners, Drop: v.Audio.Drop,
				List: func(ctx context.Context, s thing.Stretch) (any, error) { return v.Audio.List(ctx, s) }}, Each: v.Audio.Files},
				Ended: func(ctx context.Context, t owner.Tenure) error { return v.Audio.Ended(ctx, t.Stretch(time.Now())) }},
			{Name: "talks", Keeps: []string{"answers_talk", "answers_turn"}, Data: owner.Held{Kind: "talks", Owners: owners, List: talks.Of, Drop: talks.Drop},
				Ended: func(ctx context.Context, t owner.Tenure) error {
					return talks.End(ctx, t.Thing, t.Stretch(time.Now()).Until)
				}},
			{Name: "custom_intents", Keeps: []string{"intent_custom"}, Data: owner.Held{Kind: "custom intents", Owners: owners, List: customIntents.Of, Drop: customIntents.Erase},
				Ended: func(ctx context.Context, t owner.Tenure) error { // the next owner's robot knows none of them
					_, err := customIntents.Erase(ctx, t.Stretch(time.Now()))
					return err
				}},
		},
	}
	return v, s, b.Meters.Asked(telemetry.Metric{Name: "kennel_speech_dropped", Help: "Speech sessions and recordings that this process could not keep."}, []string{"kind"}, metrics.AskEvery,
		func(context.Context) ([]telemetry.Sample, error) {
			return []telemetry.Sample{{Labels: []string{"session"}, Value: float64(v.Keeper.Dropped())}, {Labels: []string{"audio"}, Value: float64(v.Audio.Dropped())}}, nil
		})
}
