package deploy

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/certs/ca"
	"kennel/cmd/e2e/housetest"
	"kennel/infra/mqtt"
	"kennel/infra/proc"
)

var update = flag.Bool("update", false, "rewrite infra/compose/mosquitto")

// notHere lists the parts that cannot be started on the machines that run the tests; CONTRIBUTING.md names them under "Not tested automatically".
var notHere = []string{"Docker", "Dockerfile"}

// TestComposeRules holds the file to what its first lines promise.
func TestComposeRules(t *testing.T) {
	c := housetest.LoadCompose(t, "compose.yaml", housetest.ComposeEnv)
	more := housetest.LoadCompose(t, "backup.yaml", housetest.ComposeEnv)
	maps.Copy(c.Services, more.Services)
	maps.Copy(c.Volumes, more.Volumes)
	secretName := regexp.MustCompile(`(?i)(password|secret|token|access_key)`)
	for name, s := range c.Services {
		bad := func(format string, args ...any) {
			t.Helper()
			t.Errorf("service %s: "+format, append([]any{name}, args...)...)
		}
		image, tag, _ := strings.Cut(s.Image, ":")
		if housetest.Substitutes[image] == "" {
			bad("image %q: nothing on a test machine stands for it", s.Image)
		}
		if tag == "" || tag == "latest" && !s.Ours() {
			bad("image %q: want a version", s.Image)
		}
		for k, v := range s.Environment {
			if secretName.MatchString(k) && !strings.HasPrefix(v, "/run/kennel/") {
				bad("variable %s: want a file below /run/kennel, not a secret", k)
			}
		}
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			bad("want read_only, cap_drop: [ALL] and no-new-privileges")
		}
		uid, _, _ := strings.Cut(s.User, ":")
		if root := uid == "" || uid == "0"; root && (s.NetworkMode != "none" || !s.OneShot()) || !root && len(s.CapAdd) > 0 {
			bad("user %q with capabilities %v: only a job without a network may be root", s.User, s.CapAdd)
		}
		if s.Restart != "unless-stopped" && !s.OneShot() {
			bad("restart %q", s.Restart)
		}
		if len(s.Ports) > 0 != slices.Contains(s.Networks, "front") || len(s.Ports) > 0 && name != "proxy" {
			bad("ports %v, networks %v: the proxy is the only door", s.Ports, s.Networks)
		}
		for _, v := range s.Volumes {
			m := parseMount(v)
			switch {
			case !m.bind():
				if _, ok := c.Volumes[m.source]; !ok {
					bad("volume %q is not declared", m.source)
				}
			case m.source == "./state" && name == "install", m.source == "./state/operator" && name == "prepare": // the jobs that write
			case m.source == "./state/broker/security" && name == "broker": // and what Mosquitto's plugin keeps
			case m.source == "./state/lists" && strings.HasPrefix(name, "kenneld-"): // and the list of who is refused
			case !m.readOnly:
				bad("mount %q: want :ro", v)
			case strings.HasPrefix(m.source, "./state/"):
			default:
				if _, err := os.Stat(filepath.Join(housetest.ComposeDir, m.source)); err != nil {
					bad("mount %q: %v", v, err)
				}
			}
		}
	}
	contributing, err := os.ReadFile("../../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(contributing), "## Not tested automatically")
	if !ok {
		t.Fatal("CONTRIBUTING.md has no section \"Not tested automatically\"")
	}
	for _, what := range notHere {
		if !strings.Contains(section, what) {
			t.Errorf("CONTRIBUTING.md, \"Not tested automatically\": %s is missing", what)
		}
	}
}

