package vectorsdk_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"kennel/edge/agent/docs"
	"kennel/edge/agent/features"
	"kennel/edge/agent/health/conncheck"
	"kennel/edge/agent/host"
	"kennel/edge/agent/intents"
	"kennel/edge/agent/ownership/gatewaycert"
	"kennel/edge/agent/photos"
	"kennel/edge/body/monoclock"
	"kennel/edge/core/control"
	"kennel/edge/core/corelink"
	"kennel/edge/core/coreserver/coreservertest"
	"kennel/edge/core/coreserver/robotdtest"
	"kennel/edge/gateway"
	"kennel/edge/mind/mindlink"
	"kennel/edge/robot"
	"kennel/edge/vectorsdk"
	"kennel/infra/api/events"
	"kennel/infra/api/robotpb"
	"kennel/infra/api/vectorpb"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/runner"
	"kennel/infra/testwait"
	"kennel/infra/thing"
	"kennel/jdocs"
)

const patience = 10 * time.Second

// desk is a robot with a gateway and the original's interface on it.
type desk struct {
	body    *coreservertest.Body
	lose    func() // ends robotd
	dir     string // the robot's folder
	addr    string
	conf    *tls.Config
	cert    tls.Certificate
	docs    *docs.Agent
	gate    *features.Set
	sdk     *vectorsdk.Facade
	album   *photos.Album
	intents *intents.Intents
	shelf   *shelf
	updates updates
	check   check
	felt    chan mindlink.Feel // what the mood was told
	private atomic.Bool        // the owner does not allow logs to be sent
}

// shelf is a cloud with documents, of a robot that has an owner.
type shelf struct {
	mu   sync.Mutex
	docs map[jdocs.Name]jdocs.Doc
	wait chan struct{} // a write waits until it is closed; nil: it does not
	busy chan struct{} // a write says here that it waits
}

func (s *shelf) Read(_ context.Context, items []jdocs.Item) (out []jdocs.ReadResult, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range items {
		d := s.docs[it.Name]
		status := jdocs.Changed
		if d.Version == 0 {
			status = jdocs.NotFound
		}
		out = append(out, jdocs.ReadResult{Status: status, Doc: d})
	}
	return out, nil
}

