package tenure

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"kennel/edge/agent/commands"
	"kennel/edge/agent/das"
	"kennel/edge/agent/ownership/gatewaycert"
	"kennel/edge/agent/ownership/tokens"
	"kennel/edge/agent/ownership/wipe"
	"kennel/edge/core/coreserver/holdfile"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/infra/api/commandwire"
)

var quiet = slog.New(slog.DiscardHandler)

// marker is in everything that is ann's.
const marker = "ANN-WAS-HERE"

const commandID = "0192e4f1-7d5a-7c3e-9f00-000000000001"

// jwt returns an access token of the robot for a user.
func jwt(t testing.TB, user string) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{"token_id": "t1", "token_type": "user+robot", "requestor_id": "vic:00e20100", "user_id": user,
		"iat": time.Unix(0, 0).UTC().Format(time.RFC3339), "expires": time.Unix(1e9, 0).UTC().Format(time.RFC3339)})
	if err != nil {
		t.Fatal(err)
	}
	return "eyJhbGciOiJFUzI1NiJ9." + base64.RawURLEncoding.EncodeToString(b) + ".c2ln"
}

// outlives lists what is the robot's own, wherever it is; holds lists what is its owner's, with one file for each part that has any.
var (
	outlives = map[string]string{
		"persist/kennel/device.key":      "key",
		"persist/kennel/parameters.json": "{}",
		"data/kennel/connect_seq":        "17\n",
		"data/update-engine/tuf.json":    "{}",
		"data/lib/connman/w/settings":    "Passphrase=secret",
		gatewaycert.NameFile:             "Vector-E5S6\n",
		gatewaycert.KeyFile:              "key",
		gatewaycert.CertFile:             "cert",
		"run/kennel/started":             "",
		"etc/os-version":                 "2.0.0.6074\n",
		platform.PlatformFile:            `{"DataPlatformPersistentPath":"mnt/p","DataPlatformCachePath":"mnt/c"}`,
		platform.LogUploaderFile:         "VIC_LOG_UPLOADER_FOLDER=/mnt/logs\n",
		das.ConfigFile:                   `{"storage_path":"run/dasLogs","backup_path":"spool/backup"}`,
	}
	holds = []string{
		"mnt/p/token/token.jwt", tokens.HashesFile, "mnt/p/kennel/profile_id", "mnt/p/dasGlobals.json", "run/dasGlobals.json",
		"run/dasLogs/0000000001.log", "spool/backup/0000000001.log", das.QuarantineDir + "/1.json", "run/boot_id",
		"mnt/p/jdocs/vic.RobotSettings.json", "data/kennel/jdocs-base/vic.RobotSettings.json",
		"mnt/p/photos/1/full.jpg", "mnt/p/faces/ann", "mnt/c/voice/utterance.wav", "mnt/logs/fault-916.log.gz",
		"mnt/c/vic-logmgr/agentd.log", "mnt/c/vic-logmgr/robotd.log", "mnt/c/vic-logmgr/agentd.log.1", "mnt/c/vic-logmgr/victor-1.log.gz~local",
		"var/log/messages", "var/log/messages.1.gz", "data/fault-reports/1.txt", "data/diagnostics/x/net.txt", "data/panics/1.txt",
		"data/kennel/timer.json", "data/kennel/voice_muted", "data/etc/localtime", "run/kennel/diagnosis.json", "run/claim-code",
		"data/a-part-of-tomorrow/deep/file", "mnt/p/a-part-of-tomorrow", commands.Dir + "/foreign",
	}
)

