package ctl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) login() *cobra.Command {
	var email, passwordFile string
	cmd := &cobra.Command{
		Use: "login", Short: "Sign in to a cloud and keep the session", Args: cobra.NoArgs,
		Long: "Asks for what is not given: e-mail address and password. The session is kept in the user's configuration folder, for this user alone.",
		Example: "  kennelctl login -server https://kennel.example -email op@example.org\n" +
			"  kennelctl login -server https://10.0.0.5:8443 -ca root.pem -email op@example.org -password-file pw",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.onebox != "" {
				return cli.Usage("-onebox signs in by itself; use -server URL to keep a session")
			}
			ctx := cmd.Context()
			s, err := a.session(ctx)
			if err != nil {
				return err
			}
			in := bufio.NewReader(cmd.InOrStdin())
			if err := required(cmd, in, &email, "E-mail: "); err != nil {
				return err
			}
			password, err := readPassword(cmd, in, "Password: ", passwordFile)
			if err != nil {
				return err
			}
			got, err := a.stranger.PostLogin(ctx, client.LoginRequest{Email: email, Password: password})
			if err != nil {
				return err
			}
			answer := got.Value
			if answer.Token == "" {
				return errs.New(errs.Corrupt, "%s answered without a token", s.Server)
			}
			s.Email, s.Token, s.Expires = email, answer.Token, answer.Expires
			if err := saveSession(cli.Getenv(ctx), s); err != nil {
				return fmt.Errorf("keep the session: %w", err)
			}
			shown := struct {
				Server     string    `json:"server"`
				Email      string    `json:"email"`
				Role       string    `json:"role"`
				Expires    time.Time `json:"expires,omitzero"`
				MustChange bool      `json:"must_change"`
			}{s.Server, s.Email, answer.Account.Role, s.Expires, answer.Account.MustChange}
			role := ""
			if shown.Role != "" {
				role = " (" + shown.Role + ")"
			}
			return cli.Print(cmd, shown, func(t *cli.Table) {
				t.Text("signed in to " + s.Server + " as " + s.Email + role + until(s.Expires))
				if shown.MustChange {
					t.Text("another person chose this first password; change it with kennelctl password")
				}
			})
		},
	}
	cmd.Flags().StringVar(&email, "email", "", "e-mail `ADDRESS` of the account")
	cmd.Flags().StringVar(&passwordFile, "password-file", "", "read the password from `FILE`")
	_ = cmd.MarkFlagFilename("password-file")
	return cmd
}

func until(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", until " + clock(t)
}

func (a *app) logout() *cobra.Command {
	return &cobra.Command{
		Use: "logout", Short: "End the session and forget it", Args: cobra.NoArgs,
		Example: "  kennelctl logout",
		RunE: func(cmd *cobra.Command, _ []string) error {
			getenv := cli.Getenv(cmd.Context())
			s, err := loadSession(getenv)
			if err != nil {
				return err
			}
			if s.Token == "" {
				return errs.New(errs.Unauthenticated, "not signed in")
			}
			c, err := newConn(s, requestTimeout)
			if err != nil {
				return err
			}
			// Forget first: a cloud that is away must not keep a person signed in on this machine.
			_, remote := client.Client{Do: c.do}.PostLogout(cmd.Context())
			if err := dropSession(getenv); err != nil {
				return err
			}
			if remote != nil && errs.KindOf(remote) != errs.Unauthenticated {
				return fmt.Errorf("the session is forgotten here, but %s did not end it: %w", s.Server, remote)
			}
			return cli.Print(cmd, struct {
				Server string `json:"server"`
			}{s.Server}, func(t *cli.Table) { t.Text("signed out of " + s.Server) })
		},
	}
}

func (a *app) password() *cobra.Command {
	var oldFile, newFile string
	cmd := &cobra.Command{
		Use: "password", Short: "Change your password", Args: cobra.NoArgs,
		Long:    "Asks for the old and the new password. Your other sessions end.",
		Example: "  kennelctl password\n  kennelctl password -old-file old -new-file new",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := a.connect(cmd.Context()); err != nil {
				return err // before a question that would be in vain
			}
			in := bufio.NewReader(cmd.InOrStdin())
			before, err := readPassword(cmd, in, "Old password: ", oldFile)
			if err != nil {
				return err
			}
			after, err := newPassword(cmd, in, newFile)
			if err != nil {
				return err
			}
			if _, err := a.api.PostMePassword(cmd.Context(), client.PasswordRequest{Old: before, New: after}); err != nil {
				return err
			}
			return cli.Print(cmd, struct {
				Changed bool `json:"changed"`
			}{true}, func(t *cli.Table) { t.Text("password changed; other sessions have ended") })
		},
	}
	cmd.Flags().StringVar(&oldFile, "old-file", "", "read the old password from `FILE`")
	cmd.Flags().StringVar(&newFile, "new-file", "", "read the new password from `FILE`")
	return cmd
}

// ask prints a question on standard error and reads one line.
func ask(cmd *cobra.Command, in *bufio.Reader, question string) (string, error) {
	fmt.Fprint(cmd.ErrOrStderr(), question)
	line, err := in.ReadString('\n')
	if err != nil && !(errors.Is(err, io.EOF) && line != "") {
		return "", cli.Usage("%sno answer; want one line on standard input", question)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// readPassword reads the password from a file, from the terminal without showing it, or from standard input.
func readPassword(cmd *cobra.Command, in *bufio.Reader, question, file string) (string, error) {
	if file != "" {
		return passwordIn(file)
	}
	f, isFile := cmd.InOrStdin().(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return ask(cmd, in, question)
	}
	fmt.Fprint(cmd.ErrOrStderr(), question)
	return hidden(cmd.Context(), int(f.Fd()))
}

func passwordIn(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", cli.Usage("password file: %w", err)
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// hidden reads a line from a terminal that does not show it. An interrupt gives the terminal back as it was.
func hidden(ctx context.Context, fd int) (string, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	type line struct {
		b   []byte
		err error
	}
	read := make(chan line, 1) // the reader outlives an interrupt; the process does not outlive it for long
	go func() { b, err := term.ReadPassword(fd); read <- line{b, err} }()
	defer fmt.Fprintln(os.Stderr)
	select {
	case l := <-read:
		return string(l.b), l.err
	case <-ctx.Done():
		return "", errors.Join(ctx.Err(), term.Restore(fd, before))
	}
}
