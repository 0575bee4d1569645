package pages

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net/mail"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
	"kennel/infra/browser"
)

var letterLink = regexp.MustCompile(`https?://\S+/account/\S+`)

// letterTo returns the link in the newest letter to an address.
func (s *walk) letterTo(to string) (link string, err error) {
	files, err := filepath.Glob(filepath.Join(s.Ready.Files["mail"], "*.eml"))
	if err != nil {
		return "", err
	}
	for _, f := range files { // by time
		b, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		m, err := mail.ReadMessage(bytes.NewReader(b))
		if err != nil || !strings.Contains(m.Header.Get("To"), to) {
			continue
		}
		text, err := housetest.PlainText(m)
		if err != nil {
			return "", fmt.Errorf("%s: %w", f, err)
		}
		if found := letterLink.FindString(text); found != "" {
			link = found
		}
	}
	if link == "" {
		return "", fmt.Errorf("no link for %s in %d letters", to, len(files))
	}
	return link, nil
}

// passkeyForms looks at the owner's pages at the name where browsers take passkeys, and returns to the address without.
func (s *walk) passkeyForms(p *browser.Page, email string) {
	s.T.Helper()
	there := strings.Replace(s.Ready.Endpoints["console"], "127.0.0.1", "localhost", 1)
	p.Goto(there + "/my/login")
	p.SeeRole("button", "Use a passkey")
	s.Look(p, "my-login-passkey")
	p.Fill("E-mail", email)
	p.Fill("Password", housetest.OwnersPassword)
	p.Press("Enter")
	p.At("^/my$")
	p.Goto(there + "/my/account")
	p.SeeRole("button", "Add a passkey")
	s.Look(p, "my-account-passkey")
	p.Click("button", "Sign out")
	p.At("^/my/login$")
	p.Goto(s.Ready.Endpoints["console"] + "/my/account")
}

// program lets a program drive the robot of the page, by keyboard, and leaves it in the list.
func (s *walk) program(t *testing.T, p *browser.Page) {
	p.Focus("summary", "Let a program drive it")
	p.Press("Enter")
	p.Fill("Name of the program", "wanderer")
	p.Check("Move it")
	s.Look(p, "my-robot-program")
	p.FocusField("Name of the program")
	p.Press("Enter")
	p.SeeRole("heading", "Program added")
	if got := p.Value("Contents of robot.json"); !strings.Contains(got, `"token": "`) || !strings.Contains(got, "BEGIN CERTIFICATE") {
		t.Errorf("robot.json: %s", got)
	}
	s.Look(p, "program-added") // the answer to a form: its German is in TestPrograms of cloud/web/companion
	p.Follow("Rex", "^/my/robots/")
	p.SeeRole("button", "Remove wanderer")
}

