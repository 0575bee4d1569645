package ctl

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"kennel/certs/certsapi"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// order makes a command that sends one JSON body somewhere below /v1 and prints a line.
func (a *app) order(cmd *cobra.Command, method, path string, in, out any, line func() string) error {
	if err := a.do(cmd, method, path, in, out); err != nil {
		return err
	}
	if out == nil {
		out = map[string]bool{"done": true}
	}
	return cli.PrintLine(cmd, out, line)
}

// list makes one GET and prints it as a table.
func list[T any](a *app, cmd *cobra.Command, path string, table func(*cli.Table, []T)) error {
	rows := []T{}
	if err := a.do(cmd, http.MethodGet, path, nil, &rows); err != nil {
		return err
	}
	return cli.Print(cmd, rows, func(t *cli.Table) { table(t, rows) })
}

// reasonFlag adds the reason that the audit log keeps.
func reasonFlag(cmd *cobra.Command) *string {
	reason := cmd.Flags().String("reason", "", "`WHY`, for the audit log")
	_ = cmd.MarkFlagRequired("reason")
	return reason
}

func (a *app) robotsWaiting() *cobra.Command {
	return &cobra.Command{
		Use: "waiting", Short: "List robots that wait for approval", Args: cobra.NoArgs,
		Long:    "A robot without a claim secret or a factory certificate waits for approval by a person who sees the same fingerprint on it.",
		Example: "  kennelctl robots waiting",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return list(a, cmd, "/v1/waiting", func(t *cli.Table, rows []certsapi.Waiting) {
				t.Row("THING", "FINGERPRINT", "ADDRESS", "SINCE", "LAST ASKED", "TIMES", "NOTE")
				for _, w := range rows {
					note := ""
					switch {
					case w.Refused != nil:
						note = "refused: " + w.Reason
					case w.Revoked:
						note = "was revoked: release it first"
					case w.Bound:
						note = "has another key: release it first"
					case w.Known:
						note = "registered, its secret was never used"
					}
					t.Row(w.Thing, w.Fingerprint, w.Addr, ago(w.First), ago(w.Last), w.Times, note)
				}
			})
		},
	}
}

func (a *app) robotsApprove() *cobra.Command {
	return &cobra.Command{
		Use: "approve THING FINGERPRINT", Short: "Let a waiting robot in", Args: cobra.ExactArgs(2), ValidArgsFunction: a.completeThing,
		Long:    "Compare the fingerprint with the one that the robot shows: any machine on the network can ask in its name.",
		Example: "  kennelctl robots approve vic:00e20100 7QK4-0ZTM-9R3X",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseThing(args[0])
			if err != nil {
				return err
			}
			return a.order(cmd, http.MethodPost, "/v1/waiting/"+string(id)+"/approve", map[string]string{"fingerprint": args[1]}, nil,
				func() string { return string(id) + " is approved; it gets its certificate when it asks again" })
		},
	}
}

func (a *app) robotsRefuse() *cobra.Command {
	cmd := &cobra.Command{
		Use: "refuse THING FINGERPRINT", Short: "Turn a waiting robot away for a day", Args: cobra.ExactArgs(2), ValidArgsFunction: a.completeThing,
		Example: "  kennelctl robots refuse vic:00e20100 7QK4-0ZTM-9R3X -reason \"not one of ours\"",
	}
	reason := reasonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := parseThing(args[0])
		if err != nil {
			return err
		}
		return a.order(cmd, http.MethodPost, "/v1/waiting/"+string(id)+"/refuse", map[string]string{"fingerprint": args[1], "reason": *reason}, nil,
			func() string { return string(id) + " is refused" })
	}
	return cmd
}

