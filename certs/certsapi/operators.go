package certsapi

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/certs"
	"kennel/certs/certsclient"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// maxReason is the longest reason an operator gives, in bytes.
const maxReason = 400

// Times of a delivery: reading it over a slow line, and writing 100,000 rows.
const (
	deliveryRead    = 2 * time.Minute
	deliveryTimeout = 3 * time.Minute
)

// Revocation is one row of GET /v1/revocations.
type Revocation struct {
	Thing thing.ID `json:"thing"`
	Certificate
}

// Waiting is one row of GET /v1/waiting.
type Waiting struct {
	Thing       thing.ID   `json:"thing"`
	Fingerprint string     `json:"fingerprint"` // short: compare it with the one that the robot shows
	Key         string     `json:"key"`         // all of it, hex
	Addr        string     `json:"addr"`
	First       time.Time  `json:"first"`
	Last        time.Time  `json:"last"`
	Times       int        `json:"times"`
	Refused     *time.Time `json:"refused,omitempty"`
	Reason      string     `json:"reason,omitempty"`
	Known       bool       `json:"known,omitempty"`   // registered
	Bound       bool       `json:"bound,omitempty"`   // to another key: release it before approving
	Revoked     bool       `json:"revoked,omitempty"` // release it before approving
}

// Batch is one row of GET /v1/batches, and the body of PUT /v1/batches/{batch}, where the last three fields are not read.
type Batch struct {
	Name         string        `json:"name,omitempty"`
	Bundle       string        `json:"bundle"` // PEM
	Species      thing.Species `json:"species,omitempty"`
	Organization string        `json:"organization,omitempty"`
	ValidAfter   time.Time     `json:"valid_after,omitzero"`
	SerialFrom   string        `json:"serial_from,omitempty"`
	SerialTo     string        `json:"serial_to,omitempty"`
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

// approvers let waiting robots in.
var approvers = []auth.Role{auth.Support, auth.Admin}

// order is a request to an operators' endpoint: a thing or a batch, and the body.
type order struct {
	Thing         thing.ID      `json:"-"`
	Batch         string        `json:"-"`
	Before        time.Time     `json:"-"`
	Limit         int           `json:"-"`
	Reason        string        `json:"reason"`
	Fingerprint   string        `json:"fingerprint"`
	CertificateID string        `json:"certificate_id"`
	csv           io.ReadCloser // of a delivery
	batch         Batch
}

func (a api) mountOperators(mux *http.ServeMux, wrap endpoint.Middleware) {
	for _, r := range []struct {
		pattern string
		roles   []auth.Role
		do      endpoint.Endpoint
		decode  func(*http.Request) (any, error)
	}{
		{"POST /v1/things/{thing}/revoke", auth.Admins, kit.Typed(a.revoke), decodeOrder(bodyReason)},
		{"POST /v1/things/{thing}/release", append([]auth.Role{auth.Owner}, auth.Admins...), kit.Typed(a.release), decodeOrder(bodyReason)},
		{"GET /v1/revocations", auth.Staff, kit.Typed(a.revocations), decodePage},
		{"GET /v1/waiting", auth.Staff, kit.Typed(a.waiting), decodeOrder(0)},
		{"POST /v1/waiting/{thing}/approve", approvers, kit.Typed(a.approve), decodeOrder(bodyFingerprint)},
		{"POST /v1/waiting/{thing}/refuse", approvers, kit.Typed(a.refuse), decodeOrder(bodyFingerprint | bodyReason)},
		{"GET /v1/batches", auth.Staff, kit.Typed(a.batches), decodeOrder(0)},
		{"PUT /v1/batches/{batch}", auth.Admins, kit.Typed(a.putBatch), decodeBatch},
		{"POST /v1/batches/{batch}/disable", auth.Admins, kit.Typed(a.disableBatch), decodeOrder(bodyReason)},
		{"POST /v1/batches/{batch}/enable", auth.Admins, kit.Typed(a.enableBatch), decodeOrder(0)},
		{"GET /v1/factory-certificates", auth.Staff, kit.Typed(a.factoryCertificates), decodeOrder(0)},
		{"POST /v1/factory-certificates/revoke", auth.Admins, kit.Typed(a.revokeFactory), decodeOrder(bodyCertificate | bodyReason)},
	} {
		mux.Handle(r.pattern, kithttp.Handler(wrap(auth.Require(r.roles...)(r.do)), r.decode))
	}
	long := endpoint.Chain(kit.Recover(a.cfg.Log), kit.Timeout(deliveryTimeout), auth.Require(auth.Admins...))
	mux.Handle("POST /v1/things/batch", delivery(long(kit.Typed(a.registerAll))))
}

// audited writes the audit line and then runs an operator's action.
func (a api) audited(ctx context.Context, action, object, detail string, do func() error) (any, error) {
	if err := a.cfg.Audit(ctx, action, object, detail); err != nil {
		return nil, err
	}
	return nil, do()
}

func (a api) revoke(ctx context.Context, o order) (any, error) {
	var n int
	_, err := a.audited(ctx, "thing.revoke", string(o.Thing), o.Reason, func() (err error) {
		n, err = a.svc.Revoke(ctx, o.Thing, o.Reason)
		return err
	})
	if err != nil {
		return nil, err
	}
	return map[string]int{"revoked": n}, nil
}

func (a api) release(ctx context.Context, o order) (any, error) {
	if c := auth.CallerFrom(ctx); c.Role == auth.Owner {
		if err := a.owned(ctx, c.Account, o.Thing); err != nil {
			return nil, err
		}
	}
	var secret logging.Secret
	_, err := a.audited(ctx, "thing.release", string(o.Thing), o.Reason, func() (err error) {
		secret, err = a.svc.Release(ctx, o.Thing, o.Reason)
		return err
	})
	if err != nil {
		return nil, err
	}
	return Registration{Thing: o.Thing, Secret: secret.Reveal()}, nil
}

// owned returns nil if the robot is the account's. Another's answers as one that was never registered.
func (a api) owned(ctx context.Context, account string, id thing.ID) error {
	if a.cfg.Owns != nil {
		yes, err := a.cfg.Owns(ctx, account, id)
		if err != nil || yes {
			return err
		}
	}
	return errs.Coded(errs.NotFound, "unknown_thing", "%s was never registered here", id)
}

func (a api) revocations(ctx context.Context, o order) (any, error) {
	rows, err := a.svc.Revocations(ctx, o.Before, o.Limit)
	out := make([]Revocation, 0, len(rows))
	for _, r := range rows {
		out = append(out, Revocation{r.Thing, certificateOf(r)})
	}
	return out, err
}

func (a api) waiting(ctx context.Context, _ order) (any, error) {
	rows, err := a.svc.Waiting(ctx)
	out := make([]Waiting, 0, len(rows))
	for _, w := range rows {
		x := Waiting{Thing: w.Thing, Fingerprint: w.Key.Short(), Key: w.Key.String(), Addr: w.Addr, First: w.First, Last: w.Last, Times: w.Times,
			Reason: w.Reason, Known: w.Known, Bound: w.Bound, Revoked: w.Revoked}
		if !w.Refused.IsZero() {
			x.Refused = &w.Refused
		}
		out = append(out, x)
	}
	return out, err
}

func (a api) approve(ctx context.Context, o order) (any, error) {
	return a.audited(ctx, "thing.approve", string(o.Thing), o.Fingerprint, func() error { return a.svc.Approve(ctx, o.Thing, o.Fingerprint) })
}

func (a api) refuse(ctx context.Context, o order) (any, error) {
	return a.audited(ctx, "thing.refuse", string(o.Thing), o.Fingerprint+": "+o.Reason,
		func() error { return a.svc.Refuse(ctx, o.Thing, o.Fingerprint, o.Reason) })
}

func (a api) batches(ctx context.Context, _ order) (any, error) {
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

func (a api) putBatch(ctx context.Context, o order) (any, error) {
	b := o.batch
	return a.audited(ctx, "batch.put", o.Batch, "", func() error {
		return a.svc.PutBatch(ctx, certs.Batch{Name: o.Batch, Bundle: []byte(b.Bundle), Species: b.Species, Organization: b.Organization,
			ValidAfter: b.ValidAfter,
			SerialFrom: b.SerialFrom, SerialTo: b.SerialTo})
	})
}

func (a api) disableBatch(ctx context.Context, o order) (any, error) {
	return a.audited(ctx, "batch.disable", o.Batch, o.Reason, func() error { return a.svc.DisableBatch(ctx, o.Batch, o.Reason) })
}

func (a api) enableBatch(ctx context.Context, o order) (any, error) {
	return a.audited(ctx, "batch.enable", o.Batch, "", func() error { return a.svc.EnableBatch(ctx, o.Batch) })
}

func (a api) factoryCertificates(ctx context.Context, _ order) (any, error) {
	_, rows, err := a.svc.Batches(ctx)
	out := make([]FactoryCertificate, 0, len(rows))
	for _, r := range rows {
		out = append(out, FactoryCertificate(r))
	}
	return out, err
}

func (a api) revokeFactory(ctx context.Context, o order) (any, error) {
	return a.audited(ctx, "factory_certificate.revoke", o.CertificateID, o.Reason,
		func() error { return a.svc.RevokeFactoryCertificate(ctx, o.CertificateID, o.Reason) })
}

func (a api) registerAll(ctx context.Context, o order) ([]certs.Registered, error) {
	if err := a.cfg.Audit(ctx, "thing.register", "", "a delivery from CSV"); err != nil {
		return nil, err
	}
	return a.svc.RegisterAll(ctx, o.csv)
}

// delivery serves the registration of many, CSV in and CSV out.
func delivery(ep endpoint.Endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if mt, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(mt) != "text/csv" {
			kithttp.WriteError(w, errs.New(errs.Invalid, "content type %.80q: want text/csv", mt))
			return
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(deliveryRead)) // fails only for writers without a connection, in tests
		resp, err := ep(r.Context(), order{csv: http.MaxBytesReader(w, r.Body, certs.MaxCSV+1)})
		if bad, ok := errors.AsType[*certs.DeliveryError](err); ok {
			kithttp.WriteJSON(w, kithttp.StatusOf(errs.Invalid),
				DeliveryProblem{kithttp.Problem{Error: errs.Public(err), Kind: errs.Invalid.String(), Code: errs.CodeOf(err)}, bad.Lines, bad.More})
			return
		}
		if err != nil {
			kithttp.WriteError(w, err)
			return
		}
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		out := csv.NewWriter(w)
		_ = out.Write([]string{"thing", "secret"}) // the peer may be gone: those without a secret may be registered again
		for _, x := range resp.([]certs.Registered) {
			_ = out.Write([]string{string(x.Thing), x.Secret.Reveal()})
		}
		out.Flush()
	})
}

