package vectorsdk

import (
	"context"
	"maps"
	"strings"
	"sync"
	"unicode"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"kennel/edge/gateway"
	"kennel/infra/api/vectorpb"
)

// handler does a call. It is one of a unary function and a stream.
type handler struct {
	right   string // of the token
	open    bool   // no token is needed (VEC-AUTH-08)
	counted bool   // against the client's rate
	unary   func(context.Context, client, proto.Message) (proto.Message, error)
	stream  func(ctx context.Context, c client, receive func() (proto.Message, error), send func(proto.Message) error) error
}

// call is a row of the table of calls.
type call struct {
	handler
	name            string
	paths           []string // patterns of the routes
	receives, sends bool     // streams
	request         func() protoreflect.MessageType
	absent          string // the part that is missing; "": none
}

// table returns all calls of the published service (part of VEC-TRN-01): each is done by a handler, or its part is absent. It does not touch the description of
// the messages, which takes 2 MB of memory that a robot without such programs need not give.
func (f *Facade) table() []call {
	handlers := f.handlers()
	var out []call
	add := func(name string, receives, sends bool) {
		x := call{name: name, receives: receives, sends: sends, paths: pathsOf(name), request: sync.OnceValue(func() protoreflect.MessageType { return requestOf(name) })}
		var done bool
		if x.handler, done = handlers[name]; !done {
			x.absent = absent[name]
			x.unary = func(context.Context, client, proto.Message) (proto.Message, error) {
				return nil, errAbsent(name, x.absent)
			}
		}
		if !x.open {
			x.handler = f.noted(name, x.handler)
		}
		out = append(out, x)
	}
	for _, m := range vectorpb.ExternalInterface_ServiceDesc.Methods {
		add(m.MethodName, false, false)
	}
	for _, s := range vectorpb.ExternalInterface_ServiceDesc.Streams {
		add(s.StreamName, s.ClientStreams, s.ServerStreams)
	}
	return out
}

// noted is h, of which the robot writes down each call: what an answer says about an action is not looked at.
func (f *Facade) noted(name string, h handler) handler {
	if do := h.unary; do != nil {
		h.unary = func(ctx context.Context, c client, q proto.Message) (proto.Message, error) {
			a, err := do(ctx, c, q)
			outcome := gateway.Answered
			if err != nil {
				outcome = gateway.OutcomeOf(err)
			}
			f.cfg.Gateway.Note(c.Caller, name, "", outcome)
			return a, err
		}
	}
	if flow := h.stream; flow != nil {
		h.stream = func(ctx context.Context, c client, receive func() (proto.Message, error), send func(proto.Message) error) error {
			f.cfg.Gateway.Note(c.Caller, name, "", gateway.Begun)
			return flow(ctx, c, receive, send)
		}
	}
	return h
}

// requestOf returns the type of a call's requests.
func requestOf(name string) protoreflect.MessageType {
	m := vectorpb.File_vector_proto.Services().ByName("ExternalInterface").Methods().ByName(protoreflect.Name(name))
	t, err := protoregistry.GlobalTypes.FindMessageByName(m.Input().FullName())
	if err != nil {
		panic(err) // vectorpb registers its own types
	}
	return t
}

// newRequest returns an empty request.
func (x *call) newRequest() proto.Message { return x.request().New().Interface() }

// pathsOf returns the patterns of a call's routes: the published one, or for calls without one the same form as an extension of ours (VEC-TRN-05).
func pathsOf(name string) []string {
	switch name {
	case "GetFeatureFlag":
		return []string{"POST /v1/feature_flag"}
	case "GetFeatureFlagList":
		return []string{"POST /v1/feature_flag_list"}
	case "GetAlexaAuthState":
		return []string{"POST /v1/alexa_auth_state"}
	case "EventStream":
		return []string{"POST /v1/event_stream", "GET /v1/event_stream"}
	case "SetCameraSettings": // the documentation has the second
		return []string{"POST /v1/set_camera_settings", "POST /v1/set_camera_config"}
	}
	return []string{"POST /v1/" + snake(name)}
}

