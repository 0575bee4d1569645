package storms

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/certs/ca"
	"kennel/cloud/identity/account/accounttest"
	"kennel/cmd/e2e/housetest"
	"kennel/infra/blob"
	"kennel/infra/freeaddr"
	"kennel/infra/migrations"
	"kennel/infra/onebox"
	"kennel/infra/pg"
	"kennel/infra/proc"
	"kennel/infra/secretbox"
)

// cluster is an operator's own installation: separate parts, and several kenneld beside each other. It does not use one-machine mode; it
// only borrows the code that starts Postgres and the S3 gateway.
type cluster struct {
	t      *testing.T
	dir    string
	inst   *onebox.Instance
	ca     *ca.Authority
	db     *onebox.Postgres
	s3     blob.Config
	broker string // its kind: the word of mqtt.broker
	lists  string // more settings of mqtt: the revocation list behind Mosquitto, the servers of NATS
	// brokers are the parts that a blow at the broker may strike.
	brokers []string
	routes  [][]*housetest.Wire // of several brokers, from one to the other
	extra   string              // settings of every kenneld
	limit   int                 // file descriptors of every kenneld; 0: as many as this process may have
	addr    map[string]string   // by part; each kenneld's API under its own name
	kids    map[string]*onebox.Child
	token   string // file with an operator's session
	root    string // file with the root certificate

	stop   context.CancelFunc
	dbStop context.CancelFunc // stops Postgres alone
	dbDone chan struct{}
	rest   time.Duration // of a process that ended, before it is started again
	mayEnd atomic.Bool   // the database may end by itself
	wg     sync.WaitGroup
}

func newCluster(t *testing.T) *cluster { return newClusterIn(t, workFolder(t)) }

// workFolder makes a folder that Postgres' account may pass.
func workFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(housetest.Work, "cluster-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// newClusterIn starts the database and the object store, and removes the folder in the end.
func newClusterIn(t *testing.T, dir string) *cluster {
	t.Helper()
	var err error
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	c := &cluster{t: t, dir: dir, addr: map[string]string{}, kids: map[string]*onebox.Child{}, stop: stop, root: filepath.Join(dir, "root.crt")}
	log := slog.New(slog.NewTextHandler(&testWriter{t}, &slog.HandlerOptions{Level: slog.LevelError}))
	if c.inst, err = onebox.Open(filepath.Join(dir, "parts"), log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		c.wg.Wait()
		c.stopPostgres() // last: the others say goodbye to it
		if err := c.inst.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			c.showLogs()
		}
		os.RemoveAll(dir)
	})
	if c.ca, err = ca.Init(c.inst.Paths.CA); err != nil {
		t.Fatal(err)
	}
	if _, err := secretbox.Init(filepath.Join(c.inst.Paths.CA, "seal.key")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.root, c.ca.Root(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"postgres", "s3", "mqtt"} {
		c.addr[part] = freeaddr.For(t)
	}
	c.startPostgres()
	c.startS3(ctx)
	if err := onebox.Await(ctx, c.db); err != nil {
		t.Fatal(err)
	}
	c.operator(ctx)
	return c
}

// startPostgres runs the database until stopPostgres; a kill in between is answered by a restart.
func (c *cluster) startPostgres() {
	c.t.Helper()
	db, err := c.inst.Postgres(c.addr["postgres"])
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(c.t.Context()))
	c.db, c.dbStop, c.dbDone = db, stop, make(chan struct{})
	go func() {
		defer close(c.dbDone)
		if err := db.Run(ctx); !c.mayEnd.Load() {
			c.check(err)
		}
	}()
}

// stopPostgres stops the database and leaves it down.
func (c *cluster) stopPostgres() {
	c.dbStop()
	<-c.dbDone
}

func (c *cluster) check(err error) {
	if err != nil {
		c.t.Error(err)
	}
}

