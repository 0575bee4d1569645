package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"

	"kennel/cmd/e2e/housetest"
	"kennel/edge/core/corelink"
	"kennel/infra/freeaddr"
)

// notRun are the commands that this test does not run, by words of theirs, each with the reason.
var notRun = map[string]string{
	"make run":               "TestPrintedCommands starts its house as make run does, and compares the block that it prints",
	"make test":              "it runs this test",
	"kenneld onebox":         "the flags of all of them are those of the house",
	"kenneld ca rotate -kms": "needs a key management service",
	"kennelctl second add":   "asks for a code that an authenticator app makes of the secret",
	"my programs add":        "needs a robot of one's own; TestProgram of cmd/e2e/identity",
	"rollout release":        "needs a rollout that is held, which takes days",
	"robotsim fleet -n":      "a benchmark: cmd/bench runs it",
	"robotd -device":         "a flag beside others, for the port of a real body",
	"robotd -body":           "a flag beside others; docs/program.md has the whole command",
	"robotd -record":         "a flag beside others; TestRecord of edge/app/robotapp",
	"originals install":      "needs a robot that takes SSH; TestOriginalsCheck of cmd/e2e/identity",
	"robotkit replay":        "needs such a recording; TestRecord of edge/app/robotapp",
	"robotsim make -card":    "a flag beside others; TestHelloPleo of cmd/e2e/lives",
	"-root r1":               "needs a Pleo; TestHelloPleo of cmd/e2e/lives",
	"poke eject":             "needs a Pleo; TestCard of edge/body/pleo",
	"pleo monitor":           "needs a Pleo; TestTalk of edge/app/kitapp/pleorun",
	"mtn perform":            "needs an AIBO; TestAIBO of cmd/e2e/lives",
	"mtn check -balance":     "a flag beside others; TestCheckBalance of edge/app/kitapp/mtnkit",
	"bench -run '^costs$'":   "a benchmark of minutes",
}

// endless are the commands that run until they are interrupted, by words of theirs, each with what it must have printed by the end of its page.
var endless = map[string]string{
	"events tail":       "vic:",
	"robot watch":       "headPitch",
	"logs follow":       "",
	"voice watch":       "WakeWordBegin",
	"agentd profile":    "",
	"robotsim amigobot": "",
	"robotd -root":      "",
	"robot record":      "",
}

// changed are words of commands that differ here, besides the folders and addresses of newDoors. Those with a page hold on that page only.
var changed = []struct{ page, has, old, new string }{
	{"docs/operate.md", "", "vic:00e20100", "vic:00e20177"}, // registered there, so it must be a new one
	{"docs/operate.md", "restore", "/srv/kennel", "/srv/other"},
	{"docs/vector.md", "robots register", "vic:00e20100", "vic:00e20178"},
	{"docs/debug.md", "diag THING", "FILE", "/tmp/debug.tar.bz2"},
	{"docs/debug.md", "robots release", "THING", "vic:00e20176"},
	{"docs/public.md", "backup -out", "backup", "backup -data DIR"}, // not of this machine's own instance
	{"", "backup drill", "drill", "drill -data DIR"},
	{"docs/public.md", "", "kennel-2026-11-22.age", "/backup/kennel-$(date +%F).age"},
	{"docs/public.md", "kenneld ca", "/srv/kennel/ca", "/etc/kennel/ca"},
	{"", "originals check", "check", "check -frame-pause 1ms -connect-to " + housetest.UploadHost + ":443=UPLOADS"},
	{"docs/robots.md", "pleo debug", "FOLDER", "demo/build"},
	{"docs/robots.md", "pleo release", "ota.key", "DIR/secrets/release.key"},
	{"docs/robots.md", "pleo unpack", "-open", "-open demo/build/demo.urf"},
	{"docs/sdk.md", "robot record vic", "vic:00e20100", "vic:00e20100 -o all.mcap"},
	{"", "robot do THING", "LINE", "'headPitch = 0.1 time:1s'"},
}

// aThing is the first robot of a house.
const aThing = "vic:00e20100"

// doors runs the commands of the pages in one house.
type doors struct {
	*testing.T
	h        *housetest.House
	dir      string            // has the folders that the pages call /tmp, /etc, /srv and so on, and work, in which commands run
	places   *strings.Replacer // replaces folders, programs and addresses in commands
	outputs  *strings.Replacer // replaces them in output
	amigo    string            // address of the simulated AmigoBot
	ids      map[string]string // the latest id of a rollout and of a command
	aliases  string            // of the page
	running  []*running        // on the page
	unneeded map[string]bool   // entries of the tables that no command has needed yet
}

