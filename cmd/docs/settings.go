package main

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/cloud/app"
)

// configurePage returns docs/configure.md.
func configurePage(root string) (string, error) {
	s := source{root: root, folders: map[string][]*ast.File{}}
	var b strings.Builder
	b.WriteString(`<!-- Made by cmd/docs from the structs that hold the settings; make generate writes it. -->
# Settings

Flags of the programs are in [Commands and flags](commands.md).

## Settings of kenneld serve

` + "`kenneld serve -config FILE` reads a YAML file; `-check-config` checks the file and exits. A dot separates the levels of the file: `events.keep_days` is" + `

    events:
      keep_days: 30

An environment variable overrides the file: ` + "`" + app.EnvPrefix + "EVENTS_KEEP_DAYS`" + ` sets ` + "`events.keep_days`" + `. Durations look like 5s or 2h. Secrets are in files that a setting names. An unknown setting is an error. ` +
		"`kenneld onebox` sets all of this itself.\n\n")
	b.WriteString("| setting | type | default | meaning |\n|---|---|---|---|\n")
	t := reflect.TypeFor[app.Config]()
	st, err := s.structOf(t)
	if err != nil {
		return "", err
	}
	missing := s.rows(&b, "", st, reflect.ValueOf(app.Defaults()))
	robot, err := s.robotSettings()
	b.WriteString(robot)
	return b.String(), errors.Join(missing, err)
}

// source reads declarations of the module's packages.
type source struct {
	root    string
	folders map[string][]*ast.File
}

// files returns the parsed files of a folder, without tests.
func (s source) files(folder string) ([]*ast.File, error) {
	if known, ok := s.folders[folder]; ok {
		return known, nil
	}
	names, err := filepath.Glob(filepath.Join(s.root, folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var out []*ast.File
	for _, n := range names {
		if strings.HasSuffix(n, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), n, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	s.folders[folder] = out
	return out, nil
}

// structOf returns the declaration of a named struct.
func (s source) structOf(t reflect.Type) (*ast.StructType, error) {
	files, err := s.files(strings.TrimPrefix(t.PkgPath(), "kennel/"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				if ts, ok := spec.(*ast.TypeSpec); ok && ts.Name.Name == t.Name() {
					if st, ok := ts.Type.(*ast.StructType); ok {
						return st, nil
					}
				}
			}
		}
	}
	return nil, fmt.Errorf("no struct %v", t)
}

// rows writes the settings of a struct, whose names begin with prefix.
func (s source) rows(b *strings.Builder, prefix string, st *ast.StructType, v reflect.Value) error {
	names := map[string]string{} // of settings, by the fields that comments call them
	var missing []error
	for _, f := range reflect.VisibleFields(v.Type()) {
		if tag := f.Tag.Get("koanf"); tag != "" && f.Type.Kind() != reflect.Struct {
			names[f.Name] = prefix + tag
		}
	}
	for _, field := range st.Fields.List {
		for _, name := range field.Names {
			f, _ := v.Type().FieldByName(name.Name)
			tag := f.Tag.Get("koanf")
			if tag == "" || tag == "-" {
				continue
			}
			comment := field.Doc.Text()
			if comment == "" {
				comment = field.Comment.Text()
			}
			if f.Type.Kind() == reflect.Struct && !reflect.PointerTo(f.Type).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
				inner, ok := field.Type.(*ast.StructType)
				if !ok {
					var err error
					if inner, err = s.structOf(f.Type); err != nil {
						return err
					}
				}
				if err := s.rows(b, prefix+tag+".", inner, v.FieldByIndex(f.Index)); err != nil {
					missing = append(missing, err)
				}
				continue
			}
			meaning := cmp.Or(meanings[prefix+tag], meanings["*."+tag], plain(name.Name, comment, names))
			if meaning == "" {
				missing = append(missing, fmt.Errorf("setting %s has no comment and no meaning in cmd/docs", prefix+tag))
			}
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", prefix+tag, kind(f.Type), standard(v.FieldByIndex(f.Index)), meaning)
		}
	}
	return errors.Join(missing...)
}

var (
	row   = regexp.MustCompile(` ?\((?:VEC|AMIGO|GOSTAI|peer facts)[^)]*\)`)
	ident = regexp.MustCompile(`\b[A-Z][A-Za-z0-9]+\b`)
)

// plain returns a field's comment on one line, without its name at the beginning and with the settings' names instead of other fields'.
func plain(field, comment string, names map[string]string) string {
	text := row.ReplaceAllString(strings.Join(strings.Fields(comment), " "), "")
	text = strings.TrimPrefix(strings.TrimPrefix(text, field+" is "), field+" are ")
	first := true
	text = ident.ReplaceAllStringFunc(text, func(w string) string {
		english := first && w == field && !strings.HasPrefix(text, w+" holds ") && !strings.HasPrefix(text, w+" keeps ")
		first = false
		if n, ok := names[w]; ok && !english {
			return "`" + n + "`"
		}
		return w
	})
	return strings.TrimSuffix(strings.NewReplacer("|", `\|`, `. "":`, ". Empty:", `"":`, "empty:").Replace(text), ".")
}

func kind(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case t.Kind() == reflect.Slice:
		return "list"
	case t.Kind() == reflect.Map:
		return "map"
	case t.Kind() == reflect.Bool:
		return "yes or no"
	case t.Kind() == reflect.String:
		return "text"
	case t.Name() == "Size":
		return "bytes"
	}
	return "number"
}

