package e2e

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

	"kennel/cloud/access"
	"kennel/infra/browser"
)

// site is a house looked at with a browser. Pages that were looked at are remembered, so that none is forgotten.
type site struct {
	*house
	b    *browser.Browser
	seen map[string]bool // routes of access.HTTP
}

// screens is the folder for pictures of all pages; "": none are made.
func screens() string { return os.Getenv("KENNEL_SCREENS") }

// look checks the page as it stands, on a desktop and on a phone, in light and dark, and makes its pictures where they are wanted.
func (s *site) look(p *browser.Page, name string) {
	s.t.Helper()
	s.visited(p)
	p.Sound(browser.Desktop, browser.Phone)
	if screens() == "" {
		return
	}
	for size, at := range map[string]browser.Size{"desktop": browser.Desktop, "phone": browser.Phone} {
		for _, scheme := range []string{"light", "dark"} {
			p.Look(scheme, at)
			p.Shot(filepath.Join(screens(), name+"-"+size+"-"+scheme+".png"))
		}
	}
	p.Look("light", browser.Phone)
}

// visited notes which route a page is.
func (s *site) visited(p *browser.Page) {
	s.t.Helper()
	u, err := url.Parse(p.URL())
	if err != nil {
		s.t.Fatal(err)
	}
	for name := range access.HTTP {
		if pattern, ok := strings.CutPrefix(name, "GET "); ok && routeMatches(pattern, u.Path) {
			s.seen[name] = true
		}
	}
}

var wildcard = regexp.MustCompile(`\\\{[a-z]+\\\}`)

func routeMatches(pattern, path string) bool {
	pattern = strings.TrimSuffix(pattern, "{$}")
	return regexp.MustCompile("^" + wildcard.ReplaceAllString(regexp.QuoteMeta(pattern), "[^/]+") + "$").MatchString(path)
}

// TestBrowser looks at the pages as people do (issue 5, what must hold 1 to 3).
func TestBrowser(t *testing.T) {
	if dir := screens(); dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h := newHouse(t, "-robots", "2")
	h.start()
	s := &site{house: h, b: browser.Start(t), seen: map[string]bool{}}
	things := h.awaitPresent(2)
	t.Run("owner", func(t *testing.T) { s.owner(t, things[0]) })
}

var letterLink = regexp.MustCompile(`https?://\S+/account/\S+`)

