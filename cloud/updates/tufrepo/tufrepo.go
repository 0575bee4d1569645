// Package tufrepo publishes the metadata of releases (ota/trust) to robots: it signs what its keys can sign, takes what people signed elsewhere, and warns before
// anything expires. Any number of processes share what is published; one at a time changes it.
package tufrepo

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kennel/cloud/updates/artifact"
	"kennel/infra/errs"
	"kennel/infra/telemetry"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/trust"
)

// AuditUpload is the action of the audit log for an upload; the detail lists roles and versions.
const AuditUpload = "release.metadata"

// By is who publishes what the cloud signs by itself.
const By = "system"

// Store is the storage that Service needs.
type Store interface {
	// Read returns what is published, and the versions of root after one, the first trust.MaxRoots of them. It is empty if nothing is.
	Read(ctx context.Context, after int64) (k *trust.Known, roots [][]byte, err error)
	// Change replaces what is published by what f returns, and keeps the versions of root. No other Change runs meanwhile, in any process.
	Change(ctx context.Context, by string, f func(k *trust.Known) (next *trust.Known, roots [][]byte, err error)) error
}

// Archives lists the archives of releases; "" is all.
type Archives interface {
	List(ctx context.Context, species thing.Species, v ota.Version) ([]artifact.Artifact, error)
}

// Config holds what a Service is made of.
type Config struct {
	Store    Store
	Archives Archives
	Keys     trust.Publisher
	First    map[string][]byte // signed metadata that are published if nothing is
	Now      func() time.Time
}

// Service holds the rules. It is safe for concurrent use.
type Service struct{ Config }

// New returns a service.
func New(c Config) *Service { return &Service{c} }

// Answer returns what a robot lacks.
func (s *Service) Answer(ctx context.Context, _ thing.ID, q trust.Question) (trust.Answer, error) {
	k, roots, err := s.Store.Read(ctx, q.Root)
	if err == nil && k.Root == nil {
		err = errs.Coded(errs.NotFound, "no_metadata", "this cloud publishes no release metadata")
	}
	if err != nil {
		return trust.Answer{}, err
	}
	a := k.Answer(q, roots)
	a.V = 1
	return a, nil
}

// Renew signs what has to be signed: what is half expired, and the archives of releases.
func (s *Service) Renew(ctx context.Context) error { return s.Publish(ctx, nil, By) }

// Publish takes metadata that people signed, by role, those of root as 2.root and so on, and signs what follows from them. Metadata that robots would refuse are
// Invalid, and nothing of them is kept.
func (s *Service) Publish(ctx context.Context, uploads map[string][]byte, by string) error {
	list, err := s.Archives.List(ctx, "", "")
	if err != nil {
		return err
	}
	targets := map[string]trust.Target{}
	for _, a := range list {
		t := trust.Target{Length: a.Size}
		if n, err := hex.Decode(t.SHA256[:], []byte(a.SHA256)); err != nil || n != len(t.SHA256) {
			return fmt.Errorf("archive %s: SHA-256 %q", a.Key(), a.SHA256)
		}
		targets[trust.Path(a.Species, string(a.Version), string(a.Kind), string(a.Base), a.QSN)] = t
	}
	return s.Store.Change(ctx, by, func(k *trust.Known) (*trust.Known, [][]byte, error) {
		files := uploads
		if k.Root == nil && len(files) == 0 {
			files = s.First
		}
		next, roots, err := s.Keys.Next(k, files, targets, s.Now())
		if err != nil && len(uploads) > 0 {
			err = errs.Coded(errs.Invalid, "metadata_refused", "%w", err)
		}
		return next, roots, err
	})
}

// States returns the state of each role that is published.
func (s *Service) States(ctx context.Context) ([]ota.RoleState, error) {
	k, _, err := s.Store.Read(ctx, 0)
	if err != nil {
		return nil, err
	}
	return s.Keys.States(k, s.Now()), nil
}

// Check warns of metadata that expire soon, and only warns: the cloud works without them.
func (s *Service) Check(ctx context.Context) error {
	states, err := s.States(ctx)
	if err != nil {
		return nil // the check of the database says so
	}
	var problems []string
	for _, st := range states {
		if st.Problem != "" {
			problems = append(problems, st.Problem)
		}
	}
	if len(problems) > 0 {
		return telemetry.Warning(strings.Join(problems, "; "))
	}
	return nil
}

// Names lists what is uploaded, for the audit log.
func Names(uploads map[string][]byte) string {
	var names []string
	for _, role := range slices.Sorted(maps.Keys(uploads)) {
		names = append(names, fmt.Sprintf("%s version %d", role, trust.Version(uploads[role])))
	}
	return strings.Join(names, ", ")
}
