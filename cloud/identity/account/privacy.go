package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"kennel/cloud/identity/account/audit"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// TaskDelete is the name of the task that erases one account.
const TaskDelete = "account.delete"

// holdsAccount is the name of this domain among the holders.
const holdsAccount = "account"

// Personal is a domain that holds something about people, by account id.
type Personal interface {
	// Export returns everything held about an account, ready for JSON.
	Export(ctx context.Context, account string) (any, error)
	// Erase forgets it for good. It may be repeated, and continues where an earlier call ended.
	Erase(ctx context.Context, account string) error
}

// Counting is a Personal that tells note how much of what kind it has just erased; the record of the erasure adds it up. A run that is killed
// between the two leaves the record too low by what one step erases.
type Counting interface {
	EraseCounting(ctx context.Context, account string, note func(ctx context.Context, kind string, n int) error) error
}

// Filing is a Personal that holds more than one value says: its files go into the export below its name, as they are written.
type Filing interface {
	Files(ctx context.Context, account string, add func(name string, write func(io.Writer) error) error) error
}

// Deletion is a deletion under way.
type Deletion struct {
	Account   ID
	Ref       string // a random UUID in place of the account's id: it names the task, and the person in the audit log afterwards
	Requested time.Time
	Erased    []string // holders that have erased their data
}

// Holder is a domain by name: a file's name in the export, and what the record of a deletion says is done. It must not change.
type Holder struct {
	Name string
	Personal
}

// PrivacyStore keeps the deletions under way. Its methods are safe for concurrent use.
type PrivacyStore interface {
	// BeginDeletion disables an account, ends its sessions, deletes its tickets and notes the deletion, all or nothing. It may be repeated.
	// ErrUnknown.
	BeginDeletion(ctx context.Context, id ID, now time.Time) error
	// Deletion returns the deletion of an account, named by its id or by the deletion's Ref; ErrUnknown if none is under way.
	Deletion(ctx context.Context, name string) (Deletion, error)
	// Erased notes that a holder has erased its data.
	Erased(ctx context.Context, d Deletion, holder string) error
	// RecordErasure adds to what was erased of a kind, in the record that stays. by says who asked: owner or administrator.
	RecordErasure(ctx context.Context, d Deletion, by string, kind string, n int) error
	// EraseAudit puts the deletion's Ref in place of the account, and nothing in place of its e-mail, in some lines of the audit log, forgets where
	// those by the account came from, and returns how many lines that were; 0: there are none left. The chain stays whole.
	EraseAudit(ctx context.Context, d Deletion, email string) (int, error)
	// DeleteAccount deletes an account whose deletion is under way, the sign-ups of its e-mail, and these counted attempts; it closes the
	// record and appends a line to the audit log, with what was erased behind its detail. Of an operator it keeps the e-mail for the lines of the
	// audit log. An account that is gone is no error.
	DeleteAccount(ctx context.Context, d Deletion, attempts []Hash, line audit.Entry) error
	// Deletions lists the accounts whose deletion is under way.
	Deletions(ctx context.Context) ([]ID, error)
	// AuditOf returns the newest lines of the audit log by or about an account.
	AuditOf(ctx context.Context, id ID, limit int) ([]audit.Entry, error)
	// PruneOwners deletes sign-ups, tickets and sessions of apps that expired before now.
	PruneOwners(ctx context.Context, now time.Time) error
}

// PrivacyConfig configures Privacy. Store is required.
type PrivacyConfig struct {
	Store PrivacyStore
	// Personal is every domain that holds something about people, in the order in which it is erased. The accounts are erased last and are not
	// part of it.
	Personal []Holder
	// Order orders the task TaskDelete for an account; nil: the next Resume does. Orders name the deletion's Ref, for the queue keeps them.
	Order func(ctx context.Context, id string) error
}

// Privacy is the rules of export and deletion of personal data. Safe for concurrent use.
type Privacy struct {
	in       *SignIn
	people   *People
	passkeys *Passkeys
	cfg      PrivacyConfig
}

// NewPrivacy checks cfg and returns the rules.
func NewPrivacy(people *People, passkeys *Passkeys, cfg PrivacyConfig) (*Privacy, error) {
	if people == nil || passkeys == nil || cfg.Store == nil {
		return nil, errors.New("account: people, passkeys and store are required")
	}
	p := &Privacy{people.in, people, passkeys, cfg}
	p.cfg.Personal = nil
	return p, p.Hold(cfg.Personal...)
}

