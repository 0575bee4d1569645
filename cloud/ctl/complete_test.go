package ctl

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"kennel/cloud/openapi"
	"kennel/infra/cli"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// commandOf says which command asks for each route, or in brackets why none does.
var commandOf = map[string]string{
	"POST /v1/login": "login", "POST /v1/logout": "logout", "GET /v1/me": "whoami", "POST /v1/me/password": "password",
	"POST /v1/login/passkey/begin": "(a browser has the passkey)", "POST /v1/login/passkey": "(a browser has the passkey)",
	"POST /v1/me/passkeys/begin": "(a browser makes the passkey)", "POST /v1/me/passkeys": "(a browser makes the passkey)",
	"GET /v1/me/passkeys": "passkeys list", "DELETE /v1/me/passkeys/{id}": "passkeys remove",
	"GET /v1/me/second": "second status", "POST /v1/me/second/begin": "second add", "POST /v1/me/second": "second add", "POST /v1/me/second/remove": "second remove",

	"POST /v1/account/signup": "account signup", "POST /v1/account/verify": "account verify", "POST /v1/account/verify/again": "account again",
	"POST /v1/account/reset": "account reset", "POST /v1/account/reset/confirm": "account set-password",
	"POST /v1/account/email": "account email", "POST /v1/account/email/confirm": "account email-confirm", "GET /v1/account": "account show", "PATCH /v1/account": "account set",
	"GET /v1/account/sessions": "account sessions", "DELETE /v1/account/sessions": "account end", "DELETE /v1/account/sessions/{id}": "account end",
	"POST /v1/account/apps": "account app-token", "GET /v1/account/export": "account export", "POST /v1/account/delete": "account delete",

	"GET /v1/my/robots": "my list", "POST /v1/my/robots/claim": "my claim", "PATCH /v1/my/robots/{thing}": "my rename", "DELETE /v1/my/robots/{thing}": "my release",
	"GET /v1/intents/custom": "intent custom list", "POST /v1/intents/custom": "intent custom add", "DELETE /v1/intents/custom/{id}": "intent custom remove",
	"POST /v1/my/robots/{thing}/intents": "my say", "POST /v1/things/{thing}/intents": "robot say",
	"POST /v1/my/robots/{thing}/transfer": "my transfer", "GET /v1/my/transfers": "my transfers", "POST /v1/my/transfers/{id}/accept": "my accept",
	"DELETE /v1/my/transfers/{id}": "my decline",

	"GET /v1/fleet": "fleet", "GET /v1/things": "robots list", "GET /v1/things/{thing}": "robots show", "GET /v1/things/{thing}/doctor": "doctor", "GET /v1/strangers": "doctor", "GET /v1/check": "check",
	"GET /v1/things/{thing}/history": "robots history", "GET /v1/fleet/counts": "robots counts", "PATCH /v1/things/{thing}/tags": "robots tag add",
	"GET /v1/cohorts": "cohorts list", "POST /v1/cohorts": "cohorts create", "GET /v1/cohorts/{cohort}": "cohorts show", "PUT /v1/cohorts/{cohort}": "cohorts change",
	"DELETE /v1/cohorts/{cohort}": "cohorts delete", "POST /v1/bulk/preview": "robots bulk set", "POST /v1/bulk": "robots bulk send", "GET /v1/bulk": "robots bulk list",
	"GET /v1/bulk/{id}": "robots bulk show", "GET /v1/bulk/{id}/results": "robots bulk results", "POST /v1/bulk/{id}/cancel": "robots bulk cancel",

	"GET /v1/things/{thing}/jdocs": "jdocs list", "GET /v1/things/{thing}/jdocs/{doc}": "jdocs get", "PATCH /v1/things/{thing}/jdocs/{doc}": "jdocs set",
	"GET /v1/things/{thing}/jdocs/{doc}/diff": "jdocs diff", "POST /v1/things/{thing}/jdocs/{doc}/restore": "jdocs restore", "GET /v1/jdocs/schemas": "jdocs fields",
	"GET /v1/things/{thing}/jdocs/{doc}/history": "jdocs history", "GET /v1/things/{thing}/commands": "commands list", "POST /v1/things/{thing}/commands": "commands send",
	"GET /v1/things/{thing}/commands/{id}": "commands show", "GET /v1/things/{thing}/live": "robot tree", "GET /v1/events": "events list", "GET /v1/events/tail": "events tail", "GET /v1/events/boots": "events boots", "GET /v1/events/counts": "events query", "GET /v1/events/export": "events export",
	"GET /v1/experiments": "experiments list", "GET /v1/experiments/{key}": "experiments compare",

	"GET /v1/voice/stats": "voice stats", "GET /v1/voice/sessions": "voice sessions", "GET /v1/voice/unmatched": "voice unmatched", "GET /v1/things/{thing}/voice": "voice sessions", "POST /v1/speech/try": "speech try",
	"GET /v1/my/robots/{thing}/update": "my updates", "PUT /v1/my/robots/{thing}/update": "my update",
	"GET /v1/my/robots/{thing}/audio": "my audio show", "PUT /v1/my/robots/{thing}/audio": "my audio keep", "GET /v1/my/robots/{thing}/audio/{clip}": "(my audio show names them; the owner's page has them)",
	"GET /v1/my/robots/{thing}/talk": "my talk show", "PATCH /v1/my/robots/{thing}/talk": "my talk personality", "DELETE /v1/my/robots/{thing}/talk/memory": "my talk forget",
	"GET /v1/my/robots/{thing}/programs": "my programs list", "POST /v1/my/robots/{thing}/programs": "my programs add", "DELETE /v1/my/robots/{thing}/programs/{program}": "my programs revoke",

	"GET /v1/logs": "logs list", "GET /v1/things/{thing}/logs": "logs list", "GET /v1/things/{thing}/logs/search": "logs search", "GET /v1/things/{thing}/logs/{log}": "logs show",
	"GET /v1/things/{thing}/logs/{log}/content": "logs get",

	"GET /v1/crash-groups": "crashes list", "GET /v1/crash-groups/{group}": "crashes group", "PATCH /v1/crash-groups/{group}": "crashes resolve", "GET /v1/crashes": "crashes reports",
	"GET /v1/crashes/{crash}": "crashes show", "GET /v1/crashes/{crash}/dump": "crashes get", "GET /v1/crashes/{crash}/log": "crashes get",
	"GET /v1/crash-symbols": "crashes symbols list", "POST /v1/crash-symbols": "crashes symbols upload", "DELETE /v1/crash-symbols/{debug}": "crashes symbols remove",

	"PUT /v1/releases/{species}/archives/{sum}": "releases upload", "GET /v1/archives": "releases archives", "DELETE /v1/archives/{species}/{sum}": "releases delete", "PUT /v1/ota/lowest/{species}/{version}": "releases lowest",
	"GET /v1/channels":          "channels list",
	"GET /v1/releases/metadata": "releases trust show", "POST /v1/releases/metadata": "releases trust upload",
	"PUT /v1/channels/{species}/{channel}": "channels set",
	"GET /v1/releases":                     "releases list", "POST /v1/releases": "releases add", "GET /v1/things/{thing}/ota": "releases show",
	"PUT /v1/things/{thing}/ota/desired": "releases want", "PUT /v1/ota/desired/{species}": "releases want",
	"GET /v1/rollouts": "rollout list", "POST /v1/rollouts": "rollout create", "GET /v1/rollouts/{id}": "rollout show", "GET /v1/rollouts/{id}/robots": "rollout robots",
	"POST /v1/rollouts/{id}/{action}": "rollout pause", "GET /v1/things/{thing}/rollouts": "rollout why",

	"GET /v1/fleet/health": "health", "GET /v1/storage": "storage", "GET /v1/alerts": "alerts list", "GET /v1/alerts/rule": "alerts rule", "PUT /v1/alerts/rule": "alerts rule", "GET /v1/alerts/thresholds": "alerts thresholds list", "POST /v1/alerts/thresholds": "alerts thresholds add",
	"DELETE /v1/alerts/thresholds/{id}": "alerts thresholds remove", "GET /v1/alerts/mail": "alerts mail list", "PUT /v1/alerts/mail": "alerts mail set",
	"PUT /v1/alerts/acks/{id}": "alerts ack", "DELETE /v1/alerts/acks/{id}": "alerts unack", "GET /v1/alerts/silences": "alerts silences list", "POST /v1/alerts/silences": "alerts silence",
	"DELETE /v1/alerts/silences/{id}": "alerts silences end",
	"GET /v1/webhooks":                "webhooks list", "POST /v1/webhooks": "webhooks add", "GET /v1/webhooks/{id}": "webhooks show", "PATCH /v1/webhooks/{id}": "webhooks change",
	"DELETE /v1/webhooks/{id}": "webhooks remove", "POST /v1/webhooks/{id}/secret": "webhooks secret", "POST /v1/webhooks/{id}/ping": "webhooks ping",
	"GET /v1/webhooks/{id}/deliveries": "webhooks deliveries", "POST /v1/webhooks/{id}/replay": "webhooks replay",

	"GET /v1/things/{thing}/motions": "motions list", "GET /v1/things/{thing}/motions/{name}": "motions show", "GET /v1/things/{thing}/motions/{name}/file": "motions download",
	"PUT /v1/things/{thing}/motions/{name}": "motions upload", "DELETE /v1/things/{thing}/motions/{name}": "motions delete", "POST /v1/things/{thing}/play": "motions play",

	"POST /v1/things": "robots register", "POST /v1/things/batch": "robots register", "GET /v1/things/{thing}/certificates": "robots certificates",
	"POST /v1/things/{thing}/revoke": "robots revoke", "POST /v1/things/{thing}/release": "robots release",
	"POST /v1/things/{thing}/device-token": "robots device-token", "DELETE /v1/things/{thing}/device-token": "robots device-token",
	"GET /v1/things/{thing}/tokens": "robots tokens list", "DELETE /v1/things/{thing}/tokens": "robots tokens revoke", "DELETE /v1/things/{thing}/tokens/{token}": "robots tokens revoke",
	"GET /v1/things/{thing}/apps": "robots apps list", "DELETE /v1/things/{thing}/apps": "robots apps revoke", "DELETE /v1/things/{thing}/apps/{app}": "robots apps revoke",
	"GET /v1/things/{thing}/owner": "robots owner", "DELETE /v1/things/{thing}/owner": "robots disown", "GET /v1/revocations": "robots revocations",
	"GET /v1/waiting": "robots waiting", "POST /v1/waiting/{thing}/approve": "robots approve", "POST /v1/waiting/{thing}/refuse": "robots refuse",
	"GET /v1/batches": "batches list", "PUT /v1/batches/{batch}": "batches put", "POST /v1/batches/{batch}/disable": "batches disable",
	"POST /v1/batches/{batch}/enable": "batches enable", "GET /v1/factory-certificates": "batches revoked", "POST /v1/factory-certificates/revoke": "batches revoke-certificate",

	"GET /v1/operators": "operators list", "POST /v1/operators": "operators add", "PATCH /v1/operators/{id}": "operators role", "DELETE /v1/operators/{id}": "operators remove",
	"POST /v1/operators/{id}/password": "operators password", "GET /v1/operators/{id}/sessions": "operators sessions",
	"DELETE /v1/operators/{id}/sessions": "operators end", "DELETE /v1/operators/{id}/sessions/{session}": "operators end",
	"GET /v1/audit": "audit list", "GET /v1/audit/verify": "audit verify",

	"POST /v1/enroll": "(robots do)", "POST /v1/renew": "(robots do)", "POST /v1/req/{service}/{method}": "(robots do)", "PUT /v1/files/logs/{name}": "(robots do)", "POST /v1/files/crash": "(robots do)", "GET /v1/crl/{file}": "(programs that check certificates do)",
	"GET /v1/originals": "originals show", "POST /v1/originals/self-test": "(kenneld originals check does)", "DELETE /v1/originals/self-test": "(kenneld originals check does)",
	"GET /v1/health": "doctor", "GET /v1/openapi.json": "(a browser and programs do)",
	"GET /v1/watch": "(the console does; robots list asks again)",
}

