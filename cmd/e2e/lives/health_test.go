package lives

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/certs/ca"
	"kennel/cmd/e2e/housetest"
	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/api/topics"
	"kennel/infra/backoff"
	"kennel/infra/browser"
	"kennel/infra/mqtt"
	"kennel/infra/thing"
)

// Releases of TestWrongRelease.
const goodRelease, wrongRelease = "2.0.0.6074", "2.0.1.6091"

// TestWrongRelease is issue 18, "what must hold" 5: a release whose programs crash in 5 % of the robots that run it is an alert within two flush intervals, and red on the health page,
// which a browser shows. The full form has 500 robots with their agents, half of them with the release before; the light one speaks to the broker itself.
func TestWrongRelease(t *testing.T) {
	h := housetest.New(t, "-robots", "0", "-log-level", "warn")
	h.Start()
	var crashed, of int
	flush := 10 * time.Second // the light form makes no agents, which would wait that long at most in a quiet house
	var crash func()
	if housetest.Soak() {
		crashed, of, flush = 13, 250, 5*time.Second
		fine, wrong := h.StartFleet(t, housetest.FleetRoot(t), of, "lively", "-os-version", goodRelease), h.StartFleet(t, housetest.FleetRoot(t), of, "lively", "-os-version", wrongRelease, "-first", "vic:00f10000")
		for _, f := range []*housetest.Fleet{fine, wrong} {
			f.Await(10*time.Minute, "all connected, and heard of", func(s housetest.FleetStatus) bool { return s.Connected == of && s.Events.Acked > int64(4*of) })
		}
		crash = func() {
			var did struct{ Crashed int }
			if err := wrong.Ask(t.Context(), http.MethodPost, fmt.Sprintf("/crash?n=%d", crashed), &did); err != nil || did.Crashed != crashed {
				t.Fatalf("%d crashed, %v", did.Crashed, err)
			}
		}
	} else {
		crashed, of = 5, 100
		reportEvent(h, 10, 0x00b00000, goodRelease, "robot.boot_info", 1)
		reportEvent(h, of, 0x00b10000, wrongRelease, "robot.boot_info", 1)
		crash = func() { reportEvent(h, crashed, 0x00b10000, wrongRelease, "robot.crash", 2) }
	}
	var overview struct {
		Versions []struct {
			Version, State  string
			Robots, Crashed int
		}
	}
	judge := func(state string, robots, crashed int) error {
		if err := h.CtlJSON(&overview, "health"); err != nil {
			return err
		}
		for _, v := range overview.Versions {
			if v.Version == wrongRelease && v.State == state && v.Robots == robots && v.Crashed == crashed {
				return nil
			}
		}
		return fmt.Errorf("%+v", overview.Versions)
	}
	housetest.Await(t, time.Minute, "all heard of, and well", func() error { return judge("ok", of, 0) })
	begin := time.Now()
	crash()
	housetest.Await(t, 2*time.Minute, "an alert", func() error {
		var alerts []struct {
			Release, Kind   string
			Robots, Present int
			Resolved        *time.Time
		}
		if err := h.CtlJSON(&alerts, "alerts", "list"); err != nil {
			return err
		}
		for _, a := range alerts {
			if a.Kind == "crash_share" && a.Release == wrongRelease && a.Resolved == nil && a.Present == of {
				return nil
			}
		}
		return fmt.Errorf("%+v", alerts)
	})
	took := time.Since(begin)
	t.Logf("an alert after %v; agents send events every %v", took.Round(time.Millisecond), flush)
	if limit := 2 * flush; took > limit && (housetest.Soak() || took > 5*limit) { // a busy machine has five times as long
		t.Errorf("want two flush intervals at most")
	}
	housetest.Await(t, time.Minute, "a red version", func() error { return judge("bad", of, crashed) })
	if out, err := h.Ctl("health"); err != nil || !strings.Contains(string(out), wrongRelease) || !strings.Contains(string(out), "no data") {
		t.Errorf("kennelctl health: %s %v", out, err)
	}
	redOnThePage(t, h)
}

// reportEvent publishes one event of each of n robots, as their agents do, and returns when the cloud has stored all of them.
func reportEvent(h *housetest.House, n, first int, release, event string, seq uint64) {
	h.T.Helper()
	authority, err := ca.Load(filepath.Join(h.Dir, "ca"))
	if err != nil {
		h.T.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			id := thing.MustParse(fmt.Sprintf("vic:%08x", first+i))
			if err := reportEventAs(h, authority, id, events.Event{Source: "test", TS: time.Now().UnixMilli(), Seq: seq, Level: events.Info, RobotID: id.Serial(), RobotVersion: release, BootID: "boot", Name: event}); err != nil {
				h.T.Errorf("%s: %v", id, err)
			}
		})
	}
	all.Wait()
}

