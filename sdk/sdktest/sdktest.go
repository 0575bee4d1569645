// Package sdktest is a robot in memory for the tests of the clients in sdk/: it speaks kennel.robot.v1 by gRPC, JSON over HTTPS and WebSocket on one port, and
// does what the names in a call ask for, so that each client meets each end of a call.
//
//	read     fake.renewed, fake.claimed, fake.cancelled, fake.stopped: how often; fake.unknown: not known; fake.far: +Inf; fake.text: "hello"; nowhere: not_found
//	follow   fake.count: 0, 1, 2 and so on; fake.silent: 7, and then nothing; events the same
//	image    JPEG of 4 by 2 pixels; bmp: no_picture; images: three of them, with 0, 1 and 2 missed
//	screens  as images
//	play     the clip taken: stopped by another; the mood wrong: not_found; hang: until the client ends the call, counted as cancelled; everything else is
//	         done, and its end says the request as its clip
//	say      the text taken: interrupted; wrong: no_voice; hang: as play; everything else as play. sound: likewise; stop is counted as hushed
//	sounds   three pieces, of 0, 1 and 2 missed samples, with two samples each
//	listen   three pieces, of 0, 1 and 2 missed samples, with two samples each, the last without a bearing and with a reason
//	order    blocked: ends so; hang: moves until the client ends the call; silent: begins, and then nothing; everything else is done, and the note
//	         of its end is the order as text
package sdktest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"kennel/infra/api/robotpb"
)

// Token is the token that the robot takes.
const Token = "a good token"

// Robot is a robot in memory.
type Robot struct {
	robotpb.UnimplementedRobotServer
	Addr        string
	Certificate string // PEM

	// InRoom makes the wheels move a robot between two walls, on its right at y = -0.35 m and ahead at x = 1.2 m, and its laser measure them.
	InRoom bool

	// Stay makes streams last after their messages, as those of a robot that is not lost.
	Stay bool

	mu       sync.Mutex
	pose     robotpb.Pose
	counts   map[string]int
	leases   map[string]bool
	settings *robotpb.SettingsResponse
	end      chan struct{}
}

// Start starts a robot that ends with the test. files are served to browsers below /.
func Start(t testing.TB, files http.Handler) *Robot {
	t.Helper()
	r := &Robot{counts: map[string]int{}, leases: map[string]bool{}, settings: newSettings(), end: make(chan struct{})}
	cert := certificate(t)
	r.Certificate = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}))
	calls := grpc.NewServer()
	robotpb.RegisterRobotServer(calls, r)
	web := r.web(files)
	srv := &http.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		ErrorLog:  log.New(io.Discard, "", 0), // clients that do not accept the certificate
		Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.ProtoMajor == 2 && strings.HasPrefix(q.Header.Get("Content-Type"), "application/grpc") {
				calls.ServeHTTP(w, q)
				return
			}
			web.ServeHTTP(w, q)
		}),
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.Addr = l.Addr().String()
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.ServeTLS(l, "", "") }()
	t.Cleanup(func() {
		close(r.end)
		_ = srv.Close()
		<-done
	})
	return r
}

// Name is the name in the certificate.
const Name = "Vector-A1B2"

