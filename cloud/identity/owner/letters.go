package owner

import (
	"context"
	"fmt"
	"time"

	"kennel/cloud/identity/mail"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// News is a change that an owner is told by letter: a person who gets or loses a robot is told, because another person may have done it.
type News struct {
	Account string
	Thing   thing.ID
	Name    string // what the owner called it; "" when it began
	Ended   bool   // else it began
	Why     string // How or Ended of the tenure
	At      time.Time
}

// The letters of this domain: kinds of mail, and names in cloud/identity/mail/letters.
const (
	letterGained   = "robot-gained"
	letterHandedOn = "robot-handed-on"
	letterTaken    = "robot-taken"
	letterReleased = "robot-released"
	letterLeft     = "robot-left"
)

const (
	newsChunk = 100
	newsTime  = 20 * time.Second // for a round of letters
	newsWorth = mail.DefaultKeep // after which no letter is sent
)

// letters are those about an end, by why.
var letters = map[string]string{
	EndTransferred: letterHandedOn, EndOperator: letterTaken, EndReleased: letterReleased, EndWiped: letterLeft, EndDisassociated: letterLeft,
}

// Composes reports whether a kind of mail is one of this domain's.
func Composes(kind string) bool {
	switch kind {
	case letterGained, letterHandedOn, letterTaken, letterReleased, letterLeft:
		return true
	}
	return false
}

// Compose writes them: it is a mail.Composer.
func (s *Service) Compose(_ context.Context, m mail.Mail) (mail.Letter, bool, error) {
	if !Composes(m.Kind) {
		return mail.Letter{}, false, fmt.Errorf("mail kind %.40q: not one about owners", m.Kind)
	}
	at, err := time.Parse(time.RFC3339, m.Data["at"])
	if err != nil {
		return mail.Letter{}, false, fmt.Errorf("mail kind %s: %w", m.Kind, err)
	}
	robot := m.Data["thing"]
	if name := m.Data["name"]; name != "" {
		robot = name + " (" + robot + ")"
	}
	l := mail.Letter{Template: m.Kind, Robot: robot, Why: m.Data["why"], At: at}
	if m.Kind != letterTaken && m.Kind != letterLeft { // a new password is of no use where no session did it
		l.Link = s.ForgotURL
	}
	return l, true, nil
}

// tellNews posts what waits to be told. A letter may be posted twice if this process is killed in between; the other processes are kept out, and
// one that is told to stop still notes what it has posted.
func (s *Service) tellNews(ctx context.Context) error {
	round, cancel := context.WithTimeout(context.WithoutCancel(ctx), newsTime)
	defer cancel()
	return s.Remains.TellNews(round, newsChunk, func(round context.Context, n News) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return s.tell(round, n)
	})
}

// tell posts one letter. Whom it is for may have left, and their address may be one that takes none: then there is nothing to do.
func (s *Service) tell(ctx context.Context, n News) error {
	kind := letterGained
	if n.Ended {
		kind = letters[n.Why]
	}
	if s.Mail == nil || s.Reader == nil || kind == "" {
		return nil
	}
	if age := s.Now().Sub(n.At); age > newsWorth {
		s.Log.WarnContext(ctx, "owner not told of a change in time", logging.Thing, n.Thing, "kind", kind, "age", age)
		return nil
	}
	email, lang, err := s.Reader(ctx, n.Account)
	if errs.KindOf(err) == errs.NotFound && err != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the owner to tell about %s: %w", n.Thing, err)
	}
	err = s.Mail.Post(ctx, mail.Mail{Kind: kind, To: email, Account: n.Account, Lang: lang, Data: map[string]string{
		"thing": string(n.Thing), "name": n.Name, "why": n.Why, "at": n.At.UTC().Format(time.RFC3339)}})
	if errs.KindOf(err) == errs.Invalid && err != nil {
		s.Log.WarnContext(ctx, "owner not told of a change", logging.Thing, n.Thing, "kind", kind, logging.Err, err)
		return nil
	}
	return err
}
