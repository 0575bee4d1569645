package voiceapi

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/access"
	"kennel/cloud/voice/customintent"
	"kennel/cloud/voice/customintent/customintentpg"
	"kennel/cloud/voice/voice"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/speech"
	"kennel/speech/intent"
	"kennel/speech/recognizer"
	"kennel/speech/recognizer/fixed"
	"kennel/speech/session"
	"kennel/speech/session/sessionpg"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const rex = thing.ID("vic:00e20100")

var since = time.Now().Add(-time.Hour).Truncate(time.Microsecond)

// desk is the slice behind the guard of the public API: ada owns rex since an hour, bob owns nothing.
type desk struct {
	http.Handler
	voice  *voice.Service
	audits []string
	speech func() (speech.Config, error)
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	pool := pgtest.New(t)
	store := sessionpg.NewStore(pool)
	k := sessionpg.NewKeeper(pool, func(context.Context, thing.ID) func(time.Time) bool { return func(time.Time) bool { return true } }, slog.New(slog.DiscardHandler))
	ctx, end := context.WithCancel(t.Context())
	for _, s := range []session.Session{
		{ID: "old", Thing: rex, At: since.Add(-time.Minute), Firmware: "2.0.1", Language: "en-US", Cloud: "intent_play_blackjack"},
		{ID: "new", Thing: rex, At: since.Add(time.Minute), Firmware: "2.0.1", Language: "en-US", Failed: session.Match, Why: "of <b>a</b> test", Text: "sing to me"},
		{ID: "new2", Thing: rex, At: since.Add(2 * time.Minute), Firmware: "2.0.1", Language: "de-DE", Failed: session.Match, Why: "of a test", Text: "sing to me"},
		{ID: "new3", Thing: rex, At: since.Add(3 * time.Minute), Firmware: "2.0.1", Language: "en-US", Failed: session.Match, Why: "of a test", Text: "sing to me"},
		{ID: "new4", Thing: rex, At: since.Add(4 * time.Minute), Firmware: "2.0.1", Language: "en-US", Failed: session.Match, Why: "of a test", Text: "sing to me"},
	} {
		k.Keep(ctx, s)
	}
	end()
	if err := k.Run(ctx); err != nil {
		t.Fatal(err)
	}
	d := &desk{voice: &voice.Service{Store: store, Now: time.Now}}
	d.speech = func() (speech.Config, error) { return speech.Config{}, errs.New(errs.Unavailable, "no recogniser") }
	owns := func(_ context.Context, account string, id thing.ID) (time.Time, bool, error) {
		return since, account == "ada" && id == rex, nil
	}
	mux := http.NewServeMux()
	Operations(Config{Voice: d.voice, Audio: voice.NewAudio(store, nil, func(context.Context, thing.ID) (string, error) { return "ada", nil }, time.Now, slog.New(slog.DiscardHandler)),
		Customs: customintent.New(customintentpg.New(pool), slog.New(slog.DiscardHandler)), Speech: func() (speech.Config, error) { return d.speech() }, Log: slog.New(slog.DiscardHandler),
		Known: func(_ context.Context, id thing.ID) error {
			if id != rex {
				return auth.UnknownThing(id)
			}
			return nil
		},
		Audit: func(_ context.Context, action, object, detail string) error {
			d.audits = append(d.audits, action+" "+object+" "+detail)
			return nil
		}}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler), Owns: owns})
	d.Handler = access.HTTP.Guard(mux, slog.New(slog.DiscardHandler))
	return d
}

// ask asks as a caller: ada and bob are owners, others are roles.
func (d *desk) ask(t *testing.T, who, method, target string, body io.Reader) (int, string) {
	t.Helper()
	c := auth.Caller{Role: auth.Role(who), Account: who, Name: who}
	if who == "ada" || who == "bob" {
		c.Role = auth.Owner
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, httptest.NewRequestWithContext(auth.WithCaller(t.Context(), c), method, target, body))
	return w.Code, w.Body.String()
}

