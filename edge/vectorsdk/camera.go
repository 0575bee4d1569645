package vectorsdk

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"kennel/edge/core"
	"kennel/edge/gateway"
	"kennel/edge/sight"
	"kennel/infra/api/vectorpb"
)

// The usual picture in pixels (part of VEC-IMG-02); one in high resolution has twice as many each way.
const imageWidth, imageHeight = 640, 360

// Sizes of the camera's pictures, as its slot has them, and how many a second a feed gets.
const (
	large  = 0
	usual  = 1
	feedHz = 15
)

// maxSwitches is how many connections may have said whether they want a feed; of more, those without an open feed are forgotten.
const maxSwitches = 64

// eye is the camera for these programs. A feed that opens switches its pictures on, as the original does. Each connection has a switch of its own, so that no
// program stops the pictures of another.
type eye struct {
	last atomic.Uint32 // when the newest picture was taken, in ms of the robot's clock

	mu       sync.Mutex
	switches map[string]*imageSwitch // by the connection

	size   sync.Mutex // held while robotd answers
	large  int        // how many want the camera to take large pictures
	before float64    // the camera's resolution before the first of them
}

// imageSwitch says whether a connection gets pictures. It is not changed.
type imageSwitch struct {
	on, high bool
	feeds    int // that are open
}

// switchOf returns the switch of a connection.
func (x *eye) switchOf(key string) imageSwitch {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.switches[key]; s != nil {
		return *s
	}
	return imageSwitch{}
}

// set changes the switch of a connection.
func (x *eye) set(key string, change func(*imageSwitch)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.switches[key]
	if s == nil {
		for k, old := range x.switches {
			if len(x.switches) >= maxSwitches && old.feeds == 0 {
				delete(x.switches, k)
			}
		}
		s = &imageSwitch{}
		x.switches[key] = s
	}
	if change(s); *s == (imageSwitch{}) {
		delete(x.switches, key)
	}
}

// enlarge lets the camera take large pictures until end is called. Others get them at their usual size.
func (f *Facade) enlarge(ctx context.Context) (end func(), err error) {
	x := &f.eye
	x.size.Lock()
	defer x.size.Unlock()
	if x.large == 0 {
		x.before = usual
		if now, err := f.numbers(ctx, "camera.resolution"); err == nil && !math.IsNaN(now[0]) {
			x.before = now[0]
		}
		if err := f.adjust(ctx, core.Set("camera.resolution", large)); err != nil {
			return nil, err
		}
	}
	x.large++
	return func() {
		x.size.Lock()
		defer x.size.Unlock()
		if x.large--; x.large == 0 && x.before != large {
			_ = f.adjust(context.WithoutCancel(ctx), core.Set("camera.resolution", x.before)) // a robotd that is gone begins with the usual size
		}
	}, nil
}

// adjust gives an order for the settings of the camera, which no claim is for.
func (f *Facade) adjust(ctx context.Context, o core.Order) error {
	_, err := f.cfg.Gateway.Core().Do(ctx, o)
	return err
}

// numbers returns what slots have now; NaN: it is not known. The error is Unimplemented if the body lacks one.
func (f *Facade) numbers(ctx context.Context, names ...string) ([]float64, error) {
	values, err := f.cfg.Gateway.Core().Read(ctx, names...)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(values))
	for i := range values {
		if n, ok := values[i].Number(); ok {
			out[i] = n
		} else {
			out[i] = math.NaN()
		}
	}
	return out, nil
}

// hasCamera returns an error for a body without one.
func (f *Facade) hasCamera(ctx context.Context, call string) error {
	if slots, err := f.cfg.Gateway.Core().Slots(ctx, "camera.xfov"); err != nil || len(slots) != 1 {
		return errAbsent(call, "a camera")
	}
	return nil
}

// picture returns a picture as bytes, and notes when it was taken. A large one is halved unless high.
func (f *Facade) picture(p gateway.Picture, high bool) (at, id uint32, data []byte, err error) {
	frame := p.Frame()
	at, id = uint32(frame.At.Milliseconds()), uint32(frame.Seq)
	f.eye.last.Store(at)
	data, err = p.JPEG(!high && frame.Width > imageWidth)
	return at, id, data, err
}