// running is a command that does not end by itself.
type running struct {
	printed
	want string
	cmd  *exec.Cmd
	out  housetest.SyncBuffer
}

// TestPrintedCommands runs every command that README.md, CONTRIBUTING.md and docs/ print, as printed, in one fresh house, and compares the shape of its
// output with the one on the page (issue 30, must hold 1). The light run leaves out what is compiled for it, and the pages that a newcomer opens later.
func TestPrintedCommands(t *testing.T) {
	all := printedCommands(t)
	uploads := freeaddr.For(t)
	_, robots, err := net.SplitHostPort(freeaddr.For(t))
	if err != nil {
		t.Fatal(err)
	}
	h := housetest.New(t, slices.Concat([]string{"-robots", "2", "-recognizers", "sphinx", "-listen", "uploads=" + uploads, "-listen", "robots=0.0.0.0:" + robots}, houseFlags(all))...)
	h.Start()
	h.AwaitPresent(2)
	d := newDoors(t, h, uploads)
	for i, c := range all {
		if i > 0 && all[i-1].page != c.page {
			d.endPage()
		}
		if housetest.Soak() || c.page == "README.md" && !strings.HasPrefix(c.cmd, "go run ") || c.page == "docs/start.md" {
			d.do(c)
		}
	}
	d.endPage()
	if !housetest.Soak() {
		return
	}
	for entry := range d.unneeded {
		t.Errorf("no page prints %q: remove it from the table", entry)
	}
}

// houseFlags are the flags of every kenneld onebox that the pages print, but for the addresses and folders, which are the test's own.
func houseFlags(all []printed) (flags []string) {
	for _, c := range all {
		_, rest, is := strings.Cut(c.cmd, "kenneld onebox ")
		words := strings.Fields(rest)
		for i := 0; is && i+1 < len(words); i += 2 {
			if flag := words[i]; flag != "-data" && flag != "-listen" {
				flags = append(flags, flag, strings.ReplaceAll(words[i+1], "kennel.lan", "localhost"))
			}
		}
	}
	return flags
}

