package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/access"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/owner/ownerpg"
	"kennel/cloud/identity/token/tokenpg"
	"kennel/cloud/telemetry/storage"
	"kennel/cloud/voice/answers/answerspg"
	"kennel/cloud/voice/customintent"
	"kennel/cloud/voice/customintent/customintentpg"
	"kennel/cloud/voice/voice"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/owners"
	"kennel/infra/auth"
	"kennel/infra/testwait"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"
	"kennel/ota/otapg"
)

// impersonal are the other tables, by why the end of an ownership leaves them as they are.
var impersonal = map[string]string{
	"they are the account, and end with it":                                             "account_account account_attempt account_ceremony account_deletion account_near account_oidc account_passkey account_profile account_recovery account_session account_signup account_ticket account_totp account_user_session",
	"the audit log and the record of erasures, from which account.Privacy takes people": "account_audit account_audit_addr account_audit_erased account_audit_head account_erasure",
	"operators' own":                                                           "account_former alert_ack alert_crossed alert_found alert_gone alert_mail alert_part alert_rule alert_silence alert_threshold bulk_item bulk_job cohort_saved ready_record storage_usage webhook_hook webhook_problem",
	"releases, and which robot runs which":                                     "artifact_archive artifact_channel ota_desired ota_release ota_round ota_status rollout_member rollout_rollout rollout_turn rollout_zone vouch_metadata",
	"the identity of the robot, the same for every owner":                      "certs_batch certs_certificate certs_claim certs_factory_change certs_factory_revoked certs_revocation certs_waiting ddi_device door_stranger originals_turn owner_code owner_thing token_key token_session_certificate",
	"the condition of the robot, in numbers and fixed words":                   "motion_body motion_robot das_last das_range intake_usage registry_facet registry_presence registry_thing registry_words sts_usage command_due",
	"sums and words that name no robot":                                        "crash_symbols das_day das_group das_heard das_name das_unkeyed speech_day speech_words",
	"a note of what is to be erased":                                           "das_erased",
	"gone within a minute; cloud/fleet/liveview shows an owner none of before": "robot_look",
	"the queue's and the schema's; orders name a deletion, not a person":       "goose_db_version river_job river_leader river_migration river_notification river_queue",
}

// passing are what slices keep for a moment, or only when asked to: they may be empty when this test looks.
const passing = "das_raw das_robot mail_outbox owner_news s3 parquet/ webhook_event"

// ends are the ways in which an ownership ends. Each gives the robot from one person to the next.
var ends = map[string]func(t *testing.T, w *wired, from, to *person){
	owner.EndReleased: func(t *testing.T, w *wired, from, to *person) {
		w.as(t, from.token, "DELETE", "/v1/my/robots/"+string(rex), nil)
		w.begin(t, to)
	},
	owner.EndTransferred: func(t *testing.T, w *wired, from, to *person) {
		var offer struct{ ID string }
		if err := json.Unmarshal([]byte(w.as(t, from.token, "POST", "/v1/my/robots/"+string(rex)+"/transfer", map[string]string{"to": to.email, "password": password})), &offer); err != nil {
			t.Fatal(err)
		}
		w.as(t, to.token, "POST", "/v1/my/transfers/"+offer.ID+"/accept", nil)
	},
	owner.EndWiped: func(t *testing.T, w *wired, from, to *person) {
		if err := w.owners.Wiped(t.Context(), rex, "wipe-"+to.token[:8]); err != nil {
			t.Fatal(err)
		}
		w.begin(t, to)
	},
	owner.EndWiped + " by another person": func(t *testing.T, w *wired, _, to *person) {
		if err := w.owners.Associate(t.Context(), rex, to.id, owner.HowWiped); err != nil {
			t.Fatal(err)
		}
	},
	owner.EndDisassociated: func(t *testing.T, w *wired, _, to *person) {
		if err := w.owners.Disassociate(t.Context(), rex); err != nil {
			t.Fatal(err)
		}
		w.begin(t, to)
	},
	owner.EndOperator: func(t *testing.T, w *wired, from, to *person) {
		if err := w.owners.TakeAway(t.Context(), from.id, rex); err != nil {
			t.Fatal(err)
		}
		w.begin(t, to)
	},
	owner.EndErased: func(t *testing.T, w *wired, from, to *person) {
		w.erase(t, from)
		w.begin(t, to)
	},
}

