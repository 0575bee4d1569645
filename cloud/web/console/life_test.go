package console

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/page"
	"kennel/cloud/telemetry/das"
	"kennel/infra/auth"
	"kennel/jdocs"
)

// TestWhoChangedWhat: what an operator asks about a setting: what it was, what it is, who changed it, when; the list says it newest first.
func TestWhoChangedWhat(t *testing.T) {
	var got []string
	for _, e := range edits(rex, jdocs.RobotSettings, settingsHistory) {
		got = append(got, fmt.Sprintf("%d %s by robot %v was %s", e.Version, e.Sentence(), e.ByRobot, e.Was))
	}
	want := []string{`3 Volume: low → high by robot false was 1`, `3 odd: not set → </code><script> by robot false was `, `2 Volume: medium high → low by robot true was 4`, `1 vic.RobotSettings began by robot true was `}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	deleted := edits(rex, "x", []jdocs.Revision{{Doc: jdocs.Doc{Version: 9}, Deleted: true}})
	if len(deleted) != 1 || deleted[0].Sentence() != "x deleted" {
		t.Errorf("%+v", deleted)
	}
	if cut := edits(rex, "x", []jdocs.Revision{{Doc: jdocs.Doc{Version: 9, JSON: `{"a":1}`}}}); len(cut) != 0 {
		t.Errorf("a history without its beginning tells of %+v", cut)
	}
}

// TestSettingsPage: wanted beside what the robot has, by the version that it reports; former values are one form away.
func TestSettingsPage(t *testing.T) {
	mux, _ := open(t, &fleet{things: []registry.Thing{nasty()}})
	body := do(t, mux, auth.Support, "GET", "/things/vic:00e20100/settings", "").Body.String()
	row := body[strings.Index(body, `id="f-vic.RobotSettings-master_volume"`):]
	row = row[:strings.Index(row, "</tr>")]
	for _, want := range []string{"<strong>high</strong>", "still low", "from low, by", `value="1"><button class="quiet">Restore low`, `value="4"><button class="quiet">Restore medium high`, `<option value="5" selected>high</option>`} {
		if !strings.Contains(row, want) {
			t.Errorf("no %s in %s", want, row)
		}
	}
	if !strings.Contains(body, "The robot has version 2") || !strings.Contains(body, "✓ Europe/Paris") {
		t.Error("the page does not say what the robot has")
	}
	if strings.Contains(do(t, mux, auth.Viewer, "GET", "/things/vic:00e20100/settings", "").Body.String(), "Set back") {
		t.Error("a viewer is offered a change")
	}
}

// TestSetFieldReadsWhatPeopleType: a word stays a word, a number a number; what a form sets back is taken exactly.
func TestSetFieldReadsWhatPeopleType(t *testing.T) {
	mux, d := openDesk(t)
	for _, tt := range []struct{ field, value, exact, want string }{
		{"locale", "123", "", `{"locale":"123"}`}, // refused below: no language
		{"default_location", "7 Baker Street", "", `{"default_location":"7 Baker Street"}`},
		{"odd", "plain words", "", `{"odd":"plain words"}`},
		{"odd", "7", "", `{"odd":7}`},
		{"odd", `"7"`, "1", `{"odd":"7"}`},
		{"custom_eye_color.hue", " 0.5 ", "", `{"custom_eye_color.hue":0.5}`},
	} {
		d.did = nil
		w := do(t, mux, auth.Admin, "POST", "/things/vic:00e20100/settings", form("doc", "vic.RobotSettings", "field", tt.field, "value", tt.value, "exact", tt.exact), "Sec-Fetch-Site", "same-origin")
		if tt.field == "locale" {
			if w.Code != 400 || len(d.did) != 0 {
				t.Errorf("%+v: %d %q", tt, w.Code, d.did)
			}
			continue
		}
		if w.Code != 303 || len(d.did) != 2 || !strings.Contains(d.did[1], tt.want) {
			t.Errorf("%+v: %d %q", tt, w.Code, d.did)
		}
	}
	for _, bad := range []string{form("doc", "vic.AppTokens", "field", "x", "value", "1"), form("doc", "no such/doc", "field", "x", "value", "1"), form("doc", "vic.Other", "field", "x", "value", "1"), form("doc", "vic.RobotSettings", "value", "1")} {
		d.did = nil
		if w := do(t, mux, auth.Admin, "POST", "/things/vic:00e20100/settings", bad, "Sec-Fetch-Site", "same-origin"); w.Code < 400 || w.Code >= 500 || len(d.did) != 0 {
			t.Errorf("%s: %d %q", bad, w.Code, d.did)
		}
	}
}

