package ctl

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// reasoned makes a command of one that takes a reason, which the audit log keeps.
func reasoned[T any](a *app, cmd *cobra.Command, ask func(ctx context.Context, args []string, reason string) (reply[T], error),
	line func([]string, T) string) *cobra.Command {
	reason := cmd.Flags().String("reason", "", "`WHY`, for the audit log")
	_ = cmd.MarkFlagRequired("reason")
	return does(a, cmd, func(ctx context.Context, args []string) (reply[T], error) { return ask(ctx, args, *reason) }, line)
}

func (a *app) robotsWaiting() *cobra.Command {
	return shows(a, &cobra.Command{Use: "waiting", Short: "List robots that wait for approval",
		Long:    "A robot without a claim secret or a factory certificate waits for approval by a person who sees the same fingerprint on it.",
		Example: "  kennelctl robots waiting"}, none(a.api.GetWaiting),
		rows("THING|FINGERPRINT|ADDRESS|SINCE|LAST ASKED|TIMES|NOTE", func(w client.Waiting) cells {
			note := ""
			switch {
			case !w.Refused.IsZero():
				note = "refused: " + w.Reason
			case w.Revoked:
				note = "was revoked: release it first"
			case w.Bound:
				note = "has another key: release it first"
			case w.Known:
				note = "registered, its secret was never used"
			}
			return cells{w.Thing, w.Fingerprint, w.Addr, w.First, w.Last, w.Times, note}
		}))
}

func (a *app) robotsApprove() *cobra.Command {
	return does(a, &cobra.Command{Use: "approve THING FINGERPRINT", Short: "Let a waiting robot in",
		Long:    "Compare the fingerprint with the one that the robot shows: any machine on the network can ask in its name.",
		Example: "  kennelctl robots approve vic:00e20100 7QK4-0ZTM-9R3X"},
		func(ctx context.Context, args []string) (reply[client.None], error) {
			return a.api.PostWaitingThingApprove(ctx, args[0], client.Approval{Fingerprint: args[1]})
		}, said[client.None]("%s is approved; it gets its certificate when it asks again"))
}

func (a *app) robotsRefuse() *cobra.Command {
	return reasoned(a, describe("refuse THING FINGERPRINT", "Turn a waiting robot away for a day",
		"robots refuse vic:00e20100 7QK4-0ZTM-9R3X -reason \"not one of ours\""),
		func(ctx context.Context, args []string, reason string) (reply[client.None], error) {
			return a.api.PostWaitingThingRefuse(ctx, args[0], client.WaitingRefusal{Fingerprint: args[1], Reason: reason})
		}, said[client.None]("%s is refused"))
}

func (a *app) robotsRelease() *cobra.Command {
	var reason string
	cmd := shows(a, &cobra.Command{Use: "release THING", Short: "Give a robot up to another key, and print its new claim secret",
		Long: "For a robot that lost its key in a wipe, that has another board, or that was revoked by mistake. " +
			"Its certificates end, the key they were for never\ncomes back. The secret is shown only once; put it into the robot.",
		Example: "  kennelctl robots release vic:00e20100 -reason \"board replaced\""},
		func(ctx context.Context, args []string) (reply[client.Registration], error) {
			return a.api.PostThingsThingRelease(ctx, args[0], client.Reason{Reason: reason})
		}, showRegistration)
	cmd.Flags().StringVar(&reason, "reason", "", "`WHY`, for the audit log")
	_ = cmd.MarkFlagRequired("reason")
	return cmd
}

func showRegistration(t *cli.Table, r client.Registration) {
	pairs(t, "thing", r.Thing, "secret", r.Secret)
}

func (a *app) robotsRevoke() *cobra.Command {
	return reasoned(a, &cobra.Command{Use: "revoke THING", Short: "Take a robot's identity away",
		Long:    "Its certificates end within two seconds everywhere, and it gets no other until it is released.",
		Example: "  kennelctl robots revoke vic:00e20100 -reason stolen"},
		func(ctx context.Context, args []string, reason string) (reply[client.RevokedCertificates], error) {
			return a.api.PostThingsThingRevoke(ctx, args[0], client.Reason{Reason: reason})
		}, func(args []string, v client.RevokedCertificates) string {
			return fmt.Sprintf("%s is revoked; %d certificates ended", args[0], v.Revoked)
		})
}

func (a *app) robotsRevocations() *cobra.Command {
	var q client.GetRevocationsQuery
	cmd := shows(a, describe("revocations", "List revoked certificates, the latest first", "robots revocations -limit 20"),
		func(ctx context.Context, _ []string) (reply[[]client.Revocation], error) {
			return a.api.GetRevocations(ctx, q)
		},
		rows("THING|REVOKED|SERIAL|ENDS|REASON", func(r client.Revocation) cells { return cells{r.Thing, r.Revoked, r.Serial, r.NotAfter, r.Reason} }))
	q.Limit = cmd.Flags().Int64("limit", 100, "at most `N` rows, up to 1000")
	return cmd
}

