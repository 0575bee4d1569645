// Command sbom prints a bill of materials of compiled Go programs, in CycloneDX 1.6 JSON: the modules that the linker put into any of them.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// bom is the part of CycloneDX that says which modules are inside.
type bom struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl,omitempty"`
}

func main() {
	version := flag.String("version", "devel", "`version` of the programs")
	flag.Parse()
	b, err := of(*version, flag.Args())
	if err == nil {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(b)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// of returns the bill of materials of programs. A module that two of them have in two versions is there twice.
func of(version string, programs []string) (bom, error) {
	found := map[string]component{}
	for _, file := range programs {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return bom{}, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		add := func(name, version string) {
			purl := "pkg:golang/" + name + "@" + version
			found[purl] = component{"library", name, version, purl}
		}
		add("std", strings.TrimPrefix(info.GoVersion, "go"))
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			add(m.Path, m.Version)
		}
	}
	b := bom{"CycloneDX", "1.6", 1, metadata{component{"application", "kennel", version, ""}}, []component{}}
	for _, purl := range slices.Sorted(maps.Keys(found)) {
		b.Components = append(b.Components, found[purl])
	}
	return b, nil
}
