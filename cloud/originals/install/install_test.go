package install

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kennel/cloud/originals"
	"kennel/cloud/originals/install/installtest"
	"kennel/cloud/originals/replay"
)

var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// robot is one of package installtest.
type robot struct {
	*installtest.Robot
	t *testing.T
}

func newRobot(t *testing.T, program string) robot { return robot{installtest.New(t, program), t} }

func (r robot) login() Login {
	return Login{Addr: r.Addr, Key: r.Key, Fingerprint: ssh.FingerprintSHA256(r.Host)}
}

// do installs or undoes over a connection of its own.
func (r robot) do(undo bool) originals.Result {
	r.t.Helper()
	s, err := Dial(r.t.Context(), r.login())
	if err != nil {
		r.t.Fatal(err)
	}
	defer s.Close()
	c := Config{Guide: guide, Now: now}
	if undo {
		return Undo(r.t.Context(), s, c)
	}
	return Install(r.t.Context(), s, c)
}

var guide = originals.Guide{Root: "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n", RootFile: originals.RootFile, OtherRoots: []string{"/anki/etc/wirepod-cert.crt", "/data/data/wirepod-cert.crt"},
	ConfigFile: originals.ConfigFile, ServerConfig: replay.ServerConfig{Tms: "kennel.lan:8444", Jdocs: "kennel.lan:8444"}}

// installed reports whether all files are as wanted; the second, whether none is.
func (r robot) installed() (all, nothing bool) {
	r.t.Helper()
	tree := r.Files()
	_, seeded := tree[tokenFile]
	config, root := tree[originals.ConfigFile], tree[originals.RootFile]
	return seeded && config == guide.ServerConfig.JSON()+"\n" && root == guide.Root, !seeded && config == installtest.Config && root == ""
}

func (r robot) readOnly() bool { return strings.Contains(r.Files()["/proc/mounts"], "ext4 ro") }

// TestInstall: stock software that was wiped gets root, seed token and server file; a second installation changes nothing; undoing leaves the robot's
// own files alone.
func TestInstall(t *testing.T) {
	r := newRobot(t, "stock")
	was := r.Files()
	got := r.do(false)
	var names []string
	for _, s := range got.Steps {
		names = append(names, s.Name)
	}
	if all, _ := r.installed(); !got.OK || !all || !strings.Contains(got.Sentence, "Hey Vector") || !r.readOnly() {
		t.Fatalf("%+v; read-only %v; %q", got, r.readOnly(), r.Files())
	}
	if want := []string{"software", "files", "permission", "backup", "swap", "restart", "verification"}; !slices.Equal(names, want) {
		t.Errorf("steps %q, want %q", names, want)
	}
	if want := "vic:00e20100, version 2.0.1.6076, stock software, which reads a root at its first voice request"; got.Steps[0].Detail != want {
		t.Errorf("software %q, want %q", got.Steps[0].Detail, want)
	}
	if log := r.Services(); log != "stop anki-robot.target\nstart anki-robot.target\nis-active vic-cloud\n" {
		t.Errorf("services: %q", log)
	}
	user, until := claims(r.Files()[tokenFile])
	if user != seedUser || !until.Equal(now.Add(seedTime)) {
		t.Errorf("seed of %q until %v: the robot's software would not take it", user, until)
	}
	if again := r.do(false); !again.OK || len(again.Steps) != 2 || !strings.Contains(again.Sentence, "nothing was changed") {
		t.Errorf("again: %+v", again)
	}
	if got := r.do(true); !got.OK || !maps.Equal(r.Files(), was) {
		t.Errorf("undone: %+v; %q", got, r.Files())
	}
	if got := r.do(true); !got.OK || len(got.Steps) != 2 || !strings.Contains(got.Sentence, "Nothing is installed") {
		t.Errorf("undone again: %+v", got)
	}
}

// TestTokens: a robot that has a token keeps it, before and after; one whose seed has expired gets another.
func TestTokens(t *testing.T) {
	r := newRobot(t, "stock")
	own := strings.ReplaceAll(string(seed("vic:00e20100", now)), ".AA", ".BB")
	head, rest, _ := strings.Cut(own, ".")
	body, _, _ := strings.Cut(rest, ".")
	own = head + "." + reclaim(t, body, seedUser, "ada") + ".BB"
	r.Write(tokenFile, own)
	if got := r.do(false); !got.OK || r.Files()[tokenFile] != own || strings.Contains(got.Sentence, "sign it in") {
		t.Errorf("with its own token: %+v, %q", got, r.Files()[tokenFile])
	}

	r = newRobot(t, "stock")
	r.Write(tokenFile, string(seed("vic:00e20100", now.Add(-2*seedTime))))
	if got := r.do(false); !got.OK || r.Files()[tokenFile] != string(seed("vic:00e20100", now)) {
		t.Errorf("with an expired seed: %+v", got)
	}
	r.Write(tokenFile, own) // its owner signs in
	if got := r.do(true); !got.OK || r.Files()[tokenFile] != own || r.Files()[originals.ConfigFile] != installtest.Config {
		t.Errorf("undone after the login: %+v, %q", got, r.Files())
	}
	for name := range r.Files() {
		if strings.Contains(name, "kennel") {
			t.Errorf("%s is left", name)
		}
	}
}

// TestCommunity: software that reads other roots gets them there, and no seed.
func TestCommunity(t *testing.T) {
	r := newRobot(t, "community\x00/anki/etc/wirepod-cert.crt\x00/data/data/wirepod-cert.crt")
	got := r.do(false)
	tree := r.Files()
	_, seeded := tree[tokenFile]
	if !got.OK || seeded || tree["/anki/etc/wirepod-cert.crt"] != guide.Root || tree["/data/data/wirepod-cert.crt"] != guide.Root || tree[originals.RootFile] != guide.Root {
		t.Errorf("%+v, %q", got, tree)
	}
}

