package jdocs_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocspg"
)

var (
	robot    = thing.MustParse("vic:00e20100")
	settings = jdocs.Key{Thing: robot, Name: jdocs.RobotSettings}
)

func doc(version, format uint64, text string) jdocs.Doc {
	return jdocs.Doc{Version: version, FmtVersion: format, JSON: text}
}

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestWrite: VEC-JDS-02 and the original server's order of judging: version first, then format.
func TestWrite(t *testing.T) {
	svc := jdocs.New(jdocspg.New(pgtest.New(t)))
	for _, c := range []struct {
		name string
		doc  jdocs.Doc
		want jdocs.WriteResult
	}{
		{"create at 1", doc(1, 1, "{}"), jdocs.WriteResult{Status: jdocs.RejectedBadDocVersion, Latest: 0}},
		{"create without format", doc(0, 0, "{}"), jdocs.WriteResult{Status: jdocs.RejectedBadFmtVersion, Latest: 0}},
		{"neither fits", doc(1, 0, "{}"), jdocs.WriteResult{Status: jdocs.RejectedBadDocVersion, Latest: 0}},
		{"create", doc(0, 2, "{}"), jdocs.WriteResult{Status: jdocs.Accepted, Latest: 1}},
		{"create again", doc(0, 2, "{}"), jdocs.WriteResult{Status: jdocs.RejectedBadDocVersion, Latest: 1}},
		{"one ahead", doc(2, 2, "{}"), jdocs.WriteResult{Status: jdocs.RejectedBadDocVersion, Latest: 1}},
		{"far ahead", doc(math.MaxUint64, 2, "{}"), jdocs.WriteResult{Status: jdocs.RejectedBadDocVersion, Latest: 1}},
		{"absurd format", doc(1, math.MaxUint64, "{}"), jdocs.WriteResult{Status: jdocs.RejectedBadFmtVersion, Latest: 1}},
		{"update", doc(1, 2, "{}"), jdocs.WriteResult{Status: jdocs.Accepted, Latest: 2}},
		{"newer format", doc(2, 3, "{}"), jdocs.WriteResult{Status: jdocs.Accepted, Latest: 3}},
		{"older than an unknown format", doc(3, 2, "{}"), jdocs.WriteResult{Status: jdocs.RejectedBadFmtVersion, Latest: 3}},
	} {
		got, err := svc.Write(t.Context(), settings, c.doc, string(robot))
		if err != nil || got != c.want {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
	}
}

// TestFormats: software before 1.8 writes and reads format 1, later software format 2, and neither loses what the other keeps (peer facts,
// sections 4 and 5: settings that revert).
func TestFormats(t *testing.T) {
	svc := jdocs.New(jdocspg.New(pgtest.New(t)))
	robots := jdocs.Robots{Docs: svc}
	old, young := jdocs.Asker{Thing: robot, OS: "1.6.0.3331"}, jdocs.Asker{Thing: robot, OS: "1.8.1.6051"}
	read := func(who jdocs.Asker) jdocs.Doc {
		t.Helper()
		got, err := robots.Read(t.Context(), who, []jdocs.Item{{Name: jdocs.RobotSettings}})
		if err != nil {
			t.Fatal(err)
		}
		return got[0].Doc
	}
	write := func(who jdocs.Asker, d jdocs.Doc, want jdocs.WriteStatus) {
		t.Helper()
		if got, err := robots.Write(t.Context(), who, jdocs.RobotSettings, d); err != nil || got.Status != want {
			t.Errorf("write %+v: %v, %v; want %v", d, got, err, want)
		}
	}
	const volume, eyes = `"master_volume":2`, `"custom_eye_color":{"enabled":true,"hue":0.7,"saturation":1}`
	write(young, doc(0, 2, `{`+eyes+`,`+volume+`}`), jdocs.Accepted)
	if got := read(old); got.FmtVersion != 1 || !strings.Contains(got.JSON, volume) {
		t.Errorf("software 1.6 reads %+v", got)
	}
	write(old, doc(1, 1, `{"master_volume":5}`), jdocs.Accepted)
	if got := read(young); got.Version != 2 || got.FmtVersion != 1 || got.JSON != `{`+eyes+`,"master_volume":5}` {
		t.Errorf("software 1.8 reads %+v after software 1.6 wrote", got)
	}
	rev, err := svc.Set(t.Context(), settings, map[string]json.RawMessage{"master_volume": json.RawMessage("0")}, "operator")
	if err != nil || rev.FmtVersion != 1 {
		t.Errorf("an operator makes format %d of the old software's, %v", rev.FmtVersion, err)
	}
	if _, err := svc.Set(t.Context(), settings, map[string]json.RawMessage{"custom_eye_color.hue": json.RawMessage("0.5")}, "operator"); errs.CodeOf(err) != "old_format" {
		t.Errorf("a field that the robot's software does not have: %v", err)
	}
	write(young, doc(3, 2, read(young).JSON), jdocs.Accepted) // updated
	write(old, doc(4, 1, `[]`), jdocs.RejectedBadFmtVersion)  // would lose the eyes
	if got := read(jdocs.Asker{Thing: robot}); got.FmtVersion != 2 || got.Version != 4 || !strings.Contains(got.JSON, eyes) {
		t.Errorf("in the end %+v", got)
	}
	for os, want := range map[string]uint64{"1.7": 1, "0.12.1405": 1, "1.7.9.9ub": 1} {
		if got := jdocs.RobotSettings.Format(os); got != want {
			t.Errorf("format of software %q: %d", os, got)
		}
	}
	for _, os := range []string{"", "1.8", "1.8.0.6051", "2.0.1.6076", "dev", "1", "1.x"} {
		if got := jdocs.RobotSettings.Format(os); got < 2 {
			t.Errorf("format of software %q: %d", os, got)
		}
	}
}

// TestRead: VEC-JDS-03.
func TestRead(t *testing.T) {
	svc := jdocs.New(jdocspg.New(pgtest.New(t)))
	for v := range uint64(3) {
		if _, err := svc.Write(t.Context(), settings, doc(v, 2, `{"a":1}`), string(robot)); err != nil {
			t.Fatal(err)
		}
	}
	whole, head := doc(3, 2, `{"a":1}`), doc(3, 2, "")
	got, err := svc.Read(t.Context(), "", robot, []jdocs.Item{
		{Name: jdocs.RobotSettings, MyVersion: 0}, {Name: jdocs.RobotSettings, MyVersion: 2}, {Name: jdocs.RobotSettings, MyVersion: 3},
		{Name: jdocs.RobotSettings, MyVersion: 4}, {Name: jdocs.RobotLifetimeStats, MyVersion: 4},
	})
	want := []jdocs.ReadResult{{Status: jdocs.Changed, Doc: whole}, {Status: jdocs.Changed, Doc: whole}, {Status: jdocs.Unchanged, Doc: head},
		{Status: jdocs.Changed, Doc: whole}, {Status: jdocs.NotFound}}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v, %v\nwant %v", got, err, want)
	}
	if _, err := svc.Read(t.Context(), "", robot, make([]jdocs.Item, jdocs.MaxItems+1)); errs.KindOf(err) != errs.Invalid {
		t.Errorf("read of too many: %v, want invalid", err)
	}
	if _, err := svc.Read(t.Context(), "", robot, []jdocs.Item{{Name: jdocs.AccountSettings}}); errs.KindOf(err) != errs.Invalid {
		t.Errorf("read of an account's document without account: %v, want invalid", err)
	}
}

