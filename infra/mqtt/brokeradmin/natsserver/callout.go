package natsserver

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/jwt/v2"

	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/mqtt/brokerauth"
	"kennel/infra/thing"
)

const (
	calloutSubject = "$SYS.REQ.USER.AUTH"
	calloutGroup   = "kenneld"
	calloutWorkers = 8   // logins judged at once in this process; each costs a few signatures
	calloutWaiting = 512 // logins that wait here; beyond that the server refuses them after its own time
	maxFilters     = 32  // subscriptions of a thing's session
)

// verdict is the decision about one login.
type verdict struct {
	who      brokerauth.Identity
	clientID string
	addr     string
	refusal  *brokerauth.Refusal // nil: let in
}

// judge decides on a login. Clients come by MQTT with a certificate of the device authority or of the service authority; TLS has verified that one of
// the two issued it, and which one is decided here (infra/adr/0005).
func (a *Admin) judge(r *jwt.AuthorizationRequest, now time.Time) verdict {
	v := verdict{clientID: r.ClientInformation.MQTT, addr: r.ClientInformation.Host}
	chain, err := chainOf(r.TLS)
	if err != nil {
		v.refusal = &brokerauth.Refusal{Code: brokerapi.CodeTLS, Reason: err.Error()}
		return v
	}
	v.who = a.cfg.Trust().Identify(chain, now)
	switch {
	case v.who.Refusal != nil:
		v.refusal = v.who.Refusal
	case r.ClientInformation.Type != "mqtt":
		v.refusal = &brokerauth.Refusal{Code: brokerapi.CodeProtocol, Reason: fmt.Sprintf("protocol %.20q: want MQTT 3.1.1", r.ClientInformation.Type)}
	default:
		if v.refusal = a.denied.Check(v.who); v.refusal == nil {
			v.refusal = v.who.ClientID(v.clientID)
		}
	}
	return v
}

// chainOf returns the certificates that the client proved possession of, leaf first.
func chainOf(t *jwt.ClientTLS) ([]*x509.Certificate, error) {
	if t == nil {
		return nil, nil
	}
	texts := t.Certs
	if len(t.VerifiedChains) > 0 {
		texts = t.VerifiedChains[0]
	}
	var chain []*x509.Certificate
	for i, text := range texts {
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			return nil, fmt.Errorf("certificate %d of the client: no PEM", i)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d of the client: %w", i, err)
		}
		chain = append(chain, c)
	}
	return chain, nil
}

// rights returns what the session of v may do (VEC-FLE-01).
func (v verdict) rights(user string) *jwt.UserClaims {
	c := jwt.NewUserClaims(user)
	c.Audience = account
	c.Name = string(v.who.Thing)
	if v.who.Service {
		c.Name = v.who.CN
	}
	c.Expires = v.who.NotAfter.Unix()
	c.AllowedConnectionTypes = jwt.StringList{jwt.ConnectionTypeMqtt}
	if v.who.Service {
		c.Pub.Allow, c.Sub.Allow = jwt.StringList{">"}, jwt.StringList{">"}
		return c
	}
	c.Pub.Allow, c.Sub.Allow = thingRights(v.who.Thing)
	c.Limits.Subs = maxFilters
	return c
}

func thingRights(id thing.ID) (pub, sub jwt.StringList) {
	mine := "kennel." + string(id)
	// A thing's subscription at QoS 1 is a consumer of the server's, which delivers on a subject of its own. The server lets no MQTT client subscribe
	// below $MQTT.
	return jwt.StringList{mine + ".up.*", mine + ".req.*.*"}, jwt.StringList{mine + ".down.*", mine + ".res.*", "$MQTT.sub.>"}
}

// answer judges one request of a server and returns the signed response; an error means that the request is not one.
func (a *Admin) answer(ctx context.Context, request []byte, now time.Time) ([]byte, error) {
	r, err := jwt.DecodeAuthorizationRequestClaims(string(request))
	if err != nil {
		return nil, fmt.Errorf("login request: %w", err)
	}
	out := jwt.NewAuthorizationResponseClaims(r.UserNkey)
	out.Audience = r.Server.ID
	v := a.judge(&r.AuthorizationRequest, now)
	if v.refusal == nil {
		if out.Jwt, err = v.rights(r.UserNkey).Encode(a.cfg.Servers.Keys.issuer); err != nil {
			return nil, fmt.Errorf("login of %.80q: %w", v.who.CN, err)
		}
		a.accepted.Add(1)
	} else {
		out.Error = v.refusal.Code
		a.refused(ctx, v, now)
	}
	text, err := out.Encode(a.cfg.Servers.Keys.issuer)
	if err != nil {
		return nil, fmt.Errorf("answer to the login of %.80q: %w", v.who.CN, err)
	}
	return []byte(text), nil
}

// refused counts a refusal and, within a limit, reports it.
func (a *Admin) refused(ctx context.Context, v verdict, now time.Time) {
	a.refusals.Add(1)
	limit := a.named
	if v.who.CN == "" {
		limit = a.nameless
	}
	muted, ok := limit.Allow()
	if !ok || a.cfg.Refused == nil {
		return
	}
	addr := v.addr
	if net.ParseIP(addr) != nil {
		addr = net.JoinHostPort(addr, strconv.Itoa(0)) // the server does not say the port
	}
	r := v.who.Refused(addr, v.clientID, v.refusal.Code, v.refusal.Reason)
	r.At, r.Muted = now.UTC(), muted
	a.cfg.Refused(ctx, r)
}
