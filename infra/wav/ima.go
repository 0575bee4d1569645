package wav

import (
	"encoding/binary"
	"fmt"
)

// imaStep is how much a step of IMA ADPCM changes the sample, by index, and imaMove how the index moves, by the 4 bits of a sample (VEC-BNK-04).
var (
	imaStep = [89]int32{7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107, 118, 130, 143, 157, 173, 190, 209,
		230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963, 1060, 1166, 1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660,
		4026, 4428, 4871, 5358, 5894, 6484, 7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767}
	imaMove = [8]int32{-1, -1, -1, -1, 2, 4, 6, 8}
)

// ima is the decoder of one channel.
type ima struct {
	sample, index int32
}

// next returns the sample of 4 bits.
func (d *ima) next(code byte) int16 {
	step := imaStep[d.index]
	diff := step >> 3
	for bit := range 3 {
		if code&(4>>bit) != 0 {
			diff += step >> bit
		}
	}
	if code&8 != 0 {
		diff = -diff
	}
	d.sample = min(max(d.sample+diff, -32768), 32767)
	d.index = min(max(d.index+imaMove[code&7], 0), 88)
	return int16(d.sample)
}

// DecodeIMA returns the samples of blocks of IMA ADPCM, interleaved: 4 bits a sample, one or two channels (VEC-BNK-04). A block begins with 4 bytes for each channel,
// its first sample and its index; then come 4 bytes of each channel in turn, the lower 4 bits first. The last block may be shorter. ErrFile.
func DecodeIMA(b []byte, channels, block int) ([]int16, error) {
	head := 4 * channels
	if channels < 1 || channels > 2 || block <= head || block%head != 0 {
		return nil, fmt.Errorf("%w: expected 1 or 2 channels and blocks of a multiple of %d bytes, found %d and %d", ErrFile, head, channels, block)
	}
	var out []int16
	for at := 0; at < len(b); at += block {
		in := b[at:min(at+block, len(b))]
		if len(in)%head != 0 {
			return nil, fmt.Errorf("%w: byte %d of the data: expected a block of a multiple of %d bytes, found %d", ErrFile, at, head, len(in))
		}
		var d [2]ima
		for ch := range channels {
			h := in[4*ch:]
			d[ch] = ima{int32(int16(binary.LittleEndian.Uint16(h))), int32(h[2])}
			if h[2] > 88 {
				return nil, fmt.Errorf("%w: byte %d of the data: expected an index of 0 to 88, found %d", ErrFile, at+4*ch+2, h[2])
			}
			out = append(out, int16(d[ch].sample))
		}
		for group := in[head:]; len(group) > 0; group = group[head:] {
			base := len(out)
			out = append(out, make([]int16, 8*channels)...)
			for ch := range channels {
				for i, v := range group[4*ch : 4*ch+4] {
					out[base+2*i*channels+ch] = d[ch].next(v & 15)
					out[base+(2*i+1)*channels+ch] = d[ch].next(v >> 4)
				}
			}
		}
	}
	return out, nil
}
