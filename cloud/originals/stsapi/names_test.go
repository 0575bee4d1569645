package stsapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"kennel/cloud/identity/sts"
	"kennel/cloud/originals/stsapi"
	"kennel/infra/blob"
)

// stored is where the door keeps what robot calls key.
func stored(key string) string {
	return sts.Grant{Thing: robot, User: user, Prefix: sts.DefaultPrefix}.Stored(key)
}

// TestAnyLegalName: names that a store of files would take for folders, for its own, or not at all are stored side by side, and none of them hides.
func TestAnyLegalName(t *testing.T) {
	r := newRig(t)
	c := r.v2(r.mint(t, robot))
	names := []string{"a.gz", "a.gz/b", "a.gz/b/c", "a.gz%2Fb", ".sgwtmp", ".sgwtmp/x", "x/.sgwtmp/y", ".hidden", "meta", "a.gz/meta", "a.gz/meta/etag", "~", "~x", "%", "%2F", "+ =&?#;'()!*$@,:",
		"😀.gz", strings.Repeat("b", 300), strings.Repeat("b", 301), strings.Repeat("/c", (sts.MaxKey-len(folder))/2)[1:], strings.Repeat("ü", (sts.MaxKey-len(folder))/2)}
	var keys []string
	for _, name := range names {
		key := folder + name
		if _, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: &key, Body: strings.NewReader(name)}); err != nil {
			t.Fatalf("%.80q: %v", name, err)
		}
		keys = append(keys, stored(key))
	}
	for i, name := range names {
		if got := r.has(t, keys[i]); string(got) != name {
			t.Errorf("%.80q reads %.80q", name, got)
		}
	}
	listed := r.keys(t)
	slices.Sort(keys)
	if !slices.Equal(listed, keys) || len(slices.Compact(keys)) != len(names) {
		t.Errorf("listed %q, want %q", listed, keys)
	}
	for _, k := range listed {
		name, ok := sts.DecodeName(strings.TrimPrefix(k, folder))
		if !ok {
			info, err := r.store.Head(t.Context(), k)
			if err != nil {
				t.Fatal(err)
			}
			name = sts.NameOf(info)
		}
		if !slices.Contains(names, name) {
			t.Errorf("%s is called %.80q", k, name)
		}
	}
	// In parts too, beside an object of the same beginning.
	key, ctx := aws.String(folder+"a.gz/parts"), t.Context()
	up, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: aws.String(bucket), Key: key})
	if err != nil {
		t.Fatal(err)
	}
	part, err := c.UploadPart(ctx, &s3.UploadPartInput{Bucket: aws.String(bucket), Key: key, UploadId: up.UploadId, PartNumber: aws.Int32(1), Body: strings.NewReader("parts")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: aws.String(bucket), Key: key, UploadId: up.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{PartNumber: aws.Int32(1), ETag: part.ETag}}}})
	if got := r.has(t, stored(*key)); err != nil || string(got) != "parts" {
		t.Errorf("in parts: %q, %v", got, err)
	}
	// Erasure reaches all of them.
	if err := (sts.Personal{Objects: r.store, Prefixes: []string{sts.DefaultPrefix}}).Erase(ctx, user); err != nil {
		t.Fatal(err)
	}
	if got := r.keys(t); len(got) > 0 {
		t.Errorf("left after erasure: %q", got)
	}
}

// TestNamesBeforeEncoding: objects stored under plain keys stay listed and readable, and are erased with the rest.
func TestNamesBeforeEncoding(t *testing.T) {
	r := newRig(t)
	old := folder + "v2/put 1%.gz"
	if _, err := r.store.PutOnce(t.Context(), old, bytes.NewReader([]byte("old")), 3, blob.PutOptions{}, blob.Digests{}); err != nil {
		t.Fatal(err)
	}
	p := sts.Personal{Objects: r.store, Prefixes: []string{sts.DefaultPrefix}}
	v, err := p.Export(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	if got := v.([]sts.Upload); len(got) != 1 || got[0].Key != old {
		t.Errorf("exported %+v", got)
	}
	if err := p.Erase(t.Context(), user); err != nil {
		t.Fatal(err)
	}
	r.missing(t, old)
}

// TestStoredIsTold: the list of uploads hears of each object once, whole or in parts, before the robot does; if that fails the upload is good all
// the same.
func TestStoredIsTold(t *testing.T) {
	var told []string
	var fails error
	r := newRig(t, func(c *stsapi.Config) {
		c.Stored = func(_ context.Context, g sts.Grant, key, name string, size int64) error {
			told = append(told, fmt.Sprintf("%s %s %s %s %d", g.Thing, g.User, key, name, size))
			return fails
		}
	})
	c := r.v2(r.mint(t, robot))
	put := func(name string, n int) {
		t.Helper()
		if _, err := transfermanager.New(c).UploadObject(t.Context(), &transfermanager.UploadObjectInput{Bucket: aws.String(bucket), Key: aws.String(folder + name), Body: bytes.NewReader(content(n))}); err != nil {
			t.Fatal(err)
		}
	}
	put("a b/c", 5)
	put("parts", 20<<20)
	fails = errors.New("the list is not there")
	put("d", 1)
	if _, code := r.do(t, signedPut(t, r.mint(t, other), "/"+folder+"e", "x", time.Now())); code != "AccessDenied" {
		t.Errorf("another's: %s", code)
	}
	who := string(robot) + " " + user + " " + folder
	if want := []string{who + "a b%2Fc a b/c 5", who + "parts parts 20971520", who + "d d 1"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if !bytes.Contains(r.logs.bytes(), []byte("upload stored, but not yet listed")) {
		t.Error("a row that was lost is not logged")
	}
	if s := r.steps.Last(); s.OK {
		t.Errorf("the doctor reads %+v", s)
	}
}
