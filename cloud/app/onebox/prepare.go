package onebox

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"kennel/cloud/app"
	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accounthash"
	"kennel/cloud/identity/account/accountpg"
	"kennel/cloud/identity/account/audit"
	"kennel/infra/auth"
	"kennel/infra/blob"
	"kennel/infra/cli"
	"kennel/infra/config"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/logging"
	"kennel/infra/migrations"
	"kennel/infra/pg"
	"kennel/infra/ratelimit"
)

// Prepare makes ready what kenneld serve expects of its parts: the database's tables, the bucket, and an administrator who can sign in. Repeating it
// is harmless. It waits for parts that are still starting, until ctx ends.
func Prepare(ctx context.Context, cfg app.Config, admin, passwordFile string, log *slog.Logger) error {
	var pool *pgxpool.Pool
	if err := untilWorks(ctx, func() (err error) { pool, err = pg.Open(ctx, cfg.Postgres); return err }); err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pg.Migrate(ctx, pool, migrations.FS); err != nil {
		return err
	}
	if _, err := jobs.Migrate(ctx, pool); err != nil {
		return err
	}
	store, err := blob.Open(ctx, cfg.S3)
	if err != nil {
		return err
	}
	if err := untilWorks(ctx, func() error { return store.EnsureBucket(ctx) }); err != nil {
		return err
	}
	if admin == "" {
		return nil
	}
	return firstAdmin(ctx, pool, admin, passwordFile, log)
}

// firstAdmin makes an administrator's account, unless it is there, and writes its one-time password.
func firstAdmin(ctx context.Context, pool *pgxpool.Pool, email, passwordFile string, log *slog.Logger) error {
	_, people, lines, err := signIn(ctx, pool)
	if err != nil {
		return err
	}
	if _, err := people.Find(ctx, email); errs.KindOf(err) != errs.NotFound {
		return err // nil: an administrator who can sign in exists
	}
	// Opened first: an account whose password could not be written is of no use to anybody.
	f, err := os.OpenFile(passwordFile, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("-password-file: %w", err)
	}
	made, password, err := people.CreateAccount(ctx, email, auth.Admin, "")
	if err == nil {
		_, err = f.WriteString(password.Reveal() + "\n")
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("administrator %s: %w", email, err)
	}
	log.InfoContext(ctx, "administrator created", "email", email, "password_file", passwordFile)
	return lines.Append(ctx, audit.Entry{Actor: "kenneld", Action: "account.create", Object: string(made.ID), Detail: "by kenneld prepare"})
}

// Session returns a session of an account that Prepare made, as kennelctl takes it from a file.
func Session(ctx context.Context, cfg app.Config, email string, ttl time.Duration) (logging.Secret, error) {
	pool, err := pg.Open(ctx, cfg.Postgres)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	in, people, _, err := signIn(ctx, pool)
	if err != nil {
		return "", err
	}
	who, err := people.Find(ctx, email)
	if err != nil {
		return "", fmt.Errorf("account %s: %w", email, err)
	}
	session, err := in.IssueSession(ctx, who.ID, ttl)
	return session.Token, err
}

// signIn returns the rules about people on a database, and its audit log.
func signIn(ctx context.Context, pool *pgxpool.Pool) (*account.SignIn, *account.People, *audit.Log, error) {
	store := accountpg.New(pool)
	lines := audit.New(store, nil)
	in, err := account.NewSignIn(ctx, account.SignInConfig{
		Store: store, Attempts: store, Audit: lines, Hasher: accounthash.New(), ByAddr: ratelimit.NewByAddr(time.Second, 1),
	})
	if err != nil {
		return nil, nil, nil, err
	}
	return in, account.NewPeople(in, store), lines, nil
}

func prepareCommand() *cobra.Command {
	var file, admin, passwordFile string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "prepare",
		Short: "Create the database tables, the bucket and a first administrator for kenneld serve",
		Long: `Create what kenneld serve needs: the database tables, the bucket, and an administrator with a one-time password, written to
-password-file. Running it again is harmless; existing accounts stay as they are.`,
		Example: "  kenneld prepare -config /etc/kennel/kenneld.yaml -admin operator@kennel.example -password-file first-password",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (admin == "") != (passwordFile == "") {
				return cli.Usage("-admin %q and -password-file %q go together", admin, passwordFile)
			}
			cfg := app.Defaults()
			if err := config.Load(&cfg, file, app.EnvPrefix, os.Environ()); err != nil {
				return cli.Usage("%w", err)
			}
			if err := cfg.Validate(); err != nil {
				return err
			}
			log, err := logging.New(cmd.ErrOrStderr(), cfg.Log.Level, cfg.Log.Format)
			if err != nil {
				return cli.Usage("%w", err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			return Prepare(ctx, cfg, admin, passwordFile, log)
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "settings `FILE` (YAML) of kenneld serve (required)")
	f.StringVar(&admin, "admin", "", "e-mail `ADDRESS` of the administrator to create")
	f.StringVar(&passwordFile, "password-file", "", "write the administrator's one-time password to `FILE`")
	f.DurationVar(&wait, "wait", 2*time.Minute, "how long to wait for Postgres and S3")
	_ = cmd.MarkFlagRequired("config") // the flag exists
	return cmd
}
