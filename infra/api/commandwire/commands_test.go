package commandwire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"kennel/infra/api/envelope"
)

const id = "0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11"

const fourLights = `{"lights":[{"r":255},{"g":1},{"b":2},{}]}`

func TestGolden(t *testing.T) {
	c := Command{ID: id, Kind: SetLights, ExpiresInMS: 1500, Args: json.RawMessage(fourLights)}
	for name, tc := range map[string]struct {
		encode func() ([]byte, error)
		want   string
	}{
		"command": {c.Encode, `{"v":1,"id":"` + id + `","kind":"set_lights","expires_in_ms":1500,"args":` + fourLights + `}`},
		"ordered": {Command{ID: id, Kind: Ping, GivenUS: 1_795_000_000_000_001}.Encode, `{"v":1,"id":"` + id + `","kind":"ping","expires_in_ms":0,"given_us":1795000000000001}`},
		"no args": {Command{ID: id, Kind: Ping}.Encode, `{"v":1,"id":"` + id + `","kind":"ping","expires_in_ms":0}`},
		"result": {Result{ID: id, Status: Failed, Detail: "no body", Finished: 7}.Encode,
			`{"v":1,"id":"` + id + `","status":"failed","detail":"no body","finished_ms":7}`},
		"answer": {Answer{ID: id, State: "done"}.Encode, `{"v":1,"id":"` + id + `","state":"done"}`},
		"pull":   {Pull{Commands: []Command{{ID: id, Kind: Ping}}}.Encode, `{"v":1,"commands":[{"v":1,"id":"` + id + `","kind":"ping","expires_in_ms":0}]}`},
		"empty":  {Pull{}.Encode, `{"v":1,"commands":[]}`},
	} {
		got, err := tc.encode()
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: got %s, %v\nwant %s", name, got, err, tc.want)
		}
	}
}

func TestOvertaken(t *testing.T) {
	const now = 1_795_000_000_000_000
	week := MaxTTL.Microseconds()
	for _, tc := range []struct {
		given, begun int64
		want         bool
	}{
		{given: now, begun: 0, want: false},
		{given: now, begun: now - 1, want: false},
		{given: now, begun: now, want: false},
		{given: now, begun: now + 1, want: true},
		{given: now, begun: now + week, want: true},
		{given: now, begun: now + week + 1, want: false}, // the cloud's clock was wrong once
		{given: 0, begun: now, want: false},              // an older cloud
	} {
		if got := (Command{GivenUS: tc.given}).Overtaken(tc.begun); got != tc.want {
			t.Errorf("given %d, begun %d: overtaken %v", tc.given, tc.begun, got)
		}
	}
}

func TestRefused(t *testing.T) {
	command := func(s string) error { _, err := ParseCommand([]byte(s)); return err }
	result := func(s string) error { _, err := ParseResult([]byte(s)); return err }
	for _, tc := range []struct {
		parse func(string) error
		in    string
		want  string // in the error
	}{
		{command, `{`, "unexpected end"},
		{command, `{"v":2,"id":"` + id + `","kind":"ping"}`, "version 2: want 1"},
		{command, `{"v":1,"id":"../../etc/passwd","kind":"ping"}`, "want a lower-case UUID"},
		{command, `{"v":1,"id":"` + id + `","kind":"Ping"}`, "want a word"},
		{command, `{"v":1,"id":"` + id + `","kind":"ping","expires_in_ms":604800001}`, "expires in"},
		{command, `{"v":1,"id":"` + id + `","kind":"ping","given_us":-1}`, "microseconds since 1970"},
		{command, `{"v":1,"id":"` + id + `","kind":"ping","args":[1]}`, "want a JSON object"},
		{command, `{"v":1,"id":"` + id + `","kind":"ping","args":{"x":"` + strings.Repeat("x", MaxArgs) + `"}}`, "at most 2048"},
		{command, `{"v":1,"id":"` + id + `","kind":"ping","args":{"x":"\u0000"}}`, "U+0000"},
		{result, `{"v":1,"id":"` + id + `","status":"maybe"}`, "want done, failed, expired or unknown"},
		{result, `{"v":1,"id":"` + id + `","status":"done","detail":"` + strings.Repeat("x", MaxDetail+1) + `"}`, "at most 1024"},
		{result, `{"v":1,"id":"` + id + `","status":"done","detail":"\u0000"}`, "without NUL"},
		{result, `{"v":1,"id":"","status":"done"}`, "UUID"},
	} {
		if err := tc.parse(tc.in); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.100s: %v, want %q", tc.in, err, tc.want)
		}
	}
}

