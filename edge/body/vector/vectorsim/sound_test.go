package vectorsim

import (
	"math"
	"strings"
	"testing"

	"kennel/edge/body/vector/spine"
	"kennel/edge/mic/geometry"
	"kennel/infra/wav"
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
	s, err := ParseWAV(wavFile(44_100, 1, 44_100, func(i, _ int) int16 { return int16(10_000 * math.Sin(2*math.Pi*tone*float64(i)/44_100)) }), 0)
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
				v -= geometry.Idle
				if up := v > 0; up != last[ch] && (v > 300 || v < -300) {
					crossings[ch]++
					last[ch] = up
				}
			}
		}
		samples += spine.MicSamples
	}
	for ch, n := range crossings {
		if hertz := float64(n) / 2 / (float64(samples) / geometry.Rate); math.Abs(hertz-tone) > 5 {
			t.Errorf("microphone %d hears %.0f Hz, want %.0f", ch, hertz, tone)
		}
	}
	b.SetSound(nil)
	if m := b.drive(1, spine.HeadData{}); m.Mics[7] > geometry.Idle+100 || m.Mics[7] < geometry.Idle-100 {
		t.Errorf("after the sound a microphone says %d, want a quiet room", m.Mics[7])
	}
	four, err := ParseWAV(wavFile(15_625, 4, 200, func(_, ch int) int16 { return int16(1000 * (ch + 1)) }), 0)
	if err != nil {
		t.Fatal(err)
	}
	b.SetSound(four)
	m := b.drive(1, spine.HeadData{})
	for ch := range 4 {
		if v := m.Mics[ch]; math.Abs(float64(v)-geometry.Idle-1000*float64(ch+1)) > 50 {
			t.Errorf("microphone %d says %d, want its own channel", ch, v)
		}
	}
}

// TestDirection: a sound from a side is heard first by the microphones there (VEC-MIC-01), once, and the board tells its end.
func TestDirection(t *testing.T) {
	click := wavFile(geometry.Rate, 1, 160, func(i, _ int) int16 { return int16(map[bool]int{true: 20_000}[i == 40]) })
	s, err := ParseWAV(click, math.Pi/2) // its left
	if err != nil {
		t.Fatal(err)
	}
	var right, left float64 // the moment of the click's energy
	for i, f := range s.frames {
		right += float64(i) * float64(f[0]) / 20_000
		left += float64(i) * float64(f[1]) / 20_000
	}
	if want := 0.024 / 343 * geometry.Rate; math.Abs(right-left-want) > 0.05 {
		t.Errorf("the right side hears it %.2f samples after the left, want %.2f", right-left, want)
	}
	b := newBench(t, Config{})
	b.PlayOnce(s)
	if h := b.Heard(); !h.Playing {
		t.Errorf("at its beginning: %+v", h)
	}
	m := b.drive(1, spine.HeadData{})
	if m.Mics[40*4+1] < 10_000 {
		t.Errorf("the click is %d", m.Mics[40*4+1])
	}
	b.drive(1, spine.HeadData{})
	if h := b.Heard(); h.Playing {
		t.Errorf("at its end: %+v", h)
	}
	if m := b.drive(1, spine.HeadData{}); m.Mics[40*4+1] > geometry.Idle+100 {
		t.Error("the sound repeats")
	}
}

func TestParseWAVRefuses(t *testing.T) {
	if _, err := ParseWAV(nil, 0); err == nil || !strings.HasPrefix(err.Error(), "vectorsim: not a WAV file") {
		t.Errorf("%v", err)
	}
}
