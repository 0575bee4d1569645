// Package recognizertest speaks to recognisers in tests.
package recognizertest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"testing"
	"time"

	"kennel/speech/recognizer"
)

// Voices are synthetic voices that Say knows: four of flite, and espeak-ng. Settings of recognisers were chosen with them.
var Voices = []string{"slt", "awb", "kal16", "rms", "espeak-ng"}

// HeldOut are voices of espeak-ng that were used for no setting.
var HeldOut = []string{"espeak-ng en-gb-scotland", "espeak-ng en-us+f2"}

// Festival are voices of Debian's festvox-kdlpc16k and festvox-us-slt-hts, which make spoken installs. They were used for no setting.
var Festival = []string{"festival ked_diphone", "festival cmu_us_slt_arctic_hts"}

// Say returns text spoken by a voice, with silence before and after it as an end-pointer leaves it. Unless snr is 0, pink noise is mixed in,
// so many decibels below the speech.
func Say(t testing.TB, voice, text string, snr float64) []int16 {
	t.Helper()
	say := "flite -voice " + voice + ` -t "$1" -o /dev/stdout`
	if name, ok := strings.CutPrefix(voice, "espeak-ng"); ok {
		say = "espeak-ng -v" + cmp.Or(name, " en-us") + ` --stdout "$1"`
	}
	if name, ok := strings.CutPrefix(voice, "festival "); ok {
		say = `echo "$1" | text2wave -eval "(voice_` + name + `)"`
	}
	out := shell(t, say+" | sox -t wav --ignore-length - "+raw+" norm -3 pad 0.3 0.5", text)
	if snr != 0 {
		speech := Samples(out)
		synth := fmt.Sprintf("sox -R -n %s synth %d pinknoise norm -3", raw, 1+len(speech)/recognizer.Rate)
		gain := level(speech) / level(Samples(shell(t, synth, ""))[:len(speech)]) * math.Pow(10, -snr/20)
		mix := fmt.Sprintf("sox -m -v 0.5 %s -v %f \"|%s\" %s trim 0 %ds", raw, gain/2, strings.Replace(synth, "- synth", "-p synth", 1), raw, len(speech))
		cmd := exec.CommandContext(t.Context(), "bash", "-c", mix)
		cmd.Stdin = bytes.NewReader(out)
		var err error
		if out, err = cmd.Output(); err != nil {
			t.Fatalf("%s: %v", mix, err)
		}
	}
	return Samples(out)
}

const raw = "-t raw -r 16000 -c 1 -b 16 -e signed -L -"

func shell(t testing.TB, script, arg string) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c", script, "say", arg).Output()
	if err != nil {
		t.Fatalf("%s, with %q: %v", script, arg, err)
	}
	return out
}

// level returns the root of the mean square.
func level(samples []int16) float64 {
	var sum float64
	for _, v := range samples {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(max(1, len(samples))))
}

// Samples reads 16-bit little-endian samples.
func Samples(b []byte) []int16 {
	out := make([]int16, len(b)/2)
	for i := range out {
		out[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return out
}

// Listen gives samples to a recogniser in pieces of 100 ms, all at once, and returns what it understood.
func Listen(ctx context.Context, r recognizer.Recognizer, samples []int16) (recognizer.Result, error) {
	return listen(ctx, r, recognizer.Expect{Language: "en-US"}, samples, 0)
}

// ListenFor is Listen for the sentences of a grammar.
func ListenFor(ctx context.Context, r recognizer.Recognizer, grammar string, samples []int16) (recognizer.Result, error) {
	return listen(ctx, r, recognizer.Expect{Language: "en-US", Grammar: grammar}, samples, 0)
}

// ListenLive is Listen at the pace of speech. It also returns how long the result took after the last sample.
func ListenLive(ctx context.Context, r recognizer.Recognizer, samples []int16) (recognizer.Result, time.Duration, error) {
	start := time.Now()
	got, err := listen(ctx, r, recognizer.Expect{Language: "en-US"}, samples, 100*time.Millisecond)
	return got, time.Since(start) - time.Duration(len(samples))*time.Second/recognizer.Rate, err
}

func listen(ctx context.Context, r recognizer.Recognizer, e recognizer.Expect, samples []int16, pace time.Duration) (recognizer.Result, error) {
	s, err := r.Open(ctx, e)
	if err != nil {
		return recognizer.Result{}, err
	}
	defer s.Close()
	next := time.Now()
	for len(samples) > 0 {
		n := min(len(samples), recognizer.Rate/10)
		next = next.Add(pace * time.Duration(n) / (recognizer.Rate / 10))
		time.Sleep(time.Until(next))
		if err := s.Write(samples[:n]); err != nil {
			return recognizer.Result{}, err
		}
		samples = samples[n:]
	}
	return s.Finish()
}
