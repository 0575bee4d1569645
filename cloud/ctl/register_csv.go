package ctl

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// deliveryTimeout bounds one delivery of 100,000 robots.
const deliveryTimeout = 5 * time.Minute

// registerCSV registers all robots of a file, or none. The secrets go to out, or to standard output.
func (a *app) registerCSV(cmd *cobra.Command, file, out string) error {
	f := cmd.InOrStdin()
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return errs.New(errs.Invalid, "%w", err)
		}
		defer opened.Close() // read only
		f = opened
	}
	c, err := a.connect(cmd.Context())
	if err != nil {
		return err
	}
	if c, err = newConn(c.s, deliveryTimeout); err != nil { // the answer begins when all are registered
		return err
	}
	var secrets *os.File
	if out != "" { // before anything is registered: a secret that cannot be written is lost
		if secrets, err = os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return errs.New(errs.Invalid, "%w", err)
		}
	}
	answer, _, err := c.do(cmd.Context(), http.MethodPost, "/v1/things/batch", f)
	if secrets != nil {
		if err == nil {
			_, err = secrets.Write(answer)
		}
		if err == nil {
			err = secrets.Sync()
		}
		err = errors.Join(err, secrets.Close())
		if err != nil && answer == nil {
			_ = os.Remove(out) // empty, and ours
		}
	}
	if err != nil {
		return err
	}
	rows, err := parseSecrets(answer)
	if err != nil {
		return err
	}
	if secrets != nil {
		return cli.PrintLine(cmd, map[string]any{"registered": len(rows), "secrets": out}, func() string {
			return fmt.Sprintf("%s registered; claim secrets are in %s", cli.Count(len(rows), "robot"), out)
		})
	}
	if cli.JSON(cmd) {
		return cli.Print(cmd, rows, nil)
	}
	_, err = cmd.OutOrStdout().Write(answer)
	return err
}

func parseSecrets(b []byte) ([]client.Registration, error) {
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil || len(rows) == 0 || len(rows[0]) != 2 || rows[0][0] != "thing" {
		return nil, errs.New(errs.Corrupt, "the answer is not the CSV of a delivery: %w", err)
	}
	out := make([]client.Registration, 0, len(rows)-1)
	for _, r := range rows[1:] {
		out = append(out, client.Registration{Thing: r[0], Secret: r[1]})
	}
	return out, nil
}
