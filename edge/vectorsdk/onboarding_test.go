package vectorsdk_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/infra/api/vectorpb"
)

// TestOnboarding: an app brings the robot through its stages by the nine requests, each with its own answer (VEC-ONB-02); the stage is on disk, and the event
// streams hear of it (part of VEC-ONB-01, VEC-ONB-03, part of VEC-ONB-04). A phase without a behavior is refused.
func TestOnboarding(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	l := d.listen(t, &vectorpb.EventRequest{ListType: &vectorpb.EventRequest_WhiteList{WhiteList: &vectorpb.FilterList{List: []string{"onboarding"}}}})
	l.primary()
	const none = `"onboarding_`
	for _, tc := range []struct{ request, want string }{
		{`"onboarding_wake_up_started_request":{}`, `{"status":{"code":3},"onboarding_wake_up_started_response":{"already_started":false}}`},
		{`"onboarding_phase_progress_request":{}`, `{"status":{"code":3},"onboarding_phase_progress_response":{"status":{"code":3},"last_set_phase":0,"last_set_phase_state":0,"percent_completed":0}}`},
		{`"onboarding_set_phase_request":{"phase":3}`, `{"status":{"code":3},"onboarding_set_phase_response":{"status":{"code":3},"phase":3,"phase_state":2}}`},
		{`"onboarding_wake_up_request":{}`, `{"status":{"code":1},"onboarding_wake_up_response":{"waking_up":true,"charging_info":{"on_charger":false,"needs_to_charge":false,"suggested_charger_time":0}}}`},
		{`"onboarding_wake_up_started_request":{}`, `{"status":{"code":3},"onboarding_wake_up_started_response":{"already_started":true}}`},
		{`"onboarding_phase_progress_request":{}`, `{"status":{"code":3},"onboarding_phase_progress_response":{"status":{"code":3},"last_set_phase":3,"last_set_phase_state":3,"percent_completed":100}}`},
		{`"onboarding_set_phase_request":{"phase":"Default"}`, `{"status":{"code":3},"onboarding_set_phase_response":{"status":{"code":3},"phase":1,"phase_state":3}}`},
		{`"onboarding_charge_info_request":{}`, `{"status":{"code":3},"onboarding_charge_info_response":{"status":{"code":3},"on_charger":false,"needs_to_charge":false,"required_charge_time":0}}`},
		{`"onboarding_skip_onboarding":{}`, `{"status":{"code":3}}`},
		{`"onboarding_restart":{}`, `{"status":{"code":3}}`},
		{`"onboarding_wake_up_started_request":{}`, `{"status":{"code":3},"onboarding_wake_up_started_response":{"already_started":false}}`},
		{`"onboarding_mark_complete_and_exit":{}`, `{"status":{"code":3}}`},
		{`"onboarding_restart":{}`, `{"status":{"code":3}}`},
		{`"onboarding_complete_request":{}`, `{"status":{"code":3},"onboarding_complete_response":{"completed":true}}`},
	} {
		if got, _, body := d.post(t, "all", "/v1/send_onboarding_input", "{"+tc.request+"}"); got != http.StatusOK || !sameJSON(body, tc.want) {
			t.Errorf("%s: %d %s, want %s", tc.request, got, body, tc.want)
		}
	}
	for _, request := range []string{none + `set_phase_request":{"phase":2}`, none + `set_phase_request":{"phase":7}`} {
		if got, _, body := d.post(t, "all", "/v1/send_onboarding_input", "{"+request+"}"); got != http.StatusNotImplemented {
			t.Errorf("%s: %d %s", request, got, body)
		}
	}
	for _, request := range []string{none + `set_phase_request":{}`, none + `set_phase_request":{"phase":8}`, ``} {
		if got, _, body := d.post(t, "all", "/v1/send_onboarding_input", "{"+request+"}"); got != http.StatusBadRequest {
			t.Errorf("%s: %d %s", request, got, body)
		}
	}
	for _, want := range []vectorpb.OnboardingStages{-1, 3, 0, 3, 0, 3} {
		e := l.await(func(e *vectorpb.Event) bool { return e.GetOnboarding() != nil }).GetOnboarding()
		if want < 0 && e.GetOnboardingWakeUpFinished() == nil || want >= 0 && (e.GetOnboardingState() == nil || e.GetOnboardingState().Stage != want) {
			t.Errorf("%v, want stage %d", e, want)
		}
	}
	if a, err := d.dial(t).GetOnboardingState(as(t, "look"), &vectorpb.OnboardingStateRequest{}); err != nil || a.OnboardingState.Stage != vectorpb.OnboardingStages_Complete {
		t.Errorf("%v, %v", a, err)
	}
	b, err := os.ReadFile(filepath.Join(d.dir, "data/kennel/onboarding.json"))
	if err != nil || !sameJSON(string(b), `{"stage":3}`) {
		t.Errorf("on disk: %s, %v", b, err)
	}
}

// TestOnboardingOnDisk: the stage stays over a restart; a file that makes no sense is as none.
func TestOnboardingOnDisk(t *testing.T) {
	for text, want := range map[string]vectorpb.OnboardingStages{`{"stage":3}`: 3, `{"stage":1}`: 1, `{"stage":2}`: 0, `{`: 0, ``: 0} {
		d := newDeskOn(t, func(dir string) {
			if text == "" {
				return
			}
			name := filepath.Join(dir, "data/kennel/onboarding.json")
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		})
		if a, err := d.dial(t).GetOnboardingState(as(t, "look"), &vectorpb.OnboardingStateRequest{}); err != nil || a.OnboardingState.Stage != want {
			t.Errorf("%q: %v, %v; want %d", text, a, err, want)
		}
	}
}

// TestNoFaces: a robot without an eye for faces knows none, and says so of each call for its memory of them (part of VEC-FAC-06, part of VEC-FAC-07).
func TestNoFaces(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for path, tc := range map[string]struct{ request, want string }{
		"request_enrolled_names":     {`{}`, `{"status":{"code":3},"faces":[]}`},
		"erase_all_enrolled_faces":   {`{}`, `{"status":{"code":3}}`},
		"erase_enrolled_face_by_id":  {`{"face_id":1}`, `{"status":{"code":101}}`},
		"update_enrolled_face_by_id": {`{"face_id":1,"old_name":"Ann","new_name":"Anna"}`, `{"status":{"code":101}}`},
		"cancel_face_enrollment":     {`{}`, `{"status":{"code":101}}`},
	} {
		if got, _, body := d.post(t, "all", "/v1/"+path, tc.request); got != http.StatusOK || !sameJSON(body, tc.want) {
			t.Errorf("%s: %d %s, want %s", path, got, body, tc.want)
		}
	}
	c := d.dial(t)
	if _, err := c.EraseEnrolledFaceByID(as(t, "all"), &vectorpb.EraseEnrolledFaceByIDRequest{FaceId: -1}); status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
	if _, err := c.UpdateEnrolledFaceByID(as(t, "all"), &vectorpb.UpdateEnrolledFaceByIDRequest{FaceId: 1}); status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
}
