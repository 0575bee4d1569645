package ctl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"kennel/cloud/openapi/client"
	"kennel/cloud/page"
	"kennel/infra/api/status"
	"kennel/infra/cli"
)

// drawing is a part of an answer as a declared command draws it (infra/op.Command.Table).
type drawing struct {
	of      string // the field; "": the whole answer
	columns []column
}

type column struct {
	head     string
	text     *template.Template
	optional bool
}

// answerTable reads the table of a declared command. It panics if that is none, which a test finds out.
func answerTable(s string) (out []drawing) {
	for line := range strings.Lines(s) {
		var part drawing
		line = strings.TrimSpace(line)
		if of, rest, ok := strings.Cut(line, ": "); ok && !strings.ContainsAny(of, ";={\" ") {
			part.of, line = of, rest
		}
		if text, ok := strings.CutPrefix(line, "="); ok && part.of == "" {
			out = append(out, drawing{columns: []column{{text: parsed(text), optional: text != ""}}})
			continue
		}
		text := ""
		for piece := range strings.SplitSeq(line, "; ") {
			if text += piece; unfinished(text) {
				text += "; " // it is within a template
				continue
			}
			head, cell, ok := strings.Cut(text, "=")
			bare := strings.TrimSuffix(head, "?")
			switch {
			case !ok:
				cell = "{{." + strings.ReplaceAll(strings.ToLower(bare), " ", "_") + "}}"
			case !strings.Contains(cell, "{{"):
				cell = "{{" + cell + "}}"
			}
			part.columns, text = append(part.columns, column{bare, parsed(cell), bare != head}), ""
		}
		out = append(out, part)
	}
	return out
}

// unfinished reports whether text ends within a template.
func unfinished(text string) bool {
	blocks := -strings.Count(text, "{{end}}")
	for _, begin := range []string{"{{if ", "{{with ", "{{range "} {
		blocks += strings.Count(text, begin)
	}
	return blocks > 0 || strings.Count(text, "{{") != strings.Count(text, "}}")
}

var templateWords = template.FuncMap{
	"clock": func(v any) string { m, _ := v.(moment); return clock(m.Time) },
	"stamp": func(v any) string { m, _ := v.(moment); return stamp(m.Time) },
	"problem": func(kind, code any) string {
		k, _ := kind.(string)
		c, _ := code.(string)
		return status.Problem{Kind: k, Code: c}.Token()
	},
	"day":   func(v any) string { m, _ := v.(moment); return m.Format(time.DateOnly) },
	"since": func(v any) string { m, _ := v.(moment); return since(m.Time) },
	"took":  func(us int64) time.Duration { return latency(client.Delivery{LatencyUS: us}) },
	"div":   func(a, b int64) int64 { return a / b },
	"percent": func(a, b int64) string {
		return fmt.Sprintf("%.1f %%", 100*float64(a)/float64(max(b, 1)))
	},
	"counts": func(o object) string { // of words, in their order
		var out []string
		for _, word := range slices.Sorted(maps.Keys(o)) {
			out = append(out, fmt.Sprint(word, " ", o[word]))
		}
		return strings.Join(out, ", ")
	},
	"bytes":  page.Bytes,
	"change": page.Change,
	"count":  cli.Count[int64],
	"join": func(v any, between string) string {
		l, _ := v.(list)
		return strings.Join(l.words(), between)
	},
}

func parsed(text string) *template.Template {
	return template.Must(template.New("").Funcs(templateWords).Parse(text))
}

// filled returns a text with what its templates name.
func filled(text string, of any) string { return fill(parsed(text), of) }

func fill(t *template.Template, of any) string {
	var b strings.Builder
	if err := t.Execute(&b, of); err != nil {
		return "?" // a newer or older cloud answers something else; -o json shows it
	}
	return strings.TrimSpace(strings.ReplaceAll(b.String(), "<no value>", ""))
}

// draw draws the part of an answer.
func (d drawing) draw(t *cli.Table, whole any) {
	of := whole
	if d.of != "" {
		o, _ := whole.(object)
		if of = o[d.of]; of == nil {
			return
		}
	}
	items, isList := of.(list)
	if isList && len(items) == 0 && d.of != "" {
		return
	}
	if !isList {
		for _, c := range d.columns {
			switch text := fill(c.text, of); {
			case c.optional && text == "":
			case c.head == "":
				t.Text(text)
			default:
				t.Row(c.head, text)
			}
		}
		return
	}
	var head []any
	for _, c := range d.columns {
		head = append(head, c.head)
	}
	if d.columns[0].head != "" {
		t.Row(head...)
	}
	for _, item := range items {
		var row []any
		for _, c := range d.columns {
			row = append(row, fill(c.text, item))
		}
		t.Row(row...)
	}
}

// object, list and moment are parts of an answer, which print for people. A moment prints as how long ago it was.
type (
	object map[string]any
	list   []any
	moment struct{ time.Time }
)

func (o object) String() string {
	b, _ := json.Marshal(o) // it came as JSON
	return string(b)
}

func (l list) words() (out []string) {
	for _, v := range l {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

func (l list) String() string { return strings.Join(l.words(), ", ") }

func (m moment) String() string { return ago(m.Time) }

// readable returns an answer as objects, lists, moments, texts and numbers.
func readable(raw json.RawMessage) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	return read(v)
}

func read(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := object{}
		for k, v := range v {
			out[k] = read(v)
		}
		return out
	case []any:
		out := list{}
		for _, v := range v {
			out = append(out, read(v))
		}
		return out
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case string:
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			if at.IsZero() {
				return nil
			}
			return moment{at}
		}
	}
	return v
}