// TestLimits: VEC-JDS-10.
func TestLimits(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`{"a":`, n-1) + "[]" + strings.Repeat("}", n-1) }
	svc := jdocs.New(jdocspg.New(pgtest.New(t)))
	for i, c := range []struct {
		name string
		doc  jdocs.Doc
		want string // part of the error; "": accepted
	}{
		{"text of the largest size", doc(0, 1, `"`+strings.Repeat("a", jdocs.MaxJSON-2)+`"`), ""},
		{"one byte more", doc(0, 1, `"`+strings.Repeat("a", jdocs.MaxJSON-1)+`"`), "204801 bytes: want at most 204800"},
		{"16 levels", doc(0, 1, deep(16)), ""},
		{"17 levels", doc(0, 1, deep(17)), "byte 80 opens level 17"},
		{"brackets in a string", doc(0, 1, `"\"[[[[[[[[[[[[[[[[[[[[["`), ""},
		{"empty", doc(0, 1, ""), "byte 0"},
		{"not JSON", doc(0, 1, `{"a":1,}`), "byte 8"},
		{"two values", doc(0, 1, `{} {}`), "byte 4"},
		{"not UTF-8", doc(0, 1, "\"\xff\""), "UTF-8"},
		{"metadata of 32 characters", jdocs.Doc{FmtVersion: 1, JSON: "{}", ClientMeta: strings.Repeat("é", 32)}, ""},
		{"metadata of 33", jdocs.Doc{FmtVersion: 1, JSON: "{}", ClientMeta: strings.Repeat("é", 33)}, "at most 32"},
		{"metadata with a NUL", jdocs.Doc{FmtVersion: 1, JSON: "{}", ClientMeta: "\x00"}, "of text"},
	} {
		_, err := svc.Write(t.Context(), jdocs.Key{Thing: thing.MustParse(fmt.Sprintf("vic:%08x", i)), Name: settings.Name}, c.doc, "test")
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v; want invalid with %q", c.name, err, c.want)
		}
	}
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		account string
		id      thing.ID
		name    jdocs.Name
		want    string
	}{
		{"ann", robot, jdocs.RobotSettings, "vic:00e20100/vic.RobotSettings"},
		{"ann", robot, jdocs.AccountSettings, "ann/vic.AccountSettings"},
		{"", robot, jdocs.AccountSettings, ""},
		{"ann", "", jdocs.RobotSettings, ""},
		{strings.Repeat("a", 65), robot, jdocs.UserEntitlements, ""},
		{"a\x00", robot, jdocs.UserEntitlements, ""},
		{"ann", robot, "../secrets", ""},
		{"ann", robot, ".hidden", ""},
		{"ann", robot, "", ""},
	} {
		k, err := jdocs.NewKey(c.account, c.id, c.name)
		if c.want == "" && errs.KindOf(err) != errs.Invalid || c.want != "" && (err != nil || k.String() != c.want) {
			t.Errorf("NewKey(%.10q, %q, %q) = %v, %v; want %q", c.account, c.id, c.name, k, err, c.want)
		}
	}
}

