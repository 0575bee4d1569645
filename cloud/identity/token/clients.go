package token

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// Sizes of the original's hash form (peer facts, section 2): base64(SHA-256(token, salt), salt).
const (
	clientTokenSize = 16
	saltSize        = 16
)

// MaxApps is how many client tokens a robot may have. None is dropped for a new one: an owner removes some.
const MaxApps = 256

// docWriter is who changes vic.AppTokens, in its history.
const docWriter = "kennel:token"

// maxDocTries bounds how often a change of the document begins again because others were first.
const maxDocTries = 16

// App is one entry of vic.AppTokens: an app that may talk to the robot.
type App struct {
	ID     string    `json:"id"` // names the entry, not its hash
	Name   string    `json:"client_name"`
	AppID  string    `json:"app_id"`
	Issued time.Time `json:"issued_at"`
	// Rights are those of tokenwire.Rights that it has; absent: all but hear, as the original's apps have.
	Rights  []string  `json:"rights,omitzero"`
	Expires time.Time `json:"expires_at,omitzero"` // absent: never
}

// entry is the original's form of an App. What is not read stays in the document as it is.
type entry struct {
	Hash     string `json:"hash"`
	Name     string `json:"client_name"`
	AppID    string `json:"app_id"`
	IssuedAt string `json:"issued_at"`

	// Of programs (AddProgram); original robots do not read them.
	Rights    []string `json:"rights,omitzero"` // nil: all but hear
	ExpiresAt string   `json:"expires_at,omitempty"`
	By        string   `json:"by,omitempty"` // the account that let it in
}

// expired reports whether the token no longer opens the gateway.
func (e entry) expired(now time.Time) bool {
	end, err := time.Parse(time.RFC3339, e.ExpiresAt)
	return err == nil && !now.Before(end)
}

// id names an entry without giving its hash away: with the hash, guesses could be tried at leisure.
func (e entry) id() string {
	sum := sha256.Sum256([]byte("app " + e.Hash))
	return hex.EncodeToString(sum[:8])
}

// newClientToken returns a token and its entry's hash.
func newClientToken() (logging.Secret, string) {
	var token [clientTokenSize]byte
	var salt [saltSize]byte
	rand.Read(token[:])
	rand.Read(salt[:])
	return logging.Secret(base64.StdEncoding.EncodeToString(token[:])), hashClientToken(token, salt)
}

func hashClientToken(token [clientTokenSize]byte, salt [saltSize]byte) string {
	sum := sha256.Sum256(append(token[:], salt[:]...))
	return base64.StdEncoding.EncodeToString(append(sum[:], salt[:]...))
}

// appTokens is the document, with all that it may hold besides.
type appTokens struct {
	rest    map[string]json.RawMessage
	entries []json.RawMessage
}

// parseAppTokens reads the document; ok is false if it is none, and the result is then an empty one.
func parseAppTokens(text string) (doc appTokens, ok bool) {
	doc.rest = map[string]json.RawMessage{}
	if text == "" {
		return doc, true
	}
	if err := json.Unmarshal([]byte(text), &doc.rest); err != nil || doc.rest == nil {
		return appTokens{rest: map[string]json.RawMessage{}}, false
	}
	if list, has := doc.rest["client_tokens"]; has {
		if err := json.Unmarshal(list, &doc.entries); err != nil {
			return appTokens{rest: map[string]json.RawMessage{}}, false
		}
	}
	return doc, true
}

func (d appTokens) text() (string, error) {
	if d.entries == nil {
		d.entries = []json.RawMessage{} // an empty list, not null
	}
	list, err := json.Marshal(d.entries)
	if err != nil {
		return "", err
	}
	d.rest["client_tokens"] = list
	out, err := json.Marshal(d.rest)
	return string(out), err
}

// read returns an entry; false if it is none of ours to read.
func read(raw json.RawMessage) (entry, bool) {
	var e entry
	err := json.Unmarshal(raw, &e)
	return e, err == nil && e.Hash != ""
}

// drop removes the entries that which chooses, and reports whether there were any. One that is none of ours to read has an empty hash.
func (d *appTokens) drop(which func(entry) bool) bool {
	had := len(d.entries)
	d.entries = slices.DeleteFunc(d.entries, func(raw json.RawMessage) bool {
		e, ok := read(raw)
		if !ok {
			e = entry{}
		}
		return which(e)
	})
	return len(d.entries) < had
}

func all(entry) bool { return true }

