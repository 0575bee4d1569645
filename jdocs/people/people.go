// Package people lets people read and change documents of robots and of their own, whatever page or program they use.
package people

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// Documents are those of a robot, for the caller in the context (auth.CallerFrom). All operators may read; changing needs a
// role that may change a robot's documents. The owner of a robot reads its settings and statistics, changes its settings, and reaches their
// own vic.AccountSettings and vic.UserEntitlements through any robot of theirs. Safe for concurrent use.
type Documents struct {
	Docs jdocs.Service
	// Owns tells owners from others; nil: owners are refused.
	Owns auth.Owns
	// Exists returns NotFound for an unknown thing; nil: any well-formed id is taken.
	Exists func(ctx context.Context, id thing.ID) error
	// Changed is told of every accepted change of a document of an account. May be nil.
	Changed func(ctx context.Context, account string, name jdocs.Name)
}

// byOwner is the author of a change by a robot's owner. It is not a name or an id, because the history outlives the person's account.
const byOwner = "owner"

// ownersDocs are the documents of a robot that its owner may read, beside its settings. vic.AppTokens belongs to the token service.
var ownersDocs = []jdocs.Name{jdocs.RobotLifetimeStats, jdocs.AccountSettings, jdocs.UserEntitlements}

func ownerReads(n jdocs.Name) bool { return n.IsSettings() || slices.Contains(ownersDocs, n) }

func ownerChanges(n jdocs.Name) bool { return ownerReads(n) && n != jdocs.RobotLifetimeStats }

// List returns the documents that the caller may see, without their text.
func (p *Documents) List(ctx context.Context, id thing.ID) ([]jdocs.Listing, error) {
	ctx, err := p.enter(ctx, id, auth.Staff)
	if err != nil {
		return nil, err
	}
	ls, err := p.Docs.List(ctx, id)
	if err != nil {
		return nil, err
	}
	if _, own := auth.OwnedSince(ctx); own {
		ls = slices.DeleteFunc(ls, func(l jdocs.Listing) bool { return !ownerReads(l.Name) })
		more, err := accountDocs(ctx, p.Docs)
		if err != nil {
			return nil, err
		}
		ls = append(ls, more...)
	}
	for i := range ls {
		ls[i].By = seen(ctx, ls[i].By)
	}
	return ls, nil
}

// Get returns a document as the caller may see it.
func (p *Documents) Get(ctx context.Context, id thing.ID, name jdocs.Name) (jdocs.Revision, error) {
	ctx, key, err := p.reach(ctx, id, name, false)
	if err != nil {
		return jdocs.Revision{}, err
	}
	rev, err := p.Docs.Get(ctx, key)
	rev.By = seen(ctx, rev.By)
	return rev, err
}

// Set changes named fields. It refuses names that a person has probably mistyped.
func (p *Documents) Set(ctx context.Context, id thing.ID, name jdocs.Name, fields map[string]json.RawMessage) (jdocs.Revision, error) {
	return p.set(ctx, id, name, fields, false)
}

// Force is Set that also takes fields and documents that no robot is known to read.
func (p *Documents) Force(ctx context.Context, id thing.ID, name jdocs.Name, fields map[string]json.RawMessage) (jdocs.Revision, error) {
	return p.set(ctx, id, name, fields, true)
}

func (p *Documents) set(ctx context.Context, id thing.ID, name jdocs.Name, fields map[string]json.RawMessage, force bool) (jdocs.Revision, error) {
	ctx, key, err := p.reach(ctx, id, name, true)
	if err == nil && key.Name == jdocs.AccountSettings {
		fields, err = accountFields(ctx, p.Docs, key, fields)
	}
	if err == nil && !force && key.Account == "" { // accountFields has checked an account's documents
		err = p.checkNames(ctx, key, fields)
	}
	if err != nil {
		return jdocs.Revision{}, err
	}
	rev, err := p.Docs.Set(ctx, key, fields, author(ctx))
	p.tell(ctx, key, err)
	return rev, err
}

// tell passes on that a document of an account was changed.
func (p *Documents) tell(ctx context.Context, key jdocs.Key, err error) {
	if err == nil && key.Account != "" && p.Changed != nil {
		p.Changed(ctx, key.Account, key.Name)
	}
}

