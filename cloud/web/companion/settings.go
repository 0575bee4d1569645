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

// settings are the settings of a robot as its owner wants them.
type settings struct {
	schema jdocs.Schema
	value  map[string]json.RawMessage // of each field of the schema, as the document holds it
}

// readSettings reads a document. A field that is absent, or not what it should be, has the value of a robot that is not set up.
func readSettings(name jdocs.Name, doc string) settings {
	var is map[string]json.RawMessage
	_ = json.Unmarshal([]byte(doc), &is) // robots write what they like
	s := settings{value: map[string]json.RawMessage{}}
	s.schema, _ = jdocs.SchemaOf(name)
	for _, f := range s.schema.Fields {
		s.value[f.Name] = f.Default
		if is[f.Name] == nil {
			continue
		}
		// As the document holds it, whatever the robot wrote: an enum by its number.
		if good, err := jdocs.CheckField(name, f.Name, is[f.Name]); err == nil {
			s.value[f.Name] = good
		}
	}
	return s
}

// yes reports whether a setting is on.
func (s settings) yes(field string) bool { return string(s.value[field]) == "true" }

// text returns a setting that is a text, and the JSON of others.
func (s settings) text(field string) string {
	var text string
	if json.Unmarshal(s.value[field], &text) != nil {
		return string(s.value[field])
	}
	return text
}

// chosen reports whether a choice of a field is the wanted one.
func (s settings) chosen(f jdocs.Field, c jdocs.Choice) bool {
	return jdocs.Equal(s.value[f.Name], c.Value)
}

// custom returns the colour of their own that an owner mixed, in degrees and percent, and whether it is in use.
func (s settings) custom(f jdocs.Field) (hue, saturation int, on bool) {
	own := struct {
		Enabled         bool
		Hue, Saturation float64
	}{Hue: f.Choices[0].Hue, Saturation: f.Choices[0].Saturation}
	_ = json.Unmarshal(s.value[f.Custom], &own) // absent fields keep the values of the first choice
	hue, saturation = int(math.Round(own.Hue*360)), int(math.Round(own.Saturation*100))
	if !own.Enabled && saturation == 0 { // there is no custom colour yet: begin with a visible one
		hue, saturation = int(math.Round(f.Choices[0].Hue*360)), 100
	}
	return hue, saturation, own.Enabled
}

// Color is the colour of the eyes, as #rrggbb; of a robot without a colour to choose, teal.
func (s settings) Color() string {
	for _, f := range s.schema.Fields {
		if f.Control != jdocs.ControlColour {
			continue
		}
		if hue, saturation, on := s.custom(f); on {
			return color(float64(hue)/360, float64(saturation)/100)
		}
		for _, c := range f.Choices {
			if s.chosen(f, c) {
				return color(c.Hue, c.Saturation)
			}
		}
	}
	return color(.42, 1)
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
	"away":   {"coming", "Your robot is offline. It gets this when it reconnects."},
	"silent": {"coming", "Your robot has not confirmed this yet."},
}

type settingsPage struct {
	said
	robotView
	Want      settings
	Cards     []card
	Places    []string
	ChangedBy string
	Changed   time.Time
	Gone      string
}

// card is a form of the page, about the fields of a group.
type card struct {
	jdocs.Group
	Controls []control
	Taken    taken
	Problem  string
}

// Face reports whether the card shows the robot's face, which has the colour that is picked.
func (c card) Face() bool {
	return slices.ContainsFunc(c.Controls, func(x control) bool { return x.Control == jdocs.ControlColour })
}

// control is how the page asks for a field.
type control struct {
	jdocs.Field
	Card, Problem   string
	ID, Title       string
	Options         []option
	Own             option // of a colour
	Hue, Saturation string
	Text            string   // of a text field
	Names           []string // that it suggests
	Now             string   // what the clock says in a zone
}

// Swatches are the colours to choose from.
func (c control) Swatches() (out []swatch) {
	for _, o := range c.Options {
		out = append(out, swatch{c.ID, o, false})
	}
	if c.Custom != "" {
		out = append(out, swatch{c.ID, c.Own, true})
	}
	return out
}

