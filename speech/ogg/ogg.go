// Package ogg turns a stream of Opus in Ogg (RFC 3533, RFC 7845), as original robots send it, into samples at 16 kHz. It takes pieces cut anywhere
// and hands out each packet as soon as it is whole.
//
// The checksums of pages are not compared: TLS has carried the bytes, and a robot's own mistake there would cost it its voice.
package ogg

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/pion/opus"

	"kennel/infra/errs"
)

// Rate is the rate of the samples, one channel.
const Rate = 16000

// Bounds. One packet holds at most 120 ms, in any number of frames of at most 1275 bytes.
const (
	headerLen  = 27   // of a page, before its table of segments
	maxPacket  = 8192 // bytes; 120 ms at the 66 kbit/s of a robot are 1,000
	maxTags    = 65536
	maxSamples = Rate * 120 / 1000
	codedRate  = 48000 // in which pre-skip is told
)

// Decoder decodes one stream. It is not safe for concurrent use; the zero value is not ready.
type Decoder struct {
	in     []byte // fed and not yet taken
	at     int    // bytes of the stream before in
	table  []byte // of the page's segments, those to come
	tables [255]byte
	packet []byte
	serial uint32
	pages  int
	heads  int // of the two packets in front of the audio, how many were read
	drop   bool
	skip   int // samples at the start that are not sound
	opus   opus.Decoder
	pcm    [maxSamples]int16
}

// NewDecoder returns a decoder for one stream.
func NewDecoder() *Decoder { return &Decoder{} }

// Feed adds a piece of the stream. Call Next until it has nothing more before the next Feed, so that no more than a piece waits.
func (d *Decoder) Feed(b []byte) { d.in = append(d.in, b...) }

// Next returns the samples of the next packet, valid until the next call, or none if it needs to be fed. After an error the stream is lost.
func (d *Decoder) Next() ([]int16, error) {
	for {
		packet, err := d.next()
		if packet == nil || err != nil {
			return nil, err
		}
		if d.heads < 2 {
			if err := d.head(packet); err != nil {
				return nil, err
			}
			continue
		}
		n, err := d.decode(packet)
		if err != nil {
			return nil, errs.New(errs.Invalid, "Opus packet of %d bytes before byte %d of the audio: %w", len(packet), d.at, err)
		}
		cut := min(d.skip, n)
		d.skip -= cut
		if n > cut {
			return d.pcm[cut:n], nil
		}
	}
}

// decode turns a failure inside of the decoder into an error: nothing that a robot sends may end the process.
func (d *Decoder) decode(packet []byte) (n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			n, err = 0, fmt.Errorf("decoder: %v", p)
		}
	}()
	return d.opus.DecodeToInt16(packet, d.pcm[:])
}

// head reads a packet in front of the audio: first OpusHead, then OpusTags, whose contents do not matter.
func (d *Decoder) head(p []byte) error {
	if d.heads++; d.heads == 2 {
		if !bytes.HasPrefix(p, []byte("OpusTags")) {
			return errs.New(errs.Invalid, "second packet of the audio starts with %.16q: want OpusTags", p)
		}
		return nil
	}
	if len(p) < 19 || !bytes.HasPrefix(p, []byte("OpusHead")) {
		return errs.New(errs.Invalid, "first packet of the audio has %d bytes and starts with %.16q: want 19 or more, and OpusHead", len(p), p)
	}
	if version, channels, family := p[8], p[9], p[18]; version>>4 != 0 || channels < 1 || channels > 2 || family != 0 {
		return errs.New(errs.Invalid, "Opus of version %d, %d channels, mapping %d: want version 0 to 15, 1 or 2 channels, mapping 0", version, channels, family)
	}
	d.skip = int(binary.LittleEndian.Uint16(p[10:])) * Rate / codedRate
	var err error
	d.opus, err = opus.NewDecoderWithOutput(Rate, 1)
	return err
}

// next returns the next whole packet, nil if it is not there yet.
func (d *Decoder) next() ([]byte, error) {
	if d.drop {
		d.packet, d.drop = d.packet[:0], false
	}
	for {
		for len(d.table) > 0 {
			n := int(d.table[0])
			if len(d.in) < n {
				return nil, nil
			}
			limit := maxPacket
			if d.heads < 2 {
				limit = maxTags
			}
			if len(d.packet)+n > limit {
				return nil, errs.New(errs.Invalid, "packet of more than %d bytes at byte %d of the audio", limit, d.at)
			}
			d.packet = append(d.packet, d.in[:n]...)
			d.take(n)
			d.table = d.table[1:]
			if n < 255 { // the last segment of a packet is shorter, if need be empty
				d.drop = true
				if len(d.packet) > 0 {
					return d.packet, nil
				}
			}
		}
		if ok, err := d.page(); !ok || err != nil {
			return nil, err
		}
	}
}

// page reads the header of a page, if all of it is there.
func (d *Decoder) page() (bool, error) {
	const magic = "OggS"
	if n := min(len(d.in), len(magic)); string(d.in[:n]) != magic[:n] {
		return false, errs.New(errs.Invalid, "byte %d of the audio: %.16q, want the start of an Ogg page (OggS)", d.at, d.in)
	}
	if len(d.in) < headerLen || len(d.in) < headerLen+int(d.in[26]) {
		return false, nil
	}
	if d.in[4] != 0 {
		return false, errs.New(errs.Invalid, "Ogg page at byte %d of the audio: version %d, want 0", d.at, d.in[4])
	}
	serial := binary.LittleEndian.Uint32(d.in[14:])
	if d.pages == 0 {
		d.serial = serial
	}
	if serial != d.serial {
		return false, errs.New(errs.Invalid, "Ogg page at byte %d of the audio: stream %d, want %d", d.at, serial, d.serial)
	}
	if continues := d.in[5]&1 != 0; !continues {
		d.packet = d.packet[:0] // what was not ended never will be
	}
	d.pages++
	n := copy(d.tables[:], d.in[headerLen:headerLen+int(d.in[26])])
	d.table = d.tables[:n]
	d.take(headerLen + n)
	return true, nil
}

func (d *Decoder) take(n int) {
	d.at += n
	if d.in = d.in[n:]; len(d.in) == 0 {
		d.in = nil
	}
}
