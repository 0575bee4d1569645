package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"kennel/cloud/mail"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// Defaults: ours, no source gives them.
const (
	DefaultSignupTTL      = 48 * time.Hour      // to prove an e-mail
	DefaultResetTTL       = time.Hour           // to choose a new password
	DefaultEmailTTL       = 24 * time.Hour      // to prove a new e-mail
	DefaultUserSessionTTL = 30 * 24 * time.Hour // of an app; the original's was a year

	freeMails = 3 // letters to one address that anybody may ask for at once
	firstMail = time.Minute
	maxMail   = time.Hour
)

// Kinds of mail.
const (
	mailSignup          = "account.signup"
	mailReset           = "account.reset"
	mailEmail           = "account.email"
	mailPasswordChanged = "account.password-changed"
	mailEmailChanged    = "account.email-changed"
)

// Purpose is the use of a ticket.
type Purpose string

// The purposes.
const (
	ForVerify Purpose = "verify" // a sign-up's e-mail
	ForReset  Purpose = "reset"  // a new password
	ForEmail  Purpose = "email"  // an account's new e-mail
)

// Ticket is the right that the link and the code in a letter give. It is good once.
type Ticket struct {
	Hash    Hash
	Purpose Purpose
	Account ID // of ForReset and ForEmail
	Signup  ID // of ForVerify
	Email   string
	Expires time.Time
}

// Signup is a person who has not proved the e-mail yet. Any number may have the same e-mail.
type Signup struct {
	ID      ID // becomes the account's
	Email   string
	Profile Profile
	Created time.Time
	Expires time.Time
}

// OwnerStore is the storage that Owners needs beside Store. Its methods are safe for concurrent use.
type OwnerStore interface {
	// AddSignup stores a sign-up; the profile's player id and the id are set.
	AddSignup(ctx context.Context, s Signup, passwordHash string) error
	// Signup returns one that has not expired, and its password's hash; ErrUnknown.
	Signup(ctx context.Context, id ID, now time.Time) (Signup, string, error)
	// NewestSignup returns the newest one of an e-mail; ErrUnknown.
	NewestSignup(ctx context.Context, email string, now time.Time) (Signup, error)

	// PutTicket stores a ticket in place of older ones for the same purpose of the same account or sign-up. ErrUnknown if that is gone.
	PutTicket(ctx context.Context, t Ticket) error
	// Ticket returns a ticket that has not expired, without using it; ErrUnknown.
	Ticket(ctx context.Context, hash Hash, p Purpose, now time.Time) (Ticket, error)

	// Verify uses a ticket ForVerify: the sign-up becomes an account, with its sessions, and other sign-ups of the e-mail are forgotten. All or
	// nothing. ErrUnknown, ErrTaken.
	Verify(ctx context.Context, hash Hash, now time.Time) (Account, error)
	// Reset uses a ticket ForReset: a new password, and every session of the account ends. ErrUnknown.
	Reset(ctx context.Context, hash Hash, passwordHash string, complex bool, now time.Time) (Account, error)
	// ChangeEmail uses a ticket ForEmail and returns the account as it was before. ErrUnknown, ErrTaken.
	ChangeEmail(ctx context.Context, hash Hash, now time.Time) (Account, error)

	// Profile returns an account's; DefaultProfile if it has none; ErrUnknown for an unknown account.
	Profile(ctx context.Context, id ID) (Profile, error)
	// SetProfile stores it; ErrUnknown.
	SetProfile(ctx context.Context, id ID, p Profile) error

	// Sessions lists an account's sessions, those of apps too, newest first.
	Sessions(ctx context.Context, id ID, now time.Time) ([]SessionInfo, error)
	// EndOne ends the session of that id if it is the account's; ErrUnknown.
	EndOne(ctx context.Context, id ID, session string) error
	// EndOthers ends every session of an account but keep and returns how many.
	EndOthers(ctx context.Context, id ID, keep Hash) (int, error)

	UserSessionStore
	DeletionStore
}

