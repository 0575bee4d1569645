package mosquitto

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"kennel/infra/api/topics"
	"kennel/infra/atomicfile"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

//go:embed mosquitto.conf.tmpl
var confText string

var conf = template.Must(template.New("mosquitto.conf").Option("missingkey=error").Parse(confText))

// Debian names the plugin's folder after the processor; the container image of the Mosquitto project does not.
var pluginPlaces = []string{"/usr/lib/*/mosquitto_dynamic_security.so", "/usr/lib/mosquitto_dynamic_security.so"}

// Broker describes one Mosquitto for Kennel. Files are PEM; a listener is host:port.
type Broker struct {
	Things    string // listener of the robots, such as 0.0.0.0:8883
	Services  string // listener of the cloud's processes, which need not be reachable from elsewhere
	Cert      string // server certificate with its chain
	Key       string // its key
	DeviceCA  string // the authorities that issue to things, as anchors: see Anchor
	ServiceCA string // the authorities that issue to services, likewise
	DeviceCRL string // revoked things; "": none. Read again on SIGHUP: see Reloader
	PIDFile   string // where Mosquitto writes its process id, for a Reloader; "": nowhere

	MaxThings int // most connections at the robots' listener; 0: 50,000. Mosquitto's limit of file descriptors must be 2,000 above it

	SecurityFile string   // file of the dynamic security plugin; Mosquitto's user must be able to write it and its folder
	Plugin       string   // mosquitto_dynamic_security.so; "": where Debian and the project's image have it
	User         string   // account to run as when started as root; "": mosquitto
	Admins       []string // common names of services; empty: kenneld
}

// FindPlugin returns the dynamic security plugin's file.
func FindPlugin() (string, error) {
	for _, p := range pluginPlaces {
		if found, err := filepath.Glob(p); err == nil && len(found) > 0 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("mosquitto: no dynamic security plugin at %s: is mosquitto 2.0 or newer installed?", strings.Join(pluginPlaces, " or "))
}

// Config returns mosquitto.conf.
func (b Broker) Config() ([]byte, error) {
	things, err := splitListener("things", b.Things)
	if err != nil {
		return nil, err
	}
	services, err := splitListener("services", b.Services)
	if err != nil {
		return nil, err
	}
	if b.Plugin == "" {
		if b.Plugin, err = FindPlugin(); err != nil {
			return nil, err
		}
	}
	for name, file := range map[string]string{
		"cert": b.Cert, "key": b.Key, "device ca": b.DeviceCA, "service ca": b.ServiceCA, "security file": b.SecurityFile,
	} {
		if file == "" {
			return nil, errs.New(errs.Invalid, "mosquitto: %s is empty: want a file", name)
		}
	}
	// The format has neither quotes nor escapes: a value goes to the end of its line.
	for _, v := range []string{b.Cert, b.Key, b.DeviceCA, b.ServiceCA, b.DeviceCRL, b.PIDFile, b.SecurityFile, b.Plugin, b.User} {
		if strings.ContainsAny(v, "\r\n") || v != strings.TrimSpace(v) {
			return nil, errs.New(errs.Invalid, "mosquitto: %q: want no line breaks and no spaces around it", v)
		}
	}
	b.MaxThings = cmp.Or(b.MaxThings, 50_000)
	var out bytes.Buffer
	err = conf.Execute(&out, struct {
		Broker
		Things, Services listener
		MaxPacket        int
	}{b, things, services, topics.MaxPayload + 2<<10}) // and room for a header with a topic
	return out.Bytes(), err
}

type listener struct{ Host, Port string }

func splitListener(name, addr string) (listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || strings.ContainsAny(addr, " \r\n") {
		return listener{}, errs.New(errs.Invalid, "mosquitto: listener of the %s %q: want host:port", name, addr)
	}
	return listener{host, port}, nil
}

// Security returns the first security file of the plugin: services may use all topics, things that are named here their own, other clients
// none. The plugin owns the file from then on. Naming a large fleet here is the quick way to provision a new broker: the plugin of 2.0
// writes its whole file again for every single command.
func (b Broker) Security(things ...thing.ID) ([]byte, error) {
	s := securityFile{Defaults: defaultAccess(), Roles: []role{{Name: adminRole, ACLs: adminACLs()}}}
	for _, name := range b.admins() {
		if name == "" || strings.Contains(name, "=") {
			return nil, errs.New(errs.Invalid, "mosquitto: service %q: want a common name without =, which is reserved for things", name)
		}
		s.Clients = append(s.Clients, client{Username: name, Roles: []roleRef{{Name: adminRole}}})
	}
	for _, id := range things {
		s.Roles = append(s.Roles, role{roleName(id), thingACLs(id)})
		s.Clients = append(s.Clients, client{Username: username(id), Roles: []roleRef{{roleName(id)}}})
	}
	return json.MarshalIndent(s, "", "\t")
}

// Write writes mosquitto.conf into dir, and the security file with these things if there is none yet. It returns the configuration file's
// name.
func (b Broker) Write(dir string, things ...thing.ID) (string, error) {
	text, err := b.Config()
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "mosquitto.conf")
	if err := write(file, text, 0o644); err != nil {
		return "", err
	}
	security, err := b.Security(things...)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(b.SecurityFile); err == nil {
		return file, nil
	}
	if err := write(b.SecurityFile, security, 0o600); err != nil {
		return "", err
	}
	return file, nil
}

func write(file string, data []byte, perm os.FileMode) error {
	folder, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return fmt.Errorf("mosquitto: %w", err)
	}
	defer folder.Close() // everything is synced
	if err := atomicfile.Write(folder, filepath.Base(file), data, perm, 0o700); err != nil {
		return fmt.Errorf("mosquitto: %w", err)
	}
	return nil
}

func (b Broker) admins() []string {
	if len(b.Admins) == 0 {
		return []string{"kenneld"}
	}
	return b.Admins
}

const adminRole = "kennel-service"

// adminACLs is everything, spelled out: # covers no topic that begins with $.
func adminACLs() []acl {
	var out []acl
	for _, topic := range []string{"#", "$SYS/#", "$CONTROL/#", "$kennel/#"} {
		out = append(out, acl{sendACL, topic, 0, true}, acl{receiveACL, topic, 0, true}, acl{subscribeACL, topic, 0, true})
	}
	for _, filter := range topics.CloudFilters() {
		out = append(out, acl{subscribeACL, filter, 0, true})
	}
	return slices.Clip(out)
}
