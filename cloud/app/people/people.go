// Package people wires the slices that are about people: accounts, letters, who owns which robot, and the pages of owners.
package people

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accountapi"
	"kennel/cloud/identity/account/accounthash"
	"kennel/cloud/identity/account/accountoidc"
	"kennel/cloud/identity/account/accountpg"
	"kennel/cloud/identity/account/accountwebauthn"
	"kennel/cloud/identity/account/audit"
	"kennel/cloud/identity/mail"
	"kennel/cloud/identity/mail/mailpg"
	"kennel/cloud/identity/mail/mailsmtp"
	"kennel/cloud/identity/mail/mailspool"
	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/owner/ownerapi"
	"kennel/cloud/identity/owner/ownerpg"
	"kennel/cloud/preflight/preflightwire"
	"kennel/cloud/telemetry/alert"
	"kennel/cloud/wire"
	"kennel/infra/diskspace"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/logging"
	"kennel/infra/observer"
	"kennel/infra/op"
	"kennel/infra/ratelimit"
	"kennel/jdocs/jdocspg"
)

// Config says how people reach this cloud, and how it reaches them.
type Config struct {
	Mail      MailConfig
	OIDC      accountoidc.Config
	PublicURL string   // of the pages: https://kennel.example
	Local     string   // host:port where this machine's browser finds the pages over plain HTTP; "": nowhere
	AppKeys   []string // that the original app and SDK tools may show; ["*"] takes any
	// RequireSecond makes operators have a second factor: a passkey or an authenticator app.
	RequireSecond bool
	SpoolDir      string // folder for letters where MailConfig names neither server nor folder
}

// MailConfig says how letters reach people.
type MailConfig struct {
	From  string          `koanf:"from"`  // sender's address, may have a name: Kennel <home@example.org>
	Site  string          `koanf:"site"`  // name of this cloud in e-mails; "": Kennel
	SMTP  mailsmtp.Config `koanf:"smtp"`  // a mail server; without a host letters go to Spool
	Spool string          `koanf:"spool"` // folder for e-mails if there is no mail server; "": mail, beside ca.dir
}

// Validate reports the first setting that cannot work.
func (c MailConfig) Validate() error {
	if c.SMTP.Host == "" {
		return nil
	}
	if c.From == "" {
		return errs.New(errs.Invalid, "mail.from is empty: want the sender's address that the server at mail.smtp.host takes")
	}
	return c.SMTP.Validate()
}

// Sign-ups, letters asked for and codes typed, from one address.
const (
	peopleByAddrEvery = 5 * time.Second
	peopleByAddrBurst = 20
)

// Attempts to sign in from one address; each account has its own lock besides.
const (
	loginByAddrEvery = 2 * time.Second
	loginByAddrBurst = 20
)

// Accounts are the accounts of owners and operators.
type Accounts struct {
	*account.SignIn
	People    *account.People
	Operators *account.Operators
	Keys      *account.Passkeys
	Second    *account.Second
	Letters   *account.Letters
	Apps      *account.Apps
	Privacy   *account.Privacy
	Audit     *audit.Log
	Passkeys  *accountwebauthn.Passkeys
	Provider  *accountoidc.Provider // nil: none
}