// SessionInfo is a session as its owner sees it.
type SessionInfo struct {
	ID       string // names it and opens nothing
	App      bool   // a token that an app has for robots
	Created  time.Time
	LastSeen time.Time // zero for an app's
	Expires  time.Time
	Addr     string
	Used     string // the robot that used an app's token
}

// SessionID names a session by its token's hash.
func SessionID(h Hash) string { return fmt.Sprintf("%x", h[:8]) }

// Mailer takes letters: a mail.Queue.
type Mailer interface {
	Post(ctx context.Context, m mail.Mail) error
}

// OwnersConfig holds what Owners is made of. Accounts, Store, Mail, ByAddr and PublicURL are required.
type OwnersConfig struct {
	Accounts  *Service
	Store     OwnerStore
	Mail      Mailer
	ByAddr    Limiter // sign-ups, letters asked for and codes tried, per peer address
	PublicURL string  // where the pages are that links lead to: https://kennel.example
	// Personal is every domain that holds something about people, in the order in which it is erased. The accounts themselves come last, by
	// themselves.
	Personal []Holder
	// Order orders the task TaskDelete for an account; nil: the next Resume does.
	Order func(ctx context.Context, id string) error

	SignupTTL, ResetTTL, EmailTTL, UserSessionTTL time.Duration // 0: the defaults
}

// Owners holds the rules of people's own accounts. Safe for concurrent use.
//
// It does not reveal who has an account. Signing up, asking for a new password and asking for the letter again do the same work and give the
// same answer for any e-mail; only the letter, which only its reader sees, says how things are (Compose). An e-mail belongs to the person who proves
// it, with the password of that sign-up: a link that another person asked for is useless to that person.
type Owners struct {
	cfg  OwnersConfig
	base *url.URL
}

// NewOwners checks cfg and returns the rules. From then on people are told when their password changes.
func NewOwners(cfg OwnersConfig) (*Owners, error) {
	if cfg.Accounts == nil || cfg.Store == nil || cfg.Mail == nil || cfg.ByAddr == nil {
		return nil, errors.New("account: accounts, store, mail and rate limit are required")
	}
	base, err := url.Parse(cfg.PublicURL)
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || strings.Trim(base.Path, "/") != "" || base.RawQuery != "" {
		return nil, errs.New(errs.Invalid, "public URL %.120q: want https://host", cfg.PublicURL)
	}
	for _, d := range []struct {
		to  *time.Duration
		def time.Duration
	}{{&cfg.SignupTTL, DefaultSignupTTL}, {&cfg.ResetTTL, DefaultResetTTL}, {&cfg.EmailTTL, DefaultEmailTTL}, {&cfg.UserSessionTTL, DefaultUserSessionTTL}} {
		if *d.to == 0 {
			*d.to = d.def
		}
	}
	personal := cfg.Personal
	cfg.Personal = nil
	o := &Owners{cfg, base}
	if err := o.Hold(personal...); err != nil {
		return nil, err
	}
	cfg.Accounts.passwordChanged, cfg.Accounts.order = o.tellPasswordChanged, cfg.Order
	return o, nil
}

// Hold adds domains that hold something about people to OwnersConfig.Personal. Call it before anything runs.
func (o *Owners) Hold(more ...Holder) error {
	for _, h := range more {
		taken := h.Name == holdsAccount || slices.ContainsFunc(o.cfg.Personal, func(other Holder) bool { return other.Name == h.Name })
		if h.Name == "" || h.Personal == nil || taken || strings.ContainsAny(h.Name, `/\.`) {
			return fmt.Errorf("account: personal data %q: want a name of its own and its domain", h.Name)
		}
		o.cfg.Personal = append(o.cfg.Personal, h)
	}
	return nil
}

func (o *Owners) now() time.Time { return o.cfg.Accounts.cfg.Now() }

// newTicket returns the code for a letter and its hash.
func newTicket() (code string, h Hash) {
	code = rand.Text()
	return code, logging.Secret(code).Sum()
}

// ticketHash is the hash of a code as a person may type it.
func ticketHash(code logging.Secret) Hash {
	return logging.Secret(strings.ToUpper(strings.TrimSpace(string(code)))).Sum()
}

