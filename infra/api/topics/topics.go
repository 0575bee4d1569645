// Package topics is the only place with MQTT topic strings: who publishes what under which name (design section 4).
//
//	kennel/<thing>/up/{status,das,ota}      robot -> cloud, resent until answered
//	kennel/<thing>/up/live                  robot -> cloud, during a look (infra/api/live)
//	kennel/<thing>/req/<service>/<method>   robot -> cloud, a request; the answer comes on
//	kennel/<thing>/res/<id>                 cloud -> robot
//	kennel/<thing>/down/{ack,jdocs,ota,cmd,intent,live,motion}
//	$kennel/broker/refused                  broker -> cloud: a client was turned away, and why
//
// A thing may publish and subscribe only under its own id (VEC-FLE-01); MayPublish and MaySubscribe are that rule, and every broker
// adapter enforces it. At most 7 slashes and QoS 0/1, so that the contract fits AWS IoT Core too.
package topics

import (
	"errors"
	"fmt"
	"strings"

	"kennel/infra/thing"
)

const root = "kennel"

// Group is the shared-subscription group of the cloud's consumers.
const Group = "kennel"

// BrokerRefused carries refused logins from the embedded broker to the cloud.
const BrokerRefused = "$kennel/broker/refused"

// MaxPayload is the largest payload on any topic, in bytes (AWS IoT Core's limit).
const MaxPayload = 128 << 10

// Class is the second level of a thing's topic: the direction.
type Class string

// The classes.
const (
	Up   Class = "up"
	Down Class = "down"
	Req  Class = "req"
	Res  Class = "res"
)

// Names below up and down.
const (
	Status = "status"
	DAS    = "das"
	OTA    = "ota"
	Ack    = "ack"
	Jdocs  = "jdocs"
	Cmd    = "cmd"
	Intent = "intent"
	Live   = "live"
	Motion = "motion"
)

// Topic is a parsed topic of a thing.
type Topic struct {
	Thing  thing.ID
	Class  Class
	Name   string // up/down: the name; req: the service; res: the request id
	Method string // req only
}

func (t Topic) String() string {
	s := root + "/" + string(t.Thing) + "/" + string(t.Class) + "/" + t.Name
	if t.Method != "" {
		s += "/" + t.Method
	}
	return s
}

// UpTopic returns kennel/<id>/up/<name>.
func UpTopic(id thing.ID, name string) string { return Topic{id, Up, name, ""}.String() }

// DownTopic returns kennel/<id>/down/<name>.
func DownTopic(id thing.ID, name string) string { return Topic{id, Down, name, ""}.String() }

// ReqTopic returns kennel/<id>/req/<service>/<method>.
func ReqTopic(id thing.ID, service, method string) string {
	return Topic{id, Req, service, method}.String()
}

// ResTopic returns kennel/<id>/res/<reqID>.
func ResTopic(id thing.ID, reqID string) string { return Topic{id, Res, reqID, ""}.String() }

// ThingFilters returns what a robot subscribes to: its own down and res topics.
func ThingFilters(id thing.ID) []string {
	return []string{root + "/" + string(id) + "/down/+", root + "/" + string(id) + "/res/+"}
}

// CloudFilters returns what the cloud's consumers subscribe to, as one shared group: each message reaches one of them.
func CloudFilters() []string {
	share := "$share/" + Group + "/" + root + "/+/"
	return []string{share + "up/+", share + "req/+/+"}
}

var errNotOurs = errors.New("want kennel/<thing>/(up|down|res)/<name> or kennel/<thing>/req/<service>/<method>")

// Parse reads a concrete topic (no wildcards).
func Parse(s string) (Topic, error) {
	fail := func(err error) (Topic, error) { return Topic{}, fmt.Errorf("topic %.120q: %w", s, err) }
	part := strings.Split(s, "/")
	if len(part) < 4 || len(part) > 5 || part[0] != root {
		return fail(errNotOurs)
	}
	id, err := thing.Parse(part[1])
	if err != nil {
		return fail(err)
	}
	t := Topic{Thing: id, Class: Class(part[2]), Name: part[3]}
	for _, p := range part[3:] {
		if p == "" || strings.ContainsAny(p, "+#\x00") {
			return fail(errNotOurs)
		}
	}
	switch t.Class {
	case Up, Down, Res:
		if len(part) != 4 {
			return fail(errNotOurs)
		}
	case Req:
		if len(part) != 5 {
			return fail(errNotOurs)
		}
		t.Method = part[4]
	default:
		return fail(errNotOurs)
	}
	return t, nil
}

// MayPublish reports whether thing id may publish on topic: its own up and req topics.
func MayPublish(id thing.ID, topic string) bool {
	t, err := Parse(topic)
	return err == nil && t.Thing == id && (t.Class == Up || t.Class == Req)
}

// MaySubscribe reports whether thing id may subscribe to filter: its own down and res topics, wildcards only in the last level.
func MaySubscribe(id thing.ID, filter string) bool {
	rest, ok := strings.CutPrefix(filter, root+"/"+string(id)+"/")
	if !ok {
		return false
	}
	class, name, ok := strings.Cut(rest, "/")
	if !ok || name == "" || (Class(class) != Down && Class(class) != Res) {
		return false
	}
	return name == "+" || !strings.ContainsAny(name, "/+#\x00")
}
