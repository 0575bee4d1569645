package account

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/ratelimit"
)

// BySecond opens a session for a password and a code of an authenticator app.
const BySecond = "password+code"

const (
	totpPeriod    = 30 // seconds
	recoveryCodes = 10
	maxSecond     = 64 // bytes of a code as it is typed
)

// Lack says which proof a session needs before it is good for anything else.
type Lack string

// The lacks.
const (
	LacksNothing Lack = ""
	LacksCode    Lack = "code"    // of the authenticator app
	LacksPasskey Lack = "passkey" // a second factor is required, and the account's are passkeys
	LacksSecond  Lack = "second"  // a second factor is required, and the account has none
)

// Lacks returns what an operator's session lacks. A passkey and an identity provider's word are enough; so is a session that was issued to a program.
func (s *SignIn) Lacks(a Account, x Session) Lack {
	switch {
	case !a.Role.Staff() || x.Method != ByPassword:
		return LacksNothing
	case a.HasApp:
		return LacksCode
	case !s.cfg.RequireSecond:
		return LacksNothing
	case a.HasPasskey:
		return LacksPasskey
	}
	return LacksSecond
}

// App is an authenticator app as it is kept.
type App struct {
	Secret []byte    // sealed
	Step   int64     // of the last code that was used
	Since  time.Time // zero: its first code is awaited
	Left   int       // recovery codes
}

// SecondStore keeps second factors. Its methods are safe for concurrent use.
type SecondStore interface {
	// App returns an account's; ErrUnknown.
	App(ctx context.Context, id ID) (App, error)
	// PutApp keeps a secret whose first code is awaited, in place of such a one; ErrTaken if a code was given already.
	PutApp(ctx context.Context, id ID, secret []byte) error
	// ConfirmApp makes the awaited app the second factor, with recovery codes; ErrUnknown if none is awaited.
	ConfirmApp(ctx context.Context, id ID, step int64, recovery []Hash, at time.Time) error
	// UseStep notes the step of a code; ErrUnknown if it, or a later one, was used.
	UseStep(ctx context.Context, id ID, step int64) error
	// UseRecovery forgets a recovery code; ErrUnknown.
	UseRecovery(ctx context.Context, id ID, code Hash) error
	// RemoveApp forgets app and codes; ErrUnknown.
	RemoveApp(ctx context.Context, id ID) error
	// Raise makes a session one of another method.
	Raise(ctx context.Context, token Hash, method string) error
}

// Sealer encrypts secrets for the database.
type Sealer interface {
	Seal(plain, about []byte) []byte
	Open(sealed, about []byte) ([]byte, error)
}

// Second is the rules of operators' second factors by an authenticator app (TOTP, RFC 6238). Safe for concurrent use.
type Second struct {
	in     *SignIn
	store  SecondStore
	sealer Sealer
	site   string
}

// NewSecond returns the rules; site is how apps call this cloud.
func NewSecond(in *SignIn, store SecondStore, sealer Sealer, site string) *Second {
	return &Second{in, store, sealer, site}
}

// SecondState describes a person's own second factor to the person.
type SecondState struct {
	App      bool
	Awaited  bool // its first code is
	Since    time.Time
	Left     int  // recovery codes
	Required bool // operators must have a second factor
}

// State returns it.
func (s *Second) State(ctx context.Context, id ID) (SecondState, error) {
	a, err := s.store.App(ctx, id)
	if errors.Is(err, ErrUnknown) {
		err = nil
	} else if err != nil {
		return SecondState{}, fmt.Errorf("read second factor: %w", err)
	} else {
		return SecondState{!a.Since.IsZero(), a.Since.IsZero(), a.Since, a.Left, s.in.cfg.RequireSecond}, nil
	}
	return SecondState{Required: s.in.cfg.RequireSecond}, err
}

// Begin makes the secret of an app for an operator who knows the password, and returns the address that the app reads it from. Errors: Denied for an
// owner; Unauthenticated "wrong_password"; Conflict; Exhausted.
func (s *Second) Begin(ctx context.Context, id ID, password logging.Secret, addr string) (logging.Secret, error) {
	a, err := s.in.Confirm(ctx, id, password, addr)
	if err != nil {
		return "", err
	}
	if !a.Role.Staff() {
		return "", errs.New(errs.Denied, "authenticator apps are for operators; add a passkey")
	}
	k, err := totp.Generate(totp.GenerateOpts{Issuer: s.site, AccountName: a.Email, Period: totpPeriod})
	if err != nil {
		return "", fmt.Errorf("second factor: %w", err)
	}
	err = s.store.PutApp(ctx, id, s.sealer.Seal([]byte(k.URL()), []byte(id)))
	if errors.Is(err, ErrTaken) {
		return "", errs.Coded(errs.Conflict, "second_set", "an authenticator app already exists; remove it first")
	}
	if err != nil {
		return "", fmt.Errorf("store second factor: %w", err)
	}
	return logging.Secret(k.URL()), nil
}

