// Package doorapi watches the calls of original robots over gRPC and HTTP for package door, and shows operators the strangers.
package doorapi

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"html/template"
	"net/http"
	"path"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/originals/door"
	"kennel/cloud/page"
	"kennel/infra/auth"
	"kennel/infra/kit/kitgrpc"
	"kennel/infra/logging"
	"kennel/infra/op"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
)

// notServed is the answer to calls of services that this cloud does not have.
const notServed = "this cloud does not serve that call; the operator's doctor shows which robot asked for it"

// noUpdate is the answer to robots that ask for an archive of their software which no channel offers (VEC-OTA-18).
const noUpdate = "no channel of this cloud offers that update: the robot keeps the software that it has, and shows error 203"

// accessToken is the metadata, or the header, that carries an access token.
const accessToken = "anki-access-token"

// Prove returns the robot that a certificate or an access token proves; "" if neither does.
type Prove func(ctx context.Context, chain []*x509.Certificate, token logging.Secret) thing.ID

// proveEvery is how often a proof is looked at that came before: often enough for a call to be a sign of life, and to keep a busy robot's
// calls cheap.
const proveEvery = 20 * time.Second

// Watch is safe for concurrent use.
type Watch struct {
	door  *door.Door
	prove Prove
	again *ratelimit.Keyed // by proof, service and answer
}

// NewWatch returns what watches calls for door.
func NewWatch(d *door.Door, prove Prove) *Watch {
	return &Watch{d, prove, ratelimit.New(proveEvery, 1)}
}

// Unary watches calls with one answer.
func (w *Watch) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	resp, err := next(ctx, req)
	w.note(ctx, info.FullMethod, err)
	return resp, err
}

// Stream watches streams, and calls that are not served.
func (w *Watch) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	err := next(srv, ss)
	w.note(ss.Context(), info.FullMethod, err)
	return err
}

// note tells the door of a call that ended. A robot that proved itself was there, whatever came of its call.
func (w *Watch) note(ctx context.Context, method string, err error) {
	p, token := kitgrpc.PeerFrom(ctx), logging.Secret(kitgrpc.Value(ctx, accessToken))
	what := registry.Asked(method)
	version := kitgrpc.Value(ctx, "user-agent")
	if code := status.Code(kitgrpc.Status(err)); code != codes.Unimplemented {
		w.seen(ctx, what, code, p, token, version)
		return
	}
	ctx = context.WithoutCancel(ctx) // the call ended, and what is noted of it stays true
	id := w.prove(ctx, p.Chain, token)
	if id != "" {
		w.door.Seen(ctx, registry.Call{Thing: id, What: registry.CallRefused, Peer: p.Addr, Version: version, Name: p.Name})
	}
	r := door.Refusal{Addr: p.Addr, Thing: id, Step: registry.StepService, Code: door.CodeService, Detail: "asked for " + method + ", which this cloud does not have", Version: version}
	if what == registry.CallSpeech {
		r.Code, r.Detail = door.CodeSpeech, "asked what a spoken sentence means ("+path.Base(method)+")"
	}
	w.door.Refused(ctx, r)
}

// seen notes a call that was answered, unless the same proof was looked at just now. answer tells a robot that was let in from what it was a
// moment before, when its proof was not believed.
func (w *Watch) seen(ctx context.Context, what string, answer codes.Code, p kitgrpc.Peer, token logging.Secret, version string) {
	if len(p.Chain) == 0 && token == "" || w.again.Allow(what+answer.String()+proofOf(p.Chain, token)) > 0 {
		return
	}
	ctx = context.WithoutCancel(ctx) // as above
	if id := w.prove(ctx, p.Chain, token); id != "" {
		w.door.Seen(ctx, registry.Call{Thing: id, What: what, Peer: p.Addr, Version: version, Name: p.Name})
	}
}

func proofOf(chain []*x509.Certificate, token logging.Secret) string {
	h := sha256.New()
	if len(chain) > 0 {
		_, _ = h.Write(chain[0].Raw) // a hash takes everything
	}
	_, _ = h.Write([]byte(token.Reveal())) // as above
	return string(h.Sum(nil))
}

// Unserved answers calls that are not served.
func (w *Watch) Unserved() grpc.ServerOption { return kitgrpc.Unserved(notServed) }

