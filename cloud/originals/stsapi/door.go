// Package stsapi is the S3 front door: it takes what robots upload with temporary credentials and passes it on to any S3.
//
// It speaks the part of S3 that uploads need: PUT of an object, whole or in parts, addressed by path or by host, signed by SigV4 in a
// header. Everything else is AccessDenied, as it would be for such credentials at AWS. A body passes through and is never kept: of an
// upload, memory holds two buffers. Nothing is stored before signature, digests, length, the robot's standing and its owner's consent were found good at the end.
package stsapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/xml"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"kennel/cloud/identity/consent"
	"kennel/cloud/identity/sts"
	"kennel/cloud/identity/token"
	"kennel/infra/blob"
	"kennel/infra/blob/sigv4"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Store is the part of a blob.Store that the door needs.
type Store interface {
	PutOnce(ctx context.Context, key string, body io.Reader, size int64, o blob.PutOptions, d blob.Digests) (string, error)
	BeginParts(ctx context.Context, key string, o blob.PutOptions) (string, error)
	PutPart(ctx context.Context, key, upload string, number int32, body io.Reader, size int64, d blob.Digests) (string, error)
	Parts(ctx context.Context, key, upload string) ([]blob.Part, error)
	FinishParts(ctx context.Context, key, upload string, parts []blob.Part) (string, error)
	DropParts(ctx context.Context, key, upload string) error
	DropUnfinished(ctx context.Context, prefix string, before time.Time) (int, error)
}

// Usage counts what a robot uploads each day, for all processes.
type Usage interface {
	// Reserve takes n bytes of the robot's day, or refuses if that is more than limit (Exhausted).
	Reserve(ctx context.Context, id thing.ID, n, limit int64) (day time.Time, err error)
	// Release gives back what was not uploaded after all.
	Release(ctx context.Context, id thing.ID, day time.Time, n int64) error
}

// Config holds the settings of a door. Zero numbers take defaults; none of these limits comes from the original.
type Config struct {
	Grants   *sts.Grants
	Consent  consent.Ask
	Store    Store
	Usage    Usage
	Limiter  token.Limiter // paces the requests of each robot; nil: none
	Peers    token.Limiter // paces requests that name no grant of ours, by address; nil: none
	Recorder token.Recorder
	// Stored hears of each object that was stored, before the robot is: whose it is, its key in Store, what the robot calls it, its size in bytes. If it
	// fails the upload is good all the same, because a list of uploads can be mended. nil: none is.
	Stored func(ctx context.Context, g sts.Grant, key, name string, size int64) error
	Log    *slog.Logger
	Now    func() time.Time // nil: time.Now

	Buckets []string // names that robots use; all lead to the one bucket of Store
	Domains []string // host names under which a bucket is BUCKET.DOMAIN, beside those of AWS

	MaxObject int64         // bytes of one object; 0: 128 MiB
	MaxDay    int64         // bytes of one robot in one day (UTC); 0: 512 MiB
	Uploads   int           // bodies taken at once; 0: 128
	PerThing  int           // of one robot; 0: 8 (the original's uploader sends five parts at once)
	Idle      time.Duration // longest pause within a body; 0: 30 s
	MinRate   int64         // bytes per second below which a body is too slow, after Idle; 0: 2 KiB
	Insecure  bool          // takes unsigned bodies outside TLS: only behind something of ours that ended it
}

// StepUpload is the doctor's name for an upload.
const StepUpload = "log upload"

// unfinished is how long an upload in parts may take.
const unfinished = 24 * time.Hour

