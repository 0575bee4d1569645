package companion

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/infra/zones"
	"kennel/jdocs"
)

// Docs is an owner's access to the robot's documents; *people.Documents is one. The caller comes from the context.
type Docs interface {
	Get(ctx context.Context, id thing.ID, name jdocs.Name) (jdocs.Revision, error)
	Set(ctx context.Context, id thing.ID, name jdocs.Name, fields map[string]json.RawMessage) (jdocs.Revision, error)
	// Differing names the fields that a robot with an earlier version still lacks.
	Differing(ctx context.Context, id thing.ID, name jdocs.Name, version uint64) ([]string, error)
}

// settings is vic.RobotSettings (VEC-DOC-01) as its owner wants it.
type settings struct {
	Eyes       int // of jdocs.EyeColors; ownEyes: a colour of one's own
	Hue        int // of that, in degrees
	Saturation int // of that, in percent
	Volume     int
	Locale     string
	Alexa      bool // the button calls Alexa
	Place      string
	Zone       string
	Clock24    bool
	Metric     bool
	Fahrenheit bool
	Eyeless    bool // it has no eyes to choose a colour for, and no button that wakes it
}

const ownEyes = -1

// eyes are hue and saturation of the eye colours, in their order (VEC-DOC-03), and what people call them.
var eyes = []struct {
	name            string
	hue, saturation float64
}{
	{"Teal", .42, 1}, {"Orange", .05, .95}, {"Yellow", .11, 1}, {"Lime", .21, 1}, {"Sapphire", .57, 1}, {"Purple", .83, .76}, {"Green", .30, 1},
}

// Names that people know for the numbers of a setting.
var (
	volumes   = []string{"Mute", "Very quiet", "Quiet", "Medium", "Loud", "Very loud"} // jdocs.Volumes
	languages = []struct{ Tag, Name string }{
		{"en-US", "English, United States"}, {"en-GB", "English, United Kingdom"}, {"en-AU", "English, Australia"}, {"en-CA", "English, Canada"},
		{"de-DE", "Deutsch"}, {"es-ES", "Español"}, {"fr-FR", "Français"}, {"it-IT", "Italiano"}, {"nl-NL", "Nederlands"}, {"pt-BR", "Português, Brasil"},
		{"ja-JP", "日本語"}, {"ko-KR", "한국어"}, {"zh-CN", "中文"},
	}
)

// cards are the forms of the page and the fields that each is about.
var cards = map[string][]string{
	"eyes":  {"eye_color", "custom_eye_color"},
	"voice": {"master_volume", "locale", "button_wakeword"},
	"home":  {"default_location", "time_zone", "clock_24_hour", "temp_is_fahrenheit", "dist_is_metric"},
}

// readSettings reads a document. A field that is absent, or not what it should be, has the value of a robot that is not set up.
func readSettings(doc string) settings {
	var is, first map[string]json.RawMessage
	_ = json.Unmarshal([]byte(doc), &is) // see above
	_ = json.Unmarshal([]byte(jdocs.Default(jdocs.RobotSettings).JSON), &first)
	get := func(field string, v any) {
		for _, m := range []map[string]json.RawMessage{is, first} {
			if m[field] == nil {
				continue
			}
			// As the document holds it, whatever the robot wrote: an enum by its number.
			if good, err := jdocs.CheckField(jdocs.RobotSettings, field, m[field]); err == nil && json.Unmarshal(good, v) == nil {
				return
			}
		}
	}
	var s settings
	var alexa int
	own := struct {
		Enabled         bool
		Hue, Saturation float64
	}{Hue: eyes[0].hue, Saturation: eyes[0].saturation}
	get("eye_color", &s.Eyes)
	get("custom_eye_color", &own)
	get("master_volume", &s.Volume)
	get("locale", &s.Locale)
	get("button_wakeword", &alexa)
	get("default_location", &s.Place)
	get("time_zone", &s.Zone)
	get("clock_24_hour", &s.Clock24)
	get("dist_is_metric", &s.Metric)
	get("temp_is_fahrenheit", &s.Fahrenheit)
	s.Alexa = alexa == 1
	s.Eyeless = len(is) > 0 && is["eye_color"] == nil && is["custom_eye_color"] == nil && is["button_wakeword"] == nil
	s.Hue, s.Saturation = int(math.Round(own.Hue*360)), int(math.Round(own.Saturation*100))
	switch {
	case own.Enabled:
		s.Eyes = ownEyes
	case s.Saturation == 0: // there is no custom colour yet: begin with a visible one
		s.Hue, s.Saturation = int(math.Round(eyes[0].hue*360)), 100
	}
	return s
}

