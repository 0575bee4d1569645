package op

import (
	"cmp"
	"encoding"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
)

// Parameter is one of a query. Its schema is JSON Schema.
type Parameter struct {
	Name, About string
	Schema      map[string]any
}

// Raw is a body that is no JSON, as a field of a request. Reading it ends with the operation's Timeout; without one, each read has its own time.
type Raw struct {
	io.Reader
	Size int64  // bytes; less than 0: unknown
	Type string // the media type as it was sent
}

// form is how a request is read. Of a struct it reads the fields with a tag:
//
//	path:"id"          a part of the path; of:"alert" names the kind of thing with that number, for the error that there is none
//	query:"limit"      a parameter, with about:"At most so many.", min:"1" max:"500", enum:"open,done", default:"50"
//	query:"*"          all parameters, as url.Values, for a function with a reader of its own; it then refuses what it does not know
//	header:"Accept"    a header, which is not described
//	body:""            the body as JSON, or a Raw
//	request:""         the *http.Request itself, for its cookies
//
// Embedded structs are read like their fields. A struct without such fields is the body.
type form struct {
	spec   Spec
	fields []field
	query  []Parameter
	thing  []int        // index of the field of the thing
	all    []int        // index of the field of all parameters
	asked  []int        // index of the field of the request
	body   []int        // index of the body's field
	sent   reflect.Type // of the body; nil: none
	whole  bool         // the request is the body
}

type field struct {
	reflect.StructField
	in, name string
	min, max int64
	enum     []string
	ranged   bool
}

var (
	rawType     = reflect.TypeFor[Raw]()
	thingType   = reflect.TypeFor[thing.ID]()
	timeType    = reflect.TypeFor[time.Time]()
	valuesType  = reflect.TypeFor[url.Values]()
	unmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func formOf(s Spec, t reflect.Type) *form {
	f := &form{spec: s}
	none := t == reflect.TypeFor[None]()
	if t.Kind() == reflect.Struct {
		for _, sf := range reflect.VisibleFields(t) {
			if err := f.add(sf); err != nil {
				panic(fmt.Sprintf("op: %s: field %s: %v", s.Route, sf.Name, err))
			}
		}
	}
	if len(f.fields) == 0 && f.body == nil && f.asked == nil && !none {
		f.whole, f.sent = true, t
	}
	if s.Own && f.thing == nil {
		panic("op: " + s.Route + ": no field path:\"thing\" or query:\"thing\"")
	}
	return f
}

func (f *form) add(sf reflect.StructField) error {
	if _, ok := sf.Tag.Lookup("body"); ok {
		f.body, f.sent = sf.Index, sf.Type
		return nil
	}
	if _, ok := sf.Tag.Lookup("request"); ok && sf.Type == reflect.TypeFor[*http.Request]() {
		f.asked = sf.Index
		return nil
	}
	fd := field{StructField: sf}
	for _, in := range []string{"path", "query", "header"} {
		if name, ok := sf.Tag.Lookup(in); ok {
			fd.in, fd.name = in, name
		}
	}
	switch {
	case fd.in == "":
		return nil
	case fd.in == "query" && sf.Type == valuesType:
		f.all = sf.Index
		return nil
	}
	if low, ok := sf.Tag.Lookup("min"); ok {
		var err error
		if fd.min, err = strconv.ParseInt(low, 10, 64); err != nil {
			return err
		}
		if fd.max, err = strconv.ParseInt(sf.Tag.Get("max"), 10, 64); err != nil {
			return err
		}
		fd.ranged = true
	}
	if words := sf.Tag.Get("enum"); words != "" {
		fd.enum = strings.Split(words, ",")
	}
	if err := fd.set(reflect.New(sf.Type).Elem(), sf.Tag.Get("default")); sf.Tag.Get("default") != "" && err != nil {
		return err
	}
	f.fields = append(f.fields, fd)
	if fd.in == "query" {
		f.query = append(f.query, Parameter{fd.name, sf.Tag.Get("about"), fd.schema()})
	}
	if fd.in == "path" && !strings.Contains(f.spec.Route, "{"+fd.name+"}") {
		return fmt.Errorf("the route has no {%s}", fd.name)
	}
	if sf.Type == thingType && fd.name == "thing" {
		f.thing = sf.Index
	}
	return nil
}

// schema describes a parameter.
func (fd *field) schema() map[string]any {
	switch {
	case fd.enum != nil:
		return map[string]any{"type": "string", "enum": fd.enum}
	case fd.Type.ConvertibleTo(timeType):
		return map[string]any{"type": "string", "format": "date-time"}
	case fd.ranged:
		return map[string]any{"type": "integer", "minimum": fd.min, "maximum": fd.max}
	case fd.Type.Kind() == reflect.Int64 || fd.Type.Kind() == reflect.Int:
		return map[string]any{"type": "integer"}
	}
	return map[string]any{"type": "string"}
}

// bodyType returns the type of the JSON that is sent.
func (f *form) bodyType() reflect.Type {
	if f.sent == rawType {
		return nil
	}
	return f.sent
}

// thingOf returns the thing that a request is about.
func (f *form) thingOf(req reflect.Value) thing.ID {
	id, _ := req.FieldByIndex(f.thing).Interface().(thing.ID)
	return id
}

// read fills req. Errors: Invalid; NotFound for a part of the path that is the number of nothing.
func (f *form) read(w http.ResponseWriter, r *http.Request, req reflect.Value) error {
	query := url.Values{}
	if len(f.query) > 0 || f.spec.Strict || f.all != nil {
		query = r.URL.Query()
	}
	if err := f.strict(query); err != nil {
		return err
	}
	if err := f.fill(query, r, req); err != nil {
		return err
	}
	if f.asked != nil {
		req.FieldByIndex(f.asked).Set(reflect.ValueOf(r))
	}
	switch {
	case f.sent == rawType:
		raw := Raw{Reader: r.Body, Size: r.ContentLength, Type: r.Header.Get("Content-Type")}
		if f.spec.Timeout < 0 {
			raw.Reader = kithttp.Patient(w, r.Body)
		} else {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(or(f.spec.Timeout, Timeout))) // fails only for writers without a connection, in tests
		}
		req.FieldByIndex(f.body).Set(reflect.ValueOf(raw))
	case f.whole:
		return kithttp.ReadJSON(r, req.Addr().Interface(), or(f.spec.MaxBody, MaxBody))
	case f.sent != nil:
		return kithttp.ReadJSON(r, req.FieldByIndex(f.body).Addr().Interface(), or(f.spec.MaxBody, MaxBody))
	}
	return nil
}