// cameraFeed sends pictures until the client ends it (VEC-IMG-01), as far as the connection's switch is on. It ends with Unavailable when the robot has none for
// three seconds.
func (f *Facade) cameraFeed(ctx context.Context, c client, receive func() (proto.Message, error), send func(proto.Message) error) error {
	if _, err := receive(); err != nil {
		return err
	}
	if err := f.hasCamera(ctx, "CameraFeed"); err != nil {
		return err
	}
	f.eye.set(c.key, func(s *imageSwitch) { s.feeds, s.on = s.feeds+1, true })
	defer f.eye.set(c.key, func(s *imageSwitch) {
		if s.feeds--; s.feeds == 0 {
			*s = imageSwitch{}
		}
	})
	view := f.cfg.Gateway.View(c.Caller, feedHz)
	defer view.End()
	normal := func() {}
	defer func() { normal() }()
	wide := false
	for {
		p, err := view.Next(ctx)
		if err != nil {
			return err
		}
		s := f.eye.switchOf(c.key)
		if s.high != wide {
			if normal(); s.high {
				if normal, err = f.enlarge(ctx); err != nil {
					normal = func() {}
					return err
				}
			} else {
				normal = func() {}
			}
			wide = s.high
		}
		if !s.on {
			continue
		}
		a := &vectorpb.CameraFeedResponse{ImageEncoding: vectorpb.ImageChunk_JPEG_COLOR}
		if a.FrameTimeStamp, a.ImageId, a.Data, err = f.picture(p, s.high); err != nil {
			return err
		}
		if err := send(a); err != nil {
			return err
		}
	}
}

// captureSingleImage returns a picture whose exposure began after the call, of 640 by 360 pixels or in high resolution of 1280 by 720 (VEC-IMG-02).
func (f *Facade) captureSingleImage(ctx context.Context, c client, q *vectorpb.CaptureSingleImageRequest) (*vectorpb.CaptureSingleImageResponse, error) {
	if f.control.of(c) == nil {
		return &vectorpb.CaptureSingleImageResponse{Status: forbidden()}, nil
	}
	if err := f.hasCamera(ctx, "CaptureSingleImage"); err != nil {
		return nil, err
	}
	if q.EnableHighResolution {
		normal, err := f.enlarge(ctx)
		if err != nil {
			return nil, err
		}
		defer normal()
	}
	p, err := f.cfg.Gateway.Picture(ctx, c.Caller, func(x *sight.Frame) bool { return !q.EnableHighResolution || x.Width > imageWidth })
	if err != nil {
		return nil, err
	}
	a := &vectorpb.CaptureSingleImageResponse{Status: heard(), ImageEncoding: vectorpb.ImageChunk_JPEG_COLOR}
	a.FrameTimeStamp, a.ImageId, a.Data, err = f.picture(p, q.EnableHighResolution)
	return a, err
}

// enableImageStreaming switches the pictures of the connection's feeds, and their size (VEC-IMG-03).
func (f *Facade) enableImageStreaming(ctx context.Context, c client, q *vectorpb.EnableImageStreamingRequest) (*vectorpb.EnableImageStreamingResponse, error) {
	if err := f.hasCamera(ctx, "EnableImageStreaming"); err != nil {
		return nil, err
	}
	f.eye.set(c.key, func(s *imageSwitch) { s.on, s.high = q.Enable, q.Enable && q.EnableHighResolution })
	return &vectorpb.EnableImageStreamingResponse{Status: fine()}, nil
}

func (f *Facade) isImageStreamingEnabled(_ context.Context, c client, _ *vectorpb.IsImageStreamingEnabledRequest) (*vectorpb.IsImageStreamingEnabledResponse, error) {
	return &vectorpb.IsImageStreamingEnabledResponse{IsImageStreamingEnabled: f.eye.switchOf(c.key).on}, nil
}

// limits are those of the camera's settings.
type limits struct {
	shortest, longest uint32 // ms; an exposure of 0 would be the automatic one
	least, most       float64
}

// cameraLimits returns the limits that the slots of the camera state.
func (f *Facade) cameraLimits(ctx context.Context, call string) (l limits, err error) {
	slots, err := f.cfg.Gateway.Core().Slots(ctx, "camera.exposure", "camera.gain")
	if err != nil || len(slots) != 2 {
		return l, errAbsent(call, "a camera with settings")
	}
	bound := func(p *float64) float64 {
		if p == nil || math.IsInf(*p, 0) {
			return 0
		}
		return *p
	}
	ms := func(s float64) uint32 { return uint32(math.Floor(s*1000 + 1e-9)) }
	return limits{max(ms(bound(slots[0].Slot.Min)), 1), ms(bound(slots[0].Slot.Max)), bound(slots[1].Slot.Min), bound(slots[1].Slot.Max)}, nil
}

