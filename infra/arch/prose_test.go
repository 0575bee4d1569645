package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tic is a turn of phrase that the prose of this tree avoids, and a planted text that must be refused.
type tic struct {
	re      *regexp.Regexp
	planted string
}

// tics hold for comments, log messages, errors, summaries and help of operations and commands, page templates and the pages of docs/ and of the top folder.
var tics = []tic{
	{regexp.MustCompile(`(?i)\bno more\b`), "The robot asks no more."},
	{regexp.MustCompile(`(?i)\banew\b`), "The service starts anew."},
	{regexp.MustCompile(`(?i)\b(some|no)body\b`), "Nobody reads it until somebody asks."},
	{regexp.MustCompile(`(?i)\bwhoever\b`), "whoever closes it last"},
	{regexp.MustCompile(`(?i)\bgo(es)? on\b`), "registry work goes on"},
	{regexp.MustCompile(`(?i)\b(comes?|came) to rest\b`), "Everything comes to rest."},
	{regexp.MustCompile(`(?i)\bis what\b`), "The version is what the robot reports."},
	{regexp.MustCompile(`(?i)\bof (no )?use here\b`), "message of no use here"},
	{regexp.MustCompile(`(?i)\bstands\b`), "What it shows stands in the table."},
	{regexp.MustCompile(`(?i)\bcomes to\b`), "The recording comes to its limit."},
	{regexp.MustCompile(`(?i)\bthat of\b`), "Its name is that of the owner."},
	{regexp.MustCompile(`(?i)\bas of\b`), "as of version 4"},
	{regexp.MustCompile(`(?i)\blies in\b`), "The file lies in the run folder."},
	{regexp.MustCompile(`(?i)\bhas \w+ (ask|begin|do|go|hear|make|run|say|send|show|take|wait)\b`), "OnTime has f hear the clock."},
}

// headless is a comment whose first sentence has no subject that the reader can name.
var headless = tic{regexp.MustCompile(`^(What|Who|Whom|That which)\b`), "What the robot says of itself."}

// findTics returns the turns of phrase of text that the rules refuse, whatever its line breaks.
func findTics(text string, rules ...tic) (found []string) {
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "no more than", "")
	for _, r := range rules {
		found = append(found, r.re.FindAllString(text, -1)...)
	}
	return found
}

var slogCall = regexp.MustCompile(`^((Debug|Info|Warn|Error)(Context)?|Log|LogAttrs)$`)

// logMessage returns the constant message of a call of slog; "" for every other call.
func logMessage(call *ast.CallExpr) string {
	if sel, ok := call.Fun.(*ast.SelectorExpr); !ok || !slogCall.MatchString(sel.Sel.Name) {
		return ""
	}
	for _, arg := range call.Args {
		if lit, ok := arg.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			return lit.Value
		}
	}
	return ""
}

var (
	errorCall   = regexp.MustCompile(`^(errors\.New|fmt\.Errorf|errs\.(New|Coded|RetryLater))$`)
	helpType    = regexp.MustCompile(`^(op\.(Command|Spec)|cobra\.Command)$`)
	operation   = regexp.MustCompile(`^"(GET|POST|PUT|PATCH|DELETE) /`)
	operations  = regexp.MustCompile(`^op\.New$`)
	declaration = regexp.MustCompile("^`.*about:\"")
)

// words returns the string literals that people read as an error, as the summary of an operation or as help: those in the arguments of an error's constructor
// and of a call that declares an operation, in an op.Spec, op.Command or cobra.Command, and in a field's tag with about.
func words(f *ast.File) (found []*ast.BasicLit) {
	seen := map[*ast.BasicLit]bool{}
	within := func(n ast.Node) {
		ast.Inspect(n, func(node ast.Node) bool {
			if lit, ok := node.(*ast.BasicLit); ok && lit.Kind == token.STRING && !seen[lit] {
				seen[lit] = true
				found = append(found, lit)
			}
			return true
		})
	}
	ast.Inspect(f, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.CallExpr:
			fun := types.ExprString(n.Fun)
			declares := operations.MatchString(fun)
			if len(n.Args) > 0 {
				lit, ok := n.Args[0].(*ast.BasicLit)
				declares = declares || ok && operation.MatchString(lit.Value)
			}
			if declares || errorCall.MatchString(fun) {
				for _, arg := range n.Args {
					within(arg)
				}
			}
		case *ast.CompositeLit:
			if n.Type != nil && helpType.MatchString(types.ExprString(n.Type)) {
				within(n)
			}
		case *ast.Field:
			if n.Tag != nil && declaration.MatchString(n.Tag.Value) {
				within(n.Tag)
			}
		}
		return true
	})
	return found
}