// Door is the handler. Safe for concurrent use.
type Door struct {
	cfg   Config
	slots chan struct{} // one for each upload under way

	mu  sync.Mutex
	per map[thing.ID]int
}

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// New returns a door; the error says which setting cannot work.
func New(c Config) (*Door, error) {
	if c.Grants == nil || c.Consent == nil || c.Store == nil || c.Usage == nil || c.Recorder == nil || c.Log == nil {
		return nil, errs.New(errs.Invalid, "s3 door: want grants, consent, a store, a count of usage, a recorder and a log")
	}
	if len(c.Buckets) == 0 {
		return nil, errs.New(errs.Invalid, "s3 door: want at least one bucket name")
	}
	for _, b := range c.Buckets {
		if !bucketName.MatchString(b) {
			return nil, errs.New(errs.Invalid, "s3 door: bucket %q: want 3 to 63 of a-z 0-9 . -", b)
		}
	}
	c.MaxObject, c.MaxDay = cmp.Or(c.MaxObject, 128<<20), cmp.Or(c.MaxDay, 512<<20)
	c.Uploads, c.PerThing = cmp.Or(c.Uploads, 128), cmp.Or(c.PerThing, 8)
	c.Idle, c.MinRate = cmp.Or(c.Idle, 30*time.Second), cmp.Or(c.MinRate, 2<<10)
	if c.MaxObject < 0 || c.MaxDay < 0 || c.Uploads < 0 || c.PerThing < 0 || c.Idle < 0 || c.MinRate < 0 {
		return nil, errs.New(errs.Invalid, "s3 door: limit below 0: want 0 or more")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Domains = slices.Clone(c.Domains)
	for i := range c.Domains {
		c.Domains[i] = strings.ToLower(c.Domains[i])
	}
	return &Door{cfg: c, slots: make(chan struct{}, c.Uploads), per: map[thing.ID]int{}}, nil
}

// aws matches the host names under which AWS serves S3; original robots use s3.us-west-2.amazonaws.com.
var aws = regexp.MustCompile(`^s3([.-](dualstack\.)?[a-z0-9-]+)?\.amazonaws\.com(\.cn)?$`)

func (d *Door) domain(host string) bool {
	return aws.MatchString(host) || slices.Contains(d.cfg.Domains, host)
}

func hostOf(r *http.Request) string {
	host := strings.ToLower(r.Host)
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.TrimSuffix(host, ".")
}

// Serves reports whether a request is for this door, where one port serves several: it names one of our buckets, or a host of S3.
func (d *Door) Serves(r *http.Request) bool {
	bucket, _, err := d.target(r)
	return err == nil || bucket != "" && d.domain(hostOf(r))
}

// target returns which object a request is about.
func (d *Door) target(r *http.Request) (bucket, key string, err error) {
	path, err := sigv4.Path(r)
	if err != nil {
		return "", "", err
	}
	path = path[1:]
	host := hostOf(r)
	for _, b := range d.cfg.Buckets {
		if rest, ok := strings.CutPrefix(host, b+"."); ok && d.domain(rest) {
			return b, path, nil
		}
	}
	bucket, key, _ = strings.Cut(path, "/")
	if !slices.Contains(d.cfg.Buckets, bucket) {
		return cmp.Or(bucket, host), "", errs.Coded(errs.NotFound, "NoSuchBucket", "the specified bucket does not exist")
	}
	return bucket, key, nil
}

// ServeHTTP implements http.Handler.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := &call{Door: d, w: w, r: r.WithContext(ctx), cancel: cancel, id: rand.Text()[:16], start: d.cfg.Now(), begun: time.Now()}
	w.Header().Set("X-Amz-Request-Id", c.id)
	err := c.serve()
	c.end()
	if err != nil {
		c.refuse(err)
	}
	c.record(err)
}

// call is one request.
type call struct {
	*Door
	w     http.ResponseWriter
	r     *http.Request
	id    string
	start time.Time // by Config.Now
	begun time.Time

	cancel func() // ends the request's context

	holding sync.Mutex
	over    bool
	release func() // ends the Hold of the robot; nil: there is none

	grant sts.Grant
	auth  sigv4.Auth
	known bool   // the session token is one of ours
	whole bool   // an object was stored
	key   string // as the robot names it
	store string // as we do
	body  *sigv4.Body
}

func denied(format string, args ...any) error {
	return errs.Coded(errs.Denied, sts.CodeDenied, format, args...)
}

func (c *call) serve() (err error) {
	ctx, r := c.r.Context(), c.r
	if c.auth, err = sigv4.Parse(r); err != nil {
		return c.stranger(err)
	}
	g, secret, err := c.cfg.Grants.Open(c.auth.AccessKeyID, c.auth.Token)
	if err != nil {
		return c.stranger(err)
	}
	c.grant, c.known = g, true
	if l := c.cfg.Limiter; l != nil {
		if wait := l.Allow(string(g.Thing)); wait > 0 {
			return slow(wait, "too many requests of this robot")
		}
	}
	if err := c.auth.Verify(ctx, r, secret.Reveal(), c.cfg.Now()); err != nil {
		return err
	}
	if err := c.stillHolds(ctx); err != nil {
		return err
	}
	if _, c.key, err = c.target(r); err != nil {
		return err
	}
	q, err := query(r)
	if err != nil {
		return err
	}
	do := c.operation(q)
	if do == nil {
		return denied("these credentials allow uploads and nothing else")
	}
	if !g.May(c.key) {
		return denied("these credentials do not allow this key: want a name below %s, of printable text, without backslashes or empty parts, . and .., of at most %d bytes", g.Folder(), sts.MaxKey)
	}
	c.store = g.Stored(c.key)
	if c.body, err = c.auth.Body(r, secret.Reveal(), r.TLS != nil || c.cfg.Insecure); err != nil {
		return err
	}
	return do(ctx, q)
}