func robot(t testing.TB) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	put := func(name, body string) {
		if err := errors.Join(root.MkdirAll(path.Dir(name), 0o755), root.WriteFile(name, []byte(body), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, body := range outlives {
		put(name, body)
	}
	for _, name := range holds {
		put(name, marker)
	}
	put(commands.Dir+"/"+commandID+".json", `{"v":1,"num":3,"id":"`+commandID+`","kind":"ping","result":{"v":1,"id":"`+commandID+`","status":"done","detail":"`+marker+`","finished":7}}`)
	put(ownerFile, "ann\n")
	put(holdfile.NoteFile, `{"by":"ann","reason":"`+marker+`","since":"2026-01-01T00:00:00Z"}`)
	return root
}

// changed fails unless the robot holds nothing of ann, all that is its own, and knows its owner.
func changed(t *testing.T, root *os.Root, owner, what string) {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := root.ReadFile(name)
		if found[name] = string(b); strings.Contains(string(b), marker) || strings.Contains(name, marker) {
			t.Errorf("%s: %s is of the former owner", what, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range outlives {
		if found[name] != body {
			t.Errorf("%s: %s is %.40q", what, name, found[name])
		}
	}
	if hold, err := holdfile.Read(root); err != nil || hold.Note.By == "" || hold.Note.By == "ann" {
		t.Errorf("%s: the robot was held, now %+v, %v", what, hold, err)
	}
	if _, due := found[journalFile]; due || strings.TrimSpace(found[ownerFile]) != owner {
		t.Errorf("%s: due %v, owner %q, want %q", what, due, found[ownerFile], owner)
	}
	if log, ok := found["mnt/c/vic-logmgr/robotd.log"]; !ok || log != "" {
		t.Errorf("%s: the log that robotd has open: there %v, %q", what, ok, log)
	}
	// At most once, also across a change of owner.
	var r struct{ Result *commandwire.Result }
	if err := json.Unmarshal([]byte(found[commands.Dir+"/"+commandID+".json"]), &r); err != nil || r.Result == nil || r.Result.Status != commandwire.Done {
		t.Errorf("%s: the command's record: %+v, %v", what, r.Result, err)
	}
}

// An owner who is another ends the tenure; the same one, and the first, end nothing.
func TestLearn(t *testing.T) {
	for name, tc := range map[string]struct {
		holder string // "-": not known
		learns []string
		ended  bool
		owner  string
	}{
		"same":                   {"ann", []string{"ann"}, false, "ann"},
		"released":               {"ann", []string{""}, true, ""},
		"handed on":              {"ann", []string{"bob"}, true, "bob"},
		"released, claimed":      {"ann", []string{"", "bob"}, true, "bob"},
		"released, claimed back": {"ann", []string{"", "ann"}, true, "ann"},
		"first owner":            {"", []string{"ann"}, false, "ann"},
		"first word":             {"-", []string{"ann"}, false, "ann"},
		"first word, changed":    {"-", []string{"ann", "bob"}, true, "bob"},
	} {
		root := robot(t)
		if err := root.WriteFile(ownerFile, []byte(tc.holder), 0o600); err != nil {
			t.Fatal(err)
		}
		if tc.holder == "-" {
			if err := root.Remove(ownerFile); err != nil {
				t.Fatal(err)
			}
		}
		k, err := Open(root)
		if err != nil {
			t.Fatal(err)
		}
		ended := false
		for _, user := range tc.learns {
			for range 2 { // the cloud says it again and again
				if ended, err = k.Learn(user); err != nil {
					t.Fatal(err)
				}
			}
		}
		resumed, err := Resume(Config{Root: root, Log: quiet})
		if err != nil || ended != tc.ended || resumed != tc.ended {
			t.Errorf("%s: ended %v, resumed %v, %v", name, ended, resumed, err)
		}
		if tc.ended {
			changed(t, root, tc.owner, name)
		}
		if again, err := Open(root); err != nil || again.user != tc.owner {
			t.Errorf("%s: owner %q, %v; want %q", name, again.user, err, tc.owner)
		}
		if again, err := Resume(Config{Root: root, Log: quiet}); again || err != nil {
			t.Errorf("%s: a second time: %v, %v", name, again, err)
		}
	}
}

// The next owner's token stays; one of the former owner goes, and one that was stored before the end was noted is the word for the end.
func TestToken(t *testing.T) {
	for name, tc := range map[string]struct {
		learn bool
		next  string
		token string
		stays bool
	}{
		"bob's":                  {true, "bob", "bob", true},
		"ann's":                  {true, "bob", "ann", false},
		"ann's, released":        {true, "", "ann", false},
		"bob's, not noted":       {false, "bob", "bob", true},
		"ann's, nothing changed": {false, "", "ann", true},
	} {
		root := robot(t)
		if err := root.WriteFile("mnt/p/token/token.jwt", []byte(jwt(t, tc.token)), 0o600); err != nil {
			t.Fatal(err)
		}
		if k, err := Open(root); err != nil {
			t.Fatal(err)
		} else if tc.learn {
			if _, err := k.Learn(tc.next); err != nil {
				t.Fatal(err)
			}
		}
		if ended, err := Resume(Config{Root: root, Log: quiet}); err != nil || ended != (tc.learn || tc.next != "") {
			t.Errorf("%s: ended %v, %v", name, ended, err)
		}
		if user, _ := tokens.UserOf(root, "mnt/p"); (user != "") != tc.stays {
			t.Errorf("%s: the token is of %q", name, user)
		}
	}
}

var errCut = errors.New("power cut")

// Killed before every change on disk, with run/ emptied by a power cut or not, the next start completes it. The light run takes every fourth change.
func TestKilledAtEveryStep(t *testing.T) {
	stride := 1
	if testing.Short() {
		stride = 4
	}
	cut := func(root *os.Root, n int) (ended bool) {
		defer func() {
			if r := recover(); r != nil && r != errCut {
				panic(r)
			}
		}()
		if _, err := Resume(Config{Root: root, Log: quiet, step: func(string) {
			if n--; n < 0 {
				panic(errCut)
			}
		}}); err != nil {
			t.Fatal(err)
		}
		return true
	}
	n := 0
	for ended := false; !ended; n += stride {
		root := robot(t)
		k, err := Open(root)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Learn("bob"); err != nil {
			t.Fatal(err)
		}
		ended = cut(root, n)
		if _, err := Resume(Config{Root: root, Log: quiet}); err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		changed(t, root, "bob", fmt.Sprintf("step %d", n))
	}
	if n < len(holds)/2 {
		t.Errorf("only %d steps", n)
	}
}

// A wipe does more: an end that was due before it is over with it.
func TestWipeEndsIt(t *testing.T) {
	root := robot(t)
	k, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Learn("bob"); err != nil {
		t.Fatal(err)
	}
	if err := wipe.Request(root); err != nil {
		t.Fatal(err)
	}
	if _, err := wipe.Resume(wipe.Config{Root: root, Log: quiet}); err != nil {
		t.Fatal(err)
	}
	if err := Forget(root); err != nil {
		t.Fatal(err)
	}
	if ended, err := Resume(Config{Root: root, Log: quiet}); ended || err != nil {
		t.Errorf("ended %v, %v", ended, err)
	}
	if k, err := Open(root); err != nil || k.known {
		t.Errorf("owner %q is known %v after a wipe, %v", k.user, k.known, err)
	}
}

// An erasure that fails leaves the end due.
func TestRefused(t *testing.T) {
	root := robot(t)
	k, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Learn("bob"); err != nil {
		t.Fatal(err)
	}
	// A tree deeper than any that a robot has is refused.
	deep := "data/deep" + strings.Repeat("/d", 70)
	if err := root.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if ended, err := Resume(Config{Root: root, Log: quiet}); ended || err == nil {
		t.Errorf("ended %v, %v", ended, err)
	}
	if err := errors.Join(root.RemoveAll("data/deep"), robotfs.CleanTemp(root, "data")); err != nil {
		t.Fatal(err)
	}
	if ended, err := Resume(Config{Root: root, Log: quiet}); !ended || err != nil {
		t.Errorf("ended %v, %v", ended, err)
	}
	changed(t, root, "bob", "after a refusal")
}
