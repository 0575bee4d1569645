package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
	"github.com/mochi-mqtt/server/v2/system"

	"kennel/infra/admission"
	"kennel/infra/api/topics"
	"kennel/infra/logging"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/mqtt/brokerauth"
)

const (
	maxFilters = 32                    // subscriptions of one thing; an agent needs two
	maxDenied  = 16                    // refused filters before a session is ended
	voidTopic  = "$kennel/broker/void" // no client subscribes here
)

// hook applies the fleet's rules inside mochi: which clients may connect, and which topics they may use.
type hook struct {
	mochi.HookBase
	server   *mochi.Server
	log      *slog.Logger
	denied   *brokerauth.Denied
	door     *admission.Door
	named    *logging.Sparse // refusals of clients with a certificate that are published and logged
	nameless *logging.Sparse // and of those without one, who must not drown the others
	refused  atomic.Int64
	stopping atomic.Bool
}

func newHook(server *mochi.Server, deny *brokerauth.Denied, door *admission.Door, log *slog.Logger) *hook {
	return &hook{server: server, log: log, denied: deny, door: door, named: logging.NewSparse(time.Second/20, 100), nameless: logging.NewSparse(10*time.Second, 50)}
}

// ID names the hook in mochi's log.
func (h *hook) ID() string { return "kennel" }

// Provides lists the methods below.
func (h *hook) Provides(b byte) bool {
	switch b {
	case mochi.OnConnect, mochi.OnConnectAuthenticate, mochi.OnSessionEstablished, mochi.OnPacketRead, mochi.OnACLCheck, mochi.OnSubscribe,
		mochi.OnSubscribed, mochi.OnPacketEncode, mochi.OnWill, mochi.OnDisconnect, mochi.OnSysInfoTick:
		return true
	}
	return false
}

// OnConnect judges a CONNECT. It answers a refused one itself, because mochi closes without an answer after an error here.
func (h *hook) OnConnect(cl *mochi.Client, pk packets.Packet) error {
	p, ok := cl.Net.Conn.(*peer)
	if !ok {
		return packets.ErrNotAuthorized // no other listener exists
	}
	code, why := h.judge(p, pk)
	if why == nil {
		cl.Properties.Clean = true // every session is clean, even if the client asked for another
		return nil
	}
	h.turn(p, pk.Connect.ClientIdentifier, why)
	if err := h.server.SendConnack(cl, code, false, nil); err != nil {
		return err
	}
	return fmt.Errorf("refused: %s", why.Reason)
}

// judge returns the CONNACK code of 3.1.1 and the reason of a refusal, or nil.
func (h *hook) judge(p *peer, pk packets.Packet) (packets.Code, *brokerauth.Refusal) {
	who, c := p.who, pk.Connect
	no := func(code, format string, args ...any) *brokerauth.Refusal {
		return &brokerauth.Refusal{Code: code, Reason: fmt.Sprintf(format, args...)}
	}
	if who.Refusal == nil {
		who.Refusal = h.denied.Check(who)
	}
	switch {
	case who.Refusal != nil:
		return packets.Err3NotAuthorized, who.Refusal
	case pk.ProtocolVersion != 4:
		return packets.Err3UnsupportedProtocolVersion, no(brokerapi.CodeProtocol, "protocol level %d: want 4 (MQTT 3.1.1)", pk.ProtocolVersion)
	}
	if why := who.ClientID(c.ClientIdentifier); why != nil {
		return packets.Err3ClientIdentifierNotValid, why
	}
	if c.WillFlag {
		if why := h.mayPublish(p, c.WillTopic, len(c.WillPayload), c.WillQos, c.WillRetain); why != "" {
			return packets.Err3NotAuthorized, no(brokerapi.CodeWill, "last will: %s", why)
		}
	}
	// MQTT lets a newcomer take over the session of its client id; here only with the same name in its certificate.
	if old, ok := h.server.Clients.Get(c.ClientIdentifier); ok {
		if o, ok := old.Net.Conn.(*peer); !ok || o.who.CN != who.CN {
			return packets.Err3ClientIdentifierNotValid, no(brokerapi.CodeTakeover, "client id %.64q is in use under another certificate name",
				c.ClientIdentifier)
		}
	}
	return packets.CodeSuccess, nil
}

// mayPublish says why p may not publish such a message, or "".
func (h *hook) mayPublish(p *peer, topic string, size int, qos byte, retain bool) string {
	switch {
	case size > topics.MaxPayload:
		return fmt.Sprintf("payload of %d bytes on %.120q: at most %d", size, topic, topics.MaxPayload)
	case p.who.Service:
		return ""
	case !topics.MayPublish(p.who.Thing, topic):
		return fmt.Sprintf("topic %.120q: %s publishes below its own up/ and req/ only", topic, p.who.Thing)
	case retain:
		return fmt.Sprintf("retained message on %.120q: a thing retains nothing", topic)
	case qos > 1:
		return fmt.Sprintf("QoS %d on %.120q: want 0 or 1", qos, topic)
	}
	return ""
}

