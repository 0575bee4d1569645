package broker_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/infra/api/topics"
	"kennel/infra/bench"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/broker"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/proc"
	"kennel/infra/thing"
)

// partVar makes the test binary one of the processes whose memory and processor are to be seen apart: the broker, a bare listener with the same
// authorities, or clients.
const partVar = "KENNEL_BENCH_PART"

func TestMain(m *testing.M) {
	part, ok := parts[os.Getenv(partVar)]
	if !ok {
		os.Exit(m.Run())
	}
	ctx, cancel := context.WithCancel(context.Background())
	in := bufio.NewScanner(os.Stdin)
	if os.Getenv(partVar) != "clients" {
		go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }() // ends with its parent
	}
	if err := part(ctx, os.Args[1:], in); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

var parts = map[string]func(ctx context.Context, args []string, in *bufio.Scanner) error{
	"broker": func(ctx context.Context, args []string, _ *bufio.Scanner) error {
		return broker.Main(ctx, args[0], os.Stderr)
	},
	"listen":  func(ctx context.Context, args []string, _ *bufio.Scanner) error { return bareListener(ctx, args[0]) },
	"clients": func(ctx context.Context, args []string, in *bufio.Scanner) error { return idleClients(ctx, args, in) },
}

// startPart starts the test binary as a part, which ends with the benchmark.
func startPart(tb testing.TB, name string, args ...string) *bench.Program {
	tb.Helper()
	p, err := bench.Start(proc.Spec{Name: name, Path: os.Args[0], Args: args, Env: append(os.Environ(), partVar+"="+name)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Stop)
	return p
}

// startServer starts the broker or a bare listener as a process of its own and returns its address.
func startServer(tb testing.TB, b *mqtttest.Broker, name string) (*bench.Program, string) {
	tb.Helper()
	file := b.ConfigFile(tb)
	p := startPart(tb, name, file)
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	addr := b.Config.Listen
	said, err := p.Await(ctx, "listening")
	if err != nil {
		tb.Fatal(err)
	}
	if name == "listen" {
		addr = said
	}
	return p, addr
}

// bareListener is the least that a server with mutual TLS can be: it checks the client's chain, says so with one byte, and then waits for
// the end. It has the certificate and the devices' authority of a broker's configuration.
func bareListener(ctx context.Context, file string) error {
	var cfg broker.Config
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &cfg)
	}
	if err != nil {
		return err
	}
	cert, err1 := tls.LoadX509KeyPair(cfg.Cert, cfg.Key)
	devices, err2 := os.ReadFile(cfg.DeviceCA)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(devices)
	ln, err3 := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs: pool,
	})
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { ln.Close() })
	fmt.Println("listening", ln.Addr())
	for {
		conn, err := ln.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			if _, err := conn.Write([]byte{1}); err == nil { // shakes hands first
				_, _ = io.Copy(io.Discard, conn) // until the other side hangs up
			}
		}()
	}
}

// peer is a thing with a certificate.
type peer struct {
	id  thing.ID
	tls *tls.Config
}

func makePeers(tb testing.TB, b *mqtttest.Broker, n int) []peer {
	tb.Helper()
	out := make([]peer, n)
	for i := range out {
		id, err := thing.New(thing.Vector, fmt.Sprintf("%08x", 0x00b00000+i))
		if err != nil {
			tb.Fatal(err)
		}
		conf, err := b.Thing(tb, id)()
		if err != nil {
			tb.Fatal(err)
		}
		conf.ServerName = "localhost"
		out[i] = peer{id, conf}
	}
	return out
}

