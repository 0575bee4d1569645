package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/infra/bench"
	"kennel/infra/freeaddr"
	"kennel/infra/onebox"
	"kennel/infra/proc"
)

// house is a running one-machine cloud. Its methods are safe for concurrent use, Stop at the end.
type house struct {
	dir     string
	program *bench.Program
	files   map[string]string
	points  map[string]string
	token   string
	http    *http.Client
}

// startTimeout is how long a house may take, the making of its database included, on a machine that has other things to do.
const startTimeout = 3 * time.Minute

// startHouse brings up kenneld onebox from the programs in bin, with args besides data folder, ports and ready file, and returns when it is ready.
func startHouse(ctx context.Context, bin string, args ...string) (_ *house, err error) {
	// A folder of the temporary one, which the unprivileged account of Postgres can reach.
	dir, err := os.MkdirTemp("", "kennel-bench-")
	if err != nil {
		return nil, err
	}
	h := &house{dir: dir}
	defer func() {
		if err != nil {
			h.Stop()
		}
	}()
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	all := []string{"onebox", "-data", dir, "-log-level", "warn"}
	for _, part := range []string{"api", "console", "robots", "mqtt", "postgres", "s3"} {
		addr, err := freeaddr.Loopback()
		if err != nil {
			return nil, err
		}
		all = append(all, "-listen", part+"="+addr)
	}
	h.program, err = bench.Start(proc.Spec{Name: "kenneld", Path: filepath.Join(bin, "kenneld"), Args: append(all, args...),
		LogFile: filepath.Join(dir, "kenneld.log"), StopSignal: os.Interrupt.(syscall.Signal), StopTimeout: time.Minute})
	if err != nil {
		return nil, fmt.Errorf("%w (make build makes the programs)", err)
	}
	wait, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if _, err := h.program.Await(wait, "Kennel is ready"); err != nil {
		return nil, err
	}
	ready, err := onebox.ReadyOf(dir)
	if err != nil {
		return nil, err
	}
	h.files, h.points = ready.Files, ready.Endpoints
	token, err := os.ReadFile(h.files["operator_token"])
	if err != nil {
		return nil, err
	}
	h.token = strings.TrimSpace(string(token))
	root, err := os.ReadFile(h.files["root_ca"])
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(root)
	h.http = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}}}
	return h, nil
}

// Stop is Ctrl-C; it returns when everything has ended, and removes the data.
func (h *house) Stop() {
	if h.http != nil {
		h.http.CloseIdleConnections()
	}
	if h.program != nil {
		h.program.Stop()
	}
	_ = os.RemoveAll(h.dir) // the temporary folder is cleaned by others too
}

// Dir is the data folder.
func (h *house) Dir() string { return h.dir }

// CA is the folder with the authorities.
func (h *house) CA() string { return filepath.Join(h.dir, "ca") }

// URL is the address of a part ("api", "mqtt", ...) with its scheme.
func (h *house) URL(part string) string { return h.points[part] }

// Addr is the address of a part as host:port.
func (h *house) Addr(part string) string {
	_, addr, _ := strings.Cut(h.points[part], "://")
	return addr
}

// File is one of the files that the ready file names, such as "operator_token".
func (h *house) File(name string) string { return h.files[name] }

// Pid returns the current process id of a part ("kenneld", "broker", "postgres", "robot-vic-...").
func (h *house) Pid(part string) (int, error) {
	r, err := onebox.ReadyOf(h.dir)
	if err != nil {
		return 0, err
	}
	pid := r.Pids[part]
	if pid == 0 {
		return 0, fmt.Errorf("part %q does not run: have %v", part, r.Pids)
	}
	return pid, nil
}

// DB opens a connection to the house's database; the caller closes it.
func (h *house) DB(ctx context.Context) (*pgx.Conn, error) {
	dsn, err := os.ReadFile(h.files["postgres_dsn"])
	if err != nil {
		return nil, err
	}
	return pgx.Connect(ctx, strings.TrimSpace(string(dsn)))
}

// API asks the public API as operator and decodes the answer into out, unless that is nil. The connection is kept for the next call.
func (h *house) API(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, h.URL("api")+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+h.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := h.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s: %.300s", method, path, resp.Status, b)
	case out == nil:
		return nil
	}
	return json.Unmarshal(b, out)
}

// Present waits until n robots are present and returns their things.
func (h *house) Present(ctx context.Context, n int) ([]string, error) {
	for {
		var list []struct{ Thing, Presence string }
		if err := h.API(ctx, "GET", "/v1/things", nil, &list); err != nil {
			return nil, err
		}
		var out []string
		for _, t := range list {
			if t.Presence == "present" {
				out = append(out, t.Thing)
			}
		}
		if len(out) >= n {
			return out, nil
		}
		select { // between two processes the answer to a question is the event there is
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d robots present: %w", len(out), n, context.Cause(ctx))
		}
	}
}

func TestStartWithoutPrograms(t *testing.T) {
	if _, err := startHouse(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("%v: want one that says how to make the programs", err)
	}
}
