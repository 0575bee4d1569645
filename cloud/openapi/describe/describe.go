// Package describe writes the OpenAPI 3.1 description of the public API: routes and who may do what from the table at the doors (package
// access), bodies and answers from the Go types that the endpoints read and write, with the comments of their fields.
//
// Its result is cloud/openapi/openapi.json, which kenneld serves; gen writes it, and a test finds out when it is old.
package describe

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"kennel/cloud/access"
	"kennel/cloud/openapi/operations"
	"kennel/infra/api/envelope"
	"kennel/infra/api/events"
	"kennel/infra/kit/kithttp"
	"kennel/infra/op"
	"kennel/infra/thing"
)

const module = "kennel"

// object is a JSON object.
type object = map[string]any

var inPath = regexp.MustCompile(`\{([a-z]+)\}`)

// Build returns the description of the declared operations, and of those that are none. root is the folder of the module, whose comments it reads.
func Build(root string, declared op.List) ([]byte, error) {
	b := &builder{schemas: object{}, types: map[string]reflect.Type{}, read: map[string]bool{}}
	b.reflector = &jsonschema.Reflector{Anonymous: true, Mapper: mapped, Namer: b.name, CommentMap: map[string]string{}}
	for _, folder := range []string{"certs", "cloud", "jdocs", "ota", "infra/kit", "speech/intent"} {
		if err := b.comments(root, folder); err != nil {
			return nil, err
		}
	}
	paths, tags := object{}, []object{}
	b.schemaOf(kithttp.Problem{})
	all := operations.All(declared)
	for _, tag := range operations.Tags(all) {
		tags = append(tags, object{"name": tag})
	}
	rules := maps.Clone(access.HTTP)
	for _, o := range declared { // the table itself is made of them
		rules[o.Route] = access.RuleOf(o)
	}
	for _, op := range all {
		rule, ok := rules[op.Route]
		if !ok {
			return nil, fmt.Errorf("%s is described, but in no access table", op.Route)
		}
		method, path, _ := strings.Cut(op.Route, " ")
		item, ok := paths[path].(object)
		if !ok {
			item = object{}
			paths[path] = item
		}
		method = strings.ToLower(method)
		if item[method] != nil {
			return nil, fmt.Errorf("%s is described twice", op.Route)
		}
		o, err := b.operation(op, rule)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op.Route, err)
		}
		item[method] = o
	}
	for name, def := range b.schemas { // answers may grow; what is sent to us may not
		if d := def.(object); !b.read[name] && d["additionalProperties"] == false {
			delete(d, "additionalProperties")
		}
	}
	doc := object{
		"openapi": "3.1.1",
		"info": object{"title": "Kennel", "version": "1", "summary": "The cloud that companion robots phone home to.",
			"description": "JSON in, JSON out. A field that is not described is refused; answers may come to have more. Times are RFC 3339. Errors have one form, Problem, whose kind is for programs, with the status it stands for."},
		"servers": []object{{"url": "/"}},
		"tags":    tags,
		"paths":   paths,
		"components": object{
			"schemas": b.schemas,
			"securitySchemes": object{
				"session": object{"type": "http", "scheme": "bearer", "description": "The token that POST /v1/login answers. Browsers have it as a cookie, and then must call from pages of the same site."},
			},
			"responses": object{"Problem": object{"description": "What was wrong, where, and what was expected.",
				"headers": object{"Retry-After": object{"description": "Seconds, where trying again helps.", "schema": object{"type": "integer"}}},
				"content": object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}}}},
		},
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(doc); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

type builder struct {
	reflector *jsonschema.Reflector
	schemas   object
	types     map[string]reflect.Type
	read      map[string]bool // schemas of what is sent to us
}