// setCameraSettings sets how pictures are taken, for all programs (part of VEC-IMG-08). Exposure and gain of an automatic camera do not matter.
func (f *Facade) setCameraSettings(ctx context.Context, _ client, q *vectorpb.SetCameraSettingsRequest) (*vectorpb.SetCameraSettingsResponse, error) {
	l, err := f.cameraLimits(ctx, "SetCameraSettings")
	if err != nil {
		return nil, err
	}
	o := core.Set("camera.exposure", 0)
	switch gain := float64(q.Gain); {
	case q.EnableAutoExposure:
	case q.ExposureMs < l.shortest || q.ExposureMs > l.longest:
		return nil, errInvalid("exposure_ms: %d, want %d to %d", q.ExposureMs, l.shortest, l.longest)
	case gain < l.least-tolerance || gain > l.most+tolerance:
		return nil, errInvalid("gain: %v, want %v to %v", q.Gain, l.least, l.most)
	default:
		o = core.Set("camera.exposure", float64(q.ExposureMs)/1000).And(core.Set("camera.gain", min(max(gain, l.least), l.most)))
	}
	if err := f.adjust(ctx, o); err != nil {
		return nil, err
	}
	return &vectorpb.SetCameraSettingsResponse{Status: fine(), StatusMessage: "camera settings changed"}, nil
}

// tolerance is of a number that was a float32 on the wire.
const tolerance = 1e-6

// cameraConfig returns the geometry of the camera by its angles of view, which are in degrees on the wire, and the limits of its settings (part of VEC-IMG-07).
func (f *Facade) cameraConfig(ctx context.Context, _ client, _ *vectorpb.CameraConfigRequest) (*vectorpb.CameraConfigResponse, error) {
	if err := f.hasCamera(ctx, "GetCameraConfig"); err != nil {
		return nil, err
	}
	fov, err := f.numbers(ctx, "camera.xfov", "camera.yfov")
	if err != nil {
		return nil, err
	}
	a := &vectorpb.CameraConfigResponse{FovX: degrees(fov[0]), FovY: degrees(fov[1]), CenterX: imageWidth / 2, CenterY: imageHeight / 2,
		FocalLengthX: focal(imageWidth, fov[0]), FocalLengthY: focal(imageHeight, fov[1])}
	if l, err := f.cameraLimits(ctx, "GetCameraConfig"); err == nil { // without settings there are no limits
		a.MinCameraExposureTimeMs, a.MaxCameraExposureTimeMs, a.MinCameraGain, a.MaxCameraGain = l.shortest, l.longest, float32(l.least), float32(l.most)
	}
	return a, nil
}

func degrees(rad float64) float32 {
	if math.IsNaN(rad) {
		return 0
	}
	return float32(rad * 180 / math.Pi)
}

// focal returns the focal length in pixels of a picture that is so wide and sees such an angle; 0 without an angle.
func focal(pixels, fov float64) float32 {
	if !(fov > 0 && fov < math.Pi) {
		return 0
	}
	return float32(pixels / 2 / math.Tan(fov/2))
}

// settings are those of the camera; known is false before the first measurement, and for a body without them.
type settings struct {
	exposure, gain float64
	known          bool
}

// settingsOf returns the camera's settings among the measured values; exposure 0 is automatic.
func settingsOf(m *measured) (s settings) {
	if m == nil || !m.has[exposure] {
		return s
	}
	s = settings{m.values[exposure], 1, true}
	if m.known[gain] {
		s.gain = m.values[gain]
	}
	return s
}

// event tells that the settings changed. Those of an automatic camera have no numbers.
func (s settings) event() *vectorpb.Event {
	u := &vectorpb.CameraSettingsUpdate{AutoExposureEnabled: s.exposure == 0}
	if s.exposure > 0 {
		u.ExposureMs, u.Gain = uint32(math.Round(s.exposure*1000)), float32(s.gain)
	}
	return &vectorpb.Event{EventType: &vectorpb.Event_CameraSettingsUpdate{CameraSettingsUpdate: u}}
}