// begin gives rex, which has no owner, to a person.
func (w *wired) begin(t *testing.T, p *person) {
	t.Helper()
	if _, _, err := ownerpg.New(w.base.Pool).Begin(t.Context(), rex, p.id, owner.HowCode, false); err != nil {
		t.Fatal(err)
	}
}

// streams are the routes of owners that do not end by themselves, and the tests that look at them.
var streams = map[string]string{
	"GET /v1/events/tail":         "cloud/telemetry/das/dasapi",
	"GET /v1/things/{thing}/live": "cloud/fleet/liveview/liveviewapi",
	"GET /my/live":                "cloud/web/companion",
}

// look asks everything that the access table lets an owner read, with the ids of what is found in lists, or with these. What is not answered well is in refused.
func (w *wired) look(t *testing.T, p *person, ids map[string][]string) (said map[string][]byte, refused []string) {
	t.Helper()
	queries := map[string]string{"GET /v1/events": "?thing=" + string(rex), "GET /v1/events/boots": "?thing=" + string(rex), "GET /v1/things/{thing}/logs/search": "?text=planted",
		"GET /v1/things/{thing}/jdocs/{doc}/history": "?limit=1000", "GET /v1/things/{thing}/jdocs/{doc}/diff": "?from={version}&to={version}"}
	said, cookie := map[string][]byte{}, w.cookie(t)
	for _, name := range access.HTTP.Names() {
		rule := access.HTTP[name]
		method, path, _ := strings.Cut(name+queries[name], " ")
		if method != http.MethodGet || !slices.Contains(rule.Roles, auth.Owner) || streams[name] != "" || name == "GET /v1/account/export" {
			continue
		}
		paths := []string{strings.ReplaceAll(path, "{thing}", string(rex))}
		for param, values := range ids {
			if !strings.Contains(path, param) {
				continue
			}
			var with []string
			for _, path := range paths {
				for _, v := range values {
					with = append(with, strings.ReplaceAll(path, param, v))
				}
			}
			paths = with
		}
		for _, path := range paths {
			if strings.Contains(path, "{") {
				t.Fatalf("%s: this test knows no value of that", path)
			}
			header := []string{"Authorization", "Bearer " + p.token}
			if rule.Page {
				header = []string{"Cookie", cookie + "=" + p.token}
			}
			code, body := w.get(t, method, path, "", header...)
			if code != http.StatusOK { // it repeats what was asked for
				body = strings.ReplaceAll(body, path[strings.LastIndex(path, "/")+1:], "")
			}
			if said[path] = []byte(body); code != http.StatusOK && !strings.Contains(path, "/diff?") { // versions of before the ownership are none
				refused = append(refused, fmt.Sprintf("%s: %d %.200s", path, code, body))
			}
		}
	}
	return said, refused
}

