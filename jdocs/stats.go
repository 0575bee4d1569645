package jdocs

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
)

// aliveKey restarts with a factory reset; the others count on (part of VEC-DOC-07).
const aliveKey = "Alive.seconds"

// MergeStats is Merge for counters: local's increase since base is added to remote, so that nothing is counted twice or lost. Fields
// that are not numbers merge like any other. With an empty base (a wiped robot) everything local is new, except the age, which began
// again with the wipe.
func MergeStats(base, local, remote []byte) (merged []byte, conflicts []string, err error) {
	if err := checkCopies(base, local, remote); err != nil {
		return nil, nil, err
	}
	l, lok := object(local)
	r, rok := object(remote)
	if !lok || !rok || len(base) > 0 && (same(base, remote) || same(base, local)) {
		return mergeValue(present(base), local, remote, "", &conflicts), conflicts, nil
	}
	b, _ := object(base)
	for _, m := range []map[string]json.RawMessage{b, l, r} {
		settleAliases(m)
	}
	out := map[string]json.RawMessage{}
	for _, k := range slices.Sorted(maps.Keys(union(l, r))) {
		v, ok := addDelta(b[k], l[k], r[k])
		if k == aliveKey && b == nil && l[k] != nil {
			v, ok = l[k], true
		}
		if !ok {
			v = mergeValue(b[k], l[k], r[k], k, &conflicts)
		}
		if v != nil {
			out[k] = v
		}
	}
	return encode(out), conflicts, nil
}

// AddStats adds deltas to the counters of a document. Keys it does not have yet begin at 0; a delta that is not a finite number, or
// that would make the sum one, is left out, as is one for a field that holds no number.
func AddStats(doc []byte, deltas map[string]float64) ([]byte, error) {
	if err := checkCopies(nil, doc, []byte("{}")); err != nil {
		return nil, err
	}
	m, ok := object(doc)
	if !ok {
		m = map[string]json.RawMessage{}
	}
	settleAliases(m)
	for k, d := range deltas {
		if as, ok := statAliases[k]; ok {
			k = as
		}
		delta, ok := formatNumber(d)
		if !ok {
			continue
		}
		if sum, ok := addDelta(nil, delta, m[k]); ok {
			m[k] = sum
		}
	}
	return encode(m), nil
}

func settleAliases(m map[string]json.RawMessage) {
	for from, to := range statAliases {
		v, ok := m[from]
		if !ok {
			continue
		}
		delete(m, from)
		if sum, ok := addDelta(nil, v, m[to]); ok {
			m[to] = sum
		}
	}
}

// addDelta returns remote + (local - base), absent meaning 0; ok is false unless all are numbers and the sum is finite. Whole numbers
// stay whole.
func addDelta(base, local, remote json.RawMessage) (json.RawMessage, bool) {
	if bi, ok := integer(base); ok {
		li, lok := integer(local)
		ri, rok := integer(remote)
		if lok && rok {
			return json.RawMessage(strconv.FormatInt(ri+(li-bi), 10)), true
		}
	}
	b, bok := decimal(base)
	l, lok := decimal(local)
	r, rok := decimal(remote)
	if !bok || !lok || !rok {
		return nil, false
	}
	return formatNumber(r + (l - b))
}

// integer reads a whole number small enough that sums of a few never overflow.
func integer(b json.RawMessage) (int64, bool) {
	if b == nil {
		return 0, true
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil && n > -(1<<53) && n < 1<<53
}

func decimal(b json.RawMessage) (float64, bool) {
	if b == nil {
		return 0, true
	}
	var f *float64
	if json.Unmarshal(b, &f) != nil || f == nil {
		return 0, false
	}
	return *f, true
}

func formatNumber(f float64) (json.RawMessage, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, false
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return json.RawMessage(strconv.FormatInt(int64(f), 10)), true
	}
	b, err := json.Marshal(f)
	return b, err == nil
}
