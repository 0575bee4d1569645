package cluster

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"kennel/cloud/app"
	"kennel/infra/config"
)

const composeDir = "../../../infra/compose"

// TestSettingsFiles: kenneld takes the settings of the compose file's cluster form and of the Kubernetes manifests, and both name three brokers.
func TestSettingsFiles(t *testing.T) {
	for _, file := range []string{composeDir + "/kenneld-cluster.yaml", "../../../infra/deploy/kubernetes/settings.yaml"} {
		cfg := app.Defaults()
		if err := config.Load(&cfg, file, app.EnvPrefix, nil); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		cfg.Postgres.DSN = regexp.MustCompile(`&sslrootcert=[^&]*`).ReplaceAllString(cfg.Postgres.DSN, "") // a file of the container
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if len(cfg.MQTT.NATS.Servers) != brokerServers {
			t.Errorf("%s: brokers %v", file, cfg.MQTT.NATS.Servers)
		}
		for _, s := range cfg.MQTT.NATS.Servers {
			if !strings.HasSuffix(s, ":"+natsServices) {
				t.Errorf("%s: %s: kenneld nats has them listen on port %s", file, s, natsServices)
			}
		}
	}
}

// TestComposeCluster: the cluster form keeps the rules of compose.yaml, its mounts exist or are made by its jobs, the servers have the names that kenneld
// uses, and its proxy has the settings of compose.yaml's but for the servers.
func TestComposeCluster(t *testing.T) {
	type service struct {
		Image       string
		User        string
		Command     []string
		Volumes     []string
		Environment map[string]string
		Networks    []string
		NetworkMode string   `yaml:"network_mode"`
		ReadOnly    bool     `yaml:"read_only"`
		CapDrop     []string `yaml:"cap_drop"`
		CapAdd      []string `yaml:"cap_add"`
		SecurityOpt []string `yaml:"security_opt"`
		Restart     string
		DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	}
	var c, base struct {
		Services map[string]service
		Volumes  map[string]any
	}
	for name, to := range map[string]any{"cluster.yaml": &c, "compose.yaml": &base} {
		b, err := os.ReadFile(filepath.Join(composeDir, name))
		if err == nil {
			err = yaml.Unmarshal(b, to)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	var servers []string
	for name, s := range c.Services {
		bad := func(format string, args ...any) { t.Helper(); t.Errorf(name+": "+format, args...) }
		if _, changed := base.Services[name]; !changed && name != "kenneld-c" { // a new service, which inherits nothing
			if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") || len(s.Environment) > 0 {
				bad("want read_only, cap_drop: [ALL], no-new-privileges and no variables")
			}
			if root := strings.HasPrefix(s.User, "0:"); root && (s.NetworkMode != "none" || s.Restart != "no") || !root && len(s.CapAdd) > 0 || s.User == "" {
				bad("user %q with %v: only a job without a network may be root", s.User, s.CapAdd)
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			_, named := c.Volumes[from]
			_, err := os.Stat(filepath.Join(composeDir, from))
			if !named && err != nil && !strings.HasPrefix(from, "./state") {
				bad("mount %s: no such file or volume", v)
			}
		}
		for other := range s.DependsOn {
			_, here := c.Services[other]
			if _, there := base.Services[other]; !here && !there {
				bad("depends on %s, which is no service", other)
			}
		}
		for _, arg := range s.Command {
			if server, ok := strings.CutPrefix(arg, "-server="); ok {
				name, host, _ := strings.Cut(server, "=")
				if n, ok := c.Services[name]; !ok || host != name || !slices.Contains(n.Command, "/etc/nats/"+name+"/nats.conf") {
					bad("server %s is no service with its file", server)
				}
				servers = append(servers, name)
			}
		}
	}
	if len(servers) != brokerServers {
		t.Errorf("servers %v", servers)
	}
	line := regexp.MustCompile(`(?m)^ +(server|balance|option redispatch) .*\n| slowstart 20s| on-marked-down shutdown-sessions|^#.*\n`)
	read := func(name string) (whole, plain string) {
		b, err := os.ReadFile(filepath.Join(composeDir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b), line.ReplaceAllString(string(b), "")
	}
	whole, got := read("haproxy-cluster.cfg")
	if _, want := read("haproxy.cfg"); got != want {
		t.Errorf("haproxy-cluster.cfg differs from haproxy.cfg beyond its servers:\n%s", got)
	}
	for _, want := range append([]string{"kenneld-a:8443", "kenneld-b:8443", "kenneld-c:8443"}, append(servers, "option redispatch 1", "slowstart 20s")...) {
		if !strings.Contains(whole, " "+want) {
			t.Errorf("haproxy-cluster.cfg lacks %s", want)
		}
	}
}
