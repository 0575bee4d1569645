package plane

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestParse: a map is read as it was written, and each mistake is named with its place and what was expected.
func TestParse(t *testing.T) {
	m, err := Parse([]byte(`{"name":"yard","start":[0,0,1.5],"slip":0.1,
		"walls":[{"from":[-1,1],"to":[1,1]}],
		"cliffs":[{"corners":[[0.5,-1],[1,-1],[1,-0.5]],"drop":0.3}],
		"objects":[{"name":"cube","shape":"box","at":[0.3,0.3,0],"size":[0.044,0.044]},{"shape":"disc","at":[-0.4,0,0],"radius":0.05,"fixed":true}],
		"charger":{"at":[-0.8,0,0]}}`))
	if err != nil || m.Name != "yard" || len(m.Walls) != 1 || m.Cliffs[0].Corners[2] != (Vec{1, -0.5}) || !m.Objects[1].Fixed ||
		m.Charger.At != (Pose{-0.8, 0, 0}) {
		t.Fatalf("%+v, %v", m, err)
	}
	for _, tc := range []struct{ text, want string }{
		{``, "EOF"},
		{`[]`, "want an object"},
		{`{"walls":7}`, "walls is number"},
		{`{"name":7}`, "want a string"},
		{`{"slip":"a"}`, "want a number"},
		{`{"colour":"red"}`, `unknown field "colour"`},
		{`{} {}`, "data after the map"},
		{`{"start":[1,2]}`, "want numbers [x, y, theta]"},
		{`{"start":[1,2,7]}`, "start[2] is 7, want -6.28"},
		{`{"slip":0.6}`, "slip is 0.6, want 0 to 0.5"},
		{`{"walls":[{"from":[1,1],"to":[1,1]}]}`, "walls[0] is shorter than 1 mm"},
		{`{"walls":[{"from":[1,1,1],"to":[1,1]}]}`, "want numbers [x, y]"},
		{`{"walls":[{"from":[1,1],"to":[1,1e9]}]}`, "walls[0].to[1] is 1e+09, want -1000 to 1000"},
		{`{"cliffs":[{"corners":[[0,0],[1,1]]}]}`, "has 2 corners, want 3 or more"},
		{`{"cliffs":[{"corners":[[0,0],[1,1],[2,2]]}]}`, "has no area"},
		{`{"objects":[{"shape":"ball","at":[0,0,0]}]}`, `is "ball", want box or disc`},
		{`{"objects":[{"shape":"box","at":[0,0,0]}]}`, "objects[0].size[0] is 0"},
		{`{"objects":[{"shape":"disc","at":[0,0,0],"radius":-1}]}`, "objects[0].radius is -1"},
		{`{"floor":3}`, "floor is 3, want 0 to 2"},
		{`{"lines":[{"from":[1,1],"to":[1,1]}]}`, "lines[0] is shorter than 1 mm"},
		{`{"lines":[{"from":[1,1],"to":[1,2],"width":-1}]}`, "lines[0].width is -1"},
		{`{"lines":[{"from":[1,1],"to":[1,2],"shade":9}]}`, "lines[0].shade is 9"},
		{`{"charger":{"at":[0,0,9]}}`, "charger.at[2] is 9"},
	} {
		if _, err := Parse([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.text, err, tc.want)
		}
	}
}

// TestBuiltin: those there are can be lived in, and are written as they are read.
func TestBuiltin(t *testing.T) {
	if _, err := Builtin("moon"); err == nil || !strings.Contains(err.Error(), "empty, habitat, room, table") {
		t.Errorf("%v, want the names there are", err)
	}
	for _, name := range Names() {
		m, err := Builtin(name)
		if err != nil || m.Name != name {
			t.Fatal(m, err)
		}
		if _, err := New(m, rover(), 1); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Parse(b); err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%s: %s is read as %+v, %v", name, b, again, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range Names() {
		m, _ := Builtin(name)
		b, _ := json.Marshal(m)
		f.Add(b)
	}
	f.Add([]byte(`{"objects":[{"shape":"disc","at":[0.1,0,0],"radius":0.03}],"slip":0.5}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if twice, err := json.Marshal(again); err != nil || !bytes.Equal(twice, text) {
			t.Fatalf("%s became %s, %v", text, twice, err)
		}
		w, err := New(m, rover(), 1)
		if err != nil {
			return // the robot's place is occupied
		}
		for range 5 {
			w.Step(20*time.Millisecond, 0.2, 0.25)
		}
		w.State()
	})
}