// proseOf returns the tics of one file, each with its line: those in comments, log messages, errors, summaries and help of hand-written Go, and anywhere in a
// template.
func proseOf(name string, src []byte) (found []string, err error) {
	add := func(line int, text string, rules ...tic) {
		for _, what := range findTics(text, rules...) {
			found = append(found, fmt.Sprintf("%s:%d: %q", name, line, what))
		}
	}
	if ext := path.Ext(name); ext == ".html" || ext == ".md" {
		if bytes.HasPrefix(src, []byte("<!-- Made by ")) {
			return nil, nil // of texts that are elsewhere
		}
		for i, line := range strings.Split(string(src), "\n") {
			add(i+1, line, tics...)
		}
		return found, nil
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(f) {
		return nil, err
	}
	for _, c := range f.Comments {
		add(fset.Position(c.Pos()).Line, c.Text(), slices.Concat(tics, []tic{headless})...)
	}
	ast.Inspect(f, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok {
			add(fset.Position(call.Pos()).Line, logMessage(call), tics...)
		}
		return true
	})
	for _, lit := range words(f) {
		add(fset.Position(lit.Pos()).Line, lit.Value, tics...)
	}
	return found, nil
}

// TestProse keeps the prose plain. testdata/prose.txt says how many tics each folder still has: a new one is refused, and after a removed one the
// number goes down, so that it cannot come back.
func TestProse(t *testing.T) {
	granted := map[string]int{}
	table, err := os.ReadFile("testdata/prose.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		var folder string
		var n int
		if _, err := fmt.Sscanf(line, "%s %d", &folder, &n); err != nil {
			t.Fatalf("prose.txt: %q: %v", line, err)
		}
		granted[folder] = n
	}
	found := map[string][]string{}
	tree := os.DirFS(filepath.Join("..", ".."))
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		ext, dir := path.Ext(name), path.Dir(name)
		if d.IsDir() || ext != ".go" && ext != ".html" && (ext != ".md" || dir != "." && dir != "docs") {
			return nil
		}
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		all, err := proseOf(name, src)
		found[path.Dir(name)] = append(found[path.Dir(name)], all...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder, all := range found {
		if want := granted[folder]; len(all) > want {
			t.Errorf("%s has %d tics, prose.txt allows %d; write them in plain words:\n%s", folder, len(all), want, strings.Join(all, "\n"))
		} else if len(all) < want {
			t.Errorf("%s has only %d tics left: lower its %d in prose.txt", folder, len(all), want)
		}
		delete(granted, folder)
	}
	for folder := range granted {
		t.Errorf("prose.txt names %s, which has no Go file and no template", folder)
	}
}

// TestProseRefuses plants each tic in each place: a rule that finds nothing would pass TestProse.
func TestProseRefuses(t *testing.T) {
	for _, r := range append(tics, headless) {
		for _, tc := range []struct {
			place, name, src string
			found            bool
		}{
			{"doc comment", "a.go", "package a\n\n// " + r.planted + "\nvar x int\n", true},
			{"wrapped comment", "a.go", "package a\n\n/*\n" + strings.ReplaceAll(r.planted, " ", "\n") + "\n*/\nvar x int\n", true},
			{"generated", "a.go", "// Code generated by x. DO NOT EDIT.\n\npackage a\n\n// " + r.planted + "\nvar x int\n", false},
			{"log message", "a.go", "package a\n\nfunc f() { log.WarnContext(ctx, " + strconv.Quote(r.planted) + ") }\n", r != headless},
			{"error", "a.go", "package a\n\nfunc f() { return errs.Coded(errs.Invalid, code, " + strconv.Quote(r.planted) + ") }\n", r != headless},
			{"plain error", "a.go", "package a\n\nvar err = errors.New(" + strconv.Quote(r.planted) + ")\n", r != headless},
			{"wrapped error", "a.go", "package a\n\nfunc f() { return fmt.Errorf(" + strconv.Quote(r.planted+": %w") + ", err) }\n", r != headless},
			{"error of two parts", "a.go", "package a\n\nfunc f() { return errs.RetryLater(1, " + strconv.Quote(r.planted) + " + name, nil) }\n", r != headless},
			{"summary", "a.go", "package a\n\nvar x = op.Spec{Summary: " + strconv.Quote(r.planted) + "}\n", r != headless},
			{"summary by a call", "a.go", "package a\n\nvar x = staff(\"GET /v1/x\", " + strconv.Quote(r.planted) + ")\n", r != headless},
			{"help of an operation", "a.go", "package a\n\nvar x = op.New(y.With(op.Command{Long: " + strconv.Quote(r.planted) + "}), do)\n", r != headless},
			{"help of a command", "a.go", "package a\n\nvar x = &cobra.Command{Short: " + strconv.Quote(r.planted) + "}\n", r != headless},
			{"help of a field", "a.go", "package a\n\ntype x struct {\n\ty int `json:\"y\" about:\"" + r.planted + "\"`\n}\n", r != headless},
			{"other string", "a.go", "package a\n\nfunc f() { say(" + strconv.Quote(r.planted) + ") }\n", false},
			{"template", "a.html", "<p>" + r.planted + "</p>", r != headless},
			{"page", "a.md", r.planted + "\n", r != headless},
		} {
			all, err := proseOf(tc.name, []byte(tc.src))
			if got := len(all) > 0; got != tc.found || err != nil {
				t.Errorf("%s, %q: found %q, %v; want found %v", tc.place, r.planted, all, err, tc.found)
			}
		}
	}
	if got := findTics("A page shows no more than 50 rows.", tics...); got != nil {
		t.Errorf("plain words refused: %q", got)
	}
}
