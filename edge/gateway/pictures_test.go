package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image/jpeg"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"kennel/edge/robot"
	"kennel/edge/sight/sighttest"
	"kennel/infra/api/robotpb"
	"kennel/infra/testwait"
)

var eye = robot.Part{Path: "body.head.camera", Is: []string{"VideoIn"}, Has: []string{"exposure"}, Fixed: map[string]robot.Value{"xfov": robot.F(1.5), "yfov": robot.F(1)},
	Ranges: map[string]robot.Range{"exposure": {Max: 0.066}}}

// studio is a desk whose robot has a camera.
type studio struct {
	*desk
	*sighttest.Camera
}

// newStudio's camera makes pictures of scale times 64 by 36 pixels.
func newStudio(t *testing.T, scale int, more ...robot.Part) *studio {
	t.Helper()
	d := newDesk(t, append(more, eye)...)
	return &studio{d, sighttest.Serve(t, d.dir, func() (w, h int) { return 64 * scale, 36 * scale })}
}

// TestPicture: a program with the right to the camera gets one picture by each door, in the format that it asks for, with its calibration; the camera takes some
// only meanwhile. What the request gets wrong, and a camera that is off, are refusals.
func TestPicture(t *testing.T) {
	s := newStudio(t, 1)
	r := s.dial(t)
	p, err := r.Image(as("camera"), &robotpb.ImageRequest{Format: "grey8", Part: "camera"})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Data) != 64*36 || p.Format != "grey8" || p.Width != 64 || p.Height != 36 || p.Seq == 0 || p.Data[9] != byte(p.Seq) || p.ExposureS != 0.005 || p.Gain != 2 ||
		p.AtUs <= 0 || !proto.Equal(p.Calibration, &robotpb.Calibration{Fx: 320, Fy: 386, Cx: 32, Cy: 18}) {
		t.Errorf("%v", p)
	}
	if p, err = r.Image(as("camera"), &robotpb.ImageRequest{Format: "rgb"}); err != nil || len(p.Data) != 3*64*36 || p.Data[0] != byte(p.Seq) || p.Data[1] != p.Data[0] {
		t.Errorf("rgb: %d bytes, %v", len(p.GetData()), err)
	}
	code, body := s.post(t, "camera", "image", `{"quality":90}`)
	p = &robotpb.Picture{}
	if err := protojson.Unmarshal([]byte(body), p); err != nil || code != http.StatusOK || p.Format != "jpeg" {
		t.Fatalf("%d %.200s, %v", code, body, err)
	}
	if c, err := jpeg.DecodeConfig(bytes.NewReader(p.Data)); err != nil || c.Width != 64 || c.Height != 36 {
		t.Errorf("%+v, %v", c, err)
	}
	testwait.Until(t, patience, "the end of looking", testwait.Holds(func() bool { return !s.Looking.Load() }))
	for body, want := range map[string]string{`{"format":"bmp"}`: "invalid", `{"quality":101}`: "invalid", `{"part":"robot.body.laser"}`: "not_found"} {
		for _, call := range []string{"image", "images"} {
			if _, answer := s.post(t, "camera", call, body); !strings.Contains(answer, `"code":"`+want+`"`) {
				t.Errorf("%s %s: %s, want %s", call, body, answer, want)
			}
		}
	}
	for _, rate := range []string{"16", "-1", `"NaN"`} {
		if _, answer := s.post(t, "camera", "images", `{"rate_hz":`+rate+`}`); !strings.Contains(answer, `"code":"invalid"`) {
			t.Errorf("images at %s Hz: %.200s", rate, answer)
		}
	}
	s.SetOff("the robot sleeps")
	var trailer metadata.MD
	if _, err := r.Image(as("camera"), &robotpb.ImageRequest{}, grpc.Trailer(&trailer)); status.Code(err) != codes.Unavailable ||
		strings.Join(trailer.Get("kennel-code"), "") != "no_picture" || !strings.Contains(err.Error(), "the robot sleeps") {
		t.Errorf("a camera that is off: %v, %v", err, trailer)
	}
	s.SetOff("")
	full := 0
	for range 40 {
		if _, err := r.Image(as("camera"), &robotpb.ImageRequest{}); status.Code(err) == codes.ResourceExhausted {
			full++
		}
	}
	if full == 0 {
		t.Error("a client has as many single pictures as it wants")
	}
}

