package format

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Project is a project file (UPF): what an application is built of, and how. Values may hold ${NAME} (PLEO-UPF-11); Expand replaces them.
type Project struct {
	Root, Name string // Name is the name of the bundle (PLEO-UPF-01)
	Macros     []Macro
	Include    string // folders of include files, separated by colons (PLEO-UPF-03)
	Compiler   string // command of the Pawn compiler (PLEO-UPF-04)
	Build      string // folder of the result (PLEO-UPF-05)
	Generated  string // folder of the include files that are made (PLEO-UPF-06)
	Temp       string // folder of files on the way (PLEO-UPF-07)
	Folders    bool   // also write the parts as single files (PLEO-UPF-09)
	UMF        string // version of motion files, "" for 3 (PLEO-UPF-08, PLEO-UPF-18)
	ADPCM      string // "true" or "false", "" for false (PLEO-UPF-17)
	Rate       string // samples a second, "" for 11025
	Version    string // of the application (part of PLEO-UPF-19)
	Resources  []Source
	Unknown    []*TextError // elements that mean nothing to us; they are left out
}

// Macro is a set or set-default element.
type Macro struct {
	Name, Value string
	Default     bool // only if the name has no value yet (PLEO-UPF-10)
}

// Source is an element of the resources. Its order among those of its kind gives its id (PLEO-UPF-21).
type Source struct {
	Kind        ResourceKind
	Path        string // of a property its name
	ADPCM, Rate string // of a sound, if it has its own (PLEO-UPF-12)
	Line        int
}

// The elements that a project can have, and their attributes.
var upfElements = map[string][]string{
	"ugobe_project": {"name"}, "upf_project": {"name"},
	"options": {"version"}, "set": {"name", "value"}, "set-default": {"name", "value"},
	"options/set": {"name", "value"}, "options/set-default": {"name", "value"}, "options/include": {"value"},
	"options/tools": nil, "options/tools/pawn": {"value"},
	"options/directories": nil, "options/directories/build": {"value"}, "options/directories/include": {"value"}, "options/directories/temp": {"value"},
	"options/umf": {"value"}, "options/folders": nil, "options/sound": {"adpcm", "rate"}, "options/motion": {"version"}, "options/version": {"value"},
	"resources": nil, "resources/sound": {"path", "adpcm", "rate"}, "resources/motion": {"path"}, "resources/command": {"path"}, "resources/script": {"path"},
	"resources/user_property": {"path"},
}

// upfResources are the elements of resources in the order of their kinds.
var upfResources = [kindCount]string{"sound", "motion", "command", "script", "user_property"}

// The limits of a project file.
const (
	maxProject  = 1 << 20 // bytes
	maxElements = 20_000
)

// upfReader reads a project file.
type upfReader struct {
	d    *xml.Decoder
	p    *Project
	path []string
	n    int
	umf  string
}

func (r *upfReader) refuse(what, found, want string, args ...any) *TextError {
	line, col := r.d.InputPos()
	return &TextError{"upf", line, col, what, found, fmt.Sprintf(want, args...)}
}

// ReadProject returns the project in a file.
func ReadProject(file []byte) (*Project, error) {
	if len(file) > maxProject {
		return nil, &TextError{"upf", 1, 1, "file is too long", fmt.Sprintf("%d bytes", len(file)), fmt.Sprintf("at most %d", maxProject)}
	}
	r := &upfReader{d: xml.NewDecoder(bytes.NewReader(file)), p: &Project{Build: "build", Generated: "include", Temp: "temp"}}
	r.d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // the names are in ASCII
	for {
		t, err := r.d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			var s *xml.SyntaxError
			if errors.As(err, &s) {
				_, col := r.d.InputPos()
				return nil, &TextError{"upf", s.Line, col, "XML", s.Msg, ""}
			}
			return nil, r.refuse("XML", err.Error(), "well-formed XML")
		}
		switch t := t.(type) {
		case xml.StartElement:
			if err := r.begin(t); err != nil {
				return nil, err
			}
		case xml.EndElement:
			r.path = r.path[:len(r.path)-1]
		case xml.CharData:
			if text := bytes.TrimSpace(t); len(text) > 0 {
				return nil, r.refuse("text between elements", fmt.Sprintf("%.40q", text), "elements only")
			}
		}
	}
	if r.p.Root == "" {
		return nil, r.refuse("root element", "nothing", "ugobe_project")
	}
	if r.umf != "" {
		r.p.UMF = r.umf
	}
	return r.p, nil
}

