package companion

import (
	"bufio"
	"context"
	"errors"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/infra/api/status"
	"kennel/infra/auth"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// read holds the settings that the page reads from a document of a Vector.
type read struct {
	Eyes            string
	Custom          bool
	Hue, Saturation int
	Fields          map[string]string // others, as JSON
}

func readVector(doc string) read {
	s := readSettings(jdocs.RobotSettings, doc)
	f, _ := s.schema.Find("eye_color")
	r := read{Eyes: string(s.value["eye_color"]), Fields: map[string]string{}}
	r.Hue, r.Saturation, r.Custom = s.custom(f)
	for name, v := range s.value {
		if name != "eye_color" && name != "custom_eye_color" {
			r.Fields[name] = string(v)
		}
	}
	return r
}

// TestSettingsAreRead: what is there, by number or name, and the default for what is absent or nonsense (VEC-DOC-01, VEC-DOC-02).
func TestSettingsAreRead(t *testing.T) {
	first := read{"0", false, 151, 100, map[string]string{"master_volume": "4", "locale": `"en-US"`, "default_location": `"San Francisco, California, United States"`, "time_zone": `"America/Los_Angeles"`,
		"temp_is_fahrenheit": "true", "button_wakeword": "0", "clock_24_hour": "false", "dist_is_metric": "false"}}
	with := func(f func(*read)) read {
		s := first
		s.Fields = maps.Clone(first.Fields)
		f(&s)
		return s
	}
	for doc, want := range map[string]read{
		``: first, `[]`: first, `{}`: first, jdocs.Default(jdocs.RobotSettings).JSON: first,
		`{"eye_color":"SINGULARITY_SAPPHIRE","master_volume":"mute"}`:       with(func(s *read) { s.Eyes, s.Fields["master_volume"] = "4", "0" }),
		`{"eye_color":99,"master_volume":{},"locale":7,"time_zone":null}`:   first,
		`{"custom_eye_color":{"enabled":true,"hue":0.5,"saturation":0.25}}`: with(func(s *read) { s.Custom, s.Hue, s.Saturation = true, 180, 25 }),
		`{"custom_eye_color":{"enabled":false,"hue":0,"saturation":0}}`:     first,
		`{"custom_eye_color":{"enabled":true,"hue":7}}`:                     first,
		`{"locale":"fr-FR"}`: with(func(s *read) { s.Fields["locale"] = `"fr-FR"` }),
		`{"button_wakeword":1,"clock_24_hour":true,"dist_is_metric":true,"more":[1]}`: with(func(s *read) {
			s.Fields["button_wakeword"], s.Fields["clock_24_hour"], s.Fields["dist_is_metric"] = "1", "true", "true"
		}),
	} {
		if got := readVector(doc); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", doc, got, want)
		}
	}
}

func FuzzReadSettings(f *testing.F) {
	f.Add(jdocs.Default(jdocs.RobotSettings).JSON)
	f.Add(`{"eye_color":-1,"custom_eye_color":{"enabled":true,"hue":1e300}}`)
	f.Fuzz(func(t *testing.T, doc string) {
		s := readSettings(jdocs.RobotSettings, doc)
		if !regexp.MustCompile(`^#[0-9a-f]{6}$`).MatchString(s.Color()) {
			t.Fatalf("%s: %+v, %s", doc, s, s.Color())
		}
		for _, f := range s.schema.Fields {
			if f.Type != "locale" && len(f.Choices) > 0 && !slices.ContainsFunc(f.Choices, func(c jdocs.Choice) bool { return s.chosen(f, c) }) {
				t.Fatalf("%s: %s is %s, which is none of its choices", doc, f.Name, s.value[f.Name])
			}
		}
		tiles(readStats(doc), true)
	})
}

