package devicecert

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"kennel/certs/internal/pemfile"
	"kennel/infra/thing"
)

// FactoryDir holds an original robot's cloud identity, below its root (VEC-STOR-09).
const FactoryDir = "factory/cloud"

// Files in FactoryDir; beside them Info<ESN>.json and an empty file named <ESN>.
const (
	factoryCert = "AnkiRobotDeviceCert.pem"
	factoryKeys = "AnkiRobotDeviceKeys.pem"
)

// Constants of the original's own check (VEC-TOK-02).
const (
	factoryOrganization = "Anki Inc."
	factoryAlgorithm    = "sha256WithRSAEncryption"
)

var factoryEndOfLife = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// ErrFactory is in the chain of every error about a factory identity that exists but is not good: the original stops with fault 850.
var ErrFactory = errors.New("factory identity is not valid")

// Factory is an original robot's factory identity.
//
// Doubts, and what we do (VEC-TOK-02, VEC-NET-12): the hash of the digests is not given: SHA-256 of the file's bytes, base64. Who signed
// CertSignature is not given: its bytes are kept and not checked.
type Factory struct {
	Certificate tls.Certificate // with Leaf
	Info        FactoryInfo

	chain []byte // PEM, as in the file: the certificate, and its chain up to the batch's authority
}

// FactoryInfo is the content of Info<ESN>.json, with the original's names.
type FactoryInfo struct {
	CertDigest             string `json:"CertDigest"`             // base64
	CertSignature          string `json:"CertSignature"`          // base64
	CertSignatureAlgorithm string `json:"CertSignatureAlgorithm"` // sha256WithRSAEncryption
	CommonName             string `json:"CommonName"`             // the thing id
	KeysDigest             string `json:"KeysDigest"`             // base64
}

// Thing returns whose identity it is.
func (f Factory) Thing() thing.ID { return thing.ID(f.Info.CommonName) }

var esnPattern = regexp.MustCompile(`^[0-9a-f]{8}$`)

// ReadFactory reads and checks the identity in FactoryDir. fs.ErrNotExist is in the error's chain if there is none; any other trouble is
// ErrFactory and names the file.
func ReadFactory(root *os.Root) (Factory, error) {
	cert, err := pemfile.Read(root, path.Join(FactoryDir, factoryCert))
	if err != nil {
		return Factory{}, err
	}
	keys, err := pemfile.Read(root, path.Join(FactoryDir, factoryKeys))
	if err != nil {
		return Factory{}, broken(factoryKeys, err)
	}
	leaf, key, err := factoryPair(cert, keys)
	if err != nil {
		return Factory{}, err
	}
	esn := thing.ID(leaf.Subject.CommonName).Serial()
	name := "Info" + esn + ".json"
	b, err := pemfile.Read(root, path.Join(FactoryDir, name))
	if err != nil {
		return Factory{}, broken(name, err)
	}
	info, err := ParseFactoryInfo(b)
	if err == nil {
		err = info.matches(leaf, cert, keys)
	}
	if err != nil {
		return Factory{}, broken(name, err)
	}
	c := tls.Certificate{PrivateKey: key, Leaf: leaf, Certificate: [][]byte{leaf.Raw}}
	return Factory{Certificate: c, Info: info, chain: cert}, nil
}

func broken(file string, err error) error {
	if errors.Is(err, fs.ErrNotExist) { // one file of several: not the same as no identity at all
		return fmt.Errorf("%w: %s/%s is missing", ErrFactory, FactoryDir, file)
	}
	return fmt.Errorf("%w: %s/%s: %w", ErrFactory, FactoryDir, file, err)
}

// factoryPair parses certificate and key and applies the original's own checks: exactly one O, CN = vic:<esn>, an end after 2100-01-01.
func factoryPair(cert, keys []byte) (*x509.Certificate, crypto.Signer, error) {
	chain, err := pemfile.ParseChain(cert)
	if err != nil {
		return nil, nil, broken(factoryCert, err)
	}
	leaf := chain[0]
	if err := CheckFactory(leaf); err != nil {
		return nil, nil, broken(factoryCert, err)
	}
	key, err := pemfile.ParseKey(keys)
	if err != nil {
		return nil, nil, broken(factoryKeys, err)
	}
	if !pemfile.SameKey(key, leaf.PublicKey) {
		return nil, nil, broken(factoryKeys, errors.New("not the key of the certificate"))
	}
	return leaf, key, nil
}

