package voice

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kennel/cmd/e2e/housetest"
)

// TestWeather (VEC-NLP-11, issue 31.4): a house that knows its place tells its weather to people who ask a robot that was not set up; once the source breaks, the robot
// says so, and never that it did not understand.
func TestWeather(t *testing.T) {
	sky := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := `{"current":{"temperature_2m":21.4,"weather_code":63,"wind_speed_10m":9,"is_day":1}}`
		if strings.HasPrefix(r.URL.Path, "/v1/search") {
			name := r.URL.Query().Get("name")
			answer = `{"results":[{"name":"` + strings.ToUpper(name[:1]) + name[1:] + `","latitude":46.9,"longitude":7.4,"timezone":"Europe/Zurich"}]}`
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer sky.Close()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"To roll. And to\"}}]}\n\n")) // here it ends
	}))
	defer model.Close()
	h := housetest.New(t, "-robots", "1", "-place", "Bern", "-weather", "open-meteo="+sky.URL, "-model", "llama3.2="+model.URL+"/v1")
	h.Start()
	thing := h.AwaitPresent(1)[0]
	if out, err := h.Ctl("robot", "say", thing, "what is the meaning of life"); err != nil || !strings.Contains(string(out), "To roll.") || strings.Contains(string(out), "And to") {
		t.Errorf("the meaning of life, of half an answer: %s, %v", out, err)
	}
	ann := h.Owner(t, "ann@example.org", "Ann")
	ann.Do("POST", "/v1/my/robots/claim", map[string]string{"code": housetest.ShownCode(t, h.RobotRoot(thing))}, nil)
	ann.Agrees(thing, true)
	ask := func(text, intent, state, detail string) {
		t.Helper()
		s := tells(ann, thing, map[string]any{"text": text})
		if s.Intent != intent || s.Command.State != state || s.Command.Result == nil || s.Command.Result.Detail != detail {
			t.Errorf("%s: %+v, %+v; want %s, %s, %q", text, s, s.Command.Result, intent, state, detail)
		}
	}
	if code, b := ann.Try("POST", "/v1/my/robots/"+thing+"/intents", map[string]any{"text": "what is the meaning of life"}); code != 400 || !strings.Contains(string(b), "not_understood") {
		t.Errorf("the meaning of life, for an owner who allowed no language model: %d %s", code, b)
	}
	ask("what is the weather", "weather_response", "done", "Rain, 71 °F in Bern")
	ask("what is the weather in Oslo", "weather_response", "done", "Rain, 71 °F in Oslo")
	sky.Close()
	ask("what is the weather", "knowledge_response", "done", "I cannot reach the weather now.")
}
