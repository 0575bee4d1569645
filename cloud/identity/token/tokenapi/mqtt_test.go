package tokenapi_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"kennel/cloud/identity/token"
	"kennel/cloud/identity/token/tokenapi"
	"kennel/cloud/identity/token/tokentest"
	"kennel/infra/api/tokens"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
)

// TestAgent is the life of our own robot over MQTT requests: the same rules, without app key and certificate.
func TestAgent(t *testing.T) {
	h := tokentest.New(t, pgtest.New(t))
	p := h.Start(t)
	reqs := tokenapi.Handlers(p.Service, h.Log.Logger())
	ask := func(method string, body any) (tokens.Bundle, error) {
		t.Helper()
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		out, err := reqs["token/"+method](t.Context(), rex, b)
		var answer tokens.Bundle
		if err == nil {
			if err := json.Unmarshal(out, &answer); err != nil {
				t.Fatal(err)
			}
		}
		return answer, err
	}
	cert := string(tokentest.GatewayCert(t, "Vector-A1B2"))
	first, err := ask(tokens.AssociateMethod, tokens.Associate{UserSession: h.Sessions.Issue(anna), SessionCertificate: cert, ClientName: "phone", GenerateSTSToken: true})
	if err != nil || first.STS == nil || !opens(t, h, rex, first.ClientToken) {
		t.Fatalf("associate: %+v, %v", first, err)
	}
	if b, err := ask(tokens.ReassociateMethod, tokens.Reassociate{UserSession: h.Sessions.Issue(anna), SkipClientToken: true}); err != nil || b.Token == "" || b.ClientToken != "" {
		t.Errorf("reassociate: %+v, %v", b, err)
	}
	if b, err := ask(tokens.SecondaryMethod, tokens.Secondary{AccessToken: first.Token, UserSession: h.Sessions.Issue(anna), AppID: "SDK"}); err != nil || b.Token != first.Token || !opens(t, h, rex, b.ClientToken) {
		t.Errorf("secondary: %+v, %v", b, err)
	}
	next, err := ask(tokens.RefreshMethod, tokens.Refresh{AccessToken: first.Token, JWT: true, STS: true})
	if err != nil || next.Token == "" || next.STS == nil || time.Until(next.STS.Expiration) < time.Hour {
		t.Errorf("refresh: %+v, %v", next, err)
	}
	if b, err := ask(tokens.RefreshMethod, tokens.Refresh{AccessToken: next.Token, STS: true}); err != nil || b.STS == nil || b.Token != "" {
		t.Errorf("refresh of credentials: %+v, %v", b, err)
	}
	other := string(tokentest.GatewayCert(t, "Vector-C3D4"))
	if _, err := ask(tokens.CertificateMethod, tokens.Certificate{SessionCertificate: other}); err != nil {
		t.Error(err)
	}
	if got, err := p.Service.SessionCertificate(t.Context(), rex, "192.0.2.1:1"); err != nil || string(got) != other {
		t.Errorf("certificate %q, %v", got, err)
	}
	for name, tc := range map[string]struct {
		method string
		body   any
		kind   errs.Kind
		code   string // of the doctor
	}{
		"no certificate":         {tokens.CertificateMethod, tokens.Certificate{}, errs.Invalid, "session_certificate_missing"},
		"damaged certificate":    {tokens.CertificateMethod, tokens.Certificate{SessionCertificate: "x"}, errs.Corrupt, "session_certificate_malformed"},
		"unknown session":        {tokens.AssociateMethod, tokens.Associate{UserSession: "x"}, errs.Unauthenticated, "session_unknown"},
		"another's session":      {tokens.AssociateMethod, tokens.Associate{UserSession: h.Sessions.Issue(bert)}, errs.Invalid, "wrong_account"},
		"another's second app":   {tokens.SecondaryMethod, tokens.Secondary{AccessToken: next.Token, UserSession: h.Sessions.Issue(bert)}, errs.Invalid, "wrong_account"},
		"secondary, no token":    {tokens.SecondaryMethod, tokens.Secondary{UserSession: h.Sessions.Issue(anna)}, errs.Unauthenticated, "token_missing"},
		"refresh, no token":      {tokens.RefreshMethod, tokens.Refresh{JWT: true}, errs.Unauthenticated, "token_missing"},
		"refresh of nothing":     {tokens.RefreshMethod, tokens.Refresh{AccessToken: next.Token}, errs.Invalid, "refresh_nothing"},
		"disassociate, no token": {tokens.DisassociateMethod, tokens.Disassociate{}, errs.Unauthenticated, "token_missing"},
	} {
		_, err := ask(tc.method, tc.body)
		if err == nil || errs.KindOf(err) != tc.kind {
			t.Errorf("%s: %v, want %v", name, err, tc.kind)
		}
		if last := h.Recorder.Last(); last.Code != tc.code || last.Thing != rex {
			t.Errorf("%s: recorded %+v, want %s", name, last, tc.code)
		}
	}
	if _, err := reqs["token/refresh"](t.Context(), rex, []byte(`{"access_token":"SECRET`)); errs.CodeOf(err) != "malformed" || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("%v", err)
	}
	if _, err := reqs["token/refresh"](t.Context(), bo, mustJSON(t, tokens.Refresh{AccessToken: next.Token, JWT: true})); errs.KindOf(err) != errs.Denied {
		t.Errorf("another robot's token: %v", err)
	}
	if _, err := ask(tokens.DisassociateMethod, tokens.Disassociate{AccessToken: next.Token}); err != nil {
		t.Error(err)
	}
	if _, err := ask(tokens.RefreshMethod, tokens.Refresh{AccessToken: next.Token, JWT: true}); errs.KindOf(err) != errs.Denied {
		t.Errorf("after the end: %v", err)
	}
	// A robot is no service, although the broker proved it.
	if _, err := p.Service.RevokeTokens(t.Context(), token.Peer{Thing: rex, Addr: "mqtt"}, "requestor_id", string(bo)); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("%v", err)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
