package lives

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"kennel/certs/ca"
	"kennel/cmd/e2e/housetest"
	"kennel/infra/api/large"
	"kennel/infra/api/topics"
)

// tap ends TLS on both sides of a robot's wires, as the cloud toward the robot and as the robot toward the cloud, and keeps what the robot said.
type tap struct {
	t    *testing.T
	cert tls.Certificate // the cloud's
	root string          // of the robot
	pool *x509.CertPool

	mu    sync.Mutex
	heard []saying
}

// saying is one message or request of the robot's.
type saying struct {
	what string // "up/das", "req/owner/status", or "PUT /v1/files/logs/a.gz"
	body []byte
}

// tapped is the robot's end of a connection; what is read from it is written to log.
type tapped struct {
	net.Conn
	log *io.PipeWriter
}

func (c tapped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		_, _ = c.log.Write(b[:n]) // the tap reads to the end
	}
	return n, err
}

func (c tapped) Close() error {
	_ = c.log.Close() // it returns nil
	return c.Conn.Close()
}

// newTap returns a tap for a robot that will have its files below root.
func newTap(h *housetest.House, root string) *tap {
	h.T.Helper()
	a, err := ca.Load(filepath.Join(h.Dir, "ca"))
	if err != nil {
		h.T.Fatal(err)
	}
	pair, err := a.IssueServer([]string{"localhost", "127.0.0.1"}, time.Hour)
	if err != nil {
		h.T.Fatal(err)
	}
	p := &tap{t: h.T, root: root, pool: x509.NewCertPool()}
	p.pool.AppendCertsFromPEM(a.Root())
	if p.cert, err = pair.TLS(); err != nil {
		h.T.Fatal(err)
	}
	return p
}

// end makes the two connections of which the robot and the cloud see one each.
func (p *tap) end(near net.Conn, target string) (net.Conn, net.Conn, error) {
	var offered []string
	robot := tls.Server(near, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		offered = hello.SupportedProtos
		c := &tls.Config{Certificates: []tls.Certificate{p.cert}, NextProtos: slices.DeleteFunc(slices.Clone(offered), func(s string) bool { return s == large.ALPN })}
		if slices.Contains(offered, large.ALPN) {
			c.ClientAuth = tls.RequestClientCert
		}
		return c, nil
	}})
	if err := robot.Handshake(); err != nil {
		return nil, nil, err
	}
	conf := &tls.Config{RootCAs: p.pool, ServerName: "localhost", NextProtos: offered}
	if pair, err := tls.LoadX509KeyPair(filepath.Join(p.root, "persist/kennel/device.crt"), filepath.Join(p.root, "persist/kennel/device.key")); err == nil {
		conf.Certificates = []tls.Certificate{pair} // before it has one it shows none
	}
	cloud, err := tls.Dial("tcp", target, conf)
	if err != nil {
		return nil, nil, err
	}
	from, to := io.Pipe()
	go p.listen(from)
	return tapped{robot, to}, cloud, nil
}

// listen notes what comes over one connection.
func (p *tap) listen(from *io.PipeReader) {
	defer func() { _, _ = io.Copy(io.Discard, from) }()
	r := bufio.NewReader(from)
	read := readHTTP
	first, err := r.Peek(1)
	if err == nil && first[0] == packets.Connect<<4 {
		read = readMQTT
	}
	for err == nil {
		var said saying
		said, err = read(r)
		if said.what != "" {
			p.mu.Lock()
			p.heard = append(p.heard, said)
			p.mu.Unlock()
		}
	}
}

func readMQTT(r *bufio.Reader) (saying, error) {
	pk, err := packets.ReadPacket(r)
	m, ok := pk.(*packets.PublishPacket)
	if err != nil || !ok {
		return saying{}, err
	}
	at, err := topics.Parse(m.TopicName)
	if err != nil {
		return saying{what: m.TopicName, body: m.Payload}, nil
	}
	_, rest, _ := strings.Cut(at.String(), string(at.Thing)+"/")
	return saying{rest, m.Payload}, nil
}

func readHTTP(r *bufio.Reader) (saying, error) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return saying{}, err
	}
	body, err := io.ReadAll(req.Body)
	return saying{req.Method + " " + req.URL.Path, body}, err
}

