package tokenapi_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"kennel/cloud/identity/token"
	"kennel/cloud/identity/token/tokenapi"
	"kennel/cloud/identity/token/tokentest"
	"kennel/infra/api/tokenwire"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
)

// TestAgent is the life of our own robot over MQTT requests: the same rules, without app key and certificate.
func TestAgent(t *testing.T) {
	h := tokentest.New(t, pgtest.New(t))
	p := h.Start(t)
	reqs := tokenapi.Handlers(p.Service, h.Log.Logger())
	ask := func(method string, body any) (tokenwire.Bundle, error) {
		t.Helper()
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		out, err := reqs["token/"+method](t.Context(), rex, b)
		var answer tokenwire.Bundle
		if err == nil {
			if err := json.Unmarshal(out, &answer); err != nil {
				t.Fatal(err)
			}
		}
		return answer, err
	}
	cert := string(tokentest.GatewayCert(t, "Vector-A1B2"))
	first, err := ask(tokenwire.AssociateMethod, tokenwire.Associate{UserSession: h.Sessions.Issue(anna), SessionCertificate: cert, ClientName: "phone", GenerateSTSToken: true})
	if err != nil || first.STS == nil || !opens(t, h, rex, first.ClientToken) {
		t.Fatalf("associate: %+v, %v", first, err)
	}
	if b, err := ask(tokenwire.ReassociateMethod, tokenwire.Reassociate{UserSession: h.Sessions.Issue(anna), SkipClientToken: true}); err != nil || b.Token == "" || b.ClientToken != "" {
		t.Errorf("reassociate: %+v, %v", b, err)
	}
	if b, err := ask(tokenwire.SecondaryMethod, tokenwire.Secondary{AccessToken: first.Token, UserSession: h.Sessions.Issue(anna), AppID: "SDK"}); err != nil || b.Token != first.Token || !opens(t, h, rex, b.ClientToken) {
		t.Errorf("secondary: %+v, %v", b, err)
	}
	next, err := ask(tokenwire.RefreshMethod, tokenwire.Refresh{AccessToken: first.Token, JWT: true, STS: true})
	if err != nil || next.Token == "" || next.STS == nil || time.Until(next.STS.Expiration) < time.Hour {
		t.Errorf("refresh: %+v, %v", next, err)
	}
	if b, err := ask(tokenwire.RefreshMethod, tokenwire.Refresh{AccessToken: next.Token, STS: true}); err != nil || b.STS == nil || b.Token != "" {
		t.Errorf("refresh of credentials: %+v, %v", b, err)
	}
	other := string(tokentest.GatewayCert(t, "Vector-C3D4"))
	if _, err := ask(tokenwire.CertificateMethod, tokenwire.Certificate{SessionCertificate: other}); err != nil {
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
		"no certificate":         {tokenwire.CertificateMethod, tokenwire.Certificate{}, errs.Invalid, "session_certificate_missing"},
		"damaged certificate":    {tokenwire.CertificateMethod, tokenwire.Certificate{SessionCertificate: "x"}, errs.Corrupt, "session_certificate_malformed"},
		"unknown session":        {tokenwire.AssociateMethod, tokenwire.Associate{UserSession: "x"}, errs.Unauthenticated, "session_unknown"},
		"another's session":      {tokenwire.AssociateMethod, tokenwire.Associate{UserSession: h.Sessions.Issue(bert)}, errs.Invalid, "wrong_account"},
		"another's second app":   {tokenwire.SecondaryMethod, tokenwire.Secondary{AccessToken: next.Token, UserSession: h.Sessions.Issue(bert)}, errs.Invalid, "wrong_account"},
		"secondary, no token":    {tokenwire.SecondaryMethod, tokenwire.Secondary{UserSession: h.Sessions.Issue(anna)}, errs.Unauthenticated, "token_missing"},
		"refresh, no token":      {tokenwire.RefreshMethod, tokenwire.Refresh{JWT: true}, errs.Unauthenticated, "token_missing"},
		"refresh of nothing":     {tokenwire.RefreshMethod, tokenwire.Refresh{AccessToken: next.Token}, errs.Invalid, "refresh_nothing"},
		"disassociate, no token": {tokenwire.DisassociateMethod, tokenwire.Disassociate{}, errs.Unauthenticated, "token_missing"},
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
	if _, err := reqs["token/refresh"](t.Context(), bo, mustJSON(t, tokenwire.Refresh{AccessToken: next.Token, JWT: true})); errs.KindOf(err) != errs.Denied {
		t.Errorf("another robot's token: %v", err)
	}
	if _, err := ask(tokenwire.DisassociateMethod, tokenwire.Disassociate{AccessToken: next.Token}); err != nil {
		t.Error(err)
	}
	if _, err := ask(tokenwire.RefreshMethod, tokenwire.Refresh{AccessToken: next.Token, JWT: true}); errs.KindOf(err) != errs.Denied {
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
