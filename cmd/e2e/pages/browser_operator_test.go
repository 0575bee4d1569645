package pages

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"kennel/cloud/fleet/liveview"
	"kennel/cmd/e2e/housetest"
	"kennel/infra/browser"
)

// crashes looks at the crash of a robot, from its own page and from the list of all, resolves it, and comes back to the robot.
func (s *walk) crashes(p *browser.Page, look func(string), thing string) {
	var id string
	if err := s.DB(s.T).QueryRow(s.T.Context(), `WITH g AS (INSERT INTO crash_group (program, signature, first_seen, last_seen, versions, crashes)
			VALUES ('vic-engine', 'engine::Lift::Move | engine::Tick', clock_timestamp(), clock_timestamp(), '{2.0.0.6074}', 1) RETURNING id)
		INSERT INTO crash_crash (id, thing, crashed, name, program, os, version, boot_id, at, received, size, log_size, reason, analysis, modules, looked)
		SELECT gen_random_uuid(), $1, id, 'x.dmp', 'vic-engine', '', '2.0.0.6074', '', clock_timestamp(), clock_timestamp(), 9, 0, 'SIGSEGV (SEGV_MAPERR)', $2, '{}', clock_timestamp() FROM g RETURNING id::text`, thing,
		`{"format": "minidump", "reason": "SIGSEGV (SEGV_MAPERR)", "system": "Linux 3.18.66, arm", "threads": [{"id": 41, "crashed": true, "frames": [{"module": "vic-engine", "offset": "0x24cc", "function":
			"engine::Lift::Move(float)", "file": "/src/engine/lift.cpp", "line": 41, "trust": "context"}]}], "modules": [{"name": "/anki/bin/vic-engine", "debug_id": "4FBDA58B5A1DF5A579E3CF19A235EA090",
			"base": "0x10000", "size": 32768, "symbols": true, "used": true}], "facts": {"cmdline": "vic-engine"}}`).Scan(&id); err != nil {
		s.T.Fatal(err)
	}
	robot, console := p.URL(), s.Ready.Endpoints["console"]
	p.Goto(console + "/things/" + thing + "/crashes")
	p.SeeIn("region", "Crashes", "SIGSEGV")
	look("robot-crashes")
	p.Goto(console + "/crashes")
	look("crashes")
	p.Follow("engine::Lift::Move | engine::Tick", "^/crashes/group")
	p.SeeIn("region", "Stack of the latest crash", "/src/engine/lift.cpp:41")
	look("crash-group")
	p.Click("button", "Resolve")
	p.See("Saved.")
	p.SeeIn("table", "Crash groups", "resolved")
	p.Follow("Symbols", "^/crashes/symbols")
	look("crash-symbols")
	p.Goto(console + "/crashes/crash?id=" + id)
	p.SeeIn("region", "Stacks", "/src/engine/lift.cpp:41")
	look("crash")
	p.Goto(robot)
}

// voices looks at what became of requests that people spoke to a robot, at the robot and in all, and comes back to the robot.
func (s *walk) voices(p *browser.Page, look func(string), thing string) {
	for _, sql := range []string{
		`INSERT INTO speech_session (thing, at, session, kind, language, firmware, encoding, recognizer, intent, confidence, failed, why, audio_ms, took_ms, skip_das)
			SELECT '` + thing + `', clock_timestamp() - n * interval '1 minute', n::text, 'intent', 'en-US', '2.0.0.6074', 'opus', 'sphinx', CASE n WHEN 1 THEN '' ELSE 'intent_imperative_dance' END, 0.9,
				CASE n WHEN 1 THEN 'match' ELSE '' END, CASE n WHEN 1 THEN 'the words mean nothing to a robot' ELSE '' END, 1800, 310, false FROM generate_series(1, 4) AS n`,
		`INSERT INTO speech_day (day, firmware, language, failed, sessions, took_ms) VALUES (current_date, '2.0.0.6074', 'en-US', '', 3, 930), (current_date, '2.0.0.6074', 'en-US', 'match', 1, 0)`,
		`INSERT INTO speech_words (day, firmware, language, intent, words, times) VALUES (current_date, '2.0.0.6074', 'en-US', '', 'sing me a song', 5), (current_date, '2.0.0.6074', 'en-US', '', 'my name is ada', 1)`,
	} {
		if _, err := s.DB(s.T).Exec(s.T.Context(), sql); err != nil {
			s.T.Fatal(err)
		}
	}
	robot, console := p.URL(), s.Ready.Endpoints["console"]
	p.ClickIn("navigation", "This robot", "link", "Voice")
	p.At("/things/.*/voice$")
	p.SeeIn("region", "Requests", "intent_imperative_dance")
	look("robot-voice")
	p.Goto(console + "/voice")
	p.SeeIn("region", "Success", "75.0 %")
	p.SeeIn("region", "Not understood", "sing me a song")
	if got := p.TextOf("region", "Not understood"); strings.Contains(got, "ada") || !strings.Contains(got, "1 other phrase was said fewer than 3 times") {
		s.T.Errorf("a phrase that was said once is shown, or not counted: %q", got)
	}
	p.SeeIn("region", "Failed requests", thing)
	look("voice")
	p.Choose("Step", "Audio")
	p.Click("button", "Filter")
	p.SeeIn("region", "Failed requests", "None.")
	p.Goto(robot)
}