// Hold adds domains to PrivacyConfig.Personal. Call it before any other method.
func (p *Privacy) Hold(more ...Holder) error {
	for _, h := range more {
		taken := h.Name == holdsAccount || slices.ContainsFunc(p.cfg.Personal, func(other Holder) bool { return other.Name == h.Name })
		if h.Name == "" || h.Personal == nil || taken || strings.ContainsAny(h.Name, `/\.`) {
			return fmt.Errorf("account: personal data %q: want a unique name and a domain", h.Name)
		}
		p.cfg.Personal = append(p.cfg.Personal, h)
	}
	return nil
}

const maxAuditExport = 10_000

// Export hands everything that is held about an account to add, by the name of a file: NAME.json of each domain, and what else it has below NAME/.
func (p *Privacy) Export(ctx context.Context, id ID, addr string, add func(name string, write func(io.Writer) error) error) error {
	value := func(name string, v any) error {
		return add(name+".json", func(w io.Writer) error {
			to := json.NewEncoder(w)
			to.SetIndent("", "  ")
			return to.Encode(v)
		})
	}
	own, err := p.exportAccount(ctx, id)
	if err != nil {
		return err
	}
	if err := value(holdsAccount, own); err != nil {
		return fmt.Errorf("export %s: %w", holdsAccount, err)
	}
	for _, h := range p.cfg.Personal {
		v, err := h.Export(ctx, string(id))
		if err == nil {
			err = value(h.Name, v)
		}
		if f, ok := h.Personal.(Filing); ok && err == nil {
			err = f.Files(ctx, string(id), func(name string, write func(io.Writer) error) error { return add(h.Name+"/"+name, write) })
		}
		if err != nil {
			return fmt.Errorf("export %s: %w", h.Name, err)
		}
	}
	return p.people.announce(ctx, id, addr, "account.export")
}

// Held holds this domain's data about a person. Passwords and tokens are here as hashes only and are not part of it.
type Held struct {
	Record   Record        `json:"record"`
	Role     auth.Role     `json:"role"`
	Sessions []HeldSession `json:"sessions"`
	Passkeys []HeldPasskey `json:"passkeys,omitempty"`
	Audit    []HeldAudit   `json:"audit"` // what the account did and what was done to it
}

// HeldSession is a session in an export.
type HeldSession struct {
	App      bool      `json:"app"`
	Created  time.Time `json:"created"`
	LastSeen time.Time `json:"last_seen,omitzero"`
	Expires  time.Time `json:"expires"`
	Addr     string    `json:"addr,omitempty"`
	Robot    string    `json:"robot,omitempty"`
}

// HeldPasskey is a passkey in an export. Its public key says nothing about the person.
type HeldPasskey struct {
	Name     string    `json:"name"`
	Created  time.Time `json:"created"`
	LastUsed time.Time `json:"last_used,omitzero"`
}

