// Package language translates pages. A page is written in English, without keys; a catalogue says each of its texts in another language, and the
// languages of the browser decide. A text that the catalogue lacks stays English and is marked lang="en", for screen readers and for tests.
// What a person or a robot said is not translated: its element has the attribute translate="no".
package language

import (
	"bytes"
	"embed"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/text/language"
)

//go:embed de.txt
var files embed.FS

// German is the catalogue of the owners' pages.
var German = must("de")

var (
	languages = language.NewMatcher([]language.Tag{language.English, language.German})
	catalogs  = []*Catalog{nil, German}
)

func must(lang string) *Catalog {
	src, err := files.ReadFile(lang + ".txt")
	if err != nil {
		panic(err)
	}
	c, err := Parse(lang, string(src))
	if err != nil {
		panic(err)
	}
	return c
}

// Of returns the catalogue of the language that the browser of r asks for; nil for English.
func Of(r *http.Request) *Catalog {
	wanted, _, err := language.ParseAcceptLanguage(r.Header.Get("Accept-Language"))
	if err != nil {
		return nil
	}
	_, i, sure := languages.Match(wanted...)
	if sure == language.No {
		return nil
	}
	return catalogs[i]
}

// Catalog holds the texts of one language by their English. A nil one leaves everything English. Safe for concurrent use.
type Catalog struct {
	Lang  string
	exact map[string]string
	forms []form
}

// form is a text with places: {} is copied; {t} is itself translated if the catalogue has it; {w} is the same for a single word. The translation has the places in
// the same order.
type form struct {
	re        *regexp.Regexp
	translate []bool // of each place
	out       []string
}

var place = regexp.MustCompile(`\{[tw]?\}`)

// Parse reads a catalogue: an English text in a line, its translation in the next, then an empty line; lines of # are comments. Elements within
// a text are numbered: "Read <1>this</1>.".
func Parse(lang, src string) (*Catalog, error) {
	c := &Catalog{Lang: lang, exact: map[string]string{}}
	english := ""
	for i, line := range strings.Split(src, "\n") {
		switch {
		case strings.HasPrefix(line, "#"), line == "" && english == "":
		case line == "":
			return nil, fmt.Errorf("%s.txt, line %d: %q has no translation", lang, i+1, english)
		case english == "":
			english = line
		default:
			if err := c.add(english, line); err != nil {
				return nil, fmt.Errorf("%s.txt, line %d: %w", lang, i+1, err)
			}
			english = ""
		}
	}
	return c, nil
}

func (c *Catalog) add(english, here string) error {
	from, to := place.FindAllString(english, -1), place.FindAllString(here, -1)
	if len(from) != len(to) {
		return fmt.Errorf("%q has %d places, its translation %d", english, len(from), len(to))
	}
	if _, twice := c.exact[english]; twice {
		return fmt.Errorf("%q is there twice", english)
	}
	c.exact[english] = here
	if len(from) == 0 {
		return nil
	}
	f := form{out: place.Split(here, -1)}
	pattern := "^"
	for i, part := range place.Split(english, -1) {
		if pattern += regexp.QuoteMeta(part); i < len(from) {
			any := "(.+?)"
			if from[i] == "{w}" {
				any = `(\S+)`
			}
			pattern, f.translate = pattern+any, append(f.translate, from[i] != "{}")
		}
	}
	f.re = regexp.MustCompile(pattern + "$")
	c.forms = append(c.forms, f)
	return nil
}

// Text translates one text, and reports whether the catalogue has it; white space around it and between its words is not kept.
func (c *Catalog) Text(english string) (string, bool) {
	if c == nil {
		return english, true
	}
	english = strings.Join(strings.Fields(english), " ")
	if here, ok := c.exact[english]; ok {
		return here, true
	}
	for _, f := range c.forms {
		found := f.re.FindStringSubmatch(english)
		if found == nil || slices.ContainsFunc(found[1:], func(part string) bool { return strings.Contains(part, ". ") }) { // several sentences: each is translated
			continue
		}
		out := f.out[0]
		for i, part := range found[1:] {
			if f.translate[i] {
				part, _ = c.Text(part)
			}
			out += part + f.out[i+1]
		}
		return out, true
	}
	return english, false
}

// Answer translates a page, and notes its language in the header of the answer. A page that cannot be read as HTML stays as it is. Scripts, styles
// and what people type into fields are left alone.
func (c *Catalog) Answer(h http.Header, page []byte) []byte {
	h.Add("Vary", "Accept-Language")
	lang := "en"
	if c != nil {
		var out bytes.Buffer
		doc, err := html.Parse(bytes.NewReader(page))
		if err == nil {
			c.walk(doc)
			err = html.Render(&out, doc)
		}
		if err == nil {
			page, lang = out.Bytes(), c.Lang
		}
	}
	h.Set("Content-Language", lang)
	return page
}

// shown are the attributes that people see or hear.
var shown = map[string]bool{"aria-label": true, "title": true, "placeholder": true, "alt": true}

// walk translates what is below n, and its attributes.
func (c *Catalog) walk(n *html.Node) {
	for i := range n.Attr {
		switch a := &n.Attr[i]; {
		case n.DataAtom == atom.Html && a.Key == "lang":
			a.Val = c.Lang
		case a.Key == "translate" && a.Val == "no":
			return
		case shown[a.Key]:
			a.Val, _ = c.Text(a.Val)
		}
	}
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Textarea, atom.Code, atom.Pre, atom.Svg, atom.Time, atom.Datalist:
		return
	}
	for child := n.FirstChild; child != nil; {
		end := child
		words := false
		for end != nil && inline(end) {
			words = words || end.Type == html.TextNode && wordy(end.Data)
			end = end.NextSibling
		}
		next := end
		if words {
			c.run(n, child, end)
		} else if child == end {
			c.walk(child)
			next = child.NextSibling
		} else {
			for ; child != end; child = child.NextSibling {
				c.walk(child)
			}
		}
		child = next
	}
}