func certificate(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	// As edge/agent/ownership/gatewaycert issues them.
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: Name, Organization: []string{"Anki"}}, DNSNames: []string{Name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(100, 0, 0), BasicConstraintsValid: true, IsCA: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// File writes the file of a program, with changes, and returns its path.
func (r *Robot) File(t testing.TB, changes map[string]string) string {
	t.Helper()
	f := map[string]string{"thing": "vic:00e20100", "address": r.Addr, "name": Name, "certificate": r.Certificate, "token": Token}
	for k, v := range changes {
		f[k] = v
	}
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "robot.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (r *Robot) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what]++
}

// refusal is an error with a code.
type refusal struct {
	code    string
	status  codes.Code
	http    int
	message string
}

func (e *refusal) Error() string { return e.message }

func refuse(code string, s codes.Code, web int, message string) *refusal {
	return &refusal{code, s, web, message}
}

var busy = refuse("busy", codes.FailedPrecondition, http.StatusConflict, "robot.go: held by fighter")

func admit(authorization string) *refusal {
	switch authorization {
	case "Bearer " + Token:
		return nil
	case "":
		return refuse("token_missing", codes.Unauthenticated, http.StatusUnauthorized, "want a client token")
	}
	return refuse("token_wrong", codes.Unauthenticated, http.StatusUnauthorized, "this robot does not know the token")
}

// known makes a refusal one of gRPC.
func known(err error, trailer func(metadata.MD)) error {
	if e, ok := err.(*refusal); ok && e != nil {
		trailer(metadata.Pairs("kennel-code", e.code))
		return status.Error(e.status, e.message)
	}
	return err
}

// call does a call of any transport.
func (r *Robot) call(ctx context.Context, authorization string, q proto.Message, tell func(proto.Message) error) error {
	if err := admit(authorization); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch q := q.(type) {
	case *robotpb.DescribeRequest:
		return tell(&robotpb.Description{Thing: "vic:00e20100", Species: "vector", Name: Name, Rights: []string{"look", "move"}, Limits: &robotpb.Limits{RateHz: 50},
			Parts: []*robotpb.Part{{Full: "robot"}, {Full: "robot.body.sonar[0]", Interfaces: []string{"DistanceSensor"}, Bearing: proto.Float64(-0.2)}, {Full: "robot.body.laser", Compact: "laser", Interfaces: []string{"DistanceSensor"}, Slots: []*robotpb.Slot{{Name: "distance", Unit: "m"}}},
				{Full: "fake", Slots: []*robotpb.Slot{{Name: "count"}}}}})
	case *robotpb.ReadRequest:
		return r.read(q, tell)
	case *robotpb.ClaimRequest:
		if q.Parts[0] == "busy" {
			return busy
		}
		id := rand.Text()
		r.leases[id] = true
		return tell(&robotpb.Lease{Id: id, ForMs: max(q.ForMs, 100)})
	case *robotpb.RenewRequest:
		if !r.leases[q.Lease] {
			return errGone
		}
		r.counts["renewed"]++
		return tell(&robotpb.Lease{Id: q.Lease, ForMs: 100})
	case *robotpb.ReleaseRequest:
		delete(r.leases, q.Lease)
		return tell(&robotpb.ReleaseResponse{})
	case *robotpb.ImageRequest:
		if q.Format == "bmp" {
			return refuse("no_picture", codes.Unavailable, http.StatusServiceUnavailable, "no picture: the robot sleeps")
		}
		return tell(picture(cmp.Or(q.Format, "jpeg"), q.GetQuality(), 0))
	case *robotpb.ScreenRequest:
		return tell(picture(cmp.Or(q.Format, "png"), 0, 0))
	case *robotpb.AnimationsRequest:
		return tell(&robotpb.AnimationList{Animations: []*robotpb.Animation{{Name: "anim_nod", SpanMs: 300, Tracks: []string{"head"}}}, Triggers: []string{"Nod"},
			Moods: []*robotpb.Mood{{Name: "happy", Trigger: "Nod"}}, Lacks: []string{"lift"}})
	case *robotpb.SettingsRequest:
		return tell(proto.CloneOf(r.settings))
	case *robotpb.ChangeRequest:
		return r.change(q, tell)
	case *robotpb.StopRequest:
		r.counts["stopped"]++
		return tell(&robotpb.StopResponse{})
	}
	r.mu.Unlock()
	defer r.mu.Lock()
	return r.stream(ctx, q, tell)
}

func newSettings() *robotpb.SettingsResponse {
	null := structpb.NewNullValue()
	return &robotpb.SettingsResponse{Version: 1, Settings: []*robotpb.Setting{{Name: "volume", Type: "enum", Values: []string{"LOW", "HIGH"}, Value: structpb.NewStringValue("LOW")},
		{Name: "metric", Type: "bool", Value: structpb.NewBoolValue(true)}, {Name: "place", Type: "text", Value: null},
		{Name: "eyes", Type: "object", Value: structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"hue": structpb.NewNumberValue(0.5)}})}}}
}

