package jdocs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Held is a document of a person, or of a robot that was theirs, as an export shows it (VEC-JDS-11).
type Held struct {
	Thing   thing.ID  `json:"thing,omitempty"`
	Name    Name      `json:"doc_name"`
	Version uint64    `json:"doc_version"`
	Changed time.Time `json:"changed"`
	JSON    string    `json:"json_doc"`
}

// Personal lists and erases the personal data in documents.
type Personal struct {
	Docs  Service
	Store interface {
		OfAccount(ctx context.Context, account string, robots []thing.ID) ([]Held, error)
		EraseAccount(ctx context.Context, account string, robots []thing.ID) error
	}
	// Robots returns the robots that an account owns now; Ever those too that it has owned. Documents of a robot that changed hands are the new owner's.
	Robots, Ever func(ctx context.Context, account string) ([]thing.ID, error)
	// Note writes a line into the audit log; nil: nothing does.
	Note func(ctx context.Context, by, account, reason string) error
}

// Export implements account.Personal: it is Held.
func (p Personal) Export(ctx context.Context, account string) (any, error) {
	return p.Held(ctx, account)
}

// Held returns the documents of an account and of its robots.
func (p Personal) Held(ctx context.Context, account string) ([]Held, error) {
	robots, err := p.Robots(ctx, account)
	if err != nil {
		return nil, err
	}
	return p.Store.OfAccount(ctx, account, robots)
}

// Erase replaces the person's words in the documents of their robots by the defaults, which the robots take over, and deletes the rest.
func (p Personal) Erase(ctx context.Context, account string) error {
	robots, err := p.Robots(ctx, account)
	if err != nil {
		return err
	}
	var first map[string]json.RawMessage
	if err := json.Unmarshal([]byte(Default(RobotSettings).JSON), &first); err != nil {
		return err
	}
	for _, id := range robots {
		key := Key{Thing: id, Name: RobotSettings}
		if _, err := p.Docs.Get(ctx, key); errors.Is(err, ErrNotFound) {
			continue
		} else if err != nil {
			return err
		}
		fields := map[string]json.RawMessage{"default_location": first["default_location"], "time_zone": first["time_zone"]}
		if _, err := p.Docs.Set(ctx, key, fields, "kenneld"); err != nil {
			return err
		}
	}
	ever, err := p.Ever(ctx, account)
	if err != nil {
		return err
	}
	return p.Store.EraseAccount(ctx, account, ever)
}

// Purge is Erase at the request of a service of ours, which says why. Again is no error.
func (p Personal) Purge(ctx context.Context, account, by, reason string) error {
	if account == "" || utf8.RuneCountInString(account) > MaxID || !text(account) {
		return errs.New(errs.Invalid, "user_id %.80q: want 1 to %d characters of text", account, MaxID)
	}
	if p.Note != nil {
		if err := p.Note(ctx, by, account, reason); err != nil {
			return err
		}
	}
	return p.Erase(ctx, account)
}

// Versions returns the version of each document of a robot, by name.
func Versions(ctx context.Context, docs Service, id thing.ID) (map[string]uint64, error) {
	list, err := docs.List(ctx, id)
	out := map[string]uint64{}
	for _, l := range list {
		out[string(l.Name)] = l.Version
	}
	return out, err
}

// Zone returns the time zone in a robot's settings; "" if they name none.
func Zone(ctx context.Context, docs Service, id thing.ID) (string, error) {
	cur, err := docs.Get(ctx, Key{Thing: id, Name: RobotSettings})
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	var s struct {
		Zone any `json:"time_zone"` // robots write what they like
	}
	if err == nil && json.Unmarshal([]byte(cur.JSON), &s) != nil || s.Zone == nil {
		return "", err
	}
	return fmt.Sprint(s.Zone), err
}