// WireAccounts wires them, with the ways to sign in.
func WireAccounts(ctx context.Context, b wire.Base, cfg Config) (a Accounts, s wire.Slice, err error) {
	store := accountpg.New(b.Pool)
	order := func(ctx context.Context, id string) error {
		d, err := store.Deletion(ctx, id)
		if errors.Is(err, account.ErrUnknown) {
			return nil // it is done
		}
		if err != nil {
			return err
		}
		return b.Orders.Add(ctx, account.TaskDelete, d.Ref)
	}
	a.Audit = audit.New(store, nil)
	a.SignIn, err = account.NewSignIn(ctx, account.SignInConfig{
		Store: store, Attempts: store, Audit: a.Audit, Hasher: accounthash.New(), ByAddr: ratelimit.NewByAddr(loginByAddrEvery, loginByAddrBurst),
		Secret: b.Seal.Secret("device"), Instance: hex.EncodeToString(b.Seal.Secret("instance")[:4]), RequireSecond: cfg.RequireSecond, Mail: letters(b), Log: b.Log,
	})
	if err != nil {
		return a, s, err
	}
	a.People, a.Keys = account.NewPeople(a.SignIn, store), account.NewPasskeys(a.SignIn, store)
	a.Second = account.NewSecond(a.SignIn, store, b.Seal.For("second factor"), cmp.Or(cfg.Mail.Site, "Kennel"))
	a.Operators = account.NewOperators(a.SignIn, a.People, store, order)
	a.Letters, err = account.NewLetters(a.People, account.LettersConfig{
		Store: store, Mail: letters(b), ByAddr: ratelimit.NewByAddr(peopleByAddrEvery, peopleByAddrBurst), PublicURL: cfg.PublicURL,
	})
	if err != nil {
		return a, s, err
	}
	a.Apps = account.NewApps(a.Letters, store, 0)
	if a.Privacy, err = account.NewPrivacy(a.People, a.Keys, account.PrivacyConfig{Store: store, Order: order}); err != nil {
		return a, s, err
	}
	var local []string
	if _, port, err := net.SplitHostPort(cfg.Local); err == nil && strings.HasPrefix(cfg.PublicURL, "https://localhost") {
		local = append(local, "http://"+net.JoinHostPort("localhost", port)) // browsers trust this machine without TLS
	}
	if a.Passkeys, err = accountwebauthn.New(a.Keys, cfg.PublicURL, cmp.Or(cfg.Mail.Site, "Kennel"), b.Log, local...); err != nil {
		return a, s, err
	}
	if cfg.OIDC.Issuer != "" {
		if a.Provider, err = accountoidc.New(cfg.OIDC, cfg.PublicURL+"/login/oidc/callback"); err != nil {
			return a, s, err
		}
	}
	own := accountapi.OwnersConfig{SignIn: a.SignIn, People: a.People, Letters: a.Letters, Apps: a.Apps, Privacy: a.Privacy, AppKeys: cfg.AppKeys, Site: cfg.Mail.Site, Log: b.Log}
	return a, wire.Slice{
		Operations: func(wire.Doors) wire.Operations {
			return slices.Concat(accountapi.Operations(a.SignIn, a.Second, b.Log), accountapi.SecondOperations(a.Second), accountapi.PasskeyOperations(a.Keys, a.Passkeys, b.Log),
				accountapi.OwnersOperations(own), accountapi.StaffOperations(a.Operators), accountapi.AuditOperations(a.Audit, b.Log))
		},
		Routes: func(mux *http.ServeMux, _ wire.Doors) error {
			accountapi.MountSecond(mux, a.SignIn, a.Second, cmp.Or(cfg.Mail.Site, "Kennel"), b.Log)
			if a.Provider != nil {
				accountapi.MountOIDC(mux, a.Operators, a.Provider, b.Log)
			}
			return accountapi.MountOwners(mux, own)
		},
		Runs:  []wire.Run{{Name: "accounts", Run: a.Run}},
		Jobs:  []jobs.Job{{Name: "account.resume", Every: time.Minute, Run: a.Privacy.Resume}},
		Tasks: []jobs.Task{{Name: account.TaskDelete, Run: a.Privacy.Erase}},
	}, nil
}

// ProviderName returns the name of the identity provider; "" without one.
func (a Accounts) ProviderName() string {
	if a.Provider == nil {
		return ""
	}
	return a.Provider.Name()
}

func letters(b wire.Base) mail.Queue { return mail.Queue{Outbox: mailpg.New(b.Pool, b.Orders)} }

// Owners say who owns which robot.
type Owners struct {
	*owner.Service
	Ended *observer.Of[owner.Tenure] // is told when an ownership ends
}

