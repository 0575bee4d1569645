// Package artifact keeps the archives of releases, and the channels by which original robots find them (VEC-OTA-18, VEC-OTA-23).
//
// A release has at most one full archive, one delta for each version that it can be reached from, and factory archives, each for any robot or for one. An archive
// is verified while it is uploaded: what a robot would refuse is not kept. It is in the object store, under a key that follows from what it is:
//
//	ota/vic/2.0.1.6076/production-0f1e2d3c4b5a6978.ota       the first 16 digits of its SHA-256
//	ota/vic/2.0.1.6076/1.8.0.6051-8796a5b4c3d2e1f0.ota       the delta from 1.8.0.6051
//	ota/vic/2.0.1.6076/swu-6a5b4c3d2e1f0987.swu              the file for devices that run SWUpdate
//
// The object comes first and the row last, so that a row always has its object. An object without a row, which a crash may leave, is used by the next upload of
// the same archive, or swept.
package artifact

import (
	"context"
	"crypto/rsa"
	"io"
	"iter"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/infra/blob"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/manifest"
)

// Artifact is one archive of a release.
type Artifact struct {
	Species thing.Species `json:"species"`
	Version ota.Version   `json:"version"`
	Kind    manifest.Kind `json:"kind"`
	Base    ota.Version   `json:"base_version,omitempty"` // the version that a delta changes
	QSN     string        `json:"qsn,omitempty"`          // the only robot that it is for, by its processor's serial number
	Dev     bool          `json:"ankidev"`                // for development robots
	Size    int64         `json:"size"`                   // bytes
	SHA256  string        `json:"sha256"`                 // of the whole archive, hex
	SHA1    string        `json:"sha1,omitempty"`         // of one for SWUpdate alone, as is MD5
	MD5     string        `json:"md5,omitempty"`
	Created time.Time     `json:"created"`
	By      string        `json:"by"` // who uploaded it

	Manifest *manifest.Manifest `json:"-"` // of an archive that is being stored
}

// SWU is the kind of files for devices that run SWUpdate. A release has at most one, beside the archives for other robots.
const SWU manifest.Kind = "swu"

// Key returns the key of the archive's object.
func (a Artifact) Key() string {
	name, form := string(a.Kind), ".ota"
	if a.Base != "" {
		name = string(a.Base)
	}
	if a.Kind == SWU {
		form = ".swu"
	}
	return path.Join(prefix, string(a.Species), string(a.Version), name+"-"+a.SHA256[:16]+form)
}

// ParseKey returns what a key says of its archive: species, version, and the beginning of the SHA-256.
func ParseKey(key string) (species, version, sha256 string, err error) {
	part := strings.Split(key, "/")
	i := strings.LastIndexByte(key, '-')
	if len(part) != 4 || part[0] != prefix || !strings.Contains(part[3], "-") {
		return "", "", "", errs.New(errs.Invalid, "key %.200q: want ota/SPECIES/VERSION/KIND-SHA256.ota or .swu", key)
	}
	return part[1], part[2], strings.TrimSuffix(strings.TrimSuffix(key[i+1:], ".ota"), ".swu"), nil
}

// Full reports whether any robot can install the archive, so that a channel can offer its release.
func (a Artifact) Full() bool { return a.Kind == manifest.Production && a.QSN == "" }

// ETag is the strong entity tag of the archive.
func (a Artifact) ETag() string { return `"` + a.SHA256 + `"` }

const prefix = "ota"

// Channel is a stable name by which robots of a species find a release.
type Channel struct {
	Species thing.Species `json:"species"`
	Channel string        `json:"channel"`
	Version ota.Version   `json:"version"` // "": it offers none
	Since   time.Time     `json:"since"`
	By      string        `json:"by"`
}

// Prod is the channel of ordinary robots.
const Prod = "prod"

// Channels are the names of the channels.
var Channels = []string{Prod, "beta", "dev"}

// Actions of the audit log. The object is a species.
const (
	AuditUpload  = "release.upload"  // detail: version, kind or base, and the beginning of the SHA-256
	AuditChannel = "release.channel" // detail: channel and version
	AuditDelete  = "release.delete"  // detail as for an upload
)

// File is an archive as a robot names it within a channel.
type File struct {
	Channel string
	Version ota.Version // "": the one that the channel offers
	Delta   bool        // the delta from Base; else the full archive
	Base    ota.Version
}

