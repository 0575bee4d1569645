package devicecert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"kennel/certs/internal/pemfile"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Claim is a robot's first identity: its thing id and the secret that proves it, once, to the cloud that registered it.
type Claim struct {
	Thing  thing.ID       `json:"thing"`
	Secret logging.Secret `json:"secret"`
}

// ReadClaim reads ClaimFile. The error names the file and what is wrong with it; fs.ErrNotExist is in its chain if it is not there.
func ReadClaim(root *os.Root) (Claim, error) {
	b, err := pemfile.Read(root, ClaimFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Claim{}, fmt.Errorf("robot has no claim: %w; register it and write {\"thing\",\"secret\"} to %s", err, ClaimFile)
	}
	if err != nil {
		return Claim{}, err
	}
	c, err := ParseClaim(b)
	if err != nil {
		return Claim{}, fmt.Errorf("%s: %w", ClaimFile, err)
	}
	return c, nil
}

// ParseClaim decodes the content of ClaimFile. The error never quotes the secret.
func ParseClaim(b []byte) (Claim, error) {
	var c Claim
	if err := json.Unmarshal(b, &c); err != nil {
		return Claim{}, fmt.Errorf("not the JSON of a claim, {\"thing\",\"secret\"}: %w", err)
	}
	if _, err := thing.Parse(string(c.Thing)); err != nil {
		return Claim{}, err
	}
	if c.Secret == "" {
		return Claim{}, errors.New("claim without a secret")
	}
	return c, nil
}

// WriteClaim gives a robot its claim, as a factory does, or its simulation.
func WriteClaim(root *os.Root, c Claim) error {
	b, err := json.MarshalIndent(struct {
		Thing  thing.ID `json:"thing"`
		Secret string   `json:"secret"`
	}{c.Thing, c.Secret.Reveal()}, "", "\t")
	if err != nil {
		return err
	}
	return pemfile.Write(root, ClaimFile, append(b, '\n'), 0o600)
}

// WriteRoot installs the root that the robot trusts, as PEM.
func WriteRoot(root *os.Root, rootPEM []byte) error {
	if _, err := pemfile.ParseChain(rootPEM); err != nil {
		return err
	}
	return pemfile.Write(root, RootFile, rootPEM, 0o644)
}
