package page

import (
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kennel/cloud/access"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Frame holds the parts around every page.
type Frame struct {
	Title string
	User  string // "" without a session
	Path  string // of the page, for the navigation
	Live  string // address of the stream that says when to fetch the page again; "": none
	Said  Said
	Main  any

	Area string // of the owners' pages: robots, privacy or me

	// Of the operators' console.
	Me     string // where they find what is theirs
	Role   auth.Role
	Here   string // the page's address, to come back to
	Theme  string // light, dark, or "" for what the system says
	Nav    []Menu
	Folded bool   // the reader folded the main menu
	Aside  []Link // in the menu of the person
	Crumbs []Link // the way to this page; the last is the page itself
	Again  int    // fetch the page again after so many milliseconds; 0: not
	Search bool   // the page has the field for robots itself

	Pictures bool // the page has pictures within itself, as data: addresses
}

// Link is an address to go to.
type Link struct {
	Label, Address string
	Current        bool
}

// Menu is a part of the main menu: one link, or several under a label.
type Menu struct {
	Label string // "": there is one link
	Links []Link
}

// Labels of menus with several links.
const (
	Updates     = "Updates"
	Connections = "Connections"
	Cloud       = "Cloud"
)

// View makes a page. s is about a form that was sent from it.
type View func(ctx context.Context, r *http.Request, s Said) (name string, f Frame, err error)

// Outcome is the result of a form.
type Outcome struct {
	Done   string // a key of Site.Dones
	Secret string // newly made; shown only once
	Back   string // where it leads; "": to the form's page
}

// Action is a form on a page.
type Action struct {
	Form func(r *http.Request) string // its name on the page
	Do   func(ctx context.Context, r *http.Request, v url.Values) (Outcome, error)
	Page View
	Back func(r *http.Request) string // where the person continues
}

// Extra is a page that a slice brings along; the site puts its frame and its menu around it.
type Extra struct {
	Label, Address string
	Menu           string // part of the main menu that holds it; "": a link by itself
	Aside          bool   // in the menu of the person, not in the main one
	// Show returns what is below the heading, escaped by the slice's own html/template.
	Show func(ctx context.Context) (template.HTML, error)
	// Ask is Show with the parameters of its address, or with what was typed into a form that was refused. A page without Show is no entry of the menu.
	Ask func(ctx context.Context, v url.Values) (template.HTML, error)
	// Do does what a form on the page asks for; nil: there is none. Done says so afterwards, on this page or on the one at Then.
	Do         func(ctx context.Context, v url.Values) error
	Done, Then string
	// Back is where a form leads instead of Then, after Do, which may add what it made to the values; nil: there.
	Back func(v url.Values) string
	// Again is after how many milliseconds the page is fetched again; 0: never.
	Again int
	// Card returns what the page adds to the overview; nil or "": nothing.
	Card func(ctx context.Context) (template.HTML, error)
	// Tab makes it a page of one robot instead, below /things/{thing}/: it returns its title and what is below the robot's head. With a Label
	// it is one of the robot's tabs.
	Tab func(ctx context.Context, r *http.Request) (title string, body template.HTML, err error)
	// Of reports whether a robot has the tab, so that the pages of other robots do not offer it; nil: each has.
	Of func(ctx context.Context, id thing.ID) (bool, error)
	// Why says in words what the page knows of robots that are not there, for a fleet that has none; nil: nothing.
	Why func(ctx context.Context) (string, error)
}

// Called returns the name of a form that there is once on its page.
func Called(name string) func(*http.Request) string {
	return func(*http.Request) string { return name }
}

// Site is the pages of one kind of person. Who may see one or send its forms is in access.HTTP, by the route's pattern.
type Site struct {
	*Set
	Login    string                                        // the page that signs in
	Dones    map[string]string                             // what pages say after a form; the address carries the key
	Headings map[errs.Kind]string                          // of error pages, where they are not the usual ones
	Allowed  func(auth.Caller) error                       // why the pages are not for a caller who is signed in
	Dress    func(r *http.Request, name string, f *Frame)  // fills in what all pages have
	Message  func(c auth.Caller, heading, text string) any // the contents of the page "message", which tells of an error
}

var headings = map[errs.Kind]string{
	errs.Invalid: "Invalid request", errs.NotFound: "Not found", errs.Denied: "Not allowed", errs.Exhausted: "Too many requests",
	errs.Unavailable: "Not available right now", errs.Unauthenticated: "Sign in first", errs.Conflict: "Changed by someone else",
}

// Admit reports whether a request may continue. A caller who is not signed in is led to the page that does it; one without the right is
// told so.
func (s *Site) Admit(w http.ResponseWriter, r *http.Request) bool {
	caller := auth.CallerFrom(r.Context())
	var err error
	switch {
	case caller.Role == "" && r.Method == http.MethodGet:
		http.Redirect(w, r, s.Login+"?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		return false
	case caller.Role == "":
		err = errs.New(errs.Unauthenticated, "your session has ended; sign in and send the form again")
	default:
		if err = s.Allowed(caller); err != nil {
			break
		}
		if err = access.HTTP.Check(r.Pattern, caller.Role); err != nil {
			s.log.InfoContext(r.Context(), "refused", "route", r.Pattern, logging.Addr, caller.Addr, logging.Err, err)
		}
	}
	if err != nil {
		s.Fail(w, r, err)
	}
	return err == nil
}

// Show serves v to those it is for.
func (s *Site) Show(v View) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.Admit(w, r) {
			s.View(w, r, http.StatusOK, v, Said{Done: s.Dones[r.URL.Query().Get("done")]})
		}
	}
}

