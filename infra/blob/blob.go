package blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"kennel/infra/errs"
)

// ErrNotFound says that there is no such object (kind NotFound).
var ErrNotFound = errs.Coded(errs.NotFound, "no_object", "no such object")

// DefaultRegion is the region that requests are signed for unless Config names another, and the only one that s3d takes.
const DefaultRegion = "us-east-1"

// Config says how to reach one bucket.
type Config struct {
	Endpoint string `koanf:"endpoint"` // http://127.0.0.1:9000; "": AWS
	// PublicEndpoint is the address in presigned URLs, when robots reach the store by another address; "": Endpoint.
	PublicEndpoint string `koanf:"public_endpoint"`
	Region         string `koanf:"region"` // "": us-east-1
	Bucket         string `koanf:"bucket"`
	// Files with the access key and the secret key, one line each; both empty: the SDK's usual sources (environment, instance role).
	AccessKeyFile string `koanf:"access_key_file"`
	SecretKeyFile string `koanf:"secret_key_file"`
	PathStyle     bool   `koanf:"path_style"` // put the bucket in the path instead of the host name
	// Full is told of each request that the store refused because its volume is full, with what the store says; may be nil.
	Full func(why string) `koanf:"-"`
}

// Validate reports the first setting that cannot work (kind Invalid).
func (c Config) Validate() error {
	if c.Bucket == "" {
		return errs.New(errs.Invalid, "s3: bucket is empty")
	}
	if (c.AccessKeyFile == "") != (c.SecretKeyFile == "") {
		return errs.New(errs.Invalid, "s3: access_key_file %q and secret_key_file %q: want both or neither", c.AccessKeyFile, c.SecretKeyFile)
	}
	for name, e := range map[string]string{"endpoint": c.Endpoint, "public_endpoint": c.PublicEndpoint} {
		if e == "" {
			continue
		}
		if u, err := url.Parse(e); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return errs.New(errs.Invalid, "s3: %s %q: want http://HOST:PORT or https://HOST", name, e)
		}
	}
	return nil
}

// Store is one bucket. It is safe for concurrent use.
type Store struct {
	bucket  string
	client  *s3.Client
	stream  *s3.Client // for bodies that pass through once: neither read ahead for a digest nor repeated
	presign *s3.PresignClient
	upload  *transfermanager.Client
}

// Open prepares a Store; it does not talk to the server (see EnsureBucket).
func Open(ctx context.Context, c Config) (*Store, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	opts := []func(*awsconfig.LoadOptions) error{
		awsconfig.WithRegion(cmp.Or(c.Region, DefaultRegion)),
		awsconfig.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.ResponseHeaderTimeout = 30 * time.Second
			t.MaxIdleConnsPerHost = 64
		})),
		awsconfig.WithRetryer(func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = 3, time.Second })
		}),
	}
	if c.AccessKeyFile != "" {
		access, err := os.ReadFile(c.AccessKeyFile)
		if err != nil {
			return nil, fmt.Errorf("s3: access key: %w", err)
		}
		secret, err := os.ReadFile(c.SecretKeyFile)
		if err != nil {
			return nil, fmt.Errorf("s3: secret key: %w", err)
		}
		opts = append(opts, awsconfig.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(
			strings.TrimSpace(string(access)), strings.TrimSpace(string(secret)), "")))
	}
	ac, err := awsconfig.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	at := func(endpoint string, more ...func(*s3.Options)) *s3.Client {
		return s3.NewFromConfig(ac, append(more, func(o *s3.Options) {
			o.UsePathStyle = c.PathStyle
			if c.Full != nil {
				o.APIOptions = append(o.APIOptions, tellFull(c.Full))
			}
			o.DisableLogOutputChecksumValidationSkipped = true // a line on standard error for every read in parts
			if endpoint != "" {
				o.BaseEndpoint = &endpoint
			}
		})...)
	}
	s := &Store{bucket: c.Bucket, client: at(c.Endpoint)}
	s.stream = at(c.Endpoint, func(o *s3.Options) {
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.Retryer = aws.NopRetryer{}
	})
	// A presigned URL's signature covers every header it names; a checksum the presigner computes over an empty body must not be one.
	s.presign = s3.NewPresignClient(at(cmp.Or(c.PublicEndpoint, c.Endpoint)), func(o *s3.PresignOptions) {
		o.ClientOptions = append(o.ClientOptions, func(o *s3.Options) {
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		})
	})
	s.upload = transfermanager.New(s.client, func(o *transfermanager.Options) {
		o.Concurrency = 2 // bounds memory: an upload holds at most three parts
		o.FailTimeout = 10 * time.Second
	})
	return s, nil
}