// Store is the storage that Service needs.
type Store interface {
	// Get returns the archive with that SHA-256; NotFound if there is none.
	Get(ctx context.Context, species thing.Species, sha256 string) (Artifact, error)
	// List returns the newest release's archives first, and those of a release by kind; species and v "" are all.
	List(ctx context.Context, species thing.Species, v ota.Version) ([]Artifact, error)
	// Add keeps a, once exists says that its object is there, and returns what is kept. No Unless for its key runs meanwhile. It returns Conflict if another
	// archive has the place of a in the release, and the error of exists.
	Add(ctx context.Context, a Artifact, exists func(context.Context) error) (Artifact, error)
	// Remove forgets an archive.
	Remove(ctx context.Context, a Artifact) error
	// Unless calls f if no archive has the object a.Key. No Add for the same key runs meanwhile.
	Unless(ctx context.Context, key string, f func(context.Context) error) error
	// Best returns the smallest archive that brings any robot from running to v; NotFound if there is none. running "" takes no delta.
	Best(ctx context.Context, species thing.Species, running, v ota.Version) (Artifact, error)
	// Offered returns the version of a channel that f means, and its archive. The version is empty if the channel offers none, or never offered that one; the
	// archive alone is empty if the version has none such.
	Offered(ctx context.Context, species thing.Species, f File) (ota.Version, Artifact, error)
	// SetChannel has the channel offer c.Version, and returns since when it does: repeating the call changes nothing.
	SetChannel(ctx context.Context, c Channel) (Channel, error)
	// Channels lists what channels offer; species "" is all.
	Channels(ctx context.Context, species thing.Species) ([]Channel, error)
}

// Objects is the part of a blob.Store that Service needs.
type Objects interface {
	PutOnce(ctx context.Context, key string, body io.Reader, size int64, o blob.PutOptions, d blob.Digests) (string, error)
	Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blob.Info, error)
	Head(ctx context.Context, key string) (blob.Info, error)
	Delete(ctx context.Context, key string) error
	List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error]
	PresignGet(ctx context.Context, key string, ttl time.Duration) (blob.Presigned, error)
}

// Config holds what a Service is made of.
type Config struct {
	Store    Store
	Objects  Objects
	Add      func(ctx context.Context, r ota.Release) error // makes a release known; Conflict if it is
	Keys     []*rsa.PublicKey                               // one of them signed each archive that is taken
	Password []byte                                         // of encrypted images; none: they are refused
	Added    func(ctx context.Context) error                // is called for each archive that is kept; nil: nothing is
	Log      *slog.Logger
	// Next returns the release that a robot gets next on its way to v; nil: v.
	Next func(ctx context.Context, species thing.Species, running string, v ota.Version) (ota.Version, error)
	// Users return what uses a release, in words; "" is nothing. Its archives then stay.
	Users []func(ctx context.Context, species thing.Species, v ota.Version) (string, error)
}

// Service holds the rules. It is safe for concurrent use.
type Service struct {
	Config

	mu    sync.Mutex
	found map[question]answer
}

// question is one that many robots ask alike.
type question struct {
	species thing.Species
	base, v ota.Version
}

type answer struct {
	ota.Artifact
	until time.Time // it is given out
}

// New returns a service.
func New(c Config) *Service { return &Service{Config: c, found: map[question]answer{}} }

// List returns the archives of a release, or of all for "".
func (s *Service) List(ctx context.Context, species thing.Species, v ota.Version) ([]Artifact, error) {
	return s.Store.List(ctx, species, v)
}

// Delete removes an archive and its object. Conflict while a channel, or one of Users, uses its release.
func (s *Service) Delete(ctx context.Context, species thing.Species, sum string, audit func(ctx context.Context, action, object, detail string) error) (Artifact, error) {
	a, err := s.Store.Get(ctx, species, sum)
	if err != nil {
		return a, err
	}
	for _, uses := range append([]func(context.Context, thing.Species, ota.Version) (string, error){s.offered}, s.Users...) {
		switch what, err := uses(ctx, species, a.Version); {
		case err != nil:
			return a, err
		case what != "":
			return a, errs.Coded(errs.Conflict, "archive_used", "release %s of %s is used by %s; its archives cannot be deleted", a.Version, species, what)
		}
	}
	if err := audit(ctx, AuditDelete, string(species), a.line()); err != nil {
		return a, err
	}
	if err := s.Store.Remove(ctx, a); err != nil {
		return a, err
	}
	return a, s.Store.Unless(ctx, a.Key(), func(ctx context.Context) error { return s.Objects.Delete(ctx, a.Key()) }) // what fails here is swept later
}

// Offered returns the version of a channel that f means, or what a robot that runs something needs before it, and the archive. They are empty as Store.Offered says.
func (s *Service) Offered(ctx context.Context, species thing.Species, f File, running string) (ota.Version, Artifact, error) {
	v, a, err := s.Store.Offered(ctx, species, f)
	if err != nil || v == "" || f.Version != "" || s.Next == nil {
		return v, a, err
	}
	next, err := s.Next(ctx, species, running, v)
	if err != nil || next == v {
		return v, a, err
	}
	if a, err = s.Store.Best(ctx, species, f.Base, next); errs.KindOf(err) == errs.NotFound || err == nil && f.Delta != (a.Kind == manifest.Delta) {
		return next, Artifact{}, nil
	}
	return next, a, err
}

