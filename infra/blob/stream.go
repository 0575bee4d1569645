package blob

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"

	"kennel/infra/errs"
)

// Digests are of a whole body. The store refuses a body that does not have those that are given.
type Digests struct {
	MD5    []byte
	SHA256 []byte
}

// once makes a request whose body is sent as it comes. The signature covers the digest if it is known, else the length alone.
func (d Digests) once(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		if d.SHA256 == nil {
			return v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware(stack)
		}
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("KnownPayloadHash",
			func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				return next.HandleInitialize(v4.SetPayloadHash(ctx, hex.EncodeToString(d.SHA256)), in)
			}), middleware.After)
	})
}

func (d Digests) md5() *string {
	if d.MD5 == nil {
		return nil
	}
	return aws.String(base64.StdEncoding.EncodeToString(d.MD5))
}

// PutOnce is Put for a body that passes through: it is sent as it is read, in one request, and nothing of it is kept, so that memory does
// not grow with the body and it cannot be repeated. Like Put it stores all or nothing. It returns the ETag.
func (s *Store) PutOnce(ctx context.Context, key string, body io.Reader, size int64, o PutOptions, d Digests) (string, error) {
	in := &s3.PutObjectInput{Bucket: &s.bucket, Key: &key, Body: &sized{r: body, left: size, key: key}, ContentLength: &size, ContentMD5: d.md5(), Metadata: o.Metadata}
	if o.ContentType != "" {
		in.ContentType = &o.ContentType
	}
	out, err := s.stream.PutObject(ctx, in, d.once)
	if err != nil {
		return "", fmt.Errorf("s3: put %s: %w", key, classify(err))
	}
	return strings.Trim(aws.ToString(out.ETag), `"`), nil
}

// Part is one part of an object that comes in parts. Numbers start at 1.
type Part struct {
	Number int32
	ETag   string // without quotes
	Size   int64  // Parts only
}

// BeginParts starts an object that comes in parts, and returns the id of its upload. Nothing is stored before FinishParts.
func (s *Store) BeginParts(ctx context.Context, key string, o PutOptions) (string, error) {
	in := &s3.CreateMultipartUploadInput{Bucket: &s.bucket, Key: &key, Metadata: o.Metadata}
	if o.ContentType != "" {
		in.ContentType = &o.ContentType
	}
	out, err := s.client.CreateMultipartUpload(ctx, in)
	if err != nil {
		return "", fmt.Errorf("s3: start upload of %s: %w", key, classify(err))
	}
	return aws.ToString(out.UploadId), nil
}

// PutPart is PutOnce for one part.
func (s *Store) PutPart(ctx context.Context, key, upload string, number int32, body io.Reader, size int64, d Digests) (string, error) {
	out, err := s.stream.UploadPart(ctx, &s3.UploadPartInput{Bucket: &s.bucket, Key: &key, UploadId: &upload, PartNumber: &number,
		Body: &sized{r: body, left: size, key: key}, ContentLength: &size, ContentMD5: d.md5()}, d.once)
	if err != nil {
		return "", fmt.Errorf("s3: part %d of %s: %w", number, key, classify(err))
	}
	return strings.Trim(aws.ToString(out.ETag), `"`), nil
}

// Parts returns what came of an upload so far, by number.
func (s *Store) Parts(ctx context.Context, key, upload string) ([]Part, error) {
	var all []Part
	pages := s3.NewListPartsPaginator(s.client, &s3.ListPartsInput{Bucket: &s.bucket, Key: &key, UploadId: &upload})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("s3: upload parts of %s: %w", key, classify(err))
		}
		for _, p := range page.Parts {
			all = append(all, Part{Number: aws.ToInt32(p.PartNumber), ETag: strings.Trim(aws.ToString(p.ETag), `"`), Size: aws.ToInt64(p.Size)})
		}
	}
	return all, nil
}

// FinishParts stores the object made of these parts and returns its ETag.
func (s *Store) FinishParts(ctx context.Context, key, upload string, parts []Part) (string, error) {
	done := make([]types.CompletedPart, len(parts))
	for i, p := range parts {
		done[i] = types.CompletedPart{PartNumber: &p.Number, ETag: &p.ETag}
	}
	out, err := s.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: &s.bucket, Key: &key, UploadId: &upload,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: done}})
	if err != nil {
		return "", fmt.Errorf("s3: complete upload of %s: %w", key, classify(err))
	}
	return strings.Trim(aws.ToString(out.ETag), `"`), nil
}

// DropParts forgets an upload and what came of it.
func (s *Store) DropParts(ctx context.Context, key, upload string) error {
	if _, err := s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.bucket, Key: &key, UploadId: &upload}); err != nil {
		return fmt.Errorf("s3: abort upload of %s: %w", key, classify(err))
	}
	return nil
}

// DropUnfinished drops uploads in parts of keys that start with prefix and were begun before a time, and returns how many.
func (s *Store) DropUnfinished(ctx context.Context, prefix string, before time.Time) (n int, err error) {
	pages := s3.NewListMultipartUploadsPaginator(s.client, &s3.ListMultipartUploadsInput{Bucket: &s.bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return n, fmt.Errorf("s3: unfinished uploads of %s: %w", prefix, classify(err))
		}
		for _, u := range page.Uploads {
			if !aws.ToTime(u.Initiated).Before(before) {
				continue
			}
			if err := s.DropParts(ctx, aws.ToString(u.Key), aws.ToString(u.UploadId)); err != nil && errs.KindOf(err) != errs.NotFound { // another was first
				return n, err
			}
			n++
		}
	}
	return n, nil
}

// DeleteAll deletes the objects whose keys start with prefix, and returns how many. Repeat it after an error: it continues where it stopped.
func (s *Store) DeleteAll(ctx context.Context, prefix string) (n int, err error) {
	for o, err := range s.List(ctx, prefix) {
		if err == nil {
			err = s.Delete(ctx, o.Key)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
