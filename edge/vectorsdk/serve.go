package vectorsdk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"kennel/infra/api/vectorpb"
	"kennel/infra/kit/kitgrpc"
)

// maxBody is how many bytes of JSON a request may have; a picture for the face has 48 KiB.
const maxBody = 256 << 10

// JSON as the original writes and reads it (VEC-TRN-03).
var (
	decode = protojson.UnmarshalOptions{DiscardUnknown: true}
	encode = protojson.MarshalOptions{UseProtoNames: true, UseEnumNumbers: true, EmitUnpopulated: true}
)

// admit checks who calls.
func (f *Facade) admit(ctx context.Context, x call, authorization, key string) (client, error) {
	if x.open {
		if !f.cfg.Gateway.Stranger() {
			return client{}, status.Error(codes.ResourceExhausted, "too many attempts; try again in a second")
		}
		return client{key: key}, nil
	}
	c, err := f.cfg.Gateway.Admit(ctx, authorization, x.right, x.counted)
	return client{c, key}, err
}

// do makes a call with one request and one answer.
func (x *call) do(ctx context.Context, c client, q proto.Message) (proto.Message, error) {
	if err := finite(q.ProtoReflect()); err != nil {
		return nil, err
	}
	return x.unary(ctx, c, q)
}

// flow makes a call with streams. A call whose part is absent has no stream to flow.
func (x *call) flow(ctx context.Context, c client, receive func() (proto.Message, error), send func(proto.Message) error) error {
	if x.stream == nil {
		_, err := x.unary(ctx, c, nil)
		return err
	}
	if !x.open {
		end, err := c.Streaming()
		if err != nil {
			return err
		}
		defer end()
	}
	return x.stream(ctx, c, receive, send)
}

// service describes the calls to gRPC.
func (f *Facade) service() *grpc.ServiceDesc {
	published := &vectorpb.ExternalInterface_ServiceDesc
	d := &grpc.ServiceDesc{ServiceName: published.ServiceName, HandlerType: (*any)(nil), Metadata: published.Metadata}
	for i := range f.calls {
		x := &f.calls[i]
		if x.receives || x.sends {
			d.Streams = append(d.Streams, grpc.StreamDesc{StreamName: x.name, ClientStreams: x.receives, ServerStreams: x.sends,
				Handler: func(_ any, ss grpc.ServerStream) error { return f.serveStream(x, ss) }})
			continue
		}
		method := "/" + d.ServiceName + "/" + x.name
		d.Methods = append(d.Methods, grpc.MethodDesc{MethodName: x.name,
			Handler: func(srv any, ctx context.Context, dec func(any) error, between grpc.UnaryServerInterceptor) (any, error) {
				q := x.newRequest()
				if err := dec(q); err != nil {
					return nil, err
				}
				return between(ctx, q, &grpc.UnaryServerInfo{Server: srv, FullMethod: method}, func(ctx context.Context, q any) (any, error) {
					c, err := f.admit(ctx, *x, kitgrpc.Value(ctx, "authorization"), connection(ctx))
					if err != nil {
						return nil, statusOf(err).Err()
					}
					a, err := x.do(ctx, c, q.(proto.Message))
					return a, statusOf(err).Err()
				})
			}})
	}
	return d
}

func (f *Facade) serveStream(x *call, ss grpc.ServerStream) error {
	ctx := ss.Context()
	c, err := f.admit(ctx, *x, kitgrpc.Value(ctx, "authorization"), connection(ctx))
	if err != nil {
		return statusOf(err).Err()
	}
	receive := func() (proto.Message, error) {
		q := x.newRequest()
		if err := ss.RecvMsg(q); err != nil {
			return nil, err
		}
		return q, finite(q.ProtoReflect())
	}
	return statusOf(x.flow(ctx, c, receive, func(m proto.Message) error { return ss.SendMsg(m) })).Err()
}

// connection names the connection of a gRPC call.
func connection(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return "grpc " + p.Addr.String()
	}
	return "grpc"
}

// routes serves the calls as JSON over HTTPS.
func (f *Facade) routes() map[string]http.Handler {
	out := map[string]http.Handler{}
	for i := range f.calls {
		for _, pattern := range f.calls[i].paths {
			out[pattern] = f.route(&f.calls[i])
		}
	}
	return out
}

