package blob_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/infra/blob"
	"kennel/infra/blob/blobtest"
	"kennel/infra/errs"
)

func put(t *testing.T, s *blob.Store, key, body string) {
	t.Helper()
	if err := s.Put(t.Context(), key, strings.NewReader(body), int64(len(body)), blob.PutOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestPutGetHeadDelete(t *testing.T) {
	s := blobtest.New(t)
	o := blob.PutOptions{ContentType: "text/x-robot", Metadata: map[string]string{"thing": "vic:00e20100"}}
	if err := s.Put(t.Context(), "logs/vic/1.txt", strings.NewReader("hello robot"), 11, o); err != nil {
		t.Fatal(err)
	}
	i, err := s.Head(t.Context(), "logs/vic/1.txt")
	if err != nil {
		t.Fatal(err)
	}
	if i.Size != 11 || i.ContentType != o.ContentType || i.Metadata["thing"] != "vic:00e20100" {
		t.Errorf("head = %+v, want size 11, %+v", i, o)
	}
	for _, c := range []struct {
		offset, length int64
		want           string
	}{{0, 0, "hello robot"}, {6, 0, "robot"}, {6, 3, "rob"}} {
		r, _, err := s.Get(t.Context(), "logs/vic/1.txt", c.offset, c.length)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		r.Close()
		if err != nil || string(got) != c.want {
			t.Errorf("get %d+%d = %q, %v; want %q", c.offset, c.length, got, err, c.want)
		}
	}
	for range 2 { // the second finds nothing, which is no error
		if err := s.Delete(t.Context(), "logs/vic/1.txt"); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err = s.Get(t.Context(), "logs/vic/1.txt", 0, 0)
	if !errors.Is(err, blob.ErrNotFound) || errs.KindOf(err) != errs.NotFound {
		t.Errorf("get after delete: %v, want ErrNotFound", err)
	}
	if _, err = s.Head(t.Context(), "logs/vic/1.txt"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("head after delete: %v, want ErrNotFound", err)
	}
}

// A body that no one can rewind and that is larger than one part.
func TestPutStream(t *testing.T) {
	s := blobtest.New(t)
	want := make([]byte, 20<<20)
	rand.Read(want)
	if err := s.Put(t.Context(), "ota/big", io.MultiReader(bytes.NewReader(want)), int64(len(want)), blob.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	r, i, err := s.Get(t.Context(), "ota/big", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, want) || i.Size != int64(len(want)) {
		t.Errorf("got %d bytes, info %+v, err %v; want the same %d bytes", len(got), i, err, len(want))
	}
}

func TestPutOfAnotherSizeStoresNothing(t *testing.T) {
	s := blobtest.New(t)
	for name, body := range map[string]string{"shorter": "1234", "longer": "123456"} {
		err := s.Put(t.Context(), name, strings.NewReader(body), 5, blob.PutOptions{})
		if errs.KindOf(err) != errs.Invalid || !strings.Contains(fmt.Sprint(err), name) {
			t.Errorf("%s body: %v, want Invalid that says so", name, err)
		}
		if _, err := s.Head(t.Context(), name); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("%s body was stored: %v", name, err)
		}
	}
}

func TestListPages(t *testing.T) {
	s := blobtest.New(t)
	var want []string
	for i := range 7 {
		key := fmt.Sprintf("crash/%02d", i)
		want = append(want, key)
		put(t, s, key, "x")
	}
	put(t, s, "ota/1", "x")
	var got []string
	for i, err := range s.List(t.Context(), "crash/") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, i.Key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("list = %v, want %v", got, want)
	}
}

func do(t *testing.T, method, url string, header http.Header, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		if k != "Host" && k != "Content-Length" {
			req.Header[k] = v
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestPresignedRequests(t *testing.T) {
	s := blobtest.New(t)
	ctx := t.Context()
	p, err := s.PresignPut(ctx, "logs/a b+c.gz", 5, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if code, body := do(t, p.Method, p.URL, p.Header, "hello"); code != http.StatusOK {
		t.Fatalf("presigned put: %d %s", code, body)
	}
	g, err := s.PresignGet(ctx, "logs/a b+c.gz", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if code, body := do(t, g.Method, g.URL, g.Header, ""); code != http.StatusOK || body != "hello" {
		t.Errorf("presigned get: %d %q", code, body)
	}
	put(t, s, "logs/other", "secret")
	short, err := s.PresignGet(ctx, "logs/other", time.Second)
	if err != nil {
		t.Fatal(err)
	}

	refused := []struct {
		name, method, url, body string
	}{
		{"put of another size", http.MethodPut, p.URL, "hello, this is longer"},
		{"get with the put's URL", http.MethodGet, p.URL, ""},
		{"put with the get's URL", http.MethodPut, g.URL, "hello"},
		{"another key", http.MethodGet, strings.Replace(g.URL, "a%20b%2Bc.gz", "other", 1), ""},
		{"another signature", http.MethodGet, flipLast(g.URL), ""},
		{"longer life", http.MethodGet, strings.Replace(g.URL, "X-Amz-Expires=60", "X-Amz-Expires=600", 1), ""},
		{"no signature", http.MethodGet, strings.Split(g.URL, "?")[0], ""},
	}
	for _, c := range refused {
		if c.url == g.URL && c.method == g.Method {
			t.Fatalf("%s: the test changed nothing", c.name)
		}
		code, body := do(t, c.method, c.url, nil, c.body)
		if code != http.StatusForbidden {
			t.Errorf("%s: status %d, want 403; %s", c.name, code, body)
		}
	}
	if code := expired(t, short); code != http.StatusForbidden {
		t.Errorf("expired URL: status %d, want 403", code)
	}
}

// flipLast changes the last hex digit of the URL's signature.
func flipLast(url string) string {
	const key = "X-Amz-Signature="
	i := strings.Index(url, key) + len(key)
	c := byte('0')
	if url[i] == '0' {
		c = '1'
	}
	return url[:i] + string(c) + url[i+1:]
}

// expired uses a URL of one second until it is refused, for ten seconds at most.
func expired(t *testing.T, p blob.Presigned) (code int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if code, _ = do(t, p.Method, p.URL, p.Header, ""); code != http.StatusOK {
			break
		}
	}
	return code
}

func TestWrongKeysAreDenied(t *testing.T) {
	good := blobtest.Config(t)
	s, err := blob.Open(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.EnsureBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, s, "ota/1", "x")
	wrong := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(wrong, []byte("WRONGWRONGWRONG\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]func(*blob.Config){
		"wrong secret": func(c *blob.Config) { c.SecretKeyFile = wrong },
		"wrong access": func(c *blob.Config) { c.AccessKeyFile = wrong },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			c := good
			change(&c)
			bad, err := blob.Open(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			for what, err := range map[string]error{
				"put":    bad.Put(t.Context(), "ota/2", strings.NewReader("x"), 1, blob.PutOptions{}),
				"delete": bad.Delete(t.Context(), "ota/1"),
				"bucket": bad.EnsureBucket(t.Context()),
			} {
				if k := errs.KindOf(err); k != errs.Denied {
					t.Errorf("%s: %v (kind %v), want denied", what, err, k)
				}
			}
			if _, err := s.Head(t.Context(), "ota/1"); err != nil {
				t.Errorf("after the refused delete: %v", err)
			}
			p, err := bad.PresignGet(t.Context(), "ota/1", time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if code, _ := do(t, p.Method, p.URL, p.Header, ""); code != http.StatusForbidden {
				t.Errorf("presigned with wrong keys: %d, want 403", code)
			}
		})
	}
	if code, _ := do(t, http.MethodGet, good.Endpoint+"/"+good.Bucket+"/ota/1", nil, ""); code != http.StatusForbidden {
		t.Errorf("anonymous get: %d, want 403", code)
	}
	if code, _ := do(t, http.MethodPut, good.Endpoint+"/"+good.Bucket+"/ota/1", nil, "y"); code != http.StatusForbidden {
		t.Errorf("anonymous put: %d, want 403", code)
	}
	if code, _ := do(t, http.MethodGet, good.Endpoint+"/"+good.Bucket+"?list-type=2", nil, ""); code != http.StatusForbidden {
		t.Errorf("anonymous list: %d, want 403", code)
	}
}

func TestStoreAwayIsUnavailable(t *testing.T) {
	c := blobtest.Config(t)
	c.Endpoint = "http://127.0.0.1:1"
	s, err := blob.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Head(t.Context(), "x"); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("head: %v (%v), want unavailable", err, errs.KindOf(err))
	}
}

func TestConfigValidate(t *testing.T) {
	for name, c := range map[string]blob.Config{
		"no bucket":    {},
		"one key file": {Bucket: "b", AccessKeyFile: "x"},
		"bad endpoint": {Bucket: "b", Endpoint: "localhost:9000"},
		"bad public":   {Bucket: "b", PublicEndpoint: "ftp://x"},
	} {
		if _, err := blob.Open(t.Context(), c); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %v, want invalid", name, err)
		}
	}
}

// TestFull (issue 16, finding 6): that the store has no space is told, with its words.
func TestFull(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.WriteHeader(http.StatusInsufficientStorage) // as s3d answers
		_, _ = io.WriteString(w, `<Error><Code>InsufficientStorage</Code><Message>No space left on device.</Message></Error>`)
	}))
	defer srv.Close()
	c := blobtest.Config(t)
	var told []string
	c.Endpoint, c.Full = srv.URL, func(why string) { told = append(told, why) }
	s, err := blob.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Get(t.Context(), "x", 0, 0); err == nil || len(told) > 0 {
		t.Errorf("%v, told %q", err, told)
	}
	if _, err := s.PutOnce(t.Context(), "x", strings.NewReader("x"), 1, blob.PutOptions{}, blob.Digests{}); errs.KindOf(err) != errs.Unavailable ||
		len(told) != 1 || !strings.Contains(told[0], "No space left on device") {
		t.Errorf("%v, told %q", err, told)
	}
}

// TestReservedNames (issue 16, finding 8): a key that the gateway could store and never list is refused with a sentence, whole or in parts.
func TestReservedNames(t *testing.T) {
	s := blobtest.New(t)
	for _, key := range []string{".sgwtmp", ".sgwtmp/x", "logs/.sgwtmp/y", "logs/.sgwtmp"} {
		_, err := s.PutOnce(t.Context(), key, strings.NewReader("x"), 1, blob.PutOptions{}, blob.Digests{})
		if err == nil || !strings.Contains(err.Error(), "keeps for itself") {
			t.Errorf("%s: %v", key, err)
		}
		if _, err := s.BeginParts(t.Context(), key, blob.PutOptions{}); err == nil || !strings.Contains(err.Error(), "keeps for itself") {
			t.Errorf("%s in parts: %v", key, err)
		}
	}
	put(t, s, "logs/x.sgwtmp/y", "x")
	put(t, s, "logs/%2Esgwtmp/y", "x")
	n := 0
	for _, err := range s.List(t.Context(), "logs/") {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d objects listed, want 2", n)
	}
}
