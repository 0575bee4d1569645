// Package intake takes files and events of robots over HTTP, in the original's own forms: logs (VEC-LOG-04, VEC-LOG-05), crashes (VEC-CRS-05) and events
// (VEC-DAS-06).
//
// The handlers are mounted twice. On the things' listener a device certificate says which robot it is; there logs and crashes are taken, events come over
// MQTT. On the listener of original robots the robot names itself, and Door says whether it is believed. There are no presigned URLs: who it is, the owner's
// consent, the quota and the row come before the answer 200, which is the robot's permission to delete (infra/adr/0032).
package intake

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kennel/certs"
	"kennel/cloud/identity/consent"
	"kennel/cloud/telemetry/uploads"
	"kennel/infra/api/files"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Logs stores logs; *uploads.Service is one.
type Logs interface {
	Take(ctx context.Context, l uploads.Log, body io.ReadSeeker) error
}

// Usage counts what robots send in a day; *stspg.Usage is one.
type Usage interface {
	Reserve(ctx context.Context, id thing.ID, n, limit int64) (day time.Time, err error)
	Release(ctx context.Context, id thing.ID, day time.Time, n int64) error
}

// Config holds what the handlers need; zero numbers choose the defaults.
type Config struct {
	Logs    Logs
	Crashes Crashes
	Events  Events
	Usage   Usage                                                // bytes of files; Events counts its own
	Allowed func(ctx context.Context, id thing.ID) (bool, error) // before a body; Consent decides
	Consent consent.Ask
	Limiter certs.Limiter // by thing
	Log     *slog.Logger

	MaxDay int64         // bytes of one robot in one day (UTC); 512 MiB
	Bodies int           // taken at once; 16
	Dumps  int           // of which are crashes, which are held in memory; 4
	Idle   time.Duration // longest pause within a body; 20 s
	Rate   int64         // bytes a second below which a body is too slow, after Idle; 2 KiB
}

// Service takes them. Safe for concurrent use.
type Service struct {
	Config
	slots, dumps chan struct{} // one for each body under way
}

// New returns a Service.
func New(c Config) *Service {
	c.MaxDay, c.Rate = cmp.Or(c.MaxDay, 512<<20), cmp.Or(c.Rate, 2<<10)
	c.Bodies, c.Dumps, c.Idle = cmp.Or(c.Bodies, 16), cmp.Or(c.Dumps, 4), cmp.Or(c.Idle, 20*time.Second)
	return &Service{c, make(chan struct{}, c.Bodies), make(chan struct{}, c.Dumps)}
}

// Codes of refusals.
const (
	CodeTooLarge = "too_large"
	CodeNoLength = "no_length"
	CodeSlow     = "slow_body"
	CodeBroken   = "body"
	CodeName     = "name"
	CodeForm     = "form"
)

// Caller says which robot a request is of.
type Caller interface {
	// Enter bounds requests of an address, and those that it has under way, before they are read. leave is called at their end.
	Enter(r *http.Request) (leave func(), err error)
	// Thing returns the robot that claims to have a serial; "": it claims none. It returns "" if the claim is needed to say.
	Thing(ctx context.Context, r *http.Request, claim string) (thing.ID, error)
	// Signed is Thing for a request with this body, which may be signed. origin says by what the robot is believed (package das).
	Signed(ctx context.Context, r *http.Request, body []byte, claim string) (id thing.ID, origin string, err error)
}

// Log serves PUT of a log called the path value name.
func (s *Service) Log(who Caller) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := s.log(w, r, who)
		if err != nil {
			s.refuse(w, r, id, err, kithttp.WriteProblem)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
}