// TestWhoMaySee: sums, sessions of the fleet and phrases are for operators; an owner sees what became of requests since the robot is theirs; recordings
// are for the owner alone.
func TestWhoMaySee(t *testing.T) {
	d := newDesk(t)
	for target, want := range map[string]map[string]int{
		"/v1/voice/stats":                     {"viewer": 200, "ada": 403, "": 401},
		"/v1/voice/sessions?failed=true":      {"viewer": 200, "ada": 403, "": 401},
		"/v1/voice/unmatched":                 {"viewer": 200, "ada": 403, "": 401},
		"/v1/things/vic:00e20100/voice":       {"viewer": 200, "ada": 200, "bob": 404, "": 401},
		"/v1/things/vic:00e20199/voice":       {"viewer": 404, "ada": 404},
		"/v1/my/robots/vic:00e20100/audio":    {"viewer": 403, "admin": 403, "ada": 200, "bob": 404, "": 401},
		"/v1/my/robots/vic:00e20100/audio/x":  {"viewer": 403, "admin": 403, "ada": 404, "bob": 404, "": 401},
		"/v1/voice/sessions?step=dreaming":    {"viewer": 400},
		"/v1/voice/sessions?day=7":            {"viewer": 400},
		"/v1/voice/stats?days=0":              {"viewer": 400},
		"/v1/voice/stats?days=91":             {"viewer": 400},
		"/v1/voice/unmatched?limit=501":       {"viewer": 400},
		"/v1/voice/sessions?failed=sometimes": {"viewer": 400},
	} {
		for who, code := range want {
			if got, body := d.ask(t, who, "GET", target, nil); got != code {
				t.Errorf("%s as %q: %d %s, want %d", target, who, got, body, code)
			}
		}
	}
	list := func(who string) (out []voice.Session) {
		_, body := d.ask(t, who, "GET", "/v1/things/vic:00e20100/voice", nil)
		if err := json.Unmarshal([]byte(body), &out); err != nil || strings.Contains(body, "sing") {
			t.Errorf("%s, %v: want sessions without words", body, err)
		}
		return out
	}
	if got := list("ada"); len(got) != 4 || got[3].Session != "new" {
		t.Errorf("the owner sees %+v, want those since the robot is theirs", got)
	}
	if got := list("viewer"); len(got) != 5 {
		t.Errorf("an operator sees %d, want 5", len(got))
	}
	if _, body := d.ask(t, "viewer", "GET", "/v1/voice/unmatched", nil); !strings.Contains(body, `"words":"sing to me"`) || strings.Contains(body, "vic:") {
		t.Errorf("unmatched: %s", body)
	}
}

// TestOptIn: an owner's wish is audited and kept.
func TestOptIn(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		who, body, want string
		code            int
	}{{"bob", `{"keep":true}`, "", 404}, {"admin", `{"keep":true}`, "", 403}, {"ada", `{"keep":1}`, "", 400}, {"ada", `{"kept":true}`, "", 400}} {
		if code, body := d.ask(t, c.who, "PUT", "/v1/my/robots/vic:00e20100/audio", strings.NewReader(c.body)); code != c.code || len(d.audits) > 0 {
			t.Errorf("%+v: %d %s, audits %q", c, code, body, d.audits)
		}
	}
}

