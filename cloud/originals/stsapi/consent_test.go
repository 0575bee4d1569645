package stsapi_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"kennel/cloud/identity/consent"
	"kennel/cloud/identity/sts"
	"kennel/cloud/originals/stsapi"
)

// TestConsent: VEC-LOG-08. An object and a part whose owner says no, or changes, within the body are refused at the last byte, and so is the end of an upload in parts. Nothing
// of it is stored. What is stored is stored and listed while the robot is held, and no Hold outlives its request.
func TestConsent(t *testing.T) {
	listed := 0
	var r *rig
	r = newRig(t, func(c *stsapi.Config) {
		c.Stored = func(context.Context, sts.Grant, string, string, int64) error {
			if listed++; r.held.Load() != 1 {
				t.Errorf("an upload is listed under %d Holds; want 1", r.held.Load())
			}
			return nil
		}
	})
	c, b, ctx := r.v2(r.mint(t, robot)), aws.String(bucket), t.Context()
	key := aws.String(folder + "a")
	begin := func() *string {
		t.Helper()
		up, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: b, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		return up.UploadId
	}
	part := func(upload *string, body io.Reader) (*string, error) {
		out, err := c.UploadPart(ctx, &s3.UploadPartInput{Bucket: b, Key: key, UploadId: upload, PartNumber: aws.Int32(1), Body: body, ContentLength: aws.Int64(5)})
		if err != nil {
			return nil, err
		}
		return out.ETag, nil
	}
	finish := func(upload, tag *string) error {
		_, err := c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: b, Key: key, UploadId: upload,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{PartNumber: aws.Int32(1), ETag: tag}}}})
		return err
	}
	put := func(body io.Reader) error {
		_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: b, Key: key, Body: body, ContentLength: aws.Int64(5)})
		return err
	}
	for _, change := range []struct {
		what string
		of   func(*consent.Permit)
		code string // for the doctor
	}{
		{"an opt-out", func(p *consent.Permit) { p.Allowed = false }, consent.CodeOptedOut},
		{"another owner", func(p *consent.Permit) { p.Account = "2" + user[1:] }, "other_owner"},
		{"no owner", func(p *consent.Permit) { p.Account = "" }, "other_owner"},
		{"the same owner again", func(p *consent.Permit) { p.Owned, p.Settled = 0, 0 }, consent.CodeOwnerChanged},
	} {
		upload := begin()
		tag, err := part(upload, strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		for what, send := range map[string]func() error{
			"within an object": func() error {
				in, out := io.Pipe()
				go func() {
					out.Write([]byte("hel")) // until here the owner allows it
					r.change.Store(&change.of)
					out.Write([]byte("lo"))
					out.Close()
				}()
				return put(onlyReader{in})
			},
			"before an object": func() error { return put(strings.NewReader("hello")) },
			"before a part":    func() error { _, err := part(upload, strings.NewReader("world")); return err },
			"before the end":   func() error { return finish(upload, tag) },
		} {
			if what != "within an object" {
				r.change.Store(&change.of)
			}
			if err := send(); codeOf(err) != "AccessDenied" {
				t.Errorf("%s %s: %v; want AccessDenied", change.what, what, err)
			}
			if s := r.steps.Last(); s.Code != change.code || s.Thing != robot {
				t.Errorf("%s %s: the doctor reads %+v; want %s", change.what, what, s, change.code)
			}
			r.change.Store(nil)
			r.missing(t, *key)
		}
	}
	change := func(p *consent.Permit) { p.Settled = 0 }
	r.change.Store(&change)
	if err := put(strings.NewReader("hello")); codeOf(err) != "ServiceUnavailable" {
		t.Errorf("settings changed: %v; want ServiceUnavailable", err)
	}
	r.change.Store(nil)
	if err := put(strings.NewReader("hello")); err != nil {
		t.Error(err)
	}
	upload := begin()
	tag, err := part(upload, strings.NewReader("world"))
	if err != nil {
		t.Fatal(err)
	}
	if err := finish(upload, tag); err != nil || listed != 2 || string(r.has(t, *key)) != "world" {
		t.Errorf("%v; %d listed; %q", err, listed, r.has(t, *key))
	}
	if n := r.held.Load(); n != 0 {
		t.Errorf("%d Holds outlive their requests", n)
	}
}
