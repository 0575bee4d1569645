package account

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"kennel/cloud/identity/account/audit"
	"kennel/cloud/identity/mail"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/ratelimit"
)

// Defaults: ours, no source gives them.
const (
	DefaultSignupTTL = 48 * time.Hour // to prove an e-mail
	DefaultResetTTL  = time.Hour      // to choose a new password
	DefaultEmailTTL  = 24 * time.Hour // to prove a new e-mail

	freeMails = 3 // letters to one address before further ones are paced
	firstMail = time.Minute
	maxMail   = time.Hour
)

// Kinds of mail.
const (
	mailSignup          = "account.signup"
	mailReset           = "account.reset"
	mailEmail           = "account.email"
	mailPasswordChanged = "account.password-changed"
	mailPasskeyAdded    = "account.passkey-added"
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

// Ticket is the right that the link and the code in a letter give. It can be used once.
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

// LetterStore keeps sign-ups and tickets. Its methods are safe for concurrent use.
type LetterStore interface {
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
}

// LettersConfig configures Letters. Store, Mail, ByAddr and PublicURL are required.
type LettersConfig struct {
	Store     LetterStore
	Mail      Mailer
	ByAddr    Limiter // sign-ups, letters asked for and codes tried, per peer address
	PublicURL string  // where the pages are that links lead to: https://kennel.example

	SignupTTL, ResetTTL, EmailTTL time.Duration // 0: the defaults
}

// Letters is the rules of all that begins with a letter: sign-up, a new password, a new e-mail. Safe for concurrent use.
//
// It does not reveal who has an account. Signing up, asking for a new password and asking for the letter again do the same work and give the
// same answer for any e-mail; only the letter, which only its reader sees, tells the truth (Compose). An e-mail belongs to the person who proves
// it, with the password of that sign-up: a link that another person asked for is useless to that person.
type Letters struct {
	in     *SignIn
	people *People
	cfg    LettersConfig
	base   *url.URL
}

// NewLetters checks cfg and returns the rules.
func NewLetters(people *People, cfg LettersConfig) (*Letters, error) {
	if people == nil || cfg.Store == nil || cfg.Mail == nil || cfg.ByAddr == nil {
		return nil, errors.New("account: people, store, mail and rate limit are required")
	}
	base, err := url.Parse(cfg.PublicURL)
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || strings.Trim(base.Path, "/") != "" || base.RawQuery != "" {
		return nil, errs.New(errs.Invalid, "public URL %.120q: want https://host", cfg.PublicURL)
	}
	cfg.SignupTTL = cmp.Or(cfg.SignupTTL, DefaultSignupTTL)
	cfg.ResetTTL = cmp.Or(cfg.ResetTTL, DefaultResetTTL)
	cfg.EmailTTL = cmp.Or(cfg.EmailTTL, DefaultEmailTTL)
	return &Letters{people.in, people, cfg, base}, nil
}

func (l *Letters) now() time.Time { return l.in.cfg.Now() }

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
	return errs.Coded(errs.Unauthenticated, "code_refused", "this link or code is invalid, expired or already used; ask for a new one")
}

// link is the page of a letter's link.
func (l *Letters) link(page, code string) string {
	u := *l.base
	u.Path = "/account/" + page
	if code != "" {
		u.RawQuery = url.Values{"code": {code}}.Encode()
	}
	return u.String()
}

// mayMail paces letters that anybody may ask for: by the asker's address, and by the address they would go to, known or not.
func (l *Letters) mayMail(ctx context.Context, email, addr string) error {
	if wait := l.cfg.ByAddr.Allow(addr); wait > 0 {
		return slowDown(wait)
	}
	store, now := l.in.cfg.Attempts, l.now()
	key, err := l.mailLane(ctx, email, addr)
	if err != nil {
		return err
	}
	before, last, err := store.Failures(ctx, key)
	if err != nil {
		return fmt.Errorf("read rate of e-mails: %w", err)
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
		return fmt.Errorf("count e-mail: %w", err)
	}
	if n > freeMails && n > before+1 { // many at once gain nothing
		return slowDown(pause(n))
	}
	return nil
}

