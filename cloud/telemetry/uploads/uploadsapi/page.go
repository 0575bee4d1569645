package uploadsapi

import (
	"context"
	_ "embed"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"kennel/cloud/page"
	"kennel/cloud/telemetry/uploads"
	"kennel/cloud/telemetry/uploads/logfile"
	"kennel/infra/api/events"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/op"
	"kennel/infra/thing"
)

//go:embed page.html
var pageText string

var pages = template.Must(template.New("").Funcs(template.FuncMap{"time": page.Time, "ago": page.Ago, "bytes": page.Bytes, "marked": marked, "lines": linesOf, "sentence": page.Sentence}).Parse(pageText))

// shownLines is how many lines a page shows.
const shownLines = 500

// Pages are the tab of a robot's logs, and the page of each log.
func Pages(svc *uploads.Service) []page.Extra {
	return []page.Extra{
		{Label: "Logs", Address: "/things/{thing}/logs", Tab: func(ctx context.Context, r *http.Request) (string, template.HTML, error) {
			body, err := listPage(ctx, svc, r)
			return "Logs", body, err
		}},
		{Address: "/things/{thing}/logs/{log}", Tab: func(ctx context.Context, r *http.Request) (string, template.HTML, error) {
			return logPage(ctx, svc, r)
		}},
	}
}

// form holds the fields that both pages have.
type form struct {
	Thing  thing.ID
	Query  url.Values // as it was sent
	Levels []events.Level
}

// Get returns what was typed into a field.
func (f form) Get(field string) string { return f.Query.Get(field) }

// Any reports whether something was asked for.
func (f form) Any() bool {
	for _, v := range f.Query {
		if strings.Join(v, "") != "" {
			return true
		}
	}
	return false
}

// The parameters of both pages.
type (
	listed struct {
		choice
		words
	}
	opened struct {
		lines
		part
	}
)

type listView struct {
	form
	KeepDays int
	Kinds    []string
	May      bool // the reader may send commands
	Logs     []uploads.Log
	Found    *uploads.Found // of a search for lines; nil: the logs are listed
	Next     string
}

func listPage(ctx context.Context, svc *uploads.Service, r *http.Request) (template.HTML, error) {
	id, err := kithttp.Thing(r)
	if err != nil {
		return "", err
	}
	q := r.URL.Query()
	req, err := op.Query[listed](q)
	if err != nil {
		return "", err
	}
	logs, find := req.query(ctx, id, uploads.DefaultLimit), lines{words: req.words}.search(part{}, 0)
	v := listView{form: form{id, q, logfile.Levels}, KeepDays: int(svc.Keep() / (24 * time.Hour)), Kinds: uploads.Kinds,
		May: auth.Check(auth.CallerFrom(ctx).Role, auth.Changers) == nil}
	next := ""
	if find.Any() {
		f, err := svc.Search(ctx, logs, find)
		if err != nil {
			return "", err
		}
		v.Found, next = &f, f.Next
	} else {
		if v.Logs, err = svc.List(ctx, logs); err != nil {
			return "", err
		}
		if n := len(v.Logs); n == uploads.DefaultLimit {
			next = v.Logs[n-1].ID
		}
	}
	if next != "" {
		v.Next = again(q, "after", next)
	}
	return page.HTML(pages.Lookup("list"), v)
}

// again is a query like q with another value of one parameter.
func again(q url.Values, name, value string) string {
	out := url.Values{}
	for k, v := range q {
		if k != name && strings.Join(v, "") != "" {
			out[k] = v
		}
	}
	if value != "" {
		out.Set(name, value)
	}
	return "?" + out.Encode()
}

type logView struct {
	form
	uploads.Contents
	Refused     string // why the log cannot be shown; "": it is
	First, Next string
}

func logPage(ctx context.Context, svc *uploads.Service, r *http.Request) (string, template.HTML, error) {
	id, err := kithttp.Thing(r)
	if err != nil {
		return "", "", err
	}
	q := r.URL.Query()
	req, err := op.Query[opened](q)
	if err != nil {
		return "", "", err
	}
	l, err := svc.Get(ctx, id, "", r.PathValue("log"))
	if err != nil {
		return "", "", err
	}
	v := logView{form: form{id, q, logfile.Levels}}
	v.Contents, err = svc.Read(ctx, l, req.search(req.part, shownLines))
	v.Log = l
	if errs.KindOf(err) == errs.Invalid { // it can still be downloaded, or searched for something else
		v.Refused, err = page.Words(err), nil
	}
	if err != nil {
		return "", "", err
	}
	if v.More > 0 {
		v.Next = again(q, "skip", strconv.Itoa(v.More))
	}
	if req.Skip > 0 {
		v.First = again(q, "skip", "")
	}
	body, err := page.HTML(pages.Lookup("log"), v)
	return l.Name, body, err
}

// group is lines of one file.
type group struct {
	File  string // "": the log has one file
	Lines []logfile.Line
}

// Groups returns the lines by file.
func (v logView) Groups() (out []group) {
	for _, l := range v.Lines {
		if len(v.Files) < 2 {
			l.File = ""
		}
		if n := len(out); n == 0 || out[n-1].File != l.File {
			out = append(out, group{File: l.File})
		}
		last := &out[len(out)-1]
		last.Lines = append(last.Lines, l)
	}
	return out
}

// linesView is lines and the text that they were found by.
type linesView struct {
	Lines []logfile.Line
	Text  string
}

func linesOf(lines []logfile.Line, text string) linesView { return linesView{lines, text} }

// piece is a part of a line, which was looked for or not.
type piece struct {
	Text string
	Hit  bool
}

// marked cuts a line at what was looked for. Where the lower case of a line is longer or shorter than the line, nothing is marked.
func marked(line, text string) []piece {
	lower, want := strings.ToLower(line), strings.ToLower(strings.TrimSpace(text))
	if want == "" || len(lower) != len(line) {
		return []piece{{line, false}}
	}
	var out []piece
	for {
		i := strings.Index(lower, want)
		if i < 0 {
			return append(out, piece{line, false})
		}
		out = append(out, piece{line[:i], false}, piece{line[i : i+len(want)], true})
		line, lower = line[i+len(want):], lower[i+len(want):]
	}
}
