package op_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/op"
	"kennel/infra/thing"
)

type paging struct {
	After string `query:"after" about:"Where the page before ended."`
	Limit int    `query:"limit" about:"At most so many." min:"1" max:"500" default:"2"`
}

type search struct {
	Thing thing.ID  `path:"thing"`
	State string    `query:"state" about:"Only those." enum:"open,done"`
	Since time.Time `query:"since" about:"Only later ones."`
	Sure  bool      `query:"sure" about:"Yes."`
	paging
}

type note struct {
	Why string `json:"why"`
}

type acknowledge struct {
	ID   int64 `path:"id" of:"alert"`
	Note note  `body:""`
}

type upload struct {
	Body op.Raw `body:""`
}

// asked is a request whose function reads the parameters by itself.
type asked struct {
	Thing thing.ID   `query:"thing" about:"Of this one."`
	All   url.Values `query:"*"`
}

// signed is a request of anyone, with a cookie.
type signed struct {
	Request *http.Request `request:""`
	Body    note          `body:""`
}

const (
	mine  thing.ID = "vic:00e20100"
	other thing.ID = "vic:00e20101"
)

func operations() op.List {
	return op.List{
		op.New(op.Spec{Route: "GET /v1/things/{thing}/notes", Roles: auth.Staff, Own: true, Strict: true},
			func(_ context.Context, r search) (op.Page[string], error) {
				b, err := json.Marshal(r)
				return op.Of([]string{string(b), "last"}, r.Limit, func(s string) string { return s }), err
			}),
		op.New(op.Spec{Route: "PUT /v1/acks/{id}", Roles: auth.Changers, MaxBody: 40}, func(_ context.Context, r acknowledge) (op.None, error) {
			if r.ID != 7 || r.Note.Why != "me" {
				return op.None{}, errs.Coded(errs.Conflict, "not_mine", "%+v", r)
			}
			return op.None{}, nil
		}),
		op.New(op.Spec{Route: "POST /v1/notes", By: "nothing", Status: http.StatusCreated}, func(_ context.Context, n note) (note, error) { return n, nil }),
		op.New(op.Spec{Route: "GET /v1/asked", Roles: auth.Staff, Own: true}, func(_ context.Context, a asked) (op.Page[string], error) {
			return op.Page[string]{Items: []string{a.All.Encode()}, More: "next", By: "before"}, nil
		}),
		op.New(op.Spec{Route: "POST /v1/signed", By: "a secret", SameSite: true}, func(_ context.Context, s signed) (http.Handler, error) {
			if s.Body.Why != "secret" {
				return nil, errs.Coded(errs.Denied, "wrong", "not %s", s.Body.Why)
			}
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s.Request.Header.Get("Cookie")) }), nil
		}),
		op.New(op.Spec{Route: "GET /v1/none", By: "nothing"}, func(context.Context, op.None) ([]string, error) { return nil, nil }),
		op.New(op.Spec{Route: "GET /v1/panic", By: "nothing"}, func(context.Context, op.None) (op.None, error) { panic("oh") }),
		op.New(op.Spec{Route: "GET /v1/late", By: "nothing", Timeout: time.Millisecond}, func(ctx context.Context, _ op.None) (op.None, error) {
			<-ctx.Done()
			return op.None{}, ctx.Err()
		}),
		op.New(op.Spec{Route: "POST /v1/raw", By: "nothing", BodyMedia: "text/csv", AnswerMedia: "text/csv", Timeout: -1}, func(_ context.Context, u upload) (http.Handler, error) {
			b, err := io.ReadAll(u.Body)
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(append(b, u.Body.Type...)) }), err
		}),
	}
}

func serve() http.Handler {
	mux := http.NewServeMux()
	operations().Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler), Owns: func(_ context.Context, account string, id thing.ID) (time.Time, bool, error) {
		return time.Unix(1, 0), account == "ann" && id == mine, nil
	}})
	return mux
}

func ask(h http.Handler, role auth.Role, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if method == "POST" && path == "/v1/raw" {
		r.Header.Set("Content-Type", "text/csv")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: role, Account: "ann"})))
	return w
}

