package main

import (
	"encoding/binary"
	"fmt"
	"io"
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

// expect reads one packet and checks that it is of this type and that none of its answers, from byte at on, is a refusal.
func expect(r io.Reader, want byte, at int) error {
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
