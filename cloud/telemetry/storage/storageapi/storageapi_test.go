package storageapi

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"kennel/cloud/telemetry/storage"
	"kennel/infra/auth"
	"kennel/infra/blob"
	"kennel/infra/blob/blobtest"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestPage(t *testing.T) {
	objects := blobtest.New(t)
	book := storage.New(pgtest.New(t), objects)
	show := func() string {
		t.Helper()
		html, err := Pages(book)[0].Show(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return string(html)
	}
	if html := show(); !strings.Contains(html, "Nothing counted yet") {
		t.Error(html)
	}
	if err := objects.Put(t.Context(), "das/2026-11-21/12/a", bytes.NewReader(make([]byte, 1500)), 1500, blob.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := book.Measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	html := show()
	for _, want := range []string{"Events as received", "1.5 KiB", "Uploaded logs", "0 bytes"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q in %s", want, html)
		}
	}
	var got []storage.Usage
	mux := http.NewServeMux()
	Operations(book).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler)})
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/storage", nil).WithContext(auth.WithCaller(t.Context(), auth.Caller{Role: auth.Viewer})))
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	at := slices.IndexFunc(got, func(u storage.Usage) bool { return u.Class == "das" })
	if len(got) != len(storage.Classes) || at < 0 || got[at].Objects != 1 || got[at].Bytes != 1500 {
		t.Errorf("%+v", got)
	}
}