func badCode() error {
	return errs.Coded(errs.Unauthenticated, "code_refused", "this link or code is used, too old, or not one of ours; ask for a new one")
}

// link is the page of a letter's link.
func (o *Owners) link(page, code string) string {
	u := *o.base
	u.Path = "/account/" + page
	if code != "" {
		u.RawQuery = url.Values{"code": {code}}.Encode()
	}
	return u.String()
}

// mayMail paces letters that anybody may ask for: by the asker's address, and by the address they would go to, known or not.
func (o *Owners) mayMail(ctx context.Context, email, addr string) error {
	if wait := o.cfg.ByAddr.Allow(addr); wait > 0 {
		return slowDown(wait)
	}
	store, key, now := o.cfg.Accounts.cfg.Store, mailKey(email), o.now()
	before, last, err := store.Failures(ctx, key)
	if err != nil {
		return fmt.Errorf("read pace: %w", err)
	}
	pause := func(n int) time.Duration {
		if n < freeMails {
			return 0
		}
		return min(maxMail, firstMail<<min(n-freeMails, 16))
	}
	if wait := last.Add(pause(before)).Sub(now); before > 0 && wait > 0 {
		return slowDown(wait)
	}
	n, err := store.Fail(ctx, key, now)
	if err != nil {
		return fmt.Errorf("count letter: %w", err)
	}
	if n > freeMails && n > before+1 { // many at once gain nothing
		return slowDown(pause(n))
	}
	return nil
}

func mailKey(email string) Hash { return sha256.Sum256([]byte("mail " + emailKey(email))) }

// NewOwner holds the fields of a sign-up.
type NewOwner struct {
	Email                            string
	Password                         logging.Secret
	Change                                  // the record's fields
	AppName, AppPlatform, AppVersion string // that the person signs up with
}

// SignUp notes a sign-up and sends a letter. For an e-mail that has an account already it does the same; the letter says so. Errors: Invalid;
// Exhausted.
func (o *Owners) SignUp(ctx context.Context, n NewOwner, addr string) (Signup, error) {
	email, err := normalEmail(n.Email)
	if err != nil {
		return Signup{}, err
	}
	if err := checkPassword(n.Password); err != nil {
		return Signup{}, err
	}
	p := DefaultProfile()
	p.PlayerID = newGUID()
	if n.PlayerID != nil && *n.PlayerID == "" {
		n.PlayerID = nil
	}
	if err := p.apply(n.Change); err != nil {
		return Signup{}, err
	}
	p.PasswordComplex = complexPassword(n.Password)
	p.AppName, p.AppPlatform, p.AppVersion = clip(n.AppName, maxApp), clip(n.AppPlatform, maxApp), clip(n.AppVersion, maxApp)
	if err := o.mayMail(ctx, email, addr); err != nil {
		return Signup{}, err
	}
	hash, err := o.cfg.Accounts.cfg.Hasher.Hash(ctx, string(n.Password))
	if err != nil {
		return Signup{}, err
	}
	now := o.now()
	s := Signup{ID: ID(newGUID()), Email: email, Profile: p, Created: now, Expires: now.Add(o.cfg.SignupTTL)}
	if err := o.cfg.Store.AddSignup(ctx, s, hash); err != nil {
		return Signup{}, fmt.Errorf("sign up: %w", err)
	}
	if err := o.cfg.Mail.Post(ctx, mail.Mail{Kind: mailSignup, To: email, Account: string(s.ID), Lang: p.Lang, Data: map[string]string{"signup": string(s.ID)}}); err != nil {
		return Signup{}, err
	}
	return s, o.audit(ctx, s.ID, addr, "account.signup")
}

func (o *Owners) audit(ctx context.Context, id ID, addr, action string) error {
	return o.cfg.Accounts.Audit(ctx, Entry{Actor: string(id), Role: auth.Owner, Addr: addr, Action: action, Object: string(id)})
}