// HeldAudit is a line of the audit log in an export.
type HeldAudit struct {
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`
	Addr   string    `json:"addr,omitempty"`
	Action string    `json:"action"`
	Object string    `json:"object,omitempty"`
	Detail string    `json:"detail,omitempty"`
}

func (p *Privacy) exportAccount(ctx context.Context, id ID) (Held, error) {
	r, err := p.people.Record(ctx, id)
	if err != nil {
		return Held{}, err
	}
	a, _, err := p.people.store.ByID(ctx, id)
	if err != nil {
		return Held{}, notFound(err)
	}
	out := Held{Record: r, Role: a.Role, Sessions: []HeldSession{}, Audit: []HeldAudit{}}
	sessions, err := p.people.store.Sessions(ctx, id, p.in.cfg.Now())
	if err != nil {
		return Held{}, err
	}
	for _, s := range sessions {
		out.Sessions = append(out.Sessions, HeldSession{s.App, s.Created.UTC(), s.LastSeen.UTC(), s.Expires.UTC(), s.Addr, s.Used})
	}
	keys, err := p.passkeys.store.Passkeys(ctx, id)
	if err != nil {
		return Held{}, err
	}
	for _, k := range keys {
		out.Passkeys = append(out.Passkeys, HeldPasskey{k.Name, k.Created.UTC(), k.LastUsed.UTC()})
	}
	lines, err := p.cfg.Store.AuditOf(ctx, id, maxAuditExport)
	if err != nil {
		return Held{}, err
	}
	for _, l := range lines {
		out.Audit = append(out.Audit, HeldAudit{l.At.UTC(), l.Actor, l.Addr, l.Action, l.Object, l.Detail})
	}
	return out, nil
}

// Delete begins the deletion of a signed-in person's own account, confirmed by the password. From then on it cannot be used; the task does the
// rest. Errors: Unauthenticated "wrong_password"; Denied for an operator; Exhausted.
func (p *Privacy) Delete(ctx context.Context, id ID, password logging.Secret, addr string) error {
	a, err := p.in.Confirm(ctx, id, password, addr)
	if err != nil {
		return err
	}
	if a.Role != auth.Owner {
		return errs.Coded(errs.Denied, "operator", "an operator's account is removed by an administrator")
	}
	// Written before: a deletion that is under way has a line that says who wanted it.
	if err := p.people.announce(ctx, id, addr, "account.delete"); err != nil {
		return err
	}
	if err := p.cfg.Store.BeginDeletion(ctx, id, p.in.cfg.Now()); err != nil {
		return notFound(err)
	}
	if p.cfg.Order == nil {
		return nil
	}
	return p.cfg.Order(ctx, string(id))
}

// Erase continues a deletion, named by its Ref or its account: the task TaskDelete. It notes each finished domain, so that an interrupted run
// resumes where it ended. An account that is gone is no error.
func (p *Privacy) Erase(ctx context.Context, name string) error {
	d, err := p.cfg.Store.Deletion(ctx, name)
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read deletion: %w", err)
	}
	a, _, err := p.people.store.ByID(ctx, d.Account)
	if errors.Is(err, ErrUnknown) {
		return nil // another process has finished it
	}
	if err != nil {
		return err
	}
	by := "owner"
	if a.Role != auth.Owner {
		by = "administrator"
	}
	record := func(ctx context.Context, kind string, n int) error {
		if err := p.cfg.Store.RecordErasure(ctx, d, by, kind, n); err != nil {
			return fmt.Errorf("record what is erased: %w", err)
		}
		return nil
	}
	for _, h := range p.cfg.Personal {
		if slices.Contains(d.Erased, h.Name) {
			continue
		}
		if err := h.erase(ctx, string(d.Account), record); err != nil {
			return fmt.Errorf("erase %s: %w", h.Name, err)
		}
		if err := errors.Join(record(ctx, h.Name, 0), p.cfg.Store.Erased(ctx, d, h.Name)); err != nil {
			return fmt.Errorf("record the erasure of %s: %w", h.Name, err)
		}
	}
	return p.finish(ctx, d, a, by, record)
}

// erase counts if the domain can.
func (h Holder) erase(ctx context.Context, account string, note func(context.Context, string, int) error) error {
	if c, ok := h.Personal.(Counting); ok {
		return c.EraseCounting(ctx, account, note)
	}
	return h.Erase(ctx, account)
}

// finish erases what this domain holds, the account last.
func (p *Privacy) finish(ctx context.Context, d Deletion, a Account, by string, record func(context.Context, string, int) error) error {
	object := d.Ref
	if a.Role != auth.Owner { // what the staff did stays theirs
		object = string(a.ID)
	}
	for a.Role == auth.Owner {
		n, err := p.cfg.Store.EraseAudit(ctx, d, a.Email)
		if err != nil {
			return err
		}
		if err := record(ctx, "lines of the audit log", n); err != nil {
			return err
		}
		if n == 0 {
			break
		}
	}
	line := p.in.cfg.Audit.Stamp(ctx, audit.Entry{Actor: "kenneld", Action: "account.deleted", Object: object,
		Detail: fmt.Sprintf("asked for by %s at %s; erased: ", by, d.Requested.UTC().Format(time.RFC3339))})
	if err := p.cfg.Store.DeleteAccount(ctx, d, []Hash{loginKey(a.Email), mailKey(a.Email)}, line); err != nil {
		return fmt.Errorf("delete account: %w", err)
	}
	return nil
}

// Resume orders the deletions that are under way again, and forgets what has expired. It is a periodic job.
func (p *Privacy) Resume(ctx context.Context) error {
	if err := p.cfg.Store.PruneOwners(ctx, p.in.cfg.Now()); err != nil {
		return fmt.Errorf("forget sign-ups: %w", err)
	}
	list, err := p.cfg.Store.Deletions(ctx)
	if err != nil {
		return fmt.Errorf("list deletions: %w", err)
	}
	for _, id := range list {
		if p.cfg.Order == nil {
			err = errors.Join(err, p.Erase(ctx, string(id)))
		} else {
			err = errors.Join(err, p.cfg.Order(ctx, string(id)))
		}
	}
	return err
}
