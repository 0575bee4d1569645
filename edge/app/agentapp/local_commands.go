package agentapp

import (
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kennel/edge/agent/diagnosis"
	"kennel/edge/emr"
	"kennel/infra/cli"
	"kennel/infra/cli/version"
	"kennel/infra/errs"
)

const rootFlag = "root"

// localCommands are for people at the robot: some read its files, others ask the agentd that runs.
func localCommands() []*cobra.Command {
	return []*cobra.Command{doctorCommand(), emrCommand(), codeCommand(), exchangeCommand(), authorizedCommand(), clearCommand()}
}

// atRobot makes run's command one about the robot below -root.
func atRobot(cmd *cobra.Command, run func(cmd *cobra.Command, root *os.Root) error) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		root, err := os.OpenRoot(cmd.Flag(rootFlag).Value.String())
		if err != nil {
			return cli.Usage("-root: want the robot's folder: %w", err)
		}
		defer root.Close() // what was written is synced
		return run(cmd, root)
	}
	return cmd
}

func doctorCommand() *cobra.Command {
	var offline bool
	cmd := atRobot(&cobra.Command{
		Use: "doctor", Short: "Tell each step of the robot's way to the cloud, and what to do",
		Long: `Tell each step of the robot's way to the cloud: when, whom with, what was seen, why it was refused last, and what to do. It tries
the way itself, beside a running agentd or without one, and changes nothing. Exit code 1 if a step failed.`,
		Example: "  agentd doctor -root ./r1\n  agentd doctor -root ./r1 -offline -o json",
	}, func(cmd *cobra.Command, root *os.Root) error {
		r := diagnosis.Doctor{Root: root, Version: version.String(), Offline: offline}.Run(cmd.Context())
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
	cmd.Flags().BoolVar(&offline, "offline", false, "show what agentd left, and try nothing")
	return cmd
}

func emrCommand() *cobra.Command {
	return atRobot(&cobra.Command{Use: "emr", Short: "Print the electronic medical record", Example: "  agentd emr -root ./r1"},
		func(cmd *cobra.Command, root *os.Root) error {
			r, err := emr.Read(root)
			if err != nil {
				return err
			}
			if cli.JSON(cmd) {
				return cli.Print(cmd, r, nil)
			}
			return r.Dump(cmd.OutOrStdout())
		})
}

func codeCommand() *cobra.Command {
	return atRobot(&cobra.Command{
		Use: "claim-code", Short: "Show a code on the robot, and print it: whoever types it into the app owns the robot", Example: "  agentd claim-code -root ./r1",
	}, func(cmd *cobra.Command, root *os.Root) error {
		c, err := askLocal[codeAnswer](cmd.Context(), root, "/claim-code", nothing{})
		if err != nil {
			return err
		}
		return cli.Print(cmd, c, func(t *cli.Table) { t.Row(c.Code, "good until", c.Till.Local().Format("15:04:05")) })
	})
}

// readSecret reads a secret from standard input: command lines are not for secrets.
func readSecret(cmd *cobra.Command, what string) (string, error) {
	b, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxLocal))
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
	var r exchangeRequest
	cmd := atRobot(&cobra.Command{
		Use: "exchange", Short: "Turn a user session into a client token of this robot, and print the token",
		Long: `Turn a user session, read from standard input, into a client token of this robot, as an app does that logs in near the robot. The
token is printed this once and kept nowhere.`,
		Example: "  agentd exchange -root ./r1 -client my-script <session.txt",
	}, func(cmd *cobra.Command, root *os.Root) (err error) {
		if r.Session, err = readSecret(cmd, "a user session"); err != nil {
			return err
		}
		got, err := askLocal[tokenMessage](cmd.Context(), root, "/exchange", r)
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
		Use: "authorized", Short: "Say whether a client token, read from standard input, lets in", Example: "  agentd authorized -root ./r1 <token.txt",
	}, func(cmd *cobra.Command, root *os.Root) error {
		token, err := readSecret(cmd, "a client token")
		if err != nil {
			return err
		}
		got, err := askLocal[authorizedAnswer](cmd.Context(), root, "/authorized", tokenMessage{token})
		if err != nil {
			return err
		}
		if !got.Authorized {
			return errs.New(errs.Denied, "this token lets nobody in")
		}
		return cli.Print(cmd, got, func(t *cli.Table) { t.Text("this token lets in") })
	})
}

func clearCommand() *cobra.Command {
	var sure bool
	cmd := atRobot(&cobra.Command{
		Use: "clear-user-data", Short: "Erase everything personal from the robot, and end its ownership",
		Long: `Erase everything personal from the robot: tokens, name, pictures, faces, settings, Wi-Fi, logs, events. The robot starts anew, tells the
cloud that it is nobody's, and comes back. It stays the robot that it is.`,
		Example: "  agentd clear-user-data -root ./r1 -yes",
	}, func(cmd *cobra.Command, root *os.Root) error {
		if !sure {
			return cli.Usage("-yes is missing: what is erased does not come back")
		}
		if _, err := askLocal[nothing](cmd.Context(), root, "/clear-user-data", nothing{}); err != nil {
			return err
		}
		return cli.Print(cmd, nothing{}, func(t *cli.Table) { t.Text("agentd starts anew and clears the user data") })
	})
	cmd.Flags().BoolVar(&sure, "yes", false, "the owner has confirmed")
	return cmd
}
