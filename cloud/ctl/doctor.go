package ctl

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) doctor() *cobra.Command {
	var cloud bool
	cmd := a.runs(&cobra.Command{Use: "doctor [THING]", Short: "Show what is wrong with a robot, and what to do",
		Long: "Check each step of a robot's way into the fleet. Fix the first check that fails; the last refusal says how.\n" +
			"THING may be an unregistered robot. The exit code is 1 if a check fails.\n" +
			"Without THING, list connections that were refused at the port for original robots and belong to no registered robot.\n" +
			"With -cloud, show which database and broker the process that answers uses, how far standbys and the uplink are behind, and what needs attention.",
		Example: "  kennelctl doctor vic:00e20100\n  kennelctl doctor -cloud\n  kennelctl doctor", ValidArgsFunction: a.completeThing},
		func(cmd *cobra.Command, args []string) error {
			switch {
			case cloud && len(args) > 0:
				return cli.Usage("-cloud and %s: want one of them", args[0])
			case cloud:
				return a.doctorCloud(cmd)
			case len(args) == 0:
				all, err := a.api.GetStrangers(cmd.Context())
				return show(cmd, all, err, rows("LAST|FROM|CLAIMS|CODE|TIMES|DETAIL", func(s client.Stranger) cells {
					return cells{s.Last, s.Address, s.Claims, s.Code, s.Times, strings.TrimSuffix(s.Detail+". "+s.Do, " ")}
				}))
			}
			if _, err := parseThing(args[0]); err != nil {
				return err
			}
			r, err := a.api.GetThingsThingDoctor(cmd.Context(), args[0])
			if err := show(cmd, r, err, showReport); err != nil {
				return err
			}
			var failed []string
			for _, c := range r.Value.Checks {
				if c.Level == "fail" {
					failed = append(failed, c.Check)
				}
			}
			if len(failed) > 0 {
				return errs.New(errs.Conflict, "%s: failed checks: %s", args[0], strings.Join(failed, ", "))
			}
			return nil
		})
	cmd.Flags().BoolVar(&cloud, "cloud", false, "look at the cloud itself instead of a robot")
	return cmd
}

// doctorCloud shows the parts of the process that answers. One that is not ready is an error, which notReady describes; a warning is none.
func (a *app) doctorCloud(cmd *cobra.Command) error {
	r, err := a.api.GetHealth(cmd.Context())
	return show(cmd, r, err, func(t *cli.Table, h client.Health) {
		for _, p := range h.Parts {
			level := "ok"
			if p.Reason != "" {
				level = "warn"
			}
			t.Text(strings.TrimRight(fmt.Sprintf("%s  %-18s %s", marks[level], p.Part, cmp.Or(p.Reason, p.Says)), " "))
			if p.Reason == "" {
				continue
			}
			for _, line := range []string{p.Says, since(p.Since), arrow(p.Do)} {
				if line != "" {
					t.Text("                         " + line)
				}
			}
		}
	})
}

// arrow marks a remedy; "" stays "".
func arrow(do string) string {
	if do == "" {
		return ""
	}
	return "-> " + do
}

// notReady returns the error that the health of a process is, which is not ready; nil if b is none.
func notReady(server string, b []byte) error {
	var h client.Health
	if json.Unmarshal(b, &h) != nil || len(h.Parts) == 0 {
		return nil
	}
	var bad []string
	for _, p := range h.Parts {
		if !p.OK {
			bad = append(bad, p.Part+": "+strings.TrimSuffix(p.Reason+". "+p.Do, ". "))
		}
	}
	return errs.New(errs.Unavailable, "%s is not ready: %s", server, strings.Join(bad, " "))
}

var marks = map[string]string{"ok": "ok  ", "warn": "warn", "fail": "FAIL", "unknown": "  - "}

// certificateText describes the certificate that came with a step; "" for none.
func certificateText(c *client.ShownCertificate) string {
	if c == nil {
		return ""
	}
	return registry.ShownCertificate{CN: c.CN, Issuer: c.Issuer, Serial: c.Serial, NotAfter: c.NotAfter}.String()
}

func showReport(t *cli.Table, r client.Report) {
	t.Text(r.Thing + ": " + r.Verdict)
	t.Text("")
	for _, c := range r.Checks {
		t.Text(fmt.Sprintf("%s  %-12s %s", marks[c.Level], c.Check, c.Text))
		bad := c.Level == "warn" || c.Level == "fail"
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
	if o := r.LastRefusal; o != nil {
		over := "not solved yet"
		if o.Over {
			over, o.Do = "solved: succeeded since", ""
		}
		t.Section("Last refusal")
		t.Text(fmt.Sprintf("%s %s, %s, %s", o.Step, ago(o.Last), cmp.Or(o.Code, "without a code"), over))
		for _, line := range []struct{ what, text string }{{"why", o.Detail}, {"certificate", certificateText(o.Certificate)}, {"peer", o.Peer},
			{"version", o.Version}, {"->", o.Do}} {
			if line.text != "" {
				t.Text("  " + line.what + " " + line.text)
			}
		}
	}
	if len(r.Steps) > 0 {
		t.Section("Steps recorded")
		rows("LAST|STEP|RESULT|TIMES|PEER|DETAIL", func(o client.Outcome) cells {
			result := "ok"
			if !o.OK {
				result = "refused " + o.Code
			}
			if c := certificateText(o.Certificate); c != "" {
				o.Detail += " [certificate " + c + "]"
			}
			return cells{o.Last, o.Step, result, o.Times, o.Peer, o.Detail}
		})(t, r.Steps)
	}
}
