package ctl

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"flag"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/cloud/fleet/liveview"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/telemetry/das"
	"kennel/cloud/telemetry/storage"
	"kennel/cloud/voice/customintent"
	"kennel/infra/api/live"
	"kennel/infra/api/status"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/telemetry"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/speech/intent"
)

var update = flag.Bool("update", false, "rewrite testdata")

func TestMain(m *testing.M) {
	time.Local = time.UTC // before any test reads it
	now = func() time.Time { return at(13) }
	os.Exit(m.Run())
}

func TestHelpIsGood(t *testing.T) {
	for _, line := range cli.Lint(Command()) {
		t.Error(line)
	}
}

const token = "tok-123"

// cloud is a public API with fixed answers; its times are 2026-05-06 in UTC.
type cloud struct {
	*httptest.Server
	ca   string // file with its certificate
	mu   sync.Mutex
	got  []string // METHOD path body
	tail chan string
	show func() (any, error) // how a robot shows itself; nil: the same always
	down bool                // the cloud is not ready
	away bool                // the robot is offline, and does not answer
}

func at(hour int) time.Time { return time.Date(2026, 5, 6, hour, 0, 0, 0, time.UTC) }

func robot() registry.Thing {
	return registry.Thing{ID: "vic:00e20100", Species: "vic", Serial: "00e20100", Created: at(1), Presence: registry.Present, Since: at(9), LastSeen: at(12), ClockMS: 41, Rev: 7,
		Problems: []status.Problem{{Kind: status.KindOther, Text: "lookup time.example: no such host \x1b[2J"}},
		Status: &status.Message{V: 1, State: status.Online, BootID: "b-1", ConnectSeq: 4, Seq: 9, UptimeMS: 5_400_000, Agent: "1.2.3", OS: "2.0.1.6076",
			Body:     &status.Body{Model: "vector", Firmware: "60", BatteryVolts: 3.98, BatteryLevel: "nominal", Charging: true, TemperatureC: 38.5, FramesGood: 100, FramesBad: 1},
			Loop:     &status.Loop{Steps: 1_000_000, Missed: 3, Late: 1, Long: 2, LateP50: 12, LateP99: 140.4, LateP999: 800, LateMax: 12_345, StepP50: 40, StepP99: 90, StepMax: 700, FIFO: true},
			Spool:    &status.Spool{Events: 2, Bytes: 900},
			Docs:     map[string]uint64{"vic.RobotSettings": 3, "vic.RobotLifetimeStats": 12},
			Dirty:    []string{"vic.RobotLifetimeStats"},
			Problems: []string{"lookup time.example: no such host \x1b[2J"}}}
}

