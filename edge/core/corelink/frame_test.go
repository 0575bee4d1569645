package corelink

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"kennel/edge/core"
	"kennel/edge/robot"
	"kennel/infra/api/live"
)

// fill gives every field below v a random value that the protocol can carry.
func fill(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Name != "_" && f.Tag.Get("json") != "-" {
				fill(r, v.Field(i))
			}
		}
		if x, ok := v.Addr().Interface().(*robot.Value); ok {
			for i := range x.Items {
				x.Items[i].Items = nil // lists hold no lists
			}
		}
	case reflect.Slice:
		n := r.IntN(5)
		if inner := v.Type().Elem(); n == 0 || inner == reflect.TypeFor[robot.Value]() && r.IntN(3) > 0 {
			return // nil: how an empty list decodes; values may hold values, but not for ever
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(r, v.Index(i))
		}
	case reflect.String:
		words := []string{"", "wheelL", "ä€😀", "\"\\\n\x00<&>\u2028", "x"}
		v.SetString(words[r.IntN(len(words))])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 1)
	case reflect.Float64:
		f := []float64{0, math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, -1.5, r.NormFloat64(),
			math.Float64frombits(r.Uint64())}[r.IntN(7)]
		if math.IsNaN(f) || math.IsInf(f, 0) {
			f = 1
		}
		v.SetFloat(f)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64() >> r.IntN(64) & (1<<v.Type().Bits() - 1))
	case reflect.Pointer:
		if r.IntN(2) == 1 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem())
		}
	case reflect.Int: // an id, a priority, a sign
		v.SetInt(int64(r.IntN(128)))
	case reflect.Int64:
		v.SetInt(int64(r.Uint64()) >> r.IntN(64))
	default:
		panic("a field of kind " + v.Kind().String() + ": teach fill about it")
	}
}

func all(t *testing.T, f func(t *testing.T, make func() Message)) {
	for name := range kinds {
		t.Run(name, func(t *testing.T) { f(t, func() Message { return empty(name) }) })
	}
	t.Run("raw", func(t *testing.T) { f(t, func() Message { return &Raw{} }) })
}

func randomMessage(r *rand.Rand, make func() Message) Message {
	m := make()
	fill(r, reflect.ValueOf(m).Elem())
	if raw, ok := m.(*Raw); ok {
		*raw = Raw{Name: "newer", Payload: []byte{0x61, byte('a' + r.IntN(26))}} // a text
	}
	return m
}

// TestBothFormsLoseNothing covers VEC-ARCH-04: struct, bytes and JSON are three forms of one value, converted along every way.
func TestBothFormsLoseNothing(t *testing.T) {
	all(t, func(t *testing.T, make func() Message) {
		for seed := range uint64(300) {
			m := randomMessage(rand.New(rand.NewPCG(seed, 1)), make)
			b, err := AppendFrame([]byte("before"), m)
			if err != nil {
				t.Fatalf("seed %d: %+v: %v", seed, m, err)
			}
			if !bytes.HasPrefix(b, []byte("before")) {
				t.Fatal("what was in dst is gone")
			}
			b = b[len("before"):]
			stream := bytes.NewReader(append(bytes.Clone(b), "after"...))
			back, err := readFrame(stream)
			if err != nil || stream.Len() != len("after") || !reflect.DeepEqual(back, m) {
				t.Fatalf("seed %d: bytes: got %+v (%d bytes left), %v; want %+v", seed, back, stream.Len(), err, m)
			}
			j, err := EncodeJSON(m)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			back, err = DecodeJSON(j)
			if err != nil || !reflect.DeepEqual(back, m) {
				t.Fatalf("seed %d: JSON %s: got %+v, %v; want %+v", seed, j, back, err, m)
			}
			again, err := AppendFrame(nil, back)
			if err != nil || !bytes.Equal(again, b) {
				t.Fatalf("seed %d: bytes after JSON: %x, %v; want %x", seed, again, err, b)
			}
		}
	})
}