// CheckFactory applies the original robot's checks to a factory certificate (VEC-TOK-02). Whether a batch we trust signed it is another
// question.
func CheckFactory(leaf *x509.Certificate) error {
	if o := leaf.Subject.Organization; len(o) != 1 || o[0] != factoryOrganization {
		return fmt.Errorf("organization %.80q: want exactly one, %q", o, factoryOrganization)
	}
	esn, ok := strings.CutPrefix(leaf.Subject.CommonName, string(thing.Vector)+":")
	if !ok || !esnPattern.MatchString(esn) {
		return fmt.Errorf("CN %.60q: want vic: and 8 hex digits", leaf.Subject.CommonName)
	}
	if !leaf.NotAfter.After(factoryEndOfLife) {
		return fmt.Errorf("valid to %s: want later than %s", leaf.NotAfter.UTC().Format(time.DateOnly), factoryEndOfLife.Format(time.DateOnly))
	}
	return nil
}

// ParseFactoryInfo decodes the content of Info<ESN>.json. Unknown keys are left alone.
func ParseFactoryInfo(b []byte) (FactoryInfo, error) {
	var i FactoryInfo
	if err := json.Unmarshal(b, &i); err != nil {
		return FactoryInfo{}, err
	}
	if i.CertSignatureAlgorithm != factoryAlgorithm {
		return FactoryInfo{}, fmt.Errorf("CertSignatureAlgorithm %.40q: want %s", i.CertSignatureAlgorithm, factoryAlgorithm)
	}
	if _, err := thing.Parse(i.CommonName); err != nil {
		return FactoryInfo{}, fmt.Errorf("CommonName: %w", err)
	}
	for _, f := range []struct{ name, value string }{{"CertDigest", i.CertDigest}, {"CertSignature", i.CertSignature}, {"KeysDigest", i.KeysDigest}} {
		if _, err := base64.StdEncoding.DecodeString(f.value); err != nil {
			return FactoryInfo{}, fmt.Errorf("%s is not base64: %w", f.name, err)
		}
	}
	return i, nil
}

func (i FactoryInfo) matches(leaf *x509.Certificate, cert, keys []byte) error {
	switch {
	case i.CommonName != leaf.Subject.CommonName:
		return fmt.Errorf("CommonName %s: the certificate says %s", i.CommonName, leaf.Subject.CommonName)
	case i.CertDigest != digest(cert):
		return errors.New("CertDigest is not the SHA-256 of " + factoryCert)
	case i.KeysDigest != digest(keys):
		return errors.New("KeysDigest is not the SHA-256 of " + factoryKeys)
	}
	return nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// WriteFactory writes a factory identity as a factory did: certificate, keys, info, and the empty file named after the serial number. The
// certificate must pass CheckFactory; signature goes into CertSignature as it is.
func WriteFactory(root *os.Root, leaf *x509.Certificate, key crypto.Signer, signature []byte) error {
	cert := pemfile.EncodeChain(leaf)
	keys, err := pemfile.EncodeKey(key)
	if err != nil {
		return err
	}
	if _, _, err := factoryPair(cert, keys); err != nil {
		return err
	}
	id := thing.ID(leaf.Subject.CommonName)
	info := FactoryInfo{CertDigest: digest(cert), CertSignature: base64.StdEncoding.EncodeToString(signature),
		CertSignatureAlgorithm: factoryAlgorithm, CommonName: string(id), KeysDigest: digest(keys)}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	if err := enc.Encode(info); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data []byte
		perm fs.FileMode
	}{{factoryKeys, keys, 0o600}, {"Info" + id.Serial() + ".json", b.Bytes(), 0o644}, {id.Serial(), nil, 0o644},
		{factoryCert, cert, 0o644}} { // last, because ReadFactory looks for it
		if err := pemfile.Write(root, path.Join(FactoryDir, f.name), f.data, f.perm); err != nil {
			return err
		}
	}
	return nil
}
