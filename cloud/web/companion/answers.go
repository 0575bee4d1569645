package companion

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"kennel/cloud/voice/answers"
	"kennel/infra/auth"
	"kennel/infra/thing"
)

// Answers tells where the answers of robots come from; *answers.Service does.
type Answers interface {
	Weather(ctx context.Context, id thing.ID) (answers.Weather, error)
	Talk(ctx context.Context, id thing.ID, account string) (answers.Talk, error)
	Choose(ctx context.Context, id thing.ID, account string, c answers.Choice) error
	Forget(ctx context.Context, id thing.ID, account string) error
}

// answers fills in where the robot's answers come from.
func (c *companion) answers(ctx context.Context, v *robotPage) error {
	if c.Answers == nil {
		return nil
	}
	w, err := c.Answers.Weather(ctx, v.Thing)
	v.Weather = &w
	if err != nil {
		return err
	}
	t, err := c.Answers.Talk(ctx, v.Thing, auth.CallerFrom(ctx).Account)
	slices.Reverse(t.Turns)                                    // the newest first
	if t.Model != "" || t.Persona != "" || len(t.Turns) != 0 { // what is kept can be deleted when the model is gone
		v.Talk = &t
	}
	return err
}

// setTalk sets what the owner chose about the language model.
func (c *companion) setTalk(ctx context.Context, me auth.Caller, id thing.ID, v url.Values) (string, error) {
	choice := answers.Choice{Asks: v.Get("asks") == "yes", Remember: v.Get("remember") == "yes", Persona: v.Get("persona")}
	if err := c.Audit(ctx, answers.AuditChoose, string(id), fmt.Sprintf("asks %v, remembers %v", choice.Asks, choice.Remember)); err != nil {
		return "", err
	}
	return "talk", c.Answers.Choose(ctx, id, me.Account, choice)
}

// forgetTalk deletes what the robot remembers.
func (c *companion) forgetTalk(ctx context.Context, me auth.Caller, id thing.ID, _ url.Values) (string, error) {
	if err := c.Audit(ctx, answers.AuditForget, string(id), ""); err != nil {
		return "", err
	}
	return "forgotten", c.Answers.Forget(ctx, id, me.Account)
}