func (s *shelf) Write(_ context.Context, name jdocs.Name, d jdocs.Doc) (jdocs.WriteResult, error) {
	s.mu.Lock()
	wait := s.wait
	s.mu.Unlock()
	if wait != nil && name == jdocs.AccountSettings {
		s.busy <- struct{}{}
		<-wait
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.docs[name].Version; d.Version != now {
		return jdocs.WriteResult{Status: jdocs.RejectedBadDocVersion, Latest: now}, nil
	}
	d.Version++
	s.docs[name] = d
	return jdocs.WriteResult{Latest: d.Version}, nil
}

func (s *shelf) Revision(context.Context, jdocs.Name, uint64) (jdocs.Doc, bool, bool, error) {
	return jdocs.Doc{}, false, false, nil
}

// get returns a document as the cloud has it.
func (s *shelf) get(name jdocs.Name) jdocs.Doc {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.docs[name]
}

func only(rights ...string) func(string) bool {
	return func(r string) bool { return slices.Contains(rights, r) }
}

// newDesk's robot has more parts beside the toy's.
func newDesk(t testing.TB, more ...robot.Part) *desk {
	t.Helper()
	return newDeskOn(t, func(string) {}, more...)
}

// newDeskOn is newDesk with files that were there before.
func newDeskOn(t testing.TB, before func(dir string), more ...robot.Part) *desk {
	t.Helper()
	dir := t.TempDir()
	before(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	d := &desk{dir: dir}
	d.body, d.lose = robotdtest.Start(t, dir, more...)
	clients := map[string]gateway.Client{"all": {Name: "square"}, "other": {Name: "fighter"}, "look": {Name: "eyes", May: only(gateway.Look)},
		"camera": {Name: "painter", May: only(gateway.Camera)}}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	plate, err := gatewaycert.Open(gatewaycert.Config{Root: root, Species: thing.Vector, Now: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	h := host.New(host.Robot{Root: root, Dir: dir, Thing: "vic:00e20100", OS: "2.1.0.7", Log: log, Changed: func() {}, Now: time.Now})
	g := gateway.New(h, gateway.Config{Addr: "127.0.0.1:0", Certificate: func() (tls.Certificate, bool) { return plate.TLSCertificate(), true },
		Name: plate.Name, Client: func(_ context.Context, bearer string) (gateway.Client, bool) { c, ok := clients[bearer]; return c, ok }})
	d.shelf = &shelf{docs: map[jdocs.Name]jdocs.Doc{}, busy: make(chan struct{})}
	if d.docs, err = docs.New(docs.Config{Settings: jdocs.RobotSettings, Root: root, Remote: d.shelf, Log: log, OnChanged: func(c docs.Change) { d.sdk.DocumentChanged(c) }}); err != nil {
		t.Fatal(err)
	}
	if d.gate, err = features.Open(root); err != nil {
		t.Fatal(err)
	}
	if d.album, err = photos.Open(root, ""); err != nil {
		t.Fatal(err)
	}
	d.felt = make(chan mindlink.Feel, 1000)
	d.sdk = vectorsdk.New(vectorsdk.Config{Gateway: g, Root: root, Feel: func(x mindlink.Feel) { d.felt <- x }, Log: log, Photos: d.album, Intents: func() vectorsdk.Intents { return d.intents }, CubeScan: time.Millisecond, OS: "2.1.0.7", Build: "kennel", Documents: d.docs.Reach(), Features: d.gate.List,
		Updates: &d.updates, Check: func(context.Context) conncheck.Report { return d.check.run() }, SendLogs: func(_ context.Context, reason string) (string, error) {
			if d.private.Load() {
				return "", errs.New(errs.Denied, "the owner does not allow it")
			}
			return "victor-" + reason, nil
		},
		Exchange: func(_ context.Context, session logging.Secret, client, app string) (logging.Secret, error) {
			if session.Reveal() != "session" || client != "my program" || app != "SDK" {
				return "", errs.New(errs.Denied, "no")
			}
			return "token", nil
		}})
	g.Offer(d.sdk.Part())
	if d.intents, err = intents.New(intents.Config{Root: root, Core: g.Core(), Docs: d.docs, Settings: jdocs.RobotSettings, Emit: func(events.Event) {},
		Keep: func(context.Context, events.Event) error { return nil }, Changed: func() {}, Local: func() (time.Time, bool) { return time.Now(), true },
		Now: time.Now, Mono: monoclock.Now, Boot: "boot", Log: log, Photograph: d.sdk.TakePhoto, Heard: d.sdk.IntentHeard}); err != nil {
		t.Fatal(err)
	}
	d.docs.Connected()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	services := append(g.Part().Services, runner.Service{Name: "documents", Run: d.docs.Run}, runner.Service{Name: "intents", Run: d.intents.Run})
	go func() { ended <- runner.Run(ctx, log, runner.Config{}, services...) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	testwait.Until(t, patience, "the gateway", testwait.Holds(func() bool { return g.Addr() != "" }))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(plate.PEM())
	d.cert, d.addr, d.conf = plate.TLSCertificate(), g.Addr(), &tls.Config{RootCAs: pool, ServerName: plate.Name()}
	r := robotpb.NewRobotClient(d.conn(t))
	testwait.Until(t, patience, "robotd", func() error { _, err := r.Describe(as(t, "look"), &robotpb.DescribeRequest{}); return err })
	testwait.Until(t, patience, "a report of robotd", func() error {
		_, err := vectorpb.NewExternalInterfaceClient(d.conn(t)).BatteryState(as(t, "look"), &vectorpb.BatteryStateRequest{})
		return err
	})
	d.intents.Handle(&corelink.Hello{}) // as the host tells it
	return d
}

// conn is a connection of a program's own.
func (d *desk) conn(t testing.TB) *grpc.ClientConn {
	t.Helper()
	return d.connTo(t, d.addr)
}

func (d *desk) connTo(t testing.TB, addr string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient(addr, grpc.WithTransportCredentials(credentials.NewTLS(d.conf)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (d *desk) dial(t testing.TB) vectorpb.ExternalInterfaceClient {
	return vectorpb.NewExternalInterfaceClient(d.conn(t))
}

// as returns the context of a call with a token; "": without. A call or stream that is not answered fails its test, which would wait for it for ever.
func as(t testing.TB, token string) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
	t.Cleanup(cancel)
	if token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

// post makes a call over HTTPS.
func (d *desk) post(t testing.TB, token, path, body string) (status int, kind, answer string) {
	t.Helper()
	resp := d.send(t, http.MethodPost, token, path, body)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(b)
}

func (d *desk) send(t testing.TB, method, token, path, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(as(t, ""), method, "https://"+d.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: d.conf.Clone(), DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// pilot is a program with a control stream.
type pilot struct {
	vectorpb.ExternalInterfaceClient
	t      testing.TB
	ctx    context.Context
	stream grpc.BidiStreamingClient[vectorpb.BehaviorControlRequest, vectorpb.BehaviorControlResponse]
	leave  func()
}

func (d *desk) pilot(t testing.TB, token string) *pilot {
	t.Helper()
	ctx, cancel := context.WithCancel(as(t, token))
	p := &pilot{d.dial(t), t, ctx, nil, cancel}
	var err error
	if p.stream, err = p.BehaviorControl(ctx); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *pilot) ask(priority vectorpb.ControlRequest_Priority) {
	p.t.Helper()
	if err := p.stream.Send(&vectorpb.BehaviorControlRequest{RequestType: &vectorpb.BehaviorControlRequest_ControlRequest{
		ControlRequest: &vectorpb.ControlRequest{Priority: priority}}}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pilot) release() {
	p.t.Helper()
	if err := p.stream.Send(&vectorpb.BehaviorControlRequest{RequestType: &vectorpb.BehaviorControlRequest_ControlRelease{
		ControlRelease: &vectorpb.ControlRelease{}}}); err != nil {
		p.t.Fatal(err)
	}
}

// hears returns the next answer that is no keep-alive: granted, lost, reserved_lost, or the end of the stream.
func (p *pilot) hears() string {
	p.t.Helper()
	for {
		m, err := p.stream.Recv()
		if err != nil {
			return err.Error()
		}
		switch m.ResponseType.(type) {
		case *vectorpb.BehaviorControlResponse_ControlGrantedResponse:
			return "granted"
		case *vectorpb.BehaviorControlResponse_ControlLostEvent:
			return "lost"
		case *vectorpb.BehaviorControlResponse_ReservedControlLostEvent:
			return "reserved_lost"
		}
	}
}

func (p *pilot) expects(want string) {
	p.t.Helper()
	if got := p.hears(); got != want {
		p.t.Fatalf("the control stream says %q, want %q", got, want)
	}
}

// granted is a pilot with control.
func (d *desk) granted(t testing.TB, token string) *pilot {
	t.Helper()
	p := d.pilot(t, token)
	p.ask(vectorpb.ControlRequest_DEFAULT)
	p.expects("granted")
	return p
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
func (d *desk) moved(t testing.TB, n int) (o control.Order) {
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