type swatch struct {
	ID     string
	Option option
	Own    bool
}

// Many reports whether there are too many options to show all at once.
func (c control) Many() bool { return len(c.Options) > 3 }

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
	v := settingsPage{said: s, Places: c.Places}
	if v.robotView, err = c.newRobot(ctx, t, nil); err != nil {
		return "", frame{}, err
	}
	v.Tab = "settings"
	name := jdocs.SettingsOf(t.Thing.Species())
	rev, err := c.document(ctx, t.Thing, name)
	if err != nil {
		return "", frame{}, err
	}
	v.Want = readSettings(name, rev.JSON)
	v.ChangedBy, v.Changed = changedBy(rev.By), rev.At
	var groups []string
	for _, g := range v.Want.schema.Groups {
		groups = append(groups, g.Name)
		v.Cards = append(v.Cards, v.card(g, c.now()))
	}
	v.Gone = s.Lost(groups)
	if err := c.taken(ctx, &v, rev.Version); err != nil {
		return "", frame{}, err
	}
	return "settings", frame{Title: "Settings of " + v.Title, Live: liveOf(t.Thing), Main: v}, nil
}

// document returns a document of a robot; the default of one that is not there yet, and an empty one for no name.
func (c *companion) document(ctx context.Context, id thing.ID, name jdocs.Name) (jdocs.Revision, error) {
	if name == "" {
		return jdocs.Revision{}, nil // Kennel knows no settings of its species
	}
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
	return "the operator of this server"
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
	var lacks []string
	if name := v.Want.schema.Name; v.State.Tells {
		var err error
		if lacks, err = c.Docs.Differing(ctx, v.Thing, name, v.State.Docs[string(name)]); err != nil {
			return fmt.Errorf("compare documents of %s: %w", v.Thing, err)
		}
	}
	for i := range v.Cards {
		x := &v.Cards[i]
		switch {
		case !v.State.Tells:
			x.Taken = takens["silent"]
		case slices.ContainsFunc(v.Want.schema.Fields, func(f jdocs.Field) bool { return f.Group == x.Name && slices.Contains(lacks, f.Name) }):
			x.Taken = takens[waits]
		default:
			x.Taken = takens["has"]
		}
	}
	return nil
}

// card returns the form of a group.
func (v *settingsPage) card(g jdocs.Group, now time.Time) card {
	out := card{Group: g, Problem: v.Problem(g.Name)}
	for _, f := range v.Want.schema.Fields {
		if f.Group == g.Name && f.Control != "" && !(f.Rare && jdocs.Equal(v.Want.value[f.Name], f.Default)) {
			out.Controls = append(out.Controls, v.control(f, out.Problem, now))
		}
	}
	return out
}

// control returns the control of a field.
func (v *settingsPage) control(f jdocs.Field, problem string, now time.Time) control {
	x := control{Field: f, Card: f.Group, Problem: problem, ID: id(f), Title: cmp.Or(f.Form.Label, f.Label)}
	switch f.Control {
	case jdocs.ControlZone:
		zone := v.Want.text(f.Name)
		x.Text = v.Typed(f.Group, x.ID, zones.Label(zone))
		for _, z := range zones.All() {
			x.Names = append(x.Names, z.Label())
		}
		if at, err := time.LoadLocation(zone); err == nil {
			form := "3:04 pm"
			if v.Want.yes("clock_24_hour") {
				form = "15:04"
			}
			x.Now = now.In(at).Format(form)
		}
		return x
	case jdocs.ControlText:
		x.Text = v.Typed(f.Group, x.ID, v.Want.text(f.Name))
		if f.Form.Suggest == "places" {
			x.Names = v.Places
		}
		return x
	}
	custom := false
	if f.Control == jdocs.ControlColour && f.Custom != "" {
		var hue, saturation int
		hue, saturation, custom = v.Want.custom(f)
		x.Own = option{"own", "Your own", color(float64(hue)/360, float64(saturation)/100), v.Picked(f.Group, x.ID, "own", custom)}
		x.Hue, x.Saturation = v.Typed(f.Group, "hue", strconv.Itoa(hue)), v.Typed(f.Group, "saturation", strconv.Itoa(saturation))
	}
	known := false
	for _, c := range choices(f) {
		is := v.Want.chosen(f, c)
		known = known || is
		x.Options = append(x.Options, option{c.Text(), c.Label, color(c.Hue, c.Saturation), v.Picked(f.Group, x.ID, c.Text(), is && !custom)})
	}
	if !known { // of a field that takes more than what is offered
		other := v.Want.text(f.Name)
		x.Options = append(x.Options, option{Value: other, Name: other, Chosen: v.Picked(f.Group, x.ID, other, true)})
	}
	return x
}

