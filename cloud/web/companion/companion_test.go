package companion

import (
	"cmp"
	"encoding/json"
	"errors"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/access"
	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/page"
	"kennel/cloud/page/language"
	"kennel/cloud/voice/answers"
	"kennel/infra/api/status"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/speech/intent"
	"kennel/speech/knowledge"
	"kennel/speech/weather"
)

func open(t *testing.T, change ...func(*Config)) (*http.ServeMux, *house) {
	t.Helper()
	h := &house{account: `{"DATA_COLLECTION":true}`, things: map[thing.ID]registry.Thing{
		rex:  {ID: rex, Presence: registry.Present, Since: noon, LastSeen: noon, Status: &status.Message{OS: evil, Gateway: "192.168.1.7:8443", Intents: []string{"global_stop", "movement_forward", "set_timer"}, Problems: []string{evil}, Body: &status.Body{BatteryLevel: "low"}}, Problems: []status.Problem{{Kind: status.KindOther, Text: evil}}},
		bobs: {ID: bobs, Presence: registry.Absent, Since: noon, LastSeen: noon}}}
	h.talk.Model = "llama3.2"
	mux := http.NewServeMux()
	cfg := Config{Robots: h, Tokens: h, Fleet: h, Docs: h, Places: []string{"Berlin, Berlin, Germany"}, People: persons{h}, Logs: papers{}, Recordings: ears{h}, Answers: sky{h}, Updates: h, Says: h, Audit: h.audit, Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&cfg)
	}
	if err := Mount(mux, cfg); err != nil {
		t.Fatal(err)
	}
	return mux, h
}

// do asks as a caller: ann and bob are owners, "" is not signed in, others are roles.
func do(t *testing.T, mux *http.ServeMux, who, method, target, form string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(form))
	if method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	c := auth.Caller{Role: auth.Role(who), Account: who, Name: who + "@example.org", Addr: "192.0.2.1"}
	if who == "ann" || who == "bob" {
		c.Role = auth.Owner
	}
	if who != "" {
		r = r.WithContext(auth.WithCaller(r.Context(), c))
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	if method == "GET" && w.Code == http.StatusOK && strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		german(t, mux, r)
	}
	return w
}

// german asks for a page again, in German: none of its texts may be missing there.
func german(t *testing.T, mux *http.ServeMux, r *http.Request) {
	t.Helper()
	r = r.Clone(r.Context())
	r.Header.Set("Accept-Language", "de")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	for _, missing := range untranslated.FindAllString(w.Body.String(), -1) {
		if !strings.Contains(missing, "script&gt;") && !strings.Contains(missing, `translate="no"`) { // what a robot says
			t.Errorf("%s in German: %s", r.URL, missing)
		}
	}
}

var untranslated = regexp.MustCompile(`<[^<>]* lang="en"[^<>]*>[^<]*`)

func form(pairs ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v.Encode()
}

