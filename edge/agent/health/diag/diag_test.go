package diag

import (
	"archive/tar"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/agent/host"
	"kennel/edge/env/envtest"
	"kennel/edge/env/platform"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/events"
	"kennel/infra/api/files"
	"kennel/infra/errs"
	"kennel/infra/runner"
	"kennel/infra/thing"
)

const cache = "data/data/com.anki.victor/cache/"

// robot is a folder of a robot with these files.
func robot(t *testing.T, content map[string]string) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root, dir
}

func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func collector(root *os.Root) *Collector {
	return &Collector{Root: root, Thing: thing.MustParse("vic:00e20100"), Allowed: func() bool { return true }, Host: func() string { return "cloud.example" },
		Now: func() time.Time { return time.Date(2026, 5, 6, 7, 8, 9, 0, time.FixedZone("", 3600)) },
		Run: func(_ context.Context, program string, args ...string) ([]byte, error) {
			return fmt.Appendln(nil, program, strings.Join(args, " ")), nil
		}}
}

// TestCat: the rotated log, unpacked, goes before the current one; a robot without a system log has those of its programs (VEC-LOG-06).
func TestCat(t *testing.T) {
	rotated := packed(t, "one\ntwo\n")
	for name, tc := range map[string]struct {
		files map[string]string
		most  int64
		want  string
	}{
		"both":            {map[string]string{rotatedLog: rotated, currentLog: "three\n"}, 0, "one\ntwo\nthree\n"},
		"never rotated":   {map[string]string{currentLog: "three\n"}, 0, "three\n"},
		"just rotated":    {map[string]string{rotatedLog: rotated}, 0, "one\ntwo\n"},
		"the ends":        {map[string]string{rotatedLog: rotated, currentLog: "three\n"}, 4, "two\nree\n"},
		"no system log":   {map[string]string{cache + "vic-logmgr/b.log": "b\n", cache + "vic-logmgr/a.log": "a\n", cache + "vic-logmgr/x.gz": "x"}, 0, "==> " + cache + "vic-logmgr/a.log <==\na\n==> " + cache + "vic-logmgr/b.log <==\nb\n"},
		"no log":          {nil, 0, "! no log: want var/log/messages, or logs of programs in the cache tree's vic-logmgr\n"},
		"cut":             {map[string]string{rotatedLog: rotated[:len(rotated)-4], currentLog: "three\n"}, 0, "one\ntwo\n! var/log/messages.1.gz: unexpected EOF\nthree\n"},
		"no gzip":         {map[string]string{rotatedLog: "damaged, and long enough", currentLog: "three\n"}, 0, "! var/log/messages.1.gz: gzip: invalid header\nthree\n"},
		"not a file":      {map[string]string{currentLog + "/x": "", rotatedLog: rotated}, 0, "one\ntwo\n! var/log/messages: not a file\n"},
		"cut, and an end": {map[string]string{rotatedLog: rotated[:len(rotated)-4], currentLog: "three\n"}, 100, "one\ntwo\n! var/log/messages.1.gz: unexpected EOF\nthree\n"},
	} {
		root, _ := robot(t, tc.files)
		var b bytes.Buffer
		if err := Cat(&b, root, tc.most); err != nil || b.String() != tc.want {
			t.Errorf("%s: %q, %v; want %q", name, b.String(), err, tc.want)
		}
	}
	root, _ := robot(t, map[string]string{currentLog: "three\n"})
	full := errors.New("no space left on device")
	if err := Cat(&sticky{err: full}, root, 0); !errors.Is(err, full) {
		t.Errorf("a full disk: %v", err)
	}
}

// TestSnapshot: the file has the original's name and is where the original makes it (VEC-LOG-04), and only while the owner allows it (VEC-LOG-08).
func TestSnapshot(t *testing.T) {
	root, dir := robot(t, map[string]string{currentLog: "one\n"})
	c := collector(root)
	name, err := c.Snapshot("battery-drain")
	if err != nil || !regexp.MustCompile(`^victor-00e20100-2026-05-06-06-08-09-[0-9]+\.log\.gz$`).MatchString(name) {
		t.Fatalf("%q, %v", name, err)
	}
	b, err := os.ReadFile(filepath.Join(dir, cache, "vic-logmgr", name+"~battery-drain"))
	if err != nil || !IsSnapshot(name+"~battery-drain") {
		t.Fatal(err, name)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != "one\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := c.Snapshot("../x"); errs.KindOf(err) != errs.Invalid {
		t.Errorf("a reason that is a path: %v", err)
	}
	c.Allowed = func() bool { return false }
	for what, make := range map[string]func() (string, error){"snapshot": func() (string, error) { return c.Snapshot("") },
		"archive": func() (string, error) { return c.Archive(t.Context(), "") }} {
		if _, err := make(); errs.KindOf(err) != errs.Denied || !strings.Contains(err.Error(), "owner") {
			t.Errorf("%s of an owner who said no: %v", what, err)
		}
	}
}