// offered says which channel offers a release now.
func (s *Service) offered(ctx context.Context, species thing.Species, v ota.Version) (string, error) {
	list, err := s.Store.Channels(ctx, species)
	for _, c := range list {
		if c.Version == v {
			return "the channel " + c.Channel, err
		}
	}
	return "", err
}

// Channels lists what channels offer; species "" is all.
func (s *Service) Channels(ctx context.Context, species thing.Species) ([]Channel, error) {
	return s.Store.Channels(ctx, species)
}

// SetChannel has a channel offer a release, or none for an empty version.
func (s *Service) SetChannel(ctx context.Context, c Channel) (Channel, error) {
	if err := checkSpecies(c.Species); err != nil {
		return c, err
	}
	switch {
	case !slices.Contains(Channels, c.Channel):
		return c, errs.New(errs.Invalid, "channel %.40q: want one of %s", c.Channel, errs.List(Channels))
	case c.Version == "":
		return s.Store.SetChannel(ctx, c)
	}
	if _, err := ota.ParseVersion(string(c.Version)); err != nil {
		return c, err
	}
	full, err := s.Store.Best(ctx, c.Species, "", c.Version)
	if errs.KindOf(err) == errs.NotFound {
		return c, errs.Coded(errs.Conflict, "no_archive", "release %s of %s has no full archive; upload it first", c.Version, c.Species)
	}
	if err == nil && full.Dev && c.Channel == Prod {
		return c, errs.Coded(errs.Conflict, "development_release", "release %s is for development robots; other robots would refuse it with code %d", c.Version, ota.WrongKind)
	}
	if err != nil {
		return c, err
	}
	return s.Store.SetChannel(ctx, c)
}

func checkSpecies(s thing.Species) error {
	if err := s.Check(); err != nil {
		return errs.New(errs.Invalid, "%w", err)
	}
	return nil
}

// urlTime is how long a robot may take until it begins its download; the download itself may last longer. Afterwards it asks again. An answer is shared for a
// while: to find it and to sign its address costs as much as all else of a robot's question.
const (
	urlTime   = time.Hour
	shareTime = 10 * time.Second
	maxShared = 1000 // answers: robots may say that they run anything
)

// Artifact returns where a robot that runs something gets release v: the smallest archive that it can use. It is empty if there is none. A robot that cannot
// use a delta asks as one that runs nothing.
func (s *Service) Artifact(ctx context.Context, species thing.Species, running string, v ota.Version) (ota.Artifact, error) {
	base, err := ota.ParseVersion(running)
	if err != nil {
		base = "" // as it calls itself: no delta is for it
	}
	q := question{species, base, v}
	s.mu.Lock()
	shared, ok := s.found[q]
	s.mu.Unlock()
	if ok && time.Now().Before(shared.until) {
		return shared.Artifact, nil
	}
	a, err := s.Store.Best(ctx, species, base, v)
	if errs.KindOf(err) == errs.NotFound {
		return ota.Artifact{}, nil
	}
	if err != nil {
		return ota.Artifact{}, err
	}
	p, err := s.Objects.PresignGet(ctx, a.Key(), urlTime+shareTime)
	if err != nil {
		return ota.Artifact{}, err
	}
	now := answer{ota.Artifact{URL: p.URL, SHA256: a.SHA256, Size: a.Size}, time.Now().Add(shareTime)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.found) >= maxShared {
		clear(s.found)
	}
	s.found[q] = now
	return now.Artifact, nil
}

// orphanAge is how old an object without a row must be to be swept: no upload lasts so long.
const orphanAge = 24 * time.Hour

// Sweep deletes the objects of uploads that were never completed, and returns how many.
func (s *Service) Sweep(ctx context.Context) (n int, err error) {
	before := time.Now().Add(-orphanAge)
	for o, err := range s.Objects.List(ctx, prefix+"/") {
		if err != nil {
			return n, err
		}
		if _, _, _, foreign := ParseKey(o.Key); foreign != nil || o.Modified.After(before) {
			continue
		}
		err := s.Store.Unless(ctx, o.Key, func(ctx context.Context) error {
			now, err := s.Objects.Head(ctx, o.Key)
			if err != nil || now.Modified.After(before) { // an upload of the same archive was quicker
				return err
			}
			n++
			return s.Objects.Delete(ctx, o.Key)
		})
		if err != nil && errs.KindOf(err) != errs.NotFound {
			return n, err
		}
	}
	return n, nil
}
