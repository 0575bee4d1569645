package ctl

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kennel/cloud/openapi/client"
	"kennel/cloud/telemetry/uploads"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// addDeclared adds the commands that operations of the API declare (infra/op.Command) to those written here, in groups that are made where they are missing.
func (a *app) addDeclared(root *cobra.Command, all []client.Declared) {
	forms := map[string][]declared{} // by words: operations may share them, and take different arguments
	for _, c := range all {
		d := declared{Declared: c, fixed: map[string]string{}}
		d.parse()
		words := strings.Join(d.words, " ")
		forms[words] = append(forms[words], d)
	}
	for _, key := range slices.Sorted(maps.Keys(forms)) {
		words, parent := strings.Fields(key), root
		for i, w := range words[:len(words)-1] {
			within := parent.Commands()
			at := slices.IndexFunc(within, func(sub *cobra.Command) bool { return sub.Name() == w })
			if at < 0 {
				at = len(within)
				within = append(within, describe(w, "Commands for "+strings.Join(words[:i+1], " "), key))
				parent.AddCommand(within[at])
			}
			parent = within[at]
		}
		slices.SortStableFunc(forms[key], func(x, y declared) int { return cmp.Compare(len(x.args), len(y.args)) })
		parent.AddCommand(a.declared(forms[key]))
	}
}

// declared is a command that an operation declares, read.
type declared struct {
	client.Declared
	words  []string
	params []string // of the path, which arguments are for
	args   []argument
	flags  []option
	fixed  map[string]string // what a person does not choose, by field or part of the path
	pairs  bool              // KEY=VALUE for each field
}

type argument struct{ shown, name, field string }

// option is a field that a flag gives, or a file that the flag names.
type option struct {
	name, field, otherwise string
	file, needed           bool
	instead                bool // of the last argument
}

var (
	inPath = regexp.MustCompile(`\{([a-z]+)\}`)
	aFlag  = regexp.MustCompile(`^-([a-z-]+)(:[a-z_]+)?(@?)([!?]?)(=.*)?$`)
)

// parse reads how the command is used.
func (d *declared) parse() {
	var given []string
	for w := range strings.FieldsSeq(d.Use) {
		field, value, isFixed := strings.Cut(w, ":=")
		f := aFlag.FindStringSubmatch(w)
		switch {
		case isFixed:
			d.fixed[field] = value
		case f != nil:
			field = cmp.Or(strings.TrimPrefix(f[2], ":"), strings.ReplaceAll(f[1], "-", "_"))
			d.flags = append(d.flags, option{name: f[1], field: field, file: f[3] != "", needed: f[4] == "!", instead: f[4] == "?", otherwise: strings.TrimPrefix(f[5], "=")})
		case w == strings.ToLower(w):
			d.words = append(d.words, w)
		default:
			given = append(given, w)
		}
	}
	for _, p := range inPath.FindAllStringSubmatch(d.Path, -1) {
		if _, is := d.fixed[p[1]]; !is {
			d.params = append(d.params, p[1])
		}
	}
	if len(given) == 0 {
		for _, p := range d.params {
			given = append(given, strings.ToUpper(p))
		}
		d.pairs = len(d.flags) == 0 && len(d.fixed) == 0 && len(d.Fields) > 0
	}
	for i, w := range given {
		shown, field, other := strings.Cut(w, "=")
		name := strings.Trim(shown, "[].")
		switch {
		case i < len(d.params):
			field = d.params[i]
		case !other:
			field = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
		}
		d.args = append(d.args, argument{shown, name, field})
	}
}

// knows reports whether the operation has a field.
func (d *declared) knows(name string) bool {
	return slices.ContainsFunc(d.Fields, func(f client.Parameter) bool { return f.Name == name })
}