// changeApps applies change to the document of a thing, again while others are first. change returns false if there is nothing to change.
func (s *Service) changeApps(ctx context.Context, id thing.ID, change func(*appTokens) (bool, error)) error {
	key, err := jdocs.NewKey("", id, jdocs.AppTokens)
	if err != nil {
		return err
	}
	for range maxDocTries {
		cur, err := s.cfg.Docs.Get(ctx, key)
		if err != nil && errs.KindOf(err) != errs.NotFound && !errors.Is(err, jdocs.ErrNotFound) {
			return fmt.Errorf("apps of %s: %w", id, err)
		}
		if err != nil {
			cur = jdocs.Revision{}
		}
		doc, ok := parseAppTokens(cur.JSON)
		if !ok {
			s.cfg.Log.WarnContext(ctx, "app document unreadable; starting an empty one, history kept", logging.Thing, string(id),
				logging.Doc, string(jdocs.AppTokens), "version", cur.Version)
		}
		changed, err := change(&doc)
		if err != nil || !changed {
			return err
		}
		text, err := doc.text()
		if err != nil {
			return err
		}
		res, err := s.cfg.Docs.Write(ctx, key, jdocs.Doc{Version: cur.Version, FmtVersion: max(cur.FmtVersion, jdocs.AppTokens.FmtVersion()), ClientMeta: cur.ClientMeta, JSON: text}, docWriter)
		if err != nil {
			return fmt.Errorf("apps of %s: %w", id, err)
		}
		switch res.Status {
		case jdocs.Accepted:
			return nil
		case jdocs.RejectedBadDocVersion: // another was first
		default:
			return fmt.Errorf("apps of %s: write answered %v", id, res.Status)
		}
	}
	return errs.RetryLater(time.Second, "the robot's list of apps is being changed by another process", nil)
}

// addApp makes a client token for e, whose Hash and IssuedAt it sets, and returns the id of the entry. It drops the entries that drop chooses.
func (s *Service) addApp(ctx context.Context, id thing.ID, e entry, drop func(entry) bool) (token logging.Secret, app string, err error) {
	token, e.Hash = newClientToken()
	e.Name, e.AppID, e.IssuedAt = clip(e.Name), clip(e.AppID), s.now().UTC().Format(time.RFC3339)
	raw, err := json.Marshal(e)
	if err != nil {
		return "", "", err
	}
	err = s.changeApps(ctx, id, func(doc *appTokens) (bool, error) {
		doc.drop(drop)
		if len(doc.entries) >= MaxApps {
			return false, errs.Coded(errs.Exhausted, "too_many_apps", "the robot has %d apps: want fewer; remove some", len(doc.entries))
		}
		doc.entries = append(doc.entries, raw)
		return true, nil
	})
	if err != nil {
		return "", "", err
	}
	return token, e.id(), nil
}

// dropApps removes the client tokens that which chooses.
func (s *Service) dropApps(ctx context.Context, id thing.ID, which func(entry) bool) error {
	return s.changeApps(ctx, id, func(doc *appTokens) (bool, error) { return doc.drop(which), nil })
}

// Apps returns the apps that may talk to a robot.
func (s *Service) Apps(ctx context.Context, id thing.ID) ([]App, error) {
	out := []App{}
	err := s.changeApps(ctx, id, func(doc *appTokens) (bool, error) {
		out = out[:0]
		for _, raw := range doc.entries {
			e, ok := read(raw)
			if !ok {
				continue
			}
			a := App{ID: e.id(), Name: e.Name, AppID: e.AppID, Rights: e.Rights}
			a.Issued, _ = time.Parse(time.RFC3339, e.IssuedAt) // the original writes it in other forms too
			a.Expires, _ = time.Parse(time.RFC3339, e.ExpiresAt)
			out = append(out, a)
		}
		return false, nil
	})
	return out, err
}

// RevokeApp removes one app; NotFound. The robot hears of it as soon as it is there.
func (s *Service) RevokeApp(ctx context.Context, id thing.ID, app string) error {
	return s.changeApps(ctx, id, func(doc *appTokens) (bool, error) {
		if doc.drop(func(e entry) bool { return e.Hash != "" && e.id() == app }) {
			return true, nil
		}
		return false, errs.Coded(errs.NotFound, "no_app", "%s has no app %.40q", id, app)
	})
}

// RevokeApps removes every app.
func (s *Service) RevokeApps(ctx context.Context, id thing.ID) error { return s.dropApps(ctx, id, all) }

// clip makes a name from a peer fit for the document: valid text of at most maxName characters.
func clip(name string) string {
	name = strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", ""), "?")
	if r := []rune(name); len(r) > maxName {
		name = string(r[:maxName])
	}
	return name
}
