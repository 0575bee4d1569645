package ctl

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
)

func (a *app) voice() *cobra.Command {
	return group(describe("voice", "What became of what people said to robots", "voice stats", "voice sessions -failed", "voice unmatched -days 30"),
		a.voiceSessions())
}

func (a *app) voiceSessions() *cobra.Command {
	var q client.GetVoiceSessionsQuery
	var failed bool
	var step, version, language string
	var limit int64
	cmd := shows(a, describe("sessions [THING]", "List requests to all robots or to one, the latest first; what was said is not kept with them", "voice sessions", "voice sessions vic:00e20100", "voice sessions -step recognize -version 2.0.1"),
		func(ctx context.Context, args []string) (reply[[]client.VoiceSession], error) {
			if len(args) > 0 {
				return a.api.GetThingsThingVoice(ctx, args[0], client.GetThingsThingVoiceQuery{Limit: &limit})
			}
			q = client.GetVoiceSessionsQuery{Step: given(step), Version: given(version), Language: given(language), Limit: &limit}
			if failed {
				q.Failed = given("true")
			}
			return a.api.GetVoiceSessions(ctx, q)
		}, rows("WHEN|THING|INTENT|FAILED AT|LANGUAGE|VERSION|SPOKEN|ANSWER AFTER|WHY", func(s client.VoiceSession) cells {
			return cells{s.At, cmp.Or(s.Thing, "-"), cmp.Or(s.Intent, "-"), cmp.Or(s.Failed, "-"), s.Language, cmp.Or(s.Firmware, "-"), fmt.Sprintf("%d ms", s.AudioMS), fmt.Sprintf("%d ms", s.TookMS), cmp.Or(s.Why, "-")}
		}))
	f := cmd.Flags()
	f.BoolVar(&failed, "failed", false, "only requests that failed")
	f.StringVar(&step, "step", "", "only requests that failed at `STEP`: audio, endpoint, recognize, match, answer")
	f.StringVar(&version, "version", "", "only robots with `VERSION`")
	f.StringVar(&language, "language", "", "only requests in `LANGUAGE`, such as en-US")
	f.Int64Var(&limit, "limit", 50, "show at most `N` requests")
	return cmd
}

func (a *app) speech() *cobra.Command {
	return group(describe("speech", "Try the service that understands speech", "speech try hello.wav"), a.speechTry())
}

func (a *app) speechTry() *cobra.Command {
	var language, kind string
	cmd := a.runs(describe("try FILE", "Send a recording through the whole service and print each step: audio, end of speech, recognition, intent, answer", "speech try hello.wav", "speech try frage.wav -lang de-DE -kind knowledge -o json"),
		func(cmd *cobra.Command, args []string) error {
			r, err := upload[client.Trial](a, cmd, http.MethodPost, "/v1/speech/try?"+url.Values{"language": {language}, "kind": {kind}}.Encode(), "application/octet-stream", args[0])
			return show(cmd, r, err, showTrial)
		})
	cmd.Flags().StringVar(&language, "lang", "en-US", "`LANGUAGE` of the recording")
	cmd.Flags().StringVar(&kind, "kind", "intent", "`KIND` of request: intent, knowledge, or graph for both")
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