func set(t *testing.T, svc jdocs.Service, fields string) (jdocs.Revision, error) {
	t.Helper()
	var f map[string]json.RawMessage
	if err := json.Unmarshal([]byte(fields), &f); err != nil {
		t.Fatal(err)
	}
	return svc.Set(t.Context(), settings, f, "ann")
}

func TestSet(t *testing.T) {
	svc := jdocs.New(jdocspg.New(pgtest.New(t)))
	rev, err := set(t, svc, `{"master_volume":3, "custom_eye_color.hue":0.4}`)
	if err != nil {
		t.Fatal(err)
	}
	if rev.Version != 1 || rev.FmtVersion != 2 || rev.By != "ann" {
		t.Errorf("first set: %+v, want version 1, format 2, by ann", rev)
	}
	if _, err := svc.Write(t.Context(), settings, doc(1, 2, `{"new_field": [1, 2],"master_volume":3,"locale":"de-DE"}`), string(robot)); err != nil {
		t.Fatal(err)
	}
	rev, err = set(t, svc, `{"master_volume":"mute","new.path":true,"new_field":null}`)
	if want := `{"locale":"de-DE","master_volume":0,"new":{"path":true}}`; err != nil || rev.JSON != want || rev.Version != 3 {
		t.Errorf("set: %+v, %v; want %s at version 3", rev, err, want)
	}
	if rev, err = set(t, svc, `{"master_volume":0}`); err != nil || rev.Version != 3 {
		t.Errorf("set to what it is: version %d, %v; want still 3", rev.Version, err)
	}
	for fields, want := range map[string]string{
		`{}`:                                      "at least one field",
		`{"master_volume":6}`:                     "0 MUTE, 1 LOW",
		`{"eye_color":"BLUE"}`:                    "0 TIP_OVER_TEAL",
		`{"clock_24_hour":1}`:                     "true or false",
		`{"custom_eye_color.hue":1.5}`:            "0 to 1",
		`{"custom_eye_color":{"hue":"x"}}`:        "hue",
		`{"time_zone":"Amerika/Nirgendwo"}`:       "no such time zone",
		`{"locale":"english, please"}`:            "IETF",
		`{"locale":null}`:                         "IETF",
		`{"locale.region":"US"}`:                  "locale is not an object",
		`{"":1}`:                                  "empty name",
		`{"new..path":1}`:                         "empty name",
		`{"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q":1}`: "levels",
	} {
		if _, err := set(t, svc, fields); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("set %s: %v; want invalid with %q", fields, err, want)
		}
	}
}