// wishes is every form of the pages, with what it must lead to.
var wishes = []struct {
	path, form, next string
	did              []string
	own              bool // about a robot of ann's: bob may not
}{
	{"/my/claim", form("code", "k7qm 3xw9"), "/my/robots/vic:00e20101?done=claimed", []string{"claim ann 192.0.2.1  k7qm 3xw9"}, false},
	{"/my/transfers/o-1/accept", "", "/my/robots/vic:00e20101?done=accepted", []string{"accept ann ann@example.org o-1"}, false},
	{"/my/transfers/o-1/drop", "", "/my?done=dropped", []string{"drop ann ann@example.org o-1"}, false},
	{"/my/robots/vic:00e20100/name", form("name", "Rex"), "/my/robots/vic:00e20100?done=named", []string{"rename ann vic:00e20100 Rex"}, true},
	{"/my/robots/vic:00e20100/name", form("name", ""), "/my/robots/vic:00e20100?done=unnamed", []string{"rename ann vic:00e20100"}, true},
	{"/my/robots/vic:00e20100/release", form("sure", "yes"), "/my?done=released", []string{"release ann vic:00e20100"}, true},
	{"/my/robots/vic:00e20100/offer", form("to", "bob@example.org", "password", "mine"), "/my/robots/vic:00e20100?done=offered", []string{"offer ann ann@example.org vic:00e20100 bob@example.org mine 192.0.2.1"}, true},
	{"/my/robots/vic:00e20100/apps", form("app", "a-1"), "/my/robots/vic:00e20100?done=app", []string{"audit apps.revoke vic:00e20100 a-1", "remove app vic:00e20100 a-1"}, true},
	{"/my/robots/vic:00e20100/apps", "", "/my/robots/vic:00e20100?done=apps", []string{"audit apps.revoke vic:00e20100 all", "remove apps vic:00e20100"}, true},
	{"/my/robots/vic:00e20100/programs", form("name", "wanderer", "rights", "move", "days", "30"), "", []string{"audit programs.add vic:00e20100 move, 30 days", "add program vic:00e20100 ann {wanderer [move] 30}"}, true},
	{"/my/robots/vic:00e20100/tell", form("intent", "movement_forward"), "/my/robots/vic:00e20100?done=told#told", []string{"audit intent.send vic:00e20100 movement_forward", "say vic:00e20100 owner movement_forward"}, true},
	{"/my/robots/vic:00e20100/tell", form("text", "go forward"), "/my/robots/vic:00e20100?done=told#told", []string{"audit intent.send vic:00e20100 from_words", "say vic:00e20100 owner from_words"}, true},
	{"/my/robots/vic:00e20100/tokens", "", "/my/robots/vic:00e20100?done=tokens", []string{"audit tokens.revoke vic:00e20100 all", "revoke tokens vic:00e20100 by its owner"}, true},
	{"/my/robots/vic:00e20100/update", form("when", "now"), "/my/robots/vic:00e20100?done=update#software", []string{"audit update.choose vic:00e20100 now", "choose vic:00e20100 {true false 0s}"}, true},
	{"/my/robots/vic:00e20100/update", form("when", "3d"), "/my/robots/vic:00e20100?done=update#software", []string{"audit update.choose vic:00e20100 3d", "choose vic:00e20100 {false false 72h0m0s}"}, true},
	{"/my/robots/vic:00e20100/audio", form("keep", "yes"), "/my/robots/vic:00e20100?done=audio", []string{"audit voice.audio vic:00e20100 true", "keep audio vic:00e20100 ann true"}, true},
	{"/my/robots/vic:00e20100/talk", form("asks", "yes", "remember", "yes", "persona", "A pirate."), "/my/robots/vic:00e20100?done=talk", []string{"audit talk.choose vic:00e20100 asks true, remembers true", "choose talk vic:00e20100 ann {true A pirate. true}"}, true},
	{"/my/robots/vic:00e20100/talk", "", "/my/robots/vic:00e20100?done=talk", []string{"audit talk.choose vic:00e20100 asks false, remembers false", "choose talk vic:00e20100 ann {false  false}"}, true},
	{"/my/robots/vic:00e20100/forget", "", "/my/robots/vic:00e20100?done=forgotten", []string{"audit talk.forget vic:00e20100", "forget talk vic:00e20100 ann"}, true},
	{"/my/robots/vic:00e20100/audio", "", "/my/robots/vic:00e20100?done=no-audio", []string{"audit voice.audio vic:00e20100 false", "keep audio vic:00e20100 ann false"}, true},
	{"/my/robots/vic:00e20100/settings", form("card", "eyes", "eyes", "4"), "/my/robots/vic:00e20100/settings?done=set#h-eyes", []string{`set vic:00e20100 vic.RobotSettings {"custom_eye_color.enabled":false,"eye_color":4}`}, true},
	{"/my/robots/vic:00e20100/settings", form("card", "eyes", "eyes", "own", "hue", "180", "saturation", "50"), "/my/robots/vic:00e20100/settings?done=set#h-eyes",
		[]string{`set vic:00e20100 vic.RobotSettings {"custom_eye_color.enabled":true,"custom_eye_color.hue":0.5,"custom_eye_color.saturation":0.5}`}, true},
	{"/my/robots/vic:00e20100/settings", form("card", "voice", "volume", "0", "locale", "de-DE", "button", "alexa"), "/my/robots/vic:00e20100/settings?done=set#h-voice",
		[]string{`set vic:00e20100 vic.RobotSettings {"button_wakeword":1,"locale":"de-DE","master_volume":0}`}, true},
	{"/my/robots/vic:00e20100/settings", form("card", "home", "place", " Bonn ", "zone", "berlin", "clock", "24", "temperature", "celsius", "distance", "metric"), "/my/robots/vic:00e20100/settings?done=set#h-home",
		[]string{`set vic:00e20100 vic.RobotSettings {"clock_24_hour":true,"default_location":"Bonn","dist_is_metric":true,"temp_is_fahrenheit":false,"time_zone":"Europe/Berlin"}`}, true},
	{"/my/privacy/events", form("events", "yes"), "/my/privacy?done=consent", []string{`set vic:00e20100 vic.AccountSettings {"data_collection":true}`}, false},
	{"/my/privacy/events", form("events", "no"), "/my/privacy?done=no-consent", []string{`set vic:00e20100 vic.AccountSettings {"data_collection":false}`}, false},
	{"/my/privacy/events", "", "/my/privacy?done=no-consent", []string{`set vic:00e20100 vic.AccountSettings {"data_collection":false}`}, false},
	{"/my/account/sessions", form("session", "s-2"), "/my/account?done=session", []string{"end session s-2"}, false},
	{"/my/account/sessions", "", "/my/account?done=sessions", []string{"end others"}, false},
	{"/my/account/passkeys/QUI/remove", "", "/my/account?done=no-passkey", []string{"remove passkey QUI"}, false},
	{"/my/account/delete", form("password", "open sesame", "sure", "yes"), "/my/goodbye", []string{"delete", "sign out"}, false},
}

