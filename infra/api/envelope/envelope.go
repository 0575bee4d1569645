// Package envelope frames every MQTT payload that has both a header and a body: one line of JSON, a newline, then the body's bytes
// as they are. A person can read the head of a captured message, and a body needs no second encoding.
//
//	{"v":1,"id":"0192…","ttl_ms":8000,"enc":"zstd"}\n<body>
//
// A body above CompressAbove is zstd-compressed when that makes it smaller; decoding bounds the size before and after.
package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Limits, in bytes.
const (
	CompressAbove = 4 << 10
	MaxHeader     = 4 << 10
	MaxBody       = 1 << 20  // after decompression
	MaxWire       = 96 << 10 // what still exceeds this goes by HTTPS (design section 4)
)

// ErrTooLarge: the message does not fit the broker's limit even compressed.
var ErrTooLarge = errors.New("larger than the limit of a broker message")

// Request is the header of a request. TTL is relative, because robot clocks lie: how much longer the robot will wait.
type Request struct {
	V   int    `json:"v"`
	ID  string `json:"id"` // unique per robot; a repeated id is the same request again (VEC-FLE-02)
	TTL Millis `json:"ttl_ms"`
	Enc string `json:"enc,omitempty"`
	// TP is the W3C traceparent of the robot's trace (infra/api/traceparent), so that the cloud's part of the work is found under the
	// robot's trace id. Absent in messages of older robots; one that cannot be read is no reason to refuse the request.
	TP string `json:"tp,omitempty"`
}

// Response is the header of an answer. Status is "ok" or an errs kind's name.
type Response struct {
	V          int    `json:"v"`
	ID         string `json:"id"`
	Status     string `json:"status"`
	Code       string `json:"code,omitempty"`
	Error      string `json:"error,omitempty"`
	RetryAfter Millis `json:"retry_after_ms,omitempty"`
	Enc        string `json:"enc,omitempty"`
	// TS is the cloud's clock when the answer was made, in ms since 1970. A robot has no clock that runs without power (VEC-BOOT-14), and
	// compares. An answer that is repeated says when it was made first. Absent in answers of an older cloud.
	TS int64 `json:"ts,omitempty"`
}

// Millis is a duration that is written as whole milliseconds.
type Millis time.Duration

// MarshalJSON writes whole milliseconds.
func (m Millis) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(m).Milliseconds())
}

// UnmarshalJSON reads 0 to 86,400,000 milliseconds.
func (m *Millis) UnmarshalJSON(b []byte) error {
	var n int64
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	if n < 0 || n > 86_400_000 {
		return fmt.Errorf("%d ms: want 0 to one day", n)
	}
	*m = Millis(time.Duration(n) * time.Millisecond)
	return nil
}

// Encode frames header and body. *enc points at the header's Enc field, so that the header says how the body is coded.
func Encode(header any, enc *string, body []byte) ([]byte, error) {
	if len(body) > CompressAbove && *enc == "" {
		if z := encoder().EncodeAll(body, nil); len(z) < len(body) {
			body, *enc = z, "zstd"
		}
	}
	head, err := json.Marshal(header)
	if err != nil {
		return nil, fmt.Errorf("encode header: %w", err)
	}
	if len(head)+1+len(body) > MaxWire {
		return nil, fmt.Errorf("message of %d bytes: %w (%d)", len(head)+1+len(body), ErrTooLarge, MaxWire)
	}
	out := make([]byte, 0, len(head)+1+len(body))
	out = append(out, head...)
	out = append(out, '\n')
	return append(out, body...), nil
}

// EncodeRequest frames a request.
func EncodeRequest(h Request, body []byte) ([]byte, error) { h.V = 1; return Encode(&h, &h.Enc, body) }

// EncodeResponse frames an answer.
func EncodeResponse(h Response, body []byte) ([]byte, error) {
	h.V = 1
	return Encode(&h, &h.Enc, body)
}

// Split parts a message into its header line and the body as sent. The body aliases msg.
func Split(msg []byte, header any) (body []byte, err error) {
	i := bytes.IndexByte(msg, '\n')
	switch {
	case i < 0:
		return nil, errors.New("no header: want one line of JSON, then the body")
	case i > MaxHeader:
		return nil, fmt.Errorf("header of %d bytes: want at most %d", i, MaxHeader)
	}
	if err := json.Unmarshal(msg[:i], header); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return msg[i+1:], nil
}

// DecodeRequest reads a request and its body.
func DecodeRequest(msg []byte) (Request, []byte, error) {
	var h Request
	body, err := Split(msg, &h)
	if err != nil {
		return Request{}, nil, err
	}
	if h.ID == "" || len(h.ID) > 64 || bytes.ContainsAny([]byte(h.ID), "/+#\x00") {
		return Request{}, nil, fmt.Errorf("request id %.80q: want 1 to 64 characters without / + #", h.ID)
	}
	body, err = decode(h.V, h.Enc, body)
	return h, body, err
}

// DecodeResponse reads an answer and its body.
func DecodeResponse(msg []byte) (Response, []byte, error) {
	var h Response
	body, err := Split(msg, &h)
	if err != nil {
		return Response{}, nil, err
	}
	body, err = decode(h.V, h.Enc, body)
	return h, body, err
}

func decode(v int, enc string, body []byte) ([]byte, error) {
	if v != 1 {
		return nil, fmt.Errorf("envelope version %d: want 1", v)
	}
	switch enc {
	case "":
		if len(body) > MaxBody {
			return nil, fmt.Errorf("body of %d bytes: want at most %d", len(body), MaxBody)
		}
		return body, nil
	case "zstd":
		out, err := decoder().DecodeAll(body, nil)
		if err != nil {
			return nil, fmt.Errorf("body: zstd: %w", err)
		}
		return out, nil
	}
	return nil, fmt.Errorf("body encoding %.20q: want none or zstd", enc)
}

var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		panic(err) // constant options
	}
	return e
})

var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxBody), zstd.WithDecoderMaxWindow(1<<20))
	if err != nil {
		panic(err) // constant options
	}
	return d
})
