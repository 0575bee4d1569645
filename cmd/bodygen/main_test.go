package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLists: the lists are as make generate makes them.
func TestLists(t *testing.T) {
	for name, want := range lists("../..") {
		if got, err := os.ReadFile(filepath.Join("../..", name)); err != nil || string(got) != want {
			t.Errorf("%s is not up to date (%v); make generate writes it", name, err)
		}
	}
}
