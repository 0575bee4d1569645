// Package awsconfig says how the AWS clients behind our adapters sign and repeat requests.
package awsconfig

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"kennel/infra/errs"
)

// Config says where and as whom.
type Config struct {
	Region   string `koanf:"region"`   // "": us-east-1
	Endpoint string `koanf:"endpoint"` // https://HOST; "": the service's usual one
	// Files with the access key and the secret key, one line each; both empty: the SDK's usual sources (environment, instance role).
	AccessKeyFile string `koanf:"access_key_file"`
	SecretKeyFile string `koanf:"secret_key_file"`
}

// Validate reports the first setting that cannot work (kind Invalid); section names it.
func (c Config) Validate(section string) error {
	if (c.AccessKeyFile == "") != (c.SecretKeyFile == "") {
		return errs.New(errs.Invalid, "%s.access_key_file %q and secret_key_file %q: want both or neither", section, c.AccessKeyFile, c.SecretKeyFile)
	}
	if c.Endpoint != "" {
		if u, err := url.Parse(c.Endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return errs.New(errs.Invalid, "%s.endpoint %q: want https://HOST", section, c.Endpoint)
		}
	}
	return nil
}

// Load reads the key files; requests are tried three times within about a second.
func (c Config) Load(ctx context.Context) (aws.Config, error) {
	opts := []func(*awsconfig.LoadOptions) error{
		awsconfig.WithRegion(cmp.Or(c.Region, "us-east-1")),
		awsconfig.WithRetryer(func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = 3, 500*time.Millisecond })
		}),
	}
	if c.AccessKeyFile != "" {
		access, err := os.ReadFile(c.AccessKeyFile)
		if err != nil {
			return aws.Config{}, fmt.Errorf("access key: %w", err)
		}
		secret, err := os.ReadFile(c.SecretKeyFile)
		if err != nil {
			return aws.Config{}, fmt.Errorf("secret key: %w", err)
		}
		opts = append(opts, awsconfig.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(
			strings.TrimSpace(string(access)), strings.TrimSpace(string(secret)), "")))
	}
	if c.Endpoint != "" {
		opts = append(opts, awsconfig.WithBaseEndpoint(c.Endpoint))
	}
	return awsconfig.LoadDefaultConfig(ctx, opts...)
}
