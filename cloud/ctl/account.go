package ctl

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kennel/infra/cli"
	"kennel/infra/errs"
)

const maxExport = 1 << 30 // bytes

func (a *app) account() *cobra.Command {
	cmd := &cobra.Command{Use: "account", Short: "Your own account: sign up, see it, take everything along, leave",
		Long: "You prove that an e-mail address is yours: signing up, a new password and a new address each send a letter with a code.\n" +
			"The cloud answers the same for any address; only the letter says whether there is an account.",
		Example: "  kennelctl account signup -email ada@example.org\n  kennelctl account show\n  kennelctl account export -to mine.zip"}
	cmd.AddCommand(a.accountSignUp(), a.accountVerify(), a.accountAgain(), a.accountReset(), a.accountSetPassword(), a.accountEmail(), a.accountEmailConfirm(),
		a.accountShow(), a.accountSet(), a.accountSessions(), a.accountEnd(), a.accountApp(), a.accountExport(), a.accountDelete())
	return cmd
}

// stranger returns a client without a session: these requests are for people who are not signed in.
func (a *app) stranger(cmd *cobra.Command) (*client, error) {
	s, err := a.session(cmd.Context())
	if err != nil {
		return nil, err
	}
	s.Token = ""
	return newClient(s)
}

// accepted is what the cloud says when a letter or a job does the rest.
type accepted struct {
	Next string `json:"next"`
}

func (x accepted) show(cmd *cobra.Command) error {
	return cli.Print(cmd, x, func(t *cli.Table) { t.Text(x.Next) })
}

// required asks for a flag's value if it was not given.
func required(cmd *cobra.Command, in *bufio.Reader, value *string, question string) (err error) {
	if *value == "" {
		*value, err = ask(cmd, in, question)
	}
	return err
}

// newPassword reads a password that is being chosen: twice from a terminal.
func newPassword(cmd *cobra.Command, in *bufio.Reader, file string) (string, error) {
	p, err := readPassword(cmd, in, "New password: ", file)
	if err != nil {
		return "", err
	}
	if _, isFile := cmd.InOrStdin().(*os.File); isFile && file == "" {
		again, err := readPassword(cmd, in, "New password again: ", "")
		if err != nil {
			return "", err
		}
		if again != p {
			return "", cli.Usage("the two passwords differ; nothing is changed")
		}
	}
	return p, nil
}

func passwordFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "password-file", "", "read the password from `FILE`")
	_ = cmd.MarkFlagFilename("password-file")
}

func (a *app) accountSignUp() *cobra.Command {
	var email, lang, file string
	cmd := &cobra.Command{
		Use: "signup", Short: "Ask for an account", Args: cobra.NoArgs,
		Long:    "Asks for what is not given. A letter with a code comes to the address; kennelctl account verify takes it.",
		Example: "  kennelctl account signup -server https://kennel.example -email ada@example.org -lang de",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.stranger(cmd)
			if err != nil {
				return err
			}
			in := bufio.NewReader(cmd.InOrStdin())
			if err := required(cmd, in, &email, "E-mail: "); err != nil {
				return err
			}
			password, err := newPassword(cmd, in, file)
			if err != nil {
				return err
			}
			body := map[string]string{"email": email, "password": password}
			if lang != "" {
				body["email_lang"] = lang
			}
			var got accepted
			if _, err := c.do(cmd.Context(), http.MethodPost, "/v1/account/signup", body, &got); err != nil {
				return err
			}
			return got.show(cmd)
		},
	}
	cmd.Flags().StringVar(&email, "email", "", "e-mail `ADDRESS`")
	cmd.Flags().StringVar(&lang, "lang", "", "language of letters, a `TAG` such as en-US")
	passwordFlag(cmd, &file)
	return cmd
}

func (a *app) accountVerify() *cobra.Command {
	var code, file string
	cmd := &cobra.Command{
		Use: "verify", Short: "Prove your e-mail with the code of the letter", Args: cobra.NoArgs,
		Long:    "Asks for what is not given: the code, and the password that you chose when you signed up.",
		Example: "  kennelctl account verify -code CODE",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.stranger(cmd)
			if err != nil {
				return err
			}
			in := bufio.NewReader(cmd.InOrStdin())
			if err := required(cmd, in, &code, "Code: "); err != nil {
				return err
			}
			password, err := readPassword(cmd, in, "Password: ", file)
			if err != nil {
				return err
			}
			var got struct {
				ID    string `json:"id"`
				Email string `json:"email"`
				Role  string `json:"role"`
			}
			if _, err := c.do(cmd.Context(), http.MethodPost, "/v1/account/verify", map[string]string{"code": code, "password": password}, &got); err != nil {
				return err
			}
			return cli.Print(cmd, got, func(t *cli.Table) {
				t.Text("the account " + got.Email + " is ready; sign in with kennelctl login -server " + c.s.Server + " -email " + got.Email)
			})
		},
	}
	cmd.Flags().StringVar(&code, "code", "", "`CODE` from the letter")
	passwordFlag(cmd, &file)
	return cmd
}