// standard returns a default value.
func standard(v reflect.Value) string {
	if v.IsZero() {
		switch v.Kind() {
		case reflect.Bool:
			return "`false`"
		case reflect.String, reflect.Slice, reflect.Map:
			return ""
		}
		return "`0`"
	}
	if v.Kind() == reflect.Slice {
		var parts []string
		for i := range v.Len() {
			parts = append(parts, fmt.Sprint(v.Index(i)))
		}
		return "`[" + strings.Join(parts, ", ") + "]`"
	}
	return "`" + fmt.Sprint(v) + "`"
}

// robotSetting is a key of one of a robot's .env files.
type robotSetting struct{ key, def, unit string }

// robotSettings returns the part about robots: the keys that the agent reads from .env files, found where it reads them.
func (s source) robotSettings() (string, error) {
	found := map[string]map[string]robotSetting{} // by file and key
	note := func(file string, r robotSetting) {
		if found[file] == nil {
			found[file] = map[string]robotSetting{}
		}
		found[file][r.key] = r
	}
	err := filepath.WalkDir(filepath.Join(s.root, "edge"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		folder, err := filepath.Rel(s.root, name)
		if err != nil {
			return err
		}
		files, err := s.files(filepath.ToSlash(folder))
		if err != nil {
			return err
		}
		for _, f := range files {
			for _, decl := range f.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
					if err := s.envOf(filepath.ToSlash(folder), f, fn, note); err != nil {
						return fmt.Errorf("%s: %w", name, err)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("\n## Settings of a robot\n\nA robot with Kennel's agent reads the original's files below its root, and a file of its own, `anki/etc/kennel-agent.env`. If a file or a key is missing, the default applies. " +
		"Lines are `KEY=VALUE`. An environment variable `KENNEL_KEY` overrides a key; `kenneld onebox -robot-env KEY=VALUE` sets variables of simulated robots.\n")
	var missing []error
	for _, file := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&b, "\n### %s\n\n| key | default | unit | meaning |\n|---|---|---|---|\n", file)
		for _, key := range slices.Sorted(maps.Keys(found[file])) {
			r := found[file][key]
			meaning := meanings[path.Base(file)+" "+key]
			if meaning == "" {
				missing = append(missing, fmt.Errorf("%s: %s has no meaning in cmd/docs", path.Base(file), key))
			}
			def := r.def
			if def != "" {
				def = "`" + def + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", key, def, r.unit, meaning)
		}
	}
	return b.String(), errors.Join(missing...)
}

// units are those of the methods of robotfs.Env that read a key.
var units = map[string]string{"Seconds": "s", "Millis": "ms", "Int": "number", "Bool": "0 or 1", "String": "text"}

// envOf finds the keys that a function reads of a robotfs.Env, and the file they are in.
func (s source) envOf(folder string, f *ast.File, fn *ast.FuncDecl, note func(file string, r robotSetting)) error {
	file, err := s.value(folder, f, &ast.SelectorExpr{X: ast.NewIdent("info"), Sel: ast.NewIdent("EnvFile")}) // of an Env that the caller loaded
	if err != nil {
		return err
	}
	var failed error
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || failed != nil {
			return failed == nil
		}
		switch types.ExprString(call.Fun) {
		case "robotfs.LoadEnv", "LoadEnv":
			file, failed = s.value(folder, f, call.Args[1])
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok {
			return true
		}
		unit, ok := units[sel.Sel.Name]
		if !ok || x.Name != "e" && x.Name != "env" || len(call.Args) < 2 {
			return true
		}
		lit, ok := call.Args[0].(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		key, _ := strconv.Unquote(lit.Value) // the parser took it
		def, err := s.value(folder, f, call.Args[1])
		if err != nil { // a default that is found out when the program runs, which the meaning tells
			def = constant.MakeString("")
		}
		note(constant.StringVal(file), robotSetting{key, show(def, unit), unit})
		return true
	})
	return failed
}

// show returns a default in its unit.
func show(v constant.Value, unit string) string {
	switch v.Kind() {
	case constant.Bool:
		return map[bool]string{true: "1", false: "0"}[constant.BoolVal(v)]
	case constant.Int:
		n, _ := constant.Int64Val(v)
		switch unit {
		case "s":
			return strconv.FormatFloat(time.Duration(n).Seconds(), 'g', -1, 64)
		case "ms":
			return strconv.FormatInt(time.Duration(n).Milliseconds(), 10)
		}
		return strconv.FormatInt(n, 10)
	}
	return constant.StringVal(v)
}

var times = map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}

// value returns a constant expression's value.
func (s source) value(folder string, f *ast.File, e ast.Expr) (constant.Value, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0), nil
	case *ast.BinaryExpr:
		x, err := s.value(folder, f, e.X)
		if err != nil {
			return nil, err
		}
		y, err := s.value(folder, f, e.Y)
		if err != nil {
			return nil, err
		}
		return constant.BinaryOp(x, e.Op, y), nil
	case *ast.Ident:
		if e.Name == "true" || e.Name == "false" {
			return constant.MakeBool(e.Name == "true"), nil
		}
		return s.constant(folder, e.Name)
	case *ast.SelectorExpr:
		pkg, ok := e.X.(*ast.Ident)
		if !ok {
			break
		}
		if d, ok := times[e.Sel.Name]; ok && pkg.Name == "time" {
			return constant.MakeInt64(int64(d)), nil
		}
		if pkg.Name == "info" {
			return s.constant("edge/agent/host", e.Sel.Name)
		}
		for _, i := range f.Imports {
			if p, _ := strconv.Unquote(i.Path.Value); path.Base(p) == pkg.Name {
				return s.constant(strings.TrimPrefix(p, "kennel/"), e.Sel.Name)
			}
		}
	}
	return nil, fmt.Errorf("%T is no constant that cmd/docs understands", e)
}

// constant returns the value of a package's constant.
func (s source) constant(folder, name string) (constant.Value, error) {
	files, err := s.files(folder)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				if i := slices.IndexFunc(v.Names, func(n *ast.Ident) bool { return n.Name == name }); i >= 0 && i < len(v.Values) {
					return s.value(folder, f, v.Values[i])
				}
			}
		}
	}
	return nil, fmt.Errorf("no constant %s in %s", name, folder)
}
