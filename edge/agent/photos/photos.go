// Package photos keeps the pictures that the robot took for its people: an album of numbered photos with thumbnails, encrypted on the robot's disk and
// never sent anywhere but to programs that its owner let in (VEC-PHO-02).
//
//	PERSISTENT/photos/index.json     numbers, times, and what an app has copied
//	PERSISTENT/photos/7.photo        a JPEG picture, sealed; 7.thumb its thumbnail
//	persist/kennel/photos/key        the key of this album, on another partition than the photos
//
// A copy of the photos' partition shows no picture. Each file is sealed for its own number and kind, so none can be exchanged for another. A photo that is in
// the index is on disk whole; files that a power cut left beside the index are removed at the next start. The first photo of an empty album makes a new key:
// nothing can be read later of photos that were erased with the user data (edge/agent/ownership/wipe).
package photos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/infra/errs"
	"kennel/infra/secretbox"
)

// Bounds of an album; own defaults.
const (
	MaxPhotos = 64      // a person deletes some to take more
	MaxBytes  = 2 << 20 // of one picture
)

const (
	folder    = "photos" // below the persistent folder
	indexFile = "index.json"
	keyFolder = "persist/kennel/photos"
	keyFile   = keyFolder + "/key"
)

// Kind tells the two files of a photo apart.
type Kind string

// The kinds, which are the endings of the files' names too.
const (
	Full  Kind = "photo"
	Thumb Kind = "thumb"
)

// Info describes a photo.
type Info struct {
	ID     uint32    `json:"id"` // from 1
	Taken  time.Time `json:"taken"`
	Copied bool      `json:"copied,omitempty"`       // an app has fetched the picture
	Seen   bool      `json:"thumb_copied,omitempty"` // an app has fetched the thumbnail
}

// index is the album's list.
type index struct {
	Next   uint32 `json:"next"` // no number is used twice
	Photos []Info `json:"photos"`
}

// Album is safe for concurrent use.
type Album struct {
	root *os.Root
	dir  string

	mu  sync.Mutex
	has index
	key *secretbox.Key // nil: there is none yet
}

// Open reads the album below the persistent folder; "" is the original's. An album whose index cannot be read is an error: its photos stay where they are.
func Open(root *os.Root, persistent string) (*Album, error) {
	if persistent == "" {
		persistent = robotfs.Persistent
	}
	a := &Album{root: root, dir: path.Join(persistent, folder), has: index{Next: 1}}
	for _, dir := range []string{a.dir, keyFolder} {
		if err := robotfs.CleanTemp(root, dir); err != nil {
			return nil, fmt.Errorf("photos: %w", err)
		}
	}
	err := robotfs.ReadJSON(root, path.Join(a.dir, indexFile), &a.has)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("photos: %w", err)
	}
	a.has.Next = max(a.has.Next, 1)
	for _, p := range a.has.Photos {
		a.has.Next = max(a.has.Next, p.ID+1)
	}
	if err := a.tidy(); err != nil {
		return nil, fmt.Errorf("photos: %w", err)
	}
	b, err := robotfs.ReadFile(root, keyFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a, nil
	case err != nil:
		return nil, fmt.Errorf("photos: %w", err)
	}
	k, err := secretbox.Parse(string(b))
	if err != nil {
		return nil, fmt.Errorf("photos: %s: %w", keyFile, err)
	}
	a.key = &k
	return a, nil
}

// tidy removes files that are in no index, and forgets photos without a file.
func (a *Album) tidy() error {
	names, err := fs.ReadDir(a.root.FS(), a.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	there := map[string]bool{}
	for _, e := range names {
		name := e.Name()
		there[name] = true
		if name != indexFile && !slices.ContainsFunc(a.has.Photos, func(p Info) bool { return name == file(p.ID, Full) || name == file(p.ID, Thumb) }) {
			if err := a.root.RemoveAll(path.Join(a.dir, name)); err != nil {
				return err
			}
		}
	}
	a.has.Photos = slices.DeleteFunc(a.has.Photos, func(p Info) bool { return !there[file(p.ID, Full)] || !there[file(p.ID, Thumb)] })
	return nil
}

func file(id uint32, k Kind) string { return strconv.FormatUint(uint64(id), 10) + "." + string(k) }

// sealer returns what seals one file of a photo.
func sealer(k secretbox.Key, id uint32, kind Kind) secretbox.Sealer {
	return k.For("photos/" + file(id, kind))
}

// List returns the photos, oldest first.
func (a *Album) List() []Info {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.has.Photos)
}

