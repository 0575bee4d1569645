// Package knowledgechat asks a language model for answers: any server that speaks OpenAI's chat completions, such as Ollama, llama.cpp or vLLM. The
// server gets the question, the persona of the robot and what it remembers, all in words; it is told neither robot nor person.
package knowledgechat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/speech/knowledge"
)

// Bounds.
const (
	limit     = 7 * time.Second        // of an answer; the caller's context is usually shorter: a robot waits 9 s for the whole
	recall    = 500 * time.Millisecond // of that, for the memory
	maxTokens = 250                    // of an answer, about 1000 bytes
	maxStream = 16 << 10               // bytes, with the thoughts of models that think aloud
)

// Source is the source of these answers.
const Source = "language model"

// Provider is a knowledge.Provider. Safe for concurrent use.
type Provider struct {
	chat   openai.ChatCompletionService
	model  string
	memory knowledge.Memory
	now    func() time.Time
}

// New returns the provider at an address that ends before /chat/completions, such as http://127.0.0.1:11434/v1. key is shown as a bearer token; "" shows
// none.
func New(address, model string, key logging.Secret, memory knowledge.Memory, now func() time.Time) (*Provider, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || model == "" {
		return nil, errs.New(errs.Invalid, "language model %.80q at %.200q: want a name and an address such as http://127.0.0.1:11434/v1", model, address)
	}
	// The service is made by itself: openai.NewClient would take keys and addresses from the environment.
	opts := []option.RequestOption{option.WithBaseURL(strings.TrimSuffix(address, "/") + "/"), option.WithHTTPClient(http.DefaultClient), option.WithMaxRetries(0)}
	if key != "" {
		opts = append(opts, option.WithAPIKey(key.Reveal()))
	}
	return &Provider{openai.NewChatCompletionService(opts...), model, memory, now}, nil
}

// Ask implements knowledge.Provider. An answer that did not come whole ends with its last whole sentence and is Partial; without one it is an error.
func (p *Provider) Ask(ctx context.Context, q knowledge.Question) (knowledge.Answer, error) {
	if q.Text == "" || len(q.Text) > knowledge.MaxQuestion || q.Thing == "" {
		return knowledge.Answer{}, knowledge.ErrNoResult
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	recalling, stop := context.WithTimeout(ctx, recall)
	talk, err := p.memory.Recall(recalling, q.Thing)
	stop()
	if err != nil {
		return knowledge.Answer{}, errs.New(errs.Unavailable, "recall the talk with a robot: %w", err)
	}
	if !talk.Allowed {
		return knowledge.Answer{}, knowledge.ErrNoResult
	}
	if q.Forget {
		talk.Turns = nil
	}
	said, whole, err := p.stream(ctx, p.messages(q, talk))
	spoken := sentences(plain(said), whole)
	switch {
	case spoken == "" && err == nil:
		return knowledge.Answer{}, knowledge.ErrNoResult
	case spoken == "":
		return knowledge.Answer{}, err
	}
	if whole && !q.Forget {
		_ = p.memory.Remember(ctx, q.Thing, knowledge.Turn{At: p.now(), Asked: q.Text, Said: spoken}) // the answer is good without it
	}
	return knowledge.Answer{Spoken: spoken, Source: Source, Partial: !whole}, nil
}

// messages are what the model is told.
func (p *Provider) messages(q knowledge.Question, talk knowledge.Talk) []openai.ChatCompletionMessageParamUnion {
	zone, err := time.LoadLocation(q.Timezone)
	if err != nil {
		zone = time.UTC
	}
	say := fmt.Sprintf("You are a small robot at home. A person asks you something, and you say your answer aloud, in the language %s: one to three short sentences of plain "+
		"text, without lists, signs or emoji. If you do not know, say so. It is %s.", cmp.Or(q.Language, "en-US"), p.now().In(zone).Format("Monday, 2 January 2006, 15:04"))
	if talk.Persona != "" {
		say += " Your owner says of you: " + talk.Persona
	}
	out := []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(say)}
	for _, t := range talk.Turns {
		out = append(out, openai.UserMessage(t.Asked), openai.AssistantMessage(t.Said))
	}
	return append(out, openai.UserMessage(q.Text))
}

// stream returns what the model says, and whether that is all: the server says so. Errors tell neither words nor key.
func (p *Provider) stream(ctx context.Context, messages []openai.ChatCompletionMessageParamUnion) (said string, whole bool, err error) {
	st := p.chat.NewStreaming(ctx, openai.ChatCompletionNewParams{Model: p.model, Messages: messages, MaxTokens: openai.Int(maxTokens)})
	defer func() { _ = st.Close() }() // what it said was read
	var b strings.Builder
	for st.Next() {
		for _, c := range st.Current().Choices {
			if c.Index != 0 {
				continue
			}
			b.WriteString(c.Delta.Content)
			if whole = c.FinishReason == "stop"; whole || b.Len() > maxStream {
				return b.String(), whole, nil
			}
		}
	}
	var refused *openai.Error
	switch err := st.Err(); {
	case ctx.Err() != nil:
		return b.String(), false, errs.New(errs.Unavailable, "the language model did not answer in time")
	case errors.As(err, &refused):
		return "", false, errs.New(errs.Unavailable, "the language model answered with status %d", refused.StatusCode)
	case err != nil && b.Len() == 0:
		return "", false, errs.New(errs.Unavailable, "the language model cannot be reached, or its answer cannot be read")
	}
	return b.String(), false, errs.New(errs.Unavailable, "the answer of the language model ended too early")
}

// plain returns what can be spoken of an answer: without thoughts, marks and signs, with single blanks.
func plain(s string) string {
	for {
		before, rest, found := strings.Cut(s, "<think>")
		if !found {
			break
		}
		_, after, _ := strings.Cut(rest, "</think>")
		s = before + after
	}
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r):
			return ' '
		case strings.ContainsRune("*_`#~|<>", r) || unicode.Is(unicode.So, r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))), " ")
}

// sentences returns s if it is whole and short enough to be spoken, else its whole sentences: "" if there is none.
func sentences(s string, whole bool) string {
	if whole && len(s) <= knowledge.MaxAnswer {
		return s
	}
	end, word := 0, 0 // of the text so far: the end of its sentences, and the begin of the last word
	for i, r := range s {
		after := i + utf8.RuneLen(r)
		switch {
		case after > knowledge.MaxAnswer:
			return s[:end]
		case r == ' ':
			word = after
		case after < len(s) && s[after] != ' ' && r != '。': // within a word
		case r == '!', r == '?', r == '。', r == '.' && i-word > 2 && !strings.ContainsAny(s[word:i], "0123456789"): // not "Dr." or "3.", of which the rest never came
			end = after
		}
	}
	return s[:end]
}
