// Package localapi is the socket on which other programs of the robot ask agentd; its folder is for agentd's user and root alone.
//
// A part lists its requests in the Local of its host.Part, each of which Answer serves; a program, such as agentd's own command line, uses Ask.
package localapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"kennel/edge/agent/host"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/runner"
	"kennel/infra/sockpath"
)

const (
	localDir  = "run/kennel-agent"
	localName = "socket"
)

const (
	maxLocal  = 64 << 10 // bytes of a body
	localTime = 45 * time.Second
)

// Nothing is an empty message.
type Nothing struct{}

// Part answers the requests that h's parts list.
func Part(h *host.Host) host.Part {
	return host.Part{Name: "localapi", Services: []runner.Service{{Name: "local requests", Run: func(ctx context.Context) error { return serve(ctx, h) }}}}
}

// serve answers requests of the robot's other programs until ctx ends.
func serve(ctx context.Context, h *host.Host) error {
	mux := http.NewServeMux()
	for pattern, handler := range h.Local() {
		mux.Handle(pattern, handler)
	}
	ln, err := sockpath.ListenPrivate(h.Root, localDir+"/"+localName)
	if err != nil {
		return fmt.Errorf("socket in %s: %w", localDir, err)
	}
	srv := &http.Server{
		Handler: mux, ReadTimeout: localTime, WriteTimeout: localTime + 5*time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1) // it ends once
	go func() { served <- srv.Serve(ln) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := srv.Shutdown(sctx); err != nil {
		_ = srv.Close() // a caller that still waits gets no answer
	}
	<-served
	return nil
}

// Answer serves one kind of request.
func Answer[Req, Resp any](do func(context.Context, Req) (Resp, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), localTime)
		defer cancel()
		var req Req
		err := kithttp.ReadJSON(r, &req, maxLocal)
		if err == nil {
			var resp Resp
			if resp, err = do(ctx, req); err == nil {
				kithttp.WriteJSON(w, http.StatusOK, resp)
				return
			}
		}
		kithttp.WriteError(w, err)
	})
}

// Ask asks the agentd of the robot below root.
func Ask[Resp any](ctx context.Context, root *os.Root, path string, body any) (Resp, error) {
	var out Resp
	b, err := json.Marshal(body)
	if err != nil {
		return out, err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
			return conn, sockpath.Below(root, localDir+"/"+localName, func(path string) error {
				conn, err = (&net.Dialer{}).DialContext(ctx, "unix", path)
				return err
			})
		}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agentd"+path, bytes.NewReader(b))
	if err != nil {
		return out, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return out, errs.New(errs.Unavailable, "agentd does not answer: check that it is running, and that you are root or its user: %w", err)
	}
	defer resp.Body.Close()
	if b, err = io.ReadAll(io.LimitReader(resp.Body, maxLocal)); err != nil {
		return out, errs.New(errs.Unavailable, "answer of agentd: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		var p kithttp.Problem
		if err := json.Unmarshal(b, &p); err != nil || p.Kind == "" {
			return out, errs.New(errs.Internal, "agentd answered %s", resp.Status)
		}
		return out, &errs.Error{Kind: errs.ParseKind(p.Kind), Code: p.Code, Msg: p.Error}
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return out, errs.New(errs.Corrupt, "answer of agentd: %w", err)
	}
	return out, nil
}
