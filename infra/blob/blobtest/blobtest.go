// Package blobtest gives each test a bucket of its own in a real S3 gateway. The gateway is the test binary itself, started a second
// time at the first use: importing this package is all that it takes. It ends, and its folder goes, with the test binary.
package blobtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kennel/infra/blob"
	"kennel/infra/blob/gateway"
	"kennel/infra/freeaddr"
	"kennel/infra/proc"
)

// childEnv holds the gateway's address in the child: a test binary that finds it set is the gateway.
const childEnv, dirEnv = "KENNEL_BLOBTEST_LISTEN", "KENNEL_BLOBTEST_DIR"

func init() {
	listen := os.Getenv(childEnv)
	if listen == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := gateway.Run(ctx, gatewayConfig(os.Getenv(dirEnv), listen)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func gatewayConfig(dir, listen string) gateway.Config {
	return gateway.Config{Dir: filepath.Join(dir, "s3"), Listen: listen,
		AccessKeyFile: filepath.Join(dir, "access"), SecretKeyFile: filepath.Join(dir, "secret")}
}

// New returns a store on a fresh bucket.
func New(t testing.TB) *blob.Store {
	t.Helper()
	s, err := blob.Open(t.Context(), Config(t))
	if err != nil {
		t.Fatalf("blobtest: %v", err)
	}
	if err := s.EnsureBucket(t.Context()); err != nil {
		t.Fatalf("blobtest: %v", err)
	}
	return s
}

var buckets atomic.Int64

// Config returns how to reach a bucket that no other test uses and that does not exist yet.
func Config(t testing.TB) blob.Config {
	t.Helper()
	c, err := shared()
	if err != nil {
		t.Fatalf("blobtest: %v", err)
	}
	c.Bucket = fmt.Sprintf("test-%d", buckets.Add(1))
	return c
}

var shared = sync.OnceValues(start)

// start starts the gateway. Its port is tried until one is free: to learn a free one and to take it are two steps.
func start() (blob.Config, error) {
	dir, err := os.MkdirTemp("", "kennel-blobtest-")
	if err != nil {
		return blob.Config{}, err
	}
	if _, err := proc.RemoveAfterDeath(dir); err != nil {
		return blob.Config{}, err
	}
	gc := gatewayConfig(dir, "")
	for _, f := range []string{gc.AccessKeyFile, gc.SecretKeyFile} {
		if err := os.WriteFile(f, []byte(rand.Text()), 0o600); err != nil {
			return blob.Config{}, err
		}
	}
	for range 5 {
		var listen string
		if listen, err = freeaddr.Loopback(); err != nil {
			return blob.Config{}, err
		}
		c := blob.Config{Endpoint: "http://" + listen, Bucket: "ready", PathStyle: true,
			AccessKeyFile: gc.AccessKeyFile, SecretKeyFile: gc.SecretKeyFile}
		if err = run(dir, listen, c); err == nil {
			return c, nil
		}
	}
	return blob.Config{}, fmt.Errorf("start the S3 gateway: %w", err)
}

// run starts one gateway and returns once it answers to our keys.
func run(dir, listen string, c blob.Config) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeoutCause(context.Background(), 30*time.Second, errors.New("no answer in 30 s"))
	defer stop()
	ended := make(chan error, 1)
	go func() {
		// The child lives as long as this process (parent-death signal), not as long as ctx.
		ended <- proc.Once(context.Background(), proc.Spec{Name: "s3", Path: self, LogFile: filepath.Join(dir, "log"),
			Env: append(os.Environ(), childEnv+"="+listen, dirEnv+"="+dir)})
	}()
	store, err := blob.Open(ctx, c)
	if err != nil {
		return err
	}
	for {
		if err := store.EnsureBucket(ctx); err == nil {
			return nil
		}
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
