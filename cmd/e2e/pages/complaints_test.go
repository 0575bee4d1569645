package pages

import (
	"context"
	"crypto/x509"
	"fmt"
	"html"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"kennel/cloud/identity/token/tokentest"
	"kennel/cloud/originals"
	"kennel/cloud/originals/replay"
	"kennel/cmd/e2e/housetest"
	"kennel/infra/api/jdocspb"
	"kennel/infra/browser"
	"kennel/infra/freeaddr"
)

// complaint is one of the things from which users of the existing community server suffer (peer facts, section 4), played against a running
// kenneld.
type complaint struct {
	number   int // its place in that section
	says     string
	scenario string
	reads    string // the sentence that a person reads
	page     string // of the console, on which the sentence is; "": it is in the output of a command or an answer on the wire
	// play returns what the person is shown, and what they do then and see that it helps; nil: nothing. robot is one of its own, at an address of
	// its own.
	play func(t *testing.T, k *kennelOfComplaints, robot *housetest.Replayed) (shown string, mend func())
}

// complaints holds all of them, in their order.
var complaints = []complaint{
	{1, "activation fails with no reason given",
		"the robot's maker is not known here, then its app key is wrong; what the doctor says is done, and it is activated",
		"add the authorities of its manufacturing batch", "/things/vic:00e50001", activation},
	{2, "one fixed host name that mDNS does not carry across subnets",
		"the name is the operator's choice, and one that the robot's network does not know is told before a robot is touched",
		"add it to the DNS or the hosts file of the robot's network, leading to ", "", hostName},
	{3, "robots identified by IP address, so DHCP breaks them",
		"a robot comes back with another address, and another robot gets its old one: each has its own documents",
		"its certificate and token say who it is, whatever its address", "/things/vic:00e50003", dhcp},
	{4, "settings that revert (fmt_version 1 before firmware 1.8, 2 since)",
		"an app sets an eye colour that the robot's old software does not know; the robot writes its settings, is updated, and has the colour",
		"its software writes settings of format 1, and what format 2 adds to them is kept here meanwhile", "/things/vic:00e50004", revertingSettings},
	{5, "client tokens that rotate or invalidate each other",
		"three apps sign in, the robot refreshes its token twice: all three client tokens are good",
		"Connected apps", "/things/vic:00e50005/access", clientTokens},
	{6, "session and JWT loops",
		"the robot shows a token of another cloud: it is told to refresh once, and then to stop; a session is good once",
		"Its access token is from another cloud (unknown signing key): sign in again with an app", "/things/vic:00e50006", tokenLoop},
	{7, "crashes from one malformed request",
		"a document of a thing without a colon, one that is not text, one without an end; the next request is answered",
		`thing id "00e50007": want species:serial`, "", malformed},
	{8, "updates stuck at error 203",
		"the robot asks for its update by the path that it knows; the answer and the doctor say what the 203 on its face means",
		"The robot shows error 203 and keeps its software; nothing is wrong with it", "/things/vic:00e50008", update203},
	{9, `a spinner instead of "unsupported version"`,
		"a robot whose setup no app speaks has no owner; once it has one, it is served",
		"an unsupported version for setup: since 2.0.1.6090 robots speak version 7 of the Bluetooth protocol", "/things/vic:00e50009", unsupportedVersion},
	{10, "voice requests ending in EOF on slow hardware",
		"a slow robot makes a voice request: it reads a status with a sentence after its first message, and the doctor knows",
		"speech recognition is not set up", "/things/vic:00e5000a", voiceEOF},
	{11, "intents matched by substring",
		"a sentence has the word of a command in it: nothing is guessed from the word, and a person reads that it meant nothing",
		" match ", "", substring},
	{12, "time zones and daylight saving wrong",
		"the robot's settings name a zone that is none; a person cannot choose such a one, and sees when clocks change in the one they choose",
		`its time zone "GMT+1" does not exist`, "/things/vic:00e5000c", timeZone},
	{13, "an empty robot list with no diagnosis",
		"no robot is known, but one has called and hung up: the empty list says which, why, and what to do",
		"and does not trust the certificate: its clock is not between ", "/things", emptyList},
	{14, "knowledge settings not saved",
		"settings that this release does not know are written; kenneld is killed at once; they are there, byte for byte",
		"stored here: vic.AppTokens, vic.KnowledgeSettings", "/things/vic:00e5000e", knowledgeSettings},
	{15, "container install missing",
		"one command runs all without containers, as this test does; containers are described, and TestComposeRules and TestComposeStarts bring them up",
		"docker compose up -d --build", "", containers},
	{16, "any doc_version is accepted; UNCHANGED and NOT_FOUND are never answered",
		"two writers have the same version: the second is refused and told the latest; each version that a robot has gets its status",
		"REJECTED_BAD_DOC_VERSION", "", versions},
	{17, "no token is checked",
		"documents are asked for without a token, with a made-up one, and those of another robot",
		"It sent no access token: it gets one when its owner signs in with an app", "/things/vic:00e50011", uncheckedToken},
	{18, "one JSON file is rewritten for each write, and one request ends the process",
		"two robots write at once; audio_per_request is 0; kenneld is killed amid the writes: no write that was accepted is lost",
		"all is well", "", oneFile},
}