func (a *app) robotsRelease() *cobra.Command {
	cmd := &cobra.Command{
		Use: "release THING", Short: "Give a robot up to another key, and print its new claim secret", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeThing,
		Long: "For a robot that lost its key in a wipe, that has another board, or that was revoked by mistake. Its certificates end, the key they were for never\n" +
			"comes back. The secret is shown only once; put it into the robot.",
		Example: "  kennelctl robots release vic:00e20100 -reason \"board replaced\"",
	}
	reason := reasonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := parseThing(args[0])
		if err != nil {
			return err
		}
		var answer certsapi.Registration
		if err := a.do(cmd, http.MethodPost, "/v1/things/"+string(id)+"/release", map[string]string{"reason": *reason}, &answer); err != nil {
			return err
		}
		return cli.Print(cmd, answer, func(t *cli.Table) {
			t.Row("thing", answer.Thing)
			t.Row("secret", answer.Secret)
		})
	}
	return cmd
}

func (a *app) robotsRevoke() *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke THING", Short: "Take a robot's identity away", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeThing,
		Long:    "Its certificates end within two seconds everywhere, and it gets no other until it is released.",
		Example: "  kennelctl robots revoke vic:00e20100 -reason stolen",
	}
	reason := reasonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := parseThing(args[0])
		if err != nil {
			return err
		}
		var answer struct {
			Revoked int `json:"revoked"`
		}
		return a.order(cmd, http.MethodPost, "/v1/things/"+string(id)+"/revoke", map[string]string{"reason": *reason}, &answer,
			func() string { return fmt.Sprintf("%s is revoked; %d certificates ended", id, answer.Revoked) })
	}
	return cmd
}

func (a *app) robotsRevocations() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "revocations", Short: "List revoked certificates, the latest first", Args: cobra.NoArgs, Example: "  kennelctl robots revocations -limit 20",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return list(a, cmd, "/v1/revocations?"+url.Values{"limit": {strconv.Itoa(limit)}}.Encode(), func(t *cli.Table, rows []certsapi.Revocation) {
				t.Row("THING", "REVOKED", "SERIAL", "ENDS", "REASON")
				for _, r := range rows {
					var at time.Time
					if r.Revoked != nil {
						at = *r.Revoked
					}
					t.Row(r.Thing, ago(at), r.Serial, ago(r.NotAfter), r.Reason)
				}
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "at most `N` rows, up to 1000")
	return cmd
}

// batches is manufacturing batches, whose robots are let in for their factory certificates.
func (a *app) batches() *cobra.Command {
	cmd := &cobra.Command{Use: "batches", Short: "Manufacturing batches whose factory certificates are accepted",
		Example: "  kennelctl batches list\n  kennelctl batches put lot-2018 -bundle factory-2018.pem"}
	cmd.AddCommand(a.batchesList(), a.batchesPut(), a.batchesDisable(), a.batchesEnable(), a.batchesRevoke(), a.batchesRevoked())
	return cmd
}

func (a *app) batchesList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List manufacturing batches", Args: cobra.NoArgs, Example: "  kennelctl batches list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return list(a, cmd, "/v1/batches", func(t *cli.Table, rows []certsapi.Batch) {
				t.Row("BATCH", "SPECIES", "ORGANISATION", "VALID AFTER", "SERIALS", "MADE", "DISABLED")
				for _, b := range rows {
					serials, disabled := "all", ""
					if b.SerialFrom != "" || b.SerialTo != "" {
						serials = cmp.Or(b.SerialFrom, "first") + " to " + cmp.Or(b.SerialTo, "last")
					}
					if b.Disabled != nil {
						disabled = ago(*b.Disabled) + ": " + b.Reason
					}
					t.Row(b.Name, b.Species, b.Organization, b.ValidAfter.Format(time.DateOnly), serials, ago(b.Created), disabled)
				}
			})
		},
	}
}

