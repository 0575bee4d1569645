package replay_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"kennel/cloud/identity/token/tokentest"
	"kennel/cloud/originals/replay"
)

func token(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

const claims = `{"token_id":"1","token_type":"user+robot","user_id":"u","requestor_id":"vic:00e20100","iat":"2026-11-22T10:00:00Z","expires":"2026-11-23T10:00:00Z","permissions":null}`

// TestClaims: peer facts, top, 3: the tokens that stop an original robot.
func TestClaims(t *testing.T) {
	if got, err := replay.Claims(token(claims)); err != nil || got["user_id"] != "u" {
		t.Fatalf("a good token: %v, %v", got, err)
	}
	for name, text := range map[string]string{
		"iat is a number":      token(strings.Replace(claims, `"2026-11-22T10:00:00Z"`, `1764583200`, 1)),
		"expires is no time":   token(strings.Replace(claims, "2026-11-23T10:00:00Z", "tomorrow", 1)),
		"no token_id":          token(strings.Replace(claims, `"token_id":"1",`, "", 1)),
		"user_id is empty":     token(strings.Replace(claims, `"user_id":"u"`, `"user_id":""`, 1)),
		"requestor is null":    token(strings.Replace(claims, `"vic:00e20100"`, "null", 1)),
		"token_type is a list": token(strings.Replace(claims, `"user+robot"`, `["user+robot"]`, 1)),
		"claims are no JSON":   token("{"),
		"claims are no base64": "e30.!.c2ln",
		"two parts":            "e30.e30",
		"empty":                "",
	} {
		got, err := replay.Claims(text)
		if _, dead := errors.AsType[replay.Fatal](err); !dead || got != nil {
			t.Errorf("%s: %v, %v; want Fatal", name, got, err)
		}
	}
}

func FuzzClaims(f *testing.F) {
	f.Add(token(claims))
	f.Add("..")
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := replay.Claims(text); (err == nil) != (got["user_id"] != nil && got["user_id"] != "") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	})
}

// TestIdentity: peer facts, section 1: a robot build stops with fault 850 unless its certificate is a factory's; a plain build does not look.
func TestIdentity(t *testing.T) {
	maker := tokentest.NewAuthority(t, "factory")
	cert := func(o []string, cn string, end time.Time) tls.Certificate {
		return maker.Leaf(t, x509.Certificate{Subject: pkix.Name{CommonName: cn, Organization: o}, NotAfter: end})
	}
	anki, late := []string{"Anki Inc."}, time.Date(2110, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		cert         tls.Certificate
		plain, robot bool
	}{
		"of the factory":         {cert(anki, "vic:00e20100", late), true, true},
		"no organisation":        {cert(nil, "vic:00e20100", late), true, false},
		"two organisations":      {cert([]string{"Anki Inc.", "Other"}, "vic:00e20100", late), true, false},
		"another's":              {cert([]string{"Anki"}, "vic:00e20100", late), true, false},
		"ends in 2100":           {cert(anki, "vic:00e20100", time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)), true, false},
		"of no robot":            {cert(anki, "cloud", late), false, false},
		"of a robot without ESN": {cert(anki, "vic:", late), false, false},
		"none":                   {tls.Certificate{}, false, false},
	} {
		for build, want := range map[bool]bool{false: tc.plain, true: tc.robot} {
			if r, err := replay.New(replay.ServerConfig{}, nil, tc.cert, build); (err == nil) != want || err == nil && r.Thing != "vic:00e20100" {
				t.Errorf("%s, robot build %v: %v, want good %v", name, build, err, want)
			}
		}
	}
}
