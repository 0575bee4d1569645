// Package door watches the port of original robots: who calls there, and what was refused or broke off.
//
// A call with a proof, which is a certificate or an access token, is a sign of life of its robot (Seen). A refusal becomes a step of the
// robot that called, for the doctor. If nothing in the call proves which robot that was, the address may: if one robot alone has called from
// there within AdoptWithin, before or after, the refusal is taken as its own. All others are strangers, whom operators see in a list.
//
// Any client that reaches the port can cause refusals, so everything is bounded: what is remembered between two writes, what a write costs, and what
// is stored.
package door

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/infra/logging"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
)

// Bounds.
const (
	AdoptWithin  = 10 * time.Minute   // between a robot's call and a refusal from its address
	WriteEvery   = 2 * time.Second    // refusals are gathered in between
	MaxStrangers = 500                // rows
	KeepFor      = 7 * 24 * time.Hour // a stranger who does not come back
	maxGathered  = 500                // different refusals between two writes; more are only counted
	maxAddresses = 10_000             // addresses of robots that are remembered
	logEvery     = time.Second        // a line, beyond a burst of logBurst
	logBurst     = 60
)

// The codes of refusals, beside those of other packages.
const (
	CodeRoot    = "root_distrusted" // the client does not trust our certificate
	CodeClock   = "clock_ahead"     // the client takes our certificate for expired
	CodeName    = "name_foreign"    // our certificate does not carry the name that the client asked for
	CodeNoName  = "name_missing"    // the client called an address, by no name
	CodeTLS     = "tls_failed"      // any other end of a handshake
	CodeService = "service_unknown"
	CodeSpeech  = "speech_missing"
	CodePath    = "path_unknown"
	CodeUpdate  = "update_missing" // it asked for an archive of its software

	CodeUnproved = "unproved" // it sent a file or events from an address where it has not proved lately who it is (package intake)
)

// Codes are all of them, for meters.
var Codes = []string{CodeRoot, CodeClock, CodeName, CodeNoName, CodeTLS, CodeService, CodeSpeech, CodePath, CodeUpdate, CodeUnproved}

// Refusal is a call that was refused, or a connection that broke off.
type Refusal struct {
	Addr    string   // of the peer; its port does not count
	Thing   thing.ID // proved; "": nothing was
	Claim   thing.ID // said without a proof
	Step    string   // registry.StepTLS, registry.StepService, or one of the token service
	Code    string
	Detail  string
	Version string // of the peer's software, as it says
	Logged  bool   // by the package that refused
}

