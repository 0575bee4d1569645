package motionapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/command/commandpg"
	"kennel/cloud/fleet/motion"
	"kennel/cloud/fleet/motion/motionpg"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/motionwire"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	rex = thing.ID("aibo:00e20100") // ann's
	bea = thing.ID("aibo:00e20101") // bob's
	vic = thing.ID("vic:00e20102")  // has no owner
)

// house is the slice with two owners, and what it sends and writes down.
type house struct {
	t      *testing.T
	mux    *http.ServeMux
	outbox *command.Service
	robot  map[string]func(ctx context.Context, id thing.ID, body []byte) ([]byte, error)
	since  map[thing.ID]time.Time
	sent   []string
	audit  []string
	store  *motionpg.Store
}

func newHouse(t *testing.T) *house {
	pool := pgtest.New(t)
	h := &house{t: t, mux: http.NewServeMux(), outbox: command.New(commandpg.New(pool)), store: motionpg.New(pool), robot: map[string]func(context.Context, thing.ID, []byte) ([]byte, error){}}
	h.since = map[thing.ID]time.Time{rex: time.Now().Add(-time.Hour), bea: time.Now().Add(-time.Hour)}
	svc := motion.New(motion.Config{Store: h.store, Commands: h.outbox, Log: slog.New(slog.DiscardHandler),
		Since: func(_ context.Context, id thing.ID) (time.Time, error) { return h.since[id], nil },
		Send: func(_ context.Context, id thing.ID, name string, _ []byte) error {
			h.sent = append(h.sent, string(id)+" "+name)
			return nil
		}})
	for name, f := range Handlers(svc) {
		h.robot[strings.TrimPrefix(name, "motion/")] = f
	}
	Operations(svc, Config{
		Known: func(_ context.Context, id thing.ID) error {
			if id != rex && id != bea && id != vic {
				return errs.Coded(errs.NotFound, "no_thing", "thing %s is not known", id)
			}
			return nil
		},
		Audit: func(_ context.Context, action, object, detail string) error {
			h.audit = append(h.audit, strings.Join([]string{action, object, detail}, " "))
			return nil
		}}).Mount(h.mux, op.Doors{Log: slog.New(slog.DiscardHandler), Owns: func(_ context.Context, account string, id thing.ID) (time.Time, bool, error) {
		return h.since[id], account == "ann" && id == rex || account == "bob" && id == bea, nil
	}})
	return h
}

var (
	ann  = auth.Caller{Role: auth.Owner, Account: "ann", Name: "ann@example.org"}
	bob  = auth.Caller{Role: auth.Owner, Account: "bob"}
	desk = auth.Caller{Role: auth.Admin, Name: "op@example.org"}
)

