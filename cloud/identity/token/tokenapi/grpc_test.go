package tokenapi_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/cloud/identity/token"
	"kennel/cloud/identity/token/tokentest"
	"kennel/infra/api/tokenpb"
	"kennel/infra/errs"
	"kennel/infra/kit/kitgrpc"
	"kennel/infra/logging"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	rex, bo    = thing.ID("vic:00e20100"), thing.ID("vic:00e20101")
	anna, bert = "6b1f8a52-5c8e-4a39-9d5e-0d7c1f2a3b4c", "0e6b7a11-2222-4333-8444-555566667777"
)

// entries returns vic.AppTokens as a gateway reads it.
func entries(t *testing.T, h *tokentest.House, id thing.ID) []map[string]string {
	t.Helper()
	key, err := jdocs.NewKey("", id, jdocs.AppTokens)
	if err != nil {
		t.Fatal(err)
	}
	rev, err := h.Docs.Get(t.Context(), key)
	if errs.KindOf(errors.Join(err, errs.New(errs.Internal, ""))) == errs.NotFound {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Tokens []map[string]any `json:"client_tokens"`
	}
	if err := json.Unmarshal([]byte(rev.JSON), &doc); err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, e := range doc.Tokens {
		texts := map[string]string{}
		for k, v := range e {
			texts[k], _ = v.(string) // a list of rights is none of the original's
		}
		out = append(out, texts)
	}
	return out
}

// opens reports whether a bearer opens the gateway, by the original's own rule (VEC-AUTH-07).
func opens(t *testing.T, h *tokentest.House, id thing.ID, bearer string) bool {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(bearer)
	if err != nil || len(raw) != 16 {
		t.Errorf("client token %d bytes, %v; want 16 in base64", len(raw), err)
		return false
	}
	for _, e := range entries(t, h, id) {
		hash, err := base64.StdEncoding.DecodeString(e["hash"])
		if err != nil || len(hash) != 48 {
			t.Errorf("hash of %d bytes, %v; want 48", len(hash), err)
			continue
		}
		if sum := sha256.Sum256(append(slices.Clone(raw), hash[32:]...)); string(sum[:]) == string(hash[:32]) {
			return true
		}
	}
	return false
}

func want(t *testing.T, what string, err error, code codes.Code) {
	t.Helper()
	var dead tokentest.Fatal
	if errors.As(err, &dead) {
		t.Fatalf("%s: %v", what, err)
	}
	if got := status.Code(err); got != code {
		t.Errorf("%s: %v (%v), want %v", what, got, err, code)
	}
}

