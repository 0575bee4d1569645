// Package owner holds the rules about whose a robot is (design section 6): claiming by the code a robot shows, transfer, release, wipe, and
// what follows for its owner's rights and consent.
//
// A robot has at most one owner. It gets one when a person types the code that it shows, when it proves a user's session itself (Associate),
// or when its owner offers it to a person who accepts. It loses its owner when the owner lets go, when its user data are wiped, when it
// gives the owner up itself, or when an operator takes it away. Other people's robots answer as unknown ones.
//
//	owner.go     types, what the rules need, ownership            consent.go   may events be kept
//	code.go      codes, and claiming with them                    personal.go  export and erasure of a person's data
//	transfer.go  handing a robot on                               letters.go   letters to people who get or lose a robot
//	ownerpg/ storage   ownerapi/ transports
package owner

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kennel/cloud/identity/consent"
	"kennel/cloud/identity/mail"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// How a robot came to its owner.
const (
	HowCode      = "code"      // a person typed the code that it showed
	HowAssociate = "associate" // it proved the owner's session, over BLE or the SDK
	HowWiped     = "wiped"     // the same after its user data were wiped: an earlier owner loses it
	HowTransfer  = "transfer"  // the earlier owner handed it on
)

// Why an ownership ended.
const (
	EndReleased      = "released"      // by the owner
	EndTransferred   = "transferred"   // to a person who accepted
	EndWiped         = "wiped"         // with the user data
	EndDisassociated = "disassociated" // by the robot
	EndOperator      = "operator"      // by an operator
	EndErased        = "erased"        // with the owner's account
)

// Bounds; the code's are those of design section 6, the others ours.
const (
	CodeLife      = 10 * time.Minute
	MaxTries      = 5 // wrong ones of a code, from all accounts together
	TransferLife  = 7 * 24 * time.Hour
	MaxName       = 40 // characters
	MaxHow        = 32 // bytes
	MaxHistory    = 1000
	attemptWindow = time.Hour
	maxAttempts   = 20 // codes that an account may try in a window, in every process together
)

// Sentinels of a Store.
var (
	ErrNone  = errors.New("owner: none")
	ErrOwned = errors.New("owner: another one")
)

// Tenure is one account's ownership of a robot.
type Tenure struct {
	ID      int64
	Thing   thing.ID
	Account string // "" once the person was erased
	How     string
	Since   time.Time
	Until   *time.Time // nil: it lasts
	Ended   string     // why; "" while it lasts
	Name    string     // what the owner calls it; "" once it ended
}

// Stretch returns the time of the ownership, until now if it lasts.
func (t Tenure) Stretch(now time.Time) thing.Stretch {
	if t.Until != nil {
		now = *t.Until
	}
	return thing.Stretch{Thing: t.Thing, Since: t.Since, Until: now}
}

// Code is a code as a store keeps it.
type Code struct {
	Thing   thing.ID
	Locator string
	Hash    [sha256.Size]byte
}

// Standing is the state of a thing's code.
type Standing struct {
	Hash    [sha256.Size]byte
	Expires time.Duration // from now; not above 0: it expired
	Tries   int           // wrong ones, and the right one
	Used    bool          // it led to an owner
}

// Good reports whether the code may still be typed.
func (s Standing) Good() bool { return s.Expires > 0 && s.Tries < MaxTries && !s.Used }

// Try is one attempt to name a code.
type Try struct {
	Account string
	Thing   thing.ID // "": the one that the locator names
	Code    Code     // but Thing
}

// Tried is the result of an attempt. Attempts counts the attempts of the account in this window, this one included.
type Tried struct {
	Attempts int
	Window   time.Duration // until they are forgotten
	Things   []TriedThing  // whose good code was counted as tried; none beyond maxAttempts
}

// TriedThing is one robot whose code was tried.
type TriedThing struct {
	Thing thing.ID
	Right bool
	Tries int
}

// Offer is a robot that its owner offers to another person.
type Offer struct {
	ID      string // a UUID
	Thing   thing.ID
	Expires time.Time
	Mine    bool // the asker is its owner; else it is offered to the asker
}