// take returns what the robot said since the last call.
func (p *tap) take() []saying {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.heard
	p.heard = nil
	return all
}

// without lists what a robot may say whatever its owner allows: who it is and how its parts are, its settings, its commands, its releases.
var without = regexp.MustCompile(`^(up/(status|ota)|req/(jdocs|ota|command|owner|token|time)/[a-z_]+|POST /v1/(enroll|renew|req/(jdocs|token)/[a-z_]+)|(HEAD|GET) /ok)$`)

// withheld lists those of what the robot said that need consent.
func withheld(all []saying) (out []string) {
	for _, s := range all {
		if !without.MatchString(s.what) || bytes.Contains(s.body, []byte(housetest.Canary)) {
			out = append(out, s.what)
		}
	}
	return out
}

// TestNothingWithoutConsent: must hold 1 of the issue of telemetry; VEC-DAS-08, VEC-LOG-08, VEC-CRS-05, VEC-FLE-06. All that a robot says is read on
// its wires. While its owner has not said yes, no event, log or crash is among it, and what waits is deleted; with a yes they come. A no that was said while the
// robot was away holds before anything leaves it.
func TestNothingWithoutConsent(t *testing.T) {
	h := housetest.New(t, "-robots", "0")
	h.Start()
	ann := h.Owner(t, "ann@example.org", "Ann")
	var listens *tap
	const id = "vic:00e2c001"
	r := h.WiredRobotBy(t, id, "TELEMETRY_MS=200\nFLUSH_MS=300\n", func(root string) housetest.Reach { listens = newTap(h, root); return listens.end })
	var said []saying
	hears := func(what ...string) {
		t.Helper()
		for _, w := range what {
			housetest.Await(t, time.Minute, "the robot says "+w, func() error {
				said = append(said, listens.take()...)
				if !slices.ContainsFunc(said, func(s saying) bool { return strings.HasPrefix(s.what, w) }) {
					return fmt.Errorf("not among %d", len(said))
				}
				return nil
			})
		}
	}
	knows := func(yes bool) {
		t.Helper()
		housetest.Await(t, time.Minute, fmt.Sprintf("the robot knows that the owner says %t", yes), func() error {
			if _, err := os.Stat(filepath.Join(r.Root, "run/das_allow_upload")); (err == nil) != yes {
				return fmt.Errorf("run/das_allow_upload: %v", err)
			}
			return nil
		})
	}
	// happens lets there be a log and a crash to send, and returns their files.
	happens := func(n int) (files []string) {
		t.Helper()
		for _, crash := range []bool{false, true} {
			f, err := housetest.LeaveFile(r.Root, n, crash)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		return files
	}
	gone := func(files []string) {
		t.Helper()
		for _, f := range files {
			housetest.Await(t, time.Minute, filepath.Base(f)+" is deleted", func() error {
				if _, err := os.Stat(f); err == nil {
					return errors.New("it is there")
				}
				return nil
			})
		}
	}
	nothing := func(when string) {
		t.Helper()
		said = nil
		hears("up/status", "req/jdocs/read") // what follows comes after it, over the same connection
		if w := withheld(said); len(w) > 0 {
			t.Errorf("%s the robot says %q", when, w)
		}
	}

	hears("up/das") // of a robot without an owner
	ann.Do("POST", "/v1/my/robots/claim", map[string]string{"code": housetest.ShownCode(t, r.Root)}, nil)
	knows(false)
	gone(happens(1))
	for _, w := range withheld(listens.take()) {
		if w != "up/das" { // one batch may have been on its way when the robot learned of its owner
			t.Errorf("before its owner was asked the robot says %q", w)
		}
	}
	ann.Do("PATCH", "/v1/things/"+id+"/jdocs/vic.RobotSettings", map[string]any{"set": map[string]int{"eye_color": 2}}, nil)
	nothing("of an owner who was not asked")

	ann.Agrees(id, true)
	knows(true)
	files := happens(2)
	hears("up/das", "PUT /v1/files/logs/", "POST /v1/files/crash")
	gone(files)

	r.MQTT.Cut()
	r.API.Cut()
	files = happens(3)
	ann.Agrees(id, false)
	said = listens.take()
	r.MQTT.Mend()
	r.API.Mend()
	knows(false)
	gone(files)
	nothing("of an owner who said no while it was away")
}
