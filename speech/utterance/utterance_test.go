package utterance

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

// TestUtterance: what is said comes back about as loud as its own noise floor, and fits a broker message.
func TestUtterance(t *testing.T) {
	h := Header{Session: "s", Question: true, Language: "en-US", Firmware: "1", Timezone: "Europe/Berlin", SkipDAS: true}
	pcm := make([]int16, 2*MaxSamples)
	for i := range pcm {
		pcm[i] = int16(8000*math.Sin(float64(i)/9) + 2000*math.Sin(float64(i)/3))
	}
	b, err := Append(nil, h, pcm)
	if err != nil || len(b) > 96<<10 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	got, samples, err := Parse(b)
	if err != nil || got != h || len(samples) != MaxSamples {
		t.Fatalf("%+v, %d samples, %v", got, len(samples), err)
	}
	signal, noise := 0.0, 0.0
	for i, s := range samples {
		d := float64(s) - float64(pcm[i])
		signal, noise = signal+float64(pcm[i])*float64(pcm[i]), noise+d*d
	}
	if db := 10 * math.Log10(signal/noise); db < 20 {
		t.Errorf("%.1f dB above its own noise", db)
	}
	// The standard's own example of a step up from silence: 7 is the largest step.
	if b, err := Append(nil, Header{}, []int16{1000, 1000, -1000}); err != nil || !bytes.HasSuffix(b, []byte{0x77, 0x0f}) {
		t.Errorf("%x, %v", b, err)
	}
}

func TestRefused(t *testing.T) {
	for in, want := range map[string]string{
		"": "0 bytes", "\x01": "1 bytes", "\x05\x00{}": "5 bytes, want at most 8192 and the 2 that follow", "\xff\xff" + strings.Repeat("x", 1<<16): "want at most 8192",
		"\x02\x00[]": "header of an utterance: json", "\x02\x00{}" + strings.Repeat("x", MaxSamples): "bytes of audio: want at most 76000",
	} {
		if _, _, err := Parse([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", in, err, want)
		}
	}
	if _, err := Append(nil, Header{Text: strings.Repeat("x", maxHeader)}, nil); err == nil {
		t.Error("a long header is taken")
	}
}

func FuzzParse(f *testing.F) {
	b, _ := Append(nil, Header{Text: "stop"}, []int16{1, 2, 3})
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		h, samples, err := Parse(b)
		if err != nil {
			return
		}
		again, err := Append(nil, h, samples)
		if err != nil {
			return // its header is longer in our words
		}
		h2, s2, err := Parse(again)
		if err != nil || h2 != h || len(s2) != len(samples) {
			t.Fatalf("%+v, then %+v, %v", h, h2, err)
		}
	})
}
