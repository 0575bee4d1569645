package registry

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/infra/api/status"
)

var update = flag.Bool("update", false, "rewrite testdata")

var now = time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)

func well() *facts {
	return &facts{
		id: "vic:00e20100", now: now,
		thing: &Thing{ID: "vic:00e20100", Created: now.Add(-72 * time.Hour), Presence: Present, Since: now.Add(-3 * time.Hour), LastSeen: now.Add(-4 * time.Second), ClockMS: 40,
			Status: &status.Message{TS: 1, Agent: "1.2.3", OS: "2.0.1.6076", Docs: map[string]uint64{"vic.RobotSettings": 3},
				Body:  &status.Body{BatteryVolts: 3.98, BatteryLevel: "nominal", Firmware: "60"},
				Loop:  &status.Loop{Steps: 100_000, Missed: 3, LateP50: 12, LateP99: 140, StepP99: 90, FIFO: true},
				Spool: &status.Spool{Events: 2}}},
		steps: []Outcome{
			{Name: StepEnroll, OK: true, First: now.Add(-71 * time.Hour), Last: now.Add(-71 * time.Hour), Times: 1, Peer: "192.0.2.7:40000", Version: "1.2.3"},
			{Name: StepRegister, OK: true, First: now.Add(-72 * time.Hour), Last: now.Add(-72 * time.Hour), Times: 1}},
		cert: &Certificate{Serial: "5a17", NotAfter: now.Add(20 * 24 * time.Hour)},
		docs: map[string]uint64{"vic.RobotSettings": 3}, hasDocs: true,
		wanted: "2.0.1.6076", wantedSince: now.Add(-time.Hour), hasRelease: true,
	}
}

// original makes f one of a robot that calls, with the steps of its calls.
func original(f *facts, steps ...Outcome) {
	f.thing = &Thing{ID: f.id, Created: now.Add(-72 * time.Hour)}
	f.thing.Place(false, time.Time{}, now.Add(-5*time.Minute))
	f.cert, f.steps = nil, append(steps, Outcome{Name: StepRefresh, OK: true, First: now.Add(-time.Hour), Last: now.Add(-time.Hour), Times: 3, Peer: "192.0.2.7:40000", Version: "Victor/1.8.1"})
}

func TestLastRefusal(t *testing.T) {
	f := well()
	if r := f.diagnose(); r.Refusal != nil {
		t.Errorf("a refusal %+v of a robot that was never refused", r.Refusal)
	}
	no := Outcome{Name: StepEnroll, Code: "secret_mismatch", Last: now.Add(-80 * time.Hour), Times: 3}
	f = well()
	f.steps = append(f.steps, no) // before it was let in
	no.Do = advice["secret_mismatch"]
	if r := f.diagnose(); r.Refusal == nil || r.Refusal.Outcome != no || !r.Refusal.Over {
		t.Errorf("refusal %+v, want %+v, over", r.Refusal, no)
	}
	f = well()
	f.steps = append([]Outcome{{Name: StepBroker, Code: "expired", Last: now}}, f.steps...)
	if r := f.diagnose(); r.Refusal == nil || r.Refusal.Over || r.Refusal.Do != advice["expired"] || r.Steps[0].Do == "" {
		t.Errorf("refusal %+v, want one of the broker's that lasts, with what to do", r.Refusal)
	}
}

// TestRefusedHandshakeEnds: a call over TLS ends a refused handshake, but for a name that the certificate lacks: the robot may call by several.
func TestRefusedHandshakeEnds(t *testing.T) {
	for code, over := range map[string]bool{"root_distrusted": true, "clock_ahead": true, "name_foreign": false} {
		f := well()
		original(f, Outcome{Name: StepCall, OK: true, Code: "tokens", Last: now}, Outcome{Name: StepTLS, Code: code, Last: now.Add(-time.Second), Times: 1})
		if r := f.diagnose(); r.Refusal == nil || r.Refusal.Over != over {
			t.Errorf("%s, then a call: %+v, want over %v", code, r.Refusal, over)
		}
	}
}

