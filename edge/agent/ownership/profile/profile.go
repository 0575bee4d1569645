// Package profile gives the id that events and logs are tied to, with an account and without (VEC-TOK-09): the account id of the owner in
// base64, else 128 random bits in base64 that the robot made for itself. The random one is in the user data and is erased with them.
package profile

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"kennel/edge/env/robotfs"
)

// fileName is below the tree of persistent data.
const fileName = "kennel/profile_id"

const size = 16 // bytes

// ID returns the profile id of the robot whose owner is user; "" means no owner. persistent is the tree of persistent data.
func ID(root *os.Root, persistent, user string) (string, error) {
	if user != "" {
		return base64.StdEncoding.EncodeToString([]byte(user)), nil
	}
	name := path.Join(persistent, fileName)
	b, err := robotfs.ReadFile(root, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("profile id: %w", err)
	}
	id := strings.TrimSpace(string(b))
	if raw, err := base64.StdEncoding.DecodeString(id); err == nil && len(raw) == size {
		return id, nil
	}
	var raw [size]byte
	_, _ = rand.Read(raw[:]) // never fails
	id = base64.StdEncoding.EncodeToString(raw[:])
	if err := robotfs.WriteFile(root, name, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("profile id: %w", err)
	}
	return id, nil
}
