// Package devicecert is the robot's side of its identity: its key, its certificate, the roots it trusts, and the time it may believe.
//
// Files under the robot's root:
//
//	factory/kennel/claim.json          {"thing","secret"}: its claim from the factory; read only
//	etc/ssl/certs/local/root.crt       the roots it trusts, as installed, where the original looks for them
//	persist/kennel/roots.json          the roots that the cloud named since, in their place (see learn)
//	persist/kennel/device.key          its key, PKCS#8, 0600; made here, never leaves
//	persist/kennel/device.crt          its certificate and the authority behind it
//	persist/kennel/identity.json       broker URL, latest time proven
//	factory/cloud/...                  an original's factory identity (see ReadFactory)
//
// The key is on disk and synced before the first request that carries it. The claim secret gets bound to it, so losing the key after that
// request would lock the robot out. Everything else can be asked for again.
//
// A wipe of the user data keeps all of it: key and certificate say which robot this is and nothing about a person, and with them it comes
// back unattended. Ownership ends in the cloud when the robot reports the wipe (VEC-STOR-10).
package devicecert

import (
	"context"
	"crypto"
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
	"io/fs"
	"log/slog"
	mrand "math/rand/v2"
	"net"
	"net/url"
	"os"
	"sync"
	"time"

	"kennel/certs"
	"kennel/certs/certsclient"
	"kennel/certs/internal/pemfile"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Files of the identity, below the robot's root.
const (
	ClaimFile = "factory/kennel/claim.json"
	RootFile  = "etc/ssl/certs/local/root.crt"
	KeyFile   = "persist/kennel/device.key"
	CertFile  = "persist/kennel/device.crt"
	stateFile = "persist/kennel/identity.json"
)

// Pauses between attempts, jittered by half: our own defaults. A refusal is asked again more slowly, because only a person mends it.
const (
	DefaultMinPause = time.Second
	DefaultMaxPause = time.Minute
	refusalFactor   = 5
)

// Config says where the robot and its cloud are.
type Config struct {
	Root  *os.Root         // the robot's files
	Thing thing.ID         // the thing id by the robot's serial number; "": as claim or factory identity say
	Cloud string           // base URL for enrolment, https only (VEC-SEC-07), such as https://cloud.example:8443
	Build time.Time        // when this program was built: no clock is right that says less; zero: the build's own record
	Log   *slog.Logger     // required
	Now   func() time.Time // the robot's own clock, which may be wrong; nil: the system's
	// Dial makes the connections below TLS; nil: the system's.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Observe looks only: no time that a certificate proves is written, because another process keeps the robot's identity.
	Observe bool

	MinPause, MaxPause time.Duration // between attempts; 0: the defaults
}

// Identity is the robot's. Safe for concurrent use.
type Identity struct {
	cfg    Config
	clock  *clock
	client *certsclient.Client

	trying sync.Mutex // one attempt at a time; before saving and mu
	saving sync.Mutex // one writer of stateFile; before mu
	mu     sync.Mutex
	key    crypto.Signer
	cert   *tls.Certificate // nil: none yet
	renew  time.Time        // when cert is due
	mqtt   string
	state  State
	change chan struct{} // closed when cert changes

	shown        []*x509.Certificate // by the cloud on the last connection for enrolment, checked
	seen         map[string]Seen     // by name
	rootsProblem string              // why the roots of the last answer were not taken; "": they were
}

// Open reads the files and starts nothing. Damaged or missing files are not errors here: State names them, and Ensure repairs what it can.
func Open(cfg Config) (*Identity, error) {
	if cfg.MinPause == 0 {
		cfg.MinPause = DefaultMinPause
	}
	if cfg.MaxPause == 0 {
		cfg.MaxPause = DefaultMaxPause
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{Timeout: dialTime}).DialContext
	}
	u, err := url.Parse(cfg.Cloud)
	switch {
	case cfg.Root == nil || cfg.Log == nil:
		return nil, errors.New("devicecert: no root folder or no logger")
	case err != nil || u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("cloud address %q: want https://host:port", cfg.Cloud)
	}
	i := &Identity{cfg: cfg, change: make(chan struct{}), seen: map[string]Seen{}}
	i.state = State{Thing: cfg.Thing, Peer: hostPort(u), Name: u.Hostname()}
	st := i.readState()
	i.clock = newClock(cfg.Now, cfg.Build, st.Proven)
	i.mqtt = st.MQTT
	i.client = &certsclient.Client{BaseURL: cfg.Cloud, HTTP: i.httpClient()}
	i.load()
	return i, nil
}