// TestLifeOnOneAxis: the journal tells what the lanes show, can be narrowed, and says what was not read.
func TestLifeOnOneAxis(t *testing.T) {
	c, err := newConsole(Config{Fleet: &fleet{things: []registry.Thing{nasty()}}, Auth: &door{}, Log: slog.New(slog.DiscardHandler), Docs: papers{&desk{}}, Commands: outbox{&desk{}}, Events: diary{}, Vitals: curves, Audit: (&desk{}).audit})
	if err != nil {
		t.Fatal(err)
	}
	c.now = func() time.Time { return noon }
	report, err := c.Fleet.Doctor(t.Context(), rex)
	if err != nil {
		t.Fatal(err)
	}
	life := func(query string) lifeView {
		t.Helper()
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		v, err := c.life(t.Context(), q, thingHead{Thing: nasty()}, report)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := life("")
	kinds := map[string]int{}
	for i, e := range v.Journal {
		kinds[e.Kind]++
		if i > 0 && e.At.After(v.Journal[i-1].At) {
			t.Errorf("%v after %v", e.At, v.Journal[i-1].At)
		}
	}
	for _, k := range journalKinds[1:] {
		if kinds[k.Kind] == 0 {
			t.Errorf("the journal of a day tells nothing about %s: %v", k.Kind, kinds)
		}
	}
	for _, lane := range []string{"Online", "Connection", "Settings", "Commands", "Faults", "Crashes", "Updates", "Lost events", "Events", "Battery", "Loop, p99 late"} {
		if !strings.Contains(string(v.Board), "<span>"+lane+"</span>") {
			t.Errorf("no lane %s", lane)
		}
	}
	for kind, want := range map[string]string{"crash": "Crash of vic-engine, " + evil, "fault": "Fault vic-engine, " + evil, "update": "Download failed, " + evil, "loss": "10 events did not come (7 to 16 of boot b-1)"} {
		if list := life("about=" + kind).Journal; len(list) == 0 || list[0].Text != want {
			t.Errorf("%s: %+v; want %s", kind, list, want)
		}
	}
	if want := noon.Add(-(lifeEvents - 1) * time.Minute); !v.Unread.Equal(want) {
		t.Errorf("events before %v were not read, says %v", want, v.Unread)
	}
	if v = life("zoom=hour"); !v.Unread.IsZero() || v.Later != "" || !strings.Contains(v.Earlier, "until=2026-05-06T11%3A30%3A00Z") {
		t.Errorf("an hour: unread %v, later %q, earlier %q", v.Unread, v.Later, v.Earlier)
	}
	for _, e := range life("about=setting").Journal {
		if e.Kind != "setting" {
			t.Errorf("about settings: %+v", e)
		}
	}
	if v = life("zoom=week&until=2020-01-01T00:00:00Z"); len(v.Journal) != 0 || v.Later == "" || v.Now == "" {
		t.Errorf("long ago: %d entries, later %q", len(v.Journal), v.Later)
	}
}

// TestTimelineZoom: a timeline begins with the first thing that there is to see; the timeline of a robot that left days ago ends when it left.
func TestTimelineZoom(t *testing.T) {
	c, err := newConsole(Config{Fleet: &fleet{}, Auth: &door{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c.now = func() time.Time { return noon }
	here, gone := nasty(), nasty()
	gone.Presence, gone.Since, gone.LastSeen, gone.Created = registry.Absent, noon.Add(-72*time.Hour), noon.Add(-72*time.Hour), noon.AddDate(-1, 0, 0)
	for _, tt := range []struct {
		name, query string
		thing       registry.Thing
		from, to    time.Time
	}{
		{"online for an hour", "", here, noon.Add(-time.Hour - 72*time.Second), noon},
		{"an hour of a week", "zoom=week", here, noon.Add(-time.Hour - 72*time.Second), noon},
		{"another time", "until=2026-05-06T11:30:00Z", here, noon.Add(-30*time.Minute - day), noon.Add(-30 * time.Minute)},
		{"gone for three days", "", gone, noon.Add(-71*time.Hour - day), noon.Add(-71 * time.Hour)},
		{"gone, but this hour was asked for", "zoom=hour", gone, noon.Add(-time.Hour), noon},
	} {
		q, err := url.ParseQuery(tt.query)
		if err != nil {
			t.Fatal(err)
		}
		v, err := c.life(t.Context(), q, thingHead{Thing: tt.thing}, registry.Report{})
		if err != nil || !v.From.Equal(tt.from) || !v.To.Equal(tt.to) {
			t.Errorf("%s: %v to %v, %v; want %v to %v", tt.name, v.From, v.To, err, tt.from, tt.to)
		}
	}
	c.Events = rare{}
	v, err := c.life(t.Context(), url.Values{}, thingHead{Thing: here}, registry.Report{})
	if want := noon.Add(-2*time.Hour - 144*time.Second); err != nil || !v.From.Equal(want) || !strings.Contains(string(v.Board), "1 events about 6 May 09:59") {
		t.Errorf("one event two hours ago: from %v, %v; want %v and the event where it was: %s", v.From, err, want, v.Board)
	}
}

// rare is a robot that sent one event, two hours ago.
type rare struct{ diary }

func (rare) List(context.Context, das.Filter, int, das.Cursor) ([]das.Record, error) {
	return []das.Record{{Received: noon.Add(-2 * time.Hour)}}, nil
}

// TestTail: rows come as the page's own template makes them, a burst is cut and counted, and what a robot says is text.
func TestTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux, _ := open(t, &fleet{})
		ctx, cancel := context.WithCancel(t.Context())
		out, in := io.Pipe()
		r := httptest.NewRequestWithContext(auth.WithCaller(ctx, auth.Caller{Role: auth.Viewer}), "GET", "/tail/stream", nil)
		done := make(chan struct{})
		go func() { mux.ServeHTTP(streamed{in, http.Header{}}, r); in.Close(); close(done) }()
		var event string
		rows, skipped := 0, 0
		for sc := bufio.NewScanner(out); sc.Scan(); {
			line := sc.Text()
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				event = name
			}
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok {
				continue
			}
			switch event {
			case "rows":
				var made string
				if err := json.Unmarshal([]byte(data), &made); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(made, "<script>") || !strings.Contains(made, "&lt;script&gt;") || !strings.Contains(made, `href="/things/vic:00e20100"`) {
					t.Errorf("rows %s", made)
				}
				rows += strings.Count(made, "<tr ")
			case "skipped":
				if _, err := fmt.Sscan(data, &skipped); err != nil {
					t.Fatal(err)
				}
				cancel()
			}
		}
		<-done
		if rows != tailRows || skipped != 200-tailRows {
			t.Errorf("%d rows and %d skipped, want %d and %d", rows, skipped, tailRows, 200-tailRows)
		}
		cancel()
	})
}

