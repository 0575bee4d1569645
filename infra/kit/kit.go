// Package kit holds the few pieces every go-kit endpoint here shares: the one type assertion, and the middleware that knows only "a
// request".
package kit

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/infra/errs"
)

// Typed makes an endpoint of a typed function. go-kit's any is asserted here and nowhere else.
func Typed[Req, Resp any](fn func(context.Context, Req) (Resp, error)) endpoint.Endpoint {
	return func(ctx context.Context, request any) (any, error) {
		req, ok := request.(Req)
		if !ok {
			return nil, fmt.Errorf("kit: endpoint got %T, want %T", request, req)
		}
		return fn(ctx, req)
	}
}

// Recover turns a panic of one request into an Internal error, logged with its stack: the process lives on.
func Recover(log *slog.Logger) endpoint.Middleware {
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		return func(ctx context.Context, request any) (resp any, err error) {
			defer func() {
				if p := recover(); p != nil {
					log.ErrorContext(ctx, "request panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
					resp, err = nil, errs.New(errs.Internal, "internal error")
				}
			}()
			return next(ctx, request)
		}
	}
}

// Timeout bounds one request.
func Timeout(d time.Duration) endpoint.Middleware {
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		return func(ctx context.Context, request any) (any, error) {
			ctx, cancel := context.WithTimeout(ctx, d)
			defer cancel()
			return next(ctx, request)
		}
	}
}
