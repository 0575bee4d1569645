package voicewire

import (
	"context"
	"errors"
	"testing"
	"time"

	"kennel/cloud/identity/consent"
	"kennel/infra/thing"
)

// TestWordsOf: words are kept with the consent of the owner of the time when they were said (VEC-NLP-07): not with the next owner's, not with one that
// was given since, and not if it cannot be read. No Hold is left behind.
func TestWordsOf(t *testing.T) {
	const rex = thing.ID("vic:00e20100")
	now := time.Now()
	for name, c := range map[string]struct {
		permit consent.Permit
		err    error
		said   time.Duration // before now
		want   bool
	}{
		"allowed":       {consent.Permit{Account: "ann", Allowed: true, Owned: time.Hour, Settled: time.Hour}, nil, time.Second, true},
		"opted out":     {consent.Permit{Account: "ann", Owned: time.Hour, Settled: time.Hour}, nil, time.Second, false},
		"next owner":    {consent.Permit{Account: "bob", Allowed: true, Owned: time.Second, Settled: time.Second}, nil, time.Minute, false},
		"allowed since": {consent.Permit{Account: "ann", Allowed: true, Owned: time.Hour, Settled: time.Second}, nil, time.Minute, false},
		"unreadable":    {consent.Permit{}, errors.New("away"), time.Second, false},
	} {
		held := 0
		ask := func(context.Context, ...thing.ID) (consent.Hold, error) {
			if c.err != nil {
				return consent.Hold{}, c.err
			}
			held++
			return consent.Hold{At: now, Asked: now, Permits: map[thing.ID]consent.Permit{rex: c.permit}, Release: func() { held-- }}, nil
		}
		if got := wordsOf(ask)(t.Context(), rex)(now.Add(-c.said)); got != c.want || held != 0 {
			t.Errorf("%s: %v and %d held; want %v and none", name, got, held, c.want)
		}
	}
}