// TestTailsAreBounded: each reads what the whole fleet reports.
func TestTailsAreBounded(t *testing.T) {
	c, err := newConsole(Config{Fleet: &fleet{}, Auth: &door{}, Log: slog.New(slog.DiscardHandler), Events: diary{}})
	if err != nil {
		t.Fatal(err)
	}
	c.tails.open.Store(tailStreams)
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(auth.WithCaller(t.Context(), auth.Caller{Role: auth.Viewer}), "GET", "/tail/stream", nil)
	c.tailStream(w, r)
	if w.Code != http.StatusTooManyRequests || c.tails.open.Load() != tailStreams {
		t.Errorf("%d, %d open", w.Code, c.tails.open.Load())
	}
}

// TestTheme: light or dark is kept in a cookie, drawn from the first moment, and nothing else gets into the page by it.
func TestTheme(t *testing.T) {
	mux, _ := open(t, &fleet{})
	w := do(t, mux, auth.Viewer, "POST", "/theme", form("theme", "dark", "next", "/things?q=x"), "Sec-Fetch-Site", "same-origin")
	if w.Code != 303 || w.Header().Get("Location") != "/things?q=x" || !strings.Contains(w.Header().Get("Set-Cookie"), "kennel_theme=dark; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax") {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if body := do(t, mux, auth.Viewer, "GET", "/things", "", "Cookie", "kennel_theme=dark").Body.String(); !strings.Contains(body, `<html lang="en" data-theme="dark">`) {
		t.Error("the page is not dark")
	}
	if body := do(t, mux, auth.Viewer, "GET", "/things", "", "Cookie", `kennel_theme="><script>`).Body.String(); !strings.Contains(body, `<html lang="en">`) {
		t.Error("a cookie of another kind gets into the page")
	}
	w = do(t, mux, auth.Viewer, "POST", "/theme", form("theme", "", "next", "https://evil.example/"), "Sec-Fetch-Site", "same-origin")
	if w.Header().Get("Location") != "/" || !strings.Contains(w.Header().Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("%v", w.Header())
	}
	if w = do(t, mux, auth.Viewer, "POST", "/theme", form("theme", "dark"), "Sec-Fetch-Site", "cross-site"); w.Code != 403 {
		t.Errorf("from another site: %d", w.Code)
	}
	if page.Theme(httptest.NewRequest("GET", "/", nil)) != "" {
		t.Error("a theme without a cookie")
	}
}

func FuzzFlatten(f *testing.F) {
	for _, r := range settingsHistory {
		f.Add(r.JSON)
	}
	f.Add(`[1,2]`)
	f.Add(`{"a":{"b":{"c":{"d":1}}},"":{"":1}}`)
	f.Add("not json")
	f.Fuzz(func(t *testing.T, text string) {
		for name, value := range flatten(text) {
			_ = fieldOf(jdocs.RobotSettings, name).say(value)
		}
		if json.Valid([]byte(text)) && strings.HasPrefix(strings.TrimSpace(text), "{") {
			if list := edits(rex, "x", []jdocs.Revision{{Doc: jdocs.Doc{Version: 3, JSON: text}}, {Doc: jdocs.Doc{Version: 2, JSON: text}}}); len(list) != 0 {
				t.Errorf("nothing changed: %+v", list)
			}
		}
	})
}

// TestEventsPage: the address is the question; the answer is a chart, a table and the events; what cannot be asked says what was expected, beside what was typed.
func TestEventsPage(t *testing.T) {
	mux, _ := open(t, &fleet{things: []registry.Thing{nasty()}})
	for _, tt := range []struct {
		query string
		want  []string
		not   string
	}{
		{"", []string{`value="1h"`, "61 events of 2 robots", "1 schema errors", `<div class="board"`, "<span>Robots</span>", "format=parquet"}, "Invalid search"},
		{"since=2026-05-06T00:00:00Z&until=2026-05-06T12:00:01Z", []string{`rel="next"`, "before=", "battery.periodic_log"}, "Invalid search"},
		{"name=battery.low&of=battery&by=day&since=3d", []string{"Values of battery.low: i1 battery (mV)", "Median of i1", "p99 9", `<option selected>day</option>`}, "<script>alert"},
		{"by=event", []string{"&lt;script&gt;", `name=%3Cscript%3E`}, "<script>alert"},
		{"value=i1%3Clots", []string{"Invalid search", "64-bit integer", `value="i1&lt;lots"`}, "Latest events"},
		{"nonsense=1", []string{"Invalid search", "want thing, robots"}, "Latest events"},
		{"source=slow", []string{"Not counted", "choose a shorter time", "Latest events"}, "61 events"},
		{"thing=vic:00e20100&before=x", []string{"Invalid search", "microseconds~thing~boot~seq"}, "Latest events"},
	} {
		w := do(t, mux, auth.Viewer, "GET", "/events?"+tt.query, "")
		body := w.Body.String()
		for _, want := range tt.want {
			if w.Code != 200 || !strings.Contains(body, want) {
				t.Errorf("%s: %d, no %s in\n%.3000s", tt.query, w.Code, want, body)
			}
		}
		if strings.Contains(body, tt.not) {
			t.Errorf("%s: it has %s", tt.query, tt.not)
		}
	}
	if w := do(t, mux, auth.Owner, "GET", "/events", ""); w.Code != 403 {
		t.Errorf("an owner gets %d", w.Code)
	}
}

// TestExperimentsPage (VEC-DAS-16): which there are, how the variations of one differ, and why one cannot be compared.
func TestExperimentsPage(t *testing.T) {
	mux, _ := open(t, &fleet{things: []registry.Thing{nasty()}})
	for query, want := range map[string]string{"": "treatment 28", "key=faster&name=robot.fault_code": "95 % interval 0.25 to 0.55: a clear difference", "key=faster&name=battery.low&of=battery": "mean of i1",
		"key=faster": "Name is missing", "key=faster&name=battery.low&of=s1": "want a number"} {
		if w := do(t, mux, auth.Viewer, "GET", "/experiments?"+query, ""); w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d, no %s in\n%.4000s", query, w.Code, want, w.Body)
		}
	}
}
