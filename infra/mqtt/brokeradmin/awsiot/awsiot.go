// Package awsiot makes AWS IoT Core a broker of Kennel: its policies and topic rules as JSON, and the orders that its data plane takes.
//
// AWS cannot run in our tests: Admin is tested against a hand-written server that checks method, path and signature as AWS documents them,
// and the policies are compared with golden files. That AWS agrees is not shown here.
package awsiot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iot"
	iottypes "github.com/aws/aws-sdk-go-v2/service/iot/types"
	"github.com/aws/aws-sdk-go-v2/service/iotdataplane"
	"github.com/aws/aws-sdk-go-v2/service/iotdataplane/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"kennel/infra/awsconfig"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Config says how to reach the data plane; its Endpoint is https:// and the account's own host, from "aws iot describe-endpoint
// --endpoint-type iot:Data-ATS". The credentials need iot:DeleteConnection and iot:GetConnection; for Block and Allow, which go to the
// region's own host, also iot:ListThingPrincipals, iot:DescribeCertificate and iot:UpdateCertificate.
type Config = awsconfig.Config

// noClient is a client id that no client has: asking for it proves that AWS answers us.
const noClient = "kenneld-ready"

// Admin gives orders to AWS IoT Core. It implements brokeradmin.Admin and Blocker and is safe for concurrent use.
type Admin struct {
	client  *iotdataplane.Client
	control *iot.Client
}

// Validate reports the first setting that cannot work (kind Invalid).
func Validate(cfg Config) error {
	if cfg.Endpoint == "" || cfg.Region == "" {
		return errs.New(errs.Invalid, "mqtt.aws_iot.endpoint %q and region %q: want https:// with the account's own host, and its region",
			cfg.Endpoint, cfg.Region)
	}
	return cfg.Validate("mqtt.aws_iot")
}

// New returns an Admin; it does not talk to AWS.
func New(ctx context.Context, cfg Config) (*Admin, error) { return open(ctx, cfg, "") }

// open: control is the host of the control plane; "": the region's.
func open(ctx context.Context, cfg Config, control string) (*Admin, error) {
	if err := Validate(cfg); err != nil {
		return nil, err
	}
	ac, err := cfg.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("mqtt.aws_iot: %w", err)
	}
	cc := ac.Copy()
	cc.BaseEndpoint = nil
	if control != "" {
		cc.BaseEndpoint = aws.String(control)
	}
	return &Admin{iotdataplane.NewFromConfig(ac), iot.NewFromConfig(cc)}, nil
}

// Kick ends the thing's session; its will is published.
func (a *Admin) Kick(ctx context.Context, id thing.ID, reason string) error {
	_, err := a.client.DeleteConnection(ctx, &iotdataplane.DeleteConnectionInput{ClientId: aws.String(string(id)), CleanSession: true})
	if err = explain(err); err != nil {
		return fmt.Errorf("kick %s (%s): %w", id, reason, err)
	}
	return nil
}

// Block makes every certificate of the thing INACTIVE, so that AWS refuses it, and ends its session; AWS itself would take minutes for that.
// The thing in AWS's registry has the thing id as its name, and its certificates attached (see ThingPolicy).
func (a *Admin) Block(ctx context.Context, id thing.ID, reason string) error {
	certs, err := a.certificates(ctx, id)
	if err != nil {
		return fmt.Errorf("block %s (%s): %w", id, reason, err)
	}
	for _, c := range certs {
		if c.Status != iottypes.CertificateStatusActive {
			continue // a REVOKED one must stay that
		}
		if err := a.set(ctx, c, iottypes.CertificateStatusInactive); err != nil {
			return fmt.Errorf("block %s (%s): %w", id, reason, err)
		}
	}
	return a.Kick(ctx, id, reason)
}

// Allow makes the newest certificate of the thing active again; older ones stay as they are, because revoked ones are among them.
func (a *Admin) Allow(ctx context.Context, id thing.ID) error {
	certs, err := a.certificates(ctx, id)
	if err == nil && len(certs) > 0 {
		newest := slices.MaxFunc(certs, func(a, b *iottypes.CertificateDescription) int {
			return aws.ToTime(a.CreationDate).Compare(aws.ToTime(b.CreationDate))
		})
		if newest.Status == iottypes.CertificateStatusInactive {
			err = a.set(ctx, newest, iottypes.CertificateStatusActive)
		}
	}
	if err != nil {
		return fmt.Errorf("allow %s: %w", id, err)
	}
	return nil
}

func (a *Admin) set(ctx context.Context, c *iottypes.CertificateDescription, to iottypes.CertificateStatus) error {
	_, err := a.control.UpdateCertificate(ctx, &iot.UpdateCertificateInput{CertificateId: c.CertificateId, NewStatus: to})
	return explain(err)
}

// certificates returns the certificates attached to a thing. A thing that AWS does not know has none.
func (a *Admin) certificates(ctx context.Context, id thing.ID) ([]*iottypes.CertificateDescription, error) {
	var out []*iottypes.CertificateDescription
	pages := iot.NewListThingPrincipalsPaginator(a.control, &iot.ListThingPrincipalsInput{ThingName: aws.String(string(id))})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, explain(err)
		}
		for _, arn := range page.Principals {
			_, cert, ok := strings.Cut(arn, ":cert/")
			if !ok {
				continue // a Cognito identity
			}
			d, err := a.control.DescribeCertificate(ctx, &iot.DescribeCertificateInput{CertificateId: aws.String(cert)})
			if err != nil {
				if err = explain(err); err == nil {
					continue // deleted in between
				}
				return nil, err
			}
			if d.CertificateDescription != nil {
				out = append(out, d.CertificateDescription)
			}
		}
	}
	return out, nil
}

// Ready returns nil if AWS answers a request that our credentials sign.
func (a *Admin) Ready(ctx context.Context) error {
	_, err := a.client.GetConnection(ctx, &iotdataplane.GetConnectionInput{ClientId: aws.String(noClient)})
	if err = explain(err); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	return nil
}

// explain gives an error its kind. A missing client is no error: a session that should end has ended.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); ok {
		return nil
	}
	if _, ok := errors.AsType[*iottypes.ResourceNotFoundException](err); ok {
		return nil
	}
	answer, ok := errors.AsType[*smithyhttp.ResponseError](err)
	switch {
	case !ok || answer.HTTPStatusCode() == 0: // no answer at all
		return errs.Coded(errs.Unavailable, "unreachable", "%w", err)
	case answer.HTTPStatusCode() == 401:
		return errs.New(errs.Unauthenticated, "%w", err)
	case answer.HTTPStatusCode() == 403:
		return errs.New(errs.Denied, "%w", err)
	case answer.HTTPStatusCode() == 429, answer.HTTPStatusCode() >= 500:
		return errs.New(errs.Unavailable, "%w", err)
	}
	return err
}