// EnsureBucket makes the bucket if it is not there.
func (s *Store) EnsureBucket(ctx context.Context) error {
	_, err := s.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &s.bucket})
	if err = classify(err); err == nil {
		return nil
	}
	if errs.KindOf(err) != errs.NotFound {
		return fmt.Errorf("s3: bucket %s: %w", s.bucket, err)
	}
	_, err = s.client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &s.bucket})
	if err = classify(err); err != nil && errs.KindOf(err) != errs.Conflict { // Conflict: another process was first
		return fmt.Errorf("s3: create bucket %s: %w", s.bucket, err)
	}
	return nil
}

// Info describes an object.
type Info struct {
	Key         string
	Size        int64 // bytes
	Modified    time.Time
	ETag        string // without quotes; not a digest of the content when it came in parts
	ContentType string // Head and Get only
	Metadata    map[string]string
}

// PutOptions are optional properties of an object. Keys of Metadata are lower case.
type PutOptions struct {
	ContentType string
	Metadata    map[string]string
}

// Put stores size bytes of body under key, replacing what was there, all or nothing. A body that is shorter or longer is an error of
// kind Invalid. Large bodies are sent in parts, at most three parts of 8 MiB are held in memory.
func (s *Store) Put(ctx context.Context, key string, body io.Reader, size int64, o PutOptions) error {
	in := &transfermanager.UploadObjectInput{Bucket: &s.bucket, Key: &key, Body: &sized{r: body, left: size, key: key}, Metadata: o.Metadata}
	if o.ContentType != "" {
		in.ContentType = &o.ContentType
	}
	if _, err := s.upload.UploadObject(ctx, in); err != nil {
		return fmt.Errorf("s3: put %s: %w", key, classify(err))
	}
	return nil
}

// Get returns the object and its description; the caller closes the body. offset and length choose a range of bytes; length 0 means
// to the end.
func (s *Store) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, Info, error) {
	in := &s3.GetObjectInput{Bucket: &s.bucket, Key: &key}
	switch {
	case length > 0:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	case offset > 0:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-", offset))
	}
	out, err := s.client.GetObject(ctx, in)
	if err != nil {
		return nil, Info{}, fmt.Errorf("s3: get %s: %w", key, classify(err))
	}
	return out.Body, Info{Key: key, Size: aws.ToInt64(out.ContentLength), Modified: aws.ToTime(out.LastModified),
		ETag: strings.Trim(aws.ToString(out.ETag), `"`), ContentType: aws.ToString(out.ContentType), Metadata: out.Metadata}, nil
}

// Head describes the object without its content.
func (s *Store) Head(ctx context.Context, key string) (Info, error) {
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: &key})
	if err != nil {
		return Info{}, fmt.Errorf("s3: head %s: %w", key, classify(err))
	}
	return Info{Key: key, Size: aws.ToInt64(out.ContentLength), Modified: aws.ToTime(out.LastModified),
		ETag: strings.Trim(aws.ToString(out.ETag), `"`), ContentType: aws.ToString(out.ContentType), Metadata: out.Metadata}, nil
}

// Delete removes the object; that it was not there is no error.
func (s *Store) Delete(ctx context.Context, key string) error {
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: &key})
	if err = classify(err); err != nil && errs.KindOf(err) != errs.NotFound {
		return fmt.Errorf("s3: delete %s: %w", key, err)
	}
	return nil
}

// List yields the objects whose keys start with prefix, in order of key, a page at a time. An error is the last thing it yields.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &prefix})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(Info{}, fmt.Errorf("s3: list %s: %w", prefix, classify(err)))
				return
			}
			for _, o := range page.Contents {
				i := Info{Key: aws.ToString(o.Key), Size: aws.ToInt64(o.Size), Modified: aws.ToTime(o.LastModified),
					ETag: strings.Trim(aws.ToString(o.ETag), `"`)}
				if !yield(i, nil) {
					return
				}
			}
		}
	}
}