// Fields that the body of an order must have.
const (
	bodyReason = 1 << iota
	bodyFingerprint
	bodyCertificate
)

// decodeOrder reads thing and batch from the path, and a body if there is one to read.
func decodeOrder(want int) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		o := order{Batch: r.PathValue("batch")}
		if text := r.PathValue("thing"); text != "" {
			id, err := parseThing(text)
			if err != nil {
				return nil, err
			}
			o.Thing = id.(thing.ID)
		}
		if want == 0 {
			return o, nil
		}
		if err := kithttp.ReadJSON(r, &o, certsclient.MaxBody); err != nil {
			return nil, err
		}
		o.Reason, o.Fingerprint, o.CertificateID = strings.TrimSpace(o.Reason), strings.TrimSpace(o.Fingerprint), strings.TrimSpace(o.CertificateID)
		switch {
		case want&bodyReason != 0 && (o.Reason == "" || len(o.Reason) > maxReason || strings.ContainsRune(o.Reason, 0)):
			return nil, errs.Coded(errs.Invalid, "reason", "reason of %d bytes: want 1 to %d, without zero bytes; the audit log keeps it",
				len(o.Reason), maxReason)
		case want&bodyFingerprint != 0 && (o.Fingerprint == "" || len(o.Fingerprint) > 80):
			return nil, errs.Coded(errs.Invalid, "fingerprint", "fingerprint of %d bytes: want the one that the robot shows", len(o.Fingerprint))
		case want&bodyCertificate != 0 && (o.CertificateID == "" || len(o.CertificateID) > 200):
			return nil, errs.Coded(errs.Invalid, "certificate_id", "certificate_id of %d bytes: want a serial number or a SHA-256, hex", len(o.CertificateID))
		}
		return o, nil
	}
}

func decodeBatch(r *http.Request) (any, error) {
	o := order{Batch: r.PathValue("batch")}
	err := kithttp.ReadJSON(r, &o.batch, 2*certs.MaxBundle)
	if err == nil && o.batch.Name != "" && o.batch.Name != o.Batch {
		err = errs.Coded(errs.Invalid, "batch_malformed", "body names batch %.64q, the path %.64q", o.batch.Name, o.Batch)
	}
	return o, err
}

func decodePage(r *http.Request) (any, error) {
	var o order
	q := r.URL.Query()
	if v := q.Get("before"); v != "" {
		t, err := time.Parse(time.RFC3339Nano, v)
		if err != nil {
			return nil, errs.New(errs.Invalid, "before=%.40q: want a time such as 2026-05-06T07:08:09Z", v)
		}
		o.Before = t
	}
	if v := q.Get("limit"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > certs.MaxRows {
			return nil, errs.New(errs.Invalid, "limit=%.20q: want 1 to %d", v, certs.MaxRows)
		}
		o.Limit = n
	}
	return o, nil
}
