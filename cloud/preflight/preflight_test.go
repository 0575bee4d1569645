package preflight

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// authority signs certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue returns a certificate; by nil: it signs itself.
func issue(t *testing.T, name string, until time.Time, by *authority) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: now.AddDate(-1, 0, 0), NotAfter: until,
		IsCA: by == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	parent, signer := c, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return &authority{c, key}
}

func TestRules(t *testing.T) {
	public := issue(t, "Public Authority", now.AddDate(5, 0, 0), nil)
	roots := x509.NewCertPool()
	roots.AddCert(public.cert)
	ours := issue(t, "Kennel Server CA", now.AddDate(5, 0, 0), nil)
	cert := func(name string, until time.Time, by *authority) Result {
		return Certificate("kennel.example", []*x509.Certificate{issue(t, name, until, by).cert}, roots, now)
	}
	at := func(d time.Duration) Record { return Record{At: now.Add(-d), Says: "Because."} }
	addrs := func(s ...string) (out []netip.Addr) {
		for _, a := range s {
			out = append(out, netip.MustParseAddr(a))
		}
		return out
	}
	port := func(addr, what string, ours, meant, near bool) Listener {
		return Listener{netip.MustParseAddrPort(addr), what, ours, meant, near}
	}
	for name, c := range map[string]struct {
		got  Result
		want State
		says string
	}{
		"a name":                    {Name("kennel.example", addrs("198.51.100.7"), nil), OK, "198.51.100.7"},
		"a name of the house":       {Name("kennel.example", addrs("192.168.1.5"), nil), Missing, "only your own network"},
		"a name that leads nowhere": {Name("kennel.example", nil, errors.New("no such host")), Missing, "leads nowhere"},
		"localhost":                 {Name("localhost", addrs("127.0.0.1"), nil), Missing, "localhost"},
		"a bare name":               {Name("kennel", addrs("198.51.100.7"), nil), Missing, "other networks"},
		"an address":                {Name("198.51.100.7", nil, nil), Missing, "has no name"},

		"a certificate":        {cert("kennel.example", now.AddDate(0, 0, 60), public), OK, "60 days"},
		"of another name":      {cert("other.example", now.AddDate(0, 0, 60), public), Missing, "other.example, not for kennel.example"},
		"of our own authority": {cert("kennel.example", now.AddDate(0, 0, 60), ours), Missing, "browsers do not trust"},
		"that signed itself":   {cert("kennel.example", now.AddDate(0, 0, 60), nil), Missing, "signed itself"},
		"that ended":           {cert("kennel.example", now.AddDate(0, 0, -1), public), Missing, "ended on 2026-11-21"},
		"that ends soon":       {cert("kennel.example", now.AddDate(0, 0, 13), public), Missing, "13 days"},
		"no certificate":       {Certificate("kennel.example", nil, roots, now), Missing, "no certificate"},

		"mail":                 {MailSent("smtp.example", Last{Good: at(time.Hour)}, now), OK, "took a letter"},
		"mail that was mended": {MailSent("smtp.example", Last{Good: at(time.Hour), Bad: at(2 * time.Hour)}, now), OK, ""},
		"mail that fails":      {MailSent("smtp.example", Last{Good: at(time.Hour), Bad: at(time.Minute)}, now), Missing, "not taken"},
		"mail long ago":        {MailSent("smtp.example", Last{Good: at(40 * 24 * time.Hour)}, now), NotChecked, "last letter"},
		"mail never":           {MailSent("smtp.example", Last{}, now), NotChecked, "no letter yet"},
		"no mail":              {MailSent("", Last{Good: at(time.Hour)}, now), Missing, "No mail server"},

		"second factors":   {Factors(3, nil), OK, "All 3"},
		"a password alone": {Factors(3, []string{"ada@example.org"}), Missing, "1 of 3 operators sign in with a password alone: ada@example.org"},
		"many passwords":   {Factors(9, strings.Fields("a b c d e f g")), Missing, "e, and 2 more"},

		"backup":              {Backups(Last{Good: at(time.Hour)}, now), OK, "Because."},
		"backup of last week": {Backups(Last{Good: at(7 * 24 * time.Hour)}, now), Missing, "2026-11-15"},
		"backup that fails":   {Backups(Last{Good: at(time.Hour), Bad: at(time.Minute)}, now), Missing, "failed: Because."},
		"no backup":           {Backups(Last{}, now), Missing, "No backup"},
		"drill":               {Drills(Last{Good: at(20 * 24 * time.Hour)}, now), OK, "Because."},
		"drill long ago":      {Drills(Last{Good: at(32 * 24 * time.Hour)}, now), Missing, "2026-10-21"},
		"drill that fails":    {Drills(Last{Good: at(time.Hour), Bad: at(time.Minute)}, now), Missing, "failed: Because."},
		"no drill":            {Drills(Last{}, now), Missing, "No restore drill"},

		"disk":        {Disks(nil, []string{"data in /d has 40 GiB of 80 GiB free (50 %)"}, []string{"S3"}), OK, "(50 %). Not seen from here: S3"},
		"a full disk": {Disks(errors.New("volume of data (/d) is low"), []string{"data in /d"}, nil), Missing, ": volume of data (/d) is low."},
		"no disk":     {Disks(nil, nil, []string{"S3"}), NotChecked, ""},
		"a part":      {Part(nil), OK, ""},
		"a bad part":  {Part(errors.New("certificate /c ends soon")), Missing, ": certificate /c ends soon."},
		"time":        {Clock(true, 12*time.Millisecond), OK, "12ms"},
		"no time":     {Clock(false, 0), Missing, "no time server"},
		"retention":   {Retention(30, 30), OK, "30 days"},
		"too long":    {Retention(30, 36500), Missing, "36500"},

		"ports":                 {Ports([]Listener{port("0.0.0.0:8443", "public API", true, true, false), port("127.0.0.1:9100", "metrics", true, false, false)}), OK, "public API on 0.0.0.0:8443"},
		"metrics for all":       {Ports([]Listener{port("0.0.0.0:8443", "public API", true, true, false), port("[::]:9100", "metrics", true, false, false)}), Missing, "metrics on [::]:9100"},
		"metrics for the house": {Ports([]Listener{port("10.0.0.5:9100", "metrics", true, false, true)}), OK, "private networks: metrics"},
		"a port nobody named":   {Ports([]Listener{port("0.0.0.0:6060", "", true, false, false)}), Missing, "0.0.0.0:6060"},
		"another program":       {Ports([]Listener{port("0.0.0.0:22", "", false, false, false)}), OK, "Other programs of this machine listen on 0.0.0.0:22"},
	} {
		if c.got.State != c.want || !strings.Contains(c.got.Says, c.says) || (c.got.Do == "") != (c.want == OK) {
			t.Errorf("%s: %+v, want %s that says %q, and what to do unless it is ok", name, c.got, c.want, c.says)
		}
	}
}

// TestCheck: facts that cannot be had are neither good nor bad, one slow check does not hide the others, and the order stays.
func TestCheck(t *testing.T) {
	s := New(func() time.Time { return now },
		Check{"a", "A", func(context.Context, time.Time) (Result, error) { return Result{}, errors.New("secret detail") }},
		Check{"b", "B", func(_ context.Context, at time.Time) (Result, error) {
			return good("%s", at.Format(time.DateOnly)), nil
		}})
	c := s.Check(t.Context())
	if len(c.Items) != 2 || c.Items[0].State != NotChecked || strings.Contains(c.Items[0].Says, "secret") || c.Items[1].Says != "2026-11-22" || !c.Ready || !c.At.Equal(now) {
		t.Errorf("%+v", c)
	}
	s = New(nil, Check{"a", "A", func(context.Context, time.Time) (Result, error) { return missing("Do it.", "Not done."), nil }})
	if c := s.Check(t.Context()); c.Ready || c.Items[0].Do != "Do it." {
		t.Errorf("%+v", c)
	}
}
