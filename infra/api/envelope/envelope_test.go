package envelope

import (
	"bytes"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestRoundTrip(t *testing.T) {
	for name, body := range map[string][]byte{
		"empty": {}, "small": []byte("{}\n{}"), "large": bytes.Repeat([]byte("kennel "), 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			msg, err := EncodeRequest(Request{ID: "7", TTL: Millis(8 * time.Second)}, body)
			if err != nil {
				t.Fatal(err)
			}
			h, got, err := DecodeRequest(msg)
			if err != nil || !bytes.Equal(got, body) || h.ID != "7" || h.TTL != Millis(8*time.Second) {
				t.Errorf("got %+v, %d bytes, %v", h, len(got), err)
			}
			if len(body) > CompressAbove && h.Enc != "zstd" {
				t.Errorf("Enc = %q above %d bytes", h.Enc, CompressAbove)
			}
		})
	}
}

func TestTooLargeIsSaid(t *testing.T) {
	body := make([]byte, MaxWire)
	_, _ = rand.Read(body)
	if _, err := EncodeRequest(Request{ID: "1"}, body); !errors.Is(err, ErrTooLarge) {
		t.Errorf("err = %v, want ErrTooLarge", err)
	}
}

// TestBomb: a few bytes must not become more than MaxBody.
func TestBomb(t *testing.T) {
	z := encoder().EncodeAll(make([]byte, 64<<20), nil)
	msg := append([]byte(`{"v":1,"id":"1","enc":"zstd"}`+"\n"), z...)
	if _, _, err := DecodeRequest(msg); err == nil {
		t.Error("a body of 64 MiB was accepted")
	}
}

func TestBadHeaders(t *testing.T) {
	for in, want := range map[string]string{
		"":                                      "no header",
		"{}":                                    "no header",
		"{\n":                                   "header:",
		`{"v":2,"id":"1"}` + "\n":               "version 2",
		`{"v":1}` + "\n":                        "request id",
		`{"v":1,"id":"a/b"}` + "\n":             "request id",
		`{"v":1,"id":"1","enc":"br"}` + "\n":    "encoding",
		`{"v":1,"id":"1","enc":"zstd"}` + "\nx": "zstd",
		`{"v":1,"id":"1","ttl_ms":-1}` + "\n":   "want 0 to one day",
		strings.Repeat("x", MaxHeader+1) + "\n": "at most",
	} {
		if _, _, err := DecodeRequest([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: err = %v, want one with %q", in, err, want)
		}
	}
}

func FuzzDecodeRequest(f *testing.F) {
	ok, _ := EncodeRequest(Request{ID: "1"}, []byte("{}"))
	f.Add(ok)
	big, _ := EncodeRequest(Request{ID: "1"}, bytes.Repeat([]byte("ab"), 8000))
	f.Add(big)
	f.Add([]byte(`{"v":1,"id":"1","ttl_ms":5,"tp":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}` + "\n{}"))
	f.Fuzz(func(t *testing.T, msg []byte) {
		h, body, err := DecodeRequest(msg)
		if err != nil {
			return
		}
		h.Enc = ""
		again, err := EncodeRequest(h, body)
		if errors.Is(err, ErrTooLarge) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		h2, body2, err := DecodeRequest(again)
		h2.Enc = ""
		if err != nil || h2 != h || !bytes.Equal(body, body2) {
			t.Fatalf("%+v -> %+v, %v", h, h2, err)
		}
	})
}
