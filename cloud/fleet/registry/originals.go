package registry

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// Refusals count against an original robot for as long as it may take to call again: it refreshes its token about once a day.
const (
	refusedLately = 24 * time.Hour
	callsDaily    = 26 * time.Hour
)

// stepsOfAgents are steps that an original robot never takes.
var stepsOfAgents = []string{StepEnroll, StepRenew, StepBroker, StepStatus}

// original reports whether the robot is known by calls of original robots alone.
func (f *facts) original() bool {
	if f.thing != nil && f.thing.Presence == Calls {
		return true
	}
	return f.neverCame() || !f.everSeen() && f.last(stepsOfAgents...) == nil && f.last(append([]string{StepCall, StepTLS, StepService}, stepsOfTokens...)...) != nil
}

// neverCame reports whether nothing is known of a robot that may be an original one: a handshake that breaks off names no robot.
func (f *facts) neverCame() bool {
	return f.thing == nil && len(f.steps) == 0 && f.strangers != "" && f.id.Species() == thing.Vector
}

// factoryCodes are refusals of a factory certificate (package certs), beside those that begin with certificate_.
var factoryCodes = []string{"foreign_factory", "wrong_organisation", "wrong_name", "serial_outside_batch", "factory_expired", "batch_disabled", "factory_revoked"}

// Unproved reports whether a refusal's code says that a robot did not prove who it is: its name in that step is a claim.
func Unproved(code string) bool {
	return strings.HasPrefix(code, "certificate_") || slices.Contains(factoryCodes, code)
}

// factory tells of the certificate that a robot showed with its last request for a token.
func (f *facts) factory(c Check) Check {
	o := f.last(stepsOfTokens...)
	if o == nil {
		c.Level, c.Text = Unknown, "has not requested a token, so it has not shown a certificate"
		return c
	}
	if !o.OK && Unproved(o.Code) {
		c.Level = Fail
		return c.refused(o, "its factory certificate was refused")
	}
	c.Text = "uses its factory certificate, as original robots do"
	if o.Shown != nil {
		c.Text += ": " + o.Shown.String()
	}
	return c.of(o)
}

// trust says whether handshakes succeed: whether the robot knows our root, and by which name it looked us up.
func (f *facts) trust() (Check, bool) {
	c := Check{Name: "trust", Level: OK, Text: "trusts this cloud's certificate"}
	called := f.last(StepCall)
	// A robot that calls after it distrusted the root has the root now. A name that the certificate lacks may be one of several that it calls.
	o := f.last(StepTLS)
	over := o != nil && called != nil && called.Last.After(o.Last) && o.endedBy(*called)
	if o != nil && !over && f.now.Sub(o.Last) < refusedLately {
		if c.Level = Warn; called == nil {
			c.Level = Fail
		}
		return c.refused(o, "a connection broke off"), true
	}
	switch {
	case !f.original():
		return c, false
	case called == nil && f.last(stepsOfTokens...) == nil:
		c.Level, c.Text = Unknown, "has not connected"
	case called != nil:
		if called.Detail != "" {
			c.Text += "; it " + called.Detail
		}
		return c.of(called), true
	}
	return c, true
}

// calls is the presence of a robot that keeps no connection.
func (f *facts) calls() (Check, bool) {
	c := Check{Name: "presence", Level: OK}
	if !f.everSeen() {
		c.Level, c.Text = Unknown, "never seen"
		return c, true
	}
	ago := f.now.Sub(f.thing.LastSeen)
	c.Text = "last connected " + Ago(ago) + " ago; original robots do not stay connected"
	if o := f.last(StepCall); o != nil {
		c = c.of(o)
		here := ratelimit.Network(o.Peer)
		if i := slices.IndexFunc(f.steps, func(s Outcome) bool { return s.Name == StepCall && ratelimit.Network(s.Peer) != here }); i >= 0 {
			c.Text += ". It called from " + ratelimit.Network(f.steps[i].Peer) + " before and now from " + here + ": its certificate and token say who it is, whatever its address"
		}
	}
	if c.Since = f.thing.LastSeen; ago > callsDaily {
		c.Level, c.Do = Warn, "A robot that is on connects about once a day. Check that it is on, charged and on its network, and that this network still points the names of its server file here"
	}
	return c, true
}

// stored says what the cloud holds for a robot that never says what it has itself.
func (f *facts) stored() (Check, bool) {
	c := Check{Name: "documents", Level: OK, Text: "none stored yet; the robot writes them once it has a token"}
	if len(f.docs) > 0 {
		names := make([]string, 0, len(f.docs))
		for doc := range f.docs {
			names = append(names, doc)
		}
		slices.Sort(names)
		c.Text = "stored here: " + strings.Join(names, ", ")
	}
	if old, ours := jdocs.RobotSettings.Format(f.version()), jdocs.RobotSettings.FmtVersion(); old < ours {
		c.Text += fmt.Sprintf("; its software writes settings of format %d, and what format %d adds to them is kept here meanwhile", old, ours)
	}
	return c, f.hasDocs
}