// load reads key and certificate, if both exist and belong together.
func (i *Identity) load() {
	key, err := i.readKey()
	if err != nil || key == nil {
		return // attempt reports the problem
	}
	i.key = key
	b, err := pemfile.Read(i.cfg.Root, CertFile)
	if err != nil {
		return
	}
	cert, err := i.accept(b, key)
	if err != nil {
		i.cfg.Log.Warn("device certificate unusable; requesting another", "err", err)
		return
	}
	who := i.cfg.Thing
	if claim, err := ReadClaim(i.cfg.Root); err == nil && who == "" {
		who = claim.Thing
	}
	if who != "" && string(who) != cert.Leaf.Subject.CommonName {
		i.cfg.Log.Warn("device certificate names another thing; requesting another", "thing", who)
		return
	}
	i.clock.prove(cert.Leaf.NotBefore)
	i.use(cert)
	if i.mqtt == "" { // the rest of the answer was lost: ask again
		i.renew = time.Time{}
	}
}

// accept checks that a chain is for this robot's key and names a thing.
func (i *Identity) accept(chain []byte, key crypto.Signer) (*tls.Certificate, error) {
	xs, err := pemfile.ParseChain(chain)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", CertFile, err)
	}
	leaf := xs[0]
	if !pemfile.SameKey(key, leaf.PublicKey) {
		return nil, fmt.Errorf("%s: certificate does not belong to the key %s", CertFile, KeyFile)
	}
	if _, err := thing.Parse(leaf.Subject.CommonName); err != nil {
		return nil, fmt.Errorf("%s: %w", CertFile, err)
	}
	c := &tls.Certificate{PrivateKey: key, Leaf: leaf}
	for _, x := range xs {
		c.Certificate = append(c.Certificate, x.Raw)
	}
	return c, nil
}

// use makes cert the current one: due at two thirds of its life, plus up to a twelfth so that a fleet born together does not renew together.
func (i *Identity) use(cert *tls.Certificate) {
	leaf := cert.Leaf
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.cert = cert
	i.renew = leaf.NotBefore.Add(life*2/3 + mrand.N(life/12+1))
	i.state = State{Thing: thing.ID(leaf.Subject.CommonName), Step: StepReady, OK: true, Peer: i.state.Peer, Name: i.state.Name,
		NotAfter: leaf.NotAfter, Renew: i.renew, At: i.clock.now()}
	close(i.change)
	i.change = make(chan struct{})
}

// Thing returns whose identity this is; zero before the claim was read.
func (i *Identity) Thing() thing.ID {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.state.Thing
}

// MQTT returns the broker URL that the cloud gave with the certificate; "" before the first.
func (i *Identity) MQTT() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mqtt
}

// Changed returns a channel that is closed when there is a new certificate: connections made with the old one should be made again.
func (i *Identity) Changed() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.change
}

// Now returns the time to believe: the system's, but never before the program was built, nor before a time that a signature below our root
// has proven, plus what has passed since.
func (i *Identity) Now() time.Time { return i.clock.now() }

// TLSCertificate returns the current certificate, even an expired one: the cloud refuses it with a reason. It returns an error if there is none.
func (i *Identity) TLSCertificate() (*tls.Certificate, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cert == nil {
		return nil, fmt.Errorf("no device certificate yet: %s", i.state.Problem)
	}
	return i.cert, nil
}

// Ensure blocks until there is a certificate that has not expired. Until then it enrols or renews, with back-off; State says what blocks
// it. It returns an error only when ctx ends.
func (i *Identity) Ensure(ctx context.Context) error {
	between := backoff.Pause{Min: i.cfg.MinPause, Max: i.cfg.MaxPause}
	for {
		if i.valid() {
			return nil
		}
		err := i.attempt(ctx)
		if err == nil {
			return nil
		}
		if err := pause(ctx, &between, err); err != nil {
			return err
		}
	}
}

