// Package awsiot makes AWS IoT Core a broker of Kennel: its policies and topic rules as JSON, and the orders that its data plane takes.
//
// AWS cannot run in our tests: Admin is tested against a hand-written server that checks method, path and signature as AWS documents them,
// and the policies are compared with golden files. That AWS agrees is not shown here.
package awsiot

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iotdataplane"
	"github.com/aws/aws-sdk-go-v2/service/iotdataplane/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"kennel/certs/thing"
	"kennel/infra/awsconfig"
	"kennel/infra/errs"
)

// Config says how to reach the data plane; its Endpoint is https:// and the account's own host, from "aws iot describe-endpoint
// --endpoint-type iot:Data-ATS". The credentials need iot:DeleteConnection and iot:GetConnection.
type Config = awsconfig.Config

// nobody is a client id that no client has: asking for it proves that AWS answers us.
const nobody = "kenneld-ready"

// Admin gives orders to AWS IoT Core. It implements brokeradmin.Admin and is safe for concurrent use.
type Admin struct{ client *iotdataplane.Client }

// Validate reports the first setting that cannot work (kind Invalid).
func Validate(cfg Config) error {
	if cfg.Endpoint == "" || cfg.Region == "" {
		return errs.New(errs.Invalid, "mqtt.aws_iot.endpoint %q and region %q: want https:// with the account's own host, and its region", cfg.Endpoint, cfg.Region)
	}
	return cfg.Validate("mqtt.aws_iot")
}

// New returns an Admin; it does not talk to AWS.
func New(ctx context.Context, cfg Config) (*Admin, error) {
	if err := Validate(cfg); err != nil {
		return nil, err
	}
	ac, err := cfg.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("mqtt.aws_iot: %w", err)
	}
	return &Admin{iotdataplane.NewFromConfig(ac)}, nil
}

// Kick ends the thing's session; its will is published.
func (a *Admin) Kick(ctx context.Context, id thing.ID, reason string) error {
	_, err := a.client.DeleteConnection(ctx, &iotdataplane.DeleteConnectionInput{ClientId: aws.String(string(id)), CleanSession: true})
	if err = explain(err); err != nil {
		return fmt.Errorf("kick %s (%s): %w", id, reason, err)
	}
	return nil
}

// Ready returns nil if AWS answers a request that our credentials sign.
func (a *Admin) Ready(ctx context.Context) error {
	_, err := a.client.GetConnection(ctx, &iotdataplane.GetConnectionInput{ClientId: aws.String(nobody)})
	if err = explain(err); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	return nil
}

// explain gives an error its kind. That there is no such client is none: a session that should end has ended.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); ok {
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