func TestEnumsByNumberAndName(t *testing.T) { // VEC-DOC-02
	for _, c := range []struct{ field, in, want string }{
		{"master_volume", `5`, "5"}, {"master_volume", `"5"`, "5"}, {"master_volume", `"High"`, "5"}, {"master_volume", `"MEDIUM_LOW"`, "2"},
		{"button_wakeword", `"BUTTON_WAKEWORD_ALEXA"`, "1"}, {"button_wakeword", `"hey_vector"`, "0"},
		{"eye_color", `"CONFUSION_MATRIX_GREEN"`, "6"}, {"dist_is_metric", `"true"`, "true"}, {"custom_eye_color.saturation", `"0.5"`, "0.5"},
		{"time_zone", `"Europe/Berlin"`, `"Europe/Berlin"`}, {"future_field", `{"x":1}`, `{"x":1}`},
		{"custom_eye_color", `{"enabled":"true","new":1}`, `{"enabled":true,"new":1}`},
	} {
		got, err := jdocs.CheckField(jdocs.RobotSettings, c.field, json.RawMessage(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("%s = %s: %s, %v; want %s", c.field, c.in, got, err, c.want)
		}
	}
}

func TestSetWhileOthersWrite(t *testing.T) {
	svc := jdocs.New(jdocspg.New(pgtest.New(t)))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			f := map[string]json.RawMessage{fmt.Sprintf("field%d", i): json.RawMessage("1")}
			if _, err := svc.Set(t.Context(), settings, f, "ann"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	rev, err := svc.Get(t.Context(), settings)
	if err != nil || rev.Version != 8 {
		t.Fatalf("version %d, %v; want 8", rev.Version, err)
	}
	for i := range 8 {
		if !strings.Contains(rev.JSON, fmt.Sprintf("field%d", i)) {
			t.Errorf("field%d is lost: %s", i, rev.JSON)
		}
	}
}

func TestStatisticsKeepTheirDots(t *testing.T) {
	svc := jdocs.New(jdocspg.New(pgtest.New(t)))
	key := jdocs.Key{Thing: robot, Name: jdocs.RobotLifetimeStats}
	rev, err := svc.Set(t.Context(), key, map[string]json.RawMessage{"Pet.ms": json.RawMessage("12")}, "ann")
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]float64
	if err := json.Unmarshal([]byte(rev.JSON), &m); err != nil {
		t.Fatal(err)
	}
	if len(m) != 41 || m["Pet.ms"] != 12 { // part of VEC-DOC-07, annex A
		t.Errorf("%d keys, Pet.ms %v; want 41 and 12", len(m), m["Pet.ms"])
	}
}

func TestHistoryAndMissing(t *testing.T) {
	svc := jdocs.New(jdocspg.New(pgtest.New(t)))
	if _, err := svc.Get(t.Context(), settings); !errors.Is(err, jdocs.ErrNotFound) || errs.KindOf(err) != errs.NotFound {
		t.Errorf("get of nothing: %v", err)
	}
	for _, limit := range []int{0, -1, jdocs.MaxHistory + 1} {
		if _, err := svc.History(t.Context(), settings, limit); errs.KindOf(err) != errs.Invalid {
			t.Errorf("history of %d: %v, want invalid", limit, err)
		}
	}
	if v, err := svc.Delete(t.Context(), settings, "ann"); err != nil || v != 0 { // VEC-JDS-04
		t.Errorf("delete of nothing: %d, %v; want 0", v, err)
	}
}

func FuzzCheckJSON(f *testing.F) {
	for _, s := range []string{"{}", `{"a":[1,2,{"b":null}]}`, `"\u0000"`, "[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]", "\"\xff\"", "{", "1e999"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := jdocs.CheckJSON(b)
		if err == nil != (json.Valid(b) && len(b) <= jdocs.MaxJSON && strings.ToValidUTF8(string(b), "") == string(b)) &&
			!strings.Contains(fmt.Sprint(err), "level") {
			t.Errorf("%q: %v", b, err)
		}
		if err != nil && errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q: kind %v", b, errs.KindOf(err))
		}
	})
}