// Store keeps who owns what. Like the other stores it goes by the database's clock, so that processes agree, and is safe for concurrent use.
type Store interface {
	// Current returns the lasting tenure; ErrNone.
	Current(ctx context.Context, id thing.ID) (Tenure, error)
	// Robots returns what an account owns, by thing.
	Robots(ctx context.Context, account string) ([]Tenure, error)
	// Tenures returns all of an account, ended ones too.
	Tenures(ctx context.Context, account string) ([]Tenure, error)
	// History returns the tenures of a thing, newest first.
	History(ctx context.Context, id thing.ID, limit int) ([]Tenure, error)
	// Begin makes an account the owner and forgets the thing's code. If it is the owner already nothing changes. Another's lasting tenure
	// ends first, as EndWiped, if replace is set, and is returned as before; else ErrOwned.
	Begin(ctx context.Context, id thing.ID, account, how string, replace bool) (t, before Tenure, err error)
	// End ends the lasting tenure, if it is account's ("": any account's), and forgets the thing's code; ErrNone.
	End(ctx context.Context, id thing.ID, account, why string) (Tenure, error)
	// Wiped is End for the thing's current owner, once for each key: the last key again changes nothing. ok: a tenure has ended.
	Wiped(ctx context.Context, id thing.ID, key string) (t Tenure, ok bool, err error)
	// Hold returns whose robots are, but not what their owners allow. Until Release is called, a change of one of these owners waits, and so does
	// the word that an owner's settings changed.
	Hold(ctx context.Context, ids []thing.ID) (consent.Hold, error)
	// Rename sets the name of what an account owns; ErrNone.
	Rename(ctx context.Context, id thing.ID, account, name string) (Tenure, error)
}

// Codes keeps the codes that robots show.
type Codes interface {
	// PutCode keeps the one code of a thing, good for life, and returns its state; an existing code stays as it is. ErrOwned if
	// the thing has an owner.
	PutCode(ctx context.Context, c Code, life time.Duration) (Standing, error)
	// CodeStanding returns the state of the thing's code; ErrNone.
	CodeStanding(ctx context.Context, id thing.ID) (Standing, error)
	// TryCode counts an attempt of the account and, up to max of them in a window, a try of every good code that is meant, before it says
	// whether it was right: any number at once gain nothing. What it writes, and so the time it takes, is the same whatever it finds.
	TryCode(ctx context.Context, t Try, window time.Duration, max int) (Tried, error)
	// UseCode makes the account the owner if the thing's code is still this one, not expired, and not used by another account; it was counted
	// by TryCode before, so that MaxTries tries are not yet too many. ErrNone; ErrOwned if the thing has an owner.
	UseCode(ctx context.Context, c Code, account string) (Tenure, error)
}

// Transfers keeps the offers of robots to other people.
type Transfers interface {
	// PutOffer keeps the one offer of a thing that the account owns; ErrNone.
	PutOffer(ctx context.Context, id thing.ID, account string, recipient []byte, life time.Duration) (Offer, error)
	// Offers returns the offers of an account's things, and those to any of the recipients.
	Offers(ctx context.Context, account string, recipients [][]byte) ([]Offer, error)
	// AcceptOffer ends the tenure of an offer to one of the recipients, unsettled, and begins the account's. Accepted again by who owns the
	// thing by this offer it changes nothing. before is zero then. ErrNone.
	AcceptOffer(ctx context.Context, id, account string, recipients [][]byte) (began, before Tenure, err error)
	// DropOffer forgets an offer of the account or to one of the recipients; ErrNone.
	DropOffer(ctx context.Context, id, account string, recipients [][]byte) error
}

// Remains keeps what a change of owner leaves to do.
type Remains interface {
	// Unsettled returns tenures whose end other domains do not know, oldest first: of an account, or of everybody ("").
	Unsettled(ctx context.Context, account string, limit int) ([]Tenure, error)
	// Settle marks one as known.
	Settle(ctx context.Context, tenure int64) error
	// TellNews hands what is to be told to tell, oldest first, at most max of it, and forgets what tell returned nil for. What another process is
	// telling is left out. It returns the first error.
	TellNews(ctx context.Context, max int, tell func(ctx context.Context, n News) error) error
	// Erase takes the account out of every row and forgets its attempts, and offers to the recipients. Its tenures have ended.
	Erase(ctx context.Context, account string, recipients [][]byte) error
	// Prune forgets codes, offers and attempts that are over.
	Prune(ctx context.Context, window time.Duration) error
}

