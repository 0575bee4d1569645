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
}

// entry is the original's form of an App. What is not read stays in the document as it is.
type entry struct {
	Hash     string `json:"hash"`
	Name     string `json:"client_name"`
	AppID    string `json:"app_id"`
	IssuedAt string `json:"issued_at"`
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
func (d appTokens) read(i int) (entry, bool) {
	var e entry
	err := json.Unmarshal(d.entries[i], &e)
	return e, err == nil && e.Hash != ""
}

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

// addApp makes a client token. fresh drops those that are there.
func (s *Service) addApp(ctx context.Context, id thing.ID, name, appID string, fresh bool) (logging.Secret, error) {
	token, hash := newClientToken()
	raw, err := json.Marshal(entry{Hash: hash, Name: clip(name), AppID: clip(appID), IssuedAt: s.now().UTC().Format(time.RFC3339)})
	if err != nil {
		return "", err
	}
	err = s.changeApps(ctx, id, func(doc *appTokens) (bool, error) {
		if fresh {
			doc.entries = nil
		}
		if len(doc.entries) >= MaxApps {
			return false, errs.Coded(errs.Exhausted, "too_many_apps", "the robot has %d apps: want fewer; remove some", len(doc.entries))
		}
		doc.entries = append(doc.entries, raw)
		return true, nil
	})
	if err != nil {
		return "", err
	}
	return token, nil
}

// dropApps removes every client token.
func (s *Service) dropApps(ctx context.Context, id thing.ID) error {
	return s.changeApps(ctx, id, func(doc *appTokens) (bool, error) {
		had := len(doc.entries) > 0
		doc.entries = nil
		return had, nil
	})
}

// Apps returns the apps that may talk to a robot.
func (s *Service) Apps(ctx context.Context, id thing.ID) ([]App, error) {
	out := []App{}
	err := s.changeApps(ctx, id, func(doc *appTokens) (bool, error) {
		out = out[:0]
		for i := range doc.entries {
			e, ok := doc.read(i)
			if !ok {
				continue
			}
			issued, err := time.Parse(time.RFC3339, e.IssuedAt)
			if err != nil {
				issued = time.Time{} // the original writes it in other forms too
			}
			out = append(out, App{ID: e.id(), Name: e.Name, AppID: e.AppID, Issued: issued})
		}
		return false, nil
	})
	return out, err
}

// RevokeApp removes one app; NotFound. The robot hears of it as soon as it is there.
func (s *Service) RevokeApp(ctx context.Context, id thing.ID, app string) error {
	return s.changeApps(ctx, id, func(doc *appTokens) (bool, error) {
		for i := range doc.entries {
			if e, ok := doc.read(i); ok && e.id() == app {
				doc.entries = append(doc.entries[:i], doc.entries[i+1:]...)
				return true, nil
			}
		}
		return false, errs.Coded(errs.NotFound, "no_app", "%s has no app %.40q", id, app)
	})
}

// RevokeApps removes every app.
func (s *Service) RevokeApps(ctx context.Context, id thing.ID) error { return s.dropApps(ctx, id) }

// clip makes a name from a peer fit for the document: valid text of at most maxName characters.
func clip(name string) string {
	name = strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", ""), "?")
	if r := []rune(name); len(r) > maxName {
		name = string(r[:maxName])
	}
	return name
}
