package knowledgehttp_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"kennel/infra/errs"
	"kennel/speech/knowledge"
	"kennel/speech/knowledge/knowledgehttp"
	"kennel/speech/knowledge/local"
)

func provider(t *testing.T, answer func(question map[string]string) (code int, body string)) knowledge.Provider {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q map[string]string
		b, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(b, &q); err != nil {
			t.Errorf("asked %s", b)
		}
		code, body := answer(q)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(web.Close)
	p, err := knowledgehttp.New(web.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestContract: what is sent and what is read (VEC-NLP-04, VEC-NLP-06).
func TestContract(t *testing.T) {
	var sent map[string]string
	code, body := 200, `{"spoken":"Jarvis  is\na\u0000 butler.","source":"book","domains":["people"],"more":1}`
	p := provider(t, func(q map[string]string) (int, string) { sent = q; return code, body })
	a, err := p.Ask(t.Context(), knowledge.Question{Text: "who is jarvis", Language: "en-US", Timezone: "Europe/Berlin"})
	if want := (knowledge.Answer{Spoken: "Jarvis is a butler.", Source: "book", Domains: []string{"people"}}); err != nil || !reflect.DeepEqual(a, want) {
		t.Errorf("%+v, %v; want %+v", a, err, want)
	}
	if want := map[string]string{"text": "who is jarvis", "language": "en-US", "timezone": "Europe/Berlin"}; !reflect.DeepEqual(sent, want) {
		t.Errorf("sent %v, want %v: nothing else leaves", sent, want)
	}
	for _, c := range []struct {
		code int
		body string
	}{{204, ""}, {404, "no"}, {200, `{}`}, {200, `{"spoken":" "}`}} {
		code, body = c.code, c.body
		if _, err := p.Ask(t.Context(), knowledge.Question{Text: "x"}); !errors.Is(err, knowledge.ErrNoResult) {
			t.Errorf("%d %s: %v, want no result", c.code, c.body, err)
		}
	}
	code, body = 200, `{"spoken":"One. `+strings.Repeat("two ", 1000)+`"}`
	if a, err := p.Ask(t.Context(), knowledge.Question{Text: "x"}); err != nil || a.Spoken != "One." {
		t.Errorf("%.100q, %v; want its whole sentences", a.Spoken, err)
	}
	if _, err := p.Ask(t.Context(), knowledge.Question{Text: strings.Repeat("x", 501)}); !errors.Is(err, knowledge.ErrNoResult) {
		t.Errorf("long question: %v", err)
	}
}

// TestFirst: what is known at home is not asked outside, and a server that is away is told apart from one that does not know.
func TestFirst(t *testing.T) {
	asked, code := 0, 200
	all := knowledge.First{local.New(time.Now), provider(t, func(map[string]string) (int, string) { asked++; return code, `{"spoken":"yes"}` })}
	if a, err := all.Ask(t.Context(), knowledge.Question{Text: "what is 2 plus 2"}); err != nil || a.Source != local.Source || asked != 0 {
		t.Errorf("%+v, %v, asked outside %d times", a, err, asked)
	}
	if a, err := all.Ask(t.Context(), knowledge.Question{Text: "how is the stock market"}); err != nil || a.Spoken != "yes" {
		t.Errorf("%+v, %v", a, err)
	}
	code = 500
	if _, err := all.Ask(t.Context(), knowledge.Question{Text: "how is the stock market"}); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("%v, want unavailable", err)
	}
	code = 404
	if _, err := all.Ask(t.Context(), knowledge.Question{Text: "how is the stock market"}); !errors.Is(err, knowledge.ErrNoResult) {
		t.Errorf("%v, want no result", err)
	}
}