// letter is a command that has a letter sent to an address.
func (a *app) letter(use, short, example, path string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1), Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.stranger(cmd)
			if err != nil {
				return err
			}
			var got accepted
			if _, err := c.do(cmd.Context(), http.MethodPost, path, map[string]string{"email": args[0]}, &got); err != nil {
				return err
			}
			return got.show(cmd)
		},
	}
}

func (a *app) accountAgain() *cobra.Command {
	return a.letter("again ADDRESS", "Have the letter of a sign-up sent again", "  kennelctl account again ada@example.org", "/v1/account/verify/again")
}

func (a *app) accountReset() *cobra.Command {
	return a.letter("reset ADDRESS", "Ask for a letter to set a new password", "  kennelctl account reset ada@example.org", "/v1/account/reset")
}

func (a *app) accountSetPassword() *cobra.Command {
	var code, file string
	cmd := &cobra.Command{
		Use: "set-password", Short: "Set a new password with the code of a letter", Args: cobra.NoArgs,
		Long:    "Asks for what is not given. All your sessions end. To change a password that you know, use kennelctl password.",
		Example: "  kennelctl account set-password -code CODE",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.stranger(cmd)
			if err != nil {
				return err
			}
			in := bufio.NewReader(cmd.InOrStdin())
			if err := required(cmd, in, &code, "Code: "); err != nil {
				return err
			}
			password, err := newPassword(cmd, in, file)
			if err != nil {
				return err
			}
			if _, err := c.do(cmd.Context(), http.MethodPost, "/v1/account/reset/confirm", map[string]string{"code": code, "password": password}, nil); err != nil {
				return err
			}
			return accepted{"the password is set; sign in with it"}.show(cmd)
		},
	}
	cmd.Flags().StringVar(&code, "code", "", "`CODE` from the letter")
	passwordFlag(cmd, &file)
	return cmd
}

func (a *app) accountEmail() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "email ADDRESS", Short: "Ask for a letter to change your e-mail", Args: cobra.ExactArgs(1),
		Long:    "Asks for your password. The letter goes to the new address; kennelctl account email-confirm takes its code.",
		Example: "  kennelctl account email new@example.org",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			password, err := readPassword(cmd, bufio.NewReader(cmd.InOrStdin()), "Password: ", file)
			if err != nil {
				return err
			}
			var got accepted
			if _, err := c.do(cmd.Context(), http.MethodPost, "/v1/account/email", map[string]string{"email": args[0], "password": password}, &got); err != nil {
				return err
			}
			return got.show(cmd)
		},
	}
	passwordFlag(cmd, &file)
	return cmd
}

func (a *app) accountEmailConfirm() *cobra.Command {
	return &cobra.Command{
		Use: "email-confirm CODE", Short: "Prove your new e-mail with the code of the letter", Args: cobra.ExactArgs(1),
		Example: "  kennelctl account email-confirm CODE",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.stranger(cmd)
			if err != nil {
				return err
			}
			if _, err := c.do(cmd.Context(), http.MethodPost, "/v1/account/email/confirm", map[string]string{"code": args[0]}, nil); err != nil {
				return err
			}
			return accepted{"your account uses the new address"}.show(cmd)
		},
	}
}

// showRecord prints the fields of a record that are set.
func showRecord(cmd *cobra.Command, r map[string]any) error {
	return cli.Print(cmd, r, func(t *cli.Table) {
		for _, k := range slices.Sorted(maps.Keys(r)) {
			if r[k] != nil {
				t.Row(k, r[k])
			}
		}
	})
}

func (a *app) accountShow() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Show the record of your account", Args: cobra.NoArgs, Example: "  kennelctl account show -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var r map[string]any
			if err := a.do(cmd, http.MethodGet, "/v1/account", nil, &r); err != nil {
				return err
			}
			return showRecord(cmd, r)
		},
	}
}

func (a *app) accountSet() *cobra.Command {
	return &cobra.Command{
		Use: "set KEY=VALUE...", Short: "Change fields of your account's record", Args: cobra.MinimumNArgs(1),
		Long:    "Fields: given_name, family_name, gender, dob (YYYY-MM-DD), email_lang (such as en-US). An empty value clears one.",
		Example: "  kennelctl account set given_name=Ada email_lang=en-GB",
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := parseSet(args)
			if err != nil {
				return err
			}
			for k, v := range set { // texts all of them, also those that look like numbers
				if len(v) > 0 && v[0] != '"' {
					if set[k], err = json.Marshal(string(v)); err != nil {
						return err
					}
				}
			}
			var r map[string]any
			if err := a.do(cmd, http.MethodPatch, "/v1/account", set, &r); err != nil {
				return err
			}
			return showRecord(cmd, r)
		},
	}
}

type accountSession struct {
	ID       string    `json:"id"`
	Current  bool      `json:"current"`
	App      bool      `json:"app"`
	Created  time.Time `json:"created"`
	LastSeen time.Time `json:"last_seen,omitzero"`
	Expires  time.Time `json:"expires"`
	Addr     string    `json:"addr,omitempty"`
	Robot    string    `json:"robot,omitempty"`
}

