// Package sts gives robots temporary S3 credentials, with which they upload their logs as they did to AWS (VEC-TOK-06, VEC-LOG-02).
//
// A session token is the grant itself, sealed: whose robot, for whom, which folder, how long. Nothing is stored; every process with the
// sealing key honours it, at the door (stsapi) in front of any S3.
//
// A robot writes below PREFIX/USER/BASE64(THING)/ alone (peer facts section 1), and reads, lists and deletes nothing.
//
// S3 takes any name for an object; a gateway that keeps objects as files (s3d) does not: "a.gz/b" needs a folder where "a.gz" is a file, and a
// folder ".sgwtmp" is the gateway's own. Names are therefore encoded on their way into the bucket, so that each is one part of a key (name.go).
package sts

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"iter"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kennel/cloud/identity/token"
	"kennel/infra/blob"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/secretbox"
	"kennel/infra/thing"
)

// Root is where all logs lie in our bucket.
const Root = "logs/"

// Default settings. A robot keeps credentials until an hour before they expire, so that a shorter life than that costs it a call for each
// upload. The bounds are those of AWS.
const (
	DefaultPrefix = "logs"
	DefaultLife   = 12 * time.Hour
	MinLife       = 15 * time.Minute
	MaxLife       = 12 * time.Hour
)

// Codes of refusals, as S3 clients know them.
const (
	CodeNoKey   = "InvalidAccessKeyId"
	CodeToken   = "InvalidToken"
	CodeExpired = "ExpiredToken"
	CodeDenied  = "AccessDenied"
)

// Grant is the content of a session token.
type Grant struct {
	Thing   thing.ID
	User    string
	Prefix  string // first folders of the robot's keys, without slashes at its ends
	Issued  time.Time
	Expires time.Time
}

// Folder is where a robot may write for a user; it ends with a slash. The base64 of a thing id has no slash: its characters are too few.
func (g Grant) Folder() string {
	return g.Prefix + "/" + g.User + "/" + base64.StdEncoding.EncodeToString([]byte(g.Thing)) + "/"
}

// MaxKey is how long a key may be, in bytes, at S3.
const MaxKey = 1024

// May reports whether the grant allows writing key. A key that could be read as leading elsewhere, by us or by a program that reads the bucket as
// folders, is not allowed.
func (g Grant) May(key string) bool {
	name, ok := strings.CutPrefix(key, g.Folder())
	if !ok || name == "" || len(key) > MaxKey || !utf8.ValidString(key) {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || strings.ContainsFunc(part, func(r rune) bool { return r == '\\' || !unicode.IsPrint(r) }) {
			return false
		}
	}
	return true
}

// Name returns what key calls the upload, below the robot's folder.
func (g Grant) Name(key string) string { return strings.TrimPrefix(key, g.Folder()) }

// Stored returns the key in our bucket of what a robot calls key: robots that still name the maker's folder write into ours as well, and the
// name is encoded (see EncodeName).
func (g Grant) Stored(key string) string {
	return stored(g.Prefix) + strings.TrimPrefix(g.Folder(), g.Prefix) + EncodeName(g.Name(key))
}

func stored(prefix string) string {
	if strings.HasPrefix(prefix+"/", Root) {
		return prefix
	}
	return Root + prefix
}

// Standing says whether what a grant says still holds: the robot is not revoked, and still acts for that user. It is asked for every
// upload at its start and before its end, so it must answer from memory, not older than two seconds.
type Standing interface {
	// Check returns nil, or an error whose code is for the doctor. Kinds Unavailable and Internal are trouble of ours, others refusals. made says that
	// the grant is in use; the robot's association is stored only after its first was made.
	Check(ctx context.Context, g Grant, made bool) error
}

