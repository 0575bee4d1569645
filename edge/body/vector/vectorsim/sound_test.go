package vectorsim

import (
	"math"
	"strings"
	"testing"

	"kennel/edge/body/vector/spine"
	"kennel/edge/wav"
)

// wavFile makes a file of a value for each sample and channel.
func wavFile(rate, channels, frames int, value func(i, ch int) int16) []byte {
	s := &wav.Sound{Rate: rate, Channels: channels}
	for i := range frames {
		for ch := range channels {
			s.Samples = append(s.Samples, value(i, ch))
		}
	}
	return wav.Append(nil, s)
}

// A tone of a WAV file is heard at its pitch by every microphone, for as long as it is wanted (VEC-BODY-25).
func TestMicrophonesHearAWAVFile(t *testing.T) {
	const tone, seconds = 500.0, 2
	s, err := ParseWAV(wavFile(44_100, 1, 44_100, func(i, _ int) int16 { return int16(10_000 * math.Sin(2*math.Pi*tone*float64(i)/44_100)) }))
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
	four, err := ParseWAV(wavFile(15_625, 4, 200, func(_, ch int) int16 { return int16(1000 * (ch + 1)) }))
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
	if _, err := ParseWAV(nil); err == nil || !strings.HasPrefix(err.Error(), "vectorsim: not a WAV file") {
		t.Errorf("%v", err)
	}
}