// AskAgain sends the letter of the newest sign-up again; the same answer for any e-mail. Errors: Invalid; Exhausted.
func (o *Owners) AskAgain(ctx context.Context, email, addr string) error {
	email, err := normalEmail(email)
	if err != nil {
		return err
	}
	if err := o.mayMail(ctx, email, addr); err != nil {
		return err
	}
	return o.cfg.Mail.Post(ctx, mail.Mail{Kind: mailSignup, To: email})
}

// AskAgainFor is AskAgain for the sign-up that an app's session belongs to. Errors: Conflict "email_already_verified"; Exhausted.
func (o *Owners) AskAgainFor(ctx context.Context, s AppSession, addr string) error {
	if !s.Session.Pending {
		return errs.Coded(errs.Conflict, "email_already_verified", "the e-mail is proved already")
	}
	if err := o.mayMail(ctx, s.Record.Email, addr); err != nil {
		return err
	}
	id := string(s.Session.Account)
	return o.cfg.Mail.Post(ctx, mail.Mail{Kind: mailSignup, To: s.Record.Email, Account: id, Data: map[string]string{"signup": id}})
}

// Verify proves the e-mail of a sign-up with the code of its letter and the password given at sign-up: now there is an account. Errors:
// Unauthenticated "code_refused", "wrong_password"; Conflict "email_taken" if another was faster; Exhausted.
func (o *Owners) Verify(ctx context.Context, code, password logging.Secret, addr string) (Account, error) {
	if wait := o.cfg.ByAddr.Allow(addr); wait > 0 {
		return Account{}, slowDown(wait)
	}
	h, now := ticketHash(code), o.now()
	t, err := o.cfg.Store.Ticket(ctx, h, ForVerify, now)
	if errors.Is(err, ErrUnknown) {
		return Account{}, badCode()
	}
	if err != nil {
		return Account{}, fmt.Errorf("read code: %w", err)
	}
	_, hash, err := o.cfg.Store.Signup(ctx, t.Signup, now)
	if errors.Is(err, ErrUnknown) {
		return Account{}, badCode()
	}
	if err != nil {
		return Account{}, fmt.Errorf("read sign-up: %w", err)
	}
	ok, err := o.cfg.Accounts.guess(ctx, "signup "+string(t.Signup), hash, password, addr)
	if err != nil {
		return Account{}, err
	}
	if !ok {
		return Account{}, errs.Coded(errs.Unauthenticated, "wrong_password",
			"this is not the password of this sign-up; if another person signed up with your e-mail, do nothing")
	}
	a, err := o.cfg.Store.Verify(ctx, h, now)
	switch {
	case errors.Is(err, ErrUnknown):
		return Account{}, badCode()
	case errors.Is(err, ErrTaken):
		return Account{}, errs.Coded(errs.Conflict, "email_taken", "there is an account for this e-mail: sign in, or ask for a new password")
	case err != nil:
		return Account{}, fmt.Errorf("verify: %w", err)
	}
	if err := o.forgiveMail(ctx, a.Email); err != nil {
		return Account{}, err
	}
	return a, o.audit(ctx, a.ID, addr, "account.create")
}

func (o *Owners) forgiveMail(ctx context.Context, email string) error {
	if err := o.cfg.Accounts.cfg.Store.Forgive(ctx, mailKey(email)); err != nil {
		return fmt.Errorf("forget pace: %w", err)
	}
	return nil
}

// AskReset sends a letter for a new password; the same answer for any e-mail. Errors: Invalid; Exhausted.
func (o *Owners) AskReset(ctx context.Context, email, lang, addr string) error {
	email, err := normalEmail(email)
	if err != nil {
		return err
	}
	if lang, err = ParseLang(lang); err != nil {
		lang = "" // a letter in English is better than none
	}
	if err := o.mayMail(ctx, email, addr); err != nil {
		return err
	}
	return o.cfg.Mail.Post(ctx, mail.Mail{Kind: mailReset, To: email, Lang: lang})
}

