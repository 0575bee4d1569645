package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"kennel/infra/cli/version"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: cobra.NoArgs,
		Example: "  version\n  version -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := version.Get()
			return Print(cmd, info, func(t *Table) {
				t.Row(fmt.Sprintf("%s %s (%s, %s/%s)", cmd.Root().Name(), info.Version, info.Go, info.OS, info.Arch))
			})
		},
	}
}

func completionCommand(root *cobra.Command) *cobra.Command {
	name := root.Name()
	return &cobra.Command{
		Use: "completion bash|zsh|fish|powershell", Short: "Print a completion script for a shell",
		Args: cobra.ExactArgs(1), ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Example: "  source <(" + name + " completion bash)\n  " + name + " completion fish > ~/.config/fish/completions/" + name + ".fish",
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			}
			return Usage("shell %.20q; want bash, zsh, fish or powershell", args[0])
		},
	}
}
