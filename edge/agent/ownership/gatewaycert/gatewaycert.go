// Package gatewaycert makes the robot's name and the self-signed certificate that carries it, which phones and SDK programs on the same
// network see and pin (VEC-AUTH-01, VEC-AUTH-02, part of VEC-AUTH-04, VEC-TOK-03).
//
//	data/etc/robot.name            "Vector-E5S6"; the source does not say where the original keeps it
//	data/etc/robot.pem             private key, 0600
//	data/vic-gateway/gateway.cert  certificate: RSA 2048, 100 years, CN and SAN = name
//	data/kennel/gateway.posted     digest of the certificate that the cloud has
//
// All of it is in the user data and is erased with them. Each file is whole or absent and written in this order, so that after a kill in
// between the next start continues: it keeps good files and makes damaged ones again.
package gatewaycert

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"regexp"
	"strings"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/edge/faultcode"
	"kennel/infra/thing"
)

// Files, below the robot's root.
const (
	NameFile   = "data/etc/robot.name"
	KeyFile    = "data/etc/robot.pem"
	CertFile   = "data/vic-gateway/gateway.cert"
	postedFile = "data/kennel/gateway.posted"
)

const (
	keyBits = 2048
	years   = 100
)

// Subject holds the certificate's fields other than the robot's name.
type Subject struct {
	Organization, Locality, Province, Country string
}

// DefaultSubject is the original's, of the seed's table 20.
func DefaultSubject() Subject { return Subject{"Anki", "SF", "California", "US"} }

// Config says whose certificate it is. Root, Species and Log are required.
type Config struct {
	Root    *os.Root
	Species thing.Species
	Subject Subject          // zero: DefaultSubject
	Now     func() time.Time // nil: time.Now
	Log     *slog.Logger

	// step is called before each write: tests end there, as a power cut does.
	step func(string)
	// key makes a key; nil: a real one of keyBits. Tests of files have no time for those on an emulated robot.
	key func() (*rsa.PrivateKey, error)
}

// Plate is the robot's name and certificate. It does not change while it is in use; safe for concurrent use.
type Plate struct {
	cfg  Config
	name string
	cert tls.Certificate // with Leaf
	pem  []byte
}

// Open reads the files and makes those that are missing or damaged. An error is fault 920 (VEC-TOK-08): faultcode.GatewayCert.
func Open(cfg Config) (*Plate, error) {
	if cfg.Root == nil || cfg.Log == nil || prefix(cfg.Species) == "" {
		return nil, fmt.Errorf("gateway certificate: species %q: want a root, a logger and a species that has robot names", cfg.Species)
	}
	if cfg.Subject == (Subject{}) {
		cfg.Subject = DefaultSubject()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.step == nil {
		cfg.step = func(string) {}
	}
	if cfg.key == nil {
		cfg.key = func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, keyBits) }
	}
	p := &Plate{cfg: cfg}
	if err := p.make(); err != nil {
		return nil, faultcode.Wrap(faultcode.GatewayCert, fmt.Errorf("gateway certificate: %w", err))
	}
	return p, nil
}

func (p *Plate) make() error {
	root := p.cfg.Root
	for _, dir := range []string{"data/etc", "data/vic-gateway"} {
		if err := robotfs.CleanTemp(root, dir); err != nil {
			return err
		}
	}
	key, keyErr := readKey(root)
	leaf, certErr := readCert(root)
	name, nameErr := readName(root, p.cfg.Species)
	if nameErr != nil && certErr == nil && ValidName(p.cfg.Species, leaf.Subject.CommonName) {
		name = leaf.Subject.CommonName // clients know the robot by it
	}
	if nameErr != nil {
		if name == "" {
			name = newName(p.cfg.Species)
		}
		p.told("name", nameErr)
		p.cfg.step("name")
		if err := robotfs.WriteFile(root, NameFile, []byte(name+"\n"), 0o644); err != nil {
			return err
		}
	}
	if keyErr != nil {
		p.told("key", keyErr)
		k, err := p.cfg.key()
		if err != nil {
			return fmt.Errorf("create key: %w", err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(k)
		if err != nil {
			return fmt.Errorf("encode key: %w", err)
		}
		p.cfg.step("key")
		if err := robotfs.WriteFile(root, KeyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
			return err
		}
		key = k
	}
	if certErr == nil {
		certErr = fits(leaf, key, name)
	}
	if certErr != nil {
		p.told("certificate", certErr)
		der, err := issue(key, name, p.cfg.Subject, p.cfg.Now())
		if err != nil {
			return err
		}
		if leaf, err = x509.ParseCertificate(der); err != nil {
			return err
		}
		p.cfg.step("certificate")
		if err := robotfs.WriteFile(root, CertFile, encode(leaf), 0o644); err != nil {
			return err
		}
	}
	p.name, p.pem = name, encode(leaf)
	p.cert = tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
	return nil
}

// told says that a file is made; that one was damaged is news for an operator, because clients that pinned it will not know the robot.
func (p *Plate) told(what string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		p.cfg.Log.Info("creating gateway identity", "item", what, "part", "gateway certificate")
		return
	}
	p.cfg.Log.Warn("the robot's "+what+" unusable; creating another", "part", "gateway certificate", "err", err)
}

// Name returns the robot's name, such as "Vector-E5S6": for mDNS, certificates and its access point (VEC-BOOT-13). Bluetooth shows a space
// for the dash.
func (p *Plate) Name() string { return p.name }

// PEM returns the certificate, as the cloud and clients get it.
func (p *Plate) PEM() []byte { return p.pem }

// TLSCertificate returns certificate and key for the gateway's listener.
func (p *Plate) TLSCertificate() tls.Certificate { return p.cert }

// prefix begins the names of a species; "": there is no such species. Vector's is the original's; the others had none.
func prefix(s thing.Species) string {
	switch {
	case s == thing.Vector:
		return "Vector-"
	case s.Check() != nil:
		return ""
	}
	return strings.ToUpper(string(s[:1])) + string(s[1:]) + "-"
}

// alphabet of new names: without characters that look alike.
const alphabet = "ABCDEFGHJKMNPQRSTVWXYZ23456789"

var namePattern = regexp.MustCompile(`^[A-Z0-9]{4}$`)

// ValidName reports whether name is one of that species: its word, a dash, 4 letters or digits.
func ValidName(s thing.Species, name string) bool {
	rest, ok := strings.CutPrefix(name, prefix(s))
	return ok && prefix(s) != "" && namePattern.MatchString(rest)
}

func newName(s thing.Species) string {
	n, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet)*len(alphabet)*len(alphabet)*len(alphabet))))
	if err != nil {
		panic(err) // the system's source never fails
	}
	i := int(n.Int64())
	b := []byte(prefix(s))
	for range 4 {
		b = append(b, alphabet[i%len(alphabet)])
		i /= len(alphabet)
	}
	return string(b)
}