func newCloud(t *testing.T) *cloud {
	c := &cloud{tail: make(chan string, 8)}
	mux := http.NewServeMux()
	handle := func(pattern string, h func(r *http.Request, body string) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			c.mu.Lock()
			c.got = append(c.got, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(b)))
			c.mu.Unlock()
			if r.URL.Path != "/v1/login" && r.Header.Get("Authorization") != "Bearer "+token {
				kithttp.WriteError(w, errs.New(errs.Unauthenticated, "sign in first"))
				return
			}
			v, err := h(r, string(b))
			switch {
			case err != nil:
				kithttp.WriteError(w, err)
			case v != nil:
				if r.URL.Path == "/v1/things" && r.Method == "GET" && !r.URL.Query().Has("after") {
					w.Header().Set("Link", `</v1/things?after=vic:00e20100>; rel="next"`)
				}
				kithttp.WriteJSON(w, http.StatusOK, v)
			default:
				w.WriteHeader(http.StatusNoContent)
			}
		})
	}
	handle("POST /v1/login", func(_ *http.Request, body string) (any, error) {
		if !strings.Contains(body, `"password":"open sesame"`) {
			return nil, errs.New(errs.Unauthenticated, "e-mail and password are not accepted together")
		}
		return map[string]any{"token": token, "account": map[string]any{"email": "op@example.org", "role": "admin", "must_change": true}, "expires": at(20)}, nil
	})
	handle("POST /v1/me/password", func(*http.Request, string) (any, error) { return nil, nil })
	handle("POST /v1/logout", func(*http.Request, string) (any, error) { return nil, nil })
	handle("GET /v1/things", func(r *http.Request, _ string) (any, error) {
		if r.URL.Query().Has("after") {
			return []registry.Thing{{ID: "vic:00e20199", Species: "vic", Serial: "00e20199", Created: at(2), Presence: registry.Absent}}, nil
		}
		return []registry.Thing{robot()}, nil
	})
	handle("POST /v1/things", func(*http.Request, string) (any, error) {
		return map[string]string{"thing": "vic:00e20100", "secret": "K7SECRET"}, nil
	})
	handle("GET /v1/things/{thing}", func(r *http.Request, _ string) (any, error) {
		if r.PathValue("thing") != "vic:00e20100" {
			return nil, errs.Coded(errs.NotFound, "no_thing", "thing %s is not known to this fleet", r.PathValue("thing"))
		}
		th := robot()
		if c.away {
			th.Presence = registry.Absent
		}
		return th, nil
	})
	handle("GET /v1/things/{thing}/doctor", func(*http.Request, string) (any, error) {
		return registry.Report{Thing: "vic:00e20100", At: at(12), Level: registry.Fail, Verdict: "enrolment: refused. Register it",
			Checks: []registry.Check{
				{Name: "registered", Level: registry.OK, Text: "known to the fleet", Since: at(1)},
				{Name: "enrolment", Level: registry.Fail, Text: "enrolment refused: wrong", Do: "Register it", Since: at(2), Peer: "192.0.2.7:4000", Version: "1.2.3"},
				{Name: "clock", Level: registry.Unknown, Text: "no status yet"}},
			Steps: []registry.Outcome{{Name: "enroll", Code: "secret_mismatch", First: at(2), Last: at(3), Times: 12, Peer: "192.0.2.7:4000", Detail: "wrong",
				Shown: &registry.ShownCertificate{CN: "vic:00e20100", Issuer: "Factory", Serial: "ab12", NotAfter: at(5)}}},
			Refusal: &registry.Refusal{Outcome: registry.Outcome{Name: "enroll", Code: "secret_mismatch", First: at(2), Last: at(3), Times: 12, Peer: "192.0.2.7:4000",
				Detail: "wrong \x1b[2J", Shown: &registry.ShownCertificate{CN: "vic:00e20100", Issuer: "Factory", Serial: "ab12", NotAfter: at(5)}, Do: "Put the secret that registration printed into the robot"}}}, nil
	})
	mux.HandleFunc("GET /v1/health", func(w http.ResponseWriter, _ *http.Request) {
		r := telemetry.Report{Parts: []telemetry.Part{{Name: "broker", OK: true, Says: "nats at ssl://b:8883: 3 of 3 servers"},
			{Name: "postgres", OK: !c.down, Says: "primary 192.0.2.1:5432; no standby", Reason: "no standby follows the primary", Do: "Start the standby.", Since: at(11)}}}
		code := http.StatusOK
		if c.down {
			code = http.StatusServiceUnavailable
		}
		kithttp.WriteJSON(w, code, map[string]any{"parts": r.Parts})
	})
	doc := func(v int, text string) map[string]any {
		return map[string]any{"doc_name": "vic.RobotSettings", "doc_version": v, "fmt_version": 2, "by": "op@example.org", "at": at(v), "jdoc": json.RawMessage(text)}
	}
	handle("GET /v1/things/{thing}/jdocs", func(*http.Request, string) (any, error) {
		d := doc(3, "{}")
		delete(d, "jdoc")
		other := maps.Clone(d)
		other["doc_name"] = "amigo.Parameters"
		return []any{d, other}, nil
	})
	handle("GET /v1/things/{thing}/jdocs/{doc}", func(*http.Request, string) (any, error) { return doc(3, `{"master_volume":3,"locale":"en-US"}`), nil })
	handle("PATCH /v1/things/{thing}/jdocs/{doc}", func(_ *http.Request, body string) (any, error) {
		if strings.Contains(body, "volume_master") {
			return nil, errs.New(errs.Invalid, "set vic.RobotSettings: no field volume_master")
		}
		return doc(4, `{"master_volume":4}`), nil
	})
	handle("GET /v1/things/{thing}/jdocs/{doc}/diff", func(*http.Request, string) (any, error) {
		return []map[string]any{{"field": "eye_color", "after": 3}, {"field": "master_volume", "before": 2, "after": 4}}, nil
	})
	handle("POST /v1/things/{thing}/jdocs/{doc}/restore", func(*http.Request, string) (any, error) { return doc(5, `{"master_volume":2}`), nil })
	handle("GET /v1/jdocs/schemas", func(*http.Request, string) (any, error) { return jdocs.Schemas[:1], nil })
	handle("GET /v1/things/{thing}/jdocs/{doc}/history", func(*http.Request, string) (any, error) {
		return []any{doc(3, `{"master_volume":3}`), doc(2, `{"master_volume":2}`)}, nil
	})
	command := func(state string, more map[string]any) map[string]any {
		c := map[string]any{"id": "0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11", "thing": "vic:00e20100", "kind": "ping", "args": json.RawMessage("{}"), "by": "op@example.org",
			"created": at(3), "expires": at(4), "state": state, "sends": 2}
		maps.Copy(c, more)
		return c
	}
	handle("POST /v1/things/{thing}/commands", func(_ *http.Request, body string) (any, error) {
		if strings.Contains(body, "dance") {
			return nil, errs.New(errs.Invalid, "kind dance: want one of ping, sync")
		}
		return command("pending", nil), nil
	})
	done := map[string]any{"closed": at(5), "result": map[string]any{"status": "done", "detail": "agentd 1.2.3", "finished_ms": 1}}
	looks := 0
	handle("GET /v1/things/{thing}/live", func(r *http.Request, _ string) (any, error) {
		if c.show != nil {
			return c.show()
		}
		if looks++; looks == 1 { // the first makes the robot show itself
			return liveview.Robot{Thing: "vic:00e20100", Devices: []liveview.Device{}}, nil
		}
		received, age, low := at(12), int64(130), -0.785
		return liveview.Robot{Thing: "vic:00e20100", Received: &received, AgeMS: 120, Body: "vector", Devices: []liveview.Device{
			{Full: "robot", Compact: "robot", Kind: "device", Interface: "Identity, Mobile", Slots: []liveview.Slot{{Name: "model", Type: "string", Known: true, Value: "Vector"}}},
			{Full: "robot.body", Kind: "component"},
			{Full: "robot.body.head.pitch", Compact: "headPitch", Kind: "device", Interface: "RotationalMotor", Actuator: true,
				Slots: []liveview.Slot{{Name: "angle", Type: "float", Unit: "rad", Min: &low, Known: true, Value: 0.25, AgeMS: &age}, {Name: "torque", Type: "float", Unit: "N·m"}}},
			{Full: "robot.body.arm.z", Compact: "arm", Kind: "device", Interface: "LinearMotor", Actuator: true, Aliases: []string{"lift"},
				Slots: []liveview.Slot{{Name: "position", Type: "float", Unit: "m", Unavailable: true}}, Gone: &live.Gone{Full: "robot.body.arm.z", ForMS: 61_500, Why: "it is unplugged"}},
			{Full: "robot.body.laser", Compact: "laser", Kind: "device", Interface: "DistanceSensor", Slots: []liveview.Slot{{Name: "distance", Type: "float", Unit: "m", Known: true, Value: "inf", AgeMS: &age}}}},
			World: &live.World{Rev: "1", Pose: live.Place{0.11, 0, 1.6}, Posture: "on treads", NoFloor: []bool{false}, Things: []live.Thing{}, Map: &live.Map{Name: "room", Charger: &live.Place{-1.4, 0, 0}}},
			Motion: &live.Motion{X: 0.1, Theta: 1.5707963, Way: 12.345, Parts: []live.Part{{Name: "wheels", Outcome: "done", Known: true}}, Stop: []string{"halted"},
				Owners: []live.Owner{{Device: "wheelL", Program: "mindd", Priority: 20}, {Device: "headPitch", Program: "agentd", Priority: 50}, {Device: "wheelR", Program: "mindd", Priority: 20}}}}, nil
	})
	handle("GET /v1/things/{thing}/commands", func(*http.Request, string) (any, error) {
		return []any{command("sent", nil), command("expired", map[string]any{"closed": at(5)}), command("done", done)}, nil
	})
	handle("GET /v1/things/{thing}/commands/{id}", func(*http.Request, string) (any, error) {
		if c.away {
			return command("sent", nil), nil
		}
		return command("done", done), nil
	})
	handle("GET /v1/events", func(*http.Request, string) (any, error) {
		return []any{json.RawMessage(`{"thing":"vic:00e20100","received":"2026-05-06T12:00:00Z","seq":5,"level":"info","event":"robot.boot","s1":"b-1","i1":0,"boot_id":"b-1"}`),
			json.RawMessage(`{"thing":"vic:00e20100","received":"2026-05-06T12:00:00Z","seq":6,"level":"info","event":"battery.on_charger_changed","i1":1,"i2":3921,"boot_id":"b-1"}`)}, nil
	})
	handle("GET /v1/events/boots", func(*http.Request, string) (any, error) {
		return []das.Boot{das.NewBoot("0f9a1c1e", das.Seqs{{First: 1, Last: 4}, {First: 7, Last: 7}}, at(5), das.Claimed)}, nil
	})
	handle("GET /v1/events/counts", func(r *http.Request, _ string) (any, error) {
		if r.URL.Query().Get("by") == "week" {
			return nil, errs.New(errs.Invalid, "by \"week\": want one of hour, day")
		}
		n := &das.Numbers{Count: 3, Min: 3300, Max: 3500, Mean: 3400, P50: 3400, P90: 3480, P99: 3498}
		return das.Counts{Since: at(1), Until: at(5), By: das.ByDay, Of: "i1", Cut: true, Total: das.Count{Events: 4, Robots: 2, Misfits: 1, Numbers: n},
			Groups: []das.Count{{Key: "2026-05-06T00:00:00Z", Events: 4, Robots: 2, Misfits: 1, Numbers: n}}}, nil
	})
	handle("GET /v1/storage", func(*http.Request, string) (any, error) {
		return []storage.Usage{{Class: "das", Name: "Events as received", At: at(12), Objects: 4120, Bytes: 5_400_000, MoreObjects: -2, MoreBytes: -2048, MoreSince: at(1)}}, nil
	})
	mux.HandleFunc("GET /v1/events/export", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("format") == "xml" {
			kithttp.WriteError(w, errs.New(errs.Invalid, "format \"xml\": want one of csv, ndjson, parquet"))
			return
		}
		w.Header().Set("Trailer", "Kennel-Events, Kennel-Cut")
		_, _ = io.WriteString(w, "received,thing\n2026-05-06T12:00:00Z,vic:00e20100\n")
		w.Header().Set("Kennel-Events", "1")
		w.Header().Set("Kennel-Cut", "true")
	})
	handle("POST /v1/speech/try", func(*http.Request, string) (any, error) {
		failed := map[string]any{"step": "match", "ok": false, "says": "it means nothing"}
		return map[string]any{"failed": "match", "steps": []any{map[string]any{"step": "audio", "ok": true}, failed}}, nil
	})
	custom := customintent.Custom{ID: 3, Wanted: customintent.Wanted{Custom: intent.Custom{Name: "feed_cat", Phrases: []string{"feed the cat"}, Overrides: []string{"global_stop"}}}, By: "op"}
	handle("GET /v1/intents/custom", func(*http.Request, string) (any, error) { return []customintent.Custom{custom}, nil })
	handle("POST /v1/intents/custom", func(*http.Request, string) (any, error) { return custom, nil })
	handle("DELETE /v1/intents/custom/{id}", func(*http.Request, string) (any, error) { return nil, nil })
	handle("GET /v1/experiments", func(*http.Request, string) (any, error) {
		return []das.Experiment{{Key: "faster", Files: []string{"2.1"}, Last: at(5), Variations: []das.Variation{{Variation: "control", Robots: 30}, {Variation: "treatment", Robots: 28}}}}, nil
	})
	handle("GET /v1/experiments/{key}", func(r *http.Request, _ string) (any, error) {
		return das.Comparison{Key: r.PathValue("key"), Control: "control", Changed: 2, Arms: []das.Arm{{Variation: "control", Robots: 30, Days: 200, Events: 20, Mean: 0.1}, {Variation: "treatment", Robots: 28, Days: 190, Events: 95, Mean: 0.5}},
			Differences: []das.Difference{{Variation: "treatment", By: 0.4, Low: 0.25, High: 0.55, Clear: true}}}, nil
	})
	mux.HandleFunc("GET /v1/events/tail", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case s := <-c.tail:
				if s == "" {
					return
				}
				_, _ = io.WriteString(w, s)
			case <-r.Context().Done():
				return
			}
		}
	})
	c.Server = httptest.NewTLSServer(mux)
	t.Cleanup(c.Close)
	c.ca = filepath.Join(t.TempDir(), "root.pem")
	write(t, c.ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})))
	return c
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// onebox makes a data folder that leads to the cloud.
func (c *cloud) onebox(t *testing.T) string {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "secrets", "operator.token"), token+"\n")
	ready, err := json.Marshal(map[string]any{"endpoints": map[string]string{"api": c.URL, "console": "http://localhost:1"},
		"files": map[string]string{"root_ca": c.ca, "operator_token": "secrets/operator.token"}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "run", "ready.json"), string(ready))
	return dir
}

