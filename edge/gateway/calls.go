package gateway

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"kennel/infra/api/robotpb"
	"kennel/infra/errs"
	"kennel/infra/kit/kitgrpc"
)

// call is a row of the table of calls.
type call struct {
	name    string // as in the path; in gRPC with a capital letter
	right   string // "": any client; an order's handler looks which one it needs
	counted bool   // against the client's rate
	open    bool   // without a token, at the rate of strangers
	request func() proto.Message
	unary   func(context.Context, caller, proto.Message) (proto.Message, error)
	stream  func(context.Context, caller, proto.Message, func(proto.Message) error) error
}

// calls is the table.
func (g *Gateway) calls() []call {
	all := []call{
		unary("describe", Look, false, g.describe),
		unary("read", Look, false, g.read),
		stream("subscribe", Look, true, g.subscribe),
		stream("events", Look, true, g.follows),
		stream("orders", Look, true, g.followOrders),
		unary("image", Camera, true, g.image),
		stream("images", Camera, true, g.images),
		unary("screen", Look, true, g.screen),
		stream("screens", Look, true, g.screens),
		unary("animations", Look, true, g.animations),
		stream("play", Move, true, g.play),
		stream("say", Talk, true, g.say),
		stream("sound", Talk, true, g.sound),
		stream("sounds", Look, true, g.sounds),
		stream("listen", Hear, true, g.hearken),
		unary("claim", Move, true, g.claim),
		unary("renew", Move, true, g.renew),
		unary("release", Move, true, g.release),
		stream("order", "", true, g.order),
		unary("do", "", true, g.do),
		unary("stop", "", false, g.stop),
		unary("settings", Change, true, g.settings),
		unary("change", Change, true, g.change),
	}
	for i, x := range all {
		all[i] = g.noted(x)
	}
	authenticate := unary("authenticate", "", false, g.authenticate)
	authenticate.open = true
	return append(all, authenticate)
}

// message is a pointer to a message of T.
type message[T any] interface {
	*T
	proto.Message
}

func unary[T any, Q message[T], A proto.Message](name, right string, counted bool, f func(context.Context, caller, Q) (A, error)) call {
	return call{name: name, right: right, counted: counted, request: func() proto.Message { return Q(new(T)) },
		unary: func(ctx context.Context, c caller, q proto.Message) (proto.Message, error) { return f(ctx, c, q.(Q)) }}
}

func stream[T any, Q message[T], A proto.Message](name, right string, counted bool, f func(context.Context, caller, Q, func(A) error) error) call {
	return call{name: name, right: right, counted: counted, request: func() proto.Message { return Q(new(T)) },
		stream: func(ctx context.Context, c caller, q proto.Message, tell func(proto.Message) error) error {
			defer c.streams.Add(-1)
			if n := c.streams.Add(1); n > maxStreams {
				return &errs.Error{Kind: errs.Exhausted, Code: "too_many_streams", Retry: time.Second, Msg: fmt.Sprintf("%d streams of one client, want at most %d", n, maxStreams)}
			}
			return f(ctx, c, q.(Q), func(a A) error { return tell(a) })
		}}
}

// admit checks who calls, and their rate.
func (g *Gateway) admit(ctx context.Context, x call, authorization string) (caller, error) {
	if x.open {
		if !g.strangers.Allow() {
			return caller{}, tooManyAttempts()
		}
		return caller{}, nil
	}
	c, err := g.who(ctx, authorization, x.right)
	if errs.KindOf(err) == errs.Denied && x.name != "" {
		g.used.note(c.Name, x.name, "", errs.CodeOf(err))
	}
	if err == nil && x.counted && !c.rate.Allow() {
		err = tooMany("one client may make %d calls a second; try again in a moment", callsASecond)
	}
	return c, err
}

// tooMany refuses a call of a client that makes too many.
func tooMany(format string, args ...any) error {
	return &errs.Error{Kind: errs.Exhausted, Code: "too_many_calls", Retry: time.Second, Msg: fmt.Sprintf(format, args...)}
}

// service describes the calls to gRPC.
func (g *Gateway) service() *grpc.ServiceDesc {
	d := &grpc.ServiceDesc{ServiceName: robotpb.Robot_ServiceDesc.ServiceName, HandlerType: (*any)(nil), Metadata: robotpb.Robot_ServiceDesc.Metadata}
	for _, x := range g.calls() {
		name := strings.ToUpper(x.name[:1]) + x.name[1:]
		if x.stream != nil {
			d.Streams = append(d.Streams, grpc.StreamDesc{StreamName: name, ServerStreams: true, Handler: func(_ any, ss grpc.ServerStream) error {
				q := x.request()
				if err := ss.RecvMsg(q); err != nil {
					return err
				}
				ctx := ss.Context()
				c, err := g.admit(ctx, x, kitgrpc.Value(ctx, "authorization"))
				if err == nil {
					err = x.stream(ctx, c, q, func(m proto.Message) error { return ss.SendMsg(m) })
				}
				err = known(err)
				ss.SetTrailer(trailer(err))
				return err
			}})
			continue
		}
		d.Methods = append(d.Methods, grpc.MethodDesc{MethodName: name,
			Handler: func(srv any, ctx context.Context, dec func(any) error, between grpc.UnaryServerInterceptor) (any, error) {
				q := x.request()
				if err := dec(q); err != nil {
					return nil, err
				}
				do := func(ctx context.Context, q any) (any, error) {
					c, err := g.admit(ctx, x, kitgrpc.Value(ctx, "authorization"))
					var a proto.Message
					if err == nil {
						a, err = x.unary(ctx, c, q.(proto.Message))
					}
					if err = known(err); err != nil {
						_ = grpc.SetTrailer(ctx, trailer(err)) // only outside of a call
						return nil, err
					}
					return a, nil
				}
				return between(ctx, q, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/" + d.ServiceName + "/" + name}, do)
			}})
	}
	return d
}

// codeTrailer names the trailer with the code of a refusal.
const codeTrailer = "kennel-code"

func trailer(err error) metadata.MD {
	if code := errs.CodeOf(err); err != nil && code != "" {
		return metadata.Pairs(codeTrailer, code)
	}
	return nil
}

var (
	decode = protojson.UnmarshalOptions{}
	encode = protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true}
)

