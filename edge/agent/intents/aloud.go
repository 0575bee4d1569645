package intents

import (
	"context"
	"time"

	"kennel/edge/mind/mindlink"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/speech/intent"
)

// Mind is the robot's character (mindlink.Client), which says answers and plays animations.
type Mind interface {
	Say(ctx context.Context, s mindlink.Say, tell func(mindlink.Progress) error) (mindlink.Ended, error)
	Play(ctx context.Context, r mindlink.Request, tell func(mindlink.Progress) error) (mindlink.Ended, error)
}

// program is the name under which the robot's own answers are said and played.
const program = "agentd"

// language is the one of all texts in this package.
const language = "en-US"

// longestAnswer bounds the time for which an answer is said; own default.
const longestAnswer = 2 * time.Minute

// aloud says an answer soon, instead of one that is said still. It does not block.
func (x *Intents) aloud(text string) {
	if x.cfg.Mind == nil || text == "" {
		return
	}
	for {
		select {
		case x.answers <- text:
			return
		default:
		}
		select {
		case <-x.answers: // an older one
		default:
		}
	}
}

// speak says answers until ctx ends. A robot that cannot speak shows them where they were asked for.
func (x *Intents) speak(ctx context.Context) {
	said, stop := make(chan struct{}), func() {}
	close(said)
	defer func() { stop(); <-said }()
	for {
		select {
		case <-ctx.Done():
			return
		case text := <-x.answers:
			stop()
			<-said
			one, cancel := context.WithTimeout(ctx, longestAnswer)
			done := make(chan struct{})
			said, stop = done, cancel
			go func() {
				defer close(done)
				defer cancel()
				_, err := x.cfg.Mind.Say(one, mindlink.Say{Text: text, Language: language, Level: mindlink.Behavior, Program: program}, func(mindlink.Progress) error { return nil })
				if err != nil {
					x.cfg.Log.DebugContext(ctx, "answer not said", logging.Err, err)
				}
			}()
		}
	}
}

// respond plays the animation of an intent that needs nothing else (part of VEC-INT-03).
func (x *Intents) respond(ctx context.Context, r *intent.Response) (Outcome, error) {
	ended, err := x.cfg.Mind.Play(ctx, mindlink.Request{Trigger: r.AnimGroup, Level: mindlink.Behavior, Program: program}, func(mindlink.Progress) error { return nil })
	switch code := errs.CodeOf(err); {
	case code == "not_found", code == "unable":
		return Outcome{Reason: NotSupported, Text: NotHere}, nil
	case code == "busy":
		return Outcome{Reason: Busy, Text: "something else moves me now"}, nil
	case err != nil:
		return Outcome{}, err
	case ended.Outcome != mindlink.Done:
		return refuse(Failed, "I stopped: %s", ended.Reason)
	}
	return Outcome{}, nil
}
