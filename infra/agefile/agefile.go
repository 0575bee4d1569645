// Package agefile encrypts streams to public keys and decrypts them, in the format of age (age-encryption.org/v1). Nothing is held in memory
// but one chunk of 64 KiB. Anyone with a public key can write such a file: it says nothing about its author.
package agefile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"

	"kennel/infra/errs"
)

// Recipients are public keys to which a file is encrypted: each of them opens it alone.
type Recipients []age.Recipient

// Identities are private keys.
type Identities []age.Identity

const magic = "age-encryption.org/"

// ParseRecipients reads public keys: those given as text (age1...), and those in file, one a line, where # begins a comment. file may be "".
// Errors do not quote what was given, because a private key given by mistake must not be printed.
func ParseRecipients(keys []string, file string) (Recipients, error) {
	var out Recipients
	for i, k := range keys {
		r, err := age.ParseRecipients(strings.NewReader(k))
		if err != nil || len(r) != 1 {
			return nil, errs.New(errs.Invalid, "recipient %d: want one public key of age, which starts with age1; create a pair with age-keygen", i+1)
		}
		out = append(out, r...)
	}
	if file == "" {
		return out, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("recipients: %w", err)
	}
	defer f.Close()
	r, err := age.ParseRecipients(f)
	if err != nil {
		return nil, errs.New(errs.Invalid, "recipients in %s: want public keys of age, one per line, each starting with age1", file)
	}
	return append(out, r...), nil
}

// ReadIdentities reads the private keys in file, as age-keygen writes it. "" returns none.
func ReadIdentities(file string) (Identities, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	defer f.Close()
	ids, err := age.ParseIdentities(f)
	if err != nil {
		return nil, errs.New(errs.Invalid, "identity file %s: want private keys of age, one per line, each starting with AGE-SECRET-KEY-", file)
	}
	return ids, nil
}

// Create encrypts what is written to w. Close writes the end, without which the file counts as cut off; it leaves w open. Without recipients
// the text stays plain.
func Create(w io.Writer, to Recipients) (io.WriteCloser, error) {
	if len(to) == 0 {
		return plain{w}, nil
	}
	out, err := age.Encrypt(w, to...)
	if err != nil {
		return nil, errs.New(errs.Invalid, "encrypt: %w", err)
	}
	return out, nil
}

type plain struct{ io.Writer }

func (plain) Close() error { return nil }

// Open returns the content of r, and whether it was encrypted. With identities only an encrypted file is accepted, so that a plain
// one cannot take its place. What was changed or cut off is Corrupt, and the error says near which byte.
func Open(r io.Reader, ids Identities) (content io.Reader, encrypted bool, err error) {
	at := &counter{r: r}
	b := bufio.NewReaderSize(at, 64<<10)
	head, err := b.Peek(len(magic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	switch encrypted = bytes.Equal(head, []byte(magic)); {
	case !encrypted && len(ids) > 0:
		return nil, false, errs.Coded(errs.Corrupt, "not_encrypted", "the file is not encrypted, but an identity was given: it is damaged, or the wrong file")
	case !encrypted:
		return b, false, nil
	case len(ids) == 0:
		return nil, true, errs.Coded(errs.Invalid, "encrypted", "the file is encrypted: want the file with the private key")
	}
	inner, err := age.Decrypt(b, ids...)
	if _, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		return nil, true, errs.Coded(errs.Denied, "other_key", "the file is encrypted to other keys: none of the %d given opens it", len(ids))
	}
	if err != nil {
		return nil, true, damaged(at, b, err)
	}
	return &reader{inner, at, b}, true, nil
}

func damaged(at *counter, b *bufio.Reader, err error) error {
	if at.err != nil {
		return at.err
	}
	why := "changed"
	if at.end {
		why = "changed or cut off"
	}
	return errs.New(errs.Corrupt, "the encrypted file was %s before byte %d: %w", why, at.n-int64(b.Buffered()), err)
}

// reader says of an error where in the encrypted file it was.
type reader struct {
	io.Reader
	at *counter
	b  *bufio.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = damaged(r.at, r.b, err)
	}
	return n, err
}

// counter counts what was read, and tells a failing disk from a damaged file.
type counter struct {
	r   io.Reader
	n   int64
	end bool
	err error
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if errors.Is(err, io.EOF) {
		c.end = true
	} else if err != nil {
		c.err = err
	}
	return n, err
}
