package registry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/api/status"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Level is a check's result.
type Level string

// The levels, from best to worst.
const (
	OK      Level = "ok"
	Unknown Level = "unknown" // cannot be told before an earlier check is well
	Warn    Level = "warn"
	Fail    Level = "fail"
)

var rank = map[Level]int{OK: 0, Unknown: 0, Warn: 1, Fail: 2}

// Check is one line of a report.
type Check struct {
	Name    string    `json:"check"`
	Level   Level     `json:"level"`
	Text    string    `json:"text"`              // what is the case
	Do      string    `json:"do,omitempty"`      // what to do about it
	Since   time.Time `json:"since,omitzero"`    // when that began
	Peer    string    `json:"peer,omitempty"`    // address of the robot as we saw it
	Version string    `json:"version,omitempty"` // what the robot ran
}

// Report holds the doctor's findings in the order of a robot's way to the fleet: the first check that fails is the one to fix first.
type Report struct {
	Thing   thing.ID  `json:"thing"`
	At      time.Time `json:"at"`
	Level   Level     `json:"level"`   // the worst of all checks
	Verdict string    `json:"verdict"` // one sentence
	Checks  []Check   `json:"checks"`
	Steps   []Outcome `json:"steps"` // what was recorded, the latest first
	// Refusal is the latest refusal that was recorded, of whatever step; nil: none.
	Refusal *Refusal `json:"last_refusal,omitempty"`
}

// Refusal is an outcome that was a refusal.
type Refusal struct {
	Outcome
	Over bool `json:"over"` // the same step has succeeded since, or the service that was not there
}

// Certificate is the newest device certificate of a thing.
type Certificate struct {
	Serial    string
	NotBefore time.Time // zero: not told
	NotAfter  time.Time
	Method    string    // by what it was issued, in one word (package certs); "": not told
	Revoked   time.Time // zero: in force
	Reason    string    // why it was revoked
}

// Sources gives the doctor and the table facts from other domains. A nil source leaves its check out.
type Sources struct {
	// Certificate returns the newest certificate, false if there is none.
	Certificate func(context.Context, thing.ID) (Certificate, bool, error)
	// Docs returns the latest version of each document the cloud holds.
	Docs func(context.Context, thing.ID) (map[string]uint64, error)
	// Owner reports since when the thing has the owner that it has. Without it the recorded steps tell.
	Owner func(context.Context, thing.ID) (since time.Time, owned bool, err error)
	// Release returns the desired release ("": none) and since when it is desired.
	Release func(context.Context, thing.ID) (version string, since time.Time, err error)

	// Names returns the names that owners gave to these things; nil: not known.
	Names func(context.Context, []thing.ID) (map[thing.ID]string, error)
	// Owners returns the e-mails of the owners of these things; nil: not known. It refuses callers who may not know, of kind Denied.
	Owners func(context.Context, []thing.ID) (map[thing.ID]string, error)
	// Filter answers the filters' questions to other domains.
	Filter filter.Sources
	// Zone returns the time zone in a thing's settings; "": they name none.
	Zone func(context.Context, thing.ID) (string, error)
	// Speech says what is wrong with the recognisers of this cloud; "": nothing. Unheard returns a robot's language if this cloud does not understand it. They may be set later (Hears).
	Speech  func() string
	Unheard func(context.Context, thing.ID) (string, error)
	// Strangers says in sentences what the original robots' port refused of late that may have been the robot. It may be set later (Refuses).
	Strangers func(context.Context, thing.ID) (string, error)
}

