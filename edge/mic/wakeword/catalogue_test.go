package wakeword

import (
	"encoding/json"
	"path"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"kennel/edge/mic"
)

const catalogue = `{
 "alexa_pryon": [{"modelList": [{"dataDirectory": "pryon", "modelType": "size_50kb", "netFileName": "NA", "searchFileList": []}]}],
 "hey_vector_thf": [
  {"defaultModelType": "size_1mb", "locale": "en-US", "modelList": [
   {"dataDirectory": "thf/en", "defaultSearchFileIndex": 2, "modelType": "size_500kb", "netFileName": "small.raw", "searchFileList": [
    {"searchFileIndex": 1, "searchFileList": "NA"}, {"searchFileIndex": 2, "searchFileList": "search2.raw"}]},
   {"dataDirectory": "thf/en", "defaultSearchFileIndex": 0, "modelType": "size_1mb", "netFileName": "big.raw", "searchFileList": [
    {"searchFileIndex": 0, "searchFileName": "search.raw"}]}]},
  {"defaultModelType": "none", "locale": "de-DE", "modelList": [{"dataDirectory": "thf/de", "modelType": "size_1mb", "netFileName": "de.raw"}]}]}`

// TestCatalogue: the model for the locale is chosen, with fall-backs, and the search file under either key (VEC-WAK-03).
func TestCatalogue(t *testing.T) {
	c, err := ParseCatalogue([]byte(catalogue))
	if err != nil {
		t.Fatal(err)
	}
	big := Chosen{"en-US", "size_1mb", "thf/en/big.raw", "thf/en/search.raw"}
	de := Chosen{"de-DE", "size_1mb", "thf/de/de.raw", ""}
	for _, tc := range []struct {
		key, locale, size string
		want              Chosen
	}{
		{HeyVectorTHF, "en-US", "", big}, {HeyVectorTHF, "en-GB", "", big}, {HeyVectorTHF, "ja-JP", "size_9", big}, {HeyVectorTHF, "", "", big},
		{HeyVectorTHF, "en-us", "size_500kb", Chosen{"en-US", "size_500kb", "thf/en/small.raw", "thf/en/search2.raw"}},
		{HeyVectorTHF, "de-AT", "", de}, {AlexaPryon, "fr-FR", "", Chosen{"en-US", "size_50kb", "", ""}},
	} {
		if got, ok := c.Choose(tc.key, tc.locale, tc.size); !ok || got != tc.want {
			t.Errorf("%s %s %s: %+v, want %+v", tc.key, tc.locale, tc.size, got, tc.want)
		}
	}
	if _, ok := c.Choose(AlexaTHF, "en-US", ""); ok {
		t.Error("a model of a key that is not there")
	}
	for in, want := range map[string]string{
		`[]`: "wake word catalogue: json", `{"x":[{}]}`: "x, entry 0: no models",
		`{"x":[{"modelList":[{"netFileName":"../a"}]}]}`:                                `file "../a" is outside`,
		`{"x":[{"modelList":[{"searchFileList":[{"searchFileList":"/etc/passwd"}]}]}]}`: `file "/etc/passwd" is outside`,
	} {
		if _, err := ParseCatalogue([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

// FuzzCatalogue: a catalogue is refused, or chooses something of each key, within its folder, and reads the same when written.
func FuzzCatalogue(f *testing.F) {
	f.Add([]byte(catalogue))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCatalogue(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		d, err := ParseCatalogue(again)
		if err != nil {
			t.Fatal(err)
		}
		for key := range c {
			a, ok := c.Choose(key, "fr-CA", "size_1mb")
			b, _ := d.Choose(key, "fr-CA", "size_1mb")
			if ok != (len(c[key]) > 0) || !reflect.DeepEqual(a, b) || strings.HasPrefix(a.Net, "/") || strings.HasPrefix(a.Net, "..") {
				t.Fatalf("%+v, %+v, %v", a, b, ok)
			}
		}
	})
}

// counter is a detector that hears the word in its 30th chunk.
type counter struct{ chunks, resets int }

func (c *counter) Feed(s []int16) (Hit, bool) {
	c.chunks++
	return Hit{Begin: 0, End: uint64(c.chunks * len(s))}, c.chunks == 30
}
func (c *counter) Reset() { c.chunks, c.resets = 0, c.resets+1 }

// TestGated: the detector hears a voice, what was just before it, and nothing else (VEC-WAK-01).
func TestGated(t *testing.T) {
	var d counter
	g := NewGated(&d)
	feed := func(chunks int, c mic.Chunk) (hits []Hit) {
		for range chunks {
			if h, ok := g.Hear(&c); ok {
				hits = append(hits, h)
			}
		}
		return hits
	}
	if h := feed(100, mic.Chunk{}); len(h) > 0 || d.chunks > 0 {
		t.Errorf("without a voice: %v, %d chunks", h, d.chunks)
	}
	h := feed(10, mic.Chunk{Voice: true})
	if want := (Hit{Begin: 75 * mic.ChunkSamples, End: 105 * mic.ChunkSamples}); len(h) != 1 || h[0] != want || d.chunks != preRoll+10 {
		t.Errorf("%+v, %d chunks; want %+v", h, d.chunks, want)
	}
	g.Reset()
	if feed(1, mic.Chunk{Voice: true}); d.chunks != 1 || g.heard != mic.ChunkSamples {
		t.Errorf("after a gap %d chunks, %d samples", d.chunks, g.heard)
	}
	feed(30, mic.Chunk{})
	feed(8, mic.Chunk{Own: true})
	if feed(2, mic.Chunk{Voice: true}); d.chunks > 2+8 {
		t.Errorf("after our own sound %d chunks", d.chunks)
	}
}

// TestLoad: the robot's own model comes before the catalogue's, and that before the built-in one; a file of a vendor's detector is none of ours.
func TestLoad(t *testing.T) {
	own, listed := Default(), Default()
	own.Word, listed.Word = "own", "listed"
	dir := path.Dir(ResourceDir + CatalogueFile)
	files := fstest.MapFS{ResourceDir + CatalogueFile: {Data: []byte(catalogue)}}
	for _, tc := range []struct {
		name, file string
		data       []byte
		word, err  string
	}{
		{"nothing", "", nil, "hey vector", "thf/en/big.raw"},
		{"a vendor's", dir + "/thf/en/big.raw", []byte("THF"), "hey vector", "want KWS1"},
		{"ours", dir + "/thf/en/big.raw", listed.Append(nil), "listed", ""},
		{"a damaged one", OwnFile, []byte("KWS1\x00"), "listed", "truncated header"},
		{"the robot's own", OwnFile, own.Append(nil), "own", ""},
	} {
		if tc.file != "" {
			files[tc.file] = &fstest.MapFile{Data: tc.data}
		}
		m, err := Load(files, "en-AU")
		if m.Word != tc.word || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %q, %v; want %q, %q", tc.name, m.Word, err, tc.word, tc.err)
		}
	}
	if m, err := Load(fstest.MapFS{}, ""); m.Word != "hey vector" || err != nil {
		t.Errorf("a robot without files: %q, %v", m.Word, err)
	}
}
