package archive

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"errors"
	"io"
)

// salted begins a file that openssl encrypted; the salt follows.
const (
	salted   = "Salted__"
	saltSize = 8
)

// stream returns AES-256-CTR under the key and IV that openssl derives with -md md5: EVP_BytesToKey, one round (VEC-OTA-07).
func stream(password, salt []byte) (cipher.Stream, error) {
	var derived, last []byte
	for len(derived) < 32+aes.BlockSize {
		sum := md5.Sum(bytes.Join([][]byte{last, password, salt}, nil))
		last = sum[:]
		derived = append(derived, last...)
	}
	block, err := aes.NewCipher(derived[:32])
	if err != nil {
		return nil, err
	}
	return cipher.NewCTR(block, derived[32:32+aes.BlockSize]), nil
}

func decrypter(r io.Reader, password, salt []byte) (io.Reader, error) {
	s, err := stream(password, salt)
	return cipher.StreamReader{S: s, R: r}, err
}

// Password returns the password that a file holds: its first line, as openssl reads it with -pass file.
func Password(file []byte) ([]byte, error) {
	line, _, _ := bytes.Cut(file, []byte("\n"))
	if len(line) == 0 || len(line) > 1023 {
		return nil, errors.New("want a password of 1 to 1023 bytes on the first line")
	}
	return line, nil
}
