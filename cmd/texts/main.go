// Command texts prints every text that people see, with its place: for a writer who reads them all, or a sample of them. make texts runs it.
package main

import (
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
)

func main() {
	root := flag.String("root", ".", "`folder` of the module")
	kind := flag.String("kind", "", "print only texts of this `kind`: "+strings.Join(kinds, ", "))
	sample := flag.Int("sample", 0, "print only this `number` of texts of each kind, drawn at random")
	seed := flag.Uint64("seed", 1, "the `number` that decides which texts -sample draws")
	flag.Parse()
	if err := run(os.Stdout, os.DirFS(*root), *kind, *sample, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "texts:", err)
		os.Exit(1)
	}
}

// run prints the texts of tree, one a line: place, kind, text.
func run(w io.Writer, tree fs.FS, kind string, sample int, seed uint64) error {
	if kind != "" && !slices.Contains(kinds, kind) {
		return fmt.Errorf("kind %q: want one of %s", kind, strings.Join(kinds, ", "))
	}
	all, err := texts(tree)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		if kind != "" && kind != k {
			continue
		}
		of := all[k]
		if sample > 0 && sample < len(of) {
			draw := rand.New(rand.NewPCG(seed, seed))
			draw.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
			of = of[:sample]
		}
		for _, t := range of {
			if _, err := fmt.Fprintf(w, "%s:%d\t%s\t%s\n", t.file, t.line, k, t.text); err != nil {
				return err
			}
		}
	}
	return nil
}

// texts returns the texts of tree by their kind, in the order of their places.
func texts(tree fs.FS) (map[string][]text, error) {
	all := map[string][]text{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); name != "." && (strings.HasPrefix(base, ".") || slices.Contains([]string{"node_modules", "testdata", "bin", "dist", "adr"}, base)) {
				return fs.SkipDir
			}
			return nil
		}
		read := readers[path.Ext(name)]
		if read == nil || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "infra/docs/") {
			return nil
		}
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return read(name, string(src), func(kind string, line int, words string) {
			if words = strings.Join(strings.Fields(words), " "); spoken(words) {
				all[kind] = append(all[kind], text{name, line, words})
			}
		})
	})
	return all, err
}