// Doctor examines a thing, registered or not.
func (s *Service) Doctor(ctx context.Context, id thing.ID) (Report, error) {
	now := time.Now()
	f := facts{id: id, now: now}
	one, err := s.thing(ctx, id)
	switch {
	case err == nil:
		f.thing = &one[0]
	case errs.KindOf(err) != errs.NotFound:
		return Report{}, err
	}
	if f.steps, err = s.store.Steps(ctx, id); err != nil {
		return Report{}, err
	}
	if s.src.Certificate != nil {
		c, ok, err := s.src.Certificate(ctx, id)
		if err != nil {
			return Report{}, fmt.Errorf("certificate: %w", err)
		}
		if ok {
			f.cert = &c
		}
	}
	if s.src.Docs != nil {
		if f.docs, err = s.src.Docs(ctx, id); err != nil {
			return Report{}, fmt.Errorf("documents: %w", err)
		}
		f.hasDocs = true
	}
	if s.src.Owner != nil {
		if f.ownedSince, f.owned, err = s.src.Owner(ctx, id); err != nil {
			return Report{}, fmt.Errorf("owner: %w", err)
		}
		f.hasOwner = true
	}
	if s.src.Release != nil {
		if f.wanted, f.wantedSince, err = s.src.Release(ctx, id); err != nil {
			return Report{}, fmt.Errorf("release: %w", err)
		}
		f.hasRelease = true
	}
	if s.src.Zone != nil {
		if f.zone, err = s.src.Zone(ctx, id); err != nil {
			return Report{}, fmt.Errorf("time zone: %w", err)
		}
	}
	if s.src.Speech != nil {
		f.speech = s.src.Speech()
	}
	if s.src.Unheard != nil {
		if f.unheard, err = s.src.Unheard(ctx, id); err != nil {
			return Report{}, fmt.Errorf("language: %w", err)
		}
	}
	if s.src.Strangers != nil && f.thing == nil && len(f.steps) == 0 {
		if f.strangers, err = s.src.Strangers(ctx, id); err != nil {
			return Report{}, fmt.Errorf("refusals of strangers: %w", err)
		}
	}
	return f.diagnose(), nil
}

// Refuses gives the doctor what the original robots' port refused of callers that it does not know. It is called before the service is used.
func (s *Service) Refuses(strangers func(context.Context, thing.ID) (string, error)) {
	s.src.Strangers = strangers
}

// Hears gives the doctor what is wrong with the recognisers, and the language of a robot that they do not understand. It is called before the service is used.
func (s *Service) Hears(trouble func() string, unheard func(context.Context, thing.ID) (string, error)) {
	s.src.Speech, s.src.Unheard = trouble, unheard
}

// hearing says why robots may not be understood, whichever they are.
func (f *facts) hearing() (Check, bool) {
	if f.speech == "" && f.unheard != "" {
		return Check{Name: "speech", Level: Warn, Text: fmt.Sprintf("its language is %q, and no recogniser of this cloud understands that", Clip(f.unheard, 32)),
			Do: "Choose another language in its settings, or add a recogniser for this one (speech.recognizers)"}, true
	}
	return Check{Name: "speech", Level: Warn, Text: "this cloud may not understand speech: " + f.speech,
		Do: "Nothing is wrong with the robot. Repair the recogniser that is named; the cloud tries it again every 30 seconds"}, f.speech != ""
}

// facts are the only input of a diagnosis.
type facts struct {
	id          thing.ID
	now         time.Time
	speech      string    // what is wrong with the recognisers
	unheard     string    // its language, if nothing understands that
	thing       *Thing    // nil: not registered
	strangers   string    // of a robot of which nothing is known: what the original robots' port refused
	steps       []Outcome // the latest first
	cert        *Certificate
	docs        map[string]uint64
	hasDocs     bool
	ownedSince  time.Time
	owned       bool
	hasOwner    bool // whether Sources told
	wanted      string
	wantedSince time.Time
	hasRelease  bool
	zone        string // in its settings; "": they name none
}

