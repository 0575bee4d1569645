package storms

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/certs/certsapi"
	"kennel/cloud/fleet/registry"
	"kennel/cmd/e2e/housetest"
)

// TestLivesOfACertificate: a robot whose certificates live six seconds stays connected through one life after the other, unattended. It
// renews at two thirds, and comes back with the new certificate before the broker ends the session that the old one began
// (TestSessionEndsWithCertificate, package broker), so it is never seen as gone. Light: three lifetimes; KENNEL_SOAK: ten (VEC-TOK-01, 02).
func TestLivesOfACertificate(t *testing.T) {
	const life, id = 6 * time.Second, "vic:00e20a10"
	lives := 3
	if housetest.Soak() {
		lives = 10
	}
	h := housetest.New(t, "-robots", "0")
	h.Start()
	api, _ := h.ServeWith(t, "all", "", "KENNELD_CA_DEVICE_TTL="+life.String())
	h.Ready.Endpoints["api"] = "https://" + api
	admin := h.Operator(t)
	housetest.Await(t, time.Minute, "the kenneld of short lives answers", func() error {
		resp, err := admin.HTTP.Get("https://" + api + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("readyz: %s", resp.Status)
		}
		return nil
	})
	h.WiredRobot(t, id)
	h.AwaitPresent(1)
	came := time.Now()

	get := func(path string, out any) {
		t.Helper()
		code, b := admin.Try("GET", path, nil)
		if code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, code, b)
		}
		if err := json.Unmarshal(b, out); err != nil {
			t.Fatalf("%s: %v in %s", path, err, b)
		}
	}
	connectSeq := func() uint64 {
		var x registry.Thing
		if get("/v1/things/"+id, &x); x.Presence != registry.Present || x.Status == nil {
			t.Errorf("after %v: the robot is %s", time.Since(came).Round(time.Millisecond), x.Presence)
			return 0
		}
		return x.Status.ConnectSeq
	}
	// Each life is awaited to the end of the one before: by then the broker has ended what was begun with that.
	first := connectSeq()
	var certs []certsapi.Certificate
	for n := 1; n <= lives; n++ {
		housetest.Await(t, 3*life, fmt.Sprintf("life %d", n), func() error {
			if get("/v1/things/"+id+"/certificates", &certs); len(certs) < n {
				return fmt.Errorf("%d certificates", len(certs))
			}
			if n > 1 {
				if left := time.Until(certs[len(certs)-n+1].NotAfter); left > 0 {
					return fmt.Errorf("the one before ends in %v", left)
				}
			}
			return nil
		})
		connectSeq() // present
	}
	serials := map[string]bool{}
	slices.Reverse(certs) // the oldest first
	for i, c := range certs {
		serials[c.Serial] = true
		if got := c.NotAfter.Sub(c.NotBefore); got < life || got > life+time.Second {
			t.Errorf("certificate %d lives %v, want %v", i, got, life)
		}
		if i == 0 {
			continue
		}
		if c.Method != "renew" {
			t.Errorf("certificate %d was issued by %q, want a renewal", i, c.Method)
		}
		if after := c.NotBefore.Sub(certs[i-1].NotBefore); after < life*2/3-time.Second || after >= life { // whole seconds, and a twelfth at random
			t.Errorf("certificate %d came %v after the one before, want two thirds of its life", i, after)
		}
	}
	if len(serials) < lives {
		t.Errorf("%d serial numbers in %d lives", len(serials), lives)
	}

	// The sessions went from one to the next without a gap that anybody saw.
	var history []registry.Change // the latest first
	get("/v1/things/"+id+"/history", &history)
	for _, c := range history {
		if !c.Present {
			t.Errorf("absent at %v", c.At)
		}
	}
	if made, renewals := connectSeq()-first, uint64(len(certs)-1); made+1 < renewals || made > renewals { // the last one may be under way
		t.Errorf("%d connections after the first, for %d renewals", made, renewals)
	}
	var report registry.Report
	get("/v1/things/"+id+"/doctor", &report)
	if report.Refusal != nil {
		t.Errorf("the doctor knows of a refusal: %+v", *report.Refusal)
	}
	for _, s := range report.Steps {
		if !s.OK {
			t.Errorf("a step was refused: %+v", s)
		}
	}
	for _, line := range strings.Split(h.Out.String(), "\n") {
		if strings.Contains(line, "expired") && strings.Contains(line, id) {
			t.Errorf("the house says: %s", line)
		}
	}
	t.Logf("%d lives of %v in %v: %d serial numbers, no absence, no refusal", lives, life, time.Since(came).Round(100*time.Millisecond), len(serials))
}
