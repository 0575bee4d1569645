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

// signedIn is the answer of login.
type signedIn struct {
	Server     string    `json:"server"`
	Email      string    `json:"email"`
	Role       string    `json:"role"`
	Expires    time.Time `json:"expires,omitzero"`
	MustChange bool      `json:"must_change"`
}

func (a *app) login() *cobra.Command {
	var code string
	var cmd *cobra.Command
	cmd = prompts(a, &cobra.Command{Use: "login", Short: "Sign in to a cloud",
		Long: "Prompts for what is not given: e-mail address, password, and the code of your authenticator app if you have one. The session is saved in your\n" +
			"configuration folder, readable only by you.",
		Example: "  kennelctl login -server https://kennel.example -email op@example.org\n" +
			"  kennelctl login -server https://10.0.0.5:8443 -ca root.pem -email op@example.org -password-file pw"},
		func(ctx context.Context) (*conn, error) {
			if a.onebox != "" {
				return nil, cli.Usage("-onebox needs no login; use -server URL to sign in")
			}
			return a.connectUnknown(ctx)
		},
		[]input{{flag: "email", usage: "e-mail `ADDRESS` of the account", prompt: "E-mail: "}, knownPassword},
		func(ctx context.Context, c *conn, got []string) (r reply[signedIn], err error) {
			in := client.LoginRequest{Email: got[0], Password: got[1]}
			in.Code = code
			answer, err := a.stranger.PostLogin(ctx, in)
			if errs.CodeOf(err) == "second_factor" {
				if in.Code, err = ask(cmd, a.stdin, "Code of your authenticator app: "); err == nil {
					answer, err = a.stranger.PostLogin(ctx, in)
				}
			}
			if err != nil {
				return r, err
			}
			v := answer.Value
			if v.Token == "" {
				return r, errs.New(errs.Corrupt, "%s answered without a token", c.s.Server)
			}
			c.s.Email, c.s.Token, c.s.Expires = got[0], v.Token, v.Expires
			if err := saveSession(cli.Getenv(ctx), c.s); err != nil {
				return r, fmt.Errorf("save the session: %w", err)
			}
			return answerOf(signedIn{c.s.Server, got[0], v.Account.Role, v.Expires, v.Account.MustChange}, nil)
		}, func(t *cli.Table, v signedIn) {
			line := "Signed in to " + v.Server + " as " + v.Email
			if v.Role != "" {
				line += " (" + v.Role + ")"
			}
			if !v.Expires.IsZero() {
				line += ", until " + clock(v.Expires)
			}
			t.Text(line)
			if v.MustChange {
				t.Text("This is a one-time password. Choose your own with: kennelctl password")
			}
		})
	cmd.Flags().StringVar(&code, "code", "", "`CODE` from your authenticator app, or a recovery code")
	return cmd
}

func (a *app) logout() *cobra.Command {
	return a.runs(describe("logout", "Sign out", "logout"),
		func(cmd *cobra.Command, _ []string) error {
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
				return fmt.Errorf("signed out on this machine, but %s did not end the session: %w", s.Server, remote)
			}
			return cli.Print(cmd, struct {
				Server string `json:"server"`
			}{s.Server}, func(t *cli.Table) { t.Text("Signed out of " + s.Server) })
		})
}

func (a *app) password() *cobra.Command {
	type changed struct {
		Changed bool `json:"changed"`
	}
	return prompts(a, &cobra.Command{Use: "password", Short: "Change your password",
		Long:    "Prompts for the old and the new password. Your other sessions end.",
		Example: "  kennelctl password\n  kennelctl password -old-file old -new-file new"},
		a.connect, []input{{flag: "old-file", usage: "read the old password from `FILE`", prompt: "Old password: ", secret: known},
			{flag: "new-file", usage: "read the new password from `FILE`", prompt: "New password: ", secret: chosen}},
		func(ctx context.Context, _ *conn, got []string) (reply[changed], error) {
			_, err := a.api.PostMePassword(ctx, client.PasswordRequest{Old: got[0], New: got[1]})
			return answerOf(changed{true}, err)
		}, func(t *cli.Table, _ changed) { t.Text("Password changed. Your other sessions have ended.") })
}

// input is a value that a command asks for unless its flag gives it. The flag of a secret names a file.
type input struct {
	flag, usage, prompt string
	secret              secret
}

type secret int

const (
	open   secret = iota
	known         // a password that the person has
	chosen        // a new password, asked for twice on a terminal
)

var (
	knownPassword  = input{"password-file", "read the password from `FILE`", "Password: ", known}
	chosenPassword = input{"password-file", knownPassword.usage, "New password: ", chosen}
)

// prompts makes a command that sends its arguments and what it asks for, and prints the answer. It connects first, so that it asks nothing in
// vain.
func prompts[T any](a *app, cmd *cobra.Command, connect func(context.Context) (*conn, error), inputs []input,
	send func(ctx context.Context, c *conn, got []string) (reply[T], error), table func(*cli.Table, T)) *cobra.Command {
	values := make([]string, len(inputs))
	a.runs(cmd, func(cmd *cobra.Command, args []string) error {
		c, err := connect(cmd.Context())
		if err != nil {
			return err
		}
		a.stdin = bufio.NewReader(cmd.InOrStdin())
		for i, in := range inputs {
			v, err := in.read(cmd, a.stdin, values[i])
			if err != nil {
				return err
			}
			args = append(args, v)
		}
		r, err := send(cmd.Context(), c, args)
		return show(cmd, r, err, table)
	})
	for i, in := range inputs {
		cmd.Flags().StringVar(&values[i], in.flag, "", in.usage)
		if in.secret != open {
			_ = cmd.MarkFlagFilename(in.flag)
		}
	}
	return cmd
}

// read returns the value of in, of which flag is given.
func (in input) read(cmd *cobra.Command, stdin *bufio.Reader, flag string) (string, error) {
	switch {
	case in.secret != open && flag != "":
		return passwordIn(flag)
	case flag != "":
		return flag, nil
	}
	f, isFile := cmd.InOrStdin().(*os.File)
	once := func(question string) (string, error) {
		if in.secret == open || !isFile || !term.IsTerminal(int(f.Fd())) {
			return ask(cmd, stdin, question)
		}
		fmt.Fprint(cmd.ErrOrStderr(), question)
		return hidden(cmd.Context(), int(f.Fd()))
	}
	v, err := once(in.prompt)
	if err == nil && in.secret == chosen && isFile {
		again, err := once(strings.TrimSuffix(in.prompt, ": ") + " again: ")
		if err != nil {
			return "", err
		}
		if again != v {
			return "", cli.Usage("the passwords differ: nothing was changed")
		}
	}
	return v, err
}

// ask prints a question on standard error and reads one line.
func ask(cmd *cobra.Command, in *bufio.Reader, question string) (string, error) {
	fmt.Fprint(cmd.ErrOrStderr(), question)
	line, err := in.ReadString('\n')
	if err != nil && !(errors.Is(err, io.EOF) && line != "") {
		return "", cli.Usage("%sno answer: want one line on standard input", question)
	}
	return strings.TrimRight(line, "\r\n"), nil
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
