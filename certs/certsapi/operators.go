package certsapi

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"kennel/certs"
	"kennel/certs/certsclient"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/op"
	"kennel/infra/thing"
)

// maxReason is the longest reason an operator gives, in bytes.
const maxReason = 400

// deliveryTimeout bounds a delivery, over a slow line and with 100,000 rows to write.
const deliveryTimeout = 3 * time.Minute

// Revocation is one row of GET /v1/revocations.
type Revocation struct {
	Thing thing.ID `json:"thing"`
	Certificate
}

// Waiting is one row of GET /v1/waiting.
type Waiting struct {
	Thing       thing.ID  `json:"thing"`
	Fingerprint string    `json:"fingerprint"` // short: compare it with the one that the robot shows
	Key         string    `json:"key"`         // all of it, hex
	Addr        string    `json:"addr"`
	First       time.Time `json:"first"`
	Last        time.Time `json:"last"`
	Times       int       `json:"times"`
	Refused     time.Time `json:"refused,omitzero"`
	Reason      string    `json:"reason,omitempty"`
	Known       bool      `json:"known,omitempty"`   // registered
	Bound       bool      `json:"bound,omitempty"`   // to another key: release it before approving
	Revoked     bool      `json:"revoked,omitempty"` // release it before approving
}

// Batch is one row of GET /v1/batches, and the body of PUT /v1/batches/{batch}, where the last three fields are not read.
type Batch struct {
	Name         string        `json:"name,omitempty"`
	Bundle       string        `json:"bundle"`                 // certificates of the factory's authorities, PEM
	Species      thing.Species `json:"species,omitempty"`      // species of its robots (default vic)
	Organization string        `json:"organization,omitempty"` // organisation (O) of its certificates (default Anki Inc.)
	ValidAfter   time.Time     `json:"valid_after,omitzero"`   // accept only certificates that expire after this date
	SerialFrom   string        `json:"serial_from,omitempty"`  // lowest serial number
	SerialTo     string        `json:"serial_to,omitempty"`    // highest serial number
	Created      time.Time     `json:"created,omitzero"`
	Disabled     *time.Time    `json:"disabled,omitempty"`
	Reason       string        `json:"reason,omitempty"`
}

// FactoryCertificate is one row of GET /v1/factory-certificates.
type FactoryCertificate struct {
	CertificateID string    `json:"certificate_id"`
	Reason        string    `json:"reason"`
	At            time.Time `json:"at"`
}

// DeliveryProblem is the body of a refused POST /v1/things/batch.
type DeliveryProblem struct {
	kithttp.Problem
	Lines []certs.LineProblem `json:"lines,omitempty"`
	More  int                 `json:"more,omitempty"` // problems beyond those
}

// Bodies of requests. Reasons are for the audit log.
type (
	// Reason says why, for the audit log.
	Reason struct {
		Reason string `json:"reason"` // for the audit log
	}
	// Approval names the robot by what it shows.
	Approval struct {
		Fingerprint string `json:"fingerprint"`
	}
	// WaitingRefusal turns a waiting robot away.
	WaitingRefusal struct {
		Fingerprint string `json:"fingerprint"`
		Reason      string `json:"reason"` // for the audit log
	}
	// FactoryRevocation takes a factory certificate's rights away.
	FactoryRevocation struct {
		CertificateID string `json:"certificate_id"` // a serial number or a SHA-256, hex
		Reason        string `json:"reason"`         // for the audit log
	}
	// NewThing makes a thing known.
	NewThing struct {
		Thing thing.ID `json:"thing"`
	}
	// RevokedCertificates says how many certificates were in force.
	RevokedCertificates struct {
		Revoked int `json:"revoked"`
	}
)

// Requests.
type (
	robot struct {
		Thing thing.ID `path:"thing"`
	}
	because struct {
		robot
		Body Reason `body:""`
	}
	approval struct {
		robot
		Body Approval `body:""`
	}
	refusal struct {
		robot
		Body WaitingRefusal `body:""`
	}
	batch struct {
		Batch string `path:"batch"`
	}
	batchPut struct {
		batch
		Body Batch `body:""`
	}
	batchBecause struct {
		batch
		Body Reason `body:""`
	}
	delivery struct {
		Body op.Raw `body:""`
	}
	revocationPage struct {
		Before time.Time `query:"before" about:"Only revocations before this time."`
		Limit  int       `query:"limit" about:"Maximum number of results." min:"1" max:"1000"`
	}
)