// begin reads an element's name and attributes.
func (r *upfReader) begin(t xml.StartElement) error {
	name := t.Name.Local
	r.path = append(r.path, name)
	if r.n++; r.n > maxElements {
		return r.refuse("too many elements", fmt.Sprint(r.n), "at most %d", maxElements)
	}
	path := strings.Join(r.path[1:], "/")
	if len(r.path) == 1 {
		if path = name; name != "ugobe_project" && name != "upf_project" || r.p.Root != "" {
			return r.refuse("root element", fmt.Sprintf("%.40q", name), "one ugobe_project")
		}
	}
	known, ok := upfElements[path]
	if !ok {
		r.p.Unknown = append(r.p.Unknown, r.refuse("element", fmt.Sprintf("%.80q", path), "one of a project file"))
		r.path = r.path[:len(r.path)-1]
		if err := r.d.Skip(); err != nil {
			return r.refuse("element "+name, err.Error(), "its end")
		}
		return nil
	}
	values := map[string]string{}
	for _, a := range t.Attr {
		if !slices.Contains(known, a.Name.Local) {
			r.p.Unknown = append(r.p.Unknown, r.refuse("attribute of "+name, fmt.Sprintf("%.80q", a.Name.Local), "one of %q", known))
			continue
		}
		values[a.Name.Local] = a.Value
	}
	return r.element(path, name, values)
}

// element stores what an element says.
func (r *upfReader) element(path, name string, values map[string]string) error {
	p := r.p
	need := func(key string, to *string) error {
		v, ok := values[key]
		if !ok || v == "" {
			return r.refuse("element "+name, "no "+key, `%s="..."`, key)
		}
		*to = v
		return nil
	}
	if kind := slices.Index(upfResources[:], name); kind >= 0 && strings.HasPrefix(path, "resources/") {
		line, _ := r.d.InputPos()
		s := Source{Kind: ResourceKind(kind), ADPCM: values["adpcm"], Rate: values["rate"], Line: line}
		if err := need("path", &s.Path); err != nil {
			return err
		}
		p.Resources = append(p.Resources, s)
		return nil
	}
	switch path {
	case "ugobe_project", "upf_project":
		p.Root = path
		if err := need("name", &p.Name); err != nil {
			return err
		}
		if len(p.Name) > MaxName || strings.ContainsAny(p.Name, `/\:*?"<>|`) || strings.HasPrefix(p.Name, ".") {
			return r.refuse("name", fmt.Sprintf("%.60q", p.Name), "a file name of at most %d bytes", MaxName)
		}
	case "set", "set-default", "options/set", "options/set-default":
		m := Macro{Value: values["value"], Default: strings.HasSuffix(path, "default")}
		if err := need("name", &m.Name); err != nil {
			return err
		}
		p.Macros = append(p.Macros, m)
	case "options":
		if v := values["version"]; v != "" {
			p.Version = v
		}
	case "options/include":
		return need("value", &p.Include)
	case "options/tools/pawn":
		return need("value", &p.Compiler)
	case "options/directories/build":
		return need("value", &p.Build)
	case "options/directories/include":
		return need("value", &p.Generated)
	case "options/directories/temp":
		return need("value", &p.Temp)
	case "options/umf":
		return need("value", &p.UMF)
	case "options/motion":
		return need("version", &r.umf)
	case "options/version":
		return need("value", &p.Version)
	case "options/folders":
		p.Folders = true
	case "options/sound":
		p.ADPCM, p.Rate = values["adpcm"], values["rate"]
	}
	return nil
}

// Append appends the file of p to dst.
func (p *Project) Append(dst []byte) []byte {
	var b bytes.Buffer
	depth := 0
	line := func(open bool, name string, attributes ...string) {
		fmt.Fprintf(&b, "%s<%s", strings.Repeat("  ", depth), name)
		for i := 0; i < len(attributes); i += 2 {
			if attributes[i+1] != "" || attributes[i] == "value" {
				fmt.Fprintf(&b, " %s=\"", attributes[i])
				_ = xml.EscapeText(&b, []byte(attributes[i+1])) // a buffer takes everything
				b.WriteByte('"')
			}
		}
		if open {
			b.WriteString(">\n")
			depth++
		} else {
			b.WriteString(" />\n")
		}
	}
	end := func(name string) {
		depth--
		fmt.Fprintf(&b, "%s</%s>\n", strings.Repeat("  ", depth), name)
	}
	optional := func(name, value string) {
		if value != "" {
			line(false, name, "value", value)
		}
	}
	root := p.Root
	if root == "" {
		root = "ugobe_project"
	}
	line(true, root, "name", p.Name)
	line(true, "options")
	optional("include", p.Include)
	if p.Compiler != "" {
		line(true, "tools")
		line(false, "pawn", "value", p.Compiler)
		end("tools")
	}
	line(true, "directories")
	optional("build", p.Build)
	optional("include", p.Generated)
	optional("temp", p.Temp)
	end("directories")
	optional("umf", p.UMF)
	optional("version", p.Version)
	if p.ADPCM != "" || p.Rate != "" {
		line(false, "sound", "adpcm", p.ADPCM, "rate", p.Rate)
	}
	if p.Folders {
		line(false, "folders")
	}
	end("options")
	for _, m := range p.Macros {
		line(false, map[bool]string{false: "set", true: "set-default"}[m.Default], "name", m.Name, "value", m.Value)
	}
	line(true, "resources")
	for _, s := range p.Resources {
		line(false, upfResources[s.Kind], "path", s.Path, "adpcm", s.ADPCM, "rate", s.Rate)
	}
	end("resources")
	end(root)
	return append(dst, b.Bytes()...)
}

