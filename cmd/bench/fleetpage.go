package main

import (
	"cmp"
	"errors"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strconv"
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

// fleetPage is what a browser has of one page of the fleet.
type fleetPage struct {
	Rows  []fleetRow
	Tally []int  // the numbers above the table, as they stand there
	Live  string // where the stream of changes is
	Size  int    // bytes
}

var (
	rowPattern = regexp.MustCompile(`(?s)<tr>\s*(?:<td class="c-pick">.*?</td>\s*)?<th scope="row"><a href="[^"]*">([^<]*)</a>.*?</th>\s*` +
		`<td class="c-presence"><span class="presence (present|absent)">.*?</td>\s*<td class="c-since">(?:<time class="ago" datetime="([^"]*)"|<span class="none">)`)
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

// fleetView is what somebody looks at: an address, and what it must show, worked out here from all robots, not by the registry's own queries.
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

// want is what the page must show of a fleet.
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
