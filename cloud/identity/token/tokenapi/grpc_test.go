package tokenapi_test

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"errors"
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

// associated returns an original robot that anna has just associated, and the cloud that it is at.
func associated(t *testing.T) (*tokentest.House, *tokentest.Process, *tokentest.Robot) {
	t.Helper()
	h := tokentest.New(t, pgtest.New(t))
	p := h.Start(t)
	r := p.Robot(t, rex)
	r.Cert = tokentest.GatewayCert(t, "Vector-A1B2")
	ok(t, "associate", r.Associate(t.Context(), h.Sessions.Issue(anna)))
	return h, p, r
}

// TestOriginalRobot is issue 4, "what must hold" 1: the sequence of an original robot, over mutual TLS, with its metadata and bodies.
func TestOriginalRobot(t *testing.T) {
	h, p, r := associated(t)
	ctx := t.Context()
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
