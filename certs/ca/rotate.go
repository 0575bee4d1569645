package ca

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"go.step.sm/crypto/x509util"

	"kennel/certs/internal/pemfile"
	"kennel/infra/errs"
)

// Stage says how an authority takes part.
type Stage string

// Stages, in the order in which an authority passes through them.
const (
	Prepared Stage = "prepared" // trusted, does not sign yet: every verifier learns it first
	Signs    Stage = "signs"
	Earlier  Stage = "earlier" // trusted still, signs only revocation lists
)

// Info describes one trusted authority.
type Info struct {
	Kind        Kind      `json:"authority"`
	Name        string    `json:"name"` // of its files, such as device-1
	Stage       Stage     `json:"stage"`
	CommonName  string    `json:"common_name"`
	NotAfter    time.Time `json:"not_after"`
	Fingerprint string    `json:"fingerprint"` // SHA-256 of its key, hex
	Key         string    `json:"key"`         // file, kms or elsewhere
	Roots       int       `json:"roots"`       // how many trusted roots vouch for it
}

// Authorities lists the trusted authorities, the oldest of each kind first.
func (a *Authority) Authorities() []Info {
	s := a.now()
	var out []Info
	for _, l := range append([]*line{&s.root}, s.issuing()...) {
		for _, g := range l.gens {
			sum := sha256.Sum256(g.cert().RawSubjectPublicKeyInfo)
			i := Info{Kind: l.kind.file, Name: g.name, Stage: l.stage(g), CommonName: g.cert().Subject.CommonName, NotAfter: g.cert().NotAfter.UTC(),
				Fingerprint: hex.EncodeToString(sum[:]), Key: "file", Roots: len(g.certs)}
			switch {
			case g.key == nil:
				i.Key = "elsewhere"
			case g.kms:
				i.Key = "kms"
			}
			out = append(out, i)
		}
	}
	return out
}

func (l line) stage(g *generation) Stage {
	switch cur := l.current(); {
	case g == cur:
		return Signs
	case g.number > cur.number:
		return Prepared
	}
	return Earlier
}

// Prepare makes the next authority of a kind, trusted and not signing, and returns its name. kms names a key in a key management service;
// "": a key file in the folder. Interrupted, it is completed by repeating it; a prepared one that is complete is a Conflict.
//
// Then every verifier must learn it before Activate: other kennelds within seconds (Run), brokers by their bundles and anchors, robots a
// new root with their next renewal.
func (a *Authority) Prepare(k Kind, kms string) (name string, err error) {
	err = a.change(func(folder *os.Root, s *state) error {
		l, err := s.line(k)
		if err != nil {
			return errs.New(errs.Invalid, "%w", err)
		}
		if last := l.gens[len(l.gens)-1]; l.stage(last) == Prepared {
			name = last.name
			if done, err := s.vouched(); err != nil || done {
				return errors.Join(err, errs.Coded(errs.Conflict, "prepared", "%s is already prepared: activate or withdraw it", name))
			}
			return s.vouch(folder)
		}
		if len(l.gens) == maxGenerations {
			return errs.Coded(errs.Conflict, "too_many", "%d authorities of the kind %s are trusted: withdraw the oldest first", maxGenerations, k)
		}
		if kms != "" {
			if kms, err = parseKMS(kms); err != nil {
				return errs.New(errs.Invalid, "%w", err)
			}
		}
		roots := &s.root
		if k == Root {
			roots = nil
		} else if s.root.current().key == nil {
			return errs.Coded(errs.Conflict, "no_root_key", "%s, which would sign it, is not in this folder: restore it first", s.root.current().name+keyEnd)
		}
		name = nameOf(k, l.burned+1)
		if err := makeGeneration(folder, l.kind, l.burned+1, roots, kms); err != nil {
			return err
		}
		if k != Root {
			return nil
		}
		if s, err = read(folder, false); err != nil {
			return err
		}
		return s.vouch(folder)
	})
	return name, err
}

// Activate has the prepared authority of a kind sign from now on, and returns its name. The one before stays trusted.
func (a *Authority) Activate(k Kind) (name string, err error) {
	err = a.change(func(folder *os.Root, s *state) error {
		l, err := s.line(k)
		if err != nil {
			return errs.New(errs.Invalid, "%w", err)
		}
		next := l.gens[len(l.gens)-1]
		if l.stage(next) != Prepared {
			return errs.Coded(errs.Conflict, "not_prepared", "no authority of the kind %s is prepared: prepare one first", k)
		}
		if k != Root && next.key == nil {
			return errs.Coded(errs.Conflict, "no_key", "%s is not in this folder", next.name+keyEnd)
		}
		if err := s.vouch(folder); err != nil {
			return err
		}
		name = next.name
		return pemfile.Write(folder, string(k)+currentEnd, []byte(name+"\n"), 0o644)
	})
	return name, err
}

// Rotate is Prepare and Activate at once, for an installation whose verifiers all learn of it without delay.
func (a *Authority) Rotate(k Kind, kms string) (name string, err error) {
	if _, err := a.Prepare(k, kms); err != nil && errs.CodeOf(err) != "prepared" {
		return "", err
	}
	return a.Activate(k)
}

// RotateDevice replaces the device authority; the one before stays trusted until Withdraw.
func (a *Authority) RotateDevice() (name string, err error) { return a.Rotate(Device, "") }

