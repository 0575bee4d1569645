package housetest

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kennel/cloud/access"
	"kennel/infra/auth"
	"kennel/infra/browser"
)

// Site is a house looked at with a browser. Pages that were looked at are remembered, so that none is forgotten.
type Site struct {
	*House
	Browser *browser.Browser
	Seen    map[string]bool // routes of access.HTTP
}

// NewSite starts a browser for a house.
func NewSite(t *testing.T, h *House) *Site {
	t.Helper()
	return &Site{House: h, Browser: browser.Start(t), Seen: map[string]bool{}}
}

// ScreensDir is the folder for pictures of all pages; "": none are made.
func ScreensDir() string { return os.Getenv("KENNEL_SCREENS") }

// Look checks the page in its present state: that it fits at all sizes, and all else in light and dark. The light run looks at the device that the page is made for; make soak and make screens look at desktop and phone. It takes screenshots if they are asked for.
func (s *Site) Look(p *browser.Page, name string) {
	s.T.Helper()
	s.visited(p)
	p.Fits(browser.Sizes...)
	owners := strings.HasPrefix(name, "my-") || strings.HasPrefix(name, "account-")
	if owners {
		for _, text := range p.Untranslated("de") {
			s.T.Errorf("%s: in English on the German page: %q", name, text)
		}
	}
	if !Soak() && ScreensDir() == "" {
		made := browser.Desktop
		if owners {
			made = browser.Phone
		}
		p.Sound(made)
		return
	}
	p.Sound(browser.Desktop, browser.Phone)
	if ScreensDir() == "" {
		return
	}
	for size, at := range map[string]browser.Size{"desktop": browser.Desktop, "phone": browser.Phone} {
		for _, scheme := range []string{"light", "dark"} {
			p.Look(scheme, at)
			p.Shot(filepath.Join(ScreensDir(), name+"-"+size+"-"+scheme+".png"))
		}
	}
	p.Look("light", browser.Phone)
}

// Picture takes a picture for README.md and docs/ where make screens runs. In all other tests it holds the labels of the page against those of the picture, so that a page does
// not change without its picture.
func (s *Site) Picture(p *browser.Page, name string, size browser.Size) {
	s.T.Helper()
	file := filepath.Join("..", "..", "..", "docs", name)
	p.Look("light", size)
	labels := strings.Join(p.Labels(), "\n") + "\n"
	if ScreensDir() != "" {
		p.Window(file + ".png")
		if err := os.WriteFile(file+".labels", []byte(labels), 0o644); err != nil {
			s.T.Error(err)
		}
		return
	}
	if was, err := os.ReadFile(file + ".labels"); err != nil || string(was) != labels {
		s.T.Errorf("docs/%s.png shows an earlier page (%v): make screens takes it again. The page has now\n%s", name, err, labels)
	}
}

// visited notes which route a page is.
func (s *Site) visited(p *browser.Page) {
	s.T.Helper()
	u, err := url.Parse(p.URL())
	if err != nil {
		s.T.Fatal(err)
	}
	known := false
	for name := range access.HTTP {
		if pattern, ok := strings.CutPrefix(name, "GET "); ok && routeMatches(pattern, u.Path) {
			s.Seen[name], known = true, true
		}
	}
	if !known {
		s.Seen["GET /{path...}"] = true
	}
}

var wildcard = regexp.MustCompile(`\\\{[a-z]+\\\}`)

func routeMatches(pattern, path string) bool {
	pattern = strings.TrimSuffix(pattern, "{$}")
	return regexp.MustCompile("^" + wildcard.ReplaceAllString(regexp.QuoteMeta(pattern), "[^/]+") + "$").MatchString(path)
}

// SignIn signs a viewer in who was just made.
func (s *Site) SignIn(p *browser.Page) { s.T.Helper(); s.SignInAs(p, auth.Viewer) }

// SignInAs signs an operator in who was just made.
func (s *Site) SignInAs(p *browser.Page, role auth.Role) {
	s.T.Helper()
	email := "otto." + string(role) + "@staff.example"
	var made struct{ Password string }
	s.Operator(s.T).Do("POST", "/v1/operators", map[string]string{"email": email, "role": string(role)}, &made)
	p.Goto(s.Ready.Endpoints["console"] + "/")
	p.Fill("E-mail", email)
	p.Fill("Password", made.Password)
	p.Press("Enter")
	p.At("^/account/password")
	p.Fill("Current password", made.Password)
	p.Fill("New password, at least 10 characters", OwnersPassword)
	p.Fill("New password again", OwnersPassword)
	p.Press("Enter")
	p.See("Password changed.")
	p.Follow("Continue", "^/$")
}