// TestComplete walks the description of the public API: each route has a command, or a reason why none; each command exists.
func TestComplete(t *testing.T) {
	var doc struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(openapi.JSON, &doc); err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	for path, item := range doc.Paths {
		for method := range item {
			route := strings.ToUpper(method) + " " + path
			described[route] = true
			if commandOf[route] == "" {
				t.Errorf("%s has no command, and nobody says why", route)
			}
		}
	}
	root := Command()
	for route, words := range commandOf {
		if !described[route] {
			t.Errorf("%s is in the list and not in the API", route)
		}
		if strings.HasPrefix(words, "(") {
			continue
		}
		cmd, rest, err := root.Find(strings.Fields(words))
		if err != nil || len(rest) > 0 || cmd.HasSubCommands() && words != "fleet" { // it does both
			t.Errorf("%s: there is no command %q (%v, %q)", route, words, err, rest)
		}
	}
	for _, problem := range cli.Lint(Command()) {
		t.Error(problem)
	}
}

// TestCompletion: scripts for the shells, and what they then ask for.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		var out strings.Builder
		if code := Main([]string{"completion", shell}, func(string) string { return "" }, &out, io.Discard); code != 0 || !strings.Contains(out.String(), "kennelctl") {
			t.Errorf("%s: exit %d, %d bytes", shell, code, out.Len())
		}
	}
	for line, want := range map[string]string{"webhooks ": "deliveries", "webhooks add https://x -kind thing.": "thing.absent", "releases add ": "pleo",
		"webhooks deliveries x --state ":          "dead",
		"jdocs set vic:1 vic.RobotSettings eye_c": "eye_color=", "jdocs set vic:1 vic.RobotSettings eye_color=tip": "eye_color=TIP_OVER_TEAL",
		"jdocs set vic:1 vic.RobotSettings clock_24_hour=t": "clock_24_hour=true", "robots bulk set tag:lab mas": "master_volume=",
		"jdocs set amigo:1 ": "amigo.RobotSettings", "jdocs set amigo:1 amigo.RobotSettings clock_24_hour=t": "clock_24_hour=true",
		"jdocs get vic:1 ": "vic.RobotSettings"} {
		var out strings.Builder
		args := append([]string{"__complete"}, strings.Split(line, " ")...)
		if code := Main(args, func(string) string { return "" }, &out, io.Discard); code != 0 || !slices.ContainsFunc(strings.Split(out.String(), "\n"), func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("%q offers %q, want %s among it", line, out.String(), want)
		}
	}
	func() { // a schema is all that completion needs of a species
		defer func(was []jdocs.Schema) { jdocs.Schemas = was }(jdocs.Schemas)
		others := slices.DeleteFunc(slices.Clone(jdocs.Schemas), func(s jdocs.Schema) bool { return s.Species == thing.Pleo })
		jdocs.Schemas = append(others, jdocs.Schema{Name: "pleo.RobotSettings", Species: thing.Pleo, Begins: true, Formats: []jdocs.Format{{Version: 1}},
			Fields: []jdocs.Field{{Name: "glow", Type: "enum", Values: []string{"RED", "BLUE"}}}})
		for line, want := range map[string]string{"jdocs set pleo:1 ": "pleo.RobotSettings\n", "jdocs set pleo:1 pleo.RobotSettings ": "glow=\n",
			"jdocs set pleo:1 pleo.RobotSettings glow=b": "glow=BLUE\n", "robots bulk set tag:lab gl": "glow=\n"} {
			var out strings.Builder
			if code := Main(append([]string{"__complete"}, strings.Split(line, " ")...), func(string) string { return "" }, &out, io.Discard); code != 0 || !strings.Contains(out.String(), want) {
				t.Errorf("%q offers %q, want %q among it", line, out.String(), want)
			}
		}
	}()
	for line, not := range map[string]string{"jdocs set amigo:1 ": "vic.RobotSettings", "jdocs set pleo:1 ": "vic.RobotSettings", "jdocs set amigo:1 amigo.RobotSettings ": "eye_color"} {
		var out strings.Builder
		if code := Main(append([]string{"__complete"}, strings.Split(line, " ")...), func(string) string { return "" }, &out, io.Discard); code != 0 || strings.Contains(out.String(), not) {
			t.Errorf("%q offers %q, and %s is not the robot's", line, out.String(), not)
		}
	}
}