// version returns the software that an original robot runs, from its latest call or refusal that names one; "": none did.
func (f *facts) version() string {
	for _, o := range f.steps {
		if v := OSVersion(o.Version); v != "" {
			return v
		}
	}
	if f.thing != nil {
		return f.thing.Facets.Version
	}
	return ""
}

// newSetup is the first software whose setup over Bluetooth no published program speaks (peer facts, section 3).
const newSetup = "2.0.1.6090"

// software says what an original robot runs, and what is not supported of it.
func (f *facts) software() (Check, bool) {
	v := f.version()
	c := Check{Name: "software", Level: OK, Text: "runs " + v + ", which this cloud serves", Version: v}
	switch {
	case v == "":
		c.Level, c.Text = Unknown, "unknown"
	case v[0] >= '0' && v[0] <= '9' && filter.VersionKey(v) >= filter.VersionKey(newSetup) && f.hasOwner && !f.owned:
		c.Level, c.Text = Warn, "runs "+v+", an unsupported version for setup: since "+newSetup+" robots speak version 7 of the Bluetooth protocol, which no published app speaks"
		c.Do = "This cloud serves it once it has an owner. Sign it in with its maker's app, or install software before " + newSetup
	}
	return c, true
}

// timeZone says whether the zone in a robot's settings is one, and when clocks change there.
func (f *facts) timeZone() (Check, bool) {
	c := Check{Name: "time zone", Level: OK}
	zone, err := jdocs.TimeZone(f.zone)
	if err != nil {
		c.Level, c.Text = Warn, fmt.Sprintf("its time zone %q does not exist, so the robot shows the wrong time", Clip(f.zone, 64))
		c.Do = "Choose a tz database name in its settings, such as Europe/Paris"
		return c, f.zone != ""
	}
	there := f.now.In(zone)
	c.Text = f.zone + ", where it is " + there.Format("15:04 (UTC-07:00)")
	if _, change := there.ZoneBounds(); change.IsZero() {
		c.Text += "; clocks there do not change"
	} else {
		_, was := there.Zone()
		_, is := change.Zone()
		c.Text += fmt.Sprintf("; clocks there go %s on %s", map[bool]string{true: "forward", false: "back"}[is > was], change.Format(time.DateOnly))
	}
	return c, f.zone != ""
}

// services tells of calls that were refused lately, but for those of the token service and of claims, which have checks of their own.
func (f *facts) services() (Check, bool) {
	c := Check{Name: "services", Level: OK, Text: "no service was refused"}
	others := append([]string{StepTLS, StepRegister, StepCode, StepClaim, StepOwner}, append(stepsOfTokens, stepsOfAgents...)...)
	var said []string
	for i := range f.steps {
		o := &f.steps[i]
		over := slices.ContainsFunc(f.steps[:i], o.endedBy)
		if o.OK || over || slices.Contains(others, o.Name) || f.now.Sub(o.Last) >= refusedLately {
			continue
		}
		one := Check{}.refused(o, o.Name+" refused")
		if o.Name == StepService {
			one = Check{}.refused(o, "it")
			one.Text = strings.Replace(one.Text, "it: ", "it ", 1)
		}
		if said = append(said, one.Text); c.Level == OK {
			c.Do = one.Do
			c = c.of(o)
		}
		c.Level = Warn
	}
	if said != nil {
		c.Text = strings.Join(said, "; ")
	}
	return c, said != nil || f.original()
}

// endedBy reports whether a later outcome shows that what was refused is granted now: the same step, a new access token in place of one that was
// refused, or a call of the service that was not there.
func (o *Outcome) endedBy(later Outcome) bool {
	if strings.HasPrefix(o.Code, "token_") && later.OK && slices.Contains(stepsOfTokens, later.Name) && later.Name != StepDisassociate {
		return true
	}
	if o.Name == StepTLS { // a handshake that succeeds is no step of its own; the calls over it are
		return later.OK && later.Name == StepCall && o.Code != "name_foreign"
	}
	if o.Name != StepService {
		return later.OK && later.Name == o.Name
	}
	asked := CallSpeech
	if o.Code != "speech_missing" {
		_, method, _ := strings.Cut(o.Detail, "asked for ")
		asked = Asked(method)
	}
	return later.OK && later.Name == StepCall && later.Code == asked && asked != CallOther
}
