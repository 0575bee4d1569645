// Package openapi serves the description of the public API: OpenAPI 3.1 for programs (GET /v1/openapi.json) and a page for people (GET /api),
// made of the same file. Package describe below makes that file of the routes and their types.
package openapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// JSON is the description.
//
//go:embed openapi.json
var JSON []byte

//go:embed page.html
var pageText string

//go:embed page.css
var style string

// document is the part of the description that the page shows.
type document struct {
	Info struct{ Title, Version, Summary, Description string }
	Tags []struct{ Name string }
	// Paths are operations by path and method.
	Paths      map[string]map[string]operation
	Components struct {
		Schemas map[string]schema
	}
}

type operation struct {
	ID          string `json:"operationId"`
	Tags        []string
	Summary     string
	Description string
	Parameters  []parameter
	RequestBody *struct{ Content map[string]media }
	Responses   map[string]struct {
		Ref         string `json:"$ref"`
		Description string
		Content     map[string]media
	}
}

type parameter struct {
	Name, In, Description string
	Schema                schema
}

type media struct{ Schema *schema }

// schema is JSON Schema as far as the description uses it; true means any JSON.
type schema struct {
	Any         bool
	Ref         string
	Type        []string
	Format      string
	Description string
	Enum        []string
	Minimum     *float64
	Maximum     *float64
	Items       *schema
	AnyOf       []schema
	Properties  map[string]schema
	Required    []string
	Values      *schema // of an object without names of its own
}

// UnmarshalJSON takes true for a schema, and one type for a list of one.
func (s *schema) UnmarshalJSON(b []byte) error {
	if string(b) == "true" || string(b) == "false" {
		s.Any = string(b) == "true"
		return nil
	}
	var in struct {
		Ref              string `json:"$ref"`
		Type             json.RawMessage
		Format           string
		Description      string
		Enum             []string
		Minimum, Maximum *float64
		Items            *schema
		AnyOf            []schema
		Properties       map[string]schema
		Required         []string
		Values           *schema `json:"additionalProperties"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*s = schema{Ref: in.Ref[strings.LastIndexByte(in.Ref, '/')+1:], Format: in.Format, Description: in.Description, Enum: in.Enum, Minimum: in.Minimum, Maximum: in.Maximum,
		Items: in.Items, AnyOf: in.AnyOf, Properties: in.Properties, Required: in.Required, Values: in.Values}
	if len(in.Type) > 0 && in.Type[0] == '[' {
		return json.Unmarshal(in.Type, &s.Type)
	} else if len(in.Type) > 0 {
		s.Type = make([]string, 1)
		return json.Unmarshal(in.Type, &s.Type[0])
	}
	return nil
}

// Words says in a few words what a value is; names of schemas are links, so it is HTML.
func (s schema) Words() template.HTML {
	esc := template.HTMLEscapeString
	var out string
	switch {
	case s.Ref != "":
		out = `<a href="#` + esc(s.Ref) + `">` + esc(s.Ref) + `</a>`
	case len(s.AnyOf) > 0:
		var parts []string
		for _, a := range s.AnyOf {
			parts = append(parts, string(a.Words()))
		}
		out = strings.Join(parts, " or ")
	case s.Items != nil:
		out = "list of " + string(s.Items.Words())
	case len(s.Enum) > 0:
		out = "one of " + esc(strings.Join(s.Enum, ", "))
	case s.Any || len(s.Type) == 0:
		out = "any JSON"
	case s.Type[0] == "object" && s.Values != nil && s.Properties == nil:
		out = "object of " + string(s.Values.Words())
	default:
		out = esc(strings.Join(s.Type, " or "))
	}
	if s.Format != "" {
		out += " (" + esc(s.Format) + ")"
	}
	if s.Minimum != nil && s.Maximum != nil {
		out += fmt.Sprintf(", %v to %v", *s.Minimum, *s.Maximum)
	}
	return template.HTML(out)
}

// Field is one property of an object.
type Field struct {
	Name     string
	Required bool
	schema
}

// Fields are the properties in order.
func (s schema) Fields() []Field {
	var out []Field
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		out = append(out, Field{name, slices.Contains(s.Required, name), s.Properties[name]})
	}
	return out
}

// route is one operation on the page.
type route struct {
	Method, Path string
	operation
}

// Good is an answer that is none of the errors.
type Good struct {
	Status, Media string
	Schema        *schema
}

// Answers are the good ones in order.
func (r route) Answers() []Good {
	var out []Good
	for _, code := range slices.Sorted(maps.Keys(r.Responses)) {
		resp := r.Responses[code]
		if resp.Ref != "" {
			continue
		}
		g := Good{Status: code + " " + resp.Description}
		for name, m := range resp.Content {
			g.Media, g.Schema = name, m.Schema
		}
		out = append(out, g)
	}
	return out
}

// Body is the content that is sent.
func (r route) Body() *Good {
	if r.RequestBody == nil {
		return nil
	}
	for name, m := range r.RequestBody.Content {
		return &Good{Media: name, Schema: m.Schema}
	}
	return nil
}

// Page is the template's data.
type Page struct {
	document
	Style template.CSS
}

// Group is the routes of one tag.
type Group struct {
	Name   string
	Routes []route
}

// Anchor is where the group is on the page.
func (g Group) Anchor() string {
	return "part-" + strings.ReplaceAll(strings.ToLower(g.Name), " ", "-")
}

// Groups are the routes by tag, in the order of the tags, and of paths within.
func (p Page) Groups() []Group {
	var out []Group
	for _, tag := range p.Tags {
		g := Group{Name: tag.Name}
		for _, path := range slices.Sorted(maps.Keys(p.Paths)) {
			for _, method := range []string{"get", "post", "put", "patch", "delete"} {
				if op, ok := p.Paths[path][method]; ok && slices.Contains(op.Tags, tag.Name) {
					g.Routes = append(g.Routes, route{strings.ToUpper(method), path, op})
				}
			}
		}
		out = append(out, g)
	}
	return out
}

// page makes the page and the policy that lets it have its style and nothing else.
func page() (body []byte, policy string, err error) {
	p := Page{Style: template.CSS(style)}
	if err := json.Unmarshal(JSON, &p.document); err != nil {
		return nil, "", fmt.Errorf("openapi: %w", err)
	}
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return nil, "", fmt.Errorf("openapi: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return nil, "", fmt.Errorf("openapi: %w", err)
	}
	sum := sha256.Sum256([]byte(style))
	return b.Bytes(), "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", nil
}

// Mount adds the description and its page to mux.
func Mount(mux *http.ServeMux) error {
	body, policy, err := page()
	if err != nil {
		return err
	}
	serve := func(media string, content []byte) http.HandlerFunc {
		sum := sha256.Sum256(content)
		tag := `"` + hex.EncodeToString(sum[:12]) + `"`
		return func(w http.ResponseWriter, r *http.Request) {
			head := w.Header()
			head.Set("Content-Type", media)
			head.Set("ETag", tag)
			head.Set("Cache-Control", "no-cache")
			head.Set("X-Content-Type-Options", "nosniff")
			head.Set("X-Frame-Options", "DENY")
			head.Set("Referrer-Policy", "no-referrer")
			head.Set("Content-Security-Policy", policy)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
		}
	}
	mux.Handle("GET /v1/openapi.json", serve("application/openapi+json", JSON))
	mux.Handle("GET /api", serve("text/html; charset=utf-8", body))
	return nil
}
