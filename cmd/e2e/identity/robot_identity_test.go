package identity

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
)

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
func appTokens(h *housetest.House, thing string) []byte {
	h.T.Helper()
	var d struct {
		Doc json.RawMessage `json:"jdoc"`
	}
	if err := h.CtlJSON(&d, "jdocs", "get", thing, "vic.AppTokens"); err != nil {
		h.T.Fatal(err)
	}
	return d.Doc
}

// doctorSteps reads how the steps of the robot's own doctor stand.
func doctorSteps(t *testing.T, root string, args ...string) (map[string]string, error) {
	t.Helper()
	out, err := housetest.Agentd(t, root, "", append([]string{"doctor", "-o", "json"}, args...)...)
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
	housetest.Await(t, 30*time.Second, "doctor says "+step+" "+want, func() error {
		steps, err := doctorSteps(t, root)
		if err == nil && steps[step] != want {
			err = fmt.Errorf("%v", steps)
		}
		return err
	})
}

// TestOwnerAndRobot is a robot's life with people: claimed by its code, steered, an app let in and put out, wiped, and claimed by the next.
func TestOwnerAndRobot(t *testing.T) {
	h := housetest.New(t, "-robots", "1")
	h.Start()
	id := h.AwaitPresent(1)[0]
	root := h.RobotRoot(id)
	ann := h.NewCtlUser("ann@example.org")

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
	housetest.Await(t, 30*time.Second, "doctor shows how the robot started (part of VEC-BOOT-11)", func() error {
		out, err := housetest.Agentd(t, root, "", "doctor", "-offline")
		for _, want := range []string{"robotd, ms: socket ", ", first_frame ", "agentd, ms: slots ", ", reach_core ", ", reach_cloud "} {
			if !strings.Contains(out, want) {
				return fmt.Errorf("no %q in\n%s; %v", want, out, err)
			}
		}
		return nil
	})
	if got := ann.Robots(); len(got) != 0 {
		t.Errorf("ann owns %v before she claimed any", got)
	}
	if out, err := ann.Ctl("jdocs", "set", id, "vic.RobotSettings", "eye_color=3"); err == nil {
		t.Errorf("a stranger changes settings: %s", out)
	}

	// Claimed with what it shows (design, section 6).
	code := housetest.ShownCode(t, root)
	if asked, err := housetest.Agentd(t, root, "", "claim-code"); err != nil || !strings.HasPrefix(asked, code) {
		t.Errorf("the robot's code asked for: %q, %v; it shows %q", asked, err, code)
	}
	if out, err := ann.Ctl("my", "claim", "AAAA-AAAA"); err == nil {
		t.Errorf("a code that nobody shows: %s", out)
	}
	ann.Must("my", "claim", code)
	if got := ann.Robots(); len(got) != 1 || got[0] != id {
		t.Errorf("ann owns %v, want %s", got, id)
	}
	awaitStep(t, root, "token", "waiting no_token")
	housetest.Await(t, 30*time.Second, "code hidden", func() error {
		if _, err := os.Stat(filepath.Join(root, "run/claim-code")); err == nil {
			return fmt.Errorf("the code is still shown")
		}
		return nil
	})

	// Her changes arrive in the robot's file.
	ann.Must("jdocs", "set", id, "vic.RobotSettings", "eye_color=3", "time_zone=Europe/Berlin")
	t.Logf("settings arrived after %v", housetest.FileHas(t, root, "time_zone", "Europe/Berlin").Round(time.Millisecond))
	housetest.FileHas(t, root, "eye_color", 3)

	// An app logs in at the robot.
	token, used := ann.Exchange(root, "first app")
	if out, err := housetest.Agentd(t, root, token, "authorized"); err != nil {
		t.Errorf("the app's token: %s %v", out, err)
	}
	if _, err := housetest.Agentd(t, root, strings.Repeat("A", 22)+"==", "authorized"); err == nil {
		t.Error("any token of that form lets in")
	}
	if doc := appTokens(h, id); !knows(t, doc, token) || bytes.Contains(doc, []byte(token)) {
		t.Errorf("vic.AppTokens: want the hash of the token and not the token:\n%s", doc)
	}
	awaitStep(t, root, "token", "ok")
	if out, err := housetest.Agentd(t, root, used, "exchange", "-client", "again"); err == nil {
		t.Errorf("a session is exchanged twice: %d bytes", len(out))
	}
	awaitStep(t, root, "token", "failed unauthenticated") // the last refusal is told until a request is answered
	second, _ := ann.Exchange(root, "second app")
	awaitStep(t, root, "token", "ok")
	for _, tok := range []string{token, second} { // a new login ends no earlier one
		if _, err := housetest.Agentd(t, root, tok, "authorized"); err != nil {
			t.Error(err)
		}
	}

	// Put out over the API: the robot hears.
	ann.API().Do("DELETE", "/v1/things/"+id+"/apps/"+ann.App(id, "first app"), nil, nil)
	took := housetest.Await(t, 30*time.Second, "the first app is out", func() error {
		if _, err := housetest.Agentd(t, root, token, "authorized"); err == nil {
			return fmt.Errorf("its token still lets in")
		}
		return nil
	})
	t.Logf("an app was out %v after it was revoked", took.Round(time.Millisecond))
	if doc := appTokens(h, id); knows(t, doc, token) || !knows(t, doc, second) {
		t.Errorf("vic.AppTokens after the first app was revoked:\n%s", doc)
	}
	if _, err := housetest.Agentd(t, root, second, "authorized"); err != nil {
		t.Errorf("the second app is out as well: %v", err)
	}

	// Wiped: it has no owner and comes back by itself (VEC-STOR-10, VEC-TOK-10).
	cert, err := os.ReadFile(filepath.Join(root, "persist/kennel/device.key"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := housetest.Agentd(t, root, "", "clear-user-data"); err == nil {
		t.Errorf("cleared without confirmation: %s", out)
	}
	if _, err := housetest.Agentd(t, root, "", "clear-user-data", "-yes"); err != nil {
		t.Fatal(err)
	}
	took = housetest.Await(t, time.Minute, "ownership ends", func() error {
		if got := ann.Robots(); len(got) != 0 {
			return fmt.Errorf("ann owns %v", got)
		}
		return nil
	})
	t.Logf("ownership ended %v after the wipe was asked for", took.Round(time.Millisecond))
	h.AwaitPresent(1)
	awaitStep(t, root, "token", "waiting no_owner")
	if _, err := housetest.Agentd(t, root, second, "authorized"); err == nil {
		t.Error("an app of the former owner is let in after the wipe")
	}
	if after, err := os.ReadFile(filepath.Join(root, "persist/kennel/device.key")); err != nil || !bytes.Equal(cert, after) {
		t.Errorf("the wipe changed the device key (%v)", err)
	}
	if out, err := ann.Ctl("jdocs", "set", id, "vic.RobotSettings", "eye_color=1"); err == nil {
		t.Errorf("the former owner changes settings: %s", out)
	}
	bob := h.NewCtlUser("bob@example.org")
	bob.Must("my", "claim", housetest.ShownCode(t, root)) // the newest: a robot that starts again shows another
	if got := bob.Robots(); len(got) != 1 || got[0] != id {
		t.Errorf("bob owns %v, want %s", got, id)
	}

	// Both are told, and bob again when support takes the robot away.
	h.AwaitLetter(t, ann.Email, id, "code was entered")
	h.AwaitLetter(t, ann.Email, id, "was erased")
	h.AwaitLetter(t, bob.Email, id, "code was entered")
	h.Operator(t).Do("DELETE", "/v1/things/"+id+"/owner", map[string]string{"reason": "sold without a word"}, nil)
	h.AwaitLetter(t, bob.Email, id, "removed the robot")
}
