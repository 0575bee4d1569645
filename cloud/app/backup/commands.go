// Package backup holds kenneld's commands that save an installation, prove a backup, and restore it.
package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/app"
	"kennel/cloud/page"
	"kennel/cloud/preflight"
	"kennel/cloud/preflight/preflightpg"
	"kennel/infra/agefile"
	"kennel/infra/blob"
	"kennel/infra/cli"
	"kennel/infra/config"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/onebox"
	"kennel/infra/pg"
)

// recipientsName is a file in the data folder, or beside the folder of the authorities: public keys to which backups are encrypted unless a flag says otherwise.
const recipientsName = "backup-recipients"

// Commands returns backup, with drill below it, and restore. dir returns the data folder that a flag names, or the default.
func Commands(dir func(flag string) (string, error)) []*cobra.Command {
	return []*cobra.Command{backupCommand(dir), restoreCommand(dir)}
}

func backupCommand(dataDir func(string) (string, error)) *cobra.Command {
	var s onebox.Saving
	var keys []string
	var file, settings string
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Back up an installation to one file, even while it runs",
		Long: `Back up a one-machine instance to one file: database, objects, authorities and secrets. With -config, back up the installation that
kenneld serve runs with these settings: the database, the bucket, and the folder of the authorities. That needs pg_dump on this machine, of
the server's version or later. With age public keys (-recipient, -recipients-file, or the file backup-recipients in the data folder) only
holders of a matching private key can read the file. Without them it is not encrypted: keep it as safe as the installation itself.

The root authority's key is left out unless -with-root-key is given. No running program needs it; store it with kenneld ca offline.`,
		Example: "  kenneld backup -out kennel.backup -recipient age1...\n  kenneld backup -data /srv/kennel -out kennel.backup\n  kenneld backup -config /etc/kennel/kenneld.yaml -out kennel.backup -recipient age1...\n  kenneld backup drill -in kennel.backup -identity age-key.txt",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if settings != "" {
				if s.From, err = parts(cmd.Context(), settings); err != nil {
					return err
				}
				s.Dir = filepath.Dir(filepath.Clean(s.From.CA))
			} else if s.Dir, err = dataDir(s.Dir); err != nil {
				return err
			}
			if ours := filepath.Join(s.Dir, recipientsName); len(keys) == 0 && file == "" {
				if _, err := os.Stat(ours); err == nil {
					file = ours
				}
			}
			if s.To, err = agefile.ParseRecipients(keys, file); err != nil {
				return err
			}
			saved, err := onebox.Backup(cmd.Context(), s, commandLog(cmd))
			r := preflight.Record{Kind: preflight.Backup, OK: err == nil, At: time.Now(), Says: words(saved, err)}
			if errs.KindOf(err) != errs.NotFound { // there is an instance to tell
				note(cmd.Context(), cmd, s.Dir, settings, r)
			}
			if err != nil {
				return err
			}
			return cli.PrintLine(cmd, saved, func() string { return saved.File + ": " + r.Says })
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.Dir, "data", "", "data folder `DIR` (default: as kenneld onebox)")
	f.StringVar(&settings, "config", "", "back up the installation with the kenneld serve settings in `FILE` instead")
	f.StringVar(&s.Out, "out", "", "`FILE` to write (required)")
	f.StringArrayVar(&keys, "recipient", nil, "encrypt the file to this age public `key` (may be repeated)")
	f.StringVar(&file, "recipients-file", "", "`file` with age public keys, one per line (default: backup-recipients in the data folder or beside ca.dir, if it exists)")
	f.BoolVar(&s.RootKey, "with-root-key", false, "include the root authority's key")
	_ = cmd.MarkFlagRequired("out") // the flag exists
	cmd.AddCommand(drillCommand(dataDir))
	return cmd
}

// parts returns the parts that settings name.
func parts(ctx context.Context, settings string) (*onebox.Parts, error) {
	cfg := app.Defaults()
	if err := config.Load(&cfg, settings, app.EnvPrefix, os.Environ()); err != nil {
		return nil, cli.Usage("%w", err)
	}
	objects, err := blob.Open(ctx, cfg.S3)
	return &onebox.Parts{Postgres: cfg.Postgres, Bucket: cfg.S3.Bucket, Objects: objects, CA: cfg.CA.Dir, Seal: cfg.CA.SealPath()}, err
}

// words says what a backup is, a sentence.
func words(s onebox.Saved, err error) string {
	if err != nil {
		return page.Sentence(errs.Public(err))
	}
	how, root := "not encrypted", "without the root's key"
	if s.Encrypted {
		how = "encrypted"
	}
	if s.RootKey {
		root = "with the root's key"
	}
	return fmt.Sprintf("%s, %s, %s.", page.Bytes(s.Bytes), how, root)
}

