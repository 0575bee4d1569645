package sigv4

import (
	"bufio"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"net/http"
	"strconv"
	"strings"

	"kennel/infra/errs"
)

// Forms of a body, in place of its digest.
const (
	Unsigned        = "UNSIGNED-PAYLOAD"                           // as it is; only within TLS
	UnsignedTrailer = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"         // in chunks, then headers; only within TLS
	Signed          = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"         // in chunks, each signed
	SignedTrailer   = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER" // likewise, then signed headers
)

// Bounds of the frames of a chunked body. Chunks but the last have at least minChunk bytes, as at S3: each costs a signature.
const (
	maxLine     = 1024
	maxTrailers = 8
	minChunk    = 8 << 10
)

var emptyHash = hex.EncodeToString(sha256.New().Sum(nil))

// Body reads the content of a request and checks all that the client says of it. Its last bytes come only after every check: a reader that was
// told Size has no whole body before. Not safe for concurrent use.
type Body struct {
	Size   int64 // bytes of content, as announced
	MD5    []byte
	SHA256 []byte // digests that the client announced, not yet proved; nil if it did not

	src    source
	left   int64
	sums   []sum
	hashes []hash.Hash
	err    error
}

// source is the content in its frames. end reads what comes after it and returns the trailers.
type source interface {
	io.Reader
	end() (http.Header, error)
}

// sum is a digest that the client announced in a header, or announced to send in a trailer.
type sum struct {
	name    string // of the header
	code    string // of the error
	hash    hash.Hash
	want    []byte
	trailer bool
}

var castagnoli, nvme = crc32.MakeTable(crc32.Castagnoli), crc64.MakeTable(0x9a6c9329ac4bc9b5) // "CRC64NVME", bits reversed

const checksumPrefix = "X-Amz-Checksum-"

func newHash(name string) hash.Hash {
	switch name {
	case "X-Amz-Checksum-Crc32":
		return crc32.NewIEEE()
	case "X-Amz-Checksum-Crc32c":
		return crc32.New(castagnoli)
	case "X-Amz-Checksum-Crc64nvme":
		return crc64.New(nvme)
	case "X-Amz-Checksum-Sha1":
		return sha1.New()
	case "X-Amz-Checksum-Sha256":
		return sha256.New()
	}
	return nil
}

// Body returns the content of a request that Verify found good with secret. secure says that it came within TLS, which must then prove
// what the signature does not.
func (a Auth) Body(r *http.Request, secret string, secure bool) (*Body, error) {
	b := &Body{}
	chunked := false
	switch a.Payload {
	case Unsigned, UnsignedTrailer:
		if !secure {
			return nil, errs.Coded(errs.Invalid, CodeBadRequest, "want a signed body: an unsigned one is accepted only over TLS")
		}
		chunked = a.Payload == UnsignedTrailer
	case Signed, SignedTrailer:
		chunked = true
	default:
		if !hexDigest.MatchString(a.Payload) {
			return nil, errs.Coded(errs.Invalid, CodeUnsupported, "x-amz-content-sha256: want 64 hex digits, %s, %s, %s or %s", Unsigned, UnsignedTrailer, Signed, SignedTrailer)
		}
		b.SHA256, _ = hex.DecodeString(a.Payload) // matched
		b.sums = append(b.sums, sum{name: hashHeader, code: CodeSHA256, hash: sha256.New(), want: b.SHA256})
	}
	b.Size = r.ContentLength
	switch {
	case !chunked && b.Size < 0:
		return nil, errs.Coded(errs.Invalid, CodeNoLength, "want a Content-Length header")
	case chunked: // boto3 1.36 and later sends such a body with Transfer-Encoding: chunked, so without Content-Length
		var err error
		if b.Size, err = length(r.Header, "X-Amz-Decoded-Content-Length"); err != nil {
			return nil, err
		}
	}
	if err := b.announced(r); err != nil {
		return nil, err
	}
	trailer := ""
	if a.Payload == UnsignedTrailer || a.Payload == SignedTrailer {
		var err error
		if trailer, err = b.announcedTrailer(r); err != nil {
			return nil, err
		}
	}
	for _, s := range b.sums {
		b.hashes = append(b.hashes, s.hash)
	}
	b.left = b.Size
	if !chunked {
		b.src = plain{r.Body}
		return b, nil
	}
	c := &chunks{r: bufio.NewReaderSize(r.Body, maxLine), left: b.Size, trailer: trailer}
	if a.Payload == Signed || a.Payload == SignedTrailer {
		c.sign, c.hash, c.last = a.chunkSigner(secret), sha256.New(), a.signature
	}
	b.src = c
	return b, nil
}