// secondStep sets up an authenticator app with the keyboard, and removes it.
func (s *walk) secondStep(t *testing.T, p *browser.Page) {
	t.Helper()
	p.Goto(s.Ready.Endpoints["console"] + "/account/second")
	s.Look(p, "second")
	p.Fill("Current password", housetest.OwnersPassword)
	p.Press("Enter")
	p.See("Scan this")
	s.Look(p, "second-add")
	secret := regexp.MustCompile(`\b[A-Z2-7]{32}\b`).FindString(p.Text())
	code, err := totp.GenerateCode(secret, time.Now())
	if err != nil {
		t.Fatalf("%q: %v", secret, err)
	}
	p.Fill("Code from the app", code)
	p.Press("Enter")
	p.SeeRole("heading", "Recovery codes")
	s.Look(p, "second-codes")
	p.Follow("I have kept them", "^/$")
	p.Goto(s.Ready.Endpoints["console"] + "/account/second")
	s.Look(p, "second-set")
	p.Fill("Current password", housetest.OwnersPassword)
	p.Press("Enter")
	p.See("The app is removed.")
	p.Goto(s.Ready.Endpoints["console"] + "/")
	p.Look("light", browser.Desktop)
}

// newOperator walks the console as a newcomer who types one address and no other (issue: what must hold 1).
func (s *walk) newOperator(t *testing.T, thing string, bad planted) {
	const email = "olga@staff.example"
	var made struct {
		Password string `json:"password"`
	}
	s.Operator(t).Do("POST", "/v1/operators", map[string]string{"email": email, "role": "admin"}, &made)
	p := s.Browser.Page(t, browser.Desktop)
	look := func(name string) {
		t.Helper()
		s.Look(p, name)
		p.Look("light", browser.Desktop)
	}
	p.Goto(s.Ready.Endpoints["console"] + "/")
	p.At("^/login")
	look("login")
	p.Fill("E-mail", email)
	p.Fill("Password", made.Password)
	p.Press("Enter")
	p.At("^/account/password")
	look("password")
	p.Fill("Current password", made.Password)
	p.Fill("New password, at least 10 characters", housetest.OwnersPassword)
	p.Fill("New password again", housetest.OwnersPassword)
	p.Press("Enter")
	p.See("Password changed.")
	p.Follow("Continue", "^/$")
	p.SeeRole("heading", "Overview")
	look("overview")
	p.Click("button", "Fold menu")
	p.Reload() // the choice is kept
	p.Fits(browser.Desktop)
	p.Click("button", "Menu")
	p.Reload()
	p.SeeRole("button", "Fold menu")
	s.secondStep(t, p)

	// Which version each runs: how many of each, and robot by robot.
	if got := p.TextOf("region", "Releases in use"); !strings.Contains(got, "2.0.0.6074") {
		t.Errorf("releases in use:\n%s", got)
	}
	p.Follow("Fleet", "^/things$")
	look("fleet")
	if got := p.TextOf("row", thing); !strings.Contains(got, "2.0.0.6074") || !strings.Contains(got, "online") {
		t.Errorf("the row of %s: %q", thing, got)
	}

	// Which are offline, and since when.
	p.Click("link", "Offline")
	p.At("presence%3Aabsent")
	if got := p.TextOf("row", bad.offline); !regexp.MustCompile(`offline\s+(just now|\d+ (second|minute)s? ago)`).MatchString(got) {
		t.Errorf("the row of a robot that is offline does not say since when: %q", got)
	}
	p.Follow(bad.offline, "^/things/")
	p.See("went offline")
	if got := p.Text(); !strings.Contains(got, "offline for") {
		t.Errorf("the page of a robot that is offline:\n%s", got)
	}
	look("robot-offline")

	// Why three of them never got in, each for its own reason. The list of those that never did is on the overview.
	for name, want := range map[string][]string{
		bad.root:   {"not enrolled", "root certificate"},
		bad.secret: {"enrolment refused", "secret"},
		bad.port:   {"enrolled with its claim secret", "has not connected to the broker yet", "port"},
	} {
		p.Follow("Overview", "^/$")
		p.ClickIn("region", "Never activated", "link", name)
		p.At("^/things/")
		got := p.TextOf("region", "Health checks")
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("why %s never got in: want %q in\n%s", name, w, got)
			}
		}
	}
	look("robot-never")

	// See which change set the robot's volume, and when; then revert it.
	root := s.RobotRoot(thing)
	before, err := housetest.ReadLocal(root)
	if err != nil {
		t.Fatal(err)
	}
	housetest.EditSetting(t, root, "master_volume", 1)
	s.CloudHas(thing, "master_volume", 1)
	p.Follow("Fleet", "^/things$")
	p.Follow(thing, "^/things/")
	p.SeeRole("heading", "Health checks")
	look("robot")
	p.Follow("Settings", "/settings$")
	p.SeeRole("button", "Restore medium high")
	look("robot-settings")
	if got := p.TextOf("row", "Volume"); !strings.Contains(got, "low") || !strings.Contains(got, "from medium high, by the robot") ||
		!regexp.MustCompile(`just now|ago`).MatchString(got) {
		t.Errorf("the row of the volume does not say what changed it, and when: %q", got)
	}
	p.Focus("button", "Restore medium high")
	p.Press("Enter")
	housetest.FileHas(t, root, "master_volume", before.Jdoc["master_volume"])
	p.SeeIn("row", "Volume", "✓ medium high") // without a reload
	p.SeeIn("region", "Change history", email)

	s.otherPages(p, look, thing)
}