// Reset sets a new password with the code of a letter; every session ends. Errors: Unauthenticated "code_refused"; Invalid for the password;
// Exhausted.
func (o *Owners) Reset(ctx context.Context, code, password logging.Secret, addr string) error {
	if err := checkPassword(password); err != nil {
		return err
	}
	if wait := o.cfg.ByAddr.Allow(addr); wait > 0 {
		return slowDown(wait)
	}
	h := ticketHash(code)
	if _, err := o.cfg.Store.Ticket(ctx, h, ForReset, o.now()); errors.Is(err, ErrUnknown) {
		return badCode() // before the costly part
	} else if err != nil {
		return fmt.Errorf("read code: %w", err)
	}
	hash, err := o.cfg.Accounts.cfg.Hasher.Hash(ctx, string(password))
	if err != nil {
		return err
	}
	a, err := o.cfg.Store.Reset(ctx, h, hash, complexPassword(password), o.now())
	if errors.Is(err, ErrUnknown) {
		return badCode()
	}
	if err != nil {
		return fmt.Errorf("reset password: %w", err)
	}
	if err := o.cfg.Accounts.cfg.Store.Forgive(ctx, loginKey(a.Email)); err != nil { // who proved the e-mail is not the one who guessed
		return fmt.Errorf("forgive failures: %w", err)
	}
	if err := o.forgiveMail(ctx, a.Email); err != nil {
		return err
	}
	if err := o.tellPasswordChanged(ctx, a); err != nil {
		return err
	}
	return o.audit(ctx, a.ID, addr, "password.reset")
}

func (o *Owners) tellPasswordChanged(ctx context.Context, a Account) error {
	return o.cfg.Mail.Post(ctx, mail.Mail{Kind: mailPasswordChanged, To: a.Email, Account: string(a.ID)})
}

// AskEmail sends a letter to a new e-mail of a signed-in person's account; the same answer whether it is taken or not. Errors: Invalid;
// Unauthenticated "wrong_password"; Exhausted.
func (o *Owners) AskEmail(ctx context.Context, id ID, email string, password logging.Secret, addr string) error {
	email, err := normalEmail(email)
	if err != nil {
		return err
	}
	a, err := o.cfg.Accounts.confirm(ctx, id, password, addr)
	if err != nil {
		return err
	}
	if email == a.Email {
		return errs.New(errs.Invalid, "this is the account's e-mail already")
	}
	if err := o.mayMail(ctx, email, addr); err != nil {
		return err
	}
	if err := o.cfg.Mail.Post(ctx, mail.Mail{Kind: mailEmail, To: email, Account: string(id)}); err != nil {
		return err
	}
	return o.audit(ctx, id, addr, "email.ask")
}

// ChangeEmail proves a new e-mail with the code of a letter. The old one is told. Errors: Unauthenticated "code_refused"; Conflict; Exhausted.
func (o *Owners) ChangeEmail(ctx context.Context, code logging.Secret, addr string) error {
	if wait := o.cfg.ByAddr.Allow(addr); wait > 0 {
		return slowDown(wait)
	}
	h, now := ticketHash(code), o.now()
	t, err := o.cfg.Store.Ticket(ctx, h, ForEmail, now)
	if errors.Is(err, ErrUnknown) {
		return badCode()
	}
	if err != nil {
		return fmt.Errorf("read code: %w", err)
	}
	old, err := o.cfg.Store.ChangeEmail(ctx, h, now)
	switch {
	case errors.Is(err, ErrUnknown):
		return badCode()
	case errors.Is(err, ErrTaken):
		return errs.Coded(errs.Conflict, "email_taken", "there is another account for this e-mail")
	case err != nil:
		return fmt.Errorf("change e-mail: %w", err)
	}
	if err := o.forgiveMail(ctx, t.Email); err != nil {
		return err
	}
	if err := o.cfg.Mail.Post(ctx, mail.Mail{Kind: mailEmailChanged, To: old.Email, Account: string(old.ID), Data: map[string]string{"new": t.Email}}); err != nil {
		return err
	}
	return o.audit(ctx, old.ID, addr, "email.change")
}

