// Package clientgen writes a Go client of the public API from its description (openapi.json): a type for each schema and a method for each
// operation that answers JSON or nothing. oapi-codegen v2.5 cannot read the document, which is OpenAPI 3.1: it
// refuses the schema true, which means any JSON.
package clientgen

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"go/format"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// head is the part of the client that does not depend on the description.
//
//go:embed head.go.txt
var head string

type document struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]schema }
}

type operation struct {
	ID          string `json:"operationId"`
	Summary     string
	Commands    []struct{ Use, Short, Long, Example, Table, Says, Done, Asks string } `json:"x-commands"`
	Parameters  []parameter
	RequestBody *body
	Responses   map[string]body
}

type parameter struct {
	Name, In, Description string
	Schema                schema
}

type body struct {
	Ref     string `json:"$ref"`
	Content map[string]struct{ Schema schema }
}

// schema is JSON Schema as far as the description uses it. The zero value means any JSON.
type schema struct {
	Ref                  string `json:"$ref"`
	Type                 types
	Format, Description  string
	Items                *schema
	AnyOf                []schema
	Properties           map[string]schema
	Required, Enum       []string
	AdditionalProperties *schema
}

// UnmarshalJSON takes true and false for schemas.
func (s *schema) UnmarshalJSON(b []byte) error {
	if b[0] != '{' {
		return nil
	}
	type plain schema
	return json.Unmarshal(b, (*plain)(s))
}

// types is one type or a list of them.
type types []string

func (t *types) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(t))
	}
	*t = types{""}
	return json.Unmarshal(b, &(*t)[0])
}

// Write returns the source of the client that description describes.
func Write(description []byte) ([]byte, error) {
	var doc document
	if err := json.Unmarshal(description, &doc); err != nil {
		return nil, fmt.Errorf("clientgen: %w", err)
	}
	out := bytes.NewBufferString(head)
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			writeOperation(out, strings.ToUpper(method), path, doc.Paths[path][method])
		}
	}
	writeCommands(out, doc)
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		writeType(out, name, doc.Components.Schemas[name])
	}
	src, err := format.Source(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("clientgen: %w", err)
	}
	return src, nil
}

var (
	inPath = regexp.MustCompile(`\{([a-z]+)\}`)
	inID   = regexp.MustCompile(`Id([A-Z]|$)`)
)

// writeOperation writes the query of an operation, and a method unless the operation speaks something else than JSON.
func writeOperation(out *bytes.Buffer, method, path string, op operation) {
	name := inID.ReplaceAllString(strings.ToUpper(op.ID[:1])+op.ID[1:], "ID$1")
	at := `"` + inPath.ReplaceAllString(path, `"+url.PathEscape($1)+"`) + `"`
	arguments, in, query := "ctx context.Context", "nil", ""
	var fields []string
	for _, p := range op.Parameters {
		switch p.In {
		case "path":
			arguments += ", " + p.Name + " string"
		case "query":
			fields = append(fields, fmt.Sprintf("%s *%s // %s\n", goName(p.Name), goType(p.Schema, true), p.Description))
			query += fmt.Sprintf("put(v, %q, q.%s)\n", p.Name, goName(p.Name))
		}
	}
	if fields != nil {
		fmt.Fprintf(out, "// %sQuery is the query of %s %s; nil leaves a parameter out.\ntype %sQuery struct {\n%s}\n\n", name, method, path, name, strings.Join(fields, ""))
		fmt.Fprintf(out, "// Encode returns the query as a URL has it.\nfunc (q %sQuery) Encode() string {\nv := url.Values{}\n%sreturn v.Encode()\n}\n\n", name, query)
		arguments += ", q " + name + "Query"
		at += `+"?"+q.Encode()`
	}
	if op.RequestBody != nil {
		content, ok := op.RequestBody.Content["application/json"]
		if !ok {
			return
		}
		arguments, in = arguments+", in "+goType(content.Schema, true), "in"
	}
	answer := "None"
	for status, r := range op.Responses {
		for media, content := range r.Content {
			switch {
			case media != "application/json":
				return
			case status < "300" && answer == "None" || status == "200":
				answer = goType(content.Schema, true)
			}
		}
	}
	at = strings.ReplaceAll(at, `+""`, "")
	fmt.Fprintf(out, "// %s is %s %s: %s\nfunc (c Client) %s(%s) (Reply[%s], error) {\nreturn ask[%s](ctx, c, %q, %s, %s)\n}\n\n",
		name, method, path, op.Summary, name, arguments, answer, answer, method, at, in)
}

