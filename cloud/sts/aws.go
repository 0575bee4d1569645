package sts

import (
	"context"
	"encoding/json"
	"regexp"
	"time"

	"kennel/certs/thing"
	"kennel/cloud/token"
	"kennel/infra/blob/awssts"
	"kennel/infra/errs"
)

// RoleAssumer is an awssts.Client.
type RoleAssumer interface {
	AssumeRole(ctx context.Context, session, policy string, life time.Duration) (awssts.Credentials, error)
}

// AWS has AWS make the credentials, where robots upload to AWS's own S3. What they have is theirs until it expires: AWS does not ask us
// again, so that its life should be short. Prefix must lie in Root, where all else looks for logs.
type AWS struct {
	role   RoleAssumer
	bucket string
	cfg    Config
}

var _ token.STS = (*AWS)(nil)

var buckets = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// NewAWS is New for such a cloud; c.Seal is not used.
func NewAWS(role RoleAssumer, bucket string, c Config) (*AWS, error) {
	g, err := New(c)
	if err != nil {
		return nil, err
	}
	if c = g.cfg; stored(c.Prefix) != c.Prefix {
		return nil, errs.New(errs.Invalid, "temporary credentials: prefix %q: on AWS want one in %s", c.Prefix, Root)
	}
	if !buckets.MatchString(bucket) { // it becomes part of a policy
		return nil, errs.New(errs.Invalid, "temporary credentials: bucket %q: want 3 to 63 of a-z 0-9 . -", bucket)
	}
	return &AWS{role: role, bucket: bucket, cfg: c}, nil
}

type statement struct {
	Effect, Resource string
	Action           []string
}

// policy allows what the door does: uploads into the folder, whole or in parts.
func policy(bucket string, g Grant) (string, error) {
	b, err := json.Marshal(struct {
		Version   string
		Statement []statement
	}{"2012-10-17", []statement{{"Allow", "arn:aws:s3:::" + bucket + "/" + g.Folder() + "*", []string{"s3:PutObject", "s3:AbortMultipartUpload"}}}})
	return string(b), err
}

// Mint implements token.STS.
func (s *AWS) Mint(ctx context.Context, id thing.ID, userID string) (token.Credentials, error) {
	g, err := newGrant(id, userID, s.cfg.Prefix, s.cfg.Now(), s.cfg.Life)
	if err != nil {
		return token.Credentials{}, err
	}
	if err := s.cfg.Standing.Check(ctx, g); err != nil {
		return token.Credentials{}, err
	}
	p, err := policy(s.bucket, g)
	if err != nil {
		return token.Credentials{}, err
	}
	c, err := s.role.AssumeRole(ctx, id.Slug(), p, s.cfg.Life)
	if err != nil {
		return token.Credentials{}, err
	}
	return token.Credentials{AccessKeyID: c.AccessKeyID, SecretAccessKey: token.Secret(c.SecretAccessKey), SessionToken: token.Secret(c.SessionToken), Expires: c.Expires}, nil
}
