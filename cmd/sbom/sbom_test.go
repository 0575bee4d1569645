package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOf: the bill of materials of a program names what go list says that it is made of, and nothing that only other programs need.
func TestOf(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "robotd")
	if out, err := exec.Command("go", "build", "-o", program, "kennel/cmd/robotd").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}pkg:golang/{{.Path}}@{{.Version}}{{end}}{{end}}", "kennel/cmd/robotd")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(out))
	slices.Sort(want)
	want = slices.Compact(want)

	b, err := of("1.2.3", []string{program})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range b.Components {
		if c.Name != "std" {
			got = append(got, c.PURL)
		}
	}
	if !slices.Equal(got, want) || len(b.Components) != len(want)+1 {
		t.Errorf("modules %q, want %q and std", got, want)
	}
	text, err := json.Marshal(b)
	if err != nil || !strings.HasPrefix(string(text), `{"bomFormat":"CycloneDX","specVersion":"1.6","version":1,"metadata":{"component":{"type":"application","name":"kennel","version":"1.2.3"}}`) {
		t.Errorf("%.200s, %v", text, err)
	}
	if _, err := of("", []string{"sbom_test.go"}); err == nil {
		t.Error("a file that is no program has a bill of materials")
	}
}
