package spokenback

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/edge/sound/voice"
	"kennel/speech/recognizer"
	"kennel/speech/recognizer/dictation"
	"kennel/speech/recognizer/recognizertest"
)

var (
	all       = flag.Bool("all", false, "speak all sentences: make spokenback")
	character = flag.String("character", "vector", "the character beside plain")
	synth     = flag.String("synth", "flite", "flite or espeak-ng")
	named     = flag.String("voice", "", "a voice of it")
)

// TestErrors: words put in, left out and replaced.
func TestErrors(t *testing.T) {
	for heard, want := range map[string]int{"the cat's asleep": 0, "The cat's, asleep!": 0, "the cat": 2, "the cats asleep": 1, "a the cat's fast asleep": 2, "": 3, "one two three four": 4} {
		if got := Errors(Words("The cat's asleep."), Words(heard)); got != want {
			t.Errorf("%q: %d errors, want %d", heard, got, want)
		}
	}
}

// score is how sentences were heard.
type score struct{ words, wrong, whole int }

func (s score) String() string {
	return fmt.Sprintf("%.1f %% of %d words wrong, %d sentences whole", 100*float64(s.wrong)/float64(max(1, s.words)), s.words, s.whole)
}

// speakBack speaks sentences in a character and compares what was heard. Two at once keep a machine busy.
func speakBack(t *testing.T, s voice.Synthesizer, r recognizer.Recognizer, c voice.Character, sentences []string) (sum score) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	todo := make(chan string)
	for range 2 {
		wg.Go(func() {
			for text := range todo {
				heard, err := once(t.Context(), s, r, c, text)
				if err != nil {
					t.Errorf("%s, %q: %v", c.Name, text, err)
					continue
				}
				wrong := Errors(Words(text), Words(heard))
				mu.Lock()
				sum.words, sum.wrong = sum.words+len(Words(text)), sum.wrong+wrong
				if wrong == 0 {
					sum.whole++
				} else if *all {
					t.Logf("%s: %q was heard as %q; so far %v", c.Name, text, heard, sum)
				}
				mu.Unlock()
			}
		})
	}
	for _, text := range sentences {
		todo <- text
	}
	close(todo)
	wg.Wait()
	return sum
}

func once(ctx context.Context, s voice.Synthesizer, r recognizer.Recognizer, c voice.Character, text string) (string, error) {
	text, err := voice.Clean(text)
	if err != nil {
		return "", err
	}
	u, err := s.Speak(ctx, voice.Request{Text: text, Voice: *named})
	if err == nil {
		u, err = c.Apply(u)
	}
	if err == nil {
		u.Sound, err = u.Sound.At(recognizer.Rate)
	}
	if err != nil {
		return "", err
	}
	got, err := recognizertest.Listen(ctx, r, u.Sound.PCM())
	return got.Text, err
}

// TestSpokenBack speaks three sentences plain and in the robot's character, or with -all a hundred: of those, less than 30 in 100 words are heard wrong when plain, and
// in character less than 15 in 100 more.
func TestSpokenBack(t *testing.T) {
	b, err := os.ReadFile("testdata/sentences.txt")
	if err != nil {
		t.Fatal(err)
	}
	sentences := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(sentences) != 100 {
		t.Errorf("%d sentences", len(sentences))
	}
	most := [2]float64{0.3, 0.15}
	if !*all {
		sentences, most = []string{sentences[3], sentences[8], sentences[40]}, [2]float64{0.4, 0.4}
	}
	open := voice.NewFlite
	if *synth == "espeak-ng" {
		open = voice.NewEspeak
	}
	s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	r, err := dictation.New(dictation.Config{Limit: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	c, err := voice.FindCharacter(*character)
	if err != nil {
		t.Fatal(err)
	}
	plain := speakBack(t, s, r, voice.Characters[0], sentences)
	own := speakBack(t, s, r, c, sentences)
	t.Logf("%s %s, plain: %v", s.Name(), *named, plain)
	t.Logf("%s %s, %s: %v", s.Name(), *named, c.Name, own)
	a, o := float64(plain.wrong)/float64(plain.words), float64(own.wrong)/float64(own.words)
	if a > most[0] || o > a+most[1] {
		t.Errorf("plain %.3f, %s %.3f of the words wrong; want at most %.2f, and %.2f more", a, c.Name, o, most[0], most[1])
	}
}
