// Package cacmd is the command line for replacing authorities with overlap: commands below "kenneld ca".
package cacmd

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"kennel/certs/ca"
	"kennel/infra/cli"
)

// Commands returns list, rotate, activate and withdraw.
func Commands() []*cobra.Command {
	return []*cobra.Command{list(), rotate(), activate(), withdraw()}
}

// target names the authority that a command works on: dir is its folder, authority its name.
type target struct{ dir, authority string }

func (t *target) flags(cmd *cobra.Command, which bool) {
	cmd.Args = cobra.NoArgs
	cmd.Flags().StringVar(&t.dir, "dir", "", "folder of the authorities (required)")
	_ = cmd.MarkFlagRequired("dir") // the flag exists
	if !which {
		return
	}
	cmd.Flags().StringVar(&t.authority, "authority", "", "root, device, server or service (required)")
	_ = cmd.MarkFlagRequired("authority") // the flag exists
	_ = cmd.RegisterFlagCompletionFunc("authority", cobra.FixedCompletions([]string{"root", "device", "server", "service"},
		cobra.ShellCompDirectiveNoFileComp))
}

func list() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use: "list", Short: "List the authorities that are trusted", Example: "  kenneld ca list -dir /etc/kennel/ca",
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := ca.Load(t.dir)
			if err != nil {
				return err
			}
			all := a.Authorities()
			return cli.Print(cmd, all, func(tab *cli.Table) {
				tab.Row("AUTHORITY", "FILES", "STAGE", "NAME", "UNTIL", "KEY")
				for _, i := range all {
					tab.Row(string(i.Kind), i.Name, string(i.Stage), i.CommonName, i.NotAfter.Format(time.DateOnly), i.Key)
				}
			})
		},
	}
	t.flags(cmd, false)
	return cmd
}

func rotate() *cobra.Command {
	var t target
	var kms string
	var now bool
	cmd := &cobra.Command{
		Use: "rotate", Short: "Make the next authority of a kind, trusted beside the present one",
		Long: `Make the next authority of a kind, trusted beside the present one.

It does not sign yet. Every verifier must learn it first: other kennelds within seconds, brokers when their
bundles are written again, robots a new root with their next renewal. Then run activate; or say -now where
there is no other verifier.`,
		Example: `  kenneld ca rotate -dir /etc/kennel/ca -authority device
  kenneld ca rotate -dir /etc/kennel/ca -authority device -kms awskms:key-id=alias/kennel-device?region=eu-central-1`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := ca.Load(t.dir)
			if err != nil {
				return err
			}
			k := ca.Kind(t.authority)
			if now {
				name, err := a.Rotate(k, kms)
				return say(cmd, name, err, "%s signs; certificates of the earlier ones stay good until kenneld ca withdraw")
			}
			name, err := a.Prepare(k, kms)
			return say(cmd, name, err, "%s is prepared; when every broker and kenneld has it: kenneld ca activate -authority "+t.authority)
		},
	}
	t.flags(cmd, true)
	cmd.Flags().StringVar(&kms, "kms", "", "`address` of its key in a key management service (default: a key file in the folder)")
	cmd.Flags().BoolVar(&now, "now", false, "have it sign at once")
	return cmd
}

func activate() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use: "activate", Short: "Have the prepared authority of a kind sign", Example: "  kenneld ca activate -dir /etc/kennel/ca -authority device",
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := ca.Load(t.dir)
			if err != nil {
				return err
			}
			name, err := a.Activate(ca.Kind(t.authority))
			return say(cmd, name, err, "%s signs; certificates of the earlier ones stay good until kenneld ca withdraw")
		},
	}
	t.flags(cmd, true)
	return cmd
}

func withdraw() *cobra.Command {
	var t target
	var name string
	cmd := &cobra.Command{
		Use: "withdraw", Short: "End the trust in an authority that does not sign, and delete its key",
		Example: "  kenneld ca withdraw -dir /etc/kennel/ca -authority device -name device",
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := ca.Load(t.dir)
			if err != nil {
				return err
			}
			return say(cmd, name, a.Withdraw(ca.Kind(t.authority), name), "%s is withdrawn: what it issued is refused; write the brokers' bundles again")
		},
	}
	t.flags(cmd, true)
	cmd.Flags().StringVar(&name, "name", "", "the authority's `files`, as kenneld ca list names them (required)")
	_ = cmd.MarkFlagRequired("name") // the flag exists
	return cmd
}

func say(cmd *cobra.Command, name string, err error, format string) error {
	if err != nil {
		return err
	}
	return cli.PrintLine(cmd, map[string]string{"name": name}, func() string { return fmt.Sprintf(format, name) })
}
