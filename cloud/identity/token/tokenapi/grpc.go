// Package tokenapi is token over the wires: gRPC for original robots (infra/api/tokenpb), MQTT requests for our agent (infra/api/tokenwire),
// HTTP for operators, owners and programs that pin a robot's certificate.
//
//	GET    /v1/things/{thing}/tokens           -> access tokens, newest first                owner, staff
//	DELETE /v1/things/{thing}/tokens           -> {"revoked": n}; the association ends       owner, changers
//	DELETE /v1/things/{thing}/tokens/{token}   -> {"revoked": n}; with what came of it       owner, changers
//	GET    /v1/things/{thing}/apps             -> apps with a client token                   owner, staff
//	DELETE /v1/things/{thing}/apps             -> 204                                        owner, changers
//	DELETE /v1/things/{thing}/apps/{app}       -> 204                                        owner, changers
//	GET    /v1/my/robots/{thing}/programs            -> what may talk to the robot           owner
//	POST   /v1/my/robots/{thing}/programs            -> the file of a program, its token once owner
//	DELETE /v1/my/robots/{thing}/programs/{program}  -> 204                                  owner
//	GET    /.well-known/jwks.json              -> public keys of access tokens (RFC 7517)    anybody
//	GET    /vic/{esn}                          -> the robot's session certificate, PEM       anybody, at a pace
//
// An owner reaches the robots that are theirs; others' answer as unknown ones.
package tokenapi

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-kit/kit/endpoint"
	"google.golang.org/grpc"

	"kennel/cloud/identity/token"
	"kennel/infra/api/tokenpb"
	"kennel/infra/kit"
	"kennel/infra/kit/kitgrpc"
	"kennel/infra/logging"
)

// Metadata that original robots send.
const (
	userSession = "anki-user-session"
	appKey      = "anki-app-key"
	accessToken = "anki-access-token"
)

// timeout bounds one request.
const timeout = 10 * time.Second

// Service is the rules, as *token.Service has them.
type Service interface {
	AssociatePrimaryUser(ctx context.Context, p token.Peer, r token.AssociateRequest) (token.Bundle, error)
	ReassociatePrimaryUser(ctx context.Context, p token.Peer, r token.ReassociateRequest) (token.Bundle, error)
	AssociateSecondaryClient(ctx context.Context, p token.Peer, r token.SecondaryRequest) (token.Bundle, error)
	DisassociatePrimaryUser(ctx context.Context, p token.Peer) error
	RefreshToken(ctx context.Context, p token.Peer, r token.RefreshRequest) (token.Bundle, error)
	ListRevokedTokens(ctx context.Context, p token.Peer, previous string) (token.Page, error)
	RevokeFactoryCertificate(ctx context.Context, p token.Peer, certificateID string) error
	RevokeTokens(ctx context.Context, p token.Peer, claim, key string) (int, error)
	StoreCertificate(ctx context.Context, p token.Peer, certPEM []byte) error
}

// with is a request and who makes it.
type with[R any] struct {
	peer token.Peer
	req  R
}

// Requests without a body of their own, and those of one word or two.
type (
	empty    struct{}
	previous string
	certID   string
	search   struct{ claim, key string }
)

// endpoints are those that gRPC and MQTT share.
type endpoints struct{ associate, reassociate, secondary, refresh, disassociate, certificate, list, factory, revoke endpoint.Endpoint }

func makeEndpoints(svc Service, log *slog.Logger) endpoints {
	wrap := endpoint.Chain(kit.Recover(log), kit.Timeout(timeout))
	return endpoints{
		associate: wrap(kit.Typed(func(ctx context.Context, w with[token.AssociateRequest]) (token.Bundle, error) {
			return svc.AssociatePrimaryUser(ctx, w.peer, w.req)
		})),
		reassociate: wrap(kit.Typed(func(ctx context.Context, w with[token.ReassociateRequest]) (token.Bundle, error) {
			return svc.ReassociatePrimaryUser(ctx, w.peer, w.req)
		})),
		secondary: wrap(kit.Typed(func(ctx context.Context, w with[token.SecondaryRequest]) (token.Bundle, error) {
			return svc.AssociateSecondaryClient(ctx, w.peer, w.req)
		})),
		refresh: wrap(kit.Typed(func(ctx context.Context, w with[token.RefreshRequest]) (token.Bundle, error) {
			return svc.RefreshToken(ctx, w.peer, w.req)
		})),
		disassociate: wrap(kit.Typed(func(ctx context.Context, w with[empty]) (empty, error) {
			return empty{}, svc.DisassociatePrimaryUser(ctx, w.peer)
		})),
		certificate: wrap(kit.Typed(func(ctx context.Context, w with[[]byte]) (empty, error) {
			return empty{}, svc.StoreCertificate(ctx, w.peer, w.req)
		})),
		list: wrap(kit.Typed(func(ctx context.Context, w with[previous]) (token.Page, error) {
			return svc.ListRevokedTokens(ctx, w.peer, string(w.req))
		})),
		factory: wrap(kit.Typed(func(ctx context.Context, w with[certID]) (empty, error) {
			return empty{}, svc.RevokeFactoryCertificate(ctx, w.peer, string(w.req))
		})),
		revoke: wrap(kit.Typed(func(ctx context.Context, w with[search]) (int, error) {
			return svc.RevokeTokens(ctx, w.peer, w.req.claim, w.req.key)
		})),
	}
}