// otherPages looks at the rest of the console, reached by its links.
func (s *walk) otherPages(p *browser.Page, look func(string), thing string) {
	p.Follow("Robot", "/robot$")
	p.SeeIn("region", "Components and values", "headPitch") // appears without a reload once the page is watched
	p.SeeIn("region", "Motion", "at rest")
	s.drives(p, thing)
	s.steers(p, thing)
	look("robot-tree")
	for _, hand := range [][2]string{{"Lift", "in a hand"}, {"Put down", "on treads"}} {
		p.Focus("button", hand[0])
		p.Press("Enter")
		p.See("Sent to the simulator")
		p.SeeIn("region", "Simulated world", hand[1])
	}
	p.Focus("button", "Stop "+thing)
	p.Press("Enter")
	p.See("Stop sent")
	p.Follow("Commands", "/commands$")
	p.SeeIn("region", "Command history", "all motors stop")
	p.Check("I confirm")
	p.Click("button", "Send command")
	p.SeeIn("region", "Command history", "done")
	look("robot-commands")
	p.ClickIn("navigation", "This robot", "link", "Events")
	p.At("^/things/.*/events$")
	look("robot-events")
	s.crashes(p, look, thing)
	s.voices(p, look, thing)
	p.Follow("Access", "/access$")
	look("robot-access")
	archive := filepath.Join(s.Dir, "release.ota")
	if err := os.WriteFile(archive, s.SignedArchive("9.0.0.1", 100_000), 0o600); err != nil {
		s.T.Fatal(err)
	}
	for _, line := range [][]string{{"releases", "upload", archive}, {"rollout", "create", "vic", "9.0.0.1", "-draft"}} {
		var made any
		if err := s.CtlJSON(&made, line...); err != nil {
			s.T.Fatal(err)
		}
	}
	p.Follow("Updates", "/rollouts$")
	p.SeeIn("region", "Why is this robot not updating?", "The rollout is a draft")
	look("robot-updates")
	p.Follow("Rollouts", "^/rollouts$")
	look("rollouts")
	p.Follow("vic 9.0.0.1", "^/rollouts/rollout")
	p.SeeRole("button", "Start of 9.0.0.1")
	look("rollout")
	p.Click("button", "Abort of 9.0.0.1")
	p.See("aborted")
	p.Follow("Releases", "^/releases$")
	p.Choose("Channel", "beta")
	p.Focus("button", "Set channel")
	p.Press("Enter")
	p.See("Channel set.")
	p.SeeIn("table", "Channels", "9.0.0.1")
	look("releases-channel")
	p.Focus("link", "Roll out 9.0.0.1 to Vector")
	p.Press("Enter")
	p.At("^/rollouts/new")
	look("rollout-new")
	p.Choose("Channel", "dev")
	p.Fill("Robot filter", "owner:ann")
	p.Fill("Window opens", "01:00")
	p.Fill("Window closes", "05:00")
	p.Focus("button", "Create rollout")
	p.Press("Enter")
	p.See("owner: and name:")
	look("rollout-refused")
	p.Fill("Robot filter", "tag:nothing")
	p.Focus("button", "Create rollout")
	p.Press("Enter")
	p.At("^/rollouts/rollout")
	p.SeeRole("button", "Pause of 9.0.0.1")
	p.Follow("Fleet", "^/things$")
	p.Check("Select all on this page")
	picked := func() string {
		return string(p.Eval(`[...document.querySelectorAll(".fleet input[name=thing]")].filter((b) => !b.checked).length + " " + document.getElementById("pick-all").indeterminate`))
	}
	if got := picked(); got != `"0 false"` {
		s.T.Errorf("after all were picked: not picked, some: %s", got)
	}
	p.Eval(`document.getElementById("pick-all").click()`)
	p.Check("Select " + thing)
	if got := picked(); !strings.HasSuffix(got, ` true"`) {
		s.T.Errorf("after one was picked: not picked, some: %s", got)
	}
	p.Choose("Action", "Add a tag")
	p.Click("button", "Continue")
	p.At("^/bulk/new")
	look("bulk-new")
	p.Fill("Tag", "lab")
	p.Check("Confirm for")
	p.Click("button", "Apply")
	p.At("^/bulk/[^n]")
	p.See("done")
	look("bulk-job")
	p.Click("link", "Bulk actions")
	p.At("^/bulk$")
	look("bulk")
	p.Follow("Fleet", "^/things$")
	p.Fill("Filter", "tag:lab")
	p.Press("Enter")
	p.At("tag")
	p.Follow("Save this filter", "^/cohorts")
	p.Fill("Name", "lab")
	p.Click("button", "Save")
	p.SeeRole("link", "lab")
	look("cohorts")
	for _, x := range []struct{ link, path, name string }{
		{"Alerts", "^/alerts", "alerts"}, {"Live tail", "^/tail", "tail"}, {"Health", "^/health", "health"}, {"Events", "^/events", "explore"}, {"Experiments", "^/experiments", "experiments"}, {"Certificates", "^/certificates", "certificates"},
		{"Releases", "^/releases", "releases"}, {"Operators", "^/operators", "operators"}, {"Audit", "^/audit", "audit"},
		{"Strangers", "^/strangers", "strangers"}, {"Storage", "^/storage", "storage"}, {"keyboard and filters", "^/help", "help"},
	} {
		p.Follow(x.link, x.path)
		look(x.name)
		if x.name == "tail" { // new lines do not scroll away the line being read
			p.Focus("link", thing)
			fault(s.T, s.Site.House, thing, "post", "921") // an event that goes out at once: a quiet robot may have none for half a minute
			fault(s.T, s.Site.House, thing, "clear")
			p.See("New rows are held while you read")
			p.Focus("button", "Pause")
			p.Gone("New rows are held while you read")
		}
	}
	p.Follow("Operators", "^/operators$")
	p.Follow("olga@staff.example", "^/operators/")
	p.SeeIn("region", "Sessions", "End session")
	look("operator")
	p.Follow("Webhooks", "^/webhooks$")
	p.Fill("Address", "https://hooks.example.org/kennel")
	p.Check("A robot comes online")
	p.Click("button", "Add webhook")
	p.See("Webhook added.")
	look("webhooks")
	p.Follow("hooks.example.org", "^/webhooks/")
	p.SeeIn("region", "Deliveries", "Nothing sent yet")
	look("webhook")
	p.Follow("Originals", "^/originals$")
	p.Click("button", "Run self-test")
	p.See("Step 1 of 11, names, fails")
	look("originals")
	p.Click("summary", "Your account")
	p.Follow("Your account", "^/me")
	look("me")
	p.Click("summary", "Your account")
	p.Follow("Ready for the internet?", "^/ready$")
	p.SeeRole("heading", "Ready for the internet?")
	look("ready")
	p.Follow("Fleet", "^/things$")
	p.Fill("Filter", "no such robot")
	p.Press("Enter")
	p.SeeRole("heading", "No robot matches")
	look("fleet-none")
	p.Goto(s.Ready.Endpoints["console"] + "/no-such-page")
	p.SeeRole("heading", "Not found")
	look("lost")
	p.Follow("Go to the fleet", "^/$")
	p.Goto(s.Ready.Endpoints["console"] + "/api")
	look("api")
}

