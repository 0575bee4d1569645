package replay

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"time"
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

// maxUpload is the largest log in bytes. The SDK asks for 100 Continue with more, and sends parts of more than 5 MiB.
const maxUpload = 2<<20 - 1

// Refused is the answer to an upload that was not stored.
type Refused struct {
	Status  int
	Code    string // such as AccessDenied
	Message string
}

func (r Refused) Error() string {
	return fmt.Sprintf("upload answered with %d %s: %s", r.Status, r.Code, r.Message)
}

// Upload stores a log file of at most maxUpload bytes and returns its key. The request is the one of the SDK that the original is built with,
// aws-sdk-go with its s3manager. Like an original it repeats a 5xx up to three times. A refusal is a Refused.
func (r *Robot) Upload(ctx context.Context, file string, at time.Time, log []byte) (key string, err error) {
	if len(log) > maxUpload {
		return "", fmt.Errorf("upload of %d bytes: want at most %d", len(log), maxUpload)
	}
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
	host, path := UploadHost(bucket), "/"+strings.ReplaceAll(strings.ReplaceAll(url.QueryEscape(key), "+", "%20"), "%2F", "/")
	a, err := r.https(ctx, http.MethodPut, "https://"+host+path, r.signed(host, path, log, time.Now().UTC()), string(log))
	if err != nil || a.Status < http.StatusMultipleChoices {
		return key, err
	}
	refused := Refused{Status: a.Status}
	_ = xml.Unmarshal([]byte(a.Text), &refused) // an answer without a reason is known by its status
	refused.Code = cmp.Or(refused.Code, strings.ReplaceAll(http.StatusText(a.Status), " ", ""))
	return key, refused
}

// signed returns the headers of an upload at a time in UTC, with Signature Version 4. TestUploadIsTheSDKs compares them with the SDK's own.
func (r *Robot) signed(host, path string, log []byte, at time.Time) map[string]string {
	digest := md5.Sum(log)
	header := map[string]string{
		"content-md5": base64.StdEncoding.EncodeToString(digest[:]), "host": host, "x-amz-content-sha256": sum(string(log)),
		"x-amz-date": at.Format("20060102T150405Z"), "x-amz-security-token": r.STS.SessionToken,
	}
	if len(log) > 0 {
		header["content-length"] = fmt.Sprint(len(log))
	}
	names := slices.Sorted(maps.Keys(header))
	text := http.MethodPut + "\n" + path + "\n\n"
	for _, name := range names {
		text += name + ":" + header[name] + "\n"
	}
	signed := strings.Join(names, ";")
	text += "\n" + signed + "\n" + header["x-amz-content-sha256"]
	key, scope := "AWS4"+r.STS.SecretAccessKey, []string{at.Format("20060102"), region, "s3", "aws4_request"}
	for _, part := range scope {
		key = mac(key, part)
	}
	within := strings.Join(scope, "/")
	header["authorization"] = fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%x", r.STS.AccessKeyId, within, signed,
		mac(key, "AWS4-HMAC-SHA256\n"+header["x-amz-date"]+"\n"+within+"\n"+sum(text)))
	header["user-agent"] = fmt.Sprintf("aws-sdk-go/1.40.45 (%s; %s; %s) S3Manager", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return header
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

func mac(key, text string) string {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(text))
	return string(h.Sum(nil))
}

// expires returns the zero time for what is none.
func expires(text string) time.Time {
	at, _ := time.Parse(time.RFC3339, text)
	return at
}
