package intent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"kennel/infra/errs"
)

// Unmatched is the user intent of what a robot does not understand.
const Unmatched = "unmatched_intent"

// User is an intent as the robot's own programs take it.
type User struct {
	Name     string         `json:"user_intent"`
	Params   map[string]any `json:"params,omitempty"`   // text, or int64 for numbers (VEC-INT-07)
	Response *Response      `json:"response,omitempty"` // do just this (VEC-INT-03)
	Refused  string         `json:"refused,omitempty"`  // why it is Unmatched, or what was wrong with a parameter that was left out
}

// ID returns the number of u in events of the SDK (VEC-INT-10), and whether it has one.
func (u User) ID() (uint32, bool) {
	in, ok := byUser[u.Name]
	return uint32(max(in.ID, 0)), ok && in.ID >= 0 //nolint:gosec // not negative
}

// Map is a robot's user_intent_map.json: how it names what a cloud or an app asks for (VEC-INT-01). It is safe for concurrent use as long
// as its fields do not change.
type Map struct {
	Entries   []Entry
	Responses []SimpleResponse
	Unmatched string

	// Enabled reports whether a feature flag is on; nil: FeatureOn (VEC-INT-11).
	Enabled func(feature string) bool
}

// Entry is one of user_intent_map (VEC-INT-02).
type Entry struct {
	AppIntent          string            `json:"app_intent,omitempty"`
	AppNumerics        []string          `json:"app_numerics,omitempty"`
	AppSubstitutions   map[string]string `json:"app_substitutions,omitempty"` // from the app's name of a parameter to the robot's
	CloudIntent        string            `json:"cloud_intent,omitempty"`
	CloudNumerics      []string          `json:"cloud_numerics,omitempty"` // parameters that arrive as text and are numbers
	CloudSubstitutions map[string]string `json:"cloud_substitutions,omitempty"`
	FeatureGate        string            `json:"feature_gate,omitempty"`
	TestParsing        *bool             `json:"test_parsing,omitempty"` // nil: true
	UserIntent         string            `json:"user_intent"`
}

// Response says what a robot plays for an intent that needs no behaviour of its own (VEC-INT-03).
type Response struct {
	ActiveFeature       string `json:"active_feature,omitempty"`
	AnimGroup           string `json:"anim_group,omitempty"` // a trigger name
	DisableWakewordTurn bool   `json:"disable_wakeword_turn,omitempty"`
	EmotionEvent        string `json:"emotion_event,omitempty"`
}

// SimpleResponse is one of simple_voice_responses.
type SimpleResponse struct {
	CloudIntent string   `json:"cloud_intent"`
	Response    Response `json:"response"`
}

// DefaultMap returns the mapping of the catalogue.
func DefaultMap() *Map {
	m := &Map{Unmatched: Unmatched}
	for _, in := range catalogue {
		if in.Cloud == "" && in.App == "" {
			continue
		}
		e := Entry{UserIntent: in.User, CloudIntent: in.Cloud, AppIntent: in.App, FeatureGate: in.Gate}
		for _, p := range in.Params {
			if p.User != "" && p.User != p.Cloud {
				if e.CloudSubstitutions == nil {
					e.CloudSubstitutions = map[string]string{}
				}
				e.CloudSubstitutions[p.Cloud] = p.User
			}
			if p.Type == Seconds || p.Type == Number {
				e.CloudNumerics = append(e.CloudNumerics, p.Cloud)
			}
		}
		m.Entries = append(m.Entries, e)
	}
	return m
}

// Cloud returns what a robot does for an intent of a cloud: Unmatched for one that it does not know or whose feature is off (VEC-INT-04,
// VEC-INT-11). Parameters that it does not know pass unchanged.
func (m *Map) Cloud(name string, params map[string]string) User {
	if i := slices.IndexFunc(m.Responses, func(r SimpleResponse) bool { return r.CloudIntent == name }); i >= 0 {
		u := User{Name: name, Response: &m.Responses[i].Response}
		if in, ok := byCloud[name]; ok {
			u.Name = in.User
		}
		return u
	}
	in := byCloud[name]
	e, ok := m.find(func(e Entry) bool { return name != "" && e.CloudIntent == name }, func(e Entry) bool { return in.Cloud != "" && e.CloudIntent == in.Cloud })
	switch {
	case !ok && IsOwn(name):
		return User{Name: name}
	case !ok:
		return m.unmatched("no such intent")
	}
	if u, off := m.gated(e); off {
		return u
	}
	u := User{Name: e.UserIntent}
	for _, key := range slices.Sorted(maps.Keys(params)) {
		to, renamed := e.CloudSubstitutions[key]
		if i := slices.IndexFunc(in.Params, func(p Param) bool { return p.Cloud == key }); !renamed && i >= 0 {
			if to = in.Params[i].User; to == "" {
				continue // the robot has no use for it
			}
		} else if !renamed {
			to = key
		}
		u.set(to, params[key], slices.Contains(e.CloudNumerics, key) || slices.Contains(e.CloudNumerics, to))
	}
	return u
}

