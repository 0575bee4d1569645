package cluster

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kennel/certs/ca"
	"kennel/infra/cli"
)

// TestNATSFiles: kenneld nats makes the secret, and folders that a real NATS server takes; another run keeps the secret and the certificate between the
// servers.
func TestNATSFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := ca.Init(filepath.Join(dir, "ca")); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (int, string) {
		var out bytes.Buffer
		root := NATSCommand()
		code := cli.Run(t.Context(), root, append([]string{"-ca", filepath.Join(dir, "ca"), "-secret-file", filepath.Join(dir, "secret"), "-out", filepath.Join(dir, "out")}, args...),
			func(string) string { return "" }, &out, &out)
		return code, out.String()
	}
	three := []string{"-server", "a=127.0.0.1", "-server", "b=b.example", "-server", "c=c.example", "-name", "robots.example"}
	if code, out := run(three...); code != cli.ExitOK || !strings.Contains(out, "tls://b.example:4222") {
		t.Fatalf("exit %d: %s", code, out)
	}
	read := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	text, secret, route := read("out/a/nats.conf"), read("secret"), read("out/a/route.crt")
	for _, want := range []string{`listen: "0.0.0.0:8883"`, `listen: "0.0.0.0:6222"`, "b.example:6222", filepath.Join(dir, "out/a/streams")} {
		if !strings.Contains(text, want) {
			t.Errorf("nats.conf lacks %s:\n%s", want, text)
		}
	}
	server, err := exec.Command("go", "tool", "-n", "github.com/nats-io/nats-server/v2").Output()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(strings.TrimSpace(string(server)), "-t", "-c", filepath.Join(dir, "out/a/nats.conf")).CombinedOutput(); err != nil {
		t.Errorf("nats-server -t: %v: %s", err, out)
	}
	if code, out := run(append(three, "-at", "/etc/nats", "-streams", "/streams")...); code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, out)
	}
	if text := read("out/b/nats.conf"); !strings.Contains(text, `"/etc/nats/b/server.crt"`) || !strings.Contains(text, `store_dir: "/streams"`) || strings.Contains(text, dir) {
		t.Errorf("for another machine:\n%s", text)
	}
	if read("secret") != secret || read("out/c/route.crt") != route {
		t.Error("the second run made another secret, or another certificate between servers")
	}
	for _, bad := range [][]string{{"-server", "a"}, {"-server", "../a=h"}, {"-server", "a=h", "-server", "b=h"}, {"-server", "a=h", "-owner", "me"}} {
		if code, out := run(bad...); code != cli.ExitUsage {
			t.Errorf("%v: exit %d: %s", bad, code, out)
		}
	}
}