// TestComposeStarts (issue: what must hold 6): each service's exact command and configuration, with paths and ports of this machine, in the
// order of compose.yaml; then a robot is born, enrols through the proxy and is seen present, also after a kenneld was killed.
func TestComposeStarts(t *testing.T) {
	d := newDeployment(t)
	for len(d.done) < len(d.file.Services) {
		before := len(d.done)
		for _, name := range slices.Sorted(maps.Keys(d.file.Services)) {
			if !d.done[name] && d.may(name) {
				d.bringUp(name)
				d.done[name] = true
			}
		}
		if len(d.done) == before {
			t.Fatalf("services wait for each other; up are %v", slices.Sorted(maps.Keys(d.done)))
		}
	}
	d.awaitHealthy("a", "b")
	d.noSecretsShown()
	d.doorTellsApart()
	d.doorTellsWhoCalled()

	server := "https://" + d.addr["proxy:8443"]
	ctl := func(args ...string) (string, error) {
		c := exec.Command(filepath.Join(housetest.Bin, "kennelctl"), args...)
		c.Env = append(os.Environ(), "HOME="+d.dir, "XDG_CONFIG_HOME="+filepath.Join(d.dir, "config"))
		out, err := c.Output()
		if x, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("kennelctl %s: %w: %s", strings.Join(args, " "), err, x.Stderr)
		}
		return string(out), err
	}
	root := filepath.Join(d.dir, "state/operator/root.crt")
	if _, err := ctl("login", "-server", server, "-ca", root, "-email", "operator@kennel.local", "-password-file",
		filepath.Join(d.dir, "state/operator/first-password")); err != nil {
		t.Fatal(err)
	}
	chosen := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(chosen, []byte(housetest.OwnersPassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ctl("password", "-old-file", filepath.Join(d.dir, "state/operator/first-password"), "-new-file", chosen); err != nil {
		t.Fatal(err)
	}

	// A robot as from the factory; it learns the broker's address from the cloud.
	const id = "vic:00e20c00"
	out, err := ctl("robots", "register", id, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var reg struct{ Secret string }
	if err := json.Unmarshal([]byte(out), &reg); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	secret, robot := filepath.Join(d.dir, "claim"), filepath.Join(d.dir, "robot")
	if err := os.WriteFile(secret, []byte(reg.Secret), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join(housetest.Bin, "robotsim"), "make", "-root", robot, "-thing", id, "-secret-file", secret, "-api", server,
		"-ca", root).CombinedOutput(); err != nil {
		t.Fatalf("robotsim make: %v\n%s", err, out)
	}
	d.keep("robot", proc.Spec{Path: filepath.Join(housetest.Bin, "robotsim"), Args: []string{"robot", "-root", robot}})
	present := func() error {
		out, err := ctl("robots", "list", "-o", "json")
		if err != nil {
			return err
		}
		var rows []housetest.RobotRow
		if err := json.Unmarshal([]byte(out), &rows); err != nil {
			return fmt.Errorf("%w in %s", err, out)
		}
		if len(rows) != 1 || rows[0].Thing != id || rows[0].Presence != "present" {
			return fmt.Errorf("robots are %+v", rows)
		}
		return nil
	}
	took := housetest.Await(t, 2*time.Minute, "the robot is present", present)
	t.Logf("enrolled through the proxy and present after %v", took.Round(10*time.Millisecond))

	// Either kenneld may die: the other answers, and the one comes back.
	d.mu.Lock()
	pid := d.pids["kenneld-a"]
	d.mu.Unlock()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	housetest.Await(t, 20*time.Second, "the cloud answers without one kenneld", present)
	housetest.Await(t, time.Minute, "another kenneld-a runs", func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.pids["kenneld-a"] == pid || d.pids["kenneld-a"] == 0 {
			return errors.New("it does not")
		}
		return nil
	})
	d.awaitHealthy("a", "b")
	housetest.Await(t, time.Minute, "the robot is present", present)

	// A stolen robot's certificate: kenneld writes it into the list, and Mosquitto reads that, whatever its plugin believes.
	authority, err := ca.Load(filepath.Join(d.dir, "state/kenneld/ca"))
	if err != nil {
		t.Fatal(err)
	}
	stolen, err := tls.LoadX509KeyPair(filepath.Join(robot, "persist/kennel/device.crt"), filepath.Join(robot, "persist/kennel/device.key"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := ctl("robots", "revoke", id, "-reason", "stolen"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	people := identities{t, authority, d}
	took = housetest.Await(t, 30*time.Second, "a revoked robot is refused by TLS", func() error {
		_, err := people.call("broker:8883", caller{id, stolen}, make(chan string, 1))
		if down, ok := errors.AsType[*mqtt.DownError](err); !ok || down.Step != "login" {
			return fmt.Errorf("%v, want it refused by TLS", err)
		}
		return nil
	})
	t.Logf("refused by the list %v after the order", took.Round(time.Millisecond))

	// A backup of all that, which a drill proves.
	d.file.Services["backup"] = housetest.LoadCompose(t, "backup.yaml", housetest.ComposeEnv).Services["backup"]
	d.bringUp("backup")
	if out, err := housetest.Kenneld("backup", "drill", "-in", filepath.Join(d.dir, "volumes/backup/kennel.backup"), "-scratch", d.dir, "-config",
		filepath.Join(d.dir, "backup/etc/kennel/kenneld.yaml")); err != nil || strings.Contains(out, "not recorded") {
		t.Errorf("drill: %v\n%s", err, out)
	}

	// A second `up` runs the jobs again: nothing changes.
	password, err := os.ReadFile(filepath.Join(d.dir, "state/operator/first-password"))
	if err != nil {
		t.Fatal(err)
	}
	d.bringUp("install")
	d.bringUp("prepare")
	if again, err := os.ReadFile(filepath.Join(d.dir, "state/operator/first-password")); err != nil || string(again) != string(password) {
		t.Errorf("a second up changed the first password (%v)", err)
	}
}

// doorTellsApart checks that the port of HTTPS leads to the broker for those who speak MQTT.
func (d *deployment) doorTellsApart() {
	d.t.Helper()
	pem, err := os.ReadFile(filepath.Join(d.dir, "state/operator/root.crt"))
	if err != nil {
		d.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	for protocol, want := range map[string]string{"mqtt": "broker", "h2": "localhost"} {
		// A client without a certificate learns of the broker's refusal after the handshake: whose certificate it was is enough.
		c, err := tls.Dial("tcp", d.addr["proxy:8443"], &tls.Config{RootCAs: pool, ServerName: "localhost", NextProtos: []string{protocol}})
		if err != nil {
			d.t.Errorf("%s on the port of HTTPS: %v", protocol, err)
			continue
		}
		if got := c.ConnectionState().PeerCertificates[0].Subject.CommonName; got != want {
			d.t.Errorf("%s on the port of HTTPS leads to %q, want %q", protocol, got, want)
		}
		_ = c.Close() // nothing was said
	}
}

// doorTellsWhoCalled signs in wrongly from an address of its own, and looks under which address kenneld noted it.
func (d *deployment) doorTellsWhoCalled() {
	d.t.Helper()
	const caller = "127.0.0.9"
	pem, err := os.ReadFile(filepath.Join(d.dir, "state/operator/root.crt"))
	if err != nil {
		d.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool},
		DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(caller)}}).DialContext}}
	resp, err := client.Post("https://"+d.addr["proxy:8443"]+"/v1/login", "application/json",
		strings.NewReader(`{"email":"stranger@kennel.test","password":"a wrong password"}`))
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		d.t.Errorf("a stranger signs in: %s", resp.Status)
	}
	housetest.Await(d.t, 10*time.Second, "kenneld notes who failed to sign in", func() error {
		for _, name := range []string{"kenneld-a", "kenneld-b"} {
			b, err := os.ReadFile(filepath.Join(d.dir, name+".log"))
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(b)) {
				if strings.Contains(line, "login refused") && strings.Contains(line, `"addr":"`+caller) {
					return nil
				}
			}
		}
		return fmt.Errorf("no login refused from %s in the logs", caller)
	})
}
