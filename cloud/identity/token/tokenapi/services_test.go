package tokenapi_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"kennel/cloud/identity/token"
	"kennel/cloud/identity/token/tokentest"
	"kennel/infra/api/tokenpb"
	"kennel/infra/logging"
	"kennel/infra/pg/pgtest"
)

// TestServices: the calls of our own services.
func TestServices(t *testing.T) {
	h := tokentest.New(t, pgtest.New(t))
	p := h.Start(t)
	ctx := t.Context()
	service := p.RobotWith(t, h.ServiceCA.Leaf(t, x509.Certificate{Subject: pkix.Name{CommonName: "chipper"}}))
	robot := p.Robot(t, rex)
	ok(t, "associate", robot.Associate(ctx, h.Sessions.Issue(anna)))
	list := func(r *tokentest.Robot, previous string) (page *tokenpb.TokensPage, err error) {
		err = r.Raw(ctx, nil, func(c tokenpb.TokenClient) error {
			resp, err := c.ListRevokedTokens(ctx, &tokenpb.ListRevokedTokensRequest{PreviousKey: previous})
			page = resp.GetData()
			return err
		})
		return page, err
	}
	revoke := func(r *tokentest.Robot, index, key string) (n uint32, err error) {
		err = r.Raw(ctx, nil, func(c tokenpb.TokenClient) error {
			resp, err := c.RevokeTokens(ctx, &tokenpb.RevokeTokensRequest{SearchByIndex: index, Key: key})
			n = resp.GetTokensRevoked()
			return err
		})
		return n, err
	}
	factory := func(r *tokentest.Robot, id string) error {
		return r.Raw(ctx, nil, func(c tokenpb.TokenClient) error {
			_, err := c.RevokeFactoryCertificate(ctx, &tokenpb.RevokeFactoryCertificateRequest{CertificateId: id})
			return err
		})
	}
	page, err := list(service, "")
	if err != nil || !page.Done || len(page.Tokens) != 0 {
		t.Errorf("nothing revoked: %v, %v", page, err)
	}
	keyless := *service
	keyless.AppKey = ""
	_, err = list(&keyless, "")
	want(t, "list without an app key", err, codes.Unauthenticated)
	_, err = list(service, "not an id")
	want(t, "list after nonsense", err, codes.InvalidArgument)

	for name, r := range map[string]*tokentest.Robot{"a robot": robot, "nobody": p.RobotWith(t), "a service without app key": &keyless} {
		_, err := revoke(r, "requestor_id", string(rex))
		want(t, name+" revokes", err, codes.Unauthenticated)
		want(t, name+" revokes a certificate", factory(r, "c1"), codes.Unauthenticated)
	}
	_, err = revoke(service, "colour", "x")
	want(t, "unknown index", err, codes.InvalidArgument)
	_, err = revoke(service, "requestor_id", "Rex")
	want(t, "no thing", err, codes.InvalidArgument)
	_, err = revoke(service, "user_id", "")
	want(t, "no user", err, codes.InvalidArgument)
	_, err = revoke(service, "token_id", "x")
	want(t, "no token", err, codes.NotFound)
	if n, err := revoke(service, "requestor_id", string(rex)); err != nil || n != 1 {
		t.Errorf("revoked %d, %v; want 1", n, err)
	}
	id := robot.Claims["token_id"].(string)
	if page, err = list(robot, ""); err != nil || !slices.Equal(page.Tokens, []string{id}) || !page.Done || page.LastKey != id {
		t.Errorf("page %v, %v", page, err)
	}
	if page, err = list(service, id); err != nil || len(page.Tokens) != 0 || !page.Done || page.LastKey != id {
		t.Errorf("page after the last %v, %v", page, err)
	}
	ok(t, "associate", robot.Associate(ctx, h.Sessions.Issue(anna)))
	if n, err := revoke(service, "token_id", robot.Claims["token_id"].(string)); err != nil || n != 1 {
		t.Errorf("revoked %d, %v; want 1", n, err)
	}
	ok(t, "associate", robot.Associate(ctx, h.Sessions.Issue(anna)))
	if n, err := revoke(service, "user_id", anna); err != nil || n != 1 {
		t.Errorf("revoked %d, %v; want 1", n, err)
	}
	h.Factory["c1"] = rex
	ok(t, "associate", robot.Associate(ctx, h.Sessions.Issue(anna)))
	want(t, "unknown certificate", factory(service, "c2"), codes.NotFound)
	ok(t, "revoke certificate", factory(service, "c1"))
	want(t, "refresh after that", robot.RefreshJWT(ctx), codes.PermissionDenied)

	// More than a page.
	for range 3 {
		for range 400 {
			if _, err := p.Service.ReassociatePrimaryUser(ctx, token.Peer{Thing: rex, UserSession: logging.Secret(h.Sessions.Issue(anna))}, token.ReassociateRequest{SkipClientToken: true}); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := revoke(service, "requestor_id", string(rex)); err != nil || n != 400 {
			t.Fatalf("revoked %d, %v; want 400", n, err)
		}
	}
	seen := map[string]bool{}
	for previous, pages := "", 0; ; pages++ {
		page, err := list(service, previous)
		if err != nil || pages > 5 {
			t.Fatalf("page %d: %v", pages, err)
		}
		for _, id := range page.Tokens {
			seen[id] = true
		}
		if previous = page.LastKey; page.Done {
			break
		}
	}
	if len(seen) != 1204 {
		t.Errorf("%d revoked tokens listed, want 1204", len(seen))
	}
}

// TestOffline: a robot that was off for months comes back with a token that expired long ago, and after more than a year does not.
func TestOffline(t *testing.T) {
	h := tokentest.New(t, pgtest.New(t))
	ctx := t.Context()
	clock := time.Now()
	early := h.Start(t, tokentest.WithClock(func() time.Time { return clock }))
	r := early.Robot(t, rex)
	ok(t, "associate", r.Associate(ctx, h.Sessions.Issue(anna)))
	at := func(d time.Duration) *tokentest.Process {
		p := h.Start(t, tokentest.WithClock(func() time.Time { return clock.Add(d) }))
		for range 20 { // the months in between
			ok(t, "rotate", p.Keys.Rotate(ctx))
		}
		return p
	}
	const day = 24 * time.Hour
	late := at(360 * day)
	r.Addr = late.Addr
	if _, err := late.Verifier.Verify(ctx, logging.Secret(r.Token)); err == nil {
		t.Error("a token of last year is in force")
	}
	old := r.Token
	ok(t, "prune", h.Store.Prune(ctx, time.Now().Add(300*day), time.Now())) // its row is forgotten by now
	ok(t, "refresh after 360 days", r.RefreshJWT(ctx))
	if _, err := late.Verifier.VerifyFor(ctx, logging.Secret(r.Token), rex); err != nil {
		t.Errorf("the refreshed token: %v", err)
	}
	r.Token, r.Addr = old, at(366*day).Addr
	want(t, "refresh after 366 days", r.RefreshJWT(ctx), codes.PermissionDenied)
	if last := h.Recorder.Last(); last.Code != "token_expired" {
		t.Errorf("recorded %+v", last)
	}
}

// TestNothingSecretIsLogged runs a life and searches the log and the record for every secret in it.
func TestNothingSecretIsLogged(t *testing.T) {
	h := tokentest.New(t, pgtest.New(t))
	p := h.Start(t)
	ctx := t.Context()
	r := p.Robot(t, rex)
	session := h.Sessions.Issue(anna)
	ok(t, "associate", r.Associate(ctx, session))
	secrets := []string{session, r.Token, r.ClientToken, strings.Split(r.Token, ".")[2]}
	want(t, "used session", r.Associate(ctx, session), codes.Unauthenticated)
	good := r.Token
	for i := range strings.Split(good, ".") {
		part := strings.Split(good, ".")
		part[i] = map[bool]string{true: "y", false: "x"}[part[i][0] == 'x'] + part[i][1:]
		r.Token = strings.Join(part, ".")
		want(t, fmt.Sprintf("part %d changed", i), r.RefreshJWT(ctx), codes.PermissionDenied)
	}
	r.Token = good
	r.AppKey = "a-wrong-app-key"
	want(t, "app key", r.Associate(ctx, h.Sessions.Issue(anna)), codes.Unauthenticated)
	secrets = append(secrets, r.AppKey, tokentest.AppKey)
	text := h.Log.String() + fmt.Sprintf("%+v", h.Recorder.Steps(rex))
	for _, s := range secrets {
		if strings.Contains(text, s) {
			t.Errorf("%.12s... is in the log or the record", s)
		}
	}
	if !strings.Contains(text, "session_used") {
		t.Error("the log says nothing at all")
	}
}

// TestTicketsCarryTheCertificate: a resumed TLS session proves the robot as the first one did.
func TestTicketsCarryTheCertificate(t *testing.T) {
	h := tokentest.New(t, pgtest.New(t))
	p := h.Start(t)
	r := p.Robot(t, rex)
	r.TLS.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	ok(t, "associate", r.Associate(context.WithoutCancel(t.Context()), h.Sessions.Issue(anna)))
	for range 3 {
		ok(t, "refresh", r.RefreshJWT(t.Context()))
	}
	conf := r.TLS.Clone()
	conf.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", r.Addr, conf)
	ok(t, "dial", err)
	defer conn.Close()
	if !conn.ConnectionState().DidResume {
		t.Error("nothing was resumed: this test shows nothing")
	}
}

// TestReleasedWhileItAssociates (issue 28.9): an owner who lets go of a robot between the steps of its association leaves it without an association, and its apps without access.
func TestReleasedWhileItAssociates(t *testing.T) {
	pool := pgtest.New(t)
	h := tokentest.New(t, pool)
	r := h.Start(t).Robot(t, rex)
	h.STS.Hook = func() { ok(t, "release", h.Owners.Disassociate(t.Context(), rex)) }
	want(t, "associate", r.AssociateWith(t.Context(), h.Sessions.Issue(anna), &tokenpb.AssociatePrimaryUserRequest{GenerateStsToken: true}), codes.InvalidArgument)
	var open int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM token_association WHERE ended_at IS NULL`).Scan(&open); err != nil || open != 0 || len(entries(t, h, rex)) != 0 {
		t.Errorf("%d associations, entries %v, %v", open, entries(t, h, rex), err)
	}
	h.STS.Hook = nil
	ok(t, "associate", r.AssociateWith(t.Context(), h.Sessions.Issue(anna), &tokenpb.AssociatePrimaryUserRequest{GenerateStsToken: true}))
}
