package accountapi

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/account"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
)

const (
	exportTime = time.Minute
	exports    = 2 // at once
)

// OwnersConfig configures MountOwners.
type OwnersConfig struct {
	SignIn  *account.SignIn
	People  *account.People
	Letters *account.Letters
	Apps    *account.Apps
	Privacy *account.Privacy
	// AppKeys are the Anki-App-Key values that apps and SDK tools may send; "*" accepts any. Original programs have theirs built in.
	AppKeys []string
	Site    string // name on the pages; "": Kennel
	Log     *slog.Logger
}

// MountOwners adds people's own accounts to mux, which must be behind Authenticator.
//
//	POST   /v1/account/signup         {email, password, given_name?, ...} -> 202        anyone; the letter says the rest
//	POST   /v1/account/verify         {code, password}     -> {id, email, role}         who has the letter
//	POST   /v1/account/verify/again   {email}              -> 202                       anyone
//	POST   /v1/account/reset          {email, lang?}       -> 202                       anyone
//	POST   /v1/account/reset/confirm  {code, password}     -> 204                       who has the letter
//	POST   /v1/account/email          {email, password}    -> 202                       signed in
//	POST   /v1/account/email/confirm  {code}               -> 204                       who has the letter
//	GET    /v1/account                                     -> the record (VEC-DOC-09)   signed in
//	PATCH  /v1/account                {given_name?, ...}   -> the record                signed in
//	GET    /v1/account/sessions                            -> [{id, app, ...}]          signed in
//	DELETE /v1/account/sessions/{id}                       -> 204                       signed in
//	DELETE /v1/account/sessions                            -> {ended}                   signed in; all but the one that asks
//	POST   /v1/account/apps                                -> {session_token, expires}  signed in; for one robot, once
//	GET    /v1/account/export                              -> a ZIP of JSON files       signed in
//	POST   /v1/account/delete         {password}           -> 202                       signed in
//
// Below /1/ are the requests of the original app and SDK tools (app.go), below /account/ the pages that letters lead to (pages.go).
func MountOwners(mux *http.ServeMux, cfg OwnersConfig) error {
	if cfg.SignIn == nil || cfg.People == nil || cfg.Letters == nil || cfg.Apps == nil || cfg.Privacy == nil || cfg.Log == nil {
		return errors.New("accountapi: every service and a log are required")
	}
	if cfg.Site == "" {
		cfg.Site = "Kennel"
	}
	o := ownersAPI{cfg, make(chan struct{}, exports)}
	wrap := endpoint.Chain(kit.Recover(cfg.Log), kit.Timeout(timeout))
	person := endpoint.Chain(wrap, auth.Require(auth.People...))
	anyone := func(ep endpoint.Endpoint, decode func(*http.Request) (any, error), status int) http.Handler {
		return o.sameSite(o.answer(wrap(ep), decode, status))
	}
	mux.Handle("POST /v1/account/signup", anyone(kit.Typed(o.signUp), decode[SignUpRequest], http.StatusAccepted))
	mux.Handle("POST /v1/account/verify", anyone(kit.Typed(o.verify), decode[CodeRequest], http.StatusOK))
	mux.Handle("POST /v1/account/verify/again", anyone(kit.Typed(o.again), decode[EmailRequest], http.StatusAccepted))
	mux.Handle("POST /v1/account/reset", anyone(kit.Typed(o.askReset), decode[EmailRequest], http.StatusAccepted))
	mux.Handle("POST /v1/account/reset/confirm", anyone(kit.Typed(o.reset), decode[CodeRequest], http.StatusNoContent))
	mux.Handle("POST /v1/account/email/confirm", anyone(kit.Typed(o.changeEmail), decode[CodeRequest], http.StatusNoContent))
	mux.Handle("POST /v1/account/email", o.answer(person(kit.Typed(o.askEmail)), decode[NewEmailRequest], http.StatusAccepted))
	mux.Handle("GET /v1/account", o.answer(person(kit.Typed(o.record)), none, http.StatusOK))
	mux.Handle("PATCH /v1/account", o.answer(person(kit.Typed(o.change)), decode[Change], http.StatusOK))
	mux.Handle("GET /v1/account/sessions", o.answer(person(kit.Typed(o.sessions)), none, http.StatusOK))
	mux.Handle("DELETE /v1/account/sessions/{id}", o.answer(person(kit.Typed(o.endSession)), func(r *http.Request) (any, error) { return r.PathValue("id"), nil }, http.StatusNoContent))
	mux.Handle("DELETE /v1/account/sessions", o.answer(person(kit.Typed(o.endOthers)), none, http.StatusOK))
	mux.Handle("POST /v1/account/apps", o.answer(person(kit.Typed(o.app)), none, http.StatusOK))
	mux.Handle("GET /v1/account/export", o.export(endpoint.Chain(kit.Recover(cfg.Log), kit.Timeout(exportTime), auth.Require(auth.People...))(kit.Typed(o.files))))
	mux.Handle("POST /v1/account/delete", o.answer(person(kit.Typed(o.delete)), decode[DeleteRequest], http.StatusAccepted))
	mountApp(mux, o)
	mountPages(mux, o)
	return nil
}

