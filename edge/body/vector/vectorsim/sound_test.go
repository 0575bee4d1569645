package vectorsim

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"kennel/edge/body/vector/spine"
)

// wav makes a file of a tone on each channel.
func wav(rate, channels, samples int, value func(i, ch int) int16) []byte {
	le := binary.LittleEndian
	data := make([]byte, 0, 2*channels*samples)
	for i := range samples {
		for ch := range channels {
			data = le.AppendUint16(data, uint16(value(i, ch)))
		}
	}
	b := append([]byte("RIFF\x00\x00\x00\x00WAVELIST\x03\x00\x00\x00abc\x00fmt "), 16, 0, 0, 0, 1, 0)
	b = le.AppendUint16(b, uint16(channels))
	b = le.AppendUint32(b, uint32(rate))
	b = le.AppendUint32(b, uint32(2*rate*channels))
	b = le.AppendUint16(b, uint16(2*channels))
	b = append(append(b, 16, 0), "data"...)
	return append(le.AppendUint32(b, uint32(len(data))), data...)
}

// A tone of a WAV file is heard at its pitch by every microphone, for as long as it is wanted (VEC-BODY-25).
func TestMicrophonesHearAWAVFile(t *testing.T) {
	const tone, seconds = 500.0, 2
	s, err := ParseWAV(wav(44_100, 1, 44_100, func(i, _ int) int16 { return int16(10_000 * math.Sin(2*math.Pi*tone*float64(i)/44_100)) }))
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, Config{})
	b.SetSound(s)
	crossings, samples := [spine.MicChannels]int{}, 0
	var last [spine.MicChannels]bool
	for range seconds * second {
		m := b.drive(1, spine.HeadData{})
		for ch := range spine.MicChannels {
			var mic [spine.MicSamples]int16
			m.Mic(&mic, ch, spine.MicLayout{})
			for _, v := range mic {
				if up := v > 0; up != last[ch] && (v > 300 || v < -300) {
					crossings[ch]++
					last[ch] = up
				}
			}
		}
		samples += spine.MicSamples
	}
	for ch, n := range crossings {
		if hertz := float64(n) / 2 / (float64(samples) / micRate); math.Abs(hertz-tone) > 5 {
			t.Errorf("microphone %d hears %.0f Hz, want %.0f", ch, hertz, tone)
		}
	}
	b.SetSound(nil)
	if m := b.drive(1, spine.HeadData{}); m.Mics[7] > 100 || m.Mics[7] < -100 {
		t.Errorf("after the sound a microphone says %d, want a quiet room", m.Mics[7])
	}
	four, err := ParseWAV(wav(15_625, 4, 200, func(_, ch int) int16 { return int16(1000 * (ch + 1)) }))
	if err != nil {
		t.Fatal(err)
	}
	b.SetSound(four)
	m := b.drive(1, spine.HeadData{})
	for ch := range 4 {
		if v := m.Mics[ch]; math.Abs(float64(v)-1000*float64(ch+1)) > 50 {
			t.Errorf("microphone %d says %d, want its own channel", ch, v)
		}
	}
}

func TestParseWAVRefuses(t *testing.T) {
	good := wav(16_000, 2, 10, func(int, int) int16 { return 1 })
	at := strings.Index(string(good), "fmt ") + 8
	with := func(offset int, v ...byte) []byte {
		b := append([]byte{}, good...)
		copy(b[at+offset:], v)
		return b
	}
	for name, b := range map[string][]byte{
		"empty": nil, "another file": []byte("OggS00000000000000000000"), "no data": good[:at+16], "float": with(0, 3), "8 bits": with(14, 8),
		"no channel": with(2, 0), "five channels": with(2, 5), "a slow rate": with(4, 1, 0, 0, 0), "no sample": good[:len(good)-40],
	} {
		if _, err := ParseWAV(b); err == nil || !strings.HasPrefix(err.Error(), "vectorsim: ") {
			t.Errorf("%s: %v, want it refused and why", name, err)
		}
	}
}

// Any bytes are refused or make a sound that can be played.
func FuzzParseWAV(f *testing.F) {
	f.Add(wav(16_000, 1, 20, func(i, _ int) int16 { return int16(i) }))
	f.Add(wav(192_000, 4, 3, func(i, _ int) int16 { return -1 }))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseWAV(b)
		if err != nil {
			return
		}
		var m spine.BodyData
		s.play(&m, s.play(&m, 0))
	})
}
