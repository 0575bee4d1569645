package vectorsdk_test

import (
	"testing"

	"kennel/infra/api/vectorpb"
)

// TestAlexa: the sign-in is offered as unavailable (VEC-END-03): opting in finds nothing, and the state and an event say why; opting out is done already.
func TestAlexa(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c := d.dial(t)
	l := d.listen(t, &vectorpb.EventRequest{ListType: &vectorpb.EventRequest_WhiteList{WhiteList: &vectorpb.FilterList{List: []string{"alexa_auth_event"}}}})
	l.primary()
	if a, err := c.GetAlexaAuthState(as(t, "look"), &vectorpb.AlexaAuthStateRequest{}); err != nil || a.AuthState != vectorpb.AlexaAuthState_ALEXA_AUTH_UNINITIALIZED || a.Extra == "" {
		t.Errorf("state %v: %v", a, err)
	}
	for optIn, want := range map[bool]vectorpb.ResponseStatus_StatusCode{true: vectorpb.ResponseStatus_NOT_FOUND, false: vectorpb.ResponseStatus_OK} {
		if a, err := c.AlexaOptIn(as(t, "all"), &vectorpb.AlexaOptInRequest{OptIn: optIn}); err != nil || a.Status.GetCode() != want {
			t.Errorf("opt in %v: %v, %v; want %v", optIn, a, err, want)
		}
	}
	e := l.await(func(e *vectorpb.Event) bool { return e.GetAlexaAuthEvent() != nil }).GetAlexaAuthEvent()
	if e.AuthState != vectorpb.AlexaAuthState_ALEXA_AUTH_UNINITIALIZED || e.Extra == "" {
		t.Errorf("event %v", e)
	}
}
