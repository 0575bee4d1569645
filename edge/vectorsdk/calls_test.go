package vectorsdk_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"kennel/edge/vectorsdk"
	"kennel/infra/api/vectorpb"
)

func methods() (all []protoreflect.MethodDescriptor) {
	ms := vectorpb.File_vector_proto.Services().ByName("ExternalInterface").Methods()
	for i := range ms.Len() {
		all = append(all, ms.Get(i))
	}
	return all
}

func made(d protoreflect.MessageDescriptor) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		panic(err)
	}
	return t.New().Interface()
}

// invoke makes a call by gRPC, with q as its one request, and returns the first answer.
func invoke(t *testing.T, d *desk, c *grpc.ClientConn, token string, m protoreflect.MethodDescriptor, q proto.Message) (proto.Message, codes.Code) {
	t.Helper()
	method := "/" + vectorpb.ExternalInterface_ServiceDesc.ServiceName + "/" + string(m.Name())
	a := made(m.Output())
	if !m.IsStreamingClient() && !m.IsStreamingServer() {
		return a, status.Code(c.Invoke(as(t, token), method, q, a))
	}
	ctx, cancel := context.WithCancel(as(t, token))
	defer cancel()
	s, err := c.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return a, status.Code(err)
	}
	_ = s.SendMsg(q) // the answer says what is wrong
	if !m.IsStreamingClient() {
		_ = s.CloseSend()
	}
	return a, status.Code(s.RecvMsg(a))
}

// TestPublishedCalls: the service has the published name and 90 calls, seven of them streams; each is done or says which part is missing (VEC-TRN-01;
// peer facts, section 2).
func TestPublishedCalls(t *testing.T) {
	if n := vectorpb.ExternalInterface_ServiceDesc.ServiceName; n != "Anki.Vector.external_interface.ExternalInterface" {
		t.Error(n)
	}
	var streams []string
	for _, m := range methods() {
		if m.IsStreamingClient() || m.IsStreamingServer() {
			streams = append(streams, string(m.Name()))
		}
	}
	slices.Sort(streams)
	want := []string{"AssumeBehaviorControl", "AudioFeed", "BehaviorControl", "CameraFeed", "EventStream", "ExternalAudioStreamPlayback", "NavMapFeed"}
	if len(methods()) != 90 || !slices.Equal(streams, want) {
		t.Errorf("%d calls with the streams %v", len(methods()), streams)
	}
	done, absent := vectorsdk.Calls()
	if all := slices.Sorted(slices.Values(slices.Concat(done, slices.Collect(maps.Keys(absent))))); len(all) != 90 || len(slices.Compact(all)) != 90 {
		t.Errorf("%d calls are done and %d absent", len(done), len(absent))
	}
	for _, m := range methods() {
		if part, missing := absent[string(m.Name())]; missing == slices.Contains(done, string(m.Name())) || missing && part == "" {
			t.Errorf("%s: absent part %q", m.Name(), part)
		}
	}
	if len(absent) != 6 { // shrinks as parts arrive
		t.Errorf("%d calls are absent", len(absent))
	}
}

// TestWireNumbers pins field numbers that programs on the wire depend on, one of each family.
func TestWireNumbers(t *testing.T) {
	for message, fields := range map[protoreflect.Name]map[protoreflect.Name]protoreflect.FieldNumber{
		"DriveWheelsRequest":      {"left_wheel_mmps": 1, "right_wheel_mmps2": 4},
		"TurnInPlaceRequest":      {"is_absolute": 5, "id_tag": 6, "num_retries": 7},
		"RobotState":              {"accel": 8, "status": 15, "prox_data": 16, "touch_data": 17},
		"Event":                   {"time_stamped_status": 1, "robot_state": 10, "connection_response": 13, "unexpected_movement": 24},
		"BehaviorControlResponse": {"control_granted_response": 1, "reserved_control_lost_event": 4},
		"RobotSettingsConfig":     {"custom_eye_color": 3, "master_volume": 7, "button_wakeword": 10},
		"OnboardingInputRequest":  {"onboarding_skip_onboarding": 7, "onboarding_mark_complete_and_exit": 13},
		"BatteryStateResponse":    {"battery_level": 2, "cube_battery": 7},
	} {
		d := vectorpb.File_vector_proto.Messages().ByName(message)
		for name, number := range fields {
			if f := d.Fields().ByName(name); f == nil || f.Number() != number {
				t.Errorf("%s.%s: want number %d", message, name, number)
			}
		}
	}
	if vectorpb.ActionResult_UNEXPECTED_PITCH_ANGLE != 67108875 || vectorpb.ActionResult_SHOULDNT_DRIVE_ON_CHARGER != 50331684 ||
		len(vectorpb.ActionResult_ActionResultCode_name) != 53 { // VEC-CTL-21
		t.Error("codes of actions")
	}
}

