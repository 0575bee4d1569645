package mail

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/mail"
	"path"
	"regexp"
	"strings"
	texttemplate "text/template"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// Each letter is one block of letters/<language>.txt: a line "== name", a subject, an empty line, paragraphs. The text is the source of both
// parts; a paragraph that is the link becomes a button in the HTML, one that is the code is alone on its line in both.
//
//go:embed letters
var letterFiles embed.FS

const fallbackLang = "en"

type letter struct {
	subject *texttemplate.Template
	body    *texttemplate.Template
}

// letters are by language, then by name.
type letters map[string]map[string]letter

// Templates lists the names of the letters; every language has all of them.
var Templates = []string{"verify", "verify-unknown", "taken", "reset", "reset-unknown", "reset-closed", "email-confirm", "email-taken", "password-changed", "passkey-added", "email-changed",
	"robot-gained", "robot-handed-on", "robot-taken", "robot-released", "robot-left", "alert-firing", "alert-worse", "alert-resolved"}

func loadLetters() (letters, error) {
	files, err := letterFiles.ReadDir("letters")
	if err != nil {
		return nil, err
	}
	out := letters{}
	for _, f := range files {
		b, err := letterFiles.ReadFile(path.Join("letters", f.Name()))
		if err != nil {
			return nil, err
		}
		lang := strings.TrimSuffix(f.Name(), ".txt")
		if out[lang], err = parseLetters(string(b)); err != nil {
			return nil, fmt.Errorf("letters/%s: %w", f.Name(), err)
		}
		for _, name := range Templates {
			if _, ok := out[lang][name]; !ok {
				return nil, fmt.Errorf("letters/%s: no letter %q", f.Name(), name)
			}
		}
	}
	return out, nil
}

func parseLetters(text string) (map[string]letter, error) {
	out := map[string]letter{}
	for i, block := range strings.Split("\n"+text, "\n== ") {
		if i == 0 {
			continue // text before the first letter is a comment
		}
		name, rest, _ := strings.Cut(block, "\n")
		subject, body, ok := strings.Cut(rest, "\n\n")
		if !ok || strings.Contains(subject, "\n") {
			return nil, fmt.Errorf("letter %q: want a subject on one line, an empty line, paragraphs", name)
		}
		s, err := texttemplate.New(name).Option("missingkey=error").Parse(subject)
		if err != nil {
			return nil, err
		}
		if strings.Count(body, "{{.Link}}") != strings.Count(body, "]\n{{.Link}}") {
			return nil, fmt.Errorf("letter %q: want the text of a button, [Do this], in the line before {{.Link}}", name)
		}
		b, err := texttemplate.New(name).Option("missingkey=error").Parse(strings.TrimSpace(body))
		if err != nil {
			return nil, err
		}
		out[name] = letter{s, b}
	}
	return out, nil
}

// in returns the letter in the best language there is: de-AT is written as de.
func (l letters) in(lang, name string) (string, letter, error) {
	base, _, _ := strings.Cut(strings.ToLower(lang), "-")
	if l[base] == nil {
		base = fallbackLang
	}
	found, ok := l[base][name]
	if !ok {
		return "", letter{}, fmt.Errorf("no letter %q", name)
	}
	return base, found, nil
}

// about holds the values that a letter's text may use.
type about struct {
	Site, To, Other, Link, Code, Until string
	Robot, Why, At                     string
}

const page = `<!doctype html>
<html lang="{{.Lang}}"><head><meta charset="utf-8"><title>{{.Subject}}</title></head>
<body style="font:16px/1.5 sans-serif;color:#222;max-width:34em;margin:2em auto;padding:0 1em">
{{range .Paragraphs}}{{if .Link}}<p><a href="{{.Link}}" style="display:inline-block;padding:.6em 1.2em;background:#1d5f8a;color:#fff;text-decoration:none;border-radius:.3em">{{.Text}}</a></p>
<p style="font-size:13px;color:#666;word-break:break-all">{{.Link}}</p>
{{else if .Code}}<p style="font:18px monospace;background:#f2f2f2;padding:.6em">{{.Code}}</p>
{{else}}<p>{{.Text}}</p>
{{end}}{{end}}</body></html>
`

var pageTemplate = template.Must(template.New("page").Parse(page))

type paragraph struct{ Text, Link, Code string } // Text of a link: what its button says

// button is the line before a link, with the text of its button.
var button = regexp.MustCompile(`(?m)^\[(.+)\]\n`)

// write makes the message of a letter.
func (s *Service) write(m Mail, l Letter) (Message, error) {
	if l.Lang == "" {
		l.Lang = m.Lang
	}
	if l.Account == "" {
		l.Account = m.Account
	}
	lang, found, err := s.letters.in(l.Lang, l.Template)
	if err != nil {
		return Message{}, err
	}
	a := about{Site: s.cfg.Site, To: m.To, Other: l.Other, Link: l.Link, Code: l.Code, Until: moment(l.Expires), Robot: l.Robot, Why: l.Why, At: moment(l.At)}
	var subject, text strings.Builder
	if err := errors.Join(found.subject.Execute(&subject, a), found.body.Execute(&text, a)); err != nil {
		return Message{}, err
	}
	var html bytes.Buffer
	err = pageTemplate.Execute(&html, struct {
		Lang, Subject string
		Paragraphs    []paragraph
	}{lang, subject.String(), paragraphs(text.String(), a)})
	if err != nil {
		return Message{}, err
	}
	return Message{ID: m.ID, Account: l.Account, To: m.To, Msg: s.compose(m, lang, subject.String(), button.ReplaceAllString(text.String(), "")+"\n", html.String())}, nil
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

func paragraphs(text string, a about) []paragraph {
	var out []paragraph
	for p := range strings.SplitSeq(text, "\n\n") {
		p = strings.TrimSpace(p)
		if b := button.FindStringSubmatch(p); b != nil && p == b[0]+a.Link {
			out = append(out, paragraph{Text: b[1], Link: a.Link})
			continue
		}
		switch p {
		case "":
		case a.Code:
			out = append(out, paragraph{Code: p})
		default:
			out = append(out, paragraph{Text: p})
		}
	}
	return out
}

// compose makes the message, with two parts that say the same.
func (s *Service) compose(m Mail, lang, subject, text, html string) *gomail.Msg {
	_, domain, _ := strings.Cut(s.from.Address, "@")
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(s.from)
	msg.ToMailAddress(&mail.Address{Address: m.To})
	msg.Subject(subject)
	msg.SetDateWithValue(s.cfg.Now().UTC())
	msg.SetMessageIDWithValue(m.ID + "@" + domain)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no machine answers it
	msg.SetGenHeader("Content-Language", lang)
	msg.SetBodyString(gomail.TypeTextPlain, text)
	msg.AddAlternativeString(gomail.TypeTextHTML, html)
	return msg
}
