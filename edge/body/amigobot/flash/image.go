package flash

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// ImageSize is the length of an image in bytes.
const ImageSize = len(magic) + 4*MaxText + 11 + 22*2 + 4

const magic = "AFP1"

// ErrImage is the error of ParseImage for bytes that are not a sound image, such as erased FLASH.
var ErrImage = errors.New("not an image of parameters")

// AppendImage appends v as ImageSize bytes; package doc draws them.
func AppendImage(dst []byte, v *Values) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	for k := range Count {
		switch table[k].Kind {
		case Text:
			var field [MaxText]byte
			copy(field[:], v.text[k])
			dst = append(dst, field[:]...)
		case Byte:
			dst = append(dst, byte(v.num[k]))
		case Int:
			dst = binary.LittleEndian.AppendUint16(dst, v.num[k])
		}
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[start:]))
}

// ParseImage returns the values in an image. It refuses a bad length, magic or checksum with ErrImage, and values that Set refuses.
func ParseImage(b []byte) (Values, error) {
	end := ImageSize - 4
	if len(b) != ImageSize || string(b[:len(magic)]) != magic || crc32.ChecksumIEEE(b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return Values{}, ErrImage
	}
	var v Values
	b = b[len(magic):]
	for k := range Count {
		var text string
		switch table[k].Kind {
		case Text:
			text, b = strings.TrimRight(string(b[:MaxText]), "\x00"), b[MaxText:]
		case Byte:
			text, b = strconv.Itoa(int(b[0])), b[1:]
		case Int:
			text, b = strconv.Itoa(int(binary.LittleEndian.Uint16(b))), b[2:]
		}
		if err := v.put(k, text); err != nil {
			return Values{}, fmt.Errorf("image of parameters: %w", err)
		}
	}
	return v, nil
}
