package intent

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"

	"kennel/infra/errs"
)

// TestCatalogue: VEC-INT-09 and VEC-INT-10.
func TestCatalogue(t *testing.T) {
	clouds, apps, phrases, ids := 0, 0, 0, map[int]string{}
	for _, in := range All() {
		if in.Cloud != "" {
			clouds++
			if back, ok := ByCloud(in.Cloud); !ok || back.User != in.User {
				t.Errorf("%s: ByCloud gives %s", in.Cloud, back.User)
			}
		}
		if in.App != "" {
			apps++
			if back, ok := ByApp(in.App); !ok || back.User != in.User {
				t.Errorf("%s: ByApp gives %s", in.App, back.User)
			}
		}
		if in.ID >= 0 {
			if before, twice := ids[in.ID]; twice {
				t.Errorf("%s and %s have the id %d", before, in.User, in.ID)
			}
			ids[in.ID] = in.User
		}
		phrases += len(in.Phrases)
	}
	for id := range 42 {
		if ids[id] == "" {
			t.Errorf("no intent has the id %d", id)
		}
	}
	if len(All()) != 65 || clouds != 64 || apps != 20 || len(ids) != 42 || phrases != 71 {
		t.Errorf("%d intents, %d cloud names, %d app names, %d ids, %d phrases", len(All()), clouds, apps, len(ids), phrases)
	}
	for name, want := range map[string]string{"intent_imperative_eyecolor_extend": "imperative_eyecolor_specific", "intent_knowledge_response_extend_bypass": "knowledge_response"} {
		if in, _ := ByCloud(name); in.User != want {
			t.Errorf("%s is %q, want %s", name, in.User, want)
		}
	}
	if in, _ := ByApp("intent_meet_vector"); in.User != "meet_victor" { // VEC-INT-14
		t.Errorf("intent_meet_vector is %q", in.User)
	}
}

// TestCloudParams: VEC-INT-04, VEC-INT-06 and VEC-INT-07.
func TestCloudParams(t *testing.T) {
	m := DefaultMap()
	for _, tc := range []struct {
		cloud  string
		params map[string]string
		want   User
	}{
		{"intent_clock_settimer_extend", map[string]string{"timer_duration": "90"}, User{Name: "set_timer", Params: map[string]any{"time_s": int64(90)}}},
		{"intent_clock_settimer_extend", map[string]string{"timer_duration": "soon"}, User{Name: "set_timer", Refused: `time_s is "soon", want a whole number`}},
		{"intent_clock_settimer_extend", nil, User{Name: "set_timer"}},
		{"intent_global_stop_extend", map[string]string{"entity_behavior_stoppable": "timer"}, User{Name: "global_stop", Params: map[string]any{"what_to_stop": "timer"}}},
		{"intent_global_stop_extend", map[string]string{"what_to_stop": "timer"}, User{Name: "global_stop", Params: map[string]any{"what_to_stop": "timer"}}},
		{"intent_global_delete_extend", map[string]string{"entity_behavior_deletable": "true"}, User{Name: "global_delete", Params: map[string]any{"what_to_stop": "true"}}},
		{"intent_imperative_eyecolor_extend", map[string]string{"eye_color": "COLOR_TEAL"}, User{Name: "imperative_eyecolor_specific", Params: map[string]any{"eye_color": "COLOR_TEAL"}}},
		{"intent_knowledge_response_extend_bypass", map[string]string{"answer": "42", "answer_type": "x", "query_ttext": "why", "domains.0": "d"},
			User{Name: "knowledge_response", Params: map[string]any{"answer": "42", "query_text": "why", "domains.0": "d"}}},
		{"intent_photo_take_extend", map[string]string{"entity_photo_selfie": ""}, User{Name: "take_a_photo", Params: map[string]any{"empty_or_selfie": ""}}},
		{"intent_weather_extend", map[string]string{"condition": "Snow", "is_forecast": "true", "local_datetime": "2020-01-01T00:00:00Z", "speakable_location_string": "Oslo", "temperature": "-3", "temperature_unit": "C"},
			User{Name: "weather_response", Params: map[string]any{"condition": "Snow", "isForecast": "true", "localDateTime": "2020-01-01T00:00:00Z", "speakableLocationString": "Oslo", "temperature": "-3", "temperatureUnit": "C"}}},
		{"intent_nobody_knows", map[string]string{"a": "b"}, User{Name: Unmatched, Refused: "no such intent"}},
		{"intent_message_playmessage_extend", map[string]string{"given_name": "anna"}, User{Name: Unmatched, Refused: "the feature Messaging is off"}}, // VEC-INT-11
		{"intent_imperative_lookoverthere", nil, User{Name: Unmatched, Refused: "the feature GazeDirection is off"}},
		{"intent_greeting_hello", map[string]string{"extra": "x"}, User{Name: "greeting_hello", Params: map[string]any{"extra": "x"}}},
	} {
		if got := m.Cloud(tc.cloud, tc.params); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s %v: %+v, want %+v", tc.cloud, tc.params, got, tc.want)
		}
	}
	m.Enabled = func(feature string) bool { return feature == "Messaging" }
	if got := m.Cloud("intent_message_playmessage_extend", nil); got.Name != "message_playback" {
		t.Errorf("with Messaging on: %+v", got)
	}
	if got := m.Cloud("intent_explore_start", nil); got.Name != Unmatched {
		t.Errorf("with Exploring off: %+v", got)
	}
}