// snake writes SDKInitialization as sdk_initialization.
func snake(name string) string {
	var b strings.Builder
	r := []rune(name)
	for i, c := range r {
		if unicode.IsUpper(c) && i > 0 && (unicode.IsLower(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

func unary[T any, Q message[T], A proto.Message](right string, do func(context.Context, client, Q) (A, error)) handler {
	return handler{right: right, counted: true, unary: func(ctx context.Context, c client, q proto.Message) (proto.Message, error) { return do(ctx, c, q.(Q)) }}
}

// handlers are the calls that this robot does.
func (f *Facade) handlers() map[string]handler {
	ask := unary(gateway.Look, f.battery)
	ask.counted = false // it costs the robot's loop nothing
	login := unary("", f.userAuthentication)
	login.open = true
	all := map[string]handler{
		"AppIntent":          unary(gateway.Move, f.appIntent),
		"ProtocolVersion":    unary("", f.protocolVersion),
		"SDKInitialization":  unary("", f.sdkInitialization),
		"UserAuthentication": login,
		"VersionState":       unary(gateway.Look, f.versionState),
		"BatteryState":       ask,
		"GetCameraConfig":    unary(gateway.Look, f.cameraConfig),

		"CameraFeed":              {right: gateway.Camera, counted: true, stream: f.cameraFeed},
		"CaptureSingleImage":      unary(gateway.Camera, f.captureSingleImage),
		"EnableImageStreaming":    unary(gateway.Camera, f.enableImageStreaming),
		"IsImageStreamingEnabled": unary(gateway.Look, f.isImageStreamingEnabled),
		"SetCameraSettings":       unary(gateway.Camera, f.setCameraSettings),

		"BehaviorControl":       {right: gateway.Move, counted: true, stream: f.behaviorControl},
		"AssumeBehaviorControl": {right: gateway.Move, counted: true, stream: f.behaviorControl},
		"EventStream":           {right: gateway.Look, counted: true, stream: f.eventStream},

		"DriveWheels":         unary(gateway.Move, f.driveWheels),
		"MoveHead":            unary(gateway.Move, f.moveHead),
		"MoveLift":            unary(gateway.Move, f.moveLift),
		"StopAllMotors":       unary(gateway.Move, f.stopAllMotors),
		"DriveStraight":       unary(gateway.Move, f.driveStraight),
		"TurnInPlace":         unary(gateway.Move, f.turnInPlace),
		"SetHeadAngle":        unary(gateway.Move, f.setHeadAngle),
		"SetLiftHeight":       unary(gateway.Move, f.setLiftHeight),
		"GoToPose":            unary(gateway.Move, f.goToPose),
		"CancelActionByIdTag": unary(gateway.Move, f.cancelAction),
		"CancelBehavior":      unary(gateway.Move, f.cancelBehavior),
		"DriveOffCharger":     unary(gateway.Move, f.driveOffCharger),
		"DriveOnCharger":      unary(gateway.Move, f.driveOnCharger),
		"LookAroundInPlace":   unary(gateway.Move, f.lookAroundInPlace),

		"GetFeatureFlag":         unary(gateway.Look, f.getFeatureFlag),
		"GetFeatureFlagList":     unary(gateway.Look, f.getFeatureFlagList),
		"PullJdocs":              unary(gateway.Look, f.pullJdocs),
		"UpdateSettings":         unary(gateway.Change, f.updateSettings),
		"UpdateAccountSettings":  unary(gateway.Change, f.updateAccountSettings),
		"UpdateUserEntitlements": unary(gateway.Change, f.updateUserEntitlements),
		"SetMasterVolume":        unary(gateway.Talk, f.setMasterVolume),

		"GetOnboardingState":  unary(gateway.Look, f.getOnboardingState),
		"SendOnboardingInput": unary(gateway.Move, f.sendOnboardingInput),

		"CancelFaceEnrollment":   unary(gateway.Move, f.cancelEnrollment),
		"EraseAllEnrolledFaces":  unary(gateway.Move, f.eraseFaces),
		"EraseEnrolledFaceByID":  unary(gateway.Move, f.eraseFace),
		"RequestEnrolledNames":   unary(gateway.Look, f.enrolledNames),
		"UpdateEnrolledFaceByID": unary(gateway.Move, f.renameFace),

		"CheckCloudConnection": unary(gateway.Look, f.checkCloudConnection),
		"UploadDebugLogs":      unary(gateway.Move, f.uploadDebugLogs),
		"StartUpdateEngine":    unary(gateway.Move, f.startUpdateEngine),
		"CheckUpdateStatus":    unary(gateway.Look, f.checkUpdateStatus),
		"UpdateAndRestart":     unary(gateway.Move, f.updateAndRestart),

		"EnableFaceDetection":         unary(gateway.Look, f.enableFaceDetection),
		"EnableMarkerDetection":       unary(gateway.Look, f.enableMarkerDetection),
		"EnableMotionDetection":       unary(gateway.Look, f.enableMotionDetection),
		"EnableMirrorMode":            unary(gateway.Look, f.enableMirrorMode),
		"CreateFixedCustomObject":     unary(gateway.Look, f.createFixed),
		"DefineCustomObject":          unary(gateway.Look, f.defineCustom),
		"DeleteCustomObjects":         unary(gateway.Look, f.deleteCustomObjects),
		"NavMapFeed":                  {right: gateway.Look, counted: true, stream: f.navMapFeed},
		"ListAnimations":              unary(gateway.Look, f.listAnimations),
		"ListAnimationTriggers":       unary(gateway.Look, f.listAnimationTriggers),
		"PlayAnimation":               unary(gateway.Move, f.playAnimation),
		"PlayAnimationTrigger":        unary(gateway.Move, f.playAnimationTrigger),
		"DisplayFaceImageRGB":         unary(gateway.Talk, f.displayFaceImage),
		"SayText":                     unary(gateway.Talk, f.sayText),
		"ExternalAudioStreamPlayback": {right: gateway.Talk, counted: true, stream: f.playback},
		"SetEyeColor":                 unary(gateway.Talk, f.setEyeColor),
		"GetLatestAttentionTransfer":  unary(gateway.Look, f.latestAttentionTransfer),
		"GetAlexaAuthState":           unary(gateway.Look, f.alexaAuthState),
		"AlexaOptIn":                  unary(gateway.Change, f.alexaOptIn),
	}
	maps.Copy(all, f.photoHandlers())
	maps.Copy(all, f.cubeHandlers())
	maps.Copy(all, f.liftHandlers())
	return all
}

// absent lists the calls whose part this robot does not have yet, and which part that is. They answer Unimplemented, with and without control. The table
// shrinks as parts arrive; a test counts it.
var absent = map[string]string{
	"FindFaces": "an eye for faces",

	"AudioFeed": "a feed of its microphones",

	"PopAWheelie": "a way to lean on a cube",

	"EnrollFace": "an eye for faces", "SetFaceToEnroll": "an eye for faces", "TurnTowardsFace": "an eye for faces",
}