// OnConnectAuthenticate accepts every client that OnConnect did not refuse.
func (h *hook) OnConnectAuthenticate(cl *mochi.Client, _ packets.Packet) bool {
	p, ok := cl.Net.Conn.(*peer)
	return ok && p.who.Refusal == nil
}

// OnSessionEstablished notes that the client is in.
func (h *hook) OnSessionEstablished(cl *mochi.Client, _ packets.Packet) {
	if p, ok := cl.Net.Conn.(*peer); ok {
		p.up.Store(true)
		if why := h.denied.Check(p.who); why != nil { // the deny order came after its CONNECT and before it had a session
			h.end(p, cl.ID, why)
		}
		h.log.Debug("client connected", "client_id", cl.ID, logging.Addr, cl.Net.Remote)
	}
}

// OnPacketRead ends the connection at a forbidden PUBLISH or too many filters, before mochi acts on it. The will is published, as after
// any connection that ended badly.
func (h *hook) OnPacketRead(cl *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	p, ok := cl.Net.Conn.(*peer)
	if !ok {
		return pk, packets.ErrRejectPacket
	}
	switch pk.FixedHeader.Type {
	case packets.Publish:
		if why := h.mayPublish(p, pk.TopicName, len(pk.Payload), pk.FixedHeader.Qos, pk.FixedHeader.Retain); why != "" {
			h.turn(p, cl.ID, &brokerauth.Refusal{Code: brokerapi.CodePublish, Reason: why})
			return pk, packets.ErrRejectPacket
		}
		if pk.TopicName == brokerapi.DenyTopic { // here, because the answer to the packet says that it is done
			if err := h.deny(pk.Payload); err != nil {
				return pk, packets.ErrRejectPacket
			}
		}
	case packets.Subscribe:
		if n := cl.State.Subscriptions.Len() + len(pk.Filters); !p.who.Service && n > maxFilters {
			h.turn(p, cl.ID, &brokerauth.Refusal{Code: brokerapi.CodeSubscribe, Reason: fmt.Sprintf("%d subscriptions: want at most %d", n, maxFilters)})
			return pk, packets.ErrRejectPacket
		}
	}
	return pk, nil
}

// OnACLCheck is asked for every PUBLISH, every filter of a SUBSCRIBE, and every delivery (VEC-FLE-01). For the last two topic is a filter
// or a topic; the rule for filters covers both.
func (h *hook) OnACLCheck(cl *mochi.Client, topic string, write bool) bool {
	p, ok := cl.Net.Conn.(*peer)
	switch {
	case !ok || p.who.Refusal != nil:
		return false
	case p.who.Service:
		return true
	case write:
		return topics.MayPublish(p.who.Thing, topic)
	}
	return topics.MaySubscribe(p.who.Thing, topic)
}

// OnSubscribe grants things QoS 0. At QoS 1 mochi waits for the receiver's socket inside the publisher's call, so that one robot that
// stops reading would hold up the cloud; and it keeps up to 8192 messages for it.
func (h *hook) OnSubscribe(cl *mochi.Client, pk packets.Packet) packets.Packet {
	if p, ok := cl.Net.Conn.(*peer); ok && !p.who.Service {
		for i := range pk.Filters {
			pk.Filters[i].Qos = 0
		}
	}
	return pk
}

// OnSubscribed notes refused filters; a client that keeps asking is disconnected.
func (h *hook) OnSubscribed(cl *mochi.Client, pk packets.Packet, granted []byte) {
	p, ok := cl.Net.Conn.(*peer)
	if !ok {
		return
	}
	for i, code := range granted {
		if code < packets.ErrUnspecifiedError.Code || i >= len(pk.Filters) {
			continue
		}
		h.refuse(p.who.Refused(cl.Net.Remote, cl.ID, brokerapi.CodeSubscribe,
			fmt.Sprintf("filter %.120q: want topics of %s below its own down/ and res/", pk.Filters[i].Filter, p.who.CN)))
		if p.denied.Add(1) > maxDenied {
			_ = p.Close()
		}
	}
}

// OnPacketEncode mends a refusal that mochi decided on: it answers a malformed CONNECT of 3.1.1 with a code of MQTT 5, which clients take
// for success.
func (h *hook) OnPacketEncode(_ *mochi.Client, pk packets.Packet) packets.Packet {
	if pk.FixedHeader.Type == packets.Connack && pk.ReasonCode > packets.Err3NotAuthorized.Code {
		pk.ReasonCode = packets.Err3UnsupportedProtocolVersion.Code
	}
	return pk
}