func (c *cloud) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.got) == 0 {
		return ""
	}
	return c.got[len(c.got)-1]
}

// sent is all that was asked so far.
func (c *cloud) sent() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.got, "\n")
}

func run(ctx context.Context, env map[string]string, stdin string, args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	root := Command()
	root.SetIn(strings.NewReader(stdin))
	code = cli.Run(ctx, root, args, func(k string) string { return env[k] }, &o, &e)
	return code, o.String(), e.String()
}

// TestCommands runs each line of testdata/commands.txt and compares what it prints with the text below it.
func TestCommands(t *testing.T) {
	c := newCloud(t)
	dir := c.onebox(t)
	file := filepath.Join("testdata", "commands.txt")
	script, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for line := range strings.Lines(string(script)) {
		args, ok := strings.CutPrefix(line, "$ kennelctl ")
		if !ok {
			if strings.HasPrefix(line, "#") {
				got.WriteString(line)
			}
			continue
		}
		code, out, errOut := run(t.Context(), nil, "", append([]string{"-onebox", dir}, strings.Fields(args)...)...)
		got.WriteString(line + out + errOut)
		if code != 0 {
			got.WriteString("exit " + string(rune('0'+code)) + "\n")
		}
		got.WriteString("\n")
	}
	text := strings.NewReplacer(c.URL, "https://cloud", thing.SpeciesWords(", "), "SPECIES").Replace(got.String())
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != string(script) {
		t.Errorf("output differs from %s (rewrite with -update):\n%s", file, text)
	}
}

