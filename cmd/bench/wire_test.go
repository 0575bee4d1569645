package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestPackets: MQTT 3.1.1 sections 3.1, 3.2, 3.8, 3.9.
func TestPackets(t *testing.T) {
	for name, tc := range map[string]struct {
		got  []byte
		want string
	}{
		"CONNECT":   {appendConnect(nil, "vic:1", 60), "10 11 0004 4d515454 04 02 003c 0005 7669633a31"},
		"SUBSCRIBE": {appendSubscribe(nil, "a/b", "c"), "82 0c 0001 0003 612f62 01 0001 63 01"},
		"long":      {appendPacket(nil, 0x30, make([]byte, 321))[:3], "30 c1 02"},
	} {
		if want := strings.ReplaceAll(tc.want, " ", ""); hex.EncodeToString(tc.got) != want {
			t.Errorf("%s: %x, want %s", name, tc.got, want)
		}
	}
	for name, tc := range map[string]struct {
		in   string
		want byte
		at   int
		ok   bool
	}{
		"CONNACK":               {"20020000", packetConnack, 1, true},
		"not authorised":        {"20020005", packetConnack, 1, false},
		"SUBACK":                {"900400010001", packetSuback, 2, true},
		"refused":               {"900400010080", packetSuback, 2, false},
		"another":               {"d000", packetConnack, 1, false},
		"no code":               {"90020001", packetSuback, 2, false},
		"too long":              {"20ffff7f", packetConnack, 1, false},
		"endless length":        {"20ffffffffffffffffffffffff", packetConnack, 1, false},
		"ends inside":           {"200200", packetConnack, 1, false},
		"ends inside of length": {"2080", packetConnack, 1, false},
	} {
		b, err := hex.DecodeString(tc.in)
		if err != nil {
			t.Fatal(err)
		}
		if err := expect(bytes.NewReader(b), tc.want, tc.at); (err == nil) != tc.ok {
			t.Errorf("%s: %v, want ok %v", name, err, tc.ok)
		}
	}
}

func FuzzReadPacket(f *testing.F) {
	f.Add(appendConnect(nil, "vic:1", 60))
	f.Add([]byte{0x20, 2, 0, 0})
	f.Add([]byte{0x20, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		head, body, err := readPacket(bytes.NewReader(b))
		if err != nil {
			return
		}
		head2, body2, err := readPacket(bytes.NewReader(appendPacket(nil, head, body)))
		if err != nil || head2 != head || !bytes.Equal(body, body2) {
			t.Fatalf("%x: %#x %x, then %#x %x, %v", b, head, body, head2, body2, err)
		}
	})
}

func TestReadPacketAtTheEnd(t *testing.T) {
	if _, _, err := readPacket(strings.NewReader("")); !errors.Is(err, io.EOF) {
		t.Errorf("%v, want EOF", err)
	}
}