// Config holds the settings of grants.
type Config struct {
	Seal     secretbox.Key
	Prefix   string        // "": DefaultPrefix; the path of the robots' "logfiles" setting, s3://bucket/PREFIX
	Life     time.Duration // 0: DefaultLife
	Standing Standing
	Now      func() time.Time // nil: time.Now
}

var prefixes = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}(/[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}){0,7}$`)

// ValidPrefix reports whether robots' keys may begin with prefix.
func ValidPrefix(prefix string) bool { return prefixes.MatchString(prefix) }

// Grants makes and opens temporary credentials. Safe for concurrent use.
type Grants struct {
	cfg  Config
	seal secretbox.Sealer
}

var _ token.STS = (*Grants)(nil)

// New returns Grants; the error says which setting cannot work.
func New(c Config) (*Grants, error) {
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.Life == 0 {
		c.Life = DefaultLife
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	switch {
	case !ValidPrefix(c.Prefix):
		return nil, errs.New(errs.Invalid, "temporary credentials: prefix %q: want names of letters, digits, . _ - with / between them", c.Prefix)
	case c.Life < MinLife || c.Life > MaxLife:
		return nil, errs.New(errs.Invalid, "temporary credentials: life %s: want %s to %s", c.Life, MinLife, MaxLife)
	case c.Standing == nil:
		return nil, errs.New(errs.Invalid, "temporary credentials: want a source of revocations")
	}
	return &Grants{cfg: c, seal: c.Seal.For("sts/grant")}, nil
}

var users = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}$`)

// newGrant checks whom it is for: both become folders.
func newGrant(id thing.ID, user, prefix string, now time.Time, life time.Duration) (Grant, error) {
	if _, err := thing.Parse(string(id)); err != nil {
		return Grant{}, errs.New(errs.Invalid, "temporary credentials: %w", err)
	}
	if !users.MatchString(user) {
		return Grant{}, errs.New(errs.Invalid, "temporary credentials for %s: a user id of %d bytes: want 1 to 64 letters, digits, _ or -", id, len(user))
	}
	now = now.UTC().Truncate(time.Second) // what robots are told has whole seconds
	return Grant{Thing: id, User: user, Prefix: prefix, Issued: now, Expires: now.Add(life)}, nil
}

// sealed is a grant as a session token holds it.
type sealed struct {
	Thing   thing.ID `json:"t"`
	User    string   `json:"u"`
	Prefix  string   `json:"p"`
	Issued  int64    `json:"i"` // seconds since 1970
	Expires int64    `json:"e"`
	Secret  string   `json:"s"`
}

// keyPrefix begins the ids of temporary keys, at AWS and here.
const keyPrefix = "ASIA"

// Mint implements token.STS. It refuses a robot that does not stand. A robot whose owner allows no uploads gets credentials all the same, because it cannot be set up
// without them (peer facts section 1); the door takes nothing with them (VEC-LOG-08).
func (s *Grants) Mint(ctx context.Context, id thing.ID, userID string) (token.Credentials, error) {
	g, err := newGrant(id, userID, s.cfg.Prefix, s.cfg.Now(), s.cfg.Life)
	if err != nil {
		return token.Credentials{}, err
	}
	if err := s.cfg.Standing.Check(ctx, g, false); err != nil {
		return token.Credentials{}, err
	}
	access, key := keyPrefix+rand.Text()[:16], rand.Text()+rand.Text()[:14]
	plain, err := json.Marshal(sealed{g.Thing, g.User, g.Prefix, g.Issued.Unix(), g.Expires.Unix(), key})
	if err != nil {
		return token.Credentials{}, err
	}
	return token.Credentials{AccessKeyID: access, SecretAccessKey: logging.Secret(key), Expires: g.Expires,
		SessionToken: logging.Secret(base64.StdEncoding.EncodeToString(s.seal.Seal(plain, []byte(access))))}, nil
}

// maxToken bounds a session token, in bytes; ours have about 400.
const maxToken = 2048