// stranger paces those who show no grant.
func (c *call) stranger(err error) error {
	if l := c.cfg.Peers; l != nil {
		if wait := l.Allow(c.r.RemoteAddr); wait > 0 {
			return slow(wait, "too many requests")
		}
	}
	return err
}

// stillHolds asks whether the grant is still good. A refusal's own code is for the doctor; S3 clients know AccessDenied.
func (c *call) stillHolds(ctx context.Context) error {
	return refusalOf(c.cfg.Grants.Check(ctx, c.grant))
}

// storeTime bounds how long the last step of an upload may take, for which a change of the robot's owner waits.
const storeTime = 20 * time.Second

// hold asks at the end of a body whether the grant is still good and the owner allows uploads. Both stay so until the upload is stored and listed.
func (c *call) hold(ctx context.Context) error {
	if err := c.stillHolds(ctx); err != nil {
		return err
	}
	hold, err := c.cfg.Consent(ctx, c.grant.Thing)
	if err != nil {
		return err
	}
	c.holding.Lock()
	defer c.holding.Unlock()
	if c.over { // a store that has failed may read on
		hold.Release()
		return context.Canceled
	}
	late := time.AfterFunc(storeTime, c.cancel)
	c.release = func() { late.Stop(); hold.Release() }
	account, err := hold.Check(c.grant.Thing, c.begun)
	if err == nil && account != c.grant.User {
		err = errs.Coded(errs.Denied, "other_owner", "%s no longer belongs to this owner", c.grant.Thing)
	}
	return refusalOf(err)
}

// end ends the Hold, and lets none begin.
func (c *call) end() {
	c.holding.Lock()
	defer c.holding.Unlock()
	if c.over = true; c.release != nil {
		c.release()
	}
}

func refusalOf(err error) error {
	if err == nil || errs.CodeOf(err) == sts.CodeExpired {
		return err
	}
	if k := errs.KindOf(err); k == errs.Unavailable || k == errs.Internal {
		return err
	}
	msg := "these credentials are no longer valid"
	if errs.CodeOf(err) == consent.CodeOptedOut {
		msg = consent.CodeOptedOut + ": the robot's owner does not allow data collection"
	}
	return &refusal{code: errs.CodeOf(err), err: &errs.Error{Kind: errs.Denied, Code: sts.CodeDenied, Msg: msg, Err: err}}
}

// refusal carries the doctor's code beside the S3 code.
type refusal struct {
	code string
	err  error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

func slow(wait time.Duration, why string) error {
	return &errs.Error{Kind: errs.Exhausted, Code: "SlowDown", Msg: why + ": reduce your request rate", Retry: wait}
}

// query reads the few parameters that uploads have. What else is there could turn an upload into another request.
func query(r *http.Request) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, errs.Coded(errs.Invalid, sigv4.CodeBadURI, "the query is not well formed")
	}
	q.Del("x-id") // the name of the operation, for logs
	for k, v := range q {
		if !slices.Contains([]string{"uploads", "uploadId", "partNumber"}, k) || len(v) != 1 {
			return nil, denied("these credentials allow uploads and nothing else")
		}
	}
	return q, nil
}

func (c *call) operation(q url.Values) func(context.Context, url.Values) error {
	for h := range c.r.Header {
		if strings.HasPrefix(h, "X-Amz-Copy-Source") {
			return nil // it reads
		}
	}
	upload, part, begin := q.Get("uploadId") != "", q.Has("partNumber"), q.Has("uploads")
	switch m := c.r.Method; {
	case m == http.MethodPut && len(q) == 0:
		return c.put
	case m == http.MethodPut && len(q) == 2 && upload && part:
		return c.putPart
	case m == http.MethodPost && len(q) == 1 && begin:
		return c.begin
	case m == http.MethodPost && len(q) == 1 && upload:
		return c.finish
	case m == http.MethodDelete && len(q) == 1 && upload:
		return c.drop
	}
	return nil
}

