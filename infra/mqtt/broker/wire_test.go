package broker_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// The few packets of MQTT 3.1.1 that a robot's login takes. The real client (infra/mqtt) would put its own cost into a number that is
// about the broker.
const (
	packetConnack = 0x20
	packetSuback  = 0x90
	maxAnswer     = 1024 // bytes of a packet we accept
)

// appendConnect appends a CONNECT with a clean session and a keep-alive in seconds.
func appendConnect(dst []byte, clientID string, keepAlive uint16) []byte {
	body := append([]byte{0, 4}, "MQTT\x04\x02"...) // level 4, clean session
	body = binary.BigEndian.AppendUint16(body, keepAlive)
	return appendPacket(dst, 0x10, appendText(body, clientID))
}

// appendSubscribe appends a SUBSCRIBE, packet id 1, for filters at QoS 1.
func appendSubscribe(dst []byte, filters ...string) []byte {
	body := []byte{0, 1}
	for _, f := range filters {
		body = append(appendText(body, f), 1)
	}
	return appendPacket(dst, 0x82, body)
}

func appendText(dst []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(dst, uint16(len(s))), s...)
}

func appendPacket(dst []byte, head byte, body []byte) []byte {
	// A remaining length is written in groups of seven bits, lowest first: that is a varint.
	return append(binary.AppendUvarint(append(dst, head), uint64(len(body))), body...)
}

// readPacket reads one packet of at most maxAnswer bytes.
func readPacket(r io.Reader) (head byte, body []byte, err error) {
	one := byteReader{r}
	if head, err = one.ReadByte(); err != nil {
		return 0, nil, err
	}
	size, err := binary.ReadUvarint(one)
	if err != nil {
		return 0, nil, fmt.Errorf("length of packet %#x: %w", head, err)
	}
	if size > maxAnswer {
		return 0, nil, fmt.Errorf("packet %#x of %d bytes: want at most %d", head, size, maxAnswer)
	}
	body = make([]byte, size)
	if _, err = io.ReadFull(r, body); err != nil {
		return 0, nil, fmt.Errorf("packet %#x of %d bytes: %w", head, size, err)
	}
	return head, body, nil
}

// expectPacket reads one packet and checks that it is of this type and that none of its answers, from byte at on, is a refusal.
func expectPacket(r io.Reader, want byte, at int) error {
	head, body, err := readPacket(r)
	if err != nil {
		return err
	}
	if head != want || len(body) <= at {
		return fmt.Errorf("packet %#x of %d bytes: want %#x of more than %d", head, len(body), want, at)
	}
	for _, code := range body[at:] {
		if code != 0 && (want == packetConnack || code >= 0x80) {
			return fmt.Errorf("packet %#x refuses with code %d", head, code)
		}
	}
	return nil
}

// byteReader reads one byte at a time: what follows belongs to the next reader.
type byteReader struct{ io.Reader }

func (b byteReader) ReadByte() (byte, error) {
	var one [1]byte
	_, err := io.ReadFull(b.Reader, one[:])
	return one[0], err
}

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
		if err := expectPacket(bytes.NewReader(b), tc.want, tc.at); (err == nil) != tc.ok {
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