func TestEveryPrefixIsShort(t *testing.T) {
	all(t, func(t *testing.T, make func() Message) {
		b, err := AppendFrame(nil, randomMessage(rand.New(rand.NewPCG(7, 7)), make))
		if err != nil {
			t.Fatal(err)
		}
		for n := range b {
			if _, err := readFrame(bytes.NewReader(b[:n])); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("stream of %d of %d bytes: %v; want an end of file", n, len(b), err)
			}
		}
	})
}

func TestWireLayout(t *testing.T) {
	for _, tc := range []struct {
		name string
		m    Message
		want string
	}{
		{"no fields", &Resume{}, "4b04 09000000 82 66726573756d65 a0"},
		{"number", &Ping{Nonce: 0x0102030405060708}, "4b04 16000000 82 6470696e67 a1 656e6f6e6365 1b0102030405060708"},
		{"text", &Fault{Code: 898, Text: "né"}, "4b04 19000000 82 656661756c74 a2 64636f6465 190382 6474657874 636ec3a9"},
		{"list", &Totals{Names: []string{"a", "b"}}, "4b04 14000000 82 66746f74616c73 a1 656e616d6573 8261616162"},
		{"absent and present", &Values{Values: []live.Value{{Slot: 5, AgeMS: -1, Infinite: -1, Text: new(string)}}},
			"4b04 27000000 82 6676616c756573 a3 677265717565737400 6561745f757300 6676616c756573 81 85 05 20 f6 20 60"},
		{"order", &Order{Request: 1, Order: core.Set("a", 1)}, "4b04 65000000 82 656f72646572 a3 6772657175657374 01 657374657073 81 81 a6 646e616d65 6161 6476657262 01" +
			"6576616c7565 a2 6474797065 01 666e756d626572 f93c00 657370656564 f90000 6774696d655f6e73 00 6b61646170746976655f6e73 00 66666f725f6d73 00"},
		{"unknown", &Raw{Name: "newer", Payload: []byte{9}}, "4b04 08000000 82 656e65776572 09"},
	} {
		want, err := hex.DecodeString(string(bytes.ReplaceAll([]byte(tc.want), []byte(" "), nil)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := AppendFrame(nil, tc.m); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, %v; want %x", tc.name, got, err, want)
		}
	}
	if j, err := EncodeJSON(&Fault{Code: 898, Text: "x"}); err != nil || string(j) != `{"type":"fault","body":{"code":898,"text":"x"}}` {
		t.Errorf("JSON %s, %v", j, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, frame string
		want        error
	}{
		{"another magic", "4c01", ErrMalformed},
		{"another version", "4b03", ErrVersion},
		{"too long", "4b04 01000100", ErrMalformed},
		{"no payload", "4b04 00000000", ErrMalformed},
		{"bytes too many", "4b04 0a000000 82 66726573756d65 a0 00", ErrMalformed},
		{"ends early", "4b04 08000000 82 66726573756d65", ErrMalformed},
		{"no message", "4b04 08000000 81 66726573756d65", ErrMalformed},
		{"unknown field", "4b04 0c000000 82 66726573756d65 a1 6178 01", ErrMalformed},
		{"a field twice", "4b04 18000000 82 6470696e67 a2 656e6f6e636501 656e6f6e636502", ErrMalformed},
		{"number for a text", "4b04 0f000000 82 6468616c74 a1 66726561736f6e 01", ErrMalformed},
		{"beyond the field", "4b04 13000000 82 656661756c74 a1 64636f6465 1a00010000", ErrMalformed},
		{"no number", "4b04 17000000 82 66746f74616c73 a1 6676616c756573 81 f97e00", ErrMalformed},
		{"infinite", "4b04 15000000 82 66746f74616c73 a1 6676616c756573 81 f97c00", ErrMalformed},
		{"list of more than there is", "4b04 14000000 82 66746f74616c73 a1 6676616c756573 990800", ErrMalformed},
		{"endless list", "4b04 13000000 82 66746f74616c73 a1 6676616c756573 9f ff", ErrMalformed},
		{"text that is no UTF-8", "4b04 10000000 82 6468616c74 a1 66726561736f6e 61ff", ErrMalformed},
	} {
		b, err := hex.DecodeString(string(bytes.ReplaceAll([]byte(tc.frame), []byte(" "), nil)))
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > header { // lengths are counted here, so that only what the line names is wrong
			b[2] = byte(len(b) - header)
		}
		if m, err := readFrame(bytes.NewReader(b)); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, %v; want %v", tc.name, m, err, tc.want)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	nan, text, long := math.NaN(), "\xff", string(make([]byte, 70000))
	for name, m := range map[string]Message{
		"update of no number":   &Update{Values: []live.Value{{Number: &nan}}},
		"update of no UTF-8":    &Update{Values: []live.Value{{}, {Text: &text}}},
		"update of a long text": &Update{Values: []live.Value{{Text: &long}}},
		"update of a long list": &Update{Values: make([]live.Value, 2049)},
		"no number":             &State{Temperature: math.NaN()},
		"infinite":              &Totals{Values: []float64{math.Inf(1)}},
		"no UTF-8":              &Halt{Reason: "\xff"},
		"long list":             &Totals{Values: make([]float64, 2049)},
		"long text":             &Halt{Reason: string(make([]byte, 70000))},
		"long payload":          &Raw{Name: "newer", Payload: append([]byte{0x5a, 0, 1, 0, 0}, make([]byte, MaxPayload)...)},
	} {
		if b, err := AppendFrame([]byte{1}, m); !errors.Is(err, ErrMalformed) || len(b) != 1 {
			t.Errorf("%s: %d bytes, %v; want dst as it was, ErrMalformed", name, len(b), err)
		}
		if _, err := EncodeJSON(m); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s as JSON: %v; want ErrMalformed", name, err)
		}
	}
	for _, j := range []string{``, `null`, `[]`, `{"type":"nothing","body":{}}`, `{"type":"ping","body":{"nonce":1,"more":2}}`,
		`{"type":"ping","body":{"nonce":-1}}`,
		`{"type":"ping","body":{"nonce":1}} x`, `{"type":"ping"}`, `{"type":"fault","body":{"code":65536}}`} {
		if m, err := DecodeJSON([]byte(j)); !errors.Is(err, ErrMalformed) {
			t.Errorf("JSON %s: %v, %v; want ErrMalformed", j, m, err)
		}
	}
}

func seeds(f *testing.F, add func(Message)) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		add(randomMessage(r, func() Message { return empty(name) }))
	}
	add(&Raw{Name: "newer", Payload: []byte{9}})
}