// field returns what is known of a field.
func (d *declared) field(name string) client.Parameter {
	if at := slices.IndexFunc(d.Fields, func(f client.Parameter) bool { return f.Name == name }); at >= 0 {
		return d.Fields[at]
	}
	return client.Parameter{Name: name, In: map[bool]string{true: "query", false: "body"}[d.Method == http.MethodGet || d.Method == http.MethodDelete]}
}

// examples are what an argument is in the example of a command that has none of its own.
var examples = map[string]string{"THING": "vic:00e20100", "SPECIES": "vic", "VERSION": "2.0.1.6076", "COHORT": "beta", "ROLLOUT": anID, "COMMAND": anID, "JOB": anID, "GROUP": anID, "TRANSFER": anID,
	"OPERATOR": "grace@example.org", "BATCH": "lot-2018", "ALERT": "12", "SILENCE": "3", "THRESHOLD": "1", "EXPERIMENT": "faster", "DOC": "vic.RobotSettings"}

// declared returns the command of the forms, of which the last takes the most arguments.
func (a *app) declared(forms []declared) *cobra.Command {
	d, least := forms[len(forms)-1], len(forms[0].args)
	use, example, long := d.words[len(d.words)-1], strings.Join(d.words, " "), d.Long
	for i, arg := range d.args {
		if i >= least {
			arg.shown = "[" + strings.Trim(arg.shown, "[]") + "]"
		}
		use += " " + arg.shown
		if !strings.HasPrefix(arg.shown, "[") {
			example += " " + cmp.Or(examples[arg.name], arg.name)
		}
	}
	for _, f := range d.flags {
		if f.needed {
			example += " -" + f.name + " " + strings.ToUpper(f.name)
		}
	}
	if d.pairs {
		use += " [KEY=VALUE...]"
		long = strings.TrimPrefix(long+"\n\n", "\n\n") + "KEY is one of:"
		for _, f := range d.Fields {
			long += strings.TrimRight("\n  "+f.Name+"  "+f.About, " ")
		}
	}
	if strings.Contains(use, "FILTER") {
		long = strings.TrimPrefix(long+"\n\n", "\n\n") + filterHelp
	}
	cmd := describe(use, d.Short, strings.Split(cmp.Or(d.Example, example), "\n")...)
	cmd.Long = long
	if strings.HasPrefix(d.Path, "/v1/my/robots/{thing}") {
		cmd.ValidArgsFunction = a.completeMine
	}
	if len(d.args) > 1 && d.args[1].name == "DOC" {
		cmd.ValidArgsFunction = a.completeDoc
	}
	a.runs(cmd, func(cmd *cobra.Command, args []string) error {
		form, err := formFor(cmd, forms, len(args))
		if err != nil {
			return err
		}
		return a.runDeclared(cmd, form, args)
	})
	last := ""
	if len(d.args) > 0 {
		last = strings.ToLower(d.args[len(d.args)-1].name)
	}
	for _, form := range forms {
		for _, f := range form.flags {
			of := form.field(f.field)
			if f.instead {
				of.About = cmp.Or(of.About, "clear it instead of giving a "+last)
			} else if !form.knows(f.field) {
				of.About = "all of them, instead of one " + last
			}
			if cmd.Flags().Lookup(f.name) == nil {
				a.addFlag(cmd, f, of, !form.knows(f.field))
			}
			if f.needed && len(forms) == 1 {
				_ = cmd.MarkFlagRequired(f.name)
			}
		}
	}
	if d.Asks != "" {
		cmd.Flags().Bool("yes", false, "do not ask for confirmation")
	}
	return cmd
}