// History returns the newest accepted versions that the caller may see, newest first, limit 1 to 1000.
func (p *Documents) History(ctx context.Context, id thing.ID, name jdocs.Name, limit int) ([]jdocs.Revision, error) {
	ctx, key, err := p.reach(ctx, id, name, false)
	if err != nil {
		return nil, err
	}
	revs, err := p.Docs.History(ctx, key, limit)
	revs = slices.DeleteFunc(revs, func(r jdocs.Revision) bool { return r.At.Before(begin(ctx, key)) })
	for i := range revs {
		revs[i].By = seen(ctx, revs[i].By)
	}
	return revs, err
}

// Difference is a field that differs between two versions; nil: it is not there.
type Difference struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// Diff returns the fields that differ between two versions, by name. Versions that the caller may not see are not found.
func (p *Documents) Diff(ctx context.Context, id thing.ID, name jdocs.Name, from, to uint64) ([]Difference, error) {
	ctx, key, err := p.reach(ctx, id, name, false)
	if err != nil {
		return nil, err
	}
	before, err := p.revision(ctx, key, from)
	if err != nil {
		return nil, err
	}
	after, err := p.revision(ctx, key, to)
	return differences(before.JSON, after.JSON), err
}

// revision returns a version that the caller may see.
func (p *Documents) revision(ctx context.Context, key jdocs.Key, version uint64) (jdocs.Revision, error) {
	rev, err := p.Docs.Revision(ctx, key, version)
	if err == nil && rev.At.Before(begin(ctx, key)) {
		return jdocs.Revision{}, errs.New(errs.NotFound, "%s: %w", key, jdocs.ErrNotFound)
	}
	return rev, err
}

// Restore makes an earlier version the current one, as a new version. A deletion cannot be restored, but what was before it. The apps of
// vic.AppTokens stay as they are: one that was put out must not come back by this door.
func (p *Documents) Restore(ctx context.Context, id thing.ID, name jdocs.Name, version uint64) (jdocs.Revision, error) {
	ctx, key, err := p.reach(ctx, id, name, true)
	if err != nil {
		return jdocs.Revision{}, err
	}
	if name == jdocs.AppTokens {
		return jdocs.Revision{}, errs.Coded(errs.Denied, "read_only", "document %s lists the apps that may talk to the robot: change it with kennelctl robots apps", name)
	}
	old, err := p.revision(ctx, key, version)
	if err != nil {
		return jdocs.Revision{}, err
	}
	if old.Deleted {
		return jdocs.Revision{}, errs.New(errs.Invalid, "version %d of %s is a deletion: want the version before it", version, key)
	}
	rev, err := p.Docs.Restore(ctx, key, old.Doc, author(ctx))
	p.tell(ctx, key, err)
	return rev, err
}

// Differing returns, in order, the names of the fields that changed since a version: the changes that a robot with that version still
// lacks. If the version is no longer stored it returns all fields. It does not return the former values: they may be another owner's.
func (p *Documents) Differing(ctx context.Context, id thing.ID, name jdocs.Name, version uint64) ([]string, error) {
	ctx, key, err := p.reach(ctx, id, name, false)
	if err != nil {
		return nil, err
	}
	cur, err := p.Docs.Get(ctx, key)
	if err != nil || cur.Version == version {
		return nil, err
	}
	old, err := p.Docs.Revision(ctx, key, version)
	if err != nil && !errors.Is(err, jdocs.ErrNotFound) {
		return nil, err
	}
	out := []string{}
	for _, d := range differences(old.JSON, cur.JSON) {
		out = append(out, d.Field)
	}
	return out, nil
}

// checkNames refuses names that a person has probably mistyped.
func (p *Documents) checkNames(ctx context.Context, key jdocs.Key, fields map[string]json.RawMessage) error {
	cur, err := p.Docs.Get(ctx, key)
	written := err == nil
	if errors.Is(err, jdocs.ErrNotFound) {
		cur.Doc, err = jdocs.Default(key.Name), nil
	}
	if err != nil {
		return err
	}
	if !written {
		if err := jdocs.CheckSettings(key); err != nil {
			return err
		}
	}
	return jdocs.CheckNames(key.Name, cur.JSON, written, fields)
}

// enter returns the context that says whether the caller is the robot's owner, or an error if the caller may not see it.
func (p *Documents) enter(ctx context.Context, id thing.ID, roles []auth.Role) (context.Context, error) {
	ctx, err := auth.Own(ctx, p.Owns, id, roles...)
	if err == nil && p.Exists != nil {
		err = p.Exists(ctx, id)
	}
	return ctx, err
}

