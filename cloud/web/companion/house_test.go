package companion

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/token"
	"kennel/cloud/telemetry/uploads"
	"kennel/cloud/voice/answers"
	"kennel/cloud/voice/intents"
	"kennel/cloud/voice/voice"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/ota"
	"kennel/speech/intent"
	"kennel/speech/weather"
)

var noon = time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)

const (
	evil = `<script>alert("x")</script>' onload=alert(1) //`
	rex  = thing.ID("vic:00e20100")
	tide = thing.ID("vic:00e20101") // offered to ann
	bobs = thing.ID("vic:00e20102")
)

// house is every service behind the pages; ann owns rex, bob bobs. It writes down what it is asked to change.
type house struct {
	did      []string
	err      error // of every change
	auditErr error
	things   map[thing.ID]registry.Thing
	nothing  bool // ann owns nothing
	first    bool
	loop     bool           // an offer of rex is under way
	also     []owner.Tenure // ann's
	settings string         // of robots whose settings have a document
	account  string         // its settings; "": none
	stats    string
	lacks    []string // fields of the settings that version 1 lacks
	docErr   error
	update   ota.Update // of every robot
	told     []command.Command
	weather  answers.Weather // zero: of Bern
	talk     answers.Talk
	programs []token.App
}

func (h *house) do(what string, args ...any) error {
	if h.err == nil {
		h.did = append(h.did, strings.TrimSpace(what+" "+fmt.Sprintln(args...)))
	}
	return h.err
}

func (h *house) audit(_ context.Context, action, object, detail string) error {
	h.did = append(h.did, strings.TrimSpace("audit "+action+" "+object+" "+detail))
	return h.auditErr
}

func (h *house) Robots(_ context.Context, account string) ([]owner.Tenure, error) {
	switch {
	case account == "ann" && !h.nothing:
		return append([]owner.Tenure{{Thing: rex, Account: account, How: owner.HowCode, Since: noon, Name: evil}, {Thing: "pleo:7", Account: account, How: evil, Since: noon}}, h.also...), nil
	case account == "bob":
		return []owner.Tenure{{Thing: bobs, Account: account, Since: noon}}, nil
	}
	return nil, nil
}

func (h *house) Claim(_ context.Context, account, addr string, id thing.ID, typed string) (owner.Tenure, error) {
	return owner.Tenure{Thing: tide}, h.do("claim", account, addr, id, typed)
}
func (h *house) Rename(_ context.Context, account string, id thing.ID, name string) (owner.Tenure, error) {
	return owner.Tenure{Thing: id, Name: name}, h.do("rename", account, id, name)
}
func (h *house) Release(_ context.Context, account string, id thing.ID) error {
	return h.do("release", account, id)
}
func (h *house) Offer(_ context.Context, account, email string, id thing.ID, to string, by owner.Proof) (owner.Offer, error) {
	return owner.Offer{}, h.do("offer", account, email, id, to, by.Password.Reveal(), by.Addr)
}
func (h *house) Offers(_ context.Context, account, _ string) ([]owner.Offer, error) {
	if account != "ann" {
		return nil, nil
	}
	out := []owner.Offer{{ID: "o-1", Thing: tide, Expires: noon}}
	if h.loop {
		out = append(out, owner.Offer{ID: "o-2", Thing: rex, Expires: noon, Mine: true})
	}
	return out, nil
}
func (h *house) Accept(_ context.Context, account, email, id string) (owner.Tenure, error) {
	return owner.Tenure{Thing: tide}, h.do("accept", account, email, id)
}
func (h *house) Drop(_ context.Context, account, email, id string) error {
	return h.do("drop", account, email, id)
}

func (h *house) Tokens(context.Context, thing.ID) ([]token.TokenInfo, error) {
	in, out := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	return []token.TokenInfo{{Token: token.Token{Issued: out, Expires: in}, User: "ann"}, {Token: token.Token{Issued: in, Expires: in}, User: "before"},
		{Token: token.Token{Issued: in, Expires: in}, User: "ann", Revoked: noon}}, nil
}
func (h *house) RevokeThing(_ context.Context, id thing.ID, why string) (int, error) {
	return 1, h.do("revoke tokens", id, why)
}
func (h *house) Apps(context.Context, thing.ID) ([]token.App, error) {
	return append([]token.App{{ID: "a-1", Name: evil, AppID: evil, Issued: noon}, {ID: "a-2", Issued: noon}}, h.programs...), nil
}
func (h *house) AddProgram(_ context.Context, id thing.ID, account string, p token.NewProgram) (token.ProgramFile, error) {
	return token.ProgramFile{Thing: id, Address: "192.168.1.7:8443", Token: "a-token-shown-once=="}, h.do("add program", id, account, p)
}
func (h *house) RevokeApp(_ context.Context, id thing.ID, app string) error {
	return h.do("remove app", id, app)
}
func (h *house) RevokeApps(_ context.Context, id thing.ID) error { return h.do("remove apps", id) }

func (h *house) Thing(_ context.Context, id thing.ID) (registry.Thing, error) {
	if t, ok := h.things[id]; ok {
		return t, nil
	}
	return registry.Thing{}, errs.New(errs.NotFound, "no such thing")
}

func (h *house) Watch(ctx context.Context) <-chan registry.Thing {
	out := make(chan registry.Thing)
	context.AfterFunc(ctx, func() { close(out) })
	return out
}

