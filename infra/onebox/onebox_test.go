package onebox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"kennel/infra/agefile"
	"kennel/infra/blob"
	"kennel/infra/blob/gateway"
	"kennel/infra/errs"
	"kennel/infra/freeaddr"
	"kennel/infra/pg"
	"kennel/infra/proc"
	"kennel/infra/testexec"
	"kennel/infra/testwait"
)

var quiet = slog.New(slog.DiscardHandler)

// TestMain lets the test binary play the programs of one-machine mode: s3d by its name, "supervise DIR PG S3 READY", "restore FILE DIR".
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "s3d" {
		os.Exit(gateway.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
	}
	if len(os.Args) > 2 {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		var err error
		switch os.Args[1] {
		case "supervise":
			err = supervise(ctx, os.Args[2], os.Args[3], os.Args[4], os.Args[5])
		case "restore":
			fmt.Println("restoring")
			err = Restore(ctx, os.Args[2], os.Args[3], nil, quiet, asIs)
		case "listen":
			var l net.Listener
			if l, err = net.Listen("tcp", os.Args[2]); err == nil {
				fmt.Println("listening")
				<-ctx.Done()
				l.Close()
			}
		default:
			os.Exit(m.Run())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// asIs leaves a restored database as it is.
func asIs(context.Context, pg.Config, time.Time) error { return nil }

// supervise is one-machine mode without roles.
func supervise(ctx context.Context, dir, pgAddr, s3Addr, readyFile string) error {
	inst, err := Open(dir, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	if err := inst.StopLeftovers(ctx); err != nil {
		return err
	}
	for _, err := range []error{CheckListen("Postgres", pgAddr, "-postgres-listen"), CheckListen("S3", s3Addr, "-s3-listen")} {
		if err != nil {
			return err
		}
	}
	db, err := inst.Postgres(pgAddr)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	inst.Programs = dir + ".programs"
	if err := errors.Join(os.MkdirAll(inst.Programs, 0o700), os.RemoveAll(filepath.Join(inst.Programs, "s3d")), os.Symlink(self, filepath.Join(inst.Programs, "s3d"))); err != nil {
		return err
	}
	s3, bc, err := inst.S3(s3Addr, "kennel")
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	var parts sync.WaitGroup
	for _, p := range []Part{db, s3} {
		parts.Go(func() {
			if err := p.Run(ctx); err != nil {
				failed <- err
			}
		})
	}
	actx, cancel := context.WithTimeoutCause(ctx, 50*time.Second, errors.New("50 s have passed"))
	defer cancel()
	go func() { // a part that cannot run ends the wait
		select {
		case err := <-failed:
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		case <-ctx.Done():
		}
	}()
	if err := Await(actx, db, s3); err != nil {
		return err
	}
	err = inst.Publish(Ready{Started: time.Now(), Endpoints: map[string]string{"postgres": db.DSN(), "s3": bc.Endpoint},
		Pids: map[string]int{"postgres": db.Pid(), "s3": s3.Pid()}, Files: map[string]string{"postgres_password": db.Config().PasswordFile,
			"s3_access": bc.AccessKeyFile, "s3_secret": bc.SecretKeyFile}}, readyFile)
	if err != nil {
		return err
	}
	<-ctx.Done()
	parts.Wait()
	return inst.Close()
}

// box is a supervisor process under test.
type box struct {
	t               *testing.T
	dir, pgAddr     string
	s3Addr, readyTo string
	program         string
	credential      *syscall.Credential
	cmd             *exec.Cmd
	stderr          *strings.Builder
	ended           chan error
	ready           Ready
	children        []proc.Identity
}

// newBox makes a box on a folder that goes away with the test. Its parents are open to the account of Postgres.
func newBox(t *testing.T) *box {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	work := workDir(t)
	return &box{t: t, dir: filepath.Join(work, "data"), pgAddr: freeaddr.For(t), s3Addr: freeaddr.For(t), readyTo: filepath.Join(work, "ready"), program: self}
}

func workDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kennel-onebox-")
	if err != nil {
		t.Fatal(err)
	}
	janitor, err := proc.RemoveAfterDeath(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { janitor.Close() })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// start starts the supervisor and waits until it is ready.
func (b *box) start() {
	b.t.Helper()
	b.cmd = exec.Command(b.program, "supervise", b.dir, b.pgAddr, b.s3Addr, b.readyTo)
	b.stderr = &strings.Builder{}
	b.cmd.Stderr, b.cmd.WaitDelay, b.cmd.Dir = b.stderr, time.Second, "/"
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: b.credential}
	_ = os.Remove(b.readyTo)
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.ended = make(chan error, 1)
	go func() { b.ended <- b.cmd.Wait() }()
	b.t.Cleanup(func() { _ = b.cmd.Process.Kill() })
	for end := time.Now().Add(60 * time.Second); ; {
		var err error
		if b.ready, err = ReadReady(b.readyTo); err == nil {
			break
		}
		select {
		case err := <-b.ended:
			b.t.Fatalf("the supervisor ended: %v: %s", err, b.stderr)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(end) {
			b.t.Fatalf("not ready after 60 s: %s", b.stderr)
		}
	}
	if b.ready.Pid != b.cmd.Process.Pid || b.ready.Data != b.dir {
		b.t.Errorf("ready = %+v, want pid %d and folder %s", b.ready, b.cmd.Process.Pid, b.dir)
	}
	b.children = nil
	for name, pid := range b.ready.Pids {
		id, err := proc.Identify(pid)
		if err != nil {
			b.t.Fatalf("%s: %v", name, err)
		}
		b.children = append(b.children, id)
	}
}

// kill ends the supervisor without a word.
func (b *box) kill() {
	b.t.Helper()
	if err := b.cmd.Process.Kill(); err != nil {
		b.t.Fatal(err)
	}
	<-b.ended
}

// stop asks the supervisor to stop and checks that nothing is left.
func (b *box) stop() {
	b.t.Helper()
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.t.Fatal(err)
	}
	if err := <-b.ended; err != nil {
		b.t.Errorf("clean stop: %v: %s", err, b.stderr)
	}
	for _, id := range b.children {
		if id.Alive() {
			b.t.Errorf("pid %d lives after a clean stop", id.Pid)
		}
	}
	if left, err := os.ReadDir(filepath.Join(b.dir, "run", "parts")); len(left) > 0 || err != nil {
		b.t.Errorf("records after a clean stop: %v, %v", left, err)
	}
	for _, f := range []string{filepath.Join(b.dir, "run", "lock"), filepath.Join(b.dir, "run", "ready.json"), b.readyTo} {
		if _, err := os.Stat(f); !errors.Is(err, fs.ErrNotExist) {
			b.t.Errorf("%s after a clean stop: %v", f, err)
		}
	}
}

// stores opens what the ready file names.
func (b *box) stores() (query func(string) string, objects *blob.Store) {
	b.t.Helper()
	ctx := b.t.Context()
	query = func(sql string) (got string) {
		b.t.Helper()
		pool, err := pg.Open(ctx, pg.Config{DSN: b.ready.Endpoints["postgres"], PasswordFile: b.ready.Files["postgres_password"]})
		if err != nil {
			b.t.Fatal(err)
		}
		defer pool.Close()
		rows, err := pool.Query(ctx, sql)
		if err != nil {
			b.t.Fatal(err)
		}
		for rows.Next() {
			if err := rows.Scan(&got); err != nil {
				b.t.Fatal(err)
			}
		}
		if err := rows.Err(); err != nil {
			b.t.Fatal(err)
		}
		return got
	}
	objects, err := blob.Open(ctx, blob.Config{Endpoint: b.ready.Endpoints["s3"], Bucket: "kennel", PathStyle: true,
		AccessKeyFile: b.ready.Files["s3_access"], SecretKeyFile: b.ready.Files["s3_secret"]})
	if err != nil {
		b.t.Fatal(err)
	}
	return query, objects
}

func (b *box) put(key, body string) {
	b.t.Helper()
	_, objects := b.stores()
	err := objects.Put(b.t.Context(), key, strings.NewReader(body), int64(len(body)), blob.PutOptions{ContentType: "text/x-robot"})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) get(key string) string {
	b.t.Helper()
	_, objects := b.stores()
	r, i, err := objects.Get(b.t.Context(), key, 0, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil {
		b.t.Fatal(err)
	}
	if i.ContentType != "text/x-robot" {
		b.t.Errorf("%s: content type %q, want text/x-robot", key, i.ContentType)
	}
	return string(got)
}

// seed writes a row and an object; seeded checks them.
func (b *box) seed() {
	query, _ := b.stores()
	query("CREATE TABLE robots (thing text PRIMARY KEY)")
	query("INSERT INTO robots VALUES ('vic:00e20100')")
	b.put("ota/a b/1.ota", "an update")
}

func (b *box) seeded() {
	b.t.Helper()
	query, _ := b.stores()
	if got := query("SELECT string_agg(thing, ',') FROM robots"); got != "vic:00e20100" {
		b.t.Errorf("robots %q, want vic:00e20100", got)
	}
	if got := b.get("ota/a b/1.ota"); got != "an update" {
		b.t.Errorf("object %q, want \"an update\"", got)
	}
}

func TestLifeOfAnInstance(t *testing.T) {
	b := newBox(t)
	b.start()
	b.seed()
	t.Run("a second start names the first", func(t *testing.T) {
		_, err := Open(b.dir, quiet)
		if errs.CodeOf(err) != "locked" || !strings.Contains(err.Error(), fmt.Sprintf("pid %d)", b.cmd.Process.Pid)) {
			t.Errorf("open = %v, want locked by pid %d", err, b.cmd.Process.Pid)
		}
	})
	t.Run("killed parts come back", func(t *testing.T) {
		for range 2 {
			for _, id := range b.children {
				if err := id.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
					t.Fatal(err)
				}
			}
			b.awaitAnswers()
			b.seeded()
		}
	})
	t.Run("after kill -9 a new start continues", func(t *testing.T) {
		for range 3 {
			b.kill()
			b.start()
			b.seeded()
		}
	})
	t.Run("a clean stop leaves nothing", func(t *testing.T) {
		b.stop()
		b.start()
		b.seeded()
	})
	archive := filepath.Join(filepath.Dir(b.dir), "backup.kennel")
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("backup of the running instance", func(t *testing.T) {
		if _, err := Backup(t.Context(), Saving{Dir: b.dir, Out: archive}, quiet); err != nil {
			t.Fatal(err)
		}
		if fi, err := os.Stat(archive); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("archive: %v, %v; want mode 0600", fi, err)
		}
	})
	b.stop()
	t.Run("backup of the stopped instance", func(t *testing.T) {
		if _, err := Backup(t.Context(), Saving{Dir: b.dir, Out: archive + "2", To: agefile.Recipients{key.Recipient()}}, quiet); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(filepath.Dir(b.dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".kennel-backup-") {
				t.Errorf("%s is left over", e.Name())
			}
		}
	})
	for file, ids := range map[string]agefile.Identities{archive: nil, archive + "2": {key}} {
		t.Run("restore "+filepath.Base(file), func(t *testing.T) {
			r := newBox(t)
			if err := Restore(t.Context(), file, r.dir, ids, quiet, asIs); err != nil {
				t.Fatal(err)
			}
			r.start()
			r.seeded()
			r.stop()
			err := Restore(t.Context(), file, r.dir, ids, quiet, asIs)
			if errs.CodeOf(err) != "not_empty" || !strings.Contains(err.Error(), r.dir) {
				t.Errorf("second restore = %v, want a refusal that names the folder", err)
			}
		})
	}
	t.Run("a damaged archive is refused", func(t *testing.T) { damaged(t, archive) })
	t.Run("a killed restore leaves nothing that looks whole", func(t *testing.T) { killedRestore(t, archive) })
}

// awaitAnswers waits until both parts answer again.
func (b *box) awaitAnswers() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 30*time.Second)
	defer cancel()
	_, objects := b.stores()
	for ctx.Err() == nil {
		pool, err := pg.Open(ctx, pg.Config{DSN: b.ready.Endpoints["postgres"], PasswordFile: b.ready.Files["postgres_password"]})
		if err == nil {
			pool.Close()
			if objects.EnsureBucket(ctx) == nil {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.t.Fatal("the parts did not come back in 30 s")
}

// damaged tries a copy of the archive cut off or changed at several places.
func damaged(t *testing.T, archive string) {
	whole, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	work := workDir(t)
	for i := range 8 {
		at := (len(whole) - 1) * (i + 1) / 8
		flipped := append([]byte(nil), whole...)
		// Not every bit of a compressed file counts: one is looked for without which it says something else.
		for mask := byte(0x10); ; mask = mask<<1 | mask>>7 {
			if flipped[at] = whole[at] ^ mask; !bytes.Equal(content(flipped), content(whole)) {
				break
			}
		}
		for name, b := range map[string][]byte{"cut": whole[:at], "flipped": flipped} {
			file, dir := filepath.Join(work, "archive"), filepath.Join(work, "data")
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := Restore(t.Context(), file, dir, nil, quiet, asIs); errs.KindOf(err) != errs.Corrupt {
				t.Errorf("%s at %d of %d: %v, want corrupt", name, at, len(whole), err)
			}
			if left, err := filepath.Glob(dir + "*"); len(left) > 0 || err != nil {
				t.Errorf("%s at %d: left %v, %v", name, at, left, err)
			}
		}
	}
}

// content returns the content of a compressed file; nil if it is damaged.
func content(archive []byte) []byte {
	z, err := zstd.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil
	}
	defer z.Close()
	b, err := io.ReadAll(z)
	if err != nil {
		return nil
	}
	return b
}

func killedRestore(t *testing.T, archive string) {
	r := newBox(t)
	cmd := exec.Command(r.program, "restore", archive, r.dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	// Kill it when it is past unpacking and has begun to make the cluster.
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if found, _ := filepath.Glob(r.dir + restoring + "*/pg/data*"); len(found) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no cluster after 30 s")
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if _, err := os.Stat(r.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the folder of the killed restore: %v, want none", err)
	}
	if err := Restore(t.Context(), archive, r.dir, nil, quiet, asIs); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(r.dir + restoring + "*"); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	r.start()
	r.seeded()
	r.stop()
}

// The whole life again as an ordinary user, if we are root: the binary is copied to where that user can run it.
func TestAsOrdinaryUser(t *testing.T) {
	b := newBox(t)
	if os.Geteuid() == 0 {
		const nobody = 65534
		b.credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		home := filepath.Join(filepath.Dir(b.dir), "home")
		self, err := os.ReadFile(b.program)
		if err != nil {
			t.Fatal(err)
		}
		b.program = filepath.Join(home, "kenneld")
		if err := errors.Join(os.Mkdir(home, 0o700), os.WriteFile(b.program, self, 0o755), os.Chown(home, nobody, nobody)); err != nil {
			t.Fatal(err)
		}
		b.dir, b.readyTo = filepath.Join(home, "data"), filepath.Join(home, "ready")
	}
	b.start()
	b.seed()
	b.kill()
	b.start()
	b.seeded()
	b.stop()
}

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

func (n never) Name() string            { return n.name }
func (never) Run(context.Context) error { return nil }
func (never) Ready() <-chan struct{}    { return nil }
func (never) Pid() int                  { return 0 }

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