// Operations returns enrolment, and the operations of people on identities.
func Operations(svc *certs.Service, cfg Config) op.List {
	a := api{svc, cfg}
	spec := func(route, summary string, roles ...auth.Role) op.Spec {
		return op.Spec{Route: route, Tag: "Identity", Summary: summary, Roles: roles, MaxBody: certsclient.MaxBody}
	}
	release := spec("POST /v1/things/{thing}/release", "Release a robot's key, so that it can enrol with another. The answer has a new claim secret, shown only once.", auth.Admins...).With(
		op.Command{Use: "robots release THING -reason!", Short: "Let a robot enrol with another key, and print its new claim secret", Long: "For a robot that was wiped, has another board, or was revoked by mistake. Its certificates are revoked, and the old key is never accepted\nagain. The secret is shown only once; put it into the robot.", Example: `robots release vic:00e20100 -reason "board replaced"`, Table: "thing; secret"})
	release.Own, release.Refuses = true, true
	many := spec("POST /v1/things/batch", "Register many robots, all or none: CSV with a column thing in, thing and secret out.", auth.Admins...)
	many.Timeout, many.BodyMedia, many.AnswerMedia, many.Also = deliveryTimeout, "text/csv", "text/csv", map[int]any{http.StatusBadRequest: DeliveryProblem{}}
	enroll := op.Spec{Route: "POST " + certsclient.EnrollPath, Tag: "Robots", Summary: "Get a robot's first certificate.", By: "the claim secret", MaxBody: certsclient.MaxBody,
		Described: certsclient.Answer{}, Also: map[int]any{http.StatusAccepted: certsclient.Wait{}}}
	renew := op.Spec{Route: "POST " + certsclient.RenewPath, Tag: "Robots", Summary: "Renew a robot's certificate.", By: "the key of an earlier certificate", MaxBody: certsclient.MaxBody}
	put := spec("PUT /v1/batches/{batch}", "Create or replace a manufacturing batch.", auth.Admins...).With(
		op.Command{Use: "batches put BATCH -bundle@! -species -organization -valid-after -serial-from -serial-to", Short: "Create or replace a manufacturing batch", Long: `The defaults are those of the original robot: species vic, organisation "Anki Inc.", certificates valid until after 2100-01-01.`, Example: "batches put lot-2018 -bundle factory-2018.pem -serial-from 00e20000 -serial-to 00e2ffff", Says: "batch {{.BATCH}} accepted"})
	put.MaxBody = 2 * certs.MaxBundle
	return op.List{
		op.New(spec("POST /v1/things", "Register a robot. The answer has its claim secret, shown only once.", auth.Admins...), a.register),
		op.New(many, a.registerAll),
		op.New(spec("GET /v1/things/{thing}/certificates", "List a robot's certificates.", auth.Staff...).With(
			op.Command{Use: "robots certificates THING", Short: "List a robot's certificates, the newest first", Table: "SERIAL; ISSUED FOR=.method; FROM=.not_before; UNTIL=.not_after; REVOKED; REASON"}), a.certificates),
		op.New(spec("POST /v1/things/{thing}/revoke", "Revoke a robot's certificates.", auth.Admins...).With(
			op.Command{Use: "robots revoke THING -reason!", Short: "Revoke a robot's certificates", Long: "The certificates stop working everywhere within two seconds, and the robot gets no new one until it is released.", Example: "robots revoke vic:00e20100 -reason stolen", Says: "{{.THING}} revoked: {{count .revoked `certificate`}}"}), a.revoke),
		op.New(release, a.release),
		op.New(spec("GET /v1/revocations", "List revoked certificates, the latest first.", auth.Staff...).With(
			op.Command{Use: "robots revocations -limit=100", Short: "List revoked certificates, the latest first", Example: "robots revocations -limit 20", Table: "THING; REVOKED; SERIAL; ENDS=.not_after; REASON"}), a.revocations),
		op.New(spec("GET /v1/waiting", "List robots that wait for approval.", auth.Staff...).With(
			op.Command{Use: "robots waiting", Short: "List robots that wait for approval", Long: "A robot without a claim secret or factory certificate waits until an operator compares its fingerprint and approves it.", Table: "THING; FINGERPRINT; ADDRESS=.addr; SINCE=.first; LAST ASKED=.last; TIMES; NOTE={{if .refused}}refused: {{.reason}}{{else if .revoked}}revoked: release it first{{else if .bound}}has another key: release it first{{else if .known}}registered, secret never used{{end}}"}), a.waiting),
		op.New(spec("POST /v1/waiting/{thing}/approve", "Approve a waiting robot.", auth.Support, auth.Admin).With(
			op.Command{Use: "robots approve THING FINGERPRINT", Short: "Approve a waiting robot", Long: "First compare the fingerprint with the one that the robot shows: any machine on the network can ask in its name.", Example: "robots approve vic:00e20100 7QK4-0ZTM-9R3X", Says: "{{.THING}} approved; it gets its certificate when it asks again"}), a.approve),
		op.New(spec("POST /v1/waiting/{thing}/refuse", "Refuse a waiting robot.", auth.Support, auth.Admin).With(
			op.Command{Use: "robots refuse THING FINGERPRINT -reason!", Short: "Refuse a waiting robot for a day", Example: `robots refuse vic:00e20100 7QK4-0ZTM-9R3X -reason "not one of ours"`, Says: "{{.THING}} refused"}), a.refuse),
		op.New(spec("GET /v1/batches", "List manufacturing batches.", auth.Staff...).With(
			op.Command{Use: "batches list", Short: "List manufacturing batches", Table: "BATCH=.name; SPECIES; ORGANISATION=.organization; VALID AFTER=day .valid_after; SERIALS={{if or .serial_from .serial_to}}{{or .serial_from `first`}} to {{or .serial_to `last`}}{{else}}all{{end}}; CREATED; DISABLED={{with .disabled}}{{.}}: {{$.reason}}{{end}}"}), a.batches),
		op.New(put, a.putBatch),
		op.New(spec("POST /v1/batches/{batch}/disable", "Disable a manufacturing batch, whose factory certificates are then refused.", auth.Admins...).With(
			op.Command{Use: "batches disable BATCH -reason!", Short: "Disable a batch, whose factory certificates are then refused", Long: "Device certificates of the batch's robots stay valid; revoke robots one by one to end those.", Example: `batches disable lot-2018 -reason "its key leaked"`, Says: "batch {{.BATCH}} disabled"}), a.disableBatch),
		op.New(spec("POST /v1/batches/{batch}/enable", "Enable a disabled batch.", auth.Admins...).With(
			op.Command{Use: "batches enable BATCH", Short: "Enable a disabled batch", Says: "batch {{.BATCH}} accepted"}), a.enableBatch),
		op.New(spec("GET /v1/factory-certificates", "List revoked factory certificates.", auth.Staff...).With(
			op.Command{Use: "batches revoked", Short: "List revoked factory certificates", Table: "CERTIFICATE=.certificate_id; REVOKED=.at; REASON"}), a.factoryCertificates),
		op.New(spec("POST /v1/factory-certificates/revoke", "Revoke a factory certificate.", auth.Admins...).With(
			op.Command{Use: "batches revoke-certificate ID=certificate_id -reason!", Short: "Revoke a factory certificate", Long: "ID is the certificate's serial number or its SHA-256 in hex, with or without colons, as printed by openssl x509 -serial or -fingerprint -sha256.", Example: "batches revoke-certificate 3FA9C1D2 -reason cloned", Says: "factory certificate {{.ID}} revoked"}), a.revokeFactory),
		op.New(enroll, a.enroll),
		op.New(renew, a.renew),
	}
}