// TestWishes: each form does its one thing, for its owner alone, from these pages alone.
func TestWishes(t *testing.T) {
	mux, h := open(t)
	sent := map[string]bool{}
	for _, x := range wishes {
		_, pattern := mux.Handler(httptest.NewRequest("POST", x.path, nil))
		sent[pattern] = true
		h.did = nil
		w := do(t, mux, "ann", "POST", x.path, x.form, "Sec-Fetch-Site", "same-origin")
		if x.next == "" && (w.Code != 200 || !strings.Contains(w.Body.String(), "a-token-shown-once==") || !slices.Equal(h.did, x.did)) {
			t.Errorf("%s %s: %d %s, did %q; want the secret that it makes, %q", x.path, x.form, w.Code, w.Body, h.did, x.did)
		}
		if x.next != "" && (w.Code != 303 || w.Header().Get("Location") != x.next || !slices.Equal(h.did, x.did)) {
			t.Errorf("%s %s: %d to %s, did %q; want %s, %q", x.path, x.form, w.Code, w.Header().Get("Location"), h.did, x.next, x.did)
		}
		next, _, _ := strings.Cut(x.next, "#")
		if _, done, said := strings.Cut(next, "?done="); said && dones[done] == "" {
			t.Errorf("%s leads to %s, which says nothing", x.path, x.next)
		}
		h.did = nil
		for _, site := range []string{"cross-site", "same-site"} {
			if w := do(t, mux, "ann", "POST", x.path, x.form, "Sec-Fetch-Site", site); w.Code != 403 {
				t.Errorf("%s from %s: %d", x.path, site, w.Code)
			}
		}
		for who, want := range map[string]int{"": 401, "thing": 403, "viewer": 403, "admin": 403} {
			if w := do(t, mux, who, "POST", x.path, x.form); w.Code != want {
				t.Errorf("%s as %q: %d, want %d", x.path, who, w.Code, want)
			}
		}
		if x.own {
			for _, path := range []string{x.path, strings.Replace(x.path, "vic:00e20100", "vic:none", 1), strings.Replace(x.path, "vic:00e20100", "no-thing", 1)} {
				if w := do(t, mux, "bob", "POST", path, x.form); w.Code != 404 || !strings.Contains(w.Body.String(), "You have no such robot.") {
					t.Errorf("%s as bob: %d", path, w.Code)
				}
			}
		}
		if len(h.did) > 0 {
			t.Errorf("%s: others did %q", x.path, h.did)
		}
		if strings.HasPrefix(x.did[0], "audit") {
			h.auditErr = errors.New("away")
			if w := do(t, mux, "ann", "POST", x.path, x.form); w.Code != 500 || len(h.did) != 1 {
				t.Errorf("%s without an audit log: %d, did %q", x.path, w.Code, h.did)
			}
			h.auditErr = nil
		}
		h.err = errs.Coded(errs.Conflict, "no", "another <b>person</b> was first")
		if w := do(t, mux, "ann", "POST", x.path, x.form); w.Code != 409 || strings.Count(w.Body.String(), `role="alert">Another &lt;b&gt;person&lt;/b&gt; was first.`) != 1 {
			t.Errorf("%s refused: %d %s", x.path, w.Code, w.Body)
		}
		h.err = errors.New("secret detail")
		if w := do(t, mux, "ann", "POST", x.path, x.form); w.Code != 500 || strings.Contains(w.Body.String(), "secret detail") {
			t.Errorf("%s broken: %d", x.path, w.Code)
		}
		h.err = nil
	}
	for pattern, rule := range access.HTTP {
		if strings.HasPrefix(pattern, "POST /my") && rule.Page && len(rule.Roles) > 0 && !sent[pattern] {
			t.Errorf("%s is a form that this test does not send", pattern)
		}
	}
}

