package housetest

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// ComposeDir is where the deployment's files are, seen from the folder of a group.
const ComposeDir = "../../../infra/compose"

// Compose holds the parts of compose.yaml that these tests use.
type Compose struct {
	Services map[string]Service `yaml:"services"`
	Volumes  map[string]any     `yaml:"volumes"`
	Networks map[string]Network `yaml:"networks"`
}

// Network is one of the networks of compose.yaml.
type Network struct {
	IPAM struct {
		Config []struct {
			Subnet string `yaml:"subnet"`
		} `yaml:"config"`
	} `yaml:"ipam"`
}

// Subnet returns the first subnet of the network.
func (n Network) Subnet() string { return n.IPAM.Config[0].Subnet }

// Service is one of the services of compose.yaml.
type Service struct {
	Image       string            `yaml:"image"`
	Entrypoint  []string          `yaml:"entrypoint"`
	Command     []string          `yaml:"command"`
	User        string            `yaml:"user"`
	Environment map[string]string `yaml:"environment"`
	Volumes     []string          `yaml:"volumes"`
	Tmpfs       []string          `yaml:"tmpfs"`
	Networks    []string          `yaml:"networks"`
	NetworkMode string            `yaml:"network_mode"`
	Ports       []string          `yaml:"ports"`
	Restart     string            `yaml:"restart"`
	ReadOnly    bool              `yaml:"read_only"`
	CapDrop     []string          `yaml:"cap_drop"`
	CapAdd      []string          `yaml:"cap_add"`
	SecurityOpt []string          `yaml:"security_opt"`
	Healthcheck struct {
		Test []string `yaml:"test"`
	} `yaml:"healthcheck"`
	DependsOn map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
}

// OneShot reports whether the service is a job that ends.
func (s Service) OneShot() bool {
	return s.Restart == "no" || strings.HasPrefix(s.Restart, "on-failure")
}

// Ours reports whether the image is our own program.
func (s Service) Ours() bool { return strings.HasPrefix(s.Image, "kennel/kenneld:") }

// Substitutes maps each image to the program on this machine that replaces it, from Debian's package of the same software.
var Substitutes = map[string]string{
	"kennel/kenneld":    "the kenneld under test",
	"postgres":          "postgresql; what its image does before the first start (initdb, the .sql files) is done by the test",
	"eclipse-mosquitto": "mosquitto",
	"haproxy":           "haproxy",
}

var variable = regexp.MustCompile(`\$\{(\w+)(?::([-?])([^}]*))?\}`)

// LoadCompose reads one of the deployment's files as docker compose does, with these variables.
func LoadCompose(t *testing.T, name string, env map[string]string) Compose {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(ComposeDir, name))
	if err != nil {
		t.Fatal(err)
	}
	text := variable.ReplaceAllStringFunc(string(b), func(v string) string {
		m := variable.FindStringSubmatch(v)
		if value := env[m[1]]; value != "" {
			return value
		}
		if m[2] != "-" {
			t.Fatalf("%s: variable %s: %s", name, m[1], cmp.Or(m[3], "no value"))
		}
		return m[3]
	})
	var c Compose
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return c
}

// ComposeEnv holds the variables that compose.yaml cannot do without.
var ComposeEnv = map[string]string{"KENNEL_NAME": "localhost"}
