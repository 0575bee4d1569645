package ctl

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/certs/certsapi"
	"kennel/infra/cli"
	"kennel/infra/cli/version"
	"kennel/infra/errs"
	"kennel/infra/thing"
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
	c, err := a.client(cmd.Context())
	if err != nil {
		return err
	}
	var secrets *os.File
	if out != "" { // before anything is registered: a secret that cannot be written is lost
		if secrets, err = os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return errs.New(errs.Invalid, "%w", err)
		}
	}
	answer, err := c.postCSV(cmd.Context(), "/v1/things/batch", f)
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
			return fmt.Sprintf("%d robots are registered; their claim secrets are in %s", len(rows), out)
		})
	}
	if cli.JSON(cmd) {
		return cli.Print(cmd, rows, nil)
	}
	_, err = cmd.OutOrStdout().Write(answer)
	return err
}

func parseSecrets(b []byte) ([]certsapi.Registration, error) {
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil || len(rows) == 0 || len(rows[0]) != 2 || rows[0][0] != "thing" {
		return nil, errs.New(errs.Corrupt, "the answer is not the CSV of a delivery: %w", err)
	}
	out := make([]certsapi.Registration, 0, len(rows)-1)
	for _, r := range rows[1:] {
		out = append(out, certsapi.Registration{Thing: thing.ID(r[0]), Secret: r[1]})
	}
	return out, nil
}

// postCSV sends a file as it is read and returns a good answer. A refusal names the lines.
func (c *client) postCSV(ctx context.Context, path string, body io.Reader) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.s.Server+path, io.NopCloser(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "text/csv")
	req.Header.Set("User-Agent", "kennelctl/"+version.String())
	req.Header.Set("Authorization", "Bearer "+c.s.Token)
	patient := *c.http
	if t, ok := patient.Transport.(*http.Transport); ok {
		t = t.Clone()
		t.ResponseHeaderTimeout = deliveryTimeout // the answer comes when all are registered
		defer t.CloseIdleConnections()
		patient.Transport = t
	}
	resp, err := patient.Do(req)
	if err != nil {
		return nil, unreachable(c.s.Server, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, unreachable(c.s.Server, err)
	}
	if resp.StatusCode == http.StatusOK {
		return b, nil
	}
	var p certsapi.DeliveryProblem
	if json.Unmarshal(b, &p) == nil && len(p.Lines) > 0 {
		var text strings.Builder
		text.WriteString("nothing was registered")
		for _, l := range p.Lines {
			fmt.Fprintf(&text, "\nline %d: %s", l.Line, l.Problem)
		}
		if p.More > 0 {
			fmt.Fprintf(&text, "\nand %d more", p.More)
		}
		return nil, errs.Coded(errs.ParseKind(p.Kind), p.Code, "%s", text.String())
	}
	resp.Body = io.NopCloser(bytes.NewReader(b))
	return nil, c.refused(resp)
}