// TestSchemas: what pages, commands and robots make from a schema is in it, and a field of one name is the same in the settings of all species,
// because programs of people set it for many robots at once.
func TestSchemas(t *testing.T) {
	types := map[string]string{}
	for _, s := range jdocs.Schemas {
		if ok, _ := jdocs.ParseName(string(s.Name)); ok == "" || len(s.Formats) == 0 || len(s.Fields) == 0 {
			t.Errorf("%+v", s)
		}
		if s.Species == "" {
			continue
		}
		if want := jdocs.Name(s.Species) + ".RobotSettings"; s.Name != want || jdocs.SettingsOf(s.Species) != want || !s.Begins || !s.Personal {
			t.Errorf("settings of %s: %+v; want %s, personal, with defaults (triggers of the database go by that name)", s.Species, s, want)
		}
		ids := map[string]bool{}
		for _, f := range s.Fields {
			if _, err := jdocs.CheckField(s.Name, f.Name, f.Default); err != nil {
				t.Errorf("default of %s: %v", s.Name, err)
			}
			if types[f.Name] == "" {
				types[f.Name] = f.Type
			}
			if types[f.Name] != f.Type {
				t.Errorf("%s of %s is %s, elsewhere %s", f.Name, s.Name, f.Type, types[f.Name])
			}
			if !slices.ContainsFunc(s.Groups, func(g jdocs.Group) bool { return g.Name == f.Group && g.Label != "" && g.Saves != "" }) {
				t.Errorf("%s of %s is in no group", f.Name, s.Name)
			}
			if f.Control == "" {
				continue
			}
			id := cmp.Or(f.Form.ID, f.Name)
			closed := f.Type == "enum" || f.Type == "bool" && f.Control != jdocs.ControlSwitch
			if f.Label == "" || f.Help == "" || ids[id] || closed && len(f.Choices) != max(len(f.Values), len(jdocs.Choices(s.Name, f.Name))) {
				t.Errorf("%s of %s: want label, help, a name of its own in forms, and a choice for each value: %+v", f.Name, s.Name, f)
			}
			ids[id] = true
			for _, c := range f.Choices {
				if v, err := jdocs.CheckField(s.Name, f.Name, c.Value); err != nil || !jdocs.Equal(v, c.Value) || c.Label == "" {
					t.Errorf("choice %+v of %s: %s, %v", c, f.Name, v, err)
				}
			}
			if custom, ok := s.Find(f.Custom); f.Custom != "" && (!ok || custom.Type != "object" || f.Control != jdocs.ControlColour) {
				t.Errorf("%s of %s: %s is no custom colour", f.Name, s.Name, f.Custom)
			}
		}
	}
	if got := jdocs.SettingsOf("snake") + jdocs.SettingsOf(""); got != "" {
		t.Errorf("settings of species that have none: %s", got)
	}
}

// TestChoices: each word that completion offers for a field is one that the field takes (VEC-DOC-02).
func TestChoices(t *testing.T) {
	for _, field := range jdocs.Fields(jdocs.RobotSettings) {
		for _, c := range jdocs.Choices(jdocs.RobotSettings, field) {
			if _, err := jdocs.CheckField(jdocs.RobotSettings, field, json.RawMessage(`"`+c+`"`)); err != nil {
				t.Errorf("%s=%s: %v", field, c, err)
			}
		}
	}
	if got := jdocs.Choices(jdocs.RobotSettings, "button_wakeword"); !slices.Equal(got, []string{"BUTTON_WAKEWORD_HEY_VECTOR"}) {
		t.Errorf("the button is offered %q, want no Alexa (VEC-AVS-02)", got)
	}
	if got := jdocs.Choices(jdocs.RobotSettings, "eye_color"); len(got) != 7 {
		t.Errorf("eye_color takes %v", got)
	}
	if len(jdocs.Fields(jdocs.RobotLifetimeStats)) == 0 || jdocs.Fields("vic.Other") != nil {
		t.Error("the lifetime statistics have fields of their own, an unknown document has none")
	}
}

// TestBounds: the limits of documents (VEC-JDS-10).
func TestBounds(t *testing.T) {
	if got := []int{jdocs.MaxID, jdocs.MaxMeta, jdocs.MaxJSON, jdocs.MaxDepth, jdocs.MaxItems}; !slices.Equal(got, []int{64, 32, 204800, 16, 64}) {
		t.Errorf("characters of an id and of metadata, bytes of a document, levels, documents of a read: %d", got)
	}
}
