package housetest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// CtlUser is a person with kennelctl and a session of their own.
type CtlUser struct {
	House    *House
	home     string
	Email    string
	Password string // file
}

// NewCtlUser signs up, proves the address with the letter, and signs in.
func (h *House) NewCtlUser(email string) *CtlUser {
	h.T.Helper()
	p := &CtlUser{House: h, home: h.T.TempDir(), Email: email}
	p.Password = filepath.Join(p.home, "password")
	if err := os.WriteFile(p.Password, []byte("a long enough phrase of "+email), 0o600); err != nil {
		h.T.Fatal(err)
	}
	p.Must("account", "signup", "-email", email, "-password-file", p.Password)
	var code string
	Await(h.T, 30*time.Second, "letter to "+email, func() (err error) {
		code, err = h.letter(email)
		return err
	})
	p.Must("account", "verify", "-code", code, "-password-file", p.Password)
	p.Must("login", "-email", email, "-password-file", p.Password)
	return p
}

// Ctl runs kennelctl as the person and returns what it printed.
func (p *CtlUser) Ctl(args ...string) ([]byte, error) {
	return Program(p.House.T, "", []string{"HOME=" + p.home, "XDG_CONFIG_HOME=" + p.home}, "kennelctl",
		append([]string{"-server", p.House.Ready.Endpoints["api"], "-ca", p.House.Ready.Files["root_ca"]}, args...)...)
}

// Must is Ctl for commands that must work.
func (p *CtlUser) Must(args ...string) []byte {
	p.House.T.Helper()
	out, err := p.Ctl(args...)
	if err != nil {
		p.House.T.Fatal(err)
	}
	return out
}

// JSON is Must with -o json into v.
func (p *CtlUser) JSON(v any, args ...string) {
	p.House.T.Helper()
	out := p.Must(append(args, "-o", "json")...)
	if err := json.Unmarshal(out, v); err != nil {
		p.House.T.Fatalf("kennelctl %v: %v in %s", args, err, out)
	}
}

// Robots lists what the person owns.
func (p *CtlUser) Robots() (things []string) {
	p.House.T.Helper()
	var rows []struct{ Thing string }
	p.JSON(&rows, "my", "list")
	for _, r := range rows {
		things = append(things, r.Thing)
	}
	return things
}

// Agentd runs a command of the robot's own program, as its other programs do.
func Agentd(t *testing.T, root, stdin string, args ...string) (string, error) {
	t.Helper()
	out, err := Program(t, stdin, nil, "agentd", append(args, "-root", root)...)
	return strings.TrimSpace(string(out)), err
}

// Exchange has the robot exchange a session of the person's for a client token, as a new app does.
func (p *CtlUser) Exchange(root, client string) (token, session string) {
	p.House.T.Helper()
	var app struct {
		Session string `json:"session_token"`
	}
	p.JSON(&app, "account", "app-token")
	var err error
	token, err = Agentd(p.House.T, root, app.Session, "exchange", "-client", client)
	if err != nil {
		p.House.T.Fatal(err)
	}
	return token, app.Session
}

// API returns the person with the session that kennelctl keeps.
func (p *CtlUser) API() *Person {
	p.House.T.Helper()
	var session struct{ Token string }
	if err := ReadJSON(filepath.Join(p.home, "kennel/session.json"), &session); err != nil {
		p.House.T.Fatal(err)
	}
	q := p.House.Stranger(p.House.T)
	q.Token, q.Email = session.Token, p.Email
	return q
}

// App returns the name under which the API has an app of the robot.
func (p *CtlUser) App(thing, client string) string {
	p.House.T.Helper()
	var apps []struct {
		ID   string `json:"id"`
		Name string `json:"client_name"`
	}
	p.API().Do("GET", "/v1/things/"+thing+"/apps", nil, &apps)
	for _, a := range apps {
		if a.Name == client {
			return a.ID
		}
	}
	p.House.T.Fatalf("no app %q among %+v", client, apps)
	return ""
}
