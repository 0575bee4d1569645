package app

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kennel/cloud/access"
	"kennel/cloud/identity/token/tokentest"
	"kennel/infra/api/ack"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/events"
	"kennel/infra/api/motionwire"
	"kennel/infra/api/owners"
	"kennel/infra/api/tokenwire"
	"kennel/infra/api/topics"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/testwait"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"
)

// refusals are SQLSTATEs of a primary in trouble: no space, no memory, too many connections, a disk that does not answer, an end ordered by its operator, and a
// standby that takes no writes.
var refusals = []string{pgtest.DiskFull, "53200", "53300", "58030", "57P01", "25006"}

// reading are the requests of robots that write nothing, or not without more than a request; a primary in trouble does not show in them.
var reading = map[string]string{
	"jdocs/read": "", "jdocs/revision": "", "motion/sync": "", "motion/file": "", "ota/desired": "", "ota/trust": "", "owner/status": "",
	"speech/listen": "", "speech/say": "", "owner/code": "the robot has an owner",
	"token/associate": "tokenapi.TestFullDisk", "token/reassociate": "tokenapi.TestFullDisk", "token/secondary": "tokenapi.TestFullDisk", "token/refresh": "tokenapi.TestFullDisk", "token/disassociate": "tokenapi.TestFullDisk",
}

// robotsTold: with every table closed, what robots bring is refused for now, never for good: they keep it and come again (issue 34, must hold 1).
func (d *desk) robotsTold(t *testing.T) {
	t.Helper()
	d.as(t, d.tokens[auth.Owner], "PATCH", "/v1/things/"+string(rex)+"/jdocs/"+string(jdocs.AccountSettings), map[string]any{"set": map[string]any{"data_collection": true}})
	given, said := d.ask(t, auth.Admin, "POST", "/v1/things/"+string(rex)+"/commands", "application/json", `{"kind":"ping"}`)
	var command struct{ ID string }
	if err := json.Unmarshal([]byte(said), &command); err != nil || command.ID == "" {
		t.Fatal(given.StatusCode, said, err)
	}
	body := func(v any) []byte {
		t.Helper()
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	wants := map[string][]byte{
		"jdocs/write":       body(jdocswire.WriteReq{DocName: "vic.RobotSettings", Doc: jdocswire.Doc{DocVersion: 1, FmtVersion: 1, JSONDoc: `{"master_volume":1}`}}),
		"jdocs/delete":      body(jdocswire.DeleteReq{DocName: "vic.RobotSettings"}),
		"command/result":    body(commandwire.Result{V: 1, ID: command.ID, Status: commandwire.Done, Finished: 1}),
		"command/pull":      nil,
		"motion/verdict":    body(motionwire.Verdict{V: 1, Ref: motionwire.Ref{Name: "hop", SHA256: motionwire.Sum(nil)}, Why: "no file"}),
		"motion/body":       body(motionwire.Body{V: 1, Model: "m", Ending: "mtn"}),
		"owner/wiped":       body(owners.Keyed{Key: "wipe-1"}),
		"token/certificate": body(tokenwire.Certificate{SessionCertificate: string(tokentest.GatewayCert(t, "Vector-B2C3"))}),
	}
	for _, name := range access.Requests.Names() {
		if _, reads := reading[name]; reads == (wants[name] != nil) && name != "command/pull" {
			t.Errorf("%s: say whether it writes, and what a robot sends", name)
		}
	}
	pgtest.Refuse(t, d.base.Pool, pgtest.DiskFull)
	var seq uint64
	for _, code := range refusals {
		pgtest.Refuse(t, d.base.Pool, code, "jdocs_doc") // and of the others: they share the code
		for name, body := range wants {
			service, method, _ := strings.Cut(name, "/")
			ctx, cancel := context.WithTimeout(t.Context(), testwait.Long)
			answer, err := d.robot.Do(ctx, service, method, body)
			cancel()
			if e, ok := errors.AsType[*errs.Error](err); !ok || e.Kind != errs.Unavailable || e.Retry < time.Second {
				t.Errorf("%s: %s: answer %s, error %v; want unavailable, and when to come again", code, name, answer, err)
			}
		}
		seq++
		batch, err := events.EncodeBatch("full"+code, []events.Event{{Seq: seq, Level: events.Info, Source: "test", RobotID: rex.Serial(), BootID: "boot", Name: "test.word"}})
		if err != nil {
			t.Fatal(err)
		}
		for topic, payload := range map[string][]byte{topics.DAS: batch, topics.OTA: []byte(`{"v":1,"id":"full` + code + `","phase":"pending","release":"2.0.1.6079"}`)} {
			if err := d.client.Publish(t.Context(), topics.UpTopic(rex, topic), 1, false, payload); err != nil {
				t.Fatal(err)
			}
			if a := testwait.For(t, d.acks, "the answer to "+topic); a.Status != ack.RetryAfter || a.After <= 0 {
				t.Errorf("%s: %s: %+v; want it to come again", code, topic, a)
			}
		}
	}
}

// fullDisk: a whole cloud, whose Postgres finds no space for anything but the audit log, refuses each operation that changes something for now: people's programs are told
// when to come again, and nothing is changed.
func (d *desk) fullDisk(t *testing.T) {
	t.Helper()
	closed := slices.DeleteFunc(pgtest.Tables(t, d.base.Pool), func(name string) bool { return strings.HasPrefix(name, "account_audit") })
	defer pgtest.Refuse(t, d.base.Pool, pgtest.DiskFull, closed...)()
	before, refused := d.tables(t), 0
	d.changes(t, func(name string, resp *http.Response, said string) {
		after, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // none is 0
		program := strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") && !strings.Contains(said, errs.CodeOffline)
		switch later := resp.StatusCode == http.StatusServiceUnavailable; {
		case later && program && after < 1, !later && resp.StatusCode >= 500:
			t.Errorf("%s: %d, Retry-After %d, %.300s", name, resp.StatusCode, after, said)
		case later:
			refused++
		}
	})
	if refused < 70 { // the others find nothing to change, and say so
		t.Errorf("%d operations were refused, want 70 or more", refused)
	}
	if r := d.ready.Now(t.Context()); r.Ready || !strings.Contains(r.String(), "postgres has refused writes for lack of space") {
		t.Errorf("readiness does not tell of the full disk: %s", r)
	}
	d.unchanged(t, before)
}
