// Package certsapi serves enrolment over HTTPS, and the operations of people on identities.
//
//	POST /v1/enroll   {thing, csr, secret | factory, factory_proof | nothing} -> {certificate, root, not_after, mqtt}; the secret or the factory's
//	                  key decides. With neither: 202 {waiting, fingerprint, retry_s} until an operator approves
//	POST /v1/renew    {certificate, csr}         -> the same                          anyone; the key decides
//
// Errors are answered as kithttp does; a refused claim is 401 "claim_refused" whichever half was wrong. Every operator's action is audited
// before it is done.
package certsapi

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/certs"
	"kennel/certs/certsclient"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// timeout bounds one request; signing takes less than a millisecond, the database decides.
const timeout = 10 * time.Second

// Config holds the settings of the endpoints.
type Config struct {
	Root func() []byte // PEM of the trusted roots, handed to robots; asked each time, because roots are replaced with overlap
	MQTT string        // broker URL handed to robots
	// Audit writes one line about the action of the caller in ctx; an action whose line cannot be written is not done.
	Audit func(ctx context.Context, action, object, detail string) error
	// Owns reports whether account owns the robot. If nil, no robot has an owner and only operators release robots.
	Owns func(ctx context.Context, account string, id thing.ID) (bool, error)
	Log  *slog.Logger
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
	Released  bool       `json:"released,omitempty"` // revoked because its key was given up
	Reason    string     `json:"reason,omitempty"`
}

type enrollRequest struct {
	certsclient.Enroll
	peer []*x509.Certificate // of TLS
	addr string
}

type renewRequest struct {
	certsclient.Renew
	addr string
}

// Mount adds enrolment to mux, and the registration of many.
func Mount(mux *http.ServeMux, svc *certs.Service, cfg Config) {
	wrap := endpoint.Chain(kit.Recover(cfg.Log), kit.Timeout(timeout))
	a := api{svc, cfg}
	mux.Handle("POST "+certsclient.EnrollPath, orWait(wrap(kit.Typed(a.enroll))))
	mux.Handle("POST "+certsclient.RenewPath, kithttp.Handler(wrap(kit.Typed(a.renew)), decodeRenew))
	a.mountDelivery(mux)
}

type api struct {
	svc *certs.Service
	cfg Config
}

func (a api) enroll(ctx context.Context, req enrollRequest) (certsclient.Answer, error) {
	q := certs.EnrollRequest{
		Thing: req.Thing, Secret: logging.Secret(req.Secret), CSR: []byte(req.CSR), Factory: []byte(req.Factory),
		FactoryProof: req.FactoryProof, Addr: req.addr,
	}
	if q.Secret == "" && len(q.Factory) == 0 {
		q.FactoryPeer = req.peer
	}
	c, err := a.svc.Enroll(ctx, q)
	return a.answer(c, err)
}

// orWait serves enrolment. It answers a robot that must wait for approval with 202 rather than an error status.
func orWait(ep endpoint.Endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := decodeEnroll(r)
		var answer any
		if err == nil {
			answer, err = ep(r.Context(), req)
		}
		switch {
		case err == nil:
			kithttp.WriteJSON(w, http.StatusOK, answer)
		default:
			wait, ok := errors.AsType[*certs.MustWait](err)
			if !ok {
				kithttp.WriteError(w, err)
				return
			}
			retry := int(math.Ceil(errs.RetryOf(err).Seconds()))
			w.Header().Set("Retry-After", strconv.Itoa(retry))
			kithttp.WriteJSON(w, http.StatusAccepted, certsclient.Wait{Waiting: errs.Public(err), Fingerprint: wait.Fingerprint, RetryS: retry})
		}
	})
}

func (a api) renew(ctx context.Context, req renewRequest) (certsclient.Answer, error) {
	c, err := a.svc.Renew(ctx, certs.RenewRequest{Certificate: []byte(req.Certificate), CSR: []byte(req.CSR), Addr: req.addr})
	return a.answer(c, err)
}

func (a api) answer(c certs.Certificate, err error) (certsclient.Answer, error) {
	if err != nil { // the recorder has logged it with its exact reason
		return certsclient.Answer{}, err
	}
	return certsclient.Answer{Certificate: string(c.PEM()), Root: string(a.cfg.Root()), NotAfter: c.Chain[0].NotAfter.UTC(), MQTT: a.cfg.MQTT}, nil
}

func certificateOf(r certs.Record) Certificate {
	c := Certificate{
		Serial: r.Serial, Key: r.Key.String(), Method: r.Method, NotBefore: r.NotBefore, NotAfter: r.NotAfter,
		Released: r.Released, Reason: r.Reason,
	}
	if !r.Revoked.IsZero() {
		c.Revoked = &r.Revoked
	}
	return c
}

func decodeEnroll(r *http.Request) (any, error) {
	req := enrollRequest{addr: r.RemoteAddr}
	if r.TLS != nil {
		req.peer = r.TLS.PeerCertificates
	}
	err := kithttp.ReadJSON(r, &req.Enroll, certsclient.MaxBody)
	return req, err
}

func decodeRenew(r *http.Request) (any, error) {
	req := renewRequest{addr: r.RemoteAddr}
	err := kithttp.ReadJSON(r, &req.Renew, certsclient.MaxBody)
	return req, err
}
