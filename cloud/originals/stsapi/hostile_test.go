package stsapi_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"kennel/cloud/identity/consent"
	"kennel/cloud/identity/sts"
	"kennel/cloud/identity/sts/stspg"
	"kennel/cloud/identity/token"
	"kennel/cloud/originals/stsapi"
	"kennel/infra/blob"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
)

// signedPut is a request as a client signs it, before anybody changes it. path is as it goes over the wire.
func signedPut(t *testing.T, c token.Credentials, path, body string, at time.Time, change ...func(*http.Request)) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://"+bucket+"."+awsS3+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(body))
	hash := hex.EncodeToString(sum[:])
	req.Header.Set("X-Amz-Content-Sha256", hash)
	for _, f := range change {
		f(req)
	}
	if h := req.Header.Get("X-Amz-Content-Sha256"); h != "" {
		hash = h
	}
	raw, _, _ := strings.Cut(path, "?")
	plain, err := url.PathUnescape(raw)
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Opaque = "//host" + canonical(plain) // what S3 wants signed, however it is written on the wire
	if err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey.Reveal(), SessionToken: c.SessionToken.Reveal()},
		req, hash, "s3", region, at, func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }); err != nil {
		t.Fatal(err)
	}
	req.URL.Opaque = ""
	return req
}

