// Package ownership holds a robot's relations to people: its owner, its clients, and the name and certificate that they see.
package ownership

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"kennel/edge/agent/host"
	"kennel/edge/agent/ownership/claim"
	"kennel/edge/agent/ownership/gatewaycert"
	"kennel/edge/agent/ownership/profile"
	"kennel/edge/agent/ownership/tenure"
	"kennel/edge/agent/ownership/tokens"
	"kennel/edge/agent/ownership/wipe"
	"kennel/edge/core/corelink"
	"kennel/edge/env/platform"
	"kennel/edge/faultcode"
	"kennel/infra/api/events"
	"kennel/infra/api/owners"
	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/infra/runner"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"
)

// Config holds what the relations need beside the robot.
type Config struct {
	Ask      kitmqtt.Requester
	Linked   func() bool                          // there is a connection to the cloud
	Believed func() time.Time                     // the time to believe
	Fault    func(code faultcode.Code, err error) // reports a fault; the robot keeps running
}

// People is made by New. Safe for concurrent use.
type People struct {
	host.Robot
	host   *host.Host
	cfg    Config
	plate  plate
	tokens *tokens.Agent
	claim  *claim.Agent // nil while New runs
	tenure *tenure.Keeper
	teller *wipe.Teller

	unasked atomic.Bool    // there is a connection, over which the cloud has not said who the owner is
	fresh   freshRequester // asks the cloud about the owner

	profile atomic.Pointer[string] // whose session of events began (VEC-DAS-18)
}

// Clear erases the user data of a former owner, if a wipe was asked for or the robot has learnt that it is another's.
func Clear(robot host.Robot) error {
	wiped, err := wipe.Resume(wipe.Config{Root: robot.Root, Log: robot.Log})
	if err == nil && wiped {
		err = tenure.Forget(robot.Root)
	}
	if err == nil {
		_, err = tenure.Resume(tenure.Config{Root: robot.Root, Log: robot.Log})
	}
	return err
}

// New makes the relations of the robot of h; nothing of them works until the part runs.
func New(h *host.Host, cfg Config) (*People, error) {
	p := &People{Robot: h.Robot, host: h, cfg: cfg, teller: wipe.NewTeller(h.Root, cfg.Ask, h.Keep, h.Log)}
	var err error
	if p.tenure, err = tenure.Open(p.Root); err != nil {
		return nil, err
	}
	trees, err := platform.LoadTrees(p.Root)
	if err != nil {
		p.Log.Error("settings ignored", logging.Err, err) // as the parts that keep the documents do
	}
	p.tokens, err = tokens.New(tokens.Config{Root: p.Root, Thing: p.Thing, Persistent: trees.Persistent, Ask: cfg.Ask, Docs: jdocswire.NewClient(cfg.Ask),
		Plate: &p.plate, Log: p.Log, Now: cfg.Believed, Doubt: p.Look, Fault: cfg.Fault,
		OnUser: func(user string) {
			if user == "" { // also of a robot that was claimed by its code and has no token
				p.Look()
			} else if p.former(user) {
				return
			}
			id, err := profile.ID(p.Root, trees.Persistent, user)
			if err != nil {
				p.Log.Warn("profile not read; events sent without it", logging.Err, err)
				return
			}
			p.profileIs(id)
		}})
	if err != nil {
		return nil, err
	}
	p.fresh.ask = cfg.Ask
	p.claim, err = claim.New(claim.Config{Ask: &p.fresh, Display: claim.FileDisplay{Root: p.Root}, Log: p.Log, Auto: true, OnStatus: func(s owners.Status) {
		if !p.former(s.UserID) && p.fresh.current() {
			h.Publish(host.Consent(s))
		}
	}})
	return p, err
}

// former reports whether the user data are another's than user's, who is the owner now; "": there is none. agentd then ends, and its next start
// erases them.
func (p *People) former(user string) bool {
	ended, err := p.tenure.Learn(user)
	switch {
	case err != nil:
		p.Log.Error("change of owner not recorded; nothing sent until then", logging.Err, err)
		time.AfterFunc(noteRetry, p.Look)
	case ended:
		p.host.End(errors.New("change of owner"))
	default:
		return false
	}
	p.host.Publish(host.Withhold{})
	return true
}

// Confirm asks the cloud who the owner is. It returns nil if the user data are theirs: what they ask the robot for is given to them alone, also if they
// are its owner since a moment ago. Errors are Unavailable.
func (p *People) Confirm(ctx context.Context) error {
	if err := p.claim.Ask(ctx); err != nil {
		return errs.New(errs.Unavailable, "%w", err)
	}
	if p.tenure.Due() {
		return errs.New(errs.Unavailable, "the robot is still erasing its former owner's data; try again in a moment")
	}
	return nil
}

// noteRetry is when the cloud is asked again about a change of owner that could not be noted.
const noteRetry = 30 * time.Second

// profileIs begins the session of events of a profile, and ends that before (VEC-DAS-18).
func (p *People) profileIs(id string) {
	if before := p.profile.Swap(&id); before != nil && *before != id {
		p.Emit(events.Event{Source: "agentd", Name: "profile_id.stop", S1: *before})
	}
	p.Emit(events.Event{Source: "agentd", Name: "profile_id.start", S1: id})
}