// kennelOfComplaints holds what all scenarios share.
type kennelOfComplaints struct {
	*housetest.House
	admin, owner *housetest.Person
	maker        *housetest.Factory
	guide        originals.Guide
	site         *housetest.Site // nil: no screenshots
	desk         *browser.Page
}

// named is the name by which the robots know this cloud: one that no name service has.
const named = "kennel.invalid"

// home returns the address of a robot, and away another one that it may get.
func home(n int) string { return fmt.Sprintf("127.0.15.%d", n) }

func away(n int) string { return fmt.Sprintf("127.1.15.%d", n) }

// robot returns robot n of that maker, at home.
func (k *kennelOfComplaints) robot(t *testing.T, maker *housetest.Factory, n int) *housetest.Replayed {
	t.Helper()
	root, err := os.ReadFile(k.Ready.Files["root_ca"])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(root)
	r, err := replay.New(k.guide.ServerConfig, pool, maker.Make(fmt.Sprintf("vic:00e5%04x", n), nil), true)
	if err != nil {
		t.Fatal(err)
	}
	r.Gateway, r.FramePause, r.RetryPause = tokentest.GatewayCert(t, "Vector-A1B2"), time.Millisecond, time.Second
	out := &housetest.Replayed{Robot: r, Name: r.Thing}
	k.at(out, home(n))
	return out
}

// at gives a robot an address. All names lead it to this cloud.
func (k *kennelOfComplaints) at(r *housetest.Replayed, ip string) {
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	r.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		r.Mu.Lock()
		r.Dialed = append(r.Dialed, addr)
		r.Mu.Unlock()
		return from.DialContext(ctx, network, k.RobotsPort())
	}
}

// associate signs the owner in.
func (k *kennelOfComplaints) associate(t *testing.T, r *housetest.Replayed) {
	t.Helper()
	if err := r.Associate(t.Context(), k.session(t)); err != nil {
		t.Fatalf("associate: %v; doctor: %s", err, k.doctor(r.Thing))
	}
}

func (k *kennelOfComplaints) session(t *testing.T) string {
	t.Helper()
	owner := *k.owner
	owner.T = t
	return owner.AppSession(k.guide.ServerConfig.AppKey)
}

// doctor returns what kennelctl doctor prints.
func (k *kennelOfComplaints) doctor(id string) string {
	out, _ := k.Ctl("doctor", id) // which fails for a robot that is not well
	return string(out)
}

// doctorOfStrangers returns what kennelctl doctor prints of robots that are not known.
func (k *kennelOfComplaints) doctorOfStrangers() string {
	out, _ := k.Ctl("doctor") // an error is text that lacks what is looked for
	return string(out)
}

