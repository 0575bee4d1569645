package jdocs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// Write implements Service. The document's version is judged before its format, as the original server did. A format that is older than the
// stored one is refused where it would drop what the newer one added; a robot of an older software whose format we know is taken, and what
// its format lacks stays in the document (peer facts, section 4: settings that revert).
func (r *Rules) Write(ctx context.Context, key Key, d Doc, by string) (WriteResult, error) {
	if err := d.Check(); err != nil {
		return WriteResult{}, fmt.Errorf("write %s: %w", key, err)
	}
	put := func(newest uint64) (WriteResult, Revision, error) {
		v, cur, err := r.store.Put(ctx, key, d, newest, by)
		switch {
		case err == nil:
			return WriteResult{Accepted, v}, cur, nil
		case errors.Is(err, ErrStale):
			return WriteResult{RejectedBadDocVersion, cur.Version}, cur, nil
		case errors.Is(err, ErrFormat):
			return WriteResult{RejectedBadFmtVersion, cur.Version}, cur, nil
		}
		return WriteResult{}, cur, fmt.Errorf("write %s: %w", key, err)
	}
	if d.FmtVersion == 0 || d.FmtVersion > maxFmt {
		cur, err := r.store.Get(ctx, key)
		switch {
		case err != nil && !errors.Is(err, ErrNotFound):
			return WriteResult{}, fmt.Errorf("write %s: %w", key, err)
		case d.Version != cur.Version:
			return WriteResult{RejectedBadDocVersion, cur.Version}, nil
		}
		return WriteResult{RejectedBadFmtVersion, cur.Version}, nil
	}
	res, cur, err := put(d.FmtVersion)
	if err != nil || res.Status != RejectedBadFmtVersion || !keepAdded(&d, cur.Doc, schemaOf(key.Name)) {
		return res, err
	}
	res, _, err = put(cur.FmtVersion)
	return res, err
}

// keepAdded adds to d, of an older format, what newer formats keep in the stored document. It reports whether that can be done.
func keepAdded(d *Doc, stored Doc, s Schema) bool {
	known := func(v uint64) bool {
		return slices.ContainsFunc(s.Formats, func(f Format) bool { return f.Version == v })
	}
	doc, ok := object(json.RawMessage(d.JSON))
	was, was1 := object(json.RawMessage(stored.JSON))
	if !ok || !was1 || !known(d.FmtVersion) || !known(stored.FmtVersion) {
		return false
	}
	for _, f := range s.added(d.FmtVersion) {
		if v, has := was[f]; has && doc[f] == nil {
			doc[f] = v
		}
	}
	d.JSON = string(encode(doc))
	return d.Check() == nil
}

// maxFmt keeps format versions far from the end of any integer; formats count in ones.
const maxFmt = 1 << 31

// Read implements Service.
func (r *Rules) Read(ctx context.Context, account string, id thing.ID, items []Item) ([]ReadResult, error) {
	if len(items) > MaxItems {
		return nil, errs.New(errs.Invalid, "read of %d documents: want at most %d in one request", len(items), MaxItems)
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
		return Revision{}, errs.New(errs.Invalid, "set %s: want at least one field", key)
	}
	return r.change(ctx, "set", key, by, func(cur Doc) (Doc, error) {
		schema := schemaOf(key.Name)
		for f := range fields {
			if top, _, _ := strings.Cut(f, "."); slices.Contains(schema.added(cur.FmtVersion), top) {
				return cur, errs.Coded(errs.Conflict, "old_format", "%s stores %s in format %d, which lacks %s: update the robot's software", key.Thing, key.Name, cur.FmtVersion, top)
			}
		}
		text, err := SetFields(key.Name, cur.JSON, fields)
		cur.JSON = text
		return cur, err
	})
}

// Restore implements Service.
func (r *Rules) Restore(ctx context.Context, key Key, old Doc, by string) (Revision, error) {
	return r.change(ctx, "restore", key, by, func(cur Doc) (Doc, error) {
		cur.JSON, cur.ClientMeta, cur.FmtVersion = old.JSON, old.ClientMeta, max(old.FmtVersion, cur.FmtVersion)
		return cur, nil
	})
}

// change makes a new version of a document out of the current one, again while other writers are first. One that does not exist yet begins
// with its defaults. Nothing to change is not a change.
func (r *Rules) change(ctx context.Context, what string, key Key, by string, next func(cur Doc) (Doc, error)) (Revision, error) {
	for range maxTries {
		cur, err := r.store.Get(ctx, key)
		switch {
		case errors.Is(err, ErrNotFound):
			cur = Revision{Doc: Default(key.Name)}
		case err != nil:
			return Revision{}, fmt.Errorf("%s %s: %w", what, key, err)
		}
		d, err := next(cur.Doc)
		if err == nil && cur.Version != 0 && Equal([]byte(d.JSON), []byte(cur.JSON)) {
			return cur, nil
		}
		if err == nil {
			err = d.Check()
		}
		if err != nil {
			return Revision{}, fmt.Errorf("%s %s: %w", what, key, err)
		}
		v, _, err := r.store.Put(ctx, key, d, d.FmtVersion, by)
		switch {
		case errors.Is(err, ErrStale), errors.Is(err, ErrFormat):
			continue
		case err != nil:
			return Revision{}, fmt.Errorf("%s %s: %w", what, key, err)
		}
		return r.store.Revision(ctx, key, v)
	}
	return Revision{}, errs.RetryLater(0, fmt.Sprintf("%s %s: lost to other writers %d times; try again", what, key, maxTries), ErrStale)
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
