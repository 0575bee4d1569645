package format

// The coder is the one of IMA with its tables, fed with sample - 128 without scaling. Two samples are in a byte, the first in the high half. There are no block
// headers, and predictor and step begin at 0 (PLEO-USF-09).

var adpcmIndex = [8]int{-1, -1, -1, -1, 2, 4, 6, 8}

var adpcmSteps = [89]int{
	7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107, 118, 130, 143, 157, 173, 190, 209, 230, 253,
	279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963, 1060, 1166, 1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026,
	4428, 4871, 5358, 5894, 6484, 7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767,
}

// adpcm is the state of the coder.
type adpcm struct{ predictor, index int }

// step moves the state by a code of four bits and returns the sample.
func (a *adpcm) step(code byte) byte {
	step := adpcmSteps[a.index]
	diff := step >> 3
	if code&4 != 0 {
		diff += step
	}
	if code&2 != 0 {
		diff += step >> 1
	}
	if code&1 != 0 {
		diff += step >> 2
	}
	if code&8 != 0 {
		diff = -diff
	}
	a.predictor = min(max(a.predictor+diff, -32768), 32767)
	a.index = min(max(a.index+adpcmIndex[code&7], 0), len(adpcmSteps)-1)
	return byte(min(max(a.predictor, -128), 127) + 128)
}

// code returns the code for a sample.
func (a *adpcm) code(sample byte) (code byte) {
	diff := int(sample) - 128 - a.predictor
	if diff < 0 {
		code, diff = 8, -diff
	}
	step := adpcmSteps[a.index]
	for bit := byte(4); bit != 0; bit >>= 1 {
		if diff >= step {
			code |= bit
			diff -= step
		}
		step >>= 1
	}
	return code
}

// DecodeADPCM returns the samples of compressed data, two for each byte.
func DecodeADPCM(data []byte) []byte {
	var a adpcm
	out := make([]byte, 0, 2*len(data))
	for _, b := range data {
		out = append(out, a.step(b>>4), a.step(b&0x0F))
	}
	return out
}

// EncodeADPCM compresses samples. An odd last one is dropped.
func EncodeADPCM(samples []byte) []byte {
	var a adpcm
	out := make([]byte, 0, len(samples)/2)
	for i := 0; i+1 < len(samples); i += 2 {
		high := a.code(samples[i])
		a.step(high)
		low := a.code(samples[i+1])
		a.step(low)
		out = append(out, high<<4|low)
	}
	return out
}