func ok(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// TestOriginalRobot is issue 4, "what must hold" 1: the sequence of an original robot, over mutual TLS, with its metadata and bodies.
func TestOriginalRobot(t *testing.T) {
	h := tokentest.New(t, pgtest.New(t))
	p := h.Start(t)
	ctx := t.Context()
	r := p.Robot(t, rex)
	r.Cert = tokentest.GatewayCert(t, "Vector-A1B2")

	ok(t, "associate", r.Associate(ctx, h.Sessions.Issue(anna)))
	if owner, err := h.Owners.Owner(ctx, rex); err != nil || owner != anna {
		t.Errorf("owner %q, %v", owner, err)
	}
	if r.Claims["requestor_id"] != string(rex) || r.Claims["user_id"] != anna || r.Claims["token_type"] != "user+robot" {
		t.Errorf("claims %v", r.Claims)
	}
	if permissions, has := r.Claims["permissions"]; !has || permissions != nil {
		t.Errorf("permissions %v, %v; want null", permissions, has)
	}
	issued, _ := time.Parse(time.RFC3339, r.Claims["iat"].(string))
	expires, _ := time.Parse(time.RFC3339, r.Claims["expires"].(string))
	if life := expires.Sub(issued); life != 24*time.Hour {
		t.Errorf("a token lives %v, want 24h", life)
	}
	first, phone := r.Token, r.ClientToken
	if !opens(t, h, rex, phone) {
		t.Error("the app's client token does not open the gateway")
	}
	if cert, err := p.Service.SessionCertificate(ctx, rex, "192.0.2.1:1"); err != nil || string(cert) != string(r.Cert) {
		t.Errorf("session certificate: %q, %v", cert, err)
	}

	again, err := r.Reassociate(ctx, h.Sessions.Issue(anna), "phone 2", "companion-app")
	ok(t, "reassociate", err)
	phone2 := r.ClientToken
	ok(t, "secondary client", r.Secondary(ctx, h.Sessions.Issue(anna), "laptop", "SDK"))
	laptop := r.ClientToken
	for name, bearer := range map[string]string{"phone": phone, "phone 2": phone2, "laptop": laptop} {
		if !opens(t, h, rex, bearer) {
			t.Errorf("client token of the %s was dropped by another login", name)
		}
	}
	got := entries(t, h, rex)
	if len(got) != 3 || got[1]["client_name"] != "phone 2" || got[1]["app_id"] != "companion-app" || got[2]["app_id"] != "SDK" {
		t.Errorf("entries %v", got)
	}
	for _, e := range got {
		if _, err := time.Parse(time.RFC3339, e["issued_at"]); err != nil || len(e) != 4 {
			t.Errorf("entry %v: %v", e, err)
		}
	}

	ok(t, "refresh JWT", r.RefreshJWT(ctx))
	second := r.Token
	if second == first {
		t.Error("the refreshed token is the old one")
	}
	for name, raw := range map[string]string{"first": first, "of the app": again, "second": second} { // a lost answer costs nothing
		if a, err := p.Verifier.VerifyFor(ctx, logging.Secret(raw), rex); err != nil || a.User != anna {
			t.Errorf("token %s: %+v, %v", name, a, err)
		}
	}
	ok(t, "refresh STS", r.RefreshSTS(ctx))
	if r.STS.AccessKeyId == "" || r.STS.SecretAccessKey == "" || r.STS.SessionToken == "" || r.Token != second {
		t.Errorf("temporary credentials %v", r.STS)
	}

	ok(t, "disassociate", r.Disassociate(ctx))
	if owner, err := h.Owners.Owner(ctx, rex); errs.KindOf(err) != errs.NotFound {
		t.Errorf("owner %q after the end", owner)
	}
	want(t, "refresh after the end", r.RefreshJWT(ctx), codes.PermissionDenied)
	want(t, "temporary credentials after the end", r.RefreshSTS(ctx), codes.PermissionDenied)
	want(t, "secondary after the end", r.Secondary(ctx, h.Sessions.Issue(anna), "laptop", "SDK"), codes.PermissionDenied)
	want(t, "disassociate twice", r.Disassociate(ctx), codes.PermissionDenied)
	if opens(t, h, rex, phone) || len(entries(t, h, rex)) != 0 {
		t.Error("an app still has access after the end")
	}
	var steps []string
	for _, s := range h.Recorder.Steps(rex) {
		if s.OK {
			steps = append(steps, s.Step)
		}
		if s.Peer == "" || s.At.IsZero() || !strings.HasPrefix(s.Version, "Victor/") {
			t.Errorf("step %+v without peer, time or version", s)
		}
	}
	if w := []string{token.StepAssociate, token.StepReassociate, token.StepSecondary, token.StepRefresh, token.StepDisassociate}; !slices.Equal(steps, w) {
		t.Errorf("recorded %v, want %v", steps, w)
	}
}

// TestRefusals is the table in the package's doc: what answers what, that the doctor has the reason, and that the peer has it not.
func TestRefusals(t *testing.T) {
	h := tokentest.New(t, pgtest.New(t))
	p := h.Start(t)
	ctx := t.Context()
	foreign := tokentest.NewAuthority(t, "robots") // the same name, another key
	leaf := func(a *tokentest.Authority, org []string, cn string, from, to time.Duration) *tokentest.Robot {
		return p.RobotWith(t, a.Leaf(t, x509.Certificate{Subject: pkix.Name{CommonName: cn, Organization: org}, NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(to)}))
	}
	anki := []string{"Anki Inc."}
	ok(t, "rex", p.Robot(t, rex).Associate(ctx, h.Sessions.Issue(anna)))
	used := h.Sessions.Issue(anna)
	ok(t, "bo", p.Robot(t, bo).Associate(ctx, used))

	for _, tc := range []struct {
		name    string
		robot   *tokentest.Robot
		session string
		thing   thing.ID
		code    codes.Code
		reason  string
	}{
		{"no certificate", p.RobotWith(t), "", "", codes.Unauthenticated, "certificate_missing"},
		{"unknown CN", leaf(h.RobotCA, anki, "somebody", -time.Hour, time.Hour), "", "", codes.Unauthenticated, "certificate_refused"},
		{"wrong O", leaf(h.RobotCA, []string{"Anki"}, string(rex), -time.Hour, time.Hour), "", rex, codes.Unauthenticated, "certificate_refused"},
		{"two O", leaf(h.RobotCA, []string{"Anki Inc.", "Anki Inc."}, string(rex), -time.Hour, time.Hour), "", rex, codes.Unauthenticated, "certificate_refused"},
		{"expired", leaf(h.RobotCA, anki, string(rex), -2*time.Hour, -time.Hour), "", rex, codes.Unauthenticated, "certificate_refused"},
		{"foreign chain", leaf(foreign, anki, string(rex), -time.Hour, time.Hour), "", rex, codes.Unauthenticated, "certificate_refused"},
		{"a service", leaf(h.ServiceCA, anki, string(rex), -time.Hour, time.Hour), "", rex, codes.Unauthenticated, "certificate_refused"},
		{"no app key", func() *tokentest.Robot { r := p.Robot(t, rex); r.AppKey = ""; return r }(), "", rex, codes.Unauthenticated, "app_key_missing"},
		{"wrong app key", func() *tokentest.Robot { r := p.Robot(t, rex); r.AppKey = "guess"; return r }(), "", rex, codes.Unauthenticated, "app_key_wrong"},
		{"unknown session", p.Robot(t, rex), "made up", rex, codes.Unauthenticated, "session_unknown"},
		{"used session", p.Robot(t, rex), used, rex, codes.Unauthenticated, "session_used"},
		{"no session", p.Robot(t, rex), "-", rex, codes.Unauthenticated, "session_missing"},
		{"another owner's", p.Robot(t, rex), h.Sessions.Issue(bert), rex, codes.InvalidArgument, "wrong_account"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			session, fresh := tc.session, false
			switch session {
			case "":
				session, fresh = h.Sessions.Issue(anna), true
			case "-":
				session = ""
			}
			err := tc.robot.Associate(ctx, session)
			want(t, "associate", err, tc.code)
			last := h.Recorder.Last()
			if last.Thing != tc.thing || last.OK || last.Code != tc.reason || last.Reason == "" || last.Peer == "" || last.Step != token.StepAssociate {
				t.Errorf("recorded %+v, want thing %q, code %s", last, tc.thing, tc.reason)
			}
			text := status.Convert(err).Message()
			if tc.code == codes.Unauthenticated && text != "not accepted; the operator's doctor knows why" || strings.Contains(text, tc.reason) {
				t.Errorf("the peer was told %q", text)
			}
			if !strings.Contains(h.Log.String(), `"code":"`+tc.reason+`"`) {
				t.Error("not in the log")
			}
			if fresh && h.Sessions.Used(session) {
				t.Error("a session was burned for a robot that is not let in")
			}
			if tc.reason == "wrong_account" {
				session = h.Sessions.Issue(bert)
			}
			_, err = tc.robot.Reassociate(ctx, session, "phone", "app")
			want(t, "reassociate", err, tc.code)
		})
	}
	t.Run("nobody's robot", func(t *testing.T) {
		_, err := p.Robot(t, "vic:00e20109").Reassociate(ctx, h.Sessions.Issue(anna), "phone", "app")
		want(t, "reassociate", err, codes.InvalidArgument)
		if last := h.Recorder.Last(); last.Code != "no_owner" {
			t.Errorf("recorded %+v", last)
		}
	})
	t.Run("malformed session certificate", func(t *testing.T) {
		s := h.Sessions.Issue(anna)
		for name, cert := range map[string]string{"text": "hello", "a key": "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n",
			"no X.509": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "two": strings.Repeat(string(tokentest.GatewayCert(t, "Vector-X")), 2), "long": strings.Repeat("x", 9<<10)} {
			want(t, name, p.Robot(t, rex).AssociateWith(ctx, s, &tokenpb.AssociatePrimaryUserRequest{SessionCertificate: []byte(cert)}), codes.DataLoss)
		}
		if h.Sessions.Used(s) {
			t.Error("a session was burned for it")
		}
	})
	t.Run("oversize", func(t *testing.T) {
		want(t, "associate", p.Robot(t, rex).AssociateWith(ctx, h.Sessions.Issue(anna), &tokenpb.AssociatePrimaryUserRequest{SessionCertificate: make([]byte, kitgrpc.MaxMessage+1)}), codes.ResourceExhausted)
		want(t, "metadata", p.Robot(t, rex).Associate(ctx, strings.Repeat("x", 20<<10)), codes.Internal) // the connection's own limit: the client's library does not send it
	})
	t.Run("two app keys", func(t *testing.T) {
		r := p.Robot(t, rex)
		r.AppKey = ""
		err := r.Raw(ctx, map[string]string{"anki-app-key": "guess", "anki-user-session": h.Sessions.Issue(anna)}, func(c tokenpb.TokenClient) error {
			_, err := c.AssociatePrimaryUser(ctx, &tokenpb.AssociatePrimaryUserRequest{})
			return err
		})
		want(t, "associate", err, codes.Unauthenticated)
	})
	t.Run("too fast", func(t *testing.T) {
		h.ByThing.Stop("vic:00e20108")
		r := p.Robot(t, "vic:00e20108")
		before := len(h.Recorder.Steps("vic:00e20108"))
		for range 5 {
			want(t, "associate", r.Associate(ctx, h.Sessions.Issue(anna)), codes.ResourceExhausted)
		}
		if n := len(h.Recorder.Steps("vic:00e20108")) - before; n != 1 {
			t.Errorf("%d steps recorded of a flood, want 1", n)
		}
	})
	t.Run("account service away", func(t *testing.T) {
		h.Sessions.Err = errs.RetryLater(time.Second, "accounts are not available", errors.New("dial"))
		defer func() { h.Sessions.Err = nil }()
		want(t, "associate", p.Robot(t, rex).Associate(ctx, "x"), codes.Unavailable)
		h.Sessions.Err = errors.New("a bug of ours: secret words")
		err := p.Robot(t, rex).Associate(ctx, "x")
		want(t, "associate", err, codes.Internal)
		if strings.Contains(err.Error(), "secret words") {
			t.Errorf("the peer was told %v", err)
		}
	})
}

