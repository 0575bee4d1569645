package kitapp

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"kennel/infra/cli"
	"kennel/ota/archive/archivetest"
	"kennel/ota/manifest"
)

// otaDesk makes a folder with keys, passwords and images the current one.
func otaDesk(t *testing.T) {
	t.Chdir(t.TempDir())
	files := map[string][]byte{
		"ota.pub": archivetest.PublicPEM(), "ota.pas": []byte("swordfish\n"), "empty": nil,
		"ota.key":   pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(archivetest.Key())}),
		"delta.bin": archivetest.Image(6, 500),
	}
	for part, b := range archivetest.Production() {
		files[strings.ToLower(string(part))] = b
	}
	for part, b := range archivetest.Factory() {
		files[strings.ToLower(string(part))] = b
	}
	for name, b := range files {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOTAKinds packs each kind of update, inspects and verifies it (issue 17, item 1).
func TestOTAKinds(t *testing.T) {
	otaDesk(t)
	for _, tt := range []struct {
		kind, args, inspected string
	}{
		{"production", "-boot boot -system system -password-file ota.pas -reboot", `"ankidev": false`},
		{"factory", "-aboot aboot -recovery recovery -recoveryfs recoveryfs -qsn 00e20100 -key softkms:path=ota.key", `"qsn": "00e20100"`},
		{"delta", "-delta delta.bin -base 2.0.1.6075d -ankidev", `"base_version": "2.0.1.6075d"`},
	} {
		pack := strings.Fields("ota pack a.ota -version 2.0.1.6076d -key ota.key " + tt.args)
		if code, _, errOut := run(t, pack...); code != cli.ExitOK {
			t.Fatalf("%s: %d %s", tt.kind, code, errOut)
		}
		once, err := os.ReadFile("a.ota")
		if err != nil {
			t.Fatal(err)
		}
		if code, _, errOut := run(t, pack...); code != cli.ExitOK {
			t.Fatalf("%s: %d %s", tt.kind, code, errOut)
		}
		if twice, err := os.ReadFile("a.ota"); err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%s: two runs give two archives: %v", tt.kind, err)
		}
		code, out, errOut := run(t, "ota", "inspect", "a.ota", "-o", "json")
		var got struct {
			Kind, UpdateVersion string
			Images              []manifest.Image
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != cli.ExitOK || got.Kind != tt.kind || len(got.Images) == 0 || got.Images[0].Bytes == 0 ||
			!strings.Contains(out, tt.inspected) || !strings.Contains(out, `"update_version": "2.0.1.6076d"`) {
			t.Errorf("%s: %d %v %s\n%s", tt.kind, code, err, errOut, out)
		}
		if code, out, _ := run(t, "ota", "inspect", "a.ota"); code != cli.ExitOK || !strings.Contains(out, "2.0.1.6076d\n") ||
			!strings.Contains(out, got.Images[0].SHA256.String()) {
			t.Errorf("%s: %d\n%s", tt.kind, code, out)
		}
		if code, out, errOut := run(t, "ota", "verify", "a.ota", "-key", "ota.pub", "-password-file", "ota.pas"); code != cli.ExitOK ||
			!strings.HasPrefix(out, "valid: version 2.0.1.6076d, ") {
			t.Errorf("%s: %d %s%s", tt.kind, code, out, errOut)
		}
	}
}

// TestOTAVerifyFaults: each faulty archive is refused with 1 and the robot's code.
func TestOTAVerifyFaults(t *testing.T) {
	otaDesk(t)
	for _, f := range archivetest.Faults() {
		if err := os.WriteFile("fault.ota", f.Archive, 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"ota", "verify", "fault.ota", "-key", "ota.pub", "-o", "json"}
		if f.Password != "" {
			if err := os.WriteFile("fault.pas", []byte(f.Password), 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, "-password-file", "fault.pas")
		}
		code, out, errOut := run(t, args...)
		var got verified
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%s: %v\n%s%s", f.Name, err, out, errOut)
		}
		switch {
		case f.Sound && (code != cli.ExitOK || !got.Sound || got.Code != 0 || got.Bytes != int64(len(f.Archive))):
			t.Errorf("%s: %d %+v", f.Name, code, got)
		case !f.Sound && (code != cli.ExitFailed || got.Sound || got.Code != f.Code || got.Words != f.Code.Words() || got.Reason == "" || !strings.Contains(errOut, `"exit":1`)):
			t.Errorf("%s: %d %+v %s", f.Name, code, got, errOut)
		}
	}
}

