// Package crash is the crashes of robots' programs (VEC-CRS-06): it stores the dumps, finds out what crashed, and groups crashes with the same cause.
//
// Dumps and logs are objects in the bucket under Prefix, whose keys say nothing of the robot; a table has one row for each crash. Both end after Keep, or with the
// account of the person whose the robot was. A group ends with the last crash that is kept of it, except that one with a note or a state that a person gave stays
// until an erasure takes its last crash: its words are what robots sent.
package crash

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"kennel/infra/blob"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/ota"
)

// Prefix begins the keys of the bucket's objects.
const Prefix = "crash/"

// Bounds: ours, no source gives them.
const (
	MaxDump      = 16 << 20 // bytes
	MaxLog       = 4 << 20  // bytes
	DefaultKeep  = 30 * 24 * time.Hour
	DefaultLimit = 50
	MaxLimit     = 500
	maxWord      = 200 // bytes of what a report says about itself
	maxNote      = 2000
	maxAge       = 365 * 24 * time.Hour // a robot's clock that is off by more is not believed
)

// Report is a crash as it arrives.
type Report struct {
	Thing                                     thing.ID
	Name, Program, OSVersion, Version, BootID string
	At                                        time.Time // zero: not known
	Dump                                      []byte    // a minidump, or our text record
	Log                                       []byte    // may be empty
	Told                                      bool      // the robot sends the event itself
	// Held calls store while the robot's owner allows it and stays its owner, or fails; nil: it may be stored.
	Held func(ctx context.Context, store func(ctx context.Context) error) error
}

// State is the state of a group.
type State string

// The states.
const (
	Open      State = "open"
	Resolved  State = "resolved"
	Regressed State = "regressed" // it was resolved, and came back in a version that should not have it
)

// States are all states.
var States = []State{Open, Resolved, Regressed}

// Group is crashes with the same cause.
type Group struct {
	ID        string     `json:"id"`
	Program   string     `json:"program"`
	Signature string     `json:"signature"` // what the crashes have in common: the first functions, or modules and offsets
	Reason    string     `json:"reason"`    // of the latest crash that is kept
	State     State      `json:"state"`
	FixedIn   string     `json:"fixed_in,omitempty"` // the version that resolves it, if a person said so
	Note      string     `json:"note,omitempty"`
	Changed   *time.Time `json:"changed,omitempty"` // by a person
	By        string     `json:"by,omitempty"`
	FirstSeen time.Time  `json:"first_seen"`
	LastSeen  time.Time  `json:"last_seen"`
	Versions  []string   `json:"versions"`
	Crashes   int64      `json:"crashes"` // in all, expired ones too
	Robots    int64      `json:"robots"`  // of the crashes that are kept
	Days      []int64    `json:"days"`    // crashes received on each of the last 14 days (UTC), today last

	Resolved []string `json:"-"` // versions that had crashed when it was resolved
}

// Returns reports whether a crash of a version shows that a resolved group is not fixed: a version that is at least FixedIn, or one after those that had
// crashed before. Versions that are no releases have no order: one that had not crashed before counts as later.
func (g Group) Returns(version string) bool {
	v, err := ota.ParseVersion(version)
	if err != nil {
		return version == g.FixedIn && version != "" || g.FixedIn == "" && !slices.Contains(g.Resolved, version)
	}
	if fixed, err := ota.ParseVersion(g.FixedIn); err == nil {
		return v.Compare(fixed) >= 0
	}
	return !slices.ContainsFunc(g.Resolved, func(s string) bool {
		before, err := ota.ParseVersion(s)
		return err == nil && v.Compare(before) <= 0
	})
}