// Run keeps the certificate fresh until ctx ends. It is a service of the runner.
func (i *Identity) Run(ctx context.Context) error {
	between := backoff.Pause{Min: i.cfg.MinPause, Max: i.cfg.MaxPause}
	for {
		i.mu.Lock()
		due := i.renew.Sub(i.clock.now())
		i.mu.Unlock()
		if due > 0 {
			// In steps of a minute, because the clock may be corrected in between.
			if backoff.Sleep(ctx, min(due, time.Minute)) != nil {
				return nil
			}
			continue
		}
		if err := i.attempt(ctx); err == nil {
			between.Reset()
		} else if pause(ctx, &between, err) != nil {
			return nil
		}
	}
}

func (i *Identity) valid() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.cert != nil && i.mqtt != "" && i.clock.now().Before(i.cert.Leaf.NotAfter)
}

// attempt tries once to renew the certificate, or else to enrol with the best proof available.
func (i *Identity) attempt(ctx context.Context) error {
	i.trying.Lock()
	defer i.trying.Unlock()
	key, err := i.ownKey()
	if err != nil {
		return i.failed(StepKey, err)
	}
	i.mu.Lock()
	held := i.cert
	i.mu.Unlock()
	if held != nil {
		err := i.renewal(ctx, key, held)
		if err == nil || !i.mayEnrollAfter(err) {
			return i.failed(StepRenew, err)
		}
		i.cfg.Log.Warn("renewal refused; enrolling again", "err", err)
	}
	proof, err := i.proof()
	if err != nil {
		return i.failed(StepClaim, err)
	}
	i.mu.Lock()
	i.state.Thing = proof.thing
	i.mu.Unlock()
	return i.failed(StepEnroll, i.enrolment(ctx, key, proof))
}

// mayEnrollAfter: a cloud that does not know our certificate (it was reinstalled) may still know our claim, our factory's batch, or an
// operator who knows us.
func (i *Identity) mayEnrollAfter(err error) bool {
	k := errs.KindOf(err)
	if k != errs.Unauthenticated && k != errs.Invalid {
		return false
	}
	_, err = i.proof()
	return err == nil
}

func (i *Identity) renewal(ctx context.Context, key crypto.Signer, held *tls.Certificate) error {
	id := thing.ID(held.Leaf.Subject.CommonName)
	csr, err := newRequest(key, id)
	if err != nil {
		return err
	}
	a, err := i.client.Renew(ctx, certsclient.Renew{Certificate: string(pemfile.EncodeChain(held.Leaf)), CSR: csr})
	if err != nil {
		return err
	}
	return i.keep(a, key, id)
}

// proof is the reason for which the cloud gives this robot a certificate: a claim secret, else a factory identity, else an operator's
// approval by fingerprint.
type proof struct {
	thing   thing.ID
	secret  logging.Secret
	factory *Factory
}

// proof returns the best proof that the robot has. Each file that exists must be valid and belong to this robot: ignoring a bad one would
// hide the mistake behind a waiting list.
func (i *Identity) proof() (proof, error) {
	claim, err := ReadClaim(i.cfg.Root)
	switch {
	case err == nil && i.cfg.Thing != "" && claim.Thing != i.cfg.Thing:
		return proof{}, errs.Coded(errs.Invalid, "other_thing", "%s is for %s: want %s, by the serial number of this robot", ClaimFile,
			claim.Thing, i.cfg.Thing)
	case err == nil:
		return proof{thing: claim.Thing, secret: claim.Secret}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return proof{}, err
	}
	f, ferr := ReadFactory(i.cfg.Root)
	switch {
	case ferr == nil && i.cfg.Thing != "" && f.Thing() != i.cfg.Thing:
		return proof{}, errs.Coded(errs.Invalid, "other_thing", "%w: %s is for %s: want %s, by the serial number of this robot", ErrFactory,
			FactoryDir, f.Thing(), i.cfg.Thing)
	case ferr == nil:
		return proof{thing: f.Thing(), factory: &f}, nil
	case !errors.Is(ferr, fs.ErrNotExist):
		return proof{}, ferr
	case i.cfg.Thing != "":
		return proof{thing: i.cfg.Thing}, nil
	}
	return proof{}, err // neither, and no name to wait under
}