func (f *facts) diagnose() Report {
	for i := range f.steps {
		if !f.steps[i].OK {
			f.steps[i].Do = advice[f.steps[i].Code]
		}
	}
	r := Report{Thing: f.id, At: f.now, Level: OK, Steps: f.steps, Refusal: f.refusal()}
	checks := []func() (Check, bool){f.registered, f.trust, f.enrolled, f.certificate, f.broker, f.presence, f.boot, f.clock, f.token, f.owner, f.documents, f.timeZone, f.services, f.crashes, f.events, f.loop, f.body,
		f.problems, f.release, f.hearing}
	if f.original() {
		checks = []func() (Check, bool){f.registered, f.trust, f.enrolled, f.software, f.calls, f.token, f.owner, f.stored, f.timeZone, f.services, f.crashes, f.hearing}
	}
	if f.device() {
		checks = []func() (Check, bool){f.registered, f.updater, f.presence, f.crashes, f.problems, f.release}
	}
	var worst *Check
	for _, check := range checks {
		c, told := check()
		if !told {
			continue
		}
		r.Checks = append(r.Checks, c)
		if rank[c.Level] > rank[r.Level] {
			r.Level = c.Level
			worst = &c
		}
	}
	switch {
	case worst == nil:
		r.Verdict = "all is well"
		if o := r.Refusal; o != nil && f.original() && f.now.Sub(o.Last) < refusedLately {
			r.Verdict = fmt.Sprintf("all is well now; the last refusal was %s ago: %s, %s", Ago(f.now.Sub(o.Last)), o.Name, cmp.Or(o.Detail, o.Code))
		}
	case worst.Do != "":
		r.Verdict = worst.Name + ": " + worst.Text + ". " + worst.Do
	default:
		r.Verdict = worst.Name + ": " + worst.Text
	}
	if r.Steps == nil {
		r.Steps = []Outcome{}
	}
	return r
}

// last returns the latest outcome of any of the named steps.
func (f *facts) last(names ...string) *Outcome {
	for i := range f.steps {
		if slices.Contains(names, f.steps[i].Name) {
			return &f.steps[i]
		}
	}
	return nil
}

// refusal returns the latest one. The steps are the latest first.
func (f *facts) refusal() *Refusal {
	for i, o := range f.steps {
		if !o.OK {
			return &Refusal{o, slices.ContainsFunc(f.steps[:i], o.endedBy)}
		}
	}
	return nil
}

func (f *facts) status() *status.Message {
	if f.thing == nil {
		return nil
	}
	return f.thing.Status
}

func (f *facts) present() bool { return f.thing != nil && f.thing.Presence == Present }

func (f *facts) registered() (Check, bool) {
	c := Check{Name: "registered", Level: OK}
	if f.thing == nil {
		c.Level = Fail
		c.Text = string(f.id) + " is not registered"
		c.Do = "Register it (kennelctl robots register " + string(f.id) + ") and give the robot the secret that this prints"
		if f.original() {
			c.Level, c.Do = Warn, "An original robot needs no secret: its first call with an accepted factory certificate registers it. See the next check that fails"
		}
		if f.neverCame() {
			c.Level, c.Text = Fail, c.Text+", and no call of it has come through"
			c.Do = f.strangers + " An original robot registers itself with its first call. A robot with Kennel's agent is registered with kennelctl robots register " + string(f.id)
		}
		if len(f.steps) > 0 {
			c.Text += ", though a robot of that name tried to get in"
			c.Since = f.steps[len(f.steps)-1].First
		}
		return c, true
	}
	c.Text, c.Since = "registered", f.thing.Created
	return c, true
}

func (f *facts) enrolled() (Check, bool) {
	c := Check{Name: "enrolment", Level: OK, Text: "enrolled with its claim secret"}
	if f.original() {
		return f.factory(c), true
	}
	o := f.last(StepEnroll)
	if how := methods[f.method()]; how != "" {
		c.Text = "enrolled " + how
	}
	switch {
	case o != nil && o.OK:
		return c.of(o), true
	case o != nil && o.Code == "waiting_approval" && !f.everSeen() && f.approved(o):
		c.Level, c.Text, c.Do = Unknown, "approved; it enrols when it asks again, within a minute", ""
		return c.of(f.last(StepApproval)), true
	case o != nil && f.last(StepRenew) == nil && !f.everSeen():
		c.Level = Fail
		return c.refused(o, "enrolment refused"), true
	case o != nil:
		c.Level = Warn // it has an identity; the request asks for another one
		return c.refused(o, "a later enrolment was refused"), true
	case f.everSeen() || f.cert != nil:
		if f.method() == "" {
			c.Text = "has an identity"
		}
		return c, true
	case f.thing == nil:
		c.Level, c.Text = Unknown, "not registered yet"
		return c, true
	}
	c.Level, c.Text = Warn, "not enrolled: the robot has not reached this cloud"
	c.Do = "Check that it is on and on a network, that it can reach this server's name and port, and that its server file has this cloud's root certificate"
	c.Since = f.thing.Created
	return c, true
}

