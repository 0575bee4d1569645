package main

import (
	"cmp"
	"errors"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// fleetRow is a robot as the fleet's table shows it. Since is in whole seconds there; zero: never seen.
type fleetRow struct {
	ID      string
	Present bool
	Since   time.Time
}

// shown is r as pages write it.
func (r fleetRow) shown() fleetRow {
	r.Since = r.Since.UTC().Truncate(time.Second)
	return r
}

// fleetPage is one page of the fleet as a browser has it.
type fleetPage struct {
	Rows  []fleetRow
	Tally []int  // the numbers above the table, as they stand there
	Live  string // where the stream of changes is
	Size  int    // bytes
}

var (
	rowPattern = regexp.MustCompile(`(?s)<tr>\s*(?:<td class="c-pick">.*?</td>\s*)?<th scope="row"><a href="[^"]*">([^<]*)</a>.*?</th>\s*` +
		`(?:<td class="c-owner".*?</td>\s*)?<td class="c-presence"><span class="presence (present|absent)">.*?</td>\s*<td class="c-since">(?:<time class="ago" datetime="([^"]*)"|<span class="none">)`)
	rowStart     = regexp.MustCompile(`(?s)<tr>\s*<t[dh]`)
	tablePattern = regexp.MustCompile(`(?s)<table class="fleet">.*?<tbody>(.*?)</tbody>`)
	tallyPattern = regexp.MustCompile(`(?s)<p class="tally" data-live="tally">(.*?)</p>`)
	tallyNumber  = regexp.MustCompile(`<strong class="num">(\d{1,9})</strong>`)
	livePattern  = regexp.MustCompile(`<body[^>]* data-live-from="([^"]*)"`)
)

// readFleetPage reads a page of the fleet; one without a table has no rows. A page with a row that it cannot read, or with a robot
// twice, is an error.
func readFleetPage(body []byte) (fleetPage, error) {
	p := fleetPage{Size: len(body)}
	if m := livePattern.FindSubmatch(body); m != nil {
		p.Live = html.UnescapeString(string(m[1]))
	}
	tally := tallyPattern.FindSubmatch(body)
	if tally == nil {
		return p, fmt.Errorf("a page of %d bytes is none of the fleet: %.200q", len(body), body)
	}
	for _, m := range tallyNumber.FindAllSubmatch(tally[1], -1) {
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			return p, err
		}
		p.Tally = append(p.Tally, n)
	}
	table := tablePattern.FindSubmatch(body)
	if table == nil {
		return p, nil
	}
	seen := map[string]bool{}
	for _, m := range rowPattern.FindAllSubmatch(table[1], -1) {
		r := fleetRow{ID: html.UnescapeString(string(m[1])), Present: string(m[2]) == "present"}
		if len(m[3]) > 0 {
			var err error
			if r.Since, err = time.Parse(time.RFC3339, string(m[3])); err != nil {
				return p, fmt.Errorf("row of %s: %w", r.ID, err)
			}
		}
		if seen[r.ID] {
			return p, fmt.Errorf("a page shows %s twice", r.ID)
		}
		seen[r.ID] = true
		p.Rows = append(p.Rows, r)
	}
	if n := len(rowStart.FindAll(table[1], -1)); n != len(p.Rows) {
		return p, fmt.Errorf("a page has %d rows, %d of them can be read", n, len(p.Rows))
	}
	return p, nil
}

// fleetView is a page's address and the content that it must show, computed here from all robots rather than by the registry's queries.
type fleetView struct {
	query    string
	filtered bool
	after    string                  // only ids beyond this one
	keep     func(fleetRow) bool     // nil: all
	order    func(a, b fleetRow) int // by one column, before the id; nil: by id
	down     bool
}

// fleetRows is how many rows a page has at most.
const fleetRows = 100

func bySince(a, b fleetRow) int { return a.Since.Compare(b.Since) }

func byPresence(a, b fleetRow) int {
	n := map[bool]int{true: 1}
	return n[a.Present] - n[b.Present]
}

func isPresent(r fleetRow) bool { return r.Present }

func isAbsent(r fleetRow) bool { return !r.Present }

// compare orders two rows by the column alone.
func (v fleetView) compare(a, b fleetRow) int {
	n := cmp.Compare(a.ID, b.ID)
	if v.order != nil {
		n = v.order(a, b)
	}
	if v.down {
		return -n
	}
	return n
}

// want returns the content that the page must show of a fleet.
func (v fleetView) want(fleet []fleetRow) fleetPage {
	var kept []fleetRow
	present := 0
	for _, r := range fleet {
		if v.keep == nil || v.keep(r) {
			kept = append(kept, r)
			if r.Present {
				present++
			}
		}
	}
	p := fleetPage{Tally: []int{present, len(kept)}}
	if v.filtered {
		p.Tally = []int{len(kept), present}
	}
	slices.SortFunc(kept, func(a, b fleetRow) int {
		id := cmp.Compare(a.ID, b.ID)
		if v.down {
			id = -id
		}
		return cmp.Or(v.compare(a, b), id)
	})
	for _, r := range kept {
		if r.ID > v.after && len(p.Rows) < fleetRows {
			p.Rows = append(p.Rows, r.shown())
		}
	}
	return p
}

// check says what is wrong with a page by itself, whatever the fleet is: each row is of the kind and in the order that were asked for.
func (v fleetView) check(p fleetPage) error {
	if len(p.Rows) > fleetRows || len(p.Tally) != 2 {
		return fmt.Errorf("/things%s: %d rows, tally %v", v.query, len(p.Rows), p.Tally)
	}
	for i, r := range p.Rows {
		if v.keep != nil && !v.keep(r) || r.ID <= v.after {
			return fmt.Errorf("/things%s shows %+v", v.query, r)
		}
		if i > 0 && v.compare(p.Rows[i-1], r) > 0 {
			return fmt.Errorf("/things%s shows %+v before %+v", v.query, p.Rows[i-1], r)
		}
	}
	return nil
}

// errStale is a page that is not as the fleet is.
var errStale = errors.New("a page is behind the fleet")

// differs says where a page, with the numbers above its table, is not what it must be.
func (v fleetView) differs(got, want fleetPage) error {
	if !slices.Equal(got.Tally, want.Tally) {
		return fmt.Errorf("%w: /things%s counts %v, want %v", errStale, v.query, got.Tally, want.Tally)
	}
	for i := range max(len(got.Rows), len(want.Rows)) {
		switch {
		case i >= len(got.Rows):
			return fmt.Errorf("%w: /things%s shows %d rows, want %d", errStale, v.query, len(got.Rows), len(want.Rows))
		case i >= len(want.Rows) || !got.Rows[i].same(want.Rows[i]):
			var w any = "none"
			if i < len(want.Rows) {
				w = want.Rows[i]
			}
			return fmt.Errorf("%w: row %d of /things%s is %+v, want %+v", errStale, i+1, v.query, got.Rows[i], w)
		}
	}
	return nil
}

func (r fleetRow) same(o fleetRow) bool {
	return r.ID == o.ID && r.Present == o.Present && r.Since.Equal(o.Since)
}

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
	tallied = `<strong class="num">1</strong> of <strong class="num">2</strong> robots online`
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