// TestProblemsStandBesideTheirField: in words, with what was typed, and a password never comes back.
func TestProblemsStandBesideTheirField(t *testing.T) {
	mux, h := open(t)
	for _, x := range []struct{ path, form, want, keeps string }{
		{"/my/robots/vic:00e20100/release", "", "Confirm that you want to remove the robot.", ""},
		{"/my/account/delete", form("password", "my secret", "sure", "yes"), "The password is wrong.", ""},
		{"/my/account/delete", form("password", "open sesame"), "Confirm that you want to delete everything.", ""},
	} {
		w := do(t, mux, "ann", "POST", x.path, x.form)
		if body := w.Body.String(); w.Code != 400 && w.Code != 403 || !strings.Contains(body, `role="alert">`+x.want) || strings.Contains(body, "my secret") || !strings.Contains(body, "<details open>") {
			t.Errorf("%s: %d %s", x.path, w.Code, body)
		}
	}
	h.err = errs.Coded(errs.NotFound, "code_refused", "no robot shows this code")
	body := do(t, mux, "ann", "POST", "/my/claim", form("code", "AAAA-BBBB")).Body.String()
	if !regexp.MustCompile(`<input[^>]*value="AAAA-BBBB" aria-invalid="true" aria-describedby="claim-problem"`).MatchString(body) || !strings.Contains(body, `id="claim-problem" role="alert">No robot shows this code.`) {
		t.Errorf("the problem is not beside the code: %s", body)
	}
	if len(h.did) > 0 {
		t.Errorf("did %q", h.did)
	}
}

func TestPages(t *testing.T) {
	mux, h := open(t)
	h.loop, h.first = true, true
	for _, x := range []struct {
		who, path string
		code      int
		want      []string
	}{
		{"", "/my", 303, []string{"/my/login?next=%2Fmy"}},
		{"", "/my/robots/vic:00e20100?x=1", 303, []string{"/my/login?next=%2Fmy%2Frobots%2Fvic%3A00e20100%3Fx%3D1"}},
		{"admin", "/my", 403, []string{"operator&#39;s", `href="/"`}},
		{"thing", "/my", 403, []string{"Your role, thing"}},
		{"ann", "/my", 200, []string{"My robots", "Your Pleo", "It has not connected yet.", "/my/transfers/o-1/accept", "Offered to another person", "Change it now", "it has a problem"}},
		{"ann", "/my?done=named", 200, []string{`role="status">Name saved.`}},
		{"ann", "/my/robots/vic:00e20100", 200, []string{"with its code", "Cancel offer", "signed in to your account", "An app without a name", "Its battery is low.", "Uploaded logs", "deleted 3 days after", "2.0 KiB", `href="/v1/things/vic:00e20100/logs/7/content"`, "Keep recordings for 7 days", `href="/v1/my/robots/vic:00e20100/audio/20260506T120000.000Z-s1.wav"`,
			`<dd><span translate="no">Bern</span></dd>`, "<dd>Celsius</dd>", `<dd><span translate="no">open-meteo.com</span></dd>`}},
		{"ann", "/my/robots/pleo:7", 200, []string{"Your Pleo", "E-mail of the new owner"}},
		{"ann", "/my/account", 200, []string{"ann@example.org", "this one", "Sign out everywhere else", `href="/my/privacy"`}},
		{"ann", "/my/privacy", 200, []string{"ann@example.org", "2: their names", "because you allow it", "checked> Share diagnostic data", `href="/v1/account/export"`, "Delete my account"}},
		{"bob", "/my/privacy", 200, []string{"One: its name"}},
		{"ann", "/my/robots/vic:00e20100/settings", 200, []string{"Settings", "Berlin, Germany", `data-live-from="/my/live?robot=vic%3A00e20100"`}},
		{"ann", "/my/robots/vic:00e20100/life", 200, []string{"Nothing here yet"}},
		{"bob", "/my/robots/vic:00e20100/settings", 404, []string{"You have no such robot."}},
		{"bob", "/my/robots/vic:00e20100/life", 404, []string{"You have no such robot."}},
		{"bob", "/my/live?robot=vic:00e20100", 404, []string{"you have no such robot"}},
		{"", "/my/live", 401, nil},
		{"bob", "/my", 200, []string{"It is offline."}},
		{"bob", "/my/robots/vic:00e20100", 404, []string{"You have no such robot."}},
		{"ann", "/my/robots/vic:00e20102", 404, []string{"You have no such robot."}},
		{"ann", "/my/robots/%3Cscript%3E", 404, []string{"You have no such robot."}},
		{"", "/my/login?next=//evil.example", 200, []string{`value="/my"`, "/account/signup", "/account/forgot"}},
		{"ann", "/my/login?next=/my/account", 303, []string{"/my/account"}},
		{"", "/my/goodbye", 200, []string{"Goodbye"}},
		{"", "/my/assets/style.css", 200, []string{"--ground"}},
	} {
		w := do(t, mux, x.who, "GET", x.path, "")
		got := w.Body.String()
		if w.Code == 303 {
			got = w.Header().Get("Location")
		}
		for _, want := range x.want {
			if w.Code != x.code || !strings.Contains(got, want) {
				t.Errorf("%s as %q: %d %s; want %d and %q", x.path, x.who, w.Code, got, x.code, want)
			}
		}
		if w.Header().Get("Content-Security-Policy") != page.Policy {
			t.Errorf("%s: policy %q", x.path, w.Header().Get("Content-Security-Policy"))
		}
		if x.who == "ann" && w.Code == 200 && strings.Contains(got, string(bobs.Serial())) {
			t.Errorf("%s shows ann a robot of bob's", x.path)
		}
	}
	h.nothing = true
	if body := do(t, mux, "ann", "GET", "/my", "").Body.String(); !strings.Contains(body, "Bring your robot home") || strings.Count(body, `action="/my/claim"`) != 1 {
		t.Error("a person without a robot is not told how to begin")
	}
}