// TestFaults: where it cannot be done, the robot is as it was, and the sentence says why.
func TestFaults(t *testing.T) {
	for _, tc := range []struct{ name, mark, want, then string }{
		{"read-only system", "mount.locked", "Step 3 of 7, permission, fails: its software does not let its system be changed (mount: / is write-protected)", "Nothing was changed."},
		{"full disk", "cat.full", "cat: write error: No space left on device", "Nothing was changed."},
		{"services do not start", "systemctl.broken", "restart of anki-robot.target", "were put back"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRobot(t, "stock")
			was := r.Files()
			r.Fault(tc.mark)
			got := r.do(false)
			if got.OK || !strings.Contains(got.Sentence, tc.want) || !strings.Contains(got.Sentence, tc.then) {
				t.Errorf("%+v", got)
			}
			if !maps.Equal(r.Files(), was) {
				t.Errorf("files: %q, want %q", r.Files(), was)
			}
		})
	}
	r := newRobot(t, "stock")
	r.UID = 1000
	if got := r.do(false); got.OK || !strings.Contains(got.Sentence, "only root may") {
		t.Errorf("not root: %+v", got)
	}
}

// TestCut: whichever script a connection is lost at, the robot has all of it or nothing; installing again completes it, and undoing leaves nothing behind.
func TestCut(t *testing.T) {
	var all, nothing int
	for cut, lost := 9, true; lost; cut++ { // the scripts before only read
		r := newRobot(t, "stock")
		was := r.Files()
		r.Cut = cut
		got := r.do(false)
		lost = r.Scripts >= cut
		a, n := r.installed()
		if lost && (got.OK && len(got.Steps) == 7 || a == n) {
			t.Fatalf("cut at script %d: all %v, nothing %v, %+v, %q", cut, a, n, got, r.Files())
		}
		if a {
			all++
		} else {
			nothing++
		}
		if a && strings.Contains(got.Sentence, "Nothing was changed") {
			t.Errorf("cut at script %d: all is there, and it says %q", cut, got.Sentence)
		}
		if r.Cut = 0; lost && maps.Equal(r.Files(), was) {
			continue
		}
		if got := r.do(false); !got.OK {
			t.Errorf("cut at script %d: installing again: %+v", cut, got)
		}
		if got := r.do(true); !got.OK {
			t.Errorf("cut at script %d: undoing: %+v", cut, got)
		}
		if left := without(r.Files(), "/proc/mounts"); !maps.Equal(left, without(was, "/proc/mounts")) {
			t.Errorf("cut at script %d: left %q", cut, left)
		}
	}
	if all < 3 || nothing < 8 {
		t.Errorf("%d times all and %d times nothing: the cuts are not where they should be", all, nothing)
	}
}

// TestDeaf: a robot that does not answer after the login is waited for no longer than the caller says.
func TestDeaf(t *testing.T) {
	r := newRobot(t, "stock")
	r.Deaf = true
	s, err := Dial(t.Context(), r.login())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := s.Run(ctx, "true", nil)
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it still waits")
	}
}

// TestLogin: another machine gets no login, and each refusal says what to do.
func TestLogin(t *testing.T) {
	r := newRobot(t, "stock")
	other, good := newRobot(t, "stock"), r.login()
	known := filepath.Join(t.TempDir(), "known_hosts")
	line := func(of robot) string {
		return "[127.0.0.1]:" + strings.TrimPrefix(good.Addr, "127.0.0.1:") + " " + string(ssh.MarshalAuthorizedKey(of.Host))
	}
	for _, tc := range []struct {
		name   string
		known  string
		change func(*Login)
		want   string // of the error; "": none
	}{
		{"fingerprint", "", func(*Login) {}, ""},
		{"another fingerprint", "", func(l *Login) { l.Fingerprint = "SHA256:other" }, "this is another robot, or another machine answers in its place"},
		{"known", line(r), func(l *Login) { l.Fingerprint = "" }, ""},
		{"known otherwise", line(other), func(l *Login) { l.Fingerprint = "" }, "a robot has a new one after its user data was erased"},
		{"confirmed", " ", func(l *Login) { l.Fingerprint, l.Confirm = "", func(string) error { return nil } }, ""},
		{"not confirmed", " ", func(l *Login) {
			l.Fingerprint, l.Confirm = "", func(f string) error { return errors.New("is it " + f + "?") }
		}, "is it " + good.Fingerprint},
		{"another key", "", func(l *Login) { l.Key = other.Key }, "does not accept this key for root"},
		{"no key", "", func(l *Login) { l.Key = []byte("none") }, "want a key without a passphrase"},
		{"no SSH", "", func(l *Login) { l.Addr = "127.0.0.1:1" }, "only developer and unlocked robots have it"},
	} {
		l := good
		if tc.change(&l); tc.known != "" {
			l.KnownHosts = known
			if err := os.WriteFile(known, []byte(strings.TrimSpace(tc.known)+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Dial(t.Context(), l)
		if err == nil {
			s.Close()
		}
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

func without(m map[string]string, key string) map[string]string {
	m = maps.Clone(m)
	delete(m, key)
	return m
}

// reclaim replaces a word in a part of a token.
func reclaim(t *testing.T, part, old, with string) string {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(bytes.ReplaceAll(b, []byte(old), []byte(with)))
}