// Presigned is a request that a client without keys may make.
type Presigned struct {
	Method string
	URL    string
	Header http.Header // must be sent exactly so; Host and Content-Length aside, an HTTP client adds nothing by itself that matters
	Until  time.Time
}

// PresignGet lets its holder read the object for ttl (at most seven days).
func (s *Store) PresignGet(ctx context.Context, key string, ttl time.Duration) (Presigned, error) {
	now := time.Now()
	r, err := s.presign.PresignGetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: &key}, s3.WithPresignExpires(ttl))
	if err != nil {
		return Presigned{}, fmt.Errorf("s3: presign get %s: %w", key, err)
	}
	return Presigned{r.Method, r.URL, r.SignedHeader, now.Add(ttl)}, nil
}

// PresignPut lets its holder write the object for ttl (at most seven days). With size > 0 the store refuses a body of another size.
func (s *Store) PresignPut(ctx context.Context, key string, size int64, ttl time.Duration) (Presigned, error) {
	now := time.Now()
	in := &s3.PutObjectInput{Bucket: &s.bucket, Key: &key}
	if size > 0 {
		in.ContentLength = &size
	}
	r, err := s.presign.PresignPutObject(ctx, in, s3.WithPresignExpires(ttl))
	if err != nil {
		return Presigned{}, fmt.Errorf("s3: presign put %s: %w", key, err)
	}
	return Presigned{r.Method, r.URL, r.SignedHeader, now.Add(ttl)}, nil
}

// tellFull hears of answers that there is no space: 507 Insufficient Storage, as s3d, MinIO and Ceph give.
func tellFull(tell func(why string)) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("Full",
			func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
				out, meta, err := next.HandleDeserialize(ctx, in)
				if re, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && re.HTTPStatusCode() == http.StatusInsufficientStorage {
					tell(re.Err.Error())
				}
				return out, meta, err
			}), middleware.Before)
	}
}

// classify gives an error of the SDK its kind.
func classify(err error) error {
	if err == nil || errs.KindOf(err) != errs.Internal || errors.Is(err, context.Canceled) {
		return err
	}
	re, ok := errors.AsType[*awshttp.ResponseError](err)
	if !ok {
		if _, unsent := errors.AsType[*smithyhttp.RequestSendError](err); unsent {
			return errs.RetryLater(2*time.Second, "the object store is not available", err)
		}
		return err
	}
	switch code := re.HTTPStatusCode(); {
	case code == http.StatusNotFound:
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	case code == http.StatusForbidden || code == http.StatusUnauthorized:
		return &errs.Error{Kind: errs.Denied, Msg: "the object store refuses our access key", Err: err}
	case code == http.StatusConflict || code == http.StatusPreconditionFailed:
		return &errs.Error{Kind: errs.Conflict, Msg: "conflict with another write to the object store", Err: err}
	case code == http.StatusRequestedRangeNotSatisfiable:
		return &errs.Error{Kind: errs.Invalid, Msg: "the range is outside the object", Err: err}
	case code >= 500 || code == http.StatusTooManyRequests || code == 0:
		return errs.RetryLater(2*time.Second, "the object store is not available", err)
	}
	return err
}

// sized reads exactly left bytes of r.
type sized struct {
	r    io.Reader
	left int64
	key  string
}

func (s *sized) Read(p []byte) (int, error) {
	if s.left == 0 {
		var one [1]byte
		if n, _ := s.r.Read(one[:]); n > 0 {
			return 0, errs.New(errs.Invalid, "body of %s is longer than the announced length", s.key)
		}
		return 0, io.EOF
	}
	n, err := s.r.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	if errors.Is(err, io.EOF) && s.left > 0 {
		err = errs.New(errs.Invalid, "body of %s is %d bytes shorter than the announced length", s.key, s.left)
	} else if errors.Is(err, io.EOF) {
		err = nil // the next call looks for a surplus
	}
	return n, err
}
