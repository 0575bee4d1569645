package companion

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"kennel/cloud/identity/token"
	"kennel/cloud/page"
	"kennel/infra/api/status"
	"kennel/infra/api/tokenwire"
	"kennel/infra/auth"
	"kennel/infra/errs"
)

// rightWords say what a program with a right may do.
var rightWords = map[string]string{
	"look": "Read its sensors", "talk": "Use its voice, sounds and lights", "move": "Move it", "camera": "See through its camera", "settings": "Change its settings",
	tokenwire.Hear: "Hear through its microphones",
}

// rightWord returns the words for a right; one that has none stays as it is.
func rightWord(right string) string {
	if words, ok := rightWords[right]; ok {
		return words
	}
	return right
}

// tick is a right that the form offers.
type tick struct {
	Right string
	On    bool
}

// ticks returns the rights as the form shows them: those that were picked when it was refused, else reading alone.
func ticks(s said) (out []tick) {
	for _, r := range tokenwire.Rights {
		on := r == "look"
		if s.Problem("programs") != "" {
			on = s.Picked("programs", "rights", r)
		}
		out = append(out, tick{r, on})
	}
	return out
}

// useView is a thing that a program did, in words.
type useView struct {
	status.Use
	Word string // how it ended; "": it is many things
}

// uses returns what programs did since the robot is its owner's, the newest first.
func (v robotPage) uses() (out []useView) {
	if v.known.Status == nil {
		return nil
	}
	for _, u := range v.known.Status.Uses {
		word := "refused"
		switch u.Outcome {
		case "done":
			word = "done"
		case "begun", "answered":
			word = u.Outcome
		case "blocked", "missed", "astray", "stopped", "cancelled", "expired", "released":
			word = "ended early"
		case "":
			word = ""
		}
		if !u.At.Before(v.Since) {
			out = append(out, useView{u, word})
		}
	}
	return out
}

// addProgram lets the program of the form drive the robot. The outcome's secret is its file.
func (c *companion) addProgram(ctx context.Context, r *http.Request, v url.Values) (page.Outcome, error) {
	t, err := c.mine(ctx, r)
	if err != nil {
		return page.Outcome{}, err
	}
	p := token.NewProgram{Name: v.Get("name"), Rights: v["rights"]}
	if p.Days, err = strconv.Atoi(v.Get("days")); err != nil {
		return page.Outcome{}, errs.New(errs.Invalid, "choose how long the program may drive your robot")
	}
	if err := p.Check(); err != nil {
		return page.Outcome{}, err
	}
	if err := c.Audit(ctx, token.AuditProgram, string(t.Thing), p.Detail()); err != nil {
		return page.Outcome{}, err
	}
	f, err := c.Tokens.AddProgram(ctx, t.Thing, auth.CallerFrom(ctx).Account, p)
	if err != nil {
		return page.Outcome{}, err
	}
	file, err := json.MarshalIndent(f, "", "  ")
	return page.Outcome{Secret: string(file)}, err
}

type programView struct {
	Thing, Title string
	Own          bool // the title is the name that its owner gave it
	Name, File   string
	Moves        bool // the program may move it
}

// program is the page of a program that was added, this once; of a form that was refused, it is the robot's.
func (c *companion) program(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	if s.Secret == "" {
		return c.robot(ctx, r, s)
	}
	t, err := c.mine(ctx, r)
	v := programView{string(t.Thing), cmp.Or(t.Name, "Your "+t.Thing.Species().Name()), t.Name != "", r.PostForm.Get("name"), s.Secret, slices.Contains(r.PostForm["rights"], "move")}
	return "program", frame{Title: "Program added", Main: v}, err
}
