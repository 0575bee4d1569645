// Package ownerapi is ownership over the wires: HTTP for owners and operators, MQTT for robots.
//
//	GET    /v1/my/robots                    what the caller owns                                  owner
//	POST   /v1/my/robots/claim              {code, thing?} -> the robot that shows the code       owner
//	PATCH  /v1/my/robots/{thing}            {name}         -> the robot                           owner
//	DELETE /v1/my/robots/{thing}            let go of it   -> 204                                 owner
//	POST   /v1/my/robots/{thing}/transfer   {to, password} -> the offer; to: e-mail or account id owner
//	GET    /v1/my/transfers                 offers of the caller and to the caller                owner
//	POST   /v1/my/transfers/{id}/accept                    -> the robot                           owner
//	DELETE /v1/my/transfers/{id}            take back, decline -> 204                             owner
//	GET    /v1/things/{thing}/owner         who owns it, who did                                  staff
//	DELETE /v1/things/{thing}/owner         {reason}       -> 204                                 support, admin
//	req/owner/code, req/owner/wiped, req/owner/status      (infra/api/owners)                     the robot
//
// Other people's robots and unknown ones get one answer.
package ownerapi

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/owner"
	"kennel/infra/api/owners"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

const (
	timeout   = 10 * time.Second
	maxBody   = 4 << 10 // bytes
	maxReason = 500     // characters
	pastShown = 50      // ownerships an operator sees
)

// Handlers returns the robots' requests by "service/method".
func Handlers(svc *owner.Service) map[string]kitmqtt.ReqHandler {
	return map[string]kitmqtt.ReqHandler{
		owners.Service + "/" + owners.CodeMethod: kitmqtt.Handler(owners.ParseKeyed, func(ctx context.Context, id thing.ID, k owners.Keyed) (owners.Code, error) {
			code, expires, err := svc.OfferCode(ctx, id, k.Key)
			return owners.Code{Code: code, ExpiresInMS: max(expires.Milliseconds(), 1)}, err
		}),
		owners.Service + "/" + owners.WipedMethod: kitmqtt.Handler(owners.ParseKeyed, func(ctx context.Context, id thing.ID, k owners.Keyed) (struct{}, error) {
			return struct{}{}, svc.Wiped(ctx, id, k.Key)
		}),
		owners.Service + "/" + owners.StatusMethod: kitmqtt.Handler(kitmqtt.Empty, func(ctx context.Context, id thing.ID, _ struct{}) (owners.Status, error) {
			return svc.Status(ctx, id)
		}),
	}
}

// Config holds what the endpoints need besides the rules.
type Config struct {
	// Known returns NotFound for an unregistered thing; for operators.
	Known func(ctx context.Context, id thing.ID) error
	// Audit writes one line about what the operator in ctx does; what cannot be written down is not done.
	Audit func(ctx context.Context, action, object, detail string) error
	Log   *slog.Logger
}

// Robot is a robot as its owner sees it.
type Robot struct {
	Thing thing.ID  `json:"thing"`
	Name  string    `json:"name"`
	How   string    `json:"how"`
	Since time.Time `json:"since"`
}

// ClaimRequest is the body of POST /v1/my/robots/claim.
type ClaimRequest struct {
	Code  string `json:"code"`
	Thing string `json:"thing,omitempty"` // only this one's code is taken
}

// NameRequest is the body of PATCH /v1/my/robots/{thing}.
type NameRequest struct {
	Name string `json:"name"` // "": none
}

// TransferRequest is the body of POST /v1/my/robots/{thing}/transfer.
type TransferRequest struct {
	To       string `json:"to"`
	Password string `json:"password"` // the owner's own: a stolen session gives no robot away
}

// Transfer is an offer.
type Transfer struct {
	ID      string    `json:"id"`
	Thing   thing.ID  `json:"thing"`
	Expires time.Time `json:"expires"`
	Mine    bool      `json:"mine"` // offered by the caller, not to the caller
}

// Owner is the operators' view; accounts by id.
type Owner struct {
	Thing   thing.ID   `json:"thing"`
	Account string     `json:"account,omitempty"` // "": it has no owner
	Since   *time.Time `json:"since,omitempty"`
	How     string     `json:"how,omitempty"`
	Past    []Past     `json:"past"` // newest first
}

