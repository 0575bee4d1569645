// Package knowledgehttp asks a server of the house for answers. The contract is small, so that a few lines before any language model or search
// engine meet it:
//
//	POST URL {"text": "who is Jarvis", "language": "en-US", "timezone": "Europe/Berlin"}
//	200 {"spoken": "Jarvis is ...", "source": "encyclopedia", "domains": ["people"]}
//	204, 404 or an empty "spoken": no result
//
// The question names neither the robot nor a person.
package knowledgehttp

import (
	"context"
	"strings"
	"time"
	"unicode"

	"kennel/infra/errs"
	"kennel/infra/httpjson"
	"kennel/infra/logging"
	"kennel/speech/knowledge"
)

// limit is how long the server may take: the robot waits 9 s for the whole.
const limit = 4 * time.Second

const (
	maxDomains = 8
	maxDomain  = 64
)

// Provider is a knowledge.Provider.
type Provider struct{ *httpjson.Server }

// New returns the provider at an address; token is shown as a bearer token.
func New(address string, token logging.Secret) (Provider, error) {
	s, err := httpjson.New("knowledge server", address, token, limit)
	return Provider{s}, err
}

type question struct {
	Text     string `json:"text"`
	Language string `json:"language,omitempty"`
	Timezone string `json:"timezone,omitempty"`
}

// Ask implements knowledge.Provider. A long answer is cut at the end of a sentence.
func (p Provider) Ask(ctx context.Context, q knowledge.Question) (knowledge.Answer, error) {
	if q.Text == "" || len(q.Text) > knowledge.MaxQuestion {
		return knowledge.Answer{}, knowledge.ErrNoResult
	}
	var a struct {
		Spoken  string   `json:"spoken"`
		Source  string   `json:"source"`
		Domains []string `json:"domains"`
	}
	err := p.Post(ctx, question{q.Text, q.Language, q.Timezone}, &a)
	if err != nil && errs.KindOf(err) == errs.NotFound {
		return knowledge.Answer{}, knowledge.ErrNoResult
	}
	if err != nil {
		return knowledge.Answer{}, err
	}
	out := knowledge.Answer{Spoken: cut(plain(a.Spoken), knowledge.MaxAnswer), Source: cut(plain(a.Source), maxDomain)}
	for _, d := range a.Domains[:min(len(a.Domains), maxDomains)] {
		out.Domains = append(out.Domains, cut(plain(d), maxDomain))
	}
	if out.Spoken == "" {
		return knowledge.Answer{}, knowledge.ErrNoResult
	}
	return out, nil
}

// plain is text with single blanks and nothing that cannot be spoken.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.Join(strings.Fields(s), " ")
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	s = strings.ToValidUTF8(s[:most], "")
	if i := strings.LastIndex(s, ". "); i > 0 {
		return s[:i+1]
	}
	if i := strings.LastIndex(s, " "); i > 0 {
		return s[:i]
	}
	return s
}
