// Package page makes web pages from a folder: templates around a layout, assets under addresses that change with their content, and what
// every page owes its reader: a policy that lets nothing in from elsewhere, forms that other sites cannot send, times that say
// what they are. The operators' console and the owners' pages are made with it.
//
// There is no inline script and no inline style, so that the policy can forbid both; what a robot or a person said is text, because
// html/template writes all of it.
package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"kennel/cloud/page/language"
	"kennel/infra/cli/version"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
)

// Policy is the Content-Security-Policy of every page.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// picturePolicy is Policy for pages with pictures within themselves.
var picturePolicy = strings.Replace(Policy, "img-src 'self'", "img-src 'self' data:", 1)

// MaxForm bounds the body of a form, in bytes: a certificate bundle, percent-encoded, is the largest.
const MaxForm = 256 << 10

// Set is pages and their assets. Safe for concurrent use.
type Set struct {
	// Language chooses the language of an answer, by its request; nil: all are in English.
	Language func(r *http.Request) *language.Catalog
	prefix   string
	pages    map[string]*template.Template
	assets   map[string]asset
	refused  func(w http.ResponseWriter, r *http.Request, err error)
	log      *slog.Logger
}

type asset struct {
	body  []byte
	kind  string
	stamp string // of its content, part of its address, so that it can be cached for ever
}

// Load reads pages/*.html, each of which is executed with pages/layout.html around it and may use what parts/*.html define, and assets/*,
// whose addresses begin with prefix.
// Templates have asset, version, time, ago, bytes and what funcs adds. refused makes the answer to a form that another site sent.
func Load(files fs.FS, prefix string, funcs template.FuncMap, log *slog.Logger, refused func(w http.ResponseWriter, r *http.Request, err error)) (*Set, error) {
	s := &Set{prefix: prefix, pages: map[string]*template.Template{}, assets: map[string]asset{}, refused: refused, log: log}
	names, err := fs.Glob(files, "assets/*")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(body)
		s.assets[path.Base(name)] = asset{body, mime.TypeByExtension(path.Ext(name)), hex.EncodeToString(sum[:6])}
	}
	all := template.FuncMap{"asset": s.address, "version": version.String, "time": Time, "ago": Ago, "bytes": Bytes}
	maps.Copy(all, funcs)
	if names, err = fs.Glob(files, "pages/*.html"); err != nil {
		return nil, err
	}
	parts, err := fs.Glob(files, "parts/*.html")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if path.Base(name) == "layout.html" {
			continue
		}
		t, err := template.New("").Funcs(all).ParseFS(files, append([]string{"pages/layout.html", name}, parts...)...)
		if err != nil {
			return nil, err
		}
		s.pages[strings.TrimSuffix(path.Base(name), ".html")] = t
	}
	if len(s.pages) == 0 {
		return nil, errors.New("page: want pages/*.html")
	}
	return s, nil
}

// address returns where an asset is.
func (s *Set) address(name string) (string, error) {
	a, ok := s.assets[name]
	if !ok {
		return "", fmt.Errorf("no asset %s", name)
	}
	return s.prefix + name + "?v=" + a.stamp, nil
}