// told returns what rex is told when it asks, what is understood when people speak to it, and what it heard.
func (w *wired) told(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	items := []jdocs.Item{{Name: jdocs.RobotSettings}, {Name: jdocs.AccountSettings}}
	read, err := jdocswire.NewClient(w.robot).Read(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	out["jdocs/read"] = fmt.Appendf(nil, "%+v", read)
	for service, method := range map[string]string{commandwire.Service: commandwire.PullMethod, owners.Service: owners.StatusMethod} {
		if out[service+"/"+method], err = w.robot.Do(t.Context(), service, method, nil); err != nil {
			t.Fatal(service, err)
		}
	}
	known, err := customintent.New(customintentpg.New(w.base.Pool), w.base.Log).List(t.Context(), rex)
	if err != nil {
		t.Fatal(err)
	}
	out["custom intents"] = fmt.Appendf(nil, "%+v", known)
	chosen, err := otapg.New(w.base.Pool).Choices(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	talk, err := answerspg.New(w.base.Pool).Of(t.Context(), thing.Stretch{Thing: rex, Until: time.Now().Add(time.Hour)}) // all ends with the ownership
	if err != nil {
		t.Fatal(err)
	}
	out["talk"] = fmt.Appendf(nil, "%+v", talk)
	out["choice of an update"] = fmt.Appendf(nil, "%+v", chosen)
	for o, err := range w.base.Blobs.List(t.Context(), voice.Prefix) { // it is promised that these end with the ownership
		if err != nil {
			t.Fatal(err)
		}
		out["recordings"] = append(out["recordings"], o.Key...)
	}
	return out
}

// ids returns the ids of what an owner of rex finds in lists.
func (w *wired) ids(t *testing.T, p *person) map[string][]string {
	t.Helper()
	type item struct{ ID, Name string }
	var commands, logs []item
	var audio struct{ Recordings []item }
	for path, to := range map[string]any{"/v1/things/" + string(rex) + "/commands": &commands, "/v1/things/" + string(rex) + "/logs": &logs, "/v1/my/robots/" + string(rex) + "/audio": &audio} {
		if err := json.Unmarshal([]byte(w.as(t, p.token, "GET", path, nil)), to); err != nil {
			t.Fatal(path, err)
		}
	}
	out := map[string][]string{"{name}": {"hop"}, "{doc}": {string(jdocs.AccountSettings), string(jdocs.RobotSettings)}}
	for v := range 30 {
		out["{version}"] = append(out["{version}"], fmt.Sprint(v+1))
	}
	for param, items := range map[string][]item{"{id}": commands, "{log}": logs, "{clip}": audio.Recordings} {
		for _, i := range items {
			out[param] = append(out[param], cmp.Or(i.ID, i.Name))
		}
		if len(items) == 0 {
			t.Errorf("%s: the owner has none", param)
		}
	}
	return out
}

// TestHandOver hands rex from person to person by each end of an ownership, told in time or late: its process was killed before, or between two of those
// who are told, and the next owner has left words already. The next owner then reads everything that an owner may, and exports it: no word is of another
// person, and none of their own is lost. After the former owner's erasure nothing that the cloud keeps has a word of theirs (issue 28).
func TestHandOver(t *testing.T) {
	w := start(t, nil)
	ctx := t.Context()
	if err := registrypg.New(w.base.Pool, w.base.Log).Register(ctx, rex); err != nil {
		t.Fatal(err)
	}
	owned := ownerpg.New(w.base.Pool)
	holdings := w.slices.Personal()
	from := w.person(t, "p0")
	w.begin(t, from)
	w.plant(t, from)
	w.planted(t)
	var others []string
	n := 0
	for _, end := range slices.Sorted(maps.Keys(ends)) {
		for _, late := range []bool{false, true} {
			if late == (n%2 == 0) && os.Getenv("KENNEL_SOAK") == "" {
				n++
				continue
			}
			n++
			t.Logf("%s, late %v", end, late)
			ids, to := w.ids(t, from), w.person(t, fmt.Sprintf("p%d", n))
			others = append(append(others, from.words...), from.email, from.id)
			if late {
				told := w.quietly(t, func() owner.Tenure {
					ended, err := owned.End(ctx, rex, from.id, strings.Fields(end)[0])
					if err != nil {
						t.Fatal(err)
					}
					for _, h := range holdings[:n%len(holdings)] {
						if h.Ended != nil {
							err = errors.Join(err, h.Ended(ctx, ended))
						}
					}
					w.begin(t, to)
					if w.plant(t, to); err != nil {
						t.Fatal(err)
					}
					return ended
				})
				w.settled(t, told)
			} else {
				ends[end](t, w, from, to)
				seen, _ := w.look(t, to, ids)
				for what, at := range map[string]map[string][]byte{"reads at once": seen, "has a robot that is told at once": w.told(t)} {
					if found := holding(at, others...); len(found) > 0 {
						t.Errorf("the next owner %s:\n%s", what, strings.Join(found, "\n"))
					}
				}
				if acts, err := tokenpg.New(w.base.Pool).Acts(ctx, rex, from.id, time.Now()); acts || err != nil {
					t.Errorf("the robot acts for the former owner: %v, %v", acts, err)
				}
				w.plant(t, to)
			}
			seen, refused := w.look(t, to, w.ids(t, to))
			if len(refused) > 0 {
				t.Errorf("refused to the owner:\n%s", strings.Join(refused, "\n"))
			}
			stale, _ := w.look(t, to, ids)
			export := w.export(t, to)
			for what, at := range map[string]map[string][]byte{"reads": seen, "reads by the ids of the former owner": stale, "exports": export, "has a robot that is told": w.told(t)} {
				if found := holding(at, others...); len(found) > 0 {
					t.Errorf("the next owner %s:\n%s", what, strings.Join(found, "\n"))
				}
			}
			for _, word := range to.words {
				if len(holding(export, word)) == 0 {
					t.Errorf("the next owner has lost %s", word)
				}
				if wantsRead := !slices.ContainsFunc(unread, func(kind string) bool { return strings.HasSuffix(word, kind) }); len(holding(seen, word)) > 0 != wantsRead {
					t.Errorf("the next owner reads %s: %v, want %v", word, !wantsRead, wantsRead)
				}
			}
			if end != owner.EndErased || late {
				w.erase(t, from)
			}
			if found := holding(w.stores(t), slices.Concat(from.words, []string{from.email}, forms(from.id), forms(from.profile))...); len(found) > 0 {
				t.Errorf("left after the erasure:\n%s", strings.Join(found, "\n"))
			}
			if from = to; t.Failed() {
				t.FailNow()
			}
		}
	}
}

// unread are the kinds of words that owners have in their export alone.
var unread = []string{"release", "friend", "hook", "dump", "memory", "lastline", "peer", "call"}

// planted checks that something is in everything that the slices say they keep, and that every table is one of these or of impersonal.
func (w *wired) planted(t *testing.T) {
	t.Helper()
	kept, stores := map[string]string{}, w.stores(t)
	for _, h := range w.slices.Personal() {
		if len(h.Keeps) == 0 {
			t.Errorf("%s keeps nothing", h.Name)
		}
		for _, where := range h.Keeps {
			if kept[where] != "" {
				t.Errorf("%s and %s keep %s", kept[where], h.Name, where)
			}
			kept[where] = h.Name
			found := slices.ContainsFunc(slices.Collect(maps.Keys(stores)), func(at string) bool { return strings.HasPrefix(at, where) })
			if !found && !strings.Contains(passing, where) {
				t.Errorf("%s keeps %s, in which nothing is: plant something", h.Name, where)
			}
		}
	}
	rows, err := w.base.Pool.Query(t.Context(), `SELECT c.relname FROM pg_class c WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	others := strings.Fields(strings.Join(slices.Collect(maps.Values(impersonal)), " "))
	for _, class := range storage.Classes {
		if class != "ota" && kept["s3 "+class+"/"] == "" { // releases are the operators'
			t.Errorf("no slice keeps the objects of %s (wire.Holding)", class)
		}
	}
	for at := range stores {
		if class, _, _ := strings.Cut(strings.TrimPrefix(at, "s3 "), "/"); strings.HasPrefix(at, "s3 ") && !slices.Contains(storage.Classes, class) {
			t.Errorf("%s is of no class of objects (cloud/telemetry/storage)", at)
		}
	}
	for _, table := range tables {
		if (kept[table] == "") == !slices.Contains(others, table) {
			t.Errorf("table %s: want it either in what a slice keeps (wire.Holding) or among the impersonal ones of this test, with the reason", table)
		}
	}
}

// quietly does what ends an ownership and begins the next without anybody being told of the end.
func (w *wired) quietly(t *testing.T, do func() owner.Tenure) owner.Tenure {
	t.Helper()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := w.base.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE OR REPLACE FUNCTION quiet() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.settled := true; RETURN NEW; END'`)
	exec(`CREATE TRIGGER quiet BEFORE UPDATE ON owner_tenure FOR EACH ROW EXECUTE FUNCTION quiet()`)
	ended := do()
	exec(`DROP TRIGGER quiet ON owner_tenure`)
	exec(`UPDATE owner_tenure SET settled = false WHERE id = $1`, ended.ID)
	return ended
}

// settled waits until the end of an ownership was told.
func (w *wired) settled(t *testing.T, ended owner.Tenure) {
	t.Helper()
	testwait.Until(t, testwait.Long, "the end is told", func() error {
		var settled bool
		err := w.base.Pool.QueryRow(t.Context(), `SELECT settled FROM owner_tenure WHERE id = $1`, ended.ID).Scan(&settled)
		if err == nil && !settled {
			err = errors.New("it is not")
		}
		return err
	})
}
