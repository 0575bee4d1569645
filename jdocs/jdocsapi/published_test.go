package jdocsapi

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpctls "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"kennel/infra/api/jdocspb"
	"kennel/infra/errs"
	"kennel/infra/kit/kitgrpc"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocspg"
)

// guards are the callers of these tests: the token is the robot's name, the key of a service is "service".
type guards struct{}

func (guards) Robot(_ context.Context, c Credentials) (thing.ID, error) {
	switch {
	case c.AppKey != "key":
		return "", errs.Coded(errs.Unauthenticated, "app_key_wrong", "app key refused")
	case c.AccessToken == "":
		return "", errs.Coded(errs.Unauthenticated, "token_missing", "no access token")
	case c.AccessToken == "old":
		return "", errs.Coded(errs.Denied, "token_expired", "access token refused")
	}
	return thing.ID(c.AccessToken), nil
}

func (guards) Service(_ context.Context, c Credentials) (string, error) {
	if c.AppKey != "service" {
		return "", errs.Coded(errs.Unauthenticated, "not_a_service", "not a service")
	}
	return "accounts", nil
}

// published is the service over TLS, and the REST form.
type published struct {
	svc    *jdocs.Rules
	robots jdocs.Robots
	client jdocspb.JdocsClient
	conn   *grpc.ClientConn
	rest   *http.ServeMux
	noted  []string
	pool   *pgxpool.Pool
}

func newPublished(t testing.TB) *published {
	pool := pgtest.New(t)
	store := jdocspg.New(pool)
	p := &published{svc: jdocs.New(store), rest: http.NewServeMux(), pool: pool}
	mine := func(_ context.Context, account string) ([]thing.ID, error) {
		if account == "ann" {
			return []thing.ID{robot}, nil
		}
		return nil, nil
	}
	personal := jdocs.Personal{Docs: p.svc, Store: store, Robots: mine, Ever: mine, Note: func(_ context.Context, by, account, reason string) error {
		p.noted = append(p.noted, by+" "+account+" "+reason)
		return nil
	}}
	p.robots = jdocs.Robots{Docs: p.svc, OwnerOf: func(_ context.Context, id thing.ID) (string, error) {
		if id == robot {
			return "ann", nil
		}
		return "", errs.New(errs.NotFound, "%s has no owner", id)
	}}
	log := slog.New(slog.DiscardHandler)
	api := NewPublished(p.robots, personal, guards{}, log)
	api.Mount(p.rest)

	web := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(web.Close)
	server := kitgrpc.NewServer(web.TLS, log)
	api.Register(server)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }() // until Stop
	t.Cleanup(server.Stop)
	p.conn, err = grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(grpctls.NewTLS(&tls.Config{InsecureSkipVerify: true}))) // no identity is tested here
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.conn.Close() })
	p.client = jdocspb.NewJdocsClient(p.conn)
	return p
}

func as(t testing.TB, token, key string) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return metadata.AppendToOutgoingContext(ctx, "anki-access-token", token, "anki-app-key", key)
}

// raw passes bytes through, as they are on the wire.
type raw struct{}

func (raw) Name() string { return "proto" }
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}
func (raw) Unmarshal(b mem.BufferSlice, v any) error { *v.(*[]byte) = b.Materialize(); return nil }

var _ encoding.CodecV2 = raw{}

