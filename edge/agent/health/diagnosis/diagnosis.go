// Package diagnosis reports the robot's way to the cloud: every step of activation and connection
// with its time, its peer, the facts seen, the reason of the last refusal, and what to do. The
// running agent keeps it in run/kennel/diagnosis.json; "agentd doctor" shows it and tries the way
// again itself.
package diagnosis

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"time"

	"kennel/certs/devicecert"
	"kennel/edge/agent/health/conncheck"
	"kennel/edge/agent/ownership/claim"
	"kennel/edge/agent/ownership/tokens"
	"kennel/edge/env/robotfs"
	"kennel/infra/thing"
	"kennel/infra/wake"
)

// File is where the running agent keeps its report. run/ is empty after a boot.
const File = "run/kennel/diagnosis.json"

// The steps, in their order.
const (
	Config    = "config"    // the cloud's addresses
	Clock     = "clock"     // the clock
	Lookup    = "lookup"    // the name of the cloud
	TCP       = "tcp"       // a connection
	TLS       = "tls"       // the cloud's certificate
	Enrol     = "enrol"     // the robot's certificate
	MQTT      = "mqtt"      // the broker
	Token     = "token"     // the owner
	Documents = "documents" // settings
)

// Steps lists them.
var Steps = []string{Config, Clock, Lookup, TCP, TLS, Enrol, MQTT, Token, Documents}

// State is the state of a step. The zero value means not reached.
type State string

// The states.
const (
	NotReached State = "not reached"
	OK         State = "ok"
	Waiting    State = "waiting" // a person has to act, and nothing is wrong
	Failed     State = "failed"
)

// Step is one step with its state.
type Step struct {
	Name    string    `json:"name"`
	State   State     `json:"state"`
	At      time.Time `json:"at,omitzero"` // since when it is in this state
	Peer    string    `json:"peer,omitempty"`
	Seen    string    `json:"seen,omitempty"`
	Code    string    `json:"code,omitempty"` // stable word, as the cloud's doctor has it
	Problem string    `json:"problem,omitempty"`
	Do      string    `json:"do,omitempty"` // what to do
}

// Start is the time that one step of a robot program's start took (part of VEC-BOOT-11).
type Start struct {
	Program string `json:"program"`
	Step    string `json:"step"`
	TookMS  int64  `json:"took_ms"`
	Problem string `json:"problem,omitempty"` // why it failed
}

// Report is the whole account.
type Report struct {
	Thing  thing.ID          `json:"thing"`
	Name   string            `json:"name,omitempty"` // such as Vector-E5S6
	Agent  string            `json:"agent"`          // version of agentd
	OS     string            `json:"os"`             // release of the robot
	Boot   string            `json:"boot_id,omitempty"`
	At     time.Time         `json:"at"`
	Steps  []Step            `json:"steps"`
	Roots  []string          `json:"roots,omitempty"`        // authorities that the robot trusts
	Shown  []devicecert.Seen `json:"certificates,omitempty"` // that servers showed
	Faults []string          `json:"faults,omitempty"`       // numbered faults of the robot's identity
	Code   string            `json:"claim_code,omitempty"`   // shown now, for a person in front of the robot
	Start  []Start           `json:"start,omitempty"`        // of the robot's programs, each in its order
	// Check is the connection check, where one was made.
	Check *conncheck.Report `json:"check,omitempty"`
}

// Link is the state of the connection to the broker.
type Link struct {
	Peer  string // host:port
	Up    bool
	Since time.Time // of the connection, or of its end
	Err   error     // why it ended, or could not be made; nil: it was not tried yet
}

// Facts holds the facts from the parts of the agent. The fields follow the order of the steps.
type Facts struct {
	Thing     thing.ID
	Name      string
	Agent     string
	OS        string
	Boot      string
	API       string // the cloud's address; "": not known
	ConfigErr error
	System    time.Time // the system's clock
	Believed  time.Time // the time that signatures prove
	Identity  *devicecert.State
	Shown     []devicecert.Seen
	Roots     []string
	RootsErr  string
	Link      Link
	Tokens    *tokens.State
	Claim     *claim.State
	Docs      []string // problems of documents
	Dirty     []string // documents that wait for the cloud
	Faults    []string
	Start     []Start
}

// clockLag is how far a system clock may be behind the proven time before it counts as wrong.
const clockLag = 2 * time.Second

