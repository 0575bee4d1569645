// Package hawkbitapi serves hawkBit's Direct Device Integration API, as clients such as SWUpdate speak it, below /default/controller/v1/{thing}:
//
//	GET  .                                                  when to ask again, and links to what there is to do
//	GET  ./deploymentBase/{action}                          what to install          POST ./deploymentBase/{action}/feedback
//	GET  ./cancelAction/{action}                            what to stop             POST ./cancelAction/{action}/feedback
//	GET  ./softwaremodules/{version}/artifacts/{file}       the file, or ranges of it
//	PUT  ./configData                                       what the device says of itself
//
// A device shows its certificate, or "Authorization: TargetToken TOKEN" (infra/adr/0030).
package hawkbitapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/updates/artifact"
	"kennel/cloud/updates/artifact/artifactapi"
	"kennel/cloud/updates/hawkbit"
	"kennel/infra/admission"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/op"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
	"kennel/ota"
)

// Limits of requests.
const (
	timeout = 15 * time.Second // but for downloads
	maxBody = 256 << 10        // feedback of SWUpdate has up to 48 lines of its log
)

// Wrong tokens for one device from one address: a burst, then one now and then.
const (
	guessEvery = 30 * time.Second
	guessBurst = 10
)

// Config holds what the endpoints need beside their service.
type Config struct {
	Known    func(ctx context.Context, id thing.ID) error         // NotFound for an unregistered thing
	Identify func(chain []*x509.Certificate) (thing.ID, error)    // whose certificate it is
	Revoked  func(ctx context.Context, id thing.ID) (bool, error) // its identity was taken away
	Gateway  logging.Secret                                       // a token for every registered device; "": none
	Record   func(ctx context.Context, s registry.Step) error     // keeps a refusal for the doctor
	Download artifactapi.Sender
	Log      *slog.Logger
}

// base is the address of a device; tenants are those of other servers.
const base = "/{tenant}/controller/v1/{thing}"

const tenant = "default"

type api struct {
	svc     *hawkbit.Service
	cfg     Config
	guesses *ratelimit.Keyed // by device and address
}

// Mount adds the device API to mux.
func Mount(mux *http.ServeMux, svc *hawkbit.Service, cfg Config) {
	a := &api{svc, cfg, ratelimit.New(guessEvery, guessBurst)}
	mux.Handle("GET "+base, a.door(a.poll))
	mux.Handle("GET "+base+"/deploymentBase/{action}", a.door(a.deployment))
	mux.Handle("POST "+base+"/deploymentBase/{action}/feedback", a.door(a.feedback(svc.Feedback)))
	mux.Handle("GET "+base+"/cancelAction/{action}", a.door(a.cancel))
	mux.Handle("POST "+base+"/cancelAction/{action}/feedback", a.door(a.feedback(svc.Stopped)))
	mux.Handle("GET "+base+"/softwaremodules/{version}/artifacts/{file}", a.door(a.download))
	mux.Handle("PUT "+base+"/configData", a.door(a.configData))
}

// DeviceToken is the token that a device shows.
type DeviceToken struct {
	Thing thing.ID `json:"thing"`
	Token string   `json:"token"`
}

type device struct {
	Thing thing.ID `path:"thing"`
}

// Operations returns what operators may do.
func Operations(svc *hawkbit.Service, known func(context.Context, thing.ID) error, audit func(ctx context.Context, action, object, detail string) error) op.List {
	// The line of the audit log comes first: it tells what became of the request, too.
	noted := func(ctx context.Context, id thing.ID, what string) error {
		err := audit(ctx, hawkbit.AuditToken, string(id), what)
		if err == nil {
			err = known(ctx, id)
		}
		return err
	}
	return op.List{
		op.New(op.Spec{Route: "POST /v1/things/{thing}/device-token", Tag: "Identity", Roles: auth.Admins,
			Summary: "Create a token for a device that runs SWUpdate. It replaces an earlier one and is shown only once."},
			func(ctx context.Context, d device) (DeviceToken, error) {
				if err := noted(ctx, d.Thing, "new"); err != nil {
					return DeviceToken{}, err
				}
				t, err := svc.NewToken(ctx, d.Thing)
				return DeviceToken{d.Thing, t.Reveal()}, err
			}),
		op.New(op.Spec{Route: "DELETE /v1/things/{thing}/device-token", Tag: "Identity", Summary: "Revoke a device's SWUpdate token.", Roles: auth.Admins},
			func(ctx context.Context, d device) (op.None, error) {
				if err := noted(ctx, d.Thing, "none"); err != nil {
					return op.None{}, err
				}
				return op.None{}, svc.Store.SetToken(ctx, d.Thing, nil)
			}),
	}
}

// request is one of a device that proved who it is.
type request struct {
	*http.Request               // which ends after timeout
	whole         *http.Request // as it came
	id            thing.ID
	agent         string
}

