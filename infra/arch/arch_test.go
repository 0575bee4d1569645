// Package arch proves that imports point one way (see infra/adr/0002). It asks the go command, so it checks the house as it is built.
package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kennel/infra/thing"
)

const module = "kennel/"

type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", module+"...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("only %d packages: go list saw the wrong module", len(all))
	}
	return all
}

// in reports whether p is one of the folders or below it; folders are relative to the module.
func in(p string, folders ...string) bool {
	p, ours := strings.CutPrefix(p, module)
	return ours && slices.ContainsFunc(folders, func(f string) bool { return p == f || strings.HasPrefix(p, f+"/") })
}

// third reports whether p comes from outside this module and the standard library.
func third(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return strings.Contains(first, ".")
}

// roots are the domains both sides speak.
var roots = []string{"certs", "jdocs", "ota", "speech"}

// leaves are packages of a domain that state rules too, by the domain whose root imports them.
var leaves = map[string][]string{"speech": {"speech/intent", "speech/recognizer", "speech/session", "speech/knowledge", "speech/weather", "speech/endpoint", "speech/ogg", "speech/utterance"}}

// testOnly packages serve tests and simulations; nothing in production imports them.
func testOnly(p string) bool {
	base := path.Base(p)
	if base == "testwait" {
		return true
	}
	for _, suffix := range []string{"test", "sim"} {
		if strings.HasPrefix(p, module) && strings.HasSuffix(base, suffix) && base != suffix {
			return true
		}
	}
	return false
}

// species returns the kind of body that a package is about; "" if it is about none.
func species(p string) string {
	for _, folder := range speciesFolders("edge/body/") {
		if in(p, folder) {
			return folder
		}
	}
	return ""
}

// speciesFolders returns the folders of the species of infra/thing, each with a prefix.
func speciesFolders(prefix string) (folders []string) {
	for _, s := range thing.AllSpecies() {
		folders = append(folders, prefix+strings.ToLower(s.Name()))
	}
	return folders
}

// refuse says why from may not import to; "" if it may.
func refuse(from, to string) string {
	switch {
	case in(to, "cmd"):
		return "nothing imports cmd"
	case in(from, "cmd"):
		return ""
	case in(from, "sdk/go") && (strings.HasPrefix(to, module) && to != module+"infra/api/robotpb" || third(to) && !strings.HasPrefix(to, "google.golang.org/")):
		return "a client of robots knows their API, gRPC and the standard library, as other people's programs do"
	case in(to, "cloud/app") && !in(from, "cloud/app"), in(to, "edge/app") && !in(from, "edge/app"):
		return "only cmd imports the wiring"
	case in(from, "edge") && in(to, "cloud"):
		return "edge never imports cloud: what both sides say to each other is in infra/api"
	case in(from, "cloud") && in(to, "edge"):
		return "cloud never imports edge"
	case in(from, roots...) && in(to, "edge", "cloud"):
		return "a domain both sides speak imports neither side"
	case in(from, "infra") && (in(to, "edge", "cloud") || in(to, roots...)):
		return "infra is ground: it knows no side and no domain"
	case in(from, "infra/api", "infra/thing") && in(to, "infra") && !in(to, "infra/api", "infra/thing"):
		return "contracts import no other ground"
	case in(from, "edge/robot") && !testOnly(from) && (third(to) || strings.HasPrefix(to, module) && !in(to, "edge/robot")):
		return "the device model knows nothing but itself and the standard library"
	case species(to) != "" && species(from) != species(to) && !in(from, "edge/app", "edge/sim", "edge/bodies"):
		return "only its own package and the wiring know a species (infra/adr/0017)"
	case testOnly(to) && !testOnly(from) && !in(from, "edge/sim", "edge/app/simapp", "edge/app/kitapp/pleorun", "edge/body/pleo/pleodebug"):
		return "production imports no simulator and no test package"
	}
	for _, root := range roots {
		// A domain's root states rules: no driver, no transport.
		if from == module+root && (third(to) || strings.HasPrefix(to, module) && !in(to, "infra/thing", "infra/errs", "infra/clock", "infra/suggest", "infra/logging") && !slices.Contains(leaves[root], strings.TrimPrefix(to, module))) {
			return "a domain root imports the standard library, its leaves, infra/thing, infra/errs, infra/clock, infra/suggest and infra/logging"
		}
	}
	if isAdapter(from) && isAdapter(to) && domain(from) != domain(to) {
		return "an adapter never imports another domain's adapter"
	}
	return ""
}

// isAdapter: a Postgres adapter carries its domain's name, as in jdocs/jdocspg.
func isAdapter(p string) bool {
	base := path.Base(p)
	return strings.HasPrefix(p, module) && !in(p, "infra") && strings.HasSuffix(base, "pg")
}

func domain(p string) string { return path.Dir(p) }

// TestImportsPointOneWay covers design section 3 and style section 1.
func TestImportsPointOneWay(t *testing.T) {
	for _, p := range packages(t) {
		for _, to := range p.Imports {
			if why := refuse(p.ImportPath, to); why != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, to, why)
			}
		}
		for _, to := range slices.Concat(p.TestImports, p.XTestImports) {
			if in(p.ImportPath, "edge") && in(to, "cloud") || in(p.ImportPath, "cloud") && in(to, "edge") {
				t.Errorf("tests of %s import %s: the two sides meet only over the wire", p.ImportPath, to)
			}
			if s := species(to); s != "" && species(p.ImportPath) != s && !in(p.ImportPath, "edge/app", "edge/sim", "cmd") {
				t.Errorf("tests of %s import %s: only the tests of its package and the wiring know a species (infra/adr/0017)", p.ImportPath, to)
			}
		}
	}
}