// Compose writes the letters: it is the mail.Composer. What a letter says is decided here, long after its asker got an answer.
func (o *Owners) Compose(ctx context.Context, m mail.Mail) (mail.Letter, bool, error) {
	switch m.Kind {
	case mailSignup:
		return o.composeSignup(ctx, m)
	case mailReset:
		a, _, err := o.cfg.Accounts.cfg.Store.ByEmail(ctx, m.To)
		if errors.Is(err, ErrUnknown) {
			return mail.Letter{Template: "reset-unknown"}, true, nil
		}
		if err != nil {
			return mail.Letter{}, false, err
		}
		if a.Disabled || a.Role != auth.Owner { // an operator's password is another operator's business
			return o.letter(ctx, a, mail.Letter{Template: "reset-closed"})
		}
		return o.withTicket(ctx, a, mail.Letter{Template: "reset"}, "reset", Ticket{Purpose: ForReset, Account: a.ID, Email: a.Email, Expires: o.now().Add(o.cfg.ResetTTL)})
	case mailEmail:
		a, _, err := o.cfg.Accounts.cfg.Store.ByID(ctx, ID(m.Account))
		if errors.Is(err, ErrUnknown) || err == nil && (a.Disabled || a.Email == m.To) {
			return mail.Letter{}, false, nil
		}
		if err != nil {
			return mail.Letter{}, false, err
		}
		switch _, _, err := o.cfg.Accounts.cfg.Store.ByEmail(ctx, m.To); {
		case err == nil:
			return mail.Letter{Template: "email-taken"}, true, nil
		case !errors.Is(err, ErrUnknown):
			return mail.Letter{}, false, err
		}
		return o.withTicket(ctx, a, mail.Letter{Template: "email-confirm", Other: a.Email}, "email", Ticket{Purpose: ForEmail, Account: a.ID, Email: m.To, Expires: o.now().Add(o.cfg.EmailTTL)})
	case mailPasswordChanged, mailEmailChanged:
		a, _, err := o.cfg.Accounts.cfg.Store.ByID(ctx, ID(m.Account))
		if errors.Is(err, ErrUnknown) {
			return mail.Letter{}, false, nil
		}
		if err != nil {
			return mail.Letter{}, false, err
		}
		if m.Kind == mailEmailChanged {
			return o.letter(ctx, a, mail.Letter{Template: "email-changed", Other: m.Data["new"]})
		}
		return o.letter(ctx, a, mail.Letter{Template: "password-changed", Link: o.link("forgot", "")})
	}
	return mail.Letter{}, false, fmt.Errorf("mail of kind %.40q: not one of accounts", m.Kind)
}

func (o *Owners) composeSignup(ctx context.Context, m mail.Mail) (mail.Letter, bool, error) {
	a, _, err := o.cfg.Accounts.cfg.Store.ByEmail(ctx, m.To)
	if err == nil {
		return o.letter(ctx, a, mail.Letter{Template: "taken", Link: o.link("forgot", "")})
	}
	if !errors.Is(err, ErrUnknown) {
		return mail.Letter{}, false, err
	}
	var s Signup
	if id := m.Data["signup"]; id != "" {
		s, _, err = o.cfg.Store.Signup(ctx, ID(id), o.now())
	} else {
		s, err = o.cfg.Store.NewestSignup(ctx, m.To, o.now())
	}
	if errors.Is(err, ErrUnknown) {
		if m.Data["signup"] != "" {
			return mail.Letter{}, false, nil
		}
		return mail.Letter{Template: "verify-unknown"}, true, nil
	}
	if err != nil {
		return mail.Letter{}, false, err
	}
	code, h := newTicket()
	err = o.cfg.Store.PutTicket(ctx, Ticket{Hash: h, Purpose: ForVerify, Signup: s.ID, Email: s.Email, Expires: s.Expires})
	if errors.Is(err, ErrUnknown) {
		return mail.Letter{}, false, nil
	}
	if err != nil {
		return mail.Letter{}, false, err
	}
	return mail.Letter{Template: "verify", Lang: s.Profile.Lang, Account: string(s.ID), Link: o.link("verify", code), Code: code, Expires: s.Expires}, true, nil
}