// Part is the relations as a part of agentd.
func (p *People) Part() host.Part {
	return host.Part{
		Name: "ownership",
		Services: []runner.Service{
			{Name: "introduction", Run: func(ctx context.Context) error { return p.teller.Run(ctx, p.cfg.Linked, p.introduce) }},
			{Name: "gateway certificate", Run: p.makePlate}, {Name: "tokens", Run: p.tokens.Run}, {Name: "claim", Run: p.claim.Run},
		},
		Hears: []host.Hearing{
			host.On(func(host.Dialing) { p.fresh.invalidate() }),
			host.On(func(host.LinkUp) { p.connected() }),
			host.On(func(host.Consented) {
				if p.unasked.Swap(false) {
					p.host.Publish(host.MaySync{})
				}
			}),
			host.On(func(host.Doubt) {
				p.fresh.invalidate()
				p.host.Publish(host.Withhold{})
				p.Look()
			}),
			host.On(p.hinted),
			host.On(func(m corelink.Message) {
				if e, is := m.(*corelink.Event); is && e.Name == "robot.button" && !e.Replayed && len(e.Texts) > 0 && e.Texts[0] == "double" { // two presses on the charger
					p.claim.Show()
				}
			}),
		},
		Local: p.requests(),
	}
}

// connected begins a connection. Until the cloud says over it what the owner allows, changes of documents stay on the robot: they may be a former
// owner's.
func (p *People) connected() {
	owned := p.tenure.Owned()
	p.unasked.Store(owned)
	if !owned {
		p.host.Publish(host.MaySync{})
	}
	p.teller.Connected()
}

// Unowned is the part of a robot that asks for no owner, in place of People: it tells the cloud of a wipe.
func Unowned(h *host.Host, ask kitmqtt.Requester, linked func() bool) host.Part {
	teller := wipe.NewTeller(h.Root, ask, h.Keep, h.Log)
	return host.Part{
		Name: "ownership",
		Services: []runner.Service{{Name: "introduction", Run: func(ctx context.Context) error {
			return teller.Run(ctx, linked, func(context.Context) error { return nil })
		}}},
		Hears: []host.Hearing{host.On(func(host.LinkUp) {
			h.Publish(host.Unowned{})
			h.Publish(host.MaySync{})
			teller.Connected()
		})},
	}
}

// Certificate returns the robot's certificate for apps and programs; false while it is not made.
func (p *People) Certificate() (tls.Certificate, bool) {
	g := p.plate.p.Load()
	if g == nil {
		return tls.Certificate{}, false
	}
	return g.TLSCertificate(), true
}

// Client returns the entry of a client token of this robot; false if it is none, or expired.
func (p *People) Client(ctx context.Context, bearer string) (tokens.Client, bool) {
	return p.tokens.Client(ctx, bearer)
}

// Name returns the robot's name; "" while it has none.
func (p *People) Name() string { return p.plate.Name() }

// State returns the state of clients and claim for the report.
func (p *People) State() (*tokens.State, *claim.State) {
	t, c := p.tokens.State(), p.claim.State()
	return &t, &c
}

// hinted handles a hint of new documents in the cloud: with the clients the owner may have changed, with the account's settings their consent.
func (p *People) hinted(docs host.Hint) {
	p.tokens.Hint(docs)
	_, apps := docs[string(jdocs.AppTokens)]
	_, account := docs[string(jdocs.AccountSettings)]
	if apps || account {
		p.Look()
	}
}

// Look asks the cloud again who the owner is, and what they allow.
func (p *People) Look() {
	if p.claim != nil {
		p.claim.Look()
	}
}

// makePlate makes the robot's name and certificate if they are missing. Without them the robot keeps running (fault 920).
func (p *People) makePlate(context.Context) error {
	g, err := gatewaycert.Open(gatewaycert.Config{Root: p.Root, Species: p.Thing.Species(), Now: p.cfg.Believed, Log: p.Log})
	if err != nil {
		p.cfg.Fault(faultcode.GatewayCert, err)
		return nil
	}
	p.plate.p.Store(g)
	p.host.Publish(host.Named{})
	p.teller.Connected()
	return nil
}

// introduce says what the cloud must know of the robot beside a wipe.
func (p *People) introduce(ctx context.Context) error {
	p.tokens.Connected()
	p.claim.Connected()
	if g := p.plate.p.Load(); g != nil && !g.Posted() {
		if err := g.Post(ctx, p.cfg.Ask); err != nil {
			return fmt.Errorf("certificate of the gateway: %w", err)
		}
	}
	return nil
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

// Exchange lets an owner's app in. Before the cloud knows of a wipe it would take the robot for its former owner's, and the association gives it
// the certificate of the gateway.
func (p *People) Exchange(ctx context.Context, session logging.Secret, client, app string) (logging.Secret, error) {
	if p.teller.Pending() {
		return "", errs.Coded(errs.Unavailable, "wipe_untold", "the cloud has not yet been told that the user data were cleared; try again in a moment")
	}
	if p.plate.PEM() == nil {
		return "", errs.Coded(errs.Unavailable, "no_gateway_certificate", "the robot's certificate for apps is not ready yet; try again in a moment")
	}
	token, err := p.tokens.Exchange(ctx, session, client, app)
	if err != nil {
		return "", err
	}
	p.claim.Look()
	return token, nil
}

// clearUserData asks for the wipe and ends agentd, whose next start does it. The owner has confirmed.
func (p *People) clearUserData() error {
	if err := wipe.Request(p.Root); err != nil {
		return err
	}
	p.host.End(errors.New("request to clear the user data"))
	return nil
}
