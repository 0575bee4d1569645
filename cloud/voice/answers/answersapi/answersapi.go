// Package answersapi serves /v1/my/robots/{thing}/talk, with which owners choose what a language model does for their robots.
package answersapi

import (
	"cmp"
	"context"
	"fmt"

	"kennel/cloud/voice/answers"
	"kennel/infra/auth"
	"kennel/infra/op"
	"kennel/infra/thing"
	"kennel/speech/knowledge"
)

// Talk is the answer of every operation: what the owner chose, and what the robot remembers, the oldest first.
type Talk struct {
	Model string `json:"model,omitempty"` // absent: this cloud has none
	answers.Choice
	Turns []Remembered `json:"turns"`
}

// Remembered is a question that the robot remembers, and its answer.
type Remembered knowledge.Turn

// TalkChange is the body of a change. Absent fields stay as they are.
type TalkChange struct {
	Asks     *bool   `json:"asks,omitempty"`
	Persona  *string `json:"persona,omitempty"` // at most answers.MaxPersona characters
	Remember *bool   `json:"remember,omitempty"`
}

type (
	robot struct {
		Thing thing.ID `path:"thing"`
	}
	changing struct {
		robot
		Change TalkChange `body:""`
	}
)

// shown is how kennelctl shows a robot's talks to its owner.
const shown = "language model=or .model `none`; answers={{if .asks}}yes{{else}}no{{end}}; remembers={{if .remember}}yes{{else}}no{{end}}; personality=or .persona `its own`\nturns: TIME=.at; QUESTION=.asked; ANSWER=.said"

// Operations returns the operations of owners.
func Operations(svc *answers.Service, audit func(ctx context.Context, action, object, detail string) error) op.List {
	mine := func(route, summary string) op.Spec {
		return op.Spec{Route: route, Tag: "Own robots", Summary: summary, Roles: []auth.Role{auth.Owner}, Own: true, Strict: true}
	}
	talk := func(ctx context.Context, id thing.ID) (Talk, error) {
		t, err := svc.Talk(ctx, id, auth.CallerFrom(ctx).Account)
		out := Talk{t.Model, t.Choice, make([]Remembered, 0, len(t.Turns))}
		for _, turn := range t.Turns {
			out.Turns = append(out.Turns, Remembered(turn))
		}
		return out, err
	}
	return op.List{
		op.New(mine("GET /v1/my/robots/{thing}/talk", "Show whether the language model answers for your robot, its personality, and the questions that it remembers.").With(
			op.Command{Use: "my talk show THING", Short: "Show your robot's personality and memory", Table: shown}),
			func(ctx context.Context, r robot) (Talk, error) { return talk(ctx, r.Thing) }),
		op.New(mine("PATCH /v1/my/robots/{thing}/talk", "Choose whether the language model answers for your robot, its personality, and whether it remembers questions. Absent fields stay as they are. Without remember, its memory is deleted.").With(
			op.Command{Use: "my talk answer THING YES-OR-NO=asks", Short: "Let the language model answer for your robot, or not", Example: "my talk answer vic:00e20100 yes", Table: shown},
			op.Command{Use: "my talk personality THING TEXT=persona", Short: "Give your robot a personality, in your words", Example: "my talk personality vic:00e20100 'You are a grumpy pirate.'\nmy talk personality vic:00e20100 ''", Table: shown},
			op.Command{Use: "my talk remember THING YES-OR-NO=remember", Short: "Let your robot remember questions for 30 days (yes), or delete its memory (no)", Example: "my talk remember vic:00e20100 no", Table: shown}),
			func(ctx context.Context, r changing) (Talk, error) {
				t, err := talk(ctx, r.Thing)
				if err != nil {
					return Talk{}, err
				}
				c := r.Change
				to := answers.Choice{Asks: *cmp.Or(c.Asks, &t.Asks), Persona: *cmp.Or(c.Persona, &t.Persona), Remember: *cmp.Or(c.Remember, &t.Remember)}
				if err := audit(ctx, answers.AuditChoose, string(r.Thing), fmt.Sprintf("asks %v, remembers %v", to.Asks, to.Remember)); err != nil {
					return Talk{}, err
				}
				if err := svc.Choose(ctx, r.Thing, auth.CallerFrom(ctx).Account, to); err != nil {
					return Talk{}, err
				}
				return talk(ctx, r.Thing)
			}),
		op.New(mine("DELETE /v1/my/robots/{thing}/talk/memory", "Delete the questions that your robot remembers.").With(
			op.Command{Use: "my talk forget THING", Short: "Delete what your robot remembers", Says: "{{.THING}} remembers nothing"}),
			func(ctx context.Context, r robot) (op.None, error) {
				if err := audit(ctx, answers.AuditForget, string(r.Thing), ""); err != nil {
					return op.None{}, err
				}
				return op.None{}, svc.Forget(ctx, r.Thing, auth.CallerFrom(ctx).Account)
			}),
	}
}