// TestAppIntents: VEC-INT-05, VEC-INT-13 and VEC-INT-14.
func TestAppIntents(t *testing.T) {
	m := DefaultMap()
	for _, tc := range []struct {
		app, param string
		want       User
		kind       error
	}{
		{"intent_clock_settimer", "xxxxxxx", User{Name: "set_timer", Params: map[string]any{"time_s": int64(7)}}, nil},
		{"intent_clock_settimer", "90", User{Name: "set_timer", Params: map[string]any{"time_s": int64(2)}}, nil},
		{"intent_clock_settimer", "äöü", User{Name: "set_timer", Params: map[string]any{"time_s": int64(3)}}, nil},
		{"intent_clock_settimer", `{"time_s":90}`, User{Name: "set_timer", Params: map[string]any{"time_s": int64(90)}}, nil},
		{"intent_clock_settimer", `{"time_s":1.5}`, User{Name: "set_timer", Refused: `time_s is "1.5", want a whole number`}, nil},
		{"intent_meet_vector", `{"username":"Anna","x":1}`, User{Name: "meet_victor", Params: map[string]any{"username": "Anna"}}, nil},
		{"intent_meet_victor", `Anna`, User{Name: "meet_victor", Params: map[string]any{"username": "Anna"}}, nil},
		{"intent_system_charger", ``, User{Name: "system_charger"}, nil},
		{"intent_system_charger", `nonsense`, User{Name: "system_charger"}, nil},
		{"intent_message_playmessage", ``, User{Name: Unmatched, Refused: "the feature Messaging is off"}, nil},
		{"", ``, User{Name: Unmatched, Refused: "no such intent"}, errs.New(errs.NotFound, "")}, // most rows have no name of an app
		{"intent_greeting_hello", ``, User{Name: Unmatched, Refused: "no such intent"}, errs.New(errs.NotFound, "")},
	} {
		got, err := m.App(tc.app, tc.param)
		if !reflect.DeepEqual(got, tc.want) || (err == nil) != (tc.kind == nil) || err != nil && errs.KindOf(err) != errs.NotFound {
			t.Errorf("%s %q: %+v, %v; want %+v", tc.app, tc.param, got, err, tc.want)
		}
	}
}