// audited writes the audit line and then runs an operator's action.
func (a api) audited(ctx context.Context, action, object, detail string, do func() error) (op.None, error) {
	if err := a.cfg.Audit(ctx, action, object, detail); err != nil {
		return op.None{}, err
	}
	return op.None{}, do()
}

func (a api) register(ctx context.Context, n NewThing) (Registration, error) {
	id, err := thing.Parse(string(n.Thing))
	if err != nil {
		return Registration{}, errs.Coded(errs.Invalid, "thing_malformed", "%w", err)
	}
	if err := a.cfg.Audit(ctx, "thing.register", string(id), ""); err != nil {
		return Registration{}, err
	}
	secret, err := a.svc.Register(ctx, id)
	return Registration{Thing: id, Secret: secret.Reveal()}, err
}

func (a api) certificates(ctx context.Context, r robot) ([]Certificate, error) {
	rows, err := a.svc.Certificates(ctx, r.Thing)
	out := make([]Certificate, 0, len(rows))
	for _, r := range rows {
		out = append(out, certificateOf(r))
	}
	return out, err
}

func (a api) revoke(ctx context.Context, r because) (out RevokedCertificates, err error) {
	why, err := reason(r.Body.Reason)
	if err != nil {
		return out, err
	}
	_, err = a.audited(ctx, "thing.revoke", string(r.Thing), why, func() (err error) {
		out.Revoked, err = a.svc.Revoke(ctx, r.Thing, why)
		return err
	})
	return out, err
}