// newDoors makes what the pages take for granted: files, an owner, and a database that kenneld serve could use.
func newDoors(t *testing.T, h *housetest.House, uploads string) *doors {
	dir, err := os.MkdirTemp(housetest.Work, "printed-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // the account of Postgres restores backups in it
		t.Fatal(err)
	}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	d := &doors{T: t, h: h, dir: dir, amigo: freeaddr.For(t), ids: map[string]string{}, unneeded: map[string]bool{}}
	d.places = strings.NewReplacer("/var/lib/kennel", h.Dir, "DIR", h.Dir, "ROBOT", h.RobotRoot(aThing), "/var/lib/robot", h.RobotRoot(aThing), "sudo ", "", "bin/", housetest.Bin+"/",
		"/tmp", dir+"/tmp", "/backup", dir+"/backup", "/mnt/spare", dir+"/spare", "/srv", dir+"/srv", "/etc", dir+"/etc", "/media", dir+"/media",
		"age1...", identity.Recipient().String(), "kennel.lan", "localhost", "https://127.0.0.1:8443", h.Ready.Endpoints["api"], "localhost:8101", d.amigo, "UPLOADS", uploads)
	d.outputs = strings.NewReplacer("/var/lib/kennel", h.Dir, "bin/", housetest.Bin+"/", "/tmp", dir+"/tmp", "kennel.lan", "localhost")
	for m := range notRun {
		d.unneeded[m] = true
	}
	for m := range endless {
		d.unneeded[m] = true
	}
	for _, c := range changed {
		d.unneeded[c.page+" "+c.old] = true
	}
	for _, sub := range []string{"work", "tmp", "backup", "spare", "srv", "etc/kennel", "media/safe", "config", "owner"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.ReadFile(h.Ready.Files["root_ca"])
	if err != nil {
		t.Fatal(err)
	}
	prices, err := os.ReadFile(filepath.Join(moduleRoot, "cloud/app/plan/prices.example.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	session, err := json.Marshal(map[string]string{"server": h.Ready.Endpoints["api"], "ca": string(root), "token": h.Operator(t).Token})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"work/factory.pem":           housetest.NewFactory(t).Bundle(),
		"work/2.0.1.6076.ota":        string(h.SignedArchive("2.0.1.6076", 100_000)),
		"work/delivery.csv":          "thing\nvic:00e20181\nvic:00e20182\n",
		"work/prices.yaml":           string(prices),
		"work/age-key.txt":           identity.String() + "\n",
		"etc/kennel/kenneld.yaml":    d.serveSettings(),
		"config/kennel/session.json": string(session),
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	h.NewCtlUser("you@example.org")
	if _, err := h.Ctl("robots", "register", "vic:00e20176"); err != nil {
		t.Fatal(err)
	}
	return d
}

// serveSettings are those of a kenneld serve with a database and a bucket of its own, on the servers of the house.
func (d *doors) serveSettings() string {
	addr := func(name string) string { _, a, _ := strings.Cut(d.h.Ready.Endpoints[name], "://"); return a }
	secrets := filepath.Join(d.h.Dir, "secrets")
	d.emptyDatabase()
	return fmt.Sprintf(`
postgres: {dsn: "postgres://kennel@%s/printed?sslmode=disable", password_file: %q}
s3: {endpoint: "http://%s", bucket: printed, path_style: true, access_key_file: %q, secret_key_file: %q}
mqtt: {url: "ssl://%s"}
ca: {dir: %q}
api: {listen: %q}
`, addr("postgres"), filepath.Join(secrets, "postgres"), addr("s3"), filepath.Join(secrets, "s3-access-key"), filepath.Join(secrets, "s3-secret-key"), addr("mqtt"),
		filepath.Join(d.dir, "etc/kennel/ca"), freeaddr.For(d))
}

// emptyDatabase makes the database of serveSettings, without a table.
func (d *doors) emptyDatabase() {
	db := d.h.DB(d.T)
	for _, stmt := range []string{"DROP DATABASE IF EXISTS printed WITH (FORCE)", "CREATE DATABASE printed"} {
		if _, err := db.Exec(d.Context(), stmt); err != nil {
			d.Fatal(err)
		}
	}
}

// here returns a command of a page with the names of this house in it.
func (d *doors) here(page, text string) string {
	for _, c := range changed {
		if (c.page == "" || c.page == page) && strings.Contains(text, c.has) {
			if strings.Contains(text, c.old) {
				delete(d.unneeded, c.page+" "+c.old)
			}
			text = strings.Replace(text, c.old, c.new, 1)
		}
	}
	if id := d.ids["command"]; id != "" {
		text = anID.ReplaceAllString(text, id)
	}
	text = strings.NewReplacer("THING", aThing, "SERIAL", strings.TrimPrefix(aThing, "vic:"), "FILE", "/tmp/turn.wav", "ROLLOUT", d.ids["rollout"]).Replace(text)
	return d.places.Replace(text)
}

var (
	anID     = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	shownIDs = regexp.MustCompile(`(?m)^(rollout|command) +([0-9a-f-]{36})$`)
)

// repeatable are the commands whose result takes its time, or that a robot refuses while its loop is late, as it may be on a busy machine.
var repeatable = regexp.MustCompile(`doctor|robots list|commands show|robot (drive|do|say)|speech try|fault show|examples/square|rollout (show|why|robots)`)

// do runs one command, and compares what it prints.
func (d *doors) do(c printed) {
	for entry := range notRun {
		if strings.Contains(c.cmd, entry) {
			delete(d.unneeded, entry)
			if c.shown == nil {
				return
			}
			if why := d.judge(c, welcomeOf(d.h.Out.String()), nil); why != nil {
				d.Errorf("%v\n%v", c, why)
			}
			return
		}
	}
	cmd := d.here(c.page, c.cmd)
	if strings.HasPrefix(cmd, "alias ") {
		d.aliases += cmd + "\n"
		return
	}
	for entry, want := range endless {
		if strings.Contains(c.cmd, entry) {
			delete(d.unneeded, entry)
			d.begin(c, want)
			return
		}
	}
	if strings.Contains(cmd, "kenneld restore -config") {
		d.emptyDatabase()
	}
	started := time.Now()
	var why error
	for end := started.Add(time.Minute); ; housetest.Pause(d.Context(), 250*time.Millisecond) {
		out, err := d.run(cmd)
		if why = d.judge(c, out, err); why == nil || d.Context().Err() != nil || !repeatable.MatchString(cmd) {
			break
		}
		if time.Now().After(end) {
			if strings.Contains(out, "its loop was late") { // as the page says of a busy machine
				d.Logf("%v\n%v", c, why)
				why = nil
			}
			break
		}
	}
	d.Logf("%6.1f s  %v", time.Since(started).Seconds(), c)
	if why != nil {
		d.Errorf("%v\n%v", c, why)
	}
}

// run runs a command line in a shell and returns all that it printed.
func (d *doors) run(cmd string) (string, error) {
	ctx, cancel := context.WithTimeout(d.Context(), 2*time.Minute)
	defer cancel()
	sh := d.shell(ctx, cmd)
	var out bytes.Buffer
	sh.Stdout, sh.Stderr = &out, &out
	if strings.Contains(cmd, " login ") {
		sh.Stdin = strings.NewReader("a long enough phrase of you@example.org\n")
	}
	err := sh.Run()
	for _, m := range shownIDs.FindAllStringSubmatch(out.String(), -1) {
		d.ids[m[1]] = m[2]
	}
	return out.String(), err
}

// shell returns the shell of a command: where the sources are if it builds from them, and as the owner if it is about their account.
func (d *doors) shell(ctx context.Context, cmd string) *exec.Cmd {
	sh := exec.CommandContext(ctx, "bash", "-c", "shopt -s expand_aliases\n"+d.aliases+cmd+"\n")
	sh.Dir = filepath.Join(d.dir, "work")
	if strings.HasPrefix(cmd, "go run ") || strings.HasPrefix(cmd, "make ") {
		sh.Dir = moduleRoot
	}
	config := "config"
	if strings.Contains(cmd, " login ") || strings.Contains(cmd, "kennelctl account ") {
		config = "owner"
	}
	sh.Env = append(os.Environ(), "PATH="+housetest.Bin+":"+os.Getenv("PATH"), "XDG_CONFIG_HOME="+filepath.Join(d.dir, config))
	return sh
}

// judge compares what a command printed with the page. Without output on the page it must succeed; a doctor may have found something.
func (d *doors) judge(c printed, out string, err error) error {
	if c.shown == nil {
		if err == nil || strings.Contains(c.cmd, "doctor") && strings.Contains(out, "failed checks: ") {
			return nil
		}
		return fmt.Errorf("%w\n%s", err, housetest.Tail(out, 20))
	}
	var want []string
	for _, line := range c.shown {
		want = append(want, d.outputs.Replace(line))
	}
	if why := mismatch(want, strings.Split(strings.TrimRight(out, "\n"), "\n")); why != "" {
		return fmt.Errorf("%s (%v); it printed\n%s", why, err, out)
	}
	return nil
}

// begin starts a command that does not end by itself, and returns when the next one can count on it.
func (d *doors) begin(c printed, want string) {
	r := &running{printed: c, want: want, cmd: d.shell(d.Context(), "exec "+strings.TrimSuffix(d.here(c.page, c.cmd), "&"))}
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	housetest.StartLocked(d.T, r.cmd)
	d.running = append(d.running, r)
	ready := func() error { return nil }
	switch {
	case strings.Contains(c.cmd, "robotsim amigobot"):
		ready = func() error {
			conn, err := net.Dial("tcp", d.amigo)
			if err == nil {
				conn.Close()
			}
			return err
		}
	case strings.Contains(c.cmd, "voice watch"): // it prints what comes after it has begun
		ready = func() error {
			if r.out.String() == "" {
				return errors.New("it has not begun")
			}
			return nil
		}
	case strings.Contains(c.cmd, "robotd -root"):
		ready = func() error {
			_, err := os.Stat(filepath.Join(d.dir, "tmp/amigo", corelink.SocketPath))
			return err
		}
	}
	housetest.Await(d.T, time.Minute, c.String(), ready)
}

// endPage ends what runs since a command of the page, when it has printed what it must.
func (d *doors) endPage() {
	for _, r := range d.running {
		housetest.Await(d.T, time.Minute, r.String(), func() error {
			if out := r.out.String(); !strings.Contains(out, r.want) {
				return fmt.Errorf("%q is not in %q", r.want, out)
			}
			return nil
		})
		_ = r.cmd.Process.Signal(os.Interrupt)
		err := r.cmd.Wait()
		d.Logf("%v ended with %v after\n%s", r, err, housetest.Tail(r.out.String(), 5))
	}
	d.running, d.aliases = nil, ""
}
