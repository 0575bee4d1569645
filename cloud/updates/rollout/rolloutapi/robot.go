package rolloutapi

import (
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"

	"kennel/cloud/page"
	"kennel/cloud/updates/rollout"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
	"kennel/ota"
)

//go:embed robot.html
var robotText string

var robotPage = template.Must(template.New("").Funcs(template.FuncMap{"ago": page.Ago, "sentence": page.Sentence, "words": Words}).Parse(robotText))

// shownReports is how many reports of a robot its page shows.
const shownReports = 50

// robotTab is the page of one robot's updates: what it should run, why it does not, and what it reported.
func robotTab(svc *rollout.Service, state func(ctx context.Context, id thing.ID, limit int) (ota.State, error)) page.Extra {
	return page.Extra{Label: "Updates", Address: "/things/{thing}/rollouts", Tab: func(ctx context.Context, r *http.Request) (string, template.HTML, error) {
		id, err := kithttp.Thing(r)
		if err != nil {
			return "", "", fmt.Errorf("updates: %w", err)
		}
		s, err := state(ctx, id, shownReports)
		if err != nil {
			return "", "", err
		}
		whys, err := svc.Explain(ctx, id)
		if err != nil {
			return "", "", err
		}
		head, words := standing(s)
		body, err := page.HTML(robotPage, struct {
			Head, Words string
			Whys        []rollout.RobotWhy
			History     []ota.Report
		}{head, words, whys, s.History})
		return "Updates", body, err
	}}
}

// standing says how a robot and its desired release stand to each other.
func standing(s ota.State) (head, words string) {
	want := s.Desired.Release
	switch {
	case want == "":
		return "No release is wanted", "The robot keeps what it runs."
	case s.First != "" && s.Last.Release == s.First:
		return "Release " + string(want) + " is wanted", "The robot gets " + string(s.First) + " first, because " + string(want) + " cannot be installed on what it runs. It " + Words(s.Last.Status) + "."
	case s.First != "":
		return "Release " + string(want) + " is wanted", "The robot gets " + string(s.First) + " first, because " + string(want) + " cannot be installed on what it runs. It has not answered yet."
	case s.Last == nil || s.Last.Release != want:
		return "Release " + string(want) + " is wanted", "The robot has not answered yet. It asks when it connects, and once an hour."
	}
	return "Release " + string(want) + " is wanted", "The robot " + Words(s.Last.Status) + "."
}

// Words says a report of a robot in words.
func Words(s ota.Status) string {
	why := ""
	if s.Reason != "" {
		why = ": " + s.Reason
	}
	switch s.Phase {
	case ota.Current:
		return "runs what it should run"
	case ota.Pending:
		return "has not begun" + why
	case ota.Downloading:
		return "downloads it, and writes it beside the system that runs"
	case ota.Installed:
		return "has installed it, and starts it at the next reboot"
	case ota.FellBack:
		return "installed it, and returned to the release before" + why
	case ota.Failed:
		return fmt.Sprintf("failed with code %d: %s%s", s.Code, ota.Code(s.Code).Words(), parenthesis(s.Reason))
	}
	return string(s.Phase) + why
}

func parenthesis(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}
