package ctl

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
)

// addDeclared adds the commands that operations of the API declare (op.Spec.Command) to those written here, in groups that are made where they are missing.
func (a *app) addDeclared(root *cobra.Command, all []client.Declared) {
	for _, c := range all {
		words, parent := strings.Fields(c.Words), root
		for i, w := range words[:len(words)-1] {
			within := parent.Commands()
			at := slices.IndexFunc(within, func(sub *cobra.Command) bool { return sub.Name() == w })
			if at < 0 {
				at = len(within)
				within = append(within, describe(w, "Operations of "+strings.Join(words[:i+1], " "), c.Words))
				parent.AddCommand(within[at])
			}
			parent = within[at]
		}
		parent.AddCommand(a.declared(c, words[len(words)-1]))
	}
}

// declared returns a command whose arguments are the parameters of the path, then KEY=VALUE for each further field.
func (a *app) declared(c client.Declared, name string) *cobra.Command {
	var params []string
	for part := range strings.SplitSeq(c.Path, "/") {
		if p, ok := strings.CutPrefix(part, "{"); ok {
			params = append(params, strings.TrimSuffix(p, "}"))
		}
	}
	use, example, long := name, c.Words, c.Summary
	for _, p := range params {
		use += " " + strings.ToUpper(p)
		example += " " + map[bool]string{true: "vic:00e20100", false: strings.ToUpper(p)}[p == "thing"]
	}
	if len(c.Fields) > 0 {
		use += " [KEY=VALUE...]"
		long += "\n\nKEY is one of:"
		for _, f := range c.Fields {
			long += strings.TrimRight("\n  "+f.Name+"  "+f.About, " ")
		}
	}
	cmd := describe(use, strings.TrimSuffix(c.Summary, "."), example)
	cmd.Long = long
	return a.runs(cmd, func(cmd *cobra.Command, args []string) error {
		path := c.Path
		for i, p := range params {
			path = strings.Replace(path, "{"+p+"}", url.PathEscape(args[i]), 1)
		}
		raw, err := a.askDeclared(cmd, c, path, args[len(params):])
		if err != nil || raw == nil && !cli.JSON(cmd) {
			return err
		}
		if raw == nil {
			raw = json.RawMessage(`{"done":true}`)
		}
		return cli.Print(cmd, raw, func(t *cli.Table) { drawJSON(t, raw) })
	})
}

// askDeclared returns the answer; nil: there is nothing in it.
func (a *app) askDeclared(cmd *cobra.Command, c client.Declared, path string, fields []string) (json.RawMessage, error) {
	address, body, err := call{}.request(cmd, c.Method, path, fields)
	if err != nil {
		return nil, err
	}
	to, err := a.connect(cmd.Context())
	if err != nil {
		return nil, err
	}
	head := http.Header{"Accept": {"application/json"}}
	if body != nil {
		head.Set("Content-Type", "application/json")
	}
	resp, err := to.send(cmd.Context(), c.Method, address, body, head)
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