// Step is one attempt to change whose a robot is, for its doctor.
type Step struct {
	Thing  thing.ID
	At     time.Time
	Step   string
	OK     bool
	Code   string // why not
	Peer   string
	Detail string
}

// The steps that this package records.
const (
	StepCode  = "claim code" // a code was asked for
	StepClaim = "claim"      // a code was typed
	StepOwner = "owner"      // the owner changed in another way
)

// Limiter paces attempts by key. Allow takes one and returns 0, or how long to wait.
type Limiter interface {
	Allow(key string) time.Duration
}

// Config holds what Service is made of. All but Ended, Email, Mail, Reader and Now are required.
type Config struct {
	Store     Store
	Codes     Codes
	Transfers Transfers
	Remains   Remains
	// Audit writes one line about what the caller in ctx is about to do; what cannot be written down is not done. nil: nothing is written.
	Audit func(ctx context.Context, action, object, detail string) error
	// Confirm checks the password of an account that offers a robot. Errors: Unauthenticated "wrong_password"; Exhausted.
	Confirm func(ctx context.Context, account string, by Proof) error
	// Secret keys the hashes of codes and of e-mails (infra/secretbox, label "owner"): the same in every process, at least 32 bytes.
	Secret []byte
	// ByThing paces the codes that robots ask for; ByAddr the codes that people try.
	ByThing, ByAddr Limiter
	// Docs has the owners' settings.
	Docs interface {
		OfAccounts(ctx context.Context, name jdocs.Name, accounts []string) (map[string]string, error)
	}
	// Record keeps a step for the doctor; it must not fail the request.
	Record func(ctx context.Context, s Step)
	// Ended has other domains drop what the tenure gave: access tokens, apps. It is called until it returns nil once, also after the death
	// of this process, perhaps when the robot has another owner already: it must only touch what is t.Account's. Ends that the token service
	// makes itself (EndDisassociated, and EndWiped by HowWiped) are not told.
	Ended func(ctx context.Context, t Tenure) error
	// Email returns the e-mail of an account that is about to be erased; NotFound.
	Email func(ctx context.Context, account string) (string, error)
	// Mail takes the letters to who gets or loses a robot, Reader says to which address and in which language; NotFound. nil: there are none.
	Mail interface {
		Post(ctx context.Context, m mail.Mail) error
	}
	Reader    func(ctx context.Context, account string) (email, lang string, err error)
	ForgotURL string // where people ask for a new password, for the letters
	Log       *slog.Logger
	Now       func() time.Time // nil: time.Now
}

// Service is the rules. Safe for concurrent use.
type Service struct {
	Config
	Whose
	Files consent.Ask // Hold for files, few at once
}

// filesAtOnce is how many files may be stored at once under Holds, each with one of the pool's connections.
const filesAtOnce = 4

// New checks cfg and returns the service.
func New(cfg Config) (*Service, error) {
	switch {
	case cfg.Store == nil || cfg.Codes == nil || cfg.Transfers == nil || cfg.Remains == nil || cfg.Docs == nil || cfg.Record == nil || cfg.Confirm == nil || cfg.ByThing == nil || cfg.ByAddr == nil || cfg.Log == nil:
		return nil, errors.New("owner: stores, documents, recorder, confirmation, limits and log are required")
	case len(cfg.Secret) < sha256.Size:
		return nil, fmt.Errorf("owner: secret of %d bytes: want at least %d", len(cfg.Secret), sha256.Size)
	}
	if cfg.Ended == nil {
		cfg.Ended = func(context.Context, Tenure) error { return nil }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Service{Config: cfg, Whose: Whose{cfg.Store}}
	s.Files = consent.AtOnce(s.Hold, filesAtOnce)
	return s, nil
}

// keyed returns a hash that only holders of the secret can compute.
func (s *Service) keyed(parts ...string) (out [sha256.Size]byte) {
	h := hmac.New(sha256.New, s.Secret)
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(p), p) // a hash takes everything
	}
	return [sha256.Size]byte(h.Sum(nil))
}