func (a *app) batchesPut() *cobra.Command {
	var file, species, organization, after, from, to string
	cmd := &cobra.Command{
		Use: "put BATCH", Short: "Make or replace a manufacturing batch", Args: cobra.ExactArgs(1),
		Long:    "Without further flags the original robot's own rules hold: species vic, organisation \"Anki Inc.\", certificates that end after 2100-01-01.",
		Example: "  kennelctl batches put lot-2018 -bundle factory-2018.pem -serial-from 00e20000 -serial-to 00e2ffff",
		RunE: func(cmd *cobra.Command, args []string) error {
			pem, err := os.ReadFile(file)
			if err != nil {
				return errs.New(errs.Invalid, "%w", err)
			}
			b := certsapi.Batch{Bundle: string(pem), Species: thing.Species(species), Organization: organization, SerialFrom: from, SerialTo: to}
			if after != "" {
				if b.ValidAfter, err = time.Parse(time.DateOnly, after); err != nil {
					return cli.Usage("-valid-after %q: want a date such as 2100-01-01", after)
				}
			}
			return a.order(cmd, http.MethodPut, "/v1/batches/"+url.PathEscape(args[0]), b, nil, func() string { return "batch " + args[0] + " is accepted" })
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "bundle", "", "certificates of the factory's authorities in `FILE` (PEM)")
	f.StringVar(&species, "species", "", "`SPECIES` of its robots: vic, amigo, pleo or aibo")
	f.StringVar(&organization, "organization", "", "the one O that its certificates have, `TEXT`")
	f.StringVar(&after, "valid-after", "", "its certificates end later than `DATE`")
	f.StringVar(&from, "serial-from", "", "only serials from `SERIAL` on")
	f.StringVar(&to, "serial-to", "", "only serials up to `SERIAL`")
	_ = cmd.MarkFlagRequired("bundle")
	_ = cmd.MarkFlagFilename("bundle", "pem", "crt")
	return cmd
}

func (a *app) batchesDisable() *cobra.Command {
	cmd := &cobra.Command{
		Use: "disable BATCH", Short: "Stop accepting its factory certificates", Args: cobra.ExactArgs(1),
		Long:    "Device certificates that its robots hold stay good; revoke robots one by one to end those.",
		Example: "  kennelctl batches disable lot-2018 -reason \"its key leaked\"",
	}
	reason := reasonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.order(cmd, http.MethodPost, "/v1/batches/"+url.PathEscape(args[0])+"/disable", map[string]string{"reason": *reason}, nil,
			func() string { return "batch " + args[0] + " is disabled" })
	}
	return cmd
}

func (a *app) batchesEnable() *cobra.Command {
	return &cobra.Command{
		Use: "enable BATCH", Short: "Accept its factory certificates again", Args: cobra.ExactArgs(1), Example: "  kennelctl batches enable lot-2018",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.order(cmd, http.MethodPost, "/v1/batches/"+url.PathEscape(args[0])+"/enable", struct{}{}, nil, func() string { return "batch " + args[0] + " is accepted" })
		},
	}
}

func (a *app) batchesRevoke() *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke-certificate ID", Short: "Stop accepting one factory certificate", Args: cobra.ExactArgs(1),
		Long:    "ID is the certificate's serial number or the SHA-256 of it, in hex, with or without colons, as openssl x509 -serial or -fingerprint -sha256 print it.",
		Example: "  kennelctl batches revoke-certificate 3FA9C1D2 -reason cloned",
	}
	reason := reasonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.order(cmd, http.MethodPost, "/v1/factory-certificates/revoke", map[string]string{"certificate_id": args[0], "reason": *reason}, nil,
			func() string { return "factory certificate " + args[0] + " is revoked" })
	}
	return cmd
}

func (a *app) batchesRevoked() *cobra.Command {
	return &cobra.Command{
		Use: "revoked", Short: "List factory certificates that were revoked", Args: cobra.NoArgs, Example: "  kennelctl batches revoked",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return list(a, cmd, "/v1/factory-certificates", func(t *cli.Table, rows []certsapi.FactoryCertificate) {
				t.Row("CERTIFICATE", "REVOKED", "REASON")
				for _, r := range rows {
					t.Row(r.CertificateID, ago(r.At), r.Reason)
				}
			})
		},
	}
}