// App returns what a robot does for an intent of an app. param is text: a JSON object of parameters, or the value of the only one. Parameters
// that the robot does not know are dropped; for an intent that it does not know the error is errs.NotFound (VEC-INT-05). The text of the timer
// is not read: its length in characters is the seconds, unless it is an object with time_s (VEC-INT-13).
func (m *Map) App(name, param string) (User, error) {
	in := byApp[name]
	e, ok := m.find(func(e Entry) bool { return name != "" && e.AppIntent == name }, func(e Entry) bool { return in.App != "" && e.AppIntent == in.App })
	if !ok {
		return m.unmatched("no such intent"), errs.New(errs.NotFound, "no such app intent %.64q", name)
	}
	if u, off := m.gated(e); off {
		return u, nil
	}
	if in.User != e.UserIntent {
		in = byUser[e.UserIntent]
	}
	u := User{Name: e.UserIntent}
	params, isObject := StringParams(json.RawMessage(param))
	if !isObject && param != "" && in.User == "set_timer" {
		u.set("time_s", strconv.Itoa(utf8.RuneCountInString(param)), true)
		return u, nil
	}
	if !isObject && param != "" && len(in.Params) == 1 {
		params = map[string]string{in.Params[0].User: unquote(param)}
	}
	for _, key := range slices.Sorted(maps.Keys(params)) {
		to, known := e.AppSubstitutions[key]
		i := slices.IndexFunc(in.Params, func(p Param) bool { return p.User == key || p.Cloud == key })
		if !known && i >= 0 {
			to = in.Params[i].User
		}
		if to != "" {
			u.set(to, params[key], slices.Contains(e.AppNumerics, key) || slices.ContainsFunc(in.Params, func(p Param) bool { return p.User == to && p.Type == Seconds }))
		}
	}
	return u, nil
}

func unquote(s string) string {
	var out string
	if json.Unmarshal([]byte(s), &out) == nil {
		return out
	}
	return s
}

func (m *Map) find(tests ...func(Entry) bool) (Entry, bool) {
	for _, is := range tests {
		if i := slices.IndexFunc(m.Entries, is); i >= 0 {
			return m.Entries[i], true
		}
	}
	return Entry{}, false
}

func (m *Map) unmatched(why string) User { return User{Name: m.Unmatched, Refused: why} }

func (m *Map) gated(e Entry) (User, bool) {
	on := FeatureOn
	if m.Enabled != nil {
		on = m.Enabled
	}
	if e.FeatureGate == "" || on(e.FeatureGate) {
		return User{}, false
	}
	return m.unmatched("the feature " + e.FeatureGate + " is off"), true
}

// set adds a parameter. A number that is none is left out.
func (u *User) set(name, value string, number bool) {
	var v any = value
	if number {
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil {
			u.Refused = fmt.Sprintf("%s is %.40q, want a whole number", name, value)
			return
		}
		v = n
	}
	if u.Params == nil {
		u.Params = map[string]any{}
	}
	u.Params[name] = v
}

// StringParams returns the members of a JSON object as a cloud sends them, all as text, and whether raw is an object. An empty raw is none.
func StringParams(raw json.RawMessage) (map[string]string, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return nil, false
	}
	out := make(map[string]string, len(members))
	for k, v := range members {
		out[k] = unquote(string(v))
	}
	return out, true
}

const maxMap = 1 << 20

// ParseMap reads a user_intent_map.json. It passes over fields that it does not know.
func ParseMap(b []byte) (*Map, error) {
	if len(b) > maxMap {
		return nil, fmt.Errorf("user intent map of %d bytes: want at most %d", len(b), maxMap)
	}
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("user intent map: %w", err)
	}
	if len(f.Entries) == 0 {
		return nil, fmt.Errorf("user intent map: user_intent_map is empty or missing")
	}
	m := &Map{Entries: f.Entries, Responses: f.Responses, Unmatched: f.Unmatched}
	if m.Unmatched == "" {
		m.Unmatched = Unmatched
	}
	clouds := map[string]int{}
	for i, e := range m.Entries {
		if e.UserIntent == "" {
			return nil, fmt.Errorf("user intent map: entry %d: no user_intent", i)
		}
		if e.CloudIntent == "" && e.AppIntent == "" {
			return nil, fmt.Errorf("user intent map: entry %d (%s): want a cloud_intent or an app_intent", i, e.UserIntent)
		}
		if j, twice := clouds[e.CloudIntent]; twice && e.CloudIntent != "" {
			return nil, fmt.Errorf("user intent map: entry %d (%s): entry %d already has the cloud_intent %s", i, e.UserIntent, j, e.CloudIntent)
		}
		clouds[e.CloudIntent] = i
	}
	for i, r := range m.Responses {
		if r.CloudIntent == "" || r.Response == (Response{}) {
			return nil, fmt.Errorf("user intent map: simple response %d: want a cloud_intent and a response", i)
		}
	}
	return m, nil
}

type file struct {
	Responses []SimpleResponse `json:"simple_voice_responses,omitempty"`
	Entries   []Entry          `json:"user_intent_map"`
	Unmatched string           `json:"unmatched_intent,omitempty"`
}