// savePeers writes what clients in another process need: for each thing its id, certificate and key; and the broker's authority.
func savePeers(tb testing.TB, b *mqtttest.Broker, peers []peer) string {
	tb.Helper()
	saved := savedPeers{CA: b.Server.PEM()}
	for _, p := range peers {
		key, err := x509.MarshalPKCS8PrivateKey(p.tls.Certificates[0].PrivateKey)
		if err != nil {
			tb.Fatal(err)
		}
		saved.Things = append(saved.Things,
			savedPeer{p.id, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.tls.Certificates[0].Certificate[0]}),
				pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})})
	}
	data, err := json.Marshal(saved)
	if err != nil {
		tb.Fatal(err)
	}
	file := filepath.Join(tb.TempDir(), "peers.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}

type savedPeers struct {
	CA     []byte
	Things []savedPeer
}

type savedPeer struct {
	ID        thing.ID
	Cert, Key []byte
}

func loadPeers(file string) ([]peer, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var saved savedPeers
	if err := json.Unmarshal(data, &saved); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(saved.CA)
	out := make([]peer, len(saved.Things))
	for i, s := range saved.Things {
		cert, err := tls.X509KeyPair(s.Cert, s.Key)
		if err != nil {
			return nil, err
		}
		out[i] = peer{s.ID, &tls.Config{RootCAs: roots, ServerName: "localhost", Certificates: []tls.Certificate{cert}}}
	}
	return out, nil
}

// idleClients connects until there are as many connections as each line says, and says "clients up N". Its arguments: the file of the peers, an
// address, and mqtt or tls.
func idleClients(ctx context.Context, args []string, in *bufio.Scanner) error {
	peers, err := loadPeers(args[0])
	if err != nil {
		return err
	}
	connect := map[string]func(peer, context.Context, string) (net.Conn, error){"mqtt": peer.login, "tls": peer.handshake}[args[2]]
	for have := 0; in.Scan(); {
		want, err := strconv.Atoi(in.Text())
		if err != nil || want < have || want > len(peers) {
			return fmt.Errorf("line %.40q: want a number from %d to %d", in.Text(), have, len(peers))
		}
		conns, _, err := crowd(ctx, peers[have:want], 16, func(ctx context.Context, p peer) (net.Conn, error) { return connect(p, ctx, args[1]) })
		if err != nil {
			return err
		}
		for _, c := range conns {
			go func() { _, _ = io.Copy(io.Discard, c) }() // as an agent waits for messages; ends with this process
		}
		have = want
		fmt.Println("clients up", have)
	}
	return nil
}

// loginTime bounds one login or handshake, on a machine that is busy with many.
const loginTime = time.Minute

// handshake connects to a bare listener; its one byte says that the listener has checked our certificate.
func (p peer) handshake(ctx context.Context, addr string) (net.Conn, error) {
	return p.dial(ctx, addr, func(conn net.Conn) error {
		_, err := io.ReadFull(conn, make([]byte, 1))
		return err
	})
}

// login connects to a broker and subscribes as a robot does.
func (p peer) login(ctx context.Context, addr string) (net.Conn, error) {
	return p.dial(ctx, addr, func(conn net.Conn) error {
		if _, err := conn.Write(appendConnect(nil, string(p.id), 1200)); err != nil {
			return err
		}
		if err := expectPacket(conn, packetConnack, 1); err != nil {
			return fmt.Errorf("CONNECT: %w", err)
		}
		if _, err := conn.Write(appendSubscribe(nil, topics.ThingFilters(p.id)...)); err != nil {
			return err
		}
		if err := expectPacket(conn, packetSuback, 2); err != nil {
			return fmt.Errorf("SUBSCRIBE: %w", err)
		}
		return nil
	})
}

func (p peer) dial(ctx context.Context, addr string, rest func(net.Conn) error) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	conn, err := (&tls.Dialer{Config: p.tls}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.id, err)
	}
	deadline, _ := ctx.Deadline() // it has one
	if err := errors.Join(conn.SetDeadline(deadline), rest(conn), conn.SetDeadline(time.Time{})); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", p.id, err)
	}
	return conn, nil
}

// crowd connects all peers, so many at once, and returns their connections and how long it took. On error none is open.
func crowd(ctx context.Context, peers []peer, atOnce int, connect func(context.Context, peer) (net.Conn, error)) ([]net.Conn, time.Duration, error) {
	conns := make([]net.Conn, len(peers))
	start := time.Now()
	_, err := bench.Many(len(peers), atOnce, func(i int) (err error) {
		conns[i], err = connect(ctx, peers[i])
		return err
	})
	took := time.Since(start)
	if err != nil {
		closeAll(conns)
		return nil, 0, err
	}
	return conns, took, nil
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		if c != nil {
			c.Close()
		}
	}
}

