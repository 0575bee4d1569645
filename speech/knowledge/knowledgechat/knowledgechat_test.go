package knowledgechat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/speech/knowledge"
)

const rex = thing.ID("vic:00e20100")

// memory is of a robot whose owner allows talks.
type memory struct {
	mu   sync.Mutex
	talk knowledge.Talk
	err  error
}

func (m *memory) Recall(context.Context, thing.ID) (knowledge.Talk, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.talk, m.err
}

func (m *memory) Remember(_ context.Context, _ thing.ID, t knowledge.Turn) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.talk.Turns = append(m.talk.Turns, t)
	return nil
}

// model is a server with OpenAI's chat completions: it streams the words, and then does what then does.
type model struct {
	asked  []map[string]any
	key    string
	words  []string
	finish string // reason; "": none is told
	then   func(w http.ResponseWriter, r *http.Request)
	code   int
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q map[string]any
	_ = json.NewDecoder(r.Body).Decode(&q) // the test looks at it
	m.asked, m.key = append(m.asked, q), r.URL.Path+" "+r.Header.Get("Authorization")
	if m.code != 0 {
		w.WriteHeader(m.code)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"no %v with key s3cret"}}`, q["messages"])
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, word := range m.words {
		b, _ := json.Marshal(word)
		_, _ = fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":null}]}\n\n", b)
		w.(http.Flusher).Flush()
	}
	if m.then != nil {
		m.then(w, r)
	}
	if m.finish != "" {
		_, _ = fmt.Fprintf(w, "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", m.finish)
	}
}

func (m *model) provider(t *testing.T, mem *memory) *Provider {
	t.Helper()
	web := httptest.NewServer(m)
	t.Cleanup(web.Close)
	p, err := New(web.URL+"/v1", "llama3.2:3b", "s3cret", mem, func() time.Time { return time.Date(2026, 11, 28, 14, 0, 0, 0, time.UTC) })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestTalk: what the model is told, and what is remembered (issue 31.4).
func TestTalk(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "of another server")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	m := &model{words: []string{"<think>hmm. ", "</think>**42**", ", of", " course. 🤖\n"}, finish: "stop"}
	mem := &memory{talk: knowledge.Talk{Allowed: true, Persona: "You are a pirate.", Turns: []knowledge.Turn{{Asked: "who are you", Said: "Rex."}}}}
	p := m.provider(t, mem)
	a, err := p.Ask(t.Context(), knowledge.Question{Text: "what is the meaning of life", Language: "en-GB", Timezone: "Etc/GMT-1", Thing: rex})
	if err != nil || a.Spoken != "42, of course." || a.Source != Source || a.Partial {
		t.Errorf("%+v, %v", a, err)
	}
	said, _ := json.Marshal(m.asked[0]["messages"])
	for _, want := range []string{"You are a pirate.", "language en-GB", "Saturday, 28 November 2026, 15:00", `"content":"who are you","role":"user"`, `"content":"Rex.","role":"assistant"`, `"content":"what is the meaning of life","role":"user"`} {
		if !strings.Contains(string(said), want) {
			t.Errorf("the model was told %s; want %s", said, want)
		}
	}
	if m.asked[0]["model"] != "llama3.2:3b" || m.asked[0]["stream"] != true || m.key != "/v1/chat/completions Bearer s3cret" || strings.Contains(fmt.Sprint(m.asked), "00e20100") {
		t.Errorf("asked %v with %s", m.asked, m.key)
	}
	if n := len(mem.talk.Turns); n != 2 || mem.talk.Turns[1].Said != "42, of course." || mem.talk.Turns[1].Asked != "what is the meaning of life" {
		t.Errorf("remembers %+v", mem.talk.Turns)
	}
	if a, err := p.Ask(t.Context(), knowledge.Question{Text: "and why", Thing: rex, Forget: true}); err != nil || a.Spoken == "" || len(mem.talk.Turns) != 2 || strings.Contains(fmt.Sprint(m.asked[1]), "who are you") {
		t.Errorf("a request of which nothing may be kept: %+v, %v, remembers %+v", a, err, mem.talk.Turns)
	}
	for name, q := range map[string]knowledge.Question{"unproven": {Text: "x"}, "empty": {Thing: rex}, "a novel": {Thing: rex, Text: strings.Repeat("x", 501)}} {
		if _, err := p.Ask(t.Context(), q); !errors.Is(err, knowledge.ErrNoResult) || len(m.asked) != 2 {
			t.Errorf("%s: %v, asked %d", name, err, len(m.asked))
		}
	}
	mem.talk.Allowed = false
	if _, err := p.Ask(t.Context(), knowledge.Question{Text: "x", Thing: rex}); !errors.Is(err, knowledge.ErrNoResult) || len(m.asked) != 2 {
		t.Errorf("an owner who allows nothing: %v, asked %d", err, len(m.asked))
	}
	mem.err = errors.New("the database is away")
	if _, err := p.Ask(t.Context(), knowledge.Question{Text: "x", Thing: rex}); errs.KindOf(err) != errs.Unavailable || len(m.asked) != 2 {
		t.Errorf("an owner who cannot be asked: %v, asked %d", err, len(m.asked))
	}
}

// TestBadModels: an answer that did not come whole ends with its last whole sentence or is told as not known; it is neither remembered nor called whole.
func TestBadModels(t *testing.T) {
	stall := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	say := func(s string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
	}
	for name, c := range map[string]struct {
		m    model
		want string // "": an error
		err  string
	}{
		"stalls at once":              {m: model{then: stall}, err: "in time"},
		"stalls in a sentence":        {m: model{words: []string{"Rome is old. Many", " people"}, then: stall}, want: "Rome is old."},
		"stalls in the first one":     {m: model{words: []string{"Rome is"}, then: stall}, err: "in time"},
		"ends in a sentence":          {m: model{words: []string{"Rome is old. Many"}}, want: "Rome is old."},
		"ends in the first one":       {m: model{words: []string{"Rome is"}}, err: "too early"},
		"ends after a title":          {m: model{words: []string{"Ask Dr. "}}, err: "too early"},
		"ends after a number":         {m: model{words: []string{"It has 3."}}, err: "too early"},
		"ends in a number":            {m: model{words: []string{"Rome is old! It has 2.8 million"}}, want: "Rome is old!"},
		"ends after a sentence":       {m: model{words: []string{"Rome is old. It is big."}}, want: "Rome is old. It is big."},
		"ends in a thought":           {m: model{words: []string{"<think>Rome is old. Is it?"}}, err: "too early"},
		"hangs up":                    {m: model{words: []string{"Rome is old. Ma"}, then: hangUp}, want: "Rome is old."},
		"hangs up at once":            {m: model{then: hangUp}, err: "cannot be reached"},
		"broken JSON":                 {m: model{words: []string{"Rome is old. Ma"}, then: say("data: {\"choices\":[{\n\n")}, want: "Rome is old."},
		"broken JSON at once":         {m: model{then: say("data: {\"cho\n\n")}, err: "cannot be read"},
		"no JSON":                     {m: model{then: say("<html>Rome</html>\n\n")}, err: "too early"},
		"an error in the stream":      {m: model{words: []string{"Rome is old. Ma"}, then: say("data: {\"error\":{\"message\":\"out of memory s3cret\"}}\n\n")}, want: "Rome is old."},
		"too few tokens":              {m: model{words: []string{"Rome is old. Ma"}, finish: "length"}, want: "Rome is old."},
		"filtered":                    {m: model{words: []string{"Rome"}, finish: "content_filter"}, err: "too early"},
		"says nothing":                {m: model{finish: "stop"}, err: "no result"},
		"no such model":               {m: model{code: 404}, err: "status 404"},
		"wrong key":                   {m: model{code: 401}, err: "status 401"},
		"in trouble":                  {m: model{code: 500}, err: "status 500"},
		"does not stop":               {m: model{words: []string{"Rome is old. " + strings.Repeat("Blah blah ", 3000)}, then: stall}, want: "Rome is old."},
		"one long sentence, all told": {m: model{words: []string{strings.Repeat("blah ", 500)}, finish: "stop"}, err: "no result"},
	} {
		mem := &memory{talk: knowledge.Talk{Allowed: true}}
		p := c.m.provider(t, mem)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond) // the rest of the time that a robot waits
		a, err := p.Ask(ctx, knowledge.Question{Text: "what is Rome", Thing: rex})
		cancel()
		if a.Spoken != c.want || (err == nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.err) || err == nil && !a.Partial || len(mem.talk.Turns) != 0 {
			t.Errorf("%s: %+v, %v; want %q, %q; remembers %v", name, a, err, c.want, c.err, mem.talk.Turns)
		}
		if err != nil && (strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "Rome") || len(c.m.asked) > 1) {
			t.Errorf("%s: %v after %d requests: want neither key nor words, and one request", name, err, len(c.m.asked))
		}
	}
	for _, address := range []string{"", "127.0.0.1:11434", "ftp://x/v1"} {
		if _, err := New(address, "m", "", nil, time.Now); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q: %v, want invalid", address, err)
		}
	}
}

// FuzzSpoken: whatever a model says, what is spoken has a size, no control characters and no thoughts, and of an answer that ended early only whole sentences.
func FuzzSpoken(f *testing.F) {
	f.Add("Rome is old. Many", false)
	f.Add("<think>Dr. Who? </think>It is 2.8 m.\n* big! 🤖", true)
	f.Add(strings.Repeat("Ah. ", 400), true)
	f.Fuzz(func(t *testing.T, s string, whole bool) {
		p := plain(s)
		got := sentences(p, whole)
		if len(got) > knowledge.MaxAnswer || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\x00<*") || !strings.HasPrefix(p, got) {
			t.Errorf("%q: %q", s, got)
		}
		if !whole && got != "" && !strings.HasSuffix(got, ".") && !strings.HasSuffix(got, "!") && !strings.HasSuffix(got, "?") && !strings.HasSuffix(got, "。") {
			t.Errorf("%q: %q is no sentence", s, got)
		}
	})
}
