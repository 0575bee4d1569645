package emqx

import (
	"bytes"
	_ "embed"
	"fmt"
	"net"
	"strings"
	"text/template"

	"kennel/infra/api/topics"
	"kennel/infra/errs"
)

//go:embed emqx.conf.tmpl
var confText string

var conf = template.Must(template.New("emqx.conf").Option("missingkey=error").Parse(confText))

// Broker describes one EMQX for Kennel. Files are PEM, the authorities self-signed anchors (see mosquitto.Anchor); a listener is host:port.
type Broker struct {
	Things    string   // listener of the robots
	Services  string   // listener of the cloud's processes
	Cert      string   // server certificate with its chain
	Key       string   // its key
	DeviceCA  string   // the authority that issues to things
	ServiceCA string   // the authority that issues to services
	ACLFile   string   // path at which EMQX finds the result of Rules
	Names     []string // common names of services; empty: kenneld
}

// Config returns emqx.conf.
func (b Broker) Config() ([]byte, error) {
	for name, addr := range map[string]string{"things": b.Things, "services": b.Services} {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return nil, errs.New(errs.Invalid, "emqx: listener of the %s %q: want host:port", name, addr)
		}
	}
	for name, v := range map[string]string{"cert": b.Cert, "key": b.Key, "device ca": b.DeviceCA, "service ca": b.ServiceCA, "acl file": b.ACLFile,
		"things": b.Things, "services": b.Services} {
		if v == "" || strings.ContainsAny(v, "\"\\\r\n$") {
			return nil, errs.New(errs.Invalid, "emqx: %s %q: want text without quotes, backslashes, dollar signs and line breaks", name, v)
		}
	}
	var out bytes.Buffer
	err := conf.Execute(&out, struct {
		Broker
		MaxPacket int
	}{b, topics.MaxPayload + 2<<10}) // and room for a header with a topic
	return out.Bytes(), err
}

// Rules returns the authorisation file: services may use all topics, a thing its own (VEC-FLE-01), other clients none. EMQX takes
// the prefix of a shared subscription off before it looks here; a thing may therefore share its own topics, with itself.
func (b Broker) Rules() ([]byte, error) {
	names := b.Names
	if len(names) == 0 {
		names = []string{"kenneld"}
	}
	var out bytes.Buffer
	for _, n := range names {
		if n == "" || strings.ContainsAny(n, "=\"\\\r\n$") {
			return nil, errs.New(errs.Invalid, "emqx: service %q: want a common name without =, which only names of things contain", n)
		}
		fmt.Fprintf(&out, "{allow, {username, %q}, all, [\"#\", \"$SYS/#\"]}.\n", n)
	}
	quoted := func(list ...string) string { return `"` + strings.Join(list, `", "`) + `"` }
	// The client id is the common name of the thing's certificate.
	fmt.Fprintf(&out, "{allow, {username, {re, \"=\"}}, {publish, [{qos, [0, 1]}, {retain, false}]}, [%s]}.\n",
		quoted(topics.UpTopic("${clientid}", "+"), topics.ReqTopic("${clientid}", "+", "+")))
	fmt.Fprintf(&out, "{allow, {username, {re, \"=\"}}, subscribe, [%s]}.\n", quoted(topics.ThingFilters("${clientid}")...))
	out.WriteString("{deny, all}.\n")
	return out.Bytes(), nil
}
