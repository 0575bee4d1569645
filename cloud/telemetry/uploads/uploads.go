// Package uploads is the logs that robots uploaded (VEC-LOG-02, VEC-LOG-10): a list of them, their lines, and their end.
//
// The objects are in the bucket, the list is a table with one row for each. The door (cloud/originals/stsapi) adds the row in the request that stores the
// object; where that failed, or an object came from elsewhere, Mend adds it later, and removes rows whose objects are gone. A log ends after Keep, or
// with the account of the person for whom the robot uploaded it. Only that person and operators may read it; a later owner of the robot may not.
package uploads

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash/maphash"
	"io"
	"iter"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"kennel/cloud/identity/sts"
	"kennel/cloud/telemetry/uploads/logfile"
	"kennel/infra/blob"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// DefaultKeep is how long logs are kept.
const DefaultKeep = 30 * 24 * time.Hour

// Bounds of lists and pages.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
	MaxText      = 200 // bytes of what is looked for
)

// Log is one upload.
type Log struct {
	ID      string    `json:"id"`
	Thing   thing.ID  `json:"thing"`
	Account string    `json:"-"` // for whom the robot uploaded it
	Key     string    `json:"-"` // in the bucket
	Name    string    `json:"name"`
	Size    int64     `json:"size"`             // bytes, as it was uploaded
	OS      string    `json:"os,omitempty"`     // what the robot ran then; "": not known
	Kind    string    `json:"kind"`             // one of Kinds, by the name
	Reason  string    `json:"reason,omitempty"` // the robot's word for why it sent the log, such as request or fault-914; "": not said
	SHA256  []byte    `json:"-"`                // of the content; nil: not known
	At      time.Time `json:"at"`               // when it was uploaded
	Expires time.Time `json:"expires"`
}

// Query chooses logs, the newest first.
type Query struct {
	Thing   thing.ID  // "": of all robots
	Account string    // only those of this account; "": all
	Name    string    // part of the name, in any case
	Day     time.Time // only those of this day (UTC); zero: all
	Version string    // what the robot ran, or its beginning: 2.0.1 has 2.0.1.6076
	Kind    string    // one of Kinds; "": all
	Reason  string    // "": all
	After   string    // id of the last log of the page before
	Limit   int       // 0: DefaultLimit
}

// Kinds of logs: of a fault, of the robot's recent logs, those with the state of its computer and network, and any other.
var Kinds = []string{"diagnostics", "fault", "log", "snapshot"}

// ErrUnknown says that there is no such log, or none that the caller may read.
var ErrUnknown = errs.Coded(errs.NotFound, "unknown_log", "no such log; it may have expired")

// Store keeps the list. Its methods are safe for concurrent use.
type Store interface {
	// Put adds a log, or changes the one with its key: a robot may upload a name again. ID and Expires of l are not used.
	Put(ctx context.Context, l Log) error
	// Add is Put for a log whose key has no row; it leaves one that there is, which knows more, as it is.
	Add(ctx context.Context, l Log) error
	// Taken reports whether the thing has sent this content by this name before.
	Taken(ctx context.Context, id thing.ID, sha256 []byte, name string) (bool, error)
	List(ctx context.Context, q Query) ([]Log, error)
	// Get returns ErrUnknown unless the thing, or for "" any thing, has that log.
	Get(ctx context.Context, id thing.ID, log string) (Log, error)
	// Unlisted returns those of keys that have no row.
	Unlisted(ctx context.Context, keys []string) ([]string, error)
	// Before returns at most limit logs that were uploaded before a time and whose keys come after one, by key.
	Before(ctx context.Context, t time.Time, after string, limit int) ([]Log, error)
	Delete(ctx context.Context, key string) error
	DeleteAccount(ctx context.Context, account string) error
}

// Objects is the part of a blob.Store that the service needs.
type Objects interface {
	sts.Objects
	Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blob.Info, error)
	Head(ctx context.Context, key string) (blob.Info, error)
	Delete(ctx context.Context, key string) error
	PutOnce(ctx context.Context, key string, body io.Reader, size int64, o blob.PutOptions, d blob.Digests) (string, error)
}

// Config holds the parts and settings of a Service.
type Config struct {
	Store    Store
	Objects  Objects
	Prefixes []string                                      // all that robots ever had, as in sts.Personal
	OS       func(ctx context.Context, id thing.ID) string // what a robot runs; "": not known
	Keep     time.Duration                                 // 0: DefaultKeep
	Now      func() time.Time                              // nil: time.Now
}

// Service lists and reads logs. Safe for concurrent use.
type Service struct{ cfg Config }