func TestDiagnose(t *testing.T) {
	refused := func(step, code, detail string) Outcome {
		return Outcome{Name: step, Code: code, Detail: detail, First: now.Add(-time.Hour), Last: now.Add(-time.Second), Times: 12, Peer: "192.0.2.7:40000", Version: "1.2.3"}
	}
	for _, tt := range []struct {
		name   string
		spoil  func(*facts)
		level  Level
		check  string // the check that differs
		phrase string // part of the verdict
	}{
		{"well", func(*facts) {}, OK, "", "all is well"},
		{"stranger", func(f *facts) {
			*f = facts{id: f.id, now: now, steps: []Outcome{refused(StepEnroll, "unknown_thing", "this thing was never registered")}}
		}, Fail, "registered", "robots register vic:00e20100"},
		{"wrong secret", func(f *facts) {
			f.thing.LastSeen, f.thing.Status, f.thing.Presence, f.cert = time.Time{}, nil, Absent, nil
			f.steps = []Outcome{refused(StepEnroll, "secret_mismatch", "not the one")}
		}, Fail, "enrolment", "Give the robot the secret that registration printed"},
		{"blocked port or wrong root", func(f *facts) {
			f.thing.LastSeen, f.thing.Status, f.thing.Presence, f.cert, f.steps = time.Time{}, nil, Absent, nil, nil
		}, Warn, "enrolment", "not enrolled"},
		{"blocked port of the broker", func(f *facts) {
			f.thing.LastSeen, f.thing.Status, f.thing.Presence = time.Time{}, nil, Absent
			f.steps = []Outcome{{Name: StepEnroll, OK: true, Peer: "192.0.2.7", First: now, Last: now}}
		}, Warn, "broker", "check that the broker's port"},
		{"revoked", func(f *facts) { f.cert.Revoked = now.Add(-time.Hour) }, Fail, "certificate", "revoked"},
		{"expired in a drawer", func(f *facts) { f.cert.NotAfter = now.Add(-time.Hour) }, Warn, "certificate", "renews by itself"},
		{"renewal refused", func(f *facts) { f.steps = append([]Outcome{refused(StepRenew, "revoked", "taken away")}, f.steps...) }, Fail, "certificate", "12 times"},
		{"broker refuses", func(f *facts) {
			f.thing.LastSeen = now.Add(-2 * time.Hour)
			f.steps = append([]Outcome{refused(StepBroker, "foreign", "certificate of another authority")}, f.steps...)
		}, Fail, "broker", "register it here"},
		{"broker refused once", func(f *facts) {
			f.steps = append([]Outcome{refused(StepBroker, "expired", "was expired")}, f.steps...)
			f.thing.LastSeen = now
		}, OK, "", "all is well"},
		{"absent", func(f *facts) { f.thing.Presence = Absent }, Warn, "presence", "offline for 3 h"},
		{"a simulated loop on a busy desk", func(f *facts) {
			f.thing.Status.Loop.Simulated, f.thing.Status.Loop.LateP99, f.thing.Status.Loop.Missed = true, 60_000, f.thing.Status.Loop.Steps/8
		}, OK, "loop", "all is well"},
		{"a simulated loop on an overloaded desk", func(f *facts) { f.thing.Status.Loop.Simulated, f.thing.Status.Loop.LateP99 = true, 160_000 }, Warn, "loop", "simulated"},
		{"a language that nothing understands", func(f *facts) { f.unheard = "tlh" }, Warn, "speech", "tlh"},
		{"clock", func(f *facts) { f.thing.ClockMS = -3_600_000 }, Fail, "clock", "time server"},
		{"behind", func(f *facts) { f.docs["vic.RobotSettings"] = 5 }, Warn, "documents", "the cloud has version 5, the robot 3"},
		{"recovery", func(f *facts) {
			f.thing.Status.Recovery, f.thing.Status.Docs, f.thing.Status.Problems = true, nil, []string{"recovery boot"}
		}, Warn, "boot", "off and on"},
		{"dirty", func(f *facts) { f.thing.Status.Dirty = []string{"vic.RobotLifetimeStats"} }, Warn, "documents", "changed on the robot"},
		{"quarantine", func(f *facts) { f.thing.Status.Spool.Quarantined = 3 }, Warn, "events", "3 refused"},
		{"backlog", func(f *facts) { f.thing.Status.Spool.Events = 5000 }, Warn, "events", "5000"},
		{"no loop", func(f *facts) { f.thing.Status.Loop = nil }, Warn, "loop", "robotd"},
		{"late loop", func(f *facts) { f.thing.Status.Loop.LateP99, f.thing.Status.Loop.FIFO = 4000, false }, Warn, "loop", "SCHED_FIFO"},
		{"missed", func(f *facts) { f.thing.Status.Loop.Missed = 20_000 }, Fail, "loop", "overloaded"},
		{"fault", func(f *facts) { f.thing.Status.Body.Fault = 915 }, Fail, "body", "fault 915"},
		{"problem", func(f *facts) { f.thing.Status.Problems = []string{"lookup api.example: no such host"} }, Warn, "problems", "no such host"},
		{"fault in words", func(f *facts) {
			f.thing.Status.Problems, f.thing.Status.Body.Fault = []string{"vic-anim: fault 914"}, 914
		}, Fail, "body", "fault code"},
		{"crashes", func(f *facts) {
			f.thing.Crashes = []Crashed{{Release: "2.0.1.6076", Program: "robotd", Count: 3, Newest: now.Add(-2 * time.Second), Group: "6d59fcd7-0b97-4572-9d24-27ee3045a43f"}}
		}, Warn, "crashes", "robotd crashed 3 times on release 2.0.1.6076, last 2 s ago. See what crashed: kennelctl crashes show 6d59fcd7-0b97-4572-9d24-27ee3045a43f"},
		{"waits for approval", func(f *facts) {
			f.thing.LastSeen, f.thing.Status, f.thing.Presence, f.cert = time.Time{}, nil, Absent, nil
			f.steps = []Outcome{refused(StepEnroll, "waiting_approval", "waits for an operator's approval, fingerprint 7QK4-0ZTM-9R3X")}
		}, Fail, "enrolment", "Compare the fingerprint"},
		{"approved", func(f *facts) {
			f.thing.LastSeen, f.thing.Status, f.thing.Presence, f.cert = time.Time{}, nil, Absent, nil
			f.steps = []Outcome{{Name: StepApproval, OK: true, First: now, Last: now, Times: 1, Peer: "192.0.2.7:40000"}, refused(StepEnroll, "waiting_approval", "waits")}
		}, OK, "", "all is well"},
		{"foreign factory", func(f *facts) {
			f.thing.LastSeen, f.thing.Status, f.thing.Presence, f.cert = time.Time{}, nil, Absent, nil
			f.steps = []Outcome{refused(StepEnroll, "foreign_factory", `factory certificate CN "vic:00e20100" of issuer "Another Maker" is signed by none of the 2 batches here`)}
		}, Fail, "enrolment", "add the authorities of its manufacturing batch"},
		{"original robot", func(f *facts) {
			f.thing.LastSeen, f.thing.Status, f.thing.Presence, f.cert = time.Time{}, nil, Absent, nil
			f.steps = []Outcome{{Name: StepAssociate, OK: true, First: now, Last: now, Times: 1, Peer: "192.0.2.7:40000", Version: "Victor/1.8.1"}}
		}, OK, "", "all is well"},
		{"original robot, foreign chain", func(f *facts) {
			f.thing.LastSeen, f.thing.Status, f.thing.Presence, f.cert = time.Time{}, nil, Absent, nil
			f.steps = []Outcome{refused(StepAssociate, "certificate_refused", "issuer unknown")}
		}, Fail, "enrolment", "the reason names the check"},
		{"original robot that calls", func(f *facts) {
			original(f, Outcome{Name: StepCall, OK: true, Code: "tokens", Last: now.Add(-5 * time.Minute), Detail: "called token.example.org", Peer: "192.0.2.7:40000", Version: "Victor/1.8.1"})
		}, OK, "", "all is well"},
		{"original robot, silent", func(f *facts) {
			original(f, Outcome{Name: StepCall, OK: true, Code: "tokens", Last: now.Add(-72 * time.Hour)})
			f.thing.LastSeen = now.Add(-72 * time.Hour)
		}, Warn, "presence", "last connected 3 days ago"},
		{"original robot, no root", func(f *facts) {
			*f = facts{id: f.id, now: now, steps: []Outcome{refused(StepTLS, "root_distrusted", "it called token.example.org and does not trust the certificate: it lacks the root Kennel Root CA")}}
		}, Fail, "trust", "/etc/ssl/certs/local/root.crt"},
		{"original robot, never came through", func(f *facts) {
			*f = facts{id: f.id, now: now, strangers: "A client at 192.0.2.7 called the original robots' port and was refused 5 s ago: it lacks the root."}
		}, Fail, "registered", "no call of it has come through. A client at 192.0.2.7"},
		{"original robot, root installed", func(f *facts) {
			original(f, Outcome{Name: StepCall, OK: true, Code: "tokens", Last: now, Detail: "called token.example.org"}, refused(StepTLS, "root_distrusted", "it lacks the root"))
		}, OK, "", "all is well now; the last refusal was 1 s ago: tls, it lacks the root"},
		{"original robot, foreign name", func(f *facts) {
			original(f, Outcome{Name: StepCall, OK: true, Code: "tokens", Last: now}, refused(StepTLS, "name_foreign", "it called jdocs.example.org, which the certificate of this port does not carry"))
		}, Warn, "trust", "robots.names"},
		{"original robot, voice", func(f *facts) {
			original(f, refused(StepService, "speech_missing", "asked what a spoken sentence means (StreamingIntentGraph)"), Outcome{Name: StepCall, OK: true, Code: "speech", Last: now})
		}, Warn, "services", "asked what a spoken sentence means"},
		{"original robot, a service that came", func(f *facts) {
			original(f, Outcome{Name: StepCall, OK: true, Code: CallDocuments, Last: now}, refused(StepService, "service_unknown", "asked for /jdocspb.Jdocs/ReadDocs, which this cloud does not have"))
		}, OK, "", "all is well now"},
		{"original robot, another service came", func(f *facts) {
			original(f, Outcome{Name: StepCall, OK: true, Code: CallCheck, Last: now}, refused(StepService, "speech_missing", "asked what a spoken sentence means (StreamingIntentGraph)"))
		}, Warn, "services", "asked what a spoken sentence means"},
		{"original robot, update", func(f *facts) {
			original(f, refused(StepService, "update_missing", "asked for the update /vic/prod/full/latest.ota, which this cloud does not have"))
		}, Warn, "services", "The robot shows error 203 and keeps its software"},
		{"original robot, setup of a later version", func(f *facts) {
			*f = facts{id: f.id, now: now, hasOwner: true, steps: []Outcome{refused(StepRefresh, "no_owner", "no owner")}}
			f.steps[0].Version = "Victor/2.0.1.6091 grpc-go/1.40.0"
		}, Fail, "token", "It has no owner"},
		{"original robot, old format", func(f *facts) {
			original(f, Outcome{Name: StepCall, OK: true, Code: CallTokens, Last: now, Version: "Victor/1.6.0.3331", Peer: "192.0.2.9:40000"},
				Outcome{Name: StepCall, OK: true, Code: CallDocuments, Last: now.Add(-time.Hour), Version: "Victor/1.6.0.3331", Peer: "192.0.2.7:41000"})
		}, OK, "", "all is well"},
		{"time zone", func(f *facts) { f.zone = "Europe/Berlin" }, OK, "", "all is well"},
		{"time zone without changes", func(f *facts) { f.zone = "Etc/GMT-1" }, OK, "", "all is well"},
		{"a recogniser that is down", func(f *facts) { f.speech = "sphinx: not installed" }, Warn, "speech", "sphinx: not installed. Nothing is wrong with the robot"},
		{"time zone that is none", func(f *facts) { f.zone = "GMT+01:00" }, Warn, "time zone", "does not exist"},
		{"original robot, refused long ago", func(f *facts) {
			o := refused(StepService, "service_unknown", "asked for /x.Y/Z")
			o.Last = now.Add(-25 * time.Hour)
			original(f, Outcome{Name: StepCall, OK: true, Code: "tokens", Last: now}, o)
		}, OK, "", "all is well"},
		{"original robot, upload refused", func(f *facts) {
			original(f, refused("upload", "too_many_requests", "an upload of another prefix"), Outcome{Name: StepCall, OK: true, Code: "tokens", Last: now})
		}, Warn, "services", "upload refused"},
		{"original robot, disabled batch", func(f *facts) {
			*f = facts{id: f.id, now: now, steps: []Outcome{refused(StepAssociate, "batch_disabled", "batch lot-1 is disabled")}}
		}, Fail, "enrolment", "is disabled (12 times). Its manufacturing batch is disabled"},
		{"agent with a refused call", func(f *facts) {
			f.steps = append([]Outcome{refused(StepService, "path_unknown", "asked for GET /x, which is not served")}, f.steps...)
		}, Warn, "services", "asked for GET /x"},
		{"app key", func(f *facts) {
			f.thing.LastSeen, f.thing.Status, f.thing.Presence, f.cert = time.Time{}, nil, Absent, nil
			f.steps = []Outcome{refused(StepAssociate, "app_key_wrong", "app key is not one of the configured ones")}
		}, Fail, "token", "secrets/app-key"},
		{"session used", func(f *facts) {
			f.steps = append([]Outcome{refused(StepReassociate, "session_used", "used by vic:00e20101")}, f.steps...)
			f.steps = append(f.steps, Outcome{Name: StepAssociate, OK: true, First: now.Add(-time.Hour), Last: now.Add(-time.Hour), Times: 1})
		}, Warn, "token", "once: sign in again"},
		{"claimed", func(f *facts) { f.hasOwner, f.owned, f.ownedSince = true, true, now.Add(-time.Hour) }, OK, "", "all is well"},
		{"wrong code", func(f *facts) {
			f.hasOwner = true
			f.steps = append([]Outcome{refused(StepClaim, "code_dead", "a wrong code was typed for the 5th time: the robot needs another")}, f.steps...)
		}, Warn, "owner", "show a new code"},
		{"wrong code before it was claimed", func(f *facts) {
			f.hasOwner, f.owned, f.ownedSince = true, true, now
			f.steps = append([]Outcome{refused(StepClaim, "code_wrong", "a wrong code was typed, try 1 of 5")}, f.steps...)
		}, OK, "", "all is well"},
		{"release", func(f *facts) { f.wanted = "2.0.1.6079" }, Warn, "release", "target is 2.0.1.6079"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := well()
			tt.spoil(f)
			r := f.diagnose()
			if r.Level != tt.level || !strings.Contains(r.Verdict, tt.phrase) {
				t.Errorf("got %s, %q; want %s and %q", r.Level, r.Verdict, tt.level, tt.phrase)
			}
			for _, c := range r.Checks {
				if c.Name == tt.check && c.Level != tt.level {
					t.Errorf("check %+v, want %s", c, tt.level)
				}
				if r.Level == OK && rank[c.Level] > 0 {
					t.Errorf("check %+v of a robot that is well", c)
				}
				if c.Text == "" || rank[c.Level] > 0 && c.Do == "" {
					t.Errorf("check %q says %q and asks to do %q: want both", c.Name, c.Text, c.Do)
				}
			}
			// The whole report of each case is read in review.
			got, err := json.MarshalIndent(r.Checks, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "doctor", strings.ReplaceAll(tt.name, " ", "-")+".json")
			if *update {
				if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.TrimSpace(string(want)) != string(got) {
				t.Errorf("report differs from %s (rewrite with -update):\n%s", file, got)
			}
		})
	}
}

func TestOSVersion(t *testing.T) {
	for agent, want := range map[string]string{"Victor/2.0.1.6076 grpc-go/1.40.0": "2.0.1.6076", "Victor/v1.8.1.6051": "1.8.1.6051", "Victor/anki/Vector/msm8909:2.0.1.6091ep/x grpc-go/1": "2.0.1.6091ep",
		"Victor/abcdef grpc-go/1.40.0": "abcdef", "grpc-go/1.40.0": "", "Victor/": "", "Victor/ x": "", "Victor/v..": "v..", "Victor/\x00\xff..1": "??..1", "aws-sdk-go/1.35": ""} {
		if got := OSVersion(agent); got != want {
			t.Errorf("%q: %q, want %q", agent, got, want)
		}
	}
}

func FuzzOSVersion(f *testing.F) {
	f.Add("Victor/2.0.1.6076 grpc-go/1.40.0")
	f.Add("Victor/vV..v")
	f.Fuzz(func(t *testing.T, agent string) {
		if got := OSVersion(agent); len(got) > 64 || got != plain(got) {
			t.Errorf("%q of %q", got, agent)
		}
	})
}
