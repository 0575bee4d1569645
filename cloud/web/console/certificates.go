package console

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kennel/certs"
	"kennel/cloud/page"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Identities is the pages' access to certificates; *certs.Service is one.
type Identities interface {
	Waiting(ctx context.Context) ([]certs.Waiting, error)
	Approve(ctx context.Context, id thing.ID, fingerprint string) error
	Refuse(ctx context.Context, id thing.ID, fingerprint, reason string) error
	Batches(ctx context.Context) ([]certs.Batch, []certs.FactoryRevocation, error)
	PutBatch(ctx context.Context, b certs.Batch) error
	DisableBatch(ctx context.Context, name, reason string) error
	EnableBatch(ctx context.Context, name string) error
	RevokeFactoryCertificate(ctx context.Context, certificateID, reason string) error
	Revocations(ctx context.Context, before time.Time, limit int) ([]certs.Record, error)
	Certificates(ctx context.Context, id thing.ID) ([]certs.Record, error)
	Revoke(ctx context.Context, id thing.ID, reason string) (int, error)
	Release(ctx context.Context, id thing.ID, reason string) (logging.Secret, error)
}

const revocationsPage = 50

type certificatesView struct {
	able
	said
	Gone        string // what is wrong with a form that is not here any more
	Waiting     []waitingView
	Batches     []batchView
	Factory     []certs.FactoryRevocation
	Revocations []certs.Record
	Next, First string // addresses of older revocations, and of the newest; "": none
	Species     []thing.Species
	DefaultO    string
}

type waitingView struct {
	certs.Waiting
	Form  string // name of its forms
	Short string // what people compare
	Block string // why it cannot be approved as it is; "": it can
}

type batchView struct {
	certs.Batch
	Form    string
	Serials string
	Until   string // certificates end later than this day
	CAs     []authority
}

// authority is one certificate of a batch's bundle.
type authority struct {
	Name, Issuer, Fingerprint string
	NotBefore, NotAfter       time.Time
}

func (c *console) certificates(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	v := certificatesView{able: ableOf(ctx), said: s, Species: thing.AllSpecies(), DefaultO: certs.FactoryOrganization}
	waiting, err := c.Identities.Waiting(ctx)
	if err != nil {
		return "", frame{}, err
	}
	forms := []string{"batch", "factory"}
	for _, w := range waiting {
		x := waitingView{Waiting: w, Short: w.Key.Short(), Form: waitingForm(w.Thing, w.Key.Short())}
		switch {
		case w.Revoked:
			x.Block = "The certificates of " + string(w.Thing) + " were revoked. If this is the real robot, reset its identity on its page first."
		case w.Bound:
			x.Block = string(w.Thing) + " has another key already: release it on its page first, if this is the genuine robot after a wipe."
		}
		v.Waiting, forms = append(v.Waiting, x), append(forms, x.Form)
	}
	batches, revoked, err := c.Identities.Batches(ctx)
	if err != nil {
		return "", frame{}, err
	}
	v.Factory = revoked
	for _, b := range batches {
		x := newBatch(b)
		v.Batches, forms = append(v.Batches, x), append(forms, x.Form)
	}
	v.Gone = s.Lost(forms)
	var before time.Time
	if text := r.URL.Query().Get("before"); text != "" {
		if before, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return "", frame{}, errs.New(errs.Invalid, "before=%.40q: want a time such as 2026-05-06T07:08:09Z", text)
		}
		v.First = "/certificates#revocations"
	}
	rows, err := c.Identities.Revocations(ctx, before, revocationsPage+1)
	if err != nil {
		return "", frame{}, err
	}
	if len(rows) > revocationsPage {
		rows = rows[:revocationsPage]
		v.Next = "/certificates?before=" + url.QueryEscape(rows[revocationsPage-1].Revoked.UTC().Format(time.RFC3339Nano)) + "#revocations"
	}
	v.Revocations = rows
	return "certificates", frame{Title: "Certificates", Main: v}, nil
}

func newBatch(b certs.Batch) batchView {
	v := batchView{Batch: b, Form: "batch " + b.Name, Serials: "all", Until: b.ValidAfter.UTC().Format(time.DateOnly)}
	switch {
	case b.SerialFrom != "" && b.SerialTo != "":
		v.Serials = b.SerialFrom + " to " + b.SerialTo
	case b.SerialFrom != "":
		v.Serials = "from " + b.SerialFrom
	case b.SerialTo != "":
		v.Serials = "to " + b.SerialTo
	}
	for rest := b.Bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return v
		}
		ca, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue // certs checks bundles before they are stored
		}
		sum := sha256.Sum256(ca.Raw)
		v.CAs = append(v.CAs, authority{ca.Subject.String(), ca.Issuer.String(), hex.EncodeToString(sum[:]), ca.NotBefore, ca.NotAfter})
	}
}

// waitingForm names the forms of one waiting robot: several may claim to be the same thing.
func waitingForm(id thing.ID, fingerprint string) string { return string(id) + " " + fingerprint }

func certificatesAddress(*http.Request) string { return "/certificates" }