// inOrder connects all peers, loginAtOnce at a time, lets them go, and returns how long the connecting took. It begins and ends with a quiet server.
func inOrder(ctx context.Context, server *bench.Program, addr string, peers []peer,
	connect func(peer, context.Context, string) (net.Conn, error)) (time.Duration, error) {
	if err := bench.Quiet(ctx, server.Pid()); err != nil { // the connections of the turn before are gone
		return 0, err
	}
	conns, took, err := crowd(ctx, peers, loginAtOnce, func(ctx context.Context, p peer) (net.Conn, error) { return connect(p, ctx, addr) })
	closeAll(conns)
	return took, errors.Join(err, bench.Quiet(ctx, server.Pid()))
}

const (
	loginCount  = 1500 // of one turn
	loginAtOnce = 32
)

// BenchmarkLoginsBesideHandshakes lets robots connect with mutual TLS, CONNECT and SUBSCRIBE, beside bare mutual-TLS handshakes of the same clients
// with a listener that has the same authorities. What the clients cost is in both.
func BenchmarkLoginsBesideHandshakes(b *testing.B) { loginsBesideHandshakes(b) }

func TestLoginsBesideHandshakes(t *testing.T) { loginsBesideHandshakes(t) }

func loginsBesideHandshakes(tb testing.TB) {
	b := mqtttest.New(tb)
	server, addr := startServer(tb, b, "broker")
	bare, bareAddr := startServer(tb, b, "listen")
	peers := makePeers(tb, b, bench.Part(tb, loginCount))
	rate := func(server *bench.Program, addr string,
		connect func(peer, context.Context, string) (net.Conn, error)) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			took, err := inOrder(ctx, server, addr, peers, connect)
			return float64(len(peers)) / took.Seconds(), err
		}
	}
	bench.Beside(tb, bench.Line{Name: "logins", Unit: "logins/s", Bound: 0.5,
		Note: "mutual-TLS CONNECT and SUBSCRIBE at the embedded broker; reference: bare mutual-TLS handshakes; each server is a process of its own"},
		rate(server, addr, peer.login), rate(bare, bareAddr, peer.handshake))
}

const (
	stormThings = 3000
	stormLimit  = 5 * time.Minute
)

// BenchmarkStormBesideHandshakes lets robots that all lost their broker come back in one moment, with the client, the patience and the back-off of
// a robot (infra/mqtt), until the last is in, beside as many bare mutual-TLS handshakes in good order.
func BenchmarkStormBesideHandshakes(b *testing.B) { stormBesideHandshakes(b) }

func TestStormBesideHandshakes(t *testing.T) {
	bench.Soak(t)
	stormBesideHandshakes(t)
}

func stormBesideHandshakes(tb testing.TB) {
	b := mqtttest.New(tb)
	server, _ := startServer(tb, b, "broker")
	bare, bareAddr := startServer(tb, b, "listen")
	peers := makePeers(tb, b, bench.Part(tb, stormThings))
	var failed []float64
	var pairs []bench.Pair
	bench.Turns(tb, func() error {
		took, tries, err := comeBack(tb.Context(), b.URL, peers)
		if err != nil {
			return err
		}
		if err := bench.Quiet(tb.Context(), server.Pid()); err != nil { // the broker has seen them go
			return err
		}
		reference, err := inOrder(tb.Context(), bare, bareAddr, peers, peer.handshake)
		failed, pairs = append(failed, float64(tries)), append(pairs, bench.Pair{Value: took.Seconds(), Reference: reference.Seconds()})
		return err
	})
	bench.Report(tb, bench.Line{Name: "storm", Unit: "s", Less: true,
		Note: fmt.Sprintf("%d robots' clients that connect in one moment, until all are in (tries that failed, median: %.0f); reference: as "+
			"many bare mutual-TLS handshakes, %d at once",
			len(peers), bench.Median(failed), loginAtOnce)}, pairs)
}