// formFor returns the form that takes so many arguments, if the flags are its.
func formFor(cmd *cobra.Command, forms []declared, args int) (declared, error) {
	d := forms[len(forms)-1]
	if len(forms) == 1 {
		return d, nil
	}
	last := strings.ToLower(d.args[len(d.args)-1].name)
	d = forms[max(0, slices.IndexFunc(forms, func(d declared) bool { return len(d.args) >= args }))]
	var err error
	for _, f := range d.flags {
		if f.needed && !cmd.Flags().Changed(f.name) {
			err = cli.Usage("missing %s or -%s", strings.ToUpper(last), f.name)
		}
	}
	for _, other := range forms {
		for _, f := range other.flags {
			if cmd.Flags().Changed(f.name) && !slices.ContainsFunc(d.flags, func(own option) bool { return own.name == f.name }) {
				err = cli.Usage("want either %s or -%s", strings.ToUpper(last), f.name)
			}
		}
	}
	return d, err
}

// addFlag adds a flag that gives a field, or chooses a form.
func (a *app) addFlag(cmd *cobra.Command, f option, of client.Parameter, chooses bool) {
	flags, about := cmd.Flags(), lower(strings.TrimSuffix(of.About, "."))
	isBool := of.Kind == "boolean" || len(of.Choices) > 0 && of.Choices[0] == "true" || f.instead || chooses
	if len(of.Choices) > 0 && !isBool {
		about += ": " + strings.Join(of.Choices, ", ")
	}
	switch {
	case f.file:
		flags.String(f.name, "", strings.TrimPrefix(about+", read from `FILE`", ", "))
		_ = cmd.MarkFlagFilename(f.name)
	case isBool:
		flags.Bool(f.name, false, about)
	case of.Kind == "integer":
		n, _ := strconv.ParseInt(f.otherwise, 10, 64)
		flags.Int64(f.name, n, about)
	case of.Kind == "number":
		x, _ := strconv.ParseFloat(f.otherwise, 64)
		flags.Float64(f.name, x, about)
	case of.Kind == "array":
		flags.StringSlice(f.name, nil, about)
	default:
		flags.String(f.name, f.otherwise, about)
	}
	if made := flags.Lookup(f.name); !isBool && !f.file {
		made.Value = shown{made.Value, strings.ToUpper(strings.ReplaceAll(f.field, "_", "-"))}
		if made.DefValue == "[]" {
			made.DefValue = ""
		}
	}
	complete := map[string]completion{"species": completeSpecies, "kind": cobra.FixedCompletions(uploads.Kinds, cobra.ShellCompDirectiveNoFileComp), "filter": completeFilter, "kinds": cobra.FixedCompletions(strings.Split(kindWords(), ", "), cobra.ShellCompDirectiveNoFileComp),
		"thing": func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return a.completeThing(cmd, nil, typed)
		}}[f.field]
	if len(of.Choices) > 0 && !isBool {
		complete = cobra.FixedCompletions(of.Choices, cobra.ShellCompDirectiveNoFileComp)
	}
	if complete != nil {
		_ = cmd.RegisterFlagCompletionFunc(f.name, complete)
	}
}

