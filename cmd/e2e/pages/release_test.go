package pages

import (
	"encoding/base64"
	"os"
	"strconv"
	"testing"

	"kennel/cmd/e2e/housetest"
	"kennel/infra/auth"
	"kennel/infra/browser"
)

// TestReleaseInTheConsole (issue 30.3): a file that robots would refuse is refused with a reason beside the form, a good one is uploaded; a rollout says how many robots it
// is for before it begins, and its own page shows them. On the page of a robot, a search unfolds the parts that have it.
func TestReleaseInTheConsole(t *testing.T) {
	if dir := housetest.ScreensDir(); dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h := housetest.New(t, "-robots", "1")
	h.Start()
	s := housetest.NewSite(t, h)
	p := s.Browser.Page(t, browser.Desktop)
	robot := h.AwaitPresent(1)[0]
	s.SignInAs(p, auth.Admin)
	look := func(name string) {
		t.Helper()
		s.Look(p, name)
		p.Look("light", browser.Desktop)
		if got := string(p.Eval(`[...document.querySelectorAll("main form:not([role=search], .filter) :is(input, select, textarea)")].filter((e) => e.getBoundingClientRect().width > 577).map((e) => e.name).join()`)); got != `""` {
			t.Errorf("%s: fields wider than 36rem: %s", name, got)
		}
		if got := string(p.Eval(`[...document.querySelectorAll('main :is([data-label="User"], [data-label="Object"], [data-label="By"], .address)')].filter((e) => {
			const r = document.createRange();
			r.selectNodeContents(e);
			return /^\S+@\S+$/.test(e.textContent.trim()) && new Set([...r.getClientRects()].map((x) => Math.round(x.top))).size > 1;
		}).map((e) => e.textContent.trim()).join()`)); got != `""` {
			t.Errorf("%s: addresses that are broken: %s", name, got)
		}
	}
	upload := func(content []byte) {
		p.Eval(`(() => { const d = new DataTransfer(); d.items.add(new File([Uint8Array.from(atob("` + base64.StdEncoding.EncodeToString(content) + `"), (c) => c.charCodeAt(0))], "release.ota"));
			document.querySelector("#upload [name=file]").files = d.files; })()`)
		p.Focus("button", "Upload release")
		p.Press("Enter")
	}
	good := h.SignedArchive("9.0.0.1", 300_000)
	bad := append([]byte{}, good...)
	bad[len(bad)/2] ^= 1
	p.Goto(s.Ready.Endpoints["console"] + "/releases")
	upload(bad)
	p.SeeIn("region", "Upload release", "The release was refused")
	look("releases-refused")
	upload(good)
	p.At("done=release-uploaded")
	p.SeeIn("table", "Known releases", "9.0.0.1")
	look("releases-uploaded")

	count := func(want int) {
		t.Helper()
		if got := string(p.Eval(`document.querySelector("[data-forecast]").dataset.forecast`)); got != strconv.Quote(strconv.Itoa(want)) {
			t.Errorf("the rollout is for %s robots, want %d", got, want)
		}
	}
	p.Focus("link", "Roll out 9.0.0.1 to Vector")
	p.Press("Enter")
	p.At("^/rollouts/new")
	count(1)
	p.Fill("Robot filter", "tag:nothing")
	p.Focus("button", "Count robots again")
	p.Press("Enter")
	p.At("cohort=tag")
	count(0)
	look("rollout-new")
	p.Fill("Robot filter", "")
	p.Choose("Channel", "dev")
	p.Click("button", "Create rollout")
	p.At("^/rollouts/rollout")
	p.SeeIn("table", "Robots of this rollout", robot)
	p.SeeIn("table", "History", "started")
	p.SeeIn("region", "Phases", "Offline") // after the first step, without a reload
	look("rollout-running")
	p.Follow("Rollouts", "^/rollouts$")
	look("rollouts")
	for _, path := range []string{"alerts", "health", "crashes", "releases"} {
		p.Goto(s.Ready.Endpoints["console"] + "/" + path)
		look(path)
	}

	p.Goto(s.Ready.Endpoints["console"] + "/things/" + robot + "/robot")
	p.SeeIn("region", "Components and values", "headPitch")
	p.Fill("Search components", "headPitch")
	p.SeeIn("region", "Components and values", "1 found")
	p.SeeIn("table", "Slots of headPitch", "angle")
	look("robot-search")
	p.Goto(s.Ready.Endpoints["console"] + "/")
	p.SeeRole("heading", "Overview")
	look("overview-hours")
}
