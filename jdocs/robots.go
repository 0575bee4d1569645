package jdocs

import (
	"context"
	"slices"
	"unicode/utf8"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Asker is a robot that asks for documents: what its transport has proved, and what its request says beside that.
type Asker struct {
	Thing thing.ID // proved
	Said  Said
	OS    string // version of its software, if it is known
}

// Said names a robot and an account in a request. Both are optional and prove nothing; they must not contradict the proof (VEC-FLE-01).
type Said struct{ Thing, Account string }

// check refuses a request that speaks for another robot.
func (a Asker) check() error {
	for _, s := range []string{a.Said.Thing, a.Said.Account} {
		if utf8.RuneCountInString(s) > MaxID || !text(s) {
			return errs.New(errs.Invalid, "thing or user_id %.80q: want at most %d characters of text", s, MaxID)
		}
	}
	if a.Said.Thing == "" || a.Said.Thing == string(a.Thing) {
		return nil
	}
	if _, err := thing.Parse(a.Said.Thing); err != nil {
		return errs.New(errs.Invalid, "%w", err)
	}
	return errs.Coded(errs.Denied, "other_robot", "%s may not reach the documents of %.80q", a.Thing, a.Said.Thing)
}

// Robots lets robots reach documents, whatever transport they use: their own, and the settings and entitlements of their owner, as the
// cloud knows the owner. Safe for concurrent use.
type Robots struct {
	Docs Service
	// OwnerOf returns a robot's owner; NotFound: none. nil: robots reach no document of an account.
	OwnerOf func(ctx context.Context, id thing.ID) (account string, err error)
	// Changed is told of every accepted change of a document of an account. May be nil.
	Changed func(ctx context.Context, account string, name Name)
}

// account returns the asker's owner; "" if it has none. Denied "wrong_account" if it names another.
func (r Robots) account(ctx context.Context, a Asker) (string, error) {
	if r.OwnerOf == nil {
		return "", nil
	}
	account, err := r.OwnerOf(ctx, a.Thing)
	if err != nil && errs.KindOf(err) != errs.NotFound {
		return "", err
	}
	if a.Said.Account != "" && a.Said.Account != account {
		return "", errs.Coded(errs.Denied, "wrong_account", "%s does not belong to account %.80q", a.Thing, a.Said.Account)
	}
	return account, nil
}

// key returns the key of a document for a robot. Documents of an account are refused if it has no owner, "no_owner".
func (r Robots) key(ctx context.Context, a Asker, name Name) (Key, error) {
	if err := a.check(); err != nil {
		return Key{}, err
	}
	account := ""
	if name.OfAccount() {
		var err error
		if account, err = r.account(ctx, a); err != nil {
			return Key{}, err
		}
		if account == "" {
			return Key{}, errs.Coded(errs.Denied, "no_owner", "document %s belongs to the owner: %s has none", name, a.Thing)
		}
	}
	return NewKey(account, a.Thing, name.Of(a.Thing))
}

// Read answers each item in order. Without an owner a robot has no document of an account.
func (r Robots) Read(ctx context.Context, a Asker, items []Item) ([]ReadResult, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	if len(items) > MaxItems {
		return nil, errs.New(errs.Invalid, "read of %d documents: want at most %d in one request", len(items), MaxItems)
	}
	account := ""
	if slices.ContainsFunc(items, func(it Item) bool { return it.Name.OfAccount() }) {
		var err error
		if account, err = r.account(ctx, a); err != nil {
			return nil, err
		}
	}
	out := make([]ReadResult, len(items))
	var ask []Item
	var at []int
	for i, it := range items {
		out[i].Status = NotFound
		if account != "" || !it.Name.OfAccount() {
			it.Name = it.Name.Of(a.Thing)
			ask, at = append(ask, it), append(at, i)
		}
	}
	res, err := r.Docs.Read(ctx, account, a.Thing, ask)
	for i, one := range res {
		one.Doc.FmtVersion = min(one.Doc.FmtVersion, items[at[i]].Name.Format(a.OS))
		out[at[i]] = one
	}
	return out, err
}

// Write creates (version 0) or replaces a document. The version rule answers a repeated write, which changes nothing.
func (r Robots) Write(ctx context.Context, a Asker, name Name, d Doc) (WriteResult, error) {
	key, err := r.key(ctx, a, name)
	if err != nil {
		return WriteResult{}, err
	}
	res, err := r.Docs.Write(ctx, key, d, string(a.Thing))
	if err == nil && res.Status == Accepted && key.Account != "" && r.Changed != nil {
		r.Changed(ctx, key.Account, key.Name)
	}
	return res, err
}

// Delete removes one of the robot's own documents; an absent one succeeds with version 0.
func (r Robots) Delete(ctx context.Context, a Asker, name Name) (uint64, error) {
	key, err := r.key(ctx, a, name)
	if err != nil {
		return 0, err
	}
	if key.Account != "" {
		return 0, errs.Coded(errs.Denied, "account_document", "document %s belongs to the owner: %s may not delete it", name, a.Thing)
	}
	return r.Docs.Delete(ctx, key, string(a.Thing))
}

// Revision returns one accepted version; NotFound too for a deletion.
func (r Robots) Revision(ctx context.Context, a Asker, name Name, version uint64) (Revision, error) {
	key, err := r.key(ctx, a, name)
	if err != nil {
		return Revision{}, err
	}
	rev, err := r.Docs.Revision(ctx, key, version)
	if err == nil && rev.Deleted {
		return Revision{}, ErrNotFound
	}
	return rev, err
}
