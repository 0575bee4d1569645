package devicecert

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"kennel/certs/internal/pemfile"
)

// rootsFile holds the roots that the cloud named with the last certificate.
const rootsFile = "persist/kennel/roots.json"

// learned is the content of rootsFile. It replaces the RootFile that it was learned with. A person who installs another RootFile
// moves the robot to another cloud, and the former cloud's roots are forgotten.
type learned struct {
	Installed string `json:"installed"` // digest of RootFile then
	Roots     string `json:"roots"`     // PEM
}

// trusted returns the roots in force. fs.ErrNotExist is in the error's chain if there is no RootFile.
func (i *Identity) trusted() ([]*x509.Certificate, error) {
	installed, err := pemfile.Read(i.cfg.Root, RootFile)
	if err != nil {
		return nil, err
	}
	if l, err := i.readLearned(); err == nil && l.Installed == digest(installed) {
		if roots, err := pemfile.ParseChain([]byte(l.Roots)); err == nil {
			return roots, nil
		}
	}
	roots, err := pemfile.ParseChain(installed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", RootFile, err)
	}
	return roots, nil
}

// readLearned fails if nothing was learned or the file is damaged; RootFile applies then.
func (i *Identity) readLearned() (l learned, err error) {
	b, err := pemfile.Read(i.cfg.Root, rootsFile)
	if err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		i.cfg.Log.Warn("learned roots unusable; using the installed roots", "file", rootsFile, "err", err)
	}
	return l, err
}

// learn takes the roots of an answer: from now on the robot trusts exactly these, so that a root arrives before it is
// needed and disappears after it was withdrawn. The roots are trusted because the connection they came over was
// verified. They must also accept that very connection, so that no answer, however wrong, locks the robot out.
// Unusable roots leave the trust as it is; only a failed write is an error.
func (i *Identity) learn(answer []byte) error {
	if len(answer) == 0 {
		return nil
	}
	i.mu.Lock()
	shown, name := i.shown, i.state.Name
	i.mu.Unlock()
	roots, err := i.acceptable(answer, name, shown)
	words := ""
	if err != nil {
		words = "the roots in the cloud's answer are not taken, the former ones stay: " + err.Error()
		i.cfg.Log.Warn("new roots rejected", "err", err)
	}
	i.mu.Lock()
	i.rootsProblem = words
	i.mu.Unlock()
	if err != nil {
		return nil
	}
	have, err := i.trusted()
	if err != nil {
		return err // it was read a moment ago
	}
	same := len(have) == len(roots) && !slices.ContainsFunc(roots, func(r *x509.Certificate) bool { return !slices.ContainsFunc(have, r.Equal) })
	if same {
		return nil
	}
	installed, err := pemfile.Read(i.cfg.Root, RootFile)
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(learned{digest(installed), string(pemfile.EncodeChain(roots...))}, "", "\t")
	if err != nil {
		return err
	}
	if err := pemfile.Write(i.cfg.Root, rootsFile, append(b, '\n'), 0o644); err != nil {
		return err
	}
	i.cfg.Log.Info("trusted roots changed", "before", commonNames(have), "now", commonNames(roots))
	return nil
}

// acceptable reads the roots of an answer and says why they cannot be taken.
func (i *Identity) acceptable(answer []byte, name string, shown []*x509.Certificate) ([]*x509.Certificate, error) {
	roots, err := pemfile.ParseChain(answer)
	if err != nil {
		return nil, err
	}
	for _, r := range roots {
		if !r.BasicConstraintsValid || !r.IsCA {
			return nil, fmt.Errorf("certificate %.80q: want an authority", r.Subject.CommonName)
		}
	}
	if len(shown) == 0 {
		return nil, errors.New("roots received over an unverified connection")
	}
	if err := verifyChain(name, shown, roots, i.clock.now()); err != nil {
		return nil, fmt.Errorf("roots do not verify the cloud that sent them: %w", err)
	}
	return roots, nil
}

// Roots returns the names of the roots that the robot trusts, and why those of the last answer were not taken; "" if they were.
func (i *Identity) Roots() (names []string, problem string) {
	roots, err := i.trusted()
	i.mu.Lock()
	defer i.mu.Unlock()
	if err != nil {
		return nil, err.Error()
	}
	return commonNames(roots), i.rootsProblem
}

func commonNames(certs []*x509.Certificate) []string {
	out := make([]string, 0, len(certs))
	for _, c := range certs {
		out = append(out, c.Subject.CommonName)
	}
	return out
}
