package jdocsapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/go-kit/kit/endpoint"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
)

// maxBody bounds a request: a document of the largest size whose every second character must be escaped, and the rest.
const maxBody = 512 << 10

// Mount adds the published REST form of the three calls of robots: POST /1/write-doc, /1/read-docs, /1/delete-doc. Bodies are the messages
// of gRPC as JSON, numbers of 64 bits as text; app key and access token are headers of the names that the metadata have, with or without
// the prefix that gRPC gateways put before them.
func (p *Published) Mount(mux *http.ServeMux) {
	mux.Handle("POST /1/write-doc", rest(p.robots.write, p.write, written))
	mux.Handle("POST /1/read-docs", rest(p.robots.read, p.read, documents))
	mux.Handle("POST /1/delete-doc", rest(p.robots.delete, p.remove, deleted))
}

// message is a pointer to a protobuf message.
type message[T any] interface {
	*T
	proto.Message
}

func rest[T any, M message[T], A proto.Message](ep endpoint.Endpoint, in func(context.Context, Credentials, M) (any, error), out func(any) (A, error)) http.Handler {
	return kithttp.Handler(func(ctx context.Context, req any) (any, error) {
		resp, err := ep(ctx, req)
		if err != nil {
			return nil, err
		}
		m, err := out(resp)
		if err != nil {
			return nil, err
		}
		return jsonOf{m}, nil
	}, func(r *http.Request) (any, error) {
		b, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			return nil, errs.New(errs.Invalid, "body: more than %d bytes", maxBody)
		case err != nil:
			return nil, errs.New(errs.Invalid, "body: %w", err)
		}
		m := M(new(T))
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, m); err != nil {
			return nil, errs.New(errs.Invalid, "body: %s", strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: "))
		}
		return in(r.Context(), Credentials{AccessToken: header(r, accessToken), AppKey: header(r, appKey), Addr: auth.CallerFrom(r.Context()).Addr,
			Version: r.UserAgent()}, m)
	})
}

func header(r *http.Request, name string) logging.Secret {
	if v := r.Header.Get(name); v != "" {
		return logging.Secret(v)
	}
	return logging.Secret(r.Header.Get("Grpc-Metadata-" + name))
}

// jsonOf writes a message with the names of its fields, those without a value too.
type jsonOf struct{ proto.Message }

func (j jsonOf) MarshalJSON() ([]byte, error) {
	return protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true}.Marshal(j.Message)
}