// TestNeverStopsARobot is the top of peer facts: no answer without what the robot reads through.
func TestNeverStopsARobot(t *testing.T) {
	h := tokentest.New(t, pgtest.New(t))
	p := h.Start(t)
	ctx := t.Context()
	r := p.Robot(t, rex)
	ok(t, "associate without anything", r.AssociateWith(ctx, h.Sessions.Issue(anna), &tokenpb.AssociatePrimaryUserRequest{SkipClientToken: true}))
	if r.ClientToken != "" || len(entries(t, h, rex)) != 0 || r.STS != nil {
		t.Errorf("client token %q, entries %v", r.ClientToken, entries(t, h, rex))
	}
	ok(t, "associate with everything", r.AssociateWith(ctx, h.Sessions.Issue(anna), &tokenpb.AssociatePrimaryUserRequest{GenerateStsToken: true, ExpirationMinutes: 90}))
	if r.STS == nil {
		t.Error("no temporary credentials")
	}
	issued, _ := time.Parse(time.RFC3339, r.Claims["iat"].(string))
	expires, _ := time.Parse(time.RFC3339, r.Claims["expires"].(string))
	if expires.Sub(issued) != 90*time.Minute {
		t.Errorf("lives %v, want 90m", expires.Sub(issued))
	}
	for minutes, life := range map[uint32]time.Duration{1: token.MinTTL, 1 << 31: token.MaxTTL} {
		ok(t, "associate", r.AssociateWith(ctx, h.Sessions.Issue(anna), &tokenpb.AssociatePrimaryUserRequest{ExpirationMinutes: minutes}))
		issued, _ := time.Parse(time.RFC3339, r.Claims["iat"].(string))
		expires, _ := time.Parse(time.RFC3339, r.Claims["expires"].(string))
		if expires.Sub(issued) != life {
			t.Errorf("%d minutes: lives %v, want %v", minutes, expires.Sub(issued), life)
		}
	}
	h.STS.Empty = true
	want(t, "credentials that are not complete", r.RefreshSTS(ctx), codes.Internal)
	h.STS.Empty, h.STS.Err = false, errs.RetryLater(time.Second, "no S3", nil)
	want(t, "no credentials", r.RefreshSTS(ctx), codes.Unavailable)
	h.STS.Err = nil
	err := r.Raw(ctx, map[string]string{"anki-access-token": r.Token}, func(c tokenpb.TokenClient) error {
		_, err := c.RefreshToken(ctx, &tokenpb.RefreshTokenRequest{})
		return err
	})
	want(t, "refresh of nothing", err, codes.InvalidArgument)
	err = r.Raw(ctx, map[string]string{"anki-access-token": r.Token}, func(c tokenpb.TokenClient) error {
		resp, err := c.RefreshToken(ctx, &tokenpb.RefreshTokenRequest{RefreshJwtTokens: true, RefreshStsTokens: true})
		if err == nil && (resp.Data.Token == "" || resp.Data.StsToken == nil) {
			t.Errorf("refresh of both: %v", resp)
		}
		return err
	})
	ok(t, "refresh of both", err)
}