func canonical(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		if c == '/' || c == '-' || c == '.' || c == '_' || c == '~' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func (r *rig) do(t *testing.T, req *http.Request) (status int, code string) {
	t.Helper()
	resp, err := r.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var e struct{ Code, Message, RequestId string }
	if resp.StatusCode != http.StatusOK {
		if err := xml.Unmarshal(b, &e); err != nil || e.Message == "" || e.RequestId == "" {
			t.Errorf("an S3 client cannot read %q: %v", b, err)
		}
	}
	return resp.StatusCode, e.Code
}

// TestHostile: every refusal, with the code that S3 has for it; nothing is stored.
func TestHostile(t *testing.T) {
	r := newRig(t)
	c, others := r.mint(t, robot), r.mint(t, other)
	now := time.Now()
	key := "/" + folder + "a.gz"
	put := func(f func(*http.Request)) func(*testing.T) *http.Request {
		return func(t *testing.T) *http.Request { q := signedPut(t, c, key, "hello", now); f(q); return q }
	}
	path := func(p string) func(*testing.T) *http.Request {
		return func(t *testing.T) *http.Request { return signedPut(t, c, p, "hello", now) }
	}
	before := func(f func(*http.Request)) func(*testing.T) *http.Request {
		return func(t *testing.T) *http.Request { return signedPut(t, c, key, "hello", now, f) }
	}
	unsign := func(name string) func(*http.Request) { // leaves a header out of what the signature names
		return func(q *http.Request) {
			q.Header.Set("Authorization", strings.Replace(q.Header.Get("Authorization"), name+";", "", 1))
		}
	}
	for name, tc := range map[string]struct {
		req  func(*testing.T) *http.Request
		code string
	}{
		"another robot's folder":   {path("/logs/" + user + "/dmljOjAwZTIwMTAx/a.gz"), "AccessDenied"},
		"another user's folder":    {path("/logs/2b4e28ba-2fa1-11d2-883f-0016d3cca427/dmljOjAwZTIwMTAw/a.gz"), "AccessDenied"},
		"folder alone":             {path("/" + folder), "AccessDenied"},
		"no key":                   {path("/"), "AccessDenied"},
		"above, escaped dots":      {path("/" + folder + "%2e%2e/x"), "AccessDenied"},
		"above, escaped slash":     {path("/" + folder + "..%2f..%2fx"), "AccessDenied"},
		"above, twice escaped":     {path("/" + folder + "%252e%252e%252fx/.."), "AccessDenied"},
		"above, plain":             {path("/" + folder + "../dmljOjAwZTIwMTAx/x"), "AccessDenied"},
		"here":                     {path("/" + folder + "./x"), "AccessDenied"},
		"empty name":               {path("/" + folder + "a//x"), "AccessDenied"},
		"backslash":                {path("/" + folder + "..%5cx"), "AccessDenied"},
		"zero byte":                {path("/" + folder + "a%00"), "AccessDenied"},
		"no UTF-8":                 {path("/" + folder + "a%ff"), "AccessDenied"},
		"very long key":            {path("/" + folder + strings.Repeat("a", 1024)), "AccessDenied"},
		"other robot's own folder": {func(t *testing.T) *http.Request { return signedPut(t, others, key, "hello", now) }, "AccessDenied"},
		"changed body":             {put(func(q *http.Request) { q.Body = io.NopCloser(strings.NewReader("hallo")) }), "XAmzContentSHA256Mismatch"},
		"wrong Content-MD5":        {before(func(q *http.Request) { q.Header.Set("Content-Md5", "XrY7u+Ae7tCTyyK7j1rNww==") }), "BadDigest"},
		"broken Content-MD5":       {before(func(q *http.Request) { q.Header.Set("Content-Md5", "abc") }), "InvalidDigest"},
		"wrong checksum":           {before(func(q *http.Request) { q.Header.Set("X-Amz-Checksum-Crc32", "AAAAAA==") }), "BadDigest"},
		"unknown checksum":         {before(func(q *http.Request) { q.Header.Set("X-Amz-Checksum-Crc16", "AAA=") }), "InvalidRequest"},
		"no length":                {put(func(q *http.Request) { q.ContentLength = -1 }), "SignatureDoesNotMatch"}, // it was signed
		"changed path":             {put(func(q *http.Request) { q.URL.Path += "x" }), "SignatureDoesNotMatch"},
		"changed query":            {put(func(q *http.Request) { q.URL.RawQuery = "uploads" }), "SignatureDoesNotMatch"},
		"changed method":           {put(func(q *http.Request) { q.Method = http.MethodPost }), "SignatureDoesNotMatch"},
		"changed header":           {put(func(q *http.Request) { q.Header.Set("X-Amz-Content-Sha256", strings.Repeat("0", 64)) }), "SignatureDoesNotMatch"},
		"changed host":             {put(func(q *http.Request) { q.Host = bucket + ".s3.amazonaws.com" }), "SignatureDoesNotMatch"},
		"changed signature":        {put(func(q *http.Request) { flip(q, "Authorization", -1) }), "SignatureDoesNotMatch"},
		"more headers":             {put(func(q *http.Request) { q.Header.Set("X-Amz-Acl", "public-read") }), "AccessDenied"},
		"unsigned host":            {put(unsign("host")), "AccessDenied"},
		"unsigned token": {put(func(q *http.Request) {
			q.Header.Set("Authorization", strings.Replace(q.Header.Get("Authorization"), ";x-amz-security-token", "", 1))
		}), "AccessDenied"},
		"unsigned digest": {put(unsign("x-amz-content-sha256")), "AccessDenied"},
		"no token":        {put(func(q *http.Request) { q.Header.Del("X-Amz-Security-Token") }), "AccessDenied"},
		"two tokens":      {put(func(q *http.Request) { q.Header.Add("X-Amz-Security-Token", "x") }), "InvalidRequest"},
		"tampered token":  {put(func(q *http.Request) { flip(q, "X-Amz-Security-Token", 20) }), "InvalidToken"},
		"other's token":   {put(func(q *http.Request) { q.Header.Set("X-Amz-Security-Token", others.SessionToken.Reveal()) }), "InvalidToken"},
		"huge token":      {put(func(q *http.Request) { q.Header.Set("X-Amz-Security-Token", strings.Repeat("A", 9000)) }), "InvalidToken"},
		"another's key id": {func(t *testing.T) *http.Request {
			bad := c
			bad.AccessKeyID = "AKIAIOSFODNN7EXAMPLE"
			return signedPut(t, bad, key, "hello", now)
		}, "InvalidAccessKeyId"},
		"no signature":  {put(func(q *http.Request) { q.Header.Del("Authorization") }), "AccessDenied"},
		"old algorithm": {put(func(q *http.Request) { q.Header.Set("Authorization", "AWS "+c.AccessKeyID+":x") }), "AuthorizationHeaderMalformed"},
		"another service": {put(func(q *http.Request) {
			q.Header.Set("Authorization", strings.Replace(q.Header.Get("Authorization"), "/s3/", "/sts/", 1))
		}), "AuthorizationHeaderMalformed"},
		"huge authorization": {put(func(q *http.Request) { q.Header.Add("Authorization", "x") }), "InvalidRequest"},
		"signed long ago":    {func(t *testing.T) *http.Request { return signedPut(t, c, key, "hello", now.Add(-16*time.Minute)) }, "RequestTimeTooSkewed"},
		"signed in future":   {func(t *testing.T) *http.Request { return signedPut(t, c, key, "hello", now.Add(16*time.Minute)) }, "RequestTimeTooSkewed"},
		"another bucket":     {path("/../x"), "AccessDenied"},
		"acl":                {before(func(q *http.Request) { q.URL.RawQuery = "acl" }), "AccessDenied"},
		"copy":               {before(func(q *http.Request) { q.Header.Set("X-Amz-Copy-Source", "/"+bucket+"/x") }), "AccessDenied"},
		"signed URL":         {put(func(q *http.Request) { q.URL.RawQuery = "X-Amz-Signature=00" }), "AccessDenied"},
		"unknown form of body": {before(func(q *http.Request) {
			q.Header.Set("X-Amz-Content-Sha256", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD")
		}), "NotImplemented"},
		"chunks, no size":        {before(chunked("", "5\r\nhello\r\n0\r\n\r\n")), "MissingContentLength"},
		"chunks, huge header":    {before(chunked("5", strings.Repeat("0", 100_000)+"5\r\nhello")), "IncompleteBody"},
		"chunks, huge size":      {before(chunked("5", "ffffffffffffffff\r\nhello")), "IncompleteBody"},
		"chunks, negative":       {before(chunked("5", "-5\r\nhello\r\n0\r\n\r\n")), "IncompleteBody"},
		"chunks, too long":       {before(chunked("5", "6\r\nhello!\r\n0\r\n\r\n")), "IncompleteBody"},
		"chunks, cut":            {before(chunked("5", "5\r\nhel")), "IncompleteBody"},
		"chunks, no end":         {before(chunked("5", "5\r\nhello\r\n")), "IncompleteBody"},
		"chunks, no trailer":     {before(chunked("5", "5\r\nhello\r\n0\r\n\r\n")), "MalformedTrailerError"},
		"chunks, bad trailer":    {before(chunked("5", "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n")), "BadDigest"},
		"nothing, wrong trailer": {before(chunked("0", "0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n")), "BadDigest"},
		"chunks, and more":       {before(chunked("5", "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\nmore")), "IncompleteBody"},
		"chunks, tiny":           {before(chunked("5", "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n")), "InvalidChunkSizeError"},
	} {
		t.Run(name, func(t *testing.T) {
			status, code := r.do(t, tc.req(t))
			if code != tc.code || status < 400 {
				t.Errorf("%d %s, want %s", status, code, tc.code)
			}
			if s := r.steps.Last(); s.OK || s.Code == "" || s.Reason == "" {
				t.Errorf("the doctor reads %+v", s)
			}
		})
	}
	if got := r.keys(t); len(got) > 0 {
		t.Errorf("stored: %v", got)
	}
	// The same requests, unchanged, are good: the refusals above are for what was changed.
	if status, code := r.do(t, path(key)(t)); status != http.StatusOK {
		t.Errorf("unchanged: %d %s", status, code)
	}
	if status, code := r.do(t, before(chunked("5", "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n"))(t)); status != http.StatusOK {
		t.Errorf("unchanged chunks: %d %s", status, code)
	}
	if got := r.has(t, folder+"a.gz"); string(got) != "hello" {
		t.Errorf("stored %q", got)
	}
}

// chunked makes a request one in chunks with a trailer, with these bytes.
func chunked(size, body string) func(*http.Request) {
	return func(q *http.Request) {
		q.Header.Set("X-Amz-Content-Sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
		q.Header.Set("X-Amz-Trailer", "x-amz-checksum-crc32")
		if size != "" {
			q.Header.Set("X-Amz-Decoded-Content-Length", size)
		}
		q.Body, q.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	}
}

// flip changes one character of a header; at < 0 counts from its end.
func flip(q *http.Request, name string, at int) {
	b := []byte(q.Header.Get(name))
	if at < 0 {
		at += len(b)
	}
	if b[at] == '1' {
		b[at] = '2'
	} else {
		b[at] = '1'
	}
	q.Header.Set(name, string(b))
}

// TestFullDisk: while the database that counts uploads takes no writes, an upload is refused with a code after which clients of S3 try again; nothing of it is
// stored, and it is taken afterwards (issue 34, must hold 1).
func TestFullDisk(t *testing.T) {
	pool := pgtest.New(t)
	r := newRig(t, func(c *stsapi.Config) { c.Usage = stspg.New(pool) })
	c, key := r.v2(r.mint(t, robot)), aws.String(folder+"a")
	put := func() error {
		_, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: key, Body: strings.NewReader("hello")})
		return err
	}
	for _, code := range []string{pgtest.DiskFull, "58030"} {
		end := pgtest.Refuse(t, pool, code)
		if err := put(); codeOf(err) != "ServiceUnavailable" {
			t.Errorf("%s: %v", code, err)
		}
		r.missing(t, *key)
		end()
	}
	if err := put(); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestExpiredAndRevoked: a captured request is worth nothing after its grant; a robot's standing counts until the last byte.
func TestExpiredAndRevoked(t *testing.T) {
	r := newRig(t)
	c := r.mint(t, robot)
	key := aws.String(folder + "a")
	put := func(body io.Reader) error {
		_, err := r.v2(c).PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: key, Body: body, ContentLength: aws.Int64(5)})
		return err
	}
	r.clock.set(sts.DefaultLife)
	if status, code := r.do(t, signedPut(t, c, "/"+*key, "hello", r.clock.now())); code != "ExpiredToken" || status != http.StatusBadRequest {
		t.Errorf("after its life: %d %s", status, code)
	}
	r.clock.set(0)
	r.stand.refuse(robot, errs.Coded(errs.Denied, "thing_revoked", "revoked by an operator"))
	if err := put(strings.NewReader("hello")); codeOf(err) != "AccessDenied" {
		t.Errorf("revoked: %v", err)
	}
	if s := r.steps.Last(); s.Code != "thing_revoked" || s.Thing != robot {
		t.Errorf("the doctor reads %+v", s)
	}
	if _, err := r.grants.Mint(t.Context(), robot, user); errs.CodeOf(err) != "thing_revoked" {
		t.Errorf("mint for a revoked robot: %v", err)
	}
	r.stand.refuse(robot, nil)
	in, out := io.Pipe()
	go func() {
		out.Write([]byte("hel")) // until here the grant holds
		r.stand.refuse(robot, errs.Coded(errs.Denied, "thing_revoked", "revoked by an operator"))
		out.Write([]byte("lo"))
		out.Close()
	}()
	if err := put(onlyReader{in}); codeOf(err) != "AccessDenied" {
		t.Errorf("revoked within the body: %v", err)
	}
	r.missing(t, *key)
	r.stand.refuse(robot, errs.New(errs.Unavailable, "the set is too old"))
	if err := put(strings.NewReader("hello")); codeOf(err) != "ServiceUnavailable" {
		t.Errorf("unknown standing: %v", err)
	}
}