// TestArchive: a tar.bz2 with the original's ten members, of which some come from what a development machine has (VEC-LOG-07).
func TestArchive(t *testing.T) {
	root, dir := robot(t, map[string]string{currentLog: "one\n"})
	c := collector(root)
	echo := c.Run
	c.Run = func(ctx context.Context, program string, args ...string) ([]byte, error) {
		switch program {
		case "connmanctl", "iwconfig", "iw":
			return nil, exec.ErrNotFound
		case "ifconfig":
			return []byte("no wlan0\n"), errors.New("exit status 1")
		case "dmesg":
			return []byte("not permitted\n"), errors.New("exit status 2")
		case "ps":
			return []byte("  PID ARGS\n    7 /anki/bin/vic-engine\n    8 mysqld --password=secret\n    9 agentd -root /\n"), nil
		}
		return echo(ctx, program, args...)
	}
	name, err := c.Archive(t.Context(), "request")
	if err != nil || name != "diagnostics-00e20100-2026-05-06-06-08-09.tar.bz2" {
		t.Fatalf("%q, %v", name, err)
	}
	f, err := os.Open(filepath.Join(dir, cache, "outgoing", name+"~request"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // only read
	got, names := map[string]string{}, []string(nil)
	for r := tar.NewReader(bzip2.NewReader(f)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name], names = string(b), append(names, h.Name)
	}
	if want := strings.Fields(`connman-services.txt dmesg.txt ifconfig.txt iwconfig.txt log.txt netstat-ptlnu.txt ping-anki.txt ping-gateway.txt ps.txt top.txt`); !slices.Equal(names, want) {
		t.Errorf("members %q, want %q", names, want)
	}
	for name, want := range map[string]string{
		"connman-services.txt": "nmcli device\n", "dmesg.txt": "not permitted\n! dmesg: exit status 2\n", "ifconfig.txt": "ip address\n",
		"iwconfig.txt": "cat /proc/net/wireless\n", "log.txt": "one\n", "netstat-ptlnu.txt": "netstat -ptlnu\n", "ping-anki.txt": "ping -c 3 -w 8 cloud.example\n",
		"ps.txt": "  PID ARGS\n    7 /anki/bin/vic-engine\n    9 agentd -root /\n", "top.txt": "top -b -n 1\n",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, staging)); err != nil || len(left) > 0 {
		t.Errorf("left in the staging folder: %v, %v", left, err)
	}
}

// TestArchiveOfThisMachine: Write runs the programs of this machine, and none of them holds it up.
func TestArchiveOfThisMachine(t *testing.T) {
	root, _ := robot(t, nil)
	c := collector(root)
	c.Run, c.Host = nil, func() string { return "127.0.0.1" }
	var b bytes.Buffer
	begun := time.Now()
	if err := c.Write(t.Context(), &b); err != nil || b.Len() == 0 {
		t.Errorf("%d bytes, %v", b.Len(), err)
	}
	if took := time.Since(begun); took > 2*collectTime {
		t.Errorf("took %v", took)
	}
}

