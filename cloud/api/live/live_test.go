package live

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
)

func num(v float64) *float64 { return &v }
func text(s string) *string  { return &s }

var whole = Frame{V: 1,
	Tree: &Tree{Body: "vector", Nodes: []Node{{Full: "robot", Compact: "robot", Kind: "device", Interface: "Identity"},
		{Full: "robot.body.head.pitch", Compact: "headPitch", Kind: "device", Interface: "RotationalMotor", Actuator: true,
			Slots: []Slot{{ID: 7, Name: "angle", Type: "float", Unit: "rad", Min: num(-0.78), Max: num(0.38)}}}}},
	Values: []Value{{Slot: 7, AgeMS: 4, Number: num(0)}, {Slot: 8, AgeMS: 31, Infinite: 1}, {Slot: 1, AgeMS: -1, Text: text("Vector")}},
	Motion: &Motion{X: 0.1, Speed: 0.05, Moving: true, Way: 3.5, Treads: "running", Stop: []string{"halted"}, Owners: []Owner{{"wheelL", "agentd", 50}}},
}

func TestRoundTrip(t *testing.T) {
	b, err := whole.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseFrame(b); err != nil || !reflect.DeepEqual(got, whole) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, whole)
	}
	if b, err := (Frame{}).Encode(); err != nil || string(b) != `{"v":1,"values":[]}` {
		t.Errorf("%s, %v", b, err)
	}
	if b, err := (Look{ForMS: 15000}).Encode(); err != nil || string(b) != `{"v":1,"for_ms":15000}` {
		t.Errorf("%s, %v", b, err)
	}
	if l, err := ParseLook([]byte(`{"v":1,"for_ms":99999999,"more":1}`)); err != nil || l.For() != MaxLook {
		t.Errorf("%+v, %v: want it bounded", l, err)
	}
	if l, err := ParseLook([]byte(`{"v":1,"for_ms":1500}`)); err != nil || l.For() != 1500*time.Millisecond {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestRefused(t *testing.T) {
	for _, s := range []string{``, `{}`, `{"v":2,"for_ms":1}`, `{"v":1}`, `{"v":1,"for_ms":-4}`, `[]`} {
		if l, err := ParseLook([]byte(s)); err == nil {
			t.Errorf("look %s was taken: %+v", s, l)
		}
	}
	for _, s := range []string{``, `{}`, `{"v":2,"values":[]}`, `{"v":1,"values":[{"slot":1,"age_ms":0}]}`, `{"v":1,"values":[{"slot":-1,"age_ms":0,"number":1}]}`,
		`{"v":1,"values":[{"slot":1,"age_ms":-2,"number":1}]}`, `{"v":1,"values":[{"slot":1,"age_ms":0,"number":1,"infinite":1}]}`,
		`{"v":1,"values":[{"slot":1,"age_ms":0,"infinite":2}]}`, `{"v":1,"values":[{"slot":1,"age_ms":0,"text":"` + strings.Repeat("x", 201) + `"}]}`,
		`{"v":1,"values":[{"slot":1,"age_ms":0,"text":"\u0000"}]}`, `{"v":1,"values":[],"tree":{"nodes":[{"full":""}]}}`,
		`{"v":1,"values":[],"tree":{"nodes":[{"full":"robot","slots":[{"id":70000}]}]}}`, `{"v":1,"values":[],"motion":{"treads":"\u0000"}}`, "\xff",
		`{"v":1,"values":[` + strings.Repeat(`{"slot":1,"age_ms":0,"number":1},`, 3000) + `{"slot":1,"age_ms":0,"number":1}]}`,
		`{"v":1,"values":[]` + strings.Repeat(" ", MaxFrame) + `}`} {
		if f, err := ParseFrame([]byte(s)); err == nil {
			t.Errorf("frame %.80s was taken: %+v", s, f)
		}
	}
}

// FuzzFrame: what is taken is stable, and can be kept.
func FuzzFrame(f *testing.F) {
	b, _ := whole.Encode()
	f.Add(b)
	f.Add([]byte(`{"v":1,"values":[{"slot":1,"age_ms":0,"text":""}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseFrame(b)
		if err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(again, []byte(`\u0000`)) {
			t.Fatalf("U+0000 in %s", again)
		}
		if len(again) > MaxFrame {
			return // what was short may need escapes
		}
		if back, err := ParseFrame(again); err != nil {
			t.Fatalf("%s: %+v, %v", again, back, err)
		}
	})
}

// FuzzLook: what is taken is within the bounds.
func FuzzLook(f *testing.F) {
	f.Add([]byte(`{"v":1,"for_ms":15000}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, err := ParseLook(b); err == nil && (l.For() <= 0 || l.For() > MaxLook) {
			t.Fatalf("%+v", l)
		}
	})
}