// methods says in words by what a certificate was issued (package certs). A renewal says nothing of how it began.
var methods = map[string]string{"enroll": "with its claim secret", "factory": "with its factory certificate", "key": "with an approved or known key"}

func (f *facts) method() string {
	if f.cert == nil {
		return ""
	}
	return f.cert.Method
}

// approved reports whether an operator has let the robot in since o.
func (f *facts) approved(o *Outcome) bool {
	a := f.last(StepApproval)
	return a != nil && a.OK && a.Last.After(o.First)
}

func (f *facts) everSeen() bool { return f.thing != nil && !f.thing.LastSeen.IsZero() }

func (f *facts) certificate() (Check, bool) {
	c := Check{Name: "certificate", Level: OK, Text: "in force"}
	if o := f.last(StepEnroll, StepRenew); o != nil && o.Name == StepRenew {
		if !o.OK {
			c.Level = Fail
			return c.refused(o, "renewal refused"), true
		}
		c = c.of(o)
	}
	if f.cert == nil {
		if !f.everSeen() {
			c.Level, c.Text = Unknown, "none issued yet"
		}
		return c, true
	}
	c.Text = fmt.Sprintf("%.16s, valid until %s", f.cert.Serial, stamp(f.cert.NotAfter))
	if !f.cert.NotBefore.IsZero() {
		c.Text = fmt.Sprintf("CN %s, serial %.16s, valid from %s to %s", f.id, f.cert.Serial, stamp(f.cert.NotBefore), stamp(f.cert.NotAfter))
	}
	switch {
	case !f.cert.Revoked.IsZero():
		c.Level, c.Since = Fail, f.cert.Revoked
		c.Text, c.Do = "revoked", advice["revoked"]
		if f.cert.Reason != "" {
			c.Text += ": " + f.cert.Reason
		}
	case f.cert.NotAfter.Before(f.now):
		c.Level, c.Since = Warn, f.cert.NotAfter
		c.Text, c.Do = "expired on "+stamp(f.cert.NotAfter), "A robot that has its key renews by itself once it is on and reaches this cloud"
	}
	return c, true
}

func (f *facts) broker() (Check, bool) {
	c := Check{Name: "broker", Level: OK, Text: "logs in"}
	o := f.last(StepBroker)
	switch {
	case o != nil && !o.OK && (f.thing == nil || f.thing.LastSeen.Before(o.Last)):
		c.Level = Fail
		return c.refused(o, "turned away by the broker"), true
	case o != nil && o.OK:
		c = c.of(o)
	case !f.everSeen() && f.thing != nil && f.enrolledAt() != nil:
		// It reached us for its identity, so it is on and trusts us: something blocks its way to the broker.
		c.Level, c.Text = Warn, "enrolled, but has not connected to the broker yet"
		c.Do = "If this lasts, check that the broker's port (8883, or the one in the robot's server file) can be reached from the robot's network. A firewall that allows only web traffic blocks it"
		c = c.of(f.enrolledAt())
	case !f.everSeen():
		c.Level, c.Text = Unknown, "has not tried"
	}
	return c, true
}

// enrolledAt is the outcome by which it has its identity; nil: none.
func (f *facts) enrolledAt() *Outcome {
	if o := f.last(StepEnroll); o != nil && o.OK {
		return o
	}
	return nil
}

