package mosquitto

import (
	"encoding/json"
	"fmt"
	"strings"

	"kennel/infra/api/topics"
	"kennel/infra/thing"
)

// Topics of the dynamic security plugin.
const (
	controlTopic  = "$CONTROL/dynamic-security/v1"
	responseTopic = controlTopic + "/response"
)

// ACL types of the plugin.
const (
	sendACL      = "publishClientSend"
	receiveACL   = "publishClientReceive"
	subscribeACL = "subscribePattern"
)

// The plugin's file and messages share these.
type (
	acl struct {
		Type     string `json:"acltype"`
		Topic    string `json:"topic"`
		Priority int    `json:"priority"`
		Allow    bool   `json:"allow"`
	}
	role struct {
		Name string `json:"rolename"`
		ACLs []acl  `json:"acls"`
	}
	roleRef struct {
		Name string `json:"rolename"`
	}
	client struct {
		Username    string    `json:"username"`
		Description string    `json:"textdescription,omitempty"`
		Disabled    bool      `json:"disabled,omitempty"`
		Roles       []roleRef `json:"roles"`
	}
	securityFile struct {
		Defaults map[string]bool `json:"defaultACLAccess"`
		Clients  []client        `json:"clients"`
		Roles    []role          `json:"roles"`
	}
)

// blocked reports whether Block took the client's rights.
func (c client) blocked() bool { return c.Disabled && strings.HasPrefix(c.Description, blockedText) }

// command is one command to the plugin; only the fields it needs are set.
type command struct {
	Command     string    `json:"command"`
	Correlation string    `json:"correlationData"`
	Username    string    `json:"username,omitempty"`
	Description *string   `json:"textdescription,omitempty"`
	Rolename    string    `json:"rolename,omitempty"`
	Roles       []roleRef `json:"roles,omitempty"`
	ACLs        []acl     `json:"acls,omitempty"`
	Verbose     bool      `json:"verbose,omitempty"`
	Count       int       `json:"count,omitempty"`
	Offset      int       `json:"offset,omitempty"`
}

// response is the plugin's answer to one command.
type response struct {
	Command     string `json:"command"`
	Correlation string `json:"correlationData"`
	Error       string `json:"error"` // "": done
	Data        struct {
		TotalCount int      `json:"totalCount"`
		Clients    []client `json:"clients"`
		Client     client   `json:"client"`
	} `json:"data"`
}

// maxResponses bounds the responses kept from one message.
const maxResponses = 1024

// parseResponses reads one message of the plugin. Responses to other services' commands arrive too.
func parseResponses(b []byte) ([]response, error) {
	var m struct {
		Responses []response `json:"responses"`
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("dynamic security response: %w", err)
	}
	if len(m.Responses) == 0 || len(m.Responses) > maxResponses {
		return nil, fmt.Errorf("dynamic security response: %d responses: want 1 to %d", len(m.Responses), maxResponses)
	}
	return m.Responses, nil
}

// username returns Mosquitto's name of a thing: the subject of its certificate, which has a common name and nothing else.
func username(id thing.ID) string { return "CN=" + string(id) }

// thingOf is the inverse of username.
func thingOf(name string) (thing.ID, bool) {
	s, ok := strings.CutPrefix(name, "CN=")
	if !ok {
		return "", false
	}
	id, err := thing.Parse(s)
	return id, err == nil
}

// roleVersion counts the changes of thingACLs: things with another version's role get the present one at the next connection.
const roleVersion = "1"

func roleName(id thing.ID) string { return "thing/" + roleVersion + "/" + string(id) }

// thingACLs is VEC-FLE-01 for one thing. The plugin of 2.0 knows no placeholders, so each thing has a role of its own.
func thingACLs(id thing.ID) []acl {
	var out []acl
	for _, topic := range []string{topics.UpTopic(id, "+"), topics.ReqTopic(id, "+", "+")} {
		out = append(out, acl{sendACL, topic, 0, true})
	}
	for _, filter := range topics.ThingFilters(id) {
		out = append(out, acl{subscribeACL, filter, 0, true})
	}
	return out
}