// TestEveryCall walks the 90 calls by gRPC and HTTPS: none but UserAuthentication answers without a good token, and HTTPS says so in text (VEC-AUTH-08,
// part of VEC-AUTH-09); with one, a call whose part is absent says that it is, and every other call answers.
func TestEveryCall(t *testing.T) {
	t.Parallel()
	d := newStudio(t).desk
	d.beside(t)
	conn := d.conn(t)
	_, absent := vectorsdk.Calls()
	for _, m := range methods() {
		name, path := string(m.Name()), vectorsdk.PathOf(string(m.Name()))
		for _, token := range []string{"", "unknown"} {
			if name == "UserAuthentication" {
				break
			}
			if _, code := invoke(t, d, conn, token, m, made(m.Input())); code != codes.Unauthenticated && code != codes.ResourceExhausted {
				t.Errorf("gRPC %s as %q: %v", name, token, code)
			}
		}
		if name == "UserAuthentication" {
			continue
		}
		if got, kind, body := d.post(t, "", path, "{}"); got != http.StatusUnauthorized || !strings.HasPrefix(kind, "text/plain") || body == "" {
			t.Errorf("HTTPS %s without a token: %d %s %q", path, got, kind, body)
		}
		q := valid(name)
		if q == nil {
			q = made(m.Input())
		}
		want, answered := codes.OK, http.StatusOK
		if absent[name] != "" {
			want, answered = codes.Unimplemented, http.StatusNotImplemented
		}
		a, code := invoke(t, d, conn, "all", m, q)
		if code != want {
			t.Errorf("gRPC %s: %v, want %v", name, code, want)
		}
		if want == codes.OK && m.IsStreamingServer() {
			continue // TestStreamsOverHTTPS
		}
		b, err := vectorsdk.Encode(q)
		if err != nil {
			t.Fatal(err)
		}
		got, kind, body := d.post(t, "all", path, string(b))
		if got != answered || kind != "application/json" {
			t.Errorf("HTTPS %s: %d %s %s", path, got, kind, body)
		}
		if want == codes.OK && !volatile(name) {
			same(t, name, a, body)
		}
	}
}

// volatile names the calls whose answer changes between two calls.
func volatile(name string) bool {
	return name == "BatteryState" || name == "CaptureSingleImage" || name == "CreateFixedCustomObject"
}

// same compares an answer of gRPC with the one of HTTPS.
func same(t *testing.T, name string, a proto.Message, body string) {
	t.Helper()
	b := a.ProtoReflect().New().Interface()
	if err := vectorsdk.Parse([]byte(body), b); err != nil || !proto.Equal(a, b) {
		t.Errorf("%s: gRPC answers %v, HTTPS %s (%v)", name, a, body, err)
	}
}