// TestCloudIsNotReady: the doctor of the cloud says which part does not work, and what to do about it.
func TestCloudIsNotReady(t *testing.T) {
	c := newCloud(t)
	c.down = true
	want(t, c.onebox(t), "", 5, `is not ready: postgres: no standby follows the primary. Start the standby.\n$`, "doctor", "-cloud")
}

func TestSetSendsTypedValues(t *testing.T) {
	c := newCloud(t)
	code, _, errOut := run(t.Context(), nil, "", "-onebox", c.onebox(t), "jdocs", "set", "vic:00e20100", "vic.RobotSettings", "master_volume=4", "custom_eye_color.hue=0.4", "time_zone=Europe/Berlin")
	want := `PATCH /v1/things/vic:00e20100/jdocs/vic.RobotSettings {"set":{"custom_eye_color.hue":0.4,"master_volume":4,"time_zone":"Europe/Berlin"}}`
	if code != 0 || c.last() != want {
		t.Errorf("exit %d (%s), sent %s; want %s", code, errOut, c.last(), want)
	}
	code, _, errOut = run(t.Context(), nil, "", "-onebox", c.onebox(t), "jdocs", "set", "-force", "vic:00e20100", "vic.RobotSettings", "new=1")
	want = `PATCH /v1/things/vic:00e20100/jdocs/vic.RobotSettings {"force":true,"set":{"new":1}}`
	if code != 0 || c.last() != want {
		t.Errorf("-force: exit %d (%s), sent %s; want %s", code, errOut, c.last(), want)
	}
}