// TestGoldenBytes holds each call against bytes written by hand from the published numbers of fields (VEC-JDS-01 to 04; peer facts, section 6).
func TestGoldenBytes(t *testing.T) {
	p := newPublished(t)
	str := func(tag, s string) string { return tag + fmt.Sprintf("%02x", len(s)) + hex.EncodeToString([]byte(s)) }
	sub := func(tag, h string) string { return tag + fmt.Sprintf("%02x", len(h)/2) + h }
	who := str("0a", "ann") + str("12", string(robot))
	for _, c := range []struct{ name, method, key, request, answer string }{
		{"read what is not there: doc is there all the same", "ReadDocs", "key",
			who + sub("1a", str("0a", "vic.RobotSettings")), sub("0a", "0802"+"1200")},
		{"create", "WriteDoc", "key", who + str("1a", "vic.RobotSettings") + sub("22", "1002"+str("22", `{"eye_color":3}`)), "1001"},
		{"create again", "WriteDoc", "key", who + str("1a", "vic.RobotSettings") + sub("22", "1002"+str("22", `{"eye_color":4}`)), "0801" + "1001"},
		{"no format", "WriteDoc", "key", who + str("1a", "vic.RobotSettings") + sub("22", "0801"+str("22", `{"eye_color":4}`)), "0802" + "1001"},
		{"update with metadata", "WriteDoc", "key", who + str("1a", "vic.RobotSettings") + sub("22", "0801"+"1002"+str("1a", "m")+str("22", `{}`)), "1002"},
		{"read two, one without its text and one that is not there", "ReadDocs", "key",
			who + sub("1a", str("0a", "vic.RobotSettings")+"1002") + sub("1a", str("0a", "vic.RobotLifetimeStats")),
			sub("0a", sub("12", "0802"+"1002"+str("1a", "m"))) + sub("0a", "0802"+"1200")},
		{"read by one that is ahead", "ReadDocs", "key", who + sub("1a", str("0a", "vic.RobotSettings")+"1009"),
			sub("0a", "0801"+sub("12", "0802"+"1002"+str("1a", "m")+str("22", "{}")))},
		{"a document of the owner", "WriteDoc", "key", who + str("1a", "vic.AccountSettings") + sub("22", "1001"+str("22", `{}`)), "1001"},
		{"delete", "DeleteDoc", "key", who + str("1a", "vic.RobotSettings"), ""},
		{"delete again", "DeleteDoc", "key", who + str("1a", "vic.RobotSettings"), ""},
		{"view", "ViewAccountDocs", "service", str("0a", "ann"),
			sub("0a", str("0a", "ann")+str("1a", "vic.AccountSettings")+str("22", "{}"))},
		{"view what is personal", "ViewAccountDocsWithPII", "service", str("0a", "ann"),
			sub("0a", str("0a", "ann")+str("1a", "vic.AccountSettings")+str("22", "{}"))},
		{"purge", "PurgeAccountDocs", "service", str("0a", "ann") + str("12", "asked") + str("1a", "by letter"), ""},
		{"purge again", "PurgeAccountDocs", "service", str("0a", "ann"), ""},
		{"view after that", "ViewAccountDocs", "service", str("0a", "ann"), ""},
	} {
		request, err := hex.DecodeString(c.request)
		if err != nil {
			t.Fatal(c.name, err)
		}
		var answer []byte
		err = p.conn.Invoke(as(t, string(robot), c.key), "/jdocspb.Jdocs/"+c.method, &request, &answer, grpc.ForceCodecV2(raw{}))
		if got := hex.EncodeToString(answer); err != nil || got != c.answer {
			t.Errorf("%s: %s, %v\nwant %s", c.name, got, err, c.answer)
		}
	}
	if want := []string{"accounts ann asked: by letter", "accounts ann "}; !slices.Equal(p.noted, want) {
		t.Errorf("noted %q, want %q", p.noted, want)
	}
}