// answerer answers by itself, in place of JSON.
type answerer func(w http.ResponseWriter)

// door lets devices through that prove who they are, and answers with what next returns; nil: an empty answer.
func (a *api) door(next func(r request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := a.prove(r)
		var answer any
		if err == nil {
			admission.From(r.Context()).Proved(func() bool { return true })
			ctx, cancel := context.WithTimeout(r.Context(), timeout)
			defer cancel()
			answer, err = next(request{r.WithContext(ctx), r, id, r.UserAgent()})
		}
		if own, ok := answer.(answerer); ok && err == nil {
			own(w)
			return
		}
		switch {
		case errs.CodeOf(err) == "action_gone":
			kithttp.WriteJSON(w, http.StatusGone, kithttp.Problem{Error: errs.Public(err), Kind: errs.KindOf(err).String(), Code: errs.CodeOf(err)})
		case err != nil:
			if errs.KindOf(err) == errs.Internal {
				a.cfg.Log.ErrorContext(r.Context(), "request of a device failed", "path", r.URL.Path, logging.Err, err)
			}
			kithttp.WriteError(w, err)
		case answer != nil:
			kithttp.WriteJSON(w, http.StatusOK, answer)
		}
	})
}

// prove returns the device that a request is about and proves to come from. Without a good proof every id is answered alike, and with one every other id.
func (a *api) prove(r *http.Request) (thing.ID, error) {
	id, malformed := thing.Parse(r.PathValue("thing"))
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		who, err := a.cfg.Identify(r.TLS.PeerCertificates)
		switch {
		case err != nil || who == "":
			return "", errs.Coded(errs.Unauthenticated, "client_certificate", "the certificate does not belong to a device of this fleet: %w", err)
		case who != id:
			return "", auth.UnknownThing(thing.ID(r.PathValue("thing")))
		}
		return a.ours(r, id)
	}
	scheme, word, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token := logging.Secret(strings.TrimSpace(word))
	switch {
	case strings.EqualFold(scheme, "GatewayToken") && a.cfg.Gateway != "" && equal(token, a.cfg.Gateway):
		if malformed != nil || a.cfg.Known(r.Context(), id) != nil {
			return "", auth.UnknownThing(thing.ID(r.PathValue("thing")))
		}
		return a.ours(r, id)
	case strings.EqualFold(scheme, "TargetToken") && malformed == nil && token != "":
		key := string(id) + " " + ratelimit.Network(auth.CallerFrom(r.Context()).Addr)
		if wait := a.guesses.Wait(key); wait > 0 {
			return "", &errs.Error{Kind: errs.Exhausted, Code: "too_many_guesses", Msg: "too many wrong tokens for this device from this address", Retry: wait}
		}
		good, err := a.svc.Check(r.Context(), id, token)
		if err != nil {
			return "", err
		}
		if good {
			return a.ours(r, id)
		}
		a.guesses.Allow(key)
		if err := a.cfg.Record(r.Context(), registry.Step{Thing: id, Name: registry.StepUpdater, Code: registry.CodeDeviceToken, Peer: auth.CallerFrom(r.Context()).Addr, Version: r.UserAgent(), Detail: "its target token is wrong, or it has none"}); err != nil {
			a.cfg.Log.WarnContext(r.Context(), "refusal of a device not kept", logging.Thing, id, logging.Err, err)
		}
	}
	return "", errs.Coded(errs.Unauthenticated, registry.CodeDeviceToken, `want the certificate of this device, or "Authorization: TargetToken" and its token; kennelctl robots device-token makes one`)
}

func equal(x, y logging.Secret) bool {
	a, b := sha256.Sum256([]byte(x.Reveal())), sha256.Sum256([]byte(y.Reveal()))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// ours refuses a device that proved who it is if its identity was taken away, or if it asks for another tenant.
func (a *api) ours(r *http.Request, id thing.ID) (thing.ID, error) {
	if !strings.EqualFold(r.PathValue("tenant"), tenant) {
		return "", errs.Coded(errs.NotFound, "no_tenant", "tenant %.40q: want %s", r.PathValue("tenant"), tenant)
	}
	revoked, err := a.cfg.Revoked(r.Context(), id)
	if err == nil && revoked {
		err = errs.Coded(errs.Unauthenticated, "revoked", "the identity of %s was revoked", id)
	}
	return id, err
}

// object is one of JSON.
type object = map[string]any

// at returns a link to an address below the device's.
func (r request) at(path ...string) object {
	u := url.URL{Scheme: "https", Host: r.Host}
	if r.TLS == nil {
		u.Scheme = "http"
	}
	return object{"href": u.JoinPath(append([]string{tenant, "controller", "v1", string(r.id)}, path...)...).String()}
}

// action reads the number of an action.
func (r request) action() (int32, error) {
	n, err := strconv.ParseInt(r.PathValue("action"), 10, 32)
	if err != nil || n < 1 {
		return 0, errs.New(errs.Invalid, "action %.20q: want a number from 1", r.PathValue("action"))
	}
	return int32(n), nil
}

// body reads the body of a request.
func (r request) body() ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, errs.New(errs.Invalid, "read body: %w", err)
	case len(b) > maxBody:
		return nil, errs.New(errs.Invalid, "body is larger than %d bytes", maxBody)
	}
	return b, nil
}

