// Package ownership holds a robot's relations to people: its owner, its clients, and the name and certificate that they see. A frugal robot has none
// of it.
package ownership

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"kennel/edge/agent/host"
	"kennel/edge/agent/ownership/claim"
	"kennel/edge/agent/ownership/gatewaycert"
	"kennel/edge/agent/ownership/profile"
	"kennel/edge/agent/ownership/tenure"
	"kennel/edge/agent/ownership/tokens"
	"kennel/edge/agent/ownership/wipe"
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
	Consent  func(owners.Status)                  // the cloud said who the owner is and what they allow; the user data are theirs
	Former   func()                               // the user data are a former owner's: nothing leaves the robot until agentd restarts
	Named    func()                               // the robot has a name
	Restart  func(why error)                      // ends agentd, whose next start clears the user data
	Local    map[string]http.Handler              // requests of other parts on the socket, by pattern (Answer)
}

// People is made by New. Safe for concurrent use.
type People struct {
	host.Robot
	cfg    Config
	plate  plate
	tokens *tokens.Agent // nil: frugal
	claim  *claim.Agent  // likewise
	tenure *tenure.Keeper
	teller *wipe.Teller

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

// New makes the relations; nothing of them works until Services run.
func New(robot host.Robot, cfg Config) (*People, error) {
	p := &People{Robot: robot, cfg: cfg, teller: wipe.NewTeller(robot.Root, cfg.Ask, robot.Keep, robot.Log)}
	if p.Frugal {
		return p, nil
	}
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
	p.claim, err = claim.New(claim.Config{Ask: cfg.Ask, Display: claim.FileDisplay{Root: p.Root}, Log: p.Log, Auto: true, OnStatus: func(s owners.Status) {
		if !p.former(s.UserID) {
			cfg.Consent(s)
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
		p.Log.Error("change of owner not noted; nothing is sent before it is", logging.Err, err)
		time.AfterFunc(noteRetry, p.Look)
	case ended:
		p.cfg.Restart(errors.New("the robot is no longer its former owner's"))
	default:
		return false
	}
	p.cfg.Former()
	return true
}

// Confirm asks the cloud who the owner is. It returns nil if the user data are theirs: what they ask the robot for is given to them alone, also if they
// are its owner since a moment ago. Errors are Unavailable.
func (p *People) Confirm(ctx context.Context) error {
	if p.claim == nil {
		return nil
	}
	if err := p.claim.Ask(ctx); err != nil {
		return errs.New(errs.Unavailable, "%w", err)
	}
	if p.tenure.Due() {
		return errs.New(errs.Unavailable, "the robot still erases what it holds of its former owner; try again in a moment")
	}
	return nil
}

// noteRetry is when the cloud is asked again about a change of owner that could not be noted.
const noteRetry = 30 * time.Second

// Owned reports whether the robot holds the user data of an owner, who may not be its owner any more.
func (p *People) Owned() bool { return p.tenure != nil && p.tenure.Owned() }

// profileIs begins the session of events of a profile, and ends that before (VEC-DAS-18).
func (p *People) profileIs(id string) {
	if before := p.profile.Swap(&id); before != nil && *before != id {
		p.Emit(events.Event{Source: "agentd", Name: "profile_id.stop", S1: *before})
	}
	p.Emit(events.Event{Source: "agentd", Name: "profile_id.start", S1: id})
}

// Services lists the services for these relations.
func (p *People) Services() []runner.Service {
	all := []runner.Service{{Name: "introduction", Run: func(ctx context.Context) error { return p.teller.Run(ctx, p.cfg.Linked, p.introduce) }}}
	if p.tokens == nil {
		return all
	}
	return append(all, runner.Service{Name: "gateway certificate", Run: p.makePlate}, runner.Service{Name: "tokens", Run: p.tokens.Run},
		runner.Service{Name: "claim", Run: p.claim.Run}, runner.Service{Name: "local requests", Run: p.serveLocal})
}

// Connected says that there is a connection to the cloud.
func (p *People) Connected() { p.teller.Connected() }

// Name returns the robot's name; "" while it has none.
func (p *People) Name() string { return p.plate.Name() }

// State returns the state of clients and claim for the report; nil: a frugal robot has none.
func (p *People) State() (*tokens.State, *claim.State) {
	if p.tokens == nil {
		return nil, nil
	}
	t, c := p.tokens.State(), p.claim.State()
	return &t, &c
}

// Hinted handles a hint of new documents in the cloud: with the clients the owner may have changed, with the account's settings their consent.
func (p *People) Hinted(docs map[string]uint64) {
	if p.tokens == nil {
		return
	}
	p.tokens.Hint(docs)
	_, apps := docs[string(jdocs.AppTokens)]
	_, account := docs[string(jdocs.AccountSettings)]
	if apps || account {
		p.claim.Look()
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
	p.cfg.Named()
	p.teller.Connected()
	return nil
}

// introduce says what the cloud must know of the robot beside a wipe.
func (p *People) introduce(ctx context.Context) error {
	if p.tokens == nil {
		return nil
	}
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
		return "", errs.Coded(errs.Unavailable, "wipe_untold", "the cloud does not know yet that the user data were cleared; try again in a moment")
	}
	if p.plate.PEM() == nil {
		return "", errs.Coded(errs.Unavailable, "no_gateway_certificate", "the robot's certificate for its apps is not made yet; try again in a moment")
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
	p.cfg.Restart(errors.New("the user data are to be cleared"))
	return nil
}
