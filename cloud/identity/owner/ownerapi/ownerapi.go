// Package ownerapi is ownership over the wires: HTTP for owners and operators, MQTT for robots (infra/api/owners). Other people's robots and unknown ones
// get one answer.
package ownerapi

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"kennel/cloud/identity/owner"
	"kennel/infra/api/owners"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/infra/op"
	"kennel/infra/thing"
)

const (
	maxReason = 500 // characters
	pastShown = 50  // ownerships an operator sees
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

// Config holds what the operations need besides the rules.
type Config struct {
	// Known returns NotFound for an unregistered thing; for operators.
	Known func(ctx context.Context, id thing.ID) error
	// Audit writes one line about what the operator in ctx does; what cannot be written down is not done.
	Audit func(ctx context.Context, action, object, detail string) error
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
	Thing string `json:"thing,omitempty"` // accept only the code of this robot
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
	Reason string `json:"reason"` // for the audit log
}

type (
	robot struct {
		Thing thing.ID `path:"thing"`
	}
	naming struct {
		robot
		Request NameRequest `body:""`
	}
	offering struct {
		robot
		Request TransferRequest `body:""`
	}
	takingAway struct {
		robot
		Request ReleaseRequest `body:""`
	}
	transfer struct {
		ID string `path:"id"`
	}
)

// shownRobot is how kennelctl shows a robot to its owner.
const shownRobot = "thing; name; yours=since .since; by=.how"

// Operations returns the operations on ownership.
func Operations(svc *owner.Service, cfg Config) op.List {
	a := api{svc, cfg}
	my := func(route, summary string) op.Spec {
		return op.Spec{Route: route, Tag: "Own robots", Summary: summary, Roles: []auth.Role{auth.Owner}, Own: strings.Contains(route, "{thing}"), Refuses: true, MaxBody: 4 << 10}
	}
	staff := func(route, summary string, roles ...auth.Role) op.Spec {
		return op.Spec{Route: route, Tag: "Identity", Summary: summary, Roles: roles}
	}
	return op.List{
		op.New(my("GET /v1/my/robots", "List the caller's robots.").With(
			op.Command{Use: "my list", Short: "List your robots", Table: "THING; NAME; YOURS SINCE=.since; BY=.how"}), func(ctx context.Context, _ op.None) ([]Robot, error) {
			all, err := svc.Robots(ctx, auth.CallerFrom(ctx).Account)
			return each(all, shown), err
		}),
		op.New(my("POST /v1/my/robots/claim", "Claim the robot that shows a code.").With(
			op.Command{Use: "my claim CODE -robot:thing", Short: "Claim the robot that shows this code", Long: "A robot without an owner shows a code, valid for ten minutes and five tries. Case, spaces and dashes do not matter.\nA robot that another person owns shows no code until that person releases or transfers it, or its user data is cleared.", Example: "my claim K7QM-3XW9\nmy claim k7qm3xw9 -robot vic:00e20100", Table: shownRobot}), a.claim),
		op.New(my("PATCH /v1/my/robots/{thing}", "Rename a robot.").With(
			op.Command{Use: "my rename THING NAME", Short: "Rename a robot ('' clears the name)", Example: "my rename vic:00e20100 Rex\nmy rename vic:00e20100 ''", Table: shownRobot}), func(ctx context.Context, r naming) (Robot, error) {
			t, err := svc.Rename(ctx, auth.CallerFrom(ctx).Account, r.Thing, r.Request.Name)
			return shown(t), err
		}),
		op.New(my("DELETE /v1/my/robots/{thing}", "Give up a robot.").With(
			op.Command{Use: "my release THING", Short: "Give up a robot", Long: "The robot then has no owner. Its apps and access tokens are revoked. Anyone who holds the robot can claim it."}), func(ctx context.Context, r robot) (op.None, error) {
			return op.None{}, svc.Release(ctx, auth.CallerFrom(ctx).Account, r.Thing)
		}),
		op.New(my("POST /v1/my/robots/{thing}/transfer", "Offer a robot to another person."), func(ctx context.Context, r offering) (Transfer, error) {
			c := auth.CallerFrom(ctx)
			o, err := svc.Offer(ctx, c.Account, c.Name, r.Thing, r.Request.To, owner.Proof{Password: logging.Secret(r.Request.Password), Addr: c.Addr})
			return offered(o), err
		}),
		op.New(my("GET /v1/my/transfers", "List offers by and to the caller.").With(
			op.Command{Use: "my transfers", Short: "List offers of robots, by you and to you", Table: "TRANSFER=.id; THING; EXPIRES; OFFERED={{if .mine}}by you{{else}}to you{{end}}"}), func(ctx context.Context, _ op.None) ([]Transfer, error) {
			c := auth.CallerFrom(ctx)
			all, err := svc.Offers(ctx, c.Account, c.Name)
			return each(all, offered), err
		}),
		op.New(my("POST /v1/my/transfers/{id}/accept", "Accept an offered robot.").With(
			op.Command{Use: "my accept TRANSFER", Short: "Accept a robot offered to you", Table: shownRobot}), func(ctx context.Context, r transfer) (Robot, error) {
			c := auth.CallerFrom(ctx)
			t, err := svc.Accept(ctx, c.Account, c.Name, r.ID)
			return shown(t), err
		}),
		op.New(my("DELETE /v1/my/transfers/{id}", "Withdraw or decline an offer.").With(
			op.Command{Use: "my decline TRANSFER", Short: "Decline a robot offered to you, or withdraw your offer"}), func(ctx context.Context, r transfer) (op.None, error) {
			c := auth.CallerFrom(ctx)
			return op.None{}, svc.Drop(ctx, c.Account, c.Name, r.ID)
		}),
		op.New(staff("GET /v1/things/{thing}/owner", "Show a robot's owner and earlier owners.", auth.Staff...), a.owner),
		op.New(staff("DELETE /v1/things/{thing}/owner", "Remove a robot's owner.", auth.Support, auth.Admin).With(
			op.Command{Use: "robots disown THING -reason!", Short: "Remove a robot's owner, for owners who cannot do it themselves", Example: "robots disown vic:00e20100 -reason 'sold, the seller cannot be reached (case 17)'", Says: "{{.THING}} has no owner"}), a.takeAway),
	}
}

type api struct {
	svc *owner.Service
	cfg Config
}

func each[T, U any](all []T, fn func(T) U) []U {
	out := make([]U, 0, len(all))
	for _, v := range all {
		out = append(out, fn(v))
	}
	return out
}

func shown(t owner.Tenure) Robot { return Robot{t.Thing, t.Name, t.How, t.Since.UTC()} }

func offered(o owner.Offer) Transfer { return Transfer{o.ID, o.Thing, o.Expires.UTC(), o.Mine} }

func (a api) claim(ctx context.Context, r ClaimRequest) (Robot, error) {
	var only thing.ID
	if r.Thing != "" {
		var err error
		if only, err = thing.Parse(r.Thing); err != nil {
			return Robot{}, errs.Coded(errs.Invalid, "thing_malformed", "%w", err)
		}
	}
	c := auth.CallerFrom(ctx)
	t, err := a.svc.Claim(ctx, c.Account, c.Addr, only, r.Code)
	return shown(t), err
}

func (a api) owner(ctx context.Context, r robot) (Owner, error) {
	if err := a.cfg.Known(ctx, r.Thing); err != nil {
		return Owner{}, err
	}
	all, err := a.svc.History(ctx, r.Thing, pastShown)
	if err != nil {
		return Owner{}, err
	}
	out := Owner{Thing: r.Thing, Past: []Past{}}
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

func (a api) takeAway(ctx context.Context, r takingAway) (op.None, error) {
	reason := strings.TrimSpace(r.Request.Reason)
	if n := utf8.RuneCountInString(reason); n == 0 || n > maxReason || !utf8.ValidString(reason) {
		return op.None{}, errs.Coded(errs.Invalid, "reason_missing", "reason of %d characters: want 1 to %d of UTF-8; it goes into the audit log", n, maxReason)
	}
	if err := a.cfg.Known(ctx, r.Thing); err != nil {
		return op.None{}, err
	}
	account, err := a.svc.Owner(ctx, r.Thing)
	if err != nil {
		return op.None{}, err
	}
	if err := a.cfg.Audit(ctx, "owner.release", string(r.Thing), reason); err != nil {
		return op.None{}, err
	}
	return op.None{}, a.svc.TakeAway(ctx, account, r.Thing)
}
