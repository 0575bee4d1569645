package webhook_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/fleet/webhook"
	"kennel/cloud/fleet/webhook/webhookpg"
	"kennel/infra/jobs"
	"kennel/infra/pg"
	"kennel/infra/pg/pgtest"
	"kennel/infra/secretbox"
)

const (
	killedEnv = "KENNEL_WEBHOOK_TEST_KILLED"
	rootEnv   = "KENNEL_WEBHOOK_TEST_ROOT"
)

// process runs the rules with River, as a kenneld does.
func process(t *testing.T, db *pgxpool.Pool, roots *x509.CertPool, sealing secretbox.Key) (stop func()) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	orders, err := jobs.NewOrders(db)
	if err != nil {
		t.Fatal(err)
	}
	sender, err := webhook.NewSender(webhook.SenderConfig{Allow: loopback.Allow, Roots: roots})
	if err != nil {
		t.Fatal(err)
	}
	store := webhookpg.New(db)
	svc, err := webhook.New(webhook.Config{Store: store, Outbox: store, Sealer: sealing.For("webhook"), Sender: sender, Select: fleet(db, new(map[string]string)), Log: log,
		Order: func(ctx context.Context, hook string) error { return orders.Add(ctx, webhook.TaskDeliver, hook) }})
	if err != nil {
		t.Fatal(err)
	}
	runner, err := jobs.New(db, log)
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Handle(jobs.Task{Name: webhook.TaskDeliver, Run: svc.Deliver}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, run := range []func(context.Context) error{svc.Run, runner.Run} {
		wg.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	return func() { cancel(); wg.Wait(); sender.Close() }
}

// TestMainOfTheKilled is the process that TestAtLeastOnce kills.
func TestMainOfTheKilled(t *testing.T) {
	dsn := os.Getenv(killedEnv)
	if dsn == "" {
		return // the other test starts it
	}
	db := must(pg.Open(t.Context(), pg.Config{DSN: dsn}))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(os.Getenv(rootEnv)))
	process(t, db, roots, secretbox.Key{})
	<-t.Context().Done()
}

// TestAtLeastOnce: a process is killed while the receiver holds its request; another sends the same event again, and what came later after it.
func TestAtLeastOnce(t *testing.T) {
	r := newReceiver(t)
	dsn := pgtest.DSN(t)
	db := must(pg.Open(t.Context(), pg.Config{DSN: dsn}))
	t.Cleanup(db.Close)
	if _, err := jobs.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	g := newRig(t, r, loopback) // only to register
	h, _ := g.add(r.URL, []webhook.Kind{webhook.Present, webhook.Absent})
	var zero secretbox.Key // what both processes know
	h.Secret = zero.For("webhook").Seal([]byte("0123456789012345678901234567"), []byte(h.ID))
	if err := webhookpg.New(db).Add(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	for _, present := range []bool{true, false} {
		if _, err := db.Exec(t.Context(), `INSERT INTO registry_presence (thing, at, present) VALUES ('vic:1', clock_timestamp(), $1)`, present); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMainOfTheKilled$")
	cmd.Env = append(os.Environ(), killedEnv+"="+dsn, rootEnv+"="+string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})))
	started := make(chan struct{})
	r.answers(func(_ http.ResponseWriter, req *http.Request, _ got) {
		<-started
		if err := syscall.Kill(cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		<-req.Context().Done()
	})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	close(started)
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled() {
		t.Fatalf("the process ended with %v, want killed", err)
	}
	first := <-r.came
	// River gives the task up after a minute and starts it again, as infra/jobs shows; here it does so at once.
	if tag, err := db.Exec(t.Context(), `DELETE FROM river_job WHERE state = 'running'`); err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%d jobs were being worked on, %v; want 1", tag.RowsAffected(), err)
	}
	r.answers(nil)
	roots := x509.NewCertPool()
	roots.AddCert(r.Certificate())
	defer process(t, db, roots, zero)()
	var again, next got
	for _, g := range []*got{&again, &next} {
		select {
		case *g = <-r.came:
		case <-time.After(time.Minute):
			t.Fatal("nothing within a minute")
		}
	}
	if again.id != first.id || !bytes.Equal(again.body, first.body) || next.kind != string(webhook.Absent) {
		t.Errorf("first %+v, then %+v and %+v", first, again, next)
	}
}
