package identity

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/cloud/identity/consent"
	"kennel/cloud/originals"
	"kennel/cloud/originals/install/installtest"
	"kennel/cloud/originals/replay"
	"kennel/cmd/e2e/housetest"
	"kennel/infra/api/jdocspb"
	"kennel/infra/freeaddr"
)

// sequenceStep is one step of the original process; run says what was wrong.
type sequenceStep struct {
	name string
	run  func(t *testing.T, h *housetest.House, r *housetest.Replayed, owner *housetest.Person) error
}

// sequence holds the steps of an original robot from its first login on (peer facts, section 1).
var sequence = []sequenceStep{
	{"associate", func(t *testing.T, _ *housetest.House, r *housetest.Replayed, owner *housetest.Person) error {
		var session struct {
			Token string `json:"session_token"`
		}
		owner.Do("POST", "/v1/account/apps", struct{}{}, &session)
		if err := r.Associate(t.Context(), session.Token); err != nil {
			return err
		}
		if r.User() != owner.ID || r.Claims["requestor_id"] != r.Thing || r.ClientToken == "" {
			return fmt.Errorf("claims %v, client token of %d bytes", r.Claims, len(r.ClientToken))
		}
		return nil
	}},
	{"refresh", func(t *testing.T, _ *housetest.House, r *housetest.Replayed, _ *housetest.Person) error {
		before := r.Token
		if err := r.Refresh(t.Context()); err != nil {
			return err
		}
		if r.Token == before {
			return errors.New("the token is the old one")
		}
		return nil
	}},
	{"read with NOT_FOUND", func(t *testing.T, _ *housetest.House, r *housetest.Replayed, _ *housetest.Person) error {
		r.Took()
		items, err := r.Read(t.Context(), housetest.ReadItem(housetest.SettingsDoc, 0), housetest.ReadItem(housetest.StatsDoc, 0))
		if err != nil {
			return err
		}
		for _, i := range items {
			if i.Status != jdocspb.ReadDocsResp_NOT_FOUND || i.Doc.DocVersion != 0 {
				return fmt.Errorf("%v", i)
			}
		}
		if took := r.Took(); len(took) != 1 {
			return fmt.Errorf("a read took connections %q, want one", took)
		}
		return nil
	}},
	{"create", func(t *testing.T, _ *housetest.House, r *housetest.Replayed, _ *housetest.Person) error {
		return housetest.Wrote(1)(r.Write(t.Context(), housetest.SettingsDoc, &jdocspb.Jdoc{FmtVersion: 2, JsonDoc: `{"clock_24_hour":true,"of_a_later_release":[1,2]}`}))
	}},
	{"conflict", func(t *testing.T, _ *housetest.House, r *housetest.Replayed, _ *housetest.Person) error {
		resp, err := r.Write(t.Context(), housetest.SettingsDoc, &jdocspb.Jdoc{FmtVersion: 2, JsonDoc: `{}`})
		if err != nil {
			return err
		}
		if resp.Status != jdocspb.WriteDocResp_REJECTED_BAD_DOC_VERSION || resp.LatestDocVersion != 1 {
			return fmt.Errorf("%v", resp)
		}
		items, err := r.Read(t.Context(), housetest.ReadItem(housetest.SettingsDoc, 0), housetest.ReadItem(housetest.SettingsDoc, 1), housetest.ReadItem(housetest.SettingsDoc, 7))
		if err != nil {
			return err
		}
		var got []string
		for _, i := range items {
			got = append(got, fmt.Sprintf("%v %d %v", i.Status, i.Doc.DocVersion, strings.Contains(i.Doc.JsonDoc, "of_a_later_release")))
		}
		if want := []string{"CHANGED 1 true", "UNCHANGED 1 false", "CHANGED 1 true"}; !slices.Equal(got, want) {
			return fmt.Errorf("read with versions 0, 1 and 7: %q, want %q", got, want)
		}
		return housetest.Wrote(2)(r.Write(t.Context(), housetest.SettingsDoc, &jdocspb.Jdoc{DocVersion: 1, FmtVersion: 2, JsonDoc: `{"clock_24_hour":false}`}))
	}},
	{"statistics", func(t *testing.T, _ *housetest.House, r *housetest.Replayed, _ *housetest.Person) error {
		return housetest.Wrote(1)(r.Write(t.Context(), housetest.StatsDoc, &jdocspb.Jdoc{FmtVersion: 1, JsonDoc: `{"Alive.seconds":60,"Odom.Body":1.5}`}))
	}},
	{"temporary credentials", func(t *testing.T, _ *housetest.House, r *housetest.Replayed, _ *housetest.Person) error {
		return r.RefreshSTS(t.Context())
	}},
	{"log upload", func(t *testing.T, h *housetest.House, r *housetest.Replayed, owner *housetest.Person) error {
		log := []byte("log of " + r.Name)
		for _, refresh := range []bool{false, true} { // VEC-LOG-08, with the credentials that the robot has and with new ones
			owner.Agrees(r.Thing, false)
			if refresh {
				if err := r.RefreshSTS(t.Context()); err != nil {
					return err
				}
			}
			key, err := r.Upload(t.Context(), "vic-engine.log", time.Now(), log)
			if e, ok := errors.AsType[replay.Refused](err); !ok || e.Code != "AccessDenied" || !strings.Contains(e.Message, consent.CodeOptedOut) {
				return fmt.Errorf("without consent: %s, %w", key, err)
			}
			owner.Agrees(r.Thing, true)
		}
		r.Took()
		key, err := r.Upload(t.Context(), "vic-engine.log", time.Now(), log)
		if err != nil {
			return err
		}
		if took := r.Took(); !slices.Equal(slices.Compact(took), []string{housetest.UploadHost + ":443"}) { // twice, if the first try met the change of consent
			return fmt.Errorf("dialed %q, want %s:443 alone: its credentials are good", took, housetest.UploadHost)
		}
		return objectStored(h, key, log)
	}},
	{"files and events", func(t *testing.T, _ *housetest.House, r *housetest.Replayed, owner *housetest.Person) error {
		about, base := "/v1/things/"+r.Thing, "https://"+r.Servers.Tms
		array := "[" + r.Event("boot-of-"+r.ESN(), 1, "robot.sequence") + "," + r.Event("boot-of-"+r.ESN(), 3, "robot.unheard_of") + "]"
		for _, allowed := range []bool{false, true, true} { // what comes again is stored once
			owner.Agrees(r.Thing, allowed)
			want := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[allowed]
			for what, send := range map[string]func() (replay.Answer, error){
				"events": func() (replay.Answer, error) { return r.SendEvents(t.Context(), base+"/das", array) },
				"log": func() (replay.Answer, error) {
					return r.PutLog(t.Context(), base+"/logs/", "victor-"+r.ESN()+".log", "a log")
				},
				"crash": func() (replay.Answer, error) {
					return r.PostCrash(t.Context(), base+"/crash", "a.dmp", "kennel-crash 1\nprogram: agentd\n\npanic: "+r.ESN()+"\n")
				},
			} {
				if a, err := send(); err != nil || a.Status != want {
					return fmt.Errorf("%s, consent %v: %+v, %w; want %d", what, allowed, a, err, want)
				}
			}
		}
		var logs []struct{ Name string }
		owner.Do("GET", about+"/logs?name=victor-", nil, &logs)
		var boots []struct {
			Events, Lost int
			Origin       string
		}
		owner.Do("GET", "/v1/events/boots?thing="+r.Thing, nil, &boots)
		if len(logs) != 1 || len(boots) != 1 || boots[0].Events != 2 || boots[0].Lost != 1 || boots[0].Origin != "unsigned" {
			return fmt.Errorf("stored %+v and %+v", logs, boots)
		}
		return nil
	}},
	{"connection check", func(t *testing.T, _ *housetest.House, r *housetest.Replayed, _ *housetest.Person) error {
		if err := r.CheckHTTP(t.Context()); err != nil {
			return err
		}
		return r.CheckStream(t.Context())
	}},
	{"voice refused", func(t *testing.T, _ *housetest.House, r *housetest.Replayed, _ *housetest.Person) error {
		err := r.Voice(t.Context())
		if status.Code(err) != codes.Unimplemented || !strings.Contains(status.Convert(err).Message(), " ") {
			return fmt.Errorf("%w; want Unimplemented with a sentence", err)
		}
		return nil
	}},
	{"forced refresh", func(t *testing.T, _ *housetest.House, r *housetest.Replayed, _ *housetest.Person) error {
		before, times := r.Token, r.Forced
		var resp *jdocspb.WriteDocResp
		err := r.WriteFor(t.Context(), "vic:00e20001", housetest.SettingsDoc, &jdocspb.Jdoc{FmtVersion: 2, JsonDoc: `{}`}, &resp)
		if status.Code(err) != codes.PermissionDenied {
			return fmt.Errorf("another robot's document: %v, %w; want PermissionDenied", resp, err)
		}
		if r.Token == before || r.Forced != times+1 || r.Stopped {
			return fmt.Errorf("no forced refresh: %d of them, stopped %v", r.Forced, r.Stopped)
		}
		items, err := r.Read(t.Context(), housetest.ReadItem(housetest.SettingsDoc, 2), housetest.ReadItem(housetest.StatsDoc, 0))
		if err == nil && (items[0].Status != jdocspb.ReadDocsResp_UNCHANGED || items[1].Doc.DocVersion != 1) {
			err = fmt.Errorf("with the new token: %v", items)
		}
		return err
	}},
}