// bearerProtocol is how a browser, which can set no header, sends its token with a WebSocket; protocol names the messages.
const (
	protocol       = "kennel.robot.v1"
	bearerProtocol = "kennel.bearer."
)

// handler serves the calls over HTTPS, streams as lines of JSON or as a WebSocket. A page of any origin may call: without a token nothing is done.
func (g *Gateway) handler() http.Handler {
	mux := http.NewServeMux()
	for _, x := range g.calls() {
		mux.HandleFunc("POST /v1/"+x.name, func(w http.ResponseWriter, r *http.Request) {
			if err := g.post(w, r, x); err != nil {
				writeError(w, err)
			}
		})
		if x.stream != nil {
			mux.HandleFunc("GET /v1/"+x.name, func(w http.ResponseWriter, r *http.Request) { g.socket(w, r, x) })
		}
	}
	mux.HandleFunc("GET /v1/describe", func(w http.ResponseWriter, r *http.Request) { // for a first look in a browser or with curl
		if err := g.post(w, r, g.calls()[0]); err != nil {
			writeError(w, err)
		}
	})
	mux.Handle("/mcp", g.mcpHandler())
	g.route(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, errs.Coded(errs.NotFound, "no_such_call", "%s %.80s: want POST /v1/describe, read, do and so on, or a WebSocket at /v1/subscribe, events, orders, images, screens, play, say, sound, sounds, listen or order", r.Method, r.URL.Path))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("X-Content-Type-Options", "nosniff")
		if r.Method == http.MethodOptions {
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
			h.Set("Access-Control-Allow-Methods", "GET, POST")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// post does a call whose request is the body. Errors are those before the first byte of the answer.
func (g *Gateway) post(w http.ResponseWriter, r *http.Request, x call) error {
	c, err := g.admit(r.Context(), x, r.Header.Get("Authorization"))
	if err != nil {
		return err
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return invalid("body: %v", err)
	}
	q, err := parse(x, b)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	if x.unary != nil {
		a, err := x.unary(r.Context(), c, q)
		if err != nil {
			return err
		}
		b, err := encode.Marshal(a)
		if err == nil {
			_, _ = w.Write(b) // a caller that is gone hears nothing
		}
		return err
	}
	begun := false
	err = x.stream(r.Context(), c, q, func(m proto.Message) error {
		b, err := encode.Marshal(m)
		if err != nil {
			return err
		}
		begun = true
		_, err = w.Write(append(b, '\n'))
		return errors.Join(err, http.NewResponseController(w).Flush())
	})
	if err == nil || !begun {
		return err
	}
	_, _ = w.Write(append(lastWords(err), '\n')) // it may be why
	return nil
}

func parse(x call, b []byte) (proto.Message, error) {
	q := x.request()
	if len(b) == 0 {
		return q, nil
	}
	if err := decode.Unmarshal(b, q); err != nil {
		return nil, invalid("request of %s: %v", x.name, err)
	}
	return q, nil
}

// lastWords is an error as the last message of a stream.
func lastWords(err error) []byte {
	err = known(err)
	b, _ := json.Marshal(problem{errs.CodeOf(err), errs.Public(err)}) // two texts
	return b
}

// socket does a call as a WebSocket: the first message is the request, each one after it an answer.
func (g *Gateway) socket(w http.ResponseWriter, r *http.Request, x call) {
	authorization := r.Header.Get("Authorization")
	for _, p := range strings.Split(r.Header.Get("Sec-WebSocket-Protocol"), ",") {
		if text, ok := strings.CutPrefix(strings.TrimSpace(p), bearerProtocol); ok && authorization == "" {
			if b, err := base64.RawURLEncoding.DecodeString(text); err == nil {
				authorization = "Bearer " + string(b)
			}
		}
	}
	c, err := g.admit(r.Context(), x, authorization)
	if err != nil {
		writeError(w, err)
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{protocol}, InsecureSkipVerify: true}) // the token proves who calls
	if err != nil {
		return // answered
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxBody)
	first, cancel := context.WithTimeout(r.Context(), 10*time.Second)
	_, b, err := conn.Read(first)
	cancel()
	if err != nil {
		return
	}
	q, err := parse(x, b)
	if err == nil {
		ctx := conn.CloseRead(r.Context()) // ends when the client does
		err = x.stream(ctx, c, q, func(m proto.Message) error {
			b, err := encode.Marshal(m)
			if err != nil {
				return err
			}
			patient, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			return conn.Write(patient, websocket.MessageText, b)
		})
	}
	if err == nil {
		_ = conn.Close(websocket.StatusNormalClosure, "") // the client may be gone
		return
	}
	last, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	code := websocket.StatusPolicyViolation
	switch errs.KindOf(known(err)) {
	case errs.Internal, errs.Unavailable:
		code = websocket.StatusInternalError
	}
	_ = conn.Write(last, websocket.MessageText, lastWords(err))
	_ = conn.Close(code, "")
}