// valid returns a request that makes sense to a call; nil: the empty one does.
func valid(name string) proto.Message {
	const tag = 2000001
	switch name {
	case "ProtocolVersion":
		return &vectorpb.ProtocolVersionRequest{ClientVersion: 5}
	case "AppIntent":
		return &vectorpb.AppIntentRequest{Intent: "nonsense"}
	case "CreateFixedCustomObject":
		return &vectorpb.CreateFixedCustomObjectRequest{Pose: &vectorpb.PoseStruct{X: 500, Q0: 1}, XSizeMm: 10, YSizeMm: 100, ZSizeMm: 100}
	case "DefineCustomObject":
		return &vectorpb.DefineCustomObjectRequest{CustomType: 1, CustomObjectDefinition: &vectorpb.DefineCustomObjectRequest_CustomCube{CustomCube: &vectorpb.CustomCubeDefinition{
			Marker: 1, SizeMm: 44, MarkerWidthMm: 40, MarkerHeightMm: 40}}}
	case "SendOnboardingInput":
		return &vectorpb.OnboardingInputRequest{OneofMessageType: &vectorpb.OnboardingInputRequest_OnboardingChargeInfoRequest{}}
	case "EraseEnrolledFaceByID":
		return &vectorpb.EraseEnrolledFaceByIDRequest{FaceId: 1}
	case "UpdateEnrolledFaceByID":
		return &vectorpb.UpdateEnrolledFaceByIDRequest{FaceId: 1, NewName: "Ann"}
	case "GoToObject":
		return &vectorpb.GoToObjectRequest{ObjectId: 1, IdTag: tag}
	case "DockWithCube":
		return &vectorpb.DockWithCubeRequest{ObjectId: 1, IdTag: tag}
	case "PickupObject":
		return &vectorpb.PickupObjectRequest{ObjectId: 1, IdTag: tag}
	case "PlaceObjectOnGroundHere":
		return &vectorpb.PlaceObjectOnGroundHereRequest{IdTag: tag}
	case "RollObject":
		return &vectorpb.RollObjectRequest{ObjectId: 1, IdTag: tag}
	case "SetPreferredCube":
		return &vectorpb.SetPreferredCubeRequest{FactoryId: cubeAddress}
	case "SetCubeLights":
		four := []uint32{250, 250, 250, 250}
		return &vectorpb.SetCubeLightsRequest{ObjectId: 1, OnColor: []uint32{0xff0000ff, 0xff00ff, 0xffff, 0xffffffff}, OffColor: []uint32{0, 0, 0, 0xff}, OnPeriodMs: four, OffPeriodMs: four,
			TransitionOnPeriodMs: four, TransitionOffPeriodMs: four, Offset: []int32{0, 0, 0, 0}, MakeRelative: vectorpb.SetCubeLightsRequest_OFF}
	case "GoToPose":
		return &vectorpb.GoToPoseRequest{IdTag: tag}
	case "NavMapFeed":
		return &vectorpb.NavMapFeedRequest{Frequency: 2}
	case "DriveStraight":
		return &vectorpb.DriveStraightRequest{IdTag: tag, DistMm: 10}
	case "TurnInPlace":
		return &vectorpb.TurnInPlaceRequest{IdTag: tag}
	case "SetHeadAngle":
		return &vectorpb.SetHeadAngleRequest{IdTag: tag}
	case "SetLiftHeight":
		return &vectorpb.SetLiftHeightRequest{IdTag: tag}
	case "CancelActionByIdTag":
		return &vectorpb.CancelActionByIdTagRequest{IdTag: tag}
	case "SetCameraSettings":
		return &vectorpb.SetCameraSettingsRequest{EnableAutoExposure: true}
	case "DeleteCustomObjects":
		return &vectorpb.DeleteCustomObjectsRequest{Mode: 1}
	case "BehaviorControl", "AssumeBehaviorControl":
		return &vectorpb.BehaviorControlRequest{RequestType: &vectorpb.BehaviorControlRequest_ControlRequest{ControlRequest: &vectorpb.ControlRequest{}}}
	}
	return nil
}

