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
	cmd.Flags().StringVar(&t.dir, "dir", "", "folder `DIR` with the authorities (required)")
	_ = cmd.MarkFlagRequired("dir") // the flag exists
	if !which {
		return
	}
	cmd.Flags().StringVar(&t.authority, "authority", "", "`KIND`: root, device, server or service (required)")
	_ = cmd.MarkFlagRequired("authority") // the flag exists
	_ = cmd.RegisterFlagCompletionFunc("authority", cobra.FixedCompletions([]string{"root", "device", "server", "service"},
		cobra.ShellCompDirectiveNoFileComp))
}

func list() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use: "list", Short: "List trusted authorities", Example: "  kenneld ca list -dir /etc/kennel/ca",
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
		Use: "rotate", Short: "Create the next authority of a kind, trusted beside the current one",
		Long: `Create the next authority of a kind, trusted beside the current one.

It does not sign yet: every verifier has to learn it first. Other kennelds do within seconds, brokers when their
bundles are rewritten, robots (a new root) with their next renewal. Then run activate; or give -now if there is no
other verifier.`,
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
				return say(cmd, name, err, "%s now signs; certificates of earlier ones stay valid until kenneld ca withdraw")
			}
			name, err := a.Prepare(k, kms)
			return say(cmd, name, err, "%s prepared; once every broker and kenneld has it, run kenneld ca activate -authority "+t.authority)
		},
	}
	t.flags(cmd, true)
	cmd.Flags().StringVar(&kms, "kms", "", "`address` of the key in a key management service (default: a key file in the folder)")
	cmd.Flags().BoolVar(&now, "now", false, "let it sign at once")
	return cmd
}

func activate() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use: "activate", Short: "Let the prepared authority of a kind sign", Example: "  kenneld ca activate -dir /etc/kennel/ca -authority device",
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := ca.Load(t.dir)
			if err != nil {
				return err
			}
			name, err := a.Activate(ca.Kind(t.authority))
			return say(cmd, name, err, "%s now signs; certificates of earlier ones stay valid until kenneld ca withdraw")
		},
	}
	t.flags(cmd, true)
	return cmd
}

func withdraw() *cobra.Command {
	var t target
	var name string
	cmd := &cobra.Command{
		Use: "withdraw", Short: "Stop trusting an authority that no longer signs, and delete its key",
		Example: "  kenneld ca withdraw -dir /etc/kennel/ca -authority device -name device",
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := ca.Load(t.dir)
			if err != nil {
				return err
			}
			return say(cmd, name, a.Withdraw(ca.Kind(t.authority), name), "%s withdrawn: its certificates are refused; rewrite the brokers' bundles")
		},
	}
	t.flags(cmd, true)
	cmd.Flags().StringVar(&name, "name", "", "the authority's `files`, from kenneld ca list (required)")
	_ = cmd.MarkFlagRequired("name") // the flag exists
	return cmd
}

func offline() *cobra.Command {
	var t target
	var out, file string
	var keys []string
	cmd := &cobra.Command{
		Use: "offline", Short: "Move the root's key from the folder to an encrypted file",
		Long: `Move the root's key from the folder to a file encrypted to age public keys, to be kept offline.

No running program needs the key: it only signs the next device, server or service authority. kenneld ca online brings it back for that.`,
		Example: "  kenneld ca offline -dir /etc/kennel/ca -recipient age1... -out /media/safe/root-key.age",
		RunE: func(cmd *cobra.Command, _ []string) error {
			to, err := agefile.ParseRecipients(keys, file)
			if err != nil {
				return err
			}
			if len(to) == 0 {
				return cli.Usage("missing -recipient or -recipients-file: the key is never written unencrypted")
			}
			a, err := ca.Load(t.dir)
			if err != nil {
				return err
			}
			names, err := a.TakeRootKeys(func(keys []byte) error { return keepKeys(out, to, keys) })
			return say(cmd, strings.Join(names, ", "), err, "key of %s moved to "+out+"; keep that file and its private key in two safe places")
		},
	}
	t.flags(cmd, false)
	cmd.Flags().StringVar(&out, "out", "", "new `file` for the key (required)")
	_ = cmd.MarkFlagRequired("out") // the flag exists
	cmd.Flags().StringArrayVar(&keys, "recipient", nil, "age public `key` to encrypt to (may be repeated)")
	cmd.Flags().StringVar(&file, "recipients-file", "", "`file` with age public keys, one per line")
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
		Use: "online", Short: "Bring the root's key back for a rotation",
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
			return say(cmd, strings.Join(names, ", "), err, "key of %s is in the folder; move it away with kenneld ca offline when you are done")
		},
	}
	t.flags(cmd, false)
	cmd.Flags().StringVar(&in, "in", "", "`file` from kenneld ca offline (required)")
	cmd.Flags().StringVar(&identity, "identity", "", "`file` with the age private key (required)")
	_, _ = cmd.MarkFlagRequired("in"), cmd.MarkFlagRequired("identity") // the flags exist
	return cmd
}

func say(cmd *cobra.Command, name string, err error, format string) error {
	if err != nil {
		return err
	}
	return cli.PrintLine(cmd, map[string]string{"name": name}, func() string { return fmt.Sprintf(format, name) })
}
