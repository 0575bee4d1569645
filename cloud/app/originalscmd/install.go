package originalscmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/originals"
	"kennel/cloud/originals/install"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func installCommand(from *cloudFlags, folder Folder) *cobra.Command {
	var key, fingerprint, known string
	var undo bool
	cmd := &cobra.Command{
		Use:   "install ROBOT",
		Short: "Write what an original robot needs to its files, over SSH",
		Long: `Write server_config.json and the root certificate to an original robot over SSH, on software that allows it: developer builds, unlocked
robots and community builds. Stock software without a token also gets a placeholder, because it reads the root only after it has one. What was there before
is kept beside each file, and -undo puts it back. ROBOT is the robot's address, HOST or HOST:PORT. Installing again changes nothing that is right. The exit
code is 1 if a step fails; the robot is then as it was, or the last line says what is left.`,
		Example: `  kenneld originals install 192.168.1.77 -key id_rsa_Vector-A1B2
  kenneld originals install 192.168.1.77 -key id_rsa_Vector-A1B2 -fingerprint SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU
  kenneld originals install 192.168.1.77 -key id_rsa_Vector-A1B2 -undo`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			secret, err := os.ReadFile(key)
			if err != nil {
				return cli.Usage("-key: %w", err)
			}
			if _, err := os.Stat(known); errors.Is(err, fs.ErrNotExist) && !cmd.Flags().Changed("known-hosts") {
				known = "" // this person has never used SSH
			}
			api, err := from.api(folder)
			if err != nil {
				return err
			}
			g, err := guide(cmd.Context(), api)
			if err != nil {
				return err
			}
			addr := args[0]
			if _, _, err := net.SplitHostPort(addr); err != nil {
				addr = net.JoinHostPort(strings.Trim(addr, "[]"), "22")
			}
			shell, err := install.Dial(cmd.Context(), install.Login{Addr: addr, Key: secret, Fingerprint: fingerprint, KnownHosts: known,
				Confirm: func(print string) error { return confirm(cmd, addr, print) }})
			if err != nil {
				return err
			}
			defer shell.Close()
			do := install.Install
			if undo {
				do = install.Undo
			}
			r := do(cmd.Context(), shell, install.Config{Guide: g, Now: time.Now(), Tell: func(s originals.Step) { tell(cmd, s) }})
			if cli.JSON(cmd) {
				err = cli.Print(cmd, r, nil)
			} else if r.OK {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), cli.Clean(r.Sentence))
			}
			if err != nil || r.OK {
				return err
			}
			return errs.New(errs.Internal, "%s", r.Sentence)
		},
	}
	f := cmd.Flags()
	f.StringVar(&key, "key", "", "`FILE` with the SSH private key of the robot's root user")
	f.StringVar(&fingerprint, "fingerprint", "", "host key of the robot, as `SHA256:...` (default: a known host, or a question)")
	home, _ := os.UserHomeDir() // without one there are no known hosts
	f.StringVar(&known, "known-hosts", filepath.Join(cmp.Or(home, "."), ".ssh", "known_hosts"), "`FILE` with known host keys")
	f.Lookup("known-hosts").DefValue = "~/.ssh/known_hosts"
	f.BoolVar(&undo, "undo", false, "put back what was there before the first installation")
	_ = cmd.MarkFlagRequired("key") // the flag is there
	return cmd
}

// tell prints a step as it is done.
func tell(cmd *cobra.Command, s originals.Step) {
	if cli.JSON(cmd) {
		return
	}
	result := "done"
	if !s.OK {
		result = "FAILED"
	}
	_, _ = fmt.Fprintln(cmd.OutOrStdout(), cli.Clean(fmt.Sprintf("%-12s  %-6s  %s", s.Name, result, s.Detail))) // the result is told again at the end
}

// confirm asks whether a fingerprint is the robot's. Its error is Invalid if the answer is not yes.
func confirm(cmd *cobra.Command, addr, print string) error {
	if _, err := io.WriteString(cmd.ErrOrStderr(), cli.Clean("The host key of "+addr+" is "+print+". Is this your robot? [y/N] ")); err != nil {
		return err
	}
	var answer string
	if _, err := fmt.Fscanln(cmd.InOrStdin(), &answer); err != nil || !slices.Contains([]string{"y", "yes"}, strings.ToLower(answer)) {
		return errs.New(errs.Invalid, "not confirmed: nothing was done (-fingerprint skips the question)")
	}
	return nil
}