// comeBack lets all peers connect at once and returns how long it took until the last was in, and how many tries failed.
func comeBack(ctx context.Context, url string, peers []peer) (took time.Duration, failed int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, stormLimit)
	defer cancel()
	var in, downs atomic.Int64
	all := make(chan struct{})
	clients := make([]*mqtt.Client, len(peers))
	for i, p := range peers {
		first := sync.OnceFunc(func() {
			if in.Add(1) == int64(len(peers)) {
				close(all)
			}
		})
		clients[i], err = mqtt.New(mqtt.Config{URL: url, ClientID: string(p.id), TLS: func() (*tls.Config, error) { return p.tls, nil },
			OnConnect: func(context.Context, *mqtt.Client) error { first(); return nil },
			OnDown:    func(error) { downs.Add(1) }})
		if err != nil {
			return 0, 0, err
		}
	}
	var wg sync.WaitGroup
	start := time.Now()
	for _, c := range clients {
		wg.Go(func() { _ = c.Run(ctx) }) // nil by contract
	}
	select {
	case <-all:
		took = time.Since(start)
	case <-ctx.Done():
		err = fmt.Errorf("%d of %d robots are in after %v, %d tries failed: %w", in.Load(), len(peers), time.Since(start).Round(time.Second),
			downs.Load(), context.Cause(ctx))
	}
	failed = downs.Load()
	cancel()
	wg.Wait()
	return took, failed, err
}

// memorySteps are the numbers of connections at which memory is read.
var memorySteps = []int{500, 1000, 1500, 2000}

// BenchmarkMemoryBesideListener is the slope of resident memory over idle connections: of the broker, beside a bare TLS listener; and of the client
// process that holds the other ends.
func BenchmarkMemoryBesideListener(b *testing.B) { memoryBesideListener(b) }

func TestMemoryBesideListener(t *testing.T) {
	bench.Soak(t)
	memoryBesideListener(t)
}

func memoryBesideListener(tb testing.TB) {
	b := mqtttest.New(tb)
	saved := savePeers(tb, b, makePeers(tb, b, bench.Part(tb, memorySteps[len(memorySteps)-1])))
	var atServer, atClient []bench.Pair
	bench.Turns(tb, func() error {
		server, addr := startServer(tb, b, "broker")
		s, c, err := slopes(tb, server, saved, addr, "mqtt")
		server.Stop()
		if err != nil {
			return err
		}
		bare, addr := startServer(tb, b, "listen")
		bs, bc, err := slopes(tb, bare, saved, addr, "tls")
		bare.Stop()
		atServer, atClient = append(atServer, bench.Pair{Value: s, Reference: bs}), append(atClient, bench.Pair{Value: c, Reference: bc})
		return err
	})
	bench.Report(tb, bench.Line{Name: "memory/broker", Unit: "KiB/connection", Less: true,
		Note: "slope of the broker's resident memory over 500 to 2000 logged-in, idle things; reference: a bare mutual-TLS listener"}, atServer)
	bench.Report(tb, bench.Line{Name: "memory/client", Unit: "KiB/connection", Less: true,
		Note: "the same of the process with the other ends: a TLS connection and a goroutine each, no agent"}, atClient)
}

// slopes returns KiB for each further connection, of the server and of the clients.
func slopes(tb testing.TB, server *bench.Program, saved, addr, kind string) (atServer, atClient float64, err error) {
	ctx := tb.Context()
	clients := startPart(tb, "clients", saved, addr, kind)
	defer clients.Stop()
	var n, s, c []float64
	for _, step := range memorySteps {
		step = bench.Part(tb, step)
		if _, err := clients.Ask(ctx, strconv.Itoa(step), "clients up "); err != nil {
			return 0, 0, err
		}
		serverRSS, err1 := bench.SettledRSS(ctx, server.Pid())
		clientRSS, err2 := bench.SettledRSS(ctx, clients.Pid())
		if err := errors.Join(err1, err2); err != nil {
			return 0, 0, err
		}
		n, s, c = append(n, float64(step)), append(s, serverRSS), append(c, clientRSS)
	}
	return bench.Slope(n, s), bench.Slope(n, c), nil
}
