package jdocs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	for _, id := range robots {
		if err := p.leaveHome(ctx, id, time.Time{}); err != nil {
			return err
		}
	}
	ever, err := p.Ever(ctx, account)
	if err != nil {
		return err
	}
	return p.Store.EraseAccount(ctx, account, ever)
}

// TenureEnded takes the home of an owner whose ownership ended then out of the robot's settings. It may come late: what the next owner has set since stays.
func (p Personal) TenureEnded(ctx context.Context, id thing.ID, then time.Time) error {
	return p.leaveHome(ctx, id, then)
}

// home is the fields of a robot's settings that say where its owner lives.
var home = []string{"default_location", "time_zone"}

// leaveHome puts the defaults in the place of home, as far as it was the same at a time (zero: in any case).
func (p Personal) leaveHome(ctx context.Context, id thing.ID, then time.Time) error {
	key := Key{Thing: id, Name: RobotSettings.Of(id)}
	cur, err := p.Docs.Get(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	old := cur
	if !then.IsZero() && cur.At.After(then) {
		list, err := p.Docs.History(ctx, key, MaxHistory)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(r Revision) bool { return !r.At.After(then) }) // the newest first
		if i < 0 || list[i].Deleted {
			return nil
		}
		old = list[i]
	}
	var first, now, was map[string]json.RawMessage
	if err := json.Unmarshal([]byte(Default(key.Name).JSON), &first); err != nil {
		return err
	}
	if json.Unmarshal([]byte(cur.JSON), &now) != nil || json.Unmarshal([]byte(old.JSON), &was) != nil {
		now, was = nil, nil // robots write what they like; Set says what it thinks of it
	}
	fields := map[string]json.RawMessage{}
	for _, f := range home {
		if first[f] != nil && bytes.Equal(now[f], was[f]) && !bytes.Equal(now[f], first[f]) {
			fields[f] = first[f]
		}
	}
	if len(fields) == 0 {
		return nil
	}
	_, err = p.Docs.Set(ctx, key, fields, "kenneld")
	return err
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
	cur, err := docs.Get(ctx, Key{Thing: id, Name: RobotSettings.Of(id)})
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