// change takes any value for a setting; one field of an object at a time.
func (r *Robot) change(q *robotpb.ChangeRequest, tell func(proto.Message) error) error {
	for name, v := range q.Settings {
		name, field, _ := strings.Cut(name, ".")
		i := slices.IndexFunc(r.settings.Settings, func(s *robotpb.Setting) bool { return s.Name == name })
		switch {
		case i < 0:
			return refuse("invalid", codes.InvalidArgument, http.StatusBadRequest, "no setting "+name)
		case field == "":
			r.settings.Settings[i].Value = v
		default:
			r.settings.Settings[i].Value.GetStructValue().Fields[field] = v
		}
	}
	return tell(proto.CloneOf(r.settings))
}

var errGone = refuse("lease_gone", codes.FailedPrecondition, http.StatusConflict, "the lease has ended")

func (r *Robot) read(q *robotpb.ReadRequest, tell func(proto.Message) error) error {
	v := &robotpb.Values{AtUs: 1_500_000}
	for _, name := range q.Names {
		part, slot := name[:max(0, strings.LastIndex(name, "."))], name[strings.LastIndex(name, ".")+1:]
		x := &robotpb.Reading{Part: part, Slot: slot, AgeUs: 20_000}
		switch name {
		case "nowhere":
			return refuse("not_found", codes.NotFound, http.StatusNotFound, "no such name: nowhere")
		case "fake.unknown":
			x.AgeUs = -1
		case "fake.far":
			x.Value = number(math.Inf(1))
		case "fake.text":
			x.Value = &robotpb.Value{Kind: &robotpb.Value_Text{Text: "hello"}}
		case "robot.body.laser.distance":
			x.Unit, x.Value = "m", number(r.ahead())
		case "fake.claimed":
			x.Value = number(float64(len(r.leases)))
		case "headPitch": // a part
			v.Readings = append(v.Readings, &robotpb.Reading{Part: "robot.body.head.pitch", Slot: "load", Value: number(0.9)})
			x.Part, x.Slot, x.Value = "robot.body.head.pitch", "val", number(0.3)
		default:
			x.Value = number(float64(r.counts[slot]))
		}
		v.Readings = append(v.Readings, x)
	}
	return tell(v)
}

// picture returns a picture of a format; its last byte is the quality that was asked for.
func picture(format string, quality uint32, n int) *robotpb.Picture {
	return &robotpb.Picture{Format: format, Width: 4, Height: 2, Data: []byte{0xff, 0xd8, 0, byte(quality)}, Seq: uint64(n + 1), AtUs: 2_500_000, Missed: uint64(n), ExposureS: 0.005,
		Gain: 2, Calibration: &robotpb.Calibration{Fx: 320, Fy: 386, Cx: 2, Cy: 1}}
}

// Pose returns where the wheels moved the robot.
func (r *Robot) Pose() (x, y, theta float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pose.X, r.pose.Y, r.pose.Theta
}

// ahead returns the distance that the laser measures; mu is held.
func (r *Robot) ahead() float64 {
	if !r.InRoom {
		return 0.42
	}
	d := math.Inf(1)
	if s := math.Sin(r.pose.Theta); s < -1e-6 {
		d = (-0.35 - r.pose.Y) / s
	}
	if c := math.Cos(r.pose.Theta); c > 1e-6 {
		d = min(d, (1.2-r.pose.X)/c)
	}
	return d
}