// Broken returns what hears of handshakes that fail at a port with these certificates.
func (w *Watch) Broken(cert func(*tls.ClientHelloInfo) (*tls.Certificate, error)) func(ctx context.Context, addr, name string, err error) {
	return func(ctx context.Context, addr, name string, err error) {
		var chain []*x509.Certificate
		if pair, failed := cert(&tls.ClientHelloInfo{ServerName: name}); failed == nil {
			chain, _ = x509.ParseCertificates(slices.Concat(pair.Certificate...)) // without them the reason is told less well
		}
		w.door.Broken(ctx, addr, name, chain, err)
	}
}

// Plain serves the connection check without TLS, and nothing else.
func (w *Watch) Plain(check http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ok", check)
	mux.HandleFunc("/", func(rw http.ResponseWriter, r *http.Request) {
		if !w.NotFound(rw, r) {
			http.Error(rw, "plain HTTP address serves only GET and HEAD of /ok", http.StatusNotFound)
		}
	})
	return mux
}

// NotFound notes an HTTP request for a path that is not served. It reports whether it has answered the request.
func (w *Watch) NotFound(rw http.ResponseWriter, r *http.Request) (answered bool) {
	out := door.Refusal{Addr: r.RemoteAddr, Step: registry.StepService, Code: door.CodePath, Detail: "asked for " + r.Method + " " + r.URL.Path + ", which is not served", Version: r.UserAgent()}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		out.Thing = w.prove(r.Context(), r.TLS.PeerCertificates, "")
	}
	if answered = path.Ext(r.URL.Path) == ".ota"; answered {
		out.Code, out.Detail = door.CodeUpdate, "asked for the update "+r.URL.Path+", which this cloud does not have"
		http.Error(rw, noUpdate, http.StatusNotFound)
	}
	w.door.Refused(r.Context(), out)
	return answered
}

// Routes serves mux, and notes requests that mux has no route for.
func (w *Watch) Routes(mux *http.ServeMux, next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, pattern := mux.Handler(r)
		if pattern == "" && w.NotFound(rw, r) {
			return
		}
		next.ServeHTTP(rw, r)
		if token := logging.Secret(r.Header.Get(accessToken)); token != "" && pattern != "" {
			w.seen(r.Context(), registry.CallDocuments, codes.OK, kitgrpc.Peer{Addr: r.RemoteAddr}, token, r.UserAgent())
		}
	})
}

// Operations returns what operators may do.
func Operations(d *door.Door) op.List {
	return op.List{op.Rule(op.Spec{Route: "GET /strangers", Roles: auth.Staff, Page: true}), op.New(op.Spec{Route: "GET /v1/strangers", Tag: "Fleet", Roles: auth.Staff,
		Summary: "List connections refused at the port for original robots that belong to no registered robot, the latest first."},
		func(ctx context.Context, _ op.None) ([]door.Stranger, error) { return d.Strangers(ctx) })}
}

var list = template.Must(template.New("").Funcs(template.FuncMap{"ago": page.Ago}).Parse(`
<section class="card wide" aria-labelledby="h-strangers">
  <h2 id="h-strangers">Refused at the original robots’ port</h2>
  <p class="note">Refused or broken connections that could not be matched to a robot by certificate, token or address. Refusals of a known robot are on its own page.</p>
  {{if .}}<table class="plain"><caption class="hide">Refused calls, newest first</caption>
  <thead><tr><th scope="col">Last</th><th scope="col">From</th><th scope="col">Code</th><th scope="col">Details and next step</th><th scope="col" class="right">Times</th></tr></thead>
  <tbody>{{range .}}<tr><td>{{ago .Last}}</td><th scope="row" class="num">{{.Addr}}{{with .Claim}} <a href="/things/{{.}}">{{.}}</a>{{end}}</th><td><code>{{.Code}}</code></td><td class="words">{{.Detail}}{{with .Version}} <span class="note">{{.}}</span>{{end}}{{with .Do}} <span class="do">{{.}}.</span>{{end}}</td><td class="num right" data-label="Times">{{.Times}}</td></tr>{{end}}</tbody></table>
  {{else}}<p class="none">Nothing was refused in the last week.</p>{{end}}
</section>`))

// Page is the list as a page of the console.
func Page(d *door.Door) page.Extra {
	return page.Extra{Label: "Strangers", Address: "/strangers", Menu: page.Connections, Why: d.Why, Show: func(ctx context.Context) (template.HTML, error) {
		all, err := d.Strangers(ctx)
		if err != nil {
			return "", err
		}
		return page.HTML(list, all)
	}}
}