// New returns a Service.
func New(c Config) (*Service, error) {
	c.Keep = cmp.Or(c.Keep, DefaultKeep)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Keep < time.Hour {
		return nil, errs.New(errs.Invalid, "logs are kept for %s: want at least an hour", c.Keep)
	}
	return &Service{c}, nil
}

// Keep is how long logs are kept.
func (s *Service) Keep() time.Duration { return s.cfg.Keep }

// Uploaded lists an object that a robot has just uploaded (stsapi.Config.Stored).
func (s *Service) Uploaded(ctx context.Context, g sts.Grant, key, name string, size int64) error {
	return s.cfg.Store.Put(ctx, Log{Thing: g.Thing, Account: g.User, Key: key, Name: name, Size: size, OS: s.cfg.OS(ctx, g.Thing), At: s.cfg.Now()})
}

// NoAccount is the account of logs of robots without an owner.
const NoAccount = "-"

// Take stores a log of l.Size bytes that a robot sends itself, once for each content and name, and lists it. After an error it may be sent again: the
// object is stored first, under a key that its content and name decide, so that a row always has its object; Mend lists an object whose row failed.
func (s *Service) Take(ctx context.Context, l Log, body io.ReadSeeker) error {
	sum := sha256.New()
	if _, err := io.Copy(sum, body); err != nil {
		return err
	}
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return err
	}
	l.SHA256 = sum.Sum(nil)
	if known, err := s.cfg.Store.Taken(ctx, l.Thing, l.SHA256, l.Name); err != nil || known {
		return err
	}
	l.Account, l.OS, l.At = cmp.Or(l.Account, NoAccount), cmp.Or(l.OS, s.cfg.OS(ctx, l.Thing)), s.cfg.Now()
	g := sts.Grant{Thing: l.Thing, User: l.Account, Prefix: s.cfg.Prefixes[0]}
	l.Key = g.Stored(g.Folder() + hex.EncodeToString(l.SHA256[:8]) + "-" + l.Name)
	meta := g.Metadata(l.Name)
	meta[sts.NameMetadata], meta[reasonMetadata] = encode(l.Name), encode(l.Reason) // the key's name is another
	if _, err := s.cfg.Objects.PutOnce(ctx, l.Key, body, l.Size, blob.PutOptions{Metadata: meta}, blob.Digests{SHA256: l.SHA256}); err != nil {
		return err
	}
	return s.cfg.Store.Put(ctx, l)
}

// reasonMetadata is the metadata of an object that holds a log's reason, in base64.
const reasonMetadata = "reason"

