package chart

import (
	"encoding/xml"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)

const evil = `</title><script>alert(1)</script>" onload="x`

// elements reads a drawing as XML and returns how often each element occurs; it must be well-formed.
func elements(t *testing.T, drawn template.HTML) map[string]int {
	t.Helper()
	n := map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(string(drawn))); ; {
		tok, err := d.Token()
		if err == io.EOF {
			return n
		}
		if err != nil {
			t.Fatalf("%v in %s", err, drawn)
		}
		if e, ok := tok.(xml.StartElement); ok {
			n[e.Name.Local]++
			for _, a := range e.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "style" {
					t.Errorf("attribute %s=%q", a.Name.Local, a.Value)
				}
			}
		}
	}
}

func TestBoard(t *testing.T) {
	axis := Axis{noon.Add(-time.Hour), noon}
	at := func(min int) time.Time { return noon.Add(-time.Duration(min) * time.Minute) }
	b := Board{axis, []Lane{
		{Name: evil, Note: evil, Spans: []Span{{at(30), at(15), Good, evil}, {at(200), at(190), Good, "before"}, {at(500), at(-500), Faint, "all"}, {at(0), at(10), Good, "upside down"}, {at(5), at(5), Good, "a blink"}}},
		{Name: "marks", Marks: []Mark{{at(60), Bad, evil}, {at(0), Warn, ""}, {at(61), Bad, "outside"}, {at(10), Good, ""}}},
		{Name: "line", Tall: true, Line: &Line{Points: []Point{{at(50), 3.7, evil}, {at(49), math.NaN(), ""}, {at(48), 3.6, ""}, {at(10), math.Inf(1), ""}, {at(5), 3.9, ""}}, Bar: 3.5, Gap: 10 * time.Minute}},
		{Name: "flat", Line: &Line{Points: []Point{{at(5), 1, ""}}}}, {Name: "no line", Line: &Line{}},
	}}
	drawn := b.HTML()
	n := elements(t, drawn)
	if n["script"] != 0 || !strings.Contains(string(drawn), "&lt;script&gt;") {
		t.Errorf("what a robot said is markup: %s", drawn)
	}
	if n["rect"] != 3+4 || n["circle"] != 1 { // spans within the axis, one hit for each point
		t.Errorf("%v", n)
	}
	for _, want := range []string{`x="50%" width="25%"`, `x="0%" width="100%"`, `x="91.67%" width="0.25%"`, `class="mark bad" x="0%"`, `class="mark warn" x="100%"`,
		`d="M166.67 50h0L200 73M916.67 4h0"`} {
		if !strings.Contains(string(drawn), want) {
			t.Errorf("no %s in %s", want, drawn)
		}
	}
}

func TestFirst(t *testing.T) {
	at := func(min int) time.Time { return noon.Add(-time.Duration(min) * time.Minute) }
	for name, tt := range map[string]struct {
		lane Lane
		want time.Time
	}{
		"nothing":         {Lane{}, time.Time{}},
		"outside":         {Lane{Spans: []Span{{From: at(90), To: at(70)}}, Marks: []Mark{{At: at(-5)}}}, time.Time{}},
		"since before":    {Lane{Spans: []Span{{From: at(90), To: at(50)}}, Marks: []Mark{{At: at(20)}}}, at(60)},
		"a mark":          {Lane{Marks: []Mark{{At: at(20)}, {At: at(30)}}}, at(30)},
		"a point, a span": {Lane{Spans: []Span{{From: at(10), To: at(5)}}, Line: &Line{Points: []Point{{At: at(40)}}}}, at(40)},
	} {
		if got := (Board{Axis: Axis{at(60), noon}, Lanes: []Lane{{}, tt.lane}}).First(); !got.Equal(tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// TestCourse: the numbers of a chart are also a table, and nothing in it is markup.
func TestCourse(t *testing.T) {
	drawn := Course{Board: Board{Axis: Axis{noon.Add(-time.Hour), noon}, Lanes: []Lane{{Name: "a"}}}, ID: evil, Caption: evil, Columns: []string{"Hour", evil}, Rows: [][]string{{"12:00", evil}, {evil, "3"}}}.HTML()
	n := elements(t, "<div>"+drawn+"</div>")
	if n["details"] != 1 || n["td"] != 2 || n["th"] != 4 || n["script"] != 0 {
		t.Errorf("%v in %s", n, drawn)
	}
}

// TestBars: the highest bar is as high as the picture, one of few is seen, and none is none.
func TestBars(t *testing.T) {
	drawn := Bars([]int64{0, 1, 1000, -1}, evil)
	if n := elements(t, drawn); n["rect"] != 2 || n["script"] != 0 || !strings.Contains(string(drawn), `x="5" y="19" width="4" height="1"`) || !strings.Contains(string(drawn), `y="0" width="4" height="20"`) {
		t.Errorf("%v in %s", n, drawn)
	}
}

func TestTicksAreRound(t *testing.T) {
	for _, tt := range []struct {
		length time.Duration
		want   string
	}{
		{time.Hour, "11:10 11:20 11:30 11:40 11:50"},
		{24 * time.Hour, "15:00 18:00 21:00 00:00 03:00 06:00 09:00"},
		{7 * 24 * time.Hour, "30 Apr 1 May 2 May 3 May 4 May 5 May 6 May"},
		{0, ""}, {-time.Hour, ""},
	} {
		var got []string
		for _, tick := range (Axis{noon.Add(-tt.length), noon}).Ticks() {
			got = append(got, tick.Text)
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%v: %s, want %s", tt.length, s, tt.want)
		}
	}
	for _, length := range []time.Duration{time.Nanosecond, 61 * time.Second, 40 * day, 4000 * day} {
		if n := len((Axis{noon.Add(-length), noon}).Ticks()); n > maxTicks+1 {
			t.Errorf("%v: %d ticks", length, n)
		}
	}
}

func TestShare(t *testing.T) {
	drawn := Share(0, Part{3, Good, evil}, Part{1, Bad, ""}, Part{0, Warn, "none"}, Part{-1, Warn, "less"})
	if n := elements(t, drawn); n["rect"] != 3 || !strings.Contains(string(drawn), `x="75%" width="25%"`) {
		t.Errorf("%v %s", n, drawn)
	}
	if drawn = Share(0); elements(t, drawn)["rect"] != 1 {
		t.Errorf("of nothing: %s", drawn)
	}
	if drawn = Share(400, Part{100, Plain, ""}); !strings.Contains(string(drawn), `x="0%" width="25%"`) {
		t.Errorf("of 400: %s", drawn)
	}
}

func BenchmarkBoard(b *testing.B) {
	axis := Axis{noon.Add(-day), noon}
	board := Board{Axis: axis}
	for range 3 {
		l := Lane{Name: "line", Line: &Line{}}
		for i := range 144 {
			at := axis.From.Add(time.Duration(i) * 10 * time.Minute)
			l.Line.Points = append(l.Line.Points, Point{at, float64(i % 17), fmt.Sprint(i)})
			l.Spans = append(l.Spans, Span{at, at.Add(time.Minute), Good, "x"})
		}
		board.Lanes = append(board.Lanes, l)
	}
	for b.Loop() {
		if board.HTML() == "" {
			b.Fatal("nothing drawn")
		}
	}
}
