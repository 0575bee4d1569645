package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// Documents is the pages' access to a robot's documents; a jdocs.Service is one.
type Documents interface {
	List(ctx context.Context, id thing.ID) ([]jdocs.Listing, error)
	Get(ctx context.Context, key jdocs.Key) (jdocs.Revision, error)
	Revision(ctx context.Context, key jdocs.Key, version uint64) (jdocs.Revision, error)
	History(ctx context.Context, key jdocs.Key, limit int) ([]jdocs.Revision, error)
	Set(ctx context.Context, key jdocs.Key, fields map[string]json.RawMessage, by string) (jdocs.Revision, error)
}

const (
	lookBack     = 200 // revisions that are searched for who changed what
	shownFormer  = 5   // former values of one setting
	shownEdits   = 50  // changes in the list
	shownFields  = 200 // of one document; more are in its text
	fieldDepth   = 3   // objects are taken apart so deep
	maxFieldText = 2048
)

// field says what a setting is, for people, and how it is chosen.
type field struct {
	Label, What string
	Enum        []string // by number, as people read it
	Few         []string // those of Enum that people are offered; nil: all
	Text        bool     // always a string
}

// fieldOf says what a field of a document is; the zero field if that is not known.
func fieldOf(doc jdocs.Name, name string) field {
	schema, _ := jdocs.SchemaOf(doc)
	f, _ := schema.Find(name)
	out := field{Label: f.Label, What: f.Help, Text: f.Type == "text" || f.Type == "locale" || f.Type == "time_zone"}
	few := f.Offered()
	for _, v := range f.Values {
		words := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(v, f.Prefix), "_", " "))
		out.Enum = append(out.Enum, words)
		if len(few) < len(f.Values) && slices.Contains(few, v) {
			out.Few = append(out.Few, words)
		}
	}
	return out
}

// Offers reports whether people are offered a value of Enum.
func (f field) Offers(value string) bool { return f.Few == nil || slices.Contains(f.Few, value) }

// counted are documents that change by themselves, all the time: their changes are no news.
func counted(doc jdocs.Name) bool { return doc == jdocs.RobotLifetimeStats }

// flatten takes a document apart into fields, dotted, each with its value as compact JSON. What is no object has one field, "".
func flatten(text string) map[string]string {
	out := map[string]string{}
	var walk func(prefix string, v json.RawMessage, depth int)
	walk = func(prefix string, v json.RawMessage, depth int) {
		var m map[string]json.RawMessage
		if v = bytes.TrimSpace(v); depth > 0 && len(v) > 0 && v[0] == '{' && json.Unmarshal(v, &m) == nil && len(m) > 0 {
			for k, sub := range m {
				walk(strings.TrimPrefix(prefix+"."+k, "."), sub, depth-1)
			}
			return
		}
		var c bytes.Buffer
		if json.Compact(&c, v) != nil {
			out[prefix] = strings.ToValidUTF8(string(v), "\ufffd")
			return
		}
		out[prefix] = c.String()
	}
	walk("", json.RawMessage(text), fieldDepth)
	if len(out) == 1 && out[""] == "{}" || text == "" {
		return map[string]string{}
	}
	return out
}

// say is a value for people; "" is none.
func (f field) say(v string) string {
	switch {
	case v == "":
		return "not set"
	case v == "true":
		return "yes"
	case v == "false":
		return "no"
	}
	if f.Enum != nil {
		if i, err := strconv.Atoi(v); err == nil && i >= 0 && i < len(f.Enum) {
			return f.Enum[i]
		}
	}
	var s string
	if json.Unmarshal([]byte(v), &s) == nil && v != "null" {
		return s
	}
	return v
}

// edit is one change of one field.
type edit struct {
	Doc             jdocs.Name
	Field           string
	Label           string // what it is
	From, To        string // for people
	Was             string // the value before as JSON; "": none
	At              time.Time
	By              string
	Version         uint64
	Deleted, Whole  bool // the document went; it came
	ByRobot, Undone bool // the robot itself changed it; the value before is in force again
}