// TestTell: the page offers only what the robot can do, and shows its answers; a robot that does not say what it can do is not told anything.
func TestTell(t *testing.T) {
	mux, h := open(t)
	given := func(state command.State, kind, detail string) command.Command {
		c := command.Command{Kind: "intent", Args: json.RawMessage(`{"intent":"` + kind + `"}`), Created: noon, State: state, By: command.ByOwner}
		if detail != "" {
			c.Result = &command.Result{Detail: detail}
		}
		return c
	}
	h.told = []command.Command{given(command.Sent, "intent_imperative_forward", ""), given(command.Done, "kennel_lookup", "I look up"), given(command.Failed, "intent_imperative_dance",
		"not supported by this robot"), given(command.Expired, "intent_clock_settimer_extend", "")}
	page := func() string {
		return html.UnescapeString(do(t, mux, "ann", "GET", "/my/robots/vic:00e20100", "").Body.String())
	}
	body := page()
	for _, want := range []string{`<button name="intent" value="movement_forward">Forward</button><button name="intent" value="global_stop">Stop</button></form>`, " data-open>",
		"<strong>Forward</strong><p class=\"small\"><span>Waiting for your robot.", "<strong>Look up</strong><p class=\"small\"><span translate=\"no\" lang=\"en\">I look up", "<strong>Dance</strong><p class=\"small\"><strong>Not done.</strong> <span translate=\"no\" lang=\"en\">not supported by this robot",
		"<strong>Set a timer</strong><p class=\"small\"><strong>Not done.</strong> <span>Your robot did not answer in time."} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	h.told = h.told[1:]
	german := given(command.Done, "intent_knowledge_response_extend", "To roll.")
	german.Args = json.RawMessage(`{"intent":"intent_knowledge_response_extend","params":{"answer":"To roll.","language":"en-US"}}`)
	h.told, h.settings = append(h.told, german), `{"locale":"de-AT"}`
	if body := page(); !strings.Contains(body, `lang="de">I look up`) || !strings.Contains(body, `lang="en-US">To roll.`) {
		t.Errorf("the answers of a German robot do not have their languages: %s", body)
	}
	if strings.Contains(page(), "data-open") {
		t.Error("it waits for an answer that came")
	}
	w := do(t, mux, "ann", "POST", "/my/robots/vic:00e20100/tell", form("text", "mumble"))
	if body := w.Body.String(); w.Code != 400 || !strings.Contains(body, "Your robot does not understand that; ") || !strings.Contains(body, `value="mumble"`) {
		t.Errorf("not understood: %d %s", w.Code, body)
	}
	w = do(t, mux, "ann", "POST", "/my/robots/vic:00e20100/tell", form("text", "mumble"), "Accept-Language", "de")
	if _, said, _ := strings.Cut(w.Body.String(), `id="tell-problem" role="alert">`); !strings.HasPrefix(said, "Das versteht dein Roboter nicht.") {
		t.Errorf("not understood, in German: %.200s", said)
	}
	h.things[rex].Status.Intents = nil
	if strings.Contains(page(), "Tell it what to do") {
		t.Error("a robot that does not say what it can do is offered intents")
	}
}