// log asks who it is, how often it comes and what its owner allows before it reads the body.
func (s *Service) log(w http.ResponseWriter, r *http.Request, who Caller) (id thing.ID, err error) {
	ctx, name, begun := r.Context(), r.PathValue("name"), time.Now()
	leave, err := who.Enter(r)
	if err != nil {
		return "", err
	}
	defer leave()
	if id, err = who.Thing(ctx, r, r.Header.Get(files.ESN)); err != nil {
		return id, err
	}
	if !printable(name, files.MaxName) {
		return id, errs.Coded(errs.Invalid, CodeName, "name of a log, %d bytes: want 1 to %d of printable text without slashes", len(name), files.MaxName)
	}
	if err := s.admit(ctx, id); err != nil {
		return id, err
	}
	return id, s.slot(func() error {
		body, err := s.spool(w, r, files.MaxLog)
		if err != nil {
			return err
		}
		defer body.Close() // it has no name any more
		return s.counted(ctx, id, body.size, func() error {
			return s.held(ctx, id, begun, func(ctx context.Context, account string) error {
				return s.Logs.Take(ctx, uploads.Log{Thing: id, Account: account, Name: name, Size: body.size, OS: clip(r.Header.Get(files.OSVersion)),
					Reason: clip(r.Header.Get(files.Reason))}, body)
			})
		})
	})
}

func busy() error { return errs.RetryLater(2*time.Second, "too many uploads at once", nil) }

// slot calls fn in a place of its own, without waiting for one.
func (s *Service) slot(fn func() error) error {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
		return fn()
	default:
		return busy()
	}
}

// counted calls fn if the robot may still send n bytes today.
func (s *Service) counted(ctx context.Context, id thing.ID, n int64, fn func() error) error {
	day, err := s.Usage.Reserve(ctx, id, n, s.MaxDay)
	if errs.KindOf(err) == errs.Exhausted && err != nil {
		return &errs.Error{Kind: errs.Exhausted, Code: errs.CodeOf(err), Msg: errs.Public(err), Retry: time.Hour}
	}
	if err != nil {
		return err
	}
	if err = fn(); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second) // also if the robot hung up
		defer cancel()
		if rerr := s.Usage.Release(ctx, id, day, n); rerr != nil {
			s.Config.Log.WarnContext(ctx, "quota of a failed upload not released", logging.Thing, id, logging.Err, rerr)
		}
	}
	return err
}

// storeTime bounds how long a file is stored for, and so how long a change of its robot's owner may have to wait.
const storeTime = 20 * time.Second

// held calls fn with the account of the robot's owner, "" without one, if the owner has been the same since begun and allows it. Meanwhile neither changes.
func (s *Service) held(ctx context.Context, id thing.ID, begun time.Time, fn func(ctx context.Context, account string) error) error {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	hold, err := s.Consent(ctx, id)
	if err != nil {
		return err
	}
	defer hold.Release()
	account, err := hold.Check(id, begun)
	if err != nil {
		return err
	}
	return fn(ctx, account)
}

// admit says whether a robot may send anything now.
func (s *Service) admit(ctx context.Context, id thing.ID) error {
	if wait := s.Limiter.Allow(string(id)); wait > 0 {
		return &errs.Error{Kind: errs.Exhausted, Code: "slow_down", Msg: "too many requests of this robot", Retry: wait}
	}
	allowed, err := s.Allowed(ctx, id)
	if err == nil && !allowed {
		err = consent.OptedOut(id)
	}
	return err
}

// refuse answers in the sender's form. What can never be stored is told from what may come again.
func (s *Service) refuse(w http.ResponseWriter, r *http.Request, id thing.ID, err error, write func(http.ResponseWriter, int, error)) {
	code := kithttp.StatusOf(errs.KindOf(err))
	switch errs.CodeOf(err) {
	case CodeTooLarge:
		code = http.StatusRequestEntityTooLarge
	case CodeNoLength:
		code = http.StatusLengthRequired
	case CodeSlow:
		code = http.StatusRequestTimeout
	}
	if code == http.StatusInternalServerError || errors.Is(err, context.DeadlineExceeded) { // the robot keeps it
		err = errs.RetryLater(errs.RetryOf(err), "not stored", err)
		code = http.StatusServiceUnavailable
	}
	if k := errs.KindOf(err); (k == errs.Unavailable || k == errs.Exhausted) && errs.RetryOf(err) == 0 {
		err = &errs.Error{Kind: errs.KindOf(err), Code: errs.CodeOf(err), Msg: errs.Public(err), Retry: 10 * time.Second, Err: err}
	}
	level := slog.LevelInfo
	switch {
	case code == http.StatusServiceUnavailable:
		level = slog.LevelWarn
	case code == http.StatusTooManyRequests || errs.CodeOf(err) == CodeUnproved: // of strangers there may be many, and the door tells of them
		level = slog.LevelDebug
	}
	s.Config.Log.Log(r.Context(), level, "file of a robot refused", logging.Thing, id, logging.Addr, r.RemoteAddr, "path", clip(r.URL.Path), "status", code, logging.Err, err)
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close") // the rest of a refused body is not read
	}
	if wait := errs.RetryOf(err); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(max(1, wait.Round(time.Second)/time.Second))))
	}
	write(w, code, err)
}

