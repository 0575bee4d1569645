package flatbuf

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"
)

type leaf struct {
	N    uint32   `fb:"0"`
	Half int16    `fb:"1,default=-3"`
	Tiny int8     `fb:"2"`
	Name string   `fb:"3,required"`
	Many []uint16 `fb:"5"`
}

type root struct {
	On     bool      `fb:"0"`
	Scale  float32   `fb:"1,default=1"`
	Values []float32 `fb:"2"`
	One    leaf      `fb:"3"`
	Leaves []leaf    `fb:"4"`
	Words  []string  `fb:"6"`
	Own    int       // not of the schema
}

var full = root{On: true, Scale: -0.5, Values: []float32{1, 2.5}, One: leaf{Half: -3, Name: "one"}, Words: []string{"a", "", "ccc"},
	Leaves: []leaf{{1, 7, -8, "x", []uint16{1, 65535}}, {Name: ""}, {N: 1 << 31, Half: -3, Name: "z"}}}

// TestRound: what was written reads the same.
func TestRound(t *testing.T) {
	b, err := Append([]byte("before"), &full)
	if err != nil || !bytes.HasPrefix(b, []byte("before")) {
		t.Fatal(err)
	}
	got := root{Own: 5, Values: []float32{9}}
	if err := Unmarshal(b[6:], &got); err != nil {
		t.Fatal(err)
	}
	if got.Own = 0; !reflect.DeepEqual(got, full) {
		t.Errorf("%+v\nwant %+v", got, full)
	}
}

// TestVector: a buffer written by hand from the format's description, with a field that the struct does not have, and defaults for those it lacks.
func TestVector(t *testing.T) {
	b, err := hex.DecodeString(strings.ReplaceAll(strings.Join([]string{
		"18000000", // 0: the root table is at 24
		"1400 1000 0000 0400 0000 0c00 0000 0000 0000 0800", // 4: its vtable of 20 bytes: fields 1, 3 and the unknown field 7
		"14000000 00000040 ffffffff 10000000",               // 24: 20 back to the vtable, 2.0, the unknown field, and a table at 52
		"0c00 0800 0000 0000 0000 0400",                     // 40: its vtable: field 3
		"0c000000 04000000",                                 // 52: the table, whose string is at 60
		"02000000 6869 00",
	}, ""), " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	var r root
	if err := Unmarshal(b, &r); err != nil || !reflect.DeepEqual(r, root{Scale: 2, One: leaf{Half: -3, Name: "hi"}}) {
		t.Errorf("%+v %v", r, err)
	}
	b[50] = 0 // without its required field
	if err := Unmarshal(b, &r); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "One.Name") {
		t.Errorf("%v", err)
	}
}

// TestRefuses: cut and damaged buffers are refused without a panic, and one that uses a part many times is refused before it grows.
func TestRefuses(t *testing.T) {
	b, err := Append(nil, &full)
	if err != nil {
		t.Fatal(err)
	}
	var r root
	for n := range len(b) - 5 { // the last string may lack its 0 byte and padding
		if err := Unmarshal(b[:n], &r); !errors.Is(err, ErrFormat) {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
	}
	for i := range b {
		for _, x := range []byte{1, 0x80, 0xff} {
			c := bytes.Clone(b)
			c[i] ^= x
			_ = Unmarshal(c, &r) // whatever it is, no panic
		}
	}
	if err := Unmarshal(make([]byte, MaxSize+1), &r); !errors.Is(err, ErrFormat) {
		t.Error(err)
	}
	// All thousand leaves become one with a long vector.
	long := root{Scale: 1, Leaves: append(make([]leaf, 1000), leaf{Many: make([]uint16, 5000)})}
	if b, err = Append(nil, &long); err != nil {
		t.Fatal(err)
	}
	vector := bytes.Index(b, []byte{0xe9, 3, 0, 0}) // the count 1001
	last := vector + 4 + 4*1000
	target := last + int(b[last]) + int(b[last+1])<<8 + int(b[last+2])<<16
	e := encoder{b: b}
	for i := range 1001 {
		e.point(vector+4+4*i, target)
	}
	if err := Unmarshal(b, &r); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "Leaves[") {
		t.Errorf("a buffer that grows: %v", err)
	}
	huge := root{Words: []string{strings.Repeat("x", MaxSize)}}
	if got, err := Append(b[:1], &huge); !errors.Is(err, ErrFormat) || len(got) != 1 {
		t.Error(err)
	}
}

// TestDefaults sets what the tags say.
func TestDefaults(t *testing.T) {
	r := root{On: true}
	if Defaults(&r); r.Scale != 1 || !r.On {
		t.Errorf("%+v", r)
	}
}

// FuzzUnmarshal: a buffer that is read is written and read to the same value.
func FuzzUnmarshal(f *testing.F) {
	b, err := Append(nil, &full)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, again root
		if Unmarshal(b, &r) != nil {
			return
		}
		first, err := Append(nil, &r)
		if err != nil {
			t.Fatal(err)
		}
		if err := Unmarshal(first, &again); err != nil {
			t.Fatal(err)
		}
		second, err := Append(nil, &again)
		if err != nil || !bytes.Equal(first, second) { // bytes, because not-a-number differs from itself
			t.Fatalf("%v\n%x\n%x", err, first, second)
		}
	})
}