// Register adds the published service to s.
func Register(s grpc.ServiceRegistrar, svc Service, log *slog.Logger) {
	e := makeEndpoints(svc, log)
	tokenpb.RegisterTokenServer(s, &server{
		associate: kitgrpc.Handler(e.associate, func(ctx context.Context, m *tokenpb.AssociatePrimaryUserRequest) (any, error) {
			return with[token.AssociateRequest]{peerOf(ctx), token.AssociateRequest{SessionCertificate: m.GetSessionCertificate(), ClientName: m.GetClientName(), AppID: m.GetAppId(),
				SkipClientToken: m.GetSkipClientToken(), RevokeClientTokens: m.GetRevokeClientTokens(), GenerateSTS: m.GetGenerateStsToken(), ExpirationMinutes: m.GetExpirationMinutes()}}, nil
		}, func(resp any) (*tokenpb.AssociatePrimaryUserResponse, error) {
			return &tokenpb.AssociatePrimaryUserResponse{Data: bundle(resp)}, nil
		}),
		reassociate: kitgrpc.Handler(e.reassociate, func(ctx context.Context, m *tokenpb.ReassociatePrimaryUserRequest) (any, error) {
			return with[token.ReassociateRequest]{peerOf(ctx), token.ReassociateRequest{ClientName: m.GetClientName(), AppID: m.GetAppId(),
				SkipClientToken: m.GetSkipClientToken(), GenerateSTS: m.GetGenerateStsToken(), ExpirationMinutes: m.GetExpirationMinutes()}}, nil
		}, func(resp any) (*tokenpb.ReassociatePrimaryUserResponse, error) {
			return &tokenpb.ReassociatePrimaryUserResponse{Data: bundle(resp)}, nil
		}),
		secondary: kitgrpc.Handler(e.secondary, func(ctx context.Context, m *tokenpb.AssociateSecondaryClientRequest) (any, error) {
			return with[token.SecondaryRequest]{peerOf(ctx), token.SecondaryRequest{UserSession: logging.Secret(m.GetUserSession()), ClientName: m.GetClientName(), AppID: m.GetAppId()}}, nil
		}, func(resp any) (*tokenpb.AssociateSecondaryClientResponse, error) {
			return &tokenpb.AssociateSecondaryClientResponse{Data: bundle(resp)}, nil
		}),
		refresh: kitgrpc.Handler(e.refresh, func(ctx context.Context, m *tokenpb.RefreshTokenRequest) (any, error) {
			return with[token.RefreshRequest]{peerOf(ctx), token.RefreshRequest{JWT: m.GetRefreshJwtTokens(), STS: m.GetRefreshStsTokens(), ExpirationMinutes: m.GetExpirationMinutes()}}, nil
		}, func(resp any) (*tokenpb.RefreshTokenResponse, error) {
			return &tokenpb.RefreshTokenResponse{Data: bundle(resp)}, nil
		}),
		disassociate: kitgrpc.Handler(e.disassociate, func(ctx context.Context, _ *tokenpb.DisassociatePrimaryUserRequest) (any, error) {
			return with[empty]{peer: peerOf(ctx)}, nil
		}, func(any) (*tokenpb.DisassociatePrimaryUserResponse, error) {
			return &tokenpb.DisassociatePrimaryUserResponse{}, nil
		}),
		list: kitgrpc.Handler(e.list, func(ctx context.Context, m *tokenpb.ListRevokedTokensRequest) (any, error) {
			return with[previous]{peerOf(ctx), previous(m.GetPreviousKey())}, nil
		}, func(resp any) (*tokenpb.ListRevokedTokensResponse, error) {
			page, _ := resp.(token.Page)
			return &tokenpb.ListRevokedTokensResponse{Data: &tokenpb.TokensPage{Tokens: page.Tokens, LastKey: page.LastKey, Done: page.Done}}, nil
		}),
		factory: kitgrpc.Handler(e.factory, func(ctx context.Context, m *tokenpb.RevokeFactoryCertificateRequest) (any, error) {
			return with[certID]{peerOf(ctx), certID(m.GetCertificateId())}, nil
		}, func(any) (*tokenpb.RevokeFactoryCertificateResponse, error) {
			return &tokenpb.RevokeFactoryCertificateResponse{}, nil
		}),
		revoke: kitgrpc.Handler(e.revoke, func(ctx context.Context, m *tokenpb.RevokeTokensRequest) (any, error) {
			return with[search]{peerOf(ctx), search{m.GetSearchByIndex(), m.GetKey()}}, nil
		}, func(resp any) (*tokenpb.RevokeTokensResponse, error) {
			n, _ := resp.(int)
			return &tokenpb.RevokeTokensResponse{TokensRevoked: uint32(n)}, nil
		}),
	})
}

