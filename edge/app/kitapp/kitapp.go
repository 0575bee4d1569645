// Package kitapp is the program robotkit: tools of robot programmers.
package kitapp

import (
	"io"

	"github.com/spf13/cobra"

	"kennel/edge/app/kitapp/mediakit"
	"kennel/edge/app/kitapp/mtnkit"
	"kennel/edge/app/kitapp/pawnkit"
	"kennel/edge/app/kitapp/pleokit"
	"kennel/infra/cli"
)

// Main runs the program and returns its exit code.
func Main(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	return cli.Main(command(), args, getenv, stdout, stderr)
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "robotkit",
		Short: "Develop for robots: list parts, replay recordings, record microphones, make updates, run scripts",
		Example: `  robotkit tree vector
  robotkit tree -f body.json -o json
  robotkit interfaces RotationalMotor
  robotkit replay run.krt
  robotkit ota inspect 2.0.1.6076.ota
  robotkit mtn check sit.mtn`,
	}
	root.AddCommand(treeCommand(), interfacesCommand(), replayCommand(), amigoCommand(), otaCommand(), mtnkit.MTN(), pawnkit.Pawn(), pleokit.Pleo())
	root.AddCommand(mediakit.Commands()...)
	cli.AddOutput(root)
	return root
}
