package kitapp

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"strings"
	"testing"
	"time"

	"kennel/infra/cli"
	"kennel/ota/trust"
)

// TestOTATrust: several people make and sign metadata, one after another, name an archive, and rotate a key; a robot accepts each.
func TestOTATrust(t *testing.T) {
	otaDesk(t)
	for _, name := range []string{"anna", "ben", "carla", "cloud", "next"} {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		for file, key := range map[string]any{name + ".key": private, name + ".pub": public} {
			kind, der := "PRIVATE KEY", []byte(nil)
			if strings.HasSuffix(file, "pub") {
				kind = "PUBLIC KEY"
				der, err = x509.MarshalPKIXPublicKey(key)
			} else {
				der, err = x509.MarshalPKCS8PrivateKey(key)
			}
			if err == nil {
				err = os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	does := func(args ...string) string {
		t.Helper()
		code, out, errOut := run(t, append([]string{"ota", "trust"}, args...)...)
		if code != cli.ExitOK {
			t.Fatalf("%q: %d %s%s", args, code, out, errOut)
		}
		return out
	}
	if code, out, errOut := run(t, "ota", "pack", "a.ota", "-version", "2.0.1.6076", "-key", "ota.key", "-boot", "boot", "-system", "system"); code != cli.ExitOK {
		t.Fatalf("%d %s%s", code, out, errOut)
	}
	if err := os.Mkdir("tuf", 0o700); err != nil {
		t.Fatal(err)
	}
	does("init", "tuf", "-role", "root=2:anna.key,ben.pub,carla.pub", "-role", "timestamp=cloud.pub", "-role", "snapshot=cloud.pub", "-role", "targets=anna.key",
		"-role", "prod=2:anna.pub,ben.pub", "-key", "anna.key")
	does("sign", "tuf/1.root.json", "-key", "ben.key")
	does("sign", "tuf/prod.json", "-add", "a.ota", "-key", "anna.key")
	does("sign", "tuf/prod.json", "-key", "ben.key")
	does("rotate", "tuf/1.root.json", "-role", "timestamp=next.pub", "-key", "anna.key", "-key", "carla.key")

	read := func(name string) []byte {
		b, err := os.ReadFile("tuf/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	cloud, err := signer("cloud.key")
	if err != nil {
		t.Fatal(err)
	}
	next, err := signer("next.key")
	if err != nil {
		t.Fatal(err)
	}
	var p trust.Publisher
	p.Keys = append(p.Keys, cloud, next)
	known, roots, err := p.Next(&trust.Known{}, map[string][]byte{"1.root": read("1.root.json"), "2.root": read("2.root.json"), "targets": read("targets.json"), "prod": read("prod.json")}, nil, time.Now())
	if err != nil || len(roots) != 2 {
		t.Fatalf("%d roots, %v", len(roots), err)
	}
	robot := &trust.Known{Root: roots[0]}
	v, err := robot.Update(known.Answer(trust.Question{Root: 1, Roles: map[string]int64{"targets": 0, "prod": 0}}, roots[1:]), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile("a.ota")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := v.Target("vic/2.0.1.6076/production", "prod"); err != nil || got.Length != int64(len(archive)) {
		t.Errorf("%+v, %v; want %d bytes", got, err, len(archive))
	}
	var s shown
	if err := json.Unmarshal([]byte(does("show", "tuf/prod.json", "-o", "json")), &s); err != nil || s.Version != 1 || len(s.Signed) != 2 || len(s.Targets) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	does("sign", "tuf/prod.json", "-remove", "vic/2.0.1.6076/production", "-key", "anna.key")
	if out := does("show", "tuf/prod.json"); strings.Contains(out, "ARCHIVE") || !strings.Contains(out, "VERSION    2") {
		t.Errorf("%s", out)
	}

	for args, want := range map[string]string{
		"init tuf -role root=anna.key":                               "want keys for root, targets, snapshot and timestamp",
		"rotate tuf/1.root.json -role prod=anna.key":                 "keys of channels are in targets.json",
		"rotate tuf/targets.json -role root=anna.key":                "are in N.root.json",
		"rotate tuf/1.root.json -role root=2:anna.key -key anna.key": "threshold 2 of 1 keys",
		"rotate tuf/1.root.json -role root":                          "want ROLE=[THRESHOLD:]KEY",
		"sign tuf/prod.json -remove vic/1/x":                         "does not name it",
		"sign tuf/prod.json -add nowhere":                            "nowhere",
		"sign a.ota -key anna.key":                                   "a.ota: ",
		"show a.ota":                                                 "a.ota: ",
	} {
		if code, out, errOut := run(t, append([]string{"ota", "trust"}, strings.Fields(args)...)...); code == cli.ExitOK || !strings.Contains(errOut, want) {
			t.Errorf("%s: %d %s%s, want %s", args, code, out, errOut, want)
		}
	}
}
