package tokenapi

import (
	"context"
	"log/slog"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/identity/token"
	"kennel/infra/api/tokenwire"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// mqttPeer is the address of who asks over MQTT: only the broker knows another.
const mqttPeer = "mqtt"

// Handlers returns the robots' requests by "service/method". The thing that the broker proved is who asks, whatever a body says.
func Handlers(svc Service, log *slog.Logger) map[string]kitmqtt.ReqHandler {
	e := makeEndpoints(svc, log)
	return map[string]kitmqtt.ReqHandler{
		tokenwire.Service + "/" + tokenwire.AssociateMethod: handler(e.associate, func(p token.Peer, b tokenwire.Associate) any {
			p.UserSession = logging.Secret(b.UserSession)
			return with[token.AssociateRequest]{p, token.AssociateRequest{SessionCertificate: []byte(b.SessionCertificate), ClientName: b.ClientName, AppID: b.AppID,
				SkipClientToken: b.SkipClientToken, RevokeClientTokens: b.RevokeClientTokens, GenerateSTS: b.GenerateSTSToken, ExpirationMinutes: b.ExpirationMinutes}}
		}),
		tokenwire.Service + "/" + tokenwire.ReassociateMethod: handler(e.reassociate, func(p token.Peer, b tokenwire.Reassociate) any {
			p.UserSession = logging.Secret(b.UserSession)
			return with[token.ReassociateRequest]{p, token.ReassociateRequest{ClientName: b.ClientName, AppID: b.AppID, SkipClientToken: b.SkipClientToken,
				GenerateSTS: b.GenerateSTSToken, ExpirationMinutes: b.ExpirationMinutes}}
		}),
		tokenwire.Service + "/" + tokenwire.SecondaryMethod: handler(e.secondary, func(p token.Peer, b tokenwire.Secondary) any {
			p.AccessToken = logging.Secret(b.AccessToken)
			return with[token.SecondaryRequest]{p, token.SecondaryRequest{UserSession: logging.Secret(b.UserSession), ClientName: b.ClientName, AppID: b.AppID}}
		}),
		tokenwire.Service + "/" + tokenwire.RefreshMethod: handler(e.refresh, func(p token.Peer, b tokenwire.Refresh) any {
			p.AccessToken = logging.Secret(b.AccessToken)
			return with[token.RefreshRequest]{p, token.RefreshRequest{JWT: b.JWT, STS: b.STS, ExpirationMinutes: b.ExpirationMinutes}}
		}),
		tokenwire.Service + "/" + tokenwire.DisassociateMethod: handler(e.disassociate, func(p token.Peer, b tokenwire.Disassociate) any {
			p.AccessToken = logging.Secret(b.AccessToken)
			return with[empty]{peer: p}
		}),
		tokenwire.Service + "/" + tokenwire.CertificateMethod: handler(e.certificate, func(p token.Peer, b tokenwire.Certificate) any {
			return with[[]byte]{p, []byte(b.SessionCertificate)}
		}),
	}
}

// handler answers requests through an endpoint.
func handler[B tokenwire.Body](ep endpoint.Endpoint, request func(token.Peer, B) any) kitmqtt.ReqHandler {
	return kitmqtt.Handler(tokenwire.Parse[B], func(ctx context.Context, id thing.ID, b B) (answer tokenwire.Bundle, err error) {
		resp, err := ep(ctx, request(token.Peer{Thing: id, Addr: mqttPeer}, b))
		if err != nil {
			return answer, err
		}
		out, _ := resp.(token.Bundle) // else the answer is empty
		answer.Token, answer.ClientToken = out.Token.Reveal(), out.ClientToken.Reveal()
		if c := out.STS; c != nil {
			answer.STS = &tokenwire.STS{AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey.Reveal(), SessionToken: c.SessionToken.Reveal(), Expiration: c.Expires.UTC()}
		}
		return answer, nil
	})
}
