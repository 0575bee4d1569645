package devicecert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Steps of getting an identity, as State and doctor name them.
const (
	StepKey    = "key"    // make or read the key
	StepClaim  = "claim"  // read the robot's claim or factory identity
	StepEnroll = "enroll" // first certificate
	StepRenew  = "renew"  // next certificate
	StepReady  = "ready"  // there is one
)

// CodeFactory is the code of an invalid factory identity: the robot's fault 850 (VEC-TOK-08).
const CodeFactory = "factory_identity"

// State is the state of the identity, for doctor and the robot's page. While a certificate is in force a failed renewal shows here too.
type State struct {
	Thing      thing.ID  `json:"thing,omitempty"`
	Step       string    `json:"step"` // that was done or failed last; "" before the first
	OK         bool      `json:"ok"`
	Peer       string    `json:"peer"`                  // host:port of the cloud
	Name       string    `json:"name"`                  // the name its certificate must have
	Code       string    `json:"code,omitempty"`        // stable word, such as "unknown_root"
	Problem    string    `json:"problem,omitempty"`     // in words, with what to do
	LackedRoot string    `json:"lacked_root,omitempty"` // the authority that RootFile lacks
	NotAfter   time.Time `json:"not_after,omitzero"`    // of the certificate in hand
	Renew      time.Time `json:"renew,omitzero"`        // when it is due
	At         time.Time `json:"at,omitzero"`
}

// State returns the state of the identity.
func (i *Identity) State() State {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.state
}

// failed notes err at step, logs it, and returns it; nil is passed through.
func (i *Identity) failed(step string, err error) error {
	if err == nil {
		return nil
	}
	p := Explain(err)
	i.mu.Lock()
	i.state.Step, i.state.OK, i.state.At = step, false, i.clock.now()
	i.state.Code, i.state.Problem, i.state.LackedRoot = p.Code, p.Words, p.LackedRoot
	st := i.state
	i.mu.Unlock()
	i.cfg.Log.Warn("identity step failed", "thing", string(st.Thing), "step", step, "peer", st.Peer, "code", p.Code, "err", err)
	return err
}

// Problem is a connection's failure in words.
type Problem struct {
	Code       string // stable word
	Words      string // what was wrong, where, what to do
	LackedRoot string // the authority that RootFile lacks, if that was it
}

// Explain says in words why a connection to the cloud, or a request over it, failed. It knows the errors of TLSConfig, of dialing, and of
// the cloud's answers; other errors keep their own text.
func Explain(err error) Problem {
	if t, ok := errors.AsType[*TrustError](err); ok {
		return t.explain()
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return Problem{Code: "name_lookup", Words: fmt.Sprintf("the name %s does not resolve (%s): check the cloud's address and the robot's "+
			"DNS server %s", dns.Name, dns.Err, dns.Server)}
	}
	if alert, ok := errors.AsType[tls.AlertError](err); ok {
		return Problem{Code: "peer_refused", Words: fmt.Sprintf("the cloud refused the robot's certificate or offer: %v", alert)}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		if op.Op == "remote error" { // an alert that the other side sent
			return Problem{Code: "peer_refused", Words: fmt.Sprintf("the cloud refused the robot's certificate or offer: %v", op.Err)}
		}
		if op.Op == "dial" {
			return Problem{Code: "no_connection", Words: fmt.Sprintf("no connection to %v: %v; is the cloud running there, and does the network "+
				"let the robot through?", op.Addr, op.Err)}
		}
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return Problem{Code: "not_tls", Words: "what answers there does not speak TLS: check scheme and port of the cloud's address"}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Problem{Code: "timeout", Words: "no answer in time: " + err.Error()}
	}
	if errors.Is(err, ErrFactory) {
		return Problem{Code: CodeFactory, Words: err.Error() + "; restore " + FactoryDir +
			" from the factory's records, or give the robot a claim in " + ClaimFile}
	}
	code := errs.CodeOf(err)
	if code == "" {
		code = errs.KindOf(err).String()
	}
	return Problem{Code: code, Words: err.Error()}
}

func (e *TrustError) explain() Problem {
	p := Problem{Code: "certificate", Words: e.Error()}
	if e.LackedRoot != "" {
		p.Code, p.LackedRoot = "unknown_root", e.LackedRoot
		have := "which does not exist"
		if len(e.Roots) > 0 {
			have = "which holds " + strings.Join(e.Roots, ", ")
		}
		p.Words = fmt.Sprintf("%s shows a certificate %q that goes back to %q; that root is not in %s, %s: install the root of this cloud there",
			e.Name, e.Shown, e.LackedRoot, RootFile, have)
		return p
	}
	if h, ok := errors.AsType[x509.HostnameError](e.Err); ok {
		p.Code = "wrong_name"
		p.Words = fmt.Sprintf("%s shows a certificate for %s, which does not name it: use one of those names, or add this one to the cloud's "+
			"certificate", e.Name, names(h.Certificate))
		return p
	}
	if inv, ok := errors.AsType[x509.CertificateInvalidError](e.Err); ok && inv.Reason == x509.Expired {
		p.Code = "expired"
		p.Words = fmt.Sprintf("%s shows a certificate valid from %s to %s, and it is %s here: renew it there, or set the robot's clock", e.Name,
			inv.Cert.NotBefore.UTC().Format(time.DateTime), inv.Cert.NotAfter.UTC().Format(time.DateTime), e.Now.UTC().Format(time.DateTime))
	}
	return p
}

// namesOf returns the names and addresses that a certificate is good for.
func namesOf(c *x509.Certificate) []string {
	all := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	return all
}

func names(c *x509.Certificate) string {
	all := namesOf(c)
	if len(all) == 0 {
		return "no name at all"
	}
	return strings.Join(all, ", ")
}
