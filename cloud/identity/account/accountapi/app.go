package accountapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/places"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
)

// The requests of the original app and of the SDK's configuration tools to the accounts and locations services (VEC-END-02), with paths, fields,
// codes and status codes as public clients and the published service know them:
//
//	POST  /1/sessions                     username, password      -> {session, user}
//	POST  /1/sessions/reup                                        -> session          the old one ends
//	POST  /1/sessions/delete              session_token, delete_related
//	POST  /1/users                        {email, password, ...}  -> {session, user}
//	GET   /1/users/{userid}               id or me                -> user
//	PATCH /1/users/{userid}, POST /1/users/{userid}/patch         -> user
//	POST  /1/users/{userid}/verify_email                          the letter again
//	POST  /1/reset_user_password          email or username       the letter
//	GET   /1/username-check?username=, /1/usernames/{username}
//	GET   /1/locations                                            -> ["City, State, Country", ...]
//
// All but the last want Anki-App-Key; a session goes into Authorization: Anki TOKEN. Bodies are forms or JSON.
//
// The original told strangers who has an account, and let every holder of a session take the account over. This service does neither: a sign-up
// for a taken e-mail is answered like any other, and the letter tells; the checks for user names find no account; another's user id is refused
// whether it exists or not; and a password or e-mail is changed on the pages, which ask for the old password or send a letter, since robots and
// their networks have seen the session.
const (
	appKeyHeader = "Anki-App-Key"
	sessionScope = "user"
	maxForm      = 64 << 10 // bytes, the original's bound
)

type appAPI struct{ ownersAPI }

func mountApp(mux *http.ServeMux, o ownersAPI) {
	a := appAPI{o}
	for pattern, h := range map[string]func(r *http.Request) (any, error){
		"POST /1/sessions":                    a.signIn,
		"POST /1/sessions/reup":               a.renew,
		"POST /1/sessions/delete":             a.signOut,
		"POST /1/users":                       a.signUp,
		"GET /1/users/{userid}":               a.user,
		"PATCH /1/users/{userid}":             a.patch,
		"POST /1/users/{userid}/patch":        a.patch,
		"POST /1/users/{userid}/verify_email": a.again,
		"POST /1/reset_user_password":         a.reset,
		"GET /1/username-check":               func(*http.Request) (any, error) { return map[string]bool{"exists": false}, nil },
		"GET /1/usernames/{username}": func(*http.Request) (any, error) {
			return nil, appError{http.StatusNotFound, "account_not_found", "Account not found"}
		},
	} {
		mux.Handle(pattern, a.handle(h))
	}
	mux.HandleFunc("GET /1/locations", func(w http.ResponseWriter, _ *http.Request) { kithttp.WriteJSON(w, http.StatusOK, places.Names()) })
}

// appError is a refusal in the original's words.
type appError struct {
	status        int
	code, message string
}

func (e appError) Error() string { return e.message }

