// Package sigv4 is the receiving side of AWS Signature Version 4 for S3: it reads who claims to have signed a request, checks the
// signature, and reads the body in all the forms in which S3 clients send one.
//
// A signature is checked by signing again, with the signer of the AWS SDK, what the request says was signed: how a request is put into
// canonical form is written there. The frames of "aws-chunked" bodies are read here (see body.go): the SDK only writes them, and the
// readers of the gateway library (infra/blob/gateway) are bound to its HTTP server and keep no limit on what one line may hold.
//
// Errors have a kind (infra/errs) and, as code, the word by which S3 clients know it, such as "SignatureDoesNotMatch".
package sigv4

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"kennel/infra/errs"
)

// MaxSkew is how far a client's clock may be from ours; S3 has the same.
const MaxSkew = 15 * time.Minute

// Codes of errors, as S3 has them.
const (
	CodeDenied      = "AccessDenied"
	CodeMalformed   = "AuthorizationHeaderMalformed"
	CodeSignature   = "SignatureDoesNotMatch"
	CodeSkewed      = "RequestTimeTooSkewed"
	CodeDigest      = "BadDigest"
	CodeBadMD5      = "InvalidDigest"
	CodeSHA256      = "XAmzContentSHA256Mismatch"
	CodeIncomplete  = "IncompleteBody"
	CodeNoLength    = "MissingContentLength"
	CodeBadRequest  = "InvalidRequest"
	CodeBadURI      = "InvalidURI"
	CodeUnsupported = "NotImplemented"
)

const (
	algorithm   = "AWS4-HMAC-SHA256"
	timeFormat  = "20060102T150405Z"
	dateHeader  = "X-Amz-Date"
	tokenHeader = "X-Amz-Security-Token"
	hashHeader  = "X-Amz-Content-Sha256"

	transferEncoding = "transfer-encoding" // the server takes it out of the headers
)

// Auth holds the claims of a request about its signature. None of them is proved before Verify.
type Auth struct {
	AccessKeyID string
	Token       string // session token
	Region      string
	Time        time.Time
	Payload     string // what the signature says of the body: a digest in hex, or one of the forms of body.go

	service   string
	date      string // as in the scope
	signed    []string
	signature string
}