// Query reads the parameters of a request as its operation does, for a page with the same ones. Parameters that it does not have are refused.
func Query[Req any](query url.Values) (Req, error) {
	var req Req
	f := formOf(Spec{Strict: true}, reflect.TypeFor[Req]())
	err := f.strict(query)
	if err == nil {
		err = f.fill(query, &http.Request{}, reflect.ValueOf(&req).Elem())
	}
	return req, err
}

// fill sets the fields of path and query.
func (f *form) fill(query url.Values, r *http.Request, req reflect.Value) error {
	if f.all != nil {
		req.FieldByIndex(f.all).Set(reflect.ValueOf(query))
	}
	for i := range f.fields {
		fd := &f.fields[i]
		var text string
		switch fd.in {
		case "path":
			text = r.PathValue(fd.name)
		case "header":
			text = r.Header.Get(fd.name)
		default:
			text = cmp.Or(strings.TrimSpace(query.Get(fd.name)), fd.Tag.Get("default"))
		}
		if text == "" && fd.in != "path" {
			continue
		}
		if err := fd.set(req.FieldByIndex(fd.Index), text); err != nil {
			return err
		}
	}
	return nil
}

func (f *form) strict(query url.Values) error {
	if !f.spec.Strict {
		return nil
	}
	for key, values := range query {
		if !slices.ContainsFunc(f.query, func(p Parameter) bool { return p.Name == key }) {
			names := make([]string, 0, len(f.query))
			for _, p := range f.query {
				names = append(names, p.Name)
			}
			return errs.New(errs.Invalid, "%.40q: want %s", key, strings.Join(names, ", "))
		}
		if len(values) != 1 {
			return errs.New(errs.Invalid, "%s: given %d times, want it once", key, len(values))
		}
	}
	return nil
}

// set reads text into v.
func (fd *field) set(v reflect.Value, text string) error {
	wrong := func(want string) error {
		if of := fd.Tag.Get("of"); of != "" && fd.in == "path" {
			return errs.New(errs.NotFound, "no %s %.20s", of, text)
		}
		return errs.New(errs.Invalid, "%s %.60q: want %s", fd.name, text, want)
	}
	if fd.enum != nil && v.Kind() == reflect.String && !slices.Contains(fd.enum, text) {
		want := strings.Join(fd.enum, ", ")
		if len(fd.enum) > 1 {
			want = "one of " + want
		}
		return wrong(want)
	}
	switch {
	case v.Type() == thingType:
		id, err := thing.Parse(text)
		if err != nil && fd.in == "query" {
			return errs.Coded(errs.Invalid, "thing_malformed", "%s: %w", fd.name, err)
		} else if err != nil {
			return errs.Coded(errs.Invalid, "thing_malformed", "%w", err)
		}
		v.SetString(string(id))
	case reflect.PointerTo(v.Type()).Implements(unmarshaler):
		u, _ := v.Addr().Interface().(encoding.TextUnmarshaler)
		if err := u.UnmarshalText([]byte(text)); err != nil {
			return errs.New(errs.Invalid, "%s %.60q: %w", fd.name, text, err)
		}
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Int64 || v.Kind() == reflect.Int:
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err == nil && fd.ranged && (n < fd.min || n > fd.max):
			return errs.New(errs.Invalid, "%s %d: want %d to %d", fd.name, n, fd.min, fd.max)
		case err != nil && fd.ranged:
			return wrong(fmt.Sprintf("%d to %d", fd.min, fd.max))
		case err != nil:
			return wrong("a number")
		}
		v.SetInt(n)
	case v.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return wrong("true or false")
		}
		v.SetBool(b)
	default:
		return fmt.Errorf("op: %s of type %s", fd.name, v.Type())
	}
	return nil
}