func encode(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func (s *Service) dated(l Log) Log {
	l.Expires = l.At.Add(s.cfg.Keep)
	return l
}

// List returns logs, the newest first.
func (s *Service) List(ctx context.Context, q Query) ([]Log, error) {
	q.Limit = cmp.Or(q.Limit, DefaultLimit)
	switch {
	case q.Limit < 1 || q.Limit > MaxLimit:
		return nil, errs.New(errs.Invalid, "limit %d: want 1 to %d", q.Limit, MaxLimit)
	case q.Kind != "" && !slices.Contains(Kinds, q.Kind):
		return nil, errs.New(errs.Invalid, "kind %.40q: want one of %s", q.Kind, errs.List(Kinds))
	}
	for what, s := range map[string]string{"name": q.Name, "version": q.Version, "reason": q.Reason} {
		if len(s) > MaxText || !text(s) {
			return nil, errs.New(errs.Invalid, "%s: want at most %d bytes of text", what, MaxText)
		}
	}
	logs, err := s.cfg.Store.List(ctx, q)
	for i := range logs {
		logs[i] = s.dated(logs[i])
	}
	return logs, err
}

// text reports whether the database and the reader can look for s.
func text(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// Get returns one log. Of an account that is not "" it returns only that account's.
func (s *Service) Get(ctx context.Context, id thing.ID, account, log string) (Log, error) {
	l, err := s.cfg.Store.Get(ctx, id, log)
	if err == nil && account != "" && l.Account != account {
		err = ErrUnknown
	}
	return s.dated(l), err
}

// Open returns the log as it was uploaded; the caller closes it. A log whose object is gone is unknown from then on.
func (s *Service) Open(ctx context.Context, l Log) (io.ReadCloser, error) {
	body, _, err := s.cfg.Objects.Get(ctx, l.Key, 0, 0)
	if errs.KindOf(err) == errs.NotFound {
		if err := s.cfg.Store.Delete(ctx, l.Key); err != nil {
			return nil, err
		}
		return nil, ErrUnknown
	}
	return body, err
}

// Search chooses lines of logs.
type Search struct {
	logfile.Filter
	Skip  int // lines that the page before showed
	Limit int // lines; 0: DefaultLimit
}

func (q *Search) check() error {
	q.Limit = cmp.Or(q.Limit, DefaultLimit)
	switch {
	case q.Limit < 1 || q.Limit > MaxLimit:
		return errs.New(errs.Invalid, "limit %d: want 1 to %d", q.Limit, MaxLimit)
	case q.Skip < 0:
		return errs.New(errs.Invalid, "skip %d: want a number of lines", q.Skip)
	case len(q.Text) > MaxText || !text(q.Text):
		return errs.New(errs.Invalid, "text: want at most %d bytes of text", MaxText)
	case !q.From.IsZero() && !q.To.IsZero() && !q.From.Before(q.To):
		return errs.New(errs.Invalid, "from %s is not before to %s", q.From.Format(time.RFC3339), q.To.Format(time.RFC3339))
	}
	return nil
}

// Contents is one log and what it holds.
type Contents struct {
	Log Log `json:"log"`
	logfile.Contents
}

// Read unpacks a log and returns what the search finds in it.
func (s *Service) Read(ctx context.Context, l Log, q Search) (Contents, error) {
	return s.read(ctx, l, q, logfile.NewBudget(logfile.MaxUnpacked))
}

func (s *Service) read(ctx context.Context, l Log, q Search, budget *logfile.Budget) (Contents, error) {
	if err := q.check(); err != nil {
		return Contents{}, err
	}
	body, err := s.Open(ctx, l)
	if err != nil {
		return Contents{}, err
	}
	defer body.Close() // only read
	c, err := logfile.Read(ctx, body, l.Name, l.At, q.Filter, q.Skip, q.Limit, budget)
	return Contents{l, c}, err
}

// Found is the result of a search of several logs.
type Found struct {
	Logs []Contents `json:"logs"` // those with a line that was looked for, the newest first; Problem of one that could not be read says why
	Read int        `json:"read"` // how many logs were read
	// Next is the log after which to continue (Query.After); "": all were read.
	Next string `json:"next,omitempty"`
}

// maxFound is how many lines of one log a search of several returns.
const maxFound = 10

// Search looks through the logs that the query chooses, until it has enough lines or has read as much as it may at once.
func (s *Service) Search(ctx context.Context, logs Query, q Search) (Found, error) {
	f := Found{Logs: []Contents{}}
	if err := q.check(); err != nil {
		return f, err
	}
	list, err := s.List(ctx, logs)
	if err != nil {
		return f, err
	}
	budget, lines := logfile.NewBudget(logfile.MaxUnpacked), 0
	one := q
	one.Skip, one.Limit = 0, min(maxFound, q.Limit)
	for i, l := range list {
		c, err := s.read(ctx, l, one, budget)
		switch {
		case errs.CodeOf(err) == logfile.CodeTooLarge && i > 0: // others took the budget
			f.Next = list[i-1].ID
			return f, nil
		case errs.KindOf(err) == errs.Invalid:
			c = Contents{l, logfile.Contents{Files: []logfile.File{}, Lines: []logfile.Line{}, Problem: errs.Public(err)}}
		case errs.KindOf(err) == errs.NotFound && ctx.Err() == nil:
			continue
		case err != nil:
			return f, err
		}
		f.Read++
		if lines += len(c.Lines); len(c.Lines) > 0 || c.Problem != "" {
			f.Logs = append(f.Logs, c)
		}
		if (lines >= q.Limit || budget.Spent()) && i < len(list)-1 {
			f.Next = l.ID
			return f, nil
		}
	}
	if len(list) == cmp.Or(logs.Limit, DefaultLimit) {
		f.Next = list[len(list)-1].ID
	}
	return f, nil
}

// batch is how many rows or keys a sweep takes at a time.
const batch = 500

// Expire deletes the logs that were kept for long enough, and returns how many. Any process may run it, at any time.
func (s *Service) Expire(ctx context.Context) (n int, err error) {
	for l, err := range s.before(ctx, s.cfg.Now().Add(-s.cfg.Keep)) {
		if err == nil {
			err = s.cfg.Objects.Delete(ctx, l.Key)
		}
		if err == nil {
			err = s.cfg.Store.Delete(ctx, l.Key)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// before yields the logs that were uploaded before t, by key.
func (s *Service) before(ctx context.Context, t time.Time) iter.Seq2[Log, error] {
	return func(yield func(Log, error) bool) {
		for after := ""; ; {
			logs, err := s.cfg.Store.Before(ctx, t, after, batch)
			if err != nil {
				yield(Log{}, err)
				return
			}
			for _, l := range logs {
				if after = l.Key; !yield(l, nil) {
					return
				}
			}
			if len(logs) < batch {
				return
			}
		}
	}
}

// settled is how old a row must be before Mend asks whether its object is there: an upload may be between the two.
const settled = time.Hour

// Mend lists objects that have no row and removes rows that have no object, and returns how many of each. Any process may run it, at any time.
func (s *Service) Mend(ctx context.Context) (added, removed int, err error) {
	began, seed, there := s.cfg.Now(), maphash.MakeSeed(), map[uint64]struct{}{}
	var wait []blob.Info
	add := func() error {
		n, err := s.list(ctx, wait)
		added, wait = added+n, wait[:0]
		return err
	}
	for o, err := range s.cfg.Objects.List(ctx, sts.Root) {
		if err != nil {
			return added, 0, err
		}
		there[maphash.String(seed, o.Key)] = struct{}{}
		if wait = append(wait, o); len(wait) == batch {
			if err := add(); err != nil {
				return added, 0, err
			}
		}
	}
	if err := add(); err != nil {
		return added, 0, err
	}
	for l, err := range s.before(ctx, began.Add(-settled)) {
		if err != nil {
			return added, removed, err
		}
		if _, ok := there[maphash.String(seed, l.Key)]; ok {
			continue
		}
		switch _, err := s.cfg.Objects.Head(ctx, l.Key); { // it may be newer than the list
		case err == nil:
			continue
		case errs.KindOf(err) != errs.NotFound:
			return added, removed, err
		}
		if err := s.cfg.Store.Delete(ctx, l.Key); err != nil {
			return added, removed, err
		}
		removed++
	}
	return added, removed, nil
}

// list adds rows for those of objects that have none and are uploads of a robot.
func (s *Service) list(ctx context.Context, objects []blob.Info) (n int, err error) {
	keys, byKey := make([]string, len(objects)), map[string]blob.Info{}
	for i, o := range objects {
		keys[i], byKey[o.Key] = o.Key, o
	}
	unlisted, err := s.cfg.Store.Unlisted(ctx, keys)
	if err != nil {
		return 0, err
	}
	for _, key := range unlisted {
		o := byKey[key]
		id, account, name, ok := s.parse(key)
		if !ok {
			continue // not of a robot
		}
		info, err := s.cfg.Objects.Head(ctx, key)
		if errs.KindOf(err) == errs.NotFound {
			continue
		}
		if err != nil {
			return n, err
		}
		if name == "" || info.Metadata[sts.NameMetadata] != "" {
			name = sts.NameOf(info)
		}
		reason, _ := base64.StdEncoding.DecodeString(info.Metadata[reasonMetadata]) // not said
		if err := s.cfg.Store.Add(ctx, Log{Thing: id, Account: account, Key: key, Name: name, Reason: string(reason), Size: o.Size, At: o.Modified}); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (s *Service) parse(key string) (id thing.ID, account, name string, ok bool) {
	for _, p := range s.cfg.Prefixes {
		if id, account, name, ok = sts.ParseStored(p, key); ok {
			return id, account, name, true
		}
	}
	return "", "", "", false
}

// Export implements account.Personal: the account's uploads, as []sts.Upload.
func (s *Service) Export(ctx context.Context, account string) (any, error) {
	return s.objects().Export(ctx, account)
}

// Files implements account.Filing: the uploads as they came.
func (s *Service) Files(ctx context.Context, account string, add func(name string, write func(io.Writer) error) error) error {
	list, err := s.objects().List(ctx, account)
	if err != nil {
		return err
	}
	for _, o := range list {
		if err := add(strings.TrimPrefix(path.Clean("/"+strings.TrimPrefix(o.Key, sts.Root)), "/"), func(w io.Writer) error {
			body, _, err := s.cfg.Objects.Get(ctx, o.Key, 0, 0)
			if errs.KindOf(err) == errs.NotFound && err != nil {
				return nil // it has expired
			}
			if err != nil {
				return err
			}
			defer body.Close() // only read
			_, err = io.Copy(w, body)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// Erase implements account.Personal, as sts.Personal does, and forgets the list too.
func (s *Service) Erase(ctx context.Context, account string) error {
	return s.EraseCounting(ctx, account, func(context.Context, string, int) error { return nil })
}

// EraseCounting implements account.Counting.
func (s *Service) EraseCounting(ctx context.Context, account string, note func(ctx context.Context, kind string, n int) error) error {
	list, err := s.objects().List(ctx, account)
	if err != nil {
		return err
	}
	if err := s.objects().Erase(ctx, account); err != nil {
		return err
	}
	if err := note(ctx, "uploaded logs", len(list)); err != nil {
		return err
	}
	return s.cfg.Store.DeleteAccount(ctx, account)
}

func (s *Service) objects() sts.Personal {
	return sts.Personal{Objects: s.cfg.Objects, Prefixes: s.cfg.Prefixes}
}