// owner is the walk of an owner with a phone, who types one address and no other: signs up, claims, names, sets up, sees the robot take it, takes
// everything along, and leaves (what must hold 2). Forms are sent with the Enter key.
func (s *walk) owner(t *testing.T, thing string) {
	root := s.RobotRoot(thing)
	const email = "mia@example.org"
	p := s.Browser.Page(t, browser.Phone)
	p.Goto(s.Ready.Endpoints["console"] + "/my")
	p.At("^/my/login")
	s.Look(p, "my-login")
	p.Follow("Forgot your password?", "^/account/forgot")
	s.Look(p, "account-forgot")
	for _, page := range []string{"reset", "email"} { // letters lead there
		p.Goto(sibling(t, p, "/account/"+page))
		s.Look(p, "account-"+page)
	}
	p.Goto(sibling(t, p, "/account/forgot"))
	p.Follow("Sign in", "^/my/login")
	p.Follow("New here?", "^/account/signup")
	s.Look(p, "account-signup")
	p.Fill("E-mail", email)
	p.Fill("Password", housetest.OwnersPassword)
	p.Press("Enter")
	p.See("we have sent an e-mail")
	s.Look(p, "account-code")
	link := ""
	housetest.Await(t, time.Minute, "the letter", func() (err error) { link, err = s.letterTo(email); return err })
	other := s.Browser.Page(t, browser.Phone) // a click in the letter, in another browser
	other.Goto(link)
	other.SeeRole("heading", "Confirm your e-mail")
	s.Look(other, "account-verify")
	other.Follow("Send the e-mail again", "^/account/again")
	s.Look(other, "account-again")
	_, code, _ := strings.Cut(link, "code=")
	p.Fill("Code from the e-mail", code) // this browser signed up, and is not asked for the password again
	p.Press("Enter")
	p.See("Your account is ready")
	p.Follow("Continue", "^/my$")
	p.Click("button", "Sign out")
	p.At("^/my/login")
	p.Fill("E-mail", email)
	p.Fill("Password", "not the password")
	p.Press("Enter")
	p.SeeRole("alert", "")
	p.Fill("Password", housetest.OwnersPassword)
	p.Press("Enter")
	p.At("^/my$")

	p.SeeRole("heading", "Bring your robot home")
	s.Look(p, "my-empty")
	p.Fill("Code from your robot", "AAAA-AAAA")
	p.Press("Enter")
	p.SeeRole("alert", "")
	if got := p.Value("Code from your robot"); got != "AAAA-AAAA" {
		t.Errorf("the code that was refused is gone from its field: %q", got)
	}
	p.Fill("Code from your robot", strings.ToLower(housetest.ShownCode(t, root)))
	p.Press("Enter")
	p.At("^/my/robots/")
	p.See("The robot is yours")
	p.Fill("Name", "Rex")
	p.Press("Enter")
	p.SeeRole("heading", "Rex")
	p.See("It is online") // and well, unless this machine makes its loop late
	s.Look(p, "my-robot")

	p.Fill("Your own words", "colourless green ideas")
	p.Press("Enter")
	p.SeeRole("alert", "")
	p.Fill("Your own words", "check the timer")
	p.Press("Enter")
	p.See("no timer is set") // without a reload
	p.Click("button", "Battery level")
	p.See("my battery is")
	s.Look(p, "my-told")

	s.program(t, p)
	p.Follow("Settings", "/settings$")
	s.Look(p, "my-settings")
	agent := housetest.RobotPids(root)["agentd"]
	if agent == 0 {
		t.Fatalf("no agentd among %v", housetest.RobotPids(root))
	}
	if err := syscall.Kill(agent, syscall.SIGSTOP); err != nil { // so that what is on its way stays there until it was seen
		t.Fatal(err)
	}
	p.Check("Sapphire")
	p.Click("button", "Save its eyes")
	p.SeeIn("region", "Eyes", "On its way to your robot.")
	p.SeeIn("region", "Voice", "Your robot has this.")
	if err := syscall.Kill(agent, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.SeeIn("region", "Eyes", "Your robot has this.") // without a reload
	housetest.FileHas(t, root, "eye_color", 4)
	if !p.Checked("Sapphire") {
		t.Error("sapphire is not shown as wanted")
	}
	p.Fill("Time zone", "Atlantis")
	p.Press("Enter")
	p.See("is not in the list")
	p.Fill("Time zone", "berlin")
	p.Check("18:30")
	p.FocusField("Time zone")
	p.Press("Enter")
	p.SeeIn("region", "Where it lives", "Your robot has this.")
	if got := p.Value("Time zone"); got != "Berlin, Germany" {
		t.Errorf("time zone %q, want Berlin, Germany", got)
	}
	housetest.FileHas(t, root, "time_zone", "Europe/Berlin")
	housetest.FileHas(t, root, "clock_24_hour", true)
	p.See("Last changed by you")
	housetest.EditSetting(t, root, "master_volume", 1) // at the robot itself
	p.See("Last changed by your robot itself")
	p.Reload()
	if !p.Checked("Very quiet") {
		t.Error("what the robot changed is not shown as wanted")
	}

	if _, err := s.Ctl("jdocs", "set", thing, "vic.RobotLifetimeStats", "Alive.seconds=1900800", "Odom.Body=1834000", "Pet.ms=2820000",
		"BStat.AttemptedFistBump=19", "BStat.FistBumpSuccess=14",
		"BStat.ReactedToTriggerWord=322", "BStat.ReactedToCliff=41", "FeatureType.Social=210", "FeatureType.Play=90", "FeatureType.Autonomous=340", "FeatureType.Utility=37", "FeatureType.Sleep=120",
		"BStat.AnimationPlayed=20417", "Feature.AI.Exploring=88"); err != nil {
		t.Fatal(err)
	}
	p.Follow("Life", "/life$")
	p.See("of 19 offered")
	s.Look(p, "my-life")
	p.Goto(strings.Replace(p.URL(), "/life", "/motions", 1)) // a Vector has none, and the page says so
	s.Look(p, "my-motions")
	p.Follow("My robots", "^/my$")
	p.SeeRole("link", "Rex")
	s.Look(p, "my-robots")
	p.Follow("Account", "^/my/account$")
	s.Look(p, "my-account")
	s.passkeyForms(p, email)
	p.Follow("Change my password", "^/account/password$")
	s.Look(p, "account-password")
	p.Goto(sibling(t, p, "/my/account")) // as the browser's own button does
	p.Follow("Privacy", "^/my/privacy$")
	p.Check("Share diagnostic data from my robots")
	p.Click("button", "Save")
	p.See("Your robots now share diagnostic data.")
	s.Look(p, "my-privacy")

	name, file := p.Download("link", "Download everything")
	if !strings.HasSuffix(name, ".zip") {
		t.Errorf("the export is called %q", name)
	}
	for _, want := range []string{email, thing, "Rex", "Europe/Berlin"} {
		if !bytes.Contains(unzipped(t, file), []byte(want)) {
			t.Errorf("the export does not say %s", want)
		}
	}
	p.Click("summary", "Delete my account")
	p.Fill("Your password", housetest.OwnersPassword)
	p.Check("Yes, delete everything")
	p.Focus("button", "Delete my account")
	p.Press("Enter")
	p.At("^/my/goodbye$")
	s.Look(p, "my-goodbye")
	p.Click("link", "Kennel")
	p.At("^/my/login")
	p.Fill("E-mail", email)
	p.Fill("Password", housetest.OwnersPassword)
	p.Press("Enter")
	p.SeeRole("alert", "")
	boss := s.Operator(t)
	housetest.Await(t, time.Minute, "the robot is nobody's", func() error {
		if code, b := boss.Try("GET", "/v1/things/"+thing+"/owner", nil); !bytes.Contains(b, []byte(`"ended":"erased"`)) {
			return fmt.Errorf("%d %s", code, b)
		}
		return nil
	})
}

// sibling is another page of the same site.
func sibling(t *testing.T, p *browser.Page, path string) string {
	t.Helper()
	u, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.Path, u.RawQuery = path, ""
	return u.String()
}

// unzipped returns all files of an archive, one after the other.
func unzipped(t *testing.T, file []byte) []byte {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatalf("%v in %.200q", err, file)
	}
	var out []byte
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		out = slices.Concat(out, b, []byte("\n"))
	}
	return out
}