func (f *facts) presence() (Check, bool) {
	c := Check{Name: "presence", Level: OK}
	if o := f.last(StepStatus); o != nil && !o.OK && !f.present() {
		c.Level = Fail
		return c.refused(o, "its status cannot be read"), true
	}
	switch {
	case f.thing == nil || !f.everSeen():
		c.Level, c.Text = Unknown, "never seen"
		return c, true
	case !f.present():
		c.Level, c.Text, c.Since = Warn, "offline for "+Ago(f.now.Sub(f.thing.Since)), f.thing.Since
		c.Do = "Check that it is on, charged and on its network. It reconnects by itself"
	default:
		c.Text, c.Since = "online for "+Ago(f.now.Sub(f.thing.Since)), f.thing.Since
	}
	if m := f.status(); m != nil {
		c.Version = m.Agent
	}
	return c, true
}

// Bounds of a robot's clock against ours, the way of a message included.
const (
	clockWarn = 5 * time.Second
	clockFail = 5 * time.Minute
)

func (f *facts) clock() (Check, bool) {
	c := Check{Name: "clock", Level: OK}
	m := f.status()
	if m == nil {
		c.Level, c.Text = Unknown, "no status yet"
		return c, true
	}
	if m.TS == 0 {
		c.Level, c.Text = Unknown, "the robot has not reported its time"
		return c, true
	}
	d := time.Duration(f.thing.ClockMS) * time.Millisecond
	c.Text = fmt.Sprintf("%s from ours", d.Round(time.Millisecond))
	switch d = d.Abs(); {
	case d >= clockFail:
		c.Level = Fail
		c.Do = "Certificates and tokens depend on time: let the robot reach a time server"
	case d >= clockWarn:
		c.Level = Warn
		c.Do = "Its event times are off by as much: let the robot reach a time server"
	}
	return c, true
}

// token tells of the person's session and the access token that came of it (package token).
func (f *facts) token() (Check, bool) {
	c := Check{Name: "token", Level: OK}
	switch o := f.last(stepsOfTokens...); {
	case o == nil && !f.everSeen():
		c.Level, c.Text = Unknown, "not requested"
	case o == nil:
		c.Text = "no token yet: no owner has signed in with an app"
	case !o.OK:
		if c.Level = Warn; !slices.ContainsFunc(f.steps, func(s Outcome) bool { return s.OK && slices.Contains(stepsOfTokens, s.Name) }) {
			c.Level = Fail // it never had one
		}
		return c.refused(o, tokenWords[o.Name]+" refused"), true
	case o.Name == StepDisassociate:
		c.Text = "ended with its owner"
		return c.of(o), true
	default:
		c.Text = "signed in for its owner; last: " + tokenWords[o.Name]
		return c.of(o), true
	}
	return c, true
}

// owner tells whose the robot is, never who: the page has that.
func (f *facts) owner() (Check, bool) {
	c := Check{Name: "owner", Level: OK}
	o := f.last(StepClaim, StepOwner)
	if o != nil && !o.OK && (o.Last.After(f.ownedSince) || !f.hasOwner) {
		c.Level = Warn
		c = c.refused(o, "a claim was refused")
		if f.hasOwner && f.owned {
			c.Text = "has an owner; since then " + c.Text
		}
		return c, true
	}
	switch {
	case f.hasOwner && f.owned:
		c.Text, c.Since = "has an owner", f.ownedSince
	case f.thing == nil:
		c.Level, c.Text = Unknown, "not registered yet"
	case f.hasOwner || o == nil:
		c.Text = "no owner yet"
		if f.everSeen() {
			if c.Do = "Its owner signs in at /my and enters the code that the robot shows"; f.original() {
				c.Do = "Its owner signs it in with the robot's app"
			}
		}
	default:
		c.Text = o.Detail
		return c.of(o), true
	}
	return c, true
}

// boot says what a robot started that did not start as usual. Much else follows from it, so it comes early.
func (f *facts) boot() (Check, bool) {
	c := Check{Name: "boot", Level: Warn, Text: "it started its recovery system: user data is untouched, and no settings apply",
		Do: "Switch it off and on for a normal start"}
	m := f.status()
	return c, m != nil && m.Recovery
}

