package tokens

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Access holds the claims of an access token. Like the original, the robot has no key to check it: it sends the token to the cloud as it is.
type Access struct {
	TokenID string
	Thing   thing.ID
	UserID  string // the owner's account; "" makes the robot forget the token
	Issued  time.Time
	Expires time.Time
}

// maxJWT bounds a token, in bytes.
const maxJWT = 16 << 10

// ParseJWT reads the claims of an access token, every one a string (peer facts, section 1). The error does not quote the token.
func ParseJWT(s logging.Secret) (Access, error) {
	text := strings.TrimSpace(string(s))
	if len(text) > maxJWT {
		return Access{}, fmt.Errorf("token of %d bytes: want at most %d", len(text), maxJWT)
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 || parts[0] == "" || parts[2] == "" {
		return Access{}, fmt.Errorf("token of %d parts: want head.claims.signature", len(parts))
	}
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return Access{}, errors.New("claims of the token are not base64url")
	}
	var c struct {
		TokenID     *string `json:"token_id"`
		TokenType   *string `json:"token_type"`
		RequestorID *string `json:"requestor_id"`
		UserID      *string `json:"user_id"`
		IssuedAt    *string `json:"iat"`
		Expires     *string `json:"expires"`
	}
	if err := json.Unmarshal(b, &c); err != nil {
		var typ *json.UnmarshalTypeError
		if errors.As(err, &typ) {
			return Access{}, fmt.Errorf("claim %.40q is not a string", typ.Field)
		}
		return Access{}, errors.New("claims of the token are not JSON")
	}
	for _, claim := range []struct {
		name string
		v    *string
	}{{"token_id", c.TokenID}, {"token_type", c.TokenType}, {"requestor_id", c.RequestorID}, {"user_id", c.UserID}, {"iat", c.IssuedAt},
		{"expires", c.Expires}} {
		if claim.v == nil {
			return Access{}, fmt.Errorf("token has no claim %s", claim.name)
		}
	}
	a := Access{TokenID: *c.TokenID, UserID: *c.UserID}
	if a.Thing, err = thing.Parse(*c.RequestorID); err != nil {
		return Access{}, fmt.Errorf("requestor_id: %w", err)
	}
	if a.Issued, err = time.Parse(time.RFC3339, *c.IssuedAt); err != nil {
		return Access{}, errors.New("iat: want a time as in RFC 3339")
	}
	if a.Expires, err = time.Parse(time.RFC3339, *c.Expires); err != nil {
		return Access{}, errors.New("expires: want a time as in RFC 3339")
	}
	return a, nil
}

// jwtFile returns the token's file in a tree of persistent data.
func jwtFile(persistent string) string { return path.Join(persistent, "token/token.jwt") }

// JWTFile is the token's file unless platform_config.json moves the tree.
const JWTFile = robotfs.Persistent + "/token/token.jwt"

// UserOf returns the user of the access token in a tree of persistent data, and its file; "": there is none that can be read.
func UserOf(root *os.Root, persistent string) (user, file string) {
	file = jwtFile(persistent)
	_, a, err := readJWT(root, file)
	if err != nil {
		return "", file
	}
	return a.UserID, file
}

// readJWT returns the stored token; fs.ErrNotExist is in the error's chain if there is none.
func readJWT(root *os.Root, name string) (logging.Secret, Access, error) {
	b, err := robotfs.ReadFile(root, name)
	if err != nil {
		return "", Access{}, err
	}
	s := logging.Secret(strings.TrimSpace(string(b)))
	a, err := ParseJWT(s)
	if err != nil {
		return "", Access{}, fmt.Errorf("%s: %w", name, err)
	}
	return s, a, nil
}

func writeJWT(root *os.Root, name string, s logging.Secret) error {
	return robotfs.WriteFile(root, name, []byte(s.Reveal()), 0o600)
}

// remove deletes a file for good; a missing one is fine.
func remove(root *os.Root, name string) error {
	if err := root.Remove(name); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return robotfs.SyncDir(root, path.Dir(name))
}