// TestOTASign: an archive changes its key, and its images stay as they are.
func TestOTASign(t *testing.T) {
	otaDesk(t)
	var foreign []byte
	for _, f := range archivetest.Faults() {
		if f.Name == "signature of another key" {
			foreign = f.Archive
		}
	}
	if err := os.WriteFile("foreign.ota", foreign, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := run(t, "ota", "verify", "foreign.ota", "-key", "ota.pub"); code != cli.ExitFailed || !strings.HasPrefix(out, "code 209: ") {
		t.Errorf("%d %s", code, out)
	}
	if code, out, errOut := run(t, "ota", "sign", "foreign.ota", "foreign.ota", "-key", "ota.key"); code != cli.ExitOK || !strings.Contains(out, "2.0.1.6076") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	if code, _, errOut := run(t, "ota", "verify", "foreign.ota", "-key", "ota.pub"); code != cli.ExitOK {
		t.Errorf("%d %s", code, errOut)
	}
}

// TestOTARefuses: a fault of the command line names the flag, and nothing is left behind.
func TestOTARefuses(t *testing.T) {
	otaDesk(t)
	const good = "ota pack new.ota -version 2.0.1.6076 -key ota.key -boot boot -system system"
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"ota pack new.ota -key ota.key -boot boot", cli.ExitUsage, "missing -version version"},
		{"ota pack new.ota -version 2.0.1.6076 -boot boot", cli.ExitUsage, "missing -key key"},
		{good + " -version 2.0", cli.ExitUsage, "-version: version"},
		{good + " -base 2.0.1.6075", cli.ExitUsage, "-delta and -base"},
		{good + " -delta delta.bin -base 2.0", cli.ExitUsage, "-base: version"},
		{good + " -delta delta.bin -base 2.0.1.6075", cli.ExitUsage, "want the image DELTA, or BOOT and SYSTEM"},
		{"ota pack new.ota -version 2.0.1.6076 -key ota.key -boot boot", cli.ExitUsage, "want the image DELTA, or BOOT and SYSTEM"},
		{good + " -qsn ../etc", cli.ExitUsage, `qsn="../etc"`},
		{good + " -boot empty", cli.ExitUsage, `bytes="0" in [BOOT]`},
		{good + " -boot nowhere", cli.ExitNotFound, "nowhere"},
		{good + " -key nowhere", cli.ExitNotFound, "-key: open nowhere"},
		{good + " -key ota.pub", cli.ExitUsage, "-key: ota.pub: PEM block"},
		{good + " -key softkms:path=nowhere", cli.ExitUsage, "-key: key management service"},
		{good + " -password-file empty", cli.ExitUsage, "-password-file empty: want a password"},
		{good + " -password-file nowhere", cli.ExitNotFound, "-password-file: open nowhere"},
		{"ota verify ota.pub -key ota.key", cli.ExitUsage, "-key ota.key: PEM block"},
		{"ota verify nowhere -key ota.pub", cli.ExitNotFound, "nowhere"},
		{"ota inspect ota.pub", cli.ExitFailed, "update code 204"},
		{"ota sign ota.pub new.ota -key ota.key", cli.ExitFailed, "update code 204"},
	} {
		if code, out, errOut := run(t, strings.Fields(tt.args)...); code != tt.code || !strings.Contains(errOut, tt.want) {
			t.Errorf("%s: exit %d, want %d with %q\n%s%s", tt.args, code, tt.code, tt.want, out, errOut)
		}
	}
	left, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if strings.Contains(e.Name(), "new.ota") || strings.HasPrefix(e.Name(), ".ota") {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// TestOTAProgress: long work says how far it is, and an interrupt ends it.
func TestOTAProgress(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var errOut bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	cmd.SetErr(&errOut)
	p := newProgress(cmd, "verify")
	p.total = 8_000_000
	p.said = time.Now().Add(-2 * progressEvery)
	for range 2 { // the second one is too early to be said
		if _, err := p.Write(make([]byte, 2_000_000)); err != nil {
			t.Fatal(err)
		}
	}
	if got := errOut.String(); got != "verify: 2 MB of 8 MB, 25 %\n" {
		t.Errorf("%q", got)
	}
	cancel()
	if _, err := p.Write([]byte("x")); err == nil {
		t.Error("an interrupted command reads on")
	}
}