// note records r where the page "Ready for the internet?" looks: in the database of the instance in dir, or of the settings in file. A record that
// cannot be written does not change what the command did.
func note(ctx context.Context, cmd *cobra.Command, dir, file string, r preflight.Record) {
	keep := func(c pg.Config) error {
		pool, err := pg.Open(ctx, c)
		if err != nil {
			return err
		}
		defer pool.Close()
		return preflightpg.New(pool).Record(ctx, r)
	}
	var err error
	switch _, statErr := os.Stat(filepath.Join(dir, "pg", "data", "PG_VERSION")); {
	case file != "":
		cfg := app.Defaults()
		if err = config.Load(&cfg, file, app.EnvPrefix, os.Environ()); err == nil {
			err = keep(cfg.Postgres)
		}
	case errors.Is(statErr, fs.ErrNotExist):
		err = fmt.Errorf("no instance in %s", dir)
	default:
		err = onebox.WithDatabase(ctx, dir, commandLog(cmd), func(db *onebox.Postgres) error { return keep(db.Config()) })
	}
	if err != nil {
		commandLog(cmd).WarnContext(ctx, "result not recorded for the page Ready for the internet", "kind", r.Kind, logging.Err, err)
	}
}

func drillCommand(dataDir func(string) (string, error)) *cobra.Command {
	var in, identity, data, file, scratch string
	cmd := &cobra.Command{
		Use:   "drill",
		Short: "Test a backup: restore it to a scratch instance and check it",
		Long: `Test a backup: restore it to a scratch folder with its own Postgres, apply this version's migrations, and check rows, checksums, the
audit log's chain, authorities and objects. The instance is not started, and the folder is removed afterwards.

The result is recorded in the instance in -data, or in the database of -config, for the page "Ready for the internet?" and kennelctl
check. The scratch folder needs about three times the size of the database.`,
		Example: "  kenneld backup drill -in kennel.backup -identity age-key.txt\n  kenneld backup drill -in kennel.backup -identity age-key.txt -scratch /mnt/spare -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir := ""
			if file == "" {
				var err error
				if dir, err = dataDir(data); err != nil {
					return err
				}
			}
			ids, err := agefile.ReadIdentities(identity)
			if err != nil {
				return err
			}
			report := Drill(cmd.Context(), in, scratch, ids, commandLog(cmd))
			b, err := json.Marshal(report)
			if err != nil {
				return err
			}
			note(cmd.Context(), cmd, dir, file, preflight.Record{Kind: preflight.Drill, OK: report.OK, At: report.Started, Says: report.Says, Report: b})
			if err := cli.Print(cmd, report, report.table); err != nil || report.OK {
				return err
			}
			return errs.New(errs.Corrupt, "the backup failed the test: %s", report.Says)
		},
	}
	f := cmd.Flags()
	f.StringVar(&in, "in", "", "backup `file` (required)")
	f.StringVar(&identity, "identity", "", "`file` with the age private key, for an encrypted backup")
	f.StringVar(&scratch, "scratch", "", "folder `DIR` for the scratch instance (default: the temporary folder)")
	f.StringVar(&data, "data", "", "record the result in the instance with data folder `DIR` (default: as kenneld onebox)")
	f.StringVar(&file, "config", "", "record the result in the database of the kenneld serve settings in `FILE` instead")
	_ = cmd.MarkFlagRequired("in") // the flag exists
	return cmd
}

func restoreCommand(dataDir func(string) (string, error)) *cobra.Command {
	var data, in, identity, settings, scratch string
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Restore a backup to an empty folder or an empty database",
		Long: `Restore a backup of a one-machine instance to an empty folder. Restore a backup made with -config with -config: objects go to the bucket,
authorities to their folder if it is empty, then tables to the database, which must be empty. kenneld must not run meanwhile.

Operators may have stopped things since the backup was made. Therefore rollouts are restored paused, target releases have to be set again, and bulk
jobs and commands that were running have ended.`,
		Example: "  kenneld restore -in kennel.backup -data /srv/kennel\n  kenneld restore -in kennel.backup -identity age-key.txt -config /etc/kennel/kenneld.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ids, err := agefile.ReadIdentities(identity)
			if err != nil {
				return err
			}
			var done settled
			stop := func(ctx context.Context, db pg.Config, made time.Time) (err error) {
				done, err = settle(ctx, db, made)
				return err
			}
			if settings != "" {
				to, err := parts(cmd.Context(), settings)
				if err != nil {
					return err
				}
				if err := onebox.RestoreParts(cmd.Context(), in, scratch, ids, *to, stop); err != nil {
					return err
				}
				return cli.PrintLine(cmd, done, done.String)
			}
			dir, err := dataDir(data)
			if err != nil {
				return err
			}
			if err := onebox.Restore(cmd.Context(), in, dir, ids, commandLog(cmd), stop); err != nil {
				return err
			}
			return cli.PrintLine(cmd, done, done.String)
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "data folder `DIR`, absent or empty (default: as kenneld onebox)")
	cmd.Flags().StringVar(&settings, "config", "", "restore a backup made with -config, using the kenneld serve settings in `FILE`")
	cmd.Flags().StringVar(&scratch, "scratch", "", "folder `DIR` to unpack the backup in (default: the temporary folder)")
	cmd.Flags().StringVar(&in, "in", "", "backup `file` (required)")
	cmd.Flags().StringVar(&identity, "identity", "", "`file` with the age private key, for an encrypted backup")
	_ = cmd.MarkFlagRequired("in") // the flag exists
	return cmd
}

// commandLog returns the logger of a one-off command.
func commandLog(cmd *cobra.Command) *slog.Logger {
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}
