package owner_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/owner/ownerpg"
	"kennel/cloud/identity/token"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocspg"
)

// The questions of other domains to this one.
var (
	_ token.Owners = (*owner.Service)(nil)
	_ auth.Owns    = owner.Whose{}.Owns
)

const (
	rex = thing.ID("vic:00e20100")
	ada = thing.ID("vic:00e20101")
)

// house is a database with processes of the cloud on it.
type house struct {
	t      testing.TB
	dsn    string
	secret []byte
	emails map[string]string // of accounts
	langs  map[string]string
	mail   *post // nil: there are no letters

	mu    sync.Mutex
	steps []owner.Step
	told  []owner.Tenure
	deaf  error // of every Ended, while it is set
}

func newHouse(t testing.TB) *house {
	return &house{t: t, dsn: pgtest.DSN(t), secret: bytes.Repeat([]byte{7}, 32), emails: map[string]string{}}
}

// statements counts what is asked of the database.
type statements struct {
	mu sync.Mutex
	n  []string
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n = append(s.n, d.SQL)
	return ctx
}

func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *statements) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.n = nil }()
	return s.n
}

// process is one kenneld as far as ownership goes.
type process struct {
	*owner.Service
	pool  *pgxpool.Pool
	store *ownerpg.Store
	docs  jdocs.Service
	asked *statements
}

func (h *house) process() process {
	h.t.Helper()
	asked := &statements{}
	pool, err := pg.Open(h.t.Context(), pg.Config{DSN: h.dsn, AppName: "test", Tracer: asked})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(pool.Close)
	store, docs := ownerpg.New(pool), jdocs.New(jdocspg.New(pool))
	cfg := owner.Config{
		Store: store, Codes: store, Transfers: store, Remains: store, Secret: h.secret, ByThing: free{}, ByAddr: free{}, Docs: jdocspg.New(pool), Log: slog.New(slog.DiscardHandler),
		Confirm: func(_ context.Context, _ string, by owner.Proof) error {
			if by.Password != "right" {
				return errs.Coded(errs.Unauthenticated, "wrong_password", "wrong")
			}
			return nil
		},
		Record: func(_ context.Context, s owner.Step) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.steps = append(h.steps, s)
		},
		Ended: func(_ context.Context, t owner.Tenure) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.deaf == nil {
				h.told = append(h.told, t)
			}
			return h.deaf
		},
		Email: func(_ context.Context, account string) (string, error) {
			if e, ok := h.emails[account]; ok {
				return e, nil
			}
			return "", errs.New(errs.NotFound, "no such account")
		},
		ForgotURL: "https://kennel.example/account/forgot",
	}
	if h.mail != nil {
		cfg.Mail, cfg.Reader = h.mail, func(ctx context.Context, account string) (string, string, error) {
			email, err := cfg.Email(ctx, account)
			return email, h.langs[account], err
		}
	}
	svc, err := owner.New(cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	return process{svc, pool, store, docs, asked}
}

type free struct{}

func (free) Allow(string) time.Duration { return 0 }

func (h *house) setDeaf(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deaf = err
}

// codes returns the step and code of what the doctor heard of a thing, and forgets it.
func (h *house) codes(id thing.ID) (out []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.steps {
		if s.Thing == id {
			out = append(out, strings.TrimSpace(s.Step+" "+s.Code))
		}
	}
	h.steps = nil
	return out
}

func (p process) show(t testing.TB, id thing.ID, key string) string {
	t.Helper()
	code, expires, err := p.OfferCode(t.Context(), id, key)
	if err != nil || expires <= 0 || expires > owner.CodeLife {
		t.Fatalf("code for %s: %v, good for %v", id, err, expires)
	}
	return code
}

func (p process) claim(t testing.TB, account string, id thing.ID, code string) error {
	_, err := p.Claim(t.Context(), account, "192.0.2.1", id, code)
	return err
}

// has fails unless account owns id; "" means no owner.
func (p process) has(t testing.TB, account string, id thing.ID) {
	t.Helper()
	got, err := p.Owner(t.Context(), id)
	if account == "" {
		if errs.KindOf(err) != errs.NotFound {
			t.Errorf("%s is owned by %q, %v; want no owner", id, got, err)
		}
		return
	}
	if err != nil || got != account {
		t.Errorf("%s is owned by %q, %v; want %s", id, got, err, account)
	}
}

func is(t testing.TB, what string, err error, kind errs.Kind, code string) {
	t.Helper()
	if err == nil || errs.KindOf(err) != kind || errs.CodeOf(err) != code {
		t.Errorf("%s: %v (%s); want %v %s", what, err, errs.CodeOf(err), kind, code)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wrong returns another code with the same first half.
func wrong(code string, n int) string {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	out := code[:5] + string([]byte{digits[n>>10&31], digits[n>>5&31], digits[n&31], digits[n>>15&31]})
	if out == code {
		return wrong(code, n+1000)
	}
	return out
}
