package sphinx

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// frequent is how many words of general English the language model has beside its own. Without them, talk that is not for a robot would be heard as a wish.
const frequent = 4000

// generalFile is Debian's model of general English.
const generalFile = "en-us.lm.bin"

var errGeneral = errors.New("want a language model of three words in pocketsphinx's binary format")

// word is a word of a general language model.
type word struct {
	text string
	log  float64 // the natural logarithm of how frequent it is
}

// general reads the words of a language model in pocketsphinx's binary format: a header of 19 bytes, the order, three counts, the kind of quantisation, its
// tables, and a record for each word with its probability, in logarithms of base 1.0001. The texts of the words are at the end, each ended by a zero.
func general(b []byte) ([]word, error) {
	const header, tables, record = 19 + 1 + 3*4 + 4, 3 * 65536 * 4, 12
	if !bytes.HasPrefix(b, []byte("Trie Language Model\x03")) || len(b) < header+tables {
		return nil, errGeneral
	}
	n := int(binary.LittleEndian.Uint32(b[20:]))
	rest := b[header+tables:]
	if n < 1 || n > len(rest)/(record+1) {
		return nil, fmt.Errorf("%d words in %d bytes: %w", n, len(b), errGeneral)
	}
	out := make([]word, n)
	for i := range out {
		out[i].log = float64(math.Float32frombits(binary.LittleEndian.Uint32(rest[record*i:]))) * math.Log(1.0001)
	}
	texts := rest[record*n:]
	for i := n - 1; i >= 0; i-- {
		if len(texts) == 0 || texts[len(texts)-1] != 0 {
			return nil, fmt.Errorf("word %d of %d: no end: %w", i+1, n, errGeneral)
		}
		texts = texts[:len(texts)-1]
		at := bytes.LastIndexByte(texts, 0) + 1
		out[i].text, texts = string(texts[at:]), texts[:at]
	}
	return out, nil
}

// prepareModel makes the language model and its dictionary.
func (r *Recognizer) prepareModel() error {
	if r.cfg.Means == nil {
		return errors.New("a language model, and no meaning of sentences")
	}
	b, err := os.ReadFile(filepath.Join(r.cfg.Models, generalFile))
	if err != nil {
		return fmt.Errorf("%w; Debian has it in the package pocketsphinx-en-us", err)
	}
	words, err := general(b)
	if err != nil {
		return fmt.Errorf("%s: %w", generalFile, err)
	}
	slices.SortFunc(words, func(a, b word) int { return cmp.Compare(b.log, a.log) })
	freq := map[string]float64{}
	for line := range strings.Lines(r.words.own + r.words.dict) { // every word that has a pronunciation
		entry, _, _ := strings.Cut(line, " ")
		if first, _ := utf8.DecodeRuneInString(entry); unicode.IsLetter(first) && !strings.Contains(entry, "(") {
			freq[entry] = 0
		}
	}
	n := 0
	for _, w := range words {
		if _, ok := freq[w.text]; ok && n < frequent {
			freq[w.text] = math.Exp(w.log)
			n++
		}
	}
	r.words.model = r.cfg.Model(freq)
	_, list, _ := strings.Cut(r.words.model, "\\1-grams:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var of strings.Builder
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) > 1 && f[1][0] != '<' {
			of.WriteString(f[1] + " ")
		}
	}
	r.words.heard, _ = lexicon(of.String(), r.words.own, r.words.dict)
	return nil
}
