package hawkbitwire_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/cloud/updates/hawkbit/hawkbitwire"
	"kennel/cloud/updates/rollout"
	"kennel/infra/testwait"
	"kennel/ota/swu/swutest"
)

// device is a device with Debian's SWUpdate.
type device struct {
	h      *house
	dir    string
	signer swutest.Signer
	proof  string // its settings of suricatta
	stop   func()
}

func (h *house) device() *device {
	h.Helper()
	return &device{h: h, dir: h.TempDir(), signer: swutest.NewSigner(h), proof: fmt.Sprintf("targettoken = %q;", h.token(arm))}
}

// certified gives the device a certificate in place of its token.
func (d *device) certified() {
	d.h.Helper()
	cert := d.h.certificate(d.h.authority, arm)
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		d.h.Fatal(err)
	}
	var chain []byte
	for _, der := range cert.Certificate {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	swutest.Write(d.h, d.file("cert.pem"), chain)
	swutest.Write(d.h, d.file("key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	d.proof = fmt.Sprintf("sslcert = %q; sslkey = %q;", d.file("cert.pem"), d.file("key.pem"))
}

func (d *device) file(name string) string { return filepath.Join(d.dir, name) }

// log returns what SWUpdate said.
func (d *device) log() string {
	b, _ := os.ReadFile(d.file("log")) // an empty one says as much
	return string(b)
}

// start starts SWUpdate on a device that runs version. state is the word that its boot loader would keep: "", or 2 after an installation (suricatta -c).
func (d *device) start(version, state string) {
	d.h.Helper()
	swutest.Write(d.h, d.file("swupdate.cfg"), fmt.Appendf(nil, `
globals : { public-key-file = %q; loglevel = 5; postupdatecmd = "touch %s"; };
suricatta : { tenant = "DEFAULT"; id = %q; url = %q; %s cafile = %q; retry = 4; retrywait = 1; };
identify : ( { name = "version"; value = %q; }, { name = "hardware"; value = "arm board"; }, { name = "region"; value = "EU"; } );
`, d.signer.Certificate(), d.file("restart"), arm, d.h.api.URL, d.proof, d.h.root, version))
	args := []string{"-f", d.file("swupdate.cfg"), "-H", "kennel:1.0", "-u"}
	if state != "" {
		args = append(args, "-c "+state)
	} else {
		args = append(args, "-e")
	}
	// SIGPIPE is ignored, as systemd does for each service. Without that, SWUpdate ends as soon as its suricatta gives up on a status after 100 ms, which happens on a busy
	// machine. Its log is written line by line, so that the log of a test that fails is whole.
	cmd := exec.Command("env", append([]string{"--ignore-signal=PIPE", "stdbuf", "-oL", "swupdate"}, args...)...)
	log, err := os.OpenFile(d.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.h.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, d.dir
	cmd.Env = append(os.Environ(), "TMPDIR="+d.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		d.h.Fatal(err)
	}
	stopped := false
	d.stop = func() {
		if !stopped {
			stopped = true
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its own group
			_ = cmd.Wait()                                      // it was killed
			_ = log.Close()                                     // only appended to
		}
	}
	d.h.Cleanup(d.stop)
}

// awaitFile waits for a file that the device makes.
func (d *device) awaitFile(name string) {
	d.h.Helper()
	testwait.Until(d.h, testwait.Long, name, func() error {
		_, err := os.Stat(d.file(name))
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, d.log())
		}
		return err
	})
}

// TestSWUpdate (issue 17, build 6): Debian's SWUpdate, unmodified, polls over TLS with our root, says what it is, downloads a release that is cut in the
// middle and continued, installs it, and is one of a rollout's updated robots after its restart. Then it shows a certificate, where it had a token. A release that fails ends with its words. An update that is
// cancelled while it is downloaded ends.
func TestSWUpdate(t *testing.T) {
	h := newHouse(t, hawkbitwire.Config{Poll: time.Second})
	d := h.device()
	lap := time.Now()
	said := func(what string) {
		t.Logf("%s after %v", what, time.Since(lap).Round(10*time.Millisecond))
		lap = time.Now()
	}
	d.start(old, "")
	testwait.Until(t, testwait.Long, "the device says what it is", func() error {
		x, err := h.robots.Thing(t.Context(), arm)
		if err == nil && (x.Presence != "present" || x.Facets.Version != old || x.Facets.Model != "arm board" || !slices.Equal(x.Tags, []string{"region-eu"})) {
			err = fmt.Errorf("%+v\n%s", x, d.log())
		}
		return err
	})

	said("described")
	whole := d.signer.Script(t, "1.0.0.2", "#!/bin/sh\ntouch "+d.file("installed")+"\n", bytes.Repeat([]byte("kennel "), 100_000))
	h.cut = len(whole) / 2
	h.upload("1.0.0.2", whole)
	id := h.rollout("1.0.0.2", 0)
	h.awaitWhy(d, id, rollout.WhyUpdating)
	d.awaitFile("restart")
	d.awaitFile("installed")
	h.mu.Lock()
	if len(h.ranges) != 2 || h.ranges[0] != "" || !strings.HasPrefix(h.ranges[1], "bytes=") || h.ranges[1] == "bytes=0-" {
		t.Errorf("downloads of %q", h.ranges)
	}
	h.mu.Unlock()
	said("installed")
	d.stop()
	d.certified()
	d.start("1.0.0.2", "2")
	h.awaitWhy(d, id, rollout.WhyDone)
	testwait.Until(t, testwait.Long, "the fleet knows", func() error {
		x, err := h.robots.Thing(t.Context(), arm)
		if err == nil && x.Facets.Version != "1.0.0.2" {
			err = fmt.Errorf("%+v", x)
		}
		return err
	})
	st, err := h.releases.State(t.Context(), arm, 10)
	var phases []string
	for _, r := range st.History {
		phases = append(phases, string(r.Phase))
	}
	if want := []string{"current", "installed", "downloading"}; err != nil || !slices.Equal(phases, want) {
		t.Errorf("reports %q, %v; want %q", phases, err, want)
	}

	said("updated")
	// One that fails.
	h.upload("1.0.0.3", d.signer.Script(t, "1.0.0.3", "#!/bin/sh\necho 'no room for \"it\"' >&2\nexit 1\n", nil))
	id = h.rollout("1.0.0.3", 0)
	w := h.awaitWhy(d, id, rollout.WhyFailed)
	if w.Error != 219 || !strings.Contains(w.Words, "The robot says: ERROR") || !strings.Contains(w.Words, "no room for") {
		t.Errorf("a release that fails: %+v", w)
	}
	said("failed: " + w.Words)
	before := len(h.ranges)

	// One that is cancelled while the device downloads it.
	slow := d.signer.Script(t, "1.0.0.4", "#!/bin/sh\ntouch "+d.file("wrong")+"\n", bytes.Repeat([]byte("kennel "), 100_000))
	h.upload("1.0.0.4", slow)
	id = h.rollout("1.0.0.4", 60_000)
	h.awaitWhy(d, id, rollout.WhyUpdating)
	testwait.Until(t, testwait.Long, "the download begins", testwait.Holds(func() bool { h.mu.Lock(); defer h.mu.Unlock(); return len(h.ranges) > before }))
	if _, err := h.rollouts.Do(t.Context(), id, rollout.Abort, "wrong release", "op"); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, testwait.Long, "the device obeys", func() error {
		if h.count("cancelAction/3/feedback") == 0 {
			return errors.New(d.log())
		}
		return nil
	})
	if _, err := os.Stat(d.file("wrong")); err == nil {
		t.Error("a cancelled release was installed")
	}
	said("cancelled")
	polls := h.count("GET /DEFAULT/controller/v1/amigo:arm-7 ")
	testwait.Until(t, testwait.Long, "it polls on", testwait.Holds(func() bool { return h.count("GET /DEFAULT/controller/v1/amigo:arm-7 ") > polls+1 }))
}
