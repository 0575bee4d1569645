package replay

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go/aws/credentials"
	"github.com/aws/aws-sdk-go/aws/defaults"
	"github.com/aws/aws-sdk-go/aws/session"
	"github.com/aws/aws-sdk-go/service/s3/s3manager"
)

// region is compiled into the original.
const region = "us-west-2"

// UploadHost returns the name that an original robot looks up for uploads to a bucket, and dials at port 443 (peer facts, section 13).
func UploadHost(bucket string) string { return bucket + ".s3." + region + ".amazonaws.com" }

// bucket splits the setting logfiles.
func (c ServerConfig) bucket() (bucket, prefix string) {
	rest, ok := strings.CutPrefix(c.LogFiles, "s3://")
	if !ok {
		return "", ""
	}
	bucket, prefix, _ = strings.Cut(rest, "/")
	return bucket, strings.Trim(prefix, "/")
}

// credentialsSpare is how long before their end the robot asks for new ones.
const credentialsSpare = time.Hour

// Upload stores a log file with the SDK that the original is built with, and returns its key. Like an original it repeats a 5xx up to three times.
func (r *Robot) Upload(ctx context.Context, file string, at time.Time, log []byte) (key string, err error) {
	if r.STS == nil || expires(r.STS.Expiration).Before(at.Add(credentialsSpare)) {
		if err := r.RefreshSTS(ctx); err != nil {
			return "", err
		}
	}
	bucket, prefix := r.Servers.bucket()
	if bucket == "" {
		return "", fmt.Errorf("logfiles %.80q of the robot's configuration: want s3://bucket/prefix", r.Servers.LogFiles)
	}
	key = fmt.Sprintf("%s/%s/%s/%s-%s", prefix, r.User(), base64.StdEncoding.EncodeToString([]byte(r.Thing)), at.UTC().Format("2006-01-02-15-04-05"), file)
	transport := &http.Transport{TLSClientConfig: r.tls(""), DialContext: r.dial}
	defer transport.CloseIdleConnections()
	// Made by hand: NewSession lets variables of the environment change the roots.
	s := &session.Session{Handlers: defaults.Handlers(), Config: defaults.Config().WithRegion(region).WithHTTPClient(&http.Client{Transport: transport}).
		WithCredentials(credentials.NewStaticCredentials(r.STS.AccessKeyId, r.STS.SecretAccessKey, r.STS.SessionToken))}
	_, err = s3manager.NewUploader(s).UploadWithContext(ctx, &s3manager.UploadInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(log)})
	return key, err
}

// expires returns the zero time for what is none.
func expires(text string) time.Time {
	at, _ := time.Parse(time.RFC3339, text)
	return at
}