// TestOperation: what is read of a request, who may ask, and what is answered.
func TestOperation(t *testing.T) {
	h := serve()
	notes := "/v1/things/" + string(mine) + "/notes"
	for _, tc := range []struct {
		role               auth.Role
		method, path, body string
		code               int
		want               string // in the answer
	}{
		{auth.Viewer, "GET", notes, "", 200, `\"Limit\":2`},
		{auth.Viewer, "GET", notes + "?limit=3&state=open&since=2026-05-06T07:08:09Z&sure=true&after=x", "", 200,
			`{\"Thing\":\"vic:00e20100\",\"State\":\"open\",\"Since\":\"2026-05-06T07:08:09Z\",\"Sure\":true,\"After\":\"x\",\"Limit\":3}`},
		{auth.Viewer, "GET", notes + "?limit=501", "", 400, "1 to 500"},
		{auth.Viewer, "GET", notes + "?limit=x", "", 400, "limit"},
		{auth.Viewer, "GET", notes + "?state=closed", "", 400, "open, done"},
		{auth.Viewer, "GET", notes + "?since=yesterday", "", 400, "since"},
		{auth.Viewer, "GET", notes + "?sure=perhaps", "", 400, "sure"},
		{auth.Viewer, "GET", notes + "?stat=open", "", 400, "stat"},
		{auth.Viewer, "GET", notes + "?limit=1&limit=2", "", 400, "2 times"},
		{auth.Viewer, "GET", "/v1/things/nobody/notes", "", 400, "nobody"},
		{auth.Owner, "GET", notes, "", 200, "last"},
		{auth.Owner, "GET", "/v1/things/" + string(other) + "/notes", "", 404, "no_thing"},
		{"", "GET", notes, "", 401, ""},
		{auth.Thing, "GET", notes, "", 403, ""},
		{auth.Viewer, "PUT", "/v1/acks/7", `{"why":"me"}`, 403, ""},
		{auth.Owner, "PUT", "/v1/acks/7", `{"why":"me"}`, 403, ""},
		{auth.Support, "PUT", "/v1/acks/7", `{"why":"me"}`, 204, ""},
		{auth.Support, "PUT", "/v1/acks/8", `{"why":"me"}`, 409, "not_mine"},
		{auth.Support, "PUT", "/v1/acks/seven", `{"why":"me"}`, 404, "no alert seven"},
		{auth.Support, "PUT", "/v1/acks/7", `{"what":"me"}`, 400, "what"},
		{auth.Support, "PUT", "/v1/acks/7", `{"why":"` + strings.Repeat("x", 40) + `"}`, 400, "larger than 40"},
		{"", "POST", "/v1/notes", `{"why":"so"}`, 201, `"so"`},
		{auth.Viewer, "GET", "/v1/asked?value=2&value=1&unknown=x", "", 200, "unknown=x&value=2&value=1"},
		{auth.Owner, "GET", "/v1/asked?thing=" + string(mine), "", 200, ""},
		{auth.Owner, "GET", "/v1/asked?thing=" + string(other), "", 404, "no_thing"},
		{auth.Owner, "GET", "/v1/asked", "", 403, ""},
		{"", "GET", "/v1/none", "", 200, "[]"},
		{"", "GET", "/v1/panic", "", 500, "internal"},
		{"", "GET", "/v1/late", "", 503, "unavailable"},
		{"", "POST", "/v1/raw", "a,b\n", 200, "a,b\ntext/csv"},
	} {
		w := ask(h, tc.role, tc.method, tc.path, tc.body)
		if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s %s as %q: %d %s; want %d, %q", tc.method, tc.path, tc.role, w.Code, w.Body, tc.code, tc.want)
		}
		var p kithttp.Problem
		if tc.code >= 400 && (json.Unmarshal(w.Body.Bytes(), &p) != nil || p.Kind == "") {
			t.Errorf("%s %s: %s is no problem", tc.method, tc.path, w.Body)
		}
	}
	if link := ask(h, auth.Viewer, "GET", notes+"?state=open", "").Header().Get("Link"); link != "<"+notes+`?after=last&state=open>; rel="next"` {
		t.Errorf("Link %q", link)
	}
	if link := ask(h, auth.Viewer, "GET", notes+"?limit=3", "").Header().Get("Link"); link != "" {
		t.Errorf("Link %q of the last page", link)
	}
	if link := ask(h, auth.Viewer, "GET", "/v1/asked?before=first", "").Header().Get("Link"); link != `</v1/asked?before=next>; rel="next"` {
		t.Errorf("Link %q", link)
	}
}