func TestLimits(t *testing.T) {
	r := newRig(t, func(c *stsapi.Config) {
		c.MaxObject, c.MaxDay, c.PerThing, c.Idle, c.MinRate = 1000, 2500, 1, 300*time.Millisecond, 1<<20
	})
	c := r.v2(r.mint(t, robot))
	put := func(name string, body io.Reader, n int64) error {
		_, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(folder + name), Body: body, ContentLength: &n})
		return err
	}
	if err := put("large", bytes.NewReader(content(1001)), 1001); codeOf(err) != "EntityTooLarge" {
		t.Errorf("large: %v", err)
	}
	// Two bodies at once, and one that stops coming: its place is free again after Idle, and its bytes are given back.
	slow := func(arrived chan<- struct{}) string {
		in, out := io.Pipe()
		defer out.Close()
		go func() { out.Write(content(10)); close(arrived) }()
		_, code := r.do(t, signedPut(t, r.mint(t, robot), "/"+folder+"slow", "", time.Now(), func(q *http.Request) { // the SDK would wait for its own body
			q.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
			q.Body, q.ContentLength = io.NopCloser(in), 1000
		}))
		return code
	}
	arrived, ended := make(chan struct{}), make(chan string, 1)
	go func() { ended <- slow(arrived) }()
	<-arrived
	err := put("second", strings.NewReader("x"), 1)
	if codeOf(err) != "SlowDown" && err != nil {
		t.Errorf("second at once: %v", err)
	}
	code := <-ended
	if err == nil && code == "SlowDown" { // what had left this end first came second
		code = slow(make(chan struct{}))
	}
	if code != "RequestTimeout" {
		t.Errorf("slow body: %s", code)
	}
	for i := range 2 {
		if err := put(fmt.Sprint(i), bytes.NewReader(content(1000)), 1000); err != nil {
			t.Fatal(err)
		}
	}
	if err := put("more", bytes.NewReader(content(1000)), 1000); codeOf(err) != "QuotaExceeded" {
		t.Errorf("above the day: %v", err)
	}
	if s := r.steps.Last(); s.Code != "QuotaExceeded" {
		t.Errorf("the doctor reads %+v", s)
	}
	for _, k := range []string{"large", "slow", "more"} {
		r.missing(t, folder+k)
	}
	other := newRig(t, func(c *stsapi.Config) { c.Limiter = never{} })
	if status, code := other.do(t, signedPut(t, other.mint(t, robot), "/"+folder+"x", "x", time.Now())); status != http.StatusServiceUnavailable || code != "SlowDown" {
		t.Errorf("paced: %d %s", status, code)
	}
}

