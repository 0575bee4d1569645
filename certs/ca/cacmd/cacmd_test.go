package cacmd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"kennel/certs/ca"
	"kennel/certs/ca/cacmd"
	"kennel/infra/cli"
)

func run(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	root := &cobra.Command{Use: "kenneld", Short: "test", Example: "  kenneld ca"}
	group := &cobra.Command{Use: "ca", Short: "test", Example: "  kenneld ca list"}
	group.AddCommand(cacmd.Commands()...)
	root.AddCommand(group)
	cli.AddOutput(root)
	if problems := cli.Lint(root); len(problems) > 0 {
		t.Error(problems)
	}
	var b bytes.Buffer
	code = cli.Run(t.Context(), root, append([]string{"ca"}, args...), func(string) string { return "" }, &b, &b)
	return b.String(), code
}

// TestRotationByHand is a rotation as an operator types it.
func TestRotationByHand(t *testing.T) {
	dir := t.TempDir()
	if _, err := ca.Init(dir); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		args string
		code int
		want string
	}{
		{"list", cli.ExitOK, "device     device   signs"},
		{"activate -authority device", cli.ExitFailed, "prepare one first"},
		{"rotate -authority device", cli.ExitOK, "device-1 "},
		{"list", cli.ExitOK, "device-1  prepared"},
		{"activate -authority device", cli.ExitOK, "device-1 "},
		{"withdraw -authority device -name device-1", cli.ExitFailed, "rotate first"},
		{"withdraw -authority device -name device-5", cli.ExitNotFound, "device-5"},
		{"withdraw -authority device -name device", cli.ExitOK, "device "},
		{"rotate -now -authority root", cli.ExitOK, "root-1 "},
		{"rotate -authority device -kms tpmkms:x", cli.ExitUsage, "awskms or softkms"},
		{"rotate -authority printer", cli.ExitUsage, "root, device, server or service"},
		{"list -o json", cli.ExitOK, `"stage": "earlier"`},
	} {
		out, code := run(t, append(strings.Fields(step.args), "-dir", dir)...)
		if code != step.code || !strings.Contains(out, step.want) {
			t.Errorf("ca %s: exit %d, want %d and %q:\n%s", step.args, code, step.code, step.want, out)
		}
	}
}

// TestRootKeyOffline: the root's key leaves the folder encrypted only, and comes back with the private key.
func TestRootKeyOffline(t *testing.T) {
	dir, safe := t.TempDir(), t.TempDir()
	if _, err := ca.Init(dir); err != nil {
		t.Fatal(err)
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	identity, out := filepath.Join(safe, "identity"), filepath.Join(safe, "root-key.age")
	if err := os.WriteFile(identity, []byte(id.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		args string
		code int
		want string
	}{
		{"offline -out " + out, cli.ExitUsage, "-recipient"},
		{"offline -out " + out + " -recipient " + id.Recipient().String(), cli.ExitOK, "root"},
		{"list", cli.ExitOK, "elsewhere"},
		{"rotate -authority device", cli.ExitFailed, "root.key"},
		{"offline -out " + out + "2 -recipient " + id.Recipient().String(), cli.ExitFailed, "no key of a root"},
		{"online -in " + out + " -identity " + identity, cli.ExitOK, "root"},
		{"rotate -authority device", cli.ExitOK, "device-1 "},
	} {
		got, code := run(t, append(strings.Fields(step.args), "-dir", dir)...)
		if code != step.code || !strings.Contains(got, step.want) || strings.Contains(got, "SECRET") {
			t.Errorf("ca %s: exit %d, want %d and %q:\n%s", step.args, code, step.code, step.want, got)
		}
	}
	if b, err := os.ReadFile(out); err != nil || bytes.Contains(b, []byte("PRIVATE KEY")) {
		t.Errorf("%d bytes, %v; want nothing readable", len(b), err)
	}
}
