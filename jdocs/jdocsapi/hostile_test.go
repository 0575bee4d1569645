package jdocsapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"kennel/infra/api/jdocspb"
	"kennel/infra/api/topics"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kitgrpc"
	"kennel/infra/kit/kithttp"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/op"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"
	"kennel/jdocs/people"
)

// hostile is a request to write one document: what it says of itself, the document, and the defined answer.
type hostile struct {
	name        string
	thing, user string
	doc         string // the document's name; "": one that no other case uses
	text        string
	version     uint64
	format      uint64 // 0: 2
	noFormat    bool
	meta        string

	kind   errs.Kind // of the refusal; 0: it is answered
	says   string    // part of the refusal
	status jdocs.WriteStatus

	// Where a transport has an answer of its own.
	mqtt, grpc string // part of the refusal
	people     int    // status of a PATCH that sets text as a field of the document, by the owner; 0: it has no such request
}

func nested(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

// noise is a JSON text of n bytes that does not compress much: a broker's message cannot carry the largest.
func noise(n int) string {
	b := make([]byte, n)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(b) // never fails
	return `"` + base64.StdEncoding.EncodeToString(b)[:n-2] + `"`
}

// hostiles is the defined answer to each (VEC-JDS-01, 02, 10; VEC-FLE-01; peer facts, sections 4 and 6).
var hostiles = []hostile{
	// Keys.
	{name: "itself", thing: string(robot), user: "ann", text: `{}`, people: 200},
	{name: "nothing said", text: `{}`},
	{name: "no colon", thing: "vic00e20100", text: `{}`, kind: errs.Invalid, says: "vic00e20100", people: 400},
	{name: "no species", thing: ":00e20100", text: `{}`, kind: errs.Invalid, says: ":00e20100", people: 400},
	{name: "no serial", thing: "vic:", text: `{}`, kind: errs.Invalid, says: "vic:", people: 400},
	{name: "thing of 65 characters", thing: "vic:" + strings.Repeat("x", 61), text: `{}`, kind: errs.Invalid, says: "at most 64", people: 400},
	{name: "thing with NUL", thing: "vic:00e2\x000100", text: `{}`, kind: errs.Invalid, says: "characters of text", people: 400},
	{name: "thing with a wildcard", thing: "vic:+", text: `{}`, kind: errs.Invalid, says: "vic:+", people: 400},
	{name: "another robot", thing: string(other), text: `{}`, kind: errs.Denied, says: string(other), people: 404},
	{name: "another's user", user: "bob", doc: "vic.AccountSettings", text: `{}`, kind: errs.Denied, says: "bob"},
	{name: "user of 65 characters", user: strings.Repeat("ä", 65), text: `{}`, kind: errs.Invalid, says: "at most 64"},
	{name: "user with NUL", user: "an\x00n", text: `{}`, kind: errs.Invalid, says: "characters of text"},
	{name: "document name of 65 characters", doc: strings.Repeat("x", 65), text: `{}`, kind: errs.Invalid, says: "document name", people: 400},
	{name: "document name with NUL", doc: "vic.\x00", text: `{}`, kind: errs.Invalid, says: "document name", people: 400},
	{name: "path as document name", doc: "../../etc/passwd", text: `{}`, kind: errs.Invalid, says: "../../etc/passwd", people: 400},
	{name: "hidden document name", doc: ".kennel", text: `{}`, kind: errs.Invalid, says: ".kennel", people: 400},
	// Documents.
	{name: "empty", text: "", kind: errs.Invalid, says: "byte 0", people: 400},
	{name: "not JSON", text: `{"a":`, kind: errs.Invalid, says: "byte 5", people: 400},
	{name: "two values", text: `{} {}`, kind: errs.Invalid, says: "byte 4", people: 400},
	{name: "NUL behind it", text: "{}\x00", kind: errs.Invalid, says: "byte 3", people: 400},
	{name: "NUL in it", text: `{"a":"` + "\x00" + `"}`, kind: errs.Invalid, says: "byte 7", people: 400},
	{name: "NUL escaped", text: `{"a":"\u0000"}`, people: 200},
	{name: "half a surrogate pair", text: `{"a":"\ud800"}`, people: 200},
	{name: "no object", text: `7`, people: 200},
	{name: "null", text: `null`, people: 200},
	{name: "16 levels", text: nested(16), people: 400}, // as a field it is on the 17th
	{name: "15 levels", text: nested(15), people: 200},
	{name: "17 levels", text: nested(17), kind: errs.Invalid, says: "level 17", people: 400},
	{name: "100,000 levels", text: nested(100_000), kind: errs.Invalid, says: "level 17", people: 400},
	{name: "17 levels of objects", text: strings.Repeat(`{"a":`, 17) + "1" + strings.Repeat("}", 17), kind: errs.Invalid, says: "level 17", people: 400},
	{name: "brackets in a text", text: `"` + strings.Repeat("[", 1000) + `"`, people: 200},
	{name: "duplicate keys", text: `{"a":1,"a":2}`, people: 200},
	{name: "a huge number", text: `{"a":1e400}`, people: 200},
	{name: "a number of 4,000 digits", text: `{"a":` + strings.Repeat("9", 4000) + `}`, people: 200},
	{name: "invalid UTF-8", text: "{\"a\":\"\xff\"}", kind: errs.Invalid, says: "UTF-8", grpc: "UTF-8", people: 400},
	{name: "cut UTF-8", text: "{\"a\":\"\xc3\"}", kind: errs.Invalid, says: "UTF-8", grpc: "UTF-8", people: 400},
	{name: "one byte over", text: `"` + strings.Repeat("a", jdocs.MaxJSON-1) + `"`, kind: errs.Invalid, says: "204801 bytes", people: 400},
	{name: "the largest", text: `"` + strings.Repeat("a", jdocs.MaxJSON-2) + `"`, people: 400}, // with the rest of the document it is over
	{name: "the largest that does not compress", text: noise(jdocs.MaxJSON), mqtt: "limit of a broker message", people: 400},
	{name: "204,000 bytes that do not compress", text: noise(204_000), mqtt: "limit of a broker message", people: 200},
	{name: "the largest, all quotes", text: `"` + strings.Repeat(`\"`, jdocs.MaxJSON/2-1) + `"`, people: 400},
	// The rest of it.
	{name: "version ahead", text: `{}`, version: 7, status: jdocs.RejectedBadDocVersion},
	{name: "version at the end", text: `{}`, version: math.MaxUint64, status: jdocs.RejectedBadDocVersion},
	{name: "no format", text: `{}`, noFormat: true, status: jdocs.RejectedBadFmtVersion},
	{name: "format at the end", text: `{}`, format: math.MaxUint64, status: jdocs.RejectedBadFmtVersion},
	{name: "metadata of 32 characters", text: `{}`, meta: strings.Repeat("ä", 32)},
	{name: "metadata of 33 characters", text: `{}`, meta: strings.Repeat("a", 33), kind: errs.Invalid, says: "at most 32"},
	{name: "metadata with NUL", text: `{}`, meta: "\x00", kind: errs.Invalid, says: "characters of text"},
}

// refusal is an answer that refuses: the kind, in the words of the transport, and the message.
type refusal struct{ kind, message string }

// robotsTransport writes a document as a robot does, and reads it back.
type robotsTransport struct {
	name  string
	kind  func(errs.Kind) string
	own   func(hostile) string // its own refusal; "": none
	write func(t *testing.T, h hostile) (jdocs.WriteStatus, uint64, *refusal)
	read  func(t *testing.T, name string) (string, *refusal)
	// ask reads or deletes the document of that key.
	ask func(t *testing.T, method string, h hostile) *refusal
}

// TestHostileDocuments: each transport gives the one defined answer, stores what it accepts byte for byte, and serves the next request.
func TestHostileDocuments(t *testing.T) {
	p := newPublished(t)
	for _, tr := range []robotsTransport{overMQTT(p), overGRPC(p), overREST(p)} {
		t.Run(tr.name, func(t *testing.T) {
			for i, h := range hostiles {
				if h.doc == "" {
					h.doc = fmt.Sprintf("vic.%s.%d", tr.name, i)
				}
				if h.format == 0 && !h.noFormat {
					h.format = 2
				}
				tr.check(t, h)
				if h.kind == 0 || h.text != "{}" || h.meta != "" {
					continue
				}
				for _, method := range []string{"read", "delete"} { // the key alone is refused
					if refused := tr.ask(t, method, h); refused == nil || refused.kind != tr.kind(h.kind) || !strings.Contains(refused.message, h.says) {
						t.Errorf("%s: %s: %.200v; want %s with %q", h.name, method, refused, tr.kind(h.kind), h.says)
					}
				}
			}
		})
	}
	t.Run("PATCH", func(t *testing.T) { patchHostiles(t, p) })
	t.Run("too large to read over MQTT", func(t *testing.T) {
		large := hostile{doc: "vic.Large", text: noise(jdocs.MaxJSON), format: 1}
		if status, _, refused := overGRPC(p).write(t, large); refused != nil || status != jdocs.Accepted {
			t.Fatal(status, refused)
		}
		if _, refused := overMQTT(p).read(t, large.doc); refused == nil || refused.kind != errs.Invalid.String() || !strings.Contains(refused.message, "ask over HTTPS") {
			t.Errorf("%+v; want the advice to ask over HTTPS", refused)
		}
	})
}

func (tr robotsTransport) check(t *testing.T, h hostile) {
	status, latest, refused := tr.write(t, h)
	if own := tr.own(h); own != "" {
		if refused == nil || !strings.Contains(refused.message, own) {
			t.Errorf("%s: %+v; want a refusal with %q", h.name, refused, own)
		}
		return
	}
	if h.kind != 0 {
		if refused == nil || refused.kind != tr.kind(h.kind) || !strings.Contains(refused.message, h.says) {
			t.Errorf("%s: %v, %.200v; want %s with %q", h.name, status, refused, tr.kind(h.kind), h.says)
		}
		return
	}
	want := uint64(0)
	if h.status == jdocs.Accepted {
		want = 1
	}
	if refused != nil || status != h.status || latest != want {
		t.Errorf("%s: %v, latest %d, %.200v; want %v, latest %d", h.name, status, latest, refused, h.status, want)
		return
	}
	if got, refused := tr.read(t, h.doc); h.status == jdocs.Accepted && (refused != nil || got != h.text) {
		t.Errorf("%s: read back %.200q, %.200v; want %.200q", h.name, got, refused, h.text)
	}
}

// quoted is s as a JSON string, with bytes that are not UTF-8 left as they are.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// body is the request to write as JSON.
func (h hostile) body() string {
	return fmt.Sprintf(`{"user_id":%s,"thing":%s,"doc_name":%s,"doc":{"doc_version":"%d","fmt_version":"%d","client_metadata":%s,"json_doc":%s}}`,
		quoted(h.user), quoted(h.thing), quoted(h.doc), h.version, h.format, quoted(h.meta), quoted(h.text))
}

// keyBody is the request to read or delete as JSON.
func (h hostile) keyBody() string {
	return fmt.Sprintf(`{"user_id":%[1]s,"thing":%[2]s,"doc_name":%[3]s,"items":[{"doc_name":%[3]s}]}`, quoted(h.user), quoted(h.thing), quoted(h.doc))
}

func overMQTT(p *published) robotsTransport {
	server := kitmqtt.NewServer(Handlers(p.robots, slog.New(slog.DiscardHandler)), slog.New(slog.DiscardHandler))
	var client *kitmqtt.Client
	client = kitmqtt.NewClient(robot, func(ctx context.Context, topic string, payload []byte) error {
		to, err := topics.Parse(topic)
		if err != nil {
			return err
		}
		id, answer := server.Serve(ctx, kitmqtt.Incoming{Thing: to.Thing, Service: to.Name, Method: to.Method, Payload: payload, Received: time.Now()})
		return client.Deliver(topics.ResTopic(robot, id), answer)
	})
	refused := func(err error) *refusal {
		if err == nil {
			return nil
		}
		return &refusal{errs.KindOf(err).String(), err.Error()}
	}
	return robotsTransport{name: "MQTT", kind: errs.Kind.String, own: func(h hostile) string { return h.mqtt },
		write: func(t *testing.T, h hostile) (jdocs.WriteStatus, uint64, *refusal) {
			b, err := client.Do(t.Context(), jdocswire.Service, jdocswire.Write, []byte(h.body()))
			if err != nil {
				return 0, 0, refused(err)
			}
			resp, err := jdocswire.Decode[jdocswire.WriteResp](b)
			if err != nil {
				t.Fatal(err)
			}
			st, err := jdocs.ParseWriteStatus(resp.Status)
			return st, uint64(resp.LatestDocVersion), refused(err)
		},
		read: func(t *testing.T, name string) (string, *refusal) {
			res, err := jdocswire.NewClient(client).Read(t.Context(), []jdocs.Item{{Name: jdocs.Name(name)}})
			if err != nil {
				return "", refused(err)
			}
			return res[0].Doc.JSON, nil
		},
		ask: func(t *testing.T, method string, h hostile) *refusal {
			_, err := client.Do(t.Context(), jdocswire.Service, method, []byte(h.keyBody()))
			return refused(err)
		}}
}

func overGRPC(p *published) robotsTransport {
	refused := func(err error) *refusal {
		if err == nil {
			return nil
		}
		return &refusal{status.Code(err).String(), status.Convert(err).Message()}
	}
	return robotsTransport{name: "gRPC", kind: func(k errs.Kind) string { return kitgrpc.CodeOf(k).String() }, own: func(h hostile) string { return h.grpc },
		write: func(t *testing.T, h hostile) (jdocs.WriteStatus, uint64, *refusal) {
			str := func(b []byte, n protowire.Number, s string) []byte {
				return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
			}
			num := func(b []byte, n protowire.Number, v uint64) []byte {
				return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
			}
			doc := str(str(num(num(nil, 1, h.version), 2, h.format), 3, h.meta), 4, h.text) // by hand: the generated code refuses bad UTF-8
			req := str(str(str(str(nil, 1, h.user), 2, h.thing), 3, h.doc), 4, string(doc))
			var answer []byte
			if err := p.conn.Invoke(as(t, string(robot), "key"), "/jdocspb.Jdocs/WriteDoc", &req, &answer, grpc.ForceCodecV2(raw{})); err != nil {
				return 0, 0, refused(err)
			}
			var resp jdocspb.WriteDocResp
			if err := proto.Unmarshal(answer, &resp); err != nil {
				t.Fatal(err)
			}
			return jdocs.WriteStatus(resp.GetStatus()), resp.GetLatestDocVersion(), nil
		},
		read: func(t *testing.T, name string) (string, *refusal) {
			resp, err := p.client.ReadDocs(as(t, string(robot), "key"), &jdocspb.ReadDocsReq{Items: []*jdocspb.ReadDocsReq_Item{{DocName: name}}})
			if err != nil {
				return "", refused(err)
			}
			return resp.GetItems()[0].GetDoc().GetJsonDoc(), nil
		},
		ask: func(t *testing.T, method string, h hostile) *refusal {
			if method == "read" {
				_, err := p.client.ReadDocs(as(t, string(robot), "key"), &jdocspb.ReadDocsReq{UserId: h.user, Thing: h.thing,
					Items: []*jdocspb.ReadDocsReq_Item{{DocName: h.doc}}})
				return refused(err)
			}
			_, err := p.client.DeleteDoc(as(t, string(robot), "key"), &jdocspb.DeleteDocReq{UserId: h.user, Thing: h.thing, DocName: h.doc})
			return refused(err)
		}}
}

func overREST(p *published) robotsTransport {
	post := func(t *testing.T, path, body string, answer any) *refusal {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
		r.Header = http.Header{"Anki-Access-Token": {string(robot)}, "Anki-App-Key": {"key"}}
		w := httptest.NewRecorder()
		p.rest.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			return &refusal{fmt.Sprint(w.Code), messageOf(w.Body.Bytes())}
		}
		if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil {
			t.Fatal(err)
		}
		return nil
	}
	return robotsTransport{name: "REST", kind: func(k errs.Kind) string { return fmt.Sprint(kithttp.StatusOf(k)) }, own: func(hostile) string { return "" },
		write: func(t *testing.T, h hostile) (jdocs.WriteStatus, uint64, *refusal) {
			var resp jdocswire.WriteResp
			if refused := post(t, "/1/write-doc", h.body(), &resp); refused != nil {
				return 0, 0, refused
			}
			st, err := jdocs.ParseWriteStatus(resp.Status)
			if err != nil {
				t.Fatal(err)
			}
			return st, uint64(resp.LatestDocVersion), nil
		},
		read: func(t *testing.T, name string) (string, *refusal) {
			var resp jdocswire.ReadResp
			if refused := post(t, "/1/read-docs", `{"items":[{"doc_name":`+quoted(name)+`}]}`, &resp); refused != nil {
				return "", refused
			}
			return resp.Items[0].Doc.JSONDoc, nil
		},
		ask: func(t *testing.T, method string, h hostile) *refusal {
			path := map[string]string{"read": "/1/read-docs", "delete": "/1/delete-doc"}[method]
			return post(t, path, h.keyBody(), &struct{}{})
		}}
}