// TestOwnersAndApps: who keeps access through a new login, and who does not.
func TestOwnersAndApps(t *testing.T) {
	h := tokentest.New(t, pgtest.New(t))
	p := h.Start(t)
	ctx := t.Context()
	r := p.Robot(t, rex)
	r.Cert = tokentest.GatewayCert(t, "Vector-A1B2")
	ok(t, "associate", r.Associate(ctx, h.Sessions.Issue(anna)))
	phone, old := r.ClientToken, r.Token
	ok(t, "again", r.Associate(ctx, h.Sessions.Issue(anna)))
	if !opens(t, h, rex, phone) {
		t.Error("the owner's second login dropped the first app")
	}
	keep := r.Token
	r.Token = old
	want(t, "refresh of what was before", r.RefreshJWT(ctx), codes.PermissionDenied)
	r.Token = keep
	ok(t, "refresh", r.RefreshJWT(ctx))

	ok(t, "with revoke_client_tokens", r.AssociateWith(ctx, h.Sessions.Issue(anna), &tokenpb.AssociatePrimaryUserRequest{RevokeClientTokens: true, ClientName: strings.Repeat("ä", 70), AppId: "a\x00b"}))
	if opens(t, h, rex, phone) || !opens(t, h, rex, r.ClientToken) {
		t.Error("revoke_client_tokens did not")
	}
	if e := entries(t, h, rex)[0]; e["client_name"] != strings.Repeat("ä", 64) || e["app_id"] != "ab" {
		t.Errorf("entry %v", e)
	}
	annas, annasToken := r.ClientToken, r.Token

	want(t, "a stranger", r.Associate(ctx, h.Sessions.Issue(bert)), codes.InvalidArgument)
	if !opens(t, h, rex, annas) {
		t.Error("a stranger's attempt dropped the owner's app")
	}
	ok(t, "the owner's token still refreshes", r.RefreshJWT(ctx))
	r.Cert = tokentest.GatewayCert(t, "Vector-C3D4")
	ok(t, "a new owner after a wipe", r.Associate(ctx, h.Sessions.Issue(bert)))
	if opens(t, h, rex, annas) || !opens(t, h, rex, r.ClientToken) {
		t.Error("the app of the owner before still has access")
	}
	if got := h.Owners.How; !slices.Equal(got, []string{token.HowAssociate, token.HowAssociate, token.HowAssociate, token.HowWiped}) {
		t.Errorf("associated %v", got)
	}
	want(t, "secondary of the owner before", r.Secondary(ctx, h.Sessions.Issue(anna), "x", "y"), codes.InvalidArgument)
	_, err := r.Reassociate(ctx, h.Sessions.Issue(anna), "x", "y")
	want(t, "reassociate of the owner before", err, codes.InvalidArgument)
	r.Token = annasToken
	want(t, "refresh of the owner before", r.RefreshJWT(ctx), codes.PermissionDenied)
	if last := h.Recorder.Last(); last.Code != "association_other" {
		t.Errorf("recorded %+v", last)
	}

	// Claimed by code: the owner has never been here.
	other := p.Robot(t, bo)
	h.Owners.Set(bo, anna)
	tok, err := other.Reassociate(ctx, h.Sessions.Issue(anna), "phone", "app")
	ok(t, "reassociate without an association", err)
	if _, err := p.Verifier.VerifyFor(ctx, logging.Secret(tok), bo); err != nil {
		t.Error(err)
	}
}

