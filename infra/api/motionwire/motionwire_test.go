package motionwire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestRefuses: what no robot and no cloud of ours says is refused, with the place.
func TestRefuses(t *testing.T) {
	sum := Sum([]byte("hop"))
	many := make([]string, MaxMotions+1)
	for i := range many {
		many[i] = fmt.Sprintf(`{"name":"m%d","sha256":"%s"}`, i, sum)
	}
	for _, tc := range []struct {
		name, json, want string
		parse            func([]byte) error
	}{
		{"have", `{"v":2}`, "version 2", func(b []byte) error { _, err := ParseHave(b); return err }},
		{"have with a tail", `{"v":1} {}`, "nothing behind", func(b []byte) error { _, err := ParseHave(b); return err }},
		{"ref", `{"name":"../hop","sha256":"` + sum + `"}`, "want a name", func(b []byte) error { _, err := ParseRef(b); return err }},
		{"ref", `{"name":"hop","sha256":"abc"}`, "64 hexadecimal digits", func(b []byte) error { _, err := ParseRef(b); return err }},
		{"want", `{"v":1,"motions":[` + strings.Join(many, ",") + `]}`, "at most 40", func(b []byte) error { _, err := ParseWant(b); return err }},
		{"file", `{"v":1,"file":7}`, "byte", func(b []byte) error { _, err := ParseFile(b); return err }},
		{"verdict", `{"v":1,"name":"hop","sha256":"` + sum + `","motion":{"joints":["a"],"keyframes":[{"at_ms":0,"values":[]}]}}`, "keyframe 0: 0 values: want 1", func(b []byte) error { _, err := ParseVerdict(b); return err }},
		{"edited", `{"v":1,"joints":[],"keyframes":[{"at_ms":5,"values":[]}]}`, "keyframe 0: at_ms 5", func(b []byte) error { _, err := ParseEdited(b); return err }},
		{"body", `{"v":1,"ending":"mtn","links":[{"parent":0}]}`, "link 0: parent 0", func(b []byte) error { _, err := ParseBody(b); return err }},
		{"body", `{"v":1,"ending":"mtn","bones":[{"link":3}]}`, "bone 0: link 3", func(b []byte) error { _, err := ParseBody(b); return err }},
		{"body", `{"v":1,"ending":"../x"}`, `"../x"`, func(b []byte) error { _, err := ParseBody(b); return err }},
	} {
		if err := tc.parse([]byte(tc.json)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s %.80s: %v, want %q", tc.name, tc.json, err, tc.want)
		}
	}
	for name, good := range map[string]bool{"nod_twice": true, "a": true, "": false, "A": false, "1a": false, "a b": false, "a/b": false, strings.Repeat("a", 40): true, strings.Repeat("a", 41): false} {
		if IsName(name) != good {
			t.Errorf("%q: %v", name, !good)
		}
	}
}

// FuzzParse: what is read is read the same when it is written again.
func FuzzParse(f *testing.F) {
	sum := Sum([]byte("hop"))
	f.Add([]byte(`{"v":1,"body":"x"}`))
	f.Add([]byte(`{"v":1,"body":true,"motions":[{"name":"hop","sha256":"` + sum + `","judge":true}]}`))
	f.Add([]byte(`{"v":1,"name":"hop","sha256":"` + sum + `","kept":true,"motion":{"name":"hop","joints":["a"],"keyframes":[{"at_ms":0,"values":[1]},{"at_ms":16,"values":[-1]}]},"file":"aGk="}`))
	f.Add([]byte(`{"v":1,"model":"toy","ending":"mtn","links":[{"parent":-1,"at":[0,0,1]}],"bones":[{"link":0,"wide":0.1}],"motions":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if w, err := ParseWant(b); err == nil {
			again(t, w, ParseWant)
		}
		if v, err := ParseVerdict(b); err == nil {
			again(t, v, ParseVerdict)
		}
		if e, err := ParseEdited(b); err == nil {
			again(t, e, ParseEdited)
		}
		if o, err := ParseBody(b); err == nil {
			again(t, o, ParseBody)
		}
	})
}

func again[T any](t *testing.T, v T, parse func([]byte) (T, error)) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > MaxFile { // escapes made it longer
		return
	}
	x, err := parse(b)
	if err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	if c, err := json.Marshal(x); err != nil || !bytes.Equal(b, c) {
		t.Errorf("%s\n%s\n%v", b, c, err)
	}
}