// TestSameSite: an operation that anyone may ask reads the cookie of its own pages, and refuses other sites'; what was tried is noted without its words.
func TestSameSite(t *testing.T) {
	var log strings.Builder
	mux := http.NewServeMux()
	operations().Mount(mux, op.Doors{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for _, tc := range []struct {
		from, why string
		code      int
		want      string
	}{
		{"", "secret", 200, "a=b"},
		{"same-origin", "secret", 200, "a=b"},
		{"cross-site", "secret", 403, "cross_site"},
		{"same-origin", "swordfish", 403, "wrong"},
	} {
		r := httptest.NewRequest("POST", "/v1/signed", strings.NewReader(`{"why":"`+tc.why+`"}`))
		r.Header.Set("Cookie", "a=b")
		if tc.from != "" {
			r.Header.Set("Sec-Fetch-Site", tc.from)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s from %q: %d %s; want %d, %q", tc.why, tc.from, w.Code, w.Body, tc.code, tc.want)
		}
	}
	mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/panic", nil))
	mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/late", nil))
	text := log.String()
	for want, n := range map[string]int{"code=wrong": 1, "code=cross_site": 1, "swordfish": 0, `route="GET /v1/late"`: 1, `route="GET /v1/panic"`: 1} {
		if strings.Count(text, want) != n {
			t.Errorf("%q is noted %d times, want %d:\n%s", want, strings.Count(text, want), n, text)
		}
	}
}

// TestSlowBody: a body that comes byte by byte is not waited for beyond the operation's Timeout.
func TestSlowBody(t *testing.T) {
	ended := make(chan error, 1)
	mux := http.NewServeMux()
	op.List{op.New(op.Spec{Route: "POST /v1/slow", By: "nothing", BodyMedia: "text/csv", Timeout: 50 * time.Millisecond}, func(_ context.Context, u upload) (op.None, error) {
		_, err := io.ReadAll(u.Body)
		ended <- err
		return op.None{}, err
	})}.Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler)})
	s := httptest.NewServer(mux)
	defer s.Close()
	body, end := io.Pipe()
	defer end.Close()
	go func() {
		if resp, err := http.Post(s.URL+"/v1/slow", "text/csv", body); err == nil {
			resp.Body.Close()
		}
	}()
	if _, err := end.Write([]byte("t")); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("half a body was taken for a whole one")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the body is still waited for")
	}
}

// TestDescription: what an operation says of its request and its answer.
func TestDescription(t *testing.T) {
	all := operations()
	var names []string
	for _, p := range all[0].Query {
		names = append(names, p.Name)
	}
	if got := strings.Join(names, " "); got != "state since sure after limit" {
		t.Errorf("parameters %q", got)
	}
	if want := map[string]any{"type": "integer", "minimum": int64(1), "maximum": int64(500)}; !reflect.DeepEqual(all[0].Query[4].Schema, want) {
		t.Errorf("limit is %v", all[0].Query[4].Schema)
	}
	for i, want := range []struct{ body, answer reflect.Type }{{nil, reflect.TypeFor[[]string]()}, {reflect.TypeFor[note](), nil}, {reflect.TypeFor[note](), reflect.TypeFor[note]()},
		{nil, reflect.TypeFor[[]string]()}, {reflect.TypeFor[note](), nil}, {nil, reflect.TypeFor[[]string]()}, {nil, nil}, {nil, nil}, {nil, nil}} {
		if all[i].Body != want.body || all[i].Answer != want.answer {
			t.Errorf("%s: body %v, answer %v; want %v, %v", all[i].Route, all[i].Body, all[i].Answer, want.body, want.answer)
		}
	}
}

// TestBadDeclarations: a declaration that cannot work does not come as far as a request.
func TestBadDeclarations(t *testing.T) {
	never := func(what string, declare func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", what)
			}
		}()
		declare()
	}
	never("no such part of the path", func() {
		op.New(op.Spec{Route: "GET /v1/acks"}, func(context.Context, acknowledge) (op.None, error) { return op.None{}, nil })
	})
	never("a robot's operation without a robot", func() {
		op.New(op.Spec{Route: "GET /v1/notes", Own: true}, func(context.Context, op.None) (op.None, error) { return op.None{}, nil })
	})
	type bad struct {
		When map[string]string `query:"when" default:"x"`
	}
	never("a field of no known kind", func() {
		op.New(op.Spec{Route: "GET /v1/notes"}, func(context.Context, bad) (op.None, error) { return op.None{}, nil })
	})
	type loose struct {
		N int `query:"n" min:"1" max:"many"`
	}
	never("a bad bound", func() {
		op.New(op.Spec{Route: "GET /v1/notes"}, func(context.Context, loose) (op.None, error) { return op.None{}, nil })
	})
}

// FuzzQuery: any query is answered, by a page or by what is wrong with it.
func FuzzQuery(f *testing.F) {
	f.Add("limit=3&state=open", string(mine))
	f.Add("limit=99999999999999999999&since=2026-05-06T07:08:09Z", "vic:")
	h := serve()
	f.Fuzz(func(t *testing.T, query, id string) {
		r := httptest.NewRequest("GET", "/v1/things/x/notes", nil)
		r.URL.RawQuery, r.URL.Path = query, "/v1/things/"+url.PathEscape(id)+"/notes"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: auth.Viewer})))
		if w.Code >= 500 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	})
}