func (a api) release(ctx context.Context, r because) (Registration, error) {
	why, err := reason(r.Body.Reason)
	if err != nil {
		return Registration{}, err
	}
	if c := auth.CallerFrom(ctx); c.Role == auth.Owner {
		if err := a.owned(ctx, c.Account, r.Thing); err != nil {
			return Registration{}, err
		}
	}
	var secret logging.Secret
	_, err = a.audited(ctx, "thing.release", string(r.Thing), why, func() (err error) {
		secret, err = a.svc.Release(ctx, r.Thing, why)
		return err
	})
	return Registration{Thing: r.Thing, Secret: secret.Reveal()}, err
}

// owned returns nil if the robot is the account's. Another's answers as one that was never registered.
func (a api) owned(ctx context.Context, account string, id thing.ID) error {
	if a.cfg.Owns != nil {
		yes, err := a.cfg.Owns(ctx, account, id)
		if err != nil || yes {
			return err
		}
	}
	return errs.Coded(errs.NotFound, "unknown_thing", "%s was never registered", id)
}

func (a api) revocations(ctx context.Context, r revocationPage) ([]Revocation, error) {
	rows, err := a.svc.Revocations(ctx, r.Before, r.Limit)
	out := make([]Revocation, 0, len(rows))
	for _, r := range rows {
		out = append(out, Revocation{r.Thing, certificateOf(r)})
	}
	return out, err
}

func (a api) waiting(ctx context.Context, _ op.None) ([]Waiting, error) {
	rows, err := a.svc.Waiting(ctx)
	out := make([]Waiting, 0, len(rows))
	for _, w := range rows {
		out = append(out, Waiting{Thing: w.Thing, Fingerprint: w.Key.Short(), Key: w.Key.String(), Addr: w.Addr, First: w.First, Last: w.Last, Times: w.Times,
			Refused: w.Refused, Reason: w.Reason, Known: w.Known, Bound: w.Bound, Revoked: w.Revoked})
	}
	return out, err
}

func (a api) approve(ctx context.Context, r approval) (op.None, error) {
	shown, err := fingerprint(r.Body.Fingerprint)
	if err != nil {
		return op.None{}, err
	}
	return a.audited(ctx, "thing.approve", string(r.Thing), shown, func() error { return a.svc.Approve(ctx, r.Thing, shown) })
}

func (a api) refuse(ctx context.Context, r refusal) (op.None, error) {
	why, err := reason(r.Body.Reason)
	if err != nil {
		return op.None{}, err
	}
	shown, err := fingerprint(r.Body.Fingerprint)
	if err != nil {
		return op.None{}, err
	}
	return a.audited(ctx, "thing.refuse", string(r.Thing), shown+": "+why, func() error { return a.svc.Refuse(ctx, r.Thing, shown, why) })
}

func (a api) batches(ctx context.Context, _ op.None) ([]Batch, error) {
	rows, _, err := a.svc.Batches(ctx)
	out := make([]Batch, 0, len(rows))
	for _, b := range rows {
		x := Batch{Name: b.Name, Bundle: string(b.Bundle), Species: b.Species, Organization: b.Organization, ValidAfter: b.ValidAfter,
			SerialFrom: b.SerialFrom, SerialTo: b.SerialTo, Created: b.Created, Reason: b.Reason}
		if !b.Disabled.IsZero() {
			x.Disabled = &b.Disabled
		}
		out = append(out, x)
	}
	return out, err
}

