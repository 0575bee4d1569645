package tokentest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"kennel/cloud/originals/replay"
	"kennel/infra/api/tokenpb"
)

// Fatal stops the cloud process of an original robot for good: no server may make one.
type Fatal = replay.Fatal

// userAgent is how the original robot introduces itself.
const userAgent = "Victor/2.0.1.6076"

// Robot calls the token service as the cloud process of an original robot does: a new connection for each request, the same metadata and
// bodies, the same carelessness about answers.
type Robot struct {
	Addr   string
	TLS    *tls.Config // with the client certificate
	AppKey string
	Cert   []byte // of its SDK gateway, PEM

	Token       string // the content of its token file; "" if there is none
	ClientToken string // of the app that logged in last
	STS         *tokenpb.StsToken
	Claims      map[string]any // of Token, unverified
}

// metadata goes with every request.
type metadata map[string]string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (m metadata) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return m, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (metadata) RequireTransportSecurity() bool { return true }

func (r *Robot) call(ctx context.Context, md metadata, do func(tokenpb.TokenClient) error) (err error) {
	if r.AppKey != "" {
		md["anki-app-key"] = r.AppKey
	}
	conn, err := grpc.NewClient("passthrough:///"+r.Addr, grpc.WithTransportCredentials(credentials.NewTLS(r.TLS)), grpc.WithPerRPCCredentials(md),
		grpc.WithUserAgent(userAgent))
	if err != nil {
		return err
	}
	defer conn.Close()
	return do(tokenpb.NewTokenClient(conn))
}

func session(s string) metadata {
	if s == "" {
		return metadata{}
	}
	return metadata{"anki-user-session": s}
}

func (r *Robot) access() metadata {
	if r.Token == "" {
		return metadata{}
	}
	return metadata{"anki-access-token": r.Token}
}

// store reads a token as the robot does before it writes it to its file.
func (r *Robot) store(text string) error {
	claims, err := replay.Claims(text)
	if err == nil {
		r.Token, r.Claims = text, claims
	}
	return err
}

// Associate acts as a robot to which an app hands a user session for the first time.
func (r *Robot) Associate(ctx context.Context, userSession string) error {
	return r.AssociateWith(ctx, userSession, &tokenpb.AssociatePrimaryUserRequest{SessionCertificate: r.Cert})
}

// AssociateWith is Associate with a body of its own.
func (r *Robot) AssociateWith(ctx context.Context, userSession string, req *tokenpb.AssociatePrimaryUserRequest) error {
	return r.call(ctx, session(userSession), func(c tokenpb.TokenClient) error {
		resp, err := c.AssociatePrimaryUser(ctx, req)
		if err != nil {
			return err
		}
		if resp.Data == nil {
			return Fatal{What: "AssociatePrimaryUserResponse without data"}
		}
		r.ClientToken, r.STS = resp.Data.ClientToken, resp.Data.StsToken
		return r.store(resp.Data.Token)
	})
}

// Reassociate is another login. The robot does not keep the access token of the answer.
func (r *Robot) Reassociate(ctx context.Context, userSession, clientName, appID string) (token string, err error) {
	err = r.call(ctx, session(userSession), func(c tokenpb.TokenClient) error {
		resp, err := c.ReassociatePrimaryUser(ctx, &tokenpb.ReassociatePrimaryUserRequest{ClientName: clientName, AppId: appID})
		if err != nil {
			return err
		}
		if resp.Data == nil {
			return Fatal{What: "ReassociatePrimaryUserResponse without data"}
		}
		token, r.ClientToken = resp.Data.Token, resp.Data.ClientToken
		return nil
	})
	return token, err
}

// ErrNoToken is the own error of the robot while its token file is empty.
var ErrNoToken = errors.New("tokentest: the robot has no token")

// Secondary is the login of another app.
func (r *Robot) Secondary(ctx context.Context, userSession, clientName, appID string) error {
	if r.Token == "" {
		return ErrNoToken
	}
	return r.call(ctx, r.access(), func(c tokenpb.TokenClient) error {
		resp, err := c.AssociateSecondaryClient(ctx, &tokenpb.AssociateSecondaryClientRequest{UserSession: userSession, ClientName: clientName, AppId: appID})
		if err != nil {
			return err
		}
		if resp.Data == nil {
			return Fatal{What: "AssociateSecondaryClientResponse without data"}
		}
		r.ClientToken = resp.Data.ClientToken
		return nil
	})
}

func (r *Robot) refresh(ctx context.Context, req *tokenpb.RefreshTokenRequest, use func(*tokenpb.TokenBundle) error) error {
	return r.call(ctx, r.access(), func(c tokenpb.TokenClient) error {
		resp, err := c.RefreshToken(ctx, req)
		if err != nil {
			return err
		}
		if resp.Data == nil {
			return Fatal{What: "RefreshTokenResponse without data"}
		}
		return use(resp.Data)
	})
}

// RefreshJWT refreshes the token, as the robot does three hours before it expires and after any PermissionDenied.
func (r *Robot) RefreshJWT(ctx context.Context) error {
	return r.refresh(ctx, &tokenpb.RefreshTokenRequest{RefreshJwtTokens: true}, func(b *tokenpb.TokenBundle) error { return r.store(b.Token) })
}

// RefreshSTS asks for upload credentials, as the robot does before it uploads logs.
func (r *Robot) RefreshSTS(ctx context.Context) error {
	return r.refresh(ctx, &tokenpb.RefreshTokenRequest{RefreshStsTokens: true}, func(b *tokenpb.TokenBundle) error {
		if b.StsToken == nil {
			return Fatal{What: "refresh for temporary credentials without sts_token"}
		}
		if _, err := time.Parse(time.RFC3339, b.StsToken.Expiration); err != nil {
			return fmt.Errorf("expiration of temporary credentials: %w", err)
		}
		r.STS = b.StsToken
		return nil
	})
}

// Disassociate ends the ownership. The original robot never asks for it by itself; its published service has it.
func (r *Robot) Disassociate(ctx context.Context) error {
	return r.call(ctx, r.access(), func(c tokenpb.TokenClient) error {
		_, err := c.DisassociatePrimaryUser(ctx, &tokenpb.DisassociatePrimaryUserRequest{})
		return err
	})
}

// Raw calls with metadata and a function of the test's own.
func (r *Robot) Raw(ctx context.Context, md map[string]string, do func(tokenpb.TokenClient) error) error {
	own := metadata{}
	for k, v := range md {
		own[k] = v
	}
	return r.call(ctx, own, do)
}
