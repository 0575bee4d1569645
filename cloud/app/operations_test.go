package app

import (
	"bytes"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kennel/cloud/access"
	"kennel/cloud/openapi"
	"kennel/cloud/openapi/describe"
	"kennel/cloud/openapi/operations"
	"kennel/cloud/page"
	"kennel/cloud/web/console"
)

// TestCurrent: every route of the table is described, nothing else is, and what is served was made of the code as it is.
func TestDescriptionIsCurrent(t *testing.T) {
	var described []string
	for _, op := range operations.All(Operations()) {
		described = append(described, op.Route)
		if op.Summary == "" || op.Tag == "" {
			t.Errorf("%s has no summary or no tag", op.Route)
		}
	}
	slices.Sort(described)
	var routes []string
	for name, rule := range access.HTTP {
		if _, path, _ := strings.Cut(name, " "); strings.HasPrefix(path, "/v1/") && !rule.Page {
			routes = append(routes, name)
		}
	}
	for _, r := range routes {
		if !slices.Contains(described, r) {
			t.Errorf("%s is not described", r)
		}
	}
	for _, r := range described {
		if !slices.Contains(routes, r) {
			t.Errorf("%s is described and does not exist", r)
		}
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	b, err := describe.Build(root, Operations())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, openapi.JSON) {
		t.Error("cloud/openapi/openapi.json is old; run make generate")
	}
	if err := access.HTTP.CheckDeclared(Operations()); err != nil {
		t.Error(err)
	}
}

// TestPagesHaveRules: a page that a slice brings without a rule of the access table keeps kenneld from starting.
func TestPagesHaveRules(t *testing.T) {
	err := mountConsole(http.NewServeMux(), console.Config{More: []page.Extra{{Address: "/things/{thing}/motions"}, {Address: "/things/{thing}/lost"}}})
	if err == nil || !strings.Contains(err.Error(), "/things/{thing}/lost") {
		t.Errorf("%v", err)
	}
}