// lower returns a sentence as the middle of one; names in capitals stay.
func lower(s string) string {
	if len(s) > 1 && s[1] >= 'a' && s[1] <= 'z' || len(s) > 1 && s[1] == ' ' {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

// shown is a flag's value which help calls by the name of its field.
type shown struct {
	pflag.Value
	name string
}

// Type implements pflag.Value.
func (s shown) Type() string { return s.name }

// runDeclared does the operation and prints what it answers.
func (a *app) runDeclared(cmd *cobra.Command, d declared, args []string) error {
	words := object{}
	for i, arg := range d.args {
		words[arg.name] = strings.Join(args[min(i, len(args)):], " ")
		if i < len(args) && !strings.HasSuffix(strings.TrimSuffix(arg.shown, "]"), "...") {
			words[arg.name] = args[i]
		}
	}
	path, query, body, err := a.request(cmd, d, args)
	if err != nil {
		return err
	}
	if yes, _ := cmd.Flags().GetBool("yes"); d.Asks != "" && !yes {
		if err := confirm(cmd, filled(d.Asks, words)); err != nil {
			return err
		}
	}
	raw, err := a.askDeclared(cmd, d.Method, path, query, body)
	if err != nil || raw == nil && d.Says == "" && !cli.JSON(cmd) {
		return err
	}
	if raw == nil {
		raw = json.RawMessage(cmp.Or(d.Done, `{"done":true}`))
	}
	if d.Says != "" {
		if got, is := readable(raw).(object); is {
			for k, v := range got {
				words[k] = v
			}
		}
		return cli.PrintLine(cmd, raw, func() string { return filled(d.Says, words) })
	}
	return cli.Print(cmd, raw, func(t *cli.Table) {
		if d.Table == "" {
			drawJSON(t, raw)
			return
		}
		whole := readable(raw)
		if o, is := whole.(object); is {
			for k, v := range words {
				o[k] = v
			}
		}
		for _, part := range answerTable(d.Table) {
			part.draw(t, whole)
		}
	})
}

// request returns the address, its query and the fields of the body, which are nil if there is none.
func (a *app) request(cmd *cobra.Command, d declared, args []string) (path string, query url.Values, body map[string]json.RawMessage, err error) {
	path, query = d.Path, url.Values{}
	if slices.ContainsFunc(d.Fields, func(f client.Parameter) bool { return f.In == "body" }) {
		body = map[string]json.RawMessage{}
	}
	put := func(name string, texts ...string) error {
		f := d.field(name)
		if at := "{" + name + "}"; strings.Contains(path, at) {
			path = strings.Replace(path, at, url.PathEscape(texts[0]), 1)
			return nil
		}
		if f.In == "query" {
			query[name] = texts
			return nil
		}
		v, err := encoded(f, texts)
		body[name] = v
		return err
	}
	for name, value := range d.fixed {
		err = cmp.Or(err, put(name, value))
	}
	for i, arg := range d.args[:min(len(args), len(d.args))] {
		value := args[i]
		if resolve := map[string]func(context.Context, string) (string, error){"OPERATOR": a.operatorID}[arg.name]; resolve != nil && err == nil {
			value, err = resolve(cmd.Context(), value)
		}
		if strings.HasSuffix(strings.TrimSuffix(arg.shown, "]"), "...") {
			err = cmp.Or(err, put(arg.field, args[i:]...))
			break
		}
		err = cmp.Or(err, put(arg.field, value))
	}
	given := len(d.flags) == 0 || len(d.fixed) > 0 || len(args) > len(d.params)
	for _, f := range d.flags {
		changed := cmd.Flags().Changed(f.name)
		if f.instead && changed == (len(args) >= len(d.args)) {
			return "", nil, nil, cli.Usage("want either %s or -%s", d.args[len(d.args)-1].name, f.name)
		}
		if !d.knows(f.field) {
			continue // that it is given says it
		}
		if given = given || changed; !changed && f.otherwise == "" {
			continue
		}
		values := []string{cmd.Flags().Lookup(f.name).Value.String()}
		if v, is := cmd.Flags().Lookup(f.name).Value.(shown); is {
			if several, is := v.Value.(pflag.SliceValue); is {
				values = several.GetSlice()
			}
		}
		if f.file && err == nil {
			values[0], err = fileText(values[0])
		}
		err = cmp.Or(err, put(f.field, values...))
	}
	if !given && d.Method == http.MethodPatch {
		var names []string
		for _, f := range d.flags {
			names = append(names, "-"+f.name)
		}
		return "", nil, nil, cli.Usage("nothing to change: want at least one of %s", strings.Join(names, ", "))
	}
	if d.pairs {
		set, wrong := parseSet(args[min(len(args), len(d.args)):])
		err = cmp.Or(err, wrong)
		for name, v := range set {
			if d.field(name).In == "query" {
				query.Set(name, unquoted(v))
			} else {
				body[name] = v
			}
		}
	}
	return path, query, body, err
}

// fileText returns what is in a file, without the ends of its last lines.
func fileText(name string) (string, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return "", errs.New(errs.Invalid, "%w", err)
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// encoded makes JSON of what a person gave for a field.
func encoded(f client.Parameter, texts []string) (json.RawMessage, error) {
	text := strings.Join(texts, " ")
	switch f.Kind {
	case "array":
		return json.Marshal(slices.Concat([]string{}, texts))
	case "boolean":
		v, known := map[string]json.RawMessage{"yes": json.RawMessage("true"), "true": json.RawMessage("true"), "no": json.RawMessage("false"), "false": json.RawMessage("false")}[text]
		if !known {
			return nil, cli.Usage("%.20q: want yes or no", text)
		}
		return v, nil
	case "integer", "number":
		if _, err := strconv.ParseFloat(text, 64); err != nil || !json.Valid([]byte(text)) {
			return nil, cli.Usage("%s %.40q: want a number", f.Name, text)
		}
		return json.RawMessage(text), nil
	case "date-time":
		if day, err := time.Parse(time.DateOnly, text); err == nil {
			text = day.Format(time.RFC3339)
		} else if _, err := time.Parse(time.RFC3339, text); err != nil {
			return nil, cli.Usage("%s %.40q: want a date such as 2100-01-01", f.Name, text)
		}
	case "":
		if json.Valid([]byte(text)) {
			return json.RawMessage(text), nil
		}
	}
	return json.Marshal(text)
}

// askDeclared returns the answer; nil: there is nothing in it.
func (a *app) askDeclared(cmd *cobra.Command, method, path string, query url.Values, fields map[string]json.RawMessage) (json.RawMessage, error) {
	to, err := a.connect(cmd.Context())
	if err != nil {
		return nil, err
	}
	head := http.Header{"Accept": {"application/json"}}
	var body io.Reader
	if fields != nil {
		b, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
		head.Set("Content-Type", "application/json")
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), to.patience)
	defer cancel()
	resp, err := to.send(ctx, method, path, body, head)
	if err != nil {
		return nil, err
	}
	raw, _, err := answered(cmd.OutOrStdout(), resp)
	return raw, err
}

// member is a field of an object, in the order of the answer.
type member struct {
	name  string
	value json.RawMessage
}

// members returns the fields of an object; nil for what is none.
func members(raw json.RawMessage) (out []member) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if begin, err := dec.Token(); err != nil || begin != json.Delim('{') {
		return nil
	}
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return out
		}
		out = append(out, member{name.(string), value})
	}
	return out
}

