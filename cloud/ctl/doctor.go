package ctl

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/registry"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) doctor() *cobra.Command {
	return &cobra.Command{
		Use: "doctor THING", Short: "Say why a robot is not well, and what to do", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeThing,
		Long: "Check each step of a robot's way into the fleet. Mend the first check that fails; the last refusal says how.\n" +
			"THING may be a robot that is not registered. The exit code is 1 if a check fails.",
		Example: "  kennelctl doctor vic:00e20100",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseThing(args[0])
			if err != nil {
				return err
			}
			var r registry.Report
			if err := a.do(cmd, http.MethodGet, "/v1/things/"+string(id)+"/doctor", nil, &r); err != nil {
				return err
			}
			if err := cli.Print(cmd, r, func(t *cli.Table) { showReport(t, r) }); err != nil {
				return err
			}
			var failed []string
			for _, c := range r.Checks {
				if c.Level == registry.Fail {
					failed = append(failed, c.Name)
				}
			}
			if len(failed) > 0 {
				return errs.New(errs.Conflict, "%s is not well; failed: %s", id, strings.Join(failed, ", "))
			}
			return nil
		},
	}
}

var marks = map[registry.Level]string{registry.OK: "ok  ", registry.Warn: "warn", registry.Fail: "FAIL", registry.Unknown: "  - "}

func orNone(code string) string {
	if code == "" {
		return "without a code"
	}
	return code
}

// shown describes the certificate that came with a step; "" for none.
func shown(o registry.Outcome) string {
	if o.Shown == nil {
		return ""
	}
	return o.Shown.String()
}

func showReport(t *cli.Table, r registry.Report) {
	t.Text(string(r.Thing) + ": " + r.Verdict)
	t.Text("")
	for _, c := range r.Checks {
		t.Text(fmt.Sprintf("%s  %-12s %s", marks[c.Level], c.Name, c.Text))
		bad := c.Level == registry.Warn || c.Level == registry.Fail
		if !bad && c.Peer == "" {
			continue
		}
		var facts []string
		for _, f := range []struct{ what, value string }{{"", since(c.Since)}, {"peer ", c.Peer}, {"version ", c.Version}} {
			if f.value != "" {
				facts = append(facts, f.what+f.value)
			}
		}
		if len(facts) > 0 {
			t.Text("                   " + strings.Join(facts, ", "))
		}
		if bad && c.Do != "" {
			t.Text("                   -> " + c.Do)
		}
	}
	if o := r.Refusal; o != nil {
		over := "not solved yet"
		if o.Over {
			over = "solved: it has succeeded since"
		}
		t.Section("Last refusal")
		t.Text(fmt.Sprintf("%s %s, %s, %s", o.Name, ago(o.Last), orNone(o.Code), over))
		for _, line := range []struct{ what, text string }{{"why", o.Detail}, {"certificate", shown(o.Outcome)}, {"peer", o.Peer}, {"version", o.Version}, {"->", o.Do}} {
			if line.text != "" {
				t.Text("  " + line.what + " " + line.text)
			}
		}
	}
	if len(r.Steps) > 0 {
		t.Section("Steps recorded")
		t.Row("LAST", "STEP", "RESULT", "TIMES", "PEER", "DETAIL")
		for _, o := range r.Steps {
			result := "ok"
			if !o.OK {
				result = "refused " + o.Code
			}
			detail := o.Detail
			if c := shown(o); c != "" {
				detail += " [certificate " + c + "]"
			}
			t.Row(ago(o.Last), o.Name, result, o.Times, o.Peer, detail)
		}
	}
}