// batches is manufacturing batches, whose robots are let in for their factory certificates.
func (a *app) batches() *cobra.Command {
	return group(describe("batches", "Manufacturing batches whose factory certificates are accepted",
		"batches list", "batches put lot-2018 -bundle factory-2018.pem"),
		shows(a, describe("list", "List manufacturing batches", "batches list"), none(a.api.GetBatches),
			rows("BATCH|SPECIES|ORGANISATION|VALID AFTER|SERIALS|MADE|DISABLED", func(b client.Batch) cells {
				serials, disabled := "all", ""
				if b.SerialFrom != "" || b.SerialTo != "" {
					serials = cmp.Or(b.SerialFrom, "first") + " to " + cmp.Or(b.SerialTo, "last")
				}
				if !b.Disabled.IsZero() {
					disabled = ago(b.Disabled) + ": " + b.Reason
				}
				return cells{b.Name, b.Species, b.Organization, b.ValidAfter.Format(time.DateOnly), serials, b.Created, disabled}
			})),
		a.batchesPut(),
		reasoned(a, &cobra.Command{Use: "disable BATCH", Short: "Stop accepting its factory certificates",
			Long:    "Device certificates that its robots hold stay good; revoke robots one by one to end those.",
			Example: "  kennelctl batches disable lot-2018 -reason \"its key leaked\""},
			func(ctx context.Context, args []string, reason string) (reply[client.None], error) {
				return a.api.PostBatchesBatchDisable(ctx, args[0], client.Reason{Reason: reason})
			}, said[client.None]("batch %s is disabled")),
		does(a, describe("enable BATCH", "Accept its factory certificates again", "batches enable lot-2018"),
			first(a.api.PostBatchesBatchEnable), said[client.None]("batch %s is accepted")),
		reasoned(a, &cobra.Command{Use: "revoke-certificate ID", Short: "Stop accepting one factory certificate",
			Long: "ID is the certificate's serial number or the SHA-256 of it, in hex, with or without colons, " +
				"as openssl x509 -serial or -fingerprint -sha256 print it.",
			Example: "  kennelctl batches revoke-certificate 3FA9C1D2 -reason cloned"},
			func(ctx context.Context, args []string, reason string) (reply[client.None], error) {
				return a.api.PostFactoryCertificatesRevoke(ctx, client.FactoryRevocation{CertificateID: args[0], Reason: reason})
			}, said[client.None]("factory certificate %s is revoked")),
		shows(a, describe("revoked", "List factory certificates that were revoked", "batches revoked"), none(a.api.GetFactoryCertificates),
			rows("CERTIFICATE|REVOKED|REASON", func(r client.FactoryCertificate) cells { return cells{r.CertificateID, r.At, r.Reason} })))
}

func (a *app) batchesPut() *cobra.Command {
	var file, after string
	var b client.Batch
	cmd := does(a, &cobra.Command{Use: "put BATCH", Short: "Make or replace a manufacturing batch",
		Long: "Without further flags the original robot's own rules hold: species vic, organisation \"Anki Inc.\", " +
			"certificates that end after 2100-01-01.",
		Example: "  kennelctl batches put lot-2018 -bundle factory-2018.pem -serial-from 00e20000 -serial-to 00e2ffff"},
		func(ctx context.Context, args []string) (r reply[client.None], err error) {
			pem, err := os.ReadFile(file)
			if err != nil {
				return r, errs.New(errs.Invalid, "%w", err)
			}
			b.Bundle = string(pem)
			if after != "" {
				if b.ValidAfter, err = time.Parse(time.DateOnly, after); err != nil {
					return r, cli.Usage("-valid-after %q: want a date such as 2100-01-01", after)
				}
			}
			return a.api.PutBatchesBatch(ctx, args[0], b)
		}, said[client.None]("batch %s is accepted"))
	f := cmd.Flags()
	f.StringVar(&file, "bundle", "", "certificates of the factory's authorities in `FILE` (PEM)")
	f.StringVar(&b.Species, "species", "", "`SPECIES` of its robots: "+thing.SpeciesWords(", "))
	f.StringVar(&b.Organization, "organization", "", "the one O that its certificates have, `TEXT`")
	f.StringVar(&after, "valid-after", "", "its certificates end later than `DATE`")
	f.StringVar(&b.SerialFrom, "serial-from", "", "only serials from `SERIAL` on")
	f.StringVar(&b.SerialTo, "serial-to", "", "only serials up to `SERIAL`")
	_ = cmd.MarkFlagRequired("bundle")
	_ = cmd.MarkFlagFilename("bundle", "pem", "crt")
	return cmd
}