// TestWithoutControl: a call that needs control answers without it as documented, by gRPC and HTTPS, and moves nothing (part of VEC-CTL-07).
func TestWithoutControl(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const forbidden, none = `{"status":{"code":100}}`, `{"status":{"code":1},"result":{"code":33554433}}`
	for path, want := range map[string]string{
		"drive_wheels": forbidden, "move_head": forbidden, "move_lift": forbidden, "stop_all_motors": forbidden, "cancel_behavior": forbidden,
		"cancel_action_by_id_tag": forbidden, "enable_face_detection": forbidden, "enable_marker_detection": forbidden, "enable_motion_detection": forbidden,
		"enable_mirror_mode": forbidden, "capture_single_image": `{"status":{"code":100},"frame_time_stamp":0,"image_id":0,"image_encoding":0,"data":""}`, "drive_straight": none, "turn_in_place": none, "set_head_angle": none, "set_lift_height": none, "drive_off_charger": `{"status":{"code":1},"result":2}`,
		"drive_on_charger": `{"status":{"code":1},"result":2}`, "look_around_in_place": `{"status":{"code":1},"result":2}`, "go_to_pose": none,
		"disconnect_cube": forbidden, "flash_cube_lights": forbidden, "connect_cube": `{"status":{"code":100},"success":false,"object_id":0,"factory_id":""}`,
		"go_to_object": none, "dock_with_cube": none,
	} {
		status, _, body := d.post(t, "all", "/v1/"+path, `{"id_tag":2000001,"left_wheel_mmps":50,"speed_rad_per_sec":1,"enable":true}`)
		if status != http.StatusOK || !sameJSON(body, want) {
			t.Errorf("%s: %d %s, want %s", path, status, body, want)
		}
	}
	if n := len(d.motions()); n != 0 {
		t.Errorf("%d orders reached the robot", n)
	}
	if status, _, body := d.post(t, "look", "/v1/drive_wheels", "{}"); status != http.StatusForbidden || !strings.Contains(body, `"code":7`) {
		t.Errorf("a token that may only look: %d %s", status, body)
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// TestGoldenJSON: answers have the original's names, enums as numbers, and fields with their default values; requests may have names of enums and fields
// that are unknown (VEC-TRN-03).
func TestGoldenJSON(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, tc := range []struct{ path, request, want string }{
		{"protocol_version", `{"client_version":"5","min_host_version":0,"later":{"x":1}}`, `{"result":1,"host_version":"5"}`},
		{"protocol_version", `{"min_host_version":6}`, `{"result":0,"host_version":"5"}`}, // VEC-EVT-08
		{"protocol_version", `{"client_version":-1}`, `{"result":0,"host_version":"5"}`},
		{"version_state", ``, `{"status":{"code":3},"os_version":"2.1.0.7","engine_build_id":"kennel"}`}, // VEC-EVT-10
		{"sdk_initialization", `{"sdk_module_version":"0.8","python_version":"3.12"}`, `{"status":{"code":3}}`},
		{"get_latest_attention_transfer", `{}`, `{"status":{"code":3},"latest_attention_transfer":null}`}, // part of VEC-ATT-01
		{"list_animations", ``, `{"status":{"code":3},"animation_names":[]}`},                             // VEC-ANI-01
		{"list_animation_triggers", ``, `{"status":{"code":3},"animation_trigger_names":[]}`},
		{"delete_custom_objects", `{"mode":"DELETION_MASK_ARCHETYPES"}`, `{"status":{"code":3}}`},                                                                       // part of VEC-ACC-12
		{"user_authentication", `{"user_session_id":"c2Vzc2lvbg==","client_name":"bXkgcHJvZ3JhbQ=="}`, `{"status":{"code":1},"code":1,"client_token_guid":"dG9rZW4="}`}, // VEC-AUTH-10
		{"user_authentication", `{"user_session_id":"c3RvbGVu","client_name":""}`, `{"status":{"code":1},"code":0,"client_token_guid":""}`},
	} {
		token := "all"
		if tc.path == "user_authentication" {
			token = "" // VEC-AUTH-08
		}
		if status, _, body := d.post(t, token, "/v1/"+tc.path, tc.request); status != http.StatusOK || !sameJSON(body, tc.want) {
			t.Errorf("%s %s: %d %s, want %s", tc.path, tc.request, status, body, tc.want)
		}
	}
	for path, request := range map[string]string{"delete_custom_objects": `{}`, "drive_straight": `{"id_tag":7}`, "cancel_action_by_id_tag": `{`, "protocol_version": `{"client_version":"x"}`} {
		if path == "drive_straight" || path == "delete_custom_objects" || strings.HasPrefix(request, "{") {
			if status, _, body := d.post(t, "all", "/v1/"+path, request); status != http.StatusBadRequest || !strings.Contains(body, `"code":3`) {
				t.Errorf("%s %s: %d %s", path, request, status, body)
			}
		}
	}
	d.body.Measure("battery.voltage", 3.9)
	_, _, body := d.post(t, "all", "/v1/battery_state", "{}")
	var b map[string]any
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(b)); !slices.Equal(got, []string{"battery_level", "battery_volts", "cube_battery", "is_charging", "is_on_charger_platform", "status", "suggested_charger_sec"}) {
		t.Errorf("battery_state has %v", got)
	}
}

// FuzzRequest: no request in JSON breaks the parser; what it takes it writes and takes again.
func FuzzRequest(f *testing.F) {
	all := methods()
	for i, s := range []string{`{"left_wheel_mmps":1e9}`, `{"white_list":{"list":["robot_state"]}}`, `{"settings":{"eye_color":"TIP_OVER_TEAL","x":[]}}`, `{"pose":{"q0":"NaN"}}`, `[`} {
		f.Add(i*17, []byte(s))
	}
	for i, m := range all { // every request once, in every run of the tests
		q := valid(string(m.Name()))
		if q == nil {
			q = made(m.Input())
		}
		b, err := vectorsdk.Encode(q)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, b)
	}
	f.Fuzz(func(t *testing.T, which int, b []byte) {
		m := all[(which%len(all)+len(all))%len(all)]
		q := made(m.Input())
		if vectorsdk.Parse(b, q) != nil {
			return
		}
		out, err := vectorsdk.Encode(q)
		if err != nil {
			return // text that is not UTF-8
		}
		again := made(m.Input())
		if err := vectorsdk.Parse(out, again); err != nil {
			t.Errorf("%s: %s of %q: %v", m.Name(), out, b, err)
		}
	})
}

// TestDocumented: docs/vector-sdk.md names each call in the table where it belongs.
func TestDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/vector-sdk.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(b), "\n## Calls that work\n")
	works, not, ok := strings.Cut(tables, "\n## Calls that do not work yet\n")
	if !ok {
		t.Fatal("the page lacks its two tables")
	}
	published := func(table string) (names []string) {
		for _, m := range regexp.MustCompile("`([A-Z]\\w+)`").FindAllStringSubmatch(table, -1) {
			names = append(names, m[1])
		}
		slices.Sort(names)
		return names
	}
	done, absent := vectorsdk.Calls()
	if got := published(works); !slices.Equal(got, done) {
		t.Errorf("calls that work: %v, want %v", got, done)
	}
	if got, want := published(not), slices.Sorted(maps.Keys(absent)); !slices.Equal(got, want) {
		t.Errorf("calls that do not work: %v, want %v", got, want)
	}
}
