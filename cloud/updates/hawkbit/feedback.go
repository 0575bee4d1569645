package hawkbit

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"kennel/cloud/fleet/registry"
	"kennel/infra/errs"
	"kennel/ota"
)

// Feedback is a device's word about its action.
type Feedback struct {
	Execution string // closed, proceeding, canceled, scheduled, rejected, resumed, download, downloaded
	Finished  string // success, failure, none
	Cnt, Of   int    // parts that are done, of all
	Code      int    // of the device
	Details   []string
}

// executions are the words that the API has.
var executions = []string{"closed", "proceeding", "canceled", "scheduled", "rejected", "resumed", "download", "downloading", "downloaded"}

// ParseFeedback reads the body of a feedback. SWUpdate puts texts into JSON as they are, with quotes and control characters of its own errors; what is no JSON
// for that reason is read by its words.
func ParseFeedback(b []byte) (Feedback, error) {
	var body struct {
		Status struct {
			Execution string `json:"execution"`
			Code      int    `json:"code"`
			Result    struct {
				Finished string `json:"finished"`
				Progress struct {
					Cnt int `json:"cnt"`
					Of  int `json:"of"`
				} `json:"progress"`
			} `json:"result"`
			Details []string `json:"details"`
		} `json:"status"`
	}
	plain := bytes.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, b)
	err := json.Unmarshal(plain, &body)
	s := body.Status
	f := Feedback{s.Execution, s.Result.Finished, s.Result.Progress.Cnt, s.Result.Progress.Of, s.Code, s.Details}
	if _, broken := err.(*json.SyntaxError); broken { // json returns it as it is
		if m := brokenPattern.FindSubmatch(plain); m != nil {
			f, err = Feedback{Execution: string(m[2]), Finished: string(m[1]), Details: strings.Split(strings.Trim(string(m[3]), ` "[]{}`), `","`)}, nil
		}
	}
	switch {
	case err != nil:
		return f, errs.New(errs.Invalid, "feedback: %w", err)
	case !slices.Contains(executions, f.Execution):
		return f, errs.New(errs.Invalid, "feedback: status.execution %.40q: want one of %s", f.Execution, errs.List(executions))
	case !slices.Contains([]string{"success", "failure", "none", ""}, f.Finished):
		return f, errs.New(errs.Invalid, "feedback: status.result.finished %.40q: want success, failure or none", f.Finished)
	}
	return f, nil
}

// brokenPattern is the order in which SWUpdate writes: the details, which alone may be broken, come last.
var brokenPattern = regexp.MustCompile(`(?s)^[^[]*"finished"\s*:\s*"([a-z]+)"[^[]*"execution"\s*:\s*"([a-z]+)"\s*,\s*"details"\s*:\s*\[(.*)$`)

// meaning returns the state to which a feedback leads, and the phase that our agent would report; "" for one that changes nothing.
func (f Feedback) meaning() (State, ota.Phase) {
	switch f.Execution {
	case "closed":
		if f.Finished == "failure" {
			return Failed, ota.Failed
		}
		return Done, ota.Current
	case "canceled":
		return Cancelled, ota.Pending
	case "proceeding", "resumed", "download", "downloading", "downloaded":
		if f.Of > 0 && f.Cnt >= f.Of && f.Execution == "proceeding" {
			return Installed, ota.Installed
		}
		return Working, ota.Downloading
	}
	return "", "" // scheduled: it has not begun; rejected: a warning
}

// errors returns the details that SWUpdate marks as errors.
func (f Feedback) errors() (out []string) {
	for _, line := range f.Details {
		if strings.HasPrefix(line, "ERROR") {
			out = append(out, line)
		}
	}
	return out
}

// join makes one text for people of lines, each once, of at most n bytes.
func join(lines []string, n int) string {
	var out []string
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" && !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return registry.Clip(strings.Join(out, "; "), n)
}