func (f *Facade) route(x *call) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization := r.Header.Get("Authorization")
		sum := sha256.Sum256([]byte(authorization)) // a token is not kept
		c, err := f.admit(r.Context(), *x, authorization, "https "+hex.EncodeToString(sum[:]))
		if err != nil {
			refuse(w, err)
			return
		}
		q := x.newRequest()
		if err := read(w, r, q); err != nil {
			refuse(w, err)
			return
		}
		if x.stream != nil {
			f.routeStream(w, r, x, c, q)
			return
		}
		a, err := x.do(r.Context(), c, q)
		if err != nil {
			refuse(w, err)
			return
		}
		b, err := encode.Marshal(a)
		if err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(b) // a client that is gone hears nothing
	})
}

// routeStream answers with one line of JSON for each message (VEC-TRN-04). Of a call that has a stream of requests the body is the first and last.
func (f *Facade) routeStream(w http.ResponseWriter, r *http.Request, x *call, c client, q proto.Message) {
	ctx, first, begun := r.Context(), true, false
	line := func(name string, b []byte) error {
		w.Header().Set("Content-Type", "application/json")
		begun = true
		_, err := w.Write([]byte(`{"` + name + `":` + string(b) + "}\n"))
		return errors.Join(err, http.NewResponseController(w).Flush())
	}
	err := x.flow(ctx, c, func() (proto.Message, error) {
		if first {
			first = false
			return q, nil
		}
		<-ctx.Done()
		return nil, io.EOF
	}, func(m proto.Message) error {
		b, err := encode.Marshal(m)
		if err != nil {
			return err
		}
		return line("result", b)
	})
	switch {
	case err == nil:
	case begun:
		_ = line("error", problem(statusOf(err))) // a client that is gone hears nothing
	default:
		refuse(w, err)
	}
}

// read reads the request. A GET has it in the query, as far as an event stream needs one.
func read(w http.ResponseWriter, r *http.Request, q proto.Message) error {
	if events, ok := q.(*vectorpb.EventRequest); ok && r.Method == http.MethodGet {
		return query(r, events)
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return errInvalid("body: %v", err)
	}
	return parse(b, q)
}

func query(r *http.Request, q *vectorpb.EventRequest) error {
	v := r.URL.Query()
	q.ConnectionId = v.Get("connection_id")
	white, black := v["white_list.list"], v["black_list.list"]
	switch {
	case white != nil && black != nil:
		return errInvalid("white_list and black_list: want at most one of the two")
	case white != nil:
		q.ListType = &vectorpb.EventRequest_WhiteList{WhiteList: &vectorpb.FilterList{List: white}}
	case black != nil:
		q.ListType = &vectorpb.EventRequest_BlackList{BlackList: &vectorpb.FilterList{List: black}}
	}
	return nil
}

// parse reads a request from JSON; no bytes are an empty one.
func parse(b []byte, q proto.Message) error {
	if len(b) == 0 {
		return nil
	}
	if err := decode.Unmarshal(b, q); err != nil {
		return errInvalid("%s: %v", q.ProtoReflect().Descriptor().Name(), err)
	}
	return nil
}

// refuse answers with an error: text without a good token (part of VEC-AUTH-09), else JSON.
func refuse(w http.ResponseWriter, err error) {
	s := statusOf(err)
	if s.Code() == codes.Unauthenticated {
		http.Error(w, s.Message(), http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(httpStatus(s.Code()))
	_, _ = w.Write(problem(s)) // a client that is gone hears nothing
}

func problem(s *status.Status) []byte {
	b, _ := json.Marshal(struct { // two texts and a number
		Error   string `json:"error"`
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{s.Message(), int(s.Code()), s.Message()})
	return b
}

// httpStatus returns the HTTP status of a gRPC code, as the usual proxies between the two have it.
func httpStatus(c codes.Code) int {
	switch c {
	case codes.InvalidArgument:
		return http.StatusBadRequest
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.NotFound:
		return http.StatusNotFound
	case codes.Aborted:
		return http.StatusConflict
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Unimplemented:
		return http.StatusNotImplemented
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	case codes.DeadlineExceeded:
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}
