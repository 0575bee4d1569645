package vectorsdk_test

import (
	"bytes"
	"context"
	"image/jpeg"
	"math"
	"net/http"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/edge/robot"
	"kennel/edge/sight/sighttest"
	"kennel/infra/api/vectorpb"
	"kennel/infra/testwait"
)

// studio is a desk whose robot has a camera, whose pictures are as large as its slot says.
type studio struct {
	*desk
	*sighttest.Camera
}

func newStudio(t testing.TB) *studio {
	t.Helper()
	d := newDesk(t, robot.Part{Path: "body.head.camera", Is: []string{"VideoIn"}, Has: []string{"exposure", "gain", "resolution"},
		Ranges: map[string]robot.Range{"exposure": {Max: 0.066}, "gain": {Min: 0.1, Max: 4}, "resolution": {Max: 1}},
		Fixed:  map[string]robot.Value{"xfov": robot.F(math.Pi / 2), "yfov": robot.F(50 * math.Pi / 180)}})
	return &studio{d, sighttest.Serve(t, d.dir, func() (w, h int) {
		if n, ok := d.slot(t, "camera.resolution"); ok && n == 0 {
			return 1280, 720
		}
		return 640, 360
	})}
}

// slot returns what a slot of the body has.
func (d *desk) slot(t testing.TB, name string) (float64, bool) {
	target, err := d.body.Model().Tree.Lookup(name)
	if err != nil {
		t.Error(err)
		return 0, false
	}
	s := d.body.Board().Sample(target.Refs[0].ID)
	return s.Value, s.Known()
}

// shows fails unless data is a JPEG picture of so many pixels.
func shows(t *testing.T, data []byte, w, h int) {
	t.Helper()
	if c, err := jpeg.DecodeConfig(bytes.NewReader(data)); err != nil || c.Width != w || c.Height != h {
		t.Errorf("a picture of %d by %d pixels, want %d by %d: %v", c.Width, c.Height, w, h, err)
	}
}