// objectStored looks for an object with that content, whose name ends as the key does.
func objectStored(h *housetest.House, key string, want []byte) error {
	found := fmt.Errorf("%s is not stored", key)
	err := filepath.WalkDir(filepath.Join(h.Dir, "s3"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, key) {
			return nil // other objects come and go meanwhile
		}
		got, err := os.ReadFile(path)
		if err == nil && !bytes.Equal(got, want) {
			err = fmt.Errorf("%s has %d bytes, want the %d that were sent", key, len(got), len(want))
		}
		found = err
		return nil
	})
	return errors.Join(err, found)
}

// TestOriginalsSequence (must-hold 1 of the issue of original robots; VEC-CLD-01, VEC-CLD-07, VEC-TOK-06, VEC-JDS-02, VEC-JDS-03, VEC-LOG-02): a robot
// written from the peer facts goes through the whole sequence of the original process over one listener, in both builds, while kenneld is
// killed between any two steps. Each answer is judged by package replay: one that stops an original robot is replay.Fatal.
func TestOriginalsSequence(t *testing.T) {
	turns := 3
	if housetest.Soak() {
		turns = 100
	}
	h := housetest.New(t, "-robots", "0", "-originals", "localhost", "-listen", "uploads="+freeaddr.For(t))
	h.Start()
	admin, maker := h.Operator(t), housetest.NewFactory(t)
	admin.Do("PUT", "/v1/batches/lot-1", map[string]string{"bundle": maker.Bundle()}, nil)
	owner := h.Owner(t, "ada@example.com", "Ada")
	for turn := range turns {
		kill := (turn*4 + 1) % len(sequence) // before this step; every one has its turn
		robots := []*housetest.Replayed{h.Replay(t, maker, fmt.Sprintf("00e4%04x", 2*turn), "plain"), h.Replay(t, maker, fmt.Sprintf("00e4%04x", 2*turn+1), "robot")}
		for i, step := range sequence {
			if i == kill {
				h.KillTree()
				h.Start()
			}
			for _, r := range robots {
				if err := step.run(t, h, r, owner); err != nil {
					if dead, ok := errors.AsType[replay.Fatal](err); ok {
						t.Errorf("an answer stops an original robot: %s", dead.What)
					}
					t.Fatalf("turn %d, %s, %s (kenneld was killed before %s): %v; doctor: %s", turn, r.Name, step.name, sequence[kill].name, err, admin.Doctor(r.Thing))
				}
			}
		}
	}
	t.Logf("%d turns of %d steps in two builds, kenneld killed in each turn", turns, len(sequence))
}