// move does what a statement asks of the wheels.
func (r *Robot) move(s *robotpb.Statement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch by := s.GetCall().GetItems(); s.Name {
	case "robot.go":
		r.pose.X += by[0].GetNumber() * math.Cos(r.pose.Theta)
		r.pose.Y += by[0].GetNumber() * math.Sin(r.pose.Theta)
	case "robot.turn":
		r.pose.Theta -= by[0].GetNumber()
	}
}

func number(f float64) *robotpb.Value { return &robotpb.Value{Kind: &robotpb.Value_Number{Number: f}} }

func (r *Robot) stream(ctx context.Context, q proto.Message, tell func(proto.Message) error) error {
	var names []string
	var message func(n int) proto.Message
	alive := proto.Message(nil) // what only says that the robot is there
	switch q := q.(type) {
	case *robotpb.SubscribeRequest:
		names, alive = q.Names, &robotpb.Values{}
		message = func(n int) proto.Message {
			return &robotpb.Values{AtUs: int64(n), Missed: uint64(n), Readings: []*robotpb.Reading{{Part: "fake", Slot: strings.TrimPrefix(names[0], "fake."), Value: number(float64(n)), Changed: true, AgeUs: -1}}}
		}
	case *robotpb.EventsRequest:
		names, alive = append(q.Names, ""), &robotpb.Event{} // none: all
		message = func(n int) proto.Message {
			return &robotpb.Event{Seq: q.GetSince() + uint64(n+1), AtUs: 2_500_000, Name: "fake.happened", Warning: true, Numbers: []int64{int64(n), -1}, Texts: []string{"x"}}
		}
	case *robotpb.OrdersRequest:
		names, alive = []string{""}, &robotpb.OrderReport{}
		message = func(n int) proto.Message {
			return &robotpb.OrderReport{Seq: uint64(2*n + 1), Order: uint64(n + 1), AtUs: 2_500_000, Program: "fake"}
		}
	case *robotpb.ImagesRequest:
		names, alive = []string{q.Format}, &robotpb.Picture{Reason: "not yet"}
		message = func(n int) proto.Message { return picture(cmp.Or(q.Format, "jpeg"), q.GetQuality(), n) }
	case *robotpb.ScreensRequest:
		names, alive = []string{q.Format}, &robotpb.Picture{}
		message = func(n int) proto.Message { return picture(cmp.Or(q.Format, "jpeg"), 0, n) }
	case *robotpb.PlayRequest:
		return r.play(ctx, q, tell)
	case *robotpb.SayRequest:
		return r.say(ctx, q.Text, fmt.Sprint(q.Text, " ", q.Plain, " ", q.Language, " ", q.Speed, " ", q.Pitch), tell)
	case *robotpb.SoundRequest:
		if q.GetStop() {
			r.count("hushed")
		}
		return r.say(ctx, q.GetName(), fmt.Sprint(q.GetName(), " ", q.Volume), tell)
	case *robotpb.SoundsRequest:
		alive = &robotpb.SoundPiece{}
		names = []string{"sounds"}
		message = func(n int) proto.Message {
			return &robotpb.SoundPiece{Rate: 16000, Data: []byte{byte(n), 0, byte(-n), byte(-n >> 8)}, Place: int64(2 * n), AtUs: int64(n) * 1e6, Missed: uint64(n), Said: proto.String(fmt.Sprint("text ", n))}
		}
	case *robotpb.ListenRequest:
		alive = &robotpb.HeardPiece{}
		names = []string{"listen"}
		message = func(n int) proto.Message {
			m := &robotpb.HeardPiece{Rate: 16000, Data: []byte{byte(n), 0, byte(-n), byte(-n >> 8)}, AtUs: int64(n) * 1e6, Missed: uint64(n), Voice: n == 1, Own: n == 0}
			if n == 2 {
				m.Reason = "no sound"
				return m
			}
			m.Bearing = proto.Float64(-0.5)
			return m
		}
	case *robotpb.OrderRequest:
		return r.order(ctx, q, tell)
	}
	if names[0] == "nowhere" {
		return refuse("not_found", codes.NotFound, http.StatusNotFound, "no such name: nowhere")
	}
	if names[0] == "fake.silent" {
		if err := tell(message(7)); err != nil {
			return err
		}
		return r.until(ctx)
	}
	for n := range 3 {
		if err := tell(message(n)); err != nil {
			return err
		}
		if err := tell(alive); err != nil {
			return err
		}
	}
	if r.Stay {
		return r.until(ctx)
	}
	return refuse("core_lost", codes.Unavailable, http.StatusServiceUnavailable, "connection to the real-time core lost")
}

