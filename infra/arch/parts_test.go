package arch

import (
	"go/ast"
	"go/parser"
	"go/types"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestParts: each package of the agent that makes a part of agentd is in the lists, and no package of the agent has most of them: only the lists know all.
func TestParts(t *testing.T) {
	const lists = "edge/app/agentapp"
	var parts []string
	imported := map[string][]string{} // by the folder that imports
	eachFile(t, parser.SkipObjectResolution, func(name string, f *ast.File) {
		folder := path.Dir(name)
		if strings.HasSuffix(name, "_test.go") || folder != lists && !strings.HasPrefix(folder, "edge/agent/") {
			return
		}
		for _, i := range f.Imports {
			p, _ := strconv.Unquote(i.Path.Value) // the parser took it
			imported[folder] = append(imported[folder], strings.TrimPrefix(p, module))
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Type.Results != nil && fn.Name.IsExported() && types.ExprString(fn.Type.Results.List[0].Type) == "host.Part" {
				parts = append(parts, folder)
			}
		}
	})
	parts = slices.Compact(slices.Sorted(slices.Values(parts)))
	for folder, all := range imported {
		n := 0
		for _, p := range parts {
			has := slices.Contains(all, p)
			if has {
				n++
			}
			if folder == lists && folder != p && !has {
				t.Errorf("%s is a part of agentd, and %s does not list it", p, lists)
			}
		}
		if folder != lists && n > len(parts)/2 {
			t.Errorf("%s imports %d of the %d parts; what it needs of them comes over the bus", folder, n, len(parts))
		}
	}
	if len(parts) < 8 {
		t.Errorf("parts %q: the test sees too little", parts)
	}
}
