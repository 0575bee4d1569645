package gateway

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/time/rate"

	"kennel/edge/agent/host"
	"kennel/edge/body/rawfd"
	"kennel/edge/gateway/scratch"
	"kennel/edge/mic"
	"kennel/edge/mind/mindlink"
	"kennel/edge/sight"
	"kennel/infra/admission"
	"kennel/infra/api/robotpb"
	"kennel/infra/api/status"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/kit/kitgrpc"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/mdns"
	"kennel/infra/protomux"
	"kennel/infra/runner"
	"kennel/infra/tlsserver"
)

// Client is who calls, as its token says.
type Client struct {
	Name string
	May  func(right string) bool // nil: everything
}

// Rights of a client token. Each call and each order needs one.
const (
	Look = "look" // what the robot measures, and what happens
	Talk = "talk" // lights, sounds and speech
	Move = "move" // everything else that is written

	Camera = "camera" // pictures, and how they are taken

	Change = "settings" // the robot's settings

	Hear = "hear" // the microphones
)

var rights = []string{Look, Talk, Move, Camera, Change, Hear}

// Config configures a Gateway. All is required that does not say what nil means.
type Config struct {
	// Addr is where it listens, as host:port, or Anywhere. With port 0 it takes the port of its run before, if that is free.
	Addr string
	// Certificate returns the robot's; false while it is not made yet.
	Certificate func() (tls.Certificate, bool)
	// Client returns whose token bearer is; false: it is unknown.
	Client func(ctx context.Context, bearer string) (Client, bool)
	Name   func() string // the robot's; "" while it has none
	// Exchange turns a session of the owner's account into a client token (VEC-AUTH-05); nil: this robot takes no session.
	Exchange func(ctx context.Context, session logging.Secret, client, app string) (logging.Secret, error)
	// Page is the species' part of the robot's own page; nil: none.
	Page fs.FS
	// Hand touches a simulated body; nil: the robot is real.
	Hand Hand
	// Settings are the documents of which programs read and change the one with the robot's settings.
	Settings Documents
	// Ears are the robot's microphones; nil: it has none that programs may hear.
	Ears *mic.Tap
	// Played is called when an animation begins that a program asked for, and must not block; nil: nothing is.
	Played func()
}

// Anywhere is port 443 of every address, and 8443 where that is not permitted or taken.
const Anywhere = "any"

// addrFile remembers the port between runs, and tells other programs of the machine where the gateway is.
const addrFile = "run/kennel-agent/gateway"

// Bounds; own defaults.
const (
	maxBody       = 64 << 10 // bytes of a request
	callsASecond  = 200      // of one client; reads cost the loop nothing, so they are not counted
	wrongASecond  = 10       // wrong tokens, of all strangers
	wrongAtOnce   = 50
	grace         = time.Second
	maxClients    = 256 // whose use is counted
	maxClientName = 64
	maxStreams    = 8 // of one client
	beat          = time.Second
)

// Gateway serves programs. Safe for concurrent use.
type Gateway struct {
	host.Robot
	cfg       Config
	core      *peer // looks, for all clients
	peers     *peers
	leases    *leases
	events    *hub
	orders    *orders
	now       *present
	lookup    lookup
	flows     flows
	eyes      eyes
	mind      *mindlink.Client
	programs  *programs
	used      *uses
	strangers *rate.Limiter
	facades   []Facade
	reports   reports

	mu     sync.Mutex
	uses   map[[sha256.Size]byte]*use // by a hash of the token
	listen string                     // where it listens; "" while it does not
}

// New returns a gateway that serves nothing before its part runs.
func New(h *host.Host, cfg Config) *Gateway {
	g := &Gateway{Robot: h.Robot, cfg: cfg, events: &hub{}, orders: &orders{}, strangers: rate.NewLimiter(wrongASecond, wrongAtOnce), uses: map[[sha256.Size]byte]*use{}}
	g.core = newPeer(h.Dir, "gateway", g.hear)
	g.now = &present{core: g.core.Client}
	g.mind = mindlink.NewClient(h.Dir)
	g.eyes.path = filepath.Join(h.Dir, sight.SocketPath)
	g.peers = &peers{dir: h.Dir, began: g.orders.began, free: make(chan struct{}, maxLeases)}
	g.leases = &leases{all: map[string]*lease{}}
	g.Offer(Facade{Routes: scratch.Routes(cfg.Page)})
	g.Offer(Facade{Routes: g.handRoutes()})
	var err error
	if g.programs, err = openPrograms(h.Root, h.Now); err != nil {
		h.Log.Error("programs that were let in at the robot not read; let them in again", logging.Err, err)
	}
	if g.used, err = openUses(h.Root, h.Now, h.Changed); err != nil {
		h.Log.Warn("what programs did before is not known", logging.Err, err)
	}
	return g
}

