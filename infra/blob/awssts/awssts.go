// Package awssts asks AWS for temporary S3 credentials: AssumeRole with a session policy, so that what they allow is what the role allows
// and the policy as well. AWS cannot be run here: the tests hold the client against answers as AWS documents them.
package awssts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"kennel/infra/awsconfig"
	"kennel/infra/errs"
)

// Config says where to ask, and for which role.
type Config struct {
	AWS  awsconfig.Config `koanf:"aws"`
	Role string           `koanf:"role"` // arn:aws:iam::ACCOUNT:role/NAME
}

// Credentials are temporary ones.
type Credentials struct {
	AccessKeyID, SecretAccessKey, SessionToken string
	Expires                                    time.Time
}

// String hides the secrets.
func (c Credentials) String() string { return "[secret]" }

// GoString hides the secrets from %#v.
func (c Credentials) GoString() string { return "[secret]" }

// Client asks for credentials. Safe for concurrent use.
type Client struct {
	role string
	sts  *sts.Client
}

// Open prepares a client; it does not talk to AWS.
func Open(ctx context.Context, c Config) (*Client, error) {
	if err := c.AWS.Validate("sts.aws"); err != nil {
		return nil, err
	}
	if c.Role == "" {
		return nil, errs.New(errs.Invalid, "sts.role is empty: want arn:aws:iam::ACCOUNT:role/NAME")
	}
	ac, err := c.AWS.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("sts: %w", err)
	}
	return &Client{role: c.Role, sts: sts.NewFromConfig(ac)}, nil
}

// AssumeRole returns credentials that allow what policy does, for life. session names them in AWS's records: 2 to 64 of A-Z a-z 0-9 _+=,.@-.
func (c *Client) AssumeRole(ctx context.Context, session, policy string, life time.Duration) (Credentials, error) {
	out, err := c.sts.AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: &c.role, RoleSessionName: &session, Policy: &policy,
		DurationSeconds: aws.Int32(int32(life / time.Second))})
	if err != nil {
		return Credentials{}, fmt.Errorf("assume role for %s: %w", session, classify(err))
	}
	k := out.Credentials
	if k == nil || k.AccessKeyId == nil || k.SecretAccessKey == nil || k.SessionToken == nil || k.Expiration == nil {
		return Credentials{}, fmt.Errorf("assume role for %s: AWS's answer is not complete", session)
	}
	return Credentials{*k.AccessKeyId, *k.SecretAccessKey, *k.SessionToken, *k.Expiration}, nil
}

func classify(err error) error {
	re, ok := errors.AsType[*awshttp.ResponseError](err)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case ok && re.HTTPStatusCode() == http.StatusForbidden:
		return &errs.Error{Kind: errs.Internal, Msg: "AWS refuses our own keys or the role", Err: err} // nothing the robot can mend
	case ok && re.HTTPStatusCode() < 500 && re.HTTPStatusCode() != http.StatusTooManyRequests:
		return err
	}
	return errs.RetryLater(5*time.Second, "AWS does not give credentials now", err)
}