// Report makes the report from the facts.
func (f Facts) Report(now time.Time) Report {
	r := Report{
		Thing: f.Thing, Name: f.Name, Agent: f.Agent, OS: f.OS, Boot: f.Boot, At: now.UTC(), Roots: f.Roots, Shown: f.Shown,
		Faults: f.Faults, Start: f.Start,
	}
	if f.Claim != nil {
		r.Code = f.Claim.Code
	}
	r.Steps = append(r.Steps, f.config(), f.clock())
	r.Steps = append(r.Steps, f.way()...)
	r.Steps = append(r.Steps, f.mqtt(), f.token(), f.documents())
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.State == Failed || s.State == Waiting {
			s.Do = advice[s.Code]
		}
		if s.State != NotReached && s.At.IsZero() {
			s.At = r.At
		}
		s.At = s.At.UTC()
	}
	return r
}

func (f Facts) config() Step {
	switch {
	case f.ConfigErr != nil:
		return Step{Name: Config, State: Failed, Code: "server_config", Problem: f.ConfigErr.Error()}
	case f.API == "":
		return Step{Name: Config, State: NotReached}
	}
	return Step{Name: Config, State: OK, Peer: f.API, Seen: "release " + f.OS}
}

func (f Facts) clock() Step {
	if f.System.IsZero() {
		return Step{Name: Clock, State: NotReached}
	}
	s := Step{Name: Clock, State: OK, Seen: f.System.UTC().Format(time.DateTime)}
	if behind := f.Believed.Sub(f.System); behind > clockLag {
		s.State, s.Code = Waiting, "clock_behind"
		s.Problem = fmt.Sprintf("the robot's clock says %s, and a certificate proves that it is %s at least; certificates are checked at the later time",
			f.System.UTC().Format(time.DateTime), f.Believed.UTC().Format(time.DateTime))
	}
	return s
}

// order ranks the codes of failed attempts by how far they came towards the cloud.
var order = map[string]int{"name_lookup": 0, "no_connection": 1, "timeout": 1, "no_network": 1,
	"not_tls": 2, "unknown_root": 2, "wrong_name": 2, "expired": 2, "certificate": 2}

// way is lookup, TCP, TLS and enrolment, which one attempt goes through.
func (f Facts) way() []Step {
	steps := []Step{{Name: Lookup, State: NotReached}, {Name: TCP, State: NotReached}, {Name: TLS, State: NotReached}, {Name: Enrol, State: NotReached}}
	st := f.Identity
	if st == nil || st.Step == "" && !st.OK {
		return steps
	}
	reached := 3
	if n, ok := order[st.Code]; ok && !st.OK {
		reached = n
	}
	local := !st.OK && (st.Step == devicecert.StepKey || st.Step == devicecert.StepClaim) // it failed before any call
	for i := range reached {
		if !local {
			steps[i].State, steps[i].At, steps[i].Peer = OK, st.At, st.Peer
		}
	}
	last := &steps[reached]
	last.At, last.Peer = st.At, st.Peer
	switch {
	case st.OK:
		last.State, last.Seen = OK, fmt.Sprintf("device certificate of %s, valid to %s, renewed from %s", st.Thing, day(st.NotAfter), day(st.Renew))
	default:
		last.State, last.Code, last.Problem = Failed, st.Code, st.Problem
		if st.Code == "waiting_approval" {
			last.State = Waiting
		}
		if !st.NotAfter.IsZero() {
			last.Seen = "device certificate in hand to " + day(st.NotAfter)
		}
	}
	for _, s := range f.Shown {
		if s.Name == st.Name {
			steps[2].Seen = fmt.Sprintf("certificate %q of %q for %s, %s to %s, sha256 %.16s", s.Subject, s.Issuer, strings.Join(s.Names, ", "),
				day(s.NotBefore), day(s.NotAfter), s.SHA256)
		}
	}
	if f.RootsErr != "" && steps[2].State == OK {
		steps[2].Problem = f.RootsErr
	}
	return steps
}

func day(t time.Time) string { return t.UTC().Format(time.DateTime) }

func (f Facts) mqtt() Step {
	l := f.Link
	s := Step{Name: MQTT, State: NotReached, Peer: l.Peer, At: l.Since}
	switch {
	case l.Up:
		s.State = OK
	case l.Err != nil:
		p := devicecert.Explain(l.Err)
		s.State, s.Code, s.Problem = Failed, p.Code, p.Words
	}
	return s
}