// drawJSON draws a list of objects as a table of the columns of its first, an object as names and values, and anything else as it is.
func drawJSON(t *cli.Table, raw json.RawMessage) {
	var list []json.RawMessage
	switch {
	case json.Unmarshal(raw, &list) == nil && list != nil:
		var names []string
		for i, item := range list {
			fields := map[string]json.RawMessage{}
			for _, m := range members(item) {
				fields[m.name] = m.value
				if i == 0 {
					names = append(names, m.name)
				}
			}
			if len(names) == 0 {
				t.Row(unquoted(item))
				continue
			}
			var head, row []any
			for _, name := range names {
				head, row = append(head, strings.ToUpper(name)), append(row, shortened(unquoted(fields[name])))
			}
			if i == 0 {
				t.Row(head...)
			}
			t.Row(row...)
		}
	case members(raw) != nil:
		for _, m := range members(raw) {
			t.Row(m.name, shortened(unquoted(m.value)))
		}
	default:
		t.Row(unquoted(raw))
	}
}

// maxCell is how much of a value a table shows, in characters.
const maxCell = 120

// shortened returns the beginning of a value that a line cannot show.
func shortened(s string) string {
	line, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	if r := []rune(line); len(r) > maxCell {
		line, more = string(r[:maxCell]), true
	}
	if more {
		line += " … (-o json shows all)"
	}
	return line
}

// unquoted returns a text without its quotes, and other JSON as it is written.
func unquoted(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(bytes.TrimSpace(raw))
}