// reach returns the key of a document that the caller may reach: operators reach all of the robot's documents, its owner those of the two
// lists.
func (p *Documents) reach(ctx context.Context, id thing.ID, name jdocs.Name, change bool) (context.Context, jdocs.Key, error) {
	roles := auth.Staff
	if change {
		roles = auth.Changers
	}
	ctx, err := p.enter(ctx, id, roles)
	if err != nil {
		return ctx, jdocs.Key{}, err
	}
	key, err := p.key(ctx, id, name.Of(id), change)
	return ctx, key, err
}

func (p *Documents) key(ctx context.Context, id thing.ID, name jdocs.Name, change bool) (jdocs.Key, error) {
	if _, own := auth.OwnedSince(ctx); !own {
		return jdocs.NewKey("", id, name)
	}
	switch {
	case !ownerReads(name):
		return jdocs.Key{}, jdocs.ErrNotFound
	case change && !ownerChanges(name):
		return jdocs.Key{}, errs.Coded(errs.Denied, "read_only", "document %s belongs to the robot and cannot be changed", name)
	}
	return jdocs.NewKey(auth.CallerFrom(ctx).Account, id, name)
}

// author returns the author of this change for the history.
func author(ctx context.Context) string {
	if _, own := auth.OwnedSince(ctx); own {
		return byOwner
	}
	return auth.CallerFrom(ctx).Subject()
}

// seen returns by as the caller may see it: an owner is not told which operator it was.
func seen(ctx context.Context, by string) string {
	if _, own := auth.OwnedSince(ctx); !own || by == byOwner {
		return by
	}
	if _, err := thing.Parse(by); err == nil {
		return by
	}
	return "operator"
}

// begin returns the time from which the caller may see a document's history: an owner must not see it from before the robot was theirs.
func begin(ctx context.Context, key jdocs.Key) time.Time {
	if since, own := auth.OwnedSince(ctx); own && key.Account == "" {
		return since
	}
	return time.Time{}
}

// accountDocs returns the listing of the caller's own documents.
func accountDocs(ctx context.Context, docs jdocs.Service) (out []jdocs.Listing, err error) {
	for _, name := range ownersDocs {
		if !name.OfAccount() {
			continue
		}
		key, err := jdocs.NewKey(auth.CallerFrom(ctx).Account, "", name)
		if err != nil {
			return nil, err
		}
		rev, err := docs.Get(ctx, key)
		if errors.Is(err, jdocs.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, jdocs.Listing{Name: name, Version: rev.Version, FmtVersion: rev.FmtVersion, By: rev.By, At: rev.At})
	}
	return out, nil
}

// accountFields returns fields of vic.AccountSettings as they are stored (VEC-DOC-05): names in lower case, and the same name in another
// spelling removed.
func accountFields(ctx context.Context, docs jdocs.Service, key jdocs.Key, fields map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		v, small := fields[name], strings.ToLower(name)
		if _, twice := out[small]; twice {
			return nil, errs.New(errs.Invalid, "field %.80q: given twice in different case", name)
		}
		out[small] = v
	}
	cur, err := docs.Get(ctx, key)
	if errors.Is(err, jdocs.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	var was map[string]json.RawMessage
	_ = json.Unmarshal([]byte(cur.JSON), &was) // Set reports the error
	for name := range was {
		if _, given := out[strings.ToLower(name)]; given && name != strings.ToLower(name) {
			out[name] = json.RawMessage("null")
		}
	}
	return out, nil
}

// differences compares two objects field by field. A value that is not an object has no fields, so all fields of the other differ.
func differences(a, b string) []Difference {
	var was, is map[string]json.RawMessage
	_ = json.Unmarshal([]byte(a), &was) // see above
	_ = json.Unmarshal([]byte(b), &is)
	out := []Difference{}
	for name, v := range is {
		if old, ok := was[name]; !ok || !jdocs.Equal(old, v) {
			out = append(out, Difference{name, old, v})
		}
	}
	for name, old := range was {
		if _, ok := is[name]; !ok {
			out = append(out, Difference{Field: name, Before: old})
		}
	}
	slices.SortFunc(out, func(a, b Difference) int { return strings.Compare(a.Field, b.Field) })
	return out
}