// Stranger is a refusal that belongs to no robot of the fleet, and how often it occurred.
type Stranger struct {
	Addr    string    `json:"address"`
	Step    string    `json:"step"`
	Code    string    `json:"code"`
	Claim   thing.ID  `json:"claims,omitempty"` // the robot that it says it is
	Detail  string    `json:"detail"`
	Version string    `json:"version,omitempty"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	Times   int64     `json:"times"`
	Do      string    `json:"do,omitempty" db:"-"` // what to do about it
}

// Store is the storage that Door needs.
type Store interface {
	// Add counts strangers, and removes the oldest beyond MaxStrangers and KeepFor.
	Add(ctx context.Context, all []Stranger) error
	// Take removes and returns those of an address that claim to be id, or make no claim, and came after since.
	Take(ctx context.Context, addr string, id thing.ID, since time.Time) ([]Stranger, error)
	// Strangers returns those that claim to be no robot of the fleet, the latest first.
	Strangers(ctx context.Context) ([]Stranger, error)
}

// Robots is the part of the fleet that Door needs; *registry.Service has it.
type Robots interface {
	Seen(ctx context.Context, c registry.Call)
	RecordAll(ctx context.Context, steps []registry.Step) error
}

// Door is safe for concurrent use. Run writes what it gathers.
type Door struct {
	store  Store
	robots Robots
	count  func(step, code string) // of every refusal
	log    *slog.Logger
	lines  *ratelimit.Keyed
	takes  *ratelimit.Keyed // by robot

	mu       sync.Mutex
	gathered map[key]*Stranger
	lost     int64 // since the last write
	callers  map[string]caller
}

// key tells apart what is counted. A refusal has a thing or an address.
type key struct {
	thing            thing.ID
	addr, step, code string
	claim            thing.ID
}

// caller is the robot that has called from an address.
type caller struct {
	thing thing.ID // "": several have
	at    time.Time
}

// New returns a door. count counts refusals.
func New(store Store, robots Robots, count func(step, code string), log *slog.Logger) *Door {
	return &Door{store: store, robots: robots, count: count, log: log, lines: ratelimit.New(logEvery, logBurst), takes: ratelimit.New(AdoptWithin/10, 1),
		gathered: map[key]*Stranger{}, callers: map[string]caller{}}
}

// Refused notes a refusal. It does not wait.
func (d *Door) Refused(ctx context.Context, r Refusal) {
	d.count(r.Step, r.Code)
	r.Detail, r.Version = registry.Clip(r.Detail, 300), registry.Clip(r.Version, 80)
	addr, now := ratelimit.Network(r.Addr), time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	by := ""
	if r.Thing == "" {
		if c := d.callers[addr]; c.thing != "" && now.Sub(c.at) < AdoptWithin && (r.Claim == "" || r.Claim == c.thing) {
			r.Thing, by = c.thing, byAddress
		}
	}
	k := key{r.Thing, addr, r.Step, r.Code, r.Claim}
	if s := d.gathered[k]; s != nil {
		s.Last, s.Detail, s.Version = now, r.Detail+by, r.Version
		s.Times++
		return
	}
	if len(d.gathered) >= maxGathered {
		d.lost++
		return
	}
	d.gathered[k] = &Stranger{Addr: addr, Step: r.Step, Code: r.Code, Claim: r.Claim, Detail: r.Detail + by, Version: r.Version, First: now, Last: now, Times: 1}
	if !r.Logged && d.lines.Allow("") == 0 {
		d.log.WarnContext(ctx, "call of an original robot refused", logging.Thing, r.Thing, "claims", r.Claim, logging.Addr, addr, "step", r.Step, "code", r.Code,
			"reason", r.Detail)
	}
}

// byAddress ends the words of a refusal that is a robot's own by its address alone.
const byAddress = " (told by its address alone)"

// Seen notes a call of a robot that has proved who it is, and takes over what was refused to its address.
func (d *Door) Seen(ctx context.Context, c registry.Call) {
	addr, now := ratelimit.Network(c.Peer), time.Now()
	if d.alone(addr, c.Thing, now) && d.takes.Allow(string(c.Thing)+" "+addr) == 0 {
		if err := d.adopt(ctx, addr, c.Thing, now.Add(-AdoptWithin)); err != nil {
			d.log.WarnContext(ctx, "earlier refusals not assigned to the robot", logging.Thing, c.Thing, logging.Err, err)
		}
	}
	d.robots.Seen(ctx, c)
}

// alone remembers that a robot called from addr, and reports whether it is the only one lately.
func (d *Door) alone(addr string, id thing.ID, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	old, known := d.callers[addr]
	lately := known && now.Sub(old.at) < AdoptWithin
	switch {
	case addr == "":
		return false // all who have none would be one
	case lately && old.thing == "":
		return false // until none has called for a while, or the address is forgotten
	case lately && old.thing != id:
		d.callers[addr] = caller{"", now}
		return false
	case !known && len(d.callers) >= maxAddresses:
		maps.DeleteFunc(d.callers, func(_ string, c caller) bool { return now.Sub(c.at) >= AdoptWithin })
		if len(d.callers) >= maxAddresses {
			return false
		}
	}
	d.callers[addr] = caller{id, now}
	return true
}

func (d *Door) adopt(ctx context.Context, addr string, id thing.ID, since time.Time) error {
	taken, err := d.store.Take(ctx, addr, id, since)
	if err != nil {
		return err
	}
	steps := make([]registry.Step, len(taken))
	for i, s := range taken {
		steps[i] = s.step(id)
		steps[i].Detail = s.Detail + byAddress
	}
	d.mu.Lock()
	for k, s := range d.gathered { // these follow with the next write
		if k.thing == "" && k.addr == addr && (k.claim == "" || k.claim == id) {
			delete(d.gathered, k)
			k.thing, s.Detail = id, s.Detail+byAddress
			d.gathered[k] = s
		}
	}
	d.mu.Unlock()
	return d.robots.RecordAll(ctx, steps)
}

func (s *Stranger) step(id thing.ID) registry.Step {
	return registry.Step{Thing: id, At: s.Last, Name: s.Step, Code: s.Code, Peer: s.Addr, Version: s.Version, Detail: s.Detail, Times: s.Times}
}

// Run writes what was gathered until ctx ends, and once more then.
func (d *Door) Run(ctx context.Context) error {
	tick := time.NewTicker(WriteEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.write(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), WriteEvery)
			defer cancel()
			d.write(last)
			return nil
		}
	}
}

// write stores what was gathered. What cannot be stored is gone: it is in the log.
func (d *Door) write(ctx context.Context) {
	d.mu.Lock()
	gathered, lost := d.gathered, d.lost
	d.gathered, d.lost = map[key]*Stranger{}, 0
	d.mu.Unlock()
	if lost > 0 {
		d.log.WarnContext(ctx, "too many different refusals at once; rest dropped", "dropped", lost)
	}
	var steps []registry.Step
	var strangers []Stranger
	for k, s := range gathered {
		if k.thing != "" {
			steps = append(steps, s.step(k.thing))
		} else {
			strangers = append(strangers, *s)
		}
	}
	var err error
	if len(steps) > 0 {
		slices.SortFunc(steps, func(a, b registry.Step) int { return a.At.Compare(b.At) }) // of several with one outcome the last counts
		err = d.robots.RecordAll(ctx, steps)
	}
	if len(strangers) > 0 {
		err = errors.Join(err, d.store.Add(ctx, strangers))
	}
	if err != nil {
		d.log.WarnContext(ctx, "refusals not stored", "steps", len(steps), "strangers", len(strangers), logging.Err, err)
	}
}

// Strangers returns refusals of callers that are no robots of the fleet, the latest first.
func (d *Door) Strangers(ctx context.Context) ([]Stranger, error) {
	out, err := d.store.Strangers(ctx)
	for i := range out {
		out[i].Do = registry.Advice(out[i].Code)
	}
	return out, err
}

// Why says in sentences why robots that call here do not appear.
func (d *Door) Why(ctx context.Context) (string, error) {
	all, err := d.Strangers(ctx)
	if err != nil || len(all) == 0 {
		return "Nothing was refused at the original robots' port in the last week: none has reached it. kenneld originals check says whether one can.", err
	}
	s := all[0]
	return fmt.Sprintf("A client at %s called the original robots' port and was refused %s ago: %s. %s.", s.Addr, registry.Ago(time.Since(s.Last)), s.Detail, s.Do), nil
}

// WhyNot says in sentences why a robot that is not in the fleet does not appear: by what was refused to callers that claimed to be this robot, else to callers
// that claimed nothing. What was refused to another robot says nothing about this one.
func (d *Door) WhyNot(ctx context.Context, id thing.ID) (string, error) {
	all, err := d.Strangers(ctx)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(all, func(s Stranger) bool { return s.Claim == id })
	who := "It"
	if at < 0 {
		at, who = slices.IndexFunc(all, func(s Stranger) bool { return s.Claim == "" }), "A client that did not say which robot it is"
	}
	if at < 0 {
		return "Nothing that may have been this robot was refused at the original robots' port in the last week. kenneld originals check says whether a robot can reach it.", nil
	}
	s := all[at]
	return fmt.Sprintf("%s called the original robots' port from %s and was refused %s ago: %s. %s.", who, s.Addr, registry.Ago(time.Since(s.Last)), s.Detail, s.Do), nil
}

// Broken notes a handshake that did not succeed. The client asked for name and was shown chain.
func (d *Door) Broken(ctx context.Context, addr, name string, chain []*x509.Certificate, err error) {
	code, detail := judge(name, chain, err)
	d.Refused(ctx, Refusal{Addr: addr, Step: registry.StepTLS, Code: code, Detail: detail})
}

// expired is how TLS clients say that the dates of a certificate are over. Those of original robots do not tell that apart.
const expired = "tls: expired certificate"

// distrust is how TLS clients say that they do not accept a certificate. Those of original robots say the second, whatever the reason.
var distrust = []string{expired, "tls: bad certificate", "tls: unknown certificate authority", "tls: unknown certificate", "tls: unsupported certificate"}

// unsealed is how a server sees the alert of an OpenSSL client that does not accept a certificate over TLS 1.3: the alert is not sealed with the keys of the handshake (openssl 3.0).
const unsealed = "tls: bad record MAC"

// judge returns why a handshake broke off, as far as it shows here.
func judge(name string, chain []*x509.Certificate, err error) (code, detail string) {
	var alert *net.OpError
	if errors.As(err, &alert) && len(chain) > 0 && (alert.Op == "remote error" && slices.Contains(distrust, alert.Err.Error()) || alert.Op == "local error" && alert.Err.Error() == unsealed) {
		switch {
		case name == "":
			return CodeNoName, "it called an address, by no name, and did not accept the certificate"
		case chain[0].VerifyHostname(name) != nil:
			return CodeName, "it called " + name + ", which the certificate of this port does not carry"
		}
		from, until := chain[0].NotBefore.UTC().Format(time.DateOnly), chain[0].NotAfter.UTC().Format(time.DateOnly)
		if alert.Err.Error() == expired {
			return CodeClock, "it called " + name + " and takes the certificate for expired, which is valid until " + until + ": its clock is ahead"
		}
		return CodeRoot, "it called " + name + " and does not trust the certificate: its clock is not between " + from + " and " + until + ", or it lacks the root " + chain[len(chain)-1].Issuer.CommonName
	}
	detail = "the handshake failed"
	if name != "" {
		detail += " after it called " + name
	}
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		detail += ": it hung up without a word"
	case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
		detail += ": it did not finish in time"
	default:
		detail += ": " + err.Error()
	}
	return CodeTLS, detail
}
