package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"kennel/certs/limit"
	"kennel/cloud/account"
	"kennel/cloud/account/accountapi"
	"kennel/cloud/account/accounthash"
	"kennel/cloud/account/accountoidc"
	"kennel/cloud/account/accountpg"
	"kennel/cloud/account/accountwebauthn"
	"kennel/cloud/mail"
	"kennel/cloud/mail/mailpg"
	"kennel/cloud/mail/mailsmtp"
	"kennel/cloud/mail/mailspool"
	"kennel/cloud/owner"
	"kennel/cloud/owner/ownerpg"
	"kennel/cloud/registry"
	"kennel/cloud/webhook"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// MailConfig says how letters reach people.
type MailConfig struct {
	From  string          `koanf:"from"`  // sender's address, may have a name: Kennel <home@example.org>
	Site  string          `koanf:"site"`  // how the letters call this cloud; "": Kennel
	SMTP  mailsmtp.Config `koanf:"smtp"`  // a mail server; without a host letters go to Spool
	Spool string          `koanf:"spool"` // folder for letters where there is no mail server; "": mail, beside ca.dir
}

func (c MailConfig) validate() error {
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

// wirePeople makes accounts, letters and ownership. The documents are wired before it.
func (c *Cloud) wirePeople(ctx context.Context) error {
	store := accountpg.New(c.pool)
	var err error
	c.Accounts, err = account.New(ctx, account.Config{Store: store, Hasher: accounthash.New(), ByAddr: limit.NewByAddr(loginByAddrEvery, loginByAddrBurst), Log: c.log})
	if err != nil {
		return err
	}
	if c.orders, err = jobs.NewOrders(c.pool); err != nil {
		return err
	}
	c.outbox = mailpg.New(c.pool, c.orders)
	c.ownerStore = ownerpg.New(c.pool)
	c.Owners, err = owner.New(owner.Config{
		Store: c.ownerStore, Codes: c.ownerStore, Transfers: c.ownerStore, Remains: c.ownerStore, Secret: c.seal.Secret("owner"),
		ByThing: limit.New(10*time.Second, 10), ByAddr: limit.NewByAddr(peopleByAddrEvery, peopleByAddrBurst),
		Docs: c.Docs, Record: c.ownerStep, Ended: c.tenureEnded, Email: c.emailOf, Log: c.log,
		Mail: mail.Queue{Outbox: c.outbox}, Reader: c.readerOf, ForgotURL: c.cfg.API.publicURL() + "/account/forgot",
	})
	if err != nil {
		return err
	}
	c.People, err = account.NewOwners(account.OwnersConfig{
		Accounts: c.Accounts, Store: store, Mail: mail.Queue{Outbox: c.outbox}, ByAddr: limit.NewByAddr(peopleByAddrEvery, peopleByAddrBurst),
		PublicURL: c.cfg.API.publicURL(), Personal: c.holders(), Order: func(ctx context.Context, id string) error { return c.orders.Add(ctx, account.TaskDelete, id) },
	})
	if err != nil {
		return err
	}
	if err := c.wireMail(); err != nil {
		return err
	}
	return c.wireSignIn()
}

// wireMail makes what sends letters.
func (c *Cloud) wireMail() error {
	var to mail.Transport
	if m := c.cfg.Mail; m.SMTP.Host != "" {
		smtp, err := mailsmtp.New(m.SMTP)
		if err != nil {
			return err
		}
		to = smtp
	} else {
		dir := m.Spool
		if dir == "" {
			dir = filepath.Join(filepath.Dir(filepath.Clean(c.cfg.CA.Dir)), "mail")
		}
		spool, err := mailspool.Open(dir)
		if err != nil {
			return err
		}
		c.spool, to = spool, spool
	}
	from := c.cfg.Mail.From
	if from == "" {
		from = "Kennel <kennel@localhost>" // of letters that lie in a folder
	}
	var err error
	c.Mail, err = mail.New(mail.Config{Outbox: c.outbox, Compose: c.composeLetter, Transport: to, Addresses: c.People.Addresses, Bounced: c.People.Bounced,
		From: from, Site: c.cfg.Mail.Site, Log: c.log})
	return err
}

// wireSignIn makes the ways to sign in beside a password.
func (c *Cloud) wireSignIn() error {
	public := c.cfg.API.publicURL()
	var local []string
	if _, port, err := net.SplitHostPort(c.cfg.Console.Listen); err == nil && strings.HasPrefix(public, "https://localhost") {
		local = append(local, "http://"+net.JoinHostPort("localhost", port)) // browsers trust this machine without TLS
	}
	var err error
	if c.passkeys, err = accountwebauthn.New(c.Accounts, public, cmp.Or(c.cfg.Mail.Site, "Kennel"), c.log, local...); err != nil {
		return err
	}
	if c.cfg.OIDC.Issuer == "" {
		return nil
	}
	c.provider, err = accountoidc.New(c.cfg.OIDC, public+"/login/oidc/callback")
	return err
}

// mountSignIn adds their routes.
func (c *Cloud) mountSignIn(mux *http.ServeMux) {
	accountapi.MountPasskeys(mux, c.Accounts, c.passkeys, c.log)
	if c.provider != nil {
		accountapi.MountOIDC(mux, c.Accounts, c.provider, c.log)
	}
}

// tasks is the work that is ordered piece by piece.
func (c *Cloud) tasks() []jobs.Task {
	return append(c.fleetTasks(), []jobs.Task{
		{Name: mail.TaskSend, Run: c.Mail.Send},
		{Name: account.TaskDelete, Run: c.People.Erase},
		{Name: webhook.TaskDeliver, Run: c.Webhooks.Deliver},
	}...)
}

// holders lists every domain that holds something about people, in the order in which it is erased: what acts for them first, then what is
// left of it. Each is asked late, because they are wired one after the other.
func (c *Cloud) holders() []account.Holder {
	return []account.Holder{
		{Name: "tokens", Personal: late{func() account.Personal { return c.Tokens }}},
		{Name: "commands", Personal: late{func() account.Personal { return c.cmdStore }}},
		{Name: "documents", Personal: late{func() account.Personal { return personalDocs{c} }}}, // before whose robots they are is forgotten
		{Name: "robots", Personal: late{func() account.Personal { return c.Owners }}},
		{Name: "uploads", Personal: late{func() account.Personal { return c.uploads }}},
		{Name: "mail", Personal: late{func() account.Personal { return c.Mail }}},
	}
}

type late struct{ of func() account.Personal }

func (l late) Export(ctx context.Context, id string) (any, error) { return l.of().Export(ctx, id) }
func (l late) Erase(ctx context.Context, id string) error         { return l.of().Erase(ctx, id) }

// composeLetter asks the domain that a letter is of.
func (c *Cloud) composeLetter(ctx context.Context, m mail.Mail) (mail.Letter, bool, error) {
	if owner.Composes(m.Kind) {
		return c.Owners.Compose(ctx, m)
	}
	return c.People.Compose(ctx, m)
}

// readerOf serves owner.Config.Reader.
func (c *Cloud) readerOf(ctx context.Context, id string) (email, lang string, err error) {
	r, err := c.People.Record(ctx, account.ID(id))
	if err == nil && r.EmailLang != nil {
		lang = *r.EmailLang
	}
	return r.Email, lang, err
}

// emailOf serves owner.Config.Email.
func (c *Cloud) emailOf(ctx context.Context, id string) (string, error) {
	all, err := c.People.Addresses(ctx, id)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "", errs.New(errs.NotFound, "no such account")
	}
	return all[0], nil
}