// announced finds the digests among the headers.
func (b *Body) announced(r *http.Request) error {
	if text, err := one(r.Header, "Content-Md5"); err != nil {
		return err
	} else if text != "" {
		want, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(want) != md5.Size {
			return errs.Coded(errs.Invalid, CodeBadMD5, "Content-MD5: want base64 of %d bytes", md5.Size)
		}
		b.MD5 = want
		b.sums = append(b.sums, sum{name: "Content-Md5", code: CodeDigest, hash: md5.New(), want: want})
	}
	for name := range r.Header {
		if !strings.HasPrefix(name, checksumPrefix) || name == "X-Amz-Checksum-Algorithm" || name == "X-Amz-Checksum-Type" {
			continue
		}
		text, err := one(r.Header, name)
		if err != nil {
			return err
		}
		if err := b.add(name, text, false); err != nil {
			return err
		}
	}
	return nil
}

func (b *Body) announcedTrailer(r *http.Request) (string, error) {
	name, err := one(r.Header, "X-Amz-Trailer")
	if err != nil {
		return "", err
	}
	name = http.CanonicalHeaderKey(name)
	return name, b.add(name, "", true)
}

func (b *Body) add(name, text string, trailer bool) error {
	h := newHash(name)
	if h == nil {
		return errs.Coded(errs.Invalid, CodeBadRequest, "checksum %.64q: want x-amz-checksum- and crc32, crc32c, crc64nvme, sha1 or sha256", name)
	}
	s := sum{name: name, code: CodeDigest, hash: h, trailer: trailer}
	if !trailer {
		var err error
		if s.want, err = base64.StdEncoding.DecodeString(text); err != nil || len(s.want) != h.Size() {
			return errs.Coded(errs.Invalid, CodeBadRequest, "header %s: want base64 of %d bytes", name, h.Size())
		}
	}
	b.sums = append(b.sums, s)
	return nil
}

// Read implements io.Reader. Its errors have codes; those of the connection come as they are.
func (b *Body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	n := 0
	var err error
	if b.left > 0 {
		n, err = b.src.Read(p[:min(int64(len(p)), b.left)])
		for _, h := range b.hashes {
			h.Write(p[:n]) // a hash never fails
		}
		b.left -= int64(n)
		if err != nil && (b.left > 0 || !errors.Is(err, io.EOF)) {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = errs.Coded(errs.Invalid, CodeIncomplete, "the body ends %d bytes early", b.left)
			}
			b.err = err
			return 0, err
		}
	}
	if b.left > 0 {
		return n, nil
	}
	if err := b.finish(); err != nil {
		b.err = err
		return 0, err // the last bytes stay here
	}
	b.err = io.EOF
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// finish checks what can be known only at the end.
func (b *Body) finish() error {
	trailers, err := b.src.end()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errs.Coded(errs.Invalid, CodeIncomplete, "the body ends before the last chunk")
	}
	if err != nil {
		return err
	}
	for _, s := range b.sums {
		if s.trailer {
			text := trailers.Get(s.name)
			if s.want, err = base64.StdEncoding.DecodeString(text); err != nil || len(s.want) != s.hash.Size() {
				return errs.Coded(errs.Invalid, "MalformedTrailerError", "trailer %s: want base64 of %d bytes", s.name, s.hash.Size())
			}
		}
		if subtle.ConstantTimeCompare(s.hash.Sum(nil), s.want) != 1 {
			return errs.Coded(errs.Invalid, s.code, "the body does not match its %s", strings.ToLower(s.name))
		}
	}
	return nil
}

// plain is a body without frames; the HTTP server ends it at Content-Length.
type plain struct{ io.Reader }