// Part is the gateway as a part of agentd.
func (g *Gateway) Part() host.Part {
	return host.Part{
		Name: "gateway",
		Services: []runner.Service{
			{Name: "gateway core", Run: g.core.run},
			{Name: "gateway", Run: g.run},
			{Name: "program uses", Run: g.keepUses},
		},
		Local: g.requests(),
		Fill:  func(m *status.Message) { m.Gateway, m.Uses = g.Addr(), g.used.list(toldUses) },
	}
}

// Addr returns where programs reach the robot, as host:port; "" while it does not listen.
func (g *Gateway) Addr() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.listen
}

// run listens and serves until ctx ends.
func (g *Gateway) run(ctx context.Context) error {
	raw, err := g.open()
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	// A handshake takes a robot's processor for milliseconds: half of them at most, so that strangers do not hold up programs that are connected.
	door, err := admission.New(admission.Config{Log: g.Log, Handshakes: max(1, runtime.GOMAXPROCS(0)/2)})
	if err != nil {
		return errors.Join(err, raw.Close())
	}
	conf := tlsserver.Config()
	conf.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		c, ok := g.cfg.Certificate()
		if !ok {
			return nil, errors.New("the robot's certificate is not made yet; it takes a few seconds after the first start")
		}
		return &c, nil
	}
	port := protomux.Split(door.Listen("gateway", rawfd.Listen(raw)), conf, g.Log)
	defer port.Close()
	defer g.leases.end()
	defer g.peers.end()
	g.tell(raw.Addr())
	defer g.tell(nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if everywhere(raw.Addr().String()) {
		wg.Go(func() { g.announce(ctx) })
	}
	calls := kitgrpc.NewServer(conf, g.Log)
	calls.RegisterService(g.service(), g)
	g.begin(ctx, calls, &wg)
	wg.Go(func() { _ = kitgrpc.Run(ctx, calls, port.GRPC, grace) }) // what ends the port ends run too
	g.serve(ctx, &wg, port.HTTPS, g.handler())
	g.serve(ctx, &wg, port.Plain, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, errs.Coded(errs.Invalid, "tls", "this port speaks TLS: want https"))
	}))
	return port.Run(ctx)
}

func (g *Gateway) serve(ctx context.Context, wg *sync.WaitGroup, l net.Listener, h http.Handler) {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ConnState: admission.State,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	wg.Go(func() { _ = srv.Serve(l) })
	context.AfterFunc(ctx, func() { _ = srv.Close() }) // streams end with ctx; a call that waits for a motion would hold agentd up
}

// open listens at the address of the configuration, or at the first that may be had.
func (g *Gateway) open() (l net.Listener, err error) {
	addrs := []string{g.cfg.Addr}
	switch host, port, _ := net.SplitHostPort(g.cfg.Addr); {
	case g.cfg.Addr == Anywhere:
		addrs = []string{":443", ":8443"}
	case port == "0":
		if b, err := g.Root.ReadFile(addrFile); err == nil {
			if _, before, err := net.SplitHostPort(strings.TrimSpace(string(b))); err == nil {
				addrs = []string{net.JoinHostPort(host, before), g.cfg.Addr}
			}
		}
	}
	for _, a := range addrs {
		if l, err = net.Listen("tcp", a); err == nil {
			return l, nil
		}
	}
	return nil, err
}

// tell says where the gateway is; nil: nowhere any longer.
func (g *Gateway) tell(at net.Addr) {
	addr := ""
	if at != nil {
		addr = reachable(at.String())
		_ = g.Root.MkdirAll("run/kennel-agent", 0o700)
		if err := g.Root.WriteFile(addrFile, []byte(addr+"\n"), 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
			g.Log.Warn("address of the gateway not recorded", logging.Err, err)
		}
		g.Log.Info("gateway for programs listens", logging.Addr, addr)
	}
	g.mu.Lock()
	g.listen = addr
	g.mu.Unlock()
	g.Changed()
}

// everywhere reports whether an address is every one of this machine.
func everywhere(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsUnspecified()
}

// announce gives the robot a name in its network, such as vector-a1b2.local, until ctx ends: its address may change, its name does not.
func (g *Gateway) announce(ctx context.Context) {
	for failed := false; ; {
		name := strings.ToLower(g.cfg.Name())
		if name != "" {
			r, err := mdns.Listen(name+".local", g.Log)
			if err == nil {
				err = r.Run(ctx)
			}
			if err != nil && !failed {
				failed = true
				g.Log.Warn("name of the robot not announced; its address is in the robot's file", "name", name, logging.Err, err)
			}
		}
		if backoff.Sleep(ctx, announceEvery) != nil {
			return
		}
	}
}