// TestEyesAreThoseOfTheRobot (VEC-DOC-03).
func TestEyesAreThoseOfTheRobot(t *testing.T) {
	schema, _ := jdocs.SchemaOf(jdocs.RobotSettings)
	f, _ := schema.Find("eye_color")
	pairs := [][2]float64{{.42, 1}, {.05, .95}, {.11, 1}, {.21, 1}, {.57, 1}, {.83, .76}, {.30, 1}} // of eye_color_config.json
	if len(f.Choices) != len(pairs) || len(f.Values) != len(pairs) {
		t.Fatalf("%d eyes and %d names, want %d", len(f.Choices), len(f.Values), len(pairs))
	}
	for i, e := range f.Choices {
		if !strings.Contains(f.Values[i], strings.ToUpper(e.Label)) || string(e.Value) != strconv.Itoa(i) || pairs[i] != [2]float64{e.Hue, e.Saturation} {
			t.Errorf("%s is called %s, of hue %v and saturation %v; want %v", f.Values[i], e.Label, e.Hue, e.Saturation, pairs[i])
		}
	}
	for want, hs := range map[string][2]float64{"#ff0000": {0, 1}, "#00ff00": {1. / 3, 1}, "#0000ff": {2. / 3, 1}, "#ffffff": {.2, 0}, "#80ffff": {.5, .5}, "#ff0001": {.9995, 1}} {
		if got := color(hs[0], hs[1]); got != want {
			t.Errorf("%v: %s, want %s", hs, got, want)
		}
	}
}

// TestEyesPreview: the face on the page of settings has the colour that is chosen, however the robot is.
func TestEyesPreview(t *testing.T) {
	mux, _ := open(t)
	page := do(t, mux, "ann", "GET", "/my/robots/"+string(rex)+"/settings", "").Body.String() // rex has a problem
	form := page[strings.Index(page, "eyes-form"):]
	if face := form[strings.Index(form, `class="face`):]; !strings.HasPrefix(face, `class="face here"`) {
		t.Errorf("the face is %.40s", face)
	}
}

// TestNoAlexa: Alexa is offered only on the page of a robot whose button is set to it, so that its owner can choose otherwise (VEC-AVS-02).
func TestNoAlexa(t *testing.T) {
	mux, h := open(t)
	for settings, want := range map[string]bool{`{}`: false, `{"button_wakeword":0}`: false, `{"button_wakeword":1}`: true} {
		h.settings = settings
		if page := do(t, mux, "ann", "GET", "/my/robots/"+string(rex)+"/settings", "").Body.String(); strings.Contains(page, `value="alexa"`) != want {
			t.Errorf("%s: Alexa is offered: %v, want %v", settings, !want, want)
		}
	}
	fields, err := wanted(jdocs.RobotSettings, url.Values{"card": {"voice"}, "volume": {"1"}, "locale": {"de-DE"}})
	if err != nil || fields["button_wakeword"] != nil {
		t.Errorf("a form without the button: %s, %v", fields, err)
	}
}

// TestWantedAndTaken: the page says of each form whether the robot has it, and never more than is known.
func TestWantedAndTaken(t *testing.T) {
	mux, h := open(t)
	h.settings = `{"eye_color":4}`
	h.lacks = []string{"eye_color"}
	robot := func(presence registry.Presence, docs map[string]uint64) registry.Thing {
		return registry.Thing{ID: rex, Presence: presence, Since: noon, LastSeen: noon, Status: &status.Message{Docs: docs}}
	}
	const has, coming, away, silent = "Your robot has this.", "On its way to your robot.", "Your robot is offline. It gets this when it reconnects.", "Your robot has not confirmed this yet."
	for _, x := range []struct {
		name        string
		thing       registry.Thing
		eyes, voice string
	}{
		{"has all", robot(registry.Present, map[string]uint64{"vic.RobotSettings": 2}), has, has},
		{"lacks the eyes", robot(registry.Present, map[string]uint64{"vic.RobotSettings": 1}), coming, has},
		{"lacks them and is away", robot(registry.Absent, map[string]uint64{"vic.RobotSettings": 1}), away, has},
		{"never had any", robot(registry.Present, map[string]uint64{}), coming, has},
		{"says nothing", robot(registry.Present, nil), silent, silent},
		{"never seen", registry.Thing{ID: rex}, silent, silent},
	} {
		h.things[rex] = x.thing
		body := do(t, mux, "ann", "GET", "/my/robots/vic:00e20100/settings", "").Body.String()
		for card, want := range map[string]string{"eyes": x.eyes, "voice": x.voice} {
			if got := regexp.MustCompile(`<div data-live="` + card + `" role="status"><p class="taken \w+">([^<]*)</p></div>`).FindStringSubmatch(body); got == nil || got[1] != want {
				t.Errorf("%s: %s: %q, want %q", x.name, card, got, want)
			}
		}
		if !strings.Contains(body, `<g class="eyes" fill="#0094ff">`) || !strings.Contains(body, "Last changed by you") || !strings.Contains(body, `value="4" checked`) {
			t.Errorf("%s: %s", x.name, body)
		}
	}
	h.settings = ""
	if body := do(t, mux, "ann", "GET", "/my/robots/vic:00e20100/settings", "").Body.String(); strings.Contains(body, `class="taken`) || !strings.Contains(body, "No changes yet.") {
		t.Errorf("nothing is wanted yet: %s", body)
	}
	h.docErr = errors.New("secret detail")
	for _, page := range []string{"/my", "/my/robots/vic:00e20100/settings", "/my/robots/vic:00e20100/life", "/my/privacy"} {
		if w := do(t, mux, "ann", "GET", page, ""); w.Code != 500 || strings.Contains(w.Body.String(), "secret detail") {
			t.Errorf("%s without documents: %d", page, w.Code)
		}
	}
}

