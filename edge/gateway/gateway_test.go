package gateway_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"math"
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
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"kennel/edge/agent/docs"
	"kennel/edge/agent/host"
	"kennel/edge/agent/ownership/gatewaycert"
	"kennel/edge/core/control"
	"kennel/edge/core/coreserver/coreservertest"
	"kennel/edge/core/coreserver/robotdtest"
	"kennel/edge/gateway"
	"kennel/edge/mic"
	"kennel/edge/motion"
	"kennel/edge/robot"
	"kennel/infra/api/robotpb"
	"kennel/infra/logging"
	"kennel/infra/runner"
	"kennel/infra/testwait"
	"kennel/infra/thing"
	"kennel/jdocs"
)

const patience = 10 * time.Second

// desk is a robot with a gateway, as programs see it.
type desk struct {
	hand palm    // of the person beside it
	ears mic.Tap // what it hears
	body *coreservertest.Body
	lose func() // ends robotd
	end  func() // ends the gateway
	part host.Part

	exchange func(ctx context.Context, session logging.Secret, client, app string) (logging.Secret, error)
	dir      string // the robot's folder
	addr     string
	conf     *tls.Config
	cert     tls.Certificate

	mu      sync.Mutex
	clients map[string]gateway.Client // by their tokens
}

func (d *desk) forget(token string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.clients, token)
}

func only(rights ...string) func(string) bool {
	return func(r string) bool { return slices.Contains(rights, r) }
}

// newDesk's robot has more parts beside the toy's. Its clients connect by address, trust the robot's own certificate alone, and expect the robot's name in it (VEC-AUTH-04).
func newDesk(t testing.TB, more ...robot.Part) *desk { return newDeskAt(t, "127.0.0.1:0", more...) }