// TestPublishedRefusals: what an original robot is told decides what it does: PermissionDenied makes it refresh its token (peer facts, section 1).
func TestPublishedRefusals(t *testing.T) {
	p := newPublished(t)
	write := func(user, id, name, text string) *jdocspb.WriteDocReq {
		return &jdocspb.WriteDocReq{UserId: user, Thing: id, DocName: name, Doc: &jdocspb.Jdoc{FmtVersion: 1, JsonDoc: text}}
	}
	long := strings.Repeat("x", 65)
	for _, c := range []struct {
		name       string
		token, key string
		req        *jdocspb.WriteDocReq
		code       codes.Code
		want       string // part of the message
	}{
		{"no app key", string(robot), "", write("", "", "vic.RobotSettings", "{}"), codes.Unauthenticated, "app key"},
		{"no token", "", "key", write("", "", "vic.RobotSettings", "{}"), codes.Unauthenticated, "no access token"},
		{"old token", "old", "key", write("", "", "vic.RobotSettings", "{}"), codes.PermissionDenied, "access token"},
		{"another robot", string(robot), "key", write("ann", string(other), "vic.RobotSettings", "{}"), codes.PermissionDenied, string(other)},
		{"another's user", string(robot), "key", write("bob", string(robot), "vic.AccountSettings", "{}"), codes.PermissionDenied, "bob"},
		{"no owner", string(other), "key", write("", "", "vic.AccountSettings", "{}"), codes.PermissionDenied, "has none"},
		{"no colon", string(robot), "key", write("ann", "vic00e20100", "vic.RobotSettings", "{}"), codes.InvalidArgument, "vic00e20100"},
		{"no species", string(robot), "key", write("ann", ":00e20100", "vic.RobotSettings", "{}"), codes.InvalidArgument, ":00e20100"},
		{"65 characters", string(robot), "key", write("ann", "vic:"+long, "vic.RobotSettings", "{}"), codes.InvalidArgument, "at most 64"},
		{"user of 65 characters", string(robot), "key", write(long, "", "vic.RobotSettings", "{}"), codes.InvalidArgument, "at most 64"},
		{"NUL", string(robot), "key", write("a\x00n", "", "vic.RobotSettings", "{}"), codes.InvalidArgument, "of text"},
		{"no name", string(robot), "key", write("ann", "", "", "{}"), codes.InvalidArgument, "document name"},
		{"a path as name", string(robot), "key", write("ann", "", "../etc", "{}"), codes.InvalidArgument, "../etc"},
		{"no document", string(robot), "key", &jdocspb.WriteDocReq{DocName: "vic.RobotSettings"}, codes.InvalidArgument, "byte 0"},
		{"not JSON", string(robot), "key", write("ann", "", "vic.RobotSettings", `{"a":`), codes.InvalidArgument, "byte 5"},
		{"one byte over", string(robot), "key", write("ann", "", "vic.RobotSettings", `"`+strings.Repeat("a", jdocs.MaxJSON-1)+`"`), codes.InvalidArgument, "204801 bytes"},
		{"too large a message", string(robot), "key", write("ann", "", "vic.RobotSettings", strings.Repeat("a", kitgrpc.MaxMessage)), codes.ResourceExhausted, ""},
		{"the largest", string(robot), "key", write("ann", "", "vic.RobotSettings", `"`+strings.Repeat("a", jdocs.MaxJSON-2)+`"`), codes.OK, ""},
	} {
		_, err := p.client.WriteDoc(as(t, c.token, c.key), c.req)
		if got := status.Convert(err); got.Code() != c.code || !strings.Contains(got.Message(), c.want) {
			t.Errorf("%s: %v %q; want %v with %q", c.name, got.Code(), got.Message(), c.code, c.want)
		}
	}
	if _, err := p.client.DeleteDoc(as(t, string(robot), "key"), &jdocspb.DeleteDocReq{DocName: "vic.AccountSettings"}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("delete of the owner's: %v", err)
	}
	if _, err := p.client.ReadDocs(as(t, string(robot), "key"), &jdocspb.ReadDocsReq{Items: make([]*jdocspb.ReadDocsReq_Item, 65)}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("65 documents: %v", err)
	}
	for _, account := range []string{"", long, "\x00"} {
		if _, err := p.client.PurgeAccountDocs(as(t, "", "service"), &jdocspb.PurgeAccountDocsReq{UserId: account}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("purge of %q: %v", account, err)
		}
	}
	if _, err := p.client.ViewAccountDocs(as(t, string(robot), "key"), &jdocspb.ViewAccountDocsReq{UserId: "ann"}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a robot views an account: %v", err)
	}
}

// TestPublishedFullDisk: while the database takes no writes, an original robot is told Unavailable over gRPC and 503 over REST, for a document that it writes and
// one that it deletes; what it reads is answered, and afterwards the same requests are accepted (issue 34, must hold 1).
func TestPublishedFullDisk(t *testing.T) {
	p := newPublished(t)
	write := &jdocspb.WriteDocReq{DocName: "vic.RobotSettings", Doc: &jdocspb.Jdoc{FmtVersion: 1, JsonDoc: "{}"}}
	rest := func() int {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/1/write-doc", strings.NewReader(`{"doc_name":"vic.RobotEconomy","doc":{"fmt_version":1,"json_doc":"{}"}}`))
		r.Header = http.Header{"Anki-Access-Token": {string(robot)}, "Anki-App-Key": {"key"}}
		w := httptest.NewRecorder()
		p.rest.ServeHTTP(w, r)
		return w.Code
	}
	for _, code := range []string{pgtest.DiskFull, "58030"} {
		end := pgtest.Refuse(t, p.pool, code)
		if _, err := p.client.WriteDoc(as(t, string(robot), "key"), write); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: write: %v", code, err)
		}
		if _, err := p.client.DeleteDoc(as(t, string(robot), "key"), &jdocspb.DeleteDocReq{DocName: "vic.RobotSettings"}); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: delete: %v", code, err)
		}
		if got := rest(); got != http.StatusServiceUnavailable {
			t.Errorf("%s: write by REST: %d", code, got)
		}
		if _, err := p.client.ReadDocs(as(t, string(robot), "key"), &jdocspb.ReadDocsReq{Items: []*jdocspb.ReadDocsReq_Item{{DocName: "vic.RobotSettings"}}}); err != nil {
			t.Errorf("%s: read: %v", code, err)
		}
		end()
	}
	if resp, err := p.client.WriteDoc(as(t, string(robot), "key"), write); err != nil || resp.LatestDocVersion != 1 {
		t.Errorf("afterwards: %v, %v; want version 1", resp, err)
	}
	if got := rest(); got != http.StatusOK {
		t.Errorf("afterwards by REST: %d", got)
	}
}

