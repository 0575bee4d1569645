package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// pageOf is a page as the console writes it.
func pageOf(tally string, rows ...string) []byte {
	return fmt.Appendf(nil, `<!doctype html><html lang="en"><body data-live-from="/live?every=1s&amp;x=1"><p class="tally" data-live="tally">%s</p>
<div data-live="table"><table class="fleet"><thead><tr><th scope="col"><a href="/things">Robot</a></th></tr></thead>
  <tbody>%s
  </tbody></table></div>`, tally, strings.Join(rows, ""))
}

func rowOf(id, presence, since string) string {
	return fmt.Sprintf(`
  <tr>
    <td class="c-pick"><input type="checkbox" name="thing" value="%[1]s" aria-label="Pick %[1]s"></td>
    <th scope="row"><a href="/things/%[1]s">%[1]s</a> <span class="note">“Rex”</span> <span class="tag">lab</span></th>
    <td class="c-presence"><span class="presence %[2]s"><span class="dot" aria-hidden="true"></span>%[2]s</span></td>
    <td class="c-since">%[3]s</td>
    <td class="c-release num">2.0</td>
  </tr>`, id, presence, since)
}

const (
	tallied = `<strong class="num">1</strong> of <strong class="num">2</strong> robots present`
	since   = `<time class="ago" datetime="2026-11-21T10:00:00Z" title="x">x</time>`
	never   = `<span class="none">never seen</span>`
)

func TestReadFleetPage(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	body := pageOf(tallied, rowOf("vic:00c00001", "present", since), rowOf("vic:00c00002", "absent", never))
	p, err := readFleetPage(body)
	if err != nil {
		t.Fatal(err)
	}
	want := []fleetRow{{"vic:00c00001", true, at}, {ID: "vic:00c00002"}}
	if !slices.Equal(p.Rows, want) || !slices.Equal(p.Tally, []int{1, 2}) || p.Live != "/live?every=1s&x=1" || p.Size != len(body) {
		t.Errorf("%+v, want rows %+v", p, want)
	}
	for name, tc := range map[string]struct {
		body []byte
		want string
	}{
		"twice":         {pageOf(tallied, rowOf("vic:1", "present", since), rowOf("vic:1", "absent", since)), "shows vic:1 twice"},
		"another shape": {pageOf(tallied, rowOf("vic:1", "present", since), rowOf("vic:2", "asleep", since)), "2 rows, 1 of them"},
		"a wrong time":  {pageOf(tallied, rowOf("vic:1", "present", strings.Replace(since, "10:00", "10-00", 1))), "row of vic:1"},
		"another page":  {[]byte(`<h1>Sign in</h1>`), "none of the fleet"},
	} {
		if _, err := readFleetPage(tc.body); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func FuzzReadFleetPage(f *testing.F) {
	f.Add(pageOf(tallied, rowOf("vic:00c00001", "present", since), rowOf("vic:00c00002", "absent", never)))
	f.Add([]byte(`<p class="tally" data-live="tally"></p><table class="fleet"><tbody><tr><th`))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := readFleetPage(body)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, r := range p.Rows {
			if seen[r.ID] {
				t.Fatalf("%s twice, and no error", r.ID)
			}
			seen[r.ID] = true
		}
	})
}

// TestFleetViews: what a page must show, and that each kind of mistake is seen.
func TestFleetViews(t *testing.T) {
	at := func(s float64) time.Time {
		return time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second)))
	}
	fleet := []fleetRow{{"c", true, at(1.2)}, {"a", false, at(3)}, {"d", true, at(1.9)}, {"b", false, at(2)}, {ID: "e"}}
	for _, tc := range []struct {
		view  fleetView
		ids   string
		tally []int
	}{
		{fleetView{}, "a b c d e", []int{2, 5}},
		{fleetView{after: "b"}, "c d e", []int{2, 5}},
		{fleetView{filtered: true, keep: isPresent}, "c d", []int{2, 2}},
		{fleetView{filtered: true, keep: isAbsent, order: bySince}, "e b a", []int{3, 0}},
		{fleetView{order: bySince, down: true}, "a b d c e", []int{2, 5}},
		{fleetView{order: byPresence}, "a b e c d", []int{2, 5}},
	} {
		p := tc.view.want(fleet)
		var ids []string
		for _, r := range p.Rows {
			ids = append(ids, r.ID)
		}
		if got := strings.Join(ids, " "); got != tc.ids || !slices.Equal(p.Tally, tc.tally) {
			t.Errorf("%+v: %s %v, want %s %v", tc.view, got, p.Tally, tc.ids, tc.tally)
		}
		if err := tc.view.check(p); err != nil {
			t.Errorf("%+v: %v", tc.view, err)
		}
		if err := tc.view.differs(p, p); err != nil {
			t.Errorf("%+v: %v", tc.view, err)
		}
		wrong := fleetPage{Rows: slices.Clone(p.Rows), Tally: p.Tally}
		slices.Reverse(wrong.Rows)
		if tc.view.check(wrong) == nil || !errors.Is(tc.view.differs(wrong, p), errStale) {
			t.Errorf("%+v: the wrong order is not seen", tc.view)
		}
		if !errors.Is(tc.view.differs(fleetPage{Rows: p.Rows[1:], Tally: p.Tally}, p), errStale) || !errors.Is(tc.view.differs(p, fleetPage{Rows: p.Rows[:1], Tally: p.Tally}), errStale) {
			t.Errorf("%+v: a missing or odd row is not seen", tc.view)
		}
		if !errors.Is(tc.view.differs(fleetPage{Rows: p.Rows, Tally: []int{p.Tally[0] + 1, p.Tally[1]}}, p), errStale) {
			t.Errorf("%+v: a wrong count is not seen", tc.view)
		}
	}
	if err := (fleetView{keep: isAbsent}).check(fleetPage{Rows: fleet[:1], Tally: []int{1, 1}}); err == nil {
		t.Error("a present robot among the absent is not seen")
	}
}
