package pawn

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"testing"

	"kennel/edge/pawn/amx"
)

// referenceData is the data of all programs in testdata/reference.txt. Even cells are addresses.
var referenceData = []int32{12, -7, 32, 0x41424344, 8, 1 << 30, 56, -1, 0, 70000, 48, 3, 372, 255, 368, -1 << 31}

const referenceStack = 80 // cells of stack and heap

// outcome runs main and returns its code and value, the registers pri, alt, frm, stk and hea if it sleeps at its end, and a hash of the memory.
func outcome(p *amx.Program) string {
	m, err := New(p, Options{Natives: hostFuncs})
	var refused *LoadError
	if errors.As(err, &refused) {
		return fmt.Sprintf("load %d", refused.Code)
	}
	var r Running
	if c := m.Begin(&r, Main); c != OK {
		return fmt.Sprintf("begin %d", c)
	}
	end := m.Run(&r, 100_000)
	if end.State == Preempted {
		return "endless"
	}
	regs := "0 0 0 0 0"
	if end.State == Sleeping {
		regs = fmt.Sprint(r.pri, r.alt, r.frm, r.stk, r.hea)
	}
	h := fnv.New32a()
	for _, c := range m.mem {
		_, _ = h.Write(binary.LittleEndian.AppendUint32(nil, uint32(c)))
	}
	return fmt.Sprintf("%d %d %s %08x", end.Code, end.Value, regs, h.Sum32())
}

// TestReference runs programs around each instruction of each version and compares every register and the memory with the reference machines: 3.2.3706 for
// versions 8 and 9, 3.3.4065 for version 10. The programs are ours; testdata/README.md says how they were made.
func TestReference(t *testing.T) {
	f, err := os.Open("testdata/reference.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := map[string]int{}
	for s := bufio.NewScanner(f); s.Scan(); {
		head, want, _ := strings.Cut(s.Text(), ": ")
		var version uint8
		var name, code string
		if _, err := fmt.Sscan(head, &version, &name, &code); err != nil {
			t.Fatalf("%q: %v", s.Text(), err)
		}
		body, err := hex.DecodeString(code)
		if err != nil {
			t.Fatal(err)
		}
		p := &amx.Program{Version: version, Code: append(data(120, 0), body...), Data: data(referenceData...), StackHeapCells: referenceStack, Main: 8,
			Natives: []amx.Entry{{Name: "sum"}, {Name: "fail"}, {Name: "nap"}}}
		if got := outcome(p); got != want {
			t.Errorf("version %d, %s: %s, want %s", version, name, got, want)
		}
		seen[fmt.Sprint(version, " ", name)]++
	}
	for version := uint8(amx.MinVersion); version <= amx.MaxVersion; version++ {
		for o := range amx.Ops(version) {
			switch o.Name {
			case "icall", "iretn", "iswitch", "icasetbl": // TestOverlays
				continue
			}
			if seen[fmt.Sprint(version, " ", o.Name)] == 0 {
				t.Errorf("version %d: no program for %s", version, o.Name)
			}
		}
	}
}