// letter adds what is known of the reader.
func (o *Owners) letter(ctx context.Context, a Account, l mail.Letter) (mail.Letter, bool, error) {
	p, err := o.cfg.Store.Profile(ctx, a.ID)
	if errors.Is(err, ErrUnknown) {
		return mail.Letter{}, false, nil
	}
	l.Lang, l.Account = p.Lang, string(a.ID)
	return l, err == nil, err
}

// withTicket adds a link and a code that are good once.
func (o *Owners) withTicket(ctx context.Context, a Account, l mail.Letter, page string, t Ticket) (mail.Letter, bool, error) {
	l, say, err := o.letter(ctx, a, l)
	if err != nil || !say {
		return l, say, err
	}
	l.Code, t.Hash = newTicket()
	l.Link, l.Expires = o.link(page, l.Code), t.Expires
	err = o.cfg.Store.PutTicket(ctx, t)
	if errors.Is(err, ErrUnknown) {
		return mail.Letter{}, false, nil
	}
	return l, err == nil, err
}

// Bounced notes in the record that an account's e-mail does not take mail. It fits mail.Config.
func (o *Owners) Bounced(ctx context.Context, m mail.Mail, code string) error {
	a, _, err := o.cfg.Accounts.cfg.Store.ByEmail(ctx, m.To)
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	return o.changeProfile(ctx, a.ID, func(p *Profile) error { p.EmailFailure = clip(code, 40); return nil })
}

// Addresses returns an account's e-mail; none for an unknown one. It fits mail.Config.
func (o *Owners) Addresses(ctx context.Context, id string) ([]string, error) {
	a, _, err := o.cfg.Accounts.cfg.Store.ByID(ctx, ID(id))
	if errors.Is(err, ErrUnknown) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []string{a.Email}, nil
}

func (o *Owners) changeProfile(ctx context.Context, id ID, change func(*Profile) error) error {
	p, err := o.cfg.Store.Profile(ctx, id)
	if err == nil {
		if err = change(&p); err == nil {
			err = o.cfg.Store.SetProfile(ctx, id, p)
		}
	}
	return notFound(err)
}

// Record returns an account's record; NotFound.
func (o *Owners) Record(ctx context.Context, id ID) (Record, error) {
	a, _, err := o.cfg.Accounts.cfg.Store.ByID(ctx, id)
	if err != nil {
		return Record{}, notFound(err)
	}
	p, err := o.cfg.Store.Profile(ctx, id)
	if err != nil {
		return Record{}, notFound(err)
	}
	if a.Disabled && p.Status == "active" {
		p.Status = "deleted" // the original's word for an account that is switched off
	}
	return record(a.ID, a.Email, a.Created, true, p), nil
}

// Change changes fields of a record; Invalid, NotFound.
func (o *Owners) Change(ctx context.Context, id ID, c Change) (Record, error) {
	if err := o.changeProfile(ctx, id, func(p *Profile) error { return p.apply(c) }); err != nil {
		return Record{}, err
	}
	return o.Record(ctx, id)
}

// Sessions lists an account's sessions; current is the one that asks.
func (o *Owners) Sessions(ctx context.Context, id ID, current logging.Secret) (list []SessionInfo, mine string, err error) {
	list, err = o.cfg.Store.Sessions(ctx, id, o.now())
	return list, SessionID(current.Sum()), err
}

// EndSession ends one of an account's sessions; NotFound if it is none of them.
func (o *Owners) EndSession(ctx context.Context, id ID, session, addr string) error {
	if err := o.cfg.Store.EndOne(ctx, id, session); errors.Is(err, ErrUnknown) {
		return errs.New(errs.NotFound, "no such session")
	} else if err != nil {
		return err
	}
	return o.audit(ctx, id, addr, "session.end")
}

// EndOtherSessions ends all but the one that asks and returns how many there were.
func (o *Owners) EndOtherSessions(ctx context.Context, id ID, current logging.Secret, addr string) (int, error) {
	n, err := o.cfg.Store.EndOthers(ctx, id, current.Sum())
	if err != nil {
		return 0, err
	}
	return n, o.audit(ctx, id, addr, "session.end")
}
