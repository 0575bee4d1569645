package corelink

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"kennel/infra/api/live"
)

// fill gives every field below v a random value that the protocol can carry.
func fill(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	case reflect.Slice:
		n := r.IntN(5)
		if n == 0 {
			return // nil: how an empty list decodes
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
		f := []float64{0, math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, -1.5, r.NormFloat64(), math.Float64frombits(r.Uint64())}[r.IntN(7)]
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
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { f(t, k.make) })
	}
	t.Run("raw", func(t *testing.T) { f(t, func() Message { return &Raw{Number: 999} }) })
}

func randomMessage(r *rand.Rand, make func() Message) Message {
	m := make()
	fill(r, reflect.ValueOf(m).Elem())
	if raw, ok := m.(*Raw); ok {
		raw.Number = 999
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
			back, n, err := ParseFrame(append(bytes.Clone(b), "after"...))
			if err != nil || n != len(b) || !reflect.DeepEqual(back, m) {
				t.Fatalf("seed %d: bytes: got %+v (%d of %d bytes), %v; want %+v", seed, back, n, len(b), err, m)
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
			r, err := readFrame(bytes.NewReader(b))
			if err != nil || !reflect.DeepEqual(r, m) {
				t.Fatalf("seed %d: from a stream: %+v, %v; want %+v", seed, r, err, m)
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
			if _, took, err := ParseFrame(b[:n]); !errors.Is(err, ErrShort) || took != 0 {
				t.Fatalf("%d of %d bytes: took %d, %v; want ErrShort", n, len(b), took, err)
			}
			if _, err := readFrame(bytes.NewReader(b[:n])); err == nil || errors.Is(err, ErrShort) {
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
		{"no fields", &Resume{}, "4b02 4200 00000000"},
		{"number", &Ping{Nonce: 0x0102030405060708}, "4b02 4400 08000000 0807060504030201"},
		{"text", &Fault{Code: 898, Text: "né"}, "4b02 0400 07000000 8203 0300 6ec3a9"},
		{"list", &Totals{Names: []string{"a", "b"}}, "4b02 1300 0a000000 0200 0100 61 0100 62 0000"},
		{"absent and present", &Values{Values: []live.Value{{Slot: 5, AgeMS: -1, Infinite: -1, Text: new(string)}}},
			"4b02 0700 1d000000 00000000 0000000000000000 0100 0500 ffffffffffffffff 00 00 01 0000"},
		{"unknown", &Raw{Number: 0x1234, Payload: []byte{9}}, "4b02 3412 01000000 09"},
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
		{"another version", "4b01", ErrVersion},
		{"too long", "4b02 0100 01000100", ErrMalformed},
		{"bytes too many", "4b02 4200 01000000 00", ErrMalformed},
		{"ends early", "4b02 4400 04000000 00000000", ErrMalformed},
		{"truth value 2", "4b02 0100 09000000 0000000000000000 02", ErrMalformed},
		{"count beyond the bound", "4b02 1300 02000000 4100", ErrMalformed},
		{"count beyond the bytes", "4b02 1300 02000000 0200", ErrMalformed},
		{"text that is no UTF-8", "4b02 4100 03000000 0100 ff", ErrMalformed},
	} {
		b, err := hex.DecodeString(string(bytes.ReplaceAll([]byte(tc.frame), []byte(" "), nil)))
		if err != nil {
			t.Fatal(err)
		}
		if m, _, err := ParseFrame(b); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, %v; want %v", tc.name, m, err, tc.want)
		}
		if m, err := readFrame(bytes.NewReader(b)); !errors.Is(err, tc.want) {
			t.Errorf("%s from a stream: %v, %v; want %v", tc.name, m, err, tc.want)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	for name, m := range map[string]Message{
		"no number":    &State{Temperature: math.NaN()},
		"infinite":     &Totals{Values: []float64{math.Inf(1)}},
		"no UTF-8":     &Halt{Reason: "\xff"},
		"long list":    &Totals{Values: make([]float64, maxTotals+1)},
		"large id":     &Values{Values: []live.Value{{Slot: 1 << 16}}},
		"long text":    &Halt{Reason: string(make([]byte, 70000))},
		"long payload": &Raw{Number: 999, Payload: make([]byte, MaxPayload+1)},
	} {
		if b, err := AppendFrame([]byte{1}, m); !errors.Is(err, ErrMalformed) || len(b) != 1 {
			t.Errorf("%s: %d bytes, %v; want dst as it was, ErrMalformed", name, len(b), err)
		}
		if _, err := EncodeJSON(m); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s as JSON: %v; want ErrMalformed", name, err)
		}
	}
	for _, j := range []string{``, `null`, `[]`, `{"type":"nothing","body":{}}`, `{"type":"ping","body":{"nonce":1,"more":2}}`, `{"type":"ping","body":{"nonce":-1}}`,
		`{"type":"ping","body":{"nonce":1}} x`, `{"type":"ping"}`, `{"type":"event","body":{"numbers":[1,2,3,4,5]}}`} {
		if m, err := DecodeJSON([]byte(j)); !errors.Is(err, ErrMalformed) {
			t.Errorf("JSON %s: %v, %v; want ErrMalformed", j, m, err)
		}
	}
}

func seeds(f *testing.F, add func(Message)) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, k := range kinds {
		add(randomMessage(r, k.make))
	}
	add(&Raw{Number: 999, Payload: []byte("x")})
}

// FuzzParseFrame covers the frame and every message decoder, as both ends use them: what parses encodes to the same bytes.
func FuzzParseFrame(f *testing.F) {
	seeds(f, func(m Message) { b, _ := AppendFrame(nil, m); f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		m, n, err := ParseFrame(b)
		s, serr := readFrame(bytes.NewReader(b))
		if (err == nil) != (serr == nil) {
			t.Fatalf("parsed: %v, streamed: %v", err, serr)
		}
		if err != nil {
			return
		}
		if !reflect.DeepEqual(m, s) {
			t.Fatalf("parsed %+v, streamed %+v", m, s)
		}
		again, err := AppendFrame(nil, m)
		if err != nil || !bytes.Equal(again, b[:n]) {
			t.Fatalf("%+v encodes to %x, %v; want %x", m, again, err, b[:n])
		}
		j, err := EncodeJSON(m)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DecodeJSON(j); err != nil || !reflect.DeepEqual(back, m) {
			t.Fatalf("JSON %s is %+v, %v; want %+v", j, back, err, m)
		}
	})
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
		if back, err := DecodeJSON(j); err != nil || !reflect.DeepEqual(back, m) {
			t.Fatalf("%s: %+v, then %+v, %v", b, m, back, err)
		}
	})
}