// mailLane is the counter of letters to an e-mail: a place where its account signed in lately has its own, so that strangers who ask do not hold it up.
func (l *Letters) mailLane(ctx context.Context, email, addr string) (Hash, error) {
	a, _, err := l.in.byEmail(ctx, email)
	if err != nil {
		return Hash{}, err
	}
	near, err := l.in.cfg.Attempts.Near(ctx, a.ID, l.in.place(a.ID, addr), l.now().Add(-NearMemory))
	if err != nil {
		return Hash{}, fmt.Errorf("read known places: %w", err)
	}
	if near {
		return laneKey("mail "+emailKey(email), "near "+ratelimit.Network(addr)), nil
	}
	return mailKey(email), nil
}

// mailKey is the counter of letters to an e-mail that strangers asked for.
func mailKey(email string) Hash { return laneKey("mail "+emailKey(email), "") }

// NewOwner holds the fields of a sign-up.
type NewOwner struct {
	Email                            string
	Password                         logging.Secret
	Change                                  // the record's fields
	AppName, AppPlatform, AppVersion string // that the person signs up with
}

// SignUp notes a sign-up and sends a letter. For an e-mail that has an account already it does the same; the letter says so. Errors: Invalid;
// Exhausted.
func (l *Letters) SignUp(ctx context.Context, n NewOwner, addr string) (Signup, error) {
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
	p.AppName, p.AppPlatform, p.AppVersion = audit.Clip(n.AppName, maxApp), audit.Clip(n.AppPlatform, maxApp), audit.Clip(n.AppVersion, maxApp)
	if err := l.mayMail(ctx, email, addr); err != nil {
		return Signup{}, err
	}
	hash, err := l.in.cfg.Hasher.Hash(ctx, string(n.Password), Share{Addr: ratelimit.Network(addr)})
	if err != nil {
		return Signup{}, err
	}
	now := l.now()
	s := Signup{ID: ID(newGUID()), Email: email, Profile: p, Created: now, Expires: now.Add(l.cfg.SignupTTL)}
	if err := l.people.announce(ctx, s.ID, addr, "account.signup"); err != nil {
		return Signup{}, err
	}
	if err := l.cfg.Store.AddSignup(ctx, s, hash); err != nil {
		return Signup{}, fmt.Errorf("sign up: %w", err)
	}
	return s, l.cfg.Mail.Post(ctx, mail.Mail{Kind: mailSignup, To: email, Account: string(s.ID), Lang: p.Lang, Data: map[string]string{"signup": string(s.ID)}})
}

// AskAgain sends the letter of the newest sign-up again; the same answer for any e-mail. Errors: Invalid; Exhausted.
func (l *Letters) AskAgain(ctx context.Context, email, addr string) error {
	email, err := normalEmail(email)
	if err != nil {
		return err
	}
	if err := l.mayMail(ctx, email, addr); err != nil {
		return err
	}
	return l.cfg.Mail.Post(ctx, mail.Mail{Kind: mailSignup, To: email})
}

// Verify proves the e-mail of a sign-up with the code of its letter and the password given at sign-up: now there is an account. Errors:
// Unauthenticated "code_refused", "wrong_password"; Conflict "email_taken" if another was faster; Exhausted.
func (l *Letters) Verify(ctx context.Context, code, password logging.Secret, addr string) (Account, error) {
	return l.verify(ctx, code, addr, func(t Ticket, hash string) error {
		ok, err := l.in.guess(ctx, lane{key: laneKey("signup "+string(t.Signup), "")}, hash, password, addr)
		if err == nil && !ok {
			err = errs.Coded(errs.Unauthenticated, "wrong_password",
				"wrong password for this sign-up; if another person signed up with your e-mail, do nothing")
		}
		return err
	})
}