// Past is an ownership that has ended.
type Past struct {
	Account string    `json:"account,omitempty"` // "": the person was erased
	How     string    `json:"how"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	Ended   string    `json:"ended"`
}

// ReleaseRequest is the body of DELETE /v1/things/{thing}/owner.
type ReleaseRequest struct {
	Reason string `json:"reason"`
}

type (
	nothing  struct{}
	claimReq struct {
		thing thing.ID
		code  string
	}
	thingReq struct{ thing thing.ID }
	textReq  struct {
		thing thing.ID
		text  string
	}
	offerReq struct{ id string }
	handReq  struct {
		thing thing.ID
		TransferRequest
	}
)

// Mount adds the HTTP endpoints to mux. The caller comes from the context (infra/kit).
func Mount(mux *http.ServeMux, svc *owner.Service, cfg Config) {
	a := api{svc, cfg}
	wrap := endpoint.Chain(kit.Recover(cfg.Log), kit.Timeout(timeout))
	own := endpoint.Chain(wrap, auth.Require(auth.Owner))
	staff := endpoint.Chain(wrap, auth.Require(auth.Staff...))
	releasers := endpoint.Chain(wrap, auth.Require(auth.Support, auth.Admin))

	mux.Handle("GET /v1/my/robots", kithttp.Handler(own(kit.Typed(a.robots)), none))
	mux.Handle("POST /v1/my/robots/claim", kithttp.Handler(own(kit.Typed(a.claim)), decodeClaim))
	mux.Handle("PATCH /v1/my/robots/{thing}", kithttp.Handler(own(kit.Typed(a.rename)), decodeText(func(b NameRequest) string { return b.Name })))
	mux.Handle("DELETE /v1/my/robots/{thing}", kithttp.Handler(kit.NoContent(own(kit.Typed(a.release))), decodeThing))
	mux.Handle("POST /v1/my/robots/{thing}/transfer", kithttp.Handler(own(kit.Typed(a.offer)), decodeTransfer))
	mux.Handle("GET /v1/my/transfers", kithttp.Handler(own(kit.Typed(a.offers)), none))
	mux.Handle("POST /v1/my/transfers/{id}/accept", kithttp.Handler(own(kit.Typed(a.accept)), decodeOffer))
	mux.Handle("DELETE /v1/my/transfers/{id}", kithttp.Handler(kit.NoContent(own(kit.Typed(a.drop))), decodeOffer))
	mux.Handle("GET /v1/things/{thing}/owner", kithttp.Handler(staff(kit.Typed(a.owner)), decodeThing))
	mux.Handle("DELETE /v1/things/{thing}/owner", kithttp.Handler(kit.NoContent(releasers(kit.Typed(a.takeAway))), decodeText(func(b ReleaseRequest) string { return b.Reason })))
}

type api struct {
	svc *owner.Service
	cfg Config
}

func shown(t owner.Tenure) Robot { return Robot{t.Thing, t.Name, t.How, t.Since.UTC()} }

func offered(o owner.Offer) Transfer { return Transfer{o.ID, o.Thing, o.Expires.UTC(), o.Mine} }

func (a api) robots(ctx context.Context, _ nothing) ([]Robot, error) {
	all, err := a.svc.Robots(ctx, auth.CallerFrom(ctx).Account)
	out := make([]Robot, 0, len(all))
	for _, t := range all {
		out = append(out, shown(t))
	}
	return out, err
}

func (a api) claim(ctx context.Context, r claimReq) (Robot, error) {
	c := auth.CallerFrom(ctx)
	t, err := a.svc.Claim(ctx, c.Account, c.Addr, r.thing, r.code)
	return shown(t), err
}

func (a api) rename(ctx context.Context, r textReq) (Robot, error) {
	t, err := a.svc.Rename(ctx, auth.CallerFrom(ctx).Account, r.thing, r.text)
	return shown(t), err
}

func (a api) release(ctx context.Context, r thingReq) (nothing, error) {
	return nothing{}, a.svc.Release(ctx, auth.CallerFrom(ctx).Account, r.thing)
}

func (a api) offer(ctx context.Context, r handReq) (Transfer, error) {
	c := auth.CallerFrom(ctx)
	o, err := a.svc.Offer(ctx, c.Account, c.Name, r.thing, r.To, owner.Proof{Password: logging.Secret(r.Password), Addr: c.Addr})
	return offered(o), err
}

func (a api) offers(ctx context.Context, _ nothing) ([]Transfer, error) {
	c := auth.CallerFrom(ctx)
	all, err := a.svc.Offers(ctx, c.Account, c.Name)
	out := make([]Transfer, 0, len(all))
	for _, o := range all {
		out = append(out, offered(o))
	}
	return out, err
}

func (a api) accept(ctx context.Context, r offerReq) (Robot, error) {
	c := auth.CallerFrom(ctx)
	t, err := a.svc.Accept(ctx, c.Account, c.Name, r.id)
	return shown(t), err
}

func (a api) drop(ctx context.Context, r offerReq) (nothing, error) {
	c := auth.CallerFrom(ctx)
	return nothing{}, a.svc.Drop(ctx, c.Account, c.Name, r.id)
}

func (a api) owner(ctx context.Context, r thingReq) (Owner, error) {
	if err := a.cfg.Known(ctx, r.thing); err != nil {
		return Owner{}, err
	}
	all, err := a.svc.History(ctx, r.thing, pastShown)
	if err != nil {
		return Owner{}, err
	}
	out := Owner{Thing: r.thing, Past: []Past{}}
	for _, t := range all {
		if t.Until == nil {
			since := t.Since.UTC()
			out.Account, out.How, out.Since = t.Account, t.How, &since
			continue
		}
		out.Past = append(out.Past, Past{t.Account, t.How, t.Since.UTC(), t.Until.UTC(), t.Ended})
	}
	return out, nil
}

func (a api) takeAway(ctx context.Context, r textReq) (nothing, error) {
	reason := strings.TrimSpace(r.text)
	if n := utf8.RuneCountInString(reason); n == 0 || n > maxReason || !utf8.ValidString(reason) {
		return nothing{}, errs.Coded(errs.Invalid, "reason_missing", "reason of %d characters: want 1 to %d of UTF-8; it goes into the audit log", n, maxReason)
	}
	if err := a.cfg.Known(ctx, r.thing); err != nil {
		return nothing{}, err
	}
	account, err := a.svc.Owner(ctx, r.thing)
	if err != nil {
		return nothing{}, err
	}
	if err := a.cfg.Audit(ctx, "owner.release", string(r.thing), reason); err != nil {
		return nothing{}, err
	}
	return nothing{}, a.svc.TakeAway(ctx, account, r.thing)
}

func none(*http.Request) (any, error) { return nothing{}, nil }

func thingOf(s string) (thing.ID, error) {
	id, err := thing.Parse(s)
	if err != nil {
		return "", errs.New(errs.Invalid, "%w", err)
	}
	return id, nil
}

func decodeThing(r *http.Request) (any, error) {
	id, err := thingOf(r.PathValue("thing"))
	return thingReq{id}, err
}

func decodeClaim(r *http.Request) (any, error) {
	var body ClaimRequest
	if err := kithttp.ReadJSON(r, &body, maxBody); err != nil {
		return nil, err
	}
	if body.Thing == "" {
		return claimReq{code: body.Code}, nil
	}
	id, err := thingOf(body.Thing)
	return claimReq{id, body.Code}, err
}

func decodeText[Body any](text func(Body) string) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		id, err := thingOf(r.PathValue("thing"))
		if err != nil {
			return nil, err
		}
		var body Body
		if err := kithttp.ReadJSON(r, &body, maxBody); err != nil {
			return nil, err
		}
		return textReq{id, text(body)}, nil
	}
}

func decodeTransfer(r *http.Request) (any, error) {
	id, err := thingOf(r.PathValue("thing"))
	q := handReq{thing: id}
	if err == nil {
		err = kithttp.ReadJSON(r, &q.TransferRequest, maxBody)
	}
	return q, err
}

func decodeOffer(r *http.Request) (any, error) { return offerReq{r.PathValue("id")}, nil }
