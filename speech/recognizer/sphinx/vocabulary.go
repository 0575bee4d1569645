package sphinx

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"unicode"
	"unicode/utf8"
)

// most is how many grammars have their files: the first, and those of the robots that were spoken to last.
const most = 65

// vocabulary is a grammar and the dictionary of its words, in files.
type vocabulary struct {
	folder  string
	unknown []string

	decoding int // utterances, guarded by vocabularies.mu, as is the rest
	last     int // number of its last use
}

// vocabularies are the grammars in use.
type vocabularies struct {
	folder string // of their folders
	own    string // Pronunciations, as a dictionary
	dict   string // of English
	base   string // the first grammar, which is never forgotten
	model  string // the language model, in the ARPA format; "": none
	heard  string // the dictionary of its words

	mu   sync.Mutex
	used map[string]*vocabulary // by grammar
	next int                    // number of a folder, or of a use
}

// Lacks returns those of the words that no dictionary has: a sentence with one of them is never heard.
func (r *Recognizer) Lacks(words []string) []string {
	grammar := "<a> ="
	var out []string
	for _, w := range words {
		if first, _ := utf8.DecodeRuneInString(w); unicode.IsLetter(first) {
			grammar += " " + w
		} else {
			out = append(out, w) // a number in digits, or a slot
		}
	}
	_, unknown := lexicon(grammar+";", r.words.own, r.words.dict)
	return append(out, unknown...)
}

// get returns the files of a grammar, "" being the first, until release. It writes them again if they are gone: systems clean their /tmp.
func (all *vocabularies) get(grammar string) (v *vocabulary, err error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if grammar == "" {
		grammar = all.base
	}
	if v = all.used[grammar]; v == nil || !v.there() {
		if grammar == ofModel {
			v, err = all.write(all.model, all.heard)
		} else {
			dict, unknown := lexicon(grammar, all.own, all.dict)
			if v, err = all.write(grammar, dict); err == nil {
				v.unknown = unknown
			}
		}
		if err != nil {
			return nil, err
		}
		all.forget()
		all.used[grammar] = v
	}
	all.next++
	v.last = all.next
	v.decoding++
	return v, nil
}

func (all *vocabularies) release(v *vocabulary) {
	all.mu.Lock()
	defer all.mu.Unlock()
	v.decoding--
}

// forget makes room for a vocabulary.
func (all *vocabularies) forget() {
	for len(all.used) >= most {
		oldest := ""
		for g, v := range all.used {
			if g != all.base && g != ofModel && v.decoding == 0 && (oldest == "" || v.last < all.used[oldest].last) {
				oldest = g
			}
		}
		if oldest == "" { // each is being used
			return
		}
		_ = os.RemoveAll(all.used[oldest].folder) // Close removes all
		delete(all.used, oldest)
	}
}

// ofModel is the key of the language model among the grammars.
const ofModel = "the language model"

// The files: the first has a grammar or the language model.
const grammarFile, dictFile = "grammar", "dict"

// there reports whether the decoder finds its files.
func (v *vocabulary) there() bool {
	for _, name := range []string{grammarFile, dictFile} {
		if _, err := os.Stat(filepath.Join(v.folder, name)); err != nil {
			return false
		}
	}
	return true
}

// write writes the files of a grammar, or of the language model. It leaves none behind if that fails.
func (all *vocabularies) write(grammar, dict string) (*vocabulary, error) {
	all.next++
	v := &vocabulary{folder: filepath.Join(all.folder, strconv.Itoa(all.next))}
	if err := os.MkdirAll(v.folder, 0o700); err != nil {
		return nil, fmt.Errorf("files of a grammar: %w", err)
	}
	for name, content := range map[string]string{grammarFile: grammar, dictFile: dict} {
		if err := os.WriteFile(filepath.Join(v.folder, name), []byte(content), 0o600); err != nil {
			_ = os.RemoveAll(v.folder) // the first error says more
			return nil, fmt.Errorf("files of a grammar: %w", err)
		}
	}
	return v, nil
}