// verify is Verify with any proof that the reader of the letter is the person who signed up. hash is the sign-up's password.
func (l *Letters) verify(ctx context.Context, code logging.Secret, addr string, proof func(t Ticket, hash string) error) (Account, error) {
	if wait := l.cfg.ByAddr.Allow(addr); wait > 0 {
		return Account{}, slowDown(wait)
	}
	h, now := ticketHash(code), l.now()
	t, err := l.cfg.Store.Ticket(ctx, h, ForVerify, now)
	var hash string
	if err == nil {
		_, hash, err = l.cfg.Store.Signup(ctx, t.Signup, now)
	}
	if errors.Is(err, ErrUnknown) {
		return Account{}, badCode()
	}
	if err != nil {
		return Account{}, fmt.Errorf("read sign-up: %w", err)
	}
	if err := proof(t, hash); err != nil {
		return Account{}, err
	}
	if err := l.people.announce(ctx, t.Signup, addr, "account.create"); err != nil {
		return Account{}, err
	}
	a, err := l.cfg.Store.Verify(ctx, h, now)
	switch {
	case errors.Is(err, ErrUnknown):
		return Account{}, badCode()
	case errors.Is(err, ErrTaken):
		return Account{}, emailTaken(": sign in, or ask for a new password")
	case err != nil:
		return Account{}, fmt.Errorf("verify: %w", err)
	}
	return a, l.forgiveMail(ctx, a.Email)
}

func (l *Letters) forgiveMail(ctx context.Context, email string) error {
	if err := l.in.cfg.Attempts.Forgive(ctx, mailKey(email)); err != nil {
		return fmt.Errorf("clear rate of e-mails: %w", err)
	}
	return nil
}

// AskReset sends a letter for a new password; the same answer for any e-mail. Errors: Invalid; Exhausted.
func (l *Letters) AskReset(ctx context.Context, email, lang, addr string) error {
	email, err := normalEmail(email)
	if err != nil {
		return err
	}
	if lang, err = ParseLang(lang); err != nil {
		lang = "" // a letter in English is better than none
	}
	if err := l.mayMail(ctx, email, addr); err != nil {
		return err
	}
	return l.cfg.Mail.Post(ctx, mail.Mail{Kind: mailReset, To: email, Lang: lang})
}

// Reset is ResetFrom of a program.
func (l *Letters) Reset(ctx context.Context, code, password logging.Secret, addr string) error {
	_, err := l.ResetFrom(ctx, code, password, From{Addr: addr})
	return err
}

// ResetFrom sets a new password with the code of a letter; every session ends. It returns what makes the browser known: who reads the letter signs in
// there, whatever strangers do. Errors: Unauthenticated "code_refused"; Invalid for the password; Exhausted.
func (l *Letters) ResetFrom(ctx context.Context, code, password logging.Secret, from From) (device logging.Secret, err error) {
	addr := from.Addr
	if err := checkPassword(password); err != nil {
		return "", err
	}
	if wait := l.cfg.ByAddr.Allow(addr); wait > 0 {
		return "", slowDown(wait)
	}
	h := ticketHash(code)
	t, err := l.cfg.Store.Ticket(ctx, h, ForReset, l.now())
	if errors.Is(err, ErrUnknown) {
		return "", badCode() // before the costly part
	} else if err != nil {
		return "", fmt.Errorf("read code: %w", err)
	}
	hash, err := l.in.cfg.Hasher.Hash(ctx, string(password), Share{Addr: ratelimit.Network(addr)})
	if err != nil {
		return "", err
	}
	if err := l.people.announce(ctx, t.Account, addr, "password.reset"); err != nil {
		return "", err
	}
	a, err := l.cfg.Store.Reset(ctx, h, hash, complexPassword(password), l.now())
	if errors.Is(err, ErrUnknown) {
		return "", badCode()
	}
	if err != nil {
		return "", fmt.Errorf("reset password: %w", err)
	}
	if device, err = l.in.visited(ctx, a.ID, from); err != nil {
		return "", err
	}
	// The reader of the letter is not the one who guessed.
	here, err := l.in.laneOf(ctx, a.ID, a.Email, From{addr, device})
	if err != nil {
		return "", err
	}
	for _, key := range []Hash{loginKey(a.Email), here.key, inside(a).key, laneKey("login "+a.Email, "near "+ratelimit.Network(addr))} {
		if err := l.in.cfg.Attempts.Forgive(ctx, key); err != nil {
			return "", fmt.Errorf("clear failures: %w", err)
		}
	}
	if err := l.forgiveMail(ctx, a.Email); err != nil {
		return "", err
	}
	return device, l.in.tellPasswordChanged(ctx, a)
}

