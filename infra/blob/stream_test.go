package blob_test

import (
	"bytes"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"kennel/infra/blob"
	"kennel/infra/blob/blobtest"
	"kennel/infra/errs"
)

func read(t *testing.T, s *blob.Store, key string) []byte {
	t.Helper()
	r, _, err := s.Get(t.Context(), key, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// onlyReader can be read once.
type onlyReader struct{ io.Reader }

func TestPutOnceKeepsAllOrNothing(t *testing.T) {
	s := blobtest.New(t)
	want := make([]byte, 9<<20)
	rand.Read(want)
	m, h := md5.Sum(want), sha256.Sum256(want)
	bad := errors.New("the reader found out")
	for name, c := range map[string]struct {
		body io.Reader
		d    blob.Digests
		ok   bool
	}{
		"no digest":    {body: bytes.NewReader(want), ok: true},
		"both digests": {body: bytes.NewReader(want), d: blob.Digests{MD5: m[:], SHA256: h[:]}, ok: true},
		"wrong md5":    {body: bytes.NewReader(want), d: blob.Digests{MD5: make([]byte, 16)}},
		"wrong sha256": {body: bytes.NewReader(want), d: blob.Digests{SHA256: make([]byte, 32)}},
		"shorter":      {body: bytes.NewReader(want[1:])},
		"error at end": {body: io.MultiReader(bytes.NewReader(want[1:]), failing{bad})},
	} {
		t.Run(name, func(t *testing.T) {
			key := "logs/" + name
			etag, err := s.PutOnce(t.Context(), key, onlyReader{c.body}, int64(len(want)), blob.PutOptions{}, c.d)
			if c.ok {
				if err != nil || etag == "" || !bytes.Equal(read(t, s, key), want) {
					t.Fatalf("etag %q, %v; or another content", etag, err)
				}
				return
			}
			if err == nil {
				t.Fatal("stored")
			}
			if _, err := s.Head(t.Context(), key); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("something was stored: %v", err)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestParts(t *testing.T) {
	s := blobtest.New(t)
	ctx, key := t.Context(), "logs/u/in parts"
	id, err := s.BeginParts(ctx, key, blob.PutOptions{ContentType: "text/x-log"})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 6<<20)
	rand.Read(want)
	var parts []blob.Part
	for i, b := range [][]byte{want[:5<<20], want[5<<20:]} {
		etag, err := s.PutPart(ctx, key, id, int32(i+1), onlyReader{bytes.NewReader(b)}, int64(len(b)), blob.Digests{})
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, blob.Part{Number: int32(i + 1), ETag: etag, Size: int64(len(b))})
	}
	came, err := s.Parts(ctx, key, id)
	if err != nil || len(came) != 2 || came[0] != parts[0] || came[1] != parts[1] {
		t.Fatalf("parts %+v, %v; want %+v", came, err, parts)
	}
	if _, err := s.FinishParts(ctx, key, id, parts); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, s, key), want) {
		t.Error("another content")
	}
	for range 2 {
		if _, err := s.BeginParts(ctx, "logs/u/left", blob.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.DropUnfinished(ctx, "logs/u/", time.Now().Add(-time.Hour)); err != nil || n != 0 {
		t.Errorf("dropped %d young ones, %v", n, err)
	}
	if n, err := s.DropUnfinished(ctx, "logs/u/", time.Now().Add(time.Hour)); err != nil || n != 2 {
		t.Errorf("dropped %d, %v; want 2", n, err)
	}
	if err := s.DropParts(ctx, key, "no-such-upload"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("drop of none: %v", err)
	}
}

func TestDeleteAll(t *testing.T) {
	s := blobtest.New(t)
	for _, k := range []string{"logs/u/1", "logs/u/a/2", "logs/u2/1"} {
		put(t, s, k, "x")
	}
	for _, want := range []int{2, 0} {
		if n, err := s.DeleteAll(t.Context(), "logs/u/"); err != nil || n != want {
			t.Errorf("deleted %d, %v; want %d", n, err, want)
		}
	}
	if got := read(t, s, "logs/u2/1"); !strings.EqualFold(string(got), "x") {
		t.Errorf("another's object: %q", got)
	}
}