// FuzzReadFrame covers the frame and every message decoder: what is read encodes to bytes that read as the same, and so does its JSON.
func FuzzReadFrame(f *testing.F) {
	seeds(f, func(m Message) { b, _ := AppendFrame(nil, m); f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := readFrame(bytes.NewReader(b))
		if err != nil {
			return
		}
		again, err := AppendFrame(nil, m)
		if err != nil {
			t.Fatalf("%+v does not encode: %v", m, err)
		}
		if back, err := readFrame(bytes.NewReader(again)); err != nil || !same(back, m) {
			t.Fatalf("%+v, then %+v, %v", m, back, err)
		}
		j, err := EncodeJSON(m)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DecodeJSON(j); err != nil || !same(back, m) {
			t.Fatalf("JSON %s is %+v, %v; want %+v", j, back, err, m)
		}
	})
}

// same reports whether two messages say the same: an empty list is an absent one.
func same(a, b Message) bool {
	x, xerr := AppendFrame(nil, a)
	y, yerr := AppendFrame(nil, b)
	return xerr == nil && yerr == nil && bytes.Equal(x, y)
}

// FuzzDecodeJSON: what decodes is stable from then on.
func FuzzDecodeJSON(f *testing.F) {
	seeds(f, func(m Message) { b, _ := EncodeJSON(m); f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeJSON(b)
		if err != nil {
			return
		}
		j, err := EncodeJSON(m)
		if err != nil {
			t.Fatalf("%s decodes to %+v, which does not encode: %v", b, m, err)
		}
		if back, err := DecodeJSON(j); err != nil || !same(back, m) {
			t.Fatalf("%s: %+v, then %+v, %v", b, m, back, err)
		}
	})
}
