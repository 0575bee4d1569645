package onebox

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"kennel/infra/blob"
	"kennel/infra/errs"
)

// Program returns the path of another program of this build, which is beside this one.
func (i *Instance) Program(name string) (string, error) {
	dir := i.Programs
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("own program: %w", err)
		}
		dir = filepath.Dir(self)
	}
	file := filepath.Join(dir, name)
	if _, err := os.Stat(file); err != nil {
		return "", errs.New(errs.Invalid, "program %s is missing beside this one (make build): %w", name, err)
	}
	return file, nil
}

// S3 returns the part that runs the S3 gateway (program s3d) on a loopback address with keys of its own, and how to reach bucket in it.
// Ready means that the bucket exists.
func (i *Instance) S3(listen, bucket string) (*Child, blob.Config, error) {
	program, err := i.Program("s3d")
	if err != nil {
		return nil, blob.Config{}, err
	}
	if a, err := netip.ParseAddrPort(listen); err != nil || !a.Addr().IsLoopback() {
		return nil, blob.Config{}, errs.New(errs.Invalid, "s3 gateway: address %q: want a loopback IP:PORT, because the gateway is not for the network", listen)
	}
	access, err := i.Secret("s3-access-key")
	if err != nil {
		return nil, blob.Config{}, err
	}
	secret, err := i.Secret("s3-secret-key")
	if err != nil {
		return nil, blob.Config{}, err
	}
	bc := blob.Config{Endpoint: "http://" + listen, Bucket: bucket, PathStyle: true, AccessKeyFile: access, SecretKeyFile: secret}
	args := []string{"-dir", i.Paths.S3, "-listen", listen, "-access-key-file", access, "-secret-key-file", secret}
	k, err := i.Child(ChildConfig{Name: "s3", Path: program, Args: args, Probe: func(ctx context.Context) error {
		store, err := blob.Open(ctx, bc)
		if err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		return store.EnsureBucket(ctx)
	}})
	return k, bc, err
}
