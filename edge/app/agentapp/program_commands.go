package agentapp

import (
	"cmp"
	"encoding/json"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"kennel/edge/agent/localapi"
	"kennel/edge/gateway"
	"kennel/infra/api/status"
	"kennel/infra/cli"
)

// programCommand lets programs drive the robot: who may read a robot's files may, with or without a cloud.
func programCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "program", Short: "Let programs drive this robot, at the robot itself"}
	cmd.AddCommand(addProgram(), listPrograms(), removeProgram(), programUses())
	return cmd
}

func addProgram() *cobra.Command {
	var req gateway.AddProgram
	var given string
	cmd := atRobot(&cobra.Command{
		Use: "add", Short: "Make a token for a program, and print the file by which it finds the robot",
		Long: `Make a token for a program, and print the file by which a program finds the robot, trusts it and is let in. The token is shown this once.
A program of the same name that was let in before needs the new one. Programs find the file by the variable KENNEL_ROBOT.`,
		Example: "  agentd program add -root ./r1 -name square > robot.json\n  agentd program add -root ./r1 -name eyes -rights look -hours 8 > robot.json",
	}, func(cmd *cobra.Command, root *os.Root) error {
		req.Rights = strings.FieldsFunc(given, func(r rune) bool { return r == ',' })
		p, err := localapi.Ask[gateway.Place](cmd.Context(), root, "/programs/add", req)
		if err != nil {
			return err
		}
		out := json.NewEncoder(cmd.OutOrStdout())
		out.SetIndent("", "  ")
		return out.Encode(p)
	})
	f := cmd.Flags()
	f.StringVar(&req.Name, "name", "program", "`NAME` under which the robot, and other programs, know it")
	f.StringVar(&given, "rights", "", "what it may do: some of look, talk, move, camera, settings and hear, with commas (default: all but hear)")
	f.IntVar(&req.Hours, "hours", 0, "how long; 0: until it is removed")
	return cmd
}

func listPrograms() *cobra.Command {
	return atRobot(&cobra.Command{
		Use: "list", Short: "List the programs that have a token from this robot",
		Example: "  agentd program list -root ./r1",
	}, func(cmd *cobra.Command, root *os.Root) error {
		all, err := localapi.Ask[[]gateway.Program](cmd.Context(), root, "/programs/list", localapi.Nothing{})
		if err != nil {
			return err
		}
		return cli.Print(cmd, all, func(t *cli.Table) {
			t.Row("NAME", "RIGHTS", "MADE", "UNTIL")
			for _, p := range all {
				until := ""
				if !p.Until.IsZero() {
					until = p.Until.Local().Format("2006-01-02 15:04")
				}
				t.Row(p.Name, strings.Join(p.Rights, ","), p.Made.Local().Format("2006-01-02 15:04"), cmp.Or(until, "removed"))
			}
		})
	})
}

func programUses() *cobra.Command {
	return atRobot(&cobra.Command{
		Use: "log", Short: "Show what programs did, the newest first",
		Long:    "Show what programs did through the robot's gateway, the newest first. Calls within a minute that are alike are one line.",
		Example: "  agentd program log -root ./r1",
	}, func(cmd *cobra.Command, root *os.Root) error {
		all, err := localapi.Ask[[]status.Use](cmd.Context(), root, "/programs/uses", localapi.Nothing{})
		if err != nil {
			return err
		}
		return cli.Print(cmd, all, func(t *cli.Table) {
			t.Row("TIME", "PROGRAM", "CALL", "WHAT", "OUTCOME", "TIMES")
			for _, u := range all {
				t.Row(u.At.Local().Format("2006-01-02 15:04:05"), u.Program, u.Call, u.What, u.Outcome, strconv.Itoa(u.Times))
			}
		})
	})
}

func removeProgram() *cobra.Command {
	var req gateway.RemoveProgram
	cmd := atRobot(&cobra.Command{
		Use: "remove", Short: "Let a program in no longer",
		Example: "  agentd program remove -root ./r1 -name square",
	}, func(cmd *cobra.Command, root *os.Root) error {
		_, err := localapi.Ask[localapi.Nothing](cmd.Context(), root, "/programs/remove", req)
		return err
	})
	cmd.Flags().StringVar(&req.Name, "name", "program", "`NAME` of the program")
	return cmd
}