func (f *facts) documents() (Check, bool) {
	c := Check{Name: "documents", Level: OK, Text: "in sync with the cloud"}
	if !f.hasDocs {
		return c, false
	}
	m := f.status()
	if m == nil {
		c.Level, c.Text = Unknown, "no status yet"
		return c, true
	}
	if m.Recovery {
		c.Level, c.Text = Unknown, "none are opened in a recovery system"
		return c, true
	}
	var behind []string
	for doc, v := range f.docs {
		if has := m.Docs[doc]; has < v {
			behind = append(behind, fmt.Sprintf("%s: the cloud has version %d, the robot %d", doc, v, has))
		}
	}
	for _, doc := range m.Dirty {
		behind = append(behind, doc+": changed on the robot, not yet taken by the cloud")
	}
	if len(behind) == 0 {
		return c, true
	}
	slices.Sort(behind)
	c.Level, c.Text = Warn, strings.Join(behind, "; ")
	c.Do = "An online robot gets them within seconds; if it does not, see its problems and events"
	if !f.present() {
		c.Do = "It gets them when it reconnects"
	}
	return c, true
}

// eventBacklog is how many waiting events are more than a robot gathers between two deliveries.
const eventBacklog = 1000

func (f *facts) events() (Check, bool) {
	c := Check{Name: "events", Level: OK, Text: "delivered"}
	m := f.status()
	if m == nil || m.Spool == nil {
		c.Level, c.Text = Unknown, "no status yet"
		return c, true
	}
	s := m.Spool
	var found []string
	if s.Quarantined > 0 {
		found = append(found, fmt.Sprintf("%d refused by the cloud and kept aside on the robot", s.Quarantined))
		c.Do = "The robot's event log and this cloud's log name the batch and the reason"
	}
	if s.Dropped > 0 {
		found = append(found, fmt.Sprintf("%d dropped by the robot's quota since its start", s.Dropped))
		c.Do = cmp.Or(c.Do, "It was offline too long or sends too many events for its quota")
	}
	if s.Events > eventBacklog {
		found = append(found, fmt.Sprintf("%d (%d kB) wait on the robot", s.Events, s.Bytes>>10))
		c.Do = cmp.Or(c.Do, "They arrive by themselves. If the number grows, check the cloud's event store")
	}
	if len(found) > 0 {
		c.Level, c.Text = Warn, strings.Join(found, "; ")
	}
	return c, true
}

func (f *facts) loop() (Check, bool) {
	c := Check{Name: "loop", Level: OK}
	m := f.status()
	switch {
	case m == nil:
		c.Level, c.Text = Unknown, "no status yet"
		return c, true
	case m.Loop == nil:
		c.Level, c.Text = Warn, "robotd does not report its control loop"
		c.Do = "Check that robotd is running on the robot. Its supervisor restarts it; its log says why it stopped"
		return c, true
	}
	l := m.Loop
	missed, p99 := loopLimits(l)
	c.Text = fmt.Sprintf("late by p50 %.0f µs, p99 %.0f µs; step p99 %.0f µs; %d of %d cycles missed", l.LateP50, l.LateP99, l.StepP99, l.Missed, l.Steps+l.Missed)
	switch {
	case l.Simulated:
		if c.Text += "; simulated"; LoopIsLate(l) {
			c.Level, c.Do = Warn, "The computer that simulates this robot is overloaded. Its motions may be slower than a real robot's; nothing else is wrong"
		}
	case missedShare(l) > missed:
		c.Level, c.Do = Fail, "More than 1 % of cycles are missed: the processor is overloaded, or a step takes too long"
	case l.LateP99 > p99 && l.FIFO:
		c.Level, c.Do = Warn, "p99 above 500 µs: another process on the robot runs at real-time priority"
	case !l.FIFO && l.LateP99 > p99:
		c.Level, c.Do = Warn, "p99 above 500 µs without real-time scheduling: allow robotd SCHED_FIFO (LimitRTPRIO)"
	}
	return c, true
}

