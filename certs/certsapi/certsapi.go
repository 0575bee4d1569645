// Package certsapi serves enrolment over HTTPS, and the operations of people on identities.
//
// A refused claim is 401 "claim_refused" whichever half was wrong. Every operator's action is audited before it is done.
package certsapi

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"kennel/certs"
	"kennel/certs/certsclient"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

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
	Serial    string    `json:"serial"`
	Key       string    `json:"key"` // SHA-256 of the public key, hex
	Method    string    `json:"method"`
	NotBefore time.Time `json:"not_before"`
	NotAfter  time.Time `json:"not_after"`
	Revoked   time.Time `json:"revoked,omitzero"`
	Released  bool      `json:"released,omitempty"` // revoked because its key was given up
	Reason    string    `json:"reason,omitempty"`
}

type (
	enrolment struct {
		Request *http.Request      `request:""`
		Body    certsclient.Enroll `body:""`
	}
	renewal struct {
		Request *http.Request     `request:""`
		Body    certsclient.Renew `body:""`
	}
)

type api struct {
	svc *certs.Service
	cfg Config
}

// enroll answers a robot that must wait for approval with 202 rather than an error status.
func (a api) enroll(ctx context.Context, e enrolment) (any, error) {
	q := certs.EnrollRequest{
		Thing: e.Body.Thing, Secret: logging.Secret(e.Body.Secret), CSR: []byte(e.Body.CSR), Factory: []byte(e.Body.Factory),
		FactoryProof: e.Body.FactoryProof, Addr: e.Request.RemoteAddr,
	}
	if q.Secret == "" && len(q.Factory) == 0 && e.Request.TLS != nil {
		q.FactoryPeer = e.Request.TLS.PeerCertificates
	}
	c, err := a.svc.Enroll(ctx, q)
	if wait, ok := errors.AsType[*certs.MustWait](err); ok {
		retry := int(math.Ceil(errs.RetryOf(err).Seconds()))
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", strconv.Itoa(retry))
			kithttp.WriteJSON(w, http.StatusAccepted, certsclient.Wait{Waiting: errs.Public(err), Fingerprint: wait.Fingerprint, RetryS: retry})
		}), nil
	}
	return a.answer(c, err)
}

func (a api) renew(ctx context.Context, r renewal) (certsclient.Answer, error) {
	c, err := a.svc.Renew(ctx, certs.RenewRequest{Certificate: []byte(r.Body.Certificate), CSR: []byte(r.Body.CSR), Addr: r.Request.RemoteAddr})
	return a.answer(c, err)
}

func (a api) answer(c certs.Certificate, err error) (certsclient.Answer, error) {
	if err != nil { // the recorder has logged it with its exact reason
		return certsclient.Answer{}, err
	}
	return certsclient.Answer{Certificate: string(c.PEM()), Root: string(a.cfg.Root()), NotAfter: c.Chain[0].NotAfter.UTC(), MQTT: a.cfg.MQTT}, nil
}

func certificateOf(r certs.Record) Certificate {
	return Certificate{
		Serial: r.Serial, Key: r.Key.String(), Method: r.Method, NotBefore: r.NotBefore, NotAfter: r.NotAfter,
		Revoked: r.Revoked, Released: r.Released, Reason: r.Reason,
	}
}
