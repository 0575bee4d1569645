package format

import (
	"fmt"

	"kennel/infra/wav"
)

// SoundOptions say how a WAV file becomes a sound of Pleo.
type SoundOptions struct {
	ADPCM bool
	Rate  int // samples a second of the result; 0: 11,025 (PLEO-UPF-17)
}

// DefaultRate is the usual rate of a sound, in samples a second.
const DefaultRate = 11025

// AdvisedRate is the highest rate that Pleo is known to play well (PLEO-SBT-04).
const AdvisedRate = 22050

// Convert returns the sound of a WAV file as the original tool makes it, sample for sample: channels are added, the level is 98 %, and what changes its rate goes through a mean
// of two neighbours and linear interpolation; all divisions cut towards zero (PLEO-SBT-02, PLEO-SBT-06).
//
// Bytes of an 8-bit file that need no new rate are taken as signed numbers before they are made smaller; that is a fault of the original tool, kept because published files
// have it. Other 8-bit files are read as 16-bit ones.
func Convert(name string, file []byte, o SoundOptions) (*Sound, error) {
	in, err := wav.Parse(file)
	if err != nil {
		return nil, err
	}
	rate := o.Rate
	if rate == 0 {
		rate = DefaultRate
	}
	if rate < 1 || rate > 0xFFFF {
		return nil, fmt.Errorf("rate of %d: want 1 to %d samples a second", rate, 0xFFFF)
	}
	samples := make([]int, 0, len(in.Samples)/in.Channels)
	for i := 0; i < len(in.Samples); i += in.Channels {
		sum := 0
		for _, v := range in.Samples[i : i+in.Channels] {
			sum += int(v)
		}
		samples = append(samples, min(max(sum, -32768), 32767))
	}
	s := &Sound{Version: 1, Name: name, Bits: 8, Channels: 1, Rate: uint16(rate), Loops: 1, Samples: AllSamples, ADPCM: o.ADPCM}
	if in.Bits == 8 && in.Rate == rate {
		for _, v := range samples {
			s.Data = append(s.Data, byte(percent(int(int8(v>>8+128)))))
		}
	} else {
		for i, v := range samples {
			samples[i] = percent(v)
		}
		if in.Rate != rate {
			samples = resample(samples, in.Rate, rate)
		}
		for _, v := range samples {
			s.Data = append(s.Data, byte(v>>8+128))
		}
	}
	if o.ADPCM {
		s.Data = EncodeADPCM(s.Data)
	}
	return s, nil
}

// percent returns 98 % of v, cut towards zero.
func percent(v int) int { return v * 98 / 100 }

// resample changes the rate of samples. d is the distance to the newest input in units of 1/in/out seconds.
func resample(samples []int, in, out int) []int {
	for a, b := in, out; ; {
		if b == 0 {
			in, out = in/a, out/a
			break
		}
		a, b = b, a%b
	}
	var result []int
	prev, cur, d := 0, 0, -out
	for _, v := range samples {
		prev, cur = cur, (4*v+4*cur)/8
		for d += out; d >= 0; d -= in {
			result = append(result, (prev*d+cur*(out-d))/out)
		}
	}
	return result
}

// WAV returns the sound as a WAV file, one round of it.
func (s *Sound) WAV() []byte {
	out := &wav.Sound{Rate: int(s.Rate), Channels: 1}
	for _, v := range s.PCM() {
		out.Samples = append(out.Samples, int16(int(v)-128)<<8)
	}
	return wav.Append(nil, out)
}