// until waits until the client ends the call.
func (r *Robot) until(ctx context.Context) error {
	select {
	case <-ctx.Done():
		r.count("cancelled")
	case <-r.end:
	}
	return ctx.Err()
}

func (r *Robot) order(ctx context.Context, q *robotpb.OrderRequest, tell func(proto.Message) error) error {
	r.mu.Lock()
	held := r.leases[q.Lease]
	r.mu.Unlock()
	ended := &robotpb.Ended{Outcome: "done", Words: "done", Moved: 0.1, Of: 0.1, Unit: "m", Pose: &robotpb.Pose{X: 0.1}, Note: text(q)}
	switch {
	case q.Lease != "" && !held:
		return errGone
	case q.Text == "busy":
		return busy
	case q.Text == "blocked":
		ended.Outcome, ended.Reasons, ended.Words = "blocked", []string{"the wheels do not turn"}, "blocked after 0.011 m of 0.1 m: the wheels do not turn"
	}
	for _, p := range []*robotpb.Progress{{Kind: &robotpb.Progress_Begun{Begun: &robotpb.Begun{}}}, {Kind: &robotpb.Progress_Pose{Pose: &robotpb.Pose{X: 0.05}}}} {
		if err := tell(p); err != nil {
			r.count("cancelled")
			return err
		}
	}
	if q.Text == "silent" {
		return r.until(ctx)
	}
	for q.Text == "hang" {
		select {
		case <-ctx.Done():
			r.count("cancelled")
			return ctx.Err()
		case <-r.end:
			return nil
		case <-time.After(50 * time.Millisecond): // as a robot that moves
			if err := tell(&robotpb.Progress{Kind: &robotpb.Progress_Pose{Pose: &robotpb.Pose{X: 0.05}}}); err != nil {
				r.count("cancelled")
				return err
			}
		}
	}
	for _, step := range q.Steps {
		for _, s := range step.Statements {
			r.move(s)
		}
	}
	return tell(&robotpb.Progress{Kind: &robotpb.Progress_Ended{Ended: ended}})
}

// text is an order as text, whatever client it came from.
func text(q *robotpb.OrderRequest) string {
	var b bytes.Buffer
	b.WriteString(q.Text)
	for _, step := range q.Steps {
		for _, s := range step.Statements {
			switch what := s.What.(type) {
			case *robotpb.Statement_Set:
				fmt.Fprintf(&b, "%s = %s", s.Name, words(what.Set))
			case *robotpb.Statement_Call:
				fmt.Fprintf(&b, "%s%s", s.Name, words(&robotpb.Value{Kind: &robotpb.Value_List{List: what.Call}}))
			}
			switch how := s.Manner.(type) {
			case *robotpb.Statement_TimeS:
				fmt.Fprintf(&b, " time:%v", how.TimeS)
			case *robotpb.Statement_Speed:
				fmt.Fprintf(&b, " speed:%v", how.Speed)
			case *robotpb.Statement_AdaptiveS:
				fmt.Fprintf(&b, " adaptive:%v", how.AdaptiveS)
			}
		}
	}
	if q.ForMs != 0 {
		fmt.Fprintf(&b, " within %d ms", q.ForMs)
	}
	if q.Lease != "" {
		b.WriteString(" leased")
	}
	return b.String()
}