// Add stores a photo, a JPEG picture with its thumbnail, and returns its number once it is on disk. Errors are Exhausted for a full album, Invalid for a
// picture that is too large, and those of the disk; after any of them the album is as before.
func (a *Album) Add(picture, thumbnail []byte, taken time.Time) (id uint32, err error) {
	if max(len(picture), len(thumbnail)) > MaxBytes || min(len(picture), len(thumbnail)) == 0 {
		return 0, errs.New(errs.Invalid, "a photo of %d bytes with a thumbnail of %d, want 1 to %d", len(picture), len(thumbnail), MaxBytes)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.has.Photos) >= MaxPhotos {
		return 0, errs.Coded(errs.Exhausted, "album_full", "the album has %d photos, which is all that it holds; delete some first", len(a.has.Photos))
	}
	key, err := a.newest()
	if err != nil {
		return 0, fmt.Errorf("key of the photos: %w", err)
	}
	id = a.has.Next
	for kind, b := range map[Kind][]byte{Full: picture, Thumb: thumbnail} {
		if err := robotfs.WriteFile(a.root, path.Join(a.dir, file(id, kind)), sealer(key, id, kind).Seal(b, nil), 0o600); err != nil {
			return 0, fmt.Errorf("photo %d: %w", id, err)
		}
	}
	return id, a.save(index{Next: id + 1, Photos: append(slices.Clone(a.has.Photos), Info{ID: id, Taken: taken.UTC().Truncate(time.Second)})})
}

// newest returns the key for the next photo, which is a new one for an album without photos. a.mu is held.
func (a *Album) newest() (secretbox.Key, error) {
	if a.key != nil && len(a.has.Photos) > 0 {
		return *a.key, nil
	}
	k := secretbox.New()
	if err := robotfs.WriteFile(a.root, keyFile, []byte(k.Text()), 0o600); err != nil {
		return k, err
	}
	a.key = &k
	return k, nil
}

// save writes the index and takes it as the album. a.mu is held.
func (a *Album) save(next index) error {
	b, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return err
	}
	if err := robotfs.WriteFile(a.root, path.Join(a.dir, indexFile), append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("list of the photos: %w", err)
	}
	a.has = next
	return nil
}

// errNone is of a number without a photo.
func errNone(id uint32) error { return errs.New(errs.NotFound, "no photo %d", id) }

// Fetch returns a picture or a thumbnail as JPEG, and notes that an app has it. Errors are NotFound, Corrupt for a file that was changed or whose key is
// gone, and those of the disk.
func (a *Album) Fetch(id uint32, kind Kind) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.has.Photos, func(p Info) bool { return p.ID == id })
	if i < 0 {
		return nil, errNone(id)
	}
	sealed, err := robotfs.ReadFile(a.root, path.Join(a.dir, file(id, kind)))
	if err != nil {
		return nil, fmt.Errorf("photo %d: %w", id, err)
	}
	if a.key == nil {
		return nil, errs.New(errs.Corrupt, "photo %d: the key of the album is gone", id)
	}
	b, err := sealer(*a.key, id, kind).Open(sealed, nil)
	if err != nil {
		return nil, errs.New(errs.Corrupt, "photo %d: %w", id, err)
	}
	p := a.has.Photos[i]
	if p.Copied, p.Seen = p.Copied || kind == Full, p.Seen || kind == Thumb; p != a.has.Photos[i] {
		next := index{Next: a.has.Next, Photos: slices.Clone(a.has.Photos)}
		next.Photos[i] = p
		err = a.save(next)
	}
	return b, err
}

// Delete removes a photo with its thumbnail. NotFound: there is none of that number.
func (a *Album) Delete(id uint32) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.has.Photos, func(p Info) bool { return p.ID == id })
	if i < 0 {
		return errNone(id)
	}
	if err := a.save(index{Next: a.has.Next, Photos: slices.Delete(slices.Clone(a.has.Photos), i, i+1)}); err != nil {
		return err
	}
	for _, kind := range []Kind{Full, Thumb} { // the next Open removes what is left over
		if err := a.root.Remove(path.Join(a.dir, file(id, kind))); err != nil {
			return fmt.Errorf("photo %d: %w", id, err)
		}
	}
	return nil
}
