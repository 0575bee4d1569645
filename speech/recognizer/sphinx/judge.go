package sphinx

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// segment is a word or phone and the frames in which it was heard, 100 a second.
type segment struct {
	word       string
	start, end int
	score      float64 // per frame, of the sound alone
	likely     float64 // of the words before it, in the language model; 0 in a grammar
}

func (s segment) silent() bool {
	return s.word == "SIL" || s.word[0] == '<' || s.word[0] == '+' || s.word[0] == '['
}

// call reports whether s calls the robot: it is no part of the sentence, and says nothing of how well that was heard.
func (s segment) call() bool { return strings.Contains(s.word, "_") }

// finer is how much larger the scores are that the decoder writes for words of a language model.
const finer = 1024

// maxFrames bounds what parse believes: ten minutes.
const maxFrames = 60000

// parse reads a line that option -hypseg writes. Nothing heard is no segment.
func parse(line string) ([]segment, error) {
	f := strings.Fields(line)
	if len(f) < 10 || (len(f)-10)%4 != 0 || f[1] != "S" || f[3] != "T" || f[5] != "A" || f[7] != "L" {
		return nil, fmt.Errorf("%d words: %w", len(f), errOutput) // which may be what a person said
	}
	var out []segment
	for rest := f[9:]; len(rest) > 1; rest = rest[4:] {
		start, err1 := strconv.Atoi(rest[0])
		score, err2 := strconv.Atoi(rest[1])
		likely, err3 := strconv.Atoi(rest[2])
		end, err4 := strconv.Atoi(rest[4])
		if err1 != nil || err2 != nil || err3 != nil || err4 != nil || start < -1 || end < start || end > maxFrames {
			return nil, fmt.Errorf("frames %.20q to %.20q, score %.20q: %w", rest[0], rest[4], rest[1], errOutput)
		}
		if end > start && start >= 0 { // a segment (NULL) from -1 to -1 means nothing
			out = append(out, segment{word: rest[3], start: start, end: end, score: float64(score) / float64(end-start), likely: float64(likely)})
		}
	}
	return out, nil
}

// weights make confidence from what is measured of a sentence.
type weights struct {
	atBest    float64
	perFit    float64 // a point by which words explain a frame, in the mean over their frames; 0 is the best that any sound can
	perWorst  float64 // a point by which phones explain a frame better than words do, in the worst window
	perUnsaid float64 // a frame of speech that the words leave out
	perLikely float64 // a point of the language model, in the mean over words and the end of the sentence
	perNoise  float64 // a decibel by which noise is less than quiet below speech: what is heard in noise has to be surer
}

// ofGrammar are for sentences of a grammar, by logistic regression over nine synthetic voices with pink and white noise at 10 to 20 dB and without, who said
// phrases, sentences that no robot has an intent for, and sentences close to a phrase. One voice left out at a time gave nearly the same.
var ofGrammar = weights{atBest: 6.7, perFit: 0.14, perWorst: 0.0277, perUnsaid: 0.118, perNoise: 0.045}

// ofWishes are for words of the language model, by the same means over five voices who said 166 wishes and 274 other sentences of the tests of intents. That
// the words are likely after one another tells more than the worst window does.
var ofWishes = weights{atBest: 10.65, perFit: 0.132, perUnsaid: 0.182, perLikely: 0.0231, perNoise: 0.02}

const window = 30 // frames

// judge returns the sentence in words, and how sure it is, from 0 to 1. Noise is as many decibels below speech as level returns.
func judge(words, phones []segment, noise float64, by weights) (string, float64) {
	if len(words) == 0 || len(phones) == 0 {
		return "", 0
	}
	var said []string
	var likely, counted float64
	first, last := words[0].start, max(words[len(words)-1].end, phones[len(phones)-1].end)
	for _, w := range words {
		if !w.silent() || w.word == "</s>" {
			likely, counted = likely+w.likely, counted+1
		}
		if !w.silent() && !w.call() {
			word, _, _ := strings.Cut(w.word, "(") // the second pronunciation of to is to(2)
			if word != "" {                        // of (NULL), a step of the grammar without a word, which may take a frame
				said = append(said, word)
			}
		}
	}
	if len(said) == 0 {
		return "", 0
	}
	worse := make([]float64, max(last-first, window)) // by frame
	spoken := make([]bool, len(worse))
	unsaid := 0
	for _, p := range phones {
		for i := max(p.start, first); i < p.end; i++ {
			worse[i-first] += p.score
			if !p.silent() {
				spoken[i-first] = true
				unsaid++
			}
		}
	}
	var fit, frames float64
	for _, w := range words {
		for i := w.start; i < w.end; i++ {
			worse[i-first] -= w.score
			if w.silent() {
				continue
			}
			if !w.call() {
				fit, frames = fit+w.score, frames+1
			}
			if spoken[i-first] {
				unsaid--
				spoken[i-first] = false
			}
		}
	}
	var run, worst float64
	for i, w := range worse {
		run += w
		if i >= window {
			run -= worse[i-window]
		}
		if i >= window-1 {
			worst = max(worst, run/window)
		}
	}
	sure := by.atBest + by.perFit*fit/max(1, frames) - by.perWorst*worst - by.perUnsaid*float64(unsaid) + by.perLikely*likely/counted - by.perNoise*(quiet-noise)
	return strings.Join(said, " "), 1 / (1 + math.Exp(-sure))
}