func (h *house) Get(_ context.Context, id thing.ID, name jdocs.Name) (jdocs.Revision, error) {
	text := map[jdocs.Name]string{jdocs.SettingsOf(id.Species()): h.settings, jdocs.RobotLifetimeStats: h.stats, jdocs.AccountSettings: h.account}[name]
	if h.docErr != nil || text == "" {
		return jdocs.Revision{}, cmp.Or(h.docErr, jdocs.ErrNotFound)
	}
	return jdocs.Revision{Doc: jdocs.Doc{Version: 2, JSON: text}, By: "owner", At: noon}, nil
}
func (h *house) Set(_ context.Context, id thing.ID, name jdocs.Name, fields map[string]json.RawMessage) (jdocs.Revision, error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return jdocs.Revision{}, err
	}
	return jdocs.Revision{}, h.do("set", id, name, string(text))
}
func (h *house) Differing(_ context.Context, _ thing.ID, _ jdocs.Name, version uint64) ([]string, error) {
	if version == 2 {
		return nil, h.docErr
	}
	return h.lacks, h.docErr
}

func (h *house) Find(ctx context.Context, id thing.ID, s intents.Saying) (intent.Match, error) {
	switch s.Text {
	case "":
		return intent.Match{UserIntent: s.Intent}, nil
	case "mumble":
		nothing := func(context.Context, thing.ID, string) (m intent.Match, err error) { return m, nil }
		return intents.New(nothing, nil).Find(ctx, id, s)
	}
	return intent.Match{UserIntent: "from_words"}, nil
}

func (h *house) Say(_ context.Context, id thing.ID, by string, m intent.Match) (intents.Said, error) {
	return intents.Said{}, h.do("say", id, by, m.UserIntent)
}

func (h *house) Recent(context.Context, thing.ID, time.Time, int) ([]command.Command, error) {
	return h.told, nil
}

// persons is the house's accounts.
type persons struct{ *house }

func (p persons) SignIn(w http.ResponseWriter, _ *http.Request, email, password string) error {
	switch {
	case email == "broken@example.org":
		return errors.New("secret detail")
	case password != "open sesame":
		return errs.New(errs.Unauthenticated, "e-mail and password are not accepted together")
	}
	http.SetCookie(w, &http.Cookie{Name: "s", Value: "1"})
	return nil
}
func (p persons) SignOut(w http.ResponseWriter, _ *http.Request) error {
	http.SetCookie(w, &http.Cookie{Name: "s", MaxAge: -1})
	return p.do("sign out")
}
func (p persons) Passkeys(context.Context) ([]Passkey, error) {
	return []Passkey{{ID: "QUI", Name: evil, Created: noon, LastUsed: noon}, {ID: "Qw", Name: "my phone", Created: noon}}, nil
}
func (p persons) RemovePasskey(_ context.Context, id string) error { return p.do("remove passkey", id) }
func (p persons) FirstPassword(context.Context) (bool, error)      { return p.first, nil }
func (p persons) Sessions(*http.Request) ([]Session, error) {
	return []Session{{ID: "s-1", Current: true, Created: noon, LastSeen: noon, Addr: evil}, {ID: "s-2", Created: noon, LastSeen: noon}, {ID: "s-3", App: true, Created: noon, Robot: evil}}, nil
}
func (p persons) EndSession(_ *http.Request, id string) error { return p.do("end session", id) }
func (p persons) EndOthers(*http.Request) error               { return p.do("end others") }
func (p persons) Delete(_ *http.Request, password string) error {
	if password != "open sesame" {
		return errs.Coded(errs.Unauthenticated, "wrong_password", "the password is wrong")
	}
	return p.do("delete")
}

// papers are what robots uploaded for ann.
type papers struct{}

func (papers) Keep() time.Duration { return 72 * time.Hour }

func (papers) List(_ context.Context, q uploads.Query) ([]uploads.Log, error) {
	if q.Account != "ann" || q.Thing != rex {
		return nil, nil
	}
	return []uploads.Log{{ID: "7", Thing: q.Thing, Name: evil, Size: 2048, At: noon}}, nil
}

// ears are recordings of what ann's robot heard.
type ears struct{ *house }

func (e ears) Wish(_ context.Context, id thing.ID) (voice.AudioWish, error) {
	return voice.AudioWish{Keep: true, KeepDays: 7, Recordings: []voice.Recording{{Name: "20260506T120000.000Z-s1.wav", At: noon, Size: 4096}}}, nil
}

func (e ears) Set(_ context.Context, id thing.ID, account string, keep bool) error {
	return e.do("keep audio", id, account, keep)
}

// sky says where ann's robots have their weather from.
type sky struct{ *house }

func (s sky) Weather(context.Context, thing.ID) (answers.Weather, error) {
	return cmp.Or(s.weather, answers.Weather{Source: "open-meteo.com", Wishes: weather.Wishes{Place: "Bern"}}), nil
}

func (s sky) Talk(_ context.Context, _ thing.ID, account string) (answers.Talk, error) {
	return s.talk, nil
}

func (s sky) Choose(_ context.Context, id thing.ID, account string, c answers.Choice) error {
	return s.do("choose talk", id, account, c)
}

func (s sky) Forget(_ context.Context, id thing.ID, account string) error {
	return s.do("forget talk", id, account)
}

func (h *house) Update(context.Context, thing.ID) (ota.Update, error) { return h.update, nil }

func (h *house) Choose(_ context.Context, id thing.ID, w ota.When) (ota.Update, error) {
	return h.update, h.do("choose", id, w)
}
