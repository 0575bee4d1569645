// Package certsapi serves enrolment over HTTPS.
//
//	POST /v1/enroll                      {thing, secret, csr}   -> {certificate, root, not_after, mqtt}    anyone; the claim secret decides
//	POST /v1/renew                       {certificate, csr}     -> the same                                anyone; the key decides
//	POST /v1/things                      {thing}                -> {thing, secret}                         admin; the secret is shown this once
//	GET  /v1/things/{thing}/certificates                        -> [{serial, key, not_before, ...}]        staff
//
// Error answers are those of kithttp; a refused claim is 401 "claim_refused" whichever half was wrong.
package certsapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/certs"
	"kennel/certs/certsclient"
	"kennel/certs/thing"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
)

// timeout bounds one request; signing takes less than a millisecond, the database decides.
const timeout = 10 * time.Second

// Config holds what the answers need besides the rules.
type Config struct {
	Root []byte // PEM, handed to robots
	MQTT string // broker URL handed to robots
	// Audit writes one line about what the caller in ctx did; an action whose line cannot be written is not done.
	Audit func(ctx context.Context, action, object, detail string) error
	Log   *slog.Logger
}

// Registration is the answer of POST /v1/things.
type Registration struct {
	Thing  thing.ID `json:"thing"`
	Secret string   `json:"secret"`
}

// Certificate is one inventory row of GET /v1/things/{thing}/certificates.
type Certificate struct {
	Serial    string     `json:"serial"`
	Key       string     `json:"key"` // SHA-256 of the public key, hex
	Method    string     `json:"method"`
	NotBefore time.Time  `json:"not_before"`
	NotAfter  time.Time  `json:"not_after"`
	Revoked   *time.Time `json:"revoked,omitempty"`
	Reason    string     `json:"reason,omitempty"`
}

type enrollRequest struct {
	certsclient.Enroll
	addr string
}

type renewRequest struct {
	certsclient.Renew
	addr string
}

// Mount adds the endpoints to mux. Callers of the operator's endpoints are those of kit.CallerFrom.
func Mount(mux *http.ServeMux, svc *certs.Service, cfg Config) {
	wrap := endpoint.Chain(kit.Recover(cfg.Log), kit.Timeout(timeout))
	a := api{svc, cfg}
	mux.Handle("POST "+certsclient.EnrollPath, kithttp.Handler(wrap(kit.Typed(a.enroll)), decodeEnroll))
	mux.Handle("POST "+certsclient.RenewPath, kithttp.Handler(wrap(kit.Typed(a.renew)), decodeRenew))
	mux.Handle("POST /v1/things", kithttp.Handler(wrap(kit.Require(kit.Admins...)(kit.Typed(a.register))), decodeRegister))
	mux.Handle("GET /v1/things/{thing}/certificates", kithttp.Handler(wrap(kit.Require(kit.Staff...)(kit.Typed(a.certificates))), decodeThing))
}

type api struct {
	svc *certs.Service
	cfg Config
}

func (a api) enroll(ctx context.Context, req enrollRequest) (certsclient.Answer, error) {
	c, err := a.svc.Enroll(ctx, certs.EnrollRequest{Thing: req.Thing, Secret: certs.Secret(req.Secret), CSR: []byte(req.CSR), Addr: req.addr})
	return a.answer(c, err)
}

func (a api) renew(ctx context.Context, req renewRequest) (certsclient.Answer, error) {
	c, err := a.svc.Renew(ctx, certs.RenewRequest{Certificate: []byte(req.Certificate), CSR: []byte(req.CSR), Addr: req.addr})
	return a.answer(c, err)
}

func (a api) answer(c certs.Certificate, err error) (certsclient.Answer, error) {
	if err != nil { // the recorder has logged it with its exact reason
		return certsclient.Answer{}, err
	}
	return certsclient.Answer{Certificate: string(c.PEM()), Root: string(a.cfg.Root), NotAfter: c.Chain[0].NotAfter.UTC(), MQTT: a.cfg.MQTT}, nil
}

func (a api) register(ctx context.Context, id thing.ID) (Registration, error) {
	if err := a.cfg.Audit(ctx, "thing.register", string(id), ""); err != nil {
		return Registration{}, err
	}
	secret, err := a.svc.Register(ctx, id)
	if err != nil {
		return Registration{}, err
	}
	return Registration{Thing: id, Secret: secret.Reveal()}, nil
}

func (a api) certificates(ctx context.Context, id thing.ID) ([]Certificate, error) {
	rows, err := a.svc.Certificates(ctx, id)
	if err != nil {
		return nil, err
	}
	out := make([]Certificate, 0, len(rows))
	for _, r := range rows {
		c := Certificate{Serial: r.Serial, Key: r.Key.String(), Method: r.Method, NotBefore: r.NotBefore, NotAfter: r.NotAfter, Reason: r.Reason}
		if !r.Revoked.IsZero() {
			c.Revoked = &r.Revoked
		}
		out = append(out, c)
	}
	return out, nil
}

func decodeEnroll(r *http.Request) (any, error) {
	req := enrollRequest{addr: r.RemoteAddr}
	err := kithttp.ReadJSON(r, &req.Enroll, certsclient.MaxBody)
	return req, err
}

func decodeRenew(r *http.Request) (any, error) {
	req := renewRequest{addr: r.RemoteAddr}
	err := kithttp.ReadJSON(r, &req.Renew, certsclient.MaxBody)
	return req, err
}

func decodeRegister(r *http.Request) (any, error) {
	var body struct {
		Thing string `json:"thing"`
	}
	if err := kithttp.ReadJSON(r, &body, certsclient.MaxBody); err != nil {
		return nil, err
	}
	return parseThing(body.Thing)
}

func decodeThing(r *http.Request) (any, error) { return parseThing(r.PathValue("thing")) }

func parseThing(s string) (any, error) {
	id, err := thing.Parse(s)
	if err != nil {
		return nil, errs.Coded(errs.Invalid, "thing_malformed", "%w", err)
	}
	return id, nil
}
