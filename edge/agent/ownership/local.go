package ownership

import (
	"context"
	"net/http"
	"time"

	"kennel/edge/agent/localapi"
	"kennel/infra/logging"
)

// ExchangeRequest asks for a client token.
type ExchangeRequest struct {
	Session string `json:"session"`
	Client  string `json:"client_name"`
	App     string `json:"app_id"`
}

// TokenMessage carries a client token.
type TokenMessage struct {
	Token string `json:"client_token"`
}

// AuthorizedAnswer says whether a client token lets in.
type AuthorizedAnswer struct {
	Authorized bool `json:"authorized"`
}

// CodeAnswer holds a claim code.
type CodeAnswer struct {
	Code string    `json:"code"`
	Till time.Time `json:"good_until"`
}

// requests are those of the robot's other programs.
//
//	POST /exchange         ExchangeRequest -> TokenMessage     a user session for a client token, which is answered this once
//	POST /authorized       TokenMessage -> AuthorizedAnswer    whether a client token lets in
//	POST /claim-code       {} -> CodeAnswer                    shows a code and returns it
//	POST /clear-user-data  {} -> {}                            the owner has confirmed; agentd ends
func (p *People) requests() map[string]http.Handler {
	return map[string]http.Handler{
		"POST /exchange": localapi.Answer(func(ctx context.Context, r ExchangeRequest) (TokenMessage, error) {
			token, err := p.Exchange(ctx, logging.Secret(r.Session), r.Client, r.App)
			return TokenMessage{token.Reveal()}, err
		}),
		"POST /authorized": localapi.Answer(func(ctx context.Context, r TokenMessage) (AuthorizedAnswer, error) {
			return AuthorizedAnswer{p.tokens.Authorized(ctx, r.Token)}, nil
		}),
		"POST /claim-code": localapi.Answer(func(ctx context.Context, _ localapi.Nothing) (CodeAnswer, error) {
			code, until, err := p.claim.Want(ctx)
			return CodeAnswer{code, until.UTC()}, err
		}),
		"POST /clear-user-data": localapi.Answer(func(context.Context, localapi.Nothing) (localapi.Nothing, error) {
			return localapi.Nothing{}, p.clearUserData()
		}),
	}
}