// ownerStep keeps a step of claiming for the doctor.
func (c *Cloud) ownerStep(ctx context.Context, s owner.Step) {
	step := registry.Step{Thing: s.Thing, At: s.At, Name: s.Step, OK: s.OK, Code: s.Code, Peer: s.Peer, Detail: s.Detail}
	if err := c.Registry.Record(ctx, step); err != nil {
		c.log.WarnContext(ctx, "step not recorded", logging.Thing, s.Thing, "step", s.Step, logging.Err, err)
	}
}

// tenureEnded withdraws the rights of an ownership: the robot no longer acts for that person, and the person's apps no longer talk to it. A robot
// that already acts for another person lost both when it began to.
func (c *Cloud) tenureEnded(ctx context.Context, t owner.Tenure) error {
	user, err := c.tokenStore.LastUser(ctx, t.Thing)
	if err != nil {
		return err
	}
	if user != t.Account && user != "" {
		return nil
	}
	if _, err := c.Tokens.RevokeThing(ctx, t.Thing, "its owner let it go: "+t.Ended); err != nil {
		return err
	}
	return c.Tokens.RevokeApps(ctx, t.Thing)
}

// accountChanged has every process ask again what an owner allows.
func (c *Cloud) accountChanged(ctx context.Context, account string, name jdocs.Name) {
	if name != jdocs.AccountSettings {
		return
	}
	if err := c.ownerStore.Touch(ctx, account); err != nil {
		c.log.WarnContext(ctx, "consent change not announced; other processes notice it within half a minute", "account", account, logging.Err, err)
	}
}

// personalDocs handles the personal data in documents.
type personalDocs struct{ c *Cloud }

// robots lists what is or was an account's.
func (p personalDocs) robots(ctx context.Context, id string) ([]thing.ID, error) {
	tenures, err := p.c.ownerStore.Tenures(ctx, id)
	var out []thing.ID
	for _, t := range tenures {
		out = append(out, t.Thing)
	}
	return out, err
}

func (p personalDocs) Export(ctx context.Context, id string) (any, error) {
	mine, err := p.c.Owners.Robots(ctx, id) // documents of those that are another's now are another's
	if err != nil {
		return nil, err
	}
	var things []thing.ID
	for _, t := range mine {
		things = append(things, t.Thing)
	}
	return p.c.docStore.OfAccount(ctx, id, things)
}

// Erase takes the person's words out of the documents of their robots, where they live first of all; the robots take that over.
func (p personalDocs) Erase(ctx context.Context, id string) error {
	mine, err := p.c.Owners.Robots(ctx, id)
	if err != nil {
		return err
	}
	var first map[string]json.RawMessage
	if err := json.Unmarshal([]byte(jdocs.DefaultRobotSettings().JSON), &first); err != nil {
		return err
	}
	for _, t := range mine {
		key := jdocs.Key{Thing: t.Thing, Name: jdocs.RobotSettings}
		if _, err := p.c.Docs.Get(ctx, key); errors.Is(err, jdocs.ErrNotFound) {
			continue
		} else if err != nil {
			return err
		}
		fields := map[string]json.RawMessage{"default_location": first["default_location"], "time_zone": first["time_zone"]}
		if _, err := p.c.Docs.Set(ctx, key, fields, "kenneld"); err != nil {
			return err
		}
	}
	things, err := p.robots(ctx, id)
	if err != nil {
		return err
	}
	return p.c.docStore.EraseAccount(ctx, id, things)
}
