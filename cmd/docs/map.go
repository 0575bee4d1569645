package main

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// The generated part of docs/map.md is between these lines.
const (
	mapBegin = "<!-- This table is made of the packages' comments: make generate. -->\n"
	mapEnd   = "<!-- The end of that table. -->\n"
)

// mapPage returns docs/map.md with the folders of cloud/ and the slices of its families, each with the beginning of its package's comment.
func mapPage(root string) (string, error) {
	const name = "docs/map.md"
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return "", err
	}
	before, rest, ok := bytes.Cut(b, []byte(mapBegin))
	_, after, ended := bytes.Cut(rest, []byte(mapEnd))
	if !ok || !ended {
		return "", fmt.Errorf("%s: want the lines %q and %q", name, mapBegin, mapEnd)
	}
	var table strings.Builder
	table.WriteString("\n| folder | what is in it |\n|---|---|\n")
	folders, err := subfolders(root, "cloud")
	if err != nil {
		return "", err
	}
	for _, folder := range folders {
		about, family, err := packageComment(root, folder)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&table, "| [%s](../%s) | %s |\n", path.Base(folder), folder, about)
		if !family {
			continue
		}
		slices, err := subfolders(root, folder)
		if err != nil {
			return "", err
		}
		for _, slice := range slices {
			if about, _, err = packageComment(root, slice); err != nil {
				return "", err
			}
			fmt.Fprintf(&table, "| [%s/%s](../%s) | %s |\n", path.Base(folder), path.Base(slice), slice, about)
		}
	}
	return string(before) + mapBegin + table.String() + "\n" + mapEnd + string(after), nil
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