// OnWill silences wills while the broker stops (see the package comment). mochi cannot be told to drop one.
func (h *hook) OnWill(_ *mochi.Client, will mochi.Will) (mochi.Will, error) {
	if h.stopping.Load() {
		return mochi.Will{TopicName: voidTopic}, nil
	}
	return will, nil
}

// OnDisconnect gives the ends that mochi decides on a reason.
func (h *hook) OnDisconnect(cl *mochi.Client, err error, _ bool) {
	p, ok := cl.Net.Conn.(*peer)
	if !ok {
		return
	}
	h.log.Debug("client disconnected", "client_id", cl.ID, logging.Addr, cl.Net.Remote, logging.Err, err)
	switch {
	case errors.Is(err, packets.ErrPacketTooLarge):
		h.turn(p, cl.ID, &brokerauth.Refusal{Code: brokerapi.CodePublish, Reason: fmt.Sprintf("packet larger than %d bytes", maxPacket)})
	case err != nil && !time.Now().Before(p.who.NotAfter):
		h.turn(p, cl.ID, &brokerauth.Refusal{Code: brokerapi.CodeExpired, Reason: "the certificate ended during the session: renew it"})
	}
}

// OnSysInfoTick publishes the stats.
func (h *hook) OnSysInfoTick(i *system.Info) {
	unfinished, _, _ := h.door.Counts()
	b, err := brokerapi.Stats{
		StartedUnix: i.Started, Connected: i.ClientsConnected, Subscriptions: i.Subscriptions, Retained: i.Retained, Inflight: i.Inflight,
		MessagesReceived: i.MessagesReceived, MessagesSent: i.MessagesSent, MessagesDropped: i.MessagesDropped, Refused: h.refused.Load(),
		Muted:      h.named.Held() + h.nameless.Held(),
		Unfinished: int64(unfinished), Away: h.door.Away(), News: h.door.News(),
	}.Encode()
	h.publish(brokerapi.StatsTopic, true, b, err) // retained, so that a new subscriber need not wait for the next one
}

// kick closes a session on the cloud's order.
func (h *hook) kick(_ *mochi.Client, _ packets.Subscription, pk packets.Packet) {
	k, err := brokerapi.ParseKick(pk.Payload)
	if err != nil {
		h.log.Warn("kick order unreadable", logging.Err, err)
		return
	}
	cl, ok := h.server.Clients.Get(k.ClientID)
	if !ok {
		return // not here: another broker's, or gone
	}
	if p, ok := cl.Net.Conn.(*peer); ok {
		h.end(p, cl.ID, &brokerauth.Refusal{Code: brokerapi.CodeKicked, Reason: k.Reason})
	}
}

// deny takes an order and ends the sessions that it is about. Only an order that is not on disk is an error: the cloud gives it again.
func (h *hook) deny(payload []byte) error {
	order, err := brokerapi.ParseDeny(payload)
	if err != nil {
		h.log.Warn("deny order unreadable", logging.Err, err)
		return nil
	}
	changed, err := h.denied.Take(order, time.Now())
	if changed {
		for _, cl := range h.server.Clients.GetAll() {
			if p, ok := cl.Net.Conn.(*peer); ok && !cl.Closed() {
				if why := h.denied.Check(p.who); why != nil {
					h.end(p, cl.ID, why)
				}
			}
		}
	}
	if err != nil {
		h.log.Error("deny list not saved", logging.Err, err)
	}
	return err
}

// end closes a session. Not by cl.Stop: mochi forgets the will of a client it stopped between two packets.
func (h *hook) end(p *peer, clientID string, why *brokerauth.Refusal) {
	h.turn(p, clientID, why)
	_ = p.Close()
}

// turn notes that a client is sent away.
func (h *hook) turn(p *peer, clientID string, why *brokerauth.Refusal) {
	p.turned.Store(true)
	h.refuse(p.who.Refused(p.RemoteAddr().String(), clientID, why.Code, why.Reason))
}

// refuse counts, logs and publishes a refusal. Beyond the rate limit it only counts.
func (h *hook) refuse(r brokerapi.Refusal) {
	h.refused.Add(1)
	limit := h.named
	if r.CN == "" {
		limit = h.nameless
	}
	muted, ok := limit.Allow()
	if !ok {
		return
	}
	r.At, r.Muted = time.Now().UTC(), muted
	h.log.Warn("client refused", logging.Addr, r.Addr, "client_id", r.ClientID, "cn", r.CN, "code", r.Code, "reason", r.Reason, "muted", r.Muted)
	b, err := r.Encode()
	h.publish(brokerapi.RefusedTopic, false, b, err)
}

func (h *hook) publish(topic string, retain bool, payload []byte, err error) {
	if err == nil {
		err = h.server.Publish(topic, payload, retain, 0)
	}
	if err != nil {
		h.log.Error("publish", "topic", topic, logging.Err, err)
	}
}