// The limits of a value whose macros are replaced.
const (
	maxExpanded = 64 << 10 // bytes
	maxDepth    = 32       // macros in macros
	maxSteps    = 10_000   // macros
)

// Expander returns a function that replaces the macros in a value. given are the values from the command line and the environment: a set-default does not change
// them. A macro without value and one that holds itself are errors (PLEO-UPF-02, PLEO-UPF-10, PLEO-UPF-11).
func (p *Project) Expander(given func(name string) (string, bool)) func(string) (string, error) {
	values := map[string]string{}
	for _, m := range p.Macros {
		_, known := values[m.Name]
		if !known && given != nil {
			if v, ok := given(m.Name); ok && m.Default {
				values[m.Name], known = v, true
			}
		}
		if !known || !m.Default {
			values[m.Name] = m.Value
		}
	}
	steps := 0
	var expand func(s string, depth int) (string, error)
	expand = func(s string, depth int) (string, error) {
		var out strings.Builder
		for {
			before, rest, found := strings.Cut(s, "${")
			out.WriteString(before)
			if !found {
				return out.String(), nil
			}
			name, after, closed := strings.Cut(rest, "}")
			if !closed {
				return "", fmt.Errorf("%.60q: ${ without }", s)
			}
			v, ok := values[name]
			if !ok && given != nil {
				v, ok = given(name)
			}
			if !ok {
				return "", fmt.Errorf("macro %.60q has no value: want <set name=%.60q value=\"...\" /> in the project", name, name)
			}
			if steps++; depth > maxDepth || steps > maxSteps {
				return "", fmt.Errorf("macro %.60q holds itself", name)
			}
			v, err := expand(v, depth+1)
			if err != nil {
				return "", err
			}
			if out.WriteString(v); out.Len() > maxExpanded {
				return "", fmt.Errorf("macro %.60q: value is longer than %d bytes", name, maxExpanded)
			}
			s = after
		}
	}
	return func(s string) (string, error) {
		steps = 0
		return expand(s, 0)
	}
}

// attributeInt returns the whole number in an attribute, def if there is none.
func attributeInt(s string, def, least, most int) (int, error) {
	if s == "" {
		return def, nil
	}
	v, err := strconv.Atoi(s)
	if err != nil || v < least || v > most {
		return 0, fmt.Errorf("%.40q: want a number from %d to %d", s, least, most)
	}
	return v, nil
}

// SoundOptions returns how a sound of the project is converted: its own attributes win over those of the project (PLEO-SBT-05).
func (p *Project) SoundOptions(s Source) (SoundOptions, error) {
	var o SoundOptions
	adpcm, rate := p.ADPCM, p.Rate
	if s.ADPCM != "" {
		adpcm = s.ADPCM
	}
	if s.Rate != "" {
		rate = s.Rate
	}
	switch strings.ToLower(adpcm) {
	case "true", "1", "yes":
		o.ADPCM = true
	case "", "false", "0", "no":
	default:
		return o, fmt.Errorf("adpcm is %.40q: want true or false", adpcm)
	}
	var err error
	if o.Rate, err = attributeInt(rate, DefaultRate, 1000, 0xFFFF); err != nil {
		return o, fmt.Errorf("rate is %w", err)
	}
	return o, nil
}

// Revision returns the number of the application's version, 0 if the project has none.
func (p *Project) Revision() (uint32, error) {
	v, err := attributeInt(p.Version, 0, 0, 1<<31-1)
	if err != nil {
		return 0, fmt.Errorf("version is %w", err)
	}
	return uint32(v), nil
}