func TestCatalogue(t *testing.T) {
	for _, tc := range []struct{ kind, args, want string }{
		{Ping, ``, ""}, {Ping, `{}`, ""}, {Sync, `{}`, ""}, {FlushEvents, ``, ""}, {RestartAgent, ` {} `, ""},
		{SetLights, fourLights, ""},
		{Intent, `{"intent":"intent_system_charger","params":{"a":1}}`, ""}, {Intent, `{"intent":"greeting"}`, ""},
		{RobotStop, ``, ""}, {RobotStop, `{"hard":1}`, "want no arguments"},
		{RobotHold, `{"reason":"its wheel is off"}`, ""}, {RobotHold, `{"reason":"x","by":"op@example.org"}`, ""}, {RobotRelease, ``, ""}, {RobotRelease,
			`{"by":"me"}`, "want no arguments"},
		{RobotHold, `{}`, "want a reason"}, {RobotHold, `{"reason":" "}`, "want a reason"}, {RobotHold, `{"reason":"a\nb"}`, "at most 90"},
		{RobotHold, `{"reason":"` + strings.Repeat("x", 91) + `"}`, "at most 90"}, {RobotHold, `{"why":"x"}`, `unknown field "why"; want a reason`},
		{RobotDo, `{"line":"headPitch = 0.3"}`, ""}, {RobotDo, `{"line":"robot.go(0.2)","seconds":10}`, ""}, {RobotDo, `{}`, "1 to 400"}, {RobotDo, `{"line":"  "}`, "1 to 400"},
		{RobotDo, `{"line":"` + strings.Repeat("x", 401) + `"}`, "1 to 400"}, {RobotDo, `{"line":"a = 1\nb = 2"}`, "one line"}, {RobotDo, `{"line":"a","seconds":11}`, "0.1 to 10"},
		{RobotDo, `{"line":"a; b = 1","wait":true}`, ""}, {RobotDo, `{"line":"a","seconds":"x"}`, "robot_do: seconds: got a string"},
		{RobotDo, `{"line":"a","seconds":-1}`, "0.1 to 10"}, {RobotDo, `{"line":7}`, "robot_do: line: got a number"}, {RobotDo, `{"lime":"a"}`,
			`robot_do: unknown field "lime"; want line, seconds and wait`}, {RobotDo, `{"line":"a","speed":1}`, "speed"},
		{RobotPoke, `{"verb":"touch","args":{"for":2}}`, ""}, {RobotPoke, `{"verb":"turn","side":"back"}`, ""},
		{Play, `{"name":"motion/sit"}`, ""}, {Play, `{"name":"../sit"}`, "want an animation's"}, {Play, ``, "want an animation's"}, {Play, `{"clip":"x"}`, `unknown field "clip"; want a name`},
		{RobotPoke, `{"verb":"kick"}`, "want one of touch"},
		{RobotPoke, ``, "EOF"}, {RobotPoke, `{"verb":"touch","for":2}`, "for"},
		{"dance", `{}`,
			"want one of flush_events, intent, ping, play, restart_agent, robot_do, robot_hold, robot_poke, robot_release, robot_stop, send_logs, set_lights, sync"},
		{SendLogs, ``, ""}, {SendLogs, `{"diagnostics":true,"reason":"battery-drain"}`, ""}, {SendLogs, `{"reason":"../../etc"}`, "want a word of at most 40"},
		{SendLogs, `{"reason":"-"}`, "want a word"}, {SendLogs, `{"diag":true}`, "want diagnostics and reason"},
		{Ping, `{"loud":true}`, "want no arguments"},
		{Ping, `7`, "want a JSON object"},
		{SetLights, ``, "0 lights"}, {SetLights, `{"lights":[{},{},{}]}`, "3 lights"},
		{SetLights, `{"lights":[{"r":256},{},{},{}]}`, "0 to 255"}, {SetLights, `{"lights":[{"red":1},{},{},{}]}`, "red"},
		{Intent, `{"intent":"Bad Word"}`, "want a word"}, {Intent, `{"intent":"x","params":[]}`, "want a JSON object"},
	} {
		err := Check(tc.kind, json.RawMessage(tc.args))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s %s: %v, want %q", tc.kind, tc.args, err, tc.want)
		}
	}
}

