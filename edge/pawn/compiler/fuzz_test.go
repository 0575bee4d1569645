package compiler_test

import (
	"strings"
	"testing"

	"kennel/edge/pawn"
	"kennel/edge/pawn/amx"
	"kennel/edge/pawn/compiler"
)

// FuzzCompile compiles anything: no panic, and a program that results can be written, read and loaded. The script runs for a moment.
func FuzzCompile(f *testing.F) {
	for _, file := range []string{"programs.txt", "errors.txt"} {
		for _, s := range sections(f, file) {
			f.Add(s.source, uint8(2))
		}
	}
	f.Fuzz(func(t *testing.T, src string, mode uint8) {
		if len(src) > 4096 {
			return
		}
		o := options()
		o.Optimise, o.Debug = int(mode%3), int(mode/3%3)
		if mode&128 != 0 {
			o.Overlay = 8192
		}
		r := compiler.Compile("fuzz.p", []byte(src), o)
		if (r.Program == nil) != (r.Errors() > 0) {
			t.Fatalf("program %v with %d errors", r.Program != nil, r.Errors())
		}
		if r.Program == nil {
			return
		}
		file, err := r.Program.Append(nil)
		if err != nil {
			if strings.Contains(err.Error(), "name") { // a library may have any name
				return
			}
			t.Fatal(err)
		}
		p, err := amx.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := pawn.New(p, pawn.Options{Natives: func(string) pawn.Native { return func(pawn.Call) (int32, pawn.Code) { return 0, pawn.OK } }})
		if err != nil {
			if p.StackHeapCells > 0 && len(p.Data)+4*int(p.StackHeapCells) < 8<<20 && p.StackHeapCells > 64 {
				t.Fatal(err)
			}
			return
		}
		var run pawn.Running
		if m.Begin(&run, pawn.Main) == pawn.OK {
			if result := m.Run(&run, 10_000); result.Code == pawn.ErrInvInstr {
				t.Fatalf("the program ran into %v at %d", result.Code, result.Offset)
			}
		}
	})
}