// spooled is a body in a file that has no name.
type spooled struct {
	*os.File
	size int64
}

// spool reads a body of at most limit bytes, and no slower than the robot must send it. Memory does not grow with the body.
func (s *Service) spool(w http.ResponseWriter, r *http.Request, limit int64) (_ spooled, err error) {
	if r.ContentLength > limit {
		return spooled{}, tooLarge(limit)
	}
	f, err := os.CreateTemp("", "kennel-intake-")
	if err != nil {
		return spooled{}, errs.RetryLater(time.Minute, "no space for the file", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if err := os.Remove(f.Name()); err != nil {
		return spooled{}, err
	}
	body := s.paced(w, r, limit)
	n, err := io.Copy(f, body)
	switch {
	case body.err != nil:
		return spooled{}, body.err
	case err != nil: // of the file
		return spooled{}, errs.RetryLater(time.Minute, "no space for the file", err)
	case n == 0:
		return spooled{}, errs.Coded(errs.Invalid, CodeBroken, "the body is empty")
	}
	_, err = f.Seek(0, io.SeekStart)
	return spooled{f, n}, err
}

// read reads a body of at most limit bytes into memory.
func (s *Service) read(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	return io.ReadAll(s.paced(w, r, limit))
}

func tooLarge(limit int64) error {
	return errs.Coded(errs.Invalid, CodeTooLarge, "the body has more than %d bytes", limit)
}

// paced is a body with a bound of its size, a deadline for each read, and one for the whole.
type paced struct {
	s     *Service
	r     io.Reader
	rc    *http.ResponseController
	begun time.Time
	n     int64
	limit int64
	err   error // why it ended early
}

func (s *Service) paced(w http.ResponseWriter, r *http.Request, limit int64) *paced {
	return &paced{s: s, r: http.MaxBytesReader(w, r.Body, limit), rc: http.NewResponseController(w), begun: time.Now(), limit: limit}
}

// Read implements io.Reader.
func (p *paced) Read(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	now := time.Now()
	end := p.begun.Add(p.s.Idle + time.Duration(p.n/p.s.Rate)*time.Second) // a byte in each pause would hold the place for days
	_ = p.rc.SetReadDeadline(now.Add(p.s.Idle))                            // a writer that cannot is none of a network
	n, err := p.r.Read(b)
	p.n += int64(n)
	large, slow := (*http.MaxBytesError)(nil), net.Error(nil)
	switch {
	case errors.Is(err, io.EOF):
		return n, io.EOF
	case errors.As(err, &large):
		p.err = tooLarge(p.limit)
	case err == nil && now.After(end), errors.As(err, &slow) && slow.Timeout():
		p.err = errs.Coded(errs.Unavailable, CodeSlow, "the body arrived too slowly; got %d bytes", p.n)
	case err != nil:
		p.err = &errs.Error{Kind: errs.Invalid, Code: CodeBroken, Msg: "the connection ended before the end of the body", Err: err}
	}
	return n, p.err
}

// printable reports whether s can be shown as a name.
func printable(s string, limit int) bool {
	return s != "" && len(s) <= limit && s != "." && s != ".." && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return r == '/' || r == '\\' || !unicode.IsPrint(r) })
}

// clip makes a header fit a row.
func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	for len(s) > 80 {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}