// operation describes one route.
func (b *builder) operation(op operations.Operation, rule access.Rule) (object, error) {
	method, path, _ := strings.Cut(op.Route, " ")
	o := object{"operationId": operationID(method, path), "tags": []string{op.Tag}, "summary": op.Summary}
	about := "Decided by: " + rule.By + "."
	if len(rule.Roles) > 0 {
		words := make([]string, 0, len(rule.Roles))
		for _, r := range rule.Roles {
			words = append(words, string(r))
		}
		slices.Sort(words)
		about = "Roles: " + strings.Join(words, ", ") + "."
		if rule.Own {
			about += " An owner only for robots that are theirs: others answer as unknown ones."
		}
		o["x-roles"], o["x-own"] = words, rule.Own
		o["security"] = []object{{"session": []string{}}}
	} else {
		o["x-decided-by"], o["security"] = rule.By, []object{}
	}
	o["description"] = about
	if len(op.Commands) > 0 {
		o["x-commands"] = op.Commands
	}

	parameters := []object{}
	for _, m := range inPath.FindAllStringSubmatch(path, -1) {
		p := operations.PathParameter(m[1])
		parameters = append(parameters, object{"name": p.Name, "in": "path", "required": true, "description": p.About, "schema": p.Schema})
	}
	for _, q := range op.Query {
		parameters = append(parameters, object{"name": q.Name, "in": "query", "description": q.About, "schema": q.Schema})
	}
	if len(parameters) > 0 {
		o["parameters"] = parameters
	}
	if op.BodyMedia != "" {
		o["requestBody"] = object{"required": true, "content": object{op.BodyMedia: object{}}}
	} else if op.Body != nil {
		o["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": b.sent(op.Body)}}}
	}

	problem := object{"$ref": "#/components/responses/Problem"}
	responses := object{"default": problem}
	if len(rule.Roles) > 0 {
		responses["401"], responses["403"] = problem, problem
	}
	if strings.Contains(path, "{") {
		responses["404"] = problem
	}
	status := op.Status
	if status == 0 {
		status = http.StatusOK
		if op.Answer == nil && op.AnswerMedia == "" {
			status = http.StatusNoContent
		}
	}
	answer := object{"description": http.StatusText(status)}
	if op.AnswerMedia != "" {
		answer["content"] = object{op.AnswerMedia: object{}}
	} else if op.Answer != nil {
		answer["content"] = object{"application/json": object{"schema": b.schemaOf(op.Answer)}}
	}
	responses[strconv.Itoa(status)] = answer
	for code, v := range op.Also {
		responses[strconv.Itoa(code)] = object{"description": http.StatusText(code), "content": object{"application/json": object{"schema": b.schemaOf(v)}}}
	}
	o["responses"] = responses
	return o, nil
}

// operationID makes a name of a route: getThingsThingDoctor.
func operationID(method, path string) string {
	id := strings.ToLower(method)
	for _, part := range strings.FieldsFunc(strings.TrimPrefix(path, "/v1"), func(r rune) bool { return strings.ContainsRune("/{}.-_", r) }) {
		id += strings.ToUpper(part[:1]) + part[1:]
	}
	return id
}

// comments reads the comments of a folder's types, which become descriptions.
func (b *builder) comments(root, folder string) error {
	found := jsonschema.Reflector{CommentMap: map[string]string{}}
	if err := found.AddGoComments("", filepath.Join(root, folder)); err != nil {
		return fmt.Errorf("comments of %s: %w", folder, err)
	}
	for key, text := range found.CommentMap { // by folder; they are looked for by import path
		b.reflector.CommentMap[module+strings.TrimPrefix(key, root)] = strings.Join(strings.Fields(text), " ")
	}
	return nil
}

// mapped are types whose JSON is not what their Go says.
func mapped(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[thing.ID]():
		return &jsonschema.Schema{Type: "string", Description: "Id of a thing, such as vic:00e20100."}
	case reflect.TypeFor[envelope.Millis]():
		return &jsonschema.Schema{Type: "integer", Description: "Milliseconds."}
	case reflect.TypeFor[events.Int]():
		return &jsonschema.Schema{Extras: object{"type": []string{"integer", "null"}}}
	}
	if t.Kind() == reflect.Struct && t.PkgPath() != "time" && t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return &jsonschema.Schema{Type: "string"}
	}
	return nil
}

