// Package gateway is the program s3d: an S3 gateway on a folder, for one-machine mode and tests. It speaks the protocol of a cloud's S3,
// checks signatures, and serves presigned URLs and multipart uploads. It needs a process of its own, because the library changes the
// working directory and allows one gateway per process; and a program of its own, because the library brings 150 packages with it.
//
// Dir holds objects/ (one folder per bucket, one file per object) and meta/ (the objects' attributes as files beside them, so that any
// file system and any archive program can carry them).
package gateway

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"

	"kennel/infra/blob"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// Main is the program s3d; it returns the exit code.
func Main(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	return cli.Main(command(), args, getenv, stdout, stderr)
}

func command() *cobra.Command {
	var c Config
	cmd := &cobra.Command{
		Use:     "s3d",
		Short:   "Serve a folder as S3",
		Long:    "Serve a folder as S3, for one account. kenneld onebox and infra/compose start it.",
		Example: "  s3d -dir /srv/objects -listen 127.0.0.1:15900 -access-key-file access -secret-key-file secret",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), c) },
	}
	f := cmd.Flags()
	f.StringVar(&c.Dir, "dir", "", "folder with the objects")
	f.StringVar(&c.Listen, "listen", "", "loopback address to listen on, IP:PORT")
	f.BoolVar(&c.Network, "network", false, "allow an address other than loopback")
	f.StringVar(&c.AccessKeyFile, "access-key-file", "", "file with the access key")
	f.StringVar(&c.SecretKeyFile, "secret-key-file", "", "file with the secret key")
	return cmd
}

// Config says where the gateway keeps its objects and how it is reached.
type Config struct {
	Dir           string // made if absent
	Listen        string // IP:PORT, loopback unless Network; the front door of the fleet is another program
	Network       bool   // allow other addresses, for a network that only the cloud's own machines are in: the gateway speaks plain HTTP
	AccessKeyFile string // files with the one account's access key and secret, one line each
	SecretKeyFile string
}

// Validate reports the first setting that cannot work (kind Invalid).
func (c Config) Validate() error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return errs.New(errs.Invalid, "s3 gateway: address %q: want IP:PORT", c.Listen)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() && !c.Network {
		return errs.New(errs.Invalid, "s3 gateway: address %q: want a loopback IP, because the gateway is not for the network (-network allows an address of the cloud's own network)", c.Listen)
	}
	if c.Dir == "" || c.AccessKeyFile == "" || c.SecretKeyFile == "" {
		return errs.New(errs.Invalid, "s3 gateway: want a folder and two key files, got %q, %q, %q", c.Dir, c.AccessKeyFile, c.SecretKeyFile)
	}
	return nil
}

// Run serves until ctx ends. It changes the process's working directory to Dir/objects.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	access, err := os.ReadFile(c.AccessKeyFile)
	if err != nil {
		return fmt.Errorf("s3 gateway: access key: %w", err)
	}
	secret, err := os.ReadFile(c.SecretKeyFile)
	if err != nil {
		return fmt.Errorf("s3 gateway: secret key: %w", err)
	}
	dir, err := filepath.Abs(c.Dir) // the library will have moved us elsewhere
	if err != nil {
		return err
	}
	objects, attrs := filepath.Join(dir, "objects"), filepath.Join(dir, "meta")
	for _, d := range []string{objects, attrs} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("s3 gateway: %w", err)
		}
	}
	if err := showHidden(objects, attrs); err != nil {
		return fmt.Errorf("s3 gateway: objects of an earlier version: %w", err)
	}
	store, err := meta.NewSideCar(attrs)
	if err != nil {
		return fmt.Errorf("s3 gateway: %w", err)
	}
	backend, err := posix.New(objects, store, posix.PosixOpts{SideCarDir: attrs, Concurrency: 256})
	if err != nil {
		return fmt.Errorf("s3 gateway: %w", err)
	}
	root := auth.Account{Access: strings.TrimSpace(string(access)), Secret: strings.TrimSpace(string(secret)), Role: auth.RoleAdmin}
	return embedgw.RunVersityGW(ctx, refusing{backend}, &embedgw.Config{
		RootUserAccess: root.Access, RootUserSecret: root.Secret, IAMService: oneAccount{auth.NewIAMServiceSingle(root)},
		Region: blob.DefaultRegion, Ports: []string{c.Listen},
		MaxConnections: 4096, MaxRequests: 2048, MultipartMaxParts: 10000,
		KeepAlive: true, Quiet: true, DisableACLs: true,
	})
}

// oneAccount knows the root account alone. The library's own answers an unknown access key with 404, S3 with 403.
type oneAccount struct{ auth.IAMService }

func (a oneAccount) GetUserAccount(access string) (auth.Account, error) {
	acc, err := a.IAMService.GetUserAccount(access)
	if err != nil {
		return auth.Account{}, auth.ErrNoSuchUser
	}
	return acc, nil
}
