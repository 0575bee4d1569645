package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/core/corelink"
)

// TestWrongFolder: a folder in which no robotd runs is named at once (30.5). What the program does with a robot is TestSquare in edge/app/robotapp.
func TestWrongFolder(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for dir, want := range map[string]string{"": "-root FOLDER", root: filepath.Join(root, corelink.SocketPath)} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		began := time.Now()
		if err := run(ctx, dir, 0.1); err == nil || !strings.Contains(err.Error(), want) || time.Since(began) > 15*time.Second {
			t.Errorf("%q: %v after %v, want %s named at once", dir, err, time.Since(began), want)
		}
		cancel()
	}
}
