package kennel

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net"
	"os"
)

// Place says where a robot is and how a program proves to it who it is.
type Place struct {
	Thing       string `json:"thing"`       // such as "vic:00e20100"
	Address     string `json:"address"`     // host:port
	Name        string `json:"name"`        // the robot's
	Certificate string `json:"certificate"` // the robot's own, PEM: no other is trusted
	Token       string `json:"token"`       // a secret
}

// File reads the Place in a JSON file; "" is the file that $KENNEL_ROBOT names. Errors have the code file_missing or file_wrong.
func File(path string) (p Place, err error) {
	if path == "" {
		path = os.Getenv("KENNEL_ROBOT")
	}
	if path == "" {
		return p, errorf("file_missing", "want the path of a robot's file, or $KENNEL_ROBOT")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return p, errorf("file_missing", "%v: want the robot's file, which its owner makes", err)
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return p, errorf("file_wrong", "%s: %v", path, err)
	}
	if _, err := p.leaf(); err != nil {
		return p, errorf("file_wrong", "%s: %v", path, err)
	}
	return p, nil
}

// leaf returns the robot's certificate, or what is wrong with p.
func (p Place) leaf() (*x509.Certificate, error) {
	if _, _, err := net.SplitHostPort(p.Address); err != nil {
		return nil, errors.New("address: want host:port")
	}
	if p.Token == "" {
		return nil, errors.New("token: want the token of a program")
	}
	block, _ := pem.Decode([]byte(p.Certificate))
	if block == nil {
		return nil, errors.New("certificate: want PEM")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil || len(leaf.DNSNames) == 0 {
		return nil, errors.New("certificate: want an X.509 certificate with the robot's name")
	}
	return leaf, nil
}

// trust returns the configuration of TLS that accepts the robot alone, by the name in its certificate.
func (p Place) trust() (*tls.Config, error) {
	leaf, err := p.leaf()
	if err != nil {
		return nil, errorf("file_wrong", "%v", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Config{RootCAs: pool, ServerName: leaf.DNSNames[0], MinVersion: tls.VersionTLS12}, nil
}

// knock makes a connection and ends it: its errors say more than those of gRPC.
func (p Place) knock(ctx context.Context, conf *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := (&tls.Dialer{Config: conf}).DialContext(ctx, "tcp", p.Address)
	var wrong *tls.CertificateVerificationError
	switch {
	case errors.As(err, &wrong):
		return errorf("certificate_wrong", "%s shows another certificate than the file has (%v): it is another robot, or its user data was erased and its owner makes a new file", p.Address, wrong.Err)
	case err != nil:
		return errorf("unreachable", "no robot at %s: %v", p.Address, err)
	}
	return conn.Close()
}