// AskEmail sends a letter to a new e-mail of a signed-in person's account; the same answer whether it is taken or not. Errors: Invalid;
// Unauthenticated "wrong_password"; Exhausted.
func (l *Letters) AskEmail(ctx context.Context, id ID, email string, password logging.Secret, addr string) error {
	email, err := normalEmail(email)
	if err != nil {
		return err
	}
	a, err := l.in.Confirm(ctx, id, password, addr)
	if err != nil {
		return err
	}
	if email == a.Email {
		return errs.New(errs.Invalid, "the account already has this e-mail")
	}
	if err := l.mayMail(ctx, email, addr); err != nil {
		return err
	}
	if err := l.people.announce(ctx, id, addr, "email.ask"); err != nil {
		return err
	}
	return l.cfg.Mail.Post(ctx, mail.Mail{Kind: mailEmail, To: email, Account: string(id)})
}

// ChangeEmail proves a new e-mail with the code of a letter. The old one is told. Errors: Unauthenticated "code_refused"; Conflict; Exhausted.
func (l *Letters) ChangeEmail(ctx context.Context, code logging.Secret, addr string) error {
	if wait := l.cfg.ByAddr.Allow(addr); wait > 0 {
		return slowDown(wait)
	}
	h, now := ticketHash(code), l.now()
	t, err := l.cfg.Store.Ticket(ctx, h, ForEmail, now)
	if errors.Is(err, ErrUnknown) {
		return badCode()
	}
	if err != nil {
		return fmt.Errorf("read code: %w", err)
	}
	if err := l.people.announce(ctx, t.Account, addr, "email.change"); err != nil {
		return err
	}
	old, err := l.cfg.Store.ChangeEmail(ctx, h, now)
	switch {
	case errors.Is(err, ErrUnknown):
		return badCode()
	case errors.Is(err, ErrTaken):
		return errs.Coded(errs.Conflict, "email_taken", "another account already has this e-mail")
	case err != nil:
		return fmt.Errorf("change e-mail: %w", err)
	}
	if err := l.forgiveMail(ctx, t.Email); err != nil {
		return err
	}
	return l.cfg.Mail.Post(ctx, mail.Mail{Kind: mailEmailChanged, To: old.Email, Account: string(old.ID), Data: map[string]string{"new": t.Email}})
}