func (i *Identity) enrolment(ctx context.Context, key crypto.Signer, p proof) error {
	csr, err := newRequest(key, p.thing)
	if err != nil {
		return err
	}
	req := certsclient.Enroll{Thing: string(p.thing), Secret: p.secret.Reveal(), CSR: csr}
	if p.factory != nil {
		signer, ok := p.factory.Certificate.PrivateKey.(crypto.Signer)
		if !ok {
			return fmt.Errorf("%w: %s/%s cannot sign", ErrFactory, FactoryDir, factoryKeys)
		}
		block, _ := pem.Decode([]byte(csr))
		req.Factory = string(p.factory.chain)
		if req.FactoryProof, err = certs.FactoryProof(signer, block.Bytes); err != nil {
			return fmt.Errorf("sign with the factory key: %w", err)
		}
	}
	a, err := i.client.Enroll(ctx, req)
	if err != nil {
		return err
	}
	return i.keep(a, key, p.thing)
}

// keep checks an answer, writes it and makes it current. A kill between the two files is mended by a renewal at the next start.
func (i *Identity) keep(a certsclient.Answer, key crypto.Signer, id thing.ID) error {
	cert, err := i.accept([]byte(a.Certificate), key)
	if err != nil {
		return errs.New(errs.Unavailable, "certificate in the response is not for this robot: %w", err)
	}
	if cn := cert.Leaf.Subject.CommonName; cn != string(id) {
		return errs.New(errs.Unavailable, "certificate in the response is for %.60q: want %s", cn, id)
	}
	// Roots first: if it is killed after this write, the robot trusts the roots that its next certificate may need.
	if err := i.learn([]byte(a.Root)); err != nil {
		return err
	}
	if err := pemfile.Write(i.cfg.Root, CertFile, []byte(a.Certificate), 0o644); err != nil {
		return err
	}
	i.clock.prove(cert.Leaf.NotBefore)
	i.mu.Lock()
	i.mqtt = a.MQTT
	i.mu.Unlock()
	if err := i.writeState(); err != nil {
		return err
	}
	i.use(cert)
	i.cfg.Log.Info("device certificate received", "thing", id, "not_after", cert.Leaf.NotAfter)
	return nil
}

func newRequest(key crypto.Signer, id thing.ID) (string, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(id)}}, key)
	if err != nil {
		return "", fmt.Errorf("make certificate request: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), nil
}

// ownKey returns the robot's key, which is on disk by then. A damaged file is left for a person to restore: a new key would be refused,
// because the claim secret is bound to the old.
func (i *Identity) ownKey() (crypto.Signer, error) {
	i.mu.Lock()
	key := i.key
	i.mu.Unlock()
	if key != nil {
		return key, nil
	}
	key, err := i.readKey()
	if err != nil {
		return nil, err
	}
	if key == nil {
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, err
		}
		b, err := pemfile.EncodeKey(key)
		if err != nil {
			return nil, err
		}
		if err := pemfile.Write(i.cfg.Root, KeyFile, b, 0o600); err != nil {
			return nil, err
		}
	}
	i.mu.Lock()
	i.key = key
	i.mu.Unlock()
	return key, nil
}

// readKey returns nil if there is no key yet.
func (i *Identity) readKey() (crypto.Signer, error) {
	b, err := pemfile.Read(i.cfg.Root, KeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	key, err := pemfile.ParseKey(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; restore it, or ask an operator to release the robot and remove the file", KeyFile, err)
	}
	return key, nil
}

// memory is the content of stateFile.
type memory struct {
	MQTT   string    `json:"mqtt"`
	Proven time.Time `json:"proven"` // latest time that a signature below our root has proven
}

// readState returns the stored state; a damaged file counts as none, because the next answer writes it again.
func (i *Identity) readState() (m memory) {
	b, err := pemfile.Read(i.cfg.Root, stateFile)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			i.cfg.Log.Warn("identity state unusable; starting over", "err", err)
		}
		return memory{}
	}
	return m
}

func (i *Identity) writeState() error {
	i.saving.Lock()
	defer i.saving.Unlock()
	b, err := json.Marshal(memory{MQTT: i.MQTT(), Proven: i.clock.proven()})
	if err != nil {
		return err
	}
	return pemfile.Write(i.cfg.Root, stateFile, append(b, '\n'), 0o644)
}

// pause sleeps after an attempt that ended with err, longer after a refusal; it returns an error only when ctx ends.
func pause(ctx context.Context, p *backoff.Pause, err error) error {
	d := p.Next(nil)
	switch errs.KindOf(err) {
	case errs.Unavailable, errs.Exhausted:
	default:
		d *= refusalFactor
	}
	return backoff.Sleep(ctx, max(d, errs.RetryOf(err)))
}
