package tokens

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/edge/faultcode"
	"kennel/infra/api/tokenwire"
	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/infra/wake"
	"kennel/jdocs"
)

// Documents reads documents of the robot (jdocswire.Client).
type Documents interface {
	Read(ctx context.Context, items []jdocs.Item) ([]jdocs.ReadResult, error)
}

// Plate is the certificate of the robot's gateway (edge/agent/ownership/gatewaycert): an association gives it to the cloud.
type Plate interface {
	PEM() []byte
	NotePosted() error
}

// Config says whose tokens they are. All but Persistent, Now, OnUser, Doubt and Fault is required.
type Config struct {
	Root       *os.Root
	Thing      thing.ID
	Persistent string // tree of persistent data; "": robotfs.Persistent
	Ask        kitmqtt.Requester
	Docs       Documents
	Plate      Plate
	Log        *slog.Logger
	Now        func() time.Time // the time to believe; nil: time.Now
	// OnUser gets the robot's owner: from New, and whenever it changes; "" means no owner. It must not block.
	OnUser func(userID string)
	// Doubt is called when the cloud no longer accepts the access token: the robot may be another's. It must not block.
	Doubt func()
	// Fault is called if the token store cannot be used (851, VEC-TOK-08). It must not block.
	Fault func(faultcode.Code, error)
}

// Agent keeps the tokens. Safe for concurrent use; Run is called once at a time.
type Agent struct {
	cfg     Config
	jwtFile string
	wake    wake.Signal // of the refresher; one slot: "look again" is said once
	reread  wake.Signal // of the reader; one slot

	asking  sync.Mutex // one request that changes the access token at a time; before reading and mu
	reading sync.Mutex // one reading of the document at a time; before mu
	mu      sync.Mutex // everything below

	jwt    logging.Secret
	access Access // zero: none

	hashes    hashes
	version   uint64 // of the document that hashes is; 0: not read since the start
	added     uint64 // counts clients added here: a reading that began before does not know them
	strangers pace

	forced  time.Time // since when a refresh is demanded; zero: it is not
	pause   time.Duration
	next    time.Time // not before, after a failure
	refused bool      // the cloud no longer accepts this token: only an app's login gets another
	problem string
	code    string
	read    time.Time // when the document was last read
}

// The original's rhythm (peer facts, section 1).
const (
	refreshAhead = 3 * time.Hour
	idleLook     = 5 * time.Minute
	firstPause   = 10 * time.Second
	pauseFactor  = 1.5
	maxPause     = 2 * time.Minute
	forcedFor    = time.Hour
)

// askTime bounds one request when the caller's context does not; our own default.
const askTime = 30 * time.Second

// maxName is where the name of a client is cut, in characters (part of VEC-AUTH-10).
const maxName = 64

// New reads the stored tokens. A damaged store is emptied, with fault 851: the owner's app makes new tokens. Only a store that cannot be
// read or written is an error.
func New(cfg Config) (*Agent, error) {
	if cfg.Root == nil || cfg.Thing == "" || cfg.Ask == nil || cfg.Docs == nil || cfg.Plate == nil || cfg.Log == nil {
		return nil, errors.New("tokens: incomplete configuration")
	}
	if cfg.Persistent == "" {
		cfg.Persistent = robotfs.Persistent
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.OnUser == nil {
		cfg.OnUser = func(string) {}
	}
	if cfg.Doubt == nil {
		cfg.Doubt = func() {}
	}
	if cfg.Fault == nil {
		cfg.Fault = func(faultcode.Code, error) {}
	}
	a := &Agent{cfg: cfg, jwtFile: jwtFile(cfg.Persistent), wake: wake.New(), reread: wake.New(), pause: firstPause}
	for _, name := range []string{a.jwtFile, HashesFile} {
		if err := robotfs.CleanTemp(cfg.Root, path.Dir(name)); err != nil {
			return nil, a.fault(err)
		}
	}
	if err := a.loadJWT(); err != nil {
		return nil, a.fault(err)
	}
	var err error
	if a.hashes, err = readHashes(cfg.Root); err != nil {
		_ = a.fault(err)
		if err := remove(cfg.Root, HashesFile); err != nil {
			return nil, err
		}
	}
	cfg.OnUser(a.access.UserID)
	return a, nil
}

func (a *Agent) fault(err error) error {
	a.cfg.Log.Error("token store", "err", err)
	a.cfg.Fault(faultcode.CloudTokenStore, err)
	return faultcode.Wrap(faultcode.CloudTokenStore, fmt.Errorf("token store: %w", err))
}

func (a *Agent) loadJWT() error {
	s, access, err := readJWT(a.cfg.Root, a.jwtFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && access.UserID == "": // the original's way to say that the robot has no owner
		a.cfg.Log.Info("stored token without an owner deleted")
		return remove(a.cfg.Root, a.jwtFile)
	case err == nil && access.Thing != a.cfg.Thing:
		err = fmt.Errorf("%s is of %s: want %s", a.jwtFile, access.Thing, a.cfg.Thing)
	case err == nil:
		a.jwt, a.access = s, access
		return nil
	}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return err
	}
	_ = a.fault(err)
	return remove(a.cfg.Root, a.jwtFile)
}

