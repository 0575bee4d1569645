package agentapp

import (
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"kennel/edge/agent/health/diagnosis"
	"kennel/edge/agent/health/faults"
	"kennel/edge/agent/localapi"
	"kennel/edge/agent/ownership"
	"kennel/edge/app/agentapp/local"
	"kennel/edge/app/agentapp/talk"
	"kennel/edge/faultcode"
	"kennel/infra/cli"
	"kennel/infra/cli/version"
	"kennel/infra/errs"
)

const rootFlag = "root"

// localCommands are for people at the robot: some read its files, others ask the agentd that runs.
func localCommands() []*cobra.Command {
	return append([]*cobra.Command{doctorCommand(), codeCommand(), exchangeCommand(), authorizedCommand(), clearCommand(), faultCommand(),
		updateCommand(), logCommand(), programCommand(), talk.Command(atRobot)}, local.Commands(atRobot)...)
}

// atRobot makes run's command one about the robot below -root.
func atRobot(cmd *cobra.Command, run func(cmd *cobra.Command, root *os.Root) error) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		root, err := os.OpenRoot(cmd.Flag(rootFlag).Value.String())
		if err != nil {
			return cli.Usage("-root: want the robot's folder: %w", err)
		}
		defer root.Close() // all writes are synced
		return run(cmd, root)
	}
	return cmd
}

func doctorCommand() *cobra.Command {
	var offline bool
	cmd := atRobot(&cobra.Command{
		Use: "doctor", Short: "Check each step of the robot's way to the cloud, and say what to do",
		Long: `Check each step of the robot's way to the cloud: time, peer, result, last refusal, and what to do. It tries each step itself, with or
without a running agentd, and changes nothing. The exit code is 1 if a step fails.`,
		Example: "  agentd doctor -root ./r1\n  agentd doctor -root ./r1 -offline -o json",
	}, func(cmd *cobra.Command, root *os.Root) error {
		r := diagnosis.Doctor{Root: root, Hardware: hardware, Version: version.String(), Offline: offline}.Run(cmd.Context())
		tell := r.Text
		if cli.JSON(cmd) {
			tell = r.JSON
		}
		if err := tell(cmd.OutOrStdout()); err != nil {
			return err
		}
		if s, bad := r.Worst(); bad && s.State == diagnosis.Failed {
			return errs.New(errs.Internal, "step %s: %s", s.Name, s.Problem)
		}
		return nil
	})
	cmd.Flags().BoolVar(&offline, "offline", false, "only show what agentd recorded")
	return cmd
}

func codeCommand() *cobra.Command {
	return atRobot(&cobra.Command{
		Use: "claim-code", Short: "Show a claim code on the robot and print it; the person who enters it in the app becomes the owner",
		Example: "  agentd claim-code -root ./r1",
	}, func(cmd *cobra.Command, root *os.Root) error {
		c, err := localapi.Ask[ownership.CodeAnswer](cmd.Context(), root, "/claim-code", localapi.Nothing{})
		if err != nil {
			return err
		}
		return cli.Print(cmd, c, func(t *cli.Table) { t.Row(c.Code, "valid until", c.Till.Local().Format("15:04:05")) })
	})
}

// readSecret reads a secret from standard input: command lines are not for secrets.
func readSecret(cmd *cobra.Command, what string) (string, error) {
	b, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 64<<10))
	if err != nil {
		return "", err
	}
	s := strings.TrimSpace(string(b))
	if s == "" {
		return "", cli.Usage("standard input is empty: want %s", what)
	}
	return s, nil
}

func exchangeCommand() *cobra.Command {
	var r ownership.ExchangeRequest
	cmd := atRobot(&cobra.Command{
		Use: "exchange", Short: "Exchange a user session for a client token of this robot",
		Long: `Exchange a user session, read from standard input, for a client token of this robot, as an app does that logs in near the robot. The
token is printed only once and not stored.`,
		Example: "  agentd exchange -root ./r1 -client my-script <session.txt",
	}, func(cmd *cobra.Command, root *os.Root) (err error) {
		if r.Session, err = readSecret(cmd, "a user session"); err != nil {
			return err
		}
		got, err := localapi.Ask[ownership.TokenMessage](cmd.Context(), root, "/exchange", r)
		if err != nil {
			return err
		}
		return cli.Print(cmd, got, func(t *cli.Table) { t.Text(got.Token) })
	})
	cmd.Flags().StringVar(&r.Client, "client", "agentd", "name of the app or program")
	cmd.Flags().StringVar(&r.App, "app", "", "id of the app")
	return cmd
}

