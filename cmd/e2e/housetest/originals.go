package housetest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/cloud/identity/token/tokentest"
	"kennel/cloud/originals"
	"kennel/cloud/originals/replay"
	"kennel/infra/api/jdocspb"
)

// Factory is a maker of robots whose batch the cloud trusts.
type Factory struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewFactory returns a maker with a certificate and key of its own.
func NewFactory(t *testing.T) *Factory {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Factory CA", Organization: []string{"Anki Inc."}},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &Factory{t, cert, key}
}

// Bundle returns the file that an operator uploads for the batch.
func (f *Factory) Bundle() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.cert.Raw}))
}

// Make returns a robot's factory certificate; change, if not nil, spoils it.
func (f *Factory) Make(id string, change func(*x509.Certificate)) tls.Certificate {
	f.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		f.t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: id, Organization: []string{"Anki Inc."}},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Date(2110, 1, 1, 0, 0, 0, 0, time.UTC), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if change != nil {
		change(tmpl)
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, f.cert, key.Public(), f.key)
	if err != nil {
		f.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Original returns an original robot that calls the port of a house.
func (h *House) Original(t *testing.T, cert tls.Certificate, port string) *tokentest.Robot {
	t.Helper()
	root, err := os.ReadFile(h.Ready.Files["root_ca"])
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(h.Ready.Files["app_key"])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(root)
	return &tokentest.Robot{Addr: port, AppKey: strings.TrimSpace(string(key)), Cert: tokentest.GatewayCert(t, "Vector-A1B2"),
		TLS: &tls.Config{RootCAs: pool, ServerName: "localhost", Certificates: []tls.Certificate{cert}}}
}

// RobotsPort returns the address of the port for original robots.
func (h *House) RobotsPort() string {
	return strings.TrimPrefix(h.Ready.Endpoints["robots"], "https://")
}

// Replayed is an original robot that reaches a house by names that nothing knows: each leads to the robots' port, and is noted.
type Replayed struct {
	*replay.Robot
	Name string

	Mu     sync.Mutex // guards Dialed
	Dialed []string   // addresses, since Took was called
}

// Replay returns an original robot of that build with server_config.json as kenneld originals writes it.
func (h *House) Replay(t *testing.T, maker *Factory, esn, build string) *Replayed {
	t.Helper()
	root, err := os.ReadFile(h.Ready.Files["root_ca"])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(root)
	r, err := replay.New(h.OriginalsGuide(t).ServerConfig, pool, maker.Make("vic:"+esn, nil), build == "robot")
	if err != nil {
		t.Fatal(err)
	}
	r.Gateway, r.FramePause = tokentest.GatewayCert(t, "Vector-A1B2"), time.Millisecond
	out := &Replayed{Robot: r, Name: build + " build " + esn}
	r.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		out.Mu.Lock()
		out.Dialed = append(out.Dialed, addr)
		out.Mu.Unlock()
		return (&net.Dialer{}).DialContext(ctx, network, h.RobotsPort())
	}
	return out
}

// Took returns which addresses the robot dialed since the last call.
func (r *Replayed) Took() (out []string) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	out, r.Dialed = r.Dialed, nil
	return out
}

// OriginalsGuide asks kenneld originals.
func (h *House) OriginalsGuide(t *testing.T) (g originals.Guide) {
	t.Helper()
	out, err := exec.Command(filepath.Join(Bin, "kenneld"), "originals", "-data", h.Dir, "-o", "json").Output()
	if err != nil {
		t.Fatalf("kenneld originals: %v", err)
	}
	if err := json.Unmarshal(out, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

const UploadHost = "kennel.s3.us-west-2.amazonaws.com"

// Documents of an original robot.
const (
	SettingsDoc = "vic.RobotSettings"
	StatsDoc    = "vic.RobotLifetimeStats"
)

// ReadItem asks for a document of which the robot has that version.
func ReadItem(name string, have uint64) *jdocspb.ReadDocsReq_Item {
	return &jdocspb.ReadDocsReq_Item{DocName: name, MyDocVersion: have}
}

// Wrote checks that a write was accepted as that version.
func Wrote(version uint64) func(*jdocspb.WriteDocResp, error) error {
	return func(resp *jdocspb.WriteDocResp, err error) error {
		if err == nil && (resp.Status != jdocspb.WriteDocResp_ACCEPTED || resp.LatestDocVersion != version) {
			err = fmt.Errorf("%v, want version %d accepted", resp, version)
		}
		return err
	}
}

// CheckOriginals runs kenneld originals check and returns the result, what it printed beside it, and the exit code.
func (h *House) CheckOriginals(t *testing.T, args ...string) (r originals.Result, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(filepath.Join(Bin, "kenneld"), append([]string{"originals", "check", "-data", h.Dir, "-o", "json", "-frame-pause", "1ms"}, args...)...)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	} else if ok {
		code = exit.ExitCode()
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("kenneld originals check %q: %v: %s%s", args, err, out, &errOut)
	}
	return r, errOut.String(), code
}