func newDeskAt(t testing.TB, addr string, more ...robot.Part) *desk {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	d := &desk{clients: map[string]gateway.Client{"all": {Name: "square"}, "other": {Name: "fighter"}, "look": {Name: "eyes", May: only(gateway.Look)},
		"talk": {Name: "lamp", May: only(gateway.Talk)}, "camera": {Name: "painter", May: only(gateway.Camera)}}}
	d.dir = dir
	d.body, d.lose = robotdtest.Start(t, dir, more...)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	plate, err := gatewaycert.Open(gatewaycert.Config{Root: root, Species: thing.Vector, Now: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	h := host.New(host.Robot{Root: root, Dir: dir, Thing: "vic:00e20100", OS: "2.1.0.7", Log: log, Changed: func() {}, Now: time.Now})
	kept, err := docs.New(docs.Config{Settings: jdocs.RobotSettings, Root: root, Log: log, Unwatched: true}) // no cloud
	if err != nil {
		t.Fatal(err)
	}
	g := gateway.New(h, gateway.Config{Addr: addr, Certificate: func() (tls.Certificate, bool) { return plate.TLSCertificate(), true },
		Name: plate.Name, Settings: kept.Reach(), Hand: &d.hand, Ears: &d.ears,
		Exchange: func(ctx context.Context, session logging.Secret, client, app string) (logging.Secret, error) {
			return d.exchange(ctx, session, client, app)
		},
		Client: func(_ context.Context, bearer string) (gateway.Client, bool) {
			d.mu.Lock()
			defer d.mu.Unlock()
			c, ok := d.clients[bearer]
			return c, ok
		}})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	d.part = g.Part()
	go func() { ended <- runner.Run(ctx, log, runner.Config{}, d.part.Services...) }()
	d.end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(d.end)
	testwait.Until(t, patience, "the gateway", testwait.Holds(func() bool { return g.Addr() != "" }))
	d.addr, d.cert = g.Addr(), plate.TLSCertificate()
	if b, err := os.ReadFile(filepath.Join(dir, "run/kennel-agent/gateway")); err != nil || strings.TrimSpace(string(b)) != d.addr {
		t.Errorf("address in its file: %q, %v", b, err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(plate.PEM())
	d.conf = &tls.Config{RootCAs: pool, ServerName: plate.Name()}
	r := d.dial(t)
	testwait.Until(t, patience, "robotd", func() error { _, err := r.Describe(as("look"), &robotpb.DescribeRequest{}); return err })
	return d
}

func (d *desk) conn(t testing.TB) *grpc.ClientConn { return d.connTo(t, d.addr) }

func (d *desk) connTo(t testing.TB, addr string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient(addr, grpc.WithTransportCredentials(credentials.NewTLS(d.conf)),
		grpc.WithInitialWindowSize(64<<10)) // a window that grows with the speed is memory of the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (d *desk) dial(t testing.TB) robotpb.RobotClient { return robotpb.NewRobotClient(d.conn(t)) }

// as returns the context of a call with a token; "": without.
func as(token string) context.Context {
	ctx := context.Background()
	if token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

// post makes a call over HTTPS, and returns the status and the answer.
func (d *desk) post(t *testing.T, token, call, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, "https://"+d.addr+"/v1/"+call, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	conf := d.conf.Clone()
	client := http.Client{Transport: &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// refusal returns the gRPC status and our code of a call that failed.
func refusal(t *testing.T, d *desk, token, call string, streams bool) (codes.Code, string) {
	t.Helper()
	var trailer metadata.MD
	q, a := &robotpb.DescribeRequest{}, &robotpb.Description{} // both empty: all fields are optional on the wire
	var err error
	c, method := d.conn(t), "/"+robotpb.Robot_ServiceDesc.ServiceName+"/"+call
	if !streams {
		err = c.Invoke(as(token), method, q, a, grpc.Trailer(&trailer))
	} else {
		var s grpc.ClientStream
		if s, err = c.NewStream(as(token), &grpc.StreamDesc{ServerStreams: true}, method); err == nil {
			_ = s.SendMsg(q)
			_ = s.CloseSend()
			err = s.RecvMsg(a)
			trailer = s.Trailer()
		}
	}
	return status.Code(err), strings.Join(trailer.Get("kennel-code"), ",")
}

// TestEveryCall walks the calls of the API over gRPC, HTTPS and WebSocket: none answers without a token, with a wrong one, or with one that lacks
// the right, and what asks for nothing says what was expected (VEC-SEC-11).
func TestEveryCall(t *testing.T) {
	d := newDesk(t)
	desc := robotpb.File_robot_proto.Services().ByName("Robot").Methods()
	for i := range desc.Len() {
		m := desc.Get(i)
		name, path := string(m.Name()), strings.ToLower(string(m.Name()))
		if name == "Authenticate" {
			continue // TestAuthenticate
		}
		unused := map[string]string{"Describe": "talk", "Read": "talk", "Subscribe": "talk", "Events": "talk", "Orders": "talk", "Image": "look", "Images": "look", "Claim": "look", "Renew": "look", "Release": "look", "Settings": "look", "Change": "look", "Say": "look", "Sound": "look", "Listen": "look"}[name]
		if i == desc.Len()/2 {
			time.Sleep(1500 * time.Millisecond) // strangers have 50 tries at once, and 10 a second
		}
		for token, want := range map[string]string{"": "token_missing", "unknown": "token_wrong", unused: "right_missing"} {
			if token == "" && want == "right_missing" {
				continue // any client may
			}
			code, status := codes.Unauthenticated, http.StatusUnauthorized
			if want == "right_missing" {
				code, status = codes.PermissionDenied, http.StatusForbidden
			}
			if got, own := refusal(t, d, token, name, m.IsStreamingServer()); got != code || own != want {
				t.Errorf("gRPC %s as %q: %v %q, want %v %q", name, token, got, own, code, want)
			}
			got, body := d.post(t, token, path, "{}")
			var p struct{ Code, Message string }
			if err := json.Unmarshal([]byte(body), &p); err != nil || got != status || p.Code != want || p.Message == "" {
				t.Errorf("HTTPS %s as %q: %d %s", path, token, got, body)
			}
			if m.IsStreamingServer() {
				_, resp, err := websocket.Dial(t.Context(), "wss://"+d.addr+"/v1/"+path, &websocket.DialOptions{HTTPClient: &http.Client{
					Transport: &http.Transport{TLSClientConfig: d.conf.Clone()}}, HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
				if err == nil || resp == nil || resp.StatusCode != status {
					t.Errorf("WebSocket %s as %q: %v, %v", path, token, resp, err)
				}
			}
		}
	}
	for call, want := range map[string]string{"read": "invalid", "claim": "invalid", "do": "invalid", "renew": "lease_gone", "subscribe": "invalid", "image": "unable", "change": "invalid", "images": "unable", "listen": "unable", "nothing": "no_such_call"} {
		if _, body := d.post(t, "all", call, "{}"); !strings.Contains(body, `"code":"`+want+`"`) {
			t.Errorf("%s of nothing: %s, want %s", call, body, want)
		}
	}
	for body, want := range map[string]string{"{": "invalid", `{"x":1}`: "invalid", `{"text":"robot.nothing(1)"}`: "invalid", `{"text":"headPitch"}`: "invalid",
		`{"text":"headPitch = 9"}`: "", `{"steps":[{"statements":[{"name":"headPitch","set":{}}]}]}`: "invalid", `{"text":"x","for_ms":60001}`: "invalid"} {
		if got, answer := d.post(t, "all", "do", body); want != "" && !strings.Contains(answer, `"code":"`+want+`"`) && got == http.StatusOK {
			t.Errorf("do %s: %d %s, want %s", body, got, answer, want)
		}
	}
}

// motions returns the orders for motion that the loop has heard.
func (d *desk) motions() (all []control.Order) {
	for _, x := range d.body.Orders() {
		if x.Kind == control.Go || x.Kind == control.Turn || x.Kind == control.Set {
			all = append(all, x)
		}
	}
	return all
}

// moved waits until the loop has heard so many orders for motion, and returns the last.
func (d *desk) moved(t *testing.T, n int) (o control.Order) {
	t.Helper()
	testwait.Until(t, patience, "a motion", testwait.Holds(func() bool {
		all := d.motions()
		if len(all) >= n {
			o = all[n-1]
		}
		return len(all) >= n
	}))
	return o
}

func call(name string, arg float64) *robotpb.OrderRequest {
	return &robotpb.OrderRequest{ForMs: 5000, Steps: []*robotpb.Step{{Statements: []*robotpb.Statement{{Name: name, What: &robotpb.Statement_Call{
		Call: &robotpb.List{Items: []*robotpb.Value{{Kind: &robotpb.Value_Number{Number: arg}}}}}}}}}}
}

// TestOrder: an order begins, tells where the body is, and ends as it did; while it moves, another client hears who has the wheels.
func TestOrder(t *testing.T) {
	d := newDesk(t)
	r, other := d.dial(t), d.dial(t)
	d.body.SetPlace(robot.Place{X: 0.123, Theta: 1}) // the pose in robotd's report is older
	s, err := r.Order(as("all"), call("robot.go", 0.1))
	if err != nil {
		t.Fatal(err)
	}
	if o := d.moved(t, 1); o.A != 0.1 || o.For != 5*time.Second {
		t.Errorf("the loop heard %+v", o)
	}
	var begun, poses int
	for poses < 2 {
		m, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		switch k := m.Kind.(type) {
		case *robotpb.Progress_Begun:
			begun++
		case *robotpb.Progress_Pose:
			if poses++; k.Pose.X != 0.123 || k.Pose.Theta != 1 {
				t.Errorf("the body is at %v", k.Pose)
			}
		}
	}
	if _, err := other.Do(as("other"), call("robot.go", 1)); status.Code(err) != codes.Aborted || !strings.Contains(err.Error(), "gateway: square") {
		t.Errorf("the other hears %v, want who has the wheels", err)
	}
	d.body.End(motion.Done, 0.1)
	var end *robotpb.Ended
	for end == nil {
		m, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		end = m.GetEnded()
	}
	if _, err := s.Recv(); err != io.EOF || begun != 1 || end.Outcome != "done" {
		t.Errorf("begun %d times, ended %v, then %v", begun, end, err)
	}
	ended := make(chan *robotpb.Ended, 1)
	go func() {
		e, err := other.Do(as("other"), call("robot.go", 1))
		if err != nil {
			t.Error(err)
		}
		ended <- e
	}()
	d.moved(t, 2)
	if _, err := r.Stop(as("look"), &robotpb.StopRequest{}); err != nil { // any client may
		t.Error(err)
	}
	if e := testwait.For(t, ended, "the end"); e.GetOutcome() == "done" || e.GetWords() == "" {
		t.Errorf("stopped, and told %v", e)
	}
}

// TestRights: who may talk sets lights and moves nothing; who may look does neither.
func TestRights(t *testing.T) {
	d := newDesk(t)
	r := d.dial(t)
	light, drive := &robotpb.OrderRequest{Text: "led[0].r = 1"}, &robotpb.OrderRequest{Text: "led[0].r = 1; headPitch = 0.1"}
	if _, err := r.Do(as("talk"), light); err != nil {
		t.Error(err)
	}
	for token, o := range map[string]*robotpb.OrderRequest{"talk": drive, "look": light} {
		if _, err := r.Do(as(token), o); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s does %s: %v", token, o.Text, err)
		}
	}
}

// TestLease: what is claimed is the client's until it is released, or its time is over; another client has neither the parts nor the lease.
func TestLease(t *testing.T) {
	d := newDesk(t)
	r := d.dial(t)
	l, err := r.Claim(as("all"), &robotpb.ClaimRequest{Parts: []string{"robot.go"}, ForMs: 60_000, Reason: "a square"})
	if err != nil || l.ForMs != 60_000 {
		t.Fatal(l, err)
	}
	under := call("robot.go", 0.2)
	under.Lease = l.Id
	for _, err := range []error{
		func() error { _, err := r.Do(as("other"), under); return err }(),
		func() error { _, err := r.Renew(as("other"), &robotpb.RenewRequest{Lease: l.Id}); return err }(),
		func() error { _, err := r.Release(as("other"), &robotpb.ReleaseRequest{Lease: l.Id}); return err }(),
		func() error {
			_, err := r.Claim(as("other"), &robotpb.ClaimRequest{Parts: []string{"robot.go"}})
			return err
		}(),
	} {
		if status.Code(err) != codes.Aborted {
			t.Errorf("another client: %v", err)
		}
	}
	if _, err := r.Renew(as("all"), &robotpb.RenewRequest{Lease: l.Id}); err != nil {
		t.Error(err)
	}
	// A client that ends the call ends the motion, and keeps its lease.
	ctx, cancel := context.WithCancel(as("all"))
	s, err := r.Order(ctx, under)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := s.Recv(); err != nil || m.GetBegun() == nil {
		t.Fatal(m, err)
	}
	cancel()
	testwait.Until(t, patience, "the end of the motion", testwait.Holds(func() bool { return !d.body.Moving() }))
	done := make(chan error, 1)
	go func() { _, err := r.Do(as("all"), under); done <- err }()
	d.moved(t, 2)
	if _, err := r.Release(as("all"), &robotpb.ReleaseRequest{Lease: l.Id}); err != nil { // which ends the second
		t.Error(err)
	}
	if err := testwait.For(t, done, "the end"); err != nil {
		t.Error(err)
	}
	if _, err := r.Do(as("all"), under); status.Code(err) != codes.Aborted {
		t.Errorf("an order under a lease that has ended: %v", err)
	}
	short, err := r.Claim(as("other"), &robotpb.ClaimRequest{Parts: []string{"robot.go"}, ForMs: 100})
	if err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, patience, "the end of its time", func() error {
		_, err := r.Claim(as("all"), &robotpb.ClaimRequest{Parts: []string{"robot.go"}})
		return err
	})
	if _, err := r.Renew(as("other"), &robotpb.RenewRequest{Lease: short.Id}); status.Code(err) != codes.Aborted {
		t.Errorf("renewed after its time: %v", err)
	}
}

// TestReleaseWhileAnOrderEnds: a client that leaves ends its order and releases its lease at the same moment; the parts are free afterwards.
func TestReleaseWhileAnOrderEnds(t *testing.T) {
	d := newDesk(t)
	r := d.dial(t)
	for range 20 {
		l, err := r.Claim(as("all"), &robotpb.ClaimRequest{Parts: []string{"robot.go"}, ForMs: 60_000})
		if err != nil {
			t.Fatal(err)
		}
		under := call("robot.go", 0.2)
		under.Lease = l.Id
		ctx, cancel := context.WithCancel(as("all"))
		s, err := r.Order(ctx, under)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err != nil {
			t.Fatal(err)
		}
		go cancel()
		if _, err := r.Release(as("all"), &robotpb.ReleaseRequest{Lease: l.Id}); err != nil && status.Code(err) != codes.Aborted {
			t.Error(err)
		}
		testwait.Until(t, patience, "the parts to be free", func() error {
			l, err := r.Claim(as("other"), &robotpb.ClaimRequest{Parts: []string{"robot.go"}})
			if err == nil {
				_, err = r.Release(as("other"), &robotpb.ReleaseRequest{Lease: l.Id})
			}
			return err
		})
	}
}

// TestSubscribe: values come at once and when they change; a second without a change has a message too; the loss of robotd and of the token end it
// with their codes.
func TestSubscribe(t *testing.T) {
	d := newDesk(t)
	r := d.dial(t)
	d.body.Measure("laser.distance", 0.5)
	ctx, cancel := context.WithTimeout(as("look"), patience)
	defer cancel()
	s, err := r.Subscribe(ctx, &robotpb.SubscribeRequest{Names: []string{"laser.distance"}, RateHz: 50})
	if err != nil {
		t.Fatal(err)
	}
	see := func() *robotpb.Values {
		t.Helper()
		m, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for {
		if m := see(); len(m.Readings) == 1 && m.Readings[0].Value.GetNumber() == 0.5 {
			break
		}
	}
	if m := see(); len(m.Readings) != 0 {
		t.Errorf("without a change: %v", m)
	}
	d.body.Measure("laser.distance", math.Inf(1))
	for {
		if m := see(); len(m.Readings) == 1 && math.IsInf(m.Readings[0].Value.GetNumber(), 1) && m.Readings[0].Changed && m.Readings[0].Unit == "m" {
			break
		}
	}
	if got, body := d.post(t, "look", "read", `{"names":["laser.distance"]}`); got != http.StatusOK || !strings.Contains(body, `"number":"Infinity"`) {
		t.Errorf("%d %s", got, body)
	}
	d.forget("look")
	for err == nil {
		_, err = s.Recv()
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("a token that is revoked: %v", err)
	}
	lost, err := r.Subscribe(as("all"), &robotpb.SubscribeRequest{Names: []string{"laser"}})
	if err != nil {
		t.Fatal(err)
	}
	events, err := r.Events(as("all"), &robotpb.EventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{func() error { _, err := lost.Recv(); return err }(), func() error { _, err := events.Recv(); return err }()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d.lose()
	for err = nil; err == nil; {
		_, err = lost.Recv()
	}
	if status.Code(err) != codes.Unavailable || strings.Join(lost.Trailer().Get("kennel-code"), "") != "core_lost" {
		t.Errorf("robotd is lost: %v", err)
	}
	for err = nil; err == nil; {
		_, err = events.Recv()
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("robotd is lost: %v", err)
	}
}

// TestSocket: a browser sends its token beside the protocol, and hears events as JSON.
func TestSocket(t *testing.T) {
	d := newDesk(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, _, err := websocket.Dial(ctx, "wss://"+d.addr+"/v1/events", &websocket.DialOptions{
		HTTPClient:   &http.Client{Transport: &http.Transport{TLSClientConfig: d.conf.Clone()}},
		Subprotocols: []string{"kennel.robot.v1", "kennel.bearer." + base64.RawURLEncoding.EncodeToString([]byte("look"))}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if c.Subprotocol() != "kennel.robot.v1" {
		t.Errorf("protocol %q", c.Subprotocol())
	}
	if err := c.Write(ctx, websocket.MessageText, []byte(`{"names":["robot.poked"]}`)); err != nil {
		t.Fatal(err)
	}
	for sent := false; ; {
		_, b, err := c.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(`"name":"robot.poked"`)) && bytes.Contains(b, []byte(`"texts":["x"]`)) {
			break
		}
		if !sent { // the first, empty one says that it listens
			d.body.Emit(control.Event{Name: "robot.other"})
			d.body.Emit(control.Event{Name: "robot.poked", Texts: [4]string{"x"}})
			sent = true
		}
	}
	d.forget("look")
	for err == nil {
		_, _, err = c.Read(ctx)
	}
	if websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("a token that is revoked: %v", err)
	}
}
