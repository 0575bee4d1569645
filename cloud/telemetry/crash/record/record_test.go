package record

import (
	"reflect"
	"strings"
	"testing"

	"kennel/infra/errs"
)

const sample = `kennel-crash 1
program: agentd
version: 2.0.0.6074
reason:

warning: something before
panic: runtime error: invalid memory address or nil pointer dereference [recovered]
	panic: again
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x4a1f]

goroutine 7 gp=0xc000 m=3 mp=0xc1 [running, locked to thread]:
panic({0x4c0ba0?, 0x5f9930?})
	/usr/lib/go/src/runtime/panic.go:785 +0x132 fp=0xc0 sp=0xb0
kennel/edge/x.(*T).f(0xc000012120, {0x1, 0x2})
	/src/edge/x/x.go:12 +0x1d
kennel/edge/x.Map[...].func1(...)
	C:/src/x.go:9
created by kennel/edge/x.New in goroutine 1
	/src/edge/x/x.go:5 +0x20

goroutine 1 [chan receive, 5 minutes]:
main.main()
	/src/ma`

func TestParse(t *testing.T) {
	got, err := Parse([]byte(sample))
	want := Record{Headers: map[string]string{"program": "agentd", "version": "2.0.0.6074", "reason": ""},
		Reason: "panic: runtime error: invalid memory address or nil pointer dereference [recovered] (SIGSEGV: segmentation violation code=0x1 addr=0x0)",
		Goroutines: []Goroutine{
			{ID: 7, State: "running, locked to thread", Frames: []Frame{{"panic", "/usr/lib/go/src/runtime/panic.go", 785}, {"kennel/edge/x.(*T).f", "/src/edge/x/x.go", 12}, {"kennel/edge/x.Map[...].func1", "C:/src/x.go", 9}}},
			{ID: 1, State: "chan receive, 5 minutes", Frames: []Frame{{"main.main", "/src/ma", 0}}},
		}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v, want\n%+v", err, got, want)
	}
	for n := len(Magic) + 1; n < len(sample); n++ { // the machine may stop at any byte
		if _, err := Parse([]byte(sample[:n])); err != nil && n > strings.Index(sample, "\n\n") {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
}

func TestBounds(t *testing.T) {
	r, err := Parse([]byte("kennel-crash 1\n\nfatal error: x\n\n" + strings.Repeat("goroutine 1 [running]:\n"+strings.Repeat("main.f()\n\t/x.go:1\n", 70), 70)))
	if err != nil || len(r.Goroutines) != MaxGoroutines || r.More != 6 || len(r.Goroutines[0].Frames) != MaxFrames || r.Goroutines[0].More != 6 {
		t.Errorf("%v, %d goroutines and %d more", err, len(r.Goroutines), r.More)
	}
}

func TestRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "line 1: \"\": want \"kennel-crash 1\"",
		"kennel-crash 2\n":                 "line 1: \"kennel-crash 2\"",
		"kennel-crash 1\na: b\nno key\n\n": "line 3: \"no key\": want \"key: value\"",
		"kennel-crash 1\n" + strings.Repeat("a: b\n", 20) + strings.Repeat("b: c\n", 20): "",
		"kennel-crash 1\n\x00\xff\n": "line 2",
	} {
		if _, err := Parse([]byte(text)); want != "" && (errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(sample))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err != nil {
			if errs.KindOf(err) != errs.Invalid {
				t.Fatalf("%v is not Invalid", err)
			}
			return
		}
		for _, g := range r.Goroutines {
			for _, fr := range g.Frames {
				if fr.Func == "" || strings.ContainsAny(fr.Func+fr.File, "\x00\n") || fr.Line < 0 {
					t.Fatalf("%+v", fr)
				}
			}
		}
	})
}
