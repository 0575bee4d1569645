package das

import (
	"fmt"
	"slices"
	"sort"

	"kennel/infra/api/events"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// MaxSpans is how many separate runs of sequence numbers one boot may have. A robot leaves a gap where its quota dropped a file or an event
// went to quarantine; thousands of gaps are no robot of ours, and each costs every later commit of that boot.
const MaxSpans = 4096

// Span is a run of sequence numbers, both ends included.
type Span struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// Seqs is a set of sequence numbers: ascending spans that neither overlap nor touch.
type Seqs []Span

// Add puts seq into the set and reports whether it is new.
func (s *Seqs) Add(seq uint64) bool {
	v := *s
	if n := len(v); n > 0 && v[n-1].Last+1 == seq { // the usual case: the next event
		v[n-1].Last = seq
		return true
	}
	i := sort.Search(len(v), func(i int) bool { return v[i].Last >= seq }) // the first span that does not end before seq
	if i < len(v) && v[i].First <= seq {
		return false
	}
	before := i > 0 && v[i-1].Last+1 == seq
	after := i < len(v) && v[i].First == seq+1
	switch {
	case before && after:
		v[i-1].Last = v[i].Last
		*s = slices.Delete(v, i, i+1)
	case before:
		v[i-1].Last = seq
	case after:
		v[i].First = seq
	default:
		*s = slices.Insert(v, i, Span{seq, seq})
	}
	return true
}

// Fresh is one event to store.
type Fresh struct {
	Thing thing.ID
	Event *events.Event
}

// Plan decides which events of items are new, given the sets of what each boot already delivered, and changes the sets accordingly. Sets
// of boots never seen may be missing in known. An item that would tear its set into too many spans is refused and leaves it as it was.
func Plan(items []Item, known map[Key]Seqs) ([]Fresh, Outcome) {
	total := 0
	for _, it := range items {
		total += len(it.Events)
	}
	fresh := make([]Fresh, 0, total)
	out := Outcome{Refused: make([]error, len(items))}
	for i, it := range items {
		key := it.Key()
		set, mark := slices.Clone(known[key]), len(fresh)
		for j := range it.Events {
			if e := &it.Events[j]; set.Add(e.Seq) {
				fresh = append(fresh, Fresh{it.Thing, e})
			}
		}
		if len(set) > MaxSpans {
			fresh = fresh[:mark]
			out.Refused[i] = errs.Coded(errs.Invalid, "gaps", "boot %s has more than %d gaps in seq: want events numbered one by one", key.BootID, MaxSpans)
			continue
		}
		out.Known += len(it.Events) - (len(fresh) - mark)
		known[key] = set
	}
	out.Stored = len(fresh)
	return fresh, out
}

func (s Span) String() string { return fmt.Sprintf("%d-%d", s.First, s.Last) }
