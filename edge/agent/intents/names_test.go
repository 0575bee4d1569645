package intents

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"

	"kennel/edge/agent/features"
	"kennel/edge/env/robotfs"
	"kennel/infra/errs"
)

// TestNamed: the names of the command, which may be ours, an app's or a cloud's.
func TestNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRobot(t, vector)
		r.start(t, "b1")
		defer func() { r.end() }()
		for _, tt := range []struct{ name, params, want string }{
			{"kennel_lookup", ``, "kennel_lookup map[]"},
			{"kennel_fly", ``, "NOT_FOUND"},
			{"intent_imperative_forward", ``, "movement_forward map[]"},
			{"intent_system_sleep", `{"wings":"2"}`, "system_sleep map[]"}, // an app's unknown parameter is dropped (VEC-INT-05)
			{"intent_nothing", ``, "NOT_FOUND"},                            // VEC-INT-05
			{"unmatched_intent", ``, "NOT_FOUND"},
			{"intent_clock_settimer_extend", `{"timer_duration":"300"}`, "set_timer map[time_s:300]"},
			{"intent_clock_settimer", `{"time_s":300}`, "set_timer map[time_s:300]"},
			{"intent_clock_settimer", `{"time_s":"300"}`, "set_timer map[time_s:300]"},
			{"intent_clock_settimer", `{"param":"five minutes"}`, "set_timer map[time_s:12]"}, // VEC-INT-13
			{"intent_clock_settimer", `{"param":"{\"time_s\":7}"}`, "set_timer map[time_s:7]"},
			{"intent_meet_victor", `{"username":"Ann"}`, "meet_victor map[username:Ann]"}, // VEC-INT-14
			{"intent_meet_vector", `{"username":"Ann"}`, "meet_victor map[username:Ann]"},
			{"intent_imperative_eyecolor_extend", `{"eye_color":"COLOR_TEAL"}`, "imperative_eyecolor_specific map[eye_color:COLOR_TEAL]"},
			{"intent_message_playback", ``, "NOT_FOUND"},
			{"intent_message_playmessage", `{"given_name":"Ann"}`, "unmatched_intent map[]"}, // Messaging is off (VEC-INT-11)
		} {
			u, err := r.Named(tt.name, json.RawMessage(tt.params))
			got := fmt.Sprint(u.Name, " ", u.Params)
			if errs.KindOf(err) == errs.NotFound {
				got = err.Error()[:9]
			} else if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("%s %s: %s, want %s", tt.name, tt.params, got, tt.want)
			}
		}
	})
}

// TestFiles: the robot's own mapping and features count (VEC-INT-01, part of VEC-DOC-11).
// TestMoves: intents that a later stop takes back.
func TestMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRobot(t, vector)
		r.start(t, "b1")
		defer func() { r.end() }()
		for args, want := range map[string]bool{`{"intent":"intent_imperative_forward"}`: true, `{"intent":"kennel_lookdown"}`: true, `{"intent":"intent_imperative_lookatme"}`: true,
			`{"intent":"intent_clock_settimer_extend","params":{"timer_duration":"300"}}`: false, `{"intent":"intent_global_stop_extend"}`: false, `{"intent":"fly"}`: false, `nonsense`: false} {
			if got := r.Moves(json.RawMessage(args)); got != want {
				t.Errorf("%s: %v, want %v", args, got, want)
			}
		}
	})
}

func TestFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRobot(t, vector)
		for name, text := range map[string]string{
			features.File: `[{"feature":"Volume","enabled":false}, {"feature":"Messaging","enabled":true}]`,
			mapFile:       `{"user_intent_map":[{"cloud_intent":"intent_x_forth","user_intent":"movement_forward"},{"cloud_intent":"intent_message_playmessage_extend","user_intent":"message_playback","feature_gate":"Messaging"}]}`,
		} {
			if err := robotfs.WriteFile(r.root, name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		r.start(t, "b1")
		defer func() { r.end() }()
		if u := r.Map().Cloud("intent_x_forth", nil); u.Name != "movement_forward" {
			t.Errorf("%+v", u)
		}
		if u := r.Map().Cloud("intent_message_playmessage_extend", nil); u.Name != "message_playback" {
			t.Errorf("%+v", u)
		}
		if o := r.take(t, "imperative_volumeup"); o.Reason != Unmatched {
			t.Errorf("%+v", o)
		}
	})
}
