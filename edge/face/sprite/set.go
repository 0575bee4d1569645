package sprite

import (
	"errors"
	"fmt"
	"image"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync"
)

// Source returns the pictures of a sprite, in their order. An error that is fs.ErrNotExist: it has none of that name.
type Source func(name string) (iter.Seq2[image.Image, error], error)

// MaxKept is how many bytes of pixels a Set keeps at most; our own limit.
const MaxKept = 6 << 20

// Set finds sprites and keeps the newest ones, so that each is decoded once. It is safe for concurrent use; callers wait while another one decodes.
type Set struct {
	sources []Source

	mu    sync.Mutex
	kept  []kept // the one that was used last at the end
	bytes int
}

// kept is a sprite by its name in lower case.
type kept struct {
	name string
	seq  *Sequence
}

// NewSet returns a set that asks sources in their order; the first that has a name wins.
func NewSet(sources ...Source) *Set { return &Set{sources: sources} }

// Get returns a sprite by its name, in any case (part of VEC-DSP-08). An error that is fs.ErrNotExist: no source has it; ErrSprite: its pictures are no sprite.
func (s *Set) Get(name string) (*Sequence, error) {
	key := strings.ToLower(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.kept, func(k kept) bool { return k.name == key }); i >= 0 {
		k := s.kept[i]
		s.kept = append(slices.Delete(s.kept, i, i+1), k)
		return k.seq, nil
	}
	seq, err := s.read(name)
	if err != nil {
		return nil, fmt.Errorf("sprite %.60q: %w", name, err)
	}
	s.kept = append(s.kept, kept{key, seq})
	for s.bytes += seq.Bytes(); s.bytes > MaxKept; {
		s.bytes -= s.kept[0].seq.Bytes()
		s.kept = slices.Delete(s.kept, 0, 1)
	}
	return seq, nil
}

// read reads a sprite from the first source that has it.
func (s *Set) read(name string) (*Sequence, error) {
	for _, from := range s.sources {
		pictures, err := from(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return New(pictures)
	}
	return nil, fs.ErrNotExist
}