func TestCommandIsSent(t *testing.T) {
	c := newCloud(t)
	code, _, errOut := run(t.Context(), nil, "", "-onebox", c.onebox(t), "commands", "send", "vic:00e20100", "intent", "intent=greeting", `params={"a":1}`, "-ttl", "90s", "-key", "k1")
	want := `POST /v1/things/vic:00e20100/commands {"args":{"intent":"greeting","params":{"a":1}},"expires_in_ms":90000,"key":"k1","kind":"intent"}`
	if code != 0 || c.last() != want {
		t.Errorf("exit %d (%s), sent %s; want %s", code, errOut, c.last(), want)
	}
}

// TestTTLOfAMotion: a command that moves a robot has the life that it may have, unless a person gives another.
func TestTTLOfAMotion(t *testing.T) {
	c := newCloud(t)
	code, _, errOut := run(t.Context(), nil, "", "-onebox", c.onebox(t), "commands", "send", "vic:00e20100", "robot_stop")
	if code != 0 || !strings.Contains(c.last(), `"expires_in_ms":30000,`) {
		t.Errorf("exit %d (%s), sent %s; want 30 s", code, errOut, c.last())
	}
}

func TestDriveIsSent(t *testing.T) {
	c := newCloud(t)
	for _, tc := range []struct {
		args []string
		want string // sent; "": nothing
		code int
	}{
		{[]string{"drive", "vic:00e20100", "straight=0.1", "seconds=3"}, `{"args":{"line":"robot.go(0.1)","seconds":3},"expires_in_ms":30000,"kind":"robot_do"}`, 0},
		{[]string{"drive", "vic:00e20100", "turn=-1.5", "speed=1", "-wait"}, `{"args":{"line":"robot.turn(-1.5) speed:1","wait":true},"expires_in_ms":30000,"kind":"robot_do"}`, 0},
		{[]string{"drive", "vic:00e20100", "left=3", "right=-4.5"}, `{"args":{"line":"wheelL.speed = 3; wheelR.speed = -4.5"},"expires_in_ms":30000,"kind":"robot_do"}`, 0},
		{[]string{"drive", "vic:00e20100", "head=0.2"}, `{"args":{"line":"headPitch = 0.2"},"expires_in_ms":30000,"kind":"robot_do"}`, 0},
		{[]string{"drive", "vic:00e20100", "lift=0.05", "speed=0.1"}, `{"args":{"line":"lift = 0.05 speed:0.1"},"expires_in_ms":30000,"kind":"robot_do"}`, 0},
		{[]string{"hold", "vic:00e20100", "-reason", "its wheel is off"}, `{"args":{"reason":"its wheel is off"},"expires_in_ms":30000,"kind":"robot_hold"}`, 0},
		{[]string{"hold", "vic:00e20100"}, "", 2},
		{[]string{"release", "vic:00e20100"}, `{"expires_in_ms":30000,"kind":"robot_release"}`, 0},
		{[]string{"stop", "vic:00e20100"}, `{"expires_in_ms":30000,"kind":"robot_stop"}`, 0},
		{[]string{"poke", "vic:00e20100", "push", "-by", "0.1", "-toward", "180"},
			`{"args":{"verb":"push","args":{"by":0.1,"toward":3.141592653589793}},"expires_in_ms":30000,"kind":"robot_poke"}`, 0},
		{[]string{"poke", "vic:00e20100", "turn", "back"}, `{"args":{"verb":"turn","side":"back"},"expires_in_ms":30000,"kind":"robot_poke"}`, 0},
		{[]string{"poke", "vic:00e20100", "kick"}, "", 2}, {[]string{"poke", "vic:00e20100", "touch", "-for", "2"}, "", 2},
		{[]string{"poke", "vic:00e20100", "touch", "-by", "2"}, "", 2},
		{[]string{"do", "vic:00e20100", "headPitch = 0.3"}, `{"args":{"line":"headPitch = 0.3"},"expires_in_ms":30000,"kind":"robot_do"}`, 0},
		{[]string{"do", "vic:00e20100", "robot.go(0.2)", "seconds=3"}, `{"args":{"line":"robot.go(0.2)","seconds":3},"expires_in_ms":30000,"kind":"robot_do"}`, 0},
		{[]string{"do", "vic:00e20100", ""}, "", 2}, {[]string{"do", "vic:00e20100", "a", "line=b"}, "", 2}, {[]string{"do", "vic:00e20100", "a", "seconds=11"}, "", 2},
		{[]string{"do", "vic:00e20100", "headPitch", "=", "0.3"}, "", 2},
		{[]string{"drive", "vic:00e20100", "straight=0.1", "turn=1"}, "", 2},
		{[]string{"drive", "vic:00e20100", "straight=0.1", "seconds=60"}, "", 2}, {[]string{"drive", "vic:00e20100", "strait=0.1"}, "", 2},
		{[]string{"drive", "vic:00e20100", "straight=far"}, "", 2}, {[]string{"drive", "vic:00e20100", "left=1"}, "", 2},
		{[]string{"drive", "vic:00e20100", "left=1", "right=1", "speed=1"}, "", 2}, {[]string{"drive", "vic:00e20100", "turn=0"}, "", 2},
	} {
		before := c.sent()
		code, _, errOut := run(t.Context(), nil, "", append([]string{"-onebox", c.onebox(t), "robot"}, tc.args...)...)
		sent := strings.TrimPrefix(c.sent(), before)
		if code != tc.code || tc.want == "" && sent != "" || tc.want != "" && !strings.Contains(sent, "POST /v1/things/vic:00e20100/commands "+tc.want) {
			t.Errorf("%v: exit %d (%s), sent %s; want %d, %s", tc.args, code, errOut, sent, tc.code, tc.want)
		}
	}
}