func (p plain) end() (http.Header, error) {
	n, err := io.ReadFull(p.Reader, make([]byte, 1))
	if n > 0 {
		return nil, errs.Coded(errs.Invalid, CodeBadRequest, "the body is longer than its length")
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return nil, err
}

// chunks undoes the frames of "aws-chunked":
//
//	SIZE in hex [;chunk-signature=SIG] CRLF bytes CRLF ... 0 [;chunk-signature=SIG] CRLF [name:value CRLF ...] CRLF
type chunks struct {
	r       *bufio.Reader
	left    int64 // bytes of content that are announced and not yet in a chunk
	chunk   int64 // bytes of this chunk not yet read
	begun   bool
	small   bool   // this chunk must be the last
	trailer string // the one name allowed; "": no trailers

	sign func(alg, last, tail string) string // nil: nothing is signed
	hash hash.Hash                           // of this chunk
	last string                              // signature before this chunk's
	sig  string                              // what this chunk says its signature is
}

func broken(format string, args ...any) error {
	return errs.Coded(errs.Invalid, CodeIncomplete, "chunked body: "+format, args...)
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.chunk == 0 {
		size, err := c.next()
		if err != nil {
			return 0, err
		}
		if size == 0 {
			return 0, broken("the body ends %d bytes early", c.left)
		}
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.chunk)])
	c.chunk -= int64(n)
	if c.hash != nil {
		c.hash.Write(p[:n]) // a hash never fails
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// next ends a chunk and reads the head of the one that follows.
func (c *chunks) next() (int64, error) {
	if c.begun {
		if crlf, err := c.line(); err != nil {
			return 0, err
		} else if crlf != "" {
			return 0, broken("want CRLF after a chunk")
		}
		if err := c.signed(); err != nil {
			return 0, err
		}
	}
	head, err := c.line()
	if err != nil {
		return 0, err
	}
	digits, ext, has := strings.Cut(head, ";")
	if len(digits) == 0 || len(digits) > 16 || strings.Trim(digits, "0123456789abcdefABCDEF") != "" {
		return 0, broken("want a size in hex before a chunk")
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	if err != nil || n > uint64(c.left) {
		return 0, broken("a chunk is larger than the rest of x-amz-decoded-content-length")
	}
	if n > 0 && c.small {
		return 0, errs.Coded(errs.Invalid, "InvalidChunkSizeError", "chunked body: a chunk of less than %d bytes must be the last", minChunk)
	}
	if c.sign != nil {
		if c.sig, has = strings.CutPrefix(ext, "chunk-signature="); !has || !hexDigest.MatchString(c.sig) {
			return 0, broken("want ;chunk-signature= and 64 hex digits after a chunk's size")
		}
	} else if has {
		return 0, broken("want nothing after a chunk's size")
	}
	c.begun, c.small, c.chunk = true, n < minChunk, int64(n)
	c.left -= int64(n)
	return int64(n), nil
}

// signed checks the signature of the chunk that was read.
func (c *chunks) signed() error {
	if c.sign == nil {
		return nil
	}
	want := c.sign("AWS4-HMAC-SHA256-PAYLOAD", c.last, emptyHash+"\n"+hex.EncodeToString(c.hash.Sum(nil)))
	c.hash.Reset()
	if subtle.ConstantTimeCompare([]byte(want), []byte(c.sig)) != 1 {
		return errs.Coded(errs.Denied, CodeSignature, "the signature of a chunk does not match")
	}
	c.last = want
	return nil
}

func (c *chunks) end() (http.Header, error) {
	if c.chunk > 0 {
		return nil, broken("a chunk is longer than the rest of x-amz-decoded-content-length")
	}
	if n, err := c.next(); err != nil {
		return nil, err
	} else if n != 0 {
		return nil, broken("want a last chunk of size 0")
	}
	if err := c.signed(); err != nil {
		return nil, err
	}
	h, err := c.trailers()
	if err != nil {
		return nil, err
	}
	if _, err := c.r.ReadByte(); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, err
		}
		return nil, broken("data after its end")
	}
	return h, nil
}

const trailerSignature = "X-Amz-Trailer-Signature"

func (c *chunks) trailers() (http.Header, error) {
	h := http.Header{}
	for range maxTrailers {
		line, err := c.line()
		if err != nil {
			return nil, err
		}
		if line == "" {
			return h, c.trailersSigned(h)
		}
		name, value, ok := strings.Cut(line, ":")
		name = http.CanonicalHeaderKey(name)
		if _, twice := h[name]; !ok || twice || c.trailer == "" || name != c.trailer && (c.sign == nil || name != trailerSignature) {
			return nil, errs.Coded(errs.Invalid, "MalformedTrailerError", "chunked body: a trailer is not announced in x-amz-trailer, or is given twice")
		}
		h.Set(name, strings.TrimSpace(value))
	}
	return nil, broken("more than %d trailers", maxTrailers)
}

func (c *chunks) trailersSigned(h http.Header) error {
	if c.sign == nil || c.trailer == "" {
		return nil
	}
	text := strings.ToLower(c.trailer) + ":" + h.Get(c.trailer) + "\n"
	sum := sha256.Sum256([]byte(text))
	want := c.sign("AWS4-HMAC-SHA256-TRAILER", c.last, hex.EncodeToString(sum[:]))
	if subtle.ConstantTimeCompare([]byte(want), []byte(h.Get(trailerSignature))) != 1 {
		return errs.Coded(errs.Denied, CodeSignature, "the signature of the trailers does not match")
	}
	return nil
}

// line reads up to CRLF; a line that is longer than maxLine is an error before more of it is read.
func (c *chunks) line() (string, error) {
	b, err := c.r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", broken("a line of more than %d bytes", maxLine)
	case errors.Is(err, io.EOF):
		return "", io.ErrUnexpectedEOF
	case err != nil:
		return "", err
	case len(b) < 2 || b[len(b)-2] != '\r':
		return "", broken("a line does not end with CRLF")
	}
	return string(b[:len(b)-2]), nil
}

// chunkSigner returns how the chunks of a request are signed.
func (a Auth) chunkSigner(secret string) func(alg, last, tail string) string {
	key := []byte("AWS4" + secret)
	for _, s := range []string{a.date, a.Region, "s3", "aws4_request"} {
		key = mac(key, s)
	}
	at := a.Time.Format(timeFormat)
	return func(alg, last, tail string) string {
		return hex.EncodeToString(mac(key, fmt.Sprintf("%s\n%s\n%s\n%s\n%s", alg, at, a.scope(), last, tail)))
	}
}

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text)) // a hash never fails
	return m.Sum(nil)
}