func (f Facts) token() Step {
	s := Step{Name: Token, State: NotReached}
	t := f.Tokens
	if t == nil {
		return s
	}
	s.Seen = fmt.Sprintf("%d clients may talk to the robot", t.Clients)
	switch {
	case t.Refused:
		s.State, s.Code, s.Problem = Failed, "token_refused", t.Problem
	case t.Problem != "":
		s.State, s.Code, s.Problem = Failed, t.Code, t.Problem
	case t.UserID != "":
		s.State = OK
		s.Seen = fmt.Sprintf("owner %s, access token to %s; %s", t.UserID, day(t.Expires), s.Seen)
	case f.Claim != nil && f.Claim.Owned:
		s.State, s.Code, s.Problem = Waiting, "no_token", "the robot has an owner, and no app has logged in at it yet"
	case f.Claim != nil && f.Claim.Known:
		s.State, s.Code, s.Problem = Waiting, "no_owner", "the robot has no owner"
	}
	return s
}

func (f Facts) documents() Step {
	s := Step{Name: Documents, State: NotReached}
	switch {
	case len(f.Docs) > 0:
		s.State, s.Code, s.Problem = Failed, "documents", strings.Join(f.Docs, "; ")
	case len(f.Dirty) > 0:
		s.State, s.Code, s.Problem = Waiting, "documents_wait", "changes wait for the cloud: "+strings.Join(f.Dirty, ", ")
	case f.Link.Up:
		s.State = OK
	}
	return s
}

// advice says what to do, by code; for other codes the problem's text says it.
var advice = map[string]string{
	"server_config":        "mend the file, or install it again; the agent looks every 5 seconds",
	"clock_behind":         "connect the robot to a network with a time server; nothing else waits for it",
	"name_lookup":          "check the address in the server configuration and the DNS server of the Wi-Fi",
	"no_connection":        "check that the cloud runs at that address, and that no firewall is between",
	"timeout":              "check that no firewall drops the packets on the way",
	"not_tls":              "check scheme and port of the address in the server configuration",
	"unknown_root":         "install the cloud's root certificate in " + devicecert.RootFile,
	"wrong_name":           "use a name of the certificate in the server configuration, or add this name to the cloud's certificate",
	"expired":              "renew the cloud's certificate, or set the robot's clock",
	"peer_refused":         "ask the cloud: kennelctl doctor names the reason",
	"claim_refused":        "register the robot with the cloud and write its claim secret to " + devicecert.ClaimFile,
	"key_mismatch":         "another key is bound to this robot: an operator releases it (kennelctl), then it enrols again",
	"key_released":         "this key was given up: remove " + devicecert.KeyFile + " and " + devicecert.CertFile + ", and register the robot again",
	"revoked":              "an operator took this robot's identity away, and decides whether it gets another",
	"waiting_approval":     "an operator approves the robot that shows this fingerprint",
	"approval_refused":     "an operator refused this robot: ask why",
	"other_thing":          "the files are another robot's: bring this one's",
	devicecert.CodeFactory: "restore " + devicecert.FactoryDir + " from the factory's records",
	"token_refused":        "the owner logs in with the app again",
	"no_owner":             "claim the robot: ask it for a code and type it into the app",
	"no_token":             "log in with the app near the robot",
	"documents":            "see the problem; the local copies apply meanwhile",
	"documents_wait":       "nothing, if it lasts no longer than a minute",
	"session_used":         "log in with the app again: a login is good for one exchange",
	"unauthenticated":      "log in with the app again: a login is good for one exchange and a short time",
	"invalid":              "the robot belongs to another account: its owner gives it up, or it is wiped",
}

// Worst returns the first step that blocks the way to the cloud, and false if none does.
func (r Report) Worst() (Step, bool) {
	for _, want := range []State{Failed, Waiting} {
		for _, s := range r.Steps {
			if s.State == want {
				return s, true
			}
		}
	}
	return Step{}, false
}

