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

	"kennel/cloud/identity/account"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/op"
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

// MountOwners adds what people need beside OwnersOperations to mux, which must be behind Authenticator: below /1/ the requests of the original app and
// SDK tools (app.go), below /account/ the pages that letters lead to (pages.go).
func MountOwners(mux *http.ServeMux, cfg OwnersConfig) error {
	if cfg.SignIn == nil || cfg.People == nil || cfg.Letters == nil || cfg.Apps == nil || cfg.Privacy == nil || cfg.Log == nil {
		return errors.New("accountapi: every service and a log are required")
	}
	if cfg.Site == "" {
		cfg.Site = "Kennel"
	}
	o := ownersAPI{cfg}
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

type ownersAPI struct{ OwnersConfig }

// sameSite refuses what a page of another site makes a browser send. Programs say nothing of where they come from and pass.
func (o ownersAPI) sameSite(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kithttp.SameOrigin(r) != nil {
			o.refuse(w, r, op.CrossSite())
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

type oneSession struct {
	ID string `path:"id"`
}

// OwnersOperations returns what people do with their own accounts, for a server behind Authenticator.
func OwnersOperations(o OwnersConfig) op.List { return append(o.anyone(), o.person()...) }

func ofAccount(route, summary string) op.Spec {
	return op.Spec{Route: route, Tag: "Account", Summary: summary, Timeout: timeout, MaxBody: maxBody}
}

func accepted(s op.Spec) op.Spec { s.Status = http.StatusAccepted; return s }

// anyone returns what anyone may ask, but for pages of other sites: letters and passwords decide.
func (o OwnersConfig) anyone() op.List {
	anyone := func(route, summary, by string) op.Spec {
		s := ofAccount(route, summary)
		s.By, s.SameSite = by, true
		return s
	}
	return op.List{
		op.New(accepted(anyone("POST /v1/account/signup", "Sign up for an account. An e-mail has the rest.", "nothing: the letter says the rest")),
			func(ctx context.Context, s SignUpRequest) (Accepted, error) {
				_, from := caller(ctx)
				_, err := o.Letters.SignUp(ctx, account.NewOwner{Email: s.Email, Password: logging.Secret(s.Password), Change: s.domain()}, from)
				return Accepted{letterNext}, err
			}),
		op.New(anyone("POST /v1/account/verify", "Confirm the e-mail address with the code from the e-mail.", "the code of a letter, and the password"),
			func(ctx context.Context, c CodeRequest) (Account, error) {
				_, from := caller(ctx)
				a, err := o.Letters.Verify(ctx, logging.Secret(c.Code), logging.Secret(c.Password), from)
				return shown(a), err
			}),
		op.New(accepted(anyone("POST /v1/account/verify/again", "Request the sign-up e-mail again.", "nothing: the letter says the rest")),
			func(ctx context.Context, e EmailRequest) (Accepted, error) {
				_, from := caller(ctx)
				return Accepted{letterNext}, o.Letters.AskAgain(ctx, e.Email, from)
			}),
		op.New(accepted(anyone("POST /v1/account/reset", "Request an e-mail to reset the password.", "nothing: the letter says the rest")),
			func(ctx context.Context, e EmailRequest) (Accepted, error) {
				_, from := caller(ctx)
				return Accepted{letterNext}, o.Letters.AskReset(ctx, e.Email, e.Lang, from)
			}),
		op.New(anyone("POST /v1/account/reset/confirm", "Set a new password with the code from the e-mail.", "the code of a letter"),
			func(ctx context.Context, c CodeRequest) (op.None, error) {
				_, from := caller(ctx)
				return op.None{}, o.Letters.Reset(ctx, logging.Secret(c.Code), logging.Secret(c.Password), from)
			}),
		op.New(anyone("POST /v1/account/email/confirm", "Confirm a new e-mail address with the code from the e-mail.", "the code of a letter"),
			func(ctx context.Context, c CodeRequest) (op.None, error) {
				_, from := caller(ctx)
				return op.None{}, o.Letters.ChangeEmail(ctx, logging.Secret(c.Code), from)
			}),
	}
}

// person returns what people may do who are signed in.
func (o OwnersConfig) person() op.List {
	person := func(route, summary string) op.Spec {
		s := ofAccount(route, summary)
		s.Roles = auth.People
		return s
	}
	plain := func(s op.Spec) op.Spec { s.Plain = true; return s }
	export := person("GET /v1/account/export", "Download all data held about the caller as one archive.")
	export.Timeout, export.AnswerMedia = exportTime, "application/zip"
	busy := make(chan struct{}, exports)
	return op.List{
		op.New(accepted(person("POST /v1/account/email", "Change the e-mail address. An e-mail to the new address has the rest.")),
			func(ctx context.Context, e NewEmailRequest) (Accepted, error) {
				id, from := caller(ctx)
				return Accepted{letterNext}, o.Letters.AskEmail(ctx, id, e.Email, logging.Secret(e.Password), from)
			}),
		op.New(person("GET /v1/account", "Show the caller's account."), func(ctx context.Context, _ op.None) (account.Record, error) {
			id, _ := caller(ctx)
			return o.People.Record(ctx, id)
		}),
		op.New(plain(person("PATCH /v1/account", "Change the caller's account. Absent fields stay as they are.")), func(ctx context.Context, c Change) (account.Record, error) {
			id, _ := caller(ctx)
			return o.People.Change(ctx, id, c.domain())
		}),
		op.New(person("GET /v1/account/sessions", "List the caller's sessions.").With(
			op.Command{Use: "account sessions", Short: "List your sessions", Table: "SESSION=.id; KIND={{if .app}}app{{else}}person{{end}}{{if .current}} (this one){{end}}; SINCE=.created; LAST SEEN; UNTIL=.expires; FROM={{if .app}}{{.robot}}{{else}}{{.addr}}{{end}}"}), func(ctx context.Context, _ op.None) ([]Session, error) {
			id, _ := caller(ctx)
			list, mine, err := o.People.Sessions(ctx, id, sessionToken(ctx))
			out := make([]Session, 0, len(list))
			for _, s := range list {
				out = append(out, Session{s.ID, s.ID == mine, s.App, s.Created.UTC(), s.LastSeen.UTC(), s.Expires.UTC(), s.Addr, s.Used})
			}
			return out, err
		}),
		op.New(person("DELETE /v1/account/sessions/{id}", "End one of the caller's sessions.").With(
			op.Command{Use: "account end SESSION", Short: "End a session, or all but this one", Example: "account end 0f3a5c7e9b1d2f40\naccount end -others", Says: "1 session ended", Done: `{"ended":1}`}), func(ctx context.Context, s oneSession) (op.None, error) {
			id, from := caller(ctx)
			return op.None{}, o.People.EndSession(ctx, id, s.ID, from)
		}),
		op.New(person("DELETE /v1/account/sessions", "End the caller's other sessions.").With(
			op.Command{Use: "account end -others!", Short: "End the other sessions", Says: "{{count .ended `session`}} ended"}), func(ctx context.Context, _ op.None) (Ended, error) {
			id, from := caller(ctx)
			n, err := o.People.EndOtherSessions(ctx, id, sessionToken(ctx), from)
			return Ended{n}, err
		}),
		op.New(plain(person("POST /v1/account/apps", "Create a session token that an app hands to one robot.")).With(
			op.Command{Use: "account app-token", Short: "Create a session token for one robot", Long: "A tool that talks to a robot hands it the token once; the robot then acts for you, as any holder of the token can.", Example: "account app-token -o json", Table: "session_token; expires"}), func(ctx context.Context, _ op.None) (AppToken, error) {
			id, _ := caller(ctx)
			token, expires, err := o.Apps.Issue(ctx, id)
			return AppToken{token.Reveal(), expires.UTC()}, err
		}),
		op.New(export, func(ctx context.Context, _ op.None) (http.Handler, error) {
			select {
			case busy <- struct{}{}:
			default:
				return nil, errs.RetryLater(10*time.Second, "too many exports at once", nil)
			}
			defer func() { <-busy }()
			return exported(ctx, o.Privacy)
		}),
		op.New(accepted(person("POST /v1/account/delete", "Delete the account and all data held about the caller.")),
			func(ctx context.Context, d DeleteRequest) (Accepted, error) {
				id, from := caller(ctx)
				return Accepted{"your sessions have ended; what we hold about you is being deleted"}, o.Privacy.Delete(ctx, id, logging.Secret(d.Password), from)
			}),
	}
}

// exported writes the ZIP into a file without a name, for the answer to send: an export may be larger than memory.
func exported(ctx context.Context, privacy *account.Privacy) (http.Handler, error) {
	f, err := os.CreateTemp("", "kennel-export-*")
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	id, from := caller(ctx)
	err = os.Remove(f.Name()) // what it holds is personal: it goes with us
	if err == nil {
		err = archive(f, time.Now().UTC(), func(add addFile) error { return privacy.Export(ctx, id, from, add) })
	}
	var size int64
	if err == nil {
		size, err = f.Seek(0, io.SeekEnd)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer f.Close() // only read
		h := w.Header()
		h.Set("Content-Type", "application/zip")
		h.Set("Content-Disposition", `attachment; filename="kennel-account.zip"`)
		h.Set("Content-Length", fmt.Sprint(size))
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		_, _ = io.Copy(w, f) // the peer is gone
	}), nil
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