// letterTo returns the link in the newest letter to an address.
func (s *site) letterTo(to string) (link string, err error) {
	files, err := filepath.Glob(filepath.Join(s.ready.Files["mail"], "*.eml"))
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
		text, err := plainText(m)
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

// owner is the walk of an owner with a phone, who types one address and no other: signs up, claims, names, sets up, sees the robot take it, takes
// everything along, and leaves (what must hold 2). Forms are sent with the Enter key.
func (s *site) owner(t *testing.T, thing string) {
	root := s.robotRoot(thing)
	const email = "mia@example.org"
	p := s.b.Page(t, browser.Phone)
	p.Goto(s.ready.Endpoints["console"] + "/my")
	p.At("^/my/login")
	s.look(p, "my-login")
	p.Follow("Forgot your password?", "^/account/forgot")
	s.look(p, "account-forgot")
	p.Follow("Sign in", "^/my/login")
	p.Follow("New here?", "^/account/signup")
	s.look(p, "account-signup")
	p.Fill("E-mail", email)
	p.Fill("Password", ownersPassword)
	p.Press("Enter")
	p.See("a letter is on its way")
	link := ""
	await(t, time.Minute, "the letter", func() (err error) { link, err = s.letterTo(email); return err })
	p.Goto(link) // by a click in the letter
	p.SeeRole("heading", "Confirm your e-mail")
	s.look(p, "account-verify")
	p.Fill("The password you chose", ownersPassword)
	p.Press("Enter")
	p.See("Your account is ready")
	p.Follow("Sign in", "^/my/login")
	p.Fill("E-mail", email)
	p.Fill("Password", "not the password")
	p.Press("Enter")
	p.SeeRole("alert", "")
	p.Fill("Password", ownersPassword)
	p.Press("Enter")
	p.At("^/my$")

	p.SeeRole("heading", "Bring your robot home")
	s.look(p, "my-empty")
	p.Fill("The code that it shows", "AAAA-AAAA")
	p.Press("Enter")
	p.SeeRole("alert", "")
	if got := p.Value("The code that it shows"); got != "AAAA-AAAA" {
		t.Errorf("the code that was refused is gone from its field: %q", got)
	}
	p.Fill("The code that it shows", strings.ToLower(shownCode(t, root)))
	p.Press("Enter")
	p.At("^/my/robots/")
	p.See("It is yours now")
	p.Fill("Its name", "Rex")
	p.Press("Enter")
	p.SeeRole("heading", "Rex")
	p.See("It is here and well.")
	s.look(p, "my-robot")

	p.Follow("Settings", "/settings$")
	s.look(p, "my-settings")
	agent := robotPids(root)["agentd"]
	if agent == 0 {
		t.Fatalf("no agentd among %v", robotPids(root))
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
	has(t, root, "eye_color", 4)
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
	has(t, root, "time_zone", "Europe/Berlin")
	has(t, root, "clock_24_hour", true)
	p.See("Last changed by you")
	edit(t, root, "master_volume", 1) // at the robot itself
	p.See("Last changed by your robot itself")
	p.Reload()
	if !p.Checked("Very quiet") {
		t.Error("what the robot changed is not shown as wanted")
	}

	if _, err := s.ctl("jdocs", "set", thing, "vic.RobotLifetimeStats", "Alive.seconds=1900800", "Odom.Body=1834000", "Pet.ms=2820000", "BStat.AttemptedFistBump=19", "BStat.FistBumpSuccess=14",
		"BStat.ReactedToTriggerWord=322", "BStat.ReactedToCliff=41", "FeatureType.Social=210", "FeatureType.Play=90", "FeatureType.Autonomous=340", "FeatureType.Utility=37", "FeatureType.Sleep=120",
		"BStat.AnimationPlayed=20417", "Feature.AI.Exploring=88"); err != nil {
		t.Fatal(err)
	}
	p.Follow("Life", "/life$")
	p.See("of 19 that it offered")
	s.look(p, "my-life")
	p.Follow("My robots", "^/my$")
	p.SeeRole("link", "Rex")
	s.look(p, "my-robots")
	p.Follow("Me", "^/my/account$")
	s.look(p, "my-account")
	p.Follow("Change my password", "^/account/password$")
	s.look(p, "account-password")
	p.Goto(s.back(p))
	p.Follow("Privacy", "^/my/privacy$")
	p.Check("My robots may send what happens to them")
	p.Click("button", "Save")
	p.See("Your robots may send what happens to them.")
	s.look(p, "my-privacy")

	name, file := p.Download("link", "Take it all along")
	if !strings.HasSuffix(name, ".zip") {
		t.Errorf("the export is called %q", name)
	}
	for _, want := range []string{email, thing, "Rex", "Europe/Berlin"} {
		if !bytes.Contains(unzipped(t, file), []byte(want)) {
			t.Errorf("the export does not say %s", want)
		}
	}
	p.ClickText("Delete my account")
	p.Fill("Your password", ownersPassword)
	p.Check("Delete everything")
	p.Focus("button", "Delete my account")
	p.Press("Enter")
	p.At("^/my/goodbye$")
	s.look(p, "my-goodbye")
	p.Click("link", "Kennel")
	p.At("^/my/login")
	p.Fill("E-mail", email)
	p.Fill("Password", ownersPassword)
	p.Press("Enter")
	p.SeeRole("alert", "")
	shownCode(t, root) // it is nobody's again, and says so
}

// back goes back in the page's history.
func (s *site) back(p *browser.Page) string {
	u, err := url.Parse(p.URL())
	if err != nil {
		s.t.Fatal(err)
	}
	u.Path = "/my/account"
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