const codeNotYours = "not_yours"

// none is the answer for a robot that is not the caller's, has no owner, or does not exist.
func none(id thing.ID) error {
	return errs.Coded(errs.NotFound, codeNotYours, "you have no robot %s", id)
}

// Robots returns what an account owns, by thing.
func (s *Service) Robots(ctx context.Context, account string) ([]Tenure, error) {
	out, err := s.Store.Robots(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("robots of an owner: %w", err)
	}
	return out, nil
}

// History returns who owned a robot when, newest first; limit 1 to MaxHistory.
func (s *Service) History(ctx context.Context, id thing.ID, limit int) ([]Tenure, error) {
	if limit < 1 || limit > MaxHistory {
		return nil, errs.New(errs.Invalid, "limit %d: want 1 to %d", limit, MaxHistory)
	}
	out, err := s.Store.History(ctx, id, limit)
	if err != nil {
		return nil, fmt.Errorf("owners of %s: %w", id, err)
	}
	return out, nil
}

// Associate makes an account the owner of a robot that has proved its session (VEC-TOK-06). how is a word; HowWiped says that the robot lost
// its user data before, which ends an earlier ownership. The owner's own robot stays as it is. Denied "wrong_account" if it is another's.
func (s *Service) Associate(ctx context.Context, id thing.ID, account, how string) error {
	if err := checkAccount(account); err != nil {
		return err
	}
	if how == "" || len(how) > MaxHow || strings.ContainsFunc(how, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return errs.New(errs.Invalid, "how %.40q: want a word of at most %d lower-case letters, such as %s", how, MaxHow, HowAssociate)
	}
	_, before, err := s.Store.Begin(ctx, id, account, how, how == HowWiped)
	switch {
	case errors.Is(err, ErrOwned):
		s.step(ctx, id, StepOwner, "wrong_account", "", "an account that is not the owner's proved its session: the owner releases the robot, or its user data are wiped")
		return errs.Coded(errs.Denied, "wrong_account", "%s has another owner", id)
	case err != nil:
		return fmt.Errorf("associate %s: %w", id, err)
	}
	if before.ID != 0 {
		s.ended(ctx, before)
	}
	s.step(ctx, id, StepOwner, "", "", "has an owner: "+how)
	return nil
}

// Disassociate leaves a robot without an owner at its own wish. One that has none is no error.
func (s *Service) Disassociate(ctx context.Context, id thing.ID) error {
	t, err := s.Store.End(ctx, id, "", EndDisassociated)
	switch {
	case errors.Is(err, ErrNone):
		return nil
	case err != nil:
		return fmt.Errorf("disassociate %s: %w", id, err)
	}
	s.ended(ctx, t)
	return nil
}

// Wiped leaves a robot without an owner because its user data are gone (VEC-TOK-10). key names the wipe: told again, it does not end what
// began after it.
func (s *Service) Wiped(ctx context.Context, id thing.ID, key string) error {
	if key == "" {
		return errs.New(errs.Invalid, "wipe of %s: no key", id)
	}
	t, ended, err := s.Store.Wiped(ctx, id, key)
	if err != nil {
		return fmt.Errorf("wipe of %s: %w", id, err)
	}
	if ended {
		s.ended(ctx, t)
	}
	return nil
}

// Release lets go of the caller's own robot. Another's, or one that does not exist, is NotFound.
func (s *Service) Release(ctx context.Context, account string, id thing.ID) error {
	if err := s.note(ctx, "owner.let_go", string(id)); err != nil {
		return err
	}
	return s.end(ctx, id, account, EndReleased)
}

func (s *Service) note(ctx context.Context, action, object string) error {
	if s.Audit == nil {
		return nil
	}
	return s.Audit(ctx, action, object, "")
}