type never struct{}

func (never) Allow(string) time.Duration { return time.Second }

// TestMemoryStaysSmall: sixteen uploads of 16 MiB at once take no more than their buffers.
func TestMemoryStaysSmall(t *testing.T) {
	r := newRig(t, func(c *stsapi.Config) { c.PerThing, c.Store = 16, discard{c.Store} })
	c := r.mint(t, robot)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			n := int64(16 << 20)
			_, err := r.v2(c).PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(fmt.Sprint(folder, i)), ContentLength: &n,
				Body: onlyReader{io.LimitReader(zeros{}, n)}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 { // client and server together, of 256 MiB
		t.Errorf("%d MiB allocated", got>>20)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// discard reads objects and forgets them.
type discard struct{ stsapi.Store }

func (discard) PutOnce(_ context.Context, _ string, body io.Reader, size int64, _ blob.PutOptions, _ blob.Digests) (string, error) {
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{body}, make([]byte, 32<<10))
	if err == nil && n != size {
		err = errors.New("another size")
	}
	return "e", err
}

// TestPersonal: export lists and erase deletes only a person's own uploads; repeating it does no harm.
func TestPersonal(t *testing.T) {
	r := newRig(t)
	put := func(u, name string) string {
		c, err := r.grants.Mint(t.Context(), robot, u)
		if err != nil {
			t.Fatal(err)
		}
		owner := func(p *consent.Permit) { p.Account = u }
		r.change.Store(&owner)
		defer r.change.Store(nil)
		key := strings.Replace(folder, user, u, 1) + name
		if _, err := r.v2(c).PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: &key, Body: strings.NewReader("x")}); err != nil {
			t.Fatal(err)
		}
		return key
	}
	mine, theirs := []string{put(user, "1"), put(user, "2")}, put(user+"0", "1")
	if _, err := r.v2(r.mint(t, robot)).CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: aws.String(bucket), Key: aws.String(folder + "3")}); err != nil {
		t.Fatal(err)
	}
	p := sts.Personal{Objects: r.store, Prefixes: []string{sts.DefaultPrefix, "victor"}}
	v, err := p.Export(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range v.([]sts.Upload) {
		got = append(got, u.Key)
	}
	if !slices.Equal(got, mine) {
		t.Errorf("export %v, want %v", got, mine)
	}
	for range 2 {
		if err := p.Erase(t.Context(), user); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.keys(t); !slices.Equal(got, []string{theirs}) {
		t.Errorf("left %v, want %v", got, theirs)
	}
	if n, err := r.store.DropUnfinished(t.Context(), "", time.Now().Add(time.Hour)); n != 0 || err != nil {
		t.Errorf("%d uploads in parts are left, %v", n, err)
	}
	if err := p.Erase(t.Context(), "../"+user); errs.KindOf(err) != errs.Invalid {
		t.Errorf("erase above: %v", err)
	}
}