// Awaited returns the address of the app whose first code is awaited; NotFound.
func (s *Second) Awaited(ctx context.Context, id ID) (*otp.Key, error) {
	a, err := s.store.App(ctx, id)
	if err == nil && !a.Since.IsZero() {
		err = ErrUnknown
	}
	if errors.Is(err, ErrUnknown) {
		return nil, errs.Coded(errs.NotFound, "second_not_begun", "no authenticator app is being added; start again")
	}
	if err != nil {
		return nil, fmt.Errorf("read second factor: %w", err)
	}
	return s.key(id, a)
}

func (s *Second) key(id ID, a App) (*otp.Key, error) {
	text, err := s.sealer.Open(a.Secret, []byte(id))
	if err != nil {
		return nil, errs.New(errs.Corrupt, "second factor: %w", err)
	}
	return otp.NewKeyFromURL(string(text))
}

// step returns the step of a right code, within one before or after now; 0 for a wrong one.
func (s *Second) step(k *otp.Key, code string) (int64, error) {
	now := s.in.cfg.Now()
	for _, d := range []int64{0, -1, 1} {
		at := now.Add(time.Duration(d*totpPeriod) * time.Second)
		ok, err := totp.ValidateCustom(code, k.Secret(), at, totp.ValidateOpts{Period: totpPeriod, Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
		if err != nil && !errors.Is(err, otp.ErrValidateInputInvalidLength) {
			return 0, fmt.Errorf("second factor: %w", err)
		}
		if ok {
			return at.Unix() / totpPeriod, nil
		}
	}
	return 0, nil
}

func wrongCode() error {
	return errs.Coded(errs.Unauthenticated, "code_wrong", "this code is wrong, expired or already used; wait for the next one and check the clock of your phone")
}

// plain is a code as people type it.
func plain(code logging.Secret) string {
	code = code[:min(len(code), maxSecond)]
	return strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(string(code)))
}

// Confirm takes the first code of the app that Begin made a secret for. It returns the recovery codes, which are shown only once, and the session no
// longer lacks anything. Errors: Unauthenticated "code_wrong"; NotFound; Exhausted.
func (s *Second) Confirm(ctx context.Context, token logging.Secret, code logging.Secret, addr string) ([]string, error) {
	a, x, err := s.in.Authenticate(ctx, token, addr)
	if err != nil {
		return nil, err
	}
	k, err := s.Awaited(ctx, a.ID)
	if err != nil {
		return nil, err
	}
	if err := s.pace(ctx, a, addr); err != nil {
		return nil, err
	}
	step, err := s.step(k, plain(code))
	if err != nil {
		return nil, err
	}
	if step == 0 {
		return nil, wrongCode()
	}
	shown, hashes := make([]string, recoveryCodes), make([]Hash, recoveryCodes)
	for i := range shown {
		c := oneTime()
		shown[i], hashes[i] = c.Reveal(), logging.Secret(plain(c)).Sum()
	}
	if err := s.in.announce(ctx, a, addr, "second.add", ""); err != nil {
		return nil, err
	}
	if err := s.store.ConfirmApp(ctx, a.ID, step, hashes, s.in.cfg.Now()); errors.Is(err, ErrUnknown) {
		return nil, errs.Coded(errs.NotFound, "second_not_begun", "no authenticator app is being added; start again")
	} else if err != nil {
		return nil, fmt.Errorf("store second factor: %w", err)
	}
	return shown, s.raise(ctx, token, x)
}

func (s *Second) raise(ctx context.Context, token logging.Secret, x Session) error {
	if x.Method != ByPassword {
		return nil
	}
	if err := s.store.Raise(ctx, token.Sum(), BySecond); err != nil {
		return fmt.Errorf("upgrade session: %w", err)
	}
	return nil
}

// pace counts one try of a code: who has the password and is a stranger shares a lane with all such.
func (s *Second) pace(ctx context.Context, a Account, addr string) error {
	near, err := s.in.cfg.Attempts.Near(ctx, a.ID, s.in.place(a.ID, addr), s.in.cfg.Now().Add(-NearMemory))
	if err != nil {
		return fmt.Errorf("read known places: %w", err)
	}
	l := lane{key: laneKey("login "+a.Email, "second")}
	if near {
		l.key = laneKey("login "+a.Email, "second near "+ratelimit.Network(addr))
	}
	return s.in.enter(ctx, l)
}

// Give takes the code of a session that lacks one, or a recovery code; the session is whole then. Errors: Unauthenticated "code_wrong"; Exhausted.
func (s *Second) Give(ctx context.Context, token logging.Secret, code logging.Secret, from From) (device logging.Secret, err error) {
	addr := from.Addr
	a, x, err := s.in.Authenticate(ctx, token, addr)
	if err != nil {
		return "", err
	}
	kept, err := s.store.App(ctx, a.ID)
	if errors.Is(err, ErrUnknown) || err == nil && kept.Since.IsZero() {
		return "", errs.Coded(errs.NotFound, "second_unset", "there is no authenticator app")
	}
	if err != nil {
		return "", fmt.Errorf("read second factor: %w", err)
	}
	if err := s.pace(ctx, a, addr); err != nil {
		return "", err
	}
	how, err := s.use(ctx, a, kept, plain(code))
	if err != nil {
		if errs.CodeOf(err) == "code_wrong" {
			if err := s.in.audit(ctx, a, addr, "login.refused", "second factor"); err != nil {
				return "", err
			}
		}
		return "", err
	}
	for _, key := range []string{"second", "second near " + ratelimit.Network(addr)} {
		if err := s.in.cfg.Attempts.Forgive(ctx, laneKey("login "+a.Email, key)); err != nil {
			return "", fmt.Errorf("clear failures: %w", err)
		}
	}
	if device, err = s.in.visited(ctx, a.ID, from); err != nil {
		return "", err
	}
	if err := s.in.audit(ctx, a, addr, "login", how); err != nil {
		return "", err
	}
	return device, s.raise(ctx, token, x)
}

// use spends a code, and says which kind it was.
func (s *Second) use(ctx context.Context, a Account, kept App, code string) (how string, err error) {
	if len(code) != 6 {
		err := s.store.UseRecovery(ctx, a.ID, logging.Secret(code).Sum())
		if errors.Is(err, ErrUnknown) {
			err = wrongCode()
		}
		return "recovery code", err
	}
	k, err := s.key(a.ID, kept)
	if err != nil {
		return "", err
	}
	step, err := s.step(k, code)
	if err != nil {
		return "", err
	}
	if step != 0 {
		err = s.store.UseStep(ctx, a.ID, step)
	}
	if step == 0 || errors.Is(err, ErrUnknown) {
		err = wrongCode()
	}
	return BySecond, err
}

// Remove forgets the app of an operator who knows the password. Errors: Unauthenticated "wrong_password"; NotFound; Exhausted.
func (s *Second) Remove(ctx context.Context, id ID, password logging.Secret, addr string) error {
	a, err := s.in.Confirm(ctx, id, password, addr)
	if err != nil {
		return err
	}
	if err := s.in.announce(ctx, a, addr, "second.remove", ""); err != nil {
		return err
	}
	if err := s.store.RemoveApp(ctx, id); errors.Is(err, ErrUnknown) {
		return errs.Coded(errs.NotFound, "second_unset", "there is no authenticator app")
	} else if err != nil {
		return fmt.Errorf("remove second factor: %w", err)
	}
	return nil
}

// LoginWith is LoginFrom for a program that asks for the code first. Errors besides: Unauthenticated "second_factor" if a code is wanted and none was
// given, "code_wrong".
func (s *Second) LoginWith(ctx context.Context, email string, password, code logging.Secret, from From) (Login, error) {
	l, err := s.in.LoginFrom(ctx, email, password, from)
	if err != nil || s.in.Lacks(l.Account, Session{Method: ByPassword}) != LacksCode {
		return l, err
	}
	if code == "" {
		err = errs.Coded(errs.Unauthenticated, "second_factor", "password accepted; also enter the code of your authenticator app, or a recovery code")
	} else {
		l.Device, err = s.Give(ctx, l.Token, code, from)
	}
	if err != nil {
		return Login{}, errors.Join(err, s.in.Logout(ctx, l.Token))
	}
	return l, nil
}
