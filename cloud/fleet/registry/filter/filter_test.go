package filter

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"", ""},
		{"presence:Online,offline,calls", "presence:present,absent,calls"},
		{"  presence:absent   version:<2.1 -tag:lab,demo battery:<3.60V seen:>3d 00e2 ", "presence:absent version:<2.1 -tag:lab,demo battery:<3.6 seen:>3d 00e2"},
		{"PRESENCE:Never tag:Lab", "presence:never tag:lab"},
		{"vic:00e20100", "vic:00e20100"}, // an id is a word
		{"-vic:00e2", "-vic:00e2"},
		{"id:vic:00e2*", "id:vic:00e2*"},
		{`"Rosie the robot"`, `"rosie the robot"`},
		{`name:"Ann \"R2\" \\ x"`, `name:"ann \"r2\" \\ x"`},
		{`"-x" "a:b" name:"<3"`, `"-x" "a:b" name:"<3"`},
		{"version:2.0.1.6076,2.1*,none agent:=1.2", "version:2.0.1.6076,2.1*,none agent:1.2"},
		{"cert:<7d cert:expired,none", "cert:<7d cert:expired,none"},
		{"seen:<2026-11-01 since:>=2026-11-01t18:00z created:<1h", "seen:<2026-11-01 since:>=2026-11-01T18:00Z created:<1h"},
		{"loop:late,>500us battery:low cohort:lab.1 problem:any model:V2.0", "loop:late,>500us battery:low cohort:lab.1 problem:any model:V2.0"},
		{"owner:Ann@Example.org", "owner:ann@example.org"},
	} {
		f, err := Parse(tc.in)
		if err != nil || f.String() != tc.want {
			t.Errorf("%s: %q, %v; want %q", tc.in, f, err, tc.want)
			continue
		}
		if again, err := Parse(f.String()); err != nil || again.String() != tc.want {
			t.Errorf("%s: read back as %q, %v", tc.in, again, err)
		}
	}
}

func TestNameless(t *testing.T) {
	if got := MustParse(`-owner:ann@example.org,bob tag:lab name:"Ann's" rosie`).Nameless(); got != "-owner:... tag:lab name:... ..." {
		t.Errorf("%s", got)
	}
}

// TestParseRefuses: errors say where, what, and what is wanted.
func TestParseRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"tag:a colour:red":                   `position 7, "colour:red": unknown key "colour": want one of presence, species`,
		"presence:here":                      "want one of online, offline, calls, never",
		"species:cat":                        "want one of vic, amigo, pleo, aibo",
		"battery:<20%":                       "not per cent",
		"battery:<-1":                        "want volts from 0 to 100",
		"battery:<NaN":                       "want volts from 0 to 100",
		"battery:3.6":                        "in a comparison such as <3.6",
		"seen:3d":                            "want never, a comparison such as >3d",
		"seen:>3y":                           "want a time such as 90m",
		"seen:>":                             "no value",
		"seen:>4000000000d":                  "want a time such as",
		"tag:":                               "no value",
		"tag:a,,b":                           "no value",
		"tag:<a":                             "tag cannot be compared",
		"version:2*1":                        "a * only at the end",
		"version:<2*":                        "not in a comparison",
		"id:*vic":                            "a * only at the end",
		"loop:>fast":                         "such as >500us",
		`name:"abc`:                          "no closing quote",
		`name:"abc"d`:                        "text after the closing quote",
		`na"me`:                              "quote within text",
		"a,b":                                "alternatives",
		`""`:                                 "no value",
		"a\x00b":                             "UTF-8 without NUL",
		"a\xffb":                             "UTF-8 without NUL",
		strings.Repeat("a ", 33):             "more than 32 terms",
		"tag:" + strings.Repeat("a,", 33):    "more than 32 alternatives",
		strings.Repeat("a", MaxText+1):       "a value of 101 bytes: at most 100",
		strings.Repeat(" ", MaxLength) + "a": "filter of 1001 bytes: at most 1000",
	} {
		_, err := Parse(in)
		if err == nil || errs.KindOf(err) != errs.Invalid || !strings.Contains(errs.Public(err), want) {
			t.Errorf("%.40q: %v; want %q", in, err, want)
		}
	}
}