func (h *house) do(c auth.Caller, method, path, body string) (int, string) {
	r := httptest.NewRequestWithContext(h.t.Context(), method, path, strings.NewReader(body))
	r = r.WithContext(auth.WithCaller(r.Context(), c))
	r.Header.Set("Content-Type", "application/octet-stream")
	if method == "POST" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	h.mux.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// ask makes a request of a robot.
func (h *house) ask(id thing.ID, method string, req any) ([]byte, error) {
	b, err := json.Marshal(req)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.robot[method](h.t.Context(), id, b)
}

func (h *house) want(id thing.ID, sum string) (w motionwire.Want) {
	h.t.Helper()
	b, err := h.ask(id, "sync", motionwire.Have{V: 1, Body: sum})
	if err == nil {
		w, err = motionwire.ParseWant(b)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return w
}

// body describes the robots.
var body = motionwire.Body{V: 1, Model: "toy", Ending: "toy", Joints: []motionwire.Joint{{Name: "robot.body.head.yaw", Slot: "robot.body.head.yaw.angle"}}, Links: []motionwire.Link{{Joint: "robot.body.head.yaw", Parent: -1}},
	Bones: []motionwire.Bone{{Link: 0, Wide: 0.1}}, Motions: []motionwire.Sequence{{Name: "sit", SpanMS: 400, Joints: []string{"robot.body.head.yaw"}, Keyframes: []motionwire.Keyframe{{Values: []int32{0}}, {AtMS: 400, Values: []int32{9}}}}}}

// introduce tells the robots' body, and returns its hash.
func (h *house) introduce(ids ...thing.ID) string {
	h.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, id := range ids {
		if _, err := h.robot["body"](h.t.Context(), id, b); err != nil {
			h.t.Fatal(err)
		}
	}
	return motionwire.Sum(b)
}

// TestAbuse: no person reaches another's robot, no robot another robot's motions, and no size, name, count or number in a message passes its bound.
func TestAbuse(t *testing.T) {
	h := newHouse(t)
	h.introduce(rex, bea)
	const at = "/v1/things/aibo:00e20100/motions"
	if code, b := h.do(bob, "PUT", "/v1/things/aibo:00e20101/motions/hop", "bob's hop"); code != 200 {
		t.Fatalf("%d %s", code, b)
	}
	for _, tt := range []struct {
		who                auth.Caller
		method, path, body string
		code               int
		want               string
	}{
		{auth.Caller{}, "GET", at, "", 401, "sign in"},
		{bob, "GET", at, "", 404, "no_thing"},
		{bob, "PUT", at + "/hop", "x", 404, "no_thing"},
		{bob, "DELETE", at + "/hop", "", 404, "no_thing"},
		{bob, "POST", "/v1/things/aibo:00e20100/play", `{"name":"sit"}`, 404, "no_thing"},
		{ann, "GET", "/v1/things/aibo:00e20101/motions/hop/file", "", 404, "no_thing"},
		{auth.Caller{Role: auth.Viewer}, "PUT", at + "/hop", "x", 403, "denied"},
		{auth.Caller{Role: auth.Viewer}, "POST", "/v1/things/aibo:00e20100/play", `{"name":"sit"}`, 403, "denied"},
		{desk, "PUT", "/v1/things/aibo:00e20199/motions/hop", "x", 404, "no_thing"},
		{desk, "PUT", "/v1/things/vic:00e20102/motions/hop", "x", 404, "no_joints"},
		{ann, "GET", at + "/hop", "", 404, "no_motion"}, // bob's has that name
		{ann, "GET", at + "/sit/file", "", 404, "no_motion"},
		{ann, "DELETE", at + "/sit", "", 404, "no_motion"}, // of the library
		{ann, "PUT", at + "/hop", "", 400, "empty"},
		{ann, "PUT", at + "/hop", strings.Repeat("x", motionwire.MaxFile+1), 400, `"size"`},
		{ann, "PUT", at + "/hop", strings.Repeat("x", 100<<20), 400, `"size"`},
		{ann, "PUT", at + "/sit", "x", 400, "name_taken"},
		{ann, "PUT", at + "/..%2Fhop", "x", 400, `"name"`},
		{ann, "PUT", at + "/Hop", "x", 400, `"name"`},
		{ann, "PUT", at + "/" + strings.Repeat("x", 41), "x", 400, `"name"`},
		{ann, "POST", "/v1/things/aibo:00e20100/play", `{"name":"../sit"}`, 400, "want an animation"},
	} {
		if code, b := h.do(tt.who, tt.method, tt.path, tt.body); code != tt.code || !strings.Contains(b, tt.want) {
			t.Errorf("%s %s of %d bytes: %d %.200s, want %d %q", tt.method, tt.path, len(tt.body), code, b, tt.code, tt.want)
		}
	}
	hop := motionwire.Ref{Name: "hop", SHA256: motionwire.Sum([]byte("bob's hop"))}
	if b, err := h.ask(rex, "file", hop); errs.KindOf(err) != errs.NotFound {
		t.Errorf("a robot got another's motion: %s, %v", b, err)
	}
	if _, err := h.ask(rex, "verdict", motionwire.Verdict{V: 1, Ref: hop, Kept: true}); errs.KindOf(err) != errs.NotFound {
		t.Errorf("a robot judged another's motion: %v", err)
	}
	if _, err := h.ask(bea, "verdict", motionwire.Verdict{V: 1, Ref: motionwire.Ref{Name: "hop", SHA256: motionwire.Sum([]byte("an older hop"))}, Kept: true}); errs.KindOf(err) != errs.NotFound {
		t.Errorf("a verdict about other bytes: %v", err)
	}
	many := motionwire.Verdict{V: 1, Ref: hop}
	for range 101 {
		many.Findings = append(many.Findings, motionwire.Finding{Code: "x"})
	}
	long := motionwire.Verdict{V: 1, Ref: hop, Motion: &motionwire.Sequence{Keyframes: []motionwire.Keyframe{{}, {AtMS: motionwire.MaxSpanMS + 1}}}}
	uneven := motionwire.Verdict{V: 1, Ref: hop, Motion: &motionwire.Sequence{Joints: []string{"a"}, Keyframes: []motionwire.Keyframe{{}}}}
	loop, huge := body, body
	loop.Links = []motionwire.Link{{Parent: 0}}
	huge.Model = strings.Repeat("x", motionwire.MaxBody)
	for _, tt := range []struct {
		method string
		req    any
	}{{"verdict", many}, {"verdict", long}, {"verdict", uneven}, {"body", loop}, {"body", huge}, {"body", 7}, {"sync", "x"}, {"file", motionwire.Ref{Name: "../hop", SHA256: hop.SHA256}}, {"file", motionwire.Ref{Name: "hop", SHA256: "zz"}}} {
		if _, err := h.ask(bea, tt.method, tt.req); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %v", tt.method, err)
		}
	}
	for i := range motionwire.MaxMotions {
		if code, b := h.do(ann, "PUT", fmt.Sprintf("%s/m%d", at, i), "x"); code != 200 {
			t.Fatalf("motion %d: %d %s", i, code, b)
		}
	}
	if code, b := h.do(ann, "PUT", at+"/more", "x"); code != 429 || !strings.Contains(b, "too_many") {
		t.Errorf("one more: %d %s", code, b)
	}
	if code, b := h.do(ann, "PUT", at+"/m0", "y"); code != 200 {
		t.Errorf("a new form of one: %d %s", code, b)
	}
	big := strings.Repeat("x", motionwire.MaxFile)
	for i := range motion.MaxTotal/motionwire.MaxFile - 1 {
		if code, b := h.do(ann, "PUT", fmt.Sprintf("%s/m%d", at, i), big); code != 200 {
			t.Fatalf("big %d: %d %.200s", i, code, b)
		}
	}
	full := 0
	for i := range 3 {
		if code, _ := h.do(ann, "PUT", fmt.Sprintf("%s/m%d", at, 20+i), big); code == 429 {
			full++
		}
	}
	if full == 0 {
		t.Error("more bytes than a robot may have")
	}
	if slices.ContainsFunc(h.audit, func(line string) bool { return strings.Contains(line, string(bea)) && !strings.Contains(line, "hop") }) {
		t.Errorf("audit %q", h.audit)
	}
}

// TestLife: a motion is uploaded, fetched and judged by its robot, refused or kept, listed, played, replaced and deleted; a new body judges again; the next owner has
// none of it.
func TestLife(t *testing.T) {
	h := newHouse(t)
	if code, b := h.do(ann, "GET", "/v1/things/aibo:00e20100/motions", ""); code != 200 || !strings.Contains(b, `"motions":[]`) {
		t.Errorf("before it has spoken: %d %s", code, b)
	}
	if w := h.want(rex, "abc"); !w.Body || len(w.Motions) != 0 {
		t.Errorf("%+v", w)
	}
	sum := h.introduce(rex)
	const at = "/v1/things/aibo:00e20100/motions"
	entry := func(name string) (e motion.Entry) {
		t.Helper()
		code, b := h.do(ann, "GET", at+"/"+name, "")
		if code != 200 {
			t.Fatalf("%s: %d %s", name, code, b)
		}
		if err := json.Unmarshal([]byte(b), &e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	if code, b := h.do(ann, "PUT", at+"/hop", "hop one"); code != 200 || !strings.Contains(b, `"state":"waiting"`) || !slices.Equal(h.sent, []string{"aibo:00e20100 motion"}) {
		t.Errorf("%d %s; %q", code, b, h.sent)
	}
	if code, b := h.do(ann, "POST", "/v1/things/aibo:00e20100/play", `{"name":"hop"}`); code != 409 || !strings.Contains(b, `"waiting"`) {
		t.Errorf("play of one that waits: %d %s", code, b)
	}
	w := h.want(rex, sum)
	if w.Body || len(w.Motions) != 1 || !w.Motions[0].Judge || w.Motions[0].Name != "hop" {
		t.Fatalf("%+v", w)
	}
	b, err := h.ask(rex, "file", w.Motions[0].Ref)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := motionwire.ParseFile(b); err != nil || string(f.File) != "hop one" {
		t.Fatalf("%q, %v", f.File, err)
	}
	if _, err := h.ask(rex, "verdict", motionwire.Verdict{V: 1, Ref: w.Motions[0].Ref, Why: "row 7: it falls\x00", Findings: []motionwire.Finding{{Severity: "error", Code: "tip", Offset: 12, What: "row 7", Expected: "the weight above the paws", Found: "the body tips"}}}); err != nil {
		t.Fatal(err)
	}
	if e := entry("hop"); e.State != motion.Refused || !strings.HasPrefix(e.Why, "row 7: it falls") || len(e.Findings) != 1 || e.Findings[0].Offset != 12 || e.Findings[0].Expected == "" {
		t.Errorf("%+v", e)
	}
	if code, b := h.do(ann, "POST", "/v1/things/aibo:00e20100/play", `{"name":"hop"}`); code != 409 || !strings.Contains(b, "it falls") {
		t.Errorf("play of a refused one: %d %s", code, b)
	}
	if w := h.want(rex, sum); len(w.Motions) != 0 {
		t.Errorf("a refused one is wanted: %+v", w)
	}
	h.do(ann, "PUT", at+"/hop", "hop two")
	w = h.want(rex, sum)
	verdict := motionwire.Verdict{V: 1, Ref: w.Motions[0].Ref, Kept: true, Motion: &body.Motions[0], File: []byte("HOP2")}
	for range 2 { // a robot may say it twice
		if _, err := h.ask(rex, "verdict", verdict); err != nil {
			t.Fatal(err)
		}
	}
	if e := entry("hop"); e.State != motion.Kept || e.SpanMS != 400 || e.Motion == nil || !e.Own || e.Play != "motion/hop" {
		t.Errorf("%+v", e)
	}
	if code, b := h.do(ann, "GET", at+"/hop/file", ""); code != 200 || b != "HOP2" {
		t.Errorf("%d %q", code, b)
	}
	var list motion.Repertoire
	if code, b := h.do(ann, "GET", at, ""); code != 200 || json.Unmarshal([]byte(b), &list) != nil || list.Model != "toy" || len(list.Motions) != 2 || list.Motions[0].Name != "sit" || list.Motions[0].Own || list.Motions[1].Motion != nil || list.Body != nil {
		t.Errorf("%d %s", code, b)
	}
	if code, b := h.do(desk, "GET", at+"?full=true", ""); code != 200 || json.Unmarshal([]byte(b), &list) != nil || list.Body == nil || len(list.Body.Bones) != 1 || list.Motions[1].Motion == nil {
		t.Errorf("%d %s", code, b)
	}
	for _, name := range []string{"hop", "sit", "anim_x"} {
		code, b := h.do(ann, "POST", "/v1/things/aibo:00e20100/play", `{"name":"`+name+`"}`)
		want := "motion/" + name
		if name == "anim_x" {
			want = name
		}
		if code != 200 || !strings.Contains(b, `"kind":"`+commandwire.Play+`"`) || !strings.Contains(b, `"by":"owner"`) || !bytes.Contains([]byte(b), []byte(want)) {
			t.Errorf("%s: %d %s", name, code, b)
		}
	}

	// Another body: what the old one found no longer counts.
	other := body
	other.Model = "toy 2"
	if _, err := h.ask(rex, "body", other); err != nil {
		t.Fatal(err)
	}
	if e := entry("hop"); e.State != motion.Waiting {
		t.Errorf("after another body: %+v", e)
	}
	if code, b := h.do(ann, "DELETE", at+"/hop", ""); code != 204 {
		t.Errorf("%d %s", code, b)
	}
	h.do(ann, "PUT", at+"/hop", "hop three")
	h.since[rex] = time.Now().Add(time.Hour) // it is another person's
	if code, b := h.do(ann, "GET", at+"/hop", ""); code != 404 {
		t.Errorf("a former owner's: %d %s", code, b)
	}
	stretch := thing.Stretch{Thing: rex, Until: time.Now().Add(time.Minute)}
	if n, err := h.store.Drop(t.Context(), stretch); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	if want := []string{`motion.upload aibo:00e20100 "hop", 7 bytes`, `motion.play aibo:00e20100 "hop"`}; !slices.Equal(h.audit[:2], want) {
		t.Errorf("audit %q", h.audit)
	}
}