func (c *call) options() blob.PutOptions {
	o := blob.PutOptions{Metadata: c.grant.Metadata(c.grant.Name(c.key))}
	if t := c.r.Header.Get("Content-Type"); len(t) <= 128 {
		o.ContentType = t
	}
	return o
}

// take reads the body into put, within all limits.
func (c *call) take(ctx context.Context, put func(io.Reader, int64, blob.Digests) (string, error)) (err error) {
	size := c.body.Size
	if size > c.cfg.MaxObject {
		return errs.Coded(errs.Invalid, "EntityTooLarge", "the upload has %d bytes, want at most %d", size, c.cfg.MaxObject)
	}
	leave, err := c.enter()
	if err != nil {
		return err
	}
	defer leave()
	day, err := c.cfg.Usage.Reserve(ctx, c.grant.Thing, size, c.cfg.MaxDay)
	if err != nil {
		return err
	}
	in := c.intake(ctx)
	etag := ""
	if size == 0 { // no store reads such a body, but its trailer must be good too
		_, err = io.Copy(io.Discard, in)
	}
	if err == nil {
		etag, err = put(in, size, blob.Digests{MD5: c.body.MD5, SHA256: c.body.SHA256})
	}
	if err != nil {
		// It must finish even if the client broke off, so it does not end with the request.
		rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if rerr := c.cfg.Usage.Release(rctx, c.grant.Thing, day, size); rerr != nil {
			c.cfg.Log.WarnContext(ctx, "quota of a failed upload not released", logging.Thing, c.grant.Thing, logging.Err, rerr)
		}
		if in.err != nil { // it is the cause of what the store says
			return in.err
		}
		return err
	}
	c.w.Header().Set("ETag", strconv.Quote(etag))
	return nil
}

// enter takes a place among the uploads under way, without waiting: S3 clients come again.
func (c *call) enter() (leave func(), err error) {
	select {
	case c.slots <- struct{}{}:
	default:
		return nil, slow(time.Second, "too many uploads at once")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.per[c.grant.Thing] >= c.cfg.PerThing {
		<-c.slots
		return nil, slow(time.Second, "too many uploads of this robot at once")
	}
	c.per[c.grant.Thing]++
	return func() {
		c.mu.Lock()
		if c.per[c.grant.Thing]--; c.per[c.grant.Thing] == 0 {
			delete(c.per, c.grant.Thing)
		}
		c.mu.Unlock()
		<-c.slots
	}, nil
}

// intake is the body as the store reads it: each read has a deadline, and the last bytes pass only if the robot's grant still holds.
type intake struct {
	*call
	ctx   context.Context
	rc    *http.ResponseController
	begun time.Time
	n     int64
	held  bool
	err   error
}

func (c *call) intake(ctx context.Context) *intake {
	return &intake{call: c, ctx: ctx, rc: http.NewResponseController(c.w), begun: time.Now()}
}

func (in *intake) Read(p []byte) (int, error) {
	if in.err != nil {
		return 0, in.err
	}
	until := time.Now().Add(in.cfg.Idle)
	// The whole has a deadline too, or a byte in each pause would hold the place for days.
	if end := in.begun.Add(in.cfg.Idle + time.Duration(in.body.Size/in.cfg.MinRate)*time.Second); end.Before(until) {
		until = end
	}
	if err := in.rc.SetReadDeadline(until); err != nil {
		in.err = err
		return 0, err
	}
	n, err := in.body.Read(p)
	in.n += int64(n)
	if (err == nil || errors.Is(err, io.EOF)) && in.n == in.body.Size && !in.held {
		in.held = true
		if in.err = in.hold(in.ctx); in.err != nil {
			return 0, in.err
		}
	}
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		err = errs.Coded(errs.Invalid, "RequestTimeout", "the body arrived too slowly; got %d of %d bytes", in.n, in.body.Size)
	} else if errs.CodeOf(err) == "" && errs.KindOf(err) == errs.Internal { // the connection's own
		err = &errs.Error{Kind: errs.Invalid, Code: sigv4.CodeIncomplete, Msg: "the connection ended before the end of the body", Err: err}
	}
	in.err = err
	return 0, err
}