func TestChangedBy(t *testing.T) {
	for by, want := range map[string]string{"owner": "you", "vic:00e20100": "your robot itself", "operator": "the operator of this server", "": ""} {
		if got := changedBy(by); got != want {
			t.Errorf("%s: %s, want %s", by, got, want)
		}
	}
}

// TestRefusedSettings: in words, what was typed stays, and nothing is changed.
func TestRefusedSettings(t *testing.T) {
	mux, h := open(t)
	home := url.Values{"card": {"home"}, "place": {"Bonn"}, "zone": {"Berlin"}, "clock": {"24"}, "temperature": {"celsius"}, "distance": {"metric"}}
	voice := url.Values{"card": {"voice"}, "volume": {"1"}, "locale": {"de-DE"}, "button": {"vector"}}
	but := func(v url.Values, key, value string) string {
		out := url.Values{}
		for k, x := range v {
			out[k] = x
		}
		out.Set(key, value)
		return out.Encode()
	}
	for form, want := range map[string]string{
		"card=eyes&eyes=7": "Choose a colour.", "card=eyes&eyes=-1": "Choose a colour.", "card=eyes": "Choose a colour.", "card=eyes&eyes=own&hue=361&saturation=1": "from 0 to 360",
		"card=eyes&eyes=own&hue=NaN&saturation=1": "from 0 to 360", but(voice, "volume", "6"): "Choose how loud it is.", but(voice, "button", ""): "Choose what its button does.",
		but(home, "zone", "Atlantis"): "is not in the list", but(home, "zone", "Germany"): "has several time zones", but(home, "clock", ""): "Choose how it tells the time.",
		but(home, "temperature", "kelvin"): "temperatures", but(home, "distance", "parsec"): "distances", but(home, "place", "  "): "Say where it lives",
		"card=" + url.QueryEscape(evil): "Unknown form", "": "Unknown form",
	} {
		w := do(t, mux, "ann", "POST", "/my/robots/vic:00e20100/settings", form)
		if body := html.UnescapeString(w.Body.String()); w.Code != 400 || !strings.Contains(body, want) || strings.Contains(w.Body.String(), "data-live-from") {
			t.Errorf("%s: %d; want %q in %s", form, w.Code, want, body)
		}
	}
	body := do(t, mux, "ann", "POST", "/my/robots/vic:00e20100/settings", but(home, "zone", "Atlantis")).Body.String()
	for _, want := range []string{`value="Atlantis"`, `value="Bonn"`, `name="clock" value="24" checked`, `name="distance" value="metric" checked`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is lost in %s", want, body)
		}
	}
	if len(h.did) > 0 {
		t.Errorf("did %q", h.did)
	}
	h.nothing = true
	if w := do(t, mux, "ann", "POST", "/my/privacy/events", "events=yes"); w.Code != 409 || len(h.did) > 0 {
		t.Errorf("consent without a robot: %d, did %q", w.Code, h.did)
	}
}

// TestOwnerIsAsked: whether robots may send what happens to them, until there is an answer (VEC-DAS-08).
func TestOwnerIsAsked(t *testing.T) {
	mux, h := open(t)
	for account, asked := range map[string]bool{"": true, `{}`: true, `{"APP_LOCALE":"en-US"}`: true, "no JSON": true, `{"data_collection":false}`: false, `{"DATA_COLLECTION":true}`: false} {
		h.account = account
		for path, asks := range map[string]bool{"/my": true, "/my/robots/vic:00e20100": false} { // in one place
			body := do(t, mux, "ann", "GET", path, "").Body.String()
			if got := strings.Contains(body, `name="events" value="no"`); got != (asked && asks) {
				t.Errorf("%s with %q: asked %t, want %t", path, account, got, asked && asks)
			}
		}
	}
}

