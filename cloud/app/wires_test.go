package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kennel/cloud/access"
	"kennel/cloud/identity/consent"
	"kennel/cloud/identity/owner/ownerpg"
	"kennel/cloud/originals/intake"
	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/api/topics"
	"kennel/infra/auth"
	"kennel/infra/testwait"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"
)

// Reasons why a wire asks for no consent.
const (
	ofUse      = "documents and orders: the robot cannot be used without them, and its owner reads and changes them"
	ofIdentity = "who it is and for whom it acts"
	ofUpdates  = "its releases"

	// ofVoice: voice asks for something else.
	ofVoice = "the owner's own wishes for audio: voice.TestAudioIsTakenBackMeanwhile, voice.TestAudioOfAnotherOwner; and for a memory of talks: answerspg.TestMemoryIsTheOwners"
)

// wires are all ways by which a robot's bytes reach this cloud. A way whose data need the owner's consent has the test that drives it with an opt-out and with a change of owner
// within a body; any other has the reason why it needs none.
var wires = map[string]string{
	"up/das":                          "TestOptOutAndHandOver, das.TestRefusals",
	"PUT /v1/files/logs/{name}":       "intake.TestStraddling",
	"POST /v1/files/crash":            "intake.TestStraddling",
	"original PUT /logs/":             "intake.TestStraddling",
	"original POST /crash":            "intake.TestStraddling",
	"original POST /das":              "intake.TestStraddling",
	"original PUT and POST of S3":     "stsapi.TestConsent",
	"req/speech/listen":               ofVoice,
	"up/status":                       "free: how its parts are, which the fleet is run by",
	"up/ota":                          "free: " + ofUpdates,
	"up/live":                         "free: its present, for a person who looks at it now; nothing is kept",
	"req/speech/say":                  ofVoice,
	"req/ota/desired":                 "free: " + ofUpdates,
	"req/ota/trust":                   "free: " + ofUpdates,
	"req/jdocs/read":                  "free: " + ofUse,
	"req/jdocs/write":                 "free: " + ofUse,
	"req/jdocs/delete":                "free: " + ofUse,
	"req/jdocs/revision":              "free: " + ofUse,
	"req/command/pull":                "free: " + ofUse,
	"req/motion/sync":                 "free: " + ofUse,
	"req/motion/file":                 "free: " + ofUse,
	"req/motion/verdict":              "free: " + ofUse,
	"req/motion/body":                 "free: " + ofUse,
	"req/command/result":              "free: " + ofUse,
	"req/owner/code":                  "free: " + ofIdentity,
	"req/owner/wiped":                 "free: " + ofIdentity,
	"req/owner/status":                "free: " + ofIdentity,
	"req/token/associate":             "free: " + ofIdentity,
	"req/token/reassociate":           "free: " + ofIdentity,
	"req/token/secondary":             "free: " + ofIdentity,
	"req/token/refresh":               "free: " + ofIdentity,
	"req/token/disassociate":          "free: " + ofIdentity,
	"req/token/certificate":           "free: " + ofIdentity,
	"POST /v1/enroll":                 "free: " + ofIdentity,
	"POST /v1/renew":                  "free: " + ofIdentity,
	"POST /v1/req/{service}/{method}": "free: as the requests above",
	"POST /{tenant}/controller/v1/{thing}/deploymentBase/{action}/feedback": "free: " + ofUpdates,
	"POST /{tenant}/controller/v1/{thing}/cancelAction/{action}/feedback":   "free: " + ofUpdates,
	"PUT /{tenant}/controller/v1/{thing}/configData":                        "free: " + ofUpdates,
	"POST /1/write-doc":                                  "free: " + ofUse,
	"POST /1/read-docs":                                  "free: " + ofUse,
	"POST /1/delete-doc":                                 "free: " + ofUse,
	"/tokenpb.Token/AssociatePrimaryUser":                "free: " + ofIdentity,
	"/tokenpb.Token/ReassociatePrimaryUser":              "free: " + ofIdentity,
	"/tokenpb.Token/AssociateSecondaryClient":            "free: " + ofIdentity,
	"/tokenpb.Token/DisassociatePrimaryUser":             "free: " + ofIdentity,
	"/tokenpb.Token/RefreshToken":                        "free: " + ofIdentity,
	"/tokenpb.Token/ListRevokedTokens":                   "free: " + ofIdentity,
	"/tokenpb.Token/RevokeFactoryCertificate":            "free: " + ofIdentity,
	"/tokenpb.Token/RevokeTokens":                        "free: " + ofIdentity,
	"/jdocspb.Jdocs/WriteDoc":                            "free: " + ofUse,
	"/jdocspb.Jdocs/ReadDocs":                            "free: " + ofUse,
	"/jdocspb.Jdocs/DeleteDoc":                           "free: " + ofUse,
	"/jdocspb.Jdocs/PurgeAccountDocs":                    "free: " + ofUse,
	"/jdocspb.Jdocs/ViewAccountDocs":                     "free: " + ofUse,
	"/jdocspb.Jdocs/ViewAccountDocsWithPII":              "free: " + ofUse,
	"/chippergrpc2.ChipperGrpc/StreamingIntent":          ofVoice,
	"/chippergrpc2.ChipperGrpc/StreamingKnowledgeGraph":  ofVoice,
	"/chippergrpc2.ChipperGrpc/StreamingIntentGraph":     ofVoice,
	"/chippergrpc2.ChipperGrpc/TextIntent":               ofVoice,
	"/chippergrpc2.ChipperGrpc/StreamingConnectionCheck": "free: it counts what it is sent",
}

