package update

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kennel/infra/backoff"
	"kennel/ota"
)

// TestDownload: an archive arrives whole whatever a server does that passes, and what does not pass is told with the row's code (VEC-OTA-08,
// VEC-OTA-16). Bytes that arrived are not sent again where the server knows ranges.
func TestDownload(t *testing.T) {
	data := make([]byte, 300_000)
	_, _ = rand.Read(data) // never fails
	serve := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"one"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}
	cut := func(w http.ResponseWriter, most int) http.ResponseWriter { return &short{w, most} }
	for _, tt := range []struct {
		name   string
		server func(w http.ResponseWriter, r *http.Request, call int)
		calls  int
		want   ota.Code
		says   string
	}{
		{"whole", func(w http.ResponseWriter, r *http.Request, _ int) { serve(w, r) }, 1, ota.Done, ""},
		{"cut", func(w http.ResponseWriter, r *http.Request, _ int) { serve(cut(w, 100_000), r) }, 3, ota.Done, ""},
		{"busy at times", func(w http.ResponseWriter, r *http.Request, call int) {
			if call%2 == 0 {
				http.Error(w, "busy", http.StatusServiceUnavailable)
				return
			}
			serve(cut(w, 150_000), r)
		}, 3, ota.Done, ""},
		{"no ranges", func(w http.ResponseWriter, r *http.Request, call int) {
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			if call == 1 {
				w = cut(w, 100_000)
			}
			_, _ = w.Write(data) // the reader may be gone
		}, 2, ota.Done, ""},
		{"silent for a while", func(w http.ResponseWriter, r *http.Request, call int) {
			if call == 1 {
				w.Header().Set("ETag", `"one"`)
				w.Header().Set("Content-Length", fmt.Sprint(len(data)))
				_, _ = w.Write(data[:1000])
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				return
			}
			serve(w, r)
		}, 2, ota.Done, ""},
		{"gone", func(w http.ResponseWriter, r *http.Request, _ int) { http.NotFound(w, r) }, 1, ota.BadURL, "404"},
		{"forbidden", func(w http.ResponseWriter, r *http.Request, _ int) { http.Error(w, "", http.StatusForbidden) }, 1, ota.BadURL, "403"},
		{"another tag", func(w http.ResponseWriter, r *http.Request, call int) {
			w.Header().Set("ETag", fmt.Sprintf(`"%d"`, call))
			http.ServeContent(cut(w, 100_000), r, "", time.Time{}, bytes.NewReader(data))
		}, 2, ota.BadArchive, "changed"},
		{"another size", func(w http.ResponseWriter, r *http.Request, call int) {
			http.ServeContent(cut(w, 100_000), r, "", time.Time{}, bytes.NewReader(data[call:]))
		}, 2, ota.BadArchive, "changed"},
		{"another range", func(w http.ResponseWriter, r *http.Request, call int) {
			if call == 2 {
				r.Header.Set("Range", "bytes=7-")
			}
			serve(cut(w, 100_000), r)
		}, 2, ota.BadArchive, "range"},
		{"silent for good", func(w http.ResponseWriter, r *http.Request, call int) {
			if call == 1 {
				serve(cut(w, 100_000), r)
				return
			}
			http.Error(w, "busy", http.StatusServiceUnavailable)
		}, -1, ota.TimedOut, "at byte 100000"},
		{"never there", func(w http.ResponseWriter, r *http.Request, call int) { http.Error(w, "busy", http.StatusBadGateway) }, -1, ota.BadURL, "502"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { tt.server(w, r, int(calls.Add(1))) }))
			defer srv.Close()
			d := &download{ctx: t.Context(), client: srv.Client(), address: func(context.Context) (string, error) { return srv.URL, nil },
				quiet: 2 * time.Second, patience: 20 * time.Second, stalled: func(int64) {}, pause: backoff.Pause{Min: time.Millisecond, Max: 2 * time.Millisecond}}
			if tt.calls < 0 {
				d.patience = 300 * time.Millisecond
			}
			defer d.close()
			err := d.open(0, "")
			var got []byte
			if err == nil {
				got, err = io.ReadAll(d)
			}
			if ota.CodeOf(err) != tt.want || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("%v: want code %d and %q", err, tt.want, tt.says)
			}
			if err == nil && (!bytes.Equal(got, data) || d.size != int64(len(data))) {
				t.Errorf("%d of %d bytes are not those of the server", len(got), d.size)
			}
			if n := int(calls.Load()); tt.calls > 0 && n != tt.calls {
				t.Errorf("%d requests, want %d", n, tt.calls)
			}
		})
	}
}

// short is a connection that breaks.
type short struct {
	http.ResponseWriter
	left int
}

func (s *short) Write(p []byte) (int, error) {
	n, err := s.ResponseWriter.Write(p[:min(len(p), s.left)])
	if s.left -= n; s.left == 0 {
		s.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}