// announceEvery is how often it is tried, if the robot has no name yet or the network is not there.
const announceEvery = time.Second

// reachable returns an address for others of one that is listened on.
func reachable(addr string) string {
	if !everywhere(addr) {
		return addr
	}
	_, port, _ := net.SplitHostPort(addr) // it is one
	all, _ := net.InterfaceAddrs()        // without any it is the machine itself
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return net.JoinHostPort(n.IP.String(), port)
		}
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// caller is a client during a call.
type caller struct {
	Client
	bearer string
	*use
}

// use counts the calls and streams of a client.
type use struct {
	rate     *rate.Limiter
	pictures *rate.Limiter // single ones
	streams  atomic.Int32
}

func (c caller) may(right string) bool { return right == "" || c.May == nil || c.May(right) }

// who checks the Authorization of a call and the right that it needs. Errors are Unauthenticated and Denied, and Exhausted for one of many strangers.
func (g *Gateway) who(ctx context.Context, authorization, right string) (caller, error) {
	bearer, ok := strings.CutPrefix(authorization, "Bearer ")
	if !ok || bearer == "" {
		return caller{}, errs.Coded(errs.Unauthenticated, "token_missing", "want a client token, as authorization: Bearer TOKEN")
	}
	client, ok := g.programs.client(bearer)
	if !ok {
		client, ok = g.cfg.Client(ctx, bearer)
	}
	if !ok {
		if !g.strangers.Allow() {
			return caller{}, tooManyAttempts()
		}
		return caller{}, errs.Coded(errs.Unauthenticated, "token_wrong", "this robot does not know the token, or its time is over: its owner makes another")
	}
	c := caller{Client: client, bearer: bearer}
	if !c.may(right) {
		return c, missing(right)
	}
	key := sha256.Sum256([]byte(bearer))
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.use, ok = g.uses[key]; !ok {
		if len(g.uses) == maxClients {
			clear(g.uses)
		}
		c.use = &use{rate: rate.NewLimiter(callsASecond, callsASecond), pictures: rate.NewLimiter(mostPictures, mostPictures)}
		g.uses[key] = c.use
	}
	return c, nil
}

func tooManyAttempts() error {
	return errs.Coded(errs.Exhausted, "too_many_attempts", "too many calls of strangers; try again in a second")
}

// authenticate lets a program in that has a session of the owner's account (part of VEC-SEC-06).
func (g *Gateway) authenticate(ctx context.Context, _ caller, q *robotpb.AuthenticateRequest) (*robotpb.AuthenticateResponse, error) {
	if n := len(q.ClientName); n == 0 || n > maxClientName || !utf8.ValidString(q.ClientName) {
		return nil, invalid("client_name: %d bytes, want 1 to %d of UTF-8", n, maxClientName)
	}
	if g.cfg.Exchange == nil {
		return nil, errs.Coded(errs.Invalid, "unable", "this robot takes no session: its owner makes a token for the program")
	}
	token, err := g.cfg.Exchange(ctx, logging.Secret(q.Session), q.ClientName, "SDK")
	switch kind := errs.KindOf(err); {
	case err == nil:
	case kind == errs.Unavailable, kind == errs.Internal:
		return nil, errs.Coded(errs.Unavailable, "unavailable", "the cloud, which knows sessions, does not answer: %w", err)
	default:
		return nil, errs.Coded(errs.Unauthenticated, "session_wrong", "the session is none of the robot's owner, or its time is over")
	}
	return &robotpb.AuthenticateResponse{Token: token.Reveal()}, nil
}

func missing(right string) error {
	return errs.Coded(errs.Denied, "right_missing", "the token lacks the right %q: its owner makes one that has it", right)
}

// still returns an error once the client's token is not good any longer.
func (g *Gateway) still(ctx context.Context, c caller, right string) error {
	_, err := g.who(ctx, "Bearer "+c.bearer, right)
	return err
}

// certificatePEM returns a certificate as programs read it.
func certificatePEM(c tls.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}))
}

// writeError answers an HTTP request with what is wrong.
func writeError(w http.ResponseWriter, err error) {
	err = known(err)
	if d := errs.RetryOf(err); d > 0 {
		w.Header().Set("Retry-After", "1")
	}
	kithttp.WriteJSON(w, kithttp.StatusOf(errs.KindOf(err)), problem{errs.CodeOf(err), errs.Public(err)})
}

// problem is an error as JSON.
type problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}
