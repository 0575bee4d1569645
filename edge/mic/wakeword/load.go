package wakeword

import (
	"errors"
	"io/fs"
	"path"
)

// Where models are, below the robot's root.
const (
	OwnFile     = "data/kennel/wake_word.kws" // trained by the robot's people; a wipe removes it
	ResourceDir = "anki/data/assets/cozmo_resources/"
)

// Load returns the model for a locale: the robot's own, or the one that the catalogue names, or the built-in one (part of VEC-WAK-02, VEC-WAK-03). The error
// says which files could not be used; there is a model all the same. The original's catalogue names models of a vendor's detector, which is not ours.
func Load(root fs.FS, locale string) (*Model, error) {
	m, problem := read(root, OwnFile)
	if m != nil {
		return m, nil
	}
	b, err := fs.ReadFile(root, ResourceDir+CatalogueFile)
	if err == nil {
		var c Catalogue
		if c, err = ParseCatalogue(b); err == nil {
			if chosen, ok := c.Choose(HeyVectorTHF, locale, ""); ok && chosen.Net != "" {
				m, err = read(root, path.Join(path.Dir(ResourceDir+CatalogueFile), chosen.Net))
			}
		}
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if errors.Is(problem, fs.ErrNotExist) {
		problem = nil // it has no model of its own
	}
	if m == nil {
		m = Default()
	}
	return m, errors.Join(problem, err)
}

func read(root fs.FS, name string) (*Model, error) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	m, err := ParseModel(b)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return m, nil
}
