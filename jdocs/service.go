package jdocs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// maxTries bounds how often Set begins again because others were first: more than that is a document fought over.
const maxTries = 16

// MaxHistory is the most revisions one request returns.
const MaxHistory = 1000

// Rules is the Service that decides. Safe for concurrent use.
type Rules struct{ store Store }

// New returns the rules over store.
func New(store Store) *Rules { return &Rules{store} }

// Write implements Service. The document's version is judged before its format, as the original server did.
func (r *Rules) Write(ctx context.Context, key Key, d Doc, by string) (WriteResult, error) {
	if err := d.Check(); err != nil {
		return WriteResult{}, fmt.Errorf("write %s: %w", key, err)
	}
	cur, err := r.store.Get(ctx, key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return WriteResult{}, fmt.Errorf("write %s: %w", key, err)
	}
	switch {
	case d.Version != cur.Version:
		return WriteResult{RejectedBadDocVersion, cur.Version}, nil
	case d.FmtVersion == 0 || d.FmtVersion < cur.FmtVersion || d.FmtVersion > maxFmt:
		// A lower one would drop what the newer format added (the original server's rule).
		return WriteResult{RejectedBadFmtVersion, cur.Version}, nil
	}
	v, err := r.store.Put(ctx, key, d, by)
	switch {
	case errors.Is(err, ErrStale):
		return WriteResult{RejectedBadDocVersion, v}, nil
	case err != nil:
		return WriteResult{}, fmt.Errorf("write %s: %w", key, err)
	}
	return WriteResult{Accepted, v}, nil
}

// maxFmt keeps format versions far from the end of any integer; formats count in ones.
const maxFmt = 1 << 31

// Read implements Service.
func (r *Rules) Read(ctx context.Context, account string, id thing.ID, items []Item) ([]ReadResult, error) {
	if len(items) > MaxItems {
		return nil, errs.New(errs.Invalid, "read of %d documents: at most %d in one request", len(items), MaxItems)
	}
	out := make([]ReadResult, len(items))
	for i, it := range items {
		key, err := NewKey(account, id, it.Name)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		cur, err := r.store.Get(ctx, key)
		switch {
		case errors.Is(err, ErrNotFound):
			out[i].Status = NotFound
			continue
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", key, err)
		}
		out[i] = ReadResult{Changed, cur.Doc}
		if it.MyVersion == cur.Version {
			out[i].Status, out[i].Doc.JSON = Unchanged, ""
		}
	}
	return out, nil
}

// Delete implements Service.
func (r *Rules) Delete(ctx context.Context, key Key, by string) (uint64, error) {
	v, err := r.store.Delete(ctx, key, by)
	if err != nil {
		return 0, fmt.Errorf("delete %s: %w", key, err)
	}
	return v, nil
}

// Set implements Service.
func (r *Rules) Set(ctx context.Context, key Key, fields map[string]json.RawMessage, by string) (Revision, error) {
	if len(fields) == 0 {
		return Revision{}, errs.New(errs.Invalid, "set %s: no field given", key)
	}
	for range maxTries {
		cur, err := r.store.Get(ctx, key)
		switch {
		case errors.Is(err, ErrNotFound):
			cur = Revision{Doc: Default(key.Name)}
		case err != nil:
			return Revision{}, fmt.Errorf("set %s: %w", key, err)
		}
		next, err := SetFields(key.Name, cur.JSON, fields)
		if err != nil {
			return Revision{}, fmt.Errorf("set %s: %w", key, err)
		}
		if cur.Version != 0 && Equal([]byte(next), []byte(cur.JSON)) {
			return cur, nil // nothing to change is not a change
		}
		d := Doc{Version: cur.Version, FmtVersion: max(cur.FmtVersion, key.Name.FmtVersion()), ClientMeta: cur.ClientMeta, JSON: next}
		if err := d.Check(); err != nil {
			return Revision{}, fmt.Errorf("set %s: %w", key, err)
		}
		v, err := r.store.Put(ctx, key, d, by)
		switch {
		case errors.Is(err, ErrStale):
			continue
		case err != nil:
			return Revision{}, fmt.Errorf("set %s: %w", key, err)
		}
		return r.store.Revision(ctx, key, v)
	}
	return Revision{}, errs.RetryLater(0, fmt.Sprintf("set %s: %d other writers were first; try again", key, maxTries), ErrStale)
}

// Get implements Service.
func (r *Rules) Get(ctx context.Context, key Key) (Revision, error) {
	rev, err := r.store.Get(ctx, key)
	if err != nil {
		return Revision{}, missing(key, err)
	}
	return rev, nil
}

// Revision implements Service.
func (r *Rules) Revision(ctx context.Context, key Key, version uint64) (Revision, error) {
	rev, err := r.store.Revision(ctx, key, version)
	if err != nil {
		return Revision{}, missing(key, err)
	}
	return rev, nil
}

// missing names the document that a store did not find.
func missing(key Key, err error) error {
	if errors.Is(err, ErrNotFound) {
		return errs.New(errs.NotFound, "%s: %w", key, err)
	}
	return fmt.Errorf("read %s: %w", key, err)
}

// History implements Service.
func (r *Rules) History(ctx context.Context, key Key, limit int) ([]Revision, error) {
	if limit < 1 || limit > MaxHistory {
		return nil, errs.New(errs.Invalid, "history of %s: limit %d: want 1 to %d", key, limit, MaxHistory)
	}
	revs, err := r.store.History(ctx, key, limit)
	if err != nil {
		return nil, fmt.Errorf("history of %s: %w", key, err)
	}
	return revs, nil
}

// List implements Service.
func (r *Rules) List(ctx context.Context, id thing.ID) ([]Listing, error) {
	ls, err := r.store.List(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("documents of %s: %w", id, err)
	}
	return ls, nil
}