// TestEveryWireIsJudged: must hold 3 of the issue of ownerships: each wire that brings a robot's bytes is in the table above; a new one is judged before it is served.
func TestEveryWireIsJudged(t *testing.T) {
	w := start(t, nil)
	_, ups, err := w.slices.Handlers()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for name := range ups {
		all = append(all, "up/"+name)
	}
	for _, name := range access.Requests.Names() {
		all = append(all, "req/"+name)
	}
	all = append(all, access.Calls.Names()...)
	for name, rule := range access.HTTP {
		if method, _, _ := strings.Cut(name, " "); method != "GET" && rule.By != "" && !rule.Page && (strings.Contains(rule.By, "certificate") || strings.Contains(rule.By, "robot") || strings.Contains(rule.By, "claim secret")) {
			all = append(all, name)
		}
	}
	p := w.cfg.Robots.Intake.Or(intake.DefaultPaths)
	all = append(all, "original POST "+p.Events, "original PUT "+p.Logs, "original POST "+p.Crash, "original PUT and POST of S3")
	judged := map[string]bool{}
	for _, name := range all {
		_, known := wires[name]
		judged[name] = true
		if !known {
			t.Errorf("%s brings a robot's bytes: say in wires whether it asks for the owner's consent, and by which test that is known", name)
		}
	}
	for name := range wires {
		if !judged[name] {
			t.Errorf("%s is no wire", name)
		}
	}
	if len(all) < 40 {
		t.Errorf("only %d wires: this test has lost its eyes", len(all))
	}
}

// TestOptOutAndHandOver: VEC-FLE-06, VEC-DAS-08: the first batch after an opt-out was acknowledged is refused, the first after an opt-in and the first of the next owner's time are
// judged by what holds then; neither waits for an answer to be forgotten. Nothing of what is refused is in any table or object.
func TestOptOutAndHandOver(t *testing.T) {
	w := start(t, nil)
	ctx := t.Context()
	owners := ownerpg.New(w.base.Pool)
	person := func(email string) string {
		t.Helper()
		who, _, err := w.Accounts.People.CreateAccount(ctx, email, auth.Owner, "correct horse battery staple")
		if err != nil {
			t.Fatal(err)
		}
		return string(who.ID)
	}
	versions := map[string]uint64{}
	agrees := func(account string, yes bool) {
		t.Helper()
		res, err := jdocswire.NewClient(w.robot).Write(ctx, jdocs.AccountSettings, jdocs.Doc{Version: versions[account], FmtVersion: 1, JSON: fmt.Sprintf(`{"DATA_COLLECTION":%v}`, yes)})
		if err != nil || res.Status != jdocs.Accepted {
			t.Fatalf("%+v, %v", res, err)
		}
		versions[account] = res.Latest
	}
	var seq uint64
	var refused []string
	// says sends one event, again where the cloud asks for that, and wants the code; "": it is stored.
	says := func(when, code string) {
		t.Helper()
		seq++
		word := fmt.Sprintf("saidthen%d", seq)
		if code != "" {
			refused = append(refused, word)
		}
		testwait.Until(t, testwait.Long, when, func() error {
			batch, err := events.EncodeBatch(word, []events.Event{{Seq: seq, Level: events.Info, Source: "test", RobotID: rex.Serial(), BootID: "boot", Name: "test.word", S1: word}})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.client.Publish(ctx, topics.UpTopic(rex, topics.DAS), 1, false, batch); err != nil {
				t.Fatal(err)
			}
			a := testwait.For(t, w.acks, "the acknowledgement "+when)
			if a.Status == ack.RetryAfter {
				return fmt.Errorf("%+v", a)
			}
			if a.Code != code {
				t.Fatalf("%s: %+v; want code %q", when, a, code)
			}
			return nil
		})
	}
	ann, bob := person("ann.wires@example.org"), person("bob.wires@example.org")
	says("without an owner", "")
	if _, _, err := owners.Begin(ctx, rex, ann, "code", false); err != nil {
		t.Fatal(err)
	}
	says("of an owner who was not asked", consent.CodeOptedOut)
	for range 3 {
		agrees(ann, true)
		says("after a yes", "")
		agrees(ann, false)
		says("after a no", consent.CodeOptedOut)
	}
	agrees(ann, true)
	says("after the last yes", "")
	if _, _, err := owners.Begin(ctx, rex, bob, "wiped", true); err != nil {
		t.Fatal(err)
	}
	says("of the next owner, who was not asked", consent.CodeOptedOut)
	agrees(bob, true)
	says("of the next owner, after a yes", "")
	if found := holding(w.stores(t), refused...); len(found) > 0 {
		t.Errorf("stored although it was refused: %q", slices.Compact(found))
	}
}