var letter = regexp.MustCompile(`\pL{2}`)

// wordy reports whether a text has words in it: numbers and signs are the same in every language.
func wordy(s string) bool { return letter.MatchString(s) }

// inline reports whether n is part of the text around it.
func inline(n *html.Node) bool {
	if n.Type != html.ElementNode {
		return n.Type == html.TextNode
	}
	switch n.DataAtom {
	case atom.A, atom.Abbr, atom.B, atom.Br, atom.Code, atom.Em, atom.I, atom.Img, atom.Input, atom.Kbd, atom.Small, atom.Span, atom.Strong, atom.Svg, atom.Time, atom.Var:
		return true
	}
	return false
}

// mark is, in the text of a run, an element that is kept whole, or an end of one whose text belongs to the run.
var mark = regexp.MustCompile("\x01|</?[0-9]+>")

// run translates the text that begins at from and ends before to, among the children of n.
func (c *Catalog) run(n, from, to *html.Node) {
	var text strings.Builder
	var parts []*html.Node // kept whole
	var tags []*html.Node  // numbered from 1
	var read func(x *html.Node)
	read = func(x *html.Node) {
		switch {
		case x.Type == html.TextNode:
			text.WriteString(strings.NewReplacer("<", "‹", "\x01", "").Replace(x.Data))
		case x.Type == html.ElementNode && inline(x) && x.FirstChild != nil && !whole(x):
			tags = append(tags, x)
			number := len(tags)
			fmt.Fprintf(&text, "<%d>", number)
			for y := x.FirstChild; y != nil; y = y.NextSibling {
				read(y)
			}
			fmt.Fprintf(&text, "</%d>", number)
		default:
			c.walk(x)
			parts = append(parts, x)
			text.WriteString("\x01")
		}
	}
	for x := from; x != to; x = x.NextSibling {
		read(x)
	}
	raw, here, ok := text.String(), "", false
	for _, around := range []string{" \t\r\n", " \t\r\n\x01"} { // an icon or a box beside the text may be no part of it
		if here, ok = c.sentences(strings.Trim(raw, around)); ok {
			lead, tail := raw[:len(raw)-len(strings.TrimLeft(raw, around))], raw[len(strings.TrimRight(raw, around)):]
			here = lead + here + tail
			break
		}
	}
	if !ok {
		if n.Type == html.ElementNode && n.DataAtom != atom.Title && n.DataAtom != atom.Body {
			n.Attr = append(n.Attr, html.Attribute{Key: "lang", Val: "en"})
		}
		return
	}
	for x := from; x != to; {
		next := x.NextSibling
		n.RemoveChild(x)
		x = next
	}
	write(n, to, here, parts, tags)
}

// whole reports whether an inline element is kept as it is within a text.
func whole(x *html.Node) bool {
	switch x.DataAtom {
	case atom.Code, atom.Img, atom.Input, atom.Svg, atom.Time, atom.Kbd, atom.Var:
		return true
	}
	for _, a := range x.Attr {
		if a.Key == "translate" && a.Val == "no" {
			return true
		}
	}
	return false
}

var sentence = regexp.MustCompile(`[.!?] `)

// sentences translates a text: whole, or sentence by sentence, because pages put them together.
func (c *Catalog) sentences(text string) (string, bool) {
	if here, ok := c.Text(text); ok {
		return here, true
	}
	var out []string
	for text != "" {
		end := len(text)
		for _, at := range sentence.FindAllStringIndex(text, -1) {
			if _, ok := c.Text(text[:at[1]-1]); ok {
				end = at[1]
				break
			}
		}
		here, ok := c.Text(text[:end])
		if !ok && wordy(text[:end]) {
			return "", false
		}
		out = append(out, strings.TrimSpace(here))
		text = strings.TrimLeft(text[end:], " \n\t")
	}
	return strings.Join(out, " "), true
}

// write puts the text of a run, with its parts and tags, among the children of n before to.
func write(n, to *html.Node, text string, parts, tags []*html.Node) {
	at := n // where text is written now
	var open []*html.Node
	add := func(x *html.Node) {
		if x.Parent != nil {
			x.Parent.RemoveChild(x)
		}
		if at == n {
			n.InsertBefore(x, to)
		} else {
			at.AppendChild(x)
		}
	}
	words := func(s string) {
		if s != "" {
			add(&html.Node{Type: html.TextNode, Data: strings.ReplaceAll(s, "‹", "<")})
		}
	}
	for text != "" {
		m := mark.FindStringIndex(text)
		if m == nil {
			words(text)
			break
		}
		words(text[:m[0]])
		sign := text[m[0]:m[1]]
		text = text[m[1]:]
		var number int
		switch {
		case sign == "\x01":
			if len(parts) > 0 {
				add(parts[0])
				parts = parts[1:]
			}
		case strings.HasPrefix(sign, "</"):
			if len(open) > 0 {
				at, open = open[len(open)-1], open[:len(open)-1]
			}
		default:
			if _, err := fmt.Sscanf(sign, "<%d>", &number); err != nil || number < 1 || number > len(tags) {
				continue
			}
			x := tags[number-1]
			copied := &html.Node{Type: x.Type, DataAtom: x.DataAtom, Data: x.Data, Attr: x.Attr}
			add(copied)
			open, at = append(open, at), copied
		}
	}
}
