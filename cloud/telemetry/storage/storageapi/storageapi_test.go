package storageapi

import (
	"bytes"
	"strings"
	"testing"

	"kennel/cloud/telemetry/storage"
	"kennel/infra/blob"
	"kennel/infra/blob/blobtest"
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
	for _, want := range []string{"Events as received", "1.5 kB", "Uploaded logs", "0 B"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q in %s", want, html)
		}
	}
	for n, want := range map[int64]string{0: "+0 B", 999: "+999 B", -1000: "−1 kB", 34_560_000: "+34.6 MB", 5_000_000_000_000_000: "+5000 TB"} {
		if got := more(n); got != want {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
}
