// Package sourcetest finds texts in the source of packages, for tests that want each text of a kind to have its partner elsewhere, such as a translation.
package sourcetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Places are the places of a source where texts are looked for.
type Places struct {
	Calls map[string]int         // by the name of a function or method, which of its arguments
	Names func(name string) bool // of a field, variable or constant that is set
	Pairs bool                   // the second part of each composite literal of two without keys
}

// Texts calls keep with each string literal in the places of the files that match a pattern of filepath.Glob, but for those of tests. A pattern that no file matches fails t.
func (p Places) Texts(t testing.TB, pattern string, keep func(file, text string)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			for _, e := range p.of(n) {
				ast.Inspect(e, func(n ast.Node) bool {
					if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
						text, _ := strconv.Unquote(l.Value) // the parser has read it
						keep(file, text)
					}
					return true
				})
			}
			return true
		})
	}
}

// of returns the expressions in the places of one node.
func (p Places) of(n ast.Node) (out []ast.Expr) {
	set := func(to, value ast.Expr) {
		if name := nameOf(to); p.Names != nil && name != "" && p.Names(name) {
			out = append(out, value)
		}
	}
	switch n := n.(type) {
	case *ast.CallExpr:
		if i, ok := p.Calls[nameOf(n.Fun)]; ok && i < len(n.Args) {
			out = append(out, n.Args[i])
		}
	case *ast.CompositeLit:
		if p.Pairs && len(n.Elts) == 2 {
			out = append(out, n.Elts[1])
		}
	case *ast.KeyValueExpr:
		set(n.Key, n.Value)
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if len(n.Rhs) == len(n.Lhs) {
				set(to, n.Rhs[i])
			}
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if i < len(n.Values) {
				set(name, n.Values[i])
			}
		}
	}
	return out
}

// nameOf returns the last name of an identifier or a selector; "" of others.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