// TestOriginalsCheck: kenneld originals says what is needed, its self-test says which step fails, in one sentence, and leaves nothing behind;
// the console has both. A port 443 that cannot be had ends no start.
func TestOriginalsCheck(t *testing.T) {
	const name = "kennel.invalid" // which no DNS knows
	h := housetest.New(t, "-robots", "0", "-originals", name, "-recognizers", "sphinx")
	h.Start()
	g := h.OriginalsGuide(t)
	if _, port, _ := net.SplitHostPort(g.ServerConfig.Tms); port != "443" && !slices.ContainsFunc(g.Troubles, func(s string) bool { return strings.HasPrefix(s, "Port 443 cannot be opened") }) {
		t.Errorf("robots call %s, and nothing says why not port 443: %q", g.ServerConfig.Tms, g.Troubles)
	}
	if b, err := os.ReadFile(h.Ready.Files["root_ca"]); err != nil || string(b) != g.Root {
		t.Errorf("root %q, %v", g.Root, err)
	}
	services, upload := "-connect-to="+g.ServerConfig.Tms+"="+h.RobotsPort(), "-connect-to="+housetest.UploadHost+":443="+h.RobotsPort()

	r, said, code := h.CheckOriginals(t, services, upload)
	if !r.OK || code != 0 || said != "" || len(r.Steps) != 11 || !strings.HasPrefix(r.Steps[10].Detail, "a spoken sentence got an answer") {
		t.Errorf("all is there: %+v, exit code %d, %q", r, code, said)
	}
	for what, tc := range map[string]struct {
		args []string
		want string
	}{
		"a name is unknown":         {[]string{upload}, "names, fails: the name " + name + " is not known here"},
		"nothing listens there":     {[]string{services, "-connect-to=" + housetest.UploadHost + ":443=127.0.0.1:1"}, "connection, fails: nothing takes connections at " + housetest.UploadHost + ":443 (connection refused)"},
		"the robot has other roots": {[]string{services, upload, "-roots", otherRoot(t)}, "certificate, fails: the robot does not trust the certificate"},
	} {
		r, said, code := h.CheckOriginals(t, tc.args...)
		if r.OK || code != 1 || !strings.Contains(r.Sentence, tc.want) || said != "kenneld: "+r.Sentence+"\n" {
			t.Errorf("%s: exit code %d, %q, said %q; want %q", what, code, r.Sentence, said, tc.want)
		}
	}

	// Over SSH, a robot gets what the guide says, and is put back as it was.
	robot := installtest.New(t, "stock")
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, robot.Key, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"originals", "install", robot.Addr, "-data", h.Dir, "-key", key, "-known-hosts", "/dev/null"}
	unasked := exec.Command(filepath.Join(housetest.Bin, "kenneld"), args...)
	if out, err := unasked.CombinedOutput(); err == nil || !strings.Contains(string(out), "The host key of "+robot.Addr+" is "+ssh.FingerprintSHA256(robot.Host)) || robot.Scripts > 0 {
		t.Errorf("fingerprint not confirmed: %v, %s", err, out)
	}
	was := robot.Files()
	args = append(args, "-fingerprint", ssh.FingerprintSHA256(robot.Host))
	out, err := exec.Command(filepath.Join(housetest.Bin, "kenneld"), args...).CombinedOutput()
	if files := robot.Files(); err != nil || !strings.Contains(string(out), "verification  done") || files[originals.RootFile] != g.Root || files[originals.ConfigFile] != g.ServerConfig.JSON()+"\n" {
		t.Errorf("install: %v, %s; %q", err, out, files)
	}
	if out, err := exec.Command(filepath.Join(housetest.Bin, "kenneld"), append(args, "-undo")...).CombinedOutput(); err != nil || !maps.Equal(robot.Files(), was) {
		t.Errorf("install -undo: %v, %s; %q", err, out, robot.Files())
	}

	// Nothing is left, in the fleet neither (30.5).
	if found := traces(t, h, originals.TestAccount, originals.TestAccount); len(found) > 0 {
		t.Errorf("the self-test leaves %q", found)
	}
	admin := h.Operator(t)
	var left []struct{ Thing string }
	admin.Do("GET", "/v1/things", nil, &left)
	if len(left) > 0 {
		t.Errorf("robots left in the fleet: %+v", left)
	}

	// The page.
	page := func(method string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, admin.API+"/originals", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.AddCookie(admin.Cookie())
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		resp, err := admin.HTTP.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	if code, text := page("GET"); code != http.StatusOK || !strings.Contains(text, housetest.UploadHost) || !strings.Contains(text, "Run self-test") || strings.Contains(text, "Step 1 of 10") {
		t.Errorf("page: %d %s", code, text)
	}
	if code, text := page("POST"); code != http.StatusSeeOther {
		t.Errorf("self-test from the page: %d %s", code, text)
	}
	if code, text := page("GET"); code != http.StatusOK || !strings.Contains(text, "the name "+name+" is not known here") {
		t.Errorf("page after a self-test: %d %s", code, text)
	}
}

// otherRoot writes the root of another cloud.
func otherRoot(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "root.crt")
	if err := os.WriteFile(file, []byte(housetest.NewFactory(t).Bundle()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
