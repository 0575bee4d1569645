package ca

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"go.step.sm/crypto/kms"
	"go.step.sm/crypto/kms/apiv1"
	// Back ends, each under the first word of its addresses: softkms comes with the package above. The others of the library bring C code
	// or a cloud's whole client; add a line here for each one needed.
	_ "go.step.sm/crypto/kms/awskms"

	"kennel/certs/internal/pemfile"
)

// kmsTime bounds one request to a key management service: a start or a rotation waits for it.
const kmsTime = 20 * time.Second

// openKMS returns the signing key that an address names. The key stays where it is. Addresses are those of go.step.sm/crypto:
//
//	awskms:key-id=alias/kennel-device?region=eu-central-1    credentials as the AWS SDK finds them
//	softkms:path=/run/keys/device.pem                        a file outside this folder, for tests and for mounted secrets
func openKMS(address string) (crypto.Signer, error) {
	uri, err := parseKMS(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), kmsTime)
	defer cancel()
	m, err := kms.New(ctx, apiv1.Options{URI: uri})
	if err != nil {
		return nil, fmt.Errorf("key management service: %w", err)
	}
	key, err := m.CreateSigner(&apiv1.CreateSignerRequest{SigningKey: uri})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("key management service: %w", err), m.Close())
	}
	return key, nil // m stays open: the key signs through it
}

// OpenKey returns the private key that source names, of any kind: a file in PEM, or an address as openKMS takes them.
func OpenKey(source string) (crypto.Signer, error) {
	if strings.HasPrefix(source, "awskms:") || strings.HasPrefix(source, "softkms:") {
		return openKMS(source)
	}
	f, err := os.Open(source)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, pemfile.MaxFile))
	if err != nil {
		return nil, err
	}
	key, err := pemfile.ParseKey(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return key, nil
}

// parseKMS checks the address in a .kms file. Errors do not quote the text behind the scheme, because an address may carry a pin.
func parseKMS(text string) (string, error) {
	uri := strings.TrimSpace(text)
	scheme, rest, ok := strings.Cut(uri, ":")
	switch {
	case !ok || rest == "" || len(uri) > 2048 || strings.ContainsAny(uri, "\r\n\x00"):
		return "", errors.New("want one line with the address of a key, such as awskms:key-id=alias/kennel-device?region=eu-central-1")
	case scheme != "softkms" && scheme != "awskms":
		return "", fmt.Errorf("key management service %.20q: want awskms or softkms", scheme)
	}
	return uri, nil
}