// told waits until the doctor says it, and returns all that the doctor says. What is refused at the robots' port is written every two seconds.
func (k *kennelOfComplaints) told(t *testing.T, id, sentence string) (shown string) {
	t.Helper()
	housetest.Await(t, time.Minute, "the doctor's sentence", func() error {
		if shown = k.doctor(id); !strings.Contains(shown, sentence) {
			return fmt.Errorf("no %q in:\n%s", sentence, shown)
		}
		return nil
	})
	return shown
}

// read returns the text of a page of the console.
func (k *kennelOfComplaints) read(t *testing.T, path string) string {
	t.Helper()
	admin := *k.admin
	admin.T = t
	code, b := admin.Try("GET", path, nil)
	if code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, code, b)
	}
	return html.UnescapeString(string(b))
}

// seen checks that a complaint's sentence is on its page, and takes a picture of it.
func (k *kennelOfComplaints) seen(t *testing.T, c complaint) {
	t.Helper()
	if text := k.read(t, c.page); !strings.Contains(text, c.reads) {
		t.Errorf("no %q on %s:\n%s", c.reads, c.page, text)
	}
	if k.site != nil {
		k.desk.Goto(k.Ready.Endpoints["console"] + c.page)
		k.site.Look(k.desk, fmt.Sprintf("complaint-%02d", c.number))
		k.desk.Goto("about:blank") // a page that is open misses kenneld while it is killed
	}
}

// settings returns a robot's settings as it reads them.
func settings(t *testing.T, r *housetest.Replayed) *jdocspb.Jdoc {
	t.Helper()
	items, err := r.Read(t.Context(), housetest.ReadItem(housetest.SettingsDoc, 0))
	if err != nil {
		t.Fatal(err)
	}
	return items[0].Doc
}

// TestComplaints (must-hold 5 of the issue of original robots): each complaint of peer facts, section 4, is played, the product does the right
// thing, and a person reads a sentence that says what is the case and what to do. With KENNEL_SCREENS it takes a picture of each page that has one.
func TestComplaints(t *testing.T) {
	if len(complaints) != 18 {
		t.Fatalf("%d complaints, want 18", len(complaints))
	}
	h := housetest.New(t, "-robots", "0", "-originals", named, "-listen", "uploads="+freeaddr.For(t))
	h.Start()
	k := &kennelOfComplaints{House: h, admin: h.Operator(t), maker: housetest.NewFactory(t), guide: h.OriginalsGuide(t)}
	k.admin.Do("PUT", "/v1/batches/lot-1", map[string]string{"bundle": k.maker.Bundle()}, nil)
	k.owner = h.Owner(t, "ada@example.com", "Ada")
	if housetest.ScreensDir() != "" {
		k.site = housetest.NewSite(t, h)
		k.desk = k.site.Browser.Page(t, browser.Desktop)
		k.site.SignIn(k.desk)
	}
	for _, empty := range []bool{true, false} { // the empty list comes first
		for i, c := range complaints {
			if (c.number == 13) != empty {
				continue
			}
			t.Run(fmt.Sprintf("%d %s", c.number, c.says), func(t *testing.T) {
				if c.number != i+1 {
					t.Errorf("number %d at place %d", c.number, i+1)
				}
				t.Log(c.scenario)
				shown, mend := c.play(t, k, k.robot(t, k.maker, c.number))
				if !strings.Contains(shown, c.reads) {
					t.Errorf("no %q in:\n%s", c.reads, shown)
				}
				if os.Getenv("KENNEL_SHOW") != "" {
					t.Log(shown)
				}
				if c.page != "" {
					k.seen(t, c)
				}
				if mend != nil {
					mend()
				}
			})
		}
	}
	if out := h.Out.String(); strings.Contains(out, "panic") {
		t.Errorf("kenneld panicked: %s", out)
	}
}
