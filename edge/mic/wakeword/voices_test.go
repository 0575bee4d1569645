package wakeword

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"testing"

	"kennel/infra/wav"
)

// speaker is a synthetic voice and how it speaks.
type speaker struct {
	name string
	args func(text string) []string
}

func flite(voice, stretch, pitch string) speaker {
	return speaker{"flite " + voice + " " + stretch + " " + pitch, func(text string) []string {
		args := []string{"flite", "-voice", voice, "--setf", "duration_stretch=" + stretch}
		if pitch != "" {
			args = append(args, "--setf", "int_f0_target_mean="+pitch)
		}
		return append(args, "-t", text, "-o", "/dev/stdout")
	}}
}

func espeak(voice, speed, pitch string) speaker {
	return speaker{"espeak-ng " + voice + " " + speed + " " + pitch, func(text string) []string {
		return []string{"espeak-ng", "-v", voice, "-s", speed, "-p", pitch, "--stdout", text}
	}}
}

// say returns what a speaker says as 16 kHz samples in a room with a noise, with quiet around it.
func say(t testing.TB, s speaker, text string, noise float64) []int16 {
	t.Helper()
	args := s.args(text)
	out, err := exec.Command(args[0], args[1:]...).Output()
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	if i := bytes.Index(out, []byte("data")); i > 0 && i+8 < len(out) { // written to a pipe: the size is not known
		n := uint32(len(out) - i - 8)
		out[i+4], out[i+5], out[i+6], out[i+7] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	}
	sound, err := wav.Parse(out)
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	samples := sound.Resample(rate).Samples
	most := 1
	for _, v := range samples {
		most = max(most, int(v), -int(v))
	}
	const quiet = rate * 3 / 10
	r := rand.New(rand.NewPCG(uint64(len(samples)), uint64(len(text))))
	all := make([]int16, 2*quiet+len(samples))
	for i := range all {
		v := noise * r.NormFloat64()
		if at := i - quiet; at >= 0 && at < len(samples) {
			v += float64(samples[at]) * 12000 / float64(most)
		}
		all[i] = int16(v)
	}
	return all
}

// trainers are the speakers that the built-in model is made of.
func trainers() (all []speaker) {
	for _, v := range []string{"slt", "awb", "rms", "kal16"} {
		all = append(all, flite(v, "0.85", ""), flite(v, "1.1", ""))
	}
	all = append(all, flite("slt", "1.0", "140"), flite("slt", "0.9", "240"), flite("awb", "1.0", "90"), flite("rms", "1.0", "150"))
	for i, v := range []string{"en-us+m1", "en-us+m3", "en-us+f2", "en-gb+m5", "en-us+f4", "en-gb+f1"} {
		all = append(all, espeak(v, fmt.Sprint(140+10*i), "50"), espeak(v, fmt.Sprint(190-10*i), "40"))
	}
	return all
}

// strangers are not: the same voices of flite speak with another speed or pitch, because it has only these.
func strangers() []speaker {
	return []speaker{
		flite("slt", "1.0", ""), flite("awb", "0.95", "130"), flite("rms", "1.0", ""), flite("rms", "1.2", "110"), flite("kal16", "1.0", "120"), flite("kal", "1.0", ""),
		espeak("en-us+m7", "150", "45"), espeak("en-gb+m2", "165", "50"), espeak("en-gb+f3", "160", "50"), espeak("en-us+f5", "175", "60"),
		espeak("en-gb-scotland", "160", "50"), espeak("en-us", "180", "55"),
	}
}

// otherSpeech has phrases without the word, some of them near it.
var otherSpeech = []string{
	"what time is it", "turn around and go to your charger", "the quick brown fox jumps over the lazy dog", "set a timer for five minutes",
	"hey robot come here", "hello there how are you today", "victory is near said the doctor", "hey doctor", "a vector is a list of numbers",
	"she sells sea shells by the sea shore", "please bring me the red cube over there", "the actor played a director in the sector",
	"I would like to eat an apple and a banana for breakfast", "look at me my name is Robert", "good morning and good night",
	"when the sunlight strikes raindrops in the air they act like a prism and form a rainbow", "hey victoria", "every day we walk to the lake",
}

// unseenSpeech is not in the training.
var unseenSpeech = []string{
	"my sister has a garden full of flowers and two dogs", "they will arrive on the eleventh of September", "could you turn the lights off in the kitchen",
	"hey everyone listen to this", "the electric heater is behind the sofa", "he said that a better answer will come later",
	"we had rain all week and then a little sun on Friday", "play some music for the party", "never mind I will do it myself", "hey Hector is that you",
}
