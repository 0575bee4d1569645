package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// ctlUser is a person with kennelctl and a session of their own.
type ctlUser struct {
	h        *house
	home     string
	email    string
	password string // file
}

// newCtlUser signs up, proves the address with the letter, and signs in.
func (h *house) newCtlUser(email string) *ctlUser {
	h.t.Helper()
	p := &ctlUser{h: h, home: h.t.TempDir(), email: email}
	p.password = filepath.Join(p.home, "password")
	if err := os.WriteFile(p.password, []byte("a long enough phrase of "+email), 0o600); err != nil {
		h.t.Fatal(err)
	}
	p.must("account", "signup", "-email", email, "-password-file", p.password)
	var code string
	await(h.t, 30*time.Second, "letter to "+email, func() (err error) {
		code, err = h.letter(email)
		return err
	})
	p.must("account", "verify", "-code", code, "-password-file", p.password)
	p.must("login", "-email", email, "-password-file", p.password)
	return p
}

func (p *ctlUser) ctl(args ...string) ([]byte, error) {
	return program(p.h.t, "", []string{"HOME=" + p.home, "XDG_CONFIG_HOME=" + p.home}, "kennelctl",
		append([]string{"-server", p.h.ready.Endpoints["api"], "-ca", p.h.ready.Files["root_ca"]}, args...)...)
}

func (p *ctlUser) must(args ...string) []byte {
	p.h.t.Helper()
	out, err := p.ctl(args...)
	if err != nil {
		p.h.t.Fatal(err)
	}
	return out
}

func (p *ctlUser) json(v any, args ...string) {
	p.h.t.Helper()
	out := p.must(append(args, "-o", "json")...)
	if err := json.Unmarshal(out, v); err != nil {
		p.h.t.Fatalf("kennelctl %v: %v in %s", args, err, out)
	}
}

// robots lists what the person owns.
func (p *ctlUser) robots() (things []string) {
	p.h.t.Helper()
	var rows []struct{ Thing string }
	p.json(&rows, "my", "robots")
	for _, r := range rows {
		things = append(things, r.Thing)
	}
	return things
}

// program runs one of the programs to its end and returns what it printed.
func program(t *testing.T, stdin string, env []string, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, stderr.Bytes())
	}
	return out, nil
}

// agentd runs a command of the robot's own program, as its other programs do.
func agentd(t *testing.T, root, stdin string, args ...string) (string, error) {
	out, err := program(t, stdin, nil, "agentd", append(args, "-root", root)...)
	return strings.TrimSpace(string(out)), err
}

// shownCode waits for the code that the robot shows.
func shownCode(t *testing.T, root string) (code string) {
	t.Helper()
	await(t, time.Minute, "code on the robot", func() error {
		b, err := os.ReadFile(filepath.Join(root, "run/claim-code"))
		code = strings.TrimSpace(string(b))
		return err
	})
	return code
}

// knows reports whether a document of client tokens has the token, in the form of original robots: base64(sha256(token, salt), salt) of a token
// that is base64 itself (peer facts, section 2).
func knows(t *testing.T, doc []byte, token string) bool {
	t.Helper()
	var d struct {
		Tokens []struct{ Hash string } `json:"client_tokens"`
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		t.Fatalf("vic.AppTokens: %v in %s", err, doc)
	}
	raw, err := base64.StdEncoding.DecodeString(token)
	if err != nil || len(raw) != 16 {
		t.Fatalf("client token of %d bytes, %v: want base64 of 16", len(raw), err)
	}
	for _, c := range d.Tokens {
		h, err := base64.StdEncoding.DecodeString(c.Hash)
		if err != nil || len(h) != sha256.Size+16 {
			t.Fatalf("hash %q: want base64 of 48 bytes", c.Hash)
		}
		if sha256.Sum256(slices.Concat(raw, h[sha256.Size:])) == [sha256.Size]byte(h[:sha256.Size]) {
			return true
		}
	}
	return false
}

// appTokens reads vic.AppTokens as the cloud holds it.
func (h *house) appTokens(thing string) []byte {
	h.t.Helper()
	var d struct {
		Doc json.RawMessage `json:"jdoc"`
	}
	if err := h.ctlJSON(&d, "jdocs", "get", thing, "vic.AppTokens"); err != nil {
		h.t.Fatal(err)
	}
	return d.Doc
}

