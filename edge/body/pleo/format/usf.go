package format

import "bytes"

const usf kind = "usf"

// AllSamples is Sound.Samples of a sound that goes to the end of its data, as the tools write it (PLEO-USF-08).
const AllSamples = 0xFFFFFFFF

const (
	usfSignature = "UGSF" // PLEO-USF-01
	usfOld       = 16     // header of version 0, which has no name (PLEO-USF-02)
	usfHeader    = usfOld + MaxName
)

// Sound is a USF file.
type Sound struct {
	Version uint8  // 0 or 1
	Name    string // of the original file, without its end; version 0 has none (PLEO-USF-03)

	ADPCM          bool   // the data is compressed; see PCM (PLEO-USF-04)
	DontPitchShift bool   // the speed of the sound must not be changed
	Bits           uint8  // of a sample: 8 (PLEO-USF-05)
	Channels       uint8  // 1 (PLEO-USF-06)
	Rate           uint16 // samples a second: 11,025 (PLEO-USF-07)
	Loops          uint16 // how often it plays; 0: without end
	Samples        uint32 // AllSamples, or how many of the data are played

	Data []byte // unsigned samples with silence at 128, or ADPCM
}

// ReadSound returns the sound in file. Data aliases it.
func ReadSound(file []byte) (*Sound, error) {
	if err := usf.begin(file, usfSignature, usfOld); err != nil {
		return nil, err
	}
	s := &Sound{Version: file[4]}
	at := 5
	switch s.Version {
	case 0:
	case 1:
		if err := usf.begin(file, usfSignature, usfHeader); err != nil {
			return nil, err
		}
		s.Name = name(file[at:])
		at += MaxName
	default:
		return nil, usf.refuse(4, "version", s.Version, "0 or 1")
	}
	info := file[at]
	if info&0xEF > 1 {
		return nil, usf.refuse(at, "info", info, "compression 0 or 1 in bits 0 to 3, no pitch shift in bit 4")
	}
	s.ADPCM, s.DontPitchShift = info&0x0F == 1, info&0x10 != 0
	s.Bits, s.Channels = file[at+1], file[at+2]
	s.Rate, s.Loops, s.Samples = order.Uint16(file[at+3:]), order.Uint16(file[at+5:]), order.Uint32(file[at+7:])
	s.Data = file[at+11:]
	if err := s.check(at); err != nil {
		return nil, err
	}
	return s, nil
}

// check refuses what no player can play. at is the place of the info byte.
func (s *Sound) check(at int) error {
	if s.Bits != 8 {
		return usf.refuse(at+1, "bits per sample", s.Bits, "8")
	}
	if s.Channels != 1 {
		return usf.refuse(at+2, "channels", s.Channels, "1")
	}
	if s.Rate == 0 {
		return usf.refuse(at+3, "samples per second", s.Rate, "at least 1")
	}
	if n := uint64(s.stored()); s.Samples != AllSamples && uint64(s.Samples) > n {
		return usf.refuse(at+7, "samples", s.Samples, "at most the %d of the data, or %#x", n, uint32(AllSamples))
	}
	return nil
}

// stored returns the number of samples of the data.
func (s *Sound) stored() int {
	if s.ADPCM {
		return 2 * len(s.Data)
	}
	return len(s.Data)
}

// Append appends the file of s to dst.
func (s *Sound) Append(dst []byte) ([]byte, error) {
	at := 5
	switch s.Version {
	case 0:
		if s.Name != "" {
			return nil, usf.refuse(at, "name", s.Name, "none in version 0")
		}
	case 1:
		if err := usf.checkName(at, "name", s.Name); err != nil {
			return nil, err
		}
		at += MaxName
	default:
		return nil, usf.refuse(4, "version", s.Version, "0 or 1")
	}
	if err := s.check(at); err != nil {
		return nil, err
	}
	dst = append(append(dst, usfSignature...), s.Version)
	if s.Version == 1 {
		dst = appendName(dst, s.Name)
	}
	info := byte(0)
	if s.ADPCM {
		info |= 1
	}
	if s.DontPitchShift {
		info |= 0x10
	}
	dst = append(dst, info, s.Bits, s.Channels)
	dst = order.AppendUint16(dst, s.Rate)
	dst = order.AppendUint16(dst, s.Loops)
	dst = order.AppendUint32(dst, s.Samples)
	return append(dst, s.Data...), nil
}

// PCM returns the samples that are played once, unsigned, with silence at 128.
func (s *Sound) PCM() []byte {
	out := bytes.Clone(s.Data)
	if s.ADPCM {
		out = DecodeADPCM(s.Data)
	}
	if s.Samples != AllSamples {
		out = out[:s.Samples]
	}
	return out
}