// WireOwners wires them.
func WireOwners(b wire.Base, cfg Config, a Accounts, robots *registry.Service) (Owners, wire.Slice, error) {
	ended, store := &observer.Of[owner.Tenure]{}, ownerpg.New(b.Pool)
	svc, err := owner.New(owner.Config{
		Store: store, Codes: store, Transfers: store, Remains: store, Secret: b.Seal.Secret("owner"),
		ByThing: ratelimit.New(10*time.Second, 10), ByAddr: ratelimit.NewByAddr(peopleByAddrEvery, peopleByAddrBurst),
		Confirm: func(ctx context.Context, id string, by owner.Proof) error {
			_, err := a.SignIn.Confirm(ctx, account.ID(id), by.Password, by.Addr)
			return err
		},
		Docs: jdocspg.New(b.Pool), Ended: ended.Tell, Audit: a.Audit.Note, Mail: letters(b), ForgotURL: cfg.PublicURL + "/account/forgot", Log: b.Log,
		Record: func(ctx context.Context, s owner.Step) {
			step := registry.Step{Thing: s.Thing, At: s.At, Name: s.Step, OK: s.OK, Code: s.Code, Peer: s.Peer, Detail: s.Detail}
			if err := robots.Record(ctx, step); err != nil {
				b.Log.WarnContext(ctx, "step not recorded", logging.Thing, s.Thing, "step", s.Step, logging.Err, err)
			}
		},
		Email: func(ctx context.Context, id string) (string, error) {
			all, err := a.People.Addresses(ctx, id)
			if err == nil && len(all) == 0 {
				err = errs.New(errs.NotFound, "no such account")
			}
			return strings.Join(all, ""), err
		},
		Reader: func(ctx context.Context, id string) (email, lang string, err error) {
			r, err := a.People.Record(ctx, account.ID(id))
			if err == nil && r.EmailLang != nil {
				lang = *r.EmailLang
			}
			return r.Email, lang, err
		},
	})
	return Owners{svc, ended}, wire.Slice{
		Requests: ownerapi.Handlers(svc),
		Operations: func(d wire.Doors) wire.Operations {
			return ownerapi.Operations(svc, ownerapi.Config{Known: d.Known, Audit: d.Audit})
		},
		Runs:     []wire.Run{{Name: "owners", Run: svc.Run}},
		Personal: []wire.Holding{{Name: "robots", Keeps: []string{"owner_tenure", "owner_transfer", "owner_attempt", "owner_news"}, Data: svc}},
	}, err
}

// WireMail wires what sends letters; the account and the owner slices say what is in theirs.
func WireMail(b wire.Base, cfg Config, a Accounts, owners Owners) (s wire.Slice, err error) {
	var to mail.Transport
	if cfg.Mail.SMTP.Host != "" {
		if to, err = mailsmtp.New(cfg.Mail.SMTP); err == nil {
			to = preflightwire.Noted(b.Pool, to, b.Log)
		}
	} else {
		var spool *mailspool.Spool
		spool, err = mailspool.Open(cmp.Or(cfg.Mail.Spool, cfg.SpoolDir))
		to, s.Close = noted{spool, b.Volumes}, spool.Close
	}
	if err != nil {
		return wire.Slice{}, err
	}
	svc, err := mail.New(mail.Config{
		Outbox: mailpg.New(b.Pool, b.Orders), Transport: to, Addresses: a.People.Addresses, Bounced: a.People.Bounced,
		From: cmp.Or(cfg.Mail.From, "Kennel <kennel@localhost>"), Site: cfg.Mail.Site, Log: b.Log,
		Compose: func(ctx context.Context, m mail.Mail) (mail.Letter, bool, error) {
			switch {
			case owner.Composes(m.Kind):
				return owners.Compose(ctx, m)
			case alert.Composes(m.Kind):
				return alert.Composer(cfg.PublicURL+"/alerts")(ctx, m)
			}
			return a.Letters.Compose(ctx, m)
		},
	})
	s.Jobs = []jobs.Job{{Name: "mail.forget", Every: time.Hour, Run: svc.Forget}}
	s.Tasks = []jobs.Task{{Name: mail.TaskSend, Run: svc.Send}}
	s.Personal = []wire.Holding{{Name: "mail", Keeps: []string{"mail_outbox"}, Data: svc}}
	return s, err
}

// noted notes letters that find no space.
type noted struct {
	*mailspool.Spool
	volumes *diskspace.Watch
}

// Send implements mail.Transport.
func (n noted) Send(ctx context.Context, m mail.Message) error {
	return n.volumes.Note("folder of letters", n.Spool.Send(ctx, m))
}

// Operations lists the operations of accounts, their owners and staff, for their declarations alone.
func Operations() op.List {
	return slices.Concat(
		accountapi.Operations(nil, nil, nil),
		accountapi.SecondOperations(nil),
		accountapi.PasskeyOperations(nil, nil, nil),
		accountapi.OwnersOperations(accountapi.OwnersConfig{}),
		accountapi.StaffOperations(nil),
		accountapi.AuditOperations(nil, nil),
		ownerapi.Operations(nil, ownerapi.Config{}),
	)
}