func (a *app) accountSessions() *cobra.Command {
	return &cobra.Command{
		Use: "sessions", Short: "List where you are signed in", Args: cobra.NoArgs, Example: "  kennelctl account sessions",
		RunE: func(cmd *cobra.Command, _ []string) error {
			list := []accountSession{}
			if err := a.do(cmd, http.MethodGet, "/v1/account/sessions", nil, &list); err != nil {
				return err
			}
			return cli.Print(cmd, list, func(t *cli.Table) {
				t.Row("SESSION", "KIND", "SINCE", "LAST SEEN", "UNTIL", "FROM")
				for _, s := range list {
					kind, from := "person", s.Addr
					if s.App {
						kind, from = "app", s.Robot
					}
					if s.Current {
						kind += ", this one"
					}
					t.Row(s.ID, kind, ago(s.Created), ago(s.LastSeen), ago(s.Expires), from)
				}
			})
		},
	}
}

func (a *app) accountEnd() *cobra.Command {
	var others bool
	cmd := &cobra.Command{
		Use: "end [SESSION]", Short: "End a session, or all but this one", Args: cobra.MaximumNArgs(1),
		Example: "  kennelctl account end 0f3a5c7e9b1d2f40\n  kennelctl account end -others",
		RunE: func(cmd *cobra.Command, args []string) error {
			if others == (len(args) == 1) {
				return cli.Usage("want a session such as kennelctl account sessions shows, or -others")
			}
			c, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			ended := struct {
				Ended int `json:"ended"`
			}{1}
			if others {
				_, err = c.do(cmd.Context(), http.MethodDelete, "/v1/account/sessions", nil, &ended)
			} else {
				_, err = c.do(cmd.Context(), http.MethodDelete, "/v1/account/sessions/"+args[0], nil, nil)
			}
			if err != nil {
				return err
			}
			return cli.Print(cmd, ended, func(t *cli.Table) { t.Text(fmt.Sprintf("sessions ended: %d", ended.Ended)) })
		},
	}
	cmd.Flags().BoolVar(&others, "others", false, "all but this one")
	return cmd
}

func (a *app) accountApp() *cobra.Command {
	return &cobra.Command{
		Use: "app-token", Short: "Make a session token for one robot", Args: cobra.NoArgs,
		Long:    "A tool that speaks to a robot hands the token to it, once; the robot then acts for you. Whoever has the token can do that.",
		Example: "  kennelctl account app-token -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			var got struct {
				Token   string    `json:"session_token"`
				Expires time.Time `json:"expires"`
			}
			if _, err := c.do(cmd.Context(), http.MethodPost, "/v1/account/apps", nil, &got); err != nil {
				return err
			}
			return cli.Print(cmd, got, func(t *cli.Table) { t.Row("session_token", got.Token); t.Row("expires", ago(got.Expires)) })
		},
	}
}

func (a *app) accountExport() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "export", Short: "Take along everything that is held about you", Args: cobra.NoArgs,
		Long:    "Writes a ZIP of JSON files, one for each part of the cloud. An existing file is not overwritten.",
		Example: "  kennelctl account export -to mine.zip",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			resp, err := c.send(cmd.Context(), http.MethodGet, "/v1/account/export", nil)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			n, err := saveNew(to, io.LimitReader(resp.Body, maxExport), resp.ContentLength)
			if err != nil {
				return err
			}
			shown := struct {
				File  string `json:"file"`
				Bytes int64  `json:"bytes"`
			}{to, n}
			return cli.Print(cmd, shown, func(t *cli.Table) { t.Text(fmt.Sprintf("%s: %d bytes", to, n)) })
		},
	}
	cmd.Flags().StringVar(&to, "to", "kennel-account.zip", "write to `FILE`")
	_ = cmd.MarkFlagFilename("to", "zip")
	return cmd
}

// saveNew writes a new file for this user alone, whole or not at all; want is its size, -1 if unknown.
func saveNew(name string, r io.Reader, want int64) (n int64, err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return 0, cli.Usage("%s exists; give another name with -to", name)
	}
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(f, r)
	if err == nil && want >= 0 && n != want {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		err = errs.New(errs.Unavailable, "the export broke off after %d of %d bytes; nothing is kept: %w", n, want, err)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(name) // the first error is the one to tell
	}
	return n, err
}

func (a *app) accountDelete() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "delete", Short: "Delete your account and everything that is held about you", Args: cobra.NoArgs,
		Long:    "Asks for your password. There is no way back: take everything along first, with kennelctl account export.",
		Example: "  kennelctl account delete",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			password, err := readPassword(cmd, bufio.NewReader(cmd.InOrStdin()), "Password, to delete everything: ", file)
			if err != nil {
				return err
			}
			var got accepted
			if _, err := c.do(cmd.Context(), http.MethodPost, "/v1/account/delete", map[string]string{"password": password}, &got); err != nil {
				return err
			}
			return got.show(cmd)
		},
	}
	passwordFlag(cmd, &file)
	return cmd
}