// drives drives a robot while its page is open: it moves in the picture of its world without a reload, and a screen reader announces it.
// The robot is on a table, so it does not go far.
func (s *walk) drives(p *browser.Page, thing string) {
	s.T.Helper()
	p.SeeIn("region", "Simulated world: table", "simulated")
	type seen struct{ At, Said, Text string }
	see := func() (v seen) {
		if err := json.Unmarshal(p.Eval(`({At: document.querySelector('[data-glide="all-robot"]').dataset.at, Said: document.querySelector('[role=status][data-live=where]').textContent,
			Text: document.querySelector('svg[role=img] desc').textContent})`), &v); err != nil {
			s.T.Fatal(err)
		}
		return v
	}
	before, way := see(), s.House.Seen(thing, "rest", housetest.AtRest).Motion.Way
	for range 10 { // where the machine has too much to do the core stops a drive for its own lateness, or gives it up
		out, err := s.Ctl("robot", "drive", thing, "straight=0.05", "seconds=5")
		if err != nil && (strings.Contains(err.Error(), "late") || strings.Contains(err.Error(), "not heard")) {
			continue
		}
		if err != nil {
			s.T.Fatalf("drive: %v %s", err, out)
		}
		if s.House.Seen(thing, "the end of the drive", func(r liveview.Robot) error {
			if was := housetest.WheelsOutcome(r); was == "running" || r.Motion.Way == way && was != "stopped" && was != "astray" {
				return fmt.Errorf("%+v", r.Motion)
			}
			return housetest.AtRest(r)
		}).Motion.Way-way > 0.02 {
			break
		}
	}
	housetest.Await(s.T, time.Minute, "that the picture moves", func() error {
		if now := see(); now.At == before.At || now.Said == before.Said || now.Said != now.Text ||
			!strings.Contains(now.Said, " m from the cube, facing ") {
			return fmt.Errorf("from %+v to %+v", before, now)
		}
		return nil
	})
}

