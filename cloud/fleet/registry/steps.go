package registry

import (
	"context"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Names of steps on a robot's way to the fleet, in their order; all but broker and status are those of package certs. Others are kept as well.
const (
	StepRegister = "register" // made known to the fleet, with a claim secret
	StepEnroll   = "enroll"   // first certificate, for the claim secret
	StepRenew    = "renew"    // another certificate, for the key
	StepRevoke   = "revoke"   // identity taken away
	StepBroker   = "broker"   // let in, or turned away
	StepRelease  = "release"  // its key was given up
	StepApproval = "approval" // an operator's answer to a robot that waits
	StepStatus   = "status"   // a status that could not be read
	StepUpdater  = "updater"  // SWUpdate of a device without an agent was turned away
	StepEvents   = "events"   // it must wait before it sends more
)

// Names of steps of the domains that say whose a robot is and for whom it acts: those of packages token and owner.
const (
	StepAssociate    = "associate"
	StepReassociate  = "reassociate"
	StepSecondary    = "secondary client"
	StepRefresh      = "token refresh"
	StepDisassociate = "disassociate"
	StepCode         = "claim code"
	StepClaim        = "claim"
	StepOwner        = "owner"
)

var stepsOfTokens = []string{StepAssociate, StepReassociate, StepSecondary, StepRefresh, StepDisassociate}

// tokenWords says in words what a robot asked the token service for.
var tokenWords = map[string]string{
	StepAssociate: "the sign-in of its owner", StepReassociate: "another sign-in of its owner", StepSecondary: "another app's sign-in",
	StepRefresh: "a refresh of its token", StepDisassociate: "the sign-out of its owner",
}

// Step is one attempt of one step. Zero At is now.
type Step struct {
	Thing   thing.ID
	At      time.Time
	Name    string
	OK      bool
	Code    string // why not, one stable word; may be empty
	Peer    string // address of the robot as we saw it
	Version string // of the robot's agent, or of what it said it is
	Detail  string // in words
	Times   int64  // how often in a row; 0: once
	// Shown is the certificate that the robot showed; nil: none, or it could not be read.
	Shown *ShownCertificate
}

// ShownCertificate describes the certificate that a robot presented, whether or not it was accepted.
type ShownCertificate struct {
	CN       string    `json:"cn"`
	Issuer   string    `json:"issuer"` // common name
	Serial   string    `json:"serial"` // hex
	NotAfter time.Time `json:"not_after"`
}

// Shown describes a certificate; nil for none.
func Shown(c *x509.Certificate) *ShownCertificate {
	if c == nil {
		return nil
	}
	return &ShownCertificate{CN: c.Subject.CommonName, Issuer: c.Issuer.CommonName, Serial: c.SerialNumber.Text(16), NotAfter: c.NotAfter.UTC()}
}

func (c ShownCertificate) String() string {
	return fmt.Sprintf("CN %s, issued by %s, serial %s, ends %s", c.CN, c.Issuer, c.Serial, stamp(c.NotAfter))
}

// Outcome is the result of a step, and how often it occurred in a row.
type Outcome struct {
	Name    string    `json:"step"`
	OK      bool      `json:"ok"`
	Code    string    `json:"code,omitempty"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	Times   int64     `json:"times"`
	Peer    string    `json:"peer,omitempty"`
	Version string    `json:"version,omitempty"`
	Detail  string    `json:"detail,omitempty"`
	// Shown is the certificate of the last time; nil: none was shown.
	Shown *ShownCertificate `json:"certificate,omitempty"`
	Do    string            `json:"do,omitempty" db:"-"` // what to do about a refusal; the doctor says it
}

// MaxSteps bounds the outcomes kept of one thing; MaxStrangerSteps those of all unregistered things, whose names anyone on the network can
// make up. MaxHistory and HistoryAge bound the comings and goings kept of one thing.
const (
	MaxSteps         = 32
	MaxStrangerSteps = 10_000
	MaxHistory       = 1000
	HistoryAge       = 90 * 24 * time.Hour
)

// Record keeps a step; a successful registration or enrolment makes the thing known to the fleet. A step may name an
// unregistered thing: that is the commonest reason why a robot never activates.
func (s *Service) Record(ctx context.Context, st Step) error {
	return s.RecordAll(ctx, []Step{st})
}

// RecordAll is Record for many steps of one kind, such as those of a delivery: all or none, in one transaction. If a thing
// occurs more than once, its last step wins.
func (s *Service) RecordAll(ctx context.Context, all []Step) error {
	if len(all) == 0 {
		return nil
	}
	steps := make([]Step, len(all))
	for i, st := range all {
		steps[i] = st.clipped()
		if steps[i].registers() != steps[0].registers() {
			return errs.New(errs.Invalid, "step %d of %d: %s of %s has registers=%v: want the same for all steps of a batch", i+1, len(all), st.Name, st.Thing, steps[i].registers())
		}
	}
	return s.store.AddSteps(ctx, steps, steps[0].registers())
}

// registers reports whether a step makes its thing known.
func (st Step) registers() bool { return st.OK && (st.Name == StepRegister || st.Name == StepEnroll) }

// clipped bounds what may come from a peer.
func (st Step) clipped() Step {
	st.Name, st.Code = Clip(st.Name, 40), Clip(st.Code, 40)
	st.Peer, st.Version, st.Detail = Clip(st.Peer, 80), Clip(st.Version, 80), Clip(st.Detail, 400)
	if c := st.Shown; c != nil {
		st.Shown = &ShownCertificate{CN: Clip(c.CN, 80), Issuer: Clip(c.Issuer, 80), Serial: Clip(c.Serial, 42), NotAfter: c.NotAfter} // 20 bytes at most, RFC 5280
	}
	return st
}

// Steps returns the outcomes of a thing, the latest first.
func (s *Service) Steps(ctx context.Context, id thing.ID) ([]Outcome, error) {
	return s.store.Steps(ctx, id)
}

// record is Record for callers that do not need the answer: it logs the error.
func (s *Service) record(ctx context.Context, st Step) {
	if err := s.Record(ctx, st); err != nil {
		s.log.WarnContext(ctx, "step not recorded", logging.Thing, st.Thing, "step", st.Name, logging.Err, err)
	}
}

// Clip makes text from a peer fit for a column: valid, without zero bytes, at most n bytes.
func Clip(v string, n int) string {
	v = strings.ToValidUTF8(strings.ReplaceAll(v, "\x00", ""), "\ufffd")
	if len(v) > n {
		v = strings.ToValidUTF8(v[:n-len("…")], "") + "…"
	}
	return v
}
