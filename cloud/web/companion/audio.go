package companion

import (
	"context"
	"net/url"
	"strconv"

	"kennel/cloud/voice/voice"
	"kennel/infra/auth"
	"kennel/infra/thing"
)

// Recordings keeps what robots hear, if their owners want that (VEC-NLP-07); *voice.Audio does.
type Recordings interface {
	Wish(ctx context.Context, id thing.ID) (voice.AudioWish, error)
	Set(ctx context.Context, id thing.ID, account string, keep bool) error
}

// audio fills in the recordings of what a robot heard.
func (c *companion) audio(ctx context.Context, v *robotPage) error {
	if c.Recordings == nil {
		return nil
	}
	w, err := c.Recordings.Wish(ctx, v.Thing)
	v.Audio = &w
	return err
}

// setAudio sets whether it is kept.
func (c *companion) setAudio(ctx context.Context, me auth.Caller, id thing.ID, v url.Values) (string, error) {
	keep := v.Get("keep") == "yes"
	if err := c.Audit(ctx, "voice.audio", string(id), strconv.FormatBool(keep)); err != nil {
		return "", err
	}
	done := "no-audio"
	if keep {
		done = "audio"
	}
	return done, c.Recordings.Set(ctx, id, me.Account, keep)
}