var (
	accessKey = regexp.MustCompile(`^[A-Za-z0-9]{8,128}$`)
	region    = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	header    = regexp.MustCompile(`^[a-z0-9-]{1,128}$`)
	hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// maxAuthorization bounds the header, in bytes; clients need about 400.
const maxAuthorization = 4096

func malformed(format string, args ...any) error {
	return errs.Coded(errs.Invalid, CodeMalformed, "Authorization header: "+format, args...)
}

// one returns the only value of a header.
func one(h http.Header, key string) (string, error) {
	switch v := h[key]; len(v) {
	case 0:
		return "", nil
	case 1:
		return strings.TrimSpace(v[0]), nil
	default:
		return "", errs.Coded(errs.Invalid, CodeBadRequest, "header %s is given %d times, want it once", key, len(v))
	}
}

// Parse reads the signature of a request made with temporary credentials. It refuses what leaves a part of the request unsigned that
// matters: the host, any x-amz- header, the digest of the body.
func Parse(r *http.Request) (Auth, error) {
	a, err := parse(r, "s3")
	if err == nil && a.Payload == "" {
		err = errs.Coded(errs.Invalid, CodeBadRequest, "no x-amz-content-sha256 header")
	}
	if err != nil {
		return Auth{}, err
	}
	return a, a.covers(r)
}

// ParseFor is Parse for another service, whose clients need no header for the digest of the body.
func ParseFor(r *http.Request, service string, body []byte) (Auth, error) {
	a, err := parse(r, service)
	if err != nil {
		return Auth{}, err
	}
	sum := sha256.Sum256(body)
	is := hex.EncodeToString(sum[:])
	if a.Payload != "" && a.Payload != is {
		return Auth{}, errs.Coded(errs.Denied, CodeSignature, "the body does not match its x-amz-content-sha256")
	}
	a.Payload = is
	return a, a.covers(r)
}

func parse(r *http.Request, service string) (Auth, error) {
	if q := r.URL.Query(); q.Has("X-Amz-Signature") || q.Has("X-Amz-Algorithm") || q.Has("Signature") {
		return Auth{}, errs.Coded(errs.Denied, CodeDenied, "signed URLs are not accepted: want an Authorization header")
	}
	text, err := one(r.Header, "Authorization")
	switch {
	case err != nil:
		return Auth{}, err
	case text == "":
		return Auth{}, errs.Coded(errs.Unauthenticated, CodeDenied, "no Authorization header")
	case len(text) > maxAuthorization:
		return Auth{}, malformed("%d bytes, want at most %d", len(text), maxAuthorization)
	}
	rest, ok := strings.CutPrefix(text, algorithm+" ")
	if !ok {
		return Auth{}, malformed("want algorithm %s", algorithm)
	}
	fields := map[string]string{}
	for f := range strings.SplitSeq(rest, ",") {
		k, v, ok := strings.Cut(strings.TrimSpace(f), "=")
		if _, twice := fields[k]; !ok || twice {
			return Auth{}, malformed("want Credential=, SignedHeaders=, Signature=, each once")
		}
		fields[k] = v
	}
	scope := strings.Split(fields["Credential"], "/")
	if len(scope) != 5 || scope[3] != service || scope[4] != "aws4_request" || !accessKey.MatchString(scope[0]) || !region.MatchString(scope[2]) {
		return Auth{}, malformed("want Credential=KEY/DATE/REGION/%s/aws4_request", service)
	}
	a := Auth{AccessKeyID: scope[0], service: service, date: scope[1], Region: scope[2], signature: fields["Signature"], signed: strings.Split(fields["SignedHeaders"], ";")}
	if !hexDigest.MatchString(a.signature) {
		return Auth{}, malformed("want a signature of 64 hex digits")
	}
	at, err := one(r.Header, dateHeader)
	if err != nil {
		return Auth{}, err
	}
	if a.Time, err = time.Parse(timeFormat, at); err != nil {
		return Auth{}, errs.Coded(errs.Denied, CodeDenied, "header X-Amz-Date: want a time such as 20060102T150405Z")
	}
	if a.Time.Format("20060102") != a.date {
		return Auth{}, malformed("want the date of X-Amz-Date")
	}
	if a.Token, err = one(r.Header, tokenHeader); err != nil {
		return Auth{}, err
	}
	if a.Token == "" {
		return Auth{}, errs.Coded(errs.Unauthenticated, CodeDenied, "no X-Amz-Security-Token header: want temporary credentials")
	}
	a.Payload, err = one(r.Header, hashHeader)
	return a, err
}

// covers refuses signatures that leave out what must be signed, or name what is not there.
func (a Auth) covers(r *http.Request) error {
	if !slices.IsSorted(a.signed) || len(slices.Compact(slices.Clone(a.signed))) != len(a.signed) {
		return malformed("signed headers are not sorted, or one is given twice")
	}
	for _, h := range a.signed {
		if !header.MatchString(h) {
			return malformed("want names of signed headers in lower case")
		}
		if _, ok := r.Header[http.CanonicalHeaderKey(h)]; !ok && h != "host" && h != "content-length" && (h != transferEncoding || r.TransferEncoding == nil) {
			return errs.Coded(errs.Denied, CodeDenied, "signed header %s is missing", h)
		}
	}
	need := []string{"host", "x-amz-date", "x-amz-security-token"}
	for h := range r.Header {
		if h = strings.ToLower(h); strings.HasPrefix(h, "x-amz-") || h == "content-md5" {
			need = append(need, h)
		}
	}
	for _, h := range need {
		if !slices.Contains(a.signed, h) {
			return errs.Coded(errs.Denied, CodeDenied, "there were headers present in the request which were not signed: %s", h)
		}
	}
	return nil
}

// Verify says whether the request was signed with secret, lately by the clock now.
func (a Auth) Verify(ctx context.Context, r *http.Request, secret string, now time.Time) error {
	if d := now.Sub(a.Time); d > MaxSkew || d < -MaxSkew {
		return errs.Coded(errs.Denied, CodeSkewed, "the request was signed at %s and the time here is %s: want at most %s between them",
			a.Time.Format(time.RFC3339), now.UTC().Format(time.RFC3339), MaxSkew)
	}
	key, err := Path(r)
	if err != nil {
		return err
	}
	again := &http.Request{Method: r.Method, Host: r.Host, Header: http.Header{},
		URL: &url.URL{Host: r.Host, Opaque: "//" + "host" + escape(key), RawQuery: r.URL.RawQuery}}
	for _, h := range a.signed {
		switch h {
		case "host", "x-amz-date", "x-amz-security-token": // the signer sets them
		case "content-length":
			again.ContentLength = r.ContentLength
		case transferEncoding: // signed by boto3 1.36 only; the signer leaves it out under its canonical name
			again.Header[h] = r.TransferEncoding
		default:
			k := http.CanonicalHeaderKey(h)
			again.Header[k] = slices.Clone(r.Header[k])
		}
	}
	err = v4.NewSigner().SignHTTP(ctx, aws.Credentials{AccessKeyID: a.AccessKeyID, SecretAccessKey: secret, SessionToken: a.Token}, again,
		a.Payload, a.service, a.Region, a.Time, func(o *v4.SignerOptions) { o.DisableURIPathEscaping = a.service == "s3" })
	if err != nil {
		return err
	}
	want := again.Header.Get("Authorization")
	got := algorithm + " Credential=" + a.AccessKeyID + "/" + a.scope() + ", SignedHeaders=" + strings.Join(a.signed, ";") + ", Signature=" + a.signature
	if subtle.ConstantTimeCompare([]byte(want), []byte(got)) != 1 {
		return errs.Coded(errs.Denied, CodeSignature, "the request signature we calculated does not match the signature you provided")
	}
	return nil
}

func (a Auth) scope() string { return a.date + "/" + a.Region + "/" + a.service + "/aws4_request" }

// Path returns the path of a request as its client meant it: percent signs undone once, and nothing else changed.
func Path(r *http.Request) (string, error) {
	raw, _, _ := strings.Cut(r.RequestURI, "?")
	if !strings.HasPrefix(raw, "/") { // a proxy's absolute form, which no S3 client sends to S3
		return "", errs.Coded(errs.Invalid, CodeBadURI, "want a path that starts with /")
	}
	path, err := url.PathUnescape(raw)
	if err != nil {
		return "", errs.Coded(errs.Invalid, CodeBadURI, "the path is malformed: want valid percent-encoding")
	}
	return path, nil
}

// escape is S3's canonical form of a path.
func escape(path string) string {
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~/", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteString(strings.ToUpper(hex.EncodeToString([]byte{c})))
	}
	return b.String()
}

// length reads a header that counts bytes.
func length(h http.Header, key string) (int64, error) {
	v, err := one(h, key)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(v, 10, 62)
	if err != nil {
		return 0, errs.Coded(errs.Invalid, CodeNoLength, "header %s: want a number of bytes", key)
	}
	return int64(n), nil
}