func TestListJSONIsAnArray(t *testing.T) {
	c := newCloud(t)
	code, out, errOut := run(t.Context(), nil, "", "robots", "list", "-o", "json", "-onebox", c.onebox(t))
	var got []struct{ Thing, Presence string }
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || len(got) != 2 || got[0].Presence != "present" || got[1].Thing != "vic:00e20199" {
		t.Errorf("exit %d, %s%s, %v", code, out, errOut, err)
	}
}

func TestLoginKeepsASession(t *testing.T) {
	c := newCloud(t)
	home := t.TempDir()
	env := map[string]string{"HOME": home}
	file := filepath.Join(home, ".config", "kennel", "session.json")

	code, _, errOut := run(t.Context(), env, "", "robots", "list")
	if code != cli.ExitDenied || !strings.Contains(errOut, "kennelctl login") {
		t.Errorf("before: exit %d, %s; want 4 and what to do", code, errOut)
	}
	code, _, errOut = run(t.Context(), env, "op@example.org\nwrong\n", "login", "-server", c.URL, "-ca", c.ca)
	if code != cli.ExitDenied || !strings.Contains(errOut, "not accepted together") {
		t.Errorf("wrong password: exit %d, %s", code, errOut)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a refused login left %s: %v", file, err)
	}
	code, _, errOut = run(t.Context(), env, "op@example.org\nopen sesame\n", "login", "-server", c.URL)
	if code != cli.ExitUnavailable || !strings.Contains(errOut, "-ca FILE") {
		t.Errorf("unknown root: exit %d, %s; want 5 and -ca FILE", code, errOut)
	}
	code, out, errOut := run(t.Context(), env, "op@example.org\nopen sesame\n", "login", "-server", c.URL, "-ca", c.ca)
	if code != 0 || !strings.Contains(out, "as op@example.org (admin)") || !strings.Contains(out, "kennelctl password") {
		t.Fatalf("login: exit %d, %s%s", code, out, errOut)
	}
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("session file %v, %v; want mode 0600", fi, err)
	}
	if code, _, errOut = run(t.Context(), env, "", "robots", "list"); code != 0 {
		t.Errorf("with the session: exit %d, %s", code, errOut)
	}
	code, _, errOut = run(t.Context(), env, "open sesame\nclosed sesame\n", "password")
	if code != 0 || c.last() != `POST /v1/me/password {"new":"closed sesame","old":"open sesame"}` {
		t.Errorf("password: exit %d, %s, the cloud saw %q", code, errOut, c.last())
	}
	// The token is for the server that gave it.
	other := newCloud(t)
	if code, _, errOut = run(t.Context(), env, "", "robots", "list", "-server", other.URL, "-ca", other.ca); code != cli.ExitDenied || other.last() != "" {
		t.Errorf("another server: exit %d, %s, it saw %q; want no request", code, errOut, other.last())
	}
	if code, _, errOut = run(t.Context(), env, "", "logout"); code != 0 || c.last() != "POST /v1/logout" {
		t.Errorf("logout: exit %d, %s, the cloud saw %q", code, errOut, c.last())
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("logout left %s: %v", file, err)
	}
}

