package onebox

import (
	"bufio"
	"bytes"
	"context"
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