// Color is the colour of the eyes, as #rrggbb.
func (s settings) Color() string {
	if s.Eyes == ownEyes {
		return color(float64(s.Hue)/360, float64(s.Saturation)/100)
	}
	return color(eyes[s.Eyes].hue, eyes[s.Eyes].saturation)
}

// color turns hue and saturation, 0 to 1, at full brightness into what a page says of a colour.
func color(hue, saturation float64) string {
	part := func(n float64) int {
		k := math.Mod(n+hue*6, 6)
		return int(math.Round(255 * (1 - saturation*max(0, min(k, 4-k, 1)))))
	}
	return fmt.Sprintf("#%02x%02x%02x", part(5), part(3), part(1))
}

// option is one of several things to choose from.
type option struct {
	Value, Name, Color string
	Chosen             bool
}

// taken says whether the robot has what its owner wants.
type taken struct{ Mood, Line string }

var takens = map[string]taken{
	"has":    {"has", "Your robot has this."},
	"coming": {"coming", "On its way to your robot."},
	"away":   {"coming", "Your robot is away. It gets this when it is back."},
	"silent": {"coming", "Your robot has not said yet whether it has this."},
}

type settingsPage struct {
	said
	robotView
	Want      settings
	Colors    []option
	Own       option
	Volumes   []option
	Languages []option
	ZoneName  string
	Now       string // what the clock says there
	Zones     []string
	Places    []string
	Taken     map[string]taken
	ChangedBy string
	Changed   time.Time
	Gone      string
}

// Picked reports whether an option of a form is to be shown as chosen: what was typed into a form that was refused, else what is wanted.
func (p settingsPage) Picked(card, field, value string, wanted bool) bool {
	if p.Problem(card) != "" {
		return p.Value(card, field) == value
	}
	return wanted
}

// Typed returns what a text field shows: what was typed into a form that was refused, else what is wanted.
func (p settingsPage) Typed(card, field, wanted string) string {
	if p.Problem(card) != "" {
		return p.Value(card, field)
	}
	return wanted
}

func (c *companion) settings(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	t, err := c.mine(ctx, r)
	if err != nil {
		return "", frame{}, err
	}
	v := settingsPage{said: s, Gone: s.Lost([]string{"eyes", "voice", "home"}), Taken: map[string]taken{}, Places: c.Places}
	if v.robotView, err = c.newRobot(ctx, t, nil); err != nil {
		return "", frame{}, err
	}
	rev, err := c.document(ctx, t.Thing, jdocs.RobotSettings)
	if err != nil {
		return "", frame{}, err
	}
	v.Tab = "settings"
	v.Want = readSettings(rev.JSON)
	v.ChangedBy, v.Changed = changedBy(rev.By), rev.At
	if err := c.taken(ctx, &v, rev.Version); err != nil {
		return "", frame{}, err
	}
	v.choices(c.now())
	return "settings", frame{Title: "Settings of " + v.Title, Live: liveOf(t.Thing), Main: v}, nil
}

// document returns a document of a robot; the default of one that is not there yet.
func (c *companion) document(ctx context.Context, id thing.ID, name jdocs.Name) (jdocs.Revision, error) {
	rev, err := c.Docs.Get(ctx, id, name)
	switch {
	case errs.KindOf(err) == errs.NotFound:
		return jdocs.Revision{Doc: jdocs.Default(name)}, nil
	case err != nil:
		return rev, fmt.Errorf("%s of %s: %w", name, id, err)
	}
	return rev, nil
}