// Crash is one crash of one robot.
type Crash struct {
	ID       string    `json:"id"`
	Thing    thing.ID  `json:"thing"`
	Group    string    `json:"group"`
	Name     string    `json:"name"` // of the dump
	Program  string    `json:"program"`
	OS       string    `json:"os,omitempty"`
	Version  string    `json:"version,omitempty"`
	BootID   string    `json:"boot_id,omitempty"`
	At       time.Time `json:"at"` // by the robot's clock, if that can be believed
	Received time.Time `json:"received"`
	Size     int64     `json:"size"`               // bytes of the dump
	LogSize  int64     `json:"log_size,omitempty"` // bytes of the log; 0: none
	Reason   string    `json:"reason"`
	Problem  string    `json:"problem,omitempty"` // why the dump could not be looked at again when symbols came; the analysis is the one before
	Expires  time.Time `json:"expires"`
	Analysis *Analysis `json:"analysis,omitempty"` // of one crash; lists have none

	Modules []string  `json:"-"` // debug ids of modules that the stacks need
	Looked  time.Time `json:"-"` // when symbols were looked for
}

// Query chooses crashes, the newest first.
type Query struct {
	Thing   thing.ID // "": of all
	Group   string   // "": of all
	Version string   // "": of all
	After   string   // id of the last crash of the page before
	Limit   int      // 0: DefaultLimit
}

// GroupQuery chooses groups, the latest seen first.
type GroupQuery struct {
	State   State
	Program string
	Version string
	After   string // id of the last group of the page before
	Limit   int    // 0: DefaultLimit
}

// CodeUnknown is the code of ErrUnknown.
const CodeUnknown = "unknown_crash"

// Errors of lookups.
var (
	ErrUnknown      = errs.Coded(errs.NotFound, CodeUnknown, "no such crash; it may have expired")
	ErrUnknownGroup = errs.Coded(errs.NotFound, "unknown_crash_group", "no such group of crashes; new symbols may have moved its crashes to another one")
)

// Store keeps crashes and groups. Its methods are safe for concurrent use.
type Store interface {
	// Put stores a crash in the group of its program and the signature, which it makes if need be, and returns that group's id. A resolved group whose fix
	// the crash refutes is regressed. A crash that is stored gets what was found now, and leaves its group for another, which begins in the state of that one; the last
	// crash ends the group.
	Put(ctx context.Context, c Crash, signature string) (group string, err error)
	Has(ctx context.Context, id string) (bool, error)
	Crashes(ctx context.Context, q Query) ([]Crash, error)
	Crash(ctx context.Context, id string) (Crash, error)
	Groups(ctx context.Context, q GroupQuery) ([]Group, error)
	Group(ctx context.Context, id string) (Group, error)
	// SetState changes a group as a person says.
	SetState(ctx context.Context, id string, c Change, now time.Time, by string) (Group, error)
	// Unlisted returns those of ids that are no crash's.
	Unlisted(ctx context.Context, ids []string) ([]string, error)
	// Before returns at most limit crashes that were received before a time.
	Before(ctx context.Context, t time.Time, limit int) (ids []string, err error)
	// Of returns the crashes that happened or were received in a stretch.
	Of(ctx context.Context, s thing.Stretch) ([]Crash, error)
	// Delete deletes crashes, and their groups that have no other and that no person has changed. For an erasure it deletes these groups too, and words of the
	// crashes alone from the versions of groups that stay.
	Delete(ctx context.Context, ids []string, erase bool) error
}

// Change holds a person's changes to a group.
type Change struct {
	State   State   `json:"state,omitempty"`    // open or resolved; "": unchanged
	FixedIn string  `json:"fixed_in,omitempty"` // version with the fix: a crash of it or a later one reopens the group (default: any version later than those that crashed)
	Note    *string `json:"note,omitempty"`     // note for other operators; absent: unchanged
}

// Check reports what cannot be.
func (c Change) Check() error {
	switch {
	case c.State != "" && c.State != Open && c.State != Resolved:
		return errs.New(errs.Invalid, "state %.20q: want %s or %s", c.State, Open, Resolved)
	case c.State == "" && c.Note == nil:
		return errs.New(errs.Invalid, "nothing to change: want state or note")
	case c.FixedIn != "" && c.State != Resolved:
		return errs.New(errs.Invalid, "fixed_in is only for the state %s", Resolved)
	case len(c.FixedIn) > maxWord || !text(c.FixedIn):
		return errs.New(errs.Invalid, "fixed_in: want at most %d bytes of text", maxWord)
	case c.Note != nil && (len(*c.Note) > maxNote || !text(*c.Note)):
		return errs.New(errs.Invalid, "note: want at most %d bytes of text", maxNote)
	}
	return nil
}

