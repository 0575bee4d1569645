package sphinx

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// most is how many grammars besides the first have their files, of the robots that were spoken to last.
const most = 64

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
	base   *vocabulary

	mu   sync.Mutex
	used map[string]*vocabulary // by grammar, without base
	next int                    // number of a folder, or of a use
}

// Lacks returns those of the words that no dictionary has: a sentence with one of them is never heard.
func (r *Recognizer) Lacks(words []string) []string {
	grammar := "<a> ="
	for _, w := range words {
		grammar += " " + w
	}
	_, unknown := lexicon(grammar+";", r.words.own, r.words.dict)
	return unknown
}

// get returns the files of a grammar, until release.
func (all *vocabularies) get(grammar string) (*vocabulary, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	v := all.used[grammar]
	if v == nil {
		var err error
		if v, err = all.write(grammar); err != nil {
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
			if v.decoding == 0 && (oldest == "" || v.last < all.used[oldest].last) {
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

// write writes the files of a grammar.
func (all *vocabularies) write(grammar string) (*vocabulary, error) {
	all.next++
	v := &vocabulary{folder: filepath.Join(all.folder, strconv.Itoa(all.next))}
	if err := os.Mkdir(v.folder, 0o700); err != nil {
		return nil, fmt.Errorf("files of a grammar: %w", err)
	}
	var dict string
	dict, v.unknown = lexicon(grammar, all.own, all.dict)
	for name, content := range map[string]string{"dict": dict, "grammar": grammar, "list": "stdin\n"} {
		if err := os.WriteFile(filepath.Join(v.folder, name), []byte(content), 0o600); err != nil {
			return nil, fmt.Errorf("files of a grammar: %w", err)
		}
	}
	return v, nil
}
