package ctl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kennel/infra/atomicfile"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// session is where the cloud is, whom to trust, and who we are.
type session struct {
	Server  string    `json:"server"` // https://host[:port], without a path
	CA      string    `json:"ca,omitempty"`
	Email   string    `json:"email,omitempty"`
	Token   string    `json:"token"`
	Expires time.Time `json:"expires,omitzero"`
}

// String hides the token.
func (s session) String() string {
	return fmt.Sprintf("%s at %s %s", s.Email, s.Server, logging.Secret(s.Token))
}

// session finds out where and as whom, without asking the cloud.
func (a *app) session(ctx context.Context) (session, error) {
	getenv := cli.Getenv(ctx)
	if a.onebox != "" {
		return oneboxSession(a.onebox, a.ca)
	}
	s, err := loadSession(getenv)
	if err != nil {
		return session{}, err
	}
	if server := cmp.Or(a.server, getenv("KENNEL_SERVER")); server != "" {
		base, err := serverURL(server)
		if err != nil {
			return session{}, err
		}
		if base != s.Server {
			s = session{Server: base} // another cloud's token is none of its business
		}
	}
	if file := getenv("KENNEL_TOKEN_FILE"); file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return session{}, fmt.Errorf("KENNEL_TOKEN_FILE: %w", err)
		}
		s.Token = strings.TrimSpace(string(b))
	}
	if a.ca != "" {
		b, err := os.ReadFile(a.ca)
		if err != nil {
			return session{}, errs.New(errs.Invalid, "-ca: %w", err)
		}
		s.CA = string(b)
	}
	if s.Server == "" {
		return session{}, errs.New(errs.Unauthenticated, "no cloud given: sign in with kennelctl login -server URL, or use -onebox DIR")
	}
	return s, nil
}

// serverURL checks what a person gave as a server and returns it as https://host[:port]. Plain http is for this machine alone.
func serverURL(s string) (string, error) {
	if !strings.Contains(s, "://") {
		s = "https://" + s
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil:
		return "", errs.New(errs.Invalid, "server %.120q: want https://host or https://host:port", s)
	case u.Scheme == "https", u.Scheme == "http" && (u.Hostname() == "localhost" || u.Hostname() == "127.0.0.1" || u.Hostname() == "::1"):
		return u.Scheme + "://" + u.Host, nil
	}
	return "", errs.New(errs.Invalid, "server %.120q: want https, so that your token stays secret", s)
}

// ready is the part of the one-machine mode's run/ready.json that this program needs.
type ready struct {
	Endpoints struct {
		API string `json:"api"`
	} `json:"endpoints"`
	Files struct {
		RootCA        string `json:"root_ca"`
		OperatorToken string `json:"operator_token"`
	} `json:"files"`
}

// oneboxSession signs in to the one-machine cloud of a data folder, through the token file that only its user can read.
func oneboxSession(dir, ca string) (session, error) {
	file := filepath.Join(dir, "run", "ready.json")
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(dir); err != nil {
			return session{}, errs.New(errs.Invalid, "-onebox %s: no such folder; want the data folder of kenneld onebox", dir)
		}
		return session{}, errs.New(errs.Unavailable, "no one-machine cloud is running on %s; start it with kenneld onebox -data %s", dir, dir)
	}
	if err != nil {
		return session{}, fmt.Errorf("-onebox: %w", err)
	}
	var r ready
	if err := json.Unmarshal(b, &r); err != nil {
		return session{}, errs.New(errs.Corrupt, "%s: %w", file, err)
	}
	s := session{}
	if s.Server, err = serverURL(r.Endpoints.API); err != nil {
		return session{}, errs.New(errs.Corrupt, "%s: endpoints.api: %w", file, err)
	}
	read := func(what, name string) (string, error) {
		if name == "" {
			return "", errs.New(errs.Corrupt, "%s: files.%s is missing", file, what)
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		b, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrPermission) {
			return "", errs.New(errs.Denied, "%w; run as the user who runs kenneld onebox, or as root", err)
		}
		return strings.TrimSpace(string(b)), err
	}
	if s.Token, err = read("operator_token", r.Files.OperatorToken); err != nil {
		return session{}, err
	}
	if ca != "" {
		r.Files.RootCA = ca
	}
	if s.CA, err = read("root_ca", r.Files.RootCA); err != nil {
		return session{}, err
	}
	return s, nil
}

// sessionFile is $XDG_CONFIG_HOME/kennel/session.json, or ~/.config/kennel/session.json.
func sessionFile(getenv func(string) string) (string, error) {
	dir := getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home := getenv("HOME")
		if home == "" {
			return "", errs.New(errs.Invalid, "save the session: neither XDG_CONFIG_HOME nor HOME is set")
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "kennel", "session.json"), nil
}

// loadSession returns the session kept by login; the zero session if there is none.
func loadSession(getenv func(string) string) (session, error) {
	file, err := sessionFile(getenv)
	if err != nil {
		return session{}, nil // no place for a session means no session
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return session{}, nil
	}
	if err != nil {
		return session{}, err
	}
	var s session
	if err := json.Unmarshal(b, &s); err != nil {
		return session{}, errs.New(errs.Corrupt, "%s: %w; sign in again", file, err)
	}
	return s, nil
}

// saveSession keeps s for the user alone, whole or not at all.
func saveSession(getenv func(string) string, s session) error {
	file, err := sessionFile(getenv)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(file, append(b, '\n'), 0o600)
}

// dropSession forgets the kept session.
func dropSession(getenv func(string) string) error {
	file, err := sessionFile(getenv)
	if err != nil {
		return err
	}
	if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
