package vectorsdk

import (
	"context"

	"kennel/infra/api/vectorpb"
)

// Amazon closed the service that the original's Alexa needed: there is no sign-in to begin, the feature flag Alexa is off, and programs hear why
// (VEC-END-03, part of VEC-ALX-01).
const (
	alexaState = vectorpb.AlexaAuthState_ALEXA_AUTH_UNINITIALIZED
	alexaExtra = "not available: this robot has no Alexa"
)

// alexaAuthState says that no account is signed in, and none can be.
func (f *Facade) alexaAuthState(context.Context, client, *vectorpb.AlexaAuthStateRequest) (*vectorpb.AlexaAuthStateResponse, error) {
	return &vectorpb.AlexaAuthStateResponse{Status: fine(), AuthState: alexaState, Extra: alexaExtra}, nil
}

// alexaOptIn finds no Alexa to opt in to, and tells the event streams; opting out leaves all as it was.
func (f *Facade) alexaOptIn(_ context.Context, _ client, q *vectorpb.AlexaOptInRequest) (*vectorpb.AlexaOptInResponse, error) {
	if !q.OptIn {
		return &vectorpb.AlexaOptInResponse{Status: fine()}, nil
	}
	f.moments.add(&vectorpb.Event{EventType: &vectorpb.Event_AlexaAuthEvent{AlexaAuthEvent: &vectorpb.AlexaAuthEvent{AuthState: alexaState, Extra: alexaExtra}}})
	return &vectorpb.AlexaOptInResponse{Status: answered(vectorpb.ResponseStatus_NOT_FOUND)}, nil
}