// steers holds a key on the robot's page: it drives while the key is down, and rests afterwards. Then a slider moves its head.
func (s *walk) steers(p *browser.Page, thing string) {
	s.T.Helper()
	way := func() float64 { return s.House.Seen(thing, "rest", housetest.AtRest).Motion.Way }
	before, moved := way(), 0.0
	for i := 0; i < 10 && moved < 0.02; i++ { // as with drives
		p.Focus("group", "Arrow keys")
		p.Hold([]string{"ArrowUp", "ArrowDown"}[i%2], 2*time.Second)
		p.SeeIn("region", "Drive", "Stopped.")
		moved = way() - before
	}
	time.Sleep(time.Second)
	if then := way() - before; moved < 0.02 || then > moved+0.01 {
		s.T.Errorf("by the arrow keys it drove %.3f m, and %.3f m a second after they were let go", moved, then)
	}
	agent := housetest.RobotPids(s.RobotRoot(thing))["agentd"] // a stop that does not reach it is given again until it says that it stopped
	signal := func(sig syscall.Signal) {
		if err := syscall.Kill(agent, sig); err != nil || agent == 0 {
			s.T.Fatalf("agentd %d: %v: %v", agent, sig, err)
		}
	}
	signal(syscall.SIGSTOP)
	p.Focus("group", "Arrow keys")
	p.Press("Space")
	p.SeeIn("region", "Drive", "Not done:")
	signal(syscall.SIGCONT)
	p.SeeIn("region", "Drive", "Stopped.")
	housetest.Await(s.T, time.Minute, "that a slider moves the head", func() error {
		p.FocusField("headPitch")
		p.Press("End")
		p.Press("Home")
		if said := p.TextOf("region", "Drive"); !strings.Contains(said, "headPitch = ") { // a robot that has just come back may be refused once
			return errors.New(said)
		}
		for _, d := range s.House.Seen(thing, "rest", housetest.AtRest).Devices {
			for _, x := range d.Slots {
				if v, ok := x.Value.(float64); ok && d.Compact == "headPitch" && x.Name == "angle" && v < -0.6 { // the end of the slider is -0.785
					return nil
				}
			}
		}
		return errors.New("it does not look up")
	})
}
