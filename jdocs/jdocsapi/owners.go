package jdocsapi

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
	"kennel/jdocs/jdocswire"
)

// byOwner is the author of a change by a robot's owner. It is not a name or an id, because the history outlives the person's account.
const byOwner = "owner"

// The documents of a robot that its owner may read, and those that the owner may change. vic.AppTokens belongs to the token service.
var (
	ownersRead   = []jdocs.Name{jdocs.RobotSettings, jdocs.RobotLifetimeStats, jdocs.AccountSettings, jdocs.UserEntitlements}
	ownersChange = []jdocs.Name{jdocs.RobotSettings, jdocs.AccountSettings, jdocs.UserEntitlements}
)

// WithOwns lets the owner of a robot read its settings and statistics and change its settings, and their own vic.AccountSettings and
// vic.UserEntitlements through any robot of theirs. Without it owners are refused.
func WithOwns(owns auth.Owns) Option { return func(o *options) { o.owns = owns } }

// WithOwnerOf lets robots read and write vic.AccountSettings and vic.UserEntitlements of their owner, which owner returns (NotFound: none).
// Without it robots reach no document of an account.
func WithOwnerOf(owner func(ctx context.Context, id thing.ID) (account string, err error)) Option {
	return func(o *options) { o.ownerOf = owner }
}

// WithAccountChanged has changed told of every accepted change of a document of an account, from a robot or from its owner.
func WithAccountChanged(changed func(ctx context.Context, account string, name jdocs.Name)) Option {
	return func(o *options) { o.accountChanged = changed }
}

// key returns the key of a document for the caller: operators reach all of the robot's documents, its owner those of the two lists.
func (o options) key(ctx context.Context, id thing.ID, name jdocs.Name, change bool) (jdocs.Key, error) {
	if _, own := auth.OwnedSince(ctx); !own {
		return jdocs.NewKey("", id, name)
	}
	switch {
	case !slices.Contains(ownersRead, name):
		return jdocs.Key{}, jdocs.ErrNotFound
	case change && !slices.Contains(ownersChange, name):
		return jdocs.Key{}, errs.Coded(errs.Denied, "read_only", "document %s is the robot's: it cannot be changed", name)
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
func accountDocs(ctx context.Context, svc jdocs.Service) (out []jdocs.Listing, err error) {
	for _, name := range ownersRead {
		if !name.OfAccount() {
			continue
		}
		key, err := jdocs.NewKey(auth.CallerFrom(ctx).Account, "", name)
		if err != nil {
			return nil, err
		}
		rev, err := svc.Get(ctx, key)
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

// accountFields checks fields of vic.AccountSettings and returns them as stored (VEC-DOC-05): names in lower case, and the same name in
// another spelling removed.
func accountFields(ctx context.Context, svc jdocs.Service, key jdocs.Key, fields map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		v, small := fields[name], strings.ToLower(name)
		if _, twice := out[small]; twice {
			return nil, errs.New(errs.Invalid, "field %.80q: given twice in different case", name)
		}
		switch small {
		case "data_collection":
			if s := string(v); s != "true" && s != "false" {
				return nil, errs.New(errs.Invalid, "field %.80q: want true or false", name)
			}
		case "app_locale":
			var s string
			if json.Unmarshal(v, &s) != nil || s == "" || len(s) > 35 {
				return nil, errs.New(errs.Invalid, "field %.80q: want an IETF language tag such as en-US", name)
			}
		}
		out[small] = v
	}
	cur, err := svc.Get(ctx, key)
	if errors.Is(err, jdocs.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	var was map[string]json.RawMessage
	if json.Unmarshal([]byte(cur.JSON), &was) != nil {
		return out, nil // Set reports the error
	}
	for name := range was {
		if _, given := out[strings.ToLower(name)]; given && name != strings.ToLower(name) {
			out[name] = json.RawMessage("null")
		}
	}
	return out, nil
}

// accountOf returns the owner of a robot that asks for a document of an account; "" if it has none. Denied if it names another
// account.
func (o options) accountOf(ctx context.Context, id thing.ID, who jdocswire.Who) (string, error) {
	account, err := o.ownerOf(ctx, id)
	if err != nil && errs.KindOf(err) != errs.NotFound {
		return "", err
	}
	for _, said := range []string{who.Account, who.UserID} {
		if said != "" && said != account {
			return "", errs.Coded(errs.Denied, "wrong_account", "%s does not belong to account %.80q", id, said)
		}
	}
	if err != nil {
		return "", nil
	}
	return account, nil
}

// robotKey returns the key of a document for a robot: its own, or its owner's where WithOwnerOf lets it. Without an owner documents of an
// account are refused, "no_owner".
func (o options) robotKey(ctx context.Context, id thing.ID, who jdocswire.Who, name jdocs.Name) (jdocs.Key, error) {
	if err := who.Check(id); err != nil {
		return jdocs.Key{}, err
	}
	account := ""
	if name.OfAccount() && o.ownerOf != nil {
		var err error
		if account, err = o.accountOf(ctx, id, who); err != nil {
			return jdocs.Key{}, err
		}
		if account == "" {
			return jdocs.Key{}, errs.Coded(errs.Denied, "no_owner", "document %s belongs to the owner: %s has none", name, id)
		}
	}
	return jdocs.NewKey(account, id, name)
}
