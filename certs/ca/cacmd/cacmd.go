// Package cacmd is the command line for replacing authorities with overlap: commands below "kenneld ca".
package cacmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/certs/ca"
	"kennel/infra/agefile"
	"kennel/infra/atomicfile"
	"kennel/infra/cli"
)

// Commands returns list, rotate, activate, withdraw, offline and online.
func Commands() []*cobra.Command {
	return []*cobra.Command{list(), rotate(), activate(), withdraw(), offline(), online()}
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

func offline() *cobra.Command {
	var t target
	var out, file string
	var keys []string
	cmd := &cobra.Command{
		Use: "offline", Short: "Take the root's key out of the folder into an encrypted file",
		Long: `Take the root's key out of the folder into a file that is encrypted to public keys of age, to be kept offline.

Nothing that runs needs the key: it signs the next device, server or service authority only. kenneld ca online brings it back for that.`,
		Example: "  kenneld ca offline -dir /etc/kennel/ca -recipient age1... -out /media/safe/root-key.age",
		RunE: func(cmd *cobra.Command, _ []string) error {
			to, err := agefile.ParseRecipients(keys, file)
			if err != nil {
				return err
			}
			if len(to) == 0 {
				return cli.Usage("want -recipient or -recipients-file: the key is not written unencrypted")
			}
			a, err := ca.Load(t.dir)
			if err != nil {
				return err
			}
			names, err := a.TakeRootKeys(func(keys []byte) error { return keepKeys(out, to, keys) })
			return say(cmd, strings.Join(names, ", "), err, "the key of %s is in "+out+" and no longer in the folder; keep that file and its private key in two safe places")
		},
	}
	t.flags(cmd, false)
	cmd.Flags().StringVar(&out, "out", "", "new `file` for the key (required)")
	_ = cmd.MarkFlagRequired("out") // the flag exists
	cmd.Flags().StringArrayVar(&keys, "recipient", nil, "public `key` of age that opens the file (may be repeated)")
	cmd.Flags().StringVar(&file, "recipients-file", "", "`file` with such keys, one a line")
	return cmd
}

// keepKeys writes keys to a new file, encrypted, and makes it durable.
func keepKeys(file string, to agefile.Recipients, keys []byte) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w, err := agefile.Create(f, to)
	if err == nil {
		_, err = w.Write(keys)
		err = errors.Join(err, w.Close())
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return atomicfile.Sync(filepath.Dir(file))
}

// maxKeys bounds the file of root keys, in bytes.
const maxKeys = 64 << 10

func online() *cobra.Command {
	var t target
	var in, identity string
	cmd := &cobra.Command{
		Use: "online", Short: "Put the root's key back for a rotation",
		Example: "  kenneld ca online -dir /etc/kennel/ca -in /media/safe/root-key.age -identity /media/other/age-key.txt",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ids, err := agefile.ReadIdentities(identity)
			if err != nil {
				return err
			}
			a, err := ca.Load(t.dir)
			if err != nil {
				return err
			}
			f, err := os.Open(in)
			if err != nil {
				return err
			}
			defer f.Close()
			r, _, err := agefile.Open(f, ids)
			if err != nil {
				return fmt.Errorf("%s: %w", in, err)
			}
			keys, err := io.ReadAll(io.LimitReader(r, maxKeys))
			if err != nil {
				return fmt.Errorf("%s: %w", in, err)
			}
			names, err := a.BringRootKeys(keys)
			return say(cmd, strings.Join(names, ", "), err, "the key of %s is in the folder again; take it away with kenneld ca offline when you are done")
		},
	}
	t.flags(cmd, false)
	cmd.Flags().StringVar(&in, "in", "", "`file` that kenneld ca offline wrote (required)")
	cmd.Flags().StringVar(&identity, "identity", "", "`file` with the private key of age (required)")
	_, _ = cmd.MarkFlagRequired("in"), cmd.MarkFlagRequired("identity") // the flags exist
	return cmd
}

func say(cmd *cobra.Command, name string, err error, format string) error {
	if err != nil {
		return err
	}
	return cli.PrintLine(cmd, map[string]string{"name": name}, func() string { return fmt.Sprintf(format, name) })
}