// Open returns the grant in a session token and the secret that goes with it. It does not ask whether the grant still holds: see Check,
// once the signature has shown that the caller has the secret.
func (s *Grants) Open(accessKeyID, sessionToken string) (Grant, logging.Secret, error) {
	if !strings.HasPrefix(accessKeyID, keyPrefix) {
		return Grant{}, "", errs.Coded(errs.Unauthenticated, CodeNoKey, "unknown access key id")
	}
	bad := errs.Coded(errs.Unauthenticated, CodeToken, "the session token is unknown, or belongs to another access key id")
	if len(sessionToken) > maxToken {
		return Grant{}, "", bad
	}
	b, err := base64.StdEncoding.Strict().DecodeString(sessionToken)
	if err != nil {
		return Grant{}, "", bad
	}
	plain, err := s.seal.Open(b, []byte(accessKeyID))
	if err != nil {
		return Grant{}, "", bad
	}
	var v sealed
	if err := json.Unmarshal(plain, &v); err != nil { // sealed by us, so by another release
		return Grant{}, "", bad
	}
	return Grant{Thing: v.Thing, User: v.User, Prefix: v.Prefix, Issued: time.Unix(v.Issued, 0).UTC(), Expires: time.Unix(v.Expires, 0).UTC()},
		logging.Secret(v.Secret), nil
}

// Check says whether a grant holds now.
func (s *Grants) Check(ctx context.Context, g Grant) error {
	if !s.cfg.Now().Before(g.Expires) {
		return errs.Coded(errs.Denied, CodeExpired, "the provided token has expired, at %s", g.Expires.Format(time.RFC3339))
	}
	return s.cfg.Standing.Check(ctx, g, true)
}

// Objects is the part of a blob.Store that personal data needs.
type Objects interface {
	List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error]
	DeleteAll(ctx context.Context, prefix string) (int, error)
	DropUnfinished(ctx context.Context, prefix string, before time.Time) (int, error)
}

// Personal finds the uploads of a person's robots. Prefixes are all that robots ever had.
type Personal struct {
	Objects  Objects
	Prefixes []string
}

// Upload is one object as its owner may read of it.
type Upload struct {
	Key      string    `json:"key"`
	Size     int64     `json:"size"` // bytes
	Modified time.Time `json:"modified"`
}

func (p Personal) folders(account string) ([]string, error) {
	if !users.MatchString(account) {
		return nil, errs.New(errs.Invalid, "logs of an account: an id of %d bytes: want 1 to 64 letters, digits, _ or -", len(account))
	}
	var out []string
	for _, prefix := range p.Prefixes {
		out = append(out, stored(prefix)+"/"+account+"/")
	}
	return out, nil
}

// Export is List.
func (p Personal) Export(ctx context.Context, account string) (any, error) {
	return p.List(ctx, account)
}

// List lists the account's uploads.
func (p Personal) List(ctx context.Context, account string) ([]Upload, error) {
	folders, err := p.folders(account)
	if err != nil {
		return nil, err
	}
	out := []Upload{}
	for _, f := range folders {
		for o, err := range p.Objects.List(ctx, f) {
			if err != nil {
				return nil, err
			}
			out = append(out, Upload{Key: o.Key, Size: o.Size, Modified: o.Modified})
		}
	}
	return out, nil
}

// Erase deletes the account's uploads, and what of them is under way in parts. It may be repeated, and continues where it stopped. Standing
// must refuse the account's grants before, or a robot that is uploading adds to them.
func (p Personal) Erase(ctx context.Context, account string) error {
	folders, err := p.folders(account)
	if err != nil {
		return err
	}
	for _, f := range folders {
		if _, err := p.Objects.DropUnfinished(ctx, f, time.Now().Add(24*time.Hour)); err != nil { // all, whatever the clock of the store says
			return err
		}
		if _, err := p.Objects.DeleteAll(ctx, f); err != nil {
			return err
		}
	}
	return nil
}
