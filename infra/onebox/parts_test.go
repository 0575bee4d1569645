package onebox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/infra/errs"
	"kennel/infra/freeaddr"
	"kennel/infra/proc"
	"kennel/infra/testexec"
	"kennel/infra/testwait"
)

func TestChildPart(t *testing.T) {
	inst, err := Open(filepath.Join(workDir(t), "data"), quiet)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	c, err := inst.Child(ChildConfig{Name: "sleep", Path: "/bin/sleep", Args: []string{"1000"}, Probe: func(context.Context) error {
		if asked++; asked < 3 {
			return errors.New("still waking up")
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	if err := Await(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r, err := proc.ReadRecord(filepath.Join(inst.Paths.Run, "parts", "sleep.json"))
	if err != nil || r.Pid != c.Pid() || !r.Alive() {
		t.Errorf("record %+v, %v; want pid %d", r, err, c.Pid())
	}
	stop()
	if err := <-done; err != nil || c.Pid() != 0 || asked != 3 {
		t.Errorf("run = %v, pid %d, asked %d; want nil, 0, 3", err, c.Pid(), asked)
	}
	// A process that an earlier run recorded and left running is ended.
	left := exec.Command("/bin/sleep", "1000")
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = left.Wait() }()
	if err := proc.WriteRecord(filepath.Join(inst.Paths.Run, "parts", "broker.json"), "broker", left.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := inst.StopLeftovers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := proc.Identify(left.Process.Pid); !errors.Is(err, proc.ErrGone) {
		t.Errorf("leftover: %v, want gone", err)
	}
	if err := inst.Close(); err != nil {
		t.Error(err)
	}
}

type never struct{ name string }

func (n never) Name() string { return n.name }

func (never) Run(context.Context) error { return nil }

func (never) Ready() <-chan struct{} { return nil }

func (never) Pid() int { return 0 }

func TestAwaitNamesWhatIsMissing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	err := Await(ctx, never{"postgres"}, never{"broker"})
	if want := "not ready: postgres, broker: context deadline exceeded"; err == nil || err.Error() != want {
		t.Errorf("err = %v, want %s", err, want)
	}
}

func TestSecretsAreMadeOnce(t *testing.T) {
	inst, err := Open(filepath.Join(workDir(t), "data"), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer inst.Close()
	file, err := inst.Secret("operator")
	if err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inst.Secret("operator"); err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(file)
	if err != nil || string(again) != string(first) || len(first) != 27 {
		t.Errorf("secret %q, then %q, %v; want the same 26 characters", first, again, err)
	}
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want mode 0600", fi, err)
	}
}

func TestCheckListen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		addr string
		code string
		says []string
	}{
		"free":       {freeaddr.For(t), "", nil},
		"in use":     {l.Addr().String(), "port_in_use", []string{"console", "port " + port, fmt.Sprintf("pid %d", os.Getpid()), "-listen"}},
		"everywhere": {":" + port, "port_in_use", []string{"port " + port}},
		"no port":    {"127.0.0.1", "bad_address", []string{"HOST:PORT", "-listen"}},
		"bad port":   {"127.0.0.1:99999", "bad_address", []string{"-listen"}},
		"not ours":   {"192.0.2.1:8080", "no_address", []string{"192.0.2.1:8080", "-listen"}},
	} {
		err := CheckListen("console", c.addr, "-listen")
		if errs.CodeOf(err) != c.code || (err != nil) != (c.code != "") {
			t.Errorf("%s: %v, want code %q", name, err, c.code)
		}
		for _, s := range c.says {
			if err != nil && !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %v, want it to say %q", name, err, s)
			}
		}
	}
}

// TestFreePort: a part that lost its parent before that wrote a record of it is ended, and no other program.
func TestFreePort(t *testing.T) {
	i, err := Open(t.TempDir(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	listen := func(dir string, words ...string) (addr string, ended <-chan struct{}) {
		t.Helper()
		addr = freeaddr.For(t)
		cmd := testexec.Command(t.Context(), t, nil, append([]string{"listen", addr}, words...)...)
		cmd.Dir = dir
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(line, err)
		}
		gone := make(chan struct{})
		go func() { _ = cmd.Wait(); close(gone) }()
		t.Cleanup(func() { _ = cmd.Process.Kill(); <-gone })
		return addr, gone
	}
	for what, tc := range map[string]struct {
		dir   string
		words []string
		ours  bool
	}{
		"works in the data folder":             {i.Paths.PG, []string{"x"}, true},
		"is told of the data folder":           {"/", []string{filepath.Join(i.Paths.Run, "broker.json")}, true},
		"has nothing to do with it":            {"/", []string{"x"}, false},
		"is told of a folder with a like name": {"/", []string{i.Paths.Root + "-other"}, false},
	} {
		addr, gone := listen(tc.dir, tc.words...)
		if err := i.FreePort(t.Context(), addr); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if err := CheckListen("broker", addr, "-listen"); (err == nil) != tc.ours {
			t.Errorf("%s: %v", what, err)
		}
		if tc.ours {
			testwait.For(t, gone, what+": its end")
		}
	}
	for _, addr := range []string{freeaddr.For(t), "127.0.0.1", "127.0.0.1:99999"} {
		if err := i.FreePort(t.Context(), addr); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestDefaultDir(t *testing.T) {
	env := map[string]string{"HOME": "/home/ada", "XDG_DATA_HOME": "/data/ada"}
	got, err := DefaultDir(func(k string) string { return env[k] })
	want := "/data/ada/kennel"
	if os.Geteuid() == 0 {
		want = "/var/lib/kennel"
	}
	if got != want || err != nil {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestS3RefusedBeforeItsStart(t *testing.T) {
	inst, err := Open(t.TempDir(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer inst.Close()
	inst.Programs = t.TempDir()
	if err := os.WriteFile(filepath.Join(inst.Programs, "s3d"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := inst.S3("0.0.0.0:9000", "kennel"); errs.KindOf(err) != errs.Invalid {
		t.Errorf("an address of the network: %v, want invalid", err)
	}
	inst.Programs = ""
	if _, _, err := inst.S3("127.0.0.1:15900", "kennel"); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), "s3d is missing") {
		t.Errorf("%v, want one that names s3d", err)
	}
}

func FuzzParsePostmaster(f *testing.F) {
	f.Add("12\n/data\n1700000000\n5433\n\n127.0.0.1\n  1234  5\nready\n")
	f.Add("12\n/data\n1700000000\n5432\n/tmp/kennel-pg-1\n\n")
	f.Fuzz(func(t *testing.T, s string) {
		addr, err := parsePostmaster(s)
		if err != nil {
			return
		}
		if filepath.IsAbs(addr) && strings.Contains(s, addr) {
			return
		}
		if _, err := net.ResolveTCPAddr("tcp", addr); err != nil {
			t.Errorf("%q: %v", addr, err)
		}
	})
}

func FuzzListeners(f *testing.F) {
	f.Add("  sl  local_address rem_address   st\n   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1\n", uint16(8080))
	f.Fuzz(func(t *testing.T, s string, port uint16) {
		inodes := map[string]bool{}
		listeners(strings.NewReader(s), port, inodes)
		for i := range inodes {
			if !strings.Contains(s, i) {
				t.Errorf("inode %q is not in the text", i)
			}
		}
	})
}

func FuzzParseReady(f *testing.F) {
	f.Add([]byte(`{"pid":12,"endpoints":{"s3":"http://x"},"pids":{"s3":13},"files":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseReady("f", b)
		if err != nil {
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			return // a time that JSON cannot write
		}
		if _, err := parseReady("f", again); err != nil {
			t.Errorf("%s: %v", again, err)
		}
	})
}