func (a api) putBatch(ctx context.Context, r batchPut) (op.None, error) {
	b := r.Body
	if b.Name != "" && b.Name != r.Batch {
		return op.None{}, errs.Coded(errs.Invalid, "batch_malformed", "body names batch %.64q, the path %.64q", b.Name, r.Batch)
	}
	return a.audited(ctx, "batch.put", r.Batch, "", func() error {
		return a.svc.PutBatch(ctx, certs.Batch{Name: r.Batch, Bundle: []byte(b.Bundle), Species: b.Species, Organization: b.Organization,
			ValidAfter: b.ValidAfter, SerialFrom: b.SerialFrom, SerialTo: b.SerialTo})
	})
}

func (a api) disableBatch(ctx context.Context, r batchBecause) (op.None, error) {
	why, err := reason(r.Body.Reason)
	if err != nil {
		return op.None{}, err
	}
	return a.audited(ctx, "batch.disable", r.Batch, why, func() error { return a.svc.DisableBatch(ctx, r.Batch, why) })
}

func (a api) enableBatch(ctx context.Context, r batch) (op.None, error) {
	return a.audited(ctx, "batch.enable", r.Batch, "", func() error { return a.svc.EnableBatch(ctx, r.Batch) })
}

func (a api) factoryCertificates(ctx context.Context, _ op.None) ([]FactoryCertificate, error) {
	_, rows, err := a.svc.Batches(ctx)
	out := make([]FactoryCertificate, 0, len(rows))
	for _, r := range rows {
		out = append(out, FactoryCertificate(r))
	}
	return out, err
}

func (a api) revokeFactory(ctx context.Context, r FactoryRevocation) (op.None, error) {
	why, err := reason(r.Reason)
	if err != nil {
		return op.None{}, err
	}
	id := strings.TrimSpace(r.CertificateID)
	if id == "" || len(id) > 200 {
		return op.None{}, errs.Coded(errs.Invalid, "certificate_id", "certificate_id of %d bytes: want a serial number or a SHA-256 in hex", len(id))
	}
	return a.audited(ctx, "factory_certificate.revoke", id, why, func() error { return a.svc.RevokeFactoryCertificate(ctx, id, why) })
}

func (a api) registerAll(ctx context.Context, d delivery) (http.Handler, error) {
	if mt, _, _ := strings.Cut(d.Body.Type, ";"); strings.TrimSpace(mt) != "text/csv" {
		return nil, errs.New(errs.Invalid, "content type %.80q: want text/csv", mt)
	}
	if err := a.cfg.Audit(ctx, "thing.register", "", "a delivery from CSV"); err != nil {
		return nil, err
	}
	all, err := a.svc.RegisterAll(ctx, io.LimitReader(d.Body, certs.MaxCSV+1))
	if bad, ok := errors.AsType[*certs.DeliveryError](err); ok {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			kithttp.WriteJSON(w, kithttp.StatusOf(errs.Invalid),
				DeliveryProblem{kithttp.Problem{Error: errs.Public(err), Kind: errs.Invalid.String(), Code: errs.CodeOf(err)}, bad.Lines, bad.More})
		}), nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		out := csv.NewWriter(w)
		_ = out.Write([]string{"thing", "secret"}) // the peer may be gone: those without a secret may be registered again
		for _, x := range all {
			_ = out.Write([]string{string(x.Thing), x.Secret.Reveal()})
		}
		out.Flush()
	}), err
}

// reason returns a reason without space around it, if it can be kept.
func reason(s string) (string, error) {
	if s = strings.TrimSpace(s); s == "" || len(s) > maxReason || strings.ContainsRune(s, 0) {
		return "", errs.Coded(errs.Invalid, "reason", "reason of %d bytes: want 1 to %d, without zero bytes; the audit log keeps it", len(s), maxReason)
	}
	return s, nil
}

func fingerprint(s string) (string, error) {
	if s = strings.TrimSpace(s); s == "" || len(s) > 80 {
		return "", errs.Coded(errs.Invalid, "fingerprint", "fingerprint of %d bytes: want the one shown by the robot", len(s))
	}
	return s, nil
}
