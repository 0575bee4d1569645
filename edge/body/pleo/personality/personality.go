// Package personality is the application that a Pleo has in its dataflash and runs without a card: the button on its belly changes the volume, and with a low battery
// it lies down and switches itself off (PLEO-APP-11). Its scripts are our own; it is built with the development kit like any other.
package personality

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kennel/edge/body/pleo/kit"
	"kennel/edge/body/pleo/lifeos"
)

// File is its name in the dataflash.
const File = "pleo.urf"

//go:embed app
var files embed.FS

// Build returns the application for firmware of a profile.
func Build(profile lifeos.Profile) ([]byte, error) {
	dir, err := os.MkdirTemp("", "pleo-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // what is left says nothing
	dir = filepath.Join(dir, "pleo")
	if _, err := kit.Init(dir, profile); err != nil { // its beep
		return nil, err
	}
	app, err := fs.Sub(files, "app")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(app, "*")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(app, name)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return nil, err
		}
	}
	r, err := kit.Build(dir, kit.Options{Profile: &profile})
	if err != nil {
		return nil, fmt.Errorf("personality: %w", err)
	}
	if len(r.Warnings) > 0 {
		return nil, fmt.Errorf("personality: %s", r.Warnings[0])
	}
	return os.ReadFile(r.File)
}