// TestMotionDoesNotWait: what moves a robot begins soon or never, and a stop or a hold goes first.
func TestMotionDoesNotWait(t *testing.T) {
	for _, tc := range []struct {
		kind          string
		ttl           time.Duration
		moves, urgent bool
	}{{RobotDo, MaxWait, true, false}, {RobotPoke, MaxWait, true, false}, {Play, MaxWait, true, false}, {RobotRelease, MaxWait, true, false}, {RobotStop, MaxWait, false, true},
		{RobotHold, MaxWait, false, true},
		{Intent, MaxWait, false, false}, {Ping, MaxTTL, false, false}, {SetLights, MaxTTL, false, false}} {
		if MaxTTLOf(tc.kind) != tc.ttl || Moves(tc.kind) != tc.moves || Urgent(tc.kind) != tc.urgent {
			t.Errorf("%s waits %v, moves %v, urgent %v; want %+v", tc.kind, MaxTTLOf(tc.kind), Moves(tc.kind), Urgent(tc.kind), tc)
		}
	}
	if d, err := ParseDo(json.RawMessage(`{"line":" headPitch ","seconds":2.5}`)); err != nil || d.Line != "headPitch" ||
		d.For() != 2500*time.Millisecond || d.Wait {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := ParseDo(json.RawMessage(`{"line":"headPitch","wait":true}`)); err != nil || d.For() != DefaultDrive || !d.Wait {
		t.Errorf("%+v, %v", d, err)
	}
}

// FuzzParseDo: whatever is taken lasts a finite time, and is one line.
func FuzzParseDo(f *testing.F) {
	for _, s := range []string{`{"line":"robot.go(0.1)"}`, `{"line":"a","seconds":3}`, `null`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := ParseDo(b)
		if err == nil && (d.For() <= 0 || d.For() > MaxDrive || strings.Contains(d.Line, "\n")) {
			t.Fatalf("%s is %q for %v", b, d.Line, d.For())
		}
	})
}

// FuzzParseLogRequest: whatever is taken has a reason that is safe in the name of a file.
func FuzzParseLogRequest(f *testing.F) {
	f.Add([]byte(`{"diagnostics":true,"reason":"battery-drain"}`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := ParseLogRequest(b); err == nil && (!IsReason(r.Reason) || strings.ContainsAny(r.Reason, "/~. \n") || len(r.Reason) > 40) {
			t.Fatalf("%s reads as %+v", b, r)
		}
	})
}

// FuzzParseQueued: what reads as the name of an upload is written as the same result again.
func FuzzParseQueued(f *testing.F) {
	f.Add(Queued("victor-00e20100-2026-05-06-12-00-00-7.log.gz"))
	f.Add("documents are in step")
	f.Fuzz(func(t *testing.T, s string) {
		if name, ok := ParseQueued(s); ok && Queued(name) != s {
			t.Fatalf("%q reads as %q", s, name)
		}
	})
}