// text reports whether the database can keep s.
func text(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// Objects is the part of a blob.Store that the service needs.
type Objects interface {
	Put(ctx context.Context, key string, body io.Reader, size int64, o blob.PutOptions) error
	Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blob.Info, error)
	List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error]
	Delete(ctx context.Context, key string) error
}

// Config holds the parts and settings of a Service.
type Config struct {
	Store   Store
	Symbols SymbolStore
	Objects Objects
	Keep    time.Duration    // 0: DefaultKeep
	Now     func() time.Time // nil: time.Now
	Log     *slog.Logger
	// Tell makes the event robot.crash of a crash whose robot sends none itself: those of the original maker. It may be told of one again. nil: none is made.
	Tell func(ctx context.Context, c Crash, signature string) error
}

// Service takes, lists and groups crashes. Safe for concurrent use.
type Service struct {
	cfg Config
	// turns bounds how many dumps are analysed at a time: each takes some times its size of memory.
	turns chan struct{}
}

// New returns a Service.
func New(c Config) (*Service, error) {
	c.Keep = cmp.Or(c.Keep, DefaultKeep)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Keep < time.Hour {
		return nil, errs.New(errs.Invalid, "crashes are kept for %s: want at least an hour", c.Keep)
	}
	return &Service{c, make(chan struct{}, 2)}, nil
}

// Keep is how long dumps are kept.
func (s *Service) Keep() time.Duration { return s.cfg.Keep }

