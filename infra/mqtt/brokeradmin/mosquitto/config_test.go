package mosquitto

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"kennel/infra/errs"
)

var update = flag.Bool("update", false, "rewrite testdata")

var example = Broker{
	Things: "0.0.0.0:8883", Services: "10.0.0.5:8884", Cert: "/etc/kennel/server.crt", Key: "/etc/kennel/server.key", DeviceCA: "/etc/kennel/device.pem",
	ServiceCA: "/etc/kennel/service.pem", DeviceCRL: "/etc/kennel/device.crl", SecurityFile: "/var/lib/mosquitto/kennel.json",
	Plugin: "/usr/lib/mosquitto_dynamic_security.so", User: "broker",
}

func TestConfigGolden(t *testing.T) {
	conf, err := example.Config()
	if err != nil {
		t.Fatal(err)
	}
	security, err := example.Security("vic:00e20100")
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{"mosquitto.conf": conf, "security.json": append(security, '\n')} {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s differs from testdata (%v); look at the change, then run with -update. Now:\n%s", name, err, got)
		}
	}
}

func TestConfigSaysWhatIsWrong(t *testing.T) {
	for want, change := range map[string]func(*Broker){
		"listener of the things":     func(b *Broker) { b.Things = "8883" },
		"listener of the services":   func(b *Broker) { b.Services = "a b:1" },
		"device ca":                  func(b *Broker) { b.DeviceCA = "" },
		"line breaks":                func(b *Broker) { b.Key = "x\nallow_anonymous true" },
		"reserved for things":        func(b *Broker) { b.Admins = []string{"CN=vic:1"} },
		"security file is empty":     func(b *Broker) { b.SecurityFile = "" },
		"no spaces around it":        func(b *Broker) { b.Cert = " x" },
		"want a common name":         func(b *Broker) { b.Admins = []string{""} },
		"want no line breaks and no": func(b *Broker) { b.User = "a\rb" },
	} {
		b := example
		change(&b)
		if _, err := b.Write(t.TempDir()); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestWriteKeepsTheFleet: the security file belongs to the broker once it is there.
func TestWriteKeepsTheFleet(t *testing.T) {
	b, dir := example, t.TempDir()
	b.SecurityFile = filepath.Join(dir, "security.json")
	for _, content := range []string{"", "what the broker wrote"} {
		if content != "" {
			if err := os.WriteFile(b.SecurityFile, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if file, err := b.Write(dir); err != nil || file != filepath.Join(dir, "mosquitto.conf") {
			t.Fatal(file, err)
		}
	}
	if got, err := os.ReadFile(b.SecurityFile); err != nil || string(got) != "what the broker wrote" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestParseResponses(t *testing.T) {
	// Of mosquitto 2.0.11, shortened.
	got, err := parseResponses([]byte(`{"responses":[{"command":"listClients","correlationData":"x","data":{"totalCount":2,"clients":[` +
		`{"username":"CN=vic:1","textname":"","roles":[{"rolename":"thing/1/vic:1"}],"groups":[]},{"username":"kenneld","disabled":true,"roles":[],"groups":[]}]}},` +
		`{"command":"createRole","error":"Role already exists","correlationData":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []response{{Command: "listClients", Correlation: "x"}, {Command: "createRole", Correlation: "x", Error: roleKnown}}
	want[0].Data.TotalCount = 2
	want[0].Data.Clients = []client{{Username: "CN=vic:1", Roles: []roleRef{{"thing/1/vic:1"}}},
		{Username: "kenneld", Disabled: true, Roles: []roleRef{}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "[]", "{}", `{"responses":[]}`, `{"responses":[` + strings.Repeat("{},", maxResponses) + `{}]}`} {
		if _, err := parseResponses([]byte(bad)); err == nil {
			t.Errorf("%.40q accepted", bad)
		}
	}
}

// FuzzParseResponses: what is read can be written and read again, and is then the same.
func FuzzParseResponses(f *testing.F) {
	f.Add([]byte(`{"responses":[{"command":"listClients","correlationData":"x","data":{"totalCount":1,"clients":[{"username":"CN=vic:1","roles":[{"rolename":"r"}]}]}}]}`))
	f.Add([]byte(`{"responses":[{"command":"createRole","error":"Role already exists"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := parseResponses(b)
		if err != nil {
			return
		}
		once, err := json.Marshal(map[string]any{"responses": got})
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parseResponses(once); err != nil || !reflect.DeepEqual(got, again) {
			t.Fatalf("%+v -> %+v, %v", got, again, err)
		}
		for _, r := range got {
			for _, c := range r.Data.Clients {
				if id, ok := thingOf(c.Username); ok && username(id) != c.Username {
					t.Fatalf("%q is %s", c.Username, id)
				}
			}
		}
	})
}