// changedBy is who made a version, in words for the owner. The API says no more than this.
func changedBy(by string) string {
	switch by {
	case "":
		return ""
	case "owner":
		return "you"
	}
	if _, err := thing.Parse(by); err == nil {
		return "your robot itself"
	}
	return "whoever looks after this Kennel"
}

// taken says of each form whether the robot has what is wanted: by the version that it says it has, and the fields that it therefore lacks.
func (c *companion) taken(ctx context.Context, v *settingsPage, version uint64) error {
	if version == 0 {
		return nil // nothing is wanted yet
	}
	waits := "coming"
	if v.State.Mood == "away" {
		waits = "away"
	}
	if !v.State.Tells {
		for card := range cards {
			v.Taken[card] = takens["silent"]
		}
		return nil
	}
	lacks, err := c.Docs.Differing(ctx, v.Thing, jdocs.RobotSettings, v.State.Docs[string(jdocs.RobotSettings)])
	if err != nil {
		return fmt.Errorf("what %s has: %w", v.Thing, err)
	}
	for card, fields := range cards {
		v.Taken[card] = takens["has"]
		if slices.ContainsFunc(fields, func(f string) bool { return slices.Contains(lacks, f) }) {
			v.Taken[card] = takens[waits]
		}
	}
	return nil
}

// choices fills in what there is to choose from.
func (v *settingsPage) choices(now time.Time) {
	for i, e := range eyes {
		n := strconv.Itoa(i)
		v.Colors = append(v.Colors, option{n, e.name, color(e.hue, e.saturation), v.Picked("eyes", "eyes", n, v.Want.Eyes == i)})
	}
	v.Own = option{"own", "Your own", color(float64(v.Want.Hue)/360, float64(v.Want.Saturation)/100), v.Picked("eyes", "eyes", "own", v.Want.Eyes == ownEyes)}
	for i, name := range volumes {
		n := strconv.Itoa(i)
		v.Volumes = append(v.Volumes, option{Value: n, Name: name, Chosen: v.Picked("voice", "volume", n, v.Want.Volume == i)})
	}
	known := false
	for _, l := range languages {
		known = known || l.Tag == v.Want.Locale
		v.Languages = append(v.Languages, option{Value: l.Tag, Name: l.Name, Chosen: v.Picked("voice", "locale", l.Tag, l.Tag == v.Want.Locale)})
	}
	if !known {
		v.Languages = append(v.Languages, option{Value: v.Want.Locale, Name: v.Want.Locale, Chosen: v.Picked("voice", "locale", v.Want.Locale, true)})
	}
	for _, z := range zones.All() {
		v.Zones = append(v.Zones, z.Label())
	}
	v.ZoneName = zones.Label(v.Want.Zone)
	if at, err := time.LoadLocation(v.Want.Zone); err == nil {
		form := "3:04 pm"
		if v.Want.Clock24 {
			form = "15:04"
		}
		v.Now = now.In(at).Format(form)
	}
}

// settingsForm returns which form of the page was sent.
func settingsForm(r *http.Request) string { return cmp.Or(r.PostForm.Get("card"), "none") }

func (c *companion) change(ctx context.Context, r *http.Request, v url.Values) (string, error) {
	t, err := c.mine(ctx, r)
	if err != nil {
		return "", err
	}
	fields, err := wanted(v)
	if err != nil {
		return "", err
	}
	_, err = c.Docs.Set(ctx, t.Thing, jdocs.RobotSettings, fields)
	return "set", err
}

