package vectorsdk

import (
	"context"
	"encoding/json"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/edge/agent/intents"
	"kennel/infra/api/vectorpb"
	"kennel/infra/errs"
	"kennel/speech/intent"
)

// Intents act on what people want of the robot (edge/agent/intents.Intents).
type Intents interface {
	Named(name string, params json.RawMessage) (intent.User, error)
	Take(ctx context.Context, u intent.User, from string) (intents.Outcome, error)
}

// maxParam is how many bytes the parameter of an intent may have; own default.
const maxParam = 4096

// appIntent acts on an intent as if a person had said it, and answers when that is done (VEC-AUD-03). NOT_FOUND: no intent has the name. An intent that this
// robot cannot act on is Unimplemented; one that it may not act on now, because something else moves it or it is on its charger, is Aborted and says why.
func (f *Facade) appIntent(ctx context.Context, _ client, q *vectorpb.AppIntentRequest) (*vectorpb.AppIntentResponse, error) {
	if len(q.Intent) > maxText || len(q.Param) > maxParam {
		return nil, errInvalid("intent of %d bytes with a parameter of %d, want at most %d and %d", len(q.Intent), len(q.Param), maxText, maxParam)
	}
	params := json.RawMessage(q.Param)
	if !json.Valid(params) {
		params = nil
	}
	if params == nil && q.Param != "" { // text, whose length counts for a timer (VEC-INT-13)
		b, err := json.Marshal(map[string]string{"param": q.Param})
		if err != nil {
			return nil, err
		}
		params = b
	}
	x := f.cfg.Intents()
	u, err := x.Named(q.Intent, params)
	switch errs.KindOf(err) {
	case errs.NotFound:
		return &vectorpb.AppIntentResponse{Status: answered(vectorpb.ResponseStatus_NOT_FOUND)}, nil
	case errs.Invalid:
		return nil, errInvalid("param: %v", err)
	}
	if err != nil {
		return nil, err
	}
	if u.Refused != "" && u.Name != intent.Unmatched {
		return nil, errInvalid("param: %s", u.Refused)
	}
	o, err := x.Take(ctx, u, "app")
	if err != nil {
		return nil, err
	}
	switch o.Reason {
	case "":
		return &vectorpb.AppIntentResponse{Status: heard()}, nil
	case intents.Unmatched:
		return &vectorpb.AppIntentResponse{Status: answered(vectorpb.ResponseStatus_NOT_FOUND)}, nil
	case intents.NotSupported:
		return nil, status.Errorf(codes.Unimplemented, "AppIntent %s: %s", u.Name, o.Text)
	case intents.Invalid:
		return nil, errInvalid("param: %s", o.Text)
	}
	return nil, status.Errorf(codes.Aborted, "%s: %s", o.Reason, o.Text)
}

// IntentHeard tells the event streams of an intent that a person said, or a program or the cloud gave (part of VEC-AUD-01). Intents without a published number
// have no event. It does not block.
func (f *Facade) IntentHeard(u intent.User) {
	in, ok := intent.ByUser(u.Name)
	if !ok || in.ID < 0 { // VEC-INT-10
		return
	}
	params := u.Params
	if params == nil {
		params = map[string]any{}
	}
	b, err := json.Marshal(params)
	if err != nil {
		return // of text and numbers
	}
	f.moments.add(&vectorpb.Event{EventType: &vectorpb.Event_UserIntent{UserIntent: &vectorpb.UserIntent{IntentId: uint32(in.ID), JsonData: string(b)}}})
}