func reportEventAs(h *housetest.House, authority *ca.Authority, id thing.ID, e events.Event) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	chain, err := authority.IssueDevice(&x509.CertificateRequest{PublicKey: key.Public()}, id, time.Hour)
	if err != nil {
		return err
	}
	cert := tls.Certificate{PrivateKey: key, Leaf: chain[0]}
	for _, c := range chain {
		cert.Certificate = append(cert.Certificate, c.Raw)
	}
	batch, err := events.EncodeBatch(fmt.Sprint("b", e.Seq), []events.Event{e})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(h.T.Context(), 3*time.Minute)
	defer cancel()
	answers := make(chan ack.Ack, 10)
	c, err := mqtt.New(mqtt.Config{URL: h.Ready.Endpoints["mqtt"], ClientID: string(id), TLS: func() (*tls.Config, error) {
		return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authority.RootPool(), Certificates: []tls.Certificate{cert}}, nil
	}, OnMessage: func(_ string, payload []byte, taken func()) {
		if a, err := ack.Parse(payload); err == nil {
			select {
			case answers <- a:
			default: // told often enough
			}
		}
		taken()
	}, OnConnect: func(ctx context.Context, c *mqtt.Client) error {
		if err := c.Subscribe(ctx, 1, topics.DownTopic(id, topics.Ack)); err != nil {
			return err
		}
		return c.Publish(ctx, topics.UpTopic(id, topics.DAS), 1, false, batch)
	}})
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = c.Run(ctx) }() // nil by contract
	defer func() { cancel(); <-ended }()
	for {
		select {
		case a := <-answers:
			if a.Status == ack.Stored {
				return nil
			}
			if a.Status == ack.Refused {
				return fmt.Errorf("refused: %s", a.Reason)
			}
			if err := backoff.Sleep(ctx, time.Duration(a.After)); err != nil {
				return err
			}
			_ = c.Publish(ctx, topics.UpTopic(id, topics.DAS), 1, false, batch) // a connection that is lost publishes it again
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// redOnThePage looks at the health page with a browser: the wrong release says that it crashes more than usual, in the colour of failures, on every screen.
func redOnThePage(t *testing.T, h *housetest.House) {
	const email = "hanna@staff.example"
	var made struct{ Password string }
	h.Operator(t).Do("POST", "/v1/operators", map[string]string{"email": email, "role": "viewer"}, &made)
	s := housetest.NewSite(t, h)
	p := s.Browser.Page(t, browser.Desktop)
	p.Goto(h.Ready.Endpoints["console"] + "/login")
	p.Fill("E-mail", email)
	p.Fill("Password", made.Password)
	p.Press("Enter")
	p.Fill("Current password", made.Password)
	p.Fill("New password, at least 10 characters", housetest.OwnersPassword)
	p.Fill("New password again", housetest.OwnersPassword)
	p.Press("Enter")
	p.Follow("Continue", "^/$")
	p.Follow("Health", "^/health$")
	p.SeeIn("region", "Versions", wrongRelease)
	if got := p.TextOf("row", wrongRelease); !strings.Contains(got, "crashes more than usual") {
		t.Errorf("the row of the release: %q", got)
	}
	s.Look(p, "health")
	var rgb [3]int
	if err := json.Unmarshal(p.Eval(`getComputedStyle(document.querySelector(".pill.fail")).color.match(/\d+/g).slice(0, 3).map(Number)`), &rgb); err != nil {
		t.Fatal(err)
	}
	if rgb[0] < rgb[1]+60 || rgb[0] < rgb[2]+60 {
		t.Errorf("the words are of the colour %v; want red", rgb)
	}
	p.Look("light", browser.Desktop)
	shot := filepath.Join(t.TempDir(), "health.png")
	p.Shot(shot)
	f, err := os.Open(shot)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // read only
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			if r, g, b, _ := img.At(x, y).RGBA(); int(r>>8) == rgb[0] && int(g>>8) == rgb[1] && int(b>>8) == rgb[2] {
				n++
			}
		}
	}
	if n < 20 {
		t.Errorf("%d pixels of the picture are of the colour %v", n, rgb)
	}
}