func authorizedCommand() *cobra.Command {
	return atRobot(&cobra.Command{
		Use: "authorized", Short: "Check whether a client token, read from standard input, is accepted", Example: "  agentd authorized -root ./r1 <token.txt",
	}, func(cmd *cobra.Command, root *os.Root) error {
		token, err := readSecret(cmd, "a client token")
		if err != nil {
			return err
		}
		got, err := localapi.Ask[ownership.AuthorizedAnswer](cmd.Context(), root, "/authorized", ownership.TokenMessage{Token: token})
		if err != nil {
			return err
		}
		if !got.Authorized {
			return errs.New(errs.Denied, "token not accepted")
		}
		return cli.Print(cmd, got, func(t *cli.Table) { t.Text("token accepted") })
	})
}

func clearCommand() *cobra.Command {
	var sure bool
	cmd := atRobot(&cobra.Command{
		Use: "clear-user-data", Short: "Erase all personal data from the robot and end its ownership",
		Long: `Erase all personal data from the robot: tokens, name, pictures, faces, settings, Wi-Fi, logs and events. The robot restarts, tells the
cloud that it has no owner, and connects again with the same identity.`,
		Example: "  agentd clear-user-data -root ./r1 -yes",
	}, func(cmd *cobra.Command, root *os.Root) error {
		if !sure {
			return cli.Usage("missing -yes: erased data cannot be recovered")
		}
		if _, err := localapi.Ask[localapi.Nothing](cmd.Context(), root, "/clear-user-data", localapi.Nothing{}); err != nil {
			return err
		}
		return cli.Print(cmd, localapi.Nothing{}, func(t *cli.Table) { t.Text("agentd is restarting to erase user data") })
	})
	cmd.Flags().BoolVar(&sure, "yes", false, "confirm that the owner agrees")
	return cmd
}

// faultCommand is for services and people at the robot; it works without agentd, because agentd's end may be the fault to report.
func faultCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "fault", Short: "Show, post and clear the robot's faults"}
	cmd.AddCommand(
		atRobot(&cobra.Command{Use: "show", Short: "Print the displayed fault", Example: "  agentd fault show -root ./r1"},
			func(cmd *cobra.Command, root *os.Root) error {
				code, err := faults.Showing(root)
				if err != nil {
					return err
				}
				return cli.Print(cmd, shownAnswer{int(code), textOf(code)}, func(t *cli.Table) {
					if code == 0 {
						t.Text("no fault")
						return
					}
					t.Row(code.String(), code.Text())
				})
			}),
		postCommand(),
		atRobot(&cobra.Command{
			Use: "clear", Short: "Clear the displayed fault",
			Long: `Clear the displayed and the pending fault (VEC-FLT-11). A fault that persists is detected and displayed again.`, Example: "  agentd fault clear -root ./r1",
		}, func(_ *cobra.Command, root *os.Root) error { return faults.Clear(root) }),
	)
	return cmd
}

type shownAnswer struct {
	Fault int    `json:"fault"` // 0: none
	Text  string `json:"text"`
}

func textOf(code faultcode.Code) string {
	if code == 0 {
		return ""
	}
	return code.Text()
}

func postCommand() *cobra.Command {
	var onExit bool
	cmd := atRobot(&cobra.Command{
		Use: "post CODE", Short: "Post a fault, as a service would",
		Long: `Post a fault, like a service that writes its number to run/fault_code. If no agentd is running, the fault waits for the next one.
Supervisors call it with -on-exit after a service exits: it posts nothing if SERVICE_RESULT says success, or while another fault is being handled.`,
		Example: "  agentd fault post 914 -root ./r1\n  ExecStopPost=/usr/bin/agentd fault post -on-exit 916 -root /var/lib/robot",
	}, func(cmd *cobra.Command, root *os.Root) error {
		n, err := strconv.ParseUint(cmd.Flags().Arg(0), 10, 16)
		if err != nil || n < 1 || n > 999 {
			return cli.Usage("CODE %.40q: want a number from 1 to 999", cmd.Flags().Arg(0))
		}
		if onExit && (cli.Getenv(cmd.Context())("SERVICE_RESULT") == "success" || faults.Pending(root)) {
			return nil
		}
		return faults.Post(root, faultcode.Code(n))
	})
	cmd.Args = cobra.ExactArgs(1)
	cmd.Flags().BoolVar(&onExit, "on-exit", false, "post only if the service failed and no fault is pending")
	return cmd
}
