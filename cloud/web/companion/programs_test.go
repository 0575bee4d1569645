package companion

import (
	"html"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"kennel/cloud/identity/token"
	"kennel/infra/api/status"
)

// TestPrograms: the page of a robot that serves programs offers to add one, keeps what was typed if it is refused, and shows the file once, with lines
// that do what the program may. It lists rights and ends in words.
func TestPrograms(t *testing.T) {
	mux, h := open(t)
	h.programs = []token.App{{ID: "p-1", Name: "wanderer", AppID: "SDK", Issued: noon, Rights: []string{"look", "move", "<b>"}, Expires: time.Date(2999, 1, 2, 0, 0, 0, 0, time.UTC)},
		{ID: "p-2", Name: "old one", AppID: "SDK", Issued: noon, Rights: []string{"camera"}, Expires: noon}}
	const at = "/my/robots/vic:00e20100"
	body := do(t, mux, "ann", "GET", at, "").Body.String()
	for _, want := range []string{"Until 2 January 2999", `<div class="pill">Read its sensors</div><div class="pill">Move it</div><div class="pill">&lt;b&gt;</div>`, "Expired " + day(noon),
		`<details id="programs"><summary>Let a program drive it`, `value="look" checked> Read its sensors`, `value="move"> Move it`, `value="camera"> See through its camera`, `value="settings"> Change its settings`, `value="hear"> Hear through its microphones`, `<option value="30" selected>`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}

	refuse := func(values, want string) {
		t.Helper()
		w := do(t, mux, "ann", "POST", at+"/programs", values)
		if body := w.Body.String(); w.Code != 400 || !strings.Contains(html.UnescapeString(body), `role="alert">`+want) || !strings.Contains(body, `<details id="programs" open>`) {
			t.Errorf("%.60s: %d; want %s", values, w.Code, want)
		}
	}
	refuse("name=x&days=1", "Choose at least one right: look, talk, move, camera, settings, hear.")
	refuse("name=x&rights=fly&days=1", `Right "fly": want look`)
	refuse("name=x&rights=look", "Choose how long the program may drive your robot.")
	refuse("name=x&rights=look&days=-3", "-3 days: want 0")
	refuse("name="+strings.Repeat("n", 10<<10)+"&rights=look&days=1", "The program's name has 10240 characters: want at most 64.")
	body = do(t, mux, "ann", "POST", at+"/programs", "name=&rights=talk&rights=move&days=365").Body.String()
	for _, want := range []string{`value="look"> `, `value="talk" checked`, `value="move" checked`, `<option value="365" selected>`} {
		if !strings.Contains(body, want) {
			t.Errorf("after a refusal the form lacks %s", want)
		}
	}
	if len(h.did) != 0 {
		t.Errorf("did %q", h.did)
	}

	for _, values := range []string{"", "name=x&days=1", "name=x&rights=look", "name=%01&rights=look&days=1", "name=" + strings.Repeat("n", 65) + "&rights=look&days=1", "name=x&rights=look&days=1"} {
		body := do(t, mux, "ann", "POST", at+"/programs", values, "Accept-Language", "de").Body.String()
		for _, missing := range untranslated.FindAllString(body, -1) {
			if !strings.Contains(missing, `translate="no"`) && !strings.Contains(missing, "&lt;") {
				t.Errorf("%.40q in German: %s", values, missing)
			}
		}
	}

	add := func(rights string) *httptest.ResponseRecorder {
		return do(t, mux, "ann", "POST", at+"/programs", "name=%3Cb%3Ewanderer&days=30"+rights)
	}
	w := add("&rights=look&rights=move")
	body = w.Body.String()
	if got := html.UnescapeString(body); w.Code != 200 || !strings.Contains(got, `"token": "a-token-shown-once=="`) || !strings.Contains(got, "robot.turn(math.pi / 2)") || strings.Contains(body, "<b>") ||
		w.Header().Get("Cache-Control") != "no-store" || !regexp.MustCompile(`<textarea[^>]* id="file"[^>]* readonly`).MatchString(body) {
		t.Errorf("%d %v %s", w.Code, w.Header(), body)
	}
	if body := add("&rights=look").Body.String(); !strings.Contains(body, "robot.read") || strings.Contains(body, "robot.go") || strings.Contains(body, "math") {
		t.Errorf("a program that may not move is shown how: %s", body)
	}
	h.things[rex].Status.Uses = []status.Use{{Program: "wanderer", Call: "do", What: "robot.go(0.1)", Outcome: "blocked", Times: 2, At: noon}, {Program: "<b>", Call: "claim", Outcome: "right_missing", Times: 1, At: noon},
		{Program: "many", Call: status.OtherCalls, Times: 71, At: noon}, {Program: "of an earlier owner", Call: "read", Outcome: "done", At: noon.AddDate(-9, 0, 0)}}
	body = do(t, mux, "ann", "GET", at, "").Body.String()
	for _, want := range []string{`<summary>What programs did</summary>`, "robot.go(0.1)</span>: ended early", "2</span> times, ", "&lt;b&gt;", "claim</span>: refused", "Other things", "71</span> times"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(body, "earlier owner") {
		t.Error("an owner sees what programs of another did")
	}
	h.things[rex].Status.Gateway = ""
	if body := do(t, mux, "ann", "GET", at, "").Body.String(); strings.Contains(body, "Let a program drive it") {
		t.Error("a robot that serves no programs is offered one")
	}
}
