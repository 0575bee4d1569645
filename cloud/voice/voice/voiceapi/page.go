package voiceapi

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"kennel/cloud/page"
	"kennel/cloud/voice/voice"
	"kennel/infra/kit/kithttp"
	"kennel/infra/op"
	"kennel/speech/recognizer"
	"kennel/speech/session"
)

//go:embed page.html
var pageText string

var pages = template.Must(template.New("").Funcs(template.FuncMap{"ago": page.Ago, "percent": percent, "steps": func() []session.Step { return session.Steps },
	"words": func(s session.Step) string { return stepWords[s] }, "seconds": seconds, "sentence": page.Sentence}).Parse(pageText))

// stepWords say what failed.
var stepWords = map[session.Step]string{
	session.Audio: "Audio", session.Endpoint: "End of speech", session.Recognize: "Recognition", session.Match: "Not understood", session.Answer: "Answer",
}

// percent writes a share so that it is 100 % only if it is whole.
func percent(part, whole int64) string {
	if whole == 0 {
		return "–"
	}
	s := fmt.Sprintf("%.1f", 100*float64(part)/float64(whole))
	if s == "100.0" && part < whole {
		s = "99.9"
	}
	return s + " %"
}

func seconds(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

type pageView struct {
	voice.Stats
	Failed    []voice.Session
	Unmatched voice.Unmatched
	Parts     []recognizer.Health
	Query     url.Values
	Periods   []period
	Step      session.Step
}

type period struct {
	Words, Address string
	Current        bool
}

// Get returns what was typed into a field.
func (v pageView) Get(field string) string { return v.Query.Get(field) }

const (
	shownFailed  = 30
	shownPhrases = 50
)

// Pages are the page of voice and the tab of a robot's sessions. recognizers tells how the recognisers are.
func Pages(svc *voice.Service, recognizers func() []recognizer.Health) []page.Extra {
	ask := func(ctx context.Context, q url.Values) (template.HTML, error) {
		req, err := op.Query[sessions](q)
		if err != nil {
			return "", err
		}
		which, days := req.which(), cmp.Or(req.Days, voice.DefaultDays)
		v := pageView{Query: q, Parts: recognizers(), Step: which.Step}
		if v.Stats, err = svc.Stats(ctx, days); err != nil {
			return "", err
		}
		which.Failed, which.Since, which.Limit = true, v.Since, shownFailed
		if v.Failed, err = svc.Sessions(ctx, which); err != nil {
			return "", err
		}
		if v.Unmatched, err = svc.Unmatched(ctx, days, shownPhrases); err != nil {
			return "", err
		}
		for _, p := range []period{{Words: "Today", Address: "1"}, {Words: "7 days", Address: "7"}, {Words: "30 days", Address: "30"}} {
			v.Periods = append(v.Periods, period{p.Words, "/voice?days=" + p.Address, p.Address == fmt.Sprint(days)})
		}
		return page.HTML(pages.Lookup("voice"), v)
	}
	return []page.Extra{
		{Label: "Voice", Address: "/voice", Menu: page.Cloud, Ask: ask, Show: func(ctx context.Context) (template.HTML, error) { return ask(ctx, nil) }},
		{Label: "Voice", Address: "/things/{thing}/voice", Tab: func(ctx context.Context, r *http.Request) (string, template.HTML, error) {
			id, err := kithttp.Thing(r)
			if err != nil {
				return "", "", err
			}
			list, err := svc.Sessions(ctx, session.Which{Thing: id, Limit: voice.DefaultLimit})
			if err != nil {
				return "", "", err
			}
			body, err := page.HTML(pages.Lookup("robot"), list)
			return "Voice", body, err
		}},
	}
}