func (c *call) put(ctx context.Context, _ url.Values) error {
	err := c.take(ctx, func(body io.Reader, size int64, d blob.Digests) (string, error) {
		return c.cfg.Store.PutOnce(ctx, c.store, body, size, c.options(), d)
	})
	if err != nil {
		return err
	}
	c.stored(ctx, c.body.Size)
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// stored notes that the object is there whole.
func (c *call) stored(ctx context.Context, size int64) {
	c.whole = true
	if c.cfg.Stored == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second) // a robot that hung up has uploaded it
	defer cancel()
	if err := c.cfg.Stored(ctx, c.grant, c.store, c.grant.Name(c.key), size); err != nil {
		c.cfg.Log.WarnContext(ctx, "upload stored, but not yet listed", logging.Thing, c.grant.Thing, logging.Err, err)
	}
}

// statuses is how S3 answers with each code.
var statuses = map[string]int{
	sigv4.CodeDenied: http.StatusForbidden, sigv4.CodeSignature: http.StatusForbidden, sigv4.CodeSkewed: http.StatusForbidden,
	sts.CodeNoKey: http.StatusForbidden, sigv4.CodeNoLength: http.StatusLengthRequired, sigv4.CodeUnsupported: http.StatusNotImplemented,
	"NoSuchBucket": http.StatusNotFound, "NoSuchUpload": http.StatusNotFound, "SlowDown": http.StatusServiceUnavailable,
	"ServiceUnavailable": http.StatusServiceUnavailable, "InternalError": http.StatusInternalServerError,
	"QuotaExceeded": http.StatusForbidden, // not of AWS: no client tries it again at once, as it would after SlowDown
}

type errorXML struct {
	XMLName   xml.Name `xml:"Error"`
	Code      string
	Message   string
	Resource  string
	RequestID string `xml:"RequestId"`
}

// s3Code returns the code that an S3 client knows for an error.
func s3Code(err error) string {
	switch errs.KindOf(err) {
	case errs.Unavailable:
		return "ServiceUnavailable"
	case errs.Exhausted:
		if errs.CodeOf(err) == "SlowDown" {
			return "SlowDown"
		}
		return "QuotaExceeded"
	case errs.Internal, errs.Corrupt, errs.Conflict:
		return "InternalError"
	}
	if errors.Is(err, blob.ErrNotFound) {
		return "NoSuchUpload"
	}
	return cmp.Or(errs.CodeOf(err), "InternalError")
}

func (c *call) refuse(err error) {
	code := s3Code(err)
	status := statuses[code]
	if status == 0 {
		status = http.StatusBadRequest
	}
	msg := errs.Public(err)
	if code == "InternalError" {
		msg = "we encountered an internal error, please try again"
	}
	h := c.w.Header()
	h.Del("ETag")
	if wait := errs.RetryOf(err); wait > 0 {
		h.Set("Retry-After", strconv.Itoa(int(max(1, (wait+time.Second-1)/time.Second))))
	}
	if c.r.ContentLength != 0 {
		h.Set("Connection", "close") // the rest of a refused body is not read
	}
	_ = writeXML(c.w, status, errorXML{Code: code, Message: msg, Resource: c.r.URL.Path, RequestID: c.id}) // it fails only if the client is gone
}

func writeXML(w http.ResponseWriter, status int, v any) error {
	b, err := xml.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("Content-Length", strconv.Itoa(len(xml.Header)+len(b)))
	w.WriteHeader(status)
	_, err = w.Write(append([]byte(xml.Header), b...))
	return err
}

// record tells the doctor, and the log. A part that went well is no news.
func (c *call) record(err error) {
	if err == nil && !c.whole {
		return
	}
	ctx := context.WithoutCancel(c.r.Context()) // the step counts although the robot hung up
	s := token.Step{Step: StepUpload, Peer: c.r.RemoteAddr, Version: c.r.UserAgent(), OK: err == nil, At: c.start}
	if c.known {
		s.Thing = c.grant.Thing
	}
	if len(s.Version) > 200 {
		s.Version = s.Version[:200]
	}
	if err != nil {
		s.Code, s.Reason = s3Code(err), err.Error()
		if r, ok := errors.AsType[*refusal](err); ok {
			s.Code = cmp.Or(r.code, s.Code)
		}
		level := slog.LevelInfo
		if s3Code(err) == "InternalError" {
			level = slog.LevelError
		}
		c.cfg.Log.Log(ctx, level, "upload refused", logging.Thing, s.Thing, logging.Addr, s.Peer, "code", s.Code, logging.Request, c.id, logging.Err, err)
	}
	c.cfg.Recorder.Record(ctx, s)
}
