package onebox

import (
	"context"
	"flag"
	"fmt"
	"io"

	"kennel/infra/blob"
	"kennel/infra/blob/gateway"
	"kennel/infra/errs"
)

// S3Config configures the S3 gateway's process. It is passed as command-line arguments; secrets stay in files.
type S3Config = gateway.Config

// S3Args returns the arguments that ParseS3 reads, to follow those that choose the part: kenneld part s3 ...
func S3Args(c S3Config) []string {
	args := []string{"-dir", c.Dir, "-listen", c.Listen, "-access-key-file", c.AccessKeyFile, "-secret-key-file", c.SecretKeyFile}
	if c.Network {
		args = append(args, "-network")
	}
	return args
}

// ParseS3 reads the arguments of the S3 gateway's process (kind Invalid).
func ParseS3(args []string) (S3Config, error) {
	var c S3Config
	fs := flag.NewFlagSet("part s3", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&c.Dir, "dir", "", "folder of the objects")
	fs.StringVar(&c.Listen, "listen", "", "loopback IP:PORT")
	fs.BoolVar(&c.Network, "network", false, "allow an address beyond loopback")
	fs.StringVar(&c.AccessKeyFile, "access-key-file", "", "file with the access key")
	fs.StringVar(&c.SecretKeyFile, "secret-key-file", "", "file with the secret key")
	if err := fs.Parse(args); err != nil {
		return S3Config{}, errs.New(errs.Invalid, "part s3: %w", err)
	}
	if fs.NArg() > 0 {
		return S3Config{}, errs.New(errs.Invalid, "part s3: unexpected argument %q", fs.Arg(0))
	}
	return c, c.Validate()
}

// RunS3 serves S3 until ctx ends. It takes over its process: see package gateway.
func RunS3(ctx context.Context, c S3Config) error { return gateway.Run(ctx, c) }

// S3 returns the part that runs the S3 gateway on a loopback address with keys of its own, as a child of this program started with
// the arguments command (such as "part", "s3") and those of S3Args, and how to reach bucket in it. Ready means that the bucket exists.
func (i *Instance) S3(listen, bucket string, command ...string) (*Child, blob.Config, error) {
	access, err := i.Secret("s3-access-key")
	if err != nil {
		return nil, blob.Config{}, err
	}
	secret, err := i.Secret("s3-secret-key")
	if err != nil {
		return nil, blob.Config{}, err
	}
	gc := S3Config{Dir: i.Paths.S3, Listen: listen, AccessKeyFile: access, SecretKeyFile: secret}
	if err := gc.Validate(); err != nil {
		return nil, blob.Config{}, err
	}
	bc := blob.Config{Endpoint: "http://" + listen, Region: gateway.Region, Bucket: bucket, PathStyle: true,
		AccessKeyFile: access, SecretKeyFile: secret}
	k, err := i.Child(ChildConfig{Name: "s3", Args: append(command, S3Args(gc)...), Probe: func(ctx context.Context) error {
		store, err := blob.Open(ctx, bc)
		if err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		return store.EnsureBucket(ctx)
	}})
	return k, bc, err
}
