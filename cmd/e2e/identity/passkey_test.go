package identity

import (
	"net/http"
	"strings"
	"testing"

	"kennel/cmd/e2e/housetest"
	"kennel/infra/browser"
)

// TestPasskeyInABrowser is the whole ceremony in a real browser, with a device that keeps passkeys: an operator adds one, signs in with it, and is
// refused once it is removed (issue 16, finding 4).
func TestPasskeyInABrowser(t *testing.T) {
	h := housetest.New(t, "-robots", "0", "-log-level", "warn")
	h.Start()
	var made struct {
		Password string `json:"password"`
	}
	h.Operator(t).Do(http.MethodPost, "/v1/operators", map[string]string{"email": "kim@staff.example", "role": "viewer"}, &made)
	// Browsers take passkeys for a name, and localhost is one.
	console := strings.Replace(h.Ready.Endpoints["console"], "127.0.0.1", "localhost", 1)
	p := browser.Start(t).Page(t, browser.Desktop)
	p.Authenticator()
	p.Goto(console + "/login")
	p.Fill("E-mail", "kim@staff.example")
	p.Fill("Password", made.Password)
	p.Press("Enter")
	p.At("^/account/password")
	p.Fill("Current password", made.Password)
	p.Fill("New password, at least 10 characters", housetest.OwnersPassword)
	p.Fill("New password again", housetest.OwnersPassword)
	p.Press("Enter")
	p.See("Password changed.")

	p.Goto(console + "/me")
	p.Fill("Name", "Laptop")
	p.Fill("Your password", "not the password")
	p.Click("button", "Add a passkey")
	p.SeeRole("alert", "")
	p.Fill("Your password", housetest.OwnersPassword)
	p.Click("button", "Add a passkey")
	p.At("^/me.done=passkey-added")
	p.See("Laptop")
	p.See("never used")

	signOut := func() {
		p.Eval("fetch('/logout', {method: 'POST'})")
		p.Goto(console + "/login")
	}
	signOut()
	p.Click("button", "Use a passkey")
	p.At("^/$")
	p.SeeRole("heading", "Overview")
	p.Goto(console + "/me")
	p.See("last used")
	p.Click("button", "Remove the passkey Laptop")
	p.Gone("Laptop")

	signOut()
	p.Click("button", "Use a passkey")
	p.SeeRole("alert", "")
	p.At("^/login")
}