// peerOf is who calls, with what the metadata carries.
func peerOf(ctx context.Context) token.Peer {
	p := kitgrpc.PeerFrom(ctx)
	return token.Peer{Chain: p.Chain, Addr: p.Addr, Version: kitgrpc.Value(ctx, "user-agent"), AppKey: logging.Secret(kitgrpc.Value(ctx, appKey)),
		UserSession: logging.Secret(kitgrpc.Value(ctx, userSession)), AccessToken: logging.Secret(kitgrpc.Value(ctx, accessToken))}
}

// bundle is never nil: an original robot reads through it without looking.
func bundle(resp any) *tokenpb.TokenBundle {
	b, _ := resp.(token.Bundle)
	out := &tokenpb.TokenBundle{Token: b.Token.Reveal(), ClientToken: b.ClientToken.Reveal()}
	if c := b.STS; c != nil {
		out.StsToken = &tokenpb.StsToken{AccessKeyId: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey.Reveal(), SessionToken: c.SessionToken.Reveal(),
			Expiration: c.Expires.UTC().Format(time.RFC3339)}
	}
	return out
}

// server is the generated interface over handlers.
type server struct {
	tokenpb.UnimplementedTokenServer

	associate    func(context.Context, *tokenpb.AssociatePrimaryUserRequest) (*tokenpb.AssociatePrimaryUserResponse, error)
	reassociate  func(context.Context, *tokenpb.ReassociatePrimaryUserRequest) (*tokenpb.ReassociatePrimaryUserResponse, error)
	secondary    func(context.Context, *tokenpb.AssociateSecondaryClientRequest) (*tokenpb.AssociateSecondaryClientResponse, error)
	refresh      func(context.Context, *tokenpb.RefreshTokenRequest) (*tokenpb.RefreshTokenResponse, error)
	disassociate func(context.Context, *tokenpb.DisassociatePrimaryUserRequest) (*tokenpb.DisassociatePrimaryUserResponse, error)
	list         func(context.Context, *tokenpb.ListRevokedTokensRequest) (*tokenpb.ListRevokedTokensResponse, error)
	factory      func(context.Context, *tokenpb.RevokeFactoryCertificateRequest) (*tokenpb.RevokeFactoryCertificateResponse, error)
	revoke       func(context.Context, *tokenpb.RevokeTokensRequest) (*tokenpb.RevokeTokensResponse, error)
}

func (s *server) AssociatePrimaryUser(ctx context.Context, m *tokenpb.AssociatePrimaryUserRequest) (*tokenpb.AssociatePrimaryUserResponse, error) {
	return s.associate(ctx, m)
}

func (s *server) ReassociatePrimaryUser(ctx context.Context, m *tokenpb.ReassociatePrimaryUserRequest) (*tokenpb.ReassociatePrimaryUserResponse, error) {
	return s.reassociate(ctx, m)
}

func (s *server) AssociateSecondaryClient(ctx context.Context, m *tokenpb.AssociateSecondaryClientRequest) (*tokenpb.AssociateSecondaryClientResponse, error) {
	return s.secondary(ctx, m)
}

func (s *server) RefreshToken(ctx context.Context, m *tokenpb.RefreshTokenRequest) (*tokenpb.RefreshTokenResponse, error) {
	return s.refresh(ctx, m)
}

func (s *server) DisassociatePrimaryUser(ctx context.Context, m *tokenpb.DisassociatePrimaryUserRequest) (*tokenpb.DisassociatePrimaryUserResponse, error) {
	return s.disassociate(ctx, m)
}

func (s *server) ListRevokedTokens(ctx context.Context, m *tokenpb.ListRevokedTokensRequest) (*tokenpb.ListRevokedTokensResponse, error) {
	return s.list(ctx, m)
}

func (s *server) RevokeFactoryCertificate(ctx context.Context, m *tokenpb.RevokeFactoryCertificateRequest) (*tokenpb.RevokeFactoryCertificateResponse, error) {
	return s.factory(ctx, m)
}

func (s *server) RevokeTokens(ctx context.Context, m *tokenpb.RevokeTokensRequest) (*tokenpb.RevokeTokensResponse, error) {
	return s.revoke(ctx, m)
}