// TestManyAppsAtOnce: compare and retry loses no entry.
func TestManyAppsAtOnce(t *testing.T) {
	h := tokentest.New(t, pgtest.New(t))
	p := h.Start(t)
	r := p.Robot(t, rex)
	ok(t, "associate", r.Associate(t.Context(), h.Sessions.Issue(anna)))
	const apps = 6
	bearers := make(chan string, apps)
	for range apps {
		one := *r
		go func() {
			if err := one.Secondary(t.Context(), h.Sessions.Issue(anna), "app", "SDK"); err != nil {
				t.Error(err)
			}
			bearers <- one.ClientToken
		}()
	}
	for range apps {
		if !opens(t, h, rex, <-bearers) {
			t.Error("an app's entry was lost")
		}
	}
	if n := len(entries(t, h, rex)); n != apps+1 {
		t.Errorf("%d entries, want %d", n, apps+1)
	}
	for n := apps + 1; n < token.MaxApps; n++ { // up to the limit, without a session each
		if _, err := p.Service.ReassociatePrimaryUser(t.Context(), token.Peer{Thing: rex, UserSession: logging.Secret(h.Sessions.Issue(anna))}, token.ReassociateRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "one too many", r.Secondary(t.Context(), h.Sessions.Issue(anna), "app", "SDK"), codes.ResourceExhausted)
	if n := len(entries(t, h, rex)); n != token.MaxApps {
		t.Errorf("%d entries, want %d", n, token.MaxApps)
	}
}

// TestRevocationElsewhere is issue 4, "what must hold" 3, for tokens: a second process refuses within 2 s.
func TestRevocationElsewhere(t *testing.T) {
	h := tokentest.New(t, pgtest.New(t))
	one, two := h.Start(t), h.Start(t)
	ctx := t.Context()
	for name, revoke := range map[string]func(r *tokentest.Robot) error{
		"the robot": func(*tokentest.Robot) error { _, err := one.Service.RevokeThing(ctx, rex, "test"); return err },
		"the user":  func(*tokentest.Robot) error { _, err := one.Service.RevokeUser(ctx, anna, "test"); return err },
		"the token": func(r *tokentest.Robot) error {
			n, err := one.Service.RevokeToken(ctx, rex, r.Claims["token_id"].(string), "test")
			if n != 1 {
				t.Errorf("%d tokens revoked, want 1", n)
			}
			return err
		},
		"disassociation":      func(r *tokentest.Robot) error { return r.Disassociate(ctx) },
		"another association": func(r *tokentest.Robot) error { c := *r; return c.Associate(ctx, h.Sessions.Issue(anna)) },
	} {
		t.Run(name, func(t *testing.T) {
			r := one.Robot(t, rex)
			ok(t, "associate", r.Associate(ctx, h.Sessions.Issue(anna)))
			if _, err := two.Verifier.VerifyFor(ctx, logging.Secret(r.Token), rex); err != nil {
				t.Fatal(err)
			}
			ok(t, "revoke", revoke(r))
			began := time.Now()
			deadline := time.NewTimer(2 * time.Second)
			defer deadline.Stop()
			poll := time.NewTicker(2 * time.Millisecond)
			defer poll.Stop()
			for {
				_, err := two.Verifier.VerifyFor(ctx, logging.Secret(r.Token), rex)
				var why *token.Refusal
				if errors.As(err, &why) {
					if why.Code != "token_revoked" || errs.KindOf(err) != errs.Denied {
						t.Errorf("refused with %v", err)
					}
					break
				}
				select {
				case <-deadline.C:
					t.Fatal("another process takes a revoked token after 2 s")
				case <-poll.C:
				}
			}
			t.Logf("refused in another process after %v", time.Since(began))
			r.Addr = two.Addr
			want(t, "refresh in another process", r.RefreshJWT(ctx), codes.PermissionDenied)
		})
	}
}

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