// edits returns what changed between revisions, the newest first. history is the newest first, perhaps without its beginning.
func edits(id thing.ID, doc jdocs.Name, history []jdocs.Revision) []edit {
	var out []edit
	for i, rev := range history {
		e := edit{Doc: doc, At: rev.At, By: rev.By, Version: rev.Version, ByRobot: rev.By == string(id)}
		if rev.Deleted {
			e.Deleted = true
			out = append(out, e)
			continue
		}
		if i+1 == len(history) {
			if rev.Version == 1 {
				e.Whole = true
				out = append(out, e)
			}
			break
		}
		before, after := flatten(history[i+1].JSON), flatten(rev.JSON)
		names := map[string]bool{}
		for n := range before {
			names[n] = true
		}
		for n := range after {
			names[n] = true
		}
		for _, n := range slices.Sorted(maps.Keys(names)) {
			if jdocs.Equal([]byte(cmp.Or(before[n], "null")), []byte(cmp.Or(after[n], "null"))) {
				continue
			}
			f, x := fieldOf(doc, n), e
			x.Field, x.Label, x.From, x.To, x.Was = n, cmp.Or(f.Label, n), f.say(before[n]), f.say(after[n]), before[n]
			out = append(out, x)
		}
	}
	return out
}

type settingsView struct {
	thingHead
	Settles bool // its species has settings
	Docs    []docView
	Edits   []edit
	More    bool // there were more changes
}

type docView struct {
	jdocs.Listing
	Title    string
	What     string
	Reported string // version on the robot; "" unknown
	InStep   bool
	Dirty    bool
	Rows     []settingView // "": shown as text alone
	Pretty   string
	Short    bool // few rows: they are open
	Can      bool // its fields may be changed here
}

type settingView struct {
	field
	Doc      jdocs.Name
	Name     string
	Form     string // name of its form
	Value    string // as JSON
	Wanted   string // for people
	Reported string // for people; "": not known
	InStep   bool
	Boolean  bool
	Last     *edit
	Former   []edit // other values it had, the newest first
	Typed    string // what the field begins with
}

func settingForm(doc jdocs.Name, name string) string { return "set " + string(doc) + " " + name }

// docTitles says what the documents are that robots have beside their settings (peer facts, section 5).
var docTitles = map[jdocs.Name][2]string{
	jdocs.RobotLifetimeStats: {"Statistics", "Lifetime counters."},
	jdocs.AppTokens:          {"App tokens", "Apps that may connect; hashes only."},
	"amigo.Parameters":       {"Parameters", "Stored in the body itself. They can be changed in System mode."},
}

// settings is the page of a robot's documents.
func (c *console) settings(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	head, f, err := c.head(ctx, r, s, "settings")
	if err != nil {
		return "", frame{}, err
	}
	v := settingsView{thingHead: head, Settles: jdocs.SettingsOf(head.ID.Species()) != ""}
	list, err := c.Docs.List(ctx, head.ID)
	if err != nil {
		return "", frame{}, fmt.Errorf("documents of %s: %w", head.ID, err)
	}
	slices.SortStableFunc(list, func(a, b jdocs.Listing) int { return cmp.Compare(docRank(a.Name), docRank(b.Name)) })
	may := v.May("POST /things/{thing}/settings")
	for _, l := range list {
		d, changes, err := c.newDoc(ctx, head, l, may)
		if err != nil {
			return "", frame{}, fmt.Errorf("document %s of %s: %w", l.Name, head.ID, err)
		}
		v.Docs = append(v.Docs, d)
		if !counted(l.Name) {
			v.Edits = append(v.Edits, changes...)
		}
	}
	slices.SortStableFunc(v.Edits, func(a, b edit) int { return b.At.Compare(a.At) })
	if v.More = len(v.Edits) > shownEdits; v.More {
		v.Edits = v.Edits[:shownEdits]
	}
	f.Main = v
	return "settings", f, nil
}

func docRank(n jdocs.Name) int {
	switch {
	case n.IsSettings():
		return 0
	case n == jdocs.RobotLifetimeStats:
		return 1
	}
	return 2
}