// doctorSteps reads how the steps of the robot's own doctor stand.
func doctorSteps(t *testing.T, root string, args ...string) (map[string]string, error) {
	t.Helper()
	out, err := agentd(t, root, "", append([]string{"doctor", "-o", "json"}, args...)...)
	var r struct {
		Steps []struct{ Name, State, Code, Problem string }
	}
	if jerr := json.Unmarshal([]byte(out), &r); jerr != nil {
		return nil, fmt.Errorf("%w; %w in %q", jerr, err, out)
	}
	steps := map[string]string{}
	for _, s := range r.Steps {
		steps[s.Name] = strings.TrimSpace(s.State + " " + s.Code)
	}
	return steps, nil
}

func awaitStep(t *testing.T, root, step, want string) {
	t.Helper()
	await(t, 30*time.Second, "doctor says "+step+" "+want, func() error {
		steps, err := doctorSteps(t, root)
		if err == nil && steps[step] != want {
			err = fmt.Errorf("%v", steps)
		}
		return err
	})
}

// TestOwnerAndRobot is a robot's life with people: claimed by its code, steered, an app let in and put out, wiped, and claimed by the next.
func TestOwnerAndRobot(t *testing.T) {
	h := newHouse(t, "-robots", "1")
	h.start()
	id := h.awaitPresent(1)[0]
	root := h.robotRoot(id)
	ann := h.newCtlUser("ann@example.org")

	// The robot has no owner, and says so.
	awaitStep(t, root, "token", "waiting no_owner")
	steps, err := doctorSteps(t, root)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"config", "clock", "lookup", "tcp", "tls", "enrol", "mqtt", "documents"} {
		if steps[step] != "ok" {
			t.Errorf("doctor: %s is %q, want ok", step, steps[step])
		}
	}
	await(t, 30*time.Second, "doctor shows how the robot started (VEC-BOOT-11)", func() error {
		out, err := agentd(t, root, "", "doctor", "-offline")
		for _, want := range []string{"robotd, ms: socket ", ", first_frame ", "agentd, ms: slots ", ", reach_core ", ", reach_cloud "} {
			if !strings.Contains(out, want) {
				return fmt.Errorf("no %q in\n%s; %v", want, out, err)
			}
		}
		return nil
	})
	if got := ann.robots(); len(got) != 0 {
		t.Errorf("ann owns %v before she claimed any", got)
	}
	if out, err := ann.ctl("jdocs", "set", id, "vic.RobotSettings", "eye_color=3"); err == nil {
		t.Errorf("a stranger changes settings: %s", out)
	}

	// Claimed with what it shows (design, section 6).
	code := shownCode(t, root)
	if asked, err := agentd(t, root, "", "claim-code"); err != nil || !strings.HasPrefix(asked, code) {
		t.Errorf("the robot's code asked for: %q, %v; it shows %q", asked, err, code)
	}
	if out, err := ann.ctl("my", "claim", "AAAA-AAAA"); err == nil {
		t.Errorf("a code that nobody shows: %s", out)
	}
	ann.must("my", "claim", code)
	if got := ann.robots(); len(got) != 1 || got[0] != id {
		t.Errorf("ann owns %v, want %s", got, id)
	}
	awaitStep(t, root, "token", "waiting no_token")
	await(t, 30*time.Second, "code hidden", func() error {
		if _, err := os.Stat(filepath.Join(root, "run/claim-code")); err == nil {
			return fmt.Errorf("the code is still shown")
		}
		return nil
	})

	// Her changes arrive in the robot's file.
	ann.must("jdocs", "set", id, "vic.RobotSettings", "eye_color=3", "time_zone=Europe/Berlin")
	t.Logf("settings arrived after %v", has(t, root, "time_zone", "Europe/Berlin").Round(time.Millisecond))
	has(t, root, "eye_color", 3)

	// An app logs in at the robot.
	token, used := ann.exchange(root, "first app")
	if out, err := agentd(t, root, token, "authorized"); err != nil {
		t.Errorf("the app's token: %s %v", out, err)
	}
	if _, err := agentd(t, root, strings.Repeat("A", 22)+"==", "authorized"); err == nil {
		t.Error("any token of that form lets in")
	}
	if doc := h.appTokens(id); !knows(t, doc, token) || bytes.Contains(doc, []byte(token)) {
		t.Errorf("vic.AppTokens: want the hash of the token and not the token:\n%s", doc)
	}
	awaitStep(t, root, "token", "ok")
	if out, err := agentd(t, root, used, "exchange", "-client", "again"); err == nil {
		t.Errorf("a session is exchanged twice: %d bytes", len(out))
	}
	awaitStep(t, root, "token", "failed unauthenticated") // the last refusal is told until a request is answered
	second, _ := ann.exchange(root, "second app")
	awaitStep(t, root, "token", "ok")
	for _, tok := range []string{token, second} { // a new login ends no earlier one
		if _, err := agentd(t, root, tok, "authorized"); err != nil {
			t.Error(err)
		}
	}

	// Put out over the API: the robot hears.
	ann.api().do("DELETE", "/v1/things/"+id+"/apps/"+ann.app(id, "first app"), nil, nil)
	took := await(t, 30*time.Second, "the first app is out", func() error {
		if _, err := agentd(t, root, token, "authorized"); err == nil {
			return fmt.Errorf("its token still lets in")
		}
		return nil
	})
	t.Logf("an app was out %v after it was revoked", took.Round(time.Millisecond))
	if doc := h.appTokens(id); knows(t, doc, token) || !knows(t, doc, second) {
		t.Errorf("vic.AppTokens after the first app was revoked:\n%s", doc)
	}
	if _, err := agentd(t, root, second, "authorized"); err != nil {
		t.Errorf("the second app is out as well: %v", err)
	}

	// Wiped: it has no owner and comes back by itself (VEC-STOR-10, VEC-TOK-10).
	cert, err := os.ReadFile(filepath.Join(root, "persist/kennel/device.key"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := agentd(t, root, "", "clear-user-data"); err == nil {
		t.Errorf("cleared without confirmation: %s", out)
	}
	if _, err := agentd(t, root, "", "clear-user-data", "-yes"); err != nil {
		t.Fatal(err)
	}
	took = await(t, time.Minute, "ownership ends", func() error {
		if got := ann.robots(); len(got) != 0 {
			return fmt.Errorf("ann owns %v", got)
		}
		return nil
	})
	t.Logf("ownership ended %v after the wipe was asked for", took.Round(time.Millisecond))
	h.awaitPresent(1)
	awaitStep(t, root, "token", "waiting no_owner")
	if _, err := agentd(t, root, second, "authorized"); err == nil {
		t.Error("an app of the former owner is let in after the wipe")
	}
	if after, err := os.ReadFile(filepath.Join(root, "persist/kennel/device.key")); err != nil || !bytes.Equal(cert, after) {
		t.Errorf("the wipe changed the device key (%v)", err)
	}
	if out, err := ann.ctl("jdocs", "set", id, "vic.RobotSettings", "eye_color=1"); err == nil {
		t.Errorf("the former owner changes settings: %s", out)
	}
	bob := h.newCtlUser("bob@example.org")
	bob.must("my", "claim", shownCode(t, root)) // the newest: a robot that starts again shows another
	if got := bob.robots(); len(got) != 1 || got[0] != id {
		t.Errorf("bob owns %v, want %s", got, id)
	}

	// Both are told, and bob again when support takes the robot away.
	h.awaitLetter(t, ann.email, id, "typed the code that it shows")
	h.awaitLetter(t, ann.email, id, "were wiped")
	h.awaitLetter(t, bob.email, id, "typed the code that it shows")
	h.operator(t).do("DELETE", "/v1/things/"+id+"/owner", map[string]string{"reason": "sold without a word"}, nil)
	h.awaitLetter(t, bob.email, id, "took the robot")
}

// exchange has the robot exchange a session of the person's for a client token, as a new app does.
func (p *ctlUser) exchange(root, client string) (token, session string) {
	p.h.t.Helper()
	var app struct {
		Session string `json:"session_token"`
	}
	p.json(&app, "account", "app-token")
	var err error
	token, err = agentd(p.h.t, root, app.Session, "exchange", "-client", client)
	if err != nil {
		p.h.t.Fatal(err)
	}
	return token, app.Session
}

// api returns the person with the session that kennelctl keeps.
func (p *ctlUser) api() *person {
	p.h.t.Helper()
	var session struct{ Token string }
	if err := readJSONFile(filepath.Join(p.home, "kennel/session.json"), &session); err != nil {
		p.h.t.Fatal(err)
	}
	q := p.h.stranger(p.h.t)
	q.token, q.email = session.Token, p.email
	return q
}

// app returns the name under which the API has an app of the robot.
func (p *ctlUser) app(thing, client string) string {
	p.h.t.Helper()
	var apps []struct {
		ID   string `json:"id"`
		Name string `json:"client_name"`
	}
	p.api().do("GET", "/v1/things/"+thing+"/apps", nil, &apps)
	for _, a := range apps {
		if a.Name == client {
			return a.ID
		}
	}
	p.h.t.Fatalf("no app %q among %+v", client, apps)
	return ""
}