// Handler gives h what every page has: headers, forms from this site only and of bounded size, and at most limit of time (0: h bounds its own).
func (s *Set) Handler(limit time.Duration, h http.Handler) http.Handler {
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil {
			r.Body = http.MaxBytesReader(w, r.Body, MaxForm)
		}
		if limit > 0 {
			ctx, cancel := context.WithTimeout(r.Context(), limit)
			defer cancel()
			r = r.WithContext(ctx)
		}
		h.ServeHTTP(w, r)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", Policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if err := kithttp.SameOrigin(r); err != nil {
			s.refused(w, r, err)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// Render makes the page in memory first, so that a mistake in a template is an error page and not half a page.
func (s *Set) Render(w http.ResponseWriter, r *http.Request, code int, name string, data any) {
	var out bytes.Buffer
	t, ok := s.pages[name]
	err := fmt.Errorf("no page %s", name)
	if ok {
		err = t.ExecuteTemplate(&out, "layout.html", data)
	}
	if err != nil {
		s.log.ErrorContext(r.Context(), "page not rendered", "page", name, logging.Err, err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	html := out.Bytes()
	if s.Language != nil {
		html = s.Language(r).Answer(w.Header(), html)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(html) // it fails only if the peer is gone
}

// HTML returns what t makes of data, for the body of a page.
func HTML(t *template.Template, data any) (template.HTML, error) {
	var out strings.Builder
	err := t.Execute(&out, data)
	return template.HTML(out.String()), err // html/template escaped it
}

// Part writes what the template name makes of data; it is one that page defines or uses.
func (s *Set) Part(w io.Writer, page, name string, data any) error {
	t, ok := s.pages[page]
	if !ok {
		return fmt.Errorf("no page %s", page)
	}
	return t.ExecuteTemplate(w, name, data)
}

// Asset serves {file} of the route's pattern.
func (s *Set) Asset(w http.ResponseWriter, r *http.Request) {
	a, ok := s.assets[r.PathValue("file")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", a.kind)
	if r.URL.Query().Get("v") == a.stamp {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(a.body) // it fails only if the peer is gone
}

// Form reads the form of a request; Invalid if it cannot be read or is too large.
func Form(r *http.Request) (url.Values, error) {
	if err := r.ParseForm(); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return nil, errs.New(errs.Invalid, "the form is larger than %d kB", MaxForm>>10)
		}
		return nil, errs.New(errs.Invalid, "the form cannot be read: %w", err)
	}
	return r.PostForm, nil
}

// Said is a page's answer to the form that was sent last. Pages embed it; the zero value says nothing.
type Said struct {
	Done    string // what was done, a sentence
	Secret  string // newly made; shown only once
	form    string // whose problem it is
	problem string
	values  url.Values
}

// Refused says that a form could not be done, and keeps what was typed.
func Refused(form string, err error, values url.Values) Said {
	return Said{form: form, problem: Words(err), values: values}
}

// Problem returns what is wrong with a form that was sent, a sentence; "" for others.
func (s Said) Problem(form string) string {
	if s.form != form {
		return ""
	}
	return s.problem
}

// Value returns what was typed into a form that was refused.
func (s Said) Value(form, field string) string {
	if s.form != form {
		return ""
	}
	return s.values.Get(field)
}

// Picked reports whether a value was chosen for a field, of several, in a form that was refused.
func (s Said) Picked(form, field, value string) bool {
	return s.form == form && slices.Contains(s.values[field], value)
}

// Lost returns the problem of a form that is none of those on the page: what it was about has gone meanwhile.
func (s Said) Lost(forms []string) string {
	if s.form == "" || slices.Contains(forms, s.form) {
		return ""
	}
	return s.problem
}

// Expected reports whether err is an answer to the person who asked, in words for them; else it is ours to mend and to log.
func Expected(err error) bool {
	switch errs.KindOf(err) {
	case errs.Invalid, errs.NotFound, errs.Conflict, errs.Unauthenticated, errs.Denied, errs.Exhausted, errs.Unavailable:
		return true
	}
	return false
}

// Words returns what a page says of err: a sentence.
func Words(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "The database takes too long to answer."
	}
	return Sentence(errs.Public(err))
}

// Sentence makes a message of an error a sentence of a page. A name at its beginning, such as a thing id, stays as it is.
func Sentence(s string) string {
	if s == "" {
		return ""
	}
	word, _, _ := strings.Cut(s, " ")
	if _, n := utf8.DecodeRuneInString(s); !strings.Contains(strings.TrimSuffix(word, ":"), ":") {
		s = strings.ToUpper(s[:n]) + s[n:]
	}
	if !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "?") {
		s += "."
	}
	return s
}

// Local returns next if it is a page below home, else home: a page that signs in must not send people elsewhere. not are the beginnings of
// addresses that no person is led to.
func Local(next, home string, not ...string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") || strings.HasPrefix(u.Path, "//") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") ||
		path.Clean(u.Path) != u.Path || u.Path != home && !strings.HasPrefix(u.Path, strings.TrimSuffix(home, "/")+"/") {
		return home
	}
	for _, n := range not {
		if strings.HasPrefix(u.Path, n) {
			return home
		}
	}
	return u.RequestURI()
}

// Time is a moment; the script shows it in the browser's zone.
func Time(t time.Time) template.HTML {
	if t.IsZero() {
		return "–"
	}
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `">` + t.Format("2006-01-02 15:04:05 UTC") + `</time>`)
}

// Ago is a moment told by its distance from now, which the script keeps true.
func Ago(t time.Time) template.HTML {
	if t.IsZero() {
		return "–"
	}
	t = t.UTC()
	full := t.Format("2006-01-02 15:04:05 UTC")
	return template.HTML(`<time class="ago" datetime="` + t.Format(time.RFC3339) + `" title="` + full + `">` + full + `</time>`)
}

// Bytes is a size for people.
func Bytes(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	f, unit := float64(n)/(1<<20), "MiB"
	for _, next := range []string{"GiB", "TiB"} {
		if f < 1<<10 {
			break
		}
		f, unit = f/(1<<10), next
	}
	return fmt.Sprintf("%.1f %s", f, unit)
}

// Change is a difference of sizes for people: +1.5 KiB, −1 byte.
func Change(n int64) string {
	if n < 0 {
		return "−" + Bytes(-n)
	}
	return "+" + Bytes(n)
}