// State is the state of the tokens, for doctor.
type State struct {
	UserID  string    `json:"user_id,omitempty"` // "": the robot has no owner
	TokenID string    `json:"token_id,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	Refresh time.Time `json:"refresh,omitzero"` // when it is due
	Refused bool      `json:"refused,omitempty"`
	Code    string    `json:"code,omitempty"` // of the last failure; "": the last request was answered
	Problem string    `json:"problem,omitempty"`
	Clients int       `json:"clients"`       // number of apps that may talk to the robot
	Read    time.Time `json:"read,omitzero"` // when the list of clients was last read from the cloud
}

// State returns the state of the tokens.
func (a *Agent) State() State {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := State{UserID: a.access.UserID, TokenID: a.access.TokenID, Expires: a.access.Expires, Refused: a.refused, Code: a.code, Problem: a.problem,
		Clients: len(a.hashes.Clients), Read: a.read}
	if a.jwt != "" {
		s.Refresh = a.access.Expires.Add(-refreshAhead)
	}
	return s
}

// User returns the robot's owner; "" if it has none.
func (a *Agent) User() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.access.UserID
}

// JWT returns the access token, which may have expired; false if there is none or the cloud no longer accepts it.
func (a *Agent) JWT() (logging.Secret, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.jwt, a.jwt != "" && !a.refused
}

// Clients returns the apps that may talk to the robot.
func (a *Agent) Clients() []Client {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]Client(nil), a.hashes.Clients...)
}

// store makes s the access token: on disk first.
func (a *Agent) store(s logging.Secret) error {
	access, err := ParseJWT(s)
	if err != nil {
		return errs.New(errs.Corrupt, "parse access token from the cloud: %w", err)
	}
	if access.Thing != a.cfg.Thing && access.UserID != "" {
		return errs.New(errs.Corrupt, "access token from the cloud is of %s: want %s", access.Thing, a.cfg.Thing)
	}
	if access.UserID == "" {
		return a.forget()
	}
	if err := writeJWT(a.cfg.Root, a.jwtFile, s); err != nil {
		return a.fault(err)
	}
	a.mu.Lock()
	changed := a.access.UserID != access.UserID
	a.jwt, a.access, a.refused, a.forced, a.next, a.pause, a.code, a.problem = s, access, false, time.Time{}, time.Time{}, firstPause, "", ""
	a.mu.Unlock()
	if changed {
		a.cfg.OnUser(access.UserID)
	}
	a.wake.Set()
	return nil
}

// forget deletes the access token.
func (a *Agent) forget() error {
	if err := remove(a.cfg.Root, a.jwtFile); err != nil {
		return a.fault(err)
	}
	a.mu.Lock()
	had := a.access.UserID != ""
	a.jwt, a.access, a.refused, a.forced, a.next, a.pause, a.code, a.problem = "", Access{}, false, time.Time{}, time.Time{}, firstPause, "", ""
	a.mu.Unlock()
	if had {
		a.cfg.OnUser("")
	}
	a.wake.Set()
	return nil
}

// ask carries one request and reads the answer.
func (a *Agent) ask(ctx context.Context, method string, req any) (tokenwire.Bundle, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return tokenwire.Bundle{}, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, askTime)
		defer cancel()
	}
	answer, err := a.cfg.Ask.Do(ctx, tokenwire.Service, method, body)
	if err != nil {
		return tokenwire.Bundle{}, fmt.Errorf("%s/%s: %w", tokenwire.Service, method, err)
	}
	return ParseBundle(answer)
}

// ParseBundle reads an answer of the token service. The error does not quote it.
func ParseBundle(b []byte) (tokenwire.Bundle, error) {
	var out tokenwire.Bundle
	if len(b) > tokenwire.MaxBody {
		return tokenwire.Bundle{}, errs.New(errs.Corrupt, "answer of %d bytes: want at most %d", len(b), tokenwire.MaxBody)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return tokenwire.Bundle{}, errs.New(errs.Corrupt, "answer is not a bundle of tokens in JSON")
	}
	if s := out.STS; s != nil && (s.AccessKeyID == "" || s.SecretAccessKey == "" || s.SessionToken == "" || s.Expiration.IsZero()) {
		return tokenwire.Bundle{}, errs.New(errs.Corrupt, "temporary credentials in the answer are incomplete")
	}
	return out, nil
}

// Exchange turns a user session, which an owner's app brings, into a client token for that app (VEC-TOK-05, VEC-AUTH-05, part of VEC-AUTH-10). The
// first one makes its user the owner; the others must be of the same. The token is returned this once. Errors: Unauthenticated for a session
// that is used, expired or unknown; Invalid "wrong account"; Unavailable without a cloud.
func (a *Agent) Exchange(ctx context.Context, session logging.Secret, clientName, appID string) (logging.Secret, error) {
	if session == "" {
		return "", errs.New(errs.Unauthenticated, "want a user session")
	}
	clientName = clip(clientName)
	a.asking.Lock()
	defer a.asking.Unlock()
	b, err := a.exchange(ctx, session, clientName, appID)
	a.note(err)
	if err != nil {
		return "", err
	}
	client := logging.Secret(b.ClientToken)
	if err := a.add(client, clientName, appID); err != nil {
		return "", err
	}
	a.reread.Set()
	return client, nil
}

// exchange asks as the owner's second app while the access token is good, and as the first one if it is not: the cloud looks at the token
// before it burns the session, so that one session does for both.
func (a *Agent) exchange(ctx context.Context, session logging.Secret, name, appID string) (tokenwire.Bundle, error) {
	for refreshed := false; ; refreshed = true {
		jwt, ok := a.JWT()
		if !ok {
			break
		}
		b, err := a.ask(ctx, tokenwire.SecondaryMethod, tokenwire.Secondary{AccessToken: jwt.Reveal(), UserSession: session.Reveal(), ClientName: name, AppID: appID})
		if err == nil {
			return b, a.whole(b, false)
		}
		if errs.KindOf(err) != errs.Denied {
			return tokenwire.Bundle{}, err
		}
		if refreshed {
			break
		}
		if err := a.refresh(ctx); err != nil && errs.KindOf(err) != errs.Denied {
			return tokenwire.Bundle{}, err
		}
	}
	b, err := a.ask(ctx, tokenwire.AssociateMethod, tokenwire.Associate{
		UserSession: session.Reveal(), SessionCertificate: string(a.cfg.Plate.PEM()), ClientName: name, AppID: appID,
	})
	if err == nil {
		err = a.whole(b, true)
	}
	if err != nil {
		return tokenwire.Bundle{}, err
	}
	if err := a.store(logging.Secret(b.Token)); err != nil {
		return tokenwire.Bundle{}, err
	}
	return b, a.cfg.Plate.NotePosted()
}

func (a *Agent) whole(b tokenwire.Bundle, first bool) error {
	if _, ok := parseBearer(b.ClientToken); !ok {
		return errs.New(errs.Corrupt, "no client token in the answer")
	}
	if first && b.Token == "" {
		return errs.New(errs.Corrupt, "no access token in the answer")
	}
	return nil
}

// add lets a new client in before the document is read again.
func (a *Agent) add(client logging.Secret, name, appID string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	h, err := a.hashes.with(client, name, appID, a.cfg.Now())
	if err != nil {
		return err
	}
	if err := writeHashes(a.cfg.Root, h); err != nil {
		return a.fault(err)
	}
	a.hashes = h
	a.added++
	return nil
}

func clip(name string) string {
	name = strings.ToValidUTF8(name, "?")
	if r := []rune(name); len(r) > maxName {
		name = string(r[:maxName])
	}
	return name
}

// note keeps the outcome of a request.
func (a *Agent) note(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.code, a.problem = "", ""
		return
	}
	a.code, a.problem = errs.CodeOf(err), err.Error()
	if a.code == "" {
		a.code = errs.KindOf(err).String()
	}
}
