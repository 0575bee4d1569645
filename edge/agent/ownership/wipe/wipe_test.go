package wipe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/certs/certsapi"
	"kennel/certs/certspg"
	"kennel/certs/devicecert"
	"kennel/edge/agent/das"
	"kennel/edge/agent/ownership/gatewaycert"
	"kennel/edge/agent/ownership/tokens"
	"kennel/edge/core/coreserver/holdfile"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/infra/api/events"
	"kennel/infra/api/owners"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
)

const (
	systemLog = "var/log/messages"
	record    = "dev/block/bootdevice/by-name/emr" // where a Vector has what its factory wrote
)

var quiet = slog.New(slog.DiscardHandler)

// stays lists the files that a wipe keeps, goes those that it erases. persist and cache lie elsewhere than usual.
var (
	stays = map[string]string{
		record:                                   "a factory's record",
		"factory/line7.log":                      "tested",
		"factory/cloud/AnkiRobotDeviceCert.pem":  "cert",
		"factory/kennel/claim.json":              `{"thing":"vic:00e20100","secret":"s"}`,
		"factory/nvStorage/cal.nvdata":           "1",
		"persist/kennel/device.key":              "key",
		"persist/kennel/device.crt":              "crt",
		"persist/kennel/identity.json":           "{}",
		"etc/os-version":                         "2.0.0.6074\n",
		"etc/ssl/certs/local/root.crt":           "root",
		"anki/etc/version":                       "2.0.0.6074",
		"data/kennel/connect_seq":                "17\n",
		holdfile.JournalFile:                     `{"held":true}`,
		"run/fault_code.pending":                 "",
		"anki/etc/config/platform_config.json":   `{"DataPlatformPersistentPath":"mnt/p","DataPlatformCachePath":"data/cache"}`,
		platform.LogUploaderFile:                 "VIC_LOG_UPLOADER_FOLDER=/mnt/logs\n",
		das.ConfigFile:                           `{"storage_path":"run/dasLogs","backup_path":"spool/backup"}`,
		"anki/data/assets/cozmo_resources/a.wav": "sound",
	}
	goes = map[string]string{
		tokens.JWTFile:                             "jwt",
		"mnt/p/token/token.jwt":                    "jwt",
		tokens.HashesFile:                          `{"client_tokens":[]}`,
		gatewaycert.NameFile:                       "Vector-E5S6\n",
		gatewaycert.KeyFile:                        "key",
		gatewaycert.CertFile:                       "cert",
		"data/kennel/gateway.posted":               "x",
		holdfile.NoteFile:                          `{"by":"alice@example.org","reason":"it is mine"}`,
		"mnt/p/jdocs/vic.RobotSettings.json":       "{}",
		"mnt/p/photos/1/full.jpg":                  "me",
		"mnt/p/faces/alice":                        "face",
		"mnt/p/dasGlobals.json":                    "{}",
		"data/lib/connman/wifi_x/settings":         "Passphrase=secret",
		"data/cache/vic-logmgr/agentd.log":         "log",
		"data/etc/localtime":                       "Berlin",
		"data/kennel/docs/ledger/x.json":           "{}",
		"data/.hidden/deep/er/file":                "x",
		"run/dasLogs/1.log":                        "{}",
		"mnt/logs/fault-916.log.gz":                "log",
		"var/log/messages.1.gz":                    "log",
		"run/dasGlobals.json":                      "{}",
		"spool/backup/1.log":                       "{}",
		das.AllowFile:                              "",
		"run/claim-code":                           "K7QM-3XW9",
		"run/boot_id":                              "7c1d…",
		"data/data/com.anki.victor/cache/leftover": "x",
	}
)