// idOf is the id of a crash: the same dump of the same robot is the same crash.
func idOf(id thing.ID, dump []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", id)
	h.Write(dump)
	b := h.Sum(nil)[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80 // a UUID of version 8: ours
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

const (
	dumps = Prefix + "dumps/"
	logs  = Prefix + "logs/"
)

// Take stores a crash durably, once for each (thing, dump), and returns its id. An error of kind Invalid says what is wrong with the report.
func (s *Service) Take(ctx context.Context, r Report) (id string, err error) {
	now := s.cfg.Now().UTC()
	switch {
	case len(r.Dump) == 0:
		return "", errs.New(errs.Invalid, "the dump is empty")
	case len(r.Dump) > MaxDump:
		return "", errs.New(errs.Invalid, "the dump has %d bytes: want at most %d", len(r.Dump), MaxDump)
	case len(r.Log) > MaxLog:
		return "", errs.New(errs.Invalid, "the log has %d bytes: want at most %d", len(r.Log), MaxLog)
	}
	for name, word := range map[string]string{"name": r.Name, "program": r.Program, "OS version": r.OSVersion, "version": r.Version, "boot id": r.BootID} {
		if len(word) > maxWord || !text(word) {
			return "", errs.New(errs.Invalid, "crash: %s: want at most %d bytes of text", name, maxWord)
		}
	}
	id = idOf(r.Thing, r.Dump)
	if known, err := s.cfg.Store.Has(ctx, id); err != nil || known {
		return id, err
	}
	c := Crash{ID: id, Thing: r.Thing, Name: r.Name, Program: r.Program, OS: r.OSVersion, Version: r.Version, BootID: r.BootID, At: r.At.UTC(), Received: now,
		Size: int64(len(r.Dump)), LogSize: int64(len(r.Log))}
	signature, err := s.study(ctx, &c, r.Dump)
	if err != nil {
		return "", err
	}
	if c.At.After(now.Add(time.Hour)) || c.At.Before(now.Add(-maxAge)) {
		c.At = now
	}
	if r.Held == nil {
		r.Held = func(ctx context.Context, store func(context.Context) error) error { return store(ctx) }
	}
	return id, r.Held(ctx, func(ctx context.Context) error { return s.keep(ctx, c, r, signature) })
}

// keep stores a crash that was studied: the row last, so that it has its objects and its event.
func (s *Service) keep(ctx context.Context, c Crash, r Report, signature string) error {
	for _, o := range []struct {
		key  string
		body []byte
	}{{dumps + c.ID, r.Dump}, {logs + c.ID, r.Log}} {
		if len(o.body) == 0 {
			continue
		}
		if err := s.cfg.Objects.Put(ctx, o.key, bytes.NewReader(o.body), int64(len(o.body)), blob.PutOptions{ContentType: "application/octet-stream"}); err != nil {
			return fmt.Errorf("store crash %s: %w", c.ID, err)
		}
	}
	if !r.Told && s.cfg.Tell != nil {
		if err := s.cfg.Tell(ctx, c, signature); err != nil {
			return fmt.Errorf("event of crash %s: %w", c.ID, err)
		}
	}
	_, err := s.cfg.Store.Put(ctx, c, signature)
	return err
}

func (s *Service) dated(c Crash) Crash {
	c.Expires = c.Received.Add(s.cfg.Keep)
	return c
}

// Crashes returns crashes without their analysis, the newest first.
func (s *Service) Crashes(ctx context.Context, q Query) ([]Crash, error) {
	if q.Limit = cmp.Or(q.Limit, DefaultLimit); q.Limit < 1 || q.Limit > MaxLimit {
		return nil, errs.New(errs.Invalid, "limit %d: want 1 to %d", q.Limit, MaxLimit)
	}
	if !text(q.Version) {
		return nil, errs.New(errs.Invalid, "version: want text")
	}
	list, err := s.cfg.Store.Crashes(ctx, q)
	for i := range list {
		list[i] = s.dated(list[i])
	}
	return list, err
}

// Crash returns one crash with its analysis.
func (s *Service) Crash(ctx context.Context, id string) (Crash, error) {
	c, err := s.cfg.Store.Crash(ctx, id)
	return s.dated(c), err
}

// Groups returns groups, the latest seen first.
func (s *Service) Groups(ctx context.Context, q GroupQuery) ([]Group, error) {
	if q.Limit = cmp.Or(q.Limit, DefaultLimit); q.Limit < 1 || q.Limit > MaxLimit {
		return nil, errs.New(errs.Invalid, "limit %d: want 1 to %d", q.Limit, MaxLimit)
	}
	if q.State != "" && !slices.Contains(States, q.State) {
		return nil, errs.New(errs.Invalid, "state %.20q: want one of %s", q.State, errs.List(States))
	}
	if !text(q.Program) || !text(q.Version) {
		return nil, errs.New(errs.Invalid, "program and version: want text")
	}
	return s.cfg.Store.Groups(ctx, q)
}

// Group returns one group.
func (s *Service) Group(ctx context.Context, id string) (Group, error) {
	return s.cfg.Store.Group(ctx, id)
}

// Change changes a group as a person says.
func (s *Service) Change(ctx context.Context, id string, c Change, by string) (Group, error) {
	if err := c.Check(); err != nil {
		return Group{}, err
	}
	return s.cfg.Store.SetState(ctx, id, c, s.cfg.Now(), by)
}

// Open returns the dump of a crash, or its log, as it came; the caller closes it.
func (s *Service) Open(ctx context.Context, c Crash, log bool) (io.ReadCloser, error) {
	key := dumps + c.ID
	if log {
		if key = logs + c.ID; c.LogSize == 0 {
			return nil, errs.New(errs.NotFound, "the robot sent no log with this crash")
		}
	}
	body, _, err := s.cfg.Objects.Get(ctx, key, 0, 0)
	if errs.KindOf(err) == errs.NotFound {
		return nil, ErrUnknown
	}
	return body, err
}

// batch is how many rows or keys a sweep takes at a time.
const batch = 500

// settled is how old an object must be before Expire asks whether it has a row: a crash may be between the two.
const settled = time.Hour

// Expire deletes crashes that were kept for long enough, and objects that are no crash's, and returns how many. Any process may run it, at any time.
func (s *Service) Expire(ctx context.Context) (n int, err error) {
	for {
		ids, err := s.cfg.Store.Before(ctx, s.cfg.Now().Add(-s.cfg.Keep), batch)
		if err == nil {
			err = s.delete(ctx, ids, false)
		}
		if err != nil {
			return n, err
		}
		if n += len(ids); len(ids) < batch {
			break
		}
	}
	for prefix, unlisted := range map[string]func(context.Context, []string) ([]string, error){dumps: s.cfg.Store.Unlisted, logs: s.cfg.Store.Unlisted, symbols: s.cfg.Symbols.UnlistedSymbols} {
		lost, err := s.strays(ctx, prefix, unlisted)
		if n += lost; err != nil {
			return n, err
		}
	}
	return n, nil
}

// strays deletes the objects below prefix that no row knows.
func (s *Service) strays(ctx context.Context, prefix string, unlisted func(context.Context, []string) ([]string, error)) (n int, err error) {
	var wait []string
	look := func() error {
		ids, err := unlisted(ctx, wait)
		for _, id := range ids {
			if err == nil {
				err = s.cfg.Objects.Delete(ctx, prefix+id)
			}
		}
		n, wait = n+len(ids), wait[:0]
		return err
	}
	for o, err := range s.cfg.Objects.List(ctx, prefix) {
		if err != nil {
			return n, err
		}
		if o.Modified.After(s.cfg.Now().Add(-settled)) {
			continue
		}
		if wait = append(wait, strings.TrimPrefix(o.Key, prefix)); len(wait) == batch {
			if err := look(); err != nil {
				return n, err
			}
		}
	}
	return n, look()
}

// delete deletes crashes: first the objects, so that one which fails is found again.
func (s *Service) delete(ctx context.Context, ids []string, erase bool) error {
	for _, id := range ids {
		for _, key := range []string{dumps + id, logs + id} {
			if err := s.cfg.Objects.Delete(ctx, key); err != nil {
				return err
			}
		}
	}
	return s.cfg.Store.Delete(ctx, ids, erase)
}

// List returns the crashes of a stretch of a robot's life, for the export of its owner.
func (s *Service) List(ctx context.Context, of thing.Stretch) (any, error) {
	return s.cfg.Store.Of(ctx, of)
}

// Files adds the dumps and logs of a stretch, for the export of its owner.
func (s *Service) Files(ctx context.Context, of thing.Stretch, add func(name string, write func(io.Writer) error) error) error {
	list, err := s.cfg.Store.Of(ctx, of)
	for _, c := range list {
		for _, f := range []struct {
			name string
			log  bool
			size int64
		}{{".dmp", false, c.Size}, {".log", true, c.LogSize}} {
			if err == nil && f.size > 0 {
				err = add(of.Thing.Slug()+"/"+c.ID+f.name, func(w io.Writer) error {
					body, err := s.Open(ctx, c, f.log)
					if err != nil {
						return err
					}
					_, err = io.Copy(w, body)
					return errors.Join(err, body.Close())
				})
			}
		}
	}
	return err
}

// Erase deletes the crashes of a stretch, with what groups have of them alone, and returns how many.
func (s *Service) Erase(ctx context.Context, of thing.Stretch) (int, error) {
	list, err := s.cfg.Store.Of(ctx, of)
	ids := make([]string, len(list))
	for i, c := range list {
		ids[i] = c.ID
	}
	if err == nil && len(ids) > 0 {
		err = s.delete(ctx, ids, true)
	}
	return len(ids), err
}

// study finds out what crashed, and returns the signature.
func (s *Service) study(ctx context.Context, c *Crash, dump []byte) (signature string, err error) {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	c.Looked = s.cfg.Now() // before: symbols that come meanwhile are looked at again
	a, err := s.analyse(ctx, dump)
	if err != nil {
		return "", err
	}
	c.Program, c.Version, c.BootID = cmp.Or(c.Program, a.Program, "unknown"), cmp.Or(c.Version, a.Version), cmp.Or(c.BootID, a.BootID)
	if c.At.IsZero() {
		c.At = a.At
	}
	c.Reason, c.Modules, c.Analysis = a.Reason, a.needs(), &a
	s.cfg.Log.DebugContext(ctx, "crash analysed", logging.Thing, c.Thing, "program", c.Program, "reason", c.Reason)
	return a.signature(), nil
}
