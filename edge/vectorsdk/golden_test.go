package vectorsdk_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"kennel/edge/vectorsdk"
	"kennel/infra/testwait"
	"kennel/jdocs"
)

var rewrite = flag.Bool("update", false, "write testdata/answers.txt again")

const goldenFile = "testdata/answers.txt"

// wild are fields whose value is another each time.
var wild = []string{"doc_version", "battery_volts"}

// TestGoldenAnswers: every call that works and has one answer gives it as JSON with all of its fields, by the original's names, as testdata/answers.txt has it: with a
// good token, and without control (VEC-TRN-03, part of VEC-CTL-07). The answers of the calls with control are in the tests of their parts.
func TestGoldenAnswers(t *testing.T) {
	t.Parallel()
	d := newStudio(t).desk
	d.beside(t)
	testwait.Until(t, patience, "the first push", testwait.Holds(func() bool { return d.shelf.get(jdocs.RobotSettings).Version == 1 }))
	done, _ := vectorsdk.Calls()
	got := map[string]string{}
	var out strings.Builder
	out.WriteString("# What each call answers to a program without control: name, request, answer. * is a value that varies. go test -update writes it.\n")
	for _, m := range methods() {
		name := string(m.Name())
		if !slices.Contains(done, name) || m.IsStreamingServer() || name == "UserAuthentication" { // TestGoldenJSON has that
			continue
		}
		q := valid(name)
		if q == nil {
			q = made(m.Input())
		}
		request, err := vectorsdk.Encode(q)
		if err != nil {
			t.Fatal(err)
		}
		status, kind, body := d.post(t, "all", vectorsdk.PathOf(name), string(request))
		if status != http.StatusOK || kind != "application/json" {
			t.Errorf("%s: %d %s %s", name, status, kind, body)
			continue
		}
		var answer map[string]any
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Errorf("%s: %v in %s", name, err, body)
			continue
		}
		complete(t, name, m.Output(), answer)
		mask(answer)
		got[name] = compactJSON(t, answer)
		fmt.Fprintf(&out, "%s %s\n\t%s\n", name, compactJSON(t, json.RawMessage(request)), got[name])
	}
	if *rewrite {
		if err := os.WriteFile(goldenFile, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	name := ""
	for line := range strings.Lines(string(b)) {
		switch line = strings.TrimSuffix(line, "\n"); {
		case strings.HasPrefix(line, "\t"):
			want[name] = line[1:]
		case !strings.HasPrefix(line, "#"):
			name, _, _ = strings.Cut(line, " ")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] == "" {
			t.Errorf("%s has no answer, want %s", name, want[name])
		}
	}
	for name, answer := range got {
		if answer != want[name] {
			t.Errorf("%s answers\n%s\nwant\n%s", name, answer, want[name])
		}
	}
}

// complete checks that an answer has the fields of its type, each by its own name; a message of which nothing is said may be null.
func complete(t *testing.T, name string, d protoreflect.MessageDescriptor, answer map[string]any) {
	t.Helper()
	fields := map[string]protoreflect.FieldDescriptor{}
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		fields[string(f.Name())] = f
		if _, ok := answer[string(f.Name())]; !ok && f.ContainingOneof() == nil {
			t.Errorf("%s: no %s in %s", name, f.Name(), d.Name())
		}
	}
	for key, v := range answer {
		f := fields[key]
		if f == nil {
			t.Errorf("%s: %s is no field of %s", name, key, d.Name())
			continue
		}
		if list, ok := v.([]any); ok && f.IsList() && f.Message() != nil {
			for _, v := range list {
				if m, ok := v.(map[string]any); ok {
					complete(t, name, f.Message(), m)
				}
			}
		}
		if m, ok := v.(map[string]any); ok && f.Message() != nil {
			complete(t, name, f.Message(), m)
		}
		if _, ok := v.(float64); f.Enum() != nil && !f.IsList() && !ok {
			t.Errorf("%s: %s is %v, want a number", name, key, v)
		}
		if _, ok := v.(string); slices.Contains([]protoreflect.Kind{protoreflect.Int64Kind, protoreflect.Uint64Kind}, f.Kind()) && !f.IsList() && !ok {
			t.Errorf("%s: %s is %v, want the number as text", name, key, v)
		}
	}
}

// mask replaces the values that vary.
func mask(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			if slices.Contains(wild, key) {
				v[key] = "*"
			}
			mask(v[key])
		}
	case []any:
		for _, x := range v {
			mask(x)
		}
	}
}

// compactJSON writes v on one line, its keys in order.
func compactJSON(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	if raw, ok := v.(json.RawMessage); ok { // written as it was
		var m any
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		return compactJSON(t, m)
	}
	return strings.TrimSpace(b.String())
}