// robotDetails are the commands of robots that ask for one side of one robot.
func (a *app) robotDetails() []*cobra.Command {
	return []*cobra.Command{
		a.robotsHistory(),
		shows(a, describe("certificates THING", "List the certificates that a robot was given, the newest first",
			"robots certificates vic:00e20100"), first(a.api.GetThingsThingCertificates),
			rows("SERIAL|FOR|FROM|UNTIL|REVOKED|REASON", func(c client.Certificate) cells {
				return cells{c.Serial, c.Method, c.NotBefore, c.NotAfter, c.Revoked, c.Reason}
			})),
		a.robotsDeviceToken(),
		group(describe("tokens", "Access tokens with which a robot acts for its owner", "robots tokens list vic:00e20100"),
			shows(a, describe("list THING", "List a robot's access tokens", "robots tokens list vic:00e20100"),
				first(a.api.GetThingsThingTokens), rows("TOKEN|ISSUED|UNTIL|BY|REVOKED|REASON", func(k client.Token) cells {
					return cells{k.ID, k.IssuedAt, k.ExpiresAt, k.How, k.RevokedAt, k.Reason}
				})),
			revoker(a, "tokens", "TOKEN", a.api.DeleteThingsThingTokens, a.api.DeleteThingsThingTokensToken)),
		group(describe("apps", "Apps and SDK programs that may talk to a robot", "robots apps list vic:00e20100"),
			shows(a, describe("list THING", "List a robot's apps", "robots apps list vic:00e20100"),
				first(a.api.GetThingsThingApps), rows("APP|NAME|PROGRAM|SINCE", func(p client.App) cells {
					return cells{p.ID, p.ClientName, p.AppID, p.IssuedAt}
				})),
			revoker(a, "apps", "APP", a.api.DeleteThingsThingApps, a.api.DeleteThingsThingAppsApp)),
		shows(a, describe("owner THING", "Show a robot's owner and earlier owners, by the ids of their accounts", "robots owner vic:00e20100"),
			first(a.api.GetThingsThingOwner), func(t *cli.Table, o client.OwnerOwner) {
				past := o.Past
				if o.Account != "" {
					past = append([]client.Past{{Account: o.Account, Since: o.Since, How: o.How}}, past...)
				}
				rows("ACCOUNT|SINCE|BY|UNTIL|ENDED", func(p client.Past) cells { return cells{p.Account, p.Since, p.How, p.Until, p.Ended} })(t, past)
			}),
		reasoned(a, describe("disown THING", "Take a robot from its owner, for people who cannot do so themselves",
			"robots disown vic:00e20100 -reason 'sold, the seller cannot be reached (case 17)'"),
			func(ctx context.Context, args []string, reason string) (reply[client.None], error) {
				return a.api.DeleteThingsThingOwner(ctx, args[0], client.ReleaseRequest{Reason: reason})
			}, said[client.None]("%s has no owner now")),
	}
}

func (a *app) robotsDeviceToken() *cobra.Command {
	var none bool
	cmd := a.runs(&cobra.Command{Use: "device-token THING", Short: "Make the token of a device that runs SWUpdate",
		Long:    "The device shows it as suricatta's targettoken. It takes the place of an earlier one and is shown only once. -none takes it away.",
		Example: "  kennelctl robots device-token amigo:arm-7"},
		func(cmd *cobra.Command, args []string) error {
			if none {
				_, err := a.api.DeleteThingsThingDeviceToken(cmd.Context(), args[0])
				return err
			}
			r, err := a.api.PostThingsThingDeviceToken(cmd.Context(), args[0])
			return show(cmd, r, err, func(t *cli.Table, k client.DeviceToken) { pairs(t, "thing", k.Thing, "token", k.Token) })
		})
	cmd.Flags().BoolVar(&none, "none", false, "take the token away")
	return cmd
}

func (a *app) robotsHistory() *cobra.Command {
	var q client.GetThingsThingHistoryQuery
	cmd := shows(a, describe("history THING", "List when a robot came and went, the newest first", "robots history vic:00e20100 -limit 10"),
		func(ctx context.Context, args []string) (reply[[]client.RegistryChange], error) {
			return a.api.GetThingsThingHistory(ctx, args[0], q)
		},
		rows("TIME|PRESENCE", func(c client.RegistryChange) cells {
			return cells{c.At, map[bool]string{true: "present", false: "absent"}[c.Present]}
		}))
	q.Limit = cmd.Flags().Int64("limit", 50, "show at most `N`")
	return cmd
}

// revoker makes the command that takes one or all of a robot's entries away.
func revoker[T any](a *app, what, one string, everything func(context.Context, string) (reply[T], error),
	entry func(context.Context, string, string) (reply[T], error)) *cobra.Command {
	var all bool
	cmd := does(a, &cobra.Command{Use: "revoke THING [" + one + "]", Short: "Take one of a robot's " + what + " away, or with -all every one",
		Example: "  kennelctl robots " + what + " revoke vic:00e20100 ID\n  kennelctl robots " + what + " revoke vic:00e20100 -all"},
		func(ctx context.Context, args []string) (r reply[T], err error) {
			switch {
			case (len(args) == 2) == all:
				return r, cli.Usage("want one or -all")
			case all:
				_, err = everything(ctx, args[0])
			default:
				_, err = entry(ctx, args[0], args[1])
			}
			return reply[T]{}, err
		}, func(args []string, _ T) string {
			if all {
				return "all " + what + " of " + args[0] + " are revoked"
			}
			return args[1] + " is revoked"
		})
	cmd.Flags().BoolVar(&all, "all", false, "every one")
	return cmd
}