func words(v *robotpb.Value) string {
	switch k := v.GetKind().(type) {
	case *robotpb.Value_Number:
		return fmt.Sprint(k.Number)
	case *robotpb.Value_Text:
		return fmt.Sprintf("%q", k.Text)
	case *robotpb.Value_List:
		var items []string
		for _, x := range k.List.Items {
			items = append(items, words(x))
		}
		return "(" + strings.Join(items, ", ") + ")"
	}
	return "nothing"
}

// play does what a clip, trigger or mood asks for.
func (r *Robot) play(ctx context.Context, q *robotpb.PlayRequest, tell func(proto.Message) error) error {
	name := cmp.Or(q.GetClip(), q.GetTrigger(), q.GetMood())
	if name == "wrong" {
		return refuse("not_found", codes.NotFound, http.StatusNotFound, "no such animation")
	}
	left := []*robotpb.LeftOut{{Track: "lift", Reason: "this body has none"}}
	err := tell(&robotpb.PlayProgress{Kind: &robotpb.PlayProgress_Begun{Begun: &robotpb.PlayBegun{Clip: name, SpanMs: 300, LeftOut: left}}})
	if err != nil {
		return err
	}
	ended := &robotpb.PlayEnded{Clip: fmt.Sprint(name, " ", q.Loops, " ", q.Ignore), Outcome: "done", AtMs: 300, LeftOut: left}
	switch name {
	case "hang":
		if err = r.until(ctx); ctx.Err() != nil {
			r.count("cancelled")
		}
		return err
	case "taken":
		ended.Outcome, ended.Reason, ended.By = "stopped", "headPitch belongs to another", "another"
	}
	if err := tell(&robotpb.PlayProgress{Kind: &robotpb.PlayProgress_AtMs{AtMs: 200}}); err != nil {
		return err
	}
	return tell(&robotpb.PlayProgress{Kind: &robotpb.PlayProgress_Ended{Ended: ended}})
}

// say does what a text or the name of a sound asks for.
func (r *Robot) say(ctx context.Context, text, all string, tell func(proto.Message) error) error {
	if text == "wrong" {
		return refuse("no_voice", codes.Unavailable, http.StatusServiceUnavailable, "espeak-ng is not installed")
	}
	if err := tell(&robotpb.SpeechProgress{Kind: &robotpb.SpeechProgress_State{State: "playing"}}); err != nil {
		return err
	}
	ended := &robotpb.PlayEnded{Clip: all, Outcome: "done", AtMs: 300}
	switch text {
	case "hang":
		return r.until(ctx)
	case "taken":
		ended.Outcome, ended.Reason, ended.By = "stopped", "speech is heard instead", "another"
	}
	if err := tell(&robotpb.SpeechProgress{Kind: &robotpb.SpeechProgress_AtMs{AtMs: 200}}); err != nil {
		return err
	}
	return tell(&robotpb.SpeechProgress{Kind: &robotpb.SpeechProgress_Ended{Ended: ended}})
}

// requests are the calls, by their names in paths.
var requests = map[string]proto.Message{"describe": &robotpb.DescribeRequest{}, "read": &robotpb.ReadRequest{}, "subscribe": &robotpb.SubscribeRequest{},
	"events": &robotpb.EventsRequest{}, "orders": &robotpb.OrdersRequest{}, "claim": &robotpb.ClaimRequest{}, "renew": &robotpb.RenewRequest{}, "release": &robotpb.ReleaseRequest{},
	"order": &robotpb.OrderRequest{}, "image": &robotpb.ImageRequest{}, "images": &robotpb.ImagesRequest{}, "stop": &robotpb.StopRequest{},
	"screen": &robotpb.ScreenRequest{}, "screens": &robotpb.ScreensRequest{}, "animations": &robotpb.AnimationsRequest{}, "play": &robotpb.PlayRequest{},
	"say": &robotpb.SayRequest{}, "sound": &robotpb.SoundRequest{}, "sounds": &robotpb.SoundsRequest{}, "listen": &robotpb.ListenRequest{},
	"settings": &robotpb.SettingsRequest{}, "change": &robotpb.ChangeRequest{}}