// TestFixedLibrariesStayInFewPlaces: each driver is behind one package, so that it can be replaced.
func TestFixedLibrariesStayInFewPlaces(t *testing.T) {
	homes := map[string][]string{
		"github.com/eclipse/paho.mqtt.golang": {"infra/mqtt"},
		"github.com/mochi-mqtt/server/v2":     {"infra/mqtt/broker"},
		"github.com/aws/aws-sdk-go-v2":        {"infra/awsconfig", "infra/blob", "infra/queue", "infra/mqtt/brokeradmin/awsiot", "speech/recognizer/transcribe", "speech/recognizer/lex"}, // the last ends sessions at AWS's broker
		"github.com/versity/versitygw":        {"infra/blob/gateway"},
		"github.com/golang-jwt/jwt":           {"cloud/identity/token"},
		"github.com/openai/openai-go/v3":      {"speech/knowledge/knowledgechat"},
		"github.com/coreos/go-oidc/v3":        {"cloud/identity/account/accountoidc"},
		"golang.org/x/oauth2":                 {"cloud/identity/account/accountoidc"},
		"github.com/go-webauthn/webauthn":     {"cloud/identity/account/accountwebauthn"},
	}
	used := map[string]bool{}
	for _, p := range packages(t) {
		for _, to := range p.Imports {
			for lib, allowed := range homes {
				if to != lib && !strings.HasPrefix(to, lib+"/") {
					continue
				}
				used[lib] = true
				if !in(p.ImportPath, allowed...) {
					t.Errorf("%s imports %s: only %v do", p.ImportPath, to, allowed)
				}
			}
		}
	}
	for lib := range homes {
		if !used[lib] { // a misspelled line would refuse nothing
			t.Errorf("nothing imports %s: its line can go, or is misspelled", lib)
		}
	}
}

// TestNobodyOutsideCutsThePower: no command, request or word from outside disconnects a robot's battery (VEC-PWR-43): the message for it is sent by no
// program of ours, and the bodies' own one only by the loop and the factory's command line (VEC-PWR-44).
func TestNobodyOutsideCutsThePower(t *testing.T) {
	homes := map[string][]string{
		"corelink.Shutdown": {"edge/core/coreserver"},                                                // takes it
		".Shutdown()":       {"edge/core/rt", "edge/core/coreserver", "edge/body", "infra", "cloud"}, // of servers, too
	}
	found := map[string]bool{}
	for _, dir := range []string{"edge", "cloud", "cmd", "infra"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			b, err := os.ReadFile(name)
			folder := module + strings.TrimPrefix(filepath.ToSlash(filepath.Dir(name)), "../../")
			for what, allowed := range homes {
				if !bytes.Contains(b, []byte(what)) {
					continue
				}
				if found[what] = true; !in(folder, allowed...) {
					t.Errorf("%s says %s: only %v may", name, what, allowed)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !found["corelink.Shutdown"] || !found[".Shutdown()"] { // what is misspelt is found nowhere
		t.Errorf("found %v", found)
	}
}

// TestRefuse sees the rules refuse what they must: a rule that allows everything would pass the tests above.
func TestRefuse(t *testing.T) {
	for _, tc := range []struct {
		from, to string
		refused  bool
	}{
		{"edge/agent", "cloud/bridge", true},
		{"edge/agent", "infra/api/topics", false},
		{"infra/mqtt", "infra/api/topics", false},
		{"infra/kit", "certs", true},
		{"infra/api/topics", "infra/mqtt", true},
		{"cloud/telemetry/das", "edge/agent", true},
		{"jdocs", "jdocs/jdocspg", true},
		{"jdocs/jdocspg", "infra/pg", false},
		{"jdocs/jdocspg", "ota/otapg", true},
		{"infra/pg", "cloud/telemetry/das", true},
		{"edge/core/rt", "edge/body/vector/vectorsim", true},
		{"edge/robot", "edge/body", true},
		{"edge/robot/state", "edge/robot", false},
		{"edge/sim", "edge/body/vector/vectorsim", false},
		{"edge/core/control", "edge/body/vector", true},
		{"edge/core/coreserver", "edge/body/amigobot/session", true},
		{"edge/body/amigobot", "edge/body/vector/spine", true},
		{"edge/body/vector/vectorplant", "edge/body/vector", false},
		{"edge/app/robotapp", "edge/body/amigobot", false},
		{"cloud/telemetry/das", "cloud/app", true},
		{"sdk/go", "edge/core", true},
		{"sdk/go", "infra/errs", true},
		{"sdk/go", "infra/api/robotpb", false},
	} {
		if why := refuse(module+tc.from, module+tc.to); (why != "") != tc.refused {
			t.Errorf("%s -> %s: %q, want refused %v", tc.from, tc.to, why, tc.refused)
		}
	}
	if refuse(module+"jdocs", "github.com/jackc/pgx/v5") == "" {
		t.Error("a domain root may import a driver")
	}
}
