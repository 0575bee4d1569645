package registry

import (
	"slices"
	"strings"
	"time"
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
	return !f.everSeen() && f.last(stepsOfAgents...) == nil && f.last(append([]string{StepCall, StepTLS, StepService}, stepsOfTokens...)...) != nil
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
		c.Level, c.Text = Unknown, "has not asked for a token, so it has shown no certificate"
		return c
	}
	if !o.OK && Unproved(o.Code) {
		c.Level = Fail
		return c.refused(o, "its factory certificate was refused")
	}
	c.Text = "calls with its factory certificate, as original robots do"
	if o.Shown != nil {
		c.Text += ": " + o.Shown.String()
	}
	return c.of(o)
}

// trust says whether handshakes succeed: whether the robot knows our root, and by which name it looked us up.
func (f *facts) trust() (Check, bool) {
	c := Check{Name: "trust", Level: OK, Text: "trusts the certificate of the port that it calls"}
	called := f.last(StepCall)
	// A robot that calls after it distrusted the root has the root now. A name that the certificate lacks may be one of several that it calls.
	o := f.last(StepTLS)
	over := o != nil && called != nil && called.Last.After(o.Last) && o.Code != "name_foreign"
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
		c.Level, c.Text = Unknown, "has not called"
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
	c.Text = "last called " + Ago(ago) + " ago; an original robot keeps no connection"
	if o := f.last(StepCall); o != nil {
		c = c.of(o)
	}
	if c.Since = f.thing.LastSeen; ago > callsDaily {
		c.Level, c.Do = Warn, "A robot that is on calls about once a day. Is it on, charged, and on its network? Does that network still lead the names of its server file to here?"
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
	return c, f.hasDocs
}

// services tells of calls that were refused lately, but for those of the token service and of claims, which have checks of their own.
func (f *facts) services() (Check, bool) {
	c := Check{Name: "services", Level: OK, Text: "nothing that it asked for was refused"}
	others := append([]string{StepTLS, StepRegister, StepCode, StepClaim, StepOwner}, append(stepsOfTokens, stepsOfAgents...)...)
	var said []string
	for i := range f.steps {
		o := &f.steps[i]
		over := slices.ContainsFunc(f.steps[:i], func(later Outcome) bool { return later.OK && later.Name == o.Name })
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
