package agentapp

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"kennel/certs/devicecert"
	"kennel/edge/agent/cloud/das"
	"kennel/edge/agent/health/diagnosis"
	"kennel/edge/agent/health/faults"
	"kennel/edge/agent/info/platform"
	"kennel/edge/agent/people/claim"
	"kennel/edge/agent/people/gatewaycert"
	"kennel/edge/agent/people/profile"
	"kennel/edge/agent/people/tokens"
	"kennel/edge/agent/people/wipe"
	"kennel/edge/faultcode"
	"kennel/infra/api/events"
	"kennel/infra/api/hints"
	"kennel/infra/api/owners"
	"kennel/infra/api/status"
	"kennel/infra/cli/version"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/runner"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"
)

// owned holds the robot's relations to people: its owner, its clients, and the name and certificate that they see. A frugal robot has none of it.
type owned struct {
	plate  plate
	tokens *tokens.Agent
	claim  *claim.Agent
	keeper *diagnosis.Keeper
}

// plate is the robot's name and certificate from when they are made. A robot needs seconds for the key, so nothing waits for it at start.
type plate struct {
	p atomic.Pointer[gatewaycert.Plate]
}

// PEM returns the certificate; nil while there is none.
func (p *plate) PEM() []byte {
	if g := p.p.Load(); g != nil {
		return g.PEM()
	}
	return nil
}

// NotePosted notes that the cloud has the certificate.
func (p *plate) NotePosted() error {
	if g := p.p.Load(); g != nil {
		return g.NotePosted()
	}
	return nil
}

// Name returns the robot's name; "" while it has none.
func (p *plate) Name() string {
	if g := p.p.Load(); g != nil {
		return g.Name()
	}
	return ""
}

// newOwned makes the parts that concern people.
func (a *Agent) newOwned() error {
	trees, err := platform.LoadTrees(a.root)
	if err != nil {
		a.log.Error("settings ignored", logging.Err, err) // as the parts that keep the documents do
	}
	o := &owned{}
	o.tokens, err = tokens.New(tokens.Config{Root: a.root, Thing: a.id, Persistent: trees.Persistent, Ask: requester{a},
		Docs:  jdocswire.NewClient(requester{a}),
		Plate: &o.plate, Log: a.log, Now: a.believed, Fault: a.fault,
		OnUser: func(user string) {
			id, err := profile.ID(a.root, trees.Persistent, user)
			if err != nil {
				a.log.Warn("profile not read; events sent without it", logging.Err, err)
				return
			}
			a.emit(events.Event{Source: "agentd", Name: "profile_id.start", S1: id})
		}})
	if err != nil {
		return err
	}
	o.claim, err = claim.New(claim.Config{Ask: requester{a}, Display: claim.FileDisplay{Root: a.root}, Log: a.log, Auto: true, OnStatus: a.follow})
	if err != nil {
		return err
	}
	o.keeper = diagnosis.NewKeeper(a.root, a.facts, a.cfg.Now, a.log)
	a.owned = o
	return nil
}

// services lists the services for these relations.
func (o *owned) services(a *Agent) []runner.Service {
	return []runner.Service{
		{Name: "gateway certificate", Run: a.makePlate},
		{Name: "tokens", Run: o.tokens.Run},
		{Name: "claim", Run: o.claim.Run},
		{Name: "diagnosis", Run: o.keeper.Run},
		{Name: "local requests", Run: a.serveLocal},
	}
}

// makePlate makes the robot's name and certificate if they are missing. Without them the robot keeps running (fault 920).
func (a *Agent) makePlate(context.Context) error {
	g, err := gatewaycert.Open(gatewaycert.Config{Root: a.root, Species: a.id.Species(), Now: a.believed, Log: a.log})
	if err != nil {
		a.fault(faultcode.GatewayCert, err)
		return nil
	}
	a.owned.plate.p.Store(g)
	a.meetCore()
	a.teller.Connected()
	return nil
}

// believed is the time to believe: a certificate may prove that the system's clock is behind.
func (a *Agent) believed() time.Time {
	a.mu.Lock()
	id := a.identity
	a.mu.Unlock()
	if id != nil {
		return id.Now()
	}
	return a.cfg.Now()
}

// follow applies the owner's consent to data collection. A robot of a new owner sends no events until they opt in; the events of one without an
// owner are no person's data (VEC-DAS-08).
func (a *Agent) follow(s owners.Status) {
	allow := !s.Owned || s.DataCollection
	if allow == a.das.AllowUpload() {
		return
	}
	if err := a.das.SetAllowUpload(allow); err != nil {
		a.log.Error("data collection consent not stored", "allow", allow, logging.Err, err)
	}
}