func robot(t testing.TB) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	for _, files := range []map[string]string{stays, goes, {Switchboard: strings.Repeat("key", 50_000), systemLog: "who said what"}} {
		for name, body := range files {
			if err := root.MkdirAll(name[:strings.LastIndexByte(name, '/')], 0o755); err != nil {
				t.Fatal(err)
			}
			if err := root.WriteFile(name, []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A link out of the data is removed and not followed.
	if err := root.Symlink("../factory", "data/link"); err != nil {
		t.Fatal(err)
	}
	return root
}

// cleared fails unless everything personal is gone and nothing else.
func cleared(t *testing.T, root *os.Root, what string) {
	t.Helper()
	left := map[string]string{}
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := root.ReadFile(name)
		left[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if strings.Trim(left[Switchboard], "\x00") != "" || len(left[Switchboard]) != 150_000 {
		t.Errorf("%s: the switchboard area is not zero", what)
	}
	if log, ok := left[systemLog]; !ok || log != "" {
		t.Errorf("%s: the system's log, which is open: there %v, %q", what, ok, log)
	}
	delete(left, systemLog)
	delete(left, Switchboard)
	delete(left, journalFile)
	if !maps.Equal(left, stays) {
		for name := range left {
			if _, ok := stays[name]; !ok {
				t.Errorf("%s: %s is left", what, name)
			}
		}
		for name, body := range stays {
			if left[name] != body {
				t.Errorf("%s: %s was touched: %.40q", what, name, left[name])
			}
		}
	}
	if fi, err := root.Stat("data"); err != nil || !fi.IsDir() {
		t.Errorf("%s: no folder for new user data: %v", what, err)
	}
}

// TestErasesPersonalAndNothingElse is VEC-DGN-06, VEC-STOR-04, VEC-STOR-10, VEC-SEC-05, VEC-AUTH-12, VEC-TOK-10.
func TestErasesPersonalAndNothingElse(t *testing.T) {
	root := robot(t)
	if wiped, err := Resume(Config{Root: root, Log: quiet}); wiped || err != nil {
		t.Fatalf("nobody asked: %v, %v", wiped, err)
	}
	if Requested(root) {
		t.Error("Asked is true although no wipe was asked for")
	}
	if err := Request(root); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Stat(Marker); err != nil || !Requested(root) {
		t.Errorf("marker: %v", err)
	}
	wiped, err := Resume(Config{Root: root, Log: quiet})
	if !wiped || err != nil {
		t.Fatalf("%v, %v", wiped, err)
	}
	cleared(t, root, "wiped")
	if wiped, err := Resume(Config{Root: root, Log: quiet}); wiped || err != nil {
		t.Errorf("a second time: %v, %v", wiped, err)
	}
	if b, err := root.ReadFile(record); err != nil || string(b) != "a factory's record" {
		t.Errorf("factory record: %q, %v", b, err)
	}
}

// The marker alone, as the original's menu makes it, is enough; so is the journal alone after a power cut emptied run/.
func TestAskedForEitherWay(t *testing.T) {
	for name, ask := range map[string]func(*os.Root) error{
		"marker alone":    func(r *os.Root) error { return r.WriteFile(Marker, nil, 0o644) },
		"journal alone":   func(r *os.Root) error { return errors.Join(Request(r), r.Remove(Marker)) },
		"journal damaged": func(r *os.Root) error { return robotfs.WriteFile(r, journalFile, []byte("{"), 0o644) },
		"journal empty":   func(r *os.Root) error { return robotfs.WriteFile(r, journalFile, nil, 0o644) },
		"again before the news of the last was told": func(r *os.Root) error {
			return errors.Join(writeJournal(r, journal{Key: "old", Erased: true}), Request(r))
		},
	} {
		root := robot(t)
		if err := ask(root); err != nil {
			t.Fatal(err)
		}
		if wiped, err := Resume(Config{Root: root, Log: quiet}); !wiped || err != nil {
			t.Errorf("%s: %v, %v", name, wiped, err)
			continue
		}
		cleared(t, root, name)
		if j, err := readJournal(root); err != nil || j.Key == "" || j.Key == "old" || !j.Erased {
			t.Errorf("%s: journal %+v, %v", name, j, err)
		}
	}
}

var errCut = errors.New("power cut")

// cut runs Resume until its n-th change and reports whether it ended before that.
func cut(t *testing.T, root *os.Root, n int) (ended bool) {
	t.Helper()
	i := 0
	defer func() {
		if r := recover(); r != nil && r != errCut {
			panic(r)
		}
	}()
	_, err := Resume(Config{Root: root, Log: quiet, Step: func(string) {
		if i == n {
			panic(errCut)
		}
		i++
	}})
	if err != nil {
		t.Fatal(err)
	}
	return true
}

// Killed before every change, with run/ emptied by a power cut or not, the next start completes it; and killed at every start after a few
// changes it completes too. The light run takes every fourth change.
func TestKilledAtEveryStep(t *testing.T) {
	stride := 1
	if testing.Short() {
		stride = 4
	}
	ended, steps := false, 0
	for ; !ended; steps += stride {
		root := robot(t)
		if err := Request(root); err != nil {
			t.Fatal(err)
		}
		ended = cut(t, root, steps)
		if steps%2 == 0 {
			if err := errors.Join(root.RemoveAll("run"), robotfs.WriteFile(root, "run/fault_code.pending", nil, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Resume(Config{Root: root, Log: quiet}); err != nil {
			t.Fatalf("step %d: %v", steps, err)
		}
		if j, err := readJournal(root); err != nil || j.Key == "" || !j.Erased || Requested(root) {
			t.Fatalf("step %d: journal %+v, %v", steps, j, err)
		}
		cleared(t, root, fmt.Sprintf("step %d", steps))
	}
	if steps < len(goes) {
		t.Errorf("only %d steps: fewer than files", steps)
	}

	root := robot(t)
	if err := Request(root); err != nil {
		t.Fatal(err)
	}
	starts := 0
	for ; Requested(root) && starts < 100; starts++ {
		cut(t, root, 8)
	}
	if starts < 5 {
		t.Errorf("%d starts", starts)
	}
	cleared(t, root, "a few changes a start")
}

// A configuration that would have the factory's folder erased is not followed; the rest is erased.
func TestProtected(t *testing.T) {
	root := robot(t)
	if err := root.WriteFile("anki/etc/config/platform_config.json",
		[]byte(`{"DataPlatformPersistentPath":"factory","DataPlatformCachePath":"."}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFile(das.ConfigFile, []byte(`{"storage_path":"persist","backup_path":"/"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Request(root); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(Config{Root: root, Log: quiet}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"factory/line7.log", "persist/kennel/device.key", record, "etc/os-version"} {
		if _, err := root.Stat(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := root.Stat(gatewaycert.KeyFile); err == nil {
		t.Error("the standard places were not cleared")
	}
}

// A new life: another name and certificate, no tokens (VEC-STOR-10, VEC-AUTH-12).
func TestNewNameAfterwards(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	boot, err := platform.BootID(root)
	if err != nil {
		t.Fatal(err)
	}
	const before = "Vector-E5S6"
	if err := errors.Join(robotfs.WriteFile(root, gatewaycert.NameFile, []byte(before+"\n"), 0o644),
		robotfs.WriteFile(root, gatewaycert.KeyFile, []byte("old"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := Request(root); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(Config{Root: root, Log: quiet}); err != nil {
		t.Fatal(err)
	}
	after, err := gatewaycert.Open(gatewaycert.Config{Root: root, Species: thing.Vector, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	if after.Name() == before || after.TLSCertificate().Leaf.Subject.CommonName != after.Name() {
		t.Errorf("name %s after %s", after.Name(), before)
	}
	if again, err := platform.BootID(root); err != nil || again == boot {
		t.Errorf("boot id %s, %v", again, err)
	}
}

type nobody struct{}

func (nobody) Record(context.Context, certs.Step) {}

// The device certificate survives a wipe, and the robot is issued another with the same key, unattended, also after the certificate itself
// was lost: the claim is bound to the key, which stays.
func TestComesBackUnattended(t *testing.T) {
	const vic = thing.ID("vic:00e20100")
	authority, err := ca.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	store := certspg.New(pgtest.New(t))
	svc, err := certs.New(certs.Config{Store: store, Batches: store, Requests: store, Issuer: authority, Recorder: nobody{}, TTL: time.Hour,
		ByAddr: ratelimit.NewByAddr(time.Millisecond, 1000), ByThing: ratelimit.New(time.Millisecond, 1000)})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	certsapi.Operations(svc, certsapi.Config{Root: authority.Root, MQTT: "ssl://cloud.example:8883", Log: quiet}).Mount(mux, op.Doors{Log: quiet})
	pair, err := authority.IssueServer([]string{"127.0.0.1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	server, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(mux)
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{server}}
	srv.StartTLS()
	defer srv.Close()
	root := robot(t)
	if err := errors.Join(root.Remove(devicecert.KeyFile), root.Remove(devicecert.CertFile), root.Remove("persist/kennel/identity.json")); err != nil {
		t.Fatal(err)
	}
	secret, err := svc.Register(t.Context(), vic)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(devicecert.WriteClaim(root, devicecert.Claim{Thing: vic, Secret: secret}),
		devicecert.WriteRoot(root, authority.Root())); err != nil {
		t.Fatal(err)
	}
	issue := func() (serial string) {
		t.Helper()
		id, err := devicecert.Open(devicecert.Config{
			Root: root, Cloud: srv.URL, Thing: vic, Log: quiet, MinPause: time.Millisecond, MaxPause: time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := id.Ensure(ctx); err != nil {
			t.Fatalf("%v: %+v", err, id.State())
		}
		c, err := id.TLSCertificate()
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf.SerialNumber.String()
	}
	first := issue()
	key, err := root.ReadFile(devicecert.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := Request(root); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(Config{Root: root, Log: quiet}); err != nil {
		t.Fatal(err)
	}
	if got := issue(); got != first {
		t.Error("the certificate did not survive")
	}
	if err := root.Remove(devicecert.CertFile); err != nil {
		t.Fatal(err)
	}
	if got := issue(); got == first {
		t.Error("no new certificate")
	}
	if again, err := root.ReadFile(devicecert.KeyFile); err != nil || !slices.Equal(again, key) {
		t.Errorf("another key: %v", err)
	}
}

type cloud struct {
	keys []string
	err  error
}

func (c *cloud) Do(_ context.Context, service, method string, body []byte) ([]byte, error) {
	if service != owners.Service || method != owners.WipedMethod {
		return nil, errors.New("asked " + service + "/" + method)
	}
	k, err := owners.ParseKeyed(body)
	if err != nil {
		return nil, err
	}
	c.keys = append(c.keys, k.Key)
	return []byte("{}"), c.err
}

// The event is recorded once, the cloud is told with one key until it answers, across restarts, and then never again.
func TestTells(t *testing.T) {
	root := robot(t)
	if err := Request(root); err != nil {
		t.Fatal(err)
	}
	var emitted []string
	emit := func(_ context.Context, e events.Event) error { emitted = append(emitted, e.Name); return nil }
	c := &cloud{err: errs.New(errs.Unavailable, "away")}
	teller := NewTeller(root, c, emit, quiet)
	if err := teller.Tell(t.Context()); err != nil || len(c.keys) != 0 || teller.Pending() {
		t.Errorf("told before it was done: %v", err)
	}
	if _, err := Resume(Config{Root: root, Log: quiet}); err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	if err := NewTeller(root, c, func(context.Context, events.Event) error { return full }, quiet).Tell(t.Context()); !errors.Is(err, full) {
		t.Errorf("event not recorded: %v", err)
	}
	for range 2 { // a restart in between
		teller = NewTeller(root, c, emit, quiet)
		if err := teller.Tell(t.Context()); errs.KindOf(err) != errs.Unavailable || !teller.Pending() {
			t.Errorf("cloud away: %v", err)
		}
	}
	c.err = nil
	for range 2 {
		if err := teller.Tell(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(emitted, []string{EventName}) || len(c.keys) != 3 || len(slices.Compact(slices.Clone(c.keys))) != 1 || teller.Pending() {
		t.Errorf("events %q, keys %q", emitted, c.keys)
	}
}

func TestTellsWhenConnected(t *testing.T) {
	root := robot(t)
	if err := Request(root); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(Config{Root: root, Log: quiet}); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{err: errs.New(errs.Unavailable, "away")}
		teller := NewTeller(root, c, func(context.Context, events.Event) error { return nil }, quiet)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		linked := func() bool { return true }
		rest := 0
		go func() { done <- teller.Run(ctx, linked, func(context.Context) error { rest++; return nil }) }()
		time.Sleep(time.Hour) // simulated
		synctest.Wait()
		if n := len(c.keys); n < 8 || n > 40 {
			t.Errorf("%d attempts in an hour", n)
		}
		c.err = nil
		n := len(c.keys)
		teller.Connected()
		synctest.Wait()
		time.Sleep(24 * time.Hour)
		if len(c.keys) != n+1 || rest != 1 || teller.Pending() {
			t.Errorf("%d attempts after the connection, and the rest was said %d times; want once each", len(c.keys)-n, rest)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"key":"K","erased":true}`))
	f.Add([]byte(`{"key":1}`))
	root, err := os.OpenRoot(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	if err := root.MkdirAll("persist/kennel", 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := root.WriteFile(journalFile, b, 0o644); err != nil {
			t.Fatal(err)
		}
		asked := Requested(root)
		if _, err := Resume(Config{Root: root, Log: quiet}); err != nil {
			t.Fatal(err)
		}
		j, err := readJournal(root)
		if err != nil || !j.Erased {
			t.Fatalf("asked %v, ends as %+v, %v", asked, j, err)
		}
	})
}