// The faults of a body that does not answer (part of VEC-FLT-10).
const (
	bodySilent = 898
	noBody     = 899
)

func (f *facts) body() (Check, bool) {
	c := Check{Name: "body", Level: OK}
	m := f.status()
	if m == nil {
		c.Level, c.Text = Unknown, "no status yet"
		return c, true
	}
	var bad []string
	if b := m.Body; b != nil {
		c.Text = "battery not measured"
		if b.BatteryVolts > 0 {
			c.Text = fmt.Sprintf("battery %s, %.2f V", cmp.Or(b.BatteryLevel, "unknown"), b.BatteryVolts)
		}
		c.Version = b.Firmware
		if b.Fault != 0 {
			c.Level = Fail
			bad = append(bad, fmt.Sprintf("shows fault %d", b.Fault))
			c.Do = "Look up the code in the list of fault codes"
			if b.Fault == bodySilent || b.Fault == noBody {
				c.Do = "Its body does not answer: check that the body is on, connected and in its usual mode, or reset it. The robot then continues by itself"
			}
		}
		if b.BatteryLevel == "low" && !b.Charging {
			bad = append(bad, fmt.Sprintf("battery low (%.2f V) and not charging", b.BatteryVolts))
			c.Do = cmp.Or(c.Do, "Put it on its charger")
		}
	} else {
		bad = append(bad, "no report from its body")
		c.Do = "Check that robotd is running and the body is connected"
	}
	if len(bad) > 0 {
		if c.Level != Fail {
			c.Level = Warn
		}
		c.Text = strings.Join(bad, "; ")
	}
	return c, true
}

// problems lists what the fleet's table shows as problems, so that both always agree; the checks before this one say more of some.
func (f *facts) problems() (Check, bool) {
	c := Check{Name: "problems", Level: OK, Text: "none"}
	m := f.status()
	if m == nil {
		c.Level, c.Text = Unknown, "no status yet"
		return c, true
	}
	found := ProblemsOf(StatusAt{Message: *m, ClockMS: f.thing.ClockMS})
	for _, c := range f.thing.Crashes {
		found = append(found, c.Problem())
	}
	if len(found) == 0 {
		return c, true
	}
	c.Level, c.Text, c.Version = Warn, Words(found), m.Agent
	var do []string
	for _, kind := range KindsOf(found) {
		do = append(do, Explain(kind).Do)
	}
	c.Do = strings.TrimSuffix(strings.Join(do, " "), ".")
	return c, true
}

func (f *facts) release() (Check, bool) {
	c := Check{Name: "release", Level: OK}
	if !f.hasRelease {
		return c, false
	}
	m := f.status()
	if m == nil {
		c.Level, c.Text = Unknown, "no status yet"
		return c, true
	}
	running := cmp.Or(m.OS, "an unnamed release")
	switch {
	case f.wanted == "":
		c.Text = "runs " + running + ", as intended"
	case f.wanted == running:
		c.Text = "runs " + running + ", as intended"
	default:
		c.Level, c.Since = Warn, f.wantedSince
		c.Text = fmt.Sprintf("runs %s; target is %s", running, f.wanted)
		c.Do = "See the robot's update reports"
	}
	c.Version = running
	return c, true
}

// of adds when and where an outcome was seen.
func (c Check) of(o *Outcome) Check {
	c.Since, c.Peer, c.Version = o.First, o.Peer, o.Version
	return c
}

// refused describes a refusal and what to do about it.
func (c Check) refused(o *Outcome, what string) Check {
	c = c.of(o)
	c.Text = what
	if o.Detail != "" {
		c.Text += ": " + o.Detail
	} else if o.Code != "" {
		c.Text += ": " + o.Code
	}
	if o.Times > 1 {
		c.Text += fmt.Sprintf(" (%d times)", o.Times)
	}
	c.Do = advice[o.Code]
	return c
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }

// Ago prints a duration as people say it.
func Ago(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