// TestPictures: pictures come as often as asked for; a reader that sleeps gets the newest one and the number that it missed, and no other waits for it. Each second
// there is a message, also without pictures. A token that ends ends the stream; the last listener ends the looking.
func TestPictures(t *testing.T) {
	s := newStudio(t, 1)
	r := s.dial(t)
	ctx, cancel := context.WithCancel(as("camera"))
	defer cancel()
	st, err := r.Images(ctx, &robotpb.ImagesRequest{Format: "grey8", RateHz: 10})
	if err != nil {
		t.Fatal(err)
	}
	began, last := time.Now(), uint64(0)
	for n := range 6 {
		p, err := st.Recv()
		if err != nil || p.Seq <= last {
			t.Fatalf("picture %d: %v, %v", n, p, err)
		}
		last = p.Seq
	}
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("6 pictures at 10 a second took %v", took)
	}
	s.SetOff("the battery is low")
	for {
		p, err := st.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if p.Format == "" && p.Reason == "the battery is low" {
			break
		}
	}
	s.SetOff("")
	conn, _, err := websocket.Dial(t.Context(), "wss://"+s.addr+"/v1/images", &websocket.DialOptions{HTTPClient: &http.Client{
		Transport: &http.Transport{TLSClientConfig: s.conf.Clone()}}, HTTPHeader: http.Header{"Authorization": {"Bearer camera"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"format":"jpeg","rate_hz":15}`)); err != nil {
		t.Fatal(err)
	}
	for p := (&robotpb.Picture{}); p.Format == ""; {
		_, b, err := conn.Read(t.Context())
		if err == nil {
			err = protojson.Unmarshal(b, p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Looks.Load(); n != 1 {
		t.Errorf("%d connections to the camera for two who look", n)
	}
	s.forget("camera")
	for err = nil; err == nil; {
		_, err = st.Recv()
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("a token that ended: %v", err)
	}
	_ = conn.CloseNow()
	testwait.Until(t, patience, "the end of looking", testwait.Holds(func() bool { return !s.Looking.Load() }))
	if err == io.EOF {
		t.Error("the stream ended without a reason")
	}
}

// TestUnreadPictures: streams whose clients read nothing take bounded memory, and another client has its pictures meanwhile, and is told what it missed while it
// slept.
func TestUnreadPictures(t *testing.T) {
	s := newStudio(t, 10)
	ctx, cancel := context.WithCancel(as("camera"))
	defer cancel()
	before := memory()
	for range 8 {
		if _, err := s.dial(t).Images(ctx, &robotpb.ImagesRequest{Format: "rgb", RateHz: 15}); err != nil {
			t.Fatal(err)
		}
	}
	r := s.dial(t)
	st, err := r.Images(as("all"), &robotpb.ImagesRequest{Format: "rgb", RateHz: 15})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 15 {
		p, err := st.Recv()
		if err != nil || len(p.Data) != 3*640*360 {
			t.Fatalf("picture %d: %d bytes, %v", n, len(p.GetData()), err)
		}
	}
	time.Sleep(time.Second)
	for missed, n := uint64(0), 0; missed == 0; n++ {
		p, err := st.Recv()
		if err != nil || n > 30 {
			t.Fatalf("after %d pictures: %d missed, %v", n, missed, err)
		}
		missed = p.Missed
	}
	// Each stream may hold the message that it waits to send, encoded, and the newest picture.
	if grown := memory() - before; grown > 64<<20 {
		t.Errorf("%d MB more", grown>>20)
	}
}

// TestPicturesOfNoCore: without robotd there is no picture, and a stream says so each second.
func TestPicturesOfNoCore(t *testing.T) {
	d := newDesk(t, eye) // its robotd serves no pictures
	_, answer := d.post(t, "camera", "image", "{}")
	var p struct{ Code, Message string }
	if err := json.Unmarshal([]byte(answer), &p); err != nil || p.Code != "no_picture" {
		t.Errorf("%s", answer)
	}
	ctx, cancel := context.WithTimeout(as("camera"), patience)
	defer cancel()
	st, err := d.dial(t).Images(ctx, &robotpb.ImagesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		began := time.Now()
		if p, err := st.Recv(); err != nil || p.Format != "" || time.Since(began) > 2*time.Second {
			t.Errorf("%v, %v after %v", p, err, time.Since(began))
		}
	}
}

// TestCameraSettings: the right to the camera is for its settings too, which need no claim; a mixed order needs both rights.
func TestCameraSettings(t *testing.T) {
	d := newDesk(t, eye)
	r := d.dial(t)
	set, both := &robotpb.OrderRequest{Text: "camera.exposure = 0.01"}, &robotpb.OrderRequest{Text: "camera.exposure = 0.01; led[0].r = 1"}
	if _, err := r.Do(as("camera"), set); err != nil {
		t.Error(err)
	}
	for token, o := range map[string]*robotpb.OrderRequest{"look": set, "talk": set, "camera": both} {
		if _, err := r.Do(as(token), o); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s does %s: %v", token, o.Text, err)
		}
	}
	if _, err := r.Do(as("all"), both); err != nil {
		t.Error(err)
	}
}

// TestModelSees: a language model gets a picture as an image, with the right to the camera alone.
func TestModelSees(t *testing.T) {
	s := newStudio(t, 1)
	painter, err := s.model(t, "camera")
	if err != nil {
		t.Fatal(err)
	}
	a, err := painter.CallTool(t.Context(), &mcp.CallToolParams{Name: "picture"})
	if err != nil || a.IsError || len(a.Content) != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	img, ok := a.Content[0].(*mcp.ImageContent)
	if !ok || img.MIMEType != "image/jpeg" {
		t.Fatalf("%+v", a.Content[0])
	}
	if c, err := jpeg.DecodeConfig(bytes.NewReader(img.Data)); err != nil || c.Width != 64 {
		t.Errorf("%+v, %v", c, err)
	}
	eyes, err := s.model(t, "look")
	if err != nil {
		t.Fatal(err)
	}
	a, err = eyes.CallTool(t.Context(), &mcp.CallToolParams{Name: "picture"})
	if b, jerr := json.Marshal(a); err != nil || jerr != nil || !a.IsError || !strings.Contains(string(b), "right_missing") {
		t.Errorf("without the right: %s, %v", b, err)
	}
}