// written returns m as a robot has it in its file.
func written(t testing.TB, m *Map) []byte {
	t.Helper()
	b, err := json.Marshal(file{Entries: m.Entries, Responses: m.Responses, Unmatched: m.Unmatched})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestParseMap: the mapping of the catalogue, and the shape of an original robot's file with fields of a later one (VEC-INT-01, VEC-INT-02).
func TestParseMap(t *testing.T) {
	m, err := ParseMap(written(t, DefaultMap()))
	if err != nil || !reflect.DeepEqual(m, DefaultMap()) {
		t.Fatalf("%+v, %v", m, err)
	}
	m, err = ParseMap([]byte(`{"comment":"x","simple_voice_responses":[{"cloud_intent":"intent_status_feeling","later":1,"response":{"active_feature":"BasicVoiceCommand","anim_group":"FeelingHappy","disable_wakeword_turn":true,"emotion_event":"Ok"}}],
		"user_intent_map":[{"cloud_intent":"intent_clock_settimer_extend","app_intent":"intent_clock_settimer","user_intent":"set_timer","cloud_substitutions":{"timer_duration":"time_s"},"cloud_numerics":["timer_duration"],"test_parsing":false,"later":[1]},
		{"app_intent":"own_app","app_substitutions":{"k":"key"},"user_intent":"own"}],"unmatched_intent":"unmatched_intent"}`))
	want := &Map{
		Responses: []SimpleResponse{{"intent_status_feeling", Response{"BasicVoiceCommand", "FeelingHappy", true, "Ok"}}},
		Entries: []Entry{{CloudIntent: "intent_clock_settimer_extend", AppIntent: "intent_clock_settimer", UserIntent: "set_timer",
			CloudSubstitutions: map[string]string{"timer_duration": "time_s"}, CloudNumerics: []string{"timer_duration"}, TestParsing: new(bool)},
			{AppIntent: "own_app", AppSubstitutions: map[string]string{"k": "key"}, UserIntent: "own"}},
		Unmatched: "unmatched_intent",
	}
	if err != nil || !reflect.DeepEqual(m, want) {
		t.Fatalf("%+v, %v; want %+v", m, err, want)
	}
	if u := m.Cloud("intent_status_feeling", nil); u.Name != "status_feeling" || u.Response == nil || u.Response.AnimGroup != "FeelingHappy" || !u.Response.DisableWakewordTurn { // VEC-INT-03
		t.Errorf("simple response: %+v", u)
	}
	if u, err := m.App("own_app", `{"k":"v","other":"w"}`); err != nil || u.Name != "own" || !maps.Equal(u.Params, map[string]any{"key": "v"}) {
		t.Errorf("own_app: %+v, %v", u, err)
	}
	if u := m.Cloud("intent_greeting_hello", nil); u.Name != Unmatched {
		t.Errorf("not in this map: %+v", u)
	}
}

// TestMapRefusals: VEC-INT-02.
func TestMapRefusals(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:   "user_intent_map is empty or missing",
		`nope`: "invalid character",
		`{"user_intent_map":[{"user_intent":"x"}]}`:                                                           "entry 0 (x): want a cloud_intent or an app_intent",
		`{"user_intent_map":[{"cloud_intent":"x"}]}`:                                                          "entry 0: no user_intent",
		`{"user_intent_map":[{"user_intent":"x","cloud_intent":"y"},{"user_intent":"z","cloud_intent":"y"}]}`: "entry 0 already has the cloud_intent y",
		`{"user_intent_map":[{"user_intent":"x","cloud_intent":"y"}],"simple_voice_responses":[{}]}`:          "simple response 0",
		`{"user_intent_map":[{"user_intent":"x","cloud_intent":"y","test_parsing":"no"}]}`:                    "test_parsing",
		`{"user_intent_map":[{"user_intent":"x","cloud_intent":"y"}],"unmatched_intent":["x"]}`:               "unmatched_intent",
	} {
		if _, err := ParseMap([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := ParseMap(make([]byte, maxMap+1)); err == nil {
		t.Error("a map without bound is read")
	}
}

func TestLevelsAndColors(t *testing.T) {
	for s, want := range map[string]int{"VOLUME_1": 1, "5": 5, "maximum": 5, "minimum": 1, "low": 2, "HIGH": 4, "VOLUME_6": 0, "loud": 0, "": 0} {
		if n, ok := VolumeLevel(s); ok != (want > 0) || ok && n != want {
			t.Errorf("level %q: %d, %v", s, n, ok)
		}
	}
	for _, c := range EyeColors() {
		if n, ok := EyeColor(strings.ToLower(c)); !ok || n < 0 || n > 6 {
			t.Errorf("colour %s: %d, %v", c, n, ok)
		}
	}
	if _, ok := EyeColor("red"); ok {
		t.Error("red eyes")
	}
}

func FuzzParseMap(f *testing.F) {
	f.Add(written(f, DefaultMap()))
	f.Add([]byte(`{"user_intent_map":[{"user_intent":"x","App_intent":"y","z":{}}],"unmatched_intent":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseMap(b)
		if err != nil {
			return
		}
		out := written(t, m)
		again, err := ParseMap(out)
		if err != nil || len(again.Entries) != len(m.Entries) || again.Unmatched != m.Unmatched {
			t.Fatalf("%s became %s: %v", b, out, err)
		}
		m.Cloud(m.Entries[0].CloudIntent, map[string]string{"a": "b"})
		_, _ = m.App(m.Entries[0].AppIntent, string(b)) // must not panic
	})
}

// TestFeatures: what is on and off in a robot as delivered, 22 and 8 features (part of VEC-DOC-11, annex B), but for Alexa's three (VEC-AVS-02).
func TestFeatures(t *testing.T) {
	for words, want := range map[string]bool{
		"ActiveIntentFeedback Alexa Alexa_AU Alexa_UK Dancing Exploring EyeColorVC FetchCube FindCube GreetAfterLongTime HandDetection HeldInPalm " +
			"HowOldAreYou Keepaway KnowledgeGraph MoveCube PopAWheelie ReactToHeldCube ReactToIllumination RollCube StayOnChargerUntilCharged Volume": true,
		"AttentionTransfer CubeSpinner GazeDirection Invalid Laser Messaging PRDemo TestFeature": false,
	} {
		names := strings.Fields(words)
		for _, name := range names {
			if want := want && !strings.HasPrefix(name, "Alexa"); FeatureOn(name) != want {
				t.Errorf("%s is on: %v, want %v", name, !want, want)
			}
		}
		if n := map[bool]int{true: 22, false: 8}[want]; len(names) != n {
			t.Errorf("%d features, want %d", len(names), n)
		}
	}
	if len(featuresOff) != 8 {
		t.Errorf("%d features are off, want 8", len(featuresOff))
	}
}