// TestLife: the numbers part of VEC-DOC-07 in words, whatever else the document holds.
func TestLife(t *testing.T) {
	mux, h := open(t)
	h.settings = `{"dist_is_metric":true}`
	h.stats = `{"Alive.seconds":176400,"Odom.Body":1234567,"Pet.ms":61000,"BStat.AttemptedFistBump":5,"BStat.FistBumpSuccess":3,"BStat.ReactedToTriggerWord":1,
		"FeatureType.Play":30,"FeatureType.Social":10,"BStat.AnimationPlayed":12345,"Feature.AI.Exploring":"many","<b>":4,"BStat.ReactedToCliff":-3}`
	body := regexp.MustCompile(`\s+`).ReplaceAllString(do(t, mux, "ann", "GET", "/my/robots/vic:00e20100/life", "").Body.String(), " ")
	for _, want := range []string{">2</span> <span class=\"unit\">days", ">1.2</span> <span class=\"unit\">km", ">1</span> <span class=\"unit\">minute", "of 5 offered", ">1</span> <span class=\"unit\">time<",
		"75 %", "25 %", `class="part" width="33.3"`, "12\u202f345"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in %s", want, body)
		}
	}
	for _, not := range []string{"<b>", "edge", "Went exploring"} {
		if strings.Contains(body, not) {
			t.Errorf("%q is in it", not)
		}
	}
	for m, want := range map[float64][2]string{3: {"3 m", "10 ft"}, 900: {"0.9 km", "2 953 ft"}, 1500: {"1.5 km", "0.9 mi"}, 2e6: {"2 000 km", "1 243 mi"}} {
		for i, metric := range []bool{true, false} {
			v, u := distance(m, metric)
			if got := strings.ReplaceAll(v, "\u202f", " ") + " " + u; got != want[i] && !(m == 900 && !metric) {
				t.Errorf("%v m: %s, want %s", m, got, want[i])
			}
		}
	}
	for d, want := range map[time.Duration]string{0: "0 seconds", time.Second: "1 second", 90 * time.Second: "1 minute", 26 * time.Hour: "1 day", 5 * time.Hour: "5 hours"} {
		if v, u := span(d); v+" "+u != want {
			t.Errorf("%v: %s %s, want %s", d, v, u, want)
		}
	}
}

// talker is a house whose robots change when the test says so.
type talker struct {
	*house
	changes chan registry.Thing
}

func (f talker) Watch(context.Context) <-chan registry.Thing { return f.changes }

// TestLive: a word for each change of one's own robots, none for another's, and an end when the watch ends.
func TestLive(t *testing.T) {
	defer func(was time.Duration) { writeTimeout = was }(writeTimeout)
	writeTimeout = 100 * time.Millisecond
	_, h := open(t)
	f := talker{h, make(chan registry.Thing)}
	c := &companion{Config: Config{Robots: h, Fleet: f}, now: time.Now}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.live(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: auth.Owner, Account: "ann"})))
	}))
	s.EnableHTTP2 = true // as browsers speak
	s.StartTLS()
	t.Cleanup(s.Close)
	resp, err := s.Client().Get(s.URL + "/my/live?robot=" + url.QueryEscape(string(rex)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next := func() string {
		for lines.Scan() {
			if lines.Text() != "" {
				return lines.Text()
			}
		}
		return "the end"
	}
	got := []string{next(), next(), next()}
	if resp.ProtoMajor != 2 {
		t.Errorf("spoke %s", resp.Proto)
	}
	quiet := time.NewTimer(3 * writeTimeout) // a quiet stream outlives the time that one write may take
	<-quiet.C
	for _, id := range []thing.ID{bobs, "pleo:7", rex} {
		f.changes <- registry.Thing{ID: id}
	}
	got = append(got, next(), next())
	close(f.changes)
	got = append(got, next())
	if want := []string{"retry: 2000", "event: change", "data: 1", "event: change", "data: 1", "the end"}; !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
}