// wanted turns a form into fields of the document. Their values are checked where the document is changed; what only the form can get wrong is
// checked here.
func wanted(v url.Values) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	put := func(field string, value any) {
		b, err := json.Marshal(value)
		if err != nil {
			panic(err) // texts, numbers and booleans
		}
		out[field] = b
	}
	one := func(field, name string, values ...string) (string, error) {
		got := v.Get(field)
		if !slices.Contains(values, got) {
			return "", errs.New(errs.Invalid, "choose %s", name)
		}
		return got, nil
	}
	switch v.Get("card") {
	case "eyes":
		if v.Get("eyes") == "own" {
			hue, herr := strconv.ParseFloat(v.Get("hue"), 64)
			saturation, serr := strconv.ParseFloat(v.Get("saturation"), 64)
			if herr != nil || serr != nil || !(hue >= 0 && hue <= 360) || !(saturation >= 0 && saturation <= 100) {
				return nil, errs.New(errs.Invalid, "choose a colour from 0 to 360 and a strength from 0 to 100")
			}
			put("custom_eye_color.enabled", true)
			put("custom_eye_color.hue", hue/360)
			put("custom_eye_color.saturation", saturation/100)
			return out, nil
		}
		n, err := strconv.Atoi(v.Get("eyes"))
		if err != nil || n < 0 || n >= len(eyes) {
			return nil, errs.New(errs.Invalid, "choose a colour")
		}
		put("eye_color", n)
		put("custom_eye_color.enabled", false)
	case "voice":
		n, err := strconv.Atoi(v.Get("volume"))
		if err != nil || n < 0 || n >= len(volumes) {
			return nil, errs.New(errs.Invalid, "choose how loud it is")
		}
		put("master_volume", n)
		put("locale", v.Get("locale"))
		if !v.Has("button") {
			return out, nil // the robot has none
		}
		button, err := one("button", "what its button does", "vector", "alexa")
		if err != nil {
			return nil, err
		}
		put("button_wakeword", map[string]int{"vector": 0, "alexa": 1}[button])
	case "home":
		zone, err := zones.Find(v.Get("zone"))
		if err != nil {
			return nil, err
		}
		clock, err := one("clock", "how it tells the time", "12", "24")
		if err != nil {
			return nil, err
		}
		temperature, err := one("temperature", "how it tells temperatures", "celsius", "fahrenheit")
		if err != nil {
			return nil, err
		}
		distance, err := one("distance", "how it tells distances", "metric", "miles")
		if err != nil {
			return nil, err
		}
		place := strings.TrimSpace(v.Get("place"))
		if place == "" {
			return nil, errs.New(errs.Invalid, "say where it lives: its weather is from there")
		}
		put("time_zone", zone)
		put("default_location", place)
		put("clock_24_hour", clock == "24")
		put("temp_is_fahrenheit", temperature == "fahrenheit")
		put("dist_is_metric", distance == "metric")
	default:
		return nil, errs.New(errs.Invalid, "this form is not known; open the page again")
	}
	return out, nil
}

// consent reports whether the owner's robots may send what happens to them (VEC-DOC-05), and whether the owner was ever asked: the account's
// settings are the same through each of their robots.
func (c *companion) consent(ctx context.Context, id thing.ID) (yes, asked bool, err error) {
	rev, err := c.Docs.Get(ctx, id, jdocs.AccountSettings)
	if errs.KindOf(err) == errs.NotFound && err != nil {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("consent of the owner of %s: %w", id, err)
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal([]byte(rev.JSON), &fields) // no field: no consent
	for name, v := range fields {
		if strings.EqualFold(name, "data_collection") {
			return string(v) == "true", true, nil
		}
	}
	return false, false, nil
}

// setConsent sets it: through any robot of the owner's.
func (c *companion) setConsent(ctx context.Context, _ *http.Request, v url.Values) (string, error) {
	robots, err := c.Robots.Robots(ctx, auth.CallerFrom(ctx).Account)
	if err != nil {
		return "", err
	}
	if len(robots) == 0 {
		return "", errs.New(errs.Conflict, "you have no robot that could send anything")
	}
	yes := v.Get("events") == "yes"
	if _, err := c.Docs.Set(ctx, robots[0].Thing, jdocs.AccountSettings, map[string]json.RawMessage{"data_collection": json.RawMessage(strconv.FormatBool(yes))}); err != nil {
		return "", err
	}
	if yes {
		return "consent", nil
	}
	return "no-consent", nil
}
