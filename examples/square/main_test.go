package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/corelink"
)

// TestWrongFolder: a folder in which no robotd runs is named. What the program does with a robot is TestSquare in edge/app/robotapp.
func TestWrongFolder(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for dir, want := range map[string]string{"": "-root FOLDER", root: filepath.Join(root, corelink.SocketPath)} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := run(ctx, dir, 0.1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s named", dir, err, want)
		}
	}
}