var encode = protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true}

func (r *Robot) web(files http.Handler) http.Handler {
	mux := http.NewServeMux()
	if files != nil {
		mux.Handle("/", files)
	}
	for name, q := range requests {
		mux.HandleFunc("POST /v1/"+name, func(w http.ResponseWriter, req *http.Request) {
			q := proto.Clone(q)
			b, err := io.ReadAll(req.Body)
			if err == nil {
				err = protojson.Unmarshal(b, q)
			}
			if err != nil {
				answer(w, refuse("invalid", codes.InvalidArgument, http.StatusBadRequest, err.Error()))
				return
			}
			streams, begun := slices.Contains([]string{"subscribe", "events", "orders", "images", "order", "screens", "play", "say", "sound", "sounds", "listen"}, name), false
			err = r.call(req.Context(), req.Header.Get("Authorization"), q, func(m proto.Message) error {
				b, err := encode.Marshal(m)
				if err != nil {
					return err
				}
				begun = true
				_, err = w.Write(b[:len(b)/2])
				if streams { // networks cut lines anywhere
					err = errors.Join(err, http.NewResponseController(w).Flush())
				}
				_, werr := w.Write(append(b[len(b)/2:], '\n'))
				if streams {
					werr = errors.Join(werr, http.NewResponseController(w).Flush())
				}
				return errors.Join(err, werr)
			})
			if e, ok := err.(*refusal); ok && begun {
				_, _ = w.Write(append(problem(e), '\n')) // its last words
			} else if ok {
				answer(w, e)
			}
		})
		mux.HandleFunc("GET /v1/"+name, func(w http.ResponseWriter, req *http.Request) { r.socket(w, req, proto.Clone(q)) })
	}
	return mux
}

func problem(e *refusal) []byte {
	b, _ := json.Marshal(map[string]string{"code": e.code, "message": e.message}) // two texts
	return b
}

func answer(w http.ResponseWriter, e *refusal) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.http)
	_, _ = w.Write(problem(e)) // a client that is gone hears nothing
}

// socket does a call as a WebSocket.
func (r *Robot) socket(w http.ResponseWriter, req *http.Request, q proto.Message) {
	authorization := ""
	for _, p := range strings.Split(req.Header.Get("Sec-WebSocket-Protocol"), ",") {
		if token, ok := strings.CutPrefix(strings.TrimSpace(p), "kennel.bearer."); ok {
			b, _ := base64.RawURLEncoding.DecodeString(token) // a token that is none is wrong
			authorization = "Bearer " + string(b)
		}
	}
	if e := admit(authorization); e != nil {
		answer(w, e)
		return
	}
	conn, err := websocket.Accept(w, req, &websocket.AcceptOptions{Subprotocols: []string{"kennel.robot.v1"}})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	_, b, err := conn.Read(req.Context())
	if err != nil {
		return
	}
	if err := protojson.Unmarshal(b, q); err != nil {
		_ = conn.Close(websocket.StatusPolicyViolation, err.Error()) // the client sees it
		return
	}
	ctx := conn.CloseRead(req.Context())
	err = r.call(ctx, authorization, q, func(m proto.Message) error {
		b, err := encode.Marshal(m)
		if err != nil {
			return err
		}
		return conn.Write(ctx, websocket.MessageText, b)
	})
	if e, ok := err.(*refusal); ok {
		_ = conn.Write(ctx, websocket.MessageText, problem(e)) // the client may be gone
		_ = conn.Close(websocket.StatusPolicyViolation, "")
		return
	}
	_ = conn.Close(websocket.StatusNormalClosure, "")
}
