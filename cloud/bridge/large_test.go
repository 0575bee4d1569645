package bridge

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kennel/infra/api/large"
	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/thing"
)

// TestLarge: a proven thing gets its answer; everybody and everything else a reason, and the process lives on.
func TestLarge(t *testing.T) {
	me := thing.MustParse("vic:00e20100")
	handlers := map[string]kitmqtt.ReqHandler{
		"echo/whole": func(_ context.Context, id thing.ID, body []byte) ([]byte, error) {
			return append([]byte(id+" "), body...), nil
		},
		"echo/no": func(context.Context, thing.ID, []byte) ([]byte, error) {
			return nil, errs.Coded(errs.Conflict, "stale", "version 7 is there")
		},
		"echo/boom": func(context.Context, thing.ID, []byte) ([]byte, error) { panic("secret words") },
		"echo/bug":  func(context.Context, thing.ID, []byte) ([]byte, error) { return nil, errors.New("password in a dsn") },
	}
	identify := func(r *http.Request) (thing.ID, error) {
		if r.Header.Get("Test-Proof") == "" {
			return "", errs.Coded(errs.Unauthenticated, "no_certificate", "want a certificate")
		}
		return me, nil
	}
	mux := http.NewServeMux()
	mux.Handle("POST "+large.Path("{service}", "{method}"), Large(handlers, identify, slog.New(slog.DiscardHandler)))
	body := bytes.Repeat([]byte("k"), 300<<10)
	for _, tc := range []struct {
		name, method, proof string
		body                []byte
		code                int
		want                string
	}{
		{"whole", "whole", "x", body, 200, "vic:00e20100 kkkk"},
		{"no proof", "whole", "", body, 401, "want a certificate"},
		{"unknown", "sing", "x", body, 404, `no request \"echo/sing\"`},
		{"refused", "no", "x", body, 409, `"code":"stale"`},
		{"panic", "boom", "x", body, 500, "internal error"},
		{"bug", "bug", "x", body, 500, "internal error"},
		{"too large", "whole", "x", make([]byte, large.MaxBody+1), 400, "at most 1048576 bytes"},
	} {
		r := httptest.NewRequest("POST", large.Path("echo", tc.method), bytes.NewReader(tc.body))
		r.Header.Set("Test-Proof", tc.proof)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		got, _ := io.ReadAll(w.Body)
		if w.Code != tc.code || !strings.Contains(string(got), tc.want) {
			t.Errorf("%s: %d %.200s; want %d with %q", tc.name, w.Code, got, tc.code, tc.want)
		}
	}
}