// FuzzParseHold: whatever is taken has a reason that a page can show.
func FuzzParseHold(f *testing.F) {
	f.Add([]byte(`{"reason":"wet floor","by":"op"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := ParseHold(b); err == nil && (h.Reason == "" || len(h.Reason)+len(h.By) > 2*MaxReason) {
			t.Fatalf("%s reads as %+v", b, h)
		}
	})
}

// TestFullPullFitsTheBroker: the limits together keep the answer within one message.
func TestFullPullFitsTheBroker(t *testing.T) {
	var p Pull
	for range MaxOpen {
		args := json.RawMessage(`{"x":"` + strings.Repeat("x", MaxArgs-8) + `"}`)
		p.Commands = append(p.Commands, Command{ID: id, Kind: strings.Repeat("k", 32), ExpiresInMS: MaxTTL.Milliseconds(), Args: args})
	}
	b, err := p.Encode()
	if err != nil || len(b) > envelope.MaxWire-2048 {
		t.Errorf("%d bytes, %v; want at most %d", len(b), err, envelope.MaxWire-2048)
	}
	got, err := ParsePull(b)
	if err != nil || len(got.Commands) != MaxOpen {
		t.Errorf("read back %d commands, %v", len(got.Commands), err)
	}
}

func TestDetailFits(t *testing.T) {
	for _, s := range []string{"", "ok", "a\x00b", strings.Repeat("ä", MaxDetail), "\xff\xfe"} {
		if _, err := ParseResult(must(Result{ID: id, Status: Failed, Detail: Detail(s)}.Encode())); err != nil {
			t.Errorf("%.20q: %v", s, err)
		}
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// fuzz demands that what parses encodes and parses to the same value again.
func fuzz[T interface{ Encode() ([]byte, error) }](f *testing.F, parse func([]byte) (T, error), seeds ...[]byte) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := parse(b)
		if err != nil {
			return
		}
		again, err := v.Encode()
		if err != nil {
			t.Fatalf("%+v does not encode: %v", v, err)
		}
		w, err := parse(again)
		if err != nil {
			t.Fatalf("%s does not parse: %v", again, err)
		}
		if third := must(w.Encode()); !bytes.Equal(again, third) {
			t.Fatalf("got %s, want %s", third, again)
		}
	})
}

func FuzzCommand(f *testing.F) {
	fuzz(f, ParseCommand, must(Command{ID: id, Kind: Intent, ExpiresInMS: 1000, Args: json.RawMessage(`{"intent":"x"}`)}.Encode()))
}

func FuzzResult(f *testing.F) {
	fuzz(f, ParseResult, must(Result{ID: id, Status: Done, Detail: "pong", Finished: 1}.Encode()))
}

func FuzzAnswer(f *testing.F) { fuzz(f, ParseAnswer, must(Answer{ID: id, State: "expired"}.Encode())) }

func FuzzPull(f *testing.F) {
	fuzz(f, ParsePull, must(Pull{Commands: []Command{{ID: id, Kind: Ping, ExpiresInMS: 5000}}}.Encode()))
}

// FuzzCheck: arguments that are accepted are read to the same values when they come back from storage.
func FuzzCheck(f *testing.F) {
	f.Add(SetLights, []byte(fourLights))
	f.Add(Intent, []byte(`{"intent":"greeting","params":{"a":[1,2]}}`))
	f.Add(Ping, []byte(`{}`))
	f.Fuzz(func(t *testing.T, kind string, args []byte) {
		if Check(kind, args) != nil || kind != SetLights {
			return
		}
		l, err := ParseLights(args)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := json.Marshal(l)
		if got, err := ParseLights(b); err != nil || !reflect.DeepEqual(got, l) {
			t.Fatalf("got %+v, %v; want %+v", got, err, l)
		}
	})
}