// appProblem is the body of every error answer.
type appProblem struct {
	Status  string `json:"status"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// appDone is the answer where there is nothing to tell.
type appDone struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func done(message string) appDone { return appDone{"ok", message} }

// appSession is a session as apps know it.
type appSession struct {
	Token   string     `json:"session_token"`
	UserID  account.ID `json:"user_id"`
	Scope   string     `json:"scope"`
	Created time.Time  `json:"time_created"`
	Expires time.Time  `json:"time_expires"`
}

type appLogin struct {
	Session appSession     `json:"session"`
	User    account.Record `json:"user"`
}

func session(s account.AppSession) appSession {
	return appSession{s.Token.Reveal(), s.Session.Account, sessionScope, s.Session.Created.UTC(), s.Session.Expires.UTC()}
}

// handle checks the app key and answers.
func (a appAPI) handle(h func(r *http.Request) (any, error)) http.Handler {
	return a.sameSite(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resp, err := any(nil), error(nil)
		switch key := r.Header.Get(appKeyHeader); {
		case key == "":
			err = appError{http.StatusBadRequest, "no_app_key", "Anki-App-Key not provided"}
		case !slices.Contains(a.AppKeys, key) && !slices.Contains(a.AppKeys, "*"):
			err = appError{http.StatusUnauthorized, "invalid_app_key", "Anki-App-Key is invalid"}
		default:
			ctx, cancel := context.WithTimeout(withPeer(r), timeout)
			defer cancel()
			resp, err = h(r.WithContext(ctx))
		}
		if err == nil {
			kithttp.WriteJSON(w, http.StatusOK, resp)
			return
		}
		a.note(r, appKind(err))
		e := inAppWords(err)
		kithttp.RetryAfter(w, err)
		kithttp.WriteJSON(w, e.status, appProblem{"error", e.code, e.message})
	}))
}

// appKind makes the original's refusals readable for our log.
func appKind(err error) error {
	if e, ok := errors.AsType[appError](err); ok {
		return errs.Coded(errs.Denied, e.code, "%s", e.message)
	}
	return err
}

// inAppWords is the table from our errors to the original's.
func inAppWords(err error) appError {
	if e, ok := errors.AsType[appError](err); ok {
		return e
	}
	switch errs.CodeOf(err) {
	case "login_refused":
		return appError{http.StatusForbidden, "invalid_username_or_password", "Invalid username or password"}
	case "second_factor":
		return appError{http.StatusForbidden, "second_factor_required", "Operators with a second factor sign in at the console"}
	case "session_over":
		return appError{http.StatusForbidden, "invalid_session", "Session token is invalid"}
	case "email_already_verified":
		return appError{http.StatusConflict, "email_already_verified", "The email address is already verified"}
	case "password_short":
		return appError{http.StatusBadRequest, "password_too_short", "Passwords must be at least " + strconv.Itoa(account.MinPassword) + " characters"}
	}
	switch errs.KindOf(err) {
	case errs.Invalid:
		return appError{http.StatusBadRequest, "invalid_fields", errs.Public(err)}
	case errs.Exhausted:
		return appError{http.StatusTooManyRequests, "rate_limited", "Too many attempts; wait"}
	case errs.Unavailable:
		return appError{http.StatusServiceUnavailable, "server_busy", "The server is busy; try again later"}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return appError{http.StatusServiceUnavailable, "server_busy", "The server is busy; try again later"}
	}
	return appError{http.StatusInternalServerError, "server_failure", "An unexpected server error occurred"}
}

var missing = appError{http.StatusBadRequest, "missing_params", "Missing one or more required parameters"}

// fields reads a form or a JSON object of texts, and of nothing else that is asked for. Fields we do not know are none of our business.
func fields(r *http.Request) (map[string]string, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxForm+1))
	if err != nil {
		return nil, errs.New(errs.Invalid, "read body: %w", err)
	}
	if len(body) > maxForm {
		return nil, errs.New(errs.Invalid, "body is larger than %d bytes", maxForm)
	}
	return parseFields(r.Header.Get("Content-Type"), body)
}

func parseFields(contentType string, body []byte) (map[string]string, error) {
	mt, _, err := mime.ParseMediaType(contentType)
	if err != nil && contentType != "" {
		return nil, errs.New(errs.Invalid, "content type %.80q: want application/x-www-form-urlencoded or application/json", contentType)
	}
	out := map[string]string{}
	switch mt {
	case "application/json", "text/json":
		var object map[string]json.RawMessage
		if len(strings.TrimSpace(string(body))) == 0 {
			return out, nil
		}
		if err := json.Unmarshal(body, &object); err != nil {
			return nil, errs.New(errs.Invalid, "body: want a JSON object")
		}
		for k, v := range object {
			var s string
			if json.Unmarshal(v, &s) == nil {
				out[k] = s // null is ""
			}
		}
	case "", "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, errs.New(errs.Invalid, "body: want a form")
		}
		for k := range form {
			out[k] = form.Get(k)
		}
	default:
		return nil, errs.New(errs.Invalid, "content type %.80q: want application/x-www-form-urlencoded or application/json", contentType)
	}
	return out, nil
}

// token returns the token of Authorization: Anki; "" for none.
func token(r *http.Request) logging.Secret {
	scheme, t, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Anki") {
		return ""
	}
	return logging.Secret(strings.TrimSpace(t))
}

func (a appAPI) signIn(r *http.Request) (any, error) {
	f, err := fields(r)
	if err != nil {
		return nil, err
	}
	if f["username"] == "" || f["password"] == "" {
		return nil, missing
	}
	s, err := a.Apps.Login(r.Context(), f["username"], logging.Secret(f["password"]), addr(r))
	return appLogin{session(s), s.Record}, err
}

func (a appAPI) renew(r *http.Request) (any, error) {
	s, err := a.Apps.Renew(r.Context(), token(r), addr(r))
	return session(s), err
}

func (a appAPI) signOut(r *http.Request) (any, error) {
	f, err := fields(r)
	if err != nil {
		return nil, err
	}
	active, err := a.Apps.Session(r.Context(), token(r))
	if err != nil {
		return nil, err
	}
	if f["session_token"] == "" {
		return nil, missing
	}
	t := logging.Secret(f["session_token"])
	if t != token(r) {
		other, err := a.Apps.Session(r.Context(), t)
		if err != nil {
			return nil, err
		}
		if other.Session.Account != active.Session.Account {
			return nil, appError{http.StatusForbidden, "invalid_session", "Session token is invalid"} // as if it were none
		}
	}
	return done("logged out"), a.Apps.Logout(r.Context(), active, t, f["delete_related"] == "true", addr(r))
}

// change reads the fields of the record that an app may set.
func change(f map[string]string) account.Change {
	var c account.Change
	for name, to := range map[string]**string{"given_name": &c.Given, "family_name": &c.Family, "gender": &c.Gender, "dob": &c.Born, "email_lang": &c.Lang,
		"drive_guest_id": &c.PlayerID} {
		if v, ok := f[name]; ok {
			*to = &v
		}
	}
	if v, ok := f["player_id"]; ok && v != "" { // the same under its newer name
		c.PlayerID = &v
	}
	return c
}

func (a appAPI) signUp(r *http.Request) (any, error) {
	f, err := fields(r)
	if err != nil {
		return nil, err
	}
	email := f["email"]
	if email == "" {
		email = f["username"]
	}
	if email == "" || f["password"] == "" {
		return nil, missing
	}
	s, err := a.Apps.SignUp(r.Context(), account.NewOwner{Email: email, Password: logging.Secret(f["password"]), Change: change(f),
		AppName: f["created_by_app_name"], AppPlatform: f["created_by_app_platform"], AppVersion: f["created_by_app_version"]}, addr(r))
	return appLogin{session(s), s.Record}, err
}

// own returns the session of a request about a user, who must be the one it belongs to.
func (a appAPI) own(r *http.Request) (account.AppSession, error) {
	s, err := a.Apps.Session(r.Context(), token(r))
	if err != nil {
		return account.AppSession{}, err
	}
	if id := r.PathValue("userid"); id != "me" && id != string(s.Session.Account) {
		return account.AppSession{}, appError{http.StatusForbidden, "permission_denied", "Session token has insufficient permissions"}
	}
	return s, nil
}

func (a appAPI) user(r *http.Request) (any, error) {
	s, err := a.own(r)
	return s.Record, err
}

func (a appAPI) patch(r *http.Request) (any, error) {
	s, err := a.own(r)
	if err != nil {
		return nil, err
	}
	f, err := fields(r)
	if err != nil {
		return nil, err
	}
	if email := f["email"]; f["password"] != "" || email != "" && !strings.EqualFold(email, s.Record.Email) {
		return nil, appError{http.StatusForbidden, "permission_denied", "A session is not enough to change password or e-mail; ask for a letter to reset the password, or use the account page"}
	}
	if s.Session.Pending {
		return nil, appError{http.StatusForbidden, "permission_denied", "The e-mail must be verified first"}
	}
	return a.Apps.Change(r.Context(), s, change(f), addr(r))
}

func (a appAPI) again(r *http.Request) (any, error) {
	s, err := a.own(r)
	if err != nil {
		return nil, err
	}
	return done("Verification email sent"), a.Apps.AskAgain(r.Context(), s, addr(r))
}

func (a appAPI) reset(r *http.Request) (any, error) {
	f, err := fields(r)
	if err != nil {
		return nil, err
	}
	email := f["email"]
	if email == "" {
		email = f["username"]
	}
	if email == "" {
		return nil, missing
	}
	return done("Reset password email sent"), a.Letters.AskReset(r.Context(), email, "", addr(r))
}