// messageOf undoes the escapes of an error's JSON.
func messageOf(b []byte) string {
	var v struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	_ = json.Unmarshal(b, &v) // the bytes themselves are compared too
	return string(b) + " " + v.Message + " " + strings.ReplaceAll(string(v.Error), `\\`, `\`)
}

// patchHostiles sets each text as a field of a document of its own.
func patchHostiles(t *testing.T, p *published) {
	mux := http.NewServeMux()
	Operations(&people.Documents{Docs: p.svc, Owns: func(_ context.Context, account string, id thing.ID) (time.Time, bool, error) {
		return time.Time{}, account == "ann" && id == robot, nil
	}}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler)})
	owner := auth.WithCaller(t.Context(), auth.Caller{Role: auth.Owner, Account: "ann", Name: "ann@example.org"})
	for i, h := range hostiles {
		if h.people == 0 {
			continue
		}
		id, name, field := h.thing, h.doc, fmt.Sprintf("x%d", i)
		if id == "" {
			id = string(robot)
		}
		if name == "" {
			name = string(jdocs.RobotSettings)
		}
		if err := p.reset(t); err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(owner, http.MethodPatch, "/v1/things/"+url.PathEscape(id)+"/jdocs/"+url.PathEscape(name),
			strings.NewReader(`{"set":{"`+field+`":`+h.text+`},"force":true}`))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code != h.people {
			t.Errorf("%s: %d %.300s; want %d", h.name, w.Code, w.Body, h.people)
		}
		if w.Code != http.StatusOK {
			continue
		}
		rev, err := p.svc.Get(t.Context(), settings)
		var doc map[string]json.RawMessage
		if err == nil {
			err = json.Unmarshal([]byte(rev.JSON), &doc)
		}
		if got, has := doc[field]; err != nil || has != (h.text != "null") || has && !bytes.Equal(got, []byte(h.text)) {
			t.Errorf("%s: stored %.200q, %v; want %.200q", h.name, got, err, h.text)
		}
	}
}

// reset removes the robot's settings.
func (p *published) reset(t *testing.T) error {
	_, err := p.svc.Delete(t.Context(), settings, "test")
	return err
}