// SignUpRequest is the body of POST /v1/account/signup.
type SignUpRequest struct {
	Email    string `json:"email"`
	Password string `json:"password"`
	Change
}

// Change is the body of PATCH /v1/account: fields of the record by their names there; what is missing stays.
type Change struct {
	Given  *string `json:"given_name,omitempty"`
	Family *string `json:"family_name,omitempty"`
	Gender *string `json:"gender,omitempty"`
	Born   *string `json:"dob,omitempty"`
	Lang   *string `json:"email_lang,omitempty"`
}

func (c Change) domain() account.Change {
	return account.Change{Given: c.Given, Family: c.Family, Gender: c.Gender, Born: c.Born, Lang: c.Lang}
}

// CodeRequest carries the code of a letter and, to prove a sign-up's e-mail or to set a new password, a password.
type CodeRequest struct {
	Code     string `json:"code"`
	Password string `json:"password,omitempty"`
}

// EmailRequest asks for a letter.
type EmailRequest struct {
	Email string `json:"email"`
	Lang  string `json:"lang,omitempty"`
}

// NewEmailRequest is the body of POST /v1/account/email.
type NewEmailRequest struct {
	Email    string `json:"email"`
	Password string `json:"password"`
}

// DeleteRequest is the body of POST /v1/account/delete.
type DeleteRequest struct {
	Password string `json:"password"`
}

// Accepted is the answer to what a letter or a job will finish.
type Accepted struct {
	Next string `json:"next"` // for people
}

// Session is one line of GET /v1/account/sessions.
type Session struct {
	ID       string    `json:"id"`
	Current  bool      `json:"current"`
	App      bool      `json:"app"` // of an app, for one robot
	Created  time.Time `json:"created"`
	LastSeen time.Time `json:"last_seen,omitzero"`
	Expires  time.Time `json:"expires"`
	Addr     string    `json:"addr,omitempty"`
	Robot    string    `json:"robot,omitempty"` // that used it
}

// Ended is the answer of DELETE /v1/account/sessions.
type Ended struct {
	Ended int `json:"ended"`
}

// AppToken is the answer of POST /v1/account/apps.
type AppToken struct {
	Token   string    `json:"session_token"`
	Expires time.Time `json:"expires"`
}

type ownersAPI struct {
	OwnersConfig
	busy chan struct{}
}

func decode[T any](r *http.Request) (any, error) {
	var v T
	err := kithttp.ReadJSON(r, &v, maxBody)
	return v, err
}