// child runs one of our programs, or a third-party one, and restarts it whenever it ends.
func (c *cluster) child(ctx context.Context, name, path string, args ...string) *onebox.Child {
	c.t.Helper()
	k, err := c.inst.Child(onebox.ChildConfig{Name: name, Path: path, Args: args,
		Restart: proc.Restart{Limit: 1000, Window: time.Minute, MinBackoff: max(c.rest, 50*time.Millisecond), MaxBackoff: max(c.rest, 500*time.Millisecond)}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.kids[name] = k
	c.wg.Go(func() { c.check(k.Run(ctx)) })
	return k
}

func (c *cluster) startS3(ctx context.Context) {
	c.t.Helper()
	access, err := c.inst.Secret("s3-access-key")
	if err != nil {
		c.t.Fatal(err)
	}
	secret, err := c.inst.Secret("s3-secret-key")
	if err != nil {
		c.t.Fatal(err)
	}
	c.child(ctx, "s3", filepath.Join(housetest.Bin, "s3d"), "-dir", c.inst.Paths.S3, "-listen", c.addr["s3"], "-access-key-file", access,
		"-secret-key-file", secret)
	c.s3 = blob.Config{
		Endpoint: "http://" + c.addr["s3"], Region: "us-east-1", Bucket: "kennel", PathStyle: true, AccessKeyFile: access,
		SecretKeyFile: secret,
	}
	store, err := blob.Open(ctx, c.s3)
	if err != nil {
		c.t.Fatal(err)
	}
	housetest.Await(c.t, time.Minute, "bucket", func() error { return store.EnsureBucket(ctx) })
}

// operator makes an administrator and a session for kennelctl, as an installation's first step would.
func (c *cluster) operator(ctx context.Context) {
	c.t.Helper()
	pool, err := pg.Open(ctx, c.db.Config())
	if err != nil {
		c.t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pg.Migrate(ctx, pool, migrations.FS); err != nil {
		c.t.Fatal(err)
	}
	svc := accounttest.New(c.t, pool)
	a, _, err := svc.CreateAccount(ctx, "operator@kennel.test", "admin", "")
	if err != nil {
		c.t.Fatal(err)
	}
	l, err := svc.IssueSession(ctx, a.ID, time.Hour)
	if err != nil {
		c.t.Fatal(err)
	}
	c.token = filepath.Join(c.dir, "operator.token")
	if err := os.WriteFile(c.token, []byte(l.Token.Reveal()+"\n"), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// kenneld runs one more process of the cloud, with an API of its own.
func (c *cluster) kenneld(ctx context.Context, name string) {
	c.t.Helper()
	pw, err := c.inst.Secret("postgres")
	if err != nil {
		c.t.Fatal(err)
	}
	c.addr[name] = freeaddr.For(c.t)
	file := filepath.Join(c.dir, name+".yaml")
	config := fmt.Sprintf(`
log: {level: info}
postgres: {dsn: %q, password_file: %q}
s3: {endpoint: %q, bucket: kennel, path_style: true, access_key_file: %q, secret_key_file: %q}
mqtt: {url: "ssl://%s", broker: %s%s}
ca: {dir: %q}
api: {listen: %q}
%s`, c.db.Config().DSN, pw, c.s3.Endpoint, c.s3.AccessKeyFile, c.s3.SecretKeyFile, c.addr["mqtt-services"], c.broker, c.lists, c.inst.Paths.CA, c.addr[name], c.extra)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		c.t.Fatal(err)
	}
	program := c.install(name, filepath.Join(housetest.Bin, "kenneld"))
	if c.limit > 0 {
		c.child(ctx, name, "/bin/sh", "-c", `ulimit -n "$1" && shift && exec "$@"`, "sh", fmt.Sprint(c.limit), program, "-config", file)
		return
	}
	c.child(ctx, name, program, "-config", file)
}

// showLogs prints the end of each part's log.
func (c *cluster) showLogs() {
	logs, _ := filepath.Glob(filepath.Join(c.inst.Paths.Log, "*.log"))
	for _, l := range logs {
		b, _ := os.ReadFile(l)
		c.t.Logf("%s:\n%s", filepath.Base(l), housetest.Tail(strings.TrimSpace(string(b)), 15))
	}
}

// testWriter is a log's way into the test's output.
type testWriter struct{ t *testing.T }

func (w *testWriter) Write(b []byte) (int, error) {
	w.t.Logf("%s", b)
	return len(b), nil
}