// TakeAway releases an account's robot; the caller has written down who does so and why. NotFound "no_owner" if it is not that account's.
func (s *Service) TakeAway(ctx context.Context, account string, id thing.ID) error {
	err := s.end(ctx, id, account, EndOperator)
	if errs.CodeOf(err) == codeNotYours {
		return errs.Coded(errs.NotFound, "no_owner", "%s has no owner, or another one by now", id)
	}
	return err
}

func (s *Service) end(ctx context.Context, id thing.ID, account, why string) error {
	if account == "" { // would be anyone's
		return none(id)
	}
	t, err := s.Store.End(ctx, id, account, why)
	switch {
	case errors.Is(err, ErrNone):
		return none(id)
	case err != nil:
		return fmt.Errorf("release %s: %w", id, err)
	}
	s.ended(ctx, t)
	return nil
}

// Rename gives the caller's own robot a name; "" takes it away. NotFound as Release.
func (s *Service) Rename(ctx context.Context, account string, id thing.ID, name string) (Tenure, error) {
	name = strings.TrimSpace(name)
	if !utf8.ValidString(name) || utf8.RuneCountInString(name) > MaxName || strings.ContainsFunc(name, hidden) {
		return Tenure{}, errs.Coded(errs.Invalid, "name_malformed", "name %.80q: want at most %d printable characters", name, MaxName)
	}
	if err := s.note(ctx, "owner.rename", string(id)); err != nil {
		return Tenure{}, err
	}
	t, err := s.Store.Rename(ctx, id, account, name)
	switch {
	case errors.Is(err, ErrNone):
		return Tenure{}, none(id)
	case err != nil:
		return Tenure{}, fmt.Errorf("rename %s: %w", id, err)
	}
	return t, nil
}

// hidden: characters that are invisible, or that change how others are read. The joiner is part of many emoji.
func hidden(r rune) bool { return !unicode.IsGraphic(r) && r != '\u200d' }

// ended tells the doctor and the other domains. What fails is done again by Run: the ownership is over whatever happens here.
func (s *Service) ended(ctx context.Context, t Tenure) {
	s.step(ctx, t.Thing, StepOwner, "", "", "has no owner any more: "+t.Ended)
	if err := s.settle(ctx, t); err != nil {
		s.Log.WarnContext(ctx, "end of ownership not announced; retrying", logging.Thing, t.Thing, "tenure", t.ID, logging.Err, err)
	}
}

func (s *Service) settle(ctx context.Context, t Tenure) error {
	if err := s.Ended(ctx, t); err != nil {
		return fmt.Errorf("end of %s's ownership: %w", t.Thing, err)
	}
	return s.Remains.Settle(ctx, t.ID)
}

func (s *Service) step(ctx context.Context, id thing.ID, name, code, peer, detail string) {
	s.Record(ctx, Step{Thing: id, At: s.Now(), Step: name, OK: code == "", Code: code, Peer: peer, Detail: detail})
}

const (
	settleEvery = time.Second
	settleChunk = 100
	pruneEvery  = 10 * time.Minute
)

// Run tells the ends that are not told yet, and the owners by letter, each second, and forgets what is over, until ctx ends; then it returns nil. n processes may run
// it at once.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	var pruned time.Time
	for {
		if err := s.round(ctx, &pruned); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "ownership round failed; retrying", logging.Err, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *Service) round(ctx context.Context, pruned *time.Time) error {
	open, err := s.Remains.Unsettled(ctx, "", settleChunk)
	for _, t := range open {
		err = cmp.Or(err, s.settle(ctx, t)) // each is tried, the first error is said
	}
	err = cmp.Or(err, s.tellNews(ctx))
	if err == nil && s.Now().Sub(*pruned) > pruneEvery {
		if err = s.Remains.Prune(ctx, attemptWindow); err == nil {
			*pruned = s.Now()
		}
	}
	return err
}

func checkAccount(account string) error {
	if account == "" || utf8.RuneCountInString(account) > jdocs.MaxID || !utf8.ValidString(account) || strings.ContainsRune(account, 0) {
		return errs.New(errs.Invalid, "account %.80q: want 1 to %d characters of text", account, jdocs.MaxID)
	}
	return nil
}
