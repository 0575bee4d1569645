package ctl

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
)

func (a *app) passkeys() *cobra.Command {
	return describe("passkeys", "List and remove your passkeys", "passkeys list", "passkeys remove ID")
}

func (a *app) account() *cobra.Command {
	return group(&cobra.Command{Use: "account", Short: "Manage your account",
		Long: "Signing up, resetting the password and changing the address each send an e-mail with a code, which proves that the address is yours.\n" +
			"The cloud gives the same answer for every address; only the e-mail says whether an account exists.",
		Example: "  kennelctl account signup -email ada@example.org\n  kennelctl account show\n  kennelctl account export -to mine.zip"},
		a.accountSignUp(), a.accountVerify(),
		a.letter("again ADDRESS", "Send the sign-up e-mail again", a.stranger.PostAccountVerifyAgain),
		a.letter("reset ADDRESS", "Request an e-mail to reset your password", a.stranger.PostAccountReset),
		a.accountSetPassword(), a.accountEmail(), a.accountEmailConfirm(),
		shows(a, describe("show", "Show your account", "account show -o json"),
			func(ctx context.Context, _ []string) (reply[map[string]any], error) {
				return a.record(ctx, http.MethodGet, nil)
			}, showRecord),
		a.accountSet(),
		a.accountExport(), a.accountDelete())
}

func showAccepted(t *cli.Table, v client.Accepted) { t.Text(v.Next) }

func (a *app) accountSignUp() *cobra.Command {
	var lang string
	cmd := prompts(a, &cobra.Command{Use: "signup", Short: "Sign up for an account",
		Long:    "Prompts for what is not given, then sends a code to the address. Enter it with kennelctl account verify.",
		Example: "  kennelctl account signup -server https://kennel.example -email ada@example.org -lang de"},
		a.connectUnknown, []input{{flag: "email", usage: "e-mail `ADDRESS`", prompt: "E-mail: "}, chosenPassword},
		func(ctx context.Context, _ *conn, got []string) (reply[client.Accepted], error) {
			return a.stranger.PostAccountSignup(ctx, client.SignUpRequest{Email: got[0], Password: got[1], EmailLang: given(lang)})
		}, showAccepted)
	cmd.Flags().StringVar(&lang, "lang", "", "language of e-mails, a `TAG` such as en-US")
	return cmd
}

// aCode is the code from an e-mail.
var aCode = input{flag: "code", usage: "`CODE` from the e-mail", prompt: "Code: "}

func (a *app) accountVerify() *cobra.Command {
	server := ""
	return prompts(a, &cobra.Command{Use: "verify", Short: "Confirm your e-mail address",
		Long:    "Prompts for what is not given: the code from the e-mail, and the password that you chose when you signed up.",
		Example: "  kennelctl account verify -code CODE"},
		a.connectUnknown, []input{aCode, knownPassword},
		func(ctx context.Context, c *conn, got []string) (reply[client.Account], error) {
			server = c.s.Server
			return a.stranger.PostAccountVerify(ctx, client.CodeRequest{Code: got[0], Password: got[1]})
		}, func(t *cli.Table, got client.Account) {
			t.Text("Account " + got.Email + " is ready. Sign in with: kennelctl login -server " + server + " -email " + got.Email)
		})
}

// letter makes a command that requests an e-mail to an address.
func (a *app) letter(use, short string, request func(context.Context, client.EmailRequest) (reply[client.Accepted], error)) *cobra.Command {
	word, _, _ := strings.Cut(use, " ")
	return shows(a, &cobra.Command{Use: use, Short: short, Example: "  kennelctl account " + word + " ada@example.org"},
		func(ctx context.Context, args []string) (reply[client.Accepted], error) {
			return request(ctx, client.EmailRequest{Email: args[0]})
		},
		showAccepted)
}

// then makes an answer of a text, for a request that answers nothing.
func then(_ reply[client.None], err error, text string) (reply[client.Accepted], error) {
	return answerOf(client.Accepted{Next: text}, err)
}

