package jdocstest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/infra/thing"
	"kennel/jdocs"
)

// Memory is a jdocs.Store for tests. It keeps every revision. Safe for concurrent use.
type Memory struct {
	mu   sync.Mutex
	revs map[jdocs.Key][]jdocs.Revision
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{revs: map[jdocs.Key][]jdocs.Revision{}} }

// last returns the newest revision, which may be a deletion. Callers hold mu.
func (m *Memory) last(k jdocs.Key) jdocs.Revision {
	if r := m.revs[k]; len(r) > 0 {
		return r[len(r)-1]
	}
	return jdocs.Revision{Deleted: true}
}

// current is what others see: version 0 when there is no document.
func current(r jdocs.Revision) uint64 {
	if r.Deleted {
		return 0
	}
	return r.Version
}

// Get implements jdocs.Store.
func (m *Memory) Get(_ context.Context, k jdocs.Key) (jdocs.Revision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.last(k); !r.Deleted {
		return r, nil
	}
	return jdocs.Revision{}, jdocs.ErrNotFound
}

// Put implements jdocs.Store.
func (m *Memory) Put(_ context.Context, k jdocs.Key, d jdocs.Doc, by string) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.last(k)
	if d.Version != current(last) {
		return current(last), jdocs.ErrStale
	}
	d.Version = last.Version + 1
	m.revs[k] = append(m.revs[k], jdocs.Revision{Doc: d, By: by, At: time.Now()})
	return d.Version, nil
}

// Delete implements jdocs.Store.
func (m *Memory) Delete(_ context.Context, k jdocs.Key, by string) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.last(k)
	if last.Deleted {
		return 0, nil
	}
	v := last.Version + 1
	m.revs[k] = append(m.revs[k], jdocs.Revision{Doc: jdocs.Doc{Version: v, FmtVersion: last.FmtVersion}, By: by, At: time.Now(), Deleted: true})
	return v, nil
}

// Revision implements jdocs.Store.
func (m *Memory) Revision(_ context.Context, k jdocs.Key, version uint64) (jdocs.Revision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.revs[k] {
		if r.Version == version {
			return r, nil
		}
	}
	return jdocs.Revision{}, jdocs.ErrNotFound
}

// History implements jdocs.Store.
func (m *Memory) History(_ context.Context, k jdocs.Key, limit int) ([]jdocs.Revision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := slices.Clone(m.revs[k])
	slices.Reverse(r)
	return r[:min(limit, len(r))], nil
}

// List implements jdocs.Store.
func (m *Memory) List(_ context.Context, id thing.ID) ([]jdocs.Listing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []jdocs.Listing
	for k := range m.revs {
		if r := m.last(k); k.Thing == id && !r.Deleted {
			out = append(out, jdocs.Listing{Name: k.Name, Version: r.Version, FmtVersion: r.FmtVersion, By: r.By, At: r.At})
		}
	}
	slices.SortFunc(out, func(a, b jdocs.Listing) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return out, nil
}