// writeCommands writes the commands that operations have.
func writeCommands(out *bytes.Buffer, doc document) {
	out.WriteString("// Commands are those of kennelctl that operations describe, by their paths.\nvar Commands = []Declared{\n")
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			o := doc.Paths[path][method]
			for _, c := range o.Commands {
				fmt.Fprintf(out, "{%q, %q, %q, %q, %q, %q, %q, %q, %q, %q, []Parameter{", c.Use, cmp.Or(c.Short, strings.TrimSuffix(o.Summary, ".")), c.Long, c.Example, c.Table, c.Says, c.Done, c.Asks, strings.ToUpper(method), path)
				for _, p := range o.Parameters {
					if p.In == "query" {
						writeParameter(out, doc, "query", p.Name, p.Description, p.Schema)
					}
				}
				if o.RequestBody != nil {
					sent := o.RequestBody.Content["application/json"].Schema
					sent = doc.Components.Schemas[strings.TrimPrefix(sent.Ref, "#/components/schemas/")]
					for _, name := range slices.Sorted(maps.Keys(sent.Properties)) {
						writeParameter(out, doc, "body", name, sent.Properties[name].Description, sent.Properties[name])
					}
				}
				out.WriteString("}},\n")
			}
		}
	}
	out.WriteString("}\n\n")
}

func writeParameter(out *bytes.Buffer, doc document, in, name, about string, s schema) {
	if len(s.AnyOf) > 0 { // a schema or null
		s = s.AnyOf[0]
	}
	if s.Ref != "" {
		s = doc.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	kind := ""
	if len(s.Type) > 0 {
		kind = cmp.Or(s.Format, s.Type[0])
	}
	fmt.Fprintf(out, "{%q, %q, %q, %q, %#v},", in, name, about, kind, s.Enum)
}

func writeType(out *bytes.Buffer, name string, s schema) {
	if s.Description != "" {
		fmt.Fprintf(out, "// %s\n", s.Description)
	}
	if s.Properties == nil {
		fmt.Fprintf(out, "type %s = %s\n\n", name, goType(s, true))
		return
	}
	fmt.Fprintf(out, "type %s struct {\n", name)
	for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
		p, tag := s.Properties[key], key
		required := slices.Contains(s.Required, key)
		if !required {
			tag += ",omitzero"
		}
		fmt.Fprintf(out, "%s %s `json:%q`", goName(key), goType(p, required), tag)
		if p.Description != "" {
			fmt.Fprintf(out, " // %s", p.Description)
		}
		out.WriteString("\n")
	}
	out.WriteString("}\n\n")
}

// goType returns the Go type of a value. Objects that may be missing, and all that may be null, are pointers; of times the zero one is none.
func goType(s schema, required bool) string {
	pointer := ""
	if len(s.AnyOf) > 0 { // a schema or null
		s, required = s.AnyOf[0], false
	}
	if len(s.Type) > 1 { // a type or null
		pointer = "*"
	}
	switch {
	case s.Ref != "":
		if !required {
			pointer = "*"
		}
		return pointer + s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
	case len(s.Type) == 0:
		return "json.RawMessage"
	case s.Format == "date-time":
		return "time.Time"
	case s.Type[0] == "array" && s.Items != nil:
		return pointer + "[]" + goType(*s.Items, true)
	case s.Type[0] == "object" && s.AdditionalProperties != nil:
		return pointer + "map[string]" + goType(*s.AdditionalProperties, true)
	}
	return pointer + map[string]string{"string": "string", "integer": "int64", "number": "float64", "boolean": "bool"}[s.Type[0]]
}

// initials are words that Go writes in capitals.
var initials = map[string]string{"id": "ID", "ms": "MS", "os": "OS", "url": "URL", "csr": "CSR", "cn": "CN", "us": "US", "fifo": "FIFO", "ok": "OK"}

// goName makes a Go name of one in JSON.
func goName(key string) (out string) {
	for word := range strings.SplitSeq(key, "_") {
		if w, ok := initials[word]; ok {
			out += w
		} else if word != "" {
			out += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return out
}