func (a *app) accountSetPassword() *cobra.Command {
	return prompts(a, &cobra.Command{Use: "set-password", Short: "Set a new password with the code from an e-mail",
		Long:    "Prompts for what is not given. All your sessions end. To change a password that you know, use kennelctl password.",
		Example: "  kennelctl account set-password -code CODE"},
		a.connectUnknown, []input{aCode, chosenPassword},
		func(ctx context.Context, _ *conn, got []string) (reply[client.Accepted], error) {
			r, err := a.stranger.PostAccountResetConfirm(ctx, client.CodeRequest{Code: got[0], Password: got[1]})
			return then(r, err, "Password set. Sign in with it.")
		}, showAccepted)
}

func (a *app) accountEmail() *cobra.Command {
	return prompts(a, &cobra.Command{Use: "email ADDRESS", Short: "Change your e-mail address",
		Long:    "Prompts for your password, then sends a code to the new address. Enter it with kennelctl account email-confirm.",
		Example: "  kennelctl account email new@example.org"},
		a.connect, []input{knownPassword},
		func(ctx context.Context, _ *conn, got []string) (reply[client.Accepted], error) {
			return a.api.PostAccountEmail(ctx, client.NewEmailRequest{Email: got[0], Password: got[1]})
		}, showAccepted)
}

func (a *app) accountEmailConfirm() *cobra.Command {
	return shows(a, describe("email-confirm CODE", "Confirm your new e-mail address", "account email-confirm CODE"),
		func(ctx context.Context, args []string) (reply[client.Accepted], error) {
			r, err := a.stranger.PostAccountEmailConfirm(ctx, client.CodeRequest{Code: args[0]})
			return then(r, err, "Your account uses the new address.")
		}, showAccepted)
}

// record asks for the record of the caller's account, whatever fields it has.
func (a *app) record(ctx context.Context, method string, in any) (r reply[map[string]any], err error) {
	if r.Raw, _, err = a.api.Do(ctx, method, "/v1/account", in); err == nil {
		err = json.Unmarshal(r.Raw, &r.Value)
	}
	return r, err
}

// showRecord prints the fields of a record that are set.
func showRecord(t *cli.Table, r map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(r)) {
		if r[k] != nil {
			t.Row(k, r[k])
		}
	}
}

func (a *app) accountSet() *cobra.Command {
	return shows(a, &cobra.Command{Use: "set KEY=VALUE...", Short: "Change fields of your account",
		Long:    "Fields: given_name, family_name, gender, dob (YYYY-MM-DD), email_lang (such as en-US). An empty value clears the field.",
		Example: "  kennelctl account set given_name=Ada email_lang=en-GB"},
		func(ctx context.Context, args []string) (r reply[map[string]any], err error) {
			set, err := parseSet(args)
			if err != nil {
				return r, err
			}
			for k, v := range set { // texts all of them, also those that look like numbers
				if len(v) > 0 && v[0] != '"' {
					if set[k], err = json.Marshal(string(v)); err != nil {
						return r, err
					}
				}
			}
			return a.record(ctx, http.MethodPatch, set)
		}, showRecord)
}

func (a *app) accountExport() *cobra.Command {
	var to destination
	cmd := a.runs(&cobra.Command{Use: "export", Short: "Download all data held about you",
		Long:    "Writes a ZIP of JSON files, one for each part of the cloud. An existing file is not overwritten.",
		Example: "  kennelctl account export -to mine.zip"},
		func(cmd *cobra.Command, _ []string) error {
			if err := to.check(cmd); err != nil {
				return err
			}
			_, err := a.download(cmd, "/v1/account/export", to.named("kennel-account.zip"))
			return err
		})
	to.flag(cmd)
	return cmd
}

func (a *app) accountDelete() *cobra.Command {
	return prompts(a, &cobra.Command{Use: "delete", Short: "Delete your account and all data held about you",
		Long:    "Prompts for your password. This cannot be undone; kennelctl account export downloads your data first.",
		Example: "  kennelctl account delete"},
		a.connect, []input{{flag: knownPassword.flag, usage: knownPassword.usage, prompt: "Password, to delete everything: ", secret: known}},
		func(ctx context.Context, _ *conn, got []string) (reply[client.Accepted], error) {
			return a.api.PostAccountDelete(ctx, client.DeleteRequest{Password: got[0]})
		}, showAccepted)
}
