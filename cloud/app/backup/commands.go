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
		Short: "Save an installation into one file, also while it runs",
		Long: `Save a one-machine instance into one file: database, objects, authorities and secrets. With -config, save the installation that
kenneld serve runs with these settings: the database, the bucket, and the folder of the authorities. That needs pg_dump on this machine, of the
server's version or a later one. With public keys of age (-recipient,
-recipients-file, or the file backup-recipients in the data folder) only the holder of a matching private key can read it; without them the
file is as secret as what is in it.

The key of the root authority is left out unless -with-root-key is given. Nothing that runs needs it; keep it apart with kenneld ca offline.`,
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
	f.StringVar(&s.Dir, "data", "", "data folder (default: as kenneld onebox)")
	f.StringVar(&settings, "config", "", "settings of kenneld serve, whose parts are saved instead")
	f.StringVar(&s.Out, "out", "", "file to write (required)")
	f.StringArrayVar(&keys, "recipient", nil, "public `key` of age to which the file is encrypted (may be repeated)")
	f.StringVar(&file, "recipients-file", "", "`file` with such keys, one a line (default: backup-recipients in the data folder or beside ca.dir, if it is there)")
	f.BoolVar(&s.RootKey, "with-root-key", false, "put the key of the root authority into the file as well")
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
		Short: "Prove a backup: restore it into a scratch instance, check it, and remove it",
		Long: `Prove a backup: restore it into a folder of its own with a Postgres of its own, apply the migrations of this version, and check rows,
checksums, the chain of the audit log, the authorities and the objects. Nothing of it is started, and the folder is removed.

The result is recorded in the instance in -data, or in the database of the settings in -config, where the page "Ready for the internet?" and
kennelctl check find it. The scratch folder needs about three times the size of the database.`,
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
			return errs.New(errs.Corrupt, "the backup is not proven: %s", report.Says)
		},
	}
	f := cmd.Flags()
	f.StringVar(&in, "in", "", "file that kenneld backup wrote (required)")
	f.StringVar(&identity, "identity", "", "`file` with the private key of age, for an encrypted backup")
	f.StringVar(&scratch, "scratch", "", "folder for the scratch instance (default: that for temporary files)")
	f.StringVar(&data, "data", "", "data folder of the instance in which the result is recorded (default: as kenneld onebox)")
	f.StringVar(&file, "config", "", "settings of kenneld serve, in whose database the result is recorded instead")
	_ = cmd.MarkFlagRequired("in") // the flag exists
	return cmd
}

func restoreCommand(dataDir func(string) (string, error)) *cobra.Command {
	var data, in, identity, settings, scratch string
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Make an instance from a backup, in an empty folder or in an empty database",
		Long: `Make a one-machine instance from a backup, in an empty folder. A backup that was made with -config goes back with -config: the objects into the
bucket, the authorities into their folder if that is empty, and then the tables into the database, which must have none. Nothing of kenneld may run
meanwhile.

People may have stopped things since the backup was made. Therefore rollouts come up paused, wishes for releases wait until they are made again, and bulk actions and
commands that were under way have ended.`,
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
	cmd.Flags().StringVar(&data, "data", "", "data folder, absent or empty (default: as kenneld onebox)")
	cmd.Flags().StringVar(&settings, "config", "", "settings of kenneld serve, into whose parts a backup of such an installation goes")
	cmd.Flags().StringVar(&scratch, "scratch", "", "folder in which that is unpacked meanwhile (default: that for temporary files)")
	cmd.Flags().StringVar(&in, "in", "", "file that kenneld backup wrote (required)")
	cmd.Flags().StringVar(&identity, "identity", "", "`file` with the private key of age, for an encrypted backup")
	_ = cmd.MarkFlagRequired("in") // the flag exists
	return cmd
}

// commandLog returns the logger of a one-off command.
func commandLog(cmd *cobra.Command) *slog.Logger {
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}