func TestPasswordFile(t *testing.T) {
	c := newCloud(t)
	pw := filepath.Join(t.TempDir(), "pw")
	write(t, pw, "open sesame\n")
	env := map[string]string{"XDG_CONFIG_HOME": t.TempDir()}
	code, out, errOut := run(t.Context(), env, "", "login", "-server", c.URL, "-ca", c.ca, "-email", "op@example.org", "-password-file", pw, "-o", "json")
	if code != 0 || !strings.Contains(out, `"email": "op@example.org"`) || strings.Contains(out, token) {
		t.Errorf("exit %d, %s%s", code, out, errOut)
	}
}

func TestTroubleHasAClassAndAReason(t *testing.T) {
	c := newCloud(t)
	dir := c.onebox(t)
	broken := t.TempDir()
	write(t, filepath.Join(broken, "run", "ready.json"), `{"endpoints":{}}`)
	gone := newCloud(t)
	goneDir := gone.onebox(t)
	gone.Close()
	strange := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "hello", http.StatusTeapot) }))
	defer strange.Close()
	stale := t.TempDir()
	write(t, filepath.Join(stale, "token"), "other")
	for _, tt := range []struct {
		name string
		env  map[string]string
		args []string
		code int
		want string
	}{
		{"no such thing", nil, []string{"-onebox", dir, "robots", "show", "vic:zz"}, cli.ExitNotFound, "kennelctl: thing vic:zz is not known to this fleet\n"},
		{"bad thing", nil, []string{"-onebox", dir, "robots", "show", "cat:1"}, cli.ExitUsage, "want species:serial"},
		{"bad field", nil, []string{"-onebox", dir, "jdocs", "set", "vic:1", "vic.RobotSettings", "volume_master=1", "-force"},
			cli.ExitUsage, "no field volume_master"},
		{"no equals", nil, []string{"-onebox", dir, "jdocs", "set", "vic:1", "vic.RobotSettings", "volume"}, cli.ExitUsage, "want KEY=VALUE"},
		{"bad since", nil, []string{"-onebox", dir, "events", "list", "-since", "yesterday"}, cli.ExitUsage, "want a duration"},
		{"no onebox", nil, []string{"-onebox", t.TempDir(), "robots", "list"}, cli.ExitUnavailable, "no one-machine cloud is running on "},
		{"no such folder", nil, []string{"-onebox", filepath.Join(dir, "none"), "robots", "list"}, cli.ExitUsage, "no such folder; want the data folder"},
		{"damaged onebox", nil, []string{"-onebox", broken, "robots", "list"}, cli.ExitFailed, "endpoints.api"},
		{"cloud is down", nil, []string{"-onebox", goneDir, "robots", "list"}, cli.ExitUnavailable,
			gone.URL + ": connection refused"},
		{"both places", nil, []string{"-onebox", dir, "-server", "https://x", "robots", "list"}, cli.ExitUsage, "-onebox and -server exclude each other"},
		{"plain http far away", nil, []string{"-server", "http://kennel.example", "robots", "list"}, cli.ExitUsage, "want https"},
		{"no name", map[string]string{"KENNEL_TOKEN_FILE": filepath.Join(stale, "token")}, []string{"-server", "https://kennel.invalid", "robots", "list"}, cli.ExitUnavailable, "check the name"},
		{"not a cloud", map[string]string{"KENNEL_TOKEN_FILE": filepath.Join(stale, "token"), "KENNEL_SERVER": strange.URL}, []string{"robots", "list"}, cli.ExitFailed, "418"},
		{"stale token", map[string]string{"KENNEL_TOKEN_FILE": filepath.Join(stale, "token"), "KENNEL_SERVER": c.URL}, []string{"robots", "list", "-ca", c.ca}, cli.ExitDenied, "kennelctl login"},
		{"as json", nil, []string{"-onebox", dir, "robots", "show", "vic:zz", "-o", "json"}, cli.ExitNotFound, `"code":"no_thing"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errOut := run(t.Context(), tt.env, "", tt.args...)
			if code != tt.code || !strings.Contains(errOut, tt.want) || out != "" {
				t.Errorf("exit %d, %q, %q; want %d and %q", code, out, errOut, tt.code, tt.want)
			}
		})
	}
}

func TestTailConnectsAgain(t *testing.T) {
	c := newCloud(t)
	dir := c.onebox(t)
	ctx, cancel := context.WithCancel(t.Context())
	out, w := io.Pipe()
	done := make(chan int, 1)
	go func() {
		root := Command()
		done <- cli.Run(ctx, root, []string{"-onebox", dir, "events", "tail", "-o", "json"}, func(string) string { return "" }, w, io.Discard)
		w.Close()
	}()
	lines := json.NewDecoder(out)
	for _, name := range []string{"robot.boot", "robot.battery"} {
		c.tail <- "data: {\"thing\":\"vic:1\",\"event\":\"" + name + "\"}\n\n"
		c.tail <- "" // the server closes the stream
		var got struct{ Event string }
		if err := lines.Decode(&got); err != nil || got.Event != name {
			t.Fatalf("got %+v, %v; want %s", got, err, name)
		}
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("an interrupted tail ends with %d, want 0", code)
	}
}

func TestCompletionOffersThings(t *testing.T) {
	c := newCloud(t)
	for _, want := range []string{":", "headPitch.angle\t0.25\n"} { // the first makes the robot show itself
		if _, out, errOut := run(t.Context(), nil, "", "__complete", "-onebox", c.onebox(t), "robot", "do", "vic:00e20100", "head"); !strings.HasPrefix(out, want) {
			t.Errorf("names: %s%s, want %q", out, errOut, want)
		}
	}
	code, out, errOut := run(t.Context(), nil, "", "__complete", "-onebox", c.onebox(t), "robots", "show", "vic:")
	if code != 0 || !strings.HasPrefix(out, "vic:00e20100\tpresent\n") {
		t.Errorf("exit %d, %s%s", code, out, errOut)
	}
}