// unprefixed holds the package whose type has a name for itself that several types have. The others carry their package's.
var unprefixed = map[string]string{
	"Body": "infra/api/status", "Change": "cloud/identity/account/accountapi", "Channel": "cloud/updates/artifact", "Count": "cloud/fleet/registry", "Counts": "cloud/fleet/registry",
	"Difference": "jdocs/people", "Draft": "cloud/fleet/webhook/webhookapi", "Group": "cloud/telemetry/crash", "ID": "cloud/identity/account", "Kind": "cloud/fleet/bulk", "Level": "cloud/fleet/registry",
	"Line": "infra/api/live", "Name": "jdocs", "Owner": "infra/api/live", "Part": "infra/api/live", "Phase": "ota", "Problem": "infra/kit/kithttp", "Record": "cloud/identity/account",
	"Report": "cloud/fleet/registry", "Request": "cloud/fleet/cohort/cohortapi", "Result": "cloud/fleet/bulk", "Robot": "cloud/identity/owner/ownerapi", "Session": "cloud/identity/account/accountapi",
	"State": "cloud/telemetry/health", "Thing": "cloud/fleet/registry", "Version": "cloud/telemetry/health", "Wanted": "cloud/telemetry/alert",
}

// name returns what a Go type is called in the description. It panics if two types would have one name.
func (b *builder) name(t reflect.Type) string {
	name := t.Name()
	if name == "" || t.PkgPath() == "" {
		return name
	}
	if s, ok := strings.CutSuffix(name, "JSON"); ok && s != "" {
		name = strings.ToUpper(s[:1]) + s[1:]
	}
	if pkg, shared := unprefixed[name]; shared && t.PkgPath() != module+"/"+pkg {
		prefix := strings.TrimSuffix(t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:], "api")
		name = strings.ToUpper(prefix[:1]) + prefix[1:] + name
	}
	if other, taken := b.types[name]; taken && other != t {
		panic(fmt.Sprintf("describe: %s and %s are both named %s: name the one that keeps it in unprefixed", t, other, name))
	}
	b.types[name] = t
	return name
}

// sent is schemaOf for what is sent to us.
func (b *builder) sent(v any) object {
	before := b.schemas
	b.schemas = object{}
	s := b.schema(v, true)
	for name, def := range b.schemas {
		b.read[name] = true
		before[name] = def
	}
	b.schemas = before
	return s
}

// schemaOf returns the schema of a value's type, by reference where it has a name.
func (b *builder) schemaOf(v any) object { return b.schema(v, false) }

func (b *builder) schema(v any, sent bool) object {
	s := b.reflector.ReflectFromType(reflect.TypeOf(v))
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // what the library made
	}
	var out object
	if err := json.Unmarshal(bytes.ReplaceAll(raw, []byte("#/$defs/"), []byte("#/components/schemas/")), &out); err != nil {
		panic(err)
	}
	defs, _ := out["$defs"].(object)
	for name, def := range defs {
		if d, ok := def.(object); ok {
			b.nullable(name, d, sent)
			b.schemas[name] = d
		}
	}
	delete(out, "$defs")
	delete(out, "$schema")
	return out
}

// nullable says of pointers that they may be null: in answers those that are always there, in what is sent all.
func (b *builder) nullable(name string, def object, sent bool) {
	t := b.types[name]
	props, _ := def["properties"].(object)
	if t == nil || t.Kind() != reflect.Struct || props == nil {
		return
	}
	for _, f := range reflect.VisibleFields(t) {
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		p, ok := props[key].(object)
		if !ok || f.Type.Kind() != reflect.Pointer || !sent && (strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")) {
			continue
		}
		if kind, plain := p["type"].(string); plain {
			p["type"] = []string{kind, "null"}
			continue
		}
		props[key] = object{"anyOf": []any{maps.Clone(p), object{"type": "null"}}}
	}
}