// id is the name of a field's control.
func id(f jdocs.Field) string { return cmp.Or(f.Form.ID, f.Name) }

// choices are what the page offers for a field.
func choices(f jdocs.Field) []jdocs.Choice {
	if f.Control == jdocs.ControlSwitch && len(f.Choices) == 0 {
		return []jdocs.Choice{{Value: json.RawMessage("true"), Word: "on", Label: "On"}, {Value: json.RawMessage("false"), Word: "off", Label: "Off"}}
	}
	return f.Choices
}

// settingsForm returns which form of the page was sent.
func settingsForm(r *http.Request) string { return cmp.Or(r.PostForm.Get("card"), "none") }

func (c *companion) change(ctx context.Context, r *http.Request, v url.Values) (string, error) {
	t, err := c.mine(ctx, r)
	if err != nil {
		return "", err
	}
	name := jdocs.SettingsOf(t.Thing.Species())
	if name == "" {
		return "", errs.New(errs.Conflict, "this kind of robot has no settings here")
	}
	fields, err := wanted(name, v)
	if err != nil {
		return "", err
	}
	_, err = c.Docs.Set(ctx, t.Thing, name, fields)
	return "set", err
}

// wanted turns a form into fields of the document. Their values are checked where the document is changed; what only the form can get wrong is
// checked here.
func wanted(name jdocs.Name, v url.Values) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	schema, _ := jdocs.SchemaOf(name)
	for _, f := range schema.Fields {
		if f.Control == "" || f.Group != v.Get("card") || f.Rare && !v.Has(id(f)) {
			continue
		}
		if err := want(f, v, out); err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, errs.New(errs.Invalid, "unknown form; reload the page")
	}
	return out, nil
}

// want adds what a form says of one field to out.
func want(f jdocs.Field, v url.Values, out map[string]json.RawMessage) error {
	given := v.Get(id(f))
	switch f.Control {
	case jdocs.ControlZone:
		zone, err := zones.Find(given)
		out[f.Name] = encoded(zone)
		return err
	case jdocs.ControlText:
		if given = strings.TrimSpace(given); given == "" {
			return errs.New(errs.Invalid, "%s", cmp.Or(f.Form.Ask, "fill in: "+f.Label))
		}
		out[f.Name] = encoded(given)
		return nil
	case jdocs.ControlColour:
		if f.Custom == "" {
			break
		}
		if out[f.Custom+".enabled"] = encoded(given == "own"); given == "own" {
			hue, herr := strconv.ParseFloat(v.Get("hue"), 64)
			saturation, serr := strconv.ParseFloat(v.Get("saturation"), 64)
			if herr != nil || serr != nil || !(hue >= 0 && hue <= 360) || !(saturation >= 0 && saturation <= 100) {
				return errs.New(errs.Invalid, "choose a colour from 0 to 360 and a strength from 0 to 100")
			}
			out[f.Custom+".hue"], out[f.Custom+".saturation"] = encoded(hue/360), encoded(saturation/100)
			return nil
		}
	}
	if f.Type != "bool" && f.Type != "enum" { // it takes more than what is offered
		out[f.Name] = encoded(given)
		return nil
	}
	all := choices(f)
	i := slices.IndexFunc(all, func(c jdocs.Choice) bool { return c.Text() == given })
	if i < 0 {
		return errs.New(errs.Invalid, "%s", cmp.Or(f.Form.Ask, "choose: "+f.Label))
	}
	out[f.Name] = all[i].Value
	return nil
}

func encoded(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts, numbers and booleans
	}
	return b
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
