package liveviewapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"kennel/cloud/fleet/liveview"
	"kennel/infra/api/live"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/thing"
)

const rex = thing.ID("vic:00e20100")

// one is a Store of a robot that has shown itself.
type one struct{ err error }

func (o one) Ask(context.Context, thing.ID, time.Duration) (bool, error) { return true, o.err }
func (o one) Put(context.Context, thing.ID, live.Frame) error            { return o.err }
func (o one) Forget(context.Context, time.Duration) error                { return o.err }
func (o one) Newest(context.Context, thing.ID) (liveview.Frame, error) {
	return liveview.Frame{At: time.Unix(1795000000, 0), Tree: &live.Tree{Body: "vector"}}, o.err
}

func TestLook(t *testing.T) {
	told := 0
	store, since := &one{}, time.Time{}
	svc := liveview.New(store, func(context.Context, thing.ID, string, []byte) error { told++; return nil }, nil, slog.New(slog.DiscardHandler))
	mux := http.NewServeMux()
	Operations(svc, func(_ context.Context, id thing.ID) error {
		if id != rex {
			return errs.Coded(errs.NotFound, "no_thing", "thing %s is not known", id)
		}
		return nil
	}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler), Owns: func(_ context.Context, account string, id thing.ID) (time.Time, bool, error) {
		return since, account == "hers" && id == rex, nil
	}})
	get := func(role auth.Role, account, path string) (int, liveview.Robot) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		if role != "" {
			r = r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: role, Account: account}))
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		var out liveview.Robot
		_ = json.Unmarshal(w.Body.Bytes(), &out) // the code says whether there is one
		return w.Code, out
	}
	const path = "/v1/things/vic:00e20100/live"
	for _, tc := range []struct {
		role          auth.Role
		account, path string
		code          int
	}{
		{auth.Viewer, "op", path, 200}, {auth.Owner, "hers", path, 200},
		{auth.Owner, "his", path, 404}, {"", "", path, 401}, {auth.Thing, "", path, 403},
		{auth.Admin, "op", "/v1/things/vic:00e20101/live", 404}, {auth.Admin, "op", "/v1/things/rex/live", 400},
	} {
		before := told
		code, r := get(tc.role, tc.account, tc.path)
		if code != tc.code || (code == 200) != (r.Body == "vector" && r.Thing == rex) || (code == 200) != (told > before) {
			t.Errorf("%s %s as %q: %d %+v, told %d times; want %d", tc.path, tc.account, tc.role, code, r, told-before, tc.code)
		}
	}
	since = time.Unix(1795000000, 1) // she got the robot right after it said that (issue 28.6)
	if code, r := get(auth.Owner, "hers", path); code != 200 || r.Received != nil || r.Body != "" {
		t.Errorf("the former owner's frame: %d %+v", code, r)
	}
	store.err = errors.New("no database")
	if code, _ := get(auth.Admin, "op", path); code != 500 {
		t.Errorf("without a database: %d", code)
	}
}