// TestREST: the published REST form is the same service.
func TestREST(t *testing.T) {
	p := newPublished(t)
	for _, c := range []struct {
		name, path, body string
		header           http.Header
		status           int
		want             string // part of the answer
	}{
		{"read what is not there", "/1/read-docs", `{"thing":"vic:00e20100","items":[{"doc_name":"vic.RobotSettings"}]}`, nil, 200,
			`{"items":[{"status":"NOT_FOUND","doc":{"doc_version":"0","fmt_version":"0","client_metadata":"","json_doc":""}}]}`},
		{"create", "/1/write-doc", `{"user_id":"ann","thing":"vic:00e20100","doc_name":"vic.RobotSettings","doc":{"doc_version":"0","fmt_version":2,"json_doc":"{\"a\":1}"},"later":1}`, nil,
			200, `{"status":"ACCEPTED","latest_doc_version":"1"}`},
		{"again", "/1/write-doc", `{"doc_name":"vic.RobotSettings","doc":{"fmt_version":2,"json_doc":"{}"}}`, nil, 200, `{"status":"REJECTED_BAD_DOC_VERSION","latest_doc_version":"1"}`},
		{"with a gateway's header", "/1/read-docs", `{"items":[{"doc_name":"vic.RobotSettings","my_doc_version":"1"}]}`,
			http.Header{"Grpc-Metadata-Anki-Access-Token": {string(robot)}, "Grpc-Metadata-Anki-App-Key": {"key"}}, 200, `"status":"UNCHANGED","doc":{"doc_version":"1","fmt_version":"2"`},
		{"delete", "/1/delete-doc", `{"doc_name":"vic.RobotSettings"}`, nil, 200, `{}`},
		{"not JSON", "/1/write-doc", `{"doc_name":`, nil, 400, `body: `},
		{"twice", "/1/write-doc", `{"doc_name":"a","doc_name":"b"}`, nil, 400, `duplicate field`},
		{"another type", "/1/write-doc", `{"doc":{"doc_version":-1}}`, nil, 400, `docVersion: -1`},
		{"too long", "/1/write-doc", `{"doc_name":"` + strings.Repeat("x", maxBody) + `"}`, nil, 400, "more than"},
		{"without credentials", "/1/write-doc", `{}`, http.Header{}, 401, "app key"},
		{"old token", "/1/write-doc", `{}`, http.Header{"Anki-Access-Token": {"old"}, "Anki-App-Key": {"key"}}, 403, "token"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", c.path, strings.NewReader(c.body))
		r.Header = c.header
		if r.Header == nil {
			r.Header = http.Header{"Anki-Access-Token": {string(robot)}, "Anki-App-Key": {"key"}}
		}
		w := httptest.NewRecorder()
		p.rest.ServeHTTP(w, r)
		if got := strings.ReplaceAll(w.Body.String(), ", ", ","); w.Code != c.status || !strings.Contains(strings.ReplaceAll(got, ": ", ":"), strings.ReplaceAll(c.want, ": ", ":")) {
			t.Errorf("%s: %d %s; want %d %s", c.name, w.Code, got, c.status, c.want)
		}
	}
}

func FuzzREST(f *testing.F) {
	f.Add("write-doc", []byte(`{"doc_name":"vic.RobotSettings","doc":{"doc_version":"0","fmt_version":"2","json_doc":"{}"}}`))
	f.Add("read-docs", []byte(`{"items":[{"doc_name":"vic.RobotSettings","my_doc_version":1}]}`))
	f.Add("delete-doc", []byte(`{"doc_name":"vic.RobotSettings"}`))
	p := newPublished(f)
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader(string(body)))
		r.URL.Path = "/1/" + path
		r.Header = http.Header{"Anki-Access-Token": {string(robot)}, "Anki-App-Key": {"key"}}
		w := httptest.NewRecorder()
		p.rest.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%q %q: %d %s", path, body, w.Code, w.Body)
		}
	})
}
