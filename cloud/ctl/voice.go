package ctl

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) voice() *cobra.Command {
	return describe("voice", "Show results of speech requests to robots", "voice stats", "voice sessions -failed", "voice unmatched -days 30")
}

func (a *app) speech() *cobra.Command {
	return group(describe("speech", "Test speech recognition", "speech try hello.wav"), a.speechTry())
}

func (a *app) speechTry() *cobra.Command {
	var language, kind string
	cmd := a.runs(describe("try FILE", "Send a recording through speech recognition and show the result of each step", "speech try hello.wav", "speech try frage.wav -lang de-DE -kind knowledge -o json"),
		func(cmd *cobra.Command, args []string) error {
			r, err := upload[client.Trial](a, cmd, http.MethodPost, "/v1/speech/try?"+url.Values{"language": {language}, "kind": {kind}}.Encode(), "application/octet-stream", args[0])
			if err := show(cmd, r, err, showTrial); err != nil || r.Value.Failed == "" {
				return err
			}
			return errs.Coded(errs.Conflict, "step_failed", "step %s failed", r.Value.Failed)
		})
	cmd.Flags().StringVar(&language, "lang", "en-US", "`LANGUAGE` of the recording")
	cmd.Flags().StringVar(&kind, "kind", "intent", "`KIND` of request: intent, knowledge, or graph (both)")
	return cmd
}

func showTrial(t *cli.Table, x client.Trial) {
	rows("STEP|RESULT|TOOK|", func(s client.Tried) cells {
		result := "ok"
		if !s.OK {
			result = "failed"
		}
		return cells{s.Step, result, fmt.Sprintf("%.1f ms", s.TookMS), s.Says}
	})(t, x.Steps)
	t.Row("all", "", fmt.Sprintf("%.1f ms", x.TookMS), "")
}