// TestWhatOthersSayStaysText: robots, apps, and what people typed.
func TestWhatOthersSayStaysText(t *testing.T) {
	mux, h := open(t)
	check := func(what string, w *httptest.ResponseRecorder) {
		body := w.Body.String()
		for _, bad := range []string{"<script>alert", `" onload=`, "' onload=", " style=", "javascript:"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s contains %q", what, bad)
			}
		}
		if !strings.Contains(html.UnescapeString(body), evil) {
			t.Errorf("%s: %d does not show what was said", what, w.Code)
		}
	}
	for _, path := range []string{"/my", "/my/robots/vic:00e20100", "/my/account"} {
		check(path, do(t, mux, "ann", "GET", path, ""))
	}
	h.err = errs.New(errs.Invalid, "no: %s", evil)
	for path, f := range map[string]string{"/my/claim": form("code", evil), "/my/robots/vic:00e20100/offer": form("to", evil), "/my/robots/vic:00e20100/name": form("name", evil)} {
		check("POST "+path, do(t, mux, "ann", "POST", path, f))
	}
	check("sign in", do(t, mux, "", "POST", "/my/login", form("email", evil, "password", "x")))
}

func TestSignInAndOut(t *testing.T) {
	mux, h := open(t)
	for _, x := range []struct {
		form, next string
		code       int
	}{
		{form("email", "ann@example.org", "password", "open sesame", "next", "/my/account"), "/my/account", 303},
		{form("email", "ann@example.org", "password", "open sesame", "next", "//evil.example"), "/my", 303},
		{form("email", "ann@example.org", "password", "open sesame", "next", "/things/vic:1"), "/my", 303},
		{form("email", "ann@example.org", "password", "wrong"), "", 403},
		{form("email", "broken@example.org", "password", "x"), "", 500},
		{form("email", "ann@example.org", "password", strings.Repeat("x", page.MaxForm)), "", 400},
	} {
		w := do(t, mux, "", "POST", "/my/login", x.form)
		if w.Code != x.code || w.Header().Get("Location") != x.next || strings.Contains(w.Body.String(), "secret detail") || (w.Header().Get("Set-Cookie") != "") != (x.code == 303) {
			t.Errorf("%.80s: %d %v", x.form, w.Code, w.Header())
		}
	}
	if w := do(t, mux, "ann", "POST", "/my/logout", "", "Sec-Fetch-Site", "cross-site"); w.Code != 403 || len(h.did) > 0 {
		t.Errorf("sign out from another site: %d", w.Code)
	}
	if w := do(t, mux, "ann", "POST", "/my/logout", "", "Sec-Fetch-Site", "same-origin"); w.Code != 303 || !slices.Equal(h.did, []string{"sign out"}) {
		t.Errorf("sign out: %d %q", w.Code, h.did)
	}
}