func (c *console) mountCertificates(act func(pattern string, a action)) {
	waiting := func(do func(ctx context.Context, id thing.ID, v url.Values) (outcome, error)) action {
		return action{func(r *http.Request) string {
			return r.PathValue("thing") + " " + strings.TrimSpace(r.PostForm.Get("fingerprint"))
		}, func(ctx context.Context, r *http.Request, v url.Values) (outcome, error) {
			id, err := kithttp.Thing(r)
			if err != nil {
				return outcome{}, err
			}
			return do(ctx, id, v)
		}, c.certificates, certificatesAddress}
	}
	act("POST /certificates/waiting/{thing}/approve", waiting(c.approve))
	act("POST /certificates/waiting/{thing}/refuse", waiting(c.refuse))
	act("POST /certificates/batches", action{page.Called("batch"), c.putBatch, c.certificates, certificatesAddress})
	ofBatch := func(r *http.Request) string { return "batch " + r.PathValue("batch") }
	act("POST /certificates/batches/{batch}/disable", action{ofBatch, c.disableBatch, c.certificates, certificatesAddress})
	act("POST /certificates/batches/{batch}/enable", action{ofBatch, c.enableBatch, c.certificates, certificatesAddress})
	act("POST /certificates/factory", action{page.Called("factory"), c.revokeFactory, c.certificates, certificatesAddress})
}

// fingerprint reads the fingerprint from the form; an approval is only worth as much as the person's comparison of it.
func fingerprint(v url.Values) (string, error) {
	s := strings.TrimSpace(v.Get("fingerprint"))
	if s == "" || len(s) > 80 {
		return "", errs.Coded(errs.Invalid, "fingerprint", "fingerprint of %d bytes: want the one shown by the robot", len(s))
	}
	return s, nil
}

func (c *console) approve(ctx context.Context, id thing.ID, v url.Values) (outcome, error) {
	print, err := fingerprint(v)
	if err != nil {
		return outcome{}, err
	}
	if v.Get("compared") != "yes" {
		return outcome{}, errs.Coded(errs.Invalid, "not_compared", "compare the fingerprint with the one shown by the robot, and confirm that they are the same")
	}
	if err := c.Audit(ctx, "thing.approve", string(id), print); err != nil {
		return outcome{}, err
	}
	return outcome{done: "approved"}, c.Identities.Approve(ctx, id, print)
}

func (c *console) refuse(ctx context.Context, id thing.ID, v url.Values) (outcome, error) {
	print, err := fingerprint(v)
	if err != nil {
		return outcome{}, err
	}
	why, err := reason(v)
	if err != nil {
		return outcome{}, err
	}
	if err := c.Audit(ctx, "thing.refuse", string(id), print+": "+why); err != nil {
		return outcome{}, err
	}
	return outcome{done: "refused"}, c.Identities.Refuse(ctx, id, print, why)
}

func (c *console) putBatch(ctx context.Context, _ *http.Request, v url.Values) (outcome, error) {
	text := func(name string) string { return strings.TrimSpace(v.Get(name)) }
	b := certs.Batch{Name: text("name"), Bundle: []byte(v.Get("bundle")), Species: thing.Species(text("species")), Organization: text("organization"),
		SerialFrom: text("serial_from"), SerialTo: text("serial_to")}
	if day := text("valid_after"); day != "" {
		var err error
		if b.ValidAfter, err = time.Parse(time.DateOnly, day); err != nil {
			return outcome{}, errs.New(errs.Invalid, "day %.40q: want one such as 2100-01-01", day)
		}
	}
	if b.Name == "" {
		return outcome{}, errs.New(errs.Invalid, "give the batch a name, such as vector-2018")
	}
	if err := c.Audit(ctx, "batch.put", b.Name, ""); err != nil {
		return outcome{}, err
	}
	return outcome{done: "batch-put"}, c.Identities.PutBatch(ctx, b)
}

func (c *console) disableBatch(ctx context.Context, r *http.Request, v url.Values) (outcome, error) {
	why, err := reason(v)
	if err != nil {
		return outcome{}, err
	}
	if err := c.Audit(ctx, "batch.disable", r.PathValue("batch"), why); err != nil {
		return outcome{}, err
	}
	return outcome{done: "batch-disabled"}, c.Identities.DisableBatch(ctx, r.PathValue("batch"), why)
}

func (c *console) enableBatch(ctx context.Context, r *http.Request, _ url.Values) (outcome, error) {
	if err := c.Audit(ctx, "batch.enable", r.PathValue("batch"), ""); err != nil {
		return outcome{}, err
	}
	return outcome{done: "batch-enabled"}, c.Identities.EnableBatch(ctx, r.PathValue("batch"))
}

func (c *console) revokeFactory(ctx context.Context, _ *http.Request, v url.Values) (outcome, error) {
	id, why := strings.TrimSpace(v.Get("certificate_id")), ""
	var err error
	switch why, err = reason(v); {
	case id == "" || len(id) > 200:
		return outcome{}, errors.Join(errs.Coded(errs.Invalid, "certificate_id", "want the certificate's serial number or its SHA-256, in hex"), err)
	case err != nil:
		return outcome{}, err
	}
	if err := c.Audit(ctx, "factory_certificate.revoke", id, why); err != nil {
		return outcome{}, err
	}
	return outcome{done: "factory-revoked"}, c.Identities.RevokeFactoryCertificate(ctx, id, why)
}