// JSON writes the report for programs.
func (r Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// Text writes the report for people.
func (r Report) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", r.Thing)
	if r.Name != "" {
		fmt.Fprintf(&b, " (%s)", r.Name)
	}
	fmt.Fprintf(&b, "  agentd %s, release %s", r.Agent, r.OS)
	if r.Boot != "" {
		fmt.Fprintf(&b, ", boot %.8s", r.Boot)
	}
	fmt.Fprintf(&b, ", %s UTC\n\n", day(r.At))
	for _, s := range r.Steps {
		line := fmt.Sprintf("%-11s %-10s", s.State, s.Name)
		if !s.At.IsZero() {
			line += " " + day(s.At)
		}
		for _, part := range []string{s.Peer, s.Seen} {
			if part != "" {
				line += "  " + part
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		if s.Problem != "" {
			code := s.Code
			if code != "" {
				code += ": "
			}
			fmt.Fprintf(&b, "            %s%s\n", code, s.Problem)
		}
		if s.Do != "" {
			fmt.Fprintf(&b, "            do: %s\n", s.Do)
		}
	}
	if len(r.Roots) > 0 {
		fmt.Fprintf(&b, "\ntrusts      %s\n", strings.Join(r.Roots, ", "))
	}
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "fault       %s\n", f)
	}
	if r.Code != "" {
		fmt.Fprintf(&b, "shows       claim code %s\n", r.Code)
	}
	r.startText(&b)
	if c := r.Check; c != nil {
		fmt.Fprintf(&b, "\nconnection  %s (%d)\n", c.Result, c.Result.ConnectionCode())
		for _, p := range c.Probes {
			verdict := "ok"
			if !p.OK {
				verdict = p.Result.String()
			}
			fmt.Fprintf(&b, "            %-11s %s %d ms %s\n", p.Name, verdict, p.TookMS, p.Peer)
			if p.Problem != "" {
				fmt.Fprintf(&b, "            %s\n", p.Problem)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// startText writes a line for each program's start, and one for each step that failed.
func (r Report) startText(b *strings.Builder) {
	for i := 0; i < len(r.Start); {
		program, line, failed := r.Start[i].Program, "", ""
		for ; i < len(r.Start) && r.Start[i].Program == program; i++ {
			s := r.Start[i]
			if line += ", "; s.Problem != "" {
				failed += fmt.Sprintf("            %s: %s\n", s.Step, s.Problem)
			}
			line += fmt.Sprintf("%s %d", s.Step, s.TookMS)
		}
		fmt.Fprintf(b, "start       %s, ms: %s\n%s", program, strings.TrimPrefix(line, ", "), failed)
	}
}

// Keeper keeps the report of a running agent in File.
type Keeper struct {
	root    *os.Root
	collect func() Facts
	now     func() time.Time
	log     *slog.Logger
	wake    wake.Signal // one slot
	last    Report      // as written; Run's
}

// NewKeeper returns a Keeper that does nothing until Run. collect must be safe for concurrent use.
func NewKeeper(root *os.Root, collect func() Facts, now func() time.Time, log *slog.Logger) *Keeper {
	return &Keeper{root: root, collect: collect, now: now, log: log, wake: wake.New()}
}

// lookEvery is how often the parts are asked if none reports a change.
const lookEvery = 5 * time.Second

// Changed says that a part has news.
func (k *Keeper) Changed() {
	k.wake.Set()
}

// Run keeps File up to date until ctx ends. A write error is logged, and the agent keeps running.
func (k *Keeper) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	failed := false
	for {
		if err := k.Keep(); err != nil && !failed {
			k.log.WarnContext(ctx, "connection report not written", "err", err)
			failed = true
		} else if err == nil {
			failed = false
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
		case <-tick.C:
		}
	}
}

// Keep writes the report if it says something new. A step whose state is the same keeps its time.
func (k *Keeper) Keep() error {
	r := k.collect().Report(k.now())
	for i, s := range r.Steps {
		if i < len(k.last.Steps) && same(s, k.last.Steps[i]) {
			r.Steps[i].At = k.last.Steps[i].At
			if s.Name == Clock {
				r.Steps[i].Seen = k.last.Steps[i].Seen // the time itself is no news
				r.Steps[i].Problem = k.last.Steps[i].Problem
			}
		}
	}
	old := k.last
	old.At = r.At
	if reflect.DeepEqual(old, r) {
		return nil
	}
	var b strings.Builder
	if err := r.JSON(&b); err != nil {
		return err
	}
	if err := robotfs.WriteFile(k.root, File, []byte(b.String()), 0o644); err != nil {
		return err
	}
	k.last = r
	return nil
}

// same reports whether a step is in the same state as before, apart from times and words about time.
func same(a, b Step) bool {
	return a.Name == b.Name && a.State == b.State && a.Code == b.Code && a.Peer == b.Peer
}

// Read reads the running agent's report. fs.ErrNotExist is in the error's chain if none runs since the boot.
func Read(root *os.Root) (Report, error) {
	b, err := robotfs.ReadFile(root, File)
	if err != nil {
		return Report{}, err
	}
	return Parse(b)
}

// Parse reads a report.
func Parse(b []byte) (Report, error) {
	var r Report
	if err := json.Unmarshal(b, &r); err != nil {
		return Report{}, fmt.Errorf("%s: %w", File, err)
	}
	return r, nil
}