func (d *desk) feed(t *testing.T, c vectorpb.ExternalInterfaceClient, token string) grpc.ServerStreamingClient[vectorpb.CameraFeedResponse] {
	t.Helper()
	ctx, cancel := context.WithCancel(as(t, token))
	t.Cleanup(cancel)
	s, err := c.CameraFeed(ctx, &vectorpb.CameraFeedRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func next(t *testing.T, s grpc.ServerStreamingClient[vectorpb.CameraFeedResponse]) *vectorpb.CameraFeedResponse {
	t.Helper()
	p, err := s.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCameraFeed: a feed has pictures as JPEG in colour that follow each other (VEC-IMG-01, VEC-IMG-04); a connection switches its own feed off and on, and
// its size, and the feed of another connection is as before (VEC-IMG-03). The camera takes none once the feeds have ended.
func TestCameraFeed(t *testing.T) {
	t.Parallel()
	s := newStudio(t)
	mine, other := s.dial(t), s.dial(t)
	enabled := func(want bool) {
		t.Helper()
		a, err := mine.IsImageStreamingEnabled(as(t, "all"), &vectorpb.IsImageStreamingEnabledRequest{})
		if err != nil || a.IsImageStreamingEnabled != want {
			t.Errorf("streaming: %v, %v, want %v", a, err, want)
		}
	}
	set := func(on, high bool) {
		t.Helper()
		a, err := mine.EnableImageStreaming(as(t, "all"), &vectorpb.EnableImageStreamingRequest{Enable: on, EnableHighResolution: high})
		if err != nil || a.Status.Code != vectorpb.ResponseStatus_OK {
			t.Errorf("%v, %v", a, err)
		}
	}
	enabled(false)
	ctx, cancel := context.WithCancel(as(t, "all"))
	defer cancel()
	a, err := mine.CameraFeed(ctx, &vectorpb.CameraFeedRequest{})
	if err != nil {
		t.Fatal(err)
	}
	first := next(t, a)
	if first.ImageEncoding != vectorpb.ImageChunk_JPEG_COLOR || first.FrameTimeStamp == 0 {
		t.Errorf("%v", first)
	}
	shows(t, first.Data, 640, 360)
	if second := next(t, a); second.ImageId <= first.ImageId || second.FrameTimeStamp < first.FrameTimeStamp {
		t.Errorf("picture %d at %d after %d at %d", second.ImageId, second.FrameTimeStamp, first.ImageId, first.FrameTimeStamp)
	}
	enabled(true)
	b := s.feed(t, other, "camera")
	next(t, b)
	set(true, true)
	for n := 0; ; n++ {
		p := next(t, a)
		if c, err := jpeg.DecodeConfig(bytes.NewReader(p.Data)); err == nil && c.Width == 1280 {
			break
		}
		if n == 100 {
			t.Fatal("no large picture")
		}
	}
	for range 3 {
		shows(t, next(t, b).Data, 640, 360) // another program has its own size
	}
	set(false, false)
	enabled(false)
	testwait.Until(t, patience, "the usual size", testwait.Holds(func() bool { n, _ := s.slot(t, "camera.resolution"); return n == 1 }))
	paused := s.Taken.Load()
	for range 3 {
		next(t, b)
	}
	set(true, false)
	for { // what was on its way when the feed was switched off comes first
		if p := next(t, a); p.ImageId > uint32(paused) {
			break
		}
	}
	l := s.listen(t, &vectorpb.EventRequest{})
	l.primary()
	l.state(func(st *vectorpb.RobotState) bool { return st.LastImageTimeStamp >= first.FrameTimeStamp })
	cancel()
	if err := b.CloseSend(); err != nil {
		t.Error(err)
	}
	testwait.Until(t, patience, "the end of the feed", testwait.Holds(func() bool {
		a, err := mine.IsImageStreamingEnabled(as(t, "all"), &vectorpb.IsImageStreamingEnabledRequest{})
		return err == nil && !a.IsImageStreamingEnabled
	}))
}

// TestCameraOff: a feed without pictures ends with the reason, and so does a single picture; a token without the right has neither.
func TestCameraOff(t *testing.T) {
	t.Parallel()
	s := newStudio(t)
	p := s.granted(t, "all")
	f := s.feed(t, p, "all")
	next(t, f)
	s.SetOff("the robot sleeps")
	if _, err := p.CaptureSingleImage(p.ctx, &vectorpb.CaptureSingleImageRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("single: %v", err)
	}
	var err error
	for err == nil {
		_, err = f.Recv()
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("feed: %v", err)
	}
	if _, err := s.feed(t, s.dial(t), "look").Recv(); status.Code(err) != codes.PermissionDenied {
		t.Errorf("without the right: %v", err)
	}
	testwait.Until(t, patience, "the end of looking", testwait.Holds(func() bool { return !s.Looking.Load() }))
	none := newDesk(t)
	if _, err := none.feed(t, none.dial(t), "all").Recv(); status.Code(err) != codes.Unimplemented {
		t.Errorf("a body without a camera: %v", err)
	}
}

// TestCaptureSingleImage: one picture of 640 by 360 pixels, or in high resolution of 1280 by 720 (VEC-IMG-02), after which the camera has its size of before.
func TestCaptureSingleImage(t *testing.T) {
	t.Parallel()
	s := newStudio(t)
	p := s.granted(t, "all")
	for high, want := range map[bool][2]int{false: {640, 360}, true: {1280, 720}} {
		taken := s.Taken.Load()
		a, err := p.CaptureSingleImage(p.ctx, &vectorpb.CaptureSingleImageRequest{EnableHighResolution: high})
		if err != nil || a.Status.Code != vectorpb.ResponseStatus_RESPONSE_RECEIVED || a.ImageEncoding != vectorpb.ImageChunk_JPEG_COLOR || a.ImageId <= uint32(taken) || a.FrameTimeStamp == 0 {
			t.Fatalf("high %v: %v, %v", high, a.GetStatus(), err)
		}
		shows(t, a.Data, want[0], want[1])
	}
	if n, _ := s.slot(t, "camera.resolution"); n != 1 {
		t.Errorf("resolution %v", n)
	}
	s.body.Measure("camera.resolution", 0) // as another program wants it
	a, err := p.CaptureSingleImage(p.ctx, &vectorpb.CaptureSingleImageRequest{})
	if err != nil {
		t.Fatal(err)
	}
	shows(t, a.Data, 640, 360)
	if n, _ := s.slot(t, "camera.resolution"); n != 0 {
		t.Errorf("resolution %v", n)
	}
}

// TestCameraSettings: the limits are those of the camera (part of VEC-IMG-07); settings within them reach it by both paths, others are refused, and event
// streams hear of them, also of those that another program made (part of VEC-IMG-08).
func TestCameraSettings(t *testing.T) {
	t.Parallel()
	s := newStudio(t)
	c := s.dial(t)
	l := s.listen(t, &vectorpb.EventRequest{})
	l.primary()
	l.state(any1)
	conf, err := c.GetCameraConfig(as(t, "look"), &vectorpb.CameraConfigRequest{})
	if err != nil || conf.MinCameraExposureTimeMs != 1 || conf.MaxCameraExposureTimeMs != 66 || conf.MinCameraGain != 0.1 || conf.MaxCameraGain != 4 ||
		math.Abs(float64(conf.FovX)-90) > 1e-4 || math.Abs(float64(conf.FovY)-50) > 1e-4 || math.Abs(float64(conf.FocalLengthX)-320) > 0.01 {
		t.Errorf("%v, %v", conf, err)
	}
	update := func(gain float32, ms uint32, auto bool) {
		t.Helper()
		u := l.await(func(e *vectorpb.Event) bool { return e.GetCameraSettingsUpdate() != nil }).GetCameraSettingsUpdate()
		if u.Gain != gain || u.ExposureMs != ms || u.AutoExposureEnabled != auto {
			t.Errorf("event %v", u)
		}
	}
	for _, path := range []string{"set_camera_settings", "set_camera_config"} {
		if got, _, body := s.post(t, "camera", "/v1/"+path, `{"gain":2.5,"exposure_ms":20}`); got != http.StatusOK || !sameJSON(body, `{"status":{"code":3},"status_message":"camera settings changed"}`) {
			t.Errorf("%s: %d %s", path, got, body)
		}
	}
	update(2.5, 20, false)
	if e, _ := s.slot(t, "camera.exposure"); e != 0.02 {
		t.Errorf("exposure %v s", e)
	}
	for _, q := range []*vectorpb.SetCameraSettingsRequest{{Gain: 1}, {Gain: 1, ExposureMs: 67}, {Gain: 0.05, ExposureMs: 10}, {Gain: 4.1, ExposureMs: 10}} {
		if _, err := c.SetCameraSettings(as(t, "camera"), q); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", q, err)
		}
	}
	if _, err := c.SetCameraSettings(as(t, "camera"), &vectorpb.SetCameraSettingsRequest{Gain: conf.MinCameraGain, ExposureMs: 66}); err != nil {
		t.Error(err)
	}
	update(0.1, 66, false)
	if _, err := c.SetCameraSettings(as(t, "camera"), &vectorpb.SetCameraSettingsRequest{EnableAutoExposure: true}); err != nil {
		t.Error(err)
	}
	update(0, 0, true)
	s.body.Measure("camera.exposure", 0.004)
	update(0.1, 4, false)
}