func (c *console) newDoc(ctx context.Context, head thingHead, l jdocs.Listing, may bool) (docView, []edit, error) {
	key := jdocs.Key{Thing: head.ID, Name: l.Name}
	title := docTitles[l.Name]
	if l.Name == jdocs.SettingsOf(head.ID.Species()) {
		title = [2]string{"Settings", "Chosen by the owner."}
	}
	d := docView{Listing: l, Title: cmp.Or(title[0], string(l.Name)), What: title[1], Can: may && l.Name != jdocs.AppTokens}
	rev, err := c.Docs.Get(ctx, key)
	if err != nil {
		return d, nil, err
	}
	d.Pretty = pretty(rev.JSON)
	var changes []edit
	if !counted(l.Name) {
		history, err := c.Docs.History(ctx, key, lookBack)
		if err != nil {
			return d, nil, err
		}
		changes = edits(head.ID, l.Name, history)
	}
	// The robot reports a version; the page shows the text of that version, as long as the history holds it.
	var has map[string]string
	if head.Status != nil {
		version := head.Status.Docs[string(l.Name)]
		d.Reported, d.InStep = strconv.FormatUint(version, 10), version >= l.Version
		d.Dirty = slices.Contains(head.Status.Dirty, string(l.Name))
		switch {
		case version == rev.Version:
			has = flatten(rev.JSON)
		case version > 0:
			old, err := c.Docs.Revision(ctx, key, version)
			if err != nil && errs.KindOf(err) != errs.NotFound {
				return d, nil, err
			}
			if err == nil {
				has = flatten(old.JSON)
			}
		}
	}
	wanted := flatten(rev.JSON)
	names := slices.Sorted(maps.Keys(wanted))
	if _, whole := wanted[""]; whole || len(names) > shownFields {
		return d, changes, nil
	}
	for _, n := range names {
		x := settingView{field: fieldOf(l.Name, n), Doc: l.Name, Name: n, Form: settingForm(l.Name, n), Value: wanted[n]}
		x.Wanted, x.Boolean = x.say(x.Value), x.Value == "true" || x.Value == "false"
		if x.Typed = x.Value; x.Text {
			x.Typed = x.Wanted
		}
		if has != nil {
			x.Reported, x.InStep = x.say(has[n]), jdocs.Equal([]byte(x.Value), []byte(cmp.Or(has[n], "null")))
		}
		for i := range changes {
			e := &changes[i]
			if e.Field != n || e.Deleted || e.Whole {
				continue
			}
			if x.Last == nil {
				x.Last = e
			}
			e.Undone = jdocs.Equal([]byte(cmp.Or(e.Was, "null")), []byte(x.Value))
			if e.Was != "" && !e.Undone && len(x.Former) < shownFormer && !slices.ContainsFunc(x.Former, func(o edit) bool { return o.Was == e.Was }) {
				x.Former = append(x.Former, *e)
			}
		}
		d.Rows = append(d.Rows, x)
	}
	d.Short = len(d.Rows) <= 30
	return d, changes, nil
}

// setField changes one field, or sets it back: the value is JSON where the form chose it, and what a person typed elsewhere.
func (c *console) setField(ctx context.Context, id thing.ID, _ *http.Request, v url.Values) (outcome, error) {
	doc, err := jdocs.ParseName(v.Get("doc"))
	if err != nil {
		return outcome{}, err
	}
	name, text := v.Get("field"), v.Get("value")
	if name == "" || len(name) > 256 || len(text) > maxFieldText {
		return outcome{}, errs.New(errs.Invalid, "field name of %d bytes, value of %d: want a name of 1 to 256 bytes, and a value of at most %d", len(name), len(text), maxFieldText)
	}
	if doc == jdocs.AppTokens {
		return outcome{}, errs.New(errs.Denied, "%s cannot be changed by hand: apps change it when they sign in", doc)
	}
	value := json.RawMessage(strings.TrimSpace(text))
	if f := fieldOf(doc, name); v.Get("exact") == "" && (f.Text || !json.Valid(value)) {
		if value, err = json.Marshal(text); err != nil {
			return outcome{}, err
		}
	}
	// The document begins with this robot's first contact; a field of a document that is not there is a mistyped one.
	key := jdocs.Key{Thing: id, Name: doc}
	if _, err := c.Docs.Get(ctx, key); err != nil {
		return outcome{}, err
	}
	if _, err := jdocs.CheckField(doc, name, value); err != nil {
		return outcome{}, err
	}
	if err := c.Audit(ctx, "setting.set", string(id), string(doc)+" "+name); err != nil {
		return outcome{}, err
	}
	if _, err := c.Docs.Set(ctx, key, map[string]json.RawMessage{name: value}, auth.CallerFrom(ctx).Subject()); err != nil {
		return outcome{}, err
	}
	return outcome{done: "setting-set"}, nil
}
