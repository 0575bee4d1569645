package auth

import (
	"context"
	"errors"
	"testing"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

func TestRequireOwn(t *testing.T) {
	born, away := time.Unix(1e9, 0), errors.New("away")
	owns := func(_ context.Context, account string, id thing.ID) (time.Time, bool, error) {
		if id == "vic:broken" {
			return time.Time{}, false, away
		}
		return born, account == "ann" && id == "vic:hers", nil
	}
	of := func(id thing.ID) thing.ID { return id }
	ep := func(owns Owns) func(context.Context, any) (any, error) {
		return RequireOwn(owns, of, Staff...)(func(ctx context.Context, _ any) (any, error) {
			since, ok := OwnedSince(ctx)
			return since.Equal(born) && ok, nil
		})
	}
	for _, c := range []struct {
		name    string
		owns    Owns
		caller  Caller
		request any
		own     any // nil: an error
		kind    errs.Kind
	}{
		{"her own", owns, Caller{Role: Owner, Account: "ann"}, thing.ID("vic:hers"), true, 0},
		{"another's", owns, Caller{Role: Owner, Account: "ann"}, thing.ID("vic:his"), nil, errs.NotFound},
		{"another person", owns, Caller{Role: Owner, Account: "bob"}, thing.ID("vic:hers"), nil, errs.NotFound},
		{"no thing", owns, Caller{Role: Owner, Account: "ann"}, thing.ID(""), nil, errs.Denied},
		{"another request", owns, Caller{Role: Owner, Account: "ann"}, "vic:hers", nil, errs.Denied},
		{"nobody asks about owners", nil, Caller{Role: Owner, Account: "ann"}, thing.ID("vic:hers"), nil, errs.Denied},
		{"not known now", owns, Caller{Role: Owner, Account: "ann"}, thing.ID("vic:broken"), nil, errs.Internal},
		{"staff", owns, Caller{Role: Viewer, Account: "op"}, thing.ID("vic:his"), false, 0},
		{"a thing", owns, Caller{Role: Thing, Thing: "vic:hers", Account: "ann"}, thing.ID("vic:hers"), nil, errs.Denied},
		{"nobody", owns, Caller{Account: "ann"}, thing.ID("vic:hers"), nil, errs.Unauthenticated},
	} {
		got, err := ep(c.owns)(WithCaller(t.Context(), c.caller), c.request)
		if got != c.own || (err == nil) != (c.own != nil) || err != nil && errs.KindOf(err) != c.kind {
			t.Errorf("%s: %v, %v; want %v, kind %v", c.name, got, err, c.own, c.kind)
		}
	}
}
