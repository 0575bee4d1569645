package motions

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/mtn"
)

// library has our own motions in text form, a folder for each model.
//
//go:embed library
var library embed.FS

// ErrUnknown: the library has no such motion.
var ErrUnknown = errors.New("unknown motion")

// Library returns the names of our own motions, which every model has, in alphabetic order.
func Library() (names []string) {
	entries, _ := library.ReadDir("library/" + aibo.ERS7.String()) // embedded
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".txt"))
	}
	return names
}

// Load returns one of our own motions as a model does it; ErrUnknown.
func Load(m aibo.Model, name string) (*mtn.File, error) {
	file := "library/" + m.String() + "/" + name + ".txt"
	if !fs.ValidPath(file) {
		return nil, fmt.Errorf("%w %.40q: expected one of %s", ErrUnknown, name, strings.Join(Library(), ", "))
	}
	text, err := library.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w %.40q: expected one of %s", ErrUnknown, name, strings.Join(Library(), ", "))
	}
	return mtn.Build(text)
}