// View answers with what v makes.
func (s *Site) View(w http.ResponseWriter, r *http.Request, code int, v View, said Said) {
	name, f, err := v(r.Context(), r, said)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	f.Said = said
	s.Page(w, r, code, name, f)
}

// Act does what a form asks for, and leads back to its page; a problem is shown there, beside the form.
func (s *Site) Act(a Action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.Admit(w, r) {
			return
		}
		values, err := Form(r)
		if err != nil {
			s.Fail(w, r, err)
			return
		}
		o, err := a.Do(r.Context(), r, values)
		switch {
		case err == nil && o.Secret != "":
			s.View(w, r, http.StatusOK, a.Page, Said{Done: s.Dones[o.Done], Secret: o.Secret})
		case err == nil:
			if o.Back == "" {
				o.Back = a.Back(r)
			}
			to, at, _ := strings.Cut(o.Back, "#")
			sign := "?"
			if strings.Contains(to, sign) {
				sign = "&"
			}
			if to += sign + "done=" + url.QueryEscape(o.Done); at != "" {
				to += "#" + at // the part of the page that the person looked at
			}
			http.Redirect(w, r, to, http.StatusSeeOther)
		case Expected(err):
			s.View(w, r, kithttp.RefuseForm(w, err), a.Page, Refused(a.Form(r), err, values))
		default:
			s.Fail(w, r, err)
		}
	}
}

// Page answers with the page name.
func (s *Site) Page(w http.ResponseWriter, r *http.Request, code int, name string, f Frame) {
	f.Path = r.URL.Path
	if r.Method != http.MethodGet {
		f.Live, f.Again = "", 0 // the address of this page is the form's: to fetch it again would be to send the form again
	}
	s.Dress(r, name, &f)
	if f.Pictures {
		w.Header().Set("Content-Security-Policy", picturePolicy)
	}
	s.Render(w, r, code, name, f)
}

// Fail answers with an error page of err's kind.
func (s *Site) Fail(w http.ResponseWriter, r *http.Request, err error) {
	kind, late := errs.KindOf(err), errors.Is(err, context.DeadlineExceeded)
	if late {
		kind = errs.Unavailable
	} else if r.Context().Err() != nil {
		return // the browser left
	}
	heading := s.Headings[kind]
	if heading == "" {
		heading = headings[kind]
	}
	if heading == "" {
		heading = "Something went wrong"
		s.log.ErrorContext(r.Context(), "page failed", "path", r.URL.Path, logging.Err, err)
	}
	kithttp.RetryAfter(w, err)
	s.Page(w, r, kithttp.StatusOf(kind), "message", Frame{Title: heading, Main: s.Message(auth.CallerFrom(r.Context()), heading, Words(err))})
}

// SignOut ends a session by end, and leads to the page that begins one.
func (s *Site) SignOut(end func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := end(w, r); err != nil && errs.KindOf(err) != errs.Unauthenticated {
			s.Fail(w, r, err)
			return
		}
		http.Redirect(w, r, s.Login, http.StatusSeeOther)
	}
}

// Of streams that say when to fetch a page again.
const (
	LiveEvery = 500 * time.Millisecond // at most one word of change in this time
	LiveBeat  = 15 * time.Second       // keeps proxies from closing a quiet stream
	LiveLife  = 10 * time.Minute       // then the browser reconnects, and must still be allowed to
)

// Live says by send that something changed, until changes end or send fails: server-sent events named "change", without content. The first
// comes at once; a burst becomes one each every. settle after the last one there is one more, for what is counted with a delay; 0: none.
func Live[T any](send func(text string) bool, changes <-chan T, mine func(T) bool, every, settle time.Duration) {
	const change = "event: change\ndata: 1\n\n"
	if !send("retry: 2000\n" + change) { // what happened before this stream began
		return
	}
	beat := time.NewTicker(LiveBeat)
	defer beat.Stop()
	var pending, settled <-chan time.Time // set while a change waits to be said, and after it was
	last := time.Now()
	for {
		text := change
		select {
		case t, ok := <-changes:
			if !ok {
				return
			}
			if mine(t) && pending == nil {
				pending = time.After(max(0, every-time.Since(last)))
			}
			continue
		case <-pending:
			pending, last = nil, time.Now()
			if settle > 0 {
				settled = time.After(settle)
			}
		case <-settled:
			settled = nil
			if pending != nil {
				continue
			}
		case <-beat.C:
			text = ": beat\n\n"
		}
		if !send(text) {
			return
		}
	}
}