// sameSite refuses what a page of another site makes a browser send. Programs say nothing of where they come from and pass.
func (o ownersAPI) sameSite(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kithttp.SameOrigin(r) != nil {
			o.refuse(w, r, errs.Coded(errs.Denied, "cross_site", "this request was not made by a page of this site"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuse logs and answers an error.
func (o ownersAPI) refuse(w http.ResponseWriter, r *http.Request, err error) {
	o.note(r, err)
	kithttp.WriteError(w, err)
}

// note logs a refusal: what is ours to mend as an error, and what a person did without the words of the answer, which may repeat theirs.
func (o ownersAPI) note(r *http.Request, err error) {
	kind := errs.KindOf(err)
	if kind == errs.Internal || kind == errs.Corrupt || kind == errs.Unavailable {
		o.Log.ErrorContext(r.Context(), "account request failed", "route", r.Pattern, logging.Addr, addr(r), "code", errs.CodeOf(err), logging.Err, err)
		return
	}
	o.Log.InfoContext(r.Context(), "account request refused", "route", r.Pattern, logging.Addr, addr(r), "kind", kind, "code", errs.CodeOf(err))
}

// addr is the peer as the transport proved it.
func addr(r *http.Request) string {
	if a := auth.CallerFrom(r.Context()).Addr; a != "" {
		return a
	}
	return peer(r)
}

func (o ownersAPI) answer(ep endpoint.Endpoint, decode func(*http.Request) (any, error), status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := decode(r)
		if err != nil {
			o.refuse(w, r, err)
			return
		}
		resp, err := ep(withPeer(r), req)
		switch {
		case err != nil:
			o.refuse(w, r, err)
		case status == http.StatusNoContent:
			w.WriteHeader(status)
		default:
			kithttp.WriteJSON(w, status, resp)
		}
	})
}

// withPeer is the request's context with the peer's address, also where no authenticator has been.
func withPeer(r *http.Request) context.Context {
	c := auth.CallerFrom(r.Context())
	if c.Addr != "" {
		return r.Context()
	}
	c.Addr = peer(r)
	return auth.WithCaller(r.Context(), c)
}

func caller(ctx context.Context) (account.ID, string) {
	c := auth.CallerFrom(ctx)
	return account.ID(c.Account), c.Addr
}

const letterNext = "a letter is on its way to this address; it says what to do"

func (o ownersAPI) signUp(ctx context.Context, req SignUpRequest) (Accepted, error) {
	_, from := caller(ctx)
	_, err := o.Letters.SignUp(ctx, account.NewOwner{Email: req.Email, Password: logging.Secret(req.Password), Change: req.domain()}, from)
	return Accepted{letterNext}, err
}

func (o ownersAPI) verify(ctx context.Context, req CodeRequest) (Account, error) {
	_, from := caller(ctx)
	a, err := o.Letters.Verify(ctx, logging.Secret(req.Code), logging.Secret(req.Password), from)
	return shown(a), err
}

func (o ownersAPI) again(ctx context.Context, req EmailRequest) (Accepted, error) {
	_, from := caller(ctx)
	return Accepted{letterNext}, o.Letters.AskAgain(ctx, req.Email, from)
}

func (o ownersAPI) askReset(ctx context.Context, req EmailRequest) (Accepted, error) {
	_, from := caller(ctx)
	return Accepted{letterNext}, o.Letters.AskReset(ctx, req.Email, req.Lang, from)
}

func (o ownersAPI) reset(ctx context.Context, req CodeRequest) (nothing, error) {
	_, from := caller(ctx)
	return nothing{}, o.Letters.Reset(ctx, logging.Secret(req.Code), logging.Secret(req.Password), from)
}

func (o ownersAPI) changeEmail(ctx context.Context, req CodeRequest) (nothing, error) {
	_, from := caller(ctx)
	return nothing{}, o.Letters.ChangeEmail(ctx, logging.Secret(req.Code), from)
}

func (o ownersAPI) askEmail(ctx context.Context, req NewEmailRequest) (Accepted, error) {
	id, from := caller(ctx)
	return Accepted{letterNext}, o.Letters.AskEmail(ctx, id, req.Email, logging.Secret(req.Password), from)
}

func (o ownersAPI) record(ctx context.Context, _ nothing) (account.Record, error) {
	id, _ := caller(ctx)
	return o.People.Record(ctx, id)
}

func (o ownersAPI) change(ctx context.Context, req Change) (account.Record, error) {
	id, _ := caller(ctx)
	return o.People.Change(ctx, id, req.domain())
}

func (o ownersAPI) sessions(ctx context.Context, _ nothing) ([]Session, error) {
	id, _ := caller(ctx)
	list, mine, err := o.People.Sessions(ctx, id, sessionToken(ctx))
	out := make([]Session, 0, len(list))
	for _, s := range list {
		out = append(out, Session{s.ID, s.ID == mine, s.App, s.Created.UTC(), s.LastSeen.UTC(), s.Expires.UTC(), s.Addr, s.Used})
	}
	return out, err
}

func (o ownersAPI) endSession(ctx context.Context, session string) (nothing, error) {
	id, from := caller(ctx)
	return nothing{}, o.People.EndSession(ctx, id, session, from)
}

func (o ownersAPI) endOthers(ctx context.Context, _ nothing) (Ended, error) {
	id, from := caller(ctx)
	n, err := o.People.EndOtherSessions(ctx, id, sessionToken(ctx), from)
	return Ended{n}, err
}

func (o ownersAPI) app(ctx context.Context, _ nothing) (AppToken, error) {
	id, _ := caller(ctx)
	token, expires, err := o.Apps.Issue(ctx, id)
	return AppToken{token.Reveal(), expires.UTC()}, err
}

func (o ownersAPI) delete(ctx context.Context, req DeleteRequest) (Accepted, error) {
	id, from := caller(ctx)
	return Accepted{"your sessions have ended; what we hold about you is being deleted"}, o.Privacy.Delete(ctx, id, logging.Secret(req.Password), from)
}

// files writes the ZIP into a file without a name, which the caller closes: an export may be larger than memory.
func (o ownersAPI) files(ctx context.Context, _ nothing) (*os.File, error) {
	select {
	case o.busy <- struct{}{}:
	default:
		return nil, errs.RetryLater(10*time.Second, "too many exports at once", nil)
	}
	defer func() { <-o.busy }()
	f, err := os.CreateTemp("", "kennel-export-*")
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	id, from := caller(ctx)
	err = os.Remove(f.Name()) // what it holds is personal: it goes with us
	if err == nil {
		err = archive(f, time.Now().UTC(), func(add addFile) error { return o.Privacy.Export(ctx, id, from, add) })
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// export sends the ZIP, which an endpoint cannot.
func (o ownersAPI) export(ep endpoint.Endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resp, err := ep(withPeer(r), nothing{})
		if err != nil {
			o.refuse(w, r, err)
			return
		}
		f := resp.(*os.File)
		defer f.Close() // only read
		size, err := f.Seek(0, io.SeekEnd)
		if err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err != nil {
			o.refuse(w, r, err)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "application/zip")
		h.Set("Content-Disposition", `attachment; filename="kennel-account.zip"`)
		h.Set("Content-Length", fmt.Sprint(size))
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		_, _ = io.Copy(w, f) // the peer is gone
	})
}

const readme = `This is everything this Kennel holds about your account: a file of JSON for each part of it, and more below a folder
of the same name where there is more, such as the events and the logs of your robots.

Passwords and session tokens are kept as hashes only and are not here. mail.json has the letters that are still in our
hands; account.json has your record, your sessions, and the lines of the audit log that are by or about you. Lines of the
audit log stay after you leave, with a random number in place of your account, without your name, your e-mail and the
addresses you came from. What your robots sent is stored for a limited time; backups of the database last a while longer.
`

type addFile = func(name string, write func(io.Writer) error) error

// archive writes a ZIP of the files that list adds.
func archive(to io.Writer, at time.Time, list func(addFile) error) error {
	z := zip.NewWriter(to)
	add := func(name string, write func(io.Writer) error) error {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at})
		if err == nil {
			err = write(w)
		}
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		return nil
	}
	if err := add("README.txt", func(w io.Writer) error { _, err := io.WriteString(w, readme); return err }); err != nil {
		return err
	}
	if err := list(add); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}
