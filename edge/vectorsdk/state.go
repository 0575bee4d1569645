package vectorsdk

import (
	"context"
	"strings"

	"kennel/edge/body"
	"kennel/edge/core/corelink"
	"kennel/infra/api/vectorpb"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// The protocol's version that this robot speaks, and the oldest client that it talks to (VEC-AUTH-13).
const (
	hostVersion   = 5
	minimumClient = 0
)

// protocolVersion compares versions (VEC-EVT-08).
func (f *Facade) protocolVersion(_ context.Context, _ client, q *vectorpb.ProtocolVersionRequest) (*vectorpb.ProtocolVersionResponse, error) {
	a := &vectorpb.ProtocolVersionResponse{HostVersion: hostVersion}
	if q.ClientVersion >= minimumClient && q.MinHostVersion <= hostVersion {
		a.Result = vectorpb.ProtocolVersionResponse_SUCCESS
	}
	return a, nil
}

// sdkInitialization records what program calls (part of VEC-EVT-09).
func (f *Facade) sdkInitialization(ctx context.Context, c client, q *vectorpb.SDKInitializationRequest) (*vectorpb.SDKInitializationResponse, error) {
	f.cfg.Log.InfoContext(ctx, "SDK program connected", "client", c.Name(), "sdk", cut(q.SdkModuleVersion, maxText), "python", cut(q.PythonVersion, maxText),
		"implementation", cut(q.PythonImplementation, maxText), "os", cut(q.OsVersion, maxText), "cpu", cut(q.CpuVersion, maxText))
	return &vectorpb.SDKInitializationResponse{Status: fine()}, nil
}

// cut returns at most n characters of a text.
func cut(s string, n int) string {
	r := []rune(strings.ToValidUTF8(s, "?"))
	return string(r[:min(n, len(r))])
}

// userAuthentication exchanges the session of an account for a client token (VEC-AUTH-10). UNAUTHORIZED: the cloud does not know the session, or this
// robot takes no session; its owner makes a token for the program then. The error is for a cloud that does not answer (VEC-AUTH-11).
func (f *Facade) userAuthentication(ctx context.Context, _ client, q *vectorpb.UserAuthenticationRequest) (*vectorpb.UserAuthenticationResponse, error) {
	denied := &vectorpb.UserAuthenticationResponse{Status: heard(), Code: vectorpb.UserAuthenticationResponse_UNAUTHORIZED}
	if f.cfg.Exchange == nil || len(q.UserSessionId) == 0 {
		return denied, nil
	}
	token, err := f.cfg.Exchange(ctx, logging.Secret(q.UserSessionId), cut(string(q.ClientName), maxName), "SDK")
	if err != nil {
		if errs.KindOf(err) == errs.Unavailable || errs.KindOf(err) == errs.Internal {
			return nil, err
		}
		return denied, nil
	}
	return &vectorpb.UserAuthenticationResponse{Status: heard(), Code: vectorpb.UserAuthenticationResponse_AUTHORIZED, ClientTokenGuid: []byte(token.Reveal())}, nil
}

func (f *Facade) versionState(context.Context, client, *vectorpb.VersionStateRequest) (*vectorpb.VersionStateResponse, error) {
	return &vectorpb.VersionStateResponse{Status: fine(), OsVersion: f.cfg.OS, EngineBuildId: f.cfg.Build}, nil
}

// motion returns robotd's newest report with the robot's current pose, or nil if robotd is not connected.
func (f *Facade) motion(ctx context.Context) *corelink.Motion {
	m := measured{}
	if p, ok := f.cfg.Gateway.Core().Place(ctx); ok {
		m.place = &p
	}
	return m.motion(f.cfg.Gateway.Reports().Motion)
}

// lifted reports whether the robot does not rest on its treads, as far as it knows.
func (f *Facade) lifted() bool {
	m := f.cfg.Gateway.Reports().Motion
	return m != nil && m.Posture != "" && m.Posture != unsettled && m.Posture != onTreads
}

// Postures of robotd's reports (edge/sense.OffTreads): the robot rests on its treads, and it is not known how it rests.
const (
	onTreads  = "OnTreads"
	unsettled = "Unsettled"
)

func (f *Facade) onCharger() bool {
	s := f.cfg.Gateway.Reports().State
	return s != nil && body.Power(s.Power).Has(body.OnCharger)
}

// battery returns what robotd reported last, at most a quarter of a second ago (VEC-BAT-01). Its levels have the published numbers (edge/power.Level).
// Without a cube there is no battery of one.
func (f *Facade) battery(context.Context, client, *vectorpb.BatteryStateRequest) (*vectorpb.BatteryStateResponse, error) {
	now := f.cfg.Gateway.Reports()
	if now.State == nil {
		return nil, errLost
	}
	p := body.Power(now.State.Power)
	a := &vectorpb.BatteryStateResponse{Status: heard(), BatteryLevel: vectorpb.BatteryLevel(now.State.BatteryLevel), BatteryVolts: float32(now.State.BatteryVolts),
		IsCharging: p.Has(body.Charging), IsOnChargerPlatform: p.Has(body.OnCharger),
		CubeBattery: f.cubeCharge()}
	if now.Power != nil {
		a.SuggestedChargerSec = float32(now.Power.SuggestedSec)
	}
	return a, nil
}

// off answers a request to switch something that this robot does not have: it is off.
func off(call, part string, on bool) (*vectorpb.ResponseStatus, error) {
	if on {
		return nil, errAbsent(call, part)
	}
	return fine(), nil
}

func (f *Facade) enableFaceDetection(_ context.Context, c client, q *vectorpb.EnableFaceDetectionRequest) (*vectorpb.EnableFaceDetectionResponse, error) {
	if f.control.of(c) == nil {
		return &vectorpb.EnableFaceDetectionResponse{Status: forbidden()}, nil
	}
	s, err := off("EnableFaceDetection", "an eye for faces", q.Enable)
	return &vectorpb.EnableFaceDetectionResponse{Status: s}, err
}

// enableMarkerDetection lets the robot look for objects while the program has control, or until it switches that off; others keep theirs (VEC-IMG-05).
func (f *Facade) enableMarkerDetection(ctx context.Context, c client, q *vectorpb.EnableMarkerDetectionRequest) (*vectorpb.EnableMarkerDetectionResponse, error) {
	h := f.control.of(c)
	if h == nil {
		return &vectorpb.EnableMarkerDetectionResponse{Status: forbidden()}, nil
	}
	if q.Enable {
		if err := f.hasCamera(ctx, "EnableMarkerDetection"); err != nil {
			return nil, err
		}
	}
	h.seek(q.Enable)
	if h.ended() { // meanwhile: nothing else would end the look
		h.seek(false)
	}
	return &vectorpb.EnableMarkerDetectionResponse{Status: fine()}, nil
}

func (f *Facade) enableMotionDetection(_ context.Context, c client, q *vectorpb.EnableMotionDetectionRequest) (*vectorpb.EnableMotionDetectionResponse, error) {
	if f.control.of(c) == nil {
		return &vectorpb.EnableMotionDetectionResponse{Status: forbidden()}, nil
	}
	s, err := off("EnableMotionDetection", "an eye for motion", q.Enable)
	return &vectorpb.EnableMotionDetectionResponse{Status: s}, err
}

func (f *Facade) enableMirrorMode(_ context.Context, c client, q *vectorpb.EnableMirrorModeRequest) (*vectorpb.EnableMirrorModeResponse, error) {
	if f.control.of(c) == nil {
		return &vectorpb.EnableMirrorModeResponse{Status: forbidden()}, nil
	}
	s, err := off("EnableMirrorMode", "a mirror on its display", q.Enable)
	return &vectorpb.EnableMirrorModeResponse{Status: s}, err
}

// latestAttentionTransfer is empty: the feature is off, as in all releases of the original (part of VEC-ATT-01).
func (f *Facade) latestAttentionTransfer(context.Context, client, *vectorpb.LatestAttentionTransferRequest) (*vectorpb.LatestAttentionTransferResponse, error) {
	return &vectorpb.LatestAttentionTransferResponse{Status: fine()}, nil
}