func readName(root *os.Root, s thing.Species) (string, error) {
	b, err := robotfs.ReadFile(root, NameFile)
	if err != nil {
		return "", err
	}
	name := strings.TrimSpace(string(b))
	if !ValidName(s, name) {
		return "", fmt.Errorf("%s holds %.40q: want a name such as %sE5S6", NameFile, name, prefix(s))
	}
	return name, nil
}

func readKey(root *os.Root) (*rsa.PrivateKey, error) {
	b, err := robotfs.ReadFile(root, KeyFile)
	if err != nil {
		return nil, err
	}
	k, err := ParseKey(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", KeyFile, err)
	}
	return k, nil
}

// ParseKey reads the private key: PKCS#8 as we write it, or PKCS#1 as openssl does. The error does not quote it.
func ParseKey(b []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, errors.New("no PEM block: want a private key")
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("PEM block %.40q: want a private key", block.Type)
	}
	if err != nil {
		return nil, errors.New("the private key is damaged")
	}
	k, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%T: want an RSA key", key)
	}
	return k, nil
}

func readCert(root *os.Root) (*x509.Certificate, error) {
	b, err := robotfs.ReadFile(root, CertFile)
	if err != nil {
		return nil, err
	}
	c, err := ParseCertificate(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", CertFile, err)
	}
	return c, nil
}

// ParseCertificate reads one certificate, PEM, and nothing after it.
func ParseCertificate(b []byte) (*x509.Certificate, error) {
	block, rest := pem.Decode(b)
	if block == nil || block.Type != "CERTIFICATE" || strings.TrimSpace(string(rest)) != "" {
		return nil, errors.New("want one certificate in PEM")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the certificate is damaged: %w", err)
	}
	return c, nil
}

// fits reports why a certificate is not this key's and name's.
func fits(c *x509.Certificate, key *rsa.PrivateKey, name string) error {
	pub, ok := c.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	switch {
	case !ok || !pub.Equal(key.Public()):
		return fmt.Errorf("%s does not belong to the key %s", CertFile, KeyFile)
	case c.Subject.CommonName != name || c.VerifyHostname(name) != nil:
		return fmt.Errorf("%s is for %.60q: want %s, the robot", CertFile, c.Subject.CommonName, name)
	}
	return nil
}

// issue makes the certificate. It is its own authority, so that a client may add it to its trusted ones.
func issue(key *rsa.PrivateKey, name string, s Subject, now time.Time) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))
	if err != nil {
		return nil, err
	}
	from := now.UTC().Truncate(time.Second)
	list := func(v string) []string {
		if v == "" {
			return nil
		}
		return []string{v}
	}
	tmpl := &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)),
		Subject: pkix.Name{CommonName: name, Organization: list(s.Organization), Locality: list(s.Locality), Province: list(s.Province),
			Country: list(s.Country)},
		DNSNames: []string{name}, NotBefore: from, NotAfter: from.AddDate(years, 0, 0),
		BasicConstraintsValid: true, IsCA: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("create certificate: %w", err)
	}
	return der, nil
}

func encode(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// digest names a certificate.
func digest(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}