// TestSend: the headers of VEC-LOG-05 are of the files that the row names, and a reason is not part of the name.
func TestSend(t *testing.T) {
	root, dir := robot(t, map[string]string{
		"etc/os-version": "2.0.0.6074\n", "etc/os-version-rev": "0a1b2c\n", "anki/etc/version": "2.0.0.6074\n", "anki/etc/revision": "ff\x01\n",
		platform.ServerConfigFile: `{"appkey":"key","kennel":{"api":"https://cloud.example:8443"}}`, "a.log.gz~request": "12345",
	})
	var got *http.Request
	body := ""
	s := Sender{Root: root, Hardware: envtest.Hardware{}, Thing: thing.MustParse("vic:00e20100"), OS: "2.0.0.6074", Profile: func() string { return "" }, Now: collector(root).Now,
		Upload: func(_ context.Context, r *http.Request) (*http.Response, error) {
			b, err := io.ReadAll(r.Body)
			got, body = r, string(b)
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, err
		}}
	f, err := os.Open(filepath.Join(dir, "a.log.gz~request"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // only read
	if err := s.Send(t.Context(), f, "a.log.gz~request"); err != nil {
		t.Fatal(err)
	}
	want := http.Header{}
	for k, v := range map[string]string{"Anki-App-Key": "key", "Usr-RobotESN": "00e20100", "Usr-RobotOSRevision": "0a1b2c", "Usr-RobotOSVersion": "2.0.0.6074",
		"Usr-RobotTimestamp": "2026-05-06T06:08:09Z", "Usr-RobotVersion": "2.0.0.6074", files.Reason: "request"} {
		want.Set(k, v)
	}
	if fmt.Sprint(got.Header) != fmt.Sprint(want) || got.Method != "PUT" || got.URL.Path != "/v1/files/logs/a.log.gz" || body != "12345" || got.ContentLength != 5 {
		t.Errorf("%s %s %v %q; want %v", got.Method, got.URL, got.Header, body, want)
	}
}

// TestWays: logs and snapshots are switched off one by one (VEC-LOG-01), and a no of the owner removes what waits on both ways (VEC-LOG-08).
func TestWays(t *testing.T) {
	for _, tc := range []struct {
		ways platform.Uploads
		sent string
		left int
	}{
		{platform.Uploads{Logs: true, Snapshots: true}, "fault-914.log snapshot", 0}, {platform.Uploads{Logs: true}, "fault-914.log", 1},
		{platform.Uploads{Snapshots: true}, "snapshot", 1}, {platform.Uploads{Crashes: true, Events: true}, "", 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			root, dir := robot(t, map[string]string{cache + "outgoing/fault-914.log": "x", currentLog: "one\n", cache + "vic-logmgr/agentd.log": "no snapshot"})
			var mu sync.Mutex
			var sent []string
			allowed := atomic.Bool{}
			allowed.Store(true)
			here := host.New(host.Robot{Root: root, Hardware: envtest.Hardware{}, Thing: thing.MustParse("vic:00e20100"), Frugal: true, Now: time.Now, Getenv: func(string) string { return "" },
				Emit: func(events.Event) {}, Log: slog.New(slog.DiscardHandler)})
			part := New(here.Robot, Config{Ways: tc.ways, Allowed: allowed.Load, Profile: func() string { return "" },
				Upload: func(_ context.Context, r *http.Request) (*http.Response, error) {
					mu.Lock()
					defer mu.Unlock()
					name := path.Base(r.URL.Path)
					if strings.HasPrefix(name, "victor-") {
						name = "snapshot"
					}
					sent = append(sent, name)
					return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
				}}).Part()
			if err := here.Add(part); err != nil {
				t.Fatal(err)
			}
			if out, err := here.Commands()[commandwire.SendLogs](t.Context(), json.RawMessage(`{"reason":"request"}`)); err != nil {
				t.Fatal(out, err)
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- runner.Run(ctx, slog.New(slog.DiscardHandler), runner.Config{}, part.Services...) }()
			synctest.Wait()
			slices.Sort(sent)
			waits := func() int {
				left, err := fs.Glob(os.DirFS(filepath.Join(dir, cache)), "*/*")
				if err != nil {
					t.Fatal(err)
				}
				return len(slices.DeleteFunc(left, func(name string) bool { return strings.HasSuffix(name, "agentd.log") }))
			}
			if strings.Join(sent, " ") != tc.sent || waits() != tc.left {
				t.Errorf("%+v: sent %q and %d wait, want %q and %d", tc.ways, sent, waits(), tc.sent, tc.left)
			}
			allowed.Store(false)
			here.Publish(host.Consented{})
			synctest.Wait()
			if waits() != 0 {
				t.Errorf("%+v: after a no %d wait", tc.ways, waits())
			}
			if _, err := os.Stat(filepath.Join(dir, cache, "vic-logmgr/agentd.log")); err != nil {
				t.Error(err) // no upload
			}
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestName: the reason of a file is behind its name; a fault's log is sent because of the fault (VEC-FLT-09).
func TestName(t *testing.T) {
	for file, want := range map[string][2]string{
		"a.log": {"a.log", ""}, "a.log~request": {"a.log", "request"}, "fault-914-2026-05-06-06-08-09.log.gz": {"fault-914-2026-05-06-06-08-09.log.gz", "fault-914"},
		"a~B": {"a", ""}, "fault-9144.log": {"fault-9144.log", ""},
	} {
		if name, reason := Name(file); name != want[0] || reason != want[1] {
			t.Errorf("%s: %q, %q; want %q", file, name, reason, want)
		}
	}
}

func FuzzParseGateway(f *testing.F) {
	f.Add("Iface\tDestination\tGateway\neth0\t00000000\t0100A8C0\t0003\n")
	f.Fuzz(func(t *testing.T, table string) {
		if got := parseGateway(table); got != "" && strings.ContainsFunc(got, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }) {
			t.Fatalf("%q", got)
		}
	})
}

func TestParseGateway(t *testing.T) {
	const table = "Iface\tDestination\tGateway \tFlags\neth0\t0000A8C0\t00000000\t0001\neth0\t00000000\t0100A8C0\t0003\n"
	if got := parseGateway(table); got != "192.168.0.1" {
		t.Errorf("got %q", got)
	}
	if got := parseGateway("Iface\n"); got != "" {
		t.Errorf("no route: %q", got)
	}
}
