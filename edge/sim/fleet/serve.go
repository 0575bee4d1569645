package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Handler answers programs that watch the fleet:
//
//	GET  /status           the Summary
//	POST /crash?n=25       makes n robots report that a program crashed (all without n) -> {"crashed": n}
//	POST /reconnect?n=100  cuts the connections of n robots at once (all without n) and forgets the absences before -> {"cut": n}
//	POST /reboot?thing=ID  restarts the computers of the robots named, one or more -> {"rebooted": n}
func (f *Fleet) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { answer(w, f.Summary()) })
	some := func(pattern string, do func(n int) any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			n := len(f.robots)
			if q := r.URL.Query().Get("n"); q != "" {
				var err error
				if n, err = strconv.Atoi(q); err != nil || n < 1 {
					http.Error(w, fmt.Sprintf("n is %.20q: want a number from 1", q), http.StatusBadRequest)
					return
				}
			}
			answer(w, do(n))
		})
	}
	some("POST /reconnect", func(n int) any {
		f.mu.Lock()
		f.absence.reset()
		f.logins.reset()
		f.mu.Unlock()
		return map[string]int{"cut": f.Reconnect(n)}
	})
	some("POST /crash", func(n int) any { return map[string]int{"crashed": f.Crash(n)} })
	mux.HandleFunc("POST /reboot", func(w http.ResponseWriter, r *http.Request) {
		var ids []thing.ID
		for _, s := range r.URL.Query()["thing"] {
			id, err := thing.Parse(s)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			ids = append(ids, id)
		}
		answer(w, map[string]int{"rebooted": f.Reboot(ids)})
	})
	return mux
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // who asked may be gone
}

// Listen opens addr for Serve: host:port on this machine, or the path of a socket.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	network := "tcp"
	if strings.ContainsRune(addr, '/') {
		network = "unix"
	} else if host, _, err := net.SplitHostPort(addr); err != nil || !loopback(host) {
		return nil, errs.New(errs.Invalid, "status address %.80q: want host:port of this machine, or the path of a socket", addr)
	}
	ln, err := new(net.ListenConfig).Listen(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	return ln, nil
}

// Serve answers at ln until ctx ends, and closes it.
func (f *Fleet) Serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{Handler: f.Handler(), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() }) // no client waits for an answer from a fleet that ends
	defer stop()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("status: %w", err)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