// TestTry: operators who may change things send recordings through the service; nothing of them is kept.
func TestTry(t *testing.T) {
	d := newDesk(t)
	samples := make([]int16, 3*recognizer.Rate)
	for i := recognizer.Rate; i < 2*recognizer.Rate; i++ { // what follows silence is taken for speech
		samples[i] = int16(8000*math.Sin(float64(i)*2*math.Pi*300/recognizer.Rate) + 3000*math.Sin(float64(i*i%977)))
	}
	send := func(who, target string, file []byte) (int, string) {
		return d.ask(t, who, "POST", "/v1/speech/try"+target, strings.NewReader(string(file)))
	}
	file := voice.Wave(samples)
	if code, body := send("admin", "", file); code != 503 || !strings.Contains(body, "recogniser") {
		t.Errorf("without a recogniser: %d %s", code, body)
	}
	d.speech = func() (speech.Config, error) {
		return speech.Config{Recognizer: &fixed.Recognizer{Text: "hello"}, Match: func(context.Context, intent.Listener, string) intent.Match {
			return intent.Match{UserIntent: "greeting_hello", Cloud: "intent_greeting_hello", Confidence: 1}
		}}, nil
	}
	before, err := d.voice.Stats(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	code, body := send("admin", "?language=en-US&kind=intent", file)
	var got voice.Trial
	if err := json.Unmarshal([]byte(body), &got); err != nil || code != 200 || got.Intent != "intent_greeting_hello" || len(got.Steps) != 4 || !got.Steps[3].OK {
		t.Errorf("%d %s, %v", code, body, err)
	}
	if after, err := d.voice.Stats(t.Context(), 7); err != nil || after.Whole.Sessions != before.Whole.Sessions {
		t.Errorf("%d sessions after %d, %v: want no further one", after.Whole.Sessions, before.Whole.Sessions, err)
	}
	for target, c := range map[string]struct {
		who  string
		file []byte
		code int
	}{"?kind=song": {"admin", file, 400}, "": {"admin", []byte("hello"), 400}, "?kind=graph": {"viewer", file, 403}, "?kind=intent": {"ada", file, 403}, "?language=x": {"admin", make([]byte, voice.MaxTry+1), 400}} {
		if code, body := send(c.who, target, c.file); code != c.code {
			t.Errorf("%s as %s: %d %s, want %d", target, c.who, code, body, c.code)
		}
	}
}

// TestPage: what the page says, and that words of robots stay text.
func TestPage(t *testing.T) {
	d := newDesk(t)
	all := Pages(d.voice, func() []recognizer.Health {
		return []recognizer.Health{{Name: "sphinx", Up: true}, {Name: "whisper", Problem: "connection refused"}}
	})
	body, err := all[0].Ask(t.Context(), url.Values{"days": {"7"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"20.0 %", "2.0.1", "sing to me", "of &lt;b&gt;a&lt;/b&gt; test", "Connection refused.", "paused", `href="/things/vic:00e20100/voice"`, `aria-current="true">7 days`} {
		if !strings.Contains(strings.ToLower(string(body)), strings.ToLower(want)) {
			t.Errorf("the page has no %q:\n%s", want, body)
		}
	}
	if body, err = all[0].Ask(t.Context(), url.Values{"step": {"audio"}}); err != nil || !strings.Contains(string(body), "<p class=\"none\">None.</p>") {
		t.Errorf("%v\n%s", err, body)
	}
	if _, err = all[0].Ask(t.Context(), url.Values{"step": {"dreaming"}}); errs.KindOf(err) != errs.Invalid {
		t.Errorf("%v, want invalid", err)
	}
	r := httptest.NewRequest("GET", "/things/vic:00e20100/voice", nil)
	r.SetPathValue("thing", string(rex))
	if _, body, err := all[1].Tab(t.Context(), r); err != nil || !strings.Contains(string(body), "intent_play_blackjack") || strings.Contains(string(body), "sing") {
		t.Errorf("%v\n%s", err, body)
	}
	empty := Pages(&voice.Service{Store: sessionpg.NewStore(pgtest.New(t)), Now: time.Now}, func() []recognizer.Health { return nil })
	if body, err := empty[0].Show(t.Context()); err != nil || !strings.Contains(string(body), "No requests in this period") || !strings.Contains(string(body), "speech is not understood") {
		t.Errorf("%v\n%s", err, body)
	}
}

// lexicon hears few words.
type lexicon struct{ fixed.Recognizer }

func (*lexicon) Lacks(words []string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return strings.Contains("feed the cat please sing to me", w) })
}

// TestCustomIntents: operators add and remove intents of their own, and none takes a built-in one's sentences unasked.
func TestCustomIntents(t *testing.T) {
	d := newDesk(t)
	d.speech = func() (speech.Config, error) { return speech.Config{Recognizer: &lexicon{}}, nil }
	for _, step := range []struct {
		who, method, target, body string
		code                      int
		want                      string
	}{
		{"support", "POST", "/v1/intents/custom", `{"name":"feed_cat","phrases":["feed the cat"]}`, 200, `"name":"feed_cat"`},
		{"support", "POST", "/v1/intents/custom", `{"name":"brr","phrases":["[please] (hug|xyzzy) the cat"],"thing":"vic:00e20100"}`, 200, `"unheard":["hug","xyzzy"]`},
		{"support", "POST", "/v1/intents/custom", `{"name":"mine","phrases":["sing to me"],"thing":"vic:00e20100"}`, 200, `"thing":"vic:00e20100"`},
		{"support", "POST", "/v1/intents/custom", `{"name":"mine","phrases":["sing to me"],"thing":"vic:00e20101"}`, 404, "vic:00e20101"},
		{"support", "POST", "/v1/intents/custom", `{"name":"left","phrases":["turn left"]}`, 409, "already means movement_turnleft"},
		{"support", "POST", "/v1/intents/custom", `{"name":"left","phrases":["(turn"]}`, 400, "without"},
		{"support", "POST", "/v1/intents/custom", `{"name":"kennel_mine","phrases":["sing to me"]}`, 400, "names with kennel_"},
		{"viewer", "POST", "/v1/intents/custom", `{"name":"x","phrases":["feed the dog"]}`, 403, ""},
		{"ada", "GET", "/v1/intents/custom", "", 403, ""},
		{"viewer", "GET", "/v1/intents/custom?thing=vic:00e20101", "", 200, `"feed_cat"`},
		{"support", "DELETE", "/v1/intents/custom/x", "", 404, "no custom intent"},
		{"support", "DELETE", "/v1/intents/custom/1", "", 204, ""},
		{"viewer", "GET", "/v1/intents/custom?thing=vic:00e20101", "", 200, `[]`},
	} {
		var body io.Reader
		if step.body != "" {
			body = strings.NewReader(step.body)
		}
		code, got := d.ask(t, step.who, step.method, step.target, body)
		if code != step.code || !strings.Contains(got, step.want) {
			t.Errorf("%s %s %s %s: %d %s; want %d %s", step.who, step.method, step.target, step.body, code, got, step.code, step.want)
		}
	}
	if got := strings.Join(d.audits, "|"); got != "intent.add feed_cat feed_cat: feed the cat|intent.add brr brr: [please] (hug|xyzzy) the cat; for vic:00e20100|intent.add mine mine: sing to me; for vic:00e20100|intent.remove 1 " {
		t.Errorf("audit log: %s", got)
	}
}