// Compose writes the letters: it is the mail.Composer. What a letter says is decided here, long after its asker got an answer.
func (l *Letters) Compose(ctx context.Context, m mail.Mail) (mail.Letter, bool, error) {
	switch m.Kind {
	case mailSignup:
		return l.composeSignup(ctx, m)
	case mailReset:
		a, _, err := l.in.cfg.Store.ByEmail(ctx, m.To)
		if errors.Is(err, ErrUnknown) {
			return mail.Letter{Template: "reset-unknown"}, true, nil
		}
		if err != nil {
			return mail.Letter{}, false, err
		}
		if a.Disabled || a.Role != auth.Owner { // an operator's password is another operator's business
			return l.letter(ctx, a, mail.Letter{Template: "reset-closed"})
		}
		return l.withTicket(ctx, a, mail.Letter{Template: "reset"}, "reset", Ticket{Purpose: ForReset, Account: a.ID, Email: a.Email, Expires: l.now().Add(l.cfg.ResetTTL)})
	case mailEmail:
		a, _, err := l.in.cfg.Store.ByID(ctx, ID(m.Account))
		if errors.Is(err, ErrUnknown) || err == nil && (a.Disabled || a.Email == m.To) {
			return mail.Letter{}, false, nil
		}
		if err != nil {
			return mail.Letter{}, false, err
		}
		switch _, _, err := l.in.cfg.Store.ByEmail(ctx, m.To); {
		case err == nil:
			return mail.Letter{Template: "email-taken"}, true, nil
		case !errors.Is(err, ErrUnknown):
			return mail.Letter{}, false, err
		}
		return l.withTicket(ctx, a, mail.Letter{Template: "email-confirm", Other: a.Email}, "email", Ticket{Purpose: ForEmail, Account: a.ID, Email: m.To, Expires: l.now().Add(l.cfg.EmailTTL)})
	case mailPasswordChanged, mailPasskeyAdded, mailEmailChanged:
		a, _, err := l.in.cfg.Store.ByID(ctx, ID(m.Account))
		if errors.Is(err, ErrUnknown) {
			return mail.Letter{}, false, nil
		}
		if err != nil {
			return mail.Letter{}, false, err
		}
		switch m.Kind {
		case mailEmailChanged:
			return l.letter(ctx, a, mail.Letter{Template: "email-changed", Other: m.Data["new"]})
		case mailPasskeyAdded:
			return l.letter(ctx, a, mail.Letter{Template: "passkey-added", Other: m.Data["name"], Link: l.link("forgot", "")})
		}
		return l.letter(ctx, a, mail.Letter{Template: "password-changed", Link: l.link("forgot", "")})
	}
	return mail.Letter{}, false, fmt.Errorf("mail kind %.40q: not one about accounts", m.Kind)
}

func (l *Letters) composeSignup(ctx context.Context, m mail.Mail) (mail.Letter, bool, error) {
	a, _, err := l.in.cfg.Store.ByEmail(ctx, m.To)
	if err == nil {
		return l.letter(ctx, a, mail.Letter{Template: "taken", Link: l.link("forgot", "")})
	}
	if !errors.Is(err, ErrUnknown) {
		return mail.Letter{}, false, err
	}
	var s Signup
	if id := m.Data["signup"]; id != "" {
		s, _, err = l.cfg.Store.Signup(ctx, ID(id), l.now())
	} else {
		s, err = l.cfg.Store.NewestSignup(ctx, m.To, l.now())
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
	err = l.cfg.Store.PutTicket(ctx, Ticket{Hash: h, Purpose: ForVerify, Signup: s.ID, Email: s.Email, Expires: s.Expires})
	if errors.Is(err, ErrUnknown) {
		return mail.Letter{}, false, nil
	}
	if err != nil {
		return mail.Letter{}, false, err
	}
	return mail.Letter{Template: "verify", Lang: s.Profile.Lang, Account: string(s.ID), Link: l.link("verify", code), Code: code, Expires: s.Expires}, true, nil
}

// letter adds what is known of the reader.
func (l *Letters) letter(ctx context.Context, a Account, m mail.Letter) (mail.Letter, bool, error) {
	p, err := l.people.store.Profile(ctx, a.ID)
	if errors.Is(err, ErrUnknown) {
		return mail.Letter{}, false, nil
	}
	m.Lang, m.Account = p.Lang, string(a.ID)
	return m, err == nil, err
}

// withTicket adds a link and a code that are good once.
func (l *Letters) withTicket(ctx context.Context, a Account, m mail.Letter, page string, t Ticket) (mail.Letter, bool, error) {
	m, say, err := l.letter(ctx, a, m)
	if err != nil || !say {
		return m, say, err
	}
	m.Code, t.Hash = newTicket()
	m.Link, m.Expires = l.link(page, m.Code), t.Expires
	err = l.cfg.Store.PutTicket(ctx, t)
	if errors.Is(err, ErrUnknown) {
		return mail.Letter{}, false, nil
	}
	return m, err == nil, err
}
