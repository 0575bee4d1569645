package ctl

import (
	"bufio"
	"io"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
)

// Main runs kennelctl with args and returns its exit code (infra/cli).
func Main(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	return cli.Main(Command(), args, getenv, stdout, stderr)
}

// app is shared by the commands: the flags that say where and as whom, and the cloud that they lead to.
type app struct {
	stdin              *bufio.Reader // of a command that asks
	server, ca, onebox string

	conn     *conn         // made at the first request
	api      client.Client // as the caller of this command line
	stranger client.Client // without a session
}

// Command returns the command tree.
func Command() *cobra.Command {
	a := &app{}
	a.api, a.stranger = caller(a.connect), caller(a.connectUnknown)
	root := &cobra.Command{
		Use: "kennelctl", Short: "Manage a fleet of companion robots",
		Long: "kennelctl manages a Kennel cloud through its public HTTPS API.\n\n" +
			"Exit codes: 0 success, 1 failure, 2 wrong usage, 3 not found, 4 not signed in or not allowed, 5 cloud unreachable.",
		Example: "  kennelctl login -server https://kennel.example\n" +
			"  kennelctl robots list\n" +
			"  kennelctl jdocs set vic:00e20100 vic.RobotSettings master_volume=3\n" +
			"  kennelctl -onebox ./data robots list -o json",
	}
	cli.AddOutput(root)
	f := root.PersistentFlags()
	f.StringVar(&a.server, "server", "", "`URL` of the cloud's API, such as https://kennel.example")
	f.StringVar(&a.ca, "ca", "", "trust the root certificates in `FILE` (PEM) instead of the system's")
	f.StringVar(&a.onebox, "onebox", "", "use the one-machine cloud with data folder `DIR`")
	root.MarkFlagsMutuallyExclusive("onebox", "server")
	_ = root.MarkPersistentFlagDirname("onebox")
	_ = root.MarkPersistentFlagFilename("ca", "pem", "crt")
	group(root, a.login(), a.logout(), a.password(), a.passkeys(), a.second(), a.account(), a.my(), a.operators(), a.audit(), a.fleet(), a.health(),
		a.robots(), a.robot(), a.cohorts(), a.batches(), a.jdocs(), a.motions(), a.events(), a.experiments(), a.logs(), a.crashes(), a.diag(), a.commands(), a.releases(), a.channels(), a.rollout(), a.webhooks(), a.alerts(), a.intent(), a.voice(), a.speech(),
		a.doctor(), a.check(), a.rawAPI(), a.mcp())
	a.addDeclared(root, client.Commands)
	return root
}
