package symfile

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"kennel/infra/errs"
)

const sample = `MODULE Linux arm 4FBDA58B5A1DF5A579E3CF19A235EA090 vic-engine
INFO CODE_ID 8BA5BD4F1D5AA5F579E3CF19A235EA09
FILE 0 /src/engine/lift.cpp
FILE 7 /src/engine/behaviour.cpp
INLINE_ORIGIN 0 inlined()
FUNC 100 40 0 engine::Lift::Move(float, int)
INLINE 0 3 0 0 100 10
100 10 41 0
110 30 43 7
FUNC m 200 20 8 engine::Tick()
200 20 9 7
PUBLIC 180 0 _start
PUBLIC m 300 0 last
STACK CFI INIT 100 40 .cfa: sp 0 + .ra: lr
STACK CFI 104 .cfa: sp 16 + r4: .cfa -8 + ^ .ra: .cfa -4 + ^
STACK WIN 4 400 200 3 3 0 0 0 0 0 1
`

func TestRead(t *testing.T) {
	offsets := Sorted([]uint64{0x300, 0x50, 0x100, 0x105, 0x120, 0x13f, 0x140, 0x190, 0x21f, 0x220, 0x500, 0x105})
	h, got, err := Read(strings.NewReader(sample), offsets)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Header{"Linux", "arm", "4FBDA58B5A1DF5A579E3CF19A235EA090", "vic-engine", 4}); h != want {
		t.Errorf("%+v", h)
	}
	move, tick := "engine::Lift::Move(float, int)", "engine::Tick()"
	later := map[string]string{".cfa": "sp 16 +", "r4": ".cfa -8 + ^", ".ra": ".cfa -4 + ^"}
	want := map[uint64]Symbol{
		0x100: {move, "/src/engine/lift.cpp", 41, map[string]string{".cfa": "sp 0 +", ".ra": "lr"}}, 0x105: {move, "/src/engine/lift.cpp", 41, later},
		0x120: {move, "/src/engine/behaviour.cpp", 43, later}, 0x13f: {move, "/src/engine/behaviour.cpp", 43, later}, 0x190: {Func: "_start"},
		0x21f: {tick, "/src/engine/behaviour.cpp", 9, nil}, 0x220: {Func: "_start"}, 0x300: {Func: "last"}, 0x500: {Func: "last"},
	}
	for i, at := range offsets {
		if !reflect.DeepEqual(got[i], want[at]) {
			t.Errorf("at 0x%x: %+v, want %+v", at, got[i], want[at])
		}
	}
	if _, _, err := Read(iotest.TimeoutReader(strings.NewReader(sample)), nil); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("a reader that fails: %v", err)
	}
}

func TestRefuses(t *testing.T) {
	first := "MODULE Linux arm 4FBDA58B5A1DF5A579E3CF19A235EA090 x\n"
	for text, want := range map[string]string{
		"":                                    "is empty",
		"\x7fELF":                             "line 1: \"\\x7fELF\": want MODULE",
		"MODULE Linux arm 12 x":               "want 33 to 40 hex digits",
		first + first:                         "line 2: \"MODULE Linux arm",
		first + "FUNC 1 2 x":                  "want FUNC, address",
		first + "FILE x":                      "want FILE, a number",
		first + "PUBLIC zz":                   "want PUBLIC",
		first + "1 2 3":                       "want a record",
		first + "1 2 x 4":                     "want address and size in hex",
		first + "STACK XX":                    "want STACK CFI or STACK WIN",
		first + "STACK CFI INIT 1":            "want STACK CFI INIT",
		first + "STACK CFI INIT 1 2 no rules": "want rules such as",
		first + "\n\nSTACK CFI zz .cfa: r":    "line 4",
		first + strings.Repeat("x", 300<<10):  "line 2: longer than",
	} {
		if _, _, err := Read(strings.NewReader(text), nil); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v", text, err)
		}
	}
}

func FuzzSymbols(f *testing.F) {
	f.Add([]byte(sample), uint64(0x105))
	f.Fuzz(func(t *testing.T, b []byte, at uint64) {
		offsets := Sorted([]uint64{0, at, at + 1, at * 2, 1 << 63})
		h, got, err := Read(strings.NewReader(string(b)), offsets)
		if err != nil && errs.KindOf(err) != errs.Invalid {
			t.Fatalf("%v is not Invalid", err)
		}
		if err == nil && (len(got) != len(offsets) || h.DebugID == "") {
			t.Fatalf("%+v %v", h, got)
		}
	})
}
