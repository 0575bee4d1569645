// Package intake takes files and events of robots over HTTP, in the original's own forms: logs (VEC-LOG-04, VEC-LOG-05) and crashes (VEC-CRS-05).
//
// The handlers are mounted twice. On the things' listener a device certificate says which robot it is. There are no presigned URLs: who it is, the
// owner's consent, the quota and the row come before the answer 200, which is the robot's permission to delete (infra/adr/0032).
package intake

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kennel/certs"
	"kennel/cloud/uploads"
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
	Usage   Usage
	Consent func(ctx context.Context, id thing.ID) (bool, error)
	Owner   func(ctx context.Context, id thing.ID) (account string, err error) // NotFound: none
	Limiter certs.Limiter                                                      // by thing
	Log     *slog.Logger

	MaxDay int64         // bytes of one robot in one day (UTC); 512 MiB
	Bodies int           // taken at once; 16
	Idle   time.Duration // longest pause within a body; 20 s
	Rate   int64         // bytes a second below which a body is too slow, after Idle; 2 KiB
}

// Service takes them. Safe for concurrent use.
type Service struct {
	Config
	slots chan struct{} // one for each body under way
}

// New returns a Service.
func New(c Config) *Service {
	set := func(n *int64, to int64) {
		if *n == 0 {
			*n = to
		}
	}
	set(&c.MaxDay, 512<<20)
	set(&c.Rate, 2<<10)
	set((*int64)(&c.Idle), int64(20*time.Second))
	if c.Bodies == 0 {
		c.Bodies = 16
	}
	return &Service{c, make(chan struct{}, c.Bodies)}
}

// Codes of refusals.
const (
	CodeOptedOut = "opted_out"
	CodeTooLarge = "too_large"
	CodeNoLength = "no_length"
	CodeSlow     = "slow_body"
	CodeBroken   = "body"
	CodeName     = "name"
)

// Whose says which robot a request is of.
type Whose func(*http.Request) (thing.ID, error)

// Log serves PUT of a log called the path value name.
func (s *Service) Log(whose Whose) http.Handler {
	return s.handler(whose, func(ctx context.Context, id thing.ID, w http.ResponseWriter, r *http.Request) error {
		name := r.PathValue("name")
		if !printable(name, files.MaxName) {
			return errs.Coded(errs.Invalid, CodeName, "name of a log, %d bytes: want 1 to %d of printable text without slashes", len(name), files.MaxName)
		}
		body, err := s.spool(w, r, files.MaxLog)
		if err != nil {
			return err
		}
		defer body.Close() // it has no name any more
		h := func(key string) string { return clip(r.Header.Get(key)) }
		return s.counted(ctx, id, body.size, func() error {
			account, err := s.Owner(ctx, id)
			if err != nil && errs.KindOf(err) != errs.NotFound {
				return err
			}
			return s.Logs.Take(ctx, uploads.Log{Thing: id, Account: account, Name: name, Size: body.size, OS: h(files.OSVersion)}, body)
		})
	})
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

// bodyTime bounds one request, above what the slowest body takes.
const bodyTime = 3 * time.Hour

// handler serves one form: who it is, how often it comes and what its owner allows are asked before the body is read.
func (s *Service) handler(whose Whose, take func(context.Context, thing.ID, http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), bodyTime)
		defer cancel()
		id, err := whose(r)
		if err == nil {
			err = s.admit(ctx, id)
		}
		if err == nil {
			select {
			case s.slots <- struct{}{}:
				err = take(ctx, id, w, r)
				<-s.slots
			default:
				err = errs.RetryLater(2*time.Second, "too many uploads at once", nil)
			}
		}
		if err != nil {
			s.refuse(w, r, id, err)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
}

// admit says whether a robot may send anything now.
func (s *Service) admit(ctx context.Context, id thing.ID) error {
	if wait := s.Limiter.Allow(string(id)); wait > 0 {
		return &errs.Error{Kind: errs.Exhausted, Code: "slow_down", Msg: "too many requests of this robot", Retry: wait}
	}
	allowed, err := s.Consent(ctx, id)
	if err == nil && !allowed {
		err = errs.Coded(errs.Denied, CodeOptedOut, "the owner of %s does not allow data collection", id)
	}
	return err
}

// refuse answers with a problem document. What can never be stored is told from what may come again.
func (s *Service) refuse(w http.ResponseWriter, r *http.Request, id thing.ID, err error) {
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
	if code == http.StatusServiceUnavailable {
		level = slog.LevelWarn
	}
	s.Config.Log.Log(r.Context(), level, "file of a robot refused", logging.Thing, id, logging.Addr, r.RemoteAddr, "path", clip(r.URL.Path), "status", code, logging.Err, err)
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close") // the rest of a refused body is not read
	}
	kithttp.WriteProblem(w, code, err)
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
		return spooled{}, errs.RetryLater(time.Minute, "no room for the file", err)
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
		return spooled{}, errs.RetryLater(time.Minute, "no room for the file", err)
	case n == 0:
		return spooled{}, errs.Coded(errs.Invalid, CodeBroken, "the body is empty")
	}
	_, err = f.Seek(0, io.SeekStart)
	return spooled{f, n}, err
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
		p.err = errs.Coded(errs.Unavailable, CodeSlow, "the body came too slowly; %d bytes came", p.n)
	case err != nil:
		p.err = &errs.Error{Kind: errs.Invalid, Code: CodeBroken, Msg: "the connection ended within the body", Err: err}
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