func (a *api) poll(r request) (any, error) {
	d, err := a.svc.Poll(r.Context(), r.id, r.agent)
	if err != nil {
		return nil, err
	}
	links, action, sleep := object{}, strconv.Itoa(int(d.Action)), int(d.Sleep.Seconds())
	if d.State.Open() {
		links["deploymentBase"] = r.at("deploymentBase", action)
	}
	if d.State == hawkbit.Cancel {
		links["cancelAction"] = r.at("cancelAction", action)
	}
	if !d.Told {
		links["configData"] = r.at("configData")
	}
	return object{"config": object{"polling": object{"sleep": fmt.Sprintf("%02d:%02d:%02d", sleep/3600, sleep/60%60, sleep%60)}}, "_links": links}, nil
}

// fileName is the name of a release's file.
func fileName(f artifact.Artifact) string {
	return string(f.Species) + "-" + string(f.Version) + ".swu"
}

func (a *api) deployment(r request) (any, error) {
	action, err := r.action()
	if err != nil {
		return nil, err
	}
	d, f, err := a.svc.Fetch(r.Context(), r.id, action, r.agent)
	if err != nil {
		return nil, err
	}
	how := "forced"
	if d.Terms.Waits {
		how = "attempt" // when the device likes
	}
	link := r.at("softwaremodules", string(f.Version), "artifacts", fileName(f))
	out := object{"download": how, "update": how, "chunks": []object{{"part": "os", "version": f.Version, "name": f.Species, "artifacts": []object{{
		"filename": fileName(f), "size": f.Size, "hashes": object{"sha1": f.SHA1, "md5": f.MD5, "sha256": f.SHA256},
		"_links": object{"download": link, "download-http": link}, // there is no way without TLS, and clients ask for one of both
	}}}}}
	if d.Terms.Window {
		out["maintenanceWindow"] = "available" // outside it nothing is offered
	}
	return object{"id": strconv.Itoa(int(action)), "deployment": out}, nil
}

func (a *api) feedback(take func(ctx context.Context, id thing.ID, action int32, f hawkbit.Feedback, agent string) error) func(r request) (any, error) {
	return func(r request) (any, error) {
		action, err := r.action()
		if err != nil {
			return nil, err
		}
		b, err := r.body()
		if err != nil {
			return nil, err
		}
		f, err := hawkbit.ParseFeedback(b)
		if err != nil {
			return nil, err
		}
		return nil, take(r.Context(), r.id, action, f, r.agent)
	}
}

func (a *api) cancel(r request) (any, error) {
	action, err := r.action()
	if err != nil {
		return nil, err
	}
	if err := a.svc.Cancelling(r.Context(), r.id, action); err != nil {
		return nil, err
	}
	id := strconv.Itoa(int(action))
	return object{"id": id, "cancelAction": object{"stopId": id}}, nil
}

func (a *api) configData(r request) (any, error) {
	b, err := r.body()
	if err != nil {
		return nil, err
	}
	var body struct {
		Mode string            `json:"mode"`
		Data map[string]string `json:"data"`
	}
	if err := json.Unmarshal(b, &body); err != nil {
		return nil, errs.New(errs.Invalid, "configData: %w", err)
	}
	return nil, a.svc.Describe(r.Context(), r.id, body.Mode, body.Data, r.agent)
}

func (a *api) download(r request) (any, error) {
	d, f, err := a.svc.File(r.Context(), r.id, ota.Version(r.PathValue("version")))
	if err == nil && r.PathValue("file") != fileName(f) {
		err = errs.Coded(errs.NotFound, "no_file", "file %.80q: want %s", r.PathValue("file"), fileName(f))
	}
	if err != nil {
		return nil, err
	}
	return answerer(func(w http.ResponseWriter) {
		if d.Terms.Rate > 0 {
			w = &paced{w, r.whole.Context(), rate.NewLimiter(rate.Limit(d.Terms.Rate), piece)}
		}
		a.cfg.Download(w, r.whole, f)
	}), nil
}

// piece is how many bytes are written at once.
const piece = 32 << 10

// paced writes at most so many bytes a second.
type paced struct {
	http.ResponseWriter
	ctx   context.Context
	limit *rate.Limiter
}

// Write implements io.Writer.
func (p *paced) Write(b []byte) (n int, err error) {
	for len(b) > n && err == nil {
		part := b[n:min(len(b), n+piece)]
		if err = p.limit.WaitN(p.ctx, len(part)); err == nil {
			var k int
			k, err = p.ResponseWriter.Write(part)
			n += k
		}
	}
	return n, err
}
