package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// The generated parts of docs/map.md are between these lines.
const (
	mapBegin = "<!-- This table is made of the packages' comments: make generate. -->\n"
	mapEnd   = "<!-- End of the generated table. -->\n"
)

// mapPage returns docs/map.md with the folders of cloud/ and the slices of its families, and with those of edge/agent, each with the beginning of its
// package's comment.
func mapPage(root string) (string, error) {
	const name = "docs/map.md"
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return "", err
	}
	var page strings.Builder
	rest := string(b)
	for _, top := range []string{"cloud", "edge/agent"} {
		before, after, ok := strings.Cut(rest, mapBegin)
		if _, rest, _ = strings.Cut(after, mapEnd); !ok || !strings.Contains(after, mapEnd) {
			return "", fmt.Errorf("%s: want the lines %q and %q around the table of %s", name, mapBegin, mapEnd, top)
		}
		page.WriteString(before + mapBegin + "\n| folder | content |\n|---|---|\n")
		if err := mapRows(&page, root, top, ""); err != nil {
			return "", err
		}
		page.WriteString("\n" + mapEnd)
	}
	return page.String() + rest, nil
}

// mapRows writes a row for each folder directly below top, and for each below those that are families. Their names begin with in.
func mapRows(table *strings.Builder, root, top, in string) error {
	folders, err := subfolders(root, top)
	for _, folder := range folders {
		about, family, err := packageComment(root, folder)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "| [%s%s](../%s) | %s |\n", in, path.Base(folder), folder, about)
		if family {
			err = mapRows(table, root, folder, path.Base(folder)+"/")
		}
		if err != nil {
			return err
		}
	}
	return err
}

// subfolders returns the folders directly below one, by name.
func subfolders(root, folder string) (out []string, err error) {
	entries, err := os.ReadDir(filepath.Join(root, folder))
	for _, e := range entries {
		if e.IsDir() && e.Name() != "testdata" {
			out = append(out, path.Join(folder, e.Name()))
		}
	}
	return out, err
}

// clause ends what the map says of a package.
var clause = regexp.MustCompile(`[:;.]( |$)| \(`)

// packageComment returns the first clause of a package's comment without its first words. family: the folder has nothing but that comment.
func packageComment(root, folder string) (about string, family bool, err error) {
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		return "", false, err
	}
	begin := "Package " + path.Base(folder) + " "
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return "", false, err
		}
		if text, ok := strings.CutPrefix(strings.ReplaceAll(f.Doc.Text(), "\n", " "), begin); ok {
			for _, verb := range []string{"is ", "are "} {
				text = strings.TrimPrefix(text, verb)
			}
			if end := clause.FindStringIndex(text); end != nil {
				text = text[:end[0]]
			}
			return strings.TrimSpace(text), len(files) == 1 && filepath.Base(file) == "doc.go", nil
		}
	}
	return "", false, fmt.Errorf("%s: no comment begins with %q", folder, begin)
}
