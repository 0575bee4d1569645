package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// kinds of texts: what a page shows, an e-mail, a program's help and answers, a reason why something was not done, a line of a log, a page of docs/.
var kinds = []string{"page", "letter", "help", "error", "log", "doc"}

// text is a text and its place.
type text struct {
	file string
	line int
	text string
}

// add takes a text that was found.
type add func(kind string, line int, words string)

// readers find the texts of a file, by its extension.
var readers = map[string]func(name, src string, add add) error{".html": readPage, ".md": readDoc, ".txt": readLetter, ".go": readGo}

var (
	words = regexp.MustCompile(`\pL{2,}[^\pL]* [^\pL]*\pL{2,}`)
	code  = regexp.MustCompile(`^(?:(?:SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|DROP|FROM|WHERE|AND|ORDER|LIMIT|GET|POST|PUT|PATCH) |kennelctl )`)
)

// spoken reports whether s is a text for people: at least two words, and no statement of SQL, route or command.
func spoken(s string) bool { return words.MatchString(s) && !code.MatchString(s) }

var (
	comment   = regexp.MustCompile(`(?s)\{\{/\*.*?\*/\}\}|<!--.*?-->|<script.*?</script>|<style.*?</style>`)
	action    = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	attribute = regexp.MustCompile(`(?:aria-label|title|placeholder|alt)="([^"]*)"`)
	inText    = regexp.MustCompile(`</?(?:a|abbr|b|code|em|i|kbd|small|span|strong|time|var)(?:\s[^>]*)?>`)
	tag       = regexp.MustCompile(`(?s)<[^>]*>`)
)

// readPage finds what a template shows. An action of it becomes "…".
func readPage(_, src string, add add) error {
	blank := func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) }
	src = comment.ReplaceAllStringFunc(src, blank)
	src = action.ReplaceAllStringFunc(src, func(s string) string { return "…" + blank(s) })
	for i, line := range strings.Split(src, "\n") {
		for _, a := range attribute.FindAllStringSubmatch(line, -1) {
			add("page", i+1, a[1])
		}
		for _, block := range tag.Split(inText.ReplaceAllString(line, ""), -1) {
			add("page", i+1, strings.Trim(block, "… "))
		}
	}
	return nil
}

// sentence is the end of one.
var sentence = regexp.MustCompile(`[.:?!]\s+`)

// readDoc finds the sentences of a page of Markdown that is not made of other files, without its blocks of code.
func readDoc(_, src string, add add) error {
	if strings.HasPrefix(src, "<!-- Made by ") {
		return nil
	}
	fenced := false
	for i, line := range strings.Split(src, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if fenced || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "|") {
			continue
		}
		for from := 0; from < len(line); {
			to := len(line)
			if at := sentence.FindStringIndex(line[from:]); at != nil {
				to = from + at[1]
			}
			add("doc", i+1, line[from:to])
			from = to
		}
	}
	return nil
}

// readLetter finds the texts of e-mails.
func readLetter(name, src string, add add) error {
	if path.Base(path.Dir(name)) != "letters" {
		return nil
	}
	for i, line := range strings.Split(src, "\n") {
		add("letter", i+1, line)
	}
	return nil
}

var (
	logCall   = regexp.MustCompile(`^((Debug|Info|Warn|Error)(Context)?|Log|LogAttrs)$`)
	errorCall = regexp.MustCompile(`^(errs\.\w+|errors\.New|fmt\.Errorf|cli\.Usage\w*)$`)
	helpField = regexp.MustCompile(`^(Summary|Doc|Short|Long|Says|Asks|Table|Use|Help|Usage|Title|Description)$`)
)

// ofPeople are folders whose other strings are shown to people, by the kind of text that they are.
var ofPeople = []struct{ folder, kind string }{
	{"cloud/web/", "page"}, {"cloud/fleet/registry/", "page"}, {"cloud/fleet/registry/registry", ""},
	{"cloud/ctl", "help"}, {"edge/app/", "help"}, {"infra/cli", "help"}, {"infra/onebox", "help"}, {"cloud/app", "help"},
}

// readGo finds the strings of hand-written Go that people see: reasons of errors, messages of logs, help of commands, and all strings of the
// folders that make pages and answers.
func readGo(name, src string, add add) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil || ast.IsGenerated(f) {
		return err
	}
	other := ""
	for _, p := range ofPeople {
		if strings.HasPrefix(name, p.folder) {
			other = p.kind
		}
	}
	kindOf := map[ast.Node]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.CallExpr:
			if kind := callKind(n); kind != "" {
				for _, a := range n.Args {
					ast.Inspect(a, func(in ast.Node) bool {
						if _, call := in.(*ast.CallExpr); call {
							return false
						}
						if lit, ok := in.(*ast.BasicLit); ok {
							kindOf[lit] = kind
						}
						return true
					})
				}
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && helpField.MatchString(key.Name) {
				kindOf[n.Value] = "help"
			}
		case *ast.Field:
			if n.Tag != nil {
				kindOf[n.Tag] = "tag"
			}
		case *ast.BasicLit:
			kind, known := kindOf[n]
			if !known {
				kind = other
			}
			if n.Kind == token.STRING && kind != "" && kind != "tag" {
				if s, err := strconv.Unquote(n.Value); err == nil {
					add(kind, fset.Position(n.Pos()).Line, s)
				}
			}
		}
		return true
	})
	return nil
}

// callKind returns the kind of the texts that a call takes; "": none of its own.
func callKind(call *ast.CallExpr) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if pkg, ok := sel.X.(*ast.Ident); ok && errorCall.MatchString(pkg.Name+"."+sel.Sel.Name) {
		return "error"
	}
	if logCall.MatchString(sel.Sel.Name) {
		return "log"
	}
	return ""
}