func TestState(t *testing.T) {
	body := func(b status.Body) *status.Message { return &status.Message{Body: &b} }
	here := registry.Thing{Presence: registry.Present, Since: noon.Add(-time.Hour), LastSeen: noon}
	away := registry.Thing{Presence: registry.Absent, Since: noon.Add(-time.Hour), LastSeen: noon.Add(-time.Hour), Status: body(status.Body{BatteryLevel: "low"})}
	with := func(m *status.Message) registry.Thing {
		t := here
		t.Status, t.Problems = m, registry.ProblemsOf(registry.StatusAt{Message: *m})
		return t
	}
	for posture, want := range map[string]string{"on its feet": "It is on its feet.", "on its back": "It has fallen on its back.", "": "", evil: ""} {
		if s := newState(with(body(status.Body{Posture: posture})), noon); s.Posture != want {
			t.Errorf("posture %q is told as %q, want %q", posture, s.Posture, want)
		}
	}
	for _, x := range []struct {
		name                string
		thing               registry.Thing
		mood, line, battery string
		help                bool
	}{
		{"never", registry.Thing{}, "new", "It has not connected yet.", "", true},
		{"away", away, "away", "It is offline.", "", true},
		{"just gone", registry.Thing{Presence: registry.Absent, Since: noon.Add(-time.Minute), LastSeen: noon}, "away", "It is offline.", "", false},
		{"original robot", registry.Thing{Presence: registry.Calls, LastSeen: noon.Add(-5 * time.Hour)}, "here", "It last connected 5 h ago.", "", false},
		{"original robot, silent", registry.Thing{Presence: registry.Calls, LastSeen: noon.Add(-72 * time.Hour)}, "away", "It last connected 3 days ago.", "", true},
		{"here", here, "here", "It is online and well.", "", false},
		{"charging", with(body(status.Body{Charging: true, BatteryLevel: "low"})), "here", "It is online and well.", "It is charging.", false},
		{"on charger", with(body(status.Body{OnCharger: true})), "here", "It is online and well.", "It sits on its charger.", false},
		{"low", with(body(status.Body{BatteryLevel: "low"})), "ill", "It is online, but it has a problem.", "Its battery is low.", true},
		{"late loop", with(&status.Message{Loop: &status.Loop{Steps: 10, LateP99: 900}}), "ill", "It is online, but it has a problem.", "", true},
		{"full", with(body(status.Body{BatteryLevel: "full"})), "here", "It is online and well.", "Its battery is full.", false},
		{"fault", with(body(status.Body{Fault: 915})), "ill", "It shows fault 915.", "", true},
		{"problem", with(&status.Message{Problems: []string{"no such host"}}), "ill", "It is online, but it has a problem.", "", true},
	} {
		s := newState(x.thing, noon)
		if s.Mood != x.mood || s.Line != x.line || s.Battery != x.battery || (s.Help != "") != x.help {
			t.Errorf("%s: %+v", x.name, s)
		}
	}
}

func TestMountWantsItsParts(t *testing.T) {
	if err := Mount(http.NewServeMux(), Config{}); err == nil {
		t.Error("mounted without parts")
	}
}

// TestPasskeys: an owner signs in with a passkey, and adds one, where browsers take them; elsewhere the page leads there, or says nothing.
func TestPasskeys(t *testing.T) {
	for _, c := range []struct {
		name  string
		sites []string
		host  string
		here  bool
		there string
	}{
		{"here", []string{"https://kennel.example"}, "kennel.example", true, ""},
		{"at another name of it", []string{"https://kennel.example"}, "10.0.0.7", false, "https://kennel.example"},
		{"nowhere", nil, "10.0.0.7", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &house{}
			mux := http.NewServeMux()
			if err := Mount(mux, Config{Robots: h, Tokens: h, Fleet: h, Docs: h, People: persons{h}, Logs: papers{}, Recordings: ears{h}, PasskeySites: c.sites, Audit: h.audit, Log: slog.New(slog.DiscardHandler)}); err != nil {
				t.Fatal(err)
			}
			login := do(t, mux, "", "GET", "https://"+c.host+"/my/login?next=/my/account", "").Body.String()
			me := do(t, mux, "ann", "GET", "https://"+c.host+"/my/account", "").Body.String()
			if got := strings.Contains(login, `id="passkey-login" data-next="/my/account" hidden`) && strings.Contains(login, "/assets/passkey.js"); got != c.here {
				t.Errorf("sign in with a passkey: %v, want %v:\n%s", got, c.here, login)
			}
			if got := strings.Contains(me, `id="passkey-add" data-next="/my/account?done=passkey" hidden`) && strings.Contains(me, "/assets/passkey.js"); got != c.here {
				t.Errorf("add a passkey: %v, want %v:\n%s", got, c.here, me)
			}
			for _, p := range []struct{ page, want string }{{login, c.there + "/my/login"}, {me, c.there + "/my/account"}} {
				if got := strings.Contains(p.page, `<a href="https://`); got != (c.there != "") || got && !strings.Contains(p.page, p.want) {
					t.Errorf("leads elsewhere: %v:\n%s", got, p.page)
				}
			}
			for _, s := range []string{"my phone", "never used", `action="/my/account/passkeys/QUI/remove"`} {
				if !strings.Contains(me, s) {
					t.Errorf("no %q", s)
				}
			}
		})
	}
}

