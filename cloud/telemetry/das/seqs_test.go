package das

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kennel/infra/api/events"
	"kennel/infra/errs"
)

// A set of spans behaves like a plain set, and its spans stay in order, apart and not touching.
func TestSeqsLikeASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Seqs
		model := map[uint64]bool{}
		for _, seq := range rapid.SliceOf(rapid.Uint64Range(0, 40)).Draw(t, "seqs") {
			if isNew := s.Add(seq); isNew == model[seq] {
				t.Fatalf("Add(%d) = %v in %v", seq, isNew, s)
			}
			model[seq] = true
		}
		for seq := range uint64(42) {
			in := slices.ContainsFunc(s, func(span Span) bool { return span.First <= seq && seq <= span.Last })
			if in != model[seq] {
				t.Fatalf("%d is in the set: %v in %v", seq, in, s)
			}
		}
		for i, span := range s {
			if span.First > span.Last || (i > 0 && span.First <= s[i-1].Last+1) {
				t.Fatalf("spans %v", s)
			}
		}
	})
}

func item(boot string, seqs ...uint64) Item {
	it := Item{Thing: "vic:1"}
	for _, s := range seqs {
		it.Events = append(it.Events, events.Event{BootID: boot, Seq: s})
	}
	return it
}

func TestPlan(t *testing.T) {
	key := Key{"vic:1", "b"}
	known := map[Key]Seqs{key: {{1, 3}, {7, 7}}}
	holes := item("b")
	for seq := uint64(100); len(holes.Events) < MaxSpans; seq += 2 {
		holes.Events = append(holes.Events, item("b", seq).Events...)
	}
	fresh, out := Plan([]Item{item("b", 2, 3, 4), holes, item("b", 4, 5, 6, 7, 8), item("b2", 1)}, known)
	var got []string
	for _, f := range fresh {
		got = append(got, fmt.Sprint(f.Event.BootID, f.Event.Seq))
	}
	if want := []string{"b4", "b5", "b6", "b8", "b21"}; !slices.Equal(got, want) {
		t.Errorf("fresh %v, want %v", got, want)
	}
	if out.Stored != 5 || out.Known != 4 || errs.CodeOf(out.Refused[1]) != "gaps" || out.Refused[0] != nil || out.Refused[2] != nil {
		t.Errorf("outcome %+v", out)
	}
	if want := (Seqs{{1, 8}}); !slices.Equal(known[key], want) {
		t.Errorf("known %v, want %v", known[key], want)
	}
}
