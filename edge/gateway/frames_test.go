package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mindtest"
	"kennel/infra/bench"
	"kennel/infra/browser"
	"kennel/infra/testwait"
)

// liveFrames is how many frames of a second a person shall see in the browser (issue 37, what must hold 4).
const liveFrames = 20.0

// counter counts the frames of the display that the browser shows, without those that look like the one before.
const counter = `(() => {
	const image = document.getElementById("screen"), canvas = document.createElement("canvas");
	const context = canvas.getContext("2d", { willReadFrequently: true });
	canvas.width = 184; canvas.height = 96;
	let before = null;
	window.frames_seen = 0;
	new MutationObserver(async () => {
		await image.decode().catch(() => {});
		context.drawImage(image, 0, 0);
		const now = new Uint32Array(context.getImageData(0, 0, 184, 96).data.buffer);
		if (before?.every((v, i) => v === now[i])) return;
		before = now;
		window.frames_seen++;
	}).observe(image, { attributes: true, attributeFilter: ["src"] });
})()`

// lively plays a clip whose face never rests, until the function that it returns is called.
func lively(tb testing.TB, c *mindlink.Client) (end func()) {
	ctx, cancel := context.WithCancel(tb.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			q := mindlink.Request{Clip: "anim_mood_confused_01", Loops: mindlink.MaxLoops, Ignore: []string{mindlink.Head, mindlink.Body}, Program: "lively"}
			if _, err := c.Play(ctx, q, func(mindlink.Progress) error { return nil }); err != nil {
				_ = bench.Pass(ctx, 100*time.Millisecond) // another animation may have the face
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// frameRate returns how many different frames a second the browser shows, over a time by its own clock.
func frameRate(p *browser.Page, over time.Duration) (rate float64, err error) {
	var seen [2]float64
	script := fmt.Sprintf(`new Promise((over) => { const n = window.frames_seen, at = performance.now();
		setTimeout(() => over([window.frames_seen - n, (performance.now() - at) / 1000]), %d); })`, over.Milliseconds())
	err = json.Unmarshal(p.Eval(script), &seen)
	return seen[0] / seen[1], err
}

// seeLive sees the face move in the browser, at a fifth of the wanted rate at least: a busy machine shows fewer frames.
func seeLive(t *testing.T, p *browser.Page, c *mindlink.Client) {
	t.Helper()
	defer lively(t, c)()
	p.Eval(counter)
	testwait.Until(t, time.Minute, "a face that moves", func() error {
		rate, err := frameRate(p, 2*time.Second)
		if err == nil && rate < liveFrames/5 {
			err = fmt.Errorf("%.1f frames a second", rate)
		}
		t.Logf("%.1f frames of the display a second", rate)
		return err
	})
}

// BenchmarkLiveFramesBesideBudget counts the different frames of a robot's moving face that a browser shows on the robot's own page.
func BenchmarkLiveFramesBesideBudget(b *testing.B) {
	d := newDesk(b, display)
	c := mindtest.Start(b, d.dir, mindtest.None)
	p := browser.Start(b).Page(b, browser.Desktop)
	p.Goto("https://" + d.addr + "/")
	p.Fill("Token", "all")
	p.Click("button", "Connect")
	p.SeeRole("img", "What the display shows now")
	defer lively(b, c)()
	p.Eval(counter)
	bench.Beside(b, bench.Line{Name: "liveframes", Unit: "frames/s", Bound: 1, Note: "a moving face on the robot's own page in Chromium; reference: the budget"},
		func(context.Context) (float64, error) {
			rate, err := frameRate(p, bench.Part(b, 10*time.Second))
			if err == nil && rate == 0 {
				err = errors.New("no frame")
			}
			return rate, err
		}, func(context.Context) (float64, error) { return liveFrames, nil })
}
