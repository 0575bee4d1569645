package ca

import (
	"bytes"
	"encoding/pem"
	"os"

	"kennel/certs/internal/pemfile"
	"kennel/infra/errs"
)

// TakeRootKeys removes the keys of the roots from the folder, after keep has stored them elsewhere, and returns the roots' names. What runs
// needs no root key: it vouches for the next authority of a kind only. Keys in a key management service stay where they are.
func (a *Authority) TakeRootKeys(keep func(keys []byte) error) (names []string, err error) {
	err = a.change(func(folder *os.Root, s *state) error {
		var all bytes.Buffer
		for _, g := range s.root.gens {
			if g.key == nil || g.kms {
				continue
			}
			b, err := pemfile.EncodeKey(g.key)
			if err != nil {
				return err
			}
			all.Write(b)
			names = append(names, g.name)
		}
		if len(names) == 0 {
			return errs.Coded(errs.Conflict, "no_root_key", "no key of a root in this folder: it was already taken offline, or is in a key management service")
		}
		if err := keep(all.Bytes()); err != nil {
			return err
		}
		for _, name := range names {
			if err := folder.Remove(name + keyEnd); err != nil {
				return err
			}
		}
		return dropKeys(folder, names[0]) // makes the removal durable
	})
	return names, err
}

// BringRootKeys puts back keys that TakeRootKeys took, and returns the names of the roots that have theirs again. Keys of roots that are not
// trusted here any longer are refused.
func (a *Authority) BringRootKeys(keys []byte) (names []string, err error) {
	err = a.change(func(folder *os.Root, s *state) error {
		for n := 1; ; n++ {
			block, rest := pem.Decode(keys)
			if block == nil {
				break
			}
			keys = rest
			key, err := pemfile.ParseKey(pem.EncodeToMemory(block))
			if err != nil {
				return errs.New(errs.Invalid, "key %d of the file: %w", n, err)
			}
			name := ""
			for _, g := range s.root.gens {
				if pemfile.SameKey(key, g.cert().PublicKey) {
					name = g.name
				}
			}
			if name == "" {
				return errs.New(errs.Invalid, "key %d of the file does not belong to a trusted root", n)
			}
			b, err := pemfile.EncodeKey(key)
			if err != nil {
				return err
			}
			if err := pemfile.Write(folder, name+keyEnd, b, 0o600); err != nil {
				return err
			}
			names = append(names, name)
		}
		if len(names) == 0 {
			return errs.New(errs.Invalid, "the file has no private key in PEM")
		}
		return nil
	})
	return names, err
}