// TestVersionKey: keys sort as versions do; equal ones share a line.
func TestVersionKey(t *testing.T) {
	order := [][]string{
		{""}, {"0.9"}, {"1.2-rc2"}, {"1.2-rc10"}, {"1.2", "v1.2.0", "1.02", "1.2.0.0", "1.2+build7"}, {"1.2.0.6"}, {"1.2.0.51"}, {"1.2.0.51d"}, {"1.2.0.51ep"}, {"1.9"}, {"1.10"},
		{"2.0.1.6076"}, {"2.0.1.6076ep"}, {"10"}, {"10.0.0.1"},
	}
	for i, same := range order {
		for _, v := range same {
			if VersionKey(v) != VersionKey(same[0]) {
				t.Errorf("%q and %q: %q and %q, want the same", v, same[0], VersionKey(v), VersionKey(same[0]))
			}
			for j := range i {
				if a := order[j][0]; !(VersionKey(a) < VersionKey(v)) {
					t.Errorf("%q (%q) does not come before %q (%q)", a, VersionKey(a), v, VersionKey(v))
				}
			}
		}
	}
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestMatch(t *testing.T) {
	away := Row{Thing: "vic:00e20100", Created: noon.AddDate(0, -1, 0), Since: noon.Add(-100 * time.Hour), Seen: noon.Add(-100 * time.Hour), Version: "2.0.1.6076", Agent: "1.9.0",
		Body: "V2", Model: "Vector 2.0", Volts: 3.55, Level: "low", Late: 900, Loop: Late, Problems: []string{"battery", "robotd"}, Tags: []string{"lab"}, Cert: noon.Add(48 * time.Hour)}
	here := Row{Thing: "pleo:77", Present: true, Created: noon, Since: noon.Add(-time.Minute), Seen: noon.Add(-time.Second), Late: -1, Loop: None}
	never := Row{Thing: "amigo:1", Created: noon.Add(-time.Hour), Late: -1, Loop: None}
	for in, want := range map[string]string{
		"":                                "vpa",
		"presence:present":                "p",
		"presence:absent":                 "va",
		"presence:never":                  "a",
		"-presence:never":                 "vp",
		"species:vic,pleo":                "vp",
		"vic:00E2":                        "v",
		"vector":                          "v", // part of the model
		"lab -pleo":                       "v",
		"id:vic:*,amigo:1":                "va",
		"version:2.0.1.6076":              "v",
		"version:2.0*":                    "v",
		"version:<2.1":                    "v",
		"version:>=2.0.1.6076":            "v",
		"version:>2.0.1.6076":             "",
		"version:none":                    "pa",
		"agent:<1.10":                     "v",
		"body:V2":                         "v",
		"tag:lab,x":                       "v",
		"tag:none":                        "pa",
		"tag:any":                         "v",
		"-tag:lab":                        "pa",
		"battery:<3.6":                    "v",
		"battery:low":                     "v",
		"battery:unknown":                 "pa",
		"problem:robotd":                  "v",
		"problem:any":                     "v",
		"problem:none":                    "pa",
		"cert:<7d":                        "v",
		"cert:<1d":                        "",
		"cert:>1d":                        "v",
		"cert:expired":                    "",
		"cert:none":                       "pa",
		"cert:<2026-12-01":                "v",
		"seen:>3d":                        "v",
		"seen:<1h":                        "p",
		"seen:>5d":                        "",
		"seen:never":                      "a",
		"seen:<2026-11-20":                "v",
		"seen:>2026-11-20":                "p",
		"since:<5m":                       "p",
		"created:>2w":                     "v",
		"created:<2h":                     "pa",
		"loop:late":                       "v",
		"loop:none":                       "pa",
		"loop:>500us":                     "v",
		"loop:<1ms":                       "v",
		"model:\"Vector 2.0\"":            "v",
		"presence:absent,present tag:lab": "v",
		"cohort:labs":                     "v",
		"-cohort:labs":                    "pa",
		"name:rosie":                      "p",
		"rosie":                           "p",
		"owner:ann":                       "a",
		"-owner:ann":                      "vp",
		"cohort:outer":                    "a",
	} {
		f, err := MustParse(in).Resolve(t.Context(), sources)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		got := ""
		for name, r := range map[string]*Row{"v": &away, "p": &here, "a": &never} {
			if f.Match(r, noon) {
				got += name
			}
		}
		if len(got) != len(want) || strings.Trim(got, want) != "" {
			t.Errorf("%s: selects %q, want %q", in, got, want)
		}
	}
}

var sources = Sources{
	Cohort: func(_ context.Context, name string) (Filter, error) {
		switch name {
		case "labs":
			return MustParse("tag:lab battery:<4"), nil
		case "outer":
			return MustParse("-cohort:labs presence:absent"), nil
		case "ring":
			return MustParse("cohort:ring"), nil
		}
		return Filter{}, errs.New(errs.NotFound, "there is no cohort %s", name)
	},
	Named: func(context.Context, []string) (map[string][]thing.ID, error) {
		return map[string][]thing.ID{"rosie": {"pleo:77"}}, nil
	},
	OwnedBy: func(_ context.Context, text string) ([]thing.ID, error) {
		if text == "secret" {
			return nil, errs.New(errs.Denied, "not you")
		}
		return []thing.ID{"amigo:1"}, nil
	},
}

func TestResolveRefuses(t *testing.T) {
	broken := sources
	broken.Named = func(context.Context, []string) (map[string][]thing.ID, error) {
		return nil, errors.New("password of the database")
	}
	for _, tc := range []struct {
		in   string
		src  Sources
		kind errs.Kind
		want string
	}{
		{"cohort:none", sources, errs.NotFound, "there is no cohort none"},
		{"cohort:ring", sources, errs.Invalid, "cycle"},
		{"owner:secret", sources, errs.Denied, "not you"},
		{"owner:ann", Sources{}, errs.Invalid, "owners cannot"},
		{"name:ann", Sources{}, errs.Invalid, "names that owners gave"},
		{"cohort:labs", Sources{}, errs.Invalid, "cohorts cannot"},
		{"ann", broken, errs.Internal, "internal error"},
	} {
		_, err := MustParse(tc.in).Resolve(t.Context(), tc.src)
		if err == nil || errs.KindOf(err) != tc.kind || !strings.Contains(errs.Public(err), tc.want) {
			t.Errorf("%s: %v, want kind %v and %q", tc.in, err, tc.kind, tc.want)
		}
	}
	if _, err := MustParse("ann").Resolve(t.Context(), Sources{}); err != nil {
		t.Errorf("a word where no names are known: %v", err)
	}
}

// TestCost: what a filter costs is known before it is asked, each cohort is read once, and the refusal says what is too much and what to do.
func TestCost(t *testing.T) {
	reads := 0
	wide := strings.TrimSuffix(strings.Repeat("cohort:ids,ids,ids,ids ", 8), " ")
	src := Sources{
		Cohort: func(_ context.Context, name string) (Filter, error) {
			reads++
			return MustParse(map[string]string{
				"ids": "id:" + strings.Repeat("a,", 30) + "a", "words": strings.Repeat("w ", 32), "wide": wide, "wider": strings.ReplaceAll(wide, "ids", "wide"),
			}[name]), nil
		},
		Named: func(_ context.Context, texts []string) (map[string][]thing.ID, error) {
			if len(texts) != 1 || texts[0] != "w" {
				t.Errorf("asked for the names %q", texts)
			}
			return nil, nil
		},
	}
	for in, want := range map[string]string{
		strings.Repeat("w ", 32): "", "cohort:words": "", "cohort:words,words": "", "cohort:ids,ids,ids": "",
		"cohort:words,words w": "costs 520: want at most 512", "cohort:wide": "costs 992:", "cohort:wider": "costs 31744:", "-cohort:wider w": "costs 31752:",
	} {
		reads = 0
		_, err := MustParse(in).Resolve(t.Context(), src)
		if want == "" && err != nil {
			t.Errorf("%s: %v", in, err)
		}
		if want != "" && (errs.KindOf(err) != errs.Invalid || errs.CodeOf(err) != "filter_cost" || !strings.Contains(errs.Public(err), want) || !strings.Contains(errs.Public(err), "tag the robots")) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
		if reads > 3 {
			t.Errorf("%s: %d cohorts read", in, reads)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", `a "b c" -tag:x,y`, "version:<2.1,none", "seen:>3d cert:<2026-11-01", `name:"\"\\"`, "vic:00e2*", "battery:<3.60v loop:late", "-", "tag:\u00c9", "İ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := Parse(s)
		if err != nil {
			if errs.KindOf(err) != errs.Invalid || errs.Public(err) == "" {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		text := a.String()
		if len(text) > MaxLength {
			return // quotes made it longer than what is taken
		}
		b, err := Parse(text)
		if err != nil || b.String() != text {
			t.Fatalf("%q: its form %q reads as %q, %v", s, text, b, err)
		}
		r := Row{Thing: "vic:1", Tags: []string{"x"}}
		if a.Match(&r, noon) != b.Match(&r, noon) {
			t.Fatalf("%q and %q select differently", s, text)
		}
	})
}

func FuzzVersionKey(f *testing.F) {
	f.Add("2.0.1.6076ep")
	f.Add("v2.1")
	f.Add("00.0")
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.TrimSpace(s)
		k := VersionKey(s)
		if strings.ContainsAny(s, "+-") || s == "" {
			return
		}
		if pre := VersionKey(s + "-rc1"); !(pre < k) || k == "" {
			t.Fatalf("%q: %q does not come after its pre-release %q", s, k, pre)
		}
		if later := VersionKey(s + ".1"); !(k < later) || VersionKey(s+"+build") != k {
			t.Fatalf("%q: %q does not come before %q, or its build matters", s, k, later)
		}
	})
}
