// Package lifeostest compiles scripts for tests of a Pleo.
package lifeostest

import (
	"io/fs"
	"strings"
	"testing"

	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/pawn/compiler"
)

// Compile returns the AMX file of a script that is called script.p, with debug information, compiled with LifeOS's include files.
func Compile(t testing.TB, src string) []byte {
	t.Helper()
	return CompileFor(t, src, 0)
}

// CompileFor is Compile for a version of the file; 0: the newest.
func CompileFor(t testing.TB, src string, version uint8) []byte {
	t.Helper()
	includes := lifeos.Includes()
	r := compiler.Compile("script.p", []byte(src), compiler.Options{Version: version, Optimise: 2, Debug: 2, StackHeap: 128, Prefix: "default.inc", Include: []string{"."}, Open: func(name string) ([]byte, error) {
		if s, ok := includes[strings.TrimSuffix(name, ".inc")]; ok {
			return []byte(s), nil
		}
		return nil, fs.ErrNotExist
	}})
	if r.Program == nil {
		t.Fatal(r.Messages)
	}
	file, err := r.Program.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