// TestIntentsHaveLabels: an owner reads what the robot was told, not the name of an intent.
func TestIntentsHaveLabels(t *testing.T) {
	for _, in := range intent.All() {
		named := slices.ContainsFunc(buttons, func(b button) bool { return b.Intent == in.User }) || labels[in.User] != ""
		if inner := []string{"silence", "unmatched_intent", "test_name", "knowledge_unknown", "global_delete"}; !named && !slices.Contains(inner, in.User) &&
			!strings.HasPrefix(in.User, "amazon_") && !strings.HasPrefix(in.User, "blackjack_") {
			t.Errorf("%s has no label", in.User)
		}
	}
}

// TestWeather (issue 31.4): the page of a robot says which place, which degrees and which source, and what is missing.
func TestWeather(t *testing.T) {
	mux, h := open(t)
	for _, c := range []struct {
		is   answers.Weather
		want []string
	}{
		{answers.Weather{Wishes: weather.Wishes{Fahrenheit: true}}, []string{"<dd>None. Your robot says so when it is asked.</dd>", "<dd>Fahrenheit</dd>", "<dd>None. The operator of this Kennel can switch one on.</dd>"}},
		{answers.Weather{Source: evil, Wishes: weather.Wishes{Place: evil, House: true}}, []string{"no place of its own yet", "<dd>Celsius</dd>"}},
	} {
		h.weather = c.is
		got := do(t, mux, "ann", "GET", "/my/robots/vic:00e20100", "").Body.String()
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%+v: no %q", c.is, want)
			}
		}
		if strings.Contains(got, evil) {
			t.Errorf("%+v: a place is markup", c.is)
		}
	}
}

// TestTalk (issue 31.4): an owner reads what a language model is told of the robot, and what it remembers; without a model, only what can still be deleted.
func TestTalk(t *testing.T) {
	mux, h := open(t)
	page := func() string { return do(t, mux, "ann", "GET", "/my/robots/vic:00e20100", "").Body.String() }
	h.talk = answers.Talk{}
	if got := page(); strings.Contains(got, "language model") {
		t.Error("a language model without one")
	}
	turns := []knowledge.Turn{{At: noon, Asked: "who are you", Said: evil}, {At: noon, Asked: "why", Said: "Because."}}
	for _, c := range []struct {
		is         answers.Talk
		want, lack []string
	}{
		{answers.Talk{Model: "llama3.2"}, []string{"llama3.2", "Let the language model answer"}, []string{"checked> Let the", "Memory</h3>", "remembers nothing yet"}},
		{answers.Talk{Model: "llama3.2", Choice: answers.Choice{Asks: true, Persona: evil, Remember: true}}, []string{"checked> Let the", "remembers nothing yet"}, []string{evil, "Delete memory"}},
		{answers.Talk{Choice: answers.Choice{Remember: true}, Turns: turns}, []string{"no language model any longer", "Memory</h3>", "Delete memory", "who are you", "Because."}, []string{evil}},
	} {
		h.talk = c.is
		got := page()
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%+v: no %q", c.is, want)
			}
		}
		for _, lack := range c.lack {
			if strings.Contains(got, lack) {
				t.Errorf("%+v: %q", c.is, lack)
			}
		}
	}
}

// TestRefusedInGerman: what a form is refused for is said in the person's language.
func TestRefusedInGerman(t *testing.T) {
	mux, h := open(t)
	for _, x := range [][2]string{{"/my/robots/pleo:7/release", ""}, {"/my/account/delete", form("password", "my secret", "sure", "yes")}, {"/my/robots/vic:00e20100/settings", form("card", "eyes")}} {
		w := do(t, mux, "ann", "POST", x[0], x[1], "Accept-Language", "de")
		if missing := untranslated.FindAllString(w.Body.String(), -1); len(missing) > 0 || !strings.Contains(w.Body.String(), `role="alert"`) {
			t.Errorf("%s: %d %q", x[0], w.Code, missing)
		}
	}
	for _, species := range thing.AllSpecies() {
		schema, _ := jdocs.SchemaOf(jdocs.SettingsOf(species))
		for _, f := range schema.Fields {
			if f.Control == "" {
				continue
			}
			said := page.Sentence(cmp.Or(f.Form.Ask, "choose: "+f.Label))
			if _, ok := language.German.Text(said); !ok {
				t.Errorf("%s of %s: %q is not in German", f.Name, schema.Name, said)
			}
		}
	}
	if len(h.did) > 0 {
		t.Errorf("did %q", h.did)
	}
}