// Withdraw ends the trust in an authority that does not sign: its certificates are refused from now on. Its key is deleted. If a root is
// withdrawn, robots that have not learned the next root can no longer connect; robots learn it when they renew.
func (a *Authority) Withdraw(k Kind, name string) error {
	return a.change(func(folder *os.Root, s *state) error {
		l, err := s.line(k)
		if err != nil {
			return errs.New(errs.Invalid, "%w", err)
		}
		g, ok := l.find(name)
		switch {
		case !ok:
			return errs.New(errs.NotFound, "no trusted authority %.60q of the kind %s", name, k)
		case g == l.current():
			return errs.Coded(errs.Conflict, "signs", "%s is in use for signing: rotate first", name)
		}
		if k == Root {
			if err := s.disown(folder, g); err != nil {
				return err
			}
		}
		if err := folder.Rename(name+crtEnd, name+withdrawnEnd); err != nil {
			return err
		}
		return dropKeys(folder, name)
	})
}

// dropKeys deletes the keys that could sign as name, and makes that durable together with the renaming before it.
func dropKeys(folder *os.Root, name string) error {
	var err error
	for _, end := range []string{keyEnd, kmsEnd} {
		if e := folder.Remove(name + end); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	d, e := folder.Open(".")
	if e != nil {
		return errors.Join(err, e)
	}
	return errors.Join(err, d.Sync(), d.Close())
}

// vouched reports whether every root whose key is here has signed every issuing authority.
func (s *state) vouched() (bool, error) {
	for _, l := range s.issuing() {
		for _, g := range l.gens {
			for _, root := range s.root.gens {
				if root.key != nil && !g.signedBy(root) {
					return false, nil
				}
			}
		}
	}
	return true, nil
}

func (g *generation) signedBy(root *generation) bool {
	for _, c := range g.certs {
		if c.CheckSignatureFrom(root.cert()) == nil {
			return true
		}
	}
	return false
}

// vouch makes every root whose key is here sign every issuing authority that it has not signed. The authorities keep name and key, so that
// their certificates are valid below either root. A root cannot sign another root instead, because its path length leaves no room.
func (s *state) vouch(folder *os.Root) error {
	for _, l := range s.issuing() {
		for _, g := range l.gens {
			before := len(g.certs)
			for _, root := range s.root.gens {
				if root.key == nil || g.signedBy(root) {
					continue
				}
				c := *g.cert()
				template := l.kind.profile
				template.NotBefore, template.NotAfter = c.NotBefore, c.NotAfter
				t := template.GetCertificate()
				t.RawSubject, t.Subject, t.SubjectKeyId = c.RawSubject, c.Subject, c.SubjectKeyId
				cert, err := x509util.CreateCertificate(t, root.cert(), c.PublicKey, root.key)
				if err != nil {
					return fmt.Errorf("sign %s with %s: %w", g.name, root.name, err)
				}
				g.certs = append(g.certs, cert)
			}
			if len(g.certs) == before {
				continue
			}
			if err := pemfile.Write(folder, g.name+crtEnd, pemfile.EncodeChain(g.certs...), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// disown removes the certificates that root signed from the issuing authorities' files. Each must have another root that vouches for it.
func (s *state) disown(folder *os.Root, root *generation) error {
	for _, l := range s.issuing() {
		for _, g := range l.gens {
			if len(g.certs) == 1 && g.signedBy(root) {
				return errs.Coded(errs.Conflict, "in_use", "only %s has signed %s: withdraw the latter first, or restore the other root's key and "+
					"prepare again", root.name, g.name)
			}
		}
	}
	for _, l := range s.issuing() {
		for _, g := range l.gens {
			kept := slices.Clone(g.certs)
			for i := len(kept) - 1; i >= 0; i-- {
				if kept[i].CheckSignatureFrom(root.cert()) == nil {
					kept = slices.Delete(kept, i, i+1)
				}
			}
			if len(kept) == len(g.certs) {
				continue
			}
			if err := pemfile.Write(folder, g.name+crtEnd, pemfile.EncodeChain(kept...), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// change runs fn on the folder's present state, one process at a time, and then reads the result.
func (a *Authority) change(fn func(folder *os.Root, s *state) error) error {
	return a.within(func(folder *os.Root) error {
		lock, err := folder.OpenFile("ca.lock", os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		defer lock.Close() // and with it the lock
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			return errs.Coded(errs.Conflict, "busy", "another process is changing the authorities: %w", err)
		}
		s, err := read(folder, false)
		if err != nil {
			return err
		}
		for _, l := range append([]*line{&s.root}, s.issuing()...) { // left by a Withdraw that was killed
			if err := l.buried(folder); err != nil {
				return err
			}
		}
		if err := fn(folder, s); err != nil {
			return err
		}
		if s, err = read(folder, false); err != nil {
			return err
		}
		a.cur.Store(s)
		return nil
	})
}

// buried deletes the keys of authorities that were withdrawn.
func (l *line) buried(folder *os.Root) error {
	for n := range l.burned + 1 {
		name := nameOf(l.kind.file, n)
		if _, err := folder.Stat(name + withdrawnEnd); err == nil {
			if _, there := l.find(name); !there {
				if err := dropKeys(folder, name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