// fault reports a numbered fault of the robot's identity; the robot keeps running.
func (a *Agent) fault(code faultcode.Code, err error) {
	a.faults.Raise(faults.Fault{Code: code, Service: "agentd", Err: err})
}

// emitKept records an event that must not be lost. If the owner wants no events there is nothing to lose.
func (a *Agent) emitKept(ctx context.Context, e events.Event) error {
	if _, err := a.das.EmitDurable(ctx, e); err != nil && !errors.Is(err, das.ErrOptedOut) {
		return err
	}
	return nil
}

// introduce says what the cloud must know of the robot beside a wipe.
func (a *Agent) introduce(ctx context.Context) error {
	if a.owned == nil {
		return nil
	}
	a.owned.tokens.Connected()
	a.owned.claim.Connected()
	if g := a.owned.plate.p.Load(); g != nil && !g.Posted() {
		if err := g.Post(ctx, requester{a}); err != nil {
			return fmt.Errorf("certificate of the gateway: %w", err)
		}
	}
	return nil
}

// hinted handles a hint of new documents in the cloud: with the clients the owner may have changed, with the account's settings their consent.
func (o *owned) hinted(h hints.Jdocs) {
	o.tokens.Hint(h.Docs)
	_, apps := h.Docs[string(jdocs.AppTokens)]
	_, account := h.Docs[string(jdocs.AccountSettings)]
	if apps || account {
		o.claim.Look()
	}
}

// linkIs keeps the state of the connection for the report.
func (a *Agent) linkIs(up bool, err error) {
	a.mu.Lock()
	if a.link.Up != up || a.link.Since.IsZero() {
		a.link.Since = a.cfg.Now()
	}
	a.link.Up = up
	if up || err != nil {
		a.link.Err = err
	}
	a.mu.Unlock()
	if a.owned != nil {
		a.owned.keeper.Changed()
	}
}

func (a *Agent) linked() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.link.Up
}

// texts are problems as people read them.
func texts(problems []status.Problem) (out []string) {
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}

// facts collects the parts' facts about the way to the cloud.
func (a *Agent) facts() diagnosis.Facts {
	f := diagnosis.Facts{Thing: a.id, Agent: version.String(), OS: a.os, Boot: a.boot, System: a.cfg.Now(), Docs: texts(a.docs.Problems()),
		Dirty:  a.docs.Dirty(),
		Faults: texts(a.faults.Problems(nil))}
	a.mu.Lock()
	id := a.identity
	f.API, f.ConfigErr, f.Link = a.api, a.configErr, a.link
	a.mu.Unlock()
	if id != nil {
		st := id.State()
		f.Identity, f.Believed, f.Shown = &st, id.Now(), id.Seen()
		f.Roots, f.RootsErr = id.Roots()
	}
	f.Start = a.start.facts()
	if o := a.owned; o != nil {
		t, c := o.tokens.State(), o.claim.State()
		f.Tokens, f.Claim, f.Name = &t, &c, o.plate.Name()
	}
	return f
}

// checkFactory reports an invalid factory identity (fault 850).
func (a *Agent) checkFactory() {
	if _, _, err := platform.Factory(a.root, a.id); err != nil {
		a.fault(faultcode.CloudCertificate, err)
	}
}

// openIdentity returns the robot's identity for the cloud at api.
func (a *Agent) openIdentity(api string) (*devicecert.Identity, error) {
	return devicecert.Open(devicecert.Config{Root: a.root, Thing: a.id, Cloud: api, Log: a.cfg.Log, Now: a.cfg.Now, Dial: a.cfg.Dial})
}

// exchange lets an owner's app in. Before the cloud knows of a wipe it would take the robot for its former owner's, and the association gives it
// the certificate of the gateway.
func (a *Agent) exchange(ctx context.Context, session logging.Secret, client, app string) (logging.Secret, error) {
	if a.teller.Pending() {
		return "", errs.Coded(errs.Unavailable, "wipe_untold", "the cloud does not know yet that the user data were cleared; try again in a moment")
	}
	if a.owned.plate.PEM() == nil {
		return "", errs.Coded(errs.Unavailable, "no_gateway_certificate", "the robot's certificate for its apps is not made yet; try again in a moment")
	}
	token, err := a.owned.tokens.Exchange(ctx, session, client, app)
	if err != nil {
		return "", err
	}
	a.owned.claim.Look()
	return token, nil
}

// clearUserData asks for the wipe and ends agentd, whose next start does it. The owner has confirmed.
func (a *Agent) clearUserData() error {
	if err := wipe.Request(a.root); err != nil {
		return err
	}
	a.startAnew(errors.New("the user data are to be cleared"))
	return nil
}
