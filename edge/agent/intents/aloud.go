package intents

import (
	"context"
	"time"

	"kennel/edge/mind/mindlink"
	"kennel/infra/logging"
)

// Speaker says answers (mindlink.Client).
type Speaker interface {
	Say(ctx context.Context, s mindlink.Say, tell func(mindlink.Progress) error) (mindlink.Ended, error)
}

// program is the name under which the robot's own answers are said.
const program = "agentd"

// longestAnswer bounds the time for which an answer is said; own default.
const longestAnswer = 2 * time.Minute

// spoken is an answer and its language.
type spoken struct{ text, language string }

// aloud says an answer soon, instead of one that is said still. It does not block.
func (x *Intents) aloud(s spoken) {
	if x.cfg.Speaker == nil || s.text == "" {
		return
	}
	for {
		select {
		case x.answers <- s:
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
		case s := <-x.answers:
			stop()
			<-said
			one, cancel := context.WithTimeout(ctx, longestAnswer)
			done := make(chan struct{})
			said, stop = done, cancel
			go func() {
				defer close(done)
				defer cancel()
				end, err := x.cfg.Speaker.Say(one, mindlink.Say{Text: s.text, Language: s.language, Level: mindlink.Behavior, Program: program}, func(mindlink.Progress) error { return nil })
				switch {
				case err != nil:
					x.cfg.Log.DebugContext(ctx, "answer not said", logging.Err, err)
				case end.Outcome == mindlink.Stopped && end.By == "": // such as for want of a voice; who asked has the text
					x.cfg.Log.InfoContext(ctx, "answer not said", "language", s.language, "why", end.Reason)
				}
			}()
		}
	}
}
