package identity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
)

// robotFile is the file by which a program reaches a robot.
type robotFile struct{ Thing, Address, Name, Certificate, Token string }

// call makes a call of the robot's API as a program does, which trusts the file's certificate alone.
func (f robotFile) call(t *testing.T, method, body string, answer any) (int, error) {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(f.Certificate)) {
		t.Fatalf("certificate of %s: %q", f.Thing, f.Certificate)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: f.Name}}}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+f.Address+"/v1/"+method, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+f.Token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return resp.StatusCode, json.NewDecoder(resp.Body).Decode(answer)
}

// TestProgram: an owner lets a program drive the robot, with the file that kennelctl prints: the robot lets it in, with the rights that it was given,
// and forgets it within seconds when the owner removes it.
func TestProgram(t *testing.T) {
	h := housetest.New(t, "-robots", "1")
	h.Start()
	id := h.AwaitPresent(1)[0]
	ann := h.NewCtlUser("ann@example.org")
	if out, err := ann.Ctl("my", "programs", "add", id, "thief", "-rights", "look"); err == nil {
		t.Errorf("a program for a robot that is not hers: %s", out)
	}
	ann.Must("my", "claim", housetest.ShownCode(t, h.RobotRoot(id)))
	add := func(name, rights string) (f robotFile) {
		t.Helper()
		housetest.Await(t, time.Minute, "the robot's certificate and address", func() error {
			out, err := ann.Ctl("my", "programs", "add", id, name, "-rights", rights, "-days", "1", "-o", "json")
			if err != nil {
				return err
			}
			return json.Unmarshal(out, &f)
		})
		return f
	}
	looks, moves := add("watcher", "look"), add("wanderer", "look,move")
	var said struct {
		Thing, Code string
		Rights      []string
	}
	try := func(f robotFile, method, body string) (code int) {
		t.Helper()
		said.Thing, said.Code, said.Rights = "", "", nil
		code, err := f.call(t, method, body, &said)
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		return code
	}
	await := func(what string, f robotFile, want int) {
		t.Helper()
		took := housetest.Await(t, 30*time.Second, what, func() error {
			if code := try(f, "describe", "{}"); code != want {
				return fmt.Errorf("%d %s", code, said.Code)
			}
			return nil
		})
		t.Logf("%s after %v", what, took.Round(time.Millisecond))
	}
	await("the robot knows the program", looks, http.StatusOK)
	if said.Thing != id || !slices.Equal(said.Rights, []string{"look"}) {
		t.Errorf("describe: %+v", said)
	}
	const claim = `{"parts":["headPitch"],"for_ms":1000}`
	if code := try(looks, "claim", claim); code != http.StatusForbidden || said.Code != "right_missing" {
		t.Errorf("a program that may only look claims the head: %d %+v", code, said)
	}
	await("the robot knows the second program", moves, http.StatusOK)
	if code := try(moves, "claim", claim); code == http.StatusForbidden {
		t.Errorf("a program that may move claims the head: %d %+v", code, said)
	}
	var list []struct {
		ID   string
		Name string `json:"client_name"`
	}
	ann.JSON(&list, "my", "programs", "list", id)
	if len(list) != 2 || list[0].Name != "watcher" {
		t.Fatalf("%+v", list)
	}
	ann.Must("my", "programs", "revoke", id, list[0].ID)
	await("the robot has forgotten the program", looks, http.StatusUnauthorized)
	if said.Code != "token_wrong" {
		t.Errorf("after it was removed: %+v", said)
	}
	if code := try(moves, "describe", "{}"); code != http.StatusOK {
		t.Errorf("the other program: %d %+v", code, said)
	}
}
