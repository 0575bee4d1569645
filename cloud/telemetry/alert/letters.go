package alert

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"kennel/cloud/identity/mail"
)

// The letters of this domain: kinds of mail, and names in cloud/identity/mail/letters.
const (
	letterFiring   = "alert-firing"
	letterWorse    = "alert-worse"
	letterResolved = "alert-resolved"
)

// Composes reports whether a kind of mail is one of this domain's.
func Composes(kind string) bool {
	return kind == letterFiring || kind == letterWorse || kind == letterResolved
}

// Composer writes them; page is the address of the page of alerts.
func Composer(page string) mail.Composer {
	return func(_ context.Context, m mail.Mail) (mail.Letter, bool, error) {
		at, err := time.Parse(time.RFC3339, m.Data["at"])
		return mail.Letter{Template: m.Kind, Why: m.Data["words"], Other: m.Data["release"], At: at, Link: page}, err == nil, err
	}
}

// Words says in a sentence what an alert is about.
func (a Alert) Words() string {
	switch {
	case a.Place != "":
		return fmt.Sprintf("%s at %s: %s", a.Code, a.Place, a.Reason)
	case a.Reason != "":
		return a.Reason
	}
	return fmt.Sprintf("%d of %d present robots have the problem %s %s", a.Robots, a.Present, a.Kind, a.Code)
}

// tell posts the letters that are due.
func (s *Service) tell(ctx context.Context) error {
	to, err := s.store.Recipients(ctx)
	if err != nil {
		return err
	}
	return s.store.Untold(ctx, func(a Letter) error {
		kind, at := letterFiring, a.Since
		switch {
		case a.Resolved != nil:
			kind, at = letterResolved, *a.Resolved
		case a.Worse:
			kind = letterWorse
		}
		for _, address := range to {
			if err := s.Mail.Post(ctx, mail.Mail{Kind: kind, To: address, Data: map[string]string{
				"words": a.Words(), "release": cmp.Or(a.Release, a.Place, "unknown"), "at": at.UTC().Format(time.RFC3339)}}); err != nil {
				return err
			}
		}
		return nil
	})
}
