package sphinx

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kennel/infra/errs"
	"kennel/speech/recognizer"
	"kennel/speech/recognizer/recognizertest"
)

const grammar = `#JSGF V1.0;
grammar commands;
public <command> = [please] (go forward | come here | how old are you | pop a wheelie | set a timer for <number> (minutes | seconds) | be qwxzt);
<number> = five | ten | twenty;
`

func TestSentences(t *testing.T) {
	r, err := New(t.Context(), Config{Grammar: grammar, Limit: time.Minute, Pronunciations: map[string]string{"wheelie": "W IY L IY"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Unknown(); !slices.Equal(got, []string{"qwxzt"}) {
		t.Errorf("unknown words %v, want qwxzt", got)
	}
	for _, c := range []struct {
		say  string
		want string // "": not understood
	}{
		{"go forward", "go forward"},
		{"pop a wheelie", "pop a wheelie"},
		{"set a timer for ten minutes", "set a timer for ten minutes"},
		{"I would like to order a large pizza", ""},
		{"there is a spider in the bathroom", ""},
	} {
		got, err := recognizertest.Listen(t.Context(), r, recognizertest.Say(t, "slt", c.say, 0))
		if err != nil || got.Text != c.want || got.By != "sphinx" || c.want != "" && got.Confidence < 0.5 {
			t.Errorf("%q: %+v, %v, want %q", c.say, got, err, c.want)
		}
	}
	for name, samples := range map[string][]int16{"nothing": nil, "silence": make([]int16, recognizer.Rate)} {
		if got, err := recognizertest.Listen(t.Context(), r, samples); err != nil || got.Text != "" {
			t.Errorf("%s: %+v, %v, want no text", name, got, err)
		}
	}
	if _, err := r.Open(t.Context(), recognizer.Expect{Language: "de-DE"}); errs.KindOf(err) != errs.Invalid {
		t.Errorf("German: %v, want invalid", err)
	}
	if _, err := recognizertest.Listen(t.Context(), r, make([]int16, 16*recognizer.Rate)); errs.KindOf(err) != errs.Exhausted {
		t.Errorf("16 s: %v, want exhausted", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(r.words.folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder after Close: %v", err)
	}
}

// TestExpect: an utterance with a grammar of its own is heard by that one. A grammar that the decoder refuses costs no other sentence, and of many the
// newest have their files.
func TestExpect(t *testing.T) {
	r, err := New(t.Context(), Config{Grammar: grammar, Limit: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	feed := strings.Replace(grammar, "go forward |", "go forward | feed my cat |", 1)
	said := recognizertest.Say(t, "slt", "feed my cat", 0)
	for name, c := range map[string]struct {
		grammar, want string
		samples       []int16
	}{
		"its own":                   {feed, "feed my cat", said},
		"the first":                 {"", "", said},
		"its own, a built-in one":   {feed, "go forward", recognizertest.Say(t, "slt", "go forward", 0)},
		"refused by the decoder":    {"nonsense", "go forward", recognizertest.Say(t, "slt", "go forward", 0)},
		"a word without dictionary": {strings.Replace(feed, "feed my cat", "feed my cat | public grammar | brrzk", 1), "feed my cat", said},
	} {
		if got, err := recognizertest.ListenFor(t.Context(), r, c.grammar, c.samples); err != nil || got.Text != c.want {
			t.Errorf("%s: %+v, %v, want %q", name, got, err, c.want)
		}
	}
	if got := r.Lacks([]string{"-dog", "5", "cat", "brrzk", "forward", "xylzz", "{text}"}); !slices.Equal(got, []string{"-dog", "5", "{text}", "brrzk", "xylzz"}) {
		t.Errorf("no dictionary has %q, want -dog 5 {text} brrzk xylzz", got)
	}
	held, err := r.words.get(feed)
	if err != nil {
		t.Fatal(err)
	}
	for i := range most + 10 {
		v, err := r.words.get(fmt.Sprintf("#JSGF V1.0;\ngrammar g;\npublic <command> = go (%s);\n", strings.Repeat("forward ", i+1)))
		if err != nil {
			t.Fatal(err)
		}
		r.words.release(v)
	}
	if got := len(r.words.used); got != most || r.words.used[feed] != held {
		t.Errorf("%d grammars, want %d and the one that is used", got, most)
	}
	if all, err := os.ReadDir(r.words.folder); err != nil || len(all) != most {
		t.Errorf("%d folders, %v; want %d", len(all), err, most)
	}
	if err := os.RemoveAll(r.words.folder); err != nil { // as a system that cleans its /tmp
		t.Fatal(err)
	}
	for _, g := range []string{"", feed} {
		if got, err := recognizertest.ListenFor(t.Context(), r, g, said); err != nil || got.Text != map[bool]string{true: "feed my cat"}[g == feed] {
			t.Errorf("after its files were removed: %+v, %v", got, err)
		}
	}
}

// A decoder that crashes, hangs or talks nonsense costs one utterance, and the error names it.
func TestDecoderFails(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "decoder")
	fault := filepath.Join(dir, "fault")
	script := "#!/bin/sh\n[ -e " + fault + " ] && . " + fault + "\necho stdin S 0 T 0 A 0 L 0 0\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := New(t.Context(), Config{Grammar: grammar, Program: program, Decoders: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, c := range []struct{ fault, want string }{
		{"kill -SEGV $$", "segmentation fault"},
		{"echo 'ERROR: no memory' >&2; exit 3", "exit status 3: ERROR: no memory"},
		{"exec sleep 60", "no result within 300ms"},
		{"echo garbage; exit", "1 words: want UTTERANCE"},
		{"echo stdin S 0 T 0 A 0 L 0 5 -1 0 word 2; exit", `frames "5" to "2", score "-1"`},
	} {
		if err := os.WriteFile(fault, []byte(c.fault+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		hurried := *r
		if strings.Contains(c.fault, "sleep") {
			hurried.cfg.Limit = 300 * time.Millisecond
		}
		_, err := recognizertest.Listen(t.Context(), &hurried, make([]int16, 1600))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), program) {
			t.Errorf("%s: %v, want %q and the program", c.fault, err, c.want)
		}
		if err := os.Remove(fault); err != nil {
			t.Fatal(err)
		}
		if _, err := recognizertest.Listen(t.Context(), r, make([]int16, 1600)); err != nil {
			t.Errorf("after %s: %v", c.fault, err)
		}
	}
	r.slots <- struct{}{} // all decoders are busy
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := recognizertest.Listen(ctx, r, make([]int16, 1600)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("all busy: %v, want the deadline", err)
	}
}

// TestPartsGo: a program, a model or a folder of temporary files that is gone while the recogniser runs is named by the error of an utterance and of Check,
// which is no result without words; as soon as it is back, the next utterance is decoded.
func TestPartsGo(t *testing.T) {
	dir := t.TempDir()
	program, models, temporary := filepath.Join(dir, "decoder"), filepath.Join(dir, "models"), filepath.Join(dir, "tmp")
	installed, err := exec.LookPath("pocketsphinx_batch")
	if err := errors.Join(err, os.WriteFile(program, []byte("#!/bin/sh\nexec "+installed+" \"$@\"\n"), 0o700), os.Mkdir(temporary, 0o700),
		os.Symlink("/usr/share/pocketsphinx/model/en-us", models)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temporary)
	r, err := New(t.Context(), Config{Grammar: grammar, Program: program, Models: models})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	away := func(path string) (back func() error) {
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		return func() error { return os.Rename(path+".away", path) }
	}
	for _, c := range []struct {
		name, want string
		goes       func() (back func() error)
	}{
		{"the program is removed", program + ": no such file", func() func() error { return away(program) }},
		{"the program cannot be executed", program + ": permission denied", func() func() error {
			if err := os.Chmod(program, 0o600); err != nil {
				t.Fatal(err)
			}
			return func() error { return os.Chmod(program, 0o700) }
		}},
		{"the model is removed", program + ": ", func() func() error { return away(models) }},
		{"no file can be written", "files of a grammar: ", func() func() error {
			back := away(temporary)
			if err := os.WriteFile(temporary, nil, 0o600); err != nil { // in place of the folder
				t.Fatal(err)
			}
			return func() error { return errors.Join(os.Remove(temporary), back()) }
		}},
		{"the temporary files are removed", "", func() func() error { // they are written again
			if err := os.RemoveAll(temporary); err != nil {
				t.Fatal(err)
			}
			return func() error { return nil }
		}},
	} {
		back := c.goes()
		began := time.Now()
		_, heard := recognizertest.Listen(t.Context(), r, make([]int16, recognizer.Rate/10))
		for _, err := range []error{heard, r.Check(t.Context())} {
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			}
		}
		if took := time.Since(began); took > 2*r.cfg.Limit {
			t.Errorf("%s: errors after %v", c.name, took)
		}
		if err := back(); err != nil {
			t.Fatal(err)
		}
		if _, err := recognizertest.Listen(t.Context(), r, make([]int16, recognizer.Rate/10)); err != nil {
			t.Errorf("after %s: %v", c.name, err)
		}
	}
}

func TestNewFails(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"no program", Config{Grammar: grammar, Program: "/nowhere/decoder"}, "packages pocketsphinx"},
		{"no model", Config{Grammar: grammar, Models: "/nowhere"}, "package pocketsphinx-en-us"},
		{"no grammar", Config{Grammar: "nonsense"}, "ERROR"},
		{"no meaning", Config{Grammar: grammar, Model: func(map[string]float64) string { return "" }}, "no meaning of sentences"},
	} {
		if _, err := New(t.Context(), c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// Digital silence gets noise 30 dB below the utterance, speech stays what it is, and silence alone stays silent.
func TestRoom(t *testing.T) {
	noise := room()
	loud := make([]int16, 4*recognizer.Rate)
	for i := range loud[:len(loud)/2] {
		loud[i] = 20000
	}
	loud[1], loud[2] = 32767, -32768
	pcm := recognizer.AppendPCM(nil, loud)
	got := recognizertest.Samples(withRoom(pcm, noise))
	level := func(s []int16) float64 {
		var sum float64
		for _, v := range s {
			sum += float64(v) * float64(v)
		}
		return math.Sqrt(sum / float64(len(s)))
	}
	if db := 20 * math.Log10(level(loud)/level(got[len(got)/2:])); math.Abs(db-30) > 0.5 {
		t.Errorf("noise %.1f dB below, want 30", db)
	}
	if len(got) != len(loud) || got[1] < 30000 || got[2] > -30000 || math.Abs(float64(got[3])-20000) > 3000 {
		t.Errorf("%d samples, %v", len(got), got[:4])
	}
	if !bytes.Equal(withRoom(pcm, noise), withRoom(pcm, room())) {
		t.Error("an utterance gets another noise the second time")
	}
	for _, pcm := range [][]byte{nil, make([]byte, 64)} {
		if got := withRoom(pcm, noise); !bytes.Equal(got, pcm) {
			t.Errorf("silence became %v", got)
		}
	}
}

func TestJudge(t *testing.T) {
	sil := func(start, end int) segment { return segment{"<sil>", start, end, -5, 0} }
	for _, c := range []struct {
		name          string
		words, phones []segment
		text          string
		sure          bool
	}{
		{"nothing", nil, nil, "", false},
		{"silence", []segment{sil(0, 50)}, []segment{{"SIL", 0, 50, -5, 0}}, "", false},
		{"said", []segment{sil(0, 20), {"go", 20, 50, -20, 0}, {"(NULL)", 50, 51, -20, 0}, {"to(2)", 51, 80, -20, 0}}, []segment{{"SIL", 0, 20, -5, 0}, {"G", 20, 80, -10, 0}}, "go to", true},
		{"said badly", []segment{{"go", 0, 60, -60, 0}}, []segment{{"G", 0, 60, -10, 0}}, "go", false},
		{"one word of two is another", []segment{{"go", 0, 100, -15, 0}, {"left", 100, 130, -90, 0}}, []segment{{"G", 0, 130, -10, 0}}, "go left", false},
		{"more said than heard", []segment{{"no", 0, 40, -10, 0}, sil(40, 120)}, []segment{{"N", 0, 100, -5, 0}}, "no", false},
	} {
		if text, sure := judge(c.words, c.phones, quiet, ofGrammar); text != c.text || sure >= 0.5 != c.sure || sure < 0 || sure > 1 {
			t.Errorf("%s: %q %v, want %q, sure %v", c.name, text, sure, c.text, c.sure)
		}
	}
}

// Words of the language model that are seldom said after one another need a better sound.
func TestJudgeLikely(t *testing.T) {
	phones := []segment{{"G", 0, 80, -20, 0}}
	last := 1.0
	for _, likely := range []float64{-100, -300, -600} {
		words := []segment{{"go", 0, 40, -30, likely}, {"left", 40, 80, -30, likely}, {"</s>", 80, 90, -5, likely}}
		_, sure := judge(words, phones, quiet, ofWishes)
		if sure >= last || sure >= 0.5 != (likely > -300) {
			t.Errorf("likely %v: %v, before %v", likely, sure, last)
		}
		last = sure
	}
}

// means knows one wish of TestModel; what is in the grammar alone is of a custom intent.
func means(text string) (string, bool) {
	if strings.HasPrefix(text, "spin") {
		return "spin", true
	}
	return "", false
}

// A sentence that is not in the grammar is heard by the language model, which gets the words that have a pronunciation; what is in neither is not understood.
func TestModel(t *testing.T) {
	model := func(general map[string]float64) string {
		if general["the"] < 1000*general["zebra"] || general["wheelie"] != 0 || general["the"] < 0.02 || general["the"] > 0.1 {
			t.Errorf("the %v, zebra %v, wheelie %v", general["the"], general["zebra"], general["wheelie"])
		}
		if _, known := general["qwxzt"]; known {
			t.Error("qwxzt has a pronunciation")
		}
		return "\\data\\\nngram 1=6\nngram 2=6\n\n\\1-grams:\n-99 <s> -1\n-1.5 </s> 0\n-1 spin -1\n-1 like -1\n-1 a -1\n-1 top -1\n\n\\2-grams:\n" +
			"-0.1 <s> spin\n-0.1 spin like\n-0.1 like a\n-0.1 a top\n-0.1 top </s>\n-1 <s> a\n\n\\end\\\n"
	}
	r, err := New(t.Context(), Config{Grammar: grammar, Model: model, Means: means, Limit: time.Minute, Pronunciations: map[string]string{"wheelie": "W IY L IY"}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, c := range []struct{ say, want string }{{"spin like a top", "spin like a top"}, {"go forward", "go forward"}, {"there is a spider in the bathroom", ""}} {
		if got, err := recognizertest.Listen(t.Context(), r, recognizertest.Say(t, "slt", c.say, 0)); err != nil || got.Text != c.want {
			t.Errorf("%q: %+v, %v, want %q", c.say, got, err, c.want)
		}
	}
}

// TestModelLate: words that come too late from the language model cost nothing that the grammar has.
func TestModelLate(t *testing.T) {
	program := filepath.Join(t.TempDir(), "decoder")
	script := "#!/bin/sh\n[ -e " + program + ".late ] && case \"$*\" in *' -lm '*) exec sleep 600;; esac\nexec pocketsphinx_batch \"$@\"\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := New(t.Context(), Config{Grammar: grammar, Program: program, Limit: 9 * time.Second, Means: means, Model: func(map[string]float64) string {
		return "\\data\\\nngram 1=3\nngram 2=1\n\n\\1-grams:\n-99 <s> -1\n-1 </s> 0\n-1 stop -1\n\n\\2-grams:\n-0.1 <s> stop\n\n\\end\\\n"
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.WriteFile(program+".late", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := recognizertest.Listen(t.Context(), r, recognizertest.Say(t, "slt", "go forward", 0)); err != nil || got.Text != "go forward" {
		t.Errorf("%+v, %v, want go forward", got, err)
	}
}

func TestGeneral(t *testing.T) {
	b, err := os.ReadFile("/usr/share/pocketsphinx/model/en-us/" + generalFile)
	if err != nil {
		t.Fatal(err)
	}
	words, err := general(b)
	if err != nil || len(words) != 72547 || words[len(words)-1].text != "zyuganov's" {
		t.Fatalf("%d words, %v", len(words), err)
	}
	for _, broken := range [][]byte{nil, b[:19], b[:1000], b[:len(b)-1], []byte("Trie Language Model\x02")} {
		if words, err := general(broken); !errors.Is(err, errGeneral) {
			t.Errorf("%d bytes: %d words, %v", len(broken), len(words), err)
		}
	}
}

func FuzzGeneral(f *testing.F) {
	f.Add(uint32(2), slices.Concat(make([]byte, 24), []byte("one\x00two\x00")))
	tables := make([]byte, 12+3*65536*4)
	f.Fuzz(func(t *testing.T, n uint32, rest []byte) {
		head := binary.LittleEndian.AppendUint32([]byte("Trie Language Model\x03"), n)
		if words, err := general(slices.Concat(head, tables, rest)); err == nil && len(words) != int(n) {
			t.Errorf("%d words, want %d", len(words), n)
		}
	})
}

// A sentence that was understood in quiet is not sure enough when noise drowns it.
func TestJudgeInNoise(t *testing.T) {
	words, phones := []segment{{"go", 0, 60, -42, 0}}, []segment{{"G", 0, 60, -35, 0}}
	last := 1.0
	for _, noise := range []float64{quiet, 20, 10, 0} {
		_, sure := judge(words, phones, noise, ofGrammar)
		if sure >= last || sure >= 0.5 != (noise > 10) {
			t.Errorf("noise %v dB below: %v, before %v", noise, sure, last)
		}
		last = sure
	}
}

func TestLevel(t *testing.T) {
	noise := room()
	for _, below := range []float64{5, 10, 20, 25} { // speech: two seconds of a tone, one of nothing
		samples := make([]int16, 3*recognizer.Rate)
		for i := range samples {
			v := 200 * noise[i%len(noise)]
			if i < 2*recognizer.Rate {
				v += float32(200 * math.Sqrt2 * math.Pow(10, below/20) * math.Sin(float64(i)/3))
			}
			samples[i] = int16(v)
		}
		want := 10 * math.Log10(2*math.Pow(10, below/10)/3+1)                         // a third of the time is noise alone
		if got := level(recognizer.AppendPCM(nil, samples)); math.Abs(got-want) > 2 { // the quietest tenth is a little quieter than the mean
			t.Errorf("noise %v dB below: %v, want %v", below, got, want)
		}
	}
	for name, pcm := range map[string][]byte{"nothing": nil, "one byte": {1}, "silence": make([]byte, 9600), "a moment": make([]byte, 640)} {
		if got := level(pcm); got != quiet {
			t.Errorf("%s: %v, want %v", name, got, quiet)
		}
	}
}

func TestLexicon(t *testing.T) {
	dict, unknown := lexicon("#JSGF V1.0;\ngrammar g;\npublic <a> = /0.5/ to (go | qq) {tag} | <b>;\n<b> = o'clock;\n",
		"go G OW\nextra EH\n", "go G UH\nto T UW\nto(2) T AH\no'clock AH K L AA K\nqqq K\n")
	if want := "go G OW\nto T UW\nto(2) T AH\no'clock AH K L AA K\nqq " + unsaid + "\n"; dict != want {
		t.Errorf("dictionary %q, want %q", dict, want)
	}
	if !slices.Equal(unknown, []string{"qq"}) {
		t.Errorf("unknown %q, want qq", unknown)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("stdin S 0 T 0 A 0 L 0 0\n", "stdin S 0 T -3783 A -389 L -3394 0 -456 0 SIL 33 -56 -208 CH 44 46 -380 AE 56\n")
	f.Add("stdin S 0 T -2179 A -1505 L -674 0 -448 -337 <sil> 32 -445 0 check 63 -166 0 to(2) 73 -142 -337 <sil> 160", "")
	f.Fuzz(func(t *testing.T, a, b string) {
		words, err1 := parse(a)
		phones, err2 := parse(b)
		if err1 != nil || err2 != nil {
			return
		}
		if text, sure := judge(words, phones, level([]byte(a)), ofGrammar); !(sure >= 0 && sure <= 1) || text == "" && sure != 0 {
			t.Errorf("%q %v", text, sure)
		}
	})
}

func FuzzLexicon(f *testing.F) {
	f.Add(grammar, "go G OW\n")
	f.Fuzz(func(t *testing.T, grammar, dict string) {
		all, unknown := lexicon(grammar, dict)
		if again, more := lexicon(grammar, all); len(more) > 0 || strings.Count(again, "\n") != strings.Count(all, "\n") {
			t.Errorf("unknown %q, then %q", unknown, more)
		}
	})
}

// TestEarly: after a second of an utterance its processes have started, unless those of another one have that may decode alone. They end with it, whether it is
// decoded, given up, or turns out to be noisier than its first second.
func TestEarly(t *testing.T) {
	dir := t.TempDir()
	program, started := filepath.Join(dir, "decoder"), filepath.Join(dir, "started")
	script := "#!/bin/sh\n[ -e " + started + " ] && echo $* > " + started + "\nexec pocketsphinx_batch \"$@\"\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := New(t.Context(), Config{Grammar: grammar, Program: program, Decoders: 1, Limit: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	said := recognizertest.Say(t, "slt", "go forward", 0)
	loud := slices.Clone(said)
	for i := range loud {
		loud[i] += int16(500 * r.noise[i])
	}
	noisier := slices.Concat(said[:recognizer.Rate], loud, loud, loud)
	open := func() *stream {
		s, err := r.Open(t.Context(), recognizer.Expect{})
		if err != nil {
			t.Fatal(err)
		}
		return s.(*stream)
	}
	for name, rest := range map[string][]int16{"decoded": said[recognizer.Rate:], "noisier": noisier[recognizer.Rate:], "given up": nil} {
		if err := unix.Mkfifo(started, 0o600); err != nil {
			t.Fatal(err)
		}
		fifo, err := os.OpenFile(started, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(fifo)
		s := open()
		if err := s.Write(said[:recognizer.Rate]); err != nil || s.ready == nil {
			t.Fatalf("%s: %v, started %v", name, err, s.ready != nil)
		}
		for range 2 {
			if !lines.Scan() || !strings.Contains(lines.Text(), "-remove_noise no") {
				t.Errorf("%s: started with %q, %v", name, lines.Text(), lines.Err())
			}
		}
		other := open()
		if err := other.Write(said[:recognizer.Rate]); err != nil || other.ready != nil {
			t.Errorf("%s: %v, a second utterance started %v", name, err, other.ready != nil)
		}
		if err := errors.Join(s.Write(rest), other.Write(rest)); err != nil {
			t.Fatal(err)
		}
		if name == "decoded" {
			for _, s := range []*stream{s, other} {
				if got, err := s.Finish(); err != nil || got.Text != "go forward" {
					t.Errorf("%s: %+v, %v", name, got, err)
				}
			}
		} else if name == "noisier" {
			if level(recognizer.AppendPCM(nil, noisier)) >= noisy {
				t.Fatal("not noisy")
			}
			if _, err := s.Finish(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := errors.Join(s.Close(), other.Close(), fifo.Close(), os.Remove(started)); err != nil {
			t.Fatal(err)
		}
		if s.ready.words.cmd.ProcessState == nil || s.ready.phones.cmd.ProcessState == nil || len(r.early) != 0 || len(r.words.used) != 1 || r.words.used[grammar].decoding != 0 {
			t.Errorf("%s: processes or files are left", name)
		}
	}
}
